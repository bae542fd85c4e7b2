//! Recorded tests as a task of the real runtime: it walks a tree, charges what that cost, and can
//! be split.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};
use weft_balance::bound_owner::BoundOwners;
use weft_balance::cost::{Against, PartCost, TestCost};
use weft_balance::part::Part;
use weft_balance::preparation::PreparedPieces;
use weft_balance::prices::{Counts, Prices};
use weft_balance::work::work;
use weft_runtime::comm::Rank;
use weft_runtime::trace::Detail;
use weft_runtime::{Context, Split, Task};

use crate::layout::Layout;
use crate::record::{Header, Step};
use crate::shape::Kind;

/// The first number of a body in traces; numbers below are patches.
const FIRST_BODY: u32 = 1_000_000;

/// Tests are taken from the stack this many at once, and what they lead to is put there after: as a
/// run of the real ones does.
const TAKEN: u64 = 32;
/// The most tests that one leads to.
const CHILDREN: u64 = 4;

/// The data that a rank's tasks read.
#[derive(Debug)]
pub(super) struct Env<'a> {
    pub(super) header: &'a Header,
    pub(super) step: &'a Step,
    pub(super) prices: &'a Prices,
    /// The ranks that make the volume of each patch.
    pub(super) bound_owners: &'a BoundOwners,
    /// Whether there is no other rank.
    pub(super) alone: bool,
    /// The pieces for tests that this rank has made ready.
    pub(super) ready: PreparedPieces,
    /// The layout: the owners of patches, and this rank.
    pub(super) layout: &'a Layout,
    pub(super) me: usize,
    /// Tests, contacts, and ns that this rank's tasks charged.
    pub(super) tally: [AtomicU64; 3],
    /// Contacts that its tasks have found of its own vertices, and that it has not put in order.
    pub(super) own: AtomicU64,
    /// The costs of this rank's tasks, as a run reports them.
    pub(super) costs: Mutex<Vec<PartCost>>,
}

/// Tests of a top-level task, or a part of them. On the wire it is as long as a real one.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Tests {
    task: u32,
    of: [u32; 2],
    /// Untried tests, oldest first, each beside another number: a real one has two.
    stack: Vec<(u32, u32)>,
    /// The pieces, as a real task has them.
    pieces: [u64; 2],
    depth: u16,
    /// The part that this rank does of a task that several ranks have forked.
    part: Option<Part>,
    /// Whether that was taken out of the stack.
    dealt: bool,
    #[serde(skip)]
    found: u64,
    /// Its cost, in the unit of forecasts.
    #[serde(skip)]
    work: u64,
}

impl Tests {
    pub(super) fn new(number: u32, part: Part, step: &Step) -> Self {
        let roots = step.tasks[number as usize].tree.roots();
        Self {
            task: number,
            of: of(step, number),
            stack: roots.into_iter().map(|root| (root, 0)).collect(),
            pieces: step.tasks[number as usize].met,
            depth: 0,
            part: (!part.is_whole()).then_some(part),
            dealt: part.is_whole(),
            found: 0,
            work: 0,
        }
    }
}

impl<'a> Task<Env<'a>> for Tests {
    const NAME: &'static str = "tests";
    type Output = ();

    fn run(&mut self, env: &Env<'a>, cx: &mut Context<'_, Env<'a>, ()>) -> weft_runtime::Step<()> {
        let task = &env.step.tasks[self.task as usize];
        let made_ready: f64 = (task.reads(env.header))
            .map(|(patch, met)| {
                let (of, sees) = (
                    &env.header.patches[patch].sizes,
                    env.bound_owners.owns(env.me, patch),
                );
                // A rank that tests all makes trees whole.
                let pieces = if env.alone { of.whole() } else { met };
                of.cost(env.ready.open(patch, pieces), sees, env.prices)
            })
            .sum();
        let prices = match task.against {
            Against::Body(_) => &env.prices.body,
            Against::Itself | Against::Patch(_) => &env.prices.cloth,
        };
        let (mut counts, mut dealt, mut first) = (Counts::default(), Counts::default(), false);
        let budget = u64::from(cx.budget());
        let stack = &mut self.stack;
        if let Some(part) = self.part.filter(|_| !self.dealt) {
            self.dealt = true;
            first = part.is_first();
            part.deal(stack, |(at, _), out| {
                let visit = task.tree.visit(at);
                let leads_on = !matches!(visit.kind, Kind::Leaf | Kind::Near);
                if leads_on {
                    task.tree
                        .expand(at, &mut |child| out.push((child, 0)))
                        .add_to(&mut dealt);
                }
                leads_on
            });
        }
        let mut taken = Vec::with_capacity(TAKEN as usize);
        while counts.tests() < budget && !stack.is_empty() {
            let wanted = (budget - counts.tests()).div_ceil(CHILDREN).min(TAKEN);
            let from = stack.len().saturating_sub(wanted as usize);
            taken.extend(stack.drain(from..).rev());
            for (at, _) in taken.drain(..) {
                task.tree
                    .expand(at, &mut |child| stack.push((child, 0)))
                    .add_to(&mut counts);
            }
        }
        let cost = (prices.of(&counts) + prices.of(&dealt) + made_ready).round() as u64;
        cx.charge(cost);
        // Tests that several ranks make count once.
        let tests = counts.tests() + if first { dealt.tests() } else { 0 };
        for (tally, value) in env.tally.iter().zip([tests, counts.contacts, cost]) {
            tally.fetch_add(value, Ordering::Relaxed);
        }
        self.found += counts.contacts;
        if first {
            counts.add_all(&dealt);
        }
        self.work += work(task.against, &counts);
        if !self.stack.is_empty() {
            return weft_runtime::Step::More;
        }
        (env.layout).for_owners(task, self.found, |owner, contacts| {
            if owner == env.me {
                env.own.fetch_add(contacts, Ordering::Relaxed);
            } else {
                let bytes = contacts * u64::from(env.header.contact_bytes);
                cx.post(Rank(owner as u32), vec![0; bytes as usize]);
            }
        });
        let test = TestCost {
            patch: task.patch,
            against: task.against,
            work: u32::try_from(self.work).unwrap_or(u32::MAX),
        };
        if let Ok(mut all) = env.costs.lock() {
            let part = self.part;
            all.push(PartCost { test, part });
        }
        weft_runtime::Step::Done(())
    }

    fn split(&mut self, how: Split) -> Option<Self> {
        if !self.dealt {
            // Its stack is that of all parts still.
            return None;
        }
        let stack = how.take_from(&mut self.stack)?;
        Some(Self {
            task: self.task,
            of: self.of,
            stack,
            pieces: self.pieces,
            depth: self.depth.saturating_add(1),
            part: self.part,
            dealt: true,
            found: 0,
            work: 0,
        })
    }

    fn detail(&self) -> Detail {
        Detail {
            depth: self.depth,
            of: self.of,
        }
    }
}

/// The subject of a task, in traces.
fn of(step: &Step, number: u32) -> [u32; 2] {
    let task = &step.tasks[number as usize];
    match task.against {
        Against::Itself => [task.patch, task.patch],
        Against::Patch(other) => [task.patch, other],
        Against::Body(body) => [task.patch, FIRST_BODY.saturating_add(body)],
    }
}
