//! The response to contacts and to strain that is too large: constraints and impulses.
//!
//! | module | holds |
//! |---|---|
//! | `responding` | the stages of the response |
//! | `body_response` | bodies: constraints in the solve, friction, a last clamp |
//! | `vertex_contact` | the contact of one vertex with bodies, by Coulomb's law |
//! | `corrections` | impulses after the solve, in passes |
//! | `impulses` | the rounds of one pass |
//! | `constraint` | one inequality between velocities, and how it is relaxed |
//! | `mobilities` | how vertices give way to impulses |
//! | `gauss_seidel` | sweeps of a pass: one constraint after the other, by colours |
//! | `constraint_graph` | which constraints touch which vertices |
//! | `graph_part` | the part of the graph that a thread works on |
//! | `resting` | contacts that have no constraint yet |
//! | `wake_up` | when constraints at rest are looked at again |
//! | `constraint_exchange` | velocities of vertices that constraints of several ranks touch |
//! | `strain_limit`, `edges` | triangles that stretch too far, and edges that change too fast |

pub(super) mod body_response;
mod constraint;
pub(super) mod constraint_exchange;
mod constraint_graph;
pub(super) mod corrections;
pub(super) mod edges;
pub(super) mod gauss_seidel;
mod graph_part;
mod impulses;
mod mobilities;
pub(super) mod responding;
mod resting;
pub(super) mod strain_limit;
mod vertex_contact;
mod wake_up;

pub(super) use constraint::Constraint;
pub(super) use impulses::Impulses;
