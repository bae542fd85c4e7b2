//! An iteration of conjugate gradients with 3x3 blocks on the diagonal as preconditioner, against
//! PETSc's: the same system, in one run, on one rank and on two.
//!
//!   cargo bench --bench petsc [-- VERTICES_OF_A_SIDE...]
//!
//! Wants Debian's petsc4py (`apt-get install python3-petsc4py python3-petsc4py-real python3-numpy
//! python3-scipy openmpi-bin`); `PETSC_PYTHON` names another interpreter that has it,
//! `PETSC_PRELOAD` a library for it to load first: kernels of PETSc prefetch with the non-temporal
//! hint, which keeps the matrix out of the caches of some processors, and a build with that mended
//! is the fairer peer there. Without PETSc only our own columns are filled.
//!
//! Prints for each size the milliseconds of an iteration, ours and of each of PETSc's formats, and
//! the ratio to the best of these; further the bytes that one of ours must move at least for each
//! vertex, and how fast it moves them, as a share of two rates of the triad on as many ranks, in
//! large pages, in the same minute: STREAM's, of arrays that caches do not hold, and that on as
//! many bytes as the iteration has, which they may; what share of an iteration goes to adding up
//! what patches have in the order of the tree, with the message that several ranks need for it; and
//! how many iterations' time the assembly of the matrix takes, such ones and those with the
//! multilevel preconditioner, which scenes have unless they say otherwise; and how many what a
//! solve does before and after its iterations.

use std::fs;
use std::hint::black_box;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use glam::DVec3;
use memmap2::MmapMut;
use weft_io::Show as _;
use weft_partition::HaloPlan;
use weft_runtime::ScopeOptions;
use weft_runtime::comm::{Collectives, Comm, Tag, threads};
use weftwork::solve::{
    ModifiedCg, Multilevel, Preconditioner, Reduction, Smoother, SolveError, Tolerance,
};
use weftwork::step::{Simulation, World};

#[path = "common/cloth.rs"]
mod cloth;
#[path = "common/petsc.rs"]
mod petsc;
#[path = "common/system.rs"]
#[expect(dead_code, reason = "other benches use the rest")]
mod system;
#[path = "common/timing.rs"]
mod timing;

/// Vertices along a side: 10 000, 100 000 and 500 000 vertices.
const SIDES: [u32; 3] = [100, 316, 707];
/// Iterations of a measured solve, beyond the few of another one.
const ITERATIONS: u32 = 50;
const FEW: u32 = 10;
/// Sums over all patches in a measured loop.
const SUMS: u32 = 100;

/// How often each of the two has its turn; the best counts.
const ROUNDS: usize = 3;

/// Bytes of vectors that an iteration moves for a vertex: one read and one written by the product,
/// which has the inverted blocks read too, in single precision; and one pass over three, of which
/// two are written, with these blocks and, at every second iteration, x. The scalar products find
/// theirs in the cache.
const VECTOR_BYTES: usize = 48 + 24 + 5 * 24 + 24 + 48 / 2;

/// Best times of the slowest rank, and the bytes of all.
#[derive(Clone, Copy)]
struct Ours {
    iteration: Duration,
    /// The time with the multilevel preconditioner.
    multilevel: Duration,
    /// The time of a solve outside of its iterations: factoring the preconditioner, copying the
    /// arrays that the iterations read, and the residuals before and after.
    around: Duration,
    /// Adding up two numbers of every patch in the order of the tree, which an iteration does once.
    sums: Duration,
    assembly: Duration,
    /// The bytes that an iteration moves.
    bytes: usize,
}

fn ours(world: &World, ranks: usize) -> Ours {
    let of_ranks = threads::launch(ranks, |comm| {
        let mut simulation =
            Simulation::new(world, comm, &ScopeOptions::default()).expect("patches enough");
        cloth::ripple(&mut simulation);
        let ownership = simulation.ownership().clone();
        let rank = comm.rank().index();
        let plan = HaloPlan::new(&world.graphs().matrix, &ownership, rank).expect("a rank");
        comm.barrier().expect("ranks");
        let assembly = timing::best(5, || simulation.free_system(comm).is_ok());
        let system = simulation.free_system(comm).expect("no triangle collapsed");
        let partition = (&plan, world.tree(), &ownership);
        let mut x = vec![DVec3::ZERO; system.rhs.len()];
        let mut solve = |comm: &mut dyn Comm, cg: &mut ModifiedCg, iterations: u32| {
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
        // The beginning and the end of a solve are no part of an iteration.
        let mut timed = |comm: &mut dyn Comm, preconditioner: Preconditioner| {
            let mut cg = ModifiedCg::new(partition, preconditioner, Tag(1));
            let few = solve(comm, &mut cg, FEW);
            let many = solve(comm, &mut cg, FEW + ITERATIONS);
            let iteration = many.saturating_sub(few) / ITERATIONS;
            let bytes = cg.product_bytes(system.matrix);
            (iteration, few.saturating_sub(FEW * iteration), bytes)
        };
        let graphs = world.graphs();
        let multilevel = Multilevel {
            aggregates: graphs.aggregates.as_ref().expect("the scene asks for them"),
            coarse: graphs.coarse.as_ref().expect("the scene asks for them"),
        };
        let multilevel = Preconditioner::new(
            Smoother::BlockJacobi,
            Some(multilevel),
            system.matrix.pattern(),
            partition,
        );
        let (multilevel, ..) = timed(comm, multilevel);
        let (iteration, around, bytes) = timed(comm, Preconditioner::block_jacobi());
        let reduction = Reduction::new(world.tree(), &ownership, rank);
        let sums = timing::best(20, || {
            for _ in 0..SUMS {
                let of_patch = |patch: Range<usize>| [patch.start, patch.end].map(|row| row as f64);
                black_box(reduction.sum(comm, of_patch).expect("ranks"));
            }
        });
        Ours {
            iteration,
            multilevel,
            around,
            sums: sums / SUMS,
            assembly,
            bytes: bytes + VECTOR_BYTES * system.rhs.len(),
        }
    });
    (of_ranks.expect("threads").into_iter())
        .reduce(|a, b| Ours {
            iteration: a.iteration.max(b.iteration),
            multilevel: a.multilevel.max(b.multilevel),
            around: a.around.max(b.around),
            sums: a.sums.max(b.sums),
            assembly: a.assembly.max(b.assembly),
            bytes: a.bytes + b.bytes,
        })
        .expect("a rank")
}

/// The rate of STREAM's triad on this many bytes, shared by this many ranks, in bytes a second.
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
                black_box(&mut a);
            })
        });
        times.min().unwrap_or_default()
    });
    let slowest = times.expect("threads").into_iter().max();
    (24 * len * ranks) as f64 / slowest.unwrap_or_default().as_secs_f64()
}

/// The bytes of STREAM's arrays: each is four times as long as the largest cache.
fn stream_bytes() -> usize {
    let kibibytes = |index: u32| -> Option<usize> {
        let file = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/size");
        fs::read_to_string(file)
            .ok()?
            .trim()
            .strip_suffix('K')?
            .parse()
            .ok()
    };
    let largest = (0..5).filter_map(kibibytes).max().unwrap_or(32 << 10);
    3 * 4 * (largest << 10)
}

/// Writes the system for the peer.
fn write(world: &World, to: &Path) -> io::Result<()> {
    let mut comm = weft_runtime::comm::solo::Solo::new();
    let mut simulation = Simulation::new(world, &comm, &ScopeOptions::default()).expect("one rank");
    cloth::ripple(&mut simulation);
    let system = simulation
        .free_system(&mut comm)
        .expect("no triangle collapsed");
    let order: Vec<u32> = (0..system.rhs.len() as u32).collect();
    system::export(&system, &order, to)
}

/// Lines of the peer, or what it said instead.
fn peer(directory: &Path, ranks: usize) -> Result<Vec<(String, f64)>, String> {
    let text = petsc::run("petsc_cg.py", directory, ranks, &[ITERATIONS.to_string()])?;
    let lines = text.lines().map(|line| {
        let mut words = line.split_whitespace();
        let format = words.next()?.to_owned();
        Some((format, words.next()?.parse().ok()?))
    });
    lines.collect::<Option<_>>().ok_or_else(|| text.clone())
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
    let sides = system::sides_or(&SIDES);
    println!(
        "vertices  ranks  ms/iteration  PETSc's, by format                          of the best  bytes/vertex  of STREAM's rate  of the triad's on as many  sums, %  in iterations: assembly  the same, multilevel  around a solve"
    );
    let mut has_peer = true;
    for side in sides {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let world = cloth::cloth(side);
        if let Err(error) = write(&world, directory.path()) {
            eprintln!("{}: {error}", directory.path().shown());
            return ExitCode::FAILURE;
        }
        for ranks in [1, 2] {
            // In turns, for few machines are quiet for long.
            let (mut time, mut bytes) = (f64::INFINITY, 0);
            let (mut stream, mut rate) = (0.0_f64, 0.0_f64);
            let [mut sums, mut assembly, mut around, mut multilevel] = [f64::INFINITY; 4];
            let mut formats: Vec<(String, f64)> = Vec::new();
            for _ in 0..ROUNDS {
                let now = ours(&world, ranks);
                let ms = |duration: Duration| 1e3 * duration.as_secs_f64();
                time = time.min(ms(now.iteration));
                multilevel = multilevel.min(ms(now.multilevel));
                sums = sums.min(ms(now.sums));
                assembly = assembly.min(ms(now.assembly));
                around = around.min(ms(now.around));
                bytes = now.bytes;
                stream = stream.max(triad(stream_bytes(), ranks));
                rate = rate.max(triad(bytes, ranks));
                if !has_peer {
                    continue;
                }
                match peer(directory.path(), ranks) {
                    Ok(now) if formats.is_empty() => formats = now,
                    Ok(now) => {
                        for (best, now) in formats.iter_mut().zip(now) {
                            best.1 = best.1.min(now.1);
                        }
                    }
                    Err(error) => {
                        eprintln!("PETSc could not be run: {error}\n  needs: {}", petsc::NEEDS);
                        has_peer = false;
                    }
                }
            }
            let best = formats.iter().map(|f| f.1).reduce(f64::min);
            let of_best = best.map_or_else(|| "-".to_owned(), |best| format!("{:.2}", time / best));
            let shown: Vec<String> = formats
                .iter()
                .map(|(name, ms)| format!("{name} {ms:.3}"))
                .collect();
            println!(
                "{:<9} {ranks:<6} {time:<13.3} {:<43} {of_best:<12} {:<13} {:<17.2} {:<26.2} {:<8.2} {:<24.2} {:<21.2} {:.2}",
                side * side,
                shown.join("  "),
                bytes / (side * side) as usize,
                1e3 * bytes as f64 / time / stream,
                1e3 * bytes as f64 / time / rate,
                100.0 * sums / time,
                assembly / time,
                assembly / multilevel,
                around / time
            );
        }
    }
    ExitCode::SUCCESS
}
