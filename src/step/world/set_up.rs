//! The set-up of a world: bodies first, for cloth and its pins are checked against them, then
//! cloths, what sews them together, the cut, and what collision tests need.
//!
//! Files are read, and what is wrong with a mesh is said, before the costly part.

use std::fs::File;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use glam::DVec3;
use sha2::{Digest as _, Sha256};
use weft_partition::PartitionError;

use super::collisions::{BodiesAtRest, Collisions};
use super::counts::MeshCounts;
use super::cutting::{aggregate, cut, graph_of, wanted};
use super::deforming::{self, moved};
use super::error::WorldError;
use super::friction::Friction;
use super::patch_triangles::PatchTriangles;
use super::prepared::{Prepared, PreparedError};
use super::prepared_world::{Mapping, begins_as_world};
use super::prescribed_motion::{Pinned, Pins};
use super::seams::{Line, checksum_of_stitches, in_seam, sew};
use super::start::{
    BodiesAtStart, check_crossings, check_start, check_thickness, pins_of_vertices, skin,
    start_velocity,
};
use super::{Graphs, World, sampled};
use crate::collide::audit::Skin;
use crate::collide::bodies::Deforming;
use crate::collide::tangles::{Kept, tangles_of};
use crate::collide::{BodyMotion, ClothSurface, Extent, Solid};
use crate::mesh::{
    BodyMesh, FileAxes, FileMesh, RestShape, Sizes, TriMesh, build_body_of_file,
    build_cloth_of_file, build_rest, check_body, disagreement, warp,
};
use crate::parallel;
use crate::physics::{AtRest, ClothModel};
use crate::scene::{Body, Cloth, ClothSource, Pin, Placement, Scene, Shape};
use crate::set_up_only::SetUpOnly;

/// Refuses meshes, in words, that are too large; see [`World::build_if`].
pub(super) type Fits<'a> = &'a (dyn Fn(&MeshCounts) -> Result<(), String> + Sync);

/// The scene that is set up, and the facts about it that parts of the set-up add to.
pub(super) struct SetUp<'a> {
    scene: &'a Scene,
    fits: Fits<'a>,
    pub(super) counts: MeshCounts,
    disagreements: Vec<String>,
    pub(super) checksums: Vec<[u8; 32]>,
}

/// The bodies of a scene, one after the other.
#[derive(Default)]
pub(super) struct SetBodies {
    pub(super) meshes: Vec<TriMesh>,
    pub(super) motions: Vec<BodyMotion>,
    pub(super) solids: Vec<Solid>,
    pub(super) defects: Vec<String>,
    pub(super) sizes_of_mended: Vec<Option<Sizes>>,
    /// The number of the first triangle of each that is there once for each side; the largest
    /// number if none is.
    pub(super) two_sided: Vec<u32>,
}

/// The cloths of a scene, with vertices in its own order.
#[derive(Default)]
struct SetCloths {
    model: ClothModel,
    pinned: Vec<Pinned>,
    velocities: Vec<DVec3>,
    /// The widest face of each, in m.
    spans: Vec<f64>,
    polygons: Vec<[usize; 2]>,
    welded: Vec<Option<usize>>,
    /// The two sides of each seam, as far as their cloths have been read.
    lines: Vec<[Option<Line>; 2]>,
    /// How many pins the cloths before have.
    pins_before: usize,
}

impl World {
    /// Builds the world of a scene, on the threads that are there.
    pub(super) fn set_up(
        scene: &Scene,
        fits: Fits<'_>,
        mapping: Option<Mapping>,
    ) -> Result<Self, WorldError> {
        // A file that is not there is an error before anything takes time.
        let path = scene.partition.file.as_deref();
        let file = path.map(|path| Ok::<_, WorldError>((path, open(path)?)));
        let file = file.transpose()?;
        if let Some((path, file)) = &file
            && begins_as_world(file)
        {
            return Self::take_prepared(scene, fits, (path, file), mapping);
        }
        drop(file);
        let mut prepared = path.map(Prepared::read).transpose()?;
        let wanted = wanted(scene);
        fits(&MeshCounts::of_grids(scene)).map_err(WorldError::Memory)?;
        let mut set_up = SetUp::new(scene, fits);
        let set_bodies = set_up.bodies()?;
        let cloths = set_up.cloths(&set_bodies)?;
        let SetUp {
            disagreements,
            checksums,
            ..
        } = set_up;
        let SetCloths {
            model,
            mut pinned,
            velocities,
            spans,
            polygons,
            welded,
            ..
        } = cloths;
        let checks = scene.contact.self_collision && !scene.keeps_crossings();
        // METIS works on one thread; meanwhile others look for crossings.
        let (checked, cut) = parallel::join(
            || {
                if checks {
                    check_crossings(scene, &model)
                } else {
                    Ok(())
                }
            },
            || cut(&wanted, &model, prepared.as_mut()),
        );
        checked?;
        let (graph, tree) = cut?;
        let n = tree.vertex_count();
        let graph = graph.renumbered(&tree)?;
        let mut is_pinned = vec![false; n];
        for pinned in &mut pinned {
            pinned.vertex = tree.old_to_new()[pinned.vertex as usize];
            is_pinned[pinned.vertex as usize] = true;
        }
        // Here METIS works on one thread again.
        let (aggregates, (model, couplings, collisions)) = parallel::join(
            || {
                let aggregates = aggregate(&wanted, (&graph, &tree), prepared)?;
                let coarse = aggregates
                    .as_ref()
                    .map(|of| of.quotient(&graph))
                    .transpose()?;
                Ok::<_, WorldError>((aggregates, coarse))
            },
            || {
                let model = model.renumbered(tree.old_to_new());
                let couplings = || -> Result<_, PartitionError> {
                    let (near, far) = model.couplings();
                    Ok((graph_of(n, &near)?, graph_of(n, &far)?))
                };
                let collisions = || {
                    let bodies = BodiesAtRest {
                        meshes: &set_bodies.meshes,
                        two_sided: &set_bodies.two_sided,
                        solids: &set_bodies.solids,
                    };
                    Collisions::new(scene, &model, &tree, &bodies, &spans)
                };
                let (couplings, collisions) = parallel::join(couplings, collisions);
                (model, couplings, collisions)
            },
        );
        let ((aggregates, coarse), (near, far)) = (aggregates?, couplings?);
        let Collisions {
            surface,
            distances,
            bodies,
            scenery,
        } = collisions;
        let patch_of = |vertex| tree.patch_of(vertex);
        let patch_triangles = PatchTriangles::new(model.triangles(), tree.patch_count(), patch_of);
        let start_crossings = if scene.keeps_crossings() && scene.contact.self_collision {
            Skin::of_surface(surface.surface(), model.start()).crossings()
        } else {
            Vec::new()
        };
        let kept_at_start = match start_crossings.is_empty() {
            true => Kept::default(),
            false => tangles_of(
                model.start(),
                model.triangles(),
                surface.surface().passing(),
            ),
        };
        let SetBodies {
            meshes,
            motions,
            solids,
            defects,
            sizes_of_mended,
            ..
        } = set_bodies;
        let follow = |pin: &Pin| followed(scene, &motions, pin);
        let all_pins = scene.cloths.iter().flat_map(|cloth| &cloth.pins);
        let pins = Pins::new(all_pins, pinned, follow, model.start());
        let old = tree.new_to_old().iter();
        let mean_edge = mean_edge(&surface);
        Ok(Self {
            bodies,
            scenery,
            kept_at_start,
            start_crossings,
            body_motions: motions,
            friction: Friction::new(scene, &model),
            distances,
            pinned: is_pinned,
            checksums,
            pins,
            patch_triangles,
            velocities: old.map(|&old| velocities[old as usize]).collect(),
            graphs: SetUpOnly::new(Graphs {
                matrix: graph,
                near,
                far,
                aggregates,
                coarse,
            }),
            scene: scene.clone(),
            body_meshes: meshes,
            solids,
            surface,
            mass: model.masses().iter().sum(),
            prepared: None,
            told_of_cloths: OnceLock::new(),
            start_extent: Extent::of(model.start()),
            mean_edge,
            near_at_rest: OnceLock::new(),
            spans,
            polygons,
            welded,
            disagreements,
            defects,
            sizes_of_mended,
            model,
            tree,
        })
    }
}

/// The mean length of a cloth's edges at rest, in m.
fn mean_edge(cloth: &ClothSurface) -> f64 {
    let (rest, edges) = (cloth.rest(), cloth.surface().edges());
    let length = |&[a, b]: &[u32; 2]| rest[a as usize].distance(rest[b as usize]);
    edges.iter().map(length).sum::<f64>() / edges.len().max(1) as f64
}

/// Opens the file of a prepared cut or world.
fn open(path: &Path) -> Result<File, PreparedError> {
    weft_io::open_regular(path).map_err(|source| PreparedError::Read {
        path: path.to_owned(),
        source,
    })
}

/// The motion of the body that a pin follows, if that deforms.
pub(super) fn followed(scene: &Scene, motions: &[BodyMotion], pin: &Pin) -> Option<Arc<Deforming>> {
    let mut bodies = scene.bodies.iter().zip(motions);
    let name = pin.follow.as_ref()?;
    let (_, motion) = bodies.find(|(body, _)| body.name == *name)?;
    motion.deforming().cloned()
}

impl<'a> SetUp<'a> {
    /// The set-up of a scene, of which nothing is known yet.
    pub(super) fn new(scene: &'a Scene, fits: Fits<'a>) -> Self {
        Self {
            scene,
            fits,
            counts: MeshCounts::default(),
            disagreements: Vec::new(),
            checksums: Vec::new(),
        }
    }
}

impl SetUp<'_> {
    /// Refuses the meshes that are known by now if they do not fit.
    pub(super) fn check_fit(&self) -> Result<(), WorldError> {
        (self.fits)(&self.counts).map_err(WorldError::Memory)
    }

    /// Notes where the scene and the file of a body or cloth say different things about its axes.
    fn compare_axes(&mut self, what: &str, name: &str, placement: &Placement, said: FileAxes) {
        let told = disagreement(placement, said);
        let told = told.map(|told| format!("{what} `{name}` has {told}; the scene prevails"));
        self.disagreements.extend(told);
    }

    /// Reads all bodies.
    pub(super) fn bodies(&mut self) -> Result<SetBodies, WorldError> {
        let scene = self.scene;
        let mut set = SetBodies::default();
        for body in &scene.bodies {
            self.body(body, &mut set)?;
        }
        if self.counts.sampled_triangles > 0 {
            self.check_fit()?;
        }
        let placed = set.meshes.iter().zip(&set.motions);
        let solids = (scene.bodies.iter().zip(placed))
            .map(|(body, (mesh, motion))| sampled::solid(scene, body, (mesh, motion)));
        set.solids = solids.collect::<Result<_, _>>()?;
        Ok(set)
    }

    /// Reads a body: its mesh, as it is at first, and how it moves.
    fn body(&mut self, body: &Body, set: &mut SetBodies) -> Result<(), WorldError> {
        let built = build_body_of_file(body)?;
        if let Shape::Mesh { placement, .. } = &body.shape {
            self.compare_axes("body", &body.name, placement, built.file.axes);
        }
        let deformed = deforming::make(body, &built)?;
        let BodyMesh { file, mended } = built;
        let mended = mended.as_ref();
        let checked = mended.map_or(&file.mesh, |m| &m.mesh);
        sampled::check(self.scene, body, checked, mended)?;
        let defect = mended.map(|m| format!("the mesh of body `{}` has {}", body.name, m.found));
        set.defects.extend(defect);
        let left = mended.map(|m| Sizes::of_triangles(&file.mesh.positions, &m.left));
        set.sizes_of_mended.push(left);
        set.two_sided.push(mended.map_or(u32::MAX, |m| m.two_sided));
        let (mesh, motion) = match deformed {
            Some(made) => {
                self.checksums.push(made.digest);
                (made.mesh, made.motion)
            }
            None => {
                let mesh = mended.map_or(file.mesh, |mended| mended.mesh.clone());
                (mesh, BodyMotion::new(body))
            }
        };
        self.counts.add_body(self.scene, body, &mesh);
        set.meshes.push(mesh);
        set.motions.push(motion);
        Ok(())
    }

    /// Reads all cloths, checks where they start, and sews them together.
    fn cloths(&mut self, bodies: &SetBodies) -> Result<SetCloths, WorldError> {
        let scene = self.scene;
        let at_start: Vec<TriMesh> = (bodies.motions.iter().zip(&bodies.meshes))
            .map(|(motion, mesh)| moved(motion, mesh, 0.0))
            .collect();
        let none = TriMesh::default();
        let skins: Vec<Skin<'_>> = (bodies.solids.iter().zip(&at_start))
            // Nobody asks for the triangles of a body that cloth meets by samples.
            .map(|(solid, mesh)| match solid.sampled() {
                Some(_) => skin(&none),
                None => skin(mesh),
            })
            .collect();
        for (body, mesh) in scene.bodies.iter().zip(&at_start) {
            let who = format!("body `{}`", body.name);
            check_thickness(mesh, body.thickness, scene, &who)?;
        }
        let at_start = BodiesAtStart {
            solids: &bodies.solids,
            motions: &bodies.motions,
            skins: &skins,
        };
        let mut set = SetCloths {
            lines: scene.seams.iter().map(|_| [None, None]).collect(),
            ..SetCloths::default()
        };
        for cloth in &scene.cloths {
            self.cloth(cloth, &at_start, &mut set)?;
        }
        let lines = std::mem::take(&mut set.lines);
        sew(scene, &mut set.model, &set.pinned, lines)?;
        self.checksums.extend(checksum_of_stitches(&set.model));
        Ok(set)
    }

    /// Reads a cloth, and adds it to the model with its pins and the sides of seams that it has.
    fn cloth(
        &mut self,
        cloth: &Cloth,
        bodies: &BodiesAtStart<'_>,
        set: &mut SetCloths,
    ) -> Result<(), WorldError> {
        let scene = self.scene;
        let file = build_cloth_of_file(cloth)?;
        self.counts.add_cloth(&file.mesh);
        self.check_fit()?;
        set.polygons.push(file.faces.polygons());
        set.welded.push(file.welded);
        if let ClothSource::File { placement, .. } = &cloth.source {
            self.compare_axes("cloth", &cloth.name, placement, file.axes);
        }
        if file.has_velocities && cloth.velocities.is_none() {
            self.disagreements.push(format!(
                "cloth `{}` starts without the velocities vx, vy, vz that its file has; take them with `velocities = true`, or say \
                 `velocities = false`",
                cloth.name
            ));
        }
        let warp = warp(cloth, file.axes);
        let rest = build_rest(cloth, &file)?;
        self.checksums.extend(rest.as_ref().map(checksum_of_rest));
        let pin_of = pins_of_vertices(&file, cloth, &scene.bodies, bodies)?;
        let first = set.velocities.len() as u32;
        find_lines(scene, cloth, (&file, first), &mut set.lines)?;
        let mesh = file.mesh;
        set.spans.push(widest_face(&mesh));
        let at_rest = match &rest {
            None => AtRest::Mesh(&mesh),
            Some(RestShape::Mesh(at_rest)) => AtRest::Mesh(at_rest),
            Some(RestShape::Pattern(corners)) => AtRest::Pattern {
                start: &mesh,
                corners,
            },
        };
        (set.model).add_resting(&cloth.name, &mesh, at_rest, &cloth.material, warp)?;
        if cloth.pressure != 0.0 {
            check_body(&mesh, true).map_err(|source| WorldError::Pressure {
                cloth: cloth.name.clone(),
                source,
            })?;
            set.model.inflate_last(cloth.pressure);
        }
        check_start(scene, bodies, &cloth.name, &mesh)?;
        let who = format!("cloth `{}`", cloth.name);
        check_thickness(&mesh, cloth.thickness, scene, &who)?;
        for (own, pin) in pin_of.into_iter().enumerate() {
            let vertex = set.velocities.len() as u32;
            let of_file = file.velocities.as_ref().map(|of| of[own]);
            let velocity = of_file.map_or(cloth.velocity, |own| cloth.velocity + own);
            let pinned = pin.map(|pin| start_velocity(&cloth.pins[pin], velocity));
            set.velocities.push(pinned.unwrap_or(velocity));
            let pin = pin.map(|pin| (set.pins_before + pin) as u32);
            set.pinned.extend(pin.map(|pin| Pinned { vertex, pin }));
        }
        set.pins_before += cloth.pins.len();
        Ok(())
    }
}

/// Finds the sides of seams that a cloth has, whose vertices are numbered from `first` on.
fn find_lines(
    scene: &Scene,
    cloth: &Cloth,
    (file, first): (&FileMesh, u32),
    lines: &mut [[Option<Line>; 2]],
) -> Result<(), WorldError> {
    for (seam, lines) in scene.seams.iter().zip(lines) {
        for (side, line) in seam.sides.iter().zip(lines) {
            if side.cloth == cloth.name {
                let found = Line::find(&side.border, cloth, file, first);
                *line = Some(found.map_err(|source| in_seam(seam, source))?);
            }
        }
    }
    Ok(())
}

/// The SHA-256 of a shape at rest.
fn checksum_of_rest(rest: &RestShape) -> [u8; 32] {
    let mut hasher = Sha256::new();
    match rest {
        RestShape::Mesh(mesh) => {
            hasher.update(b"mesh");
            hasher.update(bytemuck::cast_slice(&mesh.positions));
        }
        RestShape::Pattern(corners) => {
            hasher.update(b"pattern");
            for p in corners.as_flattened() {
                hasher.update(bytemuck::cast_slice(&p.to_array()));
            }
        }
    }
    hasher.finalize().into()
}

/// The diameter in m of the largest of the smallest circles around each triangle.
fn widest_face(mesh: &TriMesh) -> f64 {
    let diameter = |t: &[u32; 3]| {
        let [a, b, c] = mesh.corners(*t);
        let mut sides = [a.distance(b), b.distance(c), c.distance(a)];
        sides.sort_unstable_by(f64::total_cmp);
        let [short, middle, long] = sides;
        if long * long >= short * short + middle * middle {
            return long;
        }
        // The circle through the corners of a triangle with acute angles.
        short * middle * long / (b - a).cross(c - a).length()
    };
    mesh.triangles.iter().map(diameter).fold(0.0, f64::max)
}
