//! The cost of an export beside reading and writing the bytes: 100 frames of 100,489 vertices.
//!
//! Sample run:
//!   cargo bench --bench export
//!
//! A sheet falls for 99 steps and has a frame of each, and of the start. For each format the bytes
//! are those that its export reads of frames (positions, and for USD velocities) and the files that
//! it wrote, which are written and synced again one after the other. Times are the best of three,
//! by turns; the aim is a ratio of 1.5. glTF has one frame.

#![expect(clippy::print_stdout, reason = "a bench prints its table")]

use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use weftwork::export::{ExportOptions, Recorded, Target, export};
use weftwork::memory::Limit;
use weftwork::output::ExportFolder;
use weftwork::run::{Begun, Driver, RunOptions, Show, Stop, run};
use weftwork::scene::{Format, Scene};

const SCENE: &str = r#"
time = { step = "1 ms", end = "99 ms" }
contact = { self_collision = false, certify = false }
output = { interval = "1 ms", pictures = false, checkpoints = false }
[[cloth]]
grid = { size = "2 m", vertices = 317 }
material = { density = 0.15, stretch = 1000, bending = 1e-5 }
"#;

/// Bytes of a position or a velocity in a frame.
const BYTES: usize = 24;

#[expect(clippy::disallowed_methods, reason = "benches measure time")]
fn timed(work: impl FnOnce()) -> Duration {
    let begin = Instant::now();
    work();
    begin.elapsed()
}

fn main() {
    let root = tempfile::tempdir().expect("a temporary folder");
    let scene = Scene::parse(SCENE, None, &[]).expect("the scene is valid");
    let out = root.path().join("run");
    let options = RunOptions {
        ranks: 1,
        threads: 1,
        progress_thread: false,
        driver: Driver::Solo,
        memory: Limit::Left,
        steps: None,
        out: out.clone(),
        resume: None,
        overwrite: false,
        stop: Stop::before(None),
        trace: None,
        record: None,
        audit: None,
        progress: Show::Nothing,
        command: Vec::new(),
        hosts: Vec::new(),
        mpi: None,
        begun: Begun::default(),
    };
    run(&scene, &options).expect("the sheet falls");
    let recorded = Recorded::open(&out).expect("there are frames");
    let vertices = 317 * 317;
    println!("format  frames      MB  bytes s  export s  ratio");
    for format in [
        Format::Ply,
        Format::Obj,
        Format::Pc2,
        Format::Mdd,
        Format::Usd,
        Format::Glb,
    ] {
        let frames = recorded.frames();
        // How often a frame's vectors are read, and of how many frames.
        let (passes, read) = match format {
            Format::Usd => (2, frames),
            Format::Glb => (1, &frames[frames.len() - 1..]),
            _ => (1, frames),
        };
        let mut best = [Duration::MAX; 2];
        let mut size = 0;
        for round in 0..3 {
            let folder = root.path().join(format!("{}-{round}", format.name()));
            let target = Target::Folder(ExportFolder::new(&folder, false));
            let work = || {
                let exported = export(&recorded, &ExportOptions::of(&[format]), &target);
                exported.expect("the frames are exported");
            };
            best[1] = best[1].min(timed(work));
            let mut files: Vec<Vec<u8>> = Vec::new();
            for entry in fs::read_dir(&folder).expect("the folder is there") {
                let path = entry.expect("it can be read").path();
                files.push(fs::read(path).expect("a file can be read"));
            }
            size = files.iter().map(Vec::len).sum();
            fs::remove_dir_all(&folder).expect("the folder goes");
            fs::create_dir(&folder).expect("the folder is made");
            let work = || {
                let mut bytes = vec![0; BYTES * vertices];
                for frame in read {
                    let path = out.join(format!("frames/cloth.{:06}.vtp", frame.step));
                    let mut file = File::open(path).expect("a frame is there");
                    for _ in 0..passes {
                        file.seek(SeekFrom::Start(4096)).expect("it is long enough");
                        file.read_exact(&mut bytes).expect("it is long enough");
                    }
                }
                for (number, bytes) in files.iter().enumerate() {
                    write_synced(&folder.join(number.to_string()), bytes);
                }
            };
            best[0] = best[0].min(timed(work));
            fs::remove_dir_all(&folder).expect("the folder goes");
        }
        let [bytes, exported] = best.map(|time| time.as_secs_f64());
        println!(
            "{:6}  {:6}  {:6.1}  {bytes:7.2}  {exported:8.2}  {:5.2}",
            format.name(),
            read.len(),
            size as f64 / 1e6,
            exported / bytes
        );
    }
}

fn write_synced(path: &Path, bytes: &[u8]) {
    let mut file = File::create(path).expect("a file is made");
    file.write_all(bytes).expect("there is room");
    file.sync_all().expect("there is room");
}
