//! A `tracing` subscriber that takes down what it hears.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::{Dispatch, Event, Id, Metadata, Subscriber, span};

/// The fields of an event or span by name.
pub(crate) type Fields = BTreeMap<&'static str, String>;

/// Something that was heard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) target: &'static str,
    /// The name of the event, or of the span with `begin` or `end` before it.
    pub(crate) name: String,
    /// The fields; those of the end of a span are all that it has.
    pub(crate) fields: Fields,
    /// The name of the span that it lies in.
    pub(crate) within: Option<&'static str>,
}

impl Told {
    /// A field that is a number.
    pub(crate) fn number(&self, field: &str) -> u64 {
        let text = self.fields.get(field);
        let text = text.unwrap_or_else(|| panic!("no {field}: {self:?}"));
        text.parse().unwrap()
    }
}

/// A span that is open.
struct Open {
    metadata: &'static Metadata<'static>,
    fields: Fields,
    within: Option<&'static str>,
    handles: u32,
}

#[derive(Default)]
struct Heard {
    told: Vec<Told>,
    open: HashMap<u64, Open>,
    /// Spans that threads have entered.
    entered: Vec<(std::thread::ThreadId, u64)>,
    spans: u64,
}

/// Takes down what it hears of targets that begin with `wanted`.
#[derive(Clone, Default)]
pub(crate) struct Ear {
    wanted: &'static str,
    heard: Arc<Mutex<Heard>>,
}

impl Ear {
    pub(crate) fn of(wanted: &'static str) -> Self {
        Self {
            wanted,
            ..Self::default()
        }
    }

    /// Runs `body` with this as the subscriber, and returns what was heard.
    pub(crate) fn listen<R>(&self, body: impl FnOnce() -> R) -> (R, Vec<Told>) {
        // Where a process has a single subscriber, `tracing` asks that of the thread which comes by
        // an event first whether anybody wants it, for all threads. Threads of other tests have
        // none.
        let _second = Dispatch::new(self.clone());
        let outcome = tracing::subscriber::with_default(self.clone(), body);
        let mut heard = self.heard.lock().unwrap();
        assert!(heard.entered.is_empty(), "spans that were never left");
        assert!(heard.open.is_empty(), "spans that were never closed");
        (outcome, std::mem::take(&mut heard.told))
    }
}

impl Heard {
    /// The name of a span's parent: the one that was given, or the one that the thread has entered.
    fn within(&self, given: Option<&Id>, contextual: bool) -> Option<&'static str> {
        let here = std::thread::current().id();
        let mut entered = self.entered.iter().rev();
        let parent = match given {
            Some(id) => id.into_u64(),
            None if contextual => entered.find(|(thread, _)| *thread == here)?.1,
            None => return None,
        };
        self.open.get(&parent).map(|open| open.metadata.name())
    }
}

struct Reader<'a>(&'a mut Fields);

impl Visit for Reader<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }
}

impl Subscriber for Ear {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with(self.wanted)
    }

    fn new_span(&self, attributes: &span::Attributes<'_>) -> Id {
        let mut heard = self.heard.lock().unwrap();
        let mut fields = Fields::new();
        attributes.record(&mut Reader(&mut fields));
        let metadata = attributes.metadata();
        let within = heard.within(attributes.parent(), attributes.is_contextual());
        heard.told.push(Told {
            target: metadata.target(),
            name: format!("begin {}", metadata.name()),
            fields: fields.clone(),
            within,
        });
        heard.spans += 1;
        let id = heard.spans;
        let open = Open {
            metadata,
            fields,
            within,
            handles: 1,
        };
        heard.open.insert(id, open);
        Id::from_u64(id)
    }

    fn record(&self, span: &Id, values: &span::Record<'_>) {
        let mut heard = self.heard.lock().unwrap();
        let open = heard.open.get_mut(&span.into_u64()).unwrap();
        values.record(&mut Reader(&mut open.fields));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut heard = self.heard.lock().unwrap();
        let mut fields = Fields::new();
        event.record(&mut Reader(&mut fields));
        let metadata = event.metadata();
        let message = fields.remove("message");
        assert_eq!(message.as_deref(), Some(metadata.name()));
        let within = heard.within(event.parent(), event.is_contextual());
        heard.told.push(Told {
            target: metadata.target(),
            name: metadata.name().to_owned(),
            fields,
            within,
        });
    }

    fn enter(&self, span: &Id) {
        let mut heard = self.heard.lock().unwrap();
        let here = std::thread::current().id();
        heard.entered.push((here, span.into_u64()));
    }

    fn exit(&self, span: &Id) {
        let mut heard = self.heard.lock().unwrap();
        let here = (std::thread::current().id(), span.into_u64());
        let last = heard.entered.iter().rposition(|e| e.0 == here.0);
        let last = last.map(|at| heard.entered.remove(at));
        assert_eq!(last, Some(here), "the last span entered is left first");
    }

    fn clone_span(&self, id: &Id) -> Id {
        let mut heard = self.heard.lock().unwrap();
        heard.open.get_mut(&id.into_u64()).unwrap().handles += 1;
        id.clone()
    }

    fn try_close(&self, id: Id) -> bool {
        let mut heard = self.heard.lock().unwrap();
        let open = heard.open.get_mut(&id.into_u64()).unwrap();
        open.handles -= 1;
        if open.handles > 0 {
            return false;
        }
        let open = heard.open.remove(&id.into_u64()).unwrap();
        heard.told.push(Told {
            target: open.metadata.target(),
            name: format!("end {}", open.metadata.name()),
            fields: open.fields,
            within: open.within,
        });
        true
    }
}
