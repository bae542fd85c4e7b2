//! Questions about a simulation that is at rest between two steps: nothing here changes the state.
//!
//! | module | holds |
//! |---|---|
//! | `breach` | why strain goes beyond its limit |
//! | `crossings` | which pairs cross, counted by all ranks |
//! | `ledger` | what changed momentum and energy in a step |
//! | `probe` | what a profile of the next step reads |

pub(super) mod breach;
pub(super) mod crossings;
pub(super) mod ledger;
mod probe;
