//! Checkpoints of earlier programs, in layouts 5 and 6: the state of all vertices as arrays, with
//! one sum over everything. They are read and no more written.
//!
//! | bytes | what |
//! |---|---|
//! | 8, 4, 4, h | as in the present layout, with the version 5, or 6 with a past |
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
//! The n vertices are in the order of the scene's own.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use sha2::{Digest as _, Sha256};

use super::numbers::{from_flags, vectors};
use super::{Checkpoint, Header, LONGEST_HEADER, PREFIX, SUM};
use crate::output::OutputError;
use crate::step::{Past, SavedState, VertexState};

/// The layout without a past, and the one with it.
pub(super) const VERSIONS: [u32; 2] = [5, 6];
/// Bytes per vertex.
const PER_VERTEX: u64 = 5 * 24 + 1;
/// Bytes per vertex of the past.
const PER_PAST: u64 = 2 * 24;

/// Reads a checkpoint behind its prefix; the file is `there` bytes long.
pub(super) fn read(
    path: &Path,
    prefix: [u8; PREFIX],
    mut file: File,
    there: u64,
) -> Result<Checkpoint, OutputError> {
    let read = |source| OutputError::Read {
        path: path.to_owned(),
        source,
    };
    let damaged = |what: String| OutputError::Damaged {
        path: path.to_owned(),
        what,
    };
    let number = |at: usize| {
        prefix[at..]
            .first_chunk()
            .map_or(0, |&bytes| u32::from_le_bytes(bytes))
    };
    let (with_past, length) = (number(8) == VERSIONS[1], number(12));
    let ends_early = || damaged("its length is wrong".to_owned());
    if length > LONGEST_HEADER || u64::from(length) > there - PREFIX as u64 {
        return Err(ends_early());
    }
    let mut header_bytes = vec![0; length as usize];
    file.read_exact(&mut header_bytes).map_err(read)?;
    let header: Header =
        serde_json::from_slice(&header_bytes).map_err(|e| damaged(format!("its header: {e}")))?;
    if header.past_s.is_some() != with_past || !header.has_possible_past() {
        return Err(damaged("the length of its last part".to_owned()));
    }
    // Nothing is allocated for what the file is too short to hold.
    let per_vertex = PER_VERTEX + u64::from(with_past) * PER_PAST;
    let promised = header.vertices.checked_mul(per_vertex);
    let whole = promised.and_then(|n| n.checked_add((PREFIX + SUM) as u64 + u64::from(length)));
    if whole != Some(there) {
        return Err(ends_early());
    }
    let left = there - PREFIX as u64 - u64::from(length);
    let mut rest = Vec::with_capacity(left as usize);
    file.read_to_end(&mut rest).map_err(read)?;
    if rest.len() as u64 != left {
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
    let past = header.past_s.map(|length| {
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
    Ok(Checkpoint { header, state })
}

/// Whether a file of this length, read up to behind its prefix, ends with the sum of all before, as
/// those of all earlier layouts do.
pub(super) fn is_summed(prefix: &[u8], file: File, length: u64) -> io::Result<bool> {
    let Some(body) = length.checked_sub((prefix.len() + SUM) as u64) else {
        return Ok(false);
    };
    let mut hasher = Sha256::new();
    hasher.update(prefix);
    let mut file = io::BufReader::new(file);
    io::copy(&mut (&mut file).take(body), &mut Hashing(&mut hasher))?;
    let mut sum = [0; SUM];
    Ok(file.read_exact(&mut sum).is_ok() && hasher.finalize()[..] == sum)
}

/// Hashes what is written to it.
struct Hashing<'a>(&'a mut Sha256);

impl io::Write for Hashing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
