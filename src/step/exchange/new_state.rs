//! The end of a part: every rank gets the new state, and the next part's system is assembled while it travels.
//!
//! Velocities of all vertices take longer on their way than anything else that a step sends. Elements read those of owned vertices and
//! their halo only, which are there at once; so on several ranks the system that the next part begins with is assembled before the rest
//! is waited for. It is the one that would be assembled later, to the bit: where a system is linearised at the start of its part, contacts
//! have no say in it but through the filter.

use glam::DVec3;
use weft_balance::cost_model::Work;
use weft_runtime::comm::{Collectives, Comm};

use crate::collide::Extent;
use crate::scene::Integrator;
use crate::step::error::StepError;
use crate::step::report::{Clock, StepReport};
use crate::step::simulation::Simulation;
use crate::step::system::assembly::Collapsed;
use crate::team::parts;

/// The system of a part that is still to begin.
#[derive(Debug)]
pub(crate) struct Ahead {
    /// The length in s that the part was expected to have.
    dt: f64,
    outcome: Result<(), Collapsed>,
}

impl Simulation<'_> {
    /// Moves the owned vertices and gives every rank the new state; on several, assembles the next part's system meanwhile. Collective.
    ///
    /// Where vertices end with the velocities with which they moved, only those travel: every rank moves all vertices alike.
    pub(crate) fn share(
        &mut self,
        comm: &mut dyn Comm,
        report: &mut StepReport,
        clock: &mut Clock,
    ) -> Result<(), StepError> {
        let owned = self.owned();
        let lengths: Vec<usize> = (0..comm.size())
            .map(|rank| size_of::<DVec3>() * self.ownership.vertices(rank).len())
            .collect();
        let assembles = comm.size() > 1 && self.motion.integrator == Integrator::Euler;
        if comm.size() == 1 {
            std::mem::swap(&mut self.local_v, &mut self.moves);
        } else {
            self.moves[owned.clone()].copy_from_slice(&self.local_v[..owned.len()]);
        }
        let mut ahead = None;
        if assembles {
            // What waits for it goes first.
            self.motion.send_velocities(comm, &self.local_v)?;
            comm.begin_allgather(bytemuck::cast_slice(&self.moves[owned.clone()]))?;
            self.motion.take_velocities(comm, &mut self.local_v)?;
            ahead = Some(self.assemble_ahead());
            self.charge_assembly(comm);
            report.ahead = clock.lap(comm);
            report.times[1] += report.ahead;
            comm.finish_allgather_into(&lengths, bytemuck::cast_slice_mut(&mut self.moves))?;
        } else {
            comm.allgather_into(&lengths, bytemuck::cast_slice_mut(&mut self.moves))?;
        }
        if self.motion.has_ends() {
            self.ends.resize(self.x.len(), DVec3::ZERO);
            self.ends[owned.clone()].copy_from_slice(&self.motion.ends);
            comm.allgather_into(&lengths, bytemuck::cast_slice_mut(&mut self.ends))?;
        }
        let vertices = self.x.len() as u64;
        self.cost_model.charge(comm, Work::NewState { vertices });
        let extent = self.move_all()?;
        self.ahead = ahead;
        self.extent = Some(extent);
        let begin = (&self.x[owned.clone()], &self.v[owned.clone()]);
        self.motion
            .keep(self.dt, begin, &self.moves[owned], self.bodies.jolts());
        std::mem::swap(&mut self.x, &mut self.moved);
        let ends = if self.motion.has_ends() {
            &mut self.ends
        } else {
            &mut self.moves
        };
        std::mem::swap(&mut self.v, ends);
        Ok(())
    }

    /// Assembles the system of implicit Euler for the part that follows if this one does not fail. What elements read is moved there.
    fn assemble_ahead(&mut self) -> Ahead {
        let (dt, shares) = (self.dt, self.cg.shares());
        let (x, v) = (&mut self.local_x[..], &self.local_v[..]);
        let (own, halo) = x.split_at_mut(self.plan.owned().len());
        let share = |(x, share): (&mut [DVec3], &std::ops::Range<usize>)| {
            move_on(x, &v[share.clone()], dt);
        };
        shares.run(parts(own, &shares.elements).zip(&shares.elements), share);
        let first = own.len();
        move_on(halo, &v[first..], dt);
        let mut stride = self.stride;
        stride.succeed();
        let dt = stride.length(self.world.scene().time.step);
        Ahead {
            dt,
            outcome: self.assemble_here((dt, dt)),
        }
    }

    /// What came of assembling this part's system before it began; `None` if it is still to be assembled.
    pub(crate) fn take_ahead(&mut self) -> Option<Result<(), Collapsed>> {
        let ahead = self.ahead.take()?;
        (ahead.dt == self.dt).then_some(ahead.outcome)
    }

    /// Finds where all vertices move to, and around what. Fails if the new state is not all numbers, or a vertex moves faster than any cloth: on every rank, for all look
    /// at all.
    fn move_all(&mut self) -> Result<Extent, StepError> {
        self.moved.resize(self.x.len(), DVec3::ZERO);
        let (x, moves, dt) = (&self.x, &self.moves, self.dt);
        let shares = &self.everywhere.elements;
        let mut seen = vec![(false, Extent::EMPTY); shares.len()];
        let moved = parts(&mut self.moved, shares).zip(shares);
        (self.everywhere).run(moved.zip(&mut seen), |((moved, share), (bad, extent))| {
            let (x, v) = (&x[share.clone()], &moves[share.clone()]);
            let chunks = moved
                .chunks_mut(NEAR)
                .zip(x.chunks(NEAR).zip(v.chunks(NEAR)));
            for (moved, (x, v)) in chunks {
                let numbers: &mut [f64] = bytemuck::cast_slice_mut(moved);
                let (x, v): (&[f64], &[f64]) = (bytemuck::cast_slice(x), bytemuck::cast_slice(v));
                // Who moves with what is no number comes to what is none.
                for (moved, (x, v)) in numbers.iter_mut().zip(x.iter().zip(v)) {
                    *moved = x + v * dt;
                    *bad |= !moved.is_finite() || v.abs() > FASTEST;
                }
                *extent = extent.union(Extent::of(moved));
            }
        });
        let mut bad = seen.iter().any(|(bad, _)| *bad);
        let ends = if self.motion.has_ends() {
            &self.ends[..]
        } else {
            &[]
        };
        bad |= ends.iter().any(|v| !v.is_finite());
        if !bad {
            let extents = seen.into_iter().map(|(_, extent)| extent);
            return Ok(extents.fold(Extent::EMPTY, Extent::union));
        }
        let first = |vectors: &[DVec3]| vectors.iter().position(|v| !v.is_finite());
        let at = first(&self.moved).or_else(|| first(ends));
        let fast = self
            .moves
            .iter()
            .position(|v| v.abs().max_element() > FASTEST);
        if let (None, Some(at)) = (at, fast) {
            return Err(StepError::FlewApart {
                step: self.step + 1,
                at: self.name(at),
                speed: self.moves[at].length(),
                explicit: !self.motion.integrator.is_implicit(),
            });
        }
        Err(StepError::NonFinite {
            step: self.step + 1,
            at: self.name(at.unwrap_or_default()),
        })
    }
}

/// In m/s along an axis: no cloth moves so fast.
const FASTEST: f64 = 1e6;

/// Vertices that are moved, and looked at while they are in the nearest cache.
const NEAR: usize = 256;

/// Moves positions by velocities, with the roundings of [`Simulation::move_all`].
fn move_on(x: &mut [DVec3], v: &[DVec3], dt: f64) {
    for (x, v) in x.iter_mut().zip(v) {
        *x += *v * dt;
    }
}
