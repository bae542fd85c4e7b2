//! A rank's report of a step.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use weft_runtime::ScopeReport;
use weft_runtime::comm::Comm;
use weft_runtime::trace::{MainTrack, Mark};

use super::certify::Certified;
use super::diagnose::ledger::Ledger;
use super::response::gauss_seidel::Effort;
use crate::solve::{Criterion, Outcome};

/// The phases of a step, in order.
pub const PHASES: [&str; 5] = ["collide", "assemble", "solve", "respond", "share"];

/// The step itself, as the phase in which the others lie.
pub const STEP: &str = "step";

/// The counters of a step: tests made here, iterations of its solves, contacts, impulses; the
/// rounds of the response, its colours, the rounds by which ranks agreed on these, and the messages
/// that the rank sent for all of that; then what certification found, the same on all ranks: pairs
/// that were hit, vertices whose displacements were cut, vertices that bodies let through.
pub const COUNTERS: [&str; 11] = [
    "tests",
    "CG iterations",
    "contacts",
    "impulses",
    "rounds",
    "colours",
    "colouring rounds",
    "response messages",
    "hits",
    "cut",
    "squeezed",
];

/// The reason why a linear solve that succeeded went no further.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Sufficed {
    /// Nothing was solved.
    #[default]
    Nothing,
    /// The start was good enough, by one of the criteria: it took no iteration.
    Start,
    /// `solver.tolerance` was met.
    Relative,
    /// The residual that always suffices was met, which was larger than what `solver.tolerance`
    /// allowed.
    Absolute,
}

impl Sufficed {
    fn of(outcome: &Outcome) -> Self {
        match outcome.criterion {
            _ if outcome.iterations == 0 => Self::Start,
            Criterion::Relative => Self::Relative,
            Criterion::Absolute => Self::Absolute,
        }
    }

    /// Its name in `history.csv`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Nothing => "none",
            Self::Start => "start",
            Self::Relative => "relative",
            Self::Absolute => "absolute",
        }
    }
}

/// How many linear solves stopped for which reason; the same on every rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stops {
    /// The solves that stopped by [`Sufficed::Start`].
    pub start: u64,
    /// The solves that stopped by [`Sufficed::Relative`].
    pub relative: u64,
    /// The solves that stopped by [`Sufficed::Absolute`].
    pub absolute: u64,
}

impl Stops {
    /// Adds those of another step.
    pub fn add(&mut self, other: &Self) {
        self.start += other.start;
        self.relative += other.relative;
        self.absolute += other.absolute;
    }

    fn count(&mut self, sufficed: Sufficed) {
        match sufficed {
            Sufficed::Nothing => {}
            Sufficed::Start => self.start += 1,
            Sufficed::Relative => self.relative += 1,
            Sufficed::Absolute => self.absolute += 1,
        }
    }
}

/// A rank's report of a step. If the step was cut, times and counts of work are sums, also over
/// substeps that were taken back; contacts and constraints are those of the last substep.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepReport {
    /// Iterations of the linear solves.
    pub iterations: u32,
    /// Products with the matrix in them, those that look at the residual included.
    pub products: u32,
    /// The residual of the last one, as a share of what was allowed.
    pub residual: f64,
    /// The reason why the last one went no further.
    pub sufficed: Sufficed,
    /// The reason why all of them did.
    pub stops: Stops,
    /// Linear systems solved.
    pub systems: u32,
    /// The residual at which Newton's method stopped, as a share of what was allowed; 0 if systems
    /// are solved once.
    pub newton_residual: f64,
    /// Substeps that the step was taken in; 1 unless it was cut.
    pub substeps: u32,
    /// Substeps of all its parts, where these have many that share their pairs of features; else 0.
    pub inner: u32,
    /// Pairs of features of cloth that were kept for these, of those whose first vertex this rank
    /// owns.
    pub pairs: u64,
    /// How often one of them was looked at, for its vertices had gone so far that it might push;
    /// the others were pruned.
    pub looked: u64,
    /// How often one of them had its features on the wrong side of each other, and attracted.
    pub inverted: u64,
    /// Time spent in looking at pairs and in their pushes.
    pub repel_time: Duration,
    /// Substeps that failed, were taken back and halved.
    pub halvings: u32,
    /// The reason why the first of them was halved.
    pub halved_because: Option<String>,
    /// Substeps that were accepted because none may be shorter, though an edge changed by more than
    /// `time.strain_change`, or a triangle was stretched far beyond its limit.
    pub rough: u32,
    /// Length of the shortest substep in s.
    pub shortest: f64,
    /// Contacts whose first vertex this rank owns.
    pub contacts: u64,
    /// Vertices of this rank that bodies constrain.
    pub constraints: u64,
    /// Contacts that pushed in the first pass, of those whose first vertex this rank owns.
    pub impulses: u64,
    /// Triangles held at the strain limit in the first pass, of those whose first vertex this rank
    /// owns.
    pub strain_limited: u64,
    /// Edges whose change of length was damped in the first pass, of those whose first vertex this
    /// rank owns.
    pub rate_limited: u64,
    /// Vertices of this rank that had to be kept out of bodies after the solve.
    pub clamped: u64,
    /// Passes in which rows of impulses were collected.
    pub passes: u32,
    /// Rounds of impulses in all passes, the same on all ranks.
    pub rounds: u32,
    /// Rounds after which ranks asked each other how far they are.
    pub looks: u32,
    /// Passes that ended after `contact.iterations` rounds with rows that had not settled, the same
    /// on all ranks.
    pub unsettled: u32,
    /// The change of rate in m/s that the worst row of these still asked for when ranks looked
    /// last, the same on all ranks.
    pub lacking: f64,
    /// Time spent in rounds.
    pub rounds_time: Duration,
    /// The colours and messages of the response to contacts.
    pub sweeps: Effort,
    /// The report on its workers; its trace is that of the last substep.
    pub scope: ScopeReport,
    /// Time in which it made patches ready before its tests, outside of tasks: what tests do that
    /// find one that is not.
    pub early: Duration,
    /// The time at which it began, on the rank's clock.
    pub began: Duration,
    /// Time spent in each of [`PHASES`], which follow each other; but on several ranks a system may
    /// be assembled before its step begins.
    pub times: [Duration; PHASES.len()],
    /// The share of `assemble` that lies before `share`: the next step's system is assembled while
    /// the state of this one travels.
    pub ahead: Duration,
    /// The numbers of certification.
    pub certified: Certified,
    /// Bytes of positions and velocities that other ranks sent to this one.
    pub state_bytes: u64,
    /// The vertices of other ranks whose state this one is sent when the step ends.
    pub ghosts: u64,
    /// Parts of the step in which ranks that know only some vertices sent each other all, for
    /// certification; the same on all ranks.
    pub gathered: u32,
    /// The changes of momentum and energy, for each patch of this rank. Substeps that were taken
    /// back have no part in it.
    pub ledger: Vec<Ledger>,
    /// The step, its phases and its counters, if [`Simulation::record`](super::Simulation::record)
    /// asked for them.
    #[serde(skip)]
    pub marks: Vec<Mark>,
}

impl StepReport {
    /// Takes note of a linear solve.
    pub(crate) fn note(&mut self, outcome: &Outcome) {
        self.systems += 1;
        self.iterations += outcome.iterations;
        self.products += outcome.products;
        self.residual = if outcome.allowed > 0.0 {
            outcome.residual / outcome.allowed
        } else {
            0.0
        };
        self.sufficed = Sufficed::of(outcome);
        self.stops.count(self.sufficed);
    }

    /// Adds a substep, also one that failed.
    pub(crate) fn add(&mut self, part: Self) {
        self.iterations += part.iterations;
        self.products += part.products;
        self.passes += part.passes;
        self.rounds += part.rounds;
        self.looks += part.looks;
        self.unsettled += part.unsettled;
        self.lacking = self.lacking.max(part.lacking);
        self.rounds_time += part.rounds_time;
        self.sweeps.add(part.sweeps);
        self.residual = part.residual;
        self.sufficed = part.sufficed;
        self.stops.add(&part.stops);
        self.systems += part.systems;
        self.newton_residual = part.newton_residual;
        self.inner += part.inner;
        self.pairs += part.pairs;
        self.looked += part.looked;
        self.inverted += part.inverted;
        self.repel_time += part.repel_time;
        self.contacts = part.contacts;
        self.constraints = part.constraints;
        self.impulses += part.impulses;
        self.strain_limited += part.strain_limited;
        self.rate_limited += part.rate_limited;
        self.clamped += part.clamped;
        self.rough += part.rough;
        self.certified.add(&part.certified);
        self.state_bytes += part.state_bytes;
        self.gathered += part.gathered;
        if self.ledger.is_empty() {
            self.ledger = part.ledger;
        } else {
            let pairs = self.ledger.iter_mut().zip(&part.ledger);
            pairs.for_each(|(sums, next)| sums.add_substep(next));
        }
        self.scope.add(&part.scope);
        self.scope.trace = part.scope.trace.or_else(|| self.scope.trace.take());
        self.early += part.early;
        self.ahead += part.ahead;
        for (sum, time) in self.times.iter_mut().zip(part.times) {
            *sum += time;
        }
    }
}

/// Laps of the driver's clock, one for each phase.
pub(crate) struct Clock<'t> {
    pub(crate) now: Duration,
    /// Hears of phases.
    track: &'t mut MainTrack,
}

impl<'t> Clock<'t> {
    /// Starts with the first phase of a part; the step begins with its first part.
    pub(crate) fn start(comm: &dyn Comm, track: &'t mut MainTrack) -> Self {
        let now = comm.now();
        if track.depth() == 0 {
            track.begin(STEP, now);
        }
        track.begin(PHASES[0], now);
        Self { now, track }
    }

    /// Ends the phase, which found or made `count` of something, and begins the next one, if one
    /// follows. Returns how long it took.
    pub(crate) fn lap(
        &mut self,
        comm: &dyn Comm,
        count: Option<(&'static str, u64)>,
        next: Option<&'static str>,
    ) -> Duration {
        let now = comm.now();
        self.track.end(now, count);
        if let Some(next) = next {
            self.track.begin(next, now);
        }
        now.saturating_sub(std::mem::replace(&mut self.now, now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(iterations: u32, criterion: Criterion) -> Outcome {
        Outcome {
            iterations,
            products: iterations,
            residual: 1.0,
            allowed: 2.0,
            criterion,
        }
    }

    #[test]
    fn the_last_solve_is_named_and_all_are_counted() {
        let mut part = StepReport::default();
        assert_eq!(part.sufficed.name(), "none");
        part.note(&outcome(7, Criterion::Absolute));
        assert_eq!(part.sufficed.name(), "absolute");
        part.note(&outcome(7, Criterion::Relative));
        assert_eq!(part.sufficed.name(), "relative");
        // Whatever would have allowed it.
        part.note(&outcome(0, Criterion::Absolute));
        assert_eq!(part.sufficed.name(), "start");
        let mut step = StepReport::default();
        step.add(part.clone());
        step.add(part);
        let stops = Stops {
            start: 2,
            relative: 2,
            absolute: 2,
        };
        assert_eq!((step.sufficed, step.stops), (Sufficed::Start, stops));
    }
}
