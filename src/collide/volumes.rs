//! The bounding volumes of a step: of vertices, and of the trees over patches and moving bodies.
//!
//! What bounds a vertex's motion bounds, joined with that of the others, an edge's and a triangle's. So only vertices
//! are measured; all else is unions. Whatever belongs to a patch is made when a test first needs it, once per rank and step, for
//! a rank looks at few patches that are not its own. The room is kept from step to step.

use std::sync::{Mutex, OnceLock, PoisonError};

use super::firmness::{Firmness, Gradients};
use super::kdop::Kdop18;

/// Room for the volumes of a step; see [`Snapshot::new`](super::Snapshot::new).
#[derive(Debug, Default)]
pub struct Volumes {
    /// Of the vertices of each patch.
    pub(super) vertices: Vec<Kept<Kdop18>>,
    /// Of each patch as a whole: one value.
    pub(super) roots: Vec<Kept<Kdop18>>,
    pub(super) patches: Vec<Kept<Kdop18>>,
    pub(super) bodies: Vec<Kept<Kdop18>>,
    /// Of each tile of the cloth's charts: gradients of cells, squared firmness of blocks.
    pub(super) gradients: Vec<Kept<Gradients>>,
    pub(super) firmness: Vec<Kept<Firmness>>,
}

/// Volumes of a tree, or the like, once somebody has asked for them.
#[derive(Debug)]
pub(super) struct Kept<T> {
    values: OnceLock<Vec<T>>,
    room: Mutex<Vec<T>>,
}

impl Volumes {
    /// Forgets the last step.
    pub(super) fn begin(&mut self, patches: usize, bodies: usize, tiles: usize) {
        forget(&mut self.vertices, patches);
        forget(&mut self.roots, patches);
        forget(&mut self.patches, patches);
        forget(&mut self.bodies, bodies);
        forget(&mut self.gradients, tiles);
        forget(&mut self.firmness, tiles);
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
