//! Hierarchies of bounding volumes: trees, their volumes, and how two trees are tested.

pub(super) mod displacements;
pub(super) mod extent;
pub(super) mod grid;
pub(super) mod kdop;
pub(super) mod patch_tree;
pub(super) mod quantised;
pub(super) mod refit;
pub(super) mod seed_pairs;
pub(super) mod traversal;
pub(super) mod tree;
