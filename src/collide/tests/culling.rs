//! Leaving tests out changes no contact: against brute force on smooth, folded and crumpled cloth,
//! on rest shapes with holes, slits, seams and bends, with cells from much larger than the reach to
//! smaller.

use glam::{DQuat, DVec3};
use proptest::prelude::*;

use super::{Random, assert_same};
use crate::collide::*;
use crate::mesh::{TriMesh, icosphere};
use crate::physics::tests::grid;

/// Vertices along a side of the unit square that rest shapes are made from.
const SIDE: usize = 17;
pub(in crate::collide) const CELL: f64 = 1.0 / 16.0;

/// Names of rest shapes, for [`rest_shape`].
pub(in crate::collide) const SHAPES: usize = 7;

/// A rest shape: a square, with a hole, with a slit, an L, a tube, a bowl, two layers.
pub(in crate::collide) fn rest_shape(which: usize) -> TriMesh {
    let mut mesh = grid(SIDE, 1.0);
    let center = |mesh: &TriMesh, t: &[u32; 3]| {
        t.iter().map(|&v| mesh.positions[v as usize]).sum::<DVec3>() / 3.0
    };
    let keep = |mesh: &mut TriMesh, inside: &dyn Fn(DVec3) -> bool| {
        let whole = mesh.clone();
        mesh.triangles.retain(|t| inside(center(&whole, t)));
    };
    match which {
        1 => keep(&mut mesh, &|p| {
            (p - DVec3::new(0.5, 0.5, 0.0)).length() > 0.2
        }),
        2 => {
            // Triangles right of the middle, up to half way, take copies of the vertices there.
            let mut copies = std::collections::BTreeMap::new();
            let whole = mesh.clone();
            for t in &mut mesh.triangles {
                if center(&whole, t).x < 0.5 {
                    continue;
                }
                for v in t {
                    let p = whole.positions[*v as usize];
                    if (p.x - 0.5).abs() < 1e-9 && p.y < 0.55 {
                        *v = *copies.entry(*v).or_insert_with(|| {
                            mesh.positions.push(p);
                            mesh.positions.len() as u32 - 1
                        });
                    }
                }
            }
        }
        3 => keep(&mut mesh, &|p| p.x < 0.4 || p.y < 0.4),
        4 => {
            for p in &mut mesh.positions {
                let angle = 5.0 * p.x;
                *p = DVec3::new(angle.cos(), p.y * 5.0, angle.sin()) / 5.0;
            }
        }
        5 => {
            for p in &mut mesh.positions {
                p.z = 0.4 * ((p.x - 0.5).powi(2) + (p.y - 0.5).powi(2));
            }
        }
        6 => {
            let (other, n) = (mesh.clone(), mesh.positions.len() as u32);
            mesh.positions
                .extend(other.positions.iter().map(|&p| p + 0.3 * DVec3::Z));
            mesh.triangles
                .extend(other.triangles.iter().map(|t| t.map(|v| v + n)));
        }
        _ => {}
    }
    mesh
}

pub(in crate::collide) struct Case {
    pub(in crate::collide) cloth: [ClothSurface; 2],
    pub(in crate::collide) x: Vec<DVec3>,
    pub(in crate::collide) v: Vec<DVec3>,
    distances: Distances,
    pub(in crate::collide) dt: f64,
}

impl Case {
    pub(in crate::collide) fn new(
        mesh: &TriMesh,
        patches: usize,
        reach: f64,
        shape: impl FnMut(DVec3) -> (DVec3, DVec3),
    ) -> Self {
        let n = mesh.positions.len();
        let plain = ClothSurface::new(&mesh.triangles, &mesh.positions, patches, |v| {
            v as usize * patches / n
        });
        let culled = plain.clone().with_culling(reach);
        assert!(culled.culling().is_some());
        let (x, v) = mesh.positions.iter().copied().map(shape).unzip();
        Self {
            cloth: [plain, culled],
            x,
            v,
            distances: Distances::alike(reach / 1.5, 0.5, 0),
            dt: 0.01,
        }
    }

    pub(in crate::collide) fn geometry<'a>(&'a self, cloth: &'a ClothSurface) -> Geometry<'a> {
        Geometry {
            cloth,
            bodies: &[],
            body_motions: &[],
            thickness: self.distances.least(),
            distances: &self.distances,
            self_collision: true,
            all_pairs: true,
        }
    }

    /// Contacts found with and without leaving tests out, and how many tests each took.
    fn found(&self) -> [(Vec<Contact>, u32); 2] {
        [0, 1].map(|k| {
            let mut volumes = Volumes::default();
            let geometry = self.geometry(&self.cloth[k]);
            let snap = Snapshot::new(&geometry, &mut volumes, &self.x, &self.v, 0.0, self.dt);
            let mut out = Vec::new();
            let mut tests = 0;
            for target in snap.targets() {
                if let Some(mut run) = TestRun::new(target, &snap) {
                    let mut done = false;
                    while !done {
                        let (made, now) = run.advance(&snap, 100, &mut out);
                        (tests, done) = (tests + made, now);
                        assert!(run.is_valid(&snap));
                    }
                }
            }
            out.sort_unstable_by_key(|c| c.id);
            assert!(out.windows(2).all(|w| w[0].id != w[1].id), "tested twice");
            (out, tests)
        })
    }

    /// Compares with brute force; how many contacts there are, and tests without and with leaving
    /// some out.
    fn check(&self) -> (usize, [u32; 2]) {
        let geometry = self.geometry(&self.cloth[0]);
        let mut volumes = Volumes::default();
        let snap = Snapshot::new(&geometry, &mut volumes, &self.x, &self.v, 0.0, self.dt);
        let expected = brute_force(&snap);
        let [(plain, all), (culled, fewer)] = self.found();
        assert_same(&plain, &expected);
        assert_same(&culled, &expected);
        (expected.len(), [all, fewer])
    }
}

/// A motion of the rest shape: waves of some heights and lengths, squeezed, turned, moving.
pub(in crate::collide) fn wavy(
    seed: u64,
    height: f64,
    squeeze: f64,
    speed: f64,
) -> impl FnMut(DVec3) -> (DVec3, DVec3) {
    let mut random = Random(seed | 1);
    let turn = DQuat::from_euler(
        glam::EulerRot::XYZ,
        6.0 * random.unit(),
        6.0 * random.unit(),
        6.0 * random.unit(),
    );
    let waves: Vec<(DVec3, DVec3, f64)> = (0..4)
        .map(|_| (random.vector(1.0), random.vector(9.0), 6.0 * random.unit()))
        .collect();
    move |p| {
        let sum = |shift: f64| {
            let wave = |(d, k, phase): &(DVec3, DVec3, f64)| *d * (k.dot(p) + phase + shift).sin();
            waves.iter().map(wave).sum::<DVec3>()
        };
        let place = p * squeeze + sum(0.0) * height;
        (
            turn * place,
            turn * sum(1.0) * speed + random.vector(0.1 * speed),
        )
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn smooth_or_not_the_contacts_are_those_of_brute_force(
        seed in any::<u64>(), which in 0..SHAPES, patches in 1usize..7, share in 0.2..1.3f64,
        height in 0.0..0.3f64, squeeze in 0.5..1.1f64, speed in 0.0..3.0f64,
    ) {
        let mesh = rest_shape(which);
        Case::new(&mesh, patches, share * CELL, wavy(seed, height, squeeze, speed)).check();
    }

    #[test]
    fn crumpled_cloth_is_no_exception(
        seed in any::<u64>(), which in 0..SHAPES, patches in 1usize..7, share in 0.2..1.3f64,
        crumple in 0.0..0.2f64,
    ) {
        let mut random = Random(seed | 1);
        let shape = |p| (p + random.vector(crumple), random.vector(1.0));
        Case::new(&rest_shape(which), patches, share * CELL, shape).check();
    }
}

#[test]
fn smooth_cloth_takes_few_tests() {
    // Cells of 10 mm, reach 6 mm, as in the scenes.
    let mesh = rest_shape(0);
    let (none, [all, fewer]) = Case::new(&mesh, 4, 0.6 * CELL, |p| (p, DVec3::Z)).check();
    assert_eq!(none, 0);
    assert!(fewer * 20 < all, "{fewer} of {all}");
    let bent = |p: DVec3| {
        let angle = 2.0 * p.x;
        (
            DVec3::new(angle.sin(), 2.0 * p.y, angle.cos()) * 0.5,
            DVec3::Z,
        )
    };
    let (none, [all, fewer]) = Case::new(&mesh, 4, 0.6 * CELL, bent).check();
    assert_eq!(none, 0);
    assert!(fewer * 4 < all, "{fewer} of {all}");
}

/// Each triangle of an icosahedron is steep to its neighbours: there is no chart. A finer sphere
/// has some, of some triangles.
#[test]
fn cloth_outside_of_all_charts_is_tested_in_full() {
    for edge in [0.2, 0.06, 0.02] {
        let mesh = icosphere(DVec3::ZERO, 0.1, edge).unwrap();
        for patches in [1, 3] {
            let flat = |p: DVec3| (DVec3::new(p.x, p.y, 0.02 * p.z), DVec3::ZERO);
            let (found, _) = Case::new(&mesh, patches, 0.005, flat).check();
            assert!(found > 0, "{edge}");
        }
    }
}

#[test]
fn folds_and_degenerate_shapes_are_no_exception() {
    let mesh = rest_shape(0);
    let shapes: [fn(DVec3) -> DVec3; 9] = [
        |p| p,
        |p| DVec3::new((p.x - 0.5).abs(), p.y, 0.0),
        |p| DVec3::new((p.x - 0.5).abs(), p.y, 0.02 * (p.x - 0.5).signum()),
        |p| DVec3::new(p.x + p.y, 0.0, 0.0),
        |_| DVec3::splat(0.3),
        |p| DVec3::new(p.x * 1e-9, p.y, p.x * 1e-3),
        |p| p + DVec3::splat(1e5),
        |p| p * 1e-8,
        |p| p * 1e8,
    ];
    for shape in shapes {
        for share in [0.6, 1.1] {
            Case::new(&mesh, 4, share * CELL, |p| (shape(p), DVec3::ZERO)).check();
        }
    }
}

#[test]
fn features_close_at_rest_are_found_in_cloth_of_any_flatness() {
    // Squeezed by a quarter, corners come within reach of the faces across a diagonal.
    let case = Case::new(&rest_shape(0), 3, 0.6 * CELL, |p| (p * 0.75, DVec3::ZERO));
    let (contacts, _) = case.check();
    assert!(contacts > 200, "{contacts}");
}

#[test]
fn a_rest_shape_too_fine_for_the_reach_is_tested_in_full() {
    let mesh = rest_shape(0);
    let cloth = ClothSurface::new(&mesh.triangles, &mesh.positions, 1, |_| 0);
    assert!(cloth.with_culling(8.0 * CELL).culling().is_none());
}

#[test]
fn bounds_that_others_made_are_those_made_here() {
    for mesh in [grid(60, 1.0), rest_shape(4)] {
        let case = Case::new(&mesh, 4, 0.005, wavy(7, 0.02, 1.0, 1.0));
        let geometry = case.geometry(&case.cloth[1]);
        let mut rooms: [Volumes; 3] = Default::default();
        let [all, part, taken] = rooms
            .each_mut()
            .map(|room| Snapshot::new(&geometry, room, &case.x, &case.v, 0.0, case.dt));
        let tiles = case.cloth[1].tiles().len();
        assert!(tiles > 3);
        let made = all.separation_bounds_of(0..tiles);
        // The bytes that a replay takes a tile to have.
        assert_eq!(made.len(), 85 * tiles);
        assert!(made.iter().any(|&f| f > 0) && made.contains(&0));
        for share in [tiles - 2..tiles, 0..1, 1..tiles - 2, 2..2] {
            let theirs = part.separation_bounds_of(share.clone());
            let wrong = [&theirs[..], &[0]].concat();
            assert!(!taken.take_separation_bounds(share.clone(), &wrong));
            assert!(taken.take_separation_bounds(share, &theirs));
        }
        assert_eq!(taken.separation_bounds_of(0..tiles), made);
    }
}

#[test]
fn bounds_are_made_with_cells_that_others_made() {
    for mesh in [grid(60, 1.0), rest_shape(4)] {
        let case = Case::new(&mesh, 4, 0.005, wavy(7, 0.02, 1.0, 1.0));
        let geometry = case.geometry(&case.cloth[1]);
        let tiles = case.cloth[1].tiles();
        let mut rooms: [Volumes; 2] = Default::default();
        let [all, part] = rooms
            .each_mut()
            .map(|room| Snapshot::new(&geometry, room, &case.x, &case.v, 0.0, case.dt));
        for (place, tile) in tiles.iter().enumerate() {
            let beside = || (0..tile.beside.len()).map(move |which| (place, which));
            let cells = all.cells_beside(beside());
            // The numbers that a replay takes them to have.
            let expected = [0, 15 * 13, 0, 34 * 13][tile.beside.len()];
            assert_eq!(cells.len(), expected);
            for wrong in [&[&cells[..], &[0.0]].concat(), &[0.0; 14][..]] {
                let mut room = Volumes::default();
                let snap = Snapshot::new(&geometry, &mut room, &case.x, &case.v, 0.0, case.dt);
                assert!(!snap.take_cells_beside(beside(), wrong));
            }
            assert!(part.take_cells_beside(beside(), &cells));
            assert!(
                part.separation_bounds_of(place..place + 1)
                    == all.separation_bounds_of(place..place + 1)
            );
            // Nothing was made of other tiles.
            assert!(place > 0 || part.gradients_made() == 1);
        }
    }
}

#[test]
fn each_tile_is_shared_once_and_knows_those_beside_it() {
    let mesh = grid(60, 1.0);
    let case = Case::new(&mesh, 4, 0.005, |p| (p, DVec3::ZERO));
    let tiles = case.cloth[1].tiles();
    let order = case.cloth[1].culling().unwrap().charts.order();
    let mut sorted = order.to_vec();
    sorted.sort_unstable();
    assert!(sorted.iter().copied().eq(0..order.len() as u32));
    for (work, &tile) in tiles.iter().zip(order) {
        let tile = &case.cloth[1].culling().unwrap().charts.tiles()[tile as usize];
        assert_eq!(work.triangles as usize, tile.triangles.len());
        let beside = work.beside.iter().map(|&at| order[at as usize]);
        assert!(
            beside.eq(tile
                .next
                .into_iter()
                .filter(|&next| next != cull::charts::NONE))
        );
        assert!([0, 1, 3].contains(&work.beside.len()));
    }
}
