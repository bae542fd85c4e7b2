//! The linear system of a substep: matrix, right-hand side, and the directions that are
//! constrained.

use glam::DVec3;

use super::assembly::{Assembly, SystemMut};
use super::load::{Collapsed, Load};
use crate::heap_bytes::counts_heap;
use crate::physics::element::Times;
use crate::scene::Integrator;
use crate::solve::{BlockMatrix, Filter, Pattern, PatternError, System};
use crate::step::context::Context;
use crate::step::domain::Domain;
use crate::step::integrate::time_integrator::TimeIntegrator;
use crate::step::neighbourhood::Neighbourhood;
use crate::step::response::body_response::BodyConstraint;
use crate::step::state::{LocalState, StateView};
use crate::step::world::World;
use crate::team::Shares;

/// The rows of the system that a rank owns.
#[derive(Debug)]
pub(crate) struct LinearSystem {
    /// The matrix in kg.
    pub(crate) matrix: BlockMatrix,
    /// The right-hand side in kg m/s.
    pub(crate) rhs: Vec<DVec3>,
    /// The directions in which velocity changes are prescribed.
    pub(crate) filter: Filter,
    /// The elements that the rows are made of.
    pub(crate) assembly: Assembly,
}

counts_heap!(LinearSystem: matrix, rhs, filter, assembly);

/// How far positions follow velocities in a system, in s.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Following {
    /// The time for which forces act, τ.
    pub(crate) tau: f64,
    /// The time by which positions follow the change of velocities.
    pub(crate) stiff: f64,
    /// The simulated time of the loads that act.
    pub(crate) time: f64,
}

/// The matrix of a rank, without numbers.
///
/// # Errors
/// It is too large for its numbering.
pub(crate) fn empty_matrix(world: &World, domain: &Domain) -> Result<BlockMatrix, PatternError> {
    let graphs = world.graphs();
    let pattern = Pattern::new(&domain.plan, &graphs.near, &graphs.far)?;
    Ok(BlockMatrix::new(pattern))
}

impl LinearSystem {
    /// The system of a rank whose threads have such shares of its rows.
    pub(crate) fn new(
        world: &World,
        domain: &Domain,
        matrix: BlockMatrix,
        shares: &Shares,
        neighbourhood: &impl Neighbourhood,
    ) -> Self {
        let owned = domain.owned().len();
        Self {
            assembly: Assembly::new(world, domain, &matrix, shares, neighbourhood),
            matrix,
            rhs: vec![DVec3::ZERO; owned],
            filter: Filter::new(owned),
        }
    }

    /// The system as solvers read it, of vertices at these positions in m.
    pub(crate) fn view<'a>(&'a self, local: &'a LocalState) -> System<'a> {
        System {
            matrix: &self.matrix,
            rhs: &self.rhs,
            filter: &self.filter,
            positions: &local.x[..self.rhs.len()],
        }
    }

    /// Assembles the first system of a substep.
    pub(crate) fn assemble_first(
        &mut self,
        at: Context<'_>,
        integrator: &mut TimeIntegrator,
        local: &LocalState,
    ) -> Result<(), Collapsed> {
        let (world, tau) = (at.world, integrator.tau);
        let time = at.substep.load_time(world);
        match integrator.integrator {
            // Linearised where the substep begins.
            Integrator::Euler => {
                let stiff = tau;
                self.assemble_here(world, local, Following { tau, stiff, time })
            }
            Integrator::Newmark | Integrator::Central => {
                let stiff = 0.0;
                self.assemble_here(world, local, Following { tau, stiff, time })
            }
            // Linearised where the substep would end at the velocities it begins with, which is
            // nearer by one order.
            Integrator::Bdf2 => {
                integrator.linearise(&local.v);
                self.assemble_there(at, integrator, tau)
            }
        }
    }

    /// Assembles the system that is linearised at the start of the substep.
    pub(crate) fn assemble_here(
        &mut self,
        world: &World,
        local: &LocalState,
        Following { tau, stiff, time }: Following,
    ) -> Result<(), Collapsed> {
        let load = Load {
            times: Times {
                tau,
                stiff,
                shift: stiff,
            },
            time,
            gravity: world.scene().gravity.at(time),
            air: world.scene().air.at(time),
            toward: None,
        };
        self.assemble(world, local.view(), &load)
    }

    /// Assembles the system that is linearised where the integrator says, with positions that
    /// follow the change by `stiff` (s).
    pub(crate) fn assemble_there(
        &mut self,
        at: Context<'_>,
        integrator: &TimeIntegrator,
        stiff: f64,
    ) -> Result<(), Collapsed> {
        let (world, time) = (at.world, at.substep.load_time(at.world));
        let load = Load {
            times: Times {
                tau: integrator.tau,
                stiff,
                shift: 0.0,
            },
            time,
            gravity: world.scene().gravity.at(time),
            air: world.scene().air.at(time),
            toward: Some(&integrator.toward),
        };
        let state = StateView {
            x: &integrator.x,
            v: &integrator.v,
        };
        self.assemble(world, state, &load)
    }

    fn assemble(
        &mut self,
        world: &World,
        state: StateView<'_>,
        load: &Load<'_>,
    ) -> Result<(), Collapsed> {
        let into = SystemMut {
            matrix: &mut self.matrix,
            rhs: &mut self.rhs,
        };
        self.assembly.assemble(world.model(), state, load, into)
    }

    /// Constrains what pins hold, and nothing else. `begin` is the state of the owned vertices at
    /// the start of the substep.
    pub(crate) fn hold_pins(&mut self, at: Context<'_>, begin: StateView<'_>) {
        self.filter.clear();
        for pinned in at.own_pinned() {
            let velocity = at.prescribed_velocity(&pinned, begin.x[pinned.row]);
            let change = velocity - begin.v[pinned.row];
            self.filter
                .constrain(pinned.row, pinned.motion.free, change);
        }
    }

    /// Keeps what is prescribed as the first system has solved it: further changes are none.
    pub(crate) fn hold_still(&mut self, at: Context<'_>, constraints: &[BodyConstraint]) {
        self.filter.clear();
        for pinned in at.own_pinned() {
            self.filter
                .constrain(pinned.row, pinned.motion.free, DVec3::ZERO);
        }
        for c in constraints {
            self.filter.constrain(c.local as usize, c.free, DVec3::ZERO);
        }
    }
}
