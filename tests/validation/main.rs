//! Validation: scenes whose answers are known from mechanics, each with its source.
//!
//! One module a case. Its tests hold the answer to a stated tolerance, its `curves` are what the
//! book shows of it; `cargo run --example validation` draws them into `docs/src/validation`. To add
//! a case, write its module and name it in [`all`].
#![allow(
    dead_code,
    missing_debug_implementations,
    missing_docs,
    unreachable_pub,
    reason = "tests use the tests, the example the curves"
)]

#[cfg(test)]
mod balloon;
mod bending_springs;
mod bias;
mod biaxial;
mod buckling;
mod cantilever;
mod catenary;
pub mod curve;
mod damping;
mod drum;
mod dynamics;
mod elastica;
mod hanging;
mod incline;
mod newton;
mod orientation;
mod patch;
#[cfg(test)]
mod rest;
mod rest_angles;
mod rig;
#[cfg(test)]
mod rolling;
mod shear;
mod sliding;
mod springs;
mod standing_wave;
mod strain_limit;
mod strip;
mod terminal;
mod tumbling;
mod uniaxial;

/// The name of a validation case's pictures, and its curves.
pub type Case = (&'static str, fn() -> Vec<curve::Curve>);

/// Every validation case.
pub fn all() -> Vec<Case> {
    vec![
        ("patch", patch::curves),
        ("uniaxial", uniaxial::curves),
        ("biaxial", biaxial::curves),
        ("shear", shear::curves),
        ("bias", bias::curves),
        ("springs", springs::curves),
        ("hanging", hanging::curves),
        ("strain-limit", strain_limit::curves),
        ("catenary", catenary::curves),
        ("orientation", orientation::curves),
        ("cantilever", cantilever::curves),
        ("buckling", buckling::curves),
        ("bending-springs", bending_springs::curves),
        ("terminal", terminal::curves),
        ("damping", damping::curves),
        ("standing-wave", standing_wave::curves),
        ("drum", drum::curves),
        ("strip", strip::curves),
        ("tumbling", tumbling::curves),
        ("newton", newton::curves),
    ]
}
