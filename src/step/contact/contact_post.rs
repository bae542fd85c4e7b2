//! Contacts on their way from the ranks that find them to the owners of their vertices: tests post
//! them as they end.

use weft_partition::Ownership;
use weft_runtime::ScopeError;
use weft_runtime::comm::{CommError, Rank};

use super::contacts::Batch;
use super::layer_contact::is_of;
use super::message::{decode, encode};
use crate::collide::{Candidate, Contact, Geometry, Surface};

/// The first bytes of messages, by what they hold.
const CONTACTS: u8 = 0;
const CANDIDATES: u8 = 1;

/// The contents of messages.
#[derive(Debug, Default)]
pub(crate) struct Opened {
    pub(crate) contacts: Vec<Batch>,
    /// The pairs that tests looked at which were stolen from this rank.
    pub(crate) candidates: Vec<Vec<Candidate>>,
}

/// The way of contacts to the owners of their vertices.
#[derive(Clone, Copy)]
pub(crate) struct Post<'a> {
    ownership: &'a Ownership,
    surface: &'a Surface,
    me: usize,
}

impl<'a> Post<'a> {
    pub(crate) fn new(ownership: &'a Ownership, surface: &'a Surface, me: usize) -> Self {
        Self {
            ownership,
            surface,
            me,
        }
    }

    /// Posts contacts that were found together to all who own vertices of theirs; gives back those
    /// of this rank.
    ///
    /// # Panics
    /// If one is of vertices that do not exist: some other rank has sent what no rank would.
    pub(crate) fn hand_out(
        &self,
        found: Vec<Contact>,
        mut post: impl FnMut(Rank, Vec<u8>),
    ) -> Vec<Contact> {
        let mut own = Vec::new();
        let mut boxes: Vec<(usize, Vec<u8>)> = Vec::new();
        for contact in found {
            assert!(self.knows(&contact), "a contact of no vertices");
            let vertices = &contact.vertices[..usize::from(contact.count)];
            let owner = |&vertex: &u32| self.ownership.rank_of_vertex(vertex as usize);
            for (k, vertex) in vertices.iter().enumerate() {
                let rank = owner(vertex);
                if vertices[..k].iter().any(|before| owner(before) == rank) {
                    continue;
                }
                if rank == self.me {
                    own.push(contact);
                } else if let Some((_, message)) = boxes.iter_mut().find(|(to, _)| *to == rank) {
                    encode(&contact, message);
                } else {
                    let mut message = vec![CONTACTS];
                    encode(&contact, &mut message);
                    boxes.push((rank, message));
                }
            }
        }
        for (to, message) in boxes {
            post(Rank(to as u32), message);
        }
        own
    }

    /// Posts the pairs that a stolen test looked at to the rank that knows its vertices; gives them
    /// back if that is this one.
    pub(crate) fn return_to(
        &self,
        owner: u32,
        candidates: Vec<Candidate>,
        mut post: impl FnMut(Rank, Vec<u8>),
    ) -> Option<Vec<Candidate>> {
        if owner as usize == self.me {
            return Some(candidates);
        }
        if !candidates.is_empty() {
            let mut message = vec![CANDIDATES];
            message.extend_from_slice(bytemuck::cast_slice(&candidates));
            post(Rank(owner), message);
        }
        None
    }

    /// The contacts and pairs of messages.
    ///
    /// # Errors
    /// These are none that such a rank would send.
    pub(crate) fn open(
        &self,
        messages: Vec<(Rank, Vec<u8>)>,
        geometry: &Geometry<'_>,
    ) -> Result<Opened, ScopeError> {
        let mut opened = Opened::default();
        for (from, bytes) in messages {
            let malformed = |what: String| CommError::Malformed { from, what };
            match bytes.split_first() {
                Some((&CONTACTS, bytes)) => {
                    let contacts = decode(bytes).map_err(malformed)?;
                    if !contacts.iter().all(|contact| self.knows(contact)) {
                        let what = "a contact of vertices that do not exist";
                        return Err(malformed(what.to_owned()).into());
                    }
                    opened.contacts.push(Batch::new(&contacts));
                }
                Some((&CANDIDATES, bytes)) => {
                    let read = bytemuck::try_pod_read_unaligned::<Candidate>;
                    let each = bytes.chunks(size_of::<Candidate>());
                    let each = each.map(|bytes| {
                        let candidate = read(bytes).ok();
                        candidate.filter(|candidate| candidate.exists(geometry))
                    });
                    let candidates: Option<Vec<Candidate>> = each.collect();
                    let what = || "a pair of features that does not exist".to_owned();
                    let candidates = candidates.ok_or_else(|| malformed(what()))?;
                    opened.candidates.push(candidates);
                }
                _ => return Err(malformed("neither contacts nor pairs".to_owned()).into()),
            }
        }
        Ok(opened)
    }

    fn knows(&self, contact: &Contact) -> bool {
        let vertices = self.ownership.vertices(self.ownership.ranks() - 1).end;
        (1..=4).contains(&contact.count)
            && contact.vertices.iter().all(|&v| (v as usize) < vertices)
            && is_of(contact, self.surface)
    }
}
