//! Tests of the runtime's promises, on groups of tasks on ranks that are threads or virtual.
//!
//! One program: the scheduler is compiled once for all of them.

mod common;

mod blocks;
mod bounds;
mod cancel;
mod deaths;
mod failures;
mod known_answers;
mod limits;
mod nested;
mod own_policy;
mod posted;
mod scope;
mod virtual_time;
mod whole;
