//! Hinges of the quadratic model that touch a run of rows.
//!
//! A hinge adds numbers times identity to the blocks of its vertices. They depend on the length of a step, and not on where the cloth
//! is: what each entry gets of all its hinges, in their order, is summed up when a step has another length than the one before, and
//! kept.

use std::ops::Range;

use glam::DVec3;
use weft_partition::HaloPlan;

use super::assembly::Load;
use super::elements::local_in;
use crate::physics::ClothModel;
use crate::simd::{Lanes, Loop, four_at, widest};
use crate::solve::{MatrixRows, Pattern, ScalarSums, ScalarTerms};

/// The hinges, and where their numbers go.
#[derive(Debug)]
pub(super) struct Hinges {
    hinges: Vec<Hinge>,
    /// Number `i, j` of a hinge is `16 hinge + 4 i + j`.
    terms: ScalarTerms,
    sums: ScalarSums,
    /// The times τ and `stiff` in s that these are for.
    summed_for: Option<[f64; 2]>,
}

#[derive(Debug)]
struct Hinge {
    index: u32,
    /// Local indices.
    corners: [u32; 4],
}

impl Hinges {
    /// Of rows that are given by global numbers.
    pub(super) fn new(
        model: &ClothModel,
        plan: &HaloPlan,
        pattern: &Pattern,
        rows: &Range<usize>,
    ) -> Self {
        let mine = |v: &u32| rows.contains(&(*v as usize));
        let local = local_in(plan);
        let mut hinges = Vec::new();
        let mut terms = Vec::new();
        let touching = (0..).zip(model.hinges());
        for (index, h) in touching.filter(|(_, h)| h.vertices.iter().any(mine)) {
            // Fewer than entries of the matrix, which are counted with 32 bits.
            let first = 16 * hinges.len() as u32;
            hinges.push(Hinge {
                index,
                corners: h.vertices.map(&local),
            });
            for (i, &row) in (0..).zip(&h.vertices).filter(|(_, row)| mine(row)) {
                for (j, &column) in (0..).zip(&h.vertices) {
                    let slot = pattern.scalar_slot(local(row) as usize, column);
                    let slot = slot.expect("hinges are near or far");
                    terms.push((slot, first + 4 * i + j));
                }
            }
        }
        let first = pattern.first_row() as usize;
        let rows = rows.start - first..rows.end - first;
        Self {
            hinges,
            terms: ScalarTerms::new(pattern, &rows, terms),
            sums: ScalarSums::default(),
            summed_for: None,
        }
    }

    /// Sets every entry of the rows to what hinges add to it.
    pub(super) fn begin(
        &mut self,
        model: &ClothModel,
        load: &Load<'_>,
        matrix: &mut MatrixRows<'_>,
    ) {
        let times = [load.tau, load.stiff];
        if self.summed_for != Some(times) {
            let values = self.hinges.iter().flat_map(|h| h.numbers(model, times));
            self.sums.sum(&self.terms, &values.collect::<Vec<f64>>());
            self.summed_for = Some(times);
        }
        matrix.begin_with(&self.sums);
    }

    /// Adds what they push with; `rhs` is of the rows from the second number on, as local indices, with a fourth number that stays zero.
    pub(super) fn push(
        &self,
        model: &ClothModel,
        state: (&[DVec3], &[DVec3]),
        load: &Load<'_>,
        (rhs, first): (&mut [[f64; 4]], usize),
    ) {
        widest(Pushing {
            of: self,
            model,
            state,
            load,
            rhs,
            first,
        });
    }
}

impl Hinge {
    /// What it adds to the blocks of its vertices.
    fn numbers(&self, model: &ClothModel, [tau, stiff]: [f64; 2]) -> [f64; 16] {
        let weights = model.hinges()[self.index as usize].weights;
        let time = stiff + model.hinge_damping(self.index as usize);
        std::array::from_fn(|k| weights[k / 4] * weights[k % 4] * (tau * time))
    }
}

struct Pushing<'a> {
    of: &'a Hinges,
    model: &'a ClothModel,
    state: (&'a [DVec3], &'a [DVec3]),
    load: &'a Load<'a>,
    rhs: &'a mut [[f64; 4]],
    first: usize,
}

impl Loop for Pushing<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let (x, v) = self.state;
        let Load { tau, shift, .. } = *self.load;
        for h in &self.of.hinges {
            let index = h.index as usize;
            let damping = self.model.hinge_damping(index);
            let weights = self.model.hinges()[index].weights;
            let bent = curvature(lanes, x, &h.corners, &weights);
            let bending = curvature(lanes, v, &h.corners, &weights);
            let pull = lanes.add_product(bent, bending, lanes.splat(shift + damping));
            let pull = lanes.three(pull);
            for (&corner, weight) in h.corners.iter().zip(weights) {
                // The rows of others are behind.
                let row = (corner as usize).wrapping_sub(self.first);
                if let Some(rhs) = self.rhs.get_mut(row) {
                    let push = lanes.multiply(pull, lanes.splat(weight * tau));
                    *rhs = lanes.store(lanes.subtract(lanes.load(rhs), push));
                }
            }
        }
    }
}

/// [`crate::physics::bending::Hinge::curvature`], and a fourth number that is of no use.
#[inline(always)]
fn curvature<L: Lanes>(
    lanes: L,
    vectors: &[DVec3],
    [a, b, c, d]: &[u32; 4],
    [p, q, r, s]: &[f64; 4],
) -> L::Four {
    let times = |at: u32, weight: f64| {
        let vector = lanes.load(four_at(vectors, at as usize, &mut [0.0; 4]));
        lanes.multiply(vector, lanes.splat(weight))
    };
    let edge = lanes.add(times(*a, *p), times(*b, *q));
    lanes.add(edge, lanes.add(times(*c, *r), times(*d, *s)))
}
