//! Rest-adjacent pairs: features that are close at rest already. They are found once, and always
//! tested on their own.
//!
//! Traversal leaves out pairs of nodes that a separation bound keeps apart, except for features
//! that are closer at rest than a little more than the reach. These pairs are listed here, so that
//! a test of nodes need not care for them: each is tested unless the bound of the block around it
//! is large enough for just its distance. On a mesh whose cells are larger than the reach there are
//! few or none.

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
    first: u32,
}

owns_no_heap!(RestAdjacentGroup);

/// The rest-adjacent pairs of a patch, to which the first feature of each belongs.
#[derive(Clone, Debug, Default)]
pub(in crate::collide) struct RestAdjacentPairs {
    groups: Vec<RestAdjacentGroup>,
    pairs: Vec<RestAdjacentPair>,
}

counts_heap!(RestAdjacentPairs: groups, pairs);

impl RestAdjacentPairs {
    /// The groups of pairs.
    pub(in crate::collide) fn groups(&self) -> &[RestAdjacentGroup] {
        &self.groups
    }

    /// The pairs of a group.
    pub(in crate::collide) fn pairs(&self, group: usize) -> &[RestAdjacentPair] {
        let end = self
            .groups
            .get(group + 1)
            .map_or(self.pairs.len(), |next| next.first as usize);
        &self.pairs[self.groups[group].first as usize..end]
    }
}

/// All rest-adjacent pairs of a cloth.
#[derive(Clone, Debug, Default)]
pub(in crate::collide) struct RestAdjacent {
    patches: Vec<RestAdjacentPairs>,
    /// The rest-adjacent triangles of each vertex, and the rest-adjacent edges with larger numbers
    /// of each edge.
    faces: Lists,
    edges: Lists,
}

counts_heap!(RestAdjacent: patches, faces, edges);

/// Ascending numbers for each of many things.
#[derive(Clone, Debug, Default)]
struct Lists {
    starts: Vec<u32>,
    entries: Vec<u32>,
}

counts_heap!(Lists: starts, entries);

impl Lists {
    /// The second numbers of pairs by the first, of which there are `count`.
    fn new<I: Iterator<Item = (u32, u32)>>(pairs: impl Fn() -> I, count: usize) -> Self {
        let mut starts = vec![0_u32; count + 1];
        pairs().for_each(|(a, _)| starts[a as usize + 1] += 1);
        for k in 0..count {
            starts[k + 1] += starts[k];
        }
        let mut next = starts.clone();
        let mut entries = vec![0; starts[count] as usize];
        for (a, b) in pairs() {
            let at = &mut next[a as usize];
            entries[*at as usize] = b;
            *at += 1;
        }
        for row in starts.windows(2) {
            entries[row[0] as usize..row[1] as usize].sort_unstable();
        }
        Self { starts, entries }
    }

    fn has(&self, a: u32, b: u32) -> bool {
        let range = self.starts[a as usize] as usize..self.starts[a as usize + 1] as usize;
        self.entries[range].contains(&b)
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
                    return RestAdjacentPairs::default();
                }
            }
            grouped(found)
        };
        let patches = parallel::map(patches.len(), of_patch);
        if count.into_inner() > most {
            return None;
        }
        let list = |edges: bool, count: usize| {
            let pairs = patches.iter().flat_map(|of| &of.pairs);
            let chosen = pairs.filter(move |pair| pair.edges == edges);
            Lists::new(|| chosen.clone().map(|pair| (pair.a, pair.b)), count)
        };
        let vertices = surface.triangles().iter().flatten().max();
        let vertices = vertices.map_or(0, |&v| v as usize + 1);
        let (faces, edges) = parallel::join(
            || list(false, vertices),
            || list(true, surface.edges().len()),
        );
        Some(Self {
            faces,
            edges,
            patches,
        })
    }

    /// The pairs of a patch.
    pub(in crate::collide) fn of_patch(&self, patch: u32) -> &RestAdjacentPairs {
        &self.patches[patch as usize]
    }

    /// A triangle with the second feature of each pair of a patch.
    pub(in crate::collide) fn others<'a>(
        &'a self,
        patch: u32,
        surface: &'a Surface,
    ) -> impl Iterator<Item = u32> + 'a {
        let pairs = self.of_patch(patch).pairs.iter();
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

/// Sorts pairs by their blocks.
fn grouped(mut found: Vec<Found>) -> RestAdjacentPairs {
    found.sort_unstable_by_key(|(block, pair)| (*block, pair.edges, pair.a, pair.b));
    let mut rest_adjacent = RestAdjacentPairs {
        pairs: Vec::with_capacity(found.len()),
        ..RestAdjacentPairs::default()
    };
    for (block, pair) in found {
        match rest_adjacent.groups.last_mut() {
            Some(group) if group.block == block => group.square = group.square.min(pair.square),
            _ => rest_adjacent.groups.push(RestAdjacentGroup {
                block,
                square: pair.square,
                first: rest_adjacent.pairs.len() as u32,
            }),
        }
        rest_adjacent.pairs.push(pair);
    }
    rest_adjacent.groups.shrink_to_fit();
    rest_adjacent
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
