//! The elements that touch a run of rows, and what they add to these rows of the system of a step (`assembly`).
//!
//! In the order of their global numbers, kind by kind: of the matrix hinges, triangles, folds, springs, air, of the right-hand side
//! triangles first. That is the order of additions in every entry, whoever owns the rows.

use std::ops::Range;

use glam::DVec3;
use weft_partition::HaloPlan;

use super::assembly::{Collapsed, Load};
use super::hinges::Hinges;
use super::world::World;
use crate::physics::ClothModel;
use crate::physics::membrane::outer;
use crate::physics::membrane_four::{Added, Moving, Times, add_four};
use crate::simd::{Lanes, Loop, widest};
use crate::solve::{BlockMatrix, BlockSlot, MatrixRows, Pattern};

/// The elements that touch a run of rows.
#[derive(Debug)]
pub(super) struct Part {
    triangles: Vec<Blocks<3>>,
    hinges: Hinges,
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

impl Part {
    /// The elements that touch some rows, given by global numbers.
    pub(super) fn new(
        world: &World,
        plan: &HaloPlan,
        matrix: &BlockMatrix,
        rows: &Range<usize>,
    ) -> Self {
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
        Self {
            triangles: find.blocks(elements),
            hinges: Hinges::new(model, plan, pattern, rows),
            folds: find.blocks(folds),
            springs: find.blocks(springs),
            panels: find.blocks(panels),
        }
    }

    /// Sets the matrix to what does not depend on where the cloth is: hinges.
    pub(super) fn begin(
        &mut self,
        model: &ClothModel,
        load: &Load<'_>,
        matrix: &mut MatrixRows<'_>,
    ) {
        self.hinges.begin(model, load, matrix);
    }

    /// Adds all other elements to the matrix and all to the right-hand side in `room`, of the rows from `first` on, a local index.
    pub(super) fn add(
        &self,
        model: &ClothModel,
        state: (&[DVec3], &[DVec3]),
        load: &Load<'_>,
        matrix: &mut MatrixRows<'_>,
        first: usize,
        room: &mut Room,
    ) -> Result<(), Collapsed> {
        let Room { rhs, added } = room;
        widest(Triangles {
            triangles: &self.triangles,
            model,
            state,
            times: Times {
                tau: load.tau,
                stiff: load.stiff,
                shift: load.shift,
            },
            matrix,
            rhs,
            first,
            added,
        })?;
        (self.hinges).push(model, state, load, (rhs, first));
        let rhs = &mut |corner: u32, impulse| add_to(&mut rhs[corner as usize - first], impulse);
        self.add_folds(model, state, load, matrix, rhs);
        self.add_springs(model, state, load, matrix, rhs);
        self.add_drag(model, state, load, matrix, rhs);
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

/// What a thread needs room for.
#[derive(Debug, Default)]
pub(super) struct Room {
    /// The right-hand side of a run of rows, with a fourth number that stays zero.
    pub(super) rhs: Vec<[f64; 4]>,
    added: Added,
}

/// Adds triangles in their order, four at a time where they are isotropic.
struct Triangles<'a, 'm> {
    triangles: &'a [Blocks<3>],
    model: &'a ClothModel,
    state: (&'a [DVec3], &'a [DVec3]),
    times: Times,
    matrix: &'a mut MatrixRows<'m>,
    /// Of the rows from `first` on, as local indices.
    rhs: &'a mut [[f64; 4]],
    first: usize,
    added: &'a mut Added,
}

impl Loop for Triangles<'_, '_> {
    type Output = Result<(), Collapsed>;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> Result<(), Collapsed> {
        if self.times.stiff == self.times.shift {
            self.add::<L, true>(lanes)
        } else {
            self.add::<L, false>(lanes)
        }
    }
}

impl Triangles<'_, '_> {
    /// Adds all; `SAME` as [`add_four`] has it.
    #[inline(always)]
    fn add<L: Lanes, const SAME: bool>(mut self, lanes: L) -> Result<(), Collapsed> {
        let (fours, rest) = self.triangles.as_chunks::<4>();
        for four in fours {
            let done = moving(four, self.model, self.state)
                .is_some_and(|moving| add_four::<L, SAME>(lanes, &moving, &self.times, self.added));
            if !done {
                self.one_by_one(four)?;
                continue;
            }
            let mut blocks = self.matrix.blocks_mut();
            for (t, added) in four.iter().zip(self.added.each()) {
                for i in 0..3 {
                    let Some(slots) = &t.slots[i] else { continue };
                    for (j, &slot) in slots.iter().enumerate() {
                        blocks.add(lanes, slot, added.block(i, j));
                    }
                    let rhs = &mut self.rhs[t.corners[i] as usize - self.first];
                    *rhs = lanes.store(lanes.add(lanes.load(rhs), lanes.load(added.impulse(i))));
                }
            }
        }
        self.one_by_one(rest)
    }
}

/// Triangles whose stretching is damped as their shearing is.
#[inline(always)]
fn moving<'a>(
    [a, b, c, d]: &[Blocks<3>; 4],
    model: &'a ClothModel,
    (x, v): (&'a [DVec3], &'a [DVec3]),
) -> Option<Moving<'a>> {
    let damping = |t: &Blocks<3>| {
        let [stretching, shearing] = model.triangle_damping(t.index as usize);
        (stretching == shearing).then_some(stretching)
    };
    let rest = |t: &Blocks<3>| &model.membranes()[t.index as usize];
    Some(Moving {
        damping: [damping(a)?, damping(b)?, damping(c)?, damping(d)?],
        rest: [rest(a), rest(b), rest(c), rest(d)],
        corners: [a.corners, b.corners, c.corners, d.corners],
        x,
        v,
    })
}

impl Triangles<'_, '_> {
    /// Any triangles.
    #[inline(never)]
    fn one_by_one(&mut self, triangles: &[Blocks<3>]) -> Result<(), Collapsed> {
        let Times { tau, stiff, shift } = self.times;
        let (x, v) = self.state;
        for t in triangles {
            let index = t.index as usize;
            let membrane = &self.model.membranes()[index];
            let deformation = membrane
                .deform(t.corners.map(|c| x[c as usize]))
                .ok_or(Collapsed { triangle: t.index })?;
            let forces = membrane.forces(&deformation);
            let stiffness = membrane.stiffness(&deformation);
            let [stretching, shearing] = self.model.triangle_damping(index);
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
            for (i, mut force) in forces.into_iter().enumerate() {
                let Some(slots) = &t.slots[i] else { continue };
                for j in 0..3 {
                    let geometric = stiffness.geometric(i, j);
                    let block = change.0.elastic(i, j) * change.1 + geometric * stiff;
                    self.matrix.add_block(slots[j], &(block * tau));
                    let pull = begun.as_ref().map_or(block, |(elastic, share)| {
                        elastic.elastic(i, j) * *share + geometric * shift
                    });
                    force -= pull * v[t.corners[j] as usize];
                }
                add_to(
                    &mut self.rhs[t.corners[i] as usize - self.first],
                    force * tau,
                );
            }
        }
        Ok(())
    }
}

fn add_to(sum: &mut [f64; 4], vector: DVec3) {
    for (sum, number) in sum.iter_mut().zip(vector.to_array()) {
        *sum += number;
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
pub(super) fn local_in(plan: &HaloPlan) -> impl Fn(u32) -> u32 + '_ {
    |v| {
        plan.local_index(v)
            .expect("elements couple only what the matrix graph does") as u32
    }
}
