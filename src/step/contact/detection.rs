//! The detection of a substep's contacts, with what it keeps from one substep to the next.

use std::sync::{Mutex, PoisonError};

use glam::DVec3;
use weft_runtime::ScopeOptions;
use weft_runtime::comm::{Collectives as _, Comm, CommError, Rank};

use super::balancer::Balancer;
use super::contacts::{Batch, Contacts};
use super::detect::{Search, detect};
use super::lending::{Lending, Lent};
use crate::collide::{Candidate, Contact, Extent, Findings, Geometry, Kdop18, Snapshot, Volumes};
use crate::heap_bytes::{HeapBytes as _, counts_heap};
use crate::sparse::Sparse;
use crate::step::certify::LetThrough;
use crate::step::context::Context;
use crate::step::error::StepError;
use crate::step::report::StepReport;
use crate::step::state::State;
use crate::team::{Team, parts};

/// The volume around a patch, as numbers.
pub(super) type Volume = [f32; Kdop18::NUMBERS];

/// A rank's detection of contacts.
#[derive(Debug)]
pub(crate) struct Detection {
    /// The options of the runtime's scope in which tests are made.
    pub(crate) options: ScopeOptions,
    /// The velocities by which collisions are looked for, of all vertices: those at the start of
    /// the substep with what gravity adds.
    pub(crate) foreseen: Sparse<DVec3>,
    /// Whether velocities were foreseen of all of them.
    foreseen_everywhere: bool,
    volumes: Volumes,
    pub(crate) balancer: Balancer,
    /// The room of the last substep's contacts, empty between substeps.
    pub(crate) contacts: Contacts,
    /// The state that other ranks lend for tests that were stolen from them.
    lent: Mutex<Lent>,
    /// Whether the pairs that tests look at are kept, for certification.
    keeps_candidates: bool,
    /// The pairs of cloth and bodies that are looked at instead of a search, if they are kept.
    kept: Option<Vec<Candidate>>,
    /// The pairs that the last search looked at on this rank, if they are kept.
    pub(crate) candidates: Vec<Vec<Candidate>>,
}

counts_heap!(Detection:
    foreseen, volumes, balancer, contacts, lent, kept, candidates;
    without options, keeps_candidates, foreseen_everywhere
);

impl Detection {
    /// The bytes on the heap of volumes, and of the pairs that certification looks at.
    pub(crate) fn bytes_of_parts(&self) -> [usize; 2] {
        [self.volumes.heap_bytes(), self.candidates.heap_bytes()]
    }

    /// The volumes of the last search.
    pub(crate) fn volumes(&self) -> &Volumes {
        &self.volumes
    }

    /// The detection of contacts among this number of vertices, of which the rank may know few. It
    /// keeps the pairs that it looks at if steps are certified.
    pub(crate) fn new(
        (vertices, knows_few): (usize, bool),
        options: &ScopeOptions,
        keeps_candidates: bool,
    ) -> Self {
        Self {
            options: *options,
            foreseen: Sparse::new(vertices, knows_few),
            foreseen_everywhere: false,
            volumes: Volumes::default(),
            balancer: Balancer::default(),
            contacts: Contacts::default(),
            lent: Mutex::default(),
            keeps_candidates,
            kept: None,
            candidates: Vec::new(),
        }
    }

    /// The detection of contacts of this number of vertices with bodies, without searching for
    /// them.
    pub(crate) fn of_kept(vertices: usize, options: &ScopeOptions) -> Self {
        Self {
            kept: Some(Vec::new()),
            ..Self::new((vertices, false), options, false)
        }
    }

    /// Keeps the pairs of cloth and bodies that a search has come by on all ranks, those with a
    /// vertex that the rank owns. Collective.
    pub(crate) fn keep(
        &mut self,
        comm: &mut dyn Comm,
        at: Context<'_>,
        searched: &[Vec<Candidate>],
    ) -> Result<(), CommError> {
        let (geometry, owned) = (at.world.geometry(), at.domain.owned());
        let kept = self.kept.get_or_insert_default();
        kept.clear();
        if geometry.bodies.is_empty() {
            return Ok(());
        }
        let of_bodies = |candidate: &&Candidate| candidate.is_of_bodies(&geometry);
        let own: Vec<Candidate> = searched
            .iter()
            .flatten()
            .filter(of_bodies)
            .copied()
            .collect();
        let triangles = geometry.cloth.surface().triangles();
        let is_own = |candidate: &Candidate| {
            let mut corners = triangles[candidate.a as usize].into_iter();
            corners.any(|v| owned.contains(&(v as usize)))
        };
        if comm.size() == 1 {
            *kept = own;
        } else {
            let bytes = comm.allgather(bytemuck::cast_slice(&own).to_vec())?;
            for (from, bytes) in (0..).map(Rank).zip(bytes) {
                for bytes in bytes.chunks(size_of::<Candidate>()) {
                    let candidate = bytemuck::try_pod_read_unaligned::<Candidate>(bytes).ok();
                    let candidate = candidate.filter(|c| c.is_of_bodies(&geometry));
                    let what = || "a pair of features that does not exist".to_owned();
                    let candidate =
                        candidate.ok_or_else(|| CommError::Malformed { from, what: what() })?;
                    if is_own(&candidate) {
                        kept.push(candidate);
                    }
                }
            }
        }
        kept.sort_unstable();
        kept.dedup();
        Ok(())
    }

    /// Finds the contacts of the substep among the pairs that are kept.
    fn look_at_kept(
        &mut self,
        at: Context<'_>,
        state: &State,
        (team, through): (&Team, LetThrough<'_>),
        report: &mut StepReport,
    ) -> Contacts {
        let mut contacts = std::mem::take(&mut self.contacts);
        let kept = self.kept.as_deref().unwrap_or_default();
        if kept.is_empty() {
            return contacts;
        }
        let (geometry, owned) = (at.world.geometry(), at.domain.owned());
        let (time, dt) = (at.substep.time(at.world), at.substep.dt);
        let volumes = &mut self.volumes;
        let snapshot = Snapshot::new(&geometry, volumes, &state.x, &self.foreseen, time, dt)
            .suspending(through.suspended);
        let shares = team.cut_even(kept.len()).elements;
        let mut found: Vec<Findings> = shares.iter().map(|_| Findings::default()).collect();
        team.run(found.iter_mut().zip(shares), |(found, share)| {
            for candidate in &kept[share] {
                found.look_at(&snapshot, candidate);
            }
            found.contacts.retain(|contact| {
                let vertices = &contact.vertices[..usize::from(contact.count)];
                vertices.iter().any(|&v| owned.contains(&(v as usize)))
            });
        });
        let counted_here = |c: &&Contact| owned.contains(&(c.vertices[0] as usize));
        let all = found.iter().flat_map(|found| &found.contacts);
        report.contacts = all.filter(counted_here).count() as u64;
        let batches = found.iter().map(|found| Batch::new(&found.contacts));
        contacts.take_in(batches.collect(), team);
        contacts
    }

    /// Finds the velocities by which collisions are looked for, of all vertices that are known.
    pub(crate) fn foresee(&mut self, at: Context<'_>, state: &State) {
        let Context { world, substep, .. } = at;
        let fall = at.gravity() * substep.dt;
        let known = state.known();
        let foresee = |foreseen: &mut [DVec3], v: &[DVec3]| {
            for (foreseen, v) in foreseen.iter_mut().zip(v) {
                *foreseen = *v + fall;
            }
        };
        if let Some(subscriptions) = &state.subscriptions {
            let everywhere = subscriptions.is_whole();
            if std::mem::replace(&mut self.foreseen_everywhere, everywhere) && !everywhere {
                self.foreseen.keep(std::iter::empty());
            }
            for run in subscriptions.runs_here() {
                foresee(&mut self.foreseen[run.clone()], &state.v[run]);
            }
        } else {
            let shares = &state.shares.elements;
            let foreseen = parts(&mut self.foreseen, shares).zip(shares);
            (state.shares).run(foreseen, |(foreseen, share)| {
                foresee(foreseen, &state.v[share.clone()]);
            });
        }
        for pinned in world.pins().of(&(0..state.len())) {
            let vertex = pinned.vertex as usize;
            let motion = &substep.prescribed[pinned.pin as usize];
            if !motion.holds || known.is_some_and(|known| !known[vertex]) {
                continue;
            }
            let start = world.model().start()[vertex];
            let free = motion.free * (state.v[vertex] + fall);
            let held = motion.velocity(pinned.vertex, start, state.x[vertex], substep.dt);
            self.foreseen[vertex] = free + held;
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
        state: &mut State,
        (team, through): (&Team, LetThrough<'_>),
        report: &mut StepReport,
    ) -> Result<Contacts, StepError> {
        self.foresee(at, state);
        if self.kept.is_some() {
            return Ok(self.look_at_kept(at, state, (team, through), report));
        }
        let roots = self.subscribe(comm, at, state)?;
        let geometry = at.world.geometry();
        let (time, dt) = (at.substep.time(at.world), at.substep.dt);
        let volumes = &mut self.volumes;
        let mut snapshot = Snapshot::new(&geometry, volumes, &state.x, &self.foreseen, time, dt)
            .suspending(through.suspended)
            .keeping(through.kept)
            .knowing(state.known());
        if comm.size() > 1 {
            snapshot = snapshot.by_subtrees();
        }
        if let Some(roots) = &roots {
            let all: Vec<usize> = (0..roots.len()).collect();
            snapshot.take_roots(&all, roots);
        }
        if let Some(extent) = state.extent {
            snapshot = snapshot.within(extent);
        }
        let lending = roots.as_ref().zip(state.subscriptions.as_ref());
        let lending = lending.map(|(roots, subscriptions)| Lending {
            subscriptions,
            domain: at.domain,
            geometry: &geometry,
            state: [&state.x, &self.foreseen],
            roots,
            extent: state.extent.unwrap_or_else(|| Extent::of(&state.x)),
            through,
            times: [time, dt],
            room: &self.lent,
        });
        let mut contacts = std::mem::take(&mut self.contacts);
        let search = Search {
            snapshot: &snapshot,
            geometry: &geometry,
            ownership: &at.domain.ownership,
            options: &self.options,
            team,
            cost_model: &at.domain.cost_model,
            keeps_candidates: self.keeps_candidates,
            subscribed: roots.is_some(),
            lending: lending.as_ref(),
        };
        let found = detect(comm, &search, &mut self.balancer, &mut contacts);
        self.lent
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner)
            .end();
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

    /// Has other ranks send the state of what tests of the substep read, if not that of all
    /// vertices is here in any case. Returns the volumes around all patches then. Collective.
    fn subscribe(
        &mut self,
        comm: &mut dyn Comm,
        at: Context<'_>,
        state: &mut State,
    ) -> Result<Option<Vec<Volume>>, CommError> {
        let Some(mut subscriptions) = state.subscriptions.take() else {
            return Ok(None);
        };
        let geometry = at.world.geometry();
        let (time, dt) = (at.substep.time(at.world), at.substep.dt);
        let volumes = &mut self.volumes;
        let snapshot = Snapshot::new(&geometry, volumes, &state.x, &self.foreseen, time, dt);
        let ownership = &at.domain.ownership;
        let patches = |rank: usize| -> Vec<usize> { ownership.patches(rank).collect() };
        let lengths: Vec<usize> = (0..comm.size())
            .map(|rank| ownership.patches(rank).len() * size_of::<Volume>())
            .collect();
        let mut roots = vec![[0.0; Kdop18::NUMBERS]; ownership.patch_count()];
        let own = at.domain.patches();
        roots[own.clone()].copy_from_slice(&snapshot.roots(&patches(comm.rank().index())));
        comm.allgather_into(&lengths, bytemuck::cast_slice_mut(&mut roots))?;
        for rank in (0..comm.size()).filter(|&rank| rank != comm.rank().index()) {
            snapshot.take_roots(&patches(rank), &roots[ownership.patches(rank)]);
        }
        let meetings = subscriptions.meetings(&snapshot, geometry.self_collision);
        let place = (at.world, at.domain);
        let renewed = subscriptions.renew(comm, place, &meetings, [&mut state.x, &mut state.v]);
        state.subscriptions = Some(subscriptions);
        renewed?;
        // For vertices that came now.
        self.foresee(at, state);
        Ok(Some(roots))
    }

    /// Takes the contacts of a substep back, to use their room for the next one's.
    pub(crate) fn take_back(&mut self, mut contacts: Contacts) {
        contacts.clear();
        self.contacts = contacts;
    }
}
