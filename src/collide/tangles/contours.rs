//! Contours: the curves in which surfaces cross, made of crossings of edges and faces.
//!
//! Two triangles cross in a segment, each end of which is a crossing of an edge of one and the face
//! of the other. So crossings that belong to one pair of triangles follow each other on a contour.
//! A contour lies on two sheets, which differ by their sides also where both are of one cloth.

use std::collections::{BTreeMap, BTreeSet};

use crate::collide::audit::Crossing;

/// A crossing of a contour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Node {
    /// The edge and the number of the face.
    pub(super) crossing: Crossing,
    /// The side of the edge; that of the face is the other one.
    pub(super) side: bool,
}

/// A contour.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Contour {
    /// Its crossings.
    pub(super) nodes: Vec<Node>,
    /// The numbers of crossings that follow each other.
    pub(super) segments: Vec<[usize; 2]>,
    /// Whether it comes back to its first side as its second one.
    pub(super) is_twisted: bool,
}

fn ascending(a: u32, b: u32) -> [u32; 2] {
    [a.min(b), a.max(b)]
}

/// Joins the crossings of some triangles to contours, in the order of their first crossings.
pub(super) fn contours(crossings: &[Crossing], triangles: &[[u32; 3]]) -> Vec<Contour> {
    let edges: BTreeSet<[u32; 2]> = crossings.iter().map(|(edge, _)| *edge).collect();
    let mut around: BTreeMap<[u32; 2], Vec<u32>> = BTreeMap::new();
    for (t, &[a, b, c]) in (0..).zip(triangles) {
        for side in [ascending(a, b), ascending(b, c), ascending(c, a)] {
            if edges.contains(&side) {
                around.entry(side).or_default().push(t);
            }
        }
    }
    // The crossings of each pair of triangles.
    let pairs_of = |&(edge, face): &Crossing| {
        let beside = around.get(&edge).into_iter().flatten();
        beside.map(move |&t| ascending(t, face))
    };
    let mut pairs: BTreeMap<[u32; 2], Vec<usize>> = BTreeMap::new();
    for (number, crossing) in crossings.iter().enumerate() {
        for pair in pairs_of(crossing) {
            pairs.entry(pair).or_default().push(number);
        }
    }
    let mut place: Vec<Option<(usize, bool)>> = vec![None; crossings.len()];
    let mut found: Vec<Contour> = Vec::new();
    for first in 0..crossings.len() {
        if place[first].is_some() {
            continue;
        }
        let mut contour = Contour::default();
        place[first] = Some((0, false));
        let mut order = vec![first];
        let mut at = 0;
        while let Some(&number) = order.get(at) {
            let (own, side) = place[number].unwrap_or_default();
            at += 1;
            let (edge, face) = crossings[number];
            contour.nodes.push(Node {
                crossing: (edge, face),
                side,
            });
            for pair in pairs_of(&crossings[number]) {
                let members = &pairs[&pair];
                for &other in members.iter().filter(|&&other| other != number) {
                    let its_side = if crossings[other].1 == face {
                        side
                    } else {
                        !side
                    };
                    let (its, its_side_there) = *place[other].get_or_insert_with(|| {
                        order.push(other);
                        (order.len() - 1, its_side)
                    });
                    contour.is_twisted |= its_side_there != its_side;
                    if members.len() == 2 && own < its {
                        contour.segments.push([own, its]);
                    }
                }
            }
        }
        contour.segments.sort_unstable();
        found.push(contour);
    }
    found
}
