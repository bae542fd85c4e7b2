//! Fabrics by name: materials with the measurements of cloth that one can buy.
//!
//! The measurements are those of \[WOR11\], of ten fabrics, as the authors publish them for their
//! simulator: stiffness in the plane for six states of strain, stiffness of hinges for three
//! directions and five curvatures. A [`Material`] is linear and takes the first of each, of cloth
//! that is hardly strained and hardly bent. Knitted cloth stiffens when it is pulled, by up to ten
//! times; what a material has instead is its strain limit, which was not measured.
//!
//! * In the plane, stress is `2c₁₁ ε₁₁ + 2c₁₂ ε₂₂`, `2c₁₂ ε₁₁ + 2c₂₂ ε₂₂` and `c₃₃ γ₁₂`, with
//!   entries below zero taken for zero, as the simulator reads its numbers. Hence `E₁ = 2(c₁₁ −
//!   c₁₂²/c₂₂)`, `E₂ = 2(c₂₂ − c₁₂²/c₁₁)`, `ν₁₂ = c₁₂/c₂₂` and the shear modulus `c₃₃`.
//! * A hinge of length `l` between triangles of the areas `a₁` and `a₂` has the energy `k l² θ² /
//!   8(a₁ + a₂)`. A grid of squares halved by diagonals, each of which bends by `θ = κh` at its
//!   border and not at its diagonal, then has `k κ²/8` for each unit of its area, which is that of
//!   a sheet of rigidity `k/4`. Hinges along the first axis bend across it, so the rigidity along
//!   the first axis is measured by those along the second.
//!
//! The tenth, a sweater, is left out: its first stiffness is not positive definite, and no linear
//! cloth has such a one.
//!
//! * \[WOR11\] Wang, O'Brien, Ramamoorthi: Data-driven elastic models for cloth: modeling and
//!   measurement. ACM Transactions on Graphics 30(4), 2011.

use super::Material;

/// A fabric that was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fabric {
    /// How scenes call it.
    pub name: &'static str,
    /// The fibres that it is made of, and its use.
    pub of: &'static str,
    /// Its name among the measurements.
    pub sample: &'static str,
    /// Areal density in kg/m².
    density: f64,
    /// `c₁₁`, `c₁₂`, `c₂₂`, `c₃₃` in N/m.
    stiffness: [f64; 4],
    /// `k` of hinges along the first axis, at 45° to it and across it, in µN m.
    hinges: [f64; 3],
    strain_limit: f64,
}

impl Fabric {
    /// The fabrics that have a name in scenes.
    pub const ALL: [Self; 9] = [
        Self {
            name: "blanket",
            of: "polyester, for blankets",
            sample: "pink-ribbon-brown",
            density: 0.228,
            stiffness: [151.503906, 106.028160, 244.830673, 30.250183],
            hinges: [117.070122, 87.509773, 59.774277],
            strain_limit: KNITTED,
        },
        Self {
            name: "denim",
            of: "11 oz denim of cotton and 1 % spandex, for jeans",
            sample: "11oz-black-denim",
            density: 0.324,
            stiffness: [205.352005, 10.234077, 1013.88629, 53.387184],
            hinges: [64.196457, 73.384567, 96.951576],
            strain_limit: WOVEN,
        },
        Self {
            name: "interlock",
            of: "knitted 60 % cotton and 40 % polyester, for T-shirts",
            sample: "gray-interlock",
            density: 0.187,
            stiffness: [16.593832, -14.695990, 34.477123, 36.860302],
            hinges: [23.191698, 24.749964, 14.267624],
            strain_limit: KNITTED,
        },
        Self {
            name: "jacket",
            of: "polyester, for jackets",
            sample: "tango-red-jet-set",
            density: 0.113,
            stiffness: [43.067627, 54.373299, 171.424835, 14.314700],
            hinges: [14.293814, 21.951700, 20.345654],
            strain_limit: KNITTED,
        },
        Self {
            name: "ponte-roma",
            of: "knitted 60 % polyester and 40 % rayon, for jackets",
            sample: "camel-ponte-roma",
            density: 0.284,
            stiffness: [31.146198, -12.802702, 44.028667, 31.896357],
            hinges: [36.348366, 33.013252, 37.157593],
            strain_limit: KNITTED,
        },
        Self {
            name: "rib-knit",
            of: "knitted 95 % cotton and 5 % spandex, for underwear",
            sample: "ivory-rib-knit",
            density: 0.276,
            stiffness: [42.871021, -0.234556, 65.166023, 83.175644],
            hinges: [46.237591, 30.015930, 32.243889],
            strain_limit: KNITTED,
        },
        Self {
            name: "swimsuit",
            of: "87 % nylon and 13 % spandex, for swimsuits",
            sample: "white-swim-solid",
            density: 0.204,
            stiffness: [47.971176, 6.834521, 104.615456, 60.773663],
            hinges: [60.237942, 58.803211, 51.018833],
            strain_limit: KNITTED,
        },
        Self {
            name: "tablecloth",
            of: "polyester, for tablecloths",
            sample: "white-dots-on-blk",
            density: 0.128,
            stiffness: [2002.08618, 0.345588, 2027.48559, 19.189022],
            hinges: [51.713814, 40.659470, 31.282822],
            strain_limit: WOVEN,
        },
        Self {
            name: "trousers",
            of: "65 % cotton and 35 % polyester, for trousers",
            sample: "royal-target",
            density: 0.220,
            stiffness: [2016.55456, 9.170511, 2034.97644, 104.759674],
            hinges: [125.409805, 107.997696, 125.409805],
            strain_limit: WOVEN,
        },
    ];

    /// The linear material that is like it while it is hardly strained and hardly bent. Its strain
    /// limit was not measured; damping and drag, which were not either, are those of
    /// [`Material::COTTON`].
    #[must_use]
    pub fn material(&self) -> Material {
        let [c11, c12, c22, shear] = self.stiffness.map(|c| c.max(0.0));
        let [across, bias, along] = self.hinges.map(|k| 1e-6 * RIGIDITY_OF_HINGES * k);
        Material {
            density: self.density,
            stretch: [2.0 * (c11 - c12 * c12 / c22), 2.0 * (c22 - c12 * c12 / c11)],
            shear: Some(shear),
            poisson: c12 / c22,
            bending: [along, across],
            bending_bias: Some(bias),
            bending_fit: true,
            strain_limit: self.strain_limit,
            ..Material::COTTON
        }
    }
}

/// Woven cloth gives way by shearing long before its yarns do, so that its limit is one of shear:
/// squares become rhombs with angles of 46°, which is about as far as woven cloth can be sheared. A
/// smaller limit would hold threads that only turn.
const WOVEN: f64 = 0.3;
/// The strain at which samples of knitted cloth, measured at strains of a sixth, have become stiff.
const KNITTED: f64 = 0.25;
/// The rigidity of a grid whose hinges have `k = 1`.
const RIGIDITY_OF_HINGES: f64 = 0.25;

#[cfg(test)]
mod tests {
    use glam::{DQuat, DVec3};

    use super::*;
    use crate::mesh::grid;
    use crate::physics::membrane::Moduli;

    /// The stress of the measured law is that of the material, for any strain in the plane.
    #[test]
    fn moduli_are_those_measured() {
        for fabric in Fabric::ALL {
            let [c11, c12, c22, c33] = fabric.stiffness.map(|c| c.max(0.0));
            let moduli = Moduli::new(&fabric.material());
            let pairs = [
                (moduli.c11, 2.0 * c11),
                (moduli.c12, 2.0 * c12),
                (moduli.c22, 2.0 * c22),
                (moduli.c66, c33),
            ];
            for (ours, measured) in pairs {
                assert!(
                    (ours - measured).abs() <= 1e-12 * c22.max(measured),
                    "{}: {ours} instead of {measured} N/m",
                    fabric.name
                );
            }
            assert!(c11 * c22 > c12 * c12, "{}", fabric.name);
        }
    }

    /// A grid with hinges of `k = 1`, rolled up along its first axis, has the energy of a sheet of
    /// the rigidity that goes with them.
    #[test]
    fn hinges_have_the_rigidity_of_a_sheet() {
        let (n, radius) = (41, 0.5);
        let mut mesh = grid([1.0; 2], [n; 2], DVec3::ZERO, DVec3::ZERO).unwrap();
        let rest = mesh.positions.clone();
        for x in &mut mesh.positions {
            let turn = DQuat::from_rotation_y(x.x / radius);
            *x = turn * (radius * DVec3::Z) + x.y * DVec3::Y;
        }
        let normal = |t: [u32; 3], x: &[DVec3]| {
            let [a, b, c] = t.map(|v| x[v as usize]);
            (b - a).cross(c - a)
        };
        let mut energy = 0.0;
        for (i, &s) in mesh.triangles.iter().enumerate() {
            for &t in &mesh.triangles[i + 1..] {
                let shared: Vec<u32> = s.into_iter().filter(|v| t.contains(v)).collect();
                let [a, b] = shared[..] else { continue };
                let areas = [s, t].map(|t| 0.5 * normal(t, &rest).length());
                let angle = normal(s, &mesh.positions).angle_between(normal(t, &mesh.positions));
                let length = rest[a as usize].distance(rest[b as usize]);
                energy += (length * angle).powi(2) / (8.0 * (areas[0] + areas[1]));
            }
        }
        // Cells at the ends have one hinge, not two halves.
        let area = (n as f64 - 2.0) / (n as f64 - 1.0);
        let of_sheet = 0.5 * RIGIDITY_OF_HINGES * area / (radius * radius);
        assert!(
            (energy / of_sheet - 1.0).abs() < 1e-6,
            "{energy} instead of {of_sheet} J"
        );
    }
}
