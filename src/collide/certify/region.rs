//! The region of a response: the patches around hits, in which alone it looks for what may cross.
//!
//! Hits are few in most steps, and lie together. A response that looked at all cloth would need the
//! motion of all of it on every rank, and volumes around all triangles. The volumes around patches
//! tell what is enough. They are those of the search of contacts, which every rank has, or are
//! made of the displacements where all of these are known. The *inner* patches have a vertex of a
//! hit, or meet one that has, and the *border* are the patches that inner ones meet.
//!
//! **Why that is enough.** The volume around a patch holds the displacements of its triangles, half
//! of the gap to be kept wider; that of the search of contacts does so if all vertices end within
//! the allowance of where they were foreseen. Let the response move only vertices that no patch of
//! the border has, and each of them so that its displacement stays in the volume of every patch
//! that has it. Then whatever a moved vertex may cross is of a patch whose volume meets that of an
//! inner patch, and so of the region. [`Region::holds`] looks at this after each round. A response
//! that leaves its region is made anew with all cloth, so the result is the same in any case.
//!
//! The search for what vertices may cross that go elsewhere than foreseen is likewise one in their
//! patches and in those that these meet, by the volumes of displacements ([`tree_near`]). If ranks
//! do not know all displacements, each makes the volumes of its patches, and tells the others.

use std::ops::Range;

use glam::DVec3;

use super::joined::Positions;
use super::meeting::Meeting;
use super::truncate::Truncate;
use crate::archive::Array;
use crate::collide::bvh::kdop::Kdop18;
use crate::collide::bvh::patch_tree::{self, PatchTree};
use crate::collide::bvh::tree::Bvh;
use crate::collide::cloth::ClothSurface;

/// The patches around hits.
#[derive(Debug)]
pub(crate) struct Region<'a> {
    cloth: &'a ClothSurface,
    /// The volume around each patch of the cloth.
    roots: Vec<Kdop18>,
    /// Whether each patch is one that it is around.
    hit: Vec<bool>,
    /// Whether vertices of each patch may be moved.
    inner: Vec<bool>,
    /// Whether each patch is of the region.
    all: Vec<bool>,
    /// Whether each vertex of cloth is a corner of a triangle of these patches.
    seen: Vec<bool>,
}

impl<'a> Region<'a> {
    /// The region around some patches, by the volume around each patch. `None` if it would be more
    /// than half of the patches.
    #[must_use]
    pub(crate) fn around(
        cloth: &'a ClothSurface,
        roots: Vec<Kdop18>,
        hit: Vec<bool>,
    ) -> Option<Self> {
        let beside = vec![false; hit.len()];
        Self::around_and(cloth, roots, hit, beside)
    }

    /// The patches that some patches meet, and these: a region around no hit. `None` if it would be
    /// more than half of the patches.
    #[must_use]
    pub(crate) fn near(cloth: &'a ClothSurface, roots: Vec<Kdop18>, some: &[bool]) -> Option<Self> {
        let near = neighbours(&roots, some);
        let none = vec![false; some.len()];
        Self::around_and(cloth, roots, none, near)
    }

    /// The region around some patches, with others.
    fn around_and(
        cloth: &'a ClothSurface,
        roots: Vec<Kdop18>,
        hit: Vec<bool>,
        others: Vec<bool>,
    ) -> Option<Self> {
        let inner = neighbours(&roots, &hit);
        let mut all = neighbours(&roots, &inner);
        for (all, other) in all.iter_mut().zip(others) {
            *all |= other;
        }
        let seen = seen_by(cloth, &all)?;
        Some(Self {
            cloth,
            roots,
            hit,
            inner,
            all,
            seen,
        })
    }

    /// Whether it is a region around all of some hits.
    #[must_use]
    pub(crate) fn is_around(&self, hits: &[Meeting]) -> bool {
        let hit = patches_of(self.cloth, hits);
        hit.iter().zip(&self.hit).all(|(hit, known)| *known || !hit)
    }

    /// The region around what this one is around and around hits. `None` if it would be more than
    /// half of the patches.
    #[must_use]
    pub(crate) fn with(&self, hits: &[Meeting]) -> Option<Self> {
        let mut hit = patches_of(self.cloth, hits);
        for (hit, known) in hit.iter_mut().zip(&self.hit) {
            *hit |= known;
        }
        Self::around_and(self.cloth, self.roots.clone(), hit, self.all.clone())
    }

    /// The vertices of cloth that it sees, ascending.
    pub(crate) fn vertices(&self) -> impl Iterator<Item = u32> + '_ {
        let seen = (0..).zip(&self.seen).filter(|(_, seen)| **seen);
        seen.map(|(v, _)| v)
    }

    /// The tree over what is left of all triangles: those of cloth that it sees whole, and those of
    /// bodies.
    pub(crate) fn tree(&self, step: &Truncate<'_>) -> Bvh {
        pruned(step, &self.seen)
    }

    /// Whether vertices that were moved to these places (m) may cross nothing but what it sees.
    pub(super) fn holds(&self, step: &Truncate<'_>, goal: Positions<'_>, moved: &[bool]) -> bool {
        let is_moved = |v: &&u32| moved[**v as usize];
        let stays = |patch: usize, v: u32| {
            let root = &self.roots[patch];
            self.inner[patch] && root.union(&step.around(&[v], goal)) == *root
        };
        self.patches().all(|patch| {
            let vertices = &self.cloth.patch_vertices()[patch];
            let mut moved = vertices.iter().filter(is_moved);
            moved.all(|&v| stays(patch, v))
        })
    }

    /// Its patches, ascending.
    fn patches(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.all.len()).filter(|&patch| self.all[patch])
    }

    /// The largest magnitude of a coordinate of what was moved, in m.
    pub(super) fn farthest(&self, goal: &[DVec3], moved: &[bool]) -> f64 {
        let vertices = self
            .patches()
            .flat_map(|patch| self.cloth.patch_vertices()[patch].iter());
        let moved = vertices.filter(|v| moved[**v as usize]);
        moved.fold(0.0, |most, &v| {
            goal[v as usize].abs().max_element().max(most)
        })
    }
}

/// Whether each patch is the one in which the surface has a vertex of some hits. Other patches with
/// that vertex meet this one.
#[must_use]
pub(crate) fn patches_of(cloth: &ClothSurface, hits: &[Meeting]) -> Vec<bool> {
    let mut hit = vec![false; cloth.patches().len()];
    for &v in hits.iter().flat_map(Meeting::vertices) {
        // Vertices of bodies have higher numbers.
        if (v as usize) < cloth.rest().len() {
            hit[cloth.slot(v).0 as usize] = true;
        }
    }
    hit
}

/// The volume around the displacements of the vertices of each of some patches, this much (m) wider
/// than half of the gap to be kept.
#[must_use]
pub(crate) fn around_displacements(
    cloth: &ClothSurface,
    patches: Range<usize>,
    step: &Truncate<'_>,
    wider: f64,
) -> Vec<Kdop18> {
    let mut points = Vec::new();
    let around = |vertices: &Array<u32>| {
        points.clear();
        for &v in vertices.iter() {
            points.extend([step.start[v as usize], step.goal[v as usize]]);
        }
        Kdop18::around(&points, 0.5 * step.least + wider)
    };
    cloth.patch_vertices()[patches].iter().map(around).collect()
}

/// The tree over triangles of bodies, and of cloth that some vertices may cross wherever they go.
/// `None` if that is most of the cloth.
#[must_use]
pub(crate) fn tree_near(
    cloth: &ClothSurface,
    step: &Truncate<'_>,
    vertices: &[bool],
) -> Option<Bvh> {
    let has_one = |of: &Array<u32>| of.iter().any(|&v| vertices[v as usize]);
    let with: Vec<bool> = cloth.patch_vertices().iter().map(has_one).collect();
    let roots = around_displacements(cloth, 0..with.len(), step, 0.0);
    seen_by(cloth, &neighbours(&roots, &with)).map(|seen| pruned(step, &seen))
}

/// Whether each vertex is a corner of a triangle of one of some patches; `None` if these are more
/// than half of all.
fn seen_by(cloth: &ClothSurface, some: &[bool]) -> Option<Vec<bool>> {
    let patches = cloth.patch_vertices().iter().zip(some);
    let patches = patches.filter(|(_, is)| **is);
    if 2 * patches.clone().count() > some.len() {
        return None;
    }
    let mut seen = vec![false; cloth.rest().len()];
    for (vertices, _) in patches {
        vertices.iter().for_each(|&v| seen[v as usize] = true);
    }
    Some(seen)
}

/// The tree over what is left of all triangles: those of bodies, and of cloth those of which all
/// corners are seen.
fn pruned(step: &Truncate<'_>, seen: &[bool]) -> Bvh {
    let sees = |&v: &u32| seen.get(v as usize).is_none_or(|seen| *seen);
    step.tree
        .pruned(|triangle| step.surface.corners(triangle).iter().all(sees))
}

/// Some patches, and those that they meet, by the volume around each patch.
fn neighbours(roots: &[Kdop18], some: &[bool]) -> Vec<bool> {
    let mut merged = Vec::new();
    patch_tree::merge(roots.iter(), &mut merged);
    let tree = PatchTree::new(&merged);
    let mut all = some.to_vec();
    let mut first = 0;
    for run in some.chunk_by(|one, next| one == next) {
        let range = first..first + run.len();
        first = range.end;
        if run[0] {
            tree.pairs(&range, |one, other| {
                all[one] = true;
                all[other] = true;
            });
        }
    }
    all
}
