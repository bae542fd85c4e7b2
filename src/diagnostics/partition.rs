//! How well a scene is cut for a number of ranks: the patch tree beside METIS k-way and cuts by
//! coordinates.
//!
//! Ranks own ranges of a tree that serves any number of them, which k-way partitioning does not;
//! this tells what that costs. Recursive coordinate bisection [Selle et al. 2009, median split]
//! sees positions only: flat cloth it cuts nearly as well, but what is near in space need not be
//! near along the cloth, and so it fails on cloth that is folded.

use std::fmt;

use glam::DVec3;
use weft_partition::{Ownership, PartitionError, Quality, by_metis, rcb};

use crate::output::{Camera, Item, Picture};
use crate::step::World;

/// Layers that the cloth is folded into to show what coordinates do not know.
const LAYERS: f64 = 20.0;
/// Distance of layers, as a share of their width.
const GAP: f64 = 1e-3;
/// Seed of METIS.
const SEED: i32 = 1;

/// The cuts of one scene into the same number of parts.
#[derive(Clone, Debug, PartialEq)]
pub struct PartitionComparison {
    parts: usize,
    patches: usize,
    vertices: usize,
    edges: usize,
    rows: Vec<(&'static str, Quality)>,
}

impl PartitionComparison {
    /// Cuts a scene in all ways. `state` has the positions of some later time in m, in the order of
    /// the scene's vertices.
    ///
    /// # Errors
    /// No parts, or more than patches.
    ///
    /// # Panics
    /// The world was [released](World::release).
    pub fn new(
        world: &World,
        parts: usize,
        state: Option<&[DVec3]>,
    ) -> Result<Self, PartitionError> {
        let graph = &world.graphs().matrix;
        let start = world.model().start();
        let ownership = Ownership::new(world.tree(), parts)?;
        let mut rows = vec![
            ("patch tree", Quality::of_ranks(graph, &ownership)?),
            (
                "METIS k-way",
                Quality::new(graph, &by_metis::k_way(graph, parts, SEED)?, parts)?,
            ),
        ];
        let mut by_coordinates = |name, positions: Vec<DVec3>| {
            let positions: Vec<[f64; 3]> = positions.iter().map(DVec3::to_array).collect();
            let part_of = rcb::parts(graph, &positions, parts)?;
            rows.push((name, Quality::new(graph, &part_of, parts)?));
            Ok(())
        };
        by_coordinates("coordinates, at the start", start.to_vec())?;
        if let Some(state) = state {
            let old = world.tree().new_to_old().iter();
            by_coordinates(
                "coordinates, in that state",
                old.map(|&old| state[old as usize]).collect(),
            )?;
        }
        by_coordinates("coordinates, folded", folded(start))?;
        Ok(Self {
            parts,
            patches: world.tree().patch_count(),
            vertices: graph.vertex_count(),
            edges: graph.edge_count(),
            rows,
        })
    }

    /// The number of parts.
    #[must_use]
    pub fn parts(&self) -> usize {
        self.parts
    }

    /// The number of patches of the scene.
    #[must_use]
    pub fn patches(&self) -> usize {
        self.patches
    }

    /// The numbers of vertices and of edges of the matrix.
    #[must_use]
    pub fn graph(&self) -> [usize; 2] {
        [self.vertices, self.edges]
    }

    /// The quality of each way of cutting, by its name.
    #[must_use]
    pub fn rows(&self) -> &[(&'static str, Quality)] {
        &self.rows
    }
}

impl fmt::Display for PartitionComparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} vertices, {} edges of the matrix, {} patches; {} parts:",
            self.vertices, self.edges, self.patches, self.parts
        )?;
        writeln!(
            f,
            "{:<26} | {:>8} | {:>5} | {:>8} | {:>12} | {:>9} | {:>11}",
            "cut by", "edge cut", "%", "halo", "largest halo", "imbalance", "most pieces"
        )?;
        for (name, quality) in &self.rows {
            writeln!(
                f,
                "{name:<26} | {:>8} | {:>5.2} | {:>8} | {:>12} | {:>9.3} | {:>11}",
                quality.edge_cut,
                100.0 * quality.edge_cut as f64 / self.edges.max(1) as f64,
                quality.halo_total(),
                quality.halo_max(),
                quality.imbalance,
                quality.components_max(),
            )?;
        }
        Ok(())
    }
}

/// The cloth as it would be if it were folded, like an accordion across its longest side, in layers
/// on top of each other. No length along the cloth changes but at the folds.
fn folded(positions: &[DVec3]) -> Vec<DVec3> {
    let low = positions.iter().copied().fold(DVec3::INFINITY, DVec3::min);
    let high = (positions.iter().copied()).fold(DVec3::NEG_INFINITY, DVec3::max);
    let size = high - low;
    let along = if size.x >= size.y && size.x >= size.z {
        0
    } else if size.y >= size.z {
        1
    } else {
        2
    };
    let width = size[along] / LAYERS;
    // Where the cloth is thinnest there is room for layers.
    let across = (0..3).filter(|&axis| axis != along);
    let across = across.fold((along + 1) % 3, |best, axis| {
        if size[axis] < size[best] { axis } else { best }
    });
    let fold = |&p: &DVec3| {
        let layer = ((p[along] - low[along]) / width).floor().min(LAYERS - 1.0);
        let within = p[along] - low[along] - layer * width;
        let mut q = p;
        q[along] = if layer % 2.0 == 0.0 {
            within
        } else {
            width - within
        };
        q[across] += layer * (size[across] + GAP * width);
        q
    };
    positions.iter().map(fold).collect()
}

/// A picture of the vertices of each rank, with a colour for each rank; triangles across borders
/// are white. Positions are in m, in the order of the scene's vertices.
///
/// # Errors
/// No parts, or more than patches.
pub fn partition_picture(
    world: &World,
    parts: usize,
    positions: &[DVec3],
    size: [u32; 2],
) -> Result<Picture, PartitionError> {
    let ownership = Ownership::new(world.tree(), parts)?;
    let new_to_old = world.tree().new_to_old();
    let mut triangles = vec![Vec::new(); parts + 1];
    for t in world.model().triangles() {
        let owners = t.map(|v| ownership.rank_of_vertex(v as usize));
        let same = owners[0] == owners[1] && owners[1] == owners[2];
        let part = if same { owners[0] } else { parts };
        triangles[part].push(t.map(|v| new_to_old[v as usize]));
    }
    let items: Vec<Item<'_>> = (triangles.iter().enumerate())
        .map(|(part, triangles)| {
            let color = if part == parts { [0.9; 3] } else { color(part) };
            Item {
                positions,
                triangles,
                front: color,
                back: color,
                smooth: true,
                checker: None,
            }
        })
        .collect();
    let low = (positions.iter().copied()).fold(DVec3::INFINITY, DVec3::min);
    let high = (positions.iter().copied()).fold(DVec3::NEG_INFINITY, DVec3::max);
    Ok(Picture::render(&items, &Camera::framing(low, high), size))
}

/// Linear red, green, blue of a part: hues a golden section apart, so that neighbours in number
/// differ.
fn color(part: usize) -> [f32; 3] {
    const GOLDEN: f64 = 0.618_033_988_749_895;
    let hue = (0.02 + GOLDEN * part as f64).fract() * 6.0;
    let value = [0.75, 0.45, 0.6][part % 3];
    let channel = |shift: f64| {
        let k = (hue + shift) % 6.0;
        (value * (1.0 - 0.85 * k.min(4.0 - k).clamp(0.0, 1.0))) as f32
    };
    [channel(5.0), channel(3.0), channel(1.0)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::Scene;

    fn world(cloth: &str) -> World {
        let text = format!(
            "[[cloth]]\n{cloth}\n\
             material = {{ density = 0.15, stretch = 1000, bending = 1e-5 }}\n[partition]\npatches = 64\n"
        );
        World::build(&Scene::parse(&text, None, &[]).unwrap()).unwrap()
    }

    fn quality<'c>(comparison: &'c PartitionComparison, name: &str) -> &'c Quality {
        let row = comparison.rows().iter().find(|(n, _)| *n == name);
        &row.unwrap().1
    }

    /// The two ways of cutting compare as in the literature, which is why the graph is cut and not
    /// the space.
    #[test]
    fn flat_cloth_is_cut_alike_and_folded_cloth_only_by_its_graph() {
        for cloth in [
            "grid = { size = \"1 m\", vertices = 80 }",
            "shirt = { height = \"0.7 m\", vertices = 60 }",
        ] {
            let comparison = PartitionComparison::new(&world(cloth), 12, None).unwrap();
            let tree = quality(&comparison, "patch tree");
            // Ranks own whole patches: 6 of 64 are 12.5 % more than a twelfth.
            assert!(
                tree.imbalance < 1.15 && tree.components_max() <= 2,
                "{tree:?}"
            );
            let others = ["METIS k-way", "coordinates, at the start"];
            for other in others.map(|name| quality(&comparison, name)) {
                let ratio = tree.halo_total() as f64 / other.halo_total() as f64;
                assert!((0.6..1.4).contains(&ratio), "{comparison}");
            }
            let folded = quality(&comparison, "coordinates, folded");
            let by_graph = quality(&comparison, "METIS k-way").halo_total();
            assert!(folded.halo_total() > tree.halo_total(), "{comparison}");
            assert!(2 * folded.halo_total() > 3 * by_graph, "{comparison}");
        }
    }

    #[test]
    fn folding_keeps_lengths_within_a_layer() {
        let flat: Vec<DVec3> = (0..=2000).map(|i| DVec3::X * f64::from(i) * 1e-3).collect();
        let folded = folded(&flat);
        let lengths: Vec<f64> = folded.windows(2).map(|w| w[0].distance(w[1])).collect();
        let changed = lengths
            .iter()
            .filter(|&&l| (l - 1e-3).abs() > 1e-12)
            .count();
        assert!(changed <= 2 * LAYERS as usize, "{changed}");
        let x = |p: &DVec3| p.x;
        assert!(folded.iter().map(x).fold(0.0, f64::max) <= 0.1 + 1e-12);
    }

    #[test]
    fn a_state_is_cut_as_it_is() {
        let world = world("grid = { size = \"1 m\", vertices = 40 }");
        let start = world.original_order(world.model().start());
        let same = PartitionComparison::new(&world, 5, Some(&start)).unwrap();
        assert_eq!(
            quality(&same, "coordinates, in that state"),
            quality(&same, "coordinates, at the start")
        );
    }

    #[test]
    fn more_parts_than_patches_are_refused() {
        let world = world("grid = { size = \"1 m\", vertices = 40 }");
        assert!(PartitionComparison::new(&world, 0, None).is_err());
        assert!(PartitionComparison::new(&world, 65, None).is_err());
        assert!(partition_picture(&world, 65, &[], [16, 16]).is_err());
    }
}
