//! Scenes that load, scenes that are refused with the exact words, and hostile texts.

use std::path::{Path, PathBuf};

use glam::DVec3;
use proptest::prelude::*;
use weft_io::Show as _;

use weft_runtime::{POLICIES, Policy, Split};

use super::*;

const CLOTH: &str = r#"
[[cloth]]
grid = { size = "1 m", vertices = 20 }
material = { density = "0.15 kg/m2", stretch = "1000 N/m", bending = "1e-5 N m" }
"#;

/// A scene that says everything that can be said.
const FULL: &str = r#"
title = "Everything \"quoted\" µ"
name = "full"
gravity = ["1 m/s2", 0, -9.81]
[time]
step = "2 ms"
end = "1.5 s"
shortest = "0.1 ms"
strain_change = "5 %"
[[cloth]]
name = "sheet"
grid = { size = ["1 m", "50 cm"], vertices = [20, 30] }
center = [0.1, "5 cm", 1]
rotation = ["30 deg", 0, "0.1 rad"]
velocity = [0, 0, "-1 m/s"]
pins = [
    { nearest = [0, 0, 1] },
    { min = [0, 0, 0], max = [1, 1, 1] },
    { nearest = [1, 0, 1], rail = [3, 0, 4], velocity = [0, "10 cm/s", 0] },
    { nearest = [0, 1, 1], plane = [0, 0, 2], motion = { interpolation = "smooth", keyframes = [{ time = 0 }, { time = 1, turn = [0, 0, "5 deg"] }] } },
]
[cloth.material]
density = "150 g/m2"
stretch = "1 kN/m"
poisson = 0.25
bending = 0
damping_mass = "0.1 1/s"
damping_stiffness = "1 ms"
[[cloth]]
grid = { size = 0.3, vertices = [4, 5] }
material = { density = 0.1, stretch = 10, bending = 1e-6 }
[[body]]
shape = "sphere"
center = [0, 0, 0.2]
radius = "0.2 m"
surface = "analytic"
velocity = [0.3, 0, 0]
[[body]]
shape = "plane"
normal = [1, 2, 3]
[[body]]
shape = "box"
center = [1, 0, 0]
size = [0.1, 0.2, 0.3]
edge = "3 cm"
[[body]]
shape = "capsule"
from = [0, 0, 1]
to = [1, 0, 1]
radius = "10 cm"
friction = 0.7
[contact]
thickness = "3 mm"
self_collision = false
self_friction = 0.1
iterations = 7
strain_change = 0.2
[solver]
tolerance = 1e-8
max_iterations = 500
preconditioner = "patch-ssor"
integrator = "bdf2"
newton = 12
newton_tolerance = 1e-3
[partition]
patches = 64
[balance]
ranks = 3
steal = false
split = "oldest"
seed = 99
low_water = 5
split_interval = "10 ms"
steal_timeout = "0.2 ms"
[output]
interval = "40 ms"
frames = false
pictures = false
size = [320, 200]
camera = [2, 2, 2]
look_at = [0, 0, 0]
"#;

fn parse(text: &str) -> Result<Scene, SceneError> {
    Scene::parse(text, None, &[])
}

fn set(overrides: &[(&str, &str)]) -> Vec<(String, String)> {
    overrides
        .iter()
        .map(|&(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

#[track_caller]
fn refused(text: &str, overrides: &[(&str, &str)], message: &str) {
    let path = Path::new("scenes/x.toml");
    let error = Scene::parse(text, Some(path), &set(overrides)).expect_err("must be refused");
    assert_eq!(error.to_string(), message);
}

#[test]
fn all_keys_have_defaults_but_those_of_the_cloth() {
    let scene = parse(CLOTH).unwrap();
    assert_eq!(scene.name, "scene");
    assert_eq!(scene.time, Time::default());
    assert_eq!(scene.gravity.at(0.0), DVec3::new(0.0, 0.0, -9.81));
    assert_eq!(scene.contact, ContactParameters::default());
    assert_eq!(scene.solver, Solver::default());
    assert_eq!(scene.partition, Partition::default());
    assert_eq!(scene.balance, Balance::default());
    assert_eq!(scene.output, Output::default());
    assert_eq!(scene.cloths[0].material, Material::COTTON);
    assert_eq!(scene.bodies, []);
    assert_eq!(scene.sha256.len(), 64);
}

#[test]
fn every_key_arrives_in_si_units() {
    let scene = parse(FULL).unwrap();
    assert_eq!(scene.title, "Everything \"quoted\" µ");
    assert_eq!(scene.gravity.at(0.0), DVec3::new(1.0, 0.0, -9.81));
    assert_eq!(
        scene.time,
        Time {
            step: 0.002,
            end: 1.5,
            shortest: Some(1e-4),
            strain_change: 0.05,
        }
    );
    let [sheet, second] = scene.cloths.as_slice() else {
        panic!("two cloths")
    };
    assert_eq!(sheet.name, "sheet");
    assert_eq!(second.name, "cloth1");
    assert_eq!(
        sheet.source,
        ClothSource::Grid {
            size: [1.0, 0.5],
            vertices: [20, 30],
            center: DVec3::new(0.1, 0.05, 1.0),
            rotation: DVec3::new(30.0 * std::f64::consts::PI / 180.0, 0.0, 0.1),
        }
    );
    assert_eq!(
        sheet.material,
        Material {
            poisson: 0.25,
            bending: [0.0; 2],
            damping_mass: 0.1,
            ..Material::COTTON
        }
    );
    assert_eq!(sheet.velocity, DVec3::new(0.0, 0.0, -1.0));
    assert_eq!(
        sheet.pins,
        [
            Pin::still(Held::Nearest(DVec3::Z)),
            Pin::still(Held::Box {
                min: DVec3::ZERO,
                max: DVec3::ONE
            }),
            Pin {
                slide: Slide::Rail(DVec3::new(0.6, 0.0, 0.8)),
                velocity: DVec3::new(0.0, 0.1, 0.0),
                ..Pin::still(Held::Nearest(DVec3::new(1.0, 0.0, 1.0)))
            },
            Pin {
                slide: Slide::Plane(DVec3::Z),
                motion: Some(Motion {
                    center: DVec3::new(0.0, 1.0, 1.0),
                    interpolation: Interpolation::Smooth,
                    repeat: false,
                    keyframes: vec![
                        Keyframe {
                            time: 0.0,
                            translation: DVec3::ZERO,
                            turn: Turn::By(DVec3::ZERO),
                        },
                        Keyframe {
                            time: 1.0,
                            translation: DVec3::ZERO,
                            turn: Turn::By(DVec3::Z * 5.0 * (std::f64::consts::PI / 180.0)),
                        },
                    ],
                }),
                ..Pin::still(Held::Nearest(DVec3::new(0.0, 1.0, 1.0)))
            }
        ]
    );
    let [sphere, plane, cuboid, capsule] = scene.bodies.as_slice() else {
        panic!("four bodies")
    };
    assert_eq!(sphere.surface, Surface::Analytic);
    assert_eq!(sphere.velocity, DVec3::new(0.3, 0.0, 0.0));
    let Shape::Plane { normal, extent, .. } = plane.shape else {
        panic!("a plane")
    };
    assert!((normal.length() - 1.0).abs() < 1e-15);
    assert_eq!(extent, defaults::PLANE_EXTENT);
    assert_eq!(plane.surface, Surface::Triangles { edge: 4.0 / 32.0 });
    assert_eq!(cuboid.surface, Surface::Triangles { edge: 0.03 });
    assert_eq!(capsule.surface, Surface::Triangles { edge: 0.1 / 8.0 });
    assert_eq!(capsule.friction, InTime::constant(0.7));
    assert_eq!(scene.balance.policy.split, Split::OLDEST);
    assert_eq!(scene.balance.ranks, Some(3));
    assert_eq!(scene.partition.patches, Some(64));
    assert_eq!(
        scene.solver,
        Solver {
            tolerance: 1e-8,
            max_iterations: 500,
            velocity_tolerance: None,
            preconditioner: Preconditioner::PatchSsor,
            integrator: Integrator::Bdf2,
            newton: 12,
            newton_tolerance: 1e-3,
        }
    );
    assert_eq!(scene.contact.strain_change, Some(0.2));
    assert_eq!(scene.output.picture_size, [320, 200]);
}

/// Woven, sprung and folding cloth.
const MODELS: &str = r#"
[air]
wind = ["3 m/s", 0, 0]
[[cloth]]
grid = { size = 1, vertices = 5 }
weave = [0, 2, 0]
[cloth.material]
density = 0.1
stretch = ["2 kN/m", "500 N/m"]
shear = "40 N/m"
poisson = 0.2
bending = ["2e-5 N m", "5e-6 N m"]
bending_bias = "1e-5 N m"
damping_stiffness = "2 ms"
damping_shear = "5 ms"
drag_normal = 1.2
drag_tangential = 0.05
[[cloth]]
grid = { size = 1, vertices = 5 }
[cloth.material]
density = 0.1
model = "springs"
stretch = 100
bending_model = "springs"
bending = 1e-5
bending_radius = "3 cm"
damping_bending = "1 ms"
[[cloth]]
grid = { size = 1, vertices = 5 }
material = { density = 0.1, stretch = 100, bending = 1e-5, bending_model = "dihedral" }
"#;

/// Bodies that are turned when they are placed, and move.
const MOVED: &str = r#"
[[body]]
shape = "box"
center = [1, 0, 0]
size = 0.1
rotation = [0, 0, "30 deg"]
[body.motion]
keyframes = [
    { time = 0 },
    { time = "1 s", translation = [0, 0, "10 cm"] },
    { time = "2 s", rotation = [0, "90 deg", 0] },
    { time = "3 s", translation = [0, 0, 0] },
]
[[body]]
shape = "capsule"
from = [0, 0, 3]
to = [1, 0, 3]
radius = "10 cm"
motion.center = [0, 0, 3]
motion.interpolation = "smooth"
motion.repeat = true
motion.keyframes = [{ time = "0.5 s" }, { time = "1.5 s", turn = [0, 0, "360 deg"] }]
"#;

#[test]
fn bodies_have_motions() {
    let scene = parse(&format!(
        "{CLOTH}{}",
        MOVED.replace("size = 0.1", "size = [0.1, 0.1, 0.1]")
    ))
    .unwrap();
    let [cuboid, capsule] = scene.bodies.as_slice() else {
        panic!("two bodies")
    };
    let angle = std::f64::consts::FRAC_PI_2;
    let Shape::Box { rotation, .. } = cuboid.shape else {
        panic!("a box")
    };
    assert_eq!(rotation, DVec3::Z * (30.0 * std::f64::consts::PI / 180.0));
    let keyframe = |time, z, turn| Keyframe {
        time,
        translation: DVec3::Z * z,
        turn,
    };
    assert_eq!(
        cuboid.motion,
        Some(Motion {
            center: DVec3::X,
            interpolation: Interpolation::Linear,
            repeat: false,
            keyframes: vec![
                keyframe(0.0, 0.0, Turn::By(DVec3::ZERO)),
                keyframe(1.0, 0.1, Turn::By(DVec3::ZERO)),
                keyframe(2.0, 0.1, Turn::To(DVec3::Y * angle)),
                keyframe(3.0, 0.0, Turn::By(DVec3::ZERO)),
            ],
        })
    );
    let motion = capsule.motion.as_ref().unwrap();
    assert_eq!(
        (motion.center, motion.interpolation),
        (DVec3::Z * 3.0, Interpolation::Smooth)
    );
    assert!(motion.repeat && !capsule.is_still());
    assert_eq!(
        motion.keyframes[1],
        keyframe(1.5, 0.0, Turn::By(DVec3::Z * (4.0 * angle)))
    );
    assert_echoes(&scene);
    let moved = scene.echo_of_trajectory();
    let overrides = set(&[("body.1.motion.interpolation", "linear")]);
    let text = format!(
        "{CLOTH}{}",
        MOVED.replace("size = 0.1", "size = [0.1, 0.1, 0.1]")
    );
    let other = Scene::parse(&text, None, &overrides).unwrap();
    assert_ne!(moved, other.echo_of_trajectory());
}

#[test]
fn motions_that_cannot_be_are_refused() {
    let body = |motion: &str| {
        format!(
            "{}[[body]]\nshape = \"sphere\"\ncenter = [0, 0, 0]\nradius = 1\n{motion}",
            CLOTH.trim_start()
        )
    };
    let two = |keyframes: &str| body(&format!("motion.keyframes = [{keyframes}]"));
    let at = "scenes/x.toml:8: body.motion";
    for (text, message) in [
        (
            body("velocity = [0, 0, 1]\nmotion = { keyframes = [{ time = 0 }] }").replace("\nvelocity", " \nvelocity"),
            "scenes/x.toml:9: body.motion: a body has `velocity` or `motion`, not both; a motion with two keyframes has a \
             constant velocity between them"
                .to_owned(),
        ),
        (
            body("motion = {}"),
            format!(
                "{at}.keyframes: missing; it wants a line such as `keyframes = [{{ time = 0 }}, {{ time = \"1 s\", \
                 translation = [0, 0, 0.1] }}]`"
            ),
        ),
        (two(""), format!("{at}.keyframes: wants at least one keyframe")),
        (
            two("{ time = 1 }, { time = \"500 ms\" }"),
            format!("{at}.keyframes.1.time: 0.5 s is not later than the keyframe before, 1 s; keyframes want ascending times"),
        ),
        (
            two("{ time = nan }"),
            format!("{at}.keyframes.time: must be finite, not NaN"),
        ),
        (
            two("{ time = 0, speed = [0, 0, 1] }"),
            format!(
                "{at}.keyframes.speed: unknown key; here can be `rotation`, `time`, `translation`, `turn`"
            ),
        ),
        (
            two("{ time = 0, turn = [0, 0, 1], rotation = [0, 0, 1] }"),
            format!("{at}.keyframes.turn: a keyframe has `rotation` or `turn`, not both"),
        ),
        (
            two("{ time = 0 }, { time = 1, rotation = [0, 0, \"360 deg\"] }"),
            format!(
                "{at}.keyframes.1.rotation: turns by 180 deg or more, and `rotation` takes the shortest way; put a keyframe \
                 between, or give `turn`, axis times angle from the keyframe before, such as turn = [0, 0, \"360 deg\"]"
            ),
        ),
        (
            two("{ time = 0 }, { time = 0.01, turn = [0, 0, \"45 deg\"] }"),
            format!(
                "{at}.keyframes.1.time: this turns by 22.5 deg in a step of 0.005 s, and the most is 10 deg; take a \
                 later time, or a shorter time.step"
            ),
        ),
        (
            two("{ time = 0 }, { time = 1e9, turn = [0, 0, 1e5] }"),
            format!(
                "{at}.keyframes: turns round 15915 times in all; the most are 1000; a motion with repeat = true goes on for \
                 ever"
            ),
        ),
        (
            body("motion = { repeat = true, keyframes = [{ time = 0 }, { time = 1, translation = [0, 0, 1] }] }"),
            format!(
                "{at}.repeat: the last keyframe is not at the place of the first, and motions do not jump; add a keyframe at that place"
            ),
        ),
        (
            body("motion = { repeat = true, keyframes = [{ time = 0 }] }"),
            format!("{at}.repeat: one keyframe has no motion to repeat"),
        ),
        (
            body("mirror = \"x\""),
            "scenes/x.toml:8: body.mirror: unknown key".to_owned(),
        ),
    ] {
        let error = Scene::parse(&text, Some(Path::new("scenes/x.toml")), &[]).unwrap_err();
        let shown = error.to_string();
        assert!(shown.starts_with(&message), "{shown}\nnot\n{message}");
        assert_eq!(error.problems().len(), 1, "{shown}");
    }
    // Half a turn could go either way; a quarter three times could not.
    let half = two(
        "{ time = 0, rotation = [0, 0, \"90 deg\"] }, { time = 1, rotation = [0, 0, \"-90 deg\"] }",
    );
    assert!(parse(&half).is_err());
    let quarters = "{ time = 0 }, { time = 1, rotation = [0, 0, \"90 deg\"] }, { time = 2, rotation = [0, 0, \"180 deg\"] }, \
                    { time = 3, rotation = [0, 0, \"270 deg\"] }, { time = 4, rotation = [0, 0, \"360 deg\"] }";
    assert!(
        parse(&body(&format!(
            "motion = {{ repeat = true, keyframes = [{quarters}] }}"
        )))
        .is_ok()
    );
}

#[test]
fn materials_have_models_and_directions() {
    let scene = parse(MODELS).unwrap();
    assert_eq!(
        scene.air.wind.at(0.0).at(DVec3::ZERO),
        DVec3::new(3.0, 0.0, 0.0)
    );
    let woven = &scene.cloths[0];
    assert_eq!(woven.weave, Some(DVec3::Y));
    assert_eq!(
        woven.material,
        Material {
            density: 0.1,
            stretch: [2000.0, 500.0],
            shear: Some(40.0),
            poisson: 0.2,
            bending: [2e-5, 5e-6],
            bending_bias: Some(1e-5),
            bending_fit: true,
            damping: [0.002, 0.005, 0.002],
            drag: [1.2, 0.05].map(InTime::constant),
            ..Material::COTTON
        }
    );
    let sprung = &scene.cloths[1].material;
    assert_eq!(sprung.membrane, MembraneModel::Springs);
    assert_eq!(sprung.bending_model, BendingModel::Springs);
    assert_eq!(sprung.bending_radius, 0.03);
    let folding = &scene.cloths[2].material;
    assert!(folding.bending_fit && folding.is_isotropic() && !woven.material.is_isotropic());
    assert_echoes(&scene);
}

/// A fabric has all that a material needs, and other keys of the material differ from it.
#[test]
fn fabrics_have_names() {
    let with = |material: &str| {
        parse(&format!(
            "[[cloth]]\ngrid = {{ size = 1, vertices = 5 }}\nmaterial = {{ {material} }}"
        ))
    };
    for fabric in Fabric::ALL {
        let scene = with(&format!("fabric = \"{}\"", fabric.name)).unwrap();
        assert_eq!(scene.cloths[0].material, fabric.material());
        assert_echoes(&scene);
    }
    let denim = |more: &str| {
        let scene = with(&format!("fabric = \"denim\", {more}")).unwrap();
        assert_echoes(&scene);
        scene.cloths[0].material.clone()
    };
    let [_, measured, ..] = Fabric::ALL.map(|fabric| fabric.material());
    let changed = Material {
        strain_limit: 0.05,
        bending: [3e-5; 2],
        bending_bias: None,
        ..measured
    };
    assert_eq!(denim("strain_limit = \"5 %\", bending = 3e-5"), changed);
    let unlimited = denim("strain_limit = \"none\"");
    assert_eq!(unlimited.strain_limit, f64::INFINITY);
    let sprung = denim("model = \"springs\", stretch = 500");
    assert_eq!((sprung.density, sprung.shear), (0.324, None));
    let error = with("fabric = \"denin\"").unwrap_err();
    let [problem] = error.problems() else {
        panic!("one problem, not {error}")
    };
    assert!(problem.message.contains("denim"), "{}", problem.message);
}

/// `material` must be refused with one problem, this one.
#[track_caller]
fn refused_material(material: &str, key: &str, message: &str) {
    let text = format!(
        "[[cloth]]\ngrid = {{ size = 1, vertices = 5 }}\n[cloth.material]\ndensity = 0.1\n{material}"
    );
    let error = parse(&text).expect_err("must be refused");
    let [problem] = error.problems() else {
        panic!("one problem, not {error}")
    };
    assert_eq!(problem.key, format!("cloth.material.{key}"));
    assert!(problem.message.contains(message), "{}", problem.message);
}

#[test]
fn materials_that_cannot_be_are_refused() {
    refused_material(
        "stretch = [100, 3000]\nbending = 0",
        "poisson",
        "would gain energy",
    );
    refused_material(
        "stretch = 100\nbending = [4e-5, 1e-5]\nbending_bias = 1e-6",
        "bending_bias",
        "must be at least 2.5e-6 N m",
    );
    refused_material(
        "stretch = 100\nbending = [4e-5, 1e-5]\nbending_fit = false",
        "bending_fit",
        "take `true`",
    );
    refused_material(
        "stretch = 100\nbending = 1e-5\nbending_radius = 1",
        "bending_radius",
        "bending springs",
    );
    refused_material(
        "stretch = [100, 200]\nbending = 0\nmodel = \"springs\"",
        "stretch",
        "one stiffness",
    );
    for key in ["shear = 10", "poisson = 0.2", "damping_shear = 0"] {
        let name = key.split(' ').next().unwrap();
        let material = format!("stretch = 100\nbending = 0\nmodel = \"springs\"\n{key}");
        refused_material(&material, name, "from the mesh");
    }
    refused_material(
        "stretch = 100\nbending = 0\nmodel = \"spring\"",
        "model",
        "did you mean",
    );
    refused_material(
        "stretch = 100\nbending = 0\nshear = 0",
        "shear",
        "greater than 0",
    );
}

/// The message is about a key that was written, and its proposal is taken.
#[test]
fn a_fabric_of_springs_wants_one_stiffness() {
    let scene = |more: &str| {
        let text = format!(
            "[[cloth]]\ngrid = {{ size = 1, vertices = 9 }}\nmaterial = {{ fabric = \"denim\", model = \"springs\"{more} }}"
        );
        Scene::parse(&text, None, &[])
    };
    let refused = scene("").unwrap_err().to_string();
    assert!(refused.contains("cloth.material.model"), "{refused}");
    assert!(!refused.contains("material.stretch"), "{refused}");
    let proposed = refused.split('`').nth(1).unwrap();
    assert_eq!(proposed, "stretch = \"912 N/m\"", "{refused}");
    scene(&format!(", {proposed}")).unwrap();
}

#[test]
fn all_problems_are_told_at_once_sorted_by_line() {
    let text = r#"
[time]
step = "5 kg"
ende = "1 s"
[[cloth]]
grid = { size = "1 m", vertices = 1 }
material = { density = true, stretch = "1000 N/m", bendng = 1 }
[contact]
thickness = "-4 mm"
"#;
    refused(
        text,
        &[("solver.tolerance", "2")],
        "\
scenes/x.toml:3: time.step: `5 kg` is a mass; `time.step` wants a time, such as \"5 ms\"
scenes/x.toml:4: time.ende: unknown key; did you mean `end`?
scenes/x.toml:6: cloth.grid.vertices: must be from 2 to 20000000, not 1
scenes/x.toml:7: cloth.material.density: wants a mass per area, such as \"0.15 kg/m2\", not a boolean
scenes/x.toml:7: cloth.material.bending: missing; it wants a line such as `bending = \"1e-5 N m\"`
scenes/x.toml:7: cloth.material.bendng: unknown key; did you mean `bending`?
scenes/x.toml:9: contact.thickness: must be greater than 0, not -0.004 m
--set solver.tolerance=2: solver.tolerance: must be at least 1e-15 and less than 1, not 2",
    );
}

#[test]
fn bad_scenes_are_refused_with_these_words() {
    let cloth = |more: &str| format!("{}{more}", CLOTH.trim_start());
    let material = "material = { density = 0.15, stretch = 1000, bending = 1e-5 }";
    let ok = "scenes/x.toml";
    // Syntax.
    refused(
        "[time\nstep = 1",
        &[],
        &format!("{ok}:1:6: not TOML: unclosed table, expected `]`"),
    );
    refused(
        "a = 1\na = 2",
        &[],
        &format!(
            "{ok}:2:1: not TOML: duplicate key `a`, which line 1 has already; leave one of them out"
        ),
    );
    refused(
        "[time]\nstep = 1\nend = 2\nstep = 3",
        &[],
        &format!(
            "{ok}:4:1: not TOML: duplicate key `time.step`, which line 2 has already; leave one of \
             them out"
        ),
    );
    // Nothing to simulate.
    refused(
        "",
        &[],
        &format!("{ok}:1: cloth: missing; a scene has at least one `[[cloth]]`"),
    );
    refused(
        "cloth = []",
        &[],
        &format!("{ok}:1: cloth: a scene has at least one `[[cloth]]`"),
    );
    refused(
        "[cloth]",
        &[],
        &format!(
            "{ok}:1: cloth: wants tables, as in `[[cloth]]`, not a table\n\
             {ok}:1: cloth: a scene has at least one `[[cloth]]`"
        ),
    );
    refused(
        "[[cloth]]\nname = \"a\"",
        &[],
        &format!(
            "{ok}:1: cloth.grid: missing; it wants a line such as \
             `grid = {{ size = \"1 m\", vertices = 100 }}`\n\
             {ok}:1: cloth.material: missing; it wants a line such as `material = {{ density = \
             \"0.15 kg/m2\", stretch = \"1000 N/m\", bending = \"1e-5 N m\" }}`"
        ),
    );
    // Sizes, counts, numbers that are none.
    refused(
        &format!("[[cloth]]\ngrid = {{ size = [0, -1], vertices = [3, 3] }}\n{material}"),
        &[],
        &format!(
            "{ok}:2: cloth.grid.size: must be greater than 0, not 0 m\n\
             {ok}:2: cloth.grid.size: must be greater than 0, not -1 m"
        ),
    );
    refused(
        &format!("[[cloth]]\ngrid = {{ size = 1, vertices = 100000 }}\n{material}"),
        &[],
        &format!("{ok}:2: cloth.grid.vertices: 10000000000 vertices; the most are 20000000"),
    );
    refused(
        &format!("[[cloth]]\ngrid = {{ size = 1, vertices = [2.5, 1e300] }}\n{material}"),
        &[],
        &format!(
            "{ok}:2: cloth.grid.vertices: wants a whole number, not a number\n\
             {ok}:2: cloth.grid.vertices: wants a whole number, not a number"
        ),
    );
    refused(
        &cloth("center = [nan, inf, 1e300]"),
        &[],
        &format!(
            "{ok}:4: cloth.center: must be finite, not NaN\n\
             {ok}:4: cloth.center: must be finite, not inf\n\
             {ok}:4: cloth.center: 1e300 m is too large; the most is 1e12"
        ),
    );
    refused(
        &cloth(""),
        &[("cloth.material.poisson", "0.5")],
        "--set cloth.material.poisson=0.5: cloth.material.poisson: must be at least 0 and less than \
         0.5, not 0.5",
    );
    // Self collision of neighbours.
    refused(
        &format!("[[cloth]]\ngrid = {{ size = [1, \"20 cm\"], vertices = 100 }}\n{material}"),
        &[("contact.pairs", "all")],
        &format!(
            "{ok}:2: cloth.grid.vertices: cells of 2.020 mm along y are not larger than \
             contact.thickness, 4.000 mm, so that neighbours would push each other; take fewer \
             vertices, a smaller contact.thickness, contact.pairs = \"closest\", or \
             self_collision = false for this cloth"
        ),
    );
    refused(
        &format!(
            "[[cloth]]\ngrid = {{ size = 1, vertices = 100 }}\nthickness = \"12 mm\"\n{material}"
        ),
        &[("contact.pairs", "all")],
        &format!(
            "{ok}:2: cloth.grid.vertices: cells of 10.101 mm are not larger than cloth.thickness, \
             12.000 mm, so that neighbours would push each other; take fewer vertices, a smaller \
             cloth.thickness, contact.pairs = \"closest\", or self_collision = false for this cloth"
        ),
    );
    // Thickness and friction of one cloth or body.
    for (said, message) in [
        (
            "thickness = 0",
            "thickness: must be greater than 0, not 0 m",
        ),
        (
            "thickness = \"-1 mm\"",
            "thickness: must be greater than 0, not -0.001 m",
        ),
        ("thickness = nan", "thickness: must be finite, not NaN"),
        (
            "friction = -0.1",
            "friction: must not be negative, not -0.1",
        ),
        ("friction = nan", "friction: must be finite, not NaN"),
    ] {
        refused(&cloth(said), &[], &format!("{ok}:4: cloth.{message}"));
        let body = format!("[[body]]\nshape = \"plane\"\n{said}");
        refused(&cloth(&body), &[], &format!("{ok}:6: body.{message}"));
    }
    // Integrators.
    refused(
        &cloth("[solver]\nintegrator = \"newton\""),
        &[],
        &format!(
            "{ok}:5: solver.integrator: \"newton\" is none of \"euler\", \"bdf2\", \"newmark\", \
             \"central\""
        ),
    );
    refused(
        &cloth("[solver]\nintegrator = \"newmark\"\nnewton = 5"),
        &[],
        &format!(
            "{ok}:6: solver.newton: the equations of \"newmark\" are linear: there is nothing to iterate; \
             leave it out, or take integrator = \"euler\" or \"bdf2\""
        ),
    );
    // Time.
    refused(
        &cloth("[time]\nstep = \"1 ms\"\nshortest = \"2 ms\""),
        &[],
        &format!(
            "{ok}:6: time.shortest: parts of 0.002 s are longer than the steps, 0.001 s, that they are cut from"
        ),
    );
    refused(
        &cloth("[time]\nstep = \"5 ms\"\nshortest = \"4 ms\""),
        &[],
        &format!(
            "{ok}:6: time.shortest: steps of 0.005 s are halved, to 0.0025 s first, and parts of 0.004 s are longer: nothing would be \
             cut; give half a step or less"
        ),
    );
    parse(&cloth("[time]\nstep = \"5 ms\"\nshortest = \"2.5 ms\"")).unwrap();
    refused(
        &cloth("[time]\nstep = 3"),
        &[],
        &format!("{ok}:5: time.step: a step of 3 s is longer than `time.end`, 2 s"),
    );
    refused(
        &cloth("[time]\nstep = \"1 ns\"\nend = \"1 min\""),
        &[],
        &format!("{ok}:5: time.step: 60 s in steps of 1e-9 s are 6e10 steps; the most are 1e9"),
    );
    // Names, words, missing keys.
    refused(
        &cloth("[[body]]\nname = \"cloth0\"\nshape = \"sphre\"\n[[body]]\nradius = 1"),
        &[],
        &format!(
            "{ok}:5: body.0.name: `cloth0` is the name of another cloth, body or seam\n\
             {ok}:6: body.0.shape: \"sphre\" is none of \"sphere\", \"plane\", \"box\", \"capsule\", \
             \"mesh\"; did you mean `sphere`?\n\
             {ok}:7: body.1.shape: missing; it wants a line such as `shape = \"sphere\"`"
        ),
    );
    refused(
        &cloth(
            "[[body]]\nshape = \"sphere\"\ncenter = [0, 0]\nradius = 0\nsurface = \"analytic\"\nedge = 1",
        ),
        &[],
        &format!(
            "{ok}:6: body.center: wants 3 numbers, not 2\n\
             {ok}:7: body.radius: must be greater than 0, not 0 m\n\
             {ok}:9: body.edge: an analytic surface has no edges; take surface = \"triangles\""
        ),
    );
    refused(
        &cloth("[[body]]\nshape = \"plane\"\nnormal = [0, 0, 0]"),
        &[],
        &format!("{ok}:6: body.normal: has no direction; it wants a vector such as [0, 0, 1]"),
    );
    refused(
        &cloth("[partition]\npatches = 100\n[output]\ncamera = [1, 1, 1]\nlook_at = [1, 1, 1]"),
        &[],
        &format!(
            "{ok}:5: partition.patches: must be a power of two, such as 64 or 128, not 100\n\
             {ok}:8: output.look_at: the camera cannot look at the point where it stands"
        ),
    );
    refused(
        &cloth("pins = [{ nearest = [0, 0, 0], min = [0, 0, 0] }]"),
        &[],
        &format!(
            "{ok}:4: cloth.pins: wants one of `nearest = [x, y, z]`, both `min` and `max`, `group = \"NAME\"`, `vertices = [0, 1]`, and `near = {{ body = \"NAME\", within = \"5 mm\" }}`"
        ),
    );
    for (keys, message) in [
        (
            "rail = [1, 0, 0], plane = [1, 0, 0]",
            "plane: a pin slides along a `rail` or in a `plane`, not both",
        ),
        (
            "rail = [0, 0, 0]",
            "rail: has no direction; it wants a vector such as [1, 0, 0]",
        ),
        (
            "velocity = [1, 0, 0], follow = \"arm\"",
            "follow: a pin has one of `velocity`, `motion` and `follow`; a body that it follows has its own",
        ),
        (
            "velocity = [1, 0, 0], motion = { keyframes = [{ time = 0 }] }",
            "motion: a pin has `velocity` or `motion`, not both; a motion with two keyframes has a constant velocity between them",
        ),
        (
            "motion = { keyframes = [{ time = 0, translation = [0, 0, 1] }] }",
            "motion: the first keyframe of a pin is where the cloth starts: it takes neither translation nor rotation nor turn",
        ),
        (
            "speed = 1",
            "speed: unknown key; here can be `follow`, `from`, `group`, `max`, `min`, `motion`, `near`, `nearest`, `plane`, `rail`, `until`, `velocity`, `vertices`",
        ),
    ] {
        refused(
            &cloth(&format!("pins = [{{ nearest = [0, 0, 0], {keys} }}]")),
            &[],
            &format!("{ok}:4: cloth.pins.{message}"),
        );
    }
    refused(
        &cloth("[wind]\nspeed = 1"),
        &[],
        &format!(
            "{ok}:4: wind: unknown key; here can be `air`, `balance`, `body`, `cloth`, `contact`, \
             `detail`, `gravity`, `name`, `output`, `partition`, `seam`, `solver`, `start`, `time`, `title`"
        ),
    );
}

#[test]
fn overrides_replace_and_add_and_are_named_in_errors() {
    let overrides = set(&[
        ("time.step", "2ms"),
        ("solver.max_iterations", "77"),
        ("cloth.sheet.material.bending", "1e-4 N m"),
        ("cloth.1.grid.vertices", "[6, 7]"),
        ("body.2.velocity", "[1, 0, 0]"),
        ("balance.split", "never"),
        ("title", "another one"),
    ]);
    let scene = Scene::parse(FULL, None, &overrides).unwrap();
    assert_eq!(scene.time.step, 0.002);
    assert_eq!(scene.solver.max_iterations, 77);
    assert_eq!(scene.cloths[0].material.bending, [1e-4; 2]);
    let ClothSource::Grid { vertices, .. } = scene.cloths[1].source else {
        panic!("a grid")
    };
    assert_eq!(vertices, [6, 7]);
    assert_eq!(scene.bodies[2].velocity, DVec3::X);
    assert_eq!(scene.balance.policy.split, Split::NEVER);
    assert_eq!(scene.title, "another one");

    refused(
        CLOTH,
        &[("cloth.3.name", "a")],
        "--set cloth.3.name=a: `cloth` has no element 3; it has only element 0",
    );
    refused(
        FULL,
        &[("cloth.sheeet.name", "a")],
        "--set cloth.sheeet.name=a: `cloth` has 2 elements; name one by index or name, not \
         `sheeet`; did you mean `sheet`?",
    );
    refused(
        CLOTH,
        &[("time.stp", "2 ms")],
        "--set time.stp=2 ms: time.stp: unknown key; did you mean `step`?",
    );
    refused(
        CLOTH,
        &[("", "1")],
        "--set =1: wants `key.key=value` with no empty key",
    );
    refused(
        CLOTH,
        &[("gravity", "[1, 2")],
        "--set gravity=[1, 2: not a TOML value: unclosed array, expected `]`",
    );
    refused(
        FULL,
        &[("title.x", "1")],
        "--set title.x=1: `title` is a text, it has no keys",
    );
}

/// A policy that is named on the command line is that policy, whatever the scene says of its parts;
/// only keys that stand beside the name change some.
#[test]
fn a_policy_that_is_named_outside_a_scene_is_that_policy() {
    let own = r#"
        [balance]
        ranks = 3
        seed = 7
        policy = "lifelines"
        steal = false
        split = "oldest"
        victims = "last"
        split_interval = "10 ms"
        low_water = 5
        split_on_request = false
        steal_timeout = "0.2 ms"
        forecast = true
    "#;
    let text = format!("{own}{CLOTH}");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut shipped = Vec::new();
    for folder in ["scenes", "benches/study"].map(|name| folder.join(name)) {
        let files = std::fs::read_dir(folder)
            .unwrap()
            .map(|f| f.unwrap().path());
        shipped.extend(files.filter(|file| file.extension().is_some_and(|e| e == "toml")));
    }
    assert!(shipped.len() > 5, "{shipped:?}");
    for &(name, policy, _) in POLICIES {
        let named = set(&[("balance.policy", name)]);
        let scene = Scene::parse(&text, None, &named).unwrap();
        assert_eq!(scene.balance.policy, policy, "{name}");
        assert_eq!((scene.balance.ranks, scene.balance.seed), (Some(3), 7));
        for file in &shipped {
            let scene = Scene::load(file, &named).unwrap();
            assert_eq!(scene.balance.policy, policy, "{name} of {file:?}");
        }
    }
    // Keys beside the name count, before it or after it.
    let half = Policy {
        steal: false,
        ..Policy::HALF
    };
    for overrides in [
        [("balance.policy", "half"), ("balance.steal", "false")],
        [("balance.steal", "false"), ("balance . policy", "half")],
    ] {
        let scene = Scene::parse(&text, None, &set(&overrides)).unwrap();
        assert_eq!(scene.balance.policy, half);
    }
    // Within a scene, and without a name, keys change parts.
    let scene = Scene::parse(&text, None, &set(&[("balance.split", "half")])).unwrap();
    let policy = scene.balance.policy;
    assert!(!policy.steal && policy.forecast && policy.split == Split::HALF);
    assert_eq!(policy.low_water, 5);
    // Every key of the table is one of a policy or none.
    for line in own.lines().filter(|line| line.contains('=')) {
        let key = line.split('=').next().unwrap().trim();
        let is_of_policy = load::policy_key(&format!("balance.{key}")).is_some();
        assert_eq!(is_of_policy, !["ranks", "seed"].contains(&key), "{key}");
    }
    assert_eq!(load::policy_key("partition.policy"), None);
}

#[test]
fn the_echo_of_the_trajectory_names_only_keys_that_change_it() {
    let scene = Scene::parse(FULL, None, &[]).unwrap();
    let overrides = set(&[
        ("title", "another one"),
        ("time.end", "77 s"),
        ("balance.low_water", "7"),
        ("output.interval", "0.3 s"),
        ("contact.culling", "none"),
    ]);
    let other = Scene::parse(FULL, None, &overrides).unwrap();
    assert_ne!(scene.echo(), other.echo());
    let of_trajectory = scene.echo_of_trajectory();
    assert_eq!(of_trajectory, other.echo_of_trajectory());
    for left_out in ["title", "end =", "[balance]", "[output]", "culling"] {
        assert!(!of_trajectory.contains(left_out), "{left_out}");
    }
    let longer = set(&[("time.step", "3 ms")]);
    let longer = Scene::parse(FULL, None, &longer).unwrap();
    assert_ne!(of_trajectory, longer.echo_of_trajectory());
}

#[test]
fn only_the_first_twenty_problems_are_shown() {
    let text: String = (0..30).map(|i| format!("wrong_{i} = 1\n")).collect();
    let error = parse(&format!("{text}{CLOTH}")).unwrap_err();
    assert_eq!(error.problems().len(), 30);
    let shown = error.to_string();
    assert_eq!(shown.lines().count(), 21);
    assert!(shown.ends_with("\n... and 10 more"), "{shown}");
    assert!(
        shown.starts_with("scene:1: wrong_0: unknown key"),
        "{shown}"
    );
}

#[test]
fn missing_and_unreadable_files_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("drape.toml"), CLOTH).unwrap();
    std::fs::write(at("shirt.obj"), "").unwrap();

    assert_eq!(Scene::load(&at("drape.toml"), &[]).unwrap().name, "drape");
    let error = Scene::load(&at("drap.toml"), &[]).unwrap_err();
    let expected = format!(
        "no scene file at {}; did you mean `drape.toml`?",
        at("drap.toml").shown()
    );
    assert_eq!(error.to_string(), expected);
    let error = Scene::load(folder.path(), &[]).unwrap_err();
    assert!(matches!(error, SceneError::Unreadable { .. }), "{error}");

    std::fs::write(at("bytes.toml"), b"title = \"\"\n\xff").unwrap();
    let error = Scene::load(&at("bytes.toml"), &[]).unwrap_err().to_string();
    assert!(
        error.ends_with("bytes.toml:2: not a text in UTF-8"),
        "{error}"
    );

    let cloth = |mesh: &str| {
        format!(
            "[[cloth]]\nmesh = \"{mesh}\"\nmaterial = {{ density = 1, stretch = 1, bending = 1 }}"
        )
    };
    let path = at("x.toml");
    let error = Scene::parse(&cloth("shrt.obj"), Some(&path), &[])
        .unwrap_err()
        .to_string();
    let expected = format!(
        "{}:2: cloth.mesh: no file at {}; did you mean `shirt.obj`?",
        path.shown(),
        at("shrt.obj").shown()
    );
    assert_eq!(error, expected);
    let error = Scene::parse(&cloth("shirt.fbx"), Some(&path), &[])
        .unwrap_err()
        .to_string();
    assert!(
        error.ends_with(
            ":2: cloth.mesh: `shirt.fbx` is none of the files .obj, .ply, .stl, .glb, .gltf, .usd, .usda, .usdc, .usdz; export it as \
             OBJ or USD where it was made"
        ),
        "{error}"
    );
    // Only USD has prims, and they are echoed.
    let prim = |mesh: &str| {
        let text = cloth(mesh).replacen("mesh =", "prim = \"/root/Dress\"\nmesh =", 1);
        Scene::parse(&text, Some(&path), &[])
    };
    let error = prim("shirt.obj").unwrap_err().to_string();
    assert!(
        error.contains("cloth.prim: only files of USD have prims"),
        "{error}"
    );
    std::fs::write(at("shirt.usdc"), "").unwrap();
    let scene = prim("shirt.usdc").unwrap();
    let ClothSource::File { prim, .. } = &scene.cloths[0].source else {
        panic!("a file")
    };
    assert_eq!(prim.as_deref(), Some("/root/Dress"));
    assert_echoes(&scene);

    let scene = Scene::parse(&cloth("shirt.obj"), Some(&path), &[]).unwrap();
    let ClothSource::File { path: mesh, .. } = &scene.cloths[0].source else {
        panic!("a file")
    };
    assert_eq!(*mesh, at("shirt.obj"));
    assert_echoes(&scene);
}

#[track_caller]
fn assert_echoes(scene: &Scene) {
    let text = scene.echo();
    let mut again = parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    again.path.clone_from(&scene.path);
    again.sha256.clone_from(&scene.sha256);
    assert_eq!(again, *scene, "{text}");
}

#[test]
fn the_echo_of_a_scene_parses_to_the_same_scene() {
    assert_echoes(&parse(CLOTH).unwrap());
    let scene = parse(FULL).unwrap();
    assert_echoes(&scene);
    assert!(scene.echo().contains("damping_stiffness = \"0.001 s\""));
}

#[test]
fn every_scene_of_the_project_loads() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("scenes");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path
            .extension()
            .is_some_and(|extension| extension == "toml")
        {
            let scene = Scene::load(&path, &[]).unwrap_or_else(|error| panic!("{error}"));
            assert_echoes(&scene);
            assert!(!scene.title.is_empty());
            names.push(scene.name);
        }
    }
    for name in ["drape-floor", "drape-free", "quick", "turntable"] {
        assert!(names.iter().any(|found| found == name), "{name}");
    }
}

/// The sizes that the paper leaves open. Reference: §5.1.
#[test]
fn the_scenes_of_the_paper_have_ten_thousand_vertices_and_an_offset() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("scenes");
    for (name, radius, offset, bodies) in [
        ("drape-floor", 0.2, [0.10, 0.05], 2),
        ("drape-free", 0.16, [0.04, 0.02], 1),
    ] {
        let scene = Scene::load(&folder.join(format!("{name}.toml")), &[]).unwrap();
        assert_eq!(scene.bodies.len(), bodies);
        let ClothSource::Grid {
            size,
            vertices,
            center,
            ..
        } = scene.cloths[0].source
        else {
            panic!("a grid")
        };
        assert_eq!((size, vertices), ([1.0, 1.0], [100, 100]));
        assert_eq!([center.x, center.y], offset);
        assert!((center.z - (2.0 * radius + 0.02)).abs() < 1e-12);
        let Shape::Sphere {
            center,
            radius: actual,
        } = scene.bodies[0].shape
        else {
            panic!("a sphere")
        };
        assert_eq!((center, actual), (DVec3::new(0.0, 0.0, radius), radius));
        assert!(
            scene
                .bodies
                .iter()
                .all(|body| matches!(body.surface, Surface::Triangles { .. }))
        );
        assert!(
            scene
                .bodies
                .iter()
                .all(|body| body.friction == InTime::constant(0.5))
        );
        assert_eq!(scene.time.end, 2.0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn random_text_never_panics(text in "\\PC{0,200}") {
        let _ = parse(&text);
    }

    #[test]
    fn a_scene_with_random_damage_never_panics(
        cuts in proptest::collection::vec((0usize..2000, 0usize..30, "[\\[\\]{}=\"a-z0-9. \n-]{0,6}"), 1..6),
    ) {
        let mut text: Vec<char> = FULL.chars().collect();
        for (start, length, insert) in cuts {
            let start = start.min(text.len());
            let end = (start + length).min(text.len());
            text.splice(start..end, insert.chars());
        }
        let text: String = text.into_iter().collect();
        match parse(&text) {
            // An accepted scene is complete: its echo can be read again.
            Ok(scene) => assert_echoes(&scene),
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }

    #[test]
    fn random_values_of_any_key_never_panic_and_never_pass_unchecked(
        key in "(time|cloth|body|contact|output|balance|solver)(\\.[0-3])?\\.(step|end|motion|motion\\.keyframes|rotation|mirror|grid|size|center|edge|radius|pins|material|thickness|camera|seed|tolerance)(\\.[a-z0-9]{1,4})?",
        value in "(-?[0-9]{0,25}(\\.[0-9]{0,3})?(e-?[0-9]{1,3})?|nan|inf|\\[.{0,10}\\]|\\{.{0,10}\\}|true|\\PC{0,12})",
    ) {
        match Scene::parse(FULL, None, &[(key, value)]) {
            Ok(scene) => assert_echoes(&scene),
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }

    #[test]
    fn any_grid_round_trips_through_its_echo(
        size in [1e-3f64..1e3, 1e-3..1e3],
        center in [-1e3f64..1e3, -1e3..1e3, -1e3..1e3],
        step in 1e-6f64..1.0,
        seed in 0u64..=i64::MAX as u64,
    ) {
        let mut scene = parse(FULL).unwrap();
        let ClothSource::Grid { size: s, center: c, .. } = &mut scene.cloths[0].source else {
            unreachable!("FULL has a grid first")
        };
        *s = size;
        *c = DVec3::from_array(center);
        scene.time.step = step;
        // No part of a step is longer than the step.
        scene.time.shortest = Some(step / 3.0);
        scene.balance.seed = seed;
        assert_echoes(&scene);
    }
}

#[test]
fn pins_hold_vertices_by_number_and_follow_bodies() {
    let text = |body: &str| {
        format!(
            "[[cloth]]\nname = \"flag\"\ngrid = {{ size = 1, vertices = 9 }}\npins = [{{ vertices = [0, 8, 80], follow = \"{body}\" }}]\n\
             material = {{ density = 1, stretch = 1000, bending = 1e-5 }}\n[[body]]\nname = \"arm\"\nshape = \"sphere\"\n\
             center = [0, 0, 3]\nradius = 0.1\nmotion = {{ keyframes = [{{ time = 0 }}, {{ time = 1, translation = [1, 0, 0] }}] }}"
        )
    };
    let scene = parse(&text("arm")).unwrap();
    let pin = &scene.cloths[0].pins[0];
    assert_eq!(pin.held, Held::Vertices(vec![0, 8, 80]));
    assert_eq!(pin.motion, scene.bodies[0].motion);
    assert_echoes(&scene);
    assert!(
        scene.echo().contains("follow = \"arm\""),
        "{}",
        scene.echo()
    );
    let error = parse(&text("amr")).unwrap_err().to_string();
    assert!(
        error.contains(
            "pin 0 of cloth `flag` has follow = \"amr\", and no body has that name; did you mean `arm`?"
        ),
        "{error}"
    );
}

#[test]
fn many_ranks_of_large_cloth_subscribe_unless_the_scene_says() {
    let subscribing = |state: RankState| {
        [
            (1, 5_000_000),
            (15, 5_000_000),
            (16, 499_999),
            (16, 500_000),
            (4096, 10_000_000),
        ]
        .map(|(ranks, vertices)| state.subscribes(ranks, vertices))
    };
    assert_eq!(
        subscribing(RankState::Auto),
        [false, false, false, true, true]
    );
    assert_eq!(subscribing(RankState::Replicated), [false; 5]);
    assert_eq!(
        subscribing(RankState::Subscribed),
        [false, true, true, true, true]
    );
    assert_eq!(Partition::default().state, RankState::Auto);
}
