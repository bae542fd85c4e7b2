//! Reads a frame with all of its arrays: for programs that look at runs, in which a frame may have
//! arrays that this program does not know.
//!
//! Only files that [`write_vtp`](super::write_vtp) made are read: one piece of triangles, arrays
//! appended as they are, little-endian. A frame in pieces is read by
//! [`pieces_read`](super::pieces_read). Sizes are held against the length of the file before
//! anything is taken, so that a damaged file asks for no more memory than it has bytes.

use std::path::Path;

use glam::DVec3;
use weft_io::read_regular;

use super::OutputError;
use super::pieces_read::{is_in_pieces, read_pieces};
use crate::mesh::TriMesh;

/// A frame as its file has it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FrameArrays {
    /// The simulated time in s, if the frame has one.
    pub time: Option<f64>,
    /// Vertices in m, and triangles.
    pub mesh: TriMesh,
    /// The arrays with a value for each vertex.
    pub of_vertices: Vec<NamedArray>,
    /// The arrays with a value for each triangle.
    pub of_triangles: Vec<NamedArray>,
}

/// An array of a frame.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedArray {
    /// Its name.
    pub name: String,
    /// Its values.
    pub values: ArrayValues,
}

/// The values of an array.
#[derive(Clone, Debug, PartialEq)]
pub enum ArrayValues {
    /// A real number each.
    Scalars(Vec<f64>),
    /// A vector each.
    Vectors(Vec<DVec3>),
    /// A whole number each.
    Integers(Vec<i64>),
}

impl ArrayValues {
    /// The number of values.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Scalars(values) => values.len(),
            Self::Vectors(values) => values.len(),
            Self::Integers(values) => values.len(),
        }
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Reads all of a frame, which may be in pieces.
///
/// # Errors
/// [`OutputError::Read`]; [`OutputError::Malformed`], which says what is wrong with it.
pub fn read_frame(path: &Path) -> Result<FrameArrays, OutputError> {
    if is_in_pieces(path) {
        return read_pieces(path);
    }
    let file = read_regular(path, u64::MAX).map_err(OutputError::read(path))?;
    parse_whole(&file).map_err(|what| OutputError::Malformed {
        path: path.to_owned(),
        what: format!("it is no frame that weft wrote, or not all of it: {what}"),
    })
}

/// The text before the first appended block.
const MARK: &[u8] = b"<AppendedData encoding=\"raw\">\n_";
/// The beginning of every file.
const BEGINNING: &str = "<?xml version=\"1.0\"?>\n<VTKFile type=\"PolyData\" version=\"1.0\" \
                         byte_order=\"LittleEndian\" header_type=\"UInt64\">";
/// The end of every file.
const END: &[u8] = b"\n</AppendedData>\n</VTKFile>\n";
/// The longest text before the numbers.
const LONGEST_TEXT: usize = 1 << 20;

/// Reads all of a file; the error says what is wrong with it.
pub(super) fn parse_whole(file: &[u8]) -> Result<FrameArrays, String> {
    let text = &file[..file.len().min(LONGEST_TEXT)];
    let end = text
        .windows(MARK.len())
        .position(|window| window == MARK)
        .ok_or("no numbers are appended to it")?;
    let xml = std::str::from_utf8(&text[..end]).map_err(|_| "its text is not UTF-8")?;
    if !xml.starts_with(BEGINNING) {
        return Err("it does not begin as one, little-endian with lengths of 64 bits".to_owned());
    }
    if !file.ends_with(END) {
        return Err("its end is missing".to_owned());
    }
    let reader = Reader {
        xml,
        blocks: &file[end + MARK.len()..],
    };
    let piece = reader.inside("<Piece ", ">")?;
    let vertices = count(piece, "NumberOfPoints")?;
    let triangles = count(piece, "NumberOfPolys")?;
    let time = match xml.contains("<FieldData>") {
        true => reader.arrays("FieldData", 1)?.into_iter().find_map(first),
        false => None,
    };
    let points = reader.arrays("Points", vertices)?;
    let [
        NamedArray {
            values: ArrayValues::Vectors(positions),
            ..
        },
    ] = &points[..]
    else {
        return Err("its points are not one array of vectors".to_owned());
    };
    let mesh = TriMesh {
        positions: positions.clone(),
        triangles: reader.triangles(triangles, vertices)?,
    };
    Ok(FrameArrays {
        time,
        mesh,
        of_vertices: reader.arrays("PointData", vertices)?,
        of_triangles: reader.arrays("CellData", triangles)?,
    })
}

fn first(array: NamedArray) -> Option<f64> {
    match (array.name.as_str(), array.values) {
        ("TimeValue", ArrayValues::Scalars(values)) => values.first().copied(),
        _ => None,
    }
}

/// The two parts of a file.
struct Reader<'a> {
    xml: &'a str,
    blocks: &'a [u8],
}

impl<'a> Reader<'a> {
    /// The text between two others.
    fn inside(&self, begin: &str, end: &str) -> Result<&'a str, String> {
        let found = self.xml.split_once(begin);
        let found = found.and_then(|(_, rest)| rest.split_once(end));
        found
            .map(|(inside, _)| inside)
            .ok_or_else(|| format!("no `{begin}`"))
    }

    /// The arrays of an element, with this number of items each.
    fn arrays(&self, element: &str, items: usize) -> Result<Vec<NamedArray>, String> {
        let inside = self.inside(&format!("<{element}>"), &format!("</{element}>"))?;
        let arrays = inside.split("<DataArray ").skip(1);
        arrays.map(|array| self.array(array, items)).collect()
    }

    fn array(&self, attributes: &str, items: usize) -> Result<NamedArray, String> {
        let name = attribute(attributes, "Name")?;
        let kind = attribute(attributes, "type")?;
        let components = match attribute(attributes, "NumberOfComponents") {
            Ok(_) => count(attributes, "NumberOfComponents")?,
            Err(_) => 1,
        };
        let bytes = self.block(attributes, name)?;
        let wrong = || format!("`{name}` has not {items} values of {components} {kind}");
        let size = match kind {
            "UInt8" | "Int8" => 1,
            "UInt32" | "Int32" | "Float32" => 4,
            "Int64" | "Float64" => 8,
            _ => {
                return Err(format!(
                    "`{name}` is of the type {kind}, which is not known"
                ));
            }
        };
        let wanted = items
            .checked_mul(components)
            .and_then(|n| n.checked_mul(size));
        if wanted != Some(bytes.len()) {
            return Err(wrong());
        }
        let whole = |read: fn(&[u8]) -> i64| bytes.chunks_exact(size).map(read).collect();
        let real = |read: fn(&[u8]) -> f64| bytes.chunks_exact(size).map(read).collect::<Vec<_>>();
        let values = match kind {
            "UInt8" => ArrayValues::Integers(whole(|b| i64::from(b[0]))),
            "Int8" => ArrayValues::Integers(whole(|b| i64::from(b[0] as i8))),
            "UInt32" => ArrayValues::Integers(whole(|b| u32::from_le_bytes(part(b)).into())),
            "Int32" => ArrayValues::Integers(whole(|b| i32::from_le_bytes(part(b)).into())),
            "Int64" => ArrayValues::Integers(whole(|b| i64::from_le_bytes(part(b)))),
            "Float32" => ArrayValues::Scalars(real(|b| f32::from_le_bytes(part(b)).into())),
            _ => ArrayValues::Scalars(real(|b| f64::from_le_bytes(part(b)))),
        };
        let values = match (values, components) {
            (values, 1) => values,
            (ArrayValues::Scalars(values), 3) => {
                let (vectors, _) = values.as_chunks::<3>();
                ArrayValues::Vectors(vectors.iter().map(|&v| DVec3::from_array(v)).collect())
            }
            _ => return Err(wrong()),
        };
        let name = name
            .replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&quot;", "\"")
            .replace("&amp;", "&");
        Ok(NamedArray { name, values })
    }

    /// The bytes of an array.
    fn block(&self, attributes: &str, name: &str) -> Result<&'a [u8], String> {
        let offset = count(attributes, "offset")?;
        let block = self.blocks.get(offset..);
        let split = block.and_then(|block| block.split_first_chunk::<8>());
        let bytes = split.and_then(|(length, rest)| {
            rest.get(..usize::try_from(u64::from_le_bytes(*length)).ok()?)
        });
        bytes.ok_or_else(|| format!("`{name}` is cut off"))
    }

    fn triangles(&self, triangles: usize, vertices: usize) -> Result<Vec<[u32; 3]>, String> {
        let inside = self.inside("<Polys>", "</Polys>")?;
        let attributes = inside
            .split("<DataArray ")
            .find(|array| attribute(array, "Name").is_ok_and(|name| name == "connectivity"));
        let attributes = attributes.ok_or("no connectivity")?;
        let bytes = self.block(attributes, "connectivity")?;
        let (corners, rest) = bytes.as_chunks::<12>();
        if corners.len() != triangles || !rest.is_empty() {
            return Err(format!("its connectivity is not of {triangles} triangles"));
        }
        let corner = |b: &[u8]| u32::from_le_bytes(part(b));
        let corners = corners
            .iter()
            .map(|t| [0, 4, 8].map(|at| corner(&t[at..at + 4])));
        let corners: Vec<[u32; 3]> = corners.collect();
        match corners.iter().flatten().find(|&&v| v as usize >= vertices) {
            Some(vertex) => Err(format!("a triangle names vertex {vertex} of {vertices}")),
            None => Ok(corners),
        }
    }
}

/// The bytes of one number, which are as many as that has.
fn part<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.first_chunk().copied().unwrap_or([0; N])
}

fn attribute<'a>(element: &'a str, name: &str) -> Result<&'a str, String> {
    let begin = format!("{name}=\"");
    let found = element.split_once(&begin);
    let found = found.and_then(|(_, rest)| rest.split_once('"'));
    found
        .map(|(value, _)| value)
        .ok_or_else(|| format!("no `{name}`"))
}

fn count(element: &str, name: &str) -> Result<usize, String> {
    let value = attribute(element, name)?;
    value.parse().map_err(|_| format!("{name} is no number"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::{DataArray, PolyData, RunDirectory, Values, write_vtp};
    use super::*;

    #[test]
    fn frames_are_read_with_all_their_arrays_and_damaged_ones_are_refused() {
        let root = tempfile::tempdir().unwrap();
        let run = RunDirectory::create(root.path()).unwrap();
        let points = [DVec3::new(0.1, -0.0, 1e-300), DVec3::X, DVec3::Y];
        let data = PolyData {
            points: &points,
            triangles: &[[0, 1, 2]],
            point_arrays: vec![
                DataArray {
                    name: "velocity",
                    values: Values::Vectors(&[DVec3::Y; 3]),
                },
                DataArray {
                    name: "a \"b\" & <c>",
                    values: Values::Scalars(&[1.0, 0.5, f64::MIN_POSITIVE]),
                },
            ],
            cell_arrays: vec![DataArray {
                name: "owner",
                values: Values::Integers(&[u32::MAX]),
            }],
            time: Some(0.5),
        };
        write_vtp(&run, "frames/a.vtp", &data).unwrap();
        let path = run.file("frames/a.vtp");
        let frame = read_frame(&path).unwrap();
        assert_eq!(frame.time, Some(0.5));
        assert_eq!(frame.mesh.positions, points);
        assert_eq!(frame.mesh.triangles, [[0, 1, 2]]);
        let [velocity, scalar] = &frame.of_vertices[..] else {
            panic!("{frame:?}");
        };
        assert_eq!(velocity.values, ArrayValues::Vectors(vec![DVec3::Y; 3]));
        assert_eq!(scalar.name, "a \"b\" & <c>");
        let scalars = vec![1.0, 0.5, f64::MIN_POSITIVE];
        assert_eq!(scalar.values, ArrayValues::Scalars(scalars));
        assert_eq!(
            frame.of_triangles[0].values,
            ArrayValues::Integers(vec![u32::MAX.into()])
        );

        let whole = fs::read(&path).unwrap();
        let cut = [0, 100, whole.len() / 2, whole.len() - 40];
        let cut = cut.map(|length| whole[..length].to_vec());
        let text = |from: &str, to: &str| {
            let text = String::from_utf8_lossy(&whole).into_owned();
            assert!(text.contains(from), "{from}");
            let at = whole.windows(from.len()).position(|w| w == from.as_bytes());
            let at = at.unwrap();
            [&whole[..at], to.as_bytes(), &whole[at + from.len()..]].concat()
        };
        let changed = [
            text("LittleEndian", "BigEndian"),
            text("NumberOfPoints=\"3\"", "NumberOfPoints=\"2\""),
            text(
                "NumberOfPolys=\"1\"",
                "NumberOfPolys=\"18446744073709551615\"",
            ),
            text("offset=\"0\"", "offset=\"99999999999\""),
            text("Float64", "Complex"),
            text("connectivity", "conn"),
        ];
        for bytes in cut.iter().chain(&changed) {
            fs::write(&path, bytes).unwrap();
            let error = read_frame(&path).unwrap_err();
            assert!(matches!(error, OutputError::Malformed { .. }), "{error}");
            assert!(error.to_string().contains("a.vtp"), "{error}");
        }
    }
}
