//! States between which benches of whole steps go: a scene's start, and its sheet when draped.

use glam::DVec3;
use weftwork::step::{Simulation, World};

/// Simulated time in s at which the sheet of either scene of the 2006 paper lies on the sphere, and
/// on the floor if there is one.
pub(crate) const DRAPED: f64 = 0.4;

/// Positions in m and velocities in m/s of all vertices.
pub(crate) struct State(Vec<DVec3>, Vec<DVec3>);

impl State {
    /// The state in which a scene begins.
    pub(crate) fn start(world: &World) -> Self {
        Self(world.model().start().to_vec(), world.start_velocities())
    }

    /// The state that a simulation has reached.
    pub(crate) fn reached(simulation: &Simulation<'_>) -> Self {
        Self(
            simulation.positions().to_vec(),
            simulation.velocities().to_vec(),
        )
    }

    /// Puts a simulation into this state.
    pub(crate) fn enter(&self, simulation: &mut Simulation<'_>) {
        let (x, v) = simulation.state_mut();
        x.copy_from_slice(&self.0);
        v.copy_from_slice(&self.1);
    }
}
