//! Truncation on its own: whatever displacements it is given, nothing crosses, and what need not
//! be cut is not.

use std::ops::Range;

use glam::{DMat3, DVec3};
use proptest::prelude::*;

use super::near_pairs::Round;
use super::plane::{self, Advance, Motion, separating};
use super::*;
use crate::collide::audit::crossings;
use crate::collide::bvh::kdop::Kdop18;
use crate::collide::bvh::tree::Bvh;
use crate::collide::surface::Surface;
use crate::collide::tangles::Kept;
use crate::collide::{BodyMotion, ClothSurface, Distances, Geometry, Snapshot, Volumes};

/// Random numbers that are the same everywhere: SplitMix64.
struct Random(u64);

impl Random {
    /// A number from 0 to 1.
    fn number(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^= z >> 31;
        (z >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A vector in a cube around the origin, with coordinates up to `most`.
    fn vector(&mut self, most: f64) -> DVec3 {
        DVec3::from_array([0; 3].map(|_| (2.0 * self.number() - 1.0) * most))
    }
}

/// The gap that tests leave; the unit of length is an edge.
const LEAST: f64 = 4e-4;

/// Triangles, where their vertices are, and what truncation reads of both.
struct Cloth {
    x: Vec<DVec3>,
    surface: Surface,
    tree: Bvh,
    masses: Vec<f64>,
    /// The number of vertices that can be stopped.
    movable: u32,
    /// How the body of all others moves.
    mover: Mover,
    body_of: Vec<u32>,
    held: Vec<bool>,
}

/// The result of a step.
struct Stepped {
    found: Truncated,
    /// The lengths of all displacements: as they went and as they would have gone.
    went: f64,
    wanted: f64,
}

impl Cloth {
    /// Sheets of a number of rows and columns, each placed by a function of its number, row and
    /// column.
    fn sheets(sizes: &[[usize; 2]], at: impl Fn(usize, f64, f64) -> DVec3) -> Self {
        let (mut x, mut triangles) = (Vec::new(), Vec::new());
        for (sheet, &[rows, columns]) in sizes.iter().enumerate() {
            let first = x.len() as u32;
            for i in 0..rows {
                x.extend((0..columns).map(|j| at(sheet, i as f64, j as f64)));
            }
            for i in 0..rows - 1 {
                for j in 0..columns - 1 {
                    let a = first + (i * columns + j) as u32;
                    let (b, c, d) = (a + 1, a + columns as u32, a + columns as u32 + 1);
                    triangles.extend(if (i + j) % 2 == 0 {
                        [[a, c, d], [a, d, b]]
                    } else {
                        [[a, c, b], [c, d, b]]
                    });
                }
            }
        }
        let center = |t: &[u32; 3]| t.iter().map(|&v| x[v as usize]).sum::<DVec3>() / 3.0;
        let items = (0..).zip(&triangles).map(|(i, t)| (i, center(t)));
        let cloth = Self {
            tree: Bvh::build(items.collect()),
            surface: Surface::new(&triangles, x.len()),
            masses: vec![1.0; x.len()],
            movable: x.len() as u32,
            mover: falling(0.0),
            body_of: vec![0; x.len()],
            held: vec![false; x.len()],
            x,
        };
        assert!(cloth.crossings(&cloth.x).is_empty());
        cloth
    }

    /// A strip in folds that lie some tenths of an edge above each other.
    fn folded(folds: usize, width: usize) -> Self {
        const FOLD: usize = 12;
        let mut random = Random(5);
        let gaps: Vec<f64> = (0..folds).map(|_| 0.2 + 0.8 * random.number()).collect();
        Self::sheets(&[[folds * FOLD, width]], |_, i, y| {
            let (layer, at) = (i as usize / FOLD, i as usize % FOLD);
            let x = if layer.is_multiple_of(2) {
                at
            } else {
                FOLD - 1 - at
            } as f64;
            let above = |l: usize| gaps[l] * (0.75 + 0.25 * (0.3 * y + l as f64).sin());
            let z: f64 = (0..layer).map(above).sum();
            let wave = 1.5 * (0.35 * x).sin() * (0.3 * y).cos();
            DVec3::new(
                x + 0.8 * (0.25 * y).sin(),
                y + 0.3 * (0.5 * x).sin(),
                z + wave,
            )
        })
    }

    /// Square sheets above each other.
    fn stack(layers: usize, side: usize, apart: f64) -> Self {
        Self::sheets(&vec![[side, side]; layers], |layer, x, y| {
            DVec3::new(x, y, apart * layer as f64)
        })
    }

    fn crossings(&self, x: &[DVec3]) -> Vec<([u32; 2], u32)> {
        crossings(x, self.surface.triangles())
    }

    fn truncate<'a>(&'a self, goal: &'a [DVec3]) -> Truncate<'a> {
        Truncate {
            surface: (&self.surface).into(),
            tree: &self.tree,
            start: (&self.x).into(),
            goal: goal.into(),
            masses: &self.masses,
            movable: self.movable,
            movers: std::slice::from_ref(&self.mover),
            body_of: &self.body_of,
            held: &self.held,
            suspended: &[],
            kept: Kept::EMPTY,
            self_collision: true,
            least: LEAST,
        }
    }

    /// Goes some displacements as far as truncation lets it.
    fn step(&mut self, mut displacement: impl FnMut(u32, DVec3) -> DVec3) -> Stepped {
        let goal: Vec<DVec3> = (0..)
            .zip(&self.x)
            .map(|(v, &x)| x + displacement(v, x))
            .collect();
        let truncate = self.truncate(&goal);
        let found = truncate.run(&uncertified(&truncate));
        let ends: Vec<DVec3> = (0..self.x.len() as u32)
            .map(|v| found.end(&truncate, v))
            .collect();
        let length =
            |to: &[DVec3]| -> f64 { self.x.iter().zip(to).map(|(a, b)| a.distance(*b)).sum() };
        let (went, wanted) = (length(&ends), length(&goal));
        self.x = ends;
        Stepped {
            found,
            went,
            wanted,
        }
    }

    /// Repeats this many times; nothing crosses after any step, nor on the displacement of it.
    fn steps(
        &mut self,
        count: usize,
        mut displacement: impl FnMut(u32, DVec3) -> DVec3,
    ) -> Vec<Stepped> {
        (0..count)
            .map(|step| {
                let start = self.x.clone();
                let stepped = self.step(&mut displacement);
                for share in [0.25, 0.5, 0.75, 1.0] {
                    let between: Vec<DVec3> = start
                        .iter()
                        .zip(&self.x)
                        .map(|(a, b)| a.lerp(*b, share))
                        .collect();
                    assert_eq!(self.crossings(&between), [], "step {step} at {share}");
                }
                assert_eq!(stepped.found.squeezed, []);
                stepped
            })
            .collect()
    }
}

/// A body of triangles that falls by some length in a step.
fn falling(by: f64) -> Mover {
    let motion = BodyMotion::constant(DVec3::Z * -by);
    Mover {
        form: Form::Triangles,
        from: motion.at(0.0),
        to: motion.at(1.0),
        deformed: None,
        swept: None,
    }
}

/// All pairs that are not certified, found by looking at all whose volumes meet.
fn uncertified(step: &Truncate<'_>) -> Vec<Meeting> {
    let all = vec![true; step.start.len()];
    let mut round = Round::default();
    step.refit(step.goal, &all, &mut round);
    let mut hits = Vec::new();
    step.search(step.goal, &all, &mut round, |pair| {
        let at = pair.vertices.map(|v| v as usize);
        let displacements = Motion {
            start: at.map(|v| step.start[v]),
            end: at.map(|v| step.goal[v]),
        };
        let seen = displacements.less_mean();
        let around = |of: Range<usize>| {
            let points: Vec<DVec3> = of.flat_map(|k| [seen.start[k], seen.end[k]]).collect();
            Kdop18::around(&points, 0.5 * LEAST)
        };
        let first = pair.kind.first();
        let meets = around(0..first).overlaps(&around(first..4));
        if meets && !is_certified(pair.kind, &displacements, LEAST) {
            hits.push(Meeting::Features(pair));
        }
    });
    hits
}

/// The share of displacements that was kept.
fn kept(steps: &[Stepped]) -> f64 {
    let sum = |of: fn(&Stepped) -> f64| steps.iter().map(of).sum::<f64>();
    sum(|step| step.went) / sum(|step| step.wanted)
}

#[test]
fn random_ways_through_folds_cross_nothing() {
    for (most, least_kept) in [(0.05, 0.97), (0.5, 0.4), (3.0, 0.04)] {
        let (mut random, mut cloth) = (Random(1), Cloth::folded(5, 16));
        let steps = cloth.steps(6, |_, _| random.vector(most));
        assert!(kept(&steps) > least_kept, "{most}: {}", kept(&steps));
        assert!(steps.iter().any(|step| step.found.planes > 0), "{most}");
    }
}

#[test]
fn far_from_the_origin_nothing_crosses_either() {
    let (mut random, mut cloth) = (Random(1), Cloth::folded(3, 12));
    cloth.x.iter_mut().for_each(|x| *x += DVec3::splat(1e6));
    cloth.steps(5, |_, _| random.vector(1.0));
}

#[test]
fn sheets_that_fly_through_each_other_do_not() {
    let mut cloth = Cloth::sheets(&[[12, 12]; 2], |sheet, x, y| {
        DVec3::new(x, y, 0.0) + DVec3::new(0.37, 0.21, 20.0) * sheet as f64
    });
    let mut random = Random(1);
    cloth.steps(8, |v, _| {
        random.vector(3.0) + DVec3::Z * if v < 144 { 25.0 } else { -25.0 }
    });
}

/// Pieces of cloth that fly each its own way see different common motions, and slide beside each
/// other.
#[test]
fn pieces_that_fly_different_ways_cross_nothing() {
    let (mut random, mut slid) = (Random(41), 0);
    let center = |sheet: usize| DVec3::AXES[sheet % 3] * if sheet < 3 { 5.0 } else { -5.0 };
    for _ in 0..60 {
        let axes: Vec<[DVec3; 2]> = (0..6).map(|_| [0; 2].map(|_| random.vector(0.6))).collect();
        let mut cloth = Cloth::sheets(&[[4, 4]; 6], |sheet, i, j| {
            let [u, v] = axes[sheet];
            center(sheet) + u * (i - 1.5) + v * (j - 1.5)
        });
        let ways: Vec<DVec3> = (0..6)
            .map(|sheet| center(sheet) * -0.6 + random.vector(1.5))
            .collect();
        let steps = cloth.steps(3, |v, _| ways[v as usize / 16] + random.vector(0.2));
        slid += steps
            .iter()
            .map(|step| step.found.slid.len())
            .sum::<usize>();
    }
    assert!(slid > 100, "{slid}");
}

#[test]
fn a_displacement_common_to_all_vertices_is_not_cut() {
    // Once alone and once with ten edges a step besides.
    let went = [0.0, 10.0].map(|common| {
        let (mut random, mut cloth) = (Random(1), Cloth::stack(6, 12, 0.3));
        let start = cloth.x.clone();
        let steps = cloth.steps(6, |_, _| random.vector(0.1) + DVec3::X * common);
        assert!(steps.iter().any(|step| step.found.planes > 0));
        let back = DVec3::X * common * 6.0;
        let displacement = |(a, b): (&DVec3, &DVec3)| *b - *a - back;
        start
            .iter()
            .zip(&cloth.x)
            .map(displacement)
            .collect::<Vec<_>>()
    });
    let apart = went[0]
        .iter()
        .zip(&went[1])
        .map(|(a, b)| a.distance(*b))
        .fold(0.0, f64::max);
    assert!(apart < 1e-9, "{apart}");
}

#[test]
fn pressed_sheets_keep_a_gap_and_part_again() {
    let mut cloth = Cloth::stack(2, 4, 0.3);
    let press = |v: u32| DVec3::Z * if v < 16 { 1e-3 } else { -1e-3 };
    for _ in 0..3_000 {
        cloth.step(|v, _| press(v));
    }
    let gap = cloth.x[16].z - cloth.x[0].z;
    assert!((0.5 * LEAST..1.01 * LEAST).contains(&gap), "{gap}");
    // They slide, and they part.
    let slid = cloth.step(|v, _| DVec3::X * if v < 16 { 0.1 } else { -0.1 });
    assert!((slid.went / slid.wanted - 1.0).abs() < 1e-12);
    // Pressed as far as there is room, they slide too.
    let start = cloth.x.clone();
    cloth.step(|v, _| press(v) + DVec3::X * if v < 16 { 0.1 } else { -0.1 });
    for (v, (end, start)) in cloth.x.iter().zip(&start).enumerate() {
        let slid = (end - start) * if v < 16 { 1.0 } else { -1.0 };
        assert!((slid - DVec3::X * 0.1).length() < 1e-9, "{v}: {slid}");
    }
    let parted = cloth.step(|v, _| -press(v));
    assert_eq!(parted.found.planes, 0);
}

/// A vertex that pins hold lags on its way where it is stopped, and does not leave it.
#[test]
fn vertices_that_pins_hold_do_not_slide() {
    let mut cloth = Cloth::stack(2, 4, LEAST);
    cloth.held[16..].fill(true);
    let stepped = cloth.step(|v, _| match v < 16 {
        true => DVec3::ZERO,
        false => DVec3::new(0.1, 0.0, -0.1),
    });
    assert!(stepped.found.slid.keys().all(|&v| v < 16));
    for (v, kept) in stepped.found.kept[16..].iter().enumerate() {
        let (start, base) = (
            Cloth::stack(2, 4, LEAST).x[16 + v],
            stepped.found.base[16 + v],
        );
        let way = base + (DVec3::new(0.1, 0.0, -0.1) - base) * *kept;
        assert!((cloth.x[16 + v] - start - way).length() < 1e-12);
    }
    assert_eq!(cloth.crossings(&cloth.x), []);
}

#[test]
fn the_order_of_hits_does_not_matter() {
    let (mut random, cloth) = (Random(3), Cloth::folded(3, 10));
    let goal: Vec<DVec3> = cloth.x.iter().map(|&x| x + random.vector(0.5)).collect();
    let truncate = cloth.truncate(&goal);
    let mut hits = uncertified(&truncate);
    assert!(hits.len() > 100);
    let one = truncate.run(&hits);
    hits.reverse();
    hits.sort_by_key(|hit| match hit {
        Meeting::Features(pair) => pair.vertices[1] % 7,
        _ => 0,
    });
    assert_eq!(truncate.run(&hits), one);
}

#[test]
fn ways_without_hits_are_gone_to_the_bit() {
    let (mut random, cloth) = (Random(3), Cloth::stack(3, 6, 0.5));
    let goal: Vec<DVec3> = cloth.x.iter().map(|&x| x + random.vector(0.1)).collect();
    let truncate = cloth.truncate(&goal);
    assert_eq!(uncertified(&truncate), []);
    let found = truncate.run(&[]);
    for (v, goal) in (0..).zip(&goal) {
        assert_eq!(
            found.end(&truncate, v).to_array().map(f64::to_bits),
            goal.to_array().map(f64::to_bits)
        );
    }
}

#[test]
fn cloth_gives_way_to_what_cannot_be_stopped_as_far_as_there_is_room() {
    // A sheet of cloth under a plate that comes down, but for less than there is room.
    let mut cloth = Cloth::stack(2, 6, 0.5);
    cloth.movable = 36;
    let stepped = cloth.step(|v, _| {
        if v < 36 {
            DVec3::Z * 0.4
        } else {
            DVec3::Z * -0.3
        }
    });
    assert_eq!(stepped.found.squeezed, []);
    let gap = cloth.x[36].z - cloth.x[0].z;
    assert!(
        (gap - LEAST).abs() < 1e-9 && cloth.x[36].z == 0.5 - 0.3,
        "{gap}"
    );
    assert_eq!(cloth.crossings(&cloth.x), []);
}

#[test]
fn a_sweeping_body_carries_along_all_cloth_in_its_way() {
    // A plate that comes down on two sheets, and takes both along.
    let mut cloth = Cloth::stack(3, 6, 0.5);
    (cloth.movable, cloth.mover) = (72, falling(2.0));
    let stepped = cloth.step(|v, _| if v < 72 { DVec3::ZERO } else { DVec3::Z * -2.0 });
    assert_eq!(stepped.found.squeezed, []);
    assert_eq!(cloth.crossings(&cloth.x), []);
    assert!(cloth.x[36].z < -1.0 && cloth.x[0].z < cloth.x[36].z);
}

#[test]
fn vertices_without_room_are_named_and_cloth_does_not_cross_cloth() {
    // As above, but pins hold the lower sheet.
    let mut cloth = Cloth::stack(3, 6, 0.5);
    (cloth.movable, cloth.mover) = (72, falling(2.0));
    cloth.held[..36].fill(true);
    let stepped = cloth.step(|v, _| if v < 72 { DVec3::ZERO } else { DVec3::Z * -2.0 });
    let squeezed = &stepped.found.squeezed;
    assert!(!squeezed.is_empty());
    assert!(squeezed.iter().all(|s| s.vertex < 72 && s.body == 0));
    assert_eq!(cloth.x[..36], Cloth::stack(3, 6, 0.5).x[..36]);
    assert_eq!(
        crossings(&cloth.x[..72], &cloth.surface.triangles()[..100]),
        []
    );
}

#[test]
fn vertices_that_cross_at_the_start_stay_where_they_are() {
    let mut cloth = Cloth::stack(2, 4, 0.5);
    cloth.x[5].z = 0.7;
    let before = cloth.x.clone();
    let goal: Vec<DVec3> = cloth.x.iter().map(|x| *x + DVec3::X * 0.01 * x.z).collect();
    let truncate = cloth.truncate(&goal);
    let found = truncate.run(&uncertified(&truncate));
    assert_eq!(found.kept[5], 0.0);
    let stayed = found.end(&truncate, 5) - found.base[5];
    assert!(stayed.distance(before[5]) < 1e-15);
}

/// Points with whole coordinates, which often touch and coincide, and may lie far from the origin.
fn points() -> impl Strategy<Value = [DVec3; 4]> {
    let coordinate = -3i32..4;
    let point = (coordinate.clone(), coordinate.clone(), coordinate);
    (
        prop::array::uniform4(point),
        prop::sample::select(vec![0.0, 1024.0, 1e9]),
    )
        .prop_map(|(points, far)| {
            points.map(|(x, y, z)| DVec3::new(x.into(), y.into(), z.into()) + DVec3::splat(far))
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(
        4000 * std::env::var("PROPTEST_TIMES").ok().and_then(|n| n.parse().ok()).unwrap_or(1)
    ))]

    /// A plane is found if and only if the features do not touch: their distance, of small whole
    /// coordinates, is zero or well above rounding.
    #[test]
    fn planes_are_found_between_all_features_that_do_not_touch(points in points(), edges: bool) {
        let kind = if edges { Kind::EdgeEdge } else { Kind::VertexFace };
        let distance = plane::between_closest_points(kind, &points).map_or(0.0, |(_, distance)| distance);
        let found = separating(kind, &points);
        prop_assert_eq!(found.is_some(), distance > 1e-6, "{} {:?}", distance, found);
        if let Some(plane) = found {
            // Exact products of whole numbers tell the sides of an exact plane; this one is near
            // it.
            prop_assert!(plane.gap > 0.49 * distance && plane.gap < 1.001 * distance);
            prop_assert!(plane::gap(kind, plane.normal, &points) == plane.gap);
        }
    }

    /// Limits leave the least gap whatever the displacements, if all vertices can be stopped, and
    /// cut nothing that goes apart.
    #[test]
    fn limits_leave_the_least_gap(points in points(), displacements in prop::array::uniform4(prop::array::uniform3(-9.0..9.0f64)), edges: bool) {
        let kind = if edges { Kind::EdgeEdge } else { Kind::VertexFace };
        let Some(found) = separating(kind, &points) else { return Ok(()) };
        let displacements = displacements.map(DVec3::from_array);
        let margin = plane::margin(plane::largest(&points) + 9.0);
        let (low, high) = plane::sides(kind, &found.heights);
        let advances: [Advance; 4] = std::array::from_fn(|k| {
            let (first, along) = (k < kind.first(), found.normal.dot(displacements[k]));
            let height = found.heights[k];
            let (behind, own) = if first { (height - low, -along) } else { (high - height, along) };
            Advance { first, behind, base: 0.0, own }
        });
        let limits = plane::limits(&advances, found.gap - LEAST, margin);
        prop_assert!(!limits.squeezed);
        let ends = [0, 1, 2, 3].map(|k| points[k] + displacements[k] * limits.kept[k]);
        prop_assert!(plane::gap(kind, found.normal, &ends) >= found.gap.min(LEAST) - 2.0 * margin);
        for (k, displacement) in displacements.iter().enumerate() {
            let toward = found.normal.dot(*displacement) * if k < kind.first() { -1.0 } else { 1.0 };
            prop_assert!(toward > 0.0 || limits.kept[k] == 1.0);
        }
    }
}

/// Goes displacements by impulses and zones alone, and tells how they end.
fn responded(cloth: &Cloth, goal: &[DVec3]) -> Responded {
    let step = cloth.truncate(goal);
    respond(&step, &uncertified(&step))
}

/// The displacements of two steps of the same velocities, the second of which begins where the
/// first ended, as shares of the length of the first.
fn collided(mut cloth: Cloth, displacements: &[DVec3]) -> Vec<DVec3> {
    let mut u = displacements.to_vec();
    for _ in 0..2 {
        let goal: Vec<DVec3> = cloth.x.iter().zip(&u).map(|(x, u)| *x + *u).collect();
        let found = responded(&cloth, &goal);
        assert_eq!(found.left, []);
        assert_eq!(found.zones, 0);
        u = found
            .goal
            .iter()
            .zip(&cloth.x)
            .map(|(to, x)| *to - *x)
            .collect();
        cloth.x = found.goal;
    }
    u
}

/// The response asks for what certification asks for: a step of two triangles that fly through each
/// other at any angle is resolved by impulses alone.
#[test]
fn impulses_resolve_what_two_triangles_hit() {
    let (mut random, mut hit, mut in_vain) = (Random(21), 0, 0);
    for _ in 0..4_000 {
        let mut x: Vec<DVec3> = (0..6).map(|_| random.vector(1.0)).collect();
        x[3..].iter_mut().for_each(|x| x.z += 1.5);
        let cloth = of_triangles(x, &[[0, 1, 2], [3, 4, 5]]);
        if !cloth.crossings(&cloth.x).is_empty() {
            continue;
        }
        let way = DVec3::Z * -(0.5 + 3.0 * random.number());
        let goal = (0..).zip(&cloth.x).map(|(v, x)| {
            let common = if v < 3 { DVec3::ZERO } else { way };
            *x + common + random.vector(0.3)
        });
        let goal: Vec<DVec3> = goal.collect();
        let step = cloth.truncate(&goal);
        let hits = uncertified(&step);
        if hits.is_empty() {
            continue;
        }
        hit += 1;
        let responded = respond(&step, &hits);
        in_vain += usize::from(!responded.left.is_empty() || responded.zones > 0);
    }
    assert!(hit > 1_000, "{hit}");
    assert!(in_vain * 50 < hit, "{in_vain} of {hit}");
}

/// A pair as close as pairs may be that turns as a whole: no plane certifies it, and its distance
/// is less on the way than at both ends.
#[test]
fn pairs_at_the_least_gap_may_turn() {
    let start = [
        DVec3::new(-1.0, 0.0, LEAST),
        DVec3::new(1.0, 0.0, LEAST),
        DVec3::new(0.0, -1.0, 0.0),
        DVec3::new(0.0, 1.0, 0.0),
    ];
    let turned = |degrees: f64| {
        let turn = DMat3::from_rotation_x(degrees.to_radians());
        Motion {
            start,
            end: start.map(|x| turn * x),
        }
    };
    for degrees in [1.0, 20.0, 45.0] {
        assert!(
            is_certified(Kind::EdgeEdge, &turned(degrees), LEAST),
            "{degrees}"
        );
    }
    let nearer = Motion {
        end: turned(60.0).end.map(|x| x * DVec3::new(1.0, 0.9, 0.9)),
        ..turned(60.0)
    };
    assert!(!is_certified(Kind::EdgeEdge, &nearer, LEAST));
}

fn of_triangles(x: Vec<DVec3>, triangles: &[[u32; 3]]) -> Cloth {
    let center = |t: &[u32; 3]| t.iter().map(|&v| x[v as usize]).sum::<DVec3>() / 3.0;
    let items = (0..).zip(triangles).map(|(i, t)| (i, center(t)));
    Cloth {
        tree: Bvh::build(items.collect()),
        surface: Surface::new(triangles, x.len()),
        masses: vec![1.0; x.len()],
        movable: x.len() as u32,
        mover: falling(0.0),
        body_of: Vec::new(),
        held: vec![false; x.len()],
        x,
    }
}

/// Each vertex keeps off all faces, and each edge off all edges.
#[test]
fn an_edge_through_the_middle_of_a_face_is_a_crossing() {
    let cloth = [DVec3::ZERO, DVec3::X * 3.0, DVec3::Y * 3.0];
    let body = [[0.8, 0.8, -1.0], [0.8, 0.8, 1.0], [1.2, 0.9, 2.0]].map(DVec3::from_array);
    for (lifted, crosses) in [(0.0, true), (5.0, false)] {
        // Cloth through which an edge of the body passes, and a body through which one of cloth
        // does.
        for [cloth, body] in [[cloth, body], [body, cloth]] {
            let x = [cloth, body.map(|x| x + DVec3::Z * lifted)].concat();
            let mut both = of_triangles(x, &[[0, 1, 2], [3, 4, 5]]);
            (both.movable, both.body_of) = (3, vec![0; 3]);
            let goal = both.x.clone();
            let found = is_crossing(&both.truncate(&goal), &[[0, 0], [1, 0]]);
            assert_eq!(found, [crosses; 2]);
        }
    }
}

#[test]
fn a_vertex_and_a_free_triangle_share_their_momentum() {
    // The corners of the vertex's own triangle are so light that they take no part.
    let third = 2.0 * std::f64::consts::PI / 3.0;
    let corner = |k: f64| DVec3::new((third * k).cos(), (third * k).sin(), 0.0);
    let tip = DVec3::Z * 0.01;
    let far = |x: f64| tip + DVec3::new(x, 0.0, 5.0);
    let x = vec![
        corner(0.0),
        corner(1.0),
        corner(2.0),
        tip,
        far(0.1),
        far(-0.1),
    ];
    let mut cloth = of_triangles(x, &[[0, 1, 2], [3, 4, 5]]);
    cloth.masses[4..].fill(1e-9);
    let down = [0.0, 0.0, 0.0, -0.1, -0.1, -0.1].map(|z| DVec3::Z * z);
    let u = collided(cloth, &down);
    for u in &u[..4] {
        assert!((u.z / -0.1 - 0.25).abs() < 1e-4, "{u}");
    }
    let momentum: f64 = u[..4].iter().map(|u| u.z).sum();
    assert!((momentum + 0.1).abs() < 1e-15, "{momentum}");
}

#[test]
fn two_crossed_edges_share_their_momentum() {
    let above = |x: f64, y: f64, z: f64| DVec3::new(x, y, z);
    let x = vec![
        above(-1.0, 0.0, 0.0),
        above(1.0, 0.0, 0.0),
        above(0.0, 0.0, -5.0),
        above(0.0, -1.0, 0.01),
        above(0.0, 1.0, 0.01),
        above(0.0, 0.0, 5.0),
    ];
    let mut cloth = of_triangles(x, &[[0, 1, 2], [3, 4, 5]]);
    (cloth.masses[2], cloth.masses[5]) = (1e-9, 1e-9);
    let down = [0.0, 0.0, 0.0, -0.1, -0.1, -0.1].map(|z| DVec3::Z * z);
    let u = collided(cloth, &down);
    for v in [0, 1, 3, 4] {
        assert!((u[v].z / -0.1 - 0.5).abs() < 1e-4, "{}", u[v]);
    }
    let momentum = u[0].z + u[1].z + u[3].z + u[4].z;
    assert!((momentum + 0.2).abs() < 1e-15, "{momentum}");
}

#[test]
fn sheets_of_unequal_mass_keep_their_momentum() {
    let mut cloth = Cloth::sheets(&[[10, 10]; 2], |sheet, x, y| {
        DVec3::new(x, y, 0.0) + DVec3::new(0.37, 0.21, 3.0) * sheet as f64
    });
    cloth.masses[100..].fill(3.0);
    let mut u = vec![DVec3::ZERO; 200];
    for (v, u) in u.iter_mut().enumerate() {
        *u = DVec3::Z * if v < 100 { 4.0 } else { -4.0 };
    }
    let momentum =
        |u: &[DVec3]| -> DVec3 { u.iter().zip(&cloth.masses).map(|(u, m)| *u * *m).sum() };
    let before = momentum(&u);
    let mut x = cloth.x.clone();
    for step in 0..6 {
        let goal: Vec<DVec3> = x.iter().zip(&u).map(|(x, u)| *x + *u).collect();
        let truncate = Truncate {
            start: (&x).into(),
            ..cloth.truncate(&goal)
        };
        let found = respond(&truncate, &uncertified(&truncate));
        let last = Truncate {
            goal: (&found.goal).into(),
            ..truncate
        };
        let cut = last.run(&found.left);
        let ends: Vec<DVec3> = (0..200).map(|v| cut.end(&last, v)).collect();
        assert_eq!(cloth.crossings(&ends), [], "step {step}");
        u = ends.iter().zip(&x).map(|(to, x)| *to - *x).collect();
        u.iter_mut()
            .zip(&cut.restored)
            .for_each(|(u, by)| *u += *by);
        let change = (momentum(&u) - before).length() / before.length();
        assert!(change < 1e-10, "step {step}: {change}");
        x = ends;
    }
    // The heavier sheet takes the lighter one along.
    let mean = u[..100].iter().map(|u| u.z).sum::<f64>() / 100.0;
    assert!(mean < -1.0, "{mean}");
}

/// A vertex that is prescribed comes down onto a face close to a side that is held. Only the corner
/// across can give way, and would have to go a hundred times as far: it is not thrown.
#[test]
fn impulses_on_short_levers_throw_nothing() {
    let mut cloth = Cloth::sheets(&[[2, 2], [2, 2]], |sheet, i, j| match sheet {
        0 => DVec3::new(i, j, 0.0),
        // Its lowest corner is above the lower sheet, near the side between its first vertices.
        _ => DVec3::new(0.01 - i, 0.3 - j, 0.1 + 0.4 * (i + j)),
    });
    for v in [0, 1, 4, 5, 6, 7] {
        cloth.held[v] = true;
    }
    let mut goal = cloth.x.clone();
    for v in &mut goal[4..8] {
        v.z -= 0.2;
    }
    let step = cloth.truncate(&goal);
    let hits = uncertified(&step);
    assert!(!hits.is_empty());
    let responded = respond(&step, &hits);
    for (v, goal) in responded.goal.iter().enumerate() {
        let went = goal.distance(cloth.x[v]);
        assert!(went <= 2.1, "vertex {v} goes {went}");
    }
}

/// Two sheets of 36 by 36 vertices in patches of four by four, a twentieth of an edge apart, and
/// the volumes around patches that stay where they are, for contacts within 0.15.
fn sheets_in_patches() -> (Cloth, ClothSurface, Vec<Kdop18>) {
    const SIDE: u32 = 36;
    let cloth = Cloth::stack(2, SIDE as usize, 0.05);
    let patch_of = |v: u32| {
        let (sheet, row, column) = (v / (SIDE * SIDE), v / SIDE % SIDE, v % SIDE);
        ((sheet * 9 + row / 4) * 9 + column / 4) as usize
    };
    let surface = ClothSurface::new(cloth.surface.triangles(), &cloth.x, 162, patch_of);
    let mut volumes = Volumes::default();
    let distances = Distances::alike(0.1, 0.5, 0);
    let geometry = Geometry {
        cloth: &surface,
        bodies: &[],
        body_motions: &[],
        thickness: 0.1,
        distances: &distances,
        self_collision: true,
        all_pairs: false,
    };
    let still = vec![DVec3::ZERO; cloth.x.len()];
    let snapshot = Snapshot::new(&geometry, &mut volumes, &cloth.x, &still, 0.0, 1.0);
    (0..162).for_each(|patch| snapshot.make_root(patch));
    let roots = volumes.around_patches(162).unwrap();
    (cloth, surface, roots)
}

/// Where some vertices of the upper sheet are pushed through the lower one, the response in their
/// region is that with all cloth, and reads no other cloth.
#[test]
fn a_response_in_a_region_is_that_with_all_cloth() {
    let (mut cloth, surface, roots) = sheets_in_patches();
    let mut random = Random(11);
    for case in 0..20 {
        for mass in &mut cloth.masses {
            *mass = 0.2 + random.number();
        }
        let mut goal = cloth.x.clone();
        for _ in 0..1 + case % 4 {
            // In the middle of the upper sheet, which comes after the 1296 vertices of the lower.
            let [row, column] = [0; 2].map(|_| 14 + (8.0 * random.number()) as usize);
            let v = 1296 + 36 * row + column;
            goal[v].z -= 0.055 + 0.015 * random.number();
        }
        let step = cloth.truncate(&goal);
        let hits = uncertified(&step);
        assert!(!hits.is_empty());
        let all = respond(&step, &hits);
        let Some(region) = Region::around(&surface, roots.clone(), patches_of(&surface, &hits))
        else {
            assert!(case % 4 > 0);
            continue;
        };
        let mut there = vec![false; goal.len()];
        region.vertices().for_each(|v| there[v as usize] = true);
        assert!(there.iter().filter(|there| **there).count() < 1800);
        let only = |x: &[DVec3]| -> Vec<DVec3> {
            let of = x.iter().zip(&there);
            of.map(|(x, there)| if *there { *x } else { DVec3::NAN })
                .collect()
        };
        let (start, end) = (only(&cloth.x), only(&goal));
        let within = Truncate {
            start: (&start).into(),
            ..cloth.truncate(&end)
        };
        let found = respond_within(&within, &hits, (&region, 40.0)).unwrap();
        assert_eq!((found.rounds, found.zones), (all.rounds, all.zones));
        assert_eq!(found.left, all.left);
        for (v, there) in there.iter().enumerate() {
            let moved = all.goal[v] != goal[v];
            assert!(*there || !moved, "case {case}: vertex {v} is not seen");
            assert!(
                !there || found.goal[v] == all.goal[v],
                "case {case}: vertex {v}"
            );
        }
    }
}

/// Everything that vertices may cross which go anywhere is found in the tree near them, as in that
/// of all cloth.
#[test]
fn a_tree_near_some_vertices_has_all_that_they_may_cross() {
    let (cloth, surface, _) = sheets_in_patches();
    let mut random = Random(12);
    for case in 0..12 {
        let mut exceeds = vec![false; cloth.x.len()];
        let mut goal = cloth.x.clone();
        for _ in 0..1 + case % 3 {
            let v = 1296 + (1296.0 * random.number()) as usize;
            exceeds[v] = true;
            goal[v] += random.vector(4.0);
            goal[v].z = -random.number();
        }
        let step = cloth.truncate(&goal);
        let near = tree_near(&surface, &step, &exceeds).unwrap();
        assert!(2 * near.len() < cloth.tree.len());
        let [of_all, of_near] = [&cloth.tree, &near].map(|tree| {
            let mut hits = Hits::default();
            hits.add_exceeders(&Truncate { tree, ..step }, &exceeds);
            hits.meetings.sort_unstable();
            hits
        });
        assert!(!of_all.meetings.is_empty());
        assert_eq!(of_near, of_all);
    }
    let step = cloth.truncate(&cloth.x);
    assert!(tree_near(&surface, &step, &vec![true; cloth.x.len()]).is_none());
}

/// A response ends that moves a vertex which a patch of the border has, or one out of the volume
/// around its patch; and there is no region of most of the cloth.
#[test]
fn a_region_holds_what_stays_in_it() {
    let (cloth, surface, roots) = sheets_in_patches();
    let hit = |v: u32| Meeting::Vertex { vertex: v, body: 0 };
    let patches = |hits: &[Meeting]| patches_of(&surface, hits);
    // In the middle of a patch in the middle of the upper sheet.
    let middle = 1296 + 36 * 18 + 18;
    let region = Region::around(&surface, roots.clone(), patches(&[hit(middle)])).unwrap();
    let moved = |v: u32, by: DVec3| {
        let mut goal = cloth.x.clone();
        goal[v as usize] += by;
        let mut moved = vec![false; goal.len()];
        moved[v as usize] = true;
        region.holds(&cloth.truncate(&goal), (&goal).into(), &moved)
    };
    let up = DVec3::Z * 0.05;
    assert!(moved(middle, up) && moved(middle + 4, up) && moved(middle - 1296, up));
    assert!(!moved(middle, 2.0 * up), "beyond the volume");
    assert!(!moved(middle + 8, up), "of the border");
    assert!(!moved(middle + 8, DVec3::ZERO), "of the border");
    assert!(region.is_around(&[hit(middle)]) && !region.is_around(&[hit(middle), hit(0)]));
    let wider = region.with(&[hit(middle - 4)]).unwrap();
    let near = Region::near(&surface, roots.clone(), &patches(&[hit(middle)])).unwrap();
    assert!(near.is_around(&[]) && !near.is_around(&[hit(middle)]));
    assert!(near.vertices().count() < region.vertices().count());
    assert!(
        near.with(&[hit(middle)])
            .unwrap()
            .vertices()
            .eq(region.vertices())
    );
    assert!(wider.is_around(&[hit(middle), hit(middle - 4)]));
    assert!(wider.vertices().count() > region.vertices().count());
    let corners = [0, 35, 35 * 36, middle].map(hit);
    assert!(Region::around(&surface, roots, patches(&corners)).is_none());
    assert_eq!(Volumes::default().around_patches(1), None);
}
