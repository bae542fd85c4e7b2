//! The record of a run: what its steps test, cost and send.
//!
//! A file `*.weftrec` begins with `WEFTREC` and a version byte. Pieces follow: a letter that says
//! what the piece is, its length (8 bytes, little-endian), its bytes, and the first 8 bytes of
//! their SHA-256.
//!
//! | piece | holds |
//! |---|---|
//! | `H` | the [`Header`], first |
//! | `L` | a [`Step`] of the warm-up, without its tasks; these precede the steps that count |
//! | `S` | a step that counts, without its tasks |
//! | `T` | some tasks of that step, with their trees; as many such pieces as it takes |
//! | `E` | the [`End`], last: without it the file was cut off, and nothing comes after it |
//!
//! Writing and reading hold one step at a time. Bytes that are damaged, or that no run has written,
//! are refused.

mod check;
mod read;
mod write;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use weft_balance::cost::{Against, TestCost};
use weft_balance::preparation::PatchSizes;
use weft_balance::prices::{Counts, Prices};
use weft_balance::separation::Tile;
use weft_io::Show as _;

pub use self::read::Record;
pub use self::write::RecordWriter;
use crate::shape::Tree;

const MAGIC: [u8; 7] = *b"WEFTREC";
/// The version of the format. Version 1 had separation bounds in the price of a node, no tiles and
/// no columns; 3 no forecasts; 4 no lengths of coarse unknowns; 5 no pieces of trees; 6 no warm-up;
/// 7 no price of moving boundaries; 8 neither vertices of pieces nor pairs that are missed; 9 had
/// columns of the coarse factor in an order that does not follow the patch tree.
const VERSION: u8 = 10;
/// Largest piece.
const LARGEST: u64 = 1 << 30;
/// Longest name of a scene, in bytes, as scenes have it.
const LONGEST_NAME: usize = 64;
/// Bytes of a piece's sum.
const SUM: usize = 8;
/// Bytes of tasks after which a new piece begins.
const PIECE: usize = 4 << 20;

/// The part of a record that does not change from step to step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// The program that wrote it.
    pub program: String,
    /// The scene's name.
    pub scene: String,
    /// The scene's title.
    pub title: String,
    /// Bodies that cloth is tested against.
    pub bodies: u32,
    /// Whether cloth is tested against cloth.
    pub self_collision: bool,
    /// The patches, in order; a power of two.
    pub patches: Vec<Patch>,
    /// The tiles whose separation bounds leave out tests, in the order in which ranks share them;
    /// none if no tests are left out.
    pub tiles: Vec<Tile>,
    /// Vertices that the solve reads across borders of patches.
    pub borders: Vec<Border>,
    /// Unknowns of the coarse level of the solve, six numbers each; about as many in each patch.
    pub aggregates: u32,
    /// The columns of the factor of the coarse matrix, in the order of elimination.
    pub coarse: Vec<Column>,
    /// Bytes of one in a message of an iteration.
    pub aggregate_bytes: u32,
    /// Bytes of a contact in a message.
    pub contact_bytes: u32,
    /// Bytes of a vertex of the new state in a message.
    pub state_bytes: u32,
}

/// A patch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Patch {
    /// Vertices.
    pub vertices: u32,
    /// Work of its vertices in the solve.
    pub weight: u64,
    /// The sizes of what its tests read.
    pub sizes: PatchSizes,
}

/// A column of the factor of the coarse matrix.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// The patch of the unknown.
    pub patch: u32,
    /// The later columns that it changes, ascending.
    pub rows: Vec<u32>,
}

/// Vertices of a patch that just these other patches read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Border {
    /// The patch.
    pub owner: u32,
    /// The others, ascending.
    pub readers: Vec<u32>,
    /// How many vertices.
    pub vertices: u32,
}

/// A step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Its number, from 1.
    pub number: u64,
    /// The times of the phases when it was recorded, on one rank, in ns.
    pub measured: [f64; 5],
    /// Products with the matrix in the solve; each is an iteration, or looks at the residual.
    pub products: u32,
    /// Linear systems solved.
    pub systems: u32,
    /// Rounds of impulses.
    pub rounds: u32,
    /// Rounds after which ranks asked each other how far they are.
    pub looks: u32,
    /// Passes that rows of impulses were collected in.
    pub passes: u32,
    /// Vertices of contacts that other patches' contacts need.
    pub rows: Vec<Border>,
    /// The prices in this step.
    pub prices: Prices,
    /// How far single tasks were off the prices, as a share of all time.
    pub price_error: f64,
    /// The costs that its top-level tests were expected to have.
    pub forecast: Vec<TestCost>,
    /// Whether ranks make a new assignment before it.
    pub plans: bool,
    /// The pairs of patches whose roots meet and of which nothing is tested. Finding that costs as
    /// much as finding where tests begin.
    pub missed: Vec<(u32, u32)>,
    /// Its top-level tasks, in the order in which they are forked.
    #[serde(skip)]
    pub tasks: Vec<Task>,
}

/// A top-level task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Task {
    /// A patch.
    pub patch: u32,
    /// The partner against which it was tested.
    pub against: Against,
    /// Its tests.
    pub tree: Tree,
    /// Contacts found, by the patches of their vertices.
    pub routes: Vec<Route>,
    /// The pieces of both patches' trees that tests may look into, a bit for each, if the task is
    /// of two patches.
    pub met: [u64; 2],
}

/// Contacts of the same patches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The patches that own vertices of them, ascending; contacts are sent to no others.
    pub patches: Vec<u32>,
    /// How many.
    pub contacts: u32,
}

/// The facts that are known at the end of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct End {
    /// The number of steps in the record, including the warm-up.
    pub steps: u32,
    /// The median of the prices of the steps that count.
    pub prices: Prices,
}

impl Task {
    /// The contacts that it finds.
    #[must_use]
    pub fn contacts(&self) -> u64 {
        (self.routes.iter())
            .map(|route| u64::from(route.contacts))
            .sum()
    }

    /// The patches, if it is of two.
    pub(crate) fn pair(&self) -> Option<(usize, usize)> {
        match self.against {
            Against::Patch(other) => Some((self.patch as usize, other as usize)),
            Against::Itself | Against::Body(_) => None,
        }
    }

    /// The patches that it reads, each with the pieces of its tree.
    pub(crate) fn reads(&self, header: &Header) -> impl Iterator<Item = (usize, u64)> + use<> {
        let patch = self.patch as usize;
        let [met, met_of_other] = self.met;
        let of = match self.against {
            Against::Patch(other) => [Some((patch, met)), Some((other as usize, met_of_other))],
            Against::Itself | Against::Body(_) => {
                [Some((patch, header.patches[patch].sizes.whole())), None]
            }
        };
        of.into_iter().flatten()
    }
}

impl Step {
    /// Tests of all its tasks.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for visit in self.tasks.iter().flat_map(|task| task.tree.visits()) {
            visit.add_to(&mut counts);
        }
        counts
    }
}

impl Header {
    /// Vertices of the cloth.
    #[must_use]
    pub fn vertices(&self) -> u64 {
        self.patches
            .iter()
            .map(|patch| u64::from(patch.vertices))
            .sum()
    }

    /// Nodes of the trees of all patches.
    #[must_use]
    pub fn nodes(&self) -> u64 {
        let nodes = self.patches.iter().map(|p| u64::from(p.sizes.nodes));
        nodes.sum()
    }

    /// Vertices of the triangles of all patches.
    #[must_use]
    pub fn around(&self) -> u64 {
        let around = self.patches.iter().map(|p| u64::from(p.sizes.around));
        around.sum()
    }

    /// Checks that it makes sense; the error is a sentence without its end.
    fn check(&self) -> Result<(), String> {
        // It becomes part of names of files.
        let suits = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        if self.scene.len() > LONGEST_NAME || !self.scene.bytes().all(suits) {
            return Err("its scene has a name that no scene can have".to_owned());
        }
        let patches = self.patches.len();
        if !patches.is_power_of_two() {
            return Err(format!("{patches} patches, which is no power of two"));
        }
        if self.patches.iter().any(|patch| patch.vertices == 0) {
            return Err("a patch without vertices".to_owned());
        }
        if !self.patches.iter().all(|patch| patch.sizes.is_valid()) {
            return Err("a patch whose tree is not made of its pieces".to_owned());
        }
        let exists = |&tile: &u32| (tile as usize) < self.tiles.len();
        if !self.tiles.iter().all(|tile| tile.beside.iter().all(exists)) {
            return Err("a tile beside one that does not exist".to_owned());
        }
        let later = |(at, column): (usize, &Column)| {
            let good = |&row: &u32| (at + 1..self.coarse.len()).contains(&(row as usize));
            (column.patch as usize) < patches && column.rows.iter().all(good)
        };
        if !self.coarse.iter().enumerate().all(later) {
            return Err("a coarse unknown of a patch or beside one that does not exist".to_owned());
        }
        check_borders(&self.borders, patches)?;
        check::header(self)
    }
}

fn check_borders(borders: &[Border], patches: usize) -> Result<(), String> {
    let exists = |&patch: &u32| (patch as usize) < patches;
    let good = |border: &Border| exists(&border.owner) && border.readers.iter().all(exists);
    if borders.iter().all(good) {
        Ok(())
    } else {
        Err("a border of a patch that does not exist".to_owned())
    }
}

/// The reason why there is no record.
#[derive(Debug, Error)]
pub enum RecordError {
    /// It cannot be read or written.
    #[error("{}: {source}", path.shown())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// It is something else.
    #[error("{} is no record of a run; make one with `weft run SCENE --record`", path.shown())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// Another version of the format.
    #[error("{} has version {found} of the format, this program reads {VERSION}; record the run again", path.shown())]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u8,
    },
    /// It ends too early.
    #[error("{} was cut off: the run that recorded it did not end; record it again", path.shown())]
    Truncated {
        /// The file.
        path: PathBuf,
    },
    /// The file has more bytes than the record.
    #[error("{} has {bytes} bytes after the end of the record: take them away, or record the run again", path.shown())]
    Longer {
        /// The file.
        path: PathBuf,
        /// Bytes after the end.
        bytes: u64,
    },
    /// It was changed, or never right.
    #[error("{} is damaged: {}; record the run again", path.shown(), what.shown())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The fault.
        what: String,
    },
    /// The record has no steps.
    #[error("{} holds no step: the run ended before the first that was to be recorded", path.shown())]
    Empty {
        /// The file.
        path: PathBuf,
    },
}
