//! Bending of a pair of triangles across an edge: the quadratic model for flat rest shapes.
//!
//! For nearly isometric deformations the bending energy of an edge is a quadratic form of
//! positions, `E = ½ q Σᵢⱼ kᵢ kⱼ xᵢ·xⱼ` with cotangent weights `k` [BWHZG06, §3]: its stiffness is
//! constant, and each of its blocks is a scalar times the identity. The prefactor is `q = D/(A₁ +
//! A₂)`, with `D` the flexural rigidity in N m, and not the `3D/(A₁ + A₂)` that is often quoted:
//! bent to a cylinder, that form stores three times the energy `½ D κ²` per area of a plate
//! (`a_cylinder_stores_a_plates_energy` measures it). Even so the result depends on how the mesh
//! lies: exact along the axes of a herringbone grid, up to 1.75 times too stiff at 45° to them.
//!
//! The rest shape is taken as flat: a cloth made curved unbends.

use bytemuck::{Pod, Zeroable};
use glam::DVec3;

use crate::heap_bytes::owns_no_heap;

/// An interior edge with the two corners opposite to it, and the weights of its quadratic form.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Hinge {
    /// The edge's ends, then the corners opposite to it.
    pub vertices: [u32; 4],
    /// `kᵢ √q`: the form's block `i, j` is `weights[i] weights[j]` times the identity, in N/m.
    pub weights: [f64; 4],
}

owns_no_heap!(Hinge);

impl Hinge {
    /// Takes lengths and angles from the rest shape.
    ///
    /// `corners` are in the order of `vertices`, in m; `rigidity` is `D` in N m. `None` if one of
    /// the triangles spans no area.
    #[must_use]
    pub fn new(vertices: [u32; 4], corners: [DVec3; 4], rigidity: f64) -> Option<Self> {
        let [x0, x1, x2, x3] = corners;
        let area = 0.5 * ((x1 - x0).cross(x2 - x0).length() + (x1 - x0).cross(x3 - x0).length());
        let scale = (rigidity / area).sqrt();
        let weights = cotangent_weights(corners)?.map(|k| k * scale);
        weights
            .iter()
            .all(|w| w.is_finite())
            .then_some(Self { vertices, weights })
    }

    /// Bending energy in J at positions in the order of `vertices`.
    #[must_use]
    pub fn energy(&self, x: [DVec3; 4]) -> f64 {
        0.5 * self.curvature(x).length_squared()
    }

    /// `Σ weightsᵢ xᵢ`: the force on vertex `i` is `−weights[i]` times this, in N.
    #[must_use]
    pub fn curvature(&self, x: [DVec3; 4]) -> DVec3 {
        (x[0] * self.weights[0] + x[1] * self.weights[1])
            + (x[2] * self.weights[2] + x[3] * self.weights[3])
    }
}

/// `k` of an edge's ends and the corners opposite to it: `Σ kᵢ xᵢ` is the edge's length times how
/// far gradients to both sides of it differ
/// [BWHZG06, §3]. `None` if one of the triangles spans no area.
pub(super) fn cotangent_weights([x0, x1, x2, x3]: [DVec3; 4]) -> Option<[f64; 4]> {
    let cotangent = |at: DVec3, a: DVec3, b: DVec3| {
        let (p, q) = (a - at, b - at);
        p.dot(q) / p.cross(q).length()
    };
    let (c01, c02) = (cotangent(x0, x1, x2), cotangent(x0, x1, x3));
    let (c03, c04) = (cotangent(x1, x0, x2), cotangent(x1, x0, x3));
    let weights = [c03 + c04, c01 + c02, -c01 - c03, -c02 - c04];
    weights.iter().all(|k| k.is_finite()).then_some(weights)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::TriMesh;
    use crate::physics::model::tests::{grid, model_of};

    fn energy(mesh: &TriMesh, bent: impl Fn(DVec3) -> DVec3) -> f64 {
        let model = model_of(mesh);
        let x: Vec<DVec3> = mesh.positions.iter().map(|&p| bent(p)).collect();
        let quadratic = model.quadratic();
        let hinges = quadratic.hinges.iter();
        hinges
            .map(|h| h.energy(h.vertices.map(|v| x[v as usize])))
            .sum()
    }

    /// A plate bent to a cylinder of radius r stores ½ D A / r².
    #[test]
    fn a_cylinder_stores_a_plates_energy() {
        let mesh = grid(41, 1.0);
        let radius = 2.0;
        let expected = 0.5 * 1e-5 * 1.0 / (radius * radius);
        let about_y = |p: DVec3| {
            let angle = p.x / radius;
            DVec3::new(radius * angle.sin(), p.y, radius * (1.0 - angle.cos()))
        };
        let about_x = |p: DVec3| {
            let angle = p.y / radius;
            DVec3::new(p.x, radius * angle.sin(), radius * (1.0 - angle.cos()))
        };
        for measured in [energy(&mesh, about_y), energy(&mesh, about_x)] {
            assert!(
                (measured / expected - 1.0).abs() < 0.05,
                "{}",
                measured / expected
            );
        }
    }

    #[test]
    fn flat_and_rigidly_moved_sheets_store_nothing() {
        let mesh = grid(9, 1.0);
        let turn = glam::DQuat::from_euler(glam::EulerRot::XYZ, 0.4, 1.1, -0.7);
        assert!(energy(&mesh, |p| turn * p + DVec3::ONE) < 1e-18);
    }

    #[test]
    fn weights_sum_to_zero() {
        let hinge = Hinge::new(
            [0, 1, 2, 3],
            [
                DVec3::ZERO,
                DVec3::X,
                DVec3::new(0.3, 0.8, 0.0),
                DVec3::new(0.6, -0.7, 0.0),
            ],
            1e-5,
        )
        .unwrap();
        assert!(hinge.weights.iter().sum::<f64>().abs() < 1e-16);
        assert!(Hinge::new([0, 1, 2, 3], [DVec3::ZERO; 4], 1e-5).is_none());
    }
}
