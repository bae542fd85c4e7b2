//! Advice: which cause of idle time outweighs the others, and whether the program or the policy is
//! to be changed for it.
//!
//! Workers may wait for tasks because there are none, because tasks cannot be had, or because the
//! policy brings none. The policy is looked at first. If it shares nothing, it says nothing about
//! tasks that they were never split. A setting that the policy has already is never advised.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::text::{Count, Many, Time};
use super::{Analysis, RankAnalysis, Sharing};
use crate::policy::Policy;

/// The efficiency from which on there is nothing to explain.
const GOOD: f64 = 0.9;
/// The share of the time below which a cause is no reason for advice.
const MINOR: f64 = 0.05;
/// The number of intervals of tasks for each worker below which there are few. With more, a worker
/// that gets one too many loses little.
const FEW: u64 = 4;
/// The ratio of the busiest rank's time to the mean up to which ranks have nothing to share.
const EVEN: f64 = 1.1;

/// The advice for a scope in which one cause outweighs the others; [`Analysis::advice`] puts it in
/// words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Hint {
    /// The policy lets no rank ask another for tasks.
    PolicyStealsNothing,
    /// The policy splits no task, and tasks are long or few.
    PolicySplitsNothing,
    /// The policy splits seldom, or gives one entry at a time, and that is less than thieves take.
    PolicyGivesTooLittle,
    /// There are tasks enough, but the policy does not bring them where they are wanted.
    OtherPolicy,
    /// One task takes more than half the makespan, and none of its kind was ever split.
    LongTask,
    /// Ranks waited for one long task, though tasks of its kind were split.
    LongTaskThoughSplit,
    /// Ranks were refused although one was busy throughout; nothing is known of the policy.
    GivesTooLittle,
    /// No rank asked another for tasks; nothing is known of the policy.
    NobodyAsks,
    /// There are few tasks, or pieces of them, for each worker.
    TooFewTasks,
    /// Tasks waited in joins, and there was nothing to do for their workers.
    Joins,
    /// It took long until there was a first task.
    SlowStart,
    /// Bodies did work of their own.
    BodyWorks,
    /// Much time goes by between tasks.
    SmallTasks,
    /// Answers took long.
    SlowAnswers,
    /// Answers took long, and a task kept its rank from answering.
    DeafTask,
    /// Ranks waited for the last tasks.
    LateTask,
    /// Ranks waited for the last task, though tasks like it were split.
    LateTaskThoughSplit,
    /// Finding the end took long.
    SlowEnd,
}

impl Analysis {
    /// Returns advice, if efficiency is below 90 % and one cause stands out.
    #[must_use]
    pub fn hint(&self) -> Option<Hint> {
        if self.efficiency() >= GOOD || self.workers < 2 {
            return None;
        }
        let idle = &self.idle;
        let last = self.last.as_ref();
        let last_task = last.map_or(Duration::ZERO, |last| last.end.saturating_sub(last.begin));
        let late = idle.end.saturating_sub(idle.detection);
        let body_was_late = self.last_body.is_some_and(|(_, time)| time > last_task);
        let (body, late) = match body_was_late {
            true => (idle.body + late, Duration::ZERO),
            false => (idle.body, late),
        };
        let started = idle.waiting_first.saturating_sub(idle.unforked);
        let hunger = idle.starving + started + idle.joins + late;
        let causes = [
            (hunger, None),
            (idle.unforked, Some(Hint::SlowStart)),
            (idle.answer, Some(Hint::SlowAnswers)),
            (body, Some(Hint::BodyWorks)),
            (idle.switching, Some(Hint::SmallTasks)),
            (idle.detection, Some(Hint::SlowEnd)),
        ];
        let (time, hint) = causes.into_iter().max_by_key(|&(time, _)| time)?;
        // If there are many small causes, none is worth advice.
        if self.share(time)? < MINOR || time * 3 < idle.total() {
            return None;
        }
        let hint = hint.or_else(|| self.hungry(hunger, late))?;
        let deaf = self.deafness.as_ref().is_some_and(|deaf| deaf.requests > 0);
        Some(match hint {
            Hint::SlowAnswers if deaf => Hint::DeafTask,
            hint => hint,
        })
    }

    /// Puts the hint into words, with what this scope's policy and tasks are to do about it.
    #[must_use]
    pub fn advice(&self) -> Option<String> {
        let sharing = self.sharing.as_ref();
        let longest = self.longest.as_ref();
        let text = match self.hint()? {
            Hint::PolicyStealsNothing => format!(
                "{} lets no rank ask another for tasks: every task stays where it was forked; {}",
                policy(sharing),
                change_it()
            ),
            Hint::PolicySplitsNothing => format!(
                "{} splits no task, and tasks are {}: set Policy::split (--split) to `every-other`, or \
                 make more and smaller tasks",
                policy(sharing),
                if self.has_long_task() { "long" } else { "few" }
            ),
            Hint::PolicyGivesTooLittle => self.gives_too_little()?,
            Hint::OtherPolicy => format!(
                "there were tasks enough, {} for each worker, but not where workers were idle: {} is \
                 the suspect; try {}",
                Many(self.intervals / self.workers as u64, "interval"),
                policy(sharing),
                self.others()?
            ),
            Hint::LongTask => {
                "the longest task takes more than half of the whole time, and none like it was ever \
                 split: make it splittable (implement Task::split, and return from Task::run often, so \
                 that it can be asked), hyperfork parts of it, or fork smaller tasks"
                    .to_owned()
            }
            Hint::LongTaskThoughSplit => format!(
                "the longest task, `{}`, takes more than half of the whole time although tasks like it \
                 were split: let Task::split give more away, or return from Task::run more often",
                longest?.kind
            ),
            Hint::GivesTooLittle => {
                "requests were refused while a rank was busy throughout: the policy may give too little \
                 away at a time; see Policy::split (--split) and Policy::interval"
                    .to_owned()
            }
            Hint::NobodyAsks => {
                "no rank asked another for tasks: take a policy that steals, as `Policy::default()` \
                 does, or fork tasks on every rank"
                    .to_owned()
            }
            Hint::TooFewTasks => format!(
                "there were too few tasks for this number of workers: tasks ran in {} on {}; take fewer \
                 workers, a larger problem, or make more and smaller tasks",
                Many(self.intervals, "interval"),
                Many(self.workers as u64, "worker")
            ),
            Hint::Joins => {
                let mut text = "tasks waited in joins, where their workers run only tasks that those \
                                wait for: hyperfork instead of fork and join, or make the tasks \
                                that are waited for smaller"
                    .to_owned();
                if let Some(others) = self.others().filter(|_| self.is_refused()) {
                    text.push_str("; another policy may help: try ");
                    text.push_str(&others);
                }
                text
            }
            Hint::SlowStart => {
                "ranks had to wait until there was a first task anywhere: fork tasks before anything \
                 else, and on every rank"
                    .to_owned()
            }
            Hint::BodyWorks => {
                "bodies work outside of joins, where they run no tasks: put that work into tasks"
                    .to_owned()
            }
            Hint::SmallTasks => {
                "much time goes by between tasks of the same rank: do more in each task".to_owned()
            }
            Hint::SlowAnswers => format!(
                "answers to requests take long, {} on average, beside intervals of tasks of {}: let \
                 tasks return from Task::run more often, so that their rank can answer, and give more \
                 away at a time",
                Time(self.steals.mean_latency()),
                Time(self.mean_interval())
            ),
            Hint::DeafTask => {
                let deaf = self.deafness.as_ref()?;
                format!(
                    "`{}` runs for long without returning: rank {} could not answer for {}, and others \
                     waited; let it return from Task::run when it has charged Context::budget",
                    deaf.kind,
                    deaf.rank.0,
                    Time(deaf.time)
                )
            }
            Hint::LateTask => {
                "ranks waited for the last tasks: fork the longest tasks first, or make them splittable \
                 (implement Task::split) or smaller"
                    .to_owned()
            }
            Hint::LateTaskThoughSplit => {
                "ranks waited for the last tasks, although tasks like them were split: let Task::split \
                 give more away, and return from Task::run more often"
                    .to_owned()
            }
            Hint::SlowEnd => {
                "it takes long to find out that all is done: there is too little work in a scope for this number of ranks; put more into one scope, or take fewer"
                    .to_owned()
            }
        };
        Some(text)
    }

    /// Finds out why workers waited for tasks.
    fn hungry(&self, hunger: Duration, late: Duration) -> Option<Hint> {
        let ranks = self.ranks.len() > 1;
        let sharing = self.sharing.as_ref();
        let long = self.has_long_task();
        if ranks && !self.is_even() {
            if sharing.is_some_and(|sharing| !sharing.steal) {
                return Some(Hint::PolicyStealsNothing);
            }
            if self.steals.asked == 0 && !long {
                return Some(Hint::NobodyAsks);
            }
        }
        let few = self.intervals < FEW * self.workers as u64;
        if let Some(sharing) = sharing {
            if sharing.never_splits && (few || long) {
                return Some(Hint::PolicySplitsNothing);
            }
            if self.is_split_seldom(sharing) || self.is_split_thinly(sharing) {
                return Some(Hint::PolicyGivesTooLittle);
            }
        }
        let (longest, last) = (self.longest.as_ref()?, self.last.as_ref()?);
        // Several tasks, all alike, are not long but few.
        let alike = self.intervals > 1 && longest.own < self.mean_interval() * 3 / 2;
        if long && !(few && alike) {
            if !longest.splittable {
                return Some(Hint::LongTask);
            }
            // A task that runs from the beginning to the end while others take their share of it
            // does no harm.
            if longest.own > self.work_bound() * 2 {
                return Some(Hint::LongTaskThoughSplit);
            }
        }
        if self.idle.joins * 2 > hunger {
            return Some(Hint::Joins);
        }
        // If no single task lasts for the whole end, several tasks make it, and other workers could
        // have had some of them.
        let of_one = late / self.workers as u32 <= longest.own;
        if late * 2 > hunger && (of_one || !ranks) && !(few && alike) {
            return Some(match last.splittable {
                false => Hint::LateTask,
                true => Hint::LateTaskThoughSplit,
            });
        }
        if few {
            return Some(Hint::TooFewTasks);
        }
        let throughout = |rank: &RankAnalysis| {
            let time = self.makespan.as_secs_f64() * rank.workers as f64;
            rank.busy.as_secs_f64() >= GOOD * time
        };
        match sharing {
            _ if !ranks => None,
            None if self.is_refused() && self.ranks.iter().any(throughout) => {
                Some(Hint::GivesTooLittle)
            }
            _ => self.others().map(|_| Hint::OtherPolicy),
        }
    }

    /// Whether a task by itself takes more than half of the time, and more than its share of the
    /// work.
    fn has_long_task(&self) -> bool {
        let own = self.longest_bound();
        own > self.makespan / 2 && own > self.work_bound()
    }

    /// Whether most requests brought nothing.
    fn is_refused(&self) -> bool {
        self.steals.refused * 2 > self.steals.asked
    }

    /// Whether every rank worked as much as the others.
    fn is_even(&self) -> bool {
        let share = |rank: &RankAnalysis| rank.busy.as_secs_f64() / rank.workers.max(1) as f64;
        let most = self.ranks.iter().map(share).fold(0.0, f64::max);
        most <= EVEN * self.work_bound().as_secs_f64()
    }

    /// Whether ranks split about as often as the policy's interval lets them, or could hardly begin
    /// to.
    fn is_split_seldom(&self, sharing: &Sharing) -> bool {
        let Some(interval) = sharing.interval.filter(|interval| !interval.is_zero()) else {
            return false;
        };
        if sharing.split_on_request || sharing.never_splits {
            return false;
        }
        let often = |rank: &RankAnalysis| (rank.busy.as_nanos() / interval.as_nanos()) as u64;
        let allowed: u64 = self.ranks.iter().map(often).sum();
        match self.steals.splits {
            // If there were chances enough, then tasks could not be split.
            0 => allowed < 2,
            splits => splits * 2 >= allowed,
        }
    }

    /// Whether tasks were split, an entry at a time, and thieves still found nothing.
    fn is_split_thinly(&self, sharing: &Sharing) -> bool {
        sharing.split == "oldest" && self.steals.splits > 0 && self.is_refused()
    }

    /// Says what the policy does, and which part of it to change.
    fn gives_too_little(&self) -> Option<String> {
        let sharing = self.sharing.as_ref()?;
        let (mut does, mut cures) = (Vec::new(), Vec::new());
        if let Some(interval) = sharing.interval
            && self.is_split_seldom(sharing)
        {
            let time = Time(interval);
            does.push(format!("splits a rank's tasks at most every {time}"));
            cures.push("shorten Policy::interval, or set Policy::split_on_request");
        }
        if sharing.split == "oldest" {
            does.push("gives one entry away at a time".to_owned());
            cures.push("set Policy::split (--split) to `every-other`");
        }
        let cure = match sharing.policy {
            // The name of the policy says all.
            Some(_) => change_it(),
            None => cures.join("; "),
        };
        let refused = Count(self.steals.refused);
        Some(format!(
            "{} starves thieves, who were refused {refused} times: it {}; {cure}",
            policy(Some(sharing)),
            does.join(" and "),
        ))
    }

    /// Names policies to try, which differ from the scope's in what may matter; `None` if there are
    /// none.
    fn others(&self) -> Option<String> {
        let sharing = self.sharing.as_ref();
        let was_split = self.steals.splits > 0;
        let differs = |policy: &Policy| match policy.victims == Policy::default().victims {
            true => was_split && sharing.is_none_or(|s| s.split != policy.split.name()),
            false => sharing.is_none_or(|s| s.victims != policy.victims.name()),
        };
        let names = ["lifelines", "half", "every-other", "weight"].into_iter();
        let names = names.filter(|name| Policy::by_name(name).is_some_and(|p| differs(&p)));
        let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
        (!names.is_empty()).then(|| format!("{} (Policy::by_name)", names.join(", ")))
    }
}

/// Describes the policy in a sentence.
fn policy(sharing: Option<&Sharing>) -> String {
    match sharing.and_then(|sharing| sharing.policy.as_ref()) {
        Some(name) => format!("the policy, `{name}`,"),
        None => "the policy".to_owned(),
    }
}

fn change_it() -> String {
    "change the policy: `Policy::default()`, by name `every-other`".to_owned()
}
