//! Contacts: how ranks find them together, and how each of them keeps those of its vertices.
//!
//! | module | holds |
//! |---|---|
//! | `detection` | the stage, with what it keeps between substeps |
//! | `geometry` | what the tests of all ranks read, made in parts and shared |
//! | `balancer` | which tests a rank makes |
//! | `detect` | the tests as tasks |
//! | `lending` | the state that stolen tests read, where ranks know only some vertices |
//! | `contact_post`, `message` | the way of contacts to the owners of their vertices |
//! | `contacts`, `layer_contact` | the contacts of a rank, in order; those of layers are small |

pub(super) mod balancer;
mod contact_post;
pub(super) mod contacts;
pub(super) mod detect;
pub(super) mod detection;
pub(super) mod geometry;
pub(super) mod layer_contact;
pub(super) mod lending;
pub(super) mod message;
