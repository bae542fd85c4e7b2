//! Candidates: pairs of triangles and pairs of features that a step's tests come by on their way to
//! contacts, counted and shown.
//!
//! The traversal is that of [`TestRun`], to the last test; only the use of the pairs that trees
//! leave over differs. No step calls this. Benches and tests do, to compare each stage with other
//! libraries and with brute force.

use crate::collide::bodies::collider::{BodySurface, Implicit};
use crate::collide::bvh::kdop::Kdop;
use crate::collide::bvh::traversal::{EVERY, Kin, Same, Unlike, advance};
use crate::collide::bvh::tree::Bvh;
use crate::collide::cull::rest_adjacent::RestAdjacentPair;
use crate::collide::narrow::contact::PairKind;
use crate::collide::narrow::feature_filter::{FeatureFilter, Leaves};
use crate::collide::narrow::features;
use crate::collide::query::snapshot::Snapshot;
use crate::collide::query::targets::Target;
use crate::collide::query::test_run::{Sink, TestRun};

/// Makes the volumes of all patches' trees, which tests otherwise make when they first need them.
/// Returns how many.
pub fn refit(snap: &Snapshot<'_>) -> usize {
    let patches = 0..snap.cloth.patches().len() as u32;
    patches.map(|p| snap.patch_volumes(p).count()).sum()
}

/// Finds all pairs of triangles whose volumes overlap, less those that culling leaves out: of cloth
/// with itself, and of cloth, first, with bodies. Returns how many tests that took.
pub fn triangle_pairs(snap: &Snapshot<'_>, found: impl FnMut(u32, u32)) -> u64 {
    run_all(snap, &mut Triangles(found))
}

/// Finds all pairs of features of cloth whose volumes overlap, less those that culling leaves out;
/// none of a face and its corner or of edges that meet. Each is found once, named as in
/// [`PairId`](crate::collide::narrow::contact::PairId). Returns how many tests that took.
pub fn feature_pairs(snap: &Snapshot<'_>, found: impl FnMut(PairKind, u32, u32)) -> u64 {
    run_all(snap, &mut Features(found))
}

/// A hierarchy with the volumes of its nodes, of whatever kind.
#[derive(Clone, Copy, Debug)]
pub struct Tree<'a, const N: usize>(pub &'a Bvh, pub &'a [Kdop<N>]);

/// Finds all pairs of leaves of a tree whose volumes overlap. Returns how many tests that took.
pub fn self_pairs<const N: usize>(tree: Tree<'_, N>, found: impl FnMut(u32, u32)) -> u64 {
    between::<Same, N>([tree, tree], found)
}

/// Finds all pairs of leaves of two trees whose volumes overlap. Returns how many tests that took.
pub fn pairs<const N: usize>(
    first: Tree<'_, N>,
    second: Tree<'_, N>,
    found: impl FnMut(u32, u32),
) -> u64 {
    between::<Unlike, N>([first, second], found)
}

fn between<K: Kin, const N: usize>(
    trees: [Tree<'_, N>; 2],
    mut found: impl FnMut(u32, u32),
) -> u64 {
    let both = trees.map(|Tree(tree, volumes)| (tree, volumes));
    let mut stack = vec![(0, 0)];
    if trees.iter().any(|tree| tree.0.is_empty()) {
        stack.clear();
    }
    let mut tests = 0;
    while !stack.is_empty() {
        let [one, two] = trees.map(|tree| tree.0);
        let leaf = |leaves: &[(u32, u32)]| {
            for &(s, t) in leaves {
                found(one.triangle(s), two.triangle(t));
            }
        };
        let made = advance::<K, &[Kdop<N>]>(both, &mut stack, u32::MAX, leaf, EVERY);
        tests += u64::from(made);
    }
    tests
}

fn run_all(snap: &Snapshot<'_>, sink: &mut impl Sink) -> u64 {
    let run = |target: Target| {
        let mut tests = 0;
        if let Some(mut run) = TestRun::new(target, snap) {
            let mut done = false;
            while !done {
                let (made, now) = run.advance_into(snap, u32::MAX, sink);
                tests += u64::from(made.tests);
                done = now;
            }
        }
        tests
    };
    snap.targets().map(run).sum()
}

struct Triangles<F>(F);

impl<F: FnMut(u32, u32)> Sink for Triangles<F> {
    #[inline]
    fn cloth(
        &mut self,
        _: &Snapshot<'_>,
        _: &mut FeatureFilter,
        [one, two]: [&Leaves<'_>; 2],
        pairs: &[(u32, u32)],
    ) {
        for &(s, t) in pairs {
            (self.0)(one.triangle(s), two.triangle(t));
        }
    }

    fn rest_adjacent(&mut self, _: &Snapshot<'_>, _: &RestAdjacentPair) {}

    #[inline]
    fn body(&mut self, _: &Snapshot<'_>, _: (u32, &BodySurface), [s, t]: [u32; 2]) {
        (self.0)(s, t);
    }

    fn solid(&mut self, _: &Snapshot<'_>, _: (u32, Implicit<'_>), _: u32) {}
}

struct Features<F>(F);

impl<F: FnMut(PairKind, u32, u32)> Sink for Features<F> {
    #[inline]
    fn cloth(
        &mut self,
        snap: &Snapshot<'_>,
        sieve: &mut FeatureFilter,
        leaves: [&Leaves<'_>; 2],
        pairs: &[(u32, u32)],
    ) {
        sieve.features(snap, leaves, pairs, &mut self.0);
    }

    #[inline]
    fn rest_adjacent(&mut self, snap: &Snapshot<'_>, pair: &RestAdjacentPair) {
        features::rest_adjacent_features(snap, pair, &mut self.0);
    }

    fn body(&mut self, _: &Snapshot<'_>, _: (u32, &BodySurface), _: [u32; 2]) {}

    fn solid(&mut self, _: &Snapshot<'_>, _: (u32, Implicit<'_>), _: u32) {}
}
