//! The start of conjugate gradients: the nearest of all combinations of the vectors that are given.
//!
//! The vectors may be solutions of the systems before, and nobody needs to know which of them is
//! the better start: the combination is taken whose error has the least energy, which the products
//! of both with A tell \[Fis98\]. So a start is never worse than a cold one, nor than any of its
//! vectors.
//!
//! * \[Fis98\] Fischer: Projection techniques for iterative solution of Ax = b with successive
//!   right-hand sides. Computer Methods in Applied Mechanics and Engineering 163, 1998.

use std::time::Duration;

use glam::DVec3;
use weft_runtime::comm::{Comm, CommError};

use super::super::reduction::dot;
use super::super::{BlockMatrix, Halo, Rows, SolveError, System, Tolerance};
use super::{Criterion, ModifiedCg, Progress};
use crate::team::{Shares, parts};

/// The share of a direction's energy that must be conjugate to another one, for both to be of use.
const INDEPENDENT: f64 = 1e-8;

impl ModifiedCg {
    /// Starts from x = z + the combination of S x and S `earlier` whose error has the least energy,
    /// with everything that an iteration starts from. Finds out whether the blocks on the diagonal
    /// will do, of which `bad_block` will not, and how large a residual is allowed.
    pub(super) fn start(
        &mut self,
        comm: &mut dyn Comm,
        system: &System<'_>,
        tolerance: &Tolerance,
        bad_block: Option<usize>,
        earlier: Option<&[DVec3]>,
        x: &mut [DVec3],
    ) -> Result<Progress, SolveError> {
        let owned = self.halo.owned_len();
        self.due = None;
        self.constrained.clear();
        self.constrained.extend(system.filter.rows());
        self.constrained.sort_unstable();
        system.filter.write_changes(&mut self.p[..owned]);
        let directions = [Some(&*x), earlier];
        let shares = self.reduction.shares();
        for (along, direction) in self.along.iter_mut().zip(directions) {
            if let Some(direction) = direction {
                let along = &mut along[..owned];
                let of = &shares.elements;
                shares.run(parts(along, of).zip(of), |(along, share)| {
                    along.copy_from_slice(&direction[share.clone()]);
                });
                system.filter.project(along);
            }
        }
        let products = self.multiply_start(comm, system, earlier.is_some())?;
        // Until here nothing asked for the preconditioner, and what it needs of other ranks was
        // under way.
        self.preconditioner.finish_factor(comm)?;
        if self.solve_cost > 0 {
            comm.compute(self.solve_cost, Duration::ZERO);
        }
        // r = S (b − A z)
        let shares = self.reduction.shares();
        let of = &shares.elements;
        shares.run(parts(&mut self.r, of).zip(of), |(r, share)| {
            for (r, b) in r.iter_mut().zip(&system.rhs[share.clone()]) {
                *r = *b - *r;
            }
        });
        system.filter.project(&mut self.r);
        let both = earlier.is_some();
        let [initial, bad, energies @ ..] = self.measure_residual(comm, system, |cg, patch| {
            let [p, s, u, w] = cg.along_and_products(both);
            let [p, s, u, w, r] = [p, s, u, w, &cg.r].map(|vector| &vector[patch.clone()]);
            let bad = bad_block.is_some_and(|row| patch.contains(&row));
            [
                0.0,
                if bad { 1.0 } else { 0.0 },
                dot(p, s),
                dot(u, s),
                dot(u, w),
                dot(p, r),
                dot(u, r),
            ]
        })?;
        if !initial.is_finite() {
            return Err(self.find_non_finite(comm, system, x, 0)?);
        }
        if bad > 0.0 {
            return Err(self.find_bad_block(comm, system, bad_block)?);
        }
        if !energies.iter().all(|sum| sum.is_finite()) {
            // Where it is looked for.
            let [.., u, _] = self.along_and_products(both);
            let u = u[..owned].to_vec();
            self.p[..owned].copy_from_slice(&u);
            if both {
                self.w.copy_from_slice(&self.force);
            }
            return Err(self.find_non_finite(comm, system, x, 0)?);
        }
        let [first, second] = least_energy(energies);
        let (p, s) = (&self.along[0], &self.w);
        let (u, w) = if both {
            (&self.along[1], &self.force)
        } else {
            (p, s)
        };
        let of = &self.reduction.shares().elements;
        let work = (parts(x, of).zip(parts(&mut self.r, of))).zip(of);
        self.reduction.shares().run(work, |((x, r), share)| {
            let share = share.clone();
            let directions = p[share.clone()].iter().zip(&u[share.clone()]);
            let products = s[share.clone()].iter().zip(&w[share]);
            for (x, (p, u)) in x.iter_mut().zip(directions) {
                *x = first * *p + second * *u;
            }
            for (r, (s, w)) in r.iter_mut().zip(products) {
                *r -= first * *s + second * *w;
            }
        });
        system.filter.enforce(x);
        let [expected] = self.measure_residual(comm, system, |_, _| [0.0])?;
        self.point_along_residual(system);

        let relative = tolerance.relative * initial.sqrt();
        let (allowed, criterion) = if tolerance.absolute > relative {
            (tolerance.absolute, Criterion::Absolute)
        } else {
            (relative, Criterion::Relative)
        };
        Ok(Progress {
            rounded: self.copy.is_some(),
            iterations: 0,
            products,
            initial,
            allowed: allowed * allowed,
            criterion,
            best: f64::INFINITY,
            expected,
            predicted: false,
            pardon: true,
            computed: f64::INFINITY,
            keeps_weak_modes: true,
        })
    }

    /// The first vector to start along and its product, the second one and its; without another
    /// vector the first one counts twice, and as one.
    fn along_and_products(&self, both: bool) -> [&[DVec3]; 4] {
        let [p, u] = &self.along;
        if both {
            [p, &self.w, u, &self.force]
        } else {
            [p, &self.w, p, &self.w]
        }
    }

    /// Computes r = A p, and S A of the vectors in `along` to w and `force`: halos of all are under
    /// way at once and the matrix is read once. Says how many products that were. Collective.
    fn multiply_start(
        &mut self,
        comm: &mut dyn Comm,
        system: &System<'_>,
        both: bool,
    ) -> Result<u32, CommError> {
        let (matrix, cost) = (system.matrix, self.product_cost);
        let (halo, shares) = (&mut self.halo, self.reduction.shares());
        let [first, second] = &mut self.along;
        let (p, r) = (&mut self.p[..], &mut self.r[..]);
        let (of_first, of_second) = (&mut self.w[..], &mut self.force[..]);
        if both {
            let of = ([p, first, second], [r, of_first, of_second]);
            multiply_at_once(comm, halo, (matrix, shares, cost), of)?;
        } else {
            let of = ([p, first], [r, of_first]);
            multiply_at_once(comm, halo, (matrix, shares, cost), of)?;
        }
        system.filter.project(&mut self.w);
        if both {
            system.filter.project(&mut self.force);
        }
        Ok(if both { 3 } else { 2 })
    }
}

/// Computes y = A x for several vectors, for which the matrix is read once. Collective.
fn multiply_at_once<const N: usize>(
    comm: &mut dyn Comm,
    halo: &mut Halo,
    (matrix, shares, cost): (&BlockMatrix, &Shares, u64),
    (mut x, mut y): ([&mut [DVec3]; N], [&mut [DVec3]; N]),
) -> Result<(), CommError> {
    let own = x.each_ref().map(|x| &**x);
    halo.start_all(comm, own)?;
    multiply_rows(matrix, shares, (own, y.each_mut()), Rows::Interior);
    if cost > 0 {
        comm.compute(N as u64 * cost, Duration::ZERO);
    }
    halo.finish_all(comm, x.each_mut().map(|x| &mut **x))?;
    if comm.size() > 1 {
        let all = x.each_ref().map(|x| &**x);
        multiply_rows(matrix, shares, (all, y.each_mut()), Rows::Border);
    }
    Ok(())
}

fn multiply_rows<const N: usize>(
    matrix: &BlockMatrix,
    shares: &Shares,
    (x, y): ([&[DVec3]; N], [&mut &mut [DVec3]; N]),
    rows: Rows,
) {
    let mut left = y.map(|y| parts(y, &shares.elements));
    let work = shares.elements.iter().map(|share| {
        let left = left.each_mut();
        let y = left.map(|parts| parts.next().expect("a part for each share"));
        (y, share.start)
    });
    shares.run(work, |(y, first)| {
        matrix.multiply_share(x, y, first, rows);
    });
}

/// The combination of two directions p and u that takes most energy from an error, whose residual
/// is r: from p·A p, p·A u, u·A u, p·r and u·r. A direction without energy, or of hardly any beside
/// that of the other, is left out.
fn least_energy([pp, pu, uu, pr, ur]: [f64; 5]) -> [f64; 2] {
    let (along, mixed) = if pp > 0.0 {
        (pr / pp, pu / pp)
    } else {
        (0.0, 0.0)
    };
    // The part of u that is conjugate to p.
    let rest = uu - mixed * pu;
    let second = if rest > INDEPENDENT * uu {
        (ur - mixed * pr) / rest
    } else {
        0.0
    };
    [along - mixed * second, second]
}
