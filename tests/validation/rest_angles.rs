//! Rest angles: cloth that is curved at rest and bends by dihedral angles stays as it is; with the
//! quadratic model, which takes the rest shape as flat, it unbends.
//!
//! Source: [Bridson 2003, §1.4].

use std::f64::consts::FRAC_PI_2;

use glam::DVec3;
use weftwork::mesh::TriMesh;

use super::rig::{Rig, forces};
#[cfg(test)]
use super::rig::{herringbone, irregular, parallel};

const RADIUS: f64 = 0.1;

/// A quarter of a ring, of folds or of shells.
fn quarter(mut mesh: TriMesh) -> TriMesh {
    for p in &mut mesh.positions {
        let (sin, cos) = (p.x * FRAC_PI_2).sin_cos();
        *p = DVec3::new(RADIUS * sin, 0.1 * p.y, RADIUS * (1.0 - cos));
    }
    mesh
}

/// The largest elastic force on a vertex of the ring as it was made, in N.
fn largest_force(mesh: &TriMesh, model: &str) -> f64 {
    let material =
        format!("density = 0.15\nstretch = 200\nbending = 1e-5\nbending_model = \"{model}\"");
    let world = Rig::new("", material).world_of(mesh);
    let forces = forces(&world, world.model().start());
    forces.iter().map(|f| f.length()).fold(0.0, f64::max)
}

#[test]
fn a_curved_strip_is_at_rest_with_its_own_angles_only() {
    let (size, cells) = ([1.0, 0.3], [24, 8]);
    for (mesh, least) in [
        (herringbone(size, cells), 1e-4),
        (parallel(size, cells), 5e-5),
        (irregular(size, cells), 5e-5),
    ] {
        let mesh = quarter(mesh);
        let [dihedral, quadratic] =
            ["dihedral", "quadratic"].map(|model| largest_force(&mesh, model));
        assert!(quadratic > least, "{quadratic}");
        assert!(dihedral < 1e-9 * quadratic, "{dihedral} {quadratic}");
    }
}
