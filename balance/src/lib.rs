//! Who makes which collision tests: what tests cost, and an assignment of them to ranks that follows it.
//!
//! Known here: neither cloth nor geometry, and no files.

pub mod assignment;
pub mod bound_owner;
pub mod cost;
pub mod forecast;
pub mod part;
pub mod preparation;
pub mod prices;
pub mod separation;
pub mod work;
