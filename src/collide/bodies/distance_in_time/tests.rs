//! Distances in time against closed forms and against the mesh, and along ways.

use super::*;
use crate::collide::bodies::{BodyMotion, SampleSource};
use crate::mesh::{TriMesh, icosphere};

const CELL: f64 = 0.01;
const REACH: f64 = 0.02;
const RADIUS: f64 = 0.1;
/// The samples are this far apart, in s.
const APART: f64 = 0.1;

/// Where a vertex goes in each sample.
type Place = fn(DVec3, f64) -> DVec3;

/// A ball that moves from sample to sample by a function.
struct Moved {
    times: Vec<f64>,
    ball: TriMesh,
    place: Place,
    /// The first sample that cannot be read.
    broken: usize,
}

impl std::fmt::Debug for Moved {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a ball")
    }
}

impl SampleSource for Moved {
    fn times(&self) -> &[f64] {
        &self.times
    }

    fn read(&self, index: usize) -> Result<Vec<DVec3>, SampleError> {
        if index >= self.broken {
            return Err("sample is gone".into());
        }
        let moved = self.ball.positions.iter();
        Ok(moved.map(|p| (self.place)(*p, index as f64)).collect())
    }

    fn heap_bytes(&self) -> usize {
        0
    }
}

fn body_of(broken: usize, place: Place) -> DeformingDistance {
    let ball = icosphere(DVec3::ZERO, RADIUS, 0.02).unwrap();
    let triangles = ball.triangles.clone();
    let source = Moved {
        times: (0..6).map(|k| APART * f64::from(k)).collect(),
        ball,
        place,
        broken,
    };
    let still = BodyMotion::constant(DVec3::ZERO);
    let deforming = Deforming::new(Box::new(source), still, &triangles).unwrap();
    DeformingDistance::new(Arc::new(deforming), CELL, REACH).unwrap()
}

fn body(place: Place) -> DeformingDistance {
    body_of(usize::MAX, place)
}

const WAY: DVec3 = DVec3::new(0.07, -0.03, 0.05);

fn translated(p: DVec3, k: f64) -> DVec3 {
    p + WAY * k
}

fn breathing(p: DVec3, k: f64) -> DVec3 {
    p * (1.0 + 0.1 * (1.3 * k).sin())
}

/// By 15° from sample to sample.
fn turned(p: DVec3, k: f64) -> DVec3 {
    let (sine, cosine) = (15.0 * k).to_radians().sin_cos();
    DVec3::new(cosine * p.x - sine * p.y, sine * p.x + cosine * p.y, p.z)
}

/// It bends one way and the other, and goes along.
fn bent(p: DVec3, k: f64) -> DVec3 {
    p + DVec3::new(0.02 * k, 0.0, 0.6 * p.x * p.x * (0.9 * k).sin())
}

/// Places around a ball, and times.
fn around(count: u32) -> impl Iterator<Item = (DVec3, f64)> {
    (0..count).map(|k| {
        let t = f64::from(k);
        let out = DVec3::new((1.3 * t).sin(), (0.7 * t).cos(), (2.1 * t).sin()).normalize();
        let time = 0.55 * (0.5 + 0.5 * (0.37 * t).sin());
        (out * (RADIUS + 0.018 * (3.1 * t).sin()), time)
    })
}

#[test]
fn a_translated_body_has_its_distance_exactly() {
    let body = body(translated);
    let still = body.then(0.0);
    for (p, time) in around(2000) {
        let went = WAY * (time.min(0.5) / APART);
        let then = body.then(time);
        let (found, known) = (then.distance(p + went), still.distance(p));
        assert!(
            (found - known).abs() < 1e-8,
            "{p} at {time}: {found} {known}"
        );
        assert!(then.normal(p + went).distance(still.normal(p)) < 1e-5);
        assert!(then.bound(p + went) < 1.000_001 * largest_error(CELL));
    }
}

/// Facets of the ball are up to this far below it, as a share of its radius.
fn sag() -> f64 {
    let ball = icosphere(DVec3::ZERO, 1.0, 0.2).unwrap();
    let middle = |t: &[u32; 3]| {
        let [a, b, c] = ball.corners(*t);
        ((a + b + c) / 3.0).length()
    };
    1.0 - ball.triangles.iter().map(middle).fold(1.0, f64::min)
}

#[test]
fn a_ball_that_breathes_is_within_the_bound_of_its_formula() {
    let body = body(breathing);
    let facets = sag() * 1.1 * RADIUS;
    assert!(facets < 2e-3);
    let mut largest = 0.0_f64;
    for (p, time) in around(3000) {
        let (before, share) = ((time / APART).floor().min(4.0), (time / APART).min(5.0));
        let radius = |k: f64| RADIUS * (1.0 + 0.1 * (1.3 * k).sin());
        let share = share - before;
        let radius = radius(before) + (radius(before + 1.0) - radius(before)) * share;
        let then = body.then(time);
        let error = (then.distance(p) - (p.length() - radius)).abs();
        assert!(error <= then.bound(p) + facets, "{p} at {time}: {error}");
        largest = largest.max(error);
    }
    // Far better than promised: what goes evenly in space is interpolated evenly.
    assert!(largest < 2.0 * facets + 5e-4, "{largest}");
    assert!(body.sampling().in_time_m.unwrap() > 1e-3);
}

/// The truth is the mesh whose vertices go straight from sample to sample.
#[test]
fn distances_are_within_the_bound_of_the_mesh() {
    for (place, goes) in [(turned as Place, 0.0), (bent, 0.02), (breathing, 0.0)] {
        let body = body(place);
        let mut deepest = 0.0_f64;
        for (p, time) in around(300) {
            let p = p + DVec3::X * (goes * time / APART);
            let (then, mesh) = (body.then(time), body.mesh_then(time));
            let (found, exact) = (then.distance(p), mesh.gap(p));
            let most = REACH + CELL;
            if exact.abs() < 0.8 * most {
                let error = (found - exact).abs();
                assert!(error <= then.bound(p), "{p} at {time}: {found} not {exact}");
                deepest = deepest.max(-exact);
            }
        }
        assert!(deepest > 0.005);
    }
}

/// A way keeps off as far as it is said to, through several samples, and stops at the surface.
#[test]
fn a_way_is_followed_up_to_where_the_surface_comes_too_near() {
    let mut stops = [0; 2];
    for place in [turned as Place, bent, translated] {
        let body = body(place);
        for k in 0..60 {
            let t = f64::from(k);
            let times = [0.04 + 0.002 * t, 0.05 + 0.006 * t];
            let swept = body.in_step(times);
            let spot = |t: f64| DVec3::new((1.3 * t).sin(), (0.7 * t).cos(), (2.1 * t).sin());
            let far = if k % 2 == 0 { 0.2 } else { 0.06 };
            let way = [spot(t) * 0.3, spot(t + 0.4) * far];
            let least = 0.004 + 1e-4 * t;
            let share = swept.follow(way, least, 0.0);
            let there = |share: f64| {
                let time = times[0] + (times[1] - times[0]) * share;
                body.then(time).distance(along(way, share))
            };
            for part in 0..=400 {
                let share = share * f64::from(part) / 400.0;
                assert!(there(share) >= least - 1e-9 || share == 0.0, "{share}");
            }
            stops[usize::from(share < 1.0)] += 1;
            if share < 1.0 {
                assert!(there(share) < least + 1e-4, "{} {least}", there(share));
            }
            let met = swept.first_within(way, least);
            assert_eq!(met.is_some(), share < 1.0);
            assert!(swept.is_clear(way, least) <= (there(1.0) >= least));
            // For places that are farther it answers that distance.
            if there(0.0) < REACH + CELL {
                assert!(swept.least_within(way[0], 0.02) <= there(0.0) - 0.02);
            }
        }
    }
    assert!(stops.iter().all(|count| *count > 20), "{stops:?}");
}

/// A body that comes towards a vertex at rest meets it, and its surface is where the distance says.
#[test]
fn a_surface_that_comes_up_is_met_where_it_is_then() {
    let body = body(translated);
    let (dt, rest) = (0.02, RADIUS + 0.03);
    let out = WAY.normalize();
    let x = out * rest;
    let swept = body.in_step([0.0, dt]);
    let met = swept.first_within([x; 2], 0.02).unwrap();
    let speed = WAY.length() / APART;
    let [start, end] = met.surface;
    assert!(((end - start) / dt).distance(WAY / APART) < 1e-9);
    assert!(met.near.normal.dot(out) > 0.999);
    // From where the surface is at the start.
    let gap = met.near.normal.dot(x - start);
    assert!((gap - 0.03).abs() < 1e-3, "{gap}");
    assert!(speed * dt > 0.012 && swept.moves() && !swept.at_its_end().moves());
    let carried = swept.carried(x);
    assert!((carried - x).distance(WAY * (dt / APART)) < 1e-12);
    let known = body.then(0.0).distance(x);
    assert!((body.then(dt).distance(carried) - known).abs() < 1e-8);
}

/// No more than three samples are kept, and one that is asked for again has the same bits, whatever
/// was asked for before.
#[test]
fn a_run_that_begins_in_between_has_the_same_bits() {
    let walked = body(bent);
    let mut time = 0.0;
    while time < 0.33 {
        drop(walked.in_step([time, time + 0.03]));
        walked.prepare([time, time + 0.03]).unwrap();
        let kept = walked.kept.lock().unwrap();
        assert!(kept.fields.len() <= SAMPLES && kept.between.len() < SAMPLES);
        drop(kept);
        time += 0.03;
    }
    let begun = body(bent);
    for (p, _) in around(300) {
        let bits = [&walked, &begun].map(|body| body.then(0.33).distance(p).to_bits());
        assert_eq!(bits[0], bits[1]);
    }
    // At a sample the two sides have the same bits.
    for (p, _) in around(50) {
        let swept = walked.in_step([0.36, 0.4]);
        let after = walked.then(0.4).distance(p).to_bits();
        assert_eq!(swept.distance_at_end(p).to_bits(), after);
    }
}

#[test]
fn a_sample_that_is_gone_is_a_fault() {
    let body = body_of(3, bent);
    assert!(body.prepare([0.0, 0.15]).is_ok());
    let error = body.prepare([0.15, 0.25]).unwrap_err();
    assert_eq!(error.to_string(), "sample is gone");
    assert_eq!(body.deforming.fault(), None);
    drop(body.in_step([0.15, 0.25]));
    assert_eq!(body.deforming.fault(), Some("sample is gone"));
}

/// A sample that is a thousand times as large would take a million times the memory.
#[test]
fn a_sample_that_explodes_is_refused() {
    let body = body(|p, k| p * (1.0 + 5000.0 * (k - 1.0).max(0.0)));
    assert!(body.prepare([0.0, 0.05]).is_ok());
    let told = body.prepare([0.05, 0.15]).unwrap_err().to_string();
    assert!(
        told.contains("sample 2") && told.contains("larger `cell`"),
        "{told}"
    );
}
