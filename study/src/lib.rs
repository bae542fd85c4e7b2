//! Studies of load balancing, without physics.
//!
//! A run is *recorded*: the shape of its collision tests, node by node, with what each kind of test
//! costs, and what the other phases of a step cost and send. The record is *replayed* on any number
//! of virtual ranks: the collision phase by the real scheduler of [`weft_runtime`] with a real
//! policy, over tasks that walk recorded trees and charge recorded costs; the data-parallel phases,
//! where nothing is decided, by computing clocks. A *sweep* replays one record at many points
//! (ranks, policies, networks, seeds), keeps what it has done, and makes tables and plots of it.
//!
//! | module | holds |
//! |---|---|
//! | [`shape`] | trees of tests: a nibble a test on disk, four bytes in memory |
//! | [`record`] | the file: header, steps, prices; versioned, checksummed, streamed |
//! | [`layout`] | which rank owns, computes and sends what |
//! | [`replay`] | a recorded step on virtual ranks |
//! | [`warm_up`] | what steps before those that count leave to them |
//! | [`bounds`] | what no schedule can beat |
//! | [`policy_specification`] | policies as studies specify them |
//! | [`plan`] | the points of a sweep |
//! | [`directory`] | to which study a directory belongs |
//! | [`sweep`] | doing them, resumably |
//! | [`stats`] | mean, spread, confidence |
//! | [`tables`] | CSV and JSON |
//! | [`chart`] | plots as SVG and PNG |
//! | [`synthetic`] | records of cloths that nobody has simulated |
//!
//! The rules by which tests are assigned are those of [`weft_balance`], the same as in a run. The
//! crate knows neither cloth nor geometry: a patch is a number of vertices, a contact a number of
//! bytes.

pub mod bounds;
pub mod chart;
pub mod coarse;
pub mod directory;
pub mod layout;
pub mod plan;
pub mod policy_specification;
pub mod record;
pub mod replay;
pub mod shape;
pub mod stats;
pub mod sweep;
pub mod synthetic;
pub mod tables;
pub mod warm_up;

/// The phases of a step, in order.
pub const PHASES: [&str; 5] = ["collide", "assemble", "solve", "respond", "share"];
