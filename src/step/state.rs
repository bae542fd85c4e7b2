//! All that the next step depends on, gathered from the ranks and given back to them.
//!
//! Beside positions and velocities a step remembers the velocity changes that the last two solves found,
//! from which the next one starts, what each vertex's contact with bodies was, into what parts it was cut, and, for integrators that look back,
//! the state before. Forgetting any of it would give a trajectory that is as good, but another one.

use glam::DVec3;
use serde::{Deserialize, Serialize};
use weft_runtime::comm::{Collectives as _, Comm, CommError, Rank};
use weft_runtime::wire;

use super::body_response::VertexState;
use super::error::StepError;
use super::simulation::Simulation;

/// The state between two steps: one entry per vertex in the order of the scene's own vertices, so that it
/// fits any number of ranks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// Steps taken.
    pub step: u64,
    /// Positions in m.
    pub positions: Vec<DVec3>,
    /// Velocities in m/s.
    pub velocities: Vec<DVec3>,
    /// Velocity changes that the last solve found, and the one before, in m/s.
    pub changes: [Vec<DVec3>; 2],
    /// What contacts with bodies were.
    pub contacts: Vec<VertexState>,
    /// How often the present part of a step is halved, and how many in a row went well since that changed.
    pub stride: [u32; 2],
    /// What the integrator looks back at, if it does.
    pub past: Option<Past>,
}

/// The state before the last part of a step, as the integrator wants it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Past {
    /// Length of that part in s.
    pub length: f64,
    /// Positions in m.
    pub positions: Vec<DVec3>,
    /// Velocities in m/s.
    pub velocities: Vec<DVec3>,
}

/// What a rank sends of its share: changes, contacts, and the past.
type Theirs = ([Vec<DVec3>; 2], Vec<VertexState>, Vec<DVec3>, Vec<DVec3>);

impl State {
    /// Whether there is one of everything for each of `vertices`.
    #[must_use]
    pub fn is_of(&self, vertices: usize) -> bool {
        let lengths = [
            self.positions.len(),
            self.velocities.len(),
            self.changes[0].len(),
            self.changes[1].len(),
            self.contacts.len(),
        ];
        let of_past = (self.past.as_ref()).map_or([vertices; 2], |past| {
            [past.positions.len(), past.velocities.len()]
        });
        lengths == [vertices; 5] && of_past == [vertices; 2]
    }
}

impl Simulation<'_> {
    /// The state, on rank 0. Collective.
    ///
    /// # Errors
    /// Messages failed.
    pub fn gather_state(&self, comm: &mut dyn Comm) -> Result<Option<State>, CommError> {
        let malformed = |from| move |what| CommError::Malformed { from, what };
        let past = &self.motion.past;
        let changes = [&self.change, &self.change_before];
        let own = wire::encode(&(changes, self.bodies.states(), &past.x, &past.v));
        let gathered = comm.gather(Rank(0), own.map_err(malformed(comm.rank()))?)?;
        let Some(gathered) = gathered else {
            return Ok(None);
        };
        let mut changes = [(); 2].map(|()| Vec::with_capacity(self.x.len()));
        let mut contacts: Vec<VertexState> = Vec::with_capacity(self.x.len());
        let (mut past_x, mut past_v): (Vec<DVec3>, Vec<DVec3>) = (Vec::new(), Vec::new());
        // Ranks own ranges of vertices, in the order of ranks.
        for (from, bytes) in (0..).map(Rank).zip(&gathered) {
            let (their_changes, their_contacts, their_x, their_v): Theirs =
                wire::decode(bytes).map_err(malformed(from))?;
            let expected = self.ownership.vertices(from.index()).len();
            let looks_back = if past.x.is_empty() { 0 } else { expected };
            let [last, before] = &their_changes;
            if [last.len(), before.len(), their_contacts.len()] != [expected; 3]
                || [their_x.len(), their_v.len()] != [looks_back; 2]
            {
                let what = format!("a state that is not of its {expected} vertices");
                return Err(CommError::Malformed { from, what });
            }
            for (all, theirs) in changes.iter_mut().zip(their_changes) {
                all.extend(theirs);
            }
            contacts.extend(their_contacts);
            past_x.extend(their_x);
            past_v.extend(their_v);
        }
        Ok(Some(State {
            step: self.step,
            positions: self.world.original_order(&self.x),
            velocities: self.world.original_order(&self.v),
            changes: changes.map(|changes| self.world.original_order(&changes)),
            contacts: self.world.original_order(&contacts),
            stride: self.stride.between_steps(),
            past: (past.length > 0.0).then(|| Past {
                length: past.length,
                positions: self.world.original_order(&past_x),
                velocities: self.world.original_order(&past_v),
            }),
        }))
    }

    /// Goes on from a state, which must be the same on every rank.
    ///
    /// # Errors
    /// It is of another number of vertices.
    pub fn restore(&mut self, state: &State) -> Result<(), StepError> {
        if !state.is_of(self.x.len()) {
            return Err(StepError::OtherState {
                vertices: self.x.len(),
            });
        }
        let old = |new: usize| self.world.tree().new_to_old()[new] as usize;
        for new in 0..self.x.len() {
            self.x[new] = state.positions[old(new)];
            self.v[new] = state.velocities[old(new)];
        }
        let first = self.owned().start;
        for (own, changes) in [&mut self.change, &mut self.change_before]
            .into_iter()
            .zip(&state.changes)
        {
            for (local, change) in own.iter_mut().enumerate() {
                *change = changes[old(first + local)];
            }
        }
        for (local, contact) in self.bodies.states_mut().iter_mut().enumerate() {
            *contact = state.contacts[old(first + local)];
        }
        self.motion.forget();
        self.ahead = None;
        self.extent = None;
        if let Some(past) = &state.past
            && self.motion.looks_back()
        {
            let own = &mut self.motion.past;
            own.length = past.length;
            for (local, (x, v)) in own.x.iter_mut().zip(&mut own.v).enumerate() {
                *x = past.positions[old(first + local)];
                *v = past.velocities[old(first + local)];
            }
        }
        self.stride.restore(state.stride);
        self.step = state.step;
        Ok(())
    }
}
