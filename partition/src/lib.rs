//! The patch tree: recursive bisection of a mesh, ownership for any rank count, numbering and halo
//! lists.
//!
//! The graph of the matrix is cut recursively into 2^m *patches*. How many depends on the mesh
//! alone, never on how many ranks run it; ranks own contiguous ranges of patches. Whatever is
//! summed is summed within a patch in vertex order and then up the tree, so that results do not
//! depend on the number of ranks.
//!
//! | module | holds |
//! |---|---|
//! | [`graph`] | [`Graph`], the symmetric adjacency that everything starts from |
//! | [`patch_tree`] | [`PatchTree`], the bisection and the new numbering |
//! | [`ownership`] | [`Ownership`], which rank owns which patches |
//! | [`halo_plan`] | [`HaloPlan`], what a rank needs from and sends to others |
//! | [`tree_sum`] | [`TreeSum`], sums with the same bits on any number of ranks |
//! | [`aggregates`] | [`Aggregates`], patches cut further, for a coarse system |
//! | [`quality`] | [`Quality`], how good a partition is |
//! | [`by_metis`] | METIS itself, also cutting into k parts at once, for comparison |
//! | [`rcb`] | recursive coordinate bisection, for comparison, and where METIS has no graph |
//!
//! Known here: neither messages nor cloth. Every rank computes the same tree from the same graph,
//! or takes it from another rank by [`PatchTree::from_numbering`].
//!
//! ```
//! use weft_partition::{Graph, HaloPlan, Ownership, PatchOptions, PatchTree};
//!
//! // A chain of 300 vertices, in patches of at least 64.
//! let chain = Graph::from_edges(300, (0..299).map(|v| (v, v + 1)))?;
//! let tree = PatchTree::build(&chain, &PatchOptions::default())?;
//! assert_eq!(tree.patch_count(), 4);
//!
//! let ownership = Ownership::new(&tree, 2)?;
//! let plan = HaloPlan::new(&chain.renumbered(&tree)?, &ownership, 0)?;
//! assert_eq!(plan.halo().len(), 1);
//! # Ok::<(), weft_partition::PartitionError>(())
//! ```

use std::borrow::Cow;

pub mod aggregates;
mod bisect;
pub mod by_metis;
mod error;
pub mod graph;
pub mod halo_plan;
pub mod ownership;
pub mod patch_tree;
pub mod quality;
pub mod rcb;
pub mod shares;
mod subgraph;
#[cfg(test)]
mod testing;
pub mod tree_sum;

pub use aggregates::{AggregateArrays, AggregateOptions, Aggregates};
pub use error::PartitionError;
pub use graph::{Graph, GraphArrays};
pub use halo_plan::{HaloPlan, Neighbour};
pub use ownership::Ownership;
pub use patch_tree::{PatchOptions, PatchTree, PatchTreeArrays};
pub use quality::{Quality, RankQuality};
pub use shares::even_shares;
pub use tree_sum::{Subtree, TreeSum};

/// The bytes on the heap of an array that may be a part of a mapped file.
#[expect(clippy::ptr_arg, reason = "whether it is owned is the question")]
fn cow_bytes<T: Clone>(array: &Cow<'static, [T]>) -> usize {
    match array {
        Cow::Borrowed(_) => 0,
        Cow::Owned(array) => array_bytes(array),
    }
}

/// The bytes of an array of elements, by its capacity.
fn array_bytes<T>(array: &Vec<T>) -> usize {
    array.capacity() * size_of::<T>()
}
