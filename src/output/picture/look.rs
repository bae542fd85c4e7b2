//! The colours of cloth and bodies in pictures, and the checker that shows how cloth stretches.

use glam::DVec3;

use super::Checker;

/// Linear colours of front and back of cloth: the first where all cloth is alike.
const CLOTHS: [[[f32; 3]; 2]; 6] = [
    [[0.50, 0.05, 0.05], [0.60, 0.28, 0.12]],
    [[0.04, 0.16, 0.42], [0.22, 0.38, 0.56]],
    [[0.62, 0.38, 0.04], [0.70, 0.54, 0.24]],
    [[0.05, 0.30, 0.12], [0.28, 0.46, 0.22]],
    [[0.30, 0.06, 0.36], [0.48, 0.28, 0.50]],
    [[0.04, 0.32, 0.34], [0.30, 0.52, 0.50]],
];
const BODY: [f32; 3] = [0.22, 0.36, 0.50];
const FLAT: [f32; 3] = [0.66, 0.66, 0.63];
/// The cells of a checker along the diagonal of the box around a cloth where it starts.
const CELLS: f64 = 24.0;

/// The colours of front and back of the cloth of this number. They repeat after a few cloths.
#[must_use]
pub fn of_cloth(number: usize) -> [[f32; 3]; 2] {
    CLOTHS[number % CLOTHS.len()]
}

/// The colour of a body: one that is flat, like a floor, is grey.
#[must_use]
pub fn of_body(is_flat: bool) -> [f32; 3] {
    if is_flat { FLAT } else { BODY }
}

/// The checker of a cloth. `start` has the places in m at which all vertices start, and `own` the
/// numbers of those of the cloth: the diagonal of the box around them says how large cells are.
#[must_use]
pub fn checker<'a>(start: &'a [DVec3], own: impl Iterator<Item = usize>) -> Checker<'a> {
    let nothing = [DVec3::INFINITY, DVec3::NEG_INFINITY];
    let [low, high] = own.fold(nothing, |[low, high], v| {
        [low.min(start[v]), high.max(start[v])]
    });
    let diagonal = (high - low).length();
    let is_size = diagonal.is_finite() && diagonal > 0.0;
    Checker {
        start,
        // The corner of the box is not on the border of a cell.
        origin: if is_size { low } else { DVec3::ZERO },
        cell: if is_size { diagonal / CELLS } else { 1.0 },
    }
}

/// The mean of positions in m, which a camera that follows goes along with.
#[must_use]
pub fn middle(positions: &[DVec3]) -> DVec3 {
    let sum: DVec3 = positions.iter().sum();
    sum / positions.len().max(1) as f64
}
