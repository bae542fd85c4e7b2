//! Shared bounds: the best value of a search so far, which ranks tell each other while tasks run.
//!
//! A branch-and-bound search skips what cannot become better than the best answer known, so news
//! of a better one should spread before the task that found it ends. A [`Bound`] is the key under
//! which a value is shared. The registry lists the bounds of a scope, so all ranks agree on them.
//! Each rank has one number for each bound, which its workers share. A task that improves a bound
//! changes that number at once; its rank tells the others when the slice ends, and they hear it
//! between two slices of theirs (see `scheduler::bounds`).
//!
//! Values are merged by minimum or maximum, so neither order nor repetition of the news matters.
//! A bound is news and no result: a rank may hear it late, and an answer that nobody may miss is
//! emitted as a result. It takes no part in the detection of the end, and lives as long as its
//! scope.
//!
//! Inside the runtime a value is a *code*, an integer of 64 bits. Codes of better values are
//! smaller, for minima and maxima alike.

use std::fmt;
use std::marker::PhantomData;

use crate::sync::{AtomicU64, Ordering};

/// The most bounds of a registry: a slice notes those that it has improved in the bits of a number.
pub(crate) const MOST: usize = u64::BITS as usize;
/// The code of a bound of which nothing is known.
pub(crate) const UNKNOWN: u64 = u64::MAX;

/// A value that a bound can have.
pub trait BoundValue: Copy + private::Ordered {}

impl<V: Copy + private::Ordered> BoundValue for V {}

mod private {
    /// The kind of a number, for the comparison of bounds.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Kind {
        Unsigned32,
        Unsigned64,
        Signed64,
        Float64,
    }

    /// A number with a code of 64 bits that keeps the order.
    pub trait Ordered: Sized {
        const KIND: Kind;
        /// Its code; `None` if it has no place in the order.
        fn code(self) -> Option<u64>;
        fn of_code(code: u64) -> Self;
    }

    impl Ordered for u32 {
        const KIND: Kind = Kind::Unsigned32;
        fn code(self) -> Option<u64> {
            // No number has the least code, or 0 would be unknown as a greatest value.
            Some(u64::from(self) + 1)
        }
        fn of_code(code: u64) -> Self {
            // A code that a rank of another program has sent is any number.
            Self::try_from(code.saturating_sub(1)).unwrap_or(Self::MAX)
        }
    }

    impl Ordered for u64 {
        const KIND: Kind = Kind::Unsigned64;
        fn code(self) -> Option<u64> {
            Some(self)
        }
        fn of_code(code: u64) -> Self {
            code
        }
    }

    const SIGN: u64 = 1 << 63;

    impl Ordered for i64 {
        const KIND: Kind = Kind::Signed64;
        fn code(self) -> Option<u64> {
            Some(self as u64 ^ SIGN)
        }
        fn of_code(code: u64) -> Self {
            (code ^ SIGN) as Self
        }
    }

    impl Ordered for f64 {
        const KIND: Kind = Kind::Float64;
        fn code(self) -> Option<u64> {
            let bits = self.to_bits();
            // Bits of positive numbers are in order, those of negative ones in the opposite order.
            let code = if bits & SIGN == 0 { bits | SIGN } else { !bits };
            (!self.is_nan()).then_some(code)
        }
        fn of_code(code: u64) -> Self {
            Self::from_bits(if code & SIGN == 0 {
                !code
            } else {
                code & !SIGN
            })
        }
    }
}

use private::Kind;

/// The key of a shared bound: its name, and which of two values is the better one. `V` is `u32`,
/// `u64`, `i64` or `f64`.
///
/// The worst `u64` or `i64` of all, such as 0 as the greatest `u64`, says no more than that nothing
/// is known. Every `u32` and every `f64` that is a number differs from that.
///
/// ```
/// use weft_runtime::{Bound, Registry};
///
/// const SHORTEST: Bound<u32> = Bound::least("shortest tour");
/// let registry = Registry::<()>::new().with_bound(SHORTEST);
/// # let _ = registry;
/// ```
pub struct Bound<V> {
    name: &'static str,
    greatest: bool,
    value: PhantomData<fn(V) -> V>,
}

impl<V> Clone for Bound<V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<V> Copy for Bound<V> {}

impl<V> fmt::Debug for Bound<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&for_people(self.name, self.greatest))
    }
}

fn for_people(name: &str, greatest: bool) -> String {
    let extreme = if greatest { "greatest" } else { "least" };
    format!("{extreme} `{name}`")
}

impl<V: BoundValue> Bound<V> {
    /// A bound whose better value is the smaller one.
    #[must_use]
    pub const fn least(name: &'static str) -> Self {
        Self {
            name,
            greatest: false,
            value: PhantomData,
        }
    }

    /// A bound whose better value is the greater one.
    #[must_use]
    pub const fn greatest(name: &'static str) -> Self {
        Self {
            name,
            greatest: true,
            value: PhantomData,
        }
    }

    /// Its name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) fn key(&self) -> Key {
        Key {
            name: self.name,
            greatest: self.greatest,
            kind: V::KIND,
        }
    }

    /// The code of a value; [`UNKNOWN`] for one that is not a number.
    pub(crate) fn code(&self, value: V) -> u64 {
        let code = value.code();
        code.map_or(UNKNOWN, |code| if self.greatest { !code } else { code })
    }

    /// The value of a code, unless that says that nothing is known.
    pub(crate) fn value(&self, code: u64) -> Option<V> {
        let of = if self.greatest { !code } else { code };
        (code != UNKNOWN).then(|| V::of_code(of))
    }
}

/// A bound as a registry knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    greatest: bool,
    kind: Kind,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&for_people(self.name, self.greatest))
    }
}

/// The best values that a rank knows, shared by its workers.
#[derive(Debug)]
pub(crate) struct Bounds {
    best: Vec<(Key, AtomicU64)>,
}

impl Bounds {
    /// Makes room for these bounds, of which nothing is known yet.
    pub(crate) fn new(keys: &[Key]) -> Self {
        let best = keys.iter().map(|&key| (key, AtomicU64::new(UNKNOWN)));
        Self {
            best: best.collect(),
        }
    }

    /// The number of a bound; `None` if it was not registered.
    pub(crate) fn place(&self, key: Key) -> Option<u16> {
        let at = self.best.iter().position(|(known, _)| *known == key);
        at.map(|at| at as u16)
    }

    /// The code of the best value known.
    pub(crate) fn get(&self, place: u16) -> u64 {
        let best = self.best.get(usize::from(place));
        best.map_or(UNKNOWN, |(_, code)| code.load(Ordering::Relaxed))
    }

    /// Takes a value in; returns whether it is better than what was known.
    pub(crate) fn merge(&self, place: u16, code: u64) -> bool {
        let best = self.best.get(usize::from(place));
        best.is_some_and(|(_, best)| code < best.fetch_min(code, Ordering::Relaxed))
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    fn is_ordered<V: BoundValue + PartialEq + PartialOrd + fmt::Debug>(rising: &[V]) {
        let (least, greatest) = (Bound::<V>::least("a"), Bound::<V>::greatest("a"));
        for pair in rising.windows(2) {
            assert!(least.code(pair[0]) < least.code(pair[1]), "{pair:?}");
            assert!(greatest.code(pair[0]) > greatest.code(pair[1]), "{pair:?}");
        }
        for &value in rising {
            for bound in [least, greatest] {
                let back = bound.value(bound.code(value));
                // The worst value of all says no more than nothing.
                assert!(back == Some(value) || bound.code(value) == UNKNOWN);
            }
        }
    }

    #[test]
    fn codes_keep_the_order_of_values() {
        is_ordered(&[0_u32, 1, 7, u32::MAX]);
        is_ordered(&[0_u64, 1, u64::MAX - 1, u64::MAX]);
        is_ordered(&[i64::MIN, -1, 0, 1, i64::MAX]);
        is_ordered(&[
            f64::NEG_INFINITY,
            -1e300,
            -1.0,
            -f64::MIN_POSITIVE,
            0.0,
            1.5,
            f64::INFINITY,
        ]);
    }

    #[test]
    fn the_worst_values_of_32_bits_and_of_floating_point_are_known() {
        for value in [0, u32::MAX] {
            for bound in [Bound::least("a"), Bound::greatest("a")] {
                assert_eq!(bound.value(bound.code(value)), Some(value));
            }
        }
        for value in [f64::NEG_INFINITY, f64::INFINITY] {
            for bound in [Bound::least("a"), Bound::greatest("a")] {
                assert_eq!(bound.value(bound.code(value)), Some(value));
            }
        }
    }

    #[test]
    fn a_bound_that_is_not_a_number_is_ignored() {
        for bound in [Bound::<f64>::least("a"), Bound::greatest("a")] {
            for nan in [f64::NAN, -f64::NAN] {
                assert_eq!(bound.code(nan), UNKNOWN);
                assert_eq!(bound.value(bound.code(nan)), None);
            }
        }
    }

    #[test]
    fn merged_values_are_the_best_in_any_order() {
        let (least, greatest) = (Bound::<i64>::least("l"), Bound::<i64>::greatest("g"));
        let bounds = Bounds::new(&[least.key(), greatest.key()]);
        let places = [least.key(), greatest.key()].map(|key| bounds.place(key).unwrap());
        let better: Vec<[bool; 2]> = [3, -5, 8, -5]
            .map(|value| {
                [
                    bounds.merge(places[0], least.code(value)),
                    bounds.merge(places[1], greatest.code(value)),
                ]
            })
            .to_vec();
        assert_eq!(
            better,
            [[true, true], [true, false], [false, true], [false, false]]
        );
        assert_eq!(least.value(bounds.get(places[0])), Some(-5));
        assert_eq!(greatest.value(bounds.get(places[1])), Some(8));
    }

    #[test]
    fn a_bound_of_another_kind_is_another_bound() {
        let bounds = Bounds::new(&[Bound::<u32>::least("a").key()]);
        assert_eq!(bounds.place(Bound::<u32>::least("a").key()), Some(0));
        assert_eq!(bounds.place(Bound::<u32>::greatest("a").key()), None);
        assert_eq!(bounds.place(Bound::<f64>::least("a").key()), None);
        assert_eq!(bounds.place(Bound::<u32>::least("b").key()), None);
    }
}
