//! `state.NNNNNN.ckpt`: the state after so many steps, for the run to go on from, on any number of ranks.
//!
//! | bytes | what |
//! |---|---|
//! | 8 | `WEFTCKPT` |
//! | 4 | version of this layout: 3, or 4 with what an integrator looks back at |
//! | 4 | length h of the header |
//! | h | the header, JSON: [`Header`] |
//! | 24 n | positions in m, three numbers of 64 bits per vertex |
//! | 24 n | velocities in m/s, likewise |
//! | 24 n | velocity changes of the last solve in m/s, likewise |
//! | 24 n | velocity changes of the one before, likewise |
//! | n | contact with bodies: 1 held, 2 released, 4 sticking, added up |
//! | 24 n | in layout 4: positions before the last part of a step, in m |
//! | 24 n | in layout 4: velocities then, as the integrator takes them, in m/s |
//! | 32 | SHA-256 of all before |
//!
//! All numbers are little-endian; the n vertices are in the order of the scene's own. A file is complete or
//! absent, and what was damaged later is noticed by its sum.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use glam::DVec3;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use weft_io::open_regular;

use super::{OutputError, RunDirectory};
use crate::step::body_response::VertexState;
use crate::step::{Past, State};

const MAGIC: [u8; 8] = *b"WEFTCKPT";
/// The layout without a past, and the one with it.
const VERSIONS: [u32; 2] = [3, 4];
/// Bytes before the header.
const PREFIX: usize = 16;
/// Bytes of the sum at the end.
const SUM: usize = 32;
/// Longest header that is read; it holds the text of a scene.
const LONGEST_HEADER: u32 = 16 << 20;
/// Bytes per vertex.
const PER_VERTEX: u64 = 4 * 24 + 1;
/// Bytes per vertex of the past.
const PER_PAST: u64 = 2 * 24;
/// Vertices whose numbers are converted at once.
const CHUNK: usize = 4096;

/// A state with what is needed to go on from it.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// What it is a state of.
    pub header: Header,
    /// The state.
    pub state: State,
}

/// What a checkpoint says of itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// Version of the program that wrote it.
    pub program: String,
    /// Steps taken.
    pub step: u64,
    /// Simulated time in s.
    pub time_s: f64,
    /// Cloth vertices.
    pub vertices: u64,
    /// [`Scene::echo_of_trajectory`](crate::scene::Scene::echo_of_trajectory) of the scene.
    pub scene: String,
    /// [`World::digest`](crate::step::World::digest) of its meshes.
    pub world: String,
    /// Frames written.
    pub frames: u64,
    /// The next frame to write, as a multiple of the time between frames.
    pub next_frame: u64,
    /// Deepest vertex inside a body in any frame so far, in m, if there are bodies.
    pub deepest_m: Option<f64>,
    /// Largest principal strain of any step so far.
    pub strain: f64,
    /// The most by which one was larger than what its cloth bears, of any step so far; earlier programs do not say.
    #[serde(default)]
    pub beyond_limit: Option<f64>,
    /// [`State::stride`].
    #[serde(default)]
    pub stride: [u32; 2],
    /// [`Past::length`] in s; in layout 4 only.
    #[serde(default)]
    pub past_s: Option<f64>,
}

impl Checkpoint {
    /// The file of the checkpoint after so many steps, in the run's directory.
    #[must_use]
    pub fn file(step: u64) -> String {
        format!("state.{step:06}.ckpt")
    }

    /// Writes it into the run's directory, then removes all but the two newest.
    ///
    /// # Errors
    /// [`OutputError::Inconsistent`] if header and state do not fit; [`OutputError::Write`]. Older ones are
    /// only removed when this one is in place.
    pub fn write(&self, run: &RunDirectory) -> Result<PathBuf, OutputError> {
        let path = run.file(&Self::file(self.header.step));
        let inconsistent = |what: String| OutputError::Inconsistent {
            path: path.clone(),
            what,
        };
        let vertices = self.header.vertices;
        let past = self.state.past.as_ref();
        if !(self.state.is_of(vertices as usize)
            && self.state.step == self.header.step
            && self.state.stride == self.header.stride
            && past.map(|past| past.length) == self.header.past_s)
        {
            let what = "the state is not of the header's vertices and step";
            return Err(inconsistent(what.to_owned()));
        }
        let header = serde_json::to_vec(&self.header).map_err(|e| inconsistent(e.to_string()))?;
        let length = u32::try_from(header.len()).ok();
        let Some(length) = length.filter(|&length| length <= LONGEST_HEADER) else {
            return Err(inconsistent("the scene's text is too long".to_owned()));
        };
        run.write(&Self::file(self.header.step), |out| {
            let mut out = Summed::new(out);
            out.write_all(&MAGIC)?;
            out.write_all(&VERSIONS[usize::from(past.is_some())].to_le_bytes())?;
            out.write_all(&length.to_le_bytes())?;
            out.write_all(&header)?;
            for vectors in [
                &self.state.positions,
                &self.state.velocities,
                &self.state.changes[0],
                &self.state.changes[1],
            ] {
                write_vectors(&mut out, vectors)?;
            }
            let flags: Vec<u8> = self.state.contacts.iter().map(to_flags).collect();
            out.write_all(&flags)?;
            if let Some(past) = past {
                write_vectors(&mut out, &past.positions)?;
                write_vectors(&mut out, &past.velocities)?;
            }
            out.finish()
        })?;
        for (_, older) in all(run.path())?.into_iter().rev().skip(2) {
            fs::remove_file(&older).map_err(OutputError::write(&older))?;
        }
        Ok(path)
    }

    /// Reads a checkpoint.
    ///
    /// # Errors
    /// [`OutputError::Read`]; [`OutputError::Malformed`] for a file that is none, that was made by another
    /// version of the layout, or that was damaged.
    pub fn read(path: &Path) -> Result<Self, OutputError> {
        let read = |source| OutputError::Read {
            path: path.to_owned(),
            source,
        };
        let malformed = |what: String| OutputError::Malformed {
            path: path.to_owned(),
            what,
        };
        let mut file = open_regular(path).map_err(read)?;
        let there = file.metadata().map_err(read)?.len();
        let mut prefix = [0; PREFIX];
        if there < PREFIX as u64 {
            return Err(malformed("it is not a checkpoint".to_owned()));
        }
        file.read_exact(&mut prefix).map_err(read)?;
        let number = |at: usize| {
            prefix[at..]
                .first_chunk()
                .map_or(0, |&bytes| u32::from_le_bytes(bytes))
        };
        let (version, length) = (number(8), number(12));
        if prefix[..8] != MAGIC {
            return Err(malformed("it is not a checkpoint".to_owned()));
        }
        let Some(with_past) = VERSIONS.iter().position(|known| *known == version) else {
            let [plain, with_past] = VERSIONS;
            return Err(malformed(format!(
                "it is a checkpoint of layout {version}, and this program reads {plain} and {with_past}"
            )));
        };
        let ends_early = || malformed("it is damaged: its length is wrong".to_owned());
        if length > LONGEST_HEADER || u64::from(length) > there - PREFIX as u64 {
            return Err(ends_early());
        }
        let mut header_bytes = vec![0; length as usize];
        file.read_exact(&mut header_bytes).map_err(read)?;
        let header: Header = serde_json::from_slice(&header_bytes)
            .map_err(|e| malformed(format!("it is damaged: its header: {e}")))?;
        // Nothing is allocated for what the file is too short to hold.
        let past_s = header.past_s;
        if past_s.is_some() != (with_past > 0)
            || past_s.is_some_and(|length| !(length.is_finite() && length > 0.0))
        {
            return Err(malformed(
                "it is damaged: the length of its last part".to_owned(),
            ));
        }
        let per_vertex = PER_VERTEX + with_past as u64 * PER_PAST;
        let promised = header.vertices.checked_mul(per_vertex);
        let whole = promised.and_then(|n| n.checked_add((PREFIX + SUM) as u64 + u64::from(length)));
        if whole != Some(there) {
            return Err(ends_early());
        }
        let mut rest = Vec::with_capacity((there - PREFIX as u64 - u64::from(length)) as usize);
        file.read_to_end(&mut rest).map_err(read)?;
        if rest.len() as u64 != there - PREFIX as u64 - u64::from(length) {
            return Err(ends_early());
        }
        let (body, sum) = rest.split_at(rest.len() - SUM);
        let mut hasher = Sha256::new();
        for bytes in [&prefix[..], &header_bytes, body] {
            hasher.update(bytes);
        }
        if hasher.finalize()[..] != *sum {
            return Err(malformed("it is damaged: its sum is wrong".to_owned()));
        }

        let n = header.vertices as usize;
        let (positions, body) = body.split_at(24 * n);
        let (velocities, body) = body.split_at(24 * n);
        let (changes, body) = body.split_at(24 * n);
        let (changes_before, body) = body.split_at(24 * n);
        let (flags, body) = body.split_at(n);
        let past = past_s.map(|length| {
            let (positions, velocities) = body.split_at(24 * n);
            Past {
                length,
                positions: vectors(positions),
                velocities: vectors(velocities),
            }
        });
        let contacts = flags.iter().map(|&flags| from_flags(flags));
        let contacts: Option<Vec<VertexState>> = contacts.collect();
        let state = State {
            step: header.step,
            positions: vectors(positions),
            velocities: vectors(velocities),
            changes: [changes, changes_before].map(vectors),
            contacts: contacts.ok_or_else(|| malformed("it has unknown contacts".to_owned()))?,
            stride: header.stride,
            past,
        };
        let [last, before] = &state.changes;
        let numbers = [&state.positions, &state.velocities, last, before];
        let past = state.past.iter();
        let past = past.flat_map(|past| [&past.positions, &past.velocities]);
        if !numbers
            .into_iter()
            .chain(past)
            .flatten()
            .all(|vector| vector.is_finite())
        {
            return Err(malformed("a number in it is not finite".to_owned()));
        }
        Ok(Self { header, state })
    }

    /// The newest checkpoint in the directory of a run.
    ///
    /// # Errors
    /// [`OutputError::NoCheckpoint`] if there is none; [`OutputError::Read`].
    pub fn newest(directory: &Path) -> Result<PathBuf, OutputError> {
        let newest = Self::newest_until(directory, u64::MAX)?;
        newest.ok_or_else(|| OutputError::NoCheckpoint {
            path: directory.to_owned(),
        })
    }

    /// The newest checkpoint in a directory that is of this step or an earlier one, if there is any.
    ///
    /// # Errors
    /// [`OutputError::Read`].
    pub fn newest_until(directory: &Path, step: u64) -> Result<Option<PathBuf>, OutputError> {
        let mut all = all(directory)?;
        all.retain(|(of, _)| *of <= step);
        Ok(all.pop().map(|(_, path)| path))
    }

    /// Removes all checkpoints in a directory.
    ///
    /// # Errors
    /// [`OutputError::Read`], [`OutputError::Write`].
    pub fn remove_all(directory: &Path) -> Result<(), OutputError> {
        for (_, path) in all(directory)? {
            fs::remove_file(&path).map_err(OutputError::write(&path))?;
        }
        Ok(())
    }
}

/// The checkpoints of a directory, oldest first.
fn all(directory: &Path) -> Result<Vec<(u64, PathBuf)>, OutputError> {
    let mut found = Vec::new();
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
        entries => entries.map_err(OutputError::read(directory))?,
    };
    for entry in entries {
        let entry = entry.map_err(OutputError::read(directory))?;
        let name = entry.file_name();
        let step = name.to_str().and_then(|name| {
            let digits = name.strip_prefix("state.")?.strip_suffix(".ckpt")?;
            digits.parse().ok()
        });
        found.extend(step.map(|step: u64| (step, entry.path())));
    }
    found.sort_unstable();
    Ok(found)
}

fn to_flags(contact: &VertexState) -> u8 {
    u8::from(contact.held) | u8::from(contact.released) << 1 | u8::from(contact.sticking) << 2
}

fn from_flags(flags: u8) -> Option<VertexState> {
    (flags < 8).then_some(VertexState {
        held: flags & 1 != 0,
        released: flags & 2 != 0,
        sticking: flags & 4 != 0,
    })
}

fn write_vectors(out: &mut impl Write, vectors: &[DVec3]) -> io::Result<()> {
    let mut bytes = Vec::with_capacity(24 * CHUNK.min(vectors.len()));
    for vectors in vectors.chunks(CHUNK) {
        bytes.clear();
        let numbers = vectors.iter().flat_map(DVec3::to_array);
        bytes.extend(numbers.flat_map(f64::to_le_bytes));
        out.write_all(&bytes)?;
    }
    Ok(())
}

fn vectors(bytes: &[u8]) -> Vec<DVec3> {
    let (numbers, _) = bytes.as_chunks::<8>();
    let (triples, _) = numbers.as_chunks::<3>();
    let vector = |triple: &[[u8; 8]; 3]| DVec3::from_array(triple.map(f64::from_le_bytes));
    triples.iter().map(vector).collect()
}

/// Passes bytes on and sums them up.
struct Summed<W> {
    out: W,
    hasher: Sha256,
}

impl<W: Write> Summed<W> {
    fn new(out: W) -> Self {
        Self {
            out,
            hasher: Sha256::new(),
        }
    }

    fn finish(mut self) -> io::Result<()> {
        self.out.write_all(&self.hasher.finalize())
    }
}

impl<W: Write> Write for Summed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn checkpoint(step: u64) -> Checkpoint {
        let vectors = |s: f64| vec![DVec3::new(s, -0.0, 1e-300), DVec3::splat(s / 3.0)];
        let contact = |flags| from_flags(flags).unwrap();
        Checkpoint {
            header: Header {
                program: "0.1.0".to_owned(),
                step,
                time_s: 0.25,
                vertices: 2,
                scene: "gravity = [0, 0, -9.81]\n".to_owned(),
                world: "00ff".to_owned(),
                frames: 3,
                next_frame: 4,
                deepest_m: Some(-1e-4),
                strain: 0.01,
                beyond_limit: Some(0.0),
                stride: [2, 1],
                past_s: None,
            },
            state: State {
                step,
                positions: vectors(1.0),
                velocities: vectors(2.0),
                changes: [vectors(3.0), vectors(3.5)],
                contacts: vec![contact(5), contact(2)],
                stride: [2, 1],
                past: None,
            },
        }
    }

    /// As an integrator that looks back leaves it.
    fn with_past(mut of: Checkpoint) -> Checkpoint {
        of.header.past_s = Some(0.002);
        of.state.past = Some(Past {
            length: 0.002,
            positions: vec![DVec3::new(0.5, -0.0, 7.0), DVec3::ONE],
            velocities: vec![DVec3::splat(1.0 / 3.0), DVec3::NEG_X],
        });
        of
    }

    fn run() -> (tempfile::TempDir, RunDirectory) {
        let root = tempfile::tempdir().unwrap();
        let run = RunDirectory::create(root.path()).unwrap();
        (root, run)
    }

    #[test]
    fn a_checkpoint_comes_back_to_the_bit() {
        let (_root, run) = run();
        let written = checkpoint(7);
        let path = written.write(&run).unwrap();
        assert_eq!(path, run.file("state.000007.ckpt"));
        let read = Checkpoint::read(&path).unwrap();
        assert_eq!(read, written);
        let bits = |c: &Checkpoint| c.state.positions[0].to_array().map(f64::to_bits);
        assert_eq!(bits(&read), bits(&written));
        let written = with_past(checkpoint(8));
        let path = written.write(&run).unwrap();
        assert_eq!(Checkpoint::read(&path).unwrap(), written);
    }

    /// The layout is what the book says: read here without the reader.
    #[test]
    fn the_bytes_are_the_documented_ones() {
        let (_root, run) = run();
        let bytes = fs::read(checkpoint(7).write(&run).unwrap()).unwrap();
        assert_eq!(&bytes[..12], b"WEFTCKPT\x03\0\0\0");
        let h = u32::from_le_bytes(bytes[12..16].try_into().unwrap()) as usize;
        let header: serde_json::Value = serde_json::from_slice(&bytes[16..16 + h]).unwrap();
        assert_eq!(
            (&header["step"], &header["vertices"]),
            (&7.into(), &2.into())
        );
        assert_eq!(bytes.len(), 16 + h + 4 * 48 + 2 + 32);
        assert_eq!(bytes[16 + h..][..8], 1.0f64.to_le_bytes());
        assert_eq!(bytes[16 + h + 192..][..2], [5, 2]);
        let sum = Sha256::digest(&bytes[..bytes.len() - 32]);
        assert_eq!(bytes[bytes.len() - 32..], sum[..]);

        let bytes = fs::read(with_past(checkpoint(8)).write(&run).unwrap()).unwrap();
        assert_eq!(&bytes[..12], b"WEFTCKPT\x04\0\0\0");
        let h = u32::from_le_bytes(bytes[12..16].try_into().unwrap()) as usize;
        assert_eq!(bytes.len(), 16 + h + 6 * 48 + 2 + 32);
        assert_eq!(bytes[16 + h + 194..][..8], 0.5f64.to_le_bytes());
    }

    #[test]
    fn the_two_newest_are_kept() {
        let (_root, run) = run();
        let error = Checkpoint::newest(run.path()).unwrap_err();
        assert!(matches!(error, OutputError::NoCheckpoint { .. }), "{error}");
        for step in [2, 999_999, 1_000_000] {
            checkpoint(step).write(&run).unwrap();
        }
        assert!(!run.file("state.000002.ckpt").exists());
        assert!(run.file("state.999999.ckpt").exists());
        let newest = Checkpoint::newest(run.path()).unwrap();
        assert_eq!(newest, run.file("state.1000000.ckpt"));
    }

    #[test]
    fn a_state_that_does_not_fit_its_header_is_not_written() {
        let (_root, run) = run();
        let mut bad = checkpoint(1);
        bad.state.changes[1].pop();
        assert!(matches!(
            bad.write(&run),
            Err(OutputError::Inconsistent { .. })
        ));
        assert!(Checkpoint::newest(run.path()).is_err());
    }

    /// With a right sum, so that it is the numbers that are refused.
    #[test]
    fn numbers_that_are_not_finite_are_refused() {
        let (_root, run) = run();
        let mut bad = checkpoint(1);
        bad.state.velocities[1].y = f64::NAN;
        let error = Checkpoint::read(&bad.write(&run).unwrap()).unwrap_err();
        assert!(error.to_string().contains("not finite"), "{error}");
    }

    proptest! {
        /// Neither a flipped bit, nor a lost end, nor more of it, nor rubbish is taken for a checkpoint.
        #[test]
        fn damage_is_noticed(
            at in 0usize..600,
            bit in 0u8..8,
            cut in 0usize..600,
            more in 1usize..40,
            past in any::<bool>(),
        ) {
            let (_root, run) = run();
            let whole = if past { with_past(checkpoint(7)) } else { checkpoint(7) };
            let path = whole.write(&run).unwrap();
            let good = fs::read(&path).unwrap();
            let mut flipped = good.clone();
            let at = at % good.len();
            flipped[at] ^= 1 << bit;
            let cut = good[..cut % good.len()].to_vec();
            let longer = [&good[..], &vec![0; more]].concat();
            for bytes in [flipped, cut, longer] {
                fs::write(&path, bytes).unwrap();
                let error = Checkpoint::read(&path).unwrap_err();
                prop_assert!(error.to_string().contains("state.000007.ckpt"), "{error}");
            }
        }

        #[test]
        fn rubbish_is_refused(bytes in prop::collection::vec(any::<u8>(), 0..200), ours in 0usize..3) {
            let (_root, run) = run();
            let path = run.file("state.000001.ckpt");
            let prefix = [&b""[..], b"WEFTCKPT\x03\0\0\0", b"WEFTCKPT\x04\0\0\0"][ours];
            fs::write(&path, [prefix, &bytes].concat()).unwrap();
            prop_assert!(Checkpoint::read(&path).is_err());
        }
    }
}
