//! Messages of contacts between the ranks of a run: records one after the other, as they stand in
//! memory.
//!
//! Ranks send each other thousands of contacts in a step. A general encoder takes as long for one
//! as the test that finds it. The ranks of a run are one program on one kind of machine, so numbers
//! travel in its byte order.

use bytemuck::{Pod, Zeroable};
use glam::DVec3;

use crate::collide::Contact;
use crate::collide::contact::{PairId, PairKind};

/// The number of bytes of a contact in a message.
pub(crate) const CONTACT_BYTES: usize = size_of::<Record>();

const KINDS: [PairKind; 5] = [
    PairKind::VertexFace,
    PairKind::EdgeEdge,
    PairKind::VertexBody,
    PairKind::FaceBody,
    PairKind::EdgeBody,
];

/// A contact in a message: the fields of [`Contact`] without gaps between them.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, packed)]
struct Record {
    kind: u8,
    count: u8,
    body: u32,
    a: u32,
    b: u32,
    vertices: [u32; 4],
    weights: [f64; 4],
    normal: [f64; 3],
    gap: f64,
    target: f64,
    body_velocity: [f64; 3],
}

impl From<&Contact> for Record {
    fn from(contact: &Contact) -> Self {
        let PairId { kind, body, a, b } = contact.id;
        Self {
            kind: kind as u8,
            count: contact.count,
            body,
            a,
            b,
            vertices: contact.vertices,
            weights: contact.weights,
            normal: contact.normal.to_array(),
            gap: contact.gap,
            target: contact.target,
            body_velocity: contact.body_velocity.to_array(),
        }
    }
}

impl Record {
    /// The contact; `None` if there is no such kind.
    fn contact(&self) -> Option<Contact> {
        let kind = *KINDS.get(usize::from(self.kind))?;
        Some(Contact {
            id: PairId {
                kind,
                body: self.body,
                a: self.a,
                b: self.b,
            },
            count: self.count,
            vertices: self.vertices,
            weights: self.weights,
            normal: DVec3::from_array(self.normal),
            gap: self.gap,
            target: self.target,
            body_velocity: DVec3::from_array(self.body_velocity),
        })
    }
}

/// Adds a contact to a message.
pub(super) fn encode(contact: &Contact, message: &mut Vec<u8>) {
    message.extend_from_slice(bytemuck::bytes_of(&Record::from(contact)));
}

/// The contacts of a message.
///
/// # Errors
/// A sentence: these are no contacts.
pub(super) fn decode(message: &[u8]) -> Result<Vec<Contact>, String> {
    let records: &[Record] = bytemuck::try_cast_slice(message).map_err(|_| {
        format!(
            "contacts of {} bytes, not of {CONTACT_BYTES} each",
            message.len()
        )
    })?;
    let contacts: Option<Vec<Contact>> = records.iter().map(Record::contact).collect();
    contacts.ok_or_else(|| "a contact of no kind".to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_contact() -> impl Strategy<Value = Contact> {
        let numbers = (0..KINDS.len(), any::<u8>(), any::<[u32; 3]>());
        let rest = (any::<[u32; 4]>(), any::<[f64; 4]>(), any::<[f64; 8]>());
        (numbers, rest).prop_map(
            |((kind, count, [body, a, b]), (vertices, weights, f))| Contact {
                id: PairId {
                    kind: KINDS[kind],
                    body,
                    a,
                    b,
                },
                count,
                vertices,
                weights,
                normal: DVec3::new(f[0], f[1], f[2]),
                gap: f[3],
                target: f[4],
                body_velocity: DVec3::new(f[5], f[6], f[7]),
            },
        )
    }

    fn encoded(contacts: &[Contact]) -> Vec<u8> {
        let mut message = Vec::new();
        contacts.iter().for_each(|c| encode(c, &mut message));
        message
    }

    proptest! {
        #[test]
        fn contacts_come_as_they_were_sent(sent in prop::collection::vec(any_contact(), 0..9)) {
            let message = encoded(&sent);
            prop_assert_eq!(message.len(), 126 * sent.len());
            prop_assert_eq!(decode(&message).unwrap(), sent);
        }

        #[test]
        fn a_contact_message_reads_back_as_it_was_written(
            mut bytes in prop::collection::vec(any::<u8>(), CONTACT_BYTES),
        ) {
            bytes[0] %= 8;
            match decode(&bytes) {
                Ok(contacts) => prop_assert_eq!(encoded(&contacts), bytes),
                Err(_) => prop_assert!(usize::from(bytes[0]) >= KINDS.len()),
            }
        }
    }

    #[test]
    fn kinds_are_numbered_as_they_are_listed() {
        for (number, kind) in KINDS.into_iter().enumerate() {
            assert_eq!(kind as usize, number);
        }
    }

    #[test]
    fn a_message_that_is_cut_off_or_of_no_kind_says_so() {
        let whole = [0; CONTACT_BYTES];
        assert!(decode(&whole[1..]).unwrap_err().contains("125 bytes"));
        let mut other = whole;
        other[0] = KINDS.len() as u8;
        assert_eq!(decode(&other).unwrap_err(), "a contact of no kind");
    }
}
