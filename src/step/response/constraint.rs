//! One inequality between velocities, and how it is relaxed.
//!
//! A constraint wants a combination of its vertices' velocities to be at least some rate: features
//! of a contact may close to the thickness within the step, and open slowly when too close [BFA02,
//! §7.2], with friction against sliding up to Coulomb's cone; triangles may stretch no further than
//! their limit (`strain_limit`). A constraint's step is divided by what it would do were the mass
//! of each vertex split among the constraints that push on it, in proportion to their weights; so
//! the rounds converge, whatever those constraints are [Tonge 2012]. Momentum is kept exactly: a
//! constraint's impulses on its vertices sum to zero.
//!
//! Along its normal, and across it, a constraint goes further than it has to, the further the
//! longer it went the same way: Nesterov's acceleration, which contacts need half as many rounds
//! with, and without which piled layers creep on slopes [MHNT15 §3]. Where that took a constraint
//! too far, so that it has to turn back, it begins anew [OC15 §3.2]; here each constraint decides
//! for itself, from what it lacks, so that no sum over ranks is needed.
//!
//! * \[BFA02\] Bridson, Fedkiw, Anderson: Robust treatment of collisions, contact and friction.
//! * \[MHNT15\] Mazhar, Heyn, Negrut, Tasora: Using Nesterov's method to accelerate multibody
//!   dynamics with friction and contact.
//! * \[OC15\] O'Donoghue, Candès: Adaptive restart for accelerated gradient schemes.
//! * [Tonge 2012] Tonge, Benevolenski, Voroshilov: Mass splitting for jitter-free parallel rigid
//!   bodies.

use glam::DVec3;

use super::mobilities::Mobilities;
use crate::collide::contact::Contact;
use crate::heap_bytes::owns_no_heap;

/// Time in s in which a contact that is too close opens: fast enough to be seen nowhere, too slow
/// for piled layers to be blown apart.
const OPENING_TIME: f64 = 0.02;
/// Levers on which a constraint's vertices can be moved, as a share of its longest and by the root
/// of the trace of a mobility, from which on it pushes: a triangle between two pins is not kept
/// from stretching by throwing its third corner across.
const SHORTEST: f64 = 0.02;
/// Error of a rate, as a share of the speeds it is summed from: far more than the few roundings
/// that it is.
pub(crate) const ROUNDING: f64 = 1e-12;

/// `(Σ weights v − body_velocity)·normal ≥ least_rate` for up to four vertices.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Constraint {
    /// How many of `vertices` and `weights` are used.
    pub(crate) count: u8,
    /// Global numbers.
    pub(crate) vertices: [u32; 4],
    /// Their weights.
    pub(crate) weights: [f64; 4],
    /// Unit vector.
    pub(crate) normal: DVec3,
    /// In m/s.
    pub(crate) body_velocity: DVec3,
    /// In m/s.
    pub(crate) least_rate: f64,
    /// Coulomb's coefficient for motion across the normal.
    pub(crate) friction: f64,
}

owns_no_heap!(Constraint);

impl Constraint {
    /// The constraint of a contact for a step of `dt` (s).
    #[must_use]
    pub(crate) fn of_contact(contact: &Contact, friction: f64, dt: f64) -> Self {
        Self {
            count: contact.count,
            vertices: contact.vertices,
            weights: contact.weights,
            normal: contact.normal,
            body_velocity: contact.body_velocity,
            least_rate: opening_rate(contact, dt),
            friction,
        }
    }

    /// The vertices that take part.
    #[must_use]
    pub(crate) fn vertices(&self) -> &[u32] {
        &self.vertices[..usize::from(self.count)]
    }

    /// Looks at the constraint for the first time in rounds: whether it pushes or will.
    pub(crate) fn survey(&self, movers: Movers<'_>, slots: &[u32], push: &mut Push) -> Outcome {
        let rate = self.relative(movers, slots).dot(self.normal);
        push.counted = push.normal > 0.0 || rate < self.least_rate;
        let rests = !push.counted;
        Outcome {
            counted: push.counted,
            spare: rests.then(|| self.spare(movers, slots, rate)),
            ..Outcome::default()
        }
    }

    /// The change of velocity, in m/s each, that its vertices, which have these velocities (m/s),
    /// may have before it may lack anything; negative if it lacks something.
    pub(crate) fn spare_at(&self, velocities: [DVec3; 4]) -> f64 {
        let movers = Movers {
            motions: &velocities.map(|velocity| VertexMotion {
                velocity,
                load: 0.0,
            }),
            mobilities: &Mobilities::default(),
        };
        let slots = &[0, 1, 2, 3][..usize::from(self.count)];
        let rate = self.relative(movers, slots).dot(self.normal);
        self.spare(movers, slots, rate)
    }

    /// Relaxes the constraint in a round: what it adds to its impulses.
    pub(crate) fn relax(
        &self,
        movers: Movers<'_>,
        slots: &[u32],
        push: &mut Push,
        round: Round,
    ) -> Outcome {
        let relative = self.relative(movers, slots);
        let rate = relative.dot(self.normal);
        if push.normal <= 0.0 && rate >= self.least_rate {
            if push.counted {
                // Counted for the last time: the loads change.
                push.counted = false;
                return Outcome::default();
            }
            return Outcome {
                spare: Some(self.spare(movers, slots, rate)),
                ..Outcome::default()
            };
        }
        if push.normal <= 0.0 {
            (push.reached, push.since) = (0.0, round.number);
            (push.dragged, push.drag_since) = (DVec3::ZERO, round.number);
            if self.is_held(movers, slots) {
                let spare = (!push.counted).then_some(f64::INFINITY);
                push.counted = false;
                return Outcome {
                    spare,
                    ..Outcome::default()
                };
            }
        }
        let counted = push.counted;
        let give = (movers.mobilities).sum(slots.iter().zip(&self.weights).map(|(&slot, w)| {
            let load = movers.motions[slot as usize].load;
            let own = if counted { 0.0 } else { w.abs() };
            (slot, w.abs() * (load + own))
        }));
        let (along, most) = (give.along(self.normal), give.most());
        let lack = self.least_rate - rate;
        let reached = (push.normal + lack / along).max(0.0);
        let way = reached - push.reached;
        if way * lack < 0.0 {
            push.since = round.number;
        }
        let pushed = (reached - push.normal).abs() * along;
        let normal = (reached + way * round.momentum(push.since)).max(0.0);
        let sliding = relative - self.normal * rate;
        let limit = self.friction * normal;
        let dragged = self.dragged(push, sliding, most, normal);
        let slipped = (dragged - push.tangential).length() * most;
        let way = dragged - push.dragged;
        let drag_since = if way.dot(sliding) > 0.0 {
            round.number
        } else {
            push.drag_since
        };
        let drag = within(limit, dragged + way * round.momentum(drag_since));
        let impulse = self.normal * (normal - push.normal) + (drag - push.tangential);
        *push = Push {
            normal,
            tangential: drag,
            counted: normal > 0.0,
            reached,
            since: push.since,
            dragged,
            drag_since,
        };
        Outcome {
            impulse,
            counted: push.counted,
            spare: None,
            asked: pushed.max(slipped),
        }
    }

    /// Satisfies the constraint by itself: what it adds to its impulse, and the change of its rate
    /// in m/s that it asked for.
    pub(crate) fn satisfy(
        &self,
        movers: Movers<'_>,
        slots: &[u32],
        push: &mut Push,
    ) -> (DVec3, f64) {
        let relative = self.relative(movers, slots);
        let rate = relative.dot(self.normal);
        let rests = push.normal <= 0.0 && rate >= self.least_rate;
        if rests || (push.normal <= 0.0 && self.is_held(movers, slots)) {
            return (DVec3::ZERO, 0.0);
        }
        let weights = slots.iter().zip(&self.weights);
        let give = (movers.mobilities).sum(weights.map(|(&slot, w)| (slot, w * w)));
        let along = give.along(self.normal);
        if along <= 0.0 {
            return (DVec3::ZERO, 0.0);
        }
        let normal = (push.normal + (self.least_rate - rate) / along).max(0.0);
        let sliding = relative - self.normal * rate;
        let drag = self.dragged(push, sliding, give.most(), normal);
        let asked = (normal - push.normal).abs() * along;
        let impulse = self.normal * (normal - push.normal) + (drag - push.tangential);
        *push = Push {
            normal,
            tangential: drag,
            counted: normal > 0.0,
            reached: normal,
            since: 0,
            dragged: drag,
            drag_since: 0,
        };
        (impulse, asked)
    }

    /// The impulse in kg m/s by which a spring moves its features apart, so that they open with
    /// `wanted` (m/s) at most; the spring alone would give `most` (kg m/s).
    pub(crate) fn spring(
        &self,
        movers: Movers<'_>,
        slots: &[u32],
        [wanted, most]: [f64; 2],
    ) -> DVec3 {
        let rate = self.relative(movers, slots).dot(self.normal);
        if rate >= wanted || self.is_held(movers, slots) {
            return DVec3::ZERO;
        }
        let mut along = 0.0;
        for (&slot, w) in slots.iter().zip(&self.weights) {
            along += w * w * movers.mobilities.along(slot as usize, self.normal).0;
        }
        if along <= 0.0 {
            return DVec3::ZERO;
        }
        self.normal * most.min((wanted - rate) / along)
    }

    /// The push across the normal that goes with a normal push of that size.
    fn dragged(&self, push: &Push, sliding: DVec3, most: f64, normal: f64) -> DVec3 {
        // The direction that gives way most bounds the step, so that friction never overshoots.
        within(self.friction * normal, push.tangential - sliding / most)
    }

    /// Whether the constraint would have to move its vertices very much for very little.
    fn is_held(&self, movers: Movers<'_>, slots: &[u32]) -> bool {
        let (mut along, mut most, mut longest) = (0.0, 0.0_f64, 0.0_f64);
        for (&slot, w) in slots.iter().zip(&self.weights) {
            let (own, trace) = movers.mobilities.along(slot as usize, self.normal);
            along += w * w * own;
            most = most.max(trace);
            longest = longest.max(w.abs());
        }
        along <= (SHORTEST * longest).powi(2) * most
    }

    /// The combination of velocities that the constraint constrains.
    fn relative(&self, movers: Movers<'_>, slots: &[u32]) -> DVec3 {
        let pairs = slots.iter().zip(&self.weights);
        pairs.fold(-self.body_velocity, |sum, (&slot, &w)| {
            sum + movers.motions[slot as usize].velocity * w
        })
    }

    /// The change of velocity, in m/s each, that the vertices of the constraint at this rate may
    /// have before it may have less than its least rate.
    fn spare(&self, movers: Movers<'_>, slots: &[u32], rate: f64) -> f64 {
        let bound = |velocity: DVec3| velocity.abs().element_sum();
        let (mut weights, mut speeds) = (0.0, bound(self.body_velocity));
        for (&slot, w) in slots.iter().zip(&self.weights) {
            weights += w.abs();
            speeds += w.abs() * bound(movers.motions[slot as usize].velocity);
        }
        let lead = rate - self.least_rate;
        (lead - ROUNDING * (speeds + self.least_rate.abs() + lead)) / weights
    }
}

/// A vector, made as short as `most` if it is longer.
fn within(most: f64, vector: DVec3) -> DVec3 {
    let length = vector.length();
    if length > most {
        vector * (most / length)
    } else {
        vector
    }
}

/// Rate of separation in m/s that a contact wants.
///
/// One still open may close to its target within the step of `dt` (s); one too close opens slowly
/// [BFA02, §7.2].
#[must_use]
pub(crate) fn opening_rate(contact: &Contact, dt: f64) -> f64 {
    let lack = contact.target - contact.gap;
    if lack < 0.0 {
        lack / dt
    } else {
        lack / OPENING_TIME.max(dt)
    }
}

/// How a vertex that takes part in constraints moves: what constraints at rest look at.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct VertexMotion {
    /// In m/s.
    pub(crate) velocity: DVec3,
    /// Sum of its absolute weights in the constraints that push.
    pub(crate) load: f64,
}

owns_no_heap!(VertexMotion);

/// The vertices that take part in constraints, by their slots, as constraints see them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Movers<'a> {
    pub(crate) motions: &'a [VertexMotion],
    pub(crate) mobilities: &'a Mobilities,
}

/// The sum of the impulses of a constraint, in kg m/s.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Push {
    pub(crate) normal: f64,
    tangential: DVec3,
    /// Whether it counts in the loads of its vertices.
    pub(crate) counted: bool,
    /// The value that `normal` would have after the last round without momentum, and the round in
    /// which the constraint began anew.
    reached: f64,
    since: u32,
    /// The value that `tangential` would have after the last round without momentum, and the round
    /// in which the constraint's friction began anew.
    dragged: DVec3,
    drag_since: u32,
}

owns_no_heap!(Push);

impl Push {
    /// The impulse across a constraint with this normal, in kg m/s.
    pub(crate) fn impulse(&self, normal: DVec3) -> DVec3 {
        normal * self.normal + self.tangential
    }
}

/// A round, and the last one before it in which all constraints began anew.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Round {
    pub(crate) number: u32,
    pub(crate) since: u32,
}

impl Round {
    /// The share of its way in this round by which a constraint goes further, if it began anew in
    /// that one.
    fn momentum(self, since: u32) -> f64 {
        let age = f64::from(self.number - since.max(self.since));
        age / (age + 3.0)
    }
}

/// The result of looking at a constraint.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outcome {
    /// The addition to its impulse.
    pub(crate) impulse: DVec3,
    /// Whether it counts in the loads of its vertices now.
    pub(crate) counted: bool,
    /// The change of velocity, in m/s each, that its vertices may have before it may lack anything;
    /// none if it does not rest.
    pub(crate) spare: Option<f64>,
    /// The change of its rate in m/s that it asked for: what it lacked, or had too much of as far
    /// as letting go gives it away; or what it slipped.
    pub(crate) asked: f64,
}
