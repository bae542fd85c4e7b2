//! The assignment of collision tests to ranks, and what that costs.
//!
//! A top-level test is a patch of cloth against itself, against another patch, or against a body.
//! If the owner of a patch made all of its tests, a rank whose patches lie in many folds would keep
//! all others waiting. So ranks report to each other what tests have cost, make the same forecast
//! of these reports, and divide all tests among them by it. Whatever the assignment, the trajectory
//! is the same to the bit.
//!
//! | module | holds |
//! |---|---|
//! | [`cost`] | what top-level tests cost, as ranks report it to each other |
//! | [`work`] | the unit of these costs, and what takes how much of it |
//! | [`forecast`] | what the tests of the next step will cost |
//! | [`assignment`] | which rank makes which tests, and how that follows the costs |
//! | [`part`] | a test that several ranks make together |
//! | [`bound_owner`] | which rank makes the bounding volume of a patch for all |
//! | [`preparation`] | what a rank prepares of a patch before it tests it |
//! | [`separation`] | which rank makes the separation bounds of which tiles |
//! | [`prices`] | what a unit of each kind of work costs on a machine, in ns |
//! | [`cost_model`] | the machine that a step runs on, as far as its clock is modelled |
//!
//! The crate knows neither cloth nor geometry: a patch is a number of vertices and nodes. It reads
//! no files and no clock. Records of runs and replays of them are in `weft-study`, which uses it,
//! as the time step does.

pub mod assignment;
pub mod bound_owner;
pub mod cost;
pub mod cost_model;
pub mod forecast;
pub mod part;
pub mod preparation;
pub mod prices;
pub mod separation;
pub mod work;

/// The bytes of an array of elements that own nothing on the heap, by its capacity.
fn array_bytes<T: Copy>(array: &Vec<T>) -> usize {
    array.capacity() * size_of::<T>()
}
