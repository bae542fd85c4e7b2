//! The cut of a scene's cloth into patches and aggregates, by METIS or from a file.

use weft_partition::{
    AggregateOptions, Aggregates, Graph, PartitionError, PatchOptions, PatchTree,
};

use super::error::WorldError;
use super::prepared::{Prepared, Wanted};
use crate::physics::ClothModel;
use crate::scene::{Preconditioner, Scene};
use crate::solve::aggregate_options;

/// The graph of pairs of `n` vertices.
pub(super) fn graph_of(n: usize, pairs: &[[u32; 2]]) -> Result<Graph, PartitionError> {
    Graph::from_edges(n, pairs.iter().map(|&[a, b]| (a, b)))
}

/// Cuts the graph of the matrix, for bending couples a second ring, or takes the cut that a file
/// has. The graph comes first, in the numbering of the mesh.
pub(super) fn cut(
    wanted: &Wanted,
    model: &ClothModel,
    prepared: Option<&mut Prepared<'_>>,
) -> Result<(Graph, PatchTree), WorldError> {
    let n = model.masses().len();
    let (near, far) = model.couplings();
    let work = work(n, &near, &far);
    let mut pairs = near;
    pairs.extend(far);
    let graph = graph_of(n, &pairs)?.with_weights(work)?;
    drop(pairs);
    let tree = match prepared {
        Some(prepared) => prepared.take_tree(&graph, wanted)?,
        None => PatchTree::build(&graph, &wanted.patches)?,
    };
    Ok((graph, tree))
}

/// Cuts patches into aggregates, if the solve has more than one level, or takes those of a file.
/// The graph is in the numbering of the tree.
pub(super) fn aggregate(
    wanted: &Wanted,
    (graph, tree): (&Graph, &PatchTree),
    prepared: Option<Prepared<'_>>,
) -> Result<Option<Aggregates>, WorldError> {
    if let Some(prepared) = prepared {
        return Ok(prepared.aggregates(tree)?);
    }
    let build = |options: &AggregateOptions| Aggregates::build(graph, tree, options);
    Ok(wanted.aggregates.as_ref().map(build).transpose()?)
}

/// How a scene wants its graph to be cut.
pub(super) fn wanted(scene: &Scene) -> Wanted {
    let multilevel = scene.solver.preconditioner == Preconditioner::Multilevel;
    Wanted {
        patches: patch_options(scene),
        aggregates: multilevel.then(|| aggregate_options(scene.solver.tolerance)),
    }
}

/// The cost of each vertex in an iteration of the solve, in units of 16 bytes moved: its vectors,
/// its row's blocks of 76 bytes and its scalars of 12.
fn work(vertices: usize, near: &[[u32; 2]], far: &[[u32; 2]]) -> Vec<u32> {
    const VECTORS: u32 = 21;
    const BLOCK: u32 = 5;
    const SCALAR: u32 = 1;
    let mut work = vec![VECTORS + BLOCK; vertices];
    for (pairs, cost) in [(near, BLOCK), (far, SCALAR)] {
        for &vertex in pairs.iter().flatten() {
            work[vertex as usize] += cost;
        }
    }
    work
}

/// How a scene wants its cloth to be cut.
pub(super) fn patch_options(scene: &Scene) -> PatchOptions {
    PatchOptions {
        patches: scene.partition.patches,
        ..PatchOptions::default()
    }
}
