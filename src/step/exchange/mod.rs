//! State that travels between ranks.
//!
//! | module | holds |
//! |---|---|
//! | `new_state` | the state at the end of a substep, for every rank |
//! | `saved_state` | the state between two steps, gathered for a checkpoint and restored from it |

pub(super) mod new_state;
pub(super) mod saved_state;
