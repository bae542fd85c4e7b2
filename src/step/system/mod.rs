//! The linear system of a substep: which elements touch which rows, and what they add there.
//!
//! | module | holds |
//! |---|---|
//! | `linear_system` | matrix, right-hand side and constrained directions |
//! | `solver` | its solve |
//! | `newton` | systems one after the other, until the equations are met |
//! | `assembly` | how the rows that a rank owns are filled |
//! | `elements` | the elements that touch a run of rows |
//! | `triangles`, `bending` | the rows that triangles and quadratic bending make |
//! | `incidence` | which elements touch which rows |
//! | `local_vertices` | the vertices that a run of rows reads |
//! | `load`, `scratch` | loads and times; the memory of a thread |

pub(super) mod assembly;
mod bending;
mod elements;
mod incidence;
pub(super) mod linear_system;
pub(super) mod load;
mod local_vertices;
pub(super) mod newton;
mod scratch;
pub(super) mod solver;
mod triangles;
