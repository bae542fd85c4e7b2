//! Hinges of the quadratic model that touch a run of rows.
//!
//! A hinge couples its vertices by numbers times identity that never change. So what each entry of the matrix gets of all its hinges, in their
//! order, is summed up once; in a system the sums appear times a time, and the bending force on a row is the product of its
//! sums with positions and velocities.

use std::ops::Range;

use super::around::Around;
use crate::physics::ClothModel;
use crate::solve::Pattern;

/// What hinges make of the entries of a run of rows, N/m.
#[derive(Debug)]
pub(super) struct Hinges {
    /// Of the blocks and of the scalars, in the order of the matrix.
    pub(super) near: Vec<f64>,
    pub(super) far: Vec<f64>,
    /// The scalars again, once for two vertices: those of the rows and vertices before them, of the rows among each other, and with vertices
    /// behind them.
    pub(super) pairs: Vec<Pair>,
    /// Where the scalars of a cloth end in these rows, and one of its rows.
    pub(super) cloths: Vec<(usize, usize)>,
}

/// Two vertices, as [`Around`] counts, and a scalar.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    pub(super) vertices: [u32; 2],
    pub(super) number: f64,
}

impl Hinges {
    /// Of rows that are given by global numbers, and the hinges that touch these.
    pub(super) fn new(
        model: &ClothModel,
        pattern: &Pattern,
        around: &Around,
        (rows, touching): (&Range<usize>, &[u32]),
    ) -> Self {
        let first = pattern.first_row() as usize;
        let local = rows.start - first..rows.end - first;
        let starts = [
            pattern.block_columns(local.start).0.start,
            pattern.scalar_columns(local.start).0.start,
        ];
        let ends = [
            pattern.block_columns(local.end - 1).0.end,
            pattern.scalar_columns(local.end - 1).0.end,
        ];
        let [mut near, mut far] = [0, 1].map(|k| vec![0.0; ends[k] - starts[k]]);
        for hinge in touching
            .iter()
            .map(|&index| &model.hinges()[index as usize])
        {
            let of_hinge = hinge.vertices.iter().zip(hinge.weights);
            for (&row, weight) in of_hinge.clone() {
                if !rows.contains(&(row as usize)) {
                    continue;
                }
                let row = row as usize - first;
                let ((blocks, near_columns), (scalars, far_columns)) =
                    (pattern.block_columns(row), pattern.scalar_columns(row));
                for (column, other) in of_hinge.clone() {
                    let sum = if let Ok(at) = near_columns.binary_search(column) {
                        &mut near[blocks.start - starts[0] + at]
                    } else {
                        let at = far_columns.binary_search(column);
                        let at = at.expect("hinges are near or far");
                        &mut far[scalars.start - starts[1] + at]
                    };
                    *sum += weight * other;
                }
            }
        }
        let cloth = |row: usize| model.cloth_of_vertex()[first + row];
        let local_start = local.start;
        let mut cloths: Vec<(usize, usize)> = Vec::new();
        let [mut before, mut inside, mut behind] = [const { Vec::new() }; 3];
        for row in local {
            let (at, columns) = pattern.scalar_columns(row);
            match cloths.last_mut() {
                Some((end, other)) if cloth(row) == cloth(*other + local_start) => {
                    *end = at.end - starts[1];
                }
                _ => cloths.push((at.end - starts[1], row - local_start)),
            }
            for (at, &column) in at.zip(columns) {
                let vertex = (first + row) as u32;
                let side = match column as usize {
                    column if column < rows.start => &mut before,
                    column if column >= rows.end => &mut behind,
                    _ if column > vertex => &mut inside,
                    _ => continue,
                };
                side.push(Pair {
                    vertices: [vertex, column].map(|v| around.index(v)),
                    number: far[at - starts[1]],
                });
            }
        }
        Self {
            near,
            far,
            pairs: [before, inside, behind].concat(),
            cloths,
        }
    }
}
