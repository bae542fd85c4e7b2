//! Patch test: an affine map of an irregular mesh leaves no force on inner vertices, and every
//! border answers with the stress of the law, for isotropic and woven cloth.
//!
//! Source: Irons & Razzaque 1972 (Strang & Fix, An Analysis of the Finite Element Method, § 4.2);
//! it is what makes elements converge.

use super::curve::{Axis, Curve, Series};
use super::rig::homogeneous;

const ISOTROPIC: &str = "density = 0.15\nstretch = 1000\npoisson = 0.3\nbending = 0";
const WOVEN: &str = "density = 0.15\nstretch = [2000, 600]\nshear = 50\npoisson = 0.2\nbending = 0";

/// The largest force on an inner vertex, as a share of the force on a cell of 1/6 m at this strain.
fn residual(material: &str, strain: f64) -> f64 {
    let (stress, inside) = homogeneous(material, 0.4, [strain, -0.3 * strain, 0.5 * strain]);
    inside / (stress[0].abs() / 6.0)
}

pub fn curves() -> Vec<Curve> {
    let strains = [1e-3, 3e-3, 1e-2, 3e-2, 0.1];
    let of = |name: &str, material: &str| {
        Series::measured(name, strains.map(|e| [e, residual(material, e)]))
    };
    let series = vec![of("isotropic", ISOTROPIC), of("woven", WOVEN)];
    let worst = series.iter().flat_map(|s| s.points.iter().map(|p| p[1]));
    let worst = worst.fold(0.0, f64::max);
    vec![Curve {
        title: "Patch test: what should be zero".into(),
        x: Axis::logarithmic("strain"),
        y: Axis::logarithmic("inner force over cell's force"),
        found: format!("inner forces below {worst:.0e} of a cell's"),
        series,
    }]
}

#[test]
fn inner_vertices_of_a_patch_feel_no_force() {
    for material in [ISOTROPIC, WOVEN] {
        for strain in [1e-3, 0.1] {
            let residual = residual(material, strain);
            assert!(residual < 1e-10, "{material} {strain}: {residual}");
        }
    }
}
