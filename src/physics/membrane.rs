//! The in-plane elasticity of one triangle: corotational linear finite elements in plane stress.
//!
//! The deformation gradient `F` (3x2, from material to space) is split into a rotation and a stretch,
//! `F = R U`. Strain is `ε = U − I`, stress `S = λ tr(ε) I + 2μ ε`, both 2x2 in material axes, and the
//! force on corner `i` is `−A R S ∇Nᵢ`. The stiffness is the linear element's, turned by `R` ("warped"),
//! plus the exact stiffness of a tensioned element against motion out of its plane; that part keeps a
//! taut sheet stable at steps longer than its transverse waves need, and is left out under compression,
//! where it would make the matrix indefinite.
//!
//! Moduli are per width (Young's modulus times thickness, N/m), as cloth has no meaningful thickness.

use glam::{DMat3, DVec2, DVec3};

use crate::scene::Material;

/// A triangle's rest shape and moduli.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RestTriangle {
    /// Gradients of the three shape functions in material axes, 1/m.
    gradients: [DVec2; 3],
    /// Rest area in m².
    area: f64,
    /// Lamé's first parameter for plane stress, N/m.
    lambda: f64,
    /// Shear modulus, N/m.
    mu: f64,
}

/// How a triangle is deformed: all that forces and stiffness need.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Deformation {
    /// Material axes turned into space: the columns of `R`.
    axes: [DVec3; 2],
    /// `U`, symmetric: `[u₀₀, u₁₁, u₀₁]`.
    stretch: [f64; 3],
}

/// A principal direction of a triangle's deformation gradient.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PrincipalStretch {
    /// Length over rest length along it.
    pub stretch: f64,
    /// Unit vector along it in space.
    pub direction: DVec3,
    /// Corner `i` moving by `d` changes the stretch by `weights[i] d·direction`, to first order; 1/m.
    pub weights: [f64; 3],
}

/// The stiffness of a triangle as blocks `i, j`, kept in a form that yields each block cheaply.
#[derive(Clone, Copy, Debug)]
pub struct Stiffness {
    /// `R ∇Nᵢ`, 1/m.
    spatial: [DVec3; 3],
    gradients: [DVec2; 3],
    /// `R Rᵀ`, the projection onto the triangle's plane.
    plane: DMat3,
    /// Projection onto its normal.
    normal: DMat3,
    /// Tensile part of `S U⁻¹`, symmetric, N/m.
    tension: [f64; 3],
    area: f64,
    lambda: f64,
    mu: f64,
}

impl RestTriangle {
    /// Takes the rest shape from three corners in m; `None` if they do not span an area.
    #[must_use]
    pub fn new(corners: [DVec3; 3], material: &Material) -> Option<Self> {
        let (e1, e2) = (corners[1] - corners[0], corners[2] - corners[0]);
        let doubled = e1.cross(e2).length();
        let scale = e1.length_squared().max(e2.length_squared());
        if !(doubled.is_finite() && doubled > 1e-14 * scale && scale > 0.0) {
            return None;
        }
        // Material axes: the first edge and its normal in the plane; the law is isotropic.
        let length = e1.length();
        let (x1, x2, y2) = (length, e2.dot(e1) / length, doubled / length);
        let second = DVec2::new(-x2, x1) / doubled;
        let first = DVec2::new(y2, 0.0) / doubled;
        // ∇N₁ = (y₂, −x₂)/2A, ∇N₂ = (0, x₁)/2A, ∇N₀ = −∇N₁ − ∇N₂
        let n1 = DVec2::new(first.x, second.x);
        let n2 = DVec2::new(0.0, second.y);
        let (e, nu) = (material.stretch, material.poisson);
        Some(Self {
            gradients: [-(n1 + n2), n1, n2],
            area: 0.5 * doubled,
            lambda: e * nu / (1.0 - nu * nu),
            mu: 0.5 * e / (1.0 + nu),
        })
    }

    /// Rest area in m².
    #[must_use]
    pub fn area(&self) -> f64 {
        self.area
    }

    /// Splits the deformation gradient at corner positions `x` (m); `None` if the triangle collapsed
    /// to a line or is not finite.
    #[must_use]
    pub fn deform(&self, x: [DVec3; 3]) -> Option<Deformation> {
        let g = &self.gradients;
        let f0 = x[0] * g[0].x + x[1] * g[1].x + x[2] * g[2].x;
        let f1 = x[0] * g[0].y + x[1] * g[1].y + x[2] * g[2].y;
        let (c00, c11, c01) = (f0.length_squared(), f1.length_squared(), f0.dot(f1));
        // U = (C + √det C · I) / √(tr C + 2 √det C), the square root of a 2x2 matrix.
        let root = f0.cross(f1).length();
        let trace = (c00 + c11 + 2.0 * root).sqrt();
        if !(root.is_finite() && root > 1e-12 * (c00 + c11)) {
            return None;
        }
        let stretch = [(c00 + root) / trace, (c11 + root) / trace, c01 / trace];
        // R = F U⁻¹, and det U = √det C.
        let axes = [
            (f0 * stretch[1] - f1 * stretch[2]) / root,
            (f1 * stretch[0] - f0 * stretch[2]) / root,
        ];
        Some(Deformation { axes, stretch })
    }

    /// The principal directions along which the triangle with corners at `x` (m) is longer than `threshold`
    /// times its rest length, the longest first.
    pub fn stretched_beyond(
        &self,
        x: [DVec3; 3],
        threshold: f64,
    ) -> impl Iterator<Item = PrincipalStretch> + use<> {
        let g = self.gradients;
        let f0 = x[0] * g[0].x + x[1] * g[1].x + x[2] * g[2].x;
        let f1 = x[0] * g[0].y + x[1] * g[1].y + x[2] * g[2].y;
        let (c00, c11, c01) = (f0.length_squared(), f1.length_squared(), f0.dot(f1));
        let most = threshold * threshold;
        let (free0, free1) = (most - c00, most - c11);
        // C < most · I, as in most triangles at most times: decided without a root.
        let none = free0 > 0.0 && free1 > 0.0 && free0 * free1 > c01 * c01;
        // Eigenvalues of C = FᵀF are squares of stretches.
        let (mean, half) = (0.5 * (c00 + c11), 0.5 * (c00 - c11));
        let radius = if none {
            0.0
        } else {
            (half * half + c01 * c01).sqrt()
        };
        let first = if none || radius < 1e-14 * mean {
            DVec2::X
        } else if half > 0.0 {
            DVec2::new(half + radius, c01).normalize()
        } else {
            DVec2::new(c01, radius - half).normalize()
        };
        let axes = [(mean + radius, first), (mean - radius, first.perp())];
        axes.into_iter()
            .filter(move |(squared, _)| !none && *squared > most)
            .map(move |(squared, w)| {
                let stretch = squared.sqrt();
                PrincipalStretch {
                    stretch,
                    direction: (f0 * w.x + f1 * w.y) / stretch,
                    weights: g.map(|g| g.dot(w)),
                }
            })
    }

    /// Stress `S` in N/m, symmetric, in material axes.
    fn stress(&self, deformation: &Deformation) -> [f64; 3] {
        let [u00, u11, u01] = deformation.stretch;
        let (e00, e11) = (u00 - 1.0, u11 - 1.0);
        let pressure = self.lambda * (e00 + e11);
        [
            pressure + 2.0 * self.mu * e00,
            pressure + 2.0 * self.mu * e11,
            2.0 * self.mu * u01,
        ]
    }

    /// Elastic energy in J.
    #[must_use]
    pub fn energy(&self, deformation: &Deformation) -> f64 {
        let [u00, u11, u01] = deformation.stretch;
        let (e00, e11) = (u00 - 1.0, u11 - 1.0);
        let trace = e00 + e11;
        self.area
            * (0.5 * self.lambda * trace * trace
                + self.mu * (e00 * e00 + e11 * e11 + 2.0 * u01 * u01))
    }

    /// Forces on the three corners in N; their sum is zero to rounding.
    #[must_use]
    pub fn forces(&self, deformation: &Deformation) -> [DVec3; 3] {
        let [s00, s11, s01] = self.stress(deformation);
        let [r0, r1] = deformation.axes;
        let p0 = (r0 * s00 + r1 * s01) * -self.area;
        let p1 = (r0 * s01 + r1 * s11) * -self.area;
        self.gradients.map(|g| p0 * g.x + p1 * g.y)
    }

    /// The stiffness at this deformation.
    #[must_use]
    pub fn stiffness(&self, deformation: &Deformation) -> Stiffness {
        let [r0, r1] = deformation.axes;
        let normal = r0.cross(r1);
        Stiffness {
            spatial: self.gradients.map(|g| r0 * g.x + r1 * g.y),
            gradients: self.gradients,
            plane: outer(r0, r0) + outer(r1, r1),
            normal: outer(normal, normal),
            tension: self.tension(deformation),
            area: self.area,
            lambda: self.lambda,
            mu: self.mu,
        }
    }

    /// `S U⁻¹` with negative eigenvalues set to zero. `S` and `U` share their principal axes.
    fn tension(&self, deformation: &Deformation) -> [f64; 3] {
        let [u00, u11, u01] = deformation.stretch;
        let mean = 0.5 * (u00 + u11);
        let half = 0.5 * (u00 - u11);
        let radius = half.hypot(u01);
        let [u1, u2] = [mean + radius, mean - radius];
        let trace = self.lambda * (u1 + u2 - 2.0);
        let pull = |u: f64| ((trace + 2.0 * self.mu * (u - 1.0)) / u).max(0.0);
        let (t1, t2) = (pull(u1), pull(u2));
        if radius < 1e-14 * mean {
            return [t1, t1, 0.0];
        }
        // t₂ I + (t₁ − t₂) (U − u₂ I) / (u₁ − u₂)
        let weight = (t1 - t2) / (2.0 * radius);
        [
            t2 + weight * (u00 - u2),
            t2 + weight * (u11 - u2),
            weight * u01,
        ]
    }
}

impl Deformation {
    /// The largest principal strain, dimensionless: how much longer the material is in the direction in
    /// which it is stretched most. Cloth that is pressed together folds; that is not counted.
    #[must_use]
    pub fn strain(&self) -> f64 {
        let [u00, u11, u01] = self.stretch;
        0.5 * (u00 + u11) - 1.0 + (0.5 * (u00 - u11)).hypot(u01)
    }
}

impl Stiffness {
    /// `−∂fᵢ/∂xⱼ` of the turned linear element, in N/m; used for elasticity and for damping.
    #[must_use]
    pub fn elastic(&self, i: usize, j: usize) -> DMat3 {
        let (a, b) = (self.spatial[i], self.spatial[j]);
        let dot = self.gradients[i].dot(self.gradients[j]);
        (outer(a, b) * self.lambda + outer(b, a) * self.mu + self.plane * (self.mu * dot))
            * self.area
    }

    /// The part of `−∂fᵢ/∂xⱼ` that tension gives against motion out of the plane, in N/m.
    #[must_use]
    pub fn geometric(&self, i: usize, j: usize) -> DMat3 {
        let (g, h) = (self.gradients[i], self.gradients[j]);
        let [t00, t11, t01] = self.tension;
        let form = g.x * (t00 * h.x + t01 * h.y) + g.y * (t01 * h.x + t11 * h.y);
        self.normal * (self.area * form)
    }
}

/// `a bᵀ`.
fn outer(a: DVec3, b: DVec3) -> DMat3 {
    DMat3::from_cols(a * b.x, a * b.y, a * b.z)
}

#[cfg(test)]
mod tests {
    use glam::DQuat;

    use super::*;

    const MATERIAL: Material = Material {
        density: 0.15,
        stretch: 1000.0,
        poisson: 0.3,
        bending: 1e-5,
        damping_mass: 0.0,
        damping_stiffness: 0.0,
        strain_limit: 0.1,
    };

    fn corners() -> [DVec3; 3] {
        [
            DVec3::new(0.1, 0.2, 0.3),
            DVec3::new(1.2, 0.1, 0.4),
            DVec3::new(0.4, 0.9, -0.1),
        ]
    }

    fn deformed() -> [DVec3; 3] {
        [
            DVec3::new(0.0, 0.1, 0.2),
            DVec3::new(1.25, 0.3, 0.1),
            DVec3::new(0.3, 1.1, 0.2),
        ]
    }

    #[test]
    fn a_rigid_motion_gives_no_force() {
        let triangle = RestTriangle::new(corners(), &MATERIAL).unwrap();
        let turn = DQuat::from_axis_angle(DVec3::new(0.3, -0.5, 0.8).normalize(), 2.1);
        let moved = corners().map(|p| turn * p + DVec3::new(3.0, -2.0, 5.0));
        let deformation = triangle.deform(moved).unwrap();
        for force in triangle.forces(&deformation) {
            assert!(force.length() < 1e-11, "{force}");
        }
        assert!(deformation.strain() < 1e-14);
    }

    #[test]
    fn forces_are_minus_the_gradient_of_the_energy() {
        let triangle = RestTriangle::new(corners(), &MATERIAL).unwrap();
        let x = deformed();
        let forces = triangle.forces(&triangle.deform(x).unwrap());
        let step = 1e-6;
        for corner in 0..3 {
            for axis in [DVec3::X, DVec3::Y, DVec3::Z] {
                let energy = |sign: f64| {
                    let mut y = x;
                    y[corner] += axis * (sign * step);
                    triangle.energy(&triangle.deform(y).unwrap())
                };
                let slope = (energy(1.0) - energy(-1.0)) / (2.0 * step);
                assert!(
                    (forces[corner].dot(axis) + slope).abs() < 1e-5,
                    "{corner} {axis}"
                );
            }
        }
    }

    #[test]
    fn forces_sum_to_zero_and_have_no_moment() {
        let triangle = RestTriangle::new(corners(), &MATERIAL).unwrap();
        let x = deformed();
        let forces = triangle.forces(&triangle.deform(x).unwrap());
        let sum: DVec3 = forces.iter().sum();
        let moment: DVec3 = (0..3).map(|i| x[i].cross(forces[i])).sum();
        assert!(
            sum.length() < 1e-11 && moment.length() < 1e-11,
            "{sum} {moment}"
        );
    }

    /// Under pure tension the out-of-plane part is the exact derivative of the force along the normal.
    #[test]
    fn tension_stiffness_is_the_derivative_along_the_normal() {
        let rest = [DVec3::ZERO, DVec3::X, DVec3::Y];
        let triangle = RestTriangle::new(rest, &MATERIAL).unwrap();
        let x = [
            DVec3::ZERO,
            DVec3::new(1.02, 0.003, 0.0),
            DVec3::new(-0.002, 1.01, 0.0),
        ];
        let stiffness = triangle.stiffness(&triangle.deform(x).unwrap());
        let step = 1e-6;
        for j in 0..3 {
            let force = |sign: f64| {
                let mut y = x;
                y[j].z += sign * step;
                triangle.forces(&triangle.deform(y).unwrap())
            };
            let (up, down) = (force(1.0), force(-1.0));
            for i in 0..3 {
                let slope = (up[i].z - down[i].z) / (2.0 * step);
                let block = stiffness.geometric(i, j);
                assert!(
                    (block.z_axis.z + slope).abs() < 1e-6 * MATERIAL.stretch,
                    "{i} {j}"
                );
            }
        }
    }

    /// At rest the whole stiffness is the exact derivative of the force.
    #[test]
    fn stiffness_at_rest_is_the_derivative_of_the_force() {
        let triangle = RestTriangle::new(corners(), &MATERIAL).unwrap();
        let x = corners();
        let stiffness = triangle.stiffness(&triangle.deform(x).unwrap());
        let step = 1e-6;
        for j in 0..3 {
            for (axis, direction) in [DVec3::X, DVec3::Y, DVec3::Z].into_iter().enumerate() {
                let force = |sign: f64| {
                    let mut y = x;
                    y[j] += direction * (sign * step);
                    triangle.forces(&triangle.deform(y).unwrap())
                };
                let (up, down) = (force(1.0), force(-1.0));
                for i in 0..3 {
                    let slope = (up[i] - down[i]) / (2.0 * step);
                    let block = stiffness.elastic(i, j).col(axis);
                    assert!((slope + block).length() < 1e-4, "{i} {j} {axis}");
                }
            }
        }
    }

    #[test]
    fn principal_stretches_are_those_of_the_polar_decomposition_and_their_weights_the_gradient() {
        let triangle = RestTriangle::new(corners(), &MATERIAL).unwrap();
        let x = deformed();
        let found: Vec<_> = triangle.stretched_beyond(x, 0.0).collect();
        assert_eq!(found.len(), 2);
        assert!(found[0].stretch >= found[1].stretch);
        let strain = triangle.deform(x).unwrap().strain();
        assert!((found[0].stretch - 1.0 - strain).abs() < 1e-14);
        assert!(found[0].direction.dot(found[1].direction).abs() < 1e-14);
        let step = 1e-6;
        for (nth, axis) in found.iter().enumerate() {
            for corner in 0..3 {
                for d in [DVec3::X, DVec3::Y, DVec3::Z] {
                    let stretch = |sign: f64| {
                        let mut y = x;
                        y[corner] += d * (sign * step);
                        triangle.stretched_beyond(y, 0.0).nth(nth).unwrap().stretch
                    };
                    let slope = (stretch(1.0) - stretch(-1.0)) / (2.0 * step);
                    let expected = axis.weights[corner] * axis.direction.dot(d);
                    assert!((slope - expected).abs() < 1e-8, "{nth} {corner} {d}");
                }
            }
        }
        let between = 0.5 * (found[0].stretch + found[1].stretch);
        assert_eq!(triangle.stretched_beyond(x, between).count(), 1);
    }

    #[test]
    fn degenerate_triangles_are_refused() {
        assert!(RestTriangle::new([DVec3::ZERO, DVec3::X, DVec3::X * 2.0], &MATERIAL).is_none());
        assert!(RestTriangle::new([DVec3::ZERO; 3], &MATERIAL).is_none());
        assert!(RestTriangle::new([DVec3::ZERO, DVec3::X, DVec3::NAN], &MATERIAL).is_none());
        let triangle = RestTriangle::new([DVec3::ZERO, DVec3::X, DVec3::Y], &MATERIAL).unwrap();
        assert!(
            triangle
                .deform([DVec3::ZERO, DVec3::X, DVec3::X * 0.5])
                .is_none()
        );
        assert!(
            triangle
                .deform([DVec3::ZERO, DVec3::X, DVec3::NAN])
                .is_none()
        );
    }
}
