//! What cloth is made of: masses, in-plane elasticity, bending, and the forces and stiffness they give.
//!
//! Data flows from a triangle mesh at rest to a [`ClothModel`] (global, the same on every rank), and
//! from positions to forces and stiffness blocks. The in-plane part is the corotational linear finite
//! element of \[EKS03\] ([`membrane`]), bending is the quadratic model of \[BWHZG06\] ([`bending`]).
//!
//! Not here: who owns which vertex, time steps, contacts.
//!
//! * \[EKS03\] Etzmuß, Keckeisen, Straßer: A fast finite element solution for cloth modelling.
//! * \[BWHZG06\] Bergou, Wardetzky, Harmon, Zorin, Grinspun: A quadratic bending model for inextensible
//!   surfaces.

pub mod bending;
pub mod membrane;
mod model;
#[cfg(test)]
pub(crate) use model::tests;

pub use model::{ClothModel, PhysicsError};
