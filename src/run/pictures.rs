//! Pictures of a run: all ranks draw, each some bands of rows, and rank 0 puts them together.
//!
//! A picture takes as long as some steps, and every rank knows where everything is.

use glam::DVec3;
use weft_runtime::comm::{Collectives, Comm, CommError, Rank};

use crate::output::{Camera, Drawing, Item, Picture, weave};
use crate::scene::Shape;
use crate::step::{Simulation, World};

/// Linear colours of front and back of cloth, of bodies, and of flat ones.
const CLOTH: [[f32; 3]; 2] = [[0.50, 0.05, 0.05], [0.60, 0.28, 0.12]];
const BODY: [f32; 3] = [0.22, 0.36, 0.50];
const FLAT: [f32; 3] = [0.66, 0.66, 0.63];

/// The data with which a rank draws.
pub(super) struct Pictures<'w> {
    world: &'w World,
    camera: Camera,
}

impl<'w> Pictures<'w> {
    pub(super) fn new(world: &'w World) -> Self {
        Self {
            world,
            camera: camera(world),
        }
    }

    /// Draws the cloth and the bodies as they are now; rank 0 gets the picture. Collective.
    pub(super) fn draw(
        &self,
        simulation: &Simulation<'_>,
        comm: &mut dyn Comm,
    ) -> Result<Option<Picture>, CommError> {
        let scene = self.world.scene();
        let size = scene.output.picture_size;
        let mut items = vec![Item {
            positions: simulation.positions(),
            triangles: self.world.model().triangles(),
            front: CLOTH[0],
            back: CLOTH[1],
            smooth: true,
        }];
        let moved = self.world.moved_bodies(simulation.time());
        let meshes = scene.bodies.iter().zip(self.world.body_meshes());
        items.extend(meshes.enumerate().map(|(index, (body, still))| {
            let moved = moved.iter().find(|(i, _)| *i == index);
            let mesh = moved.map_or(still, |(_, mesh)| mesh);
            let flat = matches!(body.shape, Shape::Plane { .. } | Shape::Box { .. });
            let color = if flat { FLAT } else { BODY };
            Item {
                positions: &mesh.positions,
                triangles: &mesh.triangles,
                front: color,
                back: color,
                smooth: !flat,
            }
        }));
        let drawing = Drawing::new(&items, &self.camera, size);
        let (rank, ranks) = (comm.rank().index(), comm.size());
        let team = simulation.team();
        let mut drawn = vec![Vec::new(); team.threads()];
        let shares = ranks * drawn.len();
        team.run(drawn.iter_mut().enumerate(), |(thread, drawn)| {
            *drawn = drawing.share(rank + thread * ranks, shares);
        });
        let own = weave(&drawn, size[0]).unwrap_or_default();
        let Some(all) = comm.gather(Rank(0), own)? else {
            return Ok(None);
        };
        let picture = Picture::of_shares(&all, size).ok_or_else(|| CommError::Malformed {
            from: Rank(0),
            what: "bands that make no picture".to_owned(),
        })?;
        Ok(Some(picture))
    }
}

/// The camera of pictures: as the scene says, or so that cloth and bodies are seen.
fn camera(world: &World) -> Camera {
    let scene = world.scene();
    let (mut low, mut high) = (DVec3::INFINITY, DVec3::NEG_INFINITY);
    let mut include = |p: DVec3| {
        low = low.min(p);
        high = high.max(p);
    };
    world.model().start().iter().for_each(|&p| include(p));
    for (body, mesh) in scene.bodies.iter().zip(world.body_meshes()) {
        if let Shape::Plane { point, .. } = body.shape {
            // As much of a plane as lies under the rest.
            include(DVec3::new(0.0, 0.0, point.z));
        } else {
            mesh.positions.iter().for_each(|&p| include(p));
        }
    }
    let framing = Camera::framing(low, high);
    match (scene.output.camera, scene.output.look_at) {
        (Some(eye), target) => Camera::new(eye, target.unwrap_or(0.5 * (low + high))),
        (None, Some(target)) => {
            let shift = target - 0.5 * (low + high);
            Camera::framing(low + shift, high + shift)
        }
        (None, None) => framing,
    }
}
