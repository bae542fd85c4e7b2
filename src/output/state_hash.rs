//! One number for the state of a run: equal numbers, equal trajectories.
//!
//! **The promise it checks:** on one binary, the trajectory is bit-identical for any number of
//! ranks and threads and for any stealing schedule. The state of each patch of the scene is hashed
//! over its exact bits, and hashes are combined by pairs up the patch tree, which no number of
//! ranks changes: each rank hashes its own patches, and none needs the others' states. Two runs
//! that agree on the hash of their last step agree on every bit of it, and since each step is a
//! function of the one before, two runs that differ anywhere will show it. Nothing is rounded and
//! nothing forgiven: `-0.0` is not `0.0`.
//!
//! Another compiler, processor or version of this program may compute other bits; the hash says
//! nothing about that. SHA-256 because it is a dependency already and leaves no doubt about
//! collisions by accident; its first 64 bits are enough to print.

use std::fmt;
use std::str::FromStr;

use glam::DVec3;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::step::PatchView;

/// The state of one step as a number, printed as 16 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct StateHash(pub u64);

/// The hash of a node of the patch tree: of a patch, or of all patches below it.
pub type NodeHash = [u8; 32];

/// The part of a state that is hashed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hashed<'a> {
    /// Steps taken.
    pub step: u64,
    /// The number of vertices.
    pub vertices: u64,
    /// The hash of the root of the patch tree.
    pub root: NodeHash,
    /// Vertices, each with the number of a body that lets it through.
    pub squeezed: &'a [[u32; 2]],
    /// Vertices that may still pass through cloth, each with what it is a member of.
    pub kept: &'a [[u32; 2]],
    /// How often a step is halved by now, and how many parts went well since, where the number of
    /// substeps adapts.
    pub adapted: Option<[u32; 2]>,
}

impl StateHash {
    /// The version of the definition. Hashes of different versions cannot be compared.
    pub const VERSION: u32 = 2;
}

/// Hashes a patch.
///
/// Hashed are, as little-endian 64-bit words: the number of vertices, their numbers in the order of
/// the scene's own, the coordinates of their positions, and of their velocities; then, if bodies
/// rub any of them, the letters `friction` and the coordinates of these forces.
#[must_use]
pub fn hash_of_patch(patch: &PatchView<'_>) -> NodeHash {
    let mut hasher = Sha256::new();
    hasher.update(b"weft patch 2\n");
    hasher.update((patch.vertices.len() as u64).to_le_bytes());
    for &vertex in patch.vertices {
        hasher.update(u64::from(vertex).to_le_bytes());
    }
    for vectors in [patch.positions, patch.velocities] {
        for vector in vectors {
            add(&mut hasher, *vector);
        }
    }
    let friction = patch.contacts.iter().map(|contact| contact.friction);
    if friction.clone().any(|force| force != DVec3::ZERO) {
        hasher.update(b"friction");
        for force in friction {
            add(&mut hasher, force);
        }
    }
    hasher.finalize().into()
}

fn add(hasher: &mut Sha256, vector: DVec3) {
    for coordinate in vector.to_array() {
        hasher.update(coordinate.to_bits().to_le_bytes());
    }
}

/// Hashes a node of the patch tree: the hash of its left child, then that of its right one.
#[must_use]
pub fn hash_of_pair(left: NodeHash, right: NodeHash) -> NodeHash {
    let mut hasher = Sha256::new();
    hasher.update(b"weft pair 2\n");
    hasher.update(left);
    hasher.update(right);
    hasher.finalize().into()
}

/// Hashes a state.
///
/// Hashed are, as little-endian 64-bit words: step, number of vertices, the hash of the root of the
/// patch tree; then, if there are any, the letters `squeezed`, the number of squeezed vertices and
/// for each its number and that of the body; then, if there are any, the letters `kept`, the number
/// of kept vertices and for each its number and that of what it is a member of; then, if the number
/// of substeps adapts, the letters `parts` and two numbers.
#[must_use]
pub fn state_hash(hashed: &Hashed<'_>) -> StateHash {
    let &Hashed {
        step,
        vertices,
        root,
        squeezed,
        kept,
        adapted,
    } = hashed;
    let mut hasher = Sha256::new();
    hasher.update(b"weft state 2\n");
    hasher.update(step.to_le_bytes());
    hasher.update(vertices.to_le_bytes());
    hasher.update(root);
    for (letters, pairs) in [(&b"squeezed"[..], squeezed), (b"kept", kept)] {
        if pairs.is_empty() {
            continue;
        }
        hasher.update(letters);
        hasher.update((pairs.len() as u64).to_le_bytes());
        for number in pairs.as_flattened() {
            hasher.update(u64::from(*number).to_le_bytes());
        }
    }
    if let Some(numbers) = adapted {
        hasher.update(b"parts");
        for number in numbers {
            hasher.update(u64::from(number).to_le_bytes());
        }
    }
    let digest = hasher.finalize();
    StateHash(
        digest
            .iter()
            .take(8)
            .fold(0, |hash, byte| (hash << 8) | u64::from(*byte)),
    )
}

impl fmt::Display for StateHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl From<StateHash> for String {
    fn from(hash: StateHash) -> Self {
        hash.to_string()
    }
}

impl FromStr for StateHash {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        match u64::from_str_radix(text, 16) {
            Ok(hash) if digits => Ok(Self(hash)),
            _ => Err(format!(
                "`{text}` is not a state hash of 16 hexadecimal digits"
            )),
        }
    }
}

impl TryFrom<String> for StateHash {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step::VertexState;

    /// A state of two patches, one of two vertices and one of one.
    #[derive(Clone)]
    struct Small {
        numbers: [u32; 3],
        x: [DVec3; 3],
        v: [DVec3; 3],
        contacts: [VertexState; 3],
    }

    impl Small {
        fn new(x: f64, v: f64) -> Self {
            Self {
                numbers: [2, 0, 1],
                x: [DVec3::new(x, 2.0, 3.0), DVec3::ONE, DVec3::Z],
                v: [DVec3::new(v, 0.0, 0.0); 3],
                contacts: [VertexState::default(); 3],
            }
        }

        fn root(&self) -> NodeHash {
            let patch = |range: std::ops::Range<usize>| {
                hash_of_patch(&PatchView {
                    vertices: &self.numbers[range.clone()],
                    positions: &self.x[range.clone()],
                    velocities: &self.v[range.clone()],
                    contacts: &self.contacts[range],
                    ..PatchView::default()
                })
            };
            hash_of_pair(patch(0..2), patch(2..3))
        }

        fn hash(&self) -> StateHash {
            state_hash(&Hashed {
                step: 3,
                vertices: 3,
                root: self.root(),
                ..Hashed::default()
            })
        }
    }

    /// Computed outside this program (Python: struct and hashlib), so that the bytes that are
    /// hashed cannot change unseen.
    #[test]
    fn hash_is_the_documented_one() {
        let mut state = Small::new(1.0, 0.5);
        assert_eq!(state.hash().to_string(), "0efc674d8880c34f");
        state.contacts[1].friction = DVec3::new(0.0, -0.0, 4.0);
        let hash = state_hash(&Hashed {
            step: 3,
            vertices: 3,
            root: state.root(),
            squeezed: &[[0, 1]],
            kept: &[[1, 5]],
            adapted: Some([2, 7]),
        });
        assert_eq!(hash.to_string(), "f9afc267699cc55e");
    }

    #[test]
    fn a_state_hash_changes_with_every_bit() {
        let reference = Small::new(1.0, 0.0);
        let mut turned = reference.clone();
        turned.x.swap(0, 1);
        let mut other_numbers = reference.clone();
        other_numbers.numbers.swap(1, 2);
        let mut rubbed = reference.clone();
        rubbed.contacts[2].friction = DVec3::X;
        let mut rubbed_elsewhere = reference.clone();
        rubbed_elsewhere.contacts[1].friction = DVec3::X;
        let states = [
            reference.clone(),
            Small::new(f64::from_bits(1.0f64.to_bits() + 1), 0.0),
            Small::new(1.0, -0.0),
            turned,
            other_numbers,
            rubbed,
            rubbed_elsewhere,
        ];
        let marked = [[0, 1]];
        let of = Hashed {
            step: 3,
            vertices: 3,
            root: reference.root(),
            ..Hashed::default()
        };
        let others = [
            Hashed { step: 2, ..of },
            Hashed { vertices: 2, ..of },
            Hashed {
                squeezed: &marked,
                ..of
            },
            Hashed {
                kept: &marked,
                ..of
            },
            Hashed {
                adapted: Some([0, 1]),
                ..of
            },
            Hashed {
                adapted: Some([1, 0]),
                ..of
            },
        ];
        let hashes = states.iter().map(Small::hash);
        let hashes = hashes.chain(others.iter().map(state_hash));
        let hashes: std::collections::BTreeSet<u64> = hashes.map(|hash| hash.0).collect();
        assert_eq!(hashes.len(), states.len() + others.len());
    }

    #[test]
    fn text_round_trips_and_rubbish_is_refused() {
        let hash = StateHash(0x00ab);
        assert_eq!(hash.to_string(), "00000000000000ab");
        assert_eq!("00000000000000ab".parse(), Ok(hash));
        assert_eq!(
            serde_json::to_string(&hash).unwrap(),
            "\"00000000000000ab\""
        );
        for text in ["", "ab", "+0000000000000ab", "00000000000000xy"] {
            assert!(text.parse::<StateHash>().is_err(), "{text}");
        }
    }
}
