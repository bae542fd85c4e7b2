//! The bounding volumes of a step: of vertices, and of the trees over patches and moving bodies.
//!
//! A volume that bounds the motions of an edge's or a triangle's vertices bounds its own. So only
//! vertices are measured, and all other volumes are unions. The volumes of a patch are made once
//! per rank and step, when a test first needs them, or before by a rank that will test the patch
//! whole: a rank looks at few patches that are not its own, and at few subtrees of these. The room
//! is kept from step to step.

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
use crate::collide::cull::separation_bound::{Gradients, SIDES, SeparationBound};
use crate::heap_bytes::{HeapBytes, counts_heap};

/// The room for the volumes of a step; see [`Snapshot::new`](crate::collide::Snapshot::new).
#[derive(Debug, Default)]
pub struct Volumes {
    /// The volume around each patch: one value.
    pub(in crate::collide) roots: Vec<Kept<Kdop18>>,
    /// The nodes of the patch tree, and the balls around them.
    pub(in crate::collide) merged: Kept<Kdop18>,
    pub(in crate::collide) balls: Kept<Ball>,
    /// The boxes around the subtrees of each patch's tree.
    pub(in crate::collide) boxes: Vec<Kept<Boxes>>,
    /// The grid on which all other volumes lie.
    pub(in crate::collide) grid: OnceLock<Grid>,
    /// The volumes of the vertices of each patch's triangles, and those of its tree.
    pub(in crate::collide) vertices: Vec<Kept<Quantised>>,
    pub(in crate::collide) patches: Vec<Kept<Siblings>>,
    /// The tree of each patch, if it is made subtree by subtree.
    pub(in crate::collide) subtrees: Vec<Mutex<Subtrees>>,
    /// The displacements and volumes of the vertices, and the volumes of the tree, of each body
    /// that moves; for each that rests, those of its tree.
    pub(in crate::collide) body_displacements: Vec<Kept<Displacements>>,
    pub(in crate::collide) body_vertices: Vec<Kept<Quantised>>,
    pub(in crate::collide) bodies: Vec<Kept<Siblings>>,
    /// The boxes around the patches of each body that moves and has any, and its tree as far as it
    /// was made.
    pub(in crate::collide) body_boxes: Vec<Kept<Boxes>>,
    pub(in crate::collide) body_patches: Vec<Mutex<Subtrees>>,
    pub(in crate::collide) resting: Vec<OnceLock<Arc<Vec<Siblings>>>>,
    /// The gradients of cells, those of cells beside it on each side that came from other ranks,
    /// and the separation bounds of blocks, for each tile of the cloth's charts.
    pub(in crate::collide) gradients: Vec<Kept<Gradients>>,
    pub(in crate::collide) beside: Vec<[Kept<Gradients>; SIDES]>,
    pub(in crate::collide) separation_bounds: Vec<Kept<SeparationBound>>,
    /// The flags that say, for each block of all tiles, whether its bound keeps features apart:
    /// [`UNKNOWN`], [`KEPT_APART`] or [`MAY_MEET`].
    pub(in crate::collide) kept_apart: Vec<AtomicU8>,
}

counts_heap!(Volumes:
    roots, merged, balls, boxes, vertices, patches, subtrees, body_displacements,
    body_vertices, bodies, body_boxes, body_patches, gradients, beside, separation_bounds, kept_apart;
    without grid, resting
);

/// A patch's tree, of which the subtrees are made that tests have asked for.
#[derive(Debug, Default)]
pub(in crate::collide) struct Subtrees {
    /// The volumes, shared with the tests that read them.
    made: Arc<MadeVolumes>,
    /// The subtrees that are made, a bit for each.
    open: u64,
    /// Whether the nodes above them are made too.
    whole: bool,
    /// The room for places of vertices.
    places: Vec<u32>,
}

counts_heap!(Subtrees: made, places; without open, whole);

/// The volumes of a tree, and those of vertices as far as those of all were not known.
#[derive(Clone, Debug, Default)]
pub(in crate::collide) struct MadeVolumes {
    nodes: Vec<Siblings>,
    vertices: Vec<Quantised>,
}

counts_heap!(MadeVolumes: nodes, vertices);

impl Subtrees {
    fn forget(&mut self) {
        self.open = 0;
        self.whole = false;
    }

    /// The subtrees that are made, if there are any.
    pub(in crate::collide) fn opened(&self) -> Option<u64> {
        (self.open != 0).then_some(self.open)
    }

    /// Makes these subtrees, if they are missing. The volumes of all vertices are `known`, or
    /// `measure` fills in those of some places.
    pub(in crate::collide) fn open(
        &mut self,
        (refit, which): (&Refit, u64),
        known: Option<&[Quantised]>,
        measure: impl FnOnce(&[u32], &mut Vec<Quantised>),
    ) -> Arc<MadeVolumes> {
        let missing = which & !self.open;
        if missing != 0 {
            // A test that is still running keeps another copy.
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

    /// Makes the whole tree, from vertices whose volumes are known.
    pub(in crate::collide) fn whole(
        &mut self,
        refit: &Refit,
        known: &[Quantised],
    ) -> Arc<MadeVolumes> {
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

/// The volumes of a patch's tree and vertices, held by a test.
#[derive(Debug)]
pub(in crate::collide) enum Held<'a> {
    /// All of them.
    Whole(Nodes<'a>, &'a [Quantised]),
    /// The part of the tree that these tests look at, and all vertices or those of these subtrees.
    Subtrees(Arc<MadeVolumes>, Option<&'a [Quantised]>),
}

impl Held<'_> {
    /// The volumes of nodes, as tests ask for them.
    pub(in crate::collide) fn nodes(&self) -> Nodes<'_> {
        match self {
            Self::Whole(nodes, _) => *nodes,
            Self::Subtrees(made, _) => Nodes(&made.nodes),
        }
    }

    /// The volumes of the vertices of the patch's triangles.
    pub(in crate::collide) fn vertices(&self) -> &[Quantised] {
        match self {
            Self::Whole(_, all) | Self::Subtrees(_, Some(all)) => all,
            Self::Subtrees(made, None) => &made.vertices,
        }
    }
}

/// The mark of a block that no test has asked for yet.
pub(in crate::collide) const UNKNOWN: u8 = 0;
/// The mark of a block whose bound keeps features apart that are not rest-adjacent.
pub(in crate::collide) const KEPT_APART: u8 = 1;
/// The mark of a block whose features may meet.
pub(in crate::collide) const MAY_MEET: u8 = 2;

/// Volumes or the like that are made when they are first asked for.
#[derive(Debug)]
pub(in crate::collide) struct Kept<T> {
    values: OnceLock<Vec<T>>,
    room: Mutex<Vec<T>>,
}

impl<T: HeapBytes> HeapBytes for Kept<T> {
    fn heap_bytes(&self) -> usize {
        let Self { values, room } = self;
        values.heap_bytes() + room.heap_bytes()
    }
}

impl Volumes {
    /// The volume around each of this number of patches, if all of them have been made.
    pub(crate) fn around_patches(&self, patches: usize) -> Option<Vec<Kdop18>> {
        let roots = self.roots.get(..patches)?.iter();
        roots.map(|root| root.made()?.first().copied()).collect()
    }

    /// Forgets the last step.
    pub(in crate::collide) fn begin(&mut self, patches: usize, bodies: usize, tiles: usize) {
        forget(&mut self.vertices, patches);
        forget(&mut self.roots, patches);
        self.merged.forget();
        self.balls.forget();
        forget(&mut self.boxes, patches);
        forget(&mut self.patches, patches);
        forget(&mut self.body_boxes, bodies);
        self.subtrees.resize_with(patches, Mutex::default);
        self.body_patches.resize_with(bodies, Mutex::default);
        for subtrees in self.subtrees.iter_mut().chain(&mut self.body_patches) {
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

    /// Whether they have been made.
    pub(in crate::collide) fn is_made(&self) -> bool {
        self.made().is_some()
    }

    /// The values, if they have been made.
    pub(in crate::collide) fn made(&self) -> Option<&[T]> {
        self.values.get().map(Vec::as_slice)
    }

    /// The values. `fill` writes them in place of older ones if this is the first time.
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
