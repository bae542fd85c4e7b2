//! Tangles of sheets that start through each other: what is kept, what may pass, and which way is
//! out.

use std::collections::BTreeSet;

use glam::DVec3;

use super::*;
use crate::collide::Passing;
use crate::collide::audit::crossings;
use crate::mesh::{TriMesh, grid};

/// Sheets as one cloth.
struct Sheets {
    x: Vec<DVec3>,
    triangles: Vec<[u32; 3]>,
    /// The first vertex of each sheet.
    first: Vec<usize>,
}

impl Sheets {
    fn new(meshes: &[TriMesh]) -> Self {
        let (mut x, mut triangles, mut first) = (Vec::new(), Vec::new(), Vec::new());
        for mesh in meshes {
            let before = x.len() as u32;
            first.push(x.len());
            x.extend_from_slice(&mesh.positions);
            triangles.extend(mesh.triangles.iter().map(|t| t.map(|v| before + v)));
        }
        Self {
            x,
            triangles,
            first,
        }
    }

    fn kept(&self) -> Kept {
        let kept = tangles_of(&self.x, &self.triangles, Passing::NONE);
        assert!(!kept.is_empty(), "nothing crosses");
        kept
    }

    fn tangled(&self, kept: &Kept) -> Tangled {
        Tangled::new(kept, &self.x, &self.triangles)
    }

    /// The way out of each tangle, as the side of a vertex has to go it.
    fn ways(&self, kept: &Kept, of: impl Fn(u32) -> bool) -> Vec<DVec3> {
        let found = directions(kept, &self.tangled(kept), &self.x);
        let ways = found.into_iter().map(|(tangle, direction)| {
            let mut members = kept.members().iter();
            let member = members.find(|m| m.tangle == tangle && of(m.vertex));
            let is_second = member.expect("a vertex of the tangle").side;
            if is_second { -direction } else { direction }
        });
        ways.collect()
    }

    fn through(kept: &Kept) -> BTreeSet<u32> {
        let members = kept.members().iter().filter(|m| m.through);
        members.map(|m| m.vertex).collect()
    }
}

/// A square of this many vertices along a side, 1 cm apart, that was turned about its middle.
fn sheet(side: usize, center: [f64; 3], turn: [f64; 3]) -> TriMesh {
    let length = 0.01 * (side - 1) as f64;
    let [center, turn] = [center, turn].map(DVec3::from_array);
    grid([length; 2], [side; 2], center, turn).unwrap()
}

const UPRIGHT: [f64; 3] = [std::f64::consts::FRAC_PI_2, 0.0, 0.0];

/// A sheet over another one, which has two tips through it.
fn two_tips() -> Sheets {
    let below = sheet(20, [0.0013, 0.0017, 0.0], [0.0; 3]);
    let mut above = sheet(20, [0.0, 0.0, 0.01], [0.0; 3]);
    for p in &mut above.positions {
        for tip in [-0.045, 0.045] {
            let away = (*p - DVec3::new(tip, 0.0, p.z)).length();
            p.z -= 0.03 * (1.0 - away / 0.03).max(0.0);
        }
    }
    Sheets::new(&[below, above])
}

#[test]
fn tips_are_through_and_each_is_a_tangle_of_its_own() {
    let sheets = two_tips();
    let kept = sheets.kept();
    assert_eq!(kept.tangles(), [0, 1]);
    let through = Sheets::through(&kept);
    let (tips, discs): (Vec<u32>, Vec<u32>) =
        (through.iter().copied()).partition(|&v| v as usize >= sheets.first[1]);
    for v in sheets.first[1]..sheets.x.len() {
        let is_tip = tips.contains(&(v as u32));
        assert_eq!(is_tip, sheets.x[v].z < 0.0, "vertex {v}");
    }
    assert!(tips.len() > 8 && discs.len() > 4, "{tips:?} {discs:?}");
    for way in sheets.ways(&kept, |v| v as usize >= sheets.first[1]) {
        assert!(way.z > 0.9, "{way}");
    }
    // Features that cross are let pass, on different sides only, and features far away are not.
    for (edge, face) in crossings(&sheets.x, &sheets.triangles) {
        let face = sheets.triangles[face as usize];
        assert!(kept.lets_pass(&edge[..1], &face) && kept.lets_pass(&edge, &face[..2]));
        assert!(!kept.lets_pass(&edge[..1], &edge[1..]));
        assert_eq!(kept.crossing_in(edge, face).len(), 1);
    }
    assert!(!kept.lets_pass(&[0], &sheets.triangles[sheets.triangles.len() - 1]));
    assert!(sheets.tangled(&kept).outside() == 0);
}

/// The corner of an upright sheet goes through a level one: it is cut off, and the level one is
/// slit.
#[test]
fn a_corner_goes_back_and_the_sheet_that_it_slits_has_nothing_through() {
    let level = sheet(20, [0.0013, 0.0017, 0.0], [0.0; 3]);
    let upright = sheet(
        14,
        [0.0, 0.0, 0.0821],
        [std::f64::consts::FRAC_PI_2, 0.6, 0.0],
    );
    let sheets = Sheets::new(&[level, upright]);
    let kept = sheets.kept();
    assert_eq!(kept.tangles(), [0]);
    let through = Sheets::through(&kept);
    for v in 0..sheets.x.len() {
        let is_through = v >= sheets.first[1] && sheets.x[v].z < 0.0;
        assert_eq!(through.contains(&(v as u32)), is_through, "vertex {v}");
    }
    let ways = sheets.ways(&kept, |v| v as usize >= sheets.first[1]);
    assert!(ways.len() == 1 && ways[0].z > 0.6, "{ways:?}");
}

/// Two sheets that are pushed together like cards with slits: nothing is cut off of either.
#[test]
fn sheets_that_slit_each_other_go_where_the_slit_becomes_shorter() {
    let level = sheet(12, [-0.0423, 0.0017, 0.0], [0.0; 3]);
    let upright = sheet(12, [0.04, 0.0, 0.0013], UPRIGHT);
    let sheets = Sheets::new(&[level, upright]);
    let kept = sheets.kept();
    assert_eq!(Sheets::through(&kept), BTreeSet::new());
    let ways = sheets.ways(&kept, |v| v as usize >= sheets.first[1]);
    assert!(ways.len() == 1 && ways[0].x > 0.9, "{ways:?}");
    assert!(kept.vertices() < 60, "{}", kept.vertices());
}

/// A sheet whose middle hangs through another one: a strip of it between two contours is through.
#[test]
fn the_region_between_two_contours_is_one_tangle() {
    let level = sheet(24, [0.0013, 0.0017, 0.0], [0.0; 3]);
    let mut fold = sheet(14, [0.0, 0.0, 0.0207], [0.0; 3]);
    for p in &mut fold.positions {
        p.z -= 0.04 * (1.0 - p.x.abs() / 0.03).max(0.0);
    }
    let sheets = Sheets::new(&[level, fold]);
    let kept = sheets.kept();
    assert_eq!(kept.tangles(), [0]);
    let through = Sheets::through(&kept);
    for v in sheets.first[1]..sheets.x.len() {
        assert_eq!(
            through.contains(&(v as u32)),
            sheets.x[v].z < 0.0,
            "vertex {v}"
        );
    }
    let ways = sheets.ways(&kept, |v| v as usize >= sheets.first[1]);
    assert!(ways[0].z > 0.9, "{ways:?}");
}

/// A strip that is bent over, with its end through its other end.
#[test]
fn a_strip_through_itself_has_two_sides() {
    let mut strip = grid([0.4, 0.08], [41, 9], DVec3::ZERO, DVec3::ZERO).unwrap();
    for p in &mut strip.positions {
        // Up and over, and down again through where it lies.
        let (s, radius) = (p.x + 0.2 - 0.12, 0.0413);
        if s > 0.0 {
            let angle = (s / radius).min(std::f64::consts::PI * 1.5);
            let left = s - angle * radius;
            p.x = -0.08 + radius * angle.sin();
            p.z = radius * (1.0 - angle.cos()) - left;
        }
        p.x += 0.0013 * p.y;
        p.y *= if p.z < 0.0 { 0.8 } else { 1.0 };
    }
    let sheets = Sheets::new(&[strip]);
    let kept = sheets.kept();
    assert_eq!(kept.tangles(), [0]);
    let through = Sheets::through(&kept);
    assert!(!through.is_empty());
    for &v in &through {
        assert!(sheets.x[v as usize].z < 0.0, "vertex {v}");
    }
    let ways = sheets.ways(&kept, |v| through.contains(&v));
    assert!(ways.len() == 1 && ways[0].z > 0.6, "{ways:?}");
}

#[test]
fn sets_shrink_as_sheets_come_apart_and_nothing_comes_back() {
    let mut sheets = two_tips();
    let mut kept = sheets.kept();
    let mut sizes = vec![kept.vertices()];
    let all: BTreeSet<u32> = (0..sheets.x.len() as u32).collect();
    while !kept.is_empty() {
        let before = kept.clone();
        // A vertex that must stay does.
        let held = sheets.tangled(&kept).shrunk(&kept, &all);
        assert_eq!(held.vertices(), before.vertices());
        for p in &mut sheets.x[sheets.first[1]..] {
            p.z += 0.0021;
        }
        kept = sheets.tangled(&kept).shrunk(&kept, &BTreeSet::new());
        let was = |m: &Member| {
            let mut own = before.of(m.vertex).iter();
            own.any(|other| (other.tangle, other.side) == (m.tangle, m.side))
        };
        assert!(kept.members().iter().all(was));
        let through = Sheets::through(&kept);
        for v in sheets.first[1]..sheets.x.len() {
            assert_eq!(
                through.contains(&(v as u32)),
                sheets.x[v].z < 0.0,
                "vertex {v}"
            );
        }
        sizes.push(kept.vertices());
    }
    assert!(
        sizes.len() > 5 && sizes.is_sorted_by(|a, b| a >= b),
        "{sizes:?}"
    );
    assert!(crossings(&sheets.x, &sheets.triangles).is_empty());
}

#[test]
fn members_are_told_in_numbers() {
    for (tangle, side, through) in [(0, false, true), (7, true, false), (3, true, true)] {
        let member = Member {
            vertex: 5,
            tangle,
            side,
            through,
        };
        assert_eq!(Member::of_numbers(member.to_numbers()), member);
    }
}
