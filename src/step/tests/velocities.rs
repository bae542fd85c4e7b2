//! Cloth whose vertices start with velocities of their own, from its file.

use std::fmt::Write as _;

use glam::DVec3;

use super::moving::ends_the_same;
use super::{World, momentum, run};
use crate::mesh::grid;
use crate::scene::Scene;

/// Vertices along a side of the sheet.
const SIDE: usize = 9;

/// A sheet of 30 by 30 units round the origin, with a velocity at each vertex.
fn ply(velocity: impl Fn(DVec3) -> DVec3) -> String {
    let mesh = grid([30.0; 2], [SIDE; 2], DVec3::ZERO, DVec3::ZERO).unwrap();
    let mut text = format!(
        "ply\nformat ascii 1.0\nelement vertex {}\nproperty double x\nproperty double vz\nproperty double y\nproperty double z\n\
         property double vx\nproperty double vy\nelement face {}\nproperty list uchar int vertex_indices\nend_header\n",
        mesh.positions.len(),
        mesh.triangles.len()
    );
    for &p in &mesh.positions {
        let v = velocity(p);
        writeln!(text, "{} {} {} {} {} {}", p.x, v.z, p.y, p.z, v.x, v.y).unwrap();
    }
    for [a, b, c] in &mesh.triangles {
        writeln!(text, "3 {a} {b} {c}").unwrap();
    }
    text
}

/// The world of a scene with this file, in cm, as its cloth, or the reason why there is none.
fn built(file: &str, ending: &str, cloth: &str, above: &str) -> Result<World, String> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(format!("a.{ending}")), file).unwrap();
    let text = format!(
        "time = {{ step = \"2 ms\", end = \"1 s\" }}\ngravity = [0, 0, 0]\nair.density = 0\npartition.patches = 4\n{above}\n[[cloth]]\n\
         mesh = \"a.{ending}\"\nunits = \"cm\"\n{cloth}\nmaterial = {{ density = 0.15, stretch = 1000, bending = 1e-5, \
         damping_stiffness = 0 }}\n"
    );
    let scene = Scene::parse(&text, Some(&folder.path().join("x.toml")), &[]).unwrap();
    World::build(&scene).map_err(|error| error.to_string())
}

/// A velocity of a vertex is a vector of the file in its units a second: it is mirrored, stood
/// upright, scaled and turned as the mesh is, and not moved.
#[test]
fn velocities_of_a_file_are_placed_as_its_mesh_is() {
    let field = |p: DVec3| DVec3::new(2.0 * p.y + 1.0, 3.0 * p.x, p.x - p.y);
    let keys = "velocities = true\nvelocity = [0, 0, 5]\nscale = 2\nmirror = \"x\"\nup = \"y\"\nrotation = [0, 0, \"90 deg\"]\n\
                translation = [1, 2, 3]";
    let world = built(&ply(field), "ply", keys, "").unwrap();
    let starts = world.original_order(&world.start_velocities());
    let own = grid([30.0; 2], [SIDE; 2], DVec3::ZERO, DVec3::ZERO).unwrap();
    for (p, v) in own.positions.iter().zip(starts) {
        let f = field(*p) * 0.02;
        // (x, y, z) to (-x, y, z), to (-x, -z, y), to (z, -x, y).
        let known = DVec3::new(f.z, -f.x, f.y + 5.0);
        assert!(v.distance(known) < 1e-14, "{v} {known}");
    }
    assert_eq!(world.warnings(), [""; 0]);
}

/// A free sheet that starts to turn and to fly has the momentum and the energy of its file's
/// velocities, and keeps its momenta.
#[test]
fn a_sheet_that_starts_turning_keeps_its_momenta() {
    let (spin, flies) = (DVec3::new(0.0, 4.0, 6.0), DVec3::new(0.5, 0.0, -0.25));
    let file = ply(|p| spin.cross(p) + flies * 100.0);
    let above = "solver = { integrator = \"bdf2\", newton = 8, tolerance = 1e-9 }";
    let world = built(&file, "ply", "velocities = true", above).unwrap();
    let side = 0.3_f64;
    let mass = 0.15 * side * side;
    // Lumped masses have a little more inertia than the sheet; their own sum is exact.
    let at_start = world.model().start().iter().zip(world.model().masses());
    let turns: DVec3 = at_start.map(|(x, m)| x.cross(spin.cross(*x)) * *m).sum();
    let step = side / (SIDE - 1) as f64;
    let about_z = mass * side * side / 6.0;
    assert!((turns.z / 6.0 / about_z - 1.0).abs() < 2.0 * (step / side).powi(2));
    run(&world, 100, |s| {
        let (p, l) = momentum(&world, s);
        let moved = flies * s.time();
        assert!(p.distance(flies * mass) < 1e-12, "{p}");
        // About its middle, which flies on.
        let about = l - moved.cross(p);
        assert!(
            about.distance(turns) < 0.01 * turns.length(),
            "{about} {turns}"
        );
    });
}

#[test]
fn ranks_and_restarts_do_not_matter_to_velocities_of_a_file() {
    let file = ply(|p| DVec3::new(0.0, 0.0, 10.0 * p.x - 0.3 * p.y * p.y));
    let pins = "velocities = true\npins = [{ nearest = [0.15, 0.15, 0] }]";
    let world = built(&file, "ply", pins, "").unwrap();
    // Vertices that a pin holds stay.
    let velocities = world.start_velocities();
    let held = world.pinned().iter().zip(&velocities);
    let mut held = held.filter(|(is_held, _)| **is_held);
    assert_eq!(held.next().unwrap().1, &DVec3::ZERO);
    ends_the_same(&world, 40, 23);
}

#[test]
fn velocities_that_are_not_there_or_no_numbers_are_refused_and_unused_ones_are_told() {
    let good = ply(|p| p);
    let told = built(&good, "ply", "", "").unwrap().warnings().join("\n");
    assert!(
        told.contains("`cloth0` starts without the velocities vx, vy, vz"),
        "{told}"
    );
    let quiet = built(&good, "ply", "velocities = false", "").unwrap();
    assert_eq!(quiet.warnings(), [""; 0]);
    assert!(quiet.start_velocities().iter().all(|v| *v == DVec3::ZERO));

    let refused =
        |file: &str, ending: &str| built(file, ending, "velocities = true", "").unwrap_err();
    let without = good.replace("property double vy", "property double wy");
    let error = refused(&without, "ply");
    assert!(
        error.contains("a.ply") && error.contains("no number `vy`"),
        "{error}"
    );
    // There is no warning without velocities.
    let quiet = built(&without, "ply", "", "").unwrap();
    assert_eq!(quiet.warnings(), [""; 0]);
    let mut lines: Vec<String> = good.lines().map(str::to_owned).collect();
    for (number, word) in [
        ("nan", "no finite number"),
        ("-inf", "no finite number"),
        ("x", "no number"),
    ] {
        // The second vertex: its numbers begin with x and vz.
        let line = format!("-11.25 {number} -15 0 1 1");
        let before = std::mem::replace(&mut lines[13], line);
        let error = refused(&lines.join("\n"), "ply");
        let expected = format!("a.ply:14: vertex 1: vz: `{number}` is {word}");
        assert!(error.contains(&expected), "{error}");
        lines[13] = before;
    }
    let error = refused(&good.replace("-11.25 0 ", "-11.25 1e300 "), "ply");
    assert!(error.contains("the velocity of vertex 1 "), "{error}");
    let error = refused("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n", "obj");
    assert!(error.contains("only .ply files have them"), "{error}");
}
