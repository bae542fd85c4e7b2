//! The two kinds of pairs of features, by the differences of their vertices.
//!
//! A vertex and a face have three pairs of vertices, one of each feature; two edges have four.
//! Everything looks at the differences of these pairs alone, so it does not matter where the
//! features are, nor how both move together.
//!
//! Nothing here needs to be exact: closest points propose a direction, and whatever direction it
//! is, [`super::certificate`] decides whether it separates the features.

use super::number::{Number, Vector, cross, dot, held, minus, plus, select};

/// The points at which both features are closest, and the direction in which they are apart.
#[derive(Clone, Copy, Debug)]
pub(super) struct Nearest<N> {
    /// A direction that points from the second feature to the first, and may have any length. It
    /// is the normal of the plane of both features where the closest points lie inside of them,
    /// since a difference of nearby points has lost its digits; elsewhere it is the difference.
    pub(super) direction: Vector<N>,
    /// The closest point of the first feature less that of the second.
    pub(super) difference: Vector<N>,
    /// Weights of the four vertices whose sum is `difference`.
    pub(super) weights: [N; 4],
}

/// A kind of pairs of features with P pairs of vertices.
pub(super) trait Kind<const P: usize>: Copy {
    /// The differences of the pairs of vertices, from the four vertices.
    fn differences<N: Number>(x: &[Vector<N>; 4]) -> [Vector<N>; P];

    /// The closest points.
    fn nearest<N: Number>(z: &[Vector<N>; P]) -> Nearest<N>;

    /// The normal of the face, or the direction that is normal to both edges.
    fn normal(z: &[Vector<f64>; P]) -> Vector<f64>;
}

/// A vertex p and a face b₀ b₁ b₂; their differences are p − b₀, p − b₁, p − b₂.
#[derive(Clone, Copy, Debug)]
pub(super) struct OfVertexFace;

impl Kind<3> for OfVertexFace {
    #[inline(always)]
    fn differences<N: Number>(x: &[Vector<N>; 4]) -> [Vector<N>; 3] {
        [minus(x[0], x[1]), minus(x[0], x[2]), minus(x[0], x[3])]
    }

    #[inline(always)]
    fn nearest<N: Number>(z: &[Vector<N>; 3]) -> Nearest<N> {
        let (zero, one) = (z[0][0].alike(0.0), z[0][0].alike(1.0));
        let sides = [minus(z[0], z[1]), minus(z[1], z[2]), minus(z[2], z[0])];
        // The nearest of the three sides.
        let s = on_side(z[0], sides[0]);
        let mut difference = plus(z[0], sides[0], zero - s);
        let mut least = dot(difference, difference);
        let mut weights = [one - s, s, zero];
        for j in 1..3 {
            let s = on_side(z[j], sides[j]);
            let other = plus(z[j], sides[j], zero - s);
            let square = dot(other, other);
            let mut w = [zero; 3];
            w[j] = one - s;
            w[(j + 1) % 3] = s;
            difference = select([square, least], other, difference);
            weights = select([square, least], w, weights);
            least = square.if_less(least, square, least);
        }
        // Where the vertex stands above the face itself, the face.
        let normal = cross(sides[2], sides[0]);
        let mut parts = [zero; 3];
        let mut inside = one;
        for j in 0..3 {
            // Twice the area between a side and the vertex, which weighs the corner opposite.
            let part = dot(normal, cross(sides[j], z[j]));
            inside = zero.if_less(part, inside, zero);
            parts[(j + 2) % 3] = part;
        }
        let sum = parts[0] + parts[1] + parts[2];
        let w = [parts[0] / sum, parts[1] / sum, parts[2] / sum];
        let above = plus(
            plus([z[0][0] * w[0], z[0][1] * w[0], z[0][2] * w[0]], z[1], w[1]),
            z[2],
            w[2],
        );
        let sign = dot(normal, z[0]).if_less(zero, zero - one, one);
        let upwards = [normal[0] * sign, normal[1] * sign, normal[2] * sign];
        let w = select([zero, inside], w, weights);
        Nearest {
            direction: select([zero, inside], upwards, difference),
            difference: select([zero, inside], above, difference),
            weights: [one, zero - w[0], zero - w[1], zero - w[2]],
        }
    }

    fn normal(z: &[Vector<f64>; 3]) -> Vector<f64> {
        cross(minus(z[2], z[0]), minus(z[0], z[1]))
    }
}

/// The parameter on a side of what is closest to the vertex, which is `z` away from where the side
/// begins; 0 if the side has no length.
#[inline(always)]
fn on_side<N: Number>(z: Vector<N>, side: Vector<N>) -> N {
    held(dot(z, side) / dot(side, side))
}

/// Edges a b and c d; their differences are a − c, a − d, b − c, b − d.
#[derive(Clone, Copy, Debug)]
pub(super) struct OfEdgeEdge;

impl Kind<4> for OfEdgeEdge {
    #[inline(always)]
    fn differences<N: Number>(x: &[Vector<N>; 4]) -> [Vector<N>; 4] {
        [
            minus(x[0], x[2]),
            minus(x[0], x[3]),
            minus(x[1], x[2]),
            minus(x[1], x[3]),
        ]
    }

    #[inline(always)]
    fn nearest<N: Number>(z: &[Vector<N>; 4]) -> Nearest<N> {
        let (zero, one) = (z[0][0].alike(0.0), z[0][0].alike(1.0));
        let (u, v, r) = (minus(z[2], z[0]), minus(z[0], z[1]), z[0]);
        let (uu, vv, uv) = (dot(u, u), dot(v, v), dot(u, v));
        let (ur, vr) = (dot(u, r), dot(v, r));
        // Where the lines are closest; if they are nearly parallel, the middle does as well.
        let determinant = uu * vv - uv * uv;
        let least = uu.alike(1e-14) * uu * vv;
        let free = (uv * vr - ur * vv) / determinant;
        let s = least.if_less(determinant, held(free), uu.alike(0.5));
        // The best t for this s, and the best s for that t, each held inside.
        let best = (uv * s + vr) / vv;
        let t = held(best);
        let s = held((uv * t - ur) / uu);
        let difference = plus(plus(r, u, s), v, zero - t);
        // Where both are inside, the direction that is normal to both.
        let mut inside = least.if_less(determinant, one, zero);
        inside = zero.if_less(s, inside, zero);
        inside = s.if_less(one, inside, zero);
        inside = zero.if_less(t, inside, zero);
        inside = t.if_less(one, inside, zero);
        let normal = cross(u, v);
        let sign = dot(normal, r).if_less(zero, zero - one, one);
        let upwards = [normal[0] * sign, normal[1] * sign, normal[2] * sign];
        Nearest {
            direction: select([zero, inside], upwards, difference),
            difference,
            weights: [one - s, s, t - one, zero - t],
        }
    }

    fn normal(z: &[Vector<f64>; 4]) -> Vector<f64> {
        cross(minus(z[2], z[0]), minus(z[0], z[1]))
    }
}
