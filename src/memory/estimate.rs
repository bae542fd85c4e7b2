//! The memory that a process will have at its peak, estimated from a few counts.
//!
//! A refusal must come before the costly part of the set-up, when only meshes are known. Large
//! arrays grow with the vertices of cloth, so the estimate is a sum of bytes for each of them.
//! `benches/study/memory.sh` measures these, and prints peaks beside estimates. Contacts come on
//! top. On grids of 10,000 to 250,000 vertices the estimate is within a tenth of the peak.
//!
//! A vertex counts as two triangles do: a mesh has about twice as many triangles as vertices.

use crate::scene::{Pipeline, Preconditioner, Scene};
use crate::step::MeshCounts;

/// The ranks of a run, as far as memory depends on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ranks {
    /// All of them.
    pub all: u64,
    /// The ranks that are threads of this process.
    pub here: u64,
    /// The ranks of this process that draw pictures at the same time.
    pub drawing: u64,
    /// Processes of the run on this machine.
    pub processes: u64,
}

impl Ranks {
    /// Ranks that are all threads of this process.
    #[must_use]
    pub fn threads(ranks: usize) -> Self {
        let ranks = ranks.max(1) as u64;
        Self {
            all: ranks,
            here: ranks,
            drawing: ranks,
            processes: 1,
        }
    }

    /// A process with one rank among `all`, and the number of processes on this machine.
    #[must_use]
    pub fn process(all: usize, on_this_machine: usize) -> Self {
        Self {
            all: all.max(1) as u64,
            here: 1,
            drawing: 1,
            processes: on_this_machine.max(1) as u64,
        }
    }

    /// No rank: a world that is looked at.
    #[must_use]
    pub fn none() -> Self {
        Self {
            all: 1,
            here: 0,
            drawing: 0,
            processes: 1,
        }
    }
}

/// The program itself, its threads and what they begin with.
const PROGRAM: f64 = 18e6;
/// The peak of the set-up, for each vertex: METIS, candidates for pairs at rest.
const SET_UP: f64 = 1000.0;
const SET_UP_LAYERS: f64 = 430.0;
const SET_UP_CERTIFIED: f64 = 80.0;
const SET_UP_COARSE: f64 = 305.0;
/// The peak of the set-up, for each triangle of a body.
const SET_UP_BODY: f64 = 690.0;
/// The world, for each vertex.
const WORLD: f64 = 125.0;
const WORLD_LAYERS: f64 = 180.0;
const WORLD_CERTIFIED: f64 = 20.0;
/// The world, for each triangle of a body.
const WORLD_BODY: f64 = 500.0;
/// A prepared world that is mapped, for each vertex of which all is read: with graphs and rest
/// shapes, which only the set-up of ranks reads.
const MAPPED: f64 = 790.0;
/// The pages of it that are read beside those of a rank's own vertices: a share of these, for
/// neighbours, and a share of all, for what is read here and there.
const MAPPED_BESIDE: f64 = 0.3;
const MAPPED_SPREAD: f64 = 0.08;
/// The part of [`ALL`] that are states of vertices: a rank that subscribes holds those that it
/// knows.
const ALL_STATES: f64 = 120.0;
/// The set-up and the world, for each triangle of a body that is sampled, besides the samples.
const SET_UP_SAMPLED: f64 = 350.0;
const WORLD_SAMPLED: f64 = 160.0;
/// The set-up holds the samples as they are computed, and as they are kept.
const SET_UP_SAMPLES: f64 = 2.0;
/// A rank, for each vertex that it owns.
const OWNED: f64 = 1925.0;
const OWNED_LAYERS: f64 = 230.0;
const OWNED_COARSE: f64 = 440.0;
const OWNED_SWEEPS: f64 = 100.0;
const OWNED_HISTORY: f64 = 220.0;
/// A rank, for each vertex of all.
const ALL: f64 = 195.0;
const ALL_LAYERS: f64 = 30.0;
const ALL_COARSE: f64 = 60.0;
/// Frames and checkpoints, for each vertex.
const WRITTEN: f64 = 180.0;
/// A picture on each rank that draws: shadows, and for each pixel and each vertex.
const PICTURE: f64 = 16.8e6;
const PICTURE_PIXEL: f64 = 3.0;
const PICTURE_VERTEX: f64 = 400.0;

/// The peak of a process in bytes, without contacts.
pub(super) fn peak(scene: &Scene, counts: &MeshCounts, ranks: Ranks) -> f64 {
    let vertices = counts.vertices.max(counts.triangles / 2) as f64;
    let bodies = counts.body_triangles as f64;
    let contact = &scene.contact;
    let layers = f64::from(u8::from(contact.self_collision));
    let certified = f64::from(u8::from(contact.certify));
    let is = |preconditioner| f64::from(u8::from(scene.solver.preconditioner == preconditioner));
    let coarse = is(Preconditioner::Multilevel);
    let history = f64::from(u8::from(contact.pipeline == Pipeline::History));
    let set_up =
        SET_UP + SET_UP_LAYERS * layers + SET_UP_CERTIFIED * certified + SET_UP_COARSE * coarse;
    let (sampled, samples) = (counts.sampled_triangles as f64, counts.sample_bytes as f64);
    // The share of all vertices that a rank owns, with those beside them.
    let around = (1.0 + MAPPED_BESIDE) / ranks.all as f64;
    let read = (around + MAPPED_SPREAD).min(1.0);
    let set_up = if counts.mapped { 0.0 } else { set_up };
    let set_up = set_up * vertices + SET_UP_BODY * bodies;
    let set_up = set_up + SET_UP_SAMPLED * sampled + SET_UP_SAMPLES * samples;
    let world = match counts.mapped {
        true => MAPPED * read,
        false => WORLD + WORLD_LAYERS * layers + WORLD_CERTIFIED * certified,
    };
    let world = world * vertices + WORLD_BODY * bodies + WORLD_SAMPLED * sampled + samples;
    let owned = OWNED
        + OWNED_LAYERS * layers
        + OWNED_COARSE * coarse
        + OWNED_SWEEPS * is(Preconditioner::PatchSsor)
        + OWNED_HISTORY * history;
    let state = scene.partition.state;
    let subscribes = state.subscribes(ranks.all as usize, vertices as usize)
        && contact.pipeline != Pipeline::History
        && scene.seams.is_empty();
    let unknown = f64::from(u8::from(subscribes)) * ALL_STATES * (1.0 - read);
    let all = ALL + ALL_LAYERS * layers + ALL_COARSE * coarse - unknown;
    let rank = (owned / ranks.all as f64 + all) * vertices;
    let output = &scene.output;
    let pictures = if output.pictures {
        let [width, height] = output.picture_size.map(|pixels| pixels as f64);
        PICTURE + PICTURE_PIXEL * width * height + PICTURE_VERTEX * vertices
    } else {
        0.0
    };
    let written = if output.frames || output.checkpoints {
        WRITTEN * vertices
    } else {
        0.0
    };
    let written = if ranks.here > 0 { written } else { 0.0 };
    let steps = world + ranks.here as f64 * rank + ranks.drawing as f64 * pictures + written;
    PROGRAM + set_up.max(steps)
}
