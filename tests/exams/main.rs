//! Exams: scenes whose answers are known from mechanics, each with its source.
//!
//! One module an exam. Its tests hold the answer to a stated tolerance, its `curves` are what the book
//! shows of it; `cargo run --example exams` draws them into `docs/src/exams`. To add an exam, write its
//! module and name it in [`all`].
#![allow(
    dead_code,
    missing_debug_implementations,
    missing_docs,
    unreachable_pub,
    reason = "tests use the tests, the example the curves"
)]

pub mod curve;
mod drum;
mod dynamics;
mod rig;
mod standing_wave;
mod strip;
mod tumbling;
mod uniaxial;

/// Every exam: the name of its pictures, and its curves.
pub fn all() -> Vec<(&'static str, fn() -> Vec<curve::Curve>)> {
    vec![
        ("uniaxial", uniaxial::curves),
        ("standing-wave", standing_wave::curves),
        ("drum", drum::curves),
        ("strip", strip::curves),
        ("tumbling", tumbling::curves),
    ]
}
