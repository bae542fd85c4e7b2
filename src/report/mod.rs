//! What a run cost, for people: the phase table, the efficiencies, the balance of the collision tests; and two
//! runs side by side.

mod balance;
mod compare;
mod phases;

pub use balance::Balance;
pub use compare::{Comparison, compare};
pub use phases::{Phase, PhaseTable};
