//! What a run cost, for people: the phase table, the efficiencies, the balance of the collision tests.

mod balance;
mod phases;

pub use balance::Balance;
pub use phases::{Phase, PhaseTable};
