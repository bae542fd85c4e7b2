//! Bodies that deform: by files, by point caches and by skins, under cloth.

use std::path::Path;

use glam::DVec3;
use weft_runtime::ScopeOptions;
use weft_runtime::comm::solo::Solo;

use super::moving::{ends_the_same, turned};
use super::{Simulation, StepError, World, run};
use crate::collide::audit::crossings;
use crate::mesh::made::{Arm, Moved, about_z};
use crate::mesh::{TriMesh, cuboid, icosphere, turn, write_obj};
use crate::scene::Scene;
use crate::step::ObjectKind;

/// Writes a mesh as a file of a sequence.
fn write(folder: &Path, name: &str, mesh: &TriMesh) {
    let mut text = Vec::new();
    write_obj(mesh, &mut text).unwrap();
    std::fs::write(folder.join(name), text).unwrap();
}

fn ball() -> TriMesh {
    icosphere(DVec3::new(0.0, 0.0, -0.1), 0.08, 0.02).unwrap()
}

/// Writes the files of a ball whose vertices are moved by a function of them and of the sample.
fn sequence(folder: &Path, samples: u32, place: impl Fn(DVec3, f64) -> DVec3) {
    for sample in 0..samples {
        let mut mesh = ball();
        for p in &mut mesh.positions {
            *p = place(*p, f64::from(sample));
        }
        write(folder, &format!("ball.{:03}.obj", sample + 7), &mesh);
    }
}

/// A point cache of the same: the format by its ending.
fn cache(path: &Path, samples: &[Vec<DVec3>], rate: f32) {
    let is_mdd = path.extension().is_some_and(|ending| ending == "mdd");
    let (count, points) = (samples.len() as i32, samples[0].len() as i32);
    let mut bytes = Vec::new();
    if is_mdd {
        bytes.extend(count.to_be_bytes());
        bytes.extend(points.to_be_bytes());
        (0..count).for_each(|k| bytes.extend((k as f32 / rate).to_be_bytes()));
    } else {
        bytes.extend(b"POINTCACHE2\0");
        bytes.extend(1_i32.to_le_bytes());
        bytes.extend(points.to_le_bytes());
        bytes.extend(0_f32.to_le_bytes());
        bytes.extend(1_f32.to_le_bytes());
        bytes.extend(count.to_le_bytes());
    }
    for number in samples.iter().flatten().flat_map(DVec3::to_array) {
        let number = number as f32;
        bytes.extend(if is_mdd {
            number.to_be_bytes()
        } else {
            number.to_le_bytes()
        });
    }
    std::fs::write(path, bytes).unwrap();
}

/// A sheet of 0.3 m by 0.3 m over a body.
fn text(cloth: &str, body: &str, rest: &str) -> String {
    format!(
        r#"
        time = {{ step = "4 ms", end = "2 s" }}
        contact.thickness = "4 mm"
        partition.patches = 4
        {rest}
        [[cloth]]
        grid = {{ size = "0.3 m", vertices = 16 }}
        rotation = [0, 0, 0.3]
        material = {{ density = "0.15 kg/m2", stretch = "300 N/m", bending = "1e-5 N m", damping_stiffness = "4 ms" }}
        {cloth}
        [[body]]
        name = "ball"
        shape = "mesh"
        {body}
        "#
    )
}

fn scene(folder: &Path, text: &str) -> Scene {
    Scene::parse(text, Some(&folder.join("scene.toml")), &[]).unwrap()
}

fn world(folder: &Path, text: &str) -> World {
    World::build(&scene(folder, text)).unwrap()
}

const SEQUENCE: &str = "sequence = \"ball.*.obj\"\nrate = 25";

/// Vertices that all go alike are a rigid body: by numbers without rounding, to the last bit.
/// Contacts change from face to face, so that another last bit would be a micrometre a few steps
/// later.
#[test]
fn a_sequence_that_is_only_moved_is_a_rigid_body() {
    let folder = tempfile::tempdir().unwrap();
    let velocity = DVec3::new(0.125, 0.0, 0.25);
    let coarse = |p: DVec3| (p * 1_048_576.0).round() / 1_048_576.0;
    sequence(folder.path(), 17, |p, k| coarse(p) + velocity * (k / 64.0));
    let mut still = ball();
    still.positions.iter_mut().for_each(|p| *p = coarse(*p));
    write(folder.path(), "still.obj", &still);
    for certify in ["", "contact.certify = true"] {
        let scene = |body| text("", body, certify).replace("\"4 ms\", end", "0.00390625, end");
        let rigid = "mesh = \"still.obj\"\nvelocity = [0.125, 0, 0.25]";
        let one = world(folder.path(), &scene(rigid));
        let two = world(folder.path(), &scene(&SEQUENCE.replace("25", "64")));
        let (one, two) = (run(&one, 60, |_| {}), run(&two, 60, |_| {}));
        assert!(one.positions().iter().any(|x| x.z > 0.0));
        assert!(one.positions() == two.positions(), "{certify}");
        assert!(one.velocities() == two.velocities(), "{certify}");
    }
}

/// A plate that turns by its motion, and one whose samples are turned, take cloth along by friction
/// at 60° a second, as a rigid plate does.
#[test]
fn a_sequence_that_turns_takes_cloth_along_as_a_rigid_body_does() {
    let folder = tempfile::tempdir().unwrap();
    let plate = cuboid(DVec3::new(0.0, 0.0, -0.05), DVec3::new(0.6, 0.6, 0.1), 0.1).unwrap();
    for sample in 0..11 {
        write(folder.path(), &format!("still.{sample}.obj"), &plate);
        let mut turned = plate.clone();
        let by = turn(DVec3::Z * (6.0 * f64::from(sample)).to_radians());
        turned.positions.iter_mut().for_each(|p| *p = by * *p);
        write(folder.path(), &format!("turned.{sample}.obj"), &turned);
    }
    let motion = "motion = { center = [0, 0, -0.05], keyframes = [{ time = 0 }, { time = 1, turn = [0, 0, \"60 deg\"] }] }";
    let of = |body: &str| {
        let body = format!("{body}\nfriction = 0.8");
        world(folder.path(), &text("center = [0, 0, 0.005]", &body, ""))
    };
    let rigid = of(&format!("mesh = \"still.0.obj\"\n{motion}"));
    let by_motion = of(&format!("sequence = \"still.*.obj\"\nrate = 10\n{motion}"));
    let by_samples = of("sequence = \"turned.*.obj\"\nrate = 10");
    for time in [0.0, 0.013, 0.3, 1.5] {
        let [one, two, three] = [&rigid, &by_motion, &by_samples].map(|w| w.moved_bodies(time));
        assert!(one[0].1.positions == two[0].1.positions, "{time}");
        // A chord of 6 degrees is a thousandth of the radius from its arc.
        let apart = one[0].1.positions.iter().zip(&three[0].1.positions);
        assert!(
            apart.into_iter().all(|(a, b)| a.distance(*b) < 1e-3),
            "{time}"
        );
    }
    for world in [&by_motion, &by_samples] {
        let mut before = Vec::new();
        let s = run(world, 200, |s| {
            if s.step() == 100 {
                before = s.positions().to_vec();
            }
            assert!(world.deepest(s.positions(), s.time()) < 0.0, "{}", s.step());
        });
        let (angle, uneven) = turned(&before, s.positions());
        assert!(
            (angle - 24.0).abs() < 0.2 && uneven < 0.4,
            "{angle} {uneven}"
        );
    }
}

/// A ball that breathes, and is dented while it does.
fn breathing(p: DVec3, k: f64) -> DVec3 {
    let center = DVec3::new(0.0, 0.0, -0.1);
    let r = p - center;
    let dent = 0.15 * (40.0 * r.x).sin() * (k * 0.4).sin();
    center + r * (1.0 + 0.25 * (k * 0.7).sin() + dent)
}

#[test]
fn cloth_on_a_body_that_breathes_is_certified_and_does_not_depend_on_ranks() {
    let folder = tempfile::tempdir().unwrap();
    sequence(folder.path(), 14, breathing);
    let certified = "contact.certify = true";
    let world = world(folder.path(), &text("", SEQUENCE, certified));
    let mut lowest = 0.0_f64;
    let s = run(&world, 110, |s| {
        let (x, time) = (s.positions(), s.time());
        assert_eq!(crossings(x, world.model().triangles()).len(), 0);
        assert_eq!(world.crossings_with_bodies(x, time), 0, "{}", s.step());
        assert!(world.deepest(x, time) < 0.0, "{}", s.step());
        lowest = x.iter().map(|x| x.z).fold(lowest, f64::min);
    });
    assert!(lowest < -0.05 && s.squeezed().is_empty());
    drop(s);
    // Three ranks, from the start and from a state in between.
    assert!(ends_the_same(&world, 60, 33) > 0);
}

/// A body that is wrung at 3000 degrees a second, and crushed onto a plate: cloth is let through
/// and marked, and cloth never goes through cloth.
#[test]
fn bodies_that_close_on_cloth_let_it_through() {
    let folder = tempfile::tempdir().unwrap();
    sequence(folder.path(), 4, |p, k| {
        let turn = 0.4 * k * (p.z + 0.1) / 0.08;
        let (sine, cosine) = turn.sin_cos();
        let r = DVec3::new(cosine * p.x - sine * p.y, sine * p.x + cosine * p.y, p.z);
        r + DVec3::Z * (0.05 * k)
    });
    let plate = "[[body]]\nshape = \"box\"\ncenter = [0, 0, 0.04]\nsize = [0.6, 0.6, 0.02]";
    let certified = "contact.certify = true";
    let text = format!("{}\n{plate}", text("", SEQUENCE, certified));
    let world = world(folder.path(), &text);
    let mut squeezed = 0;
    run(&world, 45, |s| {
        let triangles = world.model().triangles();
        assert_eq!(crossings(s.positions(), triangles).len(), 0, "{}", s.step());
        squeezed = squeezed.max(s.squeezed().len());
    });
    assert!(squeezed > 0);
}

/// A point cache has 32 bits, and so differs from the files by as much.
#[test]
fn point_caches_are_the_sequence_of_their_mesh() {
    let folder = tempfile::tempdir().unwrap();
    sequence(folder.path(), 6, breathing);
    let samples: Vec<Vec<DVec3>> = (0..6)
        .map(|k| {
            let of = ball().positions.into_iter();
            of.map(|p| breathing(p, f64::from(k))).collect()
        })
        .collect();
    for name in ["ball.pc2", "ball.mdd"] {
        cache(&folder.path().join(name), &samples, 25.0);
    }
    write(folder.path(), "ball.obj", &ball());
    let of_files = world(folder.path(), &text("", SEQUENCE, ""));
    for body in [
        "sequence = \"ball.pc2\"\nrate = 25",
        "sequence = \"ball.mdd\"",
    ] {
        let body = format!("mesh = \"ball.obj\"\n{body}");
        let world = world(folder.path(), &text("", &body, ""));
        for time in [0.0, 0.01, 0.05, 0.17, 9.0] {
            let [one, two] = [&of_files, &world].map(|world| world.moved_bodies(time));
            let both = one[0].1.positions.iter().zip(&two[0].1.positions);
            assert!(both.into_iter().all(|(a, b)| a.distance(*b) < 1e-7));
        }
    }
}

/// A pinned border goes where the surface below it goes.
#[test]
fn pins_follow_the_surface_of_a_body_that_deforms() {
    let folder = tempfile::tempdir().unwrap();
    let center = DVec3::new(0.0, 0.0, -0.1);
    sequence(folder.path(), 6, |p, k| {
        center + (p - center) * (1.0 + 0.1 * k)
    });
    let cloth = "center = [0, 0, 0.05]\npins = [{ min = [-0.16, -1, -1], max = [-0.14, 1, 1], follow = \"ball\" }]";
    let world = world(folder.path(), &text(cloth, SEQUENCE, ""));
    let start: Vec<DVec3> = world.model().start().to_vec();
    let s = run(&world, 50, |_| {});
    let surface = |p: DVec3, radius: f64| center + (p - center).normalize() * radius;
    let mut held = 0;
    for (vertex, &at) in start.iter().enumerate() {
        if world.pinned()[vertex] {
            // The offset from the facet that was nearest stays; facets of a ball are near spheres.
            let known = at + surface(at, 0.12) - surface(at, 0.08);
            let off = s.positions()[vertex].distance(known);
            assert!(off < 0.006, "{off}");
            held += 1;
        }
    }
    let in_box = start.iter().filter(|x| (-0.16..=-0.14).contains(&x.x));
    assert!(held == in_box.count() && held > 4, "{held}");
}

/// The problem that a scene is refused for.
fn refused(folder: &Path, body: &str) -> String {
    let text = text("center = [0, 0, 0.3]", body, "");
    let scene = Scene::parse(&text, Some(&folder.join("scene.toml")), &[]);
    match scene {
        Ok(scene) => World::build(&scene).unwrap_err().to_string(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn samples_that_are_wrong_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    sequence(at, 5, |p, _| p);
    write(at, "ball.obj", &ball());
    let names = |told: &str, parts: &[&str]| {
        for part in parts {
            assert!(told.contains(part), "{part} in {told}");
        }
    };
    // Another topology from some file on.
    let other = icosphere(DVec3::ZERO, 0.08, 0.03).unwrap();
    write(at, "ball.010.obj", &other);
    names(
        &refused(at, SEQUENCE),
        &["ball.010.obj", "vertices and", "the first"],
    );
    let mut turned = ball();
    turned.triangles[3].rotate_left(1);
    write(at, "ball.010.obj", &turned);
    names(&refused(at, SEQUENCE), &["ball.010.obj", "triangle 3"]);
    // A number that is no place.
    let mut far = ball();
    far.positions[5].y = 1e300;
    write(at, "ball.010.obj", &far);
    names(&refused(at, SEQUENCE), &["ball.010.obj", "vertex 5"]);
    // A number that is missing, and one that is there twice.
    std::fs::remove_file(at.join("ball.010.obj")).unwrap();
    names(
        &refused(at, SEQUENCE),
        &["no file of number 10", "ball.009.obj"],
    );
    write(at, "ball.10.obj", &ball());
    write(at, "ball.010.obj", &ball());
    names(&refused(at, SEQUENCE), &["two files of number 10"]);
    std::fs::remove_file(at.join("ball.10.obj")).unwrap();
    // One file is no sequence.
    write(at, "alone.3.obj", &ball());
    names(
        &refused(at, "sequence = \"alone.*.obj\"\nrate = 25"),
        &["alone.3.obj", "at least 2", "`mesh`"],
    );
    // Keys that do not go together.
    for (body, part) in [
        ("sequence = \"ball.*.obj\"", "rate = 25"),
        ("sequence = \"none.*.obj\"\nrate = 25", "names no file"),
        ("sequence = \"ball.obj\"\nrate = 25", "wants one `*`"),
        ("sequence = \"ball.*.fbx\"\nrate = 25", "point cache"),
        ("mesh = \"ball.obj\"\nrate = 25", "of a `sequence`"),
        ("sequence = \"ball.pc2\"\nrate = 25", "no file at"),
        ("rate = 25", "mesh = "),
    ] {
        names(&refused(at, body), &[part]);
    }
    // Point caches.
    let samples = vec![ball().positions; 4];
    let path = at.join("ball.pc2");
    cache(&path, &samples, 25.0);
    let whole = std::fs::read(&path).unwrap();
    let body = "mesh = \"ball.obj\"\nsequence = \"ball.pc2\"\nrate = 25";
    for (bytes, parts) in [
        (&whole[..whole.len() - 1], &["ends early, in sample 3"][..]),
        (&whole[..20], &["ends in its header"]),
        (b"POINTCACHE3", &["ends in its header"]),
        (
            &[&b"POINTCACHE3\0"[..], &whole[12..]].concat(),
            &["POINTCACHE2"],
        ),
        (&[&whole[..], &[0; 4]].concat(), &["take"]),
        (
            &[&whole[..16], &9_i32.to_le_bytes(), &whole[20..]].concat(),
            &["it has 9 points"],
        ),
        (
            &[&whole[..28], &1_i32.to_le_bytes(), &whole[32..]].concat(),
            &["it has 1 samples", "2 to"],
        ),
    ] {
        std::fs::write(&path, bytes).unwrap();
        names(&refused(at, body), &[&["ball.pc2"], parts].concat());
    }
    let mut bad = samples.clone();
    bad[2][7].x = f64::NAN;
    cache(&path, &bad, 25.0);
    names(
        &refused(at, body),
        &["ball.pc2", "sample 2", "vertex 7", "NaN"],
    );
    let path = at.join("ball.mdd");
    cache(&path, &samples, -25.0);
    let body = "mesh = \"ball.obj\"\nsequence = \"ball.mdd\"";
    names(&refused(at, body), &["ball.mdd", "sample 1", "ascend"]);
    cache(&path, &samples, 25.0);
    let body = format!("{body}\nrate = 25");
    names(&refused(at, &body), &["leave it out"]);
}

/// A step whose sample has vanished since fails, and is not kept.
#[test]
fn a_sample_that_vanishes_while_the_run_goes_on_stops_it() {
    let folder = tempfile::tempdir().unwrap();
    sequence(folder.path(), 5, |p, _| p);
    let world = world(folder.path(), &text("", SEQUENCE, ""));
    let mut comm = Solo::new();
    let mut s = Simulation::new(&world, &comm, &ScopeOptions::default()).unwrap();
    std::fs::remove_file(folder.path().join("ball.009.obj")).unwrap();
    let failed = loop {
        match s.advance(&mut comm) {
            Ok(_) => assert!(s.step() < 11),
            Err(error) => break error,
        }
    };
    assert!(matches!(&failed, StepError::Body { body, .. } if body == "ball"));
    let told = failed.to_string();
    assert!(
        told.contains("ball.009.obj") && told.contains("--resume"),
        "{told}"
    );
    // The second sample is at 40 ms, and a step that ends there ends behind it by rounding.
    assert!((9..=10).contains(&s.step()), "{}", s.step());
}

/// A run is of the samples that its bodies deform by.
#[test]
fn other_samples_are_another_world() {
    let folder = tempfile::tempdir().unwrap();
    sequence(folder.path(), 5, breathing);
    let text = text("", SEQUENCE, "");
    let before = world(folder.path(), &text).digest();
    assert_eq!(before, world(folder.path(), &text).digest());
    let mut last = ball();
    last.positions.iter_mut().for_each(|p| p.x *= 1.5);
    write(folder.path(), "ball.011.obj", &last);
    assert_ne!(before, world(folder.path(), &text).digest());
    // The echo of a scene is read as the scene.
    let scene = scene(folder.path(), &text);
    let again = Scene::parse(&scene.echo(), None, &[]).unwrap();
    assert_eq!(again.bodies, scene.bodies);
}

/// An arm of 2 m along x whose elbow is at x = 1, with y upwards; it rises by 60 mm with its
/// shoulder, and its lower half by an angle besides.
fn arm(degrees: f64) -> Arm {
    let mesh = cuboid(DVec3::new(1.0, 0.0, 0.0), DVec3::new(2.0, 0.2, 0.6), 0.1).unwrap();
    let rises = [
        [0.0; 3],
        [0.0; 3],
        [0.0; 3],
        [0.0; 3],
        [0.0, 0.06, 0.0],
        [0.0; 3],
    ];
    Arm {
        moved: vec![
            Moved {
                node: 1,
                path: "translation",
                between: "CUBICSPLINE",
                times: vec![0.2, 0.6],
                values: rises.concat(),
            },
            Moved {
                node: 2,
                path: "rotation",
                between: "LINEAR",
                times: vec![0.2, 0.6],
                values: [about_z(0.0), about_z(degrees)].concat(),
            },
        ],
        ..Arm::of(&mesh, |x| (2.0 * (x - 1.0) + 0.5).clamp(0.0, 1.0))
    }
}

/// The arm's upper side is at the origin, with the elbow there.
const ARM: &str = "sequence = \"arm.glb\"\nrate = 50\ntranslation = [-1, 0, -0.106]";

/// Cloth that lies on an arm goes up with it, turns with its lower half, and crosses nothing.
#[test]
fn cloth_on_an_arm_that_lifts_goes_along() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("arm.glb"), arm(8.0).bytes()).unwrap();
    let body = format!("{ARM}\nfriction = 0.8");
    let text = text("center = [0.3, 0, 0]", &body, "contact.certify = true");
    let world = world(folder.path(), &text);
    let s = run(&world, 200, |s| {
        let (x, time) = (s.positions(), s.time());
        assert_eq!(crossings(x, world.model().triangles()).len(), 0);
        assert_eq!(world.crossings_with_bodies(x, time), 0, "{}", s.step());
        assert!(world.deepest(x, time) < 0.0, "{}", s.step());
    });
    assert!(s.squeezed().is_empty());
    // The lower half of the arm is a plane that was raised and turned about the elbow, 0.1 m below.
    let (sine, cosine) = 8_f64.to_radians().sin_cos();
    for (p, before) in s.positions().iter().zip(world.model().start()) {
        let r = DVec3::new(before.x, 0.0, before.z + 0.106);
        let known = cosine * r.z + sine * r.x + 0.06 - 0.106;
        let along = cosine * r.x - sine * r.z;
        // It bends near the elbow, and cloth hangs over its sides nowhere.
        if before.x > 0.3 {
            let off = DVec3::new(p.x - along, p.y - before.y, p.z - known);
            assert!(off.length() < 6e-3, "{off}");
        }
    }
    drop(s);
    assert!(ends_the_same(&world, 90, 60) > 0);
}

/// A figure is placed as other files are, with samples up to the end of the animation.
#[test]
fn a_figure_is_sampled_and_placed_as_other_sequences_are() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::write(at.join("arm.glb"), arm(30.0).bytes()).unwrap();
    let placed =
        "scale = 0.5\nrotation = [0, 0, \"90 deg\"]\ntranslation = [0, -1, -0.2]\nmirror = \"y\"";
    let of = |body: &str| world(at, &text("center = [0, 0, 0.5]", body, ""));
    let one = of(&format!("sequence = \"arm.glb\"\nrate = 7\n{placed}"));
    let samples = |world: &World| match world.sizes()[1].kind {
        ObjectKind::Body { deforms, .. } => deforms,
        ObjectKind::Cloth { .. } => None,
    };
    let end = f64::from(0.6_f32);
    assert_eq!(samples(&one), Some((6, end)));
    let start = &one.moved_bodies(0.0)[0].1;
    // The mesh itself stands as the arm does at rest, and so do numbered files of its samples.
    for name in ["mesh = \"arm.glb\"\n", ""] {
        let two = of(&format!("{name}sequence = \"arm.glb\"\n{placed}"));
        assert_eq!(samples(&two), Some((73, end)));
        let placed = &two.moved_bodies(0.0)[0].1;
        assert_eq!(placed, start);
    }
    let still = of(&format!("mesh = \"arm.glb\"\n{placed}"));
    let still = &still.body_meshes()[0];
    let both = &still.positions;
    assert!(
        both.iter()
            .zip(&start.positions)
            .all(|(a, b)| a.distance(*b) < 1e-7)
    );
    assert_eq!(still.triangles, start.triangles);
    // From one sample to the next vertices go straight.
    let [a, b, half] = [1.0, 2.0, 1.5].map(|k| one.moved_bodies(k / 7.0)[0].1.positions.clone());
    for ((a, b), half) in a.iter().zip(&b).zip(&half) {
        assert!(a.midpoint(*b).distance(*half) < 1e-14);
    }
    // A run does not read the file again, and another file is another world.
    let digest = one.digest();
    std::fs::write(at.join("arm.glb"), arm(31.0).bytes()).unwrap();
    assert_ne!(
        of(&format!("sequence = \"arm.glb\"\nrate = 7\n{placed}")).digest(),
        digest
    );
    std::fs::remove_file(at.join("arm.glb")).unwrap();
    assert!(one.prepare_bodies(1, [0.5, 0.55]).is_ok());
}

#[test]
fn figures_that_are_wrong_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let names = |body: &str, parts: &[&str]| {
        let told = refused(at, body);
        for part in parts {
            assert!(told.contains(part), "{part} in {told}");
        }
    };
    let whole = arm(8.0).bytes();
    let path = at.join("arm.glb");
    std::fs::write(&path, &whole[..whole.len() - 9]).unwrap();
    names(ARM, &["body `ball`", "arm.glb", "it says that it has"]);
    std::fs::write(&path, &whole).unwrap();
    write(at, "ball.obj", &ball());
    let other = "mesh = \"ball.obj\"\nsequence = \"arm.glb\"";
    names(
        other,
        &["arm.glb", "the body's mesh has", "leave out `mesh`"],
    );
    let walk = format!("{ARM}\nanimation = \"walk\"");
    names(&walk, &["arm.glb", "no animation `walk`", "`lift`"]);
    let often = ARM.replace("rate = 50", "rate = 1e9");
    names(&often, &["arm.glb", "ends at 0.6", "smaller `rate`"]);
    names(
        "mesh = \"arm.glb\"\nanimation = \"lift\"",
        &["of a `sequence`"],
    );
    names("sequence = \"none.glb\"", &["no file at"]);
    sequence(at, 2, |p, _| p);
    names(
        &format!("{SEQUENCE}\nanimation = \"lift\""),
        &["of a figure"],
    );
    // Numbers that lead nowhere.
    let mut far = arm(8.0);
    far.inverse_bind[0][13] = 3e38;
    far.moved[0].values[13] = 3e38;
    std::fs::write(&path, far.bytes()).unwrap();
    names(ARM, &["arm.glb", "vertex"]);
}
