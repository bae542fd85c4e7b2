//! Values that are made when they are first asked for, some neighbours at a time.
//!
//! In a step tests ask for the features of those parts of a body that cloth is near. Each value is
//! a function of its number and of what the body is in the step, so it is the same for each thread
//! that asks for it first.

use std::sync::OnceLock;

use crate::heap_bytes::HeapBytes;

/// How many values are made together.
const TOGETHER: usize = 64;

/// A value for each number below a count.
#[derive(Clone, Debug)]
pub(super) struct WhenAsked<T> {
    parts: Vec<OnceLock<Vec<T>>>,
    count: usize,
}

impl<T: HeapBytes> HeapBytes for WhenAsked<T> {
    fn heap_bytes(&self) -> usize {
        let Self { parts, count: _ } = self;
        parts.heap_bytes()
    }
}

impl<T> WhenAsked<T> {
    pub(super) fn new(count: usize) -> Self {
        let mut parts = Vec::new();
        parts.resize_with(count.div_ceil(TOGETHER), OnceLock::new);
        Self { parts, count }
    }

    /// Another that has the same count, and no values yet.
    pub(super) fn anew(&self) -> Self {
        Self::new(self.count)
    }

    /// The value of a number, by a function that makes it.
    #[inline]
    pub(super) fn get(&self, number: u32, make: impl Fn(u32) -> T) -> &T {
        let (part, place) = (number as usize / TOGETHER, number as usize % TOGETHER);
        let made = self.parts[part].get_or_init(|| {
            let first = part * TOGETHER;
            let all = first..(first + TOGETHER).min(self.count);
            all.map(|number| make(number as u32)).collect()
        });
        &made[place]
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn values_are_made_once_with_their_neighbours() {
        let (values, made) = (WhenAsked::new(150), Cell::new(0));
        let square = |number: u32| {
            made.set(made.get() + 1);
            number * number
        };
        for number in [149, 3, 63, 4, 140] {
            assert_eq!(*values.get(number, square), number * number);
        }
        assert_eq!(made.get(), 22 + 64);
        assert_eq!(*values.anew().get(70, square), 4900);
    }
}
