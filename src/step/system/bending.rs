//! Hinges and plates of the quadratic model that touch a run of rows.
//!
//! They couple their vertices by numbers times identity that never change. So the sum that each
//! entry of the matrix gets of all of them is made once, in their order. In a system these sums
//! appear times a time, and the bending force on a row is the product of its sums with positions
//! and velocities.

use super::incidence::IncidentRun;
use super::local_vertices::LocalVertices;
use crate::heap_bytes::counts_heap;
use crate::physics::ClothModel;
use crate::solve::Pattern;

/// The sums of bending in the entries of a run of rows, in N/m.
#[derive(Debug)]
pub(crate) struct Bending {
    /// The sums of the blocks, in the order of the matrix.
    pub(crate) near: Vec<f64>,
    /// The sums of the scalars, in the order of the matrix.
    pub(crate) far: Vec<f64>,
    /// The columns of the scalars, as places among [`LocalVertices`].
    pub(crate) far_others: Vec<u32>,
}

counts_heap!(Bending: near, far, far_others);

impl Bending {
    /// Adds up the contributions of the elements of a run to its entries.
    pub(crate) fn new(
        model: &ClothModel,
        pattern: &Pattern,
        local_vertices: &LocalVertices,
        run: IncidentRun<'_>,
    ) -> Self {
        let (rows, incidence) = (run.rows, run.elements);
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
        let mut add = |row: u32, column: u32, number: f64| {
            if !rows.contains(&(row as usize)) {
                return;
            }
            let row = row as usize - first;
            let ((blocks, near_columns), (scalars, far_columns)) =
                (pattern.block_columns(row), pattern.scalar_columns(row));
            let sum = if let Ok(at) = near_columns.binary_search(&column) {
                &mut near[blocks.start - starts[0] + at]
            } else {
                let at = far_columns.binary_search(&column);
                let at = at.expect("what bends is near or far");
                &mut far[scalars.start - starts[1] + at]
            };
            *sum += number;
        };
        let quadratic = model.quadratic();
        for &index in &incidence.hinges {
            let hinge = &quadratic.hinges[index as usize];
            let of_hinge = hinge.vertices.iter().zip(hinge.weights);
            for (&row, weight) in of_hinge.clone() {
                for (&column, other) in of_hinge.clone() {
                    add(row, column, weight * other);
                }
            }
        }
        for &index in &incidence.plates {
            let plate = &quadratic.plates[index as usize];
            for (i, &row) in plate.vertices.iter().enumerate() {
                for (j, &column) in plate.vertices.iter().enumerate() {
                    add(row, column, plate.stiffness(i, j));
                }
            }
        }
        let far_others = local.flat_map(|row| pattern.scalar_columns(row).1);
        Self {
            far_others: far_others
                .map(|&column| local_vertices.index(column))
                .collect(),
            near,
            far,
        }
    }
}
