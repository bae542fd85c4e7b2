//! Distributed thread groups: fork, hyperfork and join-any over ranks that steal from each other.
//!
//! A *rank* is a process of a job, or a thread that plays one. Every rank calls [`scope`]; inside, it
//! *forks* tasks into thread *groups* and *joins* their results, whichever comes first. A running task may
//! *hyperfork* children into its own group and give part of its work away when it is asked to *split*.
//! Ranks that run idle steal tasks from others. A join ends when every task of the group, however many
//! hyperforks deep and wherever it ran, has finished and all its results were taken. This is the model
//! of DOTS as used by Thomaszewski and Blochinger (2006), section 4.2.
//!
//! ```
//! use serde::{Deserialize, Serialize};
//! use weft_runtime::comm::threads::launch;
//! use weft_runtime::{Context, Registry, ScopeOptions, Step, Task, scope};
//!
//! /// Counts the leaves of a binary tree, one task a node.
//! #[derive(Serialize, Deserialize)]
//! struct Node {
//!     height: u32,
//! }
//!
//! impl Task<()> for Node {
//!     const NAME: &'static str = "node";
//!     type Output = u64;
//!
//!     fn run(&mut self, _env: &(), cx: &mut Context<'_, (), u64>) -> Step<u64> {
//!         if self.height == 0 {
//!             return Step::Done(1);
//!         }
//!         for _ in 0..2 {
//!             cx.hyperfork(Node { height: self.height - 1 });
//!         }
//!         Step::Done(0)
//!     }
//! }
//!
//! let registry = Registry::new().with::<Node>();
//! let leaves = launch(3, |comm| {
//!     let (sum, _report) = scope(comm, &registry, &(), &ScopeOptions::default(), |s| {
//!         let group = s.group();
//!         s.fork(&group, Node { height: 6 })?;
//!         let mut sum = 0;
//!         while let Some(leaves) = s.join(&group)? {
//!             sum += leaves?;
//!         }
//!         Ok(sum)
//!     })?;
//!     Ok::<_, weft_runtime::ScopeError>(sum)
//! })?;
//! for sum in leaves {
//!     assert_eq!(sum?, 64);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The protocol is written up in the crate's `README.md`; the decisions are a pure state machine,
//! [`scheduler`], which every driver runs.

mod block;
pub mod comm;
mod group;
mod parcel;
pub mod policy;
pub mod scheduler;
#[cfg(all(test, shuttle))]
mod schedules;
mod scope;
mod sync;
mod task;
pub mod trace;
pub mod wire;
mod worker;

pub use block::{BlockError, BlockName, Bytes};
pub use group::Group;
pub use policy::{Interval, POLICIES, Policy, ScopeOptions, Split, Victims};
pub use scope::{Scope, ScopeError, ScopeReport, scope};
pub use task::{Context, Failure, Registry, Step, Task, TaskError};
