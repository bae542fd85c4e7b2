//! What the linear solve did not foresee, put right by impulses: layers that meet, cloth that is pulled into
//! bodies, triangles that stretch too far, edges that change too fast.
//!
//! In: velocities after the solve. Out: velocities that contacts and the strain limit accept, as far as
//! the rounds get. A few passes, for strain constraints are linear at the velocities a pass begins with.

use std::time::Duration;

use glam::{DMat3, DVec3};
use weft_balance::cost_model::{CostModel, Work};
use weft_partition::{HaloPlan, Ownership};
use weft_runtime::comm::{Comm, CommError, Tag, all_reduce};

use super::body_response::{BodyResponse, least_rate};
use super::constraint_exchange::ConstraintExchange;
use super::edges::Edges;
use super::impulses::{Constraint, Impulses};
use super::strain_limit::Stretched;
use crate::collide::Contact;
use crate::collide::contact::PairKind;
use crate::solve::Halo;
use crate::step::contact::contacts::Contacts;
use crate::step::system::assembly::Assembly;
use crate::step::world::World;
use crate::step::world::prescribed_motion::PrescribedMotion;
use crate::team::Team;

pub(crate) const TAG: Tag = Tag(0x28);
/// How often strain constraints are made, at most: a second time always, and again as long as that does not settle at the first look.
const PASSES: usize = 12;
/// Rounds between looking at how far the worst constraint of all ranks is from what it accepts.
const LOOK_EVERY: u32 = 4;
/// A pass ends early when no constraint asks for more than this share of the contact thickness within a step, be it to push more or less.
const SETTLED: f64 = 0.005;

/// A rank's corrections, with their storage.
#[derive(Debug)]
pub(crate) struct Corrections {
    halo: Halo,
    impulses: Impulses,
    /// Constraints of edges.
    rated: Vec<Constraint>,
    stretched: Stretched,
}

/// What corrections read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Correcting<'a> {
    pub(crate) world: &'a World,
    pub(crate) ownership: &'a Ownership,
    pub(crate) plan: &'a HaloPlan,
    pub(crate) assembly: &'a Assembly,
    pub(crate) bodies: &'a BodyResponse,
    /// What pins do in the part.
    pub(crate) prescribed: &'a [PrescribedMotion],
    /// Edges whose change of length is limited, and to which share in a part of a step.
    pub(crate) edges: Option<(&'a Edges, f64)>,
    /// Positions at the start of the part, with halo.
    pub(crate) x: &'a [DVec3],
    /// Length of the part in s.
    pub(crate) dt: f64,
    pub(crate) cost_model: &'a CostModel,
    /// The work of this rank's vertices in the solve.
    pub(crate) weight: u64,
}

/// Constraints that pushed in the first pass, of those whose first vertex the rank owns, and what it took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Pushed {
    pub(crate) contacts: u64,
    pub(crate) triangles: u64,
    pub(crate) edges: u64,
    /// Passes, rounds in them, and rounds after which ranks asked each other how far they are.
    pub(crate) passes: u32,
    pub(crate) rounds: u32,
    pub(crate) looks: u32,
    /// Passes that ended with constraints that had not settled, and by how much the worst of these still asked for another rate, in m/s.
    pub(crate) unsettled: u32,
    pub(crate) lacking: f64,
    /// Time spent in rounds.
    pub(crate) rounds_time: Duration,
}

impl Corrections {
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
        let (world, dt) = (with.world, with.dt);
        let settings = &world.scene().contact;
        let owned = with.plan.owned();
        let me = comm.rank().index();

        self.impulses.clear(owned.clone());
        let friction = |c: &Contact| {
            if c.id.kind <= PairKind::EdgeEdge {
                settings.self_friction
            } else {
                world.friction()[c.id.body as usize]
            }
        };
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
        let contact_constraints = self.impulses.constraints().len();

        let mut pushed = Pushed::default();
        for pass in 0..PASSES {
            self.halo.start(comm, v)?;
            self.halo.finish(comm, v)?;
            let weight = with.weight;
            with.cost_model.charge(comm, Work::Response { weight });
            self.impulses.truncate(contact_constraints);
            let (x, ends) = (with.x, &*v);
            let triangles = (world.model(), with.assembly);
            self.stretched.find(triangles, (x, ends), dt, pass > 0);
            self.impulses.extend(self.stretched.constraints().copied());
            let strain_constraints = contact_constraints..self.impulses.constraints().len();
            if let Some((edges, limit)) = with.edges {
                self.rated.clear();
                edges.push_constraints(limit, (x, ends), dt, &mut self.rated);
                self.impulses.extend(self.rated.iter().copied());
            }
            self.impulses.begin();
            let exchange = ConstraintExchange::new(&self.impulses, with.ownership, me);
            self.enter(with, v);
            exchange.enter(comm, &mut self.impulses)?;
            self.impulses.survey();
            pushed.passes += 1;
            let began = comm.now();
            let settled = SETTLED * settings.thickness / dt;
            let impulses = &mut self.impulses;
            let mut before = f64::INFINITY;
            let mut at_once = false;
            let mut has_settled = false;
            for round in 1..=settings.iterations {
                exchange.refresh(comm, impulses)?;
                let worst = impulses.round();
                let contacts = contact_constraints as u64;
                with.cost_model
                    .charge(comm, Work::ImpulseRound { contacts });
                pushed.rounds += 1;
                if round % LOOK_EVERY == 0 {
                    pushed.looks += 1;
                    let worst = all_reduce(comm, worst, f64::max)?;
                    if worst <= settled {
                        has_settled = true;
                        at_once = round == LOOK_EVERY;
                        break;
                    }
                    if worst > before {
                        impulses.begin_anew();
                    }
                    before = worst;
                }
            }
            pushed.rounds_time += comm.now().saturating_sub(began);
            if !has_settled {
                pushed.unsettled += 1;
                // What the last look saw; nobody has looked if there may be fewer rounds than that takes.
                pushed.lacking = pushed
                    .lacking
                    .max(if before.is_finite() { before } else { 0.0 });
            }
            for (slot, &vertex) in self.impulses.vertices().iter().enumerate() {
                if owned.contains(&(vertex as usize)) {
                    v[vertex as usize - owned.start] = self.impulses.velocity(slot);
                }
            }
            let counted =
                |constraint: &Constraint| owned.contains(&(constraint.vertices[0] as usize));
            let count = |constraints: std::ops::Range<usize>| {
                let pushing = self
                    .impulses
                    .constraints()
                    .iter()
                    .zip(self.impulses.pushing());
                let of_kind = pushing.skip(constraints.start).take(constraints.len());
                of_kind
                    .filter(|(constraint, pushed)| *pushed && counted(constraint))
                    .count() as u64
            };
            if pass == 0 {
                pushed.contacts = count(0..contact_constraints);
                let rate_constraints = strain_constraints.end..self.impulses.constraints().len();
                pushed.triangles = count(strain_constraints);
                pushed.edges = count(rate_constraints);
            }
            if pass > 0 && at_once {
                break;
            }
        }
        Ok(pushed)
    }

    /// Velocity and mobility of the owned vertices that take part.
    ///
    /// What a body prescribed can be moved too: the constraints of its contacts keep it out. It may have to leave the body, for a layer that comes between them or for
    /// cloth that is pushed together and has to rise; were it held, constraints would ask of others what those cannot give. What friction prescribed resists
    /// along the body.
    fn enter(&mut self, with: &Correcting<'_>, v: &[DVec3]) {
        let owned = with.plan.owned();
        let masses = with.world.model().masses();
        for slot in 0..self.impulses.vertices().len() {
            let vertex = self.impulses.vertices()[slot] as usize;
            if owned.contains(&vertex) {
                let mobility = DMat3::from_diagonal(DVec3::splat(1.0 / masses[vertex]));
                self.impulses.place(slot, v[vertex - owned.start], mobility);
            }
        }
        for &(vertex, pin) in with.world.pins().of(&owned) {
            if let Some(slot) = self.impulses.slot(vertex) {
                let free = with.prescribed[pin as usize].free;
                let mobility = free * (1.0 / masses[vertex as usize]);
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
