//! A rank's report of a scope.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::comm::Rank;
use crate::scheduler::Counts;
use crate::trace::Trace;

/// A rank's report of a scope.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ScopeReport {
    /// Tasks that finished here, pieces included.
    pub tasks: u64,
    /// Children hyperforked here.
    pub hyperforks: u64,
    /// Pieces that tasks running here gave away.
    pub splits: u64,
    /// Units of work that tasks charged here.
    pub work: u64,
    /// Steal requests this rank sent.
    pub requests: u64,
    /// Requests of its own that brought tasks.
    pub served: u64,
    /// Requests of its own that brought nothing.
    pub refused: u64,
    /// Answers that came after the time-out.
    pub late: u64,
    /// Tasks stolen by this rank.
    pub tasks_in: u64,
    /// Tasks stolen from this rank.
    pub tasks_out: u64,
    /// Tasks dropped here because their group was cancelled.
    pub dropped: u64,
    /// Blocks fetched from other ranks.
    pub fetches: u64,
    /// Blocks served to other ranks.
    pub blocks_served: u64,
    /// Bytes this rank sent for the protocol.
    pub bytes: u64,
    /// Time each worker spent in tasks.
    pub busy: Vec<Duration>,
    /// Time spent with what the body does [meanwhile](crate::Scope::meanwhile).
    pub meanwhile: Duration,
    /// Time from start to end of the scope.
    pub elapsed: Duration,
    /// The messages that tasks have [posted](crate::Context::post) to this rank, with the ranks on
    /// which they ran. They are sorted by these ranks, and of each rank in the order in which they
    /// were posted, without those that were taken [meanwhile](crate::Scope::meanwhile).
    #[serde(skip)]
    pub messages: Vec<(Rank, Vec<u8>)>,
    /// The trace of events, if [`ScopeOptions::trace`](crate::ScopeOptions::trace) asked for it.
    pub trace: Option<Trace>,
}

impl ScopeReport {
    /// Adds what the same rank did in another scope, without messages and trace.
    pub fn add(&mut self, other: &Self) {
        self.tasks += other.tasks;
        self.hyperforks += other.hyperforks;
        self.splits += other.splits;
        self.work += other.work;
        self.requests += other.requests;
        self.served += other.served;
        self.refused += other.refused;
        self.late += other.late;
        self.tasks_in += other.tasks_in;
        self.tasks_out += other.tasks_out;
        self.dropped += other.dropped;
        self.fetches += other.fetches;
        self.blocks_served += other.blocks_served;
        self.bytes += other.bytes;
        if self.busy.len() < other.busy.len() {
            self.busy.resize(other.busy.len(), Duration::ZERO);
        }
        for (mine, theirs) in self.busy.iter_mut().zip(&other.busy) {
            *mine += *theirs;
        }
        self.meanwhile += other.meanwhile;
        self.elapsed += other.elapsed;
    }

    pub(super) fn count(&mut self, counts: Counts) {
        self.requests = counts.requests;
        self.served = counts.served;
        self.refused = counts.refused;
        self.late = counts.late;
        self.tasks_in = counts.tasks_in;
        self.tasks_out = counts.tasks_out;
        self.splits = counts.splits;
        self.dropped = counts.dropped;
        self.fetches = counts.fetches;
        self.blocks_served = counts.blocks_served;
    }
}
