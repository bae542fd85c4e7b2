//! The triangles that touch each patch.

use std::io;
use std::ops::Range;

use crate::archive::{Archive, ArchiveFault, Array, Loader, Saver};
use crate::heap_bytes::counts_heap;

/// The numbers of the triangles with a corner in each patch.
///
/// Triangles are in the order of their lowest vertex, and so are patches. So those whose lowest
/// vertex a patch has follow each other, behind all others that touch it.
#[derive(Debug)]
pub(crate) struct PatchTriangles {
    /// The numbers of the others, patch by patch, ascending within a patch.
    others: Array<u32>,
    /// The place at which those of each patch start; one more than there are patches.
    starts: Vec<usize>,
    /// The triangles whose lowest vertex each patch has.
    own: Vec<Range<u32>>,
}

counts_heap!(PatchTriangles: others, starts, own);

impl Archive for PatchTriangles {
    fn save(&self, to: &mut Saver<'_>) -> io::Result<()> {
        let Self {
            others,
            starts,
            own,
        } = self;
        others.save(to)?;
        starts.save(to)?;
        let ends: Vec<u32> = own.iter().map(|own| own.end).collect();
        ends.save(to)
    }

    fn load(from: &mut Loader<'_>) -> Result<Self, ArchiveFault> {
        let (others, starts) = (Array::load(from)?, Vec::load(from)?);
        let mut first = 0;
        let own = Vec::load(from)?.into_iter().map(|end: u32| {
            let own = first..end;
            first = end;
            own
        });
        Ok(Self {
            others,
            starts,
            own: own.collect(),
        })
    }
}

impl PatchTriangles {
    /// Sorts triangles, which are in the order of their lowest vertex, by the patches of their
    /// corners.
    pub(super) fn new(
        triangles: &[[u32; 3]],
        patches: usize,
        patch_of: impl Fn(u32) -> usize,
    ) -> Self {
        let lowest = |corners: &[u32; 3]| patch_of(corners[0].min(corners[1]).min(corners[2]));
        assert!(
            triangles.is_sorted_by_key(lowest),
            "triangles follow each other patch by patch"
        );
        // The patches of a triangle but for that of its lowest vertex, each once.
        let touched = |corners: &[u32; 3]| {
            let own = lowest(corners);
            let [a, b, c] = corners.map(&patch_of);
            let all = [
                Some(a).filter(|&a| a != own),
                Some(b).filter(|&b| b != own && b != a),
                Some(c).filter(|&c| c != own && c != a && c != b),
            ];
            all.into_iter().flatten()
        };
        let (mut starts, mut counts) = (vec![0; patches + 1], vec![0; patches]);
        for corners in triangles {
            counts[lowest(corners)] += 1;
            for patch in touched(corners) {
                starts[patch + 1] += 1;
            }
        }
        for patch in 0..patches {
            starts[patch + 1] += starts[patch];
        }
        let mut next = starts.clone();
        let mut others = vec![0; starts[patches]];
        for (number, corners) in (0..).zip(triangles) {
            for patch in touched(corners) {
                others[next[patch]] = number;
                next[patch] += 1;
            }
        }
        let mut first = 0;
        let own = |count: u32| {
            let own = first..first + count;
            first = own.end;
            own
        };
        Self {
            own: counts.into_iter().map(own).collect(),
            others: others.into(),
            starts,
        }
    }

    /// The numbers of the triangles whose lowest vertices some patches have, which must follow each
    /// other.
    pub(crate) fn lowest_in(&self, patches: Range<usize>) -> Range<u32> {
        let own = self.own.get(patches).unwrap_or_default();
        match own {
            [first, .., last] => first.start..last.end,
            [only] => only.clone(),
            [] => 0..0,
        }
    }

    /// The numbers of the triangles that touch a patch, ascending.
    pub(crate) fn of(&self, patch: usize) -> impl Iterator<Item = u32> + '_ {
        let others = &self.others[self.starts[patch]..self.starts[patch + 1]];
        others.iter().copied().chain(self.own[patch].clone())
    }
}
