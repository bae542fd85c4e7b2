//! One rank's share of a simulation, and the step that all ranks take together.
//!
//! Every rank holds positions and velocities of all vertices as they were when the step began (48 B each);
//! it computes those of the vertices it owns. The step, after [TB06 §3 and §4] and [BW98]:
//!
//! 1. detect: tasks find the contacts of the step;
//! 2. constrain: vertices near bodies lose directions;
//! 3. assemble and solve the implicit step for the velocity change;
//! 4. respond: constraints are held or released, friction acts, impulses correct what the solve did not
//!    foresee, nothing enters a body;
//! 5. move, and share the new state.

use std::time::Duration;

use glam::DVec3;
use rayon::ThreadPoolBuildError;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use weft_partition::{HaloPlan, Ownership, PartitionError};
use weft_runtime::comm::{Collectives, Comm, CommError, Rank, Tag};
use weft_runtime::{ScopeError, ScopeOptions, ScopeReport};

use super::assembly::{Assembly, Load};
use super::body_response::{BodyResponse, StepContext};
use super::corrections::{self, Correcting, Corrections};
use super::detect::{Contacts, detect};
use super::row_exchange;
use super::world::World;
use crate::collide::{Contact, Snapshot, Volumes};
use crate::scene;
use crate::solve::{
    BlockMatrix, Filter, ModifiedCg, Outcome, Pattern, PatternError, Preconditioner, Smoother,
    SolveError, System, Tolerance, TwoLevel,
};
use crate::team::Team;

const CG_TAG: Tag = Tag(0x10);
/// Residual in √J (see [`Tolerance`]) that is always good enough: about 10⁻⁹ m/s of a gram.
const NEGLIGIBLE: f64 = 1e-12;

/// Why a step could not be taken.
#[derive(Debug, Error)]
pub enum StepError {
    /// The linear solve failed.
    #[error("step {step}: {source}")]
    Solve {
        /// The step, from 1.
        step: u64,
        /// What the solver says; its vertex in the order of the scene's vertices.
        source: SolveError,
    },
    /// Collision tasks failed.
    #[error("step {step}: {source}")]
    Detect {
        /// The step, from 1.
        step: u64,
        /// What the runtime says.
        source: ScopeError,
    },
    /// A triangle has no area any more.
    #[error(
        "step {step}: a triangle collapsed at vertex {vertex} of patch {patch} (cloth `{cloth}`); take a \
         shorter time.step"
    )]
    Collapsed {
        /// The step, from 1.
        step: u64,
        /// A corner, in the order of the scene's vertices.
        vertex: u32,
        /// Its patch.
        patch: usize,
        /// Its cloth's name.
        cloth: String,
    },
    /// A state to go on from that is not of this scene.
    #[error("the state to go on from is not of {vertices} vertices, as this scene is")]
    OtherState {
        /// Vertices of the scene.
        vertices: usize,
    },
    /// A position or velocity is not finite.
    #[error(
        "step {step}: vertex {vertex} of patch {patch} (cloth `{cloth}`) is no longer at a finite \
         position; take a shorter time.step"
    )]
    NonFinite {
        /// The step, from 1.
        step: u64,
        /// The vertex, in the order of the scene's vertices.
        vertex: u32,
        /// Its patch.
        patch: usize,
        /// Its cloth's name.
        cloth: String,
    },
    /// Messages failed.
    #[error(transparent)]
    Comm(#[from] CommError),
    /// The system does not give as many threads as were asked for.
    #[error("cannot start the threads of a rank: {0}")]
    Threads(#[from] ThreadPoolBuildError),
    /// More ranks than patches, or none.
    #[error(transparent)]
    Partition(#[from] PartitionError),
    /// The matrix is too large for its numbering.
    #[error(transparent)]
    Pattern(#[from] PatternError),
}

impl StepError {
    /// Whether this only says that another rank ended the job.
    #[must_use]
    pub fn is_echo(&self) -> bool {
        let echo =
            |error: &CommError| matches!(error, CommError::Aborted { .. } | CommError::Left { .. });
        match self {
            Self::Comm(error)
            | Self::Solve {
                source: SolveError::Comm(error),
                ..
            }
            | Self::Detect {
                source: ScopeError::Comm(error),
                ..
            } => echo(error),
            _ => false,
        }
    }
}

/// The phases of a step, in order.
pub const PHASES: [&str; 5] = ["collide", "assemble", "solve", "respond", "share"];

/// What a step exchanges with messages of this tag, beside collectives.
#[must_use]
pub fn exchange_name(tag: Tag) -> Option<&'static str> {
    Some(match tag {
        CG_TAG => "solve halo",
        row_exchange::TAG => "impulse rows",
        corrections::TAG => "response halo",
        _ => return None,
    })
}

/// What a rank saw of a step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepReport {
    /// Iterations of the solve.
    pub iterations: u32,
    /// Its residual, as a share of what was allowed.
    pub residual: f64,
    /// Contacts whose first vertex this rank owns.
    pub contacts: u64,
    /// Vertices of this rank that bodies constrain.
    pub constraints: u64,
    /// Contacts that pushed, of those whose first vertex this rank owns.
    pub impulses: u64,
    /// Triangles held at the strain limit, of those whose first vertex this rank owns.
    pub strain_limited: u64,
    /// Vertices of this rank that had to be kept out of bodies after the solve.
    pub clamped: u64,
    /// What its workers did.
    pub scope: ScopeReport,
    /// When it began, on the rank's clock.
    pub began: Duration,
    /// Time spent in each of [`PHASES`], which follow each other.
    pub times: [Duration; PHASES.len()],
}

/// One rank's share of the state.
#[derive(Debug)]
pub struct Simulation<'w> {
    pub(super) world: &'w World,
    pub(super) ownership: Ownership,
    plan: HaloPlan,
    options: ScopeOptions,
    matrix: BlockMatrix,
    cg: ModifiedCg,
    filter: Filter,
    assembly: Assembly,
    pub(super) bodies: BodyResponse,
    corrections: Corrections,
    /// All vertices, at the start of the step.
    pub(super) x: Vec<DVec3>,
    pub(super) v: Vec<DVec3>,
    /// Velocities with what gravity adds in the step: by them collisions are looked for.
    foreseen: Vec<DVec3>,
    volumes: Volumes,
    /// Owned vertices and halo.
    local_x: Vec<DVec3>,
    local_v: Vec<DVec3>,
    rhs: Vec<DVec3>,
    pub(super) change: Vec<DVec3>,
    pub(super) step: u64,
}

impl<'w> Simulation<'w> {
    /// The state at time 0, on the rank that `comm` is.
    ///
    /// # Errors
    /// More ranks than patches.
    pub fn new(
        world: &'w World,
        comm: &dyn Comm,
        options: &ScopeOptions,
    ) -> Result<Self, StepError> {
        let ownership = Ownership::new(world.tree(), comm.size())?;
        let plan = HaloPlan::new(world.graph(), &ownership, comm.rank().index())?;
        let (near, far) = world.couplings();
        let matrix = BlockMatrix::new(Pattern::new(&plan, near, far)?);
        let owned = plan.owned().len();
        let partition = (&plan, world.tree(), &ownership);
        let smoother = match world.scene().solver.preconditioner {
            // With two levels, SSOR saves a third of the iterations and doubles the work of each.
            scene::Preconditioner::BlockJacobi | scene::Preconditioner::TwoLevel => {
                Smoother::BlockJacobi
            }
            scene::Preconditioner::PatchSsor => Smoother::PatchSsor,
        };
        let graph = world.graph();
        let two_level = (world.aggregates()).map(|aggregates| TwoLevel { aggregates, graph });
        let preconditioner = Preconditioner::new(smoother, two_level, matrix.pattern(), partition);
        // In virtual time ranks take turns on one thread, and their workers are modelled.
        let threads = if comm.has_threads() {
            options.workers
        } else {
            1
        };
        let team = Team::new(threads)?;
        let cg = ModifiedCg::new(partition, preconditioner, CG_TAG).with_team(&team);
        let x = world.model().rest().to_vec();
        let v = world.start_velocities().to_vec();
        Ok(Self {
            world,
            options: *options,
            filter: Filter::new(owned),
            assembly: Assembly::new(world, &plan, &matrix, cg.shares()),
            cg,
            bodies: BodyResponse::new(owned),
            corrections: Corrections::new(&plan, &team),
            matrix,
            local_x: vec![DVec3::ZERO; plan.local_len()],
            local_v: vec![DVec3::ZERO; plan.local_len()],
            rhs: vec![DVec3::ZERO; owned],
            change: vec![DVec3::ZERO; owned],
            foreseen: Vec::with_capacity(v.len()),
            volumes: Volumes::default(),
            x,
            v,
            plan,
            ownership,
            step: 0,
        })
    }

    /// From now on keeps so many events of each step's collision scope, in its report
    /// ([`ScopeReport::trace`]); `None`: none.
    pub fn record(&mut self, events: Option<usize>) {
        self.options.trace = events;
    }

    /// Takes one step. Collective.
    ///
    /// # Errors
    /// What failed, with step, patch and vertex. A rank that fails alone ends the job for all.
    pub fn advance(&mut self, comm: &mut dyn Comm) -> Result<StepReport, StepError> {
        let outcome = self.try_advance(comm);
        if let Err(error) = &outcome {
            comm.abort(&error.to_string());
        }
        outcome
    }

    /// Steps taken.
    #[must_use]
    pub fn step(&self) -> u64 {
        self.step
    }

    /// Simulated time in s.
    #[must_use]
    pub fn time(&self) -> f64 {
        self.step as f64 * self.world.scene().time.step
    }

    /// Positions of all vertices in m, in the numbering of the patch tree; the same on every rank.
    #[must_use]
    pub fn positions(&self) -> &[DVec3] {
        &self.x
    }

    /// Velocities of all vertices in m/s, likewise.
    #[must_use]
    pub fn velocities(&self) -> &[DVec3] {
        &self.v
    }

    /// Positions and velocities of all vertices, to start from another state than the scene's.
    ///
    /// The same must be done on every rank.
    pub fn state_mut(&mut self) -> (&mut [DVec3], &mut [DVec3]) {
        (&mut self.x, &mut self.v)
    }

    /// Who owns what.
    #[must_use]
    pub fn ownership(&self) -> &Ownership {
        &self.ownership
    }

    /// The largest principal strain of the triangles that touch this rank's vertices.
    #[must_use]
    pub fn largest_strain(&mut self) -> f64 {
        self.load_local();
        self.assembly
            .largest_strain(self.world.model(), &self.local_x)
    }

    /// The linear system of the next step as it would be without contacts, the rows of this rank: to
    /// look at it, or to measure solvers with.
    ///
    /// # Errors
    /// A triangle has collapsed.
    pub fn free_system(&mut self) -> Result<System<'_>, StepError> {
        self.load_local();
        self.hold_pins();
        self.assemble()?;
        Ok(System {
            matrix: &self.matrix,
            rhs: &self.rhs,
            filter: &self.filter,
            positions: &self.local_x[..self.plan.owned().len()],
        })
    }

    fn try_advance(&mut self, comm: &mut dyn Comm) -> Result<StepReport, StepError> {
        let mut clock = Clock::start(comm);
        let mut report = StepReport {
            began: clock.0,
            ..StepReport::default()
        };
        let contacts = self.detect(comm, &mut report)?;
        report.times[0] = clock.lap(comm);

        self.load_local();
        self.constrain(&contacts, &mut report);
        self.assemble()?;
        report.times[1] = clock.lap(comm);

        let outcome = self.solve(comm)?;
        report.iterations = outcome.iterations;
        report.residual = if outcome.allowed > 0.0 {
            outcome.residual / outcome.allowed
        } else {
            0.0
        };
        report.times[2] = clock.lap(comm);

        self.respond(comm, &contacts, &mut report)?;
        report.times[3] = clock.lap(comm);

        self.share(comm)?;
        report.times[4] = clock.lap(comm);
        Ok(report)
    }

    fn dt(&self) -> f64 {
        self.world.scene().time.step
    }

    pub(super) fn owned(&self) -> std::ops::Range<usize> {
        self.plan.owned()
    }

    /// Copies what this rank's elements read.
    fn load_local(&mut self) {
        let owned = self.owned();
        let n = owned.len();
        self.local_x[..n].copy_from_slice(&self.x[owned.clone()]);
        self.local_v[..n].copy_from_slice(&self.v[owned]);
        for (i, &vertex) in (n..).zip(self.plan.halo()) {
            self.local_x[i] = self.x[vertex as usize];
            self.local_v[i] = self.v[vertex as usize];
        }
    }

    fn detect(
        &mut self,
        comm: &mut dyn Comm,
        report: &mut StepReport,
    ) -> Result<Contacts, StepError> {
        let fall = self.world.scene().gravity * self.dt();
        let motion = self.v.iter().zip(self.world.pinned());
        self.foreseen.clear();
        self.foreseen
            .extend(motion.map(|(&v, &pinned)| if pinned { v } else { v + fall }));
        let geometry = self.world.geometry();
        let (time, dt) = (self.time(), self.dt());
        let (x, v) = (&self.x, &self.foreseen);
        let snapshot = Snapshot::new(&geometry, &mut self.volumes, x, v, time, dt);
        let (contacts, scope) =
            detect(comm, &snapshot, &self.ownership, &self.options).map_err(|source| {
                StepError::Detect {
                    step: self.step + 1,
                    source,
                }
            })?;
        let owned = self.owned();
        let counted_here = |c: &&Contact| owned.contains(&(c.vertices[0] as usize));
        let layers = contacts.layers.iter().filter(counted_here).count();
        report.contacts = (contacts.vertex_body.len() + layers) as u64;
        report.scope = scope;
        Ok(contacts)
    }

    /// What the response to bodies needs to know.
    fn context(&self) -> StepContext<'w> {
        StepContext {
            dt: self.dt(),
            gravity: self.world.scene().gravity,
            first: self.owned().start as u32,
            friction: self.world.friction(),
        }
    }

    /// Fills the filter: pins, then contacts with bodies.
    fn constrain(&mut self, contacts: &Contacts, report: &mut StepReport) {
        let owned = self.owned();
        let pinned = &self.world.pinned()[owned.clone()];
        let velocities = &self.v[owned];
        let context = self.context();
        self.bodies
            .constrain(&contacts.vertex_body, velocities, pinned, &context);
        self.hold_pins();
        for c in self.bodies.constraints() {
            self.filter.constrain(c.local as usize, c.free, c.change);
        }
        report.constraints = self.bodies.constraints().len() as u64;
    }

    /// Empties the filter but for pins.
    fn hold_pins(&mut self) {
        let owned = self.owned();
        let pinned = self.world.pinned()[owned.clone()].iter().enumerate();
        self.filter.clear();
        for (row, _) in pinned.filter(|&(_, &pinned)| pinned) {
            self.filter.fix(row, -self.v[owned.start + row]);
        }
    }

    fn assemble(&mut self) -> Result<(), StepError> {
        let load = Load {
            dt: self.dt(),
            gravity: self.world.scene().gravity,
            air: self.world.scene().air,
        };
        let state = (&self.local_x[..], &self.local_v[..]);
        self.assembly
            .assemble(
                self.world.model(),
                state,
                &load,
                &mut self.matrix,
                &mut self.rhs,
            )
            .map_err(|collapsed| {
                let vertex = self.world.model().triangles()[collapsed.triangle as usize][0];
                let (vertex, patch, cloth) = self.name(vertex as usize);
                StepError::Collapsed {
                    step: self.step + 1,
                    vertex,
                    patch,
                    cloth,
                }
            })
    }

    fn solve(&mut self, comm: &mut dyn Comm) -> Result<Outcome, StepError> {
        let scene::Solver {
            tolerance,
            max_iterations,
            ..
        } = self.world.scene().solver;
        let system = System {
            matrix: &self.matrix,
            rhs: &self.rhs,
            filter: &self.filter,
            positions: &self.local_x[..self.plan.owned().len()],
        };
        let tolerance = Tolerance {
            relative: tolerance,
            absolute: NEGLIGIBLE,
            max_iterations,
        };
        self.cg
            .solve(comm, &system, &tolerance, &mut self.change)
            .map_err(|source| StepError::Solve {
                step: self.step + 1,
                source: source.renumbered(|vertex| self.world.tree().new_to_old()[vertex as usize]),
            })
    }

    /// New velocities of owned vertices, in `local_v`.
    fn respond(
        &mut self,
        comm: &mut dyn Comm,
        contacts: &Contacts,
        report: &mut StepReport,
    ) -> Result<(), StepError> {
        let owned = self.owned();
        let n = owned.len();
        let masses = &self.world.model().masses()[owned.clone()];
        let pinned = &self.world.pinned()[owned];
        let velocities = &mut self.local_v[..n];
        for (velocity, change) in velocities.iter_mut().zip(&self.change) {
            *velocity += *change;
        }
        self.bodies
            .settle(self.cg.constraint_force(), masses, velocities);
        let with = Correcting {
            world: self.world,
            ownership: &self.ownership,
            plan: &self.plan,
            assembly: &self.assembly,
            bodies: &self.bodies,
            x: &self.local_x,
        };
        let pushed = self
            .corrections
            .apply(comm, &with, contacts, &mut self.local_v)?;
        report.impulses = pushed.contacts;
        report.strain_limited = pushed.triangles;
        let context = self.context();
        let velocities = &mut self.local_v[..n];
        let clamped = self
            .bodies
            .clamp(&contacts.vertex_body, velocities, pinned, &context);
        report.clamped = clamped as u64;
        Ok(())
    }

    /// Moves the owned vertices and gives every rank the new state.
    fn share(&mut self, comm: &mut dyn Comm) -> Result<(), StepError> {
        let owned = self.owned();
        let n = owned.len();
        let dt = self.dt();
        for i in 0..n {
            self.local_x[i] += self.local_v[i] * dt;
            if !(self.local_x[i].is_finite() && self.local_v[i].is_finite()) {
                let (vertex, patch, cloth) = self.name(owned.start + i);
                return Err(StepError::NonFinite {
                    step: self.step + 1,
                    vertex,
                    patch,
                    cloth,
                });
            }
        }
        let mut bytes = Vec::with_capacity(2 * n * size_of::<DVec3>());
        bytes.extend_from_slice(bytemuck::cast_slice(&self.local_x[..n]));
        bytes.extend_from_slice(bytemuck::cast_slice(&self.local_v[..n]));
        for (rank, bytes) in comm.allgather(bytes)?.into_iter().enumerate() {
            let theirs = self.ownership.vertices(rank);
            let half = theirs.len() * size_of::<DVec3>();
            if bytes.len() != 2 * half {
                let what = format!("{} bytes for {} vertices", bytes.len(), theirs.len());
                return Err(CommError::Malformed {
                    from: Rank(rank as u32),
                    what,
                }
                .into());
            }
            let (x, v) = bytes.split_at(half);
            bytemuck::cast_slice_mut(&mut self.x[theirs.clone()]).copy_from_slice(x);
            bytemuck::cast_slice_mut(&mut self.v[theirs]).copy_from_slice(v);
        }
        self.step += 1;
        Ok(())
    }

    /// A vertex for people: its number in the scene, its patch, its cloth.
    fn name(&self, vertex: usize) -> (u32, usize, String) {
        let tree = self.world.tree();
        let cloth = self.world.model().cloth_of_vertex()[vertex] as usize;
        let name = self.world.scene().cloths[cloth].name.clone();
        (
            tree.new_to_old()[vertex],
            tree.patch_of(vertex as u32),
            name,
        )
    }
}

/// Laps of the driver's clock.
struct Clock(Duration);

impl Clock {
    fn start(comm: &dyn Comm) -> Self {
        Self(comm.now())
    }

    fn lap(&mut self, comm: &dyn Comm) -> Duration {
        let now = comm.now();
        now.saturating_sub(std::mem::replace(&mut self.0, now))
    }
}

/// The runtime's options for what a scene says.
impl From<&scene::Balance> for ScopeOptions {
    fn from(balance: &scene::Balance) -> Self {
        Self {
            policy: balance.policy,
            seed: balance.seed,
            ..Self::default()
        }
    }
}
