//! The certification of a substep: cloth that starts without crossing itself ends so, and does not
//! cross on the way.
//!
//! The stage comes after all others, when every rank knows where all vertices would go. Ranks
//! search the pairs of features of their patches for hits, and tell each other of these, which are
//! few or none. Then each of them cuts displacements alike ([`Truncate`]): the hits are the same on
//! all ranks, and shares depend on the set of hits alone. So the state does not depend on ranks or
//! threads. A step without hits keeps its bits.
//!
//! Bodies have no part in it: cloth that they leave no room may still cross them.

use std::ops::Range;

use bytemuck::{Pod, Zeroable};
use glam::DVec3;
use serde::{Deserialize, Serialize};
use weft_partition::Ownership;
use weft_runtime::comm::{Collectives, Comm, CommError, Rank};

use super::context::Context;
use super::error::StepError;
use super::state::State;
use super::world::World;
use crate::collide::certify::{Hits, Kind, Pair, Truncate};
use crate::collide::{Bvh, ClothSurface, Geometry, Snapshot, Target, Volumes};
use crate::team::Team;

/// The gap that certified features keep, as a share of the thickness of contacts.
const GAP: f64 = 1e-3;

/// The certification of substeps, with what it keeps from one to the next.
#[derive(Debug)]
pub(crate) struct Certification {
    /// A tree over all triangles, for the pairs that cut vertices may lead to.
    tree: Bvh,
    volumes: Volumes,
    /// The cuts of the last substep.
    cuts: Vec<Cut>,
}

/// A displacement that was cut.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cut {
    pub(crate) vertex: u32,
    /// The change of the velocity with which it moves, in m/s.
    pub(crate) change: DVec3,
}

/// What was certified in a step. Sums, if the step was cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Certified {
    /// Pairs of features that this rank tested.
    pub tests: u64,
    /// Pairs whose displacements could not be certified as they were, the same on all ranks.
    pub hits: u64,
    /// Rounds of truncation, the same on all ranks.
    pub rounds: u32,
    /// Vertices whose displacements were cut, the same on all ranks.
    pub cut: u64,
}

impl Certified {
    /// Adds those of another substep.
    pub(crate) fn add(&mut self, other: &Self) {
        self.tests += other.tests;
        self.hits += other.hits;
        self.rounds += other.rounds;
        self.cut += other.cut;
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
}

/// A pair as it travels between ranks of one run.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct Record {
    /// The kind: 0 for a vertex and a face, 1 for two edges.
    kind: u32,
    vertices: [u32; 4],
}

impl Certification {
    /// The certification of a world's cloth; `None` if its scene does not ask for it.
    pub(crate) fn new(world: &World) -> Option<Self> {
        let contact = &world.scene().contact;
        (contact.certify && contact.self_collision).then(|| Self {
            tree: tree_over(world.geometry().cloth),
            volumes: Volumes::default(),
            cuts: Vec::new(),
        })
    }

    /// The displacements that were cut in the last substep, of vertices of all ranks, ascending.
    pub(crate) fn cuts(&self) -> &[Cut] {
        &self.cuts
    }

    /// Cuts displacements so that no cloth crosses cloth. Returns whether any was cut, on all ranks
    /// alike. Collective.
    ///
    /// # Errors
    /// Messages failed.
    pub(crate) fn certify(
        &mut self,
        comm: &mut dyn Comm,
        at: Context<'_>,
        state: &State,
        goals: Goals<'_>,
        team: &Team,
    ) -> Result<Certified, StepError> {
        self.cuts.clear();
        let world = at.world;
        let geometry = Geometry {
            bodies: &[],
            body_motions: &[],
            ..world.geometry()
        };
        let least = GAP * geometry.thickness;
        let (time, dt) = (at.substep.time(world), at.substep.dt);
        let mut snapshot = Snapshot::new(
            &geometry,
            &mut self.volumes,
            &state.x,
            goals.moves,
            time,
            dt,
        );
        if comm.size() > 1 {
            snapshot = snapshot.by_subtrees();
        }
        if let Some(extent) = state.extent {
            snapshot = snapshot.within(extent);
        }
        let targets = snapshot.targets_at(at.domain.patches(), Ownership::patch_of_pair);
        let own = search(&snapshot, &targets, goals.moved, least, team);
        let mut certified = Certified {
            tests: own.tests,
            ..Certified::default()
        };
        let hits = share(comm, own.pairs, state.len())?;
        certified.hits = hits.len() as u64;
        if hits.is_empty() {
            return Ok(certified);
        }
        let step = Truncate {
            surface: geometry.cloth.surface(),
            tree: &self.tree,
            start: &state.x,
            goal: &*goals.moved,
            masses: world.model().masses(),
            movable: state.len() as u32,
            least,
        };
        let found = step.run(&hits);
        certified.rounds = found.rounds;
        let cut = (0..state.len()).filter(|&v| found.kept[v] < 1.0);
        let ends: Vec<(usize, DVec3)> = cut.map(|v| (v, found.end(&step, v as u32))).collect();
        certified.cut = ends.len() as u64;
        for (v, end) in ends {
            let velocity = (end - state.x[v]) / dt;
            let change = velocity - goals.moves[v];
            goals.moves[v] = velocity;
            goals.moved[v] = end;
            self.cuts.push(Cut {
                vertex: v as u32,
                change,
            });
            if let Some(last) = goals.ends.get_mut(v) {
                *last += change;
            }
        }
        Ok(certified)
    }
}

/// Searches targets for hits, each thread some of them.
fn search(
    snapshot: &Snapshot<'_>,
    targets: &[Target],
    goal: &[DVec3],
    least: f64,
    team: &Team,
) -> Hits {
    let shares: Vec<Range<usize>> = team.cut_even(targets.len()).elements;
    let mut found = vec![Hits::default(); shares.len()];
    team.run(found.iter_mut().zip(shares), |(hits, share)| {
        for &target in &targets[share] {
            hits.add(snapshot, target, goal, least);
        }
    });
    let mut all = Hits::default();
    for hits in found {
        all.pairs.extend(hits.pairs);
        all.tests += hits.tests;
    }
    all
}

/// Gives every rank the hits of all, ascending. Collective.
fn share(comm: &mut dyn Comm, own: Vec<Pair>, vertices: usize) -> Result<Vec<Pair>, CommError> {
    let mut all = if comm.size() == 1 {
        own
    } else {
        let records: Vec<Record> = own.iter().map(Record::of).collect();
        let bytes = comm.allgather(bytemuck::cast_slice(&records).to_vec())?;
        let mut all = Vec::new();
        for (rank, bytes) in (0..).zip(bytes) {
            read(&bytes, vertices, &mut all).map_err(|what| CommError::Malformed {
                from: Rank(rank),
                what: what.to_owned(),
            })?;
        }
        all
    };
    all.sort_unstable();
    all.dedup();
    Ok(all)
}

/// Appends the pairs of a message.
fn read(bytes: &[u8], vertices: usize, all: &mut Vec<Pair>) -> Result<(), &'static str> {
    let records = bytes.chunks(size_of::<Record>());
    for bytes in records {
        let record: Record =
            bytemuck::try_pod_read_unaligned(bytes).map_err(|_| "a pair of features cut short")?;
        let kind = match record.kind {
            0 => Kind::VertexFace,
            1 => Kind::EdgeEdge,
            _ => return Err("a pair of features of no kind"),
        };
        if record.vertices.iter().any(|&v| v as usize >= vertices) {
            return Err("a pair of features of vertices that do not exist");
        }
        all.push(Pair {
            kind,
            vertices: record.vertices,
        });
    }
    Ok(())
}

impl Record {
    fn of(pair: &Pair) -> Self {
        Self {
            kind: u32::from(pair.kind == Kind::EdgeEdge),
            vertices: pair.vertices,
        }
    }
}

/// A tree over all triangles of the cloth, by their shape at rest.
fn tree_over(cloth: &ClothSurface) -> Bvh {
    let rest = cloth.rest();
    let center = |t: &[u32; 3]| t.iter().map(|&v| rest[v as usize]).sum::<DVec3>() / 3.0;
    let triangles = cloth.surface().triangles();
    let items = (0..).zip(triangles).map(|(i, t)| (i, center(t)));
    Bvh::build(items.collect())
}

#[cfg(test)]
mod tests;
