//! Distributed thread groups: fork, hyperfork and join-any over ranks that steal from each other.
//!
//! A *rank* is a process of a job, or a thread that plays one, or one of thousands in virtual time.
//! Every rank calls [`scope`]; inside, it *forks* tasks into thread *groups* and *joins* their
//! results, whichever comes first. A running task may *hyperfork* children into its own group, make
//! groups of its own and join them, and give part of its work away when it is asked to *split*.
//! Ranks that run idle steal tasks from others. A join ends when every task of the group, however
//! many hyperforks deep and wherever it ran, has finished and all its results were taken. This is
//! the model of DOTS as used by Thomaszewski and Blochinger (2006), section 4.2, with groups in
//! tasks, cancellation and published blocks added.
//!
//! # A program
//!
//! It integrates a function that is hard in one corner: a task halves its interval until it is
//! easy.
//!
//! ```
//! use serde::{Deserialize, Serialize};
//! use weft_runtime::comm::Comm;
//! use weft_runtime::{
//!     Context, Registry, ScopeError, ScopeOptions, ScopeReport, Step, Task, scope,
//! };
//!
//! #[derive(Serialize, Deserialize)]
//! struct Integral {
//!     from: f64,
//!     to: f64,
//! }
//!
//! impl Task<()> for Integral {
//!     const NAME: &'static str = "integral";
//!     type Output = f64;
//!
//!     fn run(&mut self, _env: &(), cx: &mut Context<'_, (), f64>) -> Step<f64> {
//!         let (a, b) = (self.from, self.to);
//!         let middle = (a + b) / 2.0;
//!         let coarse = (b - a) * (a.sqrt() + b.sqrt()) / 2.0;
//!         let fine = (b - a) * (a.sqrt() / 4.0 + middle.sqrt() / 2.0 + b.sqrt() / 4.0);
//!         cx.charge(1000); // units of work, for the clock of virtual ranks: 50 ns each by default
//!         if (coarse - fine).abs() < 1e-10 {
//!             return Step::Done(fine);
//!         }
//!         cx.hyperfork(Integral { from: a, to: middle });
//!         cx.hyperfork(Integral { from: middle, to: b });
//!         Step::Done(0.0)
//!     }
//! }
//!
//! /// What every rank runs; rank 0 gets the sum.
//! fn integrate(
//!     comm: &mut dyn Comm,
//!     options: &ScopeOptions,
//! ) -> Result<(f64, ScopeReport), ScopeError> {
//!     let registry = Registry::new().with::<Integral>();
//!     scope(comm, &registry, &(), options, |s| {
//!         let group = s.group();
//!         if s.rank().index() == 0 {
//!             s.fork(&group, Integral { from: 0.0, to: 1.0 })?;
//!         }
//!         let mut sum = 0.0;
//!         while let Some(part) = s.join(&group)? {
//!             sum += part?;
//!         }
//!         Ok(sum)
//!     })
//! }
//!
//! // On three ranks that are threads:
//! use weft_runtime::comm::threads;
//! let sums = threads::launch(3, |comm| integrate(comm, &ScopeOptions::default()))?;
//! for (rank, sum) in sums.into_iter().enumerate() {
//!     let (sum, _report) = sum?;
//!     assert!(rank > 0 || (sum - 2.0 / 3.0).abs() < 1e-6);
//! }
//!
//! // On 64 ranks in virtual time, with a trace that says why it did not scale:
//! use weft_runtime::Policy;
//! use weft_runtime::comm::virtual_time::{self, VirtualOptions};
//! use weft_runtime::trace::Analysis;
//! let mut efficiency = Vec::new();
//! for policy in [Policy::STATIC, Policy::default()] {
//!     let options = ScopeOptions { policy, trace: Some(100_000), ..ScopeOptions::default() };
//!     let machine = VirtualOptions::default();
//!     let outcome = virtual_time::launch(64, &machine, |comm| integrate(comm, &options))?;
//!     let reports = outcome.results.into_iter().collect::<Result<Vec<_>, _>>()?;
//!     let traces: Vec<_> = reports.into_iter().filter_map(|(_, report)| report.trace).collect();
//!     let analysis = Analysis::of(&traces);
//!     println!("{analysis}");
//!     efficiency.push(analysis.efficiency());
//! }
//! assert!(efficiency[1] > 5.0 * efficiency[0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Where to look
//!
//! * [`Task`] and [`Context`]: what a task may do; [`Scope`]: what a body may.
//! * [`policy`]: how ranks share work, as values; [`POLICIES`] has names for them.
//! * [`comm`]: ranks and messages; [`comm::virtual_time`]: networks, faults, determinism.
//! * [`trace`]: what happened when, for subscribers of `tracing`, for people and for Perfetto.
//! * [`Bound`]: values that tasks share while they run, for branch and bound.
//! * `PROTOCOL.md`, in the crate: how ranks agree. The decisions are those of a pure state machine,
//!   `scheduler`, which every driver runs and no program sees.
//! * `README.md`: a guide from a first fork to a branch-and-bound search.
//! * `examples/`: the shortest useful programs.

mod block;
mod bound;
pub mod comm;
mod context;
mod cpu_time;
mod group;
mod panics;
mod payload;
pub mod policy;
mod registry;
mod scheduler;
#[cfg(all(test, shuttle))]
mod schedules;
mod scope;
mod sync;
mod task;
mod thread_provider;
pub mod trace;
pub mod wire;
mod worker;

pub use block::{BlockError, BlockName, Bytes};
pub use bound::{Bound, BoundValue};
pub use context::Context;
pub use cpu_time::thread_time;
pub use group::Group;
pub use panics::panic_is_caught;
pub use policy::{Interval, POLICIES, Policy, ScopeOptions, Split, Victims};
pub use registry::Registry;
pub use scheduler::messages_to_end;
pub use scope::{Scope, ScopeError, ScopeReport, scope, scope_on};
pub use task::{Failure, Step, Task, TaskError};
pub use thread_provider::{ScopedThreads, ThreadProvider, WorkerThread};

/// The guide, whose programs are compiled and run as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Guide;
