//! Records of cloths that nobody has simulated: as many copies of a recorded one as it takes, side
//! by side.
//!
//! Shapes of trees, contacts and borders are real ones; copies do not touch. Each copy is at
//! another of the recorded steps, so that they differ. For asking what hundreds or thousands of
//! ranks would do, on a machine that cannot hold the run.

use thiserror::Error;
use weft_balance::cost::{Against, TestCost};
use weft_balance::separation::Tile;

use crate::record::{Border, Column, Header, Record, RecordError, Route, Step, Task};

/// Copies of a record have this many patches at most: 160,000,000 vertices of the drape scenes.
pub const MOST_PATCHES: usize = 1 << 20;

/// And this many vertices, of each of which every rank's layout knows the place.
pub const MOST_VERTICES: u64 = 1 << 28;

/// The reason why there are no such copies of a record.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum CopiesError {
    /// Patches of copies are a power of two as well.
    #[error("{0} copies: give a power of two")]
    NoPower(u32),
    /// The copies have more patches than a study has room for.
    #[error(
        "{copies} copies of a record with {patches} patches: at most {most} fit into {MOST_PATCHES} patches"
    )]
    Patches {
        /// Copies.
        copies: u32,
        /// Patches of one.
        patches: usize,
        /// The most copies that there can be.
        most: usize,
    },
    /// The copies have more vertices than a study has room for.
    #[error(
        "{copies} copies of a record with {vertices} vertices: at most {most} fit into {MOST_VERTICES} vertices"
    )]
    Vertices {
        /// Copies.
        copies: u32,
        /// Vertices of one.
        vertices: u64,
        /// The most copies that there can be.
        most: u64,
    },
    /// The copies have more tiles or coarse unknowns than have numbers.
    #[error(
        "{copies} copies of a record with {count} tiles or coarse unknowns: at most {most} have numbers of 32 bits"
    )]
    Numbers {
        /// Copies.
        copies: u32,
        /// Tiles or coarse unknowns of one.
        count: usize,
        /// The most copies that there can be.
        most: usize,
    },
}

impl CopiesError {
    /// Whether there can be this many copies of this many patches, before there is a record.
    ///
    /// # Errors
    /// They are no power of two, or too many. There is always one copy of one.
    pub fn check(patches: usize, copies: u32) -> Result<(), Self> {
        if !copies.is_power_of_two() {
            return Err(Self::NoPower(copies));
        }
        let most = MOST_PATCHES / patches.max(1);
        if copies > 1 && copies as usize > most {
            return Err(Self::Patches {
                copies,
                patches,
                most: most.max(1),
            });
        }
        Ok(())
    }

    /// Whether there is room for the vertices of this many copies.
    ///
    /// # Errors
    /// They are too many. There is always one copy of one.
    pub fn check_vertices(vertices: u64, copies: u32) -> Result<(), Self> {
        let most = MOST_VERTICES / vertices.max(1);
        if copies > 1 && u64::from(copies) > most {
            return Err(Self::Vertices {
                copies,
                vertices,
                most: most.max(1),
            });
        }
        Ok(())
    }

    /// Whether what a record numbers, see [`numbered`], has numbers in this many copies.
    ///
    /// # Errors
    /// They are too many. There is always one copy of one.
    pub fn check_numbers(count: usize, copies: u32) -> Result<(), Self> {
        let most = u32::MAX as usize / count.max(1);
        if copies > 1 && copies as usize > most {
            return Err(Self::Numbers {
                copies,
                count,
                most: most.max(1),
            });
        }
        Ok(())
    }
}

/// How many numbers of 32 bits a record has use for besides those of its patches: of tiles or of
/// coarse unknowns, whichever are more.
#[must_use]
pub fn numbered(header: &Header) -> usize {
    let coarse = header.coarse.len().max(header.aggregates as usize);
    header.tiles.len().max(coarse)
}

/// The header of this many copies, no more than [`CopiesError`] lets be.
#[must_use]
pub(crate) fn copied_header(header: &Header, copies: u32) -> Header {
    let patches = header.patches.len();
    Header {
        title: format!("{copies} times: {}", header.title),
        patches: header
            .patches
            .iter()
            .cloned()
            .cycle()
            .take(patches * copies as usize)
            .collect(),
        tiles: (0..copies)
            .flat_map(|copy| tiles(&header.tiles, copy))
            .collect(),
        aggregates: header.aggregates * copies,
        coarse: (0..copies)
            .flat_map(|copy| columns(&header.coarse, copy, patches as u32))
            .collect(),
        borders: (0..copies)
            .flat_map(|copy| moved(&header.borders, copy * patches as u32))
            .collect(),
        ..header.clone()
    }
}

/// A step of this many copies, no more than [`CopiesError`] lets be: copy k is at the step k after
/// this one, round and round.
///
/// # Errors
/// The record is damaged.
pub(crate) fn copied_step(
    record: &mut Record,
    index: usize,
    copies: u32,
) -> Result<Step, RecordError> {
    let count = record.steps();
    let patches = record.header().patches.len() as u32;
    let mut steps = Vec::new();
    for of in 0..count.min(copies as usize) {
        steps.push(record.step((index + of) % count)?);
    }
    let mut all = Step {
        tasks: Vec::new(),
        rows: Vec::new(),
        forecast: Vec::new(),
        missed: Vec::new(),
        measured: [0.0; 5],
        ..steps[0].clone()
    };
    for copy in 0..copies {
        let step = &steps[copy as usize % steps.len()];
        let by = copy * patches;
        all.tasks.extend(step.tasks.iter().map(|task| {
            Task {
                patch: task.patch + by,
                against: beside(task.against, by),
                tree: task.tree.clone(),
                routes: (task.routes.iter())
                    .map(|route| Route {
                        patches: route.patches.iter().map(|patch| patch + by).collect(),
                        contacts: route.contacts,
                    })
                    .collect(),
                met: task.met,
            }
        }));
        all.rows.extend(moved(&step.rows, by));
        all.missed
            .extend(step.missed.iter().map(|(p, q)| (p + by, q + by)));
        all.forecast
            .extend(step.forecast.iter().map(|test| TestCost {
                patch: test.patch + by,
                against: beside(test.against, by),
                ..*test
            }));
        for (sum, time) in all.measured.iter_mut().zip(step.measured) {
            *sum += time;
        }
    }
    Ok(all)
}

/// The partner against which a copy's patch is tested.
fn beside(against: Against, by: u32) -> Against {
    match against {
        Against::Patch(other) => Against::Patch(other + by),
        other => other,
    }
}

/// The tiles of a copy.
fn tiles(tiles: &[Tile], copy: u32) -> impl Iterator<Item = Tile> + '_ {
    let by = copy * tiles.len() as u32;
    tiles.iter().map(move |tile| Tile {
        triangles: tile.triangles,
        beside: tile.beside.iter().map(|other| other + by).collect(),
    })
}

/// The coarse unknowns of a copy.
fn columns(columns: &[Column], copy: u32, patches: u32) -> impl Iterator<Item = Column> + '_ {
    let by = copy * columns.len() as u32;
    columns.iter().map(move |column| Column {
        patch: column.patch + copy * patches,
        rows: column.rows.iter().map(|row| row + by).collect(),
    })
}

fn moved(borders: &[Border], by: u32) -> impl Iterator<Item = Border> + '_ {
    borders.iter().map(move |border| Border {
        owner: border.owner + by,
        readers: border.readers.iter().map(|reader| reader + by).collect(),
        vertices: border.vertices,
    })
}
