//! The edges of triangle meshes, with what is beside them.

use crate::sorted_rows::sorted;

/// Two vertices, the lower first.
pub(super) fn ordered(a: u32, b: u32) -> [u32; 2] {
    if a < b { [a, b] } else { [b, a] }
}

/// An edge of a triangle: its ends, the corner opposite, and the triangle's index.
pub(super) type Side = ([u32; 2], u32, u32);

/// Edges of triangles, the same beside each other.
pub(super) fn sides(triangles: &[[u32; 3]]) -> Vec<Side> {
    let all = || {
        (0..).zip(triangles).flat_map(|(t, &[a, b, c])| {
            [
                (ordered(a, b), c, t),
                (ordered(b, c), a, t),
                (ordered(c, a), b, t),
            ]
        })
    };
    sorted(all, |side| side.0[0])
}

/// Edges between two triangles, of all [`sides`]: their ends, the corners opposite, and the
/// triangles' indices.
pub(super) fn interior_edges(sides: &[Side]) -> Vec<([u32; 4], [usize; 2])> {
    sides
        .windows(2)
        .filter(|pair| pair[0].0 == pair[1].0)
        .map(|pair| {
            let ([a, b], c, s) = pair[0];
            let (_, d, t) = pair[1];
            ([a, b, c, d], [s as usize, t as usize])
        })
        .collect()
}

/// The pairs of an element's vertices; those that it has twice make none.
pub(super) fn pairs<const N: usize>(of: [u32; N]) -> impl Iterator<Item = [u32; 2]> {
    let pairs = (1..N).flat_map(move |i| (0..i).map(move |j| ordered(of[i], of[j])));
    pairs.filter(|[a, b]| a != b)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn rows_come_out_as_sorting_all_at_once_puts_them(
            triangles in prop::collection::vec([0u32..9, 0u32..9, 0u32..9], 0..40)
        ) {
            let mut expected: Vec<Side> = Vec::new();
            for (t, &[a, b, c]) in (0..).zip(&triangles) {
                expected.extend([(ordered(a, b), c, t), (ordered(b, c), a, t), (ordered(c, a), b, t)]);
            }
            expected.sort_unstable();
            prop_assert_eq!(sides(&triangles), expected);
        }
    }
}
