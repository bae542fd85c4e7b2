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
//! these; further the bytes that one of ours must move at least for each vertex, and how fast it moves them, as a share of STREAM's triad on as
//! many bytes and ranks, in large pages, in the same minute.

use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

use glam::DVec3;
use memmap2::MmapMut;
use weft_partition::HaloPlan;
use weft_runtime::ScopeOptions;
use weft_runtime::comm::{Collectives, Comm, Tag, threads};
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

/// Bytes of vectors that an iteration moves for a vertex: one read and one written by the product, three read by the scalar products, and
/// one pass over six, of which five are written, with the inverted blocks.
const VECTOR_BYTES: usize = 48 + 72 + 11 * 24 + 48;

/// Best time of an iteration on so many ranks, and the bytes that it moves.
fn ours(world: &World, ranks: usize) -> (Duration, usize) {
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
        let time = many.saturating_sub(few) / ITERATIONS;
        let vectors = VECTOR_BYTES * system.rhs.len();
        (time, cg.product_bytes(system.matrix) + vectors)
    });
    let times = times.expect("threads");
    (times.into_iter()).fold((Duration::ZERO, 0), |(longest, sum), (time, bytes)| {
        (longest.max(time), sum + bytes)
    })
}

/// The rate of STREAM's triad on so many bytes, shared by so many ranks, in bytes a second.
fn triad(bytes: usize, ranks: usize) -> f64 {
    let len = bytes / ranks / 24;
    let times = threads::launch(ranks, |comm| {
        let array = |value: f64| -> MmapMut {
            let mut room = MmapMut::map_anon(8 * len).expect("memory");
            #[cfg(target_os = "linux")]
            drop(room.advise(memmap2::Advice::HugePage));
            bytemuck::cast_slice_mut(&mut room).fill(value);
            room
        };
        let (mut a, b, c) = (array(0.0), array(1.0), array(2.0));
        let times = (0..20).map(|_| {
            comm.barrier().expect("ranks");
            timing::best(1, || {
                let (b, c): (&[f64], &[f64]) = (bytemuck::cast_slice(&b), bytemuck::cast_slice(&c));
                for ((a, b), c) in bytemuck::cast_slice_mut(&mut a).iter_mut().zip(b).zip(c) {
                    *a = b + 3.0 * c;
                }
                std::hint::black_box(&mut a);
            })
        });
        times.min().unwrap_or_default()
    });
    let slowest = times.expect("threads").into_iter().max();
    (24 * len * ranks) as f64 / slowest.unwrap_or_default().as_secs_f64()
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
        "vertices  ranks  ms/iteration  PETSc's, by format                          of the best  bytes/vertex  of triad's rate"
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
            let (mut time, mut rate, mut bytes) = (f64::INFINITY, 0.0_f64, 0);
            let mut formats: Vec<(String, f64)> = Vec::new();
            for _ in 0..ROUNDS {
                let (now, moved) = ours(&world, ranks);
                time = time.min(1e3 * now.as_secs_f64());
                bytes = moved;
                rate = rate.max(triad(bytes, ranks));
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
                "{:<9} {ranks:<6} {time:<13.3} {:<43} {:<12.2} {:<13} {:.2}",
                side * side,
                shown.join("  "),
                time / best,
                bytes / (side * side) as usize,
                1e3 * bytes as f64 / time / rate
            );
        }
    }
    ExitCode::SUCCESS
}
