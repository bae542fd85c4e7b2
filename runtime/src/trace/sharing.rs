//! The facts that a trace has about the policy under which it was recorded. Advice needs them: it
//! would be wrong to blame a task for what the policy does.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::policy::{Interval, POLICIES, Policy};

/// How ranks shared work: the parts of a [`Policy`] that advice depends on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sharing {
    /// The policy's name in [`POLICIES`], if it has one.
    pub policy: Option<String>,
    /// Whether idle ranks asked others for tasks.
    pub steal: bool,
    /// The name of the split rule.
    pub split: String,
    /// Whether that rule never gives anything.
    pub never_splits: bool,
    /// The name of the rule for victims.
    pub victims: String,
    /// The least time between two splits on a rank; `None` if it adapted itself.
    pub interval: Option<Duration>,
    /// Whether a running task was split at once for a thief that would have got nothing.
    pub split_on_request: bool,
    /// Whether tasks were forked by forecast where there was one.
    #[serde(default)]
    pub forecast: bool,
    /// Whether that forecast put all tasks of a patch on one rank.
    #[serde(default)]
    pub moves_patches: bool,
}

impl From<&Policy> for Sharing {
    fn from(policy: &Policy) -> Self {
        let mut named = POLICIES.iter();
        let name = named.find_map(|(name, known, _)| (known == policy).then_some(*name));
        Self {
            policy: name.map(str::to_owned),
            steal: policy.steal,
            split: policy.split.name().to_owned(),
            never_splits: policy.split.gives_nothing(),
            victims: policy.victims.name().to_owned(),
            interval: match policy.interval {
                Interval::Fixed(interval) => Some(interval),
                Interval::Adaptive => None,
            },
            split_on_request: policy.split_on_request,
            forecast: policy.forecast,
            moves_patches: policy.moves_patches,
        }
    }
}
