//! Builds without the feature `tracing` have no subscribers.

/// The kinds of subscriber: there is none.
#[derive(Clone, Copy)]
pub(crate) enum Subscriber {}

pub(crate) const WAYS: [(&str, Subscriber); 0] = [];

/// A subscriber that cannot be.
pub(crate) struct Listener(Subscriber);

impl Listener {
    pub(crate) fn new(subscriber: Subscriber) -> Self {
        Self(subscriber)
    }

    pub(crate) fn hears<R>(&self, _body: impl FnOnce() -> R) -> (R, usize) {
        match self.0 {}
    }
}
