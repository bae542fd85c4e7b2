//! STL, ASCII and binary, through `stl_io`; equal vertices are joined.
//!
//! STL lists the corners of every triangle. Corners with the same three numbers become one vertex,
//! in the order of their first appearance; -0 equals 0. Near is not equal: a file written with
//! rounding errors comes out in pieces, and the check says where.

use std::collections::HashMap;
use std::io::Cursor;

use glam::DVec3;

use super::read::{Problem, short};
use super::{MAX_TRIANGLES, MAX_VERTICES, TriMesh};

/// Reads all triangles and joins equal vertices.
pub(super) fn read(mut bytes: Vec<u8>) -> Result<TriMesh, Problem> {
    normalise(&mut bytes);
    let mut cursor = Cursor::new(bytes);
    let foreign = |error: std::io::Error| Problem::new(short(&error.to_string()));
    let triangles = stl_io::create_stl_reader(&mut cursor).map_err(foreign)?;

    let mut mesh = TriMesh::default();
    // Only looked up in, never walked through: its order does not matter.
    let mut numbers: HashMap<[u32; 3], u32> = HashMap::new();
    for (number, triangle) in triangles.enumerate() {
        let triangle = triangle.map_err(|error| {
            Problem::new(format!("triangle {number}: {}", short(&error.to_string())))
        })?;
        if number == MAX_TRIANGLES || mesh.positions.len() + 3 > MAX_VERTICES {
            let message = format!("more than {MAX_TRIANGLES} triangles or {MAX_VERTICES} vertices");
            return Err(Problem::new(message));
        }
        mesh.triangles.push(triangle.vertices.map(|vertex| {
            // Adding zero makes -0 to 0.
            let corner = vertex.0.map(|x| x + 0.0);
            *numbers.entry(corner.map(f32::to_bits)).or_insert_with(|| {
                let [x, y, z] = corner.map(f64::from);
                mesh.positions.push(DVec3::new(x, y, z));
                u32::try_from(mesh.positions.len() - 1).expect("bounded by MAX_VERTICES")
            })
        }));
    }
    Ok(mesh)
}

/// Lets `stl_io` see which kind of file it has: it takes any that begins with `solid ` as text.
fn normalise(bytes: &mut Vec<u8>) {
    let count = bytes
        .get(80..84)
        .and_then(|count| count.try_into().ok())
        .map(u32::from_le_bytes);
    let binary_length = count.map(|count| 84 + 50 * u64::from(count));
    if binary_length == Some(bytes.len() as u64) {
        // The header of a binary file is free text.
        bytes[0] = b'#';
    } else if bytes.starts_with(b"solid\n") || bytes.starts_with(b"solid\r") {
        // A solid without a name.
        bytes.insert(5, b' ');
    }
}

#[cfg(test)]
mod tests {
    use super::super::{check_body, cuboid, icosphere};
    use super::*;

    fn binary(mesh: &TriMesh, header: &[u8]) -> Vec<u8> {
        let triangles: Vec<stl_io::Triangle> = mesh
            .triangles
            .iter()
            .map(|&triangle| stl_io::Triangle {
                normal: stl_io::Normal::new([0.0; 3]),
                vertices: mesh
                    .corners(triangle)
                    .map(|p| stl_io::Vertex::new(p.as_vec3().to_array())),
            })
            .collect();
        let mut out = Vec::new();
        stl_io::write_stl(&mut out, triangles.iter()).unwrap();
        out[..header.len()].copy_from_slice(header);
        out
    }

    #[test]
    fn a_closed_mesh_comes_back_closed_whatever_its_header_says() {
        let mesh = icosphere(DVec3::ZERO, 0.5, 0.2).unwrap();
        for header in [b"made by".as_slice(), b"solid ball", b"solid\n"] {
            let read = read(binary(&mesh, header)).unwrap();
            assert_eq!(read.positions.len(), mesh.positions.len());
            check_body(&read, true).unwrap();
            assert!((read.volume() - mesh.volume()).abs() < 1e-6);
        }
    }

    #[test]
    fn text_is_read_with_and_without_a_name() {
        let mesh = cuboid(DVec3::ZERO, DVec3::ONE, 1.0).unwrap();
        for name in ["solid box", "solid ", "solid"] {
            let mut text = format!("{name}\n");
            for &triangle in &mesh.triangles {
                text += " facet normal 0 0 0\n outer loop\n";
                for p in mesh.corners(triangle) {
                    text += &format!("  vertex {} {} {}\n", p.x, p.y, p.z);
                }
                text += " endloop\n endfacet\n";
            }
            text += "endsolid\n";
            let read = read(text.into_bytes()).unwrap();
            assert_eq!(read.positions.len(), 8);
            check_body(&read, true).unwrap();
        }
    }

    #[test]
    fn zero_is_zero_whatever_its_sign() {
        let mesh = TriMesh {
            positions: vec![DVec3::ZERO, DVec3::X, DVec3::Y, -DVec3::ZERO],
            triangles: vec![[0, 1, 2], [3, 2, 1]],
        };
        assert_eq!(read(binary(&mesh, b"")).unwrap().positions.len(), 3);
    }

    #[test]
    fn errors_name_the_triangle() {
        let mesh = cuboid(DVec3::ZERO, DVec3::ONE, 1.0).unwrap();
        let mut cut = binary(&mesh, b"");
        cut.truncate(84 + 50 * 7 + 20);
        let error = read(cut).unwrap_err();
        assert!(error.message.starts_with("triangle 7: "), "{error:?}");
        assert!(read(Vec::new()).is_err());
        let mut huge = vec![0; 84];
        huge[80..84].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(read(huge).unwrap_err().message.starts_with("triangle 0: "));
    }
}
