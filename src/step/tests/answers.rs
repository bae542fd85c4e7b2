//! Steps against what theory says of falling, stretched, hanging and draped cloth.

use super::*;

fn energy(world: &World, s: &Simulation<'_>) -> f64 {
    let model = world.model();
    let x = s.positions();
    let kinetic: f64 = model
        .masses()
        .iter()
        .zip(s.velocities())
        .map(|(m, v)| 0.5 * m * v.length_squared())
        .sum();
    let stretch: f64 = model
        .triangles()
        .iter()
        .zip(model.membranes())
        .map(|(t, e)| e.energy(&e.deform(t.map(|v| x[v as usize])).unwrap()))
        .sum();
    let bend: f64 = model
        .quadratic()
        .hinges
        .iter()
        .map(|h| h.energy(h.vertices.map(|v| x[v as usize])))
        .sum();
    kinetic + stretch + bend
}

/// The matrix times any vector, and the right-hand side, of isotropic and of woven cloth.
#[test]
fn a_system_is_what_its_elements_say_one_by_one() {
    let woven = "bending_bias = \"2e-5 N m\"";
    let angles = format!("{woven}\nbending_model = \"dihedral\"");
    for woven in [
        "",
        "shear = \"40 N/m\"\ndamping_mass = \"0.3 1/s\"",
        woven,
        &angles,
    ] {
        let mut text = sheet(9, "weave = [1, 1, 0]", woven).replace("\"0 s\"", "\"2 ms\"");
        if woven.contains("bias") {
            text = text.replace("\"1e-5 N m\"", "[\"1e-4 N m\", \"3e-5 N m\"]");
        }
        let world = world(&text);
        let (model, h) = (world.model(), 0.005);
        let mut simulation =
            Simulation::new(&world, &Solo::new(), &ScopeOptions::default()).unwrap();
        let wave = |p: &DVec3, by: f64| {
            let (a, b) = ((7.0 * p.x + by).sin(), (5.0 * p.y - by).cos());
            DVec3::new(a * b, a - b, 0.7 * b)
        };
        let (x, v) = simulation.state_mut();
        for (x, v) in x.iter_mut().zip(v) {
            (*x, *v) = (*x + wave(x, 0.3) * 0.05, wave(x, 0.9));
        }
        let (x, v) = (
            simulation.positions().to_vec(),
            simulation.velocities().to_vec(),
        );
        let w: Vec<DVec3> = x.iter().map(|x| wave(x, 2.0)).collect();

        // All but masses.
        let pull = |w: &[DVec3]| {
            let mut pulled = vec![DVec3::ZERO; w.len()];
            for (index, (t, element)) in model.triangles().iter().zip(model.membranes()).enumerate()
            {
                let t = t.map(|v| v as usize);
                let stiffness = element.stiffness(&element.deform(t.map(|v| x[v])).unwrap());
                let [stretch, shear] = model.triangle_damping(index);
                let elastic = stiffness.scaled(h + stretch, h + shear);
                for (i, row) in t.into_iter().enumerate() {
                    for (j, column) in t.into_iter().enumerate() {
                        let block = elastic.elastic(i, j) + stiffness.geometric(i, j) * h;
                        pulled[row] += block * w[column] * h;
                    }
                }
            }
            let quadratic = model.quadratic();
            for hinge in &*quadratic.hinges {
                let vertices = hinge.vertices.map(|v| v as usize);
                let bent = hinge.curvature(vertices.map(|v| w[v]));
                for (row, weight) in vertices.into_iter().zip(hinge.weights) {
                    let damping = model.bending_damping(row);
                    pulled[row] += bent * (weight * h * (h + damping));
                }
            }
            for plate in &*quadratic.plates {
                let vertices = plate.vertices.map(|v| v as usize);
                let bent = plate.curvatures(vertices.map(|v| w[v]));
                for (corner, row) in vertices.into_iter().enumerate() {
                    let damping = model.bending_damping(row);
                    pulled[row] += plate.pull(&bent, corner) * (h * (h + damping));
                }
            }
            for shell in model.shells() {
                let vertices = shell.vertices.map(|v| v as usize);
                let state = shell.state(vertices.map(|v| x[v]));
                let moments = shell.moments_of(state.rates(vertices.map(|v| w[v])));
                for (corner, row) in vertices.into_iter().enumerate() {
                    pulled[row] += state.pull(moments, corner) * (h * (h + shell.damping));
                }
            }
            let angles = woven.contains("dihedral");
            assert_eq!(
                !model.quadratic().plates.is_empty(),
                woven.contains("bias") && !angles
            );
            assert_eq!(!model.shells().is_empty(), angles);
            pulled
        };
        let (of_w, of_v) = (pull(&w), pull(&v));
        let forces = model.elastic_forces(&x).unwrap();
        let gravity = world.scene().gravity.at(0.0);
        let system = simulation.free_system(&mut Solo::new()).unwrap();
        let mut product = vec![DVec3::ZERO; w.len()];
        system.matrix.multiply(&w, &mut product, Rows::All);
        let size = of_w.iter().map(|of_w| of_w.length()).fold(0.0, f64::max);
        for (i, &w) in w.iter().enumerate() {
            let (mass, drag) = (model.masses()[i], model.mass_damping(i));
            let expected = w * (mass * (1.0 + h * drag)) + of_w[i];
            assert!((product[i] - expected).length() < 1e-11 * size, "row {i}");
            let expected = forces[i] * h - of_v[i] + (gravity - v[i] * drag) * (mass * h);
            assert!(
                (system.rhs[i] - expected).length() < 1e-11 * size,
                "row {i}"
            );
        }
    }
}

/// The system that is reported for the next step is the one that the step then solves, for every
/// integrator, also amid a motion that has a past.
#[test]
fn the_free_system_is_the_one_that_the_next_step_solves() {
    let mut seen = Vec::new();
    for integrator in ["euler", "bdf2", "newmark", "central"] {
        let text = sheet(
            9,
            "pins = [{ nearest = [-0.5, 0.5, 0] }]",
            &format!(
                "[solver]\ntolerance = 1e-13\nintegrator = \"{integrator}\"\n[contact]\nself_collision = false"
            ),
        );
        let text = text.replace("5 ms", "0.5 ms").replace(
            "damping_stiffness = \"0 s\"",
            "damping_stiffness = \"1 ms\"\nstrain_limit = 10",
        );
        let world = world(&text);
        let mut comm = Solo::new();
        let mut s = Simulation::new(&world, &comm, &ScopeOptions::default()).unwrap();
        take(&mut s, 5, &mut comm);
        let before = s.velocities().to_vec();
        let system = s.free_system(&mut comm).unwrap();
        let rhs = system.rhs.to_vec();
        let matrix = system.matrix.clone();
        let pinned = world.pinned();
        seen.push(rhs.clone());
        // The first, or the only, solve of a step.
        s.advance(&mut comm).unwrap();
        let change: Vec<DVec3> = match integrator {
            // The first half's; moved by w = v + Δv.
            "newmark" => s.solver.change.to_vec(),
            // From where the first half had come to.
            "central" => s.solver.further.to_vec(),
            _ => (s.velocities().iter().zip(&before))
                .map(|(v, u)| *v - *u)
                .collect(),
        };
        let mut product = vec![DVec3::ZERO; rhs.len()];
        matrix.multiply(&change, &mut product, Rows::All);
        let size = rhs.iter().map(|b| b.length()).fold(0.0, f64::max);
        for (row, (left, right)) in product.iter().zip(&rhs).enumerate() {
            if !pinned[row] {
                let off = (*left - *right).length();
                assert!(
                    off < 1e-6 * size,
                    "{integrator}, row {row}: {off:e} of {size:e}"
                );
            }
        }
    }
    for (i, one) in seen.iter().enumerate() {
        assert!(seen[..i].iter().all(|other| other != one), "{i}");
    }
}

/// Free fall has v = g n h and drop = g h² n (n + 1) / 2 for implicit Euler, to rounding.
#[test]
fn free_fall_is_exact() {
    // Ten thousand times the energy of a light sheet, for every solve may leave 1e-12 √J of it.
    let heavy = sheet(9, "", "[solver]\ntolerance = 1e-13")
        .replace("0.15 kg/m2", "1500 kg/m2")
        .replace("1000 N/m", "1e7 N/m")
        .replace("1e-5 N m", "0.1 N m");
    let world = world(&heavy);
    let (g, h, n) = (9.81, 0.005, 100.0);
    let s = run(&world, 100, |_| {});
    for (x, rest) in s.positions().iter().zip(world.model().start()) {
        let fallen = DVec3::new(0.0, 0.0, -0.5 * g * h * h * n * (n + 1.0));
        assert!((*x - *rest - fallen).length() < 1e-12, "{}", *x - *rest);
    }
    for v in s.velocities() {
        assert!(
            (*v - DVec3::new(0.0, 0.0, -g * h * n)).length() < 1e-11,
            "{}",
            v.z + g * h * n
        );
    }
}

/// A crumpled, spinning sheet on its own for 0.75 s in steps of this length in ms: how much of its
/// linear and angular momentum is lost, as shares. Its energy must never grow.
fn losses_of_a_closed_system(step_ms: f64) -> (f64, f64) {
    let text = sheet(
        13,
        "",
        "[solver]\ntolerance = 1e-10\n[contact]\nself_collision = false\n",
    );
    let text = text.replace("time =", "gravity = [0, 0, 0]\ntime =");
    let world = world(&text.replace("5 ms", &format!("{step_ms} ms")));
    let mut comm = Solo::new();
    let mut s = Simulation::new(&world, &comm, &ScopeOptions::default()).unwrap();
    let (x, v) = s.state_mut();
    for (x, v) in x.iter_mut().zip(v) {
        *v = DVec3::new(0.3, 0.1, 0.5 * (5.0 * x.x).sin()) + DVec3::Z.cross(*x) * 2.0;
        x.z += 0.05 * (7.0 * x.x).sin() * (4.0 * x.y).cos();
        x.x *= 1.02;
    }
    let (linear, angular) = momentum(&world, &s);
    let mut last = energy(&world, &s);
    for _ in 0..(750.0 / step_ms) as u32 {
        s.advance(&mut comm).unwrap();
        let now = energy(&world, &s);
        assert!(
            now <= last * (1.0 + 1e-9),
            "energy rose from {last} to {now}"
        );
        last = now;
    }
    let (linear_after, angular_after) = momentum(&world, &s);
    (
        (linear_after - linear).length() / linear.length(),
        (angular_after - angular).length() / angular.length(),
    )
}

/// Linear momentum is kept to the solver's tolerance; angular momentum, which implicit Euler damps,
/// to the order of the step.
#[test]
fn a_closed_system_keeps_momentum_and_never_gains_energy() {
    let (linear, coarse) = losses_of_a_closed_system(5.0);
    assert!(linear < 1e-8, "{linear}");
    let (linear, fine) = losses_of_a_closed_system(1.25);
    assert!(linear < 1e-8, "{linear}");
    assert!(coarse < 0.1 && fine < 0.35 * coarse, "{coarse} {fine}");
}

/// A strip pulled to a strain e: force per width E h e, lateral strain −ν e.
#[test]
fn a_stretched_strip_pulls_and_narrows_as_theory_says() {
    // 4 m long, so that the ends, where it cannot narrow, matter little in the middle.
    let text = r#"
        gravity = [0, 0, 0]
        time = { step = "50 ms", end = "1 s" }
        [[cloth]]
        grid = { size = ["4 m", "0.5 m"], vertices = [65, 9] }
        pins = [{ min = [-2.01, -1, -1], max = [-1.99, 1, 1] }, { min = [1.99, -1, -1], max = [2.01, 1, 1] }]
        [cloth.material]
        density = "0.15 kg/m2"
        stretch = "1000 N/m"
        poisson = 0.3
        bending = "1e-5 N m"
        damping_stiffness = "50 ms"
        [solver]
        tolerance = 1e-10
        [contact]
        self_collision = false
    "#;
    let world = world(text);
    let strain = 0.02;
    let mut comm = Solo::new();
    let mut s = Simulation::new(&world, &comm, &ScopeOptions::default()).unwrap();
    s.state_mut().0.iter_mut().for_each(|x| x.x *= 1.0 + strain);
    for _ in 0..400 {
        s.advance(&mut comm).unwrap();
    }
    let middle: Vec<f64> = world
        .model()
        .start()
        .iter()
        .zip(s.positions())
        .filter(|(rest, _)| rest.x.abs() < 1e-9)
        .map(|(_, x)| x.y)
        .collect();
    let width = middle.iter().fold(f64::MIN, |a, &b| a.max(b))
        - middle.iter().fold(f64::MAX, |a, &b| a.min(b));
    let lateral = width / 0.5 - 1.0;
    assert!(
        (lateral + 0.3 * strain).abs() < 0.02 * 0.3 * strain,
        "lateral strain {lateral}"
    );
    // Clamped ends stiffen the strip a little; in its middle the law is that of free sides.
    let model = world.model();
    let mut pull = 0.0;
    for (t, e) in model.triangles().iter().zip(model.membranes()) {
        let forces = e.forces(&e.deform(t.map(|v| s.positions()[v as usize])).unwrap());
        for (v, f) in t.iter().zip(forces) {
            if model.start()[*v as usize].x < -1.99 {
                pull += f.x;
            }
        }
    }
    let expected = 1000.0 * strain * 0.5;
    assert!(
        (pull / expected - 1.0).abs() < 0.03,
        "{pull} N, not {expected} N"
    );
}

/// A sheet hung by its upper edge lengthens by ρ g L² / 2 E h (ν = 0).
#[test]
fn a_hanging_sheet_lengthens_by_its_weight() {
    let text = r#"
        time = { step = "20 ms", end = "1 s" }
        [[cloth]]
        grid = { size = "1 m", vertices = 21 }
        rotation = ["90 deg", 0, 0]
        pins = [{ min = [-1, -1, 0.499], max = [1, 1, 0.501] }]
        [cloth.material]
        density = "0.15 kg/m2"
        stretch = "1000 N/m"
        poisson = 0
        bending = "1e-5 N m"
        damping_stiffness = "20 ms"
        [solver]
        tolerance = 1e-10
        [contact]
        self_collision = false
    "#;
    let world = world(text);
    let s = run(&world, 1500, |_| {});
    let lowest: Vec<f64> = world
        .model()
        .start()
        .iter()
        .zip(s.positions())
        .filter(|(rest, _)| rest.z < -0.499)
        .map(|(rest, x)| rest.z - x.z)
        .collect();
    let mean = lowest.iter().sum::<f64>() / lowest.len() as f64;
    let expected = 0.15 * 9.81 / (2.0 * 1000.0);
    assert!(
        (mean / expected - 1.0).abs() < 0.01,
        "{mean} m, not {expected} m"
    );
}

/// Pinned vertices do not move by a bit.
#[test]
fn pins_hold_to_the_bit() {
    let pins = "pins = [{ nearest = [-0.5, -0.5, 0] }, { nearest = [0.5, -0.5, 0] }]";
    let world = world(&sheet(9, pins, ""));
    let s = run(&world, 60, |_| {});
    let mut held = 0;
    for (v, &pinned) in world.pinned().iter().enumerate() {
        if pinned {
            held += 1;
            assert_eq!(s.positions()[v], world.model().start()[v]);
        }
    }
    assert_eq!(held, 2);
    assert!(s.positions().iter().any(|x| x.z < -0.05));
}

#[test]
fn no_vertex_enters_a_body_and_cloth_does_not_stretch_much() {
    let world = world(&drape());
    let s = run(&world, 120, |s| {
        let deepest = s
            .positions()
            .iter()
            .map(|&x| world.depth(x, s.time()))
            .fold(f64::MIN, f64::max);
        assert!(deepest < 0.0005, "step {}: {deepest} m deep", s.step());
        let (x, model) = (s.positions(), world.model());
        let strains = model
            .triangles()
            .iter()
            .zip(model.membranes())
            .map(|(t, e)| {
                let deformation = e.deform(t.map(|v| x[v as usize]));
                deformation.map_or(f64::INFINITY, |d| d.strain())
            });
        let strain = strains.fold(0.0, f64::max);
        assert!(strain < 0.12, "step {}: {strain}", s.step());
    });
    // It lies: on the floor at the rim, over the ball in the middle.
    let highest = s.positions().iter().map(|x| x.z).fold(f64::MIN, f64::max);
    let lowest = s.positions().iter().map(|x| x.z).fold(f64::MAX, f64::min);
    assert!(
        (0.19..0.22).contains(&highest) && (0.0..0.01).contains(&lowest),
        "{highest} {lowest}"
    );
}

/// A sheet falls flat on a floor while it drifts. It lands, neither bounces nor sinks, and slides
/// as far as Coulomb's law says: at the impact friction takes its coefficient times the speed of
/// landing, then its coefficient times gravity.
#[test]
fn a_sheet_lands_and_slides_to_rest_whatever_the_integrator() {
    for integrator in ["euler", "bdf2", "newmark", "central"] {
        let text = sheet(
            9,
            "center = [0, 0, 0.024]\nvelocity = [0.3, 0, 0]",
            &format!(
                "[[body]]\nshape = \"plane\"\nsurface = \"analytic\"\nfriction = 0.2\n[contact]\n\
                 thickness = \"4 mm\"\n[solver]\nintegrator = \"{integrator}\"\n"
            ),
        );
        let text = text
            .replace("1000 N/m", "100 N/m")
            .replace(r#"step = "5 ms""#, r#"step = "2 ms""#);
        let world = world(&text);
        let s = run(&world, 200, |s| {
            let lowest = s.positions().iter().map(|x| x.z).fold(f64::MAX, f64::min);
            assert!(lowest > 0.004 - 1e-9, "{integrator}: {lowest}");
        });
        let highest = s.positions().iter().map(|x| x.z).fold(f64::MIN, f64::max);
        assert!(highest < 0.0042, "{integrator}: {highest}");
        let fastest = (s.velocities().iter())
            .map(|v| v.length())
            .fold(0.0, f64::max);
        assert!(fastest < 0.011, "{integrator}: {fastest}");
        let landing = (2.0 * 9.81 * 0.02_f64).sqrt();
        let after = 0.3 - 0.2 * landing;
        let known = 0.3 * landing / 9.81 + after * after / (2.0 * 0.2 * 9.81);
        let rest = world.model().start();
        let moved = s.positions().iter().zip(rest).map(|(x, rest)| x.x - rest.x);
        let moved = moved.sum::<f64>() / rest.len() as f64;
        assert!(
            (moved / known - 1.0).abs() < 0.05,
            "{integrator}: {moved} not {known}"
        );
    }
}
