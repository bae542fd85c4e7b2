mod failures;
mod iterations;
mod starts;

use glam::{DMat3, DVec3};
use weft_runtime::comm::solo::Solo;
use weft_runtime::comm::threads;

use super::*;
use crate::solve::Filter;
use crate::solve::testing::{KINDS, Kind, Noise, Part, Sheet, factor, precondition};

const TAG: Tag = Tag(3);

fn tight() -> Tolerance {
    Tolerance {
        relative: 1e-12,
        ..Tolerance::default()
    }
}

fn bits(vector: &[DVec3]) -> Vec<[u64; 3]> {
    vector
        .iter()
        .map(|v| v.to_array().map(f64::to_bits))
        .collect()
}

/// The input of one rank to a solve; tests change it before.
struct Job {
    preconditioner: Kind,
    positions: Vec<DVec3>,
    part: Part,
    filter: Filter,
    tolerance: Tolerance,
    threads: usize,
    copied: bool,
    earlier: Option<Vec<DVec3>>,
    x: Vec<DVec3>,
    owned: Range<usize>,
}

type Solved = (Result<Outcome, SolveError>, Vec<DVec3>, Vec<DVec3>);

/// Solves on this many ranks; the results of all ranks, their vectors joined.
fn solve(sheet: &Sheet, ranks: usize, seed: u64, prepare: impl Fn(&mut Job) + Sync) -> Solved {
    let of_ranks = threads::launch(ranks, |comm| {
        let rank = comm.rank().index();
        let plan = sheet.plan(ranks, rank);
        let mut job = Job {
            preconditioner: Kind::Jacobi,
            positions: sheet.positions(ranks, rank),
            part: sheet.system(ranks, rank, seed),
            filter: sheet.filter(ranks, rank, seed),
            tolerance: tight(),
            threads: 1,
            copied: false,
            earlier: None,
            x: vec![DVec3::ZERO; plan.owned().len()],
            owned: plan.owned(),
        };
        prepare(&mut job);
        let ownership = sheet.ownership(ranks);
        let preconditioner = sheet.preconditioner(job.preconditioner, ranks, rank);
        let team = Team::new(job.threads).unwrap();
        let cg = ModifiedCg::new((&plan, &sheet.tree, &ownership), preconditioner, TAG);
        let mut cg = cg.with_team(&team).with_symmetric_copy(job.copied);
        let Job {
            positions,
            part: Part { matrix, rhs },
            filter,
            tolerance,
            earlier,
            mut x,
            ..
        } = job;
        let system = System {
            matrix: &matrix,
            rhs: &rhs,
            filter: &filter,
            positions: &positions,
        };
        let outcome = cg.solve_after(comm, &system, &tolerance, earlier.as_deref(), &mut x);
        (outcome, x, cg.constraint_force().to_vec())
    })
    .unwrap();
    let outcome = of_ranks[0].0.clone();
    let mut joined: Solved = (outcome, Vec::new(), Vec::new());
    for (outcome, x, force) in of_ranks {
        assert_eq!(
            format!("{outcome:?}"),
            format!("{:?}", joined.0),
            "ranks disagree"
        );
        joined.1.extend(x);
        joined.2.extend(force);
    }
    joined
}

/// Solves A x = b by Cholesky's factors, in place.
fn cholesky_solve(a: &mut [Vec<f64>], b: &mut [f64]) {
    let n = b.len();
    for j in 0..n {
        for k in 0..j {
            let factor = a[j][k];
            for line in &mut a[j..] {
                line[j] -= line[k] * factor;
            }
        }
        let root = a[j][j].sqrt();
        assert!(root > 0.0, "not positive definite");
        for line in &mut a[j..] {
            line[j] /= root;
        }
    }
    for i in 0..n {
        let sum: f64 = (0..i).map(|k| a[i][k] * b[k]).sum();
        b[i] = (b[i] - sum) / a[i][i];
    }
    for i in (0..n).rev() {
        let sum: f64 = (i + 1..n).map(|k| a[k][i] * b[k]).sum();
        b[i] = (b[i] - sum) / a[i][i];
    }
}

/// The reference: S A S + (I − S) with right-hand side S (b − A z) + z, by Cholesky.
fn reference(sheet: &Sheet, seed: u64, filter: &Filter) -> Vec<DVec3> {
    let dense = sheet.dense(seed);
    let rhs = sheet.system(1, 0, seed).rhs;
    let n = sheet.len();
    let block = |i: usize, j: usize| {
        DMat3::from_cols_array_2d(&std::array::from_fn(|c| {
            std::array::from_fn(|r| dense[3 * i + r][3 * j + c])
        }))
    };
    let mut a = vec![vec![0.0; 3 * n]; 3 * n];
    let mut b = vec![0.0; 3 * n];
    for i in 0..n {
        let mut residual = rhs[i];
        for j in 0..n {
            residual -= block(i, j) * filter.change(j);
            let mut filtered = filter.free(i) * block(i, j) * filter.free(j);
            if i == j {
                filtered += DMat3::IDENTITY - filter.free(i);
            }
            for r in 0..3 {
                for c in 0..3 {
                    a[3 * i + r][3 * j + c] = filtered.col(c)[r];
                }
            }
        }
        let filtered = filter.free(i) * residual;
        b[3 * i..3 * i + 3].copy_from_slice(&filtered.to_array());
    }
    cholesky_solve(&mut a, &mut b);
    (b.chunks_exact(3).enumerate())
        .map(|(i, y)| filter.change(i) + filter.free(i) * DVec3::from_slice(y))
        .collect()
}

#[test]
fn solution_is_that_of_a_direct_solve_with_the_constraints_eliminated() {
    let sheet = Sheet::new(10, 8);
    for (seed, kind) in [1, 2]
        .into_iter()
        .flat_map(|seed| KINDS.map(|kind| (seed, kind)))
    {
        let exact = reference(&sheet, seed, &sheet.filter(1, 0, seed));
        for copied in [false, true] {
            let (outcome, x, _) = solve(&sheet, 3, seed, |job| {
                job.preconditioner = kind;
                job.copied = copied;
            });
            let outcome = outcome.unwrap();
            assert!(outcome.residual <= outcome.allowed);
            let largest = exact.iter().map(|v| v.length()).fold(0.0, f64::max);
            for (x, exact) in x.iter().zip(&exact) {
                assert!(
                    (*x - *exact).length() < 1e-10 * largest,
                    "{x} instead of {exact}"
                );
            }
        }
    }
}

/// Whole aggregates without freedom, pieces that nothing holds together, patches of one vertex: the
/// coarse level loses modes there, and the solution is the same.
#[test]
fn a_coarse_level_with_gaps_leaves_the_solution_unchanged() {
    let sheets = [
        Sheet::new(10, 8),
        Sheet::torn(10, 8, 3),
        Sheet::new(4, 16),
        Sheet::new(10, 1).with_aggregates(1000),
    ];
    for sheet in sheets {
        let hold = |filter: &mut Filter, owned: Range<usize>| {
            for (row, vertex) in owned.enumerate() {
                let directions: &[DVec3] = match sheet.aggregates.of(vertex as u32) {
                    1 => &[DVec3::X, DVec3::Y, DVec3::Z],
                    2 => &[DVec3::X],
                    3 => &[DVec3::X, DVec3::NEG_Z],
                    _ => &[],
                };
                for &direction in directions {
                    let _ = filter.constrain_along(row, direction, 0.3);
                }
            }
        };
        let mut filter = sheet.filter(1, 0, 2);
        hold(&mut filter, 0..sheet.len());
        let exact = reference(&sheet, 2, &filter);
        let largest = exact.iter().map(|v| v.length()).fold(0.0, f64::max);
        for kind in KINDS {
            let ranks = sheet.tree.patch_count().min(3);
            let (outcome, x, _) = solve(&sheet, ranks, 2, |job| {
                job.preconditioner = kind;
                hold(&mut job.filter, job.owned.clone());
            });
            outcome.unwrap();
            for (x, exact) in x.iter().zip(&exact) {
                let off = (*x - *exact).length();
                assert!(off < 1e-10 * largest, "{kind:?}: {x} instead of {exact}");
            }
        }
    }
}

/// The search with rounded numbers ends where it should, also where rounding alone is more than
/// what is tolerated.
#[test]
fn rounding_shows_in_no_residual() {
    let mut sheet = Sheet::new(30, 16);
    sheet.mass = 1e-7;
    for kind in KINDS {
        for relative in [1e-2, 1e-6, 1e-11] {
            let solve = |copied: bool| {
                let (outcome, ..) = solve(&sheet, 2, 4, |job| {
                    job.preconditioner = kind;
                    job.copied = copied;
                    job.tolerance.relative = relative;
                });
                outcome.unwrap()
            };
            let (whole, copied) = (solve(false), solve(true));
            let of = format!("{kind:?} to {relative}: {whole:?} {copied:?}");
            assert!(copied.residual <= copied.allowed, "{of}");
            assert_eq!(copied.allowed, whole.allowed, "{of}");
            assert!(copied.iterations < 3 * whole.iterations, "{of}");
        }
    }
}

/// Entries that no f32 can hold.
#[test]
fn numbers_too_large_for_short_ones_are_multiplied_as_they_are() {
    let sheet = Sheet::new(10, 8);
    let scale = |copied: bool, factor: f64| {
        let (outcome, x, _) = solve(&sheet, 3, 1, |job| {
            job.copied = copied;
            // Projections of prescribed directions have numbers of about 1.
            job.filter.clear();
            job.part.matrix.scale(factor);
            job.part.rhs.iter_mut().for_each(|b| *b *= factor);
        });
        outcome.unwrap();
        x
    };
    let plain = scale(false, 1.0);
    let largest = plain.iter().map(|v| v.length()).fold(0.0, f64::max);
    for factor in [2.0_f64.powi(140), 2.0_f64.powi(-200)] {
        for (x, plain) in scale(true, factor).iter().zip(&plain) {
            assert!(
                (*x - *plain).length() < 1e-10 * largest,
                "{x} instead of {plain}"
            );
        }
    }
}

/// The recurrences of both levels stay with what they stand for, however long they run.
#[test]
fn the_vector_updated_with_the_residual_is_the_preconditioned_residual() {
    let mut sheet = Sheet::new(30, 16).with_aggregates(60);
    sheet.mass = 1e-5;
    let filter = sheet.filter(1, 0, 4);
    let (matrix, positions) = (sheet.system(1, 0, 4).matrix, sheet.positions(1, 0));
    let rhs = sheet.system(1, 0, 4).rhs;
    let system = System {
        matrix: &matrix,
        rhs: &rhs,
        filter: &filter,
        positions: &positions,
    };
    for kind in KINDS {
        let (mut comm, plan) = (Solo::new(), sheet.plan(1, 0));
        let partition = (&plan, &sheet.tree, &sheet.ownership(1));
        let mut cg = ModifiedCg::new(partition, sheet.preconditioner(kind, 1, 0), TAG);
        let mut x = vec![DVec3::ZERO; sheet.len()];
        cg.check_lengths(&system, &x).unwrap();
        let of = (
            cg.reduction.patches().to_vec(),
            cg.reduction.shares().clone(),
        );
        let bad = cg
            .preconditioner
            .begin_factor(&mut comm, &mut cg.halo, &system, (&of.0, &of.1));
        let mut progress = cg
            .start(&mut comm, &system, &tight(), bad.unwrap(), None, &mut x)
            .unwrap();
        let mut largest = 0.0_f64;
        for iteration in 0..40 {
            let [gamma, curvature, energy] = cg
                .multiply_direction(&mut comm, &system, &mut progress)
                .unwrap();
            let energy = energy + cg.preconditioner.solve_product();
            let sums = Sums {
                gamma,
                curvature,
                energy,
            };
            cg.advance(&system, sums.step().unwrap(), &mut x);
            // M r as it follows, and as it is for this r.
            let mut other = cg.clone();
            let mut u = vec![DVec3::ZERO; sheet.len()];
            for patch in &of.0 {
                cg.preconditioner
                    .apply(patch.clone(), &cg.r[patch.clone()], &mut u[patch.clone()]);
            }
            filter.project(&mut u);
            (other.measure_residual(&mut comm, &system, |_, _| [0.0])).unwrap();
            other.point_along_residual(&system);
            let sizes = cg.p.iter().map(|p| p.length());
            largest = sizes.fold(largest, f64::max);
            for (u, exact) in u.iter().zip(&*other.p) {
                assert!(
                    (*u - *exact).length() < 1e-10 * largest,
                    "{kind:?}, {iteration}: {u} for {exact}"
                );
            }
        }
        // x, with the step that is due, has this residual.
        cg.catch_up(&system, &mut x);
        system.filter.enforce(&mut x);
        let mut ax = vec![DVec3::ZERO; sheet.len()];
        matrix.multiply(&x, &mut ax, Rows::All);
        let mut r: Vec<DVec3> = rhs.iter().zip(&ax).map(|(b, ax)| *b - *ax).collect();
        filter.project(&mut r);
        assert!(
            r.iter()
                .zip(&*cg.r)
                .all(|(exact, r)| (*exact - *r).length() < 1e-11),
            "{kind:?}"
        );
    }
}

/// The promise: any number of ranks and threads, the same bits.
#[test]
fn ranks_and_threads_do_not_show_in_the_result() {
    let sheet = Sheet::new(40, 32);
    for (kind, copied) in KINDS
        .into_iter()
        .flat_map(|kind| [(kind, false), (kind, true)])
    {
        let job = |job: &mut Job| {
            job.preconditioner = kind;
            job.copied = copied;
            job.tolerance.relative = 1e-6;
        };
        let (alone, x, force) = solve(&sheet, 1, 5, job);
        assert!(
            alone.as_ref().unwrap().iterations > 15,
            "{kind:?} {alone:?}"
        );
        for (ranks, threads) in [(2, 1), (3, 2), (4, 1), (7, 1), (1, 2), (1, 3), (2, 5)] {
            let other = solve(&sheet, ranks, 5, |work| {
                job(work);
                work.threads = threads;
            });
            let of = format!("{kind:?}, copied {copied}, {ranks} ranks of {threads} threads");
            assert_eq!(other.0, alone, "{of}");
            assert_eq!(bits(&other.1), bits(&x), "{of}");
            assert_eq!(bits(&other.2), bits(&force), "{of}");
        }
    }
}

#[test]
fn prescribed_directions_come_out_as_prescribed() {
    let sheet = Sheet::new(16, 8);
    let (outcome, x, _) = solve(&sheet, 2, 3, |job| job.tolerance.relative = 1e-3);
    outcome.unwrap();
    let filter = sheet.filter(1, 0, 3);
    let (mut fixed, mut on_axis, mut slanted) = (0, 0, 0);
    for (row, x) in x.iter().enumerate() {
        match row % 11 {
            0 => {
                assert_eq!(bits(&[*x]), bits(&[filter.change(row)]));
                fixed += 1;
            }
            3 => {
                assert_eq!(x.y.to_bits(), filter.change(row).y.to_bits());
                on_axis += 1;
            }
            5 => {
                let held = DMat3::IDENTITY - filter.free(row);
                let off = held * *x - filter.change(row);
                assert!(off.length() < 1e-14 * (1.0 + x.length()), "{off}");
                slanted += 1;
            }
            _ => {}
        }
    }
    assert!(fixed > 20 && on_axis > 20 && slanted > 20);
}

#[test]
fn the_force_acts_where_directions_are_prescribed_and_only_there() {
    let sheet = Sheet::new(12, 4);
    let (outcome, x, force) = solve(&sheet, 2, 8, |_| {});
    outcome.unwrap();
    let Part { matrix, rhs } = sheet.system(1, 0, 8);
    let filter = sheet.filter(1, 0, 8);
    let mut ax = vec![DVec3::ZERO; sheet.len()];
    matrix.multiply(&x, &mut ax, Rows::All);
    let mut largest = 0.0_f64;
    for row in 0..sheet.len() {
        assert_eq!(force[row], ax[row] - rhs[row]);
        assert!(
            (filter.free(row) * force[row]).length() < 1e-10,
            "row {row}: {}",
            force[row]
        );
        largest = largest.max(force[row].length());
    }
    assert!(largest > 0.1, "nothing was held: {largest}");
}

/// Attainable accuracy of the recurrences, with a stiff system: springs 10^6 times as strong as
/// masses.
#[test]
fn a_stiff_system_is_solved_to_a_tight_tolerance() {
    let sheet = Sheet::new(20, 8);
    let (outcome, x, _) = solve(&sheet, 2, 4, |job| {
        let matrix = &mut job.part.matrix;
        for row in 0..matrix.pattern().row_count() {
            let slot = matrix.pattern().diagonal_slot(row);
            matrix.add_block(slot, &(-0.009_999 * DMat3::IDENTITY));
        }
        job.filter.clear();
        job.tolerance.relative = 1e-10;
    });
    let outcome = outcome.unwrap();
    assert!(outcome.iterations > 100, "{outcome:?}");
    assert!(x.iter().all(|x| x.is_finite()));
}
