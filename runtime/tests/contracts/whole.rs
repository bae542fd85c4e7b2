//! All of it at once: the same log each time, the dump of a rank that lets others wait, thousands
//! of ranks.

use std::time::Duration;

use crate::common::{on_virtual, rough, seeded};
use serde::{Deserialize, Serialize};
use weft_runtime::comm::virtual_time::{self, VirtualOptions};
use weft_runtime::comm::{Comm, Rank, Tag};
use weft_runtime::{
    BlockName, Context, Policy, Registry, Scope, ScopeError, ScopeOptions, ScopeReport, Split,
    Step, Task, scope,
};

/// A node of an uneven tree: some children in its group, some in a group of its own, some pieces.
#[derive(Clone, Serialize, Deserialize)]
struct Node {
    height: u32,
    salt: u64,
    block: Option<BlockName>,
    rest: u32,
}

fn node(height: u32, block: Option<BlockName>) -> Node {
    Node {
        height,
        salt: 1,
        block,
        rest: 3,
    }
}

impl Task<()> for Node {
    const NAME: &'static str = "node";
    type Output = u64;

    fn run(&mut self, _env: &(), cx: &mut Context<'_, (), u64>) -> Step<u64> {
        cx.charge(40);
        let mut count = 1;
        if let Some(name) = self.block {
            assert!(!cx.block(&name).is_empty());
        }
        self.rest -= 1;
        let salt = (self.salt + u64::from(self.rest)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        if self.height > 0 && salt >> 62 != 0 {
            let child = Self {
                height: self.height - 1,
                salt,
                rest: 3,
                block: self.block,
            };
            match salt >> 40 & 3 {
                0 => {
                    let group = cx.group();
                    cx.fork(&group, child.clone());
                    let other = Self {
                        salt: !salt,
                        ..child
                    };
                    cx.fork(&group, other);
                    while let Some(below) = cx.join(&group) {
                        count += below.unwrap();
                        if cx.is_cancelled() {
                            cx.cancel(&group);
                        }
                    }
                }
                _ => cx.hyperfork(child),
            }
        }
        if self.rest == 0 {
            return Step::Done(count);
        }
        cx.emit(count);
        Step::More
    }

    fn split(&mut self, _how: Split) -> Option<Self> {
        (self.rest > 2).then(|| {
            self.rest -= 1;
            Self {
                rest: 1,
                ..self.clone()
            }
        })
    }

    fn needs(&self) -> Vec<BlockName> {
        self.block.into_iter().collect()
    }
}

/// Two groups, of which one is cancelled, and own ones; how many nodes there were.
fn all_at_once(s: &mut Scope<'_, ()>) -> Result<u64, ScopeError> {
    let (first, second, own) = (s.group(), s.group(), s.rooted_group());
    let name = s.publish(0, 1, vec![1; 2000])?;
    let mut count = 0;
    if s.rank().0.is_multiple_of(3) {
        s.fork(&own, node(2, Some(name)))?;
        s.fork(&first, node(5, Some(name)))?;
        s.fork(&second, node(8, None))?;
    }
    for group in [&own, &first] {
        while let Some(nodes) = s.join(group)? {
            count += nodes?;
        }
    }
    let mut some = 0;
    while let Some(nodes) = s.join(&second)? {
        some += nodes?;
        if some > 100 && s.rank() == Rank(0) {
            s.cancel(&second)?;
        }
    }
    Ok(count)
}

#[test]
fn equal_options_give_equal_logs_under_every_policy() {
    let registry = Registry::new().with::<Node>();
    for policy in [
        Policy::EVERY_OTHER,
        Policy::LIFELINES,
        Policy::HIERARCHICAL,
        Policy::ADAPTIVE,
    ] {
        let options = ScopeOptions {
            policy,
            trace: Some(1000),
            ..seeded(11)
        };
        let mut virtually = VirtualOptions {
            record: true,
            ..rough(4)
        };
        virtually.network = virtually.network.with_nodes(8);
        let run = |virtually: &VirtualOptions| {
            on_virtual(24, virtually, &options, &registry, || (), all_at_once)
        };
        let (first, again) = (run(&virtually), run(&virtually));
        assert!(first.log.len() > 1000);
        assert!(first.log == again.log, "{policy:?}");
        assert_eq!(first.clocks, again.clocks);
        // Where time is measured it differs.
        let clean = |result: &Result<(u64, ScopeReport), ScopeError>| {
            let mut result = result.clone();
            if let Ok((_, report)) = &mut result {
                report.elapsed = Duration::ZERO;
                report.busy.clear();
            }
            result
        };
        let cleaned =
            |o: &virtual_time::Outcome<_>| -> Vec<_> { o.results.iter().map(clean).collect() };
        assert_eq!(cleaned(&first), cleaned(&again));
        assert!(first.results.iter().all(Result::is_ok));
        virtually.seed = 5;
        assert!(first.log != run(&virtually).log);
    }
}

/// Rank 2 waits for something else than the others do.
#[test]
fn a_rank_that_comes_late_is_waited_for() {
    let registry = Registry::new().with::<Node>();
    let outcome = virtual_time::launch(3, &VirtualOptions::default(), |comm: &mut dyn Comm| {
        if comm.rank() == Rank(2) {
            // Sent long before; taken late.
            comm.compute(20_000_000, Duration::ZERO);
        }
        let options = ScopeOptions {
            watch: Some(Duration::from_millis(400)),
            ..ScopeOptions::default()
        };
        let me = comm.rank();
        let sum = scope(comm, &registry, &(), &options, |s| {
            let (group, own) = (s.group(), s.rooted_group());
            s.fork(&group, node(4, None))?;
            s.fork(&own, node(4, None))?;
            let told = format!("{s:?}");
            assert!(
                told.starts_with(&format!("rank {}: body active; 2 tasks", me.0)),
                "{told}"
            );
            assert!(told.contains("\n  group 0: 1 given, 0 used"), "{told}");
            let root = format!("\n  group 0 of rank {}: 1 open", me.0);
            assert!(told.contains(&root), "{told}");
            let mut count = 0;
            for group in [&own, &group] {
                while let Some(nodes) = s.join(group)? {
                    count += nodes?;
                }
            }
            let told = format!("{s:?}");
            assert!(!told.contains("of rank"), "{told}");
            Ok(count)
        })
        .unwrap()
        .0;
        comm.send(Rank(0), Tag(1), vec![]).unwrap();
        sum
    });
    let counts = outcome.unwrap().results;
    assert!(counts[0] > 2 && counts.iter().all(|&n| n == counts[0]));
}

#[test]
fn thousands_of_ranks_run_one_tree() {
    let registry = Registry::new().with::<Node>();
    let run = |ranks| {
        let virtually = VirtualOptions {
            network: VirtualOptions::default().network.with_nodes(32),
            ..VirtualOptions::default()
        };
        let options = ScopeOptions {
            policy: Policy::LIFELINES,
            ..seeded(2)
        };
        let ended = on_virtual(
            ranks,
            &virtually,
            &options,
            &registry,
            || (),
            |s| {
                let group = s.group();
                if s.rank() == Rank(0) {
                    s.fork(&group, node(9, None))?;
                }
                let mut count = 0;
                while let Some(nodes) = s.join(&group)? {
                    count += nodes?;
                }
                Ok(count)
            },
        );
        let tasks = crate::common::total(&ended.results, |r| r.tasks);
        (crate::common::values(ended.results)[0], tasks)
    };
    let (alone, tasks) = run(1);
    assert!(tasks > 1000, "{tasks}");
    assert_eq!(run(4096).0, alone);
}
