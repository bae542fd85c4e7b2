//! Solves that cannot end well say why, on every rank alike.

use super::*;

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
