//! The end of a substep: every rank gets the new state of the vertices that it knows, and the next
//! system is assembled while it travels.
//!
//! Velocities of all vertices take longer on their way than anything else that a step sends; where
//! ranks know only what they have [subscribed](super::subscriptions) to, those go. Certification
//! then needs the rest of them in substeps in which something may be hit, and only in these.
//! Elements read velocities of owned vertices and their halo, which are there at once; so on
//! several ranks the system that the next substep begins with is assembled before the rest is
//! waited for. It is the one that would be assembled later, to the bit: where a system is
//! linearised at the start of its substep, contacts have no say in it but through the filter.

use std::ops::Range;

use glam::DVec3;
use weft_balance::cost_model::Work;
use weft_runtime::comm::{Collectives, Comm, CommError};

use crate::collide::Extent;
use crate::collide::certify::Region;
use crate::heap_bytes::counts_heap;
use crate::solve::fault::{self, Own};
use crate::sparse::Sparse;
use crate::step::certify::{Certification, Cut, Goals, Known, Outcome, Places};
use crate::step::contact::detection::Detection;
use crate::step::context::{Context, first_of};
use crate::step::diagnose::ledger::{Impulses, Velocities};
use crate::step::domain::Domain;
use crate::step::error::StepError;
use crate::step::exchange::seen::Seen;
use crate::step::exchange::subscriptions::Subscriptions;
use crate::step::integrate::time_integrator::{Jolt, TimeIntegrator};
use crate::step::report::{Clock, PHASES, StepReport};
use crate::step::state::{LocalState, State};
use crate::step::substep::load_time;
use crate::step::system::linear_system::{Following, LinearSystem};
use crate::step::system::load::Collapsed;
use crate::team::{Shares, parts};

/// The system of a substep that is still to begin.
#[derive(Debug)]
struct Ahead {
    /// The length in s that the substep was expected to have.
    dt: f64,
    /// The simulated time in s of the loads in it.
    time: f64,
    outcome: Result<(), Collapsed>,
}

/// The exchange of states, and of what ranks say to each other beside.
#[derive(Debug)]
pub(crate) struct Exchange {
    /// The velocities with which all vertices move in the substep, in m/s.
    moves: Sparse<DVec3>,
    /// The velocities with which all vertices end, where they end with others.
    ends: Sparse<DVec3>,
    /// The positions to which all vertices move, in m.
    moved: Sparse<DVec3>,
    /// The mean velocities of all vertices in the part that ends, in m/s.
    means: Vec<DVec3>,
    /// The next substep's system, where it was assembled while the state travelled.
    ahead: Option<Ahead>,
    /// The message of this rank in the steps to come.
    pub(crate) said: Vec<u8>,
    /// The message of each rank in the last step.
    pub(crate) heard: Vec<Vec<u8>>,
}

counts_heap!(Exchange: moves, ends, moved, means, said, heard; without ahead);

/// The values of a substep that the exchange takes and gives.
#[derive(Debug)]
pub(crate) struct Exchanged<'a> {
    pub(crate) state: &'a mut State,
    pub(crate) local: &'a mut LocalState,
    pub(crate) system: &'a mut LinearSystem,
    pub(crate) integrator: &'a mut TimeIntegrator,
    /// The shares of the owned vertices in loops.
    pub(crate) shares: &'a Shares,
    pub(crate) jolts: &'a [Jolt],
    /// The certification of displacements, with what the search of contacts left to it, if the
    /// scene asks for it.
    pub(crate) certification: Option<(&'a mut Certification, &'a Detection)>,
    /// The part that is certified, if it has several substeps.
    pub(crate) part: Option<Part<'a>>,
    /// The impulses of the substep, for the ledger.
    pub(crate) impulses: &'a Impulses,
}

/// A part of a step that is certified as a whole, when its last substep ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part<'a> {
    /// The scene, the domain, and the part as if it were a substep.
    pub(crate) at: Context<'a>,
    /// The state at its start.
    pub(crate) start: &'a State,
}

impl Exchange {
    /// The exchange of this number of vertices in all, of which a rank may know few.
    pub(crate) fn new(vertices: usize, knows_few: bool) -> Self {
        Self {
            moves: Sparse::new(vertices, knows_few),
            ends: Sparse::default(),
            moved: Sparse::default(),
            means: Vec::new(),
            ahead: None,
            said: Vec::new(),
            heard: Vec::new(),
        }
    }

    /// Makes the room that a step makes for vertices of this range, with values of no meaning.
    pub(crate) fn fill(&mut self, run: Range<usize>) {
        if self.moved.is_empty() {
            self.moved = self.moves.like(self.moves.len());
        }
        self.moves[run.clone()].fill(DVec3::ONE);
        self.moved[run].fill(DVec3::ONE);
    }

    /// Gives up the system that was assembled ahead: the state is another.
    pub(crate) fn forget_ahead(&mut self) {
        self.ahead = None;
    }

    /// The outcome of assembling the system of a substep of length `dt` (s), with the loads of a
    /// time in s, before it began; `None` if it is still to be assembled.
    pub(crate) fn take_ahead(&mut self, dt: f64, time: f64) -> Option<Result<(), Collapsed>> {
        let ahead = self.ahead.take()?;
        (ahead.dt == dt && ahead.time == time).then_some(ahead.outcome)
    }

    /// Fails on all ranks if a triangle has collapsed on one, and hears what each rank has to say.
    /// Returns whether vertices of any rank are near bodies. Collective.
    pub(crate) fn agree_and_hear(
        &mut self,
        comm: &mut dyn Comm,
        at: Context<'_>,
        own: Result<(), Collapsed>,
        near_bodies: bool,
    ) -> Result<bool, StepError> {
        let own = Own {
            fault: first_of(own),
            flag: near_bodies,
            said: &self.said,
        };
        let heard = fault::agree_and_hear(comm, own)?;
        self.heard = heard.said;
        match heard.fault {
            Some(fault) => Err(at.collapsed_at(fault.vertex)),
            None => Ok(heard.flag),
        }
    }

    /// Moves the owned vertices and gives every rank the new state; on several, assembles the next
    /// substep's system meanwhile. Collective.
    ///
    /// Where vertices end with the velocities with which they moved, only those travel: every rank
    /// moves all vertices alike.
    pub(crate) fn share(
        &mut self,
        comm: &mut dyn Comm,
        at: Context<'_>,
        values: Exchanged<'_>,
        report: &mut StepReport,
        clock: &mut Clock<'_>,
    ) -> Result<(), StepError> {
        let Exchanged {
            state,
            local,
            system,
            integrator,
            shares,
            jolts,
            mut certification,
            part,
            impulses,
        } = values;
        let (owned, dt) = (at.domain.owned(), at.substep.dt);
        let start_extent = state.extent.unwrap_or_else(|| Extent::of(&state.x));
        let others = state.len() - owned.len();
        if comm.size() == 1 {
            std::mem::swap(&mut local.v, &mut self.moves);
        } else {
            self.moves[owned.clone()].copy_from_slice(&local.v[..owned.len()]);
        }
        let mut ahead = None;
        if assembles_ahead(comm, integrator) {
            // The halo's velocities go first: the assembly below waits for them.
            integrator.send_velocities(comm, &local.v)?;
            match &mut state.subscriptions {
                Some(subscriptions) => subscriptions.begin(comm, &self.moves)?,
                None => comm.begin_allgather(bytemuck::cast_slice(&self.moves[owned.clone()]))?,
            }
            integrator.take_velocities(comm, &mut local.v)?;
            ahead = Some(assemble_ahead(at, system, local, shares));
            at.domain.charge_assembly(comm);
            report.ahead = clock.lap(comm, None, Some(PHASES[4]));
            report.times[1] += report.ahead;
            match &mut state.subscriptions {
                Some(subscriptions) => subscriptions.finish(comm, &mut self.moves)?,
                None => {
                    let lengths = bytes_of_ranks(comm, at.domain);
                    let all = bytemuck::cast_slice_mut(&mut self.moves);
                    comm.finish_allgather_into(&lengths, all)?;
                }
            }
        } else {
            share_values(comm, at.domain, &mut state.subscriptions, &mut self.moves)?;
        }
        if integrator.has_ends() {
            if self.ends.is_empty() {
                self.ends = self.moves.like(state.len());
            }
            self.ends[owned.clone()].copy_from_slice(&integrator.ends);
            share_values(comm, at.domain, &mut state.subscriptions, &mut self.ends)?;
        }
        if state.subscriptions.is_none() {
            let times = 1 + usize::from(integrator.has_ends());
            report.state_bytes += (times * others * size_of::<DVec3>()) as u64;
        }
        let mut seen = self.move_known(at, state, integrator);
        let ghosts = (state.subscriptions.as_ref()).map_or(others, Subscriptions::ghosts);
        let vertices = (owned.len() + ghosts) as u64;
        (at.domain.cost_model).charge(comm, Work::NewState { vertices });
        let mut whole = true;
        if state.subscriptions.is_some() {
            if let Some((certification, detection)) = &certification {
                seen = certification.look_ahead(at, (state, detection), (seen, &self.moved));
            }
            seen = seen.of_all(comm)?;
            let certification = certification.as_ref();
            let needs_all = certification.is_some_and(|(c, _)| c.needs_all(&seen));
            whole = seen.bad || needs_all;
            if whole {
                self.make_whole(comm, at, state, integrator)?;
                report.gathered += 1;
            }
        }
        if seen.bad {
            return Err(self.fault(at, integrator));
        }
        let mut extent = seen.extent;
        let over = part.map_or(dt, |part| part.at.substep.dt);
        if part.is_some() {
            integrator.keep(
                dt,
                state.of(owned.clone()),
                &self.moves[owned.clone()],
                jolts,
            );
        }
        if let Some((certification, detection)) = &mut certification {
            let own = at;
            let mut region = None;
            loop {
                let (at, start) = part.map_or((own, &*state), |part| (part.at, part.start));
                let moves = if part.is_some() {
                    self.means.clear();
                    let ways = self.moved.iter().zip(start.x.iter());
                    self.means
                        .extend(ways.map(|(end, start)| (*end - *start) / over));
                    &mut self.means[..]
                } else {
                    &mut self.moves[..]
                };
                let goals = Goals {
                    moves,
                    ends: if integrator.has_ends() {
                        &mut self.ends
                    } else {
                        &mut []
                    },
                    moved: &mut self.moved,
                    changes: Vec::new(),
                };
                let places = Places {
                    known: match &region {
                        _ if whole => Known::All,
                        Some(region) => Known::Around(region),
                        None => Known::Subscribed,
                    },
                    exceeds: seen.exceeds,
                    farthest: start_extent.union(extent).farthest(),
                };
                let certified = certification.certify(
                    comm,
                    at,
                    (start, detection),
                    (goals, places),
                    shares.team(),
                )?;
                match certified {
                    Outcome::Certified(certified) => {
                        report.certified = certified;
                        break;
                    }
                    Outcome::Lacks(Some(needed)) if part.is_none() => {
                        self.give_all(comm, own, &needed, (state, integrator))?;
                        region = Some(needed);
                    }
                    Outcome::Lacks(_) => {
                        self.make_whole(comm, own, state, integrator)?;
                        report.gathered += 1;
                        whole = true;
                    }
                }
            }
            if report.certified.has_moved() {
                // The next substep begins elsewhere.
                ahead = None;
                extent = if whole {
                    Extent::of(&self.moved)
                } else {
                    let own = Extent::of(&self.moved[owned.clone()]);
                    let seen = Seen {
                        extent: own,
                        ..Seen::NOTHING
                    };
                    seen.of_all(comm)?.extent
                };
                if part.is_some() {
                    self.follow_cuts(at, certification.cuts(), (state, dt), integrator);
                }
            }
        }
        let ends = if integrator.has_ends() {
            &self.ends
        } else {
            &self.moves
        };
        let velocities = Velocities {
            start: &state.v[owned.clone()],
            end: &ends[owned.clone()],
            moves: &self.moves[owned.clone()],
        };
        let cuts =
            (certification.as_ref()).map_or(&[][..], |(certification, _)| certification.cuts());
        report.ledger = impulses.sums(at, velocities, (cuts, over));
        self.ahead = ahead;
        state.extent = Some(extent);
        if part.is_none() {
            integrator.keep(dt, state.of(owned.clone()), &self.moves[owned], jolts);
        }
        std::mem::swap(&mut state.x, &mut self.moved);
        let ends = if integrator.has_ends() {
            &mut self.ends
        } else {
            &mut self.moves
        };
        std::mem::swap(&mut state.v, ends);
        let subscriptions = state.subscriptions.as_mut().filter(|_| !whole);
        let gives_back = |of: &mut Subscriptions| of.end_substep([&mut state.x, &mut state.v]);
        if subscriptions.is_some_and(gives_back) {
            for all in [&mut self.moves, &mut self.moved, &mut self.ends] {
                all.keep(std::iter::empty());
            }
        }
        Ok(())
    }

    /// Has the last substep of a part, which began with this state and took `dt` (s), move vertices
    /// to where certification has put them, and the substeps before it go on from there.
    fn follow_cuts(
        &mut self,
        at: Context<'_>,
        cuts: &[Cut],
        (state, dt): (&State, f64),
        integrator: &mut TimeIntegrator,
    ) {
        let owned = at.domain.owned();
        for cut in cuts {
            let v = cut.vertex as usize;
            let way = self.moved[v] - state.x[v];
            let moved = way - self.moves[v] * dt;
            self.moves[v] = way / dt;
            if owned.contains(&v) {
                integrator.shift_past(dt, v - owned.start, cut.change, moved);
            }
        }
    }

    /// Gives every rank the way of the vertices in a region. Collective.
    fn give_all(
        &mut self,
        comm: &mut dyn Comm,
        at: Context<'_>,
        region: &Region<'_>,
        (state, integrator): (&mut State, &TimeIntegrator),
    ) -> Result<(), CommError> {
        let vertices: Vec<u32> = region.vertices().collect();
        // In the order of vertices, which is that of ranks.
        let place = |end: usize| vertices.partition_point(|&v| (v as usize) < end);
        let of = |owned: Range<usize>| place(owned.start)..place(owned.end);
        let lengths: Vec<usize> = (0..comm.size())
            .map(|rank| size_of::<DVec3>() * of(at.domain.ownership.vertices(rank)).len())
            .collect();
        let others = vertices.len() - of(at.domain.owned()).len();
        let mut room = vec![DVec3::ZERO; vertices.len()];
        let mut give = |values: &mut [DVec3]| {
            for (room, &v) in room.iter_mut().zip(&vertices) {
                *room = values[v as usize];
            }
            comm.allgather_into(&lengths, bytemuck::cast_slice_mut(&mut room))?;
            for (room, &v) in room.iter().zip(&vertices) {
                values[v as usize] = *room;
            }
            if let Some(subscriptions) = &mut state.subscriptions {
                subscriptions.count_received(others);
            }
            Ok::<(), CommError>(())
        };
        give(&mut self.moves)?;
        if integrator.has_ends() {
            give(&mut self.ends)?;
        }
        give(&mut state.x)?;
        for &v in &vertices {
            let v = v as usize;
            let (x, moves) = (&state.x[v..=v], &self.moves[v..=v]);
            move_run(&mut self.moved[v..=v], [x, moves], at.substep.dt);
        }
        Ok(())
    }

    /// Gives this rank the way of all vertices, where it has that of some. Collective.
    fn make_whole(
        &mut self,
        comm: &mut dyn Comm,
        at: Context<'_>,
        state: &mut State,
        integrator: &TimeIntegrator,
    ) -> Result<(), CommError> {
        let Some(mut subscriptions) = state.subscriptions.take() else {
            return Ok(());
        };
        let starts_in_parts = !subscriptions.is_whole();
        let mut gather = |values: &mut [DVec3]| {
            subscriptions.count_received(values.len() - at.domain.owned().len());
            gather_all(comm, at.domain, values)
        };
        gather(&mut self.moves)?;
        if integrator.has_ends() {
            gather(&mut self.ends)?;
        }
        if starts_in_parts {
            gather(&mut state.x)?;
            gather(&mut state.v)?;
        }
        subscriptions.note_whole();
        // As if there were no subscriptions.
        self.move_known(at, state, integrator);
        state.subscriptions = Some(subscriptions);
        Ok(())
    }

    /// Finds the positions to which vertices move whose velocities are here. Returns facts about
    /// all of them, or about owned ones where others know more.
    fn move_known(&mut self, at: Context<'_>, state: &State, integrator: &TimeIntegrator) -> Seen {
        if self.moved.is_empty() {
            self.moved = self.moves.like(state.len());
        }
        let (x, moves, dt) = (&state.x, &self.moves, at.substep.dt);
        let along = |moved: &mut [DVec3], run: Range<usize>| {
            move_run(moved, [&x[run.clone()], &moves[run]], dt)
        };
        let ends = |run: Range<usize>| match integrator.has_ends() {
            true => self.ends[run].iter().any(|v| !v.is_finite()),
            false => false,
        };
        let Some(subscriptions) = &state.subscriptions else {
            let shares = &state.shares.elements;
            let mut seen = vec![Seen::NOTHING; shares.len()];
            let moved = parts(&mut self.moved, shares).zip(shares);
            (state.shares).run(moved.zip(&mut seen), |((moved, share), seen)| {
                *seen = along(moved, share.clone());
            });
            let mut all = seen.into_iter().fold(Seen::NOTHING, Seen::and);
            all.bad |= ends(0..state.len());
            return all;
        };
        for run in subscriptions.runs_of_subscriptions() {
            along(&mut self.moved[run.clone()], run);
        }
        let owned = at.domain.owned();
        let mut own = along(&mut self.moved[owned.clone()], owned.clone());
        own.bad |= ends(owned);
        own
    }

    /// The error of a state that is not all numbers, or of a vertex that moves faster than any
    /// cloth: the same on every rank, for all look at all.
    fn fault(&self, at: Context<'_>, integrator: &TimeIntegrator) -> StepError {
        let ends = if integrator.has_ends() {
            &self.ends[..]
        } else {
            &[]
        };
        let first = |vectors: &[DVec3]| vectors.iter().position(|v| !v.is_finite());
        let lost = first(&self.moved).or_else(|| first(ends));
        let fast = self
            .moves
            .iter()
            .position(|v| v.abs().max_element() > FASTEST);
        let step = at.substep.number();
        if let (None, Some(vertex)) = (lost, fast) {
            return StepError::FlewApart {
                step,
                at: at.world.name(vertex),
                speed: self.moves[vertex].length(),
                explicit: !integrator.integrator.is_implicit(),
            };
        }
        StepError::NonFinite {
            step,
            at: at.world.name(lost.unwrap_or_default()),
        }
    }
}

/// Finds the positions to which vertices move from `x` (m) with velocities (m/s) in a time in s.
fn move_run(moved: &mut [DVec3], [x, moves]: [&[DVec3]; 2], dt: f64) -> Seen {
    let mut seen = Seen::NOTHING;
    let chunks = moved
        .chunks_mut(NEAR)
        .zip(x.chunks(NEAR).zip(moves.chunks(NEAR)));
    for (moved, (x, v)) in chunks {
        let numbers: &mut [f64] = bytemuck::cast_slice_mut(moved);
        let (x, v): (&[f64], &[f64]) = (bytemuck::cast_slice(x), bytemuck::cast_slice(v));
        // A velocity that is no number gives a position that is none.
        for (moved, (x, v)) in numbers.iter_mut().zip(x.iter().zip(v)) {
            *moved = x + v * dt;
            seen.bad |= !moved.is_finite() || v.abs() > FASTEST;
        }
        seen.extent = seen.extent.union(Extent::of(moved));
    }
    seen
}

/// Gives every rank the values of all vertices, of which it has those of its own. Collective.
///
/// # Errors
/// Messages failed.
pub(crate) fn gather_all(
    comm: &mut dyn Comm,
    domain: &Domain,
    values: &mut [DVec3],
) -> Result<(), CommError> {
    let lengths = bytes_of_ranks(comm, domain);
    comm.allgather_into(&lengths, bytemuck::cast_slice_mut(values))
}

/// The bytes of a vector for each vertex of each rank.
fn bytes_of_ranks(comm: &dyn Comm, domain: &Domain) -> Vec<usize> {
    let bytes = |rank| size_of::<DVec3>() * domain.ownership.vertices(rank).len();
    (0..comm.size()).map(bytes).collect()
}

/// Gives every rank the values of the vertices that it knows. Collective.
fn share_values(
    comm: &mut dyn Comm,
    domain: &Domain,
    subscriptions: &mut Option<Subscriptions>,
    values: &mut [DVec3],
) -> Result<(), CommError> {
    match subscriptions {
        Some(subscriptions) => {
            subscriptions.begin(comm, values)?;
            subscriptions.finish(comm, values)
        }
        None => gather_all(comm, domain, values),
    }
}

/// Whether the next substep's system is assembled while the state travels.
pub(crate) fn assembles_ahead(comm: &dyn Comm, integrator: &TimeIntegrator) -> bool {
    comm.size() > 1 && !integrator.has_ends()
}

/// Assembles the system of implicit Euler for the substep that follows if this one does not fail.
/// The local positions are moved to where it begins.
fn assemble_ahead(
    at: Context<'_>,
    system: &mut LinearSystem,
    local: &mut LocalState,
    shares: &Shares,
) -> Ahead {
    let dt = at.substep.dt;
    let (x, v) = (&mut local.x[..], &local.v[..]);
    let (own, halo) = x.split_at_mut(at.domain.owned().len());
    let share = |(x, share): (&mut [DVec3], &Range<usize>)| move_on(x, &v[share.clone()], dt);
    shares.run(parts(own, &shares.elements).zip(&shares.elements), share);
    let first = own.len();
    move_on(halo, &v[first..], dt);
    let mut controller = at.substep.controller;
    controller.succeed();
    let dt = controller.length(at.world.scene().time.step);
    let following = Following {
        tau: dt,
        stiff: dt,
        time: load_time(at.world, at.substep.next_time(at.world), dt),
    };
    Ahead {
        dt,
        time: following.time,
        outcome: system.assemble_here(at.world, local, following),
    }
}

/// The highest speed along an axis in m/s: no cloth moves so fast.
const FASTEST: f64 = 1e6;

/// The number of vertices that are moved, and looked at while they are in the nearest cache.
const NEAR: usize = 256;

/// Moves positions by velocities, with the roundings of [`move_run`].
fn move_on(x: &mut [DVec3], v: &[DVec3], dt: f64) {
    for (x, v) in x.iter_mut().zip(v) {
        *x += *v * dt;
    }
}
