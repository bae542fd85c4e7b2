//! Cloth as a scene starts it: what pins hold, how fast it is, and that it crosses nothing.

use std::ops::Range;

use glam::DVec3;

use super::error::WorldError;
use crate::collide::Passing;
use crate::collide::audit::Skin;
use crate::collide::{BodyMotion, Solid};
use crate::mesh::{FileMesh, TriMesh};
use crate::parallel;
use crate::physics::{ClothModel, Stitch};
use crate::scene::{Body, Cloth, Held, Pin, Scene, Slide, Surface};

/// Finds the pin that holds each vertex.
pub(super) fn pins_of_vertices(
    file: &FileMesh,
    cloth: &Cloth,
    bodies: &[Body],
    at_start: &BodiesAtStart<'_>,
) -> Result<Vec<Option<usize>>, WorldError> {
    let mesh = &file.mesh;
    let mut pin_of: Vec<Option<usize>> = vec![None; mesh.positions.len()];
    for (index, pin) in cloth.pins.iter().enumerate() {
        let body = pin.follow.as_ref().filter(|_| pin.slide != Slide::Nowhere);
        let body = bodies.iter().find(|of| Some(&of.name) == body);
        if let Some(body) = body.filter(|body| body.deformation.is_some()) {
            return Err(WorldError::SlidesOnDeforming {
                cloth: cloth.name.clone(),
                pin: index,
                body: body.name.clone(),
            });
        }
        let held: Vec<usize> = match &pin.held {
            &Held::Nearest(point) => {
                let nearest = (0..pin_of.len()).min_by(|&a, &b| {
                    let distance = |v: usize| mesh.positions[v].distance_squared(point);
                    distance(a).total_cmp(&distance(b))
                });
                nearest.into_iter().collect()
            }
            &Held::Box { min, max } => (mesh.positions.iter().enumerate())
                .filter(|(_, p)| p.cmpge(min).all() && p.cmple(max).all())
                .map(|(vertex, _)| vertex)
                .collect(),
            Held::Group(name) => {
                let group = file.groups.iter().find(|group| group.name == *name);
                let group = group.ok_or_else(|| WorldError::NoGroup {
                    cloth: cloth.name.clone(),
                    pin: index,
                    group: name.clone(),
                    there: file.group_names.clone(),
                })?;
                group
                    .vertices
                    .iter()
                    .map(|&vertex| vertex as usize)
                    .collect()
            }
            Held::Vertices(numbers) => {
                let there = file.vertices();
                let mut held = Vec::new();
                for &number in numbers {
                    let vertex = file.vertex(number).ok_or_else(|| WorldError::NoVertex {
                        cloth: cloth.name.clone(),
                        pin: index,
                        vertex: number,
                        there,
                    })?;
                    held.push(vertex as usize);
                }
                held
            }
            Held::Near { body, within } => {
                let number = bodies.iter().position(|of| of.name == *body);
                let distances =
                    number.map_or_else(Vec::new, |number| at_start.distances(number, mesh));
                let held: Vec<usize> = (0..distances.len())
                    .filter(|&vertex| distances[vertex] <= *within)
                    .collect();
                if held.is_empty() {
                    let of_vertices = distances.into_iter().enumerate();
                    let nearest = of_vertices.min_by(|(_, a), (_, b)| a.total_cmp(b));
                    return Err(WorldError::NothingNear {
                        cloth: cloth.name.clone(),
                        pin: index,
                        body: body.clone(),
                        within: *within,
                        nearest: nearest.filter(|(_, distance)| distance.is_finite()),
                    });
                }
                held
            }
        };
        if held.is_empty() {
            return Err(WorldError::EmptyPin {
                cloth: cloth.name.clone(),
                pin: index,
                remedy: match &pin.held {
                    Held::Group(_) => "put vertices of the cloth into its group, or leave it out",
                    Held::Vertices(_) => "give it the numbers of some, or leave it out",
                    Held::Nearest(_) | Held::Box { .. } | Held::Near { .. } => {
                        "move its box over the cloth"
                    }
                },
            });
        }
        for vertex in held {
            let first = *pin_of[vertex].get_or_insert(index);
            if !cloth.pins[first].does_as(pin) {
                return Err(WorldError::PinsDiffer {
                    cloth: cloth.name.clone(),
                    pins: [first, index],
                    vertex,
                });
            }
        }
    }
    Ok(pin_of)
}

/// The velocity in m/s with which a vertex starts that a pin holds, of cloth that starts with some.
pub(super) fn start_velocity(pin: &Pin, of_cloth: DVec3) -> DVec3 {
    let [from, _] = pin.holding();
    if from > 0.0 {
        return of_cloth;
    }
    let free = pin.slide.free();
    free * (of_cloth - pin.velocity) + pin.velocity
}

/// The bodies of a scene at time 0.
pub(super) struct BodiesAtStart<'a> {
    pub(super) solids: &'a [Solid],
    pub(super) motions: &'a [BodyMotion],
    pub(super) skins: &'a [Skin<'a>],
}

impl BodiesAtStart<'_> {
    /// The distance in m of each vertex of a mesh from the surface of a body, on either side;
    /// infinite beside a square of triangles.
    fn distances(&self, body: usize, mesh: &TriMesh) -> Vec<f64> {
        let (solid, pose) = (&self.solids[body], self.motions[body].at(0.0));
        let distance = |vertex: usize| solid.gap(pose.undo(mesh.positions[vertex])).abs();
        parallel::map(mesh.positions.len(), distance)
    }
}

/// The number of vertices that are looked at in one go.
const PIECE: usize = 1 << 12;

/// Refuses cloth that starts inside a body, or across its surface.
pub(super) fn check_start(
    scene: &Scene,
    bodies: &BodiesAtStart<'_>,
    cloth: &str,
    mesh: &TriMesh,
) -> Result<(), WorldError> {
    let placed = (bodies.solids.iter())
        .zip(bodies.motions)
        .map(|(solid, motion)| (solid, motion.at(0.0)));
    for (body, (solid, pose)) in scene.bodies.iter().zip(placed) {
        let depth = |vertex: usize| solid.depth(pose.undo(mesh.positions[vertex]));
        let first_inside = |mut vertices: Range<usize>| vertices.find(|&v| depth(v) > 0.0);
        let inside = parallel::map_ranges(mesh.positions.len(), PIECE, first_inside);
        if let Some(vertex) = inside.into_iter().flatten().next() {
            return Err(WorldError::StartsInside {
                cloth: cloth.to_owned(),
                vertex,
                body: body.name.clone(),
                depth: depth(vertex),
            });
        }
    }
    let of_triangles = |body: &Body| matches!(body.surface, Surface::Triangles { .. });
    if !scene.bodies.iter().any(of_triangles) {
        return Ok(());
    }
    let own = skin(mesh);
    for (body, other) in scene.bodies.iter().zip(bodies.skins) {
        let pairs = match body.surface {
            Surface::Triangles { .. } => own.crossings_with(other).pairs(),
            Surface::Analytic | Surface::Distance { .. } => 0,
        };
        if pairs > 0 {
            return Err(WorldError::StartsAcross {
                cloth: cloth.to_owned(),
                body: body.name.clone(),
                pairs,
            });
        }
    }
    Ok(())
}

/// A thickness is at least this share of the largest coordinate: what positions are known to where
/// volumes and bounds are kept in single precision.
const LEAST_THICKNESS: f64 = 1e-8;

/// Refuses a thickness that is lost in the rounding of the positions of a mesh. `own` is that of
/// the cloth or body, if it has one.
pub(super) fn check_thickness(
    mesh: &TriMesh,
    own: Option<f64>,
    scene: &Scene,
    of: &str,
) -> Result<(), WorldError> {
    let coordinates = mesh.positions.iter().map(|p| p.abs().max_element());
    let farthest = coordinates.fold(0.0, f64::max);
    let thickness = scene.thickness(own);
    if thickness >= LEAST_THICKNESS * farthest {
        return Ok(());
    }
    Err(WorldError::LostThickness {
        of: of.to_owned(),
        key: match own {
            Some(_) => "thickness",
            None => "contact.thickness",
        },
        thickness,
        farthest,
        least: LEAST_THICKNESS * farthest,
    })
}

/// The cloth that passes through itself, of vertices that belong to these cloths.
pub(super) fn passing(scene: &Scene, cloth_of_vertex: &[u32]) -> Passing {
    let passes = |cloth: u32| !scene.cloths[cloth as usize].self_collision;
    Passing::new(cloth_of_vertex, passes)
}

/// The features of a model's cloth that pass through each other.
pub(super) fn passing_of(scene: &Scene, model: &ClothModel) -> Passing {
    let stitches = model.stitches().iter();
    passing(scene, model.cloth_of_vertex()).sewn(stitches.flat_map(Stitch::neighbours))
}

/// Refuses cloths that start crossing each other or themselves.
pub(super) fn check_crossings(scene: &Scene, model: &ClothModel) -> Result<(), WorldError> {
    let skin = Skin::new(model.start(), model.triangles());
    let found = skin.letting(passing_of(scene, model)).crossings();
    let Some(&(edge, triangle)) = found.first() else {
        return Ok(());
    };
    let name = |vertex: u32| {
        let cloth = model.cloth_of_vertex()[vertex as usize] as usize;
        scene.cloths[cloth].name.clone()
    };
    Err(WorldError::StartsCrossing {
        edge: name(edge[0]),
        triangle: name(model.triangles()[triangle as usize][0]),
        others: found.len() - 1,
    })
}

/// A mesh as audits see it.
pub(super) fn skin(mesh: &TriMesh) -> Skin<'_> {
    Skin::new(&mesh.positions, &mesh.triangles)
}
