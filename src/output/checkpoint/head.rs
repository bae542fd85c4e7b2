//! The head of a checkpoint: what all of it is of, and where the section of each patch lies.

use std::fs::File;
use std::io::{self, Read as _};

use sha2::{Digest as _, Sha256};

use super::{LONGEST_HEADER, MAGIC, PREFIX, SUM};

/// The version of this layout.
pub(super) const VERSION: u32 = 7;
/// Bytes of the number of patches.
const COUNT: usize = 4;
/// Bytes of the entry of a patch: where its section begins, its vertices, the sum of its section.
const ENTRY: usize = 8 + 8 + SUM;
/// Bytes per vertex: its number, five vectors, and its contact.
const PER_VERTEX: u64 = 4 + 5 * 24 + 1;
/// Bytes per vertex of the past.
const PER_PAST: u64 = 2 * 24;

/// The SHA-256 of a section.
pub(super) type Sum = [u8; SUM];

/// Bytes of a vertex in its section.
pub(super) fn per_vertex(with_past: bool) -> u64 {
    PER_VERTEX + if with_past { PER_PAST } else { 0 }
}

/// A section as the head has it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Section {
    /// Its place in the file.
    pub(super) offset: u64,
    pub(super) vertices: u64,
    pub(super) sum: Sum,
}

/// The head of a file: all before the sections.
#[derive(Debug)]
pub(super) struct Head {
    /// The header, JSON.
    pub(super) header: Vec<u8>,
    pub(super) sections: Vec<Section>,
    /// The bytes of the head.
    pub(super) length: u64,
}

impl Head {
    /// Reads a head behind its prefix; `None` if it is damaged or cut off. Nothing is allocated
    /// for what the file, `there` bytes long, is too short to hold.
    pub(super) fn read(
        prefix: &[u8; PREFIX],
        file: &mut File,
        there: u64,
    ) -> io::Result<Option<Self>> {
        let length = u32::from_le_bytes([prefix[12], prefix[13], prefix[14], prefix[15]]);
        let fixed = (PREFIX + COUNT + SUM) as u64 + u64::from(length);
        if length > LONGEST_HEADER || fixed > there {
            return Ok(None);
        }
        let mut header = vec![0; length as usize];
        let mut count = [0; COUNT];
        file.read_exact(&mut header)?;
        file.read_exact(&mut count)?;
        let patches = u64::from(u32::from_le_bytes(count));
        if fixed + patches * ENTRY as u64 > there {
            return Ok(None);
        }
        let mut table = vec![0; patches as usize * ENTRY];
        let mut sum = [0; SUM];
        file.read_exact(&mut table)?;
        file.read_exact(&mut sum)?;
        let mut hasher = Sha256::new();
        for bytes in [&prefix[..], &header, &count, &table] {
            hasher.update(bytes);
        }
        if hasher.finalize()[..] != sum {
            return Ok(None);
        }
        let entries = table.as_chunks::<ENTRY>().0.iter();
        let sections = entries.map(|entry| {
            let number = |at: usize| {
                let bytes = entry[at..].first_chunk();
                bytes.map_or(0, |&bytes| u64::from_le_bytes(bytes))
            };
            let mut sum = [0; SUM];
            sum.copy_from_slice(&entry[16..]);
            Section {
                offset: number(0),
                vertices: number(8),
                sum,
            }
        });
        Ok(Some(Self {
            sections: sections.collect(),
            header,
            length: fixed + patches * ENTRY as u64,
        }))
    }

    /// The length of a head, from the length of its header and the number of patches.
    pub(super) fn length(header: usize, patches: usize) -> u64 {
        (PREFIX + header + COUNT + ENTRY * patches + SUM) as u64
    }

    /// The bytes of a head.
    pub(super) fn bytes(header: &[u8], sections: &[Section]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend((header.len() as u32).to_le_bytes());
        bytes.extend(header);
        bytes.extend((sections.len() as u32).to_le_bytes());
        for section in sections {
            bytes.extend(section.offset.to_le_bytes());
            bytes.extend(section.vertices.to_le_bytes());
            bytes.extend(section.sum);
        }
        let sum = Sha256::digest(&bytes);
        bytes.extend(sum);
        bytes
    }
}
