//! Rest-adjacent pairs: features that are close at rest already. They are found once, and always
//! tested on their own.
//!
//! Traversal leaves out pairs of nodes that a separation bound keeps apart, except for features
//! that are closer at rest than a little more than the reach. These pairs are listed here, so that
//! a test of nodes need not care for them: each is tested unless the bound of the block around it
//! is large enough for just its distance. On a mesh whose cells are larger than the reach there are
//! few or none.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytemuck::{Pod, Zeroable};
use glam::{DVec2, DVec3};

use crate::archive::{Array, archives};

use crate::collide::cull::charts::{Box2, Charts, NONE};
use crate::collide::narrow::closest::{on_segments, on_triangle};
use crate::collide::surface::Surface;
use crate::heap_bytes::{counts_heap, owns_no_heap};
use crate::parallel;

/// The most pairs for each triangle that are worth being listed.
const MOST: usize = 48;

/// Two features that are close at rest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::collide) struct RestAdjacentPair {
    /// Whether they are two edges, the lower first; otherwise they are a vertex and a triangle.
    pub(in crate::collide) edges: bool,
    pub(in crate::collide) a: u32,
    pub(in crate::collide) b: u32,
    /// The square of their distance in the chart in m², or less.
    pub(in crate::collide) square: f32,
}

owns_no_heap!(RestAdjacentPair);

/// The pairs with one block around them.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(in crate::collide) struct RestAdjacentGroup {
    /// The tile and the number of the block there; the tile is [`NONE`] if no block is around them.
    pub(in crate::collide) block: [u32; 2],
    /// The least square of their distances.
    pub(in crate::collide) square: f32,
    /// The first of its runs.
    first: u32,
}

owns_no_heap!(RestAdjacentGroup);

/// The pairs of a group that have the same first feature: they follow each other in its row.
///
/// First features ascend within a group, those of faces before those of edges, so a run says how
/// much larger its feature is than that of the run before. Few numbers are too large for that: a
/// run of no pairs says how to take the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
struct Run {
    /// By how much the number of the first feature is larger.
    step: u16,
    /// The place in its row at which they begin; of a run of no pairs, what it says.
    from: u8,
    /// How many there are.
    count: u8,
}

owns_no_heap!(Run);

impl Run {
    /// The feature of the next run is larger by 2¹⁶ times the step.
    const FAR: u8 = 0;
    /// The next run begins farther on in its row, by 2⁸ times the step.
    const LATE: u8 = 1;
    /// The features of the next runs are edges, counted from 0 again.
    const EDGES: u8 = 2;

    /// A run of no pairs.
    fn saying(what: u8, step: u16) -> Self {
        Self {
            step,
            from: what,
            count: 0,
        }
    }
}

/// The place among the runs of a group.
#[derive(Clone, Copy, Debug, Default)]
struct Cursor {
    /// Whether features are edges.
    edges: bool,
    /// The feature of the last run.
    a: u32,
    /// By how much the next run begins later than it says.
    late: usize,
}

impl Cursor {
    /// Takes a run in, and tells the places in the row of [`Self::a`] of its pairs.
    #[inline]
    fn take(&mut self, run: Run) -> Range<usize> {
        let step = u32::from(run.step);
        if run.count > 0 {
            self.a += step;
            let from = std::mem::take(&mut self.late) + usize::from(run.from);
            return from..from + usize::from(run.count);
        }
        match run.from {
            Run::FAR => self.a += step << 16,
            Run::LATE => self.late = usize::from(run.step) << 8,
            _ => {
                *self = Self {
                    edges: true,
                    ..Self::default()
                }
            }
        }
        0..0
    }

    /// Appends the runs of a first feature, whose pairs stand at these places in its row.
    fn put(&mut self, (edges, a): (bool, u32), places: Range<usize>, out: &mut Vec<Run>) {
        if edges != self.edges {
            self.put_one(Run::saying(Run::EDGES, 0), out);
        }
        let step = a - self.a;
        if step >> 16 > 0 {
            self.put_one(Run::saying(Run::FAR, (step >> 16) as u16), out);
        }
        let mut from = places.start;
        while from < places.end {
            if from >> 8 > 0 {
                self.put_one(Run::saying(Run::LATE, (from >> 8) as u16), out);
            }
            let count = (places.end - from).min(usize::from(u8::MAX));
            let run = Run {
                step: (a - self.a) as u16,
                from: (from & 0xff) as u8,
                count: count as u8,
            };
            self.put_one(run, out);
            from += count;
        }
    }

    fn put_one(&mut self, run: Run, out: &mut Vec<Run>) {
        self.take(run);
        out.push(run);
    }
}

/// The groups of the rest-adjacent pairs of a patch, to which the first feature of each belongs.
#[derive(Clone, Debug, Default)]
struct Groups {
    groups: Array<RestAdjacentGroup>,
    runs: Array<Run>,
}

counts_heap!(Groups: groups, runs);
archives!(Groups: groups, runs);

/// All rest-adjacent pairs of a cloth.
#[derive(Clone, Debug, Default)]
pub(in crate::collide) struct RestAdjacent {
    patches: Vec<Groups>,
    /// The rest-adjacent triangles of each vertex, and the rest-adjacent edges with larger numbers
    /// of each edge.
    faces: Rows,
    edges: Rows,
}

counts_heap!(RestAdjacent: patches, faces, edges);
archives!(RestAdjacent: patches, faces, edges);

/// The rest-adjacent pairs of a patch.
#[derive(Clone, Copy, Debug)]
pub(in crate::collide) struct RestAdjacentPairs<'a> {
    all: &'a RestAdjacent,
    of: &'a Groups,
}

impl<'a> RestAdjacentPairs<'a> {
    /// The groups of pairs.
    pub(in crate::collide) fn groups(self) -> &'a [RestAdjacentGroup] {
        &self.of.groups
    }

    /// The pairs of a group.
    #[inline]
    pub(in crate::collide) fn pairs(
        self,
        group: usize,
    ) -> impl Iterator<Item = RestAdjacentPair> + 'a {
        let Groups { groups, runs } = self.of;
        let end = groups
            .get(group + 1)
            .map_or(runs.len(), |next| next.first as usize);
        self.all.pairs_of(&runs[groups[group].first as usize..end])
    }
}

/// The second features of pairs, for each of many first ones, in no order that matters.
#[derive(Clone, Debug, Default)]
struct Rows {
    /// The place at which each of some rows that follow each other begins, and by how much later
    /// each row does.
    bases: Array<u32>,
    starts: Array<u16>,
    entries: Array<u32>,
    /// The squares of distances in the chart in m², or a little less: the upper halves of numbers
    /// in f32.
    squares: Array<u16>,
}

counts_heap!(Rows: bases, starts, entries, squares);
archives!(Rows: bases, starts, entries, squares);

/// The number of rows that have one base.
const ROWS: usize = 16;

impl Rows {
    /// Rows of these lengths, to be filled; `None` if some that follow each other, or all together,
    /// are too long.
    fn new(lengths: Vec<u32>) -> Option<Self> {
        let mut bases = Vec::with_capacity(lengths.len() / ROWS + 1);
        let mut starts = Vec::with_capacity(lengths.len() + 1);
        let (mut base, mut sum) = (0, 0_u32);
        for (row, length) in lengths.iter().chain([&0]).enumerate() {
            if row % ROWS == 0 {
                base = sum;
                bases.push(base);
            }
            starts.push(u16::try_from(sum - base).ok()?);
            sum = sum.checked_add(*length)?;
        }
        Some(Self {
            bases: bases.into(),
            starts: starts.into(),
            entries: vec![NONE; sum as usize].into(),
            squares: vec![0; sum as usize].into(),
        })
    }

    #[inline]
    fn start(&self, row: usize) -> usize {
        self.bases[row / ROWS] as usize + usize::from(self.starts[row])
    }

    fn has(&self, a: u32, b: u32) -> bool {
        let row = self.start(a as usize)..self.start(a as usize + 1);
        self.entries[row].contains(&b)
    }
}

/// The upper half of a positive number, which is not above it.
fn upper_half(of: f32) -> u16 {
    (of.to_bits() >> 16) as u16
}

/// The rest-adjacent pairs of a patch, as they are found.
#[derive(Clone, Debug, Default)]
struct OfPatch {
    of: Groups,
    /// The first features, those of faces before those of edges, and how many pairs each has.
    rows: Vec<(bool, u32, u32)>,
    /// The second features and the squares, row by row.
    entries: Vec<u32>,
    squares: Vec<u16>,
}

impl OfPatch {
    /// The pairs that were found, in any order.
    fn new(mut found: Vec<Found>) -> Self {
        found.sort_unstable_by_key(|(block, pair)| (*block, pair.edges, pair.a, pair.b));
        let first = |(_, pair): &Found| (pair.edges, pair.a);
        // Rows keep the order of groups.
        let mut order: Vec<u32> = (0..found.len() as u32).collect();
        order.sort_by_key(|&at| first(&found[at as usize]));
        let mut all = Self {
            entries: Vec::with_capacity(found.len()),
            squares: Vec::with_capacity(found.len()),
            ..Self::default()
        };
        let mut places = vec![0_usize; found.len()];
        for row in order
            .chunk_by(|&one, &other| first(&found[one as usize]) == first(&found[other as usize]))
        {
            let (edges, a) = first(&found[row[0] as usize]);
            all.rows.push((edges, a, row.len() as u32));
            for (place, &at) in row.iter().enumerate() {
                let (_, pair) = &found[at as usize];
                all.entries.push(pair.b);
                all.squares.push(upper_half(pair.square));
                places[at as usize] = place;
            }
        }
        drop(order);
        let mut at = 0;
        let (mut groups, mut runs) = (Vec::new(), Vec::new());
        for group in found.chunk_by(|(one, _), (other, _)| one == other) {
            let squares = group.iter().map(|(_, pair)| pair.square);
            groups.push(RestAdjacentGroup {
                block: group[0].0.into(),
                square: squares.fold(f32::INFINITY, f32::min),
                first: runs.len() as u32,
            });
            let mut cursor = Cursor::default();
            for run in group.chunk_by(|one, other| first(one) == first(other)) {
                let from = places[at];
                at += run.len();
                cursor.put(first(&run[0]), from..from + run.len(), &mut runs);
            }
        }
        groups.shrink_to_fit();
        runs.shrink_to_fit();
        all.of = Groups {
            groups: groups.into(),
            runs: runs.into(),
        };
        all.rows.shrink_to_fit();
        all
    }
}

/// The rest-adjacent pairs of all patches, as they are found.
#[derive(Clone, Debug, Default)]
pub(in crate::collide) struct FoundPairs {
    patches: Vec<OfPatch>,
    /// The number of vertices and of edges.
    features: [usize; 2],
}

impl FoundPairs {
    /// The pairs with rows for all features; `None` if some of these have too many.
    pub(in crate::collide) fn joined(self) -> Option<RestAdjacent> {
        let mut lengths = self.features.map(|count| vec![0_u32; count]);
        for &(edges, a, length) in self.patches.iter().flat_map(|found| &found.rows) {
            lengths[usize::from(edges)][a as usize] = length;
        }
        let [faces, edges] = lengths;
        let mut all = RestAdjacent {
            patches: Vec::with_capacity(self.patches.len()),
            faces: Rows::new(faces)?,
            edges: Rows::new(edges)?,
        };
        for found in self.patches {
            let (mut entries, mut squares) = (&found.entries[..], &found.squares[..]);
            for &(edges, a, length) in &found.rows {
                let rows = match edges {
                    true => &mut all.edges,
                    false => &mut all.faces,
                };
                let start = rows.start(a as usize);
                let row = start..start + length as usize;
                let (own, others) = entries.split_at(row.len());
                rows.entries.to_mut()[row.clone()].copy_from_slice(own);
                entries = others;
                let (own, others) = squares.split_at(row.len());
                rows.squares.to_mut()[row].copy_from_slice(own);
                squares = others;
            }
            all.patches.push(found.of);
        }
        Some(all)
    }
}

impl RestAdjacent {
    /// Finds all pairs closer than `distance` (m) in their chart; `None` if there are too many. A
    /// pair belongs to the patch of the triangle that owns its first feature; `patches` are the
    /// triangles of each.
    pub(in crate::collide) fn find(
        surface: &Surface,
        charts: &Charts,
        distance: f64,
        patches: &[Vec<u32>],
    ) -> Option<FoundPairs> {
        let most = MOST * surface.triangles().len();
        let count = AtomicUsize::new(0);
        let of_patch = |patch: usize| {
            let mut found = Vec::new();
            let mut around = Vec::new();
            for &s in &patches[patch] {
                let before = found.len();
                charts.around(s, distance, &mut around);
                find_pairs(surface, charts, distance, s, &around, &mut found);
                let new = found.len() - before;
                if count.fetch_add(new, Ordering::Relaxed) + new > most {
                    // There are too many in all, whichever were found first.
                    return OfPatch::default();
                }
            }
            OfPatch::new(found)
        };
        let patches = parallel::map(patches.len(), of_patch);
        if count.into_inner() > most {
            return None;
        }
        let vertices = surface.triangles().iter().flatten().max();
        let vertices = vertices.map_or(0, |&v| v as usize + 1);
        Some(FoundPairs {
            patches,
            features: [vertices, surface.edges().len()],
        })
    }

    /// The pairs of a patch.
    pub(in crate::collide) fn of_patch(&self, patch: u32) -> RestAdjacentPairs<'_> {
        RestAdjacentPairs {
            all: self,
            of: &self.patches[patch as usize],
        }
    }

    /// The pairs of the runs of some groups.
    #[inline]
    fn pairs_of(&self, runs: &[Run]) -> impl Iterator<Item = RestAdjacentPair> {
        let mut cursor = Cursor::default();
        runs.iter().flat_map(move |&run| {
            let places = cursor.take(run);
            let Cursor { edges, a, .. } = cursor;
            let rows = if edges { &self.edges } else { &self.faces };
            let start = if places.is_empty() {
                0
            } else {
                rows.start(a as usize)
            };
            let run = start + places.start..start + places.end;
            let pairs = rows.entries[run.clone()].iter().zip(&rows.squares[run]);
            pairs.map(move |(&b, &square)| RestAdjacentPair {
                edges,
                a,
                b,
                square: f32::from_bits(u32::from(square) << 16),
            })
        })
    }

    /// A triangle with the second feature of each pair of a patch.
    pub(in crate::collide) fn others<'a>(
        &'a self,
        patch: u32,
        surface: &'a Surface,
    ) -> impl Iterator<Item = u32> + 'a {
        let of = self.of_patch(patch);
        let pairs = (0..of.groups().len()).flat_map(move |group| of.pairs(group));
        pairs.map(|pair| match pair.edges {
            true => surface.faces_at(pair.b)[0],
            false => pair.b,
        })
    }

    /// Whether a vertex and a triangle are listed.
    pub(in crate::collide) fn has_face(&self, vertex: u32, triangle: u32) -> bool {
        self.faces.has(vertex, triangle)
    }

    /// Whether two edges are listed.
    pub(in crate::collide) fn has_edges(&self, a: u32, b: u32) -> bool {
        self.edges.has(a.min(b), a.max(b))
    }
}

/// A pair after the block around it.
type Found = ((u32, u32), RestAdjacentPair);

/// Appends the pairs of which a triangle owns the first feature and one of those around it the
/// other.
fn find_pairs(
    surface: &Surface,
    charts: &Charts,
    distance: f64,
    s: u32,
    around: &[u32],
    found: &mut Vec<Found>,
) {
    let face = surface.face(s);
    let own = charts.corners(s);
    let at = |corners: [DVec2; 3], k: usize| [corners[k], corners[(k + 1) % 3]];
    for &t in around {
        let other = surface.face(t);
        let corners = charts.corners(t);
        let whole = charts.rectangle(t);
        let mut add = |edges: bool, a: u32, b: u32, apart: f64, points: &[DVec2]| {
            let place = charts.place_of(s, points);
            let pair = RestAdjacentPair {
                edges,
                a,
                b,
                square: (apart * apart * (1.0 - 1e-6)) as f32,
            };
            let block = charts.block(place).unwrap_or((NONE, 0));
            found.push((block, pair));
        };
        for (k, vertex) in face.owned_corners_at() {
            let p = own[k];
            let is_far = !Box2::around(&[p]).is_near(&whole, distance);
            if is_far || other.corners.contains(&vertex) {
                continue;
            }
            let apart = to_triangle(p, corners);
            if apart < distance {
                let [a, b, c] = corners;
                add(false, vertex, t, apart, &[p, a, b, c]);
            }
        }
        for (i, [p, q]) in face.owned_edges() {
            let one = at(own, i);
            let around_one = Box2::around(&one);
            if !around_one.is_near(&whole, distance) {
                continue;
            }
            for (j, ends) in other.owned_edges() {
                let (a, b) = (surface.edges_of(s)[i], surface.edges_of(t)[j]);
                if a >= b || ends.contains(&p) || ends.contains(&q) {
                    continue;
                }
                let two = at(corners, j);
                if !around_one.is_near(&Box2::around(&two), distance) {
                    continue;
                }
                let apart = between(one, two);
                if apart < distance {
                    add(true, a, b, apart, &[one[0], one[1], two[0], two[1]]);
                }
            }
        }
    }
}

fn to_triangle(p: DVec2, corners: [DVec2; 3]) -> f64 {
    let lift = |p: DVec2| DVec3::new(p.x, p.y, 0.0);
    let [a, b, c] = corners.map(lift);
    let w = on_triangle(lift(p), a, b, c);
    lift(p).distance(a * w[0] + b * w[1] + c * w[2])
}

fn between([p, q]: [DVec2; 2], [r, s]: [DVec2; 2]) -> f64 {
    let lift = |p: DVec2| DVec3::new(p.x, p.y, 0.0);
    let (t, u) = on_segments(lift(p), lift(q), lift(r), lift(s));
    p.lerp(q, t).distance(r.lerp(s, u))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_read_as_they_were_found() {
        let pair = |edges, a, b| RestAdjacentPair {
            edges,
            a,
            b,
            square: 1e-6 * (a % 7 + b % 5 + 1) as f32,
        };
        let faces = (0..300).map(|b| pair(false, 70_000, b));
        let far = [
            pair(false, 3, 9),
            pair(true, 2, 200_000),
            pair(true, 199_999, 200_001),
        ];
        let first: Vec<Found> = far
            .iter()
            .copied()
            .chain(faces)
            .map(|pair| ((1, 2), pair))
            .collect();
        let later = (300..700).map(|b| ((3, 0), pair(false, 70_000, b)));
        let second = [((NONE, 0), pair(true, 4, 5))];
        let mut all = vec![first.into_iter().chain(later).collect(), second.to_vec()];
        for found in &mut all {
            let found: &mut Vec<Found> = found;
            found.sort_unstable_by_key(|(block, pair)| (*block, pair.edges, pair.a, pair.b));
        }
        let joined = |found: Vec<Vec<Found>>, features| {
            let patches = found.into_iter().map(OfPatch::new).collect();
            FoundPairs { patches, features }.joined()
        };
        let rest_adjacent = joined(all.clone(), [80_000, 300_000]).unwrap();
        for (patch, found) in (0..).zip(&all) {
            let of = rest_adjacent.of_patch(patch);
            let groups = of.groups().iter().enumerate();
            let read = groups.flat_map(|(k, group)| of.pairs(k).map(move |pair| (group, pair)));
            for ((group, read), (block, pair)) in read.zip(found) {
                assert_eq!(
                    (group.block.into(), read.edges, read.a, read.b),
                    (*block, pair.edges, pair.a, pair.b)
                );
                assert!(group.square <= pair.square);
                assert!(read.square <= pair.square && read.square > 0.99 * pair.square);
            }
            let count: usize = (0..of.groups().len())
                .map(|group| of.pairs(group).count())
                .sum();
            assert_eq!(count, found.len());
        }
        assert!(rest_adjacent.has_face(70_000, 555) && !rest_adjacent.has_face(70_000, 700));
        assert!(rest_adjacent.has_edges(5, 4) && !rest_adjacent.has_edges(2, 3));
        let many = (0..70_000).map(|b| ((0, 0), pair(false, 1, b))).collect();
        assert!(joined(vec![many], [2, 0]).is_none());
    }
}
