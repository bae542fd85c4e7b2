//! Published blocks: read on every rank, fetched once, bounded, replaced, waited for without
//! standing still.

use crate::common::{Ended, on_threads, on_virtual, rough, seeded, threaded, total, values};
use serde::{Deserialize, Serialize};
use weft_runtime::comm::Rank;
use weft_runtime::comm::virtual_time::{Link, Network, VirtualOptions};
use weft_runtime::{BlockName, Context, Registry, Scope, ScopeError, ScopeOptions, Step, Task};

/// Adds up what the blocks say.
#[derive(Clone, Serialize, Deserialize)]
struct Read {
    needs: Vec<BlockName>,
    units: u64,
}

impl Task<()> for Read {
    const NAME: &'static str = "read";
    type Output = (u64, Rank);

    fn run(&mut self, _env: &(), cx: &mut Context<'_, (), (u64, Rank)>) -> Step<(u64, Rank)> {
        cx.charge(self.units);
        let blocks = self.needs.iter().map(|name| cx.block(name));
        let sum = blocks.map(|bytes| bytes.iter().map(|&b| u64::from(b)).sum::<u64>());
        Step::Done((sum.sum(), cx.rank()))
    }

    fn needs(&self) -> Vec<BlockName> {
        self.needs.clone()
    }
}

const TASKS: u64 = 400;

/// The last rank publishes, the first forks tasks that read two blocks each.
fn read_all(s: &mut Scope<'_, ()>, blocks: u64, size: usize) -> Result<Vec<Rank>, ScopeError> {
    let group = s.group();
    let home = Rank(s.size() as u32 - 1);
    if s.rank() == home {
        for id in 0..blocks {
            s.publish(id, 1, vec![id as u8; size])?;
        }
    }
    let mut readers = Vec::new();
    let mut sum = 0;
    if s.rank() == Rank(0) {
        for n in 0..TASKS {
            let version = 1;
            let needs = [n % blocks, (n + 1) % blocks].map(|id| BlockName { home, id, version });
            let (needs, units) = (needs.to_vec(), 2000);
            s.fork(&group, Read { needs, units })?;
            sum += size as u64 * ((n % blocks) + (n + 1) % blocks);
        }
    }
    while let Some(read) = s.join(&group)? {
        let (part, rank) = read?;
        sum -= part;
        readers.push(rank);
    }
    assert_eq!(sum, 0);
    Ok(readers)
}

fn fetches<R>(ended: &[Ended<R>]) -> Vec<u64> {
    let reports = ended.iter().map(|e| &e.as_ref().unwrap().1);
    reports.map(|report| report.fetches).collect()
}

#[test]
fn a_block_is_fetched_once_by_each_rank_that_reads_it() {
    let registry = Registry::new().with::<Read>();
    let mut by_others = 0;
    for seed in 0..16 {
        let ranks = 2 + 4 * seed as usize;
        let body = |s: &mut Scope<'_, ()>| read_all(s, 8, 3000);
        let options = seeded(seed);
        let ended = on_virtual(ranks, &rough(seed), &options, &registry, || (), body).results;
        let fetches = fetches(&ended);
        assert!(fetches.iter().all(|&n| n <= 8), "{fetches:?}");
        assert_eq!(fetches[ranks - 1], 0);
        let served = |report: &weft_runtime::ScopeReport| report.blocks_served;
        assert_eq!(total(&ended, served), fetches.iter().sum::<u64>());
        by_others += total(&ended[..ranks - 1], served);
        let mut readers = values(ended).swap_remove(0);
        readers.sort();
        readers.dedup();
        assert!(readers.len() > 1);
    }
    assert!(by_others > 0);
    for (ranks, options) in threaded([
        (1, 1, false),
        (4, 1, false),
        (3, 3, false),
        (1, 1, true),
        (3, 1, true),
        (2, 2, true),
    ]) {
        let ended = on_threads(ranks, &options, &registry, || (), |s| read_all(s, 8, 3000));
        assert!(fetches(&ended).iter().all(|&n| n <= 8));
        values(ended);
    }
}

/// Some blocks are fetched again where there is room for two and tasks need two of many; but never
/// one a task.
#[test]
fn copies_of_blocks_are_bounded() {
    let registry = Registry::new().with::<Read>();
    let body = |s: &mut Scope<'_, ()>| read_all(s, 40, 1000);
    let run = |cache_bytes| {
        let options = ScopeOptions {
            cache_bytes,
            ..seeded(5)
        };
        let ended = on_virtual(
            3,
            &VirtualOptions::default(),
            &options,
            &registry,
            || (),
            body,
        );
        let count = fetches(&ended.results).iter().sum::<u64>();
        values(ended.results);
        count
    };
    let (roomy, tight, none) = (run(1 << 20), run(2000), run(0));
    assert!(roomy <= 2 * 40, "{roomy}");
    assert!(tight > roomy && tight <= 2 * TASKS, "{tight}");
    assert!(none > roomy && none <= 2 * TASKS, "{none}");
}

#[test]
fn a_large_block_crosses_threads() {
    let registry = Registry::new().with::<Read>();
    let ended = on_threads(
        3,
        &seeded(0),
        &registry,
        || (),
        |s| read_all(s, 2, 5_000_000),
    );
    values(ended);
}

/// While blocks are under way, tasks that need none run.
#[test]
fn tasks_are_blocked_while_others_run() {
    let registry = Registry::new().with::<Read>();
    // 1 MB takes 10 ms.
    let virtually = VirtualOptions {
        network: Network::uniform(Link::new(
            std::time::Duration::from_micros(2),
            std::time::Duration::from_nanos(500),
            10.0,
        )),
        ..VirtualOptions::default()
    };
    let run = |reads: u64, works: u64| {
        let options = ScopeOptions {
            policy: weft_runtime::Policy::STATIC,
            ..seeded(1)
        };
        let ended = on_virtual(
            2,
            &virtually,
            &options,
            &registry,
            || (),
            |s| {
                let group = s.group();
                let (home, version) = (Rank(1), 1);
                if s.rank() == home {
                    for id in 0..reads {
                        s.publish(id, version, vec![0; 1_000_000])?;
                    }
                } else {
                    for _ in 0..works {
                        let (needs, units) = (vec![], 20_000);
                        s.fork(&group, Read { needs, units })?;
                    }
                    for id in 0..reads {
                        let needs = vec![BlockName { home, id, version }];
                        s.fork(&group, Read { needs, units: 1 })?;
                    }
                }
                while let Some(read) = s.join(&group)? {
                    read?;
                }
                Ok(())
            },
        );
        let makespan = ended.makespan();
        values(ended.results);
        makespan
    };
    let (reading, working, both) = (run(1, 0), run(0, 10), run(1, 10));
    assert!(
        both < (reading + working).mul_f64(0.6),
        "{reading:?} {working:?} {both:?}"
    );
}

/// A block is replaced between groups, and while its reader waits for the newer one.
#[test]
fn newer_versions_replace_older_ones() {
    let registry = Registry::new().with::<Read>();
    let body = |s: &mut Scope<'_, ()>| {
        let home = Rank(0);
        for version in 1..6 {
            let group = s.group();
            // Forked before it is published, on some.
            let name = BlockName {
                home,
                id: 7,
                version,
            };
            for _ in 0..5 {
                let (needs, units) = (vec![name], 1000);
                s.fork(&group, Read { needs, units })?;
            }
            if s.rank() == home {
                assert_eq!(s.publish(7, version, vec![version as u8; 100])?, name);
            }
            while let Some(read) = s.join(&group)? {
                assert_eq!(read?.0, 100 * u64::from(version));
            }
        }
        Ok(())
    };
    for (ranks, options) in threaded([
        (1, 1, false),
        (4, 2, false),
        (1, 1, true),
        (3, 1, true),
        (2, 2, true),
    ]) {
        values(on_threads(ranks, &options, &registry, || (), body));
    }
    for seed in 0..20 {
        let options = ScopeOptions {
            cache_bytes: 150 * (seed as usize % 3),
            ..seeded(seed)
        };
        let ranks = 1 + 2 * seed as usize;
        values(on_virtual(ranks, &rough(seed), &options, &registry, || (), body).results);
    }
}

/// Reads in a group of its own.
#[derive(Serialize, Deserialize)]
struct ReadsBelow(Read);

impl Task<()> for ReadsBelow {
    const NAME: &'static str = "reads-below";
    type Output = u64;

    fn run(&mut self, _env: &(), cx: &mut Context<'_, (), u64>) -> Step<u64> {
        let group = cx.group();
        for _ in 0..4 {
            cx.fork(&group, self.0.clone());
        }
        let mut sum = 0;
        while let Some(read) = cx.join(&group) {
            sum += read.unwrap().0;
        }
        Step::Done(sum)
    }
}

#[test]
fn tasks_of_nested_and_rooted_groups_read_too() {
    let registry = Registry::new().with::<ReadsBelow>().with::<Read>();
    let body = |s: &mut Scope<'_, ()>| {
        let (group, own) = (s.group(), s.rooted_group());
        let name = s.publish(3, 1, vec![2; 50])?;
        for group in [&own, &group] {
            for home in (0..s.size() as u32).map(Rank) {
                // Rooted groups only if they are own ones: others may wait elsewhere, and not
                // publish any more.
                if home == name.home || s.rank() == Rank(0) {
                    let needs = vec![BlockName { home, ..name }];
                    s.fork(group, ReadsBelow(Read { needs, units: 500 }))?;
                }
            }
            while let Some(sum) = s.join(group)? {
                assert_eq!(sum?, 4 * 100);
            }
        }
        Ok(())
    };
    for (ranks, options) in threaded([
        (1, 2, false),
        (3, 1, false),
        (3, 2, false),
        (1, 1, true),
        (3, 1, true),
        (2, 2, true),
    ]) {
        values(on_threads(ranks, &options, &registry, || (), body));
    }
    for seed in 0..20 {
        let ranks = 1 + seed as usize;
        let options = seeded(seed);
        values(on_virtual(ranks, &rough(seed), &options, &registry, || (), body).results);
    }
}
