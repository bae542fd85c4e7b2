//! Contacts as bytes, for letters between ranks of one run: one after the other, [`BYTES`] each, little-endian.
//!
//! Ranks send each other thousands in a step; what encodes anything takes as long for one as for finding it.

use glam::DVec3;

use crate::collide::Contact;
use crate::collide::contact::{PairId, PairKind};

/// Bytes of a contact: kind and count; the numbers of body, features and vertices; weights, normal, gap, target, velocity of the body.
pub(crate) const BYTES: usize = 2 + 7 * 4 + 12 * 8;

const KINDS: [PairKind; 5] = [
    PairKind::VertexFace,
    PairKind::EdgeEdge,
    PairKind::VertexBody,
    PairKind::FaceBody,
    PairKind::EdgeBody,
];

/// Adds a contact to a letter.
pub(super) fn write(contact: &Contact, letter: &mut Vec<u8>) {
    let Contact {
        id,
        count,
        vertices,
        weights,
        normal,
        gap,
        target,
        body_velocity,
    } = contact;
    let mut bytes = [0; BYTES];
    let ([kind, counted], rest) = bytes.split_first_chunk_mut().expect("two bytes of many");
    (*kind, *counted) = (id.kind as u8, *count);
    let (numbers, reals) = rest.split_at_mut(7 * 4);
    let [p, q, r, s] = *vertices;
    for (bytes, number) in
        (numbers.as_chunks_mut().0.iter_mut()).zip([id.body, id.a, id.b, p, q, r, s])
    {
        *bytes = number.to_le_bytes();
    }
    let [a, b, c, d] = *weights;
    let (n, v) = (normal, body_velocity);
    let all = [a, b, c, d, n.x, n.y, n.z, *gap, *target, v.x, v.y, v.z];
    for (bytes, real) in reals.as_chunks_mut().0.iter_mut().zip(all) {
        *bytes = real.to_le_bytes();
    }
    letter.extend_from_slice(&bytes);
}

/// The contacts of a letter.
///
/// # Errors
/// A sentence: these are no contacts.
pub(super) fn read(letter: &[u8]) -> Result<Vec<Contact>, String> {
    let (contacts, []) = letter.as_chunks::<BYTES>() else {
        return Err(format!(
            "contacts of {} bytes, not of {BYTES} each",
            letter.len()
        ));
    };
    let mut all = Vec::with_capacity(contacts.len());
    for bytes in contacts {
        all.push(contact(bytes)?);
    }
    Ok(all)
}

fn contact(bytes: &[u8; BYTES]) -> Result<Contact, String> {
    let (&[kind, count], rest) = bytes.split_first_chunk().expect("two bytes of many");
    let (numbers, reals) = rest.split_at(7 * 4);
    let mut u = [0; 7];
    for (number, bytes) in u.iter_mut().zip(numbers.as_chunks().0) {
        *number = u32::from_le_bytes(*bytes);
    }
    let mut f = [0.0; 12];
    for (real, bytes) in f.iter_mut().zip(reals.as_chunks().0) {
        *real = f64::from_le_bytes(*bytes);
    }
    let kind = KINDS.get(usize::from(kind));
    let kind = *kind.ok_or_else(|| "a contact of no kind".to_owned())?;
    Ok(made_of(kind, count, u, f))
}

/// In the order in which they stand in a letter.
fn made_of(kind: PairKind, count: u8, u: [u32; 7], f: [f64; 12]) -> Contact {
    Contact {
        id: PairId {
            kind,
            body: u[0],
            a: u[1],
            b: u[2],
        },
        count,
        vertices: [u[3], u[4], u[5], u[6]],
        weights: [f[0], f[1], f[2], f[3]],
        normal: DVec3::new(f[4], f[5], f[6]),
        gap: f[7],
        target: f[8],
        body_velocity: DVec3::new(f[9], f[10], f[11]),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_contact() -> impl Strategy<Value = Contact> {
        let numbers = (0..KINDS.len(), any::<[u32; 7]>(), any::<u8>());
        (numbers, any::<[f64; 12]>())
            .prop_map(|((kind, u, count), f)| made_of(KINDS[kind], count, u, f))
    }

    proptest! {
        #[test]
        fn contacts_come_as_they_were_sent(sent in prop::collection::vec(any_contact(), 0..9)) {
            let mut letter = Vec::new();
            sent.iter().for_each(|contact| write(contact, &mut letter));
            prop_assert_eq!(letter.len(), BYTES * sent.len());
            prop_assert_eq!(read(&letter).unwrap(), sent);
        }

        #[test]
        fn what_is_read_is_what_was_there(mut bytes in prop::collection::vec(any::<u8>(), BYTES)) {
            bytes[0] %= 8;
            if let Ok(contacts) = read(&bytes) {
                let mut letter = Vec::new();
                contacts.iter().for_each(|contact| write(contact, &mut letter));
                prop_assert_eq!(letter, bytes);
            }
        }
    }

    #[test]
    fn a_letter_that_is_cut_off_or_of_no_kind_says_so() {
        let whole = [0; BYTES];
        assert!(read(&whole[1..]).unwrap_err().contains("125 bytes"));
        let mut other = whole;
        other[0] = KINDS.len() as u8;
        assert_eq!(read(&other).unwrap_err(), "a contact of no kind");
    }
}
