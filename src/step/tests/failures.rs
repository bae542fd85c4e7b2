//! Steps that cannot be taken, and steps that are cut.

use weft_runtime::trace::Mark;

use super::*;
use crate::step::{COUNTERS, StepReport};

/// A step leaves, on several ranks, the next step's system behind. A caller that changes the state
/// then, or looks at another system, gets what one rank gets, which assembles it later.
#[test]
fn a_system_that_was_assembled_ahead_is_given_up_with_its_state() {
    let world = world(&drape());
    let disturbed = |comm: &mut dyn Comm| {
        let mut s = Simulation::new(&world, &*comm, &ScopeOptions::default()).unwrap();
        take(&mut s, 5, comm);
        let (x, v) = s.state_mut();
        for (i, (x, v)) in x.iter_mut().zip(v).enumerate() {
            x.y += 1e-4 * (i % 5) as f64;
            v.x += 0.1 * (i % 7) as f64;
        }
        take(&mut s, 5, comm);
        s.free_system(comm).unwrap();
        let seen = take(&mut s, 5, comm);
        bits(&s, seen)
    };
    let alone = disturbed(&mut Solo::new());
    for got in launch(3, disturbed).unwrap() {
        assert!(got == alone);
    }
}

#[test]
fn a_step_that_blows_up_names_step_and_vertex() {
    let world = world(&sheet(9, "", ""));
    let mut comm = Solo::new();
    let mut s = Simulation::new(&world, &comm, &ScopeOptions::default()).unwrap();
    s.advance(&mut comm).unwrap();
    s.state_mut().1[7] = DVec3::new(0.0, f64::INFINITY, 0.0);
    let text = s.advance(&mut comm).unwrap_err().to_string();
    assert!(text.contains("step 2") && text.contains("vertex"), "{text}");
}

/// A round table cloth falls flat on a floor: all of its vertices are held within two steps, with
/// the forces of an impact, and the normals of some slant by 10⁻⁸. Rigid motions that
/// such constraints nearly remove only multiply rounding.
#[test]
fn round_cloth_that_lands_flat_is_solved_for() {
    const SPOKES: u32 = 48;
    const RINGS: u32 = 16;
    let mut obj = "v 0 0 0\n".to_owned();
    for ring in 1..=RINGS {
        for spoke in 0..SPOKES {
            let angle = std::f64::consts::TAU * f64::from(spoke) / f64::from(SPOKES);
            let radius = 60.0 * f64::from(ring) / f64::from(RINGS);
            let [x, y] = [radius * angle.cos(), radius * angle.sin()];
            obj += &format!("v {x:.6} {y:.6} 0\n");
        }
    }
    let v = |ring: u32, spoke: u32| 2 + (ring - 1) * SPOKES + spoke % SPOKES;
    for spoke in 0..SPOKES {
        obj += &format!("f 1 {} {}\n", v(1, spoke), v(1, spoke + 1));
        for ring in 1..RINGS {
            let [a, b] = [v(ring, spoke), v(ring + 1, spoke)];
            let [c, d] = [v(ring + 1, spoke + 1), v(ring, spoke + 1)];
            obj += &format!("f {a} {b} {c} {d}\n");
        }
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("table.obj"), obj).unwrap();
    let at = folder.path().join("scene.toml");
    for (step, count) in [(2, 34), (3, 23), (4, 18)] {
        let text = format!(
            "time = {{ step = \"{step} ms\" }}\n[[cloth]]\nmesh = \"table.obj\"\nscale = 0.01\n\
             material = {{ fabric = \"tablecloth\" }}\n[[body]]\nshape = \"plane\"\npoint = [0, 0, -0.02]\n\
             [contact]\nthickness = 0.00245\n"
        );
        let world = World::build(&Scene::parse(&text, Some(&at), &[]).unwrap()).unwrap();
        let lands = |comm: &mut dyn Comm| {
            let mut s = Simulation::new(&world, &*comm, &ScopeOptions::default()).unwrap();
            let seen = take(&mut s, count, comm);
            bits(&s, seen)
        };
        let alone = lands(&mut Solo::new());
        for got in launch(3, lands).unwrap() {
            assert!(got == alone);
        }
    }
}

#[test]
fn more_ranks_than_patches_are_refused() {
    let world = world(&sheet(9, "", ""));
    let errors = launch(3, |comm| {
        Simulation::new(&world, comm, &ScopeOptions::default())
            .unwrap_err()
            .to_string()
    })
    .unwrap();
    assert!(errors[0].contains("patches"), "{}", errors[0]);
}

/// A collapsing triangle, and what a step does that may be cut.
#[test]
fn a_step_that_fails_is_cut_and_ends_where_it_would_have_ended() {
    let text = |time: &str| {
        sheet(9, "", "[contact]\nself_collision = false")
            .replace("time =", "gravity = [0, 0, 0]\ntime =")
            .replace("1000 N/m", "1 N/m")
            .replace(r#"step = "5 ms""#, time)
    };
    // Pressed together by a third within a step of 20 ms.
    let press = |world: &World| {
        let mut comm = Solo::new();
        let mut s = Simulation::new(world, &comm, &ScopeOptions::default()).unwrap();
        let (x, v) = s.state_mut();
        for (x, v) in x.iter().zip(v) {
            v.x = -x.x * 15.0;
        }
        s.record(Some(0));
        let report = s.advance(&mut comm).unwrap();
        phases_follow_each_other(&report);
        (report, s.time(), s.step())
    };
    let (whole, ..) = press(&world(&text(r#"step = "20 ms""#)));
    assert_eq!((whole.substeps, whole.halvings), (1, 0));
    let (cut, time, step) = press(&world(&text(
        r#"step = "20 ms", shortest = "1 ms", strain_change = 0.1"#,
    )));
    assert!(
        cut.substeps > 1 && cut.halvings > 0 && cut.rough == 0,
        "{cut:?}"
    );
    assert_eq!((time, step), (0.02, 1));
    let why = cut.halved_because.unwrap();
    for word in ["step 1", "vertex", "patch", "cloth0", "time.strain_change"] {
        assert!(why.contains(word), "{why}");
    }
    let (rough, ..) = press(&world(&text(
        r#"step = "20 ms", shortest = "10 ms", strain_change = 0.001"#,
    )));
    assert!(rough.rough > 0 && rough.shortest == 0.01, "{rough:?}");
}

/// Checks that a rank that is alone has told each phase of each part where it was, and the step
/// around them.
fn phases_follow_each_other(report: &StepReport) {
    let mut phases: Vec<(&str, u64, u64)> = Vec::new();
    for mark in &report.marks {
        if let Mark::Phase {
            name, begin, end, ..
        } = *mark
        {
            phases.push((name, begin, end));
        }
    }
    let (step, begin, end) = phases.pop().unwrap();
    assert_eq!(step, "step");
    assert_eq!((begin, end), (phases[0].1, phases[phases.len() - 1].2));
    assert!(
        phases.windows(2).all(|pair| pair[0].2 <= pair[1].1),
        "{phases:?}"
    );
    let parts = (report.substeps + report.halvings) as usize;
    let told = |phase: &str| phases.iter().filter(|(name, ..)| *name == phase).count();
    for phase in ["collide", "assemble", "solve", "respond"] {
        assert_eq!(told(phase), parts, "{phase}");
    }
    // A part that fails does not come to its end.
    assert_eq!(told("share"), report.substeps as usize);
    let counters = report
        .marks
        .iter()
        .filter(|mark| matches!(mark, Mark::Counter { .. }));
    assert_eq!(counters.count(), COUNTERS.len());
}

#[test]
fn a_triangle_that_has_collapsed_is_named_alike_on_all_ranks() {
    let text = sheet(24, "", "[contact]\nself_collision = false");
    let world = world(&text);
    let fail = |comm: &mut dyn Comm| {
        let mut s = Simulation::new(&world, &*comm, &ScopeOptions::default()).unwrap();
        let (x, _) = s.state_mut();
        // Two triangles of different ranks, each drawn to a line.
        for t in [7, world.model().triangles().len() - 3] {
            let [a, b, c] = world.model().triangles()[t].map(|v| v as usize);
            x[a] = 0.5 * (x[b] + x[c]);
        }
        s.advance(comm).unwrap_err()
    };
    let alone = fail(&mut Solo::new());
    let StepError::Collapsed { step: 1, ref at } = alone else {
        panic!("{alone}")
    };
    assert!(at.cloth == "cloth0", "{at}");
    // A rank that heard of the error from another has no more to say.
    let errors = launch(3, fail).unwrap();
    let named: Vec<_> = errors.iter().filter(|error| !error.is_echo()).collect();
    assert!(!named.is_empty());
    for error in named {
        assert_eq!(error.to_string(), alone.to_string());
    }
}
