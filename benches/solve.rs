//! The product and the iteration of the solve, against the speed at which memory can be read.
//!
//! Sample runs:
//!   cargo bench --bench solve
//!   RUSTFLAGS="-C target-cpu=native" cargo bench --bench solve
//!
//! A square herringbone sheet on one rank: 7 blocks and 6 scalars a row. First a table: time a
//! product and an iteration, the bytes that they must move at least, and that rate as a share of
//! the rate at which a plain sum reads as many bytes, measured in the same run. Then the same three
//! with divan's statistics.
//!
//! The worth of preconditioners is measured by `benches/tolerance.rs`.

use std::hint::black_box;
use std::time::Duration;

use divan::Bencher;
use divan::counter::BytesCount;
use glam::{DMat3, DVec3};
use weft_partition::{Graph, HaloPlan, Ownership, PatchOptions, PatchTree};
use weft_runtime::comm::{Tag, solo::Solo};
use weftwork::solve::{
    BlockMatrix, Filter, ModifiedCg, Pattern, Preconditioner, Rows, System, Tolerance,
};

#[path = "common/timing.rs"]
mod timing;

use timing::best;

/// Vertices along a side: 10 000 and 100 000 vertices.
const SIDES: [u32; 2] = [100, 316];
/// Iterations in one measured solve; the products for residuals are counted as iterations too.
const ITERATIONS: u32 = 50;

struct Sheet {
    tree: PatchTree,
    ownership: Ownership,
    plan: HaloPlan,
    matrix: BlockMatrix,
    filter: Filter,
    rhs: Vec<DVec3>,
}

impl Sheet {
    fn new(side: u32) -> Self {
        let count = (side * side) as usize;
        // Rows of squares with diagonals that lean one way and the other in turn.
        let near = pairs(side, |y| {
            if y % 2 == 0 {
                [(1, 0), (0, 1), (1, 1)]
            } else {
                [(1, 0), (0, 1), (-1, 1)]
            }
        });
        let far = pairs(side, |y| {
            if y % 2 == 0 {
                [(0, 2), (2, 1), (-1, 1)]
            } else {
                [(0, 2), (-2, 1), (1, 1)]
            }
        });
        let graph = |edges: Vec<(u32, u32)>| Graph::from_edges(count, edges).expect("a sheet");
        let all = graph(near.iter().chain(&far).copied().collect());
        let tree = PatchTree::build(&all, &PatchOptions::default()).expect("patches");
        let renumbered = |graph: Graph| graph.renumbered(&tree).expect("the same vertices");
        let (near, far, all) = (
            renumbered(graph(near)),
            renumbered(graph(far)),
            renumbered(all),
        );
        let ownership = Ownership::new(&tree, 1).expect("one rank");
        let plan = HaloPlan::new(&all, &ownership, 0).expect("rank 0");
        let mut matrix = BlockMatrix::new(Pattern::new(&plan, &near, &far).expect("one graph"));
        for row in 0..count {
            let vertex = row as u32;
            let diagonal = matrix.pattern().diagonal_slot(row);
            matrix.add_block(diagonal, &(1e-4 * DMat3::IDENTITY));
            for &other in near.neighbours(vertex) {
                let mixed = f64::from((vertex + other) % 7);
                let n = DVec3::new(1.0, mixed, 3.0 - mixed).normalize();
                let block = DMat3::from_cols(n * n.x, n * n.y, n * n.z) + 0.01 * DMat3::IDENTITY;
                let slot = matrix
                    .pattern()
                    .block_slot(row, other)
                    .expect("a neighbour");
                matrix.add_block(slot, &-block);
                matrix.add_block(diagonal, &block);
            }
            for &other in far.neighbours(vertex) {
                for (column, value) in [(other, -1e-3), (vertex, 1e-3)] {
                    let slot = matrix
                        .pattern()
                        .scalar_slot(row, column)
                        .expect("a neighbour");
                    matrix.add_scalar(slot, value);
                }
            }
        }
        let mut filter = Filter::new(count);
        filter.fix(0, DVec3::ZERO);
        let rhs = (0..count)
            .map(|row| DVec3::new((row % 5) as f64, 0.0, -1.0))
            .collect();
        Self {
            tree,
            ownership,
            plan,
            matrix,
            filter,
            rhs,
        }
    }

    /// Bytes of a product: the matrix, and a vector read and one written.
    fn product_bytes(&self) -> usize {
        self.matrix.bytes() + 48 * self.rhs.len()
    }

    /// Bytes of an iteration: the product, and one pass over u, w, p, s, r, of which four are
    /// written, with six numbers of the preconditioner and, at every second iteration, x.
    fn iteration_bytes(&self) -> usize {
        self.product_bytes() + (9 * 24 + 48 + 48 / 2) * self.rhs.len()
    }

    /// A solve that does [`ITERATIONS`] products, each time it is called.
    fn solver(&self) -> impl FnMut() {
        let mut comm = Solo::new();
        let partition = (&self.plan, &self.tree, &self.ownership);
        let mut cg = ModifiedCg::new(partition, Preconditioner::block_jacobi(), Tag(1));
        let tolerance = Tolerance {
            relative: 1e-300,
            absolute: 0.0,
            max_iterations: ITERATIONS - 4,
        };
        let mut x = vec![DVec3::ZERO; self.rhs.len()];
        move || {
            let (matrix, filter) = (&self.matrix, &self.filter);
            let rhs = &self.rhs;
            let system = System {
                matrix,
                rhs,
                filter,
                // Nothing here is about positions.
                positions: rhs,
            };
            x.fill(DVec3::ZERO);
            let unfinished = cg.solve(&mut comm, &system, &tolerance, &mut x);
            assert!(black_box(unfinished).is_err(), "no tolerance is that tight");
        }
    }
}

/// Pairs of vertices this many columns and rows apart, by row.
fn pairs<const N: usize>(side: u32, steps: impl Fn(u32) -> [(i32, u32); N]) -> Vec<(u32, u32)> {
    let mut pairs = Vec::new();
    for v in 0..side * side {
        let (x, y) = (v % side, v / side);
        for (dx, dy) in steps(y) {
            if let Some(x) = x.checked_add_signed(dx)
                && x < side
                && y + dy < side
            {
                pairs.push((v, (y + dy) * side + x));
            }
        }
    }
    pairs
}

/// Reads every number once, in enough lanes to be bound by memory alone.
fn read(numbers: &[f64]) -> f64 {
    let mut lanes = [0.0; 32];
    for chunk in numbers.as_chunks::<32>().0 {
        for (lane, number) in lanes.iter_mut().zip(chunk) {
            *lane += number;
        }
    }
    lanes.iter().sum()
}

#[divan::bench(args = SIDES)]
fn product(bencher: Bencher<'_, '_>, side: u32) {
    let sheet = Sheet::new(side);
    let mut y = vec![DVec3::ZERO; sheet.rhs.len()];
    bencher
        .counter(BytesCount::new(sheet.product_bytes()))
        .bench_local(|| {
            sheet
                .matrix
                .multiply(black_box(&sheet.rhs), &mut y, Rows::All)
        });
}

#[divan::bench(args = SIDES, sample_count = 20, sample_size = 1)]
fn fifty_iterations(bencher: Bencher<'_, '_>, side: u32) {
    let sheet = Sheet::new(side);
    let bytes = sheet.iteration_bytes() * ITERATIONS as usize;
    bencher
        .counter(BytesCount::new(bytes))
        .bench_local(sheet.solver());
}

#[divan::bench(args = SIDES)]
fn plain_read_of_as_many_bytes(bencher: Bencher<'_, '_>, side: u32) {
    let bytes = Sheet::new(side).product_bytes();
    let numbers = vec![1.0; bytes / 8];
    bencher
        .counter(BytesCount::new(bytes))
        .bench_local(|| read(black_box(&numbers)));
}

#[expect(clippy::print_stdout, reason = "the table is what the bench is for")]
fn table() {
    println!("vertices  what        ms      bytes/vertex  GB/s   plain read GB/s  share");
    for side in SIDES {
        let sheet = Sheet::new(side);
        let count = sheet.rhs.len();
        let line = |what: &str, bytes: usize, time: Duration| {
            let numbers = vec![1.0; bytes / 8];
            let plain = best(20, || {
                black_box(read(black_box(&numbers)));
            });
            let rate = bytes as f64 / time.as_secs_f64() / 1e9;
            let limit = bytes as f64 / plain.as_secs_f64() / 1e9;
            println!(
                "{count:<9} {what:<11} {:<7.3} {:<13} {rate:<6.1} {limit:<16.1} {:.2}",
                time.as_secs_f64() * 1e3,
                bytes / count,
                rate / limit,
            );
        };
        let mut y = vec![DVec3::ZERO; count];
        let time = best(20, || {
            sheet
                .matrix
                .multiply(black_box(&sheet.rhs), &mut y, Rows::All)
        });
        line("product", sheet.product_bytes(), time);
        let time = best(5, sheet.solver()) / ITERATIONS;
        line("iteration", sheet.iteration_bytes(), time);
    }
}

fn main() {
    if timing::measures() {
        table();
    }
    divan::main();
}
