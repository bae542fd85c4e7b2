//! The mass-spring model on equilateral triangles is the sheet of its stiffness with ν = 1/3:
//! energy of uniaxial stress in any direction, `½ E h e²` per area, and of equal strains, `E h
//! e²/(1 − ν)`.
//!
//! Source: Van Gelder 1998, Approximate simulation of elastic membranes by triangulated spring
//! meshes, and
//! [Bridson 2003, §1.2]; the triangular lattice of springs, Ostoja-Starzewski 2002.

use std::f64::consts::PI;

use glam::{DMat2, DVec2, DVec3};
use weftwork::mesh::TriMesh;

use super::curve::{Axis, Curve, Series, percent, worst};
use super::rig::{Rig, equilateral, irregular};

const STIFFNESS: f64 = 500.0;
const STRAIN: f64 = 1e-4;

/// Energy per area over that of the sheet, under uniaxial stress along each angle, and under equal
/// strains.
fn ratios(mesh: &TriMesh) -> (Vec<[f64; 2]>, f64) {
    let material =
        format!("density = 0.15\nmodel = \"springs\"\nstretch = {STIFFNESS}\nbending = 0");
    let world = Rig::new("", material).world_of(mesh);
    let area: f64 = world.model().membranes().map(|m| m.area()).sum();
    let density = |strain: DMat2| {
        let moved = |p: &DVec3| {
            let flat = DVec2::new(p.x, p.y);
            *p + (strain * flat).extend(0.0)
        };
        let x: Vec<DVec3> = world.model().start().iter().map(moved).collect();
        world.model().elastic_energy(&x).unwrap() / area
    };
    let unit = STIFFNESS * STRAIN * STRAIN;
    let uniaxial = (0..12).map(|k| {
        let turn = DMat2::from_angle(PI * f64::from(k) / 12.0);
        let strain = DMat2::from_diagonal(DVec2::new(STRAIN, -STRAIN / 3.0));
        let ratio = density(turn * strain * turn.transpose()) / (0.5 * unit);
        [15.0 * f64::from(k), ratio]
    });
    let biaxial = density(DMat2::from_diagonal(DVec2::splat(STRAIN))) / (unit / (1.0 - 1.0 / 3.0));
    (uniaxial.collect(), biaxial)
}

pub fn curves() -> Vec<Curve> {
    let (regular, biaxial) = ratios(&equilateral([1.0; 2], 12));
    let (grid, _) = ratios(&irregular([1.0; 2], [12, 12]));
    let pairs = regular.iter().map(|p| (p[1], 1.0)).chain([(biaxial, 1.0)]);
    vec![Curve {
        title: "Springs along edges, uniaxial stress".into(),
        x: Axis::linear("angle, degrees"),
        y: Axis::linear("energy over that of a sheet"),
        found: format!(
            "on equilateral triangles within {}; irregular right triangles {}",
            percent(worst(pairs)),
            percent(worst(grid.iter().map(|p| (p[1], 1.0))))
        ),
        series: vec![
            Series::known("sheet with ν = 1/3", [[0.0, 1.0], [165.0, 1.0]]),
            Series::measured("equilateral", regular),
            Series::measured("irregular right triangles", grid),
        ],
    }]
}

#[test]
fn springs_on_equilateral_triangles_are_an_isotropic_sheet() {
    let (uniaxial, biaxial) = ratios(&equilateral([1.0; 2], 12));
    for [angle, ratio] in uniaxial {
        assert!((ratio - 1.0).abs() < 1e-3, "{angle}: {ratio}");
    }
    assert!((biaxial - 1.0).abs() < 1e-3, "{biaxial}");
}
