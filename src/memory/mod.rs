//! The memory that a run needs and that a process may have: nobody should learn it from a run that
//! the system kills.
//!
//! A scene that will not fit is refused while only its meshes are known ([`build`]). The decision
//! takes numbers: what the process will need (`estimate`) and what it may have (`allowed`), or what
//! the user lets it have ([`Limit`]). Where the system tells nothing, nothing is refused.
//!
//! | file | what |
//! |---|---|
//! | `process` | what this process has and has had |
//! | `allowed` | what it may have |
//! | `limit` | what a user says that it may have |
//! | `estimate` | what it will need |

mod allowed;
mod estimate;
mod limit;
mod process;

use std::fmt::Write as _;

pub use self::estimate::Ranks;
pub use self::limit::{BadLimit, Limit, VARIABLE};
pub use self::process::{peak, resident};

use self::allowed::{Allowed, Bound, allowed};
use crate::scene::{Preconditioner, Scene};
use crate::step::{Mapping, MeshCounts, World, WorldError};

/// Builds the world of a scene on this number of threads, unless a process that steps with these
/// ranks would need more memory than it may have.
///
/// # Errors
/// As [`World::build_on`], or it does not fit ([`WorldError::Memory`]).
pub fn build(
    scene: &Scene,
    threads: usize,
    ranks: Ranks,
    limit: Limit,
) -> Result<World, WorldError> {
    World::build_if(scene, threads, &|counts| fits(scene, counts, ranks, limit))
}

/// Builds a world as [`build`] does, in a process that is one of several, which maps the file of a
/// prepared world.
///
/// # Errors
/// As [`build`].
pub fn build_mapped(
    scene: &Scene,
    threads: usize,
    ranks: Ranks,
    limit: Limit,
    mapping: Mapping,
) -> Result<World, WorldError> {
    let fits = |counts: &MeshCounts| fits(scene, counts, ranks, limit);
    World::build_mapped(scene, threads, &fits, mapping)
}

/// Builds a world as [`build`] does, with the limit that the environment says ([`VARIABLE`]).
///
/// # Errors
/// As [`build`], or the limit cannot be read.
pub fn build_as_environment(
    scene: &Scene,
    threads: usize,
    ranks: Ranks,
) -> Result<World, WorldError> {
    let limit = Limit::of_environment();
    let limit = limit.map_err(|error| WorldError::Memory(format!("{VARIABLE}: {error}")))?;
    build(scene, threads, ranks, limit)
}

/// The peak in bytes that is estimated for a process that steps with these ranks, without contacts.
#[must_use]
pub fn estimated_peak(scene: &Scene, counts: &MeshCounts, ranks: Ranks) -> u64 {
    estimate::peak(scene, counts, ranks) as u64
}

/// Refuses a scene with these counts, if a process that steps with these ranks would need more
/// memory than it may have.
///
/// # Errors
/// A text for people: what the scene needs, what the process may have, and what would fit.
pub fn fits(scene: &Scene, counts: &MeshCounts, ranks: Ranks, limit: Limit) -> Result<(), String> {
    let allowed = |processes: u64| match limit {
        Limit::Any => None,
        Limit::Left => allowed(processes),
        Limit::Bytes(bytes) => Some(Allowed {
            bytes,
            bound: Bound::Asked,
        }),
    };
    decide(scene, counts, ranks, &allowed)
}

/// The memory in bytes that this process may still take beside what it has, if the system tells.
#[must_use]
pub fn left() -> Option<u64> {
    let own = resident().unwrap_or_default();
    allowed(1).map(|allowed| allowed.bytes.saturating_sub(own))
}

/// The decision. `allowed` says what a process may have, by the number of processes of the run on
/// its machine.
fn decide(
    scene: &Scene,
    counts: &MeshCounts,
    ranks: Ranks,
    allowed: &dyn Fn(u64) -> Option<Allowed>,
) -> Result<(), String> {
    let Some(may) = allowed(ranks.processes) else {
        return Ok(());
    };
    let needs = estimate::peak(scene, counts, ranks);
    if needs <= may.bytes as f64 {
        return Ok(());
    }
    let shared = match ranks.processes {
        1 => String::new(),
        processes => format!(", shared by {processes} processes of the run"),
    };
    let mut told = format!(
        "the scene needs about {} of memory{}, without contacts, for {} vertices of cloth and {} \
         triangles of bodies, and the process may have {}: {}{shared}",
        shown(needs),
        match ranks.here {
            0 => " to be set up".to_owned(),
            1 => String::new(),
            here => format!(" with {here} ranks in one process"),
        },
        counts.vertices,
        counts.body_triangles + counts.sampled_triangles,
        shown(may.bytes as f64),
        may.bound,
    );
    let fitting = fitting(scene, counts, ranks, allowed, may);
    if !fitting.is_empty() {
        // Writing to a String cannot fail.
        let _ = write!(told, "; it would fit with {}", fitting.join(", or "));
    }
    let _ = write!(
        told,
        "; to try all the same, say --memory any or set {VARIABLE}=any"
    );
    Err(told)
}

/// Changes of which each alone makes the scene fit.
fn fitting(
    scene: &Scene,
    counts: &MeshCounts,
    ranks: Ranks,
    allowed: &dyn Fn(u64) -> Option<Allowed>,
    may: Allowed,
) -> Vec<String> {
    let mut found = Vec::new();
    let most = may.bytes as f64;
    // The need is linear in the vertices, or the larger of two such lines.
    let with = |vertices: u64| {
        let counts = MeshCounts {
            vertices,
            triangles: 2 * vertices,
            ..*counts
        };
        estimate::peak(scene, &counts, ranks)
    };
    let (mut few, mut many) = (0, counts.vertices.max(counts.triangles / 2).min(1 << 60));
    while many - few > 1 {
        let middle = few + (many - few) / 2;
        if with(middle) <= most {
            few = middle;
        } else {
            many = middle;
        }
    }
    if few > 0 {
        found.push(format!("at most {} vertices of cloth", rounded(few)));
    }
    // Samples fall with the square of the side of cells or faster.
    let wider = (2..=20_u32).map(|tenths| 0.1 * f64::from(tenths) + 1.0);
    let wider = wider.chain((4..=100_u32).map(f64::from)).find(|wider| {
        let sample_bytes = (counts.sample_bytes as f64 / (wider * wider)) as u64;
        let counts = MeshCounts {
            sample_bytes,
            ..*counts
        };
        counts.sampled_triangles > 0 && estimate::peak(scene, &counts, ranks) <= most
    });
    found.extend(wider.map(|wider| {
        format!("a `cell` {wider:.1} times as wide of bodies with surface = \"distance\"")
    }));
    let fewer_here = (1..ranks.here).rev().find(|&here| {
        let fewer = Ranks {
            all: here,
            here,
            drawing: ranks.drawing.min(here),
            ..ranks
        };
        estimate::peak(scene, counts, fewer) <= most
    });
    found.extend(fewer_here.map(|here| format!("--ranks {here}")));
    let fewer_processes = (1..ranks.processes).rev().find(|&processes| {
        let may = allowed(processes).map(|may| may.bytes as f64);
        may.is_none_or(|may| estimate::peak(scene, counts, ranks) <= may)
    });
    found.extend(fewer_processes.map(|processes| format!("{processes} ranks on a node")));
    let mut changed = |key: &str, change: &dyn Fn(&mut Scene)| {
        let mut scene = scene.clone();
        change(&mut scene);
        if estimate::peak(&scene, counts, ranks) <= most {
            found.push(key.to_owned());
        }
    };
    if scene.output.pictures {
        changed("output.pictures = false", &|scene| {
            scene.output.pictures = false
        });
    }
    if scene.solver.preconditioner == Preconditioner::Multilevel {
        changed("solver.preconditioner = \"block-jacobi\"", &|scene| {
            scene.solver.preconditioner = Preconditioner::BlockJacobi;
        });
    }
    if scene.contact.certify {
        changed("contact.certify = false", &|scene| {
            scene.contact.certify = false
        });
    }
    found
}

/// Bytes for people.
fn shown(bytes: f64) -> String {
    match bytes {
        bytes if bytes >= 1e12 => format!("{:.1} TB", bytes / 1e12),
        bytes if bytes >= 1e9 => format!("{:.1} GB", bytes / 1e9),
        bytes => format!("{:.0} MB", bytes / 1e6),
    }
}

/// A number with its first two digits, rounded down.
fn rounded(number: u64) -> u64 {
    let mut unit = 1;
    while number / unit >= 100 {
        unit *= 10;
    }
    number / unit * unit
}

#[cfg(test)]
mod tests;
