//! Worlds that were prepared against worlds that were built, and files that are refused.

use std::fs;
use std::path::Path;

use glam::DVec3;
use weft_runtime::ScopeOptions;
use weft_runtime::comm::threads::launch;

use super::*;
use crate::step::Simulation;

/// Cloth of several thicknesses and kinds of elements over moving bodies, of which one is a mesh.
const SCENE: &str = r#"
    time = { step = "2 ms", end = "1 s" }
    contact = { thickness = "8 mm" }
    [[cloth]]
    grid = { size = 1, vertices = 26 }
    center = [0, 0, 0.2]
    pins = [{ nearest = [-0.5, -0.5, 0.2] }]
    material = { density = 0.15, stretch = 1000, bending = 1e-5 }
    [[cloth]]
    grid = { size = 0.6, vertices = 20 }
    center = [0, 0, 0.22]
    friction = 0.4
    thickness = "5 mm"
    velocity = [0, 0, -1]
    material = { density = 0.2, stretch = 800, bending = 1e-5, model = "springs" }
    [[body]]
    shape = "sphere"
    center = [0, 0, 0]
    radius = 0.15
    velocity = [0.1, 0, 0]
    [[body]]
    shape = "box"
    size = [0.3, 0.3, 0.1]
    center = [0.3, 0.3, 0]
    edge = 0.05
"#;

fn scene(text: &str) -> Scene {
    Scene::parse(text, None, &[]).unwrap()
}

fn with_file(text: &str, path: &Path) -> Scene {
    let mut scene = scene(text);
    scene.partition.file = Some(path.to_owned());
    scene
}

/// Reads a file into memory that stays: what a mapping is to those who have one.
fn map(file: &File) -> io::Result<&'static [u8]> {
    let mut bytes = vec![0; file.metadata()?.len() as usize];
    read_at(file, 0, &mut bytes)?;
    // In units that are aligned as arrays must be.
    let mut units = vec![0_u128; bytes.len().div_ceil(16)];
    let room: &mut [u8] = bytemuck::cast_slice_mut(&mut units);
    room[..bytes.len()].copy_from_slice(&bytes);
    let all: &'static [u128] = Vec::leak(units);
    Ok(&bytemuck::cast_slice(all)[..bytes.len()])
}

const MAPPING: Mapping = Mapping {
    map,
    process: 0,
    processes: 1,
};

fn mapped(scene: &Scene) -> Result<World, WorldError> {
    World::build_mapped(scene, 1, &|_| Ok(()), MAPPING)
}

fn prepare(text: &str, path: &Path) -> World {
    let world = World::build(&scene(text)).unwrap();
    let mut bytes = Vec::new();
    world.write_prepared(&mut bytes).unwrap();
    fs::write(path, bytes).unwrap();
    world
}

/// The state after some steps on this many ranks.
fn run(world: &World, ranks: usize, steps: usize) -> (Vec<DVec3>, Vec<DVec3>) {
    let states = launch(ranks, |comm| {
        let options = ScopeOptions::default();
        let mut simulation = Simulation::new(world, comm, &options).unwrap();
        for _ in 0..steps {
            simulation.advance(comm).unwrap();
        }
        simulation.complete(comm).unwrap();
        (
            simulation.positions().to_vec(),
            simulation.velocities().to_vec(),
        )
    });
    states.unwrap().swap_remove(0)
}

#[test]
fn a_prepared_world_is_the_world_that_was_built() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.world");
    for more in [
        "",
        "partition.state = \"subscribed\"\n",
        "solver.preconditioner = \"block-jacobi\"\nbalance.steal = false\n",
    ] {
        let text = format!("{more}{SCENE}");
        let made = prepare(&text, &path);
        let scene = with_file(&text, &path);
        let (read, mapped) = (World::build(&scene).unwrap(), mapped(&scene).unwrap());
        for taken in [&read, &mapped] {
            assert_eq!(taken.digest(), made.digest());
            assert_eq!(taken.tree(), made.tree());
            assert_eq!(taken.graphs().matrix, made.graphs().matrix);
            assert_eq!(taken.graphs().aggregates, made.graphs().aggregates);
            assert_eq!(taken.pinned(), made.pinned());
            assert_eq!(taken.start_velocities(), made.start_velocities());
            assert_eq!(taken.friction(), made.friction());
            assert_eq!(taken.distances(), made.distances());
            assert_eq!(taken.sizes(), made.sizes());
            assert_eq!(taken.warnings(), made.warnings());
            let again = |world: &World| {
                let mut bytes = Vec::new();
                world.write_prepared(&mut bytes).unwrap();
                bytes
            };
            assert!(again(taken) == fs::read(&path).unwrap());
        }
        let expected = run(&made, 1, 30);
        for ranks in [1, 3] {
            assert!(run(&mapped, ranks, 30) == expected, "{ranks} ranks, {more}");
        }
    }
}

/// A mapped world has hardly anything on the heap that grows with cloth.
#[test]
fn arrays_of_a_mapped_world_are_not_on_the_heap() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.world");
    let text = "contact.thickness = \"2 mm\"\n[[cloth]]\ngrid = { size = 1, vertices = 150 }\n\
        material = { density = 0.15, stretch = 1000, bending = 1e-5 }\n";
    let made = prepare(text, &path);
    let mapped = mapped(&with_file(text, &path)).unwrap();
    let bytes = |world: &World| crate::step::total(&world.memory());
    let vertices = 150 * 150;
    assert!(bytes(&made) > 700 * vertices, "{}", bytes(&made));
    assert!(bytes(&mapped) < 15 * vertices, "{}", bytes(&mapped));
}

#[test]
fn worlds_of_other_scenes_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.world");
    prepare(SCENE, &path);
    for (from, to, told) in [
        ("vertices = 26", "vertices = 27", "27"),
        ("thickness = \"8 mm\"", "thickness = \"7 mm\"", "0.007"),
        ("stretch = 1000", "stretch = 1001", "1001"),
        ("radius = 0.15", "radius = 0.16", "0.16"),
        (
            "[[cloth]]\n    grid = { size = 1",
            "partition.patches = 8\n    [[cloth]]\n    grid = { size = 1",
            "8",
        ),
    ] {
        let text = SCENE.replacen(from, to, 1);
        let text = match text.contains("partition.patches") {
            true => format!("partition.patches = 8\n{SCENE}"),
            false => text,
        };
        assert_ne!(text, SCENE);
        let error = World::build(&with_file(&text, &path)).unwrap_err();
        assert!(
            matches!(
                &error,
                WorldError::Prepared(PreparedError::OfAnother { .. })
            ),
            "{error}"
        );
        assert!(error.to_string().contains(told), "{told}: {error}");
    }
    // Steps, loads, the solve and the way in which ranks share the state may be others.
    let text = SCENE
        .replace("step = \"2 ms\"", "step = \"1 ms\"")
        .replace("end = \"1 s\"", "end = \"2 s\"");
    let text = format!("gravity = [0, 0, -1]\npartition.state = \"subscribed\"\n{text}");
    World::build(&with_file(&text, &path)).unwrap();
}

#[test]
fn meshes_that_have_changed_since_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (path, mesh) = (folder.path().join("a.world"), folder.path().join("a.obj"));
    let text = format!(
        "[[cloth]]\nmesh = {:?}\nmaterial = {{ density = 0.15, stretch = 1000, bending = 1e-5 }}\n",
        mesh.to_str().unwrap()
    );
    let square = |z: f64| format!("v 0 0 0\nv 1 0 0\nv 1 1 {z}\nv 0 1 0\nf 1 2 3\nf 1 3 4\n");
    fs::write(&mesh, square(0.0)).unwrap();
    prepare(&text, &path);
    World::build(&with_file(&text, &path)).unwrap();
    fs::write(&mesh, square(0.1)).unwrap();
    let error = World::build(&with_file(&text, &path)).unwrap_err();
    assert!(error.to_string().contains("a.obj has changed"), "{error}");
}

#[test]
fn files_that_are_short_or_damaged_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.world");
    prepare(SCENE, &path);
    let whole = fs::read(&path).unwrap();
    let text = |bytes: &[u8], build: fn(&Scene) -> Result<World, WorldError>| {
        fs::write(&path, bytes).unwrap();
        let text = build(&with_file(SCENE, &path)).unwrap_err().to_string();
        assert!(
            text.contains("a.world") && text.contains("weft prepare"),
            "{text}"
        );
        text
    };
    for build in [World::build, mapped] {
        for length in [12, HEAD, HEAD + TAIL, whole.len() / 2, whole.len() - 1] {
            let told = text(&whole[..length], build);
            assert!(told.contains("ends early"), "{length}: {told}");
        }
        assert!(text(&[&whole[..], &[0; 5]].concat(), build).contains("ends early"));
        for at in [
            HEAD + 1000,
            whole.len() / 3,
            whole.len() - TAIL - 100,
            whole.len() - 1,
        ] {
            let mut flipped = whole.clone();
            flipped[at] ^= 1;
            assert!(text(&flipped, build).contains("checksum"), "{at}");
        }
        let mut other = whole.clone();
        other[11] = b'7';
        assert!(text(&other, build).contains("of this version"));
    }
    // Each of several processes checks a part of the data.
    let mut flipped = whole;
    flipped[HEAD + 1000] ^= 1;
    fs::write(&path, &flipped).unwrap();
    let scene = with_file(SCENE, &path);
    let found = [0, 1].map(|process| {
        let mapping = Mapping {
            process,
            processes: 2,
            ..MAPPING
        };
        World::build_mapped(&scene, 1, &|_| Ok(()), mapping).is_err()
    });
    assert_eq!(found, [true, false]);
}

/// The data of a glTF may be in another file.
#[test]
fn files_beside_a_mesh_that_have_changed_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (path, mesh) = (folder.path().join("a.world"), folder.path().join("a.gltf"));
    let text = format!(
        "[[cloth]]\nmesh = {:?}\nmaterial = {{ density = 0.15, stretch = 1000, bending = 1e-5 }}\n",
        mesh.to_str().unwrap()
    );
    let corners = |z: f32| {
        let numbers = [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, z];
        numbers
            .iter()
            .flat_map(|number: &f32| number.to_le_bytes())
            .collect::<Vec<u8>>()
    };
    fs::write(folder.path().join("a b.bin"), corners(0.0)).unwrap();
    let document = r#"{ "asset": { "version": "2.0" }, "scene": 0, "scenes": [{ "nodes": [0] }],
        "nodes": [{ "mesh": 0 }], "meshes": [{ "primitives": [{ "attributes": { "POSITION": 0 } }] }],
        "buffers": [{ "uri": "a%20b.bin", "byteLength": 36 }],
        "bufferViews": [{ "buffer": 0, "byteOffset": 0, "byteLength": 36 }],
        "accessors": [{ "bufferView": 0, "componentType": 5126, "count": 3, "type": "VEC3",
            "min": [0, 0, 0], "max": [1, 1, 0] }] }"#;
    fs::write(&mesh, document).unwrap();
    prepare(&text, &path);
    World::build(&with_file(&text, &path)).unwrap();
    fs::write(folder.path().join("a b.bin"), corners(0.5)).unwrap();
    let error = World::build(&with_file(&text, &path)).unwrap_err();
    assert!(error.to_string().contains("a b.bin has changed"), "{error}");
}

/// A world holds for a scene whose steps are certified and for one whose steps are not.
#[test]
fn certification_may_be_turned_on_and_off() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.world");
    let keys = |certify: bool| format!("contact = {{ thickness = \"8 mm\", certify = {certify} }}");
    let text = |certify| SCENE.replace("contact = { thickness = \"8 mm\" }", &keys(certify));
    for made in [true, false] {
        prepare(&text(made), &path);
        for wanted in [true, false] {
            let plain = World::build(&scene(&text(wanted))).unwrap();
            let taken = mapped(&with_file(&text(wanted), &path)).unwrap();
            assert_eq!(taken.scenery().is_some(), wanted);
            assert!(run(&taken, 2, 5) == run(&plain, 1, 5), "{made} {wanted}");
        }
    }
}
