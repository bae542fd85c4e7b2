//! Cloths and bodies of unlike thickness and friction.

use super::faces::ranks_bits;
use super::*;

/// Two flat sheets, the second above the first, over a plane; each table with what is added to it.
fn layers(surface: &str, [first, second, plane]: [&str; 3], rest: &str) -> String {
    let material = "material = { density = 0.15, stretch = 100, bending = 1e-5 }";
    format!(
        r#"
        time = {{ step = "2 ms", end = "1 s" }}
        {rest}
        [[cloth]]
        grid = {{ size = "0.2 m", vertices = 9 }}
        center = [0, 0, 0.012]
        {material}
        {first}
        [[cloth]]
        grid = {{ size = "0.2 m", vertices = 9 }}
        center = [0.004, 0.007, 0.022]
        {material}
        {second}
        [[body]]
        shape = "plane"
        extent = 1
        surface = "{surface}"
        {plane}
        "#
    )
}

/// The lowest and the highest vertex of a cloth, in mm.
fn heights(world: &World, s: &Simulation<'_>, cloth: u32) -> [f64; 2] {
    let of = world.model().cloth_of_vertex().iter().zip(s.positions());
    let heights = of.filter(|(of, _)| **of == cloth).map(|(_, x)| 1e3 * x.z);
    heights.fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], z| {
        [low.min(z), high.max(z)]
    })
}

/// A layer lies as high as half of its own thickness and half of that below it, each upon the one
/// below: on the plane to rounding from below, on a layer to what rounds of impulses leave.
#[test]
fn layers_rest_at_half_of_each_thickness() {
    let thick = |mm: f64| format!("thickness = \"{mm} mm\"");
    for (surface, [first, second, plane]) in [
        ("analytic", [2.0, 6.0, 4.0]),
        ("triangles", [6.0, 2.0, 4.0]),
        ("triangles", [2.0, 3.0, 9.0]),
        ("analytic", [4.0, 4.0, 4.0]),
    ] {
        let keys = [first, second, plane].map(thick);
        let keys = [&keys[0][..], &keys[1], &keys[2]];
        let world = world(&layers(surface, keys, ""));
        let s = run(&world, 400, |_| {});
        let lower = 0.5 * (first + plane);
        let upper = lower + 0.5 * (first + second);
        let [low, high] = heights(&world, &s, 0);
        let case = format!("{surface} {first} {second} {plane}");
        assert!(
            low > lower - 1e-6 && high < 1.05 * lower,
            "{case}: {low} {high}"
        );
        let [low, high] = heights(&world, &s, 1);
        assert!(
            low > 0.97 * upper && high < 1.05 * upper,
            "{case}: {low} {high}"
        );
    }
}

/// A sheet on a slope of 20°, whose tangent is 0.364, under the mean friction of sheet and plane:
/// it holds, or slides as Coulomb's law says.
#[test]
fn friction_on_slopes_is_that_of_the_pair() {
    let slope = 20_f64.to_radians();
    let (sin, cos) = (libm::sin(slope), libm::cos(slope));
    for (own, of_plane) in [
        (Some(0.1), 0.9),
        (Some(0.2), 0.9),
        (None, 0.9),
        (Some(2.0), 0.02),
    ] {
        let keys = own.map_or(String::new(), |own| format!("friction = {own}"));
        let text = format!(
            r#"
            time = {{ step = "2 ms", end = "1 s" }}
            gravity = [{}, 0, {}]
            [[cloth]]
            grid = {{ size = "0.2 m", vertices = 9 }}
            center = [0, 0, 0.004001]
            material = {{ density = 0.15, stretch = 100, bending = 1e-5 }}
            {keys}
            [[body]]
            shape = "plane"
            surface = "analytic"
            friction = {of_plane}
            "#,
            9.81 * sin,
            -9.81 * cos
        );
        let world = world(&text);
        let s = run(&world, 200, |_| {});
        let rest = world.model().start();
        let moved = s.positions().iter().zip(rest).map(|(x, rest)| x.x - rest.x);
        let moved = moved.sum::<f64>() / rest.len() as f64;
        let mu = own.map_or(of_plane, |own: f64| (own * of_plane).sqrt());
        let known = 0.5 * 9.81 * (sin - mu * cos).max(0.0) * 0.4 * 0.4;
        let slack = if known > 0.0 { 0.05 * known } else { 5e-4 };
        assert!(
            (moved - known).abs() < slack,
            "{own:?} {of_plane}: {moved} not {known}"
        );
    }
}

/// A thickness that positions are not known to is refused with its key and the least that is not.
#[test]
fn a_thickness_lost_in_rounding_is_refused() {
    let refused = |[first, second, plane]: [&str; 3]| {
        let text = layers("triangles", [first, second, plane], "")
            .replace("center = [0.004", "center = [1e6");
        let built = World::build(&Scene::parse(&text, None, &[]).unwrap());
        built.err().map(|error| error.to_string())
    };
    let message = refused([""; 3]).unwrap();
    assert!(
        message.contains("contact.thickness of cloth `cloth1`, 4.000e-3 m, is lost")
            && message.contains("set contact.thickness to at least 1.000e-2 m"),
        "{message}"
    );
    let message = refused(["", "thickness = 9e-3", ""]).unwrap();
    assert!(
        message.contains("set thickness to at least 1.000e-2 m"),
        "{message}"
    );
    assert_eq!(refused(["", "thickness = 0.011", ""]), None);
    let message = refused(["", "thickness = 0.011", "thickness = 1e-9"]).unwrap();
    assert!(
        message.contains("the thickness of body `body0`, 1.000e-9 m"),
        "{message}"
    );
}

/// Two cloths of unlike thickness and friction on a ball of another.
fn unlike() -> String {
    drape()
        .replace(
            "center = [0.05, 0.03, 0.22]",
            "center = [0.05, 0.03, 0.208]",
        )
        .replace(
            "[[body]]\n        name = \"ball\"",
            r#"
        [[cloth]]
        grid = { size = "0.4 m", vertices = 17 }
        center = [-0.02, 0.01, 0.216]
        material = { density = 0.2, stretch = 800, bending = 2e-5 }
        thickness = "7 mm"
        friction = 0.8
        [[body]]
        thickness = "2 mm"
        name = "ball""#,
        )
}

#[test]
fn unlike_cloths_are_the_same_on_all_ranks() {
    let world = world(&(unlike() + "[partition]\npatches = 8\n"));
    let alone = ranks_bits(&world, 1);
    for ranks in [2, 3] {
        assert_eq!(ranks_bits(&world, ranks), alone, "{ranks}");
    }
}

/// Keys that say of each what holds for all change no bit.
#[test]
fn cloths_that_are_alike_move_alike_to_the_bit() {
    let alike = |of_cloth: &str, of_body: &str| {
        let cloth = format!("thickness = \"4 mm\"\n{of_cloth}");
        let text = drape()
            .replace("friction = 0.5", "friction = 0.3")
            .replace("[cloth.material]", &format!("{}\n[cloth.material]", cloth))
            .replace("[[body]]", &format!("[[body]]\n{of_body}"));
        ranks_bits(&world(&text), 1)
    };
    let text = drape().replace("friction = 0.5", "friction = 0.3");
    let plain = ranks_bits(&world(&text), 1);
    assert_eq!(alike("", "thickness = 0.004"), plain);
    assert_eq!(alike("friction = 0.3", ""), plain);
    assert_ne!(alike("friction = 0.2", ""), plain);
    assert_ne!(alike("", "thickness = 0.003"), plain);
}
