//! Wavefront OBJ: `v` and `f` lines in, `v` and `f` lines out.
//!
//! Read by hand, not by `tobj`: that crate splits the mesh at groups and materials, so that vertices
//! on their borders come out twice; it drops and reorders vertices, and its errors have no lines. The
//! tests use it to read back what is written here.

use std::io::{self, Write};

use glam::DVec3;

use super::looks::without_faces;
use super::polygon::triangulate;
use super::read::{Problem, short};
use super::{MAX_TRIANGLES, MAX_VERTICES, TriMesh};

/// Writes positions in the shortest digits that read back to the same bits.
///
/// # Errors
/// What `out` says. It is best a buffered writer.
pub fn write_obj(mesh: &TriMesh, out: &mut impl Write) -> io::Result<()> {
    for position in &mesh.positions {
        writeln!(out, "v {:?} {:?} {:?}", position.x, position.y, position.z)?;
    }
    for [a, b, c] in &mesh.triangles {
        let [a, b, c] = [a, b, c].map(|&vertex| u64::from(vertex) + 1);
        writeln!(out, "f {a} {b} {c}")?;
    }
    Ok(())
}

/// Reads all `v` and `f` lines; other lines (normals, groups, materials, lines, points) are skipped. What has no
/// `f` lines is refused, by what it looks like.
pub(super) fn read(bytes: &[u8]) -> Result<TriMesh, Problem> {
    let mut mesh = TriMesh::default();
    // Faces may name vertices that come later: they are cut when all are known.
    let mut corners: Vec<u32> = Vec::new();
    let mut faces: Vec<(usize, usize)> = Vec::new();
    for (index, line) in bytes.split(|&byte| byte == b'\n').enumerate() {
        let number = index + 1;
        let line = line.trim_ascii();
        let Some((keyword, rest)) = split_keyword(line) else {
            continue;
        };
        if !matches!(keyword, b"v" | b"f") {
            continue;
        }
        let Ok(rest) = std::str::from_utf8(rest) else {
            return Err(Problem::at(number, "not a text in UTF-8"));
        };
        if keyword == b"v" {
            if mesh.positions.len() == MAX_VERTICES {
                return Err(Problem::at(
                    number,
                    format!("more than {MAX_VERTICES} vertices"),
                ));
            }
            mesh.positions
                .push(position(rest).map_err(|message| Problem::at(number, message))?);
        } else {
            let known = mesh.positions.len();
            for token in rest.split_ascii_whitespace() {
                corners.push(corner(token, known).map_err(|message| Problem::at(number, message))?);
            }
            faces.push((number, corners.len()));
        }
    }
    if faces.is_empty() {
        return Err(without_faces(bytes, mesh.positions.len()));
    }
    let mut start = 0;
    for (line, end) in faces {
        let face = &corners[start..end];
        start = end;
        let count = mesh.positions.len();
        if let Some(&vertex) = face.iter().find(|&&vertex| vertex as usize >= count) {
            // As the file calls it, where what it names counts from 1.
            let token = u64::from(vertex) + 1;
            return Err(Problem::at(
                line,
                format!("`{token}` names no vertex, there are {count}"),
            ));
        }
        triangulate(face, &mesh.positions, &mut mesh.triangles)
            .map_err(|message| Problem::at(line, message))?;
        if mesh.triangles.len() > MAX_TRIANGLES {
            return Err(Problem::at(
                line,
                format!("more than {MAX_TRIANGLES} triangles"),
            ));
        }
    }
    Ok(mesh)
}

fn split_keyword(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = line.iter().position(u8::is_ascii_whitespace)?;
    Some((&line[..end], &line[end..]))
}

/// `x y z`, of which more (a weight, a colour) is skipped.
fn position(text: &str) -> Result<DVec3, String> {
    let mut numbers = text.split_ascii_whitespace().map(|token| {
        token
            .parse::<f64>()
            .map_err(|_| format!("`{}` is no number", short(token)))
    });
    let mut next = || {
        numbers
            .next()
            .unwrap_or_else(|| Err("a vertex needs x, y and z".to_owned()))
    };
    Ok(DVec3::new(next()?, next()?, next()?))
}

/// The vertex of `7`, `7/1`, `7//2`, `7/1/2`, counted from 1, or from the last one if negative.
fn corner(token: &str, known: usize) -> Result<u32, String> {
    let vertex = token.split('/').next().unwrap_or_default();
    let number: i64 = vertex
        .parse()
        .map_err(|_| format!("`{}` is no vertex number", short(token)))?;
    let known = i64::try_from(known).unwrap_or(i64::MAX);
    let index = if number < 0 {
        known.checked_add(number)
    } else {
        number.checked_sub(1)
    };
    match index.and_then(|index| u32::try_from(index).ok()) {
        Some(index) if number != 0 => Ok(index),
        _ => Err(format!(
            "`{number}` names no vertex, there are {known} so far"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{cuboid, grid, icosphere};
    use super::*;

    fn text(mesh: &TriMesh) -> Vec<u8> {
        let mut out = Vec::new();
        write_obj(mesh, &mut out).unwrap();
        out
    }

    #[test]
    fn what_is_written_reads_back_to_the_same_bits() {
        let meshes = [
            grid(
                [1.0, 0.7],
                [9, 6],
                DVec3::new(0.1, 0.2, 0.3),
                DVec3::new(0.3, 0.2, 0.1),
            )
            .unwrap(),
            icosphere(DVec3::splat(1e-7), 0.3, 0.1).unwrap(),
            cuboid(DVec3::splat(1e7), DVec3::ONE, 0.4).unwrap(),
        ];
        for mesh in meshes {
            assert_eq!(read(&text(&mesh)).unwrap(), mesh);
        }
    }

    #[test]
    fn an_independent_reader_agrees() {
        let mesh = icosphere(DVec3::ONE, 0.3, 0.1).unwrap();
        let options = tobj::LoadOptions::default();
        let (models, _) = tobj::load_obj_buf(&mut text(&mesh).as_slice(), &options, |_| {
            Err(tobj::LoadError::GenericFailure)
        })
        .unwrap();
        let [model] = models.as_slice() else {
            panic!("one model")
        };
        // tobj numbers vertices by first use: compare corners, not numbers.
        let theirs: Vec<[f64; 3]> = model
            .mesh
            .indices
            .iter()
            .map(|&v| std::array::from_fn(|k| model.mesh.positions[3 * v as usize + k]))
            .collect();
        let ours: Vec<[f64; 3]> = mesh
            .triangles
            .iter()
            .flatten()
            .map(|&v| mesh.positions[v as usize].to_array())
            .collect();
        assert_eq!(theirs, ours);
    }

    #[test]
    fn groups_share_vertices_and_all_forms_of_a_corner_are_read() {
        let text = b"# a square\r\nmtllib a.mtl\nv 0 0 0 1 0 0\nv 1 0 0\nv 1 1 0\nvn 0 0 1\n\
                    g one\nf 1/9/9 2//7 3\ng two \xff\nv 0 1 0\nusemtl b\nf -4 -2/1 -1\n";
        let mesh = read(text).unwrap();
        assert_eq!(mesh.triangles, [[0, 1, 2], [0, 2, 3]]);
        assert_eq!(mesh.positions.len(), 4);
    }

    #[test]
    fn errors_name_the_line() {
        let error = |text: &str| read(text.as_bytes()).unwrap_err();
        let v = "v 0 0 0\nv 1 0 0\nv 0 1 0\n";
        assert_eq!(
            error("v 0 0\n"),
            Problem::at(1, "a vertex needs x, y and z")
        );
        assert_eq!(error("\nv 0 0 a\n"), Problem::at(2, "`a` is no number"));
        assert_eq!(
            error(&format!("{v}f 1 2 4")),
            Problem::at(4, "`4` names no vertex, there are 3")
        );
        assert_eq!(
            error(&format!("{v}f 1 2 0")),
            Problem::at(4, "`0` names no vertex, there are 3 so far")
        );
        assert_eq!(
            error(&format!("{v}f 1 2 -4")),
            Problem::at(4, "`-4` names no vertex, there are 3 so far")
        );
        assert_eq!(
            error(&format!("{v}f 1 2 x/1")),
            Problem::at(4, "`x/1` is no vertex number")
        );
        assert_eq!(
            error(&format!("{v}f 1 2")),
            Problem::at(4, "a face with 2 corners")
        );
    }
}
