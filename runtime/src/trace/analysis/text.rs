//! The text of an analysis, for people.

use std::fmt;
use std::time::Duration;

use super::Analysis;

impl fmt::Display for Analysis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.tell(f)?;
        match self.advice() {
            Some(advice) if !self.makespan.is_zero() && self.longest.is_some() => {
                write!(f, "\nHint: {advice}.")
            }
            _ => Ok(()),
        }
    }
}

/// The text without advice.
struct Story<'a>(&'a Analysis);

impl fmt::Display for Story<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.tell(f)
    }
}

impl Analysis {
    /// Tells the story without the advice, for programs that have better words for that.
    #[must_use]
    pub fn story(&self) -> impl fmt::Display + '_ {
        Story(self)
    }

    fn tell(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.dropped > 0 {
            writeln!(
                f,
                "{} events found no room and are missing: idle time is overstated; record with more room.",
                Count(self.dropped)
            )?;
        }
        if self.makespan.is_zero() {
            return f.write_str("Nothing happened.");
        }
        write!(
            f,
            "Efficiency {:.0} % on {}",
            self.efficiency() * 100.0,
            Many(self.ranks.len() as u64, "rank")
        )?;
        if self.workers != self.ranks.len() {
            write!(f, " with {}", Many(self.workers as u64, "worker"))?;
        }
        write!(f, " in {}", Time(self.makespan))?;
        let causes = self.causes();
        if !causes.is_empty() {
            write!(f, ": {}", causes.join(", "))?;
        }
        f.write_str(".")?;
        let Some(longest) = &self.longest else {
            return f.write_str("\nNo task ran.");
        };
        write!(
            f,
            "\nTasks ran in {} of {} on average; the longest, `{}` on rank {} worker {}, took {}.",
            Many(self.intervals, "interval"),
            Time(self.mean_interval()),
            longest.kind,
            longest.rank.0,
            longest.worker,
            Time(longest.own),
        )?;
        let steals = &self.steals;
        if steals.asked > 0 || steals.splits > 0 {
            write!(
                f,
                " {} brought {}; tasks were split {}.",
                Many(steals.asked, "request"),
                Many(steals.tasks_in, "task"),
                Many(steals.splits, "time"),
            )?;
        }
        write!(
            f,
            "\nSpread evenly, all work takes {} on {}",
            Time(self.work_bound()),
            Many(self.workers as u64, "worker"),
        )?;
        if self.longest_bound() > self.work_bound() {
            if longest.splittable {
                f.write_str("; the longest task is no bound, for tasks of its kind were split")?;
            } else {
                write!(
                    f,
                    "; no schedule takes less than the longest task, {}, unless it is split",
                    Time(self.longest_bound())
                )?;
            }
        }
        f.write_str(".")?;
        if let Some(deaf) = &self.deafness {
            write!(
                f,
                "\nRank {} read no messages for {} while it ran `{}`",
                deaf.rank.0,
                Time(deaf.time),
                deaf.kind
            )?;
            match deaf.requests {
                0 => f.write_str("; nobody asked it for tasks meanwhile.")?,
                1 => f.write_str(": a request for tasks waited for that.")?,
                n => write!(f, ": {} waited for that.", Many(n, "request"))?,
            }
        }
        Ok(())
    }

    /// Writes the sentence on where the time went, cause by cause. A cause of less than half a
    /// percent is left out.
    fn causes(&self) -> Vec<String> {
        let percent = |part: Duration| {
            let percent = (self.share(part).unwrap_or(0.0) * 100.0).round();
            (percent >= 1.0).then_some(percent)
        };
        let mut parts = Vec::new();
        let mut say = |part: Duration, text: &dyn Fn() -> String| {
            if let Some(percent) = percent(part) {
                parts.push(format!("{percent} % {}", text()));
            }
        };
        let (idle, steals) = (&self.idle, &self.steals);
        say(idle.waiting_first, &|| {
            "of the time went before ranks had their first task".to_owned()
        });
        say(idle.body, &|| "in bodies outside of joins".to_owned());
        say(idle.switching, &|| {
            "between tasks, before anybody was asked for more".to_owned()
        });
        say(idle.starving, &|| match steals.asked {
            0 => "idle while nobody was asked for anything".to_owned(),
            asked => format!(
                "idle while those that were asked had nothing to give ({} of {} requests refused)",
                Count(steals.refused),
                Count(asked)
            ),
        });
        say(idle.joins, &|| {
            "while tasks waited in joins and their workers had none of the tasks they waited for"
                .to_owned()
        });
        say(idle.answer, &|| {
            format!(
                "waiting for answers that brought tasks ({} on average)",
                Time(steals.mean_latency())
            )
        });
        say(idle.end.saturating_sub(idle.detection), &|| {
            let task = self.last.as_ref().map(|last| {
                let split = match last.splits {
                    0 => "never split".to_owned(),
                    1 => "split once".to_owned(),
                    n => format!("split {n} times"),
                };
                let (rank, own, waited) = (last.rank.0, Time(last.own), last.waited());
                // A task keeps the other workers waiting for as long as it runs at most. If they
                // waited far longer, the task was not the reason.
                let others = u32::try_from(self.workers.saturating_sub(1)).unwrap_or(u32::MAX);
                let most = last.end.saturating_sub(last.begin).saturating_mul(others);
                if most < (idle.end.saturating_sub(idle.detection)) / 2 {
                    return format!(", while others still had tasks, rank {rank} the last of them");
                }
                if waited > last.own {
                    let waited = Time(waited);
                    return format!(
                        " while rank {rank} finished one task that ran for {own} and waited in joins for \
                         {waited}"
                    );
                }
                format!(" while rank {rank} finished one task of {own} that was {split}")
            });
            let body = self.last_body.map(|(rank, time)| {
                format!(
                    " while the body of rank {} was at work for {}",
                    rank.0,
                    Time(time)
                )
            });
            let until: Vec<String> = task.into_iter().chain(body).collect();
            let until = until.join(", and then");
            format!("at the end{until}")
        });
        if let Some(percent) = percent(idle.detection) {
            let detection = format!("detection {percent} %");
            match parts.last_mut() {
                Some(last) => {
                    last.push_str("; ");
                    last.push_str(&detection);
                }
                None => parts.push(detection),
            }
        }
        parts
    }
}

/// A time for people: two digits or more, in a unit that fits.
pub(super) struct Time(pub(super) Duration);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0.as_nanos() as f64;
        let units = [(1e9, "s"), (1e6, "ms"), (1e3, "µs")];
        let unit = units.into_iter().find(|&(unit, _)| ns >= unit);
        let Some((unit, name)) = unit else {
            return write!(f, "{ns} ns");
        };
        let number = ns / unit;
        let digits = usize::from(number < 99.95);
        write!(f, "{number:.digits$} {name}")
    }
}

/// A number for people: 12,345.
pub(super) struct Count(pub(super) u64);

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        for (index, digit) in digits.chars().enumerate() {
            if index > 0 && (digits.len() - index).is_multiple_of(3) {
                f.write_str(",")?;
            }
            write!(f, "{digit}")?;
        }
        Ok(())
    }
}

/// A number of things, with its noun.
pub(super) struct Many(pub(super) u64, pub(super) &'static str);

impl fmt::Display for Many {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.0 == 1 { "" } else { "s" };
        write!(f, "{} {}{plural}", Count(self.0), self.1)
    }
}
