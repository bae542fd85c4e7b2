//! Strain limits: a soft strip that hangs under its weight stretches up to its limit and no
//! further, what is flung apart stops there and keeps its momentum, and edges change their lengths
//! no faster than they may.
//!
//! **Hanging**, with ν = 0: at s from the clamp a strip bears `T = ρ g (L − s)`. Its strain is
//! `T/E` where that is below the limit e, which is within `E e/(ρ g)` of its lower end, and e
//! above: there its limit bears the rest. Source: ideal locking material, Prager 1957, On ideal
//! locking materials.
//!
//! **Flung apart**: of a triangle of the height H with ν = 0, the upper corner and the two others,
//! of masses m each, are an oscillator of the strain, with the energy `½ A E ε²` and `ω² =
//! 9E/(2ρH²)`, whose centre moves on evenly. At the limit e they go on together, as after an
//! inelastic impact (Routh, Dynamics of a System of Rigid Bodies, Elementary Part), and from that
//! time t₁ on the strain is `e cos ω(t − t₁)`; it was `n e sin ωt` before, so that `n sin ωt₁ = 1`.
//!
//! **Change** (`contact.strain_change = c`): an equilateral triangle of next to no elasticity that
//! flies apart fast has its edges lengthened by c of themselves in the first step; then nothing
//! holds it, and it goes on as fast: `1 + c n` after n steps. One that flies together is stopped
//! anew in each: `(1 − c)ⁿ`. Momentum is kept.
//!
//! Rows of impulses are relaxed until none asks for more than half a percent of the contact
//! thickness, which is what the limits are held to.

use glam::DVec3;
use weft_runtime::ScopeOptions;
use weft_runtime::comm::solo::Solo;
use weftwork::mesh::TriMesh;
use weftwork::step::{Simulation, World};

use super::curve::{Axis, Curve, Series, percent};
use super::dynamics::{METHODS, momenta};
use super::rig::{Rig, mean, vertices};

const DENSITY: f64 = 0.15;
const GRAVITY: f64 = 9.81;

/// The strain at which the strip locks.
const LIMIT: f64 = 0.05;
/// Cells of the strip of 1 m.
const CELLS: usize = 20;
/// Stiffnesses in N/m. With them the strip is locked nearly everywhere, where it would be longer by
/// a third; in two thirds of its length; in a seventh.
const STIFFNESSES: [f64; 3] = [2.0, 10.0, 25.0];
/// Short steps: what elasticity does in one knows nothing of what limits do.
const STEP: f64 = 0.002;
/// The simulated time in s: by then the mass's damping has brought it to rest.
const TIME: f64 = 1.6;
/// The contact thickness in m.
const FINE: f64 = 1e-4;

/// How far rows may be from what they ask for, in m: see above.
fn settled(thickness: f64) -> f64 {
    0.005 * thickness
}

/// How far a point at `s` from the clamp sinks, in m.
fn sinks(stiffness: f64, s: f64) -> f64 {
    let weight = DENSITY * GRAVITY;
    let locked = (1.0 - stiffness * LIMIT / weight).max(0.0);
    let elastic = |s: f64| weight / stiffness * (s - 0.5 * s * s);
    LIMIT * s.min(locked) + elastic(s.max(locked)) - elastic(locked)
}

/// How far each row of the strip sinks, `[s, u]` in m, and the largest strain.
fn hang(stiffness: f64) -> (Vec<[f64; 2]>, f64) {
    let cloth = format!(
        "grid = {{ size = [0.1, 1], vertices = [3, {}] }}\nrotation = [\"90 deg\", 0, 0]\n\
         pins = [{{ min = [-1, -1, 0.4999], max = [1, 1, 1] }}]",
        CELLS + 1
    );
    let material = format!(
        "density = {DENSITY}\nstretch = {stiffness:?}\npoisson = 0\nbending = 1e-5\ndamping_mass = 10"
    );
    let world = Rig::new(cloth, material)
        .gravity(DVec3::NEG_Z * GRAVITY)
        .step(STEP)
        .contact(format!("thickness = {FINE:?}"))
        .limit(LIMIT)
        .world();
    let mut comm = Solo::new();
    let mut s = Simulation::new(&world, &comm, &ScopeOptions::default()).unwrap();
    for _ in 0..(TIME / STEP) as usize {
        s.advance(&mut comm).unwrap();
    }
    let x = s.positions();
    let rest = world.model().start();
    let row = |k: usize| {
        let s = k as f64 / CELLS as f64;
        let line = vertices(&world, |p| (0.5 - s - p.z).abs() < 1e-6);
        [s, mean(&line, |v| rest[v].z - x[v].z)]
    };
    let triangles = world.model().triangles().iter();
    let strains = triangles.zip(world.model().membranes()).map(|(t, e)| {
        let corners = t.map(|v| x[v as usize]);
        e.deform(corners).unwrap().strain()
    });
    let most = strains.fold(0.0, f64::max);
    ((0..=CELLS).map(row).collect(), most)
}

/// The largest difference of what rows sink by from what they should, over what the lowest should.
fn off(stiffness: f64, rows: &[[f64; 2]]) -> f64 {
    let off = rows.iter().map(|&[s, u]| (u - sinks(stiffness, s)).abs());
    off.fold(0.0, f64::max) / sinks(stiffness, 1.0)
}

const BASE: f64 = 0.08;
const HEIGHT: f64 = 0.1;
const SOFT: f64 = 1.0;
/// The strain that a triangle flung apart bears, and how many times that it would come to without a
/// limit.
const BEARS: f64 = 0.1;
const TIMES: f64 = 3.0;
/// The short step in s; the time at which the strip stops is known to a step.
const SHORT: f64 = 4e-5;
/// The velocity with which all of it moves, in m/s.
const DRIFT: DVec3 = DVec3::new(2.0, -1.0, 0.5);

/// Strains of a triangle flung apart, `[t, ε]` after each step, and the largest change of momentum,
/// as a share.
fn fling(method: &str) -> (Vec<[f64; 2]>, f64) {
    let material = format!(
        "density = {DENSITY}\nstretch = {SOFT:?}\npoisson = 0\nbending = 0\ndamping_stiffness = 0"
    );
    let world = Rig::new("", material)
        .step(SHORT)
        .limit(BEARS)
        .solver(format!("integrator = \"{method}\""))
        .world_of(&triangle(BASE, HEIGHT));
    let rate = TIMES * BEARS * omega();
    let velocity = |p: DVec3| DRIFT + DVec3::Y * (rate * (p.y - HEIGHT / 3.0));
    let steps = (1.2 * std::f64::consts::TAU / omega() / SHORT) as usize;
    let [upper, lower] = [true, false].map(|up| vertices(&world, |p| (p.y > 0.5 * HEIGHT) == up));
    let mut strains = Vec::new();
    let changed = follow(&world, steps, velocity, |s| {
        let height = |corners: &[usize]| mean(corners, |v| s.positions()[v].y);
        let strain = (height(&upper) - height(&lower)) / HEIGHT - 1.0;
        strains.push([s.time(), strain]);
    });
    (strains, changed)
}

fn omega() -> f64 {
    (4.5 * SOFT / DENSITY).sqrt() / HEIGHT
}

fn strain(time: f64) -> f64 {
    let stop = (1.0 / TIMES).asin() / omega();
    if time < stop {
        TIMES * BEARS * (omega() * time).sin()
    } else {
        BEARS * (omega() * (time - stop)).cos()
    }
}

/// The largest difference from the strain that there should be, over the limit.
fn astray(strains: &[[f64; 2]]) -> f64 {
    let off = strains.iter().map(|&[t, e]| (e - strain(t)).abs() / BEARS);
    off.fold(0.0, f64::max)
}

/// A triangle with its base on x.
fn triangle(base: f64, height: f64) -> TriMesh {
    TriMesh {
        positions: vec![
            DVec3::new(-0.5 * base, 0.0, 0.0),
            DVec3::new(0.5 * base, 0.0, 0.0),
            DVec3::new(0.0, height, 0.0),
        ],
        triangles: vec![[0, 1, 2]],
    }
}

/// Takes steps from rest positions with these velocities; the largest change of momentum, as a
/// share.
fn follow(
    world: &World,
    steps: usize,
    velocity: impl Fn(DVec3) -> DVec3,
    mut each: impl FnMut(&Simulation<'_>),
) -> f64 {
    let mut comm = Solo::new();
    let mut s = Simulation::new(world, &comm, &ScopeOptions::default()).unwrap();
    let (x, v) = s.state_mut();
    for (x, v) in x.iter().zip(v) {
        *v = velocity(*x);
    }
    let [begin, _] = momenta(world, &s);
    let mut changed = 0.0_f64;
    for _ in 0..steps {
        s.advance(&mut comm).unwrap();
        let [now, _] = momenta(world, &s);
        changed = changed.max(now.distance(begin) / begin.length());
        each(&s);
    }
    changed
}

const CHANGE: f64 = 0.05;
/// The thickness that contacts have unless told otherwise, in m.
const THICKNESS: f64 = 0.004;

/// Lengths of the edges of an equilateral triangle over what they were, after each step, if it
/// begins to grow by `rate` (1/s); and the largest change of momentum.
fn fly(rate: f64) -> (Vec<[f64; 3]>, f64) {
    let height = HEIGHT * 0.75f64.sqrt();
    let material = format!("density = {DENSITY}\nstretch = 1e-6\nbending = 0");
    let world = Rig::new("", material)
        .step(0.005)
        .contact(format!("strain_change = {CHANGE}"))
        .world_of(&triangle(HEIGHT, height));
    let velocity = |p: DVec3| DRIFT + (p - DVec3::Y * (height / 3.0)) * rate;
    let mut lengths = Vec::new();
    let changed = follow(&world, 10, velocity, |s| {
        let x = s.positions();
        lengths.push([[0, 1], [1, 2], [2, 0]].map(|[a, b]| x[a].distance(x[b]) / HEIGHT));
    });
    (lengths, changed)
}

pub fn curves() -> Vec<Curve> {
    let mut hanging = Vec::new();
    let mut worst = 0.0_f64;
    for stiffness in STIFFNESSES {
        let (rows, _) = hang(stiffness);
        worst = worst.max(off(stiffness, &rows));
        let line = (0..=60).map(|k| f64::from(k) / 60.0);
        let line = line.map(|s| [s, sinks(stiffness, s)]);
        let name = format!("limit of 5 %, E h = {stiffness} N/m");
        hanging.push(Series::known(name, line));
        let name = format!("strip, {stiffness} N/m");
        hanging.push(Series::measured(name, rows));
    }
    let end = 1.2 * std::f64::consts::TAU / omega();
    let line = (0..=300).map(|k| f64::from(k) / 300.0 * end);
    let free = |t: f64| TIMES * BEARS * (omega() * t).sin();
    let mut flung = vec![
        Series::known(
            "oscillator with a stop",
            line.clone().map(|t| [t, strain(t)]),
        ),
        Series::known("without a limit", line.map(|t| [t, free(t)])),
    ];
    let mut most = 0.0_f64;
    for (method, _) in METHODS {
        let (strains, _) = fling(method);
        most = most.max(astray(&strains));
        if method == "euler" || method == "bdf2" {
            let drawn = strains.into_iter().step_by(80);
            flung.push(Series::measured(method, drawn));
        }
    }
    vec![
        Curve {
            title: "A soft strip with a strain limit hangs".into(),
            x: Axis::linear("distance from the clamp, m"),
            y: Axis::linear("sinks by, m"),
            found: format!("within {} of what its end sinks by", percent(worst)),
            series: hanging,
        },
        Curve {
            title: "Flung apart up to a strain limit".into(),
            x: Axis::linear("time, s"),
            y: Axis::linear("strain"),
            found: format!(
                "within {} of the limit in steps of 0.04 ms, all integrators",
                percent(most)
            ),
            series: flung,
        },
    ]
}

#[test]
fn a_strip_hangs_as_ideal_locking_cloth() {
    for stiffness in STIFFNESSES {
        let (rows, most) = hang(stiffness);
        let off = off(stiffness, &rows);
        assert!(off < 5e-3, "{stiffness} N/m: {off}");
        let size = (0.5 / (CELLS * CELLS) as f64).sqrt();
        let above = (most - LIMIT) * size;
        assert!(above < settled(FINE), "{stiffness} N/m: {above} m");
    }
}

#[test]
fn a_strip_flung_apart_stops_at_its_limit_and_keeps_its_momentum() {
    for (method, _) in METHODS {
        let (strains, changed) = fling(method);
        let off = astray(&strains);
        assert!(off < 1e-2, "{method}: {off}");
        let most = strains.iter().map(|[_, e]| *e).fold(0.0, f64::max);
        let above = (most - BEARS) * (0.5 * BASE * HEIGHT).sqrt();
        assert!(above < settled(THICKNESS), "{method}: {above} m");
        assert!(changed < 1e-8, "{method}: {changed}");
    }
}

#[test]
fn edges_change_by_what_they_may_in_a_step() {
    for rate in [100.0, -60.0] {
        let (lengths, changed) = fly(rate);
        for (k, edges) in (1..).zip(lengths) {
            let known = if rate > 0.0 {
                1.0 + CHANGE * f64::from(k)
            } else {
                (1.0 - CHANGE).powi(k)
            };
            for edge in edges {
                let off = (edge - known).abs() * HEIGHT;
                assert!(off < settled(THICKNESS), "step {k} at {rate} 1/s: {off} m");
            }
        }
        assert!(changed < 1e-12, "{changed}");
    }
}
