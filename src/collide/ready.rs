//! Making ready what tests read, before any asks for it.
//!
//! Whatever a test needs is made when it asks. Where several threads test, all may ask for the same at once, and all but one wait; so they
//! make before what every test asks for, each its own share.

use super::snapshot::Snapshot;
use super::surface::ClothSurface;

impl Snapshot<'_> {
    /// Looks where the vertices of a patch go, for whoever asks for that later.
    pub(crate) fn see(&self, patch: usize) {
        self.ways(patch as u32);
    }

    /// Makes the volumes of the vertices of a patch.
    pub(crate) fn measure(&self, patch: usize) {
        self.vertex_volumes(patch as u32);
    }

    /// Makes the volumes of a patch's tree.
    pub(crate) fn make_volumes(&self, patch: usize) {
        self.patch_volumes(patch as u32);
    }

    /// Makes all that tests of a patch against itself or a body read of it.
    pub(crate) fn make_whole(&self, patch: usize) {
        self.whole_volumes(patch as u32);
    }

    /// The pieces of both trees into which tests of two patches may look, a bit for each.
    pub(crate) fn met(&self, p: u32, q: u32) -> [u64; 2] {
        [(p, q), (q, p)].map(|(p, q)| {
            let root = self.patch_volumes(q).root();
            let met = |root| self.cloth.refit(p).met(&root, self.patch_volumes(p));
            root.map_or(0, met)
        })
    }
}

/// The pieces of a patch's tree: the nodes below the root of each, and how many vertices they have in all, counted in each piece.
pub(crate) fn pieces(cloth: &ClothSurface, patch: usize) -> (Vec<u32>, usize) {
    let refit = cloth.refit(patch as u32);
    (refit.pieces().collect(), refit.corners())
}
