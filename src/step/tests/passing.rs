//! Cloth that passes through itself, and not through other cloth.

use glam::DVec3;
use weft_runtime::comm::solo::Solo;
use weft_runtime::comm::threads::launch;

use super::{ScopeOptions, Simulation, World};
use crate::mesh::{TriMesh, write_obj};
use crate::physics::tests::grid;
use crate::scene::Scene;

/// The thickness in m.
const THICK: f64 = 0.004;

/// Two sheets of one cloth over each other, which fall on a floor, and another cloth that falls on
/// them.
fn scene(folder: &std::path::Path, collides: bool) -> World {
    let mut both = TriMesh::default();
    for height in [0.005, 0.015] {
        let mesh = grid(6, 0.2);
        let first = both.positions.len() as u32;
        let moved = mesh
            .positions
            .iter()
            .map(|p| *p + DVec3::new(0.0, 0.0, height));
        both.positions.extend(moved);
        let triangles = mesh.triangles.iter().map(|t| t.map(|v| v + first));
        both.triangles.extend(triangles);
    }
    let mut text = Vec::new();
    write_obj(&both, &mut text).unwrap();
    std::fs::write(folder.join("both.obj"), text).unwrap();
    let text = format!(
        r#"
        time = {{ step = "2 ms", end = "1 s" }}
        [[cloth]]
        mesh = "both.obj"
        self_collision = {collides}
        material = {{ density = 0.15, stretch = 1000, bending = 1e-5 }}
        [[cloth]]
        grid = {{ size = "0.16 m", vertices = 6 }}
        center = [0.1, 0.1, 0.03]
        material = {{ density = 0.15, stretch = 1000, bending = 1e-5 }}
        [[body]]
        name = "floor"
        shape = "plane"
        point = [0, 0, 0]
        normal = [0, 0, 1]
        [partition]
        patches = 4
        [contact]
        thickness = {THICK}
        "#
    );
    let scene = Scene::parse(&text, Some(&folder.join("scene.toml")), &[]).unwrap();
    World::build(&scene).unwrap()
}

/// The mean heights in m of the two sheets and of the other cloth after 0.4 s.
fn heights(world: &World, comm: &mut dyn weft_runtime::comm::Comm) -> ([f64; 3], Vec<DVec3>) {
    let mut simulation = Simulation::new(world, comm, &ScopeOptions::default()).unwrap();
    for _ in 0..200 {
        let report = simulation.advance(comm).unwrap();
        // Nothing comes near that contacts do not hold.
        assert_eq!(report.certified.hits, 0);
    }
    let x = world.original_order(simulation.positions());
    let mean = |of: &[DVec3]| of.iter().map(|p| p.z).sum::<f64>() / of.len() as f64;
    ([mean(&x[..36]), mean(&x[36..72]), mean(&x[72..])], x)
}

#[test]
fn sheets_of_one_cloth_lie_in_each_other_and_other_cloth_lies_on_both() {
    let folder = tempfile::tempdir().unwrap();
    let at = |collides: bool| heights(&scene(folder.path(), collides), &mut Solo::new()).0;
    let near = |found: [f64; 3], layers: [f64; 3]| {
        for (found, layer) in found.into_iter().zip(layers) {
            assert!(
                (found / THICK - layer).abs() < 0.1,
                "{found}: {layer} layers"
            );
        }
    };
    near(at(true), [1.0, 2.0, 3.0]);
    near(at(false), [1.0, 1.0, 2.0]);
}

#[test]
fn cloth_that_passes_through_itself_has_the_same_bits_on_all_ranks() {
    let folder = tempfile::tempdir().unwrap();
    let world = scene(folder.path(), false);
    let expected = heights(&world, &mut Solo::new()).1;
    for ranks in [2, 3] {
        let found = launch(ranks, |comm| heights(&world, comm).1).unwrap();
        assert!(found.into_iter().all(|x| x == expected), "{ranks} ranks");
    }
}
