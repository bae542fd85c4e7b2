//! Cutting one branch of the tree in two: METIS, and a plain sweep for what METIS leaves undone.
//!
//! Out: for each vertex of the subgraph whether it lies on the second side. Both sides hold at
//! least as many vertices as they will have patches, so that no patch can end up empty.

use std::sync::{Mutex, PoisonError};

use crate::PartitionError;
use crate::subgraph::Subgraph;

/// METIS draws from the C library's `rand`, which is one for the whole process. Ranks may be
/// threads of one process, and must all get the same tree.
static METIS: Mutex<()> = Mutex::new(());

/// Cuts a subgraph into two sides of about equal weight with few edges between them.
///
/// Each side gets at least `least` vertices; `2 * least` must not exceed the number of vertices.
///
/// # Errors
/// [`PartitionError::Metis`] if METIS fails, which means that memory ran out.
pub(crate) fn bisect(
    graph: &Subgraph,
    least: usize,
    seed: i32,
) -> Result<Vec<bool>, PartitionError> {
    debug_assert!(2 * least <= graph.len());
    // Without edges there is nothing to optimise; a sweep is balanced and cannot fail.
    if graph.neighbours.is_empty() {
        return Ok(sweep(graph, least));
    }
    let sides = metis(graph, seed)?;
    if has_room(&sides, least) && heavier_side(graph, &sides) <= MAX_SHARE * total(graph) {
        return Ok(sides);
    }
    let swept = sweep(graph, least);
    // One vertex may outweigh all others: then neither is balanced, and the better cut is kept.
    if has_room(&sides, least) && heavier_side(graph, &sides) <= heavier_side(graph, &swept) {
        Ok(sides)
    } else {
        Ok(swept)
    }
}

/// Cuts an order of the vertices where the weight before the cut is nearest to one half.
///
/// Vertices before the cut are on the first side; each side gets at least `least` of them.
pub(crate) fn cut_order(order: &[usize], weights: &[i32], least: usize) -> Vec<bool> {
    let total: i64 = weights.iter().map(|&weight| i64::from(weight)).sum();
    let mut before = 0;
    let mut best = (i64::MAX, least);
    for (cut, &v) in (1..).zip(order) {
        before += i64::from(weights[v]);
        let off = (2 * before - total).abs();
        if cut >= least && cut + least <= order.len() && off < best.0 {
            best = (off, cut);
        }
    }
    let mut sides = vec![false; order.len()];
    for &v in &order[best.1..] {
        sides[v] = true;
    }
    sides
}

fn metis(graph: &Subgraph, seed: i32) -> Result<Vec<bool>, PartitionError> {
    let failed = |reason: String| PartitionError::Metis {
        vertices: graph.len(),
        reason,
    };
    let mut part = vec![0; graph.len()];
    {
        let _alone = METIS.lock().unwrap_or_else(PoisonError::into_inner);
        metis::Graph::new(1, 2, &graph.offsets, &graph.neighbours)
            .map_err(|error| failed(error.to_string()))?
            .set_vwgt(&graph.weights)
            .set_option(metis::option::Seed(seed))
            .part_recursive(&mut part)
            .map_err(|error| failed(error.to_string()))?;
    }
    Ok(part.into_iter().map(|side| side != 0).collect())
}

fn sweep(graph: &Subgraph, least: usize) -> Vec<bool> {
    cut_order(&graph.level_order(), &graph.weights, least)
}

fn has_room(sides: &[bool], least: usize) -> bool {
    let second = sides.iter().filter(|second| **second).count();
    second >= least && sides.len() - second >= least
}

fn total(graph: &Subgraph) -> f64 {
    graph.weights.iter().map(|&weight| f64::from(weight)).sum()
}

fn heavier_side(graph: &Subgraph, sides: &[bool]) -> f64 {
    let second: f64 = (graph.weights.iter().zip(sides))
        .filter(|(_, second)| **second)
        .map(|(&weight, _)| f64::from(weight))
        .sum();
    second.max(total(graph) - second)
}

/// The largest share of the weight that one side may have before the cut counts as unbalanced.
const MAX_SHARE: f64 = 0.55;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Graph;
    use crate::subgraph::Extractor;

    fn whole(graph: &Graph) -> Subgraph {
        let all: Vec<u32> = graph.vertices().collect();
        Extractor::new(graph).extract(&all)
    }

    #[test]
    fn cut_is_nearest_to_half_the_weight_and_leaves_room() {
        assert_eq!(cut_order(&[0, 1, 2], &[5, 1, 1], 1), [false, true, true]);
        assert_eq!(cut_order(&[2, 1, 0], &[5, 1, 1], 1), [true, false, false]);
        // Half the weight is before the first vertex's end, but two vertices are wanted on each
        // side.
        assert_eq!(
            cut_order(&[0, 1, 2, 3], &[9, 1, 1, 1], 2),
            [false, false, true, true]
        );
        assert_eq!(
            cut_order(&[0, 1, 2, 3], &[1, 1, 1, 9], 2),
            [false, false, true, true]
        );
    }

    #[test]
    fn a_star_is_cut_with_room_on_both_sides() {
        // METIS is free to leave the hub alone with its weight; each side still needs four
        // vertices.
        let mut weights = vec![1; 8];
        weights[0] = 1000;
        let star = Graph::from_edges(8, (1..8).map(|v| (0, v))).unwrap();
        let sides = bisect(&whole(&star.with_weights(weights).unwrap()), 4, 1).unwrap();
        assert_eq!(sides.iter().filter(|second| **second).count(), 4);
    }

    #[test]
    fn two_components_are_separated_without_cutting_an_edge() {
        let ring = |start: u32| (0..50).map(move |v| (start + v, start + (v + 1) % 50));
        let graph = Graph::from_edges(100, ring(0).chain(ring(50))).unwrap();
        let sides = bisect(&whole(&graph), 1, 1).unwrap();
        assert!(graph.vertices().all(|v| {
            graph
                .neighbours(v)
                .iter()
                .all(|&w| sides[v as usize] == sides[w as usize])
        }));
    }
}
