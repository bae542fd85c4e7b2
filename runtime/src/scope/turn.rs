//! A turn of the main thread: it reads messages, lets the scheduler decide, and then runs a batch
//! of tasks or backs off.

use std::time::Duration;

use super::workers::{Frame, WorkerHandle};
use super::{Scope, ScopeError};
use crate::comm::{CommError, Rank};
use crate::payload::{self, EncodedResult, EncodedTask, Payload, TaskResult};
use crate::scheduler::GroupId;
use crate::scheduler::message::{BlockMessage, SchedulerMessage};
use crate::sync::let_others;
use crate::trace::What;
use crate::wire;

/// Longest time an idle rank sleeps before it looks around again.
const LONGEST_BACK_OFF: Duration = Duration::from_micros(200);
/// And the shortest.
const SHORTEST_BACK_OFF: Duration = Duration::from_nanos(500);

/// Time for which it sleeps while its own workers are busy, whose reports do not wake it.
const BUSY_BACK_OFF: Duration = Duration::from_micros(10);
/// For so long after something was done it lets others run instead: what its workers do ends soon,
/// or they would have been split.
const SOON: Duration = Duration::from_micros(500);

impl<E: ?Sized + Sync> Scope<'_, E> {
    /// One round: messages, what other workers left, decisions, and a batch of tasks or a back-off.
    /// This thread runs only tasks within that group; `nested`: for a task that waits.
    pub(super) fn turn(&mut self, within: Option<GroupId>, nested: bool) -> Result<(), ScopeError> {
        let mut progress = self.receive()?;
        if !self.workers.is_empty() {
            while let Ok(report) = self.reports.try_recv() {
                self.hear(report)?;
                progress = true;
            }
        }
        let now = self.comm.now();
        if self.recorder.is_on() {
            self.note_pool(now);
        }
        self.scheduler.tick(now);
        let anybody_busy = self.current.is_some() || self.workers.iter().any(WorkerHandle::is_busy);
        if anybody_busy && self.scheduler.wants_split(now) {
            self.ask_for_splits();
        }
        progress |= self.give_orders();
        self.flush()?;
        if self.works && self.work(within, nested)? {
            self.watch.moved = now;
            return Ok(());
        }
        if self.works {
            // A worker that goes on for long may hold tasks that this thread may run.
            self.take_back();
        }
        self.look_for_work(now, within);
        // In the tree of waves none leaves before those above it know the end, and tell it.
        if !self.scheduler.may_leave() {
            let near = self.scheduler.near();
            if let Some(rank) = near.into_iter().find(|&rank| self.comm.has_left(rank)) {
                return Err(ScopeError::Absent { rank });
            }
        }
        if let Some(who) = self.scheduler.stuck() {
            return Err(ScopeError::Stuck(who));
        }
        self.flush()?;
        // The last to look for work may have found that there is none: a join that waits for that
        // does not back off.
        progress |= within.is_some_and(|group| self.scheduler.is_group_exhausted(group));
        if progress {
            self.watch.moved = now;
        } else if !self.scheduler.may_leave() {
            let busy = self.workers.iter().any(WorkerHandle::is_busy);
            if !busy && !nested && self.work_while_waiting()? {
                return Ok(());
            }
            self.complain(now);
            if busy {
                // Their reports would not wake this thread.
                if now.saturating_sub(self.watch.moved) < SOON {
                    let_others();
                } else {
                    self.comm.wait(BUSY_BACK_OFF)?;
                }
            } else {
                let deadline = self.scheduler.next_deadline(now);
                let back_off = deadline.map_or(LONGEST_BACK_OFF, |at| at.saturating_sub(now));
                self.comm
                    .wait(back_off.clamp(SHORTEST_BACK_OFF, LONGEST_BACK_OFF))?;
            }
        }
        Ok(())
    }

    /// Somebody here has nothing to do: asks for something that he may run.
    pub(super) fn look_for_work(&mut self, now: Duration, within: Option<GroupId>) {
        let restless = self.workers.iter().any(|handle| handle.frames.is_empty());
        if restless {
            self.scheduler.idle(now, None);
        } else if self.works {
            self.scheduler.idle(now, within);
        } else {
            // Workers that wait in a join of a task's group may need what others have of it.
            let waits = |handle: &WorkerHandle<E>| match handle.frames.last() {
                Some(Frame::WaitsIn(ancestry)) => Some(ancestry.group()),
                _ => None,
            };
            self.turn = self.turn.wrapping_add(1);
            let from = self.turn % self.workers.len().max(1);
            let (before, after) = self.workers.split_at(from);
            match after.iter().chain(before).find_map(waits) {
                Some(group) => self.scheduler.idle(now, Some(group)),
                None => self.scheduler.settle(),
            }
        }
    }

    /// Reads messages; true if there were any that move something.
    pub(super) fn receive(&mut self) -> Result<bool, ScopeError> {
        let mut progress = false;
        let silent_until = self.recorder.is_on().then(|| self.comm.now());
        let mut requests = 0;
        while let Some(message) = self.comm.try_recv(self.tag)? {
            let from = message.from;
            let rank = self.comm.rank();
            let bytes = self.introductions.hear(rank, from, &message.bytes)?;
            let malformed = |what: String| CommError::Malformed { from, what };
            let message: SchedulerMessage<EncodedTask, EncodedResult> =
                wire::decode(bytes).map_err(malformed)?;
            let message = payload::unpack(message, self.registry, rank).map_err(malformed)?;
            requests += u32::from(matches!(message, SchedulerMessage::StealRequest(_)));
            progress |= self.sees(from, &message);
            let cancels = matches!(
                message,
                SchedulerMessage::Cancel(..) | SchedulerMessage::CancelLease(_)
            );
            let now = self.comm.now();
            self.scheduler
                .receive(from, message, now)
                .map_err(|v| CommError::Malformed {
                    from: v.from,
                    what: v.what,
                })?;
            if cancels {
                // Nothing that is cancelled is to begin of what is ahead of workers.
                self.take_back();
            }
        }
        if let Some(now) = silent_until {
            self.note_deafness(now, requests);
        }
        Ok(progress)
    }

    /// Looks at a message before the scheduler gets it; true if it is more than idle talk.
    pub(super) fn sees(
        &mut self,
        from: Rank,
        message: &SchedulerMessage<Payload<E>, TaskResult>,
    ) -> bool {
        match message {
            SchedulerMessage::StealRequest(within) => {
                // Split now what runs here, or the thief gets nothing.
                if self.scheduler.wants_split_on_request()
                    && let Some(mut running) = self.current.take()
                {
                    let ancestry = running.0.ancestry();
                    if within.is_none_or(|group| ancestry.is_within(group)) {
                        self.split_off(&mut running);
                    }
                    self.current = Some(running);
                }
                false
            }
            SchedulerMessage::StealAnswer(bundles) => {
                let tasks = bundles.iter().map(|b| b.tasks.len() as u32).sum();
                self.note(What::Answered {
                    victim: from.0,
                    tasks,
                });
                tasks > 0
            }
            SchedulerMessage::Gift(bundles) => {
                let tasks = bundles.iter().map(|b| b.tasks.len() as u32).sum();
                self.note(What::Got {
                    victim: from.0,
                    tasks,
                });
                true
            }
            SchedulerMessage::Block(answer) => {
                let bytes = match answer {
                    BlockMessage::Fetch { .. } => return true,
                    BlockMessage::Delivery { bytes, .. } => bytes.len(),
                    BlockMessage::Refusal { .. } => 0,
                };
                let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
                self.note(What::Fetched { bytes });
                true
            }
            SchedulerMessage::Report(_, _, results) => !results.is_empty(),
            SchedulerMessage::Improved { bound, code, .. } => {
                self.bounds.merge(*bound, *code);
                false
            }
            SchedulerMessage::Wave(_) | SchedulerMessage::Lifeline(_) => false,
            _ => true,
        }
    }

    /// Sends what the scheduler wants sent.
    pub(super) fn flush(&mut self) -> Result<(), ScopeError> {
        while let Some((to, message)) = self.scheduler.outgoing() {
            let rank = self.comm.rank();
            let message = payload::pack(message, self.registry, rank, self.longest[1]);
            match &message {
                SchedulerMessage::StealRequest(_) => self.note(What::Asked { victim: to.0 }),
                SchedulerMessage::StealAnswer(bundles) | SchedulerMessage::Gift(bundles) => {
                    let tasks = bundles.iter().map(|b| b.tasks.len() as u32).sum();
                    let thief = to.0;
                    self.note(match &message {
                        SchedulerMessage::Gift(_) => What::Gifted { thief, tasks },
                        _ => What::Gave { thief, tasks },
                    });
                }
                SchedulerMessage::Results(results) => {
                    let count = results.len() as u32;
                    self.note(What::Results { to: to.0, count });
                }
                SchedulerMessage::Block(BlockMessage::Fetch { reader, .. }) if *reader == rank => {
                    self.note(What::Fetch { from: to.0 });
                }
                _ => {}
            }
            let bytes = wire::encode_within(&message, self.longest[0]);
            let bytes = bytes.map_err(|why| {
                let what = format!("{} to rank {}", message.for_people(), to.0);
                CommError::unsendable(rank, what)(why)
            })?;
            let bytes = match self.introductions.before(to) {
                Some(mut all) => {
                    all.extend(bytes);
                    all
                }
                None => bytes,
            };
            self.report.bytes += bytes.len() as u64;
            self.comm.send(to, self.tag, bytes)?;
        }
        Ok(())
    }
}
