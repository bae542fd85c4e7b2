//! The exchange plan of a rank: the vertices that it needs from others, and those that they need
//! from it.
//!
//! In: the graph in the numbering of the tree, the same on every rank, and who owns what. Out: the
//! halo of one rank, and for each neighbouring rank what to send and what will come. Nobody is
//! asked: both ends of a transfer compute it from the same graph, and agree because the graph is
//! symmetric.

use std::ops::Range;

use crate::array_bytes;
use crate::graph::{check_length, count_u32};
use crate::{Graph, Ownership, PartitionError};

/// The vertices that a rank reads but does not own, and the transfers that keep them up to date.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HaloPlan {
    rank: usize,
    owned: Range<usize>,
    halo: Vec<u32>,
    neighbours: Vec<Neighbour>,
}

/// The transfers with one other rank; there is at least one vertex in either direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// The other rank.
    pub rank: usize,
    /// The part of the halo that it fills, in the halo's order.
    pub receive: Range<usize>,
    /// The vertices that are sent to it, as indices into the owned vertices, ascending.
    pub send: Vec<u32>,
}

impl HaloPlan {
    /// The bytes on the heap that it holds, by the capacities of its arrays.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        let Self {
            halo,
            neighbours,
            rank: _,
            owned: _,
        } = self;
        array_bytes(halo)
            + array_bytes(neighbours)
            + neighbours
                .iter()
                .map(|of| array_bytes(&of.send))
                .sum::<usize>()
    }

    /// The plan of one rank, from the graph in the numbering of the tree ([`Graph::renumbered`]).
    ///
    /// # Errors
    /// [`PartitionError::NoSuchRank`], or [`PartitionError::Length`] if graph and ownership are of
    /// different trees.
    pub fn new(graph: &Graph, ownership: &Ownership, rank: usize) -> Result<Self, PartitionError> {
        let ranks = ownership.ranks();
        if rank >= ranks {
            return Err(PartitionError::NoSuchRank { rank, ranks });
        }
        let all = ownership.vertices(ranks - 1).end;
        check_length("vertices of the graph", all, graph.vertex_count())?;
        let owned = ownership.vertices(rank);

        let mut halo = Vec::new();
        let mut sends: Vec<(usize, u32)> = Vec::new();
        for (local, vertex) in owned.clone().enumerate() {
            for &other in graph.neighbours(count_u32(vertex)) {
                if !owned.contains(&(other as usize)) {
                    halo.push(other);
                    sends.push((ownership.rank_of_vertex(other as usize), count_u32(local)));
                }
            }
        }
        halo.sort_unstable();
        halo.dedup();
        sends.sort_unstable();
        sends.dedup();

        // Owners hold ascending ranges, so the halo in ascending order is already grouped by owner.
        let neighbours = sends
            .chunk_by(|a, b| a.0 == b.0)
            .map(|sends| {
                let rank = sends[0].0;
                let theirs = ownership.vertices(rank);
                let before = |end: usize| halo.partition_point(|&v| (v as usize) < end);
                Neighbour {
                    rank,
                    receive: before(theirs.start)..before(theirs.end),
                    send: sends.iter().map(|&(_, local)| local).collect(),
                }
            })
            .collect();
        Ok(Self {
            rank,
            owned,
            halo,
            neighbours,
        })
    }

    /// The rank whose plan it is.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The owned vertices, in the numbering of the tree.
    #[must_use]
    pub fn owned(&self) -> Range<usize> {
        self.owned.clone()
    }

    /// The vertices needed from others, in the numbering of the tree, ascending.
    #[must_use]
    pub fn halo(&self) -> &[u32] {
        &self.halo
    }

    /// The ranks to exchange with, ascending.
    #[must_use]
    pub fn neighbours(&self) -> &[Neighbour] {
        &self.neighbours
    }

    /// Length of a vector with its halo: owned vertices first, then [`HaloPlan::halo`].
    #[must_use]
    pub fn local_len(&self) -> usize {
        self.owned.len() + self.halo.len()
    }

    /// The place of a vertex in a vector with halo; `None` if this rank neither owns nor reads it.
    #[must_use]
    pub fn local_index(&self, vertex: u32) -> Option<usize> {
        if self.owned.contains(&(vertex as usize)) {
            Some(vertex as usize - self.owned.start)
        } else {
            self.halo
                .binary_search(&vertex)
                .ok()
                .map(|at| self.owned.len() + at)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::{PatchOptions, PatchTree};

    #[test]
    fn a_chain_exchanges_its_ends() {
        let chain = Graph::from_edges(4, [(0, 1), (1, 2), (2, 3)]).unwrap();
        let tree = crate::ownership::tests::tree_of(&[1, 1, 1, 1]);
        let ownership = Ownership::from_first_patches(&tree, vec![0, 1, 3, 4]).unwrap();
        let plan = HaloPlan::new(&chain, &ownership, 1).unwrap();
        assert_eq!(plan.halo(), [0, 3]);
        assert_eq!(
            plan.neighbours(),
            [
                Neighbour {
                    rank: 0,
                    receive: 0..1,
                    send: vec![0]
                },
                Neighbour {
                    rank: 2,
                    receive: 1..2,
                    send: vec![1]
                },
            ]
        );
        assert_eq!(
            [0, 1, 2, 3].map(|v| plan.local_index(v)),
            [Some(2), Some(0), Some(1), Some(3)]
        );
        assert_eq!(
            HaloPlan::new(&chain, &ownership, 0).unwrap().local_index(2),
            None
        );
        assert!(HaloPlan::new(&chain, &ownership, 3).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn each_rank_sends_the_vertices_that_the_other_awaits(
            pairs in prop::collection::vec((0_u32..60, 0_u32..60), 0..200),
            ranks in 1_usize..9,
        ) {
            let graph = Graph::from_edges(60, pairs.into_iter().filter(|(a, b)| a != b)).unwrap();
            let tree = PatchTree::build(&graph, &PatchOptions { patches: Some(16), seed: 1 }).unwrap();
            let graph = graph.renumbered(&tree).unwrap();
            let ownership = Ownership::new(&tree, ranks).unwrap();
            let plans: Vec<_> =
                (0..ranks).map(|rank| HaloPlan::new(&graph, &ownership, rank).unwrap()).collect();
            for plan in &plans {
                // The halo is what the rows of the owned vertices refer to.
                let needed: BTreeSet<u32> = plan
                    .owned()
                    .flat_map(|v| graph.neighbours(v as u32))
                    .copied()
                    .filter(|&w| !plan.owned().contains(&(w as usize)))
                    .collect();
                prop_assert_eq!(plan.halo(), needed.into_iter().collect::<Vec<_>>());

                let mut filled = 0;
                for neighbour in plan.neighbours() {
                    prop_assert_eq!(neighbour.receive.start, filled);
                    filled = neighbour.receive.end;
                    let other = &plans[neighbour.rank];
                    let back = other.neighbours().iter().find(|n| n.rank == plan.rank()).unwrap();
                    let sent: Vec<u32> =
                        back.send.iter().map(|&local| other.owned().start as u32 + local).collect();
                    prop_assert_eq!(&plan.halo()[neighbour.receive.clone()], &sent[..]);
                }
                prop_assert_eq!(filled, plan.halo().len());
            }
        }
    }
}
