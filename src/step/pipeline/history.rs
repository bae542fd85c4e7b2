//! The history of the pairs of features of cloth that a search has found, for the substeps that
//! follow: 32 bytes a pair.
//!
//! A pair knows the side on which its features were in the checked state, and how far apart they
//! were. In each substep the pairs are looked at that may be near by now, for how far their
//! vertices have gone and will go; the others are left out unseen (they are *pruned*). A pair that
//! may come within its distance by the end of the substep pushes.

use std::ops::Range;

use glam::DVec3;

use crate::collide::certify::Kind;
use crate::collide::contact::PairKind;
use crate::collide::{Surface, on_segments, on_triangle};
use crate::heap_bytes::{counts_heap, owns_no_heap};
use crate::scene::Sides;
use crate::step::contact::contacts::{Contacts, Kept};
use crate::step::context::Context;
use crate::step::domain::Domain;
use crate::step::response::Constraint;
use crate::step::state::State;
use crate::team::Team;

use super::sides::{crossings, volume};

/// How near two features are that push in a substep, as a share of the distance to keep: what other
/// pairs push at them meanwhile may bring them nearer.
const REACH: f64 = 1.1;
/// The unit in which directions are kept.
const UNIT: f64 = i16::MAX as f64;
/// The share of their distance below which two features touch, and have no direction.
const TOUCH: f64 = 1e-9;

/// A pair of features of cloth.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Pair {
    /// The vertices: one and the corners of a face, or the ends of two edges.
    vertices: [u32; 4],
    /// The direction from the second feature to the first, in [`UNIT`]s.
    apart: [i16; 3],
    /// Whether the vertex was above the face.
    above: bool,
    /// The distance to keep in m.
    target: f32,
    /// The distance in m at which the features were, or a little less.
    distance: f32,
}

owns_no_heap!(Pair);

const _: () = assert!(size_of::<Pair>() <= 32);

/// How a pair stands.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Stand {
    weights: [f64; 4],
    /// The direction in which the features come apart, or back to where they belong.
    normal: DVec3,
    /// The distance in m, negative on the wrong side.
    gap: f64,
}

impl Pair {
    fn new(kind: Kind, found: &Found) -> Self {
        let Found {
            vertices,
            x,
            normal,
            gap,
            target,
        } = *found;
        Self {
            vertices,
            apart: (normal * UNIT).round().to_array().map(|n| n as i16),
            above: volume(kind, &x) > 0.0,
            target: target as f32,
            distance: (gap as f32).next_down(),
        }
    }

    /// The direction from the second feature to the first in the checked state.
    fn apart(&self) -> DVec3 {
        DVec3::from_array(self.apart.map(f64::from)) / UNIT
    }

    /// How the pair stands at `x` (m), if it was at `start`.
    fn stand(&self, kind: Kind, start: &[DVec3; 4], x: &[DVec3; 4], sides: Sides) -> Stand {
        let [p, a, b, c] = *x;
        let weights = match kind {
            Kind::VertexFace => {
                let w = on_triangle(p, a, b, c);
                [1.0, -w[0], -w[1], -w[2]]
            }
            Kind::EdgeEdge => {
                let (t, u) = on_segments(p, a, b, c);
                [1.0 - t, t, u - 1.0, -u]
            }
        };
        let way = (p * weights[0] + a * weights[1]) + (b * weights[2] + c * weights[3]);
        let looks_crossed = || match kind {
            Kind::VertexFace => (volume(kind, x) > 0.0) != self.above,
            Kind::EdgeEdge => way.dot(self.apart()) < 0.0,
        };
        let crossed = match sides {
            Sides::None => false,
            Sides::Paper => looks_crossed(),
            Sides::Parity => looks_crossed() && crossings(kind, start, x) % 2 == 1,
        };
        let distance = way.length();
        let sign = if crossed { -1.0 } else { 1.0 };
        let normal = if distance > TOUCH * f64::from(self.target) {
            way * (sign / distance)
        } else {
            self.upright(kind, x)
        };
        Stand {
            weights,
            normal,
            gap: sign * distance,
        }
    }

    /// The direction in which features come apart that touch.
    fn upright(&self, kind: Kind, [_, a, b, c]: &[DVec3; 4]) -> DVec3 {
        let apart = self.apart();
        match kind {
            Kind::VertexFace => {
                let normal = (*b - *a).cross(*c - *a);
                let normal = if self.above { normal } else { -normal };
                normal.normalize_or(apart.normalize_or(DVec3::Z))
            }
            Kind::EdgeEdge => apart.normalize_or(DVec3::Z),
        }
    }
}

/// A pair that was found in a checked state.
struct Found {
    vertices: [u32; 4],
    /// Where they are in m.
    x: [DVec3; 4],
    normal: DVec3,
    gap: f64,
    target: f64,
}

/// The pairs that a rank keeps: those with a vertex of its own.
#[derive(Debug)]
pub(crate) struct History {
    owned: Range<usize>,
    /// The pairs of vertices and faces, then of edges, each by their features.
    pairs: [Vec<Pair>; 2],
    /// How far vertices may be from where they were, in the last substep that asked, in m.
    reaches: Vec<f64>,
}

counts_heap!(History: pairs, reaches; without owned);

/// The kinds of pairs, in the order in which they are kept.
const KINDS: [Kind; 2] = [Kind::VertexFace, Kind::EdgeEdge];

/// The pairs that push in a substep.
#[derive(Debug, Default)]
pub(crate) struct Near {
    /// How their features may move.
    pub(crate) constraints: Vec<Constraint>,
    /// The length in m by which each lacks its distance at the start of the substep; negative if it
    /// does not.
    pub(crate) lacks: Vec<f64>,
    /// How many of them are of vertices and faces; the others are of edges.
    pub(crate) faces: usize,
    pub(crate) counts: Counts,
}

/// Numbers of pairs whose first vertex the rank owns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Counts {
    /// The pairs that were looked at.
    pub(crate) looked: u64,
    /// The pairs that found their features on the wrong side of each other.
    pub(crate) inverted: u64,
}

/// The data with which pairs are looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look<'a> {
    pub(crate) at: Context<'a>,
    /// The checked state in which they were found.
    pub(crate) start: &'a State,
    /// The state at the start of the substep.
    pub(crate) state: &'a State,
    /// The velocities in m/s with which all vertices go on as far as is foreseen.
    pub(crate) foreseen: &'a [DVec3],
}

impl History {
    /// The pairs of a rank, before any were found.
    pub(crate) fn new(domain: &Domain) -> Self {
        Self {
            owned: domain.owned(),
            pairs: [Vec::new(), Vec::new()],
            reaches: Vec::new(),
        }
    }

    /// Keeps the pairs of features of cloth among contacts that were found at `x` (m).
    pub(crate) fn keep(&mut self, contacts: &Contacts, surface: &Surface, x: &[DVec3]) {
        self.pairs.iter_mut().for_each(Vec::clear);
        for kept in contacts.others() {
            let Kept::Layers(kind, _) = kept else {
                continue;
            };
            let which = usize::from(kind == PairKind::EdgeEdge);
            let contact = kept.contact(surface);
            let found = Found {
                vertices: contact.vertices,
                x: contact.vertices.map(|v| x[v as usize]),
                normal: contact.normal,
                gap: contact.gap,
                target: contact.target,
            };
            self.pairs[which].push(Pair::new(KINDS[which], &found));
        }
    }

    /// The number of pairs whose first vertex the rank owns.
    pub(crate) fn counted(&self) -> u64 {
        let pairs = self.pairs.iter().flatten();
        pairs.filter(|pair| self.is_counted(pair)).count() as u64
    }

    fn is_counted(&self, pair: &Pair) -> bool {
        self.owned.contains(&(pair.vertices[0] as usize))
    }

    /// Has all pairs be looked at.
    #[cfg(test)]
    pub(super) fn look_at_all(&mut self) {
        let pairs = self.pairs.iter_mut().flatten();
        pairs.for_each(|pair| pair.distance = 0.0);
    }

    /// Finds the pairs that push in a substep. Threads of a team share the work.
    pub(crate) fn near(&mut self, look: &Look<'_>, team: &Team) -> Near {
        self.measure(look);
        let mut near = Near::default();
        for (kind, pairs) in KINDS.into_iter().zip(&self.pairs) {
            let shares = team.cut_even(pairs.len()).elements;
            let mut found: Vec<Near> = shares.iter().map(|_| Near::default()).collect();
            team.run(found.iter_mut().zip(shares), |(found, share)| {
                for pair in &pairs[share] {
                    self.look_at(kind, pair, look, found);
                }
            });
            for found in found {
                near.constraints.extend(found.constraints);
                near.lacks.extend(found.lacks);
                near.counts.looked += found.counts.looked;
                near.counts.inverted += found.counts.inverted;
            }
            if kind == Kind::VertexFace {
                near.faces = near.constraints.len();
            }
        }
        near
    }

    /// Finds how far each vertex is from where it was, and may go in the substep, beyond what all
    /// cloth has in common.
    fn measure(&mut self, look: &Look<'_>) {
        let (x, start, foreseen) = (&look.state.x[..], &look.start.x[..], look.foreseen);
        let dt = look.at.substep.dt;
        let count = x.len().max(1) as f64;
        let mut common = [DVec3::ZERO; 2];
        for ((x, start), v) in x.iter().zip(start).zip(foreseen) {
            common[0] += *x - *start;
            common[1] += *v;
        }
        let common = common.map(|sum| sum / count);
        self.reaches.clear();
        let ways = x.iter().zip(start).zip(foreseen);
        self.reaches.extend(ways.map(|((x, start), v)| {
            (*x - *start - common[0]).length() + dt * (*v - common[1]).length()
        }));
    }

    fn look_at(&self, kind: Kind, pair: &Pair, look: &Look<'_>, near: &mut Near) {
        let farthest = |of: &[u32]| {
            let reaches = of.iter().map(|&v| self.reaches[v as usize]);
            reaches.fold(0.0, f64::max)
        };
        let (first, second) = pair.vertices.split_at(kind.first());
        let (target, dt) = (f64::from(pair.target), look.at.substep.dt);
        let reach = REACH * target;
        // With room for the rounding of sums.
        let gone = (farthest(first) + farthest(second)) * (1.0 + 1e-12);
        if f64::from(pair.distance) - gone >= reach {
            return;
        }
        let counted = u64::from(self.is_counted(pair));
        near.counts.looked += counted;
        let places = |x: &[DVec3]| pair.vertices.map(|v| x[v as usize]);
        let (start, x) = (places(&look.start.x), places(&look.state.x));
        let sides = look.at.world.scene().contact.sides;
        let stand = pair.stand(kind, &start, &x, sides);
        let velocities = places(look.foreseen).into_iter().zip(stand.weights);
        let rate: f64 = velocities.map(|(v, w)| v.dot(stand.normal) * w).sum();
        if stand.gap + dt * rate.min(0.0) >= reach {
            return;
        }
        near.counts.inverted += counted * u64::from(stand.gap < 0.0);
        let lack = target - stand.gap;
        let [first, .., last] = pair.vertices;
        near.constraints.push(Constraint {
            count: 4,
            vertices: pair.vertices,
            weights: stand.weights,
            normal: stand.normal,
            body_velocity: DVec3::ZERO,
            least_rate: lack.min(0.0) / dt,
            friction: look.at.world.friction().of_layers([first, last]),
        });
        near.lacks.push(lack);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vertex(x: f64, z: f64) -> [DVec3; 4] {
        [DVec3::new(x, 0.2, z), DVec3::ZERO, DVec3::X, DVec3::Y]
    }

    fn pair(x: [DVec3; 4]) -> Pair {
        let found = Found {
            vertices: [0, 1, 2, 3],
            x,
            normal: DVec3::Z,
            gap: x[0].z,
            target: 0.2,
        };
        Pair::new(Kind::VertexFace, &found)
    }

    #[test]
    fn a_vertex_that_went_through_is_drawn_back() {
        let (start, end) = (vertex(0.2, 0.1), vertex(0.2, -0.05));
        for sides in [Sides::Parity, Sides::Paper] {
            let stand = pair(start).stand(Kind::VertexFace, &start, &end, sides);
            assert!((stand.gap + 0.05).abs() < 1e-15, "{stand:?}");
            assert!((stand.normal - DVec3::Z).length() < 1e-15, "{stand:?}");
        }
        let unknowing = pair(start).stand(Kind::VertexFace, &start, &end, Sides::None);
        assert!(unknowing.gap > 0.0 && unknowing.normal.z < 0.0);
    }

    /// Where the paper's rule goes wrong.
    #[test]
    fn a_vertex_that_went_around_the_border_belongs_where_it_is() {
        let (start, end) = (vertex(-0.05, 0.1), vertex(-0.1, -0.1));
        let stand = pair(start).stand(Kind::VertexFace, &start, &end, Sides::Parity);
        assert!(stand.gap > 0.0 && stand.normal.z < 0.0, "{stand:?}");
        let stand = pair(start).stand(Kind::VertexFace, &start, &end, Sides::Paper);
        assert!(stand.gap < 0.0, "{stand:?}");
    }

    #[test]
    fn touching_features_have_the_direction_of_their_side() {
        let start = vertex(0.2, -0.1);
        let end = vertex(0.2, 0.0);
        let stand = pair(start).stand(Kind::VertexFace, &start, &end, Sides::Parity);
        assert!((stand.normal + DVec3::Z).length() < 1e-15 && stand.gap.abs() < 1e-15);
    }
}
