//! Cloth that is held, in all directions or in some, by what stands still or moves.

use glam::{DMat3, DVec3};
use weft_runtime::ScopeOptions;
use weft_runtime::comm::solo::Solo;

use super::moving::ends_the_same;
use super::run;
use super::{Simulation, World};
use crate::collide::BodyMotion;
use crate::scene::{InTime, Scene};

/// A sheet of 0.3 m by 0.3 m in the plane of x and y, 12 by 12 vertices, that steps of 0.4 ms are
/// short enough for.
fn scene(time: &str, cloth: &str, rest: &str) -> Scene {
    let material = "density = 0.15, stretch = 300, bending = 1e-5, damping_stiffness = \"1 ms\"";
    let cloth =
        format!("grid = {{ size = 0.3, vertices = 12 }}\nmaterial = {{ {material} }}\n{cloth}");
    scene_of(time, &cloth, rest)
}

fn scene_of(time: &str, cloth: &str, rest: &str) -> Scene {
    let text = format!(
        "contact = {{ thickness = \"4 mm\" }}\npartition = {{ patches = 4 }}\nsolver.tolerance = 1e-9\n{time}\n[[cloth]]\n{cloth}\n{rest}"
    );
    Scene::parse(&text, None, &[]).unwrap_or_else(|error| panic!("{error}"))
}

fn world(scene: &Scene) -> World {
    World::build(scene).unwrap()
}

const TIME: &str = "time = { step = \"4 ms\", end = \"1 s\" }";
const INTEGRATORS: [(&str, &str); 4] = [
    ("euler", "4 ms"),
    ("bdf2", "4 ms"),
    ("newmark", "0.4 ms"),
    ("central", "0.1 ms"),
];

/// The largest distance of vertices of two states, of which the second is moved by `by`.
fn apart(a: &Simulation<'_>, b: &Simulation<'_>, by: DVec3) -> f64 {
    let both = a.positions().iter().zip(b.positions());
    both.fold(0.0, |most, (a, b)| most.max((*a - *b - by).length()))
}

/// The equivalence principle, to which implicit Euler keeps exactly: pins that fall with
/// acceleration a take a sheet along as if gravity were g − a.
#[test]
fn cloth_on_accelerating_pins_feels_the_acceleration_as_gravity() {
    let (h, a) = (0.004, DVec3::new(3.0, -2.0, 4.0));
    let fallen = |n: f64| a * (h * h * n * (n + 1.0) / 2.0);
    let keyframes: Vec<String> = (0..=60_u8)
        .map(|n| {
            let DVec3 { x, y, z } = fallen(f64::from(n));
            format!(
                "{{ time = {:?}, translation = [{x:?}, {y:?}, {z:?}] }}",
                h * f64::from(n)
            )
        })
        .collect();
    let pins =
        |motion: &str| format!("pins = [{{ min = [-1, 0.149, -1], max = [1, 1, 1]{motion} }}]");
    let motion = format!(", motion = {{ keyframes = [{}] }}", keyframes.join(", "));
    let carried = scene(TIME, &pins(&motion), "");
    let mut still = scene(TIME, &pins(""), "");
    still.gravity = InTime::constant(still.gravity.at(0.0) - a);
    let (carried, still) = (world(&carried), world(&still));
    let (c, s) = (run(&carried, 60, |_| {}), run(&still, 60, |_| {}));
    let swung = s.positions().iter().map(|x| x.z.abs());
    assert!(swung.fold(0.0, f64::max) > 0.1);
    let off = apart(&c, &s, fallen(60.0));
    assert!(off < 1e-8, "{off}");
}

/// Galileo's relativity, for every integrator: pins and rails that move evenly are as good as pins
/// and rails at rest.
#[test]
fn pins_at_an_even_velocity_are_pins_at_rest() {
    let velocity = DVec3::new(2.0, -1.0, 0.5);
    for (integrator, step) in INTEGRATORS {
        let time = format!(
            "time = {{ step = \"{step}\", end = \"1 s\" }}\nsolver.integrator = \"{integrator}\""
        );
        let all = |velocity: DVec3| {
            let DVec3 { x, y, z } = velocity;
            let along = format!("velocity = [{x}, {y}, {z}]");
            let pins = format!(
                "{along}\npins = [{{ nearest = [-0.15, 0.15, 0], {along} }}, {{ nearest = [0.15, 0.15, 0], rail = [1, 0, 0.2], {along} }}, \
                 {{ nearest = [0, -0.15, 0], plane = [1, 1, 0], {along} }}]"
            );
            world(&scene(&time, &pins, ""))
        };
        let (moving, still) = (all(velocity), all(DVec3::ZERO));
        let (m, s) = (run(&moving, 50, |_| {}), run(&still, 50, |_| {}));
        let off = apart(&m, &s, velocity * m.time());
        assert!(off < 1e-8, "{integrator}: {off}");
        assert!(apart(&s, &run(&still, 1, |_| {}), DVec3::ZERO) > 1e-5);
    }
}

/// A sheet whose vertices are all beads falls as a bead does: gᵣ = (g·d) d along a rail, g − (g·n)
/// n in a plane. The starting velocity is what the rail leaves of it.
#[test]
fn beads_slide_as_on_an_inclined_plane() {
    let direction = DVec3::new(1.0, 2.0, -3.0).normalize();
    let along = DMat3::from_cols(
        direction * direction.x,
        direction * direction.y,
        direction * direction.z,
    );
    for (key, free) in [("rail", along), ("plane", DMat3::IDENTITY - along)] {
        let pins = format!(
            "velocity = [1, 0, 0]\npins = [{{ min = [-1, -1, -1], max = [1, 1, 1], {key} = [1, 2, -3] }}]"
        );
        let scene = scene(TIME, &pins, "");
        let (world, h) = (world(&scene), 0.004);
        let s = run(&world, 100, |_| {});
        let way =
            free * (scene.gravity.at(0.0) * (h * h * 100.0 * 101.0 / 2.0) + DVec3::X * (100.0 * h));
        for (start, x) in world.model().start().iter().zip(s.positions()) {
            let off = *x - *start - way;
            assert!(off.length() < 1e-8, "{key}: {off}");
            // Rounding of where it is, however long it slides.
            let across = off - free * off;
            assert!(across.length() < 1e-15, "{key}: {across}");
        }
    }
}

/// A sheet that hangs in its own plane is its own mirror image: half of it, whose border can only
/// slide along the plane of symmetry, moves as half of all of it.
#[test]
fn half_a_sheet_on_a_plane_of_symmetry_moves_as_half_of_a_whole_one() {
    let half_of = |grid: &str, pins: &str| {
        let material = "density = 0.15, stretch = 8, bending = 0, damping_stiffness = \"1 ms\", strain_limit = 10";
        let cloth = format!(
            "rotation = [\"90 deg\", 0, 0]\n{grid}\nmaterial = {{ {material} }}\npins = [{{ min = [-0.05, -1, 0.149], max = [0.05, 1, 1] }}{pins}]"
        );
        world(&scene_of(TIME, &cloth, ""))
    };
    let whole = half_of("grid = { size = [0.4, 0.3], vertices = [17, 13] }", "");
    let half = half_of(
        "grid = { size = [0.2, 0.3], vertices = [9, 13] }\ncenter = [0.1, 0, 0]",
        ", { min = [-1, -1, -1], max = [0.001, 1, 0.14], plane = [1, 0, 0] }",
    );
    let (w, h) = (run(&whole, 60, |_| {}), run(&half, 60, |_| {}));
    let mut farthest: f64 = 0.0;
    for (start, x) in half.model().start().iter().zip(h.positions()) {
        let same = |other: &DVec3| other.distance(*start) < 1e-9;
        let at = whole.model().start().iter().position(same).unwrap();
        let off = x.distance(w.positions()[at]);
        assert!(off < 1e-8, "{off}");
        farthest = farthest.max(x.distance(*start));
    }
    assert!(farthest > 0.005, "{farthest}");
}

const MOTION: &str = "motion = { interpolation = \"smooth\", center = [0.1, 0.2, 0], keyframes = [{ time = 0.01 }, { time = 0.13, \
     translation = [0.05, 0.02, -0.03], turn = [0, 0, \"40 deg\"] }, { time = 0.2, turn = [\"20 deg\", 0, \"10 deg\"] }] }";

/// However it is integrated, and where steps are cut, what is held ends every substep where its pin
/// does; what slides is on its rail.
#[test]
fn vertices_are_where_their_pins_are() {
    for (integrator, step) in INTEGRATORS {
        let time = format!(
            "time = {{ step = \"{step}\", end = \"1 s\", shortest = \"20 us\", strain_change = \"0.2 %\" }}\nsolver.integrator = \
             \"{integrator}\""
        );
        let pins = format!(
            "pins = [{{ min = [-1, 0.149, -1], max = [0.001, 1, 1], {MOTION} }}, {{ nearest = [0.15, -0.15, 0], rail = [1, 1, 0], {MOTION} }}]"
        );
        let scene = scene(&time, &pins, "");
        let pin = &scene.cloths[0].pins[0];
        let motion = BodyMotion::of(pin.velocity, pin.motion.as_ref());
        let world = world(&scene);
        let starts = world.model().start();
        let (mut comm, options) = (Solo::new(), ScopeOptions::default());
        let mut s = Simulation::new(&world, &comm, &options).unwrap();
        let (mut held, mut parts, mut slid) = (0, 0, 0.0_f64);
        let steps = (0.06 / scene.time.step).round() as u32;
        for _ in 0..steps {
            parts += s.advance(&mut comm).unwrap().substeps;
            let pose = motion.at(s.time());
            for (start, x) in starts.iter().zip(s.positions()) {
                let off = *x - pose.apply(*start);
                if start.y > 0.149 && start.x < 0.001 {
                    held += 1;
                    assert!(off.length() < 1e-14, "{integrator}: {off}");
                } else if start.y < -0.149 && start.x > 0.149 {
                    let rail = pose.turned(DVec3::new(1.0, 1.0, 0.0).normalize());
                    slid = slid.max(off.length());
                    let across = off - rail * rail.dot(off);
                    assert!(across.length() < 1e-14, "{integrator}: {across}");
                }
            }
        }
        assert!(
            held >= 6 * steps && slid > 1e-3,
            "{integrator}: {held} {slid}"
        );
        if integrator != "central" && integrator != "newmark" {
            assert!(parts > steps, "{integrator}: no step was cut");
        }
    }
}

/// Pins that move and slide, with a ball in the way.
fn pulled_over_a_ball(solver: &str) -> World {
    let pins = format!(
        "pins = [{{ min = [-1, 0.149, -1], max = [1, 1, 1], {MOTION} }}, {{ min = [-0.151, -1, -1], max = [-0.149, 0, 1], plane = [1, 0, 0] }}]"
    );
    let ball = "[[body]]\nshape = \"sphere\"\ncenter = [-0.06, -0.03, -0.11]\nradius = 0.1\nedge = \"2 cm\"\nfriction = 0.3";
    let time = format!("{TIME}\n{solver}");
    world(&scene(&time, &pins, ball))
}

#[test]
fn pins_that_move_do_not_depend_on_ranks_or_on_where_a_run_began() {
    for solver in [
        "",
        "solver.integrator = \"bdf2\"",
        "solver.newton = 40\nsolver.newton_tolerance = 1e-2",
    ] {
        let touched = ends_the_same(&pulled_over_a_ball(solver), 45, 21);
        assert!(touched > 20, "{solver}: {touched}");
    }
}

/// Half a napkin falls onto a ball in whose middle the plane of symmetry is.
#[test]
fn bodies_keep_vertices_out_that_slide() {
    let cloth = "center = [0.15, 0, 0]\npins = [{ min = [-1, -1, -1], max = [0.001, 1, 1], plane = [1, 0, 0] }]";
    let ball = "[[body]]\nshape = \"sphere\"\ncenter = [0, 0, -0.07]\nradius = 0.06\nedge = \"1 cm\"\nfriction = 0.3";
    let world = world(&scene(TIME, cloth, ball));
    let mut deepest = f64::MIN;
    let s = run(&world, 60, |s| {
        let depths = s.positions().iter().map(|&x| world.depth(x, s.time()));
        deepest = depths.fold(deepest, f64::max);
    });
    assert!(deepest < 1e-4, "{deepest}");
    let middle = |x: &&DVec3| x.x.abs() < 1e-12;
    assert_eq!(s.positions().iter().filter(middle).count(), 12);
    let highest = (s.positions().iter()).fold(f64::MIN, |most, x| most.max(x.z));
    assert!((-0.02..0.0).contains(&highest), "{highest}");
}

#[test]
fn pins_that_differ_must_not_hold_the_same_vertex() {
    let build = |second: &str| {
        let pins = format!(
            "pins = [{{ min = [-1, 0.1, -1], max = [1, 1, 1] }}, {{ nearest = [0.15, 0.15, 0]{second} }}]"
        );
        World::build(&scene(TIME, &pins, ""))
    };
    assert!(build("").is_ok());
    assert!(build(", velocity = [0, 0, 0]").is_ok());
    // Alike but for what does not matter.
    let both = |key: [&str; 2]| {
        let pins = format!(
            "pins = [{{ min = [-1, 0.1, -1], max = [1, 1, 1], {} }}, {{ nearest = [0.15, 0.15, 0], {} }}]",
            key[0], key[1]
        );
        World::build(&scene(TIME, &pins, "")).is_ok()
    };
    let there = "motion = { keyframes = [{ time = 0 }, { time = 1, translation = [0, 0, 1] }] }";
    let round = "motion = { keyframes = [{ time = 0 }, { time = 9, turn = [0, 0, 1] }] }";
    assert!(both([there, there]) && both(["rail = [2, 0, 0]", "rail = [-1, 0, 0]"]));
    assert!(!both([round, round]));
    for second in [
        ", rail = [1, 0, 0]",
        ", velocity = [0, 0, 1]",
        ", motion = { keyframes = [{ time = 0 }] }",
    ] {
        let error = build(second).unwrap_err().to_string();
        assert!(
            error.starts_with("pins [0, 1] of cloth `cloth0` both hold vertex 143, and differ"),
            "{error}"
        );
    }
}

/// Vertices that follow a body keep their place on it, wherever the body was at first.
#[test]
fn pins_that_follow_a_body_go_where_the_body_takes_them() {
    let keyframes = "{ time = 0, translation = [0, 0, 0.2], rotation = [0, \"30 deg\", 0] }, \
                     { time = \"0.2 s\", translation = [0.3, 0.1, 0.3], rotation = [\"40 deg\", \"20 deg\", \"60 deg\"] }";
    let body = format!(
        "[[body]]\nname = \"arm\"\nshape = \"sphere\"\ncenter = [0, 0, 2]\nradius = 0.1\nmotion = {{ keyframes = [{keyframes}] }}"
    );
    let pins = "pins = [{ vertices = [0, 5, 143], follow = \"arm\" }]";
    let scene = scene(TIME, pins, &body);
    let world = world(&scene);
    let end = run(&world, 40, |_| {});
    let motion = BodyMotion::new(&scene.bodies[0]);
    let (first, last) = (motion.at(0.0), motion.at(end.time()));
    let start = world.original_order(world.model().start());
    let x = world.original_order(end.positions());
    for vertex in [0, 5, 143] {
        let known = last.apply(first.undo(start[vertex]));
        assert!((known - start[vertex]).length() > 0.05);
        let off = (x[vertex] - known).length();
        assert!(off < 1e-12, "{vertex}: {off}");
    }
    // Others swing below them.
    let swung = start.iter().zip(&x).map(|(a, b)| (*a - *b).length());
    assert!(swung.fold(0.0, f64::max) > 0.1);
    // A body at rest holds as a pin at rest does, to the bit.
    let still = |pins: &str| {
        let body = "[[body]]\nname = \"arm\"\nshape = \"sphere\"\ncenter = [0, 0, 2]\nradius = 0.1";
        let scene = self::scene(TIME, pins, body);
        run(&World::build(&scene).unwrap(), 20, |_| {})
            .positions()
            .to_vec()
    };
    assert_eq!(
        still("pins = [{ vertices = [143], follow = \"arm\" }]"),
        still("pins = [{ nearest = [0.15, 0.15, 0] }]")
    );
}

#[test]
fn vertices_that_are_not_there_are_named() {
    let scene = scene(TIME, "pins = [{ vertices = [0, 144] }]", "");
    let error = World::build(&scene).unwrap_err().to_string();
    assert_eq!(
        error,
        "pin 0 of cloth `cloth0` holds vertex 144, and there are 144, counted from 0"
    );
}
