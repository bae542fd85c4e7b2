//! The cost of a run, for people: the phase table, the efficiencies, the balance of the collision
//! tests; how well its scene is cut; and two runs side by side. The reports after a run, also those
//! of its traces, are in `weft_report`.

mod balance;
mod compare;
mod frame;
mod partition;
mod phases;

pub use balance::Balance;
pub use compare::{Comparison, compare};
pub use frame::last_frame;
pub use partition::{PartitionComparison, partition_picture};
pub use phases::{Phase, PhaseTable};
