//! Cloth whose shape at rest is not the one that it starts with.

use std::f64::consts::{PI, TAU};
use std::fmt::Write as _;
use std::path::Path;

use glam::{DVec2, DVec3};
use weft_runtime::comm::solo::Solo;

use super::moving::ends_the_same;
use super::{World, run};
use crate::mesh::{TriMesh, grid, write_obj};
use crate::scene::Scene;

fn write(mesh: &TriMesh, path: &Path) {
    let mut text = Vec::new();
    write_obj(mesh, &mut text).unwrap();
    std::fs::write(path, text).unwrap();
}

/// A flat sheet of this size and this many vertices, stretched by factors along x and y.
fn sheet(size: [f64; 2], vertices: [usize; 2], stretch: [f64; 2]) -> TriMesh {
    let mut mesh = grid(size, vertices, DVec3::ZERO, DVec3::ZERO).unwrap();
    for p in &mut mesh.positions {
        *p *= DVec3::new(stretch[0], stretch[1], 1.0);
    }
    mesh
}

/// The world of a scene whose cloth has files in a folder, or the reason why there is none.
fn built(folder: &Path, above: &str, cloth: &str, material: &str) -> Result<World, String> {
    let text = format!(
        "gravity = [0, 0, 0]\nair.density = 0\n{above}\n[[cloth]]\nmesh = \"start.obj\"\n{cloth}\n\
         [cloth.material]\ndensity = 0.15\nstretch = 1000\nbending = 1e-5\ndamping_stiffness = 0\n{material}"
    );
    let scene = Scene::parse(&text, Some(&folder.join("x.toml")), &[]);
    let scene = scene.map_err(|error| error.to_string())?;
    let echo = Scene::parse(&scene.echo(), None, &[]).unwrap();
    assert_eq!(echo.cloths, scene.cloths);
    World::build(&scene).map_err(|error| error.to_string())
}

/// The length along an axis.
fn extent(x: &[DVec3], axis: usize) -> f64 {
    let low = x.iter().map(|p| p[axis]).fold(f64::INFINITY, f64::min);
    x.iter().map(|p| p[axis]).fold(-f64::INFINITY, f64::max) - low
}

/// A sheet that starts stretched by ε₁ and ε₂ has the energy
/// A (λ (ε₁ + ε₂)² / 2 + μ (ε₁² + ε₂²)) of its area A at rest, and the mass of that area.
#[test]
fn stretched_sheets_have_the_energy_and_the_mass_of_their_shape_at_rest() {
    let folder = tempfile::tempdir().unwrap();
    let (e1, e2) = (0.06, -0.02);
    write(
        &sheet([0.4, 0.3], [9, 7], [1.0 + e1, 1.0 + e2]),
        &folder.path().join("start.obj"),
    );
    // In other units and turned: only lengths matter.
    let at_rest = sheet([0.4, 0.3], [9, 7], [1.0, 1.0]);
    write(&at_rest, &folder.path().join("rest.obj"));
    let area = 0.4 * 0.3;
    let (young, nu) = (1000.0, 0.3);
    let (lambda, mu) = (young * nu / (1.0 - nu * nu), young / (2.0 * (1.0 + nu)));
    let known = area * (0.5 * lambda * (e1 + e2) * (e1 + e2) + mu * (e1 * e1 + e2 * e2));
    let energy = |cloth: &str, material: &str| {
        let world = built(folder.path(), "", cloth, material).unwrap();
        assert_eq!(world.warnings(), [""; 0]);
        assert!((world.model().masses().iter().sum::<f64>() - 0.15 * area).abs() < 1e-15);
        world.model().elastic_energy(world.model().start()).unwrap()
    };
    for placed in ["", "rotation = [0.3, 0.2, 1]\ntranslation = [5, 0, 1]"] {
        let own = energy(&format!("rest = \"rest.obj\"\n{placed}"), "");
        assert!((own / known - 1.0).abs() < 1e-6, "{own} {known}");
        let none = built(folder.path(), "", placed, "").unwrap();
        let none = none.model().elastic_energy(none.model().start()).unwrap();
        assert!(none < 1e-12 * known, "{none}");
    }
    // Springs along edges: those along x and y alone tell the strain; diagonals lie between.
    let springs = energy("rest = \"rest.obj\"", "model = \"springs\"");
    assert!(
        springs > 0.3 * known && springs < 3.0 * known,
        "{springs} {known}"
    );
}

/// A strip that starts stretched by ε along x swings between (1 + ε) L and (1 − ε) L: waves of
/// speed c = √(E/ρ) release it from both ends, and it is shortest after L/c.
#[test]
fn a_strip_that_starts_stretched_swings_about_its_shape_at_rest() {
    let folder = tempfile::tempdir().unwrap();
    let (length, strain) = (0.3, 0.01);
    let cells = [61, 3];
    write(
        &sheet([length, 0.01], cells, [1.0 + strain, 1.0]),
        &folder.path().join("start.obj"),
    );
    write(
        &sheet([length, 0.01], cells, [1.0, 1.0]),
        &folder.path().join("rest.obj"),
    );
    let speed = (1000.0_f64 / 0.15).sqrt();
    let half = length / speed;
    let steps = 200;
    let above = format!(
        "time = {{ step = {:?}, end = 1 }}\nsolver = {{ integrator = \"bdf2\", newton = 4, tolerance = 1e-9 }}\ncontact.self_collision = \
         false",
        half / f64::from(steps)
    );
    let world = built(folder.path(), &above, "rest = \"rest.obj\"", "poisson = 0").unwrap();
    let mut lengths = Vec::new();
    run(&world, 2 * steps, |s| {
        lengths.push(extent(s.positions(), 0))
    });
    let strain_at = |step: u32| lengths[step as usize - 1] / length - 1.0;
    assert!(
        (strain_at(steps) / strain + 1.0).abs() < 0.1,
        "{}",
        strain_at(steps)
    );
    assert!(
        (strain_at(2 * steps) / strain - 1.0).abs() < 0.15,
        "{}",
        strain_at(2 * steps)
    );
    // The ends go at an even pace in between.
    assert!(
        strain_at(steps / 2).abs() < 0.1 * strain,
        "{}",
        strain_at(steps / 2)
    );
    assert!((strain_at(steps / 4) / strain - 0.5).abs() < 0.1);
}

/// An upright cylinder closed around, of `around` by `along` cells, with texture coordinates in
/// which one half of its pattern is laid elsewhere, turned, and turned over if `is_split`.
fn cylinder(radius: f64, height: f64, [around, along]: [usize; 2], is_split: bool) -> String {
    let mut text = String::new();
    for j in 0..=along {
        for i in 0..around {
            let angle = TAU * i as f64 / around as f64;
            let (x, y) = (radius * angle.cos(), radius * angle.sin());
            let z = height * j as f64 / along as f64;
            writeln!(text, "v {x:?} {y:?} {z:?}").unwrap();
        }
    }
    let turn = DVec2::from_angle(0.8);
    for j in 0..=along {
        for i in 0..=around {
            let at = DVec2::new(i as f64 / around as f64, j as f64 / along as f64);
            writeln!(text, "vt {:?} {:?}", at.x, at.y).unwrap();
        }
    }
    let circumference = 2.0 * around as f64 * radius * (PI / around as f64).sin();
    for j in 0..=along {
        for i in 0..=around {
            // In m, then in units of the pattern.
            let at = DVec2::new(
                -circumference * i as f64 / around as f64,
                height * j as f64 / along as f64,
            );
            let at = turn.rotate(at) / DVec2::new(circumference, height) + DVec2::new(5.0, 1.0);
            writeln!(text, "vt {:?} {:?}", at.x, at.y).unwrap();
        }
    }
    let textures = (around + 1) * (along + 1);
    for j in 0..along {
        for i in 0..around {
            let corner = |di: usize, dj: usize| {
                let (at, row) = (i + di, j + dj);
                let shift = if is_split && i >= around / 2 {
                    textures
                } else {
                    0
                };
                let vertex = row * around + at % around + 1;
                format!("{vertex}/{}", row * (around + 1) + at + shift + 1)
            };
            let [a, b, c, d] = [corner(0, 0), corner(1, 0), corner(1, 1), corner(0, 1)];
            let both = if i % 2 == 0 {
                format!("f {a} {b} {c}\nf {a} {c} {d}\n")
            } else {
                format!("f {a} {b} {d}\nf {b} {c} {d}\n")
            };
            text.push_str(&both);
        }
    }
    text
}

/// A cylinder whose pattern is flat has the bending energy A D / 2r², with hinges and with folds,
/// whose rest angles are none, also over the seams of its pattern.
#[test]
fn a_cylinder_from_a_flat_pattern_has_the_bending_energy_of_its_curvature() {
    let folder = tempfile::tempdir().unwrap();
    let (radius, height, cells) = (0.1, 0.25, [48, 20]);
    let circumference = 2.0 * cells[0] as f64 * radius * (PI / cells[0] as f64).sin();
    let known = 0.5 * 1e-3 * circumference * height / (radius * radius);
    for is_split in [false, true] {
        let text = cylinder(radius, height, cells, is_split);
        std::fs::write(folder.path().join("start.obj"), text).unwrap();
        let cloth = format!("rest_texture = [{circumference:?}, {height:?}]");
        for model in ["quadratic", "dihedral"] {
            let material = format!("bending = 1e-3\nbending_model = \"{model}\"\n");
            let of = |cloth: &str, young: &str| {
                let text = format!(
                    "[[cloth]]\nmesh = \"start.obj\"\n{cloth}\n[cloth.material]\ndensity = 0.15\nstretch = {young}\n{material}"
                );
                let at = folder.path().join("x.toml");
                let world = World::build(&Scene::parse(&text, Some(&at), &[]).unwrap()).unwrap();
                world.model().elastic_energy(world.model().start()).unwrap()
            };
            let energy = of(&cloth, "1000");
            assert!(
                (energy / known - 1.0).abs() < 0.02,
                "{model} {is_split}: {energy} {known}"
            );
            // None of it is of stretching.
            let stiffer = of(&cloth, "1e6");
            assert!((stiffer / energy - 1.0).abs() < 1e-6, "{stiffer} {energy}");
            if model == "dihedral" {
                assert!(of("", "1000") < 1e-9 * known);
            }
        }
    }
}

/// A woven pattern has its warp along u, wherever its triangles went.
#[test]
fn the_warp_of_a_pattern_is_along_u_or_as_weave_says() {
    let folder = tempfile::tempdir().unwrap();
    let text = cylinder(0.1, 0.2, [24, 8], false);
    std::fs::write(folder.path().join("start.obj"), text).unwrap();
    let circumference = 48.0 * 0.1 * (PI / 24.0).sin();
    // Around, it is 2 % longer than its pattern.
    let cloth = format!("rest_texture = [{:?}, 0.2]", circumference / 1.02);
    let material = "stretch = [2000, 500]\npoisson = 0\nbending = 0\nbending_fit = false\n";
    for (weave, stiff) in [("", 2000.0), ("weave = [0, 1, 0]", 500.0)] {
        let text = format!(
            "[[cloth]]\nmesh = \"start.obj\"\n{cloth}\n{weave}\n[cloth.material]\ndensity = 0.15\n{material}"
        );
        let at = folder.path().join("x.toml");
        let world = World::build(&Scene::parse(&text, Some(&at), &[]).unwrap()).unwrap();
        let energy = world.model().elastic_energy(world.model().start()).unwrap();
        let known = 0.5 * stiff * 0.02 * 0.02 * (circumference / 1.02) * 0.2;
        assert!((energy / known - 1.0).abs() < 1e-6, "{energy} {known}");
    }
}

/// Cells that are narrower than the thickness at rest, and wider at the start, get where they rest:
/// contacts keep no more of a distance between them than they have there.
#[test]
fn contacts_let_cloth_be_as_narrow_as_it_is_at_rest() {
    let folder = tempfile::tempdir().unwrap();
    write(
        &sheet([0.036, 0.036], [13, 13], [1.6, 1.6]),
        &folder.path().join("start.obj"),
    );
    write(
        &sheet([0.036, 0.036], [13, 13], [1.0, 1.0]),
        &folder.path().join("rest.obj"),
    );
    let above =
        "time = { step = \"2 ms\", end = 1 }\ncontact = { thickness = \"4 mm\", pairs = \"all\" }";
    let material = "strain_limit = \"none\"\ndamping_mass = 20\n";
    let world = built(folder.path(), above, "rest = \"rest.obj\"", material).unwrap();
    let mut s = run(&world, 60, |_| {});
    assert!(s.advance(&mut Solo::new()).unwrap().contacts > 0);
    for axis in 0..2 {
        let length = extent(s.positions(), axis);
        assert!((length / 0.036 - 1.0).abs() < 0.01, "{length}");
    }
}

#[test]
fn ranks_and_restarts_do_not_matter_to_shapes_at_rest() {
    let folder = tempfile::tempdir().unwrap();
    let text = cylinder(0.1, 0.2, [16, 8], true);
    std::fs::write(folder.path().join("start.obj"), text).unwrap();
    let above =
        "partition.patches = 4\ntime = { step = \"4 ms\", end = 1 }\ncontact.thickness = \"4 mm\"";
    let of = |unit: f64, material: &str| {
        let cloth =
            format!("rest_texture = [{unit:?}, 0.19]\npins = [{{ nearest = [0.1, 0, 0] }}]");
        built(folder.path(), above, &cloth, material).unwrap()
    };
    let world = of(0.63, "bending_model = \"dihedral\"\n");
    ends_the_same(&world, 40, 23);
    // A run goes on from a state of one shape at rest only.
    assert_eq!(of(0.63, "").digest(), of(0.63, "").digest());
    assert_ne!(of(0.63, "").digest(), of(0.64, "").digest());
}

#[test]
fn rest_shapes_that_do_not_fit_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let start = sheet([0.3, 0.3], [4, 4], [1.0, 1.0]);
    write(&start, &at("start.obj"));
    write(&sheet([0.3, 0.3], [4, 5], [1.0, 1.0]), &at("other.obj"));
    let mut turned = start.clone();
    turned.triangles[3].rotate_left(1);
    write(&turned, &at("turned.obj"));
    let mut flat = start.clone();
    flat.positions[5] = flat.positions[0].lerp(flat.positions[10], 0.5);
    flat.positions[1] = flat.positions[0].lerp(flat.positions[5], 0.5);
    write(&flat, &at("flat.obj"));
    std::fs::write(at("nan.obj"), "v 0 nan 0\n").unwrap();
    let refused = |cloth: &str| built(folder.path(), "", cloth, "").unwrap_err();
    for (cloth, words) in [
        (
            "rest = \"other.obj\"",
            "it has 20 vertices and 24 triangles, and the cloth's mesh has 16 vertices and 18 triangles",
        ),
        ("rest = \"turned.obj\"", "its triangle 3 has vertices"),
        ("rest = \"flat.obj\"", "triangles without area"),
        ("rest = \"nan.obj\"", "nan.obj:1: `nan` is no finite number"),
        ("rest = \"none.obj\"", "no file at"),
        ("rest_texture = 1", "not all of its faces have them"),
        ("rest_texture = 0", "rest_texture"),
        (
            "rest = \"start.obj\"\nrest_texture = 1",
            "one shape at rest",
        ),
    ] {
        let error = refused(cloth);
        assert!(error.contains(words), "{cloth}: {error}");
    }
    let textured = "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nvt 0 0\nvt 1 0\nvt 1 1\nvt 2 2\nf 1/1 2/2 3/3\nf 1/1 3/3 4/4\n";
    std::fs::write(at("start.obj"), textured).unwrap();
    let error = refused("rest_texture = 1");
    assert!(
        error.contains(
            "triangle 1 with vertices 0, 2, 3 (counted from 0) spans no area in texture coordinates"
        ),
        "{error}"
    );
    // Far from what it starts as.
    std::fs::write(at("start.obj"), textured.replace("vt 2 2", "vt 0 1")).unwrap();
    for (unit, told) in [
        ("1", ""),
        (
            "0.5",
            "2.000 times as long as at rest, beyond its strain_limit",
        ),
        ("4", "0.250 times as short as at rest"),
    ] {
        let world = built(
            folder.path(),
            "partition.patches = 1",
            &format!("rest_texture = {unit}"),
            "",
        );
        let warnings = world.map(|world| world.warnings().join("\n"));
        let warnings = warnings.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(warnings.is_empty(), told.is_empty(), "{warnings}");
        assert!(warnings.contains(told), "{warnings}");
    }
}
