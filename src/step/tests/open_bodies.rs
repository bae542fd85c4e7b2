//! Bodies of open meshes: surfaces with two sides, and no inside.

use std::path::Path;

use glam::DVec3;

use super::moving::ends_the_same;
use super::{Simulation, World, run};
use crate::mesh::{TriMesh, grid, icosphere, write_obj};
use crate::scene::Scene;

fn write(folder: &Path, name: &str, mesh: &TriMesh) {
    let mut text = Vec::new();
    write_obj(mesh, &mut text).unwrap();
    std::fs::write(folder.join(name), text).unwrap();
}

/// A flat sheet of 0.4 m by 0.4 m in z = 0.
fn sheet(vertices: usize) -> TriMesh {
    grid([0.4; 2], [vertices; 2], DVec3::ZERO, DVec3::ZERO).unwrap()
}

/// A cloth of 0.2 m by 0.2 m, and a body of files in a folder.
fn world(folder: &Path, above: &str, cloth: &str, body: &str) -> World {
    let text = format!(
        "time = {{ step = \"4 ms\", end = \"2 s\" }}\ncontact.thickness = \"4 mm\"\npartition.patches = 4\n{above}\n[[cloth]]\n\
         grid = {{ size = 0.2, vertices = 11 }}\n{cloth}\n\
         material = {{ density = 0.15, stretch = 300, bending = 1e-5, damping_stiffness = \"2 ms\" }}\n\
         [[body]]\nname = \"leaf\"\nshape = \"mesh\"\nfriction = 0.6\n{body}\n"
    );
    let scene = Scene::parse(&text, Some(&folder.join("x.toml")), &[]);
    World::build(&scene.unwrap_or_else(|error| panic!("{error}"))).unwrap()
}

fn heights(s: &Simulation<'_>) -> [f64; 2] {
    let z = s.positions().iter().map(|x| x.z);
    z.fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], z| {
        [low.min(z), high.max(z)]
    })
}

/// Cloth lies at its distance on an open sheet, on the side that it comes from: gravity presses it
/// on the front from above, and on the back from below.
#[test]
fn cloth_rests_on_either_side_of_an_open_sheet() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "leaf.obj", &sheet(6));
    for side in [1.0, -1.0] {
        for certify in [true, false] {
            let above = format!(
                "gravity = [0, 0, {:?}]\ncontact.certify = {certify}",
                -9.81 * side
            );
            let cloth = format!("center = [0.01, 0, {:?}]", 0.03 * side);
            let world = world(folder.path(), &above, &cloth, "mesh = \"leaf.obj\"");
            let s = run(&world, 150, |s| {
                assert_eq!(world.crossings_with_bodies(s.positions(), s.time()), 0);
                assert!(s.positions().iter().all(|x| x.z * side > 0.0));
            });
            for x in s.positions() {
                assert!((x.z * side - 0.004).abs() < 2e-4, "{side} {certify}: {x}");
            }
            let fastest = s
                .velocities()
                .iter()
                .map(|v| v.length())
                .fold(0.0, f64::max);
            assert!(fastest < 1e-3, "{fastest}");
        }
    }
}

/// Cloth that would be far behind the sheet after a step stays where it came from, flat and edge
/// first.
#[test]
fn fast_cloth_does_not_pass_an_open_sheet() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "leaf.obj", &sheet(6));
    for side in [1.0, -1.0] {
        for rotation in [
            "[0, 0, 0]",
            "[0, \"85 deg\", 0]",
            "[\"30 deg\", \"20 deg\", 0]",
        ] {
            let cloth = format!(
                "center = [0.02, 0, {:?}]\nrotation = {rotation}\nvelocity = [3, 0, {:?}]",
                0.13 * side,
                -20.0 * side
            );
            let world = world(
                folder.path(),
                "gravity = [0, 0, 0]",
                &cloth,
                "mesh = \"leaf.obj\"",
            );
            let mut nearest = f64::INFINITY;
            run(&world, 25, |s| {
                assert_eq!(world.crossings_with_bodies(s.positions(), s.time()), 0);
                let over = s
                    .positions()
                    .iter()
                    .filter(|x| x.x.abs().max(x.y.abs()) < 0.2);
                let heights = over.map(|x| x.z * side);
                nearest = nearest.min(heights.fold(f64::INFINITY, f64::min));
            });
            assert!(nearest > 0.0 && nearest < 0.01, "{rotation}: {nearest}");
        }
    }
}

/// Cloth hangs over the border of a sheet, which holds it up there, and touches the back of
/// nothing.
#[test]
fn cloth_hangs_over_the_border_of_an_open_sheet() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "leaf.obj", &sheet(6));
    // Its middle lies on the border.
    let cloth = "center = [0.17, 0, 0.01]\nfriction = 1";
    let world = world(folder.path(), "", cloth, "mesh = \"leaf.obj\"");
    let s = run(&world, 200, |s| {
        assert_eq!(world.crossings_with_bodies(s.positions(), s.time()), 0);
    });
    for x in s.positions() {
        if x.x < 0.19 {
            assert!(x.z > 0.0 && x.z < 0.02, "{x}");
        }
        // Nothing comes nearer to the border than the distance, or hardly.
        let (aside, over) = ((x.x - 0.2).max(0.0), x.z);
        if x.y.abs() < 0.19 && x.x > 0.19 {
            assert!(aside.hypot(over) > 0.0035, "{x}");
        }
    }
    let [low, _] = heights(&s);
    assert!(low < -0.04, "{low}");
}

/// A sheet that is carried by a motion, or deforms by samples, takes cloth along on either side.
#[test]
fn open_sheets_that_move_and_deform_push_cloth_from_both_sides() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "leaf.obj", &sheet(6));
    // A wave that rises and sinks by 0.1 m.
    for k in 0..11_u32 {
        let mut mesh = sheet(9);
        let phase = f64::from(k) * 0.1 * std::f64::consts::TAU;
        for p in &mut mesh.positions {
            p.z = 0.1 * phase.sin() * (1.0 + 2.0 * p.x);
        }
        write(folder.path(), &format!("wave.{k:02}.obj"), &mesh);
    }
    let moving = "mesh = \"leaf.obj\"\nmotion = { keyframes = [{ time = 0 }, { time = 0.1, translation = [0, 0, 0.1], rotation = [0, \
                  0.4, 0] }, { time = 0.3, translation = [0, 0, -0.1], rotation = [0, -0.4, 0] }, { time = 0.4 }] }";
    let deforming = "sequence = \"wave.*.obj\"\nrate = 25";
    for body in [moving, deforming] {
        for side in [1.0, -1.0] {
            let cloth = format!("center = [0, 0, {:?}]", 0.006 * side);
            let world = world(folder.path(), "gravity = [0, 0, 0]", &cloth, body);
            assert!(
                world
                    .warnings()
                    .join("\n")
                    .contains("a surface with two sides")
            );
            let mut farthest = 0.0_f64;
            run(&world, 100, |s| {
                assert_eq!(world.crossings_with_bodies(s.positions(), s.time()), 0);
                let [low, high] = heights(s);
                farthest = farthest.max(if side > 0.0 { low } else { -high });
            });
            // It was pushed, and not passed.
            assert!(farthest > 0.05, "{side}: {farthest}");
        }
    }
}

#[test]
fn ranks_and_restarts_do_not_matter_to_open_bodies() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "leaf.obj", &sheet(6));
    let cloth = "center = [0.15, 0.05, 0.04]\nrotation = [0.2, 0.1, 0]";
    let world = world(folder.path(), "", cloth, "mesh = \"leaf.obj\"");
    assert!(ends_the_same(&world, 60, 37) > 0);
}

/// A line tells the defects of each mesh; closed parts keep their inside.
#[test]
fn defects_are_told_and_closed_bodies_keep_their_inside() {
    let folder = tempfile::tempdir().unwrap();
    let mut inward = icosphere(DVec3::new(0.0, 0.0, -0.2), 0.1, 0.03).unwrap();
    inward.triangles.iter_mut().for_each(|t| t.swap(0, 1));
    let twice = inward.triangles[7];
    inward.triangles.push(twice);
    write(folder.path(), "ball.obj", &inward);
    let closed = world(folder.path(), "", "", "mesh = \"ball.obj\"");
    assert_eq!(
        closed.warnings(),
        [
            "the mesh of body `leaf` has 1 triangle that is there twice, which counts once, triangles that face inwards, all of which are \
          turned: it is closed, and has an inside"
        ]
    );
    assert!(closed.depth(DVec3::new(0.0, 0.0, -0.2), 0.0) > 0.09);
    let sizes = closed.sizes().pop().unwrap().to_string();
    assert!(sizes.contains("closed"), "{sizes}");
    let s = run(&closed, 60, |_| {});
    assert!(
        s.positions()
            .iter()
            .all(|x| closed.depth(*x, s.time()) < 0.0)
    );

    // With a hole it has no inside, and cloth may start there.
    let mut open = inward.clone();
    open.triangles.truncate(open.triangles.len() - 3);
    write(folder.path(), "ball.obj", &open);
    let open = world(
        folder.path(),
        "",
        "center = [0, 0, -0.2]",
        "mesh = \"ball.obj\"\nscale = 3\ntranslation = [0, 0, 0.4]",
    );
    let told = open.warnings().join("\n");
    assert!(
        told.contains("open edges: it is a surface with two sides, and has no inside"),
        "{told}"
    );
    let sizes = open.sizes().pop().unwrap().to_string();
    assert!(sizes.contains("1 border"), "{sizes}");
    // It comes to lie within, as in a bowl.
    let s = run(&open, 150, |s| {
        assert_eq!(open.crossings_with_bodies(s.positions(), s.time()), 0);
    });
    let middle = DVec3::new(0.0, 0.0, -0.2);
    assert!(s.positions().iter().all(|x| x.distance(middle) < 0.3));
}
