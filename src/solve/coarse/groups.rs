//! The level between vertices and aggregates: each group of a few vertices moves as a rigid body, for itself.
//!
//! Between an aggregate's motion and a vertex's lies what neither corrects well, bends and stretches of a few edges' length, and the
//! iterations that it takes grow with the size of aggregates. With the modes of all groups as G this level adds
//!
//! ```text
//! G D⁻¹ Gᵀ r,   D the diagonal 6x6 blocks of Gᵀ A G,
//! ```
//!
//! one more level of the additive multilevel preconditioner of \[BPX90\], whose scales are those of plain aggregation. Blocks are a group's own: whoever
//! owns the patch does all of it, and nothing travels.
//!
//! The modes of a group are those of its aggregate, of these vertices alone: any basis of rigid motions will do. So the sums of an aggregate are
//! those of its groups added up, its block of the coarse matrix has theirs in it, and what a vertex moves by is one motion again, that of its group and
//! that of its aggregate together.
//!
//! * \[BPX90\] Bramble, Pasciak, Xu: Parallel multilevel preconditioners. Mathematics of Computation 55, 1990.

use std::ops::Range;

use glam::{DMat3, DVec3};
use weft_partition::{Aggregates, HaloPlan, Ownership};

use super::cholesky::{factor_block, inverted};
use super::modes::Modes;
use super::padded::{self, Column, Padded, ZERO, narrowed, padded, widened};
use super::{Block, Six};
use crate::simd::{Lanes, Loop, widest};
use crate::solve::block_jacobi;
use crate::team::{Shares, parts};

/// The groups of one rank.
#[derive(Clone, Debug)]
pub(super) struct Groups {
    /// The group of each owned vertex, counted from the first that is owned, as all are here.
    of_vertex: Vec<u32>,
    /// Where the groups of each owned aggregate start; one more than there are.
    starts: Vec<usize>,
    /// Of each owned patch.
    in_patch: Vec<Range<usize>>,
    /// D⁻¹. It is not rounded to f32: of blocks of stiff cloth not much may be lost, or it is not positive any more.
    inverse: Vec<Padded>,
    /// Gᵀ of the last vector, and D⁻¹ of that.
    sums: Vec<Six>,
    change: Vec<Six>,
    /// Of each owned patch the product of the two.
    energies: Vec<f64>,
    /// D⁻¹ Gᵀ r.
    correction: Vec<Six>,
    /// That, and the correction of the aggregate.
    motion: Vec<Six>,
}

impl Groups {
    pub(super) fn new(plan: &HaloPlan, ownership: &Ownership, aggregates: &Aggregates) -> Self {
        let owned = aggregates.owned(ownership, plan.rank());
        let first = aggregates.groups_in(owned.start).start;
        let starts: Vec<usize> = (owned.clone())
            .map(|aggregate| aggregates.groups_in(aggregate).start - first)
            .chain([aggregates.groups_in(owned.end - 1).end - first])
            .collect();
        let in_patch = ownership.patches(plan.rank()).map(|patch| {
            let all = aggregates.in_patch(patch);
            starts[all.start - owned.start]..starts[all.end - owned.start]
        });
        let in_patch: Vec<_> = in_patch.collect();
        let count = starts[owned.len()];
        let zeros = || vec![[0.0; 6]; count];
        Self {
            of_vertex: (plan.owned())
                .map(|vertex| aggregates.group_of(vertex as u32) - first as u32)
                .collect(),
            energies: vec![0.0; in_patch.len()],
            in_patch,
            starts,
            inverse: vec![ZERO; count],
            sums: zeros(),
            change: zeros(),
            correction: zeros(),
            motion: zeros(),
        }
    }

    pub(super) fn count(&self) -> usize {
        self.inverse.len()
    }

    /// The group of an owned vertex.
    #[inline]
    pub(super) fn of(&self, row: usize) -> usize {
        self.of_vertex[row] as usize
    }

    /// The groups of owned aggregates.
    pub(super) fn of_aggregates(&self, aggregates: &Range<usize>) -> Range<usize> {
        self.starts[aggregates.start]..self.starts[aggregates.end]
    }

    /// Inverts the blocks of all groups. Modes that are not there, of a constrained group or one on a line, are dropped.
    pub(super) fn factor(&mut self, blocks: &[Block], shares: &Shares) {
        let in_patch = &self.in_patch;
        let groups = || owned_by(in_patch, shares);
        let work = parts(&mut self.inverse, groups()).zip(groups());
        shares.run(work, |(inverse, groups)| {
            let blocks = &blocks[groups];
            widest(Inverting { blocks, inverse });
        });
    }

    /// Gᵀ v for a vector v = S v, D⁻¹ of that, and the sums of aggregates.
    pub(super) fn restrict(
        &mut self,
        vector: &[DVec3],
        modes: &Modes,
        of_aggregates: &mut [Six],
        shares: &Shares,
    ) {
        let Self {
            of_vertex,
            starts,
            in_patch,
            inverse,
            sums,
            change,
            energies,
            ..
        } = self;
        let (of_vertex, offsets) = (&of_vertex[..], modes.offsets());
        let (starts, in_patch, inverse) = (&starts[..], &in_patch[..], &inverse[..]);
        let groups = || owned_by(in_patch, shares);
        let aggregates = || modes.owned_by(shares);
        let work = (parts(sums, groups()).zip(parts(change, groups())))
            .zip(parts(of_aggregates, aggregates()))
            .zip(parts(energies, shares.ranges.iter().cloned()))
            .zip(groups().zip(aggregates()))
            .zip(shares.elements.iter().zip(&shares.ranges));
        shares.run(
            work,
            |(((((sums, change), totals), energies), (groups, aggregates)), (rows, patches))| {
                sums.fill([0.0; 6]);
                let vertices = (vector[rows.clone()].iter())
                    .zip(&offsets[rows.clone()])
                    .zip(&of_vertex[rows.clone()]);
                for ((v, q), &group) in vertices {
                    add_moments(&mut sums[group as usize - groups.start], *q, *v);
                }
                for (total, aggregate) in totals.iter_mut().zip(aggregates) {
                    *total = [0.0; 6];
                    let own =
                        starts[aggregate] - groups.start..starts[aggregate + 1] - groups.start;
                    for sum in &sums[own] {
                        for (total, sum) in total.iter_mut().zip(sum) {
                            *total += sum;
                        }
                    }
                }
                widest(Applying {
                    inverse: &inverse[groups.clone()],
                    sums,
                    change,
                });
                for (energy, patch) in energies.iter_mut().zip(patches.clone()) {
                    let own = &in_patch[patch];
                    let own = own.start - groups.start..own.end - groups.start;
                    let products = (sums[own.clone()].iter()).zip(&change[own]).map(|(a, b)| {
                        ((a[0] * b[0] + a[1] * b[1]) + (a[2] * b[2] + a[3] * b[3]))
                            + (a[4] * b[4] + a[5] * b[5])
                    });
                    *energy = products.sum();
                }
            },
        );
    }

    /// Of each owned patch the last restricted vector's product with what this level makes of it.
    pub(super) fn energies(&self) -> &[f64] {
        &self.energies
    }

    /// Begins anew with a residual, which was restricted last.
    pub(super) fn restart(&mut self, of_aggregates: &[Six]) {
        self.correction.copy_from_slice(&self.change);
        let groups = self.starts.windows(2).zip(of_aggregates);
        for (own, aggregate) in groups {
            let own = own[0]..own[1];
            for (motion, correction) in self.motion[own.clone()]
                .iter_mut()
                .zip(&self.correction[own])
            {
                *motion = std::array::from_fn(|k| correction[k] + aggregate[k]);
            }
        }
    }

    /// Follows r −= α w, for the w that was restricted last; the correction of aggregates has done so.
    pub(super) fn step(&mut self, alpha: f64, of_aggregates: &[Six]) {
        for (own, aggregate) in self.starts.windows(2).zip(of_aggregates) {
            let own = own[0]..own[1];
            let groups = (self.motion[own.clone()].iter_mut())
                .zip(&mut self.correction[own.clone()])
                .zip(&self.change[own]);
            for ((motion, correction), change) in groups {
                for k in 0..6 {
                    correction[k] -= alpha * change[k];
                    motion[k] = correction[k] + aggregate[k];
                }
            }
        }
    }

    /// Adds the motions of groups and aggregates to vertices, which `vector` and `offsets` are of.
    pub(super) fn add_motion(&self, rows: Range<usize>, offsets: &[DVec3], vector: &mut [DVec3]) {
        let rows = vector.iter_mut().zip(offsets).zip(&self.of_vertex[rows]);
        for ((v, q), &group) in rows {
            let [x, y, z, along_x, along_y, along_z] = self.motion[group as usize];
            *v += DVec3::new(x, y, z) + DVec3::new(along_x, along_y, along_z).cross(*q);
        }
    }
}

/// The groups that each thread's share of the patches consists of.
fn owned_by(in_patch: &[Range<usize>], shares: &Shares) -> impl Iterator<Item = Range<usize>> {
    (shares.ranges.iter())
        .map(|patches| in_patch[patches.start].start..in_patch[patches.end - 1].end)
}

/// Adds Tᵢᵀ v for a vertex with offset q: the force v, and its moment q × v.
fn add_moments(sum: &mut Six, q: DVec3, v: DVec3) {
    let m = q.cross(v);
    for (sum, value) in sum.iter_mut().zip([v.x, v.y, v.z, m.x, m.y, m.z]) {
        *sum += value;
    }
}

struct Inverting<'a> {
    blocks: &'a [Block],
    inverse: &'a mut [Padded],
}

impl Loop for Inverting<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        for (block, found) in self.blocks.iter().zip(self.inverse) {
            *found = inverse(block).unwrap_or_else(|| {
                let mut factor = padded(block);
                let mut pivots: Six = std::array::from_fn(|c| block[c][c]);
                let largest = pivots.iter().copied().fold(0.0, f64::max);
                factor_block(lanes, &mut factor, &mut pivots, (CLEAR, CLEAR * largest));
                let inverse = inverted(&factor, &pivots);
                let across = padded::transposed(lanes, &inverse);
                inverse.map(|column| Column::product(lanes, &across, &column).eight())
            });
        }
    }
}

/// The inverse of a block by its 3x3 quarters, which is a third of the time of a factorisation; `None` unless all of its modes are clearly there.
///
/// With A, B, C the quarters of translations, both, and rotations, and S = C − Bᵀ A⁻¹ B:
///
/// ```text
/// [ A⁻¹ + E S⁻¹ Eᵀ   −E S⁻¹ ]
/// [ −S⁻¹ Eᵀ            S⁻¹  ],   E = A⁻¹ B
/// ```
fn inverse(block: &Block) -> Option<Padded> {
    let quarter = |column: usize, row: usize| {
        let of = |c: usize| DVec3::from_slice(&block[column + c][row..row + 3]);
        DMat3::from_cols(of(0), of(1), of(2))
    };
    let (a, b, c) = (quarter(0, 0), quarter(3, 0), quarter(3, 3));
    let first = clear_inverse(&a, diagonal(&a))?;
    let e = first * b;
    let last = clear_inverse(&(c - b.transpose() * e), diagonal(&c))?;
    let across = e * last;
    let first = first + across * e.transpose();
    // To the bit, whatever rounding did.
    let mut whole = ZERO;
    for column in 0..3 {
        for row in 0..3 {
            let (low, high) = (row.min(column), row.max(column));
            whole[column][row] = first.col(high)[low];
            whole[column + 3][row + 3] = last.col(high)[low];
            whole[column + 3][row] = -across.col(column)[row];
            whole[row][column + 3] = -across.col(column)[row];
        }
    }
    Some(whole)
}

fn diagonal(of: &DMat3) -> DVec3 {
    DVec3::new(of.x_axis.x, of.y_axis.y, of.z_axis.z)
}

/// The inverse of a symmetric matrix; `None` if little is left of what its diagonal was, or one entry of that was
/// little beside the others.
fn clear_inverse(of: &DMat3, was: DVec3) -> Option<DMat3> {
    let there = was.min_element() > CLEAR * was.max_element()
        && of.determinant() > CLEAR * (was.x * was.y * was.z);
    if there {
        block_jacobi::inverse(of)
    } else {
        None
    }
}

/// The share of an entry on the diagonal, and of the largest one, that must be left of it for its mode to be one of its own. Of a few vertices nearly on a line
/// the rotation about it is not: what is answered to it would be large, and rounding. Vertices and aggregates move without it.
const CLEAR: f64 = 1e-6;

struct Applying<'a> {
    inverse: &'a [Padded],
    sums: &'a [Six],
    change: &'a mut [Six],
}

impl Loop for Applying<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        for ((inverse, sum), change) in self.inverse.iter().zip(self.sums).zip(self.change) {
            *change = narrowed(Column::product(lanes, inverse, &widened(*sum)).eight());
        }
    }
}
