//! The physics of cloth: masses, in-plane elasticity, bending, and the forces and stiffness they
//! give.
//!
//! Data flows from a triangle mesh at rest to a [`ClothModel`] (global, the same on every rank),
//! and from positions to forces and stiffness blocks.
//!
//! | file | what |
//! |---|---|
//! | [`membrane`] | in the plane: corotational linear elements \[EKS03\], isotropic or woven |
//! | [`spring`] | in the plane and against bending: springs \[SSIF09\] |
//! | [`bending`] | the quadratic model of \[BWHZG06\] for flat cloth |
//! | [`fold`] | the angle between triangles, with a rest angle \[Bridson 2003, §1.4\] |
//! | [`plate`] | the same by the curvature of triangles, for any weave |
//! | [`shell`] | that with rest angles |
//! | [`rigidity`] | prefactors of hinges and folds from the mesh |
//! | `relaxation` | how much softer cloth is than its elements |
//! | `at_rest` | the shape at rest, of a mesh or a flat pattern |
//! | `element` | what elements of all kinds add to a system |
//! | `bending_of_mesh` | which of these a cloth has |
//! | [`air`], [`wind`] | drag |
//! | [`stitch`] | springs that pull seams together |
//! | `at_time` | what of cloth changes in time |
//! | `stiffest` | the fastest motion, which bounds explicit steps |
//!
//! Not here: who owns which vertex, time steps, contacts.
//!
//! * \[EKS03\] Etzmuß, Keckeisen, Straßer: A fast finite element solution for cloth modelling.
//! * \[BWHZG06\] Bergou, Wardetzky, Harmon, Zorin, Grinspun: A quadratic bending model for
//!   inextensible surfaces.
//! * \[SSIF09\] Selle, Su, Irving, Fedkiw: Robust high-resolution cloth using parallelism,
//!   history-based collisions, and accurate friction.

pub mod air;
mod archived;
mod at_rest;
mod at_time;
pub mod bending;
mod bending_of_mesh;
pub(crate) mod element;
pub mod fold;
pub mod membrane;
pub(crate) mod membrane_lanes;
mod mesh_edges;
mod model;
pub mod plate;
mod relaxation;
pub mod rigidity;
pub mod shell;
pub mod spring;
mod stiffest;
pub mod stitch;
pub mod wind;
#[cfg(test)]
pub(crate) use model::tests;

pub(crate) use at_rest::AtRest;
pub(crate) use at_time::AtTime;
pub use bending_of_mesh::{BendingInfo, UNEVEN, is_uneven};
pub use model::{ClothModel, PhysicsError, Quadratic};
pub use stiffest::Stiffest;
pub use stitch::Stitch;
