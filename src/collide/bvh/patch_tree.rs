//! The patch tree with volumes: the root nodes of all patches combined to one global hierarchy
//! [TB06 §4.2.1].
//!
//! In: the volume around each patch, in the order of patches. Out: the patches that meet something,
//! and the pairs of patches whose volumes overlap, found by walking the tree from its root. A
//! volume of an inner node is the union of its children's: if the volumes of two nodes are apart,
//! no patch below one of them meets a patch below the other.
//!
//! The tree is that of the bisection of the mesh, which has a power of two of patches. If there are
//! fewer, the leaves that are missing have empty volumes.

use std::ops::Range;

use glam::DVec3;

use crate::collide::bvh::kdop::Kdop18;

/// The slack of balls around balls, as a share of their radius and coordinates: more than rounding
/// does to them and to the distances that they are compared with.
const ROUNDING: f64 = 1e-9;

/// The root's number. The children of node k are nodes 2 k and 2 k + 1.
const ROOT: usize = 1;

/// The volumes of the patch tree's nodes, by their numbers: first the inner nodes, then the leaves.
#[derive(Clone, Copy, Debug)]
pub(in crate::collide) struct PatchTree<'a> {
    volumes: &'a [Kdop18],
}

/// The centre and the radius of a ball in m; none around nothing.
pub(in crate::collide) type Ball = Option<(DVec3, f64)>;

/// Fills in the volumes of all nodes, from those of the patches.
pub(in crate::collide) fn merge<'a>(
    patches: impl ExactSizeIterator<Item = &'a Kdop18>,
    volumes: &mut Vec<Kdop18>,
) {
    let leaves = patches.len().next_power_of_two();
    volumes.clear();
    volumes.resize(leaves, Kdop18::EMPTY);
    volumes.extend(patches.copied());
    volumes.resize(2 * leaves, Kdop18::EMPTY);
    for node in (ROOT..leaves).rev() {
        volumes[node] = volumes[2 * node].union(&volumes[2 * node + 1]);
    }
}

impl<'a> PatchTree<'a> {
    /// The tree of volumes that [`merge`] has filled in.
    pub(in crate::collide) fn new(volumes: &'a [Kdop18]) -> Self {
        Self { volumes }
    }

    fn leaves(self) -> usize {
        self.volumes.len() / 2
    }

    /// Whether a node is a leaf.
    fn is_leaf(self, node: usize) -> bool {
        node >= self.leaves()
    }

    /// Whether one of some patches is below a node.
    fn is_above(self, node: usize, patches: &Range<usize>) -> bool {
        let levels = self.leaves().ilog2() - node.ilog2();
        let first = (node << levels) - self.leaves();
        first < patches.end && patches.start < first + (1 << levels)
    }

    /// Tells `found` the pairs of patches whose volumes overlap, the lower number first, of which
    /// one is in a range. Returns how many pairs of volumes it has compared.
    pub(in crate::collide) fn pairs(
        self,
        with: &Range<usize>,
        mut found: impl FnMut(usize, usize),
    ) -> usize {
        let mut compared = 0;
        // Equal nodes stand for all pairs below.
        let mut stack = vec![(ROOT, ROOT)];
        while let Some((a, b)) = stack.pop() {
            if self.is_leaf(a) {
                if a != b {
                    found(a - self.leaves(), b - self.leaves());
                }
                continue;
            }
            let (first, second) = ([2 * a, 2 * a + 1], [2 * b, 2 * b + 1]);
            for (i, &one) in first.iter().enumerate() {
                let turned = self.volumes[one].turned();
                for (j, &other) in second.iter().enumerate() {
                    if a == b && i >= j {
                        if i == j && self.is_above(one, with) {
                            stack.push((one, one));
                        }
                        continue;
                    }
                    if self.is_above(one, with) || self.is_above(other, with) {
                        compared += 1;
                        if turned.overlaps(&self.volumes[other]) {
                            stack.push((one, other));
                        }
                    }
                }
            }
        }
        compared
    }

    /// Tells `found` the patches of a range that meet something. `meets` is asked of nodes from the
    /// root on, by number and volume, and must be true of a node if it is of one below it.
    pub(in crate::collide) fn meeting(
        self,
        of: &Range<usize>,
        mut meets: impl FnMut(usize, &Kdop18) -> bool,
        mut found: impl FnMut(usize),
    ) {
        let mut stack = vec![ROOT];
        while let Some(node) = stack.pop() {
            if !self.is_above(node, of) || !meets(node, &self.volumes[node]) {
                continue;
            }
            if self.is_leaf(node) {
                found(node - self.leaves());
            } else {
                stack.extend([2 * node, 2 * node + 1]);
            }
        }
    }

    /// Fills in a ball for each node: of a patch the one around its volume, above that one around
    /// the balls of the children.
    pub(in crate::collide) fn balls(self, balls: &mut Vec<Ball>) {
        let around = |volume: &Kdop18| (*volume != Kdop18::EMPTY).then(|| volume.ball());
        balls.clear();
        balls.extend(self.volumes.iter().map(around));
        for node in (ROOT..self.leaves()).rev() {
            let Some((center, _)) = balls[node] else {
                continue;
            };
            let children = [balls[2 * node], balls[2 * node + 1]];
            let reaches = |(at, radius): (DVec3, f64)| center.distance(at) + radius;
            let radius = children.into_iter().flatten().map(reaches);
            let radius = radius.fold(0.0, f64::max);
            let slack = ROUNDING * (radius + center.abs().max_element());
            balls[node] = Some((center, radius + slack));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn volume() -> impl Strategy<Value = Kdop18> {
        let near = prop::array::uniform3(-1.0..1.0f64).prop_map(DVec3::from);
        let size = prop::array::uniform3(-0.2..0.2f64).prop_map(DVec3::from);
        let radius = prop_oneof![8 => 0.0..0.2f64, 1 => Just(2.0)];
        let some = (near, size, radius)
            .prop_map(|(at, size, radius)| Kdop18::around(&[at, at + size], radius));
        prop_oneof![9 => some, 1 => Just(Kdop18::EMPTY)]
    }

    /// The pairs of patches in a range with others, by walking the tree.
    fn walked(volumes: &[Kdop18], with: &Range<usize>) -> (Vec<(usize, usize)>, usize) {
        let (mut merged, mut found) = (Vec::new(), Vec::new());
        merge(volumes.iter(), &mut merged);
        let compared = PatchTree::new(&merged).pairs(with, |p, q| found.push((p, q)));
        found.sort_unstable();
        (found, compared)
    }

    proptest! {
        #[test]
        fn the_walk_finds_the_pairs_that_listing_all_pairs_finds(
            volumes in prop::collection::vec(volume(), 0..70), ends in prop::array::uniform2(0..70usize),
        ) {
            let count = volumes.len();
            for with in [0..count, ends[0].min(count)..ends[1].min(count)] {
                let all = (0..count).flat_map(|p| (p + 1..count).map(move |q| (p, q)));
                let expected: Vec<_> = all
                    .filter(|&(p, q)| with.contains(&p) || with.contains(&q))
                    .filter(|&(p, q)| volumes[p].overlaps(&volumes[q]))
                    .collect();
                prop_assert_eq!(walked(&volumes, &with).0, expected);
            }
        }

        #[test]
        fn the_walk_finds_the_patches_that_meet_a_volume_or_reach_a_point(
            volumes in prop::collection::vec(volume(), 0..70), other in volume(),
            ends in prop::array::uniform2(0..70usize), point in prop::array::uniform3(-3.0..3.0f64),
        ) {
            let (count, point) = (volumes.len(), DVec3::from(point));
            let (mut merged, mut balls) = (Vec::new(), Vec::new());
            merge(volumes.iter(), &mut merged);
            let tree = PatchTree::new(&merged);
            tree.balls(&mut balls);
            let of = ends[0].min(count)..ends[1].min(count);
            let mut found = Vec::new();
            tree.meeting(&of, |_, volume| volume.overlaps(&other), |patch| found.push(patch));
            found.sort_unstable();
            let expected: Vec<usize> = of.clone().filter(|&p| volumes[p].overlaps(&other)).collect();
            prop_assert_eq!(found, expected);

            let holds = |ball: Ball| ball.is_some_and(|(at, radius)| at.distance(point) <= radius);
            let mut found = Vec::new();
            tree.meeting(&of, |node, _| holds(balls[node]), |patch| found.push(patch));
            found.sort_unstable();
            let of_patch = |p: usize| (volumes[p] != Kdop18::EMPTY).then(|| volumes[p].ball());
            let expected: Vec<usize> = of.filter(|&p| holds(of_patch(p))).collect();
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn most_pairs_of_a_large_sheet_are_never_compared() {
        // Patches of a square in the order of a bisection.
        let bits = |of: usize| (0..6).fold(0, |all, k| all | (of >> (2 * k) & 1) << k);
        let volumes: Vec<Kdop18> = (0..4096)
            .map(|patch| {
                let at = DVec3::new(bits(patch) as f64, bits(patch >> 1) as f64, 0.0);
                let corners = [DVec3::ZERO, DVec3::X, DVec3::Y, DVec3::X + DVec3::Y];
                Kdop18::around(&corners.map(|corner| at + corner), 0.01)
            })
            .collect();
        let (found, compared) = walked(&volumes, &(0..4096));
        // Each patch touches the next in its row and in its column, and along both diagonals.
        assert_eq!(found.len(), 2 * 63 * 64 + 2 * 63 * 63);
        assert!(compared < 100_000, "{compared}");
        let (found, compared) = walked(&volumes, &(0..16));
        assert!(
            found.len() < 100 && compared < 1000,
            "{} {compared}",
            found.len()
        );
    }
}
