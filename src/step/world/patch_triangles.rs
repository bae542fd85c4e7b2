//! The triangles that touch each patch.

use crate::heap_bytes::counts_heap;

/// The numbers of the triangles with a corner in each patch.
#[derive(Debug)]
pub(crate) struct PatchTriangles {
    /// The numbers, patch by patch, ascending within a patch.
    numbers: Vec<u32>,
    /// The place at which each patch starts; one more than there are patches.
    starts: Vec<usize>,
}

counts_heap!(PatchTriangles: numbers, starts);

impl PatchTriangles {
    /// Sorts triangles by the patches of their corners.
    pub(super) fn new(
        triangles: &[[u32; 3]],
        patches: usize,
        patch_of: impl Fn(u32) -> usize,
    ) -> Self {
        // The patches of a triangle, each once.
        let touched = |corners: &[u32; 3]| {
            let [a, b, c] = corners.map(&patch_of);
            let all = [
                Some(a),
                Some(b).filter(|&b| b != a),
                Some(c).filter(|&c| c != a && c != b),
            ];
            all.into_iter().flatten()
        };
        let mut starts = vec![0; patches + 1];
        for patch in triangles.iter().flat_map(touched) {
            starts[patch + 1] += 1;
        }
        for patch in 0..patches {
            starts[patch + 1] += starts[patch];
        }
        let mut next = starts.clone();
        let mut numbers = vec![0; starts[patches]];
        for (number, corners) in (0..).zip(triangles) {
            for patch in touched(corners) {
                numbers[next[patch]] = number;
                next[patch] += 1;
            }
        }
        Self { numbers, starts }
    }

    /// The numbers of the triangles that touch a patch, ascending.
    pub(crate) fn of(&self, patch: usize) -> &[u32] {
        &self.numbers[self.starts[patch]..self.starts[patch + 1]]
    }
}
