//! The graph that is partitioned: symmetric, without self loops, in compressed rows.
//!
//! In: edges or neighbour lists. Out: for each vertex its neighbours, ascending and without
//! repetition.
//!
//! Give it the graph of the *matrix*, not of the mesh: bending couples a second ring, and a
//! partition made without it has up to a fifth more halo.

use std::borrow::Cow;

use crate::cow_bytes;
use crate::{PartitionError, PatchTree};

/// A symmetric graph over vertices `0..n`, optionally with vertex weights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    /// The starts of the neighbours of each vertex; one entry more than there are vertices.
    offsets: Cow<'static, [u32]>,
    neighbours: Cow<'static, [u32]>,
    /// `None`: every vertex weighs 1.
    weights: Option<Cow<'static, [u32]>>,
}

/// The arrays of a [`Graph`], which may be parts of a mapped file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphArrays<'a> {
    /// The starts of the neighbours of each vertex; one entry more than there are vertices.
    pub offsets: Cow<'a, [u32]>,
    /// The neighbours of each vertex, ascending, one vertex after the other.
    pub neighbours: Cow<'a, [u32]>,
    /// The weight of each vertex; `None` if each weighs 1.
    pub weights: Option<Cow<'a, [u32]>>,
}

impl Graph {
    /// The bytes on the heap that it holds, by the capacities of its arrays.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        let Self {
            offsets,
            neighbours,
            weights,
        } = self;
        cow_bytes(offsets) + cow_bytes(neighbours) + weights.as_ref().map_or(0, cow_bytes)
    }

    /// The arrays that it is made of: offsets, neighbours and weights.
    #[must_use]
    pub fn arrays(&self) -> GraphArrays<'_> {
        GraphArrays {
            offsets: Cow::Borrowed(&*self.offsets),
            neighbours: Cow::Borrowed(&*self.neighbours),
            weights: self.weights.as_deref().map(Cow::Borrowed),
        }
    }

    /// The graph whose [arrays](Self::arrays) these are. Nothing is read of arrays, so that pages
    /// of mapped files stay where they are: numbers that are no graph make methods panic.
    ///
    /// # Errors
    /// [`PartitionError::NoVertices`] or [`PartitionError::Length`] for arrays that do not belong
    /// together.
    pub fn from_arrays(arrays: GraphArrays<'static>) -> Result<Self, PartitionError> {
        let GraphArrays {
            offsets,
            neighbours,
            weights,
        } = arrays;
        let vertices = offsets.len().saturating_sub(1);
        if vertices == 0 {
            return Err(PartitionError::NoVertices);
        }
        if let Some(weights) = &weights {
            check_length("vertex weights", vertices, weights.len())?;
        }
        Ok(Self {
            offsets,
            neighbours,
            weights,
        })
    }

    /// A graph from its edges, each given once or more, in either direction.
    ///
    /// # Errors
    /// [`PartitionError::NoVertices`], [`PartitionError::NoSuchVertex`],
    /// [`PartitionError::SelfLoop`] or [`PartitionError::TooLarge`].
    pub fn from_edges(
        vertices: usize,
        edges: impl IntoIterator<Item = (u32, u32)>,
    ) -> Result<Self, PartitionError> {
        let edges: Vec<(u32, u32)> = edges.into_iter().collect();
        check_size(vertices, 2 * edges.len())?;
        let mut starts = vec![0_u32; vertices + 1];
        for &(a, b) in &edges {
            check_edge(a, b, vertices)?;
            check_edge(b, a, vertices)?;
            starts[a as usize + 1] += 1;
            starts[b as usize + 1] += 1;
        }
        for v in 0..vertices {
            starts[v + 1] += starts[v];
        }
        let mut cursor = starts.clone();
        let mut filled = vec![0_u32; 2 * edges.len()];
        for &(a, b) in &edges {
            for (from, to) in [(a, b), (b, a)] {
                let at = &mut cursor[from as usize];
                filled[*at as usize] = to;
                *at += 1;
            }
        }
        let rows = starts
            .windows(2)
            .map(|w| &filled[w[0] as usize..w[1] as usize]);
        Ok(Self::from_rows(vertices, filled.len(), rows))
    }

    /// A graph from the neighbours of each vertex, in any order; repetitions are dropped.
    ///
    /// # Errors
    /// The errors of [`Graph::from_edges`], and [`PartitionError::Asymmetric`] if an edge is listed
    /// at one end only.
    pub fn from_neighbours<L: AsRef<[u32]>>(lists: &[L]) -> Result<Self, PartitionError> {
        let entries = lists.iter().map(|list| list.as_ref().len()).sum();
        check_size(lists.len(), entries)?;
        for (v, list) in (0_u32..).zip(lists) {
            for &other in list.as_ref() {
                check_edge(v, other, lists.len())?;
            }
        }
        let graph = Self::from_rows(lists.len(), entries, lists.iter().map(AsRef::as_ref));
        for v in graph.vertices() {
            for &other in graph.neighbours(v) {
                if graph.neighbours(other).binary_search(&v).is_err() {
                    return Err(PartitionError::Asymmetric {
                        vertex: v,
                        neighbour: other,
                    });
                }
            }
        }
        Ok(graph)
    }

    /// Gives the graph vertex weights, the work that a vertex stands for.
    ///
    /// # Errors
    /// [`PartitionError::Length`], [`PartitionError::ZeroWeight`] or
    /// [`PartitionError::WeightsTooLarge`].
    pub fn with_weights(mut self, weights: Vec<u32>) -> Result<Self, PartitionError> {
        check_length("vertex weights", self.vertex_count(), weights.len())?;
        if let Some((vertex, _)) = (0_u32..).zip(&weights).find(|(_, weight)| **weight == 0) {
            return Err(PartitionError::ZeroWeight { vertex });
        }
        let total = weights.iter().map(|&weight| u64::from(weight)).sum();
        if total > i32::MAX as u64 {
            return Err(PartitionError::WeightsTooLarge { total });
        }
        self.weights = Some(weights.into());
        Ok(self)
    }

    /// The graph in the numbering of a tree, weights included.
    ///
    /// # Errors
    /// [`PartitionError::Length`] if the tree is one of another graph.
    pub fn renumbered(&self, tree: &PatchTree) -> Result<Self, PartitionError> {
        check_length(
            "vertices of the tree",
            self.vertex_count(),
            tree.vertex_count(),
        )?;
        let to_new = tree.old_to_new();
        let mut offsets = vec![0];
        let mut neighbours = Vec::with_capacity(self.neighbours.len());
        for &old in tree.new_to_old() {
            let start = neighbours.len();
            neighbours.extend(
                self.neighbours(old)
                    .iter()
                    .map(|&other| to_new[other as usize]),
            );
            neighbours[start..].sort_unstable();
            offsets.push(count_u32(neighbours.len()));
        }
        let weights = self.weights.as_ref().map(|weights| {
            tree.new_to_old()
                .iter()
                .map(|&old| weights[old as usize])
                .collect()
        });
        Ok(Self {
            offsets: offsets.into(),
            neighbours: neighbours.into(),
            weights,
        })
    }

    /// How many vertices there are, at least one.
    #[must_use]
    pub fn vertex_count(&self) -> usize {
        self.offsets.len() - 1
    }

    /// How many edges there are, each counted once.
    #[must_use]
    pub fn edge_count(&self) -> usize {
        self.neighbours.len() / 2
    }

    /// All vertices, ascending.
    pub fn vertices(&self) -> impl ExactSizeIterator<Item = u32> + use<> {
        0..count_u32(self.vertex_count())
    }

    /// The neighbours of a vertex, ascending.
    ///
    /// # Panics
    /// If there is no such vertex.
    #[must_use]
    pub fn neighbours(&self, vertex: u32) -> &[u32] {
        let v = vertex as usize;
        &self.neighbours[self.offsets[v] as usize..self.offsets[v + 1] as usize]
    }

    /// The weight of a vertex, at least 1.
    ///
    /// # Panics
    /// If there are weights and there is no such vertex.
    #[must_use]
    pub fn weight(&self, vertex: u32) -> u32 {
        self.weights
            .as_ref()
            .map_or(1, |weights| weights[vertex as usize])
    }

    /// The weight of all vertices together.
    #[must_use]
    pub(crate) fn total_weight(&self) -> u64 {
        self.vertices().map(|v| u64::from(self.weight(v))).sum()
    }

    /// Sorts every row and drops repetitions; the entries are already known to be in range.
    fn from_rows<'a>(
        vertices: usize,
        entries: usize,
        rows: impl Iterator<Item = &'a [u32]>,
    ) -> Self {
        let mut offsets = Vec::with_capacity(vertices + 1);
        offsets.push(0);
        let mut neighbours = Vec::with_capacity(entries);
        let mut sorted = Vec::new();
        for row in rows {
            sorted.clear();
            sorted.extend_from_slice(row);
            sorted.sort_unstable();
            sorted.dedup();
            neighbours.extend_from_slice(&sorted);
            offsets.push(count_u32(neighbours.len()));
        }
        Self {
            offsets: offsets.into(),
            neighbours: neighbours.into(),
            weights: None,
        }
    }
}

/// An array of the wrong length is an error that names it.
pub(crate) fn check_length(
    what: &'static str,
    expected: usize,
    found: usize,
) -> Result<(), PartitionError> {
    if expected == found {
        Ok(())
    } else {
        Err(PartitionError::Length {
            what,
            expected,
            found,
        })
    }
}

/// Counts of vertices and adjacency entries, which [`check_size`] has seen to be below 2^31.
pub(crate) fn count_u32(count: usize) -> u32 {
    u32::try_from(count).expect("a graph has fewer than 2^31 vertices and entries")
}

fn check_size(vertices: usize, entries: usize) -> Result<(), PartitionError> {
    if vertices == 0 {
        return Err(PartitionError::NoVertices);
    }
    // Strictly below: METIS also needs one offset more than there are vertices.
    if vertices >= i32::MAX as usize || entries >= i32::MAX as usize {
        return Err(PartitionError::TooLarge { vertices, entries });
    }
    Ok(())
}

fn check_edge(vertex: u32, neighbour: u32, vertices: usize) -> Result<(), PartitionError> {
    if neighbour as usize >= vertices {
        return Err(PartitionError::NoSuchVertex {
            vertex,
            neighbour,
            vertices,
        });
    }
    if vertex == neighbour {
        return Err(PartitionError::SelfLoop { vertex });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_are_symmetric_sorted_and_unique() {
        let graph = Graph::from_edges(4, [(2, 0), (0, 1), (1, 0), (0, 2)]).unwrap();
        assert_eq!(graph.neighbours(0), [1, 2]);
        assert_eq!(graph.neighbours(1), [0]);
        assert_eq!(graph.neighbours(2), [0]);
        assert!(graph.neighbours(3).is_empty());
        assert_eq!(graph.edge_count(), 2);
        assert_eq!(
            graph,
            Graph::from_neighbours(&[vec![2, 1, 2], vec![0], vec![0], vec![]]).unwrap()
        );
    }

    #[test]
    fn bad_graphs_are_refused_by_name() {
        assert_eq!(Graph::from_edges(0, []), Err(PartitionError::NoVertices));
        assert_eq!(
            Graph::from_edges(2, [(0, 2)]),
            Err(PartitionError::NoSuchVertex {
                vertex: 0,
                neighbour: 2,
                vertices: 2
            })
        );
        assert_eq!(
            Graph::from_edges(2, [(2, 0)]),
            Err(PartitionError::NoSuchVertex {
                vertex: 0,
                neighbour: 2,
                vertices: 2
            })
        );
        assert_eq!(
            Graph::from_edges(2, [(1, 1)]),
            Err(PartitionError::SelfLoop { vertex: 1 })
        );
        assert_eq!(
            Graph::from_neighbours(&[vec![1], vec![]]),
            Err(PartitionError::Asymmetric {
                vertex: 0,
                neighbour: 1
            })
        );
    }

    #[test]
    fn bad_weights_are_refused() {
        let graph = Graph::from_edges(2, [(0, 1)]).unwrap();
        assert!(matches!(
            graph.clone().with_weights(vec![1]),
            Err(PartitionError::Length {
                expected: 2,
                found: 1,
                ..
            })
        ));
        assert_eq!(
            graph.clone().with_weights(vec![1, 0]),
            Err(PartitionError::ZeroWeight { vertex: 1 })
        );
        assert_eq!(
            graph.clone().with_weights(vec![u32::MAX, 1]),
            Err(PartitionError::WeightsTooLarge { total: 1 << 32 })
        );
        assert_eq!(graph.with_weights(vec![3, 4]).unwrap().total_weight(), 7);
    }
}
