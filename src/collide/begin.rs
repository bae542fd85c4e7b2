//! Where a test of two patches begins: at the pairs of pieces of their trees that may touch.
//!
//! Most patches that meet touch along a border, and a tree consists of [pieces](super::refit). A box around where the vertices of a piece go
//! takes a fraction of what their volumes take. What a piece whose box misses the other patch holds need not be made, nor is what is above pieces
//! looked at. Boxes are a function of positions and velocities: all ranks begin alike.

use glam::DVec3;

use super::kdop::{Aabb, Kdop18, Turned, below};
use super::width::{Width, Work, widest};

/// The boxes around all points within `radius` (m) of some ways, of each group of places one; `ends` are those of the way of the vertex at a place.
pub(super) fn boxes<'a>(
    groups: impl Iterator<Item = &'a [u32]>,
    ends: impl Fn(u32) -> [DVec3; 2],
    radius: f64,
    out: &mut Vec<Aabb>,
) {
    out.clear();
    widest(Boxing {
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
    out: &'o mut Vec<Aabb>,
}

impl<'a, G: Iterator<Item = &'a [u32]>, E: Fn(u32) -> [DVec3; 2]> Work for Boxing<'_, G, E> {
    type Output = ();

    #[inline(always)]
    fn run<W: Width>(self, _: W) {
        let lesser = |a: f64, b: f64| if a < b { a } else { b };
        let greater = |a: f64, b: f64| if a > b { a } else { b };
        for places in self.groups {
            // Of starts and of ends on their own: neither waits for the other. Comparisons instead of `min`, which minds NaN.
            let (mut low, mut high) = ([[f64::INFINITY; 3]; 2], [[f64::NEG_INFINITY; 3]; 2]);
            for &place in places {
                for (end, point) in (self.ends)(place).into_iter().enumerate() {
                    for (k, at) in point.to_array().into_iter().enumerate() {
                        low[end][k] = lesser(at, low[end][k]);
                        high[end][k] = greater(at, high[end][k]);
                    }
                }
            }
            let lower = |k: usize| below(lesser(low[0][k], low[1][k]) - self.radius);
            let upper = |k: usize| below(-greater(high[0][k], high[1][k]) - self.radius);
            let planes = [lower(0), lower(1), lower(2), upper(0), upper(1), upper(2)];
            self.out.push(Aabb::from_bounds(planes));
        }
    }
}

/// The pieces of two patches that may touch, as `found` is told by their numbers, from the volume around each patch and the boxes around its
/// pieces, of which there are no more than 64.
pub(super) fn touching([one, two]: [(&Kdop18, &[Aabb]); 2], mut found: impl FnMut(u32, u32)) {
    let (first, second) = (Patch::new(one.0), Patch::new(two.0));
    let bit = |(at, piece): (u32, &Aabb)| u64::from(first.meets(piece)) << at;
    let reached: u64 = (0..).zip(two.1).map(bit).sum();
    if reached == 0 {
        return;
    }
    for (a, piece) in (0..).zip(one.1).filter(|(_, piece)| second.meets(piece)) {
        let piece = piece.turned();
        let mut others = reached;
        while others != 0 {
            let b = others.trailing_zeros();
            others &= others - 1;
            if piece.overlaps(&two.1[b as usize]) {
                found(a, b);
            }
        }
    }
}

/// The volume around a patch, to be compared with many boxes.
struct Patch {
    boxed: Turned<8>,
    /// Negated upper bounds along sums of two axes, lower ones, and the same along differences.
    diagonals: [[f64; 3]; 4],
}

impl Patch {
    fn new(root: &Kdop18) -> Self {
        let three = |from: usize| [0, 1, 2].map(|k| f64::from(root.numbers()[from + k]));
        Self {
            boxed: root.boxed().turned(),
            diagonals: [12, 3, 15, 6].map(three),
        }
    }

    /// Whether no pair of planes separates it from a box.
    #[inline]
    fn meets(&self, piece: &Aabb) -> bool {
        if !self.boxed.overlaps(piece) {
            return false;
        }
        let [low, high] = piece.bounds().map(|bounds| bounds.map(f64::from));
        let sums = |a: &[f64; 3], b: &[f64; 3]| [a[0] + b[1], a[0] + b[2], a[1] + b[2]];
        let bounds = [
            sums(&low, &low),
            sums(&high, &high),
            sums(&low, &high),
            sums(&high, &low),
        ];
        let pairs = bounds
            .as_flattened()
            .iter()
            .zip(self.diagonals.as_flattened());
        !pairs.fold(false, |apart, (a, b)| apart | (a + b > 0.0))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn point(scale: f64) -> impl Strategy<Value = DVec3> {
        (-scale..scale, -scale..scale, -scale..scale).prop_map(|(x, y, z)| DVec3::new(x, y, z))
    }

    fn way() -> impl Strategy<Value = [DVec3; 2]> {
        (point(1.0), point(0.2)).prop_map(|(start, by)| [start, start + by])
    }

    fn boxed(ways: &[[DVec3; 2]], radius: f64) -> Aabb {
        let places: Vec<u32> = (0..ways.len() as u32).collect();
        let mut out = vec![Aabb::EMPTY];
        let groups = [&places[..]].into_iter();
        boxes(groups, |place| ways[place as usize], radius, &mut out);
        assert_eq!(out.len(), 1);
        out[0]
    }

    proptest! {
        #[test]
        fn a_box_holds_all_that_comes_within_the_radius_and_hardly_more(
            far in point(1e4), ways in prop::collection::vec(way(), 1..9), radius in 0.0..0.1f64,
        ) {
            let ways: Vec<_> = ways.iter().map(|way| way.map(|p| p + far)).collect();
            let boxed = boxed(&ways, radius);
            let (mut low, mut high) = (ways[0][0], ways[0][0]);
            for &[start, end] in &ways {
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
        fn of_pieces_that_touch_none_is_missing_and_of_those_whose_boxes_are_apart_none_is_there(
            patches in prop::array::uniform2(prop::collection::vec(prop::collection::vec(way(), 1..4), 0..6)),
            shift in point(1.5), radius in 0.0..0.2f64,
        ) {
            let [one, mut two] = patches;
            for end in two.iter_mut().flatten().flatten() {
                *end += shift;
            }
            let boxes = [&one, &two].map(|pieces| {
                let boxes = pieces.iter().map(|ways| boxed(ways, radius));
                boxes.collect::<Vec<Aabb>>()
            });
            let roots = [&one, &two].map(|pieces| {
                let ends: Vec<DVec3> = pieces.iter().flatten().flatten().copied().collect();
                if ends.is_empty() { Kdop18::EMPTY } else { Kdop18::around(&ends, radius) }
            });
            let mut found = Vec::new();
            let both = [(&roots[0], &boxes[0][..]), (&roots[1], &boxes[1][..])];
            touching(both, |a, b| found.push((a, b)));
            // Its eight corners, and a little more than the box.
            let volume = |of: &Aabb| {
                let (center, _) = of.ball();
                let [[x, y, z], _] = of.bounds().map(|bounds| bounds.map(f64::from));
                let half = center - DVec3::new(x, y, z);
                let signs = [-1.0, 1.0];
                let corner = |x, y, z| center + half * DVec3::new(x, y, z);
                let corners = signs.map(|x| signs.map(|y| signs.map(|z| corner(x, y, z))));
                Kdop18::around(corners.as_flattened().as_flattened(), 1e-5)
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
            let all: std::collections::BTreeSet<_> = found.iter().collect();
            prop_assert_eq!(all.len(), found.len());
        }
    }
}
