//! Loads and friction that change in time, and pins that hold from a time to a time.

use glam::DVec3;

use super::moving::ends_the_same;
use super::{World, run};
use crate::scene::Scene;

/// A sheet of 0.3 m by 0.3 m, 8 by 8 vertices, with extra lines above, in the cloth's table and at
/// the end.
fn text(above: &str, cloth: &str, rest: &str) -> String {
    format!(
        "{above}\ncontact.thickness = \"4 mm\"\npartition.patches = 4\nsolver.tolerance = 1e-9\n[[cloth]]\n\
         grid = {{ size = 0.3, vertices = 8 }}\n\
         material = {{ density = 0.15, stretch = 300, bending = 1e-5, damping_stiffness = \"1 ms\", drag_normal = 1 }}\n\
         {cloth}\n{rest}"
    )
}

fn world(above: &str, cloth: &str, rest: &str) -> World {
    let scene = Scene::parse(&text(above, cloth, rest), None, &[]);
    World::build(&scene.unwrap_or_else(|error| panic!("{error}"))).unwrap()
}

const STEP: &str = "time = { step = \"4 ms\", end = \"1 s\" }";
const NO_AIR: &str = "air.density = 0";

/// A free sheet under a gravity g(t) = 10 t downwards has the velocity 5 t². The middle of a step
/// gives its momentum exactly; BDF2 begins with a step of Euler's method, whose error of 5 h² it
/// carries on as 7.5 h².
#[test]
fn a_free_sheet_falls_as_gravity_that_grows_says() {
    let gravity = "gravity = { keyframes = [{ time = 0, value = [0, 0, 0] }, { time = 1, value = [0, 0, -10] }] }";
    for (integrator, step, allowed) in [
        ("euler", 0.004, 1e-9),
        ("bdf2", 0.004, 8.0 * 0.004 * 0.004),
        ("newmark", 0.0004, 1e-9),
        ("central", 0.0001, 1e-9),
    ] {
        let above = format!(
            "{gravity}\n{NO_AIR}\ntime = {{ step = {step:?}, end = \"1 s\" }}\nsolver.integrator = \"{integrator}\""
        );
        let world = world(&above, "", "");
        let s = run(&world, 100, |_| {});
        let known = DVec3::new(0.0, 0.0, -5.0 * s.time() * s.time());
        for v in s.velocities() {
            assert!(v.distance(known) < allowed, "{integrator}: {v} {known}");
        }
    }
}

/// A sheet that wind W blows at from its front, with a drag coefficient of 1, has the relative
/// speed u: m du/dt = −ρ(t)/2 A u². With ρ = r t that is u = W / (1 + W r t² / 4ω), ω = m/A.
#[test]
fn air_that_grows_denser_drags_as_the_closed_form_says() {
    let (wind, grows, mass) = (2.0, 4.0, 0.15);
    let above = format!(
        "gravity = [0, 0, 0]\ntime = {{ step = \"1 ms\", end = \"1 s\" }}\nair = {{ wind = [0, 0, {wind:?}], density = {{ keyframes = \
         [{{ time = 0, value = 0 }}, {{ time = 1, value = {grows:?} }}] }} }}"
    );
    let world = world(&above, "", "");
    run(&world, 400, |s| {
        let t = s.time();
        let known = wind - wind / (1.0 + wind * grows * t * t / (4.0 * mass));
        let masses = world.model().masses().iter();
        let momentum: f64 = masses.zip(s.velocities()).map(|(m, v)| m * v.z).sum();
        let mean = momentum / world.model().masses().iter().sum::<f64>();
        assert!(
            (mean - known).abs() < 0.01 * known + 2e-3,
            "{t}: {mean} {known}"
        );
    });
}

/// Wind that begins at a time leaves the sheet alone until then, and repeats itself from then on.
#[test]
fn wind_blows_when_its_keyframes_say() {
    let wind = |more: &str| {
        format!(
            "gravity = [0, 0, 0]\n{STEP}\nair.wind = {{ {more}keyframes = [{{ time = 0.1, value = [0, 0, 0] }}, {{ time = 0.2, value = \
             [0, 0, 3] }}, {{ time = 0.3, value = [0, 0, 0] }}] }}"
        )
    };
    let (once, again) = (
        wind(""),
        wind("repeat = true, interpolation = \"smooth\", "),
    );
    for (above, blows) in [(once, false), (again, true)] {
        let world = world(&above, "", "");
        let mut at = Vec::new();
        run(&world, 125, |s| {
            let sum: DVec3 = s.velocities().iter().sum();
            at.push(sum.z / s.velocities().len() as f64);
        });
        assert_eq!(at[23], 0.0);
        assert!(at[74] > 0.3, "{}", at[74]);
        // Without wind the air holds the sheet back; with it again it goes faster.
        assert_eq!(at[124] > at[74], blows, "{} {}", at[124], at[74]);
    }
}

/// A sheet on a slope sticks with a friction of 0.8, and slides with none: by g sin α from then on.
#[test]
fn a_sheet_slides_from_when_its_body_has_lost_its_friction() {
    let floor = "[[body]]\nname = \"floor\"\nshape = \"plane\"\nsurface = \"analytic\"\nfriction = { keyframes = [{ time = 0.2, \
                 value = 0.8 }, { time = 0.204, value = 0 }] }";
    let above = format!("gravity = [3, 0, -9.81]\n{NO_AIR}\n{STEP}");
    let world = world(&above, "center = [0, 0, 0.004]", floor);
    run(&world, 100, |s| {
        let v: DVec3 = s.velocities().iter().sum::<DVec3>() / s.velocities().len() as f64;
        if s.time() < 0.1995 {
            assert!(v.length() < 2e-3, "{}: {v}", s.time());
        } else if s.time() > 0.21 {
            // It is let go between the two keyframes.
            let known = 3.0 * (s.time() - 0.202);
            assert!((v.x - known).abs() < 0.02, "{}: {v} {known}", s.time());
        }
    });
}

/// A sheet that its pin takes along and lets go flies on with the velocity of the pin and falls
/// freely, as Euler's method has it: g h² n (n + 1) / 2 in n steps.
#[test]
fn a_sheet_that_is_let_go_falls_freely_from_then_on() {
    let pins =
        "pins = [{ min = [-1, -1, -1], max = [1, 1, 1], velocity = [1, 0, 2], until = \"0.1 s\" }]";
    for rest in ["", "contact.certify = true"] {
        let world = world(&format!("{NO_AIR}\n{STEP}\n{rest}"), pins, "");
        let start = world.model().start().to_vec();
        let (h, v, g) = (
            0.004,
            DVec3::new(1.0, 0.0, 2.0),
            DVec3::new(0.0, 0.0, -9.81),
        );
        run(&world, 60, |s| {
            let n = (s.step() as f64 - 25.0).max(0.0);
            let way = v * s.time() + g * (h * h * n * (n + 1.0) / 2.0);
            for (x, start) in s.positions().iter().zip(&start) {
                let off = (*x - *start - way).length();
                assert!(off < 1e-8, "{}: {off}", s.step());
            }
        });
    }
}

/// A pin that holds from a time on finds its vertices where they have fallen to, takes them back at
/// 1 m/s, and holds them.
#[test]
fn a_pin_that_holds_later_takes_its_vertices_back() {
    let pins =
        "pins = [{ min = [-1, -1, -1], max = [1, 1, 1], from = \"0.1 s\", until = \"0.3 s\" }]";
    let world = world(&format!("{NO_AIR}\n{STEP}"), pins, "");
    let start = world.model().start().to_vec();
    let h = 0.004;
    let fallen = |n: f64| -9.81 * (h * h * n * (n + 1.0) / 2.0);
    run(&world, 100, |s| {
        let n = s.step() as f64;
        let known = match s.step() {
            0..=25 => fallen(n),
            26..=75 => (fallen(25.0) + h * (n - 25.0)).min(0.0),
            _ => fallen(n - 75.0),
        };
        for (x, start) in s.positions().iter().zip(&start) {
            let off = (*x - *start - DVec3::Z * known).length();
            assert!(off < 1e-8, "{n}: {off} {}", (*x - *start).z);
        }
    });
}

/// All of it at once, certified, on ranks and from a state in between: with Euler's method, by
/// which the system of the next step is assembled ahead, and with BDF2.
#[test]
fn values_and_pins_that_change_in_time_do_not_depend_on_ranks() {
    for integrator in ["euler", "bdf2"] {
        let above = format!(
            "{STEP}\nsolver.integrator = \"{integrator}\"\ncontact.certify = true\n\
             gravity = {{ keyframes = [{{ time = 0, value = [0, 0, -9] }}, {{ time = 0.2, value = [2, 0, -12] }}] }}\n\
             air = {{ density = {{ keyframes = [{{ time = 0, value = 1 }}, {{ time = 0.1, value = 3 }}] }}, wind = {{ repeat = true, \
             keyframes = [{{ time = 0, value = [0, 0, 0] }}, {{ time = 0.06, value = [2, 3, 0] }}, {{ time = 0.12, value = [0, 0, 0] }}] }} }}"
        );
        let cloth = "rotation = [0.1, 0, 0.2]\npins = [{ nearest = [-0.15, -0.15, 0], until = 0.1 }, { nearest = [0.15, 0.15, 0], from = \
                     0.05, until = 0.17 }, { nearest = [0.15, -0.15, 0] }]";
        let ball = "[[body]]\nname = \"ball\"\nshape = \"sphere\"\ncenter = [0, 0, -0.1]\nradius = 0.08\nedge = 0.03\nvelocity = [0, 0, 0.3]\nfriction = { \
                    keyframes = [{ time = 0.05, value = 0.9 }, { time = 0.2, value = 0.1 }] }";
        let world = world(&above, cloth, ball);
        assert!(ends_the_same(&world, 60, 33) > 0, "{integrator}");
    }
}

/// The problems that a scene is refused for.
fn refused(above: &str, cloth: &str) -> String {
    let scene = Scene::parse(&text(above, cloth, ""), None, &[]);
    scene.unwrap_err().to_string()
}

#[test]
fn keyframes_and_times_that_are_wrong_are_named() {
    let of = |keyframes: &str| format!("gravity = {{ keyframes = [{keyframes}] }}");
    for (above, told) in [
        (
            of("{ time = 1, value = [0, 0, 1] }, { time = 0.5, value = [0, 0, 2] }"),
            &["gravity.keyframes.1.time", "0.5 s is not later", "1 s"][..],
        ),
        (
            of("{ time = nan, value = [0, 0, 1] }"),
            &["gravity.keyframes.time"],
        ),
        (
            of("{ time = 0, value = [0, 0, inf] }"),
            &["gravity.keyframes.value"],
        ),
        (
            of("{ time = -1, value = [0, 0, 1] }"),
            &["gravity.keyframes.time"],
        ),
        (of("{ time = 0 }"), &["gravity.keyframes.value", "missing"]),
        (of("{ value = [0, 0, 1] }"), &["gravity.keyframes.time"]),
        (of(""), &["at least one keyframe"]),
        (
            of("{ time = 0, values = [0, 0, 1] }"),
            &["did you mean `value`"],
        ),
        ("gravity = {}".to_owned(), &["gravity.keyframes"]),
        (
            "air.density = { keyframes = [{ time = 0, value = -1 }] }".to_owned(),
            &["air.density.keyframes.value"],
        ),
        (
            "air.wind = { repeat = true, keyframes = [{ time = 0, value = [0, 0, 0] }, { time = 1, value = [1, 0, 0] }] }"
                .to_owned(),
            &["air.wind.repeat", "do not jump"],
        ),
        (
            "air.wind = { repeat = true, keyframes = [{ time = 0, value = [0, 0, 0] }] }".to_owned(),
            &["air.wind.repeat", "nothing to repeat"],
        ),
    ] {
        let problems = refused(&above, "");
        for part in told {
            assert!(problems.contains(part), "{part} in {problems}");
        }
    }
    for times in [
        "from = 1, until = 1",
        "until = 0",
        "from = -1",
        "until = nan",
    ] {
        let problems = refused("", &format!("pins = [{{ nearest = [0, 0, 0], {times} }}]"));
        assert!(problems.contains("cloth.pins."), "{problems}");
    }
}

/// The echo of a scene is read as the scene.
#[test]
fn values_that_change_in_time_are_echoed() {
    let above = "gravity = { interpolation = \"smooth\", keyframes = [{ time = \"0.5 s\", value = [0, 0, -9] }, { time = 2, value = \
                 [2, 0, -12] }] }\nair = { density = { keyframes = [{ time = 0, value = 1 }, { time = 1, value = 3 }] } }";
    let cloth = "pins = [{ nearest = [0, 0, 0], from = \"10 ms\", until = 0.1 }]";
    let floor = "[[body]]\nshape = \"plane\"\nfriction = { repeat = true, keyframes = [{ time = 0, value = 0.1 }, { time = 1, value = \
                 0.9 }, { time = 3, value = 0.1 }] }";
    let scene = Scene::parse(&text(above, cloth, floor), None, &[]).unwrap();
    let again = Scene::parse(&scene.echo(), None, &[]).unwrap();
    assert_eq!(scene.gravity, again.gravity);
    assert_eq!(scene.air, again.air);
    assert_eq!(scene.bodies, again.bodies);
    assert_eq!(scene.cloths[0].pins, again.cloths[0].pins);
    assert_eq!(scene.gravity.at(1.25), DVec3::new(1.0, 0.0, -10.5));
}
