//! PLY, ASCII and binary, through `ply-rs-bw`.
//!
//! Read are `x`, `y`, `z` of the element `vertex` and the list `vertex_indices` (or `vertex_index`)
//! of the element `face`, of any number type. The counts of the header are not trusted: an element
//! takes at least a byte.

use std::io::BufRead;

use glam::DVec3;
use ply_rs_bw::parser::{ParseError, Parser, Reader};
use ply_rs_bw::ply::{Header, Property, PropertyAccess, PropertyAccessResult, PropertyType};

use super::looks::no_ply;
use super::polygon::triangulate;
use super::read::{Problem, short};
use super::{MAX_TRIANGLES, MAX_VERTICES, TriMesh};

/// Reads vertices and faces.
pub(super) fn read(bytes: &[u8]) -> Result<TriMesh, Problem> {
    if !(bytes.starts_with(b"ply\n") || bytes.starts_with(b"ply\r")) {
        return Err(no_ply(bytes));
    }
    let parser = Parser::<Element>::new();
    let mut reader = Reader::new(bytes);
    let header = parser.read_header(&mut reader).map_err(foreign)?;
    check_header(&header, bytes.len())?;

    let mut mesh = TriMesh::default();
    let mut faces = Vec::new();
    for (name, definition) in &header.elements {
        let elements = read_elements(&parser, &mut reader, definition, &header)?;
        match name.as_str() {
            "vertex" => mesh
                .positions
                .extend(elements.iter().map(|element| element.position)),
            "face" => faces.extend(elements.into_iter().map(|element| element.corners)),
            _ => {}
        }
    }
    let count = mesh.positions.len();
    let mut face = Vec::new();
    for (number, corners) in faces.iter().enumerate() {
        face.clear();
        for &corner in corners {
            match u32::try_from(corner) {
                Ok(vertex) if (vertex as usize) < count => face.push(vertex),
                _ => {
                    let message = format!("face {number} names vertex {corner}, there are {count}");
                    return Err(Problem::new(message));
                }
            }
        }
        triangulate(&face, &mesh.positions, &mut mesh.triangles)
            .map_err(|message| Problem::new(format!("face {number}: {message}")))?;
        if mesh.triangles.len() > MAX_TRIANGLES {
            return Err(Problem::new(format!("more than {MAX_TRIANGLES} triangles")));
        }
    }
    Ok(mesh)
}

/// What is kept of any element: a position or a list of corners.
struct Element {
    position: DVec3,
    corners: Vec<i64>,
}

impl PropertyAccess for Element {
    fn new() -> Self {
        Self {
            position: DVec3::NAN,
            corners: Vec::new(),
        }
    }

    fn set_property(&mut self, name: &str, property: Property) -> PropertyAccessResult {
        match name {
            "x" | "y" | "z" => {
                let Some(value) = scalar(&property) else {
                    return PropertyAccessResult::UnsupportedType;
                };
                match name {
                    "x" => self.position.x = value,
                    "y" => self.position.y = value,
                    _ => self.position.z = value,
                }
                PropertyAccessResult::Set
            }
            "vertex_indices" | "vertex_index" => {
                let Some(corners) = whole_numbers(property) else {
                    return PropertyAccessResult::UnsupportedType;
                };
                self.corners = corners;
                PropertyAccessResult::Set
            }
            _ => PropertyAccessResult::Ignored,
        }
    }
}

fn scalar(property: &Property) -> Option<f64> {
    Some(match *property {
        Property::Char(value) => f64::from(value),
        Property::UChar(value) => f64::from(value),
        Property::Short(value) => f64::from(value),
        Property::UShort(value) => f64::from(value),
        Property::Int(value) => f64::from(value),
        Property::UInt(value) => f64::from(value),
        Property::Float(value) => f64::from(value),
        Property::Double(value) => value,
        _ => return None,
    })
}

fn whole_numbers(property: Property) -> Option<Vec<i64>> {
    fn all<T: Into<i64>>(list: Vec<T>) -> Vec<i64> {
        list.into_iter().map(Into::into).collect()
    }
    Some(match property {
        Property::ListChar(list) => all(list),
        Property::ListUChar(list) => all(list),
        Property::ListShort(list) => all(list),
        Property::ListUShort(list) => all(list),
        Property::ListInt(list) => all(list),
        Property::ListUInt(list) => all(list),
        _ => return None,
    })
}

fn check_header(header: &Header, bytes: usize) -> Result<(), Problem> {
    for (name, definition) in &header.elements {
        let most = match name.as_str() {
            "vertex" => MAX_VERTICES,
            "face" => MAX_TRIANGLES,
            _ => usize::MAX,
        };
        let (name, count) = (short(name), definition.count);
        if count > most {
            let message = format!("{count} elements `{name}`; the most are {most}");
            return Err(Problem::new(message));
        }
        if count > bytes || (definition.properties.is_empty() && count > 0) {
            let message =
                format!("the header promises {count} elements `{name}` that are not there");
            return Err(Problem::new(message));
        }
    }
    if header
        .elements
        .get("face")
        .is_some_and(|faces| faces.count == 0)
    {
        return Err(Problem::new("the header says that it has 0 faces"));
    }
    let has = |element: &str, property: &str, list: bool| {
        header.elements.get(element).is_some_and(|definition| {
            definition
                .properties
                .get(property)
                .is_some_and(|p| matches!(p.data_type, PropertyType::List(..)) == list)
        })
    };
    if !["x", "y", "z"]
        .into_iter()
        .all(|axis| has("vertex", axis, false))
    {
        return Err(Problem::new(
            "the header has no element `vertex` with x, y and z",
        ));
    }
    if !has("face", "vertex_indices", true) && !has("face", "vertex_index", true) {
        return Err(Problem::new(
            "the header has no element `face` with a list `vertex_indices`",
        ));
    }
    Ok(())
}

fn read_elements(
    parser: &Parser<Element>,
    reader: &mut Reader<impl BufRead>,
    definition: &ply_rs_bw::ply::ElementDef,
    header: &Header,
) -> Result<Vec<Element>, Problem> {
    parser
        .read_payload_for_element(reader, definition, header)
        .map_err(foreign)
}

/// The crate's message; it carries a line for text only.
fn foreign(error: ParseError) -> Problem {
    let message = error.to_string();
    // The line is told apart from the message.
    let message = match error.line() {
        Some(line) => message
            .trim_start_matches(&format!("Line {line}: "))
            .to_owned(),
        None => message,
    };
    Problem {
        line: error.line(),
        message: short(&message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(format: &str, vertices: &str, faces: &str) -> String {
        format!(
            "ply\nformat {format} 1.0\ncomment made by hand\nelement vertex {vertices}\n\
             property float x\nproperty float y\nproperty float z\nproperty uchar red\n\
             element face {faces}\nproperty list uchar uint vertex_index\nend_header\n"
        )
    }

    #[test]
    fn ascii_and_both_binary_orders_agree() {
        let points = [
            [0f32, 0.0, 0.5],
            [1.0, 0.0, 0.5],
            [1.0, 1.0, 0.5],
            [0.0, 1.0, 0.5],
        ];
        let faces: [&[u32]; 2] = [&[0, 1, 2], &[0, 2, 3]];
        let mut ascii = header("ascii", "4", "2");
        for [x, y, z] in points {
            ascii += &format!("{x} {y} {z} 255\n");
        }
        ascii += "3 0 1 2\n3 0 2 3\n";
        let binary = |little: bool| {
            let name = if little {
                "binary_little_endian"
            } else {
                "binary_big_endian"
            };
            let order = |bytes: [u8; 4]| {
                let mut bytes = bytes;
                if !little {
                    bytes.reverse();
                }
                bytes
            };
            let mut out = header(name, "4", "2").into_bytes();
            for point in points {
                out.extend(point.iter().flat_map(|x| order(x.to_le_bytes())));
                out.push(255);
            }
            for face in faces {
                out.push(3);
                out.extend(face.iter().flat_map(|v| order(v.to_le_bytes())));
            }
            out
        };
        let mesh = read(ascii.as_bytes()).unwrap();
        assert_eq!(mesh.triangles, [[0, 1, 2], [0, 2, 3]]);
        assert_eq!(mesh.positions[2], DVec3::new(1.0, 1.0, 0.5));
        assert_eq!(read(&binary(true)).unwrap(), mesh);
        assert_eq!(read(&binary(false)).unwrap(), mesh);
    }

    #[test]
    fn polygons_are_cut() {
        let text = header("ascii", "4", "1") + "0 0 0 1\n1 0 0 1\n1 1 0 1\n0 1 0 1\n4 0 1 2 3\n";
        assert_eq!(read(text.as_bytes()).unwrap().triangles.len(), 2);
    }

    #[test]
    fn promises_that_are_not_kept_are_refused_without_taking_memory() {
        for count in ["18446744073709551615", "4000000000", "19000000", "5"] {
            for format in ["ascii", "binary_little_endian"] {
                assert!(
                    read(header(format, count, "1").as_bytes()).is_err(),
                    "{count} {format}"
                );
                assert!(
                    read(header(format, "0", count).as_bytes()).is_err(),
                    "{count} {format}"
                );
            }
        }
        let empty = "ply\nformat binary_little_endian 1.0\nelement ghost 99\nend_header\n";
        assert_eq!(
            read(empty.as_bytes()).unwrap_err().message,
            "the header promises 99 elements `ghost` that are not there"
        );
        // A list of 4 billion corners.
        let mut list =
            b"ply\nformat binary_little_endian 1.0\nelement vertex 0\nproperty float x\n\
            property float y\nproperty float z\nelement face 1\n\
            property list uint uint vertex_indices\nend_header\n"
                .to_vec();
        list.extend(u32::MAX.to_le_bytes());
        assert!(read(&list).is_err());
    }

    #[test]
    fn errors_name_line_or_element() {
        let text = header("ascii", "3", "1") + "0 0 0 1\n1 0 x 1\n0 1 0 1\n3 0 1 2\n";
        let error = read(text.as_bytes()).unwrap_err();
        assert_eq!(error.line, Some(13), "{error:?}");
        let text = header("ascii", "3", "1") + "0 0 0 1\n1 0 0 1\n0 1 0 1\n3 0 1 3\n";
        let error = read(text.as_bytes()).unwrap_err();
        assert_eq!(error.message, "face 0 names vertex 3, there are 3");
        let error = read(b"plx\n").unwrap_err();
        assert!(error.message.contains("first line is `plx`"), "{error:?}");
        let error = read(b"ply\nformat ascii 1.0\nend_header\n").unwrap_err();
        assert_eq!(
            error.message,
            "the header has no element `vertex` with x, y and z"
        );
    }
}
