//! The points of a sweep, and how they are named.

use serde::{Deserialize, Serialize};
use thiserror::Error;
use weft_balance::prices::Prices;
use weft_io::Show as _;
use weft_runtime::Policy;
use weft_runtime::comm::virtual_time::Network;

use crate::policy_specification::PolicySpecification;
use crate::replay::Machine;

/// The networks that have names.
pub(crate) const NETWORKS: [(&str, Network); 3] = [
    ("myrinet-2000", Network::MYRINET_2000),
    ("gigabit", Network::GIGABIT),
    ("hdr-infiniband", Network::HDR_INFINIBAND),
];

/// The sweep of a study: each value with each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Numbers of ranks.
    pub ranks: Vec<usize>,
    /// Names of policies, or [specifications](PolicySpecification).
    pub policies: Vec<String>,
    /// Names of networks.
    pub networks: Vec<String>,
    /// How often each point is repeated, with other seeds.
    pub repeat: u32,
    /// Whether only the collision phase is of interest.
    pub collide_only: bool,
    /// How many times slower the modelled machine computes than the recorded one.
    pub slower: f64,
    /// Whether making a patch ready for tests costs nothing: what would be if nobody did it again.
    #[serde(default)]
    pub ready_free: bool,
    /// Whether points are runs on this machine, whose network has no name.
    #[serde(default)]
    pub real: bool,
}

/// A point of a sweep.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Point {
    /// The record of the point, by its place among those of the sweep.
    pub record: usize,
    /// The network's name.
    pub network: String,
    /// The policy's name.
    pub policy: String,
    /// Ranks.
    pub ranks: usize,
    /// The number of the repetition, from 0.
    pub repeat: u32,
}

/// The reason why something is no plan.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum PlanError {
    /// A list of numbers that is none.
    #[error(
        "`{}` is no number of ranks; give numbers from 1 on with commas between, as in 1,2,4, or 1..64 for powers of two", .0.shown()
    )]
    Ranks(String),
    /// A machine that is no machine.
    #[error("a machine {0} times slower: give a number from {LEAST_SLOWER} to {MOST_SLOWER}")]
    Slower(String),
    /// The plan has more repetitions than anybody waits for.
    #[error("{0} repetitions of each point: give at most {MOST_REPETITIONS}")]
    Repetitions(u32),
    /// The plan has nothing to do.
    #[error("no {0} to study")]
    Nothing(&'static str),
    /// A part of a policy that cannot be so.
    #[error("`{}` for `{key}`: wants {wants}", value.shown())]
    Value {
        /// The part.
        key: String,
        /// The value that was given.
        value: String,
        /// The values that are possible.
        wants: &'static str,
    },
    /// A name that nothing has.
    #[error("there is no {what} `{}`{}; there are {known}", name.shown(), nearest.as_ref().map_or_else(String::new, |n| format!(", did you mean `{n}`?")))]
    Unknown {
        /// The kind of thing that was named.
        what: &'static str,
        /// The name.
        name: String,
        /// The nearest that there is.
        nearest: Option<String>,
        /// All names that there are.
        known: String,
    },
}

/// Repetitions of a point, at most.
const MOST_REPETITIONS: u32 = 100_000;

/// How many times slower a machine can be than the recorded one: prices of much less are nothing
/// beside the ns that clocks count in.
const LEAST_SLOWER: f64 = 1e-3;
const MOST_SLOWER: f64 = 1e6;

impl Plan {
    /// Checks names and numbers.
    ///
    /// # Errors
    /// What is wrong, with the nearest right name.
    pub fn check(&self) -> Result<(), PlanError> {
        for (what, empty) in [
            ("ranks", self.ranks.is_empty()),
            ("policies", self.policies.is_empty()),
            ("networks", self.networks.is_empty()),
            ("repetitions", self.repeat == 0),
        ] {
            if empty {
                return Err(PlanError::Nothing(what));
            }
        }
        if !(LEAST_SLOWER..=MOST_SLOWER).contains(&self.slower) {
            // As in 1e-300, not with all of its zeros.
            return Err(PlanError::Slower(format!("{:?}", self.slower)));
        }
        if self.repeat > MOST_REPETITIONS {
            return Err(PlanError::Repetitions(self.repeat));
        }
        if self.ranks.contains(&0) {
            return Err(PlanError::Ranks("0".to_owned()));
        }
        for name in &self.policies {
            policy(name)?;
        }
        for name in self.networks.iter().filter(|_| !self.real) {
            network(name)?;
        }
        Ok(())
    }

    /// Prices on the modelled machine, from those of the recorded one.
    #[must_use]
    pub fn priced(&self, prices: &Prices) -> Prices {
        let mut prices = prices.slower(self.slower);
        if self.ready_free {
            (prices.vertex, prices.way, prices.corner) = (0.0, 0.0, 0.0);
            (prices.measure, prices.node) = (0.0, 0.0);
            (prices.gradient, prices.separation) = (0.0, 0.0);
        }
        prices
    }

    /// The machine that a point is replayed or simulated on.
    ///
    /// # Errors
    /// The point names a network or a policy that does not exist.
    pub fn machine(&self, point: &Point) -> Result<Machine, PlanError> {
        Ok(Machine {
            network: network(&point.network)?,
            policy: policy(&point.policy)?,
            seed: u64::from(point.repeat),
            collide_only: self.collide_only,
            trace: None,
        })
    }

    /// All points of this many records; the smallest numbers of ranks first, so that something can
    /// be seen early.
    #[must_use]
    pub fn points(&self, records: usize) -> Vec<Point> {
        let mut ranks = self.ranks.clone();
        ranks.sort_unstable();
        ranks.dedup();
        let mut points = Vec::new();
        for ranks in ranks {
            for record in 0..records {
                for network in &self.networks {
                    for policy in &self.policies {
                        points.extend((0..self.repeat).map(|repeat| Point {
                            record,
                            network: network.clone(),
                            policy: policy.clone(),
                            ranks,
                            repeat,
                        }));
                    }
                }
            }
        }
        points
    }
}

impl Point {
    /// Its name in files: letters, digits, dashes and dots; of a policy specification also `+`, `=`
    /// and `_`.
    #[must_use]
    pub fn name(&self) -> String {
        let Self {
            record,
            network,
            policy,
            ranks,
            repeat,
        } = self;
        format!("{record}.{network}.{policy}.{ranks:06}.{repeat}")
    }
}

/// Numbers of ranks: `1,2,4`, or `1..64` for the powers of two from one to the other.
///
/// # Errors
/// Something that is no number from 1 on.
pub fn parse_ranks(text: &str) -> Result<Vec<usize>, PlanError> {
    let number = |text: &str| match text.trim().parse::<usize>() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(PlanError::Ranks(text.trim().to_owned())),
    };
    let mut ranks = Vec::new();
    for part in text.split(',') {
        match part.split_once("..") {
            None => ranks.push(number(part)?),
            Some((from, to)) => {
                let (mut next, to) = (number(from)?, number(to)?);
                if next > to {
                    return Err(PlanError::Ranks(part.trim().to_owned()));
                }
                while next < to {
                    ranks.push(next);
                    next = next.saturating_mul(2);
                }
                ranks.push(to);
            }
        }
    }
    Ok(ranks)
}

/// The policy of this name, in which [parts](PolicySpecification) may be changed.
///
/// # Errors
/// There is none.
pub fn policy(name: &str) -> Result<Policy, PlanError> {
    PolicySpecification::parse(name).map(|policy_specification| policy_specification.policy)
}

/// The network of this name.
///
/// # Errors
/// There is none.
pub fn network(name: &str) -> Result<Network, PlanError> {
    let found = NETWORKS.iter().find(|(known, _)| *known == name);
    let names = NETWORKS.iter().map(|(name, _)| *name);
    found
        .map(|(_, network)| *network)
        .ok_or_else(|| unknown("network", name, names))
}

pub(crate) fn unknown<'a>(
    what: &'static str,
    name: &str,
    names: impl Iterator<Item = &'a str> + Clone,
) -> PlanError {
    let near = names
        .clone()
        .map(|known| (strsim::damerau_levenshtein(known, name), known))
        .min();
    let nearest = near
        .filter(|(distance, _)| *distance <= 3)
        .map(|(_, known)| known.to_owned());
    let name = name.to_owned();
    let known = names.collect::<Vec<_>>().join(", ");
    PlanError::Unknown {
        what,
        name,
        nearest,
        known,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_numbers_and_powers_of_two() {
        assert_eq!(parse_ranks("1,3, 8"), Ok(vec![1, 3, 8]));
        assert_eq!(parse_ranks("1..12"), Ok(vec![1, 2, 4, 8, 12]));
        assert_eq!(parse_ranks("16..16,3"), Ok(vec![16, 3]));
        for bad in ["0", "", "1,,2", "8..4", "-1", "many", "0..4"] {
            assert!(parse_ranks(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_wrong_name_is_told_the_nearest_right_one() {
        let text = policy("every-othr").unwrap_err().to_string();
        assert!(text.contains("did you mean `every-other`?"), "{text}");
        let text = network("token-ring").unwrap_err().to_string();
        assert!(
            !text.contains("did you mean") && text.contains("gigabit"),
            "{text}"
        );
    }

    #[test]
    fn points_are_each_with_each_and_have_names_of_their_own() {
        let plan = Plan {
            ranks: vec![4, 1, 4],
            policies: vec!["static".into(), "paper".into()],
            networks: vec!["gigabit".into()],
            repeat: 3,
            collide_only: false,
            slower: 1.0,
            ready_free: false,
            real: false,
        };
        plan.check().unwrap();
        let points = plan.points(2);
        assert_eq!(points.len(), 2 * 2 * 2 * 3);
        assert_eq!((points[0].ranks, points[23].ranks), (1, 4));
        let names: std::collections::BTreeSet<_> = points.iter().map(Point::name).collect();
        assert_eq!(names.len(), points.len());
        assert_eq!(
            Plan {
                repeat: 0,
                ..plan.clone()
            }
            .check(),
            Err(PlanError::Nothing("repetitions"))
        );
        let endless = Plan {
            repeat: u32::MAX,
            ..plan.clone()
        };
        assert_eq!(endless.check(), Err(PlanError::Repetitions(u32::MAX)));
        let checked = |slower: f64| {
            let plan = Plan {
                slower,
                ..plan.clone()
            };
            plan.check()
        };
        for slower in [1e-3, 0.5, 10.0, 1e6] {
            assert_eq!(checked(slower), Ok(()), "{slower}");
        }
        for bad in [0.0, -1.0, 1e-300, 9e-4, 1.1e6, f64::NAN, f64::INFINITY] {
            let text = checked(bad).unwrap_err().to_string();
            let words = format!("a machine {bad:?} times slower");
            assert!(
                text.contains(&words) && text.ends_with("from 0.001 to 1000000"),
                "{text}"
            );
        }
    }
}
