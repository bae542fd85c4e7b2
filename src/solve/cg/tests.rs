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

/// What one rank hands to a solve; tests change it before.
struct Job {
    preconditioner: Kind,
    positions: Vec<DVec3>,
    part: Part,
    filter: Filter,
    tolerance: Tolerance,
    threads: usize,
    half: bool,
    earlier: Option<Vec<DVec3>>,
    x: Vec<DVec3>,
    owned: Range<usize>,
}

type Solved = (Result<Outcome, SolveError>, Vec<DVec3>, Vec<DVec3>);

/// Solves on so many ranks; the results of all ranks, their vectors joined.
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
            half: false,
            earlier: None,
            x: vec![DVec3::ZERO; plan.owned().len()],
            owned: plan.owned(),
        };
        prepare(&mut job);
        let ownership = sheet.ownership(ranks);
        let preconditioner = sheet.preconditioner(job.preconditioner, ranks, rank);
        let team = Team::new(job.threads).unwrap();
        let cg = ModifiedCg::new((&plan, &sheet.tree, &ownership), preconditioner, TAG);
        let mut cg = cg.with_team(&team).with_half(job.half);
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
        for half in [false, true] {
            let (outcome, x, _) = solve(&sheet, 3, seed, |job| {
                job.preconditioner = kind;
                job.half = half;
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

/// Conjugate gradients come nearer to the solution, in the norm of the matrix, with every iteration: also where the last one
/// left x to be moved later.
#[test]
fn each_iteration_that_is_allowed_comes_nearer_to_the_solution() {
    let sheet = Sheet::new(8, 8);
    let dense = sheet.dense(1);
    let exact = reference(&sheet, 1, &sheet.filter(1, 0, 1));
    for (kind, half) in KINDS
        .into_iter()
        .flat_map(|kind| [(kind, false), (kind, true)])
    {
        let mut last = f64::INFINITY;
        for iterations in 0..8 {
            let (outcome, x, _) = solve(&sheet, 2, 1, |job| {
                job.preconditioner = kind;
                job.half = half;
                job.tolerance.max_iterations = iterations;
            });
            assert!(
                matches!(outcome, Err(SolveError::NotConverged { .. })),
                "{outcome:?}"
            );
            let off = x
                .iter()
                .zip(&exact)
                .flat_map(|(x, exact)| (*x - *exact).to_array());
            let off: Vec<f64> = off.collect();
            let product = |row: &Vec<f64>| row.iter().zip(&off).map(|(a, b)| a * b).sum::<f64>();
            let energy: f64 = dense
                .iter()
                .zip(&off)
                .map(|(row, off)| off * product(row))
                .sum();
            assert!(energy < 0.999 * last, "{iterations}: {energy} after {last}");
            last = energy;
        }
    }
}

/// Whole aggregates without freedom, pieces that nothing holds together, patches of one vertex: the
/// coarse level loses modes there, and the solution is the same.
#[test]
fn what_the_coarse_level_lacks_does_not_show_in_the_solution() {
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

/// The search with rounded numbers ends where it should, also where rounding alone is more than what is tolerated.
#[test]
fn rounding_shows_in_no_residual() {
    let mut sheet = Sheet::new(30, 16);
    sheet.mass = 1e-7;
    for kind in KINDS {
        for relative in [1e-2, 1e-6, 1e-11] {
            let solve = |half: bool| {
                let (outcome, ..) = solve(&sheet, 2, 4, |job| {
                    job.preconditioner = kind;
                    job.half = half;
                    job.tolerance.relative = relative;
                });
                outcome.unwrap()
            };
            let (whole, half) = (solve(false), solve(true));
            let of = format!("{kind:?} to {relative}: {whole:?} {half:?}");
            assert!(half.residual <= half.allowed, "{of}");
            assert_eq!(half.allowed, whole.allowed, "{of}");
            assert!(half.iterations < 3 * whole.iterations, "{of}");
        }
    }
}

/// Entries that no f32 can hold.
#[test]
fn numbers_too_large_for_short_ones_are_multiplied_as_they_are() {
    let sheet = Sheet::new(10, 8);
    let scale = |half: bool, factor: f64| {
        let (outcome, x, _) = solve(&sheet, 3, 1, |job| {
            job.half = half;
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

/// Iterations on sheets of 30, 60 and 120 vertices a side.
fn iterations(kind: Kind) -> [u32; 3] {
    [30, 60, 120].map(|side| {
        let mut sheet = Sheet::new(side, 16).with_aggregates(60);
        sheet.mass = 1e-7;
        let (outcome, ..) = solve(&sheet, 1, 4, |job| {
            // Held at one end and pulled at all over: every vertex must hear of every other.
            job.filter.clear();
            job.filter.fix(0, DVec3::ZERO);
            job.part.rhs.fill(DVec3::ONE);
            job.preconditioner = kind;
            job.tolerance.relative = 1e-6;
        });
        outcome.unwrap().iterations
    })
}

#[test]
fn iterations_grow_with_the_mesh_unless_there_are_more_levels() {
    for kind in [Kind::Jacobi, Kind::Ssor] {
        let [small, middle, large] = iterations(kind);
        assert!(
            middle > small + small / 2,
            "{kind:?}: {small} {middle} {large}"
        );
        assert!(
            large > middle + middle / 2,
            "{kind:?}: {small} {middle} {large}"
        );
    }
    for kind in [Kind::MultilevelJacobi, Kind::MultilevelSsor] {
        let [small, middle, large] = iterations(kind);
        assert!(
            large < small + small / 3,
            "{kind:?}: {small} {middle} {large}"
        );
    }
}

/// Textbook conjugate gradients of Hestenes and Stiefel, with each scalar product taken where it is asked for, on one rank: iterations
/// until r·M r is a share of what it was at first.
fn textbook_iterations(
    sheet: &Sheet,
    kind: Kind,
    filter: &Filter,
    rhs: &[DVec3],
    relative: f64,
) -> u32 {
    let (matrix, positions) = (sheet.system(1, 0, 4).matrix, sheet.positions(1, 0));
    let system = System {
        matrix: &matrix,
        rhs,
        filter,
        positions: &positions,
    };
    let patches: Vec<_> = (0..sheet.tree.patch_count())
        .map(|patch| sheet.tree.patch_vertices(patch))
        .collect();
    let shares = Team::default().cut(&patches);
    let of = (&patches[..], &shares);
    let mut halo = Halo::new(&sheet.plan(1, 0), TAG);
    let mut preconditioner = sheet.preconditioner(kind, 1, 0);
    assert_eq!(factor(&mut preconditioner, &mut halo, &system, of), None);
    let sum = |a: &[DVec3], b: &[DVec3]| a.iter().zip(b).map(|(a, b)| a.dot(*b)).sum::<f64>();
    let mut r = rhs.to_vec();
    filter.project(&mut r);
    let [mut u, mut p, mut w] = [(); 3].map(|()| vec![DVec3::ZERO; sheet.len()]);
    let mut before = f64::INFINITY;
    let mut first = None;
    for iterations in 0.. {
        precondition(&mut preconditioner, &system, of, &r, &mut u);
        let gamma = sum(&r, &u);
        if gamma.sqrt() <= relative * f64::sqrt(*first.get_or_insert(gamma)) {
            return iterations;
        }
        p.iter_mut()
            .zip(&u)
            .for_each(|(p, u)| *p = *u + gamma / before * *p);
        matrix.multiply(&p, &mut w, Rows::All);
        filter.project(&mut w);
        let alpha = gamma / sum(&p, &w);
        r.iter_mut().zip(&w).for_each(|(r, w)| *r -= alpha * *w);
        before = gamma;
    }
    unreachable!("it converges")
}

/// What is predicted, followed and rounded costs no iterations beside the textbook's.
#[test]
fn it_takes_as_many_iterations_as_the_textbook_has() {
    for (side, mass) in [(30, 1e-2), (30, 1e-7), (60, 1e-5)] {
        let mut sheet = Sheet::new(side, 16).with_aggregates(60);
        sheet.mass = mass;
        let mut filter = Filter::new(sheet.len());
        filter.fix(0, DVec3::ZERO);
        assert!(filter.constrain_along(5, DVec3::new(0.6, 0.0, 0.8), 0.0));
        let rhs = sheet.system(1, 0, 4).rhs;
        for (kind, relative) in KINDS
            .into_iter()
            .flat_map(|kind| [(kind, 1e-4), (kind, 1e-10)])
        {
            let textbook = textbook_iterations(&sheet, kind, &filter, &rhs, relative);
            for half in [false, true] {
                let (outcome, ..) = solve(&sheet, 1, 4, |job| {
                    job.filter = filter.clone();
                    job.preconditioner = kind;
                    job.half = half;
                    job.tolerance.relative = relative;
                });
                let outcome = outcome.unwrap();
                // A residual that rounding showed in is computed, and the search begins anew.
                let most = if half && relative < 1e-6 { 2.0 } else { 1.03 };
                let of = format!("{kind:?}, half {half}, mass {mass}, to {relative}");
                assert!(outcome.residual <= outcome.allowed, "{of}");
                assert!(
                    f64::from(outcome.iterations) <= most * f64::from(textbook) + 1.0,
                    "{of}: {outcome:?}, {textbook} in the textbook"
                );
            }
        }
    }
}

/// A step that leads to the solution, or nearly: of what is predicted then rounding leaves nothing, or less.
#[test]
fn solutions_that_one_step_leads_to_are_found() {
    let sheet = Sheet::new(12, 4);
    for (kind, off) in KINDS
        .into_iter()
        .flat_map(|kind| [(kind, 0.0), (kind, 1e-9), (kind, 1e-6)])
    {
        let (outcome, x, _) = solve(&sheet, 3, 4, |job| {
            job.preconditioner = kind;
            job.filter.clear();
            // Masses alone, and next to nothing between vertices.
            let matrix = &mut job.part.matrix;
            matrix.scale(off);
            for row in 0..matrix.pattern().row_count() {
                let slot = matrix.pattern().diagonal_slot(row);
                matrix.add_block(slot, &(2.0 * DMat3::IDENTITY));
            }
        });
        let outcome = outcome.unwrap();
        assert!(outcome.iterations <= 6, "{kind:?} {off}: {outcome:?}");
        let rhs = sheet.system(1, 0, 4).rhs;
        let largest = 100.0 * off + 1e-11;
        assert!(
            x.iter()
                .zip(&rhs)
                .all(|(x, b)| (*x - 0.5 * *b).length() < largest)
        );
    }
}

/// The recurrences of both levels stay with what they stand for, however long they run.
#[test]
fn what_follows_the_residual_is_its_preconditioned_one() {
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
    for (kind, half) in KINDS
        .into_iter()
        .flat_map(|kind| [(kind, false), (kind, true)])
    {
        let job = |job: &mut Job| {
            job.preconditioner = kind;
            job.half = half;
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
            let of = format!("{kind:?}, half {half}, {ranks} ranks of {threads} threads");
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

#[test]
fn a_warm_start_at_the_solution_needs_no_iteration() {
    let sheet = Sheet::new(12, 4);
    let (cold, x, _) = solve(&sheet, 2, 4, |_| {});
    let (warm, again, _) = solve(&sheet, 2, 4, |job| {
        job.x.copy_from_slice(&x[job.owned.clone()]);
        job.tolerance.relative = 1e-9;
    });
    assert!(cold.unwrap().iterations > 0);
    assert_eq!(warm.unwrap().iterations, 0);
    // Slanted directions are enforced once more, which may round.
    assert!(
        again
            .iter()
            .zip(&x)
            .all(|(again, x)| (*again - *x).length() < 1e-14)
    );
    // And from anywhere it leads to the same place.
    let exact = reference(&sheet, 4, &sheet.filter(1, 0, 4));
    let (far, x, _) = solve(&sheet, 2, 4, |job| {
        let mut noise = Noise::new(1);
        job.x.iter_mut().for_each(|x| *x = 100.0 * noise.vector());
    });
    far.unwrap();
    assert!(
        x.iter()
            .zip(&exact)
            .all(|(x, exact)| (*x - *exact).length() < 1e-9)
    );
}

#[test]
fn a_start_along_two_vectors_is_the_nearest_combination() {
    let sheet = Sheet::new(12, 4);
    let filter = sheet.filter(1, 0, 4);
    let exact = reference(&sheet, 4, &filter);
    let mut noise = Noise::new(3);
    let other: Vec<DVec3> = exact.iter().map(|_| noise.vector()).collect();
    let mixed: Vec<DVec3> = (exact.iter().zip(&other))
        .map(|(x, other)| 0.3 * *x - 2.0 * *other)
        .collect();
    let from = |ranks: usize, starts: [&[DVec3]; 2], most: u32| {
        solve(&sheet, ranks, 4, |job| {
            job.x.copy_from_slice(&starts[0][job.owned.clone()]);
            job.earlier = Some(starts[1][job.owned.clone()].to_vec());
            job.tolerance.relative = 1e-9;
            job.tolerance.max_iterations = most;
        })
    };
    // The solution is a combination of both.
    let (alone, found, _) = from(1, [&mixed, &other], 100);
    assert_eq!(alone.unwrap().iterations, 0);
    let near = |(x, exact): (&DVec3, &DVec3)| (*x - *exact).length() < 1e-9;
    assert!(found.iter().zip(&exact).all(near));
    for ranks in [2, 3] {
        let (outcome, again, _) = from(ranks, [&mixed, &other], 100);
        assert_eq!(outcome.unwrap().iterations, 0);
        assert_eq!(bits(&again), bits(&found), "{ranks} ranks");
    }
    // Where it is none, no other combination is nearer; twice the same vector is one.
    let dense = sheet.dense(4);
    let energy = |x: &[DVec3]| -> f64 {
        let off: Vec<f64> = (x.iter().zip(&exact))
            .flat_map(|(x, exact)| (*x - *exact).to_array())
            .collect();
        let rows = dense.iter().zip(&off);
        rows.map(|(row, off_here)| {
            off_here * row.iter().zip(&off).map(|(a, off)| a * off).sum::<f64>()
        })
        .sum()
    };
    let third: Vec<DVec3> = exact.iter().map(|x| *x + noise.vector()).collect();
    for starts in [[&third, &other], [&third, &third], [&other, &third]] {
        let (outcome, found, _) = from(1, [starts[0], starts[1]], 0);
        assert!(matches!(outcome, Err(SolveError::NotConverged { .. })));
        let least = energy(&found);
        for [a, b] in [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.9, 0.0], [0.7, -0.1]] {
            let directions = starts[0].iter().zip(starts[1]);
            let mut x: Vec<DVec3> = directions.map(|(p, u)| a * *p + b * *u).collect();
            filter.enforce(&mut x);
            assert!(
                least <= energy(&x) * (1.0 + 1e-9),
                "{a} {b}: {least} is more"
            );
        }
    }
}

#[test]
fn nothing_to_do_is_done_at_once() {
    let sheet = Sheet::new(6, 2);
    let (outcome, x, _) = solve(&sheet, 2, 4, |job| {
        job.filter.clear();
        job.part.rhs.fill(DVec3::ZERO);
    });
    let outcome = outcome.unwrap();
    assert_eq!((outcome.iterations, outcome.residual), (0, 0.0));
    assert!(x.iter().all(|x| *x == DVec3::ZERO));

    // Everything held: the result is what is prescribed.
    let (outcome, x, _) = solve(&sheet, 2, 4, |job| {
        for (row, vertex) in job.owned.clone().enumerate() {
            job.filter.fix(row, DVec3::splat(vertex as f64));
        }
    });
    assert_eq!(outcome.unwrap().iterations, 0);
    assert!(
        x.iter()
            .enumerate()
            .all(|(row, x)| *x == DVec3::splat(row as f64))
    );
}

#[test]
fn an_absolute_tolerance_ends_a_solve_too() {
    let sheet = Sheet::new(12, 4);
    let (outcome, ..) = solve(&sheet, 2, 4, |job| {
        job.tolerance = Tolerance {
            relative: 1e-12,
            absolute: 0.5,
            max_iterations: 1000,
        };
    });
    let outcome = outcome.unwrap();
    assert_eq!(
        (outcome.criterion, outcome.allowed),
        (Criterion::Absolute, 0.5)
    );
    assert!(outcome.residual <= 0.5 && outcome.residual > 1e-6);
}

#[test]
fn too_few_iterations_are_an_error_on_every_rank() {
    let sheet = Sheet::new(20, 8);
    let job = |job: &mut Job| job.tolerance.max_iterations = 5;
    let (alone, x, _) = solve(&sheet, 1, 4, job);
    let Err(SolveError::NotConverged {
        iterations,
        residual,
        best,
        allowed,
        end,
        ..
    }) = &alone
    else {
        panic!("{alone:?}");
    };
    assert_eq!((*iterations, *end), (5, End::TooFew));
    let message = alone.as_ref().unwrap_err().to_string();
    assert!(
        message.contains("no convergence in 5 iterations"),
        "{message}"
    );
    assert!(message.contains("shorter time.step"), "{message}");
    assert!(best <= residual && best > allowed);
    for ranks in [3, 4] {
        let other = solve(&sheet, ranks, 4, job);
        assert_eq!(other.0, alone);
        assert_eq!(bits(&other.1), bits(&x));
    }
}

#[test]
fn a_tolerance_below_rounding_stagnates_and_ends() {
    let sheet = Sheet::new(12, 4);
    let (outcome, x, _) = solve(&sheet, 2, 4, |job| job.tolerance.relative = 1e-30);
    assert!(
        matches!(
            outcome,
            Err(SolveError::NotConverged {
                end: End::Stagnated,
                ..
            })
        ),
        "{outcome:?}"
    );
    // The last iterate is as good as rounding allows all the same.
    let exact = reference(&sheet, 4, &sheet.filter(1, 0, 4));
    assert!(
        x.iter()
            .zip(&exact)
            .all(|(x, exact)| (*x - *exact).length() < 1e-11)
    );
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

/// A direction of negative curvature that no diagonal block shows.
fn make_indefinite(sheet: &Sheet, job: &mut Job) {
    job.filter.clear();
    let (a, b) = (37_u32, sheet.near.neighbours(37)[0]);
    for (from, to) in [(a, b), (b, a)] {
        if job.owned.contains(&(from as usize)) {
            let row = from as usize - job.owned.start;
            let matrix = &mut job.part.matrix;
            let slot = matrix.pattern().block_slot(row, to).unwrap();
            matrix.add_block(slot, &(-40.0 * DMat3::IDENTITY));
        }
    }
}

#[test]
fn an_indefinite_matrix_is_an_error_that_names_a_vertex_on_every_rank() {
    let sheet = Sheet::new(12, 8);
    for kind in KINDS {
        an_indefinite_matrix_is_named(&sheet, kind);
    }
}

fn an_indefinite_matrix_is_named(sheet: &Sheet, kind: Kind) {
    let job = |job: &mut Job| {
        job.preconditioner = kind;
        make_indefinite(sheet, job);
    };
    let (alone, ..) = solve(sheet, 1, 4, job);
    let Err(SolveError::Indefinite {
        vertex,
        patch,
        curvature,
        ..
    }) = &alone
    else {
        panic!("{alone:?}");
    };
    assert!(
        *vertex == 37 || *vertex == sheet.near.neighbours(37)[0],
        "{vertex}"
    );
    assert_eq!(*patch, sheet.tree.patch_of(*vertex));
    assert!(*curvature < 0.0);
    for ranks in [2, 3, 7] {
        let (other, ..) = solve(sheet, ranks, 4, job);
        // A curvature that is not a number differs from itself.
        assert_eq!(format!("{other:?}"), format!("{alone:?}"), "{ranks} ranks");
    }
}

#[test]
fn an_indefinite_block_is_found_before_the_first_iteration() {
    let sheet = Sheet::new(12, 8);
    for (ranks, kind) in [1, 3]
        .into_iter()
        .flat_map(|ranks| KINDS.map(|kind| (ranks, kind)))
    {
        let (outcome, ..) = solve(&sheet, ranks, 4, |job| {
            job.preconditioner = kind;
            job.filter.clear();
            for vertex in [100, 51] {
                if job.owned.contains(&vertex) {
                    let row = vertex - job.owned.start;
                    let slot = job.part.matrix.pattern().diagonal_slot(row);
                    job.part.matrix.add_block(slot, &(-1e3 * DMat3::IDENTITY));
                }
            }
        });
        assert!(
            matches!(
                outcome,
                Err(SolveError::Indefinite {
                    vertex: 51,
                    iteration: 0,
                    ..
                })
            ),
            "{outcome:?}"
        );
    }
}

#[test]
fn values_that_are_not_finite_are_named_on_every_rank() {
    let sheet = Sheet::new(12, 8);
    let at = |job: &Job, vertex: usize| {
        job.owned
            .contains(&vertex)
            .then(|| vertex - job.owned.start)
    };
    let expect = |what: &str, prepare: &(dyn Fn(&mut Job) + Sync)| {
        for (ranks, kind) in [1, 2, 7]
            .into_iter()
            .flat_map(|ranks| KINDS.map(|kind| (ranks, kind)))
        {
            let (outcome, ..) = solve(&sheet, ranks, 4, |job| {
                job.preconditioner = kind;
                job.filter.clear();
                prepare(job);
            });
            match &outcome {
                Err(SolveError::NonFinite {
                    vertex: 77,
                    patch,
                    what: found,
                    ..
                }) => {
                    assert_eq!((*patch, *found), (sheet.tree.patch_of(77), what));
                }
                other => panic!("{what}: {other:?}"),
            }
        }
    };
    expect("the right-hand side", &|job| {
        if let Some(row) = at(job, 77) {
            job.part.rhs[row].z = f64::NAN;
        }
    });
    expect("the matrix", &|job| {
        if let Some(row) = at(job, 77) {
            let slot = job.part.matrix.pattern().diagonal_slot(row);
            job.part
                .matrix
                .add_block(slot, &DMat3::from_diagonal(DVec3::splat(f64::INFINITY)));
        }
    });
    expect("a constraint", &|job| {
        if let Some(row) = at(job, 77) {
            job.filter.fix(row, DVec3::splat(f64::NAN));
        }
    });
    expect("the velocity change", &|job| {
        if let Some(row) = at(job, 77) {
            job.x[row].x = f64::INFINITY;
        }
    });
    // Finite, but its square is not.
    expect("a sum of residuals", &|job| {
        if let Some(row) = at(job, 77) {
            job.part.rhs[row] = DVec3::splat(1e200);
        }
    });
}

#[test]
fn arrays_that_do_not_fit_are_refused() {
    let sheet = Sheet::new(6, 2);
    let (outcome, ..) = solve(&sheet, 1, 4, |job| {
        job.x.pop();
    });
    assert_eq!(
        outcome,
        Err(SolveError::Length {
            what: "velocity changes",
            expected: 36,
            found: 35
        })
    );
}
