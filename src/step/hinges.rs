//! Hinges of the quadratic model that touch a run of rows.
//!
//! A hinge adds numbers times identity to the blocks of its vertices, and a block near the diagonal gets those of five hinges, one on
//! it of eighteen. So they are gathered: first all numbers of all hinges, then what each entry gets, in the order of
//! the hinges.

use std::ops::Range;

use glam::DVec3;
use weft_partition::HaloPlan;

use super::assembly::Load;
use super::elements::local_in;
use crate::physics::ClothModel;
use crate::simd::{Lanes, Loop, four_at, widest};
use crate::solve::{MatrixRows, Pattern, ScalarTerms};

/// The hinges, and where their numbers go.
#[derive(Debug)]
pub(super) struct Hinges {
    hinges: Vec<Hinge>,
    /// Number `i, j` of a hinge is `16 hinge + 4 i + j`.
    terms: ScalarTerms,
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
        }
    }

    /// Adds them; `rhs` is of the rows from the second number on, as local indices, with a fourth number that stays zero. `values` is room for numbers.
    pub(super) fn add(
        &self,
        model: &ClothModel,
        state: (&[DVec3], &[DVec3]),
        load: &Load<'_>,
        matrix: &mut MatrixRows<'_>,
        (rhs, first): (&mut [[f64; 4]], usize),
        values: &mut Vec<f64>,
    ) {
        values.resize(16 * self.hinges.len(), 0.0);
        widest(Adding {
            of: self,
            model,
            state,
            load,
            matrix,
            rhs,
            first,
            values,
        });
    }
}

struct Adding<'a, 'm> {
    of: &'a Hinges,
    model: &'a ClothModel,
    state: (&'a [DVec3], &'a [DVec3]),
    load: &'a Load<'a>,
    matrix: &'a mut MatrixRows<'m>,
    rhs: &'a mut [[f64; 4]],
    first: usize,
    values: &'a mut [f64],
}

impl Loop for Adding<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let (x, v) = self.state;
        let Load {
            tau, stiff, shift, ..
        } = *self.load;
        let (of_hinges, _) = self.values.as_chunks_mut::<16>();
        for (h, values) in self.of.hinges.iter().zip(of_hinges) {
            let index = h.index as usize;
            let hinge = &self.model.hinges()[index];
            let damping = self.model.hinge_damping(index);
            let weights = hinge.weights;
            let bent = curvature(lanes, x, &h.corners, &weights);
            let bending = curvature(lanes, v, &h.corners, &weights);
            let pull = lanes.add_product(bent, bending, lanes.splat(shift + damping));
            let pull = lanes.three(pull);
            let others = lanes.load(&weights);
            let time = lanes.splat(stiff + damping);
            let (rows, _) = values.as_chunks_mut::<4>();
            for (i, values) in rows.iter_mut().enumerate() {
                let weight = weights[i] * tau;
                let weight = lanes.splat(weight);
                let products = lanes.multiply(weight, others);
                *values = lanes.store(lanes.multiply(products, time));
                // The rows of others are behind.
                let row = (h.corners[i] as usize).wrapping_sub(self.first);
                if let Some(rhs) = self.rhs.get_mut(row) {
                    let push = lanes.multiply(pull, weight);
                    *rhs = lanes.store(lanes.subtract(lanes.load(rhs), push));
                }
            }
        }
        (self.matrix).add_terms(lanes, &self.of.terms, self.values);
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
