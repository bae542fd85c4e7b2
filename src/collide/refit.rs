//! The sweep that brings the volumes of a tree up to date, leaves and inner nodes apart.
//!
//! Whether the next node is a leaf is anybody's guess, and a processor that guesses wrong loses as much time as a union
//! takes. So of each stretch of nodes first the leaves are gone through, then the inner nodes, by lists that are made with the tree.
//! Stretches are so short that the volumes of one stay in the fastest cache.

use std::ops::Range;

use super::bvh::{Below, Bvh, Node};
use super::packed::{Packed, Siblings};
use super::width::{Width, Work, widest};

/// Nodes of a stretch.
const STRETCH: u32 = 256;

/// What a tree is refitted by.
#[derive(Clone, Debug, Default)]
pub(super) struct Refit {
    /// Of the leaves, from the last on: the places of their corners among volumes of vertices, and the node.
    leaves: Vec<[u32; 4]>,
    /// Of the inner nodes, from the last on: the node, and its children.
    inner: Vec<(u32, Below)>,
    /// Where the leaves and the inner nodes of each stretch end, from the last on.
    stretches: Vec<[u32; 2]>,
}

impl Refit {
    /// That of a tree over triangles with corners at these places.
    pub(super) fn new(tree: &Bvh, places: impl Fn(u32) -> [u32; 3]) -> Self {
        let mut all = Self::default();
        for node in (0..tree.len() as u32).rev() {
            match tree.node(node) {
                Node::Leaf(triangle) => {
                    let [a, b, c] = places(triangle);
                    all.leaves.push([a, b, c, node]);
                }
                Node::Inner(_) => all.inner.push((node, tree.below()[node as usize])),
            }
            if node % STRETCH == 0 {
                let ends = [all.leaves.len() as u32, all.inner.len() as u32];
                all.stretches.push(ends);
            }
        }
        all
    }

    /// Fills in the volumes of all nodes, in the order of [`Nodes`](super::packed::Nodes), from those of vertices.
    ///
    /// # Panics
    /// If there are fewer of these than places.
    pub(super) fn run(&self, vertices: &[Packed], volumes: &mut Vec<Siblings>) {
        let nodes = self.leaves.len() + self.inner.len();
        volumes.resize(nodes.div_ceil(2), Siblings::NOTHING);
        widest(Sweep {
            of: self,
            vertices,
            volumes,
        });
        if let Some(root) = volumes.first_mut() {
            let whole = root.one(1);
            root.put(0, &whole);
        }
    }
}

/// The arguments of [`Refit::run`].
struct Sweep<'a> {
    of: &'a Refit,
    vertices: &'a [Packed],
    volumes: &'a mut [Siblings],
}

impl Work for Sweep<'_> {
    type Output = ();

    #[inline(always)]
    fn run<W: Width>(self, _: W) {
        let Refit {
            leaves,
            inner,
            stretches,
        } = self.of;
        let mut from = [0; 2];
        for &ends in stretches {
            let range = |k: usize| -> Range<usize> { from[k] as usize..ends[k] as usize };
            for &[a, b, c, node] in &leaves[range(0)] {
                let [a, b, c] = [a, b, c].map(|at| &self.vertices[at as usize]);
                let (at, side) = place(node);
                let siblings = &mut self.volumes[at];
                siblings.put(side, &a.union(b).union(c));
                siblings.below[side] = Below::leaf(node);
            }
            for &(node, below) in &inner[range(1)] {
                let volume = self.volumes[below.siblings() as usize].union();
                let (at, side) = place(node);
                let siblings = &mut self.volumes[at];
                siblings.put(side, &volume);
                siblings.below[side] = below;
            }
            from = ends;
        }
    }
}

/// Where a node's volume stands: which siblings, and which of the two.
#[inline(always)]
fn place(node: u32) -> (usize, usize) {
    let at = node as usize + 1;
    (at / 2, at % 2)
}

#[cfg(test)]
mod tests {
    use glam::DVec3;

    use super::super::kdop::Kdop18;
    use super::super::packed::{Grid, Nodes, Ways};
    use super::super::traverse::Bounds;
    use super::*;

    #[test]
    fn every_node_has_what_holds_its_triangles_and_no_more() {
        for count in [0_u32, 1, 2, 3, 17, 300, 1000] {
            let x = |v: u32| {
                let of = |p: u32| f64::from(v * 7919 % p) / f64::from(p);
                DVec3::new(of(101), of(57), of(1013))
            };
            let corners = |t: u32| [t, t * 31 % (count + 2), t * 17 % (count + 2)];
            let tree = Bvh::build((0..count).map(|t| (t, x(t))).collect());
            let points: Vec<DVec3> = (0..count + 2).map(x).collect();
            let grid = Grid::over(&Kdop18::around(&points, 0.01));
            let (mut ways, mut vertices) = (Vec::new(), Vec::new());
            Ways::of(&points, |&p| [p, p + 0.01 * p], points[0], &mut ways);
            grid.measure(&ways, points[0], 0.01, &mut vertices);

            let mut volumes = Vec::new();
            let refit = Refit::new(&tree, corners);
            // What was there before is of no matter.
            refit.run(&vec![vertices[0]; vertices.len()], &mut volumes);
            refit.run(&vertices, &mut volumes);
            let nodes = Nodes(&volumes);
            assert_eq!(nodes.count(), tree.len());
            for node in 0..tree.len() as u32 {
                let expected = match tree.node(node) {
                    Node::Inner(first) => nodes.of(first).union(&nodes.of(first + 1)),
                    Node::Leaf(t) => {
                        let [a, b, c] = corners(t).map(|v| vertices[v as usize]);
                        a.union(&b).union(&c)
                    }
                };
                assert_eq!(nodes.of(node), expected, "node {node} of {count} triangles");
                let below = Bounds::below(nodes, &tree, node);
                assert_eq!(below, tree.below()[node as usize]);
            }
            if let Some(first) = volumes.first() {
                assert_eq!(first.one(0), first.one(1));
            }
        }
    }
}
