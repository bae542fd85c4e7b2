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

/// Most vertices of a mesh.
pub const MAX_VERTICES: usize = 20_000_000;

/// Whether the name ends in `.obj`, `.ply` or `.stl`.
pub fn is_readable_format(path: &std::path::Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|e| {
        ["obj", "ply", "stl"]
            .iter()
            .any(|known| e.eq_ignore_ascii_case(known))
    })
}
