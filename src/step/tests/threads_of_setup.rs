//! The world of a scene is the same to the last bit on whatever number of threads it is set up.

use super::world;
use crate::scene::Scene;
use crate::step::World;

/// Two cloths, one above the other, with a body of triangles and one of a formula.
fn scene(more: &str) -> String {
    format!(
        r#"
        [time]
        step = "2 ms"
        end = "2 ms"
        [[cloth]]
        name = "sheet"
        grid = {{ size = "40 cm", vertices = 60 }}
        center = [0, 0, 0.3]
        material = {{ density = "0.15 kg/m2", stretch = "1000 N/m", bending = "1e-5 N m" }}
        [[cloth]]
        name = "upright"
        grid = {{ size = "20 cm", vertices = 33 }}
        center = [0, 0, 0.6]
        rotation = ["80 deg", "10 deg", "5 deg"]
        material = {{ density = "0.15 kg/m2", stretch = "1000 N/m", bending = "1e-5 N m" }}
        [[body]]
        name = "ball"
        center = [0, 0, 0.1]
        shape = "sphere"
        radius = "0.1 m"
        surface = "triangles"
        edge = "1 cm"
        [[body]]
        name = "floor"
        shape = "plane"
        point = [0, 0, -0.5]
        [contact]
        thickness = "8 mm"
        {more}
        "#
    )
}

#[test]
fn a_world_is_the_same_on_any_number_of_threads() {
    for more in [
        "self_collision = true",
        "self_collision = true\ncertify = true",
        "self_collision = false",
    ] {
        let text = scene(more);
        let alone = format!("{:?}", world(&text));
        let scene = Scene::parse(&text, None, &[]).unwrap();
        for threads in [2, 4] {
            let shared = format!("{:?}", World::build_on(&scene, threads).unwrap());
            // Not `assert_eq`, which would print megabytes.
            assert!(shared == alone, "{more}: {threads} threads");
        }
    }
}
