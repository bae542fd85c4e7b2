//! Sweeps against a serial loop; colours; momentum.

use std::collections::{BTreeMap, BTreeSet};

use glam::{DMat3, DVec3};
use proptest::prelude::*;
use weft_runtime::comm::solo::Solo;
use weft_runtime::comm::threads::launch;

use super::colours::{COLOUR_BITS, Colours, ToColour, find};
use super::*;
use crate::step::response::impulses::Impulses;

/// Constraints by their kinds, and how their vertices move.
#[derive(Clone, Debug)]
struct Crowd {
    kinds: [Vec<Constraint>; 2],
    velocities: Vec<DVec3>,
    /// In 1/kg.
    inverse_masses: Vec<f64>,
}

fn constraint(vertices: [u32; 4], weights: [f64; 4], least_rate: f64, friction: f64) -> Constraint {
    Constraint {
        count: 4,
        vertices,
        weights,
        normal: DVec3::new(0.36, 0.48, 0.8),
        body_velocity: DVec3::ZERO,
        least_rate,
        friction,
    }
}

const VERTICES: u32 = 48;

fn crowd() -> impl Strategy<Value = Crowd> {
    let vertices = prop::collection::btree_set(0..VERTICES, 4);
    let one = (vertices, -0.2..0.4f64, 0.0..0.5f64, any::<bool>());
    let velocity = prop::array::uniform3(-1.0..1.0f64);
    let mass = prop::sample::select(vec![0.0, 1.0, 2.0, 3.0]);
    let vertices = prop::collection::vec((velocity, mass), VERTICES as usize);
    (prop::collection::vec(one, 1..90), vertices).prop_map(|(all, vertices)| {
        let mut kinds = [Vec::new(), Vec::new()];
        let mut named = BTreeSet::new();
        for (corners, least_rate, friction, edges) in all {
            let corners: Vec<u32> = corners.into_iter().collect();
            let corners = [corners[0], corners[1], corners[2], corners[3]];
            if !named.insert((edges, corners)) {
                continue;
            }
            let weights = match edges {
                false => [1.0, -0.2, -0.3, -0.5],
                true => [0.25, 0.75, -0.4, -0.6],
            };
            kinds[usize::from(edges)].push(constraint(corners, weights, least_rate, friction));
        }
        Crowd {
            kinds,
            velocities: vertices
                .iter()
                .map(|(v, _)| DVec3::from_array(*v))
                .collect(),
            inverse_masses: vertices.iter().map(|(_, m)| *m).collect(),
        }
    })
}

impl Crowd {
    /// The rank that owns each vertex, of this number of ranks.
    fn owner(&self, vertex: u32, ranks: usize) -> usize {
        vertex as usize * ranks / self.velocities.len()
    }

    /// The constraints that touch a vertex of a rank, and the runs of each kind.
    fn of_rank(&self, rank: usize, ranks: usize) -> (Vec<Constraint>, Vec<Range<usize>>) {
        let (mut all, mut runs) = (Vec::new(), Vec::new());
        for kind in &self.kinds {
            let start = all.len();
            let touches =
                |c: &&Constraint| c.vertices.iter().any(|&v| self.owner(v, ranks) == rank);
            all.extend(kind.iter().filter(touches).copied());
            runs.push(start..all.len());
        }
        (all, runs)
    }

    fn impulses(&self, rank: usize, ranks: usize, team: &Team) -> (Impulses, Vec<Range<usize>>) {
        let (constraints, runs) = self.of_rank(rank, ranks);
        let mut impulses = Impulses::with_team(team);
        let own = (0..VERTICES).filter(|&v| self.owner(v, ranks) == rank);
        let first = own.clone().next().map_or(0, |v| v as usize);
        impulses.clear(first..first + own.count());
        impulses.extend(constraints);
        impulses.begin();
        for slot in 0..impulses.vertices().len() {
            let vertex = impulses.vertices()[slot] as usize;
            let mobility = DMat3::IDENTITY * self.inverse_masses[vertex];
            impulses.place(slot, self.velocities[vertex], mobility);
        }
        (impulses, runs)
    }

    /// The velocities of a rank's vertices after some sweeps, and how many colours there were.
    fn swept(&self, comm: &mut dyn Comm, threads: usize, sweeps: u32) -> BTreeMap<u32, [u64; 3]> {
        let (me, ranks) = (comm.rank().index(), comm.size());
        let (mut impulses, kinds) = self.impulses(me, ranks, &Team::new(threads).unwrap());
        let owners: Vec<u32> = impulses
            .vertices()
            .iter()
            .map(|&v| self.owner(v, ranks) as u32)
            .collect();
        let owners = Owners {
            me,
            ranks,
            of: &owners,
        };
        let mut sweeping = Sweeps::default();
        sweeping
            .begin(comm, &impulses.swept(), &kinds, owners, [])
            .unwrap();
        for _ in 0..sweeps {
            sweeping.sweep(comm, &mut impulses.swept()).unwrap();
        }
        let own = (0..impulses.vertices().len()).filter(|&slot| owners.of[slot] as usize == me);
        let bits = |slot: usize| impulses.velocity(slot).to_array().map(f64::to_bits);
        own.map(|slot| (impulses.vertices()[slot], bits(slot)))
            .collect()
    }

    /// The colours of all constraints on one rank, by kind and vertices.
    fn colours(&self) -> BTreeMap<(usize, [u32; 4]), u32> {
        let (impulses, kinds) = self.impulses(0, 1, &Team::default());
        let of = vec![0; impulses.vertices().len()];
        let mut impulses = impulses;
        let swept = impulses.swept();
        let slots = 0..swept.mobilities.len();
        let moves: Vec<bool> = slots.map(|slot| swept.mobilities.moves(slot)).collect();
        let to_colour = ToColour {
            graph: swept.graph,
            vertices: swept.vertices,
            moves: &moves,
            kinds: &kinds,
            owners: Owners {
                me: 0,
                ranks: 1,
                of: &of,
            },
        };
        let Colours { of, .. } = find(&mut Solo::new(), &to_colour).unwrap();
        let named = kinds.iter().enumerate().flat_map(|(kind, run)| {
            let graph = swept.graph;
            run.clone()
                .map(move |at| (at, (kind, graph.constraints[at].vertices)))
        });
        named.map(|(at, name)| (name, of[at])).collect()
    }
}

/// The oracle: pairs sorted by kind, colour and vertices, one after the other. Colours are found
/// one by one, too. `swap` exchanges the first two colours of the first kind.
fn serial(crowd: &Crowd, sweeps: u32, swap: bool) -> Vec<DVec3> {
    let moves = |v: u32| crowd.inverse_masses[v as usize] > 0.0;
    let mut sorted: Vec<(usize, u32, [u32; 4], Constraint, Push)> = Vec::new();
    for (kind, constraints) in crowd.kinds.iter().enumerate() {
        let hash = |c: &Constraint| {
            let mixed = crate::collide::certify::mixed;
            c.vertices
                .iter()
                .fold(mixed(kind as u64), |hash, &v| mixed(hash ^ u64::from(v)))
        };
        let mut by_priority = constraints.clone();
        by_priority.sort_by_key(|c| hash(c));
        let mut taken: Vec<BTreeSet<u32>> = vec![BTreeSet::new(); crowd.velocities.len()];
        for c in by_priority {
            let moving: Vec<u32> = c.vertices.into_iter().filter(|&v| moves(v)).collect();
            let free = |colour: &u32| !moving.iter().any(|&v| taken[v as usize].contains(colour));
            let colour = (0..).find(free).unwrap();
            for v in moving {
                taken[v as usize].insert(colour);
            }
            let place = match colour {
                0 | 1 if swap && kind == 0 => 1 - colour,
                _ => colour,
            };
            sorted.push((kind, place, c.vertices, c, Push::default()));
        }
    }
    sorted.sort_by_key(|(kind, colour, name, ..)| (*kind, *colour, *name));
    let mut velocities = crowd.velocities.clone();
    for _ in 0..sweeps {
        for (.., c, push) in &mut sorted {
            let of = |v: u32| VertexMotion {
                velocity: velocities[v as usize],
                load: 0.0,
            };
            let inverse_masses = c.vertices.map(|v| crowd.inverse_masses[v as usize]);
            let mobilities = inverse_masses.map(|m| DMat3::IDENTITY * m);
            let movers = Movers {
                motions: &c.vertices.map(of),
                mobilities: &mobilities.into_iter().collect(),
            };
            let (impulse, _) = c.satisfy(movers, &[0, 1, 2, 3], push);
            for (k, v) in c.vertices.into_iter().enumerate() {
                velocities[v as usize] += movers.mobilities.times(k, impulse * c.weights[k]);
            }
        }
    }
    velocities
}

proptest! {
    #[test]
    fn sweeps_are_those_of_a_serial_loop_on_any_number_of_ranks(
        crowd in crowd(),
        sweeps in 1u32..6,
        threads in 1usize..4,
    ) {
        let expected = serial(&crowd, sweeps, false);
        for ranks in [1, 2, 3, 5, 16] {
            let found = launch(ranks, |comm| crowd.swept(comm, threads, sweeps)).unwrap();
            for (vertex, bits) in found.into_iter().flatten() {
                let expected = expected[vertex as usize].to_array().map(f64::to_bits);
                prop_assert_eq!(bits, expected, "vertex {} of {} ranks", vertex, ranks);
            }
        }
    }

    #[test]
    fn no_two_constraints_of_a_colour_share_a_vertex_that_moves(crowd in crowd()) {
        let colours = crowd.colours();
        let mut seen = BTreeSet::new();
        for ((kind, vertices), colour) in &colours {
            prop_assert_eq!(colour >> COLOUR_BITS, *kind as u32);
            for v in vertices {
                if crowd.inverse_masses[*v as usize] > 0.0 {
                    prop_assert!(seen.insert((*colour, *v)), "vertex {} twice in {}", v, colour);
                }
            }
        }
    }

    #[test]
    fn colours_are_those_of_the_set_of_constraints(crowd in crowd(), by in 1usize..90) {
        let mut shuffled = crowd.clone();
        for kind in &mut shuffled.kinds {
            let by = by % kind.len().max(1);
            kind.rotate_left(by);
            kind.reverse();
        }
        prop_assert_eq!(crowd.colours(), shuffled.colours());
    }

    #[test]
    fn a_sweep_keeps_momentum(mut crowd in crowd()) {
        crowd.inverse_masses.iter_mut().for_each(|m| *m = m.max(0.5));
        let momentum = |velocities: &[DVec3]| -> DVec3 {
            velocities.iter().zip(&crowd.inverse_masses).map(|(v, m)| *v / *m).sum()
        };
        let size: f64 = crowd.inverse_masses.iter().map(|m| 1.0 / m).sum();
        let swept = crowd.swept(&mut Solo::new(), 1, 1);
        let mut after = crowd.velocities.clone();
        for (vertex, bits) in swept {
            after[vertex as usize] = DVec3::from_array(bits.map(f64::from_bits));
        }
        let change = momentum(&after) - momentum(&crowd.velocities);
        prop_assert!(change.length() <= 1e-13 * size, "{change}");
    }
}

/// Two pairs that share a vertex, and cannot both be first.
#[test]
fn the_order_of_colours_shows_in_the_result() {
    let pair = |corners, rate| constraint(corners, [1.0, -0.2, -0.3, -0.5], rate, 0.3);
    let crowd = Crowd {
        kinds: [
            vec![pair([0, 1, 2, 3], 0.5), pair([0, 4, 5, 6], 0.25)],
            vec![],
        ],
        velocities: vec![DVec3::ZERO; VERTICES as usize],
        inverse_masses: vec![1.0; VERTICES as usize],
    };
    assert_eq!(
        crowd
            .colours()
            .values()
            .copied()
            .collect::<BTreeSet<_>>()
            .len(),
        2
    );
    assert!(serial(&crowd, 1, false) != serial(&crowd, 1, true));
    let swept = crowd.swept(&mut Solo::new(), 1, 1);
    let expected = serial(&crowd, 1, false)[0].to_array().map(f64::to_bits);
    assert_eq!(swept[&0], expected);
}

/// Prescribed vertices are no conflict: that many vertices over one triangle are one colour.
#[test]
fn many_contacts_with_one_prescribed_triangle_are_not_a_queue() {
    let count = 5_000;
    let pair = |vertex| constraint([vertex, 0, 1, 2], [1.0, -0.2, -0.3, -0.5], 0.1, 0.3);
    let mut crowd = Crowd {
        kinds: [(3..3 + count).map(pair).collect(), vec![]],
        velocities: vec![DVec3::ZERO; count as usize + 3],
        inverse_masses: vec![1.0; count as usize + 3],
    };
    crowd.inverse_masses[..3].fill(0.0);
    let colours: BTreeSet<u32> = crowd.colours().into_values().collect();
    assert_eq!(colours.len(), 1);
    // A triangle that moves is one: each pair waits for the others.
    crowd.inverse_masses[0] = 1.0;
    let colours: BTreeSet<u32> = crowd.colours().into_values().collect();
    assert_eq!(colours.len(), count as usize);
}
