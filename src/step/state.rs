//! Positions and velocities: by the numbers of all vertices, and of those that the elements of a
//! rank read.
//!
//! [`State`] has a place for each vertex of all cloth, 48 B each. A rank either is sent all of them
//! in each substep, or those that it has [subscribed](Subscriptions) to. The stages of a substep
//! work on what is local to a rank, its own vertices followed by the halo ([`LocalState`]), and ask
//! for what is of other patches by [`Neighbourhood`].

use std::ops::Range;

use glam::DVec3;

use super::domain::Domain;
use super::exchange::subscriptions::Subscriptions;
use super::neighbourhood::Neighbourhood;
use super::world::World;
use crate::collide::Extent;
use crate::heap_bytes::{counts_heap, owns_no_heap};
use crate::sparse::Sparse;
use crate::team::{Shares, parts};

/// Positions (m) and velocities (m/s) of the same vertices.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StateView<'a> {
    /// Positions in m.
    pub(crate) x: &'a [DVec3],
    /// Velocities in m/s.
    pub(crate) v: &'a [DVec3],
}

/// The state of all vertices at the start of a substep, the same on every rank that knows it.
#[derive(Debug)]
pub(crate) struct State {
    /// Positions in m.
    pub(crate) x: Sparse<DVec3>,
    /// Velocities in m/s.
    pub(crate) v: Sparse<DVec3>,
    /// The box around all positions, if it is known.
    pub(crate) extent: Option<Extent>,
    /// The vertices that each thread goes through in loops over all of them.
    pub(crate) shares: Shares,
    /// The vertices that are known here, if that may not be all.
    pub(crate) subscriptions: Option<Subscriptions>,
}

counts_heap!(State: x, v, shares, subscriptions; without extent);

impl State {
    /// The state of a world at time 0.
    pub(crate) fn new(world: &World, shares: Shares) -> Self {
        Self {
            x: world.model().start().to_vec().into(),
            v: world.start_velocities().into(),
            extent: None,
            shares,
            subscriptions: None,
        }
    }

    /// The state of a world at time 0 on a rank that knows its own vertices and its halo, and
    /// subscribes to others.
    pub(crate) fn subscribed(world: &World, domain: &Domain, shares: Shares) -> Self {
        let vertices = world.model().start().len();
        let [mut x, mut v] = [Sparse::zeros(vertices), Sparse::zeros(vertices)];
        if cfg!(debug_assertions) {
            // Vertices that are not known have no numbers.
            x.fill(DVec3::NAN);
            v.fill(DVec3::NAN);
        }
        let mut take = |range: Range<usize>| {
            x[range.clone()].copy_from_slice(&world.model().start()[range.clone()]);
            for vertex in range {
                v[vertex] = world.start_velocity(vertex as u32);
            }
        };
        take(domain.owned());
        for &vertex in domain.plan.halo() {
            take(vertex as usize..vertex as usize + 1);
        }
        let mut subscriptions = Subscriptions::new(world, domain);
        subscriptions.restart(domain);
        Self {
            x,
            v,
            extent: Some(world.start_extent()),
            shares,
            subscriptions: Some(subscriptions),
        }
    }

    /// Whether each vertex is known here; `None` if all are.
    pub(crate) fn known(&self) -> Option<&[bool]> {
        self.subscriptions.as_ref().and_then(Subscriptions::known)
    }

    /// Runs of vertices whose state is here, ascending.
    pub(crate) fn runs_here(&self) -> Vec<Range<usize>> {
        match &self.subscriptions {
            Some(subscriptions) => subscriptions.runs_here(),
            None => std::iter::once(0..self.len()).collect(),
        }
    }

    /// Whether the state of all vertices is here.
    pub(crate) fn is_whole(&self) -> bool {
        self.known().is_none()
    }

    /// The number of vertices.
    pub(crate) fn len(&self) -> usize {
        self.x.len()
    }

    /// The state of some vertices that follow each other.
    pub(crate) fn of(&self, vertices: Range<usize>) -> StateView<'_> {
        StateView {
            x: &self.x[vertices.clone()],
            v: &self.v[vertices],
        }
    }
}

/// The state of the vertices that a rank's elements read: its own, then the halo.
#[derive(Debug)]
pub(crate) struct LocalState {
    /// Positions in m.
    pub(crate) x: Vec<DVec3>,
    /// Velocities in m/s.
    pub(crate) v: Sparse<DVec3>,
    /// The patches that the vertices of the halo are of, in order.
    halo: Vec<HaloPatch>,
}

counts_heap!(LocalState: x, v, halo);

/// The vertices of one patch that are in a rank's halo.
#[derive(Debug)]
struct HaloPatch {
    patch: usize,
    /// The indices of its vertices among those of the halo.
    indices: Range<usize>,
}

owns_no_heap!(HaloPatch);

impl LocalState {
    /// The state of a rank, before it is loaded for the first time.
    pub(crate) fn new(world: &World, domain: &Domain) -> Self {
        let halo = domain.plan.halo();
        let mut patches: Vec<HaloPatch> = Vec::new();
        for (index, &vertex) in halo.iter().enumerate() {
            let patch = world.tree().patch_of(vertex);
            match patches.last_mut().filter(|last| last.patch == patch) {
                Some(last) => last.indices.end = index + 1,
                None => patches.push(HaloPatch {
                    patch,
                    indices: index..index + 1,
                }),
            }
        }
        Self {
            x: vec![DVec3::ZERO; domain.plan.local_len()],
            v: Sparse::new(domain.plan.local_len(), false),
            halo: patches,
        }
    }

    /// Positions and velocities.
    pub(crate) fn view(&self) -> StateView<'_> {
        StateView {
            x: &self.x,
            v: &self.v,
        }
    }

    /// Copies what the rank's elements read. `own` are its vertices, in the shares of its threads.
    pub(crate) fn load(
        &mut self,
        domain: &Domain,
        own: StateView<'_>,
        shares: &Shares,
        neighbourhood: &impl Neighbourhood,
    ) {
        let count = own.x.len();
        let to = parts(&mut self.x[..count], &shares.elements)
            .zip(parts(&mut self.v[..count], &shares.elements));
        shares.run(to.zip(&shares.elements), |((x, v), share)| {
            x.copy_from_slice(&own.x[share.clone()]);
            v.copy_from_slice(&own.v[share.clone()]);
        });
        let halo = domain.plan.halo();
        for HaloPatch { patch, indices } in &self.halo {
            let first = neighbourhood.vertices(*patch).start;
            let theirs = neighbourhood.state(*patch);
            for (&vertex, at) in halo[indices.clone()].iter().zip(count + indices.start..) {
                self.x[at] = theirs.x[vertex as usize - first];
                self.v[at] = theirs.v[vertex as usize - first];
            }
        }
    }
}
