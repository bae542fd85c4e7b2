//! Writes what happens on ranks in virtual time as lines of JSON.
//!
//! Ranks share a task that counts down. The events of tasks come from the crate `tracing`:
//! [`JsonLines`] is a layer that writes a line for each event, and one for each span when it
//! closes. Times are the fields `at_ns` and `end_ns`, here in virtual time. To hear a program of
//! your own, take the layer into the registry of that program:
//!
//! ```ignore
//! use tracing_subscriber::filter::Targets;
//! use tracing_subscriber::prelude::*;
//!
//! // Only what is said of steals and tasks; leave the filter away to hear all.
//! let wanted = ["weft::steal", "weft::task"].map(|target| (target, Level::TRACE));
//! let wanted = Targets::new().with_targets(wanted);
//! tracing_subscriber::registry()
//!     .with(JsonLines::new(BufWriter::new(file)).with_filter(wanted))
//!     .init();
//! ```
//!
//! Sample runs:
//! ```text
//! $ json_lines 2
//! {"at_ns":0,"end_ns":6400,"rank":0,"span":"join","target":"weft::scope"}
//! {"at_ns":0,"event":"request","rank":1,"target":"weft::steal","victim":0}
//! {"at_ns":6900,"event":"split","rank":0,"target":"weft::task","worker":0}
//! {"at_ns":6900,"event":"give","rank":0,"target":"weft::steal","tasks":1,"thief":1}
//! ```

#![allow(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;
use std::fmt;
use std::io::{self, BufWriter, Write};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Id, Metadata, Subscriber, span};
use tracing_subscriber::layer::{Context as Subscribed, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{Layer, registry};
use weft_runtime::comm::Comm;
use weft_runtime::comm::virtual_time::{self, VirtualOptions};
use weft_runtime::{Context, Registry, ScopeError, ScopeOptions, Split, Step, Task, scope};

/// Writes lines of JSON to a writer.
struct JsonLines<W> {
    writer: Mutex<W>,
}

/// The fields of an event or a span.
#[derive(Default)]
struct Fields(Map<String, Value>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // The message of an event is its name again.
        if field.name() != "message" {
            self.put(field, format!("{value:?}").into());
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value.into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value.into());
    }
}

impl Fields {
    fn put(&mut self, field: &Field, value: Value) {
        self.0.insert(field.name().to_owned(), value);
    }
}

impl<W: Write> JsonLines<W> {
    fn new(writer: W) -> Self {
        Self {
            writer: Mutex::new(writer),
        }
    }

    /// Writes a line; `what` is `event` or `span`.
    fn line(&self, what: &str, metadata: &Metadata<'_>, fields: Fields) {
        let mut line = fields.0;
        line.insert(what.to_owned(), metadata.name().into());
        line.insert("target".to_owned(), metadata.target().into());
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        // A subscriber has nobody to tell that this failed.
        drop(writeln!(writer, "{}", Value::Object(line)));
    }
}

impl<W: Write + 'static, S: Subscriber + for<'s> LookupSpan<'s>> Layer<S> for JsonLines<W> {
    fn on_new_span(&self, attributes: &span::Attributes<'_>, id: &Id, all: Subscribed<'_, S>) {
        if let Some(span) = all.span(id) {
            let mut fields = Fields::default();
            attributes.record(&mut fields);
            span.extensions_mut().insert(fields);
        }
    }

    fn on_record(&self, id: &Id, values: &span::Record<'_>, all: Subscribed<'_, S>) {
        if let Some(span) = all.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<Fields>()
        {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, _: Subscribed<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        self.line("event", event.metadata(), fields);
    }

    fn on_close(&self, id: Id, all: Subscribed<'_, S>) {
        if let Some(span) = all.span(&id) {
            let fields = span.extensions_mut().remove::<Fields>();
            self.line("span", span.metadata(), fields.unwrap_or_default());
        }
    }
}

/// Counts down, and gives half of what is left to a rank that asks.
#[derive(Serialize, Deserialize)]
struct Countdown {
    left: u64,
}

impl Task<()> for Countdown {
    const NAME: &'static str = "countdown";
    type Output = u64;

    fn run(&mut self, _: &(), cx: &mut Context<'_, (), u64>) -> Step<u64> {
        let now = self.left.min(u64::from(cx.budget()));
        cx.charge(now);
        cx.emit(now);
        self.left -= now;
        match self.left {
            0 => Step::Done(0),
            _ => Step::More,
        }
    }

    fn split(&mut self, how: Split) -> Option<Self> {
        if self.left < 2 || how.gives_nothing() {
            return None;
        }
        let left = self.left / 2;
        self.left -= left;
        Some(Self { left })
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let ranks = std::env::args().nth(1).ok_or("json_lines RANKS")?.parse()?;
    let options = ScopeOptions::default();
    let work = |comm: &mut dyn Comm| {
        let registry = Registry::new().with::<Countdown>();
        let (sum, _report) = scope(comm, &registry, &(), &options, |s| {
            let group = s.group();
            if s.rank().index() == 0 {
                s.fork(&group, Countdown { left: 10_000 })?;
            }
            let mut sum = 0;
            while let Some(part) = s.join(&group)? {
                sum += part?;
            }
            Ok(sum)
        })?;
        Ok::<u64, ScopeError>(sum)
    };
    let lines = JsonLines::new(BufWriter::new(io::stdout()));
    let subscriber = registry().with(lines);
    // In a program that has one subscriber for all, `.init()` makes it that.
    let outcome = tracing::subscriber::with_default(subscriber, || {
        virtual_time::launch(ranks, &VirtualOptions::default(), work)
    })?;
    let sums = outcome
        .results
        .into_iter()
        .collect::<Result<Vec<u64>, _>>()?;
    assert_eq!(sums[0], 10_000);
    Ok(())
}
