//! Shared bounds: heard while tasks run, on threads and virtual ranks; and pools by priority.

use std::sync::Mutex;

use serde::{Deserialize, Serialize};
use weft_runtime::comm::{Rank, virtual_time::VirtualOptions};
use weft_runtime::{
    Bound, Context, Failure, Policy, Registry, ScopeError, ScopeOptions, Split, Step, Task,
};

use super::common::{Ended, on_threads, on_virtual, rough, seeded, threaded, total, values};

const LEAST: Bound<i64> = Bound::least("least");
const GREATEST: Bound<f64> = Bound::greatest("greatest");

/// Improves each bound by its own value, and runs until it has heard the best of all ranks.
#[derive(Serialize, Deserialize)]
struct Listen {
    own: u32,
    ranks: u32,
    told: bool,
}

impl Task<()> for Listen {
    const NAME: &'static str = "listen";
    type Output = u32;

    fn run(&mut self, _env: &(), cx: &mut Context<'_, (), u32>) -> Step<u32> {
        if !self.told {
            self.told = true;
            cx.improve(LEAST, -i64::from(self.own));
            cx.improve(GREATEST, f64::from(self.own) + 0.5);
        }
        let last = self.ranks - 1;
        let least = cx.best(LEAST).unwrap();
        let greatest = cx.best(GREATEST).unwrap();
        assert!(least >= -i64::from(last) && greatest <= f64::from(last) + 0.5);
        cx.charge(10);
        if least == -i64::from(last) && greatest == f64::from(last) + 0.5 {
            return Step::Done(self.own);
        }
        std::thread::yield_now();
        Step::More
    }
}

fn listening() -> Registry<()> {
    let registry = Registry::new().with::<Listen>();
    registry.with_bound(LEAST).with_bound(GREATEST)
}

fn listen(s: &mut weft_runtime::Scope<'_, ()>) -> Result<Vec<u32>, ScopeError> {
    assert_eq!(s.best(LEAST)?, None);
    let group = s.group();
    let (own, ranks) = (s.rank().0, s.size() as u32);
    s.fork(
        &group,
        Listen {
            own,
            ranks,
            told: false,
        },
    )?;
    let mut heard = Vec::new();
    while let Some(result) = s.join(&group)? {
        heard.push(result?);
    }
    // A task of this rank, if it kept one, has heard it; else the news has come beside the result.
    if s.size() == 1 {
        assert_eq!(s.best(LEAST)?, Some(0));
    }
    Ok(heard)
}

#[test]
fn tasks_hear_a_bound_while_they_run() {
    let own = |ended: Vec<Ended<Vec<u32>>>| {
        for (rank, heard) in values(ended).into_iter().enumerate() {
            assert_eq!(heard, [rank as u32]);
        }
    };
    let cases = [(1, 1, false), (3, 1, false), (2, 3, false), (3, 2, true)];
    for (ranks, options) in threaded(cases) {
        // Each task is on its own rank and goes on until it hears from the last.
        let policy = Policy::STATIC;
        let options = ScopeOptions { policy, ..options };
        own(on_threads(ranks, &options, &listening(), || (), listen));
    }
    for seed in 0..5 {
        for ranks in [2, 5, 64] {
            let options = ScopeOptions {
                policy: Policy::STATIC,
                ..seeded(seed)
            };
            let virtually = rough(seed);
            own(on_virtual(ranks, &virtually, &options, &listening(), || (), listen).results);
        }
    }
}

#[test]
fn a_body_improves_bounds_too() {
    let registry = || listening().with_bound(Bound::<u32>::least("go"));
    let go: Bound<u32> = Bound::least("go");
    let ended = on_virtual(
        4,
        &VirtualOptions::default(),
        &seeded(0),
        &registry(),
        || (),
        |s| {
            let first = s.improve(go, 7)?;
            Ok((first, s.improve(go, 7)?, s.improve(go, 6)?, s.best(go)?))
        },
    );
    for (rank, told) in values(ended.results).into_iter().enumerate() {
        // Later ranks may have heard of it before.
        assert!(rank > 0 || told.0);
        assert!(!told.1);
        assert_eq!(told.3, Some(6));
    }
}

#[test]
fn a_bound_that_is_not_registered_is_an_error() {
    let registry = Registry::new().with::<Listen>().with_bound(LEAST);
    let body = |s: &mut weft_runtime::Scope<'_, ()>| {
        assert_eq!(s.best(GREATEST), Err(ScopeError::UnknownBound("greatest")));
        // The name alone is not enough.
        let other = Bound::<i64>::greatest("least");
        assert_eq!(s.improve(other, 1), Err(ScopeError::UnknownBound("least")));
        let group = s.group();
        s.fork(
            &group,
            Listen {
                own: 0,
                ranks: 1,
                told: false,
            },
        )?;
        Ok(s.join(&group)?.unwrap().unwrap_err())
    };
    let ended = on_threads(1, &ScopeOptions::default(), &registry, || (), body);
    let error = values(ended).remove(0);
    let Failure::Panicked(why) = error.cause else {
        panic!("{error}");
    };
    assert!(
        why.contains("greatest `greatest` is not registered"),
        "{why}"
    );

    let twice = Registry::new().with_bound(LEAST);
    let twice = twice.with_bound(Bound::<u32>::greatest("least"));
    let ended = on_threads(1, &ScopeOptions::default(), &twice, || (), |_| Ok(()));
    assert_eq!(
        ended[0].clone().unwrap_err(),
        ScopeError::SameBound("least")
    );

    let names: [&'static str; 65] = std::array::from_fn(|at| &*format!("bound {at}").leak());
    let add = |registry: Registry<()>, name| registry.with_bound(Bound::<u64>::least(name));
    let many = names.into_iter().fold(Registry::new(), add);
    let ended = on_threads(1, &ScopeOptions::default(), &many, || (), |_| Ok(()));
    assert_eq!(ended[0].clone().unwrap_err(), ScopeError::TooManyBounds(65));
}

#[test]
fn ranks_with_different_bounds_run_different_programs() {
    let ended = weft_runtime::comm::threads::launch(2, |comm| {
        let registry = Registry::new().with::<Listen>();
        let registry = match comm.rank() {
            Rank(0) => registry.with_bound(LEAST),
            _ => registry.with_bound(Bound::<i64>::greatest("least")),
        };
        weft_runtime::scope(comm, &registry, &(), &ScopeOptions::default(), |s| {
            let group = s.group::<u32>();
            s.join(&group).map(|_| ())
        })
    });
    let errors = ended
        .unwrap()
        .into_iter()
        .map(|e| e.unwrap_err().to_string());
    let errors: Vec<String> = errors.collect();
    assert!(
        errors
            .iter()
            .any(|error| error.contains("least `least`") && error.contains("greatest `least`")),
        "{errors:?}"
    );
}

// ---- priorities

/// Notes its number when it runs.
#[derive(Serialize, Deserialize)]
struct Turn {
    number: u32,
    priority: i64,
    /// Children of these priorities.
    children: Vec<i64>,
}

type Order = Mutex<Vec<u32>>;

impl Task<Order> for Turn {
    const NAME: &'static str = "turn";
    type Output = u32;

    fn run(&mut self, order: &Order, cx: &mut Context<'_, Order, u32>) -> Step<u32> {
        order.lock().unwrap().push(self.number);
        for (number, &priority) in (self.number + 1..).zip(&self.children) {
            let children = Vec::new();
            cx.hyperfork(Self {
                number,
                priority,
                children,
            });
        }
        cx.charge(100);
        Step::Done(self.number)
    }

    fn priority(&self) -> i64 {
        assert_ne!(self.priority, i64::MIN, "it has none");
        self.priority
    }
}

fn turn(number: u32, priority: i64) -> Turn {
    Turn {
        number,
        priority,
        children: Vec::new(),
    }
}

/// Forks these into one group on rank 0; how many came back without an error.
fn fork_all(
    s: &mut weft_runtime::Scope<'_, Order>,
    tasks: impl Iterator<Item = Turn>,
) -> Result<(Vec<u32>, usize), ScopeError> {
    let group = s.group();
    if s.rank() == Rank(0) {
        for task in tasks {
            s.fork(&group, task)?;
        }
    }
    let (mut done, mut failed) = (Vec::new(), 0);
    while let Some(result) = s.join(&group)? {
        match result {
            Ok(number) => done.push(number),
            Err(_) => failed += 1,
        }
    }
    done.sort_unstable();
    Ok((done, failed))
}

#[test]
fn a_pool_is_emptied_by_priority() {
    let registry = Registry::new().with::<Turn>();
    let run = |tasks: &(dyn Fn() -> Vec<Turn> + Sync)| {
        let env = Order::default();
        let ended = weft_runtime::comm::threads::launch(1, |comm| {
            weft_runtime::scope(comm, &registry, &env, &ScopeOptions::default(), |s| {
                fork_all(s, tasks().into_iter())
            })
        });
        ended.unwrap().remove(0).unwrap();
        env.into_inner().unwrap()
    };
    // The highest first; of equal ones the newest.
    let mixed = || {
        let priorities = [3, -1, 7, 3, 0, i64::MAX, 7];
        (0..).zip(priorities).map(|(n, p)| turn(n, p)).collect()
    };
    assert_eq!(run(&mixed), [5, 6, 2, 3, 0, 4, 1]);
    // Children take their places among those that wait.
    let nested = || {
        let mut parent = turn(10, 9);
        parent.children = vec![1, 6, 2];
        vec![turn(0, 5), parent, turn(1, 2), turn(2, 2)]
    };
    assert_eq!(run(&nested), [10, 12, 0, 13, 2, 1, 11]);
    // Without priorities the newest is first, as ever.
    let plain = || (0..5).map(|n| turn(n, 0)).collect();
    assert_eq!(run(&plain), [4, 3, 2, 1, 0]);
}

#[test]
fn thieves_lose_and_double_nothing_of_a_pool_with_priorities() {
    let registry = Registry::new().with::<Turn>();
    let tasks = || {
        (0..200).map(|n| {
            let mut task = turn(10 * n, i64::from(n * 37 % 11));
            task.children = (0..i64::from(n % 4)).map(|c| c * 5 - 3).collect();
            task
        })
    };
    let all: Vec<u32> = tasks()
        .flat_map(|task| (0..=task.children.len() as u32).map(move |c| task.number + c))
        .collect();
    let check = |ended: Vec<Ended<(Vec<u32>, usize)>>| {
        assert!(total(&ended, |report| report.tasks_in) > 0);
        assert_eq!(values(ended)[0], (all.clone(), 0));
    };
    for policy in [
        Policy::default(),
        Policy::PAPER,
        Policy::LIFELINES,
        Policy::WEIGHT,
    ] {
        for ranks in [2, 7] {
            let options = ScopeOptions {
                policy,
                ..seeded(3)
            };
            let run = |s: &mut weft_runtime::Scope<'_, Order>| fork_all(s, tasks());
            check(on_virtual(ranks, &rough(1), &options, &registry, Order::default, run).results);
        }
    }
    for (ranks, options) in threaded([(1, 3, false), (2, 2, true)]) {
        let run = |s: &mut weft_runtime::Scope<'_, Order>| fork_all(s, tasks());
        let ended = on_threads(ranks, &options, &registry, Order::default, run);
        assert_eq!(values(ended)[0], (all.clone(), 0));
    }
}

#[test]
fn a_task_that_cannot_say_its_priority_fails_alone() {
    let registry = Registry::new().with::<Turn>();
    let tasks = || [turn(0, 3), turn(1, i64::MIN), turn(2, 4)];
    let ended = on_threads(
        1,
        &ScopeOptions::default(),
        &registry,
        Order::default,
        |s| fork_all(s, tasks().into_iter()),
    );
    assert_eq!(values(ended), [(vec![0, 2], 1)]);
}

// ---- branch and bound

const CITIES: usize = 11;
const SHORTEST: Bound<u32> = Bound::least("shortest tour");

/// Distances between cities, and whether tasks tell each other what they find.
struct Map {
    distance: [[u32; CITIES]; CITIES],
    told: bool,
    /// The bound that this rank knows if tasks do not share it.
    own: Mutex<u32>,
}

impl Map {
    fn new(told: bool) -> Self {
        let place = |city: usize| ((37 * city % 101) as i32, (53 * city * city % 97) as i32);
        let distance = std::array::from_fn(|a| {
            std::array::from_fn(|b| {
                let ((ax, ay), (bx, by)) = (place(a), place(b));
                ax.abs_diff(bx) + ay.abs_diff(by)
            })
        });
        let own = Mutex::new(u32::MAX);
        Self {
            distance,
            told,
            own,
        }
    }

    /// The shortest tour by dynamic programming over sets of cities [Held & Karp 1962].
    fn shortest(&self) -> u32 {
        let sets = 1 << CITIES;
        let mut best = vec![[u32::MAX; CITIES]; sets];
        best[1][0] = 0;
        for set in (1..sets).step_by(2) {
            for at in (0..CITIES).filter(|at| set & (1 << at) != 0) {
                let length = best[set][at];
                for next in (0..CITIES).filter(|next| set & (1 << next) == 0) {
                    let way = length.saturating_add(self.distance[at][next]);
                    let found = &mut best[set | 1 << next][next];
                    *found = way.min(*found);
                }
            }
        }
        let home = |at: usize| best[sets - 1][at].saturating_add(self.distance[at][0]);
        (1..CITIES).map(home).min().unwrap()
    }
}

/// A way that has begun in city 0.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Way {
    at: usize,
    seen: u32,
    length: u32,
}

/// Follows ways, the newest first, unless they are as long as the best tour known.
#[derive(Serialize, Deserialize)]
struct Search {
    stack: Vec<Way>,
    best: u32,
}

impl Search {
    fn best(&self, map: &Map, cx: &Context<'_, Map, u32>) -> u32 {
        if map.told {
            return cx.best(SHORTEST).unwrap_or(u32::MAX);
        }
        let mut own = map.own.lock().unwrap();
        *own = self.best.min(*own);
        *own
    }
}

impl Task<Map> for Search {
    const NAME: &'static str = "search";
    type Output = u32;

    fn run(&mut self, map: &Map, cx: &mut Context<'_, Map, u32>) -> Step<u32> {
        for _ in 0..cx.budget() {
            self.best = self.best(map, cx);
            let Some(way) = self.stack.pop() else {
                return Step::Done(self.best);
            };
            cx.charge(1);
            if way.length >= self.best {
                continue;
            }
            if way.seen == (1 << CITIES) - 1 {
                let tour = way.length + map.distance[way.at][0];
                if tour < self.best {
                    self.best = tour;
                    cx.improve(SHORTEST, tour);
                    cx.emit(tour);
                }
                continue;
            }
            for next in (0..CITIES).filter(|next| way.seen & (1 << next) == 0) {
                self.stack.push(Way {
                    at: next,
                    seen: way.seen | (1 << next),
                    length: way.length + map.distance[way.at][next],
                });
            }
        }
        Step::More
    }

    fn split(&mut self, how: Split) -> Option<Self> {
        let stack = how.take_from(&mut self.stack)?;
        Some(Self {
            stack,
            best: self.best,
        })
    }
}

/// The shortest tour and the nodes that all virtual ranks expand, from no bound.
fn expanded(ranks: usize, seed: u64, told: bool) -> (u32, u64) {
    let registry = Registry::new().with::<Search>().with_bound(SHORTEST);
    let ended = on_virtual(
        ranks,
        &VirtualOptions::default(),
        &seeded(seed),
        &registry,
        || Map::new(told),
        |s| {
            let group = s.group();
            if s.rank() == Rank(0) {
                let way = Way {
                    at: 0,
                    seen: 1,
                    length: 0,
                };
                let stack = vec![way];
                let best = u32::MAX;
                s.fork(&group, Search { stack, best })?;
            }
            let mut best = u32::MAX;
            while let Some(tour) = s.join(&group)? {
                best = best.min(tour?);
            }
            Ok(best)
        },
    );
    let nodes = total(&ended.results, |report| report.work);
    (values(ended.results)[0], nodes)
}

#[test]
fn a_bound_that_is_shared_spares_64_ranks_useless_nodes() {
    let shortest = Map::new(true).shortest();
    let (alone, one) = expanded(1, 0, true);
    assert_eq!(alone, shortest);
    let (carried, without) = expanded(64, 0, false);
    assert_eq!(carried, shortest);
    for seed in 0..3 {
        let (tour, nodes) = expanded(64, seed, true);
        assert_eq!(tour, shortest);
        let ratio = nodes as f64 / one as f64;
        assert!(
            ratio <= 1.3,
            "{nodes} nodes on 64 ranks, {one} on one: {ratio:.3}"
        );
        // It is the news that does it: tasks that only carry what they knew expand more.
        assert!(
            4 * nodes < 3 * without,
            "{nodes} nodes, and {without} without news"
        );
    }
}
