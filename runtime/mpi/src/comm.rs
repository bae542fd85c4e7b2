//! [`Comm`] over MPI: one rank's messages.
//!
//! Two communicators carry them. On the first, every message has its turn: short ones whole, into
//! buffers that wait for them, long ones as an announcement of their length. The bytes of long ones
//! follow on the second in pieces, each found by a matched probe and received straight to its
//! place. So an idle rank polls with one test of one request, nothing is probed for that was not
//! announced, and one message that is long under way holds up only later ones of the same sender
//! and tag.
//!
//! The tag that MPI sees holds ours in its low 16 bits and the kind of message above them.
//!
//! A rank that waits for another sleeps in the end; it then asks that rank, once, to tell it if it
//! leaves. So it does with those of which somebody wants to know whether they have left.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::{Duration, Instant};

use mpi::request;
use mpi::traits::CommunicatorCollectives as _;
use weft_runtime::comm::{Comm, CommError, Mailbox, Message, Rank, Tag};

use crate::end::{self, Failure};
use crate::idle::Backoff;
use crate::raw::{Inbox, Incoming, Lane, SHORT, Sending};
use crate::spare::Spares;
use crate::start::Mpi;

/// Sent messages that may wait for MPI to read them before each send looks after them.
const MANY_SENDING: usize = 64;
/// The number of these that are looked at in one go.
const LOOKED_AT: usize = 8;
/// The number of messages that are handed out before the next look for more.
const MANY_UNPOLLED: u32 = 32;
/// How long a rank waits for another before it asks whether that one has left.
const ASK_AFTER: Duration = Duration::from_millis(1);

/// Kinds of messages, above the 16 bits of a tag.
pub(crate) mod kind {
    pub(crate) const SHORT: i32 = 0;
    /// The length of a long message of this tag; the bytes come on the other lane.
    pub(crate) const LONG: i32 = 1 << 16;
    /// The sender has ended the job, and why.
    pub(crate) const ABORT: i32 = 2 << 16;
    /// Tell me when you leave.
    pub(crate) const ASK: i32 = 3 << 16;
    /// The sender has left.
    pub(crate) const LEFT: i32 = 4 << 16;
    /// The sender has failed and would say so: an exit code and a text.
    pub(crate) const VERDICT: i32 = 5 << 16;
    /// A message on the other lane that asks the receiver to give its verdict.
    pub(crate) const GO: i32 = 6 << 16;
    /// A message on the other lane: another rank gives its verdict.
    pub(crate) const HUSH: i32 = 7 << 16;
    /// The largest tag that is ever used.
    pub(crate) const LARGEST: i32 = (8 << 16) - 1;
}

/// The communicators of a job.
#[derive(Debug)]
pub(crate) struct Lanes {
    /// Short messages and announcements.
    pub(crate) turns: Lane,
    /// Pieces of long messages.
    pub(crate) bulk: Lane,
}

/// A rank that is an MPI process.
#[derive(Debug)]
pub(crate) struct MpiComm<'m> {
    mpi: &'m Mpi,
    // Closed before the lanes are.
    inbox: Inbox,
    lanes: Rc<Lanes>,
    mailbox: Mailbox,
    arriving: VecDeque<Arriving>,
    sending: VecDeque<Sending>,
    spares: Spares,
    /// Messages sent to and received from each rank, to know at the end that none is under way.
    sent: Vec<u64>,
    received: Vec<u64>,
    left: Vec<bool>,
    asked: Vec<bool>,
    unanswered: usize,
    /// Ranks to be asked when there is time.
    wondered_about: RefCell<Vec<Rank>>,
    /// Ranks to be told when this one leaves.
    askers: Vec<Rank>,
    leaving: bool,
    epochs: u32,
    aborted: Option<CommError>,
    /// Other ranks that have failed and wait to be told to say so.
    pub(crate) verdicts: VecDeque<(Rank, Failure)>,
    backoff: Backoff,
    /// Messages handed out since this rank last looked for more.
    unpolled: u32,
}

/// A message that is not wholly here, or that came behind one and must stay there.
#[derive(Debug)]
struct Arriving {
    from: Rank,
    tag: Tag,
    /// Nobody will ask for it.
    void: bool,
    body: Body,
}

#[derive(Debug)]
enum Body {
    Here(Vec<u8>),
    Long(Incoming),
}

impl<'m> MpiComm<'m> {
    /// Opens the lanes. Collective.
    pub(crate) fn open(mpi: &'m Mpi) -> Self {
        let size = mpi.size();
        let lanes = Rc::new(Lanes {
            turns: Lane::copy_of(mpi.world()),
            bulk: Lane::copy_of(mpi.world()),
        });
        end::watch_over(&lanes);
        Self {
            mpi,
            inbox: Inbox::open(&lanes.turns),
            lanes,
            mailbox: Mailbox::default(),
            arriving: VecDeque::new(),
            sending: VecDeque::new(),
            spares: Spares::default(),
            sent: vec![0; size],
            received: vec![0; size],
            left: vec![false; size],
            asked: vec![false; size],
            unanswered: 0,
            wondered_about: RefCell::default(),
            askers: Vec::new(),
            leaving: false,
            epochs: 0,
            aborted: None,
            verdicts: VecDeque::new(),
            backoff: Backoff::new(mpi.options().idle),
            unpolled: 0,
        }
    }

    pub(crate) fn lanes(&self) -> &Lanes {
        &self.lanes
    }

    /// Stays until every rank has come here and nothing is under way. Collective.
    pub(crate) fn leave_together(mut self) {
        self.leaving = true;
        for asker in std::mem::take(&mut self.askers) {
            self.post(asker, kind::LEFT, Vec::new());
        }
        while !self.sending.is_empty() || self.unanswered > 0 {
            self.look_round();
        }
        // The numbers of messages that each rank has sent to each say when all are here. A rank
        // that knows these numbers knows that all ranks have come.
        let sent = self.sent.clone();
        let mut due = vec![0_u64; sent.len()];
        let lanes = Rc::clone(&self.lanes);
        request::scope(|scope| {
            let bulk = lanes.bulk.comm();
            let mut request = bulk.immediate_all_to_all_into(scope, &sent[..], &mut due[..]);
            while let Err(open) = request.test() {
                request = open;
                self.look_round();
            }
        });
        while self.received != due || !self.arriving.is_empty() || !self.sending.is_empty() {
            self.look_round();
        }
        end::watch_no_more();
    }

    /// Polls once, and rests if there was nothing. Errors do not matter any more.
    pub(crate) fn look_round(&mut self) {
        if !self.poll() {
            self.pause(Duration::MAX);
        }
    }

    /// Rests between two polls, at most so long.
    fn pause(&mut self, at_most: Duration) {
        let going = self.sending.iter().map(Sending::len);
        let coming = self.arriving.iter().map(|arriving| match &arriving.body {
            Body::Here(_) => 0,
            Body::Long(long) => long.len(),
        });
        let under_way = going.chain(coming).fold(0, usize::saturating_add);
        self.backoff.pause(at_most, under_way);
    }

    /// Takes what has come; true if anything has.
    pub(crate) fn poll(&mut self) -> bool {
        self.take_some(usize::MAX)
    }

    /// Takes at most this many short messages and announcements, and what has come of long ones.
    fn take_some(&mut self, most: usize) -> bool {
        end::answer_panics(self.mpi, &self.lanes);
        let mut taken = 0;
        while taken < most
            && let Some((from, tag, bytes)) =
                (self.inbox).take(|from, tag, bytes| (Rank(from as u32), tag, bytes.to_vec()))
        {
            taken += 1;
            self.accept(from, tag, bytes);
        }
        let mut any = taken > 0;
        if !self.arriving.is_empty() {
            any |= self.take_pieces();
        }
        // Room for others' bytes is no news for who asks, but a reason to look again soon.
        if self.release_sent() | any {
            self.backoff.reset();
        }
        any
    }

    /// Files what came on the first lane.
    fn accept(&mut self, from: Rank, mpi_tag: i32, bytes: Vec<u8>) {
        let (kind, tag) = (mpi_tag & !0xffff, Tag((mpi_tag & 0xffff) as u16));
        if kind != kind::LEFT && kind != kind::VERDICT {
            self.received[from.index()] += 1;
        }
        match kind {
            kind::SHORT if self.is_behind_another(from, tag) => {
                self.queue(from, tag, Body::Here(bytes))
            }
            kind::SHORT => self.mailbox.put(tag, Message { from, bytes }),
            kind::LONG => {
                let total = bytes.first_chunk().map_or(0, |&b| u64::from_le_bytes(b));
                let room = usize::try_from(total).ok();
                let room = room.and_then(|total| self.spares.take(total));
                match Incoming::of(total, room.unwrap_or_default()) {
                    Ok(incoming) => self.queue(from, tag, Body::Long(incoming)),
                    Err(what) => self.refuse(from, what),
                }
            }
            kind::ABORT => {
                let reason = String::from_utf8_lossy(&bytes).into_owned();
                self.aborted
                    .get_or_insert(CommError::Aborted { rank: from, reason });
            }
            kind::ASK if self.leaving => self.post(from, kind::LEFT, Vec::new()),
            kind::ASK => self.askers.push(from),
            kind::LEFT => {
                self.left[from.index()] = true;
                self.unanswered -= usize::from(self.unanswered > 0);
            }
            kind::VERDICT => {
                let failure = end::read_verdict(&bytes);
                self.aborted.get_or_insert_with(|| CommError::Aborted {
                    rank: from,
                    reason: failure.message.clone(),
                });
                self.verdicts.push_back((from, failure));
            }
            _ => self.refuse(
                from,
                format!("it has the tag {mpi_tag}, which no rank uses"),
            ),
        }
    }

    fn queue(&mut self, from: Rank, tag: Tag, body: Body) {
        self.arriving.push_back(Arriving {
            from,
            tag,
            void: false,
            body,
        });
    }

    /// A message came that no correct rank sends: nothing that follows can be trusted.
    fn refuse(&mut self, from: Rank, what: String) {
        self.aborted
            .get_or_insert(CommError::Malformed { from, what });
    }

    /// Whether an earlier message of this sender and tag is not wholly here.
    fn is_behind_another(&self, from: Rank, tag: Tag) -> bool {
        let mut arriving = self.arriving.iter();
        arriving.any(|a| a.from == from && a.tag == tag)
    }

    /// Receives long messages; true if any piece has come or any message is whole.
    fn take_pieces(&mut self) -> bool {
        let mut any = false;
        for i in 0..self.arriving.len() {
            // Pieces of one sender and tag come in order: those of a later message only when all of
            // the earlier have been matched.
            let Arriving { from, tag, .. } = self.arriving[i];
            let earlier_open = self.arriving.range(..i).any(|a| {
                a.from == from
                    && a.tag == tag
                    && matches!(&a.body, Body::Long(long) if !long.is_matched())
            });
            if earlier_open {
                continue;
            }
            if let Body::Long(long) = &mut self.arriving[i].body {
                match long.take_pieces(&self.lanes.bulk, from.0 as i32, i32::from(tag.0)) {
                    Ok(came) => any |= came,
                    Err(what) => {
                        self.refuse(from, what);
                        self.arriving.remove(i);
                        return true;
                    }
                }
            }
        }
        // A message that is whole and behind no other is filed, which may free what is behind it.
        let mut i = 0;
        while i < self.arriving.len() {
            let Arriving { from, tag, .. } = self.arriving[i];
            let behind = (self.arriving.range(..i)).any(|a| a.from == from && a.tag == tag);
            let whole = match &mut self.arriving[i].body {
                Body::Here(_) => true,
                Body::Long(long) => long.is_done(),
            };
            if behind || !whole {
                i += 1;
                continue;
            }
            any = true;
            if let Some(arrived) = self.arriving.remove(i) {
                let bytes = match arrived.body {
                    Body::Here(bytes) => Some(bytes),
                    Body::Long(long) => long.into_bytes(),
                };
                if let Some(bytes) = bytes.filter(|_| !arrived.void) {
                    self.mailbox.put(tag, Message { from, bytes });
                }
            }
        }
        any
    }

    /// Frees what MPI has read; true if there was anything.
    fn release_sent(&mut self) -> bool {
        let before = self.sending.len();
        for _ in 0..before.min(LOOKED_AT) {
            if let Some(sending) = self.sending.pop_front() {
                self.put_away(sending);
            }
        }
        self.sending.len() < before
    }

    /// Keeps what MPI still reads, and the room of long messages that it has read.
    fn put_away(&mut self, sending: Sending) {
        match sending.into_bytes() {
            Ok(bytes) if bytes.len() > SHORT => self.spares.keep(bytes),
            Ok(_) => {}
            Err(sending) => self.sending.push_back(sending),
        }
    }

    /// Sends on the first lane.
    fn post(&mut self, to: Rank, mpi_tag: i32, bytes: Vec<u8>) {
        if mpi_tag != kind::LEFT {
            self.sent[to.index()] += 1;
        }
        let sending = Sending::start(&self.lanes.turns, to.0 as i32, mpi_tag, bytes);
        self.sending.extend(sending);
    }

    /// Asks a rank, once, to tell when it leaves.
    fn ask(&mut self, rank: Rank) {
        if !self.asked[rank.index()] {
            self.asked[rank.index()] = true;
            self.unanswered += 1;
            self.post(rank, kind::ASK, Vec::new());
        }
    }

    fn check(&self) -> Result<(), CommError> {
        self.aborted.clone().map_or(Ok(()), Err)
    }

    fn check_peer(&self, to: Rank) -> Result<(), CommError> {
        let size = self.size();
        if to.index() < size {
            Ok(())
        } else {
            Err(CommError::NoSuchRank { to, size })
        }
    }

    /// Whether nothing that waits to be asked for has come from that rank, nor will.
    fn is_gone(&self, from: Rank) -> bool {
        let me = from == self.rank();
        (me || self.left[from.index()]) && self.arriving.iter().all(|a| a.from != from)
    }
}

impl Comm for MpiComm<'_> {
    fn rank(&self) -> Rank {
        self.mpi.rank()
    }

    fn size(&self) -> usize {
        self.mpi.size()
    }

    fn now(&self) -> Duration {
        self.mpi.now()
    }

    fn send(&mut self, to: Rank, tag: Tag, bytes: Vec<u8>) -> Result<(), CommError> {
        self.check()?;
        self.check_peer(to)?;
        if to == self.rank() {
            self.mailbox.put(tag, Message { from: to, bytes });
            return Ok(());
        }
        if self.sending.len() >= MANY_SENDING {
            self.release_sent();
        }
        let low = i32::from(tag.0);
        if bytes.len() <= SHORT {
            self.post(to, kind::SHORT | low, bytes);
        } else {
            let length = (bytes.len() as u64).to_le_bytes().to_vec();
            self.post(to, kind::LONG | low, length);
            let piece = self.mpi.options().piece;
            let bulk = &self.lanes.bulk;
            let sending = Sending::start_pieces(bulk, to.0 as i32, low, bytes, piece);
            self.put_away(sending);
        }
        Ok(())
    }

    fn try_recv(&mut self, tag: Tag) -> Result<Option<Message>, CommError> {
        self.check()?;
        // Messages that are here came before those that a poll would find; but a rank that never
        // runs out of messages, for it sends some to itself, must hear others too.
        if self.unpolled < MANY_UNPOLLED
            && let Some(message) = self.mailbox.take(tag)
        {
            self.unpolled += 1;
            return Ok(Some(message));
        }
        self.unpolled = 0;
        self.poll();
        self.check()?;
        Ok(self.mailbox.take(tag))
    }

    #[expect(clippy::disallowed_methods, reason = "a driver reads the clock")]
    fn recv_from(&mut self, from: Rank, tag: Tag) -> Result<Vec<u8>, CommError> {
        self.check()?;
        self.check_peer(from)?;
        let mut since = None;
        loop {
            if let Some(bytes) = self.mailbox.take_from(from, tag) {
                return Ok(bytes);
            }
            if self.is_gone(from) {
                return Err(CommError::Left {
                    rank: from,
                    waiting: self.rank(),
                });
            }
            // One at a time: it may be the one.
            if self.take_some(1) {
                self.check()?;
                continue;
            }
            self.pause(Duration::MAX);
            if !self.asked[from.index()]
                && since.get_or_insert_with(Instant::now).elapsed() > ASK_AFTER
            {
                self.ask(from);
            }
        }
    }

    #[expect(clippy::disallowed_methods, reason = "a driver reads the clock")]
    fn wait(&mut self, at_most: Duration) -> Result<(), CommError> {
        self.check()?;
        for rank in self.wondered_about.take() {
            self.ask(rank);
        }
        let begin = Instant::now();
        while !self.mailbox.has_news() && !self.take_some(1) {
            let waited = begin.elapsed();
            if waited >= at_most {
                break;
            }
            self.pause(at_most - waited);
        }
        self.check()
    }

    fn close(&mut self, tag: Tag) {
        self.mailbox.close(tag);
    }

    fn reopen(&mut self, tag: Tag) {
        // Messages that have arrived, or were announced, came too early.
        self.poll();
        if self.mailbox.is_closed(tag) {
            let early = self.arriving.iter_mut().filter(|a| a.tag == tag);
            early.for_each(|a| a.void = true);
        }
        self.mailbox.reopen(tag);
    }

    fn next_epoch(&mut self) -> u32 {
        let epoch = self.epochs;
        self.epochs = epoch.wrapping_add(1);
        epoch
    }

    fn node_of(&self, rank: Rank) -> u32 {
        self.mpi.nodes().get(rank.index()).copied().unwrap_or(0)
    }

    fn has_left(&self, rank: Rank) -> bool {
        let Some(&asked) = self.asked.get(rank.index()) else {
            return false;
        };
        if rank == self.rank() {
            return false;
        }
        if !asked {
            let mut ranks = self.wondered_about.borrow_mut();
            if !ranks.contains(&rank) {
                ranks.push(rank);
            }
        }
        self.is_gone(rank)
    }

    fn abort(&mut self, reason: &str) {
        // Another rank may have been first.
        self.poll();
        if self.aborted.is_some() {
            return;
        }
        let rank = self.rank();
        let mut reason = reason.to_owned();
        end::shorten(&mut reason);
        for to in (0..self.size() as u32).map(Rank).filter(|&to| to != rank) {
            self.post(to, kind::ABORT, reason.clone().into_bytes());
        }
        self.aborted = Some(CommError::Aborted { rank, reason });
    }
}
