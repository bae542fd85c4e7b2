//! Reading a record, a step at a time.

use std::fs::File;
use std::io::{BufReader, ErrorKind, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};
use weft_balance::cost::TestCost;
use weft_io::open_regular;
use weft_runtime::wire;

use super::{
    Against, End, Header, LARGEST, MAGIC, RecordError, Route, SUM, Step, Task, VERSION, check,
    check_borders,
};
use crate::shape::{ShapeError, Tree, read_number};

/// A record that can be read.
#[derive(Debug)]
pub struct Record {
    path: PathBuf,
    file: BufReader<File>,
    header: Header,
    end: End,
    /// The places of the pieces of each step: of those that lead to others, and of those that
    /// count.
    warm_up: Vec<Vec<Piece>>,
    steps: Vec<Vec<Piece>>,
    digest: String,
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    letter: u8,
    at: u64,
    length: u64,
}

impl Record {
    /// Opens one: reads its header and end, and finds its steps.
    ///
    /// # Errors
    /// It is no record, of another version, cut off, longer than the record in it, damaged, or
    /// empty.
    pub fn open(path: &Path) -> Result<Self, RecordError> {
        let io = |source| RecordError::Io {
            path: path.to_owned(),
            source,
        };
        let file = open_regular(path).map_err(io)?;
        let size = file.metadata().map_err(io)?.len();
        let mut record = Self {
            path: path.to_owned(),
            file: BufReader::new(file),
            header: Header::default(),
            end: End::default(),
            warm_up: Vec::new(),
            steps: Vec::new(),
            digest: String::new(),
        };
        let mut start = [0; MAGIC.len() + 1];
        let foreign = || RecordError::Foreign {
            path: path.to_owned(),
        };
        record.file.read_exact(&mut start).map_err(|_| foreign())?;
        if start[..MAGIC.len()] != MAGIC {
            return Err(foreign());
        }
        if start[MAGIC.len()] != VERSION {
            return Err(RecordError::Version {
                path: path.to_owned(),
                found: start[MAGIC.len()],
            });
        }
        let pieces = record.pieces(size)?;
        let mut sums = Sha256::new();
        for piece in &pieces {
            sums.update(record.bytes_at(piece.at + piece.length, SUM as u64)?);
        }
        record.digest = wire::hex(&sums.finalize()[..8]);
        let (Some(first), Some(last)) = (pieces.first(), pieces.last()) else {
            return Err(record.truncated());
        };
        if last.letter != b'E' {
            return Err(record.truncated());
        }
        if first.letter != b'H' {
            return Err(record.damaged("it does not begin with a header"));
        }
        record.header = record.read(*first)?;
        record
            .header
            .check()
            .map_err(|what| record.damaged(&what))?;
        record.end = record.read(*last)?;
        check::prices(&record.end.prices).map_err(|what| record.damaged(&what))?;
        for piece in &pieces[1..pieces.len() - 1] {
            let leads = record.steps.is_empty();
            let last = record.steps.last_mut();
            match (piece.letter, last.or_else(|| record.warm_up.last_mut())) {
                (b'L', _) if leads => record.warm_up.push(vec![*piece]),
                (b'S', _) => record.steps.push(vec![*piece]),
                (b'T', Some(step)) => step.push(*piece),
                _ => return Err(record.damaged("a piece that is out of place")),
            }
        }
        if record.warm_up.len() + record.steps.len() != record.end.steps as usize {
            return Err(record.damaged("a step is missing"));
        }
        if record.steps.is_empty() {
            return Err(RecordError::Empty {
                path: path.to_owned(),
            });
        }
        Ok(record)
    }

    /// The part of the record that does not change from step to step.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The summary that is known at the end.
    #[must_use]
    pub fn end(&self) -> &End {
        &self.end
    }

    /// How many steps there are that lead to those that count, and precede them.
    #[must_use]
    pub fn warm_up_steps(&self) -> usize {
        self.warm_up.len()
    }

    /// How many steps there are that count, at least one.
    #[must_use]
    pub fn steps(&self) -> usize {
        self.steps.len()
    }

    /// Tells records apart.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Reads a step that counts.
    ///
    /// # Errors
    /// It is damaged.
    ///
    /// # Panics
    /// If there is no such step.
    pub fn step(&mut self, index: usize) -> Result<Step, RecordError> {
        self.step_of(self.steps[index].clone())
    }

    /// Reads a step of the warm-up.
    ///
    /// # Errors
    /// It is damaged.
    ///
    /// # Panics
    /// If there is no such step.
    pub fn warm_up_step(&mut self, index: usize) -> Result<Step, RecordError> {
        self.step_of(self.warm_up[index].clone())
    }

    fn step_of(&mut self, pieces: Vec<Piece>) -> Result<Step, RecordError> {
        let mut step: Step = self.read(pieces[0])?;
        let patches = self.header.patches.len();
        check_borders(&step.rows, patches).map_err(|what| self.damaged(&what))?;
        check::step(&step, &self.header).map_err(|what| self.damaged(&what))?;
        let known = |test: &TestCost| exists(test.patch, test.against, &self.header);
        if !step.forecast.iter().all(known) {
            return Err(self.damaged("a forecast of a patch or body that does not exist"));
        }
        let pair = |&(p, q): &(u32, u32)| exists(p, Against::Patch(q), &self.header);
        if !step.missed.iter().all(pair) {
            return Err(self.damaged("a pair of patches that do not exist"));
        }
        for piece in &pieces[1..] {
            let bytes = self.payload(*piece)?;
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let task = read_task(&mut rest).map_err(|e| self.damaged(&e.to_string()))?;
                if !task_exists(&task, &self.header) {
                    return Err(self.damaged("a task of a patch or body that does not exist"));
                }
                step.tasks.push(task);
            }
        }
        check::tasks(&step, &self.header).map_err(|what| self.damaged(&what))?;
        Ok(step)
    }

    /// Finds all pieces.
    fn pieces(&mut self, size: u64) -> Result<Vec<Piece>, RecordError> {
        let mut pieces = Vec::new();
        let mut at = MAGIC.len() as u64 + 1;
        while at < size {
            let head = self.bytes_at(at, 9)?;
            let mut length = [0; 8];
            length.copy_from_slice(&head[1..]);
            let length = u64::from_le_bytes(length);
            at += 9;
            if length > LARGEST {
                return Err(self.damaged("a piece of impossible length"));
            }
            let piece = Piece {
                letter: head[0],
                at,
                length,
            };
            pieces.push(piece);
            at += length + SUM as u64;
            if at > size {
                return Err(self.truncated());
            }
            if piece.letter == b'E' && at < size {
                // A piece that says that the record ends here is believed only if it does.
                self.read::<End>(piece)?;
                return Err(RecordError::Longer {
                    path: self.path.clone(),
                    bytes: size - at,
                });
            }
        }
        Ok(pieces)
    }

    fn read<T: DeserializeOwned>(&mut self, piece: Piece) -> Result<T, RecordError> {
        let bytes = self.payload(piece)?;
        wire::decode(&bytes).map_err(|what| self.damaged(&what))
    }

    fn payload(&mut self, piece: Piece) -> Result<Vec<u8>, RecordError> {
        let mut bytes = self.bytes_at(piece.at, piece.length + SUM as u64)?;
        let sum = bytes.split_off(piece.length as usize);
        if Sha256::digest(&bytes)[..SUM] != sum[..] {
            return Err(self.damaged("a sum is wrong"));
        }
        Ok(bytes)
    }

    fn bytes_at(&mut self, at: u64, length: u64) -> Result<Vec<u8>, RecordError> {
        let mut bytes = vec![0; length as usize];
        let read = self
            .file
            .seek(SeekFrom::Start(at))
            .and_then(|_| self.file.read_exact(&mut bytes));
        read.map_err(|source| match source.kind() {
            ErrorKind::UnexpectedEof => self.truncated(),
            _ => RecordError::Io {
                path: self.path.clone(),
                source,
            },
        })?;
        Ok(bytes)
    }

    fn truncated(&self) -> RecordError {
        RecordError::Truncated {
            path: self.path.clone(),
        }
    }

    fn damaged(&self, what: &str) -> RecordError {
        RecordError::Damaged {
            path: self.path.clone(),
            what: what.to_owned(),
        }
    }
}

fn read_task(bytes: &mut &[u8]) -> Result<Task, ShapeError> {
    let small = |bytes: &mut &[u8]| {
        read_number(bytes).and_then(|n| u32::try_from(n).map_err(|_| ShapeError::TooLarge))
    };
    let patch = small(bytes)?;
    let (kind, other) = (small(bytes)?, small(bytes)?);
    let against = match kind {
        0 => Against::Itself,
        1 => Against::Patch(other),
        2 => Against::Body(other),
        _ => return Err(ShapeError::Code),
    };
    let mut met = [0; 2];
    if kind == 1 {
        for met in &mut met {
            let [low, high] = [small(bytes)?, small(bytes)?].map(u64::from);
            *met = high << 32 | low;
        }
    }
    let tree = Tree::read(bytes)?;
    let mut routes = Vec::new();
    for _ in 0..small(bytes)? {
        let count = small(bytes)?;
        // A contact has at most four vertices.
        if count > 4 {
            return Err(ShapeError::TooLarge);
        }
        let patches = (0..count).map(|_| small(bytes)).collect::<Result<_, _>>()?;
        routes.push(Route {
            patches,
            contacts: small(bytes)?,
        });
    }
    Ok(Task {
        patch,
        against,
        tree,
        routes,
        met,
    })
}

fn task_exists(task: &Task, header: &Header) -> bool {
    let patch = |&patch: &u32| (patch as usize) < header.patches.len();
    let mut reported = task.routes.iter().flat_map(|route| &route.patches);
    let has = |(patch, pieces): (usize, u64)| pieces & !header.patches[patch].sizes.whole() == 0;
    exists(task.patch, task.against, header)
        && reported.all(patch)
        && task.reads(header).all(has)
        && begins(task)
}

/// Whether its tests begin as those of such a task do.
fn begins(task: &Task) -> bool {
    match task.against {
        Against::Patch(_) => true,
        Against::Itself | Against::Body(_) => task.tree.trees() <= 1,
    }
}

fn exists(patch: u32, against: Against, header: &Header) -> bool {
    let is_patch = |patch: u32| (patch as usize) < header.patches.len();
    is_patch(patch)
        && match against {
            Against::Itself => true,
            Against::Patch(other) => is_patch(other) && other > patch,
            Against::Body(body) => body < header.bodies,
        }
}
