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

use glam::{DVec2, DVec3};

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
#[derive(Clone, Copy, Debug)]
pub(in crate::collide) struct RestAdjacentGroup {
    /// The tile and the number of the block there; the tile is [`NONE`] if no block is around them.
    pub(in crate::collide) block: (u32, u32),
    /// The least square of their distances.
    pub(in crate::collide) square: f32,
    /// The first of its runs.
    first: u32,
}

owns_no_heap!(RestAdjacentGroup);

/// The pairs of a group that have the same first feature: they follow each other in its row.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// The first feature, with [`EDGES`] for an edge.
    a: u32,
    /// The place in its row at which they begin.
    from: u16,
    /// How many there are.
    count: u16,
}

owns_no_heap!(Run);

/// The mark of a run of pairs of edges.
const EDGES: u32 = 1 << 31;

/// The groups of the rest-adjacent pairs of a patch, to which the first feature of each belongs.
#[derive(Clone, Debug, Default)]
struct Groups {
    groups: Vec<RestAdjacentGroup>,
    runs: Vec<Run>,
}

counts_heap!(Groups: groups, runs);

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
        let runs = &runs[groups[group].first as usize..end];
        runs.iter().flat_map(move |run| self.all.run(run))
    }
}

/// The second features of pairs, for each of many first ones, in no order that matters.
#[derive(Clone, Debug, Default)]
struct Rows {
    starts: Vec<u32>,
    entries: Vec<u32>,
    /// The squares of distances in the chart in m², or less.
    squares: Vec<f32>,
}

counts_heap!(Rows: starts, entries, squares);

impl Rows {
    /// Rows of these lengths, to be filled.
    fn new(lengths: Vec<u32>) -> Self {
        let mut starts = lengths;
        let mut sum = 0;
        for start in &mut starts {
            sum += std::mem::replace(start, sum);
        }
        starts.push(sum);
        starts.shrink_to_fit();
        Self {
            starts,
            entries: vec![NONE; sum as usize],
            squares: vec![0.0; sum as usize],
        }
    }

    fn row(&self, a: u32) -> Range<usize> {
        self.starts[a as usize] as usize..self.starts[a as usize + 1] as usize
    }

    fn has(&self, a: u32, b: u32) -> bool {
        self.entries[self.row(a)].contains(&b)
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
    ) -> Option<Self> {
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
                    return Vec::new();
                }
            }
            found.sort_unstable_by_key(|(block, pair)| (*block, pair.edges, pair.a, pair.b));
            found.shrink_to_fit();
            found
        };
        let found = parallel::map(patches.len(), of_patch);
        if count.into_inner() > most {
            return None;
        }
        let vertices = surface.triangles().iter().flatten().max();
        let vertices = vertices.map_or(0, |&v| v as usize + 1);
        Self::of_found(found, [vertices, surface.edges().len()])
    }

    /// The pairs of each patch, sorted by their groups, with this number of vertices and of edges.
    /// `None` if one of these has too many.
    fn of_found(found: Vec<Vec<Found>>, [vertices, edges]: [usize; 2]) -> Option<Self> {
        if edges > EDGES as usize {
            return None;
        }
        let (mut of_faces, mut of_edges) = (vec![0_u32; vertices], vec![0_u32; edges]);
        for (_, pair) in found.iter().flatten() {
            let lengths = match pair.edges {
                true => &mut of_edges,
                false => &mut of_faces,
            };
            lengths[pair.a as usize] += 1;
        }
        let longest = of_faces.iter().chain(&of_edges).max();
        if longest.is_some_and(|&longest| longest > u32::from(u16::MAX)) {
            return None;
        }
        let mut all = Self {
            patches: Vec::with_capacity(found.len()),
            faces: Rows::new(of_faces),
            edges: Rows::new(of_edges),
        };
        // The number of entries that each row has so far.
        let mut filled = [vec![0_u16; vertices], vec![0_u16; edges]];
        for found in found {
            all.add_patch(found, &mut filled);
        }
        Some(all)
    }

    /// Appends the groups of a patch, and puts its pairs into their rows.
    fn add_patch(&mut self, found: Vec<Found>, filled: &mut [Vec<u16>; 2]) {
        let mut of = Groups::default();
        for (block, pair) in found {
            let is_new = of.groups.last().is_none_or(|group| group.block != block);
            let a = pair.a | (u32::from(pair.edges) * EDGES);
            let rows = match pair.edges {
                true => &mut self.edges,
                false => &mut self.faces,
            };
            let filled = &mut filled[usize::from(pair.edges)][pair.a as usize];
            let at = rows.row(pair.a).start + usize::from(*filled);
            (rows.entries[at], rows.squares[at]) = (pair.b, pair.square);
            match of.runs.last_mut().filter(|run| !is_new && run.a == a) {
                Some(run) => run.count += 1,
                None => of.runs.push(Run {
                    a,
                    from: *filled,
                    count: 1,
                }),
            }
            *filled += 1;
            match of.groups.last_mut().filter(|_| !is_new) {
                Some(group) => group.square = group.square.min(pair.square),
                None => of.groups.push(RestAdjacentGroup {
                    block,
                    square: pair.square,
                    first: of.runs.len() as u32 - 1,
                }),
            }
        }
        of.groups.shrink_to_fit();
        of.runs.shrink_to_fit();
        self.patches.push(of);
    }

    /// The pairs of a run.
    #[inline]
    fn run(&self, run: &Run) -> impl Iterator<Item = RestAdjacentPair> + '_ {
        let (edges, a) = (run.a & EDGES != 0, run.a & !EDGES);
        let rows = if edges { &self.edges } else { &self.faces };
        let first = rows.starts[a as usize] as usize + usize::from(run.from);
        let run = first..first + usize::from(run.count);
        let pairs = rows.entries[run.clone()].iter().zip(&rows.squares[run]);
        pairs.map(move |(&b, &square)| RestAdjacentPair {
            edges,
            a,
            b,
            square,
        })
    }

    /// The pairs of a patch.
    pub(in crate::collide) fn of_patch(&self, patch: u32) -> RestAdjacentPairs<'_> {
        RestAdjacentPairs {
            all: self,
            of: &self.patches[patch as usize],
        }
    }

    /// A triangle with the second feature of each pair of a patch.
    pub(in crate::collide) fn others<'a>(
        &'a self,
        patch: u32,
        surface: &'a Surface,
    ) -> impl Iterator<Item = u32> + 'a {
        let runs = self.patches[patch as usize].runs.iter();
        let pairs = runs.flat_map(|run| self.run(run));
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
            let is_far = !Box2::around(&[p]).is_near(whole, distance);
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
            if !around_one.is_near(whole, distance) {
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
