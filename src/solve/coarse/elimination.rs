//! The order in which a symmetric block matrix is eliminated, and the blocks of its factor.
//!
//! Minimum degree in its plainest form: the vertex with the fewest neighbours goes next, the lowest
//! number among equals, and its neighbours become neighbours of each other. These neighbours are
//! the rows of its column in the factor, so that order and pattern come out together. Vertices may
//! be kept: they come last, in the order of their numbers, and are not eliminated. Their columns
//! are those of the Schur complement, which the others leave. Graphs have few vertices and are made
//! once for a mesh, and every rank finds the same order: nothing cleverer is needed.

use std::collections::BTreeSet;

use weft_partition::Graph;

use crate::heap_bytes::{counts_heap, owns_no_heap};

/// An elimination order and the pattern of the factor under it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Elimination {
    /// How many vertices are eliminated.
    pub(super) eliminated: usize,
    /// The vertex of each step: those that are eliminated, and those that are kept.
    pub(super) order: Vec<u32>,
    /// The step of each vertex.
    pub(super) step_of: Vec<u32>,
    /// The starts of the rows of each column; one more than there are columns.
    pub(super) starts: Vec<u32>,
    /// Rows of the blocks below the diagonal, as steps, ascending in each column.
    pub(super) rows: Vec<u32>,
}

counts_heap!(Elimination: order, step_of, starts, rows; without eliminated);

/// The place in the factor that a block of a matrix starts from.
#[derive(Clone, Copy, Debug)]
pub(super) enum Target {
    Diagonal(u32),
    Below(u32),
    /// Rows and columns change places: the row is eliminated before the column.
    Transposed(u32),
}

owns_no_heap!(Target);

impl Default for Elimination {
    /// The elimination of a matrix without rows.
    fn default() -> Self {
        Self {
            eliminated: 0,
            order: Vec::new(),
            step_of: Vec::new(),
            starts: vec![0],
            rows: Vec::new(),
        }
    }
}

impl Elimination {
    /// Rows of a column.
    pub(super) fn column(&self, column: usize) -> &[u32] {
        &self.rows[self.starts[column] as usize..self.starts[column + 1] as usize]
    }

    /// How many blocks the eliminated columns have below the diagonal.
    pub(super) fn blocks_eliminated(&self) -> usize {
        self.starts[self.eliminated] as usize
    }

    /// The products of blocks that factoring takes, those on the diagonal counted as others.
    pub(super) fn products(&self) -> usize {
        let rows = (0..self.eliminated).map(|column| self.column(column).len());
        rows.map(|rows| (rows + 1) * (rows + 2) / 2).sum()
    }

    /// The order and pattern for a matrix with a block for each edge.
    pub(super) fn new(graph: &Graph, is_kept: impl Fn(u32) -> bool) -> Self {
        let count = graph.vertex_count();
        let mut adjacent: Vec<Vec<u32>> = graph
            .vertices()
            .map(|v| graph.neighbours(v).to_vec())
            .collect();
        let mut queue: BTreeSet<(usize, u32)> = (graph.vertices())
            .filter(|&v| !is_kept(v))
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
                let waits = queue.remove(&(before.len(), other));
                let mut after: Vec<u32> = before.iter().chain(&column).copied().collect();
                after.sort_unstable();
                after.dedup();
                after.retain(|&w| w != v && w != other);
                if waits {
                    queue.insert((after.len(), other));
                }
                adjacent[other as usize] = after;
            }
            columns.push(column);
        }
        let eliminated = order.len();
        for v in graph.vertices().filter(|&v| is_kept(v)) {
            step_of[v as usize] = order.len() as u32;
            order.push(v);
            let behind = adjacent[v as usize].iter().copied();
            columns.push(behind.filter(|&other| other > v).collect());
        }
        let mut starts = vec![0];
        let mut rows = Vec::new();
        for mut column in columns {
            for row in &mut column {
                *row = step_of[*row as usize];
            }
            column.sort_unstable();
            rows.extend(column);
            starts.push(rows.len() as u32);
        }
        // They stay as long as the run does.
        rows.shrink_to_fit();
        Self {
            eliminated,
            order,
            step_of,
            starts,
            rows,
        }
    }

    /// The place of a block below the diagonal.
    fn find(&self, row: u32, column: u32) -> Option<u32> {
        let at = self.column(column as usize).binary_search(&row).ok()?;
        Some(self.starts[column as usize] + at as u32)
    }

    /// The places of blocks of the matrix, each given by its row and its column.
    ///
    /// # Panics
    /// As [`Elimination::target`].
    pub(super) fn targets(&self, blocks: impl IntoIterator<Item = (u32, u32)>) -> Vec<Target> {
        let blocks = blocks.into_iter();
        let mut targets: Vec<Target> = blocks
            .map(|(row, column)| self.target(row, column))
            .collect();
        // They stay as long as the run does.
        targets.shrink_to_fit();
        targets
    }

    /// The place of a block of the matrix, given by its vertices.
    ///
    /// # Panics
    /// If they are not neighbours.
    pub(super) fn target(&self, row: u32, column: u32) -> Target {
        let (i, j) = (self.step_of[row as usize], self.step_of[column as usize]);
        let find = |i, j| {
            self.find(i, j)
                .expect("the factor has every block of the matrix")
        };
        match i.cmp(&j) {
            std::cmp::Ordering::Equal => Target::Diagonal(i),
            std::cmp::Ordering::Greater => Target::Below(find(i, j)),
            std::cmp::Ordering::Less => Target::Transposed(find(j, i)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_eliminated_from_its_rays_without_fill() {
        let star = Graph::from_edges(6, (1..6).map(|v| (0, v))).unwrap();
        let elimination = Elimination::new(&star, |_| false);
        assert_eq!(elimination.order[..4], [1, 2, 3, 4]);
        assert_eq!(elimination.rows.len(), 5);
    }

    #[test]
    fn a_ring_fills_one_chord_a_vertex() {
        let ring = Graph::from_edges(6, (0..6).map(|v| (v, (v + 1) % 6))).unwrap();
        let elimination = Elimination::new(&ring, |_| false);
        // Two below each vertex but the last two.
        assert_eq!(elimination.rows.len(), 2 * 4 + 1);
        for (step, &v) in (0..).zip(&elimination.order) {
            assert_eq!(elimination.step_of[v as usize], step);
        }
        assert!(elimination.find(5, 4).is_some());
    }

    #[test]
    fn vertices_that_are_kept_come_last_and_are_joined_by_what_was_between_them() {
        let chain = Graph::from_edges(7, (0..6).map(|v| (v, v + 1))).unwrap();
        let elimination = Elimination::new(&chain, |v| v == 1 || v == 4);
        assert_eq!(elimination.eliminated, 5);
        assert_eq!(elimination.order[5..], [1, 4]);
        assert_eq!(
            (elimination.column(5), elimination.column(6)),
            (&[6][..], &[][..])
        );
        assert_eq!(elimination.blocks_eliminated() + 1, elimination.rows.len());
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
        let blocks = Elimination::new(&grid, |_| false).rows.len();
        // By rows it would be 30 blocks a column.
        assert!(blocks < 12 * 900, "{blocks}");
    }
}
