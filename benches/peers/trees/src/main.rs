//! Trees of boxes of other Rust libraries, on cloth that `cargo bench --bench peers_collide` wrote.
//!
//!   peer-trees DIRECTORY RUNS H
//!
//! Prints lines `WHAT PEER MILLISECONDS COUNT`, of each the shortest of this many runs. Boxes hold
//! the same points as those of the bench and are rounded outwards alike, so that counts can be
//! compared. parry has a traversal of two trees; with obvhs each leaf asks the tree.

use std::error::Error;
use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use obvhs::bvh2::Bvh2;
use obvhs::ploc::{PlocBuilder, PlocSearchDistance, SortPrecision};
use parry3d::bounding_volume::Aabb;
use parry3d::math::Vector;
use parry3d::partitioning::{Bvh, BvhBuildStrategy, BvhWorkspace};

struct Mesh {
    x: Vec<[f64; 3]>,
    triangles: Vec<[u32; 3]>,
}

/// Least and greatest coordinates.
type Extent = ([f32; 3], [f32; 3]);

impl Mesh {
    fn read(directory: &Path, name: &str) -> Result<Self, Box<dyn Error>> {
        let bytes = |what: &str| fs::read(directory.join(format!("{name}.{what}")));
        let (x, triangles) = (bytes("x")?, bytes("triangles")?);
        let number = |at: &[u8]| f64::from_le_bytes(at.try_into().expect("8 bytes"));
        let index = |at: &[u8]| u32::from_le_bytes(at.try_into().expect("4 bytes"));
        let point = |at: &[u8]| [0, 8, 16].map(|k| number(&at[k..k + 8]));
        let triangle = |at: &[u8]| [0, 4, 8].map(|k| index(&at[k..k + 4]));
        Ok(Self {
            x: x.chunks_exact(24).map(point).collect(),
            triangles: triangles.chunks_exact(12).map(triangle).collect(),
        })
    }

    /// The volume of a triangle and of all that is within `radius` of it.
    fn extent(&self, triangle: usize, radius: f64) -> Extent {
        let corners = self.triangles[triangle].map(|v| self.x[v as usize]);
        let low = [0, 1, 2].map(|k| corners[0][k].min(corners[1][k]).min(corners[2][k]));
        let high = [0, 1, 2].map(|k| corners[0][k].max(corners[1][k]).max(corners[2][k]));
        (
            low.map(|low| below(low - radius)),
            high.map(|high| -below(-high - radius)),
        )
    }
}

/// An f32 below `d`, as the bench rounds.
fn below(d: f64) -> f32 {
    let nearest = d as f32;
    nearest - nearest.abs() * f32::EPSILON - f32::MIN_POSITIVE
}

/// Prints the shortest of this many runs, and of more if they take less than a quarter of a second:
/// caches take a while to hold what comes again.
fn report<R>(
    what: &str,
    peer: &str,
    runs: u32,
    count: impl Fn(&R) -> usize,
    mut run: impl FnMut() -> R,
) {
    let (mut best, mut all) = (f64::INFINITY, 0.0);
    let (mut made, mut counted) = (0, 0);
    while made < runs || all < 0.25 {
        let start = Instant::now();
        let result = black_box(run());
        let time = start.elapsed().as_secs_f64();
        (made, all, best) = (made + 1, all + time, best.min(time));
        counted = count(&result);
    }
    println!("{what} {peer} {} {counted}", 1e3 * best);
}

fn parry_box((low, high): Extent) -> Aabb {
    Aabb::new(Vector::from(low), Vector::from(high))
}

fn parry(mesh: &Mesh, radius: f64) -> Bvh {
    let boxes: Vec<Aabb> = (0..mesh.triangles.len())
        .map(|t| parry_box(mesh.extent(t, radius)))
        .collect();
    let mut tree = Bvh::from_leaves(BvhBuildStrategy::Binned, &boxes);
    // Lays the nodes out in the order of traversal.
    tree.refit(&mut BvhWorkspace::default());
    tree
}

fn parry_refit(tree: &mut Bvh, mesh: &Mesh) {
    for t in 0..mesh.triangles.len() {
        tree.insert_or_update_partially(parry_box(mesh.extent(t, 0.0)), t as u32, 0.0);
    }
}

fn parry_pairs(tree: &Bvh, room: &mut BvhWorkspace) -> usize {
    let mut pairs = 0;
    tree.traverse_bvtt_single_tree::<false>(room, &mut |a, b| {
        black_box((a, b));
        pairs += 1;
    });
    pairs
}

fn obvhs_box((low, high): Extent) -> obvhs::aabb::Aabb {
    obvhs::aabb::Aabb::new(low.into(), high.into())
}

fn obvhs(boxes: &[obvhs::aabb::Aabb]) -> Bvh2 {
    let mut tree = PlocBuilder::new().build(
        PlocSearchDistance::Minimum,
        boxes,
        (0..boxes.len() as u32).collect(),
        SortPrecision::U64,
        0,
    );
    tree.reorder_in_stack_traversal_order();
    tree.update_primitives_to_nodes();
    tree
}

/// How many leaves each of the boxes meets.
fn obvhs_pairs(tree: &Bvh2, boxes: &[obvhs::aabb::Aabb], itself: bool) -> usize {
    let mut pairs = 0;
    for (index, volume) in boxes.iter().enumerate() {
        tree.aabb_traverse(*volume, |tree, leaf| {
            let node = &tree.nodes[leaf as usize];
            for k in node.first_index..node.first_index + node.prim_count {
                let other = black_box(tree.primitive_indices[k as usize]);
                pairs += usize::from(!itself || index < other as usize);
            }
            true
        });
    }
    pairs
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, directory, runs, h] = &arguments[..] else {
        return Err("peer-trees DIRECTORY RUNS H".into());
    };
    let (directory, runs, radius) = (Path::new(directory), runs.parse()?, 0.5 * h.parse::<f64>()?);
    let crumpled = Mesh::read(directory, "crumpled")?;
    let mut room = BvhWorkspace::default();
    {
        let mut tree = parry(&crumpled, 0.0);
        report(
            "pairs",
            "parry",
            runs,
            |&n| n,
            || parry_pairs(&tree, &mut room),
        );
        let count = |(): &()| crumpled.triangles.len();
        report("refit", "parry", runs, count, || {
            parry_refit(&mut tree, &crumpled);
            tree.refit(&mut room);
        });
        report("refit", "parry", runs, count, || {
            parry_refit(&mut tree, &crumpled);
            tree.refit_without_opt();
        });
        let tree = parry(&crumpled, radius);
        report(
            "near-pairs",
            "parry",
            runs,
            |&n| n,
            || parry_pairs(&tree, &mut room),
        );
        let [draped, ball] = [
            Mesh::read(directory, "draped")?,
            Mesh::read(directory, "ball")?,
        ];
        let (cloth, ball) = (parry(&draped, 0.0), parry(&ball, 0.0));
        report(
            "ball-pairs",
            "parry",
            runs,
            |&n| n,
            || {
                let pairs = cloth.leaf_pairs(&ball, |a, b| a.intersects(b));
                pairs.map(black_box).count()
            },
        );
    }
    {
        let boxes = |mesh: &Mesh, radius: f64| -> Vec<_> {
            (0..mesh.triangles.len())
                .map(|t| obvhs_box(mesh.extent(t, radius)))
                .collect()
        };
        let leaves = boxes(&crumpled, 0.0);
        let mut tree = obvhs(&leaves);
        report(
            "pairs",
            "obvhs",
            runs,
            |&n| n,
            || obvhs_pairs(&tree, &leaves, true),
        );
        report(
            "refit",
            "obvhs",
            runs,
            |(): &()| leaves.len(),
            || {
                for t in 0..leaves.len() {
                    let node = tree.primitives_to_nodes[t] as usize;
                    tree.nodes[node].set_aabb(obvhs_box(crumpled.extent(t, 0.0)));
                }
                tree.refit_all();
            },
        );
        let leaves = boxes(&crumpled, radius);
        let tree = obvhs(&leaves);
        report(
            "near-pairs",
            "obvhs",
            runs,
            |&n| n,
            || obvhs_pairs(&tree, &leaves, true),
        );
        let [draped, ball] = [
            Mesh::read(directory, "draped")?,
            Mesh::read(directory, "ball")?,
        ];
        let (cloth, ball) = (boxes(&draped, 0.0), boxes(&ball, 0.0));
        let tree = obvhs(&ball);
        report(
            "ball-pairs",
            "obvhs",
            runs,
            |&n| n,
            || obvhs_pairs(&tree, &cloth, false),
        );
    }
    Ok(())
}
