//! Trees that are made as far as tests look at them: the tests are the same, one by one, and so are
//! the contacts.

use glam::DVec3;
use proptest::prelude::*;

use super::Random;
use super::culling::{CELL, Case, SHAPES, rest_shape, wavy};
use crate::collide::*;
use crate::physics::tests::grid;

/// Targets in an order of their own.
fn shuffled(snap: &Snapshot<'_>, seed: u64) -> Vec<Target> {
    let mut random = Random(seed | 1);
    let mut targets: Vec<(f64, Target)> = snap.targets().map(|t| (random.unit(), t)).collect();
    targets.sort_by(|a, b| a.0.total_cmp(&b.0));
    targets.into_iter().map(|(_, target)| target).collect()
}

fn contacts(snap: &Snapshot<'_>, targets: &[Target]) -> Vec<Contact> {
    let mut out = Vec::new();
    for &target in targets {
        if let Some(mut run) = TestRun::new(target, snap) {
            assert!(run.advance(snap, u32::MAX, &mut out).1);
        }
    }
    out.sort_unstable_by_key(|c| c.id);
    out
}

/// The run of a target as a thief receives it.
fn travelled(target: Target, snap: &Snapshot<'_>) -> TestRun {
    let run = TestRun::new(target, snap).unwrap();
    let bytes = serde_json::to_vec(&run).unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn tests_are_the_same_however_much_of_the_trees_is_there(
        seed in any::<u64>(), which in 0..SHAPES, share in 0.2..1.3f64,
        height in 0.0..0.3f64, squeeze in 0.5..1.1f64, budget in 1u32..300, two_only in any::<bool>(),
        // Also patches of one subtree, far from the origin: volumes are coarse there.
        (patches, away) in prop_oneof![(2usize..7, Just(0.0)), (30usize..60, Just(1e3))],
    ) {
        let mesh = rest_shape(which);
        let moved = |(x, v): (DVec3, DVec3)| (x + DVec3::splat(away), v);
        let [mut now, mut then] = [wavy(seed, height, squeeze, 1.0), wavy(seed ^ 99, 0.3, 0.8, 2.0)];
        let case = Case::new(&mesh, patches, share * CELL, |p| moved(now(p)));
        let before = Case::new(&mesh, patches, share * CELL, |p| moved(then(p)));
        for cloth in &case.cloth {
            let mut rooms = [Volumes::default(), Volumes::default()];
            for case in [&before, &case] {
                // The contents of the step before stay where nobody looks.
                let geometry = case.geometry(cloth);
                let [whole, subtrees] = rooms.each_mut().map(|room| {
                    Snapshot::new(&geometry, room, &case.x, &case.v, 0.0, case.dt)
                });
                let subtrees = subtrees.by_subtrees();
                for target in shuffled(&whole, seed) {
                    if two_only && !matches!(target, Target::Patches(..)) {
                        continue;
                    }
                    let (one, other) = (TestRun::new(target, &whole), TestRun::new(target, &subtrees));
                    prop_assert_eq!(&one, &other);
                    let (Some(mut one), Some(mut other)) = (one, other) else { continue };
                    let mut found = [Vec::new(), Vec::new()];
                    loop {
                        let made = one.advance_counting(&whole, budget, &mut found[0]);
                        prop_assert_eq!(made, other.advance_counting(&subtrees, budget, &mut found[1]));
                        prop_assert_eq!(&one, &other);
                        if made.1 {
                            break;
                        }
                    }
                    prop_assert_eq!(&found[0], &found[1]);
                }
            }
        }
    }
}

#[test]
fn a_stolen_run_finds_what_it_looks_at_whatever_was_there() {
    let case = Case::new(&rest_shape(0), 4, 0.6 * CELL, |p| (p * 0.75, DVec3::ZERO));
    let geometry = case.geometry(&case.cloth[0]);
    let mut rooms = [Volumes::default(), Volumes::default()];
    let [whole, subtrees] = rooms
        .each_mut()
        .map(|room| Snapshot::new(&geometry, room, &case.x, &case.v, 0.0, case.dt));
    let subtrees = subtrees.by_subtrees();
    let all = case.cloth[0].refit(1).whole();
    let mut opened = Vec::new();
    // The second patch is between the first and the third.
    for target in [
        Target::Patches(0, 1),
        Target::Patches(1, 2),
        Target::Patch(1),
    ] {
        let mut found = Vec::new();
        let mut run = travelled(target, &subtrees);
        assert!(run.advance(&subtrees, u32::MAX, &mut found).1);
        found.sort_unstable_by_key(|c| c.id);
        assert!(!found.is_empty());
        assert_eq!(found, contacts(&whole, &[target]));
        opened.push(subtrees.opened(1).unwrap());
    }
    assert_eq!(subtrees.opened(3), None);
    let [first, second, third] = opened[..] else {
        unreachable!()
    };
    assert!(first != 0 && first != all, "{first:b} of {all:b}");
    assert!(first & second == first && second != first);
    assert_eq!(third, all);
    assert_ne!(subtrees.opened(0), Some(all));
}

#[test]
fn a_run_that_names_other_pieces_than_its_tests_are_of_is_refused() {
    let case = Case::new(&rest_shape(0), 4, 0.6 * CELL, |p| (p * 0.75, DVec3::ZERO));
    let geometry = case.geometry(&case.cloth[0]);
    let mut room = Volumes::default();
    let snap = Snapshot::new(&geometry, &mut room, &case.x, &case.v, 0.0, case.dt);
    let good = travelled(Target::Patches(0, 1), &snap);
    assert!(good.is_valid(&snap));
    let mut value = serde_json::to_value(&good).unwrap();
    let [one, two] = good.subtrees();
    let lowest = one & one.wrapping_neg();
    let all = case.cloth[0].refit(0).whole();
    let all_of_other = case.cloth[0].refit(1).whole();
    for subtrees in [
        [one & !lowest, two],
        [0, 0],
        [one | (all + 1), two],
        [one, two | (all_of_other + 1)],
    ] {
        value["subtrees"] = serde_json::to_value(subtrees).unwrap();
        let run: TestRun = serde_json::from_value(value.clone()).unwrap();
        assert!(!run.is_valid(&snap), "{subtrees:?}");
    }
    // With all subtrees: what is above them is of none, and what culling was asked of is what it
    // was.
    value["subtrees"] = serde_json::to_value([all, all_of_other]).unwrap();
    let root = [
        case.cloth[0].refit(0).root(0),
        case.cloth[0].refit(1).root(0),
    ];
    for (test, valid) in [
        ([root[0], root[1]], true),
        ([root[0], root[1] | 3 << 30], true),
        ([0, root[1]], false),
        ([root[0], 0], false),
    ] {
        value["stack"] = serde_json::to_value([test]).unwrap();
        let run: TestRun = serde_json::from_value(value.clone()).unwrap();
        assert_eq!(run.is_valid(&snap), valid, "{test:?}");
    }
}

#[test]
fn tests_of_patches_side_by_side_look_into_few_pieces() {
    let case = Case::new(&grid(32, 1.0), 4, 0.5 / 32.0, |p| (p, DVec3::ZERO));
    let geometry = case.geometry(&case.cloth[0]);
    let mut room = Volumes::default();
    let snap = Snapshot::new(&geometry, &mut room, &case.x, &case.v, 0.0, case.dt);
    let (mut opened, mut of) = (0, 0);
    for target in snap.targets() {
        if let (Target::Patches(p, q), Some(run)) = (target, TestRun::new(target, &snap)) {
            let wholes = [p, q].map(|patch| case.cloth[0].refit(patch).whole());
            for (subtrees, whole) in run.subtrees().into_iter().zip(wholes) {
                assert!(subtrees != 0 && subtrees & !whole == 0);
                opened += subtrees.count_ones();
                of += whole.count_ones();
            }
        }
    }
    assert!(opened > 0 && 2 * opened < of, "{opened} of {of}");
}

/// A test that comes when all vertices are there reads those, also where subtrees were opened
/// without them.
#[test]
fn open_pieces_have_their_vertices_whichever_thread_measured_them() {
    let case = Case::new(&rest_shape(0), 4, 0.6 * CELL, |p| (p * 0.75, DVec3::ZERO));
    let geometry = case.geometry(&case.cloth[0]);
    let mut rooms = [Volumes::default(), Volumes::default()];
    let [whole, subtrees] = rooms
        .each_mut()
        .map(|room| Snapshot::new(&geometry, room, &case.x, &case.v, 0.0, case.dt));
    let (subtrees, all) = (subtrees.by_subtrees(), case.cloth[0].refit(1).whole());
    let expected = whole.whole_volumes(1);
    let check = |which: u64| {
        let held = subtrees.some_volumes(1, which);
        let places: Vec<u32> = (case.cloth[0].refit(1).corners().enumerate())
            .filter(|(at, _)| which >> at & 1 != 0)
            .flat_map(|(_, places)| places.to_vec())
            .collect();
        for &place in &places {
            let of = |held: &query::volumes::Held<'_>| held.vertices()[place as usize];
            assert_eq!(of(&held), of(&expected), "{which:b}, {place}");
        }
    };
    assert!(all > 0b111);
    check(0b001);
    check(0b011);
    subtrees.make_vertex_volumes(1);
    check(0b100);
    check(0b001);
    assert_eq!(subtrees.opened(1), Some(0b111));
    check(all);
    check(0b001);
    assert_eq!(subtrees.opened(1), Some(all));
    // The nodes above them are there then too.
    let held = subtrees.some_volumes(1, all);
    assert_eq!(held.nodes().root(), expected.nodes().root());
}

#[test]
fn some_test_a_tree_while_others_make_more_of_it() {
    let case = Case::new(&rest_shape(6), 6, 0.6 * CELL, wavy(11, 0.2, 0.8, 1.0));
    let geometry = case.geometry(&case.cloth[1]);
    let mut rooms = [Volumes::default(), Volumes::default()];
    let [whole, subtrees] = rooms
        .each_mut()
        .map(|room| Snapshot::new(&geometry, room, &case.x, &case.v, 0.0, case.dt));
    let subtrees = subtrees.by_subtrees();
    let expected = contacts(&whole, &whole.targets().collect::<Vec<_>>());
    assert!(expected.len() > 100, "{}", expected.len());
    std::thread::scope(|scope| {
        let (subtrees, expected) = (&subtrees, &expected);
        for seed in 0..4 {
            scope.spawn(move || {
                assert_eq!(&contacts(subtrees, &shuffled(subtrees, seed)), expected);
            });
        }
    });
}
