//! Arrays with a place for every vertex of all cloth, of which a rank writes few.
//!
//! A rank that knows only its own vertices and those that its tests read still numbers them as all
//! ranks do. The system gives a page of an array memory when somebody first writes to it, so an
//! array of zeros takes no more than the pages that are used. Large pages would undo that where the
//! system hands them out unasked, so they are refused. Short arrays are on the heap.

use std::ops::{Deref, DerefMut, Range};

use bytemuck::Pod;
use memmap2::MmapMut;

use crate::heap_bytes::HeapBytes;

/// An array of a fixed length, zero where nobody has written.
#[derive(Debug)]
pub(crate) struct Sparse<T: Pod>(Room<T>);

#[derive(Debug)]
enum Room<T: Pod> {
    /// The array is mapped by itself; its length in bytes is a whole number of `T`.
    Mapped(MmapMut),
    Heap(Vec<T>),
}

/// The length in bytes below which arrays are on the heap.
const SHORT: usize = 1 << 16;
/// The bytes of a page on most machines.
const PAGE: usize = 4096;

impl<T: Pod> Sparse<T> {
    /// An array of this many zeros.
    pub(crate) fn zeros(len: usize) -> Self {
        let bytes = len.saturating_mul(size_of::<T>());
        if bytes < SHORT {
            return Self(Room::Heap(vec![T::zeroed(); len]));
        }
        // If this fails the heap serves as well, and reports it if it fails too.
        let Ok(map) = MmapMut::map_anon(bytes) else {
            return Self(Room::Heap(vec![T::zeroed(); len]));
        };
        #[cfg(target_os = "linux")]
        // A system without large pages refuses this, and has none to hand out.
        drop(map.advise(memmap2::Advice::NoHugePage));
        Self(Room::Mapped(map))
    }

    /// An array of this many zeros, whose pages take memory as they are written, or at once.
    pub(crate) fn new(len: usize, sparse: bool) -> Self {
        match sparse {
            true => Self::zeros(len),
            false => Self::from(vec![T::zeroed(); len]),
        }
    }

    /// An array of this many zeros, of which memory is taken as for this one.
    pub(crate) fn like(&self, len: usize) -> Self {
        Self::new(len, matches!(self.0, Room::Mapped(_)))
    }

    /// A copy of these ranges, which is zero elsewhere.
    pub(crate) fn clone_of(&self, ranges: impl IntoIterator<Item = Range<usize>>) -> Self {
        let mut copy = self.like(self.len());
        for range in ranges {
            copy[range.clone()].copy_from_slice(&self[range]);
        }
        copy
    }

    /// Makes it zero but for these ranges, and gives the memory of the rest back.
    pub(crate) fn keep(&mut self, ranges: impl IntoIterator<Item = Range<usize>>) {
        *self = self.clone_of(ranges);
    }
}

impl<T: Pod> Default for Sparse<T> {
    fn default() -> Self {
        Self::zeros(0)
    }
}

impl<T: Pod> Clone for Sparse<T> {
    fn clone(&self) -> Self {
        match &self.0 {
            Room::Heap(all) => Self(Room::Heap(all.clone())),
            Room::Mapped(_) => self.clone_of(std::iter::once(0..self.len())),
        }
    }

    fn clone_from(&mut self, other: &Self) {
        if self.len() == other.len() {
            self.copy_from_slice(other);
        } else {
            *self = other.clone();
        }
    }
}

/// An array that is written everywhere.
impl<T: Pod> From<Vec<T>> for Sparse<T> {
    fn from(all: Vec<T>) -> Self {
        Self(Room::Heap(all))
    }
}

/// Pages count that hold anything but zeros.
impl<T: Pod> HeapBytes for Sparse<T> {
    fn heap_bytes(&self) -> usize {
        match &self.0 {
            Room::Mapped(map) => {
                let pages = map.chunks(PAGE);
                let used = pages.filter(|page| page.iter().any(|byte| *byte != 0));
                used.map(<[u8]>::len).sum()
            }
            Room::Heap(all) => all.capacity() * size_of::<T>(),
        }
    }
}

impl<T: Pod> Deref for Sparse<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match &self.0 {
            Room::Mapped(map) => bytemuck::cast_slice(map),
            Room::Heap(all) => all,
        }
    }
}

impl<T: Pod> DerefMut for Sparse<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.0 {
            Room::Mapped(map) => bytemuck::cast_slice_mut(map),
            Room::Heap(all) => all,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_were_not_written_take_nothing() {
        let mut all = Sparse::<u64>::zeros(100_000);
        assert_eq!((all.len(), all.heap_bytes()), (100_000, 0));
        all[70_000..70_010].fill(7);
        all[20] = 5;
        assert_eq!(all.heap_bytes(), 2 * PAGE);
        all.keep(std::iter::once(0..100));
        assert_eq!((all[20], all[70_000]), (5, 0));
        assert_eq!(all.heap_bytes(), PAGE);
        let few = Sparse::<u64>::zeros(10);
        assert_eq!(few.heap_bytes(), 80);
        assert_eq!(Sparse::from(vec![1_u8; 9]).heap_bytes(), 9);
    }
}
