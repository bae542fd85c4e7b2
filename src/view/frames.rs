//! The frames of a run as the page wants them: lists of them, and each as one block of numbers of
//! 32 bits.
//!
//! A block begins with the length of a header, four bytes, and the header, JSON that spaces fill
//! up to a multiple of four bytes. Then come, for each mesh of the header, its vertices, its
//! triangles and its arrays, little-endian. Whole numbers of arrays are sent as `f32`, in which
//! 2²⁴ of them are exact.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use glam::DVec3;
use serde::Serialize;
use serde_json::Value;
use weft_io::Show as _;
use weftwork::output::{
    ArrayValues, Collection, FrameArrays, FrameSeries, NamedArray, OutputError, RunRecord,
    read_frame,
};

/// Whole numbers up to here are sent as they are.
const EXACT: i64 = 1 << 24;

/// A frame of the list.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Listed {
    pub(super) time: f64,
    /// The cloth first.
    files: Vec<String>,
}

/// A run as far as it is known.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Known {
    pub(super) frames: Vec<Listed>,
    name: String,
    bodies: Vec<String>,
    exit: Option<u8>,
}

impl Known {
    /// Looks at the directory of a run, as it is now.
    ///
    /// # Errors
    /// It holds no run, or the list of its frames is damaged, or names what is not below it.
    pub(super) fn of(run: &Path) -> Result<Self, OutputError> {
        let record = RunRecord::read(run)?;
        let list = run.join(FrameSeries::COLLECTION);
        let collection = Collection::read(&list)?.unwrap_or_default();
        let mut frames: BTreeMap<u64, Listed> = BTreeMap::new();
        for (time, part, file) in collection.entries() {
            let is_below = |part| matches!(part, Component::Normal(_));
            if !Path::new(file).components().all(is_below) {
                return Err(OutputError::Malformed {
                    path: list,
                    what: format!("it names a file outside of the run: {}", file.shown()),
                });
            }
            // Times of frames are not negative, so that their bits ascend with them.
            let frame = frames.entry(time.to_bits()).or_insert_with(|| Listed {
                time,
                files: Vec::new(),
            });
            if part == 0 {
                frame.files.insert(0, file.to_owned());
            } else {
                frame.files.push(file.to_owned());
            }
        }
        let bodies = record.bodies.iter().flatten();
        Ok(Self {
            frames: frames.into_values().collect(),
            name: record.scene.name,
            bodies: bodies.map(|body| body.name.clone()).collect(),
            exit: record.exit,
        })
    }

    /// The message to the page: names, times, and whether more is to come.
    pub(super) fn told(&self) -> Value {
        let times: Vec<f64> = self.frames.iter().map(|frame| frame.time).collect();
        serde_json::json!({
            "name": self.name,
            "bodies": self.bodies,
            "exit": self.exit,
            "times": times,
        })
    }

    /// Reads a frame of the list.
    ///
    /// # Errors
    /// One of its files cannot be read, or is a link that leads out of the run.
    pub(super) fn block(&self, run: &Path, number: usize) -> Option<Result<Vec<u8>, OutputError>> {
        let frame = self.frames.get(number)?;
        let files = frame.files.iter().map(|file| inside(run, file));
        let meshes: Result<Vec<_>, _> = files.map(|file| read_frame(&file?)).collect();
        Some(meshes.map(|meshes| block(frame.time, &meshes)))
    }
}

/// The path of a file of a run, whose directory may be a link, but no link in it leads out of it.
fn inside(run: &Path, file: &str) -> Result<PathBuf, OutputError> {
    let path = run.join(file);
    let unreadable = |source| OutputError::Read {
        path: path.clone(),
        source,
    };
    let place = path.canonicalize().map_err(unreadable)?;
    if place.starts_with(run.canonicalize().map_err(unreadable)?) {
        return Ok(path);
    }
    let what = "it is a link to a file outside of the run".to_owned();
    Err(OutputError::Malformed { path, what })
}

/// The header of a block.
#[derive(Serialize)]
struct Header {
    time: f64,
    meshes: Vec<Mesh>,
}

#[derive(Serialize)]
struct Mesh {
    vertices: usize,
    triangles: usize,
    /// A number that is another if the triangles are others.
    topology: u32,
    arrays: Vec<Array>,
}

#[derive(Serialize)]
struct Array {
    name: String,
    of_triangles: bool,
    whole: bool,
}

fn block(time: f64, meshes: &[FrameArrays]) -> Vec<u8> {
    let mut numbers = Vec::new();
    let mut header = Header {
        time,
        meshes: Vec::new(),
    };
    for frame in meshes {
        let corners = frame.mesh.triangles.iter().flatten();
        let vertices = frame.mesh.positions.iter();
        numbers.extend(vertices.flat_map(|v| v.as_vec3().to_array().map(f32::to_le_bytes)));
        numbers.extend(corners.clone().map(|corner| corner.to_le_bytes()));
        // FNV-1a.
        let topology = corners.fold(0x811c_9dc5_u32, |hash, &corner| {
            (hash ^ corner).wrapping_mul(0x0100_0193)
        });
        let mut arrays = Vec::new();
        for (of_triangles, all) in [(false, &frame.of_vertices), (true, &frame.of_triangles)] {
            for NamedArray { name, values } in all {
                let whole = matches!(values, ArrayValues::Integers(_));
                numbers.extend(reals(values).map(f32::to_le_bytes));
                arrays.push(Array {
                    name: if name == "velocity" { "speed" } else { name }.to_owned(),
                    of_triangles,
                    whole,
                });
            }
        }
        header.meshes.push(Mesh {
            vertices: frame.mesh.positions.len(),
            triangles: frame.mesh.triangles.len(),
            topology,
            arrays,
        });
    }
    // Numbers and strings can always be written.
    let mut text = serde_json::to_vec(&header).expect("headers can be written as JSON");
    text.resize(text.len().next_multiple_of(4), b' ');
    let mut block = Vec::with_capacity(4 + text.len() + 4 * numbers.len());
    block.extend((text.len() as u32).to_le_bytes());
    block.extend(text);
    block.extend(numbers.into_iter().flatten());
    block
}

/// The values of an array as numbers that can be shown; of vectors the lengths.
fn reals(values: &ArrayValues) -> Box<dyn Iterator<Item = f32> + '_> {
    match values {
        ArrayValues::Scalars(values) => Box::new(values.iter().map(|&value| value as f32)),
        ArrayValues::Vectors(values) => {
            Box::new(values.iter().map(|value: &DVec3| value.length() as f32))
        }
        ArrayValues::Integers(values) => Box::new(
            values
                .iter()
                .map(|&value| value.clamp(-EXACT, EXACT) as f32),
        ),
    }
}

#[cfg(test)]
mod tests {
    use weftwork::mesh::TriMesh;

    use super::*;

    #[test]
    fn a_block_has_what_its_header_says() {
        let frame = FrameArrays {
            time: Some(0.5),
            mesh: TriMesh {
                positions: vec![DVec3::X, DVec3::Y, DVec3::Z],
                triangles: vec![[0, 1, 2]],
            },
            of_vertices: vec![NamedArray {
                name: "velocity".to_owned(),
                values: ArrayValues::Vectors(vec![DVec3::new(3.0, 4.0, 0.0); 3]),
            }],
            of_triangles: vec![NamedArray {
                name: "owner".to_owned(),
                values: ArrayValues::Integers(vec![7]),
            }],
        };
        let bytes = block(0.5, &[frame.clone(), frame]);
        let (length, rest) = bytes.split_first_chunk::<4>().unwrap();
        let (header, numbers) = rest.split_at(u32::from_le_bytes(*length) as usize);
        let header: Value = serde_json::from_slice(header).unwrap();
        assert_eq!(header["time"], 0.5);
        assert_eq!(header["meshes"][1]["arrays"][0]["name"], "speed");
        assert_eq!(header["meshes"][0]["arrays"][1]["of_triangles"], true);
        assert_eq!(
            header["meshes"][0]["topology"],
            header["meshes"][1]["topology"]
        );
        let (numbers, left) = numbers.as_chunks::<4>();
        assert!(left.is_empty());
        let reals: Vec<f32> = numbers.iter().map(|&b| f32::from_le_bytes(b)).collect();
        assert_eq!(reals.len(), 2 * (9 + 3 + 3 + 1));
        assert_eq!(reals[..3], [1.0, 0.0, 0.0]);
        assert_eq!(u32::from_le_bytes(numbers[11]), 2);
        assert_eq!(reals[12..16], [5.0, 5.0, 5.0, 7.0]);
    }
}
