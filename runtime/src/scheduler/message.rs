//! The messages of ranks within a scope. `T` is a task, `R` a result, as they travel.

use serde::{Deserialize, Serialize};

pub(crate) use super::all_to_all::DoneNotice;
pub(crate) use super::ancestry::GroupId;
pub(crate) use super::block_protocol::BlockMessage;
use crate::block::Bytes;
use crate::comm::Rank;

/// A message of the protocol; see the crate's PROTOCOL.md for who sends what when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum SchedulerMessage<T, R> {
    /// A thief asks for tasks: any, or those of one group and its descendants.
    StealRequest(Option<GroupId>),
    /// The answer to one request: tasks, or none.
    StealAnswer(Vec<Bundle<T>>),
    /// A thief gives up asking and waits until the receiver has something to give.
    Lifeline(Option<GroupId>),
    /// Tasks for a rank that waits for them.
    Gift(Vec<Bundle<T>>),
    /// Results of tasks whose families were forked by the receiver.
    Results(Vec<(GroupId, R)>),
    /// Everything that came of a lease has ended.
    Returned {
        /// Its number, by the rank that gave it.
        lease: u64,
        /// How many results were sent home.
        sent: u64,
    },
    /// A collective group is cancelled; along a binomial tree with this rank at its root. Or, to
    /// its home, a rooted one is, by a task that ran elsewhere.
    Cancel(GroupId, Rank),
    /// The group of this lease is cancelled.
    CancelLease(u64),
    /// Down the tree: report your counters when you are passive.
    Wave(u32),
    /// Up the tree: the sums of a subtree, its ranks all passive, and results that were still on
    /// their way from there to rank 0.
    Report(u32, Census, Vec<(GroupId, R)>),
    /// These groups are exhausted; and whether the whole scope is, and then to which ranks of the
    /// receiver's subtree how many items were posted.
    Exhausted(Vec<u32>, bool, PostedCounts),
    /// About published blocks.
    Block(BlockMessage<Bytes>),
    /// A message to all others, where no task goes from rank to rank: the groups that the sender is
    /// done with.
    Done(DoneNotice),
    /// Messages that tasks have posted to the receiver.
    Posted(Vec<Vec<u8>>),
    /// A shared bound was improved; along a binomial tree with the rank that did so at its root.
    Improved {
        /// Its number in the registry.
        bound: u16,
        /// The value; a smaller code is better.
        code: u64,
        /// The rank that improved it.
        root: Rank,
    },
}

/// Ranks, and how many items were posted to each; sorted, each once.
pub(crate) type PostedCounts = Vec<(u32, u64)>;

/// Tasks of one group that travel together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Bundle<T> {
    /// The group, the group it was made in, and so on.
    pub(crate) path: Vec<GroupId>,
    /// Where results go.
    pub(crate) home: Rank,
    /// The giver's number for what it waits to be [returned](SchedulerMessage::Returned); 0 if it
    /// does not wait.
    pub(crate) lease: u64,
    /// The tasks, oldest first.
    pub(crate) tasks: Vec<T>,
}

/// Counters of some ranks, summed; and what their bodies are doing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Census {
    /// Per collective group, in order.
    pub(crate) groups: Vec<GroupCount>,
    /// All rooted groups together; nobody waits in them.
    pub(crate) rooted: GroupCount,
    /// Ranks whose body has returned.
    pub(crate) ended: u32,
    /// Ranks whose body will fork no more, and has returned or waits in a join.
    pub(crate) done: u32,
    /// Ranks whose body has returned or waits for something that is not there.
    pub(crate) stuck: u32,
    /// Results of collective groups that lie on such ranks.
    pub(crate) lying: u64,
    /// Ranks from which a task has gone to another, or which have one.
    pub(crate) moved: u32,
    /// How many items their tasks have posted to which others.
    pub(crate) posted: PostedCounts,
}

/// One group's counters. Each event that gives work counts as `given`, each that uses it up as
/// `used`: a fork and the end of its task, a result on its way home and its being taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GroupCount {
    /// Tasks forked, hyperforked or split off, and results produced.
    pub(crate) given: u64,
    /// Tasks finished, and results taken by a join.
    pub(crate) used: u64,
    /// Ranks that are waiting in a join of this group, or will never fork into it again.
    pub(crate) waiting: u32,
}

impl GroupCount {
    fn add(&mut self, other: &Self) {
        self.given += other.given;
        self.used += other.used;
        self.waiting += other.waiting;
    }
}

impl Census {
    /// Adds the counters of other ranks.
    pub(crate) fn add(&mut self, other: &Self) {
        if self.groups.len() < other.groups.len() {
            self.groups
                .resize(other.groups.len(), GroupCount::default());
        }
        for (mine, theirs) in self.groups.iter_mut().zip(&other.groups) {
            mine.add(theirs);
        }
        self.rooted.add(&other.rooted);
        self.ended += other.ended;
        self.done += other.done;
        self.stuck += other.stuck;
        self.lying += other.lying;
        self.moved += other.moved;
        if self.posted.is_empty() {
            self.posted.clone_from(&other.posted);
        } else if !other.posted.is_empty() {
            self.posted = merged(&self.posted, &other.posted);
        }
    }
}

impl<T, R> SchedulerMessage<T, R> {
    /// The name of the message, for people.
    pub(crate) fn for_people(&self) -> String {
        let tasks = |bundles: &[Bundle<T>]| bundles.iter().map(|b| b.tasks.len()).sum::<usize>();
        match self {
            Self::StealAnswer(bundles) => format!("an answer with {} stolen tasks", tasks(bundles)),
            Self::Gift(bundles) => format!("a gift of {} tasks", tasks(bundles)),
            Self::Results(results) => format!("{} results", results.len()),
            Self::Report(_, _, results) => {
                format!("a report of a wave with {} results", results.len())
            }
            Self::Done(notice) => format!(
                "a notice of the end with {} posted messages",
                notice.items.len()
            ),
            Self::Posted(items) => format!("{} posted messages", items.len()),
            Self::Block(BlockMessage::Delivery { name, .. }) => name.to_string(),
            _ => "a short message".to_owned(),
        }
    }

    /// Converts the tasks and results in a message into another form.
    ///
    /// # Errors
    /// The first error of a conversion.
    pub(crate) fn convert<U, S, E>(
        self,
        mut task: impl FnMut(T) -> Result<U, E>,
        result: impl FnMut(R) -> Result<S, E>,
    ) -> Result<SchedulerMessage<U, S>, E> {
        let mut bundles = |bundles: Vec<Bundle<T>>| -> Result<Vec<Bundle<U>>, E> {
            bundles
                .into_iter()
                .map(|bundle| {
                    let tasks = bundle.tasks.into_iter().map(&mut task);
                    Ok(Bundle {
                        tasks: tasks.collect::<Result<_, E>>()?,
                        path: bundle.path,
                        home: bundle.home,
                        lease: bundle.lease,
                    })
                })
                .collect()
        };
        Ok(match self {
            Self::StealAnswer(tasks) => SchedulerMessage::StealAnswer(bundles(tasks)?),
            Self::Gift(tasks) => SchedulerMessage::Gift(bundles(tasks)?),
            Self::Results(results) => SchedulerMessage::Results(named(results, result)?),
            Self::Report(number, census, results) => {
                SchedulerMessage::Report(number, census, named(results, result)?)
            }
            Self::Returned { lease, sent } => SchedulerMessage::Returned { lease, sent },
            Self::StealRequest(within) => SchedulerMessage::StealRequest(within),
            Self::Lifeline(within) => SchedulerMessage::Lifeline(within),
            Self::Cancel(group, root) => SchedulerMessage::Cancel(group, root),
            Self::CancelLease(lease) => SchedulerMessage::CancelLease(lease),
            Self::Wave(number) => SchedulerMessage::Wave(number),
            Self::Exhausted(groups, all, posted) => {
                SchedulerMessage::Exhausted(groups, all, posted)
            }
            Self::Done(notice) => SchedulerMessage::Done(notice),
            Self::Posted(items) => SchedulerMessage::Posted(items),
            Self::Improved { bound, code, root } => {
                SchedulerMessage::Improved { bound, code, root }
            }
            Self::Block(message) => SchedulerMessage::Block(message),
        })
    }
}

/// Sums two lists of counts.
fn merged(ours: &[(u32, u64)], theirs: &[(u32, u64)]) -> PostedCounts {
    let mut all = [ours, theirs].concat();
    all.sort_unstable_by_key(|(rank, _)| *rank);
    all.dedup_by(|next, first| {
        let same = next.0 == first.0;
        first.1 += if same { next.1 } else { 0 };
        same
    });
    all
}

/// Results with their groups, in another form.
fn named<R, S, E>(
    results: Vec<(GroupId, R)>,
    mut convert: impl FnMut(R) -> Result<S, E>,
) -> Result<Vec<(GroupId, S)>, E> {
    let results = results.into_iter();
    results
        .map(|(group, result)| Ok((group, convert(result)?)))
        .collect()
}
