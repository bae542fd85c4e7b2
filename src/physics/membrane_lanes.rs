//! Four or eight triangles at once: what they add to the matrix of a step and to its right-hand
//! side.
//!
//! The formulas are those of [`super::membrane`] for woven cloth, of which isotropic cloth is a
//! case, in a form that has less to compute. Each lane of a vector is a triangle and gets the bits
//! that it gets alone.
//!
//! With the unit normal n, axes r₀ and r₁ in the plane, and gradients `g`, `h` of two corners'
//! shape functions, their block is `R k Rᵀ + f n nᵀ` with `k = A Bᵢᵀ C Bⱼ` and the tension's `f = A
//! gᵀ T h`. As `r₁ r₁ᵀ = I − n nᵀ − r₀ r₀ᵀ` and `r₀ r₁ᵀ − r₁ r₀ᵀ` has the entries of n, it is
//!
//! `k₁₁ I + (k₀₀ − k₁₁) r₀ r₀ᵀ + (k₀₁ + k₁₀)/2 (r₀ r₁ᵀ + r₁ r₀ᵀ) + (k₀₁ − k₁₀)/2 [r₀ r₁ᵀ − r₁ r₀ᵀ]
//! + (f − k₁₁) n nᵀ`.
//!
//! Gradients sum to zero, and so do blocks along a row or a column: of nine blocks the two on the
//! diagonal of the later corners and the one of both are computed. Forces sum to zero too, and only
//! differences of positions and of velocities matter.

use std::ops::{Add, Mul};

use super::element::Times;
use super::membrane::{Moduli, RestTriangle};
use crate::heap_bytes::owns_no_heap;
use crate::simd::{Arithmetic, Lanes, Numbers};

/// The factors of a material's moduli c₁₁, c₂₂, c₁₂, c₆₆ in a system: [`STRESS`], [`CHANGE`],
/// [`BEGUN`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Law([[f64; 4]; 3]);

owns_no_heap!(Law);

/// N/m.
const STRESS: usize = 0;
/// Times τ and how far elasticity with damping follows the change, kg/m².
const CHANGE: usize = 1;
/// And what was begun with.
const BEGUN: usize = 2;

impl Law {
    /// The law of cloth whose stretching and shearing is damped with these times in s.
    pub(crate) fn new(moduli: &Moduli, [stretch, shear]: [f64; 2], times: &Times) -> Self {
        let Moduli { c11, c22, c12, c66 } = *moduli;
        let following = |time: f64| {
            let (stretch, shear) = (times.tau * (time + stretch), times.tau * (time + shear));
            [c11 * stretch, c22 * stretch, c12 * stretch, c66 * shear]
        };
        Self([
            [c11, c22, c12, c66],
            following(times.stiff),
            following(times.shift),
        ])
    }
}

/// Four triangles, side by side: their rest shapes, and where their corners stand.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Four {
    /// Along x and y of the gradients of the second and of the third corner's shape function, 1/m.
    gradients: [[f64; 4]; 4],
    /// Areas at rest in m².
    areas: [f64; 4],
    /// The number of each triangle's law.
    laws: [u32; 4],
    /// The places of the corners of the four in arrays by vertices, for each corner.
    corners: [[u32; 4]; 3],
}

owns_no_heap!(Four);

impl Four {
    /// Puts a triangle into a lane.
    ///
    /// # Panics
    /// If there is no such lane.
    pub(crate) fn set(&mut self, lane: usize, triangle: LaneTriangle<'_>) {
        let LaneTriangle {
            rest,
            order,
            law,
            corners,
        } = triangle;
        let [_, g, h] = order.map(|corner| rest.gradients()[corner]);
        for (numbers, value) in self.gradients.iter_mut().zip([g.x, g.y, h.x, h.y]) {
            numbers[lane] = value;
        }
        self.areas[lane] = rest.area();
        self.laws[lane] = law;
        for (corners, corner) in self.corners.iter_mut().zip(corners) {
            corners[lane] = corner;
        }
    }
}

/// A triangle as a lane takes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaneTriangle<'a> {
    pub(crate) rest: &'a RestTriangle,
    /// The order in which its corners are taken.
    pub(crate) order: [usize; 3],
    /// The number of its law.
    pub(crate) law: u32,
    /// The places of its corners, in that order.
    pub(crate) corners: [u32; 3],
}

/// Positions (m) and velocities (m/s) of vertices, each with a fourth number of no use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Vertices<'a> {
    pub(crate) x: &'a [[f64; 4]],
    pub(crate) v: &'a [[f64; 4]],
}

/// How two of a triangle's corners are coupled: what it takes away from their block, and adds to
/// those on the diagonal of both; kg. The first and second corner, first and third, second and
/// third, nine numbers each by columns, of which rows are those of the former corner; and one
/// number of no use.
pub(crate) type Coupled = [f64; 28];

/// Computes how the corners of triangles are coupled, and gives what these add to the right-hand
/// side to `push`: where a corner stands, a vector and zero, kg m/s; triangle by triangle.
///
/// `of` and `coupled` are of as many fours as vectors have. Positions (m) and velocities (m/s) have
/// a fourth number of no use. `SAME` says that positions follow the change and what was begun with
/// by the same time.
///
/// # Errors
/// The first triangle that has collapsed or is not finite; there is nothing of use then.
///
/// # Panics
/// If there is no such law or corner, or not as many fours.
#[inline(always)]
pub(crate) fn couple<A: Arithmetic, const SAME: bool>(
    numbers: A,
    of: &[Four],
    laws: &[Law],
    vertices: Vertices<'_>,
    times: &Times,
    coupled: &mut [[Coupled; 4]],
    mut push: impl FnMut(u32, <A::Of as Lanes>::Four),
) -> Result<(), usize> {
    let (lanes, Vertices { x, v }) = (numbers.lanes(), vertices);
    // Where vectors are one four, the last is the first again, and not looked at.
    let group @ [one, two] = [&of[0], &of[A::FOURS - 1]];
    let number = |of: [&[f64; 4]; 2]| Numbers::of(numbers, [lanes.load(of[0]), lanes.load(of[1])]);
    let [a, b] = [
        number([&one.gradients[0], &two.gradients[0]]),
        number([&one.gradients[1], &two.gradients[1]]),
    ];
    let [c, d] = [
        number([&one.gradients[2], &two.gradients[2]]),
        number([&one.gradients[3], &two.gradients[3]]),
    ];
    let area = number([&one.areas, &two.areas]);

    // RestTriangle::deform
    let (e1, e2) = (between(numbers, group, x, 1), between(numbers, group, x, 2));
    let f0 = (e1 * a).fused(e2, c);
    let f1 = (e1 * b).fused(e2, d);
    let (c00, c11, c01) = (f0.dot(f0), f1.dot(f1), f0.dot(f1));
    let normal = f0.cross(f1);
    let root = normal.dot(normal).root();
    let least = area.splat(1e-12) * (c00 + c11);
    let (zero, one) = (area.splat(0.0), area.splat(1.0));
    let finite = root.where_less(area.splat(f64::MAX), zero, one);
    let collapsed = least.where_less(root, finite, one);
    for k in 0..A::FOURS {
        let [p, q, r, s] = lanes.store(collapsed.four(k));
        if (p + q) + (r + s) != 0.0 {
            let first = [p, q, r, s].iter().position(|&lane| lane != 0.0);
            return Err(4 * k + first.unwrap_or_default());
        }
    }
    let trace = (c00 + c11 + (root + root)).root();
    // One division for all: tr U = trace and det U = root.
    let both = one / (trace * root);
    let (by_trace, by_root) = (both * root, both * trace);
    let (u00, u11, u01) = (
        (c00 + root) * by_trace,
        (c11 + root) * by_trace,
        c01 * by_trace,
    );
    let against = zero - u01;
    let (w00, w11, w01) = (u00 * by_root, u11 * by_root, against * by_root);
    let r0 = (f0 * w11).fused(f1, w01);
    let r1 = (f1 * w00).fused(f0, w01);
    let n = normal * by_root;

    // RestTriangle::stress and RestTriangle::pull
    let [m11, m22, m12, m66] = across::<A, STRESS>(numbers, group, laws);
    let (s00, s11) = (u00 - one, u11 - one);
    let (s00, s11) = ((m12 * s11).fused(m11, s00), (m12 * s00).fused(m22, s11));
    let s01 = (m66 + m66) * u01;
    let (a00, a01) = (
        (against * s01).fused(u11, s00),
        (against * s11).fused(u11, s01),
    );
    let (a10, a11) = (
        (against * s00).fused(u00, s01),
        (against * s01).fused(u00, s11),
    );
    let y00 = (a01 * against).fused(a00, u11).fused(root, s00) * both;
    let y11 = (a10 * against).fused(a11, u00).fused(root, s11) * both;
    let y01 = (a00 * against).fused(a01, u00).fused(root, s01) * both;

    // RestTriangle::forces, times τ
    let tau = area.splat(times.tau) * area;
    let (p0, p1) = (
        (f0 * y00).fused(f1, y01) * (zero - tau),
        (f0 * y01).fused(f1, y11) * (zero - tau),
    );
    let (mut second, mut third) = ((p0 * a).fused(p1, b), (p0 * c).fused(p1, d));

    let element = Element {
        gradients: [a, b, c, d],
        area,
        axis: r0.square(),
        mixed: r0.mixed(r1),
        normal: n.square(),
        n,
        tension: tension([y00, y11, y01]),
    };
    let change = across::<A, CHANGE>(numbers, group, laws);
    let blocks = element.blocks(change, tau * area.splat(times.stiff));
    let (w1, w2) = (between(numbers, group, v, 1), between(numbers, group, v, 2));
    if SAME {
        blocks.pull([w1, w2], [&mut second, &mut third]);
    } else {
        let begun = across::<A, BEGUN>(numbers, group, laws);
        let begun = element.blocks(begun, tau * area.splat(times.shift));
        begun.pull([w1, w2], [&mut second, &mut third]);
    }
    blocks.store(coupled);
    let first = (second + third).negative();
    for (k, of) in of.iter().enumerate() {
        let impulses = [first.of_each(k), second.of_each(k), third.of_each(k)];
        for lane in 0..4 {
            for (corners, impulses) in of.corners.iter().zip(&impulses) {
                push(corners[lane], impulses[lane]);
            }
        }
    }
    Ok(())
}

/// The fours of a group, of which the last may be the first.
type Group<'a> = [&'a Four; 2];

/// Four numbers of the law of each triangle, from those that a law has.
#[inline(always)]
fn across<A: Arithmetic, const K: usize>(
    numbers: A,
    [one, two]: Group<'_>,
    laws: &[Law],
) -> [Numbers<A>; 4] {
    let lanes = numbers.lanes();
    let ([a, b, c, d], [e, f, g, h]) = (
        laws_of::<_, K>(lanes, one, laws),
        laws_of::<_, K>(lanes, two, laws),
    );
    [
        Numbers::of(numbers, [a, e]),
        Numbers::of(numbers, [b, f]),
        Numbers::of(numbers, [c, g]),
        Numbers::of(numbers, [d, h]),
    ]
}

#[inline(always)]
fn laws_of<L: Lanes, const K: usize>(lanes: L, of: &Four, laws: &[Law]) -> [L::Four; 4] {
    // Nothing is gathered where there is one cloth.
    if let [law] = laws {
        let [a, b, c, d] = law.0[K];
        return [
            lanes.splat(a),
            lanes.splat(b),
            lanes.splat(c),
            lanes.splat(d),
        ];
    }
    let [p, q, r, s] = of.laws;
    lanes.transposed([
        lanes.load(&laws[p as usize].0[K]),
        lanes.load(&laws[q as usize].0[K]),
        lanes.load(&laws[r as usize].0[K]),
        lanes.load(&laws[s as usize].0[K]),
    ])
}

/// The differences between the vectors at another corner and those at the first.
#[inline(always)]
fn between<A: Arithmetic>(
    numbers: A,
    [one, two]: Group<'_>,
    vectors: &[[f64; 4]],
    corner: usize,
) -> Vector<A> {
    let lanes = numbers.lanes();
    let ([a, b, c, _], [d, e, f, _]) = (
        between_in(lanes, one, vectors, corner),
        between_in(lanes, two, vectors, corner),
    );
    Vector([
        Numbers::of(numbers, [a, d]),
        Numbers::of(numbers, [b, e]),
        Numbers::of(numbers, [c, f]),
    ])
}

#[inline(always)]
fn between_in<L: Lanes>(lanes: L, of: &Four, vectors: &[[f64; 4]], corner: usize) -> [L::Four; 4] {
    let (from, to) = (&of.corners[0], &of.corners[corner]);
    lanes.transposed([
        lanes.subtract(
            lanes.load(&vectors[to[0] as usize]),
            lanes.load(&vectors[from[0] as usize]),
        ),
        lanes.subtract(
            lanes.load(&vectors[to[1] as usize]),
            lanes.load(&vectors[from[1] as usize]),
        ),
        lanes.subtract(
            lanes.load(&vectors[to[2] as usize]),
            lanes.load(&vectors[from[2] as usize]),
        ),
        lanes.subtract(
            lanes.load(&vectors[to[3] as usize]),
            lanes.load(&vectors[from[3] as usize]),
        ),
    ])
}

/// The data of an element for blocks.
struct Element<A: Arithmetic> {
    gradients: [Numbers<A>; 4],
    area: Numbers<A>,
    /// The product r₀ r₀ᵀ.
    axis: Symmetric<A>,
    /// The sum r₀ r₁ᵀ + r₁ r₀ᵀ.
    mixed: Symmetric<A>,
    /// The product n nᵀ.
    normal: Symmetric<A>,
    n: Vector<A>,
    tension: [Numbers<A>; 3],
}

/// The blocks of the second and the third corner, and the one of both with its sign changed.
struct Blocks<A: Arithmetic> {
    second: Symmetric<A>,
    third: Symmetric<A>,
    /// The block of both corners with its sign changed, by columns.
    minus_both: [Numbers<A>; 9],
}

impl<A: Arithmetic> Element<A> {
    /// The blocks for moduli and tension times the time for which they act.
    #[inline(always)]
    fn blocks(&self, moduli: [Numbers<A>; 4], tension_time: Numbers<A>) -> Blocks<A> {
        let [a, b, c, d] = self.gradients;
        let [m11, m22, m12, m66] = moduli;
        let (m11, m22) = (m11 * self.area, m22 * self.area);
        let (m12, m66) = (m12 * self.area, m66 * self.area);
        let [t00, t11, t01] = self.tension;
        let (t00, t11, t01) = (t00 * tension_time, t11 * tension_time, t01 * tension_time);
        let half = a.splat(0.5);
        let (sum, difference) = (m12 + m66, half * (m12 - m66));

        let (ta, tb) = ((t01 * b).fused(t00, a), (t01 * a).fused(t11, b));
        let (aa, bb) = (a * a, b * b);
        let (k00, k11) = ((m66 * bb).fused(m11, aa), (m66 * aa).fused(m22, bb));
        let form = (b * tb).fused(a, ta);
        let second = self.symmetric([k00 - k11, sum * (a * b), form - k11], k11);

        let (cc, dd) = (c * c, d * d);
        let (k00, k11) = ((m66 * dd).fused(m11, cc), (m66 * cc).fused(m22, dd));
        let (tc, td) = ((t01 * d).fused(t00, c), (t01 * c).fused(t11, d));
        let form = (d * td).fused(c, tc);
        let third = self.symmetric([k00 - k11, sum * (c * d), form - k11], k11);

        let (ac, bd, ad, bc) = (a * c, b * d, a * d, b * c);
        let (k00, k11) = ((m66 * bd).fused(m11, ac), (m66 * ac).fused(m22, bd));
        let form = (d * tb).fused(c, ta);
        let zero = a.splat(0.0);
        let mixed = (half * sum) * (zero - (ad + bc));
        let Symmetric([xx, xy, xz, yy, yz, zz]) =
            self.symmetric([k11 - k00, mixed, k11 - form], zero - k11);
        // (k₁₀ − k₀₁)/2 of what is not symmetric.
        let turning = difference * (bc - ad);
        let Vector([x, y, z]) = self.n * turning;
        Blocks {
            second,
            third,
            minus_both: [xx, xy - z, xz + y, xy + z, yy, yz - x, xz - y, yz + x, zz],
        }
    }

    /// Shares of r₀ r₀ᵀ, of the mixed part, of n nᵀ, and of identity.
    #[inline(always)]
    fn symmetric(&self, shares: [Numbers<A>; 3], identity: Numbers<A>) -> Symmetric<A> {
        Symmetric([
            self.shared(0, shares) + identity,
            self.shared(1, shares),
            self.shared(2, shares),
            self.shared(3, shares) + identity,
            self.shared(4, shares),
            self.shared(5, shares) + identity,
        ])
    }

    #[inline(always)]
    fn shared(&self, k: usize, [axis, mixed, normal]: [Numbers<A>; 3]) -> Numbers<A> {
        (self.axis.0[k] * axis)
            .fused(self.mixed.0[k], mixed)
            .fused(self.normal.0[k], normal)
    }
}

impl<A: Arithmetic> Blocks<A> {
    /// Subtracts, from forces at the second and the third corner, the product of the blocks with
    /// velocities relative to that of the first.
    #[inline(always)]
    fn pull(&self, [w1, w2]: [Vector<A>; 2], [second, third]: [&mut Vector<A>; 2]) {
        let [a, b, c, d, e, f, g, h, k] = self.minus_both;
        *second = add_product([[a, b, c], [d, e, f], [g, h, k]], w2, *second);
        *second = add_product(self.second.columns(), w1.negative(), *second);
        *third = add_product([[a, d, g], [b, e, h], [c, f, k]], w1, *third);
        *third = add_product(self.third.columns(), w2.negative(), *third);
    }

    /// Stores the blocks of different corners, with their signs changed.
    #[inline(always)]
    fn store(&self, coupled: &mut [[Coupled; 4]]) {
        let [a, b, c, d, e, f, g, h, k] = self.minus_both;
        // Blocks of a row and of a column sum to zero.
        let [[p, q, r], [s, t, u], [v, w, x]] = self.second.columns();
        let first_second = [
            p - a,
            q - d,
            r - g,
            s - b,
            t - e,
            u - h,
            v - c,
            w - f,
            x - k,
        ];
        let [[p, q, r], [s, t, u], [v, w, x]] = self.third.columns();
        let first_third = [
            p - a,
            q - b,
            r - c,
            s - d,
            t - e,
            u - f,
            v - g,
            w - h,
            x - k,
        ];
        let [p, q, r, s, t, u, v, w, x] = first_second;
        put::<A, 0>(coupled, [p, q, r, s]);
        put::<A, 4>(coupled, [t, u, v, w]);
        let [y, z, p, q, r, s, t, u, v] = first_third;
        put::<A, 8>(coupled, [x, y, z, p]);
        put::<A, 12>(coupled, [q, r, s, t]);
        put::<A, 16>(coupled, [u, v, a, b]);
        put::<A, 20>(coupled, [c, d, e, f]);
        put::<A, 24>(coupled, [g, h, k, k]);
    }
}

/// Stores four numbers of each.
#[inline(always)]
fn put<A: Arithmetic, const AT: usize>(coupled: &mut [[Coupled; 4]], numbers: [Numbers<A>; 4]) {
    let ([p, q, r, s], lanes) = (numbers, numbers[0].0.lanes());
    for (k, coupled) in coupled.iter_mut().enumerate() {
        let [a, b, c, d] = lanes.transposed([p.four(k), q.four(k), r.four(k), s.four(k)]);
        let [one, two, three, four] = coupled;
        one[AT..AT + 4].copy_from_slice(&lanes.store(a));
        two[AT..AT + 4].copy_from_slice(&lanes.store(b));
        three[AT..AT + 4].copy_from_slice(&lanes.store(c));
        four[AT..AT + 4].copy_from_slice(&lanes.store(d));
    }
}

/// A sum and the product of a matrix, given by columns, with a vector.
#[inline(always)]
fn add_product<A: Arithmetic>(
    [p, q, r]: [[Numbers<A>; 3]; 3],
    Vector([x, y, z]): Vector<A>,
    sum: Vector<A>,
) -> Vector<A> {
    (sum.fused(Vector(p), x))
        .fused(Vector(q), y)
        .fused(Vector(r), z)
}

/// A symmetric matrix `[m₀₀, m₁₁, m₀₁]` with its negative eigenvalues set to zero, as
/// [`super::membrane`] has it.
#[inline(always)]
fn tension<A: Arithmetic>([m00, m11, m01]: [Numbers<A>; 3]) -> [Numbers<A>; 3] {
    let half = m00.splat(0.5);
    let (mean, half) = (half * (m00 + m11), half * (m00 - m11));
    let squared = (m01 * m01).fused(half, half);
    let radius = squared.root();
    let (most, least) = ((mean + radius).positive(), (mean - radius).positive());
    let weight = (most - least) / (radius + radius);
    // Squares, for the sign of the mean does not matter.
    let round = mean.splat(1e-28) * (mean * mean);
    let (t00, t11) = (
        least.fused(weight, radius + half),
        least.fused(weight, radius - half),
    );
    [
        round.where_less(squared, t00, most),
        round.where_less(squared, t11, most),
        round.where_less(squared, weight * m01, mean.splat(0.0)),
    ]
}

/// A vector of space of each triangle.
#[derive(Clone, Copy)]
struct Vector<A: Arithmetic>([Numbers<A>; 3]);

impl<A: Arithmetic> Vector<A> {
    #[inline(always)]
    fn dot(self, other: Self) -> Numbers<A> {
        let ([a, b, c], [d, e, f]) = (self.0, other.0);
        (a * d).fused(b, e).fused(c, f)
    }

    #[inline(always)]
    fn cross(self, other: Self) -> Self {
        let ([a, b, c], [d, e, f]) = (self.0, other.0);
        Self([b * f - e * c, c * d - f * a, a * e - d * b])
    }

    /// This and another one's multiple.
    #[inline(always)]
    fn fused(self, other: Self, by: Numbers<A>) -> Self {
        let ([a, b, c], [d, e, f]) = (self.0, other.0);
        Self([a.fused(d, by), b.fused(e, by), c.fused(f, by)])
    }

    /// `a aᵀ`.
    #[inline(always)]
    fn square(self) -> Symmetric<A> {
        let [x, y, z] = self.0;
        Symmetric([x * x, x * y, x * z, y * y, y * z, z * z])
    }

    /// `a bᵀ + b aᵀ`.
    #[inline(always)]
    fn mixed(self, other: Self) -> Symmetric<A> {
        let ([a, b, c], [d, e, f]) = (self.0, other.0);
        let (xx, yy, zz) = (a * d, b * e, c * f);
        Symmetric([
            xx + xx,
            (a * e).fused(b, d),
            (a * f).fused(c, d),
            yy + yy,
            (b * f).fused(c, e),
            zz + zz,
        ])
    }

    #[inline(always)]
    fn negative(self) -> Self {
        let [a, b, c] = self.0;
        let zero = a.splat(0.0);
        Self([zero - a, zero - b, zero - c])
    }

    /// The vector of each of the four triangles at a place, with a zero behind it.
    #[inline(always)]
    fn of_each(self, at: usize) -> [<A::Of as Lanes>::Four; 4] {
        let [x, y, z] = self.0;
        let lanes = x.0.lanes();
        lanes.transposed([x.four(at), y.four(at), z.four(at), lanes.splat(0.0)])
    }
}

impl<A: Arithmetic> Add for Vector<A> {
    type Output = Self;

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        let ([a, b, c], [d, e, f]) = (self.0, other.0);
        Self([a + d, b + e, c + f])
    }
}

impl<A: Arithmetic> Mul<Numbers<A>> for Vector<A> {
    type Output = Self;

    #[inline(always)]
    fn mul(self, by: Numbers<A>) -> Self {
        let [a, b, c] = self.0;
        Self([a * by, b * by, c * by])
    }
}

/// Symmetric matrices, of each triangle one: xx, xy, xz, yy, yz, zz.
#[derive(Clone, Copy)]
struct Symmetric<A: Arithmetic>([Numbers<A>; 6]);

impl<A: Arithmetic> Symmetric<A> {
    #[inline(always)]
    fn columns(&self) -> [[Numbers<A>; 3]; 3] {
        let [xx, xy, xz, yy, yz, zz] = self.0;
        [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use glam::{DMat3, DVec3};
    use proptest::prelude::*;

    use super::*;
    use crate::scene::Material;
    use crate::simd::{ByEight, Kernel, by_each_set, widest};

    fn materials() -> [Material; 3] {
        [
            Material::COTTON,
            Material {
                stretch: [1000.0, 300.0],
                poisson: 0.25,
                shear: Some(40.0),
                damping: [0.01, 0.03, 0.0],
                ..Material::COTTON
            },
            Material {
                damping: [0.0; 3],
                ..Material::COTTON
            },
        ]
    }

    /// A triangle at rest, its material, and where it is with what velocities.
    #[derive(Clone, Debug)]
    struct Moving {
        rest: RestTriangle,
        material: usize,
        x: [DVec3; 3],
        v: [DVec3; 3],
    }

    /// Coupled corners, and impulses: of each triangle those at its corners.
    type Found = ([[Coupled; 4]; 2], [[[f64; 4]; 3]; 8]);

    #[derive(Clone, Copy)]
    struct Coupling<'a>([&'a Moving; 8], &'a Times);

    impl Kernel for Coupling<'_> {
        type Output = Result<Found, usize>;

        /// Four by four, and all eight at once.
        #[inline(always)]
        fn run<L: Lanes>(self, lanes: L) -> Self::Output {
            let by_fours = self.coupled(lanes, 0..1);
            let by_fours = by_fours.and_then(|first| {
                let last = self.coupled(lanes, 1..2).map_err(|lane| 4 + lane)?;
                Ok(([first.0[0], last.0[1]], {
                    let mut impulses = first.1;
                    impulses[4..].copy_from_slice(&last.1[4..]);
                    impulses
                }))
            });
            let by_eight = self.coupled(ByEight(lanes), 0..2);
            assert_eq!(by_fours, by_eight);
            by_eight
        }
    }

    impl Coupling<'_> {
        /// Computes the coupling of some fours, and zeros for the others.
        #[inline(always)]
        fn coupled<A: Arithmetic>(self, numbers: A, fours: Range<usize>) -> Result<Found, usize> {
            let Self(of, times) = self;
            let mut rest = [Four::default(); 2];
            for (at, one) in of.iter().enumerate() {
                let triangle = LaneTriangle {
                    rest: &one.rest,
                    order: [0, 1, 2],
                    law: one.material as u32,
                    corners: [0, 1, 2].map(|corner| (3 * at + corner) as u32),
                };
                rest[at / 4].set(at % 4, triangle);
            }
            let laws = materials().map(|material| {
                let [stretch, shear, _] = material.damping;
                Law::new(&Moduli::new(&material), [stretch, shear], times)
            });
            let four = |v: DVec3| [v.x, v.y, v.z, 7.0];
            let (x, v) = (of.map(|one| one.x.map(four)), of.map(|one| one.v.map(four)));
            let state = Vertices {
                x: x.as_flattened(),
                v: v.as_flattened(),
            };
            let mut coupled = [[[0.0; 28]; 4]; 2];
            let mut impulses = [[[0.0; 4]; 3]; 8];
            let (of, room) = (&rest[fours.clone()], &mut coupled[fours]);
            let push = |corner: u32, impulse| {
                impulses.as_flattened_mut()[corner as usize] = numbers.lanes().store(impulse);
            };
            if times.stiff == times.shift {
                couple::<A, true>(numbers, of, &laws, state, times, room, push)?;
            } else {
                couple::<A, false>(numbers, of, &laws, state, times, room, push)?;
            }
            Ok((coupled, impulses))
        }
    }

    fn moving() -> impl Strategy<Value = Moving> {
        let number = || -1.0_f64..1.0;
        let vector = || (number(), number(), number()).prop_map(DVec3::from);
        let three = || prop::array::uniform3(vector());
        let spans = |[a, b, c]: [DVec3; 3]| (b - a).cross(c - a).length() > 1e-2;
        let all = (
            three(),
            three(),
            three(),
            0..materials().len(),
            any::<bool>(),
        );
        let fits = all.prop_filter("spans an area", move |(rest, x, ..)| {
            spans(*rest) && spans(*x)
        });
        fits.prop_filter_map("has a warp", |(rest, x, v, material, at_rest)| {
            let of = RestTriangle::new(rest, &materials()[material], DVec3::new(0.3, 0.5, -0.2))?;
            Some(Moving {
                rest: of,
                material,
                x: if at_rest { rest } else { x },
                v,
            })
        })
    }

    const TIMES: Times = Times {
        tau: 0.01,
        stiff: 0.01,
        shift: 0.01,
    };

    proptest! {
        /// The triangles are torn to any shape, or at rest.
        #[test]
        fn each_of_eight_gets_what_the_formulas_say_and_the_bits_that_it_gets_alone(
            eight in prop::array::uniform8(moving()),
            shift in prop::sample::select(vec![0.01, 0.0, 0.02]),
        ) {
            let times = Times { shift, ..TIMES };
            let all = Coupling(eight.each_ref(), &times);
            let (coupled, impulses) = widest(all).expect("none collapsed");
            for found in by_each_set(all) {
                prop_assert_eq!(found, Ok((coupled, impulses)));
            }
            let coupled = coupled.as_flattened();
            for (k, one) in eight.iter().enumerate() {
                let (alone, pushed) = widest(Coupling([one; 8], &times)).expect("not collapsed");
                prop_assert_eq!(coupled[k], alone[0][0]);
                prop_assert_eq!(impulses[k], pushed[7]);

                let deformation = one.rest.deform(one.x).unwrap();
                let (forces, stiffness) = (one.rest.forces(&deformation), one.rest.stiffness(&deformation));
                let [stretch, shear, _] = materials()[one.material].damping;
                let block = |i, j, time: f64| {
                    let elastic = stiffness.scaled(time + stretch, time + shear).elastic(i, j);
                    (elastic + stiffness.geometric(i, j) * time) * times.tau
                };
                // The bounds are for entries, and for forces with velocities of about 1.
                let size: f64 = (0..3).map(|i| {
                    let block = block(i, i, times.stiff.max(shift));
                    block.to_cols_array().iter().fold(0.0, |most, entry| entry.abs().max(most))
                }).sum();
                for (at, (i, j)) in [(0, 1), (0, 2), (1, 2)].into_iter().enumerate() {
                    let found = DMat3::from_cols_slice(&coupled[k][9 * at..9 * at + 9]);
                    let expected = -block(i, j, times.stiff);
                    prop_assert!(found.abs_diff_eq(expected, 1e-11 * size), "{found} {expected}");
                }
                for (i, force) in forces.into_iter().enumerate() {
                    let pull: DVec3 = (0..3).map(|j| block(i, j, shift) * one.v[j]).sum();
                    let expected = force * times.tau - pull;
                    let [x, y, z, zero] = impulses[k][i];
                    let scale = size + force.length() * times.tau;
                    prop_assert!((DVec3::new(x, y, z) - expected).length() < 1e-11 * scale);
                    prop_assert_eq!(zero, 0.0);
                }
            }
        }
    }

    #[test]
    fn the_first_triangle_that_has_collapsed_is_named() {
        let x = [DVec3::ZERO, DVec3::X, DVec3::Y];
        let whole = Moving {
            rest: RestTriangle::new(x, &Material::COTTON, DVec3::X).unwrap(),
            material: 0,
            x,
            v: x,
        };
        let at = |x: [DVec3; 3]| Moving { x, ..whole.clone() };
        let named = |third: &Moving, at: usize| {
            let one = |k| if k < at { &whole } else { third };
            widest(Coupling(std::array::from_fn(one), &TIMES)).map(|_| ())
        };
        assert_eq!(named(&whole, 0), Ok(()));
        for third in [
            DVec3::X * 2.0,
            DVec3::NAN,
            DVec3::INFINITY,
            DVec3::Y * 1e200,
        ] {
            for first in [2, 7] {
                assert_eq!(
                    named(&at([x[0], x[1], third]), first),
                    Err(first),
                    "{third}"
                );
            }
        }
    }
}
