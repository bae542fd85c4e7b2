//! The vertices and triangles of a scene, which tell what memory it needs before it is set up.

use super::World;
use super::sampled::Cells;
use crate::mesh::TriMesh;
use crate::scene::{Body, ClothSource, Scene, Surface};

/// How many samples of a body that deforms are kept.
const SAMPLES: f64 = 3.0;
/// The bytes of a mesh and the boxes around it, for each triangle.
const OF_MESH: f64 = 110.0;

/// The vertices and triangles of the meshes of a scene, as far as they are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeshCounts {
    /// Vertices of cloth.
    pub vertices: u64,
    /// Triangles of cloth.
    pub triangles: u64,
    /// Triangles of bodies that cloth meets as triangles.
    pub body_triangles: u64,
    /// Triangles of bodies that cloth meets by their sampled distance.
    pub sampled_triangles: u64,
    /// The bytes of the samples of these bodies.
    pub sample_bytes: u64,
    /// Whether what is made of cloth is mapped from a prepared world, and not made.
    pub mapped: bool,
}

impl MeshCounts {
    /// The cloths that are grids, which are known without making them.
    #[must_use]
    pub fn of_grids(scene: &Scene) -> Self {
        let mut counts = Self::default();
        for cloth in &scene.cloths {
            if let ClothSource::Grid {
                vertices: [x, y], ..
            } = cloth.source
            {
                let (x, y) = (x as u64, y as u64);
                let cells = x.saturating_sub(1).saturating_mul(y.saturating_sub(1));
                counts.vertices = counts.vertices.saturating_add(x.saturating_mul(y));
                counts.triangles = counts.triangles.saturating_add(cells.saturating_mul(2));
            }
        }
        counts
    }

    /// The meshes of a world.
    #[must_use]
    pub fn of_world(world: &World) -> Self {
        let mut counts = Self {
            vertices: world.model().start().len() as u64,
            triangles: world.model().triangles().len() as u64,
            ..Self::default()
        };
        for (body, mesh) in world.scene().bodies.iter().zip(world.body_meshes()) {
            counts.add_body(world.scene(), body, mesh);
        }
        counts
    }

    /// Adds a cloth.
    pub fn add_cloth(&mut self, mesh: &TriMesh) {
        self.vertices += mesh.positions.len() as u64;
        self.triangles += mesh.triangles.len() as u64;
    }

    /// Adds a body of a scene. The triangles of analytic ones are for pictures, and take next to
    /// nothing.
    pub fn add_body(&mut self, scene: &Scene, body: &Body, mesh: &TriMesh) {
        let triangles = mesh.triangles.len() as u64;
        match body.surface {
            Surface::Triangles { .. } => self.body_triangles += triangles,
            Surface::Analytic => {}
            Surface::Distance { .. } => {
                self.sampled_triangles += triangles;
                let cells = Cells::new(scene, body, mesh);
                let bytes = cells.map_or(0.0, |cells| cells.expected(mesh).bytes);
                // There are several samples at a time of one that deforms, each with its mesh.
                let bytes = match body.deformation {
                    Some(_) => SAMPLES * (bytes + OF_MESH * triangles as f64),
                    None => bytes,
                };
                self.sample_bytes = self.sample_bytes.saturating_add(bytes as u64);
            }
        }
    }

    /// The largest of the counts of both.
    #[must_use]
    pub fn at_least(self, other: Self) -> Self {
        Self {
            vertices: self.vertices.max(other.vertices),
            triangles: self.triangles.max(other.triangles),
            body_triangles: self.body_triangles.max(other.body_triangles),
            sampled_triangles: self.sampled_triangles.max(other.sampled_triangles),
            sample_bytes: self.sample_bytes.max(other.sample_bytes),
            mapped: self.mapped && other.mapped,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::build_cloth;
    use crate::scene::built_in::BUILT_IN;

    #[test]
    fn grids_have_as_many_vertices_and_triangles_as_are_made() {
        let mut grids = 0;
        for scene in BUILT_IN {
            let scene = Scene::find(std::path::Path::new(scene.name), &[]).unwrap();
            let mut counts = MeshCounts::default();
            for cloth in &scene.cloths {
                if matches!(cloth.source, ClothSource::Grid { .. }) {
                    counts.add_cloth(&build_cloth(cloth).unwrap());
                    grids += 1;
                }
            }
            assert_eq!(counts, MeshCounts::of_grids(&scene), "{}", scene.name);
        }
        assert!(grids > 0);
    }
}
