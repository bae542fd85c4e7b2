//! The file of recorded states.
//!
//! | bytes | what |
//! |---|---|
//! | 8 | `WEFTWAYS` |
//! | 4 | version of this layout: 2; layout 1 has no kept vertices |
//! | 4 | length h of the header |
//! | h | the header, JSON: pieces, each with `name`, `is_body`, `vertices` (`start` and `end`) |
//! | 8 | number m of triangles |
//! | 12 m | their corners |
//!
//! For each state follow
//!
//! | bytes | what |
//! |---|---|
//! | 8 | simulated time in s |
//! | 4 | number k of squeezed vertices |
//! | 8 k | each of them, and the number of the piece that it may cross |
//! | 4 | number j of kept vertices |
//! | 8 j | each of them, and the number of its group |
//! | 24 n | positions in m, three numbers of 64 bits for each vertex |
//!
//! All numbers are little-endian. The file ends after a state.

use std::io::{self, Read, Write};

use thiserror::Error;

use crate::judging::State;
use crate::surface::{Piece, Surface, SurfaceError};

const MAGIC: [u8; 8] = *b"WEFTWAYS";
const VERSION: u32 = 2;
/// The layout without kept vertices.
const WITHOUT_KEPT: u32 = 1;
/// The longest header that is read.
const LONGEST_HEADER: u32 = 16 << 20;

/// Writes states.
#[derive(Debug)]
pub struct Writer<W>(W);

/// Reads states.
#[derive(Debug)]
pub struct Reader<R> {
    from: R,
    vertices: usize,
    version: u32,
}

/// A reason for which a record cannot be read.
#[derive(Debug, Error)]
pub enum RecordError {
    /// The system could not read.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It is another kind of file.
    #[error("it is no record of states")]
    NotOne,
    /// It is of another version.
    #[error("it is a record of layout {0}, where this program knows {VERSION}")]
    Version(u32),
    /// It ends within something.
    #[error("it is cut short")]
    Short,
    /// The header is damaged.
    #[error("its header is damaged: {0}")]
    Header(String),
    /// The triangles are.
    #[error(transparent)]
    Surface(#[from] SurfaceError),
}

impl<W: Write> Writer<W> {
    /// Begins a record of such triangles.
    ///
    /// # Errors
    /// Writing failed.
    pub fn new(mut to: W, surface: &Surface) -> io::Result<Self> {
        let header = serde_json::to_vec(surface.pieces())?;
        to.write_all(&MAGIC)?;
        to.write_all(&VERSION.to_le_bytes())?;
        let length = u32::try_from(header.len()).map_err(io::Error::other)?;
        to.write_all(&length.to_le_bytes())?;
        to.write_all(&header)?;
        to.write_all(&(surface.triangles().len() as u64).to_le_bytes())?;
        for corner in surface.triangles().iter().flatten() {
            to.write_all(&corner.to_le_bytes())?;
        }
        Ok(Self(to))
    }

    /// Appends a state.
    ///
    /// # Errors
    /// Writing failed.
    pub fn write(&mut self, state: &State) -> io::Result<()> {
        self.0.write_all(&state.time.to_le_bytes())?;
        for marked in [&state.squeezed, &state.kept] {
            let count = u32::try_from(marked.len()).map_err(io::Error::other)?;
            self.0.write_all(&count.to_le_bytes())?;
            for (vertex, of) in marked {
                self.0.write_all(&vertex.to_le_bytes())?;
                self.0.write_all(&of.to_le_bytes())?;
            }
        }
        for number in state.positions.iter().flatten() {
            self.0.write_all(&number.to_le_bytes())?;
        }
        Ok(())
    }

    /// Ends the record, and gives back what it was written to.
    ///
    /// # Errors
    /// Writing failed.
    pub fn finish(mut self) -> io::Result<W> {
        self.0.flush()?;
        Ok(self.0)
    }
}

impl<R: Read> Reader<R> {
    /// Begins to read a record: gives its triangles.
    ///
    /// # Errors
    /// [`RecordError`].
    pub fn new(mut from: R) -> Result<(Self, Surface), RecordError> {
        let magic: [u8; 8] = read(&mut from).map_err(|error| match error {
            RecordError::Short => RecordError::NotOne,
            other => other,
        })?;
        if magic != MAGIC {
            return Err(RecordError::NotOne);
        }
        let version = u32::from_le_bytes(read(&mut from)?);
        if ![WITHOUT_KEPT, VERSION].contains(&version) {
            return Err(RecordError::Version(version));
        }
        let length = u32::from_le_bytes(read(&mut from)?);
        if length > LONGEST_HEADER {
            return Err(RecordError::Header(format!("{length} bytes are too many")));
        }
        let header = read_many(&mut from, u64::from(length))?;
        let pieces: Vec<Piece> = serde_json::from_slice(&header)
            .map_err(|error| RecordError::Header(error.to_string()))?;
        let count = u64::from_le_bytes(read(&mut from)?);
        let bytes = count.checked_mul(12).ok_or(RecordError::Short)?;
        let bytes = read_many(&mut from, bytes)?;
        let (numbers, _) = bytes.as_chunks();
        let numbers: Vec<u32> = numbers.iter().map(|b| u32::from_le_bytes(*b)).collect();
        let surface = Surface::new(pieces, numbers.as_chunks().0.to_vec())?;
        let vertices = surface.vertices();
        let reader = Self {
            from,
            vertices,
            version,
        };
        Ok((reader, surface))
    }

    /// The next state; `None` at the end.
    ///
    /// # Errors
    /// [`RecordError`].
    pub fn next_state(&mut self) -> Result<Option<State>, RecordError> {
        let mut time = [0; 8];
        let first = loop {
            match self.from.read(&mut time) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read?,
            }
        };
        if first == 0 {
            return Ok(None);
        }
        fill(&mut self.from, &mut time[first..])?;
        let squeezed = self.marked()?;
        let kept = match self.version {
            WITHOUT_KEPT => Vec::new(),
            _ => self.marked()?,
        };
        let bytes = read_many(&mut self.from, 24 * self.vertices as u64)?;
        let (numbers, _) = bytes.as_chunks();
        let numbers: Vec<f64> = numbers.iter().map(|b| f64::from_le_bytes(*b)).collect();
        Ok(Some(State {
            time: f64::from_le_bytes(time),
            positions: numbers.as_chunks().0.to_vec(),
            squeezed,
            kept,
        }))
    }

    /// Vertices with a number each, after how many there are.
    fn marked(&mut self) -> Result<Vec<(u32, u32)>, RecordError> {
        let count = u32::from_le_bytes(read(&mut self.from)?);
        let bytes = read_many(&mut self.from, 8 * u64::from(count))?;
        let (numbers, _) = bytes.as_chunks();
        let numbers: Vec<u32> = numbers.iter().map(|b| u32::from_le_bytes(*b)).collect();
        let pairs = numbers.as_chunks().0.iter();
        Ok(pairs.map(|&[vertex, of]| (vertex, of)).collect())
    }
}

fn read<const N: usize>(from: &mut impl Read) -> Result<[u8; N], RecordError> {
    let mut bytes = [0; N];
    fill(from, &mut bytes)?;
    Ok(bytes)
}

fn fill(from: &mut impl Read, bytes: &mut [u8]) -> Result<(), RecordError> {
    from.read_exact(bytes).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => RecordError::Short,
        _ => RecordError::Io(error),
    })
}

/// Reads this many bytes, and takes no more memory than there are.
fn read_many(from: &mut impl Read, count: u64) -> Result<Vec<u8>, RecordError> {
    let mut bytes = Vec::new();
    from.take(count).read_to_end(&mut bytes)?;
    if (bytes.len() as u64) < count {
        return Err(RecordError::Short);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> (Surface, [State; 2], Vec<u8>) {
        let piece = |name: &str, is_body, vertices| Piece {
            name: name.to_owned(),
            is_body,
            vertices,
            passes_itself: false,
            sewn: Vec::new(),
        };
        let pieces = vec![piece("cloth", false, 0..3), piece("body", true, 3..6)];
        let surface = Surface::new(pieces, vec![[0, 1, 2], [3, 4, 5]]).unwrap();
        let state = |time: f64, squeezed: &[(u32, u32)]| State {
            time,
            positions: (0..6).map(|v| [f64::from(v), time, -0.1]).collect(),
            squeezed: squeezed.to_vec(),
            kept: vec![(0, 3), (1, 2)],
        };
        let states = [state(0.0, &[]), state(0.1, &[(2, 1)])];
        let mut writer = Writer::new(Vec::new(), &surface).unwrap();
        states.iter().for_each(|state| writer.write(state).unwrap());
        let bytes = writer.finish().unwrap();
        (surface, states, bytes)
    }

    #[test]
    fn records_are_read_as_they_were_written() {
        let (surface, states, bytes) = record();
        let (mut reader, read) = Reader::new(&bytes[..]).unwrap();
        assert_eq!(read, surface);
        for state in states {
            assert_eq!(reader.next_state().unwrap(), Some(state));
        }
        assert_eq!(reader.next_state().unwrap(), None);
    }

    #[test]
    fn records_without_kept_vertices_are_read() {
        let (surface, [mut first, _], bytes) = record();
        first.kept.clear();
        let mut writer = Writer::new(Vec::new(), &surface).unwrap();
        writer.write(&first).unwrap();
        let mut old = writer.finish().unwrap();
        old[8] = 1;
        // Behind the time and the count of squeezed vertices there is no other count.
        let state = old.len() - 8 - 4 - 4 - 24 * first.positions.len();
        old.drain(state + 12..state + 16);
        assert!(old.len() < bytes.len());
        let (mut reader, _) = Reader::new(&old[..]).unwrap();
        assert_eq!(reader.next_state().unwrap(), Some(first));
        assert_eq!(reader.next_state().unwrap(), None);
    }

    /// A record that is cut anywhere but between states is refused, and nothing panics.
    #[test]
    fn damaged_records_are_refused() {
        let (_, _, bytes) = record();
        let read = |bytes: &[u8]| -> Result<usize, RecordError> {
            let (mut reader, _) = Reader::new(bytes)?;
            let mut states = 0;
            while reader.next_state()?.is_some() {
                states += 1;
            }
            Ok(states)
        };
        let whole = (0..bytes.len())
            .filter(|&cut| read(&bytes[..cut]).is_ok())
            .count();
        assert_eq!(whole, 2, "cut before the first state, and before the last");
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x81;
            drop(read(&damaged));
        }
        assert!(matches!(
            read(b"WEFTCKPT????????"),
            Err(RecordError::NotOne)
        ));
        let mut newer = bytes;
        newer[8] = 3;
        assert!(matches!(read(&newer), Err(RecordError::Version(3))));
    }
}
