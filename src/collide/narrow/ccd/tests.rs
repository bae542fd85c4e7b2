//! Tests of what is not seen from outside: the lanes, and the bounds of the certificate.

use glam::DVec3;

use super::advance::advance;
use super::certificate::{Bound, Ways};
use super::cull::{Batch, is_safe};
use super::*;
use crate::simd::{ByEight, Kernel, Lanes, by_each_set};

/// Random numbers, the same for the same seed (SplitMix64).
struct Random(u64);

impl Random {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn signed(&mut self) -> f64 {
        (self.bits() >> 10) as f64 / (1_u64 << 53) as f64 - 1.0
    }

    /// A position: anywhere, or with coarse coordinates, in a plane, or very far.
    fn position(&mut self) -> DVec3 {
        let any = DVec3::new(self.signed(), self.signed(), self.signed());
        match self.bits() % 8 {
            0 | 1 => (any * 2.0).round() * 0.5,
            2 => DVec3::new(any.x, any.y, 0.25),
            3 if self.bits().is_multiple_of(64) => any * 1e200,
            _ => any,
        }
    }

    fn motions(&mut self) -> [Motion; 4] {
        let (apart, spread) = (self.bits() % 3, 2_f64.powi((self.bits() % 4) as i32 * -3));
        let kind = self.bits() % 16;
        let mut x = [(); 4].map(|()| {
            let start = self.position();
            let end = start + self.position() * spread;
            Motion { start, end }
        });
        for x in &mut x[..2] {
            x.start.x += apart as f64;
            x.end.x += apart as f64;
        }
        match kind {
            0 => x[1] = x[0],
            1 => x[3] = x[2],
            2 => x[2].start = x[1].start,
            3 => x[2].end.y = f64::NAN,
            4 => x[0].start.z = f64::INFINITY,
            _ => {}
        }
        x
    }
}

fn vertex_and_face([vertex, a, b, c]: [Motion; 4]) -> VertexFace {
    let face = [a, b, c];
    VertexFace { vertex, face }
}

fn edges([a, b, c, d]: [Motion; 4]) -> EdgeEdge {
    let (first, second) = ([a, b], [c, d]);
    EdgeEdge { first, second }
}

/// The results of a batch with four and with eight lanes.
struct Both<'a, Q, const P: usize>(Batch<'a, Q, P>);

impl<Q: Features<P>, const P: usize> Clone for Both<'_, Q, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<Q: Features<P>, const P: usize> Copy for Both<'_, Q, P> {}

impl<Q: Features<P>, const P: usize> Kernel for Both<'_, Q, P> {
    type Output = [Vec<usize>; 2];

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> [Vec<usize>; 2] {
        [self.0.left(lanes), self.0.left(ByEight(lanes))]
    }
}

fn every_width_leaves_the_same<Q: Features<P>, const P: usize>(make: fn([Motion; 4]) -> Q) {
    let mut random = Random(3);
    let all: Vec<Q> = (0..20_003).map(|_| make(random.motions())).collect();
    for separation in [0.0, 1e-3, 0.25] {
        let alone = |&query: &usize| !is_safe(&all[query], separation);
        let expected: Vec<usize> = (0..all.len()).filter(alone).collect();
        let some = all.len() / 20..all.len() * 19 / 20;
        assert!(some.contains(&expected.len()), "{}", expected.len());
        for count in [all.len(), 13, 4, 1, 0] {
            let batch = Batch {
                queries: &all[..count],
                separation,
            };
            for left in by_each_set(Both(batch)).into_iter().flatten() {
                assert!(left.iter().eq(expected.iter().filter(|&&q| q < count)));
            }
        }
    }
}

#[test]
fn every_width_leaves_the_same_queries() {
    every_width_leaves_the_same(vertex_and_face);
    every_width_leaves_the_same(edges);
}

#[test]
fn many_queries_have_the_bits_of_one() {
    let mut random = Random(4);
    let (mut found_faces, mut found_edges) = (Vec::new(), Vec::new());
    let finite = |x: &[Motion; 4]| x.iter().all(|x| (x.start + x.end).is_finite());
    let all: Vec<_> = (0..30_000)
        .map(|_| random.motions())
        .filter(finite)
        .collect();
    let separation = Separation(0.01);
    let faces: Vec<_> = all.iter().copied().map(vertex_and_face).collect();
    let pairs: Vec<_> = all.iter().copied().map(edges).collect();
    for query in 0..all.len() {
        if let Answer::Hit(hit) = vertex_face(&faces[query], separation).unwrap() {
            found_faces.push(Found { query, hit });
        }
        if let Answer::Hit(hit) = edge_edge(&pairs[query], separation).unwrap() {
            found_edges.push(Found { query, hit });
        }
    }
    assert!(found_faces.len() > 1000 && found_edges.len() > 1000);
    assert_eq!(vertex_faces(&faces, separation).unwrap(), found_faces);
    assert_eq!(edge_edges(&pairs, separation).unwrap(), found_edges);
}

#[test]
fn pairs_certified_by_the_first_stage_are_certified_by_the_second() {
    // So it makes no difference for the answer that the first one knows no scale.
    let mut random = Random(5);
    let mut certified = 0;
    for _ in 0..30_000 {
        let x = random.motions();
        for separation in [0.0, 1e-3] {
            if is_safe(&vertex_and_face(x), separation) {
                certified += 1;
                let answer = advance::<OfVertexFace, 3>(&x, separation);
                assert_eq!(answer, Ok(Answer::Safe), "{x:?}");
            }
            if is_safe(&edges(x), separation) {
                certified += 1;
                let answer = advance::<OfEdgeEdge, 4>(&x, separation);
                assert_eq!(answer, Ok(Answer::Safe), "{x:?}");
            }
        }
    }
    assert!(certified > 10_000);
}

#[test]
fn features_far_apart_take_no_steps() {
    let mut random = Random(6);
    let mut by_steps = 0;
    for _ in 0..10_000 {
        let mut x = [(); 4].map(|()| {
            let mut near = || DVec3::new(random.signed(), random.signed(), random.signed());
            Motion {
                start: near(),
                end: near(),
            }
        });
        // Balls of radius √3, 5 apart, that move by that much as well.
        for x in &mut x[..1] {
            x.start.x += 5.0;
            x.end.x += 5.0;
        }
        by_steps += u32::from(!is_safe(&vertex_and_face(x), 0.0));
    }
    assert_eq!(by_steps, 0);
}

#[test]
fn a_level_is_above_what_rounding_can_hide() {
    // Differences are of the same size in all directions, and their product with the normal of a
    // plane that they lie in is nothing but rounding.
    let mut random = Random(7);
    for _ in 0..100_000 {
        let (u, v) = (random.position().normalize(), random.position().normalize());
        if !(u.is_finite() && v.is_finite()) {
            continue;
        }
        let normal = u.cross(v).to_array();
        let mut in_plane = || (u * random.signed() + v * random.signed()).to_array();
        let z = [in_plane(), in_plane(), in_plane()];
        let ways = Ways { start: z, end: z };
        let bound = Bound::new(&ways, 0.0);
        assert_eq!(bound.separates(&ways, normal), 0.0);
        assert_eq!(bound.follows([&z, &z], [normal; 2]), 0.0);
        assert_eq!(bound.proven(&ways, normal), None);
    }
}
