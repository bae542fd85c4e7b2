//! The patch tree: a mesh cut in two, again and again, into 2^m patches, and the numbering that
//! follows it.
//!
//! In: the graph of the matrix. Out: how the vertices are numbered anew, patch by patch, and which
//! range of the new numbers is which patch. The tree itself is complete and binary, so that it
//! needs no storing: the node `index` of level `l` (the root is level 0) holds the patches `index
//! << (m - l) .. (index + 1) << (m - l)`.
//!
//! The tree depends on the graph and the seed alone. It does not know ranks ([`crate::ownership`]).

use std::borrow::Cow;
use std::ops::Range;

use crate::bisect::bisect;
use crate::graph::{check_length, count_u32};
use crate::subgraph::{Extractor, Subgraph};
use crate::{Graph, PartitionError};
use crate::{array_bytes, cow_bytes};

/// How a mesh is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PatchOptions {
    /// How many patches, a power of two; `None` chooses by [`PatchOptions::patches_for`].
    pub patches: Option<usize>,
    /// Seed of METIS. Equal graphs and seeds give equal trees.
    pub seed: i32,
}

impl Default for PatchOptions {
    fn default() -> Self {
        Self {
            patches: None,
            seed: 1,
        }
    }
}

impl PatchOptions {
    /// The number of patches for this many vertices.
    ///
    /// At most [`MOST_VERTICES`] vertices a patch, and 32 patches even where fewer would do, unless
    /// that left fewer than [`FEWEST_VERTICES`] in each. Patches are then of 64 to 2000 vertices,
    /// of 1000 to 2000 in meshes of more than 64 000.
    ///
    /// # Errors
    /// [`PartitionError::PatchCount`] if `patches` is given and is not a power of two, or more than
    /// `vertices`.
    pub fn patches_for(&self, vertices: usize) -> Result<usize, PartitionError> {
        match self.patches {
            Some(patches) if patches.is_power_of_two() && patches <= vertices => Ok(patches),
            Some(patches) => Err(PartitionError::PatchCount { patches, vertices }),
            None => {
                let small_enough = vertices.div_ceil(MOST_VERTICES).max(1).next_power_of_two();
                let large_enough = (vertices / FEWEST_VERTICES).max(1);
                let filled = 1 << large_enough.ilog2();
                Ok(small_enough.max(filled.min(WANTED_PATCHES)))
            }
        }
    }
}

/// The vertices of a mesh in 2^m patches, the leaves of a complete binary tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatchTree {
    depth: u32,
    /// The starts of the vertices of each patch, in new numbers; one entry more than there are
    /// patches.
    offsets: Vec<u32>,
    /// The vertex weights of each patch together.
    weights: Vec<u64>,
    new_to_old: Cow<'static, [u32]>,
    old_to_new: Cow<'static, [u32]>,
    patch_of: Cow<'static, [u32]>,
}

/// The arrays of a [`PatchTree`], of which those with a number for each vertex may be parts of a
/// mapped file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatchTreeArrays<'a> {
    /// The starts of the vertices of each patch; one entry more than there are patches.
    pub offsets: Vec<u32>,
    /// The weight of each patch.
    pub weights: Vec<u64>,
    /// The number in the mesh of each new number.
    pub new_to_old: Cow<'a, [u32]>,
    /// The new number of each vertex of the mesh.
    pub old_to_new: Cow<'a, [u32]>,
    /// The patch of each vertex, by new number.
    pub patch_of: Cow<'a, [u32]>,
}

impl PatchTree {
    /// The bytes on the heap that it holds, by the capacities of its arrays.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        let Self {
            offsets,
            weights,
            new_to_old,
            old_to_new,
            patch_of,
            depth: _,
        } = self;
        array_bytes(offsets)
            + array_bytes(weights)
            + cow_bytes(new_to_old)
            + cow_bytes(old_to_new)
            + cow_bytes(patch_of)
    }

    /// Bisects a graph recursively with METIS, and numbers the vertices of each patch for locality
    /// (reverse Cuthill-McKee).
    ///
    /// Where METIS leaves a side empty or badly unbalanced, a breadth-first sweep takes its place.
    /// Graphs may be in several pieces.
    ///
    /// # Errors
    /// [`PartitionError::PatchCount`] for a count that [`PatchOptions::patches_for`] refuses,
    /// [`PartitionError::Metis`] if memory ran out.
    pub fn build(graph: &Graph, options: &PatchOptions) -> Result<Self, PartitionError> {
        let patches = options.patches_for(graph.vertex_count())?;
        Self::by_bisection(graph, patches, |part, _, least| {
            bisect(part, least, options.seed)
        })
    }

    /// Takes over a tree made elsewhere: the old vertex numbers patch by patch, and how many each
    /// patch has.
    ///
    /// This is how a tree travels from the rank that made it, or out of a file. `weights` are those
    /// of the patches, see [`PatchTree::patch_weight`].
    ///
    /// # Errors
    /// [`PartitionError::PatchCount`], [`PartitionError::EmptyPatch`], [`PartitionError::Length`],
    /// [`PartitionError::NoSuchVertex`] or [`PartitionError::NotAPermutation`].
    pub fn from_numbering(
        new_to_old: Vec<u32>,
        patch_sizes: &[u32],
        weights: Vec<u64>,
    ) -> Result<Self, PartitionError> {
        let patches = patch_sizes.len();
        let vertices = new_to_old.len();
        if !patches.is_power_of_two() {
            return Err(PartitionError::PatchCount { patches, vertices });
        }
        if vertices >= i32::MAX as usize {
            return Err(PartitionError::TooLarge {
                vertices,
                entries: 0,
            });
        }
        check_length("patch weights", patches, weights.len())?;
        if let Some(patch) = patch_sizes.iter().position(|&size| size == 0) {
            return Err(PartitionError::EmptyPatch { patch });
        }
        let total: u64 = patch_sizes.iter().map(|&size| u64::from(size)).sum();
        check_length(
            "vertices of all patches",
            vertices,
            usize::try_from(total).unwrap_or(usize::MAX),
        )?;

        let mut old_to_new = vec![UNSEEN; vertices];
        for (new, &old) in (0..).zip(&new_to_old) {
            match old_to_new.get_mut(old as usize) {
                None => {
                    return Err(PartitionError::NoSuchVertex {
                        vertex: new,
                        neighbour: old,
                        vertices,
                    });
                }
                Some(seen) if *seen != UNSEEN => {
                    return Err(PartitionError::NotAPermutation { vertex: old });
                }
                Some(unseen) => *unseen = new,
            }
        }
        let mut offsets = vec![0];
        let mut patch_of = Vec::with_capacity(vertices);
        for (patch, &size) in (0_u32..).zip(patch_sizes) {
            patch_of.extend(std::iter::repeat_n(patch, size as usize));
            offsets.push(count_u32(patch_of.len()));
        }
        Ok(Self {
            depth: patches.ilog2(),
            offsets,
            weights,
            new_to_old: new_to_old.into(),
            old_to_new: old_to_new.into(),
            patch_of: patch_of.into(),
        })
    }

    /// The arrays that it is made of.
    #[must_use]
    pub fn arrays(&self) -> PatchTreeArrays<'_> {
        PatchTreeArrays {
            offsets: self.offsets.clone(),
            weights: self.weights.clone(),
            new_to_old: Cow::Borrowed(&*self.new_to_old),
            old_to_new: Cow::Borrowed(&*self.old_to_new),
            patch_of: Cow::Borrowed(&*self.patch_of),
        }
    }

    /// The tree whose [arrays](Self::arrays) these are. Nothing is read of the arrays that have a
    /// number for each vertex, so that pages of mapped files stay where they are: numbers that are
    /// no tree make methods panic, or give wrong answers.
    ///
    /// # Errors
    /// [`PartitionError::PatchCount`], [`PartitionError::EmptyPatch`] or
    /// [`PartitionError::Length`] for arrays that do not belong together.
    pub fn from_arrays(arrays: PatchTreeArrays<'static>) -> Result<Self, PartitionError> {
        let PatchTreeArrays {
            offsets,
            weights,
            new_to_old,
            old_to_new,
            patch_of,
        } = arrays;
        let (patches, vertices) = (weights.len(), new_to_old.len());
        if !patches.is_power_of_two() {
            return Err(PartitionError::PatchCount { patches, vertices });
        }
        check_length("starts of patches", patches + 1, offsets.len())?;
        if let Some(patch) = offsets.windows(2).position(|two| two[0] >= two[1]) {
            return Err(PartitionError::EmptyPatch { patch });
        }
        let [first, last] = [offsets[0], offsets[patches]].map(|at| at as usize);
        check_length("vertices of all patches", vertices, last - first)?;
        check_length("vertices of all patches", vertices, old_to_new.len())?;
        check_length("vertices of all patches", vertices, patch_of.len())?;
        Ok(Self {
            depth: patches.ilog2(),
            offsets,
            weights,
            new_to_old,
            old_to_new,
            patch_of,
        })
    }

    /// Levels below the root: the tree has 2^depth patches.
    #[must_use]
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// How many patches there are, a power of two.
    #[must_use]
    pub fn patch_count(&self) -> usize {
        self.weights.len()
    }

    /// How many vertices there are in all patches.
    #[must_use]
    pub fn vertex_count(&self) -> usize {
        self.new_to_old.len()
    }

    /// The vertices of a patch in the new numbering; never empty.
    ///
    /// # Panics
    /// If there is no such patch.
    #[must_use]
    pub fn patch_vertices(&self, patch: usize) -> Range<usize> {
        self.offsets[patch] as usize..self.offsets[patch + 1] as usize
    }

    /// The weight of the vertices of a patch together.
    ///
    /// # Panics
    /// If there is no such patch.
    #[must_use]
    pub fn patch_weight(&self, patch: usize) -> u64 {
        self.weights[patch]
    }

    /// The patch of a vertex, given by its new number.
    ///
    /// # Panics
    /// If there is no such vertex.
    #[must_use]
    pub fn patch_of(&self, new_vertex: u32) -> usize {
        self.patch_of[new_vertex as usize] as usize
    }

    /// The patch of each vertex, by new number.
    #[must_use]
    pub(crate) fn patches_of_vertices(&self) -> &[u32] {
        &self.patch_of
    }

    /// The number in the mesh of each new number.
    #[must_use]
    pub fn new_to_old(&self) -> &[u32] {
        &self.new_to_old
    }

    /// The new number of each vertex of the mesh.
    #[must_use]
    pub fn old_to_new(&self) -> &[u32] {
        &self.old_to_new
    }

    /// Cuts with any rule: `split(subgraph, its vertices, least)` tells the second side, each side
    /// getting at least `least` vertices. There must be no more patches than vertices, and a power
    /// of two of them.
    pub(crate) fn by_bisection(
        graph: &Graph,
        patches: usize,
        mut split: impl FnMut(&Subgraph, &[u32], usize) -> Result<Vec<bool>, PartitionError>,
    ) -> Result<Self, PartitionError> {
        let mut extractor = Extractor::new(graph);
        let mut new_to_old = Vec::with_capacity(graph.vertex_count());
        let mut sizes = Vec::with_capacity(patches);
        let mut weights = Vec::with_capacity(patches);
        // Branches still to be cut, the next one in the order of the leaves on top.
        let mut branches = vec![(graph.vertices().collect::<Vec<u32>>(), patches)];
        let mut surroundings = vec![Beside::Elsewhere; graph.vertex_count()];
        while let Some((vertices, leaves)) = branches.pop() {
            let part = extractor.extract(&vertices);
            if leaves == 1 {
                let before = sizes.last().map_or(0, |&size: &u32| size as usize);
                let before = new_to_old.len() - before;
                for &v in &new_to_old[before..] {
                    surroundings[v as usize] = Beside::Elsewhere;
                }
                for &v in &vertices {
                    surroundings[v as usize] = Beside::Before;
                }
                new_to_old.extend(part.level_order().into_iter().rev().map(|v| vertices[v]));
                sizes.push(count_u32(vertices.len()));
                weights.push(vertices.iter().map(|&v| u64::from(graph.weight(v))).sum());
                continue;
            }
            let mut second = split(&part, &vertices, leaves / 2)?;
            // Which side METIS calls the first is an accident. First comes the one that hangs more
            // on the leaf before and less on the branch after, for ranks own runs of leaves, which
            // are to be in one piece.
            let after = branches.last().map_or(&[][..], |(vertices, _)| vertices);
            let mark = |surroundings: &mut [Beside], mark| {
                for &v in after {
                    surroundings[v as usize] = mark;
                }
            };
            mark(&mut surroundings, Beside::After);
            let pull = |v: u32| -> i64 {
                let towards = |&w: &u32| match surroundings[w as usize] {
                    Beside::Before => 1,
                    Beside::After => -1,
                    Beside::Elsewhere => 0,
                };
                graph.neighbours(v).iter().map(towards).sum()
            };
            let pulls = vertices.iter().zip(&second).map(|(&v, &second)| {
                let pull = pull(v);
                if second { -pull } else { pull }
            });
            let first_comes_first: i64 = pulls.sum();
            mark(&mut surroundings, Beside::Elsewhere);
            // Among equals, the one with the lowest vertex.
            if first_comes_first < 0 || (first_comes_first == 0 && second[0]) {
                second.iter_mut().for_each(|side| *side = !*side);
            }
            let side = |wanted: bool| -> Vec<u32> {
                let chosen = vertices
                    .iter()
                    .zip(&second)
                    .filter(|(_, second)| **second == wanted);
                chosen.map(|(&v, _)| v).collect()
            };
            branches.push((side(true), leaves / 2));
            branches.push((side(false), leaves / 2));
        }
        Self::from_numbering(new_to_old, &sizes, weights)
    }
}

/// The place of a vertex, in the order of the leaves, seen from the branch that is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Beside {
    /// The leaf just before.
    Before,
    /// The branch just after.
    After,
    Elsewhere,
}

const UNSEEN: u32 = u32::MAX;

/// No patch is to have more vertices than this on average, or its rows and vectors outgrow a cache.
pub const MOST_VERTICES: usize = 2000;

/// Small meshes are cut into fewer patches rather than into patches of fewer vertices than this on
/// average.
pub const FEWEST_VERTICES: usize = 64;

/// Patches wanted where the mesh has vertices to fill them: this many ranks can share it.
const WANTED_PATCHES: usize = 32;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A sheet of `side * side` vertices with both diagonals, numbered by rows.
    fn sheet(side: u32) -> Graph {
        let edges = (0..side * side).flat_map(move |v| {
            let (x, y) = (v % side, v / side);
            [(1, 0), (0, 1), (1, 1), (-1, 1)]
                .into_iter()
                .filter_map(move |(dx, dy)| {
                    let (x, y) = (x.checked_add_signed(dx)?, y.checked_add_signed(dy)?);
                    (x < side && y < side).then_some((v, y * side + x))
                })
        });
        Graph::from_edges((side * side) as usize, edges).unwrap()
    }

    /// Checks everything that a tree promises, whatever graph it was made from.
    fn assert_well_formed(tree: &PatchTree, graph: &Graph) {
        assert_eq!(tree.vertex_count(), graph.vertex_count());
        assert_eq!(tree.patch_count(), 1 << tree.depth());
        let mut next = 0;
        for patch in 0..tree.patch_count() {
            let range = tree.patch_vertices(patch);
            assert_eq!(range.start, next);
            assert!(!range.is_empty(), "patch {patch} is empty");
            next = range.end;
            let weight = range
                .clone()
                .map(|new| u64::from(graph.weight(tree.new_to_old()[new])))
                .sum();
            assert_eq!(tree.patch_weight(patch), weight);
            for new in range {
                assert_eq!(tree.patch_of(new as u32), patch);
                assert_eq!(
                    tree.old_to_new()[tree.new_to_old()[new] as usize] as usize,
                    new
                );
            }
        }
        assert_eq!(next, tree.vertex_count());
    }

    #[test]
    fn patch_count_depends_on_the_mesh_alone() {
        let automatic = PatchOptions::default();
        for (vertices, patches) in [
            (1, 1),
            (63, 1),
            (127, 1),
            (128, 2),
            (2047, 16),
            (2048, 32),
            (6400, 32),
            (64_000, 32),
            (64_001, 64),
            (100_000, 64),
            (500_000, 256),
        ] {
            assert_eq!(
                automatic.patches_for(vertices),
                Ok(patches),
                "{vertices} vertices"
            );
        }
    }

    #[test]
    fn impossible_patch_counts_are_refused() {
        let graph = sheet(2);
        for patches in [0, 3, 8] {
            assert_eq!(
                PatchTree::build(
                    &graph,
                    &PatchOptions {
                        patches: Some(patches),
                        seed: 1
                    }
                ),
                Err(PartitionError::PatchCount {
                    patches,
                    vertices: 4
                })
            );
        }
        let tree = PatchTree::build(
            &graph,
            &PatchOptions {
                patches: Some(4),
                seed: 1,
            },
        )
        .unwrap();
        assert_well_formed(&tree, &graph);
    }

    #[test]
    fn one_vertex_is_one_patch() {
        let graph = Graph::from_edges(1, []).unwrap();
        let tree = PatchTree::build(&graph, &PatchOptions::default()).unwrap();
        assert_well_formed(&tree, &graph);
        assert_eq!((tree.depth(), tree.patch_count()), (0, 1));
    }

    #[test]
    fn a_sheet_is_cut_evenly() {
        let graph = sheet(60);
        let tree = PatchTree::build(&graph, &PatchOptions::default()).unwrap();
        assert_well_formed(&tree, &graph);
        assert_eq!(tree.patch_count(), 32);
        let sizes = (0..32).map(|patch| tree.patch_vertices(patch).len());
        assert!(
            sizes.clone().max() <= Some(118),
            "{:?}",
            sizes.collect::<Vec<_>>()
        );
    }

    #[test]
    fn equal_graphs_give_equal_trees_also_on_many_threads_at_once() {
        let graph = sheet(40);
        let build = || PatchTree::build(&graph, &PatchOptions::default()).unwrap();
        let tree = build();
        let others: Vec<PatchTree> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(build)).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        assert!(others.iter().all(|other| *other == tree));
    }

    #[test]
    fn several_cloths_end_up_in_patches_of_their_own() {
        let one = sheet(16);
        let pieces = (0..4).flat_map(|piece| {
            let one = &one;
            one.vertices().flat_map(move |v| {
                one.neighbours(v)
                    .iter()
                    .map(move |&w| (256 * piece + v, 256 * piece + w))
            })
        });
        let graph = Graph::from_edges(1024, pieces).unwrap();
        let tree = PatchTree::build(
            &graph,
            &PatchOptions {
                patches: Some(4),
                seed: 1,
            },
        )
        .unwrap();
        assert_well_formed(&tree, &graph);
        for patch in 0..4 {
            let pieces: std::collections::BTreeSet<u32> = tree
                .patch_vertices(patch)
                .map(|new| tree.new_to_old()[new] / 256)
                .collect();
            assert_eq!(pieces.len(), 1, "patch {patch} holds parts of {pieces:?}");
        }
    }

    #[test]
    fn a_tree_made_elsewhere_is_checked() {
        let from = |numbering: &[u32], sizes: &[u32]| {
            PatchTree::from_numbering(numbering.to_vec(), sizes, vec![1; sizes.len()])
        };
        assert!(from(&[2, 0, 1], &[1, 2]).is_ok());
        assert_eq!(
            from(&[0, 0], &[1, 1]),
            Err(PartitionError::NotAPermutation { vertex: 0 })
        );
        assert!(matches!(
            from(&[0, 2], &[1, 1]),
            Err(PartitionError::NoSuchVertex { .. })
        ));
        assert_eq!(
            from(&[0, 1], &[2, 0]),
            Err(PartitionError::EmptyPatch { patch: 1 })
        );
        assert!(matches!(
            from(&[0, 1], &[1, 2]),
            Err(PartitionError::Length { .. })
        ));
        assert!(matches!(
            from(&[0, 1], &[u32::MAX, 2]),
            Err(PartitionError::Length { .. })
        ));
        assert!(matches!(
            from(&[], &[]),
            Err(PartitionError::PatchCount { .. })
        ));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn any_graph_becomes_a_tree_of_patches_with_a_vertex_each(
            vertices in 1_usize..200,
            pairs in prop::collection::vec((any::<u32>(), any::<u32>()), 0..400),
            heavy in prop::collection::vec(1_u32..50, 200),
            exponent in 0_u32..8,
            seed in 0_i32..3,
        ) {
            let count = vertices as u32;
            let edges = pairs.into_iter().map(|(a, b)| (a % count, b % count)).filter(|(a, b)| a != b);
            let graph = Graph::from_edges(vertices, edges).unwrap()
                .with_weights(heavy[..vertices].to_vec()).unwrap();
            let patches = (1_usize << exponent).min(1 << vertices.ilog2());
            let options = PatchOptions { patches: Some(patches), seed };
            let tree = PatchTree::build(&graph, &options).unwrap();
            assert_well_formed(&tree, &graph);
            prop_assert_eq!(tree.patch_count(), patches);
            prop_assert_eq!(&tree, &PatchTree::build(&graph, &options).unwrap());
        }
    }
}
