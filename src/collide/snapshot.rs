//! One step's geometry: everything that collision tests read.
//!
//! Volumes bound what a triangle sweeps over in the step, inflated by half the reach of contacts; they are a function
//! of positions and velocities alone. So are those of vertices, by which pairs of features are sorted
//! out whose triangles meet, as those of neighbours always do.

use glam::DVec3;

use super::body::Body;
use super::kdop::Kdop18;
use super::surface::ClothSurface;
use super::test_run::Target;
use super::volumes::Volumes;

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
    volumes: &'a Volumes,
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
    /// cloth vertices. Their volumes are kept in `volumes`, for one snapshot at a time.
    #[must_use]
    pub fn new(
        geometry: &Geometry<'a>,
        volumes: &'a mut Volumes,
        x: &'a [DVec3],
        v: &'a [DVec3],
        time: f64,
        dt: f64,
    ) -> Self {
        let cloth = geometry.cloth;
        let (radius, bodies) = (0.5 * geometry.reach, geometry.bodies.len());
        volumes.begin((x, v, dt), radius, cloth.patch_vertices(), bodies);
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
            volumes,
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

    /// Volume of the root of a patch's tree.
    pub(super) fn patch_root(&self, patch: u32) -> &Kdop18 {
        &self.volumes.roots[patch as usize]
    }

    /// Volumes of a patch's tree.
    pub(super) fn patch_volumes(&self, patch: u32) -> &[Kdop18] {
        let tree = &self.cloth.patches()[patch as usize];
        let surface = self.cloth.surface();
        let vertices = &self.volumes.vertices;
        self.volumes.patches[patch as usize].of(tree, |triangle| {
            let [a, b, c] = surface.face(triangle).corners;
            let [a, b, c] = [a, b, c].map(|v| &vertices[v as usize]);
            a.union(b).union(c)
        })
    }

    /// Volume of each cloth vertex.
    pub(super) fn vertex_volumes(&self) -> &[Kdop18] {
        &self.volumes.vertices
    }

    /// Volumes of a body's tree; none for an analytic body.
    pub(super) fn body_volumes(&self, body: u32) -> &[Kdop18] {
        let Body::Triangles(surface) = &self.bodies[body as usize] else {
            return &[];
        };
        let velocity = self.body_velocities[body as usize];
        if velocity == DVec3::ZERO {
            return &surface.volumes;
        }
        let (offset, step) = (self.body_offset(body), velocity * self.dt);
        self.volumes.bodies[body as usize].of(&surface.tree, |triangle| {
            surface.swept(triangle, offset, step, self.reach)
        })
    }

    /// How far a body has moved since time 0, in m.
    pub(super) fn body_offset(&self, body: u32) -> DVec3 {
        self.body_velocities[body as usize] * self.time
    }
}
