//! The feature filter: from pairs of triangles whose volumes meet to pairs of their features whose
//! volumes do, and from these to contacts, many at a time.
//!
//! Each stage leaves out most of its pairs. A processor cannot foresee which, and a wrong guess
//! costs as much time as a stage takes for a pair. So nothing branches on the outcome: every pair
//! is written to a list, the ones that are left out are overwritten by the next, and only the next
//! stage goes through the list.
//!
//! Each pair of features is tested once, by the triangles that own them. [Rest-adjacent
//! pairs](crate::collide::cull::rest_adjacent) are left out, because they are tested on their own.

use std::cell::Cell;

use crate::collide::bvh::quantised::{Nodes, Quantised};
use crate::collide::bvh::refit::Refit;
use crate::collide::bvh::tree::Bvh;
use crate::collide::narrow::closest_four::Pairs;
use crate::collide::narrow::contact::{Contact, PairKind};
use crate::collide::narrow::features;
use crate::collide::query::snapshot::Snapshot;
use crate::collide::query::volumes::Held;
use crate::collide::surface::Face;
use crate::simd::{Kernel, Lanes, up_to_avx2};

/// The number of pairs of triangles that are taken at once.
pub(in crate::collide) const TRIANGLES: usize = 64;
/// The most pairs of a vertex and a triangle, and of edges, that two triangles have.
const VERTICES: usize = 6;
const EDGES: usize = 9;

/// The leaves of a patch, with their volumes.
#[derive(Clone, Copy, Debug)]
pub(in crate::collide) struct Leaves<'a> {
    tree: &'a Bvh,
    refit: &'a Refit,
    nodes: Nodes<'a>,
    vertices: &'a [Quantised],
}

impl<'a> Leaves<'a> {
    /// The leaves of a patch with its volumes, as far as tests look at them.
    pub(in crate::collide) fn new(
        snap: &'a Snapshot<'_>,
        patch: u32,
        volumes: &'a Held<'_>,
    ) -> Self {
        Self {
            tree: &snap.cloth.patches()[patch as usize],
            refit: snap.cloth.refit(patch),
            nodes: volumes.nodes(),
            vertices: volumes.vertices(),
        }
    }

    /// The triangle of a leaf.
    #[inline(always)]
    pub(in crate::collide) fn triangle(&self, leaf: u32) -> u32 {
        self.tree.triangle(leaf)
    }

    #[inline(always)]
    fn side(&self, leaf: u32) -> Side {
        Side {
            leaf,
            triangle: self.triangle(leaf),
            places: self.refit.places_of(leaf),
        }
    }

    /// The volume of the edge from a corner to the next.
    #[inline(always)]
    fn edge(&self, side: &Side, k: usize) -> Quantised {
        // There is no `map` here, because what it calls may be compiled for any processor.
        let from = &self.vertices[side.places[k] as usize];
        from.union(&self.vertices[side.places[(k + 1) % 3] as usize])
    }
}

/// One of two triangles.
#[derive(Clone, Copy, Debug, Default)]
struct Side {
    leaf: u32,
    triangle: u32,
    /// The places of its corners among the volumes of its patch's vertices.
    places: [u32; 3],
}

/// The filter, which is room for its lists.
#[derive(Debug)]
pub(in crate::collide) struct FeatureFilter {
    lists: Lists,
    /// The pairs of edges that are looked at by fours.
    close: [[u32; 2]; EDGES * TRIANGLES],
}

/// Lists of pairs of features as codes: 16 times the number of the pair of triangles, plus the
/// number of the feature pair as in [`features`]. [`SPREAD`] entries are spare, because [`put`]
/// always writes this many.
#[derive(Debug)]
struct Lists {
    sides: [[Side; 2]; TRIANGLES],
    vertices: [u16; VERTICES * TRIANGLES + SPREAD],
    edges: [u16; EDGES * TRIANGLES + SPREAD],
}

/// The number of numbers that are written at once.
const SPREAD: usize = 4;

/// The numbers of the set bits of each mask of three bits; the entries behind them are padding.
const SET_BITS: [[u16; SPREAD]; 8] = {
    let mut places = [[0; SPREAD]; 8];
    let mut bits = 0;
    while bits < 8 {
        let (mut at, mut k) = (0, 0);
        while k < 3 {
            if bits >> k & 1 != 0 {
                places[bits][at] = k;
                at += 1;
            }
            k += 1;
        }
        bits += 1;
    }
    places
};

/// The number of bits that are set of three: not every processor has an instruction for it.
const COUNTS: [usize; 8] = [0, 1, 1, 2, 1, 2, 2, 3];

/// Appends the numbers of the set bits of a mask of three to a list, added to a first number.
#[inline(always)]
fn put(list: &mut [u16], len: &mut usize, first: u16, bits: u32) {
    let room: &mut [u16; SPREAD] = list[*len..].first_chunk_mut().expect("room for four");
    let places = &SET_BITS[(bits & 7) as usize];
    for (room, place) in room.iter_mut().zip(places) {
        *room = first + place;
    }
    *len += COUNTS[(bits & 7) as usize];
}

thread_local! {
    /// The filter that a thread used last. Tasks are taken in short slices, and filling one with
    /// zeros takes as long as some pairs do.
    static KEPT: Cell<Option<Box<FeatureFilter>>> = const { Cell::new(None) };
}

impl FeatureFilter {
    /// The filter that the thread keeps, or a new one.
    pub(in crate::collide) fn take() -> Box<Self> {
        KEPT.take().unwrap_or_else(|| Box::new(Self::new()))
    }

    /// Keeps the filter for the next task.
    pub(in crate::collide) fn keep(self: Box<Self>) {
        KEPT.set(Some(self));
    }

    fn new() -> Self {
        Self {
            lists: Lists {
                sides: [[Side::default(); 2]; TRIANGLES],
                vertices: [0; VERTICES * TRIANGLES + SPREAD],
                edges: [0; EDGES * TRIANGLES + SPREAD],
            },
            close: [[0; 2]; EDGES * TRIANGLES],
        }
    }

    /// Finds the pairs of features whose volumes overlap, of pairs of triangles given as leaves, of
    /// which there are no more than [`TRIANGLES`]. Rest-adjacent pairs are left out.
    #[inline(always)]
    pub(in crate::collide) fn features(
        &mut self,
        snap: &Snapshot<'_>,
        leaves: [&Leaves<'_>; 2],
        pairs: &[(u32, u32)],
        found: impl FnMut(PairKind, u32, u32),
    ) {
        up_to_avx2(Filtering {
            lists: &mut self.lists,
            of: (snap, leaves, pairs),
            found,
        });
    }

    /// Tests the features of pairs of triangles, as [`Self::features`] takes them, and tells
    /// `note` each pair of features that it tests.
    pub(in crate::collide) fn contacts(
        &mut self,
        snap: &Snapshot<'_>,
        leaves: [&Leaves<'_>; 2],
        pairs: &[(u32, u32)],
        note: &mut impl FnMut(PairKind, u32, u32),
        out: &mut Vec<Contact>,
    ) {
        let (close, mut count) = (&mut self.close, 0);
        up_to_avx2(Filtering {
            lists: &mut self.lists,
            of: (snap, leaves, pairs),
            found: |kind, a, b| {
                note(kind, a, b);
                if kind == PairKind::VertexFace {
                    features::vertex_face(snap, a, b, out);
                } else {
                    close[count] = [a, b];
                    count += 1;
                }
            },
        });
        let edges = snap.cloth.surface().edges();
        let (fours, rest) = close[..count].as_chunks::<4>();
        for four in fours {
            let pairs = Pairs {
                x: snap.x,
                v: snap.v,
                dt: snap.dt,
                reach: four.map(|[a, b]| {
                    let (first, last) = (edges[a as usize][0], edges[b as usize][1]);
                    snap.distances.reach(snap.distances.between(first, last))
                }),
                ends: four.map(|[a, b]| {
                    let ([p, q], [r, s]) = (edges[a as usize], edges[b as usize]);
                    [p, q, r, s]
                }),
            };
            let closest = pairs.closest();
            for (k, &pair) in four.iter().enumerate() {
                if closest.within_reach[k] {
                    features::edges_at(snap, pair, (closest.s[k], closest.t[k]), out);
                }
            }
        }
        for &[a, b] in rest {
            features::cloth_feature(snap, PairKind::EdgeEdge, a, b, out);
        }
    }
}

/// The arguments of [`FeatureFilter::features`].
struct Filtering<'a, F> {
    lists: &'a mut Lists,
    of: (&'a Snapshot<'a>, [&'a Leaves<'a>; 2], &'a [(u32, u32)]),
    found: F,
}

impl<F: FnMut(PairKind, u32, u32)> Kernel for Filtering<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run<S: Lanes>(self, _: S) {
        let Self {
            lists,
            of: (snap, leaves, pairs),
            mut found,
        } = self;
        let surface = snap.cloth.surface();
        let (mut vertices, mut edges) = (0, 0);
        for ((at, sides), &(s, t)) in (0_u16..).zip(&mut lists.sides).zip(pairs) {
            *sides = [leaves[0].side(s), leaves[1].side(t)];
            let faces = [
                surface.face(sides[0].triangle),
                surface.face(sides[1].triangle),
            ];
            let (own, meeting) = features(&faces);
            let first = 16 * at;
            for side in 0..2 {
                put(
                    &mut lists.vertices,
                    &mut vertices,
                    first + 3 * side,
                    own >> (3 * side),
                );
            }
            for side in 0..3 {
                put(
                    &mut lists.edges,
                    &mut edges,
                    first + 3 * side,
                    meeting >> (3 * side),
                );
            }
        }
        let mut left = 0;
        for at in 0..vertices {
            let code = lists.vertices[at];
            let (sides, owner, k) = (
                &lists.sides[usize::from(code / 16)],
                owner(code),
                corner(code),
            );
            let volume = leaves[1 - owner].nodes.of(sides[1 - owner].leaf);
            let place = sides[owner].places[k];
            lists.vertices[left] = code;
            left += usize::from(volume.overlaps(&leaves[owner].vertices[place as usize]));
        }
        let rest_adjacent = snap.rest_adjacent();
        for &code in &lists.vertices[..left] {
            let sides = &lists.sides[usize::from(code / 16)];
            let vertex = surface.face(sides[owner(code)].triangle).corners[corner(code)];
            let face = sides[1 - owner(code)].triangle;
            if rest_adjacent.is_none_or(|rest_adjacent| !rest_adjacent.has_face(vertex, face)) {
                found(PairKind::VertexFace, vertex, face);
            }
        }
        let mut left = 0;
        for at in 0..edges {
            let code = lists.edges[at];
            let [one, two] = &lists.sides[usize::from(code / 16)];
            let [i, j] = ends(code);
            let overlap = leaves[0].edge(one, i).overlaps(&leaves[1].edge(two, j));
            lists.edges[left] = code;
            left += usize::from(overlap);
        }
        for &code in &lists.edges[..left] {
            let [one, two] = &lists.sides[usize::from(code / 16)];
            let [i, j] = ends(code);
            let (a, b) = (
                surface.edges_of(one.triangle)[i],
                surface.edges_of(two.triangle)[j],
            );
            if rest_adjacent.is_none_or(|rest_adjacent| !rest_adjacent.has_edges(a, b)) {
                found(PairKind::EdgeEdge, a.min(b), a.max(b));
            }
        }
    }
}

/// The triangle that owns the vertex, for a pair of a vertex and a triangle.
#[inline(always)]
fn owner(code: u16) -> usize {
    usize::from(code % 16 / 3)
}

#[inline(always)]
fn corner(code: u16) -> usize {
    usize::from(code % 16 % 3)
}

/// The corners of their triangles at which the two edges of a pair begin.
#[inline(always)]
fn ends(code: u16) -> [usize; 2] {
    [usize::from(code % 16 / 3), usize::from(code % 16 % 3)]
}

/// The pairs of edges that meet, for each set of pairs of corners that are one vertex. Bit 3 i + j
/// stands for the corners i and j, and for the edges that begin at them.
const MEETING: [u32; 512] = {
    let mut meeting = [0; 512];
    let mut bits = 0;
    while bits < 512 {
        let mut at = 0;
        while at < 9 {
            // Edges go from a corner to the next: those at a corner are its own and that before.
            if bits & 1 << at != 0 {
                let (i, j) = (at / 3, at % 3);
                let (h, g) = ((i + 2) % 3, (j + 2) % 3);
                meeting[bits] |= 1 << (3 * i + j) | 1 << (3 * i + g);
                meeting[bits] |= 1 << (3 * h + j) | 1 << (3 * h + g);
            }
            at += 1;
        }
        bits += 1;
    }
    meeting
};

/// The features of two triangles that are tested against each other: corners of the first and of
/// the second, one bit each, and pairs of edges, bit 3 i + j for the edge i of the first and j of
/// the second.
#[inline(always)]
fn features(faces: &[Face; 2]) -> (u32, u32) {
    let (one, two) = (faces[0].corners, faces[1].corners);
    let mut equal = 0;
    for at in 0..9 {
        equal |= u32::from(one[at / 3] == two[at % 3]) << at;
    }
    let columns = (equal | equal >> 3 | equal >> 6) & 7;
    let rows = equal | equal >> 1 | equal >> 2;
    let rows = rows & 1 | rows >> 2 & 2 | rows >> 4 & 4;
    let (own, others) = (faces[0].owned(), faces[1].owned());
    let vertices = own & 7 & !rows | (others & 7 & !columns) << 3;
    // The mask of edge pairs (i, j) in which the first triangle owns its edge i.
    let spread = (((own >> 3) & 1) * 0o7) | (((own >> 4) & 1) * 0o70) | (((own >> 5) & 1) * 0o700);
    let edges = ((others >> 3) * 0o111) & spread & !MEETING[equal as usize & 511];
    (vertices, edges)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collide::surface::Surface;

    #[test]
    fn features_are_those_that_one_owns_and_that_do_not_meet() {
        let all: Vec<[u32; 3]> = (0..6)
            .flat_map(|a| (0..6).flat_map(move |b| (0..6).map(move |c| [a, b, c])))
            .filter(|[a, b, c]| a != b && b != c && c != a)
            .collect();
        let surface = Surface::new(&all, 6);
        for s in 0..all.len() as u32 {
            for t in 0..all.len() as u32 {
                let faces = [surface.face(s), surface.face(t)];
                let (vertices, edges) = features(&faces);
                let (mut expected, mut pairs) = (0, 0);
                for (owner, shift) in [(0, 0), (1, 3)] {
                    for (k, vertex) in faces[owner].owned_corners_at() {
                        let is_new = !faces[1 - owner].corners.contains(&vertex);
                        expected |= u32::from(is_new) << (k + shift);
                    }
                }
                for (i, [p, q]) in faces[0].owned_edges() {
                    for (j, ends) in faces[1].owned_edges() {
                        let meet = ends.contains(&p) || ends.contains(&q);
                        pairs |= u32::from(!meet) << (3 * i + j);
                    }
                }
                assert_eq!((vertices, edges), (expected, pairs), "{faces:?}");
            }
        }
    }
}
