//! The bounding volumes of a step: of vertices, and of the trees over patches and moving bodies.
//!
//! What bounds a vertex's motion bounds, joined with that of the others, an edge's and a triangle's. So only vertices
//! are measured; all else is unions. A tree is refitted when a test first needs it, once per rank and step, for a rank
//! looks below the roots of few patches that are not its own. The room is kept from step to step.

use std::sync::{Mutex, OnceLock, PoisonError};

use glam::DVec3;

use super::bvh::Bvh;
use super::kdop::Kdop18;

/// Room for the volumes of a step; see [`Snapshot::new`](super::Snapshot::new).
#[derive(Debug, Default)]
pub struct Volumes {
    pub(super) vertices: Vec<Kdop18>,
    /// Of the tree over each patch.
    pub(super) roots: Vec<Kdop18>,
    pub(super) patches: Vec<Refitted>,
    pub(super) bodies: Vec<Refitted>,
}

/// Volumes of a tree, once somebody has asked for them.
#[derive(Debug, Default)]
pub(super) struct Refitted {
    volumes: OnceLock<Vec<Kdop18>>,
    room: Mutex<Vec<Kdop18>>,
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
        for (trees, count) in [
            (&mut self.patches, patch_vertices.len()),
            (&mut self.bodies, bodies),
        ] {
            trees.resize_with(count, Refitted::default);
            trees.iter_mut().for_each(Refitted::forget);
        }
    }
}

impl Refitted {
    fn forget(&mut self) {
        if let Some(volumes) = self.volumes.take() {
            *self.room.get_mut().unwrap_or_else(PoisonError::into_inner) = volumes;
        }
    }

    /// The volumes of the nodes of `tree`, made of those of its triangles if this is the first time.
    pub(super) fn of(&self, tree: &Bvh, leaf: impl Fn(u32) -> Kdop18) -> &[Kdop18] {
        self.volumes.get_or_init(|| {
            let mut room = self.room.lock().unwrap_or_else(PoisonError::into_inner);
            let mut volumes = std::mem::take(&mut *room);
            tree.refit(leaf, &mut volumes);
            volumes
        })
    }
}
