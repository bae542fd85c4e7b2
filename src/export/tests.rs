//! Runs that are made by hand, and what comes of them in each format.

use std::fs;
use std::io::BufReader;
use std::path::Path;

use glam::DVec3;
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::mesh::{Faces, FileMesh, Texture, TriMesh, Wanted, join_equal, read_mesh_file};
use crate::output::{
    BodyRecord, ClothRecord, DataArray, Frame, FrameSeries, FramesRecord, MachineRecord, PolyData,
    ProgramRecord, RunRecord, SceneRecord, Values, ViewRecord, mesh_file,
};
use crate::scene::Colours;

/// A quad and a triangle beside it, with a seam in its texture.
fn flag() -> FileMesh {
    let positions = vec![
        DVec3::ZERO,
        DVec3::X,
        DVec3::new(1.0, 0.5, 0.0),
        DVec3::new(0.0, 0.5, 0.0),
        DVec3::new(1.5, 0.25, 0.1),
    ];
    let mut faces = Faces::default();
    faces.push(&[0, 1, 2, 3]);
    faces.push(&[1, 4, 2]);
    FileMesh {
        mesh: TriMesh {
            positions,
            triangles: vec![[0, 1, 2], [0, 2, 3], [1, 4, 2]],
        },
        faces,
        texture: Some(Texture {
            coordinates: vec![[0.0, 0.0], [0.5, 0.25], [1.0, 1.0]],
            corners: vec![0, 1, 1, 0, 2, 2, 1],
        }),
        ..FileMesh::default()
    }
}

/// A run of some cloths, with frames at these times, a body at rest and one that moves. In each
/// frame cloth is higher by its time.
fn run(cloths: &[(&str, FileMesh, bool)], times: &[f64], knows_cloths: bool) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    let run = RunDirectory::create(root.path()).unwrap();
    let mut record = RunRecord::new(
        ProgramRecord::this(&[]),
        MachineRecord::default(),
        Vec::new(),
        SceneRecord {
            name: "flags".to_owned(),
            ..SceneRecord::default()
        },
        1,
    );
    let body = |name: &str, velocity| BodyRecord {
        name: name.to_owned(),
        formula: None,
        distance: None,
        velocity,
        motion: None,
        deforms: false,
        flat: false,
    };
    record.bodies = Some(vec![body("stone", DVec3::ZERO), body("ball", DVec3::X)]);
    let mut frames = FramesRecord {
        interval_s: 0.5,
        step_s: 0.25,
        cloths: Vec::new(),
        view: Some(ViewRecord {
            eye: DVec3::new(1.0, -2.0, 3.0),
            target: DVec3::new(1.0, 0.0, 0.5),
            follows: name_follows(cloths),
            size: [90, 60],
            colours: Colours::Checker,
        }),
        sewn: Vec::new(),
    };
    let (mut x, mut triangles) = (Vec::new(), Vec::new());
    for (number, (name, file, joined)) in cloths.iter().enumerate() {
        FrameSeries::write_mesh(&run, number, name, file).unwrap();
        frames.cloths.push(ClothRecord {
            passes_itself: false,
            name: (*name).to_owned(),
            vertices: file.mesh.positions.len(),
            mesh: mesh_file(number, name),
            joined: *joined,
        });
        let before = x.len() as u32;
        x.extend_from_slice(&file.mesh.positions);
        let own = file.mesh.triangles.iter();
        triangles.extend(own.map(|t| t.map(|v| v + before)));
    }
    record.frames = knows_cloths.then_some(frames);
    record.write(&run).unwrap();
    let still = TriMesh {
        positions: vec![DVec3::ZERO, DVec3::X, DVec3::Y],
        triangles: vec![[0, 1, 2]],
    };
    let mut series = FrameSeries::create(&run, &[("stone", &still)]).unwrap();
    for &time in times {
        let up = DVec3::Z * time;
        let points: Vec<DVec3> = x.iter().map(|&p| p + up).collect();
        let velocities = vec![DVec3::Z; points.len()];
        let mut moving = still.clone();
        moving
            .positions
            .iter_mut()
            .for_each(|p| *p += DVec3::X * time);
        let moving = [("ball", &moving)];
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "small"
        )]
        let step = (4.0 * time) as u64;
        series
            .write(Frame {
                step,
                time,
                cloth: PolyData {
                    points: &points,
                    triangles: &triangles,
                    point_arrays: vec![DataArray {
                        name: "velocity",
                        values: Values::Vectors(&velocities),
                    }],
                    cell_arrays: Vec::new(),
                    time: None,
                },
                moving: &moving,
            })
            .unwrap();
    }
    root
}

/// Whether the camera of a run follows: where its first cloth has this name.
fn name_follows(cloths: &[(&str, FileMesh, bool)]) -> bool {
    cloths[0].0 == "followed"
}

/// The rows of each picture of an animation in which red is the strongest colour by far: their
/// mean, and how many such pixels there are.
fn red_rows(path: &Path) -> Vec<(f64, usize)> {
    let mut reader = png::Decoder::new(BufReader::new(fs::File::open(path).unwrap()))
        .read_info()
        .unwrap();
    let control = *reader.info().animation_control().unwrap();
    let (width, height) = (reader.info().width as usize, reader.info().height as usize);
    let mut seen = vec![0; 3 * width * height];
    let mut found = Vec::new();
    for _ in 0..control.num_frames {
        let mut part = vec![0; 3 * width * height];
        reader.next_frame(&mut part).unwrap();
        let of = *reader.info().frame_control().unwrap();
        assert_eq!((of.delay_num, of.delay_den), (500, 1000));
        let (w, left) = (of.width as usize, of.x_offset as usize);
        for y in 0..of.height as usize {
            let to = 3 * (width * (y + of.y_offset as usize) + left);
            seen[to..to + 3 * w].copy_from_slice(&part[3 * w * y..3 * w * (y + 1)]);
        }
        let rows = seen.chunks_exact(3 * width).zip(0_u32..);
        let red: Vec<f64> = rows
            .flat_map(|(row, y)| {
                let red = |p: &&[u8]| p[0] > 40 && p[0] / 2 > p[2];
                row.chunks_exact(3).filter(red).map(move |_| f64::from(y))
            })
            .collect();
        let mean = red.iter().sum::<f64>() / red.len() as f64;
        found.push((mean, red.len()));
    }
    found
}

#[test]
fn an_animation_has_a_picture_of_every_frame_and_its_camera_may_follow() {
    for name in ["flag", "followed"] {
        let root = run(&[(name, flag(), false)], &[0.0, 0.5, 1.0], true);
        let (out, exported) = out_of(&root, &ExportOptions::of(&[Format::Apng])).unwrap();
        assert_eq!(exported.files, ["flags.png"]);
        // Nothing is said about numbers of 32 bits.
        assert_eq!(exported.notes, [""; 0]);
        let rows = red_rows(&out.path().join("flags.png"));
        assert_eq!(rows.len(), 3);
        assert!(rows.iter().all(|(_, count)| *count > 20), "{rows:?}");
        // At the start bodies lie in the plane of the cloth.
        let risen = rows[1].0 - rows[2].0;
        if name == "followed" {
            assert!(risen.abs() < 0.1, "{rows:?}");
        } else {
            assert!(risen > 3.0, "{rows:?}");
        }
    }
}

#[test]
fn an_animation_of_a_run_without_a_camera_is_refused() {
    let root = run(&[("a", flag(), false)], &[0.0, 0.5], false);
    let error = out_of(&root, &ExportOptions::of(&[Format::Apng])).unwrap_err();
    let message = error.to_string();
    assert!(message.contains("which kept no camera"), "{message}");
}

fn out_of(run: &TempDir, options: &ExportOptions) -> Result<(TempDir, Exported), OutputError> {
    let out = tempfile::tempdir().unwrap();
    let recorded = Recorded::open(run.path())?;
    let target = Target::Folder(ExportFolder::new(out.path(), false));
    let exported = export(&recorded, options, &target)?;
    let mut there: Vec<String> = (fs::read_dir(out.path()).unwrap())
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    there.sort();
    let mut told = exported.files.clone();
    told.sort();
    assert_eq!(there, told);
    Ok((out, exported))
}

fn text_of(folder: &TempDir, name: &str) -> String {
    fs::read_to_string(folder.path().join(name)).unwrap()
}

#[test]
fn point_caches_have_these_bytes() {
    let header = point_cache::pc2_header(2, 3).unwrap();
    let known = b"POINTCACHE2\0\x01\0\0\0\x02\0\0\0\0\0\0\0\0\0\x80\x3f\x03\0\0\0";
    assert_eq!(header, known);
    let header = point_cache::mdd_header(2, &[0.0, 0.5]).unwrap();
    assert_eq!(header, b"\0\0\0\x02\0\0\0\x02\0\0\0\0\x3f\0\0\0");
    let points = [DVec3::new(1.0, -2.0, 0.5)];
    let bytes = point_cache::points(&points, f32::to_le_bytes);
    assert_eq!(bytes.as_flattened(), b"\0\0\x80\x3f\0\0\0\xc0\0\0\0\x3f");
    let up = points.map(|p| Up::Y.to_file(p));
    let bytes = point_cache::points(&up, f32::to_be_bytes);
    assert_eq!(bytes.as_flattened(), b"\x3f\x80\0\0\x3f\0\0\0\x40\0\0\0");
}

#[test]
fn a_cache_has_every_frame_of_every_cloth_and_lies_beside_its_mesh() {
    let root = run(
        &[("a", flag(), false), ("b", flag(), false)],
        &[0.0, 0.5, 1.0, 1.25],
        true,
    );
    let mut options = ExportOptions::of(&[Format::Pc2, Format::Mdd, Format::Vtp]);
    (options.units, options.up) = (Units::Centimetres, Up::Y);
    let (out, exported) = out_of(&root, &options).unwrap();
    assert_eq!(exported.files.len(), 6);
    let notes = exported.notes.join("\n");
    assert!(
        notes.contains("the frame at 1.25 s, where the run ends, is left out"),
        "{notes}"
    );
    assert!(
        notes.contains("positions in pc2, mdd have 32 bits"),
        "{notes}"
    );
    for name in ["a", "b"] {
        let pc2 = fs::read(out.path().join(format!("{name}.pc2"))).unwrap();
        assert_eq!(pc2[..32], point_cache::pc2_header(5, 3).unwrap()[..]);
        let numbers: Vec<f32> = (pc2[32..].as_chunks::<4>().0.iter())
            .map(|&b| f32::from_le_bytes(b))
            .collect();
        assert_eq!(numbers.len(), 3 * 5 * 3);
        // The fifth vertex in the last frame: x, then z, then -y, in cm.
        assert_eq!(numbers[42..], [150.0, 110.0, -25.0]);
        let mdd = fs::read(out.path().join(format!("{name}.mdd"))).unwrap();
        let header = point_cache::mdd_header(5, &[0.0, 0.5, 1.0, 1.25]).unwrap();
        assert_eq!(mdd[..24], header[..]);
        assert_eq!(mdd.len(), 24 + 4 * 5 * 12);
        let mesh = read_mesh_file(
            &out.path().join(format!("{name}.obj")),
            None,
            &Wanted::default(),
        )
        .unwrap();
        assert_eq!((mesh.faces, mesh.texture), (flag().faces, flag().texture));
        assert_eq!(mesh.mesh.positions[4], DVec3::new(150.0, 10.0, -25.0));
    }
}

#[test]
fn a_cache_of_frames_that_are_not_evenly_spaced_is_refused_and_others_are_not() {
    let root = run(&[("a", flag(), false)], &[0.0, 0.5, 2.0], true);
    let error = out_of(&root, &ExportOptions::of(&[Format::Pc2])).unwrap_err();
    let message = error.to_string();
    assert!(
        message.contains("the one at 2 s is not near 1 s; take mdd or usd"),
        "{message}"
    );
    out_of(&root, &ExportOptions::of(&[Format::Mdd, Format::Usd])).unwrap();
}

#[test]
fn usd_is_this_text() {
    let root = run(&[("9 a", flag(), false)], &[0.0, 0.5, 0.75], true);
    let (out, _) = out_of(&root, &ExportOptions::of(&[Format::Usd])).unwrap();
    let text = text_of(&out, "flags.usda");
    let version = env!("CARGO_PKG_VERSION");
    let known = format!(
        r#"#usda 1.0
(
    defaultPrim = "weft"
    doc = "weft {version}"
    endTimeCode = 1.5
    framesPerSecond = 2
    metersPerUnit = 1
    startTimeCode = 0
    timeCodesPerSecond = 2
    upAxis = "Z"
)

def Xform "weft"
{{
    def Mesh "_9_a"
    {{
        uniform bool doubleSided = 1
        uniform token orientation = "rightHanded"
        uniform token subdivisionScheme = "none"
        int[] faceVertexCounts = [4, 3, ]
        int[] faceVertexIndices = [0, 1, 2, 3, 1, 4, 2, ]
        texCoord2f[] primvars:st = [(0.0, 0.0), (0.5, 0.25), (1.0, 1.0), ] (
            interpolation = "faceVarying"
        )
        int[] primvars:st:indices = [0, 1, 1, 0, 2, 2, 1, ]
        point3f[] points.timeSamples = {{
            0: [(0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (1.0, 0.5, 0.0), (0.0, 0.5, 0.0), (1.5, 0.25, 0.1), ],
            1: [(0.0, 0.0, 0.5), (1.0, 0.0, 0.5), (1.0, 0.5, 0.5), (0.0, 0.5, 0.5), (1.5, 0.25, 0.6), ],
            1.5: [(0.0, 0.0, 0.75), (1.0, 0.0, 0.75), (1.0, 0.5, 0.75), (0.0, 0.5, 0.75), (1.5, 0.25, 0.85), ],
        }}
        vector3f[] velocities.timeSamples = {{
            0: [(0.0, 0.0, 1.0), (0.0, 0.0, 1.0), (0.0, 0.0, 1.0), (0.0, 0.0, 1.0), (0.0, 0.0, 1.0), ],
            1: [(0.0, 0.0, 1.0), (0.0, 0.0, 1.0), (0.0, 0.0, 1.0), (0.0, 0.0, 1.0), (0.0, 0.0, 1.0), ],
            1.5: [(0.0, 0.0, 1.0), (0.0, 0.0, 1.0), (0.0, 0.0, 1.0), (0.0, 0.0, 1.0), (0.0, 0.0, 1.0), ],
        }}
        float3[] extent.timeSamples = {{
            0: [(0.0, 0.0, 0.0), (1.5, 0.5, 0.1)],
            1: [(0.0, 0.0, 0.5), (1.5, 0.5, 0.6)],
            1.5: [(0.0, 0.0, 0.75), (1.5, 0.5, 0.85)],
        }}
    }}
    def Mesh "stone"
    {{
        uniform bool doubleSided = 1
        uniform token orientation = "rightHanded"
        uniform token subdivisionScheme = "none"
        int[] faceVertexCounts = [3, ]
        int[] faceVertexIndices = [0, 1, 2, ]
        point3f[] points = [(0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), ]
        float3[] extent = [(0.0, 0.0, 0.0), (1.0, 1.0, 0.0)]
    }}
"#
    );
    let head = &text[..known.len().min(text.len())];
    for (own, known) in head.lines().zip(known.lines()) {
        assert_eq!(own, known);
    }
    assert!(
        text[known.len()..].starts_with("    def Mesh \"ball\""),
        "{text}"
    );
    let mut options = ExportOptions::of(&[Format::Usd]);
    (options.units, options.up) = (Units::Millimetres, Up::Y);
    let (out, _) = out_of(&root, &options).unwrap();
    let text = text_of(&out, "flags.usda");
    assert!(text.contains("    metersPerUnit = 0.001\n"), "{text}");
    assert!(text.contains("    upAxis = \"Y\"\n"), "{text}");
    assert!(
        text.contains("1: [(0.0, 500.0, -500.0), (1500.0, 600.0, 0.0)],"),
        "{text}"
    );
}

/// A file in which each texture coordinate has its own vertices: those are what an artist has.
#[test]
fn joined_vertices_come_apart_again() {
    let doubled = [
        DVec3::ZERO,
        DVec3::X,
        DVec3::Y,
        DVec3::Y,
        DVec3::X,
        DVec3::ONE,
    ];
    let (positions, joined) = join_equal(&doubled);
    let file = FileMesh {
        mesh: TriMesh {
            positions,
            triangles: vec![[0, 1, 2], [2, 1, 3]],
        },
        faces: Faces::of_triangles(&[[0, 1, 2], [3, 4, 5]]),
        texture: Some(Texture {
            coordinates: vec![[0.0; 2], [0.1; 2], [0.2; 2], [0.3; 2], [0.4; 2], [0.5; 2]],
            corners: vec![0, 1, 2, 3, 4, 5],
        }),
        joined: Some(joined),
        ..FileMesh::default()
    };
    let root = run(&[("a", file.clone(), true)], &[0.0, 0.5], true);
    let formats = [Format::Pc2, Format::Obj, Format::Ply, Format::Glb];
    let (out, _) = out_of(&root, &ExportOptions::of(&formats)).unwrap();
    let pc2 = fs::read(out.path().join("a.pc2")).unwrap();
    assert_eq!(pc2[16..20], 6_i32.to_le_bytes());
    let up = |file: &FileMesh| -> Vec<DVec3> {
        file.mesh
            .positions
            .iter()
            .map(|&p| p + 0.5 * DVec3::Z)
            .collect()
    };
    for ending in ["obj", "ply"] {
        let name = format!("a.000001.{ending}");
        let again = read_mesh_file(&out.path().join(name), None, &Wanted::default()).unwrap();
        assert_eq!(again.mesh.positions, file.of_file(&up(&file)), "{ending}");
        let texture = again.texture.unwrap();
        assert_eq!(
            texture.coordinates,
            file.texture.as_ref().unwrap().coordinates
        );
    }
    let again = read_mesh_file(&out.path().join("flags.glb"), None, &Wanted::default()).unwrap();
    // The bodies are in it too, and cloth comes first.
    let of_cloth = &again.joined.as_ref().unwrap()[..6];
    let turned: Vec<DVec3> = of_cloth
        .iter()
        .map(|&v| Up::Y.to_scene(again.mesh.positions[v as usize]))
        .collect();
    assert_eq!(turned, file.of_file(&up(&file)));
}

#[test]
fn one_frame_of_glb_is_chosen_by_its_step() {
    let root = run(&[("a", flag(), false)], &[0.0, 0.5, 1.0], true);
    let mut options = ExportOptions::of(&[Format::Glb]);
    options.step = Some(2);
    let (out, _) = out_of(&root, &options).unwrap();
    let again = read_mesh_file(
        &out.path().join("flags.glb"),
        None,
        &Wanted::groups(&["a", "ball"]),
    )
    .unwrap();
    assert_eq!(again.group_names, ["a", "stone", "ball"]);
    let fifth = DVec3::new(1.5, 0.25, f64::from(0.6_f32));
    let there = again.mesh.positions.iter().map(|&p| Up::Y.to_scene(p));
    assert!(there.into_iter().any(|p| p.abs_diff_eq(fifth, 1e-7)));
    // A quad of two triangles, and one of three corners.
    assert_eq!(again.mesh.triangles.len(), 3 + 1 + 1);
    options.step = Some(3);
    let message = out_of(&root, &options).unwrap_err().to_string();
    assert!(
        message.contains("no frame of step 3; the nearest is of step 2"),
        "{message}"
    );
}

#[test]
fn a_run_of_an_earlier_program_is_one_mesh_of_triangles_and_says_so() {
    let root = run(
        &[("a", flag(), false), ("b", flag(), false)],
        &[0.0, 0.5],
        false,
    );
    let (out, exported) = out_of(&root, &ExportOptions::of(&[Format::Obj])).unwrap();
    assert!(
        exported.notes[0].contains("of an earlier weft"),
        "{:?}",
        exported.notes
    );
    let mesh = read_mesh_file(
        &out.path().join("cloth.000001.obj"),
        None,
        &Wanted::default(),
    )
    .unwrap();
    assert_eq!(
        (mesh.mesh.positions.len(), mesh.faces.counts.len()),
        (10, 6)
    );
}

#[test]
fn damaged_runs_are_refused_by_name_and_leave_nothing() {
    let root = run(&[("a", flag(), false)], &[0.0, 0.5], true);
    let options = ExportOptions::of(&[Format::Pc2, Format::Obj]);
    let message = || out_of(&root, &options).unwrap_err().to_string();
    let frame = root.path().join("frames/cloth.000002.vtp");
    let whole = fs::read(&frame).unwrap();
    fs::write(&frame, &whole[..whole.len() / 2]).unwrap();
    assert!(
        message().contains("cloth.000002.vtp cannot be understood"),
        "{}",
        message()
    );
    fs::write(&frame, &whole).unwrap();
    let mesh = root.path().join("meshes/0-a.obj");
    let text = fs::read_to_string(&mesh).unwrap();
    fs::write(&mesh, format!("v 9 9 9\n{text}")).unwrap();
    assert!(
        message().contains("another number of vertices"),
        "{}",
        message()
    );
    fs::write(&mesh, "\0\0").unwrap();
    assert!(message().contains("it is binary, 2 bytes"), "{}", message());
    fs::write(&mesh, text).unwrap();
    // A name that leads elsewhere.
    let record = root.path().join("run.json");
    let text = fs::read_to_string(&record).unwrap();
    fs::write(
        &record,
        text.replace("meshes/0-a.obj", "meshes/../../a.obj"),
    )
    .unwrap();
    assert!(
        message().contains("a run writes no mesh of that name"),
        "{}",
        message()
    );
    fs::write(&record, text).unwrap();
    fs::remove_file(root.path().join("frames.pvd")).unwrap();
    assert!(
        message().contains("has no frames to export"),
        "{}",
        message()
    );
    let none = tempfile::tempdir().unwrap();
    assert!(Recorded::open(none.path()).is_err());
}

#[test]
fn a_run_exports_into_its_own_directory_and_lists_what_it_wrote() {
    let root = run(&[("a", flag(), false)], &[0.0, 0.5], true);
    let recorded = Recorded::open(root.path()).unwrap();
    let directory = RunDirectory::reopen(root.path()).unwrap();
    let options = ExportOptions::of(&[Format::Usd, Format::Pc2]);
    let target = Target::Run(directory.clone());
    for _ in 0..2 {
        let exported = export(&recorded, &options, &target).unwrap();
        assert_eq!(exported.files, ["flags.usda", "a.pc2", "a.obj"]);
    }
    let listed = directory.listed();
    for name in [
        "exports/flags.usda",
        "exports/a.pc2",
        "exports/a.obj",
        "meshes/0-a.obj",
    ] {
        assert!(
            listed.contains(name) && root.path().join(name).is_file(),
            "{name}"
        );
    }
    drop((target, directory));
    // Somebody else's file is not replaced.
    fs::write(root.path().join("exports/a.mdd"), "mine").unwrap();
    let target = Target::Run(RunDirectory::reopen(root.path()).unwrap());
    let error = export(&recorded, &ExportOptions::of(&[Format::Mdd]), &target).unwrap_err();
    assert!(matches!(error, OutputError::InTheWay { .. }), "{error}");
}

fn read_back(name: &str, bytes: &[u8]) -> FileMesh {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(Path::new(name));
    fs::write(&path, bytes).unwrap();
    read_mesh_file(&path, None, &Wanted::default()).unwrap()
}

proptest! {
    #[test]
    fn obj_and_ply_read_back_to_the_same_bits(
        heights in proptest::collection::vec(any::<f64>(), 12),
        coordinates in proptest::collection::vec([-2.0..2.0, -2.0..2.0], 12),
        size in 1e-6_f64..1e6,
    ) {
        // A strip of quads that are not flat, but nearly.
        let small = |x: f64| if x.is_finite() { x % 0.01 } else { 0.0 };
        let positions: Vec<DVec3> = (heights.iter().enumerate())
            .map(|(k, &z)| size * DVec3::new((k / 2) as f64, (k % 2) as f64, small(z)))
            .collect();
        let mut faces = Faces::default();
        (0..5).for_each(|k| faces.push(&[2 * k, 2 * k + 2, 2 * k + 3, 2 * k + 1]));
        let file = FileMesh {
            texture: Some(Texture { coordinates, corners: faces.corners.clone() }),
            faces,
            ..FileMesh::default()
        };
        let file = FileMesh {
            mesh: TriMesh { positions: positions.clone(), ..TriMesh::default() },
            ..file
        };
        let (mut obj, mut ply) = (Vec::new(), Vec::new());
        crate::mesh::write_obj_of_file("strip", &file, &positions, &mut obj).unwrap();
        let unchanging = sequence::Unchanging::of("strip", &file, Format::Ply).unwrap();
        unchanging.write(&positions, &mut ply).unwrap();
        for again in [read_back("a.obj", &obj), read_back("a.ply", &ply)] {
            prop_assert_eq!(&again.mesh.positions, &positions);
            prop_assert_eq!(&again.faces, &file.faces);
            let (own, known) = (again.texture.unwrap(), file.texture.as_ref().unwrap());
            let of = |t: &Texture| -> Vec<[f64; 2]> {
                t.corners.iter().map(|&c| t.coordinates[c as usize]).collect()
            };
            prop_assert_eq!(of(&own), of(known));
        }
    }
}
