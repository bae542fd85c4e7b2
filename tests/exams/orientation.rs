//! Bent to a cylinder about any direction, a sheet stores `½ D κ²` per area: how far hinges are from that on
//! several meshes, with plain prefactors and with those fitted to the mesh.
//!
//! Source: the energy of a plate, Timoshenko & Woinowsky-Krieger, Theory of Plates and Shells, § 11; that hinge
//! energies depend on the mesh, Grinspun et al. 2006, Computing discrete shape operators on general meshes.

use std::f64::consts::PI;

use glam::DVec3;
use weftwork::mesh::{TriMesh, grid};

use super::curve::{Axis, Curve, Series};
use super::rig::{Rig, equilateral, irregular};

const CELLS: usize = 24;

fn meshes() -> [(&'static str, TriMesh); 4] {
    let herringbone = grid([1.0; 2], [CELLS + 1; 2], DVec3::ZERO, DVec3::ZERO).unwrap();
    let mut parallel = herringbone.clone();
    for j in 0..CELLS {
        for i in 0..CELLS {
            let a = (j * (CELLS + 1) + i) as u32;
            let (b, c, d) = (a + 1, a + CELLS as u32 + 1, a + CELLS as u32 + 2);
            let first = 2 * (j * CELLS + i);
            parallel.triangles[first] = [a, b, d];
            parallel.triangles[first + 1] = [a, d, c];
        }
    }
    [
        ("herringbone", herringbone),
        ("irregular", irregular([1.0; 2], [CELLS; 2])),
        ("equilateral", equilateral([1.0; 2], CELLS)),
        ("parallel diagonals", parallel),
    ]
}

/// Energy of cylinders along 24 directions, `[angle in degrees, energy over that of a plate]`.
fn ratios(mesh: &TriMesh, bending: &str) -> Vec<[f64; 2]> {
    let material = format!("density = 0.15\nstretch = 1000\n{bending}");
    let world = Rig::new("", material).world_of(mesh);
    let model = world.model();
    let area: f64 = model.membranes().iter().map(|m| m.area()).sum();
    let radius = 5.0;
    let ratio = |angle: f64| {
        let along = DVec3::new(angle.cos(), angle.sin(), 0.0);
        let bend = |p: DVec3| {
            let s = p.dot(along);
            let turn = s / radius;
            p - along * s + along * (radius * turn.sin()) + DVec3::Z * (radius * (1.0 - turn.cos()))
        };
        let x: Vec<DVec3> = model.rest().iter().map(|&p| bend(p)).collect();
        let at = |vertices: [u32; 4]| vertices.map(|v| x[v as usize]);
        let hinges = model.hinges().iter().map(|h| h.energy(at(h.vertices)));
        let energy: f64 = hinges.sum();
        energy / (0.5 * 1e-5 * area / (radius * radius))
    };
    (0..24)
        .map(|k| PI * f64::from(k) / 24.0)
        .map(|angle| [angle.to_degrees(), ratio(angle)])
        .collect()
}

/// The least and the largest.
fn range(points: &[[f64; 2]]) -> [f64; 2] {
    points.iter().fold([f64::INFINITY, 0.0], |[low, high], p| {
        [low.min(p[1]), high.max(p[1])]
    })
}

pub fn curves() -> Vec<Curve> {
    let ways = [
        ("plain prefactors", "bending = 1e-5\nbending_fit = false"),
        ("prefactors fitted to the mesh", "bending = 1e-5"),
    ];
    ways.into_iter()
        .map(|(how, bending)| {
            let mut found = Vec::new();
            let mut series = vec![Series::known("plate", [[0.0, 1.0], [172.5, 1.0]])];
            for (name, mesh) in meshes() {
                let points = ratios(&mesh, bending);
                let [low, high] = range(&points);
                found.push(format!("{name} {low:.2} to {high:.2}"));
                series.push(Series::measured(name, points));
            }
            Curve {
                title: format!("Energy of cylinders, {how}"),
                x: Axis::linear("direction of bending, degrees"),
                y: Axis::linear("energy over that of a plate"),
                found: found.join(", "),
                series,
            }
        })
        .collect()
}

/// No prefactors make these meshes right: they have those that are nearest, which are the plain ones, and that is told.
#[test]
fn parallel_diagonals_keep_plain_prefactors_and_are_told() {
    for (name, mesh) in meshes() {
        let fitted = "bending = 1e-5";
        let material = format!("density = 0.15\nstretch = 1000\n{fitted}");
        let warnings = Rig::new("", material).world_of(&mesh).cautions();
        if name != "parallel diagonals" {
            assert!(warnings.is_empty(), "{name}: {warnings:?}");
            continue;
        }
        let [warning] = &warnings[..] else {
            panic!("one warning, not {warnings:?}")
        };
        assert!(
            warning.contains("is 0.75 to 2.96 times as stiff against bending"),
            "{warning}"
        );
        let ratios = ratios(&mesh, fitted);
        // Soft directions are what cloth bends at.
        let [low, high] = range(&ratios);
        assert!(low > 0.7 && high < 3.0, "{low} {high}");
        // Along the axes of the grid it is right, but for its borders.
        for axis in [ratios[0], ratios[12]] {
            assert!((axis[1] - 0.96).abs() < 0.02, "{axis:?}");
        }
    }
}

/// Also of woven cloth hinges have the rigidity across their edge, so that it bends by as much as it should along warp and weft.
#[test]
fn woven_cloth_on_parallel_diagonals_is_right_along_its_threads() {
    let [.., (_, mesh)] = meshes();
    let ratios = ratios(&mesh, "bending = [2e-5, 0.5e-5]");
    for (axis, known) in [(ratios[0], 2.0), (ratios[12], 0.5)] {
        assert!((axis[1] / known - 0.96).abs() < 0.02, "{axis:?}");
    }
}

#[test]
fn fitted_prefactors_bend_alike_in_all_directions_where_hinges_can() {
    for (name, mesh) in meshes() {
        let [low, high] = range(&ratios(&mesh, "bending = 1e-5"));
        if name == "parallel diagonals" {
            // No prefactors make this one right; the test above holds what it has.
            continue;
        }
        // Borders, which have no hinges, are a twelfth of these sheets.
        let within = 0.9..1.1;
        assert!(
            within.contains(&low) && within.contains(&high),
            "{name}: {low} {high}"
        );
        let plain = range(&ratios(&mesh, "bending = 1e-5\nbending_fit = false"));
        assert!(name == "equilateral" || plain[1] > 1.4, "{name}: {plain:?}");
    }
}
