//! Limits of compression in the plane of cloth.

use super::moving::ends_the_same;
use super::*;

/// A strip of 0.2 m by 40 mm whose ends come together by a fifth of its length
/// between 0.1 s and 0.4 s, when it hangs through by some millimetres. It is so
/// stiff against bending, and so soft in its plane, that it is compressed before it buckles.
fn squeezed(limit: &str, rest: &str) -> World {
    let toward = |sign: f64| {
        format!(
            "motion = {{ keyframes = [{{ time = 0.1 }}, {{ time = 0.4, translation = [{:?}, 0, 0] }}] }}",
            sign * 0.02
        )
    };
    let text = format!(
        "time = {{ step = \"4 ms\", end = \"1 s\" }}\nsolver.tolerance = 1e-8\npartition.patches = 4\n{rest}\n\
         [[cloth]]\ngrid = {{ size = [0.2, 0.04], vertices = [21, 5] }}\n\
         pins = [{{ min = [-1, -1, -1], max = [-0.0899, 1, 1], {} }}, {{ min = [0.0899, -1, -1], max = [1, 1, 1], {} }}]\n\
         material = {{ density = 0.15, stretch = 10, poisson = 0, bending = 1e-3, damping_stiffness = \"2 ms\", {limit} }}\n",
        toward(1.0),
        toward(-1.0)
    );
    world(&text)
}

/// The least principal stretch of the triangles that no pin holds altogether.
fn shortest(world: &World, x: &[DVec3]) -> f64 {
    let model = world.model();
    let triangles = model.triangles().iter().zip(model.membranes());
    let free = triangles.filter(|(t, _)| t.iter().any(|&v| !world.pinned()[v as usize]));
    let stretches = free.map(|(t, membrane)| {
        let corners = t.map(|v| x[v as usize]);
        membrane.deform(corners).map_or(0.0, |d| d.stretches()[1])
    });
    stretches.fold(f64::INFINITY, f64::min)
}

#[test]
fn a_strip_that_is_squeezed_buckles_instead_of_being_compressed() {
    for rest in [
        "contact.certify = true",
        "solver.integrator = \"bdf2\"\ncontact.certify = true",
    ] {
        let ends = |limit: &str| {
            let world = squeezed(limit, rest);
            let mut least = f64::INFINITY;
            let s = run(&world, 112, |s| {
                // While it begins to buckle it is compressed by some more.
                if s.step() > 50 {
                    least = shortest(&world, s.positions()).min(least);
                }
            });
            let heights = s.positions().iter().map(|x| x.z.abs());
            (least, heights.fold(0.0, f64::max))
        };
        let (free, low) = ends("");
        let (held, high) = ends("compression_limit = \"1 %\"");
        assert!(free < 0.9, "{rest} {free}");
        assert!(held > 0.98, "{rest} {held}");
        // It is longer than the one that is compressed, and so farther from flat.
        assert!(high > 1.02 * low, "{rest} {high} {low}");
    }
}

/// A free sheet whose corner is pushed inwards: no momentum appears, and the corner is kept off.
#[test]
fn a_pressed_triangle_is_kept_at_its_limit_and_no_momentum_appears() {
    let pressed = |limit: &str| {
        let text = sheet(
            11,
            "",
            "[solver]\ntolerance = 1e-10\n[contact]\niterations = 1000",
        )
        .replace("time =", "gravity = [0, 0, 0]\ntime =")
        .replace(
            "bending = \"1e-5 N m\"",
            &format!("bending = \"1e-5 N m\"\nstrain_limit = \"none\"\n{limit}"),
        )
        .replace("1000 N/m", "10 N/m");
        let world = world(&text);
        let mut comm = Solo::new();
        let mut s = Simulation::new(&world, &comm, &ScopeOptions::default()).unwrap();
        let (x, v) = s.state_mut();
        let corner = x.iter().position(|x| x.x + x.y < -0.99).unwrap();
        v[corner] = DVec3::new(3.0, 2.0, 0.0);
        let before = momentum(&world, &s).0;
        let report = s.advance(&mut comm).unwrap();
        let after = momentum(&world, &s).0;
        assert!(
            (after - before).length() < 1e-7 * before.length(),
            "{before} {after}"
        );
        (shortest(&world, s.positions()), report.strain_limited)
    };
    let (free, none) = pressed("");
    assert!(free < 0.92 && none == 0, "{free} {none}");
    let (held, pushed) = pressed("compression_limit = 0.05");
    assert!(held > 0.945 && pushed > 0, "{held}");
}

#[test]
fn cloth_with_limits_of_compression_does_not_depend_on_ranks() {
    for rest in [
        "",
        "solver.integrator = \"bdf2\"",
        "contact.response = \"gauss-seidel\"",
    ] {
        ends_the_same(&squeezed("compression_limit = 0", rest), 45, 33);
    }
}

#[test]
fn limits_of_compression_are_shares_below_one() {
    let parse = |limit: &str| {
        let text = format!(
            "[[cloth]]\ngrid = {{ size = 1, vertices = 4 }}\nmaterial = {{ fabric = \"denim\", compression_limit = {limit} }}"
        );
        Scene::parse(&text, None, &[])
    };
    for limit in ["1", "-0.1", "\"nine\"", "inf"] {
        let problems = parse(limit).unwrap_err().to_string();
        assert!(
            problems.contains("cloth.material.compression_limit"),
            "{problems}"
        );
    }
    for (limit, known) in [("0", 0.0), ("\"5 %\"", 0.05), ("\"none\"", f64::INFINITY)] {
        let scene = parse(limit).unwrap();
        assert_eq!(scene.cloths[0].material.compression_limit, known);
        let again = Scene::parse(&scene.echo(), None, &[]).unwrap();
        assert_eq!(scene.cloths[0].material, again.cloths[0].material);
    }
}
