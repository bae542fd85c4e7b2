//! Policies as studies specify them: a name, or a name with parts changed, as in
//! `every-other+steal=false`.
//!
//! A run may have a policy that has no name, and a study that is compared with it needs that policy
//! too. Keys and values are those of the table `balance` of a scene, so that each point of a study
//! can also be run: [`PolicySpecification::changes`].

use std::time::Duration;

use weft_runtime::policy::{SPLITS, VICTIMS};
use weft_runtime::{Interval, POLICIES, Policy, Split, Victims};

use crate::plan::{PlanError, unknown};

/// A policy and its specification.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicySpecification<'a> {
    /// The name that the specification begins with, one of [`POLICIES`].
    pub name: &'a str,
    /// The keys of a scene's `balance` that are changed, with their values.
    pub changes: Vec<(&'a str, &'a str)>,
    /// The policy that results.
    pub policy: Policy,
}

impl<'a> PolicySpecification<'a> {
    /// Parses `NAME`, or `NAME+KEY=VALUE+KEY=VALUE`.
    ///
    /// # Errors
    /// A name that does not exist, or a value that its key cannot have; the message says what is
    /// possible.
    pub fn parse(text: &'a str) -> Result<Self, PlanError> {
        let mut parts = text.split('+');
        let name = parts.next().unwrap_or_default();
        let names = POLICIES.iter().map(|(name, _, _)| *name);
        let policy = Policy::by_name(name).ok_or_else(|| unknown("policy", name, names))?;
        let mut policy_specification = Self {
            name,
            changes: Vec::new(),
            policy,
        };
        for part in parts {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            change(&mut policy_specification.policy, key, value)?;
            policy_specification.changes.push((key, value));
        }
        Ok(policy_specification)
    }
}

fn change(policy: &mut Policy, key: &str, value: &str) -> Result<(), PlanError> {
    let wants = |wants: &'static str| PlanError::Value {
        key: key.to_owned(),
        value: value.to_owned(),
        wants,
    };
    let boolean = || value.parse::<bool>().map_err(|_| wants("true or false"));
    let time = |least: Duration| {
        let found = duration(value).filter(|&time| time >= least);
        found.ok_or_else(|| wants("a time, as 50us or 1ms"))
    };
    match key {
        "steal" => policy.steal = boolean()?,
        "split_on_request" => policy.split_on_request = boolean()?,
        "forecast" => policy.forecast = boolean()?,
        "moves_patches" => policy.moves_patches = boolean()?,
        "split" => {
            let names = SPLITS.iter().map(|split| split.name());
            policy.split =
                Split::by_name(value).ok_or_else(|| unknown("split rule", value, names))?;
        }
        "victims" => {
            let names = VICTIMS.iter().map(|rule| rule.name());
            policy.victims =
                Victims::by_name(value).ok_or_else(|| unknown("rule for victims", value, names))?;
        }
        "split_interval" => policy.interval = Interval::Fixed(time(Duration::ZERO)?),
        "steal_timeout" => policy.steal_timeout = time(Duration::from_nanos(1))?,
        "low_water" => {
            let count = value.parse().ok().filter(|&count| count <= MOST_LOW_WATER);
            policy.low_water = count.ok_or_else(|| wants("a number of tasks"))?;
        }
        _ => return Err(unknown("part of a policy", key, KEYS.into_iter())),
    }
    Ok(())
}

fn duration(text: &str) -> Option<Duration> {
    // Seconds come last, because the other units end with `s` too.
    let units = [("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0)];
    let (number, unit) = units
        .iter()
        .find_map(|(name, unit)| Some((text.strip_suffix(name)?, unit)))?;
    let number: f64 = number.trim().parse().ok()?;
    Duration::try_from_secs_f64(number * unit).ok()
}

/// The keys that can be changed.
const KEYS: [&str; 9] = [
    "steal",
    "split",
    "victims",
    "split_interval",
    "low_water",
    "split_on_request",
    "steal_timeout",
    "forecast",
    "moves_patches",
];

/// The limit is the same as in scenes.
const MOST_LOW_WATER: usize = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_alone_is_that_policy_and_parts_can_be_changed() {
        for &(name, policy, _) in POLICIES {
            assert_eq!(PolicySpecification::parse(name).unwrap().policy, policy);
        }
        let text = "static+steal=true+split=half+victims=last+split_interval=10ms+low_water=3+split_on_request=true+steal_timeout=2us+forecast=true+moves_patches=true";
        let policy_specification = PolicySpecification::parse(text).unwrap();
        let all = Policy {
            steal: true,
            split: Split::HALF,
            victims: Victims::LAST,
            interval: Interval::Fixed(Duration::from_millis(10)),
            low_water: 3,
            split_on_request: true,
            steal_timeout: Duration::from_micros(2),
            forecast: true,
            moves_patches: true,
        };
        assert_eq!(
            (policy_specification.name, policy_specification.policy),
            ("static", all)
        );
        let keys: Vec<&str> = policy_specification
            .changes
            .iter()
            .map(|(key, _)| *key)
            .collect();
        let known: std::collections::BTreeSet<&str> = KEYS.into();
        assert_eq!(
            keys.into_iter().collect::<std::collections::BTreeSet<_>>(),
            known
        );
    }

    #[test]
    fn errors_in_a_policy_name_the_possible_values() {
        for (text, words) in [
            ("every-othr", "did you mean `every-other`?"),
            ("every-other+stael=false", "did you mean `steal`?"),
            ("every-other+steal=no", "`no` for `steal`"),
            ("every-other+steal", "true or false"),
            ("every-other+split=hlf", "did you mean `half`?"),
            ("every-other+victims=anyone", "lifelines"),
            ("every-other+steal_timeout=0s", "50us"),
            ("every-other+split_interval=-1ms", "50us"),
            ("every-other+low_water=-1", "number of tasks"),
            ("", "there is no policy ``"),
        ] {
            let error = PolicySpecification::parse(text).unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
