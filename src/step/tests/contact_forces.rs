//! The forces that contacts exert on vertices, as frames have them.

use super::*;

/// Sheets of 0.15 kg/m² above each other on a floor, at these heights.
fn sheets(heights: &[f64], more: &str) -> World {
    let sheet = |(number, height): (usize, &f64)| {
        format!(
            "[[cloth]]\nname = \"sheet{number}\"\ngrid = {{ size = 0.2, vertices = {} }}\n\
             center = [0.00{number}, 0.002, {height}]\n\
             material = {{ density = 0.15, stretch = 100, bending = 1e-5, damping_stiffness = \"5 ms\" }}\n",
            9 + number
        )
    };
    let sheets: String = heights.iter().enumerate().map(sheet).collect();
    world(&format!(
        "time = {{ step = \"2 ms\", end = 1 }}\npartition.patches = 8\n{more}\n{sheets}"
    ))
}

const FLOOR: &str = "solver.tolerance = 1e-9\n[contact]\nthickness = \"4 mm\"\nself_friction = 0.2\n\
                     [[body]]\nname = \"floor\"\nshape = \"plane\"\nfriction = 0.5\n";

/// The forces after some steps, in N, in the order of the scene's vertices.
fn forces(world: &World, steps: u32, comm: &mut dyn Comm) -> Option<Vec<DVec3>> {
    let mut simulation = Simulation::new(world, comm, &ScopeOptions::default()).unwrap();
    for _ in 0..steps {
        simulation.advance(comm).unwrap();
    }
    let forces = simulation.gather_contact_forces(comm).unwrap();
    forces.map(|forces| world.original_order(&forces))
}

#[test]
fn a_floor_bears_the_weight_of_a_sheet_and_each_layer_its_own() {
    const STEPS: u32 = 300;
    let world = sheets(&[0.0041, 0.0083], FLOOR);
    let weight = 0.15 * 0.2 * 0.2 * 9.81;
    // The mean of some steps: contacts between layers act in turns.
    let mut comm = Solo::new();
    let mut simulation = Simulation::new(&world, &comm, &ScopeOptions::default()).unwrap();
    let mut sums = [DVec3::ZERO; 2];
    for step in 0..2 * STEPS {
        simulation.advance(&mut comm).unwrap();
        if step >= STEPS {
            let forces = simulation
                .gather_contact_forces(&mut comm)
                .unwrap()
                .unwrap();
            let of = world.model().cloth_of_vertex();
            for (force, cloth) in forces.iter().zip(of) {
                sums[*cloth as usize] += *force / f64::from(STEPS);
            }
        }
    }
    for force in sums {
        assert!(
            (force.z - weight).abs() < 0.01 * weight,
            "{sums:?} {weight}"
        );
        assert!(force.truncate().length() < 0.01 * weight, "{sums:?}");
    }
}

#[test]
fn limits_of_strain_and_pins_are_no_contacts() {
    let hanging = "[[cloth]]\ngrid = { size = 0.2, vertices = 9 }\ncenter = [0, 0, 1]\n\
                   material = { density = 0.15, stretch = 5, bending = 1e-5, strain_limit = 0.05 }\n\
                   pins = [{ corner = \"top-left\" }]\n";
    let hanging = hanging.replace("corner = \"top-left\"", "nearest = [-0.1, -0.1, 1]");
    let world = world(&format!("time = {{ step = \"2 ms\", end = 1 }}\n{hanging}"));
    let mut comm = Solo::new();
    let mut simulation = Simulation::new(&world, &comm, &ScopeOptions::default()).unwrap();
    let mut limited = 0;
    for _ in 0..60 {
        limited += simulation.advance(&mut comm).unwrap().strain_limited;
        let forces = simulation
            .gather_contact_forces(&mut comm)
            .unwrap()
            .unwrap();
        assert!(forces.iter().all(|force| *force == DVec3::ZERO));
    }
    assert!(limited > 0, "no limit of strain was reached");
}

#[test]
fn forces_do_not_depend_on_ranks() {
    let world = sheets(&[0.0041, 0.0078, 0.0125], FLOOR);
    let expected = forces(&world, 40, &mut Solo::new()).unwrap();
    // Only layers bear the one on top.
    let top = &expected[expected.len() - 11 * 11..];
    assert!(top.iter().any(|force| force.z > 0.0), "nothing bears it");
    for ranks in [2, 3, 5] {
        let found = launch(ranks, |comm| forces(&world, 40, comm)).unwrap();
        assert!(found[0].as_ref() == Some(&expected), "{ranks} ranks");
        assert!(found[1..].iter().all(Option::is_none));
    }
}
