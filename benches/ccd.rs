//! Continuous collision detection: what a query takes, on one core.
//!
//! Sample run:
//!   cargo bench --bench ccd
//!
//! Queries are vertices with faces and pairs of edges of about the same size: *apart*, as nearly
//! all that swept volumes let through, which the first stage certifies; *near*, a hundredth of an
//! edge apart, sliding and turning; *hit*, which meet head on. Each is asked one at a time and many
//! at a time (`alone`, `many`): `many` has the first stage by four or eight lanes. `slowest` is the
//! slowest of 100,000 queries that graze each other.

use std::hint::black_box;

use divan::Bencher;
use divan::counter::ItemsCount;
use glam::DVec3;
use weftwork::collide::ccd::{
    EdgeEdge, Motion, Separation, VertexFace, edge_edge, edge_edges, vertex_face, vertex_faces,
};

#[path = "common/timing.rs"]
mod timing;

use timing::{best, measures};

const QUERIES: usize = 4096;

/// How queries are made.
const SORTS: [&str; 3] = ["apart", "near", "hit"];

/// Random numbers, the same for the same seed (SplitMix64).
struct Random(u64);

impl Random {
    fn signed(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        (z >> 10) as f64 / (1_u64 << 53) as f64 - 1.0
    }

    fn vector(&mut self) -> DVec3 {
        DVec3::new(self.signed(), self.signed(), self.signed())
    }
}

/// Features near the plane z = 0 that cross each other seen from above: a vertex and a face, or two
/// edges; the first is above the second, and moves.
fn query(random: &mut Random, sort: &str, firsts: usize) -> [Motion; 4] {
    let (height, motion, wobble) = match sort {
        "apart" => (0.5, DVec3::new(0.2, 0.1, -0.1), 0.1),
        "near" => (0.01, DVec3::new(0.3, 0.2, 0.0), 0.02),
        _ => (0.3, DVec3::new(0.1, 0.0, -1.0), 0.05),
    };
    let corners = match firsts {
        1 => [[0.0, 0.0], [-1.0, -1.0], [1.0, -1.0], [0.0, 1.0]],
        _ => [[-1.0, 0.0], [1.0, 0.0], [0.0, -1.0], [0.0, 1.0]],
    };
    let mut vertices = corners.map(|[x, y]| {
        let at = DVec3::new(x, y, 0.0) + random.vector() * f64::min(wobble, 0.5 * height);
        let by = random.vector() * wobble;
        Motion {
            start: at,
            end: at + by,
        }
    });
    for x in &mut vertices[..firsts] {
        x.start.z += 2.0 * height;
        x.end += motion + DVec3::Z * 2.0 * height;
    }
    vertices
}

fn queries(sort: &str, firsts: usize) -> Vec<[Motion; 4]> {
    let mut random = Random(1);
    (0..QUERIES)
        .map(|_| query(&mut random, sort, firsts))
        .collect()
}

fn vertex_and_face([vertex, a, b, c]: [Motion; 4]) -> VertexFace {
    let face = [a, b, c];
    VertexFace { vertex, face }
}

fn edges([a, b, c, d]: [Motion; 4]) -> EdgeEdge {
    let (first, second) = ([a, b], [c, d]);
    EdgeEdge { first, second }
}

fn separation() -> Separation {
    Separation::new(1e-4).expect("a positive distance")
}

#[divan::bench(args = SORTS)]
fn vertex_face_alone(bencher: Bencher<'_, '_>, sort: &str) {
    let all: Vec<_> = queries(sort, 1).into_iter().map(vertex_and_face).collect();
    bencher.counter(ItemsCount::new(QUERIES)).bench_local(|| {
        for query in &all {
            black_box(vertex_face(query, separation()).ok());
        }
    });
}

#[divan::bench(args = SORTS)]
fn vertex_face_many(bencher: Bencher<'_, '_>, sort: &str) {
    let all: Vec<_> = queries(sort, 1).into_iter().map(vertex_and_face).collect();
    let many = || vertex_faces(black_box(&all), separation()).ok();
    bencher.counter(ItemsCount::new(QUERIES)).bench_local(many);
}

#[divan::bench(args = SORTS)]
fn edge_edge_alone(bencher: Bencher<'_, '_>, sort: &str) {
    let all: Vec<_> = queries(sort, 2).into_iter().map(edges).collect();
    bencher.counter(ItemsCount::new(QUERIES)).bench_local(|| {
        for query in &all {
            black_box(edge_edge(query, separation()).ok());
        }
    });
}

#[divan::bench(args = SORTS)]
fn edge_edge_many(bencher: Bencher<'_, '_>, sort: &str) {
    let all: Vec<_> = queries(sort, 2).into_iter().map(edges).collect();
    let many = || edge_edges(black_box(&all), separation()).ok();
    bencher.counter(ItemsCount::new(QUERIES)).bench_local(many);
}

/// Edges that pass each other at any distance down to nothing, at some time on the way.
fn grazing(random: &mut Random) -> EdgeEdge {
    let [a, b, c, d] = [(); 4].map(|()| random.vector());
    let v = [(); 4].map(|()| random.vector());
    let (s, t) = (random.signed().abs(), random.signed().abs().round());
    let apart = random.vector() * 1e-9_f64.powf(random.signed().abs());
    let shift = c.lerp(d, t) - a.lerp(b, s) + apart;
    let time = random.signed().abs();
    let motion = |at: DVec3, v: DVec3| Motion {
        start: at - v * time,
        end: at + v * (1.0 - time),
    };
    EdgeEdge {
        first: [motion(a + shift, v[0]), motion(b + shift, v[1])],
        second: [motion(c, v[2]), motion(d, v[3])],
    }
}

#[divan::bench(sample_count = 10)]
fn slowest(bencher: Bencher<'_, '_>) {
    let mut random = Random(2);
    let queries = if measures() { 100_000 } else { 100 };
    let all: Vec<_> = (0..queries).map(|_| grazing(&mut random)).collect();
    let time = |query: &&EdgeEdge| best(3, || edge_edge(query, Separation::ZERO).ok());
    let slowest = all.iter().max_by_key(time).expect("there are queries");
    bencher.bench_local(|| edge_edge(black_box(slowest), Separation::ZERO).ok());
}

fn main() {
    divan::main();
}
