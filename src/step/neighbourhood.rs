//! Facts about a patch that a stage may ask for by its number, whichever rank owns it.
//!
//! Code names a patch and gets its state and its triangles; it does not know how they came here.
//! Today every rank holds all patches ([`Replica`]). A rank that holds its own patches and those
//! near to them can give the same answers, with the same bits.
//!
//! Collision detection, which reads vertices by number, and the loops that foresee and move all
//! vertices still read the replicated arrays themselves.

use std::ops::Range;

use super::state::{State, StateView};
use super::world::World;

/// A triangle of the cloth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Triangle {
    /// Its number in the numbering of the patch tree.
    pub(crate) number: u32,
    /// The numbers of its corners.
    pub(crate) corners: [u32; 3],
}

/// State and topology of patches.
pub(crate) trait Neighbourhood {
    /// The numbers of a patch's vertices.
    fn vertices(&self, patch: usize) -> Range<usize>;

    /// Positions and velocities of a patch's vertices at the start of the substep, in their order.
    fn state(&self, patch: usize) -> StateView<'_>;

    /// The triangles with a corner in a patch, ascending.
    fn triangles(&self, patch: usize) -> impl Iterator<Item = Triangle>;

    /// The triangles with a corner in one of several patches, ascending, each once.
    fn triangles_of(&self, patches: Range<usize>) -> Vec<Triangle> {
        let all = patches.flat_map(|patch| self.triangles(patch));
        let mut all: Vec<Triangle> = all.collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

/// A neighbourhood of all patches, which every rank holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Replica<'a> {
    pub(crate) world: &'a World,
    pub(crate) state: &'a State,
}

impl Neighbourhood for Replica<'_> {
    fn vertices(&self, patch: usize) -> Range<usize> {
        self.world.tree().patch_vertices(patch)
    }

    fn state(&self, patch: usize) -> StateView<'_> {
        self.state.of(self.vertices(patch))
    }

    fn triangles(&self, patch: usize) -> impl Iterator<Item = Triangle> {
        let corners = self.world.model().triangles();
        let numbers = self.world.patch_triangles().of(patch);
        numbers.map(move |number| Triangle {
            number,
            corners: corners[number as usize],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::Scene;
    use crate::team::Team;

    #[test]
    fn a_patch_has_its_vertices_and_every_triangle_that_touches_it() {
        let text = "partition.patches = 4\n[[cloth]]\ngrid = { size = 1, vertices = 12 }\n\
                    material = { density = 0.15, stretch = 1000, bending = 1e-5 }\n";
        let world = World::build(&Scene::parse(text, None, &[]).unwrap()).unwrap();
        let state = State::new(&world, Team::default().cut_even(144));
        let replica = Replica {
            world: &world,
            state: &state,
        };
        let mut vertices = 0;
        for patch in 0..4 {
            let own = replica.vertices(patch);
            vertices += own.len();
            assert_eq!(replica.state(patch).x, &world.model().start()[own.clone()]);
            let touches = |t: &[u32; 3]| t.iter().any(|&v| own.contains(&(v as usize)));
            let all = (0..).zip(world.model().triangles());
            let expected = all.filter(|(_, corners)| touches(corners));
            let expected = expected.map(|(number, &corners)| Triangle { number, corners });
            assert!(replica.triangles(patch).eq(expected));
        }
        assert_eq!(vertices, 144);
        let all = replica.triangles_of(0..4);
        assert!(
            all.iter()
                .map(|t| t.number)
                .eq(0..world.model().triangles().len() as u32)
        );
    }
}
