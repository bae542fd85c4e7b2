//! The bounding volumes of a step: of vertices, and of the trees over patches and moving bodies.
//!
//! What bounds a vertex's motion bounds, joined with that of the others, an edge's and a triangle's. So only vertices
//! are measured; all else is unions. Whatever belongs to a patch is made when a test first needs it, or before by a rank that
//! will test the patch whole, once per rank and step, for a rank looks at few patches that are not its own. The room is kept from step to step.

use std::sync::atomic::AtomicU8;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::charts::BLOCKS;
use super::firmness::{Firmness, Gradients, SIDES};
use super::kdop::Kdop18;
use super::packed::{Grid, Nodes, Packed, Siblings, Ways};
use super::refit::Refit;

/// Room for the volumes of a step; see [`Snapshot::new`](super::Snapshot::new).
#[derive(Debug, Default)]
pub struct Volumes {
    /// Of each patch as a whole: one value.
    pub(super) roots: Vec<Kept<Kdop18>>,
    /// What the others lie on.
    pub(super) grid: OnceLock<Grid>,
    /// Ways of the vertices of each patch's triangles, and their volumes.
    pub(super) ways: Vec<Kept<Ways>>,
    pub(super) vertices: Vec<Kept<Packed>>,
    pub(super) patches: Vec<Kept<Siblings>>,
    /// Of trees that are made piece by piece.
    pub(super) pieces: Vec<Mutex<Pieces>>,
    /// Of bodies that move, with the same of their vertices, and of those that rest.
    pub(super) body_ways: Vec<Kept<Ways>>,
    pub(super) body_vertices: Vec<Kept<Packed>>,
    pub(super) bodies: Vec<Kept<Siblings>>,
    pub(super) resting: Vec<OnceLock<Arc<Vec<Siblings>>>>,
    /// Of each tile of the cloth's charts: gradients of cells, those of cells beside it on each side, squared firmness of blocks.
    pub(super) gradients: Vec<Kept<Gradients>>,
    pub(super) beside: Vec<[Kept<Gradients>; SIDES]>,
    pub(super) firmness: Vec<Kept<Firmness>>,
    /// Of each block of all tiles, whether it is firm enough: [`UNKNOWN`] as long as nobody has asked, or one of the others.
    pub(super) firm: Vec<AtomicU8>,
}

/// A patch's tree, of which there is what somebody has asked for.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    /// Shared with whoever is testing it.
    volumes: Arc<Vec<Siblings>>,
    /// Whether the roots of pieces are there, and what is above them.
    begun: bool,
    /// Pieces that are there, a bit for each.
    open: u64,
    /// The patches against which it can be tested.
    others: Vec<u32>,
}

impl Pieces {
    fn forget(&mut self) {
        self.begun = false;
        self.open = 0;
        self.others.clear();
    }

    /// The pieces that are there, if anything is.
    pub(super) fn opened(&self) -> Option<u64> {
        self.begun.then_some(self.open)
    }

    /// The volume of the root, which is made if it is not there; none of a patch without triangles.
    pub(super) fn root(&mut self, refit: &Refit, vertices: &[Packed]) -> Option<Packed> {
        if !self.begun {
            refit.begin(vertices, Arc::make_mut(&mut self.volumes));
            self.begun = true;
        }
        Nodes(&self.volumes).root()
    }

    /// What tests against another patch look at.
    pub(super) fn against(&mut self, other: u32) -> Option<Arc<Vec<Siblings>>> {
        (self.others.contains(&other)).then(|| Arc::clone(&self.volumes))
    }

    /// The same, made now for one whose tree has this root; after [`root`](Self::root).
    pub(super) fn open(
        &mut self,
        (refit, vertices): (&Refit, &[Packed]),
        (other, root): (u32, Option<Packed>),
    ) -> Arc<Vec<Siblings>> {
        let met = root.map_or(0, |root| refit.met(&root, Nodes(&self.volumes)));
        let missing = met & !self.open;
        if missing != 0 {
            // Who still tests it has another copy.
            let volumes = Arc::make_mut(&mut self.volumes);
            refit.open(missing, vertices, volumes.as_mut_slice());
            self.open |= missing;
        }
        self.others.push(other);
        Arc::clone(&self.volumes)
    }

    /// All of it.
    pub(super) fn whole(&mut self, refit: &Refit, vertices: &[Packed]) -> Arc<Vec<Siblings>> {
        let missing = refit.whole() & !self.open;
        if !self.begun {
            refit.run(vertices, Arc::make_mut(&mut self.volumes));
        } else if missing != 0 {
            let volumes = Arc::make_mut(&mut self.volumes);
            refit.open(missing, vertices, volumes.as_mut_slice());
        }
        (self.begun, self.open) = (true, refit.whole());
        Arc::clone(&self.volumes)
    }
}

/// Volumes of a patch's tree that somebody tests.
#[derive(Debug)]
pub(super) enum Held<'a> {
    /// All of it.
    Whole(Nodes<'a>),
    /// As much of it as these tests look at.
    Pieces(Arc<Vec<Siblings>>),
}

impl Held<'_> {
    /// As tests ask for them.
    pub(super) fn nodes(&self) -> Nodes<'_> {
        match self {
            Self::Whole(nodes) => *nodes,
            Self::Pieces(volumes) => Nodes(volumes),
        }
    }
}

/// Nobody has asked yet.
pub(super) const UNKNOWN: u8 = 0;
/// Firm enough.
pub(super) const FIRM: u8 = 1;
/// Not firm enough.
pub(super) const LOOSE: u8 = 2;

/// Volumes of a tree, or the like, once somebody has asked for them.
#[derive(Debug)]
pub(super) struct Kept<T> {
    values: OnceLock<Vec<T>>,
    room: Mutex<Vec<T>>,
}

impl Volumes {
    /// Forgets the last step.
    pub(super) fn begin(&mut self, patches: usize, bodies: usize, tiles: usize) {
        forget(&mut self.ways, patches);
        forget(&mut self.vertices, patches);
        forget(&mut self.roots, patches);
        forget(&mut self.patches, patches);
        self.pieces.resize_with(patches, Mutex::default);
        for pieces in &mut self.pieces {
            let pieces = pieces.get_mut().unwrap_or_else(PoisonError::into_inner);
            pieces.forget();
        }
        forget(&mut self.body_ways, bodies);
        forget(&mut self.body_vertices, bodies);
        forget(&mut self.bodies, bodies);
        self.resting.clear();
        self.resting.resize_with(bodies, OnceLock::new);
        self.grid = OnceLock::new();
        forget(&mut self.gradients, tiles);
        self.beside.resize_with(tiles, Default::default);
        self.beside
            .as_flattened_mut()
            .iter_mut()
            .for_each(Kept::forget);
        forget(&mut self.firmness, tiles);
        self.firm
            .iter_mut()
            .for_each(|firm| *firm.get_mut() = UNKNOWN);
        self.firm.resize_with(tiles * BLOCKS, AtomicU8::default);
    }
}

fn forget<T>(all: &mut Vec<Kept<T>>, count: usize) {
    all.resize_with(count, Kept::default);
    all.iter_mut().for_each(Kept::forget);
}

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Self {
            values: OnceLock::new(),
            room: Mutex::default(),
        }
    }
}

impl<T> Kept<T> {
    fn forget(&mut self) {
        if let Some(values) = self.values.take() {
            *self.room.get_mut().unwrap_or_else(PoisonError::into_inner) = values;
        }
    }

    /// Whether somebody has asked for them.
    pub(super) fn is_made(&self) -> bool {
        self.values.get().is_some()
    }

    /// The values, which `fill` writes in place of others if this is the first time.
    #[inline]
    pub(super) fn of(&self, fill: impl FnOnce(&mut Vec<T>)) -> &[T] {
        self.values.get_or_init(|| {
            let mut room = self.room.lock().unwrap_or_else(PoisonError::into_inner);
            let mut values = std::mem::take(&mut *room);
            fill(&mut values);
            values
        })
    }
}
