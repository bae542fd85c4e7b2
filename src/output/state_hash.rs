//! One number for the state of a run: equal numbers, equal trajectories.
//!
//! **The promise it checks:** on one binary, the trajectory is bit-identical for any number of
//! ranks and threads and for any stealing schedule. The state of a step is gathered into the vertex
//! order of the input meshes (cloth after cloth as the scene lists them), which no partition
//! changes, and hashed over the exact bits. Two runs that agree on the hash of their last step
//! agree on every bit of it, and since each step is a function of the one before, two runs that
//! differ anywhere will show it. Nothing is rounded and nothing forgiven: `-0.0` is not `0.0`.
//!
//! Another compiler, processor or version of this program may compute other bits; the hash says
//! nothing about that. SHA-256 because it is a dependency already and leaves no doubt about
//! collisions by accident; its first 64 bits are enough to print.

use std::fmt;
use std::str::FromStr;

use glam::DVec3;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The state of one step as a number, printed as 16 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct StateHash(pub u64);

/// The part of a state that is hashed, all in the order of the scene's own vertices.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hashed<'a> {
    /// Steps taken.
    pub step: u64,
    /// Positions in m.
    pub positions: &'a [DVec3],
    /// Velocities in m/s.
    pub velocities: &'a [DVec3],
    /// The friction of bodies in N.
    pub friction: &'a [DVec3],
    /// Vertices, each with the number of a body that lets it through.
    pub squeezed: &'a [[u32; 2]],
    /// Vertices that may still pass through cloth, each with what it is a member of.
    pub kept: &'a [[u32; 2]],
    /// How often a step is halved by now, and how many parts went well since, where the number of
    /// substeps adapts.
    pub adapted: Option<[u32; 2]>,
}

/// Hashes a state.
///
/// Hashed are, as little-endian 64-bit words: step, number of positions, their coordinates, number
/// of velocities, theirs; likewise friction if there is any; then, if there are any, the number of
/// squeezed vertices and for each its number and that of the body; then, if there are any, the
/// letters `kept`, the number of kept vertices and for each its number and that of what it is a
/// member of; then, if the number of substeps adapts, the letters `parts` and two numbers.
#[must_use]
pub fn state_hash(hashed: &Hashed<'_>) -> StateHash {
    let &Hashed {
        step,
        positions,
        velocities,
        friction,
        squeezed,
        kept,
        adapted,
    } = hashed;
    let mut hasher = Sha256::new();
    hasher.update(b"weft state 1\n");
    hasher.update(step.to_le_bytes());
    let rubs = friction.iter().any(|force| *force != DVec3::ZERO);
    let friction = rubs.then_some(friction);
    for vectors in [positions, velocities].into_iter().chain(friction) {
        hasher.update((vectors.len() as u64).to_le_bytes());
        for vector in vectors {
            for coordinate in vector.to_array() {
                hasher.update(coordinate.to_bits().to_le_bytes());
            }
        }
    }
    if !squeezed.is_empty() {
        hasher.update((squeezed.len() as u64).to_le_bytes());
        for number in squeezed.as_flattened() {
            hasher.update(u64::from(*number).to_le_bytes());
        }
    }
    if !kept.is_empty() {
        hasher.update(b"kept");
        hasher.update((kept.len() as u64).to_le_bytes());
        for number in kept.as_flattened() {
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

    fn hash(x: f64, v: f64) -> StateHash {
        state_hash(&Hashed {
            step: 3,
            positions: &[DVec3::new(x, 2.0, 3.0), DVec3::ONE],
            velocities: &[DVec3::new(v, 0.0, 0.0); 2],
            friction: &[DVec3::ZERO; 2],
            ..Hashed::default()
        })
    }

    /// Computed outside this program (Python: struct and hashlib), so that the bytes that are
    /// hashed cannot change unseen.
    #[test]
    fn hash_is_the_documented_one() {
        assert_eq!(hash(1.0, 0.5).to_string(), "f4890fa4279c08d0");
    }

    #[test]
    fn a_state_hash_changes_with_every_bit() {
        let reference = hash(1.0, 0.0);
        assert_ne!(reference, hash(f64::from_bits(1.0f64.to_bits() + 1), 0.0));
        assert_ne!(reference, hash(1.0, -0.0));
        let (p, turned, marked) = ([DVec3::X, DVec3::Y], [DVec3::Y, DVec3::X], [[0, 1]]);
        let of_p = Hashed {
            step: 1,
            positions: &p,
            ..Hashed::default()
        };
        let others = [
            of_p,
            Hashed { step: 2, ..of_p },
            Hashed {
                positions: &turned,
                ..of_p
            },
            Hashed {
                positions: &[],
                velocities: &p,
                ..of_p
            },
            Hashed {
                friction: &p,
                ..of_p
            },
            Hashed {
                friction: &turned,
                ..of_p
            },
            Hashed {
                squeezed: &marked,
                ..of_p
            },
            Hashed {
                kept: &marked,
                ..of_p
            },
            Hashed {
                adapted: Some([0, 1]),
                ..of_p
            },
            Hashed {
                adapted: Some([1, 0]),
                ..of_p
            },
        ];
        let hashes: std::collections::BTreeSet<u64> =
            others.iter().map(|hashed| state_hash(hashed).0).collect();
        assert_eq!(hashes.len(), others.len());
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
