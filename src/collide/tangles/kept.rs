//! The kept set: vertices on the sides of tangles.

use std::collections::BTreeSet;

use crate::heap_bytes::{counts_heap, owns_no_heap};

/// A vertex of the kept set. One that is on both sides of a tangle, or in several tangles, is a
/// member more than once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Member {
    /// The vertex.
    pub vertex: u32,
    /// The number of its tangle.
    pub tangle: u32,
    /// Its side of the tangle, one of two.
    pub side: bool,
    /// Whether it is of the part that is through the other side.
    pub through: bool,
}

owns_no_heap!(Member);

impl Member {
    /// The vertex, and a number for all else: four times the tangle, with 2 for the second side and
    /// 1 for what is through.
    #[must_use]
    pub fn to_numbers(self) -> [u32; 2] {
        let Self {
            vertex,
            tangle,
            side,
            through,
        } = self;
        [
            vertex,
            tangle << 2 | u32::from(side) << 1 | u32::from(through),
        ]
    }

    /// The member of [such numbers](Self::to_numbers).
    #[must_use]
    pub(crate) fn of_numbers([vertex, code]: [u32; 2]) -> Self {
        Self {
            vertex,
            tangle: code >> 2,
            side: code & 2 != 0,
            through: code & 1 != 0,
        }
    }

    /// Whether two members are on the same side of the same tangle.
    fn is_beside(&self, tangle: u32, side: bool) -> bool {
        self.tangle == tangle && self.side == side
    }
}

/// The kept set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// The members, ascending.
    members: Vec<Member>,
}

counts_heap!(Kept: members);

impl Kept {
    /// The set without members.
    pub const EMPTY: &'static Self = &Self {
        members: Vec::new(),
    };

    /// The set of such members.
    #[must_use]
    pub fn new(members: impl IntoIterator<Item = Member>) -> Self {
        let members: BTreeSet<Member> = members.into_iter().collect();
        Self {
            members: members.into_iter().collect(),
        }
    }

    /// Its members, ascending by vertex.
    #[must_use]
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// Whether it has no members.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The number of its vertices.
    #[must_use]
    pub fn vertices(&self) -> usize {
        let chunks = self.members.chunk_by(|a, b| a.vertex == b.vertex);
        chunks.count()
    }

    /// The numbers of its tangles, ascending.
    #[must_use]
    pub fn tangles(&self) -> Vec<u32> {
        let tangles: BTreeSet<u32> = self.members.iter().map(|member| member.tangle).collect();
        tangles.into_iter().collect()
    }

    /// The memberships of a vertex in tangles.
    #[must_use]
    pub fn of(&self, vertex: u32) -> &[Member] {
        let start = self.members.partition_point(|m| m.vertex < vertex);
        let own = &self.members[start..];
        let count = own.iter().take_while(|m| m.vertex == vertex).count();
        &own[..count]
    }

    fn is_on(&self, vertex: u32, tangle: u32, side: bool) -> bool {
        let mut own = self.of(vertex).iter();
        own.any(|member| member.is_beside(tangle, side))
    }

    /// Whether two features, given by their vertices, may pass through each other: they are of
    /// different sides of a tangle.
    #[must_use]
    pub fn lets_pass(&self, first: &[u32], second: &[u32]) -> bool {
        if self.is_empty() {
            return false;
        }
        let Some((&one, others)) = first.split_first() else {
            return false;
        };
        self.of(one).iter().any(|&Member { tangle, side, .. }| {
            others.iter().all(|&v| self.is_on(v, tangle, side))
                && second.iter().all(|&v| self.is_on(v, tangle, !side))
        })
    }

    /// The tangles in which an edge and a face may cross, each with the side of the edge,
    /// ascending: a vertex of each is of different sides.
    #[must_use]
    pub(crate) fn crossing_in(&self, edge: [u32; 2], face: [u32; 3]) -> Vec<(u32, bool)> {
        let of_edge = edge.iter().flat_map(|&v| self.of(v));
        let across = of_edge.filter(|member| {
            let mut corners = face.iter();
            corners.any(|&v| self.is_on(v, member.tangle, !member.side))
        });
        let mut found: Vec<_> = across.map(|member| (member.tangle, member.side)).collect();
        found.sort_unstable();
        found.dedup();
        found
    }
}
