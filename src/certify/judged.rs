//! A scene as the judge sees it: plain arrays of triangles and positions.
//!
//! Vertices of cloth come in the order of the scene, cloth after cloth, and those of bodies behind
//! them. A body takes part if collisions see it as triangles; an analytic one has none. For one
//! that cloth meets by its sampled distance, vertices inside of its mesh are counted.

use std::collections::BTreeSet;

use glam::DVec3;
use weft_judge::{Piece, Position, State, Surface, SurfaceError};

use crate::collide::Collider;
use crate::collide::bodies::DistanceBody;
use crate::step::{CheckedState, World};

/// The arrays of a scene.
#[derive(Debug)]
pub struct Judged<'w> {
    world: &'w World,
    surface: Surface,
    /// The numbers of the bodies that take part.
    bodies: Vec<usize>,
    /// The names of the bodies that do not.
    outside: Vec<String>,
    /// The bodies that are judged by vertices alone, with their numbers and names.
    sampled: Vec<(u32, String, &'w DistanceBody)>,
}

impl<'w> Judged<'w> {
    /// The arrays of a world.
    ///
    /// # Errors
    /// The triangles of a mesh are none.
    pub fn new(world: &'w World) -> Result<Self, SurfaceError> {
        let scene = world.scene();
        let mut pieces: Vec<Piece> = Vec::new();
        let mut piece = |name: &str, is_body: bool, count: usize, passes_itself: bool| {
            let start = pieces.last().map_or(0, |last| last.vertices.end);
            pieces.push(Piece {
                name: name.to_owned(),
                is_body,
                vertices: start..start + count as u32,
                passes_itself,
                sewn: Vec::new(),
            });
            start
        };
        let cloths = world.model().cloth_of_vertex();
        for (index, cloth) in scene.cloths.iter().enumerate() {
            let own = cloths.iter().filter(|of| **of as usize == index);
            piece(&cloth.name, false, own.count(), !cloth.self_collision);
        }
        let old = world.tree().new_to_old();
        let corners = world.model().triangles().iter();
        let mut triangles: Vec<[u32; 3]> = corners.map(|t| t.map(|v| old[v as usize])).collect();
        // Triangles of one cloth stand together, and so do their vertices.
        triangles.sort_by_key(|corners| corners.iter().copied().min());
        let (mut bodies, mut outside, mut sampled) = (Vec::new(), Vec::new(), Vec::new());
        let colliders = world.geometry().bodies.iter().zip(world.body_meshes());
        for (index, (collider, mesh)) in colliders.enumerate() {
            let name = &scene.bodies[index].name;
            match collider {
                Collider::Triangles(_) => {}
                Collider::Analytic(_) => {
                    outside.push(name.clone());
                    continue;
                }
                Collider::Distance(body) => {
                    sampled.push((index as u32, name.clone(), &**body));
                    continue;
                }
            }
            let first = piece(name, true, mesh.positions.len(), false);
            triangles.extend(mesh.triangles.iter().map(|t| t.map(|v| first + v)));
            bodies.push(index);
        }
        for [v, w] in world.sewn_in_order() {
            let of = pieces.iter_mut().find(|piece| piece.vertices.contains(&v));
            if let Some(piece) = of {
                piece.sewn.push([v, w]);
            }
        }
        Ok(Self {
            world,
            surface: Surface::new(pieces, triangles)?,
            bodies,
            outside,
            sampled,
        })
    }

    /// The triangles.
    #[must_use]
    pub fn surface(&self) -> &Surface {
        &self.surface
    }

    /// The names of the bodies that take no part, for they have no triangles.
    #[must_use]
    pub fn outside(&self) -> &[String] {
        &self.outside
    }

    /// The names of the bodies that are judged by vertices alone, for cloth meets their sampled
    /// distance.
    pub fn sampled(&self) -> impl Iterator<Item = &str> {
        self.sampled.iter().map(|(_, name, _)| name.as_str())
    }

    /// How many vertices of a state are inside of bodies that are judged by vertices alone: deeper
    /// in their meshes than samples can err. Vertices that are marked as squeezed are left out.
    #[must_use]
    pub fn inside(&self, checked: &CheckedState) -> u64 {
        let motions = self.world.geometry().body_motions;
        let old = self.world.tree().new_to_old();
        let of_body = |&(index, _, body): &(u32, String, &DistanceBody)| {
            let pose = motions[index as usize].at(checked.time);
            let (mesh, distance) = (body.mesh_then(checked.time), body.then(checked.time));
            let is_inside = |(v, x): &(usize, &DVec3)| {
                let seen = pose.undo(**x);
                mesh.depth(seen) > distance.bound(seen)
                    && !checked.squeezed.contains(&[old[*v], index])
            };
            checked
                .positions
                .iter()
                .enumerate()
                .filter(is_inside)
                .count() as u64
        };
        self.sampled.iter().map(of_body).sum()
    }

    /// A state: positions of the cloth's vertices in m, in the numbering of the patch tree.
    #[must_use]
    pub fn state(&self, checked: &CheckedState) -> State {
        let cloth = self.world.original_order(&checked.positions);
        let mut positions: Vec<Position> = cloth.iter().map(DVec3::to_array).collect();
        let moved = self.world.moved_bodies(checked.time);
        for &body in &self.bodies {
            let there = moved.iter().find(|(index, _)| *index == body);
            let mesh = there.map_or_else(|| &self.world.body_meshes()[body], |(_, mesh)| mesh);
            positions.extend(mesh.positions.iter().map(|p| p.to_array()));
        }
        // The pieces of bodies follow those of cloths.
        let cloths = self.world.scene().cloths.len();
        let squeezed = checked.squeezed.iter().filter_map(|&[vertex, body]| {
            let mut bodies = self.bodies.iter();
            let piece = bodies.position(|&index| index == body as usize)?;
            Some((vertex, (cloths + piece) as u32))
        });
        State {
            time: checked.time,
            positions,
            squeezed: squeezed.collect(),
            // The last bit tells what is through, which the judge does not ask.
            kept: checked
                .kept
                .iter()
                .map(|[v, of]| (*v, of >> 1))
                .collect::<BTreeSet<_>>()
                .into_iter()
                .collect(),
        }
    }
}
