//! Advice in the terms of people who simulate cloth: keys of scenes and options, where
//! [`Analysis::advice`] speaks to those who write tasks.

use weft_runtime::trace::{Analysis, Hint, Sharing};

use crate::format::{count, seconds};

/// The advice for when one cause of idle time in a collision phase outweighs the others, as the end
/// of a sentence. `threads`: whether ranks may have threads beside their workers, as those in
/// virtual time may not.
#[must_use]
pub fn advice(analysis: &Analysis, threads: bool) -> Option<String> {
    let policy = policy(analysis.sharing.as_ref());
    let s = |time: std::time::Duration| seconds(time.as_secs_f64());
    Some(match analysis.hint()? {
        Hint::PolicyStealsNothing => format!(
            "{policy} lets no rank ask another for tests: take `--policy forecast`, which puts them where earlier steps say and \
             lets ranks ask for the rest, `forecast-static` or `every-other`, or set balance.steal = true"
        ),
        Hint::PolicySplitsNothing => format!(
            "{policy} splits no task, and tasks are long or few: set balance.split = \"every-other\" (`--split`), or cut the \
             cloth into more patches (partition.patches)"
        ),
        Hint::PolicyGivesTooLittle | Hint::GivesTooLittle => format!(
            "{policy} gives too little away, and thieves were refused {} times: take `--policy forecast` or `every-other`, or change one of \
             balance.split (`--split`), .split_interval and .split_on_request",
            count(analysis.steals.refused)
        ),
        Hint::OtherPolicy => format!(
            "there were tasks enough, but not where workers were idle, and {policy} is the suspect: try `half`, `adaptive` or \
             `lifelines` (`--policy`)"
        ),
        Hint::LongTask | Hint::LongTaskThoughSplit => {
            "one task takes more than half of the whole time: cut the cloth into more patches (partition.patches), so that \
             it is smaller, and let tasks be split when they are asked for (balance.split_on_request = true)"
                .to_owned()
        }
        Hint::NobodyAsks => "no rank asked another for tests: take a policy that steals, as `--policy forecast` and `every-other`".to_owned(),
        Hint::TooFewTasks => {
            "there were too few tasks for this number of workers: take fewer ranks (`--ranks`), a larger cloth, or more patches \
             (partition.patches)"
                .to_owned()
        }
        Hint::Joins => {
            "workers waited for tasks that had gone elsewhere: take more patches (partition.patches), or try another `--policy`"
                .to_owned()
        }
        Hint::SlowStart => {
            "ranks had to wait for the first tests: there is too little work for this number, take fewer (`--ranks`) or a larger \
             cloth"
                .to_owned()
        }
        Hint::BodyWorks => {
            "much time goes by beside tests, where volumes and trees are made ready: fewer ranks (`--ranks`) repeat less of it"
                .to_owned()
        }
        Hint::SmallTasks => {
            "much time goes by between tasks: fewer patches (partition.patches) make larger tasks".to_owned()
        }
        Hint::SlowAnswers => format!(
            "answers to requests take long, {} on average: give {}more away at a time (balance.split = \"half\")",
            s(analysis.steals.mean_latency()),
            match threads {
                true => "each rank a thread for messages (`--progress-thread`), or ",
                false => "",
            }
        ),
        Hint::DeafTask => {
            let deaf = analysis.deafness.as_ref()?;
            format!(
                "rank {} could not answer for {} while it ran a task, and others waited: {}",
                deaf.rank.0,
                s(deaf.time),
                match threads {
                    true => "give each rank a thread for messages (`--progress-thread`)",
                    false => "cut the cloth into more patches (partition.patches), so that tasks are shorter",
                }
            )
        }
        Hint::LateTask | Hint::LateTaskThoughSplit => {
            "ranks waited for the last tasks: take more patches (partition.patches), so that they are smaller, or `--policy \
             forecast`, which looks at what tests cost before"
                .to_owned()
        }
        Hint::SlowEnd => {
            "it takes long to find out that all tests are done: there is too little work for this number of ranks, take fewer \
             (`--ranks`) or a larger cloth"
                .to_owned()
        }
        // One that is newer than this.
        _ => analysis.advice()?,
    })
}

fn policy(sharing: Option<&Sharing>) -> String {
    match sharing.and_then(|sharing| sharing.policy.as_ref()) {
        Some(name) => format!("the policy, `{name}`,"),
        None => "the policy".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use weft_runtime::Policy;
    use weft_runtime::comm::Rank;
    use weft_runtime::trace::{Event, Trace, What};

    use super::*;

    /// One of two ranks has all the work, in one task, under a policy that shares nothing.
    #[test]
    fn advice_names_keys_and_options_and_nothing_of_the_library() {
        let trace = |rank: u32, events: &[(u64, What)]| {
            let events = events.iter().map(|&(at, what)| Event { at, what });
            Trace {
                rank: Rank(rank),
                workers: 1,
                kinds: vec!["collide".to_owned()],
                events: events.collect(),
                dropped: 0,
                sharing: None,
            }
        };
        let begin = What::TaskBegin {
            worker: 0,
            kind: 0,
            depth: 0,
            of: [0, 0],
        };
        let end = What::TaskEnd {
            worker: 0,
            units: 9,
        };
        let ends = [(0, What::ScopeBegin), (0, What::JoinBegin)];
        let last = [(1000, What::JoinEnd), (1000, What::ScopeEnd)];
        let busy = [&ends[..], &[(0, begin), (1000, end)], &last].concat();
        let idle = [&ends[..], &last].concat();
        for policy in [
            Policy::by_name("static").unwrap(),
            Policy::PAPER,
            Policy::default(),
        ] {
            let traces = [trace(0, &busy), trace(1, &idle)].map(|t| t.under(&policy));
            let analysis = Analysis::of(&traces);
            let said = advice(&analysis, true).unwrap();
            assert!(
                said.contains("--policy") || said.contains("partition.patches"),
                "{said}"
            );
            for word in ["Task::", "Policy::", "Context::", "fork"] {
                assert!(!said.contains(word), "{said}");
            }
        }
    }
}
