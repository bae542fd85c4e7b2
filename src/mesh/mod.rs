//! Triangle meshes: reading, generating, refusing bad ones.

use glam::DVec3;

/// A triangle mesh in three dimensions; indices are into `positions`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TriMesh {
    /// Vertex positions in m.
    pub positions: Vec<DVec3>,
    /// Three vertex indices each, counter-clockwise seen from the front (outside, for bodies).
    pub triangles: Vec<[u32; 3]>,
}
