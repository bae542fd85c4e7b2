//! The time that a cloth's system takes to be solved to a tolerance, beside direct and iterative
//! solvers of other libraries: the same matrix and right-hand side, in one run, on one core.
//!
//!   cargo bench --bench tolerance [-- VERTICES_OF_A_SIDE...]
//!
//! The system is that of a step of 10 ms of a sheet of 1 m held at two corners, rippled and in
//! motion. Tolerances are of the *true* residual, the Euclidean one, as a share of that of zero;
//! this bench computes it from what each solver answers, and fails if it is larger.
//!
//! * to 1e-6 with every preconditioner there is here, beside [faer](https://docs.rs/faer)'s sparse
//!   Cholesky, whose exactness then is too much of a good thing: built when needed into
//!   `target/peers`, which wants the network once;
//! * to 1e-2, which is practice for cloth, beside conjugate gradients of PETSc with each of its
//!   preconditioners that works (`benches/peers/petsc_tolerance.py`); `benches/petsc.rs` says what
//!   it needs, and what `PETSC_PYTHON` and `PETSC_PRELOAD` are for.
//!
//! A peer that is not there is left out, with a word on what it needs. All have their turns one
//! after the other, several times, and the best counts; of the ways of one library those that were
//! far behind in the first round have one turn, and those of PETSc that take three times as long as
//! its best are given up.
//!
//! | column | ours | faer | PETSc |
//! |---|---|---|---|
//! | once a mesh | aggregates, plans of all levels | symbolic factor | not told apart |
//! | set-up | preconditioner, storage, first residual | factor | preconditioner |
//! | solve | iterations and last residual | two triangles | iterations, without norms |

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use glam::DVec3;
use weft_io::Show as _;
use weft_partition::{Aggregates, HaloPlan, Ownership, PatchTree};
use weft_runtime::ScopeOptions;
use weft_runtime::comm::{Tag, solo::Solo};
use weftwork::solve::{
    ModifiedCg, Multilevel, Preconditioner, Smoother, System, Tolerance, aggregate_options,
};
use weftwork::step::{Simulation, World};

#[path = "common/cloth.rs"]
mod cloth;
#[path = "common/petsc.rs"]
mod petsc;
#[path = "common/system.rs"]
mod system;
#[path = "common/timing.rs"]
mod timing;

use system::{export, residual, sides_or};

/// Vertices along a side: 10 000 and 100 000 vertices.
const SIDES: [u32; 2] = [100, 316];
const TIGHT: f64 = 1e-6;
const LOOSE: f64 = 1e-2;
/// How often each has its turn; the best counts.
const ROUNDS: usize = 3;
/// A way that takes this many times as long as the best of its library has no further turn.
const FAR_BEHIND: f64 = 1.5;

/// One way to solve, and the best of its turns; times in ms.
struct Way {
    name: String,
    once: Option<f64>,
    setup: f64,
    solve: f64,
    iterations: Option<u32>,
    residual: f64,
}

impl Way {
    fn total(&self) -> f64 {
        self.setup + self.solve
    }

    /// Keeps the better of two turns.
    fn keep(all: &mut Vec<Self>, now: Self) {
        let Some(best) = all.iter_mut().find(|way| way.name == now.name) else {
            all.push(now);
            return;
        };
        let once = best.once.into_iter().chain(now.once).reduce(f64::min);
        if now.total() < best.total() {
            *best = now;
        }
        best.once = once;
    }

    fn best(all: &[Self]) -> Option<&Self> {
        all.iter().min_by(|a, b| a.total().total_cmp(&b.total()))
    }

    /// Names of those worth another turn.
    fn near(all: &[Self]) -> BTreeSet<String> {
        let best = Self::best(all).map_or(0.0, Self::total);
        let near = all.iter().filter(|way| way.total() <= FAR_BEHIND * best);
        near.map(|way| way.name.clone()).collect()
    }
}

/// The problem that all solvers solve.
struct Problem<'a> {
    world: &'a World,
    system: System<'a>,
    partition: (&'a HaloPlan, &'a PatchTree, &'a Ownership),
    /// The residual of no change but the prescribed ones; other residuals are given as shares of
    /// it.
    initial: f64,
    /// The folder in which the system stands for the peers, and the number of each vertex in
    /// theirs.
    directory: &'a Path,
    order: &'a [u32],
}

impl Problem<'_> {
    /// The residual of a peer's solution.
    fn residual(&self, file: &str) -> Result<f64, String> {
        let path = self.directory.join(file);
        let bytes = fs::read(&path).map_err(|e| format!("{}: {e}", path.shown()))?;
        let number = |at: &[u8; 8]| f64::from_le_bytes(*at);
        let numbers: Vec<f64> = bytes.as_chunks::<8>().0.iter().map(number).collect();
        let (x, _) = numbers.as_chunks::<3>();
        if x.len() != self.system.rhs.len() {
            return Err(format!("{}: {} vertices", path.shown(), x.len()));
        }
        let x: Vec<DVec3> = (self.order.iter())
            .map(|&vertex| DVec3::from(x[vertex as usize]))
            .collect();
        Ok(residual(&self.system, &x) / self.initial)
    }

    /// Our ways, each ready for its turns.
    fn ours(&self, goal: f64) -> Vec<Ours<'_>> {
        [
            ("block-jacobi", Smoother::BlockJacobi, false),
            ("patch-ssor", Smoother::PatchSsor, false),
            ("multilevel, block-jacobi", Smoother::BlockJacobi, true),
            ("multilevel, patch-ssor", Smoother::PatchSsor, true),
        ]
        .map(|(name, smoother, multilevel)| Ours::new(self, name, (smoother, multilevel), goal))
        .into()
    }
}

struct Ours<'a> {
    problem: &'a Problem<'a>,
    name: &'static str,
    once: f64,
    cg: ModifiedCg,
    tolerance: Tolerance,
    x: Vec<DVec3>,
    /// Solves of a turn.
    runs: u32,
}

impl<'a> Ours<'a> {
    fn new(
        problem: &'a Problem<'a>,
        name: &'static str,
        (smoother, multilevel): (Smoother, bool),
        goal: f64,
    ) -> Self {
        let (world, partition) = (problem.world, problem.partition);
        let pattern = problem.system.matrix.pattern();
        let mut made = None;
        let once = milliseconds(1, || {
            let graph = &world.graphs().matrix;
            let aggregates = multilevel.then(|| {
                Aggregates::build(graph, world.tree(), &aggregate_options(goal))
                    .expect("the world's own")
            });
            let coarse = aggregates.as_ref().map(|aggregates| {
                let coarse = aggregates.quotient(graph);
                coarse.expect("both are of one mesh")
            });
            let multilevel = (aggregates.as_ref())
                .zip(coarse.as_ref())
                .map(|(aggregates, coarse)| Multilevel { aggregates, coarse });
            let preconditioner = Preconditioner::new(smoother, multilevel, pattern, partition);
            made = Some(ModifiedCg::new(partition, preconditioner, Tag(1)));
        });
        let mut ours = Self {
            problem,
            name,
            once,
            cg: made.expect("made once"),
            tolerance: Tolerance {
                relative: goal,
                absolute: 0.0,
                max_iterations: 100_000,
            },
            x: vec![DVec3::ZERO; problem.system.rhs.len()],
            runs: 1,
        };
        // The solve stops by its own norm: what stands for the goal in it is found by trying.
        loop {
            let time = milliseconds(1, || ours.solve(ours.tolerance));
            ours.runs = if time < 1e3 { 3 } else { 1 };
            let reached = residual(&problem.system, &ours.x) / (goal * problem.initial);
            if reached <= 1.0 {
                return ours;
            }
            ours.tolerance.relative *= (0.9 / reached).min(0.97);
        }
    }

    fn solve(&mut self, tolerance: Tolerance) -> u32 {
        self.x.fill(DVec3::ZERO);
        let system = &self.problem.system;
        let outcome = self
            .cg
            .solve(&mut Solo::new(), system, &tolerance, &mut self.x);
        outcome
            .expect("a cloth's system is positive definite")
            .iterations
    }

    fn turn(&mut self) -> Way {
        // With a tolerance that any residual meets, a solve only begins.
        let at_once = Tolerance {
            absolute: 1e100,
            ..self.tolerance
        };
        let setup = milliseconds(3, || self.solve(at_once));
        let mut iterations = 0;
        let total = milliseconds(self.runs, || iterations = self.solve(self.tolerance));
        Way {
            name: self.name.to_owned(),
            once: Some(self.once),
            setup,
            solve: total - setup,
            iterations: Some(iterations),
            residual: residual(&self.problem.system, &self.x) / self.problem.initial,
        }
    }
}

fn milliseconds<R>(runs: u32, run: impl FnMut() -> R) -> f64 {
    1e3 * timing::best(runs, run).as_secs_f64()
}

/// Finds the program of faer, and builds it if it is not there; or says why there is none.
fn build_faer() -> Result<PathBuf, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let target = root.join("target/peers");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["build", "--locked", "--release", "--manifest-path"])
        .arg(root.join("benches/peers/cholesky/Cargo.toml"))
        .arg("--target-dir")
        .arg(&target)
        .output();
    match output {
        Ok(output) if output.status.success() => Ok(target.join("release/peer-cholesky")),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        Err(error) => Err(format!("cargo: {error}")),
    }
}

fn faer(program: &Path, problem: &Problem<'_>) -> Result<Way, String> {
    let output = Command::new(program)
        .arg(problem.directory)
        .arg("2")
        .output()
        .map_err(|e| format!("{}: {e}", program.shown()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let figure = |what: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(what));
        line.and_then(|ms| ms.trim().parse().ok())
            .ok_or_else(|| String::from_utf8_lossy(&output.stderr).into_owned())
    };
    Ok(Way {
        name: "faer, sparse Cholesky".to_owned(),
        once: Some(figure("symbolic")?),
        setup: figure("factor")?,
        solve: figure("solve")?,
        iterations: None,
        residual: problem.residual("solution.bin")?,
    })
}

/// Solves with the preconditioners of PETSc that are asked for, or with all if none is. The second
/// list has the messages of preconditioners that failed.
fn petsc(
    problem: &Problem<'_>,
    goal: f64,
    names: &BTreeSet<String>,
) -> Result<(Vec<Way>, Vec<String>), String> {
    let mut arguments = vec![(goal * problem.initial).to_string()];
    arguments.extend(names.iter().cloned());
    let text = petsc::run("petsc_tolerance.py", problem.directory, 1, &arguments)?;
    let (mut ways, mut failed) = (Vec::new(), Vec::new());
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let Some(why) = line.strip_prefix("FAILED ") {
            failed.push(why.to_owned());
        } else if let [name, setup, solve, iterations] = words[..]
            && let (Ok(setup), Ok(solve), Ok(iterations)) =
                (setup.parse(), solve.parse(), iterations.parse())
        {
            ways.push(Way {
                name: name.to_owned(),
                once: None,
                setup,
                solve,
                iterations: Some(iterations),
                residual: problem.residual(&format!("{}.bin", name.replace('/', "-")))?,
            });
        }
    }
    Ok((ways, failed))
}

/// Prints the ways, the fastest first; what was found to be wrong.
#[expect(clippy::print_stdout, reason = "the table is what the bench is for")]
fn print(vertices: usize, goal: f64, whose: &str, ways: &mut [Way]) -> Vec<String> {
    ways.sort_by(|a, b| a.total().total_cmp(&b.total()));
    let mut wrong = Vec::new();
    for way in ways {
        let once = way
            .once
            .map_or_else(|| "-".to_owned(), |ms| format!("{ms:.1}"));
        let iterations = way
            .iterations
            .map_or_else(|| "-".to_owned(), |n| n.to_string());
        let name = format!("{whose}{}", way.name);
        println!(
            "{vertices:<9} {goal:<7.0e} {name:<29} {once:<13} {:<10.1} {:<10.1} {:<10.1} {iterations:<11} {:.1e}",
            way.setup,
            way.solve,
            way.total(),
            way.residual,
        );
        if way.residual > goal || way.residual.is_nan() {
            wrong.push(format!("{name}: residual {:e}", way.residual));
        }
    }
    wrong
}

#[expect(clippy::print_stdout, reason = "the table is what the bench is for")]
fn ratios(goal: f64, ours: &Way, peer: &Way) {
    println!(
        "to {goal:.0e}, {} / {}: {:.2} with set-up, {:.2} without",
        ours.name,
        peer.name,
        ours.total() / peer.total(),
        ours.solve / peer.solve,
    );
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
    let sides = sides_or(&SIDES);
    let mut cholesky = build_faer();
    let (mut absent, mut wrong) = (BTreeSet::new(), Vec::new());
    println!(
        "vertices  to      by                            once a mesh   set-up     solve      both, ms   iterations  true residual"
    );
    for side in sides {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let directory = directory.path();
        let world = cloth::cloth(side);
        let mut simulation =
            Simulation::new(&world, &Solo::new(), &ScopeOptions::default()).expect("one rank");
        cloth::ripple(&mut simulation);
        let ownership = simulation.ownership().clone();
        let plan = HaloPlan::new(&world.graphs().matrix, &ownership, 0).expect("rank 0");
        let system = simulation
            .free_system(&mut Solo::new())
            .expect("no triangle collapsed");
        // Row by row: factors of PETSc are better in that order than in ours.
        let order = world.tree().new_to_old();
        if let Err(error) = export(&system, order, directory) {
            eprintln!("{}: {error}", directory.shown());
            return ExitCode::FAILURE;
        }
        let mut x = vec![DVec3::ZERO; system.rhs.len()];
        system.filter.write_changes(&mut x);
        let problem = Problem {
            world: &world,
            initial: residual(&system, &x),
            system,
            partition: (&plan, world.tree(), &ownership),
            directory,
            order,
        };
        for goal in [TIGHT, LOOSE] {
            let mut solvers = problem.ours(goal);
            let (mut ours, mut theirs): (Vec<Way>, Vec<Way>) = Default::default();
            let mut failures = Vec::new();
            // In turns, for few machines are quiet for long.
            for round in 0..ROUNDS {
                let near = Way::near(&ours);
                for solver in &mut solvers {
                    if round == 0 || near.contains(solver.name) {
                        Way::keep(&mut ours, solver.turn());
                    }
                }
                let near = Way::near(&theirs);
                let peer = if goal == TIGHT {
                    let turn = cholesky.as_ref().map(|program| faer(program, &problem));
                    match turn {
                        Ok(turn) => turn.map(|way| (vec![way], Vec::new())),
                        Err(error) => Err(error.clone()),
                    }
                } else if round > 0 && near.is_empty() {
                    continue;
                } else {
                    petsc(&problem, goal, &near)
                };
                match peer {
                    Ok((ways, failed)) => {
                        ways.into_iter().for_each(|way| Way::keep(&mut theirs, way));
                        failures.extend(failed);
                    }
                    Err(error) if goal == TIGHT => {
                        absent.insert(format!("faer: {error}\n  needs: the network, once"));
                        cholesky = Err(error);
                    }
                    Err(error) => {
                        absent.insert(format!("PETSc: {error}\n  needs: {}", petsc::NEEDS));
                    }
                }
            }
            wrong.extend(print(order.len(), goal, "", &mut ours));
            let whose = if goal == TIGHT { "" } else { "PETSc " };
            wrong.extend(print(order.len(), goal, whose, &mut theirs));
            for why in failures {
                println!("{:<9} {goal:<7.0e} {whose}{why}", order.len());
            }
            if let (Some(ours), Some(theirs)) = (ours.first(), theirs.first()) {
                ratios(goal, ours, theirs);
            }
        }
    }
    for what in &absent {
        eprintln!("LEFT OUT: {what}");
    }
    for what in &wrong {
        eprintln!("NOT SOLVED: {what}");
    }
    if wrong.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
