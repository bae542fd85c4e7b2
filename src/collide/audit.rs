//! Crossings: edges that pass through triangles, of cloth with itself and of cloth with bodies.
//!
//! A frame without crossings is one in which cloth cuts neither through itself nor through a body
//! made of triangles. On which side of a plane a point lies is the sign of a determinant, which is
//! computed exactly \[She97\]: first with an error bound, and where that leaves a doubt with as
//! many digits as it takes. So a crossing is one whatever the rounding, for the positions that a
//! frame holds. Features that only touch do not cross.
//!
//! For bodies without triangles the vertices inside are counted. One that cloth meets by its
//! sampled distance is judged by its mesh: vertices deeper in it than samples can err are inside.
//!
//! * \[She97\] Shewchuk: Adaptive precision floating-point arithmetic and fast robust geometric
//!   predicates.

use std::borrow::Cow;
use std::collections::BTreeSet;

use glam::DVec3;

use crate::collide::bodies::body_motion::Pose;
use crate::collide::bodies::collider::{Analytic, BodySurface, DistanceThen};
use crate::collide::bodies::enclosed::Enclosed;
use crate::collide::bvh::kdop::{Kdop18, along};
use crate::collide::bvh::tree::{Bvh, Node};
use crate::collide::narrow::closest::on_triangle;
use crate::collide::passing::Passing;
use crate::collide::surface::Surface;
use crate::parallel;

/// An edge (its two vertices) and a triangle (its number) that cross.
pub type Crossing = ([u32; 2], u32);

/// The levels of pairs of nodes that are compared before what is below them is shared by threads:
/// some hundred pairs then.
const SHARED_LEVELS: usize = 7;

/// Triangles where they are at one time, with a tree over them.
#[derive(Clone, Debug)]
pub struct Skin<'a> {
    surface: Cow<'a, Surface>,
    tree: Cow<'a, Bvh>,
    x: Cow<'a, [DVec3]>,
    /// Volumes of the tree's nodes.
    volumes: Vec<Kdop18>,
}

/// A body at one time, as audits see it.
#[derive(Clone, Debug)]
pub enum Audited<'a> {
    /// Its triangles there.
    Triangles(Skin<'a>),
    /// The formula of a body without triangles, and where it is.
    Formula(Analytic, Pose),
    /// The mesh of a body that cloth meets by its sampled distance.
    Sampled {
        /// The space that the mesh encloses.
        enclosed: Cow<'a, Enclosed>,
        /// Where it is.
        pose: Pose,
        /// The depth up to which samples may take for outside what is in the mesh.
        error: SampleError<'a>,
    },
}

/// The depth in a mesh up to which samples of the distance from it may take a place for outside.
#[derive(Clone, Debug)]
pub enum SampleError<'a> {
    /// The depth in m everywhere.
    Everywhere(f64),
    /// The bound of these samples at each place.
    Of(DistanceThen<'a>),
}

impl SampleError<'_> {
    fn at(&self, x: DVec3) -> f64 {
        match self {
            Self::Everywhere(error) => *error,
            Self::Of(distance) => distance.bound(x),
        }
    }
}

/// The crossings of cloth and a body, or the vertices that are inside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Met {
    /// Pairs of the cloth, which is the first, and of the triangles of the body.
    Crossing(Between),
    /// The parts of the cloth inside a body that has no triangles.
    Inside(Inside),
}

/// The parts of cloth that are inside a body without triangles.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inside {
    /// Vertices, ascending.
    pub vertices: Vec<u32>,
    /// Triangles that cut a ball between vertices that are all outside, ascending.
    pub faces: Vec<u32>,
}

impl Audited<'_> {
    /// The parts of cloth that cross the body, or are inside it.
    #[must_use]
    pub fn meet(&self, cloth: &Skin<'_>) -> Met {
        match self {
            Self::Triangles(skin) => Met::Crossing(cloth.crossings_with(skin)),
            Self::Formula(formula, pose) => {
                let is_inside = |x: DVec3| formula.distance(pose.undo(x)).0 < 0.0;
                let vertices = (0..).zip(cloth.positions());
                let inside = vertices.filter(|(_, x)| is_inside(**x));
                let vertices = inside.map(|(vertex, _)| vertex).collect();
                let Analytic::Sphere { center, .. } = formula else {
                    let faces = Vec::new();
                    return Met::Inside(Inside { vertices, faces });
                };
                let center = pose.apply(*center);
                let cuts = |t: &[u32; 3]| {
                    let [a, b, c] = t.map(|v| cloth.positions()[v as usize]);
                    let w = on_triangle(center, a, b, c);
                    let nearest = a * w[0] + b * w[1] + c * w[2];
                    is_inside(nearest) && ![a, b, c].into_iter().any(is_inside)
                };
                let faces = (0..).zip(cloth.triangles()).filter(|(_, t)| cuts(t));
                let faces = faces.map(|(face, _)| face).collect();
                Met::Inside(Inside { vertices, faces })
            }
            Self::Sampled {
                enclosed,
                pose,
                error,
            } => {
                let is_inside = |k: usize| {
                    let x = pose.undo(cloth.positions()[k]);
                    enclosed.depth(x) > error.at(x)
                };
                let inside = parallel::map(cloth.positions().len(), is_inside);
                let vertices = (0..).zip(inside).filter(|(_, is_inside)| *is_inside);
                Met::Inside(Inside {
                    vertices: vertices.map(|(vertex, _)| vertex).collect(),
                    faces: Vec::new(),
                })
            }
        }
    }
}

/// The crossings of two surfaces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Between {
    /// Edges of the first that pass through triangles of the second, ascending.
    pub through_second: Vec<Crossing>,
    /// Edges of the second that pass through triangles of the first, ascending.
    pub through_first: Vec<Crossing>,
}

impl Between {
    /// How many pairs there are.
    #[must_use]
    pub fn pairs(&self) -> usize {
        self.through_second.len() + self.through_first.len()
    }

    /// Adds the parts of the first surface that take part.
    pub(crate) fn mark_first(&self, part: &mut Part) {
        part.mark(&self.through_second, &self.through_first);
    }

    /// Adds the parts of the second surface that take part.
    pub(crate) fn mark_second(&self, part: &mut Part) {
        part.mark(&self.through_first, &self.through_second);
    }
}

/// The parts of one surface that take part in crossings: edges, triangles, and vertices inside
/// bodies.
#[derive(Clone, Debug, Default)]
pub struct Part {
    edges: BTreeSet<[u32; 2]>,
    crossed: BTreeSet<u32>,
    vertices: BTreeSet<u32>,
}

impl Part {
    /// Adds what takes part in the crossings of a surface with itself.
    pub(crate) fn mark_own(&mut self, found: &[Crossing]) {
        self.mark(found, found);
    }

    /// Adds what is inside a body.
    pub(crate) fn mark_inside(&mut self, inside: &Inside) {
        self.vertices.extend(&inside.vertices);
        self.crossed.extend(&inside.faces);
    }

    fn mark(&mut self, edges: &[Crossing], crossed: &[Crossing]) {
        self.edges.extend(edges.iter().map(|(edge, _)| *edge));
        (self.crossed).extend(crossed.iter().map(|(_, triangle)| *triangle));
    }

    /// Whether a triangle takes part: it is crossed, or an edge or a vertex of it takes part.
    #[must_use]
    pub fn has(&self, number: u32, corners: &[u32; 3]) -> bool {
        let crosses = |k: usize| {
            let (a, b) = (corners[k], corners[(k + 1) % 3]);
            self.edges.contains(&[a.min(b), a.max(b)])
        };
        self.crossed.contains(&number)
            || (0..3).any(crosses)
            || corners.iter().any(|v| self.vertices.contains(v))
    }
}

impl<'a> Skin<'a> {
    /// Triangles with their vertices at `x` (m).
    #[must_use]
    pub fn new(x: &'a [DVec3], triangles: &[[u32; 3]]) -> Self {
        let tree = Cow::Owned(tree_over(triangles, x));
        let surface = Cow::Owned(Surface::new(triangles, x.len()));
        Self::with(surface, tree, Cow::Borrowed(x))
    }

    /// Takes no pair of features of some cloth for crossing.
    #[must_use]
    pub fn letting(mut self, passing: Passing) -> Self {
        self.surface = Cow::Owned(self.surface.into_owned().letting(passing));
        self
    }

    /// The triangles of a surface with their vertices at `x` (m).
    #[must_use]
    pub(crate) fn of_surface(surface: &'a Surface, x: &'a [DVec3]) -> Self {
        let tree = Cow::Owned(tree_over(surface.triangles(), x));
        Self::with(Cow::Borrowed(surface), tree, Cow::Borrowed(x))
    }

    /// The triangles of a surface over which this is a tree, with vertices at `x` (m).
    #[must_use]
    pub(crate) fn of_tree(surface: &'a Surface, tree: &'a Bvh, x: &'a [DVec3]) -> Self {
        Self::with(
            Cow::Borrowed(surface),
            Cow::Borrowed(tree),
            Cow::Borrowed(x),
        )
    }

    /// A body where a pose puts it, with the tree that it has for contacts.
    #[must_use]
    pub fn of_body(body: &'a BodySurface, pose: &Pose) -> Self {
        let moved = body.positions.iter().map(|&p| pose.apply(p));
        let x = Cow::Owned(moved.collect());
        Self::with(Cow::Borrowed(&*body.surface), Cow::Borrowed(&*body.tree), x)
    }

    /// A body with its vertices at `x` (m), with the tree that it has for contacts.
    #[must_use]
    pub fn of_body_then(body: &'a BodySurface, x: Vec<DVec3>) -> Self {
        let (surface, tree) = (Cow::Borrowed(&*body.surface), Cow::Borrowed(&*body.tree));
        Self::with(surface, tree, Cow::Owned(x))
    }

    /// A copy of it with its vertices at `x` (m).
    #[must_use]
    pub(crate) fn of_body_at(body: &'a BodySurface, x: &'a [DVec3]) -> Self {
        let (surface, tree) = (Cow::Borrowed(&*body.surface), Cow::Borrowed(&*body.tree));
        Self::with(surface, tree, Cow::Borrowed(x))
    }

    fn with(surface: Cow<'a, Surface>, tree: Cow<'a, Bvh>, x: Cow<'a, [DVec3]>) -> Self {
        let mut volumes = Vec::new();
        let corners = |t: u32| surface.triangles()[t as usize].map(|v| x[v as usize]);
        tree.refit(|t| Kdop18::around(&corners(t), 0.0), &mut volumes);
        Self {
            surface,
            tree,
            x,
            volumes,
        }
    }

    /// The positions of its vertices, in m.
    #[must_use]
    pub fn positions(&self) -> &[DVec3] {
        &self.x
    }

    /// Its triangles.
    #[must_use]
    pub fn triangles(&self) -> &[[u32; 3]] {
        self.surface.triangles()
    }

    /// Pairs of an edge and a triangle that cross and share no vertex, ascending.
    #[must_use]
    pub fn crossings(&self) -> Vec<Crossing> {
        let first = (!self.tree.is_empty()).then_some((0, 0));
        let mut pairs: Vec<(u32, u32)> = first.into_iter().collect();
        let mut found = Vec::new();
        // Pairs of nodes far up the tree come first; threads share what is below them.
        for _ in 0..SHARED_LEVELS {
            for (a, b) in std::mem::take(&mut pairs) {
                self.descend((a, b), &mut pairs, &mut found);
            }
        }
        let below = |k: usize| {
            let (mut stack, mut found) = (vec![pairs[k]], Vec::new());
            while let Some(pair) = stack.pop() {
                self.descend(pair, &mut stack, &mut found);
            }
            found
        };
        found.extend(parallel::map(pairs.len(), below).into_iter().flatten());
        found.sort_unstable();
        found
    }

    /// Compares two nodes, or a node with itself: appends the pairs below them that may cross, or
    /// the crossings of two leaves.
    fn descend(&self, (a, b): (u32, u32), to: &mut Vec<(u32, u32)>, found: &mut Vec<Crossing>) {
        let mut push = |a: u32, b: u32| {
            if a == b || self.volumes[a as usize].overlaps(&self.volumes[b as usize]) {
                to.push((a, b));
            }
        };
        if let Some([s, t]) = self.tree.divide((a, b), &mut push) {
            for (owner, face) in [(s, t), (t, s)] {
                self.pierce_apart(owner, face, found);
            }
        }
    }

    /// Appends the edges that a triangle owns and that pass through another of the same surface
    /// without a vertex in common.
    fn pierce_apart(&self, owner: u32, face: u32, found: &mut Vec<Crossing>) {
        let corners = self.triangles()[face as usize];
        let lets = |ends: &[u32; 2]| self.surface.passing().lets(ends, &corners);
        let apart = |ends: &[u32; 2]| !ends.iter().any(|v| corners.contains(v)) && !lets(ends);
        self.pierce(owner, (self, face), apart, found);
    }

    /// How many pairs of an edge of one and a triangle of the other cross and share no vertex. Both
    /// are of one surface with the same positions, and have no triangle in common.
    #[must_use]
    pub(crate) fn crossings_beside(&self, other: &Self) -> usize {
        let mut found = Vec::new();
        self.for_near_leaves(other, |s, t| {
            self.pierce_apart(s, t, &mut found);
            self.pierce_apart(t, s, &mut found);
        });
        found.len()
    }

    /// Hands out the triangles of both whose volumes overlap.
    fn for_near_leaves(&self, other: &Skin<'_>, mut near: impl FnMut(u32, u32)) {
        let mut stack = Vec::new();
        if !self.tree.is_empty() && !other.tree.is_empty() {
            stack.push((0, 0));
        }
        while let Some((a, b)) = stack.pop() {
            if !self.volumes[a as usize].overlaps(&other.volumes[b as usize]) {
                continue;
            }
            match (self.tree.node(a), other.tree.node(b)) {
                (Node::Inner(first), Node::Inner(second)) => {
                    let pairs = [(0, 0), (0, 1), (1, 0), (1, 1)];
                    stack.extend(pairs.map(|(i, j)| (first + i, second + j)));
                }
                (Node::Inner(first), Node::Leaf(_)) => stack.extend([(first, b), (first + 1, b)]),
                (Node::Leaf(_), Node::Inner(second)) => {
                    stack.extend([(a, second), (a, second + 1)]);
                }
                (Node::Leaf(s), Node::Leaf(t)) => near(s, t),
            }
        }
    }

    /// Pairs of an edge of one and a triangle of the other that cross.
    #[must_use]
    pub(crate) fn crossings_with(&self, other: &Skin<'_>) -> Between {
        let mut between = Between::default();
        self.for_near_leaves(other, |s, t| {
            let any = |_: &[u32; 2]| true;
            self.pierce(s, (other, t), any, &mut between.through_second);
            other.pierce(t, (self, s), any, &mut between.through_first);
        });
        between.through_second.sort_unstable();
        between.through_first.sort_unstable();
        between
    }

    /// Appends the edges that a triangle owns, of those asked for, which pass through a face of a
    /// surface.
    fn pierce(
        &self,
        owner: u32,
        (of, face): (&Skin<'_>, u32),
        asked_for: impl Fn(&[u32; 2]) -> bool,
        found: &mut Vec<Crossing>,
    ) {
        let corners = of.triangles()[face as usize].map(|v| of.x[v as usize]);
        let edges = self.surface.owned_edges(owner);
        let edges = edges.map(|edge| self.surface.edges()[edge as usize]);
        for ends in edges.filter(asked_for) {
            if passes_through(ends.map(|v| self.x[v as usize]), corners) {
                found.push((ends, face));
            }
        }
    }
}

/// A tree over triangles by their centres.
fn tree_over(triangles: &[[u32; 3]], x: &[DVec3]) -> Bvh {
    let center = |t: &[u32; 3]| t.iter().map(|&v| x[v as usize]).sum::<DVec3>() / 3.0;
    let items = (0..).zip(triangles).map(|(i, t)| (i, center(t)));
    Bvh::build(items.collect())
}

/// Pairs of an edge and a triangle of one surface that cross and share no vertex.
#[must_use]
pub fn crossings(x: &[DVec3], triangles: &[[u32; 3]]) -> Vec<Crossing> {
    Skin::new(x, triangles).crossings()
}

/// Whether a segment passes through the inside of a triangle.
fn passes_through([p, q]: [DVec3; 2], [a, b, c]: [DVec3; 3]) -> bool {
    // The segment does not pass if a plane parts the two, also if both touch the plane: a segment
    // that passes through the inside of a triangle goes on behind it.
    let low = a.min(b).min(c).cmpge(p.max(q));
    let high = a.max(b).max(c).cmple(p.min(q));
    if (low | high).any() || are_apart([p, q], [a, b, c]) {
        return false;
    }
    let (above, below) = (side(a, b, c, p), side(a, b, c, q));
    if !(above > 0.0 && below < 0.0 || above < 0.0 && below > 0.0) {
        return false;
    }
    let turns = [side(p, q, a, b), side(p, q, b, c), side(p, q, c, a)];
    turns.iter().all(|t| *t > 0.0) || turns.iter().all(|t| *t < 0.0)
}

/// Whether a segment and a triangle are known to lie apart along a diagonal of a coordinate plane.
fn are_apart(ends: [DVec3; 2], corners: [DVec3; 3]) -> bool {
    // Sums are rounded, but never so that the greater becomes the lesser.
    (3..9).any(|direction| {
        let [p, q] = ends.map(|p| along(p, direction).0);
        let [a, b, c] = corners.map(|p| along(p, direction).0);
        a.min(b).min(c) > p.max(q) || a.max(b).max(c) < p.min(q)
    })
}

/// A number with the sign of the determinant of `b - a`, `c - a` and `d - a`, or its negative for
/// all points alike.
pub(in crate::collide) fn side(a: DVec3, b: DVec3, c: DVec3, d: DVec3) -> f64 {
    let [a, b, c, d] = [a, b, c, d].map(|DVec3 { x, y, z }| robust::Coord3D { x, y, z });
    robust::orient3d(a, b, c, d)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::collide::bodies::body_motion::BodyMotion;
    use crate::mesh::{TriMesh, grid, icosphere};

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
        let found = crossings(&x, &triangles);
        // The far edge of the second triangle passes beside the first, the near one through it.
        assert_eq!(found.iter().filter(|c| c.0 == [3, 4]).count(), 1);
        let mut part = Part::default();
        part.mark_own(&found);
        assert!(part.has(0, &triangles[0]) && part.has(1, &triangles[1]));
        let (sheet, needle) = (
            Skin::new(&x[..3], &triangles[..1]),
            Skin::new(&x[3..], &[[0, 1, 2]]),
        );
        let between = sheet.crossings_with(&needle);
        assert_eq!(between.pairs(), found.len());
        assert!(between.through_first.contains(&([0, 1], 0)));
        for p in &mut x[3..] {
            p.x += 3.0;
        }
        assert!(crossings(&x, &triangles).is_empty());
    }

    /// Tells exactly, in whole numbers, whether an edge crosses a triangle.
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

    /// Whole coordinates, which may be far from the origin, exactly and as positions.
    fn placed(points: &[(i32, i32, i32)], far: u32) -> (Vec<[i128; 3]>, Vec<DVec3>) {
        // Small whole numbers touch and coincide often; far from the origin f64 alone would err.
        let shift = [0, 1 << 20, 1 << 48][far as usize];
        let exact: Vec<[i128; 3]> = points
            .iter()
            .map(|&(x, y, z)| [i128::from(x) + shift, i128::from(y) - shift, i128::from(z)])
            .collect();
        let float = |p: &[i128; 3]| DVec3::from_array(p.map(|c| c as f64));
        let x = exact.iter().map(float).collect();
        (exact, x)
    }

    proptest! {
        #[test]
        fn crossings_are_those_of_exact_arithmetic(
            points in prop::collection::vec((-3i32..4, -3i32..4, -3i32..4), 18), far in 0u32..3,
        ) {
            let (exact, x) = placed(&points, far);
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

        #[test]
        fn crossings_of_two_surfaces_are_those_of_exact_arithmetic(
            points in prop::collection::vec((-3i32..4, -3i32..4, -3i32..4), 24), far in 0u32..3, first in 1usize..7,
        ) {
            let (exact, x) = placed(&points, far);
            let all: Vec<[u32; 3]> = (0..8).map(|t| [3 * t, 3 * t + 1, 3 * t + 2]).collect();
            let (one, two) = (&all[..first], &all[first..]);
            let pairs = |edges: &[[u32; 3]], faces: &[[u32; 3]], shift: [u32; 2]| {
                let mut found = Vec::new();
                for (face, t) in (0..).zip(faces) {
                    for s in edges {
                        for ends in [[s[0], s[1]], [s[1], s[2]], [s[0], s[2]]] {
                            if crosses_exactly(&exact, ends, *t) {
                                found.push((ends.map(|v| v - shift[0]), face));
                            }
                        }
                    }
                }
                found.sort_unstable();
                found
            };
            let cut = 3 * first as u32;
            let expected = Between {
                through_second: pairs(one, two, [0, cut]),
                through_first: pairs(two, one, [cut, 0]),
            };
            let moved: Vec<[u32; 3]> = two.iter().map(|t| t.map(|v| v - cut)).collect();
            let (head, tail) = x.split_at(cut as usize);
            let (one, two) = (Skin::new(head, one), Skin::new(tail, &moved));
            prop_assert_eq!(one.crossings_with(&two), expected);
        }

        /// A sheet through a ball that turns, whose tree is that of its contacts, against all
        /// pairs.
        #[test]
        fn cloth_and_a_body_that_moves_cross_as_all_pairs_do(
            height in -0.12f64..0.12, tilt in -1.0f64..1.0, time in 0.0f64..3.0,
        ) {
            let mut sheet = grid([0.3, 0.3], [9, 9], DVec3::ZERO, DVec3::ZERO).unwrap();
            sheet.transform(1.0, DVec3::new(tilt, 0.2, 0.1), DVec3::Z * height);
            let ball = icosphere(DVec3::ZERO, 0.1, 0.05).unwrap();
            let body = BodySurface::new(&ball, 0.006, &[]);
            let pose = BodyMotion::constant(DVec3::new(0.01, 0.02, -0.03)).at(time);
            let moved = TriMesh {
                positions: ball.positions.iter().map(|&p| pose.apply(p)).collect(),
                triangles: ball.triangles.clone(),
            };
            let all = |edges: &TriMesh, faces: &TriMesh| {
                let mut found = Vec::new();
                for ends in edges.edges() {
                    for (face, t) in (0..).zip(&faces.triangles) {
                        let segment = ends.map(|v| edges.positions[v as usize]);
                        if passes_through(segment, faces.corners(*t)) {
                            found.push((ends, face));
                        }
                    }
                }
                found
            };
            let expected = Between {
                through_second: all(&sheet, &moved),
                through_first: all(&moved, &sheet),
            };
            let skin = Skin::new(&sheet.positions, &sheet.triangles);
            prop_assert_eq!(skin.crossings_with(&Skin::of_body(&body, &pose)), expected);
        }
    }
}
