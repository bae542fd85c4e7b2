//! Who makes which collision tests: what tests cost, and an assignment of them to ranks that follows it.
//!
//! Known here: neither cloth nor geometry, and no files.

pub mod assignment;
pub mod forecast;
pub mod part;
pub mod prices;
pub mod ready;
pub mod separation;
