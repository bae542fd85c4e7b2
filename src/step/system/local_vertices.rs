//! The vertices that a run of rows reads: those of its rows, in their order, and those that its
//! rows are coupled with.
//!
//! The numbers that elements read of them are copied to a place that stays in the cache, four
//! numbers each. There they are counted anew.

use std::ops::Range;

use glam::DVec3;
use weft_partition::HaloPlan;

use super::scratch::Scratch;
use crate::heap_bytes::counts_heap;
use crate::physics::ClothModel;
use crate::solve::Pattern;
use crate::step::state::StateView;

/// The vertices that a run of rows reads. Behind them stand the three corners of [`CORNERS`], which
/// are of no cloth.
#[derive(Debug)]
pub(crate) struct LocalVertices {
    rows: Range<u32>,
    /// The global numbers of those that are not of the rows, ascending.
    others: Vec<u32>,
    /// The local indices of the same vertices.
    others_here: Vec<u32>,
    /// The local index of the first row.
    first: usize,
}

counts_heap!(LocalVertices: others, others_here; without rows, first);

/// A triangle of no cloth.
pub(crate) const CORNERS: [DVec3; 3] = [DVec3::ZERO, DVec3::X, DVec3::Y];

impl LocalVertices {
    /// Finds the vertices of rows that are given by global numbers.
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

    /// The number of vertices, with those of no cloth.
    pub(crate) fn len(&self) -> usize {
        self.rows.len() + self.others.len() + CORNERS.len()
    }

    /// The local indices of the rows.
    pub(crate) fn rows(&self) -> Range<usize> {
        self.first..self.first + self.rows.len()
    }

    /// The place of a vertex.
    ///
    /// # Panics
    /// If no row is coupled with it.
    pub(crate) fn index(&self, vertex: u32) -> u32 {
        if self.rows.contains(&vertex) {
            return vertex - self.rows.start;
        }
        let at = self.others.binary_search(&vertex);
        self.rows.len() as u32 + at.expect("rows have it as a column") as u32
    }

    /// The places of the corners of no cloth.
    pub(crate) fn corners(&self) -> [u32; 3] {
        let first = (self.len() - CORNERS.len()) as u32;
        [first, first + 1, first + 2]
    }

    /// Copies positions and velocities of each vertex, from those with halo, and where each would
    /// be after a time (s) and its cloth's damping of bending. The velocities of the corners of no
    /// cloth are of no use. All is copied at once, as it leaves the nearest cache.
    pub(crate) fn copy(
        &self,
        model: &ClothModel,
        StateView { x, v }: StateView<'_>,
        time: f64,
        scratch: &mut Scratch,
    ) {
        let four = |v: DVec3| [v.x, v.y, v.z, 0.0];
        let len = self.len();
        for scratch in [&mut scratch.x, &mut scratch.v, &mut scratch.ahead] {
            scratch.resize(len, [0.0; 4]);
        }
        let places = scratch.x.iter_mut().zip(&mut scratch.v);
        let places = places.zip(&mut scratch.ahead);
        let mut places = places.map(|((x, v), ahead)| (x, v, ahead));
        let mut put = |vertex: u32, x: DVec3, v: DVec3| {
            if let Some((to_x, to_v, ahead)) = places.next() {
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
        for (corner, at) in CORNERS.iter().zip(places) {
            *at.0 = four(*corner);
        }
    }
}

/// The local index of a vertex that an element of the rank has.
pub(crate) fn local_in(plan: &HaloPlan) -> impl Fn(u32) -> u32 + '_ {
    |v| {
        plan.local_index(v)
            .expect("elements couple only what the matrix graph does") as u32
    }
}
