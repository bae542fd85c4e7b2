//! Cloth and bodies that go where keyframes say.

use glam::DVec3;
use weft_runtime::ScopeOptions;
use weft_runtime::comm::solo::Solo;
use weft_runtime::comm::threads::launch;

use super::run;
use super::{Simulation, World};
use crate::scene::Scene;

/// A sheet of 0.3 m by 0.3 m, 12 by 12 vertices, with extra lines in the cloth's table and at the
/// end.
fn world(cloth: &str, rest: &str) -> World {
    let text = format!(
        r#"
        time = {{ step = "4 ms", end = "2 s" }}
        contact = {{ thickness = "4 mm" }}
        partition = {{ patches = 4 }}
        [[cloth]]
        grid = {{ size = "0.3 m", vertices = 12 }}
        material = {{ density = "0.15 kg/m2", stretch = "300 N/m", bending = "1e-5 N m", damping_stiffness = "4 ms" }}
        {cloth}
        {rest}
        "#
    );
    World::build(&Scene::parse(&text, None, &[]).unwrap()).unwrap()
}

fn bits(s: &Simulation<'_>) -> Vec<[u64; 3]> {
    let all = s.positions().iter().chain(s.velocities());
    all.map(|v| v.to_array().map(f64::to_bits)).collect()
}

/// How deep cloth is in bodies, at most.
fn deepest(world: &World, s: &Simulation<'_>) -> f64 {
    let depths = s.positions().iter().map(|&x| world.depth(x, s.time()));
    depths.fold(f64::MIN, f64::max)
}

/// Angle in degrees by which the cloth has turned about z, on the average, and how far it has
/// turned unevenly.
pub(super) fn turned(from: &[DVec3], to: &[DVec3]) -> (f64, f64) {
    let angles = from.iter().zip(to).map(|(a, b)| {
        let (sine, cosine) = (a.x * b.y - a.y * b.x, a.x * b.x + a.y * b.y);
        sine.atan2(cosine).to_degrees()
    });
    let angles: Vec<f64> = angles.collect();
    let mean = angles.iter().sum::<f64>() / angles.len() as f64;
    let uneven = angles.iter().map(|a| (a - mean).abs());
    (mean, uneven.fold(0.0, f64::max))
}

const ROUND: &str = "motion = { repeat = true, keyframes = [{ time = 0 }, { time = \"6 s\", turn = [0, 0, \"360 deg\"] }] }";

/// Friction takes the cloth along at 60° a second, on triangles and on a formula; without friction
/// it stays.
#[test]
fn a_turntable_takes_cloth_along_by_friction() {
    for (surface, friction) in [("triangles", 0.8), ("analytic", 0.8), ("triangles", 0.0)] {
        let table = format!(
            "[[body]]\nshape = \"box\"\ncenter = [0, 0, -0.05]\nsize = [0.6, 0.6, 0.1]\nsurface = \"{surface}\"\nfriction = \
             {friction}\n{ROUND}"
        );
        let world = world("center = [0, 0, 0.005]", &table);
        let mut before = Vec::new();
        let s = run(&world, 225, |s| {
            if s.step() == 100 {
                before = s.positions().to_vec();
            }
            assert!(deepest(&world, s) < 0.0, "{surface} {}", s.step());
        });
        let (angle, uneven) = turned(&before, s.positions());
        if friction > 0.0 {
            assert!(
                (angle - 30.0).abs() < 0.1 && uneven < 0.2,
                "{surface}: {angle} {uneven}"
            );
        } else {
            assert!(angle.abs() < 0.5, "{angle}");
        }
    }
}

/// A tray is lifted, carried and turned to the side, from rest to rest: the cloth ends as it lay.
#[test]
fn a_tray_carries_cloth() {
    let tray = r#"
        [[body]]
        shape = "box"
        center = [0.2, 0, -0.01]
        size = [0.8, 0.6, 0.02]
        rotation = [0, 0, "20 deg"]
        friction = 0.8
        [body.motion]
        interpolation = "smooth"
        keyframes = [
            { time = "0.2 s" },
            { time = "0.7 s", translation = [0, 0, 0.15] },
            { time = "1.4 s", translation = [0.1, 0.1, 0.2], rotation = [0, 0, "75 deg"] },
        ]
    "#;
    let world = world("center = [0.1, 0, 0.005]", tray);
    let mut before = Vec::new();
    let s = run(&world, 400, |s| {
        if s.step() == 50 {
            before = s.positions().to_vec();
        }
        assert!(deepest(&world, s) < 1e-4, "{}", s.step());
    });
    let center = DVec3::new(0.2, 0.0, -0.01);
    let (sine, cosine) = 75f64.to_radians().sin_cos();
    for (from, to) in before.iter().zip(s.positions()) {
        let r = *from - center;
        let turned = DVec3::new(cosine * r.x - sine * r.y, sine * r.x + cosine * r.y, r.z);
        let known = center + DVec3::new(0.1, 0.1, 0.2) + turned;
        assert!((*to - known).length() < 0.002, "{to} not {known}");
    }
    assert_eq!(world.crossings_with_bodies(s.positions(), s.time()), 0);
}

/// Two jaws catch a sheet that falls, and lift it by friction alone.
#[test]
fn a_gripper_lifts_cloth() {
    let jaw = |side: f64| {
        let by = -0.0165 * side;
        format!(
            "[[body]]\nshape = \"box\"\ncenter = [0, {}, 0.1]\nsize = [0.32, 0.02, 0.06]\nfriction = 0.8\nedge = \"2 cm\"\n\
             motion.interpolation = \"smooth\"\nmotion.keyframes = [{{ time = 0 }}, {{ time = 0.08, translation = [0, {by}, 0] \
             }}, {{ time = 0.3, translation = [0, {by}, 0] }}, {{ time = 0.8, translation = [0, {by}, 0.2] }}]\n",
            0.03 * side
        )
    };
    let world = world("rotation = [\"90 deg\", 0, 0]", &(jaw(1.0) + &jaw(-1.0)));
    let mut before = Vec::new();
    let s = run(&world, 215, |s| {
        if s.step() == 75 {
            before = s.positions().to_vec();
        }
        assert_eq!(
            world.crossings_with_bodies(s.positions(), s.time()),
            0,
            "step {}",
            s.step()
        );
    });
    let held = before.iter().zip(s.positions()).filter(|(x, _)| x.z > 0.09);
    let mut count = 0;
    for (from, to) in held {
        count += 1;
        let slip = *to - *from - DVec3::Z * 0.2;
        assert!(slip.length() < 0.003, "{slip}");
    }
    assert!(count >= 12, "{count}");
}

/// An arm swings into a curtain, pushes it up and swings back.
fn curtain() -> World {
    let arm = r#"
        [[body]]
        shape = "box"
        center = [0.05, -0.05, -0.05]
        size = [0.5, 0.03, 0.03]
        friction = 0.3
        edge = "3 cm"
        [body.motion]
        center = [-0.2, -0.05, -0.05]
        interpolation = "smooth"
        keyframes = [
            { time = 0 },
            { time = "0.4 s", turn = [0, 0, "50 deg"] },
            { time = "0.8 s", turn = [0, 0, "-50 deg"] },
        ]
    "#;
    world(
        "rotation = [\"90 deg\", 0, 0]\npins = [{ min = [-1, -1, 0.149], max = [1, 1, 0.151] }]",
        arm,
    )
}

#[test]
fn an_arm_that_swings_pushes_a_curtain_and_does_not_cross_it() {
    let world = curtain();
    let mut farthest: f64 = 0.0;
    run(&world, 250, |s| {
        farthest = s.positions().iter().map(|x| x.y).fold(farthest, f64::max);
        assert!(deepest(&world, s) < 1e-3, "step {}", s.step());
        assert_eq!(
            world.crossings_with_bodies(s.positions(), s.time()),
            0,
            "step {}",
            s.step()
        );
    });
    assert!(farthest > 0.1, "{farthest}");
}

#[test]
fn a_run_goes_on_amid_a_motion_on_other_ranks_to_the_same_bits() {
    ends_the_same(&curtain(), 90, 57);
}

/// Checks that steps on three ranks, from the beginning and from the state that one rank has after
/// some of them, end with the bits of that one. How many vertices bodies held on it, in all steps.
pub(crate) fn ends_the_same(world: &World, steps: u64, restart: u64) -> u64 {
    let options = ScopeOptions::default();
    let mut comm = Solo::new();
    let mut s = Simulation::new(world, &comm, &options).unwrap();
    let (mut state, mut touched) = (None, 0);
    for step in 0..steps {
        if step == restart {
            state = s.gather_state(&mut comm).unwrap();
        }
        touched += s.advance(&mut comm).unwrap().constraints;
    }
    let (state, expected) = (state.unwrap(), bits(&s));
    for (ranks, from_start) in [(2, true), (3, true), (3, false)] {
        let ends = launch(ranks, |comm| {
            let mut s = Simulation::new(world, comm, &options).unwrap();
            if !from_start {
                s.restore(&state).unwrap();
            }
            while s.step() < steps {
                s.advance(comm).unwrap();
            }
            bits(&s)
        });
        assert!(
            ends.unwrap().iter().all(|got| *got == expected),
            "{ranks} {from_start}"
        );
    }
    touched
}

/// A translation at an even pace is a velocity, to the bit, also where steps are cut.
#[test]
fn keyframes_at_an_even_pace_are_a_velocity() {
    let ends = |motion: &str| {
        let ball = format!(
            "[[body]]\nshape = \"sphere\"\ncenter = [0, 0, -0.1]\nradius = 0.08\nedge = \"2 cm\"\n{motion}"
        );
        let world = world("", &ball);
        let s = run(&world, 60, |_| {});
        assert!(s.positions().iter().any(|x| x.z > 0.0));
        bits(&s)
    };
    let keyframes =
        "motion = { keyframes = [{ time = 0 }, { time = 2, translation = [0.25, 0, 1] }] }";
    assert!(ends("velocity = [0.125, 0, 0.5]") == ends(keyframes));
}

#[test]
fn cloth_must_not_start_where_a_first_keyframe_puts_a_body() {
    let scene = |motion: &str| {
        let text = format!(
            "[[cloth]]\ngrid = {{ size = 1, vertices = 9 }}\nmaterial = {{ density = 0.15, stretch = 1000, bending = 1e-5 }}\n\
             [[body]]\nshape = \"sphere\"\ncenter = [0, 0, 2]\nradius = 0.5\nmotion = {{ keyframes = [{{ time = 1, {motion} }}] }}"
        );
        World::build(&Scene::parse(&text, None, &[]).unwrap())
    };
    assert!(scene("translation = [0, 0, 1]").is_ok());
    let error = scene("translation = [0, 0, -2]").unwrap_err().to_string();
    assert!(error.contains("inside body `body0`"), "{error}");
}
