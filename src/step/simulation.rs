//! One rank's share of a simulation, and the steps that all ranks take together.
//!
//! Every rank holds positions and velocities of all vertices as they were when the step began (48 B each);
//! it computes those of the vertices it owns. A step is taken in one part, or, where the scene allows it and the whole fails,
//! in several that end where it would have ended (`stride`); a part is what [TB06 §3 and §4] and [BW98] call a step
//! (`part`).

use glam::DVec3;
use weft_balance::cost_model::{CostModel, Work};
use weft_partition::{HaloPlan, Ownership};
use weft_runtime::ScopeOptions;
use weft_runtime::comm::{Comm, Tag};

use super::contact::balancer::Balancer;
use super::contact::contacts::Contacts;
use super::contact::geometry;
use super::error::{Named, StepError};
use super::exchange::new_state::Ahead;
use super::integrate::substep_controller::SubstepController;
use super::integrate::time_integrator::{self, TimeIntegrator};
use super::report::StepReport;
use super::response::body_response::{BodyResponse, VertexState};
use super::response::constraint_exchange;
use super::response::corrections::{self, Corrections};
use super::response::edges::Edges;
use super::system::assembly::{Assembly, Strains};
use super::world::World;
use super::world::prescribed_motion::PrescribedMotion;
use crate::collide::{Extent, Volumes};
use crate::scene;
use crate::solve::{
    BlockMatrix, Filter, ModifiedCg, Multilevel, Pattern, Preconditioner, Reduction, Smoother,
    System,
};
use crate::team::{Shares, Team, parts};

const CG_TAG: Tag = Tag(0x10);

/// What a step exchanges with messages of this tag, beside collectives.
#[must_use]
pub fn exchange_name(tag: Tag) -> Option<&'static str> {
    Some(match tag {
        geometry::TAG => "cells beside tiles",
        CG_TAG => "solve halo",
        constraint_exchange::TAG => "impulse rows",
        corrections::TAG => "response halo",
        time_integrator::TAG => "motion halo",
        _ => return None,
    })
}

/// One rank's share of the state.
#[derive(Debug)]
pub struct Simulation<'w> {
    pub(super) world: &'w World,
    pub(super) ownership: Ownership,
    pub(super) plan: HaloPlan,
    pub(super) options: ScopeOptions,
    pub(super) matrix: BlockMatrix,
    pub(super) cg: ModifiedCg,
    pub(super) reduction: Reduction,
    pub(super) filter: Filter,
    pub(super) assembly: Assembly,
    pub(super) bodies: BodyResponse,
    /// What pins do in the part.
    pub(super) holds: Vec<PrescribedMotion>,
    pub(super) corrections: Corrections,
    pub(super) motion: TimeIntegrator,
    /// Those whose change of length matters, if it does.
    pub(super) edges: Option<Edges>,
    /// What the part at hand began with.
    kept: Kept,
    pub(super) stride: SubstepController,
    /// Length of the part in s.
    pub(super) dt: f64,
    /// Which of all vertices each thread goes through; on one rank those whose rows are its own in the solve.
    pub(super) everywhere: Shares,
    /// All vertices, at the start of the part.
    pub(super) x: Vec<DVec3>,
    pub(super) v: Vec<DVec3>,
    /// Velocities with what gravity adds in the part: by them collisions are looked for.
    pub(super) foreseen: Vec<DVec3>,
    /// Velocities with which all vertices move in the part, and where they end with others, those.
    pub(super) moves: Vec<DVec3>,
    pub(super) ends: Vec<DVec3>,
    /// Where all vertices move to.
    pub(super) moved: Vec<DVec3>,
    /// Around all positions, if it is known.
    pub(super) extent: Option<Extent>,
    pub(super) volumes: Volumes,
    pub(super) balancer: Balancer,
    /// Empty between parts.
    pub(super) contacts: Contacts,
    /// Owned vertices and halo.
    pub(super) local_x: Vec<DVec3>,
    pub(super) local_v: Vec<DVec3>,
    pub(super) rhs: Vec<DVec3>,
    /// The velocity change that the part's solve has found, and that of the part before: from them the next one starts.
    pub(super) change: Vec<DVec3>,
    pub(super) change_before: Vec<DVec3>,
    /// Changes of further solves, which start from nothing.
    pub(super) further: Vec<DVec3>,
    /// `A Δv − b` of the last solve, in kg m/s.
    pub(super) force: Vec<DVec3>,
    /// The next part's system, where it was assembled while the state travelled.
    pub(super) ahead: Option<Ahead>,
    pub(super) step: u64,
    /// What this rank says in the steps to come, and what each rank said in the last one.
    pub(super) said: Vec<u8>,
    pub(super) heard: Vec<Vec<u8>>,
    /// What computing costs, where the machine is modelled.
    pub(super) cost_model: CostModel,
}

/// What a part changes before it is known to be good.
#[derive(Debug, Default)]
struct Kept {
    changes: [Vec<DVec3>; 2],
    contacts: Vec<VertexState>,
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
            // With more levels, SSOR saves a third of the iterations and doubles the work of each.
            scene::Preconditioner::BlockJacobi | scene::Preconditioner::Multilevel => {
                Smoother::BlockJacobi
            }
            scene::Preconditioner::PatchSsor => Smoother::PatchSsor,
        };
        let graph = world.graph();
        let multilevel = (world.aggregates()).map(|aggregates| Multilevel { aggregates, graph });
        let preconditioner = Preconditioner::new(smoother, multilevel, matrix.pattern(), partition);
        // In virtual time ranks take turns on one thread, and their workers are modelled.
        let threads = if comm.has_threads() {
            options.workers
        } else {
            1
        };
        let team = Team::new(threads)?;
        let cg = ModifiedCg::new(partition, preconditioner, CG_TAG).with_team(&team);
        let reduction = Reduction::new(world.tree(), &ownership, plan.rank()).with_team(&team);
        let scene::Scene {
            time,
            contact,
            solver,
            ..
        } = world.scene();
        let stride = SubstepController::new(time);
        let watched = stride.cuts() || contact.strain_change.is_some();
        let x = world.model().rest().to_vec();
        let v = world.start_velocities().to_vec();
        let everywhere = if comm.size() == 1 {
            cg.shares().clone()
        } else {
            team.cut_even(x.len())
        };
        Ok(Self {
            world,
            options: *options,
            filter: Filter::new(owned),
            assembly: Assembly::new(world, &plan, &matrix, cg.shares()),
            cg,
            bodies: BodyResponse::new(owned),
            holds: Vec::new(),
            corrections: Corrections::new(&plan, &team),
            reduction,
            motion: TimeIntegrator::new(solver.integrator, solver.newton > 1, &plan),
            edges: watched.then(|| Edges::new(world.model().triangles(), &plan)),
            kept: Kept::default(),
            stride,
            dt: time.step,
            matrix,
            local_x: vec![DVec3::ZERO; plan.local_len()],
            local_v: vec![DVec3::ZERO; plan.local_len()],
            rhs: vec![DVec3::ZERO; owned],
            change: vec![DVec3::ZERO; owned],
            change_before: vec![DVec3::ZERO; owned],
            further: vec![DVec3::ZERO; owned],
            force: vec![DVec3::ZERO; owned],
            foreseen: vec![DVec3::ZERO; v.len()],
            everywhere,
            moves: vec![DVec3::ZERO; v.len()],
            ends: Vec::new(),
            moved: Vec::new(),
            extent: None,
            volumes: Volumes::default(),
            balancer: Balancer::default(),
            contacts: Contacts::default(),
            x,
            v,
            plan,
            ownership,
            ahead: None,
            step: 0,
            said: Vec::new(),
            heard: Vec::new(),
            cost_model: CostModel::REAL,
        })
    }

    /// From now on keeps so many events of each step's collision scope, in its report
    /// ([`weft_runtime::ScopeReport::trace`]); `None`: none.
    pub fn record(&mut self, events: Option<usize>) {
        self.options.trace = events;
    }

    /// Sets the machine that steps run on from now on; it must be the same on every rank. On a modelled
    /// machine each piece of work is charged to the clock of its rank, and tasks charge the price of
    /// their tests instead of their number. The price of the response to contacts
    /// ([`Prices::respond`](weft_balance::prices::Prices::respond)) is that of one pass of corrections.
    pub fn run_on(&mut self, machine: CostModel) {
        self.cost_model = machine;
        let (weight, share) = (self.own_weight(), self.cg.coarse_share());
        let product = machine.cost(Work::Product { weight });
        let coarse = machine.cost(Work::CoarseSolve { share });
        self.cg
            .charge(machine.cost(Work::CoarseFactor), product + coarse);
    }

    /// In the steps to come every rank [hears](Self::heard) this: it travels with a message that a step has anyway. Whatever is said, the
    /// trajectory is the same.
    pub fn say(&mut self, bytes: Vec<u8>) {
        self.said = bytes;
    }

    /// What each rank [said](Self::say) in the last step, by rank; nothing before the first.
    #[must_use]
    pub fn heard(&self) -> &[Vec<u8>] {
        &self.heard
    }

    /// Takes one step. Collective.
    ///
    /// # Errors
    /// What failed, with step, patch and vertex. A rank that fails alone ends the job for all.
    pub fn advance(&mut self, comm: &mut dyn Comm) -> Result<StepReport, StepError> {
        let outcome = self.try_advance(comm);
        // What is the same on every rank leaves nobody waiting.
        if let Err(error) = outcome.as_ref()
            && !error.is_of_length()
        {
            comm.abort(&error.to_string());
        }
        outcome
    }

    /// Whether the state is one between two steps, and not of a step that failed after some of its parts: then it can be
    /// kept, also after a step has failed for its length ([`StepError::is_of_length`]).
    #[must_use]
    pub fn is_between_steps(&self) -> bool {
        self.stride.passed() == 0.0
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

    /// Positions and velocities of all vertices, to start from another state than the scene's: without a past, for
    /// integrators that have one.
    ///
    /// The same must be done on every rank.
    pub fn state_mut(&mut self) -> (&mut [DVec3], &mut [DVec3]) {
        self.motion.forget();
        self.ahead = None;
        self.extent = None;
        (&mut self.x, &mut self.v)
    }

    /// The threads of this rank.
    #[must_use]
    pub(crate) fn team(&self) -> &Team {
        self.cg.shares().team()
    }

    /// Who owns what.
    #[must_use]
    pub fn ownership(&self) -> &Ownership {
        &self.ownership
    }

    /// How far the triangles that touch this rank's vertices are stretched.
    #[must_use]
    pub fn strains(&mut self) -> Strains {
        self.load_local();
        self.assembly.strains(self.world.model(), &self.local_x)
    }

    /// The most strain beyond its limit that a triangle gains, as steps that can be cut judge it, if this rank's vertices move with such velocities (m/s) for so
    /// long (s).
    #[cfg(test)]
    pub(super) fn overstretched(&mut self, v: &[DVec3], dt: f64) -> Option<f64> {
        self.load_local();
        let of = (self.world.model(), &self.assembly);
        let fault = super::response::strain_limit::most_overstretched(of, (&self.local_x, v), dt);
        fault.map(|fault| -fault.key)
    }

    /// The linear system that the next step solves first, as it would be without contacts and strain limits, the rows of this
    /// rank: to look at it, or to measure solvers with. Collective.
    ///
    /// It is that of the scene's integrator. Central differences solve none for the first half of a step: theirs is that of the second.
    ///
    /// # Errors
    /// A triangle has collapsed, or messages failed.
    pub fn free_system(&mut self, comm: &mut dyn Comm) -> Result<System<'_>, StepError> {
        self.ahead = None;
        self.dt = self.stride.length(self.world.scene().time.step);
        self.load_local();
        self.place_pins();
        self.hold_pins();
        self.begin_free_motion();
        self.motion.share_ahead(comm)?;
        let collapsed = self.assemble_motion();
        self.agree_on_collapse(comm, collapsed)?;
        if self.motion.integrator == scene::Integrator::Central {
            // What the last step found is part of the state.
            let found = self.change.clone();
            self.step_explicitly();
            for (velocity, change) in self.local_v.iter_mut().zip(&self.change) {
                *velocity += *change;
            }
            self.change = found;
            self.assemble_second(comm)?;
        }
        Ok(System {
            matrix: &self.matrix,
            rhs: &self.rhs,
            filter: &self.filter,
            positions: &self.local_x[..self.plan.owned().len()],
        })
    }

    /// One step, in as many parts as it needs.
    fn try_advance(&mut self, comm: &mut dyn Comm) -> Result<StepReport, StepError> {
        let mut report = StepReport {
            shortest: f64::INFINITY,
            ..StepReport::default()
        };
        let mut began = None;
        loop {
            self.dt = self.stride.length(self.world.scene().time.step);
            let kept = &mut self.kept;
            kept.changes[0].clone_from(&self.change);
            kept.changes[1].clone_from(&self.change_before);
            kept.contacts.clear();
            kept.contacts.extend_from_slice(self.bodies.states());
            let mut part = StepReport::default();
            let outcome = self.take_part(comm, &mut part);
            report.began = *began.get_or_insert(part.began);
            report.add(part);
            match outcome {
                Ok(()) => {
                    report.substeps += 1;
                    report.shortest = report.shortest.min(self.dt);
                    if self.stride.succeed() {
                        break;
                    }
                }
                Err(error) if error.is_of_length() => {
                    let kept = &self.kept;
                    self.change.copy_from_slice(&kept.changes[0]);
                    self.change_before.copy_from_slice(&kept.changes[1]);
                    self.bodies.states_mut().copy_from_slice(&kept.contacts);
                    if !self.stride.halve() {
                        return Err(error.after_halving(report.halvings, self.dt));
                    }
                    report.halvings += 1;
                    report
                        .halved_because
                        .get_or_insert_with(|| error.to_string());
                }
                Err(error) => return Err(error),
            }
        }
        self.step += 1;
        Ok(report)
    }

    /// Simulated time at the start of the part in s.
    pub(super) fn part_time(&self) -> f64 {
        (self.step as f64 + self.stride.passed()) * self.world.scene().time.step
    }

    pub(super) fn owned(&self) -> std::ops::Range<usize> {
        self.plan.owned()
    }

    /// Copies what this rank's elements read.
    pub(super) fn load_local(&mut self) {
        let owned = self.owned();
        let n = owned.len();
        let (from_x, from_v) = (&self.x[owned.clone()], &self.v[owned]);
        let shares = self.cg.shares();
        let to = parts(&mut self.local_x[..n], &shares.elements)
            .zip(parts(&mut self.local_v[..n], &shares.elements));
        shares.run(to.zip(&shares.elements), |((x, v), share)| {
            x.copy_from_slice(&from_x[share.clone()]);
            v.copy_from_slice(&from_v[share.clone()]);
        });
        for (i, &vertex) in (n..).zip(self.plan.halo()) {
            self.local_x[i] = self.x[vertex as usize];
            self.local_v[i] = self.v[vertex as usize];
        }
    }

    /// A vertex for people: its number in the scene, its patch, its cloth, its number there.
    pub(super) fn name(&self, vertex: usize) -> Named {
        let tree = self.world.tree();
        let cloths = self.world.model().cloth_of_vertex();
        let cloth = cloths[vertex];
        // The scene's vertices are those of its cloths, one cloth after the other.
        let before = cloths.iter().filter(|&&other| other < cloth).count();
        let number = tree.new_to_old()[vertex];
        Named {
            vertex: number,
            patch: tree.patch_of(vertex as u32),
            cloth: self.world.scene().cloths[cloth as usize].name.clone(),
            of_cloth: number - before as u32,
        }
    }
}

/// Tests that a task makes before it returns: some five microseconds. A slice begins with looking up what it reads, and ends with
/// the pairs of features that were gathered so far: short ones make the phase longer, long ones are late to be split.
const SLICE: u32 = 512;

/// The runtime's options for what a scene says.
impl From<&scene::Balance> for ScopeOptions {
    fn from(balance: &scene::Balance) -> Self {
        Self {
            policy: balance.policy,
            seed: balance.seed,
            slice: SLICE,
            ..Self::default()
        }
    }
}
