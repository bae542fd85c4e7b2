//! The place in which ranks of one process put what they return, so that a driver is compiled once
//! and not for every body.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::threads::LaunchError;
use super::{Comm, Rank};

/// The function that a driver runs on every rank; what it returns goes to its [`Results`].
pub(super) type Body<'a> = &'a (dyn Fn(&mut dyn Comm) + Sync);

/// The results of the ranks that have returned so far.
pub(super) struct Results<R>(Mutex<BTreeMap<Rank, R>>);

impl<R> Results<R> {
    pub(super) fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    pub(super) fn put(&self, rank: Rank, result: R) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(rank, result);
    }

    /// Returns for each rank the body's value, or how else it ended.
    pub(super) fn of(self, ended: Vec<Result<(), LaunchError>>) -> Vec<Result<R, LaunchError>> {
        let all = self.0.into_inner();
        let mut all = all.unwrap_or_else(PoisonError::into_inner);
        let by_rank = (0..).map(Rank).zip(ended);
        let both = by_rank.filter_map(|(rank, ended)| match ended {
            Ok(()) => all.remove(&rank).map(Ok),
            Err(error) => Some(Err(error)),
        });
        both.collect()
    }
}
