//! Systems to test the solve with: a sheet with random springs, assembled as a mesh would be.

use std::ops::Range;

use glam::{DMat3, DVec3};
use weft_partition::{
    AggregateOptions, Aggregates, Graph, HaloPlan, Ownership, PatchOptions, PatchTree,
};

use weft_runtime::comm::solo::Solo;

use super::{BlockMatrix, Filter, Halo, Multilevel, Pattern, Preconditioner, Smoother, System};
use crate::team::Shares;

/// A reproducible stream of numbers (splitmix64).
pub(crate) struct Noise(u64);

impl Noise {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number between -1 and 1.
    pub(crate) fn number(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    }

    pub(crate) fn vector(&mut self) -> DVec3 {
        DVec3::new(self.number(), self.number(), self.number())
    }
}

/// Readies a preconditioner on one rank; the first row whose block will not do.
pub(crate) fn factor(
    preconditioner: &mut Preconditioner,
    halo: &mut Halo,
    system: &System<'_>,
    of: (&[Range<usize>], &Shares),
) -> Option<usize> {
    let mut comm = Solo::new();
    let bad = preconditioner.begin_factor(&mut comm, halo, system, of);
    preconditioner.finish_factor(&mut comm).unwrap();
    bad.unwrap()
}

/// Computes u = M r for a projected r, on one rank.
pub(crate) fn precondition(
    preconditioner: &mut Preconditioner,
    system: &System<'_>,
    of: (&[Range<usize>], &Shares),
    r: &[DVec3],
    u: &mut [DVec3],
) {
    preconditioner.restart(system, of, r);
    if let Some(carried) = preconditioner.restrict(r, (of.1, false), &mut [(); 0], |_, _| {}) {
        carried.all.extend_from_slice(carried.own);
    }
    preconditioner.solve_residual();
    preconditioner.apply_all(system, of, r, u);
}

/// A square sheet: edges along rows, columns and one diagonal; a second ring two steps away.
pub(crate) struct Sheet {
    pub(crate) tree: PatchTree,
    pub(crate) near: Graph,
    pub(crate) far: Graph,
    pub(crate) all: Graph,
    pub(crate) aggregates: Aggregates,
    /// Least mass of a vertex; springs are of stiffness 1 to 2.
    pub(crate) mass: f64,
    side: u32,
}

/// The preconditioners there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Jacobi,
    Ssor,
    MultilevelJacobi,
    MultilevelSsor,
}

pub(crate) const KINDS: [Kind; 4] = [
    Kind::Jacobi,
    Kind::Ssor,
    Kind::MultilevelJacobi,
    Kind::MultilevelSsor,
];

/// One rank's part of a system on a sheet.
pub(crate) struct Part {
    pub(crate) matrix: BlockMatrix,
    pub(crate) rhs: Vec<DVec3>,
}

impl Sheet {
    pub(crate) fn new(side: u32, patches: usize) -> Self {
        Self::torn(side, patches, side)
    }

    /// A sheet torn before each `width`-th column.
    pub(crate) fn torn(side: u32, patches: usize, width: u32) -> Self {
        let pairs = |steps: &'static [(u32, u32)]| {
            (0..side * side).flat_map(move |v| {
                steps.iter().filter_map(move |&(dx, dy)| {
                    let (from, x, y) = (v % side, v % side + dx, v / side + dy);
                    let whole = x < side && y < side && from / width == x / width;
                    whole.then_some((v, y * side + x))
                })
            })
        };
        let (near, far) = (
            pairs(&[(1, 0), (0, 1), (1, 1)]),
            pairs(&[(2, 1), (1, 2), (2, 2)]),
        );
        let count = (side * side) as usize;
        let all = Graph::from_edges(count, near.clone().chain(far.clone())).unwrap();
        let options = PatchOptions {
            patches: Some(patches),
            ..PatchOptions::default()
        };
        let tree = PatchTree::build(&all, &options).unwrap();
        let renumbered = |graph: Graph| graph.renumbered(&tree).unwrap();
        let all = renumbered(all);
        let options = AggregateOptions {
            size: Some(9),
            group: 4,
            ..AggregateOptions::default()
        };
        Self {
            aggregates: Aggregates::build(&all, &tree, &options).unwrap(),
            near: renumbered(Graph::from_edges(count, near).unwrap()),
            far: renumbered(Graph::from_edges(count, far).unwrap()),
            all,
            tree,
            mass: 0.01,
            side,
        }
    }

    /// Takes aggregates of another size than the nine vertices they have otherwise.
    pub(crate) fn with_aggregates(mut self, size: usize) -> Self {
        let options = AggregateOptions {
            size: Some(size),
            group: 4,
            ..AggregateOptions::default()
        };
        self.aggregates = Aggregates::build(&self.all, &self.tree, &options).unwrap();
        self
    }

    /// A rippled sheet; the owned part.
    pub(crate) fn positions(&self, ranks: usize, rank: usize) -> Vec<DVec3> {
        let place = |vertex: usize| {
            let old = self.tree.new_to_old()[vertex];
            let (x, y) = (f64::from(old % self.side), f64::from(old / self.side));
            DVec3::new(0.1 * x, 0.1 * y, (0.3 * x).sin() * (0.2 * y).cos())
        };
        self.plan(ranks, rank).owned().map(place).collect()
    }

    /// A preconditioner for the systems of this sheet.
    pub(crate) fn preconditioner(&self, kind: Kind, ranks: usize, rank: usize) -> Preconditioner {
        let plan = self.plan(ranks, rank);
        let pattern = Pattern::new(&plan, &self.near, &self.far).unwrap();
        let (smoother, two) = match kind {
            Kind::Jacobi => (Smoother::BlockJacobi, false),
            Kind::Ssor => (Smoother::PatchSsor, false),
            Kind::MultilevelJacobi => (Smoother::BlockJacobi, true),
            Kind::MultilevelSsor => (Smoother::PatchSsor, true),
        };
        let coarse = self.aggregates.quotient(&self.all).unwrap();
        let multilevel = two.then_some(Multilevel {
            aggregates: &self.aggregates,
            coarse: &coarse,
        });
        let ownership = self.ownership(ranks);
        Preconditioner::new(
            smoother,
            multilevel,
            &pattern,
            (&plan, &self.tree, &ownership),
        )
    }

    pub(crate) fn len(&self) -> usize {
        self.all.vertex_count()
    }

    pub(crate) fn ownership(&self, ranks: usize) -> Ownership {
        Ownership::new(&self.tree, ranks).unwrap()
    }

    pub(crate) fn plan(&self, ranks: usize, rank: usize) -> HaloPlan {
        HaloPlan::new(&self.all, &self.ownership(ranks), rank).unwrap()
    }

    /// Springs of random direction and stiffness between neighbours, scalars in the second ring, a
    /// mass each.
    pub(crate) fn system(&self, ranks: usize, rank: usize, seed: u64) -> Part {
        let plan = self.plan(ranks, rank);
        let mut matrix = BlockMatrix::new(Pattern::new(&plan, &self.near, &self.far).unwrap());
        let mut rhs = Vec::new();
        for (row, vertex) in plan.owned().enumerate() {
            let vertex = vertex as u32;
            let mut noise = Noise::new(seed ^ (u64::from(vertex) << 8));
            rhs.push(noise.vector());
            let diagonal = matrix.pattern().diagonal_slot(row);
            matrix.add_block(
                diagonal,
                &(self.mass * (1.0 + 0.1 * noise.number().abs()) * DMat3::IDENTITY),
            );
            for &other in self.near.neighbours(vertex) {
                let block = spring(vertex, other, seed);
                let slot = matrix.pattern().block_slot(row, other).unwrap();
                matrix.add_block(slot, &-block);
                matrix.add_block(diagonal, &block);
            }
            let own = matrix.pattern().scalar_slot(row, vertex).unwrap();
            for &other in self.far.neighbours(vertex) {
                let slot = matrix.pattern().scalar_slot(row, other).unwrap();
                matrix.add_scalar(slot, -BENDING);
                matrix.add_scalar(own, BENDING);
            }
        }
        Part { matrix, rhs }
    }

    /// The matrix of [`Sheet::system`] as rows of numbers.
    pub(crate) fn dense(&self, seed: u64) -> Vec<Vec<f64>> {
        let size = 3 * self.len();
        let mut dense = vec![vec![0.0; size]; size];
        let matrix = self.system(1, 0, seed).matrix;
        for (row, line) in (0_u32..).zip(dense.chunks_exact_mut(3)) {
            let near = self.near.neighbours(row).iter().copied().chain([row]);
            for column in near {
                let slot = matrix.pattern().block_slot(row as usize, column).unwrap();
                let block = matrix.block(slot);
                for (i, line) in line.iter_mut().enumerate() {
                    for j in 0..3 {
                        line[3 * column as usize + j] = block.col(j)[i];
                    }
                }
            }
            for &column in self.far.neighbours(row) {
                for (i, line) in line.iter_mut().enumerate() {
                    line[3 * column as usize + i] = -BENDING;
                }
            }
        }
        dense
    }

    /// Some vertices fixed, some on axes, some on slanted planes; the owned part.
    pub(crate) fn filter(&self, ranks: usize, rank: usize, seed: u64) -> Filter {
        let owned = self.plan(ranks, rank).owned();
        let mut filter = Filter::new(owned.len());
        for (row, vertex) in owned.enumerate() {
            let mut noise = Noise::new(seed ^ 0xf11e ^ ((vertex as u64) << 16));
            match vertex % 11 {
                0 => filter.fix(row, noise.vector()),
                3 => assert!(filter.constrain_along(row, DVec3::Y, noise.number())),
                5 => {
                    let normal = noise.vector().normalize();
                    assert!(filter.constrain_along(row, normal, noise.number()));
                    if vertex % 2 == 0 {
                        let other = normal.any_orthonormal_vector();
                        assert!(filter.constrain_along(row, other, noise.number()));
                    }
                }
                _ => {}
            }
        }
        filter
    }
}

/// The stiffness of a spring, the same from both ends.
fn spring(a: u32, b: u32, seed: u64) -> DMat3 {
    let mut noise = Noise::new(seed ^ (u64::from(a.min(b)) << 32) ^ u64::from(a.max(b)));
    let n = noise.vector().normalize();
    let stiffness = 1.0 + noise.number().abs();
    let along = DMat3::from_cols(n * n.x, n * n.y, n * n.z);
    stiffness * along + 0.05 * DMat3::IDENTITY
}

const BENDING: f64 = 0.02;
