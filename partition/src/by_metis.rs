//! The one place where METIS is called, and its partition into k parts at once, to compare the tree
//! with.
//!
//! A tree can only be cut where its branches are; k-way partitioning [Karypis and Kumar 1998] sees
//! all k parts at the same time and may find less to cut. It serves one number of ranks only,
//! though.

use std::sync::{Mutex, PoisonError};

use crate::subgraph::{Extractor, Subgraph};
use crate::{Graph, PartitionError};

/// METIS draws from the C library's `rand`, which is one for the whole process. Ranks may be
/// threads of one process, and must all get the same parts.
static METIS: Mutex<()> = Mutex::new(());

/// The part of each vertex when METIS cuts the graph into `parts` at once.
///
/// # Errors
/// [`PartitionError::PatchCount`] for no parts or more than vertices; [`PartitionError::Metis`] if
/// METIS fails, which means that memory ran out.
pub fn k_way(graph: &Graph, parts: usize, seed: i32) -> Result<Vec<u32>, PartitionError> {
    let vertices = graph.vertex_count();
    if parts == 0 || parts > vertices {
        return Err(PartitionError::PatchCount {
            patches: parts,
            vertices,
        });
    }
    if parts == 1 {
        return Ok(vec![0; vertices]);
    }
    let all: Vec<u32> = graph.vertices().collect();
    let how = if parts == 2 {
        How::Bisections
    } else {
        How::KWay
    };
    let part = cut(&Extractor::new(graph).extract(&all), parts, (how, seed))?;
    Ok(part.into_iter().map(i32::cast_unsigned).collect())
}

/// How METIS goes about it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum How {
    Bisections,
    KWay,
}

/// Cuts a graph with METIS: by bisection again and again, or k ways at once.
pub(crate) fn cut(
    graph: &Subgraph,
    parts: usize,
    (how, seed): (How, i32),
) -> Result<Vec<i32>, PartitionError> {
    let failed = |reason: String| PartitionError::Metis {
        vertices: graph.len(),
        reason,
    };
    let mut part = vec![0; graph.len()];
    let count = i32::try_from(parts).map_err(|error| failed(error.to_string()))?;
    {
        let _alone = METIS.lock().unwrap_or_else(PoisonError::into_inner);
        let problem = metis::Graph::new(1, count, &graph.offsets, &graph.neighbours)
            .map_err(|error| failed(error.to_string()))?
            .set_vwgt(&graph.weights)
            .set_option(metis::option::Seed(seed));
        let done = match how {
            How::Bisections => problem.part_recursive(&mut part),
            How::KWay => problem.part_kway(&mut part),
        };
        done.map_err(|error| failed(error.to_string()))?;
    }
    Ok(part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Quality;
    use crate::testing::grid;

    const SIDE: u32 = 40;

    /// The cut of a square into k even parts is never less than the isoperimetric bound; METIS
    /// comes near.
    #[test]
    fn parts_are_even_and_cut_little() {
        let graph = grid(SIDE);
        for parts in [2, 5, 12] {
            let part_of = k_way(&graph, parts, 1).unwrap();
            let quality = Quality::new(&graph, &part_of, parts).unwrap();
            assert!(quality.imbalance < 1.05, "{parts}: {quality:?}");
            assert!(quality.components.iter().all(|&c| c == 1), "{quality:?}");
            // Squares would have half their outline inside the grid, and that of others, at least.
            let squares = 2.0 * (f64::from(SIDE) * (parts as f64).sqrt() - f64::from(SIDE));
            assert!(
                (quality.edge_cut as f64) < 1.5 * squares.max(f64::from(SIDE)),
                "{quality:?}"
            );
            assert_eq!(k_way(&graph, parts, 1).unwrap(), part_of);
        }
        assert_eq!(k_way(&graph, 1, 1).unwrap(), vec![0; 1600]);
    }

    #[test]
    fn bad_counts_are_refused() {
        let graph = grid(SIDE);
        for parts in [0, 1601] {
            let refused = k_way(&graph, parts, 1);
            assert!(matches!(refused, Err(PartitionError::PatchCount { .. })));
        }
    }
}
