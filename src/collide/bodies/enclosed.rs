//! The inside of a closed mesh: whether a point is in it, and how far it is from the surface.
//!
//! Inside is where the mesh winds around a point at least once. How often it does is the number of
//! triangles that a ray from the point leaves through, less those that it enters through. The ray
//! goes along z, and the signs that say whether it meets a triangle are exact \[She97\], for the
//! point moved aside by (ε, ε², ε³) with ε as small as need be \[EM90\]: so it meets no edge and no
//! vertex, no triangle is counted twice or forgotten, and the number is right for any closed mesh,
//! also one that overlaps itself. A point on the surface counts as in or out as the moved one is.
//!
//! Both questions descend a tree of boxes. The distance is the smallest of the distances of
//! triangles as they are computed, to the bit: boxes are left out only where rounding cannot make
//! one of their triangles the nearest.
//!
//! * \[EM90\] Edelsbrunner, Mücke: Simulation of simplicity.

use std::sync::Arc;

use glam::{DVec2, DVec3};

use crate::collide::audit::side;
use crate::collide::bvh::tree::{Bvh, Node};
use crate::collide::narrow::closest::on_triangle;
use crate::heap_bytes::{HeapBytes, counts_heap};
use crate::mesh::TriMesh;

/// A closed mesh with a tree of boxes over its triangles.
#[derive(Clone, Debug)]
pub struct Enclosed {
    positions: Vec<DVec3>,
    /// The triangles and the tree are the same of all shapes of a body.
    triangles: Arc<Vec<[u32; 3]>>,
    tree: Arc<Bvh>,
    /// The least and the greatest coordinates of what is below each node, in m.
    boxes: Vec<[DVec3; 2]>,
    /// The largest coordinate, in m.
    largest: f64,
}

counts_heap!(Enclosed: positions, triangles, tree, boxes; without largest);

/// A point of a surface.
#[derive(Clone, Copy, Debug)]
pub(in crate::collide) struct OnSurface {
    /// The corners of its triangle.
    pub(in crate::collide) corners: [u32; 3],
    /// Their weights.
    pub(in crate::collide) weights: [f64; 3],
}

/// The most by which the computed distance of a triangle may be less than the bound of its box, as
/// a share of the largest coordinate: more than rounding does to weights of closest points.
const ROUNDING: f64 = 1e-11;

impl Enclosed {
    /// The bytes on the heap that the same body at another time does not share.
    pub(super) fn own_bytes(&self) -> usize {
        self.positions.heap_bytes() + self.boxes.heap_bytes()
    }

    /// Builds the tree of a mesh that is closed and faces outwards.
    #[must_use]
    pub fn new(mesh: &TriMesh) -> Self {
        Self::of(mesh.positions.clone(), &mesh.triangles)
    }

    /// Builds the tree of these triangles.
    pub(super) fn of(positions: Vec<DVec3>, triangles: &[[u32; 3]]) -> Self {
        let items = triangles.iter().map(|&t| {
            let [a, b, c] = t.map(|v| positions[v as usize]);
            (a + b + c) / 3.0
        });
        let tree = Bvh::build((0..).zip(items).collect());
        Self::with(positions, Arc::new(triangles.to_vec()), Arc::new(tree))
    }

    /// The space that its triangles enclose where their vertices are elsewhere.
    pub(super) fn deformed(&self, positions: Vec<DVec3>) -> Self {
        let (triangles, tree) = (Arc::clone(&self.triangles), Arc::clone(&self.tree));
        Self::with(positions, triangles, tree)
    }

    fn with(positions: Vec<DVec3>, triangles: Arc<Vec<[u32; 3]>>, tree: Arc<Bvh>) -> Self {
        let corners = |t: u32| triangles[t as usize].map(|v| positions[v as usize]);
        let mut boxes = vec![[DVec3::ZERO; 2]; tree.len()];
        for node in (0..tree.len()).rev() {
            boxes[node] = match tree.node(node as u32) {
                Node::Inner(first) => {
                    let [one, two] = [boxes[first as usize], boxes[first as usize + 1]];
                    [one[0].min(two[0]), one[1].max(two[1])]
                }
                Node::Leaf(t) => {
                    let [a, b, c] = corners(t);
                    [a.min(b).min(c), a.max(b).max(c)]
                }
            };
        }
        let coordinates = positions.iter().map(|p| p.abs().max_element());
        Self {
            largest: coordinates.fold(0.0, f64::max),
            positions,
            triangles,
            tree,
            boxes,
        }
    }

    /// Where its vertices are, in m.
    pub(super) fn positions(&self) -> &[DVec3] {
        &self.positions
    }

    /// How many triangles it has.
    pub(super) fn triangle_count(&self) -> u32 {
        self.triangles.len() as u32
    }

    /// The corners of a triangle, in m.
    pub(super) fn corners(&self, triangle: u32) -> [DVec3; 3] {
        self.triangles[triangle as usize].map(|v| self.positions[v as usize])
    }

    /// Whether a point is inside.
    #[must_use]
    pub fn contains(&self, p: DVec3) -> bool {
        self.winding(p) >= 1
    }

    /// How deep a point is inside, in m; negative outside.
    #[must_use]
    pub fn depth(&self, p: DVec3) -> f64 {
        if self.contains(p) {
            self.distance(p)
        } else {
            f64::NEG_INFINITY
        }
    }

    /// The distance of a point from the surface in m, negative inside.
    #[must_use]
    pub fn gap(&self, p: DVec3) -> f64 {
        if self.contains(p) {
            -self.distance(p)
        } else {
            self.distance(p)
        }
    }

    /// How deep a point is inside, in m, and the unit vector to where it is nearest to being out;
    /// `None` outside.
    #[must_use]
    pub fn way_out(&self, p: DVec3) -> Option<(f64, DVec3)> {
        self.contains(p).then(|| {
            let (depth, point) = self.nearest(p);
            (depth, (point - p).normalize_or_zero())
        })
    }

    /// The distance of a point from the surface, in m.
    #[must_use]
    pub fn distance(&self, p: DVec3) -> f64 {
        self.nearest(p).0
    }

    /// The distance of a point from the surface, in m, and the nearest point of the surface.
    #[must_use]
    pub fn nearest(&self, p: DVec3) -> (f64, DVec3) {
        let (distance, point, _) = self.nearest_triangle(p);
        (distance, point)
    }

    /// The nearest point of the surface, by the triangle that it is on.
    pub(in crate::collide) fn nearest_on(&self, p: DVec3) -> OnSurface {
        let (_, _, triangle) = self.nearest_triangle(p);
        let [a, b, c] = self.corners(triangle);
        OnSurface {
            corners: self.triangles[triangle as usize],
            weights: on_triangle(p, a, b, c),
        }
    }

    /// The distance of a point from a triangle, in m.
    pub(super) fn distance_of(&self, triangle: u32, p: DVec3) -> f64 {
        p.distance(self.nearest_of(triangle, p))
    }

    /// Finds the triangles whose boxes are within a reach (m) of a box.
    pub(super) fn triangles_within(
        &self,
        [low, high]: [DVec3; 2],
        reach: f64,
        found: &mut Vec<u32>,
    ) {
        let mut stack = Vec::with_capacity(64);
        stack.extend((!self.tree.is_empty()).then_some(0));
        while let Some(node) = stack.pop() {
            let [own_low, own_high] = self.boxes[node as usize];
            let gap = (own_low - high).max(low - own_high).max(DVec3::ZERO);
            if gap.length_squared() > reach * reach {
                continue;
            }
            match self.tree.node(node) {
                Node::Leaf(t) => found.push(t),
                Node::Inner(first) => stack.extend([first, first + 1]),
            }
        }
    }

    /// The least coordinates of its vertices and the greatest, in m.
    pub(super) fn bounds(&self) -> [DVec3; 2] {
        let none = [DVec3::INFINITY, DVec3::NEG_INFINITY];
        self.boxes.first().copied().unwrap_or(none)
    }

    fn nearest_triangle(&self, p: DVec3) -> (f64, DVec3, u32) {
        let slack = ROUNDING * self.largest.max(p.abs().max_element());
        let bound = |node: u32| {
            let [low, high] = self.boxes[node as usize];
            (low - p).max(p - high).max(DVec3::ZERO).length()
        };
        let (mut nearest, mut point, mut triangle) = (f64::INFINITY, p, 0);
        let mut stack = Vec::with_capacity(64);
        stack.extend((!self.tree.is_empty()).then_some((0.0, 0)));
        while let Some((least, node)) = stack.pop() {
            if least > nearest + slack {
                continue;
            }
            match self.tree.node(node) {
                Node::Leaf(t) => {
                    let on_triangle = self.nearest_of(t, p);
                    let distance = p.distance(on_triangle);
                    if distance < nearest {
                        (nearest, point, triangle) = (distance, on_triangle, t);
                    }
                }
                Node::Inner(first) => {
                    let mut children = [first, first + 1].map(|child| (bound(child), child));
                    // The nearer one comes first.
                    if children[0].0 < children[1].0 {
                        children.swap(0, 1);
                    }
                    stack.extend(children);
                }
            }
        }
        (nearest, point, triangle)
    }

    /// How often the mesh winds around a point: 1 inside, 0 outside.
    fn winding(&self, p: DVec3) -> i32 {
        let mut winding = 0;
        let mut stack = Vec::new();
        stack.extend((!self.tree.is_empty()).then_some(0));
        while let Some(node) = stack.pop() {
            let [low, high] = self.boxes[node as usize];
            let beside = p.x < low.x || p.x > high.x || p.y < low.y || p.y > high.y;
            if beside || p.z > high.z {
                continue;
            }
            match self.tree.node(node) {
                Node::Leaf(t) => winding += self.leaves_through(t, p),
                Node::Inner(first) => stack.extend([first, first + 1]),
            }
        }
        winding
    }

    fn nearest_of(&self, triangle: u32, p: DVec3) -> DVec3 {
        let [a, b, c] = self.corners(triangle);
        let w = on_triangle(p, a, b, c);
        a * w[0] + b * w[1] + c * w[2]
    }

    /// The change of the winding number where the ray along z from a point that was moved aside
    /// meets a triangle: 1 if it leaves through it, -1 if it enters, or 0.
    fn leaves_through(&self, triangle: u32, p: DVec3) -> i32 {
        let corners = self.corners(triangle);
        let [a, b, c] = corners;
        let from_above = corners.map(DVec3::truncate);
        let facing = turn(from_above);
        if facing == 0.0 {
            return 0;
        }
        let q = p.truncate();
        for k in 0..3 {
            let (from, to) = (from_above[k], from_above[(k + 1) % 3]);
            let aside = first_sign([turn([from, to, q]), from.y - to.y, to.x - from.x]);
            if aside != facing.signum() {
                return 0;
            }
        }
        let sides = |of: fn(DVec3) -> DVec2| turn(corners.map(of));
        // Minus the components of its normal.
        let moved = [
            -sides(|v| DVec2::new(v.y, v.z)),
            -sides(|v| DVec2::new(v.z, v.x)),
            -facing,
        ];
        let below = first_sign([side(a, b, c, p), first_sign(moved), 0.0]);
        match below == facing.signum() {
            true if facing > 0.0 => 1,
            true => -1,
            false => 0,
        }
    }
}

/// The sign, 1 or -1, of the first number that is not zero, if there is one.
fn first_sign(numbers: [f64; 3]) -> f64 {
    let first = numbers.into_iter().find(|number| *number != 0.0);
    first.map_or(0.0, f64::signum)
}

/// A number with the sign of the area of a triangle in the plane, counter-clockwise being positive.
fn turn(corners: [DVec2; 3]) -> f64 {
    let [a, b, c] = corners.map(|DVec2 { x, y }| robust::Coord { x, y });
    robust::orient2d(a, b, c)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::mesh::{capsule, cuboid, icosphere};

    impl Enclosed {
        /// The distance by all triangles.
        fn distance_by_all(&self, p: DVec3) -> f64 {
            let all = 0..self.triangles.len() as u32;
            all.map(|t| p.distance(self.nearest_of(t, p)))
                .fold(f64::INFINITY, f64::min)
        }

        fn winding_by_all(&self, p: DVec3) -> i32 {
            let all = 0..self.triangles.len() as u32;
            all.map(|t| self.leaves_through(t, p)).sum()
        }

        /// The winding number as a sum of solid angles [van Oosterom & Strackee 1983].
        fn winding_by_angles(&self, p: DVec3) -> f64 {
            let angles = (0..self.triangles.len() as u32).map(|t| {
                let [a, b, c] = self.corners(t).map(|corner| corner - p);
                let (la, lb, lc) = (a.length(), b.length(), c.length());
                let volume = a.dot(b.cross(c));
                let scale = la * lb * lc + a.dot(b) * lc + b.dot(c) * la + c.dot(a) * lb;
                2.0 * libm::atan2(volume, scale)
            });
            angles.sum::<f64>() / (4.0 * std::f64::consts::PI)
        }
    }

    /// Two meshes as one.
    fn both(a: &TriMesh, b: &TriMesh) -> TriMesh {
        let first = a.positions.len() as u32;
        let moved = b.triangles.iter().map(|t| t.map(|v| v + first));
        TriMesh {
            positions: [&a.positions[..], &b.positions].concat(),
            triangles: a.triangles.iter().copied().chain(moved).collect(),
        }
    }

    /// Bodies of flat and of round sides, one that overlaps itself, and one far from the origin;
    /// all within 1.5 m of their middle.
    fn body(which: usize) -> (Enclosed, DVec3) {
        let cube = |center| cuboid(center, DVec3::splat(1.0), 0.25).unwrap();
        let far = DVec3::new(1e6, -3e5, 7e4);
        let (mesh, center) = match which {
            0 => (cube(DVec3::ZERO), DVec3::ZERO),
            1 => (
                both(&cube(DVec3::ZERO), &cube(DVec3::splat(0.5))),
                DVec3::ZERO,
            ),
            2 => (icosphere(DVec3::ZERO, 1.0, 0.2).unwrap(), DVec3::ZERO),
            3 => (
                capsule(-DVec3::X, DVec3::X * 0.5, 0.4, 0.1).unwrap(),
                DVec3::ZERO,
            ),
            _ => (cube(far), far),
        };
        (Enclosed::new(&mesh), center)
    }

    fn agrees(which: usize, p: DVec3) -> Result<(), TestCaseError> {
        let (body, center) = body(which);
        let p = p + center;
        let (distance, winding) = (body.distance(p), body.winding(p));
        prop_assert_eq!(distance.to_bits(), body.distance_by_all(p).to_bits());
        prop_assert_eq!(winding, body.winding_by_all(p));
        // On the surface angles do not tell.
        if distance > 1e-9 * body.largest {
            let expected = body.winding_by_angles(p);
            prop_assert!(
                (f64::from(winding) - expected).abs() < 1e-6,
                "{} {}",
                winding,
                expected
            );
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn distance_and_inside_are_those_of_all_triangles(
            which in 0usize..5, x in -1.5..1.5f64, y in -1.5..1.5f64, z in -1.5..1.5f64,
        ) {
            agrees(which, DVec3::new(x, y, z))?;
        }

        /// Rays that meet edges and vertices, and points on the surface.
        #[test]
        fn distance_and_inside_hold_on_lines_of_the_mesh(
            which in 0usize..5, x in -12i32..13, y in -12i32..13, z in -12i32..13,
        ) {
            agrees(which, DVec3::new(x.into(), y.into(), z.into()) / 8.0)?;
        }

        /// Above and below vertices of what is round.
        #[test]
        fn distance_and_inside_hold_along_rays_through_vertices(
            which in 2usize..4, vertex in 0usize..10_000, z in -1.5..1.5f64,
        ) {
            let (body, _) = body(which);
            let at = body.positions[vertex % body.positions.len()];
            agrees(which, DVec3::new(at.x, at.y, z))?;
        }
    }

    #[test]
    fn a_mesh_that_overlaps_itself_winds_twice_within_both() {
        let (body, _) = body(1);
        let within = [0.25, -0.4, 0.9, 1.2].map(|c| body.winding(DVec3::splat(c)));
        assert_eq!(within, [2, 1, 1, 0]);
    }
}
