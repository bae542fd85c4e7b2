//! A contact of cloth with cloth, without what the mesh says of it.
//!
//! Where cloth is piled up there are dozens of contacts for each vertex, and nearly all of them
//! never push. So they are kept small: the vertices follow from the features, and one or two of the
//! four weights from the others, to the bit.

use glam::DVec3;

use crate::collide::contact::{PairId, PairKind};
use crate::collide::{Contact, Surface};
use crate::heap_bytes::owns_no_heap;

/// A contact of two features of cloth, of a kind that its list says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LayerContact {
    /// The features.
    a: u32,
    b: u32,
    /// The weights of the corners of a face; of two edges those of their second ends.
    weights: [f64; 3],
    normal: DVec3,
    gap: f64,
    target: f64,
}

owns_no_heap!(LayerContact);

const _: () = assert!(size_of::<LayerContact>() == 72);

impl LayerContact {
    /// Keeps a contact of cloth with cloth.
    pub(crate) fn new(contact: &Contact) -> Self {
        let [_, one, two, three] = contact.weights;
        Self {
            a: contact.id.a,
            b: contact.id.b,
            weights: match contact.id.kind {
                PairKind::EdgeEdge => [one, three, 0.0],
                _ => [one, two, three],
            },
            normal: contact.normal,
            gap: contact.gap,
            target: contact.target,
        }
    }

    /// The vertices of the features of a contact of this kind.
    pub(crate) fn vertices(&self, kind: PairKind, surface: &Surface) -> [u32; 4] {
        vertices(self.id(kind), surface)
    }

    /// Its name, if it is of this kind.
    pub(crate) fn id(&self, kind: PairKind) -> PairId {
        let (body, a, b) = (0, self.a, self.b);
        PairId { kind, body, a, b }
    }

    /// The contact, if it is of this kind.
    pub(crate) fn contact(&self, kind: PairKind, surface: &Surface) -> Contact {
        let [one, two, three] = self.weights;
        Contact {
            id: self.id(kind),
            count: 4,
            vertices: self.vertices(kind, surface),
            weights: match kind {
                // Just as they were found: 1 − t, t, u − 1 and −u.
                PairKind::EdgeEdge => [1.0 - one, one, -two - 1.0, two],
                _ => [1.0, one, two, three],
            },
            normal: self.normal,
            gap: self.gap,
            target: self.target,
            body_velocity: DVec3::ZERO,
        }
    }
}

fn vertices(id: PairId, surface: &Surface) -> [u32; 4] {
    if id.kind == PairKind::EdgeEdge {
        let ([p, q], [r, s]) = (
            surface.edges()[id.a as usize],
            surface.edges()[id.b as usize],
        );
        [p, q, r, s]
    } else {
        let [a, b, c] = surface.triangles()[id.b as usize];
        [id.a, a, b, c]
    }
}

/// Whether a contact of cloth with cloth is one of features that the surface has, between their
/// vertices. Contacts of bodies are.
pub(crate) fn is_of(contact: &Contact, surface: &Surface) -> bool {
    let (a, b) = (contact.id.a as usize, contact.id.b as usize);
    let exists = match contact.id.kind {
        PairKind::VertexFace => b < surface.triangles().len(),
        PairKind::EdgeEdge => a.max(b) < surface.edges().len(),
        PairKind::VertexBody | PairKind::FaceBody | PairKind::EdgeBody => return true,
    };
    exists && contact.count == 4 && vertices(contact.id, surface) == contact.vertices
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::collide::contact::Separation;

    /// Two triangles side by side, and one that hangs on a corner.
    fn surface() -> Surface {
        Surface::new(&[[0, 1, 2], [1, 3, 2], [3, 4, 5]], 6)
    }

    fn contact(kind: PairKind, (a, b): (u32, u32), weights: [f64; 4]) -> Contact {
        let id = PairId {
            kind,
            body: 0,
            a,
            b,
        };
        let separation = Separation {
            normal: DVec3::Y,
            gap: 0.003,
            target: 0.004,
            body_velocity: DVec3::ZERO,
        };
        Contact::new(id, vertices(id, &surface()), weights, separation)
    }

    proptest! {
        #[test]
        fn contacts_are_kept_to_the_bit(t in 0.0..=1.0f64, u in 0.0..=1.0f64, edges in any::<bool>()) {
            let surface = surface();
            let found = if edges {
                contact(PairKind::EdgeEdge, (0, 6), [1.0 - t, t, u - 1.0, -u])
            } else {
                contact(PairKind::VertexFace, (4, 1), [1.0, -(1.0 - t - (1.0 - t) * u), -t, -((1.0 - t) * u)])
            };
            let kept = LayerContact::new(&found).contact(found.id.kind, &surface);
            prop_assert_eq!(kept, found);
            prop_assert_eq!(kept.weights.map(f64::to_bits), found.weights.map(f64::to_bits));
            prop_assert!(is_of(&found, &surface));
        }
    }

    #[test]
    fn a_contact_of_features_that_do_not_exist_is_refused() {
        let surface = surface();
        let good = contact(PairKind::VertexFace, (0, 1), [1.0, -0.5, -0.25, -0.25]);
        assert!(is_of(&good, &surface));
        for (kind, a, b) in [(PairKind::VertexFace, 0, 3), (PairKind::EdgeEdge, 0, 99)] {
            let id = PairId {
                kind,
                body: 0,
                a,
                b,
            };
            assert!(!is_of(&Contact { id, ..good }, &surface));
        }
        let vertices = [0, 1, 2, 4];
        assert!(!is_of(&Contact { vertices, ..good }, &surface));
        assert!(!is_of(&Contact { count: 3, ..good }, &surface));
    }
}
