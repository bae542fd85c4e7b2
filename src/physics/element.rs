//! Elements that couple their vertices by blocks: what each of them adds to a linear system.
//!
//! An [`Element`] of `N` vertices has an energy. In a system it is linearised where its corners
//! are, and then gives an impulse to each corner, and a block to each pair of corners. Folds,
//! shells, springs and panels in the air are such elements; whatever has vertices and an energy can
//! be one. Triangles of woven cloth and quadratic bending are not, for they have faster ways
//! ([`super::membrane_lanes`], [`super::bending`]).

use glam::{DMat3, DVec3};

/// Times of a substep, in s, by which forces and positions are multiplied in a system.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// The time for which forces act, τ.
    pub(crate) tau: f64,
    /// The time by which the unknown change of velocities Δv moves positions: they are
    /// x + shift v + stiff Δv.
    pub(crate) stiff: f64,
    /// The time by which the known velocities v move positions.
    pub(crate) shift: f64,
}

/// Positions (m) and velocities (m/s) of an element's corners.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Corners<const N: usize> {
    /// Positions in m.
    pub(crate) x: [DVec3; N],
    /// Velocities in m/s.
    pub(crate) v: [DVec3; N],
}

/// An element that couples its `N` vertices by 3x3 blocks.
pub(crate) trait Element<const N: usize> {
    /// Its forces and their derivatives at some positions and velocities, multiplied by the
    /// [`Times`] of the system.
    type Linearised;

    /// Linearises the energy and the damping.
    fn linearise(&self, corners: Corners<N>, times: &Times) -> Self::Linearised;

    /// Calls `add` with each corner and its block (kg) in the row of corner `row`, and returns the
    /// impulse (kg m/s) on `row`.
    fn row(&self, at: &Self::Linearised, row: usize, add: impl FnMut(usize, DMat3)) -> DVec3;
}

/// An element with an energy and a damping that are a factor times those of another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scaled<E> {
    pub(crate) of: E,
    pub(crate) factor: f64,
}

/// Everything that an element adds is in proportion to the time for which forces act.
impl<const N: usize, E: Element<N>> Element<N> for Scaled<E> {
    type Linearised = E::Linearised;

    #[inline(always)]
    fn linearise(&self, corners: Corners<N>, times: &Times) -> Self::Linearised {
        let times = Times {
            tau: times.tau * self.factor,
            ..*times
        };
        self.of.linearise(corners, &times)
    }

    #[inline(always)]
    fn row(&self, at: &Self::Linearised, row: usize, add: impl FnMut(usize, DMat3)) -> DVec3 {
        self.of.row(at, row, add)
    }
}

impl<const N: usize, E: Element<N>> Element<N> for &E {
    type Linearised = E::Linearised;

    #[inline(always)]
    fn linearise(&self, corners: Corners<N>, times: &Times) -> Self::Linearised {
        (**self).linearise(corners, times)
    }

    #[inline(always)]
    fn row(&self, at: &Self::Linearised, row: usize, add: impl FnMut(usize, DMat3)) -> DVec3 {
        (**self).row(at, row, add)
    }
}
