//! An iteration of conjugate gradients with 3x3 blocks on the diagonal as preconditioner, against PETSc's: the same
//! system, in one run, on one rank and on two.
//!
//!   cargo bench --bench petsc [-- VERTICES_OF_A_SIDE...]
//!
//! Wants Debian's petsc4py (`apt-get install python3-petsc4py python3-petsc4py-real python3-numpy python3-scipy
//! openmpi-bin`); `PETSC_PYTHON` names another interpreter that has it, `PETSC_PRELOAD` a library for it to load first:
//! kernels of PETSc prefetch with the non-temporal hint, which keeps the matrix out of the caches of some
//! processors, and a build with that mended is the fairer peer there.
//!
//! Prints for each size the milliseconds of an iteration, ours and of each of PETSc's formats, and the ratio to the best of
//! these. What share of the memory's rate that is, `cargo bench --bench solve` says.

use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

use glam::DVec3;
use weft_partition::HaloPlan;
use weft_runtime::ScopeOptions;
use weft_runtime::comm::{Comm, Tag, threads};
use weftwork::solve::{ModifiedCg, Preconditioner, SolveError, Tolerance};
use weftwork::step::{Simulation, World};

#[path = "common/cloth.rs"]
mod cloth;
#[path = "common/timing.rs"]
mod timing;

/// Iterations of a measured solve.
const ITERATIONS: u32 = 50;

/// How often each of the two has its turn; the best counts.
const ROUNDS: usize = 3;

/// Best times of an iteration on so many ranks.
fn ours(world: &World, ranks: usize) -> Duration {
    let times = threads::launch(ranks, |comm| {
        let mut simulation =
            Simulation::new(world, comm, &ScopeOptions::default()).expect("patches enough");
        cloth::ripple(&mut simulation);
        let ownership = simulation.ownership().clone();
        let plan = HaloPlan::new(world.graph(), &ownership, comm.rank().index()).expect("a rank");
        let system = simulation.free_system().expect("no triangle collapsed");
        let partition = (&plan, world.tree(), &ownership);
        let mut cg = ModifiedCg::new(partition, Preconditioner::block_jacobi(), Tag(1));
        let mut x = vec![DVec3::ZERO; system.rhs.len()];
        let mut solve = |comm: &mut dyn Comm, iterations: u32| {
            let tolerance = Tolerance {
                relative: 1e-300,
                absolute: 0.0,
                max_iterations: iterations,
            };
            timing::best(10, || {
                x.fill(DVec3::ZERO);
                let outcome = cg.solve(comm, &system, &tolerance, &mut x);
                assert!(
                    matches!(outcome, Err(SolveError::NotConverged { .. })),
                    "{outcome:?}"
                );
            })
        };
        // What every solve begins and ends with is not an iteration's.
        let (few, many) = (solve(comm, 10), solve(comm, 10 + ITERATIONS));
        many.saturating_sub(few) / ITERATIONS
    });
    let times = times.expect("threads");
    times.into_iter().max().unwrap_or_default()
}

/// Writes the system as rows of scalars, little-endian.
fn export(world: &World, to: &Path) -> io::Result<usize> {
    let comm = weft_runtime::comm::solo::Solo::new();
    let mut simulation = Simulation::new(world, &comm, &ScopeOptions::default()).expect("one rank");
    cloth::ripple(&mut simulation);
    let system = simulation.free_system().expect("no triangle collapsed");
    let order: Vec<u32> = (0..system.rhs.len() as u32).collect();
    let whole = system.prefiltered(&order);
    let mut entries = whole.entries;
    let upper: Vec<_> = (entries.iter())
        .filter(|(row, column, _)| row != column)
        .map(|&(row, column, value)| (column, row, value))
        .collect();
    entries.extend(upper);
    entries.sort_unstable_by_key(|&(row, column, _)| (row, column));
    let mut starts = vec![0_i32; whole.rhs.len() + 1];
    for (row, ..) in &entries {
        starts[*row as usize + 1] += 1;
    }
    for row in 0..whole.rhs.len() {
        starts[row + 1] += starts[row];
    }
    let columns: Vec<u8> = entries.iter().flat_map(|e| e.1.to_le_bytes()).collect();
    let values: Vec<u8> = entries.iter().flat_map(|e| e.2.to_le_bytes()).collect();
    fs::write(
        to.join("starts.bin"),
        starts
            .iter()
            .flat_map(|s| s.to_le_bytes())
            .collect::<Vec<_>>(),
    )?;
    fs::write(to.join("columns.bin"), columns)?;
    fs::write(to.join("values.bin"), values)?;
    fs::write(
        to.join("rhs.bin"),
        whole
            .rhs
            .iter()
            .flat_map(|b| b.to_le_bytes())
            .collect::<Vec<_>>(),
    )?;
    Ok(entries.len())
}

/// Lines of the peer, or what it said instead.
fn peer(directory: &Path, ranks: usize) -> Result<Vec<(String, f64)>, String> {
    let python = std::env::var("PETSC_PYTHON").unwrap_or_else(|_| "/usr/bin/python3".to_owned());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/peers/petsc_cg.py");
    let mut command = Command::new("mpirun");
    command.args(["-n", &ranks.to_string()]);
    for (name, value) in [
        ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
        ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
        ("OMP_NUM_THREADS", "1"),
    ] {
        command.env(name, value);
    }
    if let Ok(library) = std::env::var("PETSC_PRELOAD") {
        command.args(["-x", &format!("LD_PRELOAD={library}")]);
    }
    command
        .arg(python)
        .arg(script)
        .arg(directory)
        .arg(ITERATIONS.to_string());
    let output = command.output().map_err(|e| format!("mpirun: {e}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let lines = text.lines().map(|line| {
        let mut words = line.split_whitespace();
        let format = words.next()?.to_owned();
        Some((format, words.next()?.parse().ok()?))
    });
    lines
        .collect::<Option<_>>()
        .ok_or_else(|| text.into_owned())
}

#[expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the table is what the bench is for"
)]
fn main() -> ExitCode {
    if !timing::measures() {
        return ExitCode::SUCCESS;
    }
    let sides: Vec<u32> = std::env::args().filter_map(|a| a.parse().ok()).collect();
    let sides = if sides.is_empty() {
        vec![100, 316, 707]
    } else {
        sides
    };
    println!(
        "vertices  ranks  ms/iteration  PETSc's, by format                          of the best"
    );
    for side in sides {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let world = cloth::cloth(side);
        if let Err(error) = export(&world, directory.path()) {
            eprintln!("{}: {error}", directory.path().display());
            return ExitCode::FAILURE;
        }
        for ranks in [1, 2] {
            // In turns, for few machines are quiet for long.
            let mut time = f64::INFINITY;
            let mut formats: Vec<(String, f64)> = Vec::new();
            for _ in 0..ROUNDS {
                time = time.min(1e3 * ours(&world, ranks).as_secs_f64());
                match peer(directory.path(), ranks) {
                    Ok(now) if formats.is_empty() => formats = now,
                    Ok(now) => {
                        for (best, now) in formats.iter_mut().zip(now) {
                            best.1 = best.1.min(now.1);
                        }
                    }
                    Err(error) => {
                        eprintln!(
                            "PETSc could not be run (what it needs stands in benches/petsc.rs):\n{error}"
                        );
                        return ExitCode::FAILURE;
                    }
                }
            }
            let best = formats.iter().map(|f| f.1).fold(f64::INFINITY, f64::min);
            let shown: Vec<String> = formats
                .iter()
                .map(|(name, ms)| format!("{name} {ms:.3}"))
                .collect();
            println!(
                "{:<9} {ranks:<6} {time:<13.3} {:<43} {:.2}",
                side * side,
                shown.join("  "),
                time / best
            );
        }
    }
    ExitCode::SUCCESS
}
