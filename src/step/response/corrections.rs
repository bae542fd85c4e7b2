//! Corrections by impulses of what the linear solve did not foresee: layers that meet, cloth that
//! is pulled into bodies, triangles that stretch too far, edges that change too fast.
//!
//! In: velocities after the solve. Out: velocities that contacts and the strain limit accept, as
//! far as the rounds get. There are a few passes, for strain constraints are linear at the
//! velocities with which a pass begins.

use std::ops::Range;
use std::time::Duration;

use glam::{DMat3, DVec3};
use weft_balance::cost_model::Work;
use weft_partition::HaloPlan;
use weft_runtime::comm::{Comm, CommError, Tag, all_reduce};

use super::body_response::{BodyResponse, least_rate};
use super::constraint::{Constraint, Push};
use super::constraint_exchange::{ConstraintExchange, ExchangePlan};
use super::edges::Edges;
use super::gauss_seidel::{Effort, Owners, Sweeps};
use super::impulses::Impulses;
use super::resting::Resting;
use super::strain_limit::Stretched;
use crate::collide::{Contact, Surface};
use crate::heap_bytes::counts_heap;
use crate::scene::Response;
use crate::solve::Halo;
use crate::step::contact::contacts::{Contacts, Kept};
use crate::step::context::Context;
use crate::step::state::StateView;
use crate::step::system::assembly::Assembly;
use crate::team::Team;

/// The tag of the messages that bring velocities of the halo.
pub(crate) const TAG: Tag = Tag(0x28);
/// The most passes, in each of which strain constraints are made: a second time always, and again
/// as long as that does not settle at the first look, unless no pass helps any more.
const PASSES: usize = 12;
/// The rounds between looks at how far the worst constraint of all ranks is from what it accepts.
const LOOK_EVERY: u32 = 4;
/// Passes end after this number in vain. A pass is in vain if its worst constraint asks for more
/// than this many times what a settled one may, and for more than this share of the least so far.
const IN_VAIN: u32 = 2;
const FAR: f64 = 20.0;
const PROGRESS: f64 = 0.7;
/// The sweeps before rounds, if both are wanted.
const SWEEPS: u32 = 4;

/// A rank's corrections, with their storage.
#[derive(Debug)]
pub(crate) struct Corrections {
    halo: Halo,
    impulses: Impulses,
    resting: Resting,
    sweeps: Sweeps,
    /// The constraints of edges.
    rated: Vec<Constraint>,
    stretched: Stretched,
    /// The impulses that contacts exerted on owned vertices in all passes, in kg m/s.
    exerted: Vec<DVec3>,
}

counts_heap!(Corrections: halo, impulses, resting, sweeps, rated, stretched, exerted);

/// The data that corrections read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Correcting<'a> {
    pub(crate) at: Context<'a>,
    pub(crate) assembly: &'a Assembly,
    pub(crate) bodies: &'a BodyResponse,
    pub(crate) edges: Option<LimitedEdges<'a>>,
    /// Positions at the start of the substep, with halo, in m.
    pub(crate) x: &'a [DVec3],
}

/// The parts of a pass.
#[derive(Clone, Copy, Debug)]
struct Passing<'a> {
    exchange: &'a ConstraintExchange,
    contacts: &'a Contacts,
    /// The velocities of owned vertices with which it begins, in m/s, with halo.
    v: &'a [DVec3],
    /// How many constraints there are of vertices against bodies, and of triangles.
    of_bodies: usize,
    triangles: usize,
}

impl Passing<'_> {
    /// How many contacts there are, with those that have no constraint.
    fn count(&self) -> usize {
        self.contacts.others_len() + self.of_bodies
    }
}

impl Correcting<'_> {
    /// The change of its rate in m/s that a constraint which has settled may ask for.
    fn settled(&self) -> f64 {
        let tolerance = self.at.world.scene().contact.tolerance;
        tolerance * self.at.world.distances().least() / self.at.substep.dt
    }

    /// The surface of the cloth.
    fn surface(&self) -> &Surface {
        self.at.world.geometry().cloth.surface()
    }
}

/// Edges whose change of length is limited.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LimitedEdges<'a> {
    pub(crate) edges: &'a Edges,
    /// The share of its length by which an edge may change in a substep.
    pub(crate) limit: f64,
}

/// The numbers of constraints that pushed in the first pass, of those whose first vertex the rank
/// owns, and what the corrections took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Pushed {
    pub(crate) contacts: u64,
    pub(crate) triangles: u64,
    pub(crate) edges: u64,
    /// The passes.
    pub(crate) passes: u32,
    /// The rounds in all passes.
    pub(crate) rounds: u32,
    /// The rounds after which ranks asked each other how far they are.
    pub(crate) looks: u32,
    /// The passes that ended with constraints that had not settled.
    pub(crate) unsettled: u32,
    /// The change of rate in m/s that the worst of these still asked for.
    pub(crate) lacking: f64,
    /// The time spent in rounds.
    pub(crate) rounds_time: Duration,
    /// The work of sweeps, with the messages of all rounds.
    pub(crate) effort: Effort,
}

/// How the rounds of a pass ended.
#[derive(Clone, Copy, Debug)]
struct Rounds {
    /// Whether no constraint asked for much any more.
    settled: bool,
    /// Whether that was so at the first look.
    at_once: bool,
    /// The change of rate in m/s that the worst constraint asked for at the last look; infinite if
    /// nobody has looked.
    worst: f64,
}

/// The progress of passes that do not settle.
///
/// Constraints may be such that no velocities fulfil them all: a pin pulls a knot tight, bodies
/// leave cloth no room. Passes then make no progress any more, and the rest is left to
/// certification.
#[derive(Clone, Copy, Debug)]
struct Progress {
    /// The least that the worst constraint of a pass has asked for, in m/s.
    least: f64,
    /// The last passes in vain.
    in_vain: u32,
}

impl Default for Progress {
    fn default() -> Self {
        Self {
            least: f64::INFINITY,
            in_vain: 0,
        }
    }
}

impl Progress {
    /// Takes note of a pass, where settled constraints ask for no more than `settled` in m/s.
    /// Returns whether more passes are in vain.
    fn has_ended(&mut self, rounds: &Rounds, settled: f64) -> bool {
        if rounds.worst > (FAR * settled).max(PROGRESS * self.least) {
            self.in_vain += 1;
        } else {
            self.in_vain = 0;
        }
        self.least = self.least.min(rounds.worst);
        self.in_vain >= IN_VAIN
    }
}

impl Corrections {
    /// The corrections of a rank, by all threads of its team.
    pub(crate) fn new(plan: &HaloPlan, team: &Team) -> Self {
        Self {
            halo: Halo::new(plan, TAG),
            impulses: Impulses::with_team(team),
            resting: Resting::default(),
            sweeps: Sweeps::default(),
            rated: Vec::new(),
            stretched: Stretched::default(),
            exerted: Vec::new(),
        }
    }

    /// Corrects the velocities (m/s) of owned vertices, the first in `v`; the rest of it is halo.
    pub(crate) fn apply(
        &mut self,
        comm: &mut dyn Comm,
        with: &Correcting<'_>,
        contacts: &Contacts,
        v: &mut [DVec3],
    ) -> Result<Pushed, CommError> {
        let Context { world, domain, .. } = with.at;
        let (owned, dt) = (domain.owned(), with.at.substep.dt);
        let response = world.scene().contact.response;
        let gone = match response {
            Response::Jacobi => self.impulses.farthest(),
            // The order of sweeps may depend on nothing that ranks differ in.
            Response::GaussSeidel | Response::Both => 0.0,
        };
        self.exerted.clear();
        self.exerted.resize(owned.len(), DVec3::ZERO);
        self.take_contacts(with, contacts);
        let of_bodies = self.impulses.constraints().len();
        let me = comm.rank().index();
        let resting = contacts.others().map(|kept| kept.vertices(with.surface()));
        let ownership = &domain.ownership;
        let plan = ExchangePlan::of_resting(&mut self.impulses, resting, ownership, me);
        let mut pushed = Pushed::default();
        let mut progress = Progress::default();
        for pass in 0..PASSES {
            self.halo.start(comm, v)?;
            self.halo.finish(comm, v)?;
            let weight = domain.weight;
            domain.cost_model.charge(comm, Work::Response { weight });
            let contact_constraints = self.impulses.admitted() + of_bodies;
            self.impulses.truncate(contact_constraints);
            let state = StateView { x: with.x, v: &*v };
            (self.stretched).find(world.model(), with.assembly, state, dt, pass > 0);
            self.impulses.extend(self.stretched.constraints().copied());
            let triangles = self.impulses.constraints().len() - contact_constraints;
            if let Some(LimitedEdges { edges, limit }) = with.edges {
                self.rated.clear();
                edges.push_constraints(limit, state, dt, &mut self.rated);
                self.impulses.extend(self.rated.iter().copied());
            }
            self.impulses.begin();
            let exchange = ConstraintExchange::new(plan.clone(), &self.impulses, ownership, me);
            self.enter(with, v, 0);
            exchange.enter(comm, &mut self.impulses)?;
            pushed.effort.messages += exchange.messages();
            self.impulses.all_placed();
            if pass == 0 {
                self.measure(with, contacts, v, gone);
                self.admit(with, contacts, v);
            } else if response == Response::Jacobi {
                self.admit_reached(with, contacts, v);
            }
            pushed.passes += 1;
            let began = comm.now();
            let of = Passing {
                exchange: &exchange,
                contacts,
                v: &*v,
                of_bodies,
                triangles,
            };
            let rounds = if response == Response::GaussSeidel {
                let most = world.scene().contact.iterations;
                self.sweep(comm, with, &of, most, &mut pushed)?
            } else {
                if response == Response::Both {
                    self.sweep(comm, with, &of, SWEEPS, &mut pushed)?;
                    exchange.enter(comm, &mut self.impulses)?;
                    pushed.effort.messages += exchange.messages();
                }
                self.impulses.survey();
                self.rounds(comm, with, &of, &mut pushed)?
            };
            pushed.rounds_time += comm.now().saturating_sub(began);
            if !rounds.settled {
                pushed.unsettled += 1;
                // Nobody has looked if there may be fewer rounds than a look takes.
                let lacking = Some(rounds.worst).filter(|worst| worst.is_finite());
                pushed.lacking = pushed.lacking.max(lacking.unwrap_or(0.0));
            }
            for (slot, &vertex) in self.impulses.vertices().iter().enumerate() {
                if owned.contains(&(vertex as usize)) {
                    v[vertex as usize - owned.start] = self.impulses.velocity(slot);
                }
            }
            self.note_exerted(&owned, self.impulses.admitted() + of_bodies);
            if pass == 0 {
                let all = self.impulses.constraints().len();
                let strain = self.impulses.admitted() + of_bodies;
                pushed.contacts = self.pushing(&owned, 0..strain);
                pushed.triangles = self.pushing(&owned, strain..strain + triangles);
                pushed.edges = self.pushing(&owned, strain + triangles..all);
            }
            if pass > 0 && (rounds.at_once || progress.has_ended(&rounds, with.settled())) {
                break;
            }
        }
        pushed.effort.add(self.sweeps.take_effort());
        Ok(pushed)
    }

    /// The impulses that contacts exerted on owned vertices in the last corrections, in kg m/s.
    pub(crate) fn exerted(&self) -> &[DVec3] {
        &self.exerted
    }

    /// Adds up the impulses of the first `contacts` constraints, those of contacts, in a pass.
    fn note_exerted(&mut self, owned: &Range<usize>, contacts: usize) {
        let constraints = self.impulses.constraints();
        for (number, push) in self.impulses.pushes().take(contacts) {
            if push.normal <= 0.0 {
                continue;
            }
            let constraint = &constraints[number as usize];
            let impulse = push.impulse(constraint.normal);
            for (&vertex, &weight) in constraint.vertices().iter().zip(&constraint.weights) {
                if owned.contains(&(vertex as usize)) {
                    self.exerted[vertex as usize - owned.start] += impulse * weight;
                }
            }
        }
    }

    /// Begins with the constraints of contacts of vertices with bodies.
    fn take_contacts(&mut self, with: &Correcting<'_>, contacts: &Contacts) {
        let (at, dt) = (with.at, with.at.substep.dt);
        self.impulses.clear(with.at.domain.owned());
        let friction = |c: &Contact| at.friction().of(c);
        let bodies = contacts.vertex_body();
        self.impulses.extend(bodies.map(|c| Constraint {
            least_rate: least_rate(c, dt),
            ..Constraint::of_contact(c, friction(c), dt)
        }));
    }

    /// Finds what contacts have to spare. `gone` is how far a vertex went in the substep before, in
    /// m/s.
    fn measure(&mut self, with: &Correcting<'_>, contacts: &Contacts, v: &[DVec3], gone: f64) {
        let (impulses, dt) = (&self.impulses, with.at.substep.dt);
        let (surface, owned) = (with.surface(), with.at.domain.owned());
        let velocity = |vertex: u32| {
            if owned.contains(&(vertex as usize)) {
                return v[vertex as usize - owned.start];
            }
            let slot = impulses.slot(vertex);
            impulses.velocity(slot.expect("foreign vertices of contacts take part"))
        };
        let spare = |kept: Kept<'_>| {
            let constraint = Constraint::of_contact(&kept.contact(surface), 0.0, dt);
            let mut velocities = [DVec3::ZERO; 4];
            for (own, &vertex) in velocities.iter_mut().zip(constraint.vertices()) {
                *own = velocity(vertex);
            }
            constraint.spare_at(velocities)
        };
        let rate = with.at.world.distances().least() / dt;
        (self.resting).measure(contacts, impulses.team(), [rate, gone], spare);
    }

    /// Gives constraints to the contacts that have little to spare.
    fn admit(&mut self, with: &Correcting<'_>, contacts: &Contacts, v: &[DVec3]) {
        let (at, dt) = (with.at, with.at.substep.dt);
        let numbers: Vec<u32> = self.resting.numbers(contacts.others_found()).collect();
        let constraints = contacts.others_at(numbers.iter().copied()).map(|kept| {
            let contact = kept.contact(with.surface());
            Constraint::of_contact(&contact, at.friction().of(&contact), dt)
        });
        let before = self.impulses.vertices().len();
        (self.impulses).admit(numbers.iter().copied().zip(constraints));
        self.enter(with, v, before);
        self.impulses.all_placed();
    }

    /// Gives constraints to more contacts if a vertex has gone so far that they may need some.
    fn admit_reached(&mut self, with: &Correcting<'_>, contacts: &Contacts, v: &[DVec3]) {
        if self.resting.is_reached(self.impulses.farthest()) {
            self.admit(with, contacts, v);
        }
    }

    /// Gives constraints to more contacts, all ranks to the same ones, if a vertex of any rank has
    /// gone so far that they may need some. Returns whether it did. Collective.
    fn admit_agreed(
        &mut self,
        comm: &mut dyn Comm,
        with: &Correcting<'_>,
        of: &Passing<'_>,
    ) -> Result<bool, CommError> {
        let gone = all_reduce(comm, self.impulses.own_farthest(), f64::max)?;
        let reached = self.resting.is_reached(gone);
        if reached {
            self.admit(with, of.contacts, of.v);
        }
        Ok(reached)
    }

    /// Colours the constraints of the pass, which may have pushed. Collective.
    fn begin_sweeps(
        &mut self,
        comm: &mut dyn Comm,
        with: &Correcting<'_>,
        of: &Passing<'_>,
    ) -> Result<(), CommError> {
        let ownership = &with.at.domain.ownership;
        let vertices = self.impulses.vertices().iter();
        let owners: Vec<u32> = vertices
            .map(|&vertex| ownership.rank_of_vertex(vertex as usize) as u32)
            .collect();
        let owners = Owners {
            me: comm.rank().index(),
            ranks: comm.size(),
            of: &owners,
        };
        let [faces, edges, _] = of.contacts.others_of_kinds();
        let mut ends = [faces, faces + edges]
            .map(|number| self.impulses.admitted_below(number))
            .to_vec();
        ends.push(self.impulses.admitted() + of.of_bodies);
        ends.push(self.impulses.admitted() + of.of_bodies + of.triangles);
        ends.push(self.impulses.constraints().len());
        let mut start = 0;
        let kinds = ends
            .into_iter()
            .map(|end| std::mem::replace(&mut start, end)..end);
        let kinds: Vec<Range<usize>> = kinds.collect();
        let pushes: Vec<(u32, Push)> = self.impulses.pushes().collect();
        self.sweeps
            .begin(comm, &self.impulses.swept(), &kinds, owners, pushes)
    }

    /// Makes sweeps until all constraints of all ranks have settled, or the most that are allowed.
    /// Collective.
    fn sweep(
        &mut self,
        comm: &mut dyn Comm,
        with: &Correcting<'_>,
        of: &Passing<'_>,
        most: u32,
        pushed: &mut Pushed,
    ) -> Result<Rounds, CommError> {
        self.admit_agreed(comm, with, of)?;
        self.begin_sweeps(comm, with, of)?;
        let mut rounds = Rounds {
            settled: false,
            at_once: false,
            worst: f64::INFINITY,
        };
        for round in 1..=most {
            let worst = self.sweeps.sweep(comm, &mut self.impulses.swept())?;
            let contacts = of.count() as u64;
            (with.at.domain.cost_model).charge(comm, Work::ImpulseRound { contacts });
            pushed.rounds += 1;
            pushed.looks += 1;
            rounds.worst = all_reduce(comm, worst, f64::max)?;
            if rounds.worst <= with.settled() {
                (rounds.settled, rounds.at_once) = (true, round <= LOOK_EVERY);
                break;
            }
            self.impulses.take_over(self.sweeps.pushes());
            if self.admit_agreed(comm, with, of)? {
                of.exchange.enter(comm, &mut self.impulses)?;
                pushed.effort.messages += of.exchange.messages();
                self.begin_sweeps(comm, with, of)?;
            }
        }
        self.impulses.take_over(self.sweeps.pushes());
        Ok(rounds)
    }

    /// Makes rounds until all constraints of all ranks have settled, or as many as the scene
    /// allows.
    fn rounds(
        &mut self,
        comm: &mut dyn Comm,
        with: &Correcting<'_>,
        of: &Passing<'_>,
        pushed: &mut Pushed,
    ) -> Result<Rounds, CommError> {
        let settings = &with.at.world.scene().contact;
        let settled = with.settled();
        let contacts = of.count() as u64;
        let mut before = f64::INFINITY;
        for round in 1..=settings.iterations {
            of.exchange.refresh(comm, &mut self.impulses)?;
            pushed.effort.messages += of.exchange.messages();
            if settings.response == Response::Jacobi {
                self.admit_reached(with, of.contacts, of.v);
            } else if self.admit_agreed(comm, with, of)? {
                of.exchange.enter(comm, &mut self.impulses)?;
                pushed.effort.messages += of.exchange.messages();
            }
            let impulses = &mut self.impulses;
            let worst = impulses.round();
            (with.at.domain.cost_model).charge(comm, Work::ImpulseRound { contacts });
            pushed.rounds += 1;
            if round % LOOK_EVERY == 0 {
                pushed.looks += 1;
                let worst = all_reduce(comm, worst, f64::max)?;
                if worst <= settled {
                    return Ok(Rounds {
                        settled: true,
                        at_once: round == LOOK_EVERY,
                        worst,
                    });
                }
                if worst > before {
                    impulses.begin_anew();
                }
                before = worst;
            }
        }
        Ok(Rounds {
            settled: false,
            at_once: false,
            worst: before,
        })
    }

    /// How many of some constraints pushed, of those whose first vertex is owned.
    fn pushing(&self, owned: &Range<usize>, which: Range<usize>) -> u64 {
        let constraints = self.impulses.constraints().iter();
        let pushing = constraints.zip(self.impulses.pushing());
        let of_kind = pushing.skip(which.start).take(which.len());
        let counted = |constraint: &Constraint| owned.contains(&(constraint.vertices[0] as usize));
        let count = of_kind.filter(|(constraint, pushed)| *pushed && counted(constraint));
        count.count() as u64
    }

    fn enter(&mut self, with: &Correcting<'_>, v: &[DVec3], first: usize) {
        enter(&mut self.impulses, with.at, with.bodies, v, first);
    }
}

/// Enters velocity and mobility of the owned vertices that take part, but not of the `first` ones.
///
/// Vertices that a body holds can be moved too: the constraints of their contacts keep them out.
/// They may have to leave the body, for a layer that comes between them or for cloth that is pushed
/// together and has to rise; were they held, constraints would ask of others what those cannot
/// give. Vertices that friction holds resist along the body.
pub(crate) fn enter(
    impulses: &mut Impulses,
    at: Context<'_>,
    bodies: &BodyResponse,
    v: &[DVec3],
    first: usize,
) {
    let owned = at.domain.owned();
    let masses = at.world.model().masses();
    for slot in first..impulses.vertices().len() {
        let vertex = impulses.vertices()[slot] as usize;
        if owned.contains(&vertex) {
            let mobility = DMat3::from_diagonal(DVec3::splat(1.0 / masses[vertex]));
            impulses.place(slot, v[vertex - owned.start], mobility);
        }
    }
    for pinned in at.own_pinned() {
        if let Some(slot) = impulses.slot(pinned.vertex) {
            let mobility = pinned.motion.free * (1.0 / masses[pinned.vertex as usize]);
            impulses.set_mobility(slot, mobility);
        }
    }
    for c in bodies.constraints() {
        let vertex = owned.start + c.local as usize;
        if bodies.states()[c.local as usize].sticking
            && let Some(slot) = impulses.slot(vertex as u32)
        {
            impulses.set_mobility(slot, c.yields() * (1.0 / masses[vertex]));
        }
    }
}
