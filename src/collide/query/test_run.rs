//! Test runs: tests of hierarchies against each other as values, which can be stopped, split and
//! sent.
//!
//! The recursion of a bounding volume test is kept on an explicit stack of untried *tests*, pairs
//! of nodes [TB06 §4.2.2, Fig. 5]. The owner takes the newest. The oldest is given away, which is
//! nearest to the root and so likely the largest, or every other test, which shares evenly whatever
//! the tree's shape. A test is only pushed if its volumes overlap.
//!
//! This file does not say which rank gives tests to which, nor when.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::collide::bodies::collider::{BodySurface, Collider, Implicit};
use crate::collide::bvh::quantised::Nodes;
use crate::collide::bvh::traversal::{
    Alike, EVERY, Same, Tree, Unlike, advance, ask_all, second_of,
};
use crate::collide::bvh::tree::{Bvh, Node};
use crate::collide::cull::rest_adjacent::RestAdjacentPair;
use crate::collide::narrow::contact::Contact;
use crate::collide::narrow::feature_filter::{FeatureFilter, Leaves, TRIANGLES};
use crate::collide::query::findings::Findings;
use crate::collide::query::snapshot::Snapshot;
use crate::collide::query::targets::{Target, near_solid};
use crate::collide::query::volumes::Held;

/// The numbers of tests that were made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Made {
    /// All tests.
    pub(crate) tests: u32,
    /// Tests of leaves.
    pub(crate) leaves: u32,
    /// Tests of groups of rest-adjacent pairs.
    pub(crate) rest_adjacent: u32,
}

/// The use of the pairs that the trees leave over.
pub(in crate::collide) trait Sink {
    /// Takes pairs of triangles of cloth whose volumes overlap, given as leaves; no more than
    /// [`TRIANGLES`].
    fn cloth(
        &mut self,
        snap: &Snapshot<'_>,
        sieve: &mut FeatureFilter,
        leaves: [&Leaves<'_>; 2],
        pairs: &[(u32, u32)],
    );

    /// Takes two features of cloth that are rest-adjacent.
    fn rest_adjacent(&mut self, snap: &Snapshot<'_>, pair: &RestAdjacentPair);

    /// Takes a triangle of cloth and one of a body whose volumes overlap.
    fn body(&mut self, snap: &Snapshot<'_>, body: (u32, &BodySurface), pair: [u32; 2]);

    /// Takes a triangle of cloth close to a body without triangles.
    fn solid(&mut self, snap: &Snapshot<'_>, body: (u32, Implicit<'_>), triangle: u32);
}

/// The beginning of the test of a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Begun {
    /// There is no test, because the roots are apart.
    Apart,
    /// There is no test: the roots of two patches meet, but no subtrees do.
    Missed,
    /// The test begins with this run.
    Run(TestRun),
}

/// The kind of a single test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Single {
    /// A test of groups of rest-adjacent pairs.
    RestAdjacent,
    /// A test of a node and itself.
    Itself,
    /// A test of two nodes.
    Pair,
}

/// The function that makes a test and puts those that it leads to on a stack, oldest first. It
/// answers `false` if it makes none.
type Expand<'a> = &'a mut dyn FnMut((u32, u32), &mut Vec<(u32, u32)>) -> bool;

/// The mark, in the first number of a test, of groups of rest-adjacent pairs of a patch: those from
/// that number on, before the second.
const REST_ADJACENT: u32 = 1 << 31;
/// The number of groups of rest-adjacent pairs that are tested at once.
const GROUPS: u32 = 64;
/// The usual number of pairs of subtrees of two patches that touch.
const USUAL: usize = 16;

/// A test under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestRun {
    target: Target,
    /// The untried tests, oldest first: a node of each tree. For a patch against itself, equal
    /// nodes stand for all pairs below; for a body by its distance the second is 0.
    /// [`REST_ADJACENT`] marks other tests.
    stack: Vec<(u32, u32)>,
    /// The subtrees of each of two patches that tests look into, a bit for each; the second are
    /// those of a body that is tested in patches.
    subtrees: [u64; 2],
}

impl TestRun {
    /// The whole test of a target; `None` if it is seen at once that the two are apart.
    #[must_use]
    pub fn new(target: Target, snap: &Snapshot<'_>) -> Option<Self> {
        match Self::begin(target, snap) {
            Begun::Run(run) => Some(run),
            Begun::Apart | Begun::Missed => None,
        }
    }

    /// Begins the test of a target, as [`TestRun::new`], and tells why there is none.
    pub(crate) fn begin(target: Target, snap: &Snapshot<'_>) -> Begun {
        if !target.meets(snap) {
            return Begun::Apart;
        }
        let (mut stack, mut subtrees) = (vec![(0, 0)], [0; 2]);
        match target {
            Target::Patch(p) => {
                let groups = snap
                    .rest_adjacent_pairs(p)
                    .map_or(0, |rest_adjacent| rest_adjacent.groups().len());
                if groups > 0 {
                    stack.push((REST_ADJACENT, groups as u32));
                }
            }
            Target::Patches(p, q) => {
                (stack, subtrees) = first_tests(snap, (p, q));
                if stack.is_empty() {
                    return Begun::Missed;
                }
            }
            Target::PatchBody(p, b) => {
                if let Collider::Triangles(surface) = snap.body(b)
                    && snap.is_in_patches(b, surface)
                {
                    // Each patch of the body begins with its own root.
                    let near = snap.body_patches_near(b, surface, snap.patch_root(p));
                    let roots = (0..u64::BITS).filter(|patch| near >> patch & 1 != 0);
                    stack.clear();
                    stack.extend(roots.map(|patch| (0, surface.patches().root(patch))));
                    subtrees[1] = near;
                }
            }
        }
        Begun::Run(Self {
            target,
            stack,
            subtrees,
        })
    }

    /// The target.
    #[must_use]
    pub fn target(&self) -> Target {
        self.target
    }

    /// The subtrees of each of two patches that the tests look into, a bit for each.
    pub(crate) fn subtrees(&self) -> [u64; 2] {
        self.subtrees
    }

    /// Makes tests until all are done or `budget` are made. Returns how many it made, and whether
    /// all are done.
    ///
    /// The order of the contacts that it appends does not matter.
    pub fn advance(
        &mut self,
        snap: &Snapshot<'_>,
        budget: u32,
        out: &mut Vec<Contact>,
    ) -> (u32, bool) {
        let (made, done) = self.advance_counting(snap, budget, out);
        (made.tests, done)
    }

    /// Makes tests as [`TestRun::advance`], and tells of what kinds they were.
    pub(crate) fn advance_counting(
        &mut self,
        snap: &Snapshot<'_>,
        budget: u32,
        out: &mut Vec<Contact>,
    ) -> (Made, bool) {
        let mut findings = Findings {
            contacts: std::mem::take(out),
            candidates: None,
        };
        let outcome = self.advance_into(snap, budget, &mut findings);
        *out = findings.contacts;
        outcome
    }

    /// Makes tests as [`TestRun::advance_counting`], and keeps more of what they find.
    pub(crate) fn advance_finding(
        &mut self,
        snap: &Snapshot<'_>,
        budget: u32,
        out: &mut Findings,
    ) -> (Made, bool) {
        self.advance_into(snap, budget, out)
    }

    /// Makes tests as [`TestRun::advance`], for any use of the pairs that they leave over.
    pub(in crate::collide) fn advance_into(
        &mut self,
        snap: &Snapshot<'_>,
        budget: u32,
        out: &mut impl Sink,
    ) -> (Made, bool) {
        let (mut leaves, mut rest_adjacent) = (0, 0);
        let tree = |p: u32| &snap.cloth.patches()[p as usize];
        let stack = &mut self.stack;
        let tests = match self.target {
            Target::Patch(p) => {
                let mut tests = 0;
                while let Some(&(first, end)) =
                    stack.last().filter(|test| test.0 & REST_ADJACENT != 0)
                {
                    let first = first & !REST_ADJACENT;
                    let cut = end.min(first + GROUPS);
                    stack.pop();
                    if cut < end {
                        stack.push((cut | REST_ADJACENT, end));
                    }
                    test_rest_adjacent(snap, p, first..cut, out);
                    tests += cut - first;
                    rest_adjacent = tests;
                    if tests >= budget {
                        let made = Made {
                            tests,
                            leaves,
                            rest_adjacent,
                        };
                        return (made, stack.is_empty());
                    }
                }
                let volumes = snap.whole_volumes(p);
                let nodes = volumes.nodes();
                let own = Leaves::new(snap, p, &volumes);
                let mut pairs = LeafPairs::new(snap, [&own, &own], out);
                let leaf = |found: &[(u32, u32)]| {
                    leaves += found.len() as u32;
                    pairs.add(found);
                };
                let by_separation = snap.by_separation(p, p);
                let of = [(tree(p), nodes); 2];
                tests += advance::<Same, _>(of, stack, budget - tests, leaf, by_separation);
                pairs.finish();
                tests
            }
            Target::Patches(p, q) => {
                let [one, two] = self.subtrees;
                let volumes = [(p, one), (q, two)].map(|(p, which)| snap.some_volumes(p, which));
                let [a, b] = [&volumes[0], &volumes[1]].map(Held::nodes);
                let one = Leaves::new(snap, p, &volumes[0]);
                let two = Leaves::new(snap, q, &volumes[1]);
                let mut pairs = LeafPairs::new(snap, [&one, &two], out);
                let leaf = |found: &[(u32, u32)]| {
                    leaves += found.len() as u32;
                    pairs.add(found);
                };
                let by_separation = snap.by_separation(p, q);
                let trees = [(tree(p), a), (tree(q), b)];
                let tests = advance::<Alike, _>(trees, stack, budget, leaf, by_separation);
                pairs.finish();
                tests
            }
            Target::PatchBody(p, b) => match snap.body(b) {
                Collider::Triangles(solid) => {
                    let own = tree(p);
                    let volumes = snap.whole_volumes(p);
                    let leaf = |found: &[(u32, u32)]| {
                        leaves += found.len() as u32;
                        for &(s, t) in found {
                            let pair = [own.triangle(s), solid.tree.triangle(t)];
                            out.body(snap, (b, solid), pair);
                        }
                    };
                    let of_body = snap.some_body_volumes((b, solid), self.subtrees[1]);
                    let body = (&*solid.tree, of_body.nodes());
                    advance::<Unlike, _>([(own, volumes.nodes()), body], stack, budget, leaf, EVERY)
                }
                solid @ (Collider::Analytic(_) | Collider::Distance(_)) => {
                    let volumes = snap.whole_volumes(p);
                    let own = (tree(p), volumes.nodes());
                    let made = solid.implicit().map_or_else(Made::default, |solid| {
                        advance_solid(snap, own, (b, solid), stack, budget, out)
                    });
                    leaves = made.leaves;
                    made.tests
                }
            },
        };
        let made = Made {
            tests,
            leaves,
            rest_adjacent,
        };
        (made, self.stack.is_empty())
    }

    /// Makes the next test alone. Tells its kind and how many tests it led to, for records of the
    /// shape of a run; `None` when all are done.
    pub(crate) fn make_one(
        &mut self,
        snap: &Snapshot<'_>,
        out: &mut Vec<Contact>,
    ) -> Option<(Made, usize, Single)> {
        let &(a, b) = self.stack.last()?;
        let before = self.stack.len() - 1;
        let single = match self.target {
            _ if a & REST_ADJACENT != 0 => Single::RestAdjacent,
            Target::Patch(_) if a == second_of((a, b)) => Single::Itself,
            _ => Single::Pair,
        };
        let (made, _) = self.advance_counting(snap, 1, out);
        Some((made, self.stack.len() - before, single))
    }

    /// Replaces pending tests by some of those that they lead to, so that several ranks that begin
    /// alike go on with some each. Tells the tests that this took.
    ///
    /// `deal` is given the tests, oldest first, and a function that makes one of them: it puts
    /// those that it leads to on a stack, or answers `false` for a test that may find a contact.
    pub(crate) fn deal(
        &mut self,
        snap: &Snapshot<'_>,
        deal: impl FnOnce(&mut Vec<(u32, u32)>, Expand<'_>),
    ) -> Made {
        let mut stack = std::mem::take(&mut self.stack);
        let (mut sum, mut none) = (Made::default(), Vec::new());
        deal(&mut stack, &mut |test, out| {
            if self.is_last(snap, test) {
                return false;
            }
            self.stack.push(test);
            let (made, _) = self.advance_counting(snap, 1, &mut none);
            sum.tests += made.tests;
            out.append(&mut self.stack);
            true
        });
        debug_assert!(none.is_empty(), "only last tests find contacts");
        self.stack = stack;
        sum
    }

    /// Whether a test leads to no other.
    fn is_last(&self, snap: &Snapshot<'_>, test: (u32, u32)) -> bool {
        let tree = |p: u32| &snap.cloth.patches()[p as usize];
        let is_leaf = |tree: &Bvh, node: u32| matches!(tree.node(node), Node::Leaf(_));
        let (a, b) = (test.0, second_of(test));
        if a & REST_ADJACENT != 0 {
            return true;
        }
        match self.target {
            Target::Patch(p) => is_leaf(tree(p), a) && is_leaf(tree(p), b),
            Target::Patches(p, q) => is_leaf(tree(p), a) && is_leaf(tree(q), b),
            Target::PatchBody(p, body) => {
                is_leaf(tree(p), a)
                    && match snap.body(body) {
                        Collider::Triangles(surface) => is_leaf(&surface.tree, b),
                        Collider::Analytic(_) | Collider::Distance(_) => true,
                    }
            }
        }
    }

    /// Gives pending tests away, as another run of the same target: those that `take` takes out of
    /// the stack, oldest first.
    pub fn split(
        &mut self,
        take: impl FnOnce(&mut Vec<(u32, u32)>) -> Option<Vec<(u32, u32)>>,
    ) -> Option<Self> {
        let stack = take(&mut self.stack)?;
        Some(Self {
            target: self.target,
            stack,
            subtrees: self.subtrees,
        })
    }

    /// Whether all that it names exists, which is asked of a run that came from another rank.
    #[must_use]
    pub fn is_valid(&self, snap: &Snapshot<'_>) -> bool {
        let patches = snap.cloth.patches();
        let nodes = |p: u32| patches.get(p as usize).map(Bvh::len);
        let (first, second) = match self.target {
            Target::Patch(p) => (nodes(p), nodes(p)),
            Target::Patches(p, q) if p < q => (nodes(p), nodes(q)),
            Target::Patches(..) => return false,
            Target::PatchBody(p, b) => {
                let body = snap.bodies().nth(b as usize).map(|body| match body {
                    Collider::Triangles(surface) => surface.tree.len(),
                    Collider::Analytic(_) | Collider::Distance(_) => 1,
                });
                (nodes(p), body)
            }
        };
        let (Some(first), Some(second)) = (first, second) else {
            return false;
        };
        let rest_adjacent = match self.target {
            Target::Patch(p) => snap
                .rest_adjacent_pairs(p)
                .map_or(0, |rest_adjacent| rest_adjacent.groups().len()),
            _ => 0,
        };
        let [one, two] = self.subtrees;
        let by_subtrees = |(a, b): (u32, u32)| match self.target {
            Target::Patches(p, q) => {
                snap.cloth.refit(p).is_in(a, one) && snap.cloth.refit(q).is_in(b, two)
            }
            Target::PatchBody(_, body) => match snap.body(body) {
                Collider::Triangles(surface) if snap.is_in_patches(body, surface) => {
                    surface.patches().is_in(b, two)
                }
                _ => true,
            },
            Target::Patch(_) => true,
        };
        if let Target::PatchBody(_, body) = self.target
            && let Some(Collider::Triangles(surface)) = snap.bodies().nth(body as usize)
            && two & !surface.patches().whole() != 0
        {
            return false;
        }
        if let Target::Patches(p, q) = self.target
            && [(p, one), (q, two)].map(|(p, which)| which & !snap.cloth.refit(p).whole()) != [0; 2]
        {
            return false;
        }
        // Rest-adjacent pairs are tested first, so they are the newest.
        let newest = self.stack.len().saturating_sub(1);
        self.stack.iter().enumerate().all(|(index, &(a, b))| {
            if a & REST_ADJACENT != 0 {
                let is_of_patch = matches!(self.target, Target::Patch(_));
                is_of_patch
                    && index == newest
                    && a & !REST_ADJACENT <= b
                    && b as usize <= rest_adjacent
            } else {
                let second_node = second_of((a, b));
                (a as usize) < first
                    && (second_node as usize) < second
                    && by_subtrees((a, second_node))
            }
        })
    }
}

/// The tests that a test of two patches begins with, and the subtrees of each that are in any, a
/// bit for each. They are of the roots of subtrees that may touch, but for those that culling knows
/// to be apart.
fn first_tests(snap: &Snapshot<'_>, (p, q): (u32, u32)) -> (Vec<(u32, u32)>, [u64; 2]) {
    let (first, second) = (snap.cloth.refit(p), snap.cloth.refit(q));
    let (mut touching, mut subtrees) = (Vec::with_capacity(USUAL), [0; 2]);
    let roots = |&(a, b): &(u32, u32)| (first.root(a), second.root(b));
    let mut add = |(a, b): (u32, u32)| {
        subtrees[0] |= 1 << a;
        subtrees[1] |= 1 << b;
    };
    snap.seed_pairs(p, q, |a, b| touching.push((a, b)));
    let tests = match snap.by_separation(p, q) {
        Some(by_separation) => {
            let mut tests = Vec::with_capacity(touching.len());
            ask_all(&by_separation, touching.iter().map(roots), |at, test| {
                tests.push(test);
                add(touching[at]);
            });
            tests
        }
        None => {
            touching.iter().copied().for_each(add);
            touching.iter().map(roots).collect()
        }
    };
    (tests, subtrees)
}

/// Tests groups of rest-adjacent pairs of a patch.
fn test_rest_adjacent(snap: &Snapshot<'_>, patch: u32, groups: Range<u32>, out: &mut impl Sink) {
    let Some(rest_adjacent) = snap.rest_adjacent_pairs(patch) else {
        return;
    };
    // The volumes of the patch's own vertices are asked for next in any case. Tests of neighbours
    // are not made, because only a few of them are of interest.
    snap.make_vertex_volumes(patch as usize);
    for index in groups {
        let group = &rest_adjacent.groups()[index as usize];
        let apart = snap.apart_from(group.block.into());
        if group.square > apart {
            continue;
        }
        for pair in rest_adjacent.pairs(index as usize) {
            if pair.square <= apart {
                out.rest_adjacent(snap, &pair);
            }
        }
    }
}

/// The pairs of leaves that a traversal finds, gathered for the feature filter.
struct LeafPairs<'a, S> {
    snap: &'a Snapshot<'a>,
    leaves: [&'a Leaves<'a>; 2],
    out: &'a mut S,
    sieve: Box<FeatureFilter>,
    pairs: [(u32, u32); TRIANGLES],
    count: usize,
}

impl<'a, S: Sink> LeafPairs<'a, S> {
    fn new(snap: &'a Snapshot<'a>, leaves: [&'a Leaves<'a>; 2], out: &'a mut S) -> Self {
        Self {
            snap,
            leaves,
            out,
            sieve: FeatureFilter::take(),
            pairs: [(0, 0); TRIANGLES],
            count: 0,
        }
    }

    #[inline(always)]
    fn add(&mut self, found: &[(u32, u32)]) {
        let mut count = self.count;
        for &pair in found {
            self.pairs[count % TRIANGLES] = pair;
            count += 1;
            if count == TRIANGLES {
                self.count = count;
                self.flush();
                count = 0;
            }
        }
        self.count = count;
    }

    /// Passes on what is left.
    fn finish(mut self) {
        self.flush();
        self.sieve.keep();
    }

    fn flush(&mut self) {
        let count = std::mem::take(&mut self.count);
        let pairs = &self.pairs[..count];
        (self.out).cloth(self.snap, &mut self.sieve, self.leaves, pairs);
    }
}

/// Tests a hierarchy against a body without one, as [`advance`].
fn advance_solid(
    snap: &Snapshot<'_>,
    (tree, nodes): Tree<'_, Nodes<'_>>,
    (body, solid): (u32, Implicit<'_>),
    stack: &mut Vec<(u32, u32)>,
    budget: u32,
    out: &mut impl Sink,
) -> Made {
    let (mut tests, mut leaves) = (0, 0);
    while tests < budget {
        let Some((a, _)) = stack.pop() else { break };
        match tree.node(a) {
            Node::Inner(child) => {
                for child in [child, child + 1] {
                    let ball = snap.grid().ball(&nodes.of(child));
                    if near_solid(snap, (body, solid), ball) {
                        stack.push((child, 0));
                    }
                }
                tests += 2;
            }
            Node::Leaf(triangle) => {
                out.solid(snap, (body, solid), triangle);
                tests += 1;
                leaves += 1;
            }
        }
    }
    Made {
        tests,
        leaves,
        rest_adjacent: 0,
    }
}
