//! Reads back the time, the vertices, triangles and their integers of a frame that
//! [`write_vtp`](super::write_vtp) wrote: what comparing, auditing and reporting runs need. A frame
//! in pieces is read as one.
//!
//! Not here: other arrays, and files of other programs.

use std::path::Path;

use glam::DVec3;
use weft_io::read_regular;

use super::OutputError;
use super::pieces_read::{integers_of_triangles, is_in_pieces, read_pieces};
use crate::mesh::TriMesh;

/// The text before the first appended block.
pub(super) const MARK: &[u8] = b"<AppendedData encoding=\"raw\">\n_";

/// How an array begins.
pub(super) const ARRAY: &str = "<DataArray ";

/// The positions of a frame's vertices in m, in the order of the mesh.
///
/// # Errors
/// [`OutputError::Read`]; [`OutputError::Malformed`] if it is no frame of ours, or not all of it.
pub fn read_points(path: &Path) -> Result<Vec<DVec3>, OutputError> {
    if is_in_pieces(path) {
        return Ok(read_pieces(path)?.mesh.positions);
    }
    read(path, points)
}

/// The vertices and triangles of a frame.
///
/// # Errors
/// [`OutputError::Read`]; [`OutputError::Malformed`] if it is no frame of ours, or not all of it.
pub fn read_triangles(path: &Path) -> Result<TriMesh, OutputError> {
    if is_in_pieces(path) {
        return Ok(read_pieces(path)?.mesh);
    }
    read(path, |file| {
        let positions = points(file)?;
        let triangles = triangles(file)?;
        let exists = |v: &u32| (*v as usize) < positions.len();
        let all = triangles.iter().flatten().all(exists);
        all.then_some(TriMesh {
            positions,
            triangles,
        })
    })
}

/// The time of a frame in s.
///
/// # Errors
/// [`OutputError::Read`]; [`OutputError::Malformed`] if it is no frame of ours with a time, or not
/// all of it.
pub fn read_time(path: &Path) -> Result<f64, OutputError> {
    if is_in_pieces(path) {
        return read_pieces(path)?.time.ok_or_else(|| malformed(path));
    }
    read(path, |file| {
        let (bytes, _) = block(file, "<FieldData>", ARRAY, "NumberOfPoints")?;
        Some(f64::from_le_bytes(bytes.try_into().ok()?))
    })
}

/// The integers that a frame has for each triangle under a name, such as `patch` and `owner`.
///
/// # Errors
/// [`OutputError::Read`]; [`OutputError::Malformed`] if it is no frame of ours with such integers,
/// or not all of it.
pub fn read_integers(path: &Path, name: &str) -> Result<Vec<u32>, OutputError> {
    if is_in_pieces(path) {
        return integers_of_triangles(path, name);
    }
    let of = format!("<DataArray type=\"UInt32\" Name=\"{name}\"");
    read(path, |file| {
        let (bytes, count) = block(file, "<CellData>", &of, "NumberOfPolys")?;
        let (integers, left) = bytes.as_chunks::<4>();
        let integers = integers
            .iter()
            .map(|&b| u32::from_le_bytes(b))
            .collect::<Vec<_>>();
        (integers.len() == count && left.is_empty()).then_some(integers)
    })
}

fn read<T>(path: &Path, parse: impl FnOnce(&[u8]) -> Option<T>) -> Result<T, OutputError> {
    let file = read_regular(path, u64::MAX).map_err(OutputError::read(path))?;
    parse(&file).ok_or_else(|| malformed(path))
}

fn malformed(path: &Path) -> OutputError {
    OutputError::Malformed {
        path: path.to_owned(),
        what: "it is no frame that weft wrote, or not all of it".to_owned(),
    }
}

fn points(file: &[u8]) -> Option<Vec<DVec3>> {
    let (bytes, count) = block(file, "<Points>", ARRAY, "NumberOfPoints")?;
    let (vectors, left) = bytes.as_chunks::<24>();
    let real = |bytes: &[u8]| bytes.first_chunk().map_or(0.0, |&b| f64::from_le_bytes(b));
    let points = vectors
        .iter()
        .map(|v| DVec3::new(real(&v[..8]), real(&v[8..16]), real(&v[16..])));
    (vectors.len() == count && left.is_empty()).then(|| points.collect())
}

fn triangles(file: &[u8]) -> Option<Vec<[u32; 3]>> {
    let (bytes, count) = block(file, "<Polys>", ARRAY, "NumberOfPolys")?;
    let (triangles, left) = bytes.as_chunks::<12>();
    let whole = |bytes: &[u8]| bytes.first_chunk().map_or(0, |&b| u32::from_le_bytes(b));
    let triangles = triangles
        .iter()
        .map(|t| [whole(&t[..4]), whole(&t[4..8]), whole(&t[8..])]);
    (triangles.len() == count && left.is_empty()).then(|| triangles.collect())
}

/// The block of the first array in an element that begins so, and a count that the piece has.
fn block<'a>(file: &'a [u8], of: &str, array: &str, count: &str) -> Option<(&'a [u8], usize)> {
    let start = file.windows(MARK.len()).position(|w| w == MARK)?;
    let xml = std::str::from_utf8(&file[..start]).ok()?;
    let count: usize = attribute(element(xml, "<Piece ")?, count)?;
    let (_, inside) = xml.split_once(of)?;
    let offset: usize = attribute(element(inside, array)?, "offset")?;
    let block = file[start + MARK.len()..].get(offset..)?;
    let (length, rest) = block.split_first_chunk::<8>()?;
    let bytes = rest.get(..usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
    Some((bytes, count))
}

/// The first element that begins so, up to its end.
pub(super) fn element<'a>(xml: &'a str, begin: &str) -> Option<&'a str> {
    let (_, rest) = xml.split_once(begin)?;
    Some(rest.split_once('>')?.0)
}

pub(super) fn attribute<T: std::str::FromStr>(element: &str, name: &str) -> Option<T> {
    let (_, rest) = element.split_once(&format!("{name}=\""))?;
    rest.split_once('"')?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::{DataArray, PolyData, RunDirectory, Values, write_vtp};
    use super::*;

    #[test]
    fn a_frame_reads_back_to_the_bit_and_a_part_of_it_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let run = RunDirectory::create(root.path()).unwrap();
        let points = [
            DVec3::new(0.1, -0.0, 1e-300),
            DVec3::X,
            DVec3::new(f64::MAX, 2.5, 0.3),
        ];
        let data = PolyData {
            points: &points,
            triangles: &[[0, 1, 2]],
            point_arrays: vec![DataArray {
                name: "velocity",
                values: Values::Vectors(&[DVec3::Y; 3]),
            }],
            cell_arrays: vec![
                DataArray {
                    name: "owner",
                    values: Values::Integers(&[3]),
                },
                DataArray {
                    name: "patch",
                    values: Values::Integers(&[7]),
                },
            ],
            time: Some(0.5),
        };
        write_vtp(&run, "frames/a.vtp", &data).unwrap();
        let path = run.file("frames/a.vtp");
        let bits = |points: &[DVec3]| {
            points
                .iter()
                .map(|p| p.to_array().map(f64::to_bits))
                .collect::<Vec<_>>()
        };
        assert_eq!(bits(&read_points(&path).unwrap()), bits(&points));
        assert_eq!(read_integers(&path, "patch").unwrap(), [7]);
        assert_eq!(read_integers(&path, "owner").unwrap(), [3]);
        assert!(read_integers(&path, "velocity").is_err());
        assert_eq!(read_time(&path).unwrap(), 0.5);
        let whole = fs::read(&path).unwrap();
        for length in [0, 100, whole.len() / 2, whole.len() - 150] {
            fs::write(&path, &whole[..length]).unwrap();
            let error = read_points(&path).unwrap_err();
            assert!(matches!(error, OutputError::Malformed { .. }), "{error}");
        }
    }
}
