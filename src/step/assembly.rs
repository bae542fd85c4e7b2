//! The linear system of a part of a step, on the rows a rank owns [BW98, §3].
//!
//! For the change Δv of velocities v after which `M (v + Δv − v̂) = τ (f − D (v + Δv) + M g)`, with forces at positions
//! that are X at no velocity and follow v by a time `shift`, Δv by a time `stiff`:
//!
//! `(M + τ D + τ stiff K) Δv = τ (f(X) − D v − shift K v + M g) + M (v̂ − v)`
//!
//! where K and D are stiffness and damping at X. Implicit Euler linearised where it begins is τ = stiff = shift = h, v̂ = v;
//! Newton's method has X = x̂ + τ v and shift 0, explicit elasticity stiff = shift = 0 (`motion` has them all). Every rank goes
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

/// What a system is made with beside elements; times in s.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load<'a> {
    /// τ: how long forces act.
    pub(super) tau: f64,
    /// How far positions follow the change that is looked for.
    pub(super) stiff: f64,
    /// How far they follow the velocities that it is a change of.
    pub(super) shift: f64,
    pub(super) gravity: DVec3,
    /// v̂ − v of owned vertices, if they differ.
    pub(super) toward: Option<&'a [DVec3]>,
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

    /// Fills matrix (kg) and right-hand side (kg m/s) for positions X and velocities v with halo.
    pub(super) fn assemble(
        &self,
        model: &ClothModel,
        state: (&[DVec3], &[DVec3]),
        load: &Load<'_>,
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
                    matrix.add_diagonal(i, mass * (1.0 + load.tau * drag));
                    *rhs = (load.gravity - state.1[i] * drag) * (mass * load.tau);
                    if let Some(toward) = load.toward {
                        *rhs += toward[i] * mass;
                    }
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

    /// The first of this rank's triangles that has no area any more when its corners, at `x` (m), have moved with `v` (m/s)
    /// for `dt` (s).
    pub(super) fn first_collapsed(
        &self,
        model: &ClothModel,
        (x, v): (&[DVec3], &[DVec3]),
        dt: f64,
    ) -> Result<(), Collapsed> {
        let mut found = Vec::new();
        self.collect(
            &mut found,
            || None,
            |triangle, corners, found: &mut Option<u32>| {
                let end = corners.map(|c| x[c as usize] + v[c as usize] * dt);
                let index = triangle as usize;
                if model.is_element(index) && model.membranes()[index].deform(end).is_none() {
                    found.get_or_insert(triangle);
                }
            },
        );
        let first = found.into_iter().flatten().min();
        first.map_or(Ok(()), |triangle| Err(Collapsed { triangle }))
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
        load: &Load<'_>,
        matrix: &mut MatrixRows<'_>,
        (rhs, first): (&mut [DVec3], usize),
    ) -> Result<(), Collapsed> {
        let Load {
            tau, stiff, shift, ..
        } = *load;
        for t in &self.triangles {
            let index = t.index as usize;
            let membrane = &model.membranes()[index];
            let deformation = membrane
                .deform(t.corners.map(|c| x[c as usize]))
                .ok_or(Collapsed { triangle: t.index })?;
            let forces = membrane.forces(&deformation);
            let stiffness = membrane.stiffness(&deformation);
            let [stretching, shearing] = model.triangle_damping(index);
            // What follows by a time, with damping, and by how much.
            let after = |time: f64| {
                if stretching == shearing {
                    (stiffness, time + stretching)
                } else {
                    (stiffness.scaled(time + stretching, time + shearing), 1.0)
                }
            };
            let change = after(stiff);
            let begun = (shift != stiff).then(|| after(shift));
            for i in 0..3 {
                let Some(slots) = &t.slots[i] else { continue };
                let mut force = forces[i];
                for j in 0..3 {
                    let geometric = stiffness.geometric(i, j);
                    let block = change.0.elastic(i, j) * change.1 + geometric * stiff;
                    matrix.add_block(slots[j], &(block * tau));
                    let pull = begun.as_ref().map_or(block, |(elastic, share)| {
                        elastic.elastic(i, j) * *share + geometric * shift
                    });
                    force -= pull * v[t.corners[j] as usize];
                }
                rhs[t.corners[i] as usize - first] += force * tau;
            }
        }
        for h in &self.hinges {
            let index = h.index as usize;
            let hinge = &model.hinges()[index];
            let at = |values: &[DVec3]| h.corners.map(|c| values[c as usize]);
            let damping = model.hinge_damping(index);
            let pull = hinge.curvature(at(x)) + hinge.curvature(at(v)) * (shift + damping);
            for i in 0..4 {
                let Some(slots) = &h.slots[i] else { continue };
                let weight = hinge.weights[i] * tau;
                for (slot, other) in slots.iter().zip(hinge.weights) {
                    matrix.add_scalar(*slot, weight * other * (stiff + damping));
                }
                rhs[h.corners[i] as usize - first] -= pull * weight;
            }
        }
        let rhs = &mut |corner: u32, impulse: DVec3| rhs[corner as usize - first] += impulse;
        self.add_folds(model, (x, v), load, matrix, rhs);
        self.add_springs(model, (x, v), load, matrix, rhs);
        self.add_drag(model, (x, v), load, matrix, rhs);
        Ok(())
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
