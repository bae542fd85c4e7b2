//! The memory that thousands of virtual ranks take, each in a scope.
//!
//! The lints forbid an allocator that counts, which would be unsafe code; so this asks the system
//! for the most that the process ever held. The memory of ranks that only meet is mostly their
//! stacks; the rest, in a scope, is the heap.

#![cfg(target_os = "linux")]

use std::fs;

use serde::{Deserialize, Serialize};
use weft_runtime::comm::virtual_time::{VirtualOptions, launch};
use weft_runtime::comm::{Collectives, Rank};
use weft_runtime::{Context, Registry, ScopeOptions, Step, Task, scope};

const RANKS: usize = 4096;
/// The most that a rank may take beside its stack, in KiB.
const LIMIT: usize = 64;

#[derive(Serialize, Deserialize)]
struct Small(u64);

impl Task<()> for Small {
    const NAME: &'static str = "small";
    type Output = u64;

    fn run(&mut self, _env: &(), cx: &mut Context<'_, (), u64>) -> Step<u64> {
        cx.charge(1000);
        Step::Done(self.0)
    }
}

/// A line of `/proc/self/status`, in KiB.
fn status(name: &str) -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn thousands_of_ranks_fit_into_memory() {
    let options = VirtualOptions {
        stack: 64 << 10,
        ..VirtualOptions::default()
    };
    launch(RANKS, &options, |comm| comm.barrier().unwrap()).unwrap();
    let stacks = status("VmHWM:");
    let registry = Registry::new().with::<Small>();
    let outcome = launch(RANKS, &options, |comm| {
        scope(comm, &registry, &(), &ScopeOptions::default(), |s| {
            let group = s.group();
            if s.rank() == Rank(0) {
                (1..=5).try_for_each(|n| s.fork(&group, Small(n)))?;
            }
            let mut sum = 0;
            while let Some(n) = s.join(&group)? {
                sum += n?;
            }
            Ok(sum)
        })
    })
    .unwrap();
    let sums = outcome.results.into_iter().map(|r| r.unwrap().0);
    assert_eq!(sums.sum::<u64>(), 15);
    let each = (status("VmHWM:") - stacks).div_ceil(RANKS);
    assert!(each < LIMIT, "{each} KiB a rank beside its stack");
}
