//! The in-plane elasticity of one triangle: corotational linear finite elements in plane stress.
//!
//! The deformation gradient `F` (3x2, from material to space) is split into a rotation and a
//! stretch, `F = R U`. Strain is `ε = U − I`, stress `S = λ tr(ε) I + 2μ ε`, both 2x2 in material
//! axes, and the force on corner `i` is `−A R S ∇Nᵢ`. The stiffness is the linear element's, turned
//! by `R` ("warped"), plus the exact stiffness of a tensioned element against motion out of its
//! plane; that part keeps a taut sheet stable at steps longer than its transverse waves need, and
//! is left out under compression, where it would make the matrix indefinite.
//!
//! Woven cloth has another law, [`Moduli`], in the axes of its warp and weft. There `S` and `U`
//! need not share their axes, and the gradient of the energy with respect to `F` is `2 F Y`, with
//! `Y` the symmetric solution of `U Y + Y U = S` (from `dC = U dU + dU U`); `2Y` is `S U⁻¹` where
//! they do. So forces keep energy and momentum for any law.
//!
//! Moduli are per width (Young's modulus times thickness, N/m), as cloth has no meaningful
//! thickness.

use bytemuck::{Pod, Zeroable};
use glam::{DMat3, DVec2, DVec3};

use crate::heap_bytes::owns_no_heap;
use crate::scene::Material;

/// A triangle's rest shape and moduli.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RestTriangle {
    shape: TriangleShape,
    law: Law,
}

/// A triangle's rest shape, without the law of its cloth.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct TriangleShape {
    /// Gradients of the three shape functions in material axes, 1/m.
    gradients: [DVec2; 3],
    /// Rest area in m².
    area: f64,
}

owns_no_heap!(TriangleShape, Law);

/// Stress for strain, both in the axes of the gradients.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Law {
    /// A law that is the same in all directions.
    Isotropic {
        /// Lamé's first parameter for plane stress, N/m.
        lambda: f64,
        /// Shear modulus, N/m.
        mu: f64,
    },
    /// The first axis is the warp, the second the weft.
    Woven(Moduli),
}

/// Plane-stress moduli of an orthotropic sheet in N/m: stresses are `c₁₁ ε₁₁ + c₁₂ ε₂₂` along the
/// warp, `c₁₂ ε₁₁ + c₂₂ ε₂₂` along the weft, and `c₆₆ γ₁₂`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moduli {
    /// Warp.
    pub c11: f64,
    /// Weft.
    pub c22: f64,
    /// One for the other.
    pub c12: f64,
    /// Shear.
    pub c66: f64,
}

impl Law {
    /// The law of a material, which is the same for all triangles.
    pub(super) fn new(material: &Material) -> Self {
        if !material.is_isotropic() {
            return Self::Woven(Moduli::new(material));
        }
        let ([e, _], nu) = (material.stretch, material.poisson);
        Self::Isotropic {
            lambda: e * nu / (1.0 - nu * nu),
            mu: 0.5 * e / (1.0 + nu),
        }
    }
}

impl Moduli {
    /// Computes the moduli from Young's moduli along warp and weft, Poisson's ratio and shear
    /// modulus [Jones, Mechanics of Composite Materials, § 2.5]: `c₁₁ = E₁/(1 − ν₁₂ν₂₁)`, `c₁₂ =
    /// ν₁₂ E₂/(1 − ν₁₂ν₂₁)`, with `ν₂₁ = ν₁₂ E₂/E₁`.
    #[must_use]
    pub fn new(material: &Material) -> Self {
        let ([warp, weft], nu) = (material.stretch, material.poisson);
        let scale = 1.0 / (1.0 - nu * nu * weft / warp);
        Self {
            c11: warp * scale,
            c22: weft * scale,
            c12: nu * weft * scale,
            c66: material.shear_modulus(),
        }
    }

    /// Moduli multiplied by a factor, and the shear modulus by another.
    #[must_use]
    pub(super) fn scaled(self, stretch: f64, shear: f64) -> Self {
        Self {
            c11: self.c11 * stretch,
            c22: self.c22 * stretch,
            c12: self.c12 * stretch,
            c66: self.c66 * shear,
        }
    }
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
    /// Corner `i` moving by `d` changes the stretch by `weights[i] d·direction`, to first order;
    /// 1/m.
    pub weights: [f64; 3],
}

/// The stiffness of a triangle as blocks `i, j`, kept in a form that yields each block cheaply.
#[derive(Clone, Copy, Debug)]
pub struct Stiffness {
    /// `R ∇Nᵢ`, 1/m.
    spatial: [DVec3; 3],
    gradients: [DVec2; 3],
    axes: [DVec3; 2],
    /// `R Rᵀ`, the projection onto the triangle's plane.
    plane: DMat3,
    /// Projection onto its normal.
    normal: DMat3,
    /// Tensile part of `S U⁻¹`, symmetric, N/m.
    tension: [f64; 3],
    area: f64,
    law: Law,
}

impl RestTriangle {
    /// Takes the rest shape from three corners in m; `None` if they do not span an area, or if
    /// `warp`, which woven cloth takes its axes from, is perpendicular to them.
    #[must_use]
    pub fn new(corners: [DVec3; 3], material: &Material, warp: DVec3) -> Option<Self> {
        let (e1, e2) = (corners[1] - corners[0], corners[2] - corners[0]);
        let doubled = e1.cross(e2).length();
        let scale = e1.length_squared().max(e2.length_squared());
        if !(doubled.is_finite() && doubled > 1e-14 * scale && scale > 0.0) {
            return None;
        }
        // Axes: the first edge and its normal in the plane.
        let length = e1.length();
        let (x1, x2, y2) = (length, e2.dot(e1) / length, doubled / length);
        let second = DVec2::new(-x2, x1) / doubled;
        let first = DVec2::new(y2, 0.0) / doubled;
        // ∇N₁ = (y₂, −x₂)/2A, ∇N₂ = (0, x₁)/2A, ∇N₀ = −∇N₁ − ∇N₂
        let n1 = DVec2::new(first.x, second.x);
        let n2 = DVec2::new(0.0, second.y);
        let gradients = [-(n1 + n2), n1, n2];
        let area = 0.5 * doubled;
        let law = Law::new(material);
        let gradients = match law {
            Law::Isotropic { .. } => gradients,
            Law::Woven(_) => {
                let along = in_plane(corners, warp)?;
                gradients.map(|g| DVec2::new(g.dot(along), along.perp_dot(g)))
            }
        };
        let shape = TriangleShape { gradients, area };
        Some(Self { shape, law })
    }

    /// A triangle of this shape, of a cloth with this law.
    #[inline]
    pub(super) fn of(shape: TriangleShape, law: Law) -> Self {
        Self { shape, law }
    }

    /// The shape without the law.
    pub(super) fn shape(&self) -> TriangleShape {
        self.shape
    }

    /// Rest area in m².
    #[must_use]
    pub fn area(&self) -> f64 {
        self.shape.area
    }

    /// Gradients of the three shape functions in material axes, 1/m.
    #[inline]
    pub(super) fn gradients(&self) -> &[DVec2; 3] {
        &self.shape.gradients
    }

    /// Splits the deformation gradient at corner positions `x` (m); `None` if the triangle
    /// collapsed to a line or is not finite.
    #[must_use]
    pub fn deform(&self, x: [DVec3; 3]) -> Option<Deformation> {
        let ([f0, f1], [c00, c11, c01]) = self.gradient_of(x);
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

    /// Deformation gradient F by columns, and C = FᵀF as `[c₀₀, c₁₁, c₀₁]`, for corners at `x` (m).
    #[inline]
    fn gradient_of(&self, x: [DVec3; 3]) -> ([DVec3; 2], [f64; 3]) {
        let g = &self.shape.gradients;
        let f0 = x[0] * g[0].x + x[1] * g[1].x + x[2] * g[2].x;
        let f1 = x[0] * g[0].y + x[1] * g[1].y + x[2] * g[2].y;
        (
            [f0, f1],
            [f0.length_squared(), f1.length_squared(), f0.dot(f1)],
        )
    }

    /// Whether the triangle with corners at `x` (m) is shorter in all directions than `threshold`
    /// times its rest length. Decided without a root.
    #[inline]
    pub(crate) fn is_shorter(&self, x: [DVec3; 3], threshold: f64) -> bool {
        let (_, c) = self.gradient_of(x);
        is_below(c, threshold * threshold)
    }

    /// The largest principal strain of the triangle with corners at `x` (m), infinite if it has
    /// collapsed or is not finite; `None` if it is certainly not above one that is known. That is
    /// decided without a root.
    #[inline]
    pub(crate) fn strain_above(&self, known: f64, x: [DVec3; 3]) -> Option<f64> {
        let (_, c @ [c00, c11, c01]) = self.gradient_of(x);
        // Room for rounding: which triangles are computed depends on their order, the largest
        // strain of all must not.
        let shorter = is_below(c, (1.0 + known) * (1.0 + known) * (1.0 - 1e-12));
        // Well above rounding, and above where `deform` has it collapsed.
        let trace = c00 + c11;
        let spans = c00 * c11 - c01 * c01 > 1e-12 * trace * trace;
        if shorter && spans {
            return None;
        }
        Some(self.deform(x).map_or(f64::INFINITY, |d| d.strain()))
    }

    /// The principal directions along which the triangle with corners at `x` (m) is longer than
    /// `threshold` times its rest length, the longest first.
    pub(crate) fn stretched_beyond(
        &self,
        x: [DVec3; 3],
        threshold: f64,
    ) -> impl Iterator<Item = PrincipalStretch> + use<> {
        let most = threshold * threshold;
        self.principal(x, move |squared, _| squared > most)
    }

    /// Whether the triangle with corners at `x` (m) is longer in all directions than `threshold`
    /// times its rest length. Decided without a root.
    #[inline]
    pub(crate) fn is_longer(&self, x: [DVec3; 3], threshold: f64) -> bool {
        let (_, [c00, c11, c01]) = self.gradient_of(x);
        // C less the threshold is positive definite.
        is_below([-c00, -c11, c01], -threshold * threshold)
    }

    /// The principal directions along which the triangle with corners at `x` (m) is shorter than
    /// `threshold` times its rest length, the longest first; none along which it has collapsed, for
    /// that has no direction in space.
    pub(crate) fn pressed_below(
        &self,
        x: [DVec3; 3],
        threshold: f64,
    ) -> impl Iterator<Item = PrincipalStretch> + use<> {
        let least = threshold * threshold;
        self.principal(x, move |squared, mean| {
            squared < least && squared > 1e-12 * mean
        })
    }

    /// The principal directions of the triangle with corners at `x` (m), the longest first, as far
    /// as they are wanted by the square of the stretch and the mean of both squares.
    fn principal<F: Fn(f64, f64) -> bool>(
        &self,
        x: [DVec3; 3],
        wanted: F,
    ) -> impl Iterator<Item = PrincipalStretch> + use<F> {
        let g = self.shape.gradients;
        let ([f0, f1], [c00, c11, c01]) = self.gradient_of(x);
        // Eigenvalues of C = FᵀF are squares of stretches.
        let (mean, half) = (0.5 * (c00 + c11), 0.5 * (c00 - c11));
        let radius = (half * half + c01 * c01).sqrt();
        let first = if radius < 1e-14 * mean {
            DVec2::X
        } else if half > 0.0 {
            DVec2::new(half + radius, c01).normalize()
        } else {
            DVec2::new(c01, radius - half).normalize()
        };
        let axes = [(mean + radius, first), (mean - radius, first.perp())];
        axes.into_iter()
            .filter(move |(squared, _)| wanted(*squared, mean))
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
        match self.law {
            Law::Isotropic { lambda, mu } => {
                let pressure = lambda * (e00 + e11);
                [
                    pressure + 2.0 * mu * e00,
                    pressure + 2.0 * mu * e11,
                    2.0 * mu * u01,
                ]
            }
            Law::Woven(c) => [
                c.c11 * e00 + c.c12 * e11,
                c.c12 * e00 + c.c22 * e11,
                2.0 * c.c66 * u01,
            ],
        }
    }

    /// `2Y` with `U Y + Y U = S`, in N/m: `(det U · S + adj U · S · adj U) / (tr U · det U)`.
    fn pull(&self, deformation: &Deformation) -> [f64; 3] {
        let [s00, s11, s01] = self.stress(deformation);
        let [u00, u11, u01] = deformation.stretch;
        let (trace, det) = (u00 + u11, u00 * u11 - u01 * u01);
        // adj U = [[u₁₁, −u₀₁], [−u₀₁, u₀₀]], and its product with S and itself.
        let (a00, a01) = (u11 * s00 - u01 * s01, u11 * s01 - u01 * s11);
        let (a10, a11) = (u00 * s01 - u01 * s00, u00 * s11 - u01 * s01);
        let turned = [
            a00 * u11 - a01 * u01,
            a11 * u00 - a10 * u01,
            a01 * u00 - a00 * u01,
        ];
        let scale = 1.0 / (trace * det);
        [
            (det * s00 + turned[0]) * scale,
            (det * s11 + turned[1]) * scale,
            (det * s01 + turned[2]) * scale,
        ]
    }

    /// Elastic energy in J.
    #[must_use]
    pub fn energy(&self, deformation: &Deformation) -> f64 {
        let [u00, u11, u01] = deformation.stretch;
        let (e00, e11) = (u00 - 1.0, u11 - 1.0);
        let density = match self.law {
            Law::Isotropic { lambda, mu } => {
                let trace = e00 + e11;
                0.5 * lambda * trace * trace + mu * (e00 * e00 + e11 * e11 + 2.0 * u01 * u01)
            }
            Law::Woven(c) => {
                0.5 * (c.c11 * e00 * e00 + c.c22 * e11 * e11)
                    + c.c12 * e00 * e11
                    + 2.0 * c.c66 * u01 * u01
            }
        };
        self.shape.area * density
    }

    /// Forces on the three corners in N; their sum is zero to rounding.
    #[must_use]
    pub fn forces(&self, deformation: &Deformation) -> [DVec3; 3] {
        let [r0, r1] = deformation.axes;
        let [s00, s11, s01] = match self.law {
            Law::Isotropic { .. } => self.stress(deformation),
            Law::Woven(_) => {
                // P = 2 F Y, with F = R U.
                let [u00, u11, u01] = deformation.stretch;
                let [y00, y11, y01] = self.pull(deformation);
                let (f0, f1) = (r0 * u00 + r1 * u01, r0 * u01 + r1 * u11);
                let p0 = (f0 * y00 + f1 * y01) * -self.shape.area;
                let p1 = (f0 * y01 + f1 * y11) * -self.shape.area;
                return self.shape.gradients.map(|g| p0 * g.x + p1 * g.y);
            }
        };
        let p0 = (r0 * s00 + r1 * s01) * -self.shape.area;
        let p1 = (r0 * s01 + r1 * s11) * -self.shape.area;
        self.shape.gradients.map(|g| p0 * g.x + p1 * g.y)
    }

    /// The stiffness at this deformation.
    #[must_use]
    pub fn stiffness(&self, deformation: &Deformation) -> Stiffness {
        let [r0, r1] = deformation.axes;
        let normal = r0.cross(r1);
        Stiffness {
            spatial: self.shape.gradients.map(|g| r0 * g.x + r1 * g.y),
            gradients: self.shape.gradients,
            axes: deformation.axes,
            plane: outer(r0, r0) + outer(r1, r1),
            normal: outer(normal, normal),
            tension: self.tension(deformation),
            area: self.shape.area,
            law: self.law,
        }
    }

    /// `S U⁻¹`, or `2Y`, with negative eigenvalues set to zero.
    fn tension(&self, deformation: &Deformation) -> [f64; 3] {
        let Law::Isotropic { lambda, mu } = self.law else {
            return positive(self.pull(deformation));
        };
        // S and U share their principal axes.
        let [u00, u11, u01] = deformation.stretch;
        let mean = 0.5 * (u00 + u11);
        let half = 0.5 * (u00 - u11);
        // Not `hypot`, which is that of the system's library.
        let radius = DVec2::new(half, u01).length();
        let [u1, u2] = [mean + radius, mean - radius];
        let trace = lambda * (u1 + u2 - 2.0);
        let pull = |u: f64| ((trace + 2.0 * mu * (u - 1.0)) / u).max(0.0);
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
    /// The largest principal strain, dimensionless: how much longer the material is in the
    /// direction in which it is stretched most. Cloth that is pressed together folds; that is not
    /// counted.
    #[must_use]
    pub fn strain(&self) -> f64 {
        let [u00, u11, u01] = self.stretch;
        0.5 * (u00 + u11) - 1.0 + DVec2::new(0.5 * (u00 - u11), u01).length()
    }

    /// The largest and the least principal stretch: lengths over those at rest.
    #[must_use]
    pub(crate) fn stretches(&self) -> [f64; 2] {
        let [u00, u11, u01] = self.stretch;
        let radius = DVec2::new(0.5 * (u00 - u11), u01).length();
        [0.5 * (u00 + u11) + radius, 0.5 * (u00 + u11) - radius]
    }
}

impl Stiffness {
    /// `−∂fᵢ/∂xⱼ` of the turned linear element, in N/m; used for elasticity and for damping.
    #[must_use]
    pub fn elastic(&self, i: usize, j: usize) -> DMat3 {
        let (a, b) = (self.spatial[i], self.spatial[j]);
        let (g, h) = (self.gradients[i], self.gradients[j]);
        match self.law {
            Law::Isotropic { lambda, mu } => {
                (outer(a, b) * lambda + outer(b, a) * mu + self.plane * (mu * g.dot(h))) * self.area
            }
            Law::Woven(c) => {
                // Bᵢᵀ C Bⱼ in the turned axes.
                let [r0, r1] = self.axes;
                let k00 = c.c11 * g.x * h.x + c.c66 * g.y * h.y;
                let k01 = c.c12 * g.x * h.y + c.c66 * g.y * h.x;
                let k10 = c.c12 * g.y * h.x + c.c66 * g.x * h.y;
                let k11 = c.c22 * g.y * h.y + c.c66 * g.x * h.x;
                (outer(r0, r0 * k00 + r1 * k01) + outer(r1, r0 * k10 + r1 * k11)) * self.area
            }
        }
    }

    /// Multiplies the moduli of stretching and of shearing by a factor each: for woven
    /// cloth, whose damping may be of each its own.
    #[must_use]
    pub fn scaled(mut self, stretch: f64, shear: f64) -> Self {
        let moduli = match self.law {
            Law::Woven(moduli) => moduli,
            Law::Isotropic { lambda, mu } => Moduli {
                c11: lambda + 2.0 * mu,
                c22: lambda + 2.0 * mu,
                c12: lambda,
                c66: mu,
            },
        };
        self.law = Law::Woven(moduli.scaled(stretch, shear));
        self
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

/// A direction in the plane of a triangle, in the axes of its first edge and the normal to that in
/// the plane; `None` if it is perpendicular to the plane.
#[must_use]
pub(crate) fn in_plane(corners: [DVec3; 3], direction: DVec3) -> Option<DVec2> {
    let edge = corners[1] - corners[0];
    let normal = edge.cross(corners[2] - corners[0]);
    let across = normal.cross(edge).try_normalize()?;
    let along = DVec2::new(edge.try_normalize()?.dot(direction), across.dot(direction));
    (along.length() > PERPENDICULAR * direction.length()).then(|| along.normalize())
}

/// Part of a unit vector in a plane below which it has no direction there.
const PERPENDICULAR: f64 = 1e-3;

/// A symmetric matrix `[m₀₀, m₁₁, m₀₁]` with its negative eigenvalues set to zero.
fn positive([m00, m11, m01]: [f64; 3]) -> [f64; 3] {
    let (mean, half) = (0.5 * (m00 + m11), 0.5 * (m00 - m11));
    let radius = DVec2::new(half, m01).length();
    let (most, least) = ((mean + radius).max(0.0), (mean - radius).max(0.0));
    if radius <= 1e-14 * mean.abs() {
        return [most, most, 0.0];
    }
    // least I + (most − least) (M − (mean − radius) I) / 2 radius
    let weight = (most - least) / (2.0 * radius);
    [
        least + weight * (half + radius),
        least + weight * (radius - half),
        weight * m01,
    ]
}

/// `a bᵀ`.
pub(crate) fn outer(a: DVec3, b: DVec3) -> DMat3 {
    DMat3::from_cols(a * b.x, a * b.y, a * b.z)
}

/// C < most · I, for C as `[c₀₀, c₁₁, c₀₁]`.
#[inline]
fn is_below([c00, c11, c01]: [f64; 3], most: f64) -> bool {
    let (free0, free1) = (most - c00, most - c11);
    free0 > 0.0 && free1 > 0.0 && free0 * free1 > c01 * c01
}

#[cfg(test)]
mod tests {
    use glam::DQuat;

    use super::*;

    const MATERIAL: Material = Material::COTTON;

    fn woven() -> Material {
        Material {
            stretch: [1000.0, 300.0],
            poisson: 0.25,
            shear: Some(40.0),
            ..Material::COTTON
        }
    }

    /// All triangles of these tests, of isotropic and of woven cloth.
    fn triangles() -> [RestTriangle; 2] {
        let warp = DVec3::new(0.6, -0.4, 0.2);
        [MATERIAL, woven()].map(|m| RestTriangle::new(corners(), &m, warp).unwrap())
    }

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
        for triangle in triangles() {
            let turn = DQuat::from_axis_angle(DVec3::new(0.3, -0.5, 0.8).normalize(), 2.1);
            let moved = corners().map(|p| turn * p + DVec3::new(3.0, -2.0, 5.0));
            let deformation = triangle.deform(moved).unwrap();
            for force in triangle.forces(&deformation) {
                assert!(force.length() < 1e-11, "{force}");
            }
            assert!(deformation.strain() < 1e-14);
        }
    }

    #[test]
    fn forces_are_minus_the_gradient_of_the_energy() {
        for triangle in triangles() {
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
    }

    #[test]
    fn forces_sum_to_zero_and_have_no_moment() {
        for triangle in triangles() {
            let x = deformed();
            let forces = triangle.forces(&triangle.deform(x).unwrap());
            let sum: DVec3 = forces.iter().sum();
            let moment: DVec3 = (0..3).map(|i| x[i].cross(forces[i])).sum();
            assert!(
                sum.length() < 1e-11 && moment.length() < 1e-11,
                "{sum} {moment}"
            );
        }
    }

    /// Under pure tension the out-of-plane part is the exact derivative of the force along the
    /// normal.
    #[test]
    fn tension_stiffness_is_the_derivative_along_the_normal() {
        let rest = [DVec3::ZERO, DVec3::X, DVec3::Y];
        let triangle = RestTriangle::new(rest, &MATERIAL, DVec3::X).unwrap();
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
                    (block.z_axis.z + slope).abs() < 1e-6 * MATERIAL.stretch[0],
                    "{i} {j}"
                );
            }
        }
    }

    /// The stiffness at rest is the exact derivative of the force.
    #[test]
    fn stiffness_at_rest_is_the_derivative_of_the_force() {
        for triangle in triangles() {
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
    }

    #[test]
    fn principal_stretches_are_those_of_the_polar_decomposition_and_their_weights_the_gradient() {
        let triangle = RestTriangle::new(corners(), &MATERIAL, DVec3::X).unwrap();
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
        assert_eq!(triangle.strain_above(strain + 1e-9, x), None);
        assert_eq!(triangle.strain_above(strain, x), Some(strain));
        assert_eq!(
            triangle.strain_above(1.0, [x[0], x[1], x[0]]),
            Some(f64::INFINITY)
        );
        assert_eq!(
            triangle.strain_above(1.0, [x[0], x[1], DVec3::NAN]),
            Some(f64::INFINITY)
        );
    }

    #[test]
    fn equal_moduli_make_woven_cloth_isotropic() {
        let turned = Material {
            shear: Some(MATERIAL.shear_modulus()),
            ..MATERIAL
        };
        assert!(!turned.is_isotropic() && MATERIAL.is_isotropic());
        let warp = DVec3::new(0.3, 0.8, -0.1);
        let [a, b] = [MATERIAL, turned].map(|m| RestTriangle::new(corners(), &m, warp).unwrap());
        let deformations = [a, b].map(|t| t.deform(deformed()).unwrap());
        let forces = [a.forces(&deformations[0]), b.forces(&deformations[1])];
        for (f, g) in forces[0].iter().zip(forces[1]) {
            assert!((*f - g).length() < 1e-10);
        }
        let stiffness = [a.stiffness(&deformations[0]), b.stiffness(&deformations[1])];
        for i in 0..3 {
            for j in 0..3 {
                let near = |m: DMat3, n: DMat3| m.abs_diff_eq(n, 1e-9);
                assert!(near(stiffness[0].elastic(i, j), stiffness[1].elastic(i, j)));
                assert!(near(
                    stiffness[0].geometric(i, j),
                    stiffness[1].geometric(i, j)
                ));
            }
        }
    }

    #[test]
    fn warp_perpendicular_to_a_triangle_is_refused_for_woven_cloth_only() {
        let rest = [DVec3::ZERO, DVec3::X, DVec3::Y];
        assert!(RestTriangle::new(rest, &MATERIAL, DVec3::Z).is_some());
        assert!(RestTriangle::new(rest, &woven(), DVec3::Z).is_none());
    }

    #[test]
    fn degenerate_triangles_are_refused() {
        assert!(
            RestTriangle::new([DVec3::ZERO, DVec3::X, DVec3::X * 2.0], &MATERIAL, DVec3::X)
                .is_none()
        );
        assert!(RestTriangle::new([DVec3::ZERO; 3], &MATERIAL, DVec3::X).is_none());
        assert!(
            RestTriangle::new([DVec3::ZERO, DVec3::X, DVec3::NAN], &MATERIAL, DVec3::X).is_none()
        );
        let triangle =
            RestTriangle::new([DVec3::ZERO, DVec3::X, DVec3::Y], &MATERIAL, DVec3::X).unwrap();
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
