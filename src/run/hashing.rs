//! The state hash of ranks: each hashes its own patches, and few hashes travel.

use weft_partition::{Ownership, TreeSum};
use weft_runtime::comm::{Collectives as _, Comm, CommError, Rank};

use super::error::malformed;
use super::together::broadcast;
use crate::output::{Hashed, NodeHash, StateHash, hash_of_pair, hash_of_patch, state_hash};
use crate::step::{PatchView, Simulation, World};

/// The hash of the state, on all ranks. Collective.
///
/// # Errors
/// Messages failed.
pub fn hash_of(simulation: &Simulation<'_>, comm: &mut dyn Comm) -> Result<StateHash, CommError> {
    let me = comm.rank();
    let tree = TreeSum::new(simulation.ownership());
    let own: Vec<NodeHash> = (simulation.own_patches())
        .map(|patch| hash_of_patch(&patch))
        .collect();
    let own = tree.combine_local(me.index(), &own, &hash_of_pair);
    let own = own.map_err(|error| malformed(me)(error.to_string()))?;
    let gathered = comm.gather(Rank(0), own.as_flattened().to_vec())?;
    let hash = match gathered {
        None => None,
        Some(all) => {
            let mut nodes: Vec<NodeHash> = Vec::new();
            for (from, bytes) in (0..).map(Rank).zip(&all) {
                let (theirs, rest) = bytes.as_chunks();
                let expected = tree.subtrees(from.index()).len();
                if !rest.is_empty() || theirs.len() != expected {
                    let what = format!("not the hashes of {expected} subtrees");
                    return Err(malformed(from)(what));
                }
                nodes.extend(theirs);
            }
            let root = tree.combine(&nodes, &hash_of_pair);
            let root = root.map_err(|error| malformed(me)(error.to_string()))?;
            Some(of_root(simulation, root))
        }
    };
    broadcast(comm, Some(hash.unwrap_or(StateHash(0))))
}

/// The hash of the positions and velocities that this rank has of all vertices, without friction:
/// for where ranks no longer talk to each other.
pub(crate) fn hash_of_replica(world: &World, simulation: &Simulation<'_>) -> StateHash {
    let tree = world.tree();
    let (x, v) = (simulation.positions(), simulation.velocities());
    let patches = (0..tree.patch_count()).map(|patch| {
        let range = tree.patch_vertices(patch);
        hash_of_patch(&PatchView {
            vertices: &tree.new_to_old()[range.clone()],
            positions: &x[range.clone()],
            velocities: &v[range],
            ..PatchView::default()
        })
    });
    let mut nodes: Vec<NodeHash> = patches.collect();
    // There are as many patches as a power of two.
    while nodes.len() > 1 {
        let pairs = nodes.chunks(2);
        nodes = pairs
            .map(|pair| hash_of_pair(pair[0], pair[pair.len() - 1]))
            .collect();
    }
    of_root(simulation, nodes.first().copied().unwrap_or_default())
}

fn of_root(simulation: &Simulation<'_>, root: NodeHash) -> StateHash {
    let ownership: &Ownership = simulation.ownership();
    state_hash(&Hashed {
        step: simulation.step(),
        vertices: ownership.vertices(ownership.ranks() - 1).end as u64,
        root,
        squeezed: &simulation.squeezed(),
        kept: &simulation.kept(),
        adapted: simulation.adapted(),
    })
}

#[cfg(test)]
mod tests {
    use glam::DVec3;
    use weft_runtime::ScopeOptions;
    use weft_runtime::comm::threads::launch;

    use super::*;
    use crate::scene::Scene;

    const SCENE: &str = "partition.patches = 16
        time.step = \"2 ms\"
        [[cloth]]
        grid = { size = 1, vertices = 17 }
        velocity = [0.1, 0, -1]
        material = { density = 0.15, stretch = 1000, bending = 1e-5 }
        [[body]]
        shape = \"plane\"
        friction = 0.5
        point = [0, 0, -0.002]
        normal = [0, 0, 1]\n";

    /// Subtrees that end within a rank and that ranks share give the same root.
    #[test]
    fn ranks_of_any_number_come_to_one_hash() {
        let scene = Scene::parse(SCENE, None, &[]).unwrap();
        let world = World::build(&scene).unwrap();
        let mut hashes = Vec::new();
        for ranks in [1, 2, 3, 5, 7, 16] {
            let of_ranks = launch(ranks, |comm| {
                let mut simulation =
                    Simulation::new(&world, comm, &ScopeOptions::default()).unwrap();
                let before = hash_of(&simulation, comm).unwrap();
                assert_eq!(before, hash_of_replica(&world, &simulation));
                for _ in 0..2 {
                    simulation.advance(comm).unwrap();
                }
                let after = hash_of(&simulation, comm).unwrap();
                assert_ne!(before, after);
                // Friction counts, which only owners know.
                let rubs = simulation.own_patches().any(|patch| {
                    let mut forces = patch.contacts.iter().map(|contact| contact.friction);
                    forces.any(|force| force != DVec3::ZERO)
                });
                (after, rubs, hash_of_replica(&world, &simulation))
            });
            let of_ranks = of_ranks.unwrap();
            let rubs = of_ranks.iter().any(|(_, rubs, _)| *rubs);
            for (after, _, replica) in of_ranks {
                assert_eq!(after == replica, !rubs);
                hashes.push(after);
            }
        }
        assert!(hashes.iter().all(|hash| *hash == hashes[0]), "{hashes:?}");
    }
}
