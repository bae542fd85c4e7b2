//! The state that the next step depends on, gathered from the ranks and given back to them.
//!
//! Beside positions and velocities a step remembers the velocity changes that the last two solves
//! found, from which the next one starts, what each vertex's contact with bodies was, into what
//! parts it was cut, and, for integrators that look back, the state before. Forgetting any of it
//! would give a trajectory that is as good, but another one.
//!
//! It travels in pieces, so that no message is longer than ranks read, however many vertices there
//! are.

use std::ops::Range;

use glam::DVec3;
use serde::{Deserialize, Serialize};
use weft_runtime::comm::{Collectives as _, Comm, CommError, Rank};
use weft_runtime::wire;

use super::patch_state::PatchState;
use crate::step::error::StepError;
use crate::step::response::body_response::VertexState;
use crate::step::simulation::Simulation;

/// The state between two steps: one entry per vertex in the order of the scene's own vertices, so
/// that it fits any number of ranks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SavedState {
    /// Steps taken.
    pub step: u64,
    /// Positions in m.
    pub positions: Vec<DVec3>,
    /// Velocities in m/s.
    pub velocities: Vec<DVec3>,
    /// Velocity changes that the last solve found, and the one before, in m/s.
    pub changes: [Vec<DVec3>; 2],
    /// The contacts with bodies.
    pub contacts: Vec<VertexState>,
    /// How often the present substep is halved, and how many in a row went well since that
    /// changed.
    pub substep: [u32; 2],
    /// The past states that the integrator looks back at, if it does.
    pub past: Option<Past>,
    /// Vertices, each with the number of a body that lets it through, ascending.
    pub squeezed: Vec<[u32; 2]>,
    /// The kept vertices, as [`Simulation::kept`] tells them.
    pub kept: Vec<[u32; 2]>,
}

/// The state before the last substep, as the integrator wants it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Past {
    /// Length of that substep in s.
    pub length: f64,
    /// Positions in m.
    pub positions: Vec<DVec3>,
    /// Velocities in m/s.
    pub velocities: Vec<DVec3>,
}

/// Vertices whose state travels in one message: each has up to 219 bytes there.
const PIECE: usize = 1 << 20;

/// The message of a rank with some of its vertices: positions and velocities, changes, contacts,
/// and the past if there is one.
#[derive(Deserialize)]
struct Theirs {
    motion: [Vec<DVec3>; 2],
    changes: [Vec<DVec3>; 2],
    contacts: Vec<VertexState>,
    past: [Vec<DVec3>; 2],
}

/// The state of some vertices, as it is sent.
#[derive(Serialize)]
struct Own<'a> {
    motion: [&'a [DVec3]; 2],
    changes: [&'a [DVec3]; 2],
    contacts: &'a [VertexState],
    past: [&'a [DVec3]; 2],
}

impl Theirs {
    /// Whether it has this number of vertices.
    fn is_of(&self, vertices: usize, looks_back: bool) -> bool {
        let of_past = if looks_back { vertices } else { 0 };
        let each = self.motion.iter().chain(&self.changes);
        each.map(Vec::len).all(|len| len == vertices)
            && self.contacts.len() == vertices
            && self.past.iter().all(|all| all.len() == of_past)
    }
}

/// The facts about a state that belong to no vertex.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StateOutline {
    /// The number of its vertices.
    pub vertices: u64,
    /// [`SavedState::step`].
    pub step: u64,
    /// [`SavedState::substep`].
    pub substep: [u32; 2],
    /// [`Past::length`] in s, if there is a past.
    pub past: Option<f64>,
    /// [`SavedState::squeezed`].
    pub squeezed: Vec<[u32; 2]>,
    /// [`SavedState::kept`].
    pub kept: Vec<[u32; 2]>,
}

impl StateOutline {
    /// Whether it is of this number of vertices and names no others, and no body beyond these.
    #[must_use]
    pub(crate) fn is_of(&self, vertices: usize, bodies: usize) -> bool {
        let mut marked = self.squeezed.iter().chain(&self.kept);
        let mut squeezed = self.squeezed.iter();
        self.vertices == vertices as u64
            && marked.all(|[vertex, _]| (*vertex as usize) < vertices)
            && squeezed.all(|[_, body]| (*body as usize) < bodies)
    }
}

/// The values that a piece has of some, or none if there are none at all.
fn part<T>(values: &[T], piece: Range<usize>) -> &[T] {
    values.get(piece).unwrap_or_default()
}

pub(super) fn malformed(from: Rank) -> impl Fn(String) -> CommError {
    move |what| CommError::Malformed { from, what }
}

impl SavedState {
    /// Gives every rank the state that rank 0 has, if it has one; what others pass is ignored.
    /// Collective.
    ///
    /// # Errors
    /// Messages failed.
    pub fn broadcast(own: Option<&Self>, comm: &mut dyn Comm) -> Result<Option<Self>, CommError> {
        Self::broadcast_in_pieces(own, comm, PIECE)
    }

    fn broadcast_in_pieces(
        own: Option<&Self>,
        comm: &mut dyn Comm,
        piece: usize,
    ) -> Result<Option<Self>, CommError> {
        let (me, root) = (comm.rank(), Rank(0));
        let own = own.filter(|_| me == root);
        let outline = own.map(Self::outline);
        let outline = wire::encode(&outline).map_err(CommError::unsendable(me, "a state"))?;
        let outline: Option<StateOutline> =
            wire::decode(&comm.broadcast(root, outline)?).map_err(malformed(root))?;
        let Some(outline) = outline else {
            return Ok(None);
        };
        let mut state = Self {
            step: outline.step,
            substep: outline.substep,
            squeezed: outline.squeezed,
            kept: outline.kept,
            past: outline.past.map(|length| Past {
                length,
                ..Past::default()
            }),
            ..Self::default()
        };
        let mut start = 0;
        let vertices = usize::try_from(outline.vertices).unwrap_or(usize::MAX);
        while start < vertices {
            let end = start.saturating_add(piece).min(vertices);
            let of_past = own.and_then(|own| own.past.as_ref());
            let sent = own.map(|own| Own {
                motion: [&own.positions, &own.velocities].map(|all| part(all, start..end)),
                changes: [0, 1].map(|i| part(&own.changes[i], start..end)),
                contacts: part(&own.contacts, start..end),
                past: of_past.map_or([&[][..]; 2], |past| {
                    [&past.positions, &past.velocities].map(|all| part(all, start..end))
                }),
            });
            let sent = sent.as_ref().map_or_else(|| Ok(Vec::new()), wire::encode);
            let what = || format!("the state of {} vertices", end - start);
            let sent = sent.map_err(|why| CommError::unsendable(me, what())(why))?;
            let bytes = comm.broadcast(root, sent)?;
            let theirs: Theirs = wire::decode(&bytes).map_err(malformed(root))?;
            if !theirs.is_of(end - start, state.past.is_some()) {
                return Err(malformed(root)(format!("not {}", what())));
            }
            let [x, v] = theirs.motion;
            state.positions.extend(x);
            state.velocities.extend(v);
            for (all, some) in state.changes.iter_mut().zip(theirs.changes) {
                all.extend(some);
            }
            state.contacts.extend(theirs.contacts);
            if let Some(past) = &mut state.past {
                let [x, v] = theirs.past;
                past.positions.extend(x);
                past.velocities.extend(v);
            }
            start = end;
        }
        Ok(Some(state))
    }

    /// The facts about it that belong to no vertex.
    #[must_use]
    pub fn outline(&self) -> StateOutline {
        StateOutline {
            vertices: self.positions.len() as u64,
            step: self.step,
            substep: self.substep,
            past: self.past.as_ref().map(|past| past.length),
            squeezed: self.squeezed.clone(),
            kept: self.kept.clone(),
        }
    }

    /// Whether there is one of everything for each of `vertices`.
    #[must_use]
    pub(crate) fn is_of(&self, vertices: usize) -> bool {
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
        let mut marked = self.squeezed.iter().chain(&self.kept);
        lengths == [vertices; 5]
            && of_past == [vertices; 2]
            && marked.all(|[vertex, _]| (*vertex as usize) < vertices)
    }
}

impl Simulation<'_> {
    /// The state, on rank 0. Collective.
    ///
    /// # Errors
    /// Messages failed.
    pub fn gather_state(&self, comm: &mut dyn Comm) -> Result<Option<SavedState>, CommError> {
        self.gather_in_pieces(comm, PIECE)
    }

    /// Gathers how each vertex touches bodies, in the numbering of the patch tree, as bits that
    /// checkpoints have too: 1 for held, 2 for released, 4 for sticking. Rank 0 gets it.
    /// Collective.
    ///
    /// # Errors
    /// Messages failed.
    pub fn gather_contacts(&self, comm: &mut dyn Comm) -> Result<Option<Vec<u32>>, CommError> {
        let own = self.response.bodies.states().iter().map(VertexState::bits);
        // Ranks own ranges of vertices, in the order of ranks.
        let gathered = comm.gather(Rank(0), own.collect())?;
        let all = gathered.map(|of_ranks| of_ranks.concat());
        Ok(all.map(|all| all.into_iter().map(u32::from).collect()))
    }

    /// Gathers the state, of `piece` vertices of each rank at a time.
    fn gather_in_pieces(
        &self,
        comm: &mut dyn Comm,
        piece: usize,
    ) -> Result<Option<SavedState>, CommError> {
        let (me, root) = (comm.rank(), Rank(0));
        let past = &self.integrator.past;
        let looks_back = past.length > 0.0;
        // Ranks own ranges of vertices, in the order of ranks.
        let owned = |rank: Rank| self.domain.ownership.vertices(rank.index());
        let ranks = (0..comm.size() as u32).map(Rank);
        let most = ranks.map(|rank| owned(rank).len()).max().unwrap_or(0);
        let all = if me == root { self.state.len() } else { 0 };
        let [mut motion, mut changes] = [(); 2].map(|()| [(); 2].map(|()| vec![DVec3::ZERO; all]));
        let own_motion = self.state.of(owned(me));
        let mut contacts = vec![VertexState::default(); all];
        let of_past = if looks_back { all } else { 0 };
        let mut before = [(); 2].map(|()| vec![DVec3::ZERO; of_past]);
        for start in (0..most).step_by(piece) {
            let of = |rank: Rank| {
                let len = owned(rank).len();
                start.min(len)..start.saturating_add(piece).min(len)
            };
            let mine = of(me);
            let count = mine.len();
            let own = Own {
                motion: [own_motion.x, own_motion.v].map(|all| part(all, mine.clone())),
                changes: [&self.solver.change, &self.solver.change_before]
                    .map(|all| part(all, mine.clone())),
                contacts: part(self.response.bodies.states(), mine.clone()),
                past: if looks_back {
                    [&past.x, &past.v].map(|all| part(all, mine.clone()))
                } else {
                    [&[]; 2]
                },
            };
            let own = wire::encode(&own).map_err(|why| {
                let what = format!("the state of {count} of its {} vertices", owned(me).len());
                CommError::unsendable(me, what)(why)
            })?;
            let Some(gathered) = comm.gather(root, own)? else {
                continue;
            };
            for (from, bytes) in (0..).map(Rank).zip(&gathered) {
                let theirs: Theirs = wire::decode(bytes).map_err(malformed(from))?;
                let theirs_of = of(from);
                if !theirs.is_of(theirs_of.len(), looks_back) {
                    let what = format!("a state that is not of {} vertices", theirs_of.len());
                    return Err(malformed(from)(what));
                }
                let first = owned(from).start;
                let place = first + theirs_of.start..first + theirs_of.end;
                let pairs = motion.iter_mut().zip(&theirs.motion);
                for (all, some) in pairs.chain(changes.iter_mut().zip(&theirs.changes)) {
                    all[place.clone()].copy_from_slice(some);
                }
                contacts[place.clone()].copy_from_slice(&theirs.contacts);
                if looks_back {
                    for (all, some) in before.iter_mut().zip(&theirs.past) {
                        all[place.clone()].copy_from_slice(some);
                    }
                }
            }
        }
        if me != root {
            return Ok(None);
        }
        let [past_x, past_v] = before;
        let [x, v] = motion;
        Ok(Some(SavedState {
            step: self.substep.steps,
            positions: self.world.original_order(&x),
            velocities: self.world.original_order(&v),
            changes: changes.map(|changes| self.world.original_order(&changes)),
            contacts: self.world.original_order(&contacts),
            substep: self.substep.controller.between_steps(),
            past: looks_back.then(|| Past {
                length: past.length,
                positions: self.world.original_order(&past_x),
                velocities: self.world.original_order(&past_v),
            }),
            squeezed: self.squeezed(),
            kept: self.kept(),
        }))
    }

    /// Goes on from a state, which must be the same on every rank.
    ///
    /// # Errors
    /// It is of another number of vertices.
    pub fn restore(&mut self, state: &SavedState) -> Result<(), StepError> {
        let (vertices, bodies) = (self.state.len(), self.world.scene().bodies.len());
        let outline = state.outline();
        if !state.is_of(vertices) || !outline.is_of(vertices, bodies) {
            return Err(StepError::OtherState { vertices });
        }
        let old = |new: usize| self.world.tree().new_to_old()[new] as usize;
        for new in 0..vertices {
            self.state.x[new] = state.positions[old(new)];
            self.state.v[new] = state.velocities[old(new)];
        }
        let owned = self.domain.owned();
        let of_own = |all: &Vec<DVec3>| owned.clone().map(|new| all[old(new)]).collect();
        let own = PatchState {
            changes: state.changes.each_ref().map(of_own),
            contacts: (owned.clone())
                .map(|new| state.contacts[old(new)])
                .collect(),
            past: (state.past.as_ref()).map(|past| [&past.positions, &past.velocities].map(of_own)),
            ..PatchState::default()
        };
        self.take_up(&outline, &[own.view()]);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use weft_runtime::ScopeOptions;
    use weft_runtime::comm::threads::launch;

    use super::*;
    use crate::scene::{RankState, Scene};
    use crate::step::World;

    const SCENE: &str = "partition.patches = 8
        time.step = \"2 ms\"
        solver.integrator = \"bdf2\"
        [[cloth]]
        grid = { size = 1, vertices = 9 }
        velocity = [0, 0, -1]
        material = { density = 0.15, stretch = 1000, bending = 1e-5 }
        [[body]]
        shape = \"plane\"
        point = [0, 0, -0.002]
        normal = [0, 0, 1]\n";

    /// However few vertices a message may be of, and whether or not ranks own a multiple of them.
    #[test]
    fn a_state_in_pieces_is_the_state() {
        let mut scene = Scene::parse(SCENE, None, &[]).unwrap();
        let replicated = World::build(&scene).unwrap();
        scene.partition.state = RankState::Subscribed;
        let subscribed = World::build(&scene).unwrap();
        let of_ranks = [1, 2, 3, 5].map(|ranks| (ranks, &replicated));
        for (ranks, world) in of_ranks.into_iter().chain([(5, &subscribed)]) {
            let states = launch(ranks, |comm| {
                let mut simulation =
                    Simulation::new(world, comm, &ScopeOptions::default()).unwrap();
                for _ in 0..4 {
                    simulation.advance(comm).unwrap();
                }
                let whole = simulation.gather_state(comm).unwrap();
                for piece in [1, 5, 8, 27, 81, usize::MAX] {
                    let again = simulation.gather_in_pieces(comm, piece).unwrap();
                    assert_eq!(again, whole, "{piece} vertices at a time");
                    let shared =
                        SavedState::broadcast_in_pieces(whole.as_ref(), comm, piece).unwrap();
                    let shared = shared.unwrap();
                    assert!(shared.is_of(81));
                    if let Some(whole) = &whole {
                        assert_eq!(shared, *whole, "{piece} vertices at a time");
                    }
                    simulation.restore(&shared).unwrap();
                    assert_eq!(simulation.gather_state(comm).unwrap(), whole);
                }
                whole
            });
            let whole = states.unwrap().swap_remove(0).unwrap();
            assert!(whole.past.is_some());
            assert!(whole.contacts.iter().any(|contact| contact.held));
            assert_ne!(whole.changes[0], whole.changes[1]);
        }
    }

    #[test]
    fn a_state_that_rank_0_lacks_no_rank_gets() {
        let states = launch(3, |comm| {
            let own = (comm.rank() == Rank(1)).then(SavedState::default);
            SavedState::broadcast(own.as_ref(), comm).unwrap()
        });
        assert_eq!(states.unwrap(), [None, None, None]);
    }
}
