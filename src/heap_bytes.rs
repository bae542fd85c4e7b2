//! The bytes that a value owns on the heap, counted from the fields of its type.
//!
//! A process that is killed for its memory says nothing, so users must be able to look up what a
//! scene will hold before it runs, part by part. A counting allocator would tell the sum alone, and
//! needs `unsafe`. Here each type counts its fields. The macro [`counts_heap`] takes a struct
//! apart, so that a field that is neither counted nor left out by name does not compile.
//!
//! Arrays count by their capacity. Not counted are what the allocator adds to each allocation, and
//! the stacks of threads. Shared data ([`Arc`]) counts in full wherever it is counted: exactly one
//! of its holders counts it, and the others leave it out by name.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU8, AtomicUsize};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use glam::{BVec3, DMat3, DMat4, DQuat, DVec2, DVec3, DVec4};

/// A type whose values tell the bytes that they own on the heap.
pub(crate) trait HeapBytes {
    /// The bytes on the heap that are there for this value alone, or that it counts for all who
    /// share them.
    fn heap_bytes(&self) -> usize;
}

/// Counts a struct by its fields. The fields after `without` are left out: they own nothing, or
/// another value counts it.
macro_rules! counts_heap {
    ($type:ty: $($field:ident),* $(; without $($other:ident),+)?) => {
        impl $crate::heap_bytes::HeapBytes for $type {
            fn heap_bytes(&self) -> usize {
                let Self { $($field,)* $($($other: _,)+)? } = self;
                0 $(+ $crate::heap_bytes::HeapBytes::heap_bytes($field))*
            }
        }
    };
}

/// Says of types that their values own nothing on the heap. A type with anything to free does not
/// compile.
macro_rules! owns_no_heap {
    ($($type:ty),+ $(,)?) => { $(
        const _: () = assert!(!std::mem::needs_drop::<$type>());
        impl $crate::heap_bytes::HeapBytes for $type {
            fn heap_bytes(&self) -> usize {
                0
            }
        }
    )+ };
}

pub(crate) use {counts_heap, owns_no_heap};

owns_no_heap!(
    bool,
    u8,
    u16,
    u32,
    u64,
    usize,
    i16,
    i32,
    f32,
    f64,
    AtomicU8,
    AtomicUsize,
    Duration,
    BVec3,
    DMat3,
    DMat4,
    DQuat,
    DVec2,
    DVec3,
    DVec4,
    weft_runtime::comm::Rank,
);

impl<T: Copy> HeapBytes for Range<T> {
    fn heap_bytes(&self) -> usize {
        0
    }
}

/// The bytes that elements own, beside those that they are.
fn owned<'a, T: HeapBytes + 'a>(elements: impl IntoIterator<Item = &'a T>) -> usize {
    if !std::mem::needs_drop::<T>() {
        return 0;
    }
    elements.into_iter().map(HeapBytes::heap_bytes).sum()
}

impl<T: HeapBytes> HeapBytes for Vec<T> {
    fn heap_bytes(&self) -> usize {
        self.capacity() * size_of::<T>() + owned(self)
    }
}

impl<T: HeapBytes, const N: usize> HeapBytes for [T; N] {
    fn heap_bytes(&self) -> usize {
        owned(self)
    }
}

impl<T: HeapBytes> HeapBytes for Option<T> {
    fn heap_bytes(&self) -> usize {
        owned(self)
    }
}

impl<T: HeapBytes> HeapBytes for Box<T> {
    fn heap_bytes(&self) -> usize {
        size_of::<T>() + (**self).heap_bytes()
    }
}

/// The two counters of an [`Arc`].
const COUNTERS: usize = 2 * size_of::<usize>();

impl<T: HeapBytes> HeapBytes for Arc<T> {
    fn heap_bytes(&self) -> usize {
        COUNTERS + size_of::<T>() + (**self).heap_bytes()
    }
}

impl<T: HeapBytes> HeapBytes for Arc<[T]> {
    fn heap_bytes(&self) -> usize {
        COUNTERS + size_of_val(&**self) + owned(&**self)
    }
}

impl<T: HeapBytes> HeapBytes for Mutex<T> {
    fn heap_bytes(&self) -> usize {
        let value = self.lock().unwrap_or_else(PoisonError::into_inner);
        value.heap_bytes()
    }
}

impl<T: HeapBytes> HeapBytes for OnceLock<T> {
    fn heap_bytes(&self) -> usize {
        owned(self.get())
    }
}

/// The elements, without the room that nodes of the tree have left.
impl<K: HeapBytes, V: HeapBytes> HeapBytes for BTreeMap<K, V> {
    fn heap_bytes(&self) -> usize {
        self.len() * size_of::<(K, V)>() + owned(self.keys()) + owned(self.values())
    }
}

impl HeapBytes for String {
    fn heap_bytes(&self) -> usize {
        self.capacity()
    }
}

impl<A: HeapBytes, B: HeapBytes> HeapBytes for (A, B) {
    fn heap_bytes(&self) -> usize {
        self.0.heap_bytes() + self.1.heap_bytes()
    }
}

impl<A: HeapBytes, B: HeapBytes, C: HeapBytes> HeapBytes for (A, B, C) {
    fn heap_bytes(&self) -> usize {
        self.0.heap_bytes() + self.1.heap_bytes() + self.2.heap_bytes()
    }
}

/// Takes the count of a type of another crate, which has a method of this name of its own.
macro_rules! counts_itself {
    ($($type:ty),+ $(,)?) => { $(
        impl HeapBytes for $type {
            fn heap_bytes(&self) -> usize {
                <$type>::heap_bytes(self)
            }
        }
    )+ };
}

counts_itself!(
    weft_balance::assignment::Assignment,
    weft_balance::cost::CostReport,
    weft_balance::forecast::Forecast,
    weft_partition::Aggregates,
    weft_partition::Graph,
    weft_partition::HaloPlan,
    weft_partition::Ownership,
    weft_partition::PatchTree,
    weft_partition::TreeSum,
);

#[cfg(test)]
mod tests {
    use super::*;

    struct Inner {
        numbers: Vec<u64>,
        shared: Arc<Vec<u8>>,
    }

    counts_heap!(Inner: numbers; without shared);

    struct Outer {
        inner: Vec<Inner>,
        boxed: Option<Box<[Vec<u16>; 2]>>,
        shared: Arc<[DVec3]>,
        name: String,
        flag: bool,
    }

    counts_heap!(Outer: inner, boxed, shared, name, flag);

    #[test]
    fn nested_values_count_by_capacity_and_shared_data_once() {
        let shared = Arc::new(vec![0u8; 1000]);
        let mut numbers = Vec::with_capacity(10);
        numbers.push(1);
        let inner = Inner {
            numbers,
            shared: Arc::clone(&shared),
        };
        assert_eq!(inner.heap_bytes(), 80);
        assert_eq!(inner.shared.heap_bytes(), 16 + size_of::<Vec<u8>>() + 1000);
        let outer = Outer {
            inner: vec![inner],
            boxed: Some(Box::new([Vec::with_capacity(3), Vec::new()])),
            shared: Arc::from(vec![DVec3::ZERO; 4]),
            name: String::with_capacity(7),
            flag: true,
        };
        let boxed = 2 * size_of::<Vec<u16>>() + 6;
        let counted = size_of::<Inner>() + 80 + boxed + (16 + 96) + 7;
        assert_eq!(outer.heap_bytes(), counted);
    }
}
