//! Findings: what test runs find in a step, contacts and, if asked for, every pair that trees left
//! over.
//!
//! Certification asks for the pairs. Swept volumes are inflated by half the reach of contacts each,
//! so a pair that was left out stays the reach apart while its vertices go as foreseen. It stays
//! apart still where they end elsewhere by less than half the reach. So the search of contacts
//! serves the certification of a step, too.

use bytemuck::{Pod, Zeroable};

use crate::collide::bodies::collider::{BodySurface, Collider, Implicit};
use crate::collide::cull::rest_adjacent::RestAdjacentPair;
use crate::collide::narrow::contact::{Contact, PairKind};
use crate::collide::narrow::feature_filter::{FeatureFilter, Leaves};
use crate::collide::narrow::features;
use crate::collide::query::snapshot::{Geometry, Snapshot};
use crate::collide::query::test_run::Sink;
use crate::heap_bytes::owns_no_heap;

/// A pair whose volumes overlapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Candidate {
    /// The kind: one of the constants of this type.
    pub(crate) kind: u32,
    /// The body, if there is one.
    pub(crate) body: u32,
    /// The first feature, of cloth.
    pub(crate) a: u32,
    /// The second feature, of cloth or of the body.
    pub(crate) b: u32,
}

owns_no_heap!(Candidate);

impl Candidate {
    /// A vertex and a face of cloth.
    pub(crate) const VERTEX_FACE: u32 = 0;
    /// Two edges of cloth.
    pub(crate) const EDGES: u32 = 1;
    /// A triangle of cloth, and one of a body.
    pub(crate) const TRIANGLES: u32 = 2;
    /// A triangle of cloth, and a body that is given by its signed distance.
    pub(crate) const SOLID: u32 = 3;

    /// Whether it is of cloth and a body, and such features exist.
    pub(crate) fn is_of_bodies(&self, geometry: &Geometry<'_>) -> bool {
        let exists = |of: &[[u32; 3]], triangle: u32| (triangle as usize) < of.len();
        let body = geometry.bodies.get(self.body as usize);
        exists(geometry.cloth.surface().triangles(), self.a)
            && match (self.kind, body) {
                (Self::TRIANGLES, Some(Collider::Triangles(body))) => {
                    exists(body.surface.triangles(), self.b)
                }
                (Self::SOLID, Some(body)) => body.is_implicit(),
                _ => false,
            }
    }

    /// Whether such features exist.
    pub(crate) fn exists(&self, geometry: &Geometry<'_>) -> bool {
        let surface = geometry.cloth.surface();
        let [vertices, faces, edges] = [
            geometry.cloth.rest().len(),
            surface.triangles().len(),
            surface.edges().len(),
        ];
        let (a, b) = (self.a as usize, self.b as usize);
        match self.kind {
            Self::VERTEX_FACE => a < vertices && b < faces,
            Self::EDGES => a < edges && b < edges,
            _ => self.is_of_bodies(geometry),
        }
    }

    fn of_cloth(kind: PairKind, a: u32, b: u32) -> Self {
        let kind = if kind == PairKind::VertexFace {
            Self::VERTEX_FACE
        } else {
            Self::EDGES
        };
        Self {
            kind,
            body: 0,
            a,
            b,
        }
    }
}

/// The findings of test runs.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// The contacts, in no order that matters.
    pub(crate) contacts: Vec<Contact>,
    /// All pairs whose volumes overlapped, if they are asked for.
    pub(crate) candidates: Option<Vec<Candidate>>,
}

impl Findings {
    /// Finds the contacts of a pair of cloth and a body that came out of a search, also of one over
    /// a longer time.
    pub(crate) fn look_at(&mut self, snap: &Snapshot<'_>, candidate: &Candidate) {
        let &Candidate { kind, body, a, b } = candidate;
        match snap.body(body) {
            Collider::Triangles(surface) if kind == Candidate::TRIANGLES => {
                self.body(snap, (body, surface), [a, b]);
            }
            solid if kind == Candidate::SOLID => {
                if let Some(solid) = solid.implicit() {
                    self.solid(snap, (body, solid), a);
                }
            }
            Collider::Triangles(_) | Collider::Analytic(_) | Collider::Distance(_) => {}
        }
    }

    /// Leaves out the contacts, from a number on, of vertices that their body lets through.
    fn leave_out_suspended(&mut self, snap: &Snapshot<'_>, from: usize) {
        if !snap.suspended.is_empty() {
            self.leave_out(from, |contact| {
                let vertices = contact.vertices.iter().zip(&contact.weights);
                let mut of_it = vertices.filter(|(_, weight)| **weight != 0.0);
                of_it.any(|(&v, _)| snap.suspended.binary_search(&[v, contact.id.body]).is_ok())
            });
        }
    }

    /// Leaves out the contacts, from a number on, of cloth that the kept set lets through cloth.
    fn leave_out_kept(&mut self, snap: &Snapshot<'_>, from: usize) {
        if !snap.kept.is_empty() {
            self.leave_out(from, |contact| {
                let of_first = match contact.id.kind {
                    PairKind::VertexFace => 1,
                    _ => 2,
                };
                let (first, second) = contact.vertices.split_at(of_first);
                snap.kept.lets_pass(first, second)
            });
        }
    }

    fn leave_out(&mut self, from: usize, is_left_out: impl Fn(&Contact) -> bool) {
        let mut at = from;
        while let Some(contact) = self.contacts.get(at) {
            if is_left_out(contact) {
                self.contacts.swap_remove(at);
            } else {
                at += 1;
            }
        }
    }
}

/// Whether two features of cloth, by their numbers, pass through each other.
#[inline]
fn lets(snap: &Snapshot<'_>, kind: PairKind, [a, b]: [u32; 2]) -> bool {
    let surface = snap.cloth.surface();
    if surface.passing().is_none() {
        return false;
    }
    let edge = |edge: u32| &surface.edges()[edge as usize];
    match kind {
        PairKind::VertexFace => (surface.passing()).lets(&[a], &surface.triangles()[b as usize]),
        _ => surface.passing().lets(edge(a), edge(b)),
    }
}

impl Sink for Findings {
    #[inline]
    fn cloth(
        &mut self,
        snap: &Snapshot<'_>,
        filter: &mut FeatureFilter,
        leaves: [&Leaves<'_>; 2],
        pairs: &[(u32, u32)],
    ) {
        let before = self.contacts.len();
        let Self {
            contacts,
            candidates,
        } = self;
        match candidates {
            Some(candidates) => {
                let mut note = |kind, a, b| {
                    if !lets(snap, kind, [a, b]) {
                        candidates.push(Candidate::of_cloth(kind, a, b));
                    }
                };
                filter.contacts(snap, leaves, pairs, &mut note, contacts);
            }
            None => filter.contacts(snap, leaves, pairs, &mut |_, _, _| {}, contacts),
        }
        self.leave_out_kept(snap, before);
    }

    #[inline]
    fn rest_adjacent(&mut self, snap: &Snapshot<'_>, pair: &RestAdjacentPair) {
        let before = self.contacts.len();
        features::rest_adjacent_features(snap, pair, |kind, a, b| {
            if lets(snap, kind, [a, b]) {
                return;
            }
            if let Some(candidates) = &mut self.candidates {
                candidates.push(Candidate::of_cloth(kind, a, b));
            }
            features::cloth_feature(snap, kind, a, b, &mut self.contacts);
        });
        self.leave_out_kept(snap, before);
    }

    #[inline]
    fn body(&mut self, snap: &Snapshot<'_>, body: (u32, &BodySurface), [s, t]: [u32; 2]) {
        if let Some(candidates) = &mut self.candidates {
            candidates.push(Candidate {
                kind: Candidate::TRIANGLES,
                body: body.0,
                a: s,
                b: t,
            });
        }
        let before = self.contacts.len();
        features::body_pair(snap, body, s, t, &mut self.contacts);
        self.leave_out_suspended(snap, before);
    }

    #[inline]
    fn solid(&mut self, snap: &Snapshot<'_>, body: (u32, Implicit<'_>), triangle: u32) {
        if let Some(candidates) = &mut self.candidates {
            candidates.push(Candidate {
                kind: Candidate::SOLID,
                body: body.0,
                a: triangle,
                b: 0,
            });
        }
        let before = self.contacts.len();
        features::implicit(snap, body, triangle, &mut self.contacts);
        self.leave_out_suspended(snap, before);
    }
}
