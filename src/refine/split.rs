//! Triangles split into four: a vertex at the middle of each edge.
//!
//! In: triangles, and which of their vertices belong together. Out: four triangles for each, of
//! which the first three have its corners, and a numbering in which the vertices of each piece stay
//! together: those that it had in their order, then one for each of its edges, ascending by the
//! ends of the edge. The numbers do not depend on the order of triangles.

use std::ops::Range;

use crate::collide::Surface;

/// A split of triangles that are over vertices of pieces.
#[derive(Debug)]
pub(super) struct Split {
    edges: Vec<[u32; 2]>,
    triangles: Vec<[u32; 3]>,
    /// The vertices and the edges of each piece before the split.
    pieces: Vec<[Range<usize>; 2]>,
}

impl Split {
    /// Splits the first triangles of a surface, which are over the vertices of pieces that follow
    /// each other.
    pub(super) fn new(surface: &Surface, triangles: usize, sizes: &[usize]) -> Self {
        let mut pieces: Vec<[Range<usize>; 2]> = Vec::new();
        let (mut old, mut new) = (Vec::new(), Vec::new());
        let (mut first, mut first_edge) = (0, 0);
        for size in sizes {
            let end = first + size;
            let before_end = |edge: &[u32; 2]| (edge[0] as usize) < end;
            let end_edge = surface.edges().partition_point(before_end);
            old.extend((first..end).map(|v| (v + first_edge) as u32));
            new.extend((first_edge..end_edge).map(|edge| (end + edge) as u32));
            pieces.push([first..end, first_edge..end_edge]);
            (first, first_edge) = (end, end_edge);
        }
        let mut split = Vec::with_capacity(4 * triangles);
        for (t, corners) in (0..).zip(&surface.triangles()[..triangles]) {
            let [a, b, c] = corners.map(|v| old[v as usize]);
            let [ab, bc, ca] = surface.edges_of(t).map(|edge| new[edge as usize]);
            split.extend([[a, ab, ca], [ab, b, bc], [ca, bc, c], [ab, bc, ca]]);
        }
        Self {
            edges: surface.edges()[..first_edge].to_vec(),
            triangles: split,
            pieces,
        }
    }

    /// The triangles after the split: four for each, one after the other.
    pub(super) fn triangles(&self) -> &[[u32; 3]] {
        &self.triangles
    }

    /// The edges before the split, as vertices before the split.
    pub(super) fn edges(&self) -> &[[u32; 2]] {
        &self.edges
    }

    /// How many vertices each piece has after the split.
    pub(super) fn sizes(&self) -> Vec<usize> {
        let sizes = self.pieces.iter();
        let sizes = sizes.map(|[vertices, edges]| vertices.len() + edges.len());
        sizes.collect()
    }

    /// Values of the vertices after the split, from those of vertices and of edges before it.
    pub(super) fn values<T>(&self, old: impl Fn(usize) -> T, new: impl Fn(usize) -> T) -> Vec<T> {
        let mut values = Vec::with_capacity(self.sizes().into_iter().sum());
        for [vertices, edges] in &self.pieces {
            values.extend(vertices.clone().map(&old));
            values.extend(edges.clone().map(&new));
        }
        values
    }

    /// Values of the vertices after the split, of which those between are made of two.
    pub(super) fn between<T: Copy>(&self, values: &[T], mix: impl Fn(T, T) -> T) -> Vec<T> {
        let new = |edge: usize| {
            let [a, b] = self.edges[edge].map(|v| values[v as usize]);
            mix(a, b)
        };
        self.values(|v| values[v], new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::icosphere;
    use glam::DVec3;

    /// Counts of vertices, edges and faces.
    fn counts(surface: &Surface, vertices: usize) -> [usize; 3] {
        [vertices, surface.edges().len(), surface.triangles().len()]
    }

    #[test]
    fn a_split_has_a_vertex_for_each_edge_four_faces_for_each_and_the_same_euler_number() {
        let ball = icosphere(DVec3::ZERO, 1.0, 0.4).unwrap();
        let sheet = crate::physics::tests::grid(7, 1.0);
        for mesh in [ball, sheet] {
            let mut surface = Surface::new(&mesh.triangles, mesh.positions.len());
            let mut sizes = vec![mesh.positions.len()];
            for _ in 0..2 {
                let [v, e, f] = counts(&surface, sizes[0]);
                let split = Split::new(&surface, f, &sizes);
                sizes = split.sizes();
                surface = Surface::new(split.triangles(), sizes[0]);
                let [finer_v, finer_e, finer_f] = counts(&surface, sizes[0]);
                assert_eq!((finer_v, finer_f), (v + e, 4 * f));
                assert_eq!(finer_e, 2 * e + 3 * f);
                assert_eq!(finer_v + finer_f - finer_e, v + f - e, "Euler");
            }
        }
    }

    /// Two pieces keep their vertices together, whatever the order of triangles, and the corners of
    /// the four triangles have the area of the one.
    #[test]
    fn pieces_stay_together_and_numbers_do_not_depend_on_the_order_of_triangles() {
        let triangles = [[0, 1, 2], [1, 3, 2], [4, 5, 6]];
        let other = [triangles[2], triangles[1], triangles[0]];
        let sizes = [4, 3];
        let splits = [triangles, other].map(|t| Split::new(&Surface::new(&t, 7), 3, &sizes));
        assert_eq!(splits[0].sizes(), [9, 6]);
        assert_eq!(splits[0].edges(), splits[1].edges());
        let names = splits[0].values(|v| format!("{v}"), |e| format!("{:?}", splits[0].edges[e]));
        let known = "0 1 2 3 [0, 1] [0, 2] [1, 2] [1, 3] [2, 3] 4 5 6 [4, 5] [4, 6] [5, 6]";
        assert_eq!(names.join(" "), known);
        let mut sorted = splits.each_ref().map(|split| split.triangles().to_vec());
        sorted.iter_mut().for_each(|all| all.sort_unstable());
        assert_eq!(sorted[0], sorted[1]);
        let last = &splits[0].triangles()[8..];
        assert_eq!(
            last,
            [[9, 12, 13], [12, 10, 14], [13, 14, 11], [12, 14, 13]]
        );
        let mixed = splits[0].between(&[0.0, 2.0, 4.0, 6.0, 8.0, 1.0, 3.0], |a, b| 0.5 * (a + b));
        assert_eq!(mixed[4..9], [1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(mixed[12..], [4.5, 5.5, 2.0]);
    }
}
