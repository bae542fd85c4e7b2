//! Every rank a thread of this process.
//!
//! Messages are bytes, as between machines, and time is real. Each rank has one channel into which
//! all others send; what it does not ask for yet waits in its mailbox. A rank that waits polls for
//! a while, for the answer is often on its way and waking a thread takes longer, then blocks. Where
//! this process has more ranks than cores, of all jobs together, it blocks at once: a thread that
//! polls and lets others run is made to wait for their whole time slices, and one that is woken is
//! not.

use std::any::Any;
use std::hint;
use std::num::NonZero;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TryRecvError, unbounded};
use thiserror::Error;

use super::mailbox::Mailbox;
use super::results::{Body, Results};
use super::{Comm, CommError, Message, Rank, Tag, count_up};
use crate::trace::Subscriber;

/// Polls before a waiting rank lets others run between its polls.
const SPINS: u32 = 512;
/// How long it polls before it blocks: a few times what waking a thread takes.
const POLLING: Duration = Duration::from_micros(200);

/// The ranks of all jobs of this process.
static RANKS: AtomicUsize = AtomicUsize::new(0);

/// Some ranks, which are counted while this lives.
struct Counted(usize);

impl Counted {
    fn new(ranks: usize) -> Self {
        RANKS.fetch_add(ranks, Ordering::Relaxed);
        Self(ranks)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        RANKS.fetch_sub(self.0, Ordering::Relaxed);
    }
}

/// The reason why ranks could not be run to their end.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum LaunchError {
    /// No rank was asked for, and somebody must do the work.
    #[error("a job needs at least one rank; 0 were asked for")]
    NoRanks,
    /// Options that make no sense.
    #[error("{0}")]
    Options(String),
    /// The job has more ranks than can be numbered or started.
    #[error("{ranks} ranks are more than this process can run: {reason}")]
    TooMany {
        /// How many were asked for.
        ranks: usize,
        /// The message of the system.
        reason: String,
    },
    /// A rank panicked; the others were told, and stopped.
    #[error("rank {} panicked: {message}", rank.0)]
    Panicked {
        /// The rank.
        rank: Rank,
        /// The panic's message.
        message: String,
    },
}

/// An item that travels in a channel.
#[derive(Debug)]
enum Envelope {
    Message {
        tag: Tag,
        message: Message,
    },
    /// The sender has ended; it will send nothing more.
    Left(Rank),
    Abort {
        rank: Rank,
        reason: String,
    },
}

/// A rank that is a thread.
#[derive(Debug)]
struct ThreadComm {
    rank: Rank,
    start: Instant,
    peers: Arc<[Sender<Envelope>]>,
    inbox: Receiver<Envelope>,
    mailbox: Mailbox,
    /// Whether each rank has ended.
    left: Vec<bool>,
    /// The cores that the process may use.
    cores: usize,
    epochs: u32,
    aborted: Option<CommError>,
}

/// Runs `body` on every rank, each on a thread of its own, and returns what they returned, by rank.
///
/// With the feature `tracing` the subscriber of the calling thread hears all ranks.
///
/// # Errors
/// No ranks, too many, or a rank that panicked: the other ranks then get [`CommError::Aborted`]
/// from whatever they ask next. [`launch_each`] also tells what they then returned.
pub fn launch<R: Send>(
    ranks: usize,
    body: impl Fn(&mut dyn Comm) -> R + Sync,
) -> Result<Vec<R>, LaunchError> {
    launch_each(ranks, body)?.into_iter().collect()
}

/// Runs `body` on every rank as [`launch`] does, and returns the results of those that returned
/// beside the errors of those that panicked.
///
/// # Errors
/// No ranks, or too many.
pub fn launch_each<R: Send>(
    ranks: usize,
    body: impl Fn(&mut dyn Comm) -> R + Sync,
) -> Result<Vec<Result<R, LaunchError>>, LaunchError> {
    let results = Results::new();
    let ended = run(ranks, &|comm| {
        let result = body(comm);
        results.put(comm.rank(), result);
    })?;
    Ok(results.of(ended))
}

/// Runs a body on every rank: how each of them ended.
#[expect(clippy::disallowed_methods, reason = "a driver reads the clock")]
fn run(ranks: usize, body: Body<'_>) -> Result<Vec<Result<(), LaunchError>>, LaunchError> {
    if ranks == 0 {
        return Err(LaunchError::NoRanks);
    }
    let too_many = |reason: String| LaunchError::TooMany { ranks, reason };
    let last = u32::try_from(ranks - 1).map_err(|e| too_many(e.to_string()))?;
    let start = Instant::now();
    let (peers, inboxes): (Vec<_>, Vec<_>) = (0..ranks).map(|_| unbounded()).unzip();
    let peers: Arc<[Sender<Envelope>]> = peers.into();
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let _counted = Counted::new(ranks);
    let run = |mut comm: ThreadComm| {
        let outcome = panic::catch_unwind(AssertUnwindSafe(|| body(&mut comm)));
        outcome.map_err(|payload| {
            let message = panic_message(&*payload);
            comm.abort(&format!("it panicked: {message}"));
            LaunchError::Panicked {
                rank: comm.rank,
                message,
            }
        })
    };
    let subscriber = &Subscriber::of_this_thread();
    thread::scope(|scope| {
        let mut handles = Vec::with_capacity(ranks);
        for (rank, inbox) in (0..=last).map(Rank).zip(inboxes) {
            let comm = ThreadComm {
                rank,
                start,
                peers: Arc::clone(&peers),
                inbox,
                mailbox: Mailbox::default(),
                left: vec![false; ranks],
                cores,
                epochs: 0,
                aborted: None,
            };
            let named = thread::Builder::new().name(format!("rank {}", rank.0));
            match named.spawn_scoped(scope, || subscriber.hears(|| run(comm))) {
                Ok(handle) => handles.push((rank, handle)),
                Err(error) => {
                    let reason = error.to_string();
                    tell_all(&peers, || Envelope::Abort {
                        rank,
                        reason: reason.clone(),
                    });
                    handles
                        .into_iter()
                        .for_each(|(_, handle)| drop(handle.join()));
                    return Err(too_many(reason));
                }
            }
        }
        let ended = handles.into_iter().map(|(rank, handle)| {
            handle.join().unwrap_or_else(|payload| {
                Err(LaunchError::Panicked {
                    rank,
                    message: panic_message(&*payload),
                })
            })
        });
        Ok(ended.collect())
    })
}

/// The text of a panic.
pub(crate) fn panic_message(payload: &(dyn Any + Send)) -> String {
    payload
        .downcast_ref::<&str>()
        .map(|s| (*s).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned())
}

/// Sends to every rank; those that have gone do not mind.
fn tell_all(peers: &[Sender<Envelope>], envelope: impl Fn() -> Envelope) {
    for peer in peers {
        drop(peer.send(envelope()));
    }
}

impl ThreadComm {
    /// Files what came out of the channel.
    fn accept(&mut self, envelope: Envelope) -> Result<(), CommError> {
        match envelope {
            Envelope::Message { tag, message } => self.mailbox.put(tag, message),
            Envelope::Left(rank) => self.left[rank.index()] = true,
            Envelope::Abort { rank, reason } => {
                self.aborted
                    .get_or_insert(CommError::Aborted { rank, reason });
            }
        }
        self.check()
    }

    /// Takes what has arrived; true if anything had.
    fn poll(&mut self) -> Result<bool, CommError> {
        let mut any = false;
        loop {
            match self.inbox.try_recv() {
                Ok(envelope) => {
                    self.accept(envelope)?;
                    any = true;
                }
                // This rank holds a sender to itself: the channel stays open.
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => return Ok(any),
            }
        }
    }

    /// Waits until something has arrived, or so long.
    fn block(&mut self, at_most: Option<Duration>) -> Result<(), CommError> {
        if RANKS.load(Ordering::Relaxed) <= self.cores {
            for _ in 0..SPINS {
                if self.poll()? {
                    return Ok(());
                }
                hint::spin_loop();
            }
            let begin = self.now();
            while self.now() - begin < POLLING {
                thread::yield_now();
                if self.poll()? {
                    return Ok(());
                }
            }
        }
        let envelope = match at_most {
            None => self
                .inbox
                .recv()
                .map_err(|_| RecvTimeoutError::Disconnected),
            Some(time) => self.inbox.recv_timeout(time),
        };
        envelope.map_or(Ok(()), |envelope| self.accept(envelope))
    }

    fn check(&self) -> Result<(), CommError> {
        self.aborted.clone().map_or(Ok(()), Err)
    }

    fn peer(&self, to: Rank) -> Result<&Sender<Envelope>, CommError> {
        self.peers.get(to.index()).ok_or(CommError::NoSuchRank {
            to,
            size: self.peers.len(),
        })
    }
}

impl Comm for ThreadComm {
    fn rank(&self) -> Rank {
        self.rank
    }

    fn size(&self) -> usize {
        self.peers.len()
    }

    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn send(&mut self, to: Rank, tag: Tag, bytes: Vec<u8>) -> Result<(), CommError> {
        self.check()?;
        let message = Message {
            from: self.rank,
            bytes,
        };
        // A rank that has gone needs no message; one that still waits for it hears of it when it
        // asks.
        drop(self.peer(to)?.send(Envelope::Message { tag, message }));
        Ok(())
    }

    fn try_recv(&mut self, tag: Tag) -> Result<Option<Message>, CommError> {
        self.check()?;
        self.poll()?;
        Ok(self.mailbox.take(tag))
    }

    fn recv_from(&mut self, from: Rank, tag: Tag) -> Result<Vec<u8>, CommError> {
        self.check()?;
        self.peer(from)?;
        loop {
            if let Some(bytes) = self.mailbox.take_from(from, tag) {
                return Ok(bytes);
            }
            if self.left[from.index()] {
                return Err(CommError::Left {
                    rank: from,
                    waiting: self.rank,
                });
            }
            if from == self.rank {
                // Messages of a rank to itself have arrived already.
                if self.poll()? {
                    continue;
                }
                return Err(CommError::Left {
                    rank: from,
                    waiting: from,
                });
            }
            self.block(None)?;
        }
    }

    fn wait(&mut self, at_most: Duration) -> Result<(), CommError> {
        self.check()?;
        if !self.mailbox.has_news() {
            self.block(Some(at_most))?;
        }
        Ok(())
    }

    fn close(&mut self, tag: Tag) {
        self.mailbox.close(tag);
    }

    fn reopen(&mut self, tag: Tag) {
        // Messages that have arrived came too early; an error is kept for the next call.
        drop(self.poll());
        self.mailbox.reopen(tag);
    }

    fn next_epoch(&mut self) -> u32 {
        count_up(&mut self.epochs)
    }

    fn node_of(&self, _rank: Rank) -> u32 {
        0
    }

    fn has_left(&self, rank: Rank) -> bool {
        // One sender's envelopes keep their order.
        self.left.get(rank.index()) == Some(&true)
    }

    fn abort(&mut self, reason: &str) {
        if self.aborted.is_none() {
            let rank = self.rank;
            self.aborted = Some(CommError::Aborted {
                rank,
                reason: reason.to_owned(),
            });
            tell_all(&self.peers, || Envelope::Abort {
                rank,
                reason: reason.to_owned(),
            });
        }
    }
}

impl Drop for ThreadComm {
    fn drop(&mut self) {
        let rank = self.rank;
        tell_all(&self.peers, || Envelope::Left(rank));
    }
}
