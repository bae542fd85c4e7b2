//! The substep that is being taken: which one it is, how long it is, and what pins do in it.

use super::integrate::substep_controller::SubstepController;
use super::world::World;
use super::world::prescribed_motion::PrescribedMotion;

/// The substep that is being taken.
#[derive(Debug)]
pub(crate) struct Substep {
    /// The number of steps that were taken before.
    pub(crate) steps: u64,
    /// The rule for the lengths of substeps.
    pub(crate) controller: SubstepController,
    /// The length in s.
    pub(crate) dt: f64,
    /// The motion that each pin prescribes in it.
    pub(crate) prescribed: Vec<PrescribedMotion>,
}

impl Substep {
    /// The first substep of a run.
    pub(crate) fn new(world: &World) -> Self {
        let time = &world.scene().time;
        Self {
            steps: 0,
            controller: SubstepController::new(time),
            dt: time.step,
            prescribed: Vec::new(),
        }
    }

    /// The number of its step, from 1.
    pub(crate) fn number(&self) -> u64 {
        self.steps + 1
    }

    /// Takes the length that the controller wants.
    pub(crate) fn choose_length(&mut self, world: &World) {
        self.dt = self.controller.length(world.scene().time.step);
    }

    /// The simulated time in s at its start.
    pub(crate) fn time(&self, world: &World) -> f64 {
        (self.steps as f64 + self.controller.passed()) * world.scene().time.step
    }

    /// The simulated time in s at which the next one begins, if this one succeeds.
    pub(crate) fn next_time(&self, world: &World) -> f64 {
        let mut controller = self.controller;
        controller.succeed();
        let steps = self.steps + u64::from(controller.passed() == 0.0);
        (steps as f64 + controller.passed()) * world.scene().time.step
    }

    /// Finds the motion that pins prescribe in it.
    pub(crate) fn place_pins(&mut self, world: &World) {
        let start = self.time(world);
        let times = [start, start + self.dt];
        world.pins().place(times, &mut self.prescribed);
    }
}
