//! The place of `emit.rs` in builds without the feature `tracing`: nobody hears of anything.

use std::time::Duration;

use super::What;
use crate::comm::{Comm, Rank};

/// Tells whether a `tracing` subscriber wants any event of a scope: never, in a build without the
/// feature `tracing`.
#[must_use]
pub fn is_listened() -> bool {
    false
}

/// The subscriber of a thread: there is none.
pub(crate) struct Subscriber;

impl Subscriber {
    pub(crate) fn of_this_thread() -> Self {
        Self
    }

    pub(crate) fn hears<R>(&self, body: impl FnOnce() -> R) -> R {
        body()
    }
}

/// The spans of a scope that a rank reports: none, in a build without `tracing`.
#[derive(Clone, Debug)]
pub(super) enum ScopeEvents {}

impl ScopeEvents {
    pub(super) fn new<'n>(_rank: Rank, _kinds: impl Iterator<Item = &'n str>) -> Option<Self> {
        None
    }

    pub(super) fn tell(&mut self, _at: u64, _what: What) {
        match *self {}
    }
}

/// A span that nobody hears of.
#[derive(Debug)]
pub(crate) struct OpenSpan;

impl OpenSpan {
    pub(super) fn phase(
        _rank: Rank,
        _name: &str,
        _parent: Option<&Self>,
        _at: u64,
        _enters: bool,
    ) -> Self {
        Self
    }

    pub(crate) fn collective<C: Comm + ?Sized>(_comm: &C, _name: &str) -> Self {
        Self
    }

    pub(crate) fn end_at(self, _at: impl FnOnce() -> Duration) {}

    pub(super) fn end(self, _at: u64, _count: Option<(&str, u64)>) {}
}

pub(super) fn counter(_rank: Rank, _within: Option<&OpenSpan>, _counter: (&str, u64), _at: u64) {}

pub(super) fn waited(_rank: Rank, _what: &str, _from: Rank, _time: (u64, u64)) {}
