//! Numbers of checkpoints as bytes, little-endian.

use glam::DVec3;

use crate::step::VertexState;

/// Appends vectors, three numbers of 64 bits each.
pub(super) fn push_vectors(bytes: &mut Vec<u8>, vectors: impl Iterator<Item = DVec3>) {
    let numbers = vectors.flat_map(|vector| vector.to_array());
    bytes.extend(numbers.flat_map(f64::to_le_bytes));
}

/// The vectors that bytes are of.
pub(super) fn vectors(bytes: &[u8]) -> Vec<DVec3> {
    let (numbers, _) = bytes.as_chunks::<8>();
    let (triples, _) = numbers.as_chunks::<3>();
    let vector = |triple: &[[u8; 8]; 3]| DVec3::from_array(triple.map(f64::from_le_bytes));
    triples.iter().map(vector).collect()
}

/// The contact whose [bits](VertexState::bits) are these; `None` if no contact has them.
pub(super) fn from_flags(flags: u8, friction: DVec3) -> Option<VertexState> {
    (flags < 8).then_some(VertexState {
        friction,
        held: flags & 1 != 0,
        released: flags & 2 != 0,
        sticking: flags & 4 != 0,
    })
}
