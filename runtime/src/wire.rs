//! Bytes on the wire: one format, in one place.
//!
//! bincode 2 in its legacy configuration (fixed-size little-endian integers), behind a version byte.
//! Decoding is bounded: a hostile length is an error, not an allocation. The bytes of each message are
//! pinned by a test, so that a change of crate or of an enum's order cannot pass unseen.

use bincode::config;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// First byte of every message; changes when the format does.
const VERSION: u8 = 1;
/// Largest message that is decoded, in bytes.
const LIMIT: usize = 1 << 30;

/// Encodes a value.
///
/// # Errors
/// A sentence: the value cannot be serialised.
pub fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, String> {
    let mut bytes = vec![VERSION];
    bincode::serde::encode_into_std_write(value, &mut bytes, config::legacy())
        .map_err(|e| e.to_string())?;
    Ok(bytes)
}

/// Decodes a whole message.
///
/// # Errors
/// A sentence: these are not the bytes of such a value.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    let Some((&VERSION, rest)) = bytes.split_first() else {
        let version = bytes
            .first()
            .map_or_else(|| "nothing".to_owned(), u8::to_string);
        return Err(format!("wire version {version}, not {VERSION}"));
    };
    let (value, used) =
        bincode::serde::decode_from_slice(rest, config::legacy().with_limit::<LIMIT>())
            .map_err(|e| e.to_string())?;
    if used == rest.len() {
        Ok(value)
    } else {
        Err("bytes left over".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::message::{Census, GroupCount, Message};

    type Letter = Message<Vec<u8>, u8>;

    #[test]
    fn the_bytes_of_every_message_are_what_they_were() {
        let census = Census {
            groups: vec![GroupCount {
                given: 3,
                used: 2,
                waiting: 1,
            }],
            ended: 4,
        };
        let golden: [(Letter, &[u8]); 8] = [
            (Message::StealRequest, &[1, 0, 0, 0, 0]),
            (
                Message::StealAnswer(vec![(2, vec![7])]),
                &[
                    1, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 7,
                ],
            ),
            (
                Message::Results(vec![(5, 9)]),
                &[1, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 9],
            ),
            (Message::Wave(6), &[1, 3, 0, 0, 0, 6, 0, 0, 0]),
            (
                Message::Report(6, census),
                &[
                    1, 4, 0, 0, 0, 6, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 2,
                    0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0,
                ],
            ),
            (
                Message::Exhausted(vec![1], true),
                &[1, 5, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1],
            ),
            (Message::Drained, &[1, 6, 0, 0, 0]),
            (Message::Leave, &[1, 7, 0, 0, 0]),
        ];
        for (letter, bytes) in golden {
            assert_eq!(encode(&letter).unwrap(), bytes, "{letter:?}");
            assert_eq!(decode::<Letter>(bytes).unwrap(), letter);
        }
    }

    #[test]
    fn hostile_bytes_are_errors() {
        assert!(decode::<Letter>(&[]).is_err());
        assert!(decode::<Letter>(&[2, 0, 0, 0, 0]).is_err());
        assert!(decode::<Letter>(&[1, 0, 0, 0, 0, 0]).is_err());
        assert!(decode::<Letter>(&[1, 99, 0, 0, 0]).is_err());
        let mut huge = vec![1, 1, 0, 0, 0];
        huge.extend(u64::MAX.to_le_bytes());
        assert!(decode::<Letter>(&huge).is_err());
    }
}
