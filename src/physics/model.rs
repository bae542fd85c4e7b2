//! All cloths of a scene as one body of masses, triangles and hinges, in global vertex numbers.
//!
//! Every rank builds the same model; the partition then says which part of it a rank works on.

use std::borrow::Cow;
use std::sync::Arc;

use glam::DVec3;
use thiserror::Error;

use super::at_rest::AtRest;
use super::bending::Hinge;
use super::bending_of_mesh::{BendingInfo, bending_of};
use super::fold::Fold;
use super::membrane::{Law, Moduli, RestTriangle, TriangleShape};
use super::mesh_edges::{ordered, pairs, sides};
use super::plate::Plate;
use super::shell::Shell;
use super::spring::Spring;
use super::stitch::Stitch;
use crate::archive::{Array, archives};
use crate::heap_bytes::{HeapBytes as _, counts_heap};
use crate::mesh::TriMesh;
use crate::parallel;
use crate::scene::{Material, MembraneModel};
use crate::set_up_only::SetUpOnly;
use crate::sorted_rows::sorted;

/// The reason why a cloth cannot be simulated.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum PhysicsError {
    /// A triangle without area, or with corners that are not finite.
    #[error(
        "triangle {triangle} of cloth `{cloth}` spans no area at rest; remove it from the mesh"
    )]
    FlatTriangle {
        /// The cloth's name.
        cloth: String,
        /// The triangle's index in that cloth's mesh.
        triangle: usize,
    },
    /// A vertex that carries no mass.
    #[error("vertex {vertex} of cloth `{cloth}` is in no triangle and has no mass; remove it")]
    Massless {
        /// The cloth's name.
        cloth: String,
        /// The vertex's index in that cloth's mesh.
        vertex: usize,
    },
    /// Woven cloth whose warp cannot be laid into a triangle.
    #[error(
        "triangle {triangle} of cloth `{cloth}` is perpendicular to its warp; give the cloth another `weave`"
    )]
    NoWarp {
        /// The cloth's name.
        cloth: String,
        /// The triangle's index in that cloth's mesh.
        triangle: usize,
    },
    /// More vertices than numbers for them.
    #[error("the cloths have more than {} vertices together", u32::MAX)]
    TooLarge,
}

/// The bending elements of the quadratic model. Ranks add them up once, when they are set up.
#[derive(Clone, Debug, Default)]
pub struct Quadratic {
    /// Elements where hinges make cloth right.
    pub hinges: Cow<'static, [Hinge]>,
    /// Elements where hinges don't.
    pub plates: Cow<'static, [Plate]>,
}

counts_heap!(Quadratic: hinges, plates);
archives!(Quadratic: hinges, plates);

/// The number of triangles whose rest shapes are found at once.
const PIECE: usize = 1 << 16;

/// Masses, triangles and bending elements of all cloths, vertices numbered cloth after cloth.
#[derive(Clone, Debug, Default)]
pub struct ClothModel {
    /// The triangles and positions, which collisions share.
    pub(super) triangles: Arc<Array<[u32; 3]>>,
    pub(super) start: Arc<Array<DVec3>>,
    pub(super) shapes: SetUpOnly<Array<TriangleShape>>,
    pub(super) quadratic: SetUpOnly<Quadratic>,
    pub(super) folds: Array<Fold>,
    pub(super) shells: Array<Shell>,
    pub(super) springs: Array<Spring>,
    pub(super) stitches: Array<Stitch>,
    pub(super) masses: Array<f64>,
    /// Per cloth.
    pub(super) materials: Vec<Material>,
    /// The law of the triangles of each cloth.
    pub(super) laws: Vec<Law>,
    /// The pressure in each cloth in Pa.
    pub(super) pressures: Vec<f64>,
    /// The elements by which each cloth bends, see [`ClothModel::bending`].
    pub(super) bendings: Vec<BendingInfo>,
    /// The stretch that bending springs add to each cloth, see [`ClothModel::added_stretch`].
    pub(super) added_stretches: Vec<f64>,
    pub(super) cloth_of_vertex: Array<u32>,
    pub(super) cloth_of_triangle: Array<u32>,
}

counts_heap!(ClothModel:
    triangles, start, shapes, laws, quadratic, folds, shells, springs, stitches, masses, pressures,
    bendings, added_stretches, cloth_of_vertex, cloth_of_triangle;
    without materials
);

impl ClothModel {
    /// Adds a cloth that starts as it is at rest: as `mesh`; its vertices follow those already
    /// there. `warp` is the direction of its warp, which each triangle takes its part in its own
    /// plane of.
    ///
    /// # Errors
    /// Triangles without area, or without a warp, and vertices without mass, by cloth and index.
    ///
    /// # Panics
    /// Rest shapes were [released](crate::step::World::release).
    pub fn add(
        &mut self,
        name: &str,
        mesh: &TriMesh,
        material: &Material,
        warp: DVec3,
    ) -> Result<(), PhysicsError> {
        self.add_resting(name, mesh, AtRest::Mesh(mesh), material, warp)
    }

    /// Adds a cloth that starts as `mesh` and has another shape at rest, with the same triangles.
    /// `warp` is a direction of that shape.
    ///
    /// # Errors
    /// As [`ClothModel::add`], for the shape at rest.
    pub(crate) fn add_resting(
        &mut self,
        name: &str,
        mesh: &TriMesh,
        at_rest: AtRest<'_>,
        material: &Material,
        warp: DVec3,
    ) -> Result<(), PhysicsError> {
        let total = self.masses.len() + mesh.positions.len();
        if u32::try_from(total).is_err() {
            return Err(PhysicsError::TooLarge);
        }
        let first = self.masses.len() as u32;
        let cloth = self.materials.len() as u32;
        self.materials.push(material.clone());
        self.laws.push(Law::new(material));
        self.pressures.push(0.0);
        self.added_stretches.push(0.0);
        let start = Arc::make_mut(&mut self.start).to_mut();
        start.extend_from_slice(&mesh.positions);
        let masses = self.masses.to_mut();
        masses.resize(total, 0.0);
        self.cloth_of_vertex.to_mut().resize(total, cloth);
        let flat = |triangle| PhysicsError::FlatTriangle {
            cloth: name.to_owned(),
            triangle,
        };
        let triangles = Arc::make_mut(&mut self.triangles).to_mut();
        triangles.reserve(mesh.triangles.len());
        let shapes = self.shapes.get_mut();
        let shapes = shapes.expect("a model whose ranks are set up is not added to");
        let shapes = shapes.to_mut();
        shapes.reserve(mesh.triangles.len());
        for (piece, corners) in mesh.triangles.chunks(PIECE).enumerate() {
            let membranes = parallel::map(corners.len(), |k| {
                RestTriangle::new(at_rest.corners(piece * PIECE + k), material, warp)
            });
            for (k, (corners, membrane)) in corners.iter().zip(membranes).enumerate() {
                let membrane = membrane.ok_or_else(|| {
                    let triangle = piece * PIECE + k;
                    let points = at_rest.corners(triangle);
                    if RestTriangle::new(points, &Material::COTTON, warp).is_none() {
                        return flat(triangle);
                    }
                    PhysicsError::NoWarp {
                        cloth: name.to_owned(),
                        triangle,
                    }
                })?;
                // A third of a triangle's mass sits at each corner.
                let share = material.density * membrane.area() / 3.0;
                for &v in corners {
                    masses[(first + v) as usize] += share;
                }
                triangles.push(corners.map(|v| first + v));
                shapes.push(membrane.shape());
            }
        }
        let triangles = self.triangles.len();
        self.cloth_of_triangle.to_mut().resize(triangles, cloth);
        if let Some(vertex) = self.masses[first as usize..].iter().position(|&m| m <= 0.0) {
            return Err(PhysicsError::Massless {
                cloth: name.to_owned(),
                vertex,
            });
        }
        if material.membrane == MembraneModel::Springs {
            self.add_edges(at_rest, material, first);
        }
        self.add_bending(name, at_rest, material, warp, first)
    }

    /// A spring along each edge of a cloth whose vertices begin at `first`.
    fn add_edges(&mut self, at_rest: AtRest<'_>, material: &Material, first: u32) {
        let sides = sides(at_rest.triangles());
        for beside in sides.chunk_by(|a, b| a.0 == b.0) {
            let areas: f64 = beside
                .iter()
                .map(|side| {
                    let [a, b, c] = at_rest.corners(side.2 as usize);
                    0.5 * (b - a).cross(c - a).length()
                })
                .sum();
            let edge = beside[0].0;
            let ends = at_rest.ends(beside);
            let spring = Spring::edge(edge.map(|v| first + v), ends, areas, material.stretch[0]);
            self.springs
                .to_mut()
                .push(spring.damped(material.damping[0]));
        }
    }

    /// Adds the bending elements of a cloth whose vertices begin at `first`.
    fn add_bending(
        &mut self,
        name: &str,
        at_rest: AtRest<'_>,
        material: &Material,
        warp: DVec3,
        first: u32,
    ) -> Result<(), PhysicsError> {
        let cloth = self.materials.len() - 1;
        let own = &self.masses[first as usize..];
        let areas = own.iter().map(|mass| mass / material.density).collect();
        let bending = bending_of(at_rest, areas, material, warp, first);
        let bending = bending.map_err(|bad| bad.of(name))?;
        // Twice the energy in J of stretching all of it alike: of its finite elements or springs,
        // and the added energy.
        let elastic: f64 = match material.membrane {
            MembraneModel::Springs => (self.springs.iter())
                .filter(|s| s.vertices[0] >= first)
                .map(Spring::stretching)
                .sum(),
            MembraneModel::FiniteElements => {
                let Moduli { c11, c22, c12, .. } = Moduli::new(material);
                let own = self.cloth_of_triangle.iter().zip(self.membranes());
                let areas = own.filter(|(of, _)| **of as usize == cloth);
                areas.map(|(_, m)| m.area()).sum::<f64>() * (c11 + c22 + 2.0 * c12)
            }
        };
        let added = bending.springs.iter().map(|s| s.stretching() / elastic);
        self.added_stretches[cloth] = added.sum::<f64>() * self.most_bent(cloth);
        self.bendings.push(bending.info());
        if let Some(quadratic) = self.quadratic.get_mut() {
            quadratic.hinges.to_mut().extend(bending.hinges);
            quadratic.plates.to_mut().extend(bending.plates);
        }
        self.folds.to_mut().extend(bending.folds);
        self.shells.to_mut().extend(bending.shells);
        self.springs.to_mut().extend(bending.springs);
        Ok(())
    }

    /// The model with vertex `v` renamed `new[v]`, triangles and hinges in the order of their
    /// lowest vertex, so that what a patch needs lies together. Each old array is freed when the
    /// new one is there.
    #[must_use]
    pub fn renumbered(mut self, new: &[u32]) -> Self {
        self.masses = moved(&self.masses, new).into();
        self.start = Arc::new(moved(&self.start, new).into());
        self.cloth_of_vertex = moved(&self.cloth_of_vertex, new).into();
        for corners in Arc::make_mut(&mut self.triangles).to_mut() {
            *corners = corners.map(|v| new[v as usize]);
        }
        let order = by_lowest(&self.triangles, |corners| corners);
        self.triangles = Arc::new(chosen(&self.triangles, &order).into());
        if let Some(shapes) = self.shapes.get_mut() {
            *shapes = chosen(shapes, &order).into();
        }
        self.cloth_of_triangle = chosen(&self.cloth_of_triangle, &order).into();
        if let Some(quadratic) = self.quadratic.get_mut() {
            let Quadratic { hinges, plates } = std::mem::take(quadratic);
            quadratic.hinges = renamed(hinges, new, |h| &h.vertices, |h, to| h.vertices = to);
            quadratic.plates = renamed(plates, new, |p| &p.vertices, |p, to| p.vertices = to);
        }
        self.folds = renamed(self.folds, new, |f| &f.vertices, |f, to| f.vertices = to);
        self.shells = renamed(self.shells, new, |s| &s.vertices, |s, to| s.vertices = to);
        self.springs = renamed(self.springs, new, |s| &s.vertices, |s, to| s.vertices = to);
        self.stitches = renamed(self.stitches, new, |s| &s.vertices, |s, to| s.vertices = to);
        self
    }

    /// Pairs of vertices that triangles, folds, shells, springs and stitches couple, then those
    /// that only hinges and plates couple.
    ///
    /// The first have 3x3 blocks in the system matrix, the others scalars times the identity. Each
    /// pair once, lower vertex first, sorted. Both together are the graph of the matrix.
    ///
    /// # Panics
    /// Bending elements were [released](crate::step::World::release).
    #[must_use]
    pub fn couplings(&self) -> (Vec<[u32; 2]>, Vec<[u32; 2]>) {
        let near = || {
            let triangles = self.triangles.iter();
            triangles
                .flat_map(|&[a, b, c]| [ordered(a, b), ordered(b, c), ordered(c, a)])
                .chain(self.folds.iter().flat_map(|f| pairs(f.vertices)))
                .chain(self.shells.iter().flat_map(|s| pairs(s.vertices)))
                .chain(self.stitches.iter().flat_map(|s| pairs(s.vertices)))
                .chain(
                    self.springs
                        .iter()
                        .map(|s| ordered(s.vertices[0], s.vertices[1])),
                )
        };
        let quadratic = self.quadratic();
        let far = || {
            // The other pairs of a hinge are edges of its triangles.
            let opposite = (quadratic.hinges.iter()).map(|h| ordered(h.vertices[2], h.vertices[3]));
            opposite.chain(quadratic.plates.iter().flat_map(|p| pairs(p.vertices)))
        };
        let once = |mut pairs: Vec<[u32; 2]>| {
            pairs.dedup();
            pairs
        };
        let (near, mut far) = parallel::join(
            || once(sorted(near, |pair| pair[0])),
            || once(sorted(far, |pair| pair[0])),
        );
        // Both are sorted: one walk along both finds what they have in common.
        let mut at = near.iter().peekable();
        far.retain(|pair| {
            while at.next_if(|other| *other < pair).is_some() {}
            at.peek() != Some(&pair)
        });
        (near, far)
    }

    /// Triangles as vertex triples.
    #[must_use]
    pub fn triangles(&self) -> &[[u32; 3]] {
        &self.triangles
    }

    /// The triangles and the positions at the start, to be shared.
    pub(crate) fn shared(&self) -> (Arc<Array<[u32; 3]>>, Arc<Array<DVec3>>) {
        (Arc::clone(&self.triangles), Arc::clone(&self.start))
    }

    /// The positions in m with which the cloth starts, which are those of its rest shape unless it
    /// has another one.
    #[must_use]
    pub fn start(&self) -> &[DVec3] {
        &self.start
    }

    /// The largest and the least stretch at the start of the triangles of a cloth: lengths over
    /// those at rest. `None` if a triangle has collapsed.
    pub(crate) fn stretch_at_start(&self, cloth: usize) -> Option<[f64; 2]> {
        let own = self.cloth_of_triangle.iter().zip(self.triangles.iter());
        let mut own = own
            .zip(self.membranes())
            .filter(|((of, _), _)| **of as usize == cloth);
        own.try_fold(
            [0.0_f64, f64::INFINITY],
            |[most, least], ((_, t), membrane)| {
                let [long, short] = membrane.deform(at(*t, &self.start))?.stretches();
                Some([most.max(long), least.min(short)])
            },
        )
    }

    /// By how much the surroundings of each vertex are shorter at rest than at the start, as a
    /// share of at most 1: the least of the triangles around it, in the direction in which each is
    /// stretched most.
    pub(crate) fn shortening(&self) -> Vec<f64> {
        let mut shortening = vec![1.0_f64; self.start.len()];
        for (t, membrane) in self.triangles.iter().zip(self.membranes()) {
            let deformed = membrane.deform(at(*t, &self.start));
            let share = deformed.map_or(1.0, |deformed| 1.0 / deformed.stretches()[0]);
            for &v in t {
                shortening[v as usize] = shortening[v as usize].min(share);
            }
        }
        shortening
    }

    /// Elasticity of each triangle.
    ///
    /// # Panics
    /// Rest shapes were [released](crate::step::World::release).
    pub fn membranes(&self) -> impl Iterator<Item = RestTriangle> + '_ {
        let shapes = self.shapes();
        (0..shapes.len()).map(move |triangle| self.membrane(triangle, shapes[triangle]))
    }

    /// The elasticity of a triangle of this rest shape.
    ///
    /// # Panics
    /// If there is no such triangle.
    #[inline]
    pub(crate) fn membrane(&self, triangle: usize, shape: TriangleShape) -> RestTriangle {
        let law = self.laws[self.cloth_of_triangle[triangle] as usize];
        RestTriangle::of(shape, law)
    }

    /// The rest shape of each triangle. Ranks copy those of the triangles that touch what they own.
    ///
    /// # Panics
    /// They were [released](crate::step::World::release).
    pub(crate) fn shapes(&self) -> Arc<Array<TriangleShape>> {
        let shapes = self.shapes.get();
        shapes.expect("rest shapes are read before they are released")
    }

    /// Bending elements of cloth with the quadratic model.
    ///
    /// # Panics
    /// They were [released](crate::step::World::release).
    #[must_use]
    pub fn quadratic(&self) -> Arc<Quadratic> {
        let quadratic = self.quadratic.get();
        quadratic.expect("bending elements are read before they are released")
    }

    /// The bytes of what only the set-up of ranks reads.
    pub(crate) fn bytes_of_set_up(&self) -> usize {
        self.quadratic.heap_bytes() + self.shapes.heap_bytes()
    }

    /// Frees what only the set-up of ranks reads: the bending elements of the quadratic model, and
    /// rest shapes.
    pub(crate) fn release(&self) {
        self.quadratic.release();
        self.shapes.release();
    }

    /// Bending elements with rest angles, where folds make cloth right.
    #[must_use]
    pub fn folds(&self) -> &[Fold] {
        &self.folds
    }

    /// Bending elements with rest angles, where folds don't.
    #[must_use]
    pub fn shells(&self) -> &[Shell] {
        &self.shells
    }

    /// Springs along and across edges.
    #[must_use]
    pub fn springs(&self) -> &[Spring] {
        &self.springs
    }

    /// Adds stitches between vertices that are there.
    pub(crate) fn sew(&mut self, stitches: Vec<Stitch>) {
        self.stitches.to_mut().extend(stitches);
    }

    /// Stitches that seams pull by, which are no part of the elastic energy.
    #[must_use]
    pub fn stitches(&self) -> &[Stitch] {
        &self.stitches
    }

    /// Whether a triangle is a finite element; if not, springs are in its place.
    #[must_use]
    pub(crate) fn is_element(&self, triangle: usize) -> bool {
        self.material_of(triangle).membrane == MembraneModel::FiniteElements
    }

    /// Has the air behind the triangles of the cloth that was added last press by so much more than
    /// the air before them, in Pa.
    pub(crate) fn inflate_last(&mut self, pressure: f64) {
        if let Some(last) = self.pressures.last_mut() {
            *last = pressure;
        }
    }

    /// The pressure in Pa by which the air behind a triangle exceeds that before it.
    #[must_use]
    pub fn pressure(&self, triangle: usize) -> f64 {
        self.pressures[self.cloth_of_triangle[triangle] as usize]
    }

    /// Whether the air ever drags at a triangle or pushes it.
    #[must_use]
    pub(crate) fn is_panel(&self, triangle: usize) -> bool {
        self.material_of(triangle).has_drag() || self.pressure(triangle) != 0.0
    }

    /// The material of each cloth.
    pub(super) fn materials(&self) -> &[Material] {
        &self.materials
    }

    /// The in-plane moduli of each cloth without its factor in time, and the times in s by which
    /// its stretching and shearing are damped.
    pub(crate) fn laws(&self) -> impl Iterator<Item = (Moduli, [f64; 2])> {
        self.materials.iter().map(|material| {
            let [stretch, shear, _] = material.damping;
            (Moduli::new(material), [stretch, shear])
        })
    }

    /// The cloth each triangle belongs to, as [`ClothModel::laws`] has them.
    pub(crate) fn cloth_of_triangle(&self) -> &[u32] {
        &self.cloth_of_triangle
    }

    /// The stiffness-proportional damping, in s, of the bending of the cloth that a vertex belongs
    /// to.
    pub(crate) fn bending_damping(&self, vertex: usize) -> f64 {
        self.materials[self.cloth_of_vertex[vertex] as usize].damping[2]
    }

    fn material_of(&self, triangle: usize) -> &Material {
        &self.materials[self.cloth_of_triangle[triangle] as usize]
    }

    /// Elastic energy in J at positions `x` in m, without factors that change in time; `None` if a
    /// triangle has collapsed.
    ///
    /// # Panics
    /// Rest shapes and bending elements were [released](crate::step::World::release).
    #[must_use]
    pub fn elastic_energy(&self, x: &[DVec3]) -> Option<f64> {
        let mut energy = 0.0;
        for (index, (t, membrane)) in self.triangles.iter().zip(self.membranes()).enumerate() {
            if self.is_element(index) {
                energy += membrane.energy(&membrane.deform(at(*t, x))?);
            }
        }
        let quadratic = self.quadratic();
        let hinges = quadratic.hinges.iter().map(|h| h.energy(at(h.vertices, x)));
        let plates = quadratic.plates.iter().map(|p| p.energy(at(p.vertices, x)));
        let folds = self.folds.iter().map(|f| f.energy(at(f.vertices, x)));
        let shells = self.shells.iter().map(|s| s.energy(at(s.vertices, x)));
        let angles = folds.sum::<f64>() + shells.sum::<f64>();
        let springs = self.springs.iter().map(|s| s.energy(at(s.vertices, x)));
        let flat = hinges.sum::<f64>() + plates.sum::<f64>();
        Some(energy + flat + angles + springs.sum::<f64>())
    }

    /// Elastic forces on all vertices in N at positions `x` in m, without factors that change in
    /// time; `None` if a triangle has collapsed.
    ///
    /// # Panics
    /// Rest shapes and bending elements were [released](crate::step::World::release).
    #[must_use]
    pub fn elastic_forces(&self, x: &[DVec3]) -> Option<Vec<DVec3>> {
        let mut forces = vec![DVec3::ZERO; x.len()];
        for (index, (t, membrane)) in self.triangles.iter().zip(self.membranes()).enumerate() {
            if self.is_element(index) {
                let deformation = membrane.deform(at(*t, x))?;
                for (&v, force) in t.iter().zip(membrane.forces(&deformation)) {
                    forces[v as usize] += force;
                }
            }
        }
        let quadratic = self.quadratic();
        for h in &*quadratic.hinges {
            let pull = h.curvature(at(h.vertices, x));
            for (v, weight) in h.vertices.into_iter().zip(h.weights) {
                forces[v as usize] -= pull * weight;
            }
        }
        for p in &*quadratic.plates {
            let curvatures = p.curvatures(at(p.vertices, x));
            for (corner, v) in p.vertices.into_iter().enumerate() {
                forces[v as usize] -= p.pull(&curvatures, corner);
            }
        }
        for f in &*self.folds {
            let state = f.state(at(f.vertices, x));
            for (v, mode) in f.vertices.into_iter().zip(state.mode) {
                forces[v as usize] -= mode * state.moment;
            }
        }
        for s in &*self.shells {
            let state = s.state(at(s.vertices, x));
            for (corner, v) in s.vertices.into_iter().enumerate() {
                forces[v as usize] -= state.pull(state.moments, corner);
            }
        }
        for s in &*self.springs {
            let force = s.state(at(s.vertices, x)).force;
            let [a, b] = s.vertices.map(|v| v as usize);
            forces[a] += force;
            forces[b] -= force;
        }
        Some(forces)
    }

    /// Lumped masses in kg.
    #[must_use]
    pub fn masses(&self) -> &[f64] {
        &self.masses
    }

    /// Mass-proportional damping of a vertex's cloth in 1/s.
    #[must_use]
    pub(crate) fn mass_damping(&self, vertex: usize) -> f64 {
        self.materials[self.cloth_of_vertex[vertex] as usize].damping_mass
    }

    /// Stiffness-proportional damping of a triangle's stretching and shearing in s.
    #[must_use]
    pub(crate) fn triangle_damping(&self, triangle: usize) -> [f64; 2] {
        let [stretch, shear, _] = self.material_of(triangle).damping;
        [stretch, shear]
    }

    /// Largest principal strain that a triangle's cloth bears.
    #[must_use]
    pub fn strain_limit(&self, triangle: usize) -> f64 {
        self.material_of(triangle).strain_limit
    }

    /// Largest shortening, as a share of the rest length, that a triangle's cloth bears in its
    /// plane; infinite without a limit.
    #[must_use]
    pub fn compression_limit(&self, triangle: usize) -> f64 {
        self.material_of(triangle).compression_limit
    }

    /// The share by which springs against bending add at most in time to the energy of a cloth that
    /// is stretched a little, in all directions alike: none where it has no such springs, and the
    /// more the finer its mesh.
    #[must_use]
    pub fn added_stretch(&self, cloth: usize) -> f64 {
        self.added_stretches.get(cloth).copied().unwrap_or_default()
    }

    /// The bending elements of a cloth.
    ///
    /// # Panics
    /// If there is no such cloth.
    #[must_use]
    pub fn bending(&self, cloth: usize) -> BendingInfo {
        self.bendings[cloth]
    }

    /// The cloth each vertex belongs to, by its index in the scene.
    #[must_use]
    pub fn cloth_of_vertex(&self) -> &[u32] {
        &self.cloth_of_vertex
    }
}

/// Values of vertices, that of vertex `v` at `new[v]`.
fn moved<T: Copy + Default>(old: &[T], new: &[u32]) -> Vec<T> {
    let mut out = vec![T::default(); old.len()];
    for (&value, &at) in old.iter().zip(new) {
        out[at as usize] = value;
    }
    out
}

/// The order of elements by their lowest vertices, ties kept in order.
fn by_lowest<T, const N: usize>(elements: &[T], vertices: impl Fn(&T) -> &[u32; N]) -> Vec<u32> {
    let lowest = |element: &T| vertices(element).iter().copied().fold(u32::MAX, u32::min) as usize;
    let mut next = Vec::new();
    for element in elements {
        let at = lowest(element);
        if at >= next.len() {
            next.resize(at + 1, 0_u32);
        }
        next[at] += 1;
    }
    let mut before = 0;
    for count in &mut next {
        before += std::mem::replace(count, before);
    }
    let mut order = vec![0; elements.len()];
    for (index, element) in (0..).zip(elements) {
        let at = &mut next[lowest(element)];
        order[*at as usize] = index;
        *at += 1;
    }
    order
}

/// The elements with these indices.
fn chosen<T: Copy + Send + Sync>(elements: &[T], order: &[u32]) -> Vec<T> {
    parallel::map(order.len(), |k| elements[order[k] as usize])
}

/// Elements with vertex `v` renamed `new[v]`, in the order of their lowest vertex, ties kept in
/// order.
fn renamed<T: Copy + Send + Sync, const N: usize>(
    elements: Array<T>,
    new: &[u32],
    vertices: impl Fn(&T) -> &[u32; N],
    rename: impl Fn(&mut T, [u32; N]),
) -> Array<T> {
    let mut elements = elements.into_owned();
    for element in &mut elements {
        let names = vertices(element).map(|v| new[v as usize]);
        rename(element, names);
    }
    let order = by_lowest(&elements, vertices);
    chosen(&elements, &order).into()
}

/// The positions of some vertices.
fn at<const N: usize>(vertices: [u32; N], x: &[DVec3]) -> [DVec3; N] {
    vertices.map(|v| x[v as usize])
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::mesh::{rotation_matrix, shirt};
    use crate::scene::Fabric;

    pub(crate) fn cotton() -> Material {
        Material {
            damping: [0.0; 3],
            ..Material::COTTON
        }
    }

    /// A square sheet of `n` by `n` vertices in the plane z = 0, one corner at the origin.
    pub(crate) fn grid(n: usize, side: f64) -> TriMesh {
        let step = side / (n - 1) as f64;
        let positions = (0..n * n)
            .map(|i| DVec3::new((i % n) as f64 * step, (i / n) as f64 * step, 0.0))
            .collect();
        let mut triangles = Vec::new();
        for j in 0..n - 1 {
            for i in 0..n - 1 {
                let a = (j * n + i) as u32;
                let (b, c, d) = (a + 1, a + n as u32, a + n as u32 + 1);
                if i % 2 == 0 {
                    triangles.extend([[a, b, d], [a, d, c]]);
                } else {
                    triangles.extend([[a, b, c], [b, d, c]]);
                }
            }
        }
        TriMesh {
            positions,
            triangles,
        }
    }

    pub(crate) fn model_of(mesh: &TriMesh) -> ClothModel {
        let mut model = ClothModel::default();
        model.add("sheet", mesh, &cotton(), DVec3::X).unwrap();
        model
    }

    #[test]
    fn masses_sum_to_density_times_area() {
        let model = model_of(&grid(7, 2.0));
        assert!((model.masses().iter().sum::<f64>() - 0.15 * 4.0).abs() < 1e-13);
    }

    #[test]
    fn every_interior_edge_is_a_hinge() {
        let n = 6;
        let model = model_of(&grid(n, 1.0));
        let edges = 3 * (n - 1) * (n - 1) + 2 * (n - 1);
        assert_eq!(model.quadratic().hinges.len(), edges - 4 * (n - 1));
        let (near, far) = model.couplings();
        assert_eq!(near.len(), edges);
        assert!(far.iter().all(|pair| near.binary_search(pair).is_err()));
        let quadratic = model.quadratic();
        let mut coupled = (quadratic.hinges.iter()).flat_map(|h| pairs(h.vertices));
        assert!(
            coupled
                .all(|pair| near.binary_search(&pair).is_ok() || far.binary_search(&pair).is_ok())
        );
    }

    /// The patch test: on an irregular mesh whose border follows an affine map, equilibrium is that
    /// map everywhere, with the same stress in every triangle.
    #[test]
    fn the_patch_test_is_passed() {
        let n = 7;
        let mut mesh = grid(n, 1.0);
        let inside = |v: usize| (1..n - 1).contains(&(v % n)) && (1..n - 1).contains(&(v / n));
        for (v, p) in mesh
            .positions
            .iter_mut()
            .enumerate()
            .filter(|(v, _)| inside(*v))
        {
            let t = v as f64;
            *p += DVec3::new((7.0 * t).sin(), (11.0 * t).sin(), 0.0) * (0.25 / n as f64);
        }
        let model = model_of(&mesh);
        // Stretched, sheared, turned out of the plane and moved.
        let turn = glam::DQuat::from_euler(glam::EulerRot::XYZ, 0.3, 0.8, -0.4);
        let affine = |p: DVec3| {
            turn * DVec3::new(1.06 * p.x + 0.02 * p.y, 1.03 * p.y, 0.0) + DVec3::new(0.1, 0.2, 0.3)
        };
        let exact: Vec<DVec3> = model.start().iter().map(|&p| affine(p)).collect();
        let forces = |x: &[DVec3]| {
            let mut forces = vec![DVec3::ZERO; x.len()];
            for (t, element) in model.triangles().iter().zip(model.membranes()) {
                let deformation = element.deform(t.map(|v| x[v as usize])).unwrap();
                for (&v, force) in t.iter().zip(element.forces(&deformation)) {
                    forces[v as usize] += force;
                }
            }
            forces
        };
        let balanced = forces(&exact);
        assert!(
            (0..n * n)
                .filter(|&v| inside(v))
                .all(|v| balanced[v].length() < 1e-11)
        );

        // And it is found from elsewhere.
        let mut x = exact.clone();
        for v in (0..n * n).filter(|&v| inside(v)) {
            let t = v as f64;
            x[v] += turn * DVec3::new((5.0 * t).sin(), (3.0 * t).sin(), 0.0) * 0.01;
        }
        for _ in 0..3000 {
            let forces = forces(&x);
            for v in (0..n * n).filter(|&v| inside(v)) {
                x[v] += forces[v] * 1e-4;
            }
        }
        for (x, exact) in x.iter().zip(&exact) {
            assert!(x.distance(*exact) < 1e-9, "{}", x.distance(*exact));
        }
        let stretch = |k: usize| {
            let t = model.triangles()[k].map(|v| x[v as usize]);
            model
                .membrane(k, model.shapes()[k])
                .deform(t)
                .unwrap()
                .strain()
        };
        for k in 0..model.triangles().len() {
            assert!((stretch(k) - stretch(0)).abs() < 1e-8);
        }
    }

    #[test]
    fn renumbering_vertices_changes_no_force() {
        let mesh = grid(5, 1.0);
        let model = model_of(&mesh);
        let n = mesh.positions.len() as u32;
        let new: Vec<u32> = (0..n).map(|v| (v * 7 + 3) % n).collect();
        let renamed = model.clone().renumbered(&new);
        let bend = |p: DVec3| DVec3::new(p.x, p.y, p.x * p.x);
        let energy = |m: &ClothModel| -> f64 {
            let x: Vec<DVec3> = m.start().iter().map(|&p| bend(p)).collect();
            let stretch: f64 = m
                .triangles()
                .iter()
                .zip(m.membranes())
                .map(|(t, e)| e.energy(&e.deform(t.map(|v| x[v as usize])).unwrap()))
                .sum();
            stretch
                + m.quadratic()
                    .hinges
                    .iter()
                    .map(|h| h.energy(h.vertices.map(|v| x[v as usize])))
                    .sum::<f64>()
        };
        assert!((energy(&model) / energy(&renamed) - 1.0).abs() < 1e-12);
        for (mass, &v) in model.masses().iter().zip(&new) {
            assert_eq!(*mass, renamed.masses()[v as usize]);
        }
    }

    #[test]
    fn woven_cloth_without_a_warp_is_named() {
        let woven = Material {
            stretch: [1000.0, 500.0],
            ..cotton()
        };
        let error = ClothModel::default()
            .add("flag", &grid(3, 1.0), &woven, DVec3::Z)
            .unwrap_err();
        let expected = PhysicsError::NoWarp {
            cloth: "flag".into(),
            triangle: 0,
        };
        assert_eq!(error, expected);
    }

    #[test]
    fn shirts_may_be_of_any_fabric() {
        for vertices in [12, 13, 30, 61] {
            let rotation = DVec3::new(-0.5 * std::f64::consts::PI, 0.0, 0.2);
            let mesh = shirt(0.7, vertices, DVec3::ZERO, rotation).unwrap();
            for fabric in Fabric::ALL {
                for weave in [DVec3::Z, DVec3::X] {
                    let warp = rotation_matrix(rotation) * weave;
                    let mut model = ClothModel::default();
                    let added = model.add("shirt", &mesh, &fabric.material(), warp);
                    assert_eq!(added, Ok(()), "{} {vertices} {weave}", fabric.name);
                }
            }
        }
    }

    #[test]
    fn bad_elements_are_named() {
        let mut mesh = grid(3, 1.0);
        mesh.positions.push(DVec3::ONE);
        let error = ClothModel::default()
            .add("flag", &mesh, &cotton(), DVec3::X)
            .unwrap_err();
        assert_eq!(
            error,
            PhysicsError::Massless {
                cloth: "flag".into(),
                vertex: 9
            }
        );
        let mut mesh = grid(3, 1.0);
        mesh.triangles.push([0, 1, 2]);
        let error = ClothModel::default()
            .add("flag", &mesh, &cotton(), DVec3::X)
            .unwrap_err();
        assert_eq!(
            error,
            PhysicsError::FlatTriangle {
                cloth: "flag".into(),
                triangle: 8
            }
        );
    }
}
