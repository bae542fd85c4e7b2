//! A checkpoint that ranks write together.
//!
//! Rank 0 makes the file under a temporary name, as long as it will be ([`NewCheckpoint`]). Each
//! rank writes the sections of its patches at their places and brings them to the disk ([`Place`]).
//! Then rank 0 writes the head, which holds the sums of all sections, and renames the file: it is
//! complete or absent.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf, absolute};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tempfile::NamedTempFile;

use super::head::{Head, Section, Sum, per_vertex};
use super::numbers::push_vectors;
use super::{Checkpoint, Header, LONGEST_HEADER, SUM};
use crate::output::plain::open_plain;
use crate::output::{OutputError, RunDirectory};
use crate::step::PatchView;

/// A checkpoint that is being written, on rank 0. If it is dropped, the file is gone.
#[derive(Debug)]
pub(crate) struct NewCheckpoint {
    run: RunDirectory,
    temporary: NamedTempFile,
    path: PathBuf,
    header: Vec<u8>,
    sections: Vec<Section>,
    step: u64,
}

/// The place into which ranks write their sections, as rank 0 tells it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Place {
    /// The temporary file.
    file: OsString,
    /// The file that it is to become, for messages.
    shown: OsString,
    /// The beginning of the sections.
    first: u64,
    with_past: bool,
}

impl NewCheckpoint {
    /// Makes the file, for patches with these numbers of vertices.
    ///
    /// # Errors
    /// [`OutputError::Inconsistent`] if header and patches do not fit; [`OutputError::Write`].
    pub(crate) fn begin(
        run: &RunDirectory,
        header: &Header,
        patches: impl Iterator<Item = usize>,
    ) -> Result<(Self, Place), OutputError> {
        let name = Checkpoint::file(header.step);
        let inconsistent = |what: String| OutputError::Inconsistent {
            path: run.file(&name),
            what,
        };
        let text = serde_json::to_vec(header).map_err(|e| inconsistent(e.to_string()))?;
        if text.len() > LONGEST_HEADER as usize {
            return Err(inconsistent("the scene's text is too long".to_owned()));
        }
        let counts: Vec<u64> = patches.map(|count| count as u64).collect();
        if counts.iter().sum::<u64>() != header.vertices || u32::try_from(counts.len()).is_err() {
            let what = "the patches are not of the header's vertices";
            return Err(inconsistent(what.to_owned()));
        }
        let first = Head::length(text.len(), counts.len());
        let with_past = header.past_s.is_some();
        let mut offset = first;
        let mut sections = Vec::with_capacity(counts.len());
        for vertices in counts {
            sections.push(Section {
                offset,
                vertices,
                sum: [0; SUM],
            });
            offset += vertices * per_vertex(with_past);
        }
        let (temporary, path) = run.temporary(&name)?;
        let made = (temporary.as_file().set_len(offset)).and_then(|()| absolute(temporary.path()));
        let place = Place {
            file: made.map_err(OutputError::write(&path))?.into_os_string(),
            shown: path.clone().into_os_string(),
            first,
            with_past,
        };
        let new = Self {
            run: run.clone(),
            temporary,
            path,
            header: text,
            sections,
            step: header.step,
        };
        Ok((new, place))
    }

    /// Completes the file with the sums of all sections, in the order of patches. Then it removes
    /// all checkpoints of the run but this one and the newest before it.
    ///
    /// # Errors
    /// [`OutputError::Inconsistent`] if there are more or fewer sums; [`OutputError::Write`].
    /// Others are only removed when this one is on the disk under its name, and so is what was
    /// written before it.
    pub(crate) fn complete(
        mut self,
        sums: impl Iterator<Item = Sum>,
    ) -> Result<PathBuf, OutputError> {
        let sums: Vec<Sum> = sums.collect();
        if sums.len() != self.sections.len() {
            let (path, what) = (self.path, "ranks have written other patches".to_owned());
            return Err(OutputError::Inconsistent { path, what });
        }
        for (section, sum) in self.sections.iter_mut().zip(sums) {
            section.sum = sum;
        }
        let head = Head::bytes(&self.header, &self.sections);
        // The temporary file itself can only be appended to.
        let write = || {
            let mut file = open_plain(File::options().write(true), self.temporary.path())?;
            file.write_all(&head)?;
            file.sync_all()
        };
        write().map_err(OutputError::write(&self.path))?;
        let renamed = self.temporary.persist(&self.path);
        renamed.map_err(|error| OutputError::write(&self.path)(error.error))?;
        self.run.sync()?;
        Checkpoint::keep_newest(&self.run, self.step)?;
        Ok(self.path)
    }
}

impl Place {
    /// Writes the sections of patches, of which the first begins with this vertex in the numbering
    /// of the patch tree, and brings them to the disk. The result is their sums.
    ///
    /// # Errors
    /// [`OutputError::Write`].
    pub(crate) fn write<'a>(
        &self,
        first_vertex: usize,
        patches: impl Iterator<Item = PatchView<'a>>,
    ) -> Result<Vec<Sum>, OutputError> {
        let attempt = || -> io::Result<Vec<Sum>> {
            let mut file = open_plain(File::options().write(true), Path::new(&self.file))?;
            let offset = self.first + first_vertex as u64 * per_vertex(self.with_past);
            file.seek(SeekFrom::Start(offset))?;
            let mut sums = Vec::new();
            let mut bytes = Vec::new();
            for patch in patches {
                if !patch.is_whole(self.with_past) {
                    return Err(io::Error::other("the state of a patch has gaps"));
                }
                bytes.clear();
                encode(&patch, &mut bytes);
                file.write_all(&bytes)?;
                sums.push(Sha256::digest(&bytes).into());
            }
            file.sync_data()?;
            Ok(sums)
        };
        attempt().map_err(OutputError::write(Path::new(&self.shown)))
    }
}

fn encode(patch: &PatchView<'_>, bytes: &mut Vec<u8>) {
    bytes.extend(
        patch
            .vertices
            .iter()
            .flat_map(|number| number.to_le_bytes()),
    );
    for all in [
        patch.positions,
        patch.velocities,
        patch.changes[0],
        patch.changes[1],
    ] {
        push_vectors(bytes, all.iter().copied());
    }
    bytes.extend(patch.contacts.iter().map(|contact| contact.bits()));
    push_vectors(bytes, patch.contacts.iter().map(|contact| contact.friction));
    for all in patch.past.into_iter().flatten() {
        push_vectors(bytes, all.iter().copied());
    }
}
