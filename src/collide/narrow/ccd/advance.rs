//! The second stage: advances through the motion from one certified time to the next.
//!
//! At a time that is certified, the direction between the closest points is taken, and
//! [`super::certificate`] tells up to which time it keeps the features apart; there the closest
//! points are looked for again. Such a step is at least (d − δ)/v long, where d is the distance and
//! v the greatest relative speed of two vertices along the direction (conservative advancement
//! [Mirtich 1996; Zhang et al. 2006]), and much longer where the features slide along each other.
//!
//! Features that turn slow it down, since a fixed direction certifies little of their motion. So a
//! later time is tried too, at which the distance is foreseen to have fallen to a tenth, or at
//! which it grows: a direction that turns from that of now to that of then may certify all between,
//! at the cost of one more look for closest points. The end of the motion is looked at first: what
//! its direction certifies ends there, and the others need to come no farther than where that
//! begins.
//!
//! * [Mirtich 1996] Impulse-based dynamic simulation of rigid body systems.
//! * [Zhang et al. 2006] Interactive continuous collision detection for non-convex polyhedra.

use glam::DVec3;

use super::certificate::{Bound, Ways};
use super::features::{Kind, Nearest};
use super::number::{Vector, dot, unit};
use super::{Answer, Hit, Motion, NotFinite, SLACK, STEPS};

/// The shortest step for which features are advanced that are near enough to be told as a hit.
const LONG: f64 = 0.125;

/// A query whose differences have been multiplied by a power of two.
struct Scaled<const P: usize> {
    ways: Ways<f64, P>,
    separation: f64,
    /// The distance at which a hit is reported.
    near: f64,
    /// The factor that lengths have been multiplied by.
    factor: f64,
}

impl<const P: usize> Scaled<P> {
    /// Multiplies all differences by a power of two such that the largest coordinate of them is
    /// from 1 to 2; only beyond 2¹⁰⁰⁰ or below 2⁻¹⁰⁰⁰ it is larger or smaller.
    fn new<K: Kind<P>>(x: &[Motion; 4], separation: f64) -> Self {
        let mut units = 1.0;
        let mut ways = differences::<K, P>(x, units);
        if !largest(&ways).is_finite() {
            // Positions are finite, so that quarters of their differences are.
            units = 0.25;
            ways = differences::<K, P>(x, units);
        }
        let size = largest(&ways);
        let exponent = (size.to_bits() >> 52) as i64 - 1023;
        let power = (-exponent).clamp(-1000, 1000);
        let scale = f64::from_bits(((1023 + power) as u64) << 52);
        for z in ways.start.iter_mut().chain(&mut ways.end) {
            *z = z.map(|c| c * scale);
        }
        let separation = separation * units * scale;
        let slack = f64::max(0.5 * separation, SLACK * (size * scale));
        Self {
            ways,
            separation,
            near: separation + slack,
            factor: units * scale,
        }
    }

    /// The differences at a time.
    fn at(&self, time: f64) -> [Vector<f64>; P] {
        let mut z = self.ways.start;
        for (z, end) in z.iter_mut().zip(self.ways.end) {
            for (z, end) in z.iter_mut().zip(end) {
                *z = *z * (1.0 - time) + end * time;
            }
        }
        z
    }
}

/// The differences of a kind at both ends, in units.
fn differences<K: Kind<P>, const P: usize>(x: &[Motion; 4], units: f64) -> Ways<f64, P> {
    Ways {
        start: K::differences(&x.map(|x| (x.start * units).to_array())),
        end: K::differences(&x.map(|x| (x.end * units).to_array())),
    }
}

/// The largest coordinate, without its sign.
fn largest<const P: usize>(ways: &Ways<f64, P>) -> f64 {
    let all = ways.start.iter().chain(&ways.end).flatten();
    all.fold(0.0, |most, c| f64::max(most, c.abs()))
}

/// The closest points at a time.
#[derive(Clone, Copy)]
struct Place<const P: usize> {
    time: f64,
    z: [Vector<f64>; P],
    nearest: Nearest<f64>,
    distance: f64,
}

impl<const P: usize> Place<P> {
    fn new<K: Kind<P>>(query: &Scaled<P>, time: f64) -> Self {
        let z = query.at(time);
        let nearest = K::nearest(&z);
        let along = dot(nearest.direction, nearest.difference);
        let distance = along / dot(nearest.direction, nearest.direction).sqrt();
        Self {
            time,
            z,
            nearest,
            distance: if distance >= 0.0 { distance } else { 0.0 },
        }
    }

    /// The time up to which the separation is proven from this time on, by the first direction of
    /// some that proves it.
    fn proven_to<K: Kind<P>>(&self, query: &Scaled<P>, bound: Bound<f64>) -> Option<f64> {
        let reach = |direction: Vector<f64>| {
            let proven = bound.proven(&query.ways, direction)?;
            (proven.from <= self.time && proven.to > self.time).then_some(proven.to)
        };
        let Nearest {
            direction,
            difference,
            ..
        } = self.nearest;
        let normal = || {
            let normal = K::normal(&self.z);
            let is_up = dot(normal, difference) >= 0.0;
            normal.map(|c| if is_up { c } else { -c })
        };
        reach(direction)
            .or_else(|| reach(difference))
            .or_else(|| reach(normal()))
    }

    /// Tells whether a direction that turns from that of one place to that of another proves the
    /// separation between their times.
    fn follows(&self, to: &Self, bound: Bound<f64>) -> bool {
        let directions = [unit(self.nearest.direction), unit(to.nearest.direction)];
        bound.follows([&self.z, &to.z], directions) > 0.5
    }

    /// A later time that a turning direction may reach, if it is well after `to`, the time that a
    /// fixed one reaches. The less daring, the sooner.
    fn aim(&self, before: Option<&Self>, to: f64, separation: f64, daring: f64) -> Option<f64> {
        let mut aim = self.time + (1.0 + 7.0 * daring) * (to - self.time);
        if let Some(before) = before {
            let rate = (before.distance - self.distance) / (self.time - before.time);
            let rest = self.distance - separation;
            if rate > 0.0 && rest > 0.0 && rest < 8.0 * rate {
                aim = self.time + 0.9 * daring * (rest / rate);
            }
        }
        (aim > to + 0.25 * (to - self.time)).then_some(aim.min(1.0))
    }
}

/// Answers a query.
pub(super) fn advance<K: Kind<P>, const P: usize>(
    x: &[Motion; 4],
    separation: f64,
) -> Result<Answer, NotFinite> {
    if !x.iter().all(|x| x.start.is_finite() && x.end.is_finite()) {
        return Err(NotFinite { query: 0 });
    }
    let query = Scaled::new::<K>(x, separation);
    let bound = Bound::new(&query.ways, query.separation);
    let last = Place::new::<K>(&query, 1.0);
    let mut at = Place::new::<K>(&query, 0.0);
    // The motion is safe from here on.
    let safe_from = match bound.proven(&query.ways, last.nearest.direction) {
        Some(proven) if proven.to >= 1.0 => proven.from,
        _ => f64::INFINITY,
    };
    if safe_from <= 0.0 || at.follows(&last, bound) {
        return Ok(Answer::Safe);
    }
    let mut before: Option<Place<P>> = None;
    let mut daring = 1.0_f64;
    for _ in 0..STEPS {
        let Some(to) = at.proven_to::<K>(&query, bound) else {
            break;
        };
        let mut next = None;
        if to < safe_from && to < 1.0 {
            let aim = at.aim(before.as_ref(), to, query.separation, daring);
            let there = aim.map(|aim| Place::new::<K>(&query, aim));
            next = there.filter(|there| at.follows(there, bound));
            let failed = there.is_some() && next.is_none();
            daring = if failed {
                0.5 * daring
            } else {
                f64::min(2.0 * daring, 1.0)
            };
        }
        let to = next.map_or(to, |next| next.time);
        if to >= safe_from || to >= 1.0 {
            return Ok(Answer::Safe);
        }
        if at.distance <= query.near && to - at.time < LONG {
            break;
        }
        before = Some(at);
        at = next.unwrap_or_else(|| Place::new::<K>(&query, to));
    }
    Ok(Answer::Hit(Hit {
        time: at.time,
        normal: normal::<K, P>(&at),
        weights: at.nearest.weights,
        distance: (at.distance / query.factor).min(f64::MAX),
    }))
}

/// The unit vector along the direction of the closest points. Where they touch, it is normal to the
/// face or to both edges, and where these have no normal, it is any.
fn normal<K: Kind<P>, const P: usize>(at: &Place<P>) -> DVec3 {
    let unit = |of: Vector<f64>| {
        let of = DVec3::from_array(of);
        (of / of.abs().max_element()).try_normalize()
    };
    unit(at.nearest.direction)
        .or_else(|| unit(K::normal(&at.z)))
        .unwrap_or(DVec3::X)
}
