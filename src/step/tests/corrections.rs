//! Tests of corrections on whole scenes: cloth that falls on cloth on a floor, that bodies push
//! together, that is thrown on its pins.

use weft_runtime::ScopeOptions;
use weft_runtime::comm::solo::Solo;

use super::{Simulation, World};
use crate::collide::audit::crossings;
use crate::scene::Scene;

/// The worst of all steps of a scene: speed in m/s, principal strain; and the crossing
/// pairs at the end.
fn worst(text: &str, steps: u32) -> (f64, f64, usize) {
    let world = World::build(&Scene::parse(text, None, &[]).unwrap()).unwrap();
    let mut comm = Solo::new();
    let mut simulation = Simulation::new(&world, &comm, &ScopeOptions::default()).unwrap();
    let (mut speed, mut strain) = (0.0_f64, 0.0_f64);
    for _ in 0..steps {
        simulation.advance(&mut comm).unwrap();
        let speeds = simulation.velocities().iter().map(|v| v.length());
        speed = speeds.fold(speed, f64::max);
        strain = strain.max(simulation.strains().largest);
    }
    let triangles = world.model().triangles();
    let crossing = crossings(simulation.positions(), triangles).len();
    (speed, strain, crossing)
}

const NAPKIN: &str = r#"
    material = { density = 0.15, stretch = 1000, poisson = 0.3, bending = 1e-4, damping_stiffness = "2 ms", strain_limit = 0.06 }
"#;
const FLOOR: &str = r#"
    [[body]]
    shape = "plane"
    extent = 1
    surface = "triangles"
    friction = 0.3
"#;

/// It falls further in a step than a layer is thick: what is foreseen is that it comes to the
/// floor.
#[test]
fn a_layer_that_falls_on_one_on_the_floor_lies_down_on_it() {
    for height in [0.06, 0.11] {
        let text = format!(
            r#"
            time = {{ step = "5 ms", end = "1 s" }}
            contact = {{ thickness = "4 mm" }}
            [[cloth]]
            grid = {{ size = 0.12, vertices = 12 }}
            center = [0, 0, 0.01]
            {NAPKIN}
            [[cloth]]
            grid = {{ size = 0.12, vertices = 12 }}
            center = [0.003, 0.002, {height}]
            rotation = [0, 0, "7 deg"]
            {NAPKIN}
            {FLOOR}
            "#
        );
        let (speed, strain, crossing) = worst(&text, 50);
        // The bound is the speed of the fall, and a step of gravity.
        let fall = f64::sqrt(2.0 * 9.81 * height);
        assert!(speed < 1.05 * fall, "{speed} of {fall}");
        assert!(strain < 0.065 && crossing == 0, "{strain} {crossing}");
    }
}

/// A flat sheet between two walls has to rise from the floor that it lies on.
#[test]
fn a_sheet_that_walls_push_together_rises_from_the_floor() {
    let wall = |side: f64| {
        format!(
            r#"
            [[body]]
            shape = "box"
            center = [{}, 0, 0.15]
            size = [0.1, 0.5, 0.298]
            velocity = [{}, 0, 0]
            surface = "triangles"
            friction = 0.3
            "#,
            0.155 * side,
            -0.5 * side
        )
    };
    let text = format!(
        r#"
        time = {{ step = "2 ms", end = "1 s" }}
        contact = {{ thickness = "4 mm" }}
        [[cloth]]
        grid = {{ size = 0.2, vertices = 20 }}
        center = [0, 0, 0.006]
        {NAPKIN}
        {FLOOR}
        {}{}
        "#,
        wall(1.0),
        wall(-1.0)
    );
    let (speed, strain, crossing) = worst(&text, 70);
    assert!(speed < 6.0, "{speed}");
    assert!(strain < 0.07 && crossing == 0, "{strain} {crossing}");
}

/// No vertex of the sheet is inside the post, and no corner of the post on the sheet.
#[test]
fn a_sheet_with_a_post_through_it_is_refused() {
    let text = r#"
        [[cloth]]
        grid = { size = 0.3, vertices = 5 }
        material = { density = 0.15, stretch = 1000, bending = 1e-5 }
        [[body]]
        name = "post"
        shape = "box"
        center = [0.05, 0.03, 0.01]
        size = [0.01, 0.01, 0.2]
        surface = "triangles"
    "#;
    let refused = World::build(&Scene::parse(text, None, &[]).unwrap()).err();
    let message = refused.map(|error| error.to_string()).unwrap_or_default();
    assert!(
        message.contains("across the surface of body `post`"),
        "{message}"
    );
}

/// A sheet on two pins, thrown so that edges would stretch by half in a step.
fn thrown(limits: &str) -> String {
    format!(
        r#"
        time = {{ step = "5 ms", end = "1 s" }}
        [[cloth]]
        grid = {{ size = 0.5, vertices = 20 }}
        velocity = [0, 0, -3]
        pins = [{{ nearest = [-0.25, 0.25, 0] }}, {{ nearest = [0.25, 0.25, 0] }}]
        material = {{ density = 0.15, stretch = 100, bending = 1e-5, strain_limit = 5 }}
        {limits}
        "#
    )
}

#[test]
fn without_a_strain_limit_cloth_moves_as_with_one_that_it_never_reaches() {
    let ends = ["1000000", "\"none\"", "0.1"].map(|limit| {
        let text = thrown("").replace("strain_limit = 5", &format!("strain_limit = {limit}"));
        let world = World::build(&Scene::parse(&text, None, &[]).unwrap()).unwrap();
        let simulation = super::run(&world, 40, |_| {});
        simulation.positions().to_vec()
    });
    assert!(ends[0] == ends[1]);
    assert!(ends[0] != ends[2]);
}

#[test]
fn a_sheet_that_is_thrown_on_its_pins_keeps_its_strain_limit() {
    let text = thrown("").replace("strain_limit = 5", "strain_limit = 0.2");
    let text = format!("contact.certify = false\n{text}");
    let (_, strain, _) = worst(&text, 200);
    assert!(strain < 0.21, "{strain}");
    // That it does not cross itself stretches it for a while.
    let text = thrown("").replace("strain_limit = 5", "strain_limit = 0.2");
    let (_, strain, crossing) = worst(&text, 200);
    assert!(strain < 0.3 && crossing == 0, "{strain} {crossing}");
}

/// Edges turn, and get longer by that too.
#[test]
fn edges_of_a_thrown_sheet_change_by_no_more_than_they_may() {
    for limit in [0.05, 0.01] {
        let text = thrown(&format!("[contact]\n strain_change = {limit}"));
        let world = World::build(&Scene::parse(&text, None, &[]).unwrap()).unwrap();
        let mut comm = Solo::new();
        let mut simulation = Simulation::new(&world, &comm, &ScopeOptions::default()).unwrap();
        let mut most = 0.0_f64;
        for _ in 0..100 {
            let before = simulation.positions().to_vec();
            simulation.advance(&mut comm).unwrap();
            let x = simulation.positions();
            for [a, b, c] in world.model().triangles().iter().copied() {
                for [i, j] in [[a, b], [b, c], [c, a]].map(|edge| edge.map(|v| v as usize)) {
                    let (from, to) = (before[i].distance(before[j]), x[i].distance(x[j]));
                    most = most.max((to / from - 1.0).abs());
                }
            }
        }
        assert!(most < 1.2 * limit, "{most} of {limit}");
    }
}
