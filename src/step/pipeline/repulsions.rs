//! Pushes by pairs of features of cloth, one after the other, in passes of one sweep each [SSIF09
//! §5].
//!
//! * **Inelastic**: what approaches is stopped, with friction by the impulse that this takes. One
//!   that is still farther apart than its distance may come as near as that in the substep: the
//!   paper stops nothing there, and has fast cloth go past it into its certification.
//! * **Elastic**: what lacks its distance is pushed apart by a spring of `contact.repulsion` (N/m)
//!   for the length of the substep, so that it gains a tenth of what it lacks at most. That moves
//!   vertices and changes no velocity.
//!
//! An impulse is by the mass that the pair moves, whatever the masses of its vertices: the paper
//! gives it for equal ones. The order is that of [colours](crate::step::response::gauss_seidel):
//! vertices and faces, edges, then vertices and bodies, which would be pushed into these otherwise.
//! Each impulse within cloth keeps momentum.
//!
//! * \[SSIF09\] Selle, Su, Irving, Fedkiw: Robust high-resolution cloth using parallelism,
//!   history-based collisions, and accurate friction.

use glam::DVec3;
use weft_balance::cost_model::Work;
use weft_runtime::comm::{Comm, CommError};

use super::history::Near;
use crate::collide::Contact;
use crate::heap_bytes::counts_heap;
use crate::step::context::Context;
use crate::step::response::body_response::{BodyResponse, least_rate};
use crate::step::response::constraint_exchange::{ConstraintExchange, ExchangePlan};
use crate::step::response::corrections::enter;
use crate::step::response::gauss_seidel::{Effort, Owners, Sweeps};
use crate::step::response::{Constraint, Impulses};
use crate::team::Team;

/// The share of what a pair lacks that it gains in a substep at most.
const SHARE: f64 = 0.1;

/// A rank's pushes, with their storage.
#[derive(Debug)]
pub(crate) struct Repulsions {
    impulses: Impulses,
    sweeps: Sweeps,
    exchange: ConstraintExchange,
    /// The lengths in m by which the pairs lack their distance.
    lacks: Vec<f64>,
    /// The messages by which velocities were taken from their owners.
    messages: u64,
}

counts_heap!(Repulsions: impulses, sweeps, exchange, lacks; without messages);

impl Repulsions {
    /// The pushes of a rank, by all threads of its team.
    pub(crate) fn with_team(team: &Team) -> Self {
        Self {
            impulses: Impulses::with_team(team),
            sweeps: Sweeps::default(),
            exchange: ConstraintExchange::default(),
            lacks: Vec::new(),
            messages: 0,
        }
    }

    /// Begins with the pairs of a substep, and with vertices at bodies. `v` are velocities of owned
    /// vertices in m/s. Collective.
    pub(crate) fn begin<'c>(
        &mut self,
        comm: &mut dyn Comm,
        at: Context<'_>,
        near: Near,
        touching: impl Iterator<Item = &'c Contact>,
        (bodies, v): (&BodyResponse, &[DVec3]),
    ) -> Result<(), CommError> {
        let (ownership, me, dt) = (&at.domain.ownership, comm.rank().index(), at.substep.dt);
        let (pairs, faces) = (near.constraints.len(), near.faces);
        let impulses = &mut self.impulses;
        self.lacks = near.lacks;
        impulses.clear(at.domain.owned());
        impulses.extend(near.constraints);
        impulses.extend(touching.map(|c| Constraint {
            least_rate: least_rate(c, dt),
            ..Constraint::of_contact(c, 0.0, dt)
        }));
        let all = impulses.constraints().len();
        impulses.begin();
        self.exchange = ConstraintExchange::new(ExchangePlan::default(), impulses, ownership, me);
        self.enter(comm, at, bodies, v)?;
        let vertices = self.impulses.vertices().iter();
        let owners: Vec<u32> = vertices
            .map(|&vertex| ownership.rank_of_vertex(vertex as usize) as u32)
            .collect();
        let owners = Owners {
            me,
            ranks: comm.size(),
            of: &owners,
        };
        let kinds = [0..faces, faces..pairs, pairs..all];
        (self.sweeps).begin(comm, &self.impulses.swept(), &kinds, owners, [])
    }

    /// The work of its sweeps since this was asked last, with all messages.
    pub(crate) fn take_effort(&mut self) -> Effort {
        let mut effort = self.sweeps.take_effort();
        effort.messages += std::mem::take(&mut self.messages);
        effort
    }

    /// Enters velocities of owned vertices, in m/s, and takes those of others from their owners.
    fn enter(
        &mut self,
        comm: &mut dyn Comm,
        at: Context<'_>,
        bodies: &BodyResponse,
        v: &[DVec3],
    ) -> Result<(), CommError> {
        enter(&mut self.impulses, at, bodies, v, 0);
        self.exchange.enter(comm, &mut self.impulses)?;
        self.messages += self.exchange.messages();
        self.impulses.all_placed();
        Ok(())
    }

    /// Stops what approaches, with friction or without. Returns how many pairs pushed whose first
    /// vertex the rank owns. Collective.
    pub(crate) fn stop(
        &mut self,
        comm: &mut dyn Comm,
        at: Context<'_>,
        (bodies, v): (&BodyResponse, &mut [DVec3]),
        rubs: bool,
    ) -> Result<u64, CommError> {
        self.enter(comm, at, bodies, v)?;
        self.sweeps.forget_pushes();
        (self.sweeps).sweep_by(
            comm,
            &mut self.impulses.swept(),
            |_, constraint, movers, slots, push| {
                let friction = if rubs { constraint.friction } else { 0.0 };
                let constraint = Constraint {
                    friction,
                    ..*constraint
                };
                constraint.satisfy(movers, slots, push)
            },
        )?;
        self.leave(comm, at, v);
        let (owned, constraints) = (at.domain.owned(), self.impulses.constraints());
        let pushed = self.sweeps.pushes().filter(|&(number, push)| {
            let number = number as usize;
            let first = constraints[number].vertices[0] as usize;
            push.normal > 0.0 && number < self.lacks.len() && owned.contains(&first)
        });
        Ok(pushed.count() as u64)
    }

    /// Pushes apart what lacks its distance. Collective.
    pub(crate) fn push_apart(
        &mut self,
        comm: &mut dyn Comm,
        at: Context<'_>,
        (bodies, v): (&BodyResponse, &mut [DVec3]),
    ) -> Result<(), CommError> {
        self.enter(comm, at, bodies, v)?;
        self.sweeps.forget_pushes();
        let (lacks, dt) = (&self.lacks, at.substep.dt);
        let stiffness = at.world.scene().contact.repulsion;
        (self.sweeps).sweep_by(
            comm,
            &mut self.impulses.swept(),
            |number, constraint, movers, slots, push| match lacks.get(number) {
                Some(&lack) if lack > 0.0 => {
                    let spring = [SHARE * lack / dt, dt * stiffness * lack];
                    (constraint.spring(movers, slots, spring), 0.0)
                }
                Some(_) => (DVec3::ZERO, 0.0),
                // Bodies keep out what others push at them.
                None => constraint.satisfy(movers, slots, push),
            },
        )?;
        self.leave(comm, at, v);
        Ok(())
    }

    /// Takes the velocities of owned vertices.
    fn leave(&self, comm: &mut dyn Comm, at: Context<'_>, v: &mut [DVec3]) {
        let owned = at.domain.owned();
        let contacts = self.impulses.constraints().len() as u64;
        (at.domain.cost_model).charge(comm, Work::ImpulseRound { contacts });
        for (slot, &vertex) in self.impulses.vertices().iter().enumerate() {
            if owned.contains(&(vertex as usize)) {
                v[vertex as usize - owned.start] = self.impulses.velocity(slot);
            }
        }
    }
}
