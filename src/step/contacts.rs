//! The contacts of a step that concern a rank's vertices, in an order that depends on positions and velocities only.
//!
//! Contacts are large, and many where cloth is piled up: what is sorted are their names, with where each was found; there it stays.
//! Names of cloth against cloth lie about evenly in as many buckets as there are of them, by the first feature; there
//! is little left to compare. Each thread sorts those between two first features.

use crate::collide::Contact;
use crate::collide::contact::{PairId, PairKind};
use crate::team::Team;

/// Contacts that were found together.
#[derive(Debug, Default)]
pub(super) struct Batch {
    contacts: Vec<Contact>,
    /// Their names, side by side: whoever found them has them at hand, and whoever sorts them does not.
    ids: Vec<PairId>,
}

impl Batch {
    pub(super) fn new(contacts: Vec<Contact>) -> Self {
        let ids = contacts.iter().map(|contact| contact.id).collect();
        Self { contacts, ids }
    }
}

/// Contacts, each once.
#[derive(Debug, Default)]
pub(super) struct Contacts {
    /// All, as they were found.
    found: Vec<Batch>,
    /// Where those of a rank's vertices against bodies are, in stretches that follow each other, sorted by vertex, then body and face.
    vertex_body: Vec<Vec<Place>>,
    /// Where those of other kinds are, in stretches that follow each other: cloth against cloth, vertices and faces, then edges, sorted by
    /// features; then bodies, sorted by kind, body and features.
    order: [Vec<Vec<Place>>; 3],
}

/// In which batch a contact was found, and which of it it is.
type Place = [u32; 2];

/// Kinds of contacts that are shared out by their first feature: cloth against cloth, vertices and faces, and edges; vertices against bodies.
const SHARED: usize = 3;
/// Contacts for each thread that are worth sharing.
const FEWEST: usize = 1024;
/// Of how many contacts one is looked at to see how they lie.
const SAMPLE: usize = 32;

/// Which of the kinds that are shared out this is.
fn shared(kind: PairKind) -> Option<usize> {
    match kind {
        PairKind::VertexFace => Some(0),
        PairKind::EdgeEdge => Some(1),
        PairKind::VertexBody => Some(2),
        PairKind::FaceBody | PairKind::EdgeBody => None,
    }
}

/// First features at which contacts of each kind are cut into so many shares of about as many, as a sample has it: of each share
/// the first, and the first of none.
fn cuts(found: &[Batch], shares: usize) -> [Vec<u64>; SHARED] {
    let mut sample = [const { Vec::new() }; SHARED];
    if shares > 1 {
        for id in found.iter().flat_map(|batch| &batch.ids).step_by(SAMPLE) {
            if let Some(kind) = shared(id.kind) {
                sample[kind].push(id.a);
            }
        }
    }
    sample.map(|mut firsts: Vec<u32>| {
        firsts.sort_unstable();
        let cut = |share: usize| match share {
            0 => 0,
            _ if share == shares => u64::from(u32::MAX) + 1,
            _ => (firsts.get(firsts.len() * share / shares)).map_or(0, |&first| u64::from(first)),
        };
        (0..=shares).map(cut).collect()
    })
}

/// The names of the contacts of a share.
#[derive(Default)]
struct Names {
    /// Cloth against cloth: features, the first in the upper half.
    layers: [Vec<(u64, Place)>; 2],
    /// Vertex, in the upper half, and body; face.
    vertex_body: Vec<((u64, u32), Place)>,
    bodies: Vec<(PairId, Place)>,
}

impl Names {
    fn add(&mut self, id: PairId, place: Place) {
        let features = u64::from(id.a) << 32 | u64::from(id.b);
        match id.kind {
            PairKind::VertexFace => self.layers[0].push((features, place)),
            PairKind::EdgeEdge => self.layers[1].push((features, place)),
            PairKind::VertexBody => {
                let body = u64::from(id.a) << 32 | u64::from(id.body);
                self.vertex_body.push(((body, id.b), place));
            }
            PairKind::FaceBody | PairKind::EdgeBody => self.bodies.push((id, place)),
        }
    }
}

/// What a thread has sorted.
#[derive(Default)]
struct Stretch {
    vertex_body: Vec<Place>,
    order: [Vec<Place>; 3],
}

impl Stretch {
    /// Of one of the shares that were cut. The first has the contacts that are not shared out.
    fn of(found: &[Batch], cuts: &[Vec<u64>; SHARED], share: usize) -> Self {
        let ranges = [0, 1, 2].map(|kind| cuts[kind][share]..cuts[kind][share + 1]);
        let here = |id: &PairId| match shared(id.kind) {
            Some(kind) => ranges[kind].contains(&u64::from(id.a)),
            None => share == 0,
        };
        let alone = cuts[0].len() == 2;
        let mut names = Names::default();
        for (batch, found) in (0..).zip(found) {
            for (at, &id) in (0..).zip(&found.ids) {
                if alone || here(&id) {
                    names.add(id, [batch, at]);
                }
            }
        }
        let Names {
            layers,
            vertex_body,
            mut bodies,
        } = names;
        let [faces, edges] =
            layers.map(|layer| sorted_places(&layer, |features| (features >> 32) as u32));
        let vertex_body = sorted_places(&vertex_body, |(body, _)| (body >> 32) as u32);
        bodies.sort_unstable();
        let bodies = bodies.into_iter().map(|(_, place)| place).collect();
        Self {
            vertex_body,
            order: [faces, edges, bodies],
        }
    }
}

impl Contacts {
    /// Of batches of contacts in any order, each contact once. Threads sort some each.
    pub(super) fn sorted(found: Vec<Batch>, team: &Team) -> Self {
        let count: usize = found.iter().map(|batch| batch.contacts.len()).sum();
        let shares = (count / FEWEST).clamp(1, team.threads());
        let cuts = cuts(&found, shares);
        let mut stretches: Vec<Stretch> = Vec::new();
        stretches.resize_with(shares, Stretch::default);
        team.run(stretches.iter_mut().enumerate(), |(share, stretch)| {
            *stretch = Stretch::of(&found, &cuts, share);
        });
        let mut all = Self {
            found,
            ..Self::default()
        };
        for stretch in stretches {
            all.vertex_body.push(stretch.vertex_body);
            let kinds = all.order.iter_mut().zip(stretch.order);
            kinds.for_each(|(all, places)| all.push(places));
        }
        all
    }

    /// Those of a rank's vertices against bodies, sorted by vertex, then body and face.
    pub(super) fn vertex_body(&self) -> impl Iterator<Item = &Contact> {
        let places = self.vertex_body.iter().flatten();
        places.map(|&place| contact_at(&self.found, place))
    }

    /// Makes something of each but those of vertices against bodies, which are [so many](Self::layers_len): of cloth against cloth, vertices and
    /// faces, then edges; then of bodies. Threads take those that they have sorted: contacts lie about in memory, and fetching them is most of it.
    pub(super) fn map_layers<R: Send>(
        &self,
        team: &Team,
        mut made: &mut [R],
        make: impl Fn(&Contact) -> R + Sync,
    ) {
        let shares = self.order.iter().map(Vec::len).max().unwrap_or(0);
        let mut work: Vec<Vec<(&mut [R], &[Place])>> = Vec::new();
        work.resize_with(shares, Vec::new);
        for kind in &self.order {
            for (work, places) in work.iter_mut().zip(kind) {
                let (own, rest) = made.split_at_mut(places.len());
                work.push((own, places));
                made = rest;
            }
        }
        team.run(work, |stretches| {
            for (made, places) in stretches {
                for (made, &place) in made.iter_mut().zip(places) {
                    *made = make(contact_at(&self.found, place));
                }
            }
        });
    }

    /// How many are not of vertices against bodies.
    pub(super) fn layers_len(&self) -> usize {
        self.order.iter().flatten().map(Vec::len).sum()
    }

    /// All, in no order.
    pub(super) fn all(&self) -> impl Iterator<Item = &Contact> {
        self.found.iter().flat_map(|batch| &batch.contacts)
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.found.iter().map(|batch| batch.contacts.len()).sum()
    }
}

fn contact_at(found: &[Batch], [batch, at]: Place) -> &Contact {
    &found[batch as usize].contacts[at as usize]
}

/// Where the contacts of these names are, in the order of the names, of which `first` tells the first number.
fn sorted_places<N: Copy + Ord + Default>(
    names: &[(N, Place)],
    first: impl Fn(&N) -> u32,
) -> Vec<Place> {
    let firsts = || names.iter().map(|(name, _)| first(name));
    let Some((least, most)) = firsts().min().zip(firsts().max()) else {
        return Vec::new();
    };
    let most = most - least;
    // As many buckets as names, or up to twice as many.
    let width = (0..31)
        .find(|&bits| u64::from(most >> bits) < 2 * names.len() as u64)
        .unwrap_or(31);
    let bucket = |name: &N| ((first(name) - least) >> width) as usize;
    // Counted one place further on, and summed: where each begins; then where it ends.
    let mut ends = vec![0_u32; (most >> width) as usize + 2];
    for (name, _) in names {
        ends[bucket(name) + 1] += 1;
    }
    for at in 1..ends.len() {
        ends[at] += ends[at - 1];
    }
    let mut sorted = vec![(N::default(), [0; 2]); names.len()];
    for name in names {
        let end = &mut ends[bucket(&name.0)];
        sorted[*end as usize] = *name;
        *end += 1;
    }
    let mut begin = 0;
    for &end in &ends {
        // Most have one name or none.
        if end as usize - begin > 1 {
            sorted[begin..end as usize].sort_unstable();
        }
        begin = end as usize;
    }
    sorted.into_iter().map(|(_, place)| place).collect()
}

#[cfg(test)]
mod tests {
    use glam::DVec3;
    use proptest::prelude::*;

    use super::*;

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
            batch in 1usize..100,
            times in prop::sample::select(vec![1, 30]),
            threads in 1usize..4,
        ) {
            // Many are shared out.
            let found = (0..times).flat_map(|time| {
                found.iter().map(move |&(kind, body, a, b)| (kind, body, a, b + 50 * time))
            });
            let found = found.map(|(kind, body, a, b)| {
                let body = if kind <= PairKind::EdgeEdge { 0 } else { body };
                contact(kind, body, a * spread, b)
            });
            let found: Vec<Contact> = found.collect();
            let batches = found.chunks(batch).map(|batch| Batch::new(batch.to_vec()));
            let contacts = Contacts::sorted(batches.collect(), &Team::new(threads).unwrap());
            prop_assert_eq!(contacts.len(), found.len());
            let (mut vertices, mut others): (Vec<PairId>, Vec<PairId>) =
                (found.iter().map(|c| c.id)).partition(|id| id.kind == PairKind::VertexBody);
            vertices.sort_by_key(|id| (id.a, id.body, id.b));
            others.sort();
            let ids: Vec<PairId> = contacts.vertex_body().map(|c| c.id).collect();
            prop_assert_eq!(ids, vertices);
            prop_assert_eq!(contacts.layers_len(), others.len());
            let mut ids = vec![PairId { kind: PairKind::VertexBody, body: 0, a: 0, b: 0 }; others.len()];
            contacts.map_layers(&Team::new(threads).unwrap(), &mut ids, |c| c.id);
            prop_assert_eq!(ids, others);
            prop_assert!(contacts.all().map(|c| c.id).eq(found.iter().map(|c| c.id)));
        }
    }
}
