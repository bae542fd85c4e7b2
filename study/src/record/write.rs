//! Writing a record, a step at a time.

use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use tempfile::NamedTempFile;
use weft_balance::prices::Prices;
use weft_runtime::wire;

use super::{Against, End, Header, MAGIC, PIECE, RecordError, SUM, Step, Task, VERSION};
use crate::shape::write_number;

/// A record that is being written; the file gets its name when it is complete.
#[derive(Debug)]
pub struct RecordWriter {
    path: PathBuf,
    file: BufWriter<NamedTempFile>,
    /// The prices of the steps that count.
    prices: Vec<Prices>,
    /// How many there are that lead to them.
    warm_up: u32,
}

impl RecordWriter {
    /// Begins one, in a temporary file beside it.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn create(path: &Path, header: &Header) -> Result<Self, RecordError> {
        let temporary = weft_io::temporary_beside(path).map_err(|source| RecordError::Io {
            path: path.to_owned(),
            source,
        })?;
        Self::begin(temporary, path, header)
    }

    /// Begins one in this temporary file, in the folder of the record.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn begin(
        temporary: NamedTempFile,
        path: &Path,
        header: &Header,
    ) -> Result<Self, RecordError> {
        let mut writer = Self {
            path: path.to_owned(),
            file: BufWriter::new(temporary),
            prices: Vec::new(),
            warm_up: 0,
        };
        let bytes = writer.encode(header)?;
        writer.io(|file| {
            file.write_all(&MAGIC)?;
            file.write_all(&[VERSION])
        })?;
        writer.piece(b'H', &bytes)?;
        Ok(writer)
    }

    /// Adds a step that leads to those that count. These come first.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn warm_up_step(&mut self, step: &Step) -> Result<(), RecordError> {
        self.add(b'L', step)?;
        self.warm_up += 1;
        Ok(())
    }

    /// Adds a step that counts.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn step(&mut self, step: &Step) -> Result<(), RecordError> {
        self.add(b'S', step)?;
        self.prices.push(step.prices);
        Ok(())
    }

    fn add(&mut self, letter: u8, step: &Step) -> Result<(), RecordError> {
        let bytes = self.encode(step)?;
        self.piece(letter, &bytes)?;
        let mut bytes = Vec::new();
        for task in &step.tasks {
            write_task(task, &mut bytes);
            if bytes.len() >= PIECE {
                self.piece(b'T', &bytes)?;
                bytes.clear();
            }
        }
        if !bytes.is_empty() {
            self.piece(b'T', &bytes)?;
        }
        Ok(())
    }

    /// Steps that count so far.
    #[must_use]
    pub fn steps(&self) -> usize {
        self.prices.len()
    }

    /// Completes it and gives it its name.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(mut self) -> Result<PathBuf, RecordError> {
        let end = End {
            steps: self.warm_up + self.prices.len() as u32,
            prices: Prices::median(&self.prices),
        };
        let bytes = self.encode(&end)?;
        self.piece(b'E', &bytes)?;
        let Self { path, file, .. } = self;
        let failed = |source| RecordError::Io {
            path: path.clone(),
            source,
        };
        let file = file.into_inner();
        let file = file.map_err(|error| failed(error.into_error()))?;
        file.as_file().sync_all().map_err(failed)?;
        file.persist(&path).map_err(|error| failed(error.error))?;
        Ok(path)
    }

    /// Takes back what was begun.
    ///
    /// # Errors
    /// The file cannot be removed.
    pub fn abandon(self) -> Result<(), RecordError> {
        let Self { path, file, .. } = self;
        let (file, _) = file.into_parts();
        file.close()
            .map_err(|source| RecordError::Io { path, source })
    }

    fn encode<T: serde::Serialize>(&self, value: &T) -> Result<Vec<u8>, RecordError> {
        wire::encode(value).map_err(|what| RecordError::Io {
            path: self.path.clone(),
            source: io::Error::other(what),
        })
    }

    fn piece(&mut self, letter: u8, bytes: &[u8]) -> Result<(), RecordError> {
        let sum = Sha256::digest(bytes);
        self.io(|file| {
            file.write_all(&[letter])?;
            file.write_all(&(bytes.len() as u64).to_le_bytes())?;
            file.write_all(bytes)?;
            file.write_all(&sum[..SUM])
        })
    }

    fn io(
        &mut self,
        write: impl FnOnce(&mut BufWriter<NamedTempFile>) -> io::Result<()>,
    ) -> Result<(), RecordError> {
        write(&mut self.file).map_err(|source| RecordError::Io {
            path: self.path.clone(),
            source,
        })
    }
}

fn write_task(task: &Task, out: &mut Vec<u8>) {
    write_number(out, u64::from(task.patch));
    let (kind, other) = match task.against {
        Against::Itself => (0, 0),
        Against::Patch(patch) => (1, patch),
        Against::Body(body) => (2, body),
    };
    write_number(out, kind);
    write_number(out, u64::from(other));
    if kind == 1 {
        for met in task.met {
            write_number(out, met & u64::from(u32::MAX));
            write_number(out, met >> 32);
        }
    }
    task.tree.write(out);
    write_number(out, task.routes.len() as u64);
    for route in &task.routes {
        write_number(out, route.patches.len() as u64);
        for &patch in &route.patches {
            write_number(out, u64::from(patch));
        }
        write_number(out, u64::from(route.contacts));
    }
}
