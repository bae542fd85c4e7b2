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
use super::constraint::Constraint;
use super::constraint_exchange::ConstraintExchange;
use super::edges::Edges;
use super::impulses::Impulses;
use super::strain_limit::Stretched;
use crate::collide::Contact;
use crate::solve::Halo;
use crate::step::contact::contacts::Contacts;
use crate::step::context::Context;
use crate::step::state::StateView;
use crate::step::system::assembly::Assembly;
use crate::team::Team;

/// The tag of the messages that bring velocities of the halo.
pub(crate) const TAG: Tag = Tag(0x28);
/// The most passes, in each of which strain constraints are made: a second time always, and again
/// as long as that does not settle at the first look.
const PASSES: usize = 12;
/// The rounds between looks at how far the worst constraint of all ranks is from what it accepts.
const LOOK_EVERY: u32 = 4;
/// A pass ends early when no constraint asks for more than this share of the least distance to keep
/// within a step, be it to push more or less.
const SETTLED: f64 = 0.005;

/// A rank's corrections, with their storage.
#[derive(Debug)]
pub(crate) struct Corrections {
    halo: Halo,
    impulses: Impulses,
    /// The constraints of edges.
    rated: Vec<Constraint>,
    stretched: Stretched,
}

/// What corrections read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Correcting<'a> {
    pub(crate) at: Context<'a>,
    pub(crate) assembly: &'a Assembly,
    pub(crate) bodies: &'a BodyResponse,
    pub(crate) edges: Option<LimitedEdges<'a>>,
    /// Positions at the start of the substep, with halo, in m.
    pub(crate) x: &'a [DVec3],
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

impl Corrections {
    /// The corrections of a rank, by all threads of its team.
    pub(crate) fn new(plan: &HaloPlan, team: &Team) -> Self {
        Self {
            halo: Halo::new(plan, TAG),
            impulses: Impulses::with_team(team),
            rated: Vec::new(),
            stretched: Stretched::default(),
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
        self.take_contacts(with, contacts);
        let contact_constraints = self.impulses.constraints().len();
        let mut pushed = Pushed::default();
        for pass in 0..PASSES {
            self.halo.start(comm, v)?;
            self.halo.finish(comm, v)?;
            let weight = domain.weight;
            domain.cost_model.charge(comm, Work::Response { weight });
            self.impulses.truncate(contact_constraints);
            let state = StateView { x: with.x, v: &*v };
            (self.stretched).find(world.model(), with.assembly, state, dt, pass > 0);
            self.impulses.extend(self.stretched.constraints().copied());
            let strain_constraints = contact_constraints..self.impulses.constraints().len();
            if let Some(LimitedEdges { edges, limit }) = with.edges {
                self.rated.clear();
                edges.push_constraints(limit, state, dt, &mut self.rated);
                self.impulses.extend(self.rated.iter().copied());
            }
            self.impulses.begin();
            let me = comm.rank().index();
            let exchange = ConstraintExchange::new(&self.impulses, &domain.ownership, me);
            self.enter(with, v);
            exchange.enter(comm, &mut self.impulses)?;
            self.impulses.survey();
            pushed.passes += 1;
            let began = comm.now();
            let rounds = self.rounds(comm, with, &exchange, contact_constraints, &mut pushed)?;
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
            if pass == 0 {
                let all = self.impulses.constraints().len();
                pushed.contacts = self.pushing(&owned, 0..contact_constraints);
                pushed.edges = self.pushing(&owned, strain_constraints.end..all);
                pushed.triangles = self.pushing(&owned, strain_constraints);
            }
            if pass > 0 && rounds.at_once {
                break;
            }
        }
        Ok(pushed)
    }

    /// Begins with the constraints of contacts.
    fn take_contacts(&mut self, with: &Correcting<'_>, contacts: &Contacts) {
        let (world, dt) = (with.at.world, with.at.substep.dt);
        self.impulses.clear(with.at.domain.owned());
        let friction = |c: &Contact| world.friction().of(c);
        let team = self.impulses.team().clone();
        self.impulses
            .extend_filled(contacts.layers_len(), |constraints| {
                contacts.map_layers(&team, constraints, |c| {
                    Constraint::of_contact(c, friction(c), dt)
                });
            });
        let bodies = contacts.vertex_body();
        self.impulses.extend(bodies.map(|c| Constraint {
            least_rate: least_rate(c, dt),
            ..Constraint::of_contact(c, friction(c), dt)
        }));
    }

    /// Makes rounds until all constraints of all ranks have settled, or as many as the scene
    /// allows.
    fn rounds(
        &mut self,
        comm: &mut dyn Comm,
        with: &Correcting<'_>,
        exchange: &ConstraintExchange,
        contact_constraints: usize,
        pushed: &mut Pushed,
    ) -> Result<Rounds, CommError> {
        let settings = &with.at.world.scene().contact;
        let settled = SETTLED * with.at.world.distances().least() / with.at.substep.dt;
        let impulses = &mut self.impulses;
        let mut before = f64::INFINITY;
        for round in 1..=settings.iterations {
            exchange.refresh(comm, impulses)?;
            let worst = impulses.round();
            let contacts = contact_constraints as u64;
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

    /// Enters velocity and mobility of the owned vertices that take part.
    ///
    /// What a body holds can be moved too: the constraints of its contacts keep it out. It may have
    /// to leave the body, for a layer that comes between them or for cloth that is pushed together
    /// and has to rise; were it held, constraints would ask of others what those cannot give. What
    /// friction holds resists along the body.
    fn enter(&mut self, with: &Correcting<'_>, v: &[DVec3]) {
        let owned = with.at.domain.owned();
        let masses = with.at.world.model().masses();
        for slot in 0..self.impulses.vertices().len() {
            let vertex = self.impulses.vertices()[slot] as usize;
            if owned.contains(&vertex) {
                let mobility = DMat3::from_diagonal(DVec3::splat(1.0 / masses[vertex]));
                self.impulses.place(slot, v[vertex - owned.start], mobility);
            }
        }
        for pinned in with.at.own_pinned() {
            if let Some(slot) = self.impulses.slot(pinned.vertex) {
                let mobility = pinned.motion.free * (1.0 / masses[pinned.vertex as usize]);
                self.impulses.set_mobility(slot, mobility);
            }
        }
        for c in with.bodies.constraints() {
            let vertex = owned.start + c.local as usize;
            if with.bodies.states()[c.local as usize].sticking
                && let Some(slot) = self.impulses.slot(vertex as u32)
            {
                self.impulses
                    .set_mobility(slot, c.yields() * (1.0 / masses[vertex]));
            }
        }
    }
}
