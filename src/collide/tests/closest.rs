//! Pairs at local minima of the distance: they keep layers apart as all pairs do, and they are few.

use std::f64::consts::PI;

use glam::{DMat3, DVec3};
use proptest::prelude::*;

use super::*;

/// The thickness of layers in this module, in m.
const THICK: f64 = 0.02;

/// Two sheets over each other, each a paraboloid that is turned about the vertical, where the upper
/// one begins.
#[derive(Clone, Debug)]
struct Layers {
    /// Curvatures along x and y of each in 1/m.
    curvatures: [[f64; 2]; 2],
    turns: [f64; 2],
    shift: DVec3,
    /// The length of an edge of each in m.
    cells: [f64; 2],
}

fn layers() -> impl Strategy<Value = Layers> {
    let curvature = || (-3.0..3.0f64, -3.0..3.0f64).prop_map(|(a, b)| [a, b]);
    let shift = (-0.3..0.3f64, -0.3..0.3f64).prop_map(|(x, y)| DVec3::new(x, y, 0.0));
    let cells = (0.03..0.06f64, 0.03..0.06f64).prop_map(|(a, b)| [a, b]);
    let turns = (0.0..PI, 0.0..PI).prop_map(|(a, b)| [a, b]);
    ([curvature(), curvature()], turns, shift, cells).prop_map(
        |(curvatures, turns, shift, cells)| Layers {
            curvatures,
            turns,
            shift,
            cells,
        },
    )
}

/// Contacts of a state at rest, by brute force.
fn contacts_of(cloth: &ClothSurface, x: &[DVec3], thickness: f64, all_pairs: bool) -> Vec<Contact> {
    let distances = Distances::alike(thickness, 0.5, 0);
    let geometry = Geometry {
        cloth,
        bodies: &[],
        body_motions: &[],
        thickness,
        distances: &distances,
        self_collision: true,
        all_pairs,
    };
    let v = vec![DVec3::ZERO; x.len()];
    let mut volumes = Volumes::default();
    brute_force(&Snapshot::new(&geometry, &mut volumes, x, &v, 0.0, 0.01))
}

/// The least distance of contacts of one layer with the other.
fn least(cloth: &ClothSurface, contacts: &[Contact]) -> f64 {
    let between = contacts
        .iter()
        .filter(|contact| !cloth.in_one_component(contact.vertices[0], contact.vertices[3]));
    between
        .map(|contact| contact.gap)
        .fold(f64::INFINITY, f64::min)
}

impl Layers {
    /// The upper layer so far above the lower one that the least distance of any pair is this one.
    fn apart(&self, distance: f64) -> (ClothSurface, Vec<DVec3>) {
        let mut triangles = Vec::new();
        let mut x = Vec::new();
        let mut parts = Vec::new();
        for (k, &cell) in self.cells.iter().enumerate() {
            let side = 6;
            let mesh = grid(side, cell * (side - 1) as f64);
            let middle = 0.5 * cell * (side - 1) as f64;
            let [a, b] = self.curvatures[k];
            let turn = DMat3::from_rotation_z(self.turns[k]);
            let first = x.len() as u32;
            parts.push(first as usize);
            x.extend(mesh.positions.iter().map(|p| {
                let (u, v) = (p.x - middle, p.y - middle);
                let bent = DVec3::new(u, v, 0.5 * (a * u * u + b * v * v));
                turn * bent + self.shift * (k as f64 * cell)
            }));
            triangles.extend(mesh.triangles.iter().map(|t| t.map(|v| v + first)));
        }
        let cloth = ClothSurface::new(&triangles, &x, 1, |_| 0);
        let upper = parts[1];
        let at = |height: f64| {
            let mut x = x.clone();
            x[upper..].iter_mut().for_each(|p| p.z += height);
            x
        };
        // From where the layers are far apart downwards, in steps that no pair passes.
        let mut height = 1.0;
        for _ in 0..60 {
            let nearest = least(&cloth, &contacts_of(&cloth, &at(height), 1.0, true));
            if nearest < distance + 1e-9 {
                break;
            }
            height -= nearest - distance;
        }
        let x = at(height);
        (cloth, x)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Saddles, ridges, tips and borders.
    #[test]
    fn closest_pairs_miss_a_twentieth_of_the_target_at_most(layers in layers(), share in 0.6..0.98f64) {
        let (cloth, x) = layers.apart(share * THICK);
        let all = contacts_of(&cloth, &x, THICK, true);
        let closest = contacts_of(&cloth, &x, THICK, false);
        prop_assert!(closest.len() <= all.len());
        let (nearest, told) = (least(&cloth, &all), least(&cloth, &closest));
        prop_assume!(nearest < 0.99 * THICK);
        prop_assert!(told <= nearest + 0.05 * THICK, "{} of {}", told, nearest);
    }
}

#[test]
fn flat_layers_have_one_pair_for_a_vertex() {
    for turn in [0.0, 0.3, 1.0] {
        let layers = Layers {
            curvatures: [[0.0; 2]; 2],
            turns: [0.0, turn],
            shift: DVec3::new(0.3, 0.2, 0.0),
            cells: [0.06, 0.06],
        };
        let (cloth, x) = layers.apart(0.9 * THICK);
        let closest = contacts_of(&cloth, &x, THICK, false);
        let all = contacts_of(&cloth, &x, THICK, true);
        let faces = |c: &&Contact| c.id.kind == PairKind::VertexFace;
        let mut vertices: Vec<u32> = closest
            .iter()
            .filter(faces)
            .map(|contact| contact.vertices[0])
            .collect();
        let count = vertices.len();
        vertices.sort_unstable();
        vertices.dedup();
        assert_eq!(vertices.len(), count, "a vertex twice");
        // Borders that cross, twice at each corner at most.
        let edges = closest.len() - count;
        assert!(edges <= 8, "{edges}");
        assert!(count > 40, "{count}");
        assert!(
            all.len() > 5 * closest.len(),
            "{} {}",
            all.len(),
            closest.len()
        );
        // But for borders, where vertices lie beside a face.
        let upright = closest.iter().filter(|c| c.normal.z.abs() > 1.0 - 1e-12);
        assert!(upright.count() > 40, "{closest:?}");
    }
}

#[test]
fn neighbours_are_no_contacts_though_the_thickness_is_seven_edges() {
    let (side, cell) = (45, 0.01);
    let mesh = grid(side, cell * (side - 1) as f64);
    let cloth = ClothSurface::new(&mesh.triangles, &mesh.positions, 1, |_| 0);
    let thick = 7.0 * cell;
    // A flat sheet, then a part of a cylinder of five thicknesses.
    let radius = 5.0 * thick;
    for bent in [false, true] {
        let x: Vec<DVec3> = mesh
            .positions
            .iter()
            .map(|p| match bent {
                false => *p,
                true => {
                    let angle = p.x / radius;
                    DVec3::new(radius * angle.sin(), p.y, radius * angle.cos())
                }
            })
            .collect();
        let found = contacts_of(&cloth, &x, thick, false);
        // Heights of triangles may be told, with the distance that they have at rest.
        for contact in &found {
            assert!(contact.target <= cell * 1.0001, "{contact:?}");
        }
    }
    // Two flat halves with a bend between them: the halves are held apart.
    let gap = 0.8 * thick;
    let bend = 0.5 * PI * gap;
    let half = 0.5 * (cell * (side - 1) as f64 - bend);
    let x: Vec<DVec3> = mesh
        .positions
        .iter()
        .map(|p| {
            let along = p.x - half;
            let (u, z) = if along < 0.0 {
                (along, 0.0)
            } else if along < bend {
                let angle = along / (0.5 * gap);
                (0.5 * gap * angle.sin(), 0.5 * gap * (1.0 - angle.cos()))
            } else {
                (bend - along, gap)
            };
            DVec3::new(u, p.y, z)
        })
        .collect();
    let found = contacts_of(&cloth, &x, thick, false);
    let lies_over = |p: &DVec3| p.x < -thick;
    let mut held = vec![false; x.len()];
    for contact in found.iter().filter(|c| c.id.kind == PairKind::VertexFace) {
        let vertex = contact.vertices[0] as usize;
        if contact.target > 0.999 * thick && lies_over(&x[vertex]) {
            assert!((contact.gap - gap).abs() < 0.02 * gap, "{contact:?}");
            held[vertex] = true;
        }
    }
    for (p, held) in x.iter().zip(held) {
        assert!(held || !lies_over(p), "{p}");
    }
}
