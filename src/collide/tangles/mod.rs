//! Tangles: cloth that starts through cloth, and what may pass until it is free.
//!
//! A step that is certified in full keeps a crossing for ever: an edge leaves a face only past one
//! of its own ends or past a side of the face, and no vertex passes a face and no edge an edge. So
//! the pairs of features near the crossings of a start are let pass, and all others are certified
//! as ever. The vertices of these features are the *kept set*, in *tangles* of two *sides* each: a
//! pair may pass if all vertices of one feature are of one side of a tangle and all vertices of the
//! other feature are of its other side ([`Kept::lets_pass`]).
//!
//! | file | does |
//! |---|---|
//! | `kept` | says which vertices are kept, and which pairs they let pass |
//! | `contours` | joins crossings of edges and faces to the curves in which surfaces cross |
//! | `nudge` | displaces positions by very little, so that nothing only touches |
//! | `start` | finds the tangles of a start, and which part of either side is through the other |
//! | `shrink` | takes out what is free again: the set only ever shrinks |
//! | `pull` | finds the direction in which the sides of a tangle come apart |
//!
//! **Theorem.** Let every crossing of an edge and a face have a vertex of each on different sides
//! of a tangle, and let a step take no pair of features through each other that the kept set does
//! not let pass. Then so it is after the step. *Proof.* On continuous displacements an edge begins
//! to pass through a face only where one of its ends comes to the face, or where it comes to a side
//! of it. That is a vertex and a face, or two edges, and by assumption the kept set lets them pass.
//! So a vertex of the edge is of one side of a tangle, and a vertex of the face of the other.
//!
//! Global intersection analysis \[BWK03\] says which part is through: a curve that cuts a surface
//! in two has a smaller side. Where it does not, the crossings and one ring around them are kept,
//! and the gradient of the length of the curve tells the way out \[VMT06\].
//!
//! * \[BWK03\] Baraff, Witkin, Kass: Untangling cloth.
//! * \[VMT06\] Volino, Magnenat-Thalmann: Resolving surface collisions through intersection contour
//!   minimization.

mod contours;
mod kept;
mod nudge;
mod pull;
mod shrink;
mod start;
#[cfg(test)]
mod tests;

pub use kept::{Kept, Member};
pub use pull::directions;
pub use shrink::Tangled;
pub use start::tangles_of;
