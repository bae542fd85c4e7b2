//! The inputs of a system beside its elements, and the faults that these can have.

use glam::DVec3;

use crate::physics::air::Air;
use crate::physics::element::Times;

/// The loads and times of a system.
#[derive(Clone, Debug)]
pub(crate) struct Load<'a> {
    /// The times by which forces and positions are multiplied.
    pub(crate) times: Times,
    /// The simulated time in s of the properties of cloth that change in time.
    pub(crate) time: f64,
    /// The acceleration by gravity in m/s².
    pub(crate) gravity: DVec3,
    /// The air around the cloth.
    pub(crate) air: Air,
    /// The velocities v̂ − v of owned vertices in m/s, if they differ.
    pub(crate) toward: Option<&'a [DVec3]>,
}

/// A triangle that has collapsed or is not finite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Collapsed {
    /// Its number in the numbering of the patch tree.
    pub(crate) triangle: u32,
}
