//! The pass over vectors that takes a step: x, r and the direction p.
//!
//! Few rows at a time are taken through all of it, so that what one loop leaves is still in the
//! nearest cache for the next. u = M r is known there only, and so is stored nowhere: of vectors
//! the pass reads w, r, p and writes r and p, 120 bytes a vertex, with the blocks of the
//! preconditioner.
//!
//! With blocks alone as preconditioner x, which only the end asks for, is moved at every second
//! step. The direction p₋ of the step before is then gone, but this direction was computed from it,
//! p = u + β p₋, and u = M r can be had again as long as r is what it was:
//!
//! ```text
//! α₋ p₋ + α p = (α₋ / β + α) p − (α₋ / β) u
//! ```
//!
//! Where β is small, x is moved at once instead: rounding would be multiplied by 1 / β. So it is
//! where M r is more expensive.

use std::ops::Range;

use glam::DVec3;

use super::super::vector_kernels::{axpy, axpy_minus, xpby_dot};
use super::super::{Filter, Preconditioner, System};
use super::scalars::Step;
use super::{ModifiedCg, project};
use crate::team::parts;

/// Rows that are taken through the loops of a pass at a time; a multiple of four.
const ROWS: usize = 128;

/// The least β for which the step before may be found again.
const LEAST: f64 = 1.0 / 16.0;

/// How x is to be moved with a step.
#[derive(Clone, Copy, Debug)]
enum Move {
    /// Later.
    Not,
    /// The update x += a p.
    Along(f64),
    /// The update x += a p − b u.
    Between(f64, f64),
}

impl ModifiedCg {
    /// One step along the search direction, and the next direction: x, r −= α w, p = M r + β p, and
    /// r·M r of patches.
    pub(super) fn advance(&mut self, system: &System<'_>, step: Step, x: &mut [DVec3]) {
        let Step { alpha, beta } = step;
        let way = match self.due.take() {
            Some(before) => {
                let share = before.alpha / before.beta;
                Move::Between(share + alpha, share)
            }
            None if beta >= LEAST && self.preconditioner.is_cheap() => {
                self.due = Some(step);
                Move::Not
            }
            None => Move::Along(alpha),
        };
        let (patches, shares) = (self.reduction.patches(), self.reduction.shares());
        self.preconditioner.step(alpha, shares);
        let direction = Direction {
            preconditioner: &self.preconditioner,
            filter: system.filter,
            constrained: &self.constrained,
        };
        let w = &self.w;
        let of = &shares.elements;
        let p = &mut self.p[..w.len()];
        let work = (parts(p, of).zip(parts(x, of)))
            .zip(parts(&mut self.r, of).zip(parts(&mut self.leaves, &shares.ranges)))
            .zip(of.iter().zip(&shares.ranges));
        shares.run(work, |(((p, x), (r, leaves)), (elements, share))| {
            let mut room = [DVec3::ZERO; ROWS];
            for (patch, [gamma, ..]) in patches[share.clone()].iter().zip(leaves) {
                *gamma = 0.0;
                for rows in few(patch) {
                    let u = &mut room[..rows.len()];
                    let at = rows.start - elements.start..rows.end - elements.start;
                    let (p, r) = (&mut p[at.clone()], &mut r[at.clone()]);
                    match way {
                        Move::Not => {}
                        Move::Along(a) => axpy(&mut x[at], a, p),
                        Move::Between(a, b) => {
                            direction.preconditioner.apply(rows.clone(), r, u);
                            direction.project(&rows, u);
                            axpy_minus(&mut x[at], (a, p), (b, u));
                        }
                    }
                    let residual = (&mut *r, alpha, &w[rows.clone()]);
                    direction.preconditioner.follow(rows.clone(), residual, u);
                    direction.project(&rows, u);
                    *gamma += xpby_dot(p, beta, u, r);
                }
            }
        });
    }

    /// Takes x along the last step, if one is due.
    pub(super) fn catch_up(&mut self, system: &System<'_>, x: &mut [DVec3]) {
        let Some(Step { alpha, beta }) = self.due.take() else {
            return;
        };
        let share = alpha / beta;
        let direction = Direction {
            preconditioner: &self.preconditioner,
            filter: system.filter,
            constrained: &self.constrained,
        };
        let (patches, shares) = (self.reduction.patches(), self.reduction.shares());
        let (p, r, of) = (&self.p, &self.r, &shares.elements);
        let work = parts(x, of).zip(of.iter().zip(&shares.ranges));
        shares.run(work, |(x, (elements, of_patches))| {
            let mut room = [DVec3::ZERO; ROWS];
            for rows in patches[of_patches.clone()].iter().flat_map(few) {
                let u = &mut room[..rows.len()];
                direction
                    .preconditioner
                    .apply(rows.clone(), &r[rows.clone()], u);
                direction.project(&rows, u);
                let at = rows.start - elements.start..rows.end - elements.start;
                axpy_minus(&mut x[at], (share, &p[rows]), (share, u));
            }
        });
    }
}

/// The data that turn residuals into directions.
#[derive(Clone, Copy)]
struct Direction<'a> {
    preconditioner: &'a Preconditioner,
    filter: &'a Filter,
    constrained: &'a [u32],
}

impl Direction<'_> {
    /// Applies the constraints, which the preconditioner leaves to be done, to some rows.
    fn project(self, rows: &Range<usize>, u: &mut [DVec3]) {
        project(self.filter, self.constrained, rows, u);
    }
}

/// Ranges of [`ROWS`] and a last one of the rest.
fn few(rows: &Range<usize>) -> impl Iterator<Item = Range<usize>> + use<> {
    let end = rows.end;
    (rows.clone().step_by(ROWS)).map(move |start| start..(start + ROWS).min(end))
}
