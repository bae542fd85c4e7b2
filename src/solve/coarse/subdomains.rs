//! The subdomains: groups that are solved for together, of a patch, or of some of its aggregates
//! that were cut from each other last.
//!
//! Larger subdomains save iterations, and make each of them dearer: their factors fill in. On a
//! sheet of 230,400 vertices one solve took 168 iterations with groups for themselves, 110 with
//! subdomains of some 20 groups, 95 with 80 and 88 with 300, whose factors have 8, 19 and 30
//! numbers a vertex.

use std::ops::Range;

use weft_partition::{Aggregates, Ownership};

use crate::heap_bytes::counts_heap;
use crate::team::Shares;

/// The subdomains of the patches that a rank owns. Groups, aggregates and subdomains are counted
/// from the first that is owned.
#[derive(Clone, Debug)]
pub(super) struct Subdomains {
    /// The groups of each.
    groups: Vec<Range<usize>>,
    /// The subdomains of each owned patch.
    in_patch: Vec<Range<usize>>,
}

counts_heap!(Subdomains: groups, in_patch);

impl Subdomains {
    /// Cuts patches; `starts` are where the groups of each owned aggregate start, and the last ones
    /// end.
    pub(super) fn new(
        ownership: &Ownership,
        rank: usize,
        aggregates: &Aggregates,
        starts: &[usize],
    ) -> Self {
        let first = aggregates.owned(ownership, rank).start;
        let (mut groups, mut in_patch) = (Vec::new(), Vec::new());
        for patch in ownership.patches(rank) {
            let all = aggregates.in_patch(patch);
            let before = groups.len();
            groups.extend(cut(&starts[all.start - first..=all.end - first]));
            in_patch.push(before..groups.len());
        }
        Self { groups, in_patch }
    }

    /// The groups of each.
    pub(super) fn groups(&self) -> &[Range<usize>] {
        &self.groups
    }

    /// The subdomains of an owned patch.
    pub(super) fn in_patch(&self, patch: usize) -> Range<usize> {
        self.in_patch[patch].clone()
    }

    /// Whether an owned group and another, counted alike, are of one.
    pub(super) fn are_one(&self, own: usize, other: usize) -> bool {
        let at = self.groups.partition_point(|groups| groups.end <= own);
        self.groups[at].contains(&other)
    }

    /// The subdomains of which each thread's share of the patches consists.
    pub(super) fn owned_by(&self, shares: &Shares) -> impl Iterator<Item = Range<usize>> {
        (shares.ranges.iter())
            .map(|patches| self.in_patch[patches.start].start..self.in_patch[patches.end - 1].end)
    }

    /// The groups that each thread's share of the patches consists of.
    pub(super) fn groups_owned_by(&self, shares: &Shares) -> impl Iterator<Item = Range<usize>> {
        self.owned_by(shares)
            .map(|own| self.groups[own.start].start..self.groups[own.end - 1].end)
    }
}

/// The subdomains of a patch whose aggregates, a power of two of them that bisections have left
/// side by side, begin and end with these groups.
fn cut(starts: &[usize]) -> impl Iterator<Item = Range<usize>> {
    let aggregates = starts.len() - 1;
    let groups = starts[aggregates] - starts[0];
    let mut each = aggregates;
    while each > 1 && each.is_multiple_of(2) && groups * each > MOST_GROUPS * aggregates {
        each /= 2;
    }
    (0..aggregates)
        .step_by(each)
        .map(move |first| starts[first]..starts[first + each])
}

/// How many groups a subdomain has on average, at most, unless an aggregate alone has more.
const MOST_GROUPS: usize = 80;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patches_are_cut_where_they_were_bisected() {
        let of = |starts: &[usize]| {
            let ends = cut(starts).map(|groups| (groups.start, groups.end));
            ends.collect::<Vec<_>>()
        };
        // Few groups stay together, and so does an aggregate.
        assert_eq!(of(&[7, 11, 20, 40, 80]), [(7, 80)]);
        assert_eq!(of(&[5, 305]), [(5, 305)]);
        assert_eq!(of(&[0, 40, 85, 120, 160]), [(0, 85), (85, 160)]);
        assert_eq!(of(&[0, 90, 180]), [(0, 90), (90, 180)]);
    }
}
