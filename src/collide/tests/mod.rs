//! Trees, stacks and splits against brute force.

use glam::DVec3;
use proptest::prelude::*;

use crate::collide::bodies::collider::{Analytic, AnalyticBody, BodySurface, Coarseness, Collider};
use crate::collide::contact::PairKind;
use crate::collide::*;
use crate::mesh::{TriMesh, icosphere};
use crate::physics::tests::grid;
use crate::scene::{Interpolation, Keyframe, Motion, Turn};
use weft_runtime::Split;

mod closest;
pub(in crate::collide) mod culling;
pub(crate) mod distances;
mod round;
mod subtrees;
mod targets;
mod unlike;

const THICKNESS: f64 = 0.02;
const MARGIN: f64 = 0.5;
const REACH: f64 = THICKNESS * (1.0 + MARGIN);
/// The sheet's cells are 0.1 m wide, so that it sags by 16 mm on the ball.
const COARSE: [Coarseness; 1] = [Coarseness {
    span: 0.14,
    distance: THICKNESS,
}];

/// A small pseudo-random sequence; the tests say with which seed.
pub(in crate::collide) struct Random(pub(in crate::collide) u64);

impl Random {
    pub(in crate::collide) fn unit(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    pub(in crate::collide) fn vector(&mut self, scale: f64) -> DVec3 {
        DVec3::new(self.unit() - 0.5, self.unit() - 0.5, self.unit() - 0.5) * (2.0 * scale)
    }
}

struct Case {
    cloth: ClothSurface,
    bodies: Vec<Collider>,
    body_motions: Vec<BodyMotion>,
    distances: Distances,
    x: Vec<DVec3>,
    v: Vec<DVec3>,
}

impl Case {
    /// A crumpled sheet in `patches` patches above a pyramid and near a sphere.
    fn new(seed: u64, patches: usize, shape: impl Fn(DVec3, &mut Random) -> DVec3) -> Self {
        let mut random = Random(seed | 1);
        let mesh = grid(11, 1.0);
        let n = mesh.positions.len();
        let x = mesh
            .positions
            .iter()
            .map(|&p| shape(p, &mut random))
            .collect();
        let v = (0..n).map(|_| random.vector(1.0)).collect();
        let cloth = ClothSurface::new(&mesh.triangles, &mesh.positions, patches, |v| {
            v as usize * patches / n
        })
        .with_culling(REACH);
        let corners = [
            DVec3::new(0.2, 0.2, 0.0),
            DVec3::new(0.9, 0.2, 0.0),
            DVec3::new(0.5, 0.9, 0.0),
            DVec3::new(0.5, 0.4, 0.3),
        ];
        let pyramid = TriMesh {
            positions: corners.to_vec(),
            triangles: vec![[0, 2, 1], [0, 1, 3], [1, 2, 3], [2, 0, 3]],
        };
        let ball = Analytic::Sphere {
            center: DVec3::new(0.7, 0.7, 0.1),
            radius: 0.15,
        };
        Self {
            cloth,
            bodies: vec![
                Collider::Triangles(Box::new(BodySurface::new(&pyramid, REACH, &[]))),
                Collider::Analytic(AnalyticBody::new(ball, &COARSE)),
                Collider::Triangles(Box::new(BodySurface::new(&pyramid, REACH, &[]))),
            ],
            body_motions: [DVec3::ZERO, DVec3::X, DVec3::new(0.0, 0.5, 1.0)]
                .map(BodyMotion::constant)
                .to_vec(),
            // More bodies may be added.
            distances: Distances::alike(THICKNESS, MARGIN, 4),
            x,
            v,
        }
    }

    fn snapshot<'a>(&'a self, volumes: &'a mut Volumes) -> Snapshot<'a> {
        let geometry = Geometry {
            cloth: &self.cloth,
            bodies: &self.bodies,
            body_motions: &self.body_motions,
            thickness: THICKNESS,
            distances: &self.distances,
            self_collision: true,
            all_pairs: true,
        };
        Snapshot::new(&geometry, volumes, &self.x, &self.v, 0.1, 0.02)
    }

    /// All contacts through trees; runs are split and interleaved as `seed` says.
    fn through_trees(&self, seed: u64, budget: u32) -> Vec<Contact> {
        let mut volumes = Volumes::default();
        let snap = self.snapshot(&mut volumes);
        let mut random = Random(seed | 1);
        let mut runs: Vec<TestRun> = snap
            .targets()
            .filter_map(|target| TestRun::new(target, &snap))
            .collect();
        let mut out = Vec::new();
        while !runs.is_empty() {
            let at = (random.unit() * runs.len() as f64) as usize;
            let piece = match (random.unit() * 4.0) as u32 {
                0 => runs[at].split(|s| Split::OLDEST.take_from(s)),
                1 => runs[at].split(|s| Split::EVERY_OTHER.take_from(s)),
                _ => None,
            };
            // Tests that are given away travel.
            runs.extend(piece.map(|piece| {
                let bytes = serde_json::to_vec(&piece).unwrap();
                let piece: TestRun = serde_json::from_slice(&bytes).unwrap();
                assert!(piece.is_valid(&snap));
                piece
            }));
            if runs[at].advance(&snap, budget, &mut out).1 {
                runs.swap_remove(at);
            }
        }
        out.sort_unstable_by_key(|c| c.id);
        assert!(
            out.windows(2).all(|w| w[0].id != w[1].id),
            "a pair was tested twice"
        );
        out
    }
}

/// Equal to the last bit.
pub(in crate::collide) fn assert_same(found: &[Contact], expected: &[Contact]) {
    let missing = expected
        .iter()
        .find(|c| found.binary_search_by_key(&c.id, |f| f.id).is_err());
    assert_eq!(
        missing,
        None,
        "missed; {} found of {}",
        found.len(),
        expected.len()
    );
    assert_eq!(found, expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn trees_find_what_brute_force_finds(
        seed in any::<u64>(), budget in 1u32..500, patches in 1usize..9, crumple in 0.01..0.4f64,
    ) {
        let case = Case::new(seed, patches, |p, random| {
            p + DVec3::new(0.0, 0.0, 0.15) + random.vector(crumple)
        });
        let expected = brute_force(&case.snapshot(&mut Volumes::default()));
        assert_same(&case.through_trees(seed, budget), &expected);
    }
}

/// A ball of some hundred triangles near the sheet, in patches.
fn with_ball_in_patches(case: &mut Case, motion: BodyMotion) {
    let ball = icosphere(DVec3::new(0.4, 0.5, 0.1), 0.25, 0.06).unwrap();
    let mut surface = BodySurface::new(&ball, REACH, &COARSE);
    surface.cut_into_patches();
    assert!(surface.patches().subtrees().len() > 20);
    case.bodies.push(Collider::Triangles(Box::new(surface)));
    case.body_motions.push(motion);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn bodies_in_patches_are_met_as_brute_force_meets_them(
        seed in any::<u64>(), budget in 1u32..500, patches in 1usize..9, crumple in 0.01..0.4f64,
        goes in prop::array::uniform3(-2.0..2.0f64),
    ) {
        let mut case = Case::new(seed, patches, |p, random| {
            p + DVec3::new(0.0, 0.0, 0.15) + random.vector(crumple)
        });
        with_ball_in_patches(&mut case, BodyMotion::constant(DVec3::from_array(goes)));
        let expected = brute_force(&case.snapshot(&mut Volumes::default()));
        assert!(expected.iter().any(|contact| contact.id.body == 3));
        assert_same(&case.through_trees(seed, budget), &expected);
    }
}

/// A run of another rank that looks into patches that there are not, or beside its own, is not
/// taken.
#[test]
fn runs_beside_their_patches_of_a_body_are_refused() {
    let mut case = Case::new(7, 4, |p, _| p + DVec3::new(0.0, 0.0, 0.3));
    with_ball_in_patches(&mut case, BodyMotion::constant(DVec3::X));
    let mut volumes = Volumes::default();
    let snap = case.snapshot(&mut volumes);
    let runs = (0..4).filter_map(|p| TestRun::new(Target::PatchBody(p, 3), &snap));
    let run = runs
        .max_by_key(|run| run.subtrees()[1].count_ones())
        .unwrap();
    let [_, near] = run.subtrees();
    assert!(run.is_valid(&snap) && near.count_ones() > 1 && near.count_ones() < 20);
    let mut json = serde_json::to_value(&run).unwrap();
    for other in [near & (near - 1), !0] {
        json["subtrees"][1] = other.into();
        let other: TestRun = serde_json::from_value(json.clone()).unwrap();
        assert!(!other.is_valid(&snap));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn no_pair_that_passes_through_each_other_is_found_and_all_others_are(
        seed in any::<u64>(), patches in 1usize..9, crumple in 0.05..0.4f64, share in 0usize..12,
    ) {
        let mut case = Case::new(seed, patches, |p, random| {
            p + DVec3::new(0.0, 0.0, 0.15) + random.vector(crumple)
        });
        let mut expected = brute_force(&case.snapshot(&mut Volumes::default()));
        let n = case.x.len();
        // Patches of one cloth, of the other, and of both.
        let cloths: Vec<u32> = (0..n).map(|v| u32::from(v * 11 >= share * n)).collect();
        // Vertices that lie near each other, and some that do not.
        let sewn: Vec<[u32; 2]> = (0..n as u32 / 7).map(|k| [7 * k, (7 * k + 2 + k * k) % n as u32]).collect();
        let passing = Passing::new(&cloths, |cloth| cloth == 0).sewn(sewn.clone());
        expected.retain(|contact| {
            let first = match contact.id.kind {
                PairKind::VertexFace => 1,
                PairKind::EdgeEdge => 2,
                _ => return true,
            };
            let (one, other) = contact.vertices.split_at(first);
            let joins = |[v, w]: &[u32; 2]| one.contains(v) && other.contains(w);
            let is_sewn = sewn.iter().any(|&[v, w]| joins(&[v, w]) || joins(&[w, v]));
            cloths[one[0] as usize] + cloths[contact.vertices[3] as usize] > 0 && !is_sewn
        });
        case.cloth = case.cloth.clone().letting(passing);
        let snapshot = &mut Volumes::default();
        assert_same(&brute_force(&case.snapshot(snapshot)), &expected);
        assert_same(&case.through_trees(seed, 100), &expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// The grid is that over the cloth at the start of the step: however far it moves off, no
    /// contact is lost.
    #[test]
    fn cloth_that_leaves_its_grid_is_not_missed(
        seed in any::<u64>(), patches in 1usize..6, size in -3..12_i32, axis in 0_usize..3,
    ) {
        let mut case = Case::new(seed, patches, |p, random| {
            p + DVec3::new(0.0, 0.0, 0.15) + random.vector(0.2)
        });
        let far = f64::from(size).exp2();
        for (k, v) in case.v.iter_mut().enumerate() {
            // Some triangles go, with one corner or more; others stay.
            if k % 5 < 2 {
                v[axis] += far / 0.02;
            }
        }
        let expected = brute_force(&case.snapshot(&mut Volumes::default()));
        assert_same(&case.through_trees(seed, 100), &expected);
    }
}

/// A run that goes on from a checkpoint makes the tests of one that was not stopped.
#[test]
fn how_many_tests_are_made_does_not_depend_on_what_was_before() {
    let case = Case::new(5, 4, |p, random| {
        p + DVec3::new(0.0, 0.0, 0.15) + random.vector(0.2)
    });
    let elsewhere = Case::new(5, 4, |p, _| 3.0 * p + DVec3::ONE);
    let made = |case: &Case, volumes: &mut Volumes| {
        let snap = case.snapshot(volumes);
        let runs = (snap.targets()).filter_map(|target| TestRun::new(target, &snap));
        let tests = runs.map(|mut run| run.advance(&snap, u32::MAX, &mut Vec::new()).0);
        tests.map(u64::from).sum::<u64>()
    };
    let first = made(&case, &mut Volumes::default());
    let mut used = Volumes::default();
    assert_ne!(made(&elsewhere, &mut used), first);
    assert_eq!(made(&case, &mut used), first);
}

/// Turns by this vector (rad) in 0.2 s, about a point beside it, and moves.
fn turning(vector: DVec3) -> BodyMotion {
    let keyframe = |time, turn, x| Keyframe {
        time,
        translation: DVec3::new(x, 0.1 * x, -x),
        turn: Turn::By(turn),
    };
    BodyMotion::scripted(&Motion {
        center: DVec3::new(0.4, 0.5, 0.6),
        interpolation: Interpolation::Linear,
        repeat: false,
        keyframes: vec![keyframe(0.0, DVec3::ZERO, 0.0), keyframe(0.2, vector, 0.1)],
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn trees_find_what_brute_force_finds_of_bodies_that_turn(
        seed in any::<u64>(), budget in 1u32..500, crumple in 0.01..0.3f64,
    ) {
        let mut case = Case::new(seed, 3, |p, random| {
            p + DVec3::new(0.0, 0.0, 0.15) + random.vector(crumple)
        });
        let mut random = Random(seed | 1);
        let cuboid = Analytic::Box {
            center: DVec3::new(0.7, 0.3, 0.1),
            half: DVec3::new(0.1, 0.2, 0.15),
            axes: None,
        };
        case.bodies.push(Collider::Analytic(AnalyticBody::new(cuboid, &COARSE)));
        case.body_motions = (0..4).map(|_| turning(random.vector(2.0))).collect();
        let expected = brute_force(&case.snapshot(&mut Volumes::default()));
        for (body, c) in expected.iter().filter(|c| c.count < 4).map(|c| (c.id.body, c)) {
            prop_assert!(c.gap.is_finite() && (c.normal.length() - 1.0).abs() < 1e-9, "{}", body);
        }
        assert_same(&case.through_trees(seed, budget), &expected);
    }
}

/// Whatever turns with a body keeps its distance, its normal turns along, and the velocity is that
/// of the body there.
#[test]
fn a_contact_with_a_turning_body_is_that_of_the_still_body_turned() {
    let place = |p: DVec3| DVec3::new(p.x, p.y, 0.0213) + DVec3::Z * (0.3 - (p.x - 0.5).abs());
    let mut still = Case::new(5, 2, |p, _| place(p));
    still.v.fill(DVec3::ZERO);
    still.body_motions = vec![BodyMotion::constant(DVec3::ZERO); 3];
    let expected = still.through_trees(1, 10);
    let expected: Vec<_> = expected.iter().filter(|c| c.count < 4).collect();
    assert!(expected.len() > 30, "{}", expected.len());

    let motion = turning(DVec3::new(1.0, -0.5, 2.0));
    let mut case = Case::new(5, 2, |p, _| place(p));
    for (x, v) in case.x.iter_mut().zip(&mut case.v) {
        let [from, to] = [0.1, 0.1 + 0.02].map(|time| motion.at(time).apply(*x));
        (*x, *v) = (from, (to - from) / 0.02);
    }
    case.body_motions = vec![motion.clone(); 3];
    let found = case.through_trees(1, 10);
    let pose = motion.at(0.1);
    for e in &expected {
        let c = found.iter().find(|c| c.id == e.id);
        let c = c.unwrap_or_else(|| panic!("{e:?}"));
        let turned = pose.apply(e.normal) - pose.apply(DVec3::ZERO);
        assert!(
            (c.gap - e.gap).abs() < 1e-12 && (c.normal - turned).length() < 1e-9,
            "{c:?} {e:?}"
        );
        let moved: DVec3 = (0..usize::from(c.count))
            .map(|k| case.v[c.vertices[k] as usize] * c.weights[k])
            .sum();
        // Their distance stays: what differs is the body's turn over the gap.
        assert!(
            (moved - c.body_velocity).length() < 12.0 * c.gap.abs() + 1e-9,
            "{c:?}"
        );
    }
}

#[test]
fn degenerate_shapes_are_no_exception() {
    let shapes: [fn(DVec3) -> DVec3; 7] = [
        |p| p,
        // All in one plane with itself, folded exactly.
        |p| DVec3::new((p.x - 0.5).abs(), p.y, 0.1),
        // All on a line, and all in a point.
        |p| DVec3::new(p.x + p.y, 0.0, 0.0),
        |_| DVec3::splat(0.3),
        // Slivers; huge and tiny coordinates.
        |p| DVec3::new(p.x * 1e-9, p.y, p.x * 1e-3),
        |p| p + DVec3::splat(1e7),
        |p| p * 1e-8,
    ];
    for (index, shape) in shapes.into_iter().enumerate() {
        let case = Case::new(index as u64 + 1, 4, |p, _| shape(p));
        let expected = brute_force(&case.snapshot(&mut Volumes::default()));
        assert_same(&case.through_trees(7, 64), &expected);
        for c in &expected {
            assert!(
                c.gap.is_finite() && (c.normal.length() - 1.0).abs() < 1e-9,
                "{c:?}"
            );
            let sum: f64 = c.weights.iter().sum();
            let whole = if c.id.kind <= PairKind::EdgeEdge {
                0.0
            } else {
                1.0
            };
            assert!((sum - whole).abs() < 1e-12);
        }
    }
}

#[test]
fn a_flat_sheet_wants_nothing_pushed() {
    let case = Case::new(3, 4, |p, _| p + DVec3::new(0.0, 0.0, 10.0));
    let mut volumes = Volumes::default();
    let snap = case.snapshot(&mut volumes);
    for c in brute_force(&snap) {
        assert!(c.gap >= c.target * (1.0 - 1e-12), "{c:?}");
    }
}

#[test]
fn contacts_with_bodies_measure_their_distance() {
    // The sheet lies level, 0.01 above the sphere's top.
    let top = 0.1 + 0.15 + 0.01;
    let mut case = Case::new(5, 2, |p, _| DVec3::new(p.x, p.y, top));
    case.v.fill(DVec3::ZERO);
    case.bodies.remove(0);
    case.bodies.truncate(1);
    case.body_motions = vec![BodyMotion::constant(DVec3::ZERO)];
    let contacts = case.through_trees(1, 10);
    let nearest = contacts
        .iter()
        .filter(|c| c.id.kind == PairKind::VertexBody)
        .min_by(|a, b| a.gap.total_cmp(&b.gap));
    let nearest = nearest.unwrap();
    assert!((nearest.gap - 0.01).abs() < 1e-12 && (nearest.normal - DVec3::Z).length() < 1e-12);
}

#[test]
fn runs_that_name_what_does_not_exist_are_invalid() {
    let case = Case::new(1, 3, |p, _| p);
    let mut volumes = Volumes::default();
    let snap = case.snapshot(&mut volumes);
    for text in [
        r#"{"target":{"Patch":3},"stack":[[0,0]]"#,
        r#"{"target":{"Patches":[1,0]},"stack":[]"#,
        r#"{"target":{"PatchBody":[0,9]},"stack":[]"#,
        r#"{"target":{"Patch":0},"stack":[[0,99999]]"#,
        r#"{"target":{"Patches":[0,1]},"stack":[[0,99999]]"#,
    ] {
        let run: TestRun = serde_json::from_str(&format!(r#"{text},"subtrees":[0,0]}}"#)).unwrap();
        assert!(!run.is_valid(&snap), "{text}");
    }
}

#[test]
fn candidates_are_unique_and_hold_all_contacts() {
    let case = Case::new(9, 5, |p, random| p + random.vector(0.2));
    let mut volumes = Volumes::default();
    let snap = case.snapshot(&mut volumes);
    let mut found = Vec::new();
    candidates::feature_pairs(&snap, |kind, a, b| found.push((kind, a, b)));
    found.sort_unstable();
    assert!(found.windows(2).all(|pair| pair[0] != pair[1]));
    let contacts = brute_force(&snap);
    let cloth = contacts.iter().map(|c| (c.id.kind, c.id.a, c.id.b));
    let mut cloth = cloth.filter(|c| c.0 <= PairKind::EdgeEdge).peekable();
    assert!(cloth.peek().is_some());
    assert!(cloth.all(|c| found.binary_search(&c).is_ok()));
}

#[test]
fn trees_of_any_volume_find_all_pairs_that_overlap() {
    fn both<const N: usize>(case: &Case) {
        let triangles = case.cloth.surface().triangles();
        let volume = |t: u32| {
            let corners = triangles[t as usize].map(|v| case.x[v as usize]);
            Kdop::<N>::around(&corners, 0.01)
        };
        let tree = &ClothSurface::new(triangles, case.cloth.rest(), 1, |_| 0).patches()[0].clone();
        let mut volumes = Vec::new();
        tree.refit(volume, &mut volumes);
        let tree = candidates::Tree(tree, &volumes);
        let count = triangles.len() as u32;
        let all = (0..count).flat_map(|s| (s..count).map(move |t| (s, t)));
        let mut expected: Vec<_> = all
            .filter(|&(s, t)| volume(s).overlaps(&volume(t)))
            .collect();
        let mut ordered = Vec::new();
        candidates::pairs(tree, tree, |s, t| {
            if s <= t {
                ordered.push((s, t));
            }
        });
        ordered.sort_unstable();
        assert_eq!(ordered, expected);
        expected.retain(|(s, t)| s != t);
        let mut found = Vec::new();
        candidates::self_pairs(tree, |s, t| found.push((s.min(t), s.max(t))));
        found.sort_unstable();
        assert_eq!(found, expected);
    }
    let case = Case::new(4, 1, |p, random| p + random.vector(0.1));
    both::<8>(&case);
    both::<20>(&case);
}
