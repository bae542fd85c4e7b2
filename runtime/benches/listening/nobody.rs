//! Builds without the feature `tracing` have no subscribers.

/// There is none.
#[derive(Clone, Copy)]
pub(crate) enum Subscriber {}

pub(crate) const WAYS: [(&str, Subscriber); 0] = [];

pub(crate) fn listen(subscriber: Subscriber, _round: impl FnOnce() -> usize) -> usize {
    match subscriber {}
}
