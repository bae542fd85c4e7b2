//! Contacts of cloths and bodies of unlike thickness: each pair keeps half of each.

use glam::DVec3;
use proptest::prelude::*;

use super::distances::from_triangle;
use super::{Case, MARGIN, Random, assert_same, turning};
use crate::collide::bodies::collider::{Analytic, AnalyticBody, BodySurface, Collider};
use crate::collide::contact::PairKind;
use crate::collide::*;
use crate::mesh::icosphere;
use crate::physics::tests::grid;

const CENTER: DVec3 = DVec3::new(0.5, 0.5, 0.0);
const RADIUS: f64 = 0.15;

/// The thickness of each of two cloths, and of each of two bodies.
#[derive(Clone, Copy, Debug)]
struct Thickness {
    cloths: [f64; 2],
    bodies: [f64; 2],
}

impl Thickness {
    /// The distance that a contact keeps by its features.
    fn of(&self, contact: &Contact, sheet: u32) -> f64 {
        let cloth = |vertex: u32| self.cloths[usize::from(vertex >= sheet)];
        let [first, .., last] = contact.vertices;
        if contact.id.kind <= PairKind::EdgeEdge {
            0.5 * (cloth(first) + cloth(last))
        } else {
            0.5 * (cloth(first) + self.bodies[contact.id.body as usize])
        }
    }
}

/// Two crumpled sheets, one above the other, over a ball of triangles and beside one of a formula;
/// and how many vertices a sheet has.
fn sheets(seed: u64, patches: usize, crumple: f64, thickness: Thickness) -> (Case, u32) {
    let mut case = Case::new(seed, 1, |p, _| p);
    let mut random = Random(seed | 1);
    let sheet = grid(11, 1.0);
    let n = sheet.positions.len();
    let lifted = sheet.positions.iter().map(|p| *p + 0.3 * DVec3::Z);
    let rest: Vec<DVec3> = sheet.positions.iter().copied().chain(lifted).collect();
    let second = sheet.triangles.iter().map(|t| t.map(|v| v + n as u32));
    let triangles: Vec<[u32; 3]> = sheet.triangles.iter().copied().chain(second).collect();
    case.x = (0..2 * n)
        .map(|v| {
            let above = DVec3::new(0.013, 0.021, 0.02) * f64::from(u8::from(v >= n));
            sheet.positions[v % n] + above + DVec3::Z * RADIUS + random.vector(crumple)
        })
        .collect();
    case.v = (0..2 * n).map(|_| random.vector(1.0)).collect();
    let cloth = ClothSurface::new(&triangles, &rest, patches, |v| {
        v as usize * patches / (2 * n)
    });
    let of_vertices: Vec<f64> = (0..2 * n)
        .map(|v| thickness.cloths[usize::from(v >= n)])
        .collect();
    let of_patches = cloth.patch_vertices();
    case.distances = Distances::new(&of_vertices, of_patches, &thickness.bodies, MARGIN);
    case.cloth = cloth.with_culling(case.distances.cloth_reach());
    let coarse = |body: usize| {
        thickness.cloths.map(|cloth| bodies::Coarseness {
            span: 0.14,
            distance: 0.5 * (cloth + thickness.bodies[body]),
        })
    };
    let fine = icosphere(CENTER, RADIUS, 0.05).unwrap();
    let reach = case.distances.reach(thickness.bodies[0]);
    let ball = Analytic::Sphere {
        center: DVec3::new(0.2, 0.7, 0.1),
        radius: 0.1,
    };
    case.bodies = vec![
        Collider::Triangles(Box::new(BodySurface::new(&fine, reach, &coarse(0)))),
        Collider::Analytic(AnalyticBody::new(ball, &coarse(1))),
    ];
    case.body_motions = vec![BodyMotion::constant(DVec3::ZERO); 2];
    (case, n as u32)
}

fn any_thickness() -> impl Strategy<Value = Thickness> {
    let of = 0.002..0.03f64;
    let two = || prop::array::uniform2(of.clone());
    (two(), two()).prop_map(|(cloths, bodies)| Thickness { cloths, bodies })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn trees_find_all_contacts_of_unlike_cloths(
        seed in any::<u64>(), budget in 1u32..500, patches in 1usize..9, crumple in 0.001..0.1f64,
        thickness in any_thickness(), turns in any::<bool>(),
    ) {
        let (mut case, sheet) = sheets(seed, patches, crumple, thickness);
        let mut random = Random(seed | 1);
        case.body_motions = (0..2)
            .map(|_| match turns {
                true => turning(random.vector(2.0)),
                false => BodyMotion::constant(random.vector(1.0)),
            })
            .collect();
        let expected = brute_force(&case.snapshot(&mut Volumes::default()));
        for c in &expected {
            let distance = thickness.of(c, sheet);
            let one_cloth = c.id.kind <= PairKind::EdgeEdge
                && (c.vertices[0] < sheet) == (c.vertices[3] < sheet);
            // Within a cloth it is no more than at rest.
            let is_it = (c.target - distance).abs() < 1e-15 || one_cloth && c.target < distance;
            prop_assert!(is_it, "{:?} keeps {}", c, distance);
        }
        assert_same(&case.through_trees(seed, budget), &expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Where nothing moves, contacts of vertices are those that are within reach of their pair, by
    /// distances to all faces.
    #[test]
    fn vertices_within_reach_of_their_pair_are_contacts_and_no_others(
        seed in any::<u64>(), patches in 1usize..9, crumple in 0.001..0.03f64,
        thickness in any_thickness(),
    ) {
        let (mut case, sheet) = sheets(seed, patches, crumple, thickness);
        case.v.fill(DVec3::ZERO);
        let found = case.through_trees(seed, 100);
        let mut near: Vec<(u32, u32)> = found
            .iter()
            .filter(|c| c.id.kind == PairKind::VertexFace)
            .map(|c| (c.id.a, c.id.b))
            .collect();
        near.sort_unstable();
        let mut expected = Vec::new();
        let cloth = |vertex: u32| thickness.cloths[usize::from(vertex >= sheet)];
        for (face, corners) in (0..).zip(case.cloth.surface().triangles()) {
            let places = corners.map(|v| case.x[v as usize]);
            for vertex in (0..2 * sheet).filter(|vertex| !corners.contains(vertex)) {
                let reach = 0.75 * (cloth(vertex) + cloth(corners[0]));
                if from_triangle(case.x[vertex as usize], places) <= reach {
                    expected.push((vertex, face));
                }
            }
        }
        expected.sort_unstable();
        prop_assert_eq!(near, expected);
    }
}
