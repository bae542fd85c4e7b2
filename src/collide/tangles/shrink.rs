//! Kept sets shrink: what is free again is taken out, and nothing ever comes in.

use std::collections::{BTreeMap, BTreeSet};

use glam::DVec3;

use super::kept::{Kept, Member};
use super::nudge::nudged;
use super::start::with_ring;
use crate::collide::audit::{Crossing, Skin};
use crate::disjoint_sets::DisjointSets;

/// The crossings of each tangle that has some, each with the side of its edge.
type OfTangles = BTreeMap<u32, Vec<(Crossing, bool)>>;

/// The cloth near a kept set, in one state.
#[derive(Clone, Debug)]
pub struct Tangled {
    /// The triangles with a vertex of the set.
    pub(super) triangles: Vec<[u32; 3]>,
    /// The edges of the regions, ascending.
    edges: Vec<[u32; 2]>,
    /// The crossings of each tangle that has some, each with the side of its edge; faces are
    /// numbered as the triangles here.
    pub(super) crossings: OfTangles,
    /// Crossings of the nudged positions, which distinguish the regions.
    nudged: OfTangles,
    /// The crossings that are of no tangle.
    outside: usize,
}

impl Tangled {
    /// Finds the crossings of a kept set at these positions (m), of cloth of such triangles.
    #[must_use]
    pub fn new(kept: &Kept, x: &[DVec3], triangles: &[[u32; 3]]) -> Self {
        let mut is_kept = vec![false; x.len()];
        for member in kept.members() {
            is_kept[member.vertex as usize] = true;
        }
        let near = |t: &&[u32; 3]| t.iter().any(|&v| is_kept[v as usize]);
        let triangles: Vec<[u32; 3]> = triangles.iter().filter(near).copied().collect();
        let mut edges: Vec<[u32; 2]> = (triangles.iter())
            .flat_map(|&[a, b, c]| [[a, b], [b, c], [c, a]])
            .map(|[a, b]| [a.min(b), a.max(b)])
            .collect();
        edges.sort_unstable();
        edges.dedup();
        let (crossings, outside) = crossings_of(kept, x, &triangles);
        let (nudged, _) = crossings_of(kept, &nudged(x), &triangles);
        Self {
            triangles,
            edges,
            crossings,
            nudged,
            outside,
        }
    }

    /// The number of crossings of features of which none is kept, although vertices beside them
    /// are. There are none after certified steps.
    #[must_use]
    pub fn outside(&self) -> usize {
        self.outside
    }

    /// The set without what is free: tangles without crossings, and of others the vertices that are
    /// neither through nor near a crossing. `stays` are vertices that must not be taken out yet.
    #[must_use]
    pub(crate) fn shrunk(&self, kept: &Kept, stays: &BTreeSet<u32>) -> Kept {
        let mut near: BTreeMap<u32, BTreeSet<(u32, bool)>> = BTreeMap::new();
        for (&tangle, crossings) in self.crossings.iter().chain(&self.nudged) {
            for &((edge, face), side) in crossings {
                for v in edge {
                    near.entry(v).or_default().insert((tangle, side));
                }
                for v in self.triangles[face as usize] {
                    near.entry(v).or_default().insert((tangle, !side));
                }
            }
        }
        let mut is_near: BTreeSet<(u32, u32, bool)> = BTreeSet::new();
        with_ring(&self.edges, &near, |v, (tangle, side)| {
            is_near.insert((v, tangle, side));
        });
        // Tangles that cross only where they are nudged are free.
        near.values_mut().for_each(|places| {
            places.retain(|(tangle, _)| self.crossings.contains_key(tangle));
        });
        let through: BTreeMap<(u32, bool), BTreeSet<u32>> = (self.crossings.keys())
            .flat_map(|&tangle| [(tangle, false), (tangle, true)])
            .map(|place| (place, self.through(kept, place)))
            .collect();
        let left = kept.members().iter().filter_map(|member| {
            let &Member {
                vertex,
                tangle,
                side,
                ..
            } = member;
            let of_side = through.get(&(tangle, side));
            let through = of_side.is_some_and(|of_side| of_side.contains(&vertex));
            let stays =
                through || is_near.contains(&(vertex, tangle, side)) || stays.contains(&vertex);
            stays.then_some(Member { through, ..*member })
        });
        Kept::new(left)
    }

    /// The vertices of one side of a tangle that are through the other. Vertices that no crossing
    /// parts from those outside of the set are not; of others, what most of those say that are
    /// connected.
    fn through(&self, kept: &Kept, (tangle, side): (u32, bool)) -> BTreeSet<u32> {
        let of_side = kept.members().iter();
        let of_side = of_side.filter(|member| member.tangle == tangle && member.side == side);
        let members: Vec<&Member> = of_side.collect();
        // Number 0 is all that is outside of the set.
        let number = |v: u32| {
            let found = members.binary_search_by_key(&v, |member| member.vertex);
            found.map_or(0, |at| at as u32 + 1)
        };
        let mut is_cut: BTreeMap<[u32; 2], bool> = BTreeMap::new();
        for ((edge, _), its_side) in self.nudged.get(&tangle).into_iter().flatten() {
            if *its_side == side {
                let cut = is_cut.entry(*edge).or_default();
                *cut = !*cut;
            }
        }
        let mut sets = DisjointSets::new(members.len() + 1);
        for edge in &self.edges {
            if !is_cut.get(edge).copied().unwrap_or(false) {
                sets.unite(number(edge[0]), number(edge[1]));
            }
        }
        let mut votes: BTreeMap<u32, i64> = BTreeMap::new();
        for (at, member) in (1..).zip(&members) {
            *votes.entry(sets.least(at)).or_default() += if member.through { 1 } else { -1 };
        }
        let is_through = |(at, member): (u32, &&Member)| {
            let region = sets.least(at);
            (region != 0 && votes[&region] > 0).then_some(member.vertex)
        };
        (1..).zip(&members).filter_map(is_through).collect()
    }
}

/// The crossings of each tangle of some triangles, and the number of those of none.
fn crossings_of(kept: &Kept, x: &[DVec3], triangles: &[[u32; 3]]) -> (OfTangles, usize) {
    let mut of = OfTangles::new();
    let mut outside = 0;
    for (edge, face) in Skin::new(x, triangles).crossings() {
        let places = kept.crossing_in(edge, triangles[face as usize]);
        outside += usize::from(places.is_empty());
        for (tangle, side) in places {
            of.entry(tangle).or_default().push(((edge, face), side));
        }
    }
    (of, outside)
}
