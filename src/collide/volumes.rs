//! The bounding volumes of a step: of vertices, and of the trees over patches and moving bodies.
//!
//! What bounds a vertex's motion bounds, joined with that of the others, an edge's and a triangle's. So only vertices
//! are measured; all else is unions. A tree is refitted when a test first needs it, once per rank and step, for a rank
//! looks below the roots of few patches that are not its own. The room is kept from step to step.

use std::sync::{Mutex, OnceLock, PoisonError};

use glam::DVec3;

use super::firmness::Gradients;
use super::kdop::Kdop18;

/// Room for the volumes of a step; see [`Snapshot::new`](super::Snapshot::new).
#[derive(Debug, Default)]
pub struct Volumes {
    pub(super) vertices: Vec<Kdop18>,
    /// Of the tree over each patch.
    pub(super) roots: Vec<Kdop18>,
    pub(super) patches: Vec<Kept<Kdop18>>,
    pub(super) bodies: Vec<Kept<Kdop18>>,
    /// Of each tile of the cloth's charts: gradients of cells, squared firmness of blocks.
    pub(super) gradients: Vec<Kept<Gradients>>,
    pub(super) firmness: Vec<Kept<f32>>,
}

/// Volumes of a tree, or the like, once somebody has asked for them.
#[derive(Debug)]
pub(super) struct Kept<T> {
    values: OnceLock<Vec<T>>,
    room: Mutex<Vec<T>>,
}

impl Volumes {
    /// Forgets the last step, and measures the vertices of this one: those within `radius` (m) of their way from `x`
    /// on with velocity `v` for `dt`.
    pub(super) fn begin(
        &mut self,
        (x, v, dt): (&[DVec3], &[DVec3], f64),
        radius: f64,
        patch_vertices: &[Vec<u32>],
        bodies: usize,
        tiles: usize,
    ) {
        let around = |(&x, &v): (&DVec3, &DVec3)| Kdop18::around(&[x, x + v * dt], radius);
        self.vertices.clear();
        self.vertices.extend(x.iter().zip(v).map(around));
        self.roots.clear();
        for vertices in patch_vertices {
            let volumes = vertices.iter().map(|&v| &self.vertices[v as usize]);
            self.roots
                .push(volumes.fold(Kdop18::EMPTY, |a, b| a.union(b)));
        }
        forget(&mut self.patches, patch_vertices.len());
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
