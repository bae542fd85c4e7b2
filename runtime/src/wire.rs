//! Bytes on the wire: one format, in one place.
//!
//! bincode 2 in its legacy configuration (fixed-size little-endian integers), behind a version byte.
//! Decoding is bounded: a hostile length is an error, not an allocation. The bytes of each message are
//! pinned by a test, so that a change of crate or of an enum's order cannot pass unseen.

use bincode::config;
use bincode::error::{DecodeError, EncodeError};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::comm::threads::panic_message;
use crate::panics::catch;

/// First byte of every message; changes when the format does.
const VERSION: u8 = 6;
/// Room for most messages, in bytes.
const USUAL: usize = 128;
/// Largest message that is decoded, in bytes.
const LIMIT: usize = 1 << 30;

/// Encodes a value.
///
/// # Errors
/// A sentence: the value cannot be serialised.
pub fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(USUAL);
    bytes.push(VERSION);
    guarded(|| bincode::serde::encode_into_std_write(value, &mut bytes, config::legacy()))?
        .map_err(|error| match error {
            EncodeError::OtherString(what) => what,
            other => other.to_string(),
        })?;
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
    let config = config::legacy().with_limit::<LIMIT>();
    let decoded = guarded(|| bincode::serde::decode_from_slice(rest, config))?;
    let (value, used) = decoded.map_err(|error| match error {
        DecodeError::OtherString(what) => what,
        DecodeError::UnexpectedEnd { .. } => "they end too early".to_owned(),
        DecodeError::LimitExceeded => format!("they claim to hold more than {LIMIT} bytes"),
        other => other.to_string(),
    })?;
    if used == rest.len() {
        Ok(value)
    } else {
        Err("bytes left over".to_owned())
    }
}

/// Runs what a task's author wrote where a panic must not end the rank; the error is a sentence.
pub(crate) fn guarded<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    catch(run).map_err(|payload| format!("it panicked: {}", panic_message(&*payload)))
}

/// Bytes in hexadecimal, two lower-case digits each.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::{BlockError, BlockName};
    use crate::comm::Rank;
    use crate::scheduler::GroupId;
    use crate::scheduler::message::{BlockMessage, Bundle, Census, GroupCount, Message, Word};

    type Letter = Message<u8, u8>;

    #[test]
    fn the_bytes_of_every_message_are_what_they_were() {
        let count = |given| GroupCount {
            given,
            used: 2,
            waiting: 1,
        };
        let census = Census {
            groups: vec![count(3)],
            rooted: count(5),
            ended: 4,
            done: 8,
            stuck: 5,
            lying: 6,
            moved: 7,
            posted: vec![(9, 2)],
        };
        let collective = GroupId::Collective(2);
        let rooted = GroupId::Rooted {
            home: Rank(3),
            number: 9,
        };
        let bundles = vec![Bundle {
            path: vec![rooted, collective],
            home: Rank(3),
            lease: 6,
            tasks: vec![7],
        }];
        let name = BlockName {
            home: Rank(1),
            id: 2,
            version: 3,
        };
        let golden: [(Letter, &str); 20] = [
            (Message::StealRequest(None), "06 .5"),
            (
                Message::StealRequest(Some(rooted)),
                "06 .4 01 01 .3 03 .3 09 .7",
            ),
            (
                Message::StealAnswer(bundles.clone()),
                "06 01 .3 01 .7 02 .7 01 .3 03 .3 09 .11 02 .3 03 .3 06 .7 01 .7 07",
            ),
            (Message::Lifeline(Some(collective)), "06 02 .3 01 .4 02 .3"),
            (
                Message::Gift(bundles),
                "06 03 .3 01 .7 02 .7 01 .3 03 .3 09 .11 02 .3 03 .3 06 .7 01 .7 07",
            ),
            (
                Message::Results(vec![(collective, 9)]),
                "06 04 .3 01 .11 02 .3 09",
            ),
            (
                Message::Returned {
                    lease: 6,
                    sent: 1,
                    results: vec![8],
                },
                "06 05 .3 06 .7 01 .7 01 .7 08",
            ),
            (Message::Revoked(6), "06 06 .3 06 .7"),
            (Message::Cancel(collective, Rank(1)), "06 07 .7 02 .3 01 .3"),
            (Message::CancelLease(6), "06 08 .3 06 .7"),
            (Message::Wave(6), "06 09 .3 06 .3"),
            (
                Message::Report(6, census, vec![(collective, 9)]),
                "06 0a .3 06 .3 01 .7 03 .7 02 .7 01 .3 05 .7 02 .7 01 .3 04 .3 08 .3 05 .3 06 .7 07 .3 01 .7 09 .3 02 .7 01 .11 02 .3 09",
            ),
            (
                Message::Exhausted(vec![1], true, vec![(5, 3)]),
                "06 0b .3 01 .7 01 .3 01 01 .7 05 .3 03 .7",
            ),
            (Message::Quiet(vec![1], false), "06 0c .3 01 .7 01 .4"),
            (
                Message::Farewell(Word {
                    groups: vec![4],
                    waits: true,
                    over: false,
                    posted: 2,
                    items: vec![vec![3]],
                }),
                "06 0e .3 01 .7 04 .3 01 .1 02 .7 01 .7 01 .7 03",
            ),
            (
                Message::Letters(vec![vec![7, 8], vec![]]),
                "06 0f .3 02 .7 02 .7 07 08 .8",
            ),
            (
                Message::Block(BlockMessage::Fetch {
                    name,
                    group: 2,
                    reader: Rank(4),
                    number: 5,
                }),
                "06 0d .7 01 .3 02 .7 03 .3 02 .3 04 .3 05 .7",
            ),
            (
                Message::Block(BlockMessage::Delivery {
                    name,
                    number: 5,
                    bytes: vec![6, 7].into(),
                }),
                "06 0d .3 01 .3 01 .3 02 .7 03 .3 05 .7 02 .7 06 07",
            ),
            (
                Message::Block(BlockMessage::Refusal {
                    name,
                    number: 5,
                    why: BlockError::Unpublished { name },
                }),
                "06 0d .3 02 .3 01 .3 02 .7 03 .3 05 .11 01 .3 02 .7 03 .3",
            ),
            (
                Message::Block(BlockMessage::Refusal {
                    name,
                    number: 5,
                    why: BlockError::Stale { name, current: 4 },
                }),
                "06 0d .3 02 .3 01 .3 02 .7 03 .3 05 .7 01 .3 01 .3 02 .7 03 .3 04 .3",
            ),
        ];
        for (letter, golden) in golden {
            let bytes = encode(&letter).unwrap();
            assert_eq!(short_hex(&bytes), golden, "{letter:?}");
            assert_eq!(decode::<Letter>(&bytes).unwrap(), letter);
        }
    }

    #[test]
    fn every_byte_has_two_hexadecimal_digits() {
        assert_eq!(hex(&[]), "");
        assert_eq!(hex(&[0, 7, 16, 255]), "000710ff");
    }

    /// Bytes in hexadecimal, runs of zeros as `.` and their length.
    fn short_hex(bytes: &[u8]) -> String {
        let mut text = String::new();
        for run in bytes.chunk_by(|a, b| (*a == 0) == (*b == 0)) {
            match run[0] {
                0 => text.push_str(&format!(".{} ", run.len())),
                _ => run.iter().for_each(|b| text.push_str(&format!("{b:02x} "))),
            }
        }
        text.trim_end().to_owned()
    }

    #[test]
    fn hostile_bytes_are_errors() {
        assert!(decode::<Letter>(&[]).is_err());
        assert!(decode::<Letter>(&[VERSION - 1, 7, 0, 0, 0]).is_err());
        assert!(decode::<Letter>(&[VERSION, 10, 0, 0, 0, 0]).is_err());
        assert!(decode::<Letter>(&[VERSION, 99, 0, 0, 0]).is_err());
        let mut huge = vec![VERSION, 1, 0, 0, 0];
        huge.extend(u64::MAX.to_le_bytes());
        assert!(decode::<Letter>(&huge).is_err());
    }
}
