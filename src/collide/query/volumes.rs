//! The bounding volumes of a step: of vertices, and of the trees over patches and moving bodies.
//!
//! What bounds a vertex's motion bounds, joined with that of the others, an edge's and a triangle's. So only vertices
//! are measured; all else is unions. Whatever belongs to a patch is made when a test first needs it, or before by a rank that
//! will test the patch whole, once per rank and step, for a rank looks at few patches that are not its own, and at few subtrees of these. The room is
//! kept from step to step.

use std::sync::atomic::AtomicU8;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::collide::bvh::displacements::Displacements;
use crate::collide::bvh::grid::Grid;
use crate::collide::bvh::kdop::Kdop18;
use crate::collide::bvh::patch_tree::Ball;
use crate::collide::bvh::quantised::{Nodes, Quantised, Siblings};
use crate::collide::bvh::refit::Refit;
use crate::collide::bvh::seed_pairs::Boxes;
use crate::collide::cull::charts::BLOCKS;
use crate::collide::cull::separation_bound::{Bound, Gradients, SIDES};

/// Room for the volumes of a step; see [`Snapshot::new`](crate::collide::Snapshot::new).
#[derive(Debug, Default)]
pub struct Volumes {
    /// Of each patch as a whole: one value.
    pub(in crate::collide) roots: Vec<Kept<Kdop18>>,
    /// The nodes of the patch tree, and the balls around them.
    pub(in crate::collide) merged: Kept<Kdop18>,
    pub(in crate::collide) balls: Kept<Ball>,
    /// Boxes around the subtrees of each patch's tree.
    pub(in crate::collide) boxes: Vec<Kept<Boxes>>,
    /// What the others lie on.
    pub(in crate::collide) grid: OnceLock<Grid>,
    /// Displacements of the vertices of each patch's triangles, and their volumes.
    pub(in crate::collide) displacements: Vec<Kept<Displacements>>,
    pub(in crate::collide) vertices: Vec<Kept<Quantised>>,
    pub(in crate::collide) patches: Vec<Kept<Siblings>>,
    /// Of trees that are made subtree by subtree.
    pub(in crate::collide) subtrees: Vec<Mutex<Subtrees>>,
    /// Of bodies that move, with the same of their vertices, and of those that rest.
    pub(in crate::collide) body_displacements: Vec<Kept<Displacements>>,
    pub(in crate::collide) body_vertices: Vec<Kept<Quantised>>,
    pub(in crate::collide) bodies: Vec<Kept<Siblings>>,
    pub(in crate::collide) resting: Vec<OnceLock<Arc<Vec<Siblings>>>>,
    /// Of each tile of the cloth's charts: gradients of cells, those of cells beside it on each side, squared firmness of blocks.
    pub(in crate::collide) gradients: Vec<Kept<Gradients>>,
    pub(in crate::collide) beside: Vec<[Kept<Gradients>; SIDES]>,
    pub(in crate::collide) separation_bounds: Vec<Kept<Bound>>,
    /// Of each block of all tiles, whether it is firm enough: [`UNKNOWN`] as long as nobody has asked, or one of the others.
    pub(in crate::collide) kept_apart: Vec<AtomicU8>,
}

/// A patch's tree, of which there are the subtrees that somebody has asked for.
#[derive(Debug, Default)]
pub(in crate::collide) struct Subtrees {
    /// Shared with whoever is testing it.
    made: Arc<Made>,
    /// Subtrees that are there, a bit for each.
    open: u64,
    /// Whether what is above them is there too.
    whole: bool,
    /// Room for places of vertices.
    places: Vec<u32>,
}

/// Volumes of a tree, and of vertices as far as those of all were not known.
#[derive(Clone, Debug, Default)]
pub(in crate::collide) struct Made {
    nodes: Vec<Siblings>,
    vertices: Vec<Quantised>,
}

impl Subtrees {
    fn forget(&mut self) {
        self.open = 0;
        self.whole = false;
    }

    /// The subtrees that are there, if there are any.
    pub(in crate::collide) fn opened(&self) -> Option<u64> {
        (self.open != 0).then_some(self.open)
    }

    /// With these subtrees. Volumes of all vertices are `known`, or `measure` fills in those of some places.
    pub(in crate::collide) fn open(
        &mut self,
        (refit, which): (&Refit, u64),
        known: Option<&[Quantised]>,
        measure: impl FnOnce(&[u32], &mut Vec<Quantised>),
    ) -> Arc<Made> {
        let missing = which & !self.open;
        if missing != 0 {
            // Who still tests it has another copy.
            let made = Arc::make_mut(&mut self.made);
            if let Some(known) = known {
                refit.open(missing, known, &mut made.nodes);
            } else {
                self.places.clear();
                refit.places(missing, self.open, &mut self.places);
                measure(&self.places, &mut made.vertices);
                refit.open(missing, &made.vertices, &mut made.nodes);
            }
            self.open |= missing;
        }
        Arc::clone(&self.made)
    }

    /// All of it, of vertices whose volumes are known.
    pub(in crate::collide) fn whole(&mut self, refit: &Refit, known: &[Quantised]) -> Arc<Made> {
        if !self.whole {
            let nodes = &mut Arc::make_mut(&mut self.made).nodes;
            if self.open == 0 {
                refit.run(known, nodes);
            } else {
                refit.open(refit.whole() & !self.open, known, nodes);
                refit.join(nodes);
            }
            (self.open, self.whole) = (refit.whole(), true);
        }
        Arc::clone(&self.made)
    }
}

/// Volumes of a patch's tree and vertices that somebody tests.
#[derive(Debug)]
pub(in crate::collide) enum Held<'a> {
    /// All of them.
    Whole(Nodes<'a>, &'a [Quantised]),
    /// As much of the tree as these tests look at; of vertices all, or what those subtrees have.
    Subtrees(Arc<Made>, Option<&'a [Quantised]>),
}

impl Held<'_> {
    /// Of nodes, as tests ask for them.
    pub(in crate::collide) fn nodes(&self) -> Nodes<'_> {
        match self {
            Self::Whole(nodes, _) => *nodes,
            Self::Subtrees(made, _) => Nodes(&made.nodes),
        }
    }

    /// Of the vertices of the patch's triangles.
    pub(in crate::collide) fn vertices(&self) -> &[Quantised] {
        match self {
            Self::Whole(_, all) | Self::Subtrees(_, Some(all)) => all,
            Self::Subtrees(made, None) => &made.vertices,
        }
    }
}

/// Nobody has asked yet.
pub(in crate::collide) const UNKNOWN: u8 = 0;
/// Firm enough.
pub(in crate::collide) const KEPT_APART: u8 = 1;
/// Not firm enough.
pub(in crate::collide) const MAY_MEET: u8 = 2;

/// Volumes of a tree, or the like, once somebody has asked for them.
#[derive(Debug)]
pub(in crate::collide) struct Kept<T> {
    values: OnceLock<Vec<T>>,
    room: Mutex<Vec<T>>,
}

impl Volumes {
    /// Forgets the last step.
    pub(in crate::collide) fn begin(&mut self, patches: usize, bodies: usize, tiles: usize) {
        forget(&mut self.displacements, patches);
        forget(&mut self.vertices, patches);
        forget(&mut self.roots, patches);
        self.merged.forget();
        self.balls.forget();
        forget(&mut self.boxes, patches);
        forget(&mut self.patches, patches);
        self.subtrees.resize_with(patches, Mutex::default);
        for subtrees in &mut self.subtrees {
            let subtrees = subtrees.get_mut().unwrap_or_else(PoisonError::into_inner);
            subtrees.forget();
        }
        forget(&mut self.body_displacements, bodies);
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
        forget(&mut self.separation_bounds, tiles);
        self.kept_apart
            .iter_mut()
            .for_each(|kept_apart| *kept_apart.get_mut() = UNKNOWN);
        self.kept_apart
            .resize_with(tiles * BLOCKS, AtomicU8::default);
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
    pub(in crate::collide) fn is_made(&self) -> bool {
        self.made().is_some()
    }

    /// The values, if somebody has asked for them.
    pub(in crate::collide) fn made(&self) -> Option<&[T]> {
        self.values.get().map(Vec::as_slice)
    }

    /// The values, which `fill` writes in place of others if this is the first time.
    #[inline]
    pub(in crate::collide) fn of(&self, fill: impl FnOnce(&mut Vec<T>)) -> &[T] {
        self.values.get_or_init(|| {
            let mut room = self.room.lock().unwrap_or_else(PoisonError::into_inner);
            let mut values = std::mem::take(&mut *room);
            fill(&mut values);
            values
        })
    }
}
