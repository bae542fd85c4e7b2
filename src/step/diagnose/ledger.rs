//! The ledger of a step: what changed the momentum and the kinetic energy of the cloth.
//!
//! A step gives each vertex impulses: by gravity, by pins and bodies, by contacts between layers,
//! by truncation. All impulses J of a vertex of mass m add up to m (v′ − v), from its velocity v
//! at the start of the step to v′ at its end, and J·(v + v′)/2 to its change of kinetic energy,
//! m (v′² − v²)/2: so each impulse has a part of the momentum and of the energy, whatever the
//! integrator, and what no entry explains is the rest.
//!
//! | entry | impulse |
//! |---|---|
//! | gravity | m g h in a substep of length h |
//! | pins, bodies | what constraints exert in the last solve of a system, `A Δv − b`; bodies also |
//! | | by friction, and where vertices are kept out of them in the end |
//! | contact | what the corrections after the solve change: layers of cloth, limits of strain |
//! | cut | what truncation takes |
//!
//! In the rest are what cloth does to itself, stored in its elements or lost to damping, the air,
//! what solves leave, and what integrators carry over from the step before.
//!
//! Sums run within a patch in vertex order. They are added patch by patch, so that they do not
//! depend on ranks.

use glam::DVec3;
use serde::{Deserialize, Serialize};

use crate::heap_bytes::{counts_heap, owns_no_heap};
use crate::step::certify::Cut;
use crate::step::context::Context;
use crate::step::integrate::time_integrator::Jolt;
use crate::step::response::body_response::BodyConstraint;

/// An entry: momentum in N s and energy in J.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The sum of the impulses.
    pub momentum: DVec3,
    /// The work that they do.
    pub energy: f64,
}

/// The sums of a step over some vertices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ledger {
    /// The momentum at the end in N s.
    pub momentum: DVec3,
    /// The kinetic energy at the end in J.
    pub kinetic: f64,
    /// The largest speed at the end in m/s.
    pub fastest: f64,
    /// The change of momentum and of kinetic energy.
    pub change: Entry,
    /// The part of gravity in it.
    pub gravity: Entry,
    /// The part of pins.
    pub pins: Entry,
    /// The part of bodies.
    pub bodies: Entry,
    /// The part of the corrections after the solve.
    pub contact: Entry,
    /// The part of truncation.
    pub cut: Entry,
    /// The sum of m |u| over all displacements u as they were before truncation, in kg m.
    pub motion: f64,
    /// The sum of m |u − u′| over all displacements that truncation made u′, in kg m.
    pub motion_cut: f64,
}

impl Entry {
    fn add(&mut self, other: &Self) {
        self.momentum += other.momentum;
        self.energy += other.energy;
    }

    /// Adds an impulse on a vertex of this mean velocity.
    fn note(&mut self, impulse: DVec3, mean: DVec3) {
        self.momentum += impulse;
        self.energy += impulse.dot(mean);
    }

    fn less(mut self, other: &Self) -> Self {
        self.momentum -= other.momentum;
        self.energy -= other.energy;
        self
    }
}

impl Ledger {
    /// The rest, which no entry explains.
    #[must_use]
    pub fn rest(&self) -> Entry {
        let known = [self.gravity, self.pins, self.bodies, self.contact, self.cut];
        known.iter().fold(self.change, Entry::less)
    }

    /// The share of all motion that was cut, from 0 to 1.
    #[must_use]
    pub fn cut_share(&self) -> f64 {
        if self.motion > 0.0 {
            self.motion_cut / self.motion
        } else {
            0.0
        }
    }

    /// Adds the sums of other vertices.
    pub fn add_vertices(&mut self, other: &Self) {
        self.momentum += other.momentum;
        self.kinetic += other.kinetic;
        self.fastest = self.fastest.max(other.fastest);
        self.add_sums(other);
    }

    /// Adds the sums of the same vertices in the substep that follows.
    pub(crate) fn add_substep(&mut self, next: &Self) {
        self.momentum = next.momentum;
        self.kinetic = next.kinetic;
        self.fastest = next.fastest;
        self.add_sums(next);
    }

    fn add_sums(&mut self, other: &Self) {
        self.change.add(&other.change);
        self.gravity.add(&other.gravity);
        self.pins.add(&other.pins);
        self.bodies.add(&other.bodies);
        self.contact.add(&other.contact);
        self.cut.add(&other.cut);
        self.motion += other.motion;
        self.motion_cut += other.motion_cut;
    }
}

/// An impulse on an owned vertex, in N s.
#[derive(Clone, Copy, Debug)]
struct Impulse {
    local: u32,
    impulse: DVec3,
}

owns_no_heap!(Impulse);

/// The impulses on a rank's vertices in a substep, noted as its stages find them.
#[derive(Debug, Default)]
pub(crate) struct Impulses {
    pins: Vec<Impulse>,
    bodies: Vec<Impulse>,
    /// The changes of velocities by corrections, in m/s.
    corrected: Vec<DVec3>,
    /// The impulses in N s that contacts exert in corrections.
    contacts: Vec<DVec3>,
}

counts_heap!(Impulses: pins, bodies, corrected, contacts);

/// The velocities of owned vertices in m/s.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Velocities<'a> {
    /// The velocities at the start of the substep.
    pub(crate) start: &'a [DVec3],
    /// The velocities at its end.
    pub(crate) end: &'a [DVec3],
    /// The velocities with which vertices moved.
    pub(crate) moves: &'a [DVec3],
}

/// The solution of a solve, and its residual, at owned vertices.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SolvedImpulses<'a> {
    /// The residual `A Δv − b` in kg m/s.
    pub(crate) residual: &'a [DVec3],
    /// The change of velocity in m/s.
    pub(crate) change: &'a [DVec3],
    /// How many times the solve's impulses the substep has.
    pub(crate) times: f64,
}

impl Impulses {
    /// Begins with a substep.
    pub(crate) fn clear(&mut self) {
        self.pins.clear();
        self.bodies.clear();
    }

    /// Notes the impulses that pins and bodies exert in a solve. The impulses of bodies include the
    /// friction that is part of the system.
    pub(crate) fn note_solve(
        &mut self,
        at: Context<'_>,
        constraints: &[BodyConstraint],
        solved: SolvedImpulses<'_>,
    ) {
        let SolvedImpulses {
            residual,
            change,
            times,
        } = solved;
        let pinned = at.own_pinned().map(|pinned| Impulse {
            local: pinned.row as u32,
            impulse: residual[pinned.row] * times,
        });
        self.pins.extend(pinned);
        self.bodies.extend(constraints.iter().map(|c| {
            let i = c.local as usize;
            Impulse {
                local: c.local,
                impulse: c.exerted(residual[i], change[i]) * times,
            }
        }));
    }

    /// Notes what bodies change of velocities beside that.
    pub(crate) fn note_bodies(&mut self, changes: impl Iterator<Item = Jolt>, masses: &[f64]) {
        let impulses = changes.map(|change| Impulse {
            local: change.local,
            impulse: change.change * masses[change.local as usize],
        });
        self.bodies.extend(impulses);
    }

    /// Keeps the velocities that corrections begin with.
    pub(crate) fn before_corrections(&mut self, velocities: &[DVec3]) {
        self.corrected.clear();
        self.corrected.extend_from_slice(velocities);
    }

    /// Finds what corrections have changed.
    pub(crate) fn after_corrections(&mut self, velocities: &[DVec3]) {
        for (corrected, v) in self.corrected.iter_mut().zip(velocities) {
            *corrected = *v - *corrected;
        }
    }

    /// Adds what layers have changed of velocities, from some to others, to what their contacts
    /// exert, and where `late` to what corrections have changed.
    pub(crate) fn add_layers(
        &mut self,
        [before, after]: [&[DVec3]; 2],
        masses: &[f64],
        late: bool,
    ) {
        let changes = before
            .iter()
            .zip(after)
            .map(|(before, after)| *after - *before);
        for (i, change) in changes.enumerate() {
            self.contacts[i] += change * masses[i];
            if late {
                self.corrected[i] += change;
            }
        }
    }

    /// Notes the impulses in N s that contacts exert on owned vertices in corrections.
    pub(crate) fn note_contacts(&mut self, exerted: &[DVec3]) {
        self.contacts.clear();
        self.contacts.extend_from_slice(exerted);
    }

    /// Adds to the impulses on owned vertices, in N s, the impulses of contacts in the substep: of
    /// bodies, of layers of cloth, and of certification, which made these changes of velocities.
    pub(crate) fn add_contacts(&self, at: Context<'_>, cuts: &[Cut], sums: &mut [DVec3]) {
        for (sum, impulse) in sums.iter_mut().zip(&self.contacts) {
            *sum += *impulse;
        }
        for body in &self.bodies {
            sums[body.local as usize] += body.impulse;
        }
        let (owned, masses) = (at.domain.owned(), at.masses());
        for cut in cuts {
            let vertex = cut.vertex as usize;
            if owned.contains(&vertex) {
                let i = vertex - owned.start;
                sums[i] += cut.change * masses[i];
            }
        }
    }

    /// Adds up the ledger of each owned patch. `cuts` are of all vertices, ascending, and changed
    /// the motion for so long, in s.
    pub(crate) fn sums(
        &self,
        at: Context<'_>,
        velocities: Velocities<'_>,
        (cuts, over): (&[Cut], f64),
    ) -> Vec<Ledger> {
        let tree = at.world.tree();
        let (owned, masses) = (at.domain.owned(), at.masses());
        let Velocities { start, end, moves } = velocities;
        let dt = at.substep.dt;
        let falls = at.gravity() * dt;
        let mean = |i: usize| (start[i] + end[i]) * 0.5;
        let of_patch = |patch: usize| {
            let vertices = tree.patch_vertices(patch);
            let mut sums = Ledger::default();
            let (mut mass, mut fastest) = (0.0, 0.0_f64);
            let mut falling = DVec3::ZERO;
            for i in vertices.start - owned.start..vertices.end - owned.start {
                let m = masses[i];
                let half = mean(i);
                sums.momentum += end[i] * m;
                let squared = end[i].length_squared();
                sums.kinetic += 0.5 * m * squared;
                fastest = fastest.max(squared);
                sums.change.note((end[i] - start[i]) * m, half);
                mass += m;
                falling += half * m;
                sums.contact.note(self.corrected[i] * m, half);
                sums.motion += m * moves[i].length() * dt;
            }
            sums.gravity = Entry {
                momentum: falls * mass,
                energy: falls.dot(falling),
            };
            sums.fastest = fastest.sqrt();
            sums
        };
        let first = at.domain.patches().start;
        let mut all: Vec<Ledger> = at.domain.patches().map(of_patch).collect();
        let place = |local: usize| tree.patch_of((local + owned.start) as u32) - first;
        for pin in &self.pins {
            let i = pin.local as usize;
            all[place(i)].pins.note(pin.impulse, mean(i));
        }
        for body in &self.bodies {
            let i = body.local as usize;
            all[place(i)].bodies.note(body.impulse, mean(i));
        }
        for cut in cuts {
            let vertex = cut.vertex as usize;
            if owned.contains(&vertex) {
                let i = vertex - owned.start;
                let (sums, m) = (&mut all[place(i)], masses[i]);
                sums.cut.note(cut.change * m, mean(i));
                let wanted = moves[i] - cut.change * (over / dt);
                sums.motion += m * (wanted.length() - moves[i].length()) * dt;
                sums.motion_cut += m * cut.change.length() * over;
            }
        }
        all
    }
}
