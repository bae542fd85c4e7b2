//! Four triangles of isotropic cloth at once: what they add to the matrix of a step and to its right-hand side.
//!
//! The formulas are those of [`super::membrane`], in the same order and with the same roundings: each lane of a vector is a
//! triangle, and gets the bits that it gets alone. A block and the one across the diagonal have the same elastic part, transposed, to
//! the bit; the part of tension is rounded differently in the two.

use std::ops::{Add, Div, Mul, Sub};

use glam::DVec3;

use super::membrane::RestTriangle;
use crate::simd::{Lanes, Numbers, four_at};

/// Times of a step in s, and what they multiply.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// How long forces act.
    pub(crate) tau: f64,
    /// How far positions follow the change that is looked for.
    pub(crate) stiff: f64,
    /// How far they follow the velocities that it is a change of.
    pub(crate) shift: f64,
}

/// Four triangles in motion.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moving<'a> {
    pub(crate) rest: [&'a RestTriangle; 4],
    /// Of stretching and shearing alike, in s.
    pub(crate) damping: [f64; 4],
    /// Where the corners of each stand in positions and velocities.
    pub(crate) corners: [[u32; 3]; 4],
    /// Positions, m.
    pub(crate) x: &'a [DVec3],
    /// Velocities, m/s.
    pub(crate) v: &'a [DVec3],
}

/// What four triangles add, each for itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct Added([OfOne; 4]);

/// What a triangle adds.
#[derive(Clone, Debug, Default)]
pub(crate) struct OfOne {
    /// Block `i, j` at `3 i + j`, by columns, without its last number; kg.
    firsts: [[[f64; 4]; 2]; 9],
    /// The last numbers of the blocks.
    lasts: [f64; 12],
    /// To the right-hand side in the rows of the corners, kg m/s.
    impulses: [[f64; 4]; 3],
}

impl Added {
    /// Of each triangle.
    pub(crate) fn each(&self) -> &[OfOne; 4] {
        &self.0
    }
}

impl OfOne {
    /// Block `i, j` by columns: eight numbers and the ninth.
    #[inline(always)]
    pub(crate) fn block(&self, i: usize, j: usize) -> (&[[f64; 4]; 2], f64) {
        let at = 3 * i + j;
        (&self.firsts[at], self.lasts[at])
    }

    /// What is added to the right-hand side in the row of a corner, and zero.
    #[inline(always)]
    pub(crate) fn impulse(&self, i: usize) -> &[f64; 4] {
        &self.impulses[i]
    }
}

/// Computes what the triangles add; `false`, and nothing of use, if one has collapsed or is woven.
///
/// `SAME` says that positions follow the change and what was begun with by the same time.
#[inline(always)]
pub(crate) fn add_four<L: Lanes, const SAME: bool>(
    lanes: L,
    of: &Moving<'_>,
    times: &Times,
    added: &mut Added,
) -> bool {
    let [
        Some([lambda_a, mu_a]),
        Some([lambda_b, mu_b]),
        Some([lambda_c, mu_c]),
        Some([lambda_d, mu_d]),
    ] = [
        of.rest[0].isotropic(),
        of.rest[1].isotropic(),
        of.rest[2].isotropic(),
        of.rest[3].isotropic(),
    ]
    else {
        return false;
    };
    let lambda = Numbers(lanes, lanes.load(&[lambda_a, lambda_b, lambda_c, lambda_d]));
    let mu = Numbers(lanes, lanes.load(&[mu_a, mu_b, mu_c, mu_d]));
    let damping = Numbers(lanes, lanes.load(&of.damping));
    let [g0x, g0y, g1x, g1y] = across(lanes, |k| {
        let [g0, g1, _] = of.rest[k].gradients();
        [g0.x, g0.y, g1.x, g1.y]
    });
    let [g2x, g2y, area, _] = across(lanes, |k| {
        let [_, _, g2] = of.rest[k].gradients();
        [g2.x, g2.y, of.rest[k].area(), 0.0]
    });
    let (gx, gy) = ([g0x, g1x, g2x], [g0y, g1y, g2y]);
    let two = lambda.splat(2.0);

    // RestTriangle::deform
    let x0 = corner(lanes, of.x, &of.corners, 0);
    let x1 = corner(lanes, of.x, &of.corners, 1);
    let x2 = corner(lanes, of.x, &of.corners, 2);
    let f0 = x0 * gx[0] + x1 * gx[1] + x2 * gx[2];
    let f1 = x0 * gy[0] + x1 * gy[1] + x2 * gy[2];
    let (c00, c11, c01) = (f0.dot(f0), f1.dot(f1), f0.dot(f1));
    let normal = f0.cross(f1);
    let root = normal.dot(normal).root();
    let (roots, least) = (
        root.to_array(),
        (lambda.splat(1e-12) * (c00 + c11)).to_array(),
    );
    let spans = |k: usize| roots[k].is_finite() && roots[k] > least[k];
    if !(spans(0) && spans(1) && spans(2) && spans(3)) {
        return false;
    }
    let trace = (c00 + c11 + two * root).root();
    let (u00, u11, u01) = ((c00 + root) / trace, (c11 + root) / trace, c01 / trace);
    let r0 = (f0 * u11 - f1 * u01) / root;
    let r1 = (f1 * u00 - f0 * u01) / root;

    // RestTriangle::stress and RestTriangle::forces
    let one = lambda.splat(1.0);
    let two_mu = two * mu;
    let (e00, e11) = (u00 - one, u11 - one);
    let pressure = lambda * (e00 + e11);
    let (s00, s11) = (pressure + two_mu * e00, pressure + two_mu * e11);
    let s01 = two_mu * u01;
    let against = lambda.splat(-1.0) * area;
    let p0 = (r0 * s00 + r1 * s01) * against;
    let p1 = (r0 * s01 + r1 * s11) * against;

    // RestTriangle::stiffness
    let tension = tension(lanes, [lambda, two_mu], [u00, u11, u01]);
    let (stiff, shift) = (lambda.splat(times.stiff), lambda.splat(times.shift));
    let element = Element {
        gx,
        gy,
        spatial: [
            r0 * gx[0] + r1 * gy[0],
            r0 * gx[1] + r1 * gy[1],
            r0 * gx[2] + r1 * gy[2],
        ],
        plane: r0.square() + r1.square(),
        normal: r0.cross(r1).square(),
        tension,
        area,
        lambda,
        mu,
        tau: lambda.splat(times.tau),
        change: [stiff + damping, stiff],
        begun: [shift + damping, shift],
    };
    let v = [
        corner(lanes, of.v, &of.corners, 0),
        corner(lanes, of.v, &of.corners, 1),
        corner(lanes, of.v, &of.corners, 2),
    ];

    let mut rows = Rows {
        forces: [
            p0 * gx[0] + p1 * gy[0],
            p0 * gx[1] + p1 * gy[1],
            p0 * gx[2] + p1 * gy[2],
        ],
        lasts: [lambda.splat(0.0); 12],
    };
    // Each row of the right-hand side in the order of its columns.
    element.add_pair::<SAME, 0, 0>(lanes, &v, &mut rows, added);
    element.add_pair::<SAME, 0, 1>(lanes, &v, &mut rows, added);
    element.add_pair::<SAME, 0, 2>(lanes, &v, &mut rows, added);
    element.add_pair::<SAME, 1, 1>(lanes, &v, &mut rows, added);
    element.add_pair::<SAME, 1, 2>(lanes, &v, &mut rows, added);
    element.add_pair::<SAME, 2, 2>(lanes, &v, &mut rows, added);
    for third in 0..3 {
        let at = 4 * third;
        let of = |k: usize| rows.lasts[at + k].1;
        let [a, b, c, d] = lanes.transposed([of(0), of(1), of(2), of(3)]);
        added.0[0].lasts[at..at + 4].copy_from_slice(&lanes.store(a));
        added.0[1].lasts[at..at + 4].copy_from_slice(&lanes.store(b));
        added.0[2].lasts[at..at + 4].copy_from_slice(&lanes.store(c));
        added.0[3].lasts[at..at + 4].copy_from_slice(&lanes.store(d));
    }
    for (i, &force) in rows.forces.iter().enumerate() {
        let Vector([x, y, z]) = force * element.tau;
        let [a, b, c, d] = lanes.transposed([x.1, y.1, z.1, lanes.splat(0.0)]);
        added.0[0].impulses[i] = lanes.store(a);
        added.0[1].impulses[i] = lanes.store(b);
        added.0[2].impulses[i] = lanes.store(c);
        added.0[3].impulses[i] = lanes.store(d);
    }
    true
}

/// Four numbers of each of the four, exchanged.
#[inline(always)]
fn across<L: Lanes>(lanes: L, of: impl Fn(usize) -> [f64; 4]) -> [Numbers<L>; 4] {
    let (a, b, c, d) = (of(0), of(1), of(2), of(3));
    let rows = [
        lanes.load(&a),
        lanes.load(&b),
        lanes.load(&c),
        lanes.load(&d),
    ];
    let [a, b, c, d] = lanes.transposed(rows);
    [
        Numbers(lanes, a),
        Numbers(lanes, b),
        Numbers(lanes, c),
        Numbers(lanes, d),
    ]
}

/// A vector of each of the four at one of its corners.
#[inline(always)]
fn corner<L: Lanes>(
    lanes: L,
    vectors: &[DVec3],
    corners: &[[u32; 3]; 4],
    corner: usize,
) -> Vector<L> {
    let of = |k: usize| lanes.load(four_at(vectors, corners[k][corner] as usize, &mut [0.0; 4]));
    let [x, y, z, _] = lanes.transposed([of(0), of(1), of(2), of(3)]);
    Vector([Numbers(lanes, x), Numbers(lanes, y), Numbers(lanes, z)])
}

/// What blocks are made of.
struct Element<L: Lanes> {
    gx: [Numbers<L>; 3],
    gy: [Numbers<L>; 3],
    spatial: [Vector<L>; 3],
    plane: Symmetric<L>,
    normal: Symmetric<L>,
    tension: [Numbers<L>; 3],
    area: Numbers<L>,
    lambda: Numbers<L>,
    mu: Numbers<L>,
    tau: Numbers<L>,
    /// How long elasticity with damping and tension follow the change.
    change: [Numbers<L>; 2],
    /// And what was begun with.
    begun: [Numbers<L>; 2],
}

/// What rows of blocks have in common.
struct Rows<L: Lanes> {
    forces: [Vector<L>; 3],
    /// The last numbers of the blocks.
    lasts: [Numbers<L>; 12],
}

impl<L: Lanes> Element<L> {
    /// A block and the one across the diagonal.
    #[inline(always)]
    fn add_pair<const SAME: bool, const I: usize, const J: usize>(
        &self,
        lanes: L,
        v: &[Vector<L>; 3],
        rows: &mut Rows<L>,
        added: &mut Added,
    ) {
        let elastic = self.elastic(I, J);
        self.add::<SAME>(lanes, (I, J), &elastic, v[J], rows, added);
        if I != J {
            let [a, b, c, d, e, f, g, h, k] = elastic;
            let across = [a, d, g, b, e, h, c, f, k];
            self.add::<SAME>(lanes, (J, I), &across, v[I], rows, added);
        }
    }

    /// `Stiffness::elastic`, by columns.
    #[inline(always)]
    fn elastic(&self, i: usize, j: usize) -> [Numbers<L>; 9] {
        let share = self.mu * (self.gx[i] * self.gx[j] + self.gy[i] * self.gy[j]);
        [
            self.elastic_entry((i, 0), (j, 0), share),
            self.elastic_entry((i, 1), (j, 0), share),
            self.elastic_entry((i, 2), (j, 0), share),
            self.elastic_entry((i, 0), (j, 1), share),
            self.elastic_entry((i, 1), (j, 1), share),
            self.elastic_entry((i, 2), (j, 1), share),
            self.elastic_entry((i, 0), (j, 2), share),
            self.elastic_entry((i, 1), (j, 2), share),
            self.elastic_entry((i, 2), (j, 2), share),
        ]
    }

    #[inline(always)]
    fn elastic_entry(
        &self,
        (i, row): (usize, usize),
        (j, column): (usize, usize),
        share: Numbers<L>,
    ) -> Numbers<L> {
        let (a, b) = (&self.spatial[i].0, &self.spatial[j].0);
        let straight = (a[row] * b[column]) * self.lambda;
        let crossed = (b[row] * a[column]) * self.mu;
        (straight + crossed + self.plane.of(row, column) * share) * self.area
    }

    /// Finishes block `i, j`, whose column's corner moves with `v`.
    #[inline(always)]
    fn add<const SAME: bool>(
        &self,
        lanes: L,
        (i, j): (usize, usize),
        elastic: &[Numbers<L>; 9],
        v: Vector<L>,
        rows: &mut Rows<L>,
        added: &mut Added,
    ) {
        // Stiffness::geometric
        let [t00, t11, t01] = self.tension;
        let form = self.gx[i] * (t00 * self.gx[j] + t01 * self.gy[j])
            + self.gy[i] * (t01 * self.gx[j] + t11 * self.gy[j]);
        let form = self.area * form;
        let block = self.following(elastic, form, &self.change);
        let pull = if SAME {
            drawn(&block, v)
        } else {
            drawn(&self.following(elastic, form, &self.begun), v)
        };
        rows.forces[i] = rows.forces[i] - pull;
        let [a, b, c, d, e, f, g, h, last] = block;
        let of = |number: Numbers<L>| (number * self.tau).1;
        let first = lanes.transposed([of(a), of(b), of(c), of(d)]);
        let second = lanes.transposed([of(e), of(f), of(g), of(h)]);
        let at = 3 * i + j;
        added.0[0].firsts[at] = [lanes.store(first[0]), lanes.store(second[0])];
        added.0[1].firsts[at] = [lanes.store(first[1]), lanes.store(second[1])];
        added.0[2].firsts[at] = [lanes.store(first[2]), lanes.store(second[2])];
        added.0[3].firsts[at] = [lanes.store(first[3]), lanes.store(second[3])];
        rows.lasts[3 * i + j] = last * self.tau;
    }

    /// Elasticity and tension times a time each.
    #[inline(always)]
    fn following(
        &self,
        elastic: &[Numbers<L>; 9],
        form: Numbers<L>,
        [elastic_time, tension_time]: &[Numbers<L>; 2],
    ) -> [Numbers<L>; 9] {
        let [xx, xy, xz, yy, yz, zz] = self.normal.0;
        let of = |elastic: Numbers<L>, normal: Numbers<L>| {
            elastic * *elastic_time + (normal * form) * *tension_time
        };
        let [a, b, c, d, e, f, g, h, k] = *elastic;
        [
            of(a, xx),
            of(b, xy),
            of(c, xz),
            of(d, xy),
            of(e, yy),
            of(f, yz),
            of(g, xz),
            of(h, yz),
            of(k, zz),
        ]
    }
}

/// The product of blocks with vectors.
#[inline(always)]
fn drawn<L: Lanes>([a, b, c, d, e, f, g, h, k]: &[Numbers<L>; 9], v: Vector<L>) -> Vector<L> {
    let [x, y, z] = v.0;
    Vector([
        *a * x + *d * y + *g * z,
        *b * x + *e * y + *h * z,
        *c * x + *f * y + *k * z,
    ])
}

/// `RestTriangle::tension` for λ and 2μ.
#[inline(always)]
fn tension<L: Lanes>(
    lanes: L,
    [lambda, two_mu]: [Numbers<L>; 2],
    [u00, u11, u01]: [Numbers<L>; 3],
) -> [Numbers<L>; 3] {
    let mean = lambda.splat(0.5) * (u00 + u11);
    let half = lambda.splat(0.5) * (u00 - u11);
    let radius = (half * half + u01 * u01).root();
    let (u1, u2) = (mean + radius, mean - radius);
    let trace = lambda * (u1 + u2 - lambda.splat(2.0));
    let t1 = pull([trace, two_mu], u1);
    let t2 = pull([trace, two_mu], u2);
    let weight = (t1 - t2) / (lambda.splat(2.0) * radius);
    let uneven = [
        t2 + weight * (u00 - u2),
        t2 + weight * (u11 - u2),
        weight * u01,
    ];
    let (radii, round) = (radius.to_array(), (lambda.splat(1e-14) * mean).to_array());
    let [a, b, c, d] = std::array::from_fn(|k| radii[k] < round[k]);
    if !(a || b || c || d) {
        return uneven;
    }
    let [x, y, z] = uneven;
    let zero = lambda.splat(0.0);
    let is_round = [a, b, c, d];
    [
        choose(lanes, is_round, t1, x),
        choose(lanes, is_round, t1, y),
        choose(lanes, is_round, zero, z),
    ]
}

/// Tension over stretch, without pressure.
#[inline(always)]
fn pull<L: Lanes>([trace, two_mu]: [Numbers<L>; 2], u: Numbers<L>) -> Numbers<L> {
    ((trace + two_mu * (u - u.splat(1.0))) / u).positive()
}

/// The one where so, the other where not.
#[inline(always)]
fn choose<L: Lanes>(lanes: L, so: [bool; 4], one: Numbers<L>, other: Numbers<L>) -> Numbers<L> {
    let (one, other) = (one.to_array(), other.to_array());
    let chosen = std::array::from_fn(|k| if so[k] { one[k] } else { other[k] });
    Numbers(lanes, lanes.load(&chosen))
}

/// A vector of space of each of the four.
#[derive(Clone, Copy)]
struct Vector<L: Lanes>([Numbers<L>; 3]);

impl<L: Lanes> Vector<L> {
    #[inline(always)]
    fn dot(self, other: Self) -> Numbers<L> {
        let ([a, b, c], [d, e, f]) = (self.0, other.0);
        a * d + b * e + c * f
    }

    #[inline(always)]
    fn cross(self, other: Self) -> Self {
        let ([a, b, c], [d, e, f]) = (self.0, other.0);
        Self([b * f - e * c, c * d - f * a, a * e - d * b])
    }

    /// `a aᵀ`.
    #[inline(always)]
    fn square(self) -> Symmetric<L> {
        let [x, y, z] = self.0;
        Symmetric([x * x, x * y, x * z, y * y, y * z, z * z])
    }
}

impl<L: Lanes> Add for Vector<L> {
    type Output = Self;

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        let ([a, b, c], [d, e, f]) = (self.0, other.0);
        Self([a + d, b + e, c + f])
    }
}

impl<L: Lanes> Sub for Vector<L> {
    type Output = Self;

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        let ([a, b, c], [d, e, f]) = (self.0, other.0);
        Self([a - d, b - e, c - f])
    }
}

impl<L: Lanes> Mul<Numbers<L>> for Vector<L> {
    type Output = Self;

    #[inline(always)]
    fn mul(self, by: Numbers<L>) -> Self {
        let [a, b, c] = self.0;
        Self([a * by, b * by, c * by])
    }
}

impl<L: Lanes> Div<Numbers<L>> for Vector<L> {
    type Output = Self;

    #[inline(always)]
    fn div(self, by: Numbers<L>) -> Self {
        let [a, b, c] = self.0;
        Self([a / by, b / by, c / by])
    }
}

/// Symmetric matrices of the four: xx, xy, xz, yy, yz, zz.
#[derive(Clone, Copy)]
struct Symmetric<L: Lanes>([Numbers<L>; 6]);

impl<L: Lanes> Symmetric<L> {
    #[inline(always)]
    fn of(&self, row: usize, column: usize) -> Numbers<L> {
        let (a, b) = (row.min(column), row.max(column));
        self.0[[0, 2, 3][a] + b]
    }
}

impl<L: Lanes> Add for Symmetric<L> {
    type Output = Self;

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        let ([a, b, c, d, e, f], [g, h, i, j, k, l]) = (self.0, other.0);
        Self([a + g, b + h, c + i, d + j, e + k, f + l])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::scene::Material;
    use crate::simd::{Loop, widest};

    struct Adding<'a>(&'a Moving<'a>, &'a Times);

    impl Loop for Adding<'_> {
        type Output = Option<Added>;

        #[inline(always)]
        fn run<L: Lanes>(self, lanes: L) -> Option<Added> {
            let mut added = Added::default();
            let Self(of, times) = self;
            let fits = if times.stiff == times.shift {
                add_four::<L, true>(lanes, of, times, &mut added)
            } else {
                add_four::<L, false>(lanes, of, times, &mut added)
            };
            fits.then_some(added)
        }
    }

    const TIMES: Times = Times {
        tau: 0.01,
        stiff: 0.01,
        shift: 0.01,
    };

    fn rest(corners: [DVec3; 3]) -> RestTriangle {
        RestTriangle::new(corners, &Material::COTTON, DVec3::X).unwrap()
    }

    fn vectors() -> impl Strategy<Value = Vec<DVec3>> {
        let number = || -1.0_f64..1.0;
        let vector = (number(), number(), number()).prop_map(|(x, y, z)| DVec3::new(x, y, z));
        prop::collection::vec(vector, 36)
    }

    proptest! {
        /// Torn to any shape, and at rest.
        #[test]
        fn each_of_four_gets_the_bits_that_it_gets_alone(
            vectors in vectors(),
            damping in 0.0_f64..0.1,
            shift in prop::sample::select(vec![0.01, 0.0, 0.02]),
        ) {
            let corners = [[0, 1, 2], [3, 4, 5], [2, 1, 0], [9, 10, 11]];
            let of = |all: &[DVec3], [a, b, c]: [u32; 3]| [a, b, c].map(|i| all[i as usize]);
            let (x, v) = (&vectors[..12], &vectors[12..24]);
            let shapes = [of(&vectors[24..], [0, 1, 2]), of(&vectors[24..], [3, 4, 5]), of(x, [2, 1, 0]), of(x, [9, 10, 11])];
            let spans = |[a, b, c]: [DVec3; 3]| (b - a).cross(c - a).length() > 1e-3;
            prop_assume!(shapes.iter().all(|&shape| spans(shape)));
            let moduli = shapes.map(rest);
            let moving = Moving {
                rest: moduli.each_ref(),
                damping: [damping, 0.0, damping, 2.0 * damping],
                corners,
                x,
                v,
            };
            let times = Times { shift, ..TIMES };
            let added = widest(Adding(&moving, &times)).expect("none collapsed");
            for (k, one) in added.each().iter().enumerate() {
                let deformation = moduli[k].deform(of(x, corners[k])).unwrap();
                let (forces, stiffness) = (moduli[k].forces(&deformation), moduli[k].stiffness(&deformation));
                let block = |i, j, time: f64| {
                    stiffness.elastic(i, j) * (time + moving.damping[k]) + stiffness.geometric(i, j) * time
                };
                for (i, mut force) in forces.into_iter().enumerate() {
                    for (j, v) in of(v, corners[k]).into_iter().enumerate() {
                        let expected = block(i, j, times.stiff) * times.tau;
                        let (firsts, last) = one.block(i, j);
                        let found = [firsts.as_flattened(), &[last]].concat();
                        prop_assert_eq!(&found[..], &expected.to_cols_array()[..]);
                        force -= block(i, j, shift) * v;
                    }
                    let impulse = force * times.tau;
                    prop_assert_eq!(one.impulse(i), &[impulse.x, impulse.y, impulse.z, 0.0]);
                }
            }
        }
    }

    #[test]
    fn a_triangle_that_collapsed_or_is_woven_is_left_to_others() {
        let x = [DVec3::ZERO, DVec3::X, DVec3::Y, DVec3::X * 2.0];
        let whole = rest([x[0], x[1], x[2]]);
        let woven = Material {
            stretch: [1000.0, 300.0],
            ..Material::COTTON
        };
        let woven = RestTriangle::new([x[0], x[1], x[2]], &woven, DVec3::X).unwrap();
        let moving = |last: &RestTriangle, corners| {
            let moving = Moving {
                rest: [&whole, &whole, &whole, last],
                damping: [0.0; 4],
                corners: [[0, 1, 2], [0, 1, 2], [0, 1, 2], corners],
                x: &x,
                v: &x,
            };
            widest(Adding(&moving, &TIMES)).is_some()
        };
        assert!(moving(&whole, [0, 1, 2]));
        assert!(!moving(&whole, [0, 1, 3]));
        assert!(!moving(&woven, [0, 1, 2]));
    }
}
