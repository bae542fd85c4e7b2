//! The tangles of a start.
//!
//! Contours between the same two pieces of cloth, or within one, are looked at together. Edges that
//! are crossed an odd number of times are cut, and what remains connected is a *region*. Regions on
//! both sides of a cut are given different colours. The one of the two colours that has fewer
//! vertices is through the other piece. A piece that is not cut in two, or whose regions have no
//! such colouring, has no part that is through: then the crossings alone are kept, with one ring.

use std::collections::{BTreeMap, BTreeSet};

use glam::DVec3;

use super::contours::{Contour, contours};
use super::kept::{Kept, Member};
use super::nudge::nudged;
use crate::collide::audit::{Crossing, Skin};
use crate::collide::passing::Passing;
use crate::collide::surface::Surface;
use crate::disjoint_sets::DisjointSets;

/// The kept set of triangles that start at these positions, in m; empty if nothing crosses but
/// cloth that passes through itself.
#[must_use]
pub fn tangles_of(x: &[DVec3], triangles: &[[u32; 3]], passing: &Passing) -> Kept {
    let crossings = |x| Skin::new(x, triangles).letting(passing.clone()).crossings();
    let exact = crossings(x);
    if exact.is_empty() {
        return Kept::default();
    }
    let all: BTreeSet<Crossing> = crossings(&nudged(x)).into_iter().collect();
    let missing = exact.into_iter().filter(|crossing| !all.contains(crossing));
    let missing: Vec<Crossing> = missing.collect();
    let all: Vec<Crossing> = all.into_iter().chain(missing).collect();
    of_crossings(triangles, x.len(), &all)
}

/// The kept set of triangles over this many vertices that start with such crossings.
fn of_crossings(triangles: &[[u32; 3]], vertices: usize, crossings: &[Crossing]) -> Kept {
    let surface = Surface::new(triangles, vertices);
    let mut pieces = DisjointSets::of_triangles(triangles, vertices);
    let piece_of: Vec<u32> = (0..vertices as u32).map(|v| pieces.least(v)).collect();
    let mut groups: BTreeMap<[u32; 2], Vec<Contour>> = BTreeMap::new();
    for contour in contours(crossings, triangles) {
        let (edge, face) = contour.nodes[0].crossing;
        let of = [edge[0], triangles[face as usize][0]].map(|v| piece_of[v as usize]);
        let group = [of[0].min(of[1]), of[0].max(of[1])];
        groups.entry(group).or_default().push(contour);
    }
    let mut found = Found::default();
    for (group, contours) in &groups {
        let of_group = |v: u32| group.contains(&piece_of[v as usize]);
        let regions = Regions::new(&surface, of_group, contours);
        found.add(&surface, &regions, contours);
    }
    found.finish(&surface)
}

/// The regions of a group of contours, and those that are through.
struct Regions {
    /// The least vertex of each vertex's region.
    of: Vec<u32>,
    through: BTreeSet<u32>,
}

impl Regions {
    fn new(surface: &Surface, of_group: impl Fn(u32) -> bool, contours: &[Contour]) -> Self {
        let mut is_cut: BTreeMap<[u32; 2], bool> = BTreeMap::new();
        for node in contours.iter().flat_map(|contour| &contour.nodes) {
            let cut = is_cut.entry(node.crossing.0).or_default();
            *cut = !*cut;
        }
        let is_cut = |edge: &[u32; 2]| is_cut.get(edge).copied().unwrap_or(false);
        let vertices = surface.triangles().iter().flatten().max();
        let count = vertices.map_or(0, |&v| v as usize + 1);
        let mut sets = DisjointSets::new(count);
        for edge in surface.edges() {
            if of_group(edge[0]) && !is_cut(edge) {
                sets.unite(edge[0], edge[1]);
            }
        }
        let of: Vec<u32> = (0..count as u32).map(|v| sets.least(v)).collect();
        let mut sizes: BTreeMap<u32, u64> = BTreeMap::new();
        for (v, &region) in (0..).zip(&of) {
            if of_group(v) {
                *sizes.entry(region).or_default() += 1;
            }
        }
        let mut beside: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        for [a, b] in surface.edges().iter().filter(|edge| is_cut(edge)) {
            let [a, b] = [a, b].map(|&v| of[v as usize]);
            // A cut that ends within a region has the same region on both sides.
            if a != b {
                beside.entry(a).or_default().insert(b);
                beside.entry(b).or_default().insert(a);
            }
        }
        Self {
            through: smaller_colours(&sizes, &beside),
            of,
        }
    }

    /// The region of a vertex, if it is through.
    fn through(&self, vertex: u32) -> Option<u32> {
        let region = self.of[vertex as usize];
        self.through.contains(&region).then_some(region)
    }
}

/// Colours regions that lie beside each other differently, and gives those of the colour with fewer
/// vertices. Where both have as many, the colour of the least region is not taken.
fn smaller_colours(
    sizes: &BTreeMap<u32, u64>,
    beside: &BTreeMap<u32, BTreeSet<u32>>,
) -> BTreeSet<u32> {
    let mut colour: BTreeMap<u32, bool> = BTreeMap::new();
    let mut smaller = BTreeSet::new();
    for &first in beside.keys() {
        if colour.contains_key(&first) {
            continue;
        }
        colour.insert(first, false);
        let mut order = vec![first];
        let (mut at, mut has_conflict) = (0, false);
        while let Some(&region) = order.get(at) {
            at += 1;
            let its_colour = colour[&region];
            for &other in &beside[&region] {
                let there = *colour.entry(other).or_insert_with(|| {
                    order.push(other);
                    !its_colour
                });
                has_conflict |= there == its_colour;
            }
        }
        if has_conflict {
            continue;
        }
        let mut counts = [0; 2];
        for region in &order {
            counts[usize::from(colour[region])] += sizes[region];
        }
        let taken = counts[1] <= counts[0];
        smaller.extend(order.iter().filter(|region| colour[region] == taken));
    }
    smaller
}

/// Something beside a contour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Beside {
    /// A region that is through.
    Region(u32),
    /// A vertex of a feature that crosses.
    Vertex(u32),
}

/// The tangles that were found so far.
#[derive(Default)]
struct Found {
    tangles: u32,
    members: BTreeSet<Member>,
    /// Vertices of features that cross, with tangles and sides.
    crossing: BTreeMap<u32, BTreeSet<(u32, bool)>>,
}

impl Found {
    /// Adds the tangles of a group of contours: contours are of one tangle if they bound a region
    /// that is through, or if features of both share a vertex.
    fn add(&mut self, surface: &Surface, regions: &Regions, contours: &[Contour]) {
        // Regions and vertices beside each contour, with its side on which they are.
        let touched: Vec<BTreeSet<(Beside, bool)>> = contours
            .iter()
            .map(|contour| {
                let vertices = contour.nodes.iter().flat_map(|node| {
                    let (edge, face) = node.crossing;
                    let corners = surface.triangles()[face as usize];
                    let of_edge = edge.into_iter().map(|v| (v, node.side));
                    let of_face = corners.into_iter().map(|v| (v, !node.side));
                    of_edge.chain(of_face).collect::<Vec<_>>()
                });
                let beside = |(v, side)| {
                    let region = regions.through(v).map(Beside::Region);
                    let beside = [Some(Beside::Vertex(v)), region].into_iter().flatten();
                    beside.map(move |beside| (beside, side))
                };
                vertices.flat_map(beside).collect()
            })
            .collect();
        let mut beside: BTreeMap<Beside, Vec<(usize, bool)>> = BTreeMap::new();
        for (number, touched) in touched.iter().enumerate() {
            for &(of, side) in touched {
                beside.entry(of).or_default().push((number, side));
            }
        }
        let mut is_taken = vec![false; contours.len()];
        for first in 0..contours.len() {
            if is_taken[first] {
                continue;
            }
            is_taken[first] = true;
            let mut sides: BTreeMap<u32, bool> = BTreeMap::new();
            let mut is_twisted = false;
            let mut order = vec![(first, false)];
            let mut at = 0;
            while let Some(&(number, swaps)) = order.get(at) {
                at += 1;
                is_twisted |= contours[number].is_twisted;
                for &(of, side) in &touched[number] {
                    let side = side ^ swaps;
                    if let Beside::Region(region) = of {
                        is_twisted |= *sides.entry(region).or_insert(side) != side;
                    }
                    for &(other, its_side) in &beside[&of] {
                        if !std::mem::replace(&mut is_taken[other], true) {
                            order.push((other, its_side ^ side));
                        }
                    }
                }
            }
            let nodes = order.iter().flat_map(|&(number, swaps)| {
                let nodes = contours[number].nodes.iter();
                nodes.map(move |node| (node.crossing, node.side ^ swaps))
            });
            let nodes: Vec<(Crossing, bool)> = nodes.collect();
            self.take(surface, regions, &nodes, (!is_twisted).then_some(&sides));
        }
    }

    /// Takes a tangle: crossings with the sides of their edges, and the sides of regions that are
    /// through. Without these, sides cannot be told apart.
    fn take(
        &mut self,
        surface: &Surface,
        regions: &Regions,
        nodes: &[(Crossing, bool)],
        sides: Option<&BTreeMap<u32, bool>>,
    ) {
        let tangle = self.tangles;
        self.tangles += 1;
        let both = |side: bool| match sides {
            Some(_) => vec![side],
            None => vec![false, true],
        };
        for &((edge, face), side) in nodes {
            let corners = surface.triangles()[face as usize];
            let of_edge = edge.into_iter().map(|v| (v, side));
            let of_face = corners.into_iter().map(|v| (v, !side));
            for (v, side) in of_edge.chain(of_face) {
                let sides = both(side).into_iter().map(|side| (tangle, side));
                self.crossing.entry(v).or_default().extend(sides);
            }
        }
        for (vertex, region) in (0..).zip(&regions.of) {
            let side = sides.and_then(|sides| sides.get(region));
            self.members.extend(side.map(|&side| Member {
                vertex,
                tangle,
                side,
                through: true,
            }));
        }
    }

    /// Adds crossing features with one ring around them.
    fn finish(self, surface: &Surface) -> Kept {
        let Self {
            crossing, members, ..
        } = self;
        let mut all = members;
        with_ring(surface.edges(), &crossing, |vertex, (tangle, side)| {
            let member = |through| Member {
                vertex,
                tangle,
                side,
                through,
            };
            if !all.contains(&member(true)) {
                all.insert(member(false));
            }
        });
        Kept::new(all)
    }
}

/// Gives vertices with their tangles and sides, and the vertices to which edges go from them.
pub(super) fn with_ring(
    edges: &[[u32; 2]],
    of: &BTreeMap<u32, BTreeSet<(u32, bool)>>,
    mut give: impl FnMut(u32, (u32, bool)),
) {
    for (&vertex, places) in of {
        places.iter().for_each(|&place| give(vertex, place));
    }
    for &[a, b] in edges {
        for (from, to) in [(a, b), (b, a)] {
            let places = of.get(&from).into_iter().flatten();
            places.for_each(|&place| give(to, place));
        }
    }
}
