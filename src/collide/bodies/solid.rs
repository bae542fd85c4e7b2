//! How deep a point lies inside a body: what starts are refused by and frames are judged by.
//!
//! Apart from the code that finds contacts, so that it can judge it. A formula where a body has
//! one; for any closed mesh what it encloses (`enclosed`), and inside the distance to the nearest
//! triangle. A body that cloth meets by its sampled distance has its inside where that is
//! negative.

use std::sync::Arc;

use glam::DVec3;

use crate::collide::bodies::collider::{Analytic, DistanceBody};
use crate::collide::bodies::enclosed::Enclosed;
use crate::heap_bytes::HeapBytes;
use crate::mesh::TriMesh;
use crate::scene::{Body, Shape, Surface};

/// A body as a set of points, where it was placed.
#[derive(Clone, Debug)]
pub enum Solid {
    /// All points where the formula's distance is negative.
    Formula(Analytic),
    /// The space under a square of triangles.
    UnderSquare {
        /// The plane of the square.
        plane: Analytic,
        /// The square's centre in m.
        center: DVec3,
        /// Radius in m of the circle in the square; beyond it nothing counts as inside.
        radius: f64,
    },
    /// The inside of a closed mesh.
    Mesh(Box<Enclosed>),
    /// All points where the sampled distance from a closed mesh is negative, at time 0.
    Sampled(Arc<DistanceBody>),
}

impl HeapBytes for Solid {
    fn heap_bytes(&self) -> usize {
        match self {
            Self::Formula(_) | Self::UnderSquare { .. } => 0,
            Self::Mesh(enclosed) => enclosed.heap_bytes(),
            // The collider counts it.
            Self::Sampled(_) => 0,
        }
    }
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
            (None, _) => Self::Mesh(Box::new(Enclosed::new(mesh))),
        }
    }

    /// How deep a point is inside, in m; negative outside, for formulas by the distance.
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
            Self::Mesh(enclosed) => enclosed.depth(p),
            Self::Sampled(body) => -body.then(0.0).distance(p),
        }
    }

    /// The body itself, if cloth meets it by its sampled distance.
    #[must_use]
    pub(crate) fn sampled(&self) -> Option<&Arc<DistanceBody>> {
        match self {
            Self::Sampled(body) => Some(body),
            Self::Formula(_) | Self::UnderSquare { .. } | Self::Mesh(_) => None,
        }
    }

    /// How deep a point is inside, in m, and the unit vector to where it is nearest to being out;
    /// `None` outside.
    #[must_use]
    pub(crate) fn way_out(&self, p: DVec3) -> Option<(f64, DVec3)> {
        let direction = match self {
            Self::Formula(formula) | Self::UnderSquare { plane: formula, .. } => {
                formula.distance(p).1
            }
            Self::Mesh(enclosed) => return enclosed.way_out(p),
            Self::Sampled(body) => body.then(0.0).normal(p),
        };
        let depth = self.depth(p);
        (depth >= 0.0).then_some((depth, direction))
    }

    /// The distance of a point from the surface in m, negative inside; infinite beside a square of
    /// triangles.
    #[must_use]
    pub fn gap(&self, p: DVec3) -> f64 {
        match self {
            Self::Mesh(enclosed) => enclosed.gap(p),
            Self::Sampled(body) => body.mesh_at_start().gap(p),
            Self::Formula(_) | Self::UnderSquare { .. } => -self.depth(p),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::{cuboid, icosphere};

    fn enclosed(mesh: TriMesh) -> Solid {
        Solid::Mesh(Box::new(Enclosed::new(&mesh)))
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
            assert!((cube.gap(p) - gap).abs() < 1e-12, "{p}: {gap}");
        }
        let ball = enclosed(icosphere(DVec3::ZERO, 1.0, 0.1).unwrap());
        assert!((ball.depth(DVec3::ZERO) - 1.0).abs() < 0.01);
        assert!(ball.depth(DVec3::splat(0.6)) < 0.0);
    }

    #[test]
    fn the_way_out_ends_on_the_surface() {
        let size = DVec3::new(0.4, 0.6, 0.8);
        let cube = enclosed(cuboid(DVec3::X, size, 0.3).unwrap());
        let p = DVec3::new(1.15, 0.1, -0.2);
        let (depth, direction) = cube.way_out(p).unwrap();
        assert!((depth - 0.05).abs() < 1e-12 && (direction - DVec3::X).length() < 1e-12);
        assert_eq!(cube.way_out(DVec3::new(1.25, 0.1, -0.2)), None);
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
