//! The striking facts of a run: the phase, the patches and the policy to look at, in sentences, and
//! a command that shows whether another policy mends it.
//!
//! A newcomer reads these first. Each names the numbers that it rests on; where nothing stands out
//! it says so, for a report that always finds somebody to blame is none.

use std::ffi::OsString;
use std::fmt::Write as _;

use weft_io::{shell_path, shell_word};

use crate::advice::advice;
use crate::digest::{Digest, IN_TASKS, SHARED, Traced};
use crate::division::{Parts, Use};
use crate::format::{count, list, many, percent, seconds, total};
use crate::record::Row;
use crate::run::Run;
use crate::suggestion::{Ranks, Suggestion, is_whole, scene, window};
use crate::table::OTHER;

/// Efficiency from which on there is nothing to mend.
const GOOD: f64 = 0.9;
/// Share of the time below which a cause is no reason for advice.
const MINOR: f64 = 0.05;
/// A rank that owns this many times its share of the tests has more than others.
const MUCH: f64 = 1.5;
/// A rank that owns this much of all tests beyond its share has more than others, too: of two
/// ranks, one that has two thirds.
const MUCH_MORE: f64 = 0.15;
/// A patch with this share of all tests is named, whichever rank owns it.
const LARGE: f64 = 0.25;
/// Most patches that are named.
const NAMED: usize = 6;

/// Something that stands out, or not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finding {
    /// The answer, in a few words.
    pub answer: String,
    /// The reasons, in sentences.
    pub why: String,
    /// Whether it is to blame.
    pub at_fault: bool,
    /// Whether that cannot be told: then nothing is said to be fine either.
    pub unknown: bool,
}

/// The findings of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// The phase that costs most without being used.
    pub phase: Finding,
    /// The patches that have the tests.
    pub patch: Finding,
    /// How ranks share work.
    pub policy: Finding,
    /// The next things to do.
    pub next: Vec<Next>,
}

/// Something to do next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Next {
    /// The advice, in a sentence.
    pub say: String,
    /// A command that does it, with its words as a POSIX shell takes them.
    pub command: Option<String>,
}

impl From<String> for Next {
    fn from(say: String) -> Self {
        Self { say, command: None }
    }
}

impl Findings {
    /// Finds the striking facts of a run.
    #[must_use]
    pub fn of(run: &Run, digest: &Digest) -> Self {
        let phase = digest
            .traced
            .as_ref()
            .map_or_else(|| phase_of_record(run, digest), phase_of_trace);
        let patch = digest.traced.as_ref().map_or_else(
            || patch_of_record(run),
            |traced| patch_of_trace(run, traced, &phase),
        );
        let policy = policy(run, digest);
        let mut findings = Self {
            phase,
            patch,
            policy,
            ..Self::default()
        };
        if digest
            .traced
            .as_ref()
            .is_some_and(|traced| traced.incomplete)
        {
            for finding in [
                &mut findings.phase,
                &mut findings.patch,
                &mut findings.policy,
            ] {
                finding.why.insert_str(0, "By a trace that is incomplete: ");
            }
        }
        findings.next(run, digest);
        findings.put_other_first(digest);
        findings
    }

    /// Puts the time between steps first, if most of the loop lies there.
    fn put_other_first(&mut self, digest: &Digest) {
        let Some(share) = digest.mostly_between() else {
            return;
        };
        let mut parts: Vec<_> = digest
            .between
            .iter()
            .filter(|part| part.avg_s > 0.0)
            .collect();
        parts.sort_by(|a, b| b.avg_s.total_cmp(&a.avg_s));
        let told: Vec<String> = (parts.iter().take(2))
            .map(|part| format!("{} {}", part.name, percent(part.avg_s / digest.loop_s)))
            .collect();
        let of = match told.is_empty() {
            true => String::new(),
            false => format!(", most of it {} of the loop", list(&told)),
        };
        let in_steps = match self.phase.at_fault {
            true => format!("In the steps alone it is `{}`. ", self.phase.answer),
            false => "Within steps: ".to_owned(),
        };
        self.phase = Finding {
            answer: format!("{OTHER}, between steps"),
            why: format!(
                "No phase: {} of the loop goes by between steps{of}. {in_steps}{}",
                percent(share),
                self.phase.why
            ),
            at_fault: true,
            unknown: false,
        };
        let picture = match parts.first() {
            Some(part) if part.name == "pictures" => {
                "leave pictures out with `--set output.pictures=false`, or draw and write less often (`output.interval`)"
            }
            Some(part) if part.name == "checkpoints" => {
                "write checkpoints less often (`output.checkpoint_interval`)"
            }
            Some(part) if part.name == "history" => {
                "steps are so short that reporting them takes longer: take fewer ranks (`--ranks`) or a larger cloth"
            }
            _ => {
                "write less often (`output.interval`), and leave out pictures (`--set output.pictures=false`)"
            }
        };
        self.next.insert(
            0,
            format!("To spend less time between steps, {picture}.").into(),
        );
    }

    fn next(&mut self, run: &Run, digest: &Digest) {
        let outputs = digest
            .traced
            .as_ref()
            .map_or(0.0, |t| t.share(Use::Outputs));
        // A line of the history is no output that can be left out.
        let written = digest.between.iter().filter(|part| part.name != "history");
        let written: f64 = written.map(|part| part.avg_s).sum();
        if outputs > MINOR && written > MINOR * digest.loop_s {
            let say = format!(
                "Ranks waited for outputs to be written for {} of the time: leave pictures out with `--set \
                 output.pictures=false`, or write less often (`output.interval`).",
                percent(outputs)
            );
            self.next.push(say.into());
        }
        if digest.traced.is_none() && run.ranks() > 1 {
            self.next.push(traced_again(run));
        }
        if run.ranks() < 2 {
            self.next.push(on_several(run).into());
            return;
        }
        let (suggestion, what) = if self.policy.at_fault {
            let what =
                "See which policy does better; the result stays the same, only times change:";
            (Suggestion::of(run, digest, Ranks::AsRun), what.to_owned())
        } else if self.phase.at_fault && self.phase.answer == SHARED {
            let what = "A trial shows what another policy brings, and how many ranks pay; the result stays the same, only times change:";
            (
                Suggestion::of(run, digest, Ranks::UpAndBeyond),
                what.to_owned(),
            )
        } else if self.phase.at_fault {
            // Policies share tests, and no other phase has any.
            let what = format!(
                "Policies share the tests of `{SHARED}`, so another one will not make `{}` faster. See how many ranks pay:",
                self.phase.answer
            );
            (Suggestion::of(run, digest, Ranks::UpAndBeyond), what)
        } else {
            return;
        };
        self.next
            .extend(suggestion.notes.into_iter().map(Next::from));
        self.next.push(Next {
            say: what,
            command: Some(suggestion.command),
        });
    }
}

/// The advice for a run that shared nothing: as many ranks as this machine has cores for, or any
/// number of ranks in virtual time.
fn on_several(run: &Run) -> String {
    const FEW: u64 = 4;
    let patches = run.record.partition.as_ref().map(|cut| cut.patches);
    let most = patches.unwrap_or(FEW);
    if most < 2 {
        return "One rank shares with nobody, and a scene of one patch has no work for others: cut it into more \
                (partition.patches)."
            .to_owned();
    }
    let cores = u64::from(run.record.machine.cores.unwrap_or(1));
    let here = match cores.min(most).min(16) {
        0 | 1 => String::new(),
        ranks => format!("`--ranks {ranks}`, or "),
    };
    format!(
        "One rank shares with nobody: run with {here}`--comm virtual --ranks {}`, which needs no more cores.",
        FEW.min(most)
    )
}

/// The command of a run again, with a trace of the steps around the one with the most tests.
fn traced_again(run: &Run) -> Next {
    const MANY: u32 = 50;
    let last = run.history.last().map_or(MANY, |row| row.step);
    let (from, to) = window(run, (1, last.max(1)), MANY);
    let (scene, note) = scene(run);
    let mut words = Vec::new();
    let mut has_ranks = false;
    // The words behind `run`, or none if something else has made the run.
    let mut command = run.record.command.iter().skip(1);
    if command.next().is_some_and(|word| word == "run") {
        while let Some(word) = command.next() {
            match word.split('=').next().unwrap_or_default() {
                "--trace" | "--record" | "--resume" | "--overwrite" | "--quiet" | "-q" => {}
                // Beside the run, not in its place.
                "--out" if word == "--out" => drop(command.next()),
                "--out" => {}
                // Not all of it is known.
                _ if !is_whole(word) => words.push(scene.clone()),
                option => {
                    has_ranks |= option == "--ranks";
                    words.push(shell_word(word.as_ref()));
                }
            }
        }
    }
    if words.is_empty() {
        words = vec![scene];
    }
    let mut out = OsString::from("traced");
    if run.path.file_name().is_some() {
        // Without a slash at the end.
        out = run.path.components().as_path().as_os_str().to_owned();
        out.push("-traced");
    }
    let mut added = vec![format!("--trace={from}..{to}")];
    added.extend(["--out".to_owned(), shell_path(out.as_ref())]);
    if !has_ranks {
        added.insert(0, format!("--ranks {}", run.ranks()));
    }
    // Behind `--` they would be no options.
    let end = words.iter().position(|word| word == "--");
    let end = end.unwrap_or(words.len());
    words.splice(end..end, added);
    Next {
        say: format!("Trace some steps to see patches and causes{note}:"),
        command: Some(format!("weft run {}", words.join(" "))),
    }
}

fn phase_of_trace(traced: &Traced) -> Finding {
    let lost = traced.lost();
    let all = traced.division.all();
    let used = all.useful() as f64 / all.total().max(1) as f64;
    let most = lost.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
    let Some((phase, &share)) = most.filter(|_| used < GOOD) else {
        return Finding {
            answer: "none".to_owned(),
            why: format!(
                "Ranks are at work for {} of the time in the steps that were traced.",
                percent(used)
            ),
            ..Finding::default()
        };
    };
    let work = &traced.work[phase];
    let name = &traced.tracks.phases[phase];
    let parts = traced.division.phase(phase);
    let cause = main_cause(&parts);
    let steps = traced.count.max(1) as f64;
    let mut why = format!(
        "Ranks spend {} of all their time in `{name}` without work",
        percent(share)
    );
    if let Some(cause) = cause {
        let idle = parts.idle() - parts.of(Use::Outputs);
        let of_idle = parts.of(cause) as f64 / idle.max(1) as f64;
        let _ = write!(why, ", {} of that {}", percent(of_idle), because(cause));
    }
    let _ = write!(
        why,
        ". In a step, rank {} works there for {}, a rank on average for {} (imbalance {}).",
        work.max_rank,
        seconds(work.max_s / steps),
        seconds(work.avg_s / steps),
        percent(work.imbalance()),
    );
    Finding {
        answer: name.clone(),
        why,
        at_fault: true,
        unknown: false,
    }
}

/// The cause of most of the idle time, without waits for outputs, which come before any phase.
/// `None`: there is none.
fn main_cause(parts: &Parts) -> Option<Use> {
    Use::ALL
        .into_iter()
        .filter(|&what| !what.is_useful() && what != Use::Outputs && parts.of(what) > 0)
        .max_by_key(|&what| parts.of(what))
}

/// The cause, as the end of a sentence.
fn because(cause: Use) -> &'static str {
    match cause {
        Use::Held => "while tasks that did not come waited at another rank",
        Use::Running => "while the only work left was inside tasks that other ranks ran",
        Use::NoWork => "while there was no work anywhere",
        Use::Answer => "waiting for answers that were to bring tasks",
        Use::Blocks => "waiting for blocks of data",
        Use::Reduction => "in reductions, until the last rank took part",
        Use::Messages => "waiting for messages of neighbours",
        Use::Outputs => "waiting for outputs to be written",
        Use::Runtime => "in the runtime itself",
        Use::Tasks | Use::Phase => "at work",
    }
}

/// The finding from the history of a run that ended before it wrote more: how long phases took, and
/// not how much of it was waiting.
fn phase_of_history(run: &Run) -> Option<Finding> {
    let mut sums: Vec<(&str, f64)> = (Row::PHASES.iter().enumerate())
        .map(|(k, name)| (*name, run.history.iter().map(|row| row.phases_s[k]).sum()))
        .collect();
    let all: f64 = sums.iter().map(|(_, s)| s).sum();
    sums.retain(|(_, s)| *s > 0.0);
    sums.sort_by(|a, b| b.1.total_cmp(&a.1));
    let (most, _) = sums.first()?;
    let told: Vec<String> = (sums.iter())
        .map(|(name, s)| format!("{name} {}", percent(s / all)))
        .collect();
    Some(Finding {
        answer: format!("{most}, by time alone"),
        why: format!(
            "The run ended before it wrote what ranks waited for. By history.csv, phases took these parts of {}, by the slowest rank of each: {}.",
            many(run.history.len() as u64, "step"),
            told.join(", ")
        ),
        at_fault: false,
        unknown: true,
    })
}

fn phase_of_record(run: &Run, digest: &Digest) -> Finding {
    if !digest.has_times
        && let Some(finding) = phase_of_history(run)
    {
        return finding;
    }
    let is_good = digest.efficiency.is_none_or(|e| e.parallel >= GOOD);
    let tasks = digest.phases.iter().find(|phase| phase.name == IN_TASKS);
    let lost = digest.phases.iter().filter(|phase| phase.name != IN_TASKS);
    let lost = lost.map(|phase| {
        // All leave the shared phase together: what of it is not in tasks was waited for.
        let idle = match (phase.name == SHARED, tasks) {
            (true, Some(tasks)) => phase.avg_s - tasks.avg_s,
            _ => phase.max_s - phase.avg_s,
        };
        (phase, idle.max(0.0))
    });
    let most = lost.max_by(|a, b| a.1.total_cmp(&b.1));
    let Some((phase, idle)) = most.filter(|_| !is_good && digest.loop_s > 0.0) else {
        let why = match digest.efficiency {
            Some(e) => format!(
                "The parallel efficiency of steps is {}.",
                percent(e.parallel)
            ),
            None if digest.has_times => {
                "The run is of an earlier version, which did not measure waits.".to_owned()
            }
            None => "The run ended before it wrote what it measured.".to_owned(),
        };
        return Finding {
            answer: match digest.efficiency {
                Some(_) => "none".to_owned(),
                None => "not known".to_owned(),
            },
            why,
            at_fault: false,
            unknown: digest.efficiency.is_none(),
        };
    };
    let mut why = format!(
        "A rank spends {} of the loop in `{}` without work of its own.",
        percent(idle / digest.loop_s),
        phase.name
    );
    if phase.name == SHARED {
        why += " (Only a trace shows what ranks wait for in other phases.)";
    }
    if let Some(tasks) = tasks.filter(|_| phase.name == SHARED) {
        let _ = write!(
            why,
            " In tasks rank {} spent {}, a rank on average {} (imbalance {}).",
            tasks.max_rank,
            seconds(tasks.max_s),
            seconds(tasks.avg_s),
            percent(tasks.imbalance())
        );
    }
    Finding {
        answer: phase.name.clone(),
        why,
        at_fault: true,
        unknown: false,
    }
}

/// Patches are to blame only where the phase at fault is the one whose tests are of them, and ranks
/// lack work in it.
fn patch_of_trace(run: &Run, traced: &Traced, phase: &Finding) -> Finding {
    let all: f64 = traced.patches.iter().map(|work| work.tests).sum();
    if all <= 0.0 {
        return Finding {
            answer: "none".to_owned(),
            why: "No test of a patch was traced.".to_owned(),
            ..Finding::default()
        };
    }
    let mut of_rank = vec![0.0; run.ranks()];
    for work in &traced.patches {
        if let Some(slot) = work.owner.and_then(|owner| of_rank.get_mut(owner as usize)) {
            *slot += work.tests;
        }
    }
    let known: f64 = of_rank.iter().sum();
    let even = 1.0 / run.ranks().max(1) as f64;
    let by_tests = |a: &(usize, &f64), b: &(usize, &f64)| a.1.total_cmp(b.1).then(b.0.cmp(&a.0));
    let owner = of_rank.iter().enumerate().max_by(by_tests);
    let much = (MUCH * even).min(even + MUCH_MORE);
    let owner = owner.filter(|(_, tests)| known > 0.0 && **tests / known > much);
    let mut ranked: Vec<(usize, f64)> = (traced.patches.iter().enumerate())
        .filter(|(_, work)| owner.is_none_or(|(rank, _)| work.owner == Some(rank as u32)))
        .map(|(patch, work)| (patch, work.tests / all))
        .collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let most: Vec<String> = (ranked.iter().take(NAMED))
        .filter(|(_, share)| *share > 0.01)
        .map(|(patch, share)| format!("patch {patch} {}", percent(*share)))
        .collect();
    match owner {
        Some((rank, tests)) => {
            let share = tests / known;
            let patches = traced.patches.len();
            let own = traced
                .patches
                .iter()
                .filter(|w| w.owner == Some(rank as u32));
            let own: Vec<&crate::PatchWork> = own.collect();
            let moved: f64 = own.iter().map(|work| work.moved()).sum();
            let stolen: f64 = own.iter().map(|work| work.stolen()).sum();
            let elsewhere = if moved > 0.0 {
                format!(
                    "Other ranks made {} of those: {} stolen, the rest placed there.",
                    percent(moved / tests.max(1.0)),
                    percent(stolen / tests.max(1.0)),
                )
            } else {
                "No other rank made any of those.".to_owned()
            };
            let mut why = format!(
                "Rank {rank} owns {} of the {patches} patches and {} of all tests ({}). {elsewhere}",
                own.len(),
                percent(share),
                most.join(", "),
            );
            if let (Some(first), true) = (ranked.first(), run.cloth.is_some())
                && let Some(per) = traced.patches[first.0].per_triangle()
            {
                let triangles: u32 = traced.patches.iter().map(|work| work.triangles).sum();
                let _ = write!(
                    why,
                    " In patch {} a triangle takes {} tests a step, on average {}.",
                    first.0,
                    one_digit(per / traced.count.max(1) as f64),
                    one_digit(all / f64::from(triangles.max(1)) / traced.count.max(1) as f64),
                );
            }
            let numbers: Vec<String> = (ranked.iter().take(3))
                .filter(|(_, share)| *share > 0.01)
                .map(|(patch, _)| patch.to_string())
                .collect();
            // Where they were shared out, nobody is to blame for having them.
            let kept = moved < 0.5 * (1.0 - even) * tests;
            let hungry = phase.at_fault && phase.answer == SHARED && traced.is_hungry();
            if !(kept && hungry) {
                let fine = match (kept, phase.at_fault) {
                    (false, _) => "They were shared out.",
                    (true, false) => "Nobody waits for that.",
                    (true, true) => "Ranks do not wait for that.",
                };
                return Finding {
                    answer: "none".to_owned(),
                    why: format!("{why} {fine}"),
                    ..Finding::default()
                };
            }
            let noun = if numbers.len() == 1 {
                "patch"
            } else {
                "patches"
            };
            Finding {
                answer: format!(
                    "those of rank {rank}, most of all {noun} {}",
                    list(&numbers)
                ),
                why,
                at_fault: true,
                unknown: false,
            }
        }
        None => Finding {
            answer: "none".to_owned(),
            why: no_owner(run.ranks(), &ranked, &most),
            ..Finding::default()
        },
    }
}

/// The reason why no rank is to blame for what it owns. Patches are in the order of their shares,
/// and `most` names the first of them.
fn no_owner(ranks: usize, ranked: &[(usize, f64)], most: &[String]) -> String {
    let told = most.join(", ");
    match ranked.first() {
        _ if most.is_empty() => {
            "No rank and no patch has much more than its share of the tests.".to_owned()
        }
        _ if ranks < 2 => format!("One rank owns all patches. Most tests belong to {told}."),
        Some(&(patch, share)) if share > LARGE => format!(
            "No rank owns much more than its share of the tests, though patch {patch} alone has {}: most tests belong to {told}.",
            percent(share)
        ),
        _ => format!(
            "No rank owns much more than its share of the tests. Most tests belong to {told}."
        ),
    }
}

fn one_digit(number: f64) -> String {
    if number < 100.0 {
        format!("{number:.1}")
    } else {
        count(number.round() as u64)
    }
}

fn patch_of_record(run: &Run) -> Finding {
    let most =
        (run.record.ranks.iter().enumerate()).max_by_key(|(rank, r)| (r.tests, usize::MAX - rank));
    let why = match most {
        Some((rank, most)) if most.tests > 0 => {
            let all = total(run.record.ranks.iter().map(|r| r.tests));
            format!(
                "Only a trace shows to which patches the tests belong. Rank {rank}, which owns patches {} to {}, made the most tests, {}.",
                most.first_patch,
                most.end_patch.saturating_sub(1),
                percent(most.tests as f64 / all as f64)
            )
        }
        _ => "Only a trace shows to which patches the tests belong.".to_owned(),
    };
    Finding {
        answer: "not known without a trace".to_owned(),
        why,
        at_fault: false,
        unknown: true,
    }
}

fn policy(run: &Run, digest: &Digest) -> Finding {
    let name = digest.policy();
    let innocent = |why: String| Finding {
        answer: name.clone(),
        why,
        ..Finding::default()
    };
    if run.ranks() < 2 {
        return innocent("One rank has nobody to share with.".to_owned());
    }
    let Some(traced) = &digest.traced else {
        return policy_of_record(digest, &name);
    };
    let hungry = [Use::Held, Use::Running, Use::Answer, Use::NoWork];
    let shares = hungry.map(|what| traced.share(what));
    let unshared = shares[0] + shares[1] + shares[2];
    let mut why = String::new();
    let steals = digest.sharing.as_ref().is_none_or(|sharing| sharing.steal);
    if !steals {
        let placed = digest.sharing.as_ref().is_some_and(|s| s.forecast);
        let _ = write!(
            why,
            "It lets no rank ask another for tasks: tasks stay {}. ",
            if placed {
                "where the costs of earlier steps have put them"
            } else {
                "on the rank that owns their patches"
            }
        );
    }
    let _ = write!(
        why,
        "Ranks were idle for {} of the time while tasks waited at another rank, for {} while work was only inside \
         tasks that others ran, for {} waiting for answers.",
        percent(shares[0]),
        percent(shares[1]),
        percent(shares[2])
    );
    if digest.counts.requests > 0 {
        let _ = write!(
            why,
            " {} requests were sent, and {} were refused.",
            count(digest.counts.requests),
            percent(digest.counts.refused as f64 / digest.counts.requests as f64)
        );
    }
    // Where most idle time has other causes, sharing tasks otherwise changes little.
    let all = traced.division.all();
    let idle = (all.idle() - all.of(Use::Outputs)) as f64 / all.total().max(1) as f64;
    let at_fault = unshared > MINOR && unshared > shares[3] && 4.0 * unshared > idle;
    if at_fault && let Some(quicker) = traced.at_best() {
        let _ = write!(
            why,
            " If tasks were spread evenly and at once, steps would take {} of the time.",
            percent(quicker)
        );
    }
    if let Some((step, analysis)) = &traced.longest
        && let threads = run.record.machine.comm != "virtual"
        && let Some(advice) = advice(analysis, threads).filter(|_| at_fault && steals)
    {
        let _ = write!(
            why,
            " The trace of step {step}, which has the longest collision phase, suggests: {advice}."
        );
    }
    Finding {
        answer: name,
        why,
        at_fault,
        unknown: false,
    }
}

impl Traced {
    /// Whether what ranks lose in the phase in which they share tasks is mostly for want of tasks,
    /// or for that more than for any other one cause. Ranks that share cores wait for those that
    /// have none in whatever they do together, and may seem to be anywhere while they have none
    /// themselves; had each a core, they would wait as long as the one with most tasks has more of
    /// them.
    fn is_hungry(&self) -> bool {
        let phase = self.tracks.phases.iter().position(|name| name == SHARED);
        phase.is_some_and(|phase| {
            let parts = self.division.phase(phase);
            let wants = [Use::Held, Use::Running, Use::Answer, Use::NoWork];
            let want: u64 = wants.iter().map(|&what| parts.of(what)).sum();
            let most = main_cause(&parts).is_some_and(|cause| wants.contains(&cause));
            let of_ranks = self.division.parts.iter().filter_map(|of| of.get(phase));
            let tasks: Vec<u64> = of_ranks.map(|of| of.of(Use::Tasks)).collect();
            let longest = tasks.iter().copied().max().unwrap_or_default();
            let fewer = tasks
                .iter()
                .map(|tasks| longest - tasks)
                .fold(0, u64::saturating_add);
            most || want.max(fewer) > (parts.idle() - parts.of(Use::Outputs)) / 2
        })
    }

    /// The share of their time that the traced steps would take if tasks were spread evenly over
    /// ranks and nobody waited for any; what ranks do besides stays as it is.
    #[must_use]
    pub(crate) fn at_best(&self) -> Option<f64> {
        let phase = self.tracks.phases.iter().position(|name| name == SHARED)?;
        let all = self.division.all().total() as f64;
        let parts = self.division.phase(phase);
        let saved = [Use::Held, Use::Running, Use::Answer, Use::NoWork];
        let saved: u64 = saved.iter().map(|&what| parts.of(what)).sum();
        (all > 0.0).then(|| 1.0 - saved as f64 / all)
    }
}

fn policy_of_record(digest: &Digest, name: &str) -> Finding {
    let tasks = digest.phases.iter().find(|phase| phase.name == IN_TASKS);
    let steals = digest.sharing.as_ref().is_none_or(|sharing| sharing.steal);
    let uneven = tasks.is_some_and(|tasks| tasks.imbalance() > MUCH - 1.0);
    let counts = &digest.counts;
    if !digest.has_times {
        return Finding {
            answer: name.to_owned(),
            why: "The run ended before it wrote which ranks asked which for tasks.".to_owned(),
            at_fault: false,
            unknown: true,
        };
    }
    let mut why = match steals {
        false => "It lets no rank ask another for tasks.".to_owned(),
        true if counts.requests == 0 => "No rank asked another for tasks.".to_owned(),
        true => format!(
            "{} requests were sent, and {} were refused.",
            count(counts.requests),
            percent(counts.refused as f64 / counts.requests as f64)
        ),
    };
    if let Some(tasks) = tasks {
        let _ = write!(
            why,
            " Time in tasks is spread with an imbalance of {}.",
            percent(tasks.imbalance())
        );
    }
    Finding {
        answer: name.to_owned(),
        why,
        at_fault: uneven,
        unknown: false,
    }
}
