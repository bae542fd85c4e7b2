//! Buffers of long messages that were sent, kept for those that come.
//!
//! Memory that is new to a process costs a page fault every 4 KiB when it is first written, and
//! allocators give long blocks back as soon as they are freed: at 1 MiB that took as long as the
//! message itself. Ranks that send long messages mostly get some as long, so the room of one serves
//! for the other.

/// Most buffers that are kept.
const MOST: usize = 8;
/// Most bytes in them, all together.
const MOST_BYTES: usize = 32 << 20;

/// Buffers that nobody uses.
#[derive(Debug, Default)]
pub(crate) struct Spares {
    /// Empty, the one kept last at the end.
    buffers: Vec<Vec<u8>>,
}

impl Spares {
    /// Keeps a buffer, whose bytes nobody needs any more, if there is room for it among the others;
    /// those kept first make it.
    pub(crate) fn keep(&mut self, mut buffer: Vec<u8>) {
        if buffer.capacity() == 0 || buffer.capacity() > MOST_BYTES {
            return;
        }
        buffer.clear();
        self.buffers.push(buffer);
        while self.buffers.len() > MOST || self.bytes() > MOST_BYTES {
            self.buffers.remove(0);
        }
    }

    /// An empty buffer with room for this many bytes, and not for more than twice as many, if one
    /// was kept. If there are several, it is the one used last: it is the most likely to be in a
    /// cache.
    pub(crate) fn take(&mut self, length: usize) -> Option<Vec<u8>> {
        let fits = |b: &Vec<u8>| b.capacity() >= length && b.capacity() / 2 <= length;
        let at = self.buffers.iter().rposition(fits)?;
        Some(self.buffers.remove(at))
    }

    fn bytes(&self) -> usize {
        self.buffers.iter().map(Vec::capacity).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_taken_where_it_fits_and_is_empty() {
        let mut spares = Spares::default();
        spares.keep(vec![7; 1000]);
        spares.keep(vec![7; 3000]);
        assert_eq!(spares.take(400), None, "more than twice as long");
        assert_eq!(spares.take(3001), None, "too short");
        let buffer = spares.take(900).unwrap();
        assert!(buffer.is_empty() && buffer.capacity() >= 900);
        assert!(buffer.capacity() < 3000);
        assert_eq!(spares.take(900), None, "it was taken");
        assert!(spares.take(3000).is_some());
    }

    #[test]
    fn spare_buffers_are_bounded_and_the_oldest_go_first() {
        let mut spares = Spares::default();
        spares.keep(vec![0; MOST_BYTES + 1]);
        spares.keep(Vec::new());
        assert_eq!(spares.buffers.len(), 0);
        for n in 1..=2 * MOST {
            spares.keep(Vec::with_capacity(100 * n));
        }
        assert_eq!(spares.buffers.len(), MOST);
        assert!(spares.buffers[0].capacity() >= 100 * (MOST + 1));
        spares.keep(Vec::with_capacity(MOST_BYTES - 100));
        assert!(spares.buffers.len() == 1 && spares.bytes() <= MOST_BYTES);
    }
}
