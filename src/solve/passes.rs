//! Passes over the vectors of a patch between two products, in lanes and with the bits of plain code.

use bytemuck::{cast_slice, cast_slice_mut};
use glam::DVec3;

use crate::simd::{Lanes, Loop, order, widest};

/// One step of conjugate gradients over the vectors of a patch: p = u + β p, s = w + β s, r −= α s; with x, which is a step behind,
/// x += `due` p before that and x += α p after it.
pub(super) struct Advance<'a> {
    pub(super) alpha: f64,
    pub(super) beta: f64,
    pub(super) u: &'a [DVec3],
    pub(super) w: &'a [DVec3],
    pub(super) p: &'a mut [DVec3],
    pub(super) s: &'a mut [DVec3],
    pub(super) r: &'a mut [DVec3],
    pub(super) x: Option<(f64, &'a mut [DVec3])>,
}

impl Advance<'_> {
    pub(super) fn run(self) {
        widest(self);
    }
}

impl Loop for Advance<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let (u, u_rest) = cast_slice::<_, f64>(self.u).as_chunks::<4>();
        let (w, w_rest) = cast_slice::<_, f64>(self.w).as_chunks::<4>();
        let (p, p_rest) = cast_slice_mut::<_, f64>(self.p).as_chunks_mut::<4>();
        let (s, s_rest) = cast_slice_mut::<_, f64>(self.s).as_chunks_mut::<4>();
        let (r, r_rest) = cast_slice_mut::<_, f64>(self.r).as_chunks_mut::<4>();
        let [alpha, beta] = [self.alpha, self.beta].map(|scalar| lanes.splat(scalar));
        let fours = (u.iter().zip(w)).zip(p.iter_mut().zip(s)).zip(r);
        let rest = (u_rest.iter().zip(w_rest))
            .zip(p_rest.iter_mut().zip(s_rest))
            .zip(r_rest);
        if let Some((before, x)) = self.x {
            let due = lanes.splat(before);
            let (x, x_rest) = cast_slice_mut::<_, f64>(x).as_chunks_mut::<4>();
            for ((((u, w), (p, s)), r), x) in fours.zip(x) {
                let old = lanes.load(p);
                let along = lanes.add_product(lanes.load(u), beta, old);
                let product = lanes.add_product(lanes.load(w), beta, lanes.load(s));
                let half = lanes.add_product(lanes.load(x), due, old);
                *x = lanes.store(lanes.add_product(half, alpha, along));
                *p = lanes.store(along);
                *s = lanes.store(product);
                *r = lanes.store(lanes.subtract(lanes.load(r), lanes.multiply(alpha, product)));
            }
            for ((((u, w), (p, s)), r), x) in rest.zip(x_rest) {
                *x += before * *p;
                *p = u + self.beta * *p;
                *s = w + self.beta * *s;
                *r -= self.alpha * *s;
                *x += self.alpha * *p;
            }
        } else {
            for (((u, w), (p, s)), r) in fours {
                let product = lanes.add_product(lanes.load(w), beta, lanes.load(s));
                *p = lanes.store(lanes.add_product(lanes.load(u), beta, lanes.load(p)));
                *s = lanes.store(product);
                *r = lanes.store(lanes.subtract(lanes.load(r), lanes.multiply(alpha, product)));
            }
            for (((u, w), (p, s)), r) in rest {
                *p = u + self.beta * *p;
                *s = w + self.beta * *s;
                *r -= self.alpha * *s;
            }
        }
    }
}

/// u = P r for blocks P, which are symmetric: xx, xy, xz, yz, yy, zz.
pub(super) struct Blocks<'a> {
    pub(super) blocks: &'a [[f64; 6]],
    pub(super) r: &'a [DVec3],
    pub(super) u: &'a mut [DVec3],
}

impl Blocks<'_> {
    pub(super) fn run(self) {
        widest(self);
    }
}

impl Loop for Blocks<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let Self { blocks, r, u } = self;
        let count = blocks.len().min(r.len()).min(u.len());
        // Four numbers are written where a vector has three: the next one comes after. Behind the last there is none.
        let u: &mut [f64] = cast_slice_mut(&mut u[..count]);
        for (at, (block, r)) in blocks.iter().zip(r).enumerate() {
            let [first @ .., _, _] = block;
            let [_, second @ .., _] = block;
            let [_, _, third @ ..] = block;
            let [x, y, z] = [r.x, r.y, r.z].map(|r| lanes.splat(r));
            let product = lanes.multiply(lanes.load(first), x);
            // xy, yy, yz of xy, xz, yz, yy; xz, yz, zz of xz, yz, yy, zz.
            let second = lanes.permuted::<{ order([0, 3, 2, 2]) }>(lanes.load(second));
            let third = lanes.permuted::<{ order([0, 1, 3, 3]) }>(lanes.load(third));
            let product = lanes.add_product(product, second, y);
            let product = lanes.store(lanes.add_product(product, third, z));
            match u[3 * at..].first_chunk_mut::<4>() {
                Some(u) => *u = product,
                None => u[3 * at..].copy_from_slice(&product[..3]),
            }
        }
    }
}
