//! The result of a run: what its caller gets, and what ranks report to rank 0.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use weft_runtime::ScopeReport;

use super::timers::OUTPUTS;
use super::tracing::{TraceSummary, Traces};
use super::{Audit, Cause, CertifiedTotals, Cuts, RunOptions};
use crate::diagnostics::{Balance, PhaseTable};
use crate::export::Exported;
use crate::output::{FrameAudit, HistoryMark, RankRecord, StateHash};
use crate::step::{MemoryPart, PHASES, StepReport, Stops};

/// The result of a run.
#[derive(Clone, Debug)]
pub struct RunSummary {
    /// Hash of the last state, which does not depend on ranks, workers or schedule.
    pub hash: StateHash,
    /// Steps taken.
    pub steps: u64,
    /// Cloth vertices.
    pub vertices: usize,
    /// Time of the ranks' loop, slowest rank.
    pub loop_time: Duration,
    /// The time of each phase.
    pub phases: PhaseTable,
    /// The shares of tests that ranks had.
    pub balance: Balance,
    /// The work of each rank, by rank.
    pub ranks: Vec<RankRecord>,
    /// The memory that each process holds for the world, by part.
    pub world_memory: Vec<MemoryPart>,
    /// Frames written.
    pub frames: usize,
    /// Depth in m of the deepest vertex inside a body in any frame; negative if none was ever
    /// inside, `None` without bodies.
    pub deepest: Option<f64>,
    /// Largest principal strain of any step.
    pub strain: f64,
    /// Pairs of an edge and a triangle of the cloth that cross in the last state.
    pub crossings: usize,
    /// Pairs of cloth and bodies that cross in the last state.
    pub pierced: usize,
    /// The steps that were cut.
    pub cuts: Cuts,
    /// The work of certification.
    pub certified: CertifiedTotals,
    /// The reasons for which linear solves stopped.
    pub stops: Stops,
    /// Limits that the result breaks, each a sentence.
    pub warnings: Vec<String>,
    /// The step that the run went on from.
    pub resumed_from: Option<u64>,
    /// The reason for which it stopped before its end, if it did. The last state is then in a
    /// checkpoint.
    pub stopped: Option<Cause>,
    /// The findings in frames, if they were audited.
    pub audit: Option<FrameAudit>,
    /// A summary of the trace, if one was asked for.
    pub trace: Option<TraceSummary>,
    /// The reason for which not everything could be written at the end, such as a full disk. All
    /// else is reported all the same.
    pub unwritten: Option<String>,
    /// The exports of its frames.
    pub exported: Exported,
}

impl RunSummary {
    /// The most memory that the process of a rank has had, in bytes, if the system tells.
    #[must_use]
    pub fn peak_memory(&self) -> Option<u64> {
        self.ranks
            .iter()
            .filter_map(|rank| rank.peak_memory_bytes)
            .max()
    }

    /// The fault of a run that went well but for its audit, if that was to be strict.
    #[must_use]
    pub fn audit_failure(&self, options: &RunOptions) -> Option<String> {
        let audit = (self.audit.as_ref()).filter(|_| options.audit == Some(Audit::Strict))?;
        let advice = if audit.has_crossed_bodies() {
            UNCROSS_BODIES
        } else {
            "take a shorter time.step or a larger contact.thickness"
        };
        (!audit.crossing.is_empty()).then(|| format!("{audit}; {advice}"))
    }
}

/// The report of a rank about the whole run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct RankTotals {
    pub(super) times: [Duration; PHASES.len()],
    /// The times of work between steps.
    pub(super) outputs: [Duration; OUTPUTS.len()],
    pub(super) scope: ScopeReport,
    /// The time in which patches were made ready outside of tasks.
    pub(super) early: Duration,
    /// The time of waiting for messages in steps, outside of scopes.
    pub(super) waited: Duration,
    pub(super) loop_time: Duration,
    /// The traffic of states.
    pub(super) states: StateTraffic,
    /// The most memory that its process has had, in bytes, if the system tells.
    pub(super) peak_memory: Option<u64>,
    /// The memory that it held at the end beside the world, by part.
    pub(super) memory: Vec<MemoryPart>,
    pub(super) cuts: Cuts,
    pub(super) certified: CertifiedTotals,
    pub(super) stops: Stops,
    pub(super) stopped: Option<Cause>,
    pub(super) last: Option<Last>,
    pub(super) trace: Option<TraceSummary>,
    /// The steps that a record lacks, on rank 0.
    pub(super) unrecorded: Option<String>,
}

/// The positions and velocities that a rank was sent.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct StateTraffic {
    pub(super) bytes: u64,
    /// The most vertices of other ranks in a step.
    pub(super) ghosts: u64,
    /// Parts of steps in which ranks that know some vertices sent each other all.
    pub(super) gathered: u64,
}

impl StateTraffic {
    pub(super) fn add(&mut self, report: &StepReport) {
        self.bytes += report.state_bytes;
        self.ghosts = self.ghosts.max(report.ghosts);
        self.gathered += u64::from(report.gathered);
    }
}

/// The end of a run, as rank 0 knows it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Last {
    pub(super) history: HistoryMark,
    pub(super) hash: StateHash,
    pub(super) steps: u64,
    pub(super) crossings: usize,
    /// Crossings of cloth and bodies.
    pub(super) pierced: usize,
    pub(super) audit: Option<FrameAudit>,
    pub(super) frames: usize,
    pub(super) deepest: f64,
    pub(super) strain: f64,
    pub(super) beyond_limit: f64,
    /// An account of how strain came to be beyond a limit.
    pub(super) breach: Option<String>,
}

/// The advice where cloth crosses bodies.
pub(super) const UNCROSS_BODIES: &str = "take a shorter time.step, cloth whose edges are no longer than those of the body's triangles, or more room between bodies";

/// The results that rank 0 has in the end; others have none.
#[derive(Debug, Default)]
pub(super) struct Ended {
    /// The totals of all ranks.
    pub(super) ranks: Vec<RankTotals>,
    /// The traces that they recorded, if they were to.
    pub(super) traces: Option<Traces>,
}
