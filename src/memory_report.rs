//! The memory that each rank of a run will hold, as `weft check --ranks` tells it.

use std::fmt::Write as _;

use serde::Serialize;
use weft_runtime::ScopeOptions;
use weftwork::memory::{Ranks, estimated_peak, left, peak};
use weftwork::run::RunError;
use weftwork::step::{CONTACT_HELD, MemoryPart, MeshCounts, RankMemory, SET_UP, World, total};

use crate::Failure;

/// The memory of a run on some ranks.
#[derive(Serialize)]
pub(crate) struct MemoryReport {
    ranks: usize,
    vertices: usize,
    /// The parts of the world, which each process holds.
    world: Vec<MemoryPart>,
    /// The ranks that were looked at: all of them up to 16, else the first, the last and the one
    /// with the most work in the solve.
    of_ranks: Vec<RankReport>,
    /// The most that a process with one rank holds.
    process_bytes: u64,
    /// The most that one process with all ranks holds.
    all_ranks_bytes: u64,
    /// The peak of the process that has set up the world.
    set_up_peak_bytes: Option<u64>,
    /// The estimate of the peak of one process with all ranks, by which scenes are refused.
    estimated_peak_bytes: u64,
    /// The bytes that a contact adds.
    contact_bytes: u64,
    /// The memory that this machine has left for a process, before the run.
    left_bytes: Option<u64>,
    /// The estimate of the peak of an MPI process with one rank that maps the prepared world, if
    /// the world is one.
    mapped_peak_bytes: Option<u64>,
}

#[derive(Serialize)]
struct RankReport {
    rank: usize,
    vertices: usize,
    bytes: u64,
    parts: Vec<MemoryPart>,
}

impl MemoryReport {
    /// Looks at the ranks of a run.
    pub(crate) fn new(world: &World, ranks: usize) -> Result<Self, Failure> {
        // First, for looking at ranks takes memory too.
        let set_up_peak_bytes = peak();
        let options = ScopeOptions::from(&world.scene().balance);
        let of_ranks = world.memory_of_ranks(ranks, &options);
        let of_ranks = of_ranks.map_err(|error| {
            let error = RunError::from(error);
            Failure {
                code: error.exit_code(),
                message: error.to_string(),
            }
        })?;
        let of_rank = |RankMemory {
                           rank,
                           vertices,
                           parts,
                       }| RankReport {
            rank,
            vertices,
            bytes: total(&parts),
            parts,
        };
        let of_ranks: Vec<RankReport> = of_ranks.into_iter().map(of_rank).collect();
        let world_parts = world.memory();
        let stays = world_parts.iter().filter(|part| part.part != SET_UP);
        let world_bytes: u64 = stays.map(|part| part.bytes).sum();
        let most = of_ranks.iter().map(|rank| rank.bytes).max().unwrap_or(0);
        let all: u64 = match of_ranks.len() == ranks {
            true => of_ranks.iter().map(|rank| rank.bytes).sum(),
            false => most.saturating_mul(ranks as u64),
        };
        Ok(Self {
            ranks,
            vertices: world.model().masses().len(),
            world: world_parts,
            of_ranks,
            process_bytes: world_bytes + most,
            all_ranks_bytes: world_bytes.saturating_add(all),
            set_up_peak_bytes,
            estimated_peak_bytes: estimated_peak(
                world.scene(),
                &MeshCounts::of_world(world),
                Ranks::threads(ranks),
            ),
            contact_bytes: CONTACT_HELD,
            // The world of this process will be in the other.
            left_bytes: left().map(|left| left.saturating_add(world_bytes)),
            mapped_peak_bytes: world.is_prepared().then(|| {
                let counts = MeshCounts {
                    mapped: true,
                    ..MeshCounts::of_world(world)
                };
                estimated_peak(world.scene(), &counts, Ranks::process(ranks, 1))
            }),
        })
    }

    /// The report as comments of a scene.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        let vertices = self.vertices.max(1) as f64;
        let mut line = |name: &str, bytes: u64| {
            let (megabytes, each) = (bytes as f64 / 1e6, bytes as f64 / vertices);
            // Writing to a String cannot fail.
            let _ = writeln!(text, "# {name:<44} {megabytes:>10.1} {each:>10.0}");
        };
        for part in &self.world {
            let freed = if part.part == SET_UP {
                ", then freed"
            } else {
                ""
            };
            line(&format!("world: {}{freed}", part.part), part.bytes);
        }
        let largest =
            self.of_ranks.iter().reduce(
                |most, next| {
                    if next.bytes > most.bytes { next } else { most }
                },
            );
        if let Some(largest) = largest {
            for part in &largest.parts {
                line(&format!("rank {}: {}", largest.rank, part.part), part.bytes);
            }
        }
        let looked_at = self.of_ranks.len();
        line("a process with one rank, at most", self.process_bytes);
        if self.ranks > 1 {
            let bound = if looked_at < self.ranks {
                ", at most"
            } else {
                ""
            };
            let name = format!("one process with all {} ranks{bound}", self.ranks);
            line(&name, self.all_ranks_bytes);
        }
        line("estimated peak of that process", self.estimated_peak_bytes);
        if let Some(peak) = self.mapped_peak_bytes {
            line("estimated, an MPI process that maps the world", peak);
        }
        if let Some(peak) = self.set_up_peak_bytes {
            line("peak of this process, which set it up", peak);
        }
        let head = format!(
            "# memory with {} {}, before contacts           {:>9} {:>10}\n",
            self.ranks,
            if self.ranks == 1 { "rank" } else { "ranks" },
            "MB",
            "B/vertex"
        );
        let mut text = head + &text;
        let _ = writeln!(
            text,
            "# each contact takes about {} bytes more{}",
            self.contact_bytes,
            self.left_bytes.map_or_else(String::new, |left| {
                let room = left.saturating_sub(self.all_ranks_bytes);
                format!(
                    "; this machine has {:.1} GB left, room for {:.1} million contacts beside all ranks",
                    left as f64 / 1e9,
                    room as f64 / self.contact_bytes as f64 / 1e6
                )
            })
        );
        text
    }
}
