//! Names of published blocks, and why one cannot be had: what tasks and bodies see of them.
//!
//! A block is bytes that a rank *publishes* once for many tasks to read, wherever they run: it
//! travels on demand, not with every task. How it gets there is decided in
//! `scheduler::block_protocol`.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde::de::{Error as _, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

use crate::comm::Rank;
use crate::wire::Size;

/// The bytes of a block, shared by all who read it on a rank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bytes(Arc<[u8]>);

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes.into())
    }
}

impl Serialize for Bytes {
    /// Writes the numbers as one run of bytes, not one by one.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Take;
        impl Visitor<'_> for Take {
            type Value = Bytes;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("bytes")
            }

            fn visit_bytes<X: serde::de::Error>(self, bytes: &[u8]) -> Result<Bytes, X> {
                Ok(Bytes(bytes.into()))
            }

            fn visit_byte_buf<X: serde::de::Error>(self, bytes: Vec<u8>) -> Result<Bytes, X> {
                Ok(bytes.into())
            }
        }
        deserializer
            .deserialize_byte_buf(Take)
            .map_err(D::Error::custom)
    }
}

/// Names a published block: who published it, its id there, its version.
///
/// The bytes of a name never change; what changes is published as another version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct BlockName {
    /// The rank that publishes it.
    pub home: Rank,
    /// The number of the block among those of that rank.
    pub id: u64,
    /// The version of the block: a newer version replaces the older one.
    pub version: u32,
}

impl fmt::Display for BlockName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { home, id, version } = self;
        write!(f, "block {id} of rank {}, version {version},", home.0)
    }
}

/// The reason why a block cannot be had, or not be published.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq, Serialize, Deserialize)]
pub enum BlockError {
    /// Its rank has published nothing under this id, and cannot before the task has ended.
    #[error(
        "{name} was never published, nor any other version of it, and rank {} waits in a join or has ended \
         its body; publish it there before it joins the group of the tasks that read it",
        name.home.0
    )]
    Unpublished {
        /// The block that was asked for.
        name: BlockName,
    },
    /// A newer version has replaced it.
    #[error(
        "{name} is stale, rank {} has replaced it by version {current}; name that version, or publish the \
         new one under another id while tasks read the old one",
        name.home.0
    )]
    Stale {
        /// The block that was asked for.
        name: BlockName,
        /// The version that is published.
        current: u32,
    },
    /// Only older versions were published, and its rank cannot publish this one before the task has
    /// ended.
    #[error(
        "{name} is not published, rank {} waits in a join or has ended its body with version {current}; name \
         that version, or publish the newer one before that rank joins the group of the tasks that read it",
        name.home.0
    )]
    Early {
        /// The block that was asked for.
        name: BlockName,
        /// The version that is published.
        current: u32,
    },
    /// The rank that was named does not exist.
    #[error(
        "{name} names a rank that does not exist, there are {ranks}; use the name that publishing returned"
    )]
    Nowhere {
        /// The block that was asked for.
        name: BlockName,
        /// How many ranks there are.
        ranks: u32,
    },
    /// Published again with a version that is not newer.
    #[error(
        "{name} cannot be published, rank {} has published version {current} already; publish with a greater \
         version each time",
        name.home.0
    )]
    Republished {
        /// The block that was to be published.
        name: BlockName,
        /// The version that is published.
        current: u32,
    },
    /// Published with more bytes than others would read.
    #[error(
        "{name} cannot be published: it is {} long, and a block has at most {}; publish it as several blocks",
        Size(*bytes), Size(*limit)
    )]
    TooLong {
        /// The block that was to be published.
        name: BlockName,
        /// Its length in bytes.
        bytes: u64,
        /// The most that a block may have.
        limit: u64,
    },
}

impl BlockError {
    /// The block it is about.
    #[must_use]
    pub fn name(&self) -> BlockName {
        match *self {
            Self::Unpublished { name }
            | Self::Stale { name, .. }
            | Self::Early { name, .. }
            | Self::Nowhere { name, .. }
            | Self::Republished { name, .. }
            | Self::TooLong { name, .. } => name,
        }
    }
}
