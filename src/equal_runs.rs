//! A sequence in which many values that follow each other are equal.
//!
//! Vertices are numbered patch by patch, so that much which each vertex has is equal in long runs:
//! the component of cloth that it is in, the velocity with which it starts.

use std::{io, iter};

use bytemuck::{NoUninit, Pod, bytes_of};

use crate::archive::{Archive, ArchiveFault, Array, Loader, Saver};
use crate::heap_bytes::HeapBytes;

/// Values, of which each run of ones with equal bits is held once.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct EqualRuns<T: Clone + 'static> {
    /// The number of the first value of each run.
    firsts: Array<u32>,
    values: Array<T>,
    /// How many values there are.
    count: usize,
}

impl<T: HeapBytes + Clone> HeapBytes for EqualRuns<T> {
    fn heap_bytes(&self) -> usize {
        self.firsts.heap_bytes() + self.values.heap_bytes()
    }
}

impl<T: Pod> Archive for EqualRuns<T> {
    fn save(&self, to: &mut Saver<'_>) -> io::Result<()> {
        to.array(&self.firsts)?;
        to.array(&self.values)?;
        self.count.save(to)
    }

    fn load(from: &mut Loader<'_>) -> Result<Self, ArchiveFault> {
        Ok(Self {
            firsts: from.array()?,
            values: from.array()?,
            count: usize::load(from)?,
        })
    }
}

impl<T: NoUninit> FromIterator<T> for EqualRuns<T> {
    /// Holds each run of these values once.
    ///
    /// # Panics
    /// There are more values than 32 bits can number.
    fn from_iter<I: IntoIterator<Item = T>>(all: I) -> Self {
        let (mut firsts, mut values, mut count) = (Vec::new(), Vec::<T>::new(), 0);
        for value in all {
            if values.last().map(bytes_of) != Some(bytes_of(&value)) {
                firsts.push(u32::try_from(count).expect("vertices have 32 bits"));
                values.push(value);
            }
            count += 1;
        }
        firsts.shrink_to_fit();
        values.shrink_to_fit();
        Self {
            firsts: firsts.into(),
            values: values.into(),
            count,
        }
    }
}

impl<T: Copy> EqualRuns<T> {
    /// The value of this number.
    ///
    /// # Panics
    /// There are no values. A number beyond the last value is that of the last.
    #[inline]
    pub(crate) fn at(&self, number: u32) -> T {
        let run = self.firsts.partition_point(|&first| first <= number);
        self.values[run - 1]
    }

    /// Whether all values are equal, or there are none.
    #[inline]
    pub(crate) fn is_one(&self) -> bool {
        self.values.len() <= 1
    }

    /// All values in their order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = T> + '_ {
        let ends = self.firsts.iter().skip(1).map(|&first| first as usize);
        let runs = self.firsts.iter().zip(ends.chain([self.count]));
        let lengths = runs.map(|(&first, end)| end - first as usize);
        let values = lengths.zip(self.values.iter());
        values.flat_map(|(length, &value)| iter::repeat_n(value, length))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn zeros_keep_their_signs() {
        let held: EqualRuns<f64> = [0.0, -0.0, 0.0].into_iter().collect();
        let signs: Vec<bool> = held.iter().map(f64::is_sign_negative).collect();
        assert_eq!(signs, [false, true, false]);
    }

    proptest! {
        #[test]
        fn values_are_those_that_were_put_in(
            runs in proptest::collection::vec((0_u8..3, 0_usize..5), 0..9),
        ) {
            let all: Vec<u8> = runs.iter().flat_map(|&(value, n)| vec![value; n]).collect();
            let held: EqualRuns<u8> = all.iter().copied().collect();
            prop_assert_eq!(held.iter().collect::<Vec<_>>(), all.clone());
            for (number, value) in (0..).zip(&all) {
                prop_assert_eq!(held.at(number), *value);
            }
            prop_assert_eq!(held.is_one(), all.iter().all(|value| *value == all[0]));
            prop_assert!(held.values.windows(2).all(|two| two[0] != two[1]));
        }
    }
}
