//! Seed pairs: the pairs of subtrees of two patches that may touch, at which a test of the two
//! begins.
//!
//! Most patches that meet touch along a border only. A box around the displacements of a subtree's
//! vertices takes a fraction of the time that their volumes take. A subtree whose box misses the
//! other patch need not be made, and the nodes above subtrees are not looked at. Boxes are a
//! function of positions and velocities, so all ranks begin alike.

use glam::DVec3;

use crate::collide::bvh::kdop::{Kdop18, below, outwards};
use crate::heap_bytes::owns_no_heap;
use crate::simd::greater;
use crate::simd::{Kernel, Lanes, up_to_avx2};

/// The number of boxes that are compared at once.
const LANES: usize = 8;
/// The bound of a box that does not exist: it is apart from all.
const NOWHERE: f32 = 1e37;

/// The boxes around eight subtrees: lower bounds along the axes, and negated upper ones, in m.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub(in crate::collide) struct Boxes {
    low: [[f32; LANES]; 3],
    high: [[f32; LANES]; 3],
}

owns_no_heap!(Boxes);

/// Computes a box for each group of places: it is around all points within `radius` (m) of the
/// displacements of the vertices there. `ends` are those of the displacement of a place.
pub(in crate::collide) fn boxes<'a>(
    groups: impl Iterator<Item = &'a [u32]>,
    ends: impl Fn(u32) -> [DVec3; 2],
    radius: f64,
    out: &mut Vec<Boxes>,
) {
    out.clear();
    up_to_avx2(Boxing {
        groups,
        ends,
        radius,
        out,
    });
}

/// The arguments of [`boxes`].
struct Boxing<'o, G, E> {
    groups: G,
    ends: E,
    radius: f64,
    out: &'o mut Vec<Boxes>,
}

impl<'a, G: Iterator<Item = &'a [u32]>, E: Fn(u32) -> [DVec3; 2]> Kernel for Boxing<'_, G, E> {
    type Output = ();

    #[inline(always)]
    fn run<S: Lanes>(self, _: S) {
        let lesser = |a: f64, b: f64| if a < b { a } else { b };
        let greater = |a: f64, b: f64| if a > b { a } else { b };
        for (at, places) in self.groups.enumerate() {
            // Starts and ends are gone through apart, so that neither waits for the other.
            // Comparisons stand in place of `min`, which minds NaN.
            let (mut low, mut high) = ([[f64::INFINITY; 3]; 2], [[f64::NEG_INFINITY; 3]; 2]);
            for &place in places {
                for (end, point) in (self.ends)(place).into_iter().enumerate() {
                    for (k, at) in point.to_array().into_iter().enumerate() {
                        low[end][k] = lesser(at, low[end][k]);
                        high[end][k] = greater(at, high[end][k]);
                    }
                }
            }
            if at % LANES == 0 {
                self.out.push(Boxes {
                    low: [[NOWHERE; LANES]; 3],
                    high: [[NOWHERE; LANES]; 3],
                });
            }
            let Some(eight) = self.out.last_mut() else {
                return;
            };
            for k in 0..3 {
                eight.low[k][at % LANES] = below(lesser(low[0][k], low[1][k]) - self.radius);
                eight.high[k][at % LANES] = below(-greater(high[0][k], high[1][k]) - self.radius);
            }
        }
    }
}

/// The subtrees of a patch, with boxes around them.
#[derive(Clone, Copy, Debug)]
pub(in crate::collide) struct PatchBoxes<'a> {
    /// The volume around all of it.
    pub(in crate::collide) root: &'a Kdop18,
    /// The boxes around its subtrees, and which subtrees there are, a bit for each.
    pub(in crate::collide) boxes: &'a [Boxes],
    pub(in crate::collide) all: u64,
}

/// Tells `found` the numbers of the subtrees of two patches that may touch.
pub(in crate::collide) fn seed_pairs([one, two]: [PatchBoxes<'_>; 2], found: impl FnMut(u32, u32)) {
    up_to_avx2(Touching { one, two, found });
}

/// The subtrees whose boxes a volume meets, a bit for each of those that there are.
pub(in crate::collide) fn met_by(volume: &Kdop18, boxes: &[Boxes], all: u64) -> u64 {
    up_to_avx2(Meeting { volume, boxes, all })
}

/// The arguments of [`met_by`].
struct Meeting<'a> {
    volume: &'a Kdop18,
    boxes: &'a [Boxes],
    all: u64,
}

impl Kernel for Meeting<'_> {
    type Output = u64;

    #[inline(always)]
    fn run<S: Lanes>(self, _: S) -> u64 {
        reached(self.volume, self.boxes, self.all)
    }
}

/// The arguments of [`touching`].
struct Touching<'a, F> {
    one: PatchBoxes<'a>,
    two: PatchBoxes<'a>,
    found: F,
}

impl<F: FnMut(u32, u32)> Kernel for Touching<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run<S: Lanes>(mut self, _: S) {
        let (one, two) = (&self.one, &self.two);
        let mut reaching = reached(two.root, one.boxes, one.all);
        let others = reached(one.root, two.boxes, two.all);
        if others == 0 {
            return;
        }
        while reaching != 0 {
            let a = reaching.trailing_zeros();
            reaching &= reaching - 1;
            let (eight, lane) = (&one.boxes[a as usize / LANES], a as usize % LANES);
            // The bounds that the others' are to be compared with.
            let (mut low, mut high) = ([0.0; 3], [0.0; 3]);
            for k in 0..3 {
                (low[k], high[k]) = (eight.high[k][lane], eight.low[k][lane]);
            }
            let mut touched = 0;
            for (at, boxes) in two.boxes.iter().enumerate() {
                let mut gaps = [f32::NEG_INFINITY; LANES];
                along_axes(boxes, (&low, &high), &mut gaps);
                touched |= closed(&gaps) << (LANES * at);
            }
            touched &= others;
            while touched != 0 {
                (self.found)(a, touched.trailing_zeros());
                touched &= touched - 1;
            }
        }
    }
}

/// The subtrees whose boxes a volume meets, a bit for each.
#[inline(always)]
fn reached(volume: &Kdop18, boxes: &[Boxes], all: u64) -> u64 {
    let p = volume.numbers();
    let mut reached = 0;
    for (at, boxes) in boxes.iter().enumerate() {
        let mut gaps = [f32::NEG_INFINITY; LANES];
        along_axes(
            boxes,
            (&[p[9], p[10], p[11]], &[p[0], p[1], p[2]]),
            &mut gaps,
        );
        // The diagonals are sums and differences of two axes, each compared with the bounds that
        // the volume has on the other side.
        let Boxes { low, high } = boxes;
        along_diagonals((low, low), &[p[12], p[13], p[14]], &mut gaps);
        along_diagonals((high, high), &[p[3], p[4], p[5]], &mut gaps);
        along_diagonals((low, high), &[p[15], p[16], p[17]], &mut gaps);
        along_diagonals((high, low), &[p[6], p[7], p[8]], &mut gaps);
        reached |= closed(&gaps) << (LANES * at);
    }
    reached & all
}

/// Widens gaps to those along the axes between boxes and a volume, whose bounds on the other sides
/// of their lower and upper ones are given.
#[inline(always)]
fn along_axes(boxes: &Boxes, (low, high): (&[f32; 3], &[f32; 3]), gaps: &mut [f32; LANES]) {
    for k in 0..3 {
        let bounds = boxes.low[k].iter().zip(&boxes.high[k]);
        for (gap, (lower, upper)) in gaps.iter_mut().zip(bounds) {
            *gap = greater(lower + low[k], greater(upper + high[k], *gap));
        }
    }
}

/// Widens gaps to those along the diagonals of two axes each, along which bounds are sums of two.
#[inline(always)]
fn along_diagonals(
    (a, b): (&[[f32; LANES]; 3], &[[f32; LANES]; 3]),
    others: &[f32; 3],
    gaps: &mut [f32; LANES],
) {
    for (k, (i, j)) in [(0, 1), (0, 2), (1, 2)].into_iter().enumerate() {
        for (gap, (a, b)) in gaps.iter_mut().zip(a[i].iter().zip(&b[j])) {
            *gap = greater(outwards(a + b) + others[k], *gap);
        }
    }
}

/// The places without a gap, a bit for each.
#[inline(always)]
fn closed(gaps: &[f32; LANES]) -> u64 {
    let mut closed = 0;
    for (i, &gap) in gaps.iter().enumerate() {
        closed |= u64::from(gap <= 0.0) << i;
    }
    closed
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::collide::bvh::kdop::Kdop;

    /// A box along the axes.
    type Aabb = Kdop<8>;

    fn point(scale: f64) -> impl Strategy<Value = DVec3> {
        (-scale..scale, -scale..scale, -scale..scale).prop_map(|(x, y, z)| DVec3::new(x, y, z))
    }

    fn displacement() -> impl Strategy<Value = [DVec3; 2]> {
        (point(1.0), point(0.2)).prop_map(|(start, by)| [start, start + by])
    }

    /// The boxes of subtrees, as they are made, and one by one.
    fn boxed(subtrees: &[Vec<[DVec3; 2]>], radius: f64) -> (Vec<Boxes>, Vec<Aabb>) {
        let displacements = subtrees.concat();
        let (mut places, mut next) = (Vec::new(), 0);
        for subtree in subtrees {
            places.push((next..next + subtree.len() as u32).collect::<Vec<u32>>());
            next += subtree.len() as u32;
        }
        let mut out = Vec::new();
        let groups = places.iter().map(Vec::as_slice);
        boxes(
            groups,
            |place| displacements[place as usize],
            radius,
            &mut out,
        );
        assert_eq!(out.len(), subtrees.len().div_ceil(LANES));
        let one = |at: usize| {
            let (eight, lane) = (&out[at / LANES], at % LANES);
            let [a, b, c] = eight.low.map(|low| low[lane]);
            let [d, e, f] = eight.high.map(|high| high[lane]);
            let end = f32::NEG_INFINITY;
            Aabb::from_numbers([a, b, c, d, e, f, end, end])
        };
        let all = (0..subtrees.len()).map(one).collect();
        (out, all)
    }

    proptest! {
        #[test]
        fn a_box_holds_all_that_comes_within_the_radius_and_hardly_more(
            far in point(1e4), displacements in prop::collection::vec(displacement(), 1..9), radius in 0.0..0.1f64,
        ) {
            let displacements: Vec<_> = displacements.iter().map(|displacement| displacement.map(|p| p + far)).collect();
            let boxed = boxed(std::slice::from_ref(&displacements), radius).1[0];
            let (mut low, mut high) = (displacements[0][0], displacements[0][0]);
            for &[start, end] in &displacements {
                low = low.min(start).min(end);
                high = high.max(start).max(end);
                for t in [0.0, 0.4, 1.0] {
                    for d in [DVec3::ZERO, DVec3::X, -DVec3::Y, DVec3::ONE.normalize()] {
                        let p = start.lerp(end, t) + d * radius;
                        prop_assert!(boxed.contains(p));
                    }
                }
            }
            let (center, half) = boxed.ball();
            let slack = 1e-6 * (far.length() + 1.0);
            prop_assert!((center - 0.5 * (low + high)).length() < slack);
            prop_assert!(half < 0.5 * (high - low).length() + 2.0 * radius + slack);
        }

        #[test]
        fn seed_pairs_have_all_touching_pieces_and_none_with_boxes_apart(
            patches in prop::array::uniform2(prop::collection::vec(prop::collection::vec(displacement(), 1..4), 0..64)),
            shift in point(1.5), far in point(1e3), radius in 0.0..0.2f64,
        ) {
            let [mut one, mut two] = patches;
            for end in one.iter_mut().flatten().flatten() {
                *end += far;
            }
            for end in two.iter_mut().flatten().flatten() {
                *end += far + shift;
            }
            let [(packed, single), (others, other)] = [&one, &two].map(|p| boxed(p, radius));
            let boxes = [single, other];
            let roots = [&one, &two].map(|subtrees| {
                let ends: Vec<DVec3> = subtrees.iter().flatten().flatten().copied().collect();
                if ends.is_empty() { Kdop18::EMPTY } else { Kdop18::around(&ends, radius) }
            });
            let mut found = Vec::new();
            let both = [(&roots[0], &packed, one.len()), (&roots[1], &others, two.len())];
            let both = both.map(|(root, boxes, count)| PatchBoxes { root, boxes, all: (1 << count) - 1 });
            seed_pairs(both, |a, b| found.push((a, b)));
            // Its eight corners, and a little more than the box.
            let volume = |of: &Aabb| {
                let (center, _) = of.ball();
                let [x, y, z, ..] = of.numbers().map(f64::from);
                let half = center - DVec3::new(x, y, z);
                let signs = [-1.0, 1.0];
                let corner = |x, y, z| center + half * DVec3::new(x, y, z);
                let corners = signs.map(|x| signs.map(|y| signs.map(|z| corner(x, y, z))));
                Kdop18::around(corners.as_flattened().as_flattened(), 1e-5 + 1e-6 * far.length())
            };
            for (a, first) in (0..).zip(&one) {
                for (b, second) in (0..).zip(&two) {
                    let is_found = found.contains(&(a, b));
                    let pair = [&boxes[0][a as usize], &boxes[1][b as usize]];
                    let meets = |at: usize| volume(pair[at]).overlaps(&roots[1 - at]);
                    prop_assert!(!is_found || pair[0].overlaps(pair[1]) && meets(0) && meets(1));
                    let close = first.concat().iter().any(|p| {
                        second.concat().iter().any(|q| p.distance(*q) < 2.0 * radius)
                    });
                    prop_assert!(!close || is_found);
                }
            }
            let all: BTreeSet<_> = found.iter().collect();
            prop_assert_eq!(all.len(), found.len());
        }
    }
}
