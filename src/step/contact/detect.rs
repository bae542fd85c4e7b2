//! Collision detection as tasks: the top-level tests of all ranks, in one thread group [TB06 §4.2].
//!
//! A rank forks the tests that it owns, or those that it was [assigned](super::balancer), and joins
//! until the group is exhausted. Contacts go from where they are found straight to the owners of
//! their vertices ([`super::contact_post`]). The sorted contacts of a rank depend on positions and
//! velocities only.

use std::ops::Range;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use weft_balance::assignment::Assignment;
use weft_balance::bound_owner::BoundOwners;
use weft_balance::cost::{Against, PartCost, TestCost};
use weft_balance::cost_model::{ClothSizes, CostModel, TestMeter, TestsMade, Work};
use weft_balance::part::Part;
use weft_balance::preparation::{PatchSizes, prepares_early};
use weft_balance::prices::{Counts, worth_taking_in};
use weft_balance::work::work;
use weft_partition::Ownership;
use weft_runtime::comm::{Comm, CommError, Rank};
use weft_runtime::trace::{Detail, is_listened};
use weft_runtime::{
    BlockName, Context, Registry, ScopeError, ScopeOptions, ScopeReport, Split, Step, Task,
    scope_on, wire,
};

use super::balancer::{Balancer, News};
use super::contact_post::Post;
use super::contacts::{Batch, Contacts};
use super::geometry::{Sharing, share_geometry, tiles};
use super::lending::{self, Lending, Read};
use crate::collide::{
    Begun, Candidate, Findings, Geometry, Made, Snapshot, Target, TestRun, subtrees,
};
use crate::team::Team;

/// The number of the first body in traces; lower numbers are patches.
const FIRST_BODY: u32 = 1_000_000;

/// The number of test runs in a task, where they are bundled.
const BUNDLE: usize = 8;

/// A task of one test run, or of several one after the other.
#[derive(Debug, Serialize, Deserialize)]
struct Collide {
    run: TestRun,
    /// The runs that follow, the last one first. A rank that is alone bundles runs; its tasks do
    /// not travel.
    #[serde(skip)]
    next: Vec<TestRun>,
    /// The number of splits that led to this task.
    depth: u16,
    /// The part of the top-level test that the rank makes, if several ranks do.
    part: Option<Part>,
    /// The patches whose state it reads, where ranks do not know all.
    reads: Vec<Read>,
    /// Whether it has never left the rank that knows what it reads.
    #[serde(skip)]
    at_home: bool,
    /// Whether the stack has been reduced to that part.
    dealt: bool,
    /// Whether the run is known to fit this step's geometry; one that has travelled is not.
    #[serde(skip)]
    checked: bool,
    #[serde(skip)]
    found: Findings,
    /// The cost of its tests so far.
    #[serde(skip)]
    work: u64,
}

impl Collide {
    fn new((run, part): (TestRun, Part)) -> Self {
        Self {
            run,
            next: Vec::new(),
            depth: 0,
            part: (!part.is_whole()).then_some(part),
            reads: Vec::new(),
            at_home: true,
            dealt: part.is_whole(),
            checked: true,
            found: Findings::default(),
            work: 0,
        }
    }

    /// Leaves the results of a run that has ended, and sends contacts to other ranks.
    fn leave(&mut self, tested: &Tested<'_>, mut send: impl FnMut(Rank, Vec<u8>)) {
        let mut found = std::mem::take(&mut self.found.contacts);
        if let Some(post) = &tested.post {
            found = post.hand_out(found, &mut send);
            if let (Some(first), false) = (self.reads.first(), self.at_home) {
                let candidates = self.found.candidates.take().unwrap_or_default();
                self.found.candidates = post.return_to(first.owner, candidates, send);
            }
        }
        let found = Batch::new(&found);
        let (patch, against) = against(self.run.target());
        let test = TestCost {
            patch,
            against,
            work: u32::try_from(std::mem::take(&mut self.work)).unwrap_or(u32::MAX),
        };
        let part = self.part;
        let mut left = tested.left();
        left.contacts.push(found);
        left.candidates.extend(self.found.candidates.take());
        left.costs.push(PartCost { test, part });
    }
}

/// The environment of a rank's tasks.
pub(crate) struct Tested<'a> {
    snapshot: &'a Snapshot<'a>,
    meter: TestMeter,
    /// The way to other ranks, if there are any.
    post: Option<Post<'a>>,
    keeps_candidates: bool,
    /// The state of patches that tasks read which were stolen, if ranks do not know all.
    lending: Option<&'a Lending<'a>>,
    left: Mutex<Left>,
}

/// The results that tasks leave on their rank.
#[derive(Debug, Default)]
struct Left {
    contacts: Vec<Batch>,
    /// The pairs that tests looked at, if these are kept.
    candidates: Vec<Vec<Candidate>>,
    /// The costs of top-level tests, or of parts of them.
    costs: Vec<PartCost>,
}

impl Tested<'_> {
    fn left(&self) -> MutexGuard<'_, Left> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts tests by kind, and contacts.
fn counts(made: Made, contacts: usize) -> Counts {
    Counts {
        volumes: u64::from(made.tests - made.leaves - made.rest_adjacent),
        leaves: u64::from(made.leaves),
        near: u64::from(made.rest_adjacent),
        contacts: contacts as u64,
    }
}

impl<'a> Task<Tested<'a>> for Collide {
    const NAME: &'static str = "collide";
    type Output = ();

    fn run(
        &mut self,
        tested: &Tested<'a>,
        cx: &mut Context<'_, Tested<'a>, Self::Output>,
    ) -> Step<Self::Output> {
        if self.at_home || self.reads.is_empty() {
            return self.run_slice(tested, tested.snapshot, cx);
        }
        // The panic becomes this task's error, with its name and rank.
        let lending = tested.lending.expect("no rank lends state in this search");
        let block = |read: &Read| (read.patch, cx.block(&read.block()));
        let blocks: Vec<_> = self.reads.iter().map(block).collect();
        lending.with(&blocks, |snapshot| self.run_slice(tested, snapshot, cx))
    }

    fn needs(&self) -> Vec<BlockName> {
        match self.at_home {
            true => Vec::new(),
            false => self.reads.iter().map(|read| read.block()).collect(),
        }
    }

    fn split(&mut self, how: Split) -> Option<Self> {
        if !self.dealt {
            // The stack is still that of all parts.
            return None;
        }
        // The task gives away half of the runs that follow, or a piece of its only run.
        let given = self.next.len().div_ceil(2);
        let mut next: Vec<TestRun> = self.next.drain(..given).collect();
        let run = match next.pop() {
            Some(run) => run,
            None => self.run.split(|stack| how.take_from(stack))?,
        };
        Some(Self {
            run,
            next,
            depth: self.depth.saturating_add(1),
            part: self.part,
            reads: self.reads.clone(),
            at_home: self.at_home,
            dealt: true,
            checked: self.checked,
            found: Findings::default(),
            work: 0,
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

impl Collide {
    fn run_slice<'a>(
        &mut self,
        tested: &Tested<'a>,
        snapshot: &Snapshot<'_>,
        cx: &mut Context<'_, Tested<'a>, ()>,
    ) -> Step<()> {
        if !self.checked {
            // The panic becomes this task's error, with its name and rank.
            assert!(
                self.run.is_valid(snapshot),
                "a test of patches or nodes that do not exist"
            );
            self.checked = true;
        }
        let mut tests = TestsMade::default();
        if let Some(part) = self.part.filter(|_| !self.dealt) {
            self.dealt = true;
            let made = (self.run).deal(snapshot, |stack, expand| part.deal(stack, expand));
            let counted = if part.is_first() {
                &mut tests.own
            } else {
                &mut tests.repeated
            };
            *counted = counts(made, 0);
        }
        let (mut charged, mut budget) = (0, cx.budget());
        loop {
            if tested.keeps_candidates {
                self.found.candidates.get_or_insert_default();
            }
            let before = self.found.contacts.len();
            let (made, done) = (self.run).advance_finding(snapshot, budget, &mut self.found);
            tests
                .own
                .add_all(&counts(made, self.found.contacts.len() - before));
            let target = against(self.run.target());
            self.work += work(target.1, &tests.own);
            charged += (tested.meter).charge_of(target, &tests, |patch| snapshot.opened(patch));
            if done {
                self.leave(tested, |to, message| cx.post(to, message));
                let Some(next) = self.next.pop() else {
                    cx.charge(charged);
                    return Step::Done(());
                };
                self.run = next;
            }
            budget = budget.saturating_sub(u32::try_from(tests.own.tests()).unwrap_or(u32::MAX));
            if !done || budget == 0 {
                cx.charge(charged);
                return Step::More;
            }
            tests = TestsMade::default();
        }
    }
}

/// A target as forecasts name it.
fn against(target: Target) -> (u32, Against) {
    match target {
        Target::Patch(p) => (p, Against::Itself),
        Target::Patches(p, q) => (p, Against::Patch(q)),
        Target::PatchBody(p, body) => (p, Against::Body(body)),
    }
}

/// The arguments of [`detect`] that it only reads.
#[derive(Clone, Copy)]
pub(crate) struct Search<'a> {
    pub(crate) snapshot: &'a Snapshot<'a>,
    pub(crate) geometry: &'a Geometry<'a>,
    pub(crate) ownership: &'a Ownership,
    pub(crate) options: &'a ScopeOptions,
    pub(crate) team: &'a Team,
    pub(crate) cost_model: &'a CostModel,
    /// Whether the pairs that tests look at are kept.
    pub(crate) keeps_candidates: bool,
    /// Whether ranks know only the vertices that their tests read. Then the snapshot has the
    /// volumes around patches, and tests make separation bounds when they ask for them; otherwise
    /// ranks give each other both.
    pub(crate) subscribed: bool,
    /// The state that thieves are lent, if ranks do not know all.
    pub(crate) lending: Option<&'a Lending<'a>>,
}

/// The outcome of a search, apart from contacts.
#[derive(Debug)]
pub(crate) struct Searched {
    pub(crate) report: ScopeReport,
    /// The time for which patches were prepared before tests.
    pub(crate) early: Duration,
    /// The pairs that the rank's tests looked at, if they are kept.
    pub(crate) candidates: Vec<Vec<Candidate>>,
}

/// Finds the contacts of a step. Collective.
pub(crate) fn detect(
    comm: &mut dyn Comm,
    search: &Search<'_>,
    balancer: &mut Balancer,
    contacts: &mut Contacts,
) -> Result<Searched, ScopeError> {
    let &Search {
        snapshot,
        geometry,
        ownership,
        options,
        team,
        cost_model,
        keeps_candidates,
        subscribed,
        lending,
    } = search;
    let (me, ranks) = (comm.rank().index(), comm.size());
    let own = ownership.patches(me);
    let first = OnceLock::new();
    let find_first = || {
        first.get_or_init(|| tests_at(snapshot, own.clone(), &|| Duration::ZERO));
    };
    let bound_owners = BoundOwners::new(ownership, balancer.assignment());
    let cloth = || ClothSizes {
        patches: (0..geometry.cloth.patches().len())
            .map(|patch| patch_sizes(geometry, patch))
            .collect(),
        tiles: tiles(geometry),
    };
    let mut meter = cost_model.meter(comm, &bound_owners, cloth);
    let early = meter.early(read_whole(comm, geometry, balancer, &own));
    let several = ranks > 1;
    let news = several
        .then(|| balancer.news(me, &options.policy))
        .flatten();
    let encoded = news.as_ref().map(wire::encode).transpose();
    let unsendable = CommError::unsendable(comm.rank(), "what its tests cost");
    let encoded = encoded.map_err(unsendable)?;
    let sharing = Sharing {
        snapshot,
        geometry,
        bound_owners: &bound_owners,
        team,
        cost_model,
        news: &encoded.unwrap_or_default(),
        early: &early,
    };
    let (heard, early_time) = match subscribed {
        false => share_geometry(comm, &sharing, &find_first)?,
        true => Default::default(),
    };
    if several {
        balancer.hear(news.as_ref(), &heard, (geometry, &options.policy))?;
        let tests = balancer.known().len();
        match news {
            Some(News::Costs(_)) => _ = cost_model.charge(comm, Work::Assignment { tests }),
            Some(News::Work(_)) => _ = cost_model.charge(comm, Work::BoundaryMove { ranks }),
            None => {}
        }
    } else {
        balancer.note();
    }
    let found = first.into_inner();
    let found = tests_here(comm, search, (own, found), balancer);
    let charged = meter.charge_begin(comm, found.targets, found.pairs());
    let beginning = found.beginning + charged;
    let runs = found.runs;
    let told_apart = options.trace.is_some() || is_listened();
    let bundled = !several && team.threads() > 1 && !told_apart;
    let mut tasks: Vec<Collide> = match bundled {
        true => bundles(runs.into_iter().map(|(run, _)| run)),
        false => runs.into_iter().map(Collide::new).collect(),
    };
    let lending = lending.filter(|_| options.policy.steal);
    if let Some(lending) = lending {
        for task in &mut tasks {
            task.reads = lending.reads(task.run.target());
        }
    }
    let tested = Tested {
        snapshot,
        meter,
        post: several.then(|| Post::new(ownership, geometry.cloth.surface(), me)),
        keeps_candidates,
        lending,
        left: Mutex::default(),
    };
    let (left, report, sorting) = make_tests(comm, search, tested, tasks, contacts)?;
    // Early preparation counts as if tests had done it, on as many threads as had some of it.
    let of_workers = early_time * team.threads().min(early.patches.len()) as u32;
    let busy = report.busy.iter().sum::<Duration>() + of_workers + beginning;
    balancer.ended(left.costs, busy, sorting * team.threads() as u32);
    Ok(Searched {
        report,
        early: early_time,
        candidates: left.candidates,
    })
}

/// The patches that this rank prepares while messages are under way: those that its tests read
/// whole.
fn read_whole(
    comm: &dyn Comm,
    geometry: &Geometry<'_>,
    balancer: &Balancer,
    own: &Range<usize>,
) -> Vec<usize> {
    if !prepares_early(comm.size()) {
        return Vec::new();
    }
    match balancer.assignment() {
        Some(assignment) => assignment.tested_whole(comm.rank().index()),
        None if geometry.self_collision => own.clone().collect(),
        // It is not known yet whether any body is near.
        None => Vec::new(),
    }
}

/// The beginnings of a rank's tests.
#[derive(Debug, Default)]
struct Found {
    /// The tests, each with the part that the rank makes.
    runs: Vec<(TestRun, Part)>,
    /// The pairs of patches whose roots meet and of which nothing is tested.
    missed: Vec<(usize, usize)>,
    /// The number of targets that were looked at.
    targets: usize,
    /// The time that it took to find where tests begin, of targets whose roots meet.
    beginning: Duration,
}

impl Found {
    /// Begins the tests of targets whose roots meet; `part` tells which part of each the rank
    /// makes, if any.
    fn look(
        snapshot: &Snapshot<'_>,
        meeting: impl Iterator<Item = Target>,
        part: impl Fn(Target) -> Option<Part>,
        clock: &dyn Fn() -> Duration,
    ) -> Self {
        let meeting: Vec<Target> = meeting.collect();
        let began = clock();
        let mut found = Self::default();
        for target in meeting {
            let Some(part) = part(target) else { continue };
            match (TestRun::begin(target, snapshot), target) {
                (Begun::Run(run), _) => found.runs.push((run, part)),
                (Begun::Missed, Target::Patches(p, q)) => {
                    found.missed.push((p as usize, q as usize));
                }
                (Begun::Apart | Begun::Missed, _) => {}
            }
        }
        found.beginning = clock().saturating_sub(began);
        found
    }

    /// The pairs of patches for which the beginning of tests was looked for.
    fn pairs(&self) -> impl Iterator<Item = (usize, usize)> {
        let runs = self.runs.iter().filter_map(|(run, _)| match run.target() {
            Target::Patches(p, q) => Some((p as usize, q as usize)),
            Target::Patch(_) | Target::PatchBody(..) => None,
        });
        runs.chain(self.missed.iter().copied())
    }
}

/// The tests that begin on this rank; they may have been found already.
fn tests_here(
    comm: &dyn Comm,
    search: &Search<'_>,
    (own, found): (Range<usize>, Option<Found>),
    balancer: &Balancer,
) -> Found {
    let (snapshot, options) = (search.snapshot, search.options);
    match (found, balancer.assignment()) {
        (Some(found), _) => found,
        (None, None) => tests_at(snapshot, own, &|| comm.now()),
        (None, Some(assignment)) => {
            let mut found =
                tests_assigned(snapshot, assignment, comm.rank().index(), &|| comm.now());
            // A worker besides the first begins with the tests that were forked first.
            if !options.policy.steal && options.workers == 1 {
                assignment.small_first(&mut found.runs, |(run, _)| against(run.target()));
            }
            found
        }
    }
}

/// Makes tests on all ranks, and puts the contacts that are this rank's into `contacts`. Returns
/// what else its tests left, and the time for which it put contacts in order. Collective.
///
/// A rank with a single thread puts contacts in order while it waits for others.
fn make_tests(
    comm: &mut dyn Comm,
    search: &Search<'_>,
    tested: Tested<'_>,
    tasks: Vec<Collide>,
    contacts: &mut Contacts,
) -> Result<(Left, ScopeReport, Duration), ScopeError> {
    let (options, team, cost_model) = (search.options, search.team, search.cost_model);
    let registry = Registry::new().with::<Collide>();
    let alone = team.threads() == 1;
    let (mut waiting, mut sorting): (Vec<Batch>, _) = (Vec::new(), Duration::ZERO);
    let mut take_in = |comm: &mut dyn Comm, messages, all: bool| {
        let began = comm.now();
        waiting.append(&mut tested.left().contacts);
        if let Some(post) = &tested.post {
            let opened = post.open(messages, search.geometry)?;
            waiting.extend(opened.contacts);
            tested.left().candidates.extend(opened.candidates);
        }
        let (new, ordered) = (waiting.iter().map(Batch::len).sum(), contacts.len());
        if all || worth_taking_in(new, ordered) {
            contacts.take_in(std::mem::take(&mut waiting), team);
            cost_model.charge(comm, Work::Contacts { new, ordered });
        }
        sorting += comm.now().saturating_sub(began);
        Ok(())
    };
    let mut meanwhile = |comm: &mut dyn Comm, messages| take_in(comm, messages, false);
    let ((), mut report) = scope_on(team, comm, &registry, &tested, options, |s| {
        if alone {
            s.meanwhile(&mut meanwhile);
        }
        if let Some(lending) = tested.lending {
            for (patch, bytes) in lending.blocks() {
                s.publish(patch, lending::VERSION, bytes)?;
            }
        }
        let group = s.group();
        for task in tasks {
            s.fork(&group, task)?;
        }
        s.close();
        while let Some(done) = s.join(&group)? {
            done?;
        }
        Ok(())
    })?;
    take_in(comm, std::mem::take(&mut report.messages), true)?;
    let left = (tested.left.into_inner()).unwrap_or_else(PoisonError::into_inner);
    Ok((left, report, sorting))
}

/// Bundles test runs into tasks, for threads that share them among themselves only: to hand a task
/// to another thread takes as long as dozens of tests.
fn bundles(mut runs: impl Iterator<Item = TestRun>) -> Vec<Collide> {
    let mut tasks = Vec::new();
    while let Some(run) = runs.next() {
        let mut next: Vec<TestRun> = runs.by_ref().take(BUNDLE - 1).collect();
        next.reverse();
        tasks.push(Collide {
            next,
            ..Collide::new((run, Part::WHOLE))
        });
    }
    tasks
}

/// The number of top-level tests of some patches, with those whose roots do not meet.
fn targets_of(snapshot: &Snapshot<'_>, patches: Range<usize>) -> usize {
    snapshot.count_targets(patches, Ownership::pairs_at)
}

/// The tests of some patches.
fn tests_at(snapshot: &Snapshot<'_>, patches: Range<usize>, clock: &dyn Fn() -> Duration) -> Found {
    let count = targets_of(snapshot, patches.clone());
    let targets = snapshot.targets_at(patches, Ownership::patch_of_pair);
    let found = Found::look(snapshot, targets.into_iter(), |_| Some(Part::WHOLE), clock);
    Found {
        targets: count,
        ..found
    }
}

/// The tests that an assignment gives to a rank, each with the part that it makes.
fn tests_assigned(
    snapshot: &Snapshot<'_>,
    assignment: &Assignment,
    me: usize,
    clock: &dyn Fn() -> Duration,
) -> Found {
    let known = assignment.known_tests(me).map(|test| match test.against {
        Against::Itself => Target::Patch(test.patch),
        Against::Patch(other) => Target::Patches(test.patch, other),
        Against::Body(body) => Target::PatchBody(test.patch, body),
    });
    // The tests whose cost is not known yet.
    let mut news = snapshot.targets_at(assignment.patches(me), Ownership::patch_of_pair);
    let count = known.len() + targets_of(snapshot, assignment.patches(me));
    let known = known.filter(|target| target.meets(snapshot));
    news.retain(|&target| {
        let (patch, against) = against(target);
        !assignment.knows(patch, against)
    });
    let part = |target| {
        let (patch, against) = against(target);
        assignment.part(me, patch, against)
    };
    let found = Found::look(snapshot, known.chain(news), part, clock);
    Found {
        targets: count,
        ..found
    }
}

/// The sizes of what tests read of a patch.
pub(crate) fn patch_sizes(geometry: &Geometry<'_>, patch: usize) -> PatchSizes {
    let subtrees = subtrees(geometry.cloth, patch);
    PatchSizes {
        around: geometry.cloth.patch_vertices()[patch].len() as u32,
        nodes: geometry.cloth.patches()[patch].len() as u32,
        pieces: subtrees.nodes,
        vertices: subtrees.vertices,
    }
}
