//! The friction of each pair of a scene.
//!
//! A pair has the geometric mean of Coulomb's coefficients of both sides. A cloth that has none of
//! its own takes that of a body that it meets, and `contact.self_friction` against cloth.

use std::sync::Arc;

use crate::collide::Contact;
use crate::collide::contact::PairKind;
use crate::equal_runs::EqualRuns;
use crate::heap_bytes::counts_heap;
use crate::physics::ClothModel;
use crate::scene::{Body, Scene};

/// The friction of each pair of cloths and bodies.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Friction {
    /// The coefficient of cloth that has none of its own, on cloth.
    layers: f64,
    /// The coefficient of each body.
    bodies: Vec<f64>,
    /// The coefficients of cloths, if any has its own.
    own: Option<Own>,
}

counts_heap!(Friction: bodies, own; without layers);

/// The coefficients that cloths have of their own.
#[derive(Clone, Debug, PartialEq)]
struct Own {
    of_cloth: Vec<Option<f64>>,
    cloth_of_vertex: Arc<EqualRuns<u32>>,
}

counts_heap!(Own: of_cloth, cloth_of_vertex);

impl Own {
    fn of(&self, vertex: u32) -> Option<f64> {
        self.of_cloth[self.cloth_of_vertex.at(vertex) as usize]
    }
}

impl Friction {
    /// The friction of a scene's pairs; `model` numbers the vertices of its cloths.
    pub(super) fn new(scene: &Scene, model: &ClothModel) -> Self {
        Self::of_cloths(scene, || model.cloth_of_vertex().iter().copied().collect())
    }

    /// The friction of a scene's pairs. `cloths` has the cloth of each vertex; it is asked for if a
    /// cloth has friction of its own.
    pub(super) fn of_cloths(scene: &Scene, cloths: impl FnOnce() -> EqualRuns<u32>) -> Self {
        let of_cloth: Vec<Option<f64>> = scene.cloths.iter().map(|cloth| cloth.friction).collect();
        let any = of_cloth.iter().any(Option::is_some);
        Self {
            layers: scene.contact.self_friction,
            bodies: of_bodies(scene, 0.0),
            own: any.then(|| Own {
                of_cloth,
                cloth_of_vertex: Arc::new(cloths()),
            }),
        }
    }

    /// The friction at a time in s, if that of a body changes.
    pub(crate) fn then(&self, scene: &Scene, time: f64) -> Option<Self> {
        let changes = |body: &Body| !body.friction.is_constant();
        scene.bodies.iter().any(changes).then(|| Self {
            layers: self.layers,
            bodies: of_bodies(scene, time),
            own: self.own.clone(),
        })
    }

    /// The coefficient of a contact.
    #[inline]
    pub(crate) fn of(&self, contact: &Contact) -> f64 {
        let [first, .., last] = contact.vertices;
        if contact.id.kind <= PairKind::EdgeEdge {
            self.of_layers([first, last])
        } else {
            let body = self.bodies[contact.id.body as usize];
            let own = self.own.as_ref().and_then(|own| own.of(first));
            own.map_or(body, |own| mean(own, body))
        }
    }

    /// The coefficient of cloth with a vertex on cloth with another.
    #[inline]
    pub(crate) fn of_layers(&self, vertices: [u32; 2]) -> f64 {
        self.own.as_ref().map_or(self.layers, |own| {
            let [a, b] = vertices.map(|v| own.of(v).unwrap_or(self.layers));
            mean(a, b)
        })
    }

    /// Bodies of these coefficients, and cloth that has none of its own.
    #[cfg(test)]
    pub(crate) fn of_bodies(bodies: &[f64]) -> Self {
        Self {
            layers: 0.0,
            bodies: bodies.to_vec(),
            own: None,
        }
    }
}

/// The coefficients of a scene's bodies at a time in s.
fn of_bodies(scene: &Scene, time: f64) -> Vec<f64> {
    let bodies = scene.bodies.iter();
    bodies.map(|body| body.friction.at(time)).collect()
}

/// The geometric mean; that of two equal numbers is these, to the bit.
fn mean(a: f64, b: f64) -> f64 {
    if a == b { a } else { (a * b).sqrt() }
}

#[cfg(test)]
mod tests {
    use glam::DVec3;

    use super::*;
    use crate::collide::contact::{PairId, Separation};

    fn contact(kind: PairKind, body: u32, vertices: [u32; 4]) -> Contact {
        let id = PairId {
            kind,
            body,
            a: 0,
            b: 0,
        };
        let separation = Separation {
            normal: DVec3::Z,
            gap: 0.0,
            target: 0.0,
            body_velocity: DVec3::ZERO,
        };
        Contact::new(id, vertices, [0.0; 4], separation)
    }

    #[test]
    fn a_pair_has_the_mean_of_both_sides() {
        let friction = |own: [Option<f64>; 3]| Friction {
            layers: 0.3,
            bodies: vec![0.5, 0.9],
            own: own.iter().any(Option::is_some).then(|| Own {
                of_cloth: own.to_vec(),
                cloth_of_vertex: Arc::new([0, 1, 2].into_iter().collect()),
            }),
        };
        let layers = |f: &Friction, a, b| {
            let kinds = [PairKind::VertexFace, PairKind::EdgeEdge];
            let of = kinds.map(|kind| f.of(&contact(kind, 0, [a, 7, 7, b])));
            assert_eq!(of[0], of[1]);
            of[0]
        };
        let on_body = |f: &Friction, vertex, body| {
            let kinds = [PairKind::VertexBody, PairKind::FaceBody, PairKind::EdgeBody];
            let of = kinds.map(|kind| f.of(&contact(kind, body, [vertex, 7, 7, 7])));
            assert!(of.iter().all(|other| *other == of[0]));
            of[0]
        };
        let none = friction([None; 3]);
        assert_eq!([layers(&none, 0, 1), on_body(&none, 2, 1)], [0.3, 0.9]);
        let some = friction([Some(1.2), None, Some(0.0)]);
        // A cloth without its own coefficient takes the other's, and one with its own the mean.
        assert_eq!([layers(&some, 1, 1), on_body(&some, 1, 0)], [0.3, 0.5]);
        assert!((layers(&some, 0, 1) - 0.6).abs() < 1e-15);
        assert!((on_body(&some, 0, 0) - 0.6_f64.sqrt()).abs() < 1e-15);
        assert_eq!([layers(&some, 0, 0), layers(&some, 0, 2)], [1.2, 0.0]);
        assert_eq!(on_body(&some, 2, 0), 0.0);
        // All alike are what a scene says that has one coefficient.
        let alike = friction([Some(0.3), Some(0.3), None]);
        assert_eq!([layers(&alike, 0, 1), layers(&alike, 0, 2)], [0.3, 0.3]);
    }
}
