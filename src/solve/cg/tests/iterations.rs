//! How many iterations solves take: as the textbook has it, and with more levels hardly more on
//! finer meshes.

use super::*;

/// Conjugate gradients come nearer to the solution, in the norm of the matrix, with every
/// iteration: also where the last one left x to be moved later.
#[test]
fn each_iteration_that_is_allowed_comes_nearer_to_the_solution() {
    let sheet = Sheet::new(8, 8);
    let dense = sheet.dense(1);
    let exact = reference(&sheet, 1, &sheet.filter(1, 0, 1));
    for (kind, copied) in KINDS
        .into_iter()
        .flat_map(|kind| [(kind, false), (kind, true)])
    {
        let mut last = f64::INFINITY;
        for iterations in 0..8 {
            let (outcome, x, _) = solve(&sheet, 2, 1, |job| {
                job.preconditioner = kind;
                job.copied = copied;
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

/// Textbook conjugate gradients of Hestenes and Stiefel, with each scalar product taken where it is
/// asked for, on one rank: iterations until r·M r is a share of what it was at first.
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

/// Predicting, following and rounding cost no iterations beside the textbook's method.
#[test]
fn the_solve_takes_as_many_iterations_as_the_textbook_method() {
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
            for copied in [false, true] {
                let (outcome, ..) = solve(&sheet, 1, 4, |job| {
                    job.filter = filter.clone();
                    job.preconditioner = kind;
                    job.copied = copied;
                    job.tolerance.relative = relative;
                });
                let outcome = outcome.unwrap();
                // A residual that rounding showed in is computed, and the search begins anew.
                let most = if copied && relative < 1e-6 { 2.0 } else { 1.03 };
                let of = format!("{kind:?}, copied {copied}, mass {mass}, to {relative}");
                assert!(outcome.residual <= outcome.allowed, "{of}");
                assert!(
                    f64::from(outcome.iterations) <= most * f64::from(textbook) + 1.0,
                    "{of}: {outcome:?}, {textbook} in the textbook"
                );
            }
        }
    }
}
