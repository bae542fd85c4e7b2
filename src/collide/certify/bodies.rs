//! Bodies as certification sees them: what cannot be stopped.
//!
//! Triangles of bodies are tested against cloth feature by feature, and a box counts as its twelve
//! triangles. Balls and capsules are segments with a radius: a face of cloth is apart from one if
//! it lies above a plane that is the radius away from the segment. A half space needs heights of
//! vertices alone, for a face is above it if its corners are. Against a sampled distance vertices
//! alone are tested, and faces may sag into it between them.
//!
//! A body goes straight from pose to pose in a substep, each of its points by itself. So it moves
//! by an affine map, x + s (M x − x) for s from 0 to 1, whose determinant stays positive while it
//! turns by less than half a turn: features that the body carries along never cross each other.
//!
//! A body that deforms goes straight from shape to shape, each of its vertices by itself. No one
//! map moves all of it, so what it carries along is tested pair by pair. One by its sampled
//! distance is what [samples say](crate::collide::bodies::distance_in_time) at each time, and
//! carries with the displacement of the surface nearby; vertices that it carries are tested too.

use std::ops::Range;
use std::sync::Arc;

use glam::DVec3;

use super::joined::Triangles;
use crate::collide::bodies::body_motion::{BodyMotion, Pose};
use crate::collide::bodies::collider::{
    Analytic, AnalyticBody, Collider, DistanceBody, SampledDistance,
};
use crate::collide::bodies::deforming::DeformedShape;
use crate::collide::bodies::distance_field::DistanceField;
use crate::collide::bodies::distance_in_time::SweptDistance;
use crate::collide::bodies::enclosed::OnSurface;
use crate::collide::bvh::tree::Bvh;
use crate::collide::surface::Surface;
use crate::heap_bytes::{HeapBytes, counts_heap};

/// The shape of a body where it was placed.
#[derive(Clone, Debug)]
pub enum Form {
    /// Triangles, which are among those of the [`Scenery`].
    Triangles,
    /// All points near a segment.
    Round {
        /// The ends of the segment, in m; a ball has one point twice.
        ends: [DVec3; 2],
        /// The radius in m.
        radius: f64,
    },
    /// A half space.
    Plane {
        /// A point of its surface, in m.
        point: DVec3,
        /// The unit vector out of it.
        normal: DVec3,
    },
    /// All points where a sampled distance is negative.
    Distance(Arc<DistanceBody>),
}

/// Samples are counted with the [`Collider`] that shares them.
impl HeapBytes for Form {
    fn heap_bytes(&self) -> usize {
        0
    }
}

/// A body in a substep.
#[derive(Clone, Debug)]
pub struct Mover {
    /// Its shape.
    pub form: Form,
    /// Its pose when the substep begins.
    pub from: Pose,
    /// Its pose when the substep ends.
    pub to: Pose,
    /// Its shapes when the substep begins and when it ends, if it deforms and has triangles.
    pub deformed: Option<[Arc<DeformedShape>; 2]>,
    /// Its sampled distance in the substep, if it deforms and has that.
    pub(in crate::collide) swept: Option<Arc<SweptDistance>>,
}

/// The sampled distance of a body in a substep.
#[derive(Clone, Copy, Debug)]
pub(super) enum Field<'a> {
    /// The distance from a body that keeps its shape.
    Still(&'a DistanceField),
    /// The distance from a body that deforms.
    Swept(&'a SweptDistance),
}

impl Mover {
    /// The displacement in m of what is at a place (m) and goes along with the body.
    #[must_use]
    pub fn displacement(&self, x: DVec3) -> DVec3 {
        if let Some(swept) = &self.swept {
            return self.to.apply(swept.carried(self.from.undo(x))) - x;
        }
        let Some([from, to]) = &self.deformed else {
            return self.to.apply(self.from.undo(x)) - x;
        };
        let OnSurface { corners, weights } = from.enclosed().nearest_on(x);
        let way = |v: usize| to.positions[v] - from.positions[v];
        let all = corners.iter().zip(weights);
        all.map(|(&v, w)| way(v as usize) * w).sum()
    }

    /// Whether it moves what it carries by one affine map.
    #[must_use]
    pub fn is_affine(&self) -> bool {
        self.deformed.is_none() && self.swept.is_none()
    }

    /// The length in m that no displacement exceeds of what a body that deforms carries along.
    pub(super) fn farthest(&self) -> Option<f64> {
        self.deformed.as_ref().map(|[from, to]| {
            let both = from.positions.iter().zip(&to.positions);
            both.map(|(from, to)| from.distance(*to))
                .fold(0.0, f64::max)
        })
    }

    /// The body at rest where it is when the substep ends.
    #[must_use]
    pub(crate) fn at_its_end(&self) -> Self {
        Self {
            form: self.form.clone(),
            from: self.to,
            to: self.to,
            deformed: (self.deformed.as_ref()).map(|[_, to]| [Arc::clone(to), Arc::clone(to)]),
            swept: (self.swept.as_ref()).map(|swept| Arc::new(swept.at_its_end())),
        }
    }

    /// The ends of a round body's segment when the substep begins and when it ends, in m, and the
    /// radius.
    pub(super) fn segment(&self) -> Option<([[DVec3; 2]; 2], f64)> {
        match self.form {
            Form::Round { ends, radius } => {
                let at = |pose: &Pose| ends.map(|p| pose.apply(p));
                Some(([at(&self.from), at(&self.to)], radius))
            }
            Form::Triangles | Form::Plane { .. } | Form::Distance(_) => None,
        }
    }

    /// The normal vector of a half space when the substep ends.
    pub(super) fn plane_normal(&self) -> Option<DVec3> {
        match self.form {
            Form::Plane { normal, .. } => Some(self.to.turned(normal)),
            Form::Triangles | Form::Round { .. } | Form::Distance(_) => None,
        }
    }

    /// The heights of a vertex over a half space when the substep begins and when it ends, in m,
    /// for a displacement from one place to another.
    pub(super) fn heights(&self, [start, end]: [DVec3; 2]) -> Option<[f64; 2]> {
        match self.form {
            Form::Plane { point, normal } => {
                let over = |pose: &Pose, x: DVec3| normal.dot(pose.undo(x) - point);
                Some([over(&self.from, start), over(&self.to, end)])
            }
            Form::Triangles | Form::Round { .. } | Form::Distance(_) => None,
        }
    }

    /// The sampled distance of a body that has one.
    pub(super) fn field(&self) -> Option<Field<'_>> {
        match &self.form {
            Form::Distance(body) => match (&body.distance, &self.swept) {
                (SampledDistance::Still(field), _) => Some(Field::Still(field)),
                (_, swept) => swept.as_deref().map(Field::Swept),
            },
            Form::Triangles | Form::Round { .. } | Form::Plane { .. } => None,
        }
    }

    /// The place of a vertex when the substep begins and when it ends, as the body sees it, in m.
    pub(super) fn seen(&self, [start, end]: [DVec3; 2]) -> [DVec3; 2] {
        [self.from.undo(start), self.to.undo(end)]
    }
}

/// All triangles that may be crossed: of cloth, and after it of bodies.
#[derive(Debug)]
pub struct Scenery {
    /// The triangles of cloth, which are shared.
    cloth: Arc<Surface>,
    /// The triangles of bodies, with the vertices that they have after those of cloth.
    of_bodies: Surface,
    /// A tree over the triangles.
    tree: Bvh,
    /// The number of vertices of cloth, which come first.
    movable: u32,
    /// The vertices of bodies where they were placed, in m, and the body of each.
    placed: Vec<DVec3>,
    body_of: Vec<u32>,
    forms: Vec<Form>,
    /// The triangles of each body.
    triangles_of: Vec<Range<u32>>,
    /// The vertices of each body, among those of bodies.
    vertices_of: Vec<Range<usize>>,
}

counts_heap!(Scenery:
    of_bodies, tree, placed, body_of, forms, triangles_of, vertices_of;
    without cloth, movable
);

impl Scenery {
    /// The cloth whose surface and places at rest (m) these are, with bodies.
    #[must_use]
    pub fn new(cloth: Arc<Surface>, rest: &[DVec3], bodies: &[Collider]) -> Self {
        Self::with_tree(cloth, rest, bodies, None)
    }

    /// Does as [`Self::new`], with the tree over all triangles if that is known.
    #[must_use]
    pub(crate) fn with_tree(
        cloth: Arc<Surface>,
        rest: &[DVec3],
        bodies: &[Collider],
        tree: Option<Bvh>,
    ) -> Self {
        let (movable, of_cloth) = (rest.len() as u32, cloth.triangles().len() as u32);
        let mut triangles: Vec<[u32; 3]> = Vec::new();
        let (mut placed, mut body_of, mut forms) = (Vec::new(), Vec::new(), Vec::new());
        let (mut triangles_of, mut vertices_of) = (Vec::new(), Vec::new());
        for (number, body) in (0..).zip(bodies) {
            let first = movable + placed.len() as u32;
            let first_triangle = of_cloth + triangles.len() as u32;
            let form = match body {
                Collider::Triangles(surface) => {
                    let of_body = surface.surface.triangles();
                    triangles.extend(of_body.iter().map(|t| t.map(|v| first + v)));
                    placed.extend_from_slice(&surface.positions);
                    Form::Triangles
                }
                Collider::Distance(body) => Form::Distance(Arc::clone(body)),
                Collider::Analytic(AnalyticBody {
                    shape: Analytic::Sphere { center, radius },
                    ..
                }) => Form::Round {
                    ends: [*center; 2],
                    radius: *radius,
                },
                Collider::Analytic(AnalyticBody {
                    shape: Analytic::Capsule { from, to, radius },
                    ..
                }) => Form::Round {
                    ends: [*from, *to],
                    radius: *radius,
                },
                Collider::Analytic(AnalyticBody {
                    shape: Analytic::Plane { point, normal },
                    ..
                }) => Form::Plane {
                    point: *point,
                    normal: *normal,
                },
                Collider::Analytic(AnalyticBody {
                    shape: Analytic::Box { center, half, axes },
                    ..
                }) => {
                    let corner = |bits: u32| {
                        let sign = |k: u32| if bits >> k & 1 != 0 { 1.0 } else { -1.0 };
                        let out = DVec3::new(sign(0), sign(1), sign(2)) * *half;
                        *center + axes.map_or(out, |axes| axes * out)
                    };
                    triangles.extend(OF_BOX.iter().map(|t| t.map(|v| first + v)));
                    placed.extend((0..8).map(corner));
                    Form::Triangles
                }
            };
            vertices_of.push(body_of.len()..placed.len());
            body_of.resize(placed.len(), number);
            forms.push(form);
            triangles_of.push(first_triangle..of_cloth + triangles.len() as u32);
        }
        let at = |v: u32| {
            let v = v as usize;
            rest.get(v)
                .copied()
                .unwrap_or_else(|| placed[v - rest.len()])
        };
        let center = |t: &[u32; 3]| t.iter().map(|&v| at(v)).sum::<DVec3>() / 3.0;
        let build = || {
            let all = cloth.triangles().iter().chain(&triangles);
            let items = (0..).zip(all).map(|(i, t)| (i, center(t)));
            Bvh::build(items.collect())
        };
        Self {
            tree: tree.unwrap_or_else(build),
            of_bodies: Surface::new(&triangles, rest.len() + placed.len()),
            cloth,
            movable,
            placed,
            body_of,
            forms,
            triangles_of,
            vertices_of,
        }
    }

    /// All triangles.
    #[must_use]
    pub fn triangles(&self) -> Triangles<'_> {
        Triangles::new(&self.cloth, &self.of_bodies)
    }

    /// A tree over the triangles.
    #[must_use]
    pub fn tree(&self) -> &Bvh {
        &self.tree
    }

    /// The number of vertices of cloth; those of bodies follow.
    #[must_use]
    pub fn movable(&self) -> u32 {
        self.movable
    }

    /// The body of each vertex after those of cloth.
    #[must_use]
    pub(crate) fn body_of(&self) -> &[u32] {
        &self.body_of
    }

    /// The triangles of a body, none for one without.
    pub(super) fn triangles_of(&self, body: u32) -> Range<u32> {
        self.triangles_of[body as usize].clone()
    }

    /// The bodies in a substep between two times in s.
    #[must_use]
    pub(crate) fn movers(&self, motions: &[BodyMotion], [start, end]: [f64; 2]) -> Vec<Mover> {
        let moved = |(form, motion): (&Form, &BodyMotion)| {
            let (swept, shapes) = match form {
                Form::Distance(body) => {
                    let swept = body.in_time().map(|body| body.in_step([start, end]));
                    (swept.map(Arc::new), None)
                }
                _ => (None, motion.deforming()),
            };
            Mover {
                form: form.clone(),
                from: motion.at(start),
                to: motion.at(end),
                deformed: shapes.map(|body| [start, end].map(|time| body.at(time))),
                swept,
            }
        };
        self.forms.iter().zip(motions).map(moved).collect()
    }

    /// The positions of the bodies' vertices when the substep begins and when it ends, in m.
    #[must_use]
    pub fn ends(&self, movers: &[Mover]) -> [Vec<DVec3>; 2] {
        let of = |end: usize| {
            let mut places = Vec::with_capacity(self.placed.len());
            for (mover, vertices) in movers.iter().zip(&self.vertices_of) {
                match &mover.deformed {
                    Some(shapes) => places.extend_from_slice(&shapes[end].positions),
                    None => {
                        let pose = [&mover.from, &mover.to][end];
                        let placed = &self.placed[vertices.clone()];
                        places.extend(placed.iter().map(|&p| pose.apply(p)));
                    }
                }
            }
            places
        };
        [of(0), of(1)]
    }
}

/// The triangles of a box over its corners; bit k of a corner's number is set where coordinate k is
/// the greater.
const OF_BOX: [[u32; 3]; 12] = [
    [0, 2, 1],
    [1, 2, 3],
    [4, 5, 6],
    [5, 7, 6],
    [0, 1, 4],
    [1, 5, 4],
    [2, 6, 3],
    [3, 6, 7],
    [0, 4, 2],
    [2, 4, 6],
    [1, 3, 5],
    [3, 7, 5],
];
