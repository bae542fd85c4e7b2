//! Building, refitting and testing hierarchies, each against the least that it could cost.
//!
//! Sample run:
//!   cargo bench --bench collide
//!
//! A square sheet folded like an accordion, its layers 5 mm apart, against itself, in one patch:
//! every test is a cloth's, none is trivial. The limits, measured in the same run on the same data:
//! a build cannot be faster than sorting the triangles along one axis (it does about log₂ n partial
//! sorts), a refit not than reading positions and velocities and writing the volumes, a test of two
//! nodes not than the bare overlap of two volumes that lie in the nearest cache.

use std::hint::black_box;
use std::time::Duration;

use divan::Bencher;
use divan::counter::ItemsCount;
use glam::DVec3;
use weftwork::collide::{
    Bvh, ClothSurface, Distances, Geometry, Kdop18, Snapshot, Target, TestRun, Volumes,
};

#[path = "common/timing.rs"]
mod timing;

use timing::best;

/// Vertices along a side: 10 000 and 100 000 vertices.
const SIDES: [usize; 2] = [100, 316];
/// Distance between neighbours in m.
const CELL: f64 = 0.01;
/// Columns between two folds, and the distance between layers in m.
const FOLD: usize = 20;
const GAP: f64 = 0.005;

struct Sheet {
    triangles: Vec<[u32; 3]>,
    rest: Vec<DVec3>,
    x: Vec<DVec3>,
    v: Vec<DVec3>,
    cloth: ClothSurface,
    distances: Distances,
}

impl Sheet {
    fn new(side: usize) -> Self {
        let at = |i: usize, j: usize| (j * side + i) as u32;
        let mut triangles = Vec::new();
        for j in 0..side - 1 {
            for i in 0..side - 1 {
                let [a, b, c, d] = [at(i, j), at(i + 1, j), at(i, j + 1), at(i + 1, j + 1)];
                triangles.extend([[a, b, d], [a, d, c]]);
            }
        }
        let vertices = |place: &dyn Fn(usize, usize) -> DVec3| {
            (0..side * side)
                .map(|v| place(v % side, v / side))
                .collect::<Vec<_>>()
        };
        let flat = |i: usize, j: usize| DVec3::new(i as f64, j as f64, 0.0) * CELL;
        let folded = |i: usize, j: usize| {
            let (layer, along) = (i / FOLD, i % FOLD);
            let back = if layer % 2 == 0 {
                along
            } else {
                FOLD - 1 - along
            };
            // A little unevenness, so that volumes are not all alike.
            let wave = 0.3 * GAP * ((3 * i + 5 * j) as f64).sin();
            DVec3::new(
                back as f64 * CELL,
                j as f64 * CELL,
                layer as f64 * GAP + wave,
            )
        };
        let rest = vertices(&flat);
        let cloth = ClothSurface::new(&triangles, &rest, 1, |_| 0);
        Self {
            x: vertices(&folded),
            v: vec![DVec3::new(0.0, 0.1, -0.2); rest.len()],
            triangles,
            rest,
            cloth,
            distances: Distances::alike(0.004, 0.1, 0),
        }
    }

    fn centers(&self) -> Vec<(u32, DVec3)> {
        let center = |t: &[u32; 3]| t.iter().map(|&v| self.rest[v as usize]).sum::<DVec3>() / 3.0;
        (0..).zip(self.triangles.iter().map(center)).collect()
    }

    fn snapshot<'a>(&'a self, volumes: &'a mut Volumes) -> Snapshot<'a> {
        let geometry = Geometry {
            cloth: &self.cloth,
            bodies: &[],
            body_motions: &[],
            thickness: 0.004,
            distances: &self.distances,
            self_collision: true,
            all_pairs: true,
        };
        Snapshot::new(&geometry, volumes, &self.x, &self.v, 0.0, 0.001)
    }

    /// Volumes of all vertices and nodes, as a snapshot makes them.
    fn refit(&self, vertices: &mut Vec<Kdop18>, volumes: &mut Vec<Kdop18>) {
        let around = |(&x, &v): (&DVec3, &DVec3)| Kdop18::around(&[x, x + v * 0.001], 0.0022);
        vertices.clear();
        vertices.extend(self.x.iter().zip(&self.v).map(around));
        let leaf = |triangle: u32| {
            let [a, b, c] = self.triangles[triangle as usize].map(|v| &vertices[v as usize]);
            a.union(b).union(c)
        };
        self.cloth.patches()[0].refit(leaf, volumes);
    }
}

/// Runs the whole test of a sheet against itself; how many tests, how many contacts.
fn traverse(snapshot: &Snapshot<'_>) -> (u64, usize) {
    let mut contacts = Vec::new();
    let mut tests = 0;
    if let Some(mut run) = TestRun::new(Target::Patch(0), snapshot) {
        loop {
            let (made, done) = run.advance(snapshot, 4096, &mut contacts);
            tests += u64::from(made);
            if done {
                break;
            }
        }
    }
    (tests, contacts.len())
}

/// Overlaps of a few volumes that stay in the nearest cache; returns how many were tested.
fn bare_overlaps(volumes: &[Kdop18]) -> u64 {
    let near = &volumes[volumes.len() - volumes.len().min(128)..];
    let mut overlaps = 0_u64;
    for a in near {
        for b in near {
            overlaps += u64::from(a.overlaps(b));
        }
    }
    black_box(overlaps);
    (near.len() * near.len()) as u64
}

#[divan::bench(args = SIDES, sample_count = 20, sample_size = 1)]
fn build(bencher: Bencher<'_, '_>, side: usize) {
    let sheet = Sheet::new(side);
    bencher
        .counter(ItemsCount::new(sheet.triangles.len()))
        .with_inputs(|| sheet.centers())
        .bench_local_values(Bvh::build);
}

#[divan::bench(args = SIDES, sample_count = 20, sample_size = 1)]
fn refit(bencher: Bencher<'_, '_>, side: usize) {
    let sheet = Sheet::new(side);
    let (mut vertices, mut volumes) = (Vec::new(), Vec::new());
    bencher
        .counter(ItemsCount::new(sheet.cloth.patches()[0].len()))
        .bench_local(|| sheet.refit(&mut vertices, &mut volumes));
}

#[divan::bench(args = SIDES, sample_count = 10, sample_size = 1)]
fn traversal(bencher: Bencher<'_, '_>, side: usize) {
    let sheet = Sheet::new(side);
    let mut volumes = Volumes::default();
    let snapshot = sheet.snapshot(&mut volumes);
    let (tests, _) = traverse(&snapshot);
    bencher
        .counter(ItemsCount::new(tests))
        .bench_local(|| traverse(&snapshot));
}

#[expect(clippy::print_stdout, reason = "the table is what the bench is for")]
fn table() {
    println!("vertices  what       ms       items       ns/item  limit ns/item  times the limit");
    for side in SIDES {
        let sheet = Sheet::new(side);
        let count = sheet.rest.len();
        let line = |what: &str, items: u64, time: Duration, limit: f64| {
            let each = time.as_secs_f64() * 1e9 / items as f64;
            println!(
                "{count:<9} {what:<10} {:<8.2} {items:<11} {each:<8.2} {limit:<14.2} {:.1}",
                time.as_secs_f64() * 1e3,
                each / limit,
            );
        };
        let triangles = sheet.triangles.len() as u64;
        let centers = sheet.centers();
        let mut scattered = centers.clone();
        scattered.sort_unstable_by_key(|(t, _)| t.wrapping_mul(2_654_435_761));
        let copy = best(20, || scattered.clone());
        let build = best(20, || Bvh::build(scattered.clone()));
        let sort = best(20, || {
            let mut items = scattered.clone();
            items.sort_unstable_by(|a, b| a.1.x.total_cmp(&b.1.x));
            items
        });
        let each = |time: Duration, items: u64| time.as_secs_f64() * 1e9 / items as f64;
        line(
            "build",
            triangles,
            build.saturating_sub(copy),
            each(sort.saturating_sub(copy), triangles),
        );

        let (mut vertices, mut volumes) = (Vec::new(), Vec::new());
        let refit = best(20, || sheet.refit(&mut vertices, &mut volumes));
        let nodes = volumes.len() as u64;
        let moved = best(20, || {
            // As many bytes in and out, in the order in which they lie.
            let sum: DVec3 = sheet.x.iter().zip(&sheet.v).map(|(x, v)| *x + *v).sum();
            (sum, volumes.clone())
        });
        line("refit", nodes, refit, each(moved, nodes));

        let mut room = Volumes::default();
        let snapshot = sheet.snapshot(&mut room);
        let (tests, contacts) = traverse(&snapshot);
        let time = best(5, || traverse(&snapshot));
        let mut overlaps = 0;
        let bare = best(200, || overlaps = bare_overlaps(&volumes));
        line("traversal", tests, time, each(bare, overlaps));
        println!("{count:<9} contacts   {contacts}");
    }
}

fn main() {
    if timing::measures() {
        table();
    }
    divan::main();
}
