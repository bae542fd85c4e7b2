//! The thief's side of stealing: whom to ask, when, and what is still unanswered.

use std::time::Duration;

use super::ancestry::GroupId;
use crate::comm::Rank;
use crate::policy::VictimState;

/// Requests that may be unanswered at once, those that timed out included.
const MOST_OPEN: usize = 8;
/// Refusals in a row after which a rank pauses between requests.
const PATIENCE: u32 = 8;
/// The first such pause, and the longest; each is twice the last.
const FIRST_PAUSE: Duration = Duration::from_micros(2);
const LONGEST_PAUSE: Duration = Duration::from_micros(32);

#[derive(Clone, Copy, Debug)]
struct Request {
    to: Rank,
    at: Duration,
    /// It timed out; it may still bring work, and stays counted.
    overdue: bool,
}

/// An answer that was waited for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answered {
    pub(super) round_trip: Duration,
    pub(super) late: bool,
}

/// The requests of this rank.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct Requests {
    victims: Option<Box<dyn VictimState>>,
    timeout: Duration,
    open: Vec<Request>,
    refused_in_a_row: u32,
    pause: Duration,
    resume_at: Duration,
    /// The group of which tasks are wanted, if only those are.
    within: Option<GroupId>,
    /// Lifelines this rank waits on instead of asking.
    registered: Vec<Rank>,
    /// Turns through the thieves of a group.
    turn: usize,
}

impl Requests {
    /// Without victims nobody is ever asked.
    pub(super) fn new(victims: Option<Box<dyn VictimState>>, timeout: Duration) -> Self {
        Self {
            victims,
            timeout,
            open: Vec::new(),
            refused_in_a_row: 0,
            pause: FIRST_PAUSE,
            resume_at: Duration::ZERO,
            within: None,
            registered: Vec::new(),
            turn: 0,
        }
    }

    /// Tasks of this group are wanted from now on. Lifelines that know of another are of no use.
    pub(super) fn want(&mut self, within: Option<GroupId>) {
        if self.within != within {
            self.within = within;
            self.registered.clear();
            self.refused_in_a_row = 0;
        }
    }

    /// The rank to ask now: one of `thieves`, who were given the wanted tasks, or a victim of the
    /// policy. The victim comes after all thieves, for they may have given tasks on.
    pub(super) fn next(&mut self, now: Duration, thieves: &[Rank]) -> Option<Rank> {
        let victims = self.victims.as_mut()?;
        if now < self.resume_at || !self.registered.is_empty() || self.open.len() >= MOST_OPEN {
            return None;
        }
        for request in &mut self.open {
            request.overdue |= now >= request.at.saturating_add(self.timeout);
        }
        let waiting = self.open.iter().filter(|r| !r.overdue);
        let waiting: Vec<Rank> = waiting.map(|r| r.to).collect();
        if !thieves.is_empty() && !waiting.is_empty() {
            return None;
        }
        let turn = self.turn % (thieves.len() + 1);
        let to = match thieves.get(turn) {
            Some(&thief) => thief,
            None => victims.next(&waiting)?,
        };
        self.turn = turn + 1;
        self.open.push(Request {
            to,
            at: now,
            overdue: false,
        });
        Some(to)
    }

    /// The ranks to register with, once, when asking has brought nothing for long.
    pub(super) fn lifelines(&mut self) -> Vec<Rank> {
        let Some(victims) = &self.victims else {
            return Vec::new();
        };
        let patient = self.refused_in_a_row < victims.refusals_before_lifelines();
        if patient || !self.registered.is_empty() || !self.open.is_empty() {
            return Vec::new();
        }
        self.registered = victims.lifelines().to_vec();
        self.registered.clone()
    }

    /// Tasks came without having been asked for.
    pub(super) fn gift(&mut self) {
        self.registered.clear();
        self.refused_in_a_row = 0;
    }

    /// An answer came; `None` if nobody had asked for it.
    pub(super) fn answered(&mut self, from: Rank, now: Duration, tasks: bool) -> Option<Answered> {
        let at = self.open.iter().position(|r| r.to == from)?;
        let request = self.open.remove(at);
        let round_trip = now.saturating_sub(request.at);
        if let Some(victims) = &mut self.victims {
            victims.answered(from, tasks);
        }
        if tasks {
            self.refused_in_a_row = 0;
            self.pause = FIRST_PAUSE;
            self.registered.clear();
        } else {
            self.refused_in_a_row += 1;
            if self.refused_in_a_row > PATIENCE {
                self.resume_at = now + self.pause;
                self.pause = (self.pause * 2).min(LONGEST_PAUSE);
            }
        }
        Some(Answered {
            round_trip,
            late: request.overdue || round_trip >= self.timeout,
        })
    }

    /// When there is something to do again even if no message comes; `None` if never.
    pub(super) fn deadline(&self) -> Option<Duration> {
        let asks = self.registered.is_empty() && self.open.len() < MOST_OPEN;
        if self.victims.is_none() || !asks {
            return None;
        }
        let waiting = self.open.iter().filter(|r| !r.overdue);
        let timeout = waiting.map(|r| r.at.saturating_add(self.timeout)).min();
        Some(timeout.unwrap_or(self.resume_at))
    }

    /// Returns everything that decides how it goes on, but for times and the number of refusals.
    #[cfg(test)]
    pub(super) fn essence(&self) -> impl std::fmt::Debug {
        let open: Vec<_> = self.open.iter().map(|r| (r.to, r.overdue)).collect();
        (open, self.within, &self.registered, self.turn)
    }

    pub(super) fn unanswered(&self) -> usize {
        self.open.len()
    }
}
