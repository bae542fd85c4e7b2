//! Contacts of coarse cloth with round bodies: trees find them all, and the nearest pair of
//! features is among them.

use glam::DVec3;
use proptest::prelude::*;

use super::distances::{between_triangles, from_triangle};
use super::{COARSE, Case, REACH, Random, assert_same, turning};
use crate::collide::bodies::collider::{Analytic, AnalyticBody, BodySurface, Collider};
use crate::collide::contact::PairKind;
use crate::collide::*;
use crate::mesh::{TriMesh, icosphere};

const CENTER: DVec3 = DVec3::new(0.5, 0.5, 0.0);
const RADIUS: f64 = 0.15;

/// A ball with triangles of a fifth of the cloth's cells.
fn fine_ball() -> TriMesh {
    icosphere(CENTER, RADIUS, 0.03).unwrap()
}

/// A sheet with a fine ball, the same as a formula, and a second formula.
fn over_balls(seed: u64, patches: usize, shape: impl Fn(DVec3, &mut Random) -> DVec3) -> Case {
    let mut case = Case::new(seed, patches, shape);
    let formula = |center, radius| {
        let ball = Analytic::Sphere { center, radius };
        Collider::Analytic(AnalyticBody::new(ball, &COARSE))
    };
    let fine = BodySurface::new(&fine_ball(), REACH, &COARSE);
    case.bodies = vec![
        Collider::Triangles(Box::new(fine)),
        formula(CENTER, RADIUS),
        formula(DVec3::new(0.2, 0.7, 0.1), 0.1),
    ];
    case.body_motions = vec![BodyMotion::constant(DVec3::ZERO); 3];
    case
}

/// A sheet that lies over the ball without touching it, a little bent.
fn lying(case: &mut Case, height: f64, bend: [f64; 3]) {
    for x in &mut case.x {
        let aside = *x - CENTER;
        let bent = bend[0] * aside.x * aside.x + bend[1] * aside.y * aside.y;
        x.z = RADIUS + height - bent + bend[2] * aside.x * aside.y;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn trees_find_all_contacts_with_round_bodies(
        seed in any::<u64>(), budget in 1u32..500, patches in 1usize..9, crumple in 0.01..0.2f64,
        moves in 0..3,
    ) {
        let mut case = over_balls(seed, patches, |p, random| {
            p + DVec3::new(0.0, 0.0, 0.15) + random.vector(crumple)
        });
        let mut random = Random(seed | 1);
        case.body_motions = (0..3)
            .map(|_| match moves {
                0 => BodyMotion::constant(DVec3::ZERO),
                1 => BodyMotion::constant(random.vector(1.0)),
                _ => turning(random.vector(2.0)),
            })
            .collect();
        let expected = brute_force(&case.snapshot(&mut Volumes::default()));
        for kind in [PairKind::FaceBody, PairKind::EdgeBody] {
            prop_assert!(expected.iter().any(|c| c.id.kind == kind), "{:?}", kind);
        }
        for c in expected.iter().filter(|c| c.id.kind >= PairKind::VertexBody) {
            let sum: f64 = c.weights.iter().sum();
            prop_assert!((sum - 1.0).abs() < 1e-9 && (c.normal.length() - 1.0).abs() < 1e-9);
        }
        assert_same(&case.through_trees(seed, budget), &expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// The least gap of all contacts is the distance by brute force: whichever features are
    /// nearest, blunt ones among them, are a contact.
    #[test]
    fn the_nearest_features_are_a_contact(
        seed in any::<u64>(), height in 0.001..0.028f64, bend in prop::array::uniform3(-0.8..0.3f64),
        aside in prop::array::uniform2(-0.05..0.05f64), turn in -0.4..0.4f64,
    ) {
        let mut case = over_balls(seed, 3, |p, _| {
            let (sin, cos) = (libm::sin(turn), libm::cos(turn));
            let q = p - CENTER;
            CENTER + DVec3::new(cos * q.x - sin * q.y + aside[0], sin * q.x + cos * q.y + aside[1], 0.0)
        });
        lying(&mut case, height, bend);
        case.v.fill(DVec3::ZERO);
        let ball = fine_ball();
        let (mut fine, mut formula) = (f64::INFINITY, f64::INFINITY);
        let around = |t: &[DVec3; 3]| [t[0].min(t[1]).min(t[2]), t[0].max(t[1]).max(t[2])];
        for t in case.cloth.surface().triangles() {
            let t = t.map(|v| case.x[v as usize]);
            formula = formula.min(from_triangle(CENTER, t) - RADIUS);
            let [low, high] = around(&t);
            for of in &ball.triangles {
                let of = of.map(|v| ball.positions[v as usize]);
                let [lower, higher] = around(&of);
                if (low - higher).max(lower - high).max_element() < fine.min(REACH) {
                    fine = fine.min(between_triangles(&t, &of));
                }
            }
        }
        // Where the sheet cuts the ball, that is another test's.
        prop_assume!(formula > 0.0 && formula < REACH && fine < REACH);
        let found = case.through_trees(seed, 100);
        for (body, expected) in [(0, fine), (1, formula)] {
            let of_body = |c: &&Contact| c.id.body == body && c.id.kind >= PairKind::VertexBody;
            let gaps = found.iter().filter(of_body).map(|c| c.gap);
            let least = gaps.fold(f64::INFINITY, f64::min);
            prop_assert!((least - expected).abs() < 1e-9, "body {}: {} not {}", body, least, expected);
        }
    }
}

/// Features that are a little inside are led out.
#[test]
fn features_that_cut_a_fine_ball_are_led_out() {
    let mut case = over_balls(1, 2, |p, _| p);
    lying(&mut case, -0.008, [-0.5, -0.5, 0.0]);
    case.v.fill(DVec3::ZERO);
    let found = brute_force(&case.snapshot(&mut Volumes::default()));
    for body in [0, 1] {
        let inside = found.iter().filter(|c| c.id.body == body && c.gap < 0.0);
        let mut kinds: Vec<PairKind> = inside
            .map(|c| {
                assert!(c.normal.z > 0.9 && c.gap > -0.021, "{c:?}");
                c.id.kind
            })
            .collect();
        kinds.sort_unstable();
        kinds.dedup();
        assert!(kinds.len() >= 2, "body {body}: {kinds:?}");
    }
}
