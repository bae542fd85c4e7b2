//! Ranks in virtual time: thousands of them in one thread, on a network that is computed.
//!
//! Every rank is a coroutine with a clock of its own. The rank with the smallest clock of those
//! that can go on runs, until it asks for something that a rank behind it could still change: then
//! it waits for the others to catch up. Messages cost what [`Network`] says; computation costs what
//! tasks charge ([`Computation::Modelled`], and then a run depends on nothing but its input: same
//! options, same log, byte for byte) or the time it takes here ([`Computation::Measured`]).
//! Everything that runs on [`Comm`] runs here unchanged, and cannot tell.
//!
//! [`Fault`]s can be made to happen. When every rank waits for a message and none is under way, the
//! run ends with [`CommError::Stuck`] on each, and [`Outcome::dump`] says who waits for whom.
//! (Ranks in a scope look around now and then and never wait like that: what a scope finds out by
//! itself is another error, [`ScopeError::Stuck`](crate::ScopeError::Stuck).)
//!
//! Not here: workers that are threads. A scope on virtual ranks has one worker on each.

mod network;
mod world;

use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe};
use std::thread;
use std::time::Duration;

use corosensei::stack::DefaultStack;
use corosensei::{CoroutineResult, ScopedCoroutine, ScopedCoroutineRef, Yielder};

pub use self::network::{Link, Network};
use self::world::World;
use super::results::{Body, Results};
use super::threads::{LaunchError, panic_message};
use super::{Comm, CommError, Message, Rank, Tag, count_up};
use crate::trace::Subscriber;

/// Stack of the thread that all coroutines are resumed from, per rank.
const ROOT_STACK_PER_RANK: usize = 2 << 10;
const ROOT_STACK: usize = 4 << 20;
/// Stacks of ranks, in bytes.
const LEAST_STACK: usize = 16 << 10;
const MOST_STACK: usize = 1 << 30;
/// Sums of times must fit into a clock.
const LONGEST: Duration = Duration::from_secs(1_000_000_000);

/// The cost of computation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Computation {
    /// A fixed time for each unit that tasks charge; all else is free.
    Modelled {
        /// Time of a unit.
        unit: Duration,
    },
    /// The processor time it takes here, times a factor.
    Measured {
        /// How much slower the modelled machine is than this one.
        factor: f64,
    },
}

/// Something that goes wrong, at a virtual time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    /// A rank computes this many times slower than the others.
    Slow {
        /// The rank.
        rank: Rank,
        /// How many times slower.
        factor: f64,
    },
    /// A rank stands still for a while.
    Stall {
        /// The rank.
        rank: Rank,
        /// The time at which it stops, at the next message it sends or looks for.
        at: Duration,
        /// The length of the halt.
        length: Duration,
    },
    /// Messages are late, each with this probability by up to this much; those of one tag between
    /// two ranks still keep their order.
    Late {
        /// The probability, from 0 to 1.
        probability: f64,
        /// The most that is added.
        delay: Duration,
    },
    /// A rank dies, if it has not ended before: it answers nothing any more, and after a while all
    /// calls of the others answer [`CommError::Died`]. A rank dies once, at the earliest time
    /// given.
    Death {
        /// The rank.
        rank: Rank,
        /// The time at which it dies.
        at: Duration,
        /// How long it takes the others to find out.
        detection: Duration,
    },
}

/// How virtual ranks run.
#[derive(Clone, Debug, PartialEq)]
pub struct VirtualOptions {
    /// The cost of messages.
    pub network: Network,
    /// The cost of computation.
    pub computation: Computation,
    /// Every latency is up to this share longer, at random.
    pub jitter: f64,
    /// Seed of all that is random here.
    pub seed: u64,
    /// Faults that happen on purpose, to test how programs bear them.
    pub faults: Vec<Fault>,
    /// Whether to keep a log of all messages.
    pub record: bool,
    /// Stack of each rank in bytes; only what is used takes memory.
    pub stack: usize,
}

impl Default for VirtualOptions {
    /// The default network, 50 ns a unit, nothing wrong, 1 MiB of stack.
    fn default() -> Self {
        Self {
            network: Network::default(),
            computation: Computation::Modelled {
                unit: Duration::from_nanos(50),
            },
            jitter: 0.0,
            seed: 0,
            faults: Vec::new(),
            record: false,
            stack: 1 << 20,
        }
    }
}

/// The outcome of a run.
#[derive(Clone, Debug)]
pub struct Outcome<R> {
    /// The values that the ranks returned, by rank.
    pub results: Vec<R>,
    /// The clocks of the ranks when they returned.
    pub clocks: Vec<Duration>,
    /// Messages sent.
    pub messages: u64,
    /// Bytes in them.
    pub bytes: u64,
    /// A line for each message sent and each rank's end, in the order of virtual time in which they
    /// were decided; empty unless asked for.
    pub log: Vec<String>,
    /// A text that says which rank waited for which, if the ranks got stuck.
    pub dump: Option<String>,
}

impl<R> Outcome<R> {
    /// The latest clock.
    #[must_use]
    pub fn makespan(&self) -> Duration {
        self.clocks.iter().copied().max().unwrap_or_default()
    }
}

/// Runs `body` on every rank, in virtual time, and returns when all have ended.
///
/// With the feature `tracing` the subscriber of the calling thread hears all ranks.
///
/// # Errors
/// No ranks, more than memory has stacks for, options that make no sense, or a rank that panicked;
/// the others then get [`CommError::Aborted`] from whatever they ask next. [`launch_each`] also
/// tells what they then returned.
pub fn launch<R: Send>(
    ranks: usize,
    options: &VirtualOptions,
    body: impl Fn(&mut dyn Comm) -> R + Sync,
) -> Result<Outcome<R>, LaunchError> {
    let outcome = launch_each(ranks, options, body)?;
    let results = outcome.results.into_iter().collect::<Result<_, _>>()?;
    Ok(Outcome {
        results,
        clocks: outcome.clocks,
        messages: outcome.messages,
        bytes: outcome.bytes,
        log: outcome.log,
        dump: outcome.dump,
    })
}

/// Runs `body` on every rank as [`launch`] does, and returns the results of those that returned
/// beside the errors of those that panicked.
///
/// # Errors
/// No ranks, more than memory has stacks for, or options that make no sense.
pub fn launch_each<R: Send>(
    ranks: usize,
    options: &VirtualOptions,
    body: impl Fn(&mut dyn Comm) -> R + Sync,
) -> Result<Outcome<Result<R, LaunchError>>, LaunchError> {
    let results = Results::new();
    let outcome = on_a_large_stack(ranks, options, &|comm| {
        let result = body(comm);
        results.put(comm.rank(), result);
    })?;
    Ok(Outcome {
        results: results.of(outcome.results),
        clocks: outcome.clocks,
        messages: outcome.messages,
        bytes: outcome.bytes,
        log: outcome.log,
        dump: outcome.dump,
    })
}

/// Runs all ranks on a thread of their own.
fn on_a_large_stack(
    ranks: usize,
    options: &VirtualOptions,
    body: Body<'_>,
) -> Result<Outcome<Ended>, LaunchError> {
    if ranks == 0 {
        return Err(LaunchError::NoRanks);
    }
    check(ranks, options).map_err(LaunchError::Options)?;
    let too_many = |reason: String| LaunchError::TooMany { ranks, reason };
    u32::try_from(ranks).map_err(|e| too_many(e.to_string()))?;
    let subscriber = Subscriber::of_this_thread();
    let root = || subscriber.hears(|| run(ranks, options, body).map_err(too_many));
    // Coroutines nest in scopes, one within the other: that takes stack.
    thread::scope(|scope| {
        thread::Builder::new()
            .name("virtual ranks".to_owned())
            .stack_size(ROOT_STACK + ranks * ROOT_STACK_PER_RANK)
            .spawn_scoped(scope, root)
            .map_err(|e| too_many(e.to_string()))?
            .join()
            .unwrap_or_else(|payload| {
                Err(LaunchError::Panicked {
                    rank: Rank(0),
                    message: panic_message(&*payload),
                })
            })
    })
}

/// Whether options make sense for this many ranks; the error is a sentence.
fn check(ranks: usize, options: &VirtualOptions) -> Result<(), String> {
    let VirtualOptions {
        network,
        computation,
        jitter,
        faults,
        stack,
        ..
    } = options;
    let number = |what: &str, value: f64| match value {
        value if value.is_finite() && value >= 0.0 => Ok(()),
        _ => Err(format!("{what} must be a number from 0 on, not {value}")),
    };
    let time = |what: &str, value: Duration| match value {
        value if value <= LONGEST => Ok(()),
        _ => Err(format!("{what} must be at most {LONGEST:?}, not {value:?}")),
    };
    let here = |rank: Rank| match rank.index() {
        index if index < ranks => Ok(()),
        index => Err(format!(
            "a fault of rank {index}, but there are {ranks} ranks"
        )),
    };
    for (name, link) in [("far", &network.far), ("near", &network.near)] {
        time(&format!("the {name} latency"), link.latency)?;
        time(&format!("the {name} overhead"), link.overhead)?;
        time(&format!("the {name} gap"), link.gap)?;
        number(&format!("the {name} time of a byte"), link.ns_per_byte)?;
    }
    match *computation {
        Computation::Modelled { unit } => time("the time of a unit", unit)?,
        Computation::Measured { factor } => number("the factor of computation", factor)?,
    }
    number("jitter", *jitter)?;
    for fault in faults {
        match *fault {
            Fault::Slow { rank, factor } => {
                here(rank)?;
                number("how many times slower a rank is", factor)?;
            }
            Fault::Stall { rank, at, length } => {
                here(rank)?;
                time("the time of a stall", at)?;
                time("the length of a stall", length)?;
            }
            Fault::Late { probability, delay } => {
                number("the probability of delay", probability)?;
                time("a delay", delay)?;
            }
            Fault::Death {
                rank,
                at,
                detection,
            } => {
                here(rank)?;
                time("the time of a death", at)?;
                time("the time until a death is known", detection)?;
            }
        }
    }
    if !(LEAST_STACK..=MOST_STACK).contains(stack) {
        return Err(format!(
            "the stack of a rank must be from {LEAST_STACK} to {MOST_STACK} bytes, not {stack}"
        ));
    }
    Ok(())
}

type Ended = Result<(), LaunchError>;
type Fibre<'a> = ScopedCoroutine<'a, (), (), Ended, DefaultStack>;
type FibreRef<'a> = ScopedCoroutineRef<'a, (), (), Ended, DefaultStack>;

/// Runs all ranks on this thread; the error is a sentence.
fn run(ranks: usize, options: &VirtualOptions, body: Body<'_>) -> Result<Outcome<Ended>, String> {
    let world = RefCell::new(World::new(ranks, options));
    let mut fibres: Vec<Fibre<'_>> = Vec::with_capacity(ranks);
    for rank in (0..ranks as u32).map(Rank) {
        let stack = DefaultStack::new(options.stack).map_err(|e| format!("no stack: {e}"))?;
        let world = &world;
        fibres.push(ScopedCoroutine::with_stack(stack, move |yielder, ()| {
            world.borrow_mut().resume(rank);
            let mut comm = VirtualComm {
                rank,
                world,
                yielder,
                epochs: 0,
            };
            let ended = panic::catch_unwind(AssertUnwindSafe(|| body(&mut comm)));
            let ended = ended.map_err(|payload| {
                let message = panic_message(&*payload);
                comm.fail(&message);
                LaunchError::Panicked { rank, message }
            });
            world.borrow_mut().end(rank);
            ended
        }));
    }
    let mut results: Vec<Option<Ended>> = (0..ranks).map(|_| None).collect();
    nest(fibres, Vec::with_capacity(ranks), &mut |mut fibres| {
        // The last rank's scope is the innermost.
        loop {
            let next = world.borrow_mut().next();
            let Some(rank) = next else { break };
            if let CoroutineResult::Return(ended) = fibres[rank.index()].as_mut().resume(()) {
                results[rank.index()] = Some(ended);
            }
        }
    });
    let world = world.into_inner();
    let results = results
        .into_iter()
        .map(|ended| ended.ok_or_else(|| "a rank that never ended".to_owned()));
    Ok(Outcome {
        results: results.collect::<Result<_, _>>()?,
        clocks: world.clocks(),
        messages: world.messages,
        bytes: world.bytes,
        log: world.log,
        dump: world.dump,
    })
}

/// Opens the scopes of all coroutines, one within the other, and runs `inside` with all of them.
fn nest<'a>(
    mut closed: Vec<Fibre<'_>>,
    mut open: Vec<FibreRef<'a>>,
    inside: &mut dyn FnMut(Vec<FibreRef<'_>>),
) {
    let Some(last) = closed.pop() else {
        open.reverse();
        inside(open);
        return;
    };
    last.scope(|fibre| {
        let mut open: Vec<FibreRef<'_>> = open;
        open.push(fibre);
        nest(closed, open, inside);
    });
}

/// A rank in virtual time.
struct VirtualComm<'w, 'y> {
    rank: Rank,
    world: &'w RefCell<World>,
    yielder: &'y Yielder<(), ()>,
    epochs: u32,
}

impl VirtualComm<'_, '_> {
    /// Lets ranks that are behind go on, until nothing they send can arrive in this rank's past.
    fn catch_up(&mut self) -> Result<(), CommError> {
        self.world.borrow_mut().account(self.rank);
        while self.world.borrow_mut().is_ahead(self.rank) {
            self.suspend();
        }
        self.world.borrow_mut().check(self.rank)
    }

    /// Tells the others that this rank has panicked: that it is dead, or that all is over.
    fn fail(&mut self, message: &str) {
        let mut world = self.world.borrow_mut();
        world.account(self.rank);
        world.abort(self.rank, &format!("it panicked: {message}"));
    }

    fn suspend(&mut self) {
        self.yielder.suspend(());
        self.world.borrow_mut().resume(self.rank);
    }
}

impl Comm for VirtualComm<'_, '_> {
    fn rank(&self) -> Rank {
        self.rank
    }

    fn size(&self) -> usize {
        self.world.borrow().size()
    }

    fn now(&self) -> Duration {
        self.world.borrow_mut().now(self.rank)
    }

    fn send(&mut self, to: Rank, tag: Tag, bytes: Vec<u8>) -> Result<(), CommError> {
        let mut world = self.world.borrow_mut();
        world.account(self.rank);
        world.check(self.rank)?;
        let sent = world.send(self.rank, to, tag, bytes);
        world.restart();
        sent
    }

    fn try_recv(&mut self, tag: Tag) -> Result<Option<Message>, CommError> {
        self.catch_up()?;
        let mut world = self.world.borrow_mut();
        let found = world.take(self.rank, tag);
        world.restart();
        Ok(found)
    }

    fn recv_from(&mut self, from: Rank, tag: Tag) -> Result<Vec<u8>, CommError> {
        loop {
            self.catch_up()?;
            let mut world = self.world.borrow_mut();
            let found = world.take_from(self.rank, from, tag)?;
            if let Some(bytes) = found {
                world.restart();
                return Ok(bytes);
            }
            drop(world);
            self.world.borrow_mut().block_for(self.rank, from, tag);
            self.suspend();
        }
    }

    fn wait(&mut self, at_most: Duration) -> Result<(), CommError> {
        self.catch_up()?;
        if self.world.borrow_mut().block(self.rank, at_most) {
            self.suspend();
            self.world.borrow_mut().check(self.rank)?;
        }
        Ok(())
    }

    fn close(&mut self, tag: Tag) {
        self.world.borrow_mut().close(self.rank, tag);
    }

    fn reopen(&mut self, tag: Tag) {
        // Messages that have arrived came too early; an error is for the next call.
        drop(self.catch_up());
        self.world.borrow_mut().reopen(self.rank, tag);
    }

    fn next_epoch(&mut self) -> u32 {
        count_up(&mut self.epochs)
    }

    fn node_of(&self, rank: Rank) -> u32 {
        self.world.borrow().node_of(rank)
    }

    fn has_left(&self, rank: Rank) -> bool {
        self.world.borrow().has_left(self.rank, rank)
    }

    fn abort(&mut self, reason: &str) {
        let mut world = self.world.borrow_mut();
        world.account(self.rank);
        world.abort(self.rank, reason);
    }

    fn compute(&mut self, units: u64, took: Duration) -> Duration {
        self.world.borrow_mut().compute(self.rank, units, took)
    }

    fn has_threads(&self) -> bool {
        false
    }
}
