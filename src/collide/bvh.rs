//! Binary trees of bounding volumes over triangles: topology built once, volumes refitted each step.
//!
//! The topology comes from the rest shape, top down, by halving along the longest side [TB06 §4.2.1], so
//! that subtrees stay compact pieces of cloth however it is folded. Nodes are numbered so that children
//! follow their parent: one sweep backwards refits the whole tree.

use glam::DVec3;

use super::kdop::Kdop;

/// A node's two children, or the triangle of a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Node {
    /// Children, both with larger numbers than the node.
    Inner(u32, u32),
    /// One triangle.
    Leaf(u32),
}

/// A tree; node 0 is the root. Without triangles it has no nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bvh {
    nodes: Vec<Node>,
}

impl Bvh {
    /// Builds a tree over triangles, given by number and centre.
    #[must_use]
    pub fn build(mut items: Vec<(u32, DVec3)>) -> Self {
        let mut nodes = Vec::with_capacity((2 * items.len()).saturating_sub(1));
        if !items.is_empty() {
            split(&mut items, &mut nodes);
        }
        Self { nodes }
    }

    /// The nodes; children follow parents.
    #[must_use]
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Computes all volumes from those of the triangles.
    #[must_use]
    pub fn refit(&self, leaf: impl Fn(u32) -> Kdop) -> Vec<Kdop> {
        let mut volumes = vec![Kdop::EMPTY; self.nodes.len()];
        for (index, node) in self.nodes.iter().enumerate().rev() {
            volumes[index] = match *node {
                Node::Inner(a, b) => volumes[a as usize].union(&volumes[b as usize]),
                Node::Leaf(triangle) => leaf(triangle),
            };
        }
        volumes
    }
}

/// Appends the tree of `items` and returns its root.
fn split(items: &mut [(u32, DVec3)], nodes: &mut Vec<Node>) -> u32 {
    let index = nodes.len();
    if let [(triangle, _)] = items {
        nodes.push(Node::Leaf(*triangle));
        return index as u32;
    }
    let (mut low, mut high) = (DVec3::INFINITY, DVec3::NEG_INFINITY);
    for (_, center) in items.iter() {
        low = low.min(*center);
        high = high.max(*center);
    }
    let extent = high - low;
    let axis = (1..3).fold(0, |best, k| if extent[k] > extent[best] { k } else { best });
    let middle = items.len() / 2;
    // Ties by number: the tree is a function of the mesh.
    items.select_nth_unstable_by(middle, |a, b| {
        a.1[axis].total_cmp(&b.1[axis]).then(a.0.cmp(&b.0))
    });
    nodes.push(Node::Leaf(u32::MAX));
    let (left, right) = items.split_at_mut(middle);
    left.sort_unstable_by_key(|item| item.0);
    right.sort_unstable_by_key(|item| item.0);
    let a = split(left, nodes);
    let b = split(right, nodes);
    nodes[index] = Node::Inner(a, b);
    index as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_holds_every_triangle_once_and_children_follow_parents() {
        for n in [0u32, 1, 2, 3, 17, 1000] {
            let center = |i: u32| DVec3::new(f64::from(i * 7919 % 101), f64::from(i % 13), 0.0);
            let tree = Bvh::build((0..n).map(|i| (i, center(i))).collect());
            let mut seen: Vec<u32> = Vec::new();
            for (index, node) in tree.nodes().iter().enumerate() {
                match *node {
                    Node::Leaf(t) => seen.push(t),
                    Node::Inner(a, b) => assert!(a as usize > index && b > a),
                }
            }
            seen.sort_unstable();
            assert!(seen.into_iter().eq(0..n));
            let volumes = tree.refit(|t| Kdop::around(&[center(t)], 0.0));
            if let Some(root) = volumes.first() {
                assert!((0..n).all(|i| root.contains(center(i))));
            }
        }
    }

    #[test]
    fn coincident_triangles_are_split_all_the_same() {
        let tree = Bvh::build((0..64).map(|i| (i, DVec3::ONE)).collect());
        assert_eq!(tree.nodes().len(), 127);
    }
}
