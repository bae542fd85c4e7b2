//! The outcome of a judged run: it is accepted, or refused for reasons.

use std::fmt;

use serde_json::{Value, json};
use weft_io::Show as _;
use weft_judge::{Finding, Piece, Verdict, What};

use super::Ran;
use crate::output::StateHash;

/// The outcome of a judged run, or of a record of one.
#[derive(Debug)]
pub struct Outcome {
    /// The name of the scene or record.
    pub scene: String,
    /// Cloths and bodies, as findings number their vertices.
    pub pieces: Vec<Piece>,
    /// The names of the bodies that were not judged, for they have no triangles.
    pub outside: Vec<String>,
    /// The names of the bodies that were judged by vertices alone, for cloth meets their sampled
    /// distance.
    pub sampled: Vec<String>,
    /// How many vertices were inside of these, in all states together.
    pub inside: u64,
    /// Whether its steps were certified; `false` of records.
    pub certified: bool,
    /// The verdict of the judge.
    pub verdict: Verdict,
    /// A state that could not be judged, if there was one.
    pub bad_state: Option<String>,
    /// The reason for which the run ended early, if it did.
    pub failure: Option<String>,
    /// The simulator's own account of the run, if there was one.
    pub ran: Option<Ran>,
    /// The run without certification, if there was one.
    pub twin: Option<Twin>,
}

/// A run of the same scene without certification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Twin {
    /// The hash of its last state.
    pub hash: StateHash,
    /// The steps that it took.
    pub steps: u64,
    /// The reason for which it ended early, if it did.
    pub failure: Option<String>,
}

impl Outcome {
    /// The reasons for which the run is refused, each a sentence; none if it is accepted.
    #[must_use]
    pub fn reasons(&self) -> Vec<String> {
        let verdict = &self.verdict;
        let mut reasons = Vec::new();
        if verdict.crossings > 0 {
            reasons.push(format!(
                "{} of {} states have edges that pass through faces, {} in state {} \
                 ({} in all states, {} of them of cloth and cloth)",
                verdict.crossing_states,
                verdict.states,
                verdict.most_crossings,
                verdict.most_in,
                verdict.crossings,
                verdict.cloth_crossings
            ));
        }
        if verdict.passages > 0 {
            reasons.push(format!(
                "features pass through each other {} times on ways between states, {} times cloth \
                 through cloth",
                verdict.passages, verdict.cloth_passages
            ));
        }
        if verdict.touches > 0 {
            reasons.push(format!(
                "{} pairs touch on a way between states, {} of them of cloth and cloth",
                verdict.touches, verdict.cloth_touches
            ));
        }
        for beyond in verdict.ended_beyond.iter().filter(|p| p.ended_beyond > 0) {
            let name = |piece: u32| self.pieces[piece as usize].name.shown().to_string();
            reasons.push(format!(
                "{} vertices of `{}` end on another side of `{}` than they began on",
                beyond.ended_beyond,
                name(beyond.of),
                name(beyond.through)
            ));
        }
        if verdict.grown > 0 {
            reasons.push(format!(
                "the list of cloth that started through cloth has {} wrong entries: the list grew, or had cloth that did not cross",
                verdict.grown
            ));
        }
        if verdict.undecided > 0 {
            reasons.push(format!("{} pairs could not be decided", verdict.undecided));
        }
        if self.inside > 0 {
            reasons.push(format!(
                "vertices are inside bodies that cloth meets by their distance {} times, deeper than samples can err",
                self.inside
            ));
        }
        reasons.extend(
            self.bad_state
                .iter()
                .map(|state| format!("a state cannot be judged: {state}")),
        );
        if self.has_changed_for_nothing() {
            reasons.push(
                "nothing was cut, but without contact.certify the run ends with another state"
                    .to_owned(),
            );
        }
        reasons
    }

    /// Whether nothing is held against the run.
    #[must_use]
    pub fn is_accepted(&self) -> bool {
        self.reasons().is_empty()
    }

    /// Whether certification changed the run, though nothing would have crossed.
    fn has_changed_for_nothing(&self) -> bool {
        let (Some(ran), Some(twin)) = (&self.ran, &self.twin) else {
            return false;
        };
        ran.is_as_it_was() && (ran.hash, ran.steps) != (twin.hash, twin.steps)
    }

    /// A finding as a sentence.
    fn sentence(&self, finding: &Finding) -> String {
        let does = match finding.what {
            What::Crossing => "passes through",
            What::Passage => "passes on the way through",
            What::Touch => "touches on the way",
            What::Undecided => "may meet, which is undecided,",
        };
        format!(
            "state {} at {} s: {} {does} {}",
            finding.state,
            finding.time,
            self.feature(&finding.first),
            self.feature(&finding.second)
        )
    }

    /// A feature as people call it, with the numbers of its vertices within its piece.
    fn feature(&self, vertices: &[u32]) -> String {
        let piece = self
            .pieces
            .iter()
            .find(|piece| piece.vertices.contains(&vertices[0]));
        let (name, first) = piece.map_or((String::new(), 0), |piece| {
            (piece.name.shown().to_string(), piece.vertices.start)
        });
        let kind = ["vertex", "edge", "face"][vertices.len().clamp(1, 3) - 1];
        let numbers: Vec<String> = vertices.iter().map(|v| (v - first).to_string()).collect();
        format!("{kind} {} of `{name}`", numbers.join("-"))
    }

    /// All of it for programs.
    #[must_use]
    pub fn json(&self) -> Value {
        let ran = self.ran.as_ref().map(|ran| {
            json!({
                "steps": ran.steps,
                "vertices": ran.vertices,
                "hits": ran.hits,
                "cut": ran.cut,
                "cut_steps": ran.cut_steps,
                "state_hash": ran.hash,
            })
        });
        let twin = self.twin.as_ref().map(|twin| {
            json!({
                "steps": twin.steps,
                "state_hash": twin.hash,
                "failure": twin.failure,
            })
        });
        json!({
            "scene": self.scene,
            "accepted": self.is_accepted(),
            "clean_within_cloth": self.verdict.is_clean_within_cloth(),
            "reasons": self.reasons(),
            "certified": self.certified,
            "pieces": self.pieces,
            "not_judged": self.outside,
            "judged_by_vertices": self.sampled,
            "inside": self.inside,
            "verdict": self.verdict,
            "failure": self.failure,
            "run": ran,
            "without_certification": twin,
        })
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = &self.verdict;
        writeln!(
            f,
            "Judged {} states of {} pieces: {} pairs on ways between them, {} of them by exact \
             arithmetic",
            verdict.states,
            self.pieces.len(),
            verdict.pairs,
            verdict.exact
        )?;
        if !self.outside.is_empty() {
            let names: Vec<String> = self
                .outside
                .iter()
                .map(|name| format!("`{}`", name.shown()))
                .collect();
            writeln!(
                f,
                "Not judged, for they have no triangles: {}",
                names.join(", ")
            )?;
        }
        if !self.sampled.is_empty() {
            let names: Vec<String> = (self.sampled.iter())
                .map(|name| format!("`{}`", name.shown()))
                .collect();
            writeln!(
                f,
                "Judged by vertices alone, as cloth meets their sampled distance: {}",
                names.join(", ")
            )?;
        }
        if verdict.excused > 0 {
            let excused = verdict.excused;
            writeln!(
                f,
                "Not held against it, for it was marked as squeezed: {excused} findings"
            )?;
        }
        if verdict.kept_vertices[0] > 0 {
            let [first, last] = verdict.kept_vertices;
            let free = match verdict.free_since {
                Some(time) => format!("all free after {time:.3} s"),
                None => format!("{last} at the end"),
            };
            writeln!(
                f,
                "Not held against it, for cloth started through cloth: {} findings, of {first} \
                 vertices on the list, {free}",
                verdict.kept
            )?;
        }
        if let Some(ran) = &self.ran {
            let moves = ran.vertices * ran.steps.max(1);
            write!(
                f,
                "{} steps of {} vertices, {}: {} hits, {} displacements cut in {} steps \
                 ({:.3} % of all)\nstate hash {}",
                ran.steps,
                ran.vertices,
                if self.certified {
                    "certified"
                } else {
                    "not certified"
                },
                ran.hits,
                ran.cut,
                ran.cut_steps,
                100.0 * ran.cut as f64 / moves as f64,
                ran.hash
            )?;
            match &self.twin {
                None => writeln!(f)?,
                Some(twin) => {
                    let same = if twin.hash == ran.hash {
                        "the same"
                    } else {
                        "another"
                    };
                    write!(f, ", without contact.certify {} ({same})", twin.hash)?;
                    match &twin.failure {
                        Some(failure) => writeln!(f, ", after a failure: {failure}")?,
                        None => writeln!(f)?,
                    }
                }
            }
        }
        for finding in &verdict.findings {
            writeln!(f, "{}", self.sentence(finding))?;
        }
        let found = verdict.crossings + verdict.passages + verdict.touches + verdict.undecided;
        if found > verdict.findings.len() as u64 {
            writeln!(f, "... and more")?;
        }
        let reasons = self.reasons();
        if reasons.is_empty() {
            return writeln!(f, "within cloth: clean\naccepted");
        }
        if verdict.is_clean_within_cloth() {
            writeln!(f, "within cloth: clean")?;
        }
        for reason in &reasons {
            writeln!(f, "refused: {reason}")?;
        }
        Ok(())
    }
}
