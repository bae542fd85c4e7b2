//! Counting crossings: edges of the cloth that pass through its triangles.
//!
//! A frame without crossings is one in which cloth does not cut through itself. The side of a point is
//! the sign of a determinant in f64; positions that differ by rounding only may be judged either way.

use glam::DVec3;

use super::bvh::{Bvh, Node};
use super::kdop::Kdop18;
use super::surface::Surface;

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

/// Whether a segment passes through the inside of a triangle.
fn crosses(x: &[DVec3], ends: [u32; 2], corners: [u32; 3]) -> bool {
    if ends.iter().any(|v| corners.contains(v)) {
        return false;
    }
    let [p, q] = ends.map(|v| x[v as usize]);
    let [a, b, c] = corners.map(|v| x[v as usize]);
    let side = |a: DVec3, b: DVec3, c: DVec3, d: DVec3| (b - a).cross(c - a).dot(d - a);
    if side(a, b, c, p) * side(a, b, c, q) >= 0.0 {
        return false;
    }
    let turns = [side(p, q, a, b), side(p, q, b, c), side(p, q, c, a)];
    turns.iter().all(|t| *t > 0.0) || turns.iter().all(|t| *t < 0.0)
}

#[cfg(test)]
mod tests {
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
        for p in &mut x[3..] {
            p.x += 3.0;
        }
        assert!(crossings(&x, &triangles).is_empty());
    }
}
