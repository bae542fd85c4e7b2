//! Subscribers of three kinds: one that only counts, one that keeps events as the ring does, and a
//! registry with a layer.

use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::{Dispatch, Event, Id, Metadata, dispatcher, span};
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{Layer, registry};

/// Events that are kept before it begins anew.
const ROOM: usize = 1 << 18;

/// The kinds of subscriber.
#[derive(Clone, Copy)]
pub(crate) enum Subscriber {
    Counts,
    Keeps,
    Registry,
}

pub(crate) const WAYS: [(&str, Subscriber); 3] = [
    ("subscriber that counts", Subscriber::Counts),
    ("ring as a subscriber", Subscriber::Keeps),
    ("registry and a layer", Subscriber::Registry),
];

/// A subscriber that can be listened with, again and again.
pub(crate) struct Listener {
    dispatch: Dispatch,
    heard: Arc<AtomicUsize>,
}

impl Listener {
    pub(crate) fn new(subscriber: Subscriber) -> Self {
        let heard = Arc::new(AtomicUsize::new(0));
        let dispatch = match subscriber {
            Subscriber::Counts => Dispatch::new(Counts {
                heard: Arc::clone(&heard),
                spans: AtomicU64::new(0),
            }),
            Subscriber::Keeps => Dispatch::new(Keeps {
                heard: Arc::clone(&heard),
                kept: Mutex::default(),
                spans: AtomicU64::new(0),
            }),
            Subscriber::Registry => Dispatch::new(registry().with(Counted(Arc::clone(&heard)))),
        };
        Self { dispatch, heard }
    }

    /// Runs `body`, heard by this subscriber; what it returns, and the number of events.
    pub(crate) fn hears<R>(&self, body: impl FnOnce() -> R) -> (R, usize) {
        self.heard.store(0, Ordering::Relaxed);
        let outcome = dispatcher::with_default(&self.dispatch, body);
        (outcome, self.heard.load(Ordering::Relaxed))
    }
}

/// Counts events, begins and ends of spans; reads no field.
struct Counts {
    heard: Arc<AtomicUsize>,
    spans: AtomicU64,
}

impl tracing::Subscriber for Counts {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &span::Attributes<'_>) -> Id {
        self.heard.fetch_add(1, Ordering::Relaxed);
        Id::from_u64(1 + self.spans.fetch_add(1, Ordering::Relaxed))
    }
    fn record(&self, _: &Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {
        self.heard.fetch_add(1, Ordering::Relaxed);
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
    fn try_close(&self, _: Id) -> bool {
        self.heard.fetch_add(1, Ordering::Relaxed);
        true
    }
}

/// An event as the ring would have it: its name, unless it is the end of a span, and its numbers.
#[derive(Clone, Copy, Default)]
struct Kept {
    name: &'static str,
    at: u64,
    worker: u64,
    kind: u64,
    depth: u64,
    first: u64,
    second: u64,
}

impl Visit for Kept {
    fn record_debug(&mut self, _: &Field, _: &dyn fmt::Debug) {}
    fn record_u64(&mut self, field: &Field, value: u64) {
        match field.name() {
            "at_ns" | "end_ns" => self.at = value,
            "worker" => self.worker = value,
            "depth" => self.depth = value,
            "first" => self.first = value,
            "second" | "units" | "tasks" => self.second = value,
            _ => {}
        }
    }
    fn record_str(&mut self, _: &Field, value: &str) {
        // A subscriber would look the name up.
        self.kind = value.len() as u64;
    }
}

/// Keeps events and both ends of spans, with their fields, as many as a ring has room for.
struct Keeps {
    heard: Arc<AtomicUsize>,
    kept: Mutex<Vec<Kept>>,
    spans: AtomicU64,
}

impl Keeps {
    fn keep(&self, kept: Kept) {
        let mut all = self.kept.lock().expect("no panic while it was held");
        if all.len() == ROOM {
            assert!(all.iter().any(|kept| !kept.name.is_empty()));
            all.clear();
        }
        all.push(kept);
        self.heard.fetch_add(1, Ordering::Relaxed);
    }
}

impl tracing::Subscriber for Keeps {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("weft::")
    }
    fn new_span(&self, attributes: &span::Attributes<'_>) -> Id {
        let mut kept = Kept {
            name: attributes.metadata().name(),
            ..Kept::default()
        };
        attributes.record(&mut kept);
        self.keep(kept);
        Id::from_u64(1 + self.spans.fetch_add(1, Ordering::Relaxed))
    }
    fn record(&self, _: &Id, values: &span::Record<'_>) {
        let mut kept = Kept::default();
        values.record(&mut kept);
        self.keep(kept);
    }
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        let mut kept = Kept {
            name: event.metadata().name(),
            ..Kept::default()
        };
        event.record(&mut kept);
        self.keep(kept);
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// A layer that counts what the registry hands it.
struct Counted(Arc<AtomicUsize>);

impl<S: tracing::Subscriber + for<'s> LookupSpan<'s>> Layer<S> for Counted {
    fn on_new_span(&self, _: &span::Attributes<'_>, _: &Id, _: Context<'_, S>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
    fn on_event(&self, _: &Event<'_>, _: Context<'_, S>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
    fn on_close(&self, _: Id, _: Context<'_, S>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}
