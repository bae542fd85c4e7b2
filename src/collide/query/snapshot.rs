//! The snapshot: one step's geometry, which is everything that collision tests read.
//!
//! Volumes bound the part of space that a triangle sweeps in the step, inflated by half the reach
//! of contacts of the thickest cloth there. They are a function of positions and velocities alone,
//! and lie on a grid that is one of positions. Vertices have volumes too: they sort out pairs of
//! features of triangles whose volumes meet, as those of neighbours always do.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::{Arc, MutexGuard, PoisonError};

use glam::DVec3;

use crate::collide::bodies::body_motion::{BodyMotion, Sweep};
use crate::collide::bodies::collider::{BodySurface, Collider};
use crate::collide::bvh::displacements::{self, Displacements};
use crate::collide::bvh::extent::Extent;
use crate::collide::bvh::grid::Grid;
use crate::collide::bvh::kdop::Kdop18;
use crate::collide::bvh::patch_tree::{self, Ball, PatchTree};
use crate::collide::bvh::quantised::{Nodes, Quantised};
use crate::collide::bvh::seed_pairs::{self, Boxes, PatchBoxes};
use crate::collide::cloth::{ClothSurface, Culling};
use crate::collide::cull::separation_bound::{self, SeparationBound};
use crate::collide::distances::Distances;
use crate::collide::query::volumes::{Held, Subtrees, Volumes};
use crate::collide::tangles::Kept;

thread_local! {
    /// Room for the displacements of a patch.
    static SEEN: RefCell<Vec<Displacements>> = const { RefCell::new(Vec::new()) };
}

/// The share to which the distances that culling compares are known: that of f32, in which they are
/// kept, and of positions up to 10⁸ times the reach from the origin.
pub(in crate::collide) const ROUNDING: f64 = 1e-5;

/// Positions and motion of all cloth and bodies at the start of a step.
#[derive(Debug)]
pub struct Snapshot<'a> {
    pub(in crate::collide) cloth: &'a ClothSurface,
    bodies: &'a [Collider],
    /// The bodies that deform, as they are in the step.
    deformed: Vec<Option<Arc<Collider>>>,
    /// The motion of each body in the step.
    pub(in crate::collide) sweeps: Vec<Sweep>,
    motions: &'a [BodyMotion],
    pub(in crate::collide) x: &'a [DVec3],
    pub(in crate::collide) v: &'a [DVec3],
    /// The extent of `x`, if it is known.
    extent: Option<Extent>,
    pub(in crate::collide) dt: f64,
    pub(in crate::collide) distances: &'a Distances,
    /// The distance within which a contact of any cloth with any is reported, in m.
    pub(in crate::collide) reach: f64,
    pub(in crate::collide) self_collision: bool,
    pub(in crate::collide) all_pairs: bool,
    /// The culling, with the separation bound above which features that are not rest-adjacent stay
    /// apart.
    pub(in crate::collide) culling: Option<(&'a Culling, SeparationBound)>,
    pub(in crate::collide) volumes: &'a Volumes,
    /// Whether trees are made only as far as tests look at them.
    by_subtrees: bool,
    /// Whether each vertex is known; all are if there is no list.
    known: Option<&'a [bool]>,
    /// Vertices, each with a body that lets it through, ascending.
    pub(in crate::collide) suspended: &'a [[u32; 2]],
    /// Vertices of cloth that started through cloth.
    pub(in crate::collide) kept: &'a Kept,
}

/// The things that a step's geometry is made from.
#[derive(Clone, Copy, Debug)]
pub struct Geometry<'a> {
    /// The cloth's features and trees.
    pub cloth: &'a ClothSurface,
    /// Bodies, each prepared for the reach of two of its thickness.
    pub bodies: &'a [Collider],
    /// How each body moves.
    pub body_motions: &'a [BodyMotion],
    /// The least distance in m that any two cloths keep.
    pub thickness: f64,
    /// The distance that each pair keeps.
    pub distances: &'a Distances,
    /// Whether cloth is tested against cloth.
    pub self_collision: bool,
    /// Whether all pairs of features of cloth that come within reach are contacts, and not just
    /// those at local minima of the distance.
    pub all_pairs: bool,
}

/// The culling of a step, with the separation bound above which features that are not rest-adjacent
/// stay apart.
fn culling_of<'a>(geometry: &Geometry<'a>) -> Option<(&'a Culling, SeparationBound)> {
    let culling = geometry.cloth.culling()?;
    let reach = geometry.distances.cloth_reach();
    // The square has room for rounding.
    let keeps = |distance: f64| reach * reach * (1.0 + ROUNDING) / distance;
    let distance = culling.distance * culling.distance;
    (keeps(distance) < 1.0).then(|| (culling, separation_bound::not_above(keeps(distance))))
}

impl<'a> Snapshot<'a> {
    /// The geometry of a step from `time` to `time + dt`, with positions `x` and velocities `v` of
    /// all cloth vertices. Their volumes are kept in `volumes`, for one snapshot at a time.
    #[must_use]
    pub fn new(
        geometry: &Geometry<'a>,
        volumes: &'a mut Volumes,
        x: &'a [DVec3],
        v: &'a [DVec3],
        time: f64,
        dt: f64,
    ) -> Self {
        let tiles = match culling_of(geometry) {
            Some((culling, _)) => culling.charts.tiles().len(),
            None => 0,
        };
        let (patches, bodies) = (geometry.cloth.patches().len(), geometry.bodies.len());
        volumes.begin(patches, bodies, tiles);
        Self::over(geometry, volumes, [x, v], [time, dt])
    }

    /// The geometry of the step for which volumes were [begun](Self::new), with other vertices
    /// known.
    pub(crate) fn over(
        geometry: &Geometry<'a>,
        volumes: &'a Volumes,
        [x, v]: [&'a [DVec3]; 2],
        [time, dt]: [f64; 2],
    ) -> Self {
        Self {
            culling: culling_of(geometry),
            cloth: geometry.cloth,
            bodies: geometry.bodies,
            deformed: (geometry.bodies.iter().zip(geometry.body_motions))
                .map(|(body, motion)| body.in_step(motion, time, dt))
                .collect(),
            sweeps: (geometry.body_motions.iter())
                .map(|motion| motion.sweep(time, dt))
                .collect(),
            motions: geometry.body_motions,
            x,
            v,
            extent: None,
            dt,
            distances: geometry.distances,
            reach: geometry.distances.cloth_reach(),
            self_collision: geometry.self_collision,
            all_pairs: geometry.all_pairs,
            volumes,
            by_subtrees: false,
            known: None,
            suspended: &[],
            kept: Kept::EMPTY,
        }
    }

    /// Finds no contacts of these vertices, ascending, each with the body that lets it through.
    #[must_use]
    pub(crate) fn suspending(mut self, suspended: &'a [[u32; 2]]) -> Self {
        self.suspended = suspended;
        self
    }

    /// Finds no contacts of features that a kept set lets pass: they would be pressed together on
    /// the wrong sides of each other. While there is such a set all pairs beside it are contacts,
    /// for where surfaces cross their distance has no local minimum but 0.
    #[must_use]
    pub(crate) fn keeping(mut self, kept: &'a Kept) -> Self {
        self.kept = kept;
        self.all_pairs |= !kept.is_empty();
        self
    }

    /// Makes trees only as far as tests look at them, for a rank that does not test all patches
    /// against all. A rank that tests all makes them whole in less time. Tests and contacts are the
    /// same.
    #[must_use]
    pub(crate) fn by_subtrees(mut self) -> Self {
        self.by_subtrees = true;
        self
    }

    /// Reads no vertices but those that are known, where there is a list. Features are not left out
    /// for a separation bound that would need others. Contacts are the same.
    #[must_use]
    pub(crate) fn knowing(mut self, known: Option<&'a [bool]>) -> Self {
        self.known = known;
        self
    }

    /// Whether all of some vertices are known.
    pub(in crate::collide) fn knows(&self, vertices: &[u32]) -> bool {
        let all = |known: &[bool]| vertices.iter().all(|&v| known[v as usize]);
        self.known.is_none_or(all)
    }

    /// Takes the extent of the positions, where it is known.
    #[must_use]
    pub(crate) fn within(mut self, extent: Extent) -> Self {
        debug_assert!(self.known.is_some() || extent == Extent::of(self.x));
        self.extent = Some(extent);
        self
    }

    /// The bodies in the step.
    pub(in crate::collide) fn bodies(&self) -> impl Iterator<Item = &Collider> {
        (self.bodies.iter().zip(&self.deformed))
            .map(|(body, deformed)| deformed.as_deref().unwrap_or(body))
    }

    /// A body in the step.
    pub(in crate::collide) fn body(&self, body: u32) -> &Collider {
        let deformed = self.deformed.get(body as usize).and_then(Option::as_deref);
        deformed.unwrap_or_else(|| &self.bodies[body as usize])
    }

    /// How many bodies there are.
    pub(in crate::collide) fn body_count(&self) -> usize {
        self.bodies.len()
    }

    /// The volume of the root of a patch's tree.
    pub(in crate::collide) fn patch_root(&self, patch: u32) -> &Kdop18 {
        let root = self.volumes.roots[patch as usize].of(|root| {
            root.clear();
            let radius = self.distances.patch_radius(patch);
            self.with_displacements(patch, |displacements, anchor| {
                root.push(displacements::around(displacements, anchor, radius));
            });
        });
        &root[0]
    }

    /// The patch tree, with the volumes of its nodes.
    pub(in crate::collide) fn patch_tree(&self) -> PatchTree<'_> {
        let patches = 0..self.cloth.patches().len() as u32;
        PatchTree::new(self.volumes.merged.of(|merged| {
            patch_tree::merge(patches.map(|p| self.patch_root(p)), merged);
        }))
    }

    /// Tells `found` the pairs of patches that meet, the lower number first, of which one is in a
    /// range.
    pub(crate) fn meeting_patches(&self, of: &Range<usize>, found: impl FnMut(usize, usize)) {
        self.patch_tree().pairs(of, found);
    }

    /// The balls around the nodes of the patch tree.
    pub(in crate::collide) fn patch_balls(&self) -> &[Ball] {
        let balls = &self.volumes.balls;
        balls.of(|balls| self.patch_tree().balls(balls))
    }

    /// Makes the volume around a patch, which tests ask for later.
    pub(crate) fn make_root(&self, patch: usize) {
        self.patch_root(patch as u32);
    }

    /// The volumes around these patches, as numbers.
    pub(crate) fn roots(&self, patches: &[usize]) -> Vec<[f32; Kdop18::NUMBERS]> {
        let roots = (patches.iter()).map(|&patch| *self.patch_root(patch as u32).numbers());
        roots.collect()
    }

    /// Takes the volumes around some patches from the rank that has made them of the same
    /// positions.
    pub(crate) fn take_roots(&self, patches: &[usize], roots: &[[f32; Kdop18::NUMBERS]]) {
        for (&patch, numbers) in patches.iter().zip(roots) {
            self.volumes.roots[patch].of(|root| {
                root.clear();
                root.push(Kdop18::from_numbers(*numbers));
            });
        }
    }

    /// The boxes around the subtrees of a patch's tree.
    pub(in crate::collide) fn boxes(&self, patch: u32) -> &[Boxes] {
        self.volumes.boxes[patch as usize].of(|out| {
            let vertices = &self.cloth.patch_vertices()[patch as usize];
            let ends = |place: u32| self.ends(vertices[place as usize]);
            let groups = self.cloth.refit(patch).corners();
            seed_pairs::boxes(groups, ends, self.distances.patch_radius(patch), out);
        })
    }

    /// Tells `found` the pairs of subtrees of two patches' trees that may touch.
    pub(in crate::collide) fn seed_pairs(&self, p: u32, q: u32, found: impl FnMut(u32, u32)) {
        let both = [p, q].map(|patch| PatchBoxes {
            root: self.patch_root(patch),
            boxes: self.boxes(patch),
            all: self.cloth.refit(patch).whole(),
        });
        seed_pairs::seed_pairs(both, found);
    }

    /// The volumes of a patch's tree.
    pub(in crate::collide) fn patch_volumes(&self, patch: u32) -> Nodes<'_> {
        Nodes(self.volumes.patches[patch as usize].of(|volumes| {
            let refit = self.cloth.refit(patch);
            refit.run(self.vertex_volumes(patch), volumes);
        }))
    }

    /// The volumes of a patch for tests against itself or a body.
    pub(in crate::collide) fn whole_volumes(&self, patch: u32) -> Held<'_> {
        let vertices = self.vertex_volumes(patch);
        if self.by_subtrees {
            let made = self
                .subtrees(patch)
                .whole(self.cloth.refit(patch), vertices);
            Held::Subtrees(made, Some(vertices))
        } else {
            Held::Whole(self.patch_volumes(patch), vertices)
        }
    }

    /// The volumes of a patch for tests that look into some subtrees of its tree, a bit for each.
    /// When the last subtree is asked for, the whole tree is made.
    pub(in crate::collide) fn some_volumes(&self, patch: u32, subtrees: u64) -> Held<'_> {
        if !self.by_subtrees {
            return self.whole_volumes(patch);
        }
        let refit = self.cloth.refit(patch);
        let mut held = self.subtrees(patch);
        if held.opened().unwrap_or(0) | subtrees == refit.whole() {
            drop(held);
            return self.whole_volumes(patch);
        }
        // This is read after the lock is taken: a thread that has opened subtrees with all vertices
        // has noted these by now.
        let known = self.volumes.vertices[patch as usize].made();
        let measure = |places: &[u32], out: &mut Vec<Quantised>| {
            let vertices = &self.cloth.patch_vertices()[patch as usize];
            out.resize(vertices.len(), Quantised::NOTHING);
            let ends = |at| self.ends(vertices[at as usize]);
            let (anchor, radius) = (self.anchor(patch), self.distances.patch_radius(patch));
            (self.grid()).measure_some(places, ends, anchor, radius, out);
        };
        Held::Subtrees(held.open((refit, subtrees), known, measure), known)
    }

    fn subtrees(&self, patch: u32) -> MutexGuard<'_, Subtrees> {
        let subtrees = &self.volumes.subtrees[patch as usize];
        subtrees.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The subtrees of a patch's tree that are made, a bit for each; `None` if nothing of it is.
    pub(crate) fn opened(&self, patch: usize) -> Option<u64> {
        if self.by_subtrees {
            self.subtrees(patch as u32).opened()
        } else {
            let whole = self.cloth.refit(patch as u32).whole();
            self.volumes.patches[patch].is_made().then_some(whole)
        }
    }

    /// The ends of a vertex's displacement.
    #[inline(always)]
    fn ends(&self, vertex: u32) -> [DVec3; 2] {
        let (x, v) = (self.x[vertex as usize], self.v[vertex as usize]);
        [x, x + v * self.dt]
    }

    /// The anchor from which displacements of a patch's vertices are seen: the first of the
    /// vertices.
    fn anchor(&self, patch: u32) -> DVec3 {
        let vertices = &self.cloth.patch_vertices()[patch as usize];
        let anchor = vertices.first().map(|&v| self.x[v as usize]);
        anchor.unwrap_or_default()
    }

    /// The grid on which all volumes lie. It is laid over the cloth as it is at the start of the
    /// step, which all ranks know before they have told each other how far their patches move.
    /// Cloth that moves beyond the grid is not missed, because its border holds it.
    pub(in crate::collide) fn grid(&self) -> &Grid {
        let grid = &self.volumes.grid;
        grid.get_or_init(|| Grid::over(self.extent.unwrap_or_else(|| Extent::of(self.x))))
    }

    /// Gives `take` the displacements of the vertices of a patch's triangles in the step, seen from
    /// its anchor, and the anchor. They are not kept: they take half the bytes of volumes, and
    /// hardly more time than to be read again.
    fn with_displacements(&self, patch: u32, take: impl FnOnce(&[Displacements], DVec3)) {
        let vertices = &self.cloth.patch_vertices()[patch as usize];
        let (ends, anchor) = (|&vertex: &u32| self.ends(vertex), self.anchor(patch));
        SEEN.with_borrow_mut(|displacements| {
            Displacements::of(vertices, ends, anchor, displacements);
            take(displacements, anchor);
        });
    }

    /// The volumes of the vertices of a patch's triangles, which hold all points within half the
    /// reach of their displacements.
    #[inline]
    pub(in crate::collide) fn vertex_volumes(&self, patch: u32) -> &[Quantised] {
        self.volumes.vertices[patch as usize].of(|volumes| {
            let (grid, radius) = (self.grid(), self.distances.patch_radius(patch));
            self.with_displacements(patch, |displacements, anchor| {
                grid.measure(displacements, anchor, radius, volumes);
            });
        })
    }

    /// The volume of a cloth vertex. Where trees are made by subtrees, there is none for a patch
    /// whose vertices have not all been asked for.
    #[inline]
    pub(in crate::collide) fn vertex_volume(&self, vertex: u32) -> Option<&Quantised> {
        let (patch, at) = self.cloth.slot(vertex);
        let all = if self.by_subtrees {
            self.volumes.vertices[patch as usize].made()?
        } else {
            self.vertex_volumes(patch)
        };
        Some(&all[at as usize])
    }

    /// Whether the box around the displacements of some vertices comes within reach of that around
    /// others.
    pub(in crate::collide) fn may_reach(&self, some: &[u32], others: &[u32]) -> bool {
        let boxed = |vertices: &[u32]| {
            let ends = vertices.iter().flat_map(|&vertex| self.ends(vertex));
            ends.fold(Extent::EMPTY, Extent::with)
        };
        let (one, two) = (boxed(some), boxed(others));
        let reach = DVec3::splat(self.reach * (1.0 + ROUNDING));
        let apart = (one.low - two.high).cmpgt(reach) | (two.low - one.high).cmpgt(reach);
        !apart.any()
    }

    /// Whether a body is tested in patches. The volumes of one that rests are kept from step to
    /// step, and it is tested as a whole.
    pub(in crate::collide) fn is_in_patches(&self, body: u32, surface: &BodySurface) -> bool {
        surface.is_in_patches() && !self.motions[body as usize].is_still()
    }

    /// The patches of a body that a volume meets, a bit for each.
    pub(in crate::collide) fn body_patches_near(
        &self,
        body: u32,
        surface: &BodySurface,
        volume: &Kdop18,
    ) -> u64 {
        let motion = (&self.sweeps[body as usize], self.dt);
        let boxes = self.volumes.body_boxes[body as usize].of(|out| {
            let ends = |vertex| surface.ends(vertex, motion);
            seed_pairs::boxes(surface.patches().corners(), ends, surface.radius(), out);
        });
        seed_pairs::met_by(volume, boxes, surface.patches().whole())
    }

    /// The volumes of a body that has triangles, for tests that look into some of its patches, a
    /// bit for each.
    pub(in crate::collide) fn some_body_volumes(
        &self,
        (body, surface): (u32, &BodySurface),
        patches: u64,
    ) -> Held<'_> {
        if !self.is_in_patches(body, surface) {
            return Held::Whole(self.body_volumes(body), &[]);
        }
        let motion = (&self.sweeps[body as usize], self.dt);
        let measure = |vertices: &[u32], out: &mut Vec<Quantised>| {
            out.resize(surface.positions.len(), Quantised::NOTHING);
            let ends = |vertex| surface.ends(vertex, motion);
            let (grid, radius) = (self.grid(), surface.radius());
            grid.measure_some(vertices, ends, grid.origin(), radius, out);
        };
        let held = &self.volumes.body_patches[body as usize];
        let mut held = held.lock().unwrap_or_else(PoisonError::into_inner);
        Held::Subtrees(held.open((surface.patches(), patches), None, measure), None)
    }

    /// The volumes of a body's tree; none for an analytic body.
    pub(in crate::collide) fn body_volumes(&self, body: u32) -> Nodes<'_> {
        let Collider::Triangles(surface) = self.body(body) else {
            return Nodes(&[]);
        };
        if self.motions[body as usize].is_still() {
            let kept = &self.volumes.resting[body as usize];
            return Nodes(kept.get_or_init(|| surface.resting(self.grid())));
        }
        let motion = (&self.sweeps[body as usize], self.dt);
        let (at, kept) = (body as usize, self.volumes);
        Nodes(kept.bodies[at].of(|volumes| {
            let displacements = kept.body_displacements[at]
                .of(|displacements| surface.displacements(self.grid(), motion, displacements));
            let measure =
                |out: &mut Vec<_>| surface.vertex_volumes(self.grid(), displacements, out);
            surface.refit(kept.body_vertices[at].of(measure), volumes);
        }))
    }
}
