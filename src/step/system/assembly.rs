//! The assembly of the linear system of a substep, on the rows that a rank owns [BW98, §3].
//!
//! The change Δv of velocities v is looked for after which `M (v + Δv − v̂) = τ (f − D (v + Δv) + M
//! g)`, with forces at positions that are X at no velocity and follow v by a time `shift`, Δv by a
//! time `stiff`:
//!
//! `(M + τ D + τ stiff K) Δv = τ (f(X) − D v − shift K v + M g) + M (v̂ − v)`
//!
//! where K and D are stiffness and damping at X. Implicit Euler linearised where it begins is
//! τ = stiff = shift = h, v̂ = v. Newton's method has X = x̂ + τ v and shift 0, explicit elasticity
//! stiff = shift = 0 (`time_integrator` has them all).
//!
//! Every rank goes through all elements that touch its rows, in the order of their global numbers,
//! and adds to its own rows only. So elements on a border are computed on both sides, and no row
//! depends on where it is. Threads of a rank share its rows in the same way.
//!
//! * \[BW98\] Baraff, Witkin: Large steps in cloth simulation.

use std::ops::Range;

use glam::DVec3;
use serde::{Deserialize, Serialize};

use super::elements::{Assembling, Rows, RunElements};
use super::incidence::{Incidence, IncidentRun};
use super::load::{Collapsed, Load};
use super::local_vertices::local_in;
use super::scratch::Scratch;
use crate::heap_bytes::{counts_heap, owns_no_heap};
use crate::physics::ClothModel;
use crate::physics::membrane::{RestTriangle, TriangleShape};
use crate::solve::BlockMatrix;
use crate::step::domain::Domain;
use crate::step::neighbourhood::Neighbourhood;
use crate::step::state::StateView;
use crate::step::world::World;
use crate::team::{Shares, parts};

/// A rank's elements, with the places they add to.
#[derive(Debug)]
pub(crate) struct Assembly {
    /// The triangles that touch owned vertices, ascending.
    triangles: Vec<LocalTriangle>,
    /// The triangles that each thread of the rank looks at.
    triangle_shares: Shares,
    /// Threads and the parts that each of them fills.
    shares: Shares,
    /// The owned rows of each part, as local indices.
    runs: Vec<Range<usize>>,
    /// The elements that touch these.
    parts: Vec<RunElements>,
    /// The memory that each thread works in.
    scratch: Vec<Scratch>,
}

counts_heap!(Assembly: triangles, triangle_shares, shares, runs, parts, scratch);

/// A triangle as loops over those of a rank have it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LocalTriangle {
    /// Its number in the numbering of the patch tree.
    pub(crate) number: u32,
    /// The local indices of its corners.
    pub(crate) corners: [u32; 3],
    shape: TriangleShape,
}

owns_no_heap!(LocalTriangle);

impl LocalTriangle {
    /// The values of its corners, of those with halo.
    #[inline(always)]
    pub(crate) fn of(&self, values: &[DVec3]) -> [DVec3; 3] {
        self.corners.map(|corner| values[corner as usize])
    }

    /// Its elasticity.
    #[inline(always)]
    pub(crate) fn membrane(&self, model: &ClothModel) -> RestTriangle {
        model.membrane(self.number as usize, self.shape)
    }
}

/// How far triangles are stretched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Strains {
    /// The largest principal strain: elongation relative to the rest length. Not negative.
    pub largest: f64,
    /// The most by which one is larger than what its cloth bears; zero if none is.
    pub beyond: f64,
    /// The number of that triangle in the patch tree, the first of several.
    pub worst: Option<u32>,
}

impl Strains {
    /// Takes other triangles into account.
    pub fn add(&mut self, other: Self) {
        self.largest = self.largest.max(other.largest);
        let same = other.beyond == self.beyond && other.worst.is_some_and(|t| Some(t) < self.worst);
        if other.beyond > self.beyond || same {
            (self.beyond, self.worst) = (other.beyond, other.worst);
        }
    }
}

impl Assembly {
    /// Finds the elements that touch owned rows and their places in the matrix.
    pub(crate) fn new(
        world: &World,
        domain: &Domain,
        matrix: &BlockMatrix,
        shares: &Shares,
        neighbourhood: &impl Neighbourhood,
    ) -> Self {
        let (plan, owned) = (&domain.plan, domain.owned());
        let local = local_in(plan);
        let shapes = world.model().shapes();
        let triangles = neighbourhood.triangles_of(domain.patches()).into_iter();
        let triangles = triangles.map(|triangle| LocalTriangle {
            number: triangle.number,
            corners: triangle.corners.map(&local),
            shape: shapes[triangle.number as usize],
        });
        let triangles: Vec<LocalTriangle> = triangles.collect();
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
        let incidence = Incidence::of_runs(world.model(), &rows, &read_by(world, plan));
        let parts = rows.iter().zip(&incidence).map(|(rows, elements)| {
            let run = IncidentRun { rows, elements };
            RunElements::new(world.model(), plan, matrix, run)
        });
        Self {
            triangle_shares: shares.team().cut_even(triangles.len()),
            triangles,
            parts: parts.collect(),
            runs,
            scratch: shares.elements.iter().map(|_| Scratch::default()).collect(),
            shares,
        }
    }

    /// Fills matrix (kg) and right-hand side (kg m/s) for positions X and velocities v with halo.
    pub(crate) fn assemble(
        &mut self,
        model: &ClothModel,
        state: StateView<'_>,
        load: &Load<'_>,
        into: SystemMut<'_>,
    ) -> Result<(), Collapsed> {
        let mut outcomes = vec![Ok(()); self.runs.len()];
        let mut rows = into.matrix.rows_mut(&self.runs);
        let mut sides: Vec<_> = parts(into.rhs, &self.runs).collect();
        let of = &self.shares.ranges;
        let work = (parts(&mut rows, of).zip(parts(&mut sides, of)))
            .zip(parts(&mut outcomes, of).zip(of.iter().map(|share| &self.parts[share.clone()])))
            .zip(&mut self.scratch);
        let cloths = model.at_time(load.time);
        let laws = model.laws_at(&cloths, &load.times);
        let with = Assembling {
            model,
            state,
            load,
            cloths: &cloths,
            laws: &laws,
        };
        self.shares
            .run(work, |(((matrices, sides), (outcomes, parts)), scratch)| {
                let filled = (matrices.iter_mut().zip(sides)).zip(parts.iter().zip(outcomes));
                for ((matrix, rhs), (part, outcome)) in filled {
                    *outcome = part.assemble(&with, Rows { matrix, rhs }, scratch);
                }
            });
        // The triangle with the lowest number, whichever thread came upon it.
        let collapsed = outcomes.into_iter().filter_map(Result::err);
        collapsed.min_by_key(|c| c.triangle).map_or(Ok(()), Err)
    }

    /// The triangles that touch owned vertices, ascending.
    pub(crate) fn triangles(&self) -> impl Iterator<Item = &LocalTriangle> {
        self.triangles.iter()
    }

    /// Goes through the triangles that touch owned vertices on all threads of the rank. `visit` is
    /// called for each one, with what the thread collects. The runs of the threads follow each
    /// other in the order of the triangles.
    pub(crate) fn collect<T: Send>(
        &self,
        collected: &mut Vec<T>,
        empty: impl Fn() -> T + Sync,
        visit: impl Fn(&LocalTriangle, &mut T) + Sync,
    ) {
        let shares = &self.triangle_shares;
        collected.resize_with(shares.elements.len(), &empty);
        let work = collected.iter_mut().zip(&shares.elements);
        shares.run(work, |(collected, share)| {
            // On the thread's own stack: those of all threads lie side by side.
            let mut own = std::mem::replace(collected, empty());
            for triangle in &self.triangles[share.clone()] {
                visit(triangle, &mut own);
            }
            *collected = own;
        });
    }

    /// Finds the first of this rank's triangles that has no area any more when its corners have
    /// moved for `dt` (s).
    pub(crate) fn first_collapsed(
        &self,
        model: &ClothModel,
        state: StateView<'_>,
        dt: f64,
    ) -> Result<(), Collapsed> {
        let mut found = Vec::new();
        self.collect(
            &mut found,
            || None,
            |triangle, found: &mut Option<u32>| {
                let end = triangle
                    .corners
                    .map(|c| state.x[c as usize] + state.v[c as usize] * dt);
                let index = triangle.number as usize;
                if model.is_element(index) && triangle.membrane(model).deform(end).is_none() {
                    found.get_or_insert(triangle.number);
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
            |triangle, found: &mut Strains| {
                let index = triangle.number as usize;
                let membrane = triangle.membrane(model);
                let limit = model.strain_limit(index);
                let known = found.largest.min(limit + found.beyond);
                if let Some(strain) = membrane.strain_above(known, triangle.of(x)) {
                    found.add(Strains {
                        largest: strain,
                        beyond: strain - limit,
                        worst: Some(triangle.number),
                    });
                }
            },
        );
        let mut all = Strains::default();
        found.into_iter().for_each(|strains| all.add(strains));
        all
    }
}

/// A system that is filled.
#[derive(Debug)]
pub(crate) struct SystemMut<'a> {
    pub(crate) matrix: &'a mut BlockMatrix,
    pub(crate) rhs: &'a mut [DVec3],
}

/// Cuts rows where patches start, into runs whose part of the matrix stays in the cache while
/// elements are added to it. A patch that is too large for that is cut too.
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

/// The most rows of a run: some 600 bytes each, and as many of the data they are computed from.
pub(crate) const MOST_ROWS: usize = 512;
/// The vertices that may be the lowest of an element with a vertex of the rank's own, as ascending
/// ranges: its own, and those of patches of its halo that come before.
fn read_by(world: &World, plan: &weft_partition::HaloPlan) -> Vec<Range<usize>> {
    let tree = world.tree();
    let own = plan.owned();
    let before = plan.halo().iter().filter(|&&v| (v as usize) < own.start);
    let halo = before.map(|&v| tree.patch_of(v));
    let mut patches: Vec<usize> = halo.collect();
    patches.sort_unstable();
    patches.dedup();
    let mut read: Vec<_> = patches
        .into_iter()
        .map(|p| tree.patch_vertices(p))
        .collect();
    read.push(own);
    read
}
