//! The coarse matrix A_c = Pᵀ A P and that of groups within subdomains, D, the blocks that a rank
//! owns.
//!
//! In each pair of groups of a subdomain, and in each pair of aggregates of two subdomains, the one
//! with the higher number has the block, and its owner computes it from the rows of its vertices:
//! first Zᵢ_b = Σ_{j in b} Aᵢⱼ Pⱼ for every such b that the row reads, then Pᵢᵀ Zᵢ_b is added,
//! which is one product with Pᵢ for each b and not for each entry. A is symmetric: of a group with
//! itself only j < i and half of j = i are taken, which makes a matrix L whose block is L + Lᵀ.
//! Groups have the modes of their aggregates, so that blocks of A_c within a subdomain are sums of
//! those of D. Rows are taken in the order of their vertices and columns in the order of theirs, so
//! that a block has the same bits whichever rank owns it.
//!
//! A vertex that is held takes no part, neither its row nor its columns.
//!
//! Lanes are the three coordinates of columns of Z, and then, for Pᵢᵀ Z, the six columns of its
//! rows.

use std::ops::Range;

use glam::DVec3;
use weft_partition::{Aggregates, HaloPlan};

use super::cholesky::LowerRows;
use super::groups::Groups;
use super::modes::{Left, Modes, Projected};
use super::six::{self, Block, Column};
use crate::heap_bytes::{counts_heap, owns_no_heap};
use crate::simd::{Kernel, Lanes, four_at, widest};
use crate::solve::block_matrix::Entries;
use crate::solve::{BlockMatrix, Pattern};
use crate::team::{Shares, parts};

/// The targets of the entries of the owned rows.
#[derive(Clone, Debug)]
pub(super) struct Galerkin {
    /// Blocks and scalars of the matrix, by row and by target.
    near: Vec<Entry>,
    far: Vec<Entry>,
    targets: Vec<Target>,
    /// The starts of the targets of each row; one more than there are rows.
    starts: Vec<u32>,
    /// The starts of the blocks of each owned aggregate, counted from the first that is owned; one
    /// more than there are.
    block_starts: Vec<usize>,
    /// The block of its aggregate to which each block of D is added.
    sums: Vec<u32>,
}

counts_heap!(Galerkin: near, far, targets, starts, block_starts, sums);

/// A block or a scalar of the matrix.
#[derive(Clone, Copy, Debug)]
struct Entry {
    at: u32,
    /// The column as a local index.
    column: u32,
}

owns_no_heap!(Entry);

/// A block that a row adds to, and where the entries for it end.
#[derive(Clone, Copy, Debug)]
struct Target {
    block: Of,
    near_end: u32,
    far_end: u32,
}

owns_no_heap!(Target);

/// A block of D, or one of A_c whose two aggregates are of two subdomains; counted from the first
/// that is owned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Of {
    Groups(u32),
    Aggregates(u32),
}

impl Galerkin {
    /// `owned` are the blocks of `lower` that are to be computed here.
    pub(super) fn new(
        pattern: &Pattern,
        plan: &HaloPlan,
        (aggregates, groups): (&Aggregates, &Groups),
        lower: &LowerRows,
        owned: &Range<usize>,
    ) -> Self {
        let mut galerkin = Self {
            near: Vec::new(),
            far: Vec::new(),
            targets: Vec::new(),
            starts: vec![0],
            // Each row has a block, so that these are the starts of the owned ones, and their end.
            block_starts: (lower.starts.iter())
                .filter(|&&start| (owned.start..=owned.end).contains(&start))
                .map(|start| start - owned.start)
                .collect(),
            sums: Vec::new(),
        };
        let coarse = |own: u32, other: u32| {
            (lower.find(own as usize, other)).expect("the coarse graph has an edge for each entry")
        };
        let mut aggregate_of = vec![0; groups.lower().starts.len()];
        for (row, vertex) in plan.owned().enumerate() {
            let vertex = vertex as u32;
            let (own, group) = (aggregates.of(vertex), groups.of(row));
            aggregate_of[group] = own;
            let list = |(at, columns): (Range<usize>, &[u32])| -> Vec<(Of, Entry)> {
                let here = at.zip(columns).filter_map(|(at, &column)| {
                    let other = groups.local(aggregates.group_of(column));
                    let block = if other as usize == group && column > vertex {
                        return None;
                    } else if let Some(block) = groups.lower().find(group, other) {
                        Of::Groups(block as u32)
                    } else if groups.subdomains().are_one(group, other as usize)
                        || aggregates.of(column) > own
                    {
                        return None;
                    } else {
                        Of::Aggregates((coarse(own, aggregates.of(column)) - owned.start) as u32)
                    };
                    let local = plan
                        .local_index(column)
                        .expect("the plan reads what the pattern has");
                    let (at, column) = (at as u32, local as u32);
                    Some((block, Entry { at, column }))
                });
                here.collect()
            };
            let near = list(pattern.block_columns(row));
            let far = list(pattern.scalar_columns(row));
            let mut blocks: Vec<_> = near.iter().chain(&far).map(|&(block, _)| block).collect();
            blocks.sort_unstable();
            blocks.dedup();
            for block in blocks {
                let of = |all: &[(Of, Entry)]| -> Vec<Entry> {
                    let here = all.iter().filter(|(target, _)| *target == block);
                    here.map(|&(_, entry)| entry).collect()
                };
                galerkin.near.extend(of(&near));
                galerkin.far.extend(of(&far));
                galerkin.targets.push(Target {
                    block,
                    near_end: galerkin.near.len() as u32,
                    far_end: galerkin.far.len() as u32,
                });
            }
            galerkin.starts.push(galerkin.targets.len() as u32);
        }
        for (own, starts) in aggregate_of.iter().zip(groups.lower().starts.windows(2)) {
            for &other in &groups.lower().columns[starts[0]..starts[1]] {
                let block = coarse(*own, aggregate_of[other as usize]);
                (galerkin.sums).push((block - lower.starts[*own as usize]) as u32);
            }
        }
        // They stay as long as the run does.
        galerkin.near.shrink_to_fit();
        galerkin.far.shrink_to_fit();
        galerkin.targets.shrink_to_fit();
        galerkin.sums.shrink_to_fit();
        galerkin
    }

    /// Computes the owned blocks of A_c, and those of D.
    pub(super) fn assemble(
        &self,
        matrix: &BlockMatrix,
        (modes, groups): (&Modes, &Groups),
        (owned, of_groups): (&mut [Block], &mut [Block]),
        shares: &Shares,
    ) {
        let starts = &self.block_starts;
        let aggregates = || modes.owned_by(shares);
        let blocks = || aggregates().map(|own| starts[own.start]..starts[own.end]);
        let work = (parts(owned, blocks()).zip(parts(of_groups, groups.blocks_owned_by(shares))))
            .zip(aggregates().zip(groups.blocks_owned_by(shares)))
            .zip(&shares.elements);
        let matrix = matrix.entries();
        shares.run(
            work,
            |(((owned, of_groups), (aggregates, group_blocks)), rows)| {
                owned.fill([[0.0; 6]; 6]);
                of_groups.fill([[0.0; 6]; 6]);
                let first = starts[aggregates.start];
                let first_of_groups = group_blocks.start;
                widest(Adding {
                    galerkin: self,
                    matrix,
                    modes,
                    rows: rows.clone(),
                    owned,
                    first,
                    of_groups,
                    first_of_groups,
                });
                for (own, aggregate) in
                    (starts[aggregates.start..=aggregates.end].windows(2)).zip(aggregates)
                {
                    let blocks = &mut owned[own[0] - first..own[1] - first];
                    blocks
                        .iter_mut()
                        .for_each(|block| *block = six::transposed(block));
                    for group in groups.of_aggregate(aggregate) {
                        let own = groups.lower().row(group);
                        let row = own.start - first_of_groups..own.end - first_of_groups;
                        finish_group(&mut of_groups[row], &self.sums[own], blocks);
                    }
                }
            },
        );
    }

    /// The ends of the entries before a row.
    fn before(&self, row: usize) -> [usize; 2] {
        let targets = &self.targets[..self.starts[row] as usize];
        targets.last().map_or([0; 2], |last| {
            [last.near_end as usize, last.far_end as usize]
        })
    }
}

/// Turns a row of D into blocks by columns, and adds them to the blocks of its aggregate. Until
/// then the row is blocks by rows, with L on the diagonal.
fn finish_group(row: &mut [Block], sums: &[u32], of_aggregate: &mut [Block]) {
    let Some((diagonal, others)) = row.split_last_mut() else {
        return;
    };
    let within = of_aggregate.len() - 1;
    symmetrise(diagonal);
    add(&mut of_aggregate[within], diagonal);
    for (block, &sum) in others.iter_mut().zip(sums) {
        let across = *block;
        *block = six::transposed(block);
        add(&mut of_aggregate[sum as usize], block);
        if sum as usize == within {
            add(&mut of_aggregate[within], &across);
        }
    }
}

/// L becomes L + Lᵀ.
fn symmetrise(block: &mut Block) {
    let across = six::transposed(block);
    add(block, &across);
}

fn add(block: &mut Block, other: &Block) {
    let entries = block.as_flattened_mut().iter_mut();
    for (entry, other) in entries.zip(other.as_flattened()) {
        *entry += other;
    }
}

/// The contribution of some rows to the blocks of their groups and aggregates, blocks by rows;
/// `owned` begins with the block of number `first`, `of_groups` with that of number
/// `first_of_groups`.
struct Adding<'a> {
    galerkin: &'a Galerkin,
    matrix: Entries<'a>,
    modes: &'a Modes,
    rows: Range<usize>,
    owned: &'a mut [Block],
    first: usize,
    of_groups: &'a mut [Block],
    first_of_groups: usize,
}

impl Kernel for Adding<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let Self {
            galerkin,
            matrix,
            modes,
            owned,
            first,
            of_groups,
            first_of_groups,
            ..
        } = self;
        let Galerkin {
            near,
            far,
            targets,
            starts,
            ..
        } = galerkin;
        let mut room = [0.0; 4];
        let [mut near_at, mut far_at] = galerkin.before(self.rows.start);
        for row in self.rows {
            let of_row = match modes.left(row) {
                Left::All => None,
                Left::Some(projected) => Some(projected),
                Left::Nothing => {
                    [near_at, far_at] = galerkin.before(row + 1);
                    continue;
                }
            };
            for target in &targets[starts[row] as usize..starts[row + 1] as usize] {
                let mut z = [lanes.splat(0.0); 6];
                for entry in &near[near_at..target.near_end as usize] {
                    let column = entry.column as usize;
                    let mut block = block_at(lanes, matrix.blocks, entry.at);
                    if column == row {
                        block = half(lanes, block);
                    }
                    match modes.left(column) {
                        Left::All => add_block(lanes, &mut z, block, modes.offset(column)),
                        Left::Some(projected) => add_projected(lanes, &mut z, block, projected),
                        Left::Nothing => {}
                    }
                }
                // For scalars a, both Σ a and Σ a q.
                let (mut sum, mut moment) = (0.0, lanes.splat(0.0));
                for entry in &far[far_at..target.far_end as usize] {
                    let column = entry.column as usize;
                    let value = matrix.scalars[entry.at as usize];
                    match modes.left(column) {
                        Left::All => {
                            sum += value;
                            let q = lanes.load(four_at(modes.offsets(), column, &mut room));
                            moment = lanes.add_product(moment, lanes.splat(value), q);
                        }
                        Left::Some(projected) => {
                            for (z, of) in z.iter_mut().zip(projected) {
                                *z = lanes.add_product(*z, lanes.splat(value), lanes.load(of));
                            }
                        }
                        Left::Nothing => {}
                    }
                }
                let [x, y, w, _] = lanes.store(moment);
                let turned = [[0.0, -w, y, 0.0], [w, 0.0, -x, 0.0], [-y, x, 0.0, 0.0]];
                for (k, column) in identity(lanes, sum).into_iter().enumerate() {
                    z[k] = lanes.add(z[k], column);
                    z[k + 3] = lanes.add(z[k + 3], lanes.load(&turned[k]));
                }
                (near_at, far_at) = (target.near_end as usize, target.far_end as usize);

                let [a, b, c, d, e, f] = z;
                let [x, y, w, _] = lanes.transposed([a, b, c, d]);
                let [last_x, last_y, last_w, _] = lanes.transposed([c, d, e, f]);
                let mut z = [
                    Column::of_lanes(lanes, [x, last_x]),
                    Column::of_lanes(lanes, [y, last_y]),
                    Column::of_lanes(lanes, [w, last_w]),
                ];
                if let Some([a, b, c, ..]) = of_row {
                    // S is symmetric.
                    z = [mixed(z, a), mixed(z, b), mixed(z, c)];
                }
                let ([x, y, w], q) = (z, modes.offset(row));
                let moments = [
                    w.times(q.y).minus(y.times(q.z)),
                    x.times(q.z).minus(w.times(q.x)),
                    y.times(q.x).minus(x.times(q.y)),
                ];
                let block = match target.block {
                    Of::Groups(at) => &mut of_groups[at as usize - first_of_groups],
                    Of::Aggregates(at) => &mut owned[at as usize - first],
                };
                let [fx, fy, fz, mx, my, mz] = block;
                z[0].add_to(fx);
                z[1].add_to(fy);
                z[2].add_to(fz);
                moments[0].add_to(mx);
                moments[1].add_to(my);
                moments[2].add_to(mz);
            }
        }
    }
}

/// The columns of a block; their fourth numbers are of no use.
#[inline(always)]
fn block_at<L: Lanes>(lanes: L, blocks: &[f64], at: u32) -> [L::Four; 3] {
    let at = 9 * at as usize;
    let block: &[f64; 10] = blocks[at..at + 10]
        .try_into()
        .expect("behind the last block is room");
    let [p @ .., _, _, _, _, _, _] = block;
    let [_, _, _, q @ .., _, _, _] = block;
    let [_, _, _, _, _, _, r @ ..] = block;
    [lanes.load(p), lanes.load(q), lanes.load(r)]
}

/// A number times identity.
#[inline(always)]
fn identity<L: Lanes>(lanes: L, a: f64) -> [L::Four; 3] {
    [
        lanes.load(&[a, 0.0, 0.0, 0.0]),
        lanes.load(&[0.0, a, 0.0, 0.0]),
        lanes.load(&[0.0, 0.0, a, 0.0]),
    ]
}

#[inline(always)]
fn half<L: Lanes>(lanes: L, [a, b, c]: [L::Four; 3]) -> [L::Four; 3] {
    let half = lanes.splat(0.5);
    [
        lanes.multiply(a, half),
        lanes.multiply(b, half),
        lanes.multiply(c, half),
    ]
}

/// Adds z += A T for a vertex with offset q.
#[inline(always)]
fn add_block<L: Lanes>(lanes: L, z: &mut [L::Four; 6], [a, b, c]: [L::Four; 3], q: DVec3) {
    let (x, y, w) = (lanes.splat(q.x), lanes.splat(q.y), lanes.splat(q.z));
    z[0] = lanes.add(z[0], a);
    z[1] = lanes.add(z[1], b);
    z[2] = lanes.add(z[2], c);
    // eₓ × q = (0, −q_z, q_y) and so on.
    z[3] = lanes.add(z[3], less(lanes, [c, y], [b, w]));
    z[4] = lanes.add(z[4], less(lanes, [a, w], [c, x]));
    z[5] = lanes.add(z[5], less(lanes, [b, x], [a, y]));
}

/// A product less another.
#[inline(always)]
fn less<L: Lanes>(lanes: L, [p, by]: [L::Four; 2], [q, times]: [L::Four; 2]) -> L::Four {
    lanes.subtract(lanes.multiply(p, by), lanes.multiply(q, times))
}

/// A row of S times columns.
#[inline(always)]
fn mixed<L: Lanes>([x, y, w]: [Column<L>; 3], [a, b, c, _]: &[f64; 4]) -> Column<L> {
    x.times(*a).plus(y.times(*b)).plus(w.times(*c))
}

/// Adds z += A P for a vertex with some directions left.
#[inline(always)]
fn add_projected<L: Lanes>(
    lanes: L,
    z: &mut [L::Four; 6],
    [a, b, c]: [L::Four; 3],
    projected: &Projected,
) {
    for (z, of) in z.iter_mut().zip(projected) {
        let sum = lanes.multiply(a, lanes.splat(of[0]));
        let sum = lanes.add_product(sum, b, lanes.splat(of[1]));
        *z = lanes.add(*z, lanes.add_product(sum, c, lanes.splat(of[2])));
    }
}
