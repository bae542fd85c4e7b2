//! The work that ranks did for others: tests by patch and rank, tasks that moved, how large tasks
//! are.

use std::collections::{BTreeMap, BTreeSet};

use crate::tracks::{RankTracks, TaskSpan, Tracks};

/// The tests of a patch in the steps that were traced. A test of two patches counts half for each.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PatchWork {
    /// The rank that owns it, if that is known.
    pub owner: Option<u32>,
    /// All tests.
    pub tests: f64,
    /// Time of the tasks that made them in ns, divided likewise.
    pub ns: f64,
    /// Tests that each rank made, by rank.
    pub by: BTreeMap<u32, f64>,
    /// Tests among these that belong to tasks that a rank had from another, see [`stolen`].
    pub stolen_by: BTreeMap<u32, f64>,
    /// Triangles, if the cloth is known.
    pub triangles: u32,
}

impl PatchWork {
    /// Tests that were made on ranks that do not own it; none if the owner is not known.
    #[must_use]
    pub fn moved(&self) -> f64 {
        let Some(owner) = self.owner else { return 0.0 };
        let others = self.by.iter().filter(|&(&rank, _)| rank != owner);
        others.map(|(_, tests)| tests).sum()
    }

    /// The tasks of these that had gone from rank to rank; the rest were placed where they were
    /// made, by a plan of their costs, or as tests of two patches whose other one is owned there.
    #[must_use]
    pub fn stolen(&self) -> f64 {
        let Some(owner) = self.owner else { return 0.0 };
        let others = self.stolen_by.iter().filter(|&(&rank, _)| rank != owner);
        others.map(|(_, tests)| tests).sum()
    }

    /// The rank that made most of its tests.
    #[must_use]
    pub fn maker(&self) -> Option<u32> {
        most(self.by.iter())
    }

    /// The rank that stole the most of its tests, among those that do not own it.
    #[must_use]
    pub fn thief(&self) -> Option<u32> {
        let owner = self.owner?;
        most(self.stolen_by.iter().filter(|&(&rank, _)| rank != owner))
    }

    /// Tests for each of its triangles, over all steps that were traced.
    #[must_use]
    pub fn per_triangle(&self) -> Option<f64> {
        (self.triangles > 0).then(|| self.tests / f64::from(self.triangles))
    }
}

/// The rank with the most, of equals the first.
fn most<'a>(of: impl Iterator<Item = (&'a u32, &'a f64)>) -> Option<u32> {
    let most = of.max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(a.0)));
    most.map(|(&rank, _)| rank)
}

/// The tasks that were stolen, by rank, worker and task.
///
/// Traces tell how many tasks came and when, not which. Taken for stolen are tasks that ranks fork
/// for patches of others, from when tasks had come on, no more than had come; and what has the same
/// patches as one of these, for tasks are split and set down.
#[must_use]
pub fn stolen(tracks: &Tracks, owners: &[u32]) -> Vec<Vec<Vec<bool>>> {
    (0..)
        .zip(&tracks.ranks)
        .map(|(rank, of_rank)| stolen_by(rank, of_rank, owners))
        .collect()
}

fn stolen_by(rank: u32, tracks: &RankTracks, owners: &[u32]) -> Vec<Vec<bool>> {
    let flags = tracks.tasks.iter().map(|tasks| vec![false; tasks.len()]);
    let mut flags: Vec<Vec<bool>> = flags.collect();
    let served = tracks.requests.iter().filter(|request| request.tasks > 0);
    let mut came: Vec<(u64, u64)> = served
        .map(|request| (request.answered, u64::from(request.tasks)))
        .chain(
            tracks
                .gifts
                .iter()
                .map(|&(at, _, tasks)| (at, u64::from(tasks))),
        )
        .collect();
    came.sort_unstable();
    let lanes = tracks.tasks.iter().enumerate();
    let tasks = lanes.flat_map(|(lane, tasks)| {
        let of_others = |task: &TaskSpan| {
            let owner = task
                .patches()
                .next()
                .and_then(|patch| owners.get(patch as usize));
            owner.is_some_and(|&owner| owner != rank)
        };
        let numbered = tasks.iter().enumerate();
        let found = numbered.filter(move |(_, task)| of_others(task));
        found.map(move |(at, task)| (task.begin, lane, at, task.of))
    });
    let mut tasks: Vec<_> = tasks.collect();
    tasks.sort_unstable();
    let (mut next, mut scope, mut left) = (0, usize::MAX, 0_u64);
    let mut seen: BTreeSet<[u32; 2]> = BTreeSet::new();
    for (begin, lane, at, of) in tasks {
        // Scopes follow each other: what came in one was made in it.
        let now = tracks.scopes.partition_point(|scope| scope.begin <= begin);
        if now != scope {
            (scope, left) = (now, 0);
            seen.clear();
            let from = now.checked_sub(1).map_or(0, |now| tracks.scopes[now].begin);
            next = came.partition_point(|&(at, _)| at < from);
        }
        while let Some(&(_, tasks)) = came.get(next).filter(|&&(at, _)| at <= begin) {
            left += tasks;
            next += 1;
        }
        let known = seen.contains(&of);
        if left > 0 && !known {
            left -= 1;
            seen.insert(of);
        }
        flags[lane][at] = known || seen.contains(&of);
    }
    flags
}

/// Tests by patch; `owners` is each patch's rank, where it is known, and `triangles` each patch's
/// number of them.
#[must_use]
pub fn patches(tracks: &Tracks, owners: &[u32], triangles: &[u32]) -> Vec<PatchWork> {
    let mut patches: BTreeMap<u32, PatchWork> = BTreeMap::new();
    let stolen = stolen(tracks, owners);
    for ((rank, of_rank), stolen) in (0..).zip(&tracks.ranks).zip(&stolen) {
        for (task, &stolen) in of_rank.tasks.iter().flatten().zip(stolen.iter().flatten()) {
            let share = 1.0 / task.patches().count().max(1) as f64;
            for patch in task.patches() {
                let work = patches.entry(patch).or_default();
                let tests = share * f64::from(task.tests);
                work.tests += tests;
                work.ns += share * (task.end - task.begin) as f64;
                *work.by.entry(rank).or_default() += tests;
                if stolen {
                    *work.stolen_by.entry(rank).or_default() += tests;
                }
            }
        }
    }
    let count = patches
        .keys()
        .next_back()
        .map_or(0, |&last| last as usize + 1);
    let mut all = vec![PatchWork::default(); count.max(owners.len())];
    for (patch, work) in patches {
        all[patch as usize] = work;
    }
    for (patch, work) in all.iter_mut().enumerate() {
        work.owner = owners.get(patch).copied();
        work.triangles = triangles.get(patch).copied().unwrap_or(0);
    }
    all
}

/// The requests that one rank made of another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stolen {
    /// Requests that brought tasks.
    pub served: u64,
    /// Requests that brought none.
    pub refused: u64,
    /// Tasks that came, also without having been asked for again.
    pub tasks: u64,
    /// Time from the requests that brought tasks to their answers in ns, added up.
    pub latency: u64,
}

/// The steals, by thief and victim.
#[must_use]
pub fn steals(tracks: &Tracks) -> BTreeMap<(u32, u32), Stolen> {
    let mut steals: BTreeMap<(u32, u32), Stolen> = BTreeMap::new();
    for (thief, rank) in (0..).zip(&tracks.ranks) {
        for request in &rank.requests {
            let pair = steals.entry((thief, request.victim)).or_default();
            if request.tasks > 0 {
                pair.served += 1;
                pair.latency += request.answered - request.asked.min(request.answered);
            } else {
                pair.refused += 1;
            }
            pair.tasks += u64::from(request.tasks);
        }
        for &(_, victim, tasks) in &rank.gifts {
            steals.entry((thief, victim)).or_default().tasks += u64::from(tasks);
        }
    }
    steals
}

/// How many tasks are of what size, in powers of two: bin `k` holds sizes from `2^(k-1)` up to
/// `2^k`, bin 0 holds 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// Tasks in each bin.
    pub counts: Vec<u64>,
    /// The sums of their sizes in each bin.
    pub sums: Vec<u64>,
}

impl Histogram {
    /// Counts a size.
    pub fn add(&mut self, size: u64) {
        let bin = (u64::BITS - size.leading_zeros()) as usize;
        if self.counts.len() <= bin {
            self.counts.resize(bin + 1, 0);
            self.sums.resize(bin + 1, 0);
        }
        self.counts[bin] += 1;
        self.sums[bin] = self.sums[bin].saturating_add(size);
    }

    /// How many were counted.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }
}

/// Sizes of tasks, as taken up and set down: in tests, and in µs.
#[must_use]
pub fn sizes(tracks: &Tracks) -> [Histogram; 2] {
    let mut sizes = [Histogram::default(), Histogram::default()];
    for task in tracks
        .ranks
        .iter()
        .flat_map(|rank| rank.tasks.iter().flatten())
    {
        sizes[0].add(u64::from(task.tests));
        sizes[1].add((task.end - task.begin) / 1000);
    }
    sizes
}
