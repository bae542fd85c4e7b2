//! Stiffness and drag coefficients of cloth that change in time.

use super::moving::ends_the_same;
use super::{World, bits as bits_of, *};
use crate::scene::Scene;

/// A sheet of `size` by some 20 mm on pins, with a material and more lines above and in its
/// table.
struct Strip {
    /// Lengths along x and y.
    size: [f64; 2],
    vertices: [u32; 2],
    above: &'static str,
    pins: &'static str,
}

impl Strip {
    fn world(&self, material: &str) -> World {
        let ([x, y], [m, n]) = (self.size, self.vertices);
        let text = format!(
            "{}\ncontact.self_collision = false\n[[cloth]]\ngrid = {{ size = [{x:?}, {y:?}], vertices = [{m}, {n}] }}\n{}\n\
             material = {{ density = 0.15, strain_limit = \"none\", {material} }}",
            self.above, self.pins
        );
        let scene = Scene::parse(&text, None, &[]);
        World::build(&scene.unwrap_or_else(|error| panic!("{error}"))).unwrap()
    }
}

/// A factor that is one number until half a second has passed, and another one soon after that.
fn from_to(from: f64, to: f64) -> String {
    format!(
        "{{ keyframes = [{{ time = 0.5, value = {from:?} }}, {{ time = 0.6, value = {to:?} }}] }}"
    )
}

/// The lowest vertex after this number of steps.
fn lowest(world: &World, steps: u32) -> f64 {
    let s = run(world, steps, |_| {});
    let heights = s.positions().iter().map(|x| x.z);
    heights.fold(f64::INFINITY, f64::min)
}

/// A strip of length L that hangs down is longer by ρ g L²/2E. It ends there with each stiffness
/// after the other one, and at the same length as a strip that always had that stiffness.
#[test]
fn a_hanging_strip_is_as_long_as_its_stiffness_at_the_time_says() {
    let strip = Strip {
        size: [0.05, 1.0],
        vertices: [2, 21],
        above: "time = { step = \"10 ms\", end = \"10 s\" }\nsolver.tolerance = 1e-10",
        pins: "rotation = [\"90 deg\", 0, 0]\npins = [{ min = [-1, -1, 0.49], max = [1, 1, 1] }]",
    };
    let top = 0.5;
    for model in ["finite-elements", "springs"] {
        let poisson = if model == "springs" {
            ""
        } else {
            "poisson = 0, "
        };
        let own = format!(
            "model = \"{model}\", {poisson}stretch = 20, bending = 1e-6, damping_mass = \"20/s\", damping_stiffness = 0"
        );
        let with = |factor: &str| strip.world(&format!("{own}, stretch_factor = {factor}"));
        let own = |world: &World| top - lowest(world, 400) - 1.0;
        let [soft, stiff] = ["1", "4"].map(|factor| own(&with(factor)));
        if model == "finite-elements" {
            let known = 0.15 * 9.81 / (2.0 * 20.0);
            for (longer, known) in [(soft, known), (stiff, known / 4.0)] {
                assert!((longer / known - 1.0).abs() < 0.01, "{longer} {known}");
            }
        } else {
            assert!((soft / stiff - 4.0).abs() < 0.05, "{soft} {stiff}");
        }
        // A strip of springs has its borders curl, and comes to rest slowly.
        let allowed = if model == "springs" { 1e-3 } else { 1e-5 };
        for (from, to, known) in [(1.0, 4.0, stiff), (4.0, 1.0, soft)] {
            let world = with(&from_to(from, to));
            let longer = own(&world);
            assert!(
                (longer / known - 1.0).abs() < allowed,
                "{model} {longer} {known}"
            );
            // It begins as a strip of the other stiffness.
            let before = if from == 1.0 { "1" } else { "4" };
            assert_eq!(lowest(&world, 50), lowest(&with(before), 50), "{model}");
        }
    }
}

/// A strip of length L that sticks out sags by ρ g L⁴/8D, whichever elements bend. This one is
/// narrow and its mesh coarse, so that it sags by a third more, in all stiffness alike.
#[test]
fn a_strip_that_sticks_out_sags_as_its_rigidity_at_the_time_says() {
    let strip = Strip {
        size: [0.11, 0.02],
        vertices: [23, 5],
        above: "time = { step = \"10 ms\", end = \"10 s\" }\nsolver.tolerance = 1e-11",
        pins: "pins = [{ min = [-1, -1, -1], max = [-0.0499, 1, 1] }]",
    };
    // The first two columns are clamped, 50 mm to both sides of the middle of the rest.
    let known = |rigidity: f64| 0.15 * 9.81 * 0.105_f64.powi(4) / (8.0 * rigidity);
    for model in ["quadratic", "dihedral"] {
        let own = format!(
            "stretch = 1000, bending = 0.04, bending_model = \"{model}\", damping_mass = \"20/s\", damping_stiffness = 0"
        );
        let with = |factor: &str| strip.world(&format!("{own}, bending_factor = {factor}"));
        let sag = |world: &World| -lowest(world, 250);
        let [soft, stiff] = ["0.5", "2"].map(|factor| sag(&with(factor)));
        for (sag, known) in [(soft, known(0.02)), (stiff, known(0.08))] {
            assert!((sag / known - 1.2).abs() < 0.2, "{model} {sag} {known}");
        }
        assert!((soft / stiff - 4.0).abs() < 0.02, "{model} {soft} {stiff}");
        for (from, to, known) in [(0.5, 2.0, stiff), (2.0, 0.5, soft)] {
            let sag = sag(&with(&from_to(from, to)));
            assert!((sag / known - 1.0).abs() < 1e-5, "{model} {sag} {known}");
        }
    }
}

/// A factor of four in all time is a stiffness four times as large, to the bit: in what is
/// assembled, in what is kept of it, and in how it damps.
#[test]
fn a_constant_factor_is_a_stiffness_so_many_times_as_large() {
    for (models, integrator) in [
        ("", "euler"),
        ("bending_model = \"dihedral\", ", "bdf2"),
        ("bending_fit = false, ", "newmark"),
        (
            "bending_fit = false, bending_model = \"dihedral\", ",
            "euler",
        ),
        (
            "model = \"springs\", bending_model = \"springs\", bending_fit = false, ",
            "euler",
        ),
    ] {
        let above = format!(
            "time = {{ step = \"{}\", end = \"1 s\" }}\nsolver.integrator = \"{integrator}\"\npartition.patches = 4",
            if integrator == "newmark" {
                "0.1 ms"
            } else {
                "5 ms"
            }
        );
        let strip = Strip {
            size: [0.3, 0.2],
            vertices: [12, 9],
            above: Box::leak(above.into_boxed_str()),
            pins: "rotation = [0.3, 0, 0]\npins = [{ nearest = [-0.15, 0.1, 0.03] }]",
        };
        let ends = |material: &str| {
            let world = strip.world(&format!("{models}{material}, damping_stiffness = \"1 ms\""));
            bits_of(&run(&world, 40, |_| {}), Seen::default())
        };
        let plain = ends("stretch = 200, bending = 1e-4");
        let by_four =
            ends("stretch = 50, stretch_factor = 4, bending = 2.5e-5, bending_factor = 4");
        assert!(plain == by_four, "{models} {integrator}");
        assert!(ends("stretch = 50, bending = 1e-4") != plain, "{models}");
        assert!(ends("stretch = 200, bending = 2.5e-5") != plain, "{models}");
    }
}

/// A sheet that falls flat ends with the speed √(2 ω g/ρ C), ω its mass per area.
#[test]
fn a_sheet_falls_as_fast_as_its_drag_at_the_time_lets_it() {
    let strip = Strip {
        size: [0.3, 0.3],
        vertices: [6, 6],
        above: "time = { step = \"4 ms\", end = \"3 s\" }\nair.density = 1.2",
        pins: "",
    };
    let world = strip.world(
        "stretch = 300, bending = 1e-4, drag_normal = { keyframes = [{ time = 1, value = 0.5 }, { time = 1.1, value = 2 }] }",
    );
    run(&world, 500, |s| {
        if s.step() == 250 || s.step() == 500 {
            let drag: f64 = if s.step() == 250 { 0.5 } else { 2.0 };
            let known = -(2.0 * 0.15 * 9.81 / (1.2 * drag)).sqrt();
            for v in s.velocities() {
                assert!((v.z / known - 1.0).abs() < 1e-3, "{v} {known}");
            }
        }
    });
}

/// Cloth of several kinds of elements, with all that changes, certified.
#[test]
fn stiffness_and_drag_that_change_do_not_depend_on_ranks() {
    let changing = |from: f64, to: f64| {
        format!(
            "{{ repeat = true, interpolation = \"smooth\", keyframes = [{{ time = 0, value = {from:?} }}, {{ time = 0.05, value = \
             {to:?} }}, {{ time = 0.08, value = {from:?} }}] }}"
        )
    };
    let material = |own: &str| {
        format!(
            "material = {{ density = 0.15, stretch = 300, bending = 1e-5, damping_stiffness = \"1 ms\", {own} stretch_factor = {}, \
             bending_factor = {}, drag_normal = {}, drag_tangential = {} }}",
            changing(1.0, 0.3),
            changing(1.0, 30.0),
            changing(0.0, 2.0),
            changing(0.1, 0.0)
        )
    };
    for integrator in ["euler", "bdf2"] {
        let text = format!(
            "time = {{ step = \"4 ms\", end = \"1 s\" }}\nsolver.integrator = \"{integrator}\"\nair.wind = [1, 0, 2]\n\
             contact.thickness = \"4 mm\"\npartition.patches = 8\n\
             [[cloth]]\ngrid = {{ size = 0.3, vertices = 10 }}\npins = [{{ nearest = [-0.15, -0.15, 0] }}]\n{}\n\
             [[cloth]]\ngrid = {{ size = 0.3, vertices = 8 }}\ncenter = [0.02, 0, 0.03]\n{}\n\
             [[body]]\nname = \"ball\"\nshape = \"sphere\"\ncenter = [0, 0, -0.085]\nradius = 0.08\nedge = 0.03\nfriction = 0.3\nvelocity = [0, 0, 0.3]",
            material("bending_model = \"dihedral\","),
            material("model = \"springs\", bending_model = \"springs\","),
        );
        assert!(ends_the_same(&world(&text), 40, 23) > 0, "{integrator}");
    }
}

#[test]
fn factors_that_no_cloth_can_have_are_refused_and_others_echoed() {
    let text = |factors: &str| {
        format!(
            "[[cloth]]\ngrid = {{ size = 1, vertices = 4 }}\nmaterial = {{ fabric = \"denim\", {factors} }}"
        )
    };
    for (factors, told) in [
        ("stretch_factor = 0", "cloth.material.stretch_factor"),
        (
            "bending_factor = { keyframes = [{ time = 0, value = -1 }] }",
            "cloth.material.bending_factor.keyframes.value",
        ),
        (
            "drag_normal = { keyframes = [{ time = 0, value = -1 }] }",
            "cloth.material.drag_normal.keyframes.value",
        ),
    ] {
        let problems = Scene::parse(&text(factors), None, &[])
            .unwrap_err()
            .to_string();
        assert!(problems.contains(told), "{told} in {problems}");
    }
    let factors = format!(
        "stretch_factor = {}, bending_factor = 0, drag_tangential = {}",
        from_to(1.0, 2.0),
        from_to(0.0, 1.0)
    );
    let scene = Scene::parse(&text(&factors), None, &[]).unwrap();
    let again = Scene::parse(&scene.echo(), None, &[]).unwrap();
    assert_eq!(scene.cloths[0].material, again.cloths[0].material);
    let factor = scene.cloths[0].material.stretch_factor.at(0.55);
    assert!((factor - 1.5).abs() < 1e-12, "{factor}");
}
