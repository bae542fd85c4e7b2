//! Pictures of a run: all ranks draw, each some bands of rows, and rank 0 puts them together.
//!
//! A picture takes as long as some steps, and every rank knows where everything is.

use glam::DVec3;
use weft_runtime::comm::{Collectives, Comm, CommError, Rank};

use crate::output::{Camera, Checker, Drawing, Item, Picture, look, weave};
use crate::scene::{Colours, Shape};
use crate::step::{Simulation, World};

/// The data with which a rank draws.
pub(super) struct Pictures<'w> {
    world: &'w World,
    camera: Camera,
    /// The triangles of each cloth, if cloths have colours of their own, or else of all.
    cloths: Vec<Vec<[u32; 3]>>,
    checkers: Vec<Checker<'w>>,
    /// The mean of all cloth where it starts, in m.
    middle: DVec3,
}

impl<'w> Pictures<'w> {
    pub(super) fn new(world: &'w World) -> Self {
        let model = world.model();
        let colours = world.scene().output.colours;
        let cloths = if colours == Colours::Plain {
            vec![model.triangles().to_vec()]
        } else {
            let mut cloths = vec![Vec::new(); world.scene().cloths.len()];
            for triangle in model.triangles() {
                cloths[model.cloth_of_vertex()[triangle[0] as usize] as usize].push(*triangle);
            }
            cloths
        };
        let checker = |triangles: &Vec<[u32; 3]>| {
            let vertices = triangles.iter().flatten().map(|&v| v as usize);
            look::checker(model.start(), vertices)
        };
        let checkers = if colours == Colours::Checker {
            cloths.iter().map(checker).collect()
        } else {
            Vec::new()
        };
        Self {
            world,
            camera: camera(world),
            cloths,
            checkers,
            middle: look::middle(model.start()),
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
        let cloth = |(number, triangles)| {
            let [front, back] = look::of_cloth(number);
            Item {
                positions: simulation.positions(),
                triangles,
                front,
                back,
                smooth: true,
                checker: self.checkers.get(number).copied(),
            }
        };
        let mut items: Vec<Item<'_>> = (self.cloths.iter())
            .map(Vec::as_slice)
            .enumerate()
            .map(cloth)
            .collect();
        let moved = self.world.moved_bodies(simulation.time());
        let meshes = scene.bodies.iter().zip(self.world.body_meshes());
        items.extend(meshes.enumerate().map(|(index, (body, still))| {
            let moved = moved.iter().find(|(i, _)| *i == index);
            let mesh = moved.map_or(still, |(_, mesh)| mesh);
            let flat = body.shape.is_flat();
            let color = look::of_body(flat);
            Item {
                positions: &mesh.positions,
                triangles: &mesh.triangles,
                front: color,
                back: color,
                smooth: !flat,
                checker: None,
            }
        }));
        let camera = if scene.output.camera_follows {
            let way = look::middle(simulation.positions()) - self.middle;
            self.camera.moved_by(way)
        } else {
            self.camera
        };
        let drawing = Drawing::new(&items, &camera, size);
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

/// The camera of pictures at the start: as the scene says, or so that cloth and bodies are seen.
pub(super) fn camera(world: &World) -> Camera {
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
