//! Time integration: what each method takes positions and velocities to be at the end of a substep.
//!
//! A substep of length h begins with positions x and velocities v. Every method finds velocities u
//! by one kind of equation, and moves positions by their average w over the substep:
//!
//! ```text
//! M (u − v̂) = τ (f(X) − D(X) u + M g)
//! ```
//!
//! | method | τ | v̂ | X | x at the end |
//! |---|---|---|---|---|
//! | Euler | h | v | x + h u | x + h u |
//! | BDF2 | h (1+r)/(1+2r) | v + b (v − v₋) | x̂ + τ u, x̂ = x + b (x − x₋) | x̂ + τ u |
//! | Newmark, B.1 and B.3 | h/2 | v | x | x + h u |
//! | Newmark, B.5 | h/2 | v* | x + h/2 u | |
//! | central, first half | h/2 | v | x, and D(x) v | x + h u |
//! | central, second half | h/2 | w | x + h u | |
//!
//! with b = r²/(1+2r), r = h/h₋ and what has the index ₋ from the substep before: backward
//! differences for steps of unequal length. Without a substep before r is 0, and BDF2 is Euler's
//! method. Newmark's second solve is extrapolated, 2u − v* (B.6), so that both together are the
//! trapezoidal rule [Selle et al. 2009, §3]; so are the two halves of central differences, one
//! after the other [Bridson 2003, §1.5].
//!
//! **Contacts** act on w, for it is w that must not take one layer through another, and change u by
//! as much, as an impulse within the substep: δ. BDF2 would carry a jump of velocity on, by b times
//! its size; so δ is added to v₋ too, as if the impulse had always been there: the past is shifted.
//! Momentum stays what it was, and where contacts push steadily the method keeps its balance.
//! Directions that bodies or pins prescribe have no past at all, and the momentum that friction
//! takes at an impact is such a δ, while steady friction is a force. There x̂ and v̂ are set to
//! their values at constant velocity. Newmark's second solve starts from v* = v + δ, that of
//! central differences from the corrected w [Bridson 2003, §2.3]; what bodies hold in the first
//! solve keeps in the second the velocity it has there.

use glam::{DMat3, DVec3};
use weft_partition::HaloPlan;
use weft_runtime::comm::{Comm, CommError, Tag};

use crate::heap_bytes::{counts_heap, owns_no_heap};
use crate::scene::Integrator;
use crate::solve::Halo;
use crate::step::state::StateView;

/// The tag of the messages by which an integrator completes its halo.
pub(crate) const TAG: Tag = Tag(0x30);

/// Positions (m) and velocities (m/s) of owned vertices at the start of the substep before.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Past {
    /// The length of that substep in s; 0 if there was none.
    pub(crate) length: f64,
    pub(crate) x: Vec<DVec3>,
    pub(crate) v: Vec<DVec3>,
}

counts_heap!(Past: x, v; without length);

/// A change of an owned vertex's velocity at an impact.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Jolt {
    /// The vertex's index among those owned.
    pub(crate) local: u32,
    /// The change in m/s.
    pub(crate) change: DVec3,
}

owns_no_heap!(Jolt);

/// An owned vertex of which some directions are prescribed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prescribed {
    /// The vertex's index among those owned.
    pub(crate) local: usize,
    /// The projection onto the directions that are free.
    pub(crate) free: DMat3,
    /// The velocity in m/s that is prescribed in the others.
    pub(crate) velocity: DVec3,
}

/// The vectors of an integration: of owned vertices, and where it says *local* also of the halo.
#[derive(Debug)]
pub(crate) struct TimeIntegrator {
    pub(crate) integrator: Integrator,
    halo: Halo,
    pub(crate) past: Past,
    /// The time τ for which forces act, in s.
    pub(crate) tau: f64,
    /// The positions x̂, local.
    ahead_x: Vec<DVec3>,
    /// The velocities v̂.
    ahead_v: Vec<DVec3>,
    /// The positions X that a system is linearised at, local.
    pub(crate) x: Vec<DVec3>,
    /// The velocities that a system is linearised at, local.
    pub(crate) v: Vec<DVec3>,
    /// The velocities v̂ less those that a system is linearised at.
    pub(crate) toward: Vec<DVec3>,
    /// The average velocities w before contacts acted.
    free: Vec<DVec3>,
    /// The velocities at the end of the substep, where these are not w.
    pub(crate) ends: Vec<DVec3>,
    /// The part of w that only moves vertices, of owned ones; empty if there is none.
    pub(crate) lift: Vec<DVec3>,
}

counts_heap!(TimeIntegrator:
    halo, past, ahead_x, ahead_v, x, v, toward, free, ends, lift;
    without integrator, tau
);

impl TimeIntegrator {
    /// The integrator of a rank. `iterates` says that systems are linearised elsewhere than where
    /// the substep begins, `lifts` that some pushes only move vertices.
    pub(crate) fn new(
        integrator: Integrator,
        [iterates, lifts]: [bool; 2],
        plan: &HaloPlan,
    ) -> Self {
        let plain = integrator == Integrator::Euler;
        let apart = !plain || lifts;
        let (owned, local) = (plan.owned().len(), plan.local_len());
        let zeros = |needed: bool, n: usize| vec![DVec3::ZERO; if needed { n } else { 0 }];
        let backward = integrator == Integrator::Bdf2;
        Self {
            integrator,
            halo: Halo::new(plan, TAG),
            past: Past {
                length: 0.0,
                x: zeros(backward, owned),
                v: zeros(backward, owned),
            },
            tau: 0.0,
            ahead_x: zeros(!plain || iterates, local),
            ahead_v: zeros(!plain || iterates, owned),
            x: zeros(!plain || iterates, local),
            v: zeros(!plain || iterates, local),
            toward: zeros(!plain || iterates, owned),
            free: zeros(apart, owned),
            ends: zeros(apart, owned),
            lift: zeros(lifts, owned),
        }
    }

    /// Whether velocities at the end are not those that moved the vertices.
    pub(crate) fn has_ends(&self) -> bool {
        !self.ends.is_empty()
    }

    /// Whether it needs the substep before.
    pub(crate) fn looks_back(&self) -> bool {
        self.integrator == Integrator::Bdf2
    }

    /// Forgets the substep before: the state is another.
    pub(crate) fn forget(&mut self) {
        self.past.length = 0.0;
    }

    /// Finds τ, x̂ and v̂ of a substep of length `h` (s) that begins with a local state. The halo's
    /// part of x̂ comes with [`TimeIntegrator::share_ahead`].
    pub(crate) fn begin(&mut self, h: f64, StateView { x, v }: StateView<'_>) {
        let back;
        (self.tau, back) = self.differences(h);
        if self.ahead_x.is_empty() {
            return;
        }
        let owned = self.ahead_v.len();
        self.ahead_x.copy_from_slice(x);
        self.ahead_v.copy_from_slice(&v[..owned]);
        if back > 0.0 {
            for (i, (past_x, past_v)) in self.past.x.iter().zip(&self.past.v).enumerate() {
                self.ahead_x[i] += (x[i] - *past_x) * back;
                self.ahead_v[i] += (v[i] - *past_v) * back;
            }
        }
    }

    /// The time τ for which forces act in a substep of length `h` (s).
    pub(crate) fn tau_of(&self, h: f64) -> f64 {
        self.differences(h).0
    }

    /// The time τ and the factor b of a substep of length `h` (s).
    fn differences(&self, h: f64) -> (f64, f64) {
        match self.integrator {
            Integrator::Euler => (h, 0.0),
            Integrator::Bdf2 => backward_differences(h, self.past.length),
            Integrator::Newmark | Integrator::Central => (0.5 * h, 0.0),
        }
    }

    /// The velocity w of an owned vertex at `x` (m) for the velocity u that was found.
    pub(crate) fn motion(&self, h: f64, x: DVec3, i: usize, u: DVec3) -> DVec3 {
        if self.looks_back() && self.past.length > 0.0 {
            (self.ahead_x[i] - x) / h + u * (self.tau / h)
        } else {
            u
        }
    }

    /// Takes the past from an owned vertex in the directions that are prescribed. `begin` is the
    /// local state at the start of the substep of length `h` (s).
    pub(crate) fn prescribe(&mut self, prescribed: Prescribed, begin: StateView<'_>, h: f64) {
        if self.integrator != Integrator::Bdf2 {
            return;
        }
        let Prescribed {
            local: i,
            free,
            velocity,
        } = prescribed;
        let (x, v) = (begin.x[i], begin.v[i]);
        let held = velocity - free * velocity;
        self.ahead_x[i] = x + free * (self.ahead_x[i] - x) + held * (h - self.tau);
        self.ahead_v[i] = v + free * (self.ahead_v[i] - v);
    }

    /// Brings x̂ of the halo here. Collective.
    pub(crate) fn share_ahead(&mut self, comm: &mut dyn Comm) -> Result<(), CommError> {
        if self.integrator == Integrator::Bdf2 {
            self.halo.start(comm, &self.ahead_x)?;
            self.halo.finish(comm, &mut self.ahead_x)?;
        }
        Ok(())
    }

    /// Linearises at velocities that are local already: X = x̂ + τ v.
    pub(crate) fn linearise(&mut self, v: &[DVec3]) {
        self.v.copy_from_slice(v);
        self.follow();
    }

    /// Linearises at the velocities `v + change` of owned vertices. Collective.
    pub(crate) fn linearise_at(
        &mut self,
        comm: &mut dyn Comm,
        v: &[DVec3],
        change: &[DVec3],
    ) -> Result<(), CommError> {
        for ((at, v), change) in self.v.iter_mut().zip(v).zip(change) {
            *at = *v + *change;
        }
        self.halo.start(comm, &self.v)?;
        self.halo.finish(comm, &mut self.v)?;
        self.follow();
        Ok(())
    }

    fn follow(&mut self) {
        for ((x, ahead), v) in self.x.iter_mut().zip(&self.ahead_x).zip(&self.v) {
            *x = *ahead + *v * self.tau;
        }
        for ((toward, ahead), v) in self.toward.iter_mut().zip(&self.ahead_v).zip(&self.v) {
            *toward = *ahead - *v;
        }
    }

    /// Turns the velocities u that were found into w, in place, before contacts act on it. `x` are
    /// the positions at the start of the substep.
    pub(crate) fn average(&mut self, h: f64, x: &[DVec3], u: &mut [DVec3], jolts: &[Jolt]) {
        if !self.has_ends() {
            return;
        }
        self.ends.copy_from_slice(u);
        if self.integrator == Integrator::Bdf2 && self.past.length > 0.0 {
            for ((u, ahead), x) in u.iter_mut().zip(&self.ahead_x).zip(x) {
                *u = (*ahead - *x) / h + *u * (self.tau / h);
            }
            // All of a jolt moves the vertex, of which u has brought τ/h.
            for jolt in jolts {
                u[jolt.local as usize] += jolt.change * (1.0 - self.tau / h);
            }
        }
        self.free.copy_from_slice(u);
    }

    /// Takes over the changes of w by contacts.
    pub(crate) fn pushed(&mut self, w: &[DVec3]) {
        if self.integrator.is_implicit() {
            for ((end, free), w) in self.ends.iter_mut().zip(&self.free).zip(w) {
                *end += *w - *free;
            }
        }
    }

    /// Brings velocities of the halo here, of local `v`. Collective.
    pub(crate) fn share_velocities(
        &mut self,
        comm: &mut dyn Comm,
        v: &mut [DVec3],
    ) -> Result<(), CommError> {
        self.send_velocities(comm, v)?;
        self.take_velocities(comm, v)
    }

    /// Sends the velocities that others read, the first half of [`Self::share_velocities`].
    pub(crate) fn send_velocities(
        &mut self,
        comm: &mut dyn Comm,
        v: &[DVec3],
    ) -> Result<(), CommError> {
        self.halo.start(comm, v)
    }

    /// Takes the velocities of the halo, the second half of [`Self::share_velocities`].
    pub(crate) fn take_velocities(
        &mut self,
        comm: &mut dyn Comm,
        v: &mut [DVec3],
    ) -> Result<(), CommError> {
        self.halo.finish(comm, v)
    }

    /// Linearises the second solve of Newmark's method and of central differences. `begin` has
    /// local positions and owned velocities at the start of the substep; the halo of local `w` is
    /// brought here. Collective.
    pub(crate) fn second(
        &mut self,
        comm: &mut dyn Comm,
        h: f64,
        begin: StateView<'_>,
        w: &mut [DVec3],
    ) -> Result<(), CommError> {
        let StateView { x, v } = begin;
        self.share_velocities(comm, w)?;
        let share = if self.integrator == Integrator::Newmark {
            0.5 * h
        } else {
            h
        };
        for ((at, x), w) in self.x.iter_mut().zip(x).zip(&*w) {
            *at = *x + *w * share;
        }
        for (w, lift) in w.iter_mut().zip(&self.lift) {
            *w -= *lift;
        }
        self.v.copy_from_slice(w);
        if self.integrator == Integrator::Newmark {
            for (i, (at, v)) in self.v.iter_mut().zip(v).take(self.free.len()).enumerate() {
                // v* = v + δ
                *at = *v + (w[i] - self.free[i]);
            }
            self.halo.start(comm, &self.v)?;
            self.halo.finish(comm, &mut self.v)?;
        } else if !self.lift.is_empty() {
            self.halo.start(comm, &self.v)?;
            self.halo.finish(comm, &mut self.v)?;
        }
        self.toward.fill(DVec3::ZERO);
        Ok(())
    }

    /// Adds to velocities `w` of owned vertices what only moves them, which
    /// [`second`](Self::second) has taken from them.
    pub(crate) fn put_lift_back(&self, w: &mut [DVec3]) {
        for (w, lift) in w.iter_mut().zip(&self.lift) {
            *w += *lift;
        }
    }

    /// Shifts the past as if a vertex had always had what was added to its velocity, in m/s, at the
    /// end of a substep of length `h` (s), where it was moved by `moved` (m).
    pub(crate) fn shift_past(&mut self, h: f64, local: usize, change: DVec3, moved: DVec3) {
        if let (Some(x), Some(v)) = (self.past.x.get_mut(local), self.past.v.get_mut(local)) {
            *x += moved - change * h;
            *v += change;
        }
    }

    /// How many times the change of the second solve is that of the end velocity: the extrapolation
    /// B.6.
    pub(crate) fn extrapolation(&self) -> f64 {
        if self.integrator == Integrator::Newmark {
            2.0
        } else {
            1.0
        }
    }

    /// Velocities at the end, from the change that the second solve found, extrapolated.
    pub(crate) fn finish(&mut self, change: &[DVec3]) {
        for ((end, v), change) in self.ends.iter_mut().zip(&self.v).zip(change) {
            *end = *v + *change;
        }
    }

    /// Keeps what the next substep needs of this one, which began with this state of owned
    /// vertices, and in which these moved with `w`.
    pub(crate) fn keep(&mut self, h: f64, begin: StateView<'_>, w: &[DVec3], jolts: &[Jolt]) {
        let StateView { x, v } = begin;
        if self.integrator != Integrator::Bdf2 {
            return;
        }
        self.past.length = h;
        self.past.x.copy_from_slice(x);
        for (i, past) in self.past.v.iter_mut().enumerate() {
            *past = v[i] + (w[i] - self.free[i]);
        }
        for (i, lift) in self.lift.iter().enumerate() {
            self.past.x[i] += *lift * h;
            self.past.v[i] -= *lift;
        }
        for jolt in jolts {
            self.past.v[jolt.local as usize] += jolt.change;
        }
    }
}

/// Finds τ in s and b for a substep of `h` after one of `before` (s), 0 if there was none.
fn backward_differences(h: f64, before: f64) -> (f64, f64) {
    if before <= 0.0 {
        return (h, 0.0);
    }
    let r = h / before;
    (h * (1.0 + r) / (1.0 + 2.0 * r), r * r / (1.0 + 2.0 * r))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Backward differences are exact for parabolas, whatever the lengths: x(t) = t², v = 2t, a =
    /// 2.
    #[test]
    fn backward_differences_are_exact_for_parabolas() {
        for (h, before) in [(0.1, 0.1), (0.1, 0.05), (0.05, 0.2)] {
            let (tau, back) = backward_differences(h, before);
            let at = |t: f64| t * t;
            let (now, past) = (0.7, 0.7 - before);
            let end = now + h;
            let velocity = 2.0 * now + back * 2.0 * (now - past) + tau * 2.0;
            assert!((velocity - 2.0 * end).abs() < 1e-14);
            let position = at(now) + back * (at(now) - at(past)) + tau * 2.0 * end;
            assert!((position - at(end)).abs() < 1e-14, "{h} {before}");
        }
        assert_eq!(backward_differences(0.1, 0.0), (0.1, 0.0));
    }
}
