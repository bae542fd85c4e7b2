//! The walk of the patch tree finds the targets that listing all of them finds, in the same order.

use glam::DVec3;
use proptest::prelude::*;
use weft_partition::Ownership;

use super::{Case, turning};
use crate::collide::*;

/// The targets of some patches whose roots meet, from a list of all there are.
fn listed(snap: &Snapshot<'_>, home: impl Fn(usize, usize) -> bool) -> Vec<Target> {
    let (patches, bodies) = (snap.cloth.patches().len() as u32, snap.body_count() as u32);
    let mut all = Vec::new();
    for p in 0..patches {
        if snap.self_collision {
            if home(p as usize, p as usize) {
                all.push(Target::Patch(p));
            }
            let others = (p + 1..patches).filter(|&q| home(p as usize, q as usize));
            all.extend(others.map(|q| Target::Patches(p, q)));
        }
        if home(p as usize, p as usize) {
            all.extend((0..bodies).map(|b| Target::PatchBody(p, b)));
        }
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn targets_are_those_of_listing_all(
        seed in any::<u64>(), patches in 1usize..80, crumple in 0.0..0.1f64, cloth in any::<bool>(),
        turn in any::<bool>(), cuts in prop::array::uniform2(0usize..80), away in 0.0..0.4f64,
    ) {
        let mut case = Case::new(seed, patches, |p, random| {
            p + DVec3::new(0.0, 0.0, away) + random.vector(crumple)
        });
        if turn {
            case.body_motions = [1.0, -2.0, 0.5].map(|x| turning(DVec3::splat(x))).to_vec();
        }
        let mut volumes = Volumes::default();
        let mut snap = case.snapshot(&mut volumes);
        snap.self_collision = cloth;
        let mut expected = listed(&snap, |_, _| true);
        let count = expected.len();
        expected.retain(|target| target.meets(&snap));
        prop_assert!(snap.targets().eq(expected));
        prop_assert_eq!(snap.count_targets(0..patches, Ownership::pairs_at), count);

        // It is so too where some patches are home to one of each pair.
        let ends = cuts.map(|cut| cut.min(patches));
        let own = ends[0].min(ends[1])..ends[0].max(ends[1]);
        let at_home = |p: usize, q: usize| match p == q {
            true => own.contains(&p),
            false => own.contains(&Ownership::patch_of_pair(p, q)),
        };
        let mut expected = listed(&snap, at_home);
        let count = expected.len();
        expected.retain(|target| target.meets(&snap));
        prop_assert_eq!(snap.targets_at(own.clone(), Ownership::patch_of_pair), expected);
        prop_assert_eq!(snap.count_targets(own, Ownership::pairs_at), count);
    }
}
