//! The levels of a refinement, which all frames of a run share, and what becomes of one frame.
//!
//! In: the triangles of cloth, the vertices of each cloth, and the bodies. For each frame then the
//! positions of cloth and bodies. Out: the positions of the finest level, which cross nothing that
//! did not cross before ([`Halving`]): at each level the split leaves the surface as it is, and its
//! new vertices go towards the smooth surface as far as they may [Bri03, §3.2].

use std::sync::Arc;

use glam::DVec3;

use super::smooth::displacements;
use super::split::Split;
use crate::collide::bodies::{Analytic, AnalyticBody, BodySurface};
use crate::collide::certify::{Halving, Scenery, along};
use crate::collide::{BodyMotion, Collider, Passing, Surface};
use crate::mesh::TriMesh;

/// A body as cloth meets it, where it was placed.
#[derive(Clone, Debug)]
pub enum Solid {
    /// A formula, and how it moves.
    Formula(Analytic, BodyMotion),
    /// Triangles, of which each frame says where they are.
    Triangles(TriMesh),
}

/// The cloth and the bodies of a run.
#[derive(Clone, Debug)]
pub struct Subject<'a> {
    /// The triangles of all cloth.
    pub triangles: &'a [[u32; 3]],
    /// The positions of cloth in any frame, in m.
    pub positions: &'a [DVec3],
    /// The number of vertices of each cloth, which follow each other.
    pub sizes: &'a [usize],
    /// Whether each cloth passes through itself.
    pub passing: &'a [bool],
    /// The bodies.
    pub solids: &'a [Solid],
}

/// A frame that is to be refined.
#[derive(Clone, Copy, Debug)]
pub struct Moment<'a> {
    /// Its time in s.
    pub time: f64,
    /// The positions of cloth in m.
    pub cloth: &'a [DVec3],
    /// The vertices of each body of triangles in m; `None` for one with a formula.
    pub solids: &'a [Option<Vec<DVec3>>],
}

/// A frame that was refined.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Smoothed {
    /// The positions of the finest level in m.
    pub positions: Vec<DVec3>,
    /// The share of its displacement towards the smooth surface that each vertex went; 1 for those
    /// that the frame had.
    pub shares: Vec<f64>,
    /// The numbers of each level.
    pub levels: Vec<LevelCounts>,
}

/// The numbers of a level of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LevelCounts {
    /// Vertices that the level has beside those of the one before.
    pub new: u64,
    /// New vertices that are off the linear positions, or would be if they were not cut.
    pub moved: u64,
    /// New vertices that were cut.
    pub cut: u64,
    /// The pairs of features that were tested.
    pub tests: u64,
    /// The rounds that it took.
    pub rounds: u32,
}

/// The levels of a refinement.
#[derive(Debug)]
pub struct Levels {
    coarse: Surface,
    levels: Vec<Level>,
    motions: Vec<BodyMotion>,
    /// The place of the first vertex of each body among those of bodies, for bodies of triangles.
    places: Vec<Option<usize>>,
    /// The triangles of each body, none for one with a formula.
    solids: Vec<Vec<[u32; 3]>>,
}

#[derive(Debug)]
struct Level {
    split: Split,
    /// All triangles of the level, of cloth and of bodies.
    scenery: Scenery,
}

impl Levels {
    /// Splits the triangles of cloth this many times.
    #[must_use]
    pub fn new(of: &Subject<'_>, count: u32) -> Self {
        let (mut colliders, mut motions, mut places) = (Vec::new(), Vec::new(), Vec::new());
        let mut first = 0;
        for solid in of.solids {
            let (collider, motion, place, vertices) = match solid {
                Solid::Formula(formula, motion) => {
                    let corners = usize::from(matches!(formula, Analytic::Box { .. })) * 8;
                    (analytic(*formula), motion.clone(), None, corners)
                }
                Solid::Triangles(mesh) => {
                    let surface = BodySurface::new(mesh, 0.0, &[]);
                    let vertices = mesh.positions.len();
                    let still = BodyMotion::constant(DVec3::ZERO);
                    let collider = Collider::Triangles(Box::new(surface));
                    (collider, still, Some(first), vertices)
                }
            };
            first += vertices;
            colliders.push(collider);
            motions.push(motion);
            places.push(place);
        }
        let coarse = Surface::new(of.triangles, of.positions.len());
        let (mut sizes, mut positions) = (of.sizes.to_vec(), of.positions.to_vec());
        let mut triangles = of.triangles.len();
        let mut levels: Vec<Level> = Vec::new();
        for _ in 0..count {
            let before = levels
                .last()
                .map_or(&coarse, |level| level.scenery.triangles().cloth());
            let split = Split::new(before, triangles, &sizes);
            sizes = split.sizes();
            positions = split.between(&positions, middle);
            triangles = split.triangles().len();
            let cloths = (0..).zip(&sizes);
            let cloths = cloths.flat_map(|(cloth, &size)| std::iter::repeat_n(cloth, size));
            let passes = |cloth: u32| of.passing[cloth as usize];
            let passing = Passing::new(&cloths.collect::<Vec<u32>>(), passes);
            let surface = Surface::new(split.triangles(), positions.len()).letting(passing);
            let scenery = Scenery::new(Arc::new(surface), &positions, &colliders);
            levels.push(Level { split, scenery });
        }
        Self {
            coarse,
            levels,
            motions,
            places,
            solids: (of.solids.iter())
                .map(|solid| match solid {
                    Solid::Formula(..) => Vec::new(),
                    Solid::Triangles(mesh) => mesh.triangles.clone(),
                })
                .collect(),
        }
    }

    /// Whether a mesh has the triangles of a body.
    pub(super) fn is_body(&self, number: usize, mesh: &TriMesh) -> bool {
        self.solids[number] == mesh.triangles
    }

    /// The triangles of the finest level.
    #[must_use]
    pub fn triangles(&self) -> &[[u32; 3]] {
        let finest = self.levels.last().map(|level| level.split.triangles());
        finest.unwrap_or_else(|| self.coarse.triangles())
    }

    /// The number of vertices of each cloth at the finest level, if there is a level.
    #[must_use]
    pub fn sizes(&self) -> Vec<usize> {
        let finest = self.levels.last();
        finest.map_or_else(Vec::new, |level| level.split.sizes())
    }

    /// Values of vertices at the finest level, from those of the frame's; those between are made of
    /// two.
    pub(super) fn between<T: Copy>(&self, values: &[T], mix: impl Fn(T, T) -> T) -> Vec<T> {
        let mut values = values.to_vec();
        for level in &self.levels {
            values = level.split.between(&values, &mix);
        }
        values
    }

    /// Refines a frame.
    ///
    /// # Panics
    /// If the frame has other numbers of vertices than the cloth and the bodies.
    #[must_use]
    pub fn refine(&self, moment: &Moment<'_>) -> Smoothed {
        let mut smoothed = Smoothed {
            positions: moment.cloth.to_vec(),
            shares: vec![1.0; moment.cloth.len()],
            levels: Vec::new(),
        };
        let mut before = &self.coarse;
        for level in &self.levels {
            let Level { split, scenery } = level;
            let movers = scenery.movers(&self.motions, [moment.time; 2]);
            let [_, mut bodies] = scenery.ends(&movers);
            for (place, solid) in self.places.iter().zip(moment.solids) {
                if let (Some(place), Some(x)) = (*place, solid) {
                    bodies[place..place + x.len()].copy_from_slice(x);
                }
            }
            let counts = [split.triangles().len() / 4, split.edges().len()];
            let by = displacements(before, counts, &smoothed.positions);
            let mut start = split.between(&smoothed.positions, middle);
            let steps = split.values(|_| DVec3::ZERO, |edge| by[edge]);
            let mut goal: Vec<DVec3> = start.iter().zip(&steps).map(|(x, by)| *x + *by).collect();
            for all in [&mut start, &mut goal] {
                all.extend_from_slice(&bodies);
            }
            let halved = Halving {
                surface: scenery.triangles(),
                tree: scenery.tree(),
                start: (&start).into(),
                goal: (&goal).into(),
                movable: scenery.movable(),
                movers: &movers,
                body_of: scenery.body_of(),
            }
            .run();
            let both = start.iter().zip(&goal).zip(&halved.kept);
            let ends = both.map(|((start, goal), kept)| along(*start, *goal, *kept));
            smoothed.levels.push(LevelCounts {
                new: split.edges().len() as u64,
                moved: steps.iter().filter(|by| **by != DVec3::ZERO).count() as u64,
                cut: halved.cut() as u64,
                tests: halved.tests,
                rounds: halved.rounds,
            });
            // Vertices that were there keep their share.
            let mut shares = split.values(|v| smoothed.shares[v], |_| 1.0);
            for (share, kept) in shares.iter_mut().zip(&halved.kept) {
                *share = share.min(*kept);
            }
            (smoothed.positions, smoothed.shares) = (ends.collect(), shares);
            before = scenery.triangles().cloth();
        }
        smoothed
    }
}

/// The middle between two points.
pub(super) fn middle(a: DVec3, b: DVec3) -> DVec3 {
    0.5 * (a + b)
}

fn analytic(formula: Analytic) -> Collider {
    Collider::Analytic(AnalyticBody::new(formula, &[]))
}
