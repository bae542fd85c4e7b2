//! The contacts of a step that concern a rank's vertices, in an order that depends on positions and velocities only.
//!
//! Contacts are large, and many where cloth is piled up: what is sorted are their names, and of most only where they are.
//! Names of cloth against cloth lie about evenly in as many buckets as there are of them, by the first feature; there
//! is little left to compare.

use crate::collide::Contact;
use crate::collide::contact::PairKind;

/// Contacts, each once.
#[derive(Debug, Default)]
pub(super) struct Contacts {
    /// A rank's vertices against bodies, sorted by vertex, then body and face.
    pub(super) vertex_body: Vec<Contact>,
    /// All, as they were found.
    found: Vec<Contact>,
    /// Where those of other kinds are, sorted by kind, body and features.
    order: Vec<u32>,
}

impl Contacts {
    /// Of contacts in any order, each once.
    pub(super) fn sorted(found: Vec<Contact>) -> Self {
        let mut vertex_body = Vec::new();
        let mut layers = [Vec::new(), Vec::new()];
        let mut bodies = Vec::new();
        for (at, contact) in (0_u32..).zip(&found) {
            let id = contact.id;
            let features = u64::from(id.a) << 32 | u64::from(id.b);
            match id.kind {
                PairKind::VertexFace => layers[0].push((features, at)),
                PairKind::EdgeEdge => layers[1].push((features, at)),
                PairKind::VertexBody => vertex_body.push((id.a, id.body, id.b, at)),
                PairKind::FaceBody | PairKind::EdgeBody => bodies.push((id, at)),
            }
        }
        vertex_body.sort_unstable();
        bodies.sort_unstable();
        let mut order = Vec::with_capacity(found.len() - vertex_body.len());
        for names in layers {
            append_sorted(&names, &mut order);
        }
        order.extend(bodies.iter().map(|&(_, at)| at));
        let vertex_body = vertex_body.iter();
        Self {
            vertex_body: vertex_body.map(|&(.., at)| found[at as usize]).collect(),
            found,
            order,
        }
    }

    /// All but those of vertices against bodies: cloth against cloth, vertices and faces, then edges; then bodies.
    pub(super) fn layers(&self) -> impl Iterator<Item = &Contact> {
        self.order.iter().map(|&at| &self.found[at as usize])
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.found.len()
    }
}

/// Appends where the contacts of these names are, in the order of the names: features, the first in the upper half.
fn append_sorted(names: &[(u64, u32)], order: &mut Vec<u32>) {
    let Some(most) = names.iter().map(|&(name, _)| name >> 32).max() else {
        return;
    };
    // As many buckets as names, or up to twice as many.
    let width = (0..31)
        .find(|&bits| most >> bits < 2 * names.len() as u64)
        .unwrap_or(31);
    let bucket = |name: u64| (name >> (32 + width)) as usize;
    // Counted one place further on, and summed: where each begins; then where it ends.
    let mut ends = vec![0_u32; bucket(most << 32) + 2];
    for &(name, _) in names {
        ends[bucket(name) + 1] += 1;
    }
    for at in 1..ends.len() {
        ends[at] += ends[at - 1];
    }
    let mut sorted = vec![(0, 0); names.len()];
    for &name in names {
        let end = &mut ends[bucket(name.0)];
        sorted[*end as usize] = name;
        *end += 1;
    }
    let mut begin = 0;
    for &end in &ends {
        sorted[begin..end as usize].sort_unstable();
        begin = end as usize;
    }
    order.extend(sorted.iter().map(|&(_, at)| at));
}

#[cfg(test)]
mod tests {
    use glam::DVec3;
    use proptest::prelude::*;

    use super::*;
    use crate::collide::contact::PairId;

    fn contact(kind: PairKind, body: u32, a: u32, b: u32) -> Contact {
        Contact {
            id: PairId { kind, body, a, b },
            count: 1,
            vertices: [a, 0, 0, 0],
            weights: [1.0, 0.0, 0.0, 0.0],
            normal: DVec3::Z,
            gap: 0.0,
            target: 0.0,
            body_velocity: DVec3::ZERO,
        }
    }

    fn kind() -> impl Strategy<Value = PairKind> {
        prop::sample::select(vec![
            PairKind::VertexFace,
            PairKind::EdgeEdge,
            PairKind::VertexBody,
            PairKind::FaceBody,
            PairKind::EdgeBody,
        ])
    }

    proptest! {
        #[test]
        fn contacts_are_in_the_order_of_their_names(
            found in prop::collection::vec((kind(), 0u32..3, 0u32..50, 0u32..50), 0..300),
            spread in prop::sample::select(vec![1, 1000, u32::MAX / 50]),
        ) {
            let found = found.into_iter().map(|(kind, body, a, b)| {
                let body = if kind <= PairKind::EdgeEdge { 0 } else { body };
                contact(kind, body, a * spread, b * spread)
            });
            let found: Vec<Contact> = found.collect();
            let contacts = Contacts::sorted(found.clone());
            prop_assert_eq!(contacts.len(), found.len());
            let (mut vertices, mut others): (Vec<PairId>, Vec<PairId>) =
                (found.iter().map(|c| c.id)).partition(|id| id.kind == PairKind::VertexBody);
            vertices.sort_by_key(|id| (id.a, id.body, id.b));
            others.sort();
            let ids: Vec<PairId> = contacts.vertex_body.iter().map(|c| c.id).collect();
            prop_assert_eq!(ids, vertices);
            let ids: Vec<PairId> = contacts.layers().map(|c| c.id).collect();
            prop_assert_eq!(ids, others);
        }
    }
}
