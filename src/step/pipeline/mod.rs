//! The outer loop of [SSIF09 §3]: pairs of features of cloth are found once for many substeps.
//!
//! In a checked state (A) tasks find the pairs that may come within reach while all of the
//! substeps of a part pass, and what each pair is like is kept (`history`). The substeps (B) push,
//! and rub, by the kept pairs alone (`repulsions`); no pair of cloth is searched for. A pair that
//! finds its features on the wrong side of each other (`sides`) attracts. Then the whole part is
//! certified along the straight ways from the checked state to where the substeps have led (C,
//! [`super::certify`]), and the next part begins in a checked state again. A step ends with a part,
//! so frames, checkpoints and stops see checked states alone.
//!
//! Contacts with bodies are found anew in every substep, as in the paper (B.4), for a vertex slides
//! from one face of a body to the next: among the pairs of triangles that the search came by.
//!
//! | in the paper | here |
//! |---|---|
//! | A | `take_many`, `history` |
//! | B.1 | the first solve, with bodies as constraints (`turns`) |
//! | B.2 | [`Repulsions::stop`] and [`Repulsions::push_apart`], in `responding` |
//! | B.3, B.4 | the response to bodies, then the move |
//! | B.5 to B.7 | the second solve, with friction of bodies |
//! | B.8 | [`Repulsions::stop`], with friction |
//! | C | [`super::certify`], when the last substep moves |
//!
//! Other integrators than Newmark's end with the velocity that they move with. They stop and rub in
//! B.2, and their second solve, if they have one, is followed by B.8, too. Elastic pushes move
//! vertices and change no velocity, whatever the integrator.
//!
//! * \[SSIF09\] Selle, Su, Irving, Fedkiw: Robust high-resolution cloth using parallelism,
//!   history-based collisions, and accurate friction.

pub(super) mod history;
pub(super) mod repulsions;
mod sides;
#[cfg(test)]
mod tests;

use glam::DVec3;
use weft_runtime::ScopeOptions;
use weft_runtime::comm::Comm;
use weft_runtime::trace::MainTrack;

use self::history::History;
use self::repulsions::Repulsions;
use super::certify::LetThrough;
use super::contact::detection::Detection;
use super::context::Context;
use super::domain::Domain;
use super::error::StepError;
use super::integrate::time_integrator::Past;
use super::report::{Clock, StepReport};
use super::simulation::Simulation;
use super::state::State;
use super::substep::Substep;
use super::world::World;
use crate::heap_bytes::counts_heap;
use crate::scene::Pipeline;
use crate::team::Team;

/// The data that the substeps of a part share.
#[derive(Debug)]
pub(crate) struct Many {
    /// The checked state in which the part begins.
    pub(crate) start: State,
    /// The state before that, where the integrator looks back.
    past: Past,
    /// The impulses of contacts before it in the step, on owned vertices, in N s.
    contact_impulses: Vec<DVec3>,
    /// The contacts with bodies, among the pairs that were found.
    pub(crate) bodies: Detection,
    /// The pairs that were found.
    pub(crate) history: History,
    /// The pushes by these pairs.
    pub(crate) repulsions: Repulsions,
}

counts_heap!(Many: start, past, contact_impulses, bodies, history, repulsions);

/// The substep of a part that is being taken.
#[derive(Debug)]
pub(super) struct Within<'a> {
    pub(super) many: &'a mut Many,
    /// The part as if it were a substep, if this is its last one.
    pub(super) ends: Option<&'a Substep>,
}

impl Many {
    /// The data that substeps share on a rank; `None` if its scene searches in all of them.
    pub(crate) fn new(
        world: &World,
        domain: &Domain,
        state: &State,
        options: &ScopeOptions,
        team: &Team,
    ) -> Option<Self> {
        let contact = &world.scene().contact;
        (contact.pipeline == Pipeline::History).then(|| Self {
            start: State::new(world, state.shares.clone()),
            past: Past::default(),
            contact_impulses: Vec::new(),
            bodies: Detection::of_kept(state.len(), options),
            history: History::new(domain),
            repulsions: Repulsions::with_team(team),
        })
    }

    /// Takes note of the state in which a part begins.
    fn begin(&mut self, state: &State, past: &Past) {
        self.start.x.clone_from(&state.x);
        self.start.v.clone_from(&state.v);
        self.start.extent = state.extent;
        self.past.clone_from(past);
    }

    /// Takes the substeps of a part that failed back.
    fn take_back(&self, state: &mut State, past: &mut Past) {
        state.x.clone_from(&self.start.x);
        state.v.clone_from(&self.start.v);
        state.extent = self.start.extent;
        past.clone_from(&self.past);
    }
}

impl Simulation<'_> {
    /// Takes the next part of the step, and gives every rank the new state. Collective.
    pub(super) fn take_part(
        &mut self,
        comm: &mut dyn Comm,
        report: &mut StepReport,
        track: &mut MainTrack,
    ) -> Result<(), StepError> {
        let Some(mut many) = self.many.take() else {
            self.take_substep(comm, report, track, None)?;
            self.note_contact_impulses(true);
            return Ok(());
        };
        many.begin(&self.state, &self.integrator.past);
        many.contact_impulses.clone_from(&self.contact_impulses);
        let outcome = self.take_many(comm, &mut many, report, track);
        self.substep.choose_length(self.world);
        if outcome.is_err() {
            // The substeps that were taken back have changed nothing.
            report.ledger.clear();
            many.take_back(&mut self.state, &mut self.integrator.past);
            self.contact_impulses.clone_from(&many.contact_impulses);
        }
        self.many = Some(many);
        outcome
    }

    fn take_many(
        &mut self,
        comm: &mut dyn Comm,
        many: &mut Many,
        report: &mut StepReport,
        track: &mut MainTrack,
    ) -> Result<(), StepError> {
        let mut of_search = StepReport::default();
        self.find_pairs(comm, many, &mut of_search, track)?;
        let (began, contacts) = (of_search.began, of_search.contacts);
        report.add(of_search);
        report.began = began;
        let part = self.substep.clone();
        let count = part.controller.substeps_of_part();
        for within in 0..count {
            self.substep.enter(self.world, within);
            let mut own = StepReport::default();
            let ends = (within + 1 == count).then_some(&part);
            let within = Within {
                many: &mut *many,
                ends,
            };
            let outcome = self.take_substep(comm, &mut own, track, Some(within));
            // The tasks of the search are the ones to look at.
            own.scope.trace = None;
            own.contacts += contacts;
            own.inner = 1;
            report.add(own);
            outcome?;
            self.note_contact_impulses(ends.is_some());
        }
        Ok(())
    }

    /// Finds the pairs of features of cloth that may touch in the part, and keeps what they are
    /// like. Collective.
    fn find_pairs(
        &mut self,
        comm: &mut dyn Comm,
        many: &mut Many,
        report: &mut StepReport,
        track: &mut MainTrack,
    ) -> Result<(), StepError> {
        let mut clock = Clock::start(comm, track);
        report.began = clock.now;
        self.substep.place_pins(self.world);
        let team = self.team().clone();
        let Self {
            world,
            domain,
            state,
            substep,
            detection,
            certification,
            ..
        } = self;
        let at = Context {
            world,
            domain: &*domain,
            substep: &*substep,
        };
        let through =
            (certification.as_ref()).map_or_else(LetThrough::nothing, |c| c.let_through());
        let found = team.awake(|| detection.detect(comm, at, state, (&team, through), report))?;
        let surface = world.geometry().cloth.surface();
        many.history.keep(&found, surface, &state.x);
        many.bodies.keep(comm, at, &detection.candidates)?;
        detection.take_back(found);
        report.pairs = many.history.counted();
        let count = Some(("pairs", report.pairs));
        report.times[0] = clock.lap(comm, count, None);
        Ok(())
    }
}
