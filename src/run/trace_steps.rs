//! Ranges of steps, as users give them to trace or to record.

use std::fmt;
use std::str::FromStr;

/// A range of steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceSteps {
    /// The first, counted from 1.
    from: u64,
    /// The last.
    to: u64,
}

impl TraceSteps {
    /// All steps.
    pub const ALL: Self = Self {
        from: 1,
        to: u64::MAX,
    };

    /// These, both included.
    #[must_use]
    pub fn between(from: u64, to: u64) -> Self {
        Self { from, to }
    }

    /// The first.
    #[must_use]
    pub fn from(&self) -> u64 {
        self.from
    }

    /// The last; `u64::MAX` if it is that of the run.
    #[must_use]
    pub fn to(&self) -> u64 {
        self.to
    }

    /// Whether a step is among them.
    #[must_use]
    pub fn contains(&self, step: u64) -> bool {
        (self.from..=self.to).contains(&step)
    }
}

/// The error of text that is no range of steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("wants steps, counted from 1: FROM..TO (both count), FROM.., ..TO, or one number")]
pub struct NoSteps;

impl FromStr for TraceSteps {
    type Err = NoSteps;

    fn from_str(text: &str) -> Result<Self, NoSteps> {
        let number = |text: &str, default: u64| match text.trim() {
            "" => Ok(default),
            digits => digits.parse().map_err(|_| NoSteps),
        };
        let (from, to) = match text.split_once("..") {
            Some((from, to)) => (number(from, 1)?, number(to, u64::MAX)?),
            None => {
                let step = number(text, 0)?;
                (step, step)
            }
        };
        if from == 0 || to < from {
            return Err(NoSteps);
        }
        Ok(Self { from, to })
    }
}

impl fmt::Display for TraceSteps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self { from, to } if from == to => write!(f, "{from}"),
            Self { from, to: u64::MAX } => write!(f, "{from}.."),
            Self { from, to } => write!(f, "{from}..{to}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_read_and_nonsense_is_refused() {
        let steps = |text: &str| text.parse::<TraceSteps>();
        assert_eq!(steps("1.."), Ok(TraceSteps::ALL));
        assert_eq!(steps(".."), Ok(TraceSteps::ALL));
        let some = steps("100..110").unwrap();
        assert!(some.contains(100) && some.contains(110));
        assert!(!some.contains(99) && !some.contains(111));
        assert_eq!(steps("7"), steps("7..7"));
        assert_eq!(steps("..3"), steps("1..3"));
        for text in [
            "", "0", "0..3", "5..4", "-1..3", "a..b", "1..2..3", "1...3", "1,2", "0..",
        ] {
            assert_eq!(steps(text), Err(NoSteps), "{text}");
        }
        for text in ["7", "100..110", "3.."] {
            assert_eq!(steps(text).unwrap().to_string(), text);
        }
    }
}
