//! Collision detection as tasks: the top-level tests of all ranks, in one thread group [TB06 §4.2].
//!
//! A rank forks the tests whose owner it is, joins contacts until the group is exhausted, and sends each
//! contact to the owners of its vertices. What a rank ends up with, sorted, depends on positions and
//! velocities only.

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use weft_partition::Ownership;
use weft_runtime::comm::{Collectives, Comm, CommError, Rank};
use weft_runtime::trace::Detail;
use weft_runtime::{
    Context, Registry, ScopeError, ScopeOptions, ScopeReport, Split, Step, Task, scope_on, wire,
};
use weft_study::layout::prices_on;
use weft_study::prices::{Counts, Prices, ns};

use super::contacts::{Batch, Contacts};
use super::geometry::{share_geometry, tiles};
use crate::collide::{Contact, Geometry, Made, Snapshot, Target, TestRun};
use crate::team::Team;

/// In traces, bodies have numbers from here on; those below are patches.
const FIRST_BODY: u32 = 1_000_000;
/// Contacts a task gathers before it returns them.
const BATCH: usize = 4096;

/// A test run as a task.
#[derive(Debug, Serialize, Deserialize)]
struct Collide {
    run: TestRun,
    /// How often what it was a part of was split.
    depth: u16,
    /// Whether the run is known to fit this step's geometry; one that has travelled is not.
    #[serde(skip)]
    checked: bool,
    #[serde(skip)]
    found: Vec<Contact>,
}

/// What a rank's tasks read.
pub(super) struct Tested<'a> {
    snapshot: &'a Snapshot<'a>,
    pricing: Option<Pricing<'a>>,
}

/// What tests cost on a modelled machine.
struct Pricing<'a> {
    prices: Prices,
    geometry: &'a Geometry<'a>,
    /// For each patch, whether this rank has made ready what tests read.
    ready: Vec<AtomicBool>,
}

impl Pricing<'_> {
    /// What tests of a target cost, in ns, with what had to be made ready for them.
    fn of(&self, target: Target, made: Made, contacts: usize) -> u64 {
        let mut cost = 0.0;
        let mut ready = |patch: u32| {
            let index = patch as usize;
            if !self.ready[index].swap(true, Ordering::Relaxed) {
                let cloth = self.geometry.cloth;
                cost += self.prices.node * cloth.patches()[index].len() as f64;
            }
        };
        let prices = match target {
            Target::Patch(p) => {
                ready(p);
                &self.prices.cloth
            }
            Target::Patches(p, q) => {
                ready(p);
                ready(q);
                &self.prices.cloth
            }
            Target::PatchBody(p, _) => {
                ready(p);
                &self.prices.body
            }
        };
        let counts = Counts {
            volumes: u64::from(made.tests - made.leaves - made.near),
            leaves: u64::from(made.leaves),
            near: u64::from(made.near),
            contacts: contacts as u64,
        };
        (prices.of(&counts) + cost).round() as u64
    }
}

impl<'a> Task<Tested<'a>> for Collide {
    const NAME: &'static str = "collide";
    type Output = Batch;

    fn run(
        &mut self,
        tested: &Tested<'a>,
        cx: &mut Context<'_, Tested<'a>, Self::Output>,
    ) -> Step<Self::Output> {
        let snapshot = tested.snapshot;
        if !self.checked {
            // The panic becomes this task's error, with its name and rank.
            assert!(
                self.run.is_valid(snapshot),
                "a test of patches or nodes that do not exist"
            );
            self.checked = true;
        }
        let before = self.found.len();
        let (made, done) = (self.run).advance_counting(snapshot, cx.budget(), &mut self.found);
        cx.charge(match &tested.pricing {
            None => u64::from(made.tests),
            Some(pricing) => pricing.of(self.run.target(), made, self.found.len() - before),
        });
        if done {
            return Step::Done(Batch::new(std::mem::take(&mut self.found)));
        }
        if self.found.len() >= BATCH {
            cx.emit(Batch::new(std::mem::take(&mut self.found)));
        }
        Step::More
    }

    fn split(&mut self, how: Split) -> Option<Self> {
        let run = self.run.split(|stack| how.take_from(stack))?;
        Some(Self {
            run,
            depth: self.depth.saturating_add(1),
            checked: self.checked,
            found: Vec::new(),
        })
    }

    fn detail(&self) -> Detail {
        let of = match self.run.target() {
            Target::Patch(p) => [p, p],
            Target::Patches(p, q) => [p, q],
            Target::PatchBody(p, body) => [p, FIRST_BODY.saturating_add(body)],
        };
        Detail {
            depth: self.depth,
            of,
        }
    }
}

/// Finds the contacts of a step. Collective.
pub(super) fn detect(
    comm: &mut dyn Comm,
    (snapshot, geometry): (&Snapshot<'_>, &Geometry<'_>),
    ownership: &Ownership,
    (options, team): (&ScopeOptions, &Team),
    prices: Option<&Prices>,
) -> Result<(Contacts, ScopeReport), ScopeError> {
    let own = ownership.patches(comm.rank().index());
    let first = OnceLock::new();
    let find_first = || {
        first.get_or_init(|| tests_at(snapshot, own.clone()));
    };
    let made_of = (snapshot, geometry);
    share_geometry(comm, made_of, ownership, team, prices, &find_first)?;
    find_first();
    let (runs, targets) = first.into_inner().unwrap_or_default();
    let tested = Tested {
        snapshot,
        pricing: prices.map(|prices| Pricing {
            prices: prices_on(&tiles(geometry), nodes(geometry), prices, comm.size()),
            geometry,
            ready: geometry
                .cloth
                .patches()
                .iter()
                .map(|_| AtomicBool::new(false))
                .collect(),
        }),
    };
    if let Some(prices) = prices {
        comm.compute(ns(prices.target, targets as f64), Duration::ZERO);
    }
    let registry = Registry::new().with::<Collide>();
    let (found, report) = scope_on(team, comm, &registry, &tested, options, |s| {
        let group = s.group();
        for run in runs {
            s.fork(
                &group,
                Collide {
                    run,
                    depth: 0,
                    checked: true,
                    found: Vec::new(),
                },
            )?;
        }
        let mut found = Vec::new();
        while let Some(contacts) = s.join(&group)? {
            found.push(contacts?);
        }
        Ok(found)
    })?;
    let contacts = Contacts::sorted(route(comm, found, ownership)?);
    if let Some(prices) = prices {
        comm.compute(ns(prices.contact, contacts.len() as f64), Duration::ZERO);
    }
    Ok((contacts, report))
}

/// The tests at these patches whose roots meet, and how many there are in all.
fn tests_at(snapshot: &Snapshot<'_>, patches: Range<usize>) -> (Vec<TestRun>, usize) {
    let targets = snapshot.targets_at(patches, Ownership::patch_of_pair);
    let count = targets.len();
    let meeting = |target| TestRun::new(target, snapshot);
    (targets.into_iter().filter_map(meeting).collect(), count)
}

/// Nodes of the trees of all patches.
fn nodes(geometry: &Geometry<'_>) -> u64 {
    let nodes = geometry
        .cloth
        .patches()
        .iter()
        .map(|tree| tree.len() as u64);
    nodes.sum()
}

/// Sends each contact to the owners of its vertices; answers with what arrives.
fn route(
    comm: &mut dyn Comm,
    found: Vec<Batch>,
    ownership: &Ownership,
) -> Result<Vec<Batch>, ScopeError> {
    if comm.size() == 1 {
        return Ok(found);
    }
    let me = comm.rank().index();
    let vertices = ownership.vertices(ownership.ranks() - 1).end;
    let known = |c: &Contact| {
        (1..=4).contains(&c.count) && c.vertices.iter().all(|&v| (v as usize) < vertices)
    };
    let unknown = || "a contact of vertices that do not exist".to_owned();
    let mut boxes: Vec<Vec<Contact>> = vec![Vec::new(); comm.size()];
    for contact in found.into_iter().flat_map(Batch::into_contacts) {
        if !known(&contact) {
            return Err(ScopeError::Body(format!("a task found {}", unknown())));
        }
        let vertices = &contact.vertices[..usize::from(contact.count)];
        for (k, &vertex) in vertices.iter().enumerate() {
            let owner = ownership.rank_of_vertex(vertex as usize);
            let before = &vertices[..k];
            if before
                .iter()
                .all(|&v| ownership.rank_of_vertex(v as usize) != owner)
            {
                boxes[owner].push(contact);
            }
        }
    }
    let mut mine = vec![Batch::new(std::mem::take(&mut boxes[me]))];
    let mut letters = Vec::new();
    for (to, contacts) in (0..).map(Rank).zip(&boxes) {
        if !contacts.is_empty() {
            let bytes = wire::encode(contacts)
                .map_err(|what| ScopeError::Body(format!("contacts cannot be sent: {what}")))?;
            letters.push((to, bytes));
        }
    }
    for (from, bytes) in comm.exchange(letters)? {
        let contacts: Vec<Contact> =
            wire::decode(&bytes).map_err(|what| CommError::Malformed { from, what })?;
        if !contacts.iter().all(known) {
            return Err(CommError::Malformed {
                from,
                what: unknown(),
            }
            .into());
        }
        mine.push(Batch::new(contacts));
    }
    Ok(mine)
}
