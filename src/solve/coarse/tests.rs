use weft_runtime::comm::Tag;
use weft_runtime::comm::solo::Solo;
use weft_runtime::comm::{Rank, threads};

use super::*;
use crate::solve::testing::{KINDS, Noise, Sheet, factor, precondition};
use crate::solve::{Reduction, Rows, System};
use crate::team::Team;

const TAG: Tag = Tag(5);
const SEED: u64 = 12;

fn coarse(sheet: &Sheet, ranks: usize, rank: usize) -> CoarseSpace {
    let plan = sheet.plan(ranks, rank);
    let pattern = Pattern::new(&plan, &sheet.near, &sheet.far).unwrap();
    let ownership = sheet.ownership(ranks);
    CoarseSpace::new(&pattern, &plan, &ownership, &sheet.aggregates, &sheet.all)
}

/// Some vertices constrained, and all of the first two aggregates: one fixed, one on planes.
fn filter(sheet: &Sheet, ranks: usize, rank: usize) -> Filter {
    let mut filter = sheet.filter(ranks, rank, SEED);
    for (row, vertex) in sheet.plan(ranks, rank).owned().enumerate() {
        match sheet.aggregates.of(vertex as u32) {
            0 => filter.fix(row, DVec3::ONE),
            1 => {
                let _ = filter.constrain_along(row, DVec3::Z, 0.5);
            }
            _ => {}
        }
    }
    filter
}

/// Whatever rigid motions make up a displacement, the coarse level finds it from the forces.
fn shares(sheet: &Sheet, ranks: usize, rank: usize) -> Shares {
    let ownership = sheet.ownership(ranks);
    let first = ownership.vertices(rank).start;
    let patches: Vec<_> = (ownership.patches(rank))
        .map(|p| sheet.tree.patch_vertices(p))
        .map(|p| p.start - first..p.end - first)
        .collect();
    Team::default().cut(&patches)
}

#[test]
fn rigid_motions_of_aggregates_are_found() {
    let sheet = Sheet::new(14, 4);
    let matrix = sheet.system(1, 0, SEED).matrix;
    let (positions, mut comm) = (sheet.positions(1, 0), Solo::new());
    let mut halo = Halo::new(&sheet.plan(1, 0), TAG);
    for filter in [Filter::new(sheet.len()), filter(&sheet, 1, 0)] {
        let mut coarse = coarse(&sheet, 1, 0);
        coarse
            .begin_factor(
                &mut comm,
                &mut halo,
                (&matrix, &filter, &positions),
                &shares(&sheet, 1, 0),
            )
            .unwrap();
        coarse.finish_factor(&mut comm).unwrap();
        let mut noise = Noise::new(2);
        let motion: Vec<Six> = (0..sheet.aggregates.count())
            .map(|_| std::array::from_fn(|_| noise.number()))
            .collect();
        let moved = |motion: &[Six]| {
            let mut u = vec![DVec3::ZERO; sheet.len()];
            coarse.modes.add_motion(0..sheet.len(), motion, &mut u);
            filter.project(&mut u);
            u
        };
        let u = moved(&motion);
        let mut force = vec![DVec3::ZERO; sheet.len()];
        matrix.multiply(&u, &mut force, Rows::All);
        filter.project(&mut force);
        let mut found = coarse.clone();
        let carried = found.restrict(&force, &shares(&sheet, 1, 0), false);
        carried.all.copy_from_slice(carried.own);
        found.solve_residual();
        for (row, (found, u)) in moved(&found.correction).iter().zip(&u).enumerate() {
            // What f32 leaves of it.
            assert!((*found - *u).length() < 1e-5, "row {row}: {found} for {u}");
        }
    }
}

/// u·M v = v·M u and u·M u > 0: what conjugate gradients need.
#[test]
fn every_preconditioner_is_symmetric_and_positive() {
    let sheet = Sheet::new(12, 4);
    let part = sheet.system(1, 0, SEED);
    let positions = sheet.positions(1, 0);
    let mut halo = Halo::new(&sheet.plan(1, 0), TAG);
    let patches: Vec<_> = (0..4).map(|p| sheet.tree.patch_vertices(p)).collect();
    let shares = shares(&sheet, 1, 0);
    let dot = |a: &[DVec3], b: &[DVec3]| -> f64 { a.iter().zip(b).map(|(a, b)| a.dot(*b)).sum() };
    for filter in [Filter::new(sheet.len()), filter(&sheet, 1, 0)] {
        let system = System {
            matrix: &part.matrix,
            rhs: &part.rhs,
            filter: &filter,
            positions: &positions,
        };
        for kind in KINDS {
            let mut preconditioner = sheet.preconditioner(kind, 1, 0);
            let of = (&patches[..], &shares);
            assert_eq!(factor(&mut preconditioner, &mut halo, &system, of), None);
            let mut noise = Noise::new(8);
            for _ in 0..5 {
                let [(a, ma), (b, mb)] = [(); 2].map(|()| {
                    let mut r: Vec<DVec3> = (0..sheet.len()).map(|_| noise.vector()).collect();
                    filter.project(&mut r);
                    let mut u = vec![DVec3::ZERO; sheet.len()];
                    let of = (&patches[..], &shares);
                    precondition(&mut preconditioner, &system, of, &r, &mut u);
                    (r, u)
                });
                let (left, right) = (dot(&b, &ma), dot(&a, &mb));
                let scale = dot(&a, &ma).max(dot(&b, &mb));
                assert!(scale > 0.0, "{kind:?}");
                assert!(
                    (left - right).abs() < 1e-11 * scale,
                    "{kind:?}: {left} {right}"
                );
            }
        }
    }
}

/// Owners compute blocks, and everybody has the same.
#[test]
fn the_coarse_matrix_has_the_same_bits_on_any_number_of_ranks() {
    let sheet = Sheet::new(16, 8);
    let bits = |ranks: usize| {
        threads::launch(ranks, |comm| {
            let rank = comm.rank().index();
            let mut coarse = coarse(&sheet, ranks, rank);
            let mut halo = Halo::new(&sheet.plan(ranks, rank), TAG);
            let matrix = sheet.system(ranks, rank, SEED).matrix;
            let (filter, positions) = (filter(&sheet, ranks, rank), sheet.positions(ranks, rank));
            coarse
                .begin_factor(
                    comm,
                    &mut halo,
                    (&matrix, &filter, &positions),
                    &shares(&sheet, ranks, rank),
                )
                .unwrap();
            coarse.finish_factor(comm).unwrap();
            // Of blocks on the diagonal nobody reads the upper half, and it does not travel.
            for end in &coarse.starts[1..] {
                let diagonal = &mut coarse.matrix[end - 1];
                (0..6).for_each(|c| diagonal[c][..c].fill(0.0));
            }
            let numbers = coarse.matrix.as_flattened().as_flattened();
            assert!(numbers.iter().any(|&x| x != 0.0));
            numbers.iter().map(|x| x.to_bits()).collect::<Vec<_>>()
        })
        .unwrap()
    };
    let alone = bits(1).swap_remove(0);
    for ranks in [2, 3, 7] {
        assert!(
            bits(ranks).iter().all(|bits| *bits == alone),
            "{ranks} ranks"
        );
    }
}

#[test]
fn coarse_numbers_of_the_wrong_length_name_their_sender() {
    let sheet = Sheet::new(12, 4);
    let errors = threads::launch(2, |comm| {
        if comm.rank() == Rank(1) {
            // Here too it fails.
            comm.allgather(vec![0; 9]).unwrap_err();
            return None;
        }
        let zeros = vec![DVec3::ZERO; sheet.plan(2, 0).owned().len()];
        let mut coarse = coarse(&sheet, 2, 0);
        let carried = coarse.restrict(&zeros, &shares(&sheet, 2, 0), false);
        let reduction = Reduction::new(&sheet.tree, &sheet.ownership(2), 0);
        let leaves = reduction.leaves(|_| [1.0]);
        reduction.sum_leaves(comm, Some(carried), &leaves).err()
    })
    .unwrap();
    assert!(
        matches!(errors[0], Some(CommError::Malformed { from: Rank(1), .. })),
        "{errors:?}"
    );
}
