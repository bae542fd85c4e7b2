//! A scope in which every step is a choice: programs of bodies and tasks, and links that keep their
//! order.
//!
//! Explorers choose the steps; the world checks after each that the scope keeps its promises.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::hash::Hasher as _;
use std::rc::Rc;

use super::*;
use crate::policy::victims::{VictimRule, VictimState, Victims};

/// Tasks are known by their place in the plan; each produces its number as its result.
pub(super) type Id = u16;
type Machine = Scheduler<Piece, Id>;
type Message = SchedulerMessage<Piece, Id>;

/// A task, and how much of it was done before it was set down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) id: Id,
    stage: usize,
}

impl Work<Id> for Piece {
    fn refused(&self, _rank: Rank, _why: BlockError) -> Id {
        unreachable!("these tasks need no blocks")
    }
}

/// The stages of a task, in this order. It pauses after each stage.
#[derive(Clone, Debug)]
pub(super) enum Stage {
    Hyperfork(Vec<Id>),
    /// It is split.
    SplitOff(Id),
    /// It makes a group, forks these into it, and joins it to the end.
    Join(Vec<Id>),
    /// It makes a group, forks these into it, and drops it.
    Drop(Vec<Id>),
    /// It makes a group, forks these into it, and cancels it before it joins it.
    JoinCancelled(Vec<Id>),
    CancelOwnGroup,
    /// It posts its number to a rank.
    Post(usize),
    /// Its worker sets it down.
    SetDown,
}

/// A group as bodies name it: collective, or the rank's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Name {
    Collective(u32),
    Own(u64),
}

#[derive(Clone, Debug)]
pub(super) enum Deed {
    Fork(Name, Id),
    /// Takes results until there are no more.
    Join(Name),
    /// Takes one result, if there is any.
    JoinOne(Name),
    Cancel(Name),
    Drop(Name),
}

/// A program for all ranks.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) options: ScopeOptions,
    /// How many collective groups there are.
    pub(super) groups: u32,
    pub(super) tasks: Vec<Vec<Stage>>,
    pub(super) bodies: Vec<Vec<Deed>>,
    /// Whether bodies say so when they fork no more.
    pub(super) close: bool,
}

impl Plan {
    /// A task and everything that comes of it in its own group.
    fn family(&self, id: Id) -> Vec<Id> {
        let mut all = vec![id];
        for stage in &self.tasks[id as usize] {
            match stage {
                Stage::Hyperfork(ids) => all.extend(ids.iter().flat_map(|&id| self.family(id))),
                Stage::SplitOff(id) => all.extend(self.family(*id)),
                _ => {}
            }
        }
        all
    }

    /// Whether two ranks join collective groups in different orders.
    fn is_crossed(&self) -> bool {
        let order = |deeds: &Vec<Deed>| -> Vec<Name> {
            let joins = deeds.iter().filter_map(|deed| match deed {
                Deed::Join(name @ Name::Collective(_)) => Some(*name),
                _ => None,
            });
            joins.collect()
        };
        let mut orders = self.bodies.iter().map(order);
        let first = orders.next();
        orders.any(|other| Some(other) != first)
    }

    fn forked(&self, rank: usize, group: Name) -> BTreeSet<Id> {
        let deeds = self.bodies[rank].iter();
        let forked = deeds.filter_map(|deed| match deed {
            Deed::Fork(name, id) if *name == group => Some(self.family(*id)),
            _ => None,
        });
        forked.flatten().collect()
    }
}

/// One step of the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The next message of a link arrives.
    Deliver(usize, usize),
    /// A rank goes on with what it has to do. If it has nothing, it asks that victim, if it asks
    /// anybody; `true`: after so long that what it asked before is overdue.
    Turn(usize, Option<Rank>, bool),
}

/// How much an explorer tries.
#[derive(Clone, Copy)]
pub(super) struct Bounds<'a> {
    /// The pairs of ranks of which the first may ask the second.
    pub(super) asks: &'a [(usize, u32)],
    /// How many requests of a rank may be unanswered at once.
    pub(super) unanswered: usize,
}

#[derive(Clone)]
struct Frame {
    membership: Membership,
    piece: Piece,
    /// The group it waits for, and what of it is still to come.
    waits: Option<(Arc<Ancestry>, BTreeSet<Id>)>,
}

#[derive(Clone)]
struct RankState {
    machine: Machine,
    now: Duration,
    stack: Vec<Frame>,
    /// The body's next deed, and whether it waits in its join.
    deed: usize,
    ended: bool,
    left: bool,
    groups: BTreeMap<Name, Arc<Ancestry>>,
    taken: BTreeMap<Name, BTreeSet<Id>>,
    made: u64,
    print: u64,
}

pub(super) struct World<'a> {
    plan: &'a Plan,
    places: Vec<Rc<RankState>>,
    links: Vec<VecDeque<Message>>,
    cancelled: BTreeSet<GroupId>,
    finished: BTreeSet<Id>,
    /// The number of times that each message was posted: to which rank, from which rank, by which
    /// task.
    posted: BTreeMap<(usize, usize, Id), usize>,
}

/// A place that no other world has.
fn own(places: &mut [Rc<RankState>], rank: usize) -> &mut RankState {
    Rc::get_mut(&mut places[rank]).expect("a step touches one rank")
}

impl RankState {
    /// A copy that goes on by itself: groups are shared within a rank, and have state.
    fn copy(&self) -> Self {
        let mut place = self.clone();
        let mut copies = BTreeMap::new();
        let mut other = |ancestry: &mut Arc<Ancestry>| *ancestry = ancestry.copy(&mut copies);
        let machine = &mut place.machine;
        let entries = machine.pool.iter_mut();
        entries.for_each(|entry| other(&mut entry.membership.ancestry));
        machine.collective.iter_mut().for_each(&mut other);
        machine.leases.relink(&mut other);
        machine.ancestries.relink(&mut other);
        for frame in &mut place.stack {
            other(&mut frame.membership.ancestry);
            frame
                .waits
                .iter_mut()
                .for_each(|(ancestry, _)| other(ancestry));
        }
        place.groups.values_mut().for_each(other);
        place
    }

    /// Tells states apart, but for times and counts that decide nothing.
    fn fingerprint(&self) -> u64 {
        let mut hash = Hash::default();
        let machine = &self.machine;
        let frames = self
            .stack
            .iter()
            .map(|f| (&f.membership, f.piece, &f.waits));
        let essence = (
            (
                &machine.pool,
                machine.running,
                machine.waiting,
                &machine.results,
            ),
            (&machine.leases, machine.waves.essence()),
            (&machine.all_to_all, machine.messages.essence()),
            (
                machine.requests.essence(),
                &machine.waiters,
                &machine.unsent,
            ),
            (machine.body, machine.ancestries.cancelled()),
            (self.deed, self.ended, self.left, &self.taken, self.made),
            frames.collect::<Vec<_>>(),
        );
        write!(hash, "{essence:?}").unwrap();
        hash.0.finish()
    }
}

impl<'a> World<'a> {
    pub(super) fn new(plan: &'a Plan) -> Self {
        let n = plan.bodies.len();
        let places = (0..n as u32).map(|rank| {
            let mut machine = Machine::new(Rank(rank), n as u32, &plan.options, &|rank| rank.0 / 2);
            let groups = (0..plan.groups).map(|g| (Name::Collective(g), machine.group()));
            let groups = groups.collect();
            Rc::new(RankState {
                machine,
                now: Duration::ZERO,
                stack: Vec::new(),
                deed: 0,
                ended: false,
                left: false,
                groups,
                taken: BTreeMap::new(),
                made: 0,
                print: 0,
            })
        });
        let mut world = Self {
            plan,
            places: places.collect(),
            links: vec![VecDeque::new(); n * n],
            cancelled: BTreeSet::new(),
            finished: BTreeSet::new(),
            posted: BTreeMap::new(),
        };
        // Nobody hears anything before its body first waits.
        for rank in 0..n {
            world.body(rank);
            world.post(rank);
            let place = own(&mut world.places, rank);
            place.print = place.fingerprint();
        }
        world
    }

    /// The world after another step.
    pub(super) fn after(&self, step: Step) -> Self {
        let mut next = Self {
            plan: self.plan,
            places: self.places.clone(),
            links: self.links.clone(),
            cancelled: self.cancelled.clone(),
            finished: self.finished.clone(),
            posted: self.posted.clone(),
        };
        let (Step::Deliver(_, rank) | Step::Turn(rank, ..)) = step;
        next.places[rank] = Rc::new(self.places[rank].copy());
        next.step(step);
        let place = own(&mut next.places, rank);
        place.print = place.fingerprint();
        next
    }

    pub(super) fn is_over(&self) -> bool {
        if (self.places.iter()).any(|place| place.machine.stuck().is_some()) {
            return true;
        }
        self.places.iter().all(|place| place.left)
    }

    pub(super) fn ranks(&self) -> usize {
        self.places.len()
    }

    /// Whether a rank has not left.
    pub(super) fn is_here(&self, rank: usize) -> bool {
        !self.places[rank].left
    }

    pub(super) fn may_deliver(&self, from: usize, to: usize) -> bool {
        !self.links[from * self.places.len() + to].is_empty()
    }

    /// Time goes by.
    pub(super) fn pass(&mut self, time: Duration) {
        for rank in 0..self.places.len() {
            own(&mut self.places, rank).now += time;
        }
    }

    pub(super) fn describe(&self) -> String {
        let mut text = String::new();
        for place in &self.places {
            let stack: Vec<Id> = place.stack.iter().map(|frame| frame.piece.id).collect();
            let (deed, left) = (place.deed, place.left);
            let about = place.machine.describe();
            writeln!(text, "{about}\n  stack {stack:?}, deed {deed}, left {left}").unwrap();
        }
        for (at, link) in self.links.iter().enumerate().filter(|(_, l)| !l.is_empty()) {
            let n = self.places.len();
            writeln!(text, "{} to {}: {link:?}", at / n, at % n).unwrap();
        }
        text
    }

    /// The steps that may come next.
    pub(super) fn steps(&self, bounds: &Bounds<'_>) -> Vec<Step> {
        let n = self.places.len();
        let mut steps = Vec::new();
        for from in 0..n {
            for to in 0..n {
                if !self.links[from * n + to].is_empty() {
                    steps.push(Step::Deliver(from, to));
                }
            }
        }
        for rank in (0..n).filter(|&rank| self.is_here(rank)) {
            let place = &self.places[rank];
            steps.push(Step::Turn(rank, None, false));
            let unanswered = place.machine.requests.unanswered();
            if !self.is_busy(rank) && unanswered < bounds.unanswered {
                let late = unanswered > 0;
                let victims = bounds.asks.iter().filter(|(thief, _)| *thief == rank);
                let victims = victims.map(|&(_, victim)| Rank(victim));
                steps.extend(victims.map(|victim| Step::Turn(rank, Some(victim), late)));
            }
        }
        steps
    }

    /// Whether a rank has something to do, so that it will not ask for more.
    fn is_busy(&self, rank: usize) -> bool {
        let place = &self.places[rank];
        let within = self.within(rank);
        place
            .stack
            .last()
            .is_some_and(|frame| frame.waits.is_none())
            || place
                .machine
                .pool
                .iter()
                .any(|entry| entry.is_within(within))
    }

    /// The group of which a rank may take tasks now.
    fn within(&self, rank: usize) -> Option<GroupId> {
        let place = &self.places[rank];
        match place.stack.last() {
            Some(Frame { waits, .. }) => waits.as_ref().map(|(ancestry, _)| ancestry.group()),
            None if place.ended => None,
            None => match self.plan.bodies[rank][place.deed] {
                Deed::Join(name) | Deed::JoinOne(name) => Some(place.groups[&name].group()),
                _ => unreachable!("a body pauses in joins"),
            },
        }
    }

    pub(super) fn step(&mut self, step: Step) {
        match step {
            Step::Deliver(from, to) => {
                let n = self.places.len();
                let message = self.links[from * n + to].pop_front();
                let place = own(&mut self.places, to);
                if let Some(message) = message
                    && !place.left
                {
                    let received = place.machine.receive(Rank(from as u32), message, place.now);
                    received.unwrap();
                    self.post(to);
                }
            }
            Step::Turn(rank, victim, late) => {
                CHOICE.set(victim);
                if late {
                    own(&mut self.places, rank).now += self.plan.options.policy.steal_timeout;
                } else if victim.is_some() {
                    // Long enough for any pause between requests.
                    own(&mut self.places, rank).now += Duration::from_micros(100);
                }
                self.turn(rank);
                CHOICE.set(None);
                self.post(rank);
            }
        }
    }

    fn post(&mut self, rank: usize) {
        let n = self.places.len();
        let place = own(&mut self.places, rank);
        while let Some((to, message)) = place.machine.outgoing() {
            self.links[rank * n + to.index()].push_back(message);
        }
        for (to, place) in self.places.iter().enumerate() {
            if place.left {
                self.links[rank * n + to].clear();
            }
        }
    }

    /// The work of the driver between two looks at messages.
    fn turn(&mut self, rank: usize) {
        let place = own(&mut self.places, rank);
        place.machine.tick(place.now);
        let within = match place.stack.last_mut() {
            Some(Frame { waits: None, .. }) => {
                self.work(rank);
                return;
            }
            Some(Frame {
                waits: Some((ancestry, missing)),
                ..
            }) => {
                if let Some(result) = place.machine.next_result(ancestry) {
                    assert!(missing.remove(&result), "{result} is doubled");
                    return;
                }
                if place.machine.is_exhausted(ancestry) {
                    let cancelled = self
                        .cancelled
                        .iter()
                        .any(|&group| ancestry.is_within(group));
                    assert!(cancelled || missing.is_empty(), "{missing:?} are lost");
                    place.machine.ends_waiting();
                    if let Some(frame) = place.stack.last_mut() {
                        frame.waits = None;
                        frame.piece.stage += 1;
                    }
                    return;
                }
                Some(ancestry.group())
            }
            None => {
                if self.body(rank) {
                    return;
                }
                self.within(rank)
            }
        };
        let place = own(&mut self.places, rank);
        if let Some((membership, piece)) = place.machine.next_task(within) {
            place.stack.push(Frame {
                membership,
                piece,
                waits: None,
            });
            return;
        }
        place.machine.idle(place.now, within);
        if place.ended && place.stack.is_empty() && place.machine.may_leave() {
            self.leave(rank);
        }
    }

    /// The body goes on to where it must wait; false if it waits there already.
    fn body(&mut self, rank: usize) -> bool {
        let mut acted = false;
        while !self.places[rank].ended {
            let deed = self.plan.bodies[rank].get(self.places[rank].deed);
            let place = own(&mut self.places, rank);
            let rest = &self.plan.bodies[rank][place.deed.min(self.plan.bodies[rank].len())..];
            if self.plan.close && !rest.iter().any(|deed| matches!(deed, Deed::Fork(..))) {
                place.machine.closed();
            }
            let Some(deed) = deed else {
                place.machine.body_ended();
                place.ended = true;
                return true;
            };
            let (Deed::Fork(name, _)
            | Deed::Join(name)
            | Deed::JoinOne(name)
            | Deed::Cancel(name)
            | Deed::Drop(name)) = *deed;
            let made = &mut place.made;
            let ancestry = place.groups.entry(name).or_insert_with(|| {
                *made += 1;
                rooted(rank as u32, *made - 1, None)
            });
            let ancestry = Arc::clone(ancestry);
            let mut done = true;
            match *deed {
                Deed::Fork(_, id) => {
                    let membership = place.machine.membership(&ancestry, None);
                    place
                        .machine
                        .fork(membership.clone(), Piece { id, stage: 0 });
                }
                Deed::Cancel(_) => {
                    place.machine.cancel(&ancestry);
                    self.cancelled.insert(ancestry.group());
                }
                Deed::Drop(_) => ancestry.abandon(),
                Deed::Join(_) | Deed::JoinOne(_) => {
                    done = matches!(deed, Deed::JoinOne(_));
                    if let Some(result) = place.machine.next_result(&ancestry) {
                        place.machine.goes_on();
                        let new = place.taken.entry(name).or_default().insert(result);
                        assert!(new, "{result} is doubled");
                        let forked = self.plan.forked(rank, name);
                        assert!(forked.contains(&result), "{result} is not from here");
                    } else {
                        place.machine.waits_in(ancestry.group());
                        if !place.machine.is_exhausted(&ancestry) {
                            return acted;
                        }
                        place.machine.goes_on();
                        done = true;
                        self.check_exhausted(rank, name, ancestry.group());
                    }
                }
            }
            acted = true;
            own(&mut self.places, rank).deed += usize::from(done);
        }
        acted
    }

    /// The task on top of the stack goes on to its end, or to where it must wait.
    fn work(&mut self, rank: usize) {
        let place = own(&mut self.places, rank);
        let frame = place.stack.last_mut().unwrap();
        let machine = &mut place.machine;
        let new = |&id: &Id| Piece { id, stage: 0 };
        for stage in &self.plan.tasks[frame.piece.id as usize][frame.piece.stage..] {
            match stage {
                Stage::Hyperfork(ids) => {
                    ids.iter()
                        .for_each(|id| machine.fork(frame.membership.clone(), new(id)));
                }
                Stage::SplitOff(id) => machine.split_off(&frame.membership, new(id)),
                Stage::CancelOwnGroup => {
                    let ancestry = Arc::clone(frame.membership.ancestry());
                    machine.cancel(&ancestry);
                    self.cancelled.insert(ancestry.group());
                }
                Stage::Post(to) => {
                    let item = frame.piece.id.to_le_bytes().to_vec();
                    machine.post_message(Rank(*to as u32), item).unwrap();
                    let posted = (*to, rank, frame.piece.id);
                    *self.posted.entry(posted).or_default() += 1;
                }
                Stage::SetDown => {
                    if let Some(mut frame) = place.stack.pop() {
                        frame.piece.stage += 1;
                        machine.put_back(frame.membership, frame.piece);
                    }
                    return;
                }
                Stage::Join(ids) | Stage::JoinCancelled(ids) | Stage::Drop(ids) => {
                    let ancestry =
                        rooted(rank as u32, place.made, Some(frame.membership.ancestry()));
                    place.made += 1;
                    for id in ids {
                        let membership = machine.membership(&ancestry, Some(&frame.membership));
                        machine.fork(membership.clone(), new(id));
                    }
                    if let Stage::JoinCancelled(_) = stage {
                        machine.cancel(&ancestry);
                        self.cancelled.insert(ancestry.group());
                    }
                    if let Stage::Drop(_) = stage {
                        ancestry.abandon();
                    } else {
                        machine.begins_to_wait();
                        let families = ids.iter().flat_map(|&id| self.plan.family(id));
                        frame.waits = Some((ancestry, families.collect()));
                        return;
                    }
                }
            }
            frame.piece.stage += 1;
        }
        if let Some(Frame {
            membership, piece, ..
        }) = place.stack.pop()
        {
            machine.produced(&membership, piece.id);
            machine.finished(&membership);
            let first = self.finished.insert(piece.id);
            assert!(first, "{} ran twice", piece.id);
        }
    }

    fn leave(&mut self, rank: usize) {
        let done = |r: usize| {
            let place = &self.places[r];
            let rest = self.plan.bodies[r].get(place.deed..).unwrap_or_default();
            let forks = rest.iter().any(|deed| matches!(deed, Deed::Fork(..)));
            place.ended || (self.plan.close && !forks)
        };
        assert!((0..self.places.len()).all(done), "left early");
        let left: Vec<(GroupId, Id)> = self.tasks().collect();
        assert!(left.is_empty(), "{left:?} are left");
        let messages = own(&mut self.places, rank).machine.take_messages();
        let messages: Vec<_> = messages
            .into_iter()
            .map(|(from, item)| (rank, from.index(), Id::from_le_bytes([item[0], item[1]])))
            .collect();
        assert!(messages.is_sorted_by_key(|(_, from, _)| *from));
        let mut come = BTreeMap::new();
        for message in messages {
            *come.entry(message).or_default() += 1;
        }
        let mut posted = self.posted.clone();
        posted.retain(|(to, ..), _| *to == rank);
        assert_eq!(come, posted, "messages to {rank}");
        own(&mut self.places, rank).left = true;
        let n = self.places.len();
        (0..n).for_each(|from| self.links[from * n + rank].clear());
    }

    /// Whatever was forked into a group must have come to its end.
    fn check_exhausted(&self, rank: usize, name: Name, group: GroupId) {
        let mut left = self.tasks().filter(|(other, _)| *other == group);
        assert_eq!(left.next(), None, "{group} is not exhausted");
        if self.cancelled.contains(&group) {
            return;
        }
        let all = match name {
            Name::Collective(_) => (0..self.places.len()).collect(),
            Name::Own(_) => vec![rank],
        };
        for rank in all {
            let place = &self.places[rank];
            let takes_all = |deed: &Deed| matches!(deed, Deed::Join(other) if *other == name);
            if self.plan.bodies[rank].iter().any(takes_all) {
                let taken = place.taken.get(&name).cloned().unwrap_or_default();
                let forked = self.plan.forked(rank, name);
                assert_eq!(taken, forked, "results of {group} for {rank}");
            }
        }
    }

    /// All tasks, wherever they are.
    fn tasks(&self) -> impl Iterator<Item = (GroupId, Id)> {
        let here = self.places.iter().flat_map(|place| {
            let pooled = place.machine.pool.iter();
            let pooled = pooled.map(|entry| (entry.membership.ancestry.group(), entry.task.id));
            let running = place.stack.iter();
            pooled.chain(running.map(|frame| (frame.membership.ancestry.group(), frame.piece.id)))
        });
        let bundles = self
            .links
            .iter()
            .flatten()
            .filter_map(|message| match message {
                Message::StealAnswer(bundles) | Message::Gift(bundles) => Some(bundles),
                _ => None,
            });
        let away = bundles.flatten().flat_map(|bundle| {
            let group = bundle.path[0];
            bundle.tasks.iter().map(move |task| (group, task.id))
        });
        here.chain(away)
    }

    /// Checks the conditions that hold in every state.
    pub(super) fn check(&self) {
        let mut seen = BTreeSet::new();
        for (_, id) in self.tasks() {
            let once = seen.insert(id) && !self.finished.contains(&id);
            assert!(once, "{id} is doubled");
        }
        let stuck = self.places.iter().find_map(|place| place.machine.stuck());
        if let Some(who) = stuck {
            assert!(self.plan.is_crossed(), "{who}");
            // Where ranks cannot ask each other for tasks, some may wait behind the wrong join.
            let asks = self.plan.options.policy.steal;
            assert!(
                !asks || seen.is_empty(),
                "{who}, yet there are tasks: {seen:?}"
            );
        }
    }

    /// Tells states apart, but for times and counts that decide nothing.
    pub(super) fn fingerprint(&self) -> u64 {
        let mut hash = Hash::default();
        for place in &self.places {
            hash.0.write_u64(place.print);
        }
        for link in &self.links {
            hash.write_str("|").unwrap();
            for message in link {
                match message {
                    // Only one wave is under way at a time; its number does not matter.
                    Message::Wave(_) => write!(hash, "wave"),
                    Message::Report(_, census, results) => write!(hash, "{census:?}{results:?}"),
                    _ => write!(hash, "{message:?}"),
                }
                .unwrap();
            }
        }
        write!(
            hash,
            "{:?}{:?}{:?}",
            self.cancelled, self.finished, self.posted
        )
        .unwrap();
        hash.0.finish()
    }
}

#[derive(Default)]
struct Hash(std::hash::DefaultHasher);

impl std::fmt::Write for Hash {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}

thread_local! {
    static CHOICE: Cell<Option<Rank>> = const { Cell::new(None) };
}

/// Victims that the explorer chooses.
pub(super) const CHOSEN: Victims = Victims(&Chosen);

#[derive(Clone, Debug)]
struct Chosen;

impl VictimRule for Chosen {
    fn name(&self) -> &'static str {
        "chosen"
    }

    fn about(&self) -> &'static str {
        "whom the test says, one at a time"
    }

    fn start(&self, _place: &Place<'_>) -> Box<dyn VictimState> {
        Box::new(Self)
    }
}

impl VictimState for Chosen {
    fn next(&mut self, open: &[Rank]) -> Option<Rank> {
        if open.is_empty() { CHOICE.take() } else { None }
    }
}
