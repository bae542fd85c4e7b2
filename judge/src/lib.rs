//! An exact judge of cloth: whether features cross in any of a series of states, or pass through
//! each other on the straight ways between these.
//!
//! It is given plain arrays, triangles of cloths and bodies and their positions, and shares no code
//! with the program that made them: what that believes of its own collisions is not asked. All
//! decisions are exact for the numbers that are given, however close the features are: floating
//! point only decides where a bound of its rounding is proven.
//!
//! | file | what |
//! |---|---|
//! | `polynomial` | polynomials with whole coefficients, and signs at their roots |
//! | `way` | a vertex and a face, or two edges, on their way from state to state |
//! | `state` | an edge and a face in a state |
//! | `tree` | which triangles may meet |
//! | `surface` | triangles of cloths and bodies, with their features |
//! | `judging` | states one after the other, and what is found |
//! | `record` | the file of recorded states |
//!
//! It looks at each pair of features that share no vertex, both of cloth, or one of cloth and one
//! of a body. Two bodies are not judged against each other.

mod judging;
mod polynomial;
pub mod record;
mod state;
mod surface;
mod tree;
mod way;

pub use judging::{Finding, Judge, Passages, State, StateError, Verdict, What};
pub use state::pierces;
pub use surface::{Piece, Surface, SurfaceError};
pub use way::{Kind, Meeting, NotFinite, Position, Way, is_apart, meet};
