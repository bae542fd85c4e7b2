//! Colliders: bodies as collisions see them, as triangles with a tree over them or as a signed
//! distance, which a formula or [samples](super::distance_field) give.
//!
//! Triangles of a body face outwards. Sharp edges and vertices are features, against which edges
//! and faces of cloth are tested. Blunt ones, where the surface bends little, are left to the
//! contacts of cloth vertices with faces as long as the distance to keep covers what they leave
//! out: a face of cloth whose vertices lie on a body of curvature κ sags by κ L²/8 below them, for
//! a span L of the face. Where that is more than a share of the distance to keep, they are features
//! too. So cloth that is fine for a body tests its vertices alone. Analytic balls are treated
//! alike.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

use glam::{DMat3, DVec3};
use serde::{Deserialize, Serialize};

use crate::collide::bodies::body_motion::{BodyMotion, Sweep};
use crate::collide::bodies::deforming::{DeformedShape, Deforming, SampleError};
use crate::collide::bodies::distance_field::{DistanceField, Sampling};
use crate::collide::bodies::distance_in_time::{DeformingDistance, SweptDistance, Then};
use crate::collide::bodies::enclosed::Enclosed;
use crate::collide::bodies::when_asked::WhenAsked;
use crate::collide::bvh::displacements::Displacements;
use crate::collide::bvh::grid::Grid;
use crate::collide::bvh::quantised::{Quantised, Siblings};
use crate::collide::bvh::refit::Refit;
use crate::collide::bvh::tree::Bvh;
use crate::collide::surface::Surface;
use crate::heap_bytes::{HeapBytes, counts_heap, owns_no_heap};
use crate::mesh::{TriMesh, rotation_matrix};
use crate::scene::Shape;

/// Cosine of the angle between neighbouring faces above which an edge is not sharp (about 11°).
/// Directions in which a blunt edge or vertex is nearest lie no farther from its normal.
pub(in crate::collide) const FLAT: f64 = 0.98;
/// Share of the distance to keep that faces of cloth may sag towards a body between their vertices
/// before its blunt edges count.
const SAG: f64 = 1.0 / 3.0;
/// The most triangles of a body that is tested as a whole: its volumes are made in a small part of
/// the time of a step.
const WHOLE: usize = 50_000;
/// Weights this close to zero mean the border of a triangle.
pub(in crate::collide) const BOUNDARY: f64 = 1e-9;

/// A body where it was placed.
#[derive(Clone, Debug)]
pub enum Collider {
    /// Triangles.
    Triangles(Box<BodySurface>),
    /// A signed distance by a formula.
    Analytic(AnalyticBody),
    /// A signed distance by samples.
    Distance(Arc<DistanceBody>),
}

/// A body that cloth meets by its signed distance.
#[derive(Clone, Copy, Debug)]
pub(in crate::collide) enum Implicit<'a> {
    /// By a formula.
    Formula(&'a AnalyticBody),
    /// By samples.
    Sampled(&'a DistanceField),
    /// By samples of a body that deforms, in a step.
    Swept(&'a SweptDistance),
}

impl HeapBytes for Collider {
    fn heap_bytes(&self) -> usize {
        match self {
            Self::Triangles(surface) => surface.heap_bytes(),
            Self::Analytic(body) => body.heap_bytes(),
            Self::Distance(body) => body.heap_bytes(),
        }
    }
}

/// A body that is given by its signed distance, as cloth meets it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AnalyticBody {
    /// The signed distance.
    pub shape: Analytic,
    /// The ball against which edges and faces of cloth are tested too.
    pub(in crate::collide) ball: Option<Ball>,
}

owns_no_heap!(AnalyticBody);

/// A body that is given by samples of the distance from its mesh.
#[derive(Debug)]
pub struct DistanceBody {
    /// The samples.
    pub(in crate::collide) distance: SampledDistance,
    /// The space that the mesh encloses at time 0, as the body sees it, by which starts of pins are
    /// judged.
    mesh: Arc<Enclosed>,
}

counts_heap!(DistanceBody: distance, mesh);

/// The sampled distance of a body.
#[derive(Debug)]
pub enum SampledDistance {
    /// The distance from a body that keeps its shape.
    Still(Box<DistanceField>),
    /// The distance from a body that deforms, at any time.
    Deforming(Box<DeformingDistance>),
    /// The distance from a body that deforms, in a step.
    Swept(SweptDistance),
}

/// The parts that a step shares with the body are left out.
impl HeapBytes for SampledDistance {
    fn heap_bytes(&self) -> usize {
        match self {
            Self::Still(field) => field.heap_bytes(),
            Self::Deforming(distance) => distance.heap_bytes(),
            Self::Swept(_) => 0,
        }
    }
}

/// The sampled distance of a body at one time.
#[derive(Clone, Debug)]
pub enum DistanceThen<'a> {
    /// The distance from a body that keeps its shape.
    Still(&'a DistanceField),
    /// The distance from a body that deforms.
    Deformed(Then),
}

impl DistanceThen<'_> {
    /// The distance of a place from the surface, in m, as the body sees it; negative inside.
    #[must_use]
    pub fn distance(&self, p: DVec3) -> f64 {
        match self {
            Self::Still(field) => field.distance(p),
            Self::Deformed(then) => then.distance(p),
        }
    }

    /// The unit vector out of the body.
    #[must_use]
    pub fn normal(&self, p: DVec3) -> DVec3 {
        match self {
            Self::Still(field) => field.normal(p),
            Self::Deformed(then) => then.normal(p),
        }
    }

    /// The length in m by which the distance near the surface may err at a place.
    #[must_use]
    pub fn bound(&self, p: DVec3) -> f64 {
        match self {
            Self::Still(field) => field.bound(),
            Self::Deformed(then) => then.bound(p),
        }
    }
}

impl DistanceBody {
    /// Samples the distance from a closed mesh that faces outwards, on a grid with cells of this
    /// side (m) for contacts within a reach (m).
    #[must_use]
    pub fn new(mesh: Enclosed, cell: f64, reach: f64) -> Self {
        let field = Box::new(DistanceField::new(&mesh, cell, reach));
        Self {
            distance: SampledDistance::Still(field),
            mesh: Arc::new(mesh),
        }
    }

    /// Does as [`Self::new`] for a mesh that deforms.
    ///
    /// # Errors
    /// The samples of its start cannot be read.
    pub fn deforming(
        deforming: &Arc<Deforming>,
        cell: f64,
        reach: f64,
    ) -> Result<Self, SampleError> {
        let distance = DeformingDistance::new(Arc::clone(deforming), cell, reach)?;
        Ok(Self {
            mesh: Arc::new(distance.mesh_then(0.0)),
            distance: SampledDistance::Deforming(Box::new(distance)),
        })
    }

    /// How it is sampled; `None` in a step.
    #[must_use]
    pub fn sampling(&self) -> Option<Sampling> {
        match &self.distance {
            SampledDistance::Still(field) => Some(field.sampling()),
            SampledDistance::Deforming(distance) => Some(distance.sampling()),
            SampledDistance::Swept(_) => None,
        }
    }

    /// The samples in time, if it deforms.
    #[must_use]
    pub fn in_time(&self) -> Option<&DeformingDistance> {
        match &self.distance {
            SampledDistance::Deforming(distance) => Some(distance),
            SampledDistance::Still(_) | SampledDistance::Swept(_) => None,
        }
    }

    /// The distance at a time in s; of a body in a step, when the step ends.
    #[must_use]
    pub fn then(&self, time: f64) -> DistanceThen<'_> {
        match &self.distance {
            SampledDistance::Still(field) => DistanceThen::Still(field),
            SampledDistance::Deforming(distance) => DistanceThen::Deformed(distance.then(time)),
            SampledDistance::Swept(swept) => DistanceThen::Deformed(swept.end()),
        }
    }

    /// The space that its mesh encloses at time 0, as the body sees it.
    #[must_use]
    pub fn mesh_at_start(&self) -> &Enclosed {
        &self.mesh
    }

    /// The space that its mesh encloses at a time in s, as the body sees it.
    #[must_use]
    pub fn mesh_then(&self, time: f64) -> Cow<'_, Enclosed> {
        match self.in_time() {
            Some(distance) => Cow::Owned(distance.mesh_then(time)),
            None => Cow::Borrowed(&*self.mesh),
        }
    }
}

/// A ball where it was placed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::collide) struct Ball {
    /// Its centre in m.
    pub(in crate::collide) center: DVec3,
    /// Its radius in m.
    pub(in crate::collide) radius: f64,
}

impl AnalyticBody {
    /// Prepares a body for such cloths. A plane keeps off all of a face whose vertices it keeps
    /// off; a ball need not.
    #[must_use]
    pub fn new(shape: Analytic, cloths: &[Coarseness]) -> Self {
        let ball = match shape {
            Analytic::Sphere { center, radius }
                if cloths.iter().any(|cloth| cloth.sags_on(radius)) =>
            {
                Some(Ball { center, radius })
            }
            _ => None,
        };
        Self { shape, ball }
    }
}

/// A body made of triangles.
#[derive(Clone, Debug)]
pub struct BodySurface {
    pub(in crate::collide) surface: Arc<Surface>,
    pub(in crate::collide) positions: Vec<DVec3>,
    /// Where the vertices of a body that deforms are when the step ends, in m, and its length in s;
    /// `positions` are then those of its start.
    pub(in crate::collide) deforms: Option<(Arc<DeformedShape>, f64)>,
    normals: WhenAsked<DVec3>,
    /// The first of the faces that lie back to back with another one. Cloth behind such a face is
    /// in front of that.
    pub(in crate::collide) two_sided: u32,
    edges: WhenAsked<Bend>,
    vertices: WhenAsked<Bend>,
    pub(in crate::collide) tree: Arc<Bvh>,
    refit: Arc<Refit>,
    faces: Arc<FacesAt>,
    /// The cloths that it meets.
    cloths: Arc<[Coarseness]>,
    /// The last shape of a body that deforms, under the times of its step.
    deformed: Arc<Mutex<Option<Deformed>>>,
    /// Half the reach of contacts, in m.
    radius: f64,
    /// Whether it is tested in patches, the subtrees of its tree.
    in_patches: bool,
    /// The last volumes at rest, and the grid that they lie on.
    resting: Arc<Mutex<Option<Resting>>>,
}

impl BodySurface {
    /// The bytes on the heap that copies of it do not share.
    fn own_bytes(&self) -> usize {
        let Self {
            surface: _,
            positions,
            deforms: _,
            normals,
            two_sided: _,
            edges,
            vertices,
            tree: _,
            refit: _,
            faces: _,
            cloths: _,
            deformed: _,
            radius: _,
            in_patches: _,
            resting: _,
        } = self;
        let bends = edges.heap_bytes() + vertices.heap_bytes();
        positions.heap_bytes() + normals.heap_bytes() + bends
    }
}

/// Shapes of bodies that deform are left out: [`Deforming`](super::Deforming) keeps them.
impl HeapBytes for BodySurface {
    fn heap_bytes(&self) -> usize {
        let shared = self.surface.heap_bytes() + self.tree.heap_bytes() + self.refit.heap_bytes();
        let lists = self.faces.heap_bytes() + self.cloths.heap_bytes();
        let deformed = self.deformed.lock().unwrap_or_else(PoisonError::into_inner);
        let deformed = (deformed.as_ref()).map_or(0, |(_, then)| match &**then {
            Collider::Triangles(surface) => size_of::<Self>() + surface.own_bytes(),
            Collider::Analytic(_) | Collider::Distance(_) => 0,
        });
        self.own_bytes() + shared + lists + deformed + self.resting.heap_bytes()
    }
}

/// A body given by its signed distance.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Analytic {
    /// A ball.
    Sphere {
        /// Centre in m.
        center: DVec3,
        /// Radius in m.
        radius: f64,
    },
    /// A half space.
    Plane {
        /// A point of its surface in m.
        point: DVec3,
        /// Unit vector out of it.
        normal: DVec3,
    },
    /// A box.
    Box {
        /// Centre in m.
        center: DVec3,
        /// Half its side lengths in m.
        half: DVec3,
        /// Its axes, if they are not those of coordinates.
        axes: Option<DMat3>,
    },
    /// All points near a segment.
    Capsule {
        /// One end in m.
        from: DVec3,
        /// The other end in m.
        to: DVec3,
        /// Radius in m.
        radius: f64,
    },
}

/// An edge or a vertex of a body against which faces and edges of cloth are tested.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::collide) struct BodyFeature {
    /// The mean normal of the faces that meet at it; none at the border of a surface with two
    /// sides, which cloth may meet from anywhere.
    pub(in crate::collide) outward: DVec3,
    /// Whether these faces are nearly one plane, so that cloth meets the feature along its normal
    /// only.
    pub(in crate::collide) blunt: bool,
    /// Whether the surface has another side there, so that nothing is inside.
    pub(in crate::collide) two_sided: bool,
}

owns_no_heap!(BodyFeature);

/// How coarse a cloth is that a body meets: what its faces cut off a body that bends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Coarseness {
    /// The diameter in m of the largest of the smallest circles around each of its faces.
    pub span: f64,
    /// The distance in m that it keeps from the body.
    pub distance: f64,
}

owns_no_heap!(Coarseness);

impl Coarseness {
    /// Whether the vertices of the cloth alone do not keep its faces off a surface that turns by
    /// `angle` over `width` (m): a face that spans it sags too far between its vertices.
    ///
    /// Across a single edge a face of span L sags by L/4 times the angle, across many by κ L²/8.
    #[must_use]
    pub fn sags(&self, angle: f64, width: f64) -> bool {
        let along = (self.span / width).max(2.0);
        0.125 * self.span * angle * along > SAG * self.distance
    }

    /// Whether the vertices do not keep its faces off where the cosine of that angle is `cosine`.
    ///
    /// The angle is between 2 and π times the sine of its half, which tells in nearly all cases.
    fn sags_over(&self, cosine: f64, width: f64) -> bool {
        const ROUNDED: f64 = 1e-12;
        let cosine = cosine.clamp(-1.0, 1.0);
        let sine = (0.5 * (1.0 - cosine)).sqrt();
        let sags = |angle: f64| self.sags(angle, width);
        sags(std::f64::consts::PI * sine * (1.0 + ROUNDED) + ROUNDED)
            && (sags(2.0 * sine * (1.0 - ROUNDED) - ROUNDED) || sags(libm::acos(cosine)))
    }

    /// Whether they do not keep its faces off a ball of this radius (m).
    #[must_use]
    pub(crate) fn sags_on(&self, radius: f64) -> bool {
        0.125 * self.span * self.span / radius > SAG * self.distance
    }
}

impl BodySurface {
    /// Prepares a closed body of triangles for such cloths. `reach` (m) is that of its contacts
    /// with cloth of its own thickness: its volumes are inflated by half of it, and those of cloth
    /// likewise.
    #[must_use]
    pub fn new(mesh: &TriMesh, reach: f64, cloths: &[Coarseness]) -> Self {
        Self::with_sides(mesh, reach, cloths, u32::MAX)
    }

    /// Prepares a body whose faces from `two_sided` on lie back to back, each with another one of
    /// them, as [`crate::mesh::mend_body`] makes them of open surfaces.
    #[must_use]
    pub fn with_sides(mesh: &TriMesh, reach: f64, cloths: &[Coarseness], two_sided: u32) -> Self {
        let x = |v: u32| mesh.positions[v as usize];
        let surface = Surface::new(&mesh.triangles, mesh.positions.len());
        let faces = FacesAt::new(&surface, mesh.positions.len());
        let items = (0..)
            .zip(&mesh.triangles)
            .map(|(i, t)| (i, t.iter().map(|&v| x(v)).sum::<DVec3>() / 3.0))
            .collect();
        let tree = Bvh::build(items);
        Self {
            refit: Arc::new(Refit::new(&tree, |t| mesh.triangles[t as usize])),
            tree: Arc::new(tree),
            normals: WhenAsked::new(mesh.triangles.len()),
            edges: WhenAsked::new(surface.edges().len()),
            vertices: WhenAsked::new(mesh.positions.len()),
            surface: Arc::new(surface),
            positions: mesh.positions.clone(),
            deforms: None,
            two_sided,
            faces: Arc::new(faces),
            cloths: cloths.into(),
            deformed: Arc::default(),
            radius: 0.5 * reach,
            in_patches: mesh.triangles.len() > WHOLE,
            resting: Arc::default(),
        }
    }

    /// The body in a step of `dt` s from a time in s on, of a body that deforms. It is made once
    /// for all that ask for it.
    fn in_step(&self, deforming: &Deforming, time: f64, dt: f64) -> Arc<Collider> {
        let mut kept = self.deformed.lock().unwrap_or_else(PoisonError::into_inner);
        let key = [time.to_bits(), dt.to_bits()];
        if let Some((known, body)) = &*kept
            && *known == key
        {
            return Arc::clone(body);
        }
        let [start, end] = [time, time + dt].map(|time| deforming.at(time));
        let body = Arc::new(Collider::Triangles(Box::new(Self {
            surface: Arc::clone(&self.surface),
            positions: start.positions.clone(),
            deforms: Some((end, dt)),
            two_sided: self.two_sided,
            normals: self.normals.anew(),
            edges: self.edges.anew(),
            vertices: self.vertices.anew(),
            tree: Arc::clone(&self.tree),
            refit: Arc::clone(&self.refit),
            faces: Arc::clone(&self.faces),
            cloths: Arc::clone(&self.cloths),
            deformed: Arc::default(),
            radius: self.radius,
            in_patches: self.in_patches,
            resting: Arc::default(),
        })));
        *kept = Some((key, Arc::clone(&body)));
        body
    }

    /// The velocity in m/s in the step of the point with these weights among vertices.
    #[inline]
    pub(in crate::collide) fn velocity<const N: usize>(
        &self,
        sweep: &Sweep,
        vertices: [u32; N],
        weights: [f64; N],
    ) -> DVec3 {
        match &self.deforms {
            None => {
                let all = vertices.iter().zip(weights);
                sweep.velocity(all.map(|(&v, w)| self.positions[v as usize] * w).sum())
            }
            Some((end, dt)) => {
                // The weights add up to 1 to rounding alone: a velocity that all have in common
                // stays.
                let way = vertices.map(|v| end.positions[v as usize] - self.positions[v as usize]);
                let others = way.iter().zip(weights).skip(1);
                others.fold(way[0], |sum, (&own, w)| sum + (own - way[0]) * w) / *dt
            }
        }
    }
}

impl Collider {
    /// Whether cloth meets it by its signed distance.
    pub(in crate::collide) fn is_implicit(&self) -> bool {
        match self {
            Self::Triangles(_) => false,
            Self::Analytic(_) | Self::Distance(_) => true,
        }
    }

    /// The signed distance by which cloth meets it in a step; `None` of triangles.
    pub(in crate::collide) fn implicit(&self) -> Option<Implicit<'_>> {
        match self {
            Self::Triangles(_) => None,
            Self::Analytic(body) => Some(Implicit::Formula(body)),
            Self::Distance(body) => match &body.distance {
                SampledDistance::Still(field) => Some(Implicit::Sampled(field)),
                SampledDistance::Swept(swept) => Some(Implicit::Swept(swept)),
                // Steps ask for it as it is in them.
                SampledDistance::Deforming(_) => None,
            },
        }
    }

    /// The body in a step of `dt` s from a time in s on, if it deforms.
    pub(in crate::collide) fn in_step(
        &self,
        motion: &BodyMotion,
        time: f64,
        dt: f64,
    ) -> Option<Arc<Self>> {
        match (self, motion.deforming()) {
            (Self::Triangles(surface), Some(deforming)) => {
                Some(surface.in_step(deforming, time, dt))
            }
            (Self::Distance(body), _) => {
                let swept = body.in_time()?.in_step([time, time + dt]);
                Some(Arc::new(Self::Distance(Arc::new(DistanceBody {
                    distance: SampledDistance::Swept(swept),
                    mesh: Arc::clone(&body.mesh),
                }))))
            }
            _ => None,
        }
    }
}

/// The faces at each edge and each vertex of a surface, ascending.
#[derive(Clone, Debug)]
struct FacesAt {
    edges: Lists,
    vertices: Lists,
}

counts_heap!(FacesAt: edges, vertices);

/// Lists of numbers, one after the other.
#[derive(Clone, Debug)]
struct Lists {
    starts: Vec<u32>,
    all: Vec<u32>,
}

counts_heap!(Lists: starts, all);

impl Lists {
    /// Sorts numbers, ascending, into this number of lists: each comes with the list that it is of.
    fn new(lists: usize, pairs: impl Iterator<Item = (u32, u32)> + Clone) -> Self {
        let mut starts = vec![0; lists + 1];
        pairs
            .clone()
            .for_each(|(list, _)| starts[list as usize + 1] += 1);
        for list in 0..lists {
            starts[list + 1] += starts[list];
        }
        let (mut next, mut all) = (starts.clone(), vec![0; starts[lists] as usize]);
        for (list, number) in pairs {
            let at = &mut next[list as usize];
            all[*at as usize] = number;
            *at += 1;
        }
        Self { starts, all }
    }

    fn of(&self, list: usize) -> &[u32] {
        &self.all[self.starts[list] as usize..self.starts[list + 1] as usize]
    }
}

impl FacesAt {
    fn new(surface: &Surface, vertices: usize) -> Self {
        let faces = (0..).zip(surface.triangles());
        let at_edges =
            (faces.clone()).flat_map(|(face, _)| surface.edges_of(face).map(|edge| (edge, face)));
        Self {
            edges: Lists::new(surface.edges().len(), at_edges),
            vertices: Lists::new(vertices, faces.flat_map(|(face, t)| t.map(|v| (v, face)))),
        }
    }
}

/// How a surface bends at an edge or a vertex.
#[derive(Clone, Copy, Debug)]
struct Bend {
    /// The feature that it is; `None` where the surface is as good as flat.
    feature: Option<BodyFeature>,
    /// The cosine of the widest angle between normals of its faces. Directions in which it can be
    /// nearest lie no farther from any of them.
    cone: f64,
    /// Whether it is an edge over which some cloth sags.
    sags: bool,
}

owns_no_heap!(Bend);

/// Calls a function with the normals of some faces. There are few of these at most features.
fn with_normals<R>(
    faces: &[u32],
    normal: impl Fn(u32) -> DVec3,
    of: impl FnOnce(&[DVec3]) -> R,
) -> R {
    const FEW: usize = 12;
    let mut few = [DVec3::ZERO; FEW];
    match few.get_mut(..faces.len()) {
        Some(normals) => {
            for (own, &face) in normals.iter_mut().zip(faces) {
                *own = normal(face);
            }
            of(normals)
        }
        None => of(&faces.iter().map(|&face| normal(face)).collect::<Vec<_>>()),
    }
}

impl BodySurface {
    /// The vector normal to a face, twice as long as its area.
    fn area(&self, face: u32) -> DVec3 {
        let corners = self.surface.triangles()[face as usize];
        let [a, b, c] = corners.map(|v| self.positions[v as usize]);
        (b - a).cross(c - a)
    }

    /// The unit vector out of a face; none of one without area.
    #[inline]
    pub(in crate::collide) fn normal(&self, face: u32) -> DVec3 {
        let normal = |face: u32| self.area(face).normalize_or_zero();
        *self.normals.get(face, normal)
    }

    /// The feature that an edge is; `None` where the surface is as good as flat.
    #[inline]
    pub(in crate::collide) fn edge_feature(&self, edge: u32) -> Option<BodyFeature> {
        self.edge(edge).feature
    }

    /// The feature that a vertex is; `None` where the surface is as good as flat.
    #[inline]
    pub(in crate::collide) fn vertex_feature(&self, vertex: u32) -> Option<BodyFeature> {
        self.vertex(vertex).feature
    }

    #[inline]
    fn edge(&self, edge: u32) -> &Bend {
        self.edges.get(edge, |edge| self.bend_of_edge(edge))
    }

    #[inline]
    fn vertex(&self, vertex: u32) -> &Bend {
        self.vertices
            .get(vertex, |vertex| self.bend_of_vertex(vertex))
    }

    fn bend_of_edge(&self, edge: u32) -> Bend {
        let ends = self.surface.edges()[edge as usize];
        let [a, b] = ends.map(|v| self.positions[v as usize]);
        let faces = self.faces.edges.of(edge as usize);
        let bend = |at: &[DVec3]| {
            let (mut feature, cone) = bend(at, true);
            // The sum of the heights of its faces over it.
            let heights = (faces.iter()).fold(0.0, |sum, &face| {
                sum + self.area(face).length() / a.distance(b)
            });
            // Centres of two triangles lie a third of their heights from the edge between them.
            let width = heights / 3.0;
            let sags = (self.cloths.iter()).any(|cloth| cloth.sags_over(cone, width));
            if sags {
                feature.get_or_insert_with(|| BodyFeature::blunt(at));
            }
            Bend {
                feature: self.sided(feature, faces),
                cone,
                sags,
            }
        };
        with_normals(faces, |face| self.normal(face), bend)
    }

    fn bend_of_vertex(&self, vertex: u32) -> Bend {
        let faces = self.faces.vertices.of(vertex as usize);
        let bend = |at: &[DVec3]| {
            let (mut feature, cone) = bend(at, false);
            // It is blunt if an edge at it is.
            let sags = |edge: u32| {
                self.surface.edges()[edge as usize].contains(&vertex) && self.edge(edge).sags
            };
            let mut edges = faces.iter().flat_map(|&face| self.surface.edges_of(face));
            if feature.is_none() && edges.any(sags) {
                feature = Some(BodyFeature::blunt(at));
            }
            Bend {
                feature: self.sided(feature, faces),
                cone,
                sags: false,
            }
        };
        with_normals(faces, |face| self.normal(face), bend)
    }

    /// A feature where these faces meet, told whether they lie back to back with others.
    fn sided(&self, feature: Option<BodyFeature>, faces: &[u32]) -> Option<BodyFeature> {
        feature.map(|feature| BodyFeature {
            two_sided: faces.first().is_some_and(|&face| face >= self.two_sided),
            ..feature
        })
    }
}

impl BodySurface {
    /// Whether it has these triangles.
    #[must_use]
    pub(crate) fn is_of(&self, triangles: &[[u32; 3]]) -> bool {
        self.surface.triangles() == triangles
    }

    /// Whether a point in direction `normal` from a point on the border of a face, given by its
    /// weights, is nearest to that border rather than to a neighbouring face.
    pub(in crate::collide) fn is_nearest(
        &self,
        face: u32,
        weights: [f64; 3],
        normal: DVec3,
    ) -> bool {
        let corners = self.surface.triangles()[face as usize];
        let zero = weights.map(|w| w <= BOUNDARY);
        let cone = match zero {
            [false, true, true] => self.vertex(corners[0]).cone,
            [true, false, true] => self.vertex(corners[1]).cone,
            [true, true, false] => self.vertex(corners[2]).cone,
            // The edge from corner k to the next is opposite to the corner after that.
            [false, false, true] => self.edge(self.surface.edges_of(face)[0]).cone,
            [true, false, false] => self.edge(self.surface.edges_of(face)[1]).cone,
            [false, true, false] => self.edge(self.surface.edges_of(face)[2]).cone,
            _ => return true,
        };
        normal.dot(self.normal(face)) >= cone - 1e-6
    }

    /// Displacements of the vertices in a step of `dt` seconds, seen from the origin of the grid.
    pub(in crate::collide) fn displacements(
        &self,
        grid: &Grid,
        (sweep, dt): (&Sweep, f64),
        displacements: &mut Vec<Displacements>,
    ) {
        match &self.deforms {
            None => {
                let ends = |&p: &DVec3| sweep.ends(p, dt);
                Displacements::of(&self.positions, ends, grid.origin(), displacements);
            }
            Some((end, _)) => {
                let both = self.positions.iter().zip(&end.positions);
                let both: Vec<[DVec3; 2]> = both.map(|(&start, &end)| [start, end]).collect();
                Displacements::of(&both, |&ends| ends, grid.origin(), displacements);
            }
        }
    }

    /// Computes the volumes of the vertices with these displacements, inflated by half the reach.
    pub(in crate::collide) fn vertex_volumes(
        &self,
        grid: &Grid,
        displacements: &[Displacements],
        vertices: &mut Vec<Quantised>,
    ) {
        grid.measure(displacements, grid.origin(), self.radius, vertices);
    }

    /// Whether it is tested in patches while it moves: each has boxes of its own, and volumes if
    /// cloth is near it.
    pub(in crate::collide) fn is_in_patches(&self) -> bool {
        self.in_patches
    }

    /// Has it tested in patches, however few triangles it has.
    #[cfg(test)]
    pub(in crate::collide) fn cut_into_patches(&mut self) {
        self.in_patches = true;
    }

    /// The refit of its tree, which knows its patches.
    pub(in crate::collide) fn patches(&self) -> &Refit {
        &self.refit
    }

    /// Half the reach of contacts, by which volumes are inflated, in m.
    pub(in crate::collide) fn radius(&self) -> f64 {
        self.radius
    }

    /// The ends of the displacement of a vertex in a step of `dt` seconds, in m.
    #[inline]
    pub(in crate::collide) fn ends(&self, vertex: u32, (sweep, dt): (&Sweep, f64)) -> [DVec3; 2] {
        let start = self.positions[vertex as usize];
        match &self.deforms {
            None => sweep.ends(start, dt),
            Some((end, _)) => [start, end.positions[vertex as usize]],
        }
    }

    /// Computes the volumes of the nodes from those of the vertices.
    pub(in crate::collide) fn refit(&self, vertices: &[Quantised], volumes: &mut Vec<Siblings>) {
        self.refit.run(vertices, volumes);
    }

    /// The volumes of the nodes at rest, which are kept as long as the grid stays.
    pub(in crate::collide) fn resting(&self, grid: &Grid) -> Arc<Vec<Siblings>> {
        let mut kept = self.resting.lock().unwrap_or_else(PoisonError::into_inner);
        match &*kept {
            Some((of, volumes)) if of == grid => Arc::clone(volumes),
            _ => {
                let mut volumes = Vec::new();
                let (mut displacements, mut vertices) = (Vec::new(), Vec::new());
                let still = Sweep::Shift {
                    offset: DVec3::ZERO,
                    velocity: DVec3::ZERO,
                };
                self.displacements(grid, (&still, 0.0), &mut displacements);
                self.vertex_volumes(grid, &displacements, &mut vertices);
                self.refit(&vertices, &mut volumes);
                let volumes = Arc::new(volumes);
                *kept = Some((*grid, Arc::clone(&volumes)));
                volumes
            }
        }
    }
}

/// A body in a step, and the bits of the step's start and length.
type Deformed = ([u64; 2], Arc<Collider>);
/// Volumes and their grid.
type Resting = (Grid, Arc<Vec<Siblings>>);

/// The feature where faces with these normals meet, if it is sharp, and the smallest cosine between
/// two of the normals. An open edge is sharp, and any direction is possible there, so that it has
/// −1; a lone vertex is not.
fn bend(faces: &[DVec3], edge: bool) -> (Option<BodyFeature>, f64) {
    let pairs = faces
        .iter()
        .enumerate()
        .flat_map(|(i, a)| faces[..i].iter().map(|b| a.dot(*b)));
    let least = pairs.fold(1.0, f64::min);
    let open = edge && faces.len() == 1;
    let feature = (least < FLAT || open).then(|| BodyFeature {
        outward: mean(faces),
        blunt: false,
        two_sided: false,
    });
    (feature, if open { -1.0 } else { least })
}

impl BodyFeature {
    /// Whether it is at the border of a surface with two sides.
    pub(in crate::collide) fn is_border(&self) -> bool {
        self.two_sided && self.outward == DVec3::ZERO
    }

    /// Where faces with these normals meet at small angles.
    fn blunt(faces: &[DVec3]) -> Self {
        Self {
            outward: mean(faces),
            blunt: true,
            two_sided: false,
        }
    }
}

fn mean(normals: &[DVec3]) -> DVec3 {
    let sum = normals.iter().sum::<DVec3>();
    // Faces that are back to back have none, but for rounding.
    if sum.length_squared() < NO_DIRECTION * NO_DIRECTION {
        return DVec3::ZERO;
    }
    sum.normalize_or_zero()
}

/// The length below which a sum of unit vectors is rounding.
const NO_DIRECTION: f64 = 1e-9;

impl Analytic {
    /// The signed distance for a shape; `None` for a mesh.
    #[must_use]
    pub fn new(shape: &Shape) -> Option<Self> {
        Some(match *shape {
            Shape::Sphere { center, radius } => Self::Sphere { center, radius },
            Shape::Plane { point, normal, .. } => Self::Plane { point, normal },
            Shape::Box {
                center,
                size,
                rotation,
            } => Self::Box {
                center,
                half: 0.5 * size,
                axes: (rotation != DVec3::ZERO).then(|| rotation_matrix(rotation)),
            },
            Shape::Capsule { from, to, radius } => Self::Capsule { from, to, radius },
            Shape::Mesh { .. } => return None,
        })
    }

    /// Distance of `p` from the surface in m, negative inside, and the unit vector out of the body.
    #[must_use]
    pub fn distance(&self, p: DVec3) -> (f64, DVec3) {
        match *self {
            Self::Sphere { center, radius } => round(p, center, radius),
            Self::Plane { point, normal } => ((p - point).dot(normal), normal),
            Self::Box { center, half, axes } => {
                let turned = |v: DVec3| axes.map_or(v, |axes| axes * v);
                let r = axes.map_or(p - center, |axes| axes.transpose() * (p - center));
                let out = r.abs() - half;
                if out.max_element() <= 0.0 {
                    let k = (1..3).fold(0, |best, k| if out[k] > out[best] { k } else { best });
                    let mut normal = DVec3::ZERO;
                    normal[k] = 1.0f64.copysign(r[k]);
                    return (out[k], turned(normal));
                }
                round(p, center + turned(r.clamp(-half, half)), 0.0)
            }
            Self::Capsule { from, to, radius } => {
                let axis = to - from;
                let t = axis.dot(p - from) / axis.length_squared().max(f64::MIN_POSITIVE);
                round(p, from + axis * t.clamp(0.0, 1.0), radius)
            }
        }
    }
}

/// Distance from a ball.
fn round(p: DVec3, center: DVec3, radius: f64) -> (f64, DVec3) {
    let r = p - center;
    let length = r.length();
    (
        length - radius,
        if length > 0.0 { r / length } else { DVec3::Z },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::{cuboid, icosphere};

    /// The share of the edges of a ball of 3 cm with edges of 4 mm that are features for cloth of
    /// this span (m), at a distance of 4 mm.
    fn counted(span: f64) -> f64 {
        let mesh = icosphere(DVec3::ZERO, 0.03, 0.004).unwrap();
        let cloth = Coarseness {
            span,
            distance: 0.004,
        };
        let body = BodySurface::new(&mesh, 0.006, &[cloth]);
        let edges = body.surface.edges().len() as u32;
        let features = (0..edges).filter_map(|edge| body.edge_feature(edge));
        assert!(features.clone().all(|feature| feature.blunt));
        features.count() as f64 / f64::from(edges)
    }

    /// The span of which a face sags by a third of 4 mm on a ball of 3 cm is 17.9 mm.
    #[test]
    fn blunt_edges_count_for_coarse_cloth_alone() {
        assert_eq!(
            (counted(0.0), counted(0.013), counted(0.025)),
            (0.0, 0.0, 1.0)
        );
        assert!((0.05..0.95).contains(&counted(0.0179)));
        let on_ball = |span, radius| {
            let cloth = Coarseness {
                span,
                distance: 0.004,
            };
            cloth.sags_on(radius)
        };
        assert!(on_ball(0.018, 0.03) && !on_ball(0.0178, 0.03));
    }

    #[test]
    fn a_sharp_edge_counts_for_any_cloth_and_a_flat_one_for_none() {
        let mesh = cuboid(DVec3::ZERO, DVec3::ONE, 0.25).unwrap();
        for span in [0.0, 10.0] {
            let cloth = Coarseness {
                span,
                distance: 0.004,
            };
            let body = BodySurface::new(&mesh, 0.006, &[cloth]);
            let edges = 0..body.surface.edges().len() as u32;
            let sharp = edges.filter_map(|edge| body.edge_feature(edge));
            assert!(sharp.clone().all(|feature| !feature.blunt));
            // Four on each of twelve sides.
            assert_eq!(sharp.count(), 48);
        }
    }

    #[test]
    fn distances_are_exact() {
        let sphere = Analytic::Sphere {
            center: DVec3::X,
            radius: 2.0,
        };
        assert_eq!(sphere.distance(DVec3::new(4.0, 0.0, 0.0)), (1.0, DVec3::X));
        let cuboid = Analytic::Box {
            center: DVec3::ZERO,
            half: DVec3::new(1.0, 2.0, 3.0),
            axes: None,
        };
        assert_eq!(cuboid.distance(DVec3::new(0.5, 0.0, 0.0)), (-0.5, DVec3::X));
        let (d, n) = cuboid.distance(DVec3::new(4.0, 6.0, 0.0));
        assert!((d - 5.0).abs() < 1e-14 && (n - DVec3::new(0.6, 0.8, 0.0)).length() < 1e-14);
        let turned = Analytic::Box {
            center: DVec3::X,
            half: DVec3::new(1.0, 2.0, 3.0),
            axes: Some(rotation_matrix(DVec3::new(
                0.0,
                0.0,
                std::f64::consts::FRAC_PI_2,
            ))),
        };
        for (p, distance, normal) in [
            (DVec3::new(3.5, 0.0, 0.0), 0.5, DVec3::X),
            (DVec3::new(1.0, -0.75, 0.0), -0.25, DVec3::NEG_Y),
        ] {
            let (d, n) = turned.distance(p);
            assert!(
                (d - distance).abs() < 1e-14 && (n - normal).length() < 1e-14,
                "{p}"
            );
        }
        let capsule = Analytic::Capsule {
            from: DVec3::ZERO,
            to: DVec3::Z,
            radius: 0.5,
        };
        assert!((capsule.distance(DVec3::new(0.0, 0.0, 2.0)).0 - 0.5).abs() < 1e-15);
        let plane = Analytic::Plane {
            point: DVec3::Z,
            normal: DVec3::Z,
        };
        assert_eq!(plane.distance(DVec3::ZERO), (-1.0, DVec3::Z));
    }
}
