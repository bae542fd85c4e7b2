//! The numbers of a report on one run, counted from its record and its traces.

use std::collections::BTreeMap;

use weft_io::Show as _;
use weft_runtime::POLICIES;
use weft_runtime::trace::{Analysis, Sharing, Timeline, Trace};

use crate::division::{Division, Use};
use crate::format::total;
use crate::record::{Efficiency, Phase};
use crate::run::Run;
use crate::table::left;
use crate::tracks::Tracks;
use crate::work::{Histogram, PatchWork, Stolen, patches, sizes, steals};

/// A run in numbers.
#[derive(Clone, Debug)]
pub struct Digest {
    /// Its name: the directory's.
    pub name: String,
    /// Lines of the phase table. The line after `collide` is the part of it in tasks, and in making
    /// patches ready for them.
    pub phases: Vec<Phase>,
    /// The activities of ranks between steps, as far as the run says: parts of the loop that belong
    /// to no phase.
    pub between: Vec<Phase>,
    /// Time of the loop over steps in s, with what is done between them.
    pub loop_s: f64,
    /// Efficiencies over all steps of the run, where no wait is useful; runs of earlier versions
    /// have none.
    pub efficiency: Option<Efficiency>,
    /// How ranks shared work.
    pub sharing: Option<Sharing>,
    /// Counts of the whole run.
    pub counts: Counts,
    /// Whether the run lived to write what it measured.
    pub has_times: bool,
    /// The numbers that only a trace has.
    pub traced: Option<Traced>,
}

/// Counts over a run, of all ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Tasks that the steps began with.
    pub top_level: u64,
    /// Tasks that ran.
    pub tasks: u64,
    /// Tests.
    pub tests: u64,
    /// Times a task gave a piece away.
    pub splits: u64,
    /// Requests.
    pub requests: u64,
    /// Requests that brought tasks.
    pub served: u64,
    /// Requests that brought none; of an earlier version's run all that were not served.
    pub refused: u64,
    /// Tasks that moved.
    pub moved: u64,
    /// Bytes sent for all that, if the run says so.
    pub bytes: Option<u64>,
}

/// The policy that differs in nothing that is recorded of sharing but its name, for people.
fn like(sharing: &Sharing) -> Option<String> {
    let unnamed = |sharing: &Sharing| Sharing {
        policy: None,
        ..sharing.clone()
    };
    let mut known = POLICIES.iter();
    let (name, ..) = known.find(|(_, policy, _)| unnamed(&policy.into()) == unnamed(sharing))?;
    Some(format!("{name}, but for low_water or steal_timeout"))
}

/// The numbers that only a trace has, for the steps that were traced.
#[derive(Clone, Debug)]
pub struct Traced {
    /// All spans.
    pub tracks: Tracks,
    /// The first and the last step.
    pub steps: (u32, u32),
    /// How many steps there are.
    pub count: usize,
    /// Seconds in steps of the rank that spent most.
    pub elapsed_s: f64,
    /// Seconds in steps, the mean over ranks: what shares of phases, and of idle time, are of.
    pub mean_s: f64,
    /// Whether events are missing, so that all this is too little.
    pub incomplete: bool,
    /// Efficiencies of these steps, where no wait is useful.
    pub efficiency: Option<Efficiency>,
    /// Work in each phase, without waits: lines as in the phase table.
    pub work: Vec<Phase>,
    /// The division of the time.
    pub division: Division,
    /// The steals, by thief and victim.
    pub steals: BTreeMap<(u32, u32), Stolen>,
    /// Sizes of tasks in tests and in µs.
    pub sizes: [Histogram; 2],
    /// Work of each patch.
    pub patches: Vec<PatchWork>,
    /// The longest collision phase that was traced whole: its step, and why it took so long.
    pub longest: Option<(u32, Analysis)>,
    /// How far the clocks of two ranks may be apart in s.
    pub clock_error_s: f64,
}

/// The phase in which ranks share tasks.
pub(crate) const SHARED: &str = "collide";
/// The line of the phase table for the part of it in tasks.
pub(crate) const IN_TASKS: &str = "  in tasks";

impl Digest {
    /// Counts what a run tells.
    #[must_use]
    pub fn of(run: &Run) -> Self {
        let record = &run.record;
        let mut phases = record.phases.clone();
        // On one rank patches are made ready within tasks, on several mostly before them.
        let tasks = record.ranks.iter().map(|rank| rank.tasks_s + rank.early_s);
        let tasks: Vec<f64> = tasks.collect();
        if let Some(at) = phases.iter().position(|phase| phase.name == SHARED)
            && !tasks.is_empty()
        {
            phases.insert(at + 1, Phase::of(IN_TASKS, &tasks));
        }
        let traced = (!run.timelines.is_empty())
            .then(|| Traced::of(run))
            .flatten();
        let of_trace = run.timelines.iter().flat_map(|timeline| &timeline.scopes);
        let sharing = record.sharing.clone();
        let sharing = sharing.or_else(|| of_trace.clone().find_map(|(_, t)| t.sharing.clone()));
        Self {
            name: name(run),
            phases,
            between: record.between.clone(),
            loop_s: record.loop_s.unwrap_or(0.0),
            // Records of earlier versions counted waits as useful, and outputs as communication.
            efficiency: (record.efficiency)
                .filter(|_| record.ranks.iter().all(|r| r.useful_s.is_some())),
            sharing,
            counts: counts(run),
            has_times: record.balance.is_some(),
            traced,
        }
    }

    /// Share of the loop that lies between steps, a mean over ranks, if that is most of it: else
    /// what is wrong within steps is of more interest.
    #[must_use]
    pub(crate) fn mostly_between(&self) -> Option<f64> {
        let between = left(&self.phases, self.loop_s);
        (!self.phases.is_empty() && 2.0 * between > self.loop_s).then(|| between / self.loop_s)
    }

    /// The name of the policy, for people.
    #[must_use]
    pub fn policy(&self) -> String {
        match &self.sharing {
            None => "not recorded".to_owned(),
            Some(Sharing {
                policy: Some(name), ..
            }) => name.clone(),
            Some(sharing) => like(sharing).unwrap_or_else(|| {
                let steals = if sharing.steal {
                    "stealing"
                } else {
                    "no stealing"
                };
                let (split, victims) = (&sharing.split, &sharing.victims);
                format!("a mixture: {steals}, split {split}, victims {victims}")
            }),
        }
    }
}

/// The last part of a directory's path, or all of it.
fn name(run: &Run) -> String {
    let last = run.path.file_name();
    let name = last.unwrap_or(run.path.as_os_str());
    name.shown().to_string()
}

fn counts(run: &Run) -> Counts {
    let balance = run.record.balance.clone().unwrap_or_default();
    let ranks = &run.record.ranks;
    let sum = |f: fn(&crate::record::Rank) -> u64| total(ranks.iter().map(f));
    let refused = match ranks.is_empty() {
        true => balance.steal_requests.saturating_sub(balance.steals),
        false => sum(|rank| rank.refused),
    };
    Counts {
        top_level: balance.top_level,
        tasks: balance.tasks,
        // A run that was killed has its history.
        tests: match &run.record.balance {
            Some(balance) => balance.tests,
            None => total(run.history.iter().map(|row| row.tests)),
        },
        splits: balance.splits,
        requests: balance.steal_requests,
        served: balance.steals,
        refused,
        moved: match ranks.is_empty() {
            true => total(run.history.iter().map(|row| row.steals)),
            false => sum(|rank| rank.tasks_in),
        },
        bytes: (!ranks.is_empty() && balance.tasks > 0).then(|| sum(|rank| rank.bytes)),
    }
}

impl Traced {
    /// Counts what the traces tell; `None` if no step was traced.
    fn of(run: &Run) -> Option<Self> {
        let tracks = Tracks::of(&run.timelines, run.workers());
        let steps = tracks.ranks.iter().flat_map(|rank| &rank.steps);
        let numbers = steps.map(|&(step, ..)| step);
        let steps = (numbers.clone().min()?, numbers.max()?);
        let workers = run.workers();
        let division = Division::of(&tracks, workers);
        let in_steps = |rank: &crate::RankTracks| -> f64 {
            let lengths = rank.steps.iter().map(|&(_, begin, end)| end - begin);
            lengths.fold(0, u64::saturating_add) as f64 * 1e-9
        };
        let elapsed_s = tracks.ranks.iter().map(in_steps).fold(0.0, f64::max);
        let per_worker = 1e-9 / workers as f64;
        let seconds = |ns: u64| ns as f64 * per_worker;
        let useful: Vec<f64> = (0..tracks.ranks.len())
            .map(|rank| seconds(division.rank(rank).useful()))
            .collect();
        let work = (tracks.phases.iter().enumerate())
            .map(|(phase, name)| {
                let of_rank = |parts: &Vec<crate::Parts>| seconds(parts[phase].useful());
                let times: Vec<f64> = division.parts.iter().map(of_rank).collect();
                Phase::of(name, &times)
            })
            .collect();
        let triangles = run.cloth.as_ref().map(|cloth| cloth.triangles_of_patches());
        Some(Self {
            steps,
            count: tracks.ranks.iter().map(|rank| rank.steps.len()).max()?,
            elapsed_s,
            mean_s: seconds(division.all().total()) / tracks.ranks.len().max(1) as f64,
            incomplete: run.incomplete,
            efficiency: Efficiency::of(&useful, elapsed_s),
            work,
            division,
            steals: steals(&tracks),
            sizes: sizes(&tracks),
            patches: patches(&tracks, &run.owners(), &triangles.unwrap_or_default()),
            longest: longest(&run.timelines),
            clock_error_s: run.record.trace.as_ref().map_or(0.0, |t| t.clock_error_s),
            tracks,
        })
    }

    /// Share of all ranks' time that a phase costs without being used, by phase; without waits for
    /// outputs, which come before any phase.
    #[must_use]
    pub fn lost(&self) -> Vec<f64> {
        let all = self.division.all().total().max(1) as f64;
        (0..self.tracks.phases.len())
            .map(|phase| {
                let parts = self.division.phase(phase);
                (parts.idle() - parts.of(Use::Outputs)) as f64 / all
            })
            .collect()
    }

    /// The words to put behind what is said of these steps.
    #[must_use]
    pub fn mark(&self) -> &'static str {
        if self.incomplete {
            " (incomplete trace)"
        } else {
            ""
        }
    }

    /// Share of all ranks' time that was for something.
    #[must_use]
    pub fn share(&self, what: Use) -> f64 {
        let all = self.division.all();
        all.of(what) as f64 / all.total().max(1) as f64
    }
}

/// The longest collision phase that was traced whole on all ranks.
fn longest(timelines: &[Timeline]) -> Option<(u32, Analysis)> {
    let span = |trace: &Trace| {
        let (first, last) = (trace.events.first()?, trace.events.last()?);
        Some(last.at.saturating_sub(first.at))
    };
    let first = timelines.first()?;
    let mut steps: Vec<(u64, u64)> = (first.scopes.iter())
        .filter_map(|(step, trace)| Some((span(trace)?, *step)))
        .collect();
    steps.sort_unstable();
    steps.into_iter().rev().find_map(|(_, step)| {
        let of_step = |timeline: &Timeline| {
            let found = timeline.scopes.iter().find(|(n, _)| *n == step)?;
            (found.1.dropped == 0).then(|| found.1.clone())
        };
        let traces: Option<Vec<Trace>> = timelines.iter().map(of_step).collect();
        Some((u32::try_from(step).ok()?, Analysis::of(&traces?)))
    })
}

#[cfg(test)]
mod tests {
    use weft_runtime::Policy;

    use super::*;

    #[test]
    fn a_policy_with_other_numbers_is_called_by_the_name_of_the_one_it_is_like() {
        let default = Policy::default();
        let named = Sharing::from(&Policy {
            low_water: 5,
            ..default
        });
        let name = like(&named).unwrap();
        assert!(name.starts_with("every-other,"), "{name}");
        let (steal, split) = (false, Policy::PAPER.split);
        let other = Policy {
            steal,
            split,
            ..default
        };
        assert_eq!(like(&Sharing::from(&other)), None);
    }
}
