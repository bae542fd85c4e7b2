//! The substep that is being taken: which one it is, how long it is, and what pins do in it.
//!
//! A step has one part, or several where it is cut. A part has one substep, or several where pairs
//! are found once for all of them; then a part is a substep itself to what looks at all of it.

use super::integrate::substep_controller::SubstepController;
use super::world::prescribed_motion::PrescribedMotion;
use super::world::{Friction, World};
use crate::heap_bytes::counts_heap;
use crate::scene::Integrator;

/// The substep that is being taken.
#[derive(Clone, Debug)]
pub(crate) struct Substep {
    /// The number of steps that were taken before.
    pub(crate) steps: u64,
    /// The rule for the lengths of parts.
    pub(crate) controller: SubstepController,
    /// The number of the substep within its part.
    within: u32,
    /// The length in s.
    pub(crate) dt: f64,
    /// The motion that each pin prescribes in it.
    pub(crate) prescribed: Vec<PrescribedMotion>,
    /// Whether pins hold each vertex in it; empty where these are always the same.
    held: Vec<bool>,
    /// The friction of each pair in it, if that changes in time.
    pub(crate) friction: Option<Friction>,
}

counts_heap!(Substep: prescribed, held, friction; without steps, controller, within, dt);

impl Substep {
    /// The first substep of a run.
    pub(crate) fn new(world: &World) -> Self {
        let time = &world.scene().time;
        Self {
            steps: 0,
            controller: SubstepController::new(time, &world.scene().contact),
            within: 0,
            dt: time.step,
            prescribed: Vec::new(),
            held: Vec::new(),
            friction: None,
        }
    }

    /// The number of its step, from 1.
    pub(crate) fn number(&self) -> u64 {
        self.steps + 1
    }

    /// Becomes the whole of the part that the controller wants.
    pub(crate) fn choose_length(&mut self, world: &World) {
        self.within = 0;
        self.dt = self.controller.length(world.scene().time.step);
    }

    /// Becomes one of the substeps of the part that the controller wants.
    pub(crate) fn enter(&mut self, world: &World, within: u32) {
        self.choose_length(world);
        self.within = within;
        self.dt /= f64::from(self.controller.substeps_of_part());
    }

    /// The simulated time in s at its start.
    pub(crate) fn time(&self, world: &World) -> f64 {
        let start = (self.steps as f64 + self.controller.passed()) * world.scene().time.step;
        match self.within {
            0 => start,
            within => start + f64::from(within) * self.dt,
        }
    }

    /// The simulated time in s at which the next part begins, if this one succeeds.
    pub(crate) fn next_time(&self, world: &World) -> f64 {
        let mut controller = self.controller;
        controller.succeed();
        let steps = self.steps + u64::from(controller.passed() == 0.0);
        (steps as f64 + controller.passed()) * world.scene().time.step
    }

    /// The simulated time in s of the loads that act in it.
    pub(crate) fn load_time(&self, world: &World) -> f64 {
        load_time(world, self.time(world), self.dt)
    }

    /// Finds the motion that pins prescribe in it, and the friction of pairs.
    pub(crate) fn place_pins(&mut self, world: &World) {
        let start = self.time(world);
        let times = [start, start + self.dt];
        world.pins().place(times, &mut self.prescribed);
        let all = world.pinned().len();
        (world.pins()).tell_held(&self.prescribed, all, &mut self.held);
        self.friction = world.friction().then(world.scene(), self.load_time(world));
    }

    /// Whether pins hold each vertex in it.
    pub(crate) fn pinned<'a>(&'a self, world: &'a World) -> &'a [bool] {
        if self.held.is_empty() {
            world.pinned()
        } else {
            &self.held
        }
    }
}

/// The simulated time in s at which loads are taken that change in time, in a substep of `dt` s
/// from a time on: its middle, by which the momentum that they give is of second order, or its end
/// with BDF2, which is of second order where forces are those of the end.
pub(crate) fn load_time(world: &World, start: f64, dt: f64) -> f64 {
    match world.scene().solver.integrator {
        Integrator::Bdf2 => start + dt,
        Integrator::Euler | Integrator::Newmark | Integrator::Central => start + 0.5 * dt,
    }
}
