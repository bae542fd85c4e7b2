//! Vector kernels: loops over vectors between two products, in SIMD lanes, with the bits of plain
//! code.

use bytemuck::{cast_slice, cast_slice_mut};
use glam::DVec3;

use super::reduction::{DotSum, LANES};
use crate::simd::{Kernel, Lanes, widest};

/// The number of bytes ahead at which vectors in memory are prefetched, for the rows that come
/// next.
pub(super) const AHEAD: usize = 3072;

/// Computes x += a p.
pub(super) fn axpy(x: &mut [DVec3], a: f64, p: &[DVec3]) {
    widest(Axpy { x, a, p });
}

/// Computes x += a p − b u.
pub(super) fn axpy_minus(x: &mut [DVec3], (a, p): (f64, &[DVec3]), (b, u): (f64, &[DVec3])) {
    widest(AxpyMinus { x, a, p, b, u });
}

/// Computes p = u + β p, and r·u.
pub(super) fn xpby_dot(p: &mut [DVec3], beta: f64, u: &[DVec3], r: &[DVec3]) -> f64 {
    widest(XpbyDot { p, beta, u, r })
}

struct Axpy<'a> {
    x: &'a mut [DVec3],
    a: f64,
    p: &'a [DVec3],
}

impl Kernel for Axpy<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let (x, x_rest) = cast_slice_mut::<_, f64>(self.x).as_chunks_mut::<4>();
        let (p, p_rest) = cast_slice::<_, f64>(self.p).as_chunks::<4>();
        let a = lanes.splat(self.a);
        for (x, p) in x.iter_mut().zip(p) {
            *x = lanes.store(lanes.add_product(lanes.load(x), a, lanes.load(p)));
        }
        for (x, p) in x_rest.iter_mut().zip(p_rest) {
            *x += self.a * p;
        }
    }
}

struct AxpyMinus<'a> {
    x: &'a mut [DVec3],
    a: f64,
    p: &'a [DVec3],
    b: f64,
    u: &'a [DVec3],
}

impl Kernel for AxpyMinus<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let (x, x_rest) = cast_slice_mut::<_, f64>(self.x).as_chunks_mut::<4>();
        let (p, p_rest) = cast_slice::<_, f64>(self.p).as_chunks::<4>();
        let (u, u_rest) = cast_slice::<_, f64>(self.u).as_chunks::<4>();
        let [a, b] = [self.a, self.b].map(|scalar| lanes.splat(scalar));
        for (x, (p, u)) in x.iter_mut().zip(p.iter().zip(u)) {
            lanes.prefetch(x, AHEAD);
            let way = lanes.multiply(a, lanes.load(p));
            let way = lanes.subtract(way, lanes.multiply(b, lanes.load(u)));
            *x = lanes.store(lanes.add(lanes.load(x), way));
        }
        for (x, (p, u)) in x_rest.iter_mut().zip(p_rest.iter().zip(u_rest)) {
            *x += self.a * p - self.b * u;
        }
    }
}

struct XpbyDot<'a> {
    p: &'a mut [DVec3],
    beta: f64,
    u: &'a [DVec3],
    r: &'a [DVec3],
}

impl Kernel for XpbyDot<'_> {
    type Output = f64;

    /// Adds as [`dot`](super::reduction::dot) does.
    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> f64 {
        let (p, p_rest) = cast_slice_mut::<_, f64>(self.p).as_chunks_mut::<LANES>();
        let (u, u_rest) = cast_slice::<_, f64>(self.u).as_chunks::<LANES>();
        let (r, r_rest) = cast_slice::<_, f64>(self.r).as_chunks::<LANES>();
        let beta = lanes.splat(self.beta);
        let mut sums = DotSum::new(lanes);
        for (p, (u, r)) in p.iter_mut().zip(u.iter().zip(r)) {
            lanes.prefetch(p, AHEAD);
            for (p, u) in p.as_chunks_mut().0.iter_mut().zip(u.as_chunks().0) {
                *p = lanes.store(lanes.add_product(lanes.load(u), beta, lanes.load(p)));
            }
            sums.add(u, r);
        }
        for (p, u) in p_rest.iter_mut().zip(u_rest) {
            *p = u + self.beta * *p;
        }
        sums.finish(u_rest, r_rest)
    }
}
