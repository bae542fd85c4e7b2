//! Everything about a scene that does not change: built once, the same on every rank.
//!
//! | module | holds |
//! |---|---|
//! | `set_up` | how all of it is made: bodies, cloths, the cut, trees |
//! | `start` | cloth as a scene starts it |
//! | `cutting` | the cut into patches and aggregates |
//! | `counts` | how many vertices and triangles a scene has, for those who refuse it |
//! | `collisions` | trees and charts for collision tests |
//! | `prescribed_motion` | vertices that pins hold |
//! | `patch_triangles` | which triangles touch which patch |
//! | `deforming` | bodies at any time, also those that deform |
//! | `friction` | the friction of each pair |
//! | `seams` | what seams sew to what |
//! | `prepared` | a cut that was made before, in a file |
//! | `prepared_world` | a whole world in a file, which processes map |
//! | `graphs` | graphs and trees of the partition in such files |
//! | `sampled` | bodies that cloth meets by their sampled distance |
//! | `sizes`, `warnings` | how large things are, and what is likely a mistake |
//! | `error` | why a scene cannot be simulated |

mod collisions;
mod counts;
mod cutting;
mod deforming;
mod error;
mod friction;
mod graphs;
mod patch_triangles;
mod prepared;
mod prepared_world;
pub(super) mod prescribed_motion;
mod sampled;
mod seams;
mod set_up;
mod sizes;
mod start;
mod warnings;

use std::sync::{Arc, OnceLock};

use glam::DVec3;
use sha2::{Digest as _, Sha256};
use weft_partition::{Aggregates, Graph, PatchTree};
use weft_runtime::wire::hex;

pub use self::counts::MeshCounts;
use self::cutting::{patch_options, wanted};
use self::deforming::moved;
pub use self::error::WorldError;
pub(crate) use self::friction::Friction;
use self::patch_triangles::PatchTriangles;
pub use self::prepared::PREPARED_CUT;
pub use self::prepared_world::{Mapping, PREPARED_WORLD, is_prepared_world};
use self::prescribed_motion::Pins;
pub use self::seams::SeamError;
use self::sizes::ToldOfCloths;
pub use self::sizes::{ObjectKind, ObjectSizes};
use self::start::passing;
use super::error::Named;
#[cfg(test)]
use crate::collide::audit::Met;
use crate::collide::audit::{Audited, Crossing, SampleError, Skin};
use crate::collide::certify::Scenery;
use crate::collide::tangles::Kept;
use crate::collide::{
    BodyMotion, ClothSurface, Collider, Distances, Extent, Geometry, Passing, Solid,
};
use crate::equal_runs::EqualRuns;
use crate::heap_bytes::{HeapBytes as _, counts_heap};
use crate::mesh::{Sizes, TriMesh, build_cloth};
use crate::parallel;
use crate::physics::{ClothModel, Stitch};
use crate::scene::defaults::GRAVITY;
use crate::scene::{ClothSource, Pipeline, Scene};
use crate::set_up_only::SetUpOnly;

/// Contacts are reported this much beyond the thickness, as a share of it: what forces may add to
/// the motion that a step starts with.
const MARGIN: f64 = 0.5;
/// The most that is added to that where contacts serve for all substeps of a step.
const MOST_ADDED: f64 = 2.0;

/// How much beyond their distance contacts are reported, as a share of it: where they serve for all
/// substeps of a step, farther by what cloth falls in that time.
fn margin(scene: &Scene) -> f64 {
    let fall = 0.5 * GRAVITY.length() * scene.time.step * scene.time.step;
    match scene.contact.pipeline {
        Pipeline::Search => MARGIN,
        Pipeline::History => MARGIN + (fall / scene.contact.thickness).min(MOST_ADDED),
    }
}

/// The cloths and bodies of a scene, cut into patches; vertices are numbered as in the patch tree.
#[derive(Debug)]
pub struct World {
    scene: Scene,
    model: ClothModel,
    mass: f64,
    tree: PatchTree,
    graphs: SetUpOnly<Graphs>,
    surface: ClothSurface,
    bodies: Vec<Collider>,
    /// All triangles that certification looks at, if the scene asks for it.
    scenery: Option<Arc<Scenery>>,
    body_meshes: Vec<TriMesh>,
    /// The sizes of bodies some of whose triangles are there once for each side, without that.
    sizes_of_mended: Vec<Option<Sizes>>,
    pub(super) solids: Vec<Solid>,
    body_motions: Vec<BodyMotion>,
    /// The checksums of what bodies deform by, and of the rest shapes of cloths that have their
    /// own.
    checksums: Vec<[u8; 32]>,
    friction: Friction,
    distances: Distances,
    pinned: Vec<bool>,
    pins: Pins,
    patch_triangles: PatchTriangles,
    velocities: EqualRuns<DVec3>,
    /// The width in m of the widest face of each cloth.
    spans: Vec<f64>,
    /// How many faces of four corners, and of more, the file of each cloth has.
    polygons: Vec<[usize; 2]>,
    /// How many vertices of each cloth's file were joined with others, where that was asked for.
    welded: Vec<Option<usize>>,
    /// Where the scene and its files say different things, in words.
    disagreements: Vec<String>,
    /// The defects of the meshes of bodies, in a line for each.
    defects: Vec<String>,
    start_crossings: Vec<Crossing>,
    kept_at_start: Kept,
    /// The box around all cloth at the start.
    start_extent: Extent,
    /// The mean length of an edge of cloth at rest, in m.
    mean_edge: f64,
    /// The pairs of patches that are near at rest, once somebody has asked.
    near_at_rest: OnceLock<Vec<[u32; 2]>>,
    /// The facts about the meshes of cloths, once somebody has asked.
    told_of_cloths: OnceLock<ToldOfCloths>,
    /// See [`Self::digest`], and the checksum of the file, if it was prepared.
    prepared: Option<(String, [u8; 32])>,
}

/// The graphs by which a cloth is cut and ranks set up their matrices, in the numbering of the
/// patch tree.
#[derive(Clone, Debug)]
pub struct Graphs {
    /// The graph of the system matrix.
    pub matrix: Graph,
    /// The vertices that triangles couple.
    pub near: Graph,
    /// The vertices that only hinges and plates couple.
    pub far: Graph,
    /// Patches cut further, if the solve has a second level.
    pub aggregates: Option<Aggregates>,
    /// The graph of these aggregates.
    pub coarse: Option<Graph>,
}

counts_heap!(Graphs: matrix, near, far, aggregates, coarse);

/// The bytes on the heap of a world, by what they are for.
#[derive(Clone, Copy, Debug)]
pub(super) struct BytesOfWorld {
    pub(super) model: usize,
    pub(super) patches: usize,
    pub(super) trees: usize,
    pub(super) charts: usize,
    pub(super) certification: usize,
    pub(super) bodies: usize,
    pub(super) set_up: usize,
}

impl World {
    /// Builds meshes, model, patches and trees, on the thread that calls.
    ///
    /// # Errors
    /// What is wrong with a mesh, a pin or the partition, by name.
    pub fn build(scene: &Scene) -> Result<Self, WorldError> {
        Self::build_on(scene, 1)
    }

    /// Builds the world that [`build`](Self::build) builds, on this many threads; no more than
    /// there are cores.
    ///
    /// # Errors
    /// As [`build`](Self::build), or the system does not give the threads.
    pub fn build_on(scene: &Scene, threads: usize) -> Result<Self, WorldError> {
        Self::build_if(scene, threads, &|_| Ok(()))
    }

    /// Builds the world that [`build`](Self::build) builds, on this many threads, unless `fits`
    /// refuses it. It is asked for the cloths that are generated, before any is, and after each
    /// mesh with all that are known by then: the rest of the set-up takes most of the time and
    /// memory.
    ///
    /// # Errors
    /// As [`build_on`](Self::build_on), or why it does not fit ([`WorldError::Memory`]).
    pub fn build_if(
        scene: &Scene,
        threads: usize,
        fits: &(dyn Fn(&MeshCounts) -> Result<(), String> + Sync),
    ) -> Result<Self, WorldError> {
        parallel::on_threads(threads, || Self::set_up(scene, fits, None))?
    }

    /// Builds a world as [`build_if`](Self::build_if) does, in a process that is one of several. If
    /// the scene names a prepared world, the process maps it.
    ///
    /// # Errors
    /// As [`build_if`](Self::build_if).
    pub fn build_mapped(
        scene: &Scene,
        threads: usize,
        fits: &(dyn Fn(&MeshCounts) -> Result<(), String> + Sync),
        mapping: Mapping,
    ) -> Result<Self, WorldError> {
        parallel::on_threads(threads, || Self::set_up(scene, fits, Some(mapping)))?
    }

    /// The bytes of what it holds, without the text of the scene.
    pub(super) fn bytes_of_parts(&self) -> BytesOfWorld {
        let Self {
            scene: _,
            model,
            mass: _,
            tree,
            graphs,
            surface,
            bodies,
            scenery,
            body_meshes,
            sizes_of_mended,
            solids,
            body_motions,
            checksums,
            friction,
            distances,
            pinned,
            pins,
            patch_triangles,
            velocities,
            spans,
            polygons,
            welded,
            disagreements,
            defects,
            start_crossings,
            kept_at_start,
            near_at_rest,
            told_of_cloths,
            prepared: _,
            start_extent: _,
            mean_edge: _,
        } = self;
        let of_set_up = model.bytes_of_set_up();
        let charts = surface.bytes_of_charts();
        let of_pairs = friction.heap_bytes() + distances.heap_bytes();
        let held = pinned.heap_bytes() + pins.heap_bytes() + velocities.heap_bytes();
        let crossed = start_crossings.heap_bytes() + kept_at_start.heap_bytes();
        let told = polygons.heap_bytes()
            + welded.heap_bytes()
            + disagreements.heap_bytes()
            + told_of_cloths.heap_bytes()
            + defects.heap_bytes();
        let shapes = bodies.heap_bytes() + body_meshes.heap_bytes() + solids.heap_bytes();
        let sizes = sizes_of_mended.heap_bytes() + checksums.heap_bytes() + spans.heap_bytes();
        BytesOfWorld {
            model: model.heap_bytes() - of_set_up + of_pairs + held + crossed + told,
            patches: tree.heap_bytes(),
            trees: surface.heap_bytes() - charts + patch_triangles.heap_bytes(),
            charts: charts + near_at_rest.heap_bytes(),
            certification: scenery.heap_bytes(),
            bodies: shapes + body_motions.heap_bytes() + sizes,
            set_up: graphs.heap_bytes() + of_set_up,
        }
    }

    /// How many patches the cloth of a scene is cut into, as many as there can be ranks. The world
    /// is not built for it.
    ///
    /// # Errors
    /// A mesh is bad, or too small for as many patches as the scene wants.
    pub fn patch_count(scene: &Scene) -> Result<usize, WorldError> {
        let mut vertices = 0;
        for cloth in &scene.cloths {
            vertices += match cloth.source {
                ClothSource::Grid {
                    vertices: [x, y], ..
                } if x.min(y) > 1 => x.saturating_mul(y),
                _ => build_cloth(cloth)?.positions.len(),
            };
        }
        Ok(patch_options(scene).patches_for(vertices)?)
    }

    /// The file of this world's cut, for a scene to name in `partition.file`.
    ///
    /// # Panics
    /// Its graphs were [released](Self::release).
    #[must_use]
    pub fn prepared_cut(&self) -> Vec<u8> {
        let graphs = self.graphs();
        let aggregates = graphs.aggregates.as_ref();
        prepared::encode(&graphs.matrix, &self.tree, aggregates, &wanted(&self.scene))
    }

    /// The scene.
    #[must_use]
    pub fn scene(&self) -> &Scene {
        &self.scene
    }

    /// Masses, triangles, what resists bending.
    #[must_use]
    pub fn model(&self) -> &ClothModel {
        &self.model
    }

    /// The mass of all cloth in kg.
    pub(crate) fn mass(&self) -> f64 {
        self.mass
    }

    /// The patches.
    #[must_use]
    pub fn tree(&self) -> &PatchTree {
        &self.tree
    }

    /// The graphs of the cloth.
    ///
    /// # Panics
    /// They were [released](Self::release).
    #[must_use]
    pub fn graphs(&self) -> Arc<Graphs> {
        let graphs = self.graphs.get();
        graphs.expect("graphs are read before they are released")
    }

    /// Frees the data that only the set-up of ranks reads: graphs, and elements that ranks have
    /// copied. Ranks that are set up go on; a new one cannot be set up, see
    /// [`StepError::Released`](crate::step::StepError::Released). Graphs and cuts, and elements of
    /// triangles, energies, forces, couplings, frequencies and warnings of the model can no longer
    /// be asked for.
    pub fn release(&self) {
        self.graphs.release();
        self.model.release();
    }

    /// Whether ranks can still be set up.
    pub(super) fn is_released(&self) -> bool {
        self.graphs.get().is_none()
    }

    /// Bodies as triangles, where they were placed, for pictures and frames.
    #[must_use]
    pub fn body_meshes(&self) -> &[TriMesh] {
        &self.body_meshes
    }

    /// All triangles that certification looks at; `None` if the scene does not ask for it.
    pub(crate) fn scenery(&self) -> Option<&Arc<Scenery>> {
        self.scenery.as_ref()
    }

    /// Whether each of several ranks has only the state of vertices that its tests read. Seams and
    /// pairs that many substeps share read that of all.
    pub(crate) fn subscribes(&self, ranks: usize) -> bool {
        let vertices = self.model.start().len();
        self.scene.partition.state.subscribes(ranks, vertices)
            && self.scene.contact.pipeline != Pipeline::History
            && self.scene.seams.is_empty()
    }

    /// The friction of each pair.
    pub(crate) fn friction(&self) -> &Friction {
        &self.friction
    }

    /// The distance that each pair keeps.
    #[must_use]
    pub fn distances(&self) -> &Distances {
        &self.distances
    }

    /// Flags of the vertices that are held, in some directions or in all.
    #[must_use]
    pub fn pinned(&self) -> &[bool] {
        &self.pinned
    }

    /// The pins that hold these.
    pub(crate) fn pins(&self) -> &Pins {
        &self.pins
    }

    /// The triangles that touch each patch.
    pub(crate) fn patch_triangles(&self) -> &PatchTriangles {
        &self.patch_triangles
    }

    /// A vertex for people: its number in the scene, its patch, its cloth, its number there.
    pub(crate) fn name(&self, vertex: usize) -> Named {
        let cloths = self.model.cloth_of_vertex();
        let cloth = cloths[vertex];
        // The scene's vertices are those of its cloths, one cloth after the other.
        let before = cloths.iter().filter(|&&other| other < cloth).count();
        let number = self.tree.new_to_old()[vertex];
        Named {
            vertex: number,
            patch: self.tree.patch_of(vertex as u32),
            cloth: self.scene.cloths[cloth as usize].name.clone(),
            of_cloth: number - before as u32,
        }
    }

    /// The first corner of a triangle, for people.
    pub(crate) fn name_of_triangle(&self, triangle: u32) -> Named {
        self.name(self.model.triangles()[triangle as usize][0] as usize)
    }

    /// Velocities at time 0 in m/s.
    #[must_use]
    pub fn start_velocities(&self) -> Vec<DVec3> {
        self.velocities.iter().collect()
    }

    /// The pairs of patches with features that are so close at rest that they are always tested.
    /// The lower number is first, and each pair is there once.
    pub(crate) fn patches_near_at_rest(&self) -> &[[u32; 2]] {
        (self.near_at_rest).get_or_init(|| self.surface.patches_near_at_rest())
    }

    /// The mean length of an edge of cloth at rest, in m.
    pub(crate) fn mean_edge(&self) -> f64 {
        self.mean_edge
    }

    /// The velocity of a vertex at time 0 in m/s.
    pub(crate) fn start_velocity(&self, vertex: u32) -> DVec3 {
        self.velocities.at(vertex)
    }

    /// The box around all cloth at the start.
    pub(crate) fn start_extent(&self) -> Extent {
        self.start_extent
    }

    /// The crossings of cloth and cloth at the start that the scene asks to keep.
    #[must_use]
    pub(crate) fn start_crossings(&self) -> &[Crossing] {
        &self.start_crossings
    }

    /// A crossing for people: vertices have the numbers that they have in their cloths.
    pub(crate) fn name_crossing(&self, (edge, face): Crossing) -> String {
        let name = |vertices: &[u32]| {
            let names: Vec<Named> = vertices.iter().map(|&v| self.name(v as usize)).collect();
            let numbers: Vec<String> = names.iter().map(|n| n.of_cloth.to_string()).collect();
            format!("{} of cloth `{}`", numbers.join("-"), names[0].cloth)
        };
        let face = self.model.triangles()[face as usize];
        format!("edge {} and face {}", name(&edge), name(&face))
    }

    /// The parts of the cloth that may pass through cloth at the start.
    pub(crate) fn kept_at_start(&self) -> &Kept {
        &self.kept_at_start
    }

    /// The data with which collisions are tested.
    #[must_use]
    pub fn geometry(&self) -> Geometry<'_> {
        let contact = &self.scene.contact;
        Geometry {
            cloth: &self.surface,
            bodies: &self.bodies,
            body_motions: &self.body_motions,
            thickness: self.distances.least_of_cloth(),
            distances: &self.distances,
            self_collision: contact.self_collision,
            all_pairs: contact.pushes_all_pairs(),
        }
    }

    /// The SHA-256 of all meshes and start velocities in hexadecimal: the scene's text only names
    /// them.
    #[must_use]
    pub fn digest(&self) -> String {
        if let Some((digest, _)) = &self.prepared {
            return digest.clone();
        }
        let mut hasher = Sha256::new();
        hasher.update(b"weft world 1\n");
        let mut add = |bytes: &[u8]| {
            hasher.update((bytes.len() as u64).to_le_bytes());
            hasher.update(bytes);
        };
        add(bytemuck::cast_slice(self.model.start()));
        add(bytemuck::cast_slice(self.model.triangles()));
        add(bytemuck::cast_slice(&self.start_velocities()));
        for body in &self.body_meshes {
            add(bytemuck::cast_slice(&body.positions));
            add(bytemuck::cast_slice(&body.triangles));
        }
        self.checksums.iter().for_each(|digest| add(digest));
        hex(&hasher.finalize())
    }

    /// Whether it was taken from a prepared world.
    #[must_use]
    pub fn is_prepared(&self) -> bool {
        self.prepared.is_some()
    }

    /// The checksum of the prepared world that it was taken from, if it was.
    #[must_use]
    pub(crate) fn prepared_digest(&self) -> Option<&[u8]> {
        self.prepared.as_ref().map(|(_, sum)| &sum[..])
    }

    /// The bodies that move, each with its number and its mesh at a time in s.
    #[must_use]
    pub fn moved_bodies(&self, time: f64) -> Vec<(usize, TriMesh)> {
        let bodies = (self.scene.bodies.iter())
            .zip(&self.body_meshes)
            .enumerate();
        bodies
            .filter(|(_, (body, _))| !body.is_still())
            .map(|(index, (_, mesh))| (index, moved(&self.body_motions[index], mesh, time)))
            .collect()
    }

    /// The surfaces of the bodies for audits at a time in s, with their names.
    #[must_use]
    pub(crate) fn audited_bodies(&self, time: f64) -> Vec<(&str, Audited<'_>)> {
        let audited = self
            .bodies
            .iter()
            .zip(&self.body_motions)
            .map(|(body, motion)| match body {
                Collider::Triangles(surface) => Audited::Triangles(match motion.deforming() {
                    Some(deforming) => {
                        Skin::of_body_then(surface, deforming.at(time).positions.clone())
                    }
                    None => Skin::of_body(surface, &motion.at(time)),
                }),
                Collider::Analytic(body) => Audited::Formula(body.shape, motion.at(time)),
                Collider::Distance(body) => Audited::Sampled {
                    enclosed: body.mesh_then(time),
                    pose: motion.at(time),
                    error: SampleError::Of(body.then(time)),
                },
            });
        let names = self.scene.bodies.iter().map(|body| body.name.as_str());
        names.zip(audited).collect()
    }

    /// How many pairs of an edge and a triangle of cloth and bodies made of triangles cross at this
    /// time, for positions of the cloth's vertices in m, in the numbering of the patch tree.
    #[cfg(test)]
    pub(crate) fn crossings_with_bodies(&self, x: &[DVec3], time: f64) -> usize {
        self.crossings_of(&Skin::new(x, self.model.triangles()), time)
    }

    /// How many pairs of an edge and a triangle of all cloth, as it lies now, and bodies made of
    /// triangles cross at this time.
    #[cfg(test)]
    pub(crate) fn crossings_of(&self, cloth: &Skin<'_>, time: f64) -> usize {
        let bodies = self.audited_bodies(time).into_iter();
        let pairs = bodies.map(|(_, body)| match body.meet(cloth) {
            Met::Crossing(between) => between.pairs(),
            Met::Inside(_) => 0,
        });
        pairs.sum()
    }

    /// The distance of a point from each body at this time, in m; negative inside.
    pub(crate) fn gaps(&self, p: DVec3, time: f64) -> Vec<f64> {
        self.solids_at(time).map(|solid| solid.gap(p)).collect()
    }

    /// How deep the deepest of some points is inside a body at this time, in m; negative if all are
    /// outside all of them.
    #[must_use]
    pub fn deepest(&self, points: &[DVec3], time: f64) -> f64 {
        let solids: Vec<_> = self.solids_at(time).collect();
        let depths = (points.iter()).flat_map(|&p| solids.iter().map(move |solid| solid.depth(p)));
        depths.fold(f64::NEG_INFINITY, f64::max)
    }

    /// How deep a point is inside a body at this time, in m; negative outside all of them.
    #[must_use]
    pub fn depth(&self, p: DVec3, time: f64) -> f64 {
        let depths = self.solids_at(time).map(|solid| solid.depth(p));
        depths.fold(f64::NEG_INFINITY, f64::max)
    }

    /// How deep a point is inside a body at this time, in m, and the unit vector to where it is
    /// nearest to being out; `None` outside.
    pub(crate) fn way_out(&self, body: u32, p: DVec3, time: f64) -> Option<(f64, DVec3)> {
        self.solid_at(body, time).way_out(p)
    }

    /// The features of cloth that pass through each other, by the numbers of the scene's own
    /// vertices.
    pub(crate) fn passing_in_order(&self) -> Passing {
        let cloths = self.original_order(self.model.cloth_of_vertex());
        passing(&self.scene, &cloths).sewn(self.sewn_in_order())
    }

    /// The pairs of vertices that seams sew together, by the numbers of the scene's own vertices,
    /// ascending.
    #[must_use]
    pub(crate) fn sewn_in_order(&self) -> Vec<[u32; 2]> {
        let old = |v: u32| self.tree.new_to_old()[v as usize];
        let pairs = self.model.stitches().iter().flat_map(Stitch::neighbours);
        let mut pairs: Vec<[u32; 2]> = pairs.map(|pair| pair.map(old)).collect();
        pairs.sort_unstable();
        pairs.dedup();
        pairs
    }

    /// The stitch of a seam that is open farthest, and how far in m, with vertices at `x` (m): of
    /// those that are open farther than their gap, where the time of the seam comes after `begin`
    /// and no later than `end`, in s.
    pub(crate) fn open_stitch(
        &self,
        x: &[DVec3],
        [begin, end]: [f64; 2],
    ) -> Option<(&Stitch, f64)> {
        let due = |stitch: &&Stitch| begin < stitch.close && stitch.close <= end;
        let due = self.model.stitches().iter().filter(due);
        let open = due.map(|stitch| {
            let apart = stitch
                .between(stitch.vertices.map(|v| x[v as usize]))
                .length();
            (stitch, apart)
        });
        let open = open.filter(|(stitch, apart)| {
            let gap = self.scene.gap_of(&self.scene.seams[stitch.seam as usize]);
            *apart > gap
        });
        // The first of those that are open as far.
        open.reduce(|most, next| if next.1 > most.1 { next } else { most })
    }

    /// Values in the order of the scene's own vertices, from one per vertex of the tree's
    /// numbering.
    #[must_use]
    pub fn original_order<T: Copy>(&self, values: &[T]) -> Vec<T> {
        self.tree
            .old_to_new()
            .iter()
            .map(|&new| values[new as usize])
            .collect()
    }
}
