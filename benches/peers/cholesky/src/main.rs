//! Solves a system that `cargo bench --bench tolerance` wrote by the sparse Cholesky factorization
//! of faer.
//!
//!   peer-cholesky DIRECTORY RUNS
//!
//! Prints `symbolic MILLISECONDS`, `factor MILLISECONDS` and `solve MILLISECONDS`, of each the
//! shortest of this many runs on one core, and leaves the solution in `solution.bin`. faer chooses
//! order (AMD) and kind of factor by itself.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use faer::linalg::solvers::SolveCore;
use faer::sparse::linalg::solvers::{Llt, SymbolicLlt};
use faer::sparse::{SparseColMatRef, SymbolicSparseColMatRef};
use faer::{Conj, Mat, Par, Side};

fn read<T, const N: usize>(
    directory: &Path,
    name: &str,
    number: impl Fn([u8; N]) -> T,
) -> Result<Vec<T>, Box<dyn Error>> {
    let bytes = fs::read(directory.join(name))?;
    Ok(bytes.as_chunks::<N>().0.iter().map(|&b| number(b)).collect())
}

fn timed<R>(best: &mut Duration, run: impl FnOnce() -> R) -> R {
    let start = Instant::now();
    let result = run();
    *best = start.elapsed().min(*best);
    result
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, directory, runs] = &arguments[..] else {
        return Err("peer-cholesky DIRECTORY RUNS".into());
    };
    let (directory, runs) = (Path::new(directory), runs.parse::<u32>()?);
    let index = |bytes| u32::from_le_bytes(bytes) as usize;
    // Rows of a symmetric matrix are its columns.
    let starts = read(directory, "starts.bin", index)?;
    let rows = read(directory, "columns.bin", index)?;
    let values = read(directory, "values.bin", f64::from_le_bytes)?;
    let rhs = read(directory, "rhs.bin", f64::from_le_bytes)?;

    faer::set_global_parallelism(Par::Seq);
    let n = rhs.len();
    let pattern = SymbolicSparseColMatRef::new_checked(n, n, &starts, None, &rows);
    let matrix = SparseColMatRef::new(pattern, &values);
    let rhs = Mat::from_fn(n, 1, |row, _| rhs[row]);
    let [mut symbolic, mut factor, mut solve] = [Duration::MAX; 3];
    let mut x = rhs.clone();
    for _ in 0..runs {
        let plan = timed(&mut symbolic, || SymbolicLlt::try_new(pattern, Side::Lower));
        let plan = plan.map_err(|e| format!("{e:?}"))?;
        let llt = timed(&mut factor, || {
            Llt::try_new_with_symbolic(plan, matrix, Side::Lower)
        });
        let llt = llt.map_err(|e| format!("{e:?}"))?;
        x.copy_from(&rhs);
        timed(&mut solve, || {
            llt.solve_in_place_with_conj(Conj::No, x.as_mut());
        });
    }
    let solution: Vec<u8> = (0..n).flat_map(|row| x[(row, 0)].to_le_bytes()).collect();
    fs::write(directory.join("solution.bin"), solution)?;
    for (what, time) in [("symbolic", symbolic), ("factor", factor), ("solve", solve)] {
        println!("{what} {}", 1e3 * time.as_secs_f64());
    }
    Ok(())
}
