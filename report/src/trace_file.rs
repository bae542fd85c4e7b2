//! The file that a rank's trace is kept in.
//!
//! The line `weft-trace 2`, the line `run ID` with what `run.json` has as `run`, a [`Timeline`] on
//! the wire, and the first 8 bytes of the SHA-256 of all before: so that neither damage nor a file
//! of another run goes unnoticed.

use std::io::{self, Write};

use sha2::{Digest as _, Sha256};
use weft_runtime::trace::Timeline;
use weft_runtime::wire;

/// The first line.
const MAGIC: &[u8] = b"weft-trace 2\n";
/// The beginning of the second line.
const RUN: &[u8] = b"run ";
/// Bytes of the checksum.
const CHECK: usize = 8;

/// Writes the file of a rank: `run` is the run's identity, one word, and `timeline` what the rank
/// recorded, as it is on the wire.
///
/// # Errors
/// What `out` says.
pub fn write_trace_file(out: &mut dyn Write, run: &str, timeline: &[u8]) -> io::Result<()> {
    let mut hash = Sha256::new();
    for part in [MAGIC, RUN, run.as_bytes(), b"\n", timeline] {
        hash.update(part);
        out.write_all(part)?;
    }
    out.write_all(&hash.finalize()[..CHECK])
}

/// The run's identity and what the rank recorded, by its own clock.
///
/// # Errors
/// A sentence: another version, damage, or no timeline.
pub fn read_trace_file(bytes: &[u8]) -> Result<(String, Timeline), String> {
    if !bytes.starts_with(MAGIC) {
        return Err("it does not begin with `weft-trace 2`".to_owned());
    }
    let damaged = "it was damaged, or ended too early: its checksum differs";
    let (text, check) = bytes.split_last_chunk::<CHECK>().ok_or(damaged)?;
    if Sha256::digest(text)[..CHECK] != check[..] {
        return Err(damaged.to_owned());
    }
    let rest = text
        .strip_prefix(MAGIC)
        .and_then(|rest| rest.strip_prefix(RUN));
    let rest = rest.ok_or("it does not say of which run it is")?;
    let end = rest.iter().position(|&byte| byte == b'\n');
    let (run, timeline) = rest.split_at(end.ok_or("it does not say of which run it is")?);
    let run = String::from_utf8_lossy(run).into_owned();
    Ok((run, wire::decode(&timeline[1..])?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use weft_runtime::comm::Rank;

    use super::*;

    fn file() -> (Vec<u8>, Timeline) {
        let timeline = Timeline::new(Rank(3), Vec::new(), vec!["tests".to_owned()], 9);
        let mut bytes = Vec::new();
        write_trace_file(&mut bytes, "00ff", &wire::encode(&timeline).unwrap()).unwrap();
        (bytes, timeline)
    }

    #[test]
    fn a_trace_file_reads_back_as_it_was_written() {
        let (bytes, timeline) = file();
        assert_eq!(read_trace_file(&bytes), Ok(("00ff".to_owned(), timeline)));
    }

    proptest! {
        #[test]
        fn any_changed_bit_and_any_cut_is_noticed(at in any::<prop::sample::Index>(), bit in 0..8_u8) {
            let (mut bytes, _) = file();
            let at = at.index(bytes.len());
            prop_assert!(read_trace_file(&bytes[..at]).is_err());
            bytes[at] ^= 1 << bit;
            prop_assert!(read_trace_file(&bytes).is_err());
        }
    }
}
