//! The vertices that a run of rows reads: its own, in their order, and those local_vertices them.
//!
//! What elements read of them is copied to where it stays in the cache, four numbers each, and they are counted anew for that.

use std::ops::Range;

use glam::DVec3;
use weft_partition::HaloPlan;

use super::elements::local_in;
use super::triangles::Scratch;
use crate::physics::ClothModel;
use crate::solve::Pattern;

/// Which vertices there are. Behind them stand three of no cloth, the corners of [`CORNERS`].
#[derive(Debug)]
pub(crate) struct LocalVertices {
    rows: Range<u32>,
    /// Those that are not of the rows, as global numbers, ascending.
    others: Vec<u32>,
    /// The same, as local indices.
    others_here: Vec<u32>,
    /// The first row, as a local index.
    first: usize,
}

/// A triangle that is nobody's.
pub(crate) const CORNERS: [DVec3; 3] = [DVec3::ZERO, DVec3::X, DVec3::Y];

impl LocalVertices {
    /// Of rows that are given by global numbers.
    pub(crate) fn new(plan: &HaloPlan, pattern: &Pattern, rows: &Range<usize>) -> Self {
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
    pub(crate) fn len(&self) -> usize {
        self.rows.len() + self.others.len() + CORNERS.len()
    }

    /// The rows, as local indices.
    pub(crate) fn rows(&self) -> Range<usize> {
        self.first..self.first + self.rows.len()
    }

    /// Where a vertex stands.
    ///
    /// # Panics
    /// If it is too far away.
    pub(crate) fn index(&self, vertex: u32) -> u32 {
        if self.rows.contains(&vertex) {
            return vertex - self.rows.start;
        }
        let at = self.others.binary_search(&vertex);
        self.rows.len() as u32 + at.expect("rows have it as a column") as u32
    }

    /// Where the corners of no cloth stand.
    pub(crate) fn corners(&self) -> [u32; 3] {
        let first = (self.len() - CORNERS.len()) as u32;
        [first, first + 1, first + 2]
    }

    /// Copies positions (m) and velocities (m/s) of each vertex from those with halo; of the corners of no cloth velocities are of no use. And where
    /// vertices would be after a time (s) and their cloth's damping of bending. All at once, for what is copied leaves the nearest cache.
    pub(crate) fn copy(
        &self,
        model: &ClothModel,
        (x, v): (&[DVec3], &[DVec3]),
        time: f64,
        scratch: &mut Scratch,
    ) {
        let four = |v: DVec3| [v.x, v.y, v.z, 0.0];
        let len = self.len();
        for scratch in [&mut scratch.x, &mut scratch.v, &mut scratch.ahead] {
            scratch.resize(len, [0.0; 4]);
        }
        let rooms = scratch
            .x
            .iter_mut()
            .zip(&mut scratch.v)
            .zip(&mut scratch.ahead);
        let mut rooms = rooms.map(|((x, v), ahead)| (x, v, ahead));
        let mut put = |vertex: u32, x: DVec3, v: DVec3| {
            if let Some((to_x, to_v, ahead)) = rooms.next() {
                let time = time + model.bending_damping(vertex as usize);
                (*to_x, *to_v, *ahead) = (four(x), four(v), four(x + v * time));
            }
        };
        let own = x[self.rows()].iter().zip(&v[self.rows()]);
        for (vertex, (&x, &v)) in self.rows.clone().zip(own) {
            put(vertex, x, v);
        }
        for (&vertex, &here) in self.others.iter().zip(&self.others_here) {
            put(vertex, x[here as usize], v[here as usize]);
        }
        for (corner, at) in CORNERS.iter().zip(rooms) {
            *at.0 = four(*corner);
        }
    }
}
