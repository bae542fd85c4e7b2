//! Recursive coordinate bisection: the median split of [Selle et al. 2009], for comparison and as
//! fallback.
//!
//! In: a position for each vertex. Out: the same [`PatchTree`] that METIS would make, cut across
//! the longest extent of the bounding box instead of where few edges are. On a flat sheet it is
//! nearly as good; on a rolled or crumpled one its halo is a multiple, and patches fall into
//! pieces.

use crate::bisect::cut_order;
use crate::graph::{check_length, count_u32};
use crate::{Graph, PartitionError, PatchOptions, PatchTree};

/// Cuts at the median coordinate, along the axis in which the branch is longest. The seed is not
/// used.
///
/// # Errors
/// [`PartitionError::Length`] if there is not one position (m) for each vertex,
/// [`PartitionError::NonFinite`] if one is not a number, [`PartitionError::PatchCount`] as in
/// [`PatchTree::build`].
pub fn build(
    graph: &Graph,
    positions: &[[f64; 3]],
    options: &PatchOptions,
) -> Result<PatchTree, PartitionError> {
    check(graph, positions)?;
    let patches = options.patches_for(graph.vertex_count())?;
    PatchTree::by_bisection(graph, patches, |part, vertices, least| {
        let order = along_the_longest_axis(positions, vertices);
        Ok(cut_order(&order, &part.weights, [least; 2], 0.5))
    })
}

/// The part of each vertex when any number of parts is cut so, each branch in proportion to its
/// parts.
///
/// # Errors
/// As [`build`].
pub fn parts(
    graph: &Graph,
    positions: &[[f64; 3]],
    parts: usize,
) -> Result<Vec<u32>, PartitionError> {
    check(graph, positions)?;
    let vertices = graph.vertex_count();
    if parts == 0 || parts > vertices {
        return Err(PartitionError::PatchCount {
            patches: parts,
            vertices,
        });
    }
    let mut part_of = vec![0; vertices];
    let mut branches = vec![(graph.vertices().collect::<Vec<u32>>(), 0..parts)];
    while let Some((vertices, range)) = branches.pop() {
        if range.len() == 1 {
            for &v in &vertices {
                part_of[v as usize] = count_u32(range.start);
            }
            continue;
        }
        let first = range.len() / 2;
        let weights: Vec<i32> = (vertices.iter())
            .map(|&v| i32::try_from(graph.weight(v)).unwrap_or(i32::MAX))
            .collect();
        let order = along_the_longest_axis(positions, &vertices);
        let share = first as f64 / range.len() as f64;
        let sides = cut_order(&order, &weights, [first, range.len() - first], share);
        let side = |second: bool| -> Vec<u32> {
            let chosen = vertices.iter().zip(&sides).filter(|(_, s)| **s == second);
            chosen.map(|(&v, _)| v).collect()
        };
        let middle = range.start + first;
        branches.push((side(false), range.start..middle));
        branches.push((side(true), middle..range.end));
    }
    Ok(part_of)
}

fn check(graph: &Graph, positions: &[[f64; 3]]) -> Result<(), PartitionError> {
    check_length("positions", graph.vertex_count(), positions.len())?;
    let finite = |position: &[f64; 3]| position.iter().all(|coordinate| coordinate.is_finite());
    match (0..).zip(positions).find(|(_, position)| !finite(position)) {
        Some((vertex, _)) => Err(PartitionError::NonFinite { vertex }),
        None => Ok(()),
    }
}

/// Places in `vertices`, in the order of their coordinates along the axis in which they extend
/// farthest.
fn along_the_longest_axis(positions: &[[f64; 3]], vertices: &[u32]) -> Vec<usize> {
    let at = |v: usize, axis: usize| positions[vertices[v] as usize][axis];
    let extent = |axis: usize| {
        let coordinates = || (0..vertices.len()).map(|v| at(v, axis));
        coordinates().fold(f64::MIN, f64::max) - coordinates().fold(f64::MAX, f64::min)
    };
    // The first of equals, so that a cube is cut across x.
    let longest = (1..3).fold(0, |best, axis| {
        if extent(axis) > extent(best) {
            axis
        } else {
            best
        }
    });
    let mut order: Vec<usize> = (0..vertices.len()).collect();
    order.sort_by(|&a, &b| at(a, longest).total_cmp(&at(b, longest)).then(a.cmp(&b)));
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Quality;
    use crate::testing::grid;

    const SIDE: u32 = 32;

    fn flat(v: u32) -> [f64; 3] {
        [f64::from(v % SIDE), f64::from(v / SIDE), 0.0]
    }

    fn four(graph: &Graph, positions: &[[f64; 3]]) -> Quality {
        let tree = build(
            graph,
            positions,
            &PatchOptions {
                patches: Some(4),
                seed: 0,
            },
        )
        .unwrap();
        Quality::of_patches(&graph.renumbered(&tree).unwrap(), &tree).unwrap()
    }

    #[test]
    fn a_flat_square_is_cut_into_quarters() {
        let graph = grid(SIDE);
        let positions: Vec<_> = graph.vertices().map(flat).collect();
        let quality = four(&graph, &positions);
        assert_eq!(quality.edge_cut, 2 * SIDE as usize);
        assert_eq!(quality.components, [1; 4]);
        assert!((quality.imbalance - 1.0).abs() < 1e-12);
    }

    #[test]
    fn any_number_of_parts_is_even() {
        let graph = grid(SIDE);
        let positions: Vec<_> = graph.vertices().map(flat).collect();
        for count in [1, 3, 12, 1024] {
            let part_of = parts(&graph, &positions, count).unwrap();
            let quality = Quality::new(&graph, &part_of, count).unwrap();
            assert!(quality.imbalance < 1.03, "{count}: {quality:?}");
            assert!(quality.components.iter().all(|&c| c == 1), "{count}");
        }
        let four = four(&graph, &positions);
        let quarters = parts(&graph, &positions, 4).unwrap();
        assert_eq!(Quality::new(&graph, &quarters, 4).unwrap(), four);
        assert!(parts(&graph, &positions, 0).is_err() && parts(&graph, &positions, 1025).is_err());
    }

    /// The graph is cut and not the space, since positions of a folded sheet say little about its
    /// graph.
    #[test]
    fn a_folded_sheet_is_cut_worse_than_by_its_graph() {
        let graph = grid(SIDE);
        // Sixteen layers on top of each other, longer across the layers than along them.
        let folded: Vec<_> = (graph.vertices().map(flat))
            .map(|[x, y, _]| [0.01 * (x % 2.0), 0.001 * y, (x / 2.0).floor() * 1e-4])
            .collect();
        let by_space = four(&graph, &folded);
        let tree = PatchTree::build(
            &graph,
            &PatchOptions {
                patches: Some(4),
                seed: 1,
            },
        )
        .unwrap();
        let by_graph = Quality::of_patches(&graph.renumbered(&tree).unwrap(), &tree).unwrap();
        assert!(
            by_space.halo_total() > by_graph.halo_total(),
            "{by_space:?} against {by_graph:?}"
        );
    }

    #[test]
    fn bad_positions_are_refused() {
        let graph = Graph::from_edges(2, [(0, 1)]).unwrap();
        let options = PatchOptions::default();
        assert!(matches!(
            build(&graph, &[[0.0; 3]], &options),
            Err(PartitionError::Length { .. })
        ));
        assert_eq!(
            build(&graph, &[[0.0; 3], [0.0, f64::NAN, 0.0]], &options),
            Err(PartitionError::NonFinite { vertex: 1 })
        );
    }
}
