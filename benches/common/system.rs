//! A step's linear system, for solvers of other libraries and for those who check what these
//! answer.

use std::fs;
use std::io;
use std::path::Path;

use glam::DVec3;
use weftwork::solve::{Rows, System};

/// The vertices along a side of the cloths that the command asks for, or these.
pub(crate) fn sides_or(these: &[u32]) -> Vec<u32> {
    let asked: Vec<u32> = std::env::args().filter_map(|a| a.parse().ok()).collect();
    if asked.is_empty() {
        these.to_vec()
    } else {
        asked
    }
}

/// Writes the whole system as rows of scalars, little-endian, and the positions; vertex v of it is
/// vertex `order[v]` there.
pub(crate) fn export(system: &System<'_>, order: &[u32], to: &Path) -> io::Result<()> {
    let whole = system.prefiltered(order);
    let mut entries = whole.entries;
    let upper: Vec<_> = (entries.iter())
        .filter(|(row, column, _)| row != column)
        .map(|&(row, column, value)| (column, row, value))
        .collect();
    entries.extend(upper);
    entries.sort_unstable_by_key(|&(row, column, _)| (row, column));
    let mut starts = vec![0_i32; whole.rhs.len() + 1];
    for (row, ..) in &entries {
        starts[*row as usize + 1] += 1;
    }
    for row in 0..whole.rhs.len() {
        starts[row + 1] += starts[row];
    }
    let mut positions = vec![DVec3::ZERO; order.len()];
    for (x, &to) in system.positions.iter().zip(order) {
        positions[to as usize] = *x;
    }
    let starts: Vec<u8> = starts.iter().flat_map(|s| s.to_le_bytes()).collect();
    let columns: Vec<u8> = entries.iter().flat_map(|e| e.1.to_le_bytes()).collect();
    let values: Vec<u8> = entries.iter().flat_map(|e| e.2.to_le_bytes()).collect();
    let rhs: Vec<u8> = whole.rhs.iter().flat_map(|b| b.to_le_bytes()).collect();
    let positions = positions.iter().flat_map(|x| x.to_array());
    let positions: Vec<u8> = positions.flat_map(f64::to_le_bytes).collect();
    for (name, bytes) in [
        ("starts", starts),
        ("columns", columns),
        ("values", values),
        ("rhs", rhs),
        ("positions", positions),
    ] {
        fs::write(to.join(name).with_extension("bin"), bytes)?;
    }
    Ok(())
}

/// The Euclidean residual of a velocity change in the free directions.
pub(crate) fn residual(system: &System<'_>, x: &[DVec3]) -> f64 {
    let mut r = vec![DVec3::ZERO; x.len()];
    system.matrix.multiply(x, &mut r, Rows::All);
    for (r, b) in r.iter_mut().zip(system.rhs) {
        *r = *b - *r;
    }
    system.filter.project(&mut r);
    r.iter().map(|r| r.length_squared()).sum::<f64>().sqrt()
}
