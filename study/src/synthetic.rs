//! Records of cloths that nobody has simulated: as many copies of a recorded one as it takes, side by side.
//!
//! Shapes of trees, contacts and borders are real ones; copies do not touch. Each copy is at another of the recorded steps, so that they
//! differ. For asking what hundreds or thousands of ranks would do, on a machine that cannot hold the run.

use crate::forecast::Spent;
use crate::record::{
    Against, Border, Column, Header, Record, RecordError, Route, Step, Task, Tile,
};

/// The header of so many copies.
#[must_use]
pub fn copied_header(header: &Header, copies: u32) -> Header {
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

/// A step of so many copies: copy k is at the step k after this one, round and round.
///
/// # Errors
/// The record is damaged.
pub fn copied_step(record: &mut Record, index: usize, copies: u32) -> Result<Step, RecordError> {
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
        all.forecast.extend(step.forecast.iter().map(|spent| Spent {
            patch: spent.patch + by,
            against: beside(spent.against, by),
            ..*spent
        }));
        for (sum, time) in all.measured.iter_mut().zip(step.measured) {
            *sum += time;
        }
    }
    Ok(all)
}

/// What a copy's patch is tested against.
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
