//! Pairs that are found once for many substeps: what they do, and that it is the same everywhere.

use glam::DVec3;
use weft_runtime::ScopeOptions;
use weft_runtime::comm::solo::Solo;
use weft_runtime::comm::threads::launch;

use super::history::{Look, Near};
use super::*;
use crate::collide::audit::crossings;
use crate::scene::{Scene, Substeps};
use crate::step::exchange::saved_state::SavedState;
use crate::step::response::body_response::BodyResponse;

fn world(text: &str) -> World {
    World::build(&Scene::parse(text, None, &[]).unwrap()).unwrap()
}

/// Two sheets above each other, the upper one three times as heavy, that fly at each other.
fn sheets(step: f64, gap: f64, speed: f64, contact: &str, more: &str) -> String {
    let sheet = |name: &str, height: f64, velocity: f64, turn: f64, density: f64| {
        format!(
            "[[cloth]]\nname = \"{name}\"\ngrid = {{ size = 0.2, vertices = 12 }}\n\
             center = [0.003, 0.002, {height}]\nrotation = [0.02, 0.01, {turn}]\nvelocity = [0.3, 0, {velocity}]\n\
             material = {{ density = {density}, stretch = 200, bending = 1e-5, damping_stiffness = 0.002 }}\n"
        )
    };
    let (lower, upper) = (
        sheet("lower", 0.0, speed, 0.2, 0.1),
        sheet("upper", gap, -speed, -0.3, 0.3),
    );
    format!(
        "time = {{ step = {step}, end = 1 }}\npartition.patches = 16\n{lower}{upper}{more}\n[contact]\n\
         pipeline = \"2009\"\n{contact}\n"
    )
}

/// The result of a run: its bits, the sums of hits, pairs and inverted pairs, and crossings.
#[derive(Clone, Debug, Default, PartialEq)]
struct Came {
    bits: Vec<u64>,
    hits: u64,
    substeps: u32,
    parts: u32,
    crossed: usize,
}

fn advance(world: &World, s: &mut Simulation<'_>, comm: &mut dyn Comm, steps: u32) -> Came {
    let mut came = Came::default();
    for _ in 0..steps {
        let report = s.advance(comm).unwrap();
        came.hits += report.certified.hits;
        came.substeps += report.inner;
        came.parts += report.substeps;
        // Several ranks are compared with one, whose states are looked at.
        if comm.size() == 1 {
            came.crossed += crossings(s.positions(), world.model().triangles()).len();
        }
    }
    let bits = [s.positions(), s.velocities()].map(bytemuck::cast_slice::<DVec3, u64>);
    came.bits = bits.concat();
    came
}

fn run(world: &World, comm: &mut dyn Comm, options: &ScopeOptions, steps: u32) -> Came {
    let mut s = Simulation::new(world, comm, options).unwrap();
    advance(world, &mut s, comm, steps)
}

const BALL: &str = "[[body]]\nname = \"ball\"\nshape = \"sphere\"\ncenter = [0, 0, -0.06]\nradius = 0.05\nedge = 0.03\n";

/// Scenes in which sheets meet each other and a ball: their number of steps, and keys.
fn ways() -> Vec<(u32, String)> {
    let solver = |integrator: &str| format!("{BALL}[solver]\nintegrator = \"{integrator}\"\n");
    let mut ways = Vec::new();
    for k in ["1", "8", "\"adaptive\""] {
        let contact = format!("substeps = {k}");
        ways.push((14, sheets(0.004, 0.02, 2.0, &contact, BALL)));
    }
    for integrator in ["bdf2", "newmark", "central"] {
        let more = solver(integrator);
        ways.push((12, sheets(0.002, 0.012, 3.0, "substeps = 8", &more)));
    }
    ways
}

#[test]
fn the_state_does_not_depend_on_ranks_and_threads() {
    // Many ranks take turns on few cores: the first scene is enough for them.
    let all = [(3, 2), (1, 3), (2, 1), (5, 1), (16, 1)];
    for (number, (steps, text)) in ways().into_iter().enumerate() {
        let world = world(&text);
        let expected = run(&world, &mut Solo::new(), &ScopeOptions::default(), steps);
        assert!(expected.crossed == 0 && expected.substeps > 0, "{text}");
        let these = if number == 0 { &all[..] } else { &all[..2] };
        for &(ranks, workers) in these {
            let options = ScopeOptions {
                workers,
                ..ScopeOptions::default()
            };
            for found in launch(ranks, |comm| run(&world, comm, &options, steps)).unwrap() {
                assert!(
                    found == expected,
                    "{ranks} ranks, {workers} threads: {text}"
                );
            }
        }
    }
}

#[test]
fn a_run_goes_on_anywhere_from_any_step() {
    for (steps, text) in ways() {
        let world = world(&text);
        let options = ScopeOptions::default();
        let mut comm = Solo::new();
        let mut s = Simulation::new(&world, &comm, &options).unwrap();
        let mut states: Vec<SavedState> = Vec::new();
        for _ in 0..steps {
            states.push(s.gather_state(&mut comm).unwrap().unwrap());
            advance(&world, &mut s, &mut comm, 1);
        }
        let expected = s.gather_state(&mut comm).unwrap().unwrap();
        for (from, ranks) in [(steps / 3, 1), (steps / 2, 3), (steps - 3, 5)] {
            let ends = launch(ranks, |comm| {
                let mut s = Simulation::new(&world, comm, &options).unwrap();
                s.restore(&states[from as usize]).unwrap();
                advance(&world, &mut s, comm, steps - from);
                s.gather_state(comm).unwrap()
            });
            assert!(
                ends.unwrap()[0].as_ref() == Some(&expected),
                "{from}: {text}"
            );
        }
    }
}

/// Fast sheets are stopped, whatever the number of substeps, and whatever pairs know.
#[test]
fn sheets_that_clash_do_not_cross() {
    for (contact, is_hit) in [
        ("substeps = 1", true),
        ("substeps = 16", false),
        ("substeps = 16\nsides = \"paper\"", false),
        ("substeps = 16\nsides = \"none\"", false),
        ("substeps = 4\nrepulsion = 0", false),
        ("substeps = \"adaptive\"", false),
    ] {
        let world = world(&sheets(0.004, 0.05, 15.0, contact, ""));
        let came = run(&world, &mut Solo::new(), &ScopeOptions::default(), 8);
        assert_eq!(came.crossed, 0, "{contact}");
        assert!(came.hits > 0 || !is_hit, "{contact}: nothing was hit");
    }
}

/// Cloth that is certified more often has fewer substeps in a part, and as many in a step.
#[test]
fn the_number_of_substeps_adapts() {
    let text = sheets(0.016, 0.1, 60.0, "substeps = \"adaptive\"", "");
    let came = run(&world(&text), &mut Solo::new(), &ScopeOptions::default(), 8);
    assert_eq!(came.substeps, 8 * Substeps::MOST);
    assert!(
        came.hits > 0 && came.parts > 8,
        "{} {}",
        came.hits,
        came.parts
    );
    assert_eq!(came.crossed, 0);
}

/// A step in which pairs were kept, and the simulation before its first solve.
fn with_pairs<T>(
    text: &str,
    moved: impl Fn(usize, DVec3) -> DVec3,
    look: impl FnOnce(&World, Context<'_>, &mut Many, &State, &BodyResponse, Near) -> T,
) -> T {
    let world = world(text);
    let mut comm = Solo::new();
    let mut s = Simulation::new(&world, &comm, &ScopeOptions::default()).unwrap();
    let mut many = s.many.take().unwrap();
    many.begin(&s.state, &s.integrator.past);
    let mut track = MainTrack::new(&comm, false);
    s.find_pairs(&mut comm, &mut many, &mut StepReport::default(), &mut track)
        .unwrap();
    s.substep.enter(&world, 0);
    s.substep.place_pins(&world);
    for (v, x) in s.state.x.iter_mut().enumerate() {
        *x = moved(v, *x);
    }
    let at = Context {
        world: &world,
        domain: &s.domain,
        substep: &s.substep,
    };
    many.bodies.foresee(at, &s.state);
    let near = near_of(&mut many, at, &s.state);
    look(&world, at, &mut many, &s.state, &s.response.bodies, near)
}

fn near_of(many: &mut Many, at: Context<'_>, state: &State) -> Near {
    let look = Look {
        at,
        start: &many.start,
        state,
        foreseen: &many.bodies.foreseen,
    };
    many.history.near(&look, &Team::default())
}

fn momentum(world: &World, v: &[DVec3]) -> DVec3 {
    let masses = world.model().masses().iter();
    masses.zip(v).map(|(mass, v)| *v * *mass).sum()
}

#[test]
fn every_pass_keeps_momentum() {
    let text = sheets(0.002, 0.003, 1.0, "substeps = 2", "");
    with_pairs(
        &text,
        |_, x| x,
        |world, at, many, state, bodies, near| {
            let mut comm = Solo::new();
            let mut v = many.bodies.foreseen.to_vec();
            let whole: f64 = (world.model().masses().iter().zip(&v))
                .map(|(mass, v)| v.length() * mass)
                .sum();
            let before = momentum(world, &v);
            assert!(near.faces > 100 && near.constraints.len() > 2 * near.faces);
            assert_eq!(state.x[..], many.start.x[..]);
            let none = std::iter::empty();
            (many.repulsions)
                .begin(&mut comm, at, near, none, (bodies, &v))
                .unwrap();
            for pass in 0..3 {
                let passed = v.clone();
                match pass {
                    0 | 1 => {
                        let bodies = (bodies, &mut v[..]);
                        let stopped = many.repulsions.stop(&mut comm, at, bodies, pass == 1);
                        assert!(stopped.unwrap() > 0);
                    }
                    _ => (many.repulsions)
                        .push_apart(&mut comm, at, (bodies, &mut v[..]))
                        .unwrap(),
                }
                assert_ne!(passed, v, "pass {pass}");
                let change = (momentum(world, &v) - before).length();
                assert!(change < 1e-13 * whole, "pass {pass}: {change}");
            }
        },
    );
}

/// Pairs that are left out unseen are those that would not push.
#[test]
fn pruned_pairs_would_not_push() {
    let text = sheets(0.008, 0.010, 2.0, "substeps = 8", "");
    let shake = |v: usize, x: DVec3| {
        let random = |seed: u64| {
            let mixed = crate::collide::certify::mixed(seed + 17 * v as u64);
            (mixed >> 11) as f64 / (1_u64 << 53) as f64 - 0.5
        };
        let by = DVec3::new(random(1), random(2), random(3));
        x + DVec3::new(0.5, -0.2, 0.1) + by * if v.is_multiple_of(9) { 0.004 } else { 0.0005 }
    };
    with_pairs(&text, shake, |_, at, many, state, _, near| {
        let pairs = many.history.counted();
        assert!(near.counts.looked < pairs && !near.constraints.is_empty());
        many.history.look_at_all();
        let all = near_of(many, at, state);
        assert_eq!(all.counts.looked, pairs);
        assert_eq!(all.constraints, near.constraints);
        assert_eq!(all.counts.inverted, near.counts.inverted);
    });
}

/// Sheets that have gone through each other attract, if pairs know of it, and push each other on
/// if they do not.
#[test]
fn features_on_the_wrong_side_come_back() {
    for (sides, returns) in [("parity", true), ("paper", true), ("none", false)] {
        let contact = format!("substeps = 2\nsides = \"{sides}\"");
        let text = sheets(0.004, 0.004, 0.1, &contact, "");
        let upper = world(&text).model().cloth_of_vertex().to_vec();
        let through = |v: usize, x: DVec3| {
            let by = if upper[v] == 1 { -0.0055 } else { 0.0 };
            x + DVec3::new(0.0, 0.0, by)
        };
        with_pairs(&text, through, |_, at, many, _, bodies, near| {
            assert_eq!(near.counts.inverted > 100, returns, "{sides}");
            let mut v = vec![DVec3::ZERO; upper.len()];
            let mut comm = Solo::new();
            let none = std::iter::empty();
            (many.repulsions)
                .begin(&mut comm, at, near, none, (bodies, &v))
                .unwrap();
            (many.repulsions)
                .push_apart(&mut comm, at, (bodies, &mut v[..]))
                .unwrap();
            let of = |cloth: u32| {
                let own = v.iter().zip(&upper).filter(|(_, of)| **of == cloth);
                own.map(|(v, _)| v.z).sum::<f64>()
            };
            assert_eq!(of(1) > of(0), returns, "{sides}: {} {}", of(1), of(0));
        });
    }
}

/// Layers that are too near move apart, and no velocity comes of it.
#[test]
fn pushing_apart_changes_no_velocity() {
    for integrator in ["euler", "bdf2", "newmark", "central"] {
        let more = format!("[solver]\nintegrator = \"{integrator}\"\n");
        let text = sheets(0.002, 0.0025, 0.0, "substeps = 4", &more);
        let text = format!("gravity = [0, 0, 0]\n{text}").replace("[0.02, 0.01, ", "[0, 0, ");
        let world = world(&text);
        let mut comm = Solo::new();
        let mut s = Simulation::new(&world, &comm, &ScopeOptions::default()).unwrap();
        let gap = |s: &Simulation<'_>| {
            let mean = |cloth: u32| {
                let of = world.model().cloth_of_vertex().iter().zip(s.positions());
                let own = of.filter(|(of, _)| **of == cloth).map(|(_, x)| x.z);
                own.sum::<f64>() / 144.0
            };
            mean(1) - mean(0)
        };
        let before = gap(&s);
        let still = s.velocities().to_vec();
        s.advance(&mut comm).unwrap();
        let after = gap(&s);
        assert!(
            after > before + 3e-4 && after < 0.0041,
            "{integrator}: {before} {after}"
        );
        // Only where sheets end are they pushed unevenly, and spring back.
        let changes = still.iter().zip(s.velocities());
        let mean: f64 = changes.map(|(a, b)| (*b - *a).length()).sum::<f64>() / 288.0;
        let moved = (after - before) / 0.002;
        assert!(mean < 0.1 * moved, "{integrator}: {mean} of {moved}");
    }
}

/// A bar at 3,000 revolutions a minute: a scene in which it would turn by more than 10 degrees in a
/// step, all of its substeps, is refused.
#[test]
fn a_body_turns_little_in_all_substeps_of_a_step() {
    let bar = |step: f64| {
        let text = sheets(step, 0.012, 0.5, "substeps = 8", "");
        let body = "[[body]]\nname = \"bar\"\nshape = \"box\"\nsize = [0.3, 0.05, 0.05]\ncenter = [0, 0, -0.06]\n\
                    motion = { center = [0, 0, -0.06], keyframes = [{ time = 0 }, { time = 1, turn = [\"18000 deg\", 0, 0] }] }\n";
        Scene::parse(&format!("{text}{body}"), None, &[])
    };
    let error = bar(0.0006).unwrap_err();
    assert!(
        error.to_string().contains("turns by 10.8 deg in a step"),
        "{error}"
    );
    let world = World::build(&bar(0.0005).unwrap()).unwrap();
    let came = run(&world, &mut Solo::new(), &ScopeOptions::default(), 30);
    assert_eq!((came.crossed, came.substeps), (0, 240));
}

/// Steps that are cut are taken back as a whole.
#[test]
fn parts_that_fail_are_taken_back() {
    for integrator in ["euler", "bdf2"] {
        let more = format!("[solver]\nintegrator = \"{integrator}\"\n");
        let cut = "end = 1, shortest = 0.0005, strain_change = 0.01";
        let text = sheets(0.008, 0.03, 8.0, "substeps = 2", &more).replace("end = 1", cut);
        let world = world(&text);
        let options = ScopeOptions::default();
        let expected = run(&world, &mut Solo::new(), &options, 6);
        assert!(
            expected.parts > 6 && expected.crossed == 0,
            "{}",
            expected.parts
        );
        for found in launch(3, |comm| run(&world, comm, &options, 6)).unwrap() {
            assert!(found == expected, "{integrator}");
        }
    }
}
