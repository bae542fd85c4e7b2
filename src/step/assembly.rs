//! The linear system of an implicit Euler step, on the rows a rank owns [BW98, §3].
//!
//! `(M − h ∂f/∂v − h² ∂f/∂x) Δv = h (f₀ + h ∂f/∂x v₀)`, linearised once per step. Every rank goes
//! through all elements that touch its rows, in the order of their global numbers, and adds to its own rows
//! only: elements on a border are computed on both sides, and no row depends on where it is. Threads of a rank share
//! its rows in the same way.

use std::ops::Range;

use glam::DVec3;
use weft_partition::HaloPlan;

use super::world::World;
use crate::physics::ClothModel;
use crate::physics::air::Air;
use crate::physics::membrane::outer;
use crate::solve::{BlockMatrix, BlockSlot, MatrixRows, Pattern, ScalarSlot};
use crate::team::{Shares, parts};

/// A rank's elements, with the places they add to.
#[derive(Debug)]
pub(super) struct Assembly {
    /// Triangles that touch owned vertices, ascending, with the local indices of their corners.
    triangles: Vec<(u32, [u32; 3])>,
    /// Which of them each thread of the rank looks at.
    triangle_shares: Shares,
    shares: Shares,
    /// What each thread of the rank fills.
    parts: Vec<Part>,
    first: usize,
}

/// The elements that touch a run of rows.
#[derive(Debug)]
struct Part {
    triangles: Vec<Blocks<3>>,
    hinges: Vec<Hinge>,
    folds: Vec<Blocks<4>>,
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

#[derive(Debug)]
struct Hinge {
    index: u32,
    corners: [u32; 4],
    slots: [Option<[ScalarSlot; 4]>; 4],
}

/// A triangle that has collapsed or is not finite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Collapsed {
    pub(super) triangle: u32,
}

/// What a step adds to elasticity.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    pub(super) dt: f64,
    pub(super) gravity: DVec3,
    pub(super) air: Air,
}

impl Assembly {
    /// Finds the elements that touch owned rows and their places in the matrix.
    pub(super) fn new(
        world: &World,
        plan: &HaloPlan,
        matrix: &BlockMatrix,
        shares: &Shares,
    ) -> Self {
        let owned = plan.owned();
        let mine = |v: &u32| owned.contains(&(*v as usize));
        let local = local_in(plan);
        let triangles = (0..).zip(world.model().triangles());
        let touching = triangles.filter(|(_, t)| t.iter().any(mine));
        let parts = shares.elements.iter().map(|share| {
            let rows = owned.start + share.start..owned.start + share.end;
            Part::new(world, plan, matrix, &rows)
        });
        let triangles: Vec<_> = touching.map(|(index, t)| (index, t.map(&local))).collect();
        Self {
            triangle_shares: shares.team().cut_even(triangles.len()),
            triangles,
            parts: parts.collect(),
            shares: shares.clone(),
            first: owned.start,
        }
    }

    /// Fills matrix (kg) and right-hand side (kg m/s) for positions and velocities with halo.
    pub(super) fn assemble(
        &self,
        model: &ClothModel,
        state: (&[DVec3], &[DVec3]),
        load: &Load,
        matrix: &mut BlockMatrix,
        rhs: &mut [DVec3],
    ) -> Result<(), Collapsed> {
        let of = &self.shares.elements;
        let mut outcomes = vec![Ok(()); of.len()];
        let work = (matrix.rows_mut(of).into_iter().zip(parts(rhs, of)))
            .zip(self.parts.iter().zip(of))
            .zip(&mut outcomes);
        self.shares
            .run(work, |(((mut matrix, rhs), (part, rows)), outcome)| {
                matrix.clear();
                for (i, rhs) in rows.clone().zip(rhs.iter_mut()) {
                    let mass = model.masses()[self.first + i];
                    let drag = model.mass_damping(self.first + i);
                    matrix.add_diagonal(i, mass * (1.0 + load.dt * drag));
                    *rhs = (load.gravity - state.1[i] * drag) * (mass * load.dt);
                }
                *outcome = part.add(model, state, load, &mut matrix, (rhs, rows.start));
            });
        // The first one, whoever came upon it.
        let collapsed = outcomes.into_iter().filter_map(Result::err);
        collapsed.min_by_key(|c| c.triangle).map_or(Ok(()), Err)
    }

    /// Goes through the triangles that touch owned vertices on all threads of the rank: `visit` is called for each one
    /// with the local indices of its corners, and what the thread collects; its runs follow each other in the order
    /// of the triangles.
    pub(super) fn collect<T: Send>(
        &self,
        collected: &mut Vec<T>,
        empty: impl Fn() -> T,
        visit: impl Fn(u32, [u32; 3], &mut T) + Sync,
    ) {
        let shares = &self.triangle_shares;
        collected.resize_with(shares.elements.len(), empty);
        let work = collected.iter_mut().zip(&shares.elements);
        shares.run(work, |(collected, share)| {
            for &(index, corners) in &self.triangles[share.clone()] {
                visit(index, corners, collected);
            }
        });
    }

    /// The largest principal strain of this rank's triangles.
    pub(super) fn largest_strain(&self, model: &ClothModel, x: &[DVec3]) -> f64 {
        let mut largest = Vec::new();
        self.collect(
            &mut largest,
            || 0.0_f64,
            |index, corners, largest| {
                let membrane = &model.membranes()[index as usize];
                let deformation = membrane.deform(corners.map(|c| x[c as usize]));
                *largest = largest.max(deformation.map_or(f64::INFINITY, |d| d.strain()));
            },
        );
        largest.into_iter().fold(0.0, f64::max)
    }
}

impl Part {
    /// The elements that touch some rows, given by global numbers.
    fn new(world: &World, plan: &HaloPlan, matrix: &BlockMatrix, rows: &Range<usize>) -> Self {
        let mine = |v: &u32| rows.contains(&(*v as usize));
        let local = local_in(plan);
        let model = world.model();
        let pattern = matrix.pattern();
        let find = Find {
            rows,
            plan,
            pattern,
        };
        let triangles = (0..).zip(model.triangles().iter().copied());
        let elements = triangles
            .clone()
            .filter(|&(t, _)| model.is_element(t as usize));
        let panels = triangles.filter(|&(t, _)| model.drag(t as usize) != [0.0; 2]);
        let folds = (0..).zip(model.folds().iter().map(|f| f.vertices));
        let springs = (0..).zip(model.springs().iter().map(|s| s.vertices));
        let hinges = (0..).zip(model.hinges());
        let hinges = hinges.filter(|(_, h)| h.vertices.iter().any(mine));
        let hinges = hinges.map(|(index, h)| Hinge {
            index,
            corners: h.vertices.map(&local),
            slots: h.vertices.map(|row| {
                mine(&row).then(|| {
                    let row = local(row) as usize;
                    h.vertices.map(|column| {
                        pattern
                            .scalar_slot(row, column)
                            .expect("hinges are near or far")
                    })
                })
            }),
        });
        Self {
            triangles: find.blocks(elements),
            hinges: hinges.collect(),
            folds: find.blocks(folds),
            springs: find.blocks(springs),
            panels: find.blocks(panels),
        }
    }

    /// Adds all elements; `rhs` is of the rows from the second number on, as local indices.
    fn add(
        &self,
        model: &ClothModel,
        (x, v): (&[DVec3], &[DVec3]),
        load: &Load,
        matrix: &mut MatrixRows<'_>,
        (rhs, first): (&mut [DVec3], usize),
    ) -> Result<(), Collapsed> {
        let dt = load.dt;
        for t in &self.triangles {
            let index = t.index as usize;
            let membrane = &model.membranes()[index];
            let deformation = membrane
                .deform(t.corners.map(|c| x[c as usize]))
                .ok_or(Collapsed { triangle: t.index })?;
            let forces = membrane.forces(&deformation);
            let stiffness = membrane.stiffness(&deformation);
            let [stretching, shearing] = model.triangle_damping(index);
            let (stiffness, damped) = if stretching == shearing {
                (stiffness, dt + stretching)
            } else {
                (stiffness.scaled(dt + stretching, dt + shearing), 1.0)
            };
            for i in 0..3 {
                let Some(slots) = &t.slots[i] else { continue };
                let mut force = forces[i];
                for j in 0..3 {
                    let block = stiffness.elastic(i, j) * damped + stiffness.geometric(i, j) * dt;
                    matrix.add_block(slots[j], &(block * dt));
                    force -= block * v[t.corners[j] as usize];
                }
                rhs[t.corners[i] as usize - first] += force * dt;
            }
        }
        for h in &self.hinges {
            let index = h.index as usize;
            let hinge = &model.hinges()[index];
            let at = |values: &[DVec3]| h.corners.map(|c| values[c as usize]);
            let damped = dt + model.hinge_damping(index);
            let pull = hinge.curvature(at(x)) + hinge.curvature(at(v)) * damped;
            for i in 0..4 {
                let Some(slots) = &h.slots[i] else { continue };
                let weight = hinge.weights[i] * dt;
                for (slot, other) in slots.iter().zip(hinge.weights) {
                    matrix.add_scalar(*slot, weight * other * damped);
                }
                rhs[h.corners[i] as usize - first] -= pull * weight;
            }
        }
        let rhs = &mut |corner: u32, impulse: DVec3| rhs[corner as usize - first] += impulse;
        self.add_folds(model, (x, v), dt, matrix, rhs);
        self.add_springs(model, (x, v), dt, matrix, rhs);
        self.add_drag(model, (x, v), load, matrix, rhs);
        Ok(())
    }

    fn add_folds(
        &self,
        model: &ClothModel,
        (x, v): (&[DVec3], &[DVec3]),
        dt: f64,
        matrix: &mut MatrixRows<'_>,
        rhs: &mut impl FnMut(u32, DVec3),
    ) {
        for f in &self.folds {
            let fold = &model.folds()[f.index as usize];
            let state = fold.state(f.corners.map(|c| x[c as usize]));
            let damped = (dt + fold.damping) * state.stiffness;
            let rate: f64 = (state.mode.iter().zip(f.corners))
                .map(|(mode, c)| mode.dot(v[c as usize]))
                .sum();
            let moment = state.moment + damped * rate;
            for i in 0..4 {
                let Some(slots) = &f.slots[i] else { continue };
                for (slot, mode) in slots.iter().zip(state.mode) {
                    matrix.add_block(*slot, &(outer(state.mode[i], mode) * (damped * dt)));
                }
                rhs(f.corners[i], state.mode[i] * (-moment * dt));
            }
        }
    }

    fn add_springs(
        &self,
        model: &ClothModel,
        (x, v): (&[DVec3], &[DVec3]),
        dt: f64,
        matrix: &mut MatrixRows<'_>,
        rhs: &mut impl FnMut(u32, DVec3),
    ) {
        for s in &self.springs {
            let spring = &model.springs()[s.index as usize];
            let state = spring.state(s.corners.map(|c| x[c as usize]));
            let block = state.elastic * (dt + spring.damping) + state.geometric * dt;
            let [v0, v1] = s.corners.map(|c| v[c as usize]);
            let force = state.force + block * (v1 - v0);
            for (i, sign) in [1.0, -1.0].into_iter().enumerate() {
                let Some(slots) = &s.slots[i] else { continue };
                for (j, slot) in slots.iter().enumerate() {
                    let share = if i == j { dt } else { -dt };
                    matrix.add_block(*slot, &(block * share));
                }
                rhs(s.corners[i], force * (sign * dt));
            }
        }
    }

    fn add_drag(
        &self,
        model: &ClothModel,
        (x, v): (&[DVec3], &[DVec3]),
        load: &Load,
        matrix: &mut MatrixRows<'_>,
        rhs: &mut impl FnMut(u32, DVec3),
    ) {
        for p in &self.panels {
            let at = |values: &[DVec3]| p.corners.map(|c| values[c as usize]);
            let coefficients = model.drag(p.index as usize);
            let drag = load.air.drag(at(x), at(v), coefficients);
            let block = drag.resistance * (load.dt / 9.0);
            for (corner, slots) in p.corners.into_iter().zip(&p.slots) {
                let Some(slots) = slots else { continue };
                for slot in slots {
                    matrix.add_block(*slot, &block);
                }
                rhs(corner, drag.force * (load.dt / 3.0));
            }
        }
    }
}

/// Finds the places of elements that touch some rows, given by global numbers.
struct Find<'a> {
    rows: &'a Range<usize>,
    plan: &'a HaloPlan,
    pattern: &'a Pattern,
}

impl Find<'_> {
    fn blocks<const N: usize>(
        &self,
        elements: impl Iterator<Item = (u32, [u32; N])>,
    ) -> Vec<Blocks<N>> {
        let mine = |v: &u32| self.rows.contains(&(*v as usize));
        let local = local_in(self.plan);
        let touching = elements.filter(|(_, vertices)| vertices.iter().any(mine));
        let places = |row: u32, vertices: [u32; N]| {
            let row = local(row) as usize;
            vertices.map(|column| {
                let slot = self.pattern.block_slot(row, column);
                slot.expect("what blocks couple is near")
            })
        };
        touching
            .map(|(index, vertices)| Blocks {
                index,
                corners: vertices.map(&local),
                slots: vertices.map(|row| mine(&row).then(|| places(row, vertices))),
            })
            .collect()
    }
}

/// The local index of a vertex that an element of the rank has.
fn local_in(plan: &HaloPlan) -> impl Fn(u32) -> u32 + '_ {
    |v| {
        plan.local_index(v)
            .expect("elements couple only what the matrix graph does") as u32
    }
}
