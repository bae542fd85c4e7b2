//! The facts about a simulation that is about to take a step, for a profile of that step.
//!
//! A profile makes the tests of the next step several times for the time that they take, before the
//! step is taken. Nothing here changes the state: a step that was probed gives the same result as
//! one that was not. All of it is for a rank that is alone.

use std::time::Duration;

use weft_balance::cost::TestCost;

use crate::collide::{Contact, Geometry, Snapshot, Volumes};
use crate::step::contact::contacts::Batch;
use crate::step::context::Context;
use crate::step::simulation::Simulation;
use crate::step::world::World;

/// How long it took to deal with the contacts that tests have found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ContactTimes {
    /// Looking up the owners of their vertices, and collecting them.
    pub(crate) handing_out: Duration,
    /// Putting them in order.
    pub(crate) sorting: Duration,
}

impl<'w> Simulation<'w> {
    /// The scene that is simulated.
    pub(crate) fn world(&self) -> &'w World {
        self.world
    }

    /// Finds the length of the next substep and the velocities by which collisions are looked for.
    pub(crate) fn foresee_next(&mut self) {
        self.substep.choose_length(self.world);
        self.substep.place_pins(self.world);
        let at = Context {
            world: self.world,
            domain: &self.domain,
            substep: &self.substep,
        };
        self.detection.foresee(at, &self.state);
    }

    /// The snapshot in which the next substep looks for contacts, after [`Self::foresee_next`].
    pub(crate) fn next_snapshot<'a>(
        &'a self,
        geometry: &Geometry<'a>,
        volumes: &'a mut Volumes,
    ) -> Snapshot<'a> {
        let at = Context {
            world: self.world,
            domain: &self.domain,
            substep: &self.substep,
        };
        (self.detection).snapshot(at, &self.state, geometry, volumes)
    }

    /// Makes a forecast of what the last step's tests cost, when ranks would make one.
    pub(crate) fn note_costs(&mut self) {
        self.detection.balancer.note();
    }

    /// The forecast costs of the tests of the next step.
    pub(crate) fn known_costs(&self) -> &[TestCost] {
        self.detection.balancer.known()
    }

    /// Whether ranks make a new assignment before the next step.
    pub(crate) fn assigns_next(&self) -> bool {
        self.detection.balancer.is_due()
    }

    /// Hands out contacts and puts them in order as a step does, and forgets them again.
    pub(crate) fn time_contacts(
        &mut self,
        found: Vec<Vec<Contact>>,
        clock: &dyn Fn() -> Duration,
    ) -> ContactTimes {
        let team = self.team().clone();
        let began = clock();
        let batches = found.into_iter().map(|mut found| {
            found.retain(|c| self.domain.ownership.rank_of_vertex(c.vertices[0] as usize) == 0);
            Batch::new(&found)
        });
        let batches: Vec<Batch> = batches.collect();
        let out = clock();
        self.detection.contacts.take_in(batches, &team);
        let sorted = clock();
        self.detection.contacts.clear();
        ContactTimes {
            handing_out: out - began,
            sorting: sorted - out,
        }
    }

    /// How long factoring the coarse matrix of the solve and solving with it take, if there is one.
    pub fn time_coarse(&mut self, clock: &dyn Fn() -> Duration) -> Option<[Duration; 2]> {
        self.solver.cg.time_coarse(clock).map(|(_, times)| times)
    }
}
