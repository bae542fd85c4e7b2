//! Aggregates: each patch cut further into pieces of neighbouring vertices, on which a coarse
//! system can be built, and each of these into groups of a few, the level in between.
//!
//! In: the graph in the numbering of the tree, and how large pieces should be. Out: the aggregate
//! and the group of each vertex. Aggregates are numbered patch by patch and groups aggregate by
//! aggregate, so that a rank that owns patches owns contiguous ranges of both; vertices keep their
//! numbers. As with patches, the cuts depend on graph, sizes and seed alone, never on ranks.
//!
//! Not here: what the systems on them are of.

use std::borrow::Cow;
use std::ops::Range;

use crate::bisect::bisect;
use crate::by_metis::{How, cut};
use crate::cow_bytes;
use crate::graph::{check_length, count_u32};
use crate::subgraph::Extractor;
use crate::{Graph, Ownership, PartitionError, PatchTree};

/// How patches are cut into aggregates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AggregateOptions {
    /// Vertices that an aggregate should have; `None` chooses by
    /// [`AggregateOptions::size_for`]. Aggregates come out between 0.7 and 1.4 times as large, or
    /// smaller where patches are.
    pub size: Option<usize>,
    /// How many times the square root of the number of vertices that is, where it is chosen.
    pub share_of_root: f64,
    /// Vertices that a group should have, in the same bounds.
    pub group: usize,
    /// Seed of METIS. Equal graphs, sizes and seeds give equal aggregates.
    pub seed: i32,
}

impl Default for AggregateOptions {
    fn default() -> Self {
        Self {
            size: None,
            share_of_root: FEW_ITERATIONS,
            group: GROUP_VERTICES,
            seed: 1,
        }
    }
}

impl AggregateOptions {
    /// The size of an aggregate in a graph of this many vertices:
    /// [`share_of_root`](Self::share_of_root) times their square root, but not below
    /// [`FEWEST_VERTICES`]. Factoring the coarse system takes `m^1.5` operations for `m` aggregates
    /// of a sheet, a part of them on every rank; with `m` a multiple of the root these grow less
    /// than the sheet does.
    #[must_use]
    pub fn size_for(&self, vertices: usize) -> usize {
        self.size
            .unwrap_or_else(|| {
                FEWEST_VERTICES.max((self.share_of_root * (vertices as f64).sqrt()) as usize)
            })
            .max(1)
    }
}

/// The vertices of each patch in 2^m aggregates, and those of each aggregate in 2^k groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aggregates {
    /// The aggregate of each vertex.
    of_vertex: Cow<'static, [u32]>,
    /// The starts of the aggregates of each patch; one entry more than there are patches.
    offsets: Cow<'static, [u32]>,
    /// The group of each vertex.
    group_of_vertex: Cow<'static, [u32]>,
    /// The starts of the groups of each aggregate; one entry more than there are aggregates.
    group_offsets: Cow<'static, [u32]>,
}

/// The arrays of [`Aggregates`], which may be parts of a mapped file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AggregateArrays<'a> {
    /// The aggregate of each vertex.
    pub of_vertex: Cow<'a, [u32]>,
    /// The starts of the aggregates of each patch; one entry more than there are patches.
    pub offsets: Cow<'a, [u32]>,
    /// The group of each vertex.
    pub group_of_vertex: Cow<'a, [u32]>,
    /// The starts of the groups of each aggregate; one entry more than there are aggregates.
    pub group_offsets: Cow<'a, [u32]>,
}

impl Aggregates {
    /// The bytes on the heap that it holds, by the capacities of its arrays.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        let Self {
            of_vertex,
            offsets,
            group_of_vertex,
            group_offsets,
        } = self;
        cow_bytes(of_vertex)
            + cow_bytes(offsets)
            + cow_bytes(group_of_vertex)
            + cow_bytes(group_offsets)
    }

    /// Bisects every patch until aggregates are about as large as wanted, and then these until
    /// groups are; the graph is in the numbering of the tree. No piece is empty.
    ///
    /// # Errors
    /// [`PartitionError::Length`] if the graph is of another size, [`PartitionError::Metis`] if
    /// memory ran out.
    pub fn build(
        graph: &Graph,
        tree: &PatchTree,
        options: &AggregateOptions,
    ) -> Result<Self, PartitionError> {
        check_length(
            "vertices of the graph",
            tree.vertex_count(),
            graph.vertex_count(),
        )?;
        let size = options.size_for(graph.vertex_count());
        let mut extractor = Extractor::new(graph);
        let (mut of_vertex, mut offsets) = (vec![0; graph.vertex_count()], vec![0]);
        let (mut group_of_vertex, mut group_offsets) = (vec![0; graph.vertex_count()], vec![0]);
        let [mut next, mut next_group] = [0; 2];
        for patch in 0..tree.patch_count() {
            let patch = tree.patch_vertices(patch);
            let count = pieces_for(patch.len(), size);
            let patch: Vec<u32> = (count_u32(patch.start)..count_u32(patch.end)).collect();
            pieces(
                &mut extractor,
                patch,
                count,
                options.seed,
                |extractor, aggregate| {
                    for &v in &aggregate {
                        of_vertex[v as usize] = next;
                    }
                    next += 1;
                    let count = pieces_for(aggregate.len(), options.group.max(1));
                    for group in groups(extractor, aggregate, count, options.seed)? {
                        for v in group {
                            group_of_vertex[v as usize] = next_group;
                        }
                        next_group += 1;
                    }
                    group_offsets.push(next_group);
                    Ok(())
                },
            )?;
            offsets.push(next);
        }
        Ok(Self {
            of_vertex: of_vertex.into(),
            offsets: offsets.into(),
            group_of_vertex: group_of_vertex.into(),
            group_offsets: group_offsets.into(),
        })
    }

    /// The arrays that they are made of.
    #[must_use]
    pub fn arrays(&self) -> AggregateArrays<'_> {
        AggregateArrays {
            of_vertex: Cow::Borrowed(&*self.of_vertex),
            offsets: Cow::Borrowed(&*self.offsets),
            group_of_vertex: Cow::Borrowed(&*self.group_of_vertex),
            group_offsets: Cow::Borrowed(&*self.group_offsets),
        }
    }

    /// The aggregates of a tree whose [arrays](Self::arrays) these are. Nothing is read of them, so
    /// that pages of mapped files stay where they are: numbers that are no aggregates make methods
    /// panic, or give wrong answers.
    ///
    /// # Errors
    /// [`PartitionError::Length`] for arrays that do not belong to the tree.
    pub fn from_arrays(
        tree: &PatchTree,
        arrays: AggregateArrays<'static>,
    ) -> Result<Self, PartitionError> {
        let AggregateArrays {
            of_vertex,
            offsets,
            group_of_vertex,
            group_offsets,
        } = arrays;
        for numbers in [&of_vertex, &group_of_vertex] {
            check_length("aggregates of vertices", tree.vertex_count(), numbers.len())?;
        }
        check_length(
            "starts of aggregates",
            tree.patch_count() + 1,
            offsets.len(),
        )?;
        let count = offsets[tree.patch_count()] as usize;
        check_length("starts of groups", count + 1, group_offsets.len())?;
        Ok(Self {
            of_vertex,
            offsets,
            group_of_vertex,
            group_offsets,
        })
    }

    /// Takes over aggregates made elsewhere: the aggregate and the group of each vertex, in the
    /// numbering of the tree.
    ///
    /// # Errors
    /// [`PartitionError::Length`], or [`PartitionError::NotNested`] if they are not numbered patch
    /// by patch and aggregate by aggregate, or one is empty.
    pub fn from_numbers(
        tree: &PatchTree,
        of_vertex: Vec<u32>,
        group_of_vertex: Vec<u32>,
    ) -> Result<Self, PartitionError> {
        for numbers in [&of_vertex, &group_of_vertex] {
            check_length("aggregates of vertices", tree.vertex_count(), numbers.len())?;
        }
        let patches = tree.patches_of_vertices();
        let offsets = starts("aggregate", &of_vertex, patches, tree.patch_count())?;
        let count = offsets.last().map_or(0, |&count| count as usize);
        let group_offsets = starts("group", &group_of_vertex, &of_vertex, count)?;
        Ok(Self {
            of_vertex: of_vertex.into(),
            offsets: offsets.into(),
            group_of_vertex: group_of_vertex.into(),
            group_offsets: group_offsets.into(),
        })
    }

    /// The aggregate of each vertex, in the numbering of the tree.
    #[must_use]
    pub fn of_vertices(&self) -> &[u32] {
        &self.of_vertex
    }

    /// The group of each vertex, in the numbering of the tree.
    #[must_use]
    pub fn groups_of_vertices(&self) -> &[u32] {
        &self.group_of_vertex
    }

    /// How many aggregates there are, at least one for each patch.
    #[must_use]
    pub fn count(&self) -> usize {
        self.offsets.last().map_or(0, |&count| count as usize)
    }

    /// How many vertices they hold together.
    #[must_use]
    pub fn vertex_count(&self) -> usize {
        self.of_vertex.len()
    }

    /// The aggregate of a vertex, given in the numbering of the tree.
    ///
    /// # Panics
    /// If there is no such vertex.
    #[must_use]
    pub fn of(&self, vertex: u32) -> u32 {
        self.of_vertex[vertex as usize]
    }

    /// How many groups there are, at least one for each aggregate.
    #[must_use]
    pub fn group_count(&self) -> usize {
        self.group_offsets.last().map_or(0, |&count| count as usize)
    }

    /// The group of a vertex, given in the numbering of the tree.
    ///
    /// # Panics
    /// If there is no such vertex.
    #[must_use]
    pub fn group_of(&self, vertex: u32) -> u32 {
        self.group_of_vertex[vertex as usize]
    }

    /// The groups of an aggregate; never empty.
    ///
    /// # Panics
    /// If there is no such aggregate.
    #[must_use]
    pub fn groups_in(&self, aggregate: usize) -> Range<usize> {
        self.group_offsets[aggregate] as usize..self.group_offsets[aggregate + 1] as usize
    }

    /// The aggregates of a patch; never empty.
    ///
    /// # Panics
    /// If there is no such patch.
    #[must_use]
    pub fn in_patch(&self, patch: usize) -> Range<usize> {
        self.offsets[patch] as usize..self.offsets[patch + 1] as usize
    }

    /// The aggregates whose vertices a rank owns; never empty.
    ///
    /// # Panics
    /// If there is no such rank, or the ownership is of another tree.
    #[must_use]
    pub fn owned(&self, ownership: &Ownership, rank: usize) -> Range<usize> {
        let patches = ownership.patches(rank);
        self.offsets[patches.start] as usize..self.offsets[patches.end] as usize
    }

    /// The graph of aggregates: two are adjacent if there is an edge of `graph` between them.
    ///
    /// # Errors
    /// [`PartitionError::Length`] if the graph is of another size.
    pub fn quotient(&self, graph: &Graph) -> Result<Graph, PartitionError> {
        check_length(
            "vertices of the graph",
            self.of_vertex.len(),
            graph.vertex_count(),
        )?;
        let mut pairs: Vec<(u32, u32)> = Vec::new();
        for v in graph.vertices() {
            let own = self.of(v);
            let others = graph.neighbours(v).iter().map(|&other| self.of(other));
            pairs.extend(
                others
                    .filter(|&other| other < own)
                    .map(|other| (own, other)),
            );
        }
        pairs.sort_unstable();
        pairs.dedup();
        Graph::from_edges(self.count(), pairs)
    }
}

/// The starts of the pieces of each of `count` wholes, from the piece and the whole of each vertex.
/// Every whole has a vertex. Fails if a piece is empty, is of two wholes, or has a lower number
/// than one of an earlier whole.
fn starts(
    what: &'static str,
    pieces: &[u32],
    wholes: &[u32],
    count: usize,
) -> Result<Vec<u32>, PartitionError> {
    let not_nested = |number: u32| PartitionError::NotNested { what, number };
    let last = pieces.iter().copied().max().unwrap_or_default();
    // There are no more pieces than vertices, so that no number asks for more memory than they.
    if last as usize >= pieces.len() {
        return Err(not_nested(last));
    }
    let mut whole_of = vec![u32::MAX; last as usize + 1];
    for (&piece, &whole) in pieces.iter().zip(wholes) {
        let seen = &mut whole_of[piece as usize];
        if *seen != u32::MAX && *seen != whole {
            return Err(not_nested(piece));
        }
        *seen = whole;
    }
    let mut starts = vec![0];
    for (piece, &whole) in (0..).zip(&whole_of) {
        if whole as usize >= count || (whole as usize) + 1 < starts.len() {
            return Err(not_nested(piece));
        }
        starts.resize(whole as usize + 1, piece);
    }
    starts.resize(count + 1, last + 1);
    Ok(starts)
}

/// Bisects vertices into this many pieces, a power of two, and hands out one after the other.
fn pieces<'a>(
    extractor: &mut Extractor<'a>,
    vertices: Vec<u32>,
    count: usize,
    seed: i32,
    mut done: impl FnMut(&mut Extractor<'a>, Vec<u32>) -> Result<(), PartitionError>,
) -> Result<(), PartitionError> {
    // The pieces that are still to be cut, the next one in the order of their numbers on top.
    let mut branches = vec![(vertices, count)];
    while let Some((vertices, leaves)) = branches.pop() {
        if leaves == 1 {
            done(extractor, vertices)?;
            continue;
        }
        let part = extractor.extract(&vertices);
        let second = bisect(&part, leaves / 2, seed)?;
        // Which side METIS calls the first is an accident; the one with the lowest vertex
        // is.
        let side = |wanted: bool| -> Vec<u32> {
            let chosen = vertices
                .iter()
                .zip(&second)
                .filter(|(_, side)| (**side != second[0]) == wanted);
            chosen.map(|(&v, _)| v).collect()
        };
        branches.push((side(true), leaves / 2));
        branches.push((side(false), leaves / 2));
    }
    Ok(())
}

/// Cuts an aggregate into this many groups in one call of METIS, which takes a fraction of the time
/// of one for each cut; in the order of their lowest vertices.
fn groups(
    extractor: &mut Extractor<'_>,
    aggregate: Vec<u32>,
    count: usize,
    seed: i32,
) -> Result<Vec<Vec<u32>>, PartitionError> {
    if count == 1 {
        return Ok(vec![aggregate]);
    }
    let graph = extractor.extract(&aggregate);
    let mut groups = vec![Vec::new(); count];
    // Without edges METIS has nothing to go by.
    if !graph.neighbours.is_empty() {
        let part = cut(&graph, count, (How::Bisections, seed))?;
        for (&v, group) in aggregate.iter().zip(part) {
            groups[group as usize].push(v);
        }
    }
    if groups.iter().any(Vec::is_empty) {
        groups.clear();
        pieces(extractor, aggregate, count, seed, |_, group| {
            groups.push(group);
            Ok(())
        })?;
    }
    groups.sort_by_key(|group| group[0]);
    Ok(groups)
}

/// The power of two for which pieces of `vertices` come nearest to `size`, as a ratio; at most one
/// piece a vertex.
fn pieces_for(vertices: usize, size: usize) -> usize {
    let (vertices, size) = (vertices as u128, size as u128);
    let mut pieces = 1_usize;
    // Halving brings a piece nearer if it has more than √2 times the size.
    while vertices * vertices > 2 * (size * pieces as u128).pow(2) && 2 * pieces as u128 <= vertices
    {
        pieces *= 2;
    }
    pieces
}

/// Iterations differ by a few percent with groups of 9 to 25 vertices.
pub(crate) const GROUP_VERTICES: usize = 12;

/// The share of the root for solves that take ten or twenty iterations, between which the coarse
/// system is factored: smaller ones would save fewer than its factor takes the time of, on 16
/// ranks.
pub const FEW_ITERATIONS: f64 = 0.6;

/// The share of the root for solves that take many iterations: aggregates do not grow below 230,000
/// vertices, and neither do the iterations of a membrane.
pub const MANY_ITERATIONS: f64 = 0.25;

/// Aggregates of fewer vertices make a coarse system that costs more than the iterations it saves:
/// with 60, a sheet of 10,000 vertices in 64 patches takes 0.93 of the iterations, and each rank
/// factors a system of twice the size.
pub const FEWEST_VERTICES: usize = 120;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{PatchOptions, Quality};

    fn sheet(side: u32) -> Graph {
        let edges = (0..side * side).flat_map(move |v| {
            let right = (v % side + 1 < side).then_some((v, v + 1));
            let up = (v / side + 1 < side).then_some((v, v + side));
            right.into_iter().chain(up)
        });
        Graph::from_edges((side * side) as usize, edges).unwrap()
    }

    fn tree(graph: &Graph, patches: usize) -> (PatchTree, Graph) {
        let options = PatchOptions {
            patches: Some(patches),
            ..PatchOptions::default()
        };
        let tree = PatchTree::build(graph, &options).unwrap();
        let graph = graph.renumbered(&tree).unwrap();
        (tree, graph)
    }

    /// A change of the aggregates and of the groups of vertices.
    type Change = fn(&mut [u32], &mut [u32]);

    #[test]
    fn aggregates_are_taken_over_by_their_numbers_and_faults_are_named() {
        let (tree, graph) = tree(&sheet(24), 4);
        let options = AggregateOptions {
            size: Some(40),
            ..AggregateOptions::default()
        };
        let built = Aggregates::build(&graph, &tree, &options).unwrap();
        assert!(built.count() > 4 && built.group_count() > built.count());
        let taken = |change: Change| {
            let mut of = built.of_vertices().to_vec();
            let mut groups = built.groups_of_vertices().to_vec();
            change(&mut of, &mut groups);
            Aggregates::from_numbers(&tree, of, groups)
        };
        assert_eq!(taken(|_, _| ()), Ok(built.clone()));
        let refused: [Change; 6] = [
            // The aggregates of two patches, exchanged.
            |of, _| {
                of.iter_mut().for_each(|a| {
                    *a = if *a == 0 {
                        5
                    } else if *a == 5 {
                        0
                    } else {
                        *a
                    }
                })
            },
            |of, _| of[0] = u32::MAX,
            |of, _| of[0] = 575,
            |_, groups| groups[0] += 20,
            // No vertex has the last group but one.
            |_, groups| {
                let last = groups.iter().copied().max().unwrap();
                groups
                    .iter_mut()
                    .filter(|g| **g + 1 == last)
                    .for_each(|g| *g = last);
            },
            |_, groups| groups.reverse(),
        ];
        for (number, change) in refused.into_iter().enumerate() {
            let found = taken(change);
            assert!(
                matches!(found, Err(PartitionError::NotNested { .. })),
                "{number}: {found:?}"
            );
        }
        let short = Aggregates::from_numbers(&tree, vec![0; 3], vec![0; 3]);
        assert!(matches!(short, Err(PartitionError::Length { .. })));
    }

    #[test]
    fn groups_are_a_power_of_two_and_near_the_wanted_size() {
        for (vertices, size, groups) in [
            (1, 60, 1),
            (84, 60, 1),
            (85, 60, 2),
            (312, 60, 4),
            (1562, 60, 32),
            (5, 1, 4),
            (1, 1, 1),
        ] {
            assert_eq!(pieces_for(vertices, size), groups, "{vertices} of {size}");
        }
        let automatic = AggregateOptions::default();
        assert_eq!(automatic.size_for(10_000), 120);
        assert_eq!(automatic.size_for(1_000_000), 600);
        let many = AggregateOptions {
            share_of_root: MANY_ITERATIONS,
            ..automatic
        };
        assert_eq!(many.size_for(200_000), 120);
        assert_eq!(many.size_for(1_000_000), 250);
    }

    #[test]
    fn aggregates_of_a_sheet_are_even_and_in_one_piece() {
        let (tree, graph) = tree(&sheet(60), 8);
        let options = AggregateOptions {
            size: Some(60),
            ..AggregateOptions::default()
        };
        let aggregates = Aggregates::build(&graph, &tree, &options).unwrap();
        assert_eq!(aggregates.count(), 64);
        let quality = Quality::new(&graph, &aggregates.of_vertex, aggregates.count()).unwrap();
        assert!(quality.imbalance < 1.2, "{}", quality.imbalance);
        let split = quality.components.iter().filter(|&&pieces| pieces > 1);
        assert!(split.count() <= 3, "{:?}", quality.components);
        let again = Aggregates::build(&graph, &tree, &options).unwrap();
        assert_eq!(again, aggregates);
    }

    #[test]
    fn the_quotient_joins_aggregates_that_share_an_edge() {
        let chain = Graph::from_edges(12, (0..11).map(|v| (v, v + 1))).unwrap();
        let (tree, graph) = tree(&chain, 2);
        let options = AggregateOptions {
            size: Some(3),
            ..AggregateOptions::default()
        };
        let aggregates = Aggregates::build(&graph, &tree, &options).unwrap();
        let quotient = aggregates.quotient(&graph).unwrap();
        assert_eq!((quotient.vertex_count(), quotient.edge_count()), (4, 3));
        assert!(aggregates.quotient(&sheet(2)).is_err());
    }

    #[test]
    fn a_graph_of_another_size_is_refused() {
        let (tree, _) = tree(&sheet(4), 2);
        let error = Aggregates::build(&sheet(3), &tree, &AggregateOptions::default());
        assert!(matches!(error, Err(PartitionError::Length { .. })));
    }

    proptest! {
        /// Aggregates are sound for any graph: every aggregate has vertices, all of them in its
        /// patch, and so has every group, in its aggregate.
        #[test]
        fn aggregates_cover_their_patches(
            vertices in 4_u32..120,
            edges in prop::collection::vec((0_u32..120, 0_u32..120), 0..200),
            size in 1_usize..40,
            group in 1_usize..15,
        ) {
            let edges = edges
                .into_iter()
                .map(|(a, b)| (a % vertices, b % vertices))
                .filter(|(a, b)| a != b);
            let graph = Graph::from_edges(vertices as usize, edges).unwrap();
            let (tree, graph) = tree(&graph, 4);
            let options = AggregateOptions { size: Some(size), group, ..AggregateOptions::default() };
            let aggregates = Aggregates::build(&graph, &tree, &options).unwrap();
            let mut sizes = vec![0; aggregates.count()];
            for patch in 0..tree.patch_count() {
                for v in tree.patch_vertices(patch) {
                    let aggregate = aggregates.of(v as u32) as usize;
                    prop_assert!(aggregates.in_patch(patch).contains(&aggregate));
                    sizes[aggregate] += 1;
                }
            }
            prop_assert!(sizes.iter().all(|&size| size > 0));
            let mut sizes = vec![0; aggregates.group_count()];
            for v in 0..vertices {
                let group = aggregates.group_of(v) as usize;
                prop_assert!(aggregates.groups_in(aggregates.of(v) as usize).contains(&group));
                sizes[group] += 1;
            }
            prop_assert!(sizes.iter().all(|&size| size > 0));
            let ownership = Ownership::new(&tree, 3).unwrap();
            let owned: Vec<_> = (0..3).map(|rank| aggregates.owned(&ownership, rank)).collect();
            prop_assert_eq!((owned[0].start, owned[2].end), (0, aggregates.count()));
            prop_assert!(owned[0].end == owned[1].start && owned[1].end == owned[2].start);
        }
    }
}
