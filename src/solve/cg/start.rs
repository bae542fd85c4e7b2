//! Where conjugate gradients start: the nearest of all combinations of the vectors that are given.
//!
//! Those may be solutions of the systems before, and nobody needs to know which of them is the better start: the combination is
//! taken whose error has the least energy, which the products of both with A tell \[Fis98\]. So a start is never worse
//! than a cold one, nor than any of its vectors.
//!
//! * \[Fis98\] Fischer: Projection techniques for iterative solution of Ax = b with successive right-hand sides. Computer Methods in
//!   Applied Mechanics and Engineering 163, 1998.

use glam::DVec3;
use weft_runtime::comm::Comm;

use super::super::reduction::dot;
use super::super::{SolveError, System};
use super::{ModifiedCg, Progress};
use crate::team::parts;

/// The share of a direction's energy that must be conjugate to another one, for both to be of use.
const INDEPENDENT: f64 = 1e-8;

impl ModifiedCg {
    /// x = z + the combination of S x and S `earlier` whose error has the least energy, with everything that an iteration starts
    /// from; r = S (b − A z) is known.
    pub(super) fn start(
        &mut self,
        comm: &mut dyn Comm,
        system: &System<'_>,
        earlier: Option<&[DVec3]>,
        x: &mut [DVec3],
        progress: &mut Progress,
    ) -> Result<(), SolveError> {
        let owned = self.halo.owned_len();
        self.load_direction(system, x);
        self.multiply_direction(comm, system, progress)?;
        self.p.copy_from_slice(&self.u[..owned]);
        self.s.copy_from_slice(&self.w);
        if let Some(earlier) = earlier {
            self.load_direction(system, earlier);
            self.multiply_direction(comm, system, progress)?;
        }
        let (p, s, u, w, r) = (&self.p, &self.s, &self.u, &self.w, &self.r);
        let sums = self.reduction.sum(comm, |patch| {
            let [p, s, u, w, r] = [&p[..], s, u, w, r].map(|vector| &vector[patch.clone()]);
            [dot(p, s), dot(u, s), dot(u, w), dot(p, r), dot(u, r)]
        })?;
        if !sums.iter().all(|sum| sum.is_finite()) {
            return Err(self.find_non_finite(comm, system, x, 0)?);
        }
        let [first, second] = least_energy(sums);
        let shares = self.reduction.shares();
        let of = &shares.elements;
        let work = (parts(x, of).zip(parts(&mut self.r, of))).zip(of);
        shares.run(work, |((x, r), share)| {
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
        self.precondition_residual(comm, system)?;
        Ok(())
    }

    /// u = S of a vector.
    fn load_direction(&mut self, system: &System<'_>, vector: &[DVec3]) {
        let u = &mut self.u[..vector.len()];
        u.copy_from_slice(vector);
        system.filter.project(u);
    }
}

/// The combination of two directions p and u that takes most energy from an error, whose residual is r: from p·A p, p·A u,
/// u·A u, p·r and u·r. A direction without energy, or of hardly any beside that of the other, is left out.
fn least_energy([pp, pu, uu, pr, ur]: [f64; 5]) -> [f64; 2] {
    let (along, mixed) = if pp > 0.0 {
        (pr / pp, pu / pp)
    } else {
        (0.0, 0.0)
    };
    // Of u what is conjugate to p.
    let rest = uu - mixed * pu;
    let second = if rest > INDEPENDENT * uu {
        (ur - mixed * pr) / rest
    } else {
        0.0
    };
    [along - mixed * second, second]
}
