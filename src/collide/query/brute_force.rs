//! Brute force: the contacts of a step by testing every pair of triangles.

use crate::collide::bodies::collider::Collider;
use crate::collide::narrow::contact::Contact;
use crate::collide::narrow::features;
use crate::collide::query::snapshot::Snapshot;

/// Finds all contacts of a step by testing every pair of triangles: slow, simple, the reference.
#[must_use]
pub fn brute_force(snap: &Snapshot<'_>) -> Vec<Contact> {
    let mut out = Vec::new();
    let cloth = snap.cloth.surface().triangles().len() as u32;
    if snap.self_collision {
        for s in 0..cloth {
            for t in s + 1..cloth {
                features::all_of_pair(snap, [s, t], &mut out);
            }
        }
    }
    for (b, body) in (0..).zip(snap.bodies()) {
        for t in 0..cloth {
            match body {
                Collider::Triangles(solid) => {
                    for f in 0..solid.surface.triangles().len() as u32 {
                        features::body_pair(snap, (b, solid), t, f, &mut out);
                    }
                }
                solid => {
                    if let Some(solid) = solid.implicit() {
                        features::implicit(snap, (b, solid), t, &mut out);
                    }
                }
            }
        }
    }
    out.sort_unstable_by_key(|c| c.id);
    out
}
