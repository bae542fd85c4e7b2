//! The search for hits: pairs of cloth features whose displacements are not certified while all
//! vertices go at a common rate.
//!
//! The traversal is that of contacts, with the actual displacements in place of the foreseen ones.
//! Pairs that it leaves out stay apart by the reach of contacts, which is far above the gap to be
//! kept. The others are tested by a plane that goes with the mean displacement of the four
//! vertices: a common motion cancels, and the plane's argument holds as seen from what goes with
//! it.

use glam::DVec3;

use super::plane::{self, Kind, Motion};
use super::truncate::Pair;
use crate::collide::bodies::collider::{AnalyticBody, BodySurface};
use crate::collide::cull::rest_adjacent::RestAdjacentPair;
use crate::collide::narrow::contact::PairKind;
use crate::collide::narrow::feature_filter::{FeatureFilter, Leaves};
use crate::collide::narrow::features;
use crate::collide::query::snapshot::Snapshot;
use crate::collide::query::targets::Target;
use crate::collide::query::test_run::{Sink, TestRun};
use crate::collide::surface::Surface;

/// The pairs of a search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hits {
    /// The pairs that are not certified, each once, in no order that matters.
    pub pairs: Vec<Pair>,
    /// The number of pairs that were tested.
    pub tests: u64,
}

/// Whether a plane certifies a pair whose vertices go at a common rate.
#[must_use]
pub fn is_certified(kind: Kind, displacements: &Motion, least: f64) -> bool {
    let displacements = displacements.less_mean();
    plane::separating(kind, &displacements.start)
        .is_some_and(|at_start| plane::keeps_apart(kind, &at_start, &displacements, least))
}

impl Hits {
    /// Adds the hits of a target of cloth with itself; those of bodies are none. `snap` has the
    /// start of the step and the velocities with which all vertices go to `goal` (m). `least` is
    /// the gap in m that certified features keep, see [`Truncate::least`](super::Truncate::least).
    pub fn add(&mut self, snap: &Snapshot<'_>, target: Target, goal: &[DVec3], least: f64) {
        let Some(mut run) = TestRun::new(target, snap) else {
            return;
        };
        let mut sink = Testing {
            hits: self,
            goal,
            least,
        };
        while !run.advance_into(snap, u32::MAX, &mut sink).1 {}
    }
}

struct Testing<'a> {
    hits: &'a mut Hits,
    goal: &'a [DVec3],
    least: f64,
}

impl Testing<'_> {
    fn test(&mut self, snap: &Snapshot<'_>, kind: PairKind, a: u32, b: u32) {
        let pair = named(snap.cloth.surface(), kind, a, b);
        let displacements = Motion {
            start: pair.vertices.map(|v| snap.x[v as usize]),
            end: pair.vertices.map(|v| self.goal[v as usize]),
        };
        self.hits.tests += 1;
        if !is_certified(pair.kind, &displacements, self.least) {
            self.hits.pairs.push(pair);
        }
    }
}

/// The vertices of a pair of cloth features.
fn named(surface: &Surface, kind: PairKind, a: u32, b: u32) -> Pair {
    if kind == PairKind::VertexFace {
        let [p, q, r] = surface.triangles()[b as usize];
        Pair {
            kind: Kind::VertexFace,
            vertices: [a, p, q, r],
        }
    } else {
        let ([p, q], [r, s]) = (surface.edges()[a as usize], surface.edges()[b as usize]);
        Pair {
            kind: Kind::EdgeEdge,
            vertices: [p, q, r, s],
        }
    }
}

impl Sink for Testing<'_> {
    #[inline]
    fn cloth(
        &mut self,
        snap: &Snapshot<'_>,
        filter: &mut FeatureFilter,
        leaves: [&Leaves<'_>; 2],
        pairs: &[(u32, u32)],
    ) {
        filter.features(snap, leaves, pairs, |kind, a, b| {
            self.test(snap, kind, a, b)
        });
    }

    #[inline]
    fn rest_adjacent(&mut self, snap: &Snapshot<'_>, pair: &RestAdjacentPair) {
        features::rest_adjacent_features(snap, pair, |kind, a, b| self.test(snap, kind, a, b));
    }

    fn body(&mut self, _: &Snapshot<'_>, _: (u32, &BodySurface), _: [u32; 2]) {}

    fn solid(&mut self, _: &Snapshot<'_>, _: (u32, &AnalyticBody), _: u32) {}
}
