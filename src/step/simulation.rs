//! One rank's share of a simulation, and the steps that all ranks take together.
//!
//! A step is taken in one substep, or, where the scene allows it and the whole fails, in several
//! that end where it would have ended (`substep_controller`). The step of [TB06 §3 and §4] and
//! [BW98] is a substep here (`stages`).
//!
//! * \[BW98\] Baraff, Witkin: Large steps in cloth simulation.
//! * \[TB06\] Thomaszewski, Blochinger: Parallel simulation of cloth on distributed memory
//!   architectures.

use bytemuck::Pod;
use glam::DVec3;
use weft_balance::cost_model::{CostModel, Work};
use weft_partition::Ownership;
use weft_runtime::ScopeOptions;
use weft_runtime::comm::{Collectives as _, Comm, CommError, Rank, Tag};
use weft_runtime::trace::MainTrack;

use super::certify::Certification;
use super::contact::detection::Detection;
use super::contact::geometry;
use super::context::Context;
use super::diagnose::ledger::Impulses;
use super::domain::{Domain, Place};
use super::error::StepError;
use super::exchange::new_state::{Exchange, gather_all};
use super::exchange::subscriptions::{self, Subscriptions};
use super::integrate::time_integrator::{self, TimeIntegrator};
use super::neighbourhood::Replica;
use super::pipeline::Many;
use super::report::{COUNTERS, StepReport};
use super::response::body_response::VertexState;
use super::response::responding::Response;
use super::response::{constraint_exchange, corrections};
use super::stages::{assemble_second, begin_free_integration};
use super::state::{LocalState, State};
use super::substep::Substep;
use super::system::assembly::Strains;
use super::system::linear_system::{LinearSystem, empty_matrix};
use super::system::solver::{self, Solver};
use super::world::World;
use crate::heap_bytes::counts_heap;
use crate::scene::{Integrator, Scene};
use crate::solve::System;
use crate::team::Team;

/// The name of the data that a step exchanges in messages of this tag, beside collectives.
#[must_use]
pub fn exchange_name(tag: Tag) -> Option<&'static str> {
    Some(match tag {
        geometry::TAG => "cells beside tiles",
        solver::TAG => "solve halo",
        subscriptions::TAG => "states of subscribed vertices",
        constraint_exchange::TAG => "impulse rows",
        corrections::TAG => "response halo",
        time_integrator::TAG => "motion halo",
        _ => return None,
    })
}

/// One rank's share of a simulation: the values that the stages of a substep take and give.
#[derive(Debug)]
pub struct Simulation<'w> {
    pub(super) world: &'w World,
    pub(super) domain: Domain,
    pub(super) state: State,
    pub(super) local: LocalState,
    pub(super) substep: Substep,
    pub(super) detection: Detection,
    pub(super) system: LinearSystem,
    pub(super) solver: Solver,
    pub(super) integrator: TimeIntegrator,
    pub(super) response: Response,
    pub(super) exchange: Exchange,
    /// The certification of substeps, if the scene asks for it.
    pub(super) certification: Option<Certification>,
    /// The impulses of the substep, for the ledger.
    pub(super) impulses: Impulses,
    /// The data that the substeps of a part share, if there are many.
    pub(super) many: Option<Many>,
    /// The impulses that contacts exerted on owned vertices in the last step, in N s.
    pub(super) contact_impulses: Vec<DVec3>,
    pub(super) backup: Backup,
    /// The states that were checked since they were taken last, if they are kept.
    pub(super) checked: Option<Vec<CheckedState>>,
}

/// A state after a part of a step: what certification promises, it promises of these and of the
/// straight ways between them.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckedState {
    /// The simulated time in s.
    pub time: f64,
    /// The positions of all vertices in m, in the numbering of the patch tree.
    pub positions: Vec<DVec3>,
    /// The squeezed vertices, as [`Simulation::squeezed`] tells them.
    pub squeezed: Vec<[u32; 2]>,
    /// The kept vertices, as [`Simulation::kept`] tells them.
    pub kept: Vec<[u32; 2]>,
}

counts_heap!(CheckedState: positions, squeezed, kept; without time);

/// The state that a substep changes before it is known to be good, as it was when the substep
/// began.
#[derive(Debug, Default)]
pub(super) struct Backup {
    changes: [Vec<DVec3>; 2],
    contacts: Vec<VertexState>,
}

counts_heap!(Backup: changes, contacts);

impl Backup {
    fn keep(&mut self, solver: &Solver, contacts: &[VertexState]) {
        self.changes[0].clone_from(&solver.change);
        self.changes[1].clone_from(&solver.change_before);
        self.contacts.clear();
        self.contacts.extend_from_slice(contacts);
    }

    fn restore(&self, solver: &mut Solver, contacts: &mut [VertexState]) {
        solver.change.copy_from_slice(&self.changes[0]);
        solver.change_before.copy_from_slice(&self.changes[1]);
        contacts.copy_from_slice(&self.contacts);
    }
}

impl<'w> Simulation<'w> {
    /// The state at time 0, on the rank that `comm` is.
    ///
    /// # Errors
    /// More ranks than patches, or the world was [released](World::release).
    pub fn new(
        world: &'w World,
        comm: &dyn Comm,
        options: &ScopeOptions,
    ) -> Result<Self, StepError> {
        let place = Place {
            rank: comm.rank().index(),
            size: comm.size(),
        };
        // In virtual time ranks take turns on one thread, and their workers are modelled.
        let threads = if comm.has_threads() {
            options.workers
        } else {
            1
        };
        Self::of_rank(world, place, threads, options)
    }

    /// Gives this rank the state of all vertices, where it has only the state of those that its
    /// tests read ([`RankState::Subscribed`](crate::scene::RankState)). Collective.
    ///
    /// # Errors
    /// Messages failed.
    pub fn complete(&mut self, comm: &mut dyn Comm) -> Result<(), CommError> {
        let State {
            x,
            v,
            subscriptions: Some(subscriptions),
            ..
        } = &mut self.state
        else {
            return Ok(());
        };
        if !subscriptions.is_whole() {
            for values in [x, v] {
                subscriptions.count_received(values.len() - self.domain.owned().len());
                gather_all(comm, &self.domain, values)?;
            }
            subscriptions.note_whole();
        }
        Ok(())
    }

    /// The vertices of other ranks whose state this one is sent in each substep.
    #[must_use]
    pub fn ghosts(&self) -> usize {
        let all = self.state.len() - self.domain.owned().len();
        let subscriptions = self.state.subscriptions.as_ref();
        subscriptions.map_or(all, Subscriptions::ghosts)
    }

    /// The state at time 0 on a rank with this number of threads.
    pub(super) fn of_rank(
        world: &'w World,
        place: Place,
        threads: usize,
        options: &ScopeOptions,
    ) -> Result<Self, StepError> {
        if world.is_released() {
            return Err(StepError::Released);
        }
        let domain = Domain::new(world, place)?;
        let matrix = empty_matrix(world, &domain)?;
        let team = Team::new(threads)?;
        let solver = Solver::new(world, &domain, &matrix, &team);
        let vertices = world.model().start().len();
        // On one rank each thread goes through the vertices whose rows are its own in the solve.
        let everywhere = if place.size == 1 {
            solver.cg.shares().clone()
        } else {
            team.cut_even(vertices)
        };
        let mut options = *options;
        let state = if world.subscribes(place.size) {
            // A test is forked where what it reads is known.
            options.policy.forecast = false;
            State::subscribed(world, &domain, everywhere)
        } else {
            State::new(world, everywhere)
        };
        let options = &options;
        let neighbourhood = Replica {
            world,
            state: &state,
        };
        let Scene {
            contact,
            solver: settings,
            ..
        } = world.scene();
        let substep = Substep::new(world);
        let watched = substep.controller.cuts() || contact.strain_change.is_some();
        let shares = solver.cg.shares();
        let iterates = settings.newton > 1;
        let knows_few = state.subscriptions.is_some();
        let many = Many::new(world, &domain, &state, options, &team);
        Ok(Self {
            world,
            local: LocalState::new(world, &domain),
            detection: Detection::new(
                (vertices, knows_few),
                options,
                contact.certify || many.is_some(),
            ),
            system: LinearSystem::new(world, &domain, matrix, shares, &neighbourhood),
            integrator: TimeIntegrator::new(
                settings.integrator,
                [iterates, many.is_some()],
                &domain.plan,
            ),
            response: Response::new(&domain, &team, watched, &neighbourhood),
            exchange: Exchange::new(vertices, knows_few),
            certification: Certification::new(world),
            impulses: Impulses::default(),
            many,
            contact_impulses: vec![DVec3::ZERO; domain.owned().len()],
            backup: Backup::default(),
            checked: None,
            domain,
            state,
            substep,
            solver,
        })
    }

    /// Vertices in the order of the scene's own, each with the number of a body that lets it
    /// through because there was no room; ascending, and the same on every rank.
    #[must_use]
    pub fn squeezed(&self) -> Vec<[u32; 2]> {
        let suspended = self.certification.iter().flat_map(Certification::suspended);
        let old = self.world.tree().new_to_old();
        let mut squeezed: Vec<_> = suspended
            .map(|&[v, body]| [old[v as usize], body])
            .collect();
        squeezed.sort_unstable();
        squeezed
    }

    /// The changes by certification of the velocity of each vertex in the last part of a step, in
    /// m/s, in the order of the scene's own vertices; the same on every rank.
    #[must_use]
    pub fn cuts(&self) -> Vec<f64> {
        let mut cuts = vec![0.0; self.world.tree().new_to_old().len()];
        let old = self.world.tree().new_to_old();
        for cut in self.certification.iter().flat_map(Certification::cuts) {
            if let Some(&vertex) = old.get(cut.vertex as usize) {
                cuts[vertex as usize] = cut.change.length();
            }
        }
        cuts
    }

    /// Vertices of cloth that started through cloth and is not free yet, in the order of the
    /// scene's own, each with [what it is a member
    /// of](crate::collide::tangles::Member::to_numbers); ascending, and the same on every rank.
    #[must_use]
    pub fn kept(&self) -> Vec<[u32; 2]> {
        let members = self
            .certification
            .iter()
            .flat_map(|own| own.kept().members());
        let old = self.world.tree().new_to_old();
        let numbers = members.map(|member| member.to_numbers());
        let mut kept: Vec<[u32; 2]> = numbers.map(|[v, of]| [old[v as usize], of]).collect();
        kept.sort_unstable();
        kept
    }

    /// How often a step is halved by now, and how many parts of it went well since, where the
    /// number of substeps adapts; the same on every rank.
    #[must_use]
    pub fn adapted(&self) -> Option<[u32; 2]> {
        let controller = &self.substep.controller;
        controller.adapts().then(|| controller.between_steps())
    }

    /// Keeps, from now on, at most this number of events of each step's collision scope, in its
    /// report ([`weft_runtime::ScopeReport::trace`]), and its [phases](StepReport::marks); `None`:
    /// none.
    pub fn record(&mut self, events: Option<usize>) {
        self.detection.options.trace = events;
    }

    /// Keeps the state after each part of a step from now on, beginning with the present one, or
    /// keeps none. Where ranks know only some vertices, all of them must do the same, and each must
    /// have [all of them](Self::complete) where it begins.
    pub fn keep_checked(&mut self, keeps: bool) {
        self.checked = keeps.then(|| {
            vec![CheckedState {
                time: self.substep.time(self.world),
                positions: self.state.x.to_vec(),
                squeezed: self.squeezed(),
                kept: self.kept(),
            }]
        });
    }

    /// The states that were [kept](Self::keep_checked) since they were taken last.
    pub(crate) fn take_checked(&mut self) -> Vec<CheckedState> {
        self.checked
            .as_mut()
            .map(std::mem::take)
            .unwrap_or_default()
    }

    /// From now on adds up without the order that makes the bits the same on any number of ranks
    /// and threads: sums over vertices skip the patch tree, and contacts are not sorted. To measure
    /// what the order costs (`cargo bench --bench order`); to be called on every rank.
    pub fn forget_order(&mut self) {
        self.solver.cg.forget_order();
        self.solver.reduction.forget_order();
        self.detection.contacts.forget_order();
    }

    /// Sets the machine that steps run on from now on; it must be the same on every rank. On a
    /// modelled machine each piece of work is charged to the clock of its rank, and tasks charge
    /// the price of their tests instead of their number. The price of the response to contacts
    /// ([`Prices::respond`](weft_balance::prices::Prices::respond)) is that of one pass of
    /// corrections.
    pub(crate) fn run_on(&mut self, machine: CostModel) {
        self.domain.cost_model = machine;
        let (weight, [factor, share]) = (self.domain.weight, self.solver.cg.coarse_shares());
        let product = machine.cost(Work::Product { weight });
        let coarse = machine.cost(Work::CoarseSolve { share });
        let factor = machine.cost(Work::CoarseFactor { share: factor });
        self.solver.cg.charge(factor, product + coarse);
    }

    /// Sets what every rank [hears](Self::heard) from this one in the steps to come. It travels
    /// with a message that a step has anyway. Whatever is said, the trajectory is the same.
    pub fn say(&mut self, bytes: Vec<u8>) {
        self.exchange.said = bytes;
    }

    /// The messages that each rank [said](Self::say) in the last step, by rank; nothing before the
    /// first.
    #[must_use]
    pub fn heard(&self) -> &[Vec<u8>] {
        &self.exchange.heard
    }

    /// Takes one step. Collective.
    ///
    /// # Errors
    /// What failed, with step, patch and vertex. A rank that fails alone ends the job for all.
    pub fn advance(&mut self, comm: &mut dyn Comm) -> Result<StepReport, StepError> {
        let outcome = self.check_seams();
        let outcome = outcome.and_then(|()| self.try_advance(comm));
        // An error that is the same on every rank leaves nobody waiting.
        if let Err(error) = outcome.as_ref()
            && !error.leaves_state()
        {
            comm.abort(&error.to_string());
        }
        outcome
    }

    /// Refuses a state in which a seam is open whose time came in the step before. All ranks have
    /// the same state, and so the same error.
    ///
    /// # Errors
    /// [`StepError::OpenSeam`], which names the stitch that is open farthest.
    pub(crate) fn check_seams(&self) -> Result<(), StepError> {
        let world = self.world;
        if world.scene().seams.is_empty() || self.step() == 0 || !self.is_between_steps() {
            return Ok(());
        }
        let length = world.scene().time.step;
        // Where steps end, to rounding.
        let times = [-0.5, 0.5].map(|half| self.time() + half * length);
        let Some((stitch, apart)) = world.open_stitch(&self.state.x, times) else {
            return Ok(());
        };
        let seam = &world.scene().seams[stitch.seam as usize];
        Err(StepError::OpenSeam {
            step: self.step(),
            seam: seam.name.clone(),
            at: world.name(stitch.vertices[0] as usize),
            apart,
            gap: world.scene().gap_of(seam),
            close: seam.close,
        })
    }

    /// Whether the state is one between two steps, and not of a step that failed after some of its
    /// substeps. Then it can be kept, also after a step has failed for its length
    /// ([`StepError::is_of_length`]).
    #[must_use]
    pub(crate) fn is_between_steps(&self) -> bool {
        self.substep.controller.passed() == 0.0
    }

    /// Steps taken.
    #[must_use]
    pub fn step(&self) -> u64 {
        self.substep.steps
    }

    /// Simulated time in s.
    #[must_use]
    pub fn time(&self) -> f64 {
        self.substep.steps as f64 * self.world.scene().time.step
    }

    /// Positions of all vertices in m, in the numbering of the patch tree; the same on every rank
    /// that has [all of them](Self::complete).
    #[must_use]
    pub fn positions(&self) -> &[DVec3] {
        &self.state.x
    }

    /// Velocities of all vertices in m/s, in the numbering of the patch tree; the same on every
    /// rank that has [all of them](Self::complete).
    #[must_use]
    pub fn velocities(&self) -> &[DVec3] {
        &self.state.v
    }

    /// Positions and velocities of all vertices, to start from another state than the scene's:
    /// without a past, for integrators that have one.
    ///
    /// It must be changed alike on every rank, and each must have [all of it](Self::complete).
    pub fn state_mut(&mut self) -> (&mut [DVec3], &mut [DVec3]) {
        self.forget();
        (&mut self.state.x, &mut self.state.v)
    }

    /// Forgets what follows from the state: it becomes another.
    pub(super) fn forget(&mut self) {
        self.integrator.forget();
        self.exchange.forget_ahead();
        self.state.extent = None;
        if let Some(subscriptions) = &mut self.state.subscriptions {
            subscriptions.note_whole();
        }
    }

    /// The threads of this rank.
    #[must_use]
    pub(crate) fn team(&self) -> &Team {
        self.solver.cg.shares().team()
    }

    /// The owners of patches and vertices.
    #[must_use]
    pub fn ownership(&self) -> &Ownership {
        &self.domain.ownership
    }

    /// How far the triangles that touch this rank's vertices are stretched.
    #[must_use]
    pub fn strains(&mut self) -> Strains {
        self.load_local();
        let assembly = &self.system.assembly;
        assembly.strains(self.world.model(), &self.local.x)
    }

    /// The most strain beyond its limit that a triangle gains, as steps that can be cut judge it,
    /// if this rank's vertices move with such velocities (m/s) for so long (s).
    #[cfg(test)]
    pub(super) fn overstretched(&mut self, v: &[DVec3], dt: f64) -> Option<f64> {
        use super::response::strain_limit::most_overstretched;
        self.load_local();
        let state = super::state::StateView {
            x: &self.local.x,
            v,
        };
        let assembly = &self.system.assembly;
        let fault = most_overstretched(self.world.model(), assembly, state, dt);
        fault.map(|fault| -fault.key)
    }

    /// The linear system that the next step solves first, as it would be without contacts and
    /// strain limits, the rows of this rank: to look at it, or to measure solvers with. Collective.
    ///
    /// It is that of the scene's integrator. Central differences solve none for the first half of a
    /// step: theirs is that of the second.
    ///
    /// # Errors
    /// A triangle has collapsed, or messages failed.
    pub fn free_system(&mut self, comm: &mut dyn Comm) -> Result<System<'_>, StepError> {
        self.exchange.forget_ahead();
        self.substep.enter(self.world, 0);
        self.load_local();
        self.substep.place_pins(self.world);
        let at = Context {
            world: self.world,
            domain: &self.domain,
            substep: &self.substep,
        };
        let (system, solver) = (&mut self.system, &mut self.solver);
        let (local, integrator) = (&mut self.local, &mut self.integrator);
        let begin = self.state.of(at.domain.owned());
        system.hold_pins(at, begin);
        begin_free_integration(at, local, begin, integrator);
        integrator.share_ahead(comm)?;
        let collapsed = system.assemble_first(at, integrator, local);
        at.agree_on_collapse(comm, collapsed)?;
        if integrator.integrator == Integrator::Central {
            // The findings of the last step are part of the state.
            let found = solver.change.clone();
            solver.step_explicitly(at.masses(), system, &[]);
            for (velocity, change) in local.v.iter_mut().zip(&solver.change) {
                *velocity += *change;
            }
            solver.change = found;
            assemble_second(comm, at, begin.v, local, integrator, system)?;
        }
        Ok(self.system.view(&self.local))
    }

    /// Takes one step, in as many substeps as it needs.
    fn try_advance(&mut self, comm: &mut dyn Comm) -> Result<StepReport, StepError> {
        let mut report = StepReport {
            shortest: f64::INFINITY,
            ..StepReport::default()
        };
        let mut began = None;
        if self.is_between_steps() {
            self.contact_impulses.fill(DVec3::ZERO);
        }
        let mut track = MainTrack::new(&*comm, self.detection.options.trace.is_some());
        loop {
            self.substep.choose_length(self.world);
            self.backup
                .keep(&self.solver, self.response.bodies.states());
            let mut of_substep = StepReport::default();
            let begins = self.substep.time(self.world);
            let number = self.substep.number();
            let times = [begins, begins + self.substep.dt];
            self.world.prepare_bodies(number, times)?;
            let outcome = self.take_part(comm, &mut of_substep, &mut track);
            self.world.check_bodies(number)?;
            let is_crowded = self.is_crowded(&of_substep);
            report.began = *began.get_or_insert(of_substep.began);
            report.add(of_substep);
            if outcome.is_ok() && self.checked.is_some() {
                self.complete(comm)?;
                let state = CheckedState {
                    time: self.substep.time(self.world) + self.substep.dt,
                    positions: self.state.x.to_vec(),
                    squeezed: self.squeezed(),
                    kept: self.kept(),
                };
                self.checked.get_or_insert_default().push(state);
            }
            let Substep { controller, dt, .. } = &mut self.substep;
            match outcome {
                Ok(()) => {
                    report.substeps += 1;
                    report.shortest = report.shortest.min(*dt);
                    let ends = controller.succeed();
                    if is_crowded {
                        controller.shorten();
                    }
                    if ends {
                        break;
                    }
                }
                Err(error) if error.is_of_length() => {
                    // The phase that failed is over, and the step goes on.
                    track.end_down_to(1, comm.now());
                    let states = self.response.bodies.states_mut();
                    self.backup.restore(&mut self.solver, states);
                    if !controller.halve() {
                        return Err(error.after_halving(report.halvings, *dt));
                    }
                    report.halvings += 1;
                    report
                        .halved_because
                        .get_or_insert_with(|| error.to_string());
                }
                Err(error) => return Err(error),
            }
        }
        self.substep.steps += 1;
        let subscriptions = self.state.subscriptions.as_mut();
        report.state_bytes += subscriptions.map_or(0, Subscriptions::take_received);
        report.ghosts = self.ghosts() as u64;
        let values = [
            report.scope.work,
            u64::from(report.iterations),
            report.contacts,
            report.impulses,
            u64::from(report.rounds),
            u64::from(report.sweeps.colours),
            u64::from(report.sweeps.colouring_rounds),
            report.sweeps.messages,
            report.certified.hits,
            report.certified.cut,
            report.certified.squeezed,
        ];
        for (counter, value) in COUNTERS.into_iter().zip(values) {
            track.count(counter, report.began, value);
        }
        track.end(track.last_end(), Some(("number", self.substep.steps)));
        report.marks = track.take_marks();
        Ok(report)
    }

    /// Whether certification had so much to do in a part that it should come sooner; the same on
    /// every rank.
    fn is_crowded(&self, part: &StepReport) -> bool {
        let certified = &part.certified;
        let hit = certified.hits as f64 > CROWDED * self.state.len() as f64;
        hit || certified.zones > 0 || certified.cut > 0
    }

    /// Adds what contacts have exerted in a substep, and in certification if that came after it.
    pub(super) fn note_contact_impulses(&mut self, certified: bool) {
        let at = Context {
            world: self.world,
            domain: &self.domain,
            substep: &self.substep,
        };
        let certification = self.certification.as_ref().filter(|_| certified);
        let cuts = certification.map_or(&[][..], Certification::cuts);
        self.impulses
            .add_contacts(at, cuts, &mut self.contact_impulses);
    }

    /// Gathers the force in N with which contacts acted on each vertex in the last step, in the
    /// numbering of the patch tree. Rank 0 gets it. Collective.
    ///
    /// # Errors
    /// Messages failed.
    pub fn gather_contact_forces(
        &self,
        comm: &mut dyn Comm,
    ) -> Result<Option<Vec<DVec3>>, CommError> {
        let own: Vec<DVec3> = self.contact_forces().collect();
        let count = |rank: usize| self.domain.ownership.vertices(rank).len();
        gather_values(comm, &own, count, "the contact force of a vertex")
    }

    /// The largest principal strain of each triangle whose lowest vertex this rank owns, ascending
    /// by the triangles' numbers. It is infinite where a triangle has collapsed.
    #[must_use]
    pub fn own_strains(&self) -> Vec<f64> {
        let (model, owned) = (self.world.model(), self.domain.owned());
        self.system
            .assembly
            .triangles()
            .map(|triangle| (triangle, model.triangles()[triangle.number as usize]))
            .filter(|(_, corners)| {
                let lowest = corners.iter().min();
                lowest.is_some_and(|&lowest| owned.contains(&(lowest as usize)))
            })
            .map(|(triangle, corners)| {
                let corners = corners.map(|v| self.state.x[v as usize]);
                // Nothing is below a strain of -1.
                let strain = triangle.membrane(model).strain_above(-1.0, corners);
                strain.unwrap_or_default()
            })
            .collect()
    }

    /// Gathers the [strains](Self::own_strains) of all triangles, in the numbering of the patch
    /// tree. Rank 0 gets them. Collective.
    ///
    /// # Errors
    /// Messages failed.
    pub fn gather_strains(&self, comm: &mut dyn Comm) -> Result<Option<Vec<f64>>, CommError> {
        let count = |rank: usize| {
            let patches = self.domain.ownership.patches(rank);
            self.world.patch_triangles().lowest_in(patches).len()
        };
        gather_values(comm, &self.own_strains(), count, "the strain of a triangle")
    }

    /// Copies what this rank's elements read.
    pub(super) fn load_local(&mut self) {
        let neighbourhood = Replica {
            world: self.world,
            state: &self.state,
        };
        let begin = self.state.of(self.domain.owned());
        let shares = self.solver.cg.shares();
        (self.local).load(&self.domain, begin, shares, &neighbourhood);
    }
}

/// Gathers the values of all ranks, in the order of ranks: `count` says how many a rank has. Rank 0
/// gets them. Collective.
///
/// # Errors
/// Messages failed, or a rank has another number of values of this.
fn gather_values<T: Pod>(
    comm: &mut dyn Comm,
    own: &[T],
    count: impl Fn(usize) -> usize,
    what: &str,
) -> Result<Option<Vec<T>>, CommError> {
    let gathered = comm.gather(Rank(0), bytemuck::cast_slice(own).to_vec())?;
    let Some(gathered) = gathered else {
        return Ok(None);
    };
    let mut all = Vec::with_capacity((0..gathered.len()).map(&count).sum());
    for (rank, bytes) in (0..).zip(gathered) {
        let theirs = bytes.chunks(size_of::<T>());
        let theirs = theirs.map(bytemuck::try_pod_read_unaligned::<T>);
        let theirs: Result<Vec<T>, _> = theirs.collect();
        let count = count(rank as usize);
        let theirs = theirs.ok().filter(|theirs| theirs.len() == count);
        all.extend(theirs.ok_or_else(|| CommError::Malformed {
            from: Rank(rank),
            what: format!("not {count} values, each {what}"),
        })?);
    }
    Ok(Some(all))
}

/// The hits of certification, as a share of all vertices, beyond which it should come sooner.
const CROWDED: f64 = 1e-3;

/// The number of tests that a task makes before it returns: some five microseconds. A slice begins
/// with looking up what it reads, and ends with the pairs of features that were gathered so far.
/// Short ones make the phase longer, long ones are late to be split.
const SLICE: u32 = 512;

/// The runtime's options for what a scene says.
impl From<&crate::scene::Balance> for ScopeOptions {
    fn from(balance: &crate::scene::Balance) -> Self {
        Self {
            policy: balance.policy,
            seed: balance.seed,
            slice: SLICE,
            ..Self::default()
        }
    }
}
