//! A checkpoint whose sections are read one by one: a rank reads those of its own patches.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use glam::DVec3;
use sha2::{Digest as _, Sha256};

use super::head::{Head, Section, per_vertex};
use super::numbers::{from_flags, vectors};
use super::{Checkpoint, Header};
use crate::output::OutputError;
use crate::step::{Past, PatchState, SavedState, StateOutline, VertexState};

/// An open checkpoint, of which patches are read one by one.
#[derive(Debug)]
pub struct SectionedCheckpoint {
    path: PathBuf,
    file: File,
    header: Header,
    sections: Vec<Section>,
}

impl SectionedCheckpoint {
    /// Opens a file whose head was read; it is `there` bytes long.
    pub(super) fn of(path: &Path, file: File, head: Head, there: u64) -> Result<Self, OutputError> {
        let damaged = |what: String| OutputError::Damaged {
            path: path.to_owned(),
            what,
        };
        let header: Header = serde_json::from_slice(&head.header)
            .map_err(|e| damaged(format!("its header: {e}")))?;
        if !header.has_possible_past() {
            return Err(damaged("the length of its last part".to_owned()));
        }
        let each = per_vertex(header.past_s.is_some());
        let (mut end, mut vertices) = (Some(head.length), 0_u64);
        for (patch, section) in head.sections.iter().enumerate() {
            if end != Some(section.offset) {
                return Err(damaged(format!("the place of patch {patch}")));
            }
            let length = section.vertices.checked_mul(each);
            end = length.and_then(|length| length.checked_add(section.offset));
            vertices = vertices.saturating_add(section.vertices);
        }
        if end != Some(there) || vertices != header.vertices {
            return Err(damaged("its length is wrong".to_owned()));
        }
        Ok(Self {
            path: path.to_owned(),
            file,
            header,
            sections: head.sections,
        })
    }

    /// The facts that it has about its run.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The number of its patches.
    #[must_use]
    pub fn patches(&self) -> usize {
        self.sections.len()
    }

    /// The facts about the state that belong to no vertex.
    #[must_use]
    pub fn outline(&self) -> StateOutline {
        let header = &self.header;
        StateOutline {
            vertices: header.vertices,
            step: header.step,
            substep: header.substep,
            past: header.past_s,
            squeezed: header.squeezed.clone(),
            kept: header.kept.clone(),
        }
    }

    /// Reads the state of a patch, and nothing else.
    ///
    /// # Errors
    /// [`OutputError::Read`]; [`OutputError::Damaged`], which names the patch.
    pub fn read_patch(&mut self, patch: usize) -> Result<PatchState, OutputError> {
        let damaged = |path: &Path, what: &str| OutputError::Damaged {
            path: path.to_owned(),
            what: format!("the section of patch {patch}: {what}"),
        };
        let Some(&section) = self.sections.get(patch) else {
            return Err(damaged(&self.path, "there is none"));
        };
        let past = self.header.past_s.is_some();
        // The file is long enough for it.
        let mut bytes = vec![0; (section.vertices * per_vertex(past)) as usize];
        let read = self.file.seek(SeekFrom::Start(section.offset));
        let read = read.and_then(|_| self.file.read_exact(&mut bytes));
        read.map_err(OutputError::read(&self.path))?;
        if Sha256::digest(&bytes)[..] != section.sum {
            return Err(damaged(&self.path, "its sum is wrong"));
        }
        decode(&bytes, section.vertices as usize, past).map_err(|what| damaged(&self.path, what))
    }

    /// Reads all patches, one after the other, to make sure that none is damaged and that each
    /// vertex is in one of them. The result is whether `is_of` says so of all patches, by their
    /// numbers and the vertices that they have.
    ///
    /// # Errors
    /// As [`Self::read_patch`].
    pub fn check(&mut self, is_of: impl Fn(usize, &[u32]) -> bool) -> Result<bool, OutputError> {
        let mut seen = vec![false; self.header.vertices as usize];
        let mut all = true;
        for patch in 0..self.patches() {
            let state = self.read_patch(patch)?;
            self.note(patch, &state.vertices, &mut seen)?;
            all = all && is_of(patch, &state.vertices);
        }
        Ok(all)
    }

    /// Notes which vertices have been seen in a patch; none may be seen twice.
    fn note(&self, patch: usize, vertices: &[u32], seen: &mut [bool]) -> Result<(), OutputError> {
        for &vertex in vertices {
            let first = seen.get_mut(vertex as usize).filter(|seen| !**seen);
            let Some(first) = first else {
                return Err(OutputError::Damaged {
                    path: self.path.clone(),
                    what: format!(
                        "the section of patch {patch}: vertex {vertex} is none of the scene's, or comes twice"
                    ),
                });
            };
            *first = true;
        }
        Ok(())
    }

    /// Reads all of it.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub fn read_whole(mut self) -> Result<Checkpoint, OutputError> {
        // The file holds more bytes than this takes.
        let n = self.header.vertices as usize;
        let zeros = || vec![DVec3::ZERO; n];
        let mut state = SavedState {
            step: self.header.step,
            positions: zeros(),
            velocities: zeros(),
            changes: [zeros(), zeros()],
            contacts: vec![VertexState::default(); n],
            substep: self.header.substep,
            past: self.header.past_s.map(|length| Past {
                length,
                positions: zeros(),
                velocities: zeros(),
            }),
            squeezed: self.header.squeezed.clone(),
            kept: self.header.kept.clone(),
        };
        let mut seen = vec![false; n];
        for patch in 0..self.patches() {
            let part = self.read_patch(patch)?;
            self.note(patch, &part.vertices, &mut seen)?;
            let [last, before] = &mut state.changes;
            let [of_last, of_before] = &part.changes;
            let mut arrays = vec![
                (&mut state.positions, &part.positions),
                (&mut state.velocities, &part.velocities),
                (last, of_last),
                (before, of_before),
            ];
            if let (Some(past), Some([x, v])) = (&mut state.past, &part.past) {
                arrays.push((&mut past.positions, x));
                arrays.push((&mut past.velocities, v));
            }
            for (all, some) in arrays {
                for (&vertex, &value) in part.vertices.iter().zip(some) {
                    all[vertex as usize] = value;
                }
            }
            for (&vertex, &contact) in part.vertices.iter().zip(&part.contacts) {
                state.contacts[vertex as usize] = contact;
            }
        }
        Ok(Checkpoint {
            header: self.header,
            state,
        })
    }
}

/// The state of a patch of `n` vertices; the error says what is wrong with it.
fn decode(bytes: &[u8], n: usize, with_past: bool) -> Result<PatchState, &'static str> {
    let mut rest = bytes;
    let mut take = |length: usize| {
        let (taken, left) = rest.split_at(length.min(rest.len()));
        rest = left;
        taken
    };
    let numbers = take(4 * n).as_chunks::<4>().0.iter();
    let vertices = numbers.map(|&bytes| u32::from_le_bytes(bytes)).collect();
    let [positions, velocities, last, before] = [(); 4].map(|()| vectors(take(24 * n)));
    let flags = take(n);
    let friction = vectors(take(24 * n));
    let past = with_past.then(|| [(); 2].map(|()| vectors(take(24 * n))));
    let vectors = [&positions, &velocities, &last, &before, &friction];
    let are_finite = |all: &Vec<DVec3>| all.iter().all(|vector| vector.is_finite());
    if !(vectors.into_iter().all(are_finite) && past.iter().flatten().all(are_finite)) {
        return Err("a number in it is not finite");
    }
    let contacts = flags.iter().zip(&friction);
    let contacts = contacts.map(|(&flags, &friction)| from_flags(flags, friction));
    let contacts: Option<Vec<_>> = contacts.collect();
    Ok(PatchState {
        vertices,
        positions,
        velocities,
        changes: [last, before],
        contacts: contacts.ok_or("it has unknown contacts")?,
        past,
    })
}
