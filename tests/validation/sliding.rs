//! Layers that slide on each other without friction keep their speed, and layers that lie on a
//! slope with enough friction stay.
//!
//! Nothing pulls along the way of a sheet that slides on another one, flat or bent across the way:
//! its momentum along the way stays, whatever the meshes of the two. On a slope of angle θ a sheet
//! stays where μ ≥ tan θ, and so does a pile. Where not, it slides with g (sin θ - μ cos θ).
//! Sources: Newton's first law; Coulomb's law.

use glam::DVec3;
use weft_runtime::ScopeOptions;
use weft_runtime::comm::solo::Solo;
use weftwork::scene::Scene;
use weftwork::step::{Simulation, World};

/// The height of the lower sheet at a distance from its middle line, in m.
fn height(y: f64, curvature: f64) -> f64 {
    -0.5 * curvature * y * y
}

/// A sheet of cells of 2 cm, whose middle is at `center`, turned by an angle within itself, as an
/// OBJ file.
fn sheet([columns, rows]: [usize; 2], center: DVec3, turn: f64, curvature: f64) -> String {
    let cell = 0.02;
    let mut text = String::new();
    for row in 0..rows {
        for column in 0..columns {
            let u = cell * (column as f64 - 0.5 * (columns - 1) as f64);
            let v = cell * (row as f64 - 0.5 * (rows - 1) as f64);
            let (sine, cosine) = turn.sin_cos();
            let (x, y) = (u * cosine - v * sine, u * sine + v * cosine);
            let at = DVec3::new(center.x + x, center.y + y, center.z + height(y, curvature));
            text += &format!("v {:?} {:?} {:?}\n", at.x, at.y, at.z);
        }
    }
    for row in 0..rows - 1 {
        for column in 0..columns - 1 {
            let a = row * columns + column + 1;
            let (b, c, d) = (a + 1, a + columns, a + columns + 1);
            text += &format!("f {a} {b} {d}\nf {a} {d} {c}\n");
        }
    }
    text
}

/// The share of its momentum along the way that a sheet loses in 0.15 s at 1 m/s.
fn lost(curvature: f64) -> f64 {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: String| std::fs::write(folder.path().join(name), text).unwrap();
    write("table.obj", sheet([25, 17], DVec3::ZERO, 0.0, curvature));
    // A bent sheet 4 mm above another is nearer than that where both slope.
    let above = DVec3::new(-0.1, 0.0, 0.0041 + curvature * 1e-4);
    write("napkin.obj", sheet([9, 9], above, 0.3, curvature));
    let material = "material = { density = 0.15, stretch = 1000, bending = 1e-5 }";
    let text = format!(
        r#"
        time = {{ step = "2 ms", end = "1 s" }}
        [[cloth]]
        mesh = "table.obj"
        pins = [{{ min = [-9, -9, -9], max = [9, 9, 9] }}]
        {material}
        [[cloth]]
        mesh = "napkin.obj"
        velocity = [1, 0, 0]
        {material}
        [contact]
        thickness = "4 mm"
        self_friction = 0
        "#
    );
    let scene = Scene::parse(&text, Some(&folder.path().join("scene.toml")), &[]).unwrap();
    let world = World::build(&scene).unwrap();
    let mut solo = Solo::new();
    let mut simulation = Simulation::new(&world, &solo, &ScopeOptions::default()).unwrap();
    let momentum = |simulation: &Simulation<'_>| -> f64 {
        let moved = world.model().masses().iter().zip(simulation.velocities());
        moved.map(|(mass, v)| mass * v.x).sum()
    };
    let before = momentum(&simulation);
    for _ in 0..75 {
        simulation.advance(&mut solo).unwrap();
    }
    1.0 - momentum(&simulation) / before
}

#[test]
fn layers_without_friction_lose_no_speed_as_they_slide() {
    let flat = lost(0.0);
    assert!(flat.abs() < 2e-3, "{flat}");
    let bent = lost(2.0);
    assert!(bent.abs() < 1e-2, "{bent}");
}

/// The distances in m that the sheets of a pile slide down a slope of 20 degrees in 0.5 s, from
/// below.
fn slid(sheets: usize, friction: f64) -> Vec<f64> {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: String| std::fs::write(folder.path().join(name), text).unwrap();
    let material = "material = { density = 0.15, stretch = 1000, bending = 1e-5 }";
    let angle = 20f64.to_radians();
    let gravity = [9.81 * angle.sin(), 0.0, -9.81 * angle.cos()];
    write("slope.obj", sheet([61, 17], DVec3::ZERO, 0.0, 0.0));
    let mut text = format!(
        "time = {{ step = \"2 ms\", end = \"1 s\" }}\ngravity = {gravity:?}\n\
         contact = {{ thickness = \"4 mm\", self_friction = {friction} }}\n\
         [[cloth]]\nmesh = \"slope.obj\"\npins = [{{ min = [-9, -9, -9], max = [9, 9, 9] }}]\n\
         {material}\n"
    );
    for k in 0..sheets {
        let at = DVec3::new(-0.4, 0.002 * k as f64, 0.004 * (k + 1) as f64);
        write(
            &format!("{k}.obj"),
            sheet([7, 7], at, 0.3 + 0.2 * k as f64, 0.0),
        );
        text += &format!("[[cloth]]\nmesh = \"{k}.obj\"\n{material}\n");
    }
    let scene = Scene::parse(&text, Some(&folder.path().join("scene.toml")), &[]).unwrap();
    let world = World::build(&scene).unwrap();
    let mut solo = Solo::new();
    let mut simulation = Simulation::new(&world, &solo, &ScopeOptions::default()).unwrap();
    for _ in 0..250 {
        simulation.advance(&mut solo).unwrap();
    }
    let [before, after] =
        [world.model().start(), simulation.positions()].map(|x| world.original_order(x));
    let way = |k: usize| {
        let vertices = 61 * 17 + 49 * k..61 * 17 + 49 * (k + 1);
        let ways = vertices.map(|v| after[v].x - before[v].x);
        ways.sum::<f64>() / 49.0
    };
    (0..sheets).map(way).collect()
}

#[test]
fn layers_on_a_slope_stay_where_friction_holds_them_and_else_slide() {
    let one = slid(1, 0.6)[0];
    assert!(one.abs() < 1e-5, "{one}");
    let pile = slid(4, 0.6);
    assert!(pile.iter().all(|way| way.abs() < 2e-3), "{pile:?}");
    let angle = 20f64.to_radians();
    let expected = 0.5 * 9.81 * (angle.sin() - 0.1 * angle.cos()) * 0.25;
    let slides = slid(1, 0.1)[0];
    assert!(
        (slides / expected - 1.0).abs() < 0.02,
        "{slides} {expected}"
    );
}
