//! The memory that a world and a rank's share of a simulation hold, part by part.
//!
//! A process holds the world once, also if several ranks are its threads, and a share for each of
//! its ranks. The bytes are counted ([`crate::heap_bytes`]), not measured. The allocator, the
//! program itself, stacks of threads, messages under way and the text of the scene come on top.

use std::collections::BTreeSet;

use glam::DVec3;
use serde::{Deserialize, Serialize};
use weft_partition::Ownership;
use weft_runtime::ScopeOptions;

use super::domain::Place;
use super::error::StepError;
use super::response::body_response::VertexState;
use super::simulation::Simulation;
use super::system::assembly::MOST_ROWS;
use super::world::World;
use crate::heap_bytes::HeapBytes as _;

/// A part of the memory of a process, by what it is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryPart {
    /// The name, such as `matrix`.
    pub part: String,
    /// Its bytes.
    pub bytes: u64,
}

fn named<const N: usize>(parts: [(&str, usize); N]) -> Vec<MemoryPart> {
    let part = |(part, bytes): (&str, usize)| MemoryPart {
        part: part.to_owned(),
        bytes: bytes as u64,
    };
    parts.into_iter().map(part).collect()
}

/// The bytes of all parts together.
#[must_use]
pub fn total(parts: &[MemoryPart]) -> u64 {
    parts.iter().map(|part| part.bytes).sum()
}

/// The part of a world's memory that a run frees when its ranks are set up ([`World::release`]).
pub const SET_UP: &str = "set-up of ranks";

impl World {
    /// The memory that it holds. Ranks that are threads of a process share it.
    #[must_use]
    pub fn memory(&self) -> Vec<MemoryPart> {
        let bytes = self.bytes_of_parts();
        named([
            ("cloth model", bytes.model),
            ("patches", bytes.patches),
            ("trees of the cloth", bytes.trees),
            ("charts of the cloth", bytes.charts),
            ("triangles to certify", bytes.certification),
            ("bodies", bytes.bodies),
            (SET_UP, bytes.set_up),
        ])
    }
}

/// The memory that a rank will hold beside the world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankMemory {
    /// The rank.
    pub rank: usize,
    /// The vertices that it owns.
    pub vertices: usize,
    /// Its parts once it has taken a step in which nothing touches.
    pub parts: Vec<MemoryPart>,
}

/// The bytes that a contact adds to what a rank holds, as measured where a sheet lies on a sphere:
/// the contact, its names, its row of impulses, and the pairs that certification looks at.
pub const CONTACT_HELD: u64 = 1_400;

/// The bytes of arrays that the first step makes.
#[derive(Clone, Copy, Debug)]
struct Grown {
    /// The bytes for each vertex that the rank owns.
    owned: u64,
    /// The bytes for each vertex of all cloth.
    all: u64,
}

impl Grown {
    const fn of(self, owned: u64, all: u64) -> u64 {
        self.owned * owned + self.all * all
    }
}

/// The bytes of a vector.
const VECTOR: u64 = size_of::<DVec3>() as u64;
/// The changes and the states of contacts as they were when the substep began.
const STATE: Grown = Grown {
    owned: 2 * VECTOR + size_of::<VertexState>() as u64,
    all: 0,
};
/// Vectors of impulses, limits of rest, marks.
const RESPONSE: Grown = Grown {
    owned: 4 * VECTOR + 1,
    all: 0,
};
/// Volumes of vertices and of trees, gradients of cells: as measured on grids.
const VOLUMES: Grown = Grown {
    owned: 204,
    all: 32,
};
/// Volumes where only bodies are looked for.
const VOLUMES_WITHOUT_LAYERS: Grown = Grown { owned: 0, all: 1 };
/// Workspaces of the coarse level and what travels grow in the first solve: as measured on grids.
const COARSE: Grown = Grown { owned: 0, all: 8 };
/// The room of a thread that assembles a run, for each of its rows: as measured on grids.
const SCRATCH: u64 = 1_270;

/// Ranks up to this number are all looked at.
const ALL: usize = 16;

impl World {
    /// The memory that the ranks of a run will hold: all of them up to 16, of more the first, the
    /// last and the one with the most work in the solve. One share after the other is made ready
    /// and dropped.
    ///
    /// # Errors
    /// More ranks than patches.
    pub fn memory_of_ranks(
        &self,
        ranks: usize,
        options: &ScopeOptions,
    ) -> Result<Vec<RankMemory>, StepError> {
        let ownership = Ownership::new(self.tree(), ranks)?;
        let weight = |rank: &usize| -> u64 {
            let patches = ownership.patches(*rank);
            patches.map(|patch| self.tree().patch_weight(patch)).sum()
        };
        let looked_at = if ranks <= ALL {
            (0..ranks).collect()
        } else {
            let heaviest = (0..ranks).max_by_key(weight).unwrap_or_default();
            BTreeSet::from([0, heaviest, ranks - 1])
        };
        let memory = |rank: usize| {
            let place = Place { rank, size: ranks };
            let simulation = Simulation::of_rank(self, place, options.workers, options)?;
            Ok(RankMemory {
                rank,
                vertices: ownership.vertices(rank).len(),
                parts: simulation.into_memory_after_a_step(),
            })
        };
        looked_at.into_iter().map(memory).collect()
    }
}

impl Simulation<'_> {
    /// The memory that this rank will hold after a step in which nothing touches. Some arrays are
    /// made when they are first used: those of the solve are made here, and the others are
    /// foreseen by their bytes for each vertex.
    fn into_memory_after_a_step(mut self) -> Vec<MemoryPart> {
        // Pages of these arrays count when they are written, as a step does for all that is known.
        for run in self.state.runs_here() {
            self.exchange.fill(run.clone());
            self.detection.foreseen[run].fill(DVec3::ONE);
        }
        let system = &self.system;
        self.solver.cg.make_room(&system.matrix, &system.filter);
        let mut parts = self.memory();
        let (world, owned) = (self.world, self.domain.owned().len() as u64);
        let contact = &world.scene().contact;
        let all = world.model().start().len() as u64;
        let rows = owned.min(MOST_ROWS as u64);
        let threads = self.team().threads() as u64;
        let multilevel = u64::from(world.graphs().aggregates.is_some());
        let volumes = match contact.self_collision {
            true => VOLUMES,
            false => VOLUMES_WITHOUT_LAYERS,
        };
        let grown = [
            ("state", STATE.of(owned, all)),
            ("assembly", SCRATCH * rows * threads),
            ("coarse level", multilevel * COARSE.of(owned, all)),
            ("volumes", volumes.of(owned, all)),
            ("response", RESPONSE.of(owned, all)),
        ];
        for (name, bytes) in grown {
            let part = parts.iter_mut().find(|part| part.part == name);
            part.expect("these are names of parts").bytes += bytes;
        }
        parts
    }

    /// The memory that this rank holds beside the world. After a step there is more than at the
    /// start, for rooms grow with what they are used for.
    #[must_use]
    pub fn memory(&self) -> Vec<MemoryPart> {
        let Self {
            world: _,
            domain,
            state,
            local,
            substep,
            detection,
            system,
            solver,
            integrator,
            response,
            exchange,
            certification,
            impulses,
            many,
            contact_impulses,
            backup,
            checked,
        } = self;
        let motion = state.heap_bytes() + local.heap_bytes() + integrator.heap_bytes();
        let kept = domain.heap_bytes() + substep.heap_bytes() + contact_impulses.heap_bytes();
        let others = backup.heap_bytes() + checked.heap_bytes() + exchange.heap_bytes();
        let assembly = system.assembly.heap_bytes();
        let [within_patches, coarse, copy] = solver.cg.bytes_of_parts();
        let [volumes, candidates] = detection.bytes_of_parts();
        named([
            ("state", motion + kept + others),
            ("matrix", system.heap_bytes() - assembly),
            ("assembly", assembly),
            ("copy of the matrix", copy),
            (
                "vectors of the solve",
                solver.heap_bytes() - within_patches - coarse - copy,
            ),
            ("preconditioner", within_patches),
            ("coarse level", coarse),
            ("volumes", volumes),
            ("contacts", detection.heap_bytes() - volumes - candidates),
            ("response", response.heap_bytes() + impulses.heap_bytes()),
            ("pairs of many substeps", many.heap_bytes()),
            ("certification", certification.heap_bytes() + candidates),
        ])
    }
}
