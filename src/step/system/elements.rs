//! The elements that touch a run of rows, and what they add to these rows of the system.
//!
//! Kinds of elements come one after the other, and within a kind elements are in the order of their
//! global numbers. That is the order of additions in every entry, whichever rank owns the rows.
//! Triangles, hinges and plates make the rows (`triangles`); folds, shells, springs, the air and
//! stitches are added to them, as any [`Element`] is.

use std::ops::Range;

use glam::DVec3;
use weft_partition::HaloPlan;

use super::bending::Bending;
use super::incidence::IncidentRun;
use super::load::{Collapsed, Load};
use super::local_vertices::{LocalVertices, local_in};
use super::scratch::{RowFactors, Scratch};
use super::triangles::Triangles;
use crate::heap_bytes::{HeapBytes, counts_heap};
use crate::physics::air::Panel;
use crate::physics::element::{Corners, Element, Scaled, Times};
use crate::physics::membrane_lanes::Law;
use crate::physics::stitch::Pulled;
use crate::physics::{AtTime, ClothModel};
use crate::solve::{BlockMatrix, BlockSlot, MatrixRows, Pattern};
use crate::step::state::StateView;

/// The elements that touch a run of rows.
#[derive(Debug)]
pub(crate) struct RunElements {
    /// The global numbers of the rows.
    rows: Range<usize>,
    local_vertices: LocalVertices,
    triangles: Triangles,
    bending: Bending,
    folds: Vec<Placed<4>>,
    shells: Vec<Placed<6>>,
    springs: Vec<Placed<2>>,
    /// The triangles that the air drags at or pushes.
    panels: Vec<Placed<3>>,
    stitches: Vec<Placed<3>>,
}

counts_heap!(RunElements:
    local_vertices, triangles, bending, folds, shells, springs, panels, stitches;
    without rows
);

/// An element that couples its corners by blocks, with the places of these in the matrix.
#[derive(Debug)]
struct Placed<const N: usize> {
    /// Its number among the elements of its kind.
    index: u32,
    /// The local indices of its corners.
    corners: [u32; N],
    /// The place of block `i, j`; `None` for rows of other runs.
    slots: [Option<[BlockSlot; N]>; N],
}

impl<const N: usize> HeapBytes for Placed<N> {
    fn heap_bytes(&self) -> usize {
        0
    }
}

/// The data that the elements of all runs read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Assembling<'a> {
    pub(crate) model: &'a ClothModel,
    /// Positions and velocities with halo.
    pub(crate) state: StateView<'a>,
    pub(crate) load: &'a Load<'a>,
    /// The properties of each cloth at the time of the load.
    pub(crate) cloths: &'a [AtTime],
    /// The moduli of each cloth, times those of the load.
    pub(crate) laws: &'a [Law],
}

/// The rows of a system that are filled.
#[derive(Debug)]
pub(crate) struct Rows<'a, 'm> {
    pub(crate) matrix: &'a mut MatrixRows<'m>,
    pub(crate) rhs: &'a mut [DVec3],
}

impl RunElements {
    /// Finds the places of the elements of a run.
    pub(crate) fn new(
        model: &ClothModel,
        plan: &HaloPlan,
        matrix: &BlockMatrix,
        run: IncidentRun<'_>,
    ) -> Self {
        let (rows, incidence) = (run.rows, run.elements);
        let pattern = matrix.pattern();
        let find = Find {
            rows,
            plan,
            pattern,
        };
        let triangles = incidence.triangles.iter().copied();
        let panels = triangles.filter(|&t| model.is_panel(t as usize));
        let (folds, shells) = (&incidence.folds, &incidence.shells);
        let springs = &incidence.springs;
        let stitches = incidence.stitches.iter().copied();
        let local_vertices = LocalVertices::new(plan, pattern, rows);
        Self {
            rows: rows.clone(),
            triangles: Triangles::new(model, pattern, &local_vertices, run),
            bending: Bending::new(model, pattern, &local_vertices, run),
            local_vertices,
            folds: find.place(folds.iter().copied(), |f| model.folds()[f].vertices),
            shells: find.place(shells.iter().copied(), |s| model.shells()[s].vertices),
            springs: find.place(springs.iter().copied(), |s| model.springs()[s].vertices),
            panels: find.place(panels, |t| model.triangles()[t]),
            stitches: find.place(stitches, |s| model.stitches()[s].vertices),
        }
    }

    /// Writes the rows of the matrix, and of the right-hand side.
    pub(crate) fn assemble(
        &self,
        with: &Assembling<'_>,
        rows: Rows<'_, '_>,
        scratch: &mut Scratch,
    ) -> Result<(), Collapsed> {
        let Assembling {
            model,
            load,
            cloths,
            ..
        } = *with;
        self.begin(with, scratch);
        let matrix = rows.matrix;
        (self.triangles).assemble(&self.bending, with.laws, &load.times, matrix, scratch)?;
        let mut sums = Sums {
            matrix,
            rhs: &mut scratch.rhs,
            first: self.local_vertices.rows().start,
        };
        let (state, times) = (with.state, &load.times);
        let of_vertex = |v: u32| &cloths[model.cloth_of_vertex()[v as usize] as usize];
        let fold = |f: usize| {
            let of = &model.folds()[f];
            let factor = of_vertex(of.vertices[0]).bending;
            Scaled { of, factor }
        };
        sums.add(&self.folds, fold, state, times);
        let shell = |s: usize| {
            let of = &model.shells()[s];
            let factor = of_vertex(of.vertices[0]).bending;
            Scaled { of, factor }
        };
        sums.add(&self.shells, shell, state, times);
        let spring = |s: usize| {
            let of = &model.springs()[s];
            let cloth = of_vertex(of.vertices[0]);
            let factor = if of.bends() {
                cloth.bending
            } else {
                cloth.stretch
            };
            Scaled { of, factor }
        };
        sums.add(&self.springs, spring, state, times);
        let panel = |t: usize| Panel {
            air: &load.air,
            coefficients: cloths[model.cloth_of_triangle()[t] as usize].drag,
            pressure: model.pressure(t),
        };
        sums.add(&self.panels, panel, state, times);
        let stitch = |s: usize| Pulled {
            of: &model.stitches()[s],
            time: load.time,
        };
        sums.add(&self.stitches, stitch, state, times);
        for (rhs, [x, y, z, _]) in rows.rhs.iter_mut().zip(&scratch.rhs) {
            *rhs = DVec3::new(*x, *y, *z);
        }
        Ok(())
    }

    /// Copies what elements read, and begins with masses.
    fn begin(&self, with: &Assembling<'_>, scratch: &mut Scratch) {
        let Assembling {
            model,
            state,
            load,
            cloths,
            ..
        } = *with;
        let Times { tau, stiff, shift } = load.times;
        self.local_vertices.copy(model, state, shift, scratch);
        scratch.rhs.clear();
        scratch.rows.clear();
        for (vertex, i) in self.rows.clone().zip(self.local_vertices.rows()) {
            let (mass, drag) = (model.masses()[vertex], model.mass_damping(vertex));
            let factor = cloths[model.cloth_of_vertex()[vertex] as usize].bending;
            let bending = tau * (stiff + model.bending_damping(vertex)) * factor;
            scratch.rows.push(RowFactors {
                mass: mass * (1.0 + tau * drag),
                bending,
                bent: tau * factor,
            });
            let mut own = (load.gravity - state.v[i] * drag) * (mass * tau);
            if let Some(toward) = load.toward {
                own += toward[i] * mass;
            }
            scratch.rhs.push([own.x, own.y, own.z, 0.0]);
        }
        scratch.rhs.resize(self.local_vertices.len(), [0.0; 4]);
    }
}

/// The rows that elements are added to.
struct Sums<'a, 'm> {
    matrix: &'a mut MatrixRows<'m>,
    rhs: &'a mut [[f64; 4]],
    /// The local index of the first row.
    first: usize,
}

impl Sums<'_, '_> {
    /// Adds elements of one kind, in their order.
    fn add<const N: usize, E: Element<N>>(
        &mut self,
        elements: &[Placed<N>],
        element: impl Fn(usize) -> E,
        state: StateView<'_>,
        times: &Times,
    ) {
        for placed in elements {
            let element = element(placed.index as usize);
            let at = |values: &[DVec3]| placed.corners.map(|c| values[c as usize]);
            let corners = Corners {
                x: at(state.x),
                v: at(state.v),
            };
            let linearised = element.linearise(corners, times);
            for (row, slots) in placed.slots.iter().enumerate() {
                let Some(slots) = slots else { continue };
                let add = |column: usize, block| self.matrix.add_block(slots[column], &block);
                let impulse = element.row(&linearised, row, add);
                let sum = &mut self.rhs[placed.corners[row] as usize - self.first];
                for (sum, number) in sum.iter_mut().zip(impulse.to_array()) {
                    *sum += number;
                }
            }
        }
    }
}

/// Finds the places of elements in some rows, given by global numbers.
struct Find<'a> {
    rows: &'a Range<usize>,
    plan: &'a HaloPlan,
    pattern: &'a Pattern,
}

impl Find<'_> {
    fn place<const N: usize>(
        &self,
        elements: impl Iterator<Item = u32>,
        vertices: impl Fn(usize) -> [u32; N],
    ) -> Vec<Placed<N>> {
        let mine = |v: &u32| self.rows.contains(&(*v as usize));
        let local = local_in(self.plan);
        let places = |row: u32, vertices: [u32; N]| {
            let row = local(row) as usize;
            vertices.map(|column| {
                let slot = self.pattern.block_slot(row, column);
                slot.expect("what blocks couple is near")
            })
        };
        let placed = elements.map(|index| {
            let vertices = vertices(index as usize);
            Placed {
                index,
                corners: vertices.map(&local),
                slots: vertices.map(|row| mine(&row).then(|| places(row, vertices))),
            }
        });
        placed.collect()
    }
}
