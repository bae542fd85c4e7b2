//! Wavefront OBJ: `v`, `vt`, `f`, `g` and `o` lines in and out.
//!
//! Read by hand, not by `tobj`: that crate splits the mesh at groups and materials, so that
//! vertices on their borders come out twice; it drops and reorders vertices, and its errors have no
//! lines. The tests use it to read back what is written here.

use std::io::{self, Write};

use glam::DVec3;

use super::file_mesh::{FileMesh, Texture};
use super::file_problem::{BYTE_ORDER_MARK, Problem, coordinate, short};
use super::groups::{Groups, Kind};
use super::looks::without_faces;
use super::polygon::{MOST_CORNERS, too_many_corners, triangulate};
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

/// Writes a mesh with the vertices and faces of its file, its texture coordinates, and a line that
/// names it. `positions` are those of the file's vertices.
///
/// # Errors
/// What `out` says. It is best a buffered writer.
pub fn write_obj_of_file(
    name: &str,
    file: &FileMesh,
    positions: &[DVec3],
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "o {name}")?;
    for position in positions {
        writeln!(out, "v {:?} {:?} {:?}", position.x, position.y, position.z)?;
    }
    write_obj_faces(file, out)
}

/// Writes the texture coordinates and faces of a mesh, whose vertices are already there.
///
/// # Errors
/// What `out` says.
pub fn write_obj_faces(file: &FileMesh, out: &mut dyn Write) -> io::Result<()> {
    let mut texture = None;
    if let Some(Texture {
        coordinates,
        corners,
    }) = &file.texture
    {
        let mut digits = zmij::Buffer::new();
        let mut lines = Vec::with_capacity(WRITTEN + 64);
        for uv in coordinates {
            lines.extend_from_slice(b"vt");
            for x in uv {
                lines.push(b' ');
                lines.extend_from_slice(digits.format(*x).as_bytes());
            }
            lines.push(b'\n');
            if lines.len() > WRITTEN {
                out.write_all(&lines)?;
                lines.clear();
            }
        }
        out.write_all(&lines)?;
        texture = Some(corners.iter());
    }
    let mut lines = Vec::with_capacity(WRITTEN + 4096);
    for face in file.faces.iter() {
        lines.push(b'f');
        for &vertex in face {
            lines.push(b' ');
            push_number(&mut lines, u64::from(vertex) + 1);
            if let Some(&corner) = texture.as_mut().and_then(Iterator::next) {
                lines.push(b'/');
                push_number(&mut lines, u64::from(corner) + 1);
            }
        }
        lines.push(b'\n');
        if lines.len() > WRITTEN {
            out.write_all(&lines)?;
            lines.clear();
        }
    }
    out.write_all(&lines)
}

/// Bytes of lines that are written at a time.
const WRITTEN: usize = 1 << 16;

/// Adds the digits of a number.
fn push_number(text: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        let digit = (number % 10) as u8;
        digits[at] = b'0' + digit;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    text.extend_from_slice(&digits[at..]);
}

/// A face as it stands in the file.
struct Face {
    line: usize,
    /// The end of its corners in the list of all.
    end: usize,
}

/// Reads all `v`, `vt` and `f` statements, and the groups of these names (`g`, `o`); others
/// (normals, materials, lines, points) are skipped. A file without faces is refused, with a guess
/// at its format.
pub(super) fn read_file(bytes: &[u8], wanted: &[&str]) -> Result<FileMesh, Problem> {
    let text = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    let mut words = Words::of(text);
    let mut read = FileMesh::default();
    let mut coordinates: Vec<[f64; 2]> = Vec::new();
    // Faces may name vertices that come later: they are cut when all are known.
    let mut corners: Vec<Corner> = Vec::new();
    let mut faces: Vec<Face> = Vec::new();
    let mut groups = Groups::new(wanted);
    loop {
        match words.next() {
            Some(b"v") => {
                if read.mesh.positions.len() == MAX_VERTICES {
                    let message = format!("more than {MAX_VERTICES} vertices");
                    return Err(Problem::at(words.line, message));
                }
                read.mesh.positions.push(position(&mut words)?);
            }
            Some(b"vt") => {
                if coordinates.len() == 3 * MAX_TRIANGLES {
                    let message = format!("more than {} texture coordinates", 3 * MAX_TRIANGLES);
                    return Err(Problem::at(words.line, message));
                }
                coordinates.push(texture_coordinate(&mut words)?);
            }
            Some(b"g") => {
                groups.end_faces(Kind::Group);
                let mut any = false;
                while let Some(name) = words.next() {
                    any = true;
                    groups.begin_faces(Kind::Group, &String::from_utf8_lossy(name));
                }
                if !any {
                    groups.begin_faces(Kind::Group, "default");
                }
            }
            Some(b"o") => {
                let mut name = Vec::new();
                while let Some(word) = words.next() {
                    name.extend((!name.is_empty()).then_some(b' '));
                    name.extend_from_slice(word);
                }
                groups.end_faces(Kind::Object);
                groups.begin_faces(Kind::Object, &String::from_utf8_lossy(&name));
            }
            Some(b"f") => {
                if faces.len() == MAX_TRIANGLES {
                    let message = format!("more than {MAX_TRIANGLES} triangles");
                    return Err(Problem::at(words.line, message));
                }
                let (line, first) = (words.line, corners.len());
                let known = [read.mesh.positions.len(), coordinates.len()];
                while let Some(token) = words.next() {
                    if corners.len() - first == MOST_CORNERS {
                        return Err(Problem::at(line, too_many_corners()));
                    }
                    let corner = corner(token, known);
                    corners.push(corner.map_err(|message| Problem::at(words.line, message))?);
                }
                groups.add(corners[first..].iter().map(|corner| corner.vertex));
                faces.push(Face {
                    line,
                    end: corners.len(),
                });
            }
            _ => {}
        }
        if !words.next_statement() {
            break;
        }
    }
    let mesh = &mut read.mesh;
    if faces.is_empty() {
        return Err(without_faces(text, mesh.positions.len()));
    }
    let mut texture = (!coordinates.is_empty()).then(|| Texture {
        corners: Vec::with_capacity(corners.len()),
        coordinates,
    });
    let mut start = 0;
    let mut face = Vec::with_capacity(MOST_CORNERS);
    for Face { line, end } in faces {
        let of_face = &corners[start..end];
        face.clear();
        face.extend(of_face.iter().map(|corner| corner.vertex));
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
        let repeated = |vertex: u32| format!("vertex `{}`", u64::from(vertex) + 1);
        triangulate(&face, &mesh.positions, repeated, &mut mesh.triangles)
            .map_err(|message| Problem::at(line, message))?;
        if mesh.triangles.len() > MAX_TRIANGLES {
            return Err(Problem::at(
                line,
                format!("more than {MAX_TRIANGLES} triangles"),
            ));
        }
        read.faces.push(&face);
        if let Some(texture) = &mut texture {
            for corner in of_face {
                texture.add(corner.texture).map_err(|number| {
                    let count = texture.coordinates.len();
                    let message = format!("`{number}` names no `vt`, there are {count}");
                    Problem::at(line, message)
                })?;
            }
        }
    }
    read.texture = texture;
    (read.groups, read.group_names) = groups.finish();
    Ok(read)
}

impl Texture {
    /// Adds a corner with a coordinate, or without one if there are none with some. An error is the
    /// number of one that there is not, as files count.
    fn add(&mut self, coordinate: Option<u32>) -> Result<(), u64> {
        let corner = coordinate.unwrap_or_else(|| {
            // Corners without a coordinate share one at the origin.
            if self.coordinates.last() != Some(&[0.0; 2]) {
                self.coordinates.push([0.0; 2]);
            }
            u32::try_from(self.coordinates.len() - 1).unwrap_or(u32::MAX)
        });
        if corner as usize >= self.coordinates.len() {
            return Err(u64::from(corner) + 1);
        }
        self.corners.push(corner);
        Ok(())
    }
}

/// Reads the mesh alone.
#[cfg(test)]
pub(super) fn read(bytes: &[u8]) -> Result<TriMesh, Problem> {
    read_file(bytes, &[]).map(|file| file.mesh)
}

/// The words of a file, statement by statement.
///
/// A statement ends with its line, unless a `\` at the end joins the next one to it; `#` begins a
/// comment, which ends with its line whatever it ends with: comments name folders, and no vertex is
/// to be lost for one. Lines end with `\n`, `\r\n` or `\r`.
struct Words<'a> {
    rest: &'a [u8],
    /// The line of the last word, from 1.
    line: usize,
}

impl<'a> Words<'a> {
    fn of(text: &'a [u8]) -> Self {
        Self {
            rest: text,
            line: 1,
        }
    }

    /// The next word of this statement.
    fn next(&mut self) -> Option<&'a [u8]> {
        loop {
            self.skip_blanks();
            match self.rest.first()? {
                b'\n' | b'\r' | b'#' => return None,
                b'\\' if line_end(&self.rest[1..]) == Some(0) => {
                    // The file ends with it.
                    self.rest = &[];
                    return None;
                }
                b'\\' => {
                    if let Some(end) = line_end(&self.rest[1..]) {
                        self.rest = &self.rest[1 + end..];
                        self.line += 1;
                        continue;
                    }
                }
                _ => {}
            }
            let end = self.word_end();
            let (word, rest) = self.rest.split_at(end);
            self.rest = rest;
            return Some(word);
        }
    }

    /// Goes to the next statement; whether there is one.
    fn next_statement(&mut self) -> bool {
        while self.next().is_some() {}
        let end = self.rest.iter().position(|&b| b == b'\n' || b == b'\r');
        let Some(end) = end else {
            self.rest = &[];
            return false;
        };
        let is_pair = self.rest[end..].starts_with(b"\r\n");
        self.rest = &self.rest[end + 1 + usize::from(is_pair)..];
        self.line += 1;
        true
    }

    fn skip_blanks(&mut self) {
        let blanks = self.rest.iter().take_while(|&&byte| is_blank(byte));
        self.rest = &self.rest[blanks.count()..];
    }

    fn word_end(&self) -> usize {
        let ends = |at: usize| match self.rest[at] {
            b'\n' | b'\r' | b'#' => true,
            b'\\' => at > 0 && line_end(&self.rest[at + 1..]).is_some(),
            byte => is_blank(byte),
        };
        let end = (0..self.rest.len()).find(|&at| ends(at));
        end.unwrap_or(self.rest.len())
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\x0b' | b'\x0c')
}

/// How many bytes there are to the next line, if only blanks are left on this one; 0 if the file
/// ends with it.
fn line_end(rest: &[u8]) -> Option<usize> {
    let blanks = rest.iter().take_while(|&&byte| is_blank(byte)).count();
    match rest[blanks..] {
        [] => Some(0),
        [b'\r', b'\n', ..] => Some(blanks + 2),
        [b'\r' | b'\n', ..] => Some(blanks + 1),
        _ => None,
    }
}

/// `x y z`, of which more (a weight, a colour) is skipped.
fn position(words: &mut Words<'_>) -> Result<DVec3, Problem> {
    let mut next = || {
        let Some(token) = words.next() else {
            return Err(Problem::at(words.line, "a vertex needs x, y and z"));
        };
        coordinate(token).map_err(|message| Problem::at(words.line, message))
    };
    Ok(DVec3::new(next()?, next()?, next()?))
}

/// `u v`, of which `v` may be missing and more is skipped.
fn texture_coordinate(words: &mut Words<'_>) -> Result<[f64; 2], Problem> {
    let mut read = [0.0; 2];
    for (axis, number) in read.iter_mut().enumerate() {
        match words.next() {
            Some(token) => {
                *number = coordinate(token).map_err(|message| Problem::at(words.line, message))?;
            }
            None if axis == 0 => {
                let message = "a texture coordinate needs u and v";
                return Err(Problem::at(words.line, message));
            }
            None => {}
        }
    }
    Ok(read)
}

/// The corner of a face.
#[derive(Clone, Copy)]
struct Corner {
    vertex: u32,
    /// Its texture coordinate, if it has one.
    texture: Option<u32>,
}

/// The corner that `7`, `7/1`, `7//2`, `7/1/2` is: numbers count from 1, or from the last one back
/// if negative. Vertices and texture coordinates are `known` so far.
fn corner(token: &[u8], known: [usize; 2]) -> Result<Corner, String> {
    let mut parts = token.split(|&byte| byte == b'/');
    let number = |part: Option<&[u8]>| {
        let part = part.and_then(|part| std::str::from_utf8(part).ok());
        part.and_then(|part| part.parse::<i64>().ok())
    };
    let vertex = number(parts.next());
    let vertex = vertex.ok_or_else(|| format!("`{}` is no vertex number", short(token)))?;
    let texture = match parts.next() {
        None | Some(b"") => None,
        part => {
            let texture = number(part);
            Some(texture.ok_or_else(|| format!("`{}` is no vertex number", short(token)))?)
        }
    };
    let index = |number: i64, known: usize| {
        let known = i64::try_from(known).unwrap_or(i64::MAX);
        let index = if number < 0 {
            known.checked_add(number)
        } else {
            number.checked_sub(1)
        };
        index.and_then(|index| u32::try_from(index).ok())
    };
    let of_vertex = index(vertex, known[0]);
    let vertex = of_vertex
        .ok_or_else(|| format!("`{vertex}` names no vertex, there are {} so far", known[0]))?;
    let texture = texture.map(|number| {
        let index = index(number, known[1]);
        // A file without any texture coordinates may name them: nobody uses these names.
        index
            .or_else(|| (known[1] == 0).then_some(0))
            .ok_or_else(|| format!("`{number}` names no `vt`, there are {} so far", known[1]))
    });
    let texture = texture.transpose()?;
    Ok(Corner { vertex, texture })
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
    fn a_written_mesh_reads_back_to_the_same_bits() {
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
    fn texture_coordinates_polygons_and_groups_are_kept() {
        let text = b"o my shirt\nv 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nv 2 0 0\nvt 0 0.5\nvt 1\n\
                    g collar left\nf 1/1 2/2 3/-2 4/-1\ng right\nf 2 5 3\n";
        let file = read_file(text, &["collar", "my shirt", "none"]).unwrap();
        let faces: Vec<&[u32]> = file.faces.iter().collect();
        assert_eq!(faces, [&[0, 1, 2, 3][..], &[1, 4, 2]]);
        assert_eq!(file.mesh.triangles.len(), 3);
        let texture = file.texture.as_ref().unwrap();
        assert_eq!(texture.coordinates, [[0.0, 0.5], [1.0, 0.0], [0.0, 0.0]]);
        assert_eq!(texture.corners, [0, 1, 0, 1, 2, 2, 2]);
        let groups: Vec<(&str, &[u32])> = (file.groups.iter())
            .map(|group| (group.name.as_str(), &group.vertices[..]))
            .collect();
        let all: &[u32] = &[0, 1, 2, 3, 4];
        assert_eq!(groups, [("collar", &[0, 1, 2, 3][..]), ("my shirt", all)]);
        assert_eq!(file.group_names, ["my shirt", "collar", "left", "right"]);
        let mut written = Vec::new();
        write_obj_of_file("a", &file, &file.mesh.positions, &mut written).unwrap();
        let again = read_file(&written, &[]).unwrap();
        assert_eq!((&again.mesh, &again.faces), (&file.mesh, &file.faces));
        assert_eq!(again.texture, file.texture);

        let error = read_file(b"v 0 0 0\nvt 0 0\nf 1/2 1/1 1\n", &[]).unwrap_err();
        assert!(error.message.contains("vertex `1` twice"), "{error:?}");
        let v = "v 0 0 0\nv 1 0 0\nv 0 1 0\nvt 0 0\n";
        for (face, message) in [
            ("f 1/2 2/1 3/1", "`2` names no `vt`, there are 1"),
            ("f 1/-2 2/1 3/1", "`-2` names no `vt`, there are 1 so far"),
            ("vt\nf 1 2 3", "a texture coordinate needs u and v"),
            ("vt 0 x\nf 1 2 3", "`x` is no number"),
        ] {
            let error = read_file(format!("{v}{face}").as_bytes(), &[]).unwrap_err();
            assert_eq!(error, Problem::at(5, message), "{face}");
        }
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
        // Words that stand alone on their line are no less a vertex and a face.
        assert_eq!(error("v\n"), Problem::at(1, "a vertex needs x, y and z"));
        assert_eq!(
            error(&format!("{v}f")),
            Problem::at(4, "a face with 0 corners")
        );
        assert_eq!(
            error(&format!("{v}f 1 2 -2")),
            Problem::at(4, "a face that has vertex `2` twice")
        );
        let many = " 1".repeat(MOST_CORNERS + 1);
        assert_eq!(
            error(&format!("{v}f{many}")),
            Problem::at(4, too_many_corners())
        );
        // On a joined line, it is the one where it stands.
        assert_eq!(
            error(&format!("{v}f 1 2 \\\n 9 \\\n x")),
            Problem::at(6, "`x` is no vertex number")
        );
        assert_eq!(
            error("v 0 0 \u{1b}[2J\n"),
            Problem::at(1, "`\\u{1b}[2J` is no number")
        );
    }

    /// A vertex in a polygon is checked too, before the polygon is cut.
    #[test]
    fn a_coordinate_that_is_not_finite_is_named_with_its_line() {
        for token in ["nan", "-inf", "infinity", "1e400"] {
            let text = format!("v 0 0 0\nv 1 0 0\nv 1 {token} 0\nv 0 1 0\nf 1 2 3 4\n");
            assert_eq!(
                read(text.as_bytes()).unwrap_err(),
                Problem::at(3, format!("`{token}` is no finite number"))
            );
        }
    }

    #[test]
    fn lines_are_joined_comments_are_none_and_any_line_end_will_do() {
        let plain = b"v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nf 1 2 3 4\n";
        let mesh = read(plain).unwrap();
        for text in [
            "v 0 0 0\nv 1 \\\n0 0\nv 1 1 0\nv 0 1 0\nf 1 2 \\\n 3\\\n4",
            "v 0 0 0\nv 1 0 0 # x\nv 1 1 0#y\nv 0 1 0\nf 1 2 3 4 # a quad\n",
            "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nf 1/1 2/1 \\ \r\n3/1 4/1 #",
            "# from C:\\models\\\nv 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nf 1 2 3 4",
            "\u{feff}v 0 0 0\nv\t1 0 0\n\n  v 1 1 0\nv 0 1 0\n\tf 1 2\t3 4\\",
            "v 0 0 0\rv 1 0 0\rv 1 1 0\rv 0 1 0\rf 1 2 3 4\r",
            "g a \\\nb\nv 0 0 0\r\nv 1 0 0\r\nv 1 1 0\r\nv 0 1 0\r\nf 1 2 3 4\r\n",
        ] {
            assert_eq!(read(text.as_bytes()).as_ref(), Ok(&mesh), "{text}");
        }
        // A `\` within a line joins nothing.
        let error = read(b"v 0 0 0\nf 1 \\ 2\n").unwrap_err();
        assert_eq!(error, Problem::at(2, "`\\` is no vertex number"));
    }
}
