//! Recorded tests as a task of the real runtime: it walks a tree, charges what that cost, and can be split.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde::{Deserialize, Serialize};
use weft_runtime::trace::Detail;
use weft_runtime::{Context, Split, Task};

use crate::prices::{Counts, Prices};
use crate::record::{Against, Header, Step};

/// In traces, bodies have numbers from here on; those below are patches.
const FIRST_BODY: u32 = 1_000_000;
/// Contacts a task gathers before it returns them.
const BATCH: u64 = 4096;

/// Tests are taken from the stack so many at once, and what they lead to is put there after: as a run of the real ones does.
const TAKEN: u64 = 32;
/// The most tests that one leads to.
const CHILDREN: u64 = 4;

/// What a rank's tasks read.
#[derive(Debug)]
pub(super) struct Env<'a> {
    pub(super) header: &'a Header,
    pub(super) step: &'a Step,
    pub(super) prices: &'a Prices,
    /// For each patch, whether this rank has made ready what its tests read.
    pub(super) ready: Vec<AtomicBool>,
    /// Tests, contacts, and ns that this rank's tasks charged.
    pub(super) tally: [AtomicU64; 3],
}

/// Tests of a top-level task, or a part of them. On the wire it is as long as a real one.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Tests {
    task: u32,
    of: [u32; 2],
    /// Untried tests, oldest first, each beside another number: a real one has two.
    stack: Vec<(u32, u32)>,
    depth: u16,
    #[serde(skip)]
    found: u64,
}

/// Contacts, as many bytes as real ones.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Found(Vec<u64>);

impl Tests {
    pub(super) fn new(number: u32, step: &Step) -> Self {
        let roots = step.tasks[number as usize].tree.roots();
        Self {
            task: number,
            of: of(step, number),
            stack: roots.into_iter().map(|root| (root, 0)).collect(),
            depth: 0,
            found: 0,
        }
    }

    /// The contacts found so far.
    fn results(&mut self, header: &Header) -> Found {
        let bytes = std::mem::take(&mut self.found) * u64::from(header.contact_bytes);
        Found(vec![0; (bytes / 8) as usize])
    }
}

impl<'a> Task<Env<'a>> for Tests {
    const NAME: &'static str = "tests";
    type Output = Found;

    fn run(
        &mut self,
        env: &Env<'a>,
        cx: &mut Context<'_, Env<'a>, Found>,
    ) -> weft_runtime::Step<Found> {
        let task = &env.step.tasks[self.task as usize];
        let mut made_ready = 0.0;
        let mut ready = |patch: u32| {
            let index = patch as usize;
            if !env.ready[index].swap(true, Ordering::Relaxed) {
                made_ready += env.prices.node * f64::from(env.header.patches[index].nodes);
            }
        };
        ready(task.patch);
        let prices = match task.against {
            Against::Body(_) => &env.prices.body,
            Against::Itself => &env.prices.cloth,
            Against::Patch(other) => {
                ready(other);
                &env.prices.cloth
            }
        };
        let mut counts = Counts::default();
        let budget = u64::from(cx.budget());
        let stack = &mut self.stack;
        let mut taken = Vec::with_capacity(TAKEN as usize);
        while counts.tests() < budget && !stack.is_empty() {
            let wanted = (budget - counts.tests()).div_ceil(CHILDREN).min(TAKEN);
            let from = stack.len().saturating_sub(wanted as usize);
            taken.extend(stack.drain(from..).rev());
            for (at, _) in taken.drain(..) {
                counts.add(task.tree.expand(at, &mut |child| stack.push((child, 0))));
            }
        }
        let cost = (prices.of(&counts) + made_ready).round() as u64;
        cx.charge(cost);
        for (tally, value) in env
            .tally
            .iter()
            .zip([counts.tests(), counts.contacts, cost])
        {
            tally.fetch_add(value, Ordering::Relaxed);
        }
        self.found += counts.contacts;
        if self.stack.is_empty() {
            return weft_runtime::Step::Done(self.results(env.header));
        }
        if self.found >= BATCH {
            let results = self.results(env.header);
            cx.emit(results);
        }
        weft_runtime::Step::More
    }

    fn split(&mut self, how: Split) -> Option<Self> {
        let stack = how.take_from(&mut self.stack)?;
        Some(Self {
            task: self.task,
            of: self.of,
            stack,
            depth: self.depth.saturating_add(1),
            found: 0,
        })
    }

    fn detail(&self) -> Detail {
        Detail {
            depth: self.depth,
            of: self.of,
        }
    }
}

/// What a task is about, in traces.
fn of(step: &Step, number: u32) -> [u32; 2] {
    let task = &step.tasks[number as usize];
    match task.against {
        Against::Itself => [task.patch, task.patch],
        Against::Patch(other) => [task.patch, other],
        Against::Body(body) => [task.patch, FIRST_BODY.saturating_add(body)],
    }
}
