//! The memory that a thread works in while it fills runs of rows.

use crate::heap_bytes::{counts_heap, owns_no_heap};
use crate::physics::membrane_lanes::Coupled;

/// The numbers of a row that are not of its columns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowFactors {
    /// The mass in kg with drag on it.
    pub(crate) mass: f64,
    /// The factor of the sums of bending in the matrix, in s².
    pub(crate) bending: f64,
    /// The factor of the force by bending in the right-hand side, in s.
    pub(crate) bent: f64,
}

/// The memory that a thread works in; vertices stand as in [`super::local_vertices`].
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// Positions, with a fourth number.
    pub(crate) x: Vec<[f64; 4]>,
    /// Velocities, with a fourth number.
    pub(crate) v: Vec<[f64; 4]>,
    /// Positions after the time at which bending is looked at.
    pub(crate) ahead: Vec<[f64; 4]>,
    /// The right-hand side, with a fourth number that stays zero. Only that of the rows is of use.
    pub(crate) rhs: Vec<[f64; 4]>,
    /// The factors of each row.
    pub(crate) rows: Vec<RowFactors>,
    /// How the corners of triangles are coupled.
    pub(crate) coupled: Vec<Coupled>,
}

owns_no_heap!(RowFactors);
counts_heap!(Scratch: x, v, ahead, rhs, rows, coupled);
