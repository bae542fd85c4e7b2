//! Newton's method on the equations of an implicit substep, where they are to be met rather than
//! linearised once.
//!
//! The residual of velocities u is what the equation of `time_integrator` leaves, which is the
//! right-hand side of the system linearised there: `τ (f(X) − D(X) u + M g) − M (u − v̂)`. It is
//! measured by the kinetic energy that it would give to each vertex alone, `√Σ |S r|²/m` in √J,
//! with S the constrained directions taken out.
//!
//! * **Start**: the solution of the first system, taken whole.
//! * **Step**: the solution p of the system at the last iterate; its whole, or the half, quarter,
//!   ... down to [`LEAST_SHARE`] of it, the first with a residual smaller than the last one's by
//!   [`WORTHWHILE`] times the share, or with one whose power along p, `r·p`, is not below
//!   -[`OVERSHOT`] times the power at the last iterate. A residual is the slope of an energy, that
//!   of elastic forces and of what inertia lacks. Where it still points forward along p, or not
//!   much backward, that energy has become less, though the residual may have grown, as that of
//!   cloth that buckles does. A share at which a triangle collapses is too large.
//! * **Stop**: the residual is at most `solver.newton_tolerance` times the larger one of the
//!   substep's first right-hand side and of gravity alone, which cloth at rest holds against, or
//!   negligible. It fails when no share serves, or when `solver.newton` systems were solved; unless
//!   the rest is the rounding of forces that hold against gravity ([`ROUNDED`]).
//!
//! The matrix leaves out how forces turn with their triangles and compression, so that it stays
//! positive definite. Convergence is linear then, the faster the smaller strains are.

use glam::DVec3;
use weft_runtime::comm::Comm;

use super::linear_system::LinearSystem;
use super::solver::{Solver, negligible, residual_of_gravity, tolerance};
use crate::solve::Tolerance;
use crate::solve::fault::{self, Fault};
use crate::step::context::Context;
use crate::step::error::{GaveUp, StepError};
use crate::step::integrate::time_integrator::TimeIntegrator;
use crate::step::report::StepReport;
use crate::step::response::body_response::BodyConstraint;
use crate::step::state::LocalState;

/// The smallest share of a step that is tried.
const LEAST_SHARE: f64 = 1.0 / 128.0;
/// How far, as a share of the power at its beginning, a step may go beyond where the energy is
/// least.
const OVERSHOT: f64 = 0.5;
/// The factor, times its share, by which a step must make the residual smaller.
const WORTHWHILE: f64 = 1e-4;
/// A residual that is this small a share of gravity's is made of rounding.
const ROUNDED: f64 = 1e-9;

/// Newton's method, with the values that it works on.
#[derive(Debug)]
pub(crate) struct Newton<'a> {
    pub(crate) at: Context<'a>,
    pub(crate) local: &'a LocalState,
    /// The velocities of owned vertices at the start of the substep, in m/s.
    pub(crate) velocities: &'a [DVec3],
    /// The constraints by bodies.
    pub(crate) constraints: &'a [BodyConstraint],
    pub(crate) system: &'a mut LinearSystem,
    pub(crate) solver: &'a mut Solver,
    pub(crate) integrator: &'a mut TimeIntegrator,
}

/// A residual, and how it points.
#[derive(Clone, Copy, Debug)]
struct Residual {
    /// Its size in √J.
    size: f64,
    /// Its power along the last solution.
    power: f64,
}

impl Newton<'_> {
    /// Goes on from the solution of the first system until the equations are met. Returns the
    /// residual that they may leave. Collective.
    pub(crate) fn iterate(
        &mut self,
        comm: &mut dyn Comm,
        report: &mut StepReport,
    ) -> Result<f64, StepError> {
        let before = report.systems.saturating_sub(1);
        let (world, tau) = (self.at.world, self.integrator.tau);
        let settings = world.scene().solver;
        // The first right-hand side: assembled where the substep begins, and not changed by its
        // solve.
        let first = self.residual(comm)?.size;
        let gravity = residual_of_gravity(world, tau);
        let allowed = (settings.newton_tolerance * first.max(gravity)).max(negligible(world, tau));
        self.system.hold_still(self.at, self.constraints);
        let mut residual = (self.look(comm)?).map_or(f64::INFINITY, |residual| residual.size);
        loop {
            report.newton_residual = residual / allowed;
            if residual <= allowed {
                break;
            }
            let why = if report.systems - before >= settings.newton {
                GaveUp::Limit
            } else if residual.is_finite() {
                // The rest is not negligible, though a solve, which measures it with the matrix
                // instead of masses, may find it so.
                let tolerance = Tolerance {
                    absolute: 0.0,
                    ..tolerance(world, tau)
                };
                let outcome = (self.solver).solve_further(
                    comm,
                    self.at,
                    self.system,
                    self.local,
                    &tolerance,
                )?;
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
            let at = self.worst(comm)?;
            return Err(StepError::Newton {
                step: self.at.substep.number(),
                systems: report.systems - before,
                residual,
                allowed,
                at: world.name(at),
                why,
            });
        }
        for (force, rhs) in self.solver.force.iter_mut().zip(&self.system.rhs) {
            *force = -*rhs;
        }
        Ok(allowed)
    }

    /// Takes the largest share of the last solution that makes the residual or the energy smaller,
    /// and returns the residual then; `None` if none does. Collective.
    fn search(&mut self, comm: &mut dyn Comm, last: f64) -> Result<Option<f64>, StepError> {
        let begin = self.residual(comm)?.power;
        let mut share = 1.0;
        // Each trial takes back half of what the one before had added; at first there is nothing to
        // take back.
        let mut added = 0.0;
        while share >= LEAST_SHARE {
            let changes = self.solver.change.iter_mut();
            for (change, further) in changes.zip(&self.solver.further) {
                *change += *further * (share - added);
            }
            added = share;
            if let Some(Residual { size, power }) = self.look(comm)?
                && (size <= last * (1.0 - WORTHWHILE * share) || power >= -OVERSHOT * begin)
            {
                return Ok(Some(size));
            }
            share *= 0.5;
        }
        Ok(None)
    }

    /// Linearises at the present change, and returns its residual; `None` if a triangle has
    /// collapsed there or it is no number. Collective.
    fn look(&mut self, comm: &mut dyn Comm) -> Result<Option<Residual>, StepError> {
        (self.integrator).linearise_at(comm, self.velocities, &self.solver.change)?;
        let tau = self.integrator.tau;
        let collapsed = (self.system).assemble_there(self.at, self.integrator, tau);
        for c in self.constraints {
            let i = c.local as usize;
            let dragged = c.dragged();
            self.system.rhs[i] += c.friction - dragged * self.solver.change[i];
            if c.drag > 0.0 {
                let block = self.system.matrix.diagonal_block(i) + dragged;
                self.system.matrix.set_diagonal_block(i, &block);
            }
        }
        match self.at.agree_on_collapse(comm, collapsed) {
            Ok(()) => {}
            Err(StepError::Collapsed { .. }) => return Ok(None),
            Err(error) => return Err(error),
        }
        let residual = self.residual(comm)?;
        let finite = residual.size.is_finite() && residual.power.is_finite();
        Ok(finite.then_some(residual))
    }

    /// The residual of the system as it is assembled. Collective.
    fn residual(&self, comm: &mut dyn Comm) -> Result<Residual, StepError> {
        let [squares, power] = self.solver.reduction.sum(comm, |patch| {
            patch.fold([0.0, 0.0], |[squares, power], i| {
                let free = self.system.filter.free(i) * self.system.rhs[i];
                let power = power + free.dot(self.solver.further[i]);
                [squares + self.kick(i), power]
            })
        })?;
        Ok(Residual {
            size: squares.sqrt(),
            power,
        })
    }

    /// Twice the energy in J that the residual of an owned vertex would give to it alone.
    fn kick(&self, i: usize) -> f64 {
        let free: DVec3 = self.system.filter.free(i) * self.system.rhs[i];
        let vertex = self.at.domain.owned().start + i;
        free.length_squared() / self.at.world.model().masses()[vertex]
    }

    /// The vertex with the largest share of the residual. Collective.
    fn worst(&self, comm: &mut dyn Comm) -> Result<usize, StepError> {
        let first = self.at.domain.owned().start as u32;
        let rows = 0..self.system.rhs.len();
        let own = rows.map(|i| Fault::at(first + i as u32, -self.kick(i)));
        let worst = fault::agree(comm, own.reduce(Fault::worse))?;
        Ok(worst.map_or(0, |fault| fault.vertex as usize))
    }
}

#[cfg(test)]
mod tests {
    use weft_runtime::ScopeOptions;
    use weft_runtime::comm::solo::Solo;

    use crate::scene::Scene;
    use crate::step::{Simulation, World};

    /// The first right-hand side of a step is then no more than rounding, and nothing can be much
    /// smaller.
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
