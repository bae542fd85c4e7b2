//! The vertices that a run of rows reads: its own, in their order, and those around them.
//!
//! What elements read of them is copied to where it stays in the cache, four numbers each, and they are counted anew for that.

use std::ops::Range;

use glam::DVec3;
use weft_partition::HaloPlan;

use super::elements::local_in;
use super::triangles::Room;
use crate::physics::ClothModel;
use crate::solve::Pattern;

/// Which vertices there are. Behind them stand three of no cloth, the corners of [`CORNERS`].
#[derive(Debug)]
pub(super) struct Around {
    rows: Range<u32>,
    /// Those that are not of the rows, as global numbers, ascending.
    others: Vec<u32>,
    /// The same, as local indices.
    others_here: Vec<u32>,
    /// The first row, as a local index.
    first: usize,
}

/// A triangle that is nobody's.
pub(super) const CORNERS: [DVec3; 3] = [DVec3::ZERO, DVec3::X, DVec3::Y];

impl Around {
    /// Of rows that are given by global numbers.
    pub(super) fn new(plan: &HaloPlan, pattern: &Pattern, rows: &Range<usize>) -> Self {
        let first = rows.start - pattern.first_row() as usize;
        let (start, end) = (rows.start as u32, rows.end as u32);
        let columns = (first..first + rows.len()).flat_map(|row| {
            let (near, far) = (pattern.block_columns(row).1, pattern.scalar_columns(row).1);
            near.iter().chain(far).copied()
        });
        let mut others: Vec<u32> = columns.filter(|c| !(start..end).contains(c)).collect();
        others.sort_unstable();
        others.dedup();
        let local = local_in(plan);
        Self {
            rows: start..end,
            others_here: others.iter().map(|&v| local(v)).collect(),
            others,
            first,
        }
    }

    /// How many there are, of no cloth or of some.
    pub(super) fn len(&self) -> usize {
        self.rows.len() + self.others.len() + CORNERS.len()
    }

    /// The rows, as local indices.
    pub(super) fn rows(&self) -> Range<usize> {
        self.first..self.first + self.rows.len()
    }

    /// Where a vertex stands.
    ///
    /// # Panics
    /// If it is too far away.
    pub(super) fn index(&self, vertex: u32) -> u32 {
        if self.rows.contains(&vertex) {
            return vertex - self.rows.start;
        }
        let at = self.others.binary_search(&vertex);
        self.rows.len() as u32 + at.expect("rows have it as a column") as u32
    }

    /// Where the corners of no cloth stand.
    pub(super) fn corners(&self) -> [u32; 3] {
        let first = (self.len() - CORNERS.len()) as u32;
        [first, first + 1, first + 2]
    }

    /// Copies a vector of each vertex, of no use that of the corners of no cloth, from one with halo.
    pub(super) fn copy(&self, from: &[DVec3], to: &mut Vec<[f64; 4]>) {
        let four = |v: &DVec3| [v.x, v.y, v.z, 0.0];
        to.clear();
        to.extend(from[self.rows()].iter().map(four));
        to.extend(self.others_here.iter().map(|&v| four(&from[v as usize])));
        to.extend(CORNERS.iter().map(four));
    }

    /// Where vertices would be after a time (s) and their cloth's damping of bending.
    pub(super) fn look_ahead(&self, model: &ClothModel, time: f64, room: &mut Room) {
        let of_rows = self.rows.clone().chain(self.others.iter().copied());
        let state = room.x.iter().zip(&room.v);
        room.ahead.clear();
        (room.ahead).extend(of_rows.zip(state).map(|(vertex, (x, v))| {
            let time = time + model.bending_damping(vertex as usize);
            std::array::from_fn(|k| x[k] + v[k] * time)
        }));
    }
}
