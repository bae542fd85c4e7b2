//! The first stage: two directions for each query, four or eight queries at a time.
//!
//! The direction between the closest points is tried where the motion starts, and for those that it
//! does not certify where it ends. Queries run through the same formulas alone, by four and by
//! eight, and get the same bits.

use super::certificate::{Bound, Ways};
use super::features::Kind;
use super::number::{Number, Vector, unit};
use super::{Features, Motion};
use crate::simd::{Arithmetic, ByEight, Kernel, Lanes, Numbers};

/// The coordinates of four vertices at both ends.
type Coordinates<N> = [N; 24];

/// A query, or several side by side, with what the proofs need.
struct Stage<Q: Features<P>, N, const P: usize> {
    ways: Ways<N, P>,
    bound: Bound<N>,
    queries: std::marker::PhantomData<Q>,
}

impl<Q: Features<P>, N: Number, const P: usize> Stage<Q, N, P> {
    #[inline(always)]
    fn new(x: &Coordinates<N>, separation: f64) -> Self {
        let ways = Ways {
            start: Q::Kind::differences(&[
                [x[0], x[1], x[2]],
                [x[6], x[7], x[8]],
                [x[12], x[13], x[14]],
                [x[18], x[19], x[20]],
            ]),
            end: Q::Kind::differences(&[
                [x[3], x[4], x[5]],
                [x[9], x[10], x[11]],
                [x[15], x[16], x[17]],
                [x[21], x[22], x[23]],
            ]),
        };
        Self {
            bound: Bound::new(&ways, separation),
            ways,
            queries: std::marker::PhantomData,
        }
    }

    /// The direction at the start, and by 1 or 0 whether it certifies the query.
    #[inline(always)]
    fn by_start(&self) -> (Vector<N>, N) {
        let direction = Q::Kind::nearest(&self.ways.start).direction;
        (direction, self.bound.separates(&self.ways, direction))
    }

    /// Tells by 1 or 0 whether the direction at the end certifies the query, or one that turns from
    /// that at the start to that at the end.
    #[inline(always)]
    fn by_end(&self, start: Vector<N>) -> N {
        let end = Q::Kind::nearest(&self.ways.end).direction;
        let still = self.bound.separates(&self.ways, end);
        let ends = [&self.ways.start, &self.ways.end];
        let turning = self.bound.follows(ends, [unit(start), unit(end)]);
        turning.if_less(still, still, turning)
    }
}

/// Tells whether one of the two directions certifies a query.
pub(super) fn is_safe<Q: Features<P>, const P: usize>(query: &Q, separation: f64) -> bool {
    let stage = Stage::<Q, f64, P>::new(&coordinates(&query.motions()), separation);
    let (start, safe) = stage.by_start();
    safe > 0.5 || stage.by_end(start) > 0.5
}

/// The coordinates of the vertices of a query.
#[inline(always)]
fn coordinates(x: &[Motion; 4]) -> Coordinates<f64> {
    let mut all = [0.0; 24];
    for k in 0..4 {
        all[6 * k..6 * k + 3].copy_from_slice(&x[k].start.to_array());
        all[6 * k + 3..6 * k + 6].copy_from_slice(&x[k].end.to_array());
    }
    all
}

/// Queries of which those are looked for that neither direction certifies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Batch<'a, Q, const P: usize> {
    pub(super) queries: &'a [Q],
    pub(super) separation: f64,
}

impl<Q: Features<P>, const P: usize> Batch<'_, Q, P> {
    /// The places of queries that are left, with as many side by side as there are lanes.
    #[inline(always)]
    pub(super) fn left<A: Arithmetic>(self, arithmetic: A) -> Vec<usize> {
        let mut left = Vec::new();
        let count = 4 * A::FOURS;
        let mut first = 0;
        while first < self.queries.len() {
            let stage = Stage::<Q, _, P>::new(&self.load(arithmetic, first), self.separation);
            let (start, safe) = stage.by_start();
            let mut proven = flags(arithmetic, safe);
            if proven != (1 << count) - 1 {
                proven |= flags(arithmetic, stage.by_end(start));
            }
            for lane in 0..count.min(self.queries.len() - first) {
                if proven & (1 << lane) == 0 {
                    left.push(first + lane);
                }
            }
            first += count;
        }
        left
    }

    /// The coordinates of queries side by side; behind the last query, it is repeated.
    #[inline(always)]
    fn load<A: Arithmetic>(self, arithmetic: A, first: usize) -> Coordinates<Numbers<A>> {
        let lanes = arithmetic.lanes();
        let mut halves = [[lanes.splat(0.0); 24]; 2];
        for (half, columns) in halves.iter_mut().enumerate().take(A::FOURS) {
            let mut rows = [[0.0; 24]; 4];
            for (lane, row) in rows.iter_mut().enumerate() {
                let at = (first + 4 * half + lane).min(self.queries.len() - 1);
                *row = coordinates(&self.queries[at].motions());
            }
            for k in 0..6 {
                let mut fours = [[0.0; 4]; 4];
                for (four, row) in fours.iter_mut().zip(&rows) {
                    four.copy_from_slice(&row[4 * k..4 * k + 4]);
                }
                let [a, b, c, d] = &fours;
                let rows = [lanes.load(a), lanes.load(b), lanes.load(c), lanes.load(d)];
                columns[4 * k..4 * k + 4].copy_from_slice(&lanes.transposed(rows));
            }
        }
        let [low, high] = halves;
        let mut all = [Numbers::of(arithmetic, [low[0], high[0]]); 24];
        for k in 0..24 {
            all[k] = Numbers::of(arithmetic, [low[k], high[k]]);
        }
        all
    }
}

/// One bit for each lane, set where the number is 1.
#[inline(always)]
fn flags<A: Arithmetic>(arithmetic: A, of: Numbers<A>) -> usize {
    let mut all = 0;
    for half in 0..A::FOURS {
        let four = arithmetic.lanes().store(of.four(half));
        for (lane, number) in four.into_iter().enumerate() {
            all |= usize::from(number > 0.5) << (4 * half + lane);
        }
    }
    all
}

impl<Q: Features<P>, const P: usize> Kernel for Batch<'_, Q, P> {
    type Output = Vec<usize>;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> Vec<usize> {
        if L::IS_ONE {
            self.left(ByEight(lanes))
        } else {
            self.left(lanes)
        }
    }
}
