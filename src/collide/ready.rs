//! Making ready what tests read, before any asks for it.
//!
//! Whatever a test needs is made when it asks. Where several threads test, all may ask for the same at once, and all but one wait; so they
//! make before what every test asks for, each its own share.

use super::snapshot::Snapshot;

impl Snapshot<'_> {
    /// Makes the volumes of a patch's tree, for whoever asks for them later.
    pub(crate) fn make_volumes(&self, patch: usize) {
        self.patch_volumes(patch as u32);
    }
}
