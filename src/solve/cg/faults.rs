//! The fault of a solve, and the vertex at which it is: the same answer on every rank.

use glam::DVec3;
use weft_runtime::comm::Comm;

use super::super::fault::{Fault, agree};
use super::super::reduction::dot;
use super::super::{SolveError, System};
use super::{End, ModifiedCg, Progress};

impl ModifiedCg {
    /// Names the block on the diagonal that is not positive definite: of this rank, or of another
    /// one.
    pub(super) fn find_bad_block(
        &mut self,
        comm: &mut dyn Comm,
        system: &System<'_>,
        bad_block: Option<usize>,
    ) -> Result<SolveError, SolveError> {
        // A block that is not finite is not positive definite either, and says more.
        if let Some(error) = self.find_non_finite_input(comm, system)? {
            return Ok(error);
        }
        let own = bad_block.map(|row| Fault::at(self.first_row + row as u32, 0.0));
        let vertex = agree(comm, own)?.map_or(0, |fault| fault.vertex);
        let patch = self.patch_of(vertex);
        Ok(SolveError::Indefinite {
            vertex,
            patch,
            iteration: 0,
            curvature: f64::NAN,
        })
    }

    /// Computes the curvature p·A p of the direction with the whole matrix; an error if it is not
    /// positive.
    pub(super) fn check_curvature(
        &mut self,
        comm: &mut dyn Comm,
        system: &System<'_>,
        progress: &mut Progress,
    ) -> Result<(), SolveError> {
        self.multiply(comm, system, true, false)?;
        progress.products += 1;
        let (p, w) = (&self.p, &self.w);
        let [curvature, length] = self.reduction.sum(comm, |patch| {
            let p = &p[patch.clone()];
            [dot(&w[patch], p), dot(p, p)]
        })?;
        // No direction has no curvature, and says nothing of the matrix.
        if curvature > 0.0 || length == 0.0 {
            return Ok(());
        }
        let worst = (0_u32..)
            .zip(self.p.iter().zip(&self.w))
            .map(|(row, (p, w))| Fault::at(self.first_row + row, p.dot(*w)))
            .reduce(Fault::worse);
        let vertex = agree(comm, worst)?.map_or(0, |fault| fault.vertex);
        let patch = self.patch_of(vertex);
        Err(SolveError::Indefinite {
            vertex,
            patch,
            iteration: progress.iterations,
            curvature,
        })
    }

    /// Names what is not finite in the input, if anything is. Collective.
    pub(super) fn find_non_finite_input(
        &self,
        comm: &mut dyn Comm,
        system: &System<'_>,
    ) -> Result<Option<SolveError>, SolveError> {
        self.find_first(
            comm,
            0,
            &[
                ("the matrix", system.matrix.non_finite_row()),
                ("the right-hand side", first_non_finite(system.rhs)),
                ("a constraint", system.filter.non_finite_row()),
                ("a position", first_non_finite(system.positions)),
            ],
        )
    }

    /// Names what is not finite. Collective; called when a sum showed that something is.
    pub(super) fn find_non_finite(
        &self,
        comm: &mut dyn Comm,
        system: &System<'_>,
        x: &[DVec3],
        iteration: u32,
    ) -> Result<SolveError, SolveError> {
        if let Some(error) = self.find_non_finite_input(comm, system)? {
            return Ok(error);
        }
        let owned = self.halo.owned_len();
        let found = self.find_first(
            comm,
            iteration,
            &[
                ("the velocity change", first_non_finite(x)),
                ("the residual", first_non_finite(&self.r)),
                ("the search direction", first_non_finite(&self.p[..owned])),
                ("the product with the matrix", first_non_finite(&self.w)),
            ],
        )?;
        // Finite values whose sums are not: name the largest.
        let overflow = || {
            let largest = (0_u32..)
                .zip(self.p.iter().zip(&self.r).zip(&self.w))
                .map(|(row, ((p, r), w))| {
                    let size = p.abs().max(r.abs()).max(w.abs()).max_element();
                    Fault::at(self.first_row + row, -size)
                })
                .reduce(Fault::worse);
            let vertex = agree(comm, largest)?.map_or(0, |fault| fault.vertex);
            let patch = self.patch_of(vertex);
            Ok(SolveError::NonFinite {
                vertex,
                patch,
                iteration,
                what: "a sum of residuals",
            })
        };
        found.map_or_else(overflow, Ok)
    }

    /// The first vertex of the first kind that any rank has found. Collective.
    fn find_first(
        &self,
        comm: &mut dyn Comm,
        iteration: u32,
        kinds: &[(&'static str, Option<usize>)],
    ) -> Result<Option<SolveError>, SolveError> {
        let own = (0_u32..).zip(kinds).find_map(|(class, (_, row))| {
            row.map(|row| Fault {
                class,
                key: 0.0,
                vertex: self.first_row + row as u32,
            })
        });
        let Some(Fault { class, vertex, .. }) = agree(comm, own)? else {
            return Ok(None);
        };
        let what = kinds
            .get(class as usize)
            .map_or("a value", |(what, _)| what);
        let patch = self.patch_of(vertex);
        Ok(Some(SolveError::NonFinite {
            vertex,
            patch,
            iteration,
            what,
        }))
    }

    /// Says that the residual, which was just computed, is too large, and where it is largest.
    /// Collective.
    pub(super) fn not_converged(
        &self,
        comm: &mut dyn Comm,
        progress: &Progress,
        end: End,
    ) -> Result<SolveError, SolveError> {
        let largest = (0_u32..)
            .zip(self.r.iter().zip(&self.p))
            .map(|(row, (r, p))| Fault::at(self.first_row + row, -r.dot(*p)))
            .reduce(Fault::worse);
        let vertex = agree(comm, largest)?.map_or(0, |fault| fault.vertex);
        Ok(SolveError::NotConverged {
            vertex,
            patch: self.patch_of(vertex),
            iterations: progress.iterations,
            residual: progress.computed.sqrt(),
            best: progress.best,
            allowed: progress.allowed.sqrt(),
            end,
        })
    }

    pub(super) fn patch_of(&self, vertex: u32) -> usize {
        self.patch_starts
            .partition_point(|&start| start <= vertex)
            .saturating_sub(1)
    }
}

fn first_non_finite(vector: &[DVec3]) -> Option<usize> {
    vector.iter().position(|v| !v.is_finite())
}
