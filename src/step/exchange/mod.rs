//! State that travels between ranks.
//!
//! | module | holds |
//! |---|---|
//! | `new_state` | the state at the end of a substep, for every rank |
//! | `own_values` | the values of a rank's vertices that frames show |
//! | `patch_state` | the state of a patch between two steps, as its owner keeps it |
//! | `seen` | what ranks find of the motion of their own vertices, and agree on |
//! | `subscriptions` | the vertices of other ranks whose state a rank is sent, if not all |
//! | `saved_state` | the state between two steps, gathered for a checkpoint and restored from it |

pub(super) mod new_state;
pub(super) mod own_values;
pub(super) mod patch_state;
pub(super) mod saved_state;
pub(super) mod seen;
pub(super) mod subscriptions;
