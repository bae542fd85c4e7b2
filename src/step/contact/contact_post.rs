//! Contacts on their way from the ranks that find them to the owners of their vertices: tests post
//! them as they end.

use weft_partition::Ownership;
use weft_runtime::ScopeError;
use weft_runtime::comm::{CommError, Rank};

use super::contacts::Batch;
use super::layer_contact::is_of;
use super::message::{decode, encode};
use crate::collide::{Contact, Surface};

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
                    let mut message = Vec::new();
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

    /// The contacts of messages.
    ///
    /// # Errors
    /// These are none that such a rank would send.
    pub(crate) fn open(&self, messages: Vec<(Rank, Vec<u8>)>) -> Result<Vec<Batch>, ScopeError> {
        let open = |(from, bytes): (Rank, Vec<u8>)| {
            let malformed = |what| CommError::Malformed { from, what };
            let contacts = decode(&bytes).map_err(malformed)?;
            if contacts.iter().all(|contact| self.knows(contact)) {
                Ok(Batch::new(&contacts))
            } else {
                let what = "a contact of vertices that do not exist";
                Err(malformed(what.to_owned()).into())
            }
        };
        messages.into_iter().map(open).collect()
    }

    fn knows(&self, contact: &Contact) -> bool {
        let vertices = self.ownership.vertices(self.ownership.ranks() - 1).end;
        (1..=4).contains(&contact.count)
            && contact.vertices.iter().all(|&v| (v as usize) < vertices)
            && is_of(contact, self.surface)
    }
}
