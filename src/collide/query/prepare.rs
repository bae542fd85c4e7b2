//! The preparation of what tests read, before any asks for it.
//!
//! Everything that a test needs is made when it asks. Where several threads test, all may ask for
//! the same at once, and all but one wait. So they first make what every test asks for, each its
//! own share.

use std::collections::BTreeMap;

use crate::collide::cloth::ClothSurface;
use crate::collide::query::snapshot::Snapshot;

impl Snapshot<'_> {
    /// Makes the volumes of the vertices of a patch.
    pub(crate) fn make_vertex_volumes(&self, patch: usize) {
        self.vertex_volumes(patch as u32);
    }

    /// Makes the volumes of a patch's tree.
    pub(crate) fn make_tree_volumes(&self, patch: usize) {
        self.patch_volumes(patch as u32);
    }

    /// Makes everything that tests of a patch against itself or a body read of it.
    pub(crate) fn make_whole(&self, patch: usize) {
        self.whole_volumes(patch as u32);
    }

    /// Makes boxes around the subtrees of a patch's tree.
    pub(crate) fn make_boxes(&self, patch: usize) {
        self.boxes(patch as u32);
    }
}

/// The sizes of the subtrees of a patch's tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PatchSubtrees {
    /// The number of nodes of each subtree.
    pub(crate) nodes: Vec<u32>,
    /// The sets of subtrees that share vertices, a bit for each subtree, with the number of these
    /// vertices; sets ascend.
    pub(crate) vertices: Vec<(u64, u32)>,
}

/// Tells the sizes of the subtrees of a patch's tree.
pub(crate) fn subtrees(cloth: &ClothSurface, patch: usize) -> PatchSubtrees {
    let refit = cloth.refit(patch as u32);
    let mut kinds = BTreeMap::new();
    for &subtrees in refit.shared() {
        *kinds.entry(subtrees).or_default() += 1;
    }
    PatchSubtrees {
        nodes: refit.subtrees().collect(),
        vertices: kinds.into_iter().collect(),
    }
}
