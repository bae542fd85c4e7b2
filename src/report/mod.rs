//! What a run cost, for people: the phase table, the efficiencies, the balance of the collision tests; and how
//! well its scene is cut.

mod balance;
mod partition;
mod phases;

pub use balance::Balance;
pub use partition::{PartitionComparison, partition_picture};
pub use phases::{Phase, PhaseTable};
