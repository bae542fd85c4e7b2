//! Wind by height and place.

use super::moving::ends_the_same;
use super::{World, run, world};
use crate::scene::Scene;

/// Small sheets that stand across the x axis at some places, and the air.
fn sheets(air: &str, places: &[[f64; 3]]) -> String {
    let mut text = format!(
        "gravity = [0, 0, 0]\ntime = {{ step = \"0.5 ms\", end = \"1 s\" }}\ncontact.self_collision = false\nair = {{ density = 1.2, {air} }}\n"
    );
    for [x, y, z] in places {
        text += &format!(
            "[[cloth]]\ngrid = {{ size = 0.02, vertices = 3 }}\nrotation = [0, \"90 deg\", 0]\ncenter = [{x:?}, {y:?}, {z:?}]\n\
             material = {{ density = 0.15, stretch = 500, bending = 1e-4, drag_normal = 1 }}\n"
        );
    }
    text
}

/// The mean velocity along x of each cloth.
fn speeds(world: &World, velocities: &[glam::DVec3]) -> Vec<f64> {
    let mut sums = vec![[0.0; 2]; world.scene().cloths.len()];
    let model = world.model();
    let vertices = model.masses().iter().zip(model.cloth_of_vertex());
    for ((mass, cloth), v) in vertices.zip(velocities) {
        let [momentum, all] = &mut sums[*cloth as usize];
        *momentum += mass * v.x;
        *all += mass;
    }
    sums.iter().map(|[momentum, all]| momentum / all).collect()
}

/// A sheet that wind W blows at, with a drag coefficient of 1, reaches the speed
/// W − W/(1 + W ρ t/2ω). Here ω is its mass per area. The formula holds until the sheet turns in
/// wind that differs between its upper and its lower border. W is 0 up to the ground, and grows to
/// 2 m/s at 1 m and 6 m/s at 3 m.
#[test]
fn sheets_are_blown_by_the_wind_at_their_height() {
    let text = sheets(
        "wind = { z = [0, \"1 m\", \"3 m\"], velocity = [[0, 0, 0], [\"2 m/s\", 0, 0], [6, 0, 0]] }",
        &[
            [0.0, 0.0, -1.0],
            [0.0, 1.0, 0.5],
            [0.0, -2.0, 1.0],
            [3.0, 0.0, 2.5],
            [0.0, 0.0, 7.0],
        ],
    );
    let world = world(&text);
    let s = run(&world, 80, |_| {});
    for (speed, wind) in speeds(&world, s.velocities())
        .into_iter()
        .zip([0.0, 1.0, 2.0, 5.0, 6.0])
    {
        let known = wind - wind / (1.0 + wind * 1.2 * s.time() / (2.0 * 0.15));
        assert!(
            (speed - known).abs() <= 0.015 * known + 1e-5,
            "{wind}: {speed} {known}"
        );
    }
}

/// The air stands behind x = 1 and blows before it, by a strength that is there from a time on.
#[test]
fn a_table_by_place_blows_where_and_when_it_says() {
    let air = "wind = { x = [1, 1.5], z = [0, 2], velocity = [[4, 0, 0], [0, 0, 0], [8, 0, 0], [0, 0, 0]], strength = { keyframes = \
               [{ time = 0.02, value = 0 }, { time = 0.0201, value = 1 }] } }";
    let text = sheets(air, &[[-9.0, 0.0, 0.0], [-9.0, 5.0, 1.0], [3.0, 0.0, 1.0]]);
    let world = world(&text);
    run(&world, 120, |s| {
        let speeds = speeds(&world, s.velocities());
        if s.step() <= 40 {
            assert_eq!(speeds, [0.0; 3]);
        } else if s.step() == 120 {
            for (speed, wind) in speeds.into_iter().zip([4.0, 6.0, 0.0]) {
                let known = wind - wind / (1.0 + wind * 1.2 * 0.04 / (2.0 * 0.15));
                assert!(
                    (speed - known).abs() <= 0.015 * known + 1e-5,
                    "{wind}: {speed} {known}"
                );
            }
        }
    });
}

#[test]
fn cloth_in_wind_by_place_does_not_depend_on_ranks() {
    for integrator in ["euler", "bdf2"] {
        let text = format!(
            "time = {{ step = \"4 ms\", end = \"1 s\" }}\nsolver.integrator = \"{integrator}\"\npartition.patches = 8\n\
             contact.thickness = \"4 mm\"\n\
             air.wind = {{ y = [-0.2, 0, 0.2], z = [-0.2, 0.1], velocity = [[0, 0, 0], [3, 0, 2], [-4, 1, 0], [0, 5, 0], [1, 0, 9], [0, 0, 0]], \
             strength = {{ keyframes = [{{ time = 0, value = 0.5 }}, {{ time = 0.1, value = 2 }}] }} }}\n\
             [[cloth]]\ngrid = {{ size = 0.3, vertices = 9 }}\npins = [{{ nearest = [-0.15, -0.15, 0] }}]\n\
             material = {{ density = 0.15, stretch = 300, bending = 1e-5, drag_normal = 1.5, drag_tangential = 0.1 }}\n"
        );
        ends_the_same(&world(&text), 40, 21);
    }
}

#[test]
fn tables_that_are_wrong_are_named_and_others_echoed() {
    let material = "[[cloth]]\ngrid = { size = 1, vertices = 4 }\nmaterial = { fabric = \"denim\", drag_normal = 1 }";
    let parse = |wind: &str| Scene::parse(&format!("air.wind = {wind}\n{material}"), None, &[]);
    for (wind, told) in [
        ("{ z = [0, 1] }", "air.wind.velocity: missing"),
        ("{ velocity = [[1, 0, 0]] }", "air.wind.z: missing"),
        (
            "{ z = [1, 0], velocity = [[0, 0, 0], [1, 0, 0]] }",
            "air.wind.z: 0 m is not farther",
        ),
        (
            "{ x = [0, 1], z = [0, 1, 2], velocity = [[0, 0, 0], [1, 0, 0]] }",
            "has 2 velocities, and there are 6 points, 2 by 1 by 3",
        ),
        (
            "{ z = [0, 1], velocity = [[0, 0, 0], [inf, 0, 0]] }",
            "air.wind.velocity.1: must be finite",
        ),
        ("{ z = [], velocity = [[0, 0, 0]] }", "air.wind.z"),
        (
            "{ z = [0], velocity = [[0, 0, 0]], keyframes = [] }",
            "air.wind.keyframes: unknown key",
        ),
        ("{ zz = [0] }", "air.wind.zz: unknown key"),
    ] {
        let problems = parse(wind).unwrap_err().to_string();
        assert!(problems.contains(told), "{told} in {problems}");
    }
    let scene = parse(
        "{ x = [\"1 m\", 2], z = [0, 1.5], velocity = [[0, 0, 0], [1, 0, 0], [0, 2, 0], [\"3 m/s\", 0, 0.1]], strength = { \
         keyframes = [{ time = 0, value = 1 }, { time = 3, value = 2 }] } }",
    )
    .unwrap();
    let again = Scene::parse(&scene.echo(), None, &[]).unwrap();
    assert_eq!(scene.air, again.air);
}
