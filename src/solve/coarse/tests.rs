use weft_runtime::comm::Tag;
use weft_runtime::comm::solo::Solo;
use weft_runtime::comm::{Rank, threads};

use super::*;
use crate::heap_bytes::HeapBytes as _;
use crate::solve::testing::{KINDS, Noise, Sheet, factor, precondition};
use crate::solve::{Reduction, Rows, System};
use crate::team::Team;

const TAG: Tag = Tag(5);
const SEED: u64 = 12;

fn coarse(sheet: &Sheet, ranks: usize, rank: usize) -> CoarseSpace {
    let plan = sheet.plan(ranks, rank);
    let pattern = Pattern::new(&plan, &sheet.near, &sheet.far).unwrap();
    let ownership = sheet.ownership(ranks);
    let coarse = sheet.aggregates.quotient(&sheet.all).unwrap();
    CoarseSpace::new(&pattern, &plan, &ownership, &sheet.aggregates, &coarse)
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

/// How a vertex with this offset moves.
fn moved_by(&[x, y, z, along_x, along_y, along_z]: &Six, offset: DVec3) -> DVec3 {
    DVec3::new(x, y, z) + DVec3::new(along_x, along_y, along_z).cross(offset)
}

fn shares(sheet: &Sheet, ranks: usize, rank: usize) -> Shares {
    let ownership = sheet.ownership(ranks);
    let first = ownership.vertices(rank).start;
    let patches: Vec<_> = (ownership.patches(rank))
        .map(|p| sheet.tree.patch_vertices(p))
        .map(|p| p.start - first..p.end - first)
        .collect();
    Team::default().cut(&patches)
}

/// Whatever rigid motions make up a displacement, the coarse level finds it from the forces.
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
            for (row, u) in u.iter_mut().enumerate() {
                *u = moved_by(
                    &motion[sheet.aggregates.of(row as u32) as usize],
                    coarse.modes.offset(row),
                );
            }
            filter.project(&mut u);
            u
        };
        let u = moved(&motion);
        let mut force = vec![DVec3::ZERO; sheet.len()];
        matrix.multiply(&u, &mut force, Rows::All);
        filter.project(&mut force);
        let mut found = coarse.clone();
        let shares = shares(&sheet, 1, 0);
        let carried = found.restrict(&force, (&shares, false), &mut [(); 0], |_, _| {});
        carried.all.extend_from_slice(carried.own);
        found.solve_residual();
        for (row, (found, u)) in moved(&found.correction).iter().zip(&u).enumerate() {
            // The tolerance is that of f32.
            assert!((*found - *u).length() < 1e-5, "row {row}: {found} for {u}");
        }
    }
}

/// The answers of a subdomain's groups to forces are the rigid motions that resist them on each
/// group, whatever moves beside it; a group that cannot move gives none. Their products come by
/// patches.
#[test]
fn subdomains_answer_forces_with_rigid_motions_of_their_groups() {
    // Patches that are a subdomain each, and one that is cut into several.
    for (side, patches, subdomains) in [(20, 4, 4), (46, 1, 8)] {
        check_subdomains(&Sheet::new(side, patches).with_aggregates(50), subdomains);
    }
}

fn check_subdomains(sheet: &Sheet, subdomains: usize) {
    let aggregates = &sheet.aggregates;
    assert!(aggregates.group_count() > 2 * aggregates.count());
    let matrix = sheet.system(1, 0, SEED).matrix;
    let (positions, mut comm) = (sheet.positions(1, 0), Solo::new());
    let (mut halo, shares) = (Halo::new(&sheet.plan(1, 0), TAG), shares(sheet, 1, 0));
    let mut kept = 0;
    for filter in [Filter::new(sheet.len()), filter(sheet, 1, 0)] {
        let mut coarse = coarse(sheet, 1, 0);
        assert_eq!(coarse.groups.subdomains().groups().len(), subdomains);
        let system = (&matrix, &filter, &positions[..]);
        (coarse.begin_factor(&mut comm, &mut halo, system, &shares)).unwrap();
        coarse.finish_factor(&mut comm).unwrap();
        let mut noise = Noise::new(3);
        let mut force: Vec<DVec3> = (0..sheet.len()).map(|_| noise.vector()).collect();
        filter.project(&mut force);
        let mut told = vec![0.0; sheet.tree.patch_count()];
        let add = |patch: &mut f64, energy: f64| *patch += energy;
        let carried = coarse.restrict(&force, (&shares, false), &mut told, add);
        carried.all.extend_from_slice(carried.own);
        coarse.correction.fill([0.0; 6]);
        coarse.groups.restart(&coarse.correction);
        // With aggregates at rest, groups move vertices.
        let mut motion = vec![DVec3::ZERO; sheet.len()];
        coarse.add_correction(0..sheet.len(), &mut motion);
        filter.project(&mut motion);
        for (patch, told) in told.iter().enumerate() {
            let vertices = sheet.tree.patch_vertices(patch);
            let work: f64 = vertices.map(|v| motion[v].dot(force[v])).sum();
            assert!((work - told).abs() <= 1e-9 * work.abs(), "{work} {told}");
        }
        for group in 0..aggregates.group_count() {
            let mut alone = vec![DVec3::ZERO; sheet.len()];
            let together = coarse.groups.subdomains();
            let group_of = |v: usize| aggregates.group_of(v as u32) as usize;
            for v in (0..sheet.len()).filter(|&v| together.are_one(group, group_of(v))) {
                alone[v] = motion[v];
            }
            let vertices: Vec<usize> = (0..sheet.len()).filter(|&v| group_of(v) == group).collect();
            let mut resistance = vec![DVec3::ZERO; sheet.len()];
            matrix.multiply(&alone, &mut resistance, Rows::All);
            filter.project(&mut resistance);
            for mode in 0..6 {
                let mut along = [0.0; 6];
                along[mode] = 1.0;
                let sum = |of: &[DVec3]| -> f64 {
                    let works = vertices
                        .iter()
                        .map(|&v| moved_by(&along, coarse.modes.offset(v)).dot(of[v]));
                    works.sum()
                };
                let (wanted, found) = (sum(&force), sum(&resistance));
                let scale: f64 = vertices.iter().map(|&v| force[v].length()).sum();
                assert!(
                    (wanted - found).abs() <= 1e-3 * scale,
                    "{group} {mode}: {found} for {wanted}"
                );
                kept += usize::from(wanted != 0.0);
            }
        }
    }
    assert!(kept > 10 * aggregates.group_count(), "{kept}");
}

/// Symmetry, u·M v = v·M u, and u·M u > 0 are what conjugate gradients need.
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
            let numbers = coarse.matrix.as_flattened().as_flattened();
            assert!(numbers.iter().any(|&x| x != 0.0));
            numbers.iter().map(|x| x.to_bits()).collect::<Vec<_>>()
        })
        .unwrap()
        .concat()
    };
    let alone = bits(1);
    for ranks in [2, 3, 7] {
        assert!(bits(ranks) == alone, "{ranks} ranks");
    }
}

/// Subtrees of patches leave sums, which travel; all else happens where the patches are.
#[test]
fn coarse_solves_have_the_same_bits_on_any_number_of_ranks_and_threads() {
    let sheet = Sheet::new(30, 16);
    let bits = |ranks: usize, threads: usize, short: bool| {
        let found = threads::launch(ranks, |comm| {
            let rank = comm.rank().index();
            let ownership = sheet.ownership(ranks);
            let team = Team::new(threads).unwrap();
            let reduction = Reduction::new(&sheet.tree, &ownership, rank).with_team(&team);
            let mut coarse = coarse(&sheet, ranks, rank);
            let mut halo = Halo::new(&sheet.plan(ranks, rank), TAG);
            let matrix = sheet.system(ranks, rank, SEED).matrix;
            let (filter, positions) = (filter(&sheet, ranks, rank), sheet.positions(ranks, rank));
            let (system, shares) = ((&matrix, &filter, &positions[..]), reduction.shares());
            (coarse.begin_factor(comm, &mut halo, system, shares)).unwrap();
            coarse.finish_factor(comm).unwrap();
            let mut bits = Vec::new();
            for turn in 0..2 {
                let vertices = sheet.plan(ranks, rank).owned();
                let mut vector: Vec<_> = (vertices)
                    .map(|vertex| Noise::new(vertex as u64).vector())
                    .collect();
                filter.project(&mut vector);
                let mut leaves = reduction.leaves(|_| [0.0]);
                let of = (shares, short);
                let carried = coarse.restrict(&vector, of, &mut leaves, |leaf, part| {
                    leaf[0] += part;
                });
                let [of_groups] = reduction.sum_leaves(comm, Some(carried), &leaves).unwrap();
                let energy = if turn == 0 {
                    coarse.solve_product()
                } else {
                    coarse.solve_residual()
                };
                let numbers = coarse.change.as_flattened().iter();
                let numbers = numbers.chain(coarse.correction.as_flattened());
                bits.push((
                    [of_groups.to_bits(), energy.to_bits()],
                    numbers.map(|x| x.to_bits()).collect::<Vec<_>>(),
                ));
                coarse.drop_weak_modes(comm, shares).unwrap();
            }
            let vertices = sheet.plan(ranks, rank).owned();
            let mut moved = vec![DVec3::ZERO; vertices.len()];
            coarse.add_correction(0..vertices.len(), &mut moved);
            let moved = moved.iter().flat_map(|v| v.to_array().map(f64::to_bits));
            (bits, moved.collect::<Vec<_>>())
        });
        let found = found.unwrap();
        let energies: Vec<Vec<[u64; 2]>> = (found.iter())
            .map(|(bits, _)| bits.iter().map(|(energies, _)| *energies).collect())
            .collect();
        assert!(energies.iter().all(|of_rank| *of_rank == energies[0]));
        let moved: Vec<u64> = found.iter().flat_map(|(_, moved)| moved.clone()).collect();
        let changes = found.iter().map(|(bits, _)| {
            let (_, first) = &bits[0];
            first[..first.len() / 2].to_vec()
        });
        (
            energies[0].clone(),
            changes.collect::<Vec<_>>().concat(),
            moved,
        )
    };
    for short in [false, true] {
        let alone = bits(1, 1, short);
        for (ranks, threads) in [(1, 3), (2, 1), (3, 2), (5, 1), (8, 1), (16, 1)] {
            assert!(
                bits(ranks, threads, short) == alone,
                "{ranks} ranks, {threads} threads"
            );
        }
    }
    assert_ne!(bits(1, 1, false), bits(1, 1, true));
}

/// A rank holds its own subtrees, and little of the others.
#[test]
fn one_of_many_ranks_holds_a_small_part_of_the_coarse_level() {
    let sheet = Sheet::new(64, 64);
    let bytes = |ranks: usize| {
        let of = (0..ranks).map(|rank| coarse(&sheet, ranks, rank));
        let of = of.map(|coarse| [coarse.heap_bytes(), coarse.nested.heap_bytes()]);
        of.reduce(|[a, b], [c, d]| [a.max(c), b.max(d)]).unwrap()
    };
    let ([all, nested], [of_four, _], [of_16, nested_of_16]) = (bytes(1), bytes(4), bytes(16));
    assert!(
        3 * of_four < all,
        "{of_four} bytes of four ranks, {all} of one"
    );
    assert!(5 * of_16 < all, "{of_16} bytes of 16 ranks, {all} of one");
    assert!(
        2 * nested_of_16 < nested,
        "{nested_of_16} bytes of 16 ranks, {nested} of one"
    );
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
        let shares = shares(&sheet, 2, 0);
        let carried = coarse.restrict(&zeros, (&shares, false), &mut [(); 0], |_, _| {});
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
