//! VTK XML PolyData (`.vtp`): one triangle mesh with arrays, as ParaView and VTK read it.
//!
//! The file is XML with the numbers appended in raw binary (`encoding="raw"`), little-endian, each
//! block led by its length in bytes as `UInt64`. Points, times and real arrays are `Float64`, so
//! that a frame holds the state exactly and can be audited; connectivity is `Int32`. The topology
//! is in every file: each one can be opened alone.
//!
//! Not here: compression, other cell types, reading.

use std::collections::BTreeSet;
use std::io::{self, Write};

use glam::DVec3;

use super::{OutputError, RunDirectory};

/// A triangle mesh with arrays, all borrowed.
#[derive(Clone, Debug)]
pub struct PolyData<'a> {
    /// Vertex positions in m.
    pub points: &'a [DVec3],
    /// Three indices into `points` each.
    pub triangles: &'a [[u32; 3]],
    /// One value per vertex.
    pub point_arrays: Vec<DataArray<'a>>,
    /// One value per triangle.
    pub cell_arrays: Vec<DataArray<'a>>,
    /// Simulated time in s, written as field data `TimeValue`.
    pub time: Option<f64>,
}

/// A named array on vertices or triangles.
#[derive(Clone, Copy, Debug)]
pub struct DataArray<'a> {
    /// The name ParaView shows.
    pub name: &'a str,
    /// The numbers.
    pub values: Values<'a>,
}

/// The numbers of an array.
#[derive(Clone, Copy, Debug)]
pub enum Values<'a> {
    /// One real number per item (`Float64`).
    Scalars(&'a [f64]),
    /// One vector per item (`Float64`, 3 components).
    Vectors(&'a [DVec3]),
    /// One non-negative whole number per item (`UInt32`): a rank, a patch.
    Integers(&'a [u32]),
    /// One byte per item (`UInt8`): what VTK marks ghosts with.
    Bytes(&'a [u8]),
}

impl Values<'_> {
    /// Number of items.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Scalars(values) => values.len(),
            Self::Vectors(values) => values.len(),
            Self::Integers(values) => values.len(),
            Self::Bytes(values) => values.len(),
        }
    }

    /// VTK's name for the type of its numbers, and how many there are per item.
    pub(super) fn kind(&self) -> (&'static str, u32) {
        match self {
            Self::Scalars(_) => ("Float64", 1),
            Self::Vectors(_) => ("Float64", 3),
            Self::Integers(_) => ("UInt32", 1),
            Self::Bytes(_) => ("UInt8", 1),
        }
    }

    /// Whether there is no item.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Writes `data` to the file `name` of the run.
///
/// # Errors
/// [`OutputError::Inconsistent`] if an index points outside, an array has the wrong length, two
/// arrays of the same kind share a name or the mesh is too large for 32-bit connectivity: nothing
/// is written then. [`OutputError::Write`] if the file cannot be written.
pub fn write_vtp(run: &RunDirectory, name: &str, data: &PolyData<'_>) -> Result<(), OutputError> {
    if let Some(what) = inconsistency(data) {
        return Err(OutputError::Inconsistent {
            path: run.file(name),
            what,
        });
    }
    run.write(name, |out| encode(data, out))?;
    Ok(())
}

pub(super) fn inconsistency(data: &PolyData<'_>) -> Option<String> {
    let (points, triangles) = (data.points.len(), data.triangles.len());
    if i32::try_from(points).is_err() || i32::try_from(3 * triangles).is_err() {
        return Some(format!(
            "{points} vertices and {triangles} triangles are too many"
        ));
    }
    for (number, triangle) in data.triangles.iter().enumerate() {
        if let Some(index) = triangle.iter().find(|index| **index as usize >= points) {
            return Some(format!(
                "triangle {number} names vertex {index} of {points}"
            ));
        }
    }
    for (arrays, of, expected) in [
        (&data.point_arrays, "vertices", points),
        (&data.cell_arrays, "triangles", triangles),
    ] {
        let mut names = BTreeSet::new();
        for array in arrays {
            let (name, len) = (array.name, array.values.len());
            if len != expected {
                return Some(format!(
                    "array `{name}` has {len} values for {expected} {of}"
                ));
            }
            if !names.insert(name) {
                return Some(format!("two arrays on {of} are called `{name}`"));
            }
        }
    }
    None
}

pub(super) fn encode(data: &PolyData<'_>, out: &mut dyn Write) -> io::Result<()> {
    // The header is put together first, because each array must say where its block will start.
    let mut blocks = Blocks::default();
    let mut xml = String::from(
        "<?xml version=\"1.0\"?>\n<VTKFile type=\"PolyData\" version=\"1.0\" \
         byte_order=\"LittleEndian\" header_type=\"UInt64\">\n<PolyData>\n",
    );
    if let Some(time) = data.time {
        xml += "<FieldData>\n";
        let attributes = "type=\"Float64\" Name=\"TimeValue\" NumberOfTuples=\"1\"";
        xml += &blocks.add(attributes, Block::Scalar(time));
        xml += "</FieldData>\n";
    }
    xml += &format!(
        "<Piece NumberOfPoints=\"{}\" NumberOfVerts=\"0\" NumberOfLines=\"0\" \
         NumberOfStrips=\"0\" NumberOfPolys=\"{}\">\n",
        data.points.len(),
        data.triangles.len()
    );
    for (element, arrays) in [
        ("PointData", &data.point_arrays),
        ("CellData", &data.cell_arrays),
    ] {
        xml += &format!("<{element}>\n");
        for array in arrays {
            xml += &blocks.add_array(&escape(array.name), array.values);
        }
        xml += &format!("</{element}>\n");
    }
    xml += "<Points>\n";
    xml += &blocks.add_array("Points", Values::Vectors(data.points));
    xml += "</Points>\n<Polys>\n";
    xml += &blocks.add(
        "type=\"Int32\" Name=\"connectivity\"",
        Block::Connectivity(data.triangles),
    );
    xml += &blocks.add(
        "type=\"Int32\" Name=\"offsets\"",
        Block::Offsets(data.triangles.len()),
    );
    xml += "</Polys>\n</Piece>\n</PolyData>\n<AppendedData encoding=\"raw\">\n_";

    out.write_all(xml.as_bytes())?;
    for block in &blocks.list {
        out.write_all(&block.bytes().to_le_bytes())?;
        block.encode(out)?;
    }
    out.write_all(b"\n</AppendedData>\n</VTKFile>\n")
}

/// The appended blocks in order, and where the next one starts.
#[derive(Default)]
struct Blocks<'a> {
    list: Vec<Block<'a>>,
    offset: u64,
}

impl<'a> Blocks<'a> {
    fn add_array(&mut self, name: &str, values: Values<'a>) -> String {
        let (kind, components) = values.kind();
        self.add(
            &format!("type=\"{kind}\" Name=\"{name}\" NumberOfComponents=\"{components}\""),
            Block::Values(values),
        )
    }

    /// Appends a block and returns the XML element that refers to it.
    fn add(&mut self, attributes: &str, block: Block<'a>) -> String {
        let offset = self.offset;
        self.offset += 8 + block.bytes();
        self.list.push(block);
        format!("<DataArray {attributes} format=\"appended\" offset=\"{offset}\"/>\n")
    }
}

/// The contents of one appended block.
enum Block<'a> {
    Scalar(f64),
    Values(Values<'a>),
    Connectivity(&'a [[u32; 3]]),
    /// The ends, in the connectivity, of this number of triangles.
    Offsets(usize),
}

impl Block<'_> {
    fn bytes(&self) -> u64 {
        let (items, size) = match self {
            Self::Scalar(_) => (1, 8),
            Self::Values(values @ Values::Scalars(_)) => (values.len(), 8),
            Self::Values(values @ Values::Vectors(_)) => (values.len(), 24),
            Self::Values(values @ Values::Integers(_)) => (values.len(), 4),
            Self::Values(values @ Values::Bytes(_)) => (values.len(), 1),
            Self::Connectivity(triangles) => (triangles.len(), 12),
            Self::Offsets(triangles) => (*triangles, 4),
        };
        items as u64 * size
    }

    fn encode(&self, out: &mut dyn Write) -> io::Result<()> {
        match self {
            Self::Scalar(value) => out.write_all(&value.to_le_bytes()),
            Self::Values(Values::Scalars(values)) => values
                .iter()
                .try_for_each(|value| out.write_all(&value.to_le_bytes())),
            Self::Values(Values::Vectors(values)) => values
                .iter()
                .flat_map(|value| value.to_array())
                .try_for_each(|value| out.write_all(&value.to_le_bytes())),
            Self::Values(Values::Bytes(values)) => out.write_all(values),
            Self::Values(Values::Integers(values)) => values
                .iter()
                .try_for_each(|value| out.write_all(&value.to_le_bytes())),
            // Below i32::MAX (checked before), u32 and i32 have the same bytes.
            Self::Connectivity(triangles) => triangles
                .iter()
                .flatten()
                .try_for_each(|index| out.write_all(&index.to_le_bytes())),
            Self::Offsets(triangles) => (1..=*triangles as u64)
                .try_for_each(|number| out.write_all(&(3 * number).to_le_bytes()[..4])),
        }
    }
}

/// Makes text fit for an XML attribute.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            letter if letter.is_control() => escaped.push(' '),
            letter => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;

    use super::*;

    /// Reads a file back without using any of the code above: array name → (type, components,
    /// bytes). Type, components and bytes of each array, by name.
    type Arrays = BTreeMap<String, (String, usize, Vec<u8>)>;

    fn decode(file: &[u8]) -> (String, Arrays) {
        let mark = b"<AppendedData encoding=\"raw\">\n_";
        let start = file
            .windows(mark.len())
            .position(|window| window == mark)
            .unwrap();
        let xml = String::from_utf8(file[..start].to_vec()).unwrap();
        let appended = &file[start + mark.len()..];
        let mut arrays = BTreeMap::new();
        let mut end = 0;
        for element in xml
            .split('<')
            .filter(|element| element.starts_with("DataArray "))
        {
            let attribute = |name: &str| {
                let (_, rest) = element.split_once(&format!(" {name}=\""))?;
                Some(rest.split_once('"')?.0.to_owned())
            };
            assert_eq!(attribute("format").as_deref(), Some("appended"));
            let offset: usize = attribute("offset").unwrap().parse().unwrap();
            assert_eq!(offset, end, "blocks have gaps or overlap");
            let (length, rest) = appended[offset..].split_first_chunk::<8>().unwrap();
            let length = usize::try_from(u64::from_le_bytes(*length)).unwrap();
            end = offset + 8 + length;
            let components = attribute("NumberOfComponents").map_or(1, |n| n.parse().unwrap());
            arrays.insert(
                attribute("Name").unwrap(),
                (
                    attribute("type").unwrap(),
                    components,
                    rest[..length].to_vec(),
                ),
            );
        }
        assert_eq!(&appended[end..], b"\n</AppendedData>\n</VTKFile>\n");
        (xml, arrays)
    }

    fn reals(bytes: &[u8]) -> Vec<f64> {
        bytes
            .as_chunks::<8>()
            .0
            .iter()
            .map(|chunk| f64::from_le_bytes(*chunk))
            .collect()
    }

    fn whole(bytes: &[u8]) -> Vec<i32> {
        bytes
            .as_chunks::<4>()
            .0
            .iter()
            .map(|chunk| i32::from_le_bytes(*chunk))
            .collect()
    }

    const POINTS: [DVec3; 4] = [
        DVec3::ZERO,
        DVec3::new(1.0, -0.0, 1e-300),
        DVec3::new(0.1, 1.0, 0.0),
        DVec3::new(1.0, 1.0, 0.25),
    ];
    const TRIANGLES: [[u32; 3]; 2] = [[0, 1, 2], [2, 1, 3]];

    fn square<'a>() -> PolyData<'a> {
        PolyData {
            points: &POINTS,
            triangles: &TRIANGLES,
            point_arrays: vec![DataArray {
                name: "velocity",
                values: Values::Vectors(&POINTS),
            }],
            cell_arrays: vec![
                DataArray {
                    name: "owner",
                    values: Values::Integers(&[3, 0]),
                },
                DataArray {
                    name: "a<\"&\">",
                    values: Values::Scalars(&[0.5, -7.25]),
                },
            ],
            time: Some(0.125),
        }
    }

    #[test]
    fn arrays_read_back_bit_for_bit() {
        let root = tempfile::tempdir().unwrap();
        let run = RunDirectory::create(root.path()).unwrap();
        write_vtp(&run, "frames/a.vtp", &square()).unwrap();
        let (xml, arrays) = decode(&fs::read(run.file("frames/a.vtp")).unwrap());

        assert!(xml.contains("byte_order=\"LittleEndian\" header_type=\"UInt64\""));
        assert!(xml.contains("NumberOfPoints=\"4\"") && xml.contains("NumberOfPolys=\"2\""));
        let (kind, components, bytes) = &arrays["Points"];
        assert_eq!((kind.as_str(), *components), ("Float64", 3));
        let expected: Vec<u64> = POINTS
            .iter()
            .flat_map(|point| point.to_array())
            .map(f64::to_bits)
            .collect();
        assert_eq!(
            reals(bytes)
                .into_iter()
                .map(f64::to_bits)
                .collect::<Vec<_>>(),
            expected
        );
        assert_eq!(arrays["velocity"], arrays["Points"]);
        assert_eq!(whole(&arrays["connectivity"].2), [0, 1, 2, 2, 1, 3]);
        assert_eq!(whole(&arrays["offsets"].2), [3, 6]);
        assert_eq!(
            (arrays["owner"].0.as_str(), whole(&arrays["owner"].2)),
            ("UInt32", vec![3, 0])
        );
        assert_eq!(reals(&arrays["a&lt;&quot;&amp;&quot;&gt;"].2), [0.5, -7.25]);
        assert_eq!(reals(&arrays["TimeValue"].2), [0.125]);
    }

    #[test]
    fn empty_mesh_can_be_written() {
        let root = tempfile::tempdir().unwrap();
        let run = RunDirectory::create(root.path()).unwrap();
        let empty = PolyData {
            points: &[],
            triangles: &[],
            point_arrays: Vec::new(),
            cell_arrays: Vec::new(),
            time: None,
        };
        write_vtp(&run, "frames/a.vtp", &empty).unwrap();
        let (_, arrays) = decode(&fs::read(run.file("frames/a.vtp")).unwrap());
        assert!(arrays["Points"].2.is_empty() && !arrays.contains_key("TimeValue"));
    }

    #[test]
    fn arrays_that_do_not_fit_together_are_refused_before_anything_is_written() {
        let root = tempfile::tempdir().unwrap();
        let run = RunDirectory::create(root.path()).unwrap();
        let refused = |data: PolyData<'_>, word: &str| {
            let error = write_vtp(&run, "frames/a.vtp", &data).unwrap_err();
            assert!(matches!(error, OutputError::Inconsistent { .. }), "{error}");
            assert!(error.to_string().contains(word), "{error}");
        };
        refused(
            PolyData {
                triangles: &[[0, 1, 4]],
                cell_arrays: vec![],
                ..square()
            },
            "vertex 4",
        );
        let short = DataArray {
            name: "owner",
            values: Values::Integers(&[1]),
        };
        refused(
            PolyData {
                cell_arrays: vec![short],
                ..square()
            },
            "`owner` has 1",
        );
        refused(
            PolyData {
                point_arrays: vec![short],
                ..square()
            },
            "4 vertices",
        );
        let twice = DataArray {
            name: "owner",
            values: Values::Integers(&[1, 2]),
        };
        refused(
            PolyData {
                cell_arrays: vec![twice; 2],
                ..square()
            },
            "two arrays",
        );
        assert!(!run.file("frames").exists());
    }
}
