//! How good a partition is: what crosses between its parts, how even they are, whether they hang
//! together.

use crate::graph::{check_length, count_u32};
use crate::{Graph, Ownership, PartitionError, PatchTree};

/// Figures of merit of a graph in parts.
#[derive(Clone, Debug, PartialEq)]
pub struct Quality {
    /// Edges whose ends lie in different parts.
    pub edge_cut: usize,
    /// The halo of each part: vertices of others that its vertices are adjacent to.
    pub halo: Vec<usize>,
    /// Weight of the heaviest part over the average; 1 is perfect.
    pub imbalance: f64,
    /// The number of pieces that each part is in; 1 is perfect, 0 means that it is empty.
    pub components: Vec<usize>,
}

impl Quality {
    /// Measures a graph whose vertex v lies in part `part_of[v]`, one of `0..parts`.
    ///
    /// # Errors
    /// [`PartitionError::Length`] if there is not one part for each vertex, or a part beyond the
    /// last.
    pub fn new(graph: &Graph, part_of: &[u32], parts: usize) -> Result<Self, PartitionError> {
        check_length("parts of vertices", graph.vertex_count(), part_of.len())?;
        if let Some(&beyond) = part_of.iter().find(|&&part| part as usize >= parts) {
            let found = beyond as usize + 1;
            return Err(PartitionError::Length {
                what: "parts",
                expected: parts,
                found,
            });
        }
        let part = |v: u32| part_of[v as usize] as usize;

        let mut edge_ends = 0;
        let mut halo = vec![0; parts];
        let mut weights = vec![0_u64; parts];
        let mut touched = Vec::new();
        for v in graph.vertices() {
            weights[part(v)] += u64::from(graph.weight(v));
            touched.clear();
            touched.extend(
                graph
                    .neighbours(v)
                    .iter()
                    .map(|&w| part(w))
                    .filter(|&p| p != part(v)),
            );
            edge_ends += touched.len();
            touched.sort_unstable();
            touched.dedup();
            for &other in &touched {
                halo[other] += 1;
            }
        }

        let mut components = vec![0; parts];
        let mut seen = vec![false; graph.vertex_count()];
        let mut stack = Vec::new();
        for v in graph.vertices() {
            if std::mem::replace(&mut seen[v as usize], true) {
                continue;
            }
            components[part(v)] += 1;
            stack.push(v);
            while let Some(at) = stack.pop() {
                for &next in graph.neighbours(at) {
                    if part(next) == part(v) && !seen[next as usize] {
                        seen[next as usize] = true;
                        stack.push(next);
                    }
                }
            }
        }

        let heaviest = weights.iter().max().copied().unwrap_or(0);
        let imbalance = heaviest as f64 * parts as f64 / graph.total_weight() as f64;
        Ok(Self {
            edge_cut: edge_ends / 2,
            halo,
            imbalance,
            components,
        })
    }

    /// Measures the patches of a tree; the graph is in the numbering of the tree.
    ///
    /// # Errors
    /// [`PartitionError::Length`] if the graph is of another size.
    pub fn of_patches(graph: &Graph, tree: &PatchTree) -> Result<Self, PartitionError> {
        Self::new(graph, tree.patches_of_vertices(), tree.patch_count())
    }

    /// Measures what ranks own; the graph is in the numbering of the tree.
    ///
    /// # Errors
    /// [`PartitionError::Length`] if the graph is of another size.
    pub fn of_ranks(graph: &Graph, ownership: &Ownership) -> Result<Self, PartitionError> {
        let part_of: Vec<u32> = (0..ownership.ranks())
            .flat_map(|rank| std::iter::repeat_n(count_u32(rank), ownership.vertices(rank).len()))
            .collect();
        Self::new(graph, &part_of, ownership.ranks())
    }

    /// Halo vertices of all parts together: what travels in one exchange.
    #[must_use]
    pub fn halo_total(&self) -> usize {
        self.halo.iter().sum()
    }

    /// The largest halo of a part.
    #[must_use]
    pub fn halo_max(&self) -> usize {
        self.halo.iter().max().copied().unwrap_or(0)
    }

    /// The most pieces that a part is in.
    #[must_use]
    pub fn components_max(&self) -> usize {
        self.components.iter().max().copied().unwrap_or(0)
    }
}

/// The share of one rank in the figures of a partition: what it can count from its own rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankQuality {
    /// The edges from its vertices to those of other ranks.
    pub cut: u64,
    /// The vertices of others that its vertices are adjacent to.
    pub halo: u64,
    /// The weight of its vertices.
    pub weight: u64,
}

impl RankQuality {
    /// Counts what a rank owns; the graph is in the numbering of the tree.
    ///
    /// # Errors
    /// [`PartitionError::NoSuchRank`], or [`PartitionError::Length`] if the graph is of another
    /// size.
    pub fn new(graph: &Graph, ownership: &Ownership, rank: usize) -> Result<Self, PartitionError> {
        let ranks = ownership.ranks();
        if rank >= ranks {
            return Err(PartitionError::NoSuchRank { rank, ranks });
        }
        let all = ownership.vertices(ranks - 1).end;
        check_length("vertices of the graph", all, graph.vertex_count())?;
        let owned = ownership.vertices(rank);
        let mut weight = 0;
        let mut others: Vec<u32> = Vec::new();
        for vertex in owned.clone() {
            let vertex = count_u32(vertex);
            weight += u64::from(graph.weight(vertex));
            let neighbours = graph.neighbours(vertex).iter().copied();
            others.extend(neighbours.filter(|&other| !owned.contains(&(other as usize))));
        }
        let cut = others.len() as u64;
        others.sort_unstable();
        others.dedup();
        Ok(Self {
            cut,
            halo: others.len() as u64,
            weight,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_in_two_parts_is_measured() {
        // 0 1 2 | 3 4 | 5 of part 0 0 0 1 1 0, with an edge less: part 0 hangs together over 5-0.
        let ring = Graph::from_edges(6, (0..6).map(|v| (v, (v + 1) % 6))).unwrap();
        let quality = Quality::new(&ring, &[0, 0, 0, 1, 1, 0], 2).unwrap();
        assert_eq!(quality.edge_cut, 2);
        assert_eq!(quality.halo, [2, 2]);
        assert_eq!(quality.components, [1, 1]);
        assert!((quality.imbalance - 4.0 / 3.0).abs() < 1e-15);
        let split = Quality::new(&ring, &[0, 1, 0, 1, 1, 0], 2).unwrap();
        assert_eq!(split.components, [2, 2]);
        assert_eq!((split.halo_total(), split.halo_max()), (6, 3));
    }

    #[test]
    fn parts_that_do_not_fit_are_refused() {
        let graph = Graph::from_edges(2, [(0, 1)]).unwrap();
        assert!(Quality::new(&graph, &[0], 1).is_err());
        assert!(Quality::new(&graph, &[0, 1], 1).is_err());
    }
}
