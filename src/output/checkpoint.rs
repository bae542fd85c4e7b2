//! `state.NNNNNN.ckpt`: the state after a number of steps, for the run to go on from, on any number
//! of ranks.
//!
//! | bytes | what |
//! |---|---|
//! | 8 | `WEFTCKPT` |
//! | 4 | version of this layout: 5, or 6 with what an integrator looks back at |
//! | 4 | length h of the header |
//! | h | the header, JSON: [`Header`] |
//! | 24 n | positions in m, three numbers of 64 bits per vertex |
//! | 24 n | velocities in m/s, likewise |
//! | 24 n | velocity changes of the last solve in m/s, likewise |
//! | 24 n | velocity changes of the one before, likewise |
//! | n | contact with bodies: 1 held, 2 released, 4 sticking, added up |
//! | 24 n | friction of bodies against sliding in N, three numbers of 64 bits per vertex |
//! | 24 n | in layout 6: positions before the last part of a step, in m |
//! | 24 n | in layout 6: velocities then, as the integrator takes them, in m/s |
//! | 32 | SHA-256 of all before |
//!
//! All numbers are little-endian; the n vertices are in the order of the scene's own. A file is
//! complete or absent, and what was damaged later is noticed by its sum.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use glam::DVec3;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use weft_io::open_regular;

use super::names::step_of;
use super::plain::open_plain;
use super::{HistoryMark, OutputError, RunDirectory};
use crate::build_identity::BuildIdentity;
use crate::step::{Past, SavedState, VertexState};

const MAGIC: [u8; 8] = *b"WEFTCKPT";
/// The layout without a past, and the one with it.
const VERSIONS: [u32; 2] = [5, 6];
/// Bytes before the header.
const PREFIX: usize = 16;
/// Bytes of the sum at the end.
const SUM: usize = 32;
/// Longest header that is read; it holds the text of a scene.
const LONGEST_HEADER: u32 = 16 << 20;
/// Bytes per vertex.
const PER_VERTEX: u64 = 5 * 24 + 1;
/// Bytes per vertex of the past.
const PER_PAST: u64 = 2 * 24;
/// Vertices whose numbers are converted at once.
const CHUNK: usize = 4096;

/// A state with what is needed to go on from it.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// The run that the state belongs to.
    pub header: Header,
    /// The state.
    pub state: SavedState,
}

/// The facts that a checkpoint has about its run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// Version of the program that wrote it.
    pub program: String,
    /// The commit that this program was built from, if it knew; earlier programs do not say.
    #[serde(default)]
    pub commit: Option<String>,
    /// SHA-256 of its executable file; earlier programs do not say.
    #[serde(default)]
    pub executable: Option<String>,
    /// The mark of the history when this was written; earlier programs do not say.
    #[serde(default)]
    pub history: Option<HistoryMark>,
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
    /// The most by which one was larger than what its cloth bears, of any step so far; earlier
    /// programs do not say.
    #[serde(default)]
    pub beyond_limit: Option<f64>,
    /// [`SavedState::substep`].
    #[serde(default, rename = "stride")]
    pub substep: [u32; 2],
    /// [`Past::length`] in s; in layout 6 only.
    #[serde(default)]
    pub past_s: Option<f64>,
    /// [`SavedState::squeezed`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub squeezed: Vec<[u32; 2]>,
    /// [`SavedState::kept`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<[u32; 2]>,
}

impl Header {
    /// The build of the program that wrote it.
    #[must_use]
    pub fn build(&self) -> BuildIdentity {
        BuildIdentity {
            version: self.program.clone(),
            commit: self.commit.clone(),
            executable: self.executable.clone(),
        }
    }
}

impl Checkpoint {
    /// The file of the checkpoint after this number of steps, in the run's directory.
    #[must_use]
    pub fn file(step: u64) -> String {
        format!("state.{step:06}.ckpt")
    }

    /// The number of steps that the name of a checkpoint says; `None` if it has another name.
    #[must_use]
    pub fn step_in_name(path: &Path) -> Option<u64> {
        step_of(path.file_name()?.to_str()?)
    }

    /// Writes it into the run's directory, then removes all others of the run but the newest before
    /// it.
    ///
    /// # Errors
    /// [`OutputError::Inconsistent`] if header and state do not fit; [`OutputError::Write`]. Others
    /// are only removed when this one is on the disk under its name, and so is what was written
    /// before it.
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
            && self.state.substep == self.header.substep
            && self.state.squeezed == self.header.squeezed
            && self.state.kept == self.header.kept
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
            let friction: Vec<DVec3> = self.state.contacts.iter().map(|c| c.friction).collect();
            write_vectors(&mut out, &friction)?;
            if let Some(past) = past {
                write_vectors(&mut out, &past.positions)?;
                write_vectors(&mut out, &past.velocities)?;
            }
            out.finish()
        })?;
        run.sync()?;
        let step = self.header.step;
        let listed = run.listed();
        let others = all(run.path())?.into_iter().map(|(of, _)| of);
        let others: Vec<u64> = others
            .filter(|&of| of != step && listed.contains(&Self::file(of)))
            .collect();
        let before = others.iter().copied().filter(|&of| of < step).max();
        for of in others.into_iter().filter(|&of| Some(of) != before) {
            run.remove(&Self::file(of))?;
        }
        Ok(path)
    }

    /// Removes the checkpoints of a run that are of a later step: it goes on from an earlier one.
    ///
    /// # Errors
    /// [`OutputError::Read`], [`OutputError::Write`].
    pub(crate) fn remove_after(run: &RunDirectory, step: u64) -> Result<(), OutputError> {
        for (of, _) in all(run.path())?.into_iter().filter(|(of, _)| *of > step) {
            run.remove(&Self::file(of))?;
        }
        Ok(())
    }

    /// Reads a checkpoint.
    ///
    /// # Errors
    /// [`OutputError::Read`]; [`OutputError::Malformed`] for one that was made by another version
    /// of the layout; [`OutputError::Damaged`] for a file that is no checkpoint or not any more.
    pub fn read(path: &Path) -> Result<Self, OutputError> {
        let read = |source| OutputError::Read {
            path: path.to_owned(),
            source,
        };
        let damaged = |what: String| OutputError::Damaged {
            path: path.to_owned(),
            what,
        };
        let mut file = open_regular(path).map_err(read)?;
        let there = file.metadata().map_err(read)?.len();
        let mut prefix = [0; PREFIX];
        if there < PREFIX as u64 {
            return Err(damaged("it is not a checkpoint".to_owned()));
        }
        file.read_exact(&mut prefix).map_err(read)?;
        let number = |at: usize| {
            prefix[at..]
                .first_chunk()
                .map_or(0, |&bytes| u32::from_le_bytes(bytes))
        };
        let (version, length) = (number(8), number(12));
        if prefix[..8] != MAGIC {
            return Err(damaged("it is not a checkpoint".to_owned()));
        }
        let Some(with_past) = VERSIONS.iter().position(|known| *known == version) else {
            let [plain, with_past] = VERSIONS;
            if !is_summed(&prefix, file, there).map_err(read)? {
                return Err(damaged(format!("it names a layout {version}")));
            }
            return Err(OutputError::Malformed {
                path: path.to_owned(),
                what: format!(
                    "it is a checkpoint of layout {version}, and this program reads {plain} and {with_past}"
                ),
            });
        };
        let ends_early = || damaged("its length is wrong".to_owned());
        if length > LONGEST_HEADER || u64::from(length) > there - PREFIX as u64 {
            return Err(ends_early());
        }
        let mut header_bytes = vec![0; length as usize];
        file.read_exact(&mut header_bytes).map_err(read)?;
        let header: Header = serde_json::from_slice(&header_bytes)
            .map_err(|e| damaged(format!("its header: {e}")))?;
        // Nothing is allocated for what the file is too short to hold.
        let past_s = header.past_s;
        if past_s.is_some() != (with_past > 0)
            || past_s.is_some_and(|length| !(length.is_finite() && length > 0.0))
        {
            return Err(damaged("the length of its last part".to_owned()));
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
            return Err(damaged("its sum is wrong".to_owned()));
        }

        let n = header.vertices as usize;
        let (positions, body) = body.split_at(24 * n);
        let (velocities, body) = body.split_at(24 * n);
        let (changes, body) = body.split_at(24 * n);
        let (changes_before, body) = body.split_at(24 * n);
        let (flags, body) = body.split_at(n);
        let (friction, body) = body.split_at(24 * n);
        let past = past_s.map(|length| {
            let (positions, velocities) = body.split_at(24 * n);
            Past {
                length,
                positions: vectors(positions),
                velocities: vectors(velocities),
            }
        });
        let friction = vectors(friction);
        let contacts = flags.iter().zip(&friction);
        let contacts = contacts.map(|(&flags, &friction)| from_flags(flags, friction));
        let contacts: Option<Vec<VertexState>> = contacts.collect();
        let state = SavedState {
            step: header.step,
            positions: vectors(positions),
            velocities: vectors(velocities),
            changes: [changes, changes_before].map(vectors),
            contacts: contacts.ok_or_else(|| damaged("it has unknown contacts".to_owned()))?,
            substep: header.substep,
            past,
            squeezed: header.squeezed.clone(),
            kept: header.kept.clone(),
        };
        let [last, before] = &state.changes;
        let numbers = [&state.positions, &state.velocities, last, before, &friction];
        let past = state.past.iter();
        let past = past.flat_map(|past| [&past.positions, &past.velocities]);
        if !numbers
            .into_iter()
            .chain(past)
            .flatten()
            .all(|vector| vector.is_finite())
        {
            return Err(damaged("a number in it is not finite".to_owned()));
        }
        Ok(Self { header, state })
    }

    /// The newest checkpoint in a directory that is of this step or an earlier one, if there is
    /// any.
    ///
    /// # Errors
    /// [`OutputError::Read`].
    pub fn newest_until(directory: &Path, step: u64) -> Result<Option<PathBuf>, OutputError> {
        let mut all = all(directory)?;
        all.retain(|(of, _)| *of <= step);
        Ok(all.pop().map(|(_, path)| path))
    }

    /// The files in a directory that are checkpoints by their names, newest first, with the steps
    /// in these.
    ///
    /// # Errors
    /// [`OutputError::Read`].
    pub fn all(directory: &Path) -> Result<Vec<(u64, PathBuf)>, OutputError> {
        let mut all = all(directory)?;
        all.reverse();
        Ok(all)
    }

    /// Whether a directory has a file that is a checkpoint by its name and its first bytes.
    pub(super) fn any(directory: &Path) -> Result<bool, OutputError> {
        let begins = |path: &Path| {
            let mut magic = [0; MAGIC.len()];
            let mut file = open_plain(File::options().read(true), path)?;
            file.read_exact(&mut magic)?;
            Ok::<_, io::Error>(magic == MAGIC)
        };
        // A file that cannot be read is not known to be a checkpoint.
        let mut all = all(directory)?.into_iter();
        Ok(all.any(|(_, path)| begins(&path).unwrap_or(false)))
    }

    /// Removes all checkpoints of the run in a directory.
    ///
    /// # Errors
    /// As [`RunDirectory::reopen`]; [`OutputError::Read`], [`OutputError::Write`].
    pub fn remove_all(directory: &Path) -> Result<(), OutputError> {
        let run = RunDirectory::reopen(directory)?;
        for (of, _) in all(directory)? {
            run.remove(&Self::file(of))?;
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
        let step = entry.file_name().to_str().and_then(step_of);
        found.extend(step.map(|step| (step, entry.path())));
    }
    found.sort_unstable();
    Ok(found)
}

/// Whether a file of this length, read up to behind its prefix, ends with the sum of all before, as
/// one of any layout does.
fn is_summed(prefix: &[u8], file: File, length: u64) -> io::Result<bool> {
    let Some(body) = length.checked_sub((prefix.len() + SUM) as u64) else {
        return Ok(false);
    };
    let mut summed = Summed::new(io::sink());
    summed.write_all(prefix)?;
    let mut file = io::BufReader::new(file);
    io::copy(&mut (&mut file).take(body), &mut summed)?;
    let mut sum = [0; SUM];
    Ok(file.read_exact(&mut sum).is_ok() && summed.hasher.finalize()[..] == sum)
}

fn to_flags(contact: &VertexState) -> u8 {
    u8::from(contact.held) | u8::from(contact.released) << 1 | u8::from(contact.sticking) << 2
}

fn from_flags(flags: u8, friction: DVec3) -> Option<VertexState> {
    (flags < 8).then_some(VertexState {
        friction,
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
        let contact = |flags| from_flags(flags, DVec3::splat(0.5)).unwrap();
        Checkpoint {
            header: Header {
                program: "0.1.0".to_owned(),
                commit: None,
                executable: Some("00ff".to_owned()),
                history: Some(HistoryMark {
                    bytes: 7,
                    sha256: "ff00".to_owned(),
                    after: 0,
                }),
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
                substep: [2, 1],
                past_s: None,
                squeezed: vec![[1, 0]],
                kept: vec![[0, 3], [1, 0]],
            },
            state: SavedState {
                step,
                positions: vectors(1.0),
                velocities: vectors(2.0),
                changes: [vectors(3.0), vectors(3.5)],
                contacts: vec![contact(5), contact(2)],
                substep: [2, 1],
                past: None,
                squeezed: vec![[1, 0]],
                kept: vec![[0, 3], [1, 0]],
            },
        }
    }

    /// A checkpoint as an integrator that looks back leaves it.
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
        assert_eq!(&bytes[..12], b"WEFTCKPT\x05\0\0\0");
        let h = u32::from_le_bytes(bytes[12..16].try_into().unwrap()) as usize;
        let header: serde_json::Value = serde_json::from_slice(&bytes[16..16 + h]).unwrap();
        assert_eq!(
            (&header["step"], &header["vertices"]),
            (&7.into(), &2.into())
        );
        assert_eq!(bytes.len(), 16 + h + 5 * 48 + 2 + 32);
        assert_eq!(bytes[16 + h..][..8], 1.0f64.to_le_bytes());
        assert_eq!(bytes[16 + h + 192..][..2], [5, 2]);
        assert_eq!(bytes[16 + h + 194..][..8], 0.5f64.to_le_bytes());
        let sum = Sha256::digest(&bytes[..bytes.len() - 32]);
        assert_eq!(bytes[bytes.len() - 32..], sum[..]);

        let bytes = fs::read(with_past(checkpoint(8)).write(&run).unwrap()).unwrap();
        assert_eq!(&bytes[..12], b"WEFTCKPT\x06\0\0\0");
        let h = u32::from_le_bytes(bytes[12..16].try_into().unwrap()) as usize;
        assert_eq!(bytes.len(), 16 + h + 7 * 48 + 2 + 32);
        assert_eq!(bytes[16 + h + 242..][..8], 0.5f64.to_le_bytes());
    }

    #[test]
    fn the_two_newest_are_kept() {
        let (_root, run) = run();
        assert_eq!(Checkpoint::all(run.path()).unwrap(), []);
        for step in [2, 999_999, 1_000_000] {
            checkpoint(step).write(&run).unwrap();
        }
        assert!(!run.file("state.000002.ckpt").exists());
        assert!(run.file("state.999999.ckpt").exists());
        let all = Checkpoint::all(run.path()).unwrap();
        let steps: Vec<u64> = all.iter().map(|(step, _)| *step).collect();
        assert_eq!(steps, [1_000_000, 999_999]);
        assert_eq!(all[0].1, run.file("state.1000000.ckpt"));
    }

    /// One that goes on from an earlier step has no use for later ones; a stranger's stay.
    #[test]
    fn later_ones_are_removed_and_a_stranger_s_are_kept() {
        let (_root, run) = run();
        fs::write(run.file("state.000001.ckpt"), "mine").unwrap();
        fs::write(run.file("state.+3.ckpt"), "mine").unwrap();
        for step in [2, 9] {
            checkpoint(step).write(&run).unwrap();
        }
        checkpoint(4).write(&run).unwrap();
        let steps = || {
            let all = Checkpoint::all(run.path()).unwrap();
            all.into_iter().map(|(step, _)| step).collect::<Vec<_>>()
        };
        assert_eq!(steps(), [4, 2, 1]);
        Checkpoint::remove_after(&run, 2).unwrap();
        assert_eq!(steps(), [2, 1]);
        let directory = run.path().to_owned();
        drop(run);
        Checkpoint::remove_all(&directory).unwrap();
        assert_eq!(Checkpoint::all(&directory).unwrap().len(), 1);
    }

    /// Headers of earlier programs know nothing of builds and histories.
    #[test]
    fn a_header_of_an_earlier_program_is_read() {
        let mut header = serde_json::to_value(checkpoint(1).header).unwrap();
        let fields = header.as_object_mut().unwrap();
        for name in ["commit", "executable", "history"] {
            assert!(fields.remove(name).is_some());
        }
        let header: Header = serde_json::from_value(header).unwrap();
        assert_eq!((header.executable.as_ref(), &header.history), (None, &None));
        assert!(!header.build().is(&header.build()));
    }

    /// The test checks that only a whole file is said to have another layout.
    #[test]
    fn another_layout_is_told_from_damage() {
        let (_root, run) = run();
        let path = checkpoint(7).write(&run).unwrap();
        let mut bytes = fs::read(&path).unwrap();
        bytes[8] = 9;
        fs::write(&path, &bytes).unwrap();
        let error = Checkpoint::read(&path).unwrap_err();
        assert!(matches!(error, OutputError::Damaged { .. }), "{error}");
        let end = bytes.len() - SUM;
        let sum = Sha256::digest(&bytes[..end]);
        bytes[end..].copy_from_slice(&sum);
        fs::write(&path, &bytes).unwrap();
        let error = Checkpoint::read(&path).unwrap_err();
        assert!(matches!(error, OutputError::Malformed { .. }), "{error}");
        assert!(error.to_string().contains("layout 9"), "{error}");
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
        assert_eq!(Checkpoint::all(run.path()).unwrap(), []);
    }

    /// The sum of the file is right, so it is the numbers that are refused.
    #[test]
    fn numbers_that_are_not_finite_are_refused() {
        let (_root, run) = run();
        let mut bad = checkpoint(1);
        bad.state.velocities[1].y = f64::NAN;
        let error = Checkpoint::read(&bad.write(&run).unwrap()).unwrap_err();
        assert!(error.to_string().contains("not finite"), "{error}");
    }

    proptest! {
        /// Neither a flipped bit, nor a lost end, nor more of it, nor rubbish is taken for a
        /// checkpoint.
        #[test]
        fn damage_of_a_checkpoint_is_noticed(
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
        fn files_that_are_no_checkpoint_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..200), ours in 0usize..3) {
            let (_root, run) = run();
            let path = run.file("state.000001.ckpt");
            let prefix = [&b""[..], b"WEFTCKPT\x05\0\0\0", b"WEFTCKPT\x06\0\0\0"][ours];
            fs::write(&path, [prefix, &bytes].concat()).unwrap();
            prop_assert!(Checkpoint::read(&path).is_err());
        }
    }
}
