//! The coarse matrix A_c = Pᵀ A P, the blocks that a rank owns.
//!
//! Of each pair of aggregates the one with the higher number has the block, and its owner computes
//! it from the rows of its vertices: first Zᵢ_b = Σ_{j in b} Aᵢⱼ Pⱼ for every aggregate b that the
//! row reads, then Pᵢᵀ Zᵢ_b is added, which is one product with Pᵢ for each aggregate and not for
//! each entry. Rows are taken in the order of their vertices and columns in the order of theirs, so
//! that a block has the same bits whoever owns it.

use std::ops::Range;

use glam::{DMat3, DVec3};
use weft_partition::{Aggregates, HaloPlan};

use super::cholesky::LowerRows;
use super::modes::{Modes, add_moments};
use super::{Block, Six};
use crate::solve::{BlockMatrix, Pattern};
use crate::team::{Shares, parts};

/// Where every entry of the owned rows goes.
#[derive(Clone, Debug)]
pub(super) struct Galerkin {
    /// For each block and each scalar of the matrix its place among the targets of its row;
    /// [`SKIPPED`] if another rank or row has the coarse block.
    near: Vec<u32>,
    far: Vec<u32>,
    /// The coarse blocks that each row adds to, counted from the first that is owned.
    targets: Vec<u32>,
    /// Where the targets of each row start; one more than there are rows.
    starts: Vec<u32>,
    /// Where the blocks of each owned aggregate start, counted as targets are; one more than there are.
    block_starts: Vec<usize>,
    /// The most targets of a row.
    most: usize,
}

impl Galerkin {
    /// `owned` are the blocks of `lower` that are to be computed here.
    pub(super) fn new(
        pattern: &Pattern,
        plan: &HaloPlan,
        aggregates: &Aggregates,
        lower: &LowerRows,
        owned: &Range<usize>,
    ) -> Self {
        let (blocks, scalars) = pattern.entry_counts();
        let mut galerkin = Self {
            near: vec![SKIPPED; blocks],
            far: vec![SKIPPED; scalars],
            targets: Vec::new(),
            starts: vec![0],
            // Each row has a block, so that these are the starts of the owned ones, and their end.
            block_starts: (lower.starts.iter())
                .filter(|&&start| (owned.start..=owned.end).contains(&start))
                .map(|start| start - owned.start)
                .collect(),
            most: 0,
        };
        let mut here: Vec<u32> = Vec::new();
        for (row, vertex) in plan.owned().enumerate() {
            let own = aggregates.of(vertex as u32);
            here.clear();
            let mut place = |(at, columns): (Range<usize>, &[u32]), places: &mut [u32]| {
                for (place, &column) in places[at].iter_mut().zip(columns) {
                    let other = aggregates.of(column);
                    if other > own {
                        continue;
                    }
                    let block = lower
                        .find(own as usize, other)
                        .expect("the coarse graph has an edge for each entry");
                    let block = (block - owned.start) as u32;
                    let known = here.iter().position(|&target| target == block);
                    *place = known.unwrap_or(here.len()) as u32;
                    if known.is_none() {
                        here.push(block);
                    }
                }
            };
            place(pattern.block_columns(row), &mut galerkin.near);
            place(pattern.scalar_columns(row), &mut galerkin.far);
            galerkin.targets.extend(&here);
            galerkin.starts.push(galerkin.targets.len() as u32);
            galerkin.most = galerkin.most.max(here.len());
        }
        galerkin
    }

    /// Computes the owned blocks.
    pub(super) fn assemble(
        &self,
        matrix: &BlockMatrix,
        modes: &Modes,
        owned: &mut [Block],
        shares: &Shares,
    ) {
        let starts = &self.block_starts;
        let blocks = || {
            let owned = modes.owned_by(shares);
            owned.map(|aggregates| starts[aggregates.start]..starts[aggregates.end])
        };
        let work = (parts(owned, blocks()).zip(blocks())).zip(&shares.elements);
        shares.run(work, |((owned, blocks), rows)| {
            owned.fill([[0.0; 6]; 6]);
            // Z of the row at hand, one for each of its targets, by columns.
            let mut sums = vec![[DVec3::ZERO; 6]; self.most];
            for row in rows.clone() {
                self.add_row(matrix, modes, row, &mut sums, (owned, blocks.start));
            }
        });
    }

    /// What a row adds to the blocks of its aggregate; `owned` begins with the block of the given number.
    fn add_row(
        &self,
        matrix: &BlockMatrix,
        modes: &Modes,
        row: usize,
        sums: &mut [[DVec3; 6]],
        (owned, first): (&mut [Block], usize),
    ) {
        let targets = &self.targets[self.starts[row] as usize..self.starts[row + 1] as usize];
        let sums = &mut sums[..targets.len()];
        sums.fill([DVec3::ZERO; 6]);
        for (at, column, block) in matrix.row_blocks(row) {
            // Skipped entries have no sum to go to.
            if let Some(sum) = sums.get_mut(self.near[at] as usize) {
                let column = column as usize;
                let block = match modes.projection(column) {
                    Some(free) => block * free,
                    None => block,
                };
                add_block(sum, &block, modes.offset(column));
            }
        }
        for (at, column, value) in matrix.row_scalars(row) {
            if let Some(sum) = sums.get_mut(self.far[at] as usize) {
                let column = column as usize;
                match modes.projection(column) {
                    Some(free) => add_block(sum, &(value * free), modes.offset(column)),
                    None => add_scalar(sum, value, modes.offset(column)),
                }
            }
        }
        let (free, q) = (modes.projection(row), modes.offset(row));
        for (sum, &target) in sums.iter().zip(targets) {
            for (column, z) in owned[target as usize - first].iter_mut().zip(sum) {
                let z = match free {
                    Some(free) => free * *z,
                    None => *z,
                };
                let column: &mut Six = column;
                add_moments(column, q, z);
            }
        }
    }
}

/// sum += A T for a vertex with offset q.
fn add_block(sum: &mut [DVec3; 6], a: &DMat3, q: DVec3) {
    sum[0] += a.x_axis;
    sum[1] += a.y_axis;
    sum[2] += a.z_axis;
    // eₓ × q = (0, −q_z, q_y) and so on.
    sum[3] += a.z_axis * q.y - a.y_axis * q.z;
    sum[4] += a.x_axis * q.z - a.z_axis * q.x;
    sum[5] += a.y_axis * q.x - a.x_axis * q.y;
}

/// sum += a T for a vertex with offset q.
fn add_scalar(sum: &mut [DVec3; 6], a: f64, q: DVec3) {
    let q = a * q;
    sum[0].x += a;
    sum[1].y += a;
    sum[2].z += a;
    sum[3] += DVec3::new(0.0, -q.z, q.y);
    sum[4] += DVec3::new(q.z, 0.0, -q.x);
    sum[5] += DVec3::new(-q.y, q.x, 0.0);
}

const SKIPPED: u32 = u32::MAX;
