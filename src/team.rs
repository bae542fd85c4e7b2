//! The threads of a rank in loops over what the rank owns.
//!
//! Collision tests are tasks of the runtime, which shares them by itself and only borrows the
//! threads; assembly, solve and corrections are loops in which every row does about the same. Here
//! a loop is cut into as many shares as there are threads, each a run of patches. A share writes
//! its own numbers only. Every sum is per patch or per row, in one order, whichever thread computes
//! it: the number of threads shows in no bit.
//!
//! Threads stay awake between loops, for waking them takes as long as a short loop; but not where
//! all teams of the process that are at work have more threads than there are cores: who looks for
//! work then keeps the one from its core that has it.

use std::borrow::Borrow;
use std::cell::Cell;
use std::io;
use std::num::NonZero;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::available_parallelism;

use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder, Yield};
use weft_runtime::{ScopedThreads, ThreadProvider, WorkerThread};

use crate::heap_bytes::counts_heap;

/// How often a thread that is done looks for the others before it lets the system wake it.
const SPINS: u32 = 5_000;
/// How often a thread that stays awake then lets others have its core, before it sleeps all the
/// same: longer than what one thread does alone between loops.
const YIELDS: u32 = 40_000;
/// How often it looks once nobody wants it awake any more: longer than what lies between two steps,
/// of which the next would have to wake it.
const LINGERS: u32 = 10_000;

/// Threads of all teams of this process that are at work.
static AT_WORK: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Whether this thread stays awake already.
    static WATCHES: Cell<bool> = const { Cell::new(false) };
    /// Whether this thread's team is counted as being at work.
    static LEADS: Cell<bool> = const { Cell::new(false) };
}

/// Threads that take shares of loops. Clones are the same threads.
#[derive(Clone, Debug, Default)]
pub struct Team {
    /// All threads but the one that calls; none if it is alone.
    pool: Option<Arc<Pool>>,
}

#[derive(Debug)]
struct Pool {
    threads: ThreadPool,
    /// How many calls of [`Team::awake`] have not returned.
    wanted: Arc<AtomicUsize>,
}

impl Team {
    /// A team of this many threads, the caller's among them.
    ///
    /// # Errors
    /// The system does not give that many threads.
    pub fn new(threads: usize) -> Result<Self, ThreadPoolBuildError> {
        if threads <= 1 {
            return Ok(Self::default());
        }
        let threads = ThreadPoolBuilder::new()
            .num_threads(threads - 1)
            .thread_name(|index| format!("weft-team-{}", index + 1))
            .build()?;
        let wanted = Arc::default();
        Ok(Self {
            pool: Some(Arc::new(Pool { threads, wanted })),
        })
    }

    /// How many threads there are.
    #[must_use]
    pub fn threads(&self) -> usize {
        1 + self
            .pool
            .as_ref()
            .map_or(0, |pool| pool.threads.current_num_threads())
    }

    /// Works on all shares at once; the caller takes the last one, as it takes the last of the
    /// tasks that it forks: what it has in its caches from one is of use in the other.
    pub fn run<S: Send>(&self, shares: impl IntoIterator<Item = S>, work: impl Fn(S) + Sync) {
        let mut shares = shares.into_iter();
        let Some(pool) = &self.pool else {
            shares.for_each(work);
            return;
        };
        let Some(mut own) = shares.next() else { return };
        let open = AtomicUsize::new(0);
        let (work, open) = (&work, &open);
        pool.threads.in_place_scope(|scope| {
            for next in shares {
                let share = std::mem::replace(&mut own, next);
                open.fetch_add(1, Ordering::Relaxed);
                scope.spawn(move |_| {
                    work(share);
                    open.fetch_sub(1, Ordering::Release);
                });
            }
            work(own);
            // Shares are even: the others end about now.
            spin_until_none(open);
        });
    }

    /// Runs something with many loops, one soon after the other: between these the threads look for
    /// shares instead of sleeping, for waking them takes as long as a short loop. They go on
    /// looking for a moment after it, for the next may follow soon. A thread that finds none for
    /// long sleeps all the same.
    pub fn awake<R>(&self, work: impl FnOnce() -> R) -> R {
        let _at_work = AtWork::begin(self);
        let Some(pool) = &self.pool else {
            return work();
        };
        pool.wanted.fetch_add(1, Ordering::Relaxed);
        let _over = Over(&pool.wanted);
        if !is_crowded() {
            let wanted = Arc::clone(&pool.wanted);
            pool.threads.spawn_broadcast(move |_| watch(&wanted));
        }
        work()
    }

    /// Cuts this many elements into as many shares as there are threads; fewer if there are few
    /// elements.
    #[must_use]
    pub(crate) fn cut_even(&self, elements: usize) -> Shares {
        /// The fewest elements that are worth waking a thread for.
        const FEWEST: usize = 64;
        let chunks: Vec<Range<usize>> = (0..elements)
            .step_by(FEWEST)
            .map(|start| start..(start + FEWEST).min(elements))
            .collect();
        self.cut(&chunks)
    }

    /// Cuts elements of these weights into as many ranges as there are threads, of about the same
    /// weight each; fewer if there are few elements.
    #[must_use]
    pub(crate) fn cut_weighted(&self, weights: impl IntoIterator<Item = u64>) -> Vec<Range<usize>> {
        let weights: Vec<u64> = weights.into_iter().collect();
        let threads = self.threads().min(weights.len()).max(1);
        let whole: u64 = weights.iter().sum();
        let (mut at, mut sum) = (0, 0);
        let cut = |thread: usize| {
            let (start, left) = (at, threads - thread - 1);
            let target = whole * (thread as u64 + 1) / threads as u64;
            // As near to the target as weights allow, leaving at least one element for each thread
            // to come.
            while at < weights.len() - left
                && (at == start || left == 0 || 2 * sum + weights[at] <= 2 * target)
            {
                sum += weights[at];
                at += 1;
            }
            start..at
        };
        (0..threads).map(cut).collect()
    }

    /// Cuts a sequence of ranges that follow each other, such as the patches of a rank, into a run
    /// of them for each thread, of about as many elements each; fewer runs if there are fewer
    /// ranges.
    #[must_use]
    pub fn cut(&self, ranges: &[Range<usize>]) -> Shares {
        let threads = self.threads().min(ranges.len()).max(1);
        let (Some(first), Some(last)) = (ranges.first(), ranges.last()) else {
            return Shares::default();
        };
        let (start, end) = (first.start, last.end);
        let mut shares = Shares {
            team: self.clone(),
            ..Shares::default()
        };
        let mut at = 0;
        for thread in 0..threads {
            let target = start + (end - start) * (thread + 1) / threads;
            let left = threads - thread - 1;
            let mut to = at + 1;
            // As near to the target as ranges allow, leaving at least one for each thread to come.
            while to + left < ranges.len() && ranges[to].start + ranges[to].end <= 2 * target {
                to += 1;
            }
            if left == 0 {
                to = ranges.len();
            }
            shares.ranges.push(at..to);
            shares.elements.push(ranges[at].start..ranges[to - 1].end);
            at = to;
        }
        shares
    }
}

/// Stops threads of this process from staying awake between loops, from now on: others want the
/// cores, and it does not see them.
pub fn share_cores() {
    // More than any machine has.
    AT_WORK.fetch_add(1 << 24, Ordering::Relaxed);
}

/// Whether more threads are at work than there are cores.
fn is_crowded() -> bool {
    static CORES: OnceLock<usize> = OnceLock::new();
    let cores = *CORES.get_or_init(|| available_parallelism().map_or(1, NonZero::get));
    AT_WORK.load(Ordering::Relaxed) > cores
}

/// Waits for the last of this many threads, if it ends soon: sooner than the system would wake this
/// one.
fn spin_until_none(open: &AtomicUsize) {
    for _ in 0..SPINS {
        if is_crowded() || open.load(Ordering::Acquire) == 0 {
            break;
        }
        std::hint::spin_loop();
    }
}

/// Looks for shares as long as somebody wants this thread awake, and a little longer.
fn watch(wanted: &AtomicUsize) {
    if WATCHES.replace(true) {
        // It came by this while it looked.
        return;
    }
    let (mut idle, mut lingers) = (0, 0);
    while idle < SPINS + YIELDS && lingers < LINGERS && !is_crowded() {
        if rayon::yield_now() == Some(Yield::Executed) {
            (idle, lingers) = (0, 0);
            continue;
        }
        if idle < SPINS {
            std::hint::spin_loop();
        } else {
            // Perhaps the caller, whose core somebody has.
            std::thread::yield_now();
        }
        idle += 1;
        lingers = if wanted.load(Ordering::Relaxed) == 0 {
            lingers + 1
        } else {
            0
        };
    }
    WATCHES.set(false);
}

impl ThreadProvider for Team {
    fn run<'w>(
        &self,
        workers: Vec<WorkerThread<'w>>,
        main: Box<dyn FnOnce() + 'w>,
    ) -> io::Result<()> {
        let pool = match &self.pool {
            Some(pool) if workers.len() <= pool.threads.current_num_threads() => &pool.threads,
            _ => return ScopedThreads.run(workers, main),
        };
        let open = AtomicUsize::new(workers.len());
        let open = &open;
        pool.in_place_scope(|scope| {
            for worker in workers {
                scope.spawn(move |_| {
                    (worker.run)();
                    open.fetch_sub(1, Ordering::Release);
                });
            }
            main();
            spin_until_none(open);
        });
        Ok(())
    }
}

/// A guard: this many threads are at work until it is dropped.
struct AtWork(usize);

impl AtWork {
    /// `None` where this thread's team is counted already: it may ask for more within what it does.
    fn begin(team: &Team) -> Option<Self> {
        if LEADS.replace(true) {
            return None;
        }
        AT_WORK.fetch_add(team.threads(), Ordering::Relaxed);
        Some(Self(team.threads()))
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        AT_WORK.fetch_sub(self.0, Ordering::Relaxed);
        LEADS.set(false);
    }
}

/// Counts down when it is dropped.
struct Over<'a>(&'a AtomicUsize);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The work of each thread of a [`Team`].
#[derive(Clone, Debug, Default)]
pub struct Shares {
    team: Team,
    /// The ranges of each thread, among those that were cut.
    pub ranges: Vec<Range<usize>>,
    /// The elements in the ranges of each thread.
    pub elements: Vec<Range<usize>>,
}

counts_heap!(Shares: ranges, elements; without team);

impl Shares {
    /// The threads that share.
    #[must_use]
    pub fn team(&self) -> &Team {
        &self.team
    }

    /// Works on all shares at once, see [`Team::run`].
    pub fn run<S: Send>(&self, shares: impl IntoIterator<Item = S>, work: impl Fn(S) + Sync) {
        self.team.run(shares, work);
    }
}

/// The parts of a slice at ranges that follow each other; the slice begins where the first one
/// does.
///
/// # Panics
/// If the ranges do not, or the slice is shorter.
pub fn parts<'s, T, R: Borrow<Range<usize>>, I: IntoIterator<Item = R>>(
    slice: &'s mut [T],
    ranges: I,
) -> impl Iterator<Item = &'s mut [T]> + use<'s, T, R, I> {
    let mut rest = slice;
    let mut at = None;
    ranges.into_iter().map(move |range| {
        let range = range.borrow();
        assert!(
            at.is_none_or(|at| at == range.start),
            "ranges follow each other"
        );
        at = Some(range.end);
        let (part, behind) = std::mem::take(&mut rest).split_at_mut(range.len());
        rest = behind;
        part
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_element_is_in_one_share(lengths in prop::collection::vec(1usize..50, 0..40), threads in 1usize..9) {
            let team = Team::new(threads).unwrap();
            let mut at = 0;
            let ranges: Vec<Range<usize>> = lengths.iter().map(|&length| {
                at += length;
                at - length..at
            }).collect();
            let shares = team.cut(&ranges);
            prop_assert!(shares.elements.len() == threads.min(lengths.len()));
            let mut touched = vec![0; at];
            let work: Vec<_> = parts(&mut touched, &shares.elements).zip(&shares.ranges).collect();
            shares.run(work, |(part, of)| {
                part.iter_mut().for_each(|count| *count += of.len());
            });
            let mut expected = Vec::new();
            for share in &shares.ranges {
                for range in &ranges[share.clone()] {
                    expected.extend(std::iter::repeat_n(share.len(), range.len()));
                }
            }
            prop_assert_eq!(touched, expected);
            let longest = lengths.iter().max().copied().unwrap_or(0);
            for share in &shares.elements {
                prop_assert!(share.len() <= at / threads.min(lengths.len()).max(1) + 2 * longest);
            }
        }
    }

    proptest! {
        #[test]
        fn shares_of_weights_follow_each_other_and_are_as_even_as_the_weights_allow(
            weights in prop::collection::vec(0u64..50, 0..60), threads in 1usize..9
        ) {
            let shares = Team::new(threads).unwrap().cut_weighted(weights.iter().copied());
            let mut at = 0;
            let count = threads.min(weights.len()).max(1);
            prop_assert_eq!(shares.len(), count);
            let longest = weights.iter().max().copied().unwrap_or(0);
            let mean = weights.iter().sum::<u64>() / count as u64;
            for share in &shares {
                prop_assert_eq!(share.start, at);
                prop_assert!(!share.is_empty() || weights.is_empty());
                at = share.end;
                let own: u64 = weights[share.clone()].iter().sum();
                // Elements that are left for threads to come may weigh nothing, and the last takes
                // what is left.
                prop_assert!(own <= mean + 2 * longest + 1 || share.end == weights.len());
            }
            prop_assert_eq!(at, weights.len());
        }
    }

    #[test]
    fn a_panic_in_a_share_reaches_the_caller() {
        let team = Team::new(3).unwrap();
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            team.run([0, 1, 2], |share| assert_ne!(share, 0, "another one"));
        }));
        assert!(outcome.is_err());
    }

    #[test]
    fn threads_that_stay_awake_take_shares_and_end_with_a_panic() {
        let team = Team::new(3).unwrap();
        let counts = team.awake(|| {
            let counts = [const { AtomicUsize::new(0) }; 3];
            for _ in 0..1000 {
                team.run(&counts, |count| {
                    count.fetch_add(1, Ordering::Relaxed);
                });
            }
            counts.map(AtomicUsize::into_inner)
        });
        assert_eq!(counts, [1000; 3]);
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            team.awake(|| team.run([0, 1, 2], |share| assert_ne!(share, 2, "the own one")));
        }));
        assert!(outcome.is_err());
    }
}
