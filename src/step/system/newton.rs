//! Newton's method on the equations of an implicit part, for those who want them met rather than linearised once.
//!
//! The residual of velocities u is what the equation of `motion` leaves, `τ (f(X) − D(X) u + M g) − M (u − v̂)`, which is the
//! right-hand side of the system linearised there. It is measured by the kinetic energy that it would give to each vertex alone,
//! `√Σ |S r|²/m` in √J, with S the constrained directions taken out.
//!
//! * **Start**: the solution of the first system, taken whole.
//! * **Step**: the solution p of the system at the last iterate; its whole, or the half, quarter, ... down to [`LEAST_SHARE`] of it,
//!   the first with a residual smaller than the last one's by [`WORTHWHILE`] times the share, or with one whose power along p, `r·p`, is not below
//!   -[`OVERSHOT`] times the power at the last iterate. A residual is the slope of an energy, that of elastic forces and of what inertia lacks: where it still points
//!   forward along p, or not much backward, that energy has become less, though the residual may have grown, as that of cloth that buckles does.
//!   A share at which a triangle collapses is too large.
//! * **Stop**: the residual is at most `solver.newton_tolerance` times the larger one of the part's first right-hand side and of gravity alone, which cloth
//!   at rest holds against, or negligible. It fails when no share serves, or when `solver.newton` systems were solved; unless what is left is what
//!   rounding makes of forces that hold against gravity ([`ROUNDED`]).
//!
//! The matrix leaves out how forces turn with their triangles and compression, so that it stays positive definite; convergence is
//! linear then, the faster the smaller strains are.

use glam::DVec3;
use weft_runtime::comm::Comm;

use crate::solve::fault::{self, Fault};
use crate::step::error::{GaveUp, StepError};
use crate::step::report::StepReport;
use crate::step::simulation::Simulation;
use crate::step::substep::{negligible, residual_of_gravity};

/// The smallest share of a step that is tried.
const LEAST_SHARE: f64 = 1.0 / 128.0;
/// How far, as a share of the power at its beginning, a step may go beyond where the energy is least.
const OVERSHOT: f64 = 0.5;
/// By how much, times its share, a step must make the residual smaller.
const WORTHWHILE: f64 = 1e-4;
/// A residual that is this small a share of gravity's is made of rounding.
const ROUNDED: f64 = 1e-9;

impl Simulation<'_> {
    /// Goes on from the solution of the first system until the equations are met. Collective.
    pub(crate) fn iterate(
        &mut self,
        comm: &mut dyn Comm,
        report: &mut StepReport,
    ) -> Result<(), StepError> {
        let solver = self.world.scene().solver;
        // The first right-hand side: assembled where the part begins, and not changed by its solve.
        let (first, _) = self.residual(comm)?;
        let gravity = residual_of_gravity(self.world, self.motion.tau);
        let allowed = (solver.newton_tolerance * first.max(gravity))
            .max(negligible(self.world, self.motion.tau));
        self.hold_still();
        let mut residual = (self.look(comm)?).map_or(f64::INFINITY, |(residual, _)| residual);
        loop {
            report.newton_residual = residual / allowed;
            if residual <= allowed {
                break;
            }
            let why = if report.systems >= solver.newton {
                GaveUp::Limit
            } else if residual.is_finite() {
                // What is left is not negligible, though a solve, which measures it with the matrix instead of masses, may find it so.
                let outcome = self.solve_further(comm, 0.0)?;
                report.note(&outcome);
                match self.search(comm, residual)? {
                    Some(smaller) => {
                        residual = smaller;
                        continue;
                    }
                    None => GaveUp::Stalled,
                }
            } else {
                GaveUp::Stalled
            };
            if residual <= ROUNDED * gravity {
                break;
            }
            return Err(self.not_converged(comm, report.systems, (residual, allowed), why)?);
        }
        for (force, rhs) in self.force.iter_mut().zip(&self.rhs) {
            *force = -*rhs;
        }
        Ok(())
    }

    /// Takes the largest share of the last solution that makes the residual or the energy smaller; `None` if none does. Collective.
    fn search(&mut self, comm: &mut dyn Comm, last: f64) -> Result<Option<f64>, StepError> {
        let (_, begin) = self.residual(comm)?;
        let mut share = 1.0;
        // Each trial takes back half of what the one before had added; at first there is nothing to take back.
        let mut added = 0.0;
        while share >= LEAST_SHARE {
            for (change, further) in self.change.iter_mut().zip(&self.further) {
                *change += *further * (share - added);
            }
            added = share;
            if let Some((residual, power)) = self.look(comm)?
                && (residual <= last * (1.0 - WORTHWHILE * share) || power >= -OVERSHOT * begin)
            {
                return Ok(Some(residual));
            }
            share *= 0.5;
        }
        Ok(None)
    }

    /// Linearises at the present change; its residual and the power of that, or `None` if a triangle has collapsed there or it is no number.
    /// Collective.
    fn look(&mut self, comm: &mut dyn Comm) -> Result<Option<(f64, f64)>, StepError> {
        let owned = self.plan.owned();
        self.motion
            .linearise_at(comm, &self.v[owned], &self.change)?;
        let tau = self.motion.tau;
        let collapsed = self.assemble_there((tau, tau));
        match self.agree_on_collapse(comm, collapsed) {
            Ok(()) => {}
            Err(StepError::Collapsed { .. }) => return Ok(None),
            Err(error) => return Err(error),
        }
        let (residual, power) = self.residual(comm)?;
        Ok((residual.is_finite() && power.is_finite()).then_some((residual, power)))
    }

    /// The residual of the system as it is assembled, in √J, and its power along the last solution. Collective.
    fn residual(&self, comm: &mut dyn Comm) -> Result<(f64, f64), StepError> {
        let [squares, power] = self.reduction.sum(comm, |patch| {
            patch.fold([0.0, 0.0], |[squares, power], i| {
                let free = self.filter.free(i) * self.rhs[i];
                [squares + self.kick(i), power + free.dot(self.further[i])]
            })
        })?;
        Ok((squares.sqrt(), power))
    }

    /// What the residual of an owned vertex would give to it alone, in J, doubled.
    fn kick(&self, i: usize) -> f64 {
        let free: DVec3 = self.filter.free(i) * self.rhs[i];
        free.length_squared() / self.world.model().masses()[self.plan.owned().start + i]
    }

    /// Keeps what is prescribed as the first system has solved it.
    fn hold_still(&mut self) {
        let owned = self.owned();
        self.filter.clear();
        for &(vertex, pin) in self.world.pins().of(&owned) {
            let free = self.holds[pin as usize].free;
            let row = vertex as usize - owned.start;
            self.filter.constrain(row, free, DVec3::ZERO);
        }
        for c in self.bodies.constraints() {
            self.filter.constrain(c.local as usize, c.free, DVec3::ZERO);
        }
    }

    /// Names the vertex that lacks most. Collective.
    fn not_converged(
        &self,
        comm: &mut dyn Comm,
        systems: u32,
        (residual, allowed): (f64, f64),
        why: GaveUp,
    ) -> Result<StepError, StepError> {
        let first = self.plan.owned().start as u32;
        let own = (0..self.rhs.len()).map(|i| Fault::at(first + i as u32, -self.kick(i)));
        let worst = fault::agree(comm, own.reduce(Fault::worse))?;
        Ok(StepError::Newton {
            step: self.step + 1,
            systems,
            residual,
            allowed,
            at: self.name(worst.map_or(0, |fault| fault.vertex as usize)),
            why,
        })
    }
}

#[cfg(test)]
mod tests {
    use weft_runtime::ScopeOptions;
    use weft_runtime::comm::solo::Solo;

    use super::*;
    use crate::scene::Scene;
    use crate::step::World;

    /// The first right-hand side of a step is then no more than rounding, and nothing can be much smaller.
    #[test]
    fn cloth_that_comes_to_rest_stays_there() {
        let text = r#"
            time = { step = "5 ms", end = "10 s" }
            [[cloth]]
            grid = { size = "0.5 m", vertices = 4 }
            pins = [{ nearest = [-0.25, 0.25, 0] }, { nearest = [0.25, 0.25, 0] }]
            material = { density = 0.15, stretch = 1000, bending = 1e-5, damping_mass = 8 }
            [solver]
            newton = 30
            integrator = "bdf2"
        "#;
        let world = World::build(&Scene::parse(text, None, &[]).unwrap()).unwrap();
        let mut comm = Solo::new();
        let mut simulation = Simulation::new(&world, &comm, &ScopeOptions::default()).unwrap();
        for _ in 0..1500 {
            simulation.advance(&mut comm).unwrap();
        }
        let speeds = simulation.velocities().iter().map(|v| v.length());
        let fastest = speeds.fold(0.0, f64::max);
        assert!(fastest < 1e-3, "{fastest}");
    }

    /// Cloth that buckles: on the way to the solution residuals grow before they become small.
    #[test]
    fn cloth_that_folds_as_it_falls_is_solved_for() {
        let text = r#"
            time = { step = "5 ms", end = "0.3 s" }
            [[cloth]]
            grid = { size = "0.5 m", vertices = 16 }
            pins = [{ nearest = [-0.25, 0.25, 0] }, { nearest = [0.25, 0.25, 0] }]
            material = { fabric = "tablecloth" }
            [solver]
            newton = 100
        "#;
        let world = World::build(&Scene::parse(text, None, &[]).unwrap()).unwrap();
        let mut comm = Solo::new();
        let mut simulation = Simulation::new(&world, &comm, &ScopeOptions::default()).unwrap();
        for _ in 0..60 {
            let report = simulation.advance(&mut comm).unwrap();
            assert!(report.newton_residual <= 1.0);
        }
    }
}
