//! Counting crossings: edges of the cloth that pass through its triangles.
//!
//! A frame without crossings is one in which cloth does not cut through itself. On which side of a plane a point lies is
//! the sign of a determinant, which is told exactly \[She97\]: first with an error bound, and where that leaves a doubt
//! with as many digits as it takes. So a crossing is one whatever the rounding, for the positions that a frame holds.
//! Features that only touch do not cross.
//!
//! * \[She97\] Shewchuk: Adaptive precision floating-point arithmetic and fast robust geometric predicates.

use std::collections::BTreeSet;

use glam::DVec3;

use super::bvh::{Bvh, Node};
use super::kdop::Kdop18;
use super::surface::Surface;

/// The triangles that take part in crossings, ascending: those that are crossed, and those that the edges belong to.
#[must_use]
pub fn offenders(triangles: &[[u32; 3]], found: &[([u32; 2], u32)]) -> Vec<u32> {
    let edges: BTreeSet<[u32; 2]> = found.iter().map(|(edge, _)| *edge).collect();
    let crossed: BTreeSet<u32> = found.iter().map(|(_, triangle)| *triangle).collect();
    let has = |t: &[u32; 3]| {
        (0..3).any(|k| {
            let (a, b) = (t[k], t[(k + 1) % 3]);
            edges.contains(&[a.min(b), a.max(b)])
        })
    };
    let takes_part = |(index, t): &(u32, &[u32; 3])| crossed.contains(index) || has(t);
    (0..)
        .zip(triangles)
        .filter(takes_part)
        .map(|(index, _)| index)
        .collect()
}

/// Pairs of an edge (its two vertices) and a triangle (its number) that cross and share no vertex.
#[must_use]
pub fn crossings(x: &[DVec3], triangles: &[[u32; 3]]) -> Vec<([u32; 2], u32)> {
    let surface = Surface::new(triangles, x.len());
    let center = |t: &[u32; 3]| t.iter().map(|&v| x[v as usize]).sum::<DVec3>() / 3.0;
    let tree = Bvh::build((0..).zip(triangles).map(|(i, t)| (i, center(t))).collect());
    let mut volumes = Vec::new();
    tree.refit(
        |t| Kdop18::around(&triangles[t as usize].map(|v| x[v as usize]), 0.0),
        &mut volumes,
    );
    let mut found = Vec::new();
    let mut stack = if tree.is_empty() {
        vec![]
    } else {
        vec![(0, 0)]
    };
    while let Some((a, b)) = stack.pop() {
        let mut push = |a: u32, b: u32| {
            if a == b || volumes[a as usize].overlaps(&volumes[b as usize]) {
                stack.push((a, b));
            }
        };
        match (tree.node(a), tree.node(b)) {
            (Node::Inner(first), _) if a == b => {
                push(first, first);
                push(first + 1, first + 1);
                push(first, first + 1);
            }
            (Node::Inner(first), _) => {
                push(first, b);
                push(first + 1, b);
            }
            (Node::Leaf(_), Node::Inner(first)) => {
                push(a, first);
                push(a, first + 1);
            }
            (Node::Leaf(s), Node::Leaf(t)) if s != t => {
                for (owner, face) in [(s, t), (t, s)] {
                    for edge in surface.owned_edges(owner) {
                        let ends = surface.edges()[edge as usize];
                        if crosses(x, ends, triangles[face as usize]) {
                            found.push((ends, face));
                        }
                    }
                }
            }
            _ => {}
        }
    }
    found.sort_unstable();
    found
}

/// How many pairs of an edge of one surface and a triangle of another cross: of cloth and a body, of which no vertex need be inside the other.
#[must_use]
pub fn crossings_between(
    (x, triangles): (&[DVec3], &[[u32; 3]]),
    (other_x, others): (&[DVec3], &[[u32; 3]]),
) -> usize {
    // Side by side, the other one's vertices behind.
    let first = x.len() as u32;
    let moved = others.iter().map(|t| t.map(|v| v + first));
    let both: Vec<[u32; 3]> = triangles.iter().copied().chain(moved).collect();
    let found = crossings(&[x, other_x].concat(), &both);
    let between =
        |(edge, face): &&([u32; 2], u32)| (edge[0] < first) != ((*face as usize) < triangles.len());
    found.iter().filter(between).count()
}

/// Whether a segment passes through the inside of a triangle.
fn crosses(x: &[DVec3], ends: [u32; 2], corners: [u32; 3]) -> bool {
    if ends.iter().any(|v| corners.contains(v)) {
        return false;
    }
    let [p, q] = ends.map(|v| x[v as usize]);
    let [a, b, c] = corners.map(|v| x[v as usize]);
    let (above, below) = (side(a, b, c, p), side(a, b, c, q));
    if !(above > 0.0 && below < 0.0 || above < 0.0 && below > 0.0) {
        return false;
    }
    let turns = [side(p, q, a, b), side(p, q, b, c), side(p, q, c, a)];
    turns.iter().all(|t| *t > 0.0) || turns.iter().all(|t| *t < 0.0)
}

/// A number with the sign of the determinant of `b - a`, `c - a` and `d - a`, or its negative for all points alike.
fn side(a: DVec3, b: DVec3, c: DVec3, d: DVec3) -> f64 {
    let [a, b, c, d] = [a, b, c, d].map(|DVec3 { x, y, z }| robust::Coord3D { x, y, z });
    robust::orient3d(a, b, c, d)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_needle_through_a_triangle_is_found_and_one_beside_it_is_not() {
        let mut x = vec![
            DVec3::ZERO,
            DVec3::X,
            DVec3::Y,
            DVec3::new(0.2, 0.2, -0.5),
            DVec3::new(0.2, 0.2, 0.5),
            DVec3::new(5.0, 5.0, 0.5),
        ];
        let triangles = [[0, 1, 2], [3, 4, 5]];
        // The far edge of the second triangle passes beside the first, the near one through it.
        assert_eq!(
            crossings(&x, &triangles)
                .iter()
                .filter(|c| c.0 == [3, 4])
                .count(),
            1
        );
        assert_eq!(offenders(&triangles, &crossings(&x, &triangles)), [0, 1]);
        let needle = (&x[3..], &[[0, 1, 2]][..]);
        let between = crossings_between((&x[..3], &triangles[..1]), needle);
        assert_eq!(between, crossings(&x, &triangles).len());
        for p in &mut x[3..] {
            p.x += 3.0;
        }
        assert!(crossings(&x, &triangles).is_empty());
    }

    /// The same in whole numbers, which are exact.
    fn crosses_exactly(x: &[[i128; 3]], ends: [u32; 2], corners: [u32; 3]) -> bool {
        let side = |points: [u32; 4]| {
            let [a, b, c, d] = points.map(|v| x[v as usize]);
            let [b, c, d] = [b, c, d].map(|p| [0, 1, 2].map(|k| p[k] - a[k]));
            (b[0] * (c[1] * d[2] - c[2] * d[1]) - b[1] * (c[0] * d[2] - c[2] * d[0])
                + b[2] * (c[0] * d[1] - c[1] * d[0]))
                .signum()
        };
        let ([p, q], [a, b, c]) = (ends, corners);
        let turns = [[p, q, a, b], [p, q, b, c], [p, q, c, a]].map(side);
        side([a, b, c, p]) * side([a, b, c, q]) < 0 && (turns == [1, 1, 1] || turns == [-1, -1, -1])
    }

    proptest! {
        #[test]
        fn crossings_are_those_of_exact_arithmetic(
            points in prop::collection::vec((-3i32..4, -3i32..4, -3i32..4), 18), far in 0u32..3,
        ) {
            // Small whole numbers touch and coincide often; far from the origin f64 alone would err.
            let shift = [0, 1 << 20, 1 << 48][far as usize];
            let exact: Vec<[i128; 3]> = points
                .iter()
                .map(|&(x, y, z)| [i128::from(x) + shift, i128::from(y) - shift, i128::from(z)])
                .collect();
            let x: Vec<DVec3> = exact.iter().map(|p| DVec3::from_array(p.map(|c| c as f64))).collect();
            let triangles: Vec<[u32; 3]> = (0..6).map(|t| [3 * t, 3 * t + 1, 3 * t + 2]).collect();
            let mut expected = Vec::new();
            for (face, t) in (0..).zip(&triangles) {
                for (other, s) in (0..).zip(&triangles) {
                    for ends in [[s[0], s[1]], [s[1], s[2]], [s[0], s[2]]] {
                        if other != face && crosses_exactly(&exact, ends, *t) {
                            expected.push((ends, face));
                        }
                    }
                }
            }
            expected.sort_unstable();
            prop_assert_eq!(crossings(&x, &triangles), expected);
        }
    }
}
