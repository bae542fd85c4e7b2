//! The contact of one vertex with bodies within a step, by Coulomb's law.
//!
//! A constraint takes up to three normals from a vertex: along each it gets the rate that its
//! contact wants, and the bodies push. Along the bodies it *sticks*, so that it moves with them, or
//! it *slides*: there it is free in the solve, and friction acts against sliding as an impulse on
//! the right-hand side. Each solve tells what bodies push with; `revise` compares that with the law
//! and says what has to be otherwise in the next solve:
//!
//! * a contact that would have to pull is let go, one that was left out and closes is taken in;
//! * a vertex that sticks slides if friction would need more than Coulomb's cone allows, and then
//!   friction acts along the impulse that held it. One such vertex is worth no other solve: to be
//!   held a step too long takes energy, and the vertex slides in the next step. But a few of many
//!   hold a whole taut sheet, and in each step other ones do. So the excess of all is added up;
//! * a vertex that slides sticks if friction pushes it backwards;
//! * a vertex that has slid and stuck in a step, and cannot stick, creeps: friction is a drag then,
//!   as strong as Coulomb's law wants it at the speed that the last solve found. Vertices of one
//!   patch of cloth that begin to slide together may relieve each other of what made them slide, so
//!   that friction would push all of them backwards, and hold all of them too strongly for the cone
//!   in the next turn. A drag never pushes backwards, and the turns with it converge, as those of
//!   iteratively reweighted least squares do [Daubechies et al. 2010].
//!
//! * [Daubechies et al. 2010] Daubechies, DeVore, Fornasier, Güntürk: Iteratively reweighted least
//!   squares minimization for sparse recovery.
//!
//! A vertex that touches for the first time slides without friction in the solve, for nobody knows
//! how strongly bodies will push. If there is no other solve, friction then acts after it with the
//! vertex's own mass (`settle`). It sticks in the next step only if friction can stop it while its
//! neighbours go on (`Found::would_stop`).

use glam::{DMat3, DVec3};

use super::body_response::VertexState;
use super::constraint::opening_rate;
use crate::collide::Contact;
use crate::collide::contact::PairId;
use crate::heap_bytes::owns_no_heap;
use crate::step::world::Friction;

/// Normals closer than this (cosine) are one surface: neighbouring facets of a smooth body.
const SAME_SURFACE: f64 = 0.9;
/// The largest ratio of a prescribed speed to the rates that contacts want. A vertex between two
/// bodies that close on each other has to leave sideways, the faster the more their normals are
/// opposite, so that pinched cloth would be thrown. A contact is left out of the constraint if it
/// asks for more than this, and for more than the speed that the vertex has. It acts after the
/// solve, when vertices are kept out of bodies one contact after the other.
const MOST_ENLARGED: f64 = 5.0;
/// The largest rate in m/s that may be rounding alone.
const ROUNDING: f64 = 1e-9;
/// The share by which a vertex that friction holds gives way along the body. As freely as others,
/// and layers creep on slopes and never come to rest; not at all, and a sheet that walls push
/// together on a floor is torn, for it cannot rise where it has to be drawn in.
const STICKING_YIELDS: f64 = 0.2;
/// The most often that a vertex exchanges its normals within a step: then it keeps them, so that
/// turns end.
const MOST_CHANGES: u8 = 3;
/// The share by which friction may exceed Coulomb's cone, beside the residual of the solve.
const BEYOND_CONE: f64 = 1e-6;
/// The share of its limit by which friction may differ from Coulomb's law at the end of turns.
const WRONG: f64 = 0.1;
/// The impulse that may come a step late without harm, as a share of the momentum that a vertex has
/// past the bodies.
const LATE_SHARE: f64 = 0.1;
/// The work that bodies may do on a vertex and cannot do, as a share of twice the energy that it
/// has past them.
const GAINED_SHARE: f64 = 0.1;
/// The slowest sliding in m/s that has a direction.
const SLOWEST: f64 = 1e-12;
/// The slowest creeping in m/s at which friction reaches its limit.
const SLOWEST_CREEP: f64 = 1e-9;

/// How a vertex moves along the bodies that it touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// It touches for the first time: free along the bodies, without friction as yet.
    Arrives,
    /// It is free along the bodies, and friction acts against that.
    Slides,
    /// It is free along the bodies, and friction acts as a drag that holds it back by as much as
    /// friction would at the speed it was last found to have.
    Creeps,
    /// It moves with the body.
    Sticks,
}

/// One normal of a constraint.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Normal {
    /// The contact that it is of.
    id: PairId,
    /// The unit vector, out of the body.
    along: DVec3,
    friction: f64,
}

/// The directions in which a vertex may not choose its velocity, and the friction on it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct BodyConstraint {
    /// The vertex's index among those owned.
    pub(crate) local: u32,
    /// Projection onto the free directions.
    pub(crate) free: DMat3,
    /// Prescribed velocity change in m/s, within the constrained directions.
    pub(crate) change: DVec3,
    /// The impulse of friction that the solve takes as given, in kg m/s.
    pub(crate) friction: DVec3,
    /// The impulse for each m/s of the change, along the bodies, that friction takes off beside
    /// that, in kg.
    pub(crate) drag: f64,
    /// The normals; not all of them need be there.
    normals: [Option<Normal>; 3],
    /// Projection onto the directions along the bodies.
    tangents: DMat3,
    /// The velocity change in m/s that the normals prescribe.
    lifts: DVec3,
    body_velocity: DVec3,
    /// The rate in m/s at which its first contact opens.
    opening: f64,
    /// How many times its change a vertex's velocity changes.
    times: f64,
    mode: Mode,
    /// How often normals were exchanged, and how often the vertex began to slide.
    changes: [u8; 2],
}

owns_no_heap!(BodyConstraint);

/// The contacts from which a vertex is to be constrained.
#[derive(Clone, Copy, Debug)]
pub(super) struct Touching<'a> {
    /// The contacts that act.
    pub(super) contacts: &'a [&'a Contact],
    /// The vertex's index among those owned.
    pub(super) local: u32,
    /// Its velocity at the start of the step, in m/s.
    pub(super) velocity: DVec3,
    /// Length of the step in s.
    pub(super) dt: f64,
    /// The friction of each pair.
    pub(super) friction: &'a Friction,
}

/// The contacts of a vertex that close more than they may, and that its constraint leaves out.
#[derive(Clone, Debug)]
pub(super) struct Closing<'a> {
    /// The contacts, the most lacking first.
    pub(super) contacts: Vec<&'a Contact>,
    /// The speed in m/s by which the first closes too fast; nothing if there is none.
    pub(super) lack: f64,
}

/// The solution of a solve at a vertex.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    /// The residual `A Δv − b` in kg m/s.
    pub(super) residual: DVec3,
    /// The velocity in m/s with which it ends.
    pub(super) velocity: DVec3,
    pub(super) mass: f64,
    /// The mean of the entries on the diagonal of the matrix, in kg.
    pub(super) inertia: f64,
    /// An impulse in kg m/s that the solve may be wrong by.
    pub(super) error: f64,
}

impl Found {
    /// Whether an impulse of friction (kg m/s) would stop a vertex that slides at such a speed
    /// (m/s) while its neighbours go on. The stiffness of the cloth pulls it along with them, so
    /// the diagonal of the matrix decides and not the mass, which in fine meshes is 10⁴ times less.
    fn would_stop(&self, speed: f64, friction: f64) -> bool {
        self.inertia * speed <= friction
    }
}

/// The impulse of bodies on a vertex by the residual of a solve.
#[derive(Clone, Copy, Debug)]
struct Reaction {
    /// The push along each normal in kg m/s.
    pushes: [f64; 3],
    /// The impulse along the bodies in kg m/s.
    along: DVec3,
    /// The largest impulse of friction in kg m/s, by Coulomb's law.
    limit: f64,
}

impl Reaction {
    /// The strongest pull of a body in kg m/s, or nothing.
    fn pull(&self) -> f64 {
        self.pushes.iter().fold(0.0, |most, push| most.max(-push))
    }
}

/// The form of a constraint in another solve.
#[derive(Clone, Copy, Debug)]
pub(super) struct Revised {
    /// Nothing is left if all bodies would have to pull.
    pub(super) constraint: Option<BodyConstraint>,
    /// How wrong the solve is about what bodies do to the vertex.
    pub(super) wrong: Wrong,
}

/// How wrong a solve is about what bodies do to a vertex, if that is worth another solve.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Wrong {
    /// The impulse in kg m/s that is put right in the next step if nothing else is solved in this
    /// one.
    pub(super) late: f64,
    /// The work in J that bodies would do on the vertex and cannot do.
    pub(super) gains: f64,
    /// The largest impulse of friction in kg m/s, by Coulomb's law.
    pub(super) limit: f64,
    /// The impulse in kg m/s by which friction exceeds that.
    pub(super) excess: f64,
}

/// How wrong a solve is at a vertex, as sums over vertices compare it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct TurnErrors {
    /// The square of the impulse that comes a step late over the vertex's inertia, in J.
    pub(crate) late: f64,
    /// The work in J that bodies cannot do.
    pub(crate) gains: f64,
    /// The largest impulse of friction in kg m/s.
    pub(crate) limit: f64,
    /// The impulse in kg m/s by which friction exceeds that.
    pub(crate) excess: f64,
}

owns_no_heap!(TurnErrors);

impl TurnErrors {
    /// Whether the vertex by itself is worth no other solve.
    #[cfg(test)]
    pub(super) fn is_settled(&self) -> bool {
        self.late == 0.0 && self.gains == 0.0
    }
}

impl Wrong {
    /// The errors of a vertex that moves past the bodies with this speed (m/s), which hides a part
    /// of what is late and of the work.
    pub(super) fn errors(self, found: &Found, speed: f64) -> TurnErrors {
        let late = (self.late - LATE_SHARE * found.inertia * speed).max(0.0);
        let hidden = GAINED_SHARE * found.mass * speed * speed;
        TurnErrors {
            late: late * late / found.inertia,
            gains: (self.gains - hidden).max(0.0),
            limit: self.limit,
            excess: self.excess,
        }
    }
}

impl BodyConstraint {
    /// The constraint of a vertex by contacts, of which earlier ones come first; `None` if there
    /// are no contacts. It was this in the step before, of which forces act for `tau` (s) in this
    /// one.
    pub(super) fn new(touching: &Touching<'_>, state: VertexState, tau: f64) -> Option<Self> {
        let mut constraint = Self::of_normals(touching)?;
        constraint.mode = if state.sticking && constraint.rubs() {
            Mode::Sticks
        } else if state.held {
            Mode::Slides
        } else {
            Mode::Arrives
        };
        if constraint.mode == Mode::Slides {
            constraint.friction = constraint.tangents * state.friction * tau;
        }
        constraint.move_along(touching.velocity);
        Some(constraint)
    }

    /// The constraint of a vertex that touches after normals of it were exchanged so often in this
    /// step; `None` if they were often enough.
    pub(super) fn arriving(touching: &Touching<'_>, exchanges: u8) -> Option<Self> {
        if exchanges >= MOST_CHANGES {
            return None;
        }
        let mut constraint = Self::of_normals(touching)?;
        constraint.changes[0] = exchanges;
        constraint.move_along(touching.velocity);
        Some(constraint)
    }

    /// How often its normals were exchanged in this step.
    pub(super) fn exchanges(&self) -> u8 {
        self.changes[0]
    }

    /// A constraint of normals alone.
    fn of_normals(touching: &Touching<'_>) -> Option<Self> {
        let velocity = touching.velocity;
        let mut directions: [DVec3; 3] = [DVec3::ZERO; 3];
        let mut rates = [0.0; 3];
        let mut normals: [Option<Normal>; 3] = [None; 3];
        let (mut count, mut largest) = (0, ROUNDING);
        let mut first: Option<&Contact> = None;
        for &contact in touching.contacts {
            let same = |n: &Normal| n.along.dot(contact.normal) > SAME_SURFACE;
            if count == 3 || normals.iter().flatten().any(same) {
                continue;
            }
            first = first.or(Some(contact));
            let wanted = contact.body_velocity.dot(contact.normal)
                + opening_rate(contact, touching.dt)
                - velocity.dot(contact.normal);
            // Gram-Schmidt, the prescribed rate carried along.
            let mut direction = contact.normal;
            let mut rate = wanted;
            for k in 0..count {
                let along = contact.normal.dot(directions[k]);
                direction -= directions[k] * along;
                rate -= rates[k] * along;
            }
            let length = direction.length();
            let most = wanted.abs().max(largest);
            let speed = (velocity - contact.body_velocity).length();
            if length < 1e-3 || rate.abs() > speed.max(MOST_ENLARGED * most) * length {
                continue;
            }
            largest = most;
            normals[count] = Some(Normal {
                id: contact.id,
                along: contact.normal,
                friction: touching.friction.of(contact),
            });
            directions[count] = direction / length;
            rates[count] = rate / length;
            count += 1;
        }
        let first = first?;
        let mut tangents = DMat3::IDENTITY;
        let mut lifts = DVec3::ZERO;
        for k in 0..count {
            let d = directions[k];
            tangents -= DMat3::from_cols(d * d.x, d * d.y, d * d.z);
            lifts += d * rates[k];
        }
        if count == 3 {
            tangents = DMat3::ZERO;
        }
        Some(Self {
            local: touching.local,
            free: tangents,
            change: lifts,
            friction: DVec3::ZERO,
            drag: 0.0,
            normals,
            tangents,
            lifts,
            body_velocity: first.body_velocity,
            opening: opening_rate(first, touching.dt),
            times: 1.0,
            mode: Mode::Arrives,
            changes: [0; 2],
        })
    }

    /// Prescribes what the mode asks for; `velocity` is that at the start of the step.
    fn move_along(&mut self, velocity: DVec3) {
        let lacks = self.tangents * (self.body_velocity - velocity);
        self.change = self.lifts;
        self.free = self.tangents;
        match self.mode {
            Mode::Sticks => {
                // Move with the body in the free directions too.
                self.change += lacks / self.times;
                self.free = DMat3::ZERO;
                self.friction = DVec3::ZERO;
            }
            Mode::Creeps => self.friction = lacks * self.drag,
            Mode::Arrives | Mode::Slides => {}
        }
        if self.mode != Mode::Creeps {
            self.drag = 0.0;
        }
    }

    /// The block in kg by which friction adds to the matrix, on the diagonal.
    pub(crate) fn dragged(&self) -> DMat3 {
        self.tangents * (self.drag * self.times)
    }

    /// The impulse in N s that bodies exert in a solve that has left this residual (kg m/s) and
    /// found this change of velocity (m/s).
    pub(crate) fn exerted(&self, residual: DVec3, change: DVec3) -> DVec3 {
        residual + self.friction - self.tangents * change * self.drag
    }

    /// Whether there is friction at all.
    fn rubs(&self) -> bool {
        self.normals.iter().flatten().any(|n| n.friction > 0.0)
    }

    /// The contacts that its normals are of.
    fn ids(&self) -> [Option<PairId>; 3] {
        self.normals.map(|normal| normal.map(|normal| normal.id))
    }

    /// Whether a contact is among those that act.
    pub(super) fn is_by(&self, id: PairId) -> bool {
        self.normals.iter().flatten().any(|n| n.id == id)
    }

    /// How much a vertex that friction holds gives way to what the solve did not foresee, per
    /// direction: as freely as any off the body, but less along it.
    pub(crate) fn yields(&self) -> DMat3 {
        let normal = self.normals[0].map_or(DVec3::ZERO, |n| n.along);
        let off = DMat3::from_cols(normal * normal.x, normal * normal.y, normal * normal.z);
        off + (DMat3::IDENTITY - off) * STICKING_YIELDS
    }

    /// Splits a residual into pushes and what is along the bodies.
    fn reaction(&self, residual: DVec3) -> Reaction {
        let normals = self.normals.map(|n| n.map(|n| n.along));
        let pushes = match normals {
            [Some(a), None, None] => [residual.dot(a), 0.0, 0.0],
            // The combination of normals that the residual is, but for what is along the bodies.
            [a, b, c] => {
                let all = [a, b, c].map(Option::unwrap_or_default);
                let missing = |n: DVec3| if n == DVec3::ZERO { 1.0 } else { 0.0 };
                let row = |k: usize| {
                    let mut row = DVec3::from_array(all.map(|n| n.dot(all[k])));
                    row[k] += missing(all[k]);
                    row
                };
                let gram = DMat3::from_cols(row(0), row(1), row(2));
                let sides = DVec3::from_array(all.map(|n| n.dot(residual)));
                (gram.inverse() * sides).to_array()
            }
        };
        let mut limit = 0.0;
        for (normal, push) in self.normals.iter().zip(pushes) {
            limit += normal.map_or(0.0, |n| n.friction * push.max(0.0));
        }
        Reaction {
            pushes,
            along: self.tangents * residual,
            limit,
        }
    }

    /// How fast in m/s a vertex of such a velocity moves past the body.
    pub(super) fn speed_past(&self, velocity: DVec3) -> f64 {
        (velocity - self.body_velocity).length()
    }

    /// The sliding velocity in m/s.
    fn sliding(&self, velocity: DVec3) -> DVec3 {
        self.tangents * (velocity - self.body_velocity)
    }

    /// Compares with Coulomb's law what a solve has found, and says what another solve is to find.
    /// `closing` are contacts that were left out and close more than they may; `touching` has all
    /// contacts of the vertex.
    pub(super) fn revise(
        self,
        found: &Found,
        closing: &Closing<'_>,
        touching: &Touching<'_>,
        last: bool,
    ) -> Revised {
        let reaction = self.reaction(found.residual);
        let mut revised = self;
        let mut wrong = revised.revise_mode(&reaction, found, last);
        let pull = reaction.pull();
        let pulls = pull > found.error;
        if (pulls || !closing.contacts.is_empty()) && self.changes[0] < MOST_CHANGES {
            if pulls {
                wrong.late = wrong.late.max(pull);
                wrong.gains += self.work_of_pulls(&reaction, found.velocity);
            }
            let stays = |contact: &&Contact| {
                let mut pushes = self.normals.iter().flatten().zip(reaction.pushes);
                pushes.any(|(n, push)| n.id == contact.id && push >= -found.error)
                    && !(closing.contacts.iter())
                        .any(|c| c.normal.dot(contact.normal) > SAME_SURFACE)
            };
            let staying = touching.contacts.iter().copied().filter(|c| stays(c));
            let acting: Vec<&Contact> = staying.chain(closing.contacts.iter().copied()).collect();
            let acting = Touching {
                contacts: &acting,
                ..*touching
            };
            let Some(mut other) = Self::of_normals(&acting) else {
                return Revised {
                    constraint: None,
                    wrong,
                };
            };
            // Otherwise the contacts that close were left out again.
            if pulls || other.ids() != self.ids() {
                wrong.late = wrong.late.max(found.mass * closing.lack);
                other.mode = revised.mode;
                other.friction = other.tangents * revised.friction;
                other.times = revised.times;
                other.drag = revised.drag;
                other.changes = revised.changes;
                other.changes[0] += 1;
                revised = other;
            }
        }
        revised.move_along(touching.velocity);
        Revised {
            constraint: Some(revised),
            wrong,
        }
    }

    /// The constraint in the second solve of a step, which leads from one velocity to the one at
    /// the end (m/s), by `times` what it finds; along normals that is the one with which the vertex
    /// moves. `None` if nothing holds it.
    pub(super) fn at_end(
        &self,
        [from, to]: [DVec3; 2],
        times: f64,
        state: VertexState,
        tau: f64,
    ) -> Option<Self> {
        if !state.held {
            return None;
        }
        // A vertex that arrives has lost its speed of approach at the end.
        let arrives = self.mode == Mode::Arrives;
        let lacks = if arrives { self.body_velocity } else { to } - from;
        let mut end = Self {
            lifts: (lacks - self.tangents * lacks) / times,
            times,
            friction: self.tangents * state.friction * tau,
            changes: [0; 2],
            ..*self
        };
        end.mode = match self.mode {
            Mode::Arrives => Mode::Arrives,
            _ if state.sticking => Mode::Sticks,
            _ => Mode::Slides,
        };
        if arrives {
            end.friction = DVec3::ZERO;
        }
        end.move_along(from);
        Some(end)
    }

    /// Compares with Coulomb's law what a second solve from a velocity (m/s) has found, as
    /// [`revise`](Self::revise) does.
    pub(super) fn revise_end(self, found: &Found, from: DVec3, last: bool) -> Revised {
        let reaction = self.reaction(found.residual);
        if reaction.pushes.iter().all(|push| *push <= 0.0) && reaction.pull() > found.error {
            return Revised {
                constraint: None,
                wrong: Wrong {
                    late: reaction.pull(),
                    gains: self.work_of_pulls(&reaction, found.velocity),
                    ..Wrong::default()
                },
            };
        }
        let mut revised = self;
        let wrong = revised.revise_mode(&reaction, found, last);
        revised.move_along(from);
        Revised {
            constraint: Some(revised),
            wrong,
        }
    }

    /// Revises how the vertex moves along the bodies, and says how wrong the solve is about that.
    fn revise_mode(&mut self, reaction: &Reaction, found: &Found, last: bool) -> Wrong {
        Wrong {
            limit: reaction.limit,
            ..self.revise_friction(reaction, found, last)
        }
    }

    /// Revises the mode and its friction, and says by how much friction is wrong.
    fn revise_friction(&mut self, reaction: &Reaction, found: &Found, last: bool) -> Wrong {
        if !self.rubs() {
            return Wrong::default();
        }
        let (limit, sliding) = (reaction.limit, self.sliding(found.velocity));
        let speed = sliding.length();
        let against = if speed > SLOWEST {
            sliding * (-limit / speed)
        } else {
            DVec3::ZERO
        };
        match self.mode {
            Mode::Sticks => {
                let size = reaction.along.length();
                let holds = size <= limit * (1.0 + BEYOND_CONE) + found.error;
                if holds {
                    return Wrong::default();
                }
                if last || self.changes[1] > 0 {
                    // How fast it would be alone.
                    let speed = (size - limit) / (found.inertia * self.times);
                    self.creep(limit, speed);
                } else {
                    self.mode = Mode::Slides;
                    self.friction = reaction.along * (limit / size);
                }
                self.changes[1] += 1;
                Wrong {
                    excess: size - limit,
                    ..Wrong::default()
                }
            }
            Mode::Slides => {
                let pushed = self.friction.dot(sliding);
                if pushed > 0.0 {
                    if speed <= SLOWEST_CREEP {
                        return Wrong::default();
                    }
                    if last || self.changes[1] > 0 {
                        self.creep(limit, speed);
                    } else {
                        self.mode = Mode::Sticks;
                    }
                    return Wrong {
                        gains: pushed,
                        ..Wrong::default()
                    };
                }
                let wrong = (self.friction - against).length();
                self.friction = against;
                if wrong > WRONG * limit && !last {
                    Wrong {
                        late: wrong,
                        ..Wrong::default()
                    }
                } else {
                    Wrong::default()
                }
            }
            Mode::Creeps => {
                self.creep(limit, speed);
                Wrong::default()
            }
            Mode::Arrives => {
                if found.would_stop(speed, limit * self.times) {
                    self.mode = Mode::Sticks;
                } else {
                    self.mode = Mode::Slides;
                    self.friction = against;
                }
                Wrong::default()
            }
        }
    }

    /// The work in J, relative to the body, of pulls on a vertex that comes closer.
    fn work_of_pulls(&self, reaction: &Reaction, velocity: DVec3) -> f64 {
        let relative = velocity - self.body_velocity;
        let normals = self.normals.iter().flatten().zip(reaction.pushes);
        let works = normals.map(|(n, push)| push.min(0.0) * relative.dot(n.along).min(0.0));
        works.sum()
    }

    /// Has friction act as a drag that reaches its limit at such a speed.
    fn creep(&mut self, limit: f64, speed: f64) {
        self.mode = Mode::Creeps;
        self.drag = limit / speed.max(SLOWEST_CREEP);
    }

    /// The limit of friction in kg m/s by what bodies push with beside the impact, which changes
    /// the speed of approach.
    fn steady_limit(&self, reaction: &Reaction, mass: f64) -> f64 {
        let mut limit = 0.0;
        for (normal, push) in self.normals.iter().zip(reaction.pushes) {
            if let Some(normal) = normal {
                let impact = mass * self.lifts.dot(normal.along).max(0.0);
                limit += normal.friction * (push - impact).max(0.0);
            }
        }
        limit
    }

    /// The share of the step before a vertex that arrives touches the body [Selle et al. 2009, §6].
    fn before_touch(&self, push: f64, mass: f64) -> f64 {
        if self.opening < 0.0 {
            self.opening / (self.opening - push.max(0.0) / mass)
        } else {
            0.0
        }
    }

    /// The vertex's contact at the end of a step in which forces act for `tau` (s). Friction at a
    /// first contact acts here; if another solve finds how the vertex `ends`, it moves the vertex
    /// for the time that the contact lasts.
    pub(super) fn settle(
        &self,
        found: &Found,
        tau: f64,
        ends: bool,
        velocity: &mut DVec3,
    ) -> VertexState {
        let reaction = self.reaction(found.residual);
        if reaction.pushes.iter().all(|push| *push <= 0.0)
            && reaction.pushes.iter().any(|push| *push < -found.error)
        {
            return VertexState {
                released: true,
                ..VertexState::default()
            };
        }
        let mut state = VertexState {
            held: true,
            ..VertexState::default()
        };
        let (limit, sliding) = (reaction.limit, self.sliding(found.velocity));
        match self.mode {
            Mode::Sticks => {
                let size = reaction.along.length();
                state.sticking = size <= limit * (1.0 + BEYOND_CONE) + found.error;
                if !state.sticking {
                    state.friction = reaction.along * (limit / (size * tau));
                }
            }
            Mode::Slides if self.friction.dot(sliding) > 0.0 => state.sticking = true,
            // It becomes slower, and may have come to rest.
            Mode::Creeps if self.drag * sliding.length() < limit => state.sticking = true,
            Mode::Slides | Mode::Creeps => {
                let speed = sliding.length();
                if speed > SLOWEST {
                    let steady = self.steady_limit(&reaction, found.mass);
                    state.friction = sliding * (-steady / (speed * tau));
                }
            }
            Mode::Arrives => {
                let free = *velocity;
                let mut most = self.times * limit / found.mass;
                if ends {
                    // The body takes all speed of approach when it is touched.
                    let friction = self.normals[0].map_or(0.0, |n| n.friction);
                    most -= friction * self.opening.min(0.0);
                }
                let stops = rub(velocity, sliding, most);
                state.sticking = stops && found.would_stop(sliding.length(), self.times * limit);
                if ends {
                    let share = self.before_touch(reaction.pushes[0], found.mass);
                    *velocity = velocity.lerp(free, share);
                }
                if !state.sticking {
                    let steady = self.steady_limit(&reaction, found.mass);
                    state.friction = sliding * (-steady / (sliding.length() * tau));
                }
            }
        }
        state
    }

    /// The change of velocity in m/s by friction that was part of the solve, were the vertex alone.
    pub(super) fn friction_in_solve(&self, found: &Found) -> DVec3 {
        if self.mode == Mode::Slides {
            self.friction / found.mass
        } else {
            DVec3::ZERO
        }
    }

    /// The share of friction that is an impact's: of what bodies push with, the part that changes
    /// the speed of approach.
    pub(super) fn impact_share(&self, found: &Found) -> f64 {
        let reaction = self.reaction(found.residual);
        if reaction.limit > 0.0 {
            1.0 - self.steady_limit(&reaction, found.mass) / reaction.limit
        } else {
            0.0
        }
    }
}

/// Takes up to `limit` (m/s) off the sliding velocity; true if that stopped it.
pub(super) fn rub(velocity: &mut DVec3, sliding: DVec3, limit: f64) -> bool {
    let speed = sliding.length();
    if speed <= limit {
        *velocity -= sliding;
        return limit > 0.0;
    }
    *velocity -= sliding * (limit / speed);
    false
}
