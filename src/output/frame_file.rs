//! A frame that [`write_vtp`](super::write_vtp) wrote, read in parts: only the header is in memory,
//! and of an array only the items that are asked for. A frame in pieces is in memory as a whole,
//! for its vertices are in the order of patches on the disk.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};

use glam::DVec3;
use weft_io::open_regular;

use super::pieces_read::{is_in_pieces, read_pieces};
use super::vtp_read::{ARRAY, MARK, attribute, element};
use super::{ArrayValues, FrameArrays, OutputError};

/// An open frame.
#[derive(Debug)]
pub struct FrameFile {
    path: PathBuf,
    file: File,
    xml: String,
    /// The beginning of the appended blocks.
    blocks: u64,
    points: usize,
    triangles: usize,
    /// The frame, if it is in pieces.
    whole: Option<Box<FrameArrays>>,
}

impl FrameFile {
    /// Opens a frame and reads its header.
    ///
    /// # Errors
    /// [`OutputError::Read`]; [`OutputError::Malformed`] if it is no frame of ours.
    pub fn open(path: &Path) -> Result<Self, OutputError> {
        let file = open_regular(path).map_err(OutputError::read(path))?;
        if is_in_pieces(path) {
            let whole = read_pieces(path)?;
            return Ok(Self {
                path: path.to_owned(),
                file,
                xml: String::new(),
                blocks: 0,
                points: whole.mesh.positions.len(),
                triangles: whole.mesh.triangles.len(),
                whole: Some(Box::new(whole)),
            });
        }
        let mut head = Vec::new();
        let mut frame = Self {
            path: path.to_owned(),
            file,
            xml: String::new(),
            blocks: 0,
            points: 0,
            triangles: 0,
            whole: None,
        };
        let mut length = HEAD;
        loop {
            let more = (frame.file.by_ref().take(length)).read_to_end(&mut head);
            let more = more.map_err(OutputError::read(path))?;
            if let Some(at) = head.windows(MARK.len()).position(|w| w == MARK) {
                frame.blocks = (at + MARK.len()) as u64;
                head.truncate(at);
                break;
            }
            if more == 0 || head.len() as u64 > LONGEST_HEAD {
                return Err(frame.malformed());
            }
            length = head.len() as u64;
        }
        frame.xml = String::from_utf8(head).map_err(|_| frame.malformed())?;
        let piece = element(&frame.xml, "<Piece ");
        let count = |name: &str| piece.and_then(|piece| attribute(piece, name));
        let (Some(points), Some(triangles)) = (count("NumberOfPoints"), count("NumberOfPolys"))
        else {
            return Err(frame.malformed());
        };
        (frame.points, frame.triangles) = (points, triangles);
        Ok(frame)
    }

    /// The number of its vertices.
    #[must_use]
    pub fn points(&self) -> usize {
        self.points
    }

    /// The positions of some vertices in m.
    ///
    /// # Errors
    /// [`OutputError::Read`]; [`OutputError::Malformed`] if they are not there.
    pub fn positions(&mut self, of: Range<usize>) -> Result<Vec<DVec3>, OutputError> {
        if let Some(whole) = &self.whole {
            let positions = whole.mesh.positions.get(of);
            return positions.map(<[_]>::to_vec).ok_or_else(|| self.malformed());
        }
        self.vectors("<Points>", ARRAY, of)
    }

    /// The velocities of some vertices in m/s.
    ///
    /// # Errors
    /// As [`Self::positions`].
    pub fn velocities(&mut self, of: Range<usize>) -> Result<Vec<DVec3>, OutputError> {
        const VELOCITY: &str = "<DataArray type=\"Float64\" Name=\"velocity\"";
        if let Some(whole) = &self.whole {
            let named = whole
                .of_vertices
                .iter()
                .find(|array| array.name == "velocity");
            let velocities = match named.map(|array| &array.values) {
                Some(ArrayValues::Vectors(velocities)) => velocities.get(of),
                _ => None,
            };
            return velocities
                .map(<[_]>::to_vec)
                .ok_or_else(|| self.malformed());
        }
        self.vectors("<PointData>", VELOCITY, of)
    }

    /// The triangles.
    ///
    /// # Errors
    /// As [`Self::positions`].
    pub fn triangles(&mut self) -> Result<Vec<[u32; 3]>, OutputError> {
        if let Some(whole) = &self.whole {
            return Ok(whole.mesh.triangles.clone());
        }
        let (at, length) = self.block("<Polys>", ARRAY)?;
        let mut triangles = vec![[0_u32; 3]; self.triangles];
        if length != 12 * self.triangles as u64 {
            return Err(self.malformed());
        }
        self.read_at(at, bytemuck::cast_slice_mut(&mut triangles))?;
        let numbers = triangles.as_flattened_mut();
        numbers.iter_mut().for_each(|v| *v = u32::from_le(*v));
        if numbers.iter().any(|&v| v as usize >= self.points) {
            return Err(self.malformed());
        }
        Ok(triangles)
    }

    fn vectors(
        &mut self,
        of: &str,
        array: &str,
        range: Range<usize>,
    ) -> Result<Vec<DVec3>, OutputError> {
        const BYTES: u64 = 24;
        let (at, length) = self.block(of, array)?;
        if length != BYTES * self.points as u64 || range.end > self.points {
            return Err(self.malformed());
        }
        let mut vectors = vec![DVec3::ZERO; range.len()];
        let at = at + BYTES * range.start as u64;
        self.read_at(at, bytemuck::cast_slice_mut(&mut vectors))?;
        if cfg!(target_endian = "big") {
            let numbers: &mut [u64] = bytemuck::cast_slice_mut(&mut vectors);
            numbers.iter_mut().for_each(|x| *x = u64::from_le(*x));
        }
        Ok(vectors)
    }

    /// The place of the numbers of an array, and how many bytes they have.
    fn block(&mut self, of: &str, array: &str) -> Result<(u64, u64), OutputError> {
        let inside = self.xml.split_once(of).map(|(_, inside)| inside);
        let array = inside.and_then(|inside| element(inside, array));
        let offset: Option<u64> = array.and_then(|array| attribute(array, "offset"));
        let at = offset.and_then(|offset| self.blocks.checked_add(offset));
        let at = at.ok_or_else(|| self.malformed())?;
        let mut length = [0; 8];
        self.read_at(at, &mut length)?;
        Ok((at + 8, u64::from_le_bytes(length)))
    }

    fn read_at(&mut self, at: u64, bytes: &mut [u8]) -> Result<(), OutputError> {
        let read = self.file.seek(SeekFrom::Start(at));
        match read.and_then(|_| self.file.read_exact(bytes)) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(self.malformed()),
            read => read.map_err(OutputError::read(&self.path)),
        }
    }

    fn malformed(&self) -> OutputError {
        OutputError::Malformed {
            path: self.path.clone(),
            what: "it is no frame that weft wrote, or not all of it".to_owned(),
        }
    }
}

/// Bytes that are read first; headers are shorter.
const HEAD: u64 = 8192;

/// The longest header that is looked for.
const LONGEST_HEAD: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::super::{DataArray, PolyData, RunDirectory, Values, write_vtp};
    use super::*;

    #[test]
    fn parts_of_a_frame_are_as_they_were_written_and_a_cut_file_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let run = RunDirectory::create(root.path()).unwrap();
        let points: Vec<DVec3> = (0..6)
            .map(|k| DVec3::new(0.1, f64::from(k), -1e-9))
            .collect();
        let velocities: Vec<DVec3> = points.iter().map(|&p| 2.0 * p).collect();
        let data = PolyData {
            points: &points,
            triangles: &[[0, 1, 2], [3, 4, 5]],
            point_arrays: vec![
                DataArray {
                    name: "speed",
                    values: Values::Scalars(&[0.0; 6]),
                },
                DataArray {
                    name: "velocity",
                    values: Values::Vectors(&velocities),
                },
            ],
            cell_arrays: Vec::new(),
            time: Some(0.5),
        };
        write_vtp(&run, "frames/a.vtp", &data).unwrap();
        let path = run.file("frames/a.vtp");
        let mut frame = FrameFile::open(&path).unwrap();
        assert_eq!(frame.points(), 6);
        assert_eq!(frame.positions(0..6).unwrap(), points);
        assert_eq!(frame.positions(2..5).unwrap(), points[2..5]);
        assert_eq!(frame.velocities(5..6).unwrap(), velocities[5..]);
        assert_eq!(frame.triangles().unwrap(), [[0, 1, 2], [3, 4, 5]]);
        assert!(frame.positions(3..7).is_err());
        let whole = std::fs::read(&path).unwrap();
        for length in [0, 300, whole.len() / 2, whole.len() - 150] {
            std::fs::write(&path, &whole[..length]).unwrap();
            let read = FrameFile::open(&path).and_then(|mut frame| {
                let read = frame.positions(0..6);
                read.and_then(|_| frame.triangles())
            });
            assert!(
                matches!(read, Err(OutputError::Malformed { .. })),
                "{length}"
            );
        }
    }
}
