//! How long the next substep of a step is: cut where it fails, grown where it goes well.
//!
//! A step of `time.step` is taken in 2^level substeps of equal length; level is 0 unless
//! `time.shortest` allows more. A substep that fails is taken back and tried again in two halves,
//! until it would be shorter than allowed. After [`CALM`] substeps in a row that went well the
//! length doubles again, at a place where the longer substep ends on the grid of its own length
//! [Bridson 2003, §2.3 does so after three]. So every step ends at a multiple of `time.step`,
//! however it was cut, and frames are written at the times at which they would have been.
//!
//! Where pairs are found once for many substeps (`contact.pipeline = "2009"`), what is halved and
//! doubled here is the time between two searches, a *part*, with as many substeps at any length. If
//! their number adapts, their length stays instead: a part of half the length has half as many,
//! down to one. Then a part that went well is also followed by shorter ones where certification had
//! much to do in it ([`SubstepController::shorten`]); nothing is taken back for that.
//!
//! Whether a substep failed is decided from numbers that all ranks share, and lengths are
//! `time.step` over a power of two: ranks stay together to the bit.

use crate::scene::{ContactParameters, Pipeline, Substeps, Time};

/// Substeps in a row that go well before a longer one is tried.
const CALM: u32 = 3;
/// Most often that a step is halved.
const DEEPEST: u32 = 30;

/// The state of the rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SubstepController {
    /// The present length is the step's over 2^level.
    level: u32,
    /// Substeps of the present length done of the step.
    done: u64,
    /// Substeps in a row that went well.
    calm: u32,
    /// The largest level allowed for what fails.
    deepest: u32,
    /// The substeps of a part at level 0.
    substeps: u32,
    /// The largest level to which the number of substeps in a part adapts; 0 if it does not.
    adapts: u32,
}

impl SubstepController {
    pub(crate) fn new(time: &Time, contact: &ContactParameters) -> Self {
        let (substeps, adapts) = match (contact.pipeline, contact.substeps) {
            (Pipeline::Search, _) => (1, 0),
            (Pipeline::History, Substeps::Fixed(count)) => (count, 0),
            (Pipeline::History, Substeps::Adaptive) => (Substeps::MOST, Substeps::MOST.ilog2()),
        };
        let times = (time.shortest).map_or(0.0, |shortest| (time.step / shortest).log2());
        Self {
            // A shortest substep of a half, to rounding, is a half.
            deepest: ((times + 1e-9).floor().max(0.0) as u32).min(DEEPEST),
            substeps,
            adapts,
            ..Self::default()
        }
    }

    /// Whether steps are cut at all.
    pub(crate) fn cuts(&self) -> bool {
        self.deepest > 0
    }

    /// Whether the next substep may be halved.
    pub(crate) fn can_halve(&self) -> bool {
        self.level < self.deepest
    }

    /// Length of the next part of a step of `whole` (s), which is a substep if that has only one.
    pub(crate) fn length(&self, whole: f64) -> f64 {
        // Exact: a power of two.
        whole / self.parts() as f64
    }

    /// The number of substeps of the next part.
    pub(crate) fn substeps_of_part(&self) -> u32 {
        (self.substeps >> self.level.min(self.adapts)).max(1)
    }

    /// The share of the step that is done.
    pub(crate) fn passed(&self) -> f64 {
        self.done as f64 / self.parts() as f64
    }

    /// The substep has failed: makes it half as long, if it may be.
    pub(crate) fn halve(&mut self) -> bool {
        let may = self.can_halve();
        if may {
            self.go_deeper();
        }
        may
    }

    fn go_deeper(&mut self) {
        self.level += 1;
        self.done *= 2;
        self.calm = 0;
    }

    /// Has the parts that follow be half as long, if the number of their substeps adapts and they
    /// have more than one.
    pub(crate) fn shorten(&mut self) {
        if self.adapts > 0 {
            self.calm = 0;
            if self.level < self.adapts {
                self.go_deeper();
            }
        }
    }

    /// The substep went well. Returns whether the step is done.
    pub(crate) fn succeed(&mut self) -> bool {
        self.done += 1;
        self.calm = (self.calm + 1).min(CALM);
        if self.level > 0 && self.calm == CALM && self.done.is_multiple_of(2) {
            self.level -= 1;
            self.done /= 2;
            self.calm = 0;
        }
        let whole = self.done == self.parts();
        if whole {
            self.done = 0;
        }
        whole
    }

    /// Whether the number of substeps of a part adapts.
    pub(crate) fn adapts(&self) -> bool {
        self.adapts > 0
    }

    /// The state for the next step: level and substeps that went well.
    pub(crate) fn between_steps(&self) -> [u32; 2] {
        [self.level, self.calm]
    }

    /// Goes on from there.
    pub(crate) fn restore(&mut self, [level, calm]: [u32; 2]) {
        self.level = level.min(self.deepest.max(self.adapts));
        self.calm = calm.min(CALM);
        self.done = 0;
    }

    fn parts(&self) -> u64 {
        1 << self.level
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn controller(shortest: Option<f64>) -> SubstepController {
        let time = Time {
            step: 0.008,
            shortest,
            ..Time::default()
        };
        SubstepController::new(&time, &ContactParameters::default())
    }

    /// The number of substeps of parts that follow each other, and whether each ends the step.
    fn adapting(crowded: &[bool]) -> Vec<(u32, bool)> {
        let contact = ContactParameters {
            pipeline: Pipeline::History,
            substeps: Substeps::Adaptive,
            ..ContactParameters::default()
        };
        let mut controller = SubstepController::new(&Time::default(), &contact);
        assert!(!controller.cuts());
        let mut parts = Vec::new();
        for &crowded in crowded {
            let count = controller.substeps_of_part();
            assert_eq!(controller.length(16.0), f64::from(count));
            let ends = controller.succeed();
            if crowded {
                controller.shorten();
            }
            let mut other = controller;
            other.restore(controller.between_steps());
            assert!(
                !ends || other == controller,
                "a step is where one may go on"
            );
            parts.push((count, ends));
        }
        parts
    }

    #[test]
    fn substeps_of_a_part_adapt_and_keep_their_length() {
        let crowded = [true, true, false, false, false, false, false, false];
        let parts = adapting(&crowded);
        let expected = [
            (16, true),
            (8, false),
            // A quarter of a step is left of each half, and after three such parts one of a half.
            (4, false),
            (4, true),
            (4, false),
            (4, false),
            (8, true),
            (8, false),
        ];
        assert_eq!(parts, expected);
        // There is no part without a substep.
        assert!(adapting(&[true; 38]).ends_with(&[(1, false), (1, false), (1, true)]));
    }

    #[test]
    fn a_step_is_whole_unless_the_scene_allows_substeps() {
        let mut controller = controller(None);
        assert!(!controller.cuts() && !controller.halve());
        assert_eq!(controller.length(0.008), 0.008);
        assert!(controller.succeed() && controller.succeed());
    }

    #[test]
    fn halves_go_down_to_the_shortest_and_back_after_three_good_substeps() {
        let mut controller = controller(Some(0.002));
        assert!(controller.halve() && controller.halve() && !controller.halve());
        assert_eq!(controller.length(0.008), 0.002);
        // After three the place is odd: the fourth is as short, and a longer one would end beyond
        // the step.
        let whole: Vec<bool> = (0..4).map(|_| controller.succeed()).collect();
        assert_eq!(whole, [false, false, false, true]);
        assert_eq!(controller.length(0.008), 0.004);
        let whole: Vec<bool> = (0..4).map(|_| controller.succeed()).collect();
        assert_eq!(whole, [false, true, false, true]);
        assert_eq!(controller.length(0.008), 0.008);
    }

    proptest! {
        /// Whatever fails, time goes on, and every step ends where it would have ended.
        #[test]
        fn substeps_add_up_to_steps(failures in prop::collection::vec(any::<bool>(), 1..400), deepest in 0u32..6) {
            let mut controller = controller(Some(0.008 / f64::from(1 << deepest)));
            let mut passed = 0.0;
            for failed in failures {
                prop_assert_eq!(controller.passed(), passed);
                if failed && controller.halve() {
                    continue;
                }
                let end = passed + controller.length(1.0);
                prop_assert!(end <= 1.0);
                let whole = controller.succeed();
                prop_assert_eq!(whole, end == 1.0);
                passed = if whole { 0.0 } else { end };
            }
        }
    }
}
