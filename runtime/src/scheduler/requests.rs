//! The thief's side of stealing: whom to ask, when, and what is still unanswered.

use std::time::Duration;

use super::line::GroupId;
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

/// What this rank has asked for.
#[derive(Debug)]
pub(super) struct Requests {
    victims: Option<Box<dyn VictimState>>,
    timeout: Duration,
    open: Vec<Request>,
    refused_in_a_row: u32,
    pause: Duration,
    resume_at: Duration,
    /// Lifelines this rank waits on instead of asking, and for tasks of which group.
    registered: Vec<Rank>,
    registered_for: Option<GroupId>,
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
            registered: Vec::new(),
            registered_for: None,
            turn: 0,
        }
    }

    /// Whom to ask now: one of `thieves`, who have what is wanted, or if there are none whom the policy says.
    pub(super) fn next(&mut self, now: Duration, thieves: &[Rank]) -> Option<Rank> {
        let victims = self.victims.as_mut()?;
        let rests = thieves.is_empty() && !self.registered.is_empty();
        if now < self.resume_at || rests || self.open.len() >= MOST_OPEN {
            return None;
        }
        for request in &mut self.open {
            request.overdue |= now >= request.at + self.timeout;
        }
        let waiting = self.open.iter().filter(|r| !r.overdue);
        let to = if thieves.is_empty() {
            let waiting: Vec<Rank> = waiting.map(|r| r.to).collect();
            victims.next(&waiting)?
        } else {
            if waiting.count() > 0 {
                return None;
            }
            // They may have lent it to others who wait in joins themselves: those are found by chance.
            self.turn = (self.turn + 1) % (thieves.len() + 1);
            match thieves.get(self.turn) {
                Some(&thief) => thief,
                None => victims.next(&[])?,
            }
        };
        self.open.push(Request {
            to,
            at: now,
            overdue: false,
        });
        Some(to)
    }

    /// Whom to register with, once, now that asking for tasks of a group has brought nothing for long.
    pub(super) fn lifelines(&mut self, within: Option<GroupId>) -> Vec<Rank> {
        let Some(victims) = &self.victims else {
            return Vec::new();
        };
        if self.registered_for != within {
            // What it waited for then is not what it wants now.
            self.registered.clear();
            self.registered_for = within;
        }
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

    /// A rank died: it will answer nothing. How many requests that were.
    pub(super) fn lose(&mut self, rank: Rank) -> u64 {
        let before = self.open.len();
        self.open.retain(|request| request.to != rank);
        self.registered.retain(|&other| other != rank);
        if let Some(victims) = &mut self.victims {
            victims.lost(rank);
        }
        (before - self.open.len()) as u64
    }

    /// When there is something to do again even if no message comes; `None` if never.
    pub(super) fn deadline(&self) -> Option<Duration> {
        let asks = self.registered.is_empty() && self.open.len() < MOST_OPEN;
        if self.victims.is_none() || !asks {
            return None;
        }
        let waiting = self.open.iter().filter(|r| !r.overdue);
        let timeout = waiting.map(|r| r.at + self.timeout).min();
        Some(timeout.unwrap_or(self.resume_at))
    }

    pub(super) fn unanswered(&self) -> usize {
        self.open.len()
    }
}
