//! Inverted diagonal blocks in single precision, for iterations that are limited by bytes.
//!
//! An iteration goes twice over the inverses P of [`super::block_jacobi`], so they are kept as f32,
//! which halves the bytes. A preconditioner may be any matrix that is symmetric and positive, and
//! these stay so: rounding takes less than 2⁻²³ of its trace from the smallest eigenvalue of a
//! block, and that is added to its diagonal before. So P ≤ P' ≤ P + 2⁻²² tr P. Stiff directions of
//! a block, whose inverse is small beside that of the others, are then preconditioned less, if they
//! are millions of times as stiff.
//!
//! P' is not zero in constrained directions. Callers project the products with it, so that S P' S
//! preconditions.
//!
//! Four rows of a patch at a time stand side by side, and rows behind its last one are zero. So
//! lanes are rows, and sums have an order that patches alone define.

use std::ops::Range;

use bytemuck::{cast_slice, cast_slice_mut};
use glam::DVec3;

use super::block_jacobi::{Symmetric, in_free_directions};
use super::pages::Paged;
use super::vector_kernels::AHEAD;
use super::{BlockMatrix, Filter};
use crate::heap_bytes::counts_heap;
use crate::simd::{Kernel, Lanes, widest};
use crate::team::{Shares, parts};

/// Inverted diagonal blocks of the owned rows, in single precision.
#[derive(Clone, Debug, Default)]
pub(super) struct SingleBlocks {
    fours: Paged<Four>,
    /// The patches as ranges of rows, and where the fours of each are.
    patches: Vec<Range<usize>>,
    of_patches: Vec<Range<usize>>,
}

counts_heap!(SingleBlocks: fours, patches, of_patches);

/// The entries xx, xy, xz, yz, yy, zz of four blocks.
type Four = [[f32; 4]; 6];

/// The share of its trace that is added to the diagonal of a block: twice the most that rounding to
/// nearest takes.
const SHARE: f64 = 1.0 / (1 << 23) as f64;

/// The bound of traces, which are kept within 2^±60. For other blocks a multiple is kept, which is
/// symmetric and positive too.
const LARGEST: f64 = (1_u64 << 60) as f64;

impl SingleBlocks {
    /// Inverts the diagonal blocks of a matrix in the free directions of a filter.
    ///
    /// The result is the first row (local index) whose block is not positive definite there. Its
    /// inverse is zero, which is no preconditioner.
    pub(super) fn factor(
        &mut self,
        matrix: &BlockMatrix,
        filter: &Filter,
        (patches, shares): (&[Range<usize>], &Shares),
    ) -> Option<usize> {
        if self.patches != patches {
            self.patches = patches.to_vec();
            self.of_patches.clear();
            let mut at = 0;
            for patch in patches {
                let start = at;
                at += patch.len().div_ceil(4);
                self.of_patches.push(start..at);
            }
            self.fours = Paged::zeros(at);
        }
        let of_patches = &self.of_patches;
        let of_shares = (shares.ranges.iter())
            .map(|share| of_patches[share.start].start..of_patches[share.end - 1].end);
        let mut bad = vec![None; shares.ranges.len()];
        let work = (parts(&mut self.fours, of_shares).zip(&shares.ranges)).zip(&mut bad);
        shares.run(work, |((fours, share), bad)| {
            let patches = patches[share.clone()].iter();
            for (patch, fours) in patches.zip(parts(fours, &of_patches[share.clone()])) {
                for (at, row) in patch.clone().enumerate() {
                    let inverse = in_free_directions(matrix, filter, row);
                    if inverse.is_none() {
                        bad.get_or_insert(row);
                    }
                    let single = inverse.map_or([0.0; 6], rounded);
                    for (numbers, value) in fours[at / 4].iter_mut().zip(single) {
                        numbers[at % 4] = value;
                    }
                }
            }
        });
        bad.into_iter().flatten().next()
    }

    /// Computes u = P' r for some rows, whose parts of the vectors are given: a patch, or a part of
    /// it that begins at a multiple of four rows.
    pub(super) fn multiply(&self, rows: Range<usize>, r: &[DVec3], u: &mut [DVec3]) {
        let blocks = self.blocks(&rows);
        widest(Product { blocks, r, u });
    }

    /// Computes r −= α w and u = P' r for such rows.
    pub(super) fn follow(
        &self,
        rows: Range<usize>,
        (r, alpha, w): (&mut [DVec3], f64, &[DVec3]),
        u: &mut [DVec3],
    ) {
        let blocks = self.blocks(&rows);
        widest(Follow {
            blocks,
            r,
            alpha,
            w,
            u,
        });
    }

    /// Computes w·p and w·P' w of a patch, whose parts of the vectors are given.
    pub(super) fn energies(&self, patch: Range<usize>, w: &[DVec3], p: &[DVec3]) -> [f64; 2] {
        let blocks = self.blocks(&patch);
        widest(Energies { blocks, w, p })
    }

    fn blocks(&self, rows: &Range<usize>) -> &[Four] {
        let behind = self
            .patches
            .partition_point(|patch| patch.start <= rows.start);
        let patch = behind.saturating_sub(1);
        let before = rows.start - self.patches[patch].start;
        debug_assert!(before.is_multiple_of(4) && rows.end <= self.patches[patch].end);
        let start = self.of_patches[patch].start + before / 4;
        &self.fours[start..start + rows.len().div_ceil(4)]
    }
}

/// A block as it is kept.
fn rounded(inverse: Symmetric) -> [f32; 6] {
    let [xx, xy, xz, yz, yy, zz] = inverse;
    let trace = xx + yy + zz;
    // No direction is free.
    if trace <= 0.0 {
        return [0.0; 6];
    }
    let scale = trace.clamp(1.0 / LARGEST, LARGEST) / trace;
    let more = SHARE * trace;
    [xx + more, xy, xz, yz, yy + more, zz + more].map(|value| (scale * value) as f32)
}

/// P v of four rows, by coordinates.
#[inline(always)]
fn product<L: Lanes>(lanes: L, block: &Four, [x, y, z]: [L::Four; 3]) -> [L::Four; 3] {
    let [xx, xy, xz, yz, yy, zz] = block;
    let (xx, xy, xz) = (
        lanes.load_short(xx),
        lanes.load_short(xy),
        lanes.load_short(xz),
    );
    let (yz, yy, zz) = (
        lanes.load_short(yz),
        lanes.load_short(yy),
        lanes.load_short(zz),
    );
    let [a, b, c] = [
        lanes.multiply(xx, x),
        lanes.multiply(xy, x),
        lanes.multiply(xz, x),
    ];
    let [a, b, c] = [
        lanes.fused(a, xy, y),
        lanes.fused(b, yy, y),
        lanes.fused(c, yz, y),
    ];
    [
        lanes.fused(a, xz, z),
        lanes.fused(b, yz, z),
        lanes.fused(c, zz, z),
    ]
}

/// Four vectors that follow each other, in lanes.
#[inline(always)]
fn load<L: Lanes>(lanes: L, vectors: &[f64; 12]) -> [L::Four; 3] {
    let (fours, _) = vectors.as_chunks::<4>();
    [
        lanes.load(&fours[0]),
        lanes.load(&fours[1]),
        lanes.load(&fours[2]),
    ]
}

/// Stores vectors that are in lanes.
#[inline(always)]
fn store<L: Lanes>(lanes: L, [a, b, c]: [L::Four; 3], vectors: &mut [f64; 12]) {
    let (fours, _) = vectors.as_chunks_mut::<4>();
    fours[0] = lanes.store(a);
    fours[1] = lanes.store(b);
    fours[2] = lanes.store(c);
}

/// The vectors behind the last four, and zeros.
#[inline(always)]
fn filled(rest: &[f64]) -> [f64; 12] {
    let mut room = [0.0; 12];
    room[..rest.len()].copy_from_slice(rest);
    room
}

struct Product<'a> {
    blocks: &'a [Four],
    r: &'a [DVec3],
    u: &'a mut [DVec3],
}

impl Product<'_> {
    #[inline(always)]
    fn of_four<L: Lanes>(lanes: L, block: &Four, r: &[f64; 12], u: &mut [f64; 12]) {
        let apart = lanes.coordinates(load(lanes, r));
        store(lanes, lanes.vectors(product(lanes, block, apart)), u);
    }
}

impl Kernel for Product<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let (r, r_rest) = cast_slice::<_, f64>(self.r).as_chunks::<12>();
        let (u, u_rest) = cast_slice_mut::<_, f64>(self.u).as_chunks_mut::<12>();
        for ((block, r), u) in self.blocks.iter().zip(r).zip(u) {
            lanes.prefetch(block, AHEAD);
            Self::of_four(lanes, block, r, u);
        }
        if !r_rest.is_empty()
            && let Some(block) = self.blocks.last()
        {
            let mut u = [0.0; 12];
            Self::of_four(lanes, block, &filled(r_rest), &mut u);
            u_rest.copy_from_slice(&u[..r_rest.len()]);
        }
    }
}

/// Computes r −= α w and u = P' r.
struct Follow<'a> {
    blocks: &'a [Four],
    r: &'a mut [DVec3],
    alpha: f64,
    w: &'a [DVec3],
    u: &'a mut [DVec3],
}

impl Follow<'_> {
    #[inline(always)]
    fn of_four<L: Lanes>(
        lanes: L,
        block: &Four,
        (r, alpha, w): (&mut [f64; 12], L::Four, &[f64; 12]),
        u: &mut [f64; 12],
    ) {
        let [a, b, c] = load(lanes, r);
        let [d, e, f] = load(lanes, w);
        let now = [
            lanes.subtract(a, lanes.multiply(alpha, d)),
            lanes.subtract(b, lanes.multiply(alpha, e)),
            lanes.subtract(c, lanes.multiply(alpha, f)),
        ];
        store(lanes, now, r);
        let apart = lanes.coordinates(now);
        store(lanes, lanes.vectors(product(lanes, block, apart)), u);
    }
}

impl Kernel for Follow<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let alpha = lanes.splat(self.alpha);
        let (r, r_rest) = cast_slice_mut::<_, f64>(self.r).as_chunks_mut::<12>();
        let (w, w_rest) = cast_slice::<_, f64>(self.w).as_chunks::<12>();
        let (u, u_rest) = cast_slice_mut::<_, f64>(self.u).as_chunks_mut::<12>();
        for (block, ((r, w), u)) in self.blocks.iter().zip(r.iter_mut().zip(w).zip(u)) {
            lanes.prefetch(block, AHEAD);
            lanes.prefetch(r, AHEAD);
            lanes.prefetch(w, AHEAD);
            Self::of_four(lanes, block, (r, alpha, w), u);
        }
        if !r_rest.is_empty()
            && let Some(block) = self.blocks.last()
        {
            let (mut r, mut u) = (filled(r_rest), [0.0; 12]);
            Self::of_four(lanes, block, (&mut r, alpha, &filled(w_rest)), &mut u);
            r_rest.copy_from_slice(&r[..w_rest.len()]);
            u_rest.copy_from_slice(&u[..w_rest.len()]);
        }
    }
}

struct Energies<'a> {
    blocks: &'a [Four],
    w: &'a [DVec3],
    p: &'a [DVec3],
}

impl Energies<'_> {
    #[inline(always)]
    fn add_four<L: Lanes>(
        lanes: L,
        block: &Four,
        (w, p): (&[f64; 12], &[f64; 12]),
        [curvature, energy]: &mut [[L::Four; 3]; 2],
    ) {
        let (w, p) = (load(lanes, w), load(lanes, p));
        let apart = lanes.coordinates(w);
        let product = product(lanes, block, apart);
        for i in 0..3 {
            curvature[i] = lanes.fused(curvature[i], w[i], p[i]);
            energy[i] = lanes.fused(energy[i], apart[i], product[i]);
        }
    }
}

impl Kernel for Energies<'_> {
    type Output = [f64; 2];

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> [f64; 2] {
        let (w, w_rest) = cast_slice::<_, f64>(self.w).as_chunks::<12>();
        let (p, p_rest) = cast_slice::<_, f64>(self.p).as_chunks::<12>();
        let mut sums = [[lanes.splat(0.0); 3]; 2];
        for (block, (w, p)) in self.blocks.iter().zip(w.iter().zip(p)) {
            lanes.prefetch(block, AHEAD);
            Self::add_four(lanes, block, (w, p), &mut sums);
        }
        if !w_rest.is_empty()
            && let Some(block) = self.blocks.last()
        {
            Self::add_four(lanes, block, (&filled(w_rest), &filled(p_rest)), &mut sums);
        }
        let [[a, b, c], [d, e, f]] = sums;
        let [a, d] = [
            lanes.store(lanes.add(lanes.add(a, b), c)),
            lanes.store(lanes.add(lanes.add(d, e), f)),
        ];
        [(a[0] + a[1]) + (a[2] + a[3]), (d[0] + d[1]) + (d[2] + d[3])]
    }
}

#[cfg(test)]
mod tests {
    use glam::DMat3;
    use proptest::prelude::*;

    use super::*;
    use crate::solve::BlockJacobi;
    use crate::solve::testing::{Noise, Sheet};
    use crate::team::Team;

    /// The form v·B v, exactly enough.
    fn form([xx, xy, xz, yz, yy, zz]: [f64; 6], v: DVec3) -> f64 {
        let m = DMat3::from_cols_array(&[xx, xy, xz, xy, yy, yz, xz, yz, zz]);
        v.dot(m * v)
    }

    proptest! {
        /// Blocks may be stiff beyond the precision of f32, and of any size.
        #[test]
        fn rounding_takes_nothing_from_a_block(
            entries in prop::array::uniform9(-1.0_f64..1.0), thin in 0.0_f64..1.0, size in -300.0_f64..300.0
        ) {
            let root = DMat3::from_cols_array(&entries) * DMat3::from_diagonal(DVec3::new(1.0, thin.powi(20), thin.powi(40)));
            let m = root * root.transpose();
            let size = 10.0_f64.powf(size);
            let block = [m.x_axis.x, m.x_axis.y, m.x_axis.z, m.y_axis.z, m.y_axis.y, m.z_axis.z];
            let trace = block[0] + block[4] + block[5];
            prop_assume!(trace > 1e-3);
            let large = block.map(|value| size * value);
            let kept = rounded(large).map(f64::from);
            prop_assert!(kept.iter().all(|value| value.is_finite()));
            let kept_of = (size * trace).clamp(1.0 / LARGEST, LARGEST) / trace;
            let kept = kept.map(|value| value / kept_of);
            let mut noise = Noise::new(1);
            // The direction in which it is thinnest counts too.
            let thinnest = root.x_axis.cross(root.y_axis);
            for v in (0..20).map(|_| noise.vector()).chain([thinnest]) {
                let (v, bound) = (v.normalize_or_zero(), trace * 2.0 * SHARE);
                let (whole, single) = (form(block, v), form(kept, v));
                prop_assert!(single >= whole - 1e-14 * trace, "{single} is less than {whole}");
                prop_assert!(single <= whole + bound, "{single} is far more than {whole}");
            }
        }
    }

    #[test]
    fn products_and_energies_are_those_of_the_inverses() {
        let sheet = Sheet::new(9, 4);
        let (matrix, filter) = (sheet.system(1, 0, 3).matrix, Filter::new(81));
        let patches: Vec<_> = (0..4)
            .map(|patch| sheet.tree.patch_vertices(patch))
            .collect();
        let mut jacobi = BlockJacobi::default();
        assert_eq!(jacobi.factor(&matrix, &filter), None);
        let mut single = SingleBlocks::default();
        let shares = Team::default().cut(&patches);
        assert_eq!(single.factor(&matrix, &filter, (&patches, &shares)), None);
        let mut noise = Noise::new(4);
        let [r, p] = [(); 2].map(|()| (0..81).map(|_| noise.vector()).collect::<Vec<_>>());
        let parts = |patch: &Range<usize>| {
            let (start, end) = (patch.start, patch.end);
            [
                start..end,
                start..start + 3,
                start + 4..end,
                start + 8..start + 13,
            ]
        };
        for rows in patches.iter().flat_map(parts) {
            let (r, p) = (&r[rows.clone()], &p[rows.clone()]);
            let mut u = vec![DVec3::NAN; rows.len()];
            single.multiply(rows.clone(), r, &mut u);
            let (mut curvature, mut energy) = (0.0, 0.0);
            for ((row, (r, p)), u) in rows.clone().zip(r.iter().zip(p)).zip(&u) {
                let exact = jacobi.apply(row, *r);
                assert!((*u - exact).length() < 1e-5 * exact.length(), "row {row}");
                curvature += r.dot(*p);
                energy += r.dot(*u);
            }
            let mut followed = r.to_vec();
            single.follow(rows.clone(), (&mut followed, 0.5, r), &mut u);
            assert!(followed.iter().zip(r).all(|(half, r)| *half == 0.5 * *r));
            let found = single.energies(rows, r, p);
            assert!((found[0] - curvature).abs() < 1e-13);
            assert!((found[1] / energy - 1.0).abs() < 1e-14);
        }
    }
}
