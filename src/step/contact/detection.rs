//! The detection of a substep's contacts, with what it keeps from one substep to the next.

use glam::DVec3;
use weft_runtime::ScopeOptions;
use weft_runtime::comm::Comm;

use super::balancer::Balancer;
use super::contacts::Contacts;
use super::detect::{Search, detect};
use crate::collide::{Candidate, Contact, Geometry, Snapshot, Volumes};
use crate::step::certify::LetThrough;
use crate::step::context::Context;
use crate::step::error::StepError;
use crate::step::report::StepReport;
use crate::step::state::State;
use crate::team::{Team, parts};

/// A rank's detection of contacts.
#[derive(Debug)]
pub(crate) struct Detection {
    /// The options of the runtime's scope in which tests are made.
    pub(crate) options: ScopeOptions,
    /// The velocities by which collisions are looked for, of all vertices: those at the start of
    /// the substep with what gravity adds.
    pub(crate) foreseen: Vec<DVec3>,
    volumes: Volumes,
    pub(crate) balancer: Balancer,
    /// The room of the last substep's contacts, empty between substeps.
    pub(crate) contacts: Contacts,
    /// Whether the pairs that tests look at are kept, for certification.
    keeps_candidates: bool,
    /// Whether contacts with bodies alone are looked for.
    of_bodies: bool,
    /// The pairs that the last search looked at on this rank, if they are kept.
    pub(crate) candidates: Vec<Vec<Candidate>>,
}

impl Detection {
    /// The detection of contacts among so many vertices. It keeps the pairs that it looks at if
    /// steps are certified.
    pub(crate) fn new(vertices: usize, options: &ScopeOptions, keeps_candidates: bool) -> Self {
        Self {
            options: *options,
            foreseen: vec![DVec3::ZERO; vertices],
            volumes: Volumes::default(),
            balancer: Balancer::default(),
            contacts: Contacts::default(),
            keeps_candidates,
            of_bodies: false,
            candidates: Vec::new(),
        }
    }

    /// The detection of contacts of so many vertices with bodies.
    pub(crate) fn of_bodies(vertices: usize, options: &ScopeOptions) -> Self {
        Self {
            of_bodies: true,
            ..Self::new(vertices, options, false)
        }
    }

    /// Finds the velocities by which collisions are looked for.
    pub(crate) fn foresee(&mut self, at: Context<'_>, state: &State) {
        let Context { world, substep, .. } = at;
        let fall = world.scene().gravity * substep.dt;
        let shares = &state.shares.elements;
        let foreseen = parts(&mut self.foreseen, shares).zip(shares);
        (state.shares).run(foreseen, |(foreseen, share)| {
            for (foreseen, v) in foreseen.iter_mut().zip(&state.v[share.clone()]) {
                *foreseen = *v + fall;
            }
        });
        for pinned in world.pins().of(&(0..state.len())) {
            let vertex = pinned.vertex as usize;
            let motion = &substep.prescribed[pinned.pin as usize];
            let start = world.model().rest()[vertex];
            let free = motion.free * (state.v[vertex] + fall);
            self.foreseen[vertex] = free + motion.velocity(start, state.x[vertex], substep.dt);
        }
    }

    /// The snapshot in which the substep looks for contacts, once velocities are foreseen.
    pub(crate) fn snapshot<'a>(
        &'a self,
        at: Context<'a>,
        state: &'a State,
        geometry: &Geometry<'a>,
        volumes: &'a mut Volumes,
    ) -> Snapshot<'a> {
        let (time, dt) = (at.substep.time(at.world), at.substep.dt);
        Snapshot::new(geometry, volumes, &state.x, &self.foreseen, time, dt)
    }

    /// Finds the contacts of the substep, in the room of those of the one before. Collective.
    pub(crate) fn detect(
        &mut self,
        comm: &mut dyn Comm,
        at: Context<'_>,
        state: &State,
        (team, through): (&Team, LetThrough<'_>),
        report: &mut StepReport,
    ) -> Result<Contacts, StepError> {
        self.foresee(at, state);
        let mut geometry = at.world.geometry();
        if self.of_bodies {
            geometry.self_collision = false;
            if geometry.bodies.is_empty() {
                return Ok(std::mem::take(&mut self.contacts));
            }
        }
        let (time, dt) = (at.substep.time(at.world), at.substep.dt);
        let volumes = &mut self.volumes;
        let mut snapshot = Snapshot::new(&geometry, volumes, &state.x, &self.foreseen, time, dt)
            .suspending(through.suspended)
            .keeping(through.kept);
        if comm.size() > 1 {
            snapshot = snapshot.by_subtrees();
        }
        if let Some(extent) = state.extent {
            snapshot = snapshot.within(extent);
        }
        let mut contacts = std::mem::take(&mut self.contacts);
        let search = Search {
            snapshot: &snapshot,
            geometry: &geometry,
            ownership: &at.domain.ownership,
            options: &self.options,
            team,
            cost_model: &at.domain.cost_model,
            keeps_candidates: self.keeps_candidates,
        };
        let found = detect(comm, &search, &mut self.balancer, &mut contacts);
        let found = found.map_err(|source| StepError::Detect {
            step: at.substep.number(),
            source,
        })?;
        report.contacts = if comm.size() == 1 {
            contacts.len() as u64
        } else {
            let owned = at.domain.owned();
            let counted_here = |c: &Contact| owned.contains(&(c.vertices[0] as usize));
            let all = contacts.all(geometry.cloth.surface());
            all.filter(counted_here).count() as u64
        };
        report.scope = found.report;
        report.early = found.early;
        self.candidates = found.candidates;
        Ok(contacts)
    }

    /// Takes the contacts of a substep back, to use their room for the next one's.
    pub(crate) fn take_back(&mut self, mut contacts: Contacts) {
        contacts.clear();
        self.contacts = contacts;
    }
}
