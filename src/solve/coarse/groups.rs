//! The level between vertices and aggregates: groups of a few vertices move as rigid bodies, those
//! of a subdomain together.
//!
//! Between an aggregate's motion and a vertex's lies what neither corrects well, bends and
//! stretches over a few edges to a few dozen, and the iterations that it takes grow with the size
//! of aggregates. With the modes of all groups as G this level adds
//!
//! ```text
//! G D⁻¹ Gᵀ r,   D those blocks of Gᵀ A G whose two groups are of one subdomain:
//! ```
//!
//! additive Schwarz without overlap \[SBG96, ch. 1\], whose local problems are not of vertices but
//! of groups: they have a tenth of the unknowns, and their factors some 80 bytes a vertex. A
//! subdomain is a patch or a part of one ([`super::subdomains`]). Errors that are no larger than a
//! subdomain are solved for here; the coarse level is left with larger ones. D is of patches alone:
//! the rank that owns one does all of it ([`super::cholesky`]), and nothing travels.
//!
//! The modes of a group are those of its aggregate, of these vertices alone: any basis of rigid
//! motions will do. So the sums of an aggregate are those of its groups added up, blocks of the
//! coarse matrix within a subdomain are sums of blocks of D, and what a vertex moves by is one
//! motion again, that of its group and that of its aggregate together.
//!
//! * \[SBG96\] Smith, Bjørstad, Gropp: Domain decomposition.

use std::ops::Range;

use glam::DVec3;
use weft_partition::{Aggregates, Graph, HaloPlan, Ownership};

use super::cholesky::{Cholesky, Dropped, LowerRows, Workspace};
use super::elimination::Elimination;
use super::modes::Modes;
use super::six::{Block, Six};
use super::subdomains::Subdomains;
use crate::heap_bytes::counts_heap;
use crate::solve::Pattern;
use crate::team::{Shares, parts};

/// The groups of one rank.
#[derive(Clone, Debug)]
pub(super) struct Groups {
    /// The first that is owned.
    first: u32,
    /// The group of each owned vertex, counted from that, as all are here.
    of_vertex: Vec<u32>,
    /// The starts of the groups of each owned aggregate; one more than there are.
    starts: Vec<usize>,
    subdomains: Subdomains,
    /// The blocks of D, its lower half: those of each subdomain follow each other.
    lower: LowerRows,
    /// The blocks of each subdomain, factored.
    factors: Vec<Cholesky>,
    /// The workspace of each thread.
    workspaces: Vec<Workspace>,
    /// Gᵀ of the last vector, and D⁻¹ of that.
    sums: Vec<Six>,
    change: Vec<Six>,
    /// The product of the two, for each owned patch.
    energies: Vec<f64>,
    /// D⁻¹ Gᵀ r.
    correction: Vec<Six>,
    /// That, and the correction of the aggregate.
    motion: Vec<Six>,
}

counts_heap!(Groups:
    of_vertex, starts, subdomains, lower, factors, workspaces, sums, change, energies, correction,
    motion;
    without first
);

impl Groups {
    /// The groups of the matrix with this pattern.
    pub(super) fn new(
        pattern: &Pattern,
        plan: &HaloPlan,
        ownership: &Ownership,
        aggregates: &Aggregates,
    ) -> Self {
        let owned = aggregates.owned(ownership, plan.rank());
        let first = aggregates.groups_in(owned.start).start;
        let starts: Vec<usize> = (owned.clone())
            .map(|aggregate| aggregates.groups_in(aggregate).start - first)
            .chain([aggregates.groups_in(owned.end - 1).end - first])
            .collect();
        let first = first as u32;
        let of_vertex: Vec<u32> = (plan.owned())
            .map(|vertex| aggregates.group_of(vertex as u32) - first)
            .collect();
        let subdomains = Subdomains::new(ownership, plan.rank(), aggregates, &starts);
        let count = starts[owned.len()];
        let pairs = of_vertex.iter().enumerate().flat_map(|(row, &own)| {
            let columns =
                (pattern.block_columns(row).1.iter()).chain(pattern.scalar_columns(row).1);
            // A group of another rank may be before the first, and is then beyond all.
            let others = columns.map(|&column| aggregates.group_of(column).wrapping_sub(first));
            (others.filter(move |&other| other < own)).map(move |other| (own, other))
        });
        let adjacent = Graph::from_edges(count, pairs).expect("groups are numbered");
        let mut lower = LowerRows::default();
        let mut factors = Vec::with_capacity(subdomains.groups().len());
        for groups in subdomains.groups() {
            let inside = groups.clone().flat_map(|own| {
                let others = adjacent.neighbours(own as u32).iter();
                (others.map(|&other| other as usize))
                    .filter(move |other| (groups.start..own).contains(other))
                    .map(move |other| ((own - groups.start) as u32, (other - groups.start) as u32))
            });
            let graph = Graph::from_edges(groups.len(), inside).expect("groups are numbered");
            let rows = LowerRows::new(&graph);
            let elimination = Elimination::new(&graph, |_| false);
            factors.push(Cholesky::new(elimination, rows.pairs(0..groups.len())));
            lower.append(&rows);
        }
        let zeros = || vec![[0.0; 6]; count];
        Self {
            first,
            of_vertex,
            energies: vec![0.0; ownership.patches(plan.rank()).len()],
            subdomains,
            starts,
            lower,
            factors,
            workspaces: Vec::new(),
            sums: zeros(),
            change: zeros(),
            correction: zeros(),
            motion: zeros(),
        }
    }

    /// The group of an owned vertex.
    #[inline]
    pub(super) fn of(&self, row: usize) -> usize {
        self.of_vertex[row] as usize
    }

    /// A group of any rank, counted from the first that is owned; what is before that comes out
    /// beyond all that are.
    #[inline]
    pub(super) fn local(&self, group: u32) -> u32 {
        group.wrapping_sub(self.first)
    }

    pub(super) fn subdomains(&self) -> &Subdomains {
        &self.subdomains
    }

    /// The groups of an owned aggregate.
    pub(super) fn of_aggregate(&self, aggregate: usize) -> Range<usize> {
        self.starts[aggregate]..self.starts[aggregate + 1]
    }

    /// The blocks of D, by owned groups.
    pub(super) fn lower(&self) -> &LowerRows {
        &self.lower
    }

    /// The blocks of D that each thread's share of the patches consists of.
    pub(super) fn blocks_owned_by(&self, shares: &Shares) -> impl Iterator<Item = Range<usize>> {
        (self.subdomains.groups_owned_by(shares))
            .map(|groups| self.lower.starts[groups.start]..self.lower.starts[groups.end])
    }

    /// Factors D, without the modes that `dropped` names.
    pub(super) fn factor(&mut self, blocks: &[Block], dropped: Dropped, shares: &Shares) {
        let Self {
            subdomains,
            lower,
            factors,
            workspaces,
            ..
        } = self;
        workspaces.resize_with(shares.ranges.len(), Workspace::default);
        let owned = || subdomains.owned_by(shares);
        let work = parts(factors, owned()).zip(owned()).zip(workspaces);
        shares.run(work, |((factors, own), workspace)| {
            for (factor, groups) in factors.iter_mut().zip(&subdomains.groups()[own]) {
                let blocks = &blocks[lower.starts[groups.start]..lower.starts[groups.end]];
                factor.factor(blocks, dropped, workspace);
            }
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
            subdomains,
            factors,
            sums,
            change,
            energies,
            ..
        } = self;
        let (of_vertex, offsets) = (&of_vertex[..], modes.offsets());
        let (starts, subdomains) = (&starts[..], &*subdomains);
        let groups = || subdomains.groups_owned_by(shares);
        let aggregates = || modes.owned_by(shares);
        let work = (parts(sums, groups()).zip(parts(change, groups())))
            .zip(parts(of_aggregates, aggregates()))
            .zip(parts(energies, shares.ranges.iter().cloned()))
            .zip(parts(factors, subdomains.owned_by(shares)))
            .zip(groups().zip(aggregates()))
            .zip(shares.elements.iter().zip(&shares.ranges));
        shares.run(
            work,
            |(
                (((((sums, change), totals), energies), factors), (groups, aggregates)),
                (rows, patches),
            )| {
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
                let mut factors = factors.iter_mut();
                for (energy, patch) in energies.iter_mut().zip(patches.clone()) {
                    *energy = 0.0;
                    let own = subdomains.groups()[subdomains.in_patch(patch)].iter();
                    for (own, factor) in own.zip(&mut factors) {
                        let own = own.start - groups.start..own.end - groups.start;
                        *energy += factor.solve(&sums[own.clone()], &mut change[own]);
                    }
                }
            },
        );
    }

    /// The product of the last restricted vector with its image under this level, for each owned
    /// patch.
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

    /// Follows r −= α w, for the w that was restricted last; the correction of aggregates has done
    /// so.
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

/// Adds Tᵢᵀ v for a vertex with offset q: the force v, and its moment q × v.
fn add_moments(sum: &mut Six, q: DVec3, v: DVec3) {
    let m = q.cross(v);
    for (sum, value) in sum.iter_mut().zip([v.x, v.y, v.z, m.x, m.y, m.z]) {
        *sum += value;
    }
}
