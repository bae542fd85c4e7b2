//! The signed distance from a mesh that deforms, at any time, from those of its samples.
//!
//! Between the samples n and n + 1 it is, a share α of the time from one to the other \[Sel08,
//! §7.5.1\],
//!
//! ```text
//! Φ(x, α) = (1 − α) φⁿ(x − α D(x)) + α φⁿ⁺¹(x + (1 − α) D(x))
//! ```
//!
//! with the displacement D of the surface near x between them (`Drift`). It is exact for what
//! only goes from place to place, and has no jump at samples, where α is 0 or 1. Before the first
//! sample and after the last one it is the distance from that. So it is a function of time alone. A
//! body that moves besides is seen from its own axes.
//!
//! **Error.** The truth is the mesh whose vertices go straight from sample to sample. Let e be the
//! most by which D(x) differs from the displacement d(p) of the points p of the mesh that are
//! nearest: to x at that time, and to y = x − α D(x) in the sample n. The first one is p + α
//! d(p) then, so |φⁿ(y)| ≤ |y − p| ≤ |x − p − α d(p)| + α e; and the other way
//! round. If the signs differ the surface went past, and the bound holds too. So either term errs
//! by its share of the time times e, and Φ by
//!
//! ```text
//! (1 − α) α e + α (1 − α) e  =  2 α (1 − α) e  ≤  e / 2
//! ```
//!
//! besides the error of interpolation in space, of which it has a mean: [`Then::bound`]. It holds
//! where all of these distances are within what is held (`DistanceField::held`).
//!
//! **On the way.** In a step a vertex goes straight from x₀ to x₁, as the body sees it, while
//! α goes evenly through one part of the step or more. Over a share h of the step the place y
//! moves by h (ẋ − α̇ D(x)) and what D changes. So it moves by no more than h R, with
//! R = |ẋ − α̇ D(x)| + K |ẋ| for a slope K of D, and so does the place in the other sample.
//! Held distances have a slope of
//! √3 or less, so Φ falls by no more than
//!
//! ```text
//! h (√3 R + |α̇| |φⁿ⁺¹ − φⁿ|)
//! ```
//!
//! below what it is where h begins. The way is followed with the steps in which Φ cannot come
//! below a bound. On all of it Φ keeps half of what it has to keep at the end: so steps do not
//! shrink to nothing for a vertex that has just that, and what it keeps does not shrink from step
//! to step.

use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, PoisonError};

use glam::DVec3;

use super::deforming::{Deforming, SampleError};
use super::distance_field::{DistanceField, Near, SLOPE, Sampling, along, keeps, largest_error};
use super::drift::Drift;
use super::enclosed::Enclosed;
use crate::heap_bytes::{HeapBytes, counts_heap};

/// The distance from a mesh that deforms.
#[derive(Debug)]
pub struct DeformingDistance {
    deforming: Arc<Deforming>,
    /// The side of a cell, in m.
    cell: f64,
    /// The distance in m up to which contacts ask.
    reach: f64,
    /// How the sample at the start is sampled.
    at_start: Sampling,
    kept: Mutex<Kept>,
}

impl HeapBytes for DeformingDistance {
    fn heap_bytes(&self) -> usize {
        let Self {
            // The motion of the body counts it.
            deforming: _,
            cell: _,
            reach: _,
            at_start: _,
            kept,
        } = self;
        kept.heap_bytes()
    }
}

/// The samples that were asked for last.
#[derive(Debug, Default)]
struct Kept {
    /// Each with its number.
    fields: Vec<(usize, Arc<Sample>)>,
    /// Each with the number of the sample after it.
    between: Vec<(usize, Arc<Between>)>,
    /// The blocks of the first grid.
    blocks: usize,
    /// The most that interpolation in time has added to an error so far, in m.
    added: f64,
}

counts_heap!(Kept: fields, between; without blocks, added);

/// A sample, and its distance.
#[derive(Debug)]
struct Sample {
    mesh: Arc<Enclosed>,
    field: DistanceField,
}

/// The field counts the mesh.
impl HeapBytes for Sample {
    fn heap_bytes(&self) -> usize {
        self.field.heap_bytes()
    }
}

/// The distance between two samples, or before the first or after the last one.
#[derive(Debug)]
struct Between {
    samples: [Arc<Sample>; 2],
    /// The displacement from one to the other; `None` where there is one sample alone.
    drift: Option<Drift>,
    /// The times of the samples, in s.
    times: [f64; 2],
}

/// The samples are counted where they are kept.
impl HeapBytes for Between {
    fn heap_bytes(&self) -> usize {
        self.drift.heap_bytes()
    }
}

/// The distance at a place and time, and how it comes about.
#[derive(Clone, Copy, Debug)]
struct Reading {
    /// The distance, in m.
    value: f64,
    /// The distances in both samples, in m.
    both: [f64; 2],
    /// The radius in m in which both are as large as they can be.
    free: f64,
    /// The displacement of the surface between the samples, in m.
    drift: DVec3,
}

/// The body at one time.
#[derive(Clone, Debug)]
pub struct Then {
    between: Arc<Between>,
    /// The share of the time between the samples.
    alpha: f64,
}

/// The body in a step: the parts of it between samples.
#[derive(Clone, Debug)]
pub struct SweptDistance {
    parts: Vec<Part>,
}

#[derive(Clone, Debug)]
struct Part {
    between: Arc<Between>,
    /// The shares of the step in which it begins and ends.
    shares: [f64; 2],
    /// The shares of the time between the samples at these.
    alphas: [f64; 2],
}

/// The place where a way comes within reach of the surface.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::collide) struct Met {
    /// The distance there and the normal, when the vertex is there.
    pub(in crate::collide) near: Near,
    /// The place on the surface, when the step begins and when it ends, in m.
    pub(in crate::collide) surface: [DVec3; 2],
}

/// How many samples are kept: two, and one more in a step that comes past the second.
const SAMPLES: usize = 3;
/// A sample may have this many times the blocks of the first one.
const MOST_GROWTH: usize = 64;
/// And this many in any case.
const ALWAYS: f64 = 1e6;
/// The share that a vertex keeps on its way of the distance that it must have at the end.
const ON_THE_WAY: f64 = 0.5;
/// The most steps along a way, and the least share that one takes.
const STEPS: u32 = 4096;
const LEAST_STEP: f64 = 1e-9;
/// The factor that rounding adds to a rate.
const ROUNDED: f64 = 1.0 + 1e-6;
/// A vertex is within reach if it is by this share of a cell.
const WITHIN: f64 = 1e-3;

impl DeformingDistance {
    /// The distance from a mesh that is closed and faces outwards, in cells of a side (m), for
    /// contacts within a reach (m).
    ///
    /// # Errors
    /// The samples of its start cannot be read.
    pub fn new(deforming: Arc<Deforming>, cell: f64, reach: f64) -> Result<Self, SampleError> {
        let mut made = Self {
            deforming,
            cell,
            reach,
            at_start: Sampling {
                cell_m: cell,
                error_m: 0.0,
                bound_m: largest_error(cell),
                blocks: 0,
                sampled_blocks: 0,
                bytes: 0,
                in_time_m: Some(0.0),
            },
            kept: Mutex::default(),
        };
        let first = made.deforming.index_after(0.0).saturating_sub(1);
        let mesh = Arc::new(made.mesh_of(first)?);
        let field = DistanceField::new(&mesh, cell, reach);
        let of_first = field.sampling();
        let mut kept = Kept {
            blocks: of_first.blocks,
            ..Kept::default()
        };
        kept.fields.push((first, Arc::new(Sample { mesh, field })));
        made.kept = Mutex::new(kept);
        made.at_start = Sampling {
            bytes: 2 * of_first.bytes,
            in_time_m: Some(0.0),
            ..of_first
        };
        made.prepare([0.0; 2])?;
        Ok(made)
    }

    /// How it is sampled at the start. The error in time is that of all samples so far.
    #[must_use]
    pub fn sampling(&self) -> Sampling {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        Sampling {
            in_time_m: Some(kept.added),
            ..self.at_start
        }
    }

    /// Reads and samples what a step between these times (s) needs.
    ///
    /// # Errors
    /// A sample cannot be read, or is too large for the cells.
    pub fn prepare(&self, times: [f64; 2]) -> Result<(), SampleError> {
        for after in self.parts(times) {
            self.made(after)?;
        }
        Ok(())
    }

    /// The numbers of the samples after each part of a step between two times (s).
    fn parts(&self, [start, end]: [f64; 2]) -> RangeInclusive<usize> {
        let first = self.deforming.index_after(start);
        let last = self.deforming.times().partition_point(|&at| at < end);
        first..=last.max(first)
    }

    /// The body at a time in s.
    #[must_use]
    pub fn then(&self, time: f64) -> Then {
        let between = self.between(self.deforming.index_after(time));
        let alpha = between.alpha(time);
        Then { between, alpha }
    }

    /// The mesh at a time in s, as the body's own axes see it.
    #[must_use]
    pub fn mesh_then(&self, time: f64) -> Enclosed {
        self.deforming.enclosed_within(time)
    }

    /// The body in a step between two times in s.
    #[must_use]
    pub(in crate::collide) fn in_step(&self, [start, end]: [f64; 2]) -> SweptDistance {
        let all = self.deforming.times();
        let numbers = self.parts([start, end]);
        let (first, last) = (*numbers.start(), *numbers.end());
        let mut parts = Vec::with_capacity(last - first + 1);
        let share = |time: f64| ((time - start) / (end - start)).clamp(0.0, 1.0);
        for after in numbers {
            let between = self.between(after);
            let from = if after == first {
                start
            } else {
                all[after - 1]
            };
            let to = if after == last { end } else { all[after] };
            parts.push(Part {
                alphas: [from, to].map(|time| between.alpha(time)),
                shares: [
                    if after == first { 0.0 } else { share(from) },
                    if after == last { 1.0 } else { share(to) },
                ],
                between,
            });
        }
        SweptDistance { parts }
    }

    /// The mesh of a sample, as the body's own axes see it.
    fn mesh_of(&self, sample: usize) -> Result<Enclosed, SampleError> {
        let positions = self.deforming.sample(sample)?;
        Ok(self.deforming.enclosed_of(positions.to_vec()))
    }

    /// The distance before the sample with a number; where a sample cannot be read, another one,
    /// with a fault of the body.
    fn between(&self, after: usize) -> Arc<Between> {
        self.made(after).unwrap_or_else(|error| {
            self.deforming.fail(&*error);
            let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            let (number, sample) = &kept.fields[0];
            let time = self.deforming.times()[*number];
            Arc::new(Between {
                samples: [Arc::clone(sample), Arc::clone(sample)],
                drift: None,
                times: [time; 2],
            })
        })
    }

    fn made(&self, after: usize) -> Result<Arc<Between>, SampleError> {
        // Ranks of this process that ask at once wait for the one that samples.
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = kept.between.iter().find(|(known, _)| *known == after) {
            return Ok(Arc::clone(known));
        }
        let times = self.deforming.times();
        let (before, next) = (after.saturating_sub(1), after.min(times.len() - 1));
        let samples = [
            self.sample(before, &mut kept)?,
            self.sample(next, &mut kept)?,
        ];
        let drift = (before < next).then(|| {
            let meshes = [0, 1].map(|k: usize| &*samples[k].mesh);
            let field = &samples[0].field;
            let reach = field.most_held() + field.bound();
            Drift::new(meshes, field.block_side(), reach)
        });
        if let Some(drift) = &drift {
            kept.added = kept.added.max(0.5 * drift.largest_spread());
        }
        let between = Arc::new(Between {
            samples,
            drift,
            times: [times[before], times[next]],
        });
        if kept.between.len() >= SAMPLES - 1 {
            drop_earliest(&mut kept.between);
        }
        kept.between.push((after, Arc::clone(&between)));
        Ok(between)
    }

    fn sample(&self, number: usize, kept: &mut Kept) -> Result<Arc<Sample>, SampleError> {
        if let Some((_, known)) = kept.fields.iter().find(|(known, _)| *known == number) {
            return Ok(Arc::clone(known));
        }
        let mesh = Arc::new(self.mesh_of(number)?);
        let blocks = DistanceField::blocks_for(&mesh, self.cell, self.reach);
        let most = (MOST_GROWTH * kept.blocks) as f64;
        if blocks > most.max(ALWAYS) {
            let told = format!(
                "sample {number} is too large for cells of {:.3e} m: its grid has {blocks:.1e} blocks, and that of the start has {}; take a \
                 larger `cell`, or surface = \"triangles\"",
                self.cell, kept.blocks
            );
            return Err(told.into());
        }
        let field = DistanceField::when_asked(Arc::clone(&mesh), self.cell, self.reach);
        let sample = Arc::new(Sample { mesh, field });
        if kept.fields.len() >= SAMPLES {
            drop_earliest(&mut kept.fields);
        }
        kept.fields.push((number, Arc::clone(&sample)));
        Ok(sample)
    }
}

/// Drops the earliest: time goes on, and it will not be wanted.
fn drop_earliest<T>(kept: &mut Vec<(usize, T)>) {
    let earliest = kept.iter().enumerate().min_by_key(|(_, (at, _))| *at);
    let earliest = earliest.map(|(place, _)| place);
    earliest.map(|place| kept.remove(place));
}

impl Between {
    fn alpha(&self, time: f64) -> f64 {
        let [start, end] = self.times;
        match self.drift {
            Some(_) => ((time - start) / (end - start)).clamp(0.0, 1.0),
            None => 0.0,
        }
    }

    fn drift(&self, x: DVec3) -> DVec3 {
        self.drift.as_ref().map_or(DVec3::ZERO, |drift| drift.at(x))
    }

    /// The slope of the displacement.
    fn slope(&self) -> f64 {
        self.drift.as_ref().map_or(0.0, |drift| drift.slope)
    }

    fn read(&self, x: DVec3, alpha: f64) -> Reading {
        let drift = self.drift(x);
        let [one, two] = &self.samples;
        if self.drift.is_none() {
            let held = one.field.held(x);
            return Reading {
                value: held.value,
                both: [held.value; 2],
                free: held.free,
                drift,
            };
        }
        let one = one.field.held(x - drift * alpha);
        let two = two.field.held(x + drift * (1.0 - alpha));
        Reading {
            // At a sample it has the bits of that.
            value: match alpha >= 1.0 {
                true => two.value,
                false => one.value + (two.value - one.value) * alpha,
            },
            both: [one.value, two.value],
            free: one.free.min(two.free),
            drift,
        }
    }

    fn distance(&self, x: DVec3, alpha: f64) -> f64 {
        self.read(x, alpha).value
    }

    /// The unit vector out of the body.
    fn normal(&self, x: DVec3, alpha: f64) -> DVec3 {
        let [one, two] = &self.samples;
        let step = 0.5 * one.field.cell();
        let across = DVec3::AXES.map(|axis| {
            let [after, before] = [x + axis * step, x - axis * step];
            self.distance(after, alpha) - self.distance(before, alpha)
        });
        DVec3::from_array(across)
            .try_normalize()
            .unwrap_or_else(|| {
                let drift = self.drift(x);
                match alpha < 0.5 {
                    true => one.field.normal(x - drift * alpha),
                    false => two.field.normal(x + drift * (1.0 - alpha)),
                }
            })
    }

    /// A bound below the distance in all of a ball with this middle and this radius, in m, at all
    /// times between two.
    fn least_within(&self, center: DVec3, radius: f64, [from, to]: [f64; 2]) -> f64 {
        let [one, two] = &self.samples;
        let Some(drift) = &self.drift else {
            return one.field.least_within(center, radius);
        };
        let (way, alpha) = (drift.at(center), 0.5 * (from + to));
        // So much less it may be elsewhere in the ball, and at other times.
        let aside = (drift.slope * radius).min(drift.widest) + 0.5 * (to - from) * way.length();
        let radius = (radius + aside) * ROUNDED;
        let one = one.field.least_within(center - way * alpha, radius);
        one.min(two.field.least_within(center + way * (1.0 - alpha), radius))
    }
}

impl Then {
    /// The distance of a place from the surface, in m, negative inside, as far as it is held.
    #[must_use]
    pub fn distance(&self, x: DVec3) -> f64 {
        self.between.distance(x, self.alpha)
    }

    /// The unit vector out of the body at a place.
    #[must_use]
    pub fn normal(&self, x: DVec3) -> DVec3 {
        self.between.normal(x, self.alpha)
    }

    /// The length in m by which the distance at a place near the surface may err.
    #[must_use]
    pub fn bound(&self, x: DVec3) -> f64 {
        let alpha = self.alpha;
        let in_time = self.between.drift.as_ref();
        let in_time = in_time.map_or(0.0, |drift| 2.0 * alpha * (1.0 - alpha) * drift.spread(x));
        self.between.samples[0].field.bound() + in_time
    }
}

impl SweptDistance {
    /// The part of the step at a share of it, and the share of the time between its samples.
    fn at(&self, share: f64) -> (&Part, f64) {
        let first = self.parts.partition_point(|part| part.shares[1] < share);
        let part = &self.parts[first.min(self.parts.len() - 1)];
        (part, part.alpha(share))
    }

    /// The distance of a place when the step begins, in m.
    pub(in crate::collide) fn distance_at_start(&self, x: DVec3) -> f64 {
        let part = &self.parts[0];
        part.between.distance(x, part.alphas[0])
    }

    /// The distance of a place when the step ends, in m.
    fn distance_at_end(&self, x: DVec3) -> f64 {
        let part = &self.parts[self.parts.len() - 1];
        part.between.distance(x, part.alphas[1])
    }

    /// The body at rest where it is when the step ends.
    #[must_use]
    pub(in crate::collide) fn at_its_end(&self) -> Self {
        let last = &self.parts[self.parts.len() - 1];
        let part = Part {
            between: Arc::clone(&last.between),
            shares: [0.0, 1.0],
            alphas: [last.alphas[1]; 2],
        };
        Self { parts: vec![part] }
    }

    /// The body when the step ends.
    pub(super) fn end(&self) -> Then {
        let last = &self.parts[self.parts.len() - 1];
        Then {
            between: Arc::clone(&last.between),
            alpha: last.alphas[1],
        }
    }

    /// Whether anything of it moves in the step.
    pub(in crate::collide) fn moves(&self) -> bool {
        let mut parts = self.parts.iter();
        parts.any(|part| {
            let most = part.between.drift.as_ref().map_or(0.0, |drift| drift.most);
            most * (part.alphas[1] - part.alphas[0]) > 0.0
        })
    }

    /// The place when the step ends of what is at a place when it begins and goes along with the
    /// surface, in m.
    pub(in crate::collide) fn carried(&self, x: DVec3) -> DVec3 {
        self.parts.iter().fold(x, |x, part| {
            x + part.between.drift(x) * (part.alphas[1] - part.alphas[0])
        })
    }

    /// The length in m by which places of rounding differ.
    pub(in crate::collide) fn margin(&self) -> f64 {
        1e-9 * self.parts[0].between.samples[0].field.cell()
    }

    /// A bound below the distance in all of a ball with this middle and this radius, in m, in all
    /// of the step.
    pub(in crate::collide) fn least_within(&self, center: DVec3, radius: f64) -> f64 {
        let of_part = |part: &Part| part.between.least_within(center, radius, part.alphas);
        self.parts.iter().map(of_part).fold(f64::INFINITY, f64::min)
    }

    /// The place where a straight way first comes within a reach (m) of the surface, as far as it
    /// can be told; `None` if it does not.
    pub(in crate::collide) fn first_within(&self, way: [DVec3; 2], reach: f64) -> Option<Met> {
        let within = WITHIN * self.parts[0].between.samples[0].field.cell();
        let share = self.follow(way, reach, within);
        (share < 1.0).then(|| self.met(way, share))
    }

    /// The surface as a vertex meets it a share of the way through the step.
    fn met(&self, way: [DVec3; 2], share: f64) -> Met {
        let (part, alpha) = self.at(share);
        let point = along(way, share);
        let distance = part.between.distance(point, alpha);
        let normal = part.between.normal(point, alpha);
        let there = point - normal * distance;
        let drift = part.between.drift(there) * part.rate();
        Met {
            near: Near {
                point,
                distance,
                normal,
            },
            surface: [there - drift * share, there + drift * (1.0 - share)],
        }
    }

    /// Whether a vertex that goes straight ends at this distance (m) or more, and keeps half of it
    /// on its way.
    pub(in crate::collide) fn is_clear(&self, way: [DVec3; 2], least: f64) -> bool {
        keeps(self.distance_at_end(way[1]), least)
            && self.follow(way, ON_THE_WAY * least, 0.0) >= 1.0
    }

    /// The surface where it is known how far a way keeps out, and the place there.
    pub(in crate::collide) fn stop(&self, way: [DVec3; 2], least: f64) -> Met {
        self.met(way, self.follow(way, ON_THE_WAY * least, 0.0))
    }

    /// A share of a straight way, from its beginning on, on which the distance keeps at or above a
    /// bound (m); 1 if it does on all of it. It may end where the distance is above that by less
    /// than `within` (m).
    fn follow(&self, way: [DVec3; 2], least: f64, within: f64) -> f64 {
        let went = way[1] - way[0];
        let length = went.length();
        if !length.is_finite() {
            return 0.0;
        }
        let mut share = 0.0;
        let mut steps = 0;
        for part in &self.parts {
            let rate = part.rate();
            loop {
                let (x, alpha) = (along(way, share), part.alpha(share));
                let now = part.between.read(x, alpha);
                let above = now.value - least;
                if !keeps(above, 0.0) {
                    return share;
                }
                if share >= part.shares[1] {
                    break;
                }
                let moves = (went - now.drift * rate).length() + part.between.slope() * length;
                let falls = SLOPE * moves + rate * (now.both[1] - now.both[0]).abs();
                let through = |length: f64, rate: f64| match length > 0.0 && rate > 0.0 {
                    true => length / (rate * ROUNDED),
                    false => 0.0,
                };
                let safe = match falls > 0.0 {
                    true => through(now.free, moves) + through(above, falls),
                    false => f64::INFINITY,
                };
                steps += 1;
                let left = part.shares[1] - share;
                if safe < left && (above < within || safe < LEAST_STEP || steps >= STEPS) {
                    return share;
                }
                share = if safe < left {
                    share + safe
                } else {
                    part.shares[1]
                };
            }
        }
        1.0
    }
}

impl Part {
    fn alpha(&self, share: f64) -> f64 {
        let [from, to] = self.shares;
        let [start, end] = self.alphas;
        if share >= to {
            end
        } else if share <= from {
            start
        } else {
            start + (end - start) * ((share - from) / (to - from))
        }
    }

    /// The change of the share of the time between the samples in all of the step, at its pace.
    fn rate(&self) -> f64 {
        let [from, to] = self.shares;
        if to > from {
            (self.alphas[1] - self.alphas[0]) / (to - from)
        } else {
            0.0
        }
    }
}

#[cfg(test)]
mod tests;
