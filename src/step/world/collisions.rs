//! Cloth and bodies as collision tests see them: trees, charts, distances.

use std::sync::Arc;

use weft_partition::PatchTree;

use super::margin;
use super::start::passing_of;
use crate::collide::bodies::{Analytic, AnalyticBody, BodySurface, Coarseness};
use crate::collide::certify::Scenery;
use crate::collide::{ClothSurface, Collider, Distances, Solid};
use crate::mesh::TriMesh;
use crate::physics::ClothModel;
use crate::scene::{Body, Culling, Scene, Surface};

/// The parts of a world that collision tests read.
pub(super) struct Collisions {
    pub(super) surface: ClothSurface,
    pub(super) distances: Distances,
    pub(super) bodies: Vec<Collider>,
    /// All triangles that certification looks at, if the scene asks for it.
    pub(super) scenery: Option<Arc<Scenery>>,
}

/// The triangles of bodies where they are placed.
pub(super) struct BodiesAtRest<'a> {
    pub(super) meshes: &'a [TriMesh],
    /// The number of the first triangle of each body that has two sides.
    pub(super) two_sided: &'a [u32],
    /// The spaces that they enclose.
    pub(super) solids: &'a [Solid],
}

impl Collisions {
    /// The collisions of a model in the numbering of the patch tree. `spans` are the
    /// widths in m of the widest face of each cloth.
    pub(super) fn new(
        scene: &Scene,
        model: &ClothModel,
        tree: &PatchTree,
        bodies: &BodiesAtRest<'_>,
        spans: &[f64],
    ) -> Self {
        let of_bodies: Vec<f64> = (scene.bodies.iter())
            .map(|body| scene.thickness(body.thickness))
            .collect();
        let of_vertices: Vec<f64> = (model.cloth_of_vertex().iter())
            .map(|&cloth| scene.thickness(scene.cloths[cloth as usize].thickness))
            .collect();
        let patch_of = |vertex| tree.patch_of(vertex);
        let surface = ClothSurface::sharing(model.shared(), tree.patch_count(), patch_of)
            .letting(passing_of(scene, model));
        let surface = match scene.cloths.iter().any(|cloth| cloth.rest.is_some()) {
            true => surface.with_shortening(model.shortening()),
            false => surface,
        };
        let own = surface.patch_vertices();
        let distances = Distances::new(&of_vertices, own, &of_bodies, margin(scene));
        let smooth = scene.contact.culling == Culling::Smooth && scene.contact.self_collision;
        let surface = match smooth {
            true => surface.with_culling(distances.cloth_reach()),
            false => surface,
        };
        let bodies = colliders(scene, &distances, bodies, spans);
        let scenery = || {
            Arc::new(Scenery::new(
                surface.shared_surface(),
                model.start(),
                &bodies,
            ))
        };
        Self {
            scenery: scene.contact.certify.then(scenery),
            surface,
            distances,
            bodies,
        }
    }
}

/// The bodies of a scene as collisions see them. `spans` are the widths in m of the widest face of
/// each cloth.
pub(super) fn colliders(
    scene: &Scene,
    distances: &Distances,
    bodies: &BodiesAtRest<'_>,
    spans: &[f64],
) -> Vec<Collider> {
    let collider = |((body, solid), (mesh, &two_sided)): (_, (_, &u32))| {
        let (body, solid, mesh): (&Body, &Solid, &TriMesh) = (body, solid, mesh);
        if let Some(sampled) = solid.sampled() {
            return Collider::Distance(Arc::clone(sampled));
        }
        let thickness = scene.thickness(body.thickness);
        let coarseness: Vec<Coarseness> = (spans.iter().zip(&scene.cloths))
            .map(|(&span, cloth)| Coarseness {
                span,
                distance: 0.5 * scene.thickness(cloth.thickness) + 0.5 * thickness,
            })
            .collect();
        match (body.surface, Analytic::new(&body.shape)) {
            (Surface::Analytic, Some(shape)) => {
                Collider::Analytic(AnalyticBody::new(shape, &coarseness))
            }
            _ => {
                let reach = distances.reach(thickness);
                let surface = BodySurface::with_sides(mesh, reach, &coarseness, two_sided);
                Collider::Triangles(Box::new(surface))
            }
        }
    };
    let meshes = bodies.meshes.iter().zip(bodies.two_sided);
    let bodies = scene.bodies.iter().zip(bodies.solids).zip(meshes);
    bodies.map(collider).collect()
}
