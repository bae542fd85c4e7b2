//! The state of a patch, as its owner has it: what a rank writes of a checkpoint, and reads again.
//!
//! A rank reads the patches that it owns and no others. Positions and velocities are replicated
//! among ranks as long as steps want them so: ranks then tell each other theirs.

use glam::DVec3;
use weft_runtime::comm::{Collectives as _, Comm, CommError, Rank};

use super::saved_state::{StateOutline, malformed};
use crate::collide::Extent;
use crate::step::error::StepError;
use crate::step::exchange::seen::Seen;
use crate::step::response::body_response::VertexState;
use crate::step::simulation::Simulation;
use crate::step::state::State;

/// The state of the vertices of a patch, one entry each.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PatchState {
    /// The numbers of its vertices in the order of the scene's own.
    pub vertices: Vec<u32>,
    /// Positions in m.
    pub positions: Vec<DVec3>,
    /// Velocities in m/s.
    pub velocities: Vec<DVec3>,
    /// Velocity changes that the last solve found, and the one before, in m/s.
    pub changes: [Vec<DVec3>; 2],
    /// The contacts with bodies.
    pub contacts: Vec<VertexState>,
    /// Positions and velocities before the last substep, if the integrator looks back at them.
    pub past: Option<[Vec<DVec3>; 2]>,
}

/// A [`PatchState`] that lies elsewhere.
#[derive(Clone, Copy, Debug, Default)]
pub struct PatchView<'a> {
    /// [`PatchState::vertices`].
    pub vertices: &'a [u32],
    /// [`PatchState::positions`].
    pub positions: &'a [DVec3],
    /// [`PatchState::velocities`].
    pub velocities: &'a [DVec3],
    /// [`PatchState::changes`].
    pub changes: [&'a [DVec3]; 2],
    /// [`PatchState::contacts`].
    pub contacts: &'a [VertexState],
    /// [`PatchState::past`].
    pub past: Option<[&'a [DVec3]; 2]>,
}

impl PatchState {
    /// The state, borrowed.
    #[must_use]
    pub fn view(&self) -> PatchView<'_> {
        PatchView {
            vertices: &self.vertices,
            positions: &self.positions,
            velocities: &self.velocities,
            changes: self.changes.each_ref().map(Vec::as_slice),
            contacts: &self.contacts,
            past: (self.past.as_ref()).map(|past| past.each_ref().map(Vec::as_slice)),
        }
    }
}

impl PatchView<'_> {
    /// Whether there is one of everything for each vertex, and a past if one is due.
    #[must_use]
    pub(crate) fn is_whole(&self, looks_back: bool) -> bool {
        let count = self.vertices.len();
        let lengths = [
            self.positions.len(),
            self.velocities.len(),
            self.changes[0].len(),
            self.changes[1].len(),
            self.contacts.len(),
        ];
        lengths == [count; 5]
            && self.past.is_some() == looks_back
            && (self.past.iter().flatten()).all(|past| past.len() == count)
    }
}

/// Vertices of each rank whose positions and velocities travel at once.
const AT_ONCE: usize = 1 << 20;

impl Simulation<'_> {
    /// The facts about the state that belong to no vertex; the same on every rank.
    #[must_use]
    pub fn outline(&self) -> StateOutline {
        let past = self.integrator.past.length;
        StateOutline {
            vertices: self.world.tree().vertex_count() as u64,
            step: self.substep.steps,
            substep: self.substep.controller.between_steps(),
            past: (past > 0.0).then_some(past),
            squeezed: self.squeezed(),
            kept: self.kept(),
        }
    }

    /// The states of the patches that this rank owns, in their order.
    pub fn own_patches(&self) -> impl Iterator<Item = PatchView<'_>> {
        let (tree, past) = (self.world.tree(), &self.integrator.past);
        let first = self.domain.owned().start;
        let looks_back = past.length > 0.0;
        self.domain.patches().map(move |patch| {
            let global = tree.patch_vertices(patch);
            let local = global.start - first..global.end - first;
            PatchView {
                vertices: &tree.new_to_old()[global.clone()],
                positions: &self.state.x[global.clone()],
                velocities: &self.state.v[global],
                changes: [
                    &self.solver.change[local.clone()],
                    &self.solver.change_before[local.clone()],
                ],
                contacts: &self.response.bodies.states()[local.clone()],
                past: looks_back.then(|| [&past.x[local.clone()], &past.v[local.clone()]]),
            }
        })
    }

    /// Goes on from a state, of which each rank has the patches that it owns, in their order; the
    /// outline must be the same on every rank. Collective.
    ///
    /// # Errors
    /// The patches are others than the rank's, or messages failed.
    pub fn restore_patches(
        &mut self,
        outline: &StateOutline,
        own: &[PatchState],
        comm: &mut dyn Comm,
    ) -> Result<(), StepError> {
        let vertices = self.state.len();
        let tree = self.world.tree();
        let patches = self.domain.patches();
        let fits = |(patch, state): (usize, &PatchState)| {
            let view = state.view();
            view.is_whole(outline.past.is_some())
                && view.vertices == &tree.new_to_old()[tree.patch_vertices(patch)]
        };
        let bodies = self.world.scene().bodies.len();
        let are_own = own.len() == patches.len() && patches.zip(own).all(fits);
        if !are_own || !outline.is_of(vertices, bodies) {
            return Err(StepError::OtherState { vertices });
        }
        let mut place = self.domain.owned().start;
        for state in own {
            let end = place + state.vertices.len();
            self.state.x[place..end].copy_from_slice(&state.positions);
            self.state.v[place..end].copy_from_slice(&state.velocities);
            place = end;
        }
        let subscribes = self.state.subscriptions.is_some();
        if !subscribes {
            self.tell_positions(comm)?;
        }
        let views: Vec<PatchView<'_>> = own.iter().map(PatchState::view).collect();
        self.take_up(outline, &views);
        if subscribes {
            self.know_own(comm)?;
        }
        Ok(())
    }

    /// Goes on from a state of which this rank has its own vertices, and subscribes to others anew.
    /// Collective.
    fn know_own(&mut self, comm: &mut dyn Comm) -> Result<(), CommError> {
        let State {
            x,
            v,
            extent,
            subscriptions: Some(subscriptions),
            ..
        } = &mut self.state
        else {
            return Ok(());
        };
        subscriptions.restart(&self.domain);
        for values in [&mut *x, v] {
            subscriptions.begin(comm, values)?;
            subscriptions.finish(comm, values)?;
        }
        let own = Seen {
            extent: Extent::of(&x[self.domain.owned()]),
            ..Seen::NOTHING
        };
        *extent = Some(own.of_all(comm)?.extent);
        Ok(())
    }

    /// Tells all ranks the positions and velocities of the vertices that this one owns.
    fn tell_positions(&mut self, comm: &mut dyn Comm) -> Result<(), CommError> {
        let size = comm.size();
        let owned = |rank: usize| self.domain.ownership.vertices(rank);
        let most = (0..size).map(|rank| owned(rank).len()).max().unwrap_or(0);
        if size == 1 {
            return Ok(());
        }
        let me = comm.rank().index();
        for start in (0..most).step_by(AT_ONCE) {
            let of = |rank: usize| {
                let owned = owned(rank);
                let end = owned.end.min(owned.start + start + AT_ONCE);
                (owned.start + start).min(end)..end
            };
            let mut bytes = Vec::with_capacity(of(me).len() * 2 * size_of::<DVec3>());
            for all in [&self.state.x, &self.state.v] {
                bytes.extend_from_slice(bytemuck::cast_slice(&all[of(me)]));
            }
            for (from, bytes) in (0..).map(Rank).zip(comm.allgather(bytes)?) {
                let place = of(from.index());
                let half = place.len() * size_of::<DVec3>();
                if bytes.len() != 2 * half {
                    let what = format!("not the state of {} vertices", place.len());
                    return Err(malformed(from)(what));
                }
                let (x, v) = bytes.split_at(half);
                for (all, bytes) in [(&mut self.state.x, x), (&mut self.state.v, v)] {
                    let room: &mut [u8] = bytemuck::cast_slice_mut(&mut all[place.clone()]);
                    room.copy_from_slice(bytes);
                }
            }
        }
        Ok(())
    }

    /// Takes up what a state has beside positions and velocities: `own` are the states of this
    /// rank's vertices, in their order.
    pub(super) fn take_up(&mut self, outline: &StateOutline, own: &[PatchView<'_>]) {
        self.forget();
        let looks_back = self.integrator.looks_back();
        let past = &mut self.integrator.past;
        if let Some(length) = outline.past.filter(|_| looks_back) {
            past.length = length;
        }
        let mut first = 0;
        for state in own {
            let place = first..first + state.contacts.len();
            first = place.end;
            self.solver.change[place.clone()].copy_from_slice(state.changes[0]);
            self.solver.change_before[place.clone()].copy_from_slice(state.changes[1]);
            self.response.bodies.states_mut()[place.clone()].copy_from_slice(state.contacts);
            if let Some([x, v]) = state.past.filter(|_| looks_back) {
                past.x[place.clone()].copy_from_slice(x);
                past.v[place].copy_from_slice(v);
            }
        }
        if let Some(certification) = &mut self.certification {
            let new = self.world.tree().old_to_new();
            let renumbered = outline.squeezed.iter();
            certification.suspend(renumbered.map(|&[v, body]| [new[v as usize], body]));
            let renumbered = outline.kept.iter();
            certification.keep(renumbered.map(|&[v, of]| [new[v as usize], of]));
        }
        self.substep.controller.restore(outline.substep);
        self.substep.steps = outline.step;
    }
}
