//! Tests of the vectors that a solve can start from, and of solves that are over at once.

use super::*;

/// A step that leads to the solution, or nearly: of what is predicted then rounding leaves nothing,
/// or less.
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
fn a_system_that_is_solved_already_takes_no_iteration() {
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
