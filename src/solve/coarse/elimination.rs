//! The order in which the coarse system is eliminated, and the blocks of its factor.
//!
//! Minimum degree in its plainest form: the vertex with the fewest neighbours goes next, the lowest
//! number among equals, and its neighbours become neighbours of each other. These neighbours are
//! the rows of its column in the factor, so that order and pattern come out together. The coarse
//! graph has a few thousand vertices, is made once for a mesh, and every rank finds the same order:
//! nothing cleverer is needed.

use std::collections::BTreeSet;

use weft_partition::Graph;

use crate::heap_bytes::counts_heap;

/// An elimination order and the pattern of the factor under it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Elimination {
    /// The vertex eliminated at each step.
    pub(super) order: Vec<u32>,
    /// The step at which each vertex is eliminated.
    pub(super) step_of: Vec<u32>,
    /// The starts of the rows of each column; one more than there are columns.
    pub(super) starts: Vec<usize>,
    /// Rows of the blocks below the diagonal, as steps, ascending in each column.
    pub(super) rows: Vec<u32>,
}

counts_heap!(Elimination: order, step_of, starts, rows);

impl Elimination {
    /// Rows of a column.
    pub(super) fn column(&self, column: usize) -> &[u32] {
        &self.rows[self.starts[column]..self.starts[column + 1]]
    }

    pub(super) fn new(graph: &Graph) -> Self {
        let count = graph.vertex_count();
        let mut adjacent: Vec<Vec<u32>> = graph
            .vertices()
            .map(|v| graph.neighbours(v).to_vec())
            .collect();
        let mut queue: BTreeSet<(usize, u32)> = (graph.vertices())
            .map(|v| (adjacent[v as usize].len(), v))
            .collect();
        let mut order = Vec::with_capacity(count);
        let mut step_of = vec![0; count];
        let mut columns = Vec::with_capacity(count);
        while let Some((_, v)) = queue.pop_first() {
            step_of[v as usize] = order.len() as u32;
            order.push(v);
            let column = std::mem::take(&mut adjacent[v as usize]);
            for &other in &column {
                let before = &adjacent[other as usize];
                queue.remove(&(before.len(), other));
                let mut after: Vec<u32> = before.iter().chain(&column).copied().collect();
                after.sort_unstable();
                after.dedup();
                after.retain(|&w| w != v && w != other);
                queue.insert((after.len(), other));
                adjacent[other as usize] = after;
            }
            columns.push(column);
        }
        let mut starts = vec![0];
        let mut rows = Vec::new();
        for mut column in columns {
            for row in &mut column {
                *row = step_of[*row as usize];
            }
            column.sort_unstable();
            rows.extend(column);
            starts.push(rows.len());
        }
        Self {
            order,
            step_of,
            starts,
            rows,
        }
    }

    /// The place of a block below the diagonal.
    pub(super) fn find(&self, row: u32, column: u32) -> Option<usize> {
        let start = self.starts[column as usize];
        let rows = &self.rows[start..self.starts[column as usize + 1]];
        rows.binary_search(&row).ok().map(|at| start + at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_eliminated_from_its_rays_without_fill() {
        let star = Graph::from_edges(6, (1..6).map(|v| (0, v))).unwrap();
        let elimination = Elimination::new(&star);
        assert_eq!(elimination.order[..4], [1, 2, 3, 4]);
        assert_eq!(elimination.rows.len(), 5);
    }

    #[test]
    fn a_ring_fills_one_chord_a_vertex() {
        let ring = Graph::from_edges(6, (0..6).map(|v| (v, (v + 1) % 6))).unwrap();
        let elimination = Elimination::new(&ring);
        // Two below each vertex but the last two.
        assert_eq!(elimination.rows.len(), 2 * 4 + 1);
        for (step, &v) in (0..).zip(&elimination.order) {
            assert_eq!(elimination.step_of[v as usize], step);
        }
        assert!(elimination.find(5, 4).is_some());
    }

    #[test]
    fn the_factor_of_a_grid_stays_sparse() {
        let side = 30_u32;
        let edges = (0..side * side).flat_map(|v| {
            let right = (v % side + 1 < side).then_some((v, v + 1));
            right
                .into_iter()
                .chain((v / side + 1 < side).then_some((v, v + side)))
        });
        let grid = Graph::from_edges(900, edges.collect::<Vec<_>>()).unwrap();
        let blocks = Elimination::new(&grid).rows.len();
        // By rows it would be 30 blocks a column.
        assert!(blocks < 12 * 900, "{blocks}");
    }
}
