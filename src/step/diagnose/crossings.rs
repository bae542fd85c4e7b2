//! The crossings of a state, counted by all ranks together.
//!
//! A pair of an edge and a triangle can cross only where the boxes around their patches meet. So
//! ranks tell each other the boxes around their patches, and the owner of a patch is sent the
//! vertices of patches of other ranks that it meets and that have a higher number, unless it knows
//! all vertices. It counts the pairs between both, and those of its patches with bodies. Each pair
//! is counted once on any number of ranks, by exact predicates ([`crate::collide::audit`]).

use std::collections::BTreeMap;

use glam::DVec3;
use weft_runtime::comm::{Collectives as _, Comm, CommError, Rank, Tag};

use crate::collide::Extent;
use crate::collide::audit::{Audited, Skin};
use crate::sparse::Sparse;
use crate::step::Simulation;

/// The tag of messages with the positions of a patch's vertices.
const TAG: Tag = Tag(0x3c);

/// How many pairs of an edge and a triangle cross.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CrossingCounts {
    /// Pairs of cloth and cloth that share no vertex.
    pub layers: u64,
    /// Pairs of cloth and a body that is made of triangles.
    pub bodies: u64,
}

/// Two patches whose boxes meet, the lower first.
type Meeting = [usize; 2];

impl Simulation<'_> {
    /// Counts the pairs of an edge and a triangle that cross in the present state. The numbers are
    /// the same on every rank. Collective.
    ///
    /// # Errors
    /// Messages failed.
    pub fn count_crossings(&self, comm: &mut dyn Comm) -> Result<CrossingCounts, CommError> {
        let meetings = self.meetings(comm)?;
        let copied = match self.state.is_whole() {
            true => None,
            false => Some(self.positions_for(comm, &meetings)?),
        };
        let x = copied.as_ref().map_or(&self.state.x[..], |x| &x[..]);
        let own = self.count_own(&meetings, x);
        let mut all = CrossingCounts::default();
        let said = bytemuck::bytes_of(&[own.layers, own.bodies]).to_vec();
        for (from, bytes) in (0..).map(Rank).zip(comm.allgather(said)?) {
            let [layers, bodies]: [u64; 2] = bytemuck::try_pod_read_unaligned(&bytes)
                .map_err(|_| malformed(from, "not two numbers of crossings"))?;
            all.layers += layers;
            all.bodies += bodies;
        }
        Ok(all)
    }

    /// The pairs of patches whose boxes meet and of which this rank owns one. Collective.
    fn meetings(&self, comm: &mut dyn Comm) -> Result<Vec<Meeting>, CommError> {
        let surface = self.world.geometry().cloth;
        let ownership = self.ownership();
        let own = self.domain.patches();
        let mut boxes = vec![[0.0; 6]; ownership.patch_count()];
        for patch in own.clone() {
            let vertices = surface.patch_vertices()[patch].iter();
            let around = vertices.fold(Extent::EMPTY, |around, &v| {
                around.with(self.state.x[v as usize])
            });
            let [low, high] = [around.low, around.high].map(|corner| corner.to_array());
            boxes[patch] = [low[0], low[1], low[2], high[0], high[1], high[2]];
        }
        let lengths: Vec<usize> = (0..comm.size())
            .map(|rank| ownership.patches(rank).len() * size_of::<[f64; 6]>())
            .collect();
        comm.allgather_into(&lengths, bytemuck::cast_slice_mut(&mut boxes))?;
        let meets = |a: usize, b: usize| {
            let (a, b) = (&boxes[a], &boxes[b]);
            (0..3).all(|axis| a[axis] <= b[axis + 3] && b[axis] <= a[axis + 3])
        };
        let mut meetings = Vec::new();
        for patch in own.clone() {
            // A pair of which both are own is there once.
            let others = (0..boxes.len()).filter(|&other| other > patch || !own.contains(&other));
            let met = others.filter(|&other| other != patch && meets(patch, other));
            meetings.extend(met.map(|other| [patch.min(other), patch.max(other)]));
        }
        meetings.sort_unstable();
        Ok(meetings)
    }

    /// The positions of all vertices that this rank's part of the count reads: those that it knows,
    /// and those of patches that its own meet. Collective.
    fn positions_for(
        &self,
        comm: &mut dyn Comm,
        meetings: &[Meeting],
    ) -> Result<Sparse<DVec3>, CommError> {
        let vertices_of = self.world.geometry().cloth.patch_vertices();
        let (ownership, own) = (self.ownership(), self.domain.patches());
        // The patches whose vertices travel to each rank, and from each.
        let mut gives: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        let mut takes: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for &[low, high] in meetings {
            let (reader, owner) = (ownership.rank_of_patch(low), ownership.rank_of_patch(high));
            if reader == owner {
                continue;
            }
            let of = match own.contains(&high) {
                true => gives.entry(reader).or_default(),
                false => takes.entry(owner).or_default(),
            };
            of.push(high);
        }
        for patches in gives.values_mut().chain(takes.values_mut()) {
            patches.sort_unstable();
            patches.dedup();
        }
        let mut x = self.state.x.clone_of(self.state.runs_here());
        for (&reader, patches) in &gives {
            let vertices = patches.iter().flat_map(|&patch| vertices_of[patch].iter());
            let values: Vec<DVec3> = vertices.map(|&v| self.state.x[v as usize]).collect();
            comm.send(
                Rank(reader as u32),
                TAG,
                bytemuck::cast_slice(&values).to_vec(),
            )?;
        }
        for (&owner, patches) in &takes {
            let from = Rank(owner as u32);
            let bytes = comm.recv_from(from, TAG)?;
            let mut values = bytes.chunks_exact(size_of::<DVec3>());
            let count: usize = patches.iter().map(|&patch| vertices_of[patch].len()).sum();
            if bytes.len() != count * size_of::<DVec3>() {
                return Err(malformed(from, "not the vertices of the patches that meet"));
            }
            let vertices = patches.iter().flat_map(|&patch| vertices_of[patch].iter());
            for (&vertex, bytes) in vertices.zip(&mut values) {
                x[vertex as usize] = bytemuck::pod_read_unaligned(bytes);
            }
        }
        Ok(x)
    }

    /// Counts the pairs within own patches, of these with bodies, and of those that meet of which
    /// the lower is this rank's.
    fn count_own(&self, meetings: &[Meeting], x: &[DVec3]) -> CrossingCounts {
        let cloth = self.world.geometry().cloth;
        let skin = |patch: usize| Skin::of_tree(cloth.surface(), &cloth.patches()[patch], x);
        let bodies = self.world.audited_bodies(self.time());
        let mut skins: BTreeMap<usize, Skin<'_>> = BTreeMap::new();
        let mut counts = CrossingCounts::default();
        for patch in self.domain.patches() {
            let skin = skins.entry(patch).or_insert_with(|| skin(patch));
            counts.layers += skin.crossings().len() as u64;
            for (_, body) in &bodies {
                if let Audited::Triangles(body) = body {
                    counts.bodies += skin.crossings_with(body).pairs() as u64;
                }
            }
        }
        for &[low, high] in meetings {
            if self.domain.patches().contains(&low) {
                skins.entry(high).or_insert_with(|| skin(high));
                counts.layers += skins[&low].crossings_beside(&skins[&high]) as u64;
            }
        }
        counts
    }
}

fn malformed(from: Rank, what: &str) -> CommError {
    CommError::Malformed {
        from,
        what: what.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use weft_runtime::ScopeOptions;
    use weft_runtime::comm::threads::launch;

    use super::*;
    use crate::scene::Scene;
    use crate::step::World;

    /// Two sheets that cross each other, and a box, counted by several ranks and as one surface.
    #[test]
    fn ranks_count_together_what_one_surface_has() {
        let text = |state: &str| {
            format!(
                r#"
                partition = {{ patches = 16, state = "{state}" }}
                contact = {{ thickness = "2 mm", certify = false, self_collision = false }}
                [[cloth]]
                grid = {{ size = 1, vertices = 17 }}
                velocity = [0.2, 0, 1]
                material = {{ density = 0.15, stretch = 1000, bending = 1e-5 }}
                [[cloth]]
                grid = {{ size = 1.1, vertices = 19 }}
                rotation = ["50 deg", "10 deg", "3 deg"]
                material = {{ density = 0.15, stretch = 1000, bending = 1e-5 }}
                [[body]]
                shape = "box"
                center = [0.2, 0.1, -0.3]
                size = [0.2, 0.2, 0.2]
                surface = "triangles"
                edge = 0.05
                "#
            )
        };
        let mut seen = Vec::new();
        for state in ["replicated", "subscribed"] {
            let scene = Scene::parse(&text(state), None, &[]).unwrap();
            let world = World::build(&scene).unwrap();
            for ranks in [1, 3, 7] {
                let counts = launch(ranks, |comm| {
                    let options = ScopeOptions::default();
                    let mut simulation = Simulation::new(&world, comm, &options).unwrap();
                    simulation.complete(comm).unwrap();
                    simulation.state_mut().0.iter_mut().for_each(|x| x.z -= 0.3);
                    simulation.advance(comm).unwrap();
                    let counts = simulation.count_crossings(comm).unwrap();
                    simulation.complete(comm).unwrap();
                    let surface = world.geometry().cloth.surface();
                    let skin = Skin::of_surface(surface, simulation.positions());
                    let whole = CrossingCounts {
                        layers: skin.crossings().len() as u64,
                        bodies: world.crossings_of(&skin, simulation.time()) as u64,
                    };
                    assert_eq!(counts, whole, "{ranks} ranks");
                    counts
                });
                seen.extend(counts.unwrap());
            }
        }
        assert!(seen[0].layers > 20 && seen[0].bodies > 20, "{:?}", seen[0]);
        assert!(seen.iter().all(|counts| *counts == seen[0]));
    }
}
