//! Values between keyframes: steps, straight lines, turns at an even pace, and cubic splines.
//!
//! The formulas are those of the format (Khronos, *glTF 2.0 Specification*, appendix C, "Animation
//! sampler interpolation modes"). Sines and arc tangents are those of `libm`: every rank computes
//! the same bits, whatever its C library.

use glam::{DQuat, DVec3, DVec4};

use crate::heap_bytes::{counts_heap, owns_no_heap};

/// The way from one keyframe to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Between {
    /// The value of a keyframe holds until the next one.
    Step,
    Linear,
    /// A cubic that has the tangents of the keyframes.
    Cubic,
}

owns_no_heap!(Between);

/// Values at times.
#[derive(Clone, Debug)]
pub(super) struct Keyframes {
    /// Ascending, in s.
    pub(super) times: Vec<f64>,
    /// One for each time; of a cubic three, the value between the tangents before and after it.
    pub(super) values: Vec<DVec4>,
    pub(super) between: Between,
}

counts_heap!(Keyframes: times, values, between);

impl Keyframes {
    /// How many values there are for each time.
    pub(super) fn per_time(between: Between) -> usize {
        match between {
            Between::Step | Between::Linear => 1,
            Between::Cubic => 3,
        }
    }

    /// The value at a keyframe.
    pub(super) fn value(&self, index: usize) -> DVec4 {
        match self.between {
            Between::Step | Between::Linear => self.values[index],
            Between::Cubic => self.values[3 * index + 1],
        }
    }

    /// A vector at a time in s.
    pub(super) fn vector(&self, time: f64) -> DVec3 {
        self.at(time, |from, to, share| from + (to - from) * share)
            .truncate()
    }

    /// A rotation at a time in s; values have to be of length 1, but for those of cubics.
    pub(super) fn rotation(&self, time: f64) -> DQuat {
        let turned = |from, to, share| {
            let turned = slerp(DQuat::from_vec4(from), DQuat::from_vec4(to), share);
            DVec4::from(turned)
        };
        DQuat::from_vec4(self.at(time, turned)).normalize()
    }

    fn at(&self, time: f64, linear: impl Fn(DVec4, DVec4, f64) -> DVec4) -> DVec4 {
        let after = self.times.partition_point(|&at| at <= time);
        let Some(before) = after.checked_sub(1) else {
            return self.value(0);
        };
        if after == self.times.len() {
            return self.value(before);
        }
        let length = self.times[after] - self.times[before];
        let share = (time - self.times[before]) / length;
        let (from, to) = (self.value(before), self.value(after));
        match self.between {
            Between::Step => from,
            Between::Linear => linear(from, to, share),
            Between::Cubic => {
                let leaving = self.values[3 * before + 2] * length;
                let arriving = self.values[3 * after] * length;
                let (t, t2) = (share, share * share);
                let t3 = t2 * t;
                from * (2.0 * t3 - 3.0 * t2 + 1.0)
                    + leaving * (t3 - 2.0 * t2 + t)
                    + to * (3.0 * t2 - 2.0 * t3)
                    + arriving * (t3 - t2)
            }
        }
    }
}

/// The rotation after a share of the shorter way from one to another, at an even pace.
///
/// The angle between them as vectors is that of the half chords, which is exact to rounding also
/// for small angles, where an arc cosine is not.
fn slerp(from: DQuat, to: DQuat, share: f64) -> DQuat {
    let to = if from.dot(to) < 0.0 { -to } else { to };
    let angle = 2.0 * libm::atan2((to - from).length(), (to + from).length());
    let whole = libm::sin(angle);
    if whole < LEAST_SINE {
        return from + (to - from) * share;
    }
    let part = |share: f64| libm::sin(share * angle) / whole;
    from * part(1.0 - share) + to * part(share)
}

/// The sine of an angle below which an arc is its chord, to rounding.
const LEAST_SINE: f64 = 1e-9;
