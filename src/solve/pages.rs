//! Long arrays on large pages.
//!
//! An iteration of a solve reads every number of the matrix and of some vectors once. On pages of 4
//! KiB the processor then looks an address up in the page tables for every 64 cache lines, and its
//! prefetchers stop at every border. Most Linux distributions hand out large pages only to programs
//! that ask for them (`madvise`). Asking saves a fifth to a third of an iteration on matrices that
//! no cache holds. Where the system has no large pages, nothing is lost.

use std::ops::{Deref, DerefMut};

use bytemuck::Pod;
use memmap2::MmapMut;

use crate::heap_bytes::HeapBytes;

/// An array of a fixed length, on large pages if it is long and the system has any.
#[derive(Debug)]
pub(super) struct Paged<T: Pod>(Room<T>);

#[derive(Debug)]
enum Room<T: Pod> {
    /// The array is mapped by itself; its length in bytes is a whole number of `T`.
    Mapped(MmapMut),
    Heap(Vec<T>),
}

/// The length in bytes below which arrays stay on the heap: a large page has 2 MiB on most
/// machines.
const LONG: usize = 2 << 20;

impl<T: Pod> Paged<T> {
    /// Makes an array of this many zeros.
    pub(super) fn zeros(len: usize) -> Self {
        Self(Self::mapped(len).map_or_else(|| Room::Heap(vec![T::zeroed(); len]), Room::Mapped))
    }

    fn mapped(len: usize) -> Option<MmapMut> {
        let bytes = len.checked_mul(size_of::<T>())?;
        if bytes < LONG {
            return None;
        }
        // If this fails the heap serves as well, and reports it if it fails too.
        let map = MmapMut::map_anon(bytes).ok()?;
        #[cfg(target_os = "linux")]
        // A system without large pages refuses this, and the array is there all the same.
        drop(map.advise(memmap2::Advice::HugePage));
        Some(map)
    }
}

/// Arrays that are mapped count as well: they take memory as those on the heap do.
impl<T: Pod> HeapBytes for Paged<T> {
    fn heap_bytes(&self) -> usize {
        match &self.0 {
            Room::Mapped(map) => map.len(),
            Room::Heap(numbers) => numbers.capacity() * size_of::<T>(),
        }
    }
}

impl<T: Pod> Deref for Paged<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match &self.0 {
            Room::Mapped(map) => bytemuck::cast_slice(map),
            Room::Heap(numbers) => numbers,
        }
    }
}

impl<T: Pod> DerefMut for Paged<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.0 {
            Room::Mapped(map) => bytemuck::cast_slice_mut(map),
            Room::Heap(numbers) => numbers,
        }
    }
}

impl<'a, T: Pod> IntoIterator for &'a Paged<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T: Pod> From<&[T]> for Paged<T> {
    fn from(numbers: &[T]) -> Self {
        let mut copy = Self::zeros(numbers.len());
        copy.copy_from_slice(numbers);
        copy
    }
}

impl<T: Pod> Clone for Paged<T> {
    fn clone(&self) -> Self {
        Self::from(&**self)
    }
}

impl<T: Pod> Default for Paged<T> {
    fn default() -> Self {
        Self(Room::Heap(Vec::new()))
    }
}

impl<T: Pod + PartialEq> PartialEq for Paged<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: Pod + Eq> Eq for Paged<T> {}

#[cfg(test)]
mod tests {
    use glam::DVec3;

    use super::*;

    #[test]
    fn arrays_of_any_length_are_zero_and_keep_what_is_written() {
        for len in [0, 1, 7, LONG / 24 - 1, LONG / 24 + 1, 300_000] {
            let mut numbers = Paged::<DVec3>::zeros(len);
            assert_eq!(numbers.len(), len);
            assert!(numbers.iter().all(|&v| v == DVec3::ZERO));
            for (i, v) in numbers.iter_mut().enumerate() {
                *v = DVec3::splat(i as f64);
            }
            let copy = numbers.clone();
            assert!(copy == numbers);
            assert!((copy.iter().enumerate()).all(|(i, v)| v.x == i as f64));
            if let Some(last) = numbers.last_mut() {
                last.y = -1.0;
                assert!(copy != numbers);
            }
        }
    }
}
