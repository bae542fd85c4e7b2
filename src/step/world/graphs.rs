//! Graphs and trees of the partition in archives.

use std::io;

use weft_partition::{
    AggregateArrays, Aggregates, Graph, GraphArrays, PartitionError, PatchTree, PatchTreeArrays,
};

use super::Graphs;
use crate::archive::{Archive as _, ArchiveFault, Array, Loader, Saver};

/// Arrays that do not belong together.
fn unlike(_: PartitionError) -> ArchiveFault {
    ArchiveFault::OtherLayout
}

pub(super) fn save_tree(tree: &PatchTree, to: &mut Saver<'_>) -> io::Result<()> {
    let PatchTreeArrays {
        offsets,
        weights,
        new_to_old,
        old_to_new,
        patch_of,
    } = tree.arrays();
    offsets.save(to)?;
    weights.save(to)?;
    to.array(&new_to_old)?;
    to.array(&old_to_new)?;
    to.array(&patch_of)
}

pub(super) fn load_tree(from: &mut Loader<'_>) -> Result<PatchTree, ArchiveFault> {
    let arrays = PatchTreeArrays {
        offsets: Vec::load(from)?,
        weights: Vec::load(from)?,
        new_to_old: from.array()?,
        old_to_new: from.array()?,
        patch_of: from.array()?,
    };
    PatchTree::from_arrays(arrays).map_err(unlike)
}

fn save_graph(graph: &Graph, to: &mut Saver<'_>) -> io::Result<()> {
    let GraphArrays {
        offsets,
        neighbours,
        weights,
    } = graph.arrays();
    to.array(&offsets)?;
    to.array(&neighbours)?;
    weights.is_some().save(to)?;
    weights.map_or(Ok(()), |weights| to.array(&weights))
}

fn load_graph(from: &mut Loader<'_>) -> Result<Graph, ArchiveFault> {
    let (offsets, neighbours) = (from.array()?, from.array()?);
    let weights = Option::<Array<u32>>::load(from)?;
    let arrays = GraphArrays {
        offsets,
        neighbours,
        weights,
    };
    Graph::from_arrays(arrays).map_err(unlike)
}

pub(super) fn save_graphs(graphs: &Graphs, to: &mut Saver<'_>) -> io::Result<()> {
    let Graphs {
        matrix,
        near,
        far,
        aggregates,
        coarse,
    } = graphs;
    for graph in [matrix, near, far] {
        save_graph(graph, to)?;
    }
    aggregates.is_some().save(to)?;
    let Some(aggregates) = aggregates else {
        return Ok(());
    };
    let AggregateArrays {
        of_vertex,
        offsets,
        group_of_vertex,
        group_offsets,
    } = aggregates.arrays();
    for array in [of_vertex, offsets, group_of_vertex, group_offsets] {
        to.array(&array)?;
    }
    coarse.is_some().save(to)?;
    coarse
        .as_ref()
        .map_or(Ok(()), |coarse| save_graph(coarse, to))
}

pub(super) fn load_graphs(tree: &PatchTree, from: &mut Loader<'_>) -> Result<Graphs, ArchiveFault> {
    let [matrix, near, far] = [load_graph(from)?, load_graph(from)?, load_graph(from)?];
    let (mut aggregates, mut coarse) = (None, None);
    if bool::load(from)? {
        let arrays = AggregateArrays {
            of_vertex: from.array()?,
            offsets: from.array()?,
            group_of_vertex: from.array()?,
            group_offsets: from.array()?,
        };
        aggregates = Some(Aggregates::from_arrays(tree, arrays).map_err(unlike)?);
        if bool::load(from)? {
            coarse = Some(load_graph(from)?);
        }
    }
    Ok(Graphs {
        matrix,
        near,
        far,
        aggregates,
        coarse,
    })
}
