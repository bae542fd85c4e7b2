//! The linear system of a part of a step, on the rows a rank owns [BW98, §3].
//!
//! For the change Δv of velocities v after which `M (v + Δv − v̂) = τ (f − D (v + Δv) + M g)`, with forces at positions
//! that are X at no velocity and follow v by a time `shift`, Δv by a time `stiff`:
//!
//! `(M + τ D + τ stiff K) Δv = τ (f(X) − D v − shift K v + M g) + M (v̂ − v)`
//!
//! where K and D are stiffness and damping at X. Implicit Euler linearised where it begins is τ = stiff = shift = h, v̂ = v;
//! Newton's method has X = x̂ + τ v and shift 0, explicit elasticity stiff = shift = 0 (`motion` has them all). Every rank goes
//! through all elements that touch its rows, in the order of their global numbers, and adds to its own rows
//! only: elements on a border are computed on both sides, and no row depends on where it is. Threads of a rank share
//! its rows in the same way.

use std::ops::Range;

use glam::DVec3;
use serde::{Deserialize, Serialize};
use weft_partition::HaloPlan;

use super::elements::{RunElements, local_in};
use super::incidence::Incidence;
use super::triangles::Scratch;
use crate::physics::ClothModel;
use crate::physics::air::Air;
use crate::physics::membrane_lanes::{Law, Times};
use crate::solve::BlockMatrix;
use crate::step::world::World;
use crate::team::{Shares, parts};

/// A rank's elements, with the places they add to.
#[derive(Debug)]
pub(crate) struct Assembly {
    /// Triangles that touch owned vertices, ascending, with the local indices of their corners.
    triangles: Vec<(u32, [u32; 3])>,
    /// Which of them each thread of the rank looks at.
    triangle_shares: Shares,
    /// Threads and the parts that each of them fills.
    shares: Shares,
    /// The owned rows of each part, as local indices.
    runs: Vec<Range<usize>>,
    /// The elements that touch these.
    parts: Vec<RunElements>,
    /// What each thread needs scratch for.
    rooms: Vec<Scratch>,
}

/// A triangle that has collapsed or is not finite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Collapsed {
    pub(crate) triangle: u32,
}

/// How far triangles are stretched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Strains {
    /// The largest principal strain: elongation relative to the rest length. Not negative.
    pub largest: f64,
    /// The most by which one is larger than what its cloth bears; zero if none is.
    pub beyond: f64,
    /// The triangle of which that is, in the numbering of the patch tree: the first of all.
    pub worst: Option<u32>,
}

impl Strains {
    /// Adds those of other triangles.
    pub fn add(&mut self, other: Self) {
        self.largest = self.largest.max(other.largest);
        let same = other.beyond == self.beyond && other.worst.is_some_and(|t| Some(t) < self.worst);
        if other.beyond > self.beyond || same {
            (self.beyond, self.worst) = (other.beyond, other.worst);
        }
    }
}

/// What a system is made with beside elements; times in s.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load<'a> {
    /// τ: how long forces act.
    pub(crate) tau: f64,
    /// How far positions follow the change that is looked for.
    pub(crate) stiff: f64,
    /// How far they follow the velocities that it is a change of.
    pub(crate) shift: f64,
    pub(crate) gravity: DVec3,
    /// v̂ − v of owned vertices, if they differ.
    pub(crate) toward: Option<&'a [DVec3]>,
    pub(crate) air: Air,
}

impl Load<'_> {
    /// What moduli are multiplied with.
    pub(crate) fn times(&self) -> Times {
        Times {
            tau: self.tau,
            stiff: self.stiff,
            shift: self.shift,
        }
    }
}

impl Assembly {
    /// Finds the elements that touch owned rows and their places in the matrix.
    pub(crate) fn new(
        world: &World,
        plan: &HaloPlan,
        matrix: &BlockMatrix,
        shares: &Shares,
    ) -> Self {
        let owned = plan.owned();
        let mine = |v: &u32| owned.contains(&(*v as usize));
        let local = local_in(plan);
        let triangles = (0..).zip(world.model().triangles());
        let triangles = triangles.filter(|(_, t)| t.iter().any(mine));
        let triangles: Vec<_> = triangles.map(|(index, t)| (index, t.map(&local))).collect();
        let patches =
            (0..world.tree().patch_count()).map(|patch| world.tree().patch_vertices(patch));
        let starts: Vec<usize> = (patches.map(|patch| patch.start))
            .filter(|start| owned.contains(start))
            .map(|start| start - owned.start)
            .collect();
        let shares_of_rows = shares.elements.iter();
        let runs_of_shares = shares_of_rows.map(|rows| runs(rows.clone(), &starts));
        let mut runs = Vec::new();
        let mut parts_of_shares = Vec::new();
        for of_share in runs_of_shares {
            parts_of_shares.push(runs.len()..runs.len() + of_share.len());
            runs.extend(of_share);
        }
        let mut shares = shares.clone();
        shares.ranges = parts_of_shares;
        let rows = runs
            .iter()
            .map(|run| owned.start + run.start..owned.start + run.end);
        let rows: Vec<Range<usize>> = rows.collect();
        let incidence = Incidence::of_runs(world.model(), &rows);
        let parts =
            (rows.iter().zip(&incidence)).map(|of| RunElements::new(world, plan, matrix, of));
        Self {
            triangle_shares: shares.team().cut_even(triangles.len()),
            triangles,
            parts: parts.collect(),
            runs,
            rooms: shares.elements.iter().map(|_| Scratch::default()).collect(),
            shares,
        }
    }

    /// Fills matrix (kg) and right-hand side (kg m/s) for positions X and velocities v with halo.
    pub(crate) fn assemble(
        &mut self,
        model: &ClothModel,
        state: (&[DVec3], &[DVec3]),
        load: &Load<'_>,
        matrix: &mut BlockMatrix,
        rhs: &mut [DVec3],
    ) -> Result<(), Collapsed> {
        let mut outcomes = vec![Ok(()); self.runs.len()];
        let mut rows = matrix.rows_mut(&self.runs);
        let mut sides: Vec<_> = parts(rhs, &self.runs).collect();
        let of = &self.shares.ranges;
        let work = (parts(&mut rows, of).zip(parts(&mut sides, of)))
            .zip(parts(&mut outcomes, of).zip(of.iter().map(|share| &self.parts[share.clone()])))
            .zip(&mut self.rooms);
        let laws: Vec<Law> = (model.laws())
            .map(|(moduli, damping)| Law::new(&moduli, damping, &load.times()))
            .collect();
        self.shares
            .run(work, |(((matrices, sides), (outcomes, parts)), scratch)| {
                let filled = (matrices.iter_mut().zip(sides)).zip(parts.iter().zip(outcomes));
                for ((matrix, rhs), (part, outcome)) in filled {
                    *outcome = part.assemble(model, state, (load, &laws), (matrix, rhs), scratch);
                }
            });
        // The first one, whoever came upon it.
        let collapsed = outcomes.into_iter().filter_map(Result::err);
        collapsed.min_by_key(|c| c.triangle).map_or(Ok(()), Err)
    }

    /// Goes through the triangles that touch owned vertices on all threads of the rank: `visit` is called for each one
    /// with the local indices of its corners, and what the thread collects; its runs follow each other in the order
    /// of the triangles.
    pub(crate) fn collect<T: Send>(
        &self,
        collected: &mut Vec<T>,
        empty: impl Fn() -> T + Sync,
        visit: impl Fn(u32, [u32; 3], &mut T) + Sync,
    ) {
        let shares = &self.triangle_shares;
        collected.resize_with(shares.elements.len(), &empty);
        let work = collected.iter_mut().zip(&shares.elements);
        shares.run(work, |(collected, share)| {
            // On the thread's own stack: those of all threads lie side by side.
            let mut own = std::mem::replace(collected, empty());
            for &(index, corners) in &self.triangles[share.clone()] {
                visit(index, corners, &mut own);
            }
            *collected = own;
        });
    }

    /// The first of this rank's triangles that has no area any more when its corners, at `x` (m), have moved with `v` (m/s)
    /// for `dt` (s).
    pub(crate) fn first_collapsed(
        &self,
        model: &ClothModel,
        (x, v): (&[DVec3], &[DVec3]),
        dt: f64,
    ) -> Result<(), Collapsed> {
        let mut found = Vec::new();
        self.collect(
            &mut found,
            || None,
            |triangle, corners, found: &mut Option<u32>| {
                let end = corners.map(|c| x[c as usize] + v[c as usize] * dt);
                let index = triangle as usize;
                if model.is_element(index) && model.membranes()[index].deform(end).is_none() {
                    found.get_or_insert(triangle);
                }
            },
        );
        let first = found.into_iter().flatten().min();
        first.map_or(Ok(()), |triangle| Err(Collapsed { triangle }))
    }

    /// How far this rank's triangles are stretched, with their corners at `x` (m).
    pub(crate) fn strains(&self, model: &ClothModel, x: &[DVec3]) -> Strains {
        let mut found = Vec::new();
        self.collect(
            &mut found,
            Strains::default,
            |index, [a, b, c], found: &mut Strains| {
                let membrane = &model.membranes()[index as usize];
                let corners = [x[a as usize], x[b as usize], x[c as usize]];
                let limit = model.strain_limit(index as usize);
                let known = found.largest.min(limit + found.beyond);
                if let Some(strain) = membrane.strain_above(known, corners) {
                    found.add(Strains {
                        largest: strain,
                        beyond: strain - limit,
                        worst: Some(index),
                    });
                }
            },
        );
        let mut all = Strains::default();
        found.into_iter().for_each(|strains| all.add(strains));
        all
    }
}

/// Cuts rows where patches start, into runs whose part of the matrix stays in the cache while elements are added to it. A patch that is
/// too large for that is cut too.
fn runs(rows: Range<usize>, patches: &[usize]) -> Vec<Range<usize>> {
    let mut runs = Vec::new();
    let mut at = rows.start;
    while at < rows.end {
        let most = (at + MOST_ROWS).min(rows.end);
        let before = patches.partition_point(|&start| start <= most);
        let patch = patches[..before].last().copied();
        let end = match patch {
            _ if most == rows.end => most,
            Some(start) if start > at => start,
            _ => most,
        };
        runs.push(at..end);
        at = end;
    }
    runs
}

/// Rows of a run at most: some 600 bytes each, and as many of what they are made of.
const MOST_ROWS: usize = 512;
