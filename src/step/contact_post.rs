//! Contacts on their way from the ranks that find them to the owners of their vertices.
//!
//! They are posted while tests still run, a few at a time; when these have ended ranks only agree on how many letters there
//! are, most of which have come.

use weft_partition::Ownership;
use weft_runtime::comm::{Collectives, Comm, CommError, Rank, Tag};
use weft_runtime::{ScopeError, wire};

use super::contacts::Batch;
use crate::collide::Contact;

pub(super) const TAG: Tag = Tag(0x3c);

/// A rank's contacts, out and in.
pub(super) struct Post<'a> {
    ownership: &'a Ownership,
    me: usize,
    /// For each rank, what it will be sent; of this one, what is here.
    boxes: Vec<Vec<Contact>>,
    /// To whom letters were sent.
    sent: Vec<Rank>,
}

/// Contacts in a letter, unless it is the last: so many that it takes longer than a message without any, and so few that the last ones, which
/// all ranks wait for, are short.
const LETTER: usize = 8;

impl<'a> Post<'a> {
    pub(super) fn new(ownership: &'a Ownership, me: usize) -> Self {
        Self {
            ownership,
            me,
            boxes: vec![Vec::new(); ownership.ranks()],
            sent: Vec::new(),
        }
    }

    /// Puts contacts that were found here into the boxes of all who own vertices of theirs, and sends what has become a letter; all, if there are
    /// no more to come for a while.
    pub(super) fn put(
        &mut self,
        found: Vec<Batch>,
        all: bool,
        send: &mut dyn FnMut(Rank, Vec<u8>) -> Result<(), CommError>,
    ) -> Result<(), ScopeError> {
        for contact in found.into_iter().flat_map(Batch::into_contacts) {
            if !self.knows(&contact) {
                let what = "a task found a contact of vertices that do not exist";
                return Err(ScopeError::Body(what.to_owned()));
            }
            let vertices = &contact.vertices[..usize::from(contact.count)];
            let owner = |&vertex: &u32| self.ownership.rank_of_vertex(vertex as usize);
            for (k, vertex) in vertices.iter().enumerate() {
                let rank = owner(vertex);
                if vertices[..k].iter().all(|before| owner(before) != rank) {
                    self.boxes[rank].push(contact);
                }
            }
        }
        self.send_from(if all { 1 } else { LETTER }, send)
    }

    /// Sends what has come to so many contacts.
    fn send_from(
        &mut self,
        least: usize,
        send: &mut dyn FnMut(Rank, Vec<u8>) -> Result<(), CommError>,
    ) -> Result<(), ScopeError> {
        let me = self.me;
        for rank in (0..self.boxes.len()).filter(|&rank| rank != me) {
            if self.boxes[rank].len() >= least {
                self.send(rank, send)?;
            }
        }
        Ok(())
    }

    fn send(
        &mut self,
        rank: usize,
        send: &mut dyn FnMut(Rank, Vec<u8>) -> Result<(), CommError>,
    ) -> Result<(), ScopeError> {
        let bytes = wire::encode(&self.boxes[rank])
            .map_err(|what| ScopeError::Body(format!("contacts cannot be sent: {what}")))?;
        self.boxes[rank].clear();
        let to = Rank(rank as u32);
        self.sent.push(to);
        Ok(send(to, bytes)?)
    }

    /// Takes what others have sent. Collective.
    pub(super) fn take(mut self, comm: &mut dyn Comm) -> Result<Vec<Batch>, ScopeError> {
        let mut all = vec![Batch::new(std::mem::take(&mut self.boxes[self.me]))];
        for (from, bytes) in comm.take_sent(&self.sent, TAG)? {
            let malformed = |what| CommError::Malformed { from, what };
            let contacts: Vec<Contact> = wire::decode(&bytes).map_err(malformed)?;
            if !contacts.iter().all(|contact| self.knows(contact)) {
                return Err(malformed("a contact of vertices that do not exist".to_owned()).into());
            }
            all.push(Batch::new(contacts));
        }
        Ok(all)
    }

    fn knows(&self, contact: &Contact) -> bool {
        let vertices = self.ownership.vertices(self.ownership.ranks() - 1).end;
        (1..=4).contains(&contact.count)
            && contact.vertices.iter().all(|&v| (v as usize) < vertices)
    }
}
