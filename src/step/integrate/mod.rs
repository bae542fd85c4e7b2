//! Integration in time: the equations of each method, and the lengths of substeps.

pub(super) mod substep_controller;
pub(super) mod time_integrator;
