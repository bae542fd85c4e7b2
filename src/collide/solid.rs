//! How deep a point lies inside a body: what starts are refused by and frames are judged by.
//!
//! Apart from the code that finds contacts, so that it can judge it. A formula where a body has one; for
//! any closed mesh the winding number, a sum of solid angles [van Oosterom & Strackee 1983], and inside
//! the distance to the nearest triangle.
//!
//! * [van Oosterom & Strackee 1983] The solid angle of a plane triangle.

use glam::DVec3;

use super::body::Analytic;
use super::closest::on_triangle;
use crate::mesh::TriMesh;
use crate::scene::{Body, Shape, Surface};

/// A body as a set of points, where it was placed.
#[derive(Clone, Debug)]
pub enum Solid {
    /// All points where the formula's distance is negative.
    Formula(Analytic),
    /// What lies under a square of triangles.
    UnderSquare {
        /// The plane of the square.
        plane: Analytic,
        /// The square's centre in m.
        center: DVec3,
        /// Radius in m of the circle in the square; beyond it nothing counts as inside.
        radius: f64,
    },
    /// What a closed mesh encloses.
    Mesh {
        /// The mesh, in m.
        mesh: TriMesh,
        /// Its corners' least coordinates in m.
        low: DVec3,
        /// And their greatest.
        high: DVec3,
    },
}

impl Solid {
    /// The solid of a body of the scene, whose triangles are `mesh`.
    #[must_use]
    pub fn new(body: &Body, mesh: &TriMesh) -> Self {
        match (Analytic::new(&body.shape), &body.shape) {
            (Some(plane), Shape::Plane { point, extent, .. })
                if body.surface != Surface::Analytic =>
            {
                Self::UnderSquare {
                    plane,
                    center: *point,
                    radius: 0.5 * extent,
                }
            }
            (Some(formula), _) => Self::Formula(formula),
            (None, _) => {
                let corners = mesh.positions.iter();
                Self::Mesh {
                    mesh: mesh.clone(),
                    low: corners.clone().fold(DVec3::INFINITY, |low, &p| low.min(p)),
                    high: corners.fold(DVec3::NEG_INFINITY, |high, &p| high.max(p)),
                }
            }
        }
    }

    /// How deep a point is inside, in m; negative outside, by how much is told for formulas only.
    #[must_use]
    pub fn depth(&self, p: DVec3) -> f64 {
        match self {
            Self::Formula(formula) => -formula.distance(p).0,
            Self::UnderSquare {
                plane,
                center,
                radius,
            } => {
                let (height, normal) = plane.distance(p);
                let aside = (p - *center) - normal * height;
                if aside.length() > *radius {
                    f64::NEG_INFINITY
                } else {
                    -height
                }
            }
            Self::Mesh { mesh, low, high } => {
                let boxed = p.cmpge(*low).all() && p.cmple(*high).all();
                if !boxed || winding_number(mesh, p) < 0.5 {
                    return f64::NEG_INFINITY;
                }
                let x = |v: u32| mesh.positions[v as usize];
                let distances = mesh.triangles.iter().map(|&[a, b, c]| {
                    let (a, b, c) = (x(a), x(b), x(c));
                    let w = on_triangle(p, a, b, c);
                    p.distance(a * w[0] + b * w[1] + c * w[2])
                });
                distances.fold(f64::INFINITY, f64::min)
            }
        }
    }
}

/// How often a closed mesh winds around a point: 1 inside, 0 outside.
fn winding_number(mesh: &TriMesh, p: DVec3) -> f64 {
    let x = |v: u32| mesh.positions[v as usize] - p;
    let angles = mesh.triangles.iter().map(|&[a, b, c]| {
        let (a, b, c) = (x(a), x(b), x(c));
        let (la, lb, lc) = (a.length(), b.length(), c.length());
        let volume = a.dot(b.cross(c));
        let scale = la * lb * lc + a.dot(b) * lc + b.dot(c) * la + c.dot(a) * lb;
        2.0 * libm::atan2(volume, scale)
    });
    angles.sum::<f64>() / (4.0 * std::f64::consts::PI)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::{cuboid, icosphere};

    fn enclosed(mesh: TriMesh) -> Solid {
        let corners = mesh.positions.clone();
        Solid::Mesh {
            mesh,
            low: corners.iter().fold(DVec3::INFINITY, |low, &p| low.min(p)),
            high: corners
                .iter()
                .fold(DVec3::NEG_INFINITY, |high, &p| high.max(p)),
        }
    }

    #[test]
    fn a_mesh_knows_its_inside_as_the_formula_does() {
        let size = DVec3::new(0.4, 0.6, 0.8);
        let cube = enclosed(cuboid(DVec3::X, size, 0.3).unwrap());
        let formula = Analytic::Box {
            center: DVec3::X,
            half: 0.5 * size,
            axes: None,
        };
        for i in 0..1000 {
            let t = f64::from(i);
            let p = DVec3::X + 0.6 * DVec3::new((7.1 * t).sin(), (3.3 * t).sin(), (1.7 * t).sin());
            let (gap, _) = formula.distance(p);
            let depth = cube.depth(p);
            if gap < 0.0 {
                assert!((depth + gap).abs() < 1e-12, "{p}: {depth} {gap}");
            } else {
                assert!(depth < 0.0, "{p}: {depth} {gap}");
            }
        }
        let ball = enclosed(icosphere(DVec3::ZERO, 1.0, 0.1).unwrap());
        assert!((ball.depth(DVec3::ZERO) - 1.0).abs() < 0.01);
        assert!(ball.depth(DVec3::splat(0.6)) < 0.0);
    }

    #[test]
    fn a_square_has_an_end() {
        let square = Solid::UnderSquare {
            plane: Analytic::Plane {
                point: DVec3::ZERO,
                normal: DVec3::Z,
            },
            center: DVec3::ZERO,
            radius: 0.5,
        };
        assert!((square.depth(DVec3::new(0.3, 0.0, -0.1)) - 0.1).abs() < 1e-15);
        assert!(square.depth(DVec3::new(0.8, 0.0, -0.1)) < 0.0);
    }
}
