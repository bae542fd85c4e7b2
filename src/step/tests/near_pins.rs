//! Pins that hold what is near a body, which they follow.

use std::path::Path;

use glam::DVec3;

use super::moving::ends_the_same;
use super::{World, run};
use crate::collide::BodyMotion;
use crate::mesh::{cuboid, write_obj};
use crate::scene::Scene;

/// A sheet of 0.3 m by 0.3 m, 13 by 13 vertices, 6 mm over the top of a block of 0.1 m by 0.1 m.
fn text(pins: &str, body: &str) -> String {
    format!(
        "time = {{ step = \"4 ms\", end = \"1 s\" }}\ncontact.thickness = \"4 mm\"\npartition.patches = 4\nsolver.tolerance = 1e-9\n\
         [[cloth]]\nname = \"sheet\"\ngrid = {{ size = 0.3, vertices = 13 }}\npins = [{pins}]\n\
         material = {{ density = 0.15, stretch = 300, bending = 1e-5, damping_stiffness = \"2 ms\" }}\n\
         [[body]]\nname = \"block\"\n{body}\n"
    )
}

const BLOCK: &str =
    "shape = \"box\"\ncenter = [0, 0, -0.056]\nsize = [0.1, 0.1, 0.1]\nedge = 0.05\n";
const NEAR: &str = "{ near = { body = \"block\", within = \"7 mm\" } }";

fn world(folder: &Path, text: &str) -> World {
    let scene = Scene::parse(text, Some(&folder.join("scene.toml")), &[]);
    World::build(&scene.unwrap_or_else(|error| panic!("{error}"))).unwrap()
}

/// The numbers of vertices that are within 7 mm of the block, and over its top.
fn near(world: &World) -> (Vec<usize>, Vec<usize>) {
    let start = world.model().start();
    let gap = |p: DVec3| {
        let beyond = (p - DVec3::Z * -0.056).abs() - DVec3::splat(0.05);
        beyond.max(DVec3::ZERO).length()
    };
    let near = (0..start.len()).filter(|&v| gap(start[v]) <= 0.007);
    let over = (0..start.len()).filter(|&v| start[v].abs().max_element() < 0.04);
    (near.collect(), over.collect())
}

/// Vertices that are near a block which turns and goes away keep their place beside it.
#[test]
fn vertices_near_a_body_go_where_it_takes_them() {
    let motion = "motion = { interpolation = \"smooth\", keyframes = [{ time = 0 }, { time = 0.3, translation = [0.1, 0, 0.05], turn = [\"20 deg\", \
                  0, \"50 deg\"] }] }";
    let world = world(Path::new(""), &text(NEAR, &format!("{BLOCK}{motion}")));
    let (near, over) = near(&world);
    assert_eq!((over.len(), near.len()), (9, 25));
    let held: Vec<usize> = (0..169).filter(|&v| world.pinned()[v]).collect();
    assert_eq!(held, near);
    let end = run(&world, 60, |_| {});
    let motion = BodyMotion::new(&world.scene().bodies[0]);
    let (first, last) = (motion.at(0.0), motion.at(end.time()));
    for v in near {
        let start = world.model().start()[v];
        let known = last.apply(first.undo(start));
        assert!(known.distance(start) > 0.02);
        let off = end.positions()[v].distance(known);
        assert!(off < 1e-12, "{v}: {off}");
    }
}

/// The block as a mesh whose points p go to `affine(p, k)` in the sample k of ten a second.
fn deforming(folder: &Path, affine: impl Fn(DVec3, f64) -> DVec3) -> String {
    for sample in 0..5 {
        let mut mesh = cuboid(DVec3::Z * -0.056, DVec3::splat(0.1), 0.05).unwrap();
        for p in &mut mesh.positions {
            *p = affine(*p, f64::from(sample));
        }
        let mut text = Vec::new();
        write_obj(&mesh, &mut text).unwrap();
        std::fs::write(folder.join(format!("block.{sample:03}.obj")), text).unwrap();
    }
    "shape = \"mesh\"\nsequence = \"block.*.obj\"\nrate = 10\n".to_owned()
}

/// The block is drawn out, sheared and lifted; its top stays level. The points of its top go along,
/// and vertices keep their height over them.
fn drawn_out(p: DVec3, k: f64) -> DVec3 {
    DVec3::new(p.x * (1.0 + 0.04 * k) + 0.03 * k * p.y, p.y, p.z + 0.02 * k)
}

#[test]
fn vertices_near_a_body_that_deforms_keep_their_height_over_a_point_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let body = deforming(folder.path(), drawn_out);
    let world = world(folder.path(), &text(NEAR, &body));
    let (near, over) = near(&world);
    assert!(near.iter().all(|&v| world.pinned()[v]));
    run(&world, 60, |s| {
        for &v in &over {
            // Vertices of the body go straight from sample to sample.
            let known = drawn_out(world.model().start()[v], 10.0 * s.time());
            let off = s.positions()[v].distance(known);
            // Files have nine digits.
            assert!(off < 1e-8, "{v} {}: {off}", s.step());
        }
    });
}

/// A pin that holds from a time until another, beside one that holds from the start.
#[test]
fn vertices_near_bodies_do_not_depend_on_ranks() {
    let folder = tempfile::tempdir().unwrap();
    let body = deforming(folder.path(), drawn_out);
    let turning = "motion = { keyframes = [{ time = 0 }, { time = 0.3, translation = [0.1, 0, 0.05], turn = [0, 0, \"50 deg\"] }] }";
    for body in [body, format!("{BLOCK}{turning}")] {
        let pins = "{ near = { body = \"block\", within = \"7 mm\" }, from = 0.04, until = 0.1 }, { nearest = [-0.15, 0.15, 0] }";
        ends_the_same(&world(folder.path(), &text(pins, &body)), 40, 17);
    }
}

#[test]
fn pins_that_are_near_nothing_are_refused_with_the_nearest_distance() {
    let error = |pins: &str, body: &str| match Scene::parse(&text(pins, body), None, &[]) {
        Ok(scene) => World::build(&scene).unwrap_err().to_string(),
        Err(error) => error.to_string(),
    };
    let told = error(
        "{ near = { body = \"block\", within = \"5.9 mm\" } }",
        BLOCK,
    );
    let known = "pin 0 of cloth `sheet` holds no vertex: none starts within 0.0059 m of body `block`, and the nearest one, vertex ";
    assert!(
        told.starts_with(known) && told.contains("is 0.0060 m away"),
        "{told}"
    );
    for (pin, known) in [
        (
            "near = { body = \"blok\", within = 0.01 }",
            "has near.body = \"blok\", and no body has that name; did you mean `block`",
        ),
        ("near = { body = \"block\" }", "near.within: missing"),
        ("near = { within = 0.01 }", "near.body: missing"),
        (
            "near = { body = \"block\", within = 0 }",
            "near.within: must be greater than 0",
        ),
        (
            "near = { body = \"block\", within = 0.01 }, velocity = [0, 0, 1]",
            "near: vertices near a body follow that body",
        ),
        (
            "near = { body = \"block\", within = 0.01 }, follow = \"block\"",
            "near: vertices near a body follow that body",
        ),
        (
            "near = { body = \"block\", within = 0.01 }, nearest = [0, 0, 0]",
            "wants one of",
        ),
        ("vertices = []", "holds no vertex; give it the numbers"),
    ] {
        let told = error(&format!("{{ {pin} }}"), BLOCK);
        assert!(told.contains(known), "{known} in {told}");
    }
    let scene = Scene::parse(&text(NEAR, BLOCK), None, &[]).unwrap();
    let again = Scene::parse(&scene.echo(), None, &[]).unwrap();
    assert_eq!(scene.cloths[0].pins, again.cloths[0].pins);
}
