//! Data that only the set-up of ranks reads.
//!
//! A process with a large cloth has no room for what nobody reads again: elements that ranks have
//! copied into the order of their rows, and graphs that they have made matrices of. All ranks of a
//! process share this data, and only the code that starts them knows when the last one is set up.
//! So it can be given back through a shared reference.

use std::sync::{Arc, Mutex, PoisonError};

use crate::heap_bytes::HeapBytes;

/// A value until it is released.
#[derive(Debug)]
pub(crate) struct SetUpOnly<T>(Mutex<Option<Arc<T>>>);

impl<T> SetUpOnly<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Mutex::new(Some(Arc::new(value))))
    }

    /// The value, or `None` if it has been released.
    pub(crate) fn get(&self) -> Option<Arc<T>> {
        let value = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        value.clone()
    }

    /// Frees the value as soon as nobody holds it who has asked for it before.
    pub(crate) fn release(&self) {
        let mut value = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *value = None;
    }
}

impl<T: Clone> SetUpOnly<T> {
    /// The value, to be changed; `None` if it has been released.
    pub(crate) fn get_mut(&mut self) -> Option<&mut T> {
        let value = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        value.as_mut().map(Arc::make_mut)
    }
}

impl<T> Clone for SetUpOnly<T> {
    fn clone(&self) -> Self {
        Self(Mutex::new(self.get()))
    }
}

impl<T: Default> Default for SetUpOnly<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T: HeapBytes> HeapBytes for SetUpOnly<T> {
    fn heap_bytes(&self) -> usize {
        self.0.heap_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_stays_for_those_who_have_it_and_its_bytes_are_gone() {
        let mut bending = SetUpOnly::new(vec![1_u64; 1000]);
        bending.get_mut().unwrap().push(2);
        let held = bending.get().unwrap();
        assert!(bending.heap_bytes() > 8000);
        bending.release();
        assert_eq!((held.len(), bending.heap_bytes()), (1001, 0));
        assert!(bending.get().is_none() && bending.get_mut().is_none());
        assert!(bending.clone().get().is_none());
    }
}
