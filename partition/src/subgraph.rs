//! The part of a graph that a branch of the tree sees, and the orders in which it is walked.
//!
//! Numbers are 32-bit and signed because METIS takes them so; all are known to fit, see [`Graph`].

use std::collections::VecDeque;

use crate::Graph;

/// The graph induced by some vertices, numbered `0..len` in the order in which they were given.
#[derive(Debug)]
pub(crate) struct Subgraph {
    pub(crate) offsets: Vec<i32>,
    pub(crate) neighbours: Vec<i32>,
    pub(crate) weights: Vec<i32>,
}

/// Cuts subgraphs out of one graph, with memory used again from one to the next.
#[derive(Debug)]
pub(crate) struct Extractor<'a> {
    graph: &'a Graph,
    /// Number in the subgraph at hand, [`OUTSIDE`] for vertices that are not part of it.
    local: Vec<i32>,
}

impl<'a> Extractor<'a> {
    pub(crate) fn new(graph: &'a Graph) -> Self {
        Self {
            graph,
            local: vec![OUTSIDE; graph.vertex_count()],
        }
    }

    pub(crate) fn extract(&mut self, vertices: &[u32]) -> Subgraph {
        for (number, &v) in (0_i32..).zip(vertices) {
            self.local[v as usize] = number;
        }
        let mut offsets = vec![0];
        let mut neighbours = Vec::new();
        let mut weights = Vec::with_capacity(vertices.len());
        for &v in vertices {
            neighbours.extend(
                self.graph
                    .neighbours(v)
                    .iter()
                    .map(|&other| self.local[other as usize])
                    .filter(|&other| other != OUTSIDE),
            );
            offsets.push(fits(neighbours.len()));
            weights.push(fits(self.graph.weight(v) as usize));
        }
        for &v in vertices {
            self.local[v as usize] = OUTSIDE;
        }
        Subgraph {
            offsets,
            neighbours,
            weights,
        }
    }
}

impl Subgraph {
    pub(crate) fn len(&self) -> usize {
        self.weights.len()
    }

    fn neighbours(&self, v: usize) -> impl Iterator<Item = usize> + '_ {
        self.neighbours[self.offsets[v] as usize..self.offsets[v + 1] as usize]
            .iter()
            .map(|&other| other as usize)
    }

    fn degree(&self, v: usize) -> usize {
        (self.offsets[v + 1] - self.offsets[v]) as usize
    }

    /// All vertices level by level from a vertex at the rim of each component, component after
    /// component.
    ///
    /// Cuthill and McKee's order: within a level in the order of the parents, then by degree. Its
    /// reverse is a numbering in which neighbours are near each other.
    pub(crate) fn level_order(&self) -> Vec<usize> {
        let mut order = Vec::with_capacity(self.len());
        let mut placed = vec![false; self.len()];
        let mut depth = vec![u32::MAX; self.len()];
        for seed in 0..self.len() {
            if placed[seed] {
                continue;
            }
            let start = self.rim(seed, &mut depth);
            let first = order.len();
            order.push(start);
            placed[start] = true;
            let mut next = first;
            while next < order.len() {
                let from = order.len();
                for other in self.neighbours(order[next]) {
                    if !placed[other] {
                        placed[other] = true;
                        order.push(other);
                    }
                }
                order[from..].sort_unstable_by_key(|&v| (self.degree(v), v));
                next += 1;
            }
        }
        order
    }

    /// A vertex far from the middle of the component of `seed`: the far end of repeated
    /// breadth-first walks.
    fn rim(&self, seed: usize, depth: &mut [u32]) -> usize {
        let mut start = seed;
        let mut eccentricity = 0;
        // Two or three walks are enough in practice; the bound only keeps the cost linear.
        for _ in 0..MAX_WALKS {
            let walked = self.walk(start, depth);
            let far = walked.last().map_or(0, |&v| depth[v]);
            let end = walked
                .iter()
                .rev()
                .take_while(|&&v| depth[v] == far)
                .min_by_key(|&&v| (self.degree(v), v))
                .copied()
                .unwrap_or(start);
            for v in walked {
                depth[v] = u32::MAX;
            }
            if far <= eccentricity {
                break;
            }
            eccentricity = far;
            start = end;
        }
        start
    }

    /// The component of `start` in breadth-first order, with the depth of each of its vertices
    /// written.
    fn walk(&self, start: usize, depth: &mut [u32]) -> Vec<usize> {
        let mut queue = VecDeque::from([start]);
        let mut walked = Vec::new();
        depth[start] = 0;
        while let Some(v) = queue.pop_front() {
            walked.push(v);
            for other in self.neighbours(v) {
                if depth[other] == u32::MAX {
                    depth[other] = depth[v] + 1;
                    queue.push_back(other);
                }
            }
        }
        walked
    }
}

fn fits(count: usize) -> i32 {
    i32::try_from(count).expect("a graph has fewer than 2^31 entries and total weight")
}

const OUTSIDE: i32 = -1;
const MAX_WALKS: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn level_order_walks_a_shuffled_chain_from_end_to_end() {
        let chain = [3_u32, 0, 4, 1, 5, 2];
        let graph = Graph::from_edges(6, chain.windows(2).map(|w| (w[0], w[1]))).unwrap();
        let all: Vec<u32> = graph.vertices().collect();
        let order = Extractor::new(&graph).extract(&all).level_order();
        let forward: Vec<usize> = chain.iter().map(|&v| v as usize).collect();
        let backward: Vec<usize> = forward.iter().rev().copied().collect();
        assert!(order == forward || order == backward, "{order:?}");
    }

    #[test]
    fn extracting_drops_edges_that_lead_out() {
        let graph = Graph::from_edges(4, [(0, 1), (1, 2), (2, 3), (3, 0)]).unwrap();
        let mut extractor = Extractor::new(&graph);
        let part = extractor.extract(&[1, 2]);
        assert_eq!((part.offsets, part.neighbours), (vec![0, 1, 2], vec![1, 0]));
        // The scratch of the first does not leak into the second.
        let part = extractor.extract(&[0, 2]);
        assert_eq!((part.offsets, part.neighbours), (vec![0, 0, 0], vec![]));
    }
}
