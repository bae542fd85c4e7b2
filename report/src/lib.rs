//! Reports on the cost of a run of weftwork, and on the phase, the patch and the policy that are to
//! blame: for people, as text and as one page to look at in a browser.
//!
//! In: directories that `weft run --out` wrote ([`Run::read`]); with a trace they tell most. Out:
//! [`Report::text`] and [`Report::write_page`]. In between, a [`Digest`] holds what was counted,
//! and [`Findings`] what stands out.
//!
//! Not here: running anything, and the tables that are printed at the end of a run.

use std::io::{self, Write};

use weft_io::Show as _;

mod advice;
mod certification;
mod cloth;
mod digest;
mod division;
mod error;
mod findings;
mod format;
mod memory;
mod page;
mod record;
mod run;
mod suggestion;
mod table;
mod text;
mod trace_file;
mod tracks;
mod work;

pub use advice::advice;
pub use cloth::Cloth;
pub use digest::{Counts, Digest, Traced};
pub use division::{Division, Parts, Use};
pub use error::ReportError;
pub use findings::{Finding, Findings, Next};
pub use record::{
    Balance, Certified, EFFICIENCY_OF, Efficiency, Machine, Outcome, Partition, Phase, Rank,
    Record, Row, Scene, TraceRecord,
};
pub use run::Run;
pub use table::{OTHER, phase_table};
pub use trace_file::{read_trace_file, write_trace_file};
pub use tracks::{FIRST_BODY, PhaseSpan, RankTracks, Request, TaskSpan, Tracks, WaitSpan};
pub use work::{Histogram, PatchWork, Stolen, patches, sizes, steals, stolen};

/// Runs with all that is said of them.
#[derive(Clone, Debug)]
pub struct Report {
    runs: Vec<(Run, Digest, Findings)>,
}

impl Report {
    /// Looks at runs; several are set side by side.
    #[must_use]
    pub fn new(runs: Vec<Run>) -> Self {
        let look = |run: Run| {
            let digest = Digest::of(&run);
            let findings = Findings::of(&run, &digest);
            (run, digest, findings)
        };
        let mut runs: Vec<_> = runs.into_iter().map(look).collect();
        // Directories of one name in different places get different names.
        let names: Vec<String> = runs
            .iter()
            .map(|(_, digest, _)| digest.name.clone())
            .collect();
        for (run, digest, _) in &mut runs {
            if names.iter().filter(|name| **name == digest.name).count() > 1 {
                digest.name = run.path.shown().to_string();
            }
        }
        Self { runs }
    }

    /// Everything as text.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        if self.runs.len() > 1 {
            let runs: Vec<(&Run, &Digest)> = self.runs.iter().map(|(r, d, _)| (r, d)).collect();
            text += &text::side_by_side(&runs);
        }
        for (run, digest, findings) in &self.runs {
            if !text.is_empty() {
                text.push('\n');
            }
            text += &text::one(run, digest, findings);
        }
        text
    }

    /// Writes everything as a page: one HTML file that needs no other.
    ///
    /// # Errors
    /// What `out` says.
    pub fn write_page(&self, out: &mut dyn Write) -> io::Result<()> {
        page::write(&self.runs, out)
    }
}
