//! The two scenes of the 2006 paper under `mpirun`, from their beginning to their end: one rank,
//! two ranks, one rank of two workers.
//!
//! Sample run:
//!   cargo bench --features mpi --bench mpirun [-- SCENE...]
//!
//! A scene is run in a few stretches, each from the checkpoint at the end of the last. The teams
//! take turns in each stretch, with all outputs, and the best turn of each counts: on shared
//! machines a core may be slow for minutes, and where ranks wait for each other in every iteration
//! of the solve, either core's bad moments are everybody's. The table has the sums over all
//! stretches, of the loop as a whole and of its phases, the slowest rank's each. Two runs of one
//! rank side by side take turns too: what they gain over one after the other is what the machine
//! has to give.
//!
//! `MPIRUN` names another launcher. It takes twenty minutes on two cores.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use weftwork::scene::Scene;

#[path = "common/measures.rs"]
mod measures;
#[path = "common/paper_scenes.rs"]
mod paper_scenes;

/// Ranks and workers of each team.
const TEAMS: [(usize, usize); 3] = [(1, 1), (2, 1), (1, 2)];
const STRETCHES: u64 = 5;
/// How often each team has its turn.
const ROUNDS: usize = 3;

/// Seconds that the loop took, and its phases.
#[derive(Clone, Debug)]
struct Taken {
    whole: f64,
    phases: Vec<(String, f64)>,
    hash: String,
}

#[expect(clippy::print_stdout, reason = "the table is what the bench is for")]
fn main() {
    let wanted = paper_scenes::wanted();
    if !measures::measures() {
        return;
    }
    let room = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("bench-mpirun");
    for name in wanted {
        let (sums, beside, steps) = scene(name, &room);
        let columns: Vec<&str> = sums[0]
            .phases
            .iter()
            .map(|(name, _)| name.as_str())
            .collect();
        println!(
            "{name:<12} ranks x workers  ms/step  {}",
            columns.join("  ")
        );
        let each = |seconds: f64| seconds * 1e3 / steps as f64;
        for (taken, (ranks, workers)) in sums.iter().zip(TEAMS) {
            let phases = taken.phases.iter();
            let phases =
                phases.map(|(name, time)| format!("{:<w$.2}", each(*time), w = name.len()));
            println!(
                "{:<12} {ranks} x {workers:<13} {:<8.2} {}",
                "",
                each(taken.whole),
                phases.collect::<Vec<_>>().join("  ")
            );
        }
        let faster = |team: &Taken| {
            let phases = sums[0].phases.iter().zip(&team.phases);
            let phases = phases.map(|((name, one), (_, time))| format!("{name} {:.2}", one / time));
            format!(
                "{:.2} times as fast as one: {}",
                sums[0].whole / team.whole,
                phases.collect::<Vec<_>>().join(", ")
            )
        };
        println!("    two ranks are {}", faster(&sums[1]));
        println!("    two workers are {}", faster(&sums[2]));
        println!(
            "    two runs side by side are {:.2} times as fast as one after the other",
            2.0 * sums[0].whole / beside
        );
    }
    std::fs::remove_dir_all(&room).expect("a directory of the bench's own");
}

/// The times of each team for all stretches of a scene, in seconds of the slower one of two runs
/// side by side, and the steps.
fn scene(name: &str, room: &Path) -> (Vec<Taken>, f64, u64) {
    let file = paper_scenes::file(name);
    let time = Scene::load(&file, &[]).expect("the project's scene").time;
    let steps = (time.end / time.step).round() as u64;
    let mut sums: Vec<Option<Taken>> = vec![None; TEAMS.len()];
    let mut beside = 0.0;
    let mut from: Option<PathBuf> = None;
    for stretch in 1..=STRETCHES {
        let end = stretch * steps / STRETCHES;
        let mut best: Vec<Option<Taken>> = vec![None; TEAMS.len()];
        let mut best_beside = f64::INFINITY;
        for _ in 0..ROUNDS {
            let other = room.join("beside");
            let alone = |out: &Path| run(&file, from.as_deref(), end, (1, 1), out).whole;
            let both = thread::scope(|threads| {
                let other = threads.spawn(|| alone(&other));
                let one = alone(&room.join("turn"));
                one.max(other.join().expect("a run"))
            });
            best_beside = best_beside.min(both);
            for (best, team) in best.iter_mut().zip(TEAMS) {
                let out = room.join("turn");
                let taken = run(&file, from.as_deref(), end, team, &out);
                if best.as_ref().is_none_or(|best| taken.whole < best.whole) {
                    *best = Some(taken);
                }
            }
        }
        beside += best_beside;
        let hashes = best.iter().flatten().map(|taken| &taken.hash);
        assert!(
            hashes.clone().zip(hashes.skip(1)).all(|(a, b)| a == b),
            "the teams end elsewhere: {best:?}"
        );
        let checkpoint = room.join(format!("{name}-{end}.ckpt"));
        let last = room.join("turn").join(format!("state.{end:06}.ckpt"));
        std::fs::copy(last, &checkpoint).expect("a checkpoint at the end");
        from = Some(checkpoint);
        for (sum, taken) in sums.iter_mut().zip(best.into_iter().flatten()) {
            match sum {
                None => *sum = Some(taken),
                Some(sum) => sum.add(&taken),
            }
        }
    }
    (sums.into_iter().flatten().collect(), beside, steps)
}

/// Runs a scene from a checkpoint, or its beginning, to a step.
fn run(
    scene: &Path,
    from: Option<&Path>,
    to: u64,
    (ranks, workers): (usize, usize),
    out: &Path,
) -> Taken {
    if out.exists() {
        std::fs::remove_dir_all(out).expect("a directory of the bench's own");
    }
    let launcher = std::env::var("MPIRUN").unwrap_or_else(|_| "mpirun".to_owned());
    let mut command = Command::new(&launcher);
    command
        .args(["-n", &ranks.to_string(), env!("CARGO_BIN_EXE_weft"), "run"])
        .arg(scene)
        .args([
            "--threads",
            &workers.to_string(),
            "--steps",
            &to.to_string(),
        ])
        .arg("--quiet")
        .arg("--out")
        .arg(out)
        // Open MPI: as root, and workers on all cores.
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .env("OMPI_MCA_hwloc_base_binding_policy", "none")
        .stdout(Stdio::null());
    if let Some(from) = from {
        command.arg(format!("--resume={}", from.to_string_lossy()));
    }
    let status = command.status();
    let status = status.unwrap_or_else(|error| panic!("{launcher} does not start: {error}"));
    assert!(status.success(), "{command:?} ended with {status}");
    let text = std::fs::read_to_string(out.join("run.json")).expect("a record of the run");
    let record: serde_json::Value = serde_json::from_str(&text).expect("a record of the run");
    let seconds = |value: &serde_json::Value| value.as_f64().expect("seconds");
    let word = |value: &serde_json::Value| value.as_str().expect("a word").to_owned();
    let phases = record["phases"].as_array().expect("phases");
    Taken {
        whole: seconds(&record["loop_s"]),
        phases: (phases.iter())
            .map(|phase| (word(&phase["name"]), seconds(&phase["max_s"])))
            .collect(),
        hash: word(&record["result"]["hash"]),
    }
}

impl Taken {
    fn add(&mut self, other: &Self) {
        self.whole += other.whole;
        for ((_, sum), (_, time)) in self.phases.iter_mut().zip(&other.phases) {
            *sum += time;
        }
    }
}
