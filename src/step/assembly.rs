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
use crate::solve::{BlockMatrix, BlockSlot, MatrixRows, ScalarSlot};
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
    triangles: Vec<Triangle>,
    hinges: Vec<Hinge>,
}

#[derive(Debug)]
struct Triangle {
    index: u32,
    /// Local indices of the corners.
    corners: [u32; 3],
    /// Where block `i, j` goes; `None` for rows of other ranks.
    slots: [Option<[BlockSlot; 3]>; 3],
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
                if model.membranes()[triangle as usize].deform(end).is_none() {
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
        let pattern = matrix.pattern();
        let triangles = (0..).zip(world.model().triangles());
        let triangles = triangles.filter(|(_, t)| t.iter().any(mine));
        let triangles = triangles.map(|(index, t)| Triangle {
            index,
            corners: t.map(&local),
            slots: t.map(|row| {
                mine(&row).then(|| {
                    let row = local(row) as usize;
                    t.map(|column| pattern.block_slot(row, column).expect("triangles are near"))
                })
            }),
        });
        let hinges = (0..).zip(world.model().hinges());
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
            triangles: triangles.collect(),
            hinges: hinges.collect(),
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
            let damping = model.triangle_damping(index);
            for i in 0..3 {
                let Some(slots) = &t.slots[i] else { continue };
                let mut force = forces[i];
                for j in 0..3 {
                    let (elastic, geometric) = (stiffness.elastic(i, j), stiffness.geometric(i, j));
                    let block = elastic * (stiff + damping) + geometric * stiff;
                    matrix.add_block(slots[j], &(block * tau));
                    let pull = if shift == stiff {
                        block
                    } else {
                        elastic * (shift + damping) + geometric * shift
                    };
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
        Ok(())
    }
}

/// The local index of a vertex that an element of the rank has.
fn local_in(plan: &HaloPlan) -> impl Fn(u32) -> u32 + '_ {
    |v| {
        plan.local_index(v)
            .expect("elements couple only what the matrix graph does") as u32
    }
}
