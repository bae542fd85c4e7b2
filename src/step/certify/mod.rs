//! The certification of a substep: cloth that starts without crossing itself or bodies ends so, and
//! does not cross on the way.
//!
//! The stage comes after all others, when every rank knows where all vertices would go. Each rank
//! tests the pairs that its search of contacts came by, and searches anew for its vertices that end
//! far from where they were foreseen. Ranks tell each other of hits, which are few or none. Then
//! each of them responds to hits ([`respond`]) and cuts what is left ([`Truncate`]) alike: the hits
//! are the same on all ranks, and all that follows depends on the set of hits alone. So the state
//! does not depend on ranks or threads. A step without hits keeps its bits.
//!
//! Cloth that bodies leave no room is *squeezed*: the body lets it through and is *suspended* for
//! its vertices, until they are outside again with all their features. Meanwhile they are led out,
//! slowly. Cloth that starts through cloth is *kept*, and pulled apart (`kept`). These are the only
//! things that certification carries from one substep to the next, and so they are part of the
//! state.

mod hits;
mod kept;

use std::sync::Arc;

use glam::DVec3;
use serde::{Deserialize, Serialize};
use weft_runtime::comm::Comm;

use self::hits::{Exceeding, Search, share};
pub(crate) use self::kept::LetThrough;
use super::contact::detection::Detection;
use super::context::Context;
use super::error::StepError;
use super::exchange::seen::Seen;
use super::state::State;
use super::world::World;
use crate::collide::certify::{
    Meeting, Mover, Positions, Region, Responded, Scenery, Truncate, around_displacements,
    exceeders, farthest_of, margin_within, patches_of, respond, respond_within,
};
use crate::collide::tangles::{Kept, Member};
use crate::collide::{Extent, Geometry};
use crate::heap_bytes::{counts_heap, owns_no_heap};
use crate::scene;
use crate::team::Team;

/// The gap that certified features keep, as a share of the least distance that contacts keep.
const GAP: f64 = 1e-3;
/// The share of half the reach of contacts by which vertices may end elsewhere than foreseen,
/// before they are searched for anew; less than 1 for the rounding of swept volumes.
const ALLOWANCE: f64 = 0.999;
/// The displacement beyond that of its piece of cloth, in edges, from which on one is absurd. The
/// volumes of such displacements would meet nearly everything.
const ABSURD: f64 = 8.0;
/// How far squeezed vertices are led out in a substep, as a share of that distance.
const LED_OUT: f64 = 0.1;

/// The certification of substeps, with what it keeps from one to the next.
#[derive(Debug)]
pub(crate) struct Certification {
    scenery: Arc<Scenery>,
    /// The mean length of edges at rest, in m.
    edge: f64,
    /// Vertices, each with a body that lets it through, ascending.
    suspended: Vec<[u32; 2]>,
    /// Whether pins hold each vertex in the last substep.
    held: Vec<bool>,
    /// Cloth that started through cloth and is not free yet.
    kept: Kept,
    /// The changes of the last substep.
    cuts: Vec<Cut>,
}

counts_heap!(Certification: suspended, held, kept, cuts; without scenery, edge);

/// A velocity that certification has changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cut {
    pub(crate) vertex: u32,
    /// The change in m/s.
    pub(crate) change: DVec3,
}

owns_no_heap!(Cut);

/// The numbers of certification in a step. They are sums, if the step was cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Certified {
    /// Pairs that this rank tested.
    pub tests: u64,
    /// Pairs whose displacements could not be certified as they were, the same on all ranks.
    pub hits: u64,
    /// Rounds of the response to hits and of truncation, the same on all ranks.
    pub rounds: u32,
    /// Rigid zones, the same on all ranks.
    pub zones: u64,
    /// Vertices that were cut, slid along others or were led out, the same on all ranks.
    pub cut: u64,
    /// Vertices that pins hold whose displacements were cut, the same on all ranks.
    pub lagging: u64,
    /// Vertices that bodies let through when the step ended, the same on all ranks.
    pub squeezed: u64,
    /// Vertices that were pulled out of what they started through, the same on all ranks.
    pub pulled: u64,
    /// Vertices of cloth that started through cloth and were not free when the step ended, the same
    /// on all ranks.
    pub kept: u64,
}

impl Certified {
    /// Whether vertices may end elsewhere than they would have.
    pub(crate) fn has_moved(&self) -> bool {
        self.hits > 0 || self.cut > 0 || self.pulled > 0
    }

    /// Adds those of another substep, which came later.
    pub(crate) fn add(&mut self, other: &Self) {
        self.tests += other.tests;
        self.hits += other.hits;
        self.rounds += other.rounds;
        self.zones += other.zones;
        self.cut += other.cut;
        self.lagging += other.lagging;
        self.squeezed = other.squeezed;
        self.pulled += other.pulled;
        self.kept = other.kept;
    }
}

/// The motion of all vertices in a substep, which may be cut.
#[derive(Debug)]
pub(crate) struct Goals<'a> {
    /// The velocities with which vertices move, in m/s.
    pub(crate) moves: &'a mut [DVec3],
    /// The velocities with which they end, in m/s; empty where these are the same.
    pub(crate) ends: &'a mut [DVec3],
    /// The positions to which they move, in m.
    pub(crate) moved: &'a mut [DVec3],
    /// The changes that were made, in their order.
    pub(crate) changes: Vec<Cut>,
}

impl Goals<'_> {
    /// Has a vertex end with another velocity, in m/s, where it ends.
    fn add_velocity(&mut self, v: usize, change: DVec3) {
        let ends = if self.ends.is_empty() {
            &mut *self.moves
        } else {
            &mut *self.ends
        };
        ends[v] += change;
        self.note(v, change);
    }

    fn note(&mut self, v: usize, change: DVec3) {
        if change != DVec3::ZERO {
            let vertex = v as u32;
            self.changes.push(Cut { vertex, change });
        }
    }

    /// The sum of the changes of each vertex, ascending.
    fn summed(mut self) -> Vec<Cut> {
        self.changes.sort_by_key(|cut| cut.vertex);
        let mut sums: Vec<Cut> = Vec::new();
        for cut in self.changes {
            match sums.last_mut().filter(|last| last.vertex == cut.vertex) {
                Some(last) => last.change += cut.change,
                None => sums.push(cut),
            }
        }
        sums
    }

    /// Has a vertex end elsewhere.
    fn change(&mut self, v: usize, start: DVec3, end: DVec3, dt: f64) {
        let velocity = (end - start) / dt;
        let change = velocity - self.moves[v];
        self.moves[v] = velocity;
        self.moved[v] = end;
        if let Some(last) = self.ends.get_mut(v) {
            *last += change;
        }
        self.note(v, change);
    }
}

/// The vertices of which the motion in a substep is known here.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Known<'r, 'a> {
    /// All.
    All,
    /// The vertices that this rank has subscribed to.
    Subscribed,
    /// These, and the vertices that a region sees.
    Around(&'r Region<'a>),
}

/// The facts about the positions of vertices from the start to the end of a substep.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places<'r, 'a> {
    /// The vertices whose positions are known here.
    pub(crate) known: Known<'r, 'a>,
    /// Whether a vertex of any rank ends far from where it was foreseen, where not all are known.
    pub(crate) exceeds: bool,
    /// The largest magnitude of a coordinate of any vertex of cloth, in m.
    pub(crate) farthest: f64,
}

/// The outcome of certification.
#[derive(Debug)]
pub(crate) enum Outcome<'a> {
    /// The substep is certified.
    Certified(Certified),
    /// There is something to cut, nothing has been done, and the motion of the vertices in a region
    /// is needed on every rank, or, if there is none, that of all.
    Lacks(Option<Region<'a>>),
}

/// A vertex of cloth in a meeting.
fn first_vertex(meeting: &Meeting) -> u32 {
    match *meeting {
        // Where one is of a body, it has a higher number.
        Meeting::Features(pair) => pair.vertices.into_iter().fold(u32::MAX, u32::min),
        Meeting::Round { face, .. } => face[0],
        Meeting::Vertex { vertex, .. } => vertex,
    }
}

impl Certification {
    /// The certification of a world's cloth; `None` if its scene does not ask for it.
    pub(crate) fn new(world: &World) -> Option<Self> {
        world.scenery().map(|scenery| Self {
            scenery: Arc::clone(scenery),
            edge: world.mean_edge(),
            suspended: Vec::new(),
            held: world.pinned().to_vec(),
            kept: world.kept_at_start().clone(),
            cuts: Vec::new(),
        })
    }

    /// The crossings that cloth may have.
    pub(crate) fn let_through(&self) -> LetThrough<'_> {
        LetThrough {
            suspended: &self.suspended,
            kept: &self.kept,
        }
    }

    /// Cloth that started through cloth and is not free yet.
    pub(crate) fn kept(&self) -> &Kept {
        &self.kept
    }

    /// Sets what is kept, as [`Member::to_numbers`] tells it.
    pub(crate) fn keep(&mut self, members: impl Iterator<Item = [u32; 2]>) {
        self.kept = Kept::new(members.map(Member::of_numbers));
    }

    /// Vertices, each with a body that lets it through, ascending.
    pub(crate) fn suspended(&self) -> &[[u32; 2]] {
        &self.suspended
    }

    /// The changes that certification has made in the last substep, of vertices of all ranks,
    /// ascending.
    pub(crate) fn cuts(&self) -> &[Cut] {
        &self.cuts
    }

    /// Sets which vertices bodies let through.
    pub(crate) fn suspend(&mut self, suspended: impl Iterator<Item = [u32; 2]>) {
        self.suspended = suspended.collect();
        self.suspended.sort_unstable();
    }

    /// Adds to facts about the motion of owned vertices those by which it is decided whether
    /// certification [needs all](Self::needs_all). `moved` has the positions to which they move.
    pub(crate) fn look_ahead(
        &self,
        at: Context<'_>,
        (state, detection): (&State, &Detection),
        (mut seen, moved): (Seen, &[DVec3]),
    ) -> Seen {
        let owned = at.domain.owned();
        for (end, start) in moved[owned.clone()].iter().zip(&state.x[owned]) {
            seen.displacements = seen.displacements.with(*end - *start);
        }
        seen.exceeds = !self.exceeders(at, (state, detection), moved).is_empty();
        seen
    }

    /// Whether certification needs the motion of all vertices on every rank, beside that of what
    /// its tests read, for what ranks have seen together.
    pub(crate) fn needs_all(&self, seen: &Seen) -> bool {
        let apart = (seen.displacements.high - seen.displacements.low).length();
        // Otherwise no displacement is absurd.
        let is_tame = apart <= 0.5 * ABSURD * self.edge;
        !is_tame || !self.suspended.is_empty() || !self.kept.is_empty()
    }

    /// The owned vertices that end so far from where they were foreseen that what they may cross is
    /// searched for anew.
    fn exceeders(
        &self,
        at: Context<'_>,
        (state, detection): (&State, &Detection),
        moved: &[DVec3],
    ) -> Vec<u32> {
        let owned = at.domain.owned();
        let allowance = allowance(&at.world.geometry());
        let foreseen = |k: usize| {
            let v = owned.start + k;
            state.x[v] + detection.foreseen[v] * at.substep.dt
        };
        let first = owned.start as u32;
        let exceeders = exceeders(&moved[owned.clone()], foreseen, allowance);
        exceeders.iter().map(|k| first + k).collect()
    }

    /// Cuts displacements so that no cloth crosses cloth or bodies. Collective.
    ///
    /// # Errors
    /// Messages failed, or bodies leave no room and the scene asks to stop then.
    pub(crate) fn certify<'a>(
        &mut self,
        comm: &mut dyn Comm,
        at: Context<'a>,
        (state, detection): (&State, &Detection),
        (mut goals, places): (Goals<'_>, Places<'_, 'a>),
        team: &Team,
    ) -> Result<Outcome<'a>, StepError> {
        let (world, dt) = (at.world, at.substep.dt);
        self.held.clear();
        (self.held).extend_from_slice(at.substep.pinned(world));
        let geometry = world.geometry();
        let times = [at.substep.time(world), at.substep.next_time(world)];
        let movers = self.scenery.movers(geometry.body_motions, times);
        let knows_all = matches!(places.known, Known::All);
        let curbed = match knows_all {
            true => self.curb(world, state, &mut goals, dt),
            false => 0,
        };
        let led = self.lead_out(at, state, &mut goals, &movers);
        let pulled = self.pull(world, state, &mut goals, dt);
        let ends = self.scenery.ends(&movers);
        let goal = Positions::new(goals.moved, &ends[1]);
        let step = self.step(world, [Positions::new(&state.x, &ends[0]), goal], &movers);
        let exceeders = self.exceeders(at, (state, detection), goals.moved);
        let patches = world.tree().patch_count();
        if matches!(places.known, Known::Subscribed) && places.exceeds {
            let most = allowance(&geometry);
            let exceeds = |v: u32| {
                let v = v as usize;
                let foreseen = state.x[v] + detection.foreseen[v] * dt;
                (goals.moved[v] - foreseen).length_squared() > most * most
            };
            let around = Exceeding {
                domain: at.domain,
                exceeds: &exceeds,
                wider: most,
            };
            let region = around.region(comm, geometry.cloth, &step)?;
            return Ok(Outcome::Lacks(region));
        }
        let farthest = if knows_all {
            farthest_of(&step)
        } else {
            let of_bodies = ends.iter().map(|ends| Extent::of(ends).farthest());
            of_bodies.fold(places.farthest, f64::max)
        };
        let margin = margin_within(farthest);
        let search = Search {
            step: &step,
            scenery: &self.scenery,
            cloth: geometry.cloth,
            region: match places.known {
                Known::Around(region) => Some(region),
                Known::All | Known::Subscribed => None,
            },
            margin,
        };
        let own = search.run(&detection.candidates, &exceeders, team);
        let mut certified = Certified {
            tests: own.tests,
            ..Certified::default()
        };
        let hits = share(comm, own.meetings, (step.start.len(), movers.len()))?;
        certified.hits = hits.len() as u64;
        if !hits.is_empty() {
            let own = match places.known {
                Known::Subscribed => {
                    let around = detection.volumes().around_patches(patches);
                    let hit = patches_of(geometry.cloth, &hits);
                    let region = around.map(|roots| Region::around(geometry.cloth, roots, hit));
                    return Ok(Outcome::Lacks(region.flatten()));
                }
                Known::Around(region) if !region.is_around(&hits) => {
                    return Ok(Outcome::Lacks(region.with(&hits)));
                }
                Known::Around(_) => None,
                Known::All => {
                    let wider = allowance(&geometry);
                    let roots = around_displacements(geometry.cloth, 0..patches, &step, wider);
                    Region::around(geometry.cloth, roots, patches_of(geometry.cloth, &hits))
                }
            };
            let region = match places.known {
                Known::Around(region) => Some(region),
                Known::All | Known::Subscribed => own.as_ref(),
            };
            let within = region
                .and_then(|region| respond_within(&step, &hits, (region, farthest)))
                // Truncation looks at all cloth.
                .filter(|responded| knows_all || responded.left.is_empty());
            if within.is_none() && !knows_all {
                return Ok(Outcome::Lacks(None));
            }
            let mut changed = Vec::new();
            let mut note = |v: u32, responded: &Responded| {
                if responded.goal[v as usize] != goals.moved[v as usize] {
                    changed.push(v);
                }
            };
            let responded = match (within, region) {
                (Some(responded), Some(region)) => {
                    region.vertices().for_each(|v| note(v, &responded));
                    responded
                }
                _ => {
                    let responded = respond(&step, &hits);
                    (0..state.len() as u32).for_each(|v| note(v, &responded));
                    responded
                }
            };
            if (responded.zones > 0 || !responded.left.is_empty())
                && at.substep.controller.can_halve()
            {
                return Err(StepError::Crowded {
                    step: at.substep.number(),
                    at: world.name(first_vertex(&hits[0]) as usize),
                });
            }
            certified.zones = u64::from(responded.zones);
            for v in changed.into_iter().map(|v| v as usize) {
                goals.change(v, state.x[v], responded.goal[v], dt);
            }
            let goal = Positions::from(&responded.goal);
            let step = self.step(world, [Positions::new(&state.x, &ends[0]), goal], &movers);
            let found = step.run(&responded.left);
            certified.rounds = responded.rounds + found.rounds;
            if let Some(first) = found.squeezed.first()
                && world.scene().contact.squeezed == scene::Squeezed::Stop
            {
                let name =
                    |body: u32| format!("body `{}`", world.scene().bodies[body as usize].name);
                let other = first.against.map_or_else(|| "cloth".to_owned(), name);
                return Err(StepError::Squeezed {
                    step: at.substep.number(),
                    time: times[1],
                    at: world.name(first.vertex as usize),
                    between: format!("{} and {other}", name(first.body)),
                });
            }
            for v in (0..state.len()).filter(|&v| found.is_cut(v as u32)) {
                certified.cut += 1;
                certified.lagging += u64::from(self.held[v]);
                goals.change(v, state.x[v], found.end(&step, v as u32), dt);
            }
            for (v, &by) in found.restored.iter().enumerate() {
                goals.add_velocity(v, by / dt);
            }
            let squeezed = found.squeezed.iter();
            (self.suspended).extend(squeezed.map(|squeezed| [squeezed.vertex, squeezed.body]));
            self.suspended.sort_unstable();
        }
        certified.cut += curbed + led;
        certified.pulled = pulled;
        self.release(world, times[1], &movers, goals.moved);
        self.shrink(world, goals.moved, &movers);
        certified.squeezed = self.suspended.len() as u64;
        certified.kept = self.kept.vertices() as u64;
        self.cuts = goals.summed();
        Ok(Outcome::Certified(certified))
    }

    /// The substep as truncation takes it, with vertices that start and would go to these places.
    fn step<'a>(
        &'a self,
        world: &'a World,
        [start, goal]: [Positions<'a>; 2],
        movers: &'a [Mover],
    ) -> Truncate<'a> {
        let geometry = world.geometry();
        Truncate {
            surface: self.scenery.triangles(),
            tree: self.scenery.tree(),
            start,
            goal,
            masses: world.model().masses(),
            movable: self.scenery.movable(),
            movers,
            body_of: self.scenery.body_of(),
            held: &self.held,
            suspended: &self.suspended,
            kept: &self.kept,
            self_collision: geometry.self_collision,
            least: GAP * geometry.distances.least(),
        }
    }

    /// Has vertices whose displacement is absurd go one edge beyond what their piece of cloth goes.
    /// Returns how many.
    fn curb(&self, world: &World, state: &State, goals: &mut Goals<'_>, dt: f64) -> u64 {
        let most = ABSURD * self.edge;
        let displacement = |goals: &Goals<'_>, v: usize| goals.moved[v] - state.x[v];
        let mut seen = (0..state.len()).map(|v| displacement(goals, v));
        let Some(first) = seen.next() else { return 0 };
        // Then all are within the most of any mean.
        if seen.all(|u| (u - first).length() <= 0.5 * most) {
            return 0;
        }
        let cloth = world.geometry().cloth;
        let mut sums = vec![(0.0, DVec3::ZERO); state.len()];
        for (v, &mass) in world.model().masses().iter().enumerate() {
            let (all, sum) = &mut sums[cloth.component(v as u32) as usize];
            *all += mass;
            *sum += displacement(goals, v) * mass;
        }
        let mut curbed = 0;
        for v in 0..state.len() {
            let (mass, sum) = sums[cloth.component(v as u32) as usize];
            let mean = sum / mass;
            let beyond = displacement(goals, v) - mean;
            let length = beyond.length();
            if length > most && !self.held[v] {
                let end = state.x[v] + mean + beyond * (self.edge / length);
                goals.change(v, state.x[v], end, dt);
                curbed += 1;
            }
        }
        curbed
    }

    /// Leads vertices out that are inside of the bodies that let them through. Returns how many.
    fn lead_out(
        &self,
        at: Context<'_>,
        state: &State,
        goals: &mut Goals<'_>,
        movers: &[Mover],
    ) -> u64 {
        let (world, dt) = (at.world, at.substep.dt);
        let (time, thickness) = (at.substep.time(world), world.geometry().distances.least());
        let mut led = 0;
        for &[v, body] in &self.suspended {
            let vertex = v as usize;
            let start = state.x[vertex];
            let Some((depth, out)) = world.way_out(body, start, time) else {
                continue;
            };
            if self.held[vertex] {
                continue;
            }
            let along = movers[body as usize].displacement(start);
            let went = out.dot(goals.moved[vertex] - start - along);
            let wanted = (LED_OUT * thickness).min(depth + thickness);
            if went != wanted {
                let end = goals.moved[vertex] + out * (wanted - went);
                goals.change(vertex, start, end, dt);
                led += 1;
            }
        }
        led
    }

    /// Ends the suspension of vertices that are outside of the body again, with all their features.
    fn release(&mut self, world: &World, time: f64, movers: &[Mover], x: &[DVec3]) {
        if self.suspended.is_empty() {
            return;
        }
        self.suspended = self.still_through(world, &self.suspended, (x, time), movers);
    }
}

/// How far (m) vertices may end from where they were foreseen, so that pairs which the search of
/// contacts did not come by cannot cross.
fn allowance(geometry: &Geometry<'_>) -> f64 {
    let least = geometry.distances.least();
    ALLOWANCE * 0.5 * (geometry.distances.reach(least) - GAP * least)
}

#[cfg(test)]
mod tests;
