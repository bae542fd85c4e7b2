//! Cutting one branch of the tree in two: METIS, and a plain sweep for what METIS leaves undone.
//!
//! Out: for each vertex of the subgraph whether it lies on the second side. Both sides hold at
//! least as many vertices as they will have patches, so that no patch can end up empty.

use crate::PartitionError;
use crate::by_metis::{How, cut};
use crate::subgraph::Subgraph;

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
    let sides: Vec<bool> = (cut(graph, 2, (How::Bisections, seed))?.into_iter())
        .map(|side| side != 0)
        .collect();
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

/// Cuts an order of the vertices where the weight before the cut is nearest to `share` of all.
///
/// Vertices before the cut are on the first side, at least `least[0]` of them, and at least
/// `least[1]` on the second.
pub(crate) fn cut_order(
    order: &[usize],
    weights: &[i32],
    least: [usize; 2],
    share: f64,
) -> Vec<bool> {
    let total: f64 = order.iter().map(|&v| f64::from(weights[v])).sum();
    let mut before = 0.0;
    let mut best = (f64::INFINITY, least[0]);
    for (cut, &v) in (1..).zip(order) {
        before += f64::from(weights[v]);
        let off = (before - share * total).abs();
        if cut >= least[0] && cut + least[1] <= order.len() && off < best.0 {
            best = (off, cut);
        }
    }
    let mut sides = vec![false; order.len()];
    for &v in &order[best.1..] {
        sides[v] = true;
    }
    sides
}

fn sweep(graph: &Subgraph, least: usize) -> Vec<bool> {
    cut_order(&graph.level_order(), &graph.weights, [least; 2], 0.5)
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
        let halves = |order: &[usize], weights: &[i32], least: usize| {
            cut_order(order, weights, [least; 2], 0.5)
        };
        assert_eq!(halves(&[0, 1, 2], &[5, 1, 1], 1), [false, true, true]);
        assert_eq!(halves(&[2, 1, 0], &[5, 1, 1], 1), [true, false, false]);
        // Half the weight is before the first vertex's end, but two vertices are wanted on each
        // side.
        assert_eq!(
            halves(&[0, 1, 2, 3], &[9, 1, 1, 1], 2),
            [false, false, true, true]
        );
        assert_eq!(
            halves(&[0, 1, 2, 3], &[1, 1, 1, 9], 2),
            [false, false, true, true]
        );
        // One third of the weight, for one part of three.
        assert_eq!(
            cut_order(&[0, 1, 2], &[1, 1, 1], [1, 2], 1.0 / 3.0),
            [false, true, true]
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
