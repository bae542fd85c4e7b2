//! The linear system of a substep: which elements touch which rows, and what they add there.
//!
//! | module | holds |
//! |---|---|
//! | `assembly` | the system on the rows that a rank owns |
//! | `elements` | the elements that touch a run of rows |
//! | `triangles`, `bending` | the rows that triangles and quadratic bending make |
//! | `incidence` | which elements touch which rows |
//! | `local_vertices` | the vertices that a run of rows reads |
//! | `newton` | systems one after the other, until the equations are met |

pub(super) mod assembly;
mod bending;
mod elements;
mod incidence;
mod local_vertices;
mod newton;
mod triangles;
