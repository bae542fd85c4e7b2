//! Cloth that starts through cloth: it is pulled apart, and what is free is certified from then on.
//!
//! The two sides of a tangle are given a relative velocity in the direction in which they come
//! apart, by equal and opposite impulses, each of which moves all vertices of a side alike. Every
//! rank does so for the whole set, with the same numbers.

use std::collections::BTreeSet;

use glam::DVec3;

use super::{Certification, GAP, Goals};
use crate::collide::certify::{Mover, Positions, Truncate, is_crossing, touching};
use crate::collide::tangles::{Kept, Member, Tangled, directions};
use crate::step::state::State;
use crate::step::world::World;

/// The relative velocity in m/s with which the sides of a tangle are pulled apart: cloth that is
/// 0.4 m through is free within a second.
const PULL: f64 = 0.5;

/// The crossings that a scene lets its cloth have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LetThrough<'a> {
    /// Vertices, each with a body that lets it through, ascending.
    pub(crate) suspended: &'a [[u32; 2]],
    /// Cloth that started through cloth.
    pub(crate) kept: &'a Kept,
}

impl LetThrough<'_> {
    /// Lets nothing through, for steps that are not certified.
    pub(crate) fn nothing() -> Self {
        Self {
            suspended: &[],
            kept: Kept::EMPTY,
        }
    }
}

/// One side of a tangle: its free vertices and their mass in kg.
struct Side {
    vertices: Vec<usize>,
    mass: f64,
}

impl Side {
    /// A side of a tangle without vertices that pins hold, and those that are on both sides.
    fn new(kept: &Kept, world: &World, held: &[bool], (tangle, side): (u32, bool)) -> Self {
        let is_beside = |m: &&Member| m.tangle == tangle && m.side == side;
        let is_on_both = |m: &Member| {
            let mut all = kept.of(m.vertex).iter();
            all.any(|other| other.tangle == tangle && other.side != side)
        };
        let members = kept.members().iter().filter(is_beside);
        let vertices: Vec<usize> = members
            .filter(|m| !held[m.vertex as usize] && !is_on_both(m))
            .map(|m| m.vertex as usize)
            .collect();
        let masses = world.model().masses();
        Self {
            mass: vertices.iter().map(|&v| masses[v]).sum(),
            vertices,
        }
    }

    /// The mean velocity of its vertices in m/s; zero if all are held.
    fn velocity(&self, world: &World, goals: &Goals<'_>) -> DVec3 {
        let masses = world.model().masses();
        let momenta = self.vertices.iter().map(|&v| goals.moves[v] * masses[v]);
        let momentum: DVec3 = momenta.sum();
        if self.mass > 0.0 {
            momentum / self.mass
        } else {
            DVec3::ZERO
        }
    }
}

impl Certification {
    /// Pulls the sides of tangles apart. Returns how many vertices were moved.
    pub(super) fn pull(&self, world: &World, state: &State, goals: &mut Goals<'_>, dt: f64) -> u64 {
        if self.kept.is_empty() {
            return 0;
        }
        let tangled = Tangled::new(&self.kept, &state.x, world.model().triangles());
        debug_assert_eq!(tangled.outside(), 0, "what is not kept crosses");
        let mut pulled = BTreeSet::new();
        for (tangle, direction) in directions(&self.kept, &tangled, &state.x) {
            let sides =
                [false, true].map(|side| Side::new(&self.kept, world, &self.held, (tangle, side)));
            let [first, second] = sides.each_ref().map(|side| side.velocity(world, goals));
            let lacks = PULL - direction.dot(first - second);
            let mobility: f64 = sides.iter().map(Side::mobility).sum();
            if !(lacks > 0.0 && mobility > 0.0) {
                continue;
            }
            let impulse = direction * (lacks / mobility);
            for (side, impulse) in sides.iter().zip([impulse, -impulse]) {
                let by = impulse * side.mobility();
                for &v in &side.vertices {
                    let end = goals.moved[v] + by * dt;
                    goals.change(v, state.x[v], end, dt);
                    pulled.insert(v);
                }
            }
        }
        pulled.len() as u64
    }

    /// Takes out of the kept set what is free at the end of a substep.
    pub(super) fn shrink(&mut self, world: &World, x: &[DVec3], movers: &[Mover]) {
        if self.kept.is_empty() {
            return;
        }
        let tangled = Tangled::new(&self.kept, x, world.model().triangles());
        let stays = self.at(world, x, movers, true, |step| touching(step, &self.kept));
        self.kept = tangled.shrunk(&self.kept, &stays);
    }

    /// The vertices, each given with a body, of which a feature crosses the body or that are inside
    /// it, at a time in s.
    pub(super) fn still_through(
        &self,
        world: &World,
        pairs: &[[u32; 2]],
        (x, time): (&[DVec3], f64),
        movers: &[Mover],
    ) -> Vec<[u32; 2]> {
        let crossing = self.at(world, x, movers, false, |step| is_crossing(step, pairs));
        let inside = |&[v, body]: &[u32; 2]| world.way_out(body, x[v as usize], time).is_some();
        let pairs = pairs.iter().zip(crossing);
        let through = pairs.filter(|(pair, crossing)| *crossing || inside(pair));
        through.map(|(pair, _)| *pair).collect()
    }

    /// Looks at cloth at rest at such places, in m, beside bodies that rest where they are when a
    /// substep ends.
    fn at<T>(
        &self,
        world: &World,
        x: &[DVec3],
        movers: &[Mover],
        self_collision: bool,
        look: impl FnOnce(&Truncate<'_>) -> T,
    ) -> T {
        let resting: Vec<Mover> = movers.iter().map(Mover::at_its_end).collect();
        let [placed, _] = self.scenery.ends(&resting);
        let all = Positions::new(x, &placed);
        look(&Truncate {
            surface: self.scenery.triangles(),
            tree: self.scenery.tree(),
            start: all,
            goal: all,
            masses: world.model().masses(),
            movable: self.scenery.movable(),
            movers: &resting,
            body_of: self.scenery.body_of(),
            held: &self.held,
            suspended: &[],
            kept: Kept::EMPTY,
            self_collision,
            least: GAP * world.geometry().distances.least(),
        })
    }
}

impl Side {
    /// The velocity that an impulse of 1 N s gives it, in m/s; none if all is held.
    fn mobility(&self) -> f64 {
        if self.mass > 0.0 {
            self.mass.recip()
        } else {
            0.0
        }
    }
}

#[cfg(test)]
mod tests;
