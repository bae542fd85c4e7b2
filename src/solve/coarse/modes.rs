//! The coarse space: each aggregate moves as a rigid body. Groups take the same modes, of their
//! vertices alone.
//!
//! Vertex i of aggregate a has the three translations and the three rotations about the centroid of
//! a, as columns of
//!
//! ```text
//! Tᵢ = [ I  eₓ×qᵢ  e_y×qᵢ  e_z×qᵢ ],   qᵢ = (xᵢ − centroid) / mean distance from it
//! ```
//!
//! and of them what its constraints leave, Pᵢ = Sᵢ Tᵢ. Stretching, which is stiff in cloth, hardly
//! resists such motions, and neighbouring vertices take part in them alike: they are what local
//! preconditioners leave over \[TJM15\]. Rotations are scaled to be of the size of translations.
//!
//! Offsets q and projections S of halo vertices come from their owners, who know the centroids. The
//! modes follow the positions and are placed anew for each solve.

use std::ops::Range;

use glam::DVec3;
use weft_partition::{Aggregates, HaloPlan, Ownership};
use weft_runtime::comm::{Comm, CommError};

use crate::heap_bytes::counts_heap;
use crate::solve::{BlockMatrix, Filter, Halo};
use crate::team::{Shares, parts};

/// The rigid motions of the aggregates that a rank owns or reads.
#[derive(Clone, Debug)]
pub(super) struct Modes {
    /// The aggregates of each owned patch, counted from the first that is owned.
    in_patch: Vec<Range<usize>>,
    /// The aggregate of each owned vertex, counted from the first that is owned.
    aggregate: Vec<u32>,
    /// How many vertices each owned aggregate has.
    sizes: Vec<u32>,
    centroids: Vec<DVec3>,
    radii: Vec<f64>,
    /// The offsets q of owned vertices and halo.
    offsets: Vec<DVec3>,
    /// S of owned vertices and halo: xx, xy, xz, and yy, yz, zz.
    free: [Vec<DVec3>; 2],
    /// The directions that are left to each of these: a place in `projected`, or [`ALL`] or
    /// [`NOTHING`].
    left: Vec<u32>,
    projected: Vec<Projected>,
}

counts_heap!(Modes: in_patch, aggregate, sizes, centroids, radii, offsets, free, left, projected);

/// Places of vertices that are free, and of those that have no direction left.
const ALL: u32 = u32::MAX;
const NOTHING: u32 = ALL - 1;

/// P = S T of a vertex by columns, whose fourth numbers are zero.
pub(super) type Projected = [[f64; 4]; 6];

/// The part of a vertex's modes that constraints leave.
#[derive(Clone, Copy, Debug)]
pub(super) enum Left<'a> {
    All,
    Some(&'a Projected),
    Nothing,
}

impl Modes {
    pub(super) fn new(plan: &HaloPlan, ownership: &Ownership, aggregates: &Aggregates) -> Self {
        let owned = aggregates.owned(ownership, plan.rank());
        let aggregate: Vec<u32> = (plan.owned())
            .map(|vertex| aggregates.of(vertex as u32) - owned.start as u32)
            .collect();
        let mut sizes = vec![0; owned.len()];
        for &aggregate in &aggregate {
            sizes[aggregate as usize] += 1;
        }
        let local = || vec![DVec3::ZERO; plan.local_len()];
        let in_patch = ownership.patches(plan.rank()).map(|patch| {
            let all = aggregates.in_patch(patch);
            all.start - owned.start..all.end - owned.start
        });
        Self {
            in_patch: in_patch.collect(),
            aggregate,
            centroids: vec![DVec3::ZERO; owned.len()],
            radii: vec![0.0; owned.len()],
            sizes,
            offsets: local(),
            free: [local(), local()],
            left: vec![ALL; plan.local_len()],
            projected: Vec::new(),
        }
    }

    /// Finds the modes for positions and constraints of the owned vertices. Collective.
    pub(super) fn place(
        &mut self,
        comm: &mut dyn Comm,
        halo: &mut Halo,
        positions: &[DVec3],
        filter: &Filter,
    ) -> Result<(), CommError> {
        let vertices = || positions.iter().zip(&self.aggregate);
        self.centroids.fill(DVec3::ZERO);
        for (&x, &a) in vertices() {
            self.centroids[a as usize] += x;
        }
        for (centroid, &size) in self.centroids.iter_mut().zip(&self.sizes) {
            *centroid /= f64::from(size);
        }
        self.radii.fill(0.0);
        for (&x, &a) in vertices() {
            self.radii[a as usize] += (x - self.centroids[a as usize]).length();
        }
        for (radius, &size) in self.radii.iter_mut().zip(&self.sizes) {
            *radius /= f64::from(size);
        }
        for (q, (&x, &a)) in self.offsets.iter_mut().zip(vertices()) {
            let (from, radius) = (x - self.centroids[a as usize], self.radii[a as usize]);
            // One vertex, or all in one place, cannot be turned.
            *q = if radius == 0.0 { from } else { from / radius };
        }
        let [rows, rest] = &mut self.free;
        for (row, (first, rest)) in rows.iter_mut().zip(rest).take(filter.len()).enumerate() {
            let free = filter.free(row);
            *first = DVec3::new(free.x_axis.x, free.y_axis.x, free.z_axis.x);
            *rest = DVec3::new(free.y_axis.y, free.z_axis.y, free.z_axis.z);
        }
        let [rows, rest] = &mut self.free;
        halo.start_all(comm, [&self.offsets, rows, rest])?;
        halo.finish_all(comm, [&mut self.offsets, rows, rest])?;
        self.projected.clear();
        let [first, rest] = &self.free;
        let free = first.iter().zip(rest).zip(&self.offsets);
        for (left, ((&a, &b), q)) in self.left.iter_mut().zip(free) {
            *left = if (a, b) == (DVec3::X, DVec3::new(1.0, 0.0, 1.0)) {
                ALL
            } else if (a, b) == (DVec3::ZERO, DVec3::ZERO) {
                NOTHING
            } else {
                let free = [a, DVec3::new(a.y, b.x, b.y), DVec3::new(a.z, b.y, b.z)];
                self.projected.push(projected(free, *q));
                self.projected.len() as u32 - 1
            };
        }
        Ok(())
    }

    /// Adds up the diagonals of the rows of each owned aggregate: forces against motions of single
    /// vertices, whatever constraints leave of these.
    pub(super) fn sum_diagonals(&self, matrix: &BlockMatrix, sums: &mut [f64], shares: &Shares) {
        let owned = || self.owned_by(shares);
        let work = (parts(sums, owned()).zip(owned())).zip(&shares.elements);
        shares.run(work, |((sums, owned), rows)| {
            sums.fill(0.0);
            for (row, &aggregate) in rows.clone().zip(&self.aggregate[rows.clone()]) {
                let [x, y, z] = matrix.diagonal_block(row).to_cols_array_2d();
                sums[aggregate as usize - owned.start] += x[0] + y[1] + z[2];
            }
        });
    }

    /// The offset q of a vertex, owned or of the halo.
    #[inline]
    pub(super) fn offset(&self, local: usize) -> DVec3 {
        self.offsets[local]
    }

    /// The offsets q of owned vertices and halo.
    pub(super) fn offsets(&self) -> &[DVec3] {
        &self.offsets
    }

    /// The part of the modes of a vertex, owned or of the halo, that constraints leave.
    #[inline]
    pub(super) fn left(&self, local: usize) -> Left<'_> {
        match self.left[local] {
            ALL => Left::All,
            NOTHING => Left::Nothing,
            place => Left::Some(&self.projected[place as usize]),
        }
    }

    /// The owned aggregates that each thread's share of the patches consists of.
    pub(super) fn owned_by(&self, shares: &Shares) -> impl Iterator<Item = Range<usize>> {
        shares
            .ranges
            .iter()
            .map(|patches| self.in_patch[patches.start].start..self.in_patch[patches.end - 1].end)
    }
}

/// S T, for the columns of S.
fn projected([x, y, z]: [DVec3; 3], q: DVec3) -> Projected {
    let turned = [z * q.y - y * q.z, x * q.z - z * q.x, y * q.x - x * q.y];
    let [a, b, c] = turned;
    [x, y, z, a, b, c].map(|column| column.extend(0.0).to_array())
}
