//! The cloth of the last frame, which the page draws in the colours of owners, thieves and tests.

/// Triangles with their patches and owners.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cloth {
    /// The step of the frame.
    pub step: u32,
    /// Vertex positions in m; z is up.
    pub positions: Vec<[f32; 3]>,
    /// Three vertices each.
    pub triangles: Vec<[u32; 3]>,
    /// The patch of each triangle.
    pub patches: Vec<u32>,
    /// The rank that owns each triangle.
    pub owners: Vec<u32>,
}

impl Cloth {
    /// How many triangles each patch has.
    #[must_use]
    pub(crate) fn triangles_of_patches(&self) -> Vec<u32> {
        let mut counts = Vec::new();
        for &patch in self
            .patches
            .iter()
            .filter(|&&p| (p as usize) < self.triangles.len())
        {
            let patch = patch as usize;
            if counts.len() <= patch {
                counts.resize(patch + 1, 0);
            }
            counts[patch] += 1;
        }
        counts
    }
}
