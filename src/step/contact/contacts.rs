//! The contacts of a step that concern a rank's vertices, in an order that depends on positions and
//! velocities only.
//!
//! Contacts are large, and many where cloth is piled up: what is sorted are their names, with where
//! each was found; there it stays. Contacts of cloth with cloth are [kept small](LayerContact).
//! Names lie in a few times as many buckets as there are of them, by the first feature; there is
//! little left to compare. Each thread sorts those between two first features.

use std::ops::Range;

use super::layer_contact::LayerContact;
use crate::collide::contact::{PairId, PairKind};
use crate::collide::{Contact, Surface};
use crate::heap_bytes::{HeapBytes, counts_heap};
use crate::team::Team;

/// The kinds of contacts of cloth with cloth, as they are listed.
const LAYERS: [PairKind; 2] = [PairKind::VertexFace, PairKind::EdgeEdge];

/// Contacts that were found together.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// The contacts of cloth with cloth, by their kinds.
    layers: [Vec<LayerContact>; 2],
    /// The others.
    bodies: Vec<Contact>,
}

counts_heap!(Batch: layers, bodies);

impl Batch {
    pub(crate) fn new(contacts: &[Contact]) -> Self {
        let of = |kind| {
            contacts
                .iter()
                .filter(move |contact| contact.id.kind == kind)
        };
        // Counted first: there are many, and a vector that grows may be half empty.
        let layers = LAYERS.map(|kind| {
            let mut kept = Vec::with_capacity(of(kind).count());
            kept.extend(of(kind).map(LayerContact::new));
            kept
        });
        let is_other = |contact: &&Contact| !LAYERS.contains(&contact.id.kind);
        let bodies = contacts.iter().filter(is_other).copied().collect();
        Self { layers, bodies }
    }

    pub(crate) fn len(&self) -> usize {
        self.layers.iter().map(Vec::len).sum::<usize>() + self.bodies.len()
    }

    /// All of them, in the order of their lists.
    fn all(&self) -> impl Iterator<Item = Kept<'_>> {
        let layers = LAYERS.iter().zip(&self.layers);
        let layers = layers
            .flat_map(|(&kind, kept)| kept.iter().map(move |contact| Kept::Layers(kind, contact)));
        layers.chain(self.bodies.iter().map(Kept::Body))
    }

    /// The names of all of them, and where each is in its list.
    fn ids(&self) -> impl Iterator<Item = (PairId, u32)> {
        let layers = LAYERS.iter().zip(&self.layers);
        let layers =
            layers.flat_map(|(&kind, kept)| (0..).zip(kept).map(move |(at, c)| (c.id(kind), at)));
        layers.chain(
            (0..)
                .zip(&self.bodies)
                .map(|(at, contact)| (contact.id, at)),
        )
    }
}

/// A contact as it is kept.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kept<'a> {
    /// A pair of features of cloth.
    Layers(PairKind, &'a LayerContact),
    /// A feature of cloth with one of a body.
    Body(&'a Contact),
}

impl Kept<'_> {
    /// The contact.
    pub(crate) fn contact(self, surface: &Surface) -> Contact {
        match self {
            Self::Layers(kind, kept) => kept.contact(kind, surface),
            Self::Body(contact) => *contact,
        }
    }

    /// Its cloth vertices.
    pub(crate) fn vertices(self, surface: &Surface) -> ([u32; 4], usize) {
        match self {
            Self::Layers(kind, kept) => (kept.vertices(kind, surface), 4),
            Self::Body(contact) => (contact.vertices, usize::from(contact.count)),
        }
    }
}

/// Contacts, each once, and what sorting them needs room for: steps have about as many, and fresh
/// memory takes longer than sorting.
#[derive(Debug, Default)]
pub(crate) struct Contacts {
    /// All, as they were found.
    found: Vec<Batch>,
    /// The stretches that threads have sorted, one after the other.
    stretches: Vec<Stretch>,
    /// Whether those that need not stand together by vertex stay as they were found.
    forgets_order: bool,
}

counts_heap!(Contacts: found, stretches; without forgets_order);

/// The location of a contact: its batch, and its number within the batch.
type Location = [u32; 2];

/// Kinds of contacts that are shared out by their first feature: cloth against cloth, vertices and
/// faces, and edges; vertices against bodies.
const SHARED: usize = 3;
/// Contacts for each thread that are worth sharing.
const FEWEST: usize = 1024;
/// The most buckets for each name: enough for few of them to have several names.
const BUCKETS: u64 = 8;
/// The most names in a bucket that are sorted one by one.
const FEW: u32 = 16;
/// The number of contacts of which one is looked at to see how they lie.
const SAMPLE: usize = 32;

/// The number of this kind among those that are shared out.
fn shared(kind: PairKind) -> Option<usize> {
    match kind {
        PairKind::VertexFace => Some(0),
        PairKind::EdgeEdge => Some(1),
        PairKind::VertexBody => Some(2),
        PairKind::FaceBody | PairKind::EdgeBody => None,
    }
}

/// First features at which contacts of each kind are cut into shares of about equal size, by a
/// sample: the first feature of each share, and one behind all.
fn cuts(found: &[Batch], shares: usize) -> [Vec<u64>; SHARED] {
    let mut sample = [const { Vec::new() }; SHARED];
    if shares > 1 {
        let ids = found.iter().flat_map(|batch| batch.ids());
        for (id, _) in ids.step_by(SAMPLE) {
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

/// The name of a contact, and its location.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Located<N> {
    name: N,
    place: Location,
}

impl<N: Copy> HeapBytes for Located<N> {
    fn heap_bytes(&self) -> usize {
        0
    }
}

/// Names of contacts, and where these are.
#[derive(Debug, Default)]
struct Names<N> {
    sorted: Vec<Located<N>>,
    /// The names that were found since.
    found: Vec<Located<N>>,
    /// The names that were found since, in order.
    ordered: Vec<Located<N>>,
}

impl<N: Copy> HeapBytes for Names<N> {
    fn heap_bytes(&self) -> usize {
        let Self {
            sorted,
            found,
            ordered,
        } = self;
        sorted.heap_bytes() + found.heap_bytes() + ordered.heap_bytes()
    }
}

/// The contacts that a thread sorts.
#[derive(Debug, Default)]
struct Stretch {
    /// Cloth against cloth, vertices and faces, then edges, by features, of which the first is in
    /// the upper half.
    layers: [Names<u64>; 2],
    /// A rank's vertices against bodies, by vertex, in the upper half, and body; then face.
    vertex_body: Names<(u64, u32)>,
    /// Others against bodies, by kind, body and features.
    bodies: Vec<Located<PairId>>,
    buckets: Vec<u32>,
}

counts_heap!(Stretch: layers, vertex_body, bodies, buckets);

impl Stretch {
    fn clear(&mut self) {
        self.layers.iter_mut().for_each(Names::clear);
        self.vertex_body.clear();
        self.bodies.clear();
    }

    fn add(&mut self, id: PairId, place: Location) {
        let with = |second: u32| u64::from(id.a) << 32 | u64::from(second);
        let layer = Located {
            name: with(id.b),
            place,
        };
        match id.kind {
            PairKind::VertexFace => self.layers[0].found.push(layer),
            PairKind::EdgeEdge => self.layers[1].found.push(layer),
            PairKind::VertexBody => {
                let name = (with(id.body), id.b);
                self.vertex_body.found.push(Located { name, place });
            }
            PairKind::FaceBody | PairKind::EdgeBody => {
                self.bodies.push(Located { name: id, place })
            }
        }
    }

    /// Takes in one of the shares that were cut of batches, of which the first ones are taken in
    /// already. The first share has the contacts that are not shared out.
    ///
    /// If it `keeps` the order in which they were found, only those of vertices and bodies are
    /// sorted, which corrections want by vertex.
    fn sort(
        &mut self,
        found: &[Batch],
        first: usize,
        cuts: &[Vec<u64>; SHARED],
        (share, keeps): (usize, bool),
    ) {
        let ranges = [0, 1, 2].map(|kind| cuts[kind][share]..cuts[kind][share + 1]);
        let here = |id: &PairId| match shared(id.kind) {
            Some(kind) => ranges[kind].contains(&u64::from(id.a)),
            None => share == 0,
        };
        let alone = cuts[0].len() == 2;
        for (batch, found) in (first as u32..).zip(&found[first..]) {
            for (id, at) in found.ids() {
                if alone || here(&id) {
                    self.add(id, [batch, at]);
                }
            }
        }
        let vertex = |&(body, _): &(u64, u32)| (body >> 32) as u32;
        self.vertex_body.sort(vertex, &mut self.buckets);
        if keeps {
            for names in &mut self.layers {
                names.sorted.append(&mut names.found);
            }
            return;
        }
        for names in &mut self.layers {
            names.sort(|features| (features >> 32) as u32, &mut self.buckets);
        }
        self.bodies.sort_unstable();
    }

    /// Where contacts are that are not of vertices against bodies, by their kinds.
    fn others(&self) -> [Locations<'_>; 3] {
        let [faces, edges] = &self.layers;
        [
            Locations::Layer(0, &faces.sorted),
            Locations::Layer(1, &edges.sorted),
            Locations::Bodies(&self.bodies),
        ]
    }
}

/// Where contacts are, in the order of their names; which kind of layers.
#[derive(Clone, Copy)]
enum Locations<'a> {
    Layer(usize, &'a [Located<u64>]),
    Bodies(&'a [Located<PairId>]),
}

impl<'a> Locations<'a> {
    fn len(self) -> usize {
        match self {
            Self::Layer(_, names) => names.len(),
            Self::Bodies(names) => names.len(),
        }
    }

    /// The list of its batch that one of them is in, and its place.
    fn place(self, at: usize) -> (usize, Location) {
        match self {
            Self::Layer(kind, names) => (kind, names[at].place),
            Self::Bodies(names) => (2, names[at].place),
        }
    }

    /// One of them.
    fn kept(self, found: &'a [Batch], at: usize) -> Kept<'a> {
        match self {
            Self::Layer(kind, names) => {
                let [batch, at] = names[at].place;
                let kept = &found[batch as usize].layers[kind];
                Kept::Layers(LAYERS[kind], &kept[at as usize])
            }
            Self::Bodies(names) => Kept::Body(contact_at(found, names[at].place)),
        }
    }
}

impl Contacts {
    /// Takes in batches of contacts in any order, each contact once. Threads sort some each.
    pub(crate) fn take_in(&mut self, found: Vec<Batch>, team: &Team) {
        let mut first = self.found.len();
        self.found.extend(found);
        let shares = if first > 0 && self.stretches.len() == 1 {
            1
        } else {
            // Others are cut elsewhere.
            self.stretches.iter_mut().for_each(Stretch::clear);
            first = 0;
            (self.len() / FEWEST).clamp(1, team.threads())
        };
        let found = &self.found;
        let cuts = cuts(found, shares);
        self.stretches.resize_with(shares, Stretch::default);
        let keeps = self.forgets_order;
        team.run(self.stretches.iter_mut().enumerate(), |(share, stretch)| {
            stretch.sort(found, first, &cuts, (share, keeps))
        });
    }

    /// From now on leaves contacts as they were found where they need not stand together. Sums
    /// over them then depend on ranks and schedules. It serves to measure what the order costs.
    pub(crate) fn forget_order(&mut self) {
        self.forgets_order = true;
    }

    /// Forgets them.
    pub(crate) fn clear(&mut self) {
        self.found.clear();
        self.stretches.iter_mut().for_each(Stretch::clear);
    }

    /// The contacts of a rank's vertices against bodies, sorted by vertex, then body and face.
    pub(crate) fn vertex_body(&self) -> impl Iterator<Item = &Contact> {
        let names = self.stretches.iter();
        let names = names.flat_map(|stretch| &stretch.vertex_body.sorted);
        names.map(|named| contact_at(&self.found, named.place))
    }

    /// Makes something of each, in the order in which they were found, which is that in memory:
    /// contacts of cloth with cloth and those of bodies, of all kinds. Threads share them.
    pub(crate) fn map_found<R: Send>(
        &self,
        team: &Team,
        made: &mut [R],
        make: impl Fn(Kept<'_>) -> R + Sync,
    ) {
        let shares = team.cut_weighted(self.found.iter().map(|batch| batch.len() as u64));
        let len = |share: &Range<usize>| self.found[share.clone()].iter().map(Batch::len).sum();
        let mut rest = made;
        let work = shares.into_iter().map(|share| {
            let (own, others) = std::mem::take(&mut rest).split_at_mut(len(&share));
            rest = others;
            (own, share)
        });
        let work: Vec<(&mut [R], Range<usize>)> = work.collect();
        team.run(work, |(made, share)| {
            let found = self.found[share].iter().flat_map(Batch::all);
            for (made, kept) in made.iter_mut().zip(found) {
                *made = make(kept);
            }
        });
    }

    /// The numbers of all but those of vertices against bodies among those that were found, in the
    /// order of [`Self::others`].
    pub(crate) fn others_found(&self) -> impl Iterator<Item = usize> {
        let mut next = 0;
        let starts = self.found.iter().map(|batch| {
            let [faces, edges] = [0, 1].map(|kind| batch.layers[kind].len());
            let start = next;
            next += batch.len();
            [start, start + faces, start + faces + edges]
        });
        let starts: Vec<[usize; 3]> = starts.collect();
        let lists = (0..3).flat_map(|kind| self.stretches.iter().map(move |s| s.others()[kind]));
        lists.flat_map(move |places| {
            let starts = starts.clone();
            (0..places.len()).map(move |at| {
                let (list, [batch, at]) = places.place(at);
                starts[batch as usize][list] + at as usize
            })
        })
    }

    /// All but those of vertices against bodies, sorted: of cloth with cloth, vertices and
    /// faces, then edges; then of bodies.
    pub(crate) fn others(&self) -> impl Iterator<Item = Kept<'_>> {
        let lists = (0..3).flat_map(|kind| self.stretches.iter().map(move |s| s.others()[kind]));
        lists.flat_map(move |places| (0..places.len()).map(move |at| places.kept(&self.found, at)))
    }

    /// Picks those of [`Self::others`] that have these numbers, which ascend.
    pub(crate) fn others_at(
        &self,
        numbers: impl IntoIterator<Item = u32>,
    ) -> impl Iterator<Item = Kept<'_>> {
        let mut lists =
            (0..3).flat_map(|kind| self.stretches.iter().map(move |s| s.others()[kind]));
        let mut list = lists.next();
        let mut before = 0;
        numbers.into_iter().map_while(move |number| {
            loop {
                let places = list?;
                let at = number as usize - before;
                if at < places.len() {
                    break Some(places.kept(&self.found, at));
                }
                before += places.len();
                list = lists.next();
            }
        })
    }

    /// How many are not of vertices against bodies.
    pub(crate) fn others_len(&self) -> usize {
        self.others_of_kinds().iter().sum()
    }

    /// How many of these there are of each kind: vertices and faces, edges, and bodies.
    pub(crate) fn others_of_kinds(&self) -> [usize; 3] {
        [0, 1, 2].map(|kind| {
            let stretches = self.stretches.iter();
            stretches.map(|stretch| stretch.others()[kind].len()).sum()
        })
    }

    /// All, in the order in which they were found.
    pub(crate) fn all(&self, surface: &Surface) -> impl Iterator<Item = Contact> {
        let kept = self.found.iter().flat_map(Batch::all);
        kept.map(move |kept| kept.contact(surface))
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.found.iter().map(Batch::len).sum()
    }
}

fn contact_at(found: &[Batch], [batch, at]: Location) -> &Contact {
    &found[batch as usize].bodies[at as usize]
}

impl<N> Names<N> {
    fn clear(&mut self) {
        self.found.clear();
        self.sorted.clear();
        self.ordered.clear();
    }
}

impl<N: Copy + Ord + Default> Names<N> {
    /// Takes in what was found, in order; `first` tells a name's first number.
    fn sort(&mut self, first: impl Fn(&N) -> u32, buckets: &mut Vec<u32>) {
        self.order(first, buckets);
        let Self {
            sorted,
            found,
            ordered,
        } = self;
        found.clear();
        if sorted.is_empty() {
            std::mem::swap(sorted, ordered);
        } else if !ordered.is_empty() {
            merge([sorted, ordered], found);
            std::mem::swap(sorted, found);
            found.clear();
        }
        ordered.clear();
    }

    /// Puts what was found in order.
    fn order(&mut self, first: impl Fn(&N) -> u32, buckets: &mut Vec<u32>) {
        let Self {
            found,
            ordered: sorted,
            ..
        } = self;
        let firsts = || found.iter().map(|named| first(&named.name));
        let Some((least, most)) = firsts().min().zip(firsts().max()) else {
            return;
        };
        let most = most - least;
        let width = (0..31)
            .find(|&bits| u64::from(most >> bits) < BUCKETS * found.len() as u64)
            .unwrap_or(31);
        let bucket = |name: &N| ((first(name) - least) >> width) as usize;
        // Counted one place further on, and summed: where each begins; then where it ends.
        buckets.clear();
        buckets.resize((most >> width) as usize + 2, 0);
        for named in &*found {
            buckets[bucket(&named.name) + 1] += 1;
        }
        let (mut end, mut fullest) = (0, 0);
        for count in &mut *buckets {
            fullest = fullest.max(*count);
            end += *count;
            *count = end;
        }
        sorted.resize(found.len(), Located::default());
        for named in found {
            let end = &mut buckets[bucket(&named.name)];
            sorted[*end as usize] = *named;
            *end += 1;
        }
        if fullest <= FEW {
            // Nothing has far to go.
            insert_each(sorted);
        } else {
            let mut begin = 0;
            for &end in &*buckets {
                sorted[begin..end as usize].sort_unstable_by_key(|named| named.name);
                begin = end as usize;
            }
        }
    }
}

/// Merges two sorted lists.
fn merge<N: Copy + Ord>([mut a, mut b]: [&[Located<N>]; 2], merged: &mut Vec<Located<N>>) {
    while let (Some(next_a), Some(next_b)) = (a.first(), b.first()) {
        if next_b.name < next_a.name {
            merged.push(*next_b);
            b = &b[1..];
        } else {
            merged.push(*next_a);
            a = &a[1..];
        }
    }
    merged.extend_from_slice(a);
    merged.extend_from_slice(b);
}

/// Sorts names that are nearly sorted.
fn insert_each<N: Copy + Ord>(names: &mut [Located<N>]) {
    for at in 1..names.len() {
        let name = names[at];
        let mut to = at;
        while to > 0 && name.name < names[to - 1].name {
            names[to] = names[to - 1];
            to -= 1;
        }
        names[to] = name;
    }
}

#[cfg(test)]
mod tests {
    use glam::DVec3;
    use proptest::prelude::*;

    use super::*;
    use crate::collide::contact::Separation;

    fn contact(kind: PairKind, body: u32, a: u32, b: u32) -> Contact {
        let separation = Separation {
            normal: DVec3::Z,
            gap: 0.0,
            target: 0.0,
            body_velocity: DVec3::ZERO,
        };
        Contact::new(PairId { kind, body, a, b }, [a], [1.0], separation)
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
            sooner in 0usize..=4,
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
            let batches = found.chunks(batch).map(Batch::new);
            let mut contacts = Contacts::default();
            let mut batches: Vec<Batch> = batches.collect();
            let team = Team::new(threads).unwrap();
            // Some of them later.
            let later = batches.split_off(batches.len() * sooner / 4);
            contacts.take_in(batches, &team);
            contacts.take_in(later, &team);
            prop_assert_eq!(contacts.len(), found.len());
            let (mut vertices, mut others): (Vec<PairId>, Vec<PairId>) =
                (found.iter().map(|c| c.id)).partition(|id| id.kind == PairKind::VertexBody);
            vertices.sort_by_key(|id| (id.a, id.body, id.b));
            others.sort();
            let ids: Vec<PairId> = contacts.vertex_body().map(|c| c.id).collect();
            prop_assert_eq!(ids, vertices);
            prop_assert_eq!(contacts.others_len(), others.len());
            let id = |kept: Kept<'_>| match kept {
                Kept::Layers(kind, kept) => kept.id(kind),
                Kept::Body(contact) => contact.id,
            };
            let none = PairId { kind: PairKind::VertexBody, body: 0, a: 0, b: 0 };
            let mut ids = vec![none; found.len()];
            contacts.map_found(&Team::new(threads).unwrap(), &mut ids, id);
            prop_assert!(contacts.others_found().map(|number| ids[number]).eq(others.iter().copied()));
            ids.sort();
            let mut all: Vec<PairId> = found.iter().map(|contact| contact.id).collect();
            all.sort();
            prop_assert_eq!(ids, all);
            prop_assert!(contacts.others().map(id).eq(others.iter().copied()));
            let some = (0..others.len()).step_by(3);
            let at = contacts.others_at(some.clone().map(|number| number as u32));
            prop_assert!(at.map(id).eq(some.map(|number| others[number])));
        }
    }
}
