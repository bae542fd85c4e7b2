//! One step's geometry: everything that collision tests read.
//!
//! Volumes bound what a triangle sweeps over in the step, inflated by half the reach of contacts. A
//! patch's volumes are made when a test first needs them, once per rank and step; they are a function of
//! positions and velocities alone. So are those of vertices and edges, by which pairs of features are sorted
//! out whose triangles meet, as those of neighbours always do.

use std::sync::OnceLock;

use glam::DVec3;

use super::body::Body;
use super::kdop::Kdop;
use super::surface::ClothSurface;
use super::test_run::Target;

/// Positions and motion of all cloth and bodies at the start of a step.
#[derive(Debug)]
pub struct Snapshot<'a> {
    pub(super) cloth: &'a ClothSurface,
    pub(super) bodies: &'a [Body],
    /// Velocity of each body in m/s.
    pub(super) body_velocities: &'a [DVec3],
    pub(super) x: &'a [DVec3],
    pub(super) v: &'a [DVec3],
    /// Time at the start of the step in s.
    time: f64,
    pub(super) dt: f64,
    pub(super) thickness: f64,
    pub(super) reach: f64,
    self_collision: bool,
    patch_volumes: Vec<OnceLock<Vec<Kdop>>>,
    body_volumes: Vec<OnceLock<Vec<Kdop>>>,
    vertex_volumes: OnceLock<Vec<Kdop>>,
    edge_volumes: OnceLock<Vec<Kdop>>,
}

/// What a step's geometry is made from.
#[derive(Clone, Copy, Debug)]
pub struct Geometry<'a> {
    /// The cloth's features and trees.
    pub cloth: &'a ClothSurface,
    /// Bodies, prepared for the same reach.
    pub bodies: &'a [Body],
    /// Velocity of each body in m/s.
    pub body_velocities: &'a [DVec3],
    /// Distance to keep in m.
    pub thickness: f64,
    /// Distance within which a contact is reported, in m; at least the thickness.
    pub reach: f64,
    /// Whether cloth is tested against cloth.
    pub self_collision: bool,
}

impl<'a> Snapshot<'a> {
    /// The geometry of a step from `time` to `time + dt`, with positions `x` and velocities `v` of all
    /// cloth vertices.
    #[must_use]
    pub fn new(
        geometry: &Geometry<'a>,
        x: &'a [DVec3],
        v: &'a [DVec3],
        time: f64,
        dt: f64,
    ) -> Self {
        let empty = |n: usize| (0..n).map(|_| OnceLock::new()).collect();
        Self {
            cloth: geometry.cloth,
            bodies: geometry.bodies,
            body_velocities: geometry.body_velocities,
            x,
            v,
            time,
            dt,
            thickness: geometry.thickness,
            reach: geometry.reach,
            self_collision: geometry.self_collision,
            patch_volumes: empty(geometry.cloth.patches().len()),
            body_volumes: empty(geometry.bodies.len()),
            vertex_volumes: OnceLock::new(),
            edge_volumes: OnceLock::new(),
        }
    }

    /// All top-level tests of the step, in a fixed order, before any volume is looked at: every patch
    /// against itself, against every other, and against every body [TB06 §4.2.1].
    pub fn targets(&self) -> impl Iterator<Item = Target> + use<> {
        let patches = self.cloth.patches().len() as u32;
        let bodies = self.bodies.len() as u32;
        let with_cloth = if self.self_collision { patches } else { 0 };
        (0..patches).flat_map(move |p| {
            let itself = (with_cloth > 0).then_some(Target::Patch(p));
            let others = (p + 1..with_cloth).map(move |q| Target::Patches(p, q));
            let against = (0..bodies).map(move |b| Target::PatchBody(p, b));
            itself.into_iter().chain(others).chain(against)
        })
    }

    /// Volumes of a patch's tree.
    pub(super) fn patch_volumes(&self, patch: u32) -> &[Kdop] {
        self.patch_volumes[patch as usize].get_or_init(|| {
            let triangles = self.cloth.surface().triangles();
            self.cloth.patches()[patch as usize].refit(|triangle| {
                let [a, b, c] = triangles[triangle as usize].map(|v| self.swept(v));
                Kdop::around(&[a[0], b[0], c[0], a[1], b[1], c[1]], 0.5 * self.reach)
            })
        })
    }

    /// Volume of a cloth vertex.
    pub(super) fn vertex_volume(&self, vertex: u32) -> &Kdop {
        let all =
            || (0..self.x.len() as u32).map(|v| Kdop::around(&self.swept(v), 0.5 * self.reach));
        &self.vertex_volumes.get_or_init(|| all().collect())[vertex as usize]
    }

    /// Volume of a cloth edge.
    pub(super) fn edge_volume(&self, edge: u32) -> &Kdop {
        let around = |&[a, b]: &[u32; 2]| {
            let (a, b) = (self.swept(a), self.swept(b));
            Kdop::around(&[a[0], b[0], a[1], b[1]], 0.5 * self.reach)
        };
        let all = || self.cloth.surface().edges().iter().map(around).collect();
        &self.edge_volumes.get_or_init(all)[edge as usize]
    }

    /// Where a cloth vertex begins and where its velocity takes it.
    fn swept(&self, vertex: u32) -> [DVec3; 2] {
        let x = self.x[vertex as usize];
        [x, x + self.v[vertex as usize] * self.dt]
    }

    /// Volumes of a body's tree; none for an analytic body.
    pub(super) fn body_volumes(&self, body: u32) -> &[Kdop] {
        let Body::Triangles(surface) = &self.bodies[body as usize] else {
            return &[];
        };
        let velocity = self.body_velocities[body as usize];
        if velocity == DVec3::ZERO {
            return &surface.volumes;
        }
        self.body_volumes[body as usize]
            .get_or_init(|| surface.swept(self.body_offset(body), velocity * self.dt, self.reach))
    }

    /// How far a body has moved since time 0, in m.
    pub(super) fn body_offset(&self, body: u32) -> DVec3 {
        self.body_velocities[body as usize] * self.time
    }
}
