//! The elements that touch a run of rows, and what they add to these rows of the system of a step (`assembly`).
//!
//! In the order of their global numbers, kind by kind: triangles, hinges and plates make the rows (`triangles`), folds, shells, springs and air are added
//! to them. That is the order of additions in every entry, whoever owns the rows.

use std::ops::Range;

use glam::DVec3;
use weft_partition::HaloPlan;

use super::assembly::{Collapsed, Load};
use super::bending::Bending;
use super::incidence::Incidence;
use super::local_vertices::LocalVertices;
use super::triangles::{Scratch, Triangles};
use crate::physics::ClothModel;
use crate::physics::membrane::outer;
use crate::physics::membrane_lanes::Law;
use crate::solve::{BlockMatrix, BlockSlot, MatrixRows, Pattern};
use crate::step::world::World;

/// The elements that touch a run of rows.
#[derive(Debug)]
pub(crate) struct RunElements {
    /// The rows, by global numbers.
    rows: Range<usize>,
    local_vertices: LocalVertices,
    triangles: Triangles,
    bending: Bending,
    folds: Vec<Blocks<4>>,
    shells: Vec<Blocks<6>>,
    springs: Vec<Blocks<2>>,
    /// Triangles that the air drags at.
    panels: Vec<Blocks<3>>,
}

/// An element that couples its corners by 3x3 blocks.
#[derive(Debug)]
struct Blocks<const N: usize> {
    index: u32,
    /// Local indices of the corners.
    corners: [u32; N],
    /// Where block `i, j` goes; `None` for rows of other ranks.
    slots: [Option<[BlockSlot; N]>; N],
}

impl RunElements {
    /// For rows that are given by global numbers, and the elements that touch these.
    pub(crate) fn new(
        world: &World,
        plan: &HaloPlan,
        matrix: &BlockMatrix,
        (rows, incidence): (&Range<usize>, &Incidence),
    ) -> Self {
        let model = world.model();
        let pattern = matrix.pattern();
        let find = Find {
            rows,
            plan,
            pattern,
        };
        let triangles = incidence.triangles.iter().copied();
        let panels = triangles.filter(|&t| model.drag(t as usize) != [0.0; 2]);
        let (folds, shells) = (&incidence.folds, &incidence.shells);
        let springs = &incidence.springs;
        let local_vertices = LocalVertices::new(plan, pattern, rows);
        Self {
            rows: rows.clone(),
            triangles: Triangles::new(
                model,
                pattern,
                &local_vertices,
                (rows, &incidence.triangles),
            ),
            bending: Bending::new(model, pattern, &local_vertices, (rows, incidence)),
            local_vertices,
            folds: find.blocks(folds.iter().copied(), |f| model.folds()[f].vertices),
            shells: find.blocks(shells.iter().copied(), |s| model.shells()[s].vertices),
            springs: find.blocks(springs.iter().copied(), |s| model.springs()[s].vertices),
            panels: find.blocks(panels, |t| model.triangles()[t]),
        }
    }

    /// Writes the rows of the matrix, and of the right-hand side, for positions and velocities with halo.
    pub(crate) fn assemble(
        &self,
        model: &ClothModel,
        state: (&[DVec3], &[DVec3]),
        (load, laws): (&Load<'_>, &[Law]),
        (matrix, rhs): (&mut MatrixRows<'_>, &mut [DVec3]),
        scratch: &mut Scratch,
    ) -> Result<(), Collapsed> {
        self.begin(model, state, load, scratch);
        (self.triangles).assemble(&self.bending, laws, &load.times(), matrix, scratch)?;
        let first = self.local_vertices.rows().start;
        let sums = &mut scratch.rhs;
        let add = &mut |corner: u32, impulse| add_to(&mut sums[corner as usize - first], impulse);
        self.add_folds(model, state, load, matrix, add);
        self.add_shells(model, state, load, matrix, add);
        self.add_springs(model, state, load, matrix, add);
        self.add_drag(model, state, load, matrix, add);
        for (rhs, [x, y, z, _]) in rhs.iter_mut().zip(&scratch.rhs) {
            *rhs = DVec3::new(*x, *y, *z);
        }
        Ok(())
    }

    /// Copies what elements read, and begins with masses.
    fn begin(
        &self,
        model: &ClothModel,
        (x, v): (&[DVec3], &[DVec3]),
        load: &Load<'_>,
        scratch: &mut Scratch,
    ) {
        self.local_vertices.copy(model, (x, v), load.shift, scratch);
        scratch.rhs.clear();
        scratch.rows.clear();
        for (vertex, i) in self.rows.clone().zip(self.local_vertices.rows()) {
            let (mass, drag) = (model.masses()[vertex], model.mass_damping(vertex));
            let bending = load.tau * (load.stiff + model.bending_damping(vertex));
            scratch.rows.push([mass * (1.0 + load.tau * drag), bending]);
            let mut own = (load.gravity - v[i] * drag) * (mass * load.tau);
            if let Some(toward) = load.toward {
                own += toward[i] * mass;
            }
            scratch.rhs.push([own.x, own.y, own.z, 0.0]);
        }
        scratch.rhs.resize(self.local_vertices.len(), [0.0; 4]);
    }

    fn add_folds(
        &self,
        model: &ClothModel,
        (x, v): (&[DVec3], &[DVec3]),
        load: &Load<'_>,
        matrix: &mut MatrixRows<'_>,
        rhs: &mut impl FnMut(u32, DVec3),
    ) {
        for f in &self.folds {
            let fold = &model.folds()[f.index as usize];
            let state = fold.state(f.corners.map(|c| x[c as usize]));
            let damped = (load.stiff + fold.damping) * state.stiffness;
            let begun = (load.shift + fold.damping) * state.stiffness;
            let rate: f64 = (state.mode.iter().zip(f.corners))
                .map(|(mode, c)| mode.dot(v[c as usize]))
                .sum();
            let moment = state.moment + begun * rate;
            for i in 0..4 {
                let Some(slots) = &f.slots[i] else { continue };
                for (slot, mode) in slots.iter().zip(state.mode) {
                    matrix.add_block(*slot, &(outer(state.mode[i], mode) * (damped * load.tau)));
                }
                rhs(f.corners[i], state.mode[i] * (-moment * load.tau));
            }
        }
    }

    fn add_shells(
        &self,
        model: &ClothModel,
        (x, v): (&[DVec3], &[DVec3]),
        load: &Load<'_>,
        matrix: &mut MatrixRows<'_>,
        rhs: &mut impl FnMut(u32, DVec3),
    ) {
        for s in &self.shells {
            let shell = &model.shells()[s.index as usize];
            let state = shell.state(s.corners.map(|c| x[c as usize]));
            let begun = state.rates(s.corners.map(|c| v[c as usize]));
            let begun = begun.map(|rate| rate * (load.shift + shell.damping));
            let more = shell.moments_of(begun);
            let moments = [0, 1, 2].map(|edge| (state.moments[edge] + more[edge]) * -load.tau);
            let damped = (load.stiff + shell.damping) * load.tau;
            for i in 0..6 {
                let Some(slots) = &s.slots[i] else { continue };
                // What angles turn by as this corner moves, as moments.
                let of = |edge: usize| state.modes[edge][i] * damped;
                let [p, q, r] = shell
                    .coupling
                    .map(|row| of(0) * row[0] + of(1) * row[1] + of(2) * row[2]);
                for (j, slot) in slots.iter().enumerate() {
                    let [a, b, c] = [0, 1, 2].map(|edge| state.modes[edge][j]);
                    matrix.add_block(*slot, &(outer(p, a) + outer(q, b) + outer(r, c)));
                }
                rhs(s.corners[i], state.pull(moments, i));
            }
        }
    }

    fn add_springs(
        &self,
        model: &ClothModel,
        (x, v): (&[DVec3], &[DVec3]),
        load: &Load<'_>,
        matrix: &mut MatrixRows<'_>,
        rhs: &mut impl FnMut(u32, DVec3),
    ) {
        for s in &self.springs {
            let spring = &model.springs()[s.index as usize];
            let state = spring.state(s.corners.map(|c| x[c as usize]));
            let after =
                |time: f64| state.elastic * (time + spring.damping) + state.geometric * time;
            let (block, begun) = (after(load.stiff), after(load.shift));
            let [v0, v1] = s.corners.map(|c| v[c as usize]);
            let force = state.force + begun * (v1 - v0);
            for (i, sign) in [1.0, -1.0].into_iter().enumerate() {
                let Some(slots) = &s.slots[i] else { continue };
                for (j, slot) in slots.iter().enumerate() {
                    let share = if i == j { load.tau } else { -load.tau };
                    matrix.add_block(*slot, &(block * share));
                }
                rhs(s.corners[i], force * (sign * load.tau));
            }
        }
    }

    fn add_drag(
        &self,
        model: &ClothModel,
        (x, v): (&[DVec3], &[DVec3]),
        load: &Load<'_>,
        matrix: &mut MatrixRows<'_>,
        rhs: &mut impl FnMut(u32, DVec3),
    ) {
        for p in &self.panels {
            let at = |values: &[DVec3]| p.corners.map(|c| values[c as usize]);
            let coefficients = model.drag(p.index as usize);
            let drag = load.air.drag(at(x), at(v), coefficients);
            let block = drag.resistance * (load.tau / 9.0);
            for (corner, slots) in p.corners.into_iter().zip(&p.slots) {
                let Some(slots) = slots else { continue };
                for slot in slots {
                    matrix.add_block(*slot, &block);
                }
                rhs(corner, drag.force * (load.tau / 3.0));
            }
        }
    }
}

fn add_to(sum: &mut [f64; 4], vector: DVec3) {
    for (sum, number) in sum.iter_mut().zip(vector.to_array()) {
        *sum += number;
    }
}

/// Finds the places of elements in some rows, given by global numbers.
struct Find<'a> {
    rows: &'a Range<usize>,
    plan: &'a HaloPlan,
    pattern: &'a Pattern,
}

impl Find<'_> {
    fn blocks<const N: usize>(
        &self,
        elements: impl Iterator<Item = u32>,
        vertices: impl Fn(usize) -> [u32; N],
    ) -> Vec<Blocks<N>> {
        let mine = |v: &u32| self.rows.contains(&(*v as usize));
        let local = local_in(self.plan);
        let places = |row: u32, vertices: [u32; N]| {
            let row = local(row) as usize;
            vertices.map(|column| {
                let slot = self.pattern.block_slot(row, column);
                slot.expect("what blocks couple is near")
            })
        };
        let blocks = elements.map(|index| {
            let vertices = vertices(index as usize);
            Blocks {
                index,
                corners: vertices.map(&local),
                slots: vertices.map(|row| mine(&row).then(|| places(row, vertices))),
            }
        });
        blocks.collect()
    }
}

/// The local index of a vertex that an element of the rank has.
pub(crate) fn local_in(plan: &HaloPlan) -> impl Fn(u32) -> u32 + '_ {
    |v| {
        plan.local_index(v)
            .expect("elements couple only what the matrix graph does") as u32
    }
}
