//! Bytes on the wire: one format, in one place.
//!
//! bincode 2 in its legacy configuration (fixed-size little-endian integers), behind a version
//! byte. Decoding is bounded: a hostile length is an error, not an allocation. A message longer
//! than that bound is refused by the rank that would send it. The bytes of each message are pinned
//! by a test, so that a change of crate or of an enum's order cannot pass unseen.

use std::fmt;
use std::io;

use bincode::config;
use bincode::error::DecodeError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

use crate::comm::threads::panic_message;
use crate::panics::catch;

/// First byte of every message; changes when the format does.
const VERSION: u8 = 6;
/// Room for most messages, in bytes.
const USUAL: usize = 128;
/// Longest value that is encoded and decoded, in bytes without the first one.
pub const LIMIT: usize = 1 << 30;

/// The reason why a value cannot be sent.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum EncodeError {
    /// It cannot be serialised; a sentence says why.
    #[error("{0}")]
    Unserialisable(String),
    /// Nobody would read so much.
    #[error("it is {} long, and ranks read no more than {} at once", Size(*bytes), Size(*limit))]
    TooLong {
        /// Its length in bytes.
        bytes: u64,
        /// The most that is read.
        limit: u64,
    },
}

/// A number of bytes, for people: in the largest unit of which there is one, and exactly.
pub(crate) struct Size(pub(crate) u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(bytes) = *self;
        for (unit, length) in [("GB", 1e9), ("MB", 1e6), ("kB", 1e3)] {
            let count = bytes as f64 / length;
            if count >= 1.0 {
                return write!(f, "{count:.1} {unit} ({bytes} bytes)");
            }
        }
        write!(f, "{bytes} bytes")
    }
}

/// Encodes a value.
///
/// # Errors
/// The value cannot be serialised, or is longer than [`LIMIT`].
pub fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, EncodeError> {
    encode_within(value, LIMIT)
}

/// Encodes a value of at most this many bytes.
///
/// # Errors
/// The value cannot be serialised, or is longer.
pub(crate) fn encode_within<T: Serialize>(value: &T, limit: usize) -> Result<Vec<u8>, EncodeError> {
    let mut bounded = Bounded {
        bytes: Vec::with_capacity(USUAL),
        written: 0,
        limit,
    };
    bounded.bytes.push(VERSION);
    guarded(|| bincode::serde::encode_into_std_write(value, &mut bounded, config::legacy()))
        .map_err(EncodeError::Unserialisable)?
        .map_err(|error| {
            EncodeError::Unserialisable(match error {
                bincode::error::EncodeError::OtherString(what) => what,
                other => other.to_string(),
            })
        })?;
    if bounded.written > limit {
        return Err(EncodeError::TooLong {
            bytes: bounded.written as u64,
            limit: limit as u64,
        });
    }
    Ok(bounded.bytes)
}

/// Takes bytes up to a limit, and counts those beyond it.
struct Bounded {
    bytes: Vec<u8>,
    written: usize,
    limit: usize,
}

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.written = self.written.saturating_add(bytes.len());
        if self.written <= self.limit {
            self.bytes.extend_from_slice(bytes);
        } else {
            // Nobody gets it any more; only its length is given.
            self.bytes = Vec::new();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Decodes a whole message.
///
/// # Errors
/// A sentence: these are not the bytes of such a value.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    decode_within::<T, LIMIT>(bytes)
}

/// Decodes a value of at most this many bytes.
fn decode_within<T: DeserializeOwned, const LIMIT: usize>(bytes: &[u8]) -> Result<T, String> {
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
    use crate::block::{BlockError, BlockName, Bytes};
    use crate::comm::Rank;
    use crate::scheduler::GroupId;
    use crate::scheduler::message::{
        BlockMessage, Bundle, Census, DoneNotice, GroupCount, SchedulerMessage,
    };

    type Message = SchedulerMessage<u8, u8>;

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
        let golden: [(Message, &str); 19] = [
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
                Message::Returned { lease: 6, sent: 1 },
                "06 05 .3 06 .7 01 .7",
            ),
            (Message::Cancel(collective, Rank(1)), "06 06 .7 02 .3 01 .3"),
            (Message::CancelLease(6), "06 07 .3 06 .7"),
            (Message::Wave(6), "06 08 .3 06 .3"),
            (
                Message::Report(6, census, vec![(collective, 9)]),
                "06 09 .3 06 .3 01 .7 03 .7 02 .7 01 .3 05 .7 02 .7 01 .3 04 .3 08 .3 05 .3 06 .7 07 .3 01 .7 09 .3 02 .7 01 .11 02 .3 09",
            ),
            (
                Message::Exhausted(vec![1], true, vec![(5, 3)]),
                "06 0a .3 01 .7 01 .3 01 01 .7 05 .3 03 .7",
            ),
            (
                Message::Done(DoneNotice {
                    groups: vec![4],
                    waits: true,
                    over: false,
                    posted: 2,
                    items: vec![vec![3]],
                }),
                "06 0c .3 01 .7 04 .3 01 .1 02 .7 01 .7 01 .7 03",
            ),
            (
                Message::Posted(vec![vec![7, 8], vec![]]),
                "06 0d .3 02 .7 02 .7 07 08 .8",
            ),
            (
                Message::Improved {
                    bound: 3,
                    code: 8,
                    root: Rank(5),
                },
                "06 0e .3 03 .1 08 .7 05 .3",
            ),
            (
                Message::Block(BlockMessage::Fetch {
                    name,
                    group: 2,
                    reader: Rank(4),
                    number: 5,
                }),
                "06 0b .7 01 .3 02 .7 03 .3 02 .3 04 .3 05 .7",
            ),
            (
                Message::Block(BlockMessage::Delivery {
                    name,
                    number: 5,
                    bytes: vec![6, 7].into(),
                }),
                "06 0b .3 01 .3 01 .3 02 .7 03 .3 05 .7 02 .7 06 07",
            ),
            (
                Message::Block(BlockMessage::Refusal {
                    name,
                    number: 5,
                    why: BlockError::Unpublished { name },
                }),
                "06 0b .3 02 .3 01 .3 02 .7 03 .3 05 .11 01 .3 02 .7 03 .3",
            ),
            (
                Message::Block(BlockMessage::Refusal {
                    name,
                    number: 5,
                    why: BlockError::Stale { name, current: 4 },
                }),
                "06 0b .3 02 .3 01 .3 02 .7 03 .3 05 .7 01 .3 01 .3 02 .7 03 .3 04 .3",
            ),
        ];
        for (message, golden) in golden {
            let bytes = encode(&message).unwrap();
            assert_eq!(short_hex(&bytes), golden, "{message:?}");
            assert_eq!(decode::<Message>(&bytes).unwrap(), message);
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
        assert!(decode::<Message>(&[]).is_err());
        assert!(decode::<Message>(&[VERSION - 1, 7, 0, 0, 0]).is_err());
        assert!(decode::<Message>(&[VERSION, 10, 0, 0, 0, 0]).is_err());
        assert!(decode::<Message>(&[VERSION, 99, 0, 0, 0]).is_err());
        let mut huge = vec![VERSION, 1, 0, 0, 0];
        huge.extend(u64::MAX.to_le_bytes());
        assert!(decode::<Message>(&huge).is_err());
    }

    #[test]
    fn a_value_that_was_sent_is_read_back_to_the_last_byte() {
        const LIMIT: usize = 1000;
        // A length of eight bytes stands before each.
        let bytes = |length: usize| Bytes::from(vec![7; length - 8]);
        let text = |length: usize| "x".repeat(length - 8);
        let numbers = |length: usize| vec![0.5_f64; (length - 8) / 8];
        let sent = |value: &dyn Fn(usize) -> Result<Vec<u8>, EncodeError>| {
            (value(LIMIT).unwrap(), value(LIMIT + 8).unwrap_err())
        };
        let too_long = EncodeError::TooLong {
            bytes: LIMIT as u64 + 8,
            limit: LIMIT as u64,
        };
        let (whole, refused) = sent(&|length| encode_within(&bytes(length), LIMIT));
        assert_eq!(refused, too_long);
        assert_eq!(whole.len(), LIMIT + 1);
        assert_eq!(decode_within::<Bytes, LIMIT>(&whole).unwrap(), bytes(LIMIT));
        let (whole, refused) = sent(&|length| encode_within(&text(length), LIMIT));
        assert_eq!(refused, too_long);
        assert_eq!(decode_within::<String, LIMIT>(&whole).unwrap(), text(LIMIT));
        let (whole, refused) = sent(&|length| encode_within(&numbers(length), LIMIT));
        assert_eq!(refused, too_long);
        assert_eq!(
            decode_within::<Vec<f64>, LIMIT>(&whole).unwrap(),
            numbers(LIMIT)
        );
        // A message that is longer all the same is not read.
        let longer = encode(&text(LIMIT + 1)).unwrap();
        assert!(decode_within::<String, LIMIT>(&longer).is_err());
    }

    #[test]
    fn a_size_is_told_in_a_unit_and_exactly() {
        for (bytes, text) in [
            (0, "0 bytes"),
            (999, "999 bytes"),
            (1_500, "1.5 kB (1500 bytes)"),
            (1 << 30, "1.1 GB (1073741824 bytes)"),
        ] {
            assert_eq!(Size(bytes).to_string(), text);
        }
    }
}
