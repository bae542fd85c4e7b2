//! Numbers as text, in the shortest digits that are read as the same bits, made by all cores.

use std::io::{self, Write};

use glam::DVec3;
use rayon::prelude::*;

/// Vectors that one thread writes at a time: few enough for the memory of their text to be used
/// again.
const CHUNK: usize = 1024;

/// Writes something for each item, in their order.
pub(super) fn each<T: Sync>(
    items: &[T],
    out: &mut dyn Write,
    write: impl Fn(&T, &mut String, &mut zmij::Buffer) + Sync,
) -> io::Result<()> {
    // Some chunks at a time: what is not written yet is in memory.
    for some in items.chunks(CHUNK * 256) {
        let texts: Vec<String> = some
            .par_chunks(CHUNK)
            .map(|chunk| {
                let mut text = String::with_capacity(40 * chunk.len());
                let mut digits = zmij::Buffer::new();
                for item in chunk {
                    write(item, &mut text, &mut digits);
                }
                text
            })
            .collect();
        for text in texts {
            out.write_all(text.as_bytes())?;
        }
    }
    Ok(())
}

/// Writes vectors as `(x, y, z), ` in 32 bits.
pub(super) fn tuples(vectors: &[DVec3], out: &mut dyn Write) -> io::Result<()> {
    each(vectors, out, |v, text, digits| {
        text.push('(');
        for (k, x) in v.as_vec3().to_array().into_iter().enumerate() {
            if k > 0 {
                text.push_str(", ");
            }
            text.push_str(digits.format(x));
        }
        text.push_str("), ");
    })
}
