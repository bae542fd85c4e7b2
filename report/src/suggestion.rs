//! The command that a report ends with: a study of the steps that were looked at, of the policy
//! that ran and of others.
//!
//! It says all that bears on its result: which steps are recorded and how the run gets there, the
//! network, the policies. So it puts to the test what the report has seen, and nothing else.

use std::path::Path;
use std::time::Duration;

use weft_io::{shell_path, shell_word};
use weft_runtime::POLICIES;
use weft_runtime::trace::Sharing;

use crate::digest::Digest;
use crate::run::Run;

/// The policies that are always tried: owners alone, stealing, placing by forecast, both.
const TRIED: [&str; 4] = ["static", "every-other", "forecast", "forecast-static"];
/// Most steps of a trace that a study records.
const MOST_TRACED: u32 = 50;
/// Steps that it records of a run without a trace: those around the one with the most tests.
const WITHOUT_TRACE: u32 = 16;
/// How many times the ranks of the run are tried, to see from how many on more of them no longer
/// pay.
const TIMES: u64 = 4;
/// The network of a run in virtual time that names none.
const DEFAULT_NETWORK: &str = "gigabit";
/// The network that stands for one that is not known: the quickest that studies know.
const QUICKEST: &str = "hdr-infiniband";

/// The numbers of ranks that are studied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ranks {
    /// The number of ranks of the run.
    AsRun,
    /// All powers of two beyond it, as far as there are patches.
    UpAndBeyond,
}

/// A study, and what there is to know of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Suggestion {
    /// The command line.
    pub(crate) command: String,
    /// Sentences: what the command has otherwise than the run.
    pub(crate) notes: Vec<String>,
}

impl Suggestion {
    /// A study of the run's scene.
    pub(crate) fn of(run: &Run, digest: &Digest, ranks: Ranks) -> Self {
        let mut notes = Vec::new();
        let ran = digest.sharing.as_ref().map(Ran::of);
        let policies = policies(ran.as_ref());
        match &ran {
            None => notes.push("run.json does not say which policy ran.".to_owned()),
            Some(ran) if !ran.is_whole => notes.push(format!(
                "Studies call the policy that ran `{}`: its `low_water` or `steal_timeout` differs, and run.json does not hold these.",
                ran.name
            )),
            Some(ran) if ran.is_mixture() => notes.push(format!(
                "Studies call the policy that ran `{}`, for it has no name of its own.",
                ran.name
            )),
            Some(_) => {}
        }
        let network = network(run).unwrap_or_else(|| {
            notes.push(format!(
                "Studies model the network between ranks, and the run does not name it: `{QUICKEST}` stands for it. Name the nearest one instead, or measure on this machine with `--real`."
            ));
            QUICKEST
        });
        let now = run.ranks();
        let ranks = match ranks {
            Ranks::AsRun => now.to_string(),
            Ranks::UpAndBeyond => {
                let patches = run.record.partition.as_ref().map(|cut| cut.patches);
                let most = patches.unwrap_or(u64::MAX).min(TIMES * now as u64);
                format!("1..{}", most.max(now as u64))
            }
        };
        let steps = recorded(run, digest).map_or_else(String::new, |(from, to)| {
            format!(" --record {from}..{to} --steps {to}")
        });
        let (scene, note) = scene(run);
        if !note.is_empty() {
            notes.push(format!(
                "The command below names the scene as `{UNKNOWN}`{note}."
            ));
        }
        Self {
            command: format!(
                "weft study {scene}{}{steps} --ranks {ranks} --policy {} --network {}",
                overrides(run),
                shell_word(policies.join(",").as_ref()),
                shell_word(network.as_ref()),
            ),
            notes,
        }
    }
}

/// The policy that ran, as studies name it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Ran {
    name: String,
    /// Whether the name says all of it.
    is_whole: bool,
}

impl Ran {
    /// The name that it has, or the nearest one with what is otherwise.
    fn of(sharing: &Sharing) -> Self {
        if let Some(name) = &sharing.policy {
            let name = name.clone();
            return Self {
                name,
                is_whole: true,
            };
        }
        let changes = |(name, known): (&str, Sharing)| {
            // An interval that adapts itself has no value.
            if sharing.interval.is_none() && known.interval.is_some() {
                return None;
            }
            let mut changes = Vec::new();
            let mut unless = |same: bool, key: &str, value: String| {
                if !same {
                    changes.push(format!("+{key}={value}"));
                }
            };
            let own = sharing;
            let interval = own.interval.unwrap_or_default();
            unless(known.steal == own.steal, "steal", own.steal.to_string());
            unless(known.split == own.split, "split", own.split.clone());
            unless(known.victims == own.victims, "victims", own.victims.clone());
            unless(
                known.interval == own.interval,
                "split_interval",
                as_key(interval),
            );
            unless(
                known.split_on_request == own.split_on_request,
                "split_on_request",
                own.split_on_request.to_string(),
            );
            unless(
                known.forecast == own.forecast,
                "forecast",
                own.forecast.to_string(),
            );
            Some((changes.len(), name.to_owned(), changes))
        };
        let known = POLICIES.iter().map(|(name, p, _)| (*name, p.into()));
        let nearest = known.filter_map(changes).min_by_key(|(count, ..)| *count);
        // There is one that adapts itself, and others that do not.
        let (count, name, changes) = nearest.unwrap_or_default();
        Self {
            name: name + &changes.concat(),
            is_whole: count > 0,
        }
    }

    fn is_mixture(&self) -> bool {
        self.name.contains('+')
    }
}

/// A time as scenes and studies read it.
fn as_key(time: Duration) -> String {
    match time.as_nanos() {
        ns if ns % 1000 == 0 => format!("{}us", ns / 1000),
        ns => format!("{ns}ns"),
    }
}

/// The policy that ran, and those that are always tried.
fn policies(ran: Option<&Ran>) -> Vec<&str> {
    let ran = ran.map(|ran| ran.name.as_str());
    let ran = ran.filter(|name| !TRIED.contains(name) && !name.is_empty());
    ran.into_iter().chain(TRIED).collect()
}

/// The steps to record, both included: those of the trace, or of a part of it, or those with the
/// most tests.
fn recorded(run: &Run, digest: &Digest) -> Option<(u32, u32)> {
    let of_history = || Some((run.history.first()?.step, run.history.last()?.step));
    let ((first, last), most) = match &digest.traced {
        Some(traced) => (traced.steps, MOST_TRACED),
        None => (of_history()?, WITHOUT_TRACE),
    };
    (first >= 1).then(|| window(run, (first, last), most))
}

/// The window of `many` steps around the one with the most tests, or of all steps if there are no
/// more.
pub(crate) fn window(run: &Run, (first, last): (u32, u32), many: u32) -> (u32, u32) {
    if last.saturating_sub(first) < many {
        return (first, last.max(first));
    }
    let inside = run.history.iter();
    let inside = inside.filter(|row| (first..=last).contains(&row.step));
    let around = inside
        .max_by_key(|row| row.tests)
        .map_or(last, |row| row.step);
    let to = around
        .saturating_add(many / 2)
        .clamp(first + (many - 1), last);
    (to - (many - 1), to)
}

/// The scene's file, as a word of a command; and what there is to add if it is not known, else
/// nothing.
pub(crate) fn scene(run: &Run) -> (String, &'static str) {
    match run.record.scene.path.as_deref() {
        Some(path) if is_whole(path) => (shell_path(Path::new(path)), ""),
        Some(_) => (
            UNKNOWN.to_owned(),
            ", for its path is no text in UTF-8, and run.json does not hold all of it: put the path in the place of `SCENE`",
        ),
        None => (
            UNKNOWN.to_owned(),
            ", for run.json does not hold its path: put the path in the place of `SCENE`",
        ),
    }
}

/// The word that stands for a scene whose path is not known.
const UNKNOWN: &str = "SCENE";

/// Whether a word of a record is all that it was: what was no UTF-8 has left a mark.
pub(crate) fn is_whole(word: &str) -> bool {
    !word.contains(char::REPLACEMENT_CHARACTER)
}

/// The values that the command of a run has for an option, in their order.
fn values<'a>(run: &'a Run, option: &str) -> Vec<&'a str> {
    let mut words = run.record.command.iter().map(String::as_str);
    let mut values = Vec::new();
    while let Some(word) = words.next() {
        match word.strip_prefix(option) {
            Some("") => values.extend(words.next()),
            Some(rest) => values.extend(rest.strip_prefix('=')),
            None => {}
        }
    }
    values
}

/// The overrides of the run's scene, but for those on how ranks share work, which a study names
/// itself.
fn overrides(run: &Run) -> String {
    let values = values(run, "--set").into_iter();
    values
        .filter(|value| !value.trim_start().starts_with("balance"))
        .map(|value| {
            // One that begins with a dash would be an option.
            let dash = if value.starts_with('-') { "=" } else { " " };
            format!(" --set{dash}{}", shell_word(value.as_ref()))
        })
        .collect()
}

/// The network between ranks in virtual time; `None` if they were not.
fn network(run: &Run) -> Option<&str> {
    if run.record.machine.comm != "virtual" {
        return None;
    }
    let named = values(run, "--network").first().copied();
    Some(named.unwrap_or(DEFAULT_NETWORK))
}

#[cfg(test)]
mod tests {
    use weft_runtime::{Interval, Policy, Split};

    use super::*;

    #[test]
    fn a_policy_has_its_name_or_the_nearest_name_with_the_differences() {
        let name = |policy: Policy| {
            let ran = Ran::of(&Sharing::from(&policy));
            (ran.name, ran.is_whole)
        };
        for &(known, policy, _) in POLICIES {
            assert_eq!(name(policy), (known.to_owned(), true));
        }
        let mixed = |name: &str| (name.to_owned(), true);
        let still = Policy {
            steal: false,
            ..Policy::EVERY_OTHER
        };
        assert_eq!(name(still), mixed("every-other+steal=false"));
        let slow = Policy {
            interval: Interval::Fixed(Duration::from_millis(3)),
            split: Split::HALF,
            ..Policy::LIFELINES
        };
        // As near as `lifelines`, and before it in the table.
        let expected = "half+victims=lifelines+split_interval=3000us";
        assert_eq!(name(slow), mixed(expected));
        let adaptive = Policy {
            forecast: true,
            ..Policy::ADAPTIVE
        };
        assert_eq!(name(adaptive), mixed("adaptive+forecast=true"));
        // Nothing is made up that is not recorded.
        let patient = Policy {
            low_water: 7,
            ..Policy::HALF
        };
        assert_eq!(name(patient), ("half".to_owned(), false));
    }
}
