//! Bits that are equal on any number of ranks and threads, and after any other steps.

use weft_balance::cost_model::CostModel;

use super::*;
use crate::step::Effort;
use crate::step::contact::contacts::Contacts;
use crate::step::system::linear_system::Following;

/// The promise: positions and velocities equal to the bit, whatever the ranks, workers and
/// schedule.
#[test]
fn the_state_does_not_depend_on_ranks_workers_or_stealing() {
    the_state_is_the_same_on(&EVERYWHERE, &world(&drape()));
}

#[test]
fn the_state_does_not_depend_on_ranks_with_patches_swept_either() {
    let text = drape() + "[solver]\npreconditioner = \"patch-ssor\"\n";
    the_state_is_the_same_on_some(&world(&text));
}

#[test]
fn the_state_of_sweeps_does_not_depend_on_ranks_either() {
    for response in ["gauss-seidel", "both"] {
        let contact = format!("[contact]\nresponse = \"{response}\"\n");
        let text = drape().replace("[contact]\n", &contact);
        let world = world(&text);
        assert_eq!(world.scene().contact.response.name(), response);
        the_state_is_the_same_on_some(&world);
    }
}

#[test]
fn reports_tell_the_colours_of_sweeps_and_the_messages_of_the_response() {
    // Two sheets fly at each other: each is of other ranks.
    let sheets = "partition.patches = 8\ntime.step = \"2 ms\"\n\
                  [[cloth]]\ngrid = { size = 0.3, vertices = 16 }\nvelocity = [0, 0, 0.5]\n\
                  material = { density = 0.15, stretch = 1000, bending = 1e-5 }\n\
                  [[cloth]]\ngrid = { size = 0.3, vertices = 15 }\ncenter = [0.01, 0.02, 0.006]\n\
                  velocity = [0, 0, -0.5]\n\
                  material = { density = 0.15, stretch = 1000, bending = 1e-5 }\n\
                  [contact]\nthickness = \"4 mm\"\n";
    // The efforts of each step.
    let efforts = |response: &str, comm: &mut dyn Comm| {
        let world = world(&format!("{sheets}response = \"{response}\"\n"));
        let mut simulation = Simulation::new(&world, comm, &ScopeOptions::default()).unwrap();
        let reports = (0..6).map(|_| simulation.advance(comm).unwrap());
        let reports: Vec<_> = reports.collect();
        assert!(reports.iter().any(|report| report.rounds > 0));
        let of_steps = reports.into_iter().map(|report| report.sweeps);
        of_steps.collect::<Vec<Effort>>()
    };
    let all = |of_steps: &[Effort]| {
        let mut all = Effort::default();
        of_steps.iter().for_each(|of| all.add(*of));
        all
    };
    let alone = efforts("gauss-seidel", &mut Solo::new());
    let Effort {
        colours,
        messages,
        colouring_rounds,
    } = all(&alone);
    assert!(
        colours > 2 && (messages, colouring_rounds) == (0, 0),
        "{alone:?}"
    );
    assert_eq!(all(&efforts("jacobi", &mut Solo::new())), Effort::default());
    let two = launch(2, |comm| efforts("gauss-seidel", comm)).unwrap();
    let of_ranks: Vec<Effort> = two.iter().map(|of| all(of)).collect();
    assert!(of_ranks.iter().all(|of| of.messages > 0), "{of_ranks:?}");
    let rounds = of_ranks[0].colouring_rounds;
    assert!(rounds > 0 && of_ranks.iter().all(|of| of.colouring_rounds == rounds));
    // Every colour of a rank is one of all, and every one of all is one of a rank.
    for (step, alone) in alone.iter().enumerate() {
        let of_step = two.iter().map(|of| of[step].colours);
        let (most, sum) = (of_step.clone().max().unwrap_or(0), of_step.sum());
        assert!((most..=sum).contains(&alone.colours), "step {step}");
    }
    let two = launch(2, |comm| efforts("jacobi", comm)).unwrap();
    let of_ranks: Vec<Effort> = two.iter().map(|of| all(of)).collect();
    assert!(of_ranks.iter().all(|of| of.colours == 0));
    assert!(of_ranks.iter().all(|of| of.messages > 0), "{of_ranks:?}");
}

#[test]
fn the_state_of_woven_cloth_in_wind_does_not_depend_on_ranks_either() {
    let membrane = "stretch = [1000, 600]\nshear = 60\ndamping_shear = \"2 ms\"\ndrag_normal = 1.2\n\
                    drag_tangential = 0.1";
    let text = drape()
        .replace("stretch = \"1000 N/m\"", membrane)
        .replace("bending = \"1e-5 N m\"", "bending = [2e-5, 1e-5]");
    the_state_is_the_same_on_some(&world(&(text + "[air]\nwind = [1, 0, 0]\n")));
}

#[test]
fn the_state_of_cloth_that_bends_by_triangles_does_not_depend_on_ranks_either() {
    for model in ["quadratic", "dihedral"] {
        let bending =
            format!("bending = [2e-5, 1e-5]\nbending_bias = 3e-6\nbending_model = \"{model}\"");
        let text = drape().replace("bending = \"1e-5 N m\"", &bending);
        let world = world(&text);
        let cloth = world.model();
        let [plates, shells] = [cloth.quadratic().plates.len(), cloth.shells().len()];
        assert!((plates > 0) == (model == "quadratic") && (shells > 0) != (plates > 0));
        let state = |comm: &mut dyn Comm| {
            let (x, v, _) = state_after(&world, 12, comm, &ScopeOptions::default());
            (x, v)
        };
        let expected = state(&mut Solo::new());
        for ranks in [2, 5] {
            for found in launch(ranks, |comm| state(comm)).unwrap() {
                assert!(found == expected, "{model}, {ranks} ranks");
            }
        }
    }
}

#[test]
fn the_state_of_sprung_and_folding_cloth_does_not_depend_on_ranks_either() {
    let text = drape()
        .replace(
            "stretch = \"1000 N/m\"",
            "model = \"springs\"\nstretch = 500",
        )
        .replace("poisson = 0.3", "bending_model = \"dihedral\"");
    the_state_is_the_same_on_some(&world(&text));
    let text = text.replace("\"dihedral\"", "\"springs\"");
    the_state_is_the_same_on_some(&world(&text));
}

/// A simulation without the order moves cloth as one with it does, but for rounding, which depends
/// on the ranks.
#[test]
fn without_its_order_a_step_is_the_same_but_for_rounding() {
    // Solves that go on to the last digit do not stop an iteration earlier.
    let world = world(&(drape() + "[solver]\ntolerance = 1e-11\n"));
    let after = |ranks: usize, ordered: bool| {
        let states = launch(ranks, |comm| {
            let options = ScopeOptions::default();
            let mut simulation = Simulation::new(&world, &*comm, &options).unwrap();
            if !ordered {
                simulation.forget_order();
            }
            for _ in 0..20 {
                simulation.advance(comm).unwrap();
            }
            simulation.positions().to_vec()
        });
        states.unwrap().remove(0)
    };
    let expected = after(1, true);
    assert!(after(3, true) == expected);
    let mut moved = false;
    for ranks in [1, 3] {
        let found = after(ranks, false);
        let apart = expected.iter().zip(&found).map(|(a, b)| a.distance(*b));
        let most = apart.fold(0.0, f64::max);
        assert!(most < 1e-7, "{most:e} m on {ranks} ranks");
        moved |= most > 0.0;
    }
    assert!(moved, "sums have an order all the same");
}

/// Ranks, workers, whether they steal, and seeds.
const EVERYWHERE: [(usize, usize, bool, u64); 5] = [
    (3, 2, true, 2),
    (1, 3, true, 5),
    (2, 1, true, 1),
    (7, 1, true, 3),
    (2, 3, false, 4),
];

/// Compares the state on three ranks of two workers, and on one of three, with that on one.
fn the_state_is_the_same_on_some(world: &World) {
    the_state_is_the_same_on(&EVERYWHERE[..2], world);
}

fn the_state_is_the_same_on(these: &[(usize, usize, bool, u64)], world: &World) {
    let expected = state_after(world, 60, &mut Solo::new(), &ScopeOptions::default());
    for &(ranks, workers, steal, seed) in these {
        let options = ScopeOptions {
            workers,
            policy: Policy {
                steal,
                ..Policy::default()
            },
            seed,
            ..ScopeOptions::default()
        };
        for got in launch(ranks, |comm| state_after(world, 60, comm, &options)).unwrap() {
            assert!(
                got == expected,
                "{ranks} ranks, {workers} workers, stealing {steal}"
            );
        }
    }
}

/// Values that are kept from system to system are those of this one's times.
#[test]
fn a_system_does_not_depend_on_the_ones_before() {
    let world = world(&sheet(7, "", ""));
    let rows = world.model().start().len();
    let x: Vec<DVec3> = (0..rows)
        .map(|i| DVec3::splat(i as f64).map(f64::sin))
        .collect();
    let product = |s: &mut Simulation<'_>| {
        let system = s.free_system(&mut Solo::new()).unwrap();
        let mut y = vec![DVec3::ZERO; rows];
        system.matrix.multiply(&x, &mut y, Rows::All);
        (y, system.rhs.to_vec())
    };
    let options = ScopeOptions::default();
    let new = || Simulation::new(&world, &Solo::new(), &options).unwrap();
    let expected = product(&mut new());
    let mut other = new();
    for [tau, stiff] in [[2e-3, 2e-3], [2e-3, 5e-3], [5e-3, 2e-3]] {
        other.load_local();
        let following = Following {
            tau,
            stiff,
            time: 0.0,
        };
        let system = &mut other.system;
        let assembled = system.assemble_here(&world, &other.local, following);
        assembled.unwrap();
        let mut y = vec![DVec3::ZERO; rows];
        other.system.matrix.multiply(&x, &mut y, Rows::All);
        assert_ne!(y, expected.0);
        assert_eq!(product(&mut other), expected);
    }
}

fn state_after(world: &World, steps: u32, comm: &mut dyn Comm, options: &ScopeOptions) -> Bits {
    let mut s = Simulation::new(world, &*comm, options).unwrap();
    let seen = take(&mut s, steps, comm);
    bits(&s, seen)
}

#[test]
fn no_integrator_depends_on_ranks() {
    for way in &WAYS {
        let world = way.world();
        let options = ScopeOptions::default();
        let expected = state_after(&world, way.steps, &mut Solo::new(), &options);
        let seen = expected.2;
        assert!(
            seen.constrained && seen.pushed > 0,
            "{}: no contact",
            way.name
        );
        assert_eq!(
            seen.halvings > 0,
            way.name.contains("cut"),
            "{}: {seen:?}",
            way.name
        );
        match way.name {
            "euler, Newton, cut" => assert!(seen.systems > way.steps, "{seen:?}"),
            // More where bodies cannot do what a solve asks of them.
            "newmark" => assert!(seen.systems >= 2 * way.steps, "{seen:?}"),
            "central" | "bdf2" => assert!(seen.systems >= way.steps, "{seen:?}"),
            _ => {}
        }
        for (ranks, workers) in [(3, 1), (2, 2)] {
            let options = ScopeOptions {
                workers,
                ..ScopeOptions::default()
            };
            for got in launch(ranks, |comm| state_after(&world, way.steps, comm, &options)).unwrap()
            {
                assert!(got == expected, "{}: {ranks} ranks {:?}", way.name, got.2);
            }
        }
    }
}

/// The state has everything that the next step depends on, whichever rank goes on from it.
#[test]
fn every_integrator_goes_on_from_its_state_on_other_ranks() {
    for way in &WAYS {
        let world = way.world();
        let options = ScopeOptions::default();
        let half = way.steps / 2 + 3;
        let mut comm = Solo::new();
        let mut s = Simulation::new(&world, &comm, &options).unwrap();
        take(&mut s, half, &mut comm);
        let state = s.gather_state(&mut comm).unwrap().unwrap();
        assert_eq!(state.past.is_some(), way.name.contains("bdf2"));
        take(&mut s, way.steps - half, &mut comm);
        let expected = bits(&s, Seen::default());
        for got in launch(3, |comm| {
            let mut s = Simulation::new(&world, comm, &options).unwrap();
            s.restore(&state).unwrap();
            take(&mut s, way.steps - half, comm);
            let again = s.gather_state(comm).unwrap();
            (bits(&s, Seen::default()), again)
        })
        .unwrap()
        {
            assert!(got.0 == expected, "{}", way.name);
            if let Some(again) = got.1 {
                assert_eq!(
                    again,
                    s.gather_state(&mut comm).unwrap().unwrap(),
                    "{}",
                    way.name
                );
            }
        }
    }
}

/// The findings of all ranks together, through trees, tasks, splits and thieves, equal those of
/// testing every pair of triangles, and each pair of features is found once.
#[test]
fn ranks_that_steal_find_what_brute_force_finds() {
    let world = world(&sheet(
        24,
        "center = [0, 0, 0.3]",
        "[partition]\npatches = 16\n[[body]]\nshape = \"sphere\"\ncenter = [0, 0, 0]\nradius = 0.2\n\
         edge = \"5 cm\"\n[contact]\nthickness = \"8 mm\"",
    ));
    let rest = world.model().start();
    // Crumpled into a ball that overlaps the sphere.
    let fold = |p: &DVec3| {
        DVec3::new(
            (9.0 * p.x).sin(),
            (8.0 * p.y).sin(),
            (7.0 * (p.x + p.y)).cos(),
        ) * 0.15
    };
    let x: Vec<DVec3> = rest.iter().map(fold).collect();
    let v: Vec<DVec3> = rest.iter().map(|p| DVec3::new(p.y, -p.x, 0.5)).collect();
    let geometry = world.geometry();
    let mut volumes = Volumes::default();
    let expected = brute_force(&Snapshot::new(&geometry, &mut volumes, &x, &v, 0.0, 0.005));
    assert!(expected.len() > 1000, "{}", expected.len());
    // When threads of ranks get a core is the system's affair: something moves in some of these
    // runs, not in each.
    let (mut splits, mut moved) = (0, 0);
    for (ranks, seed) in [(1, 0), (2, 1), (3, 2), (7, 3), (16, 4)] {
        for split in [
            Split::OLDEST,
            Split::EVERY_OTHER,
            Split::HALF,
            Split::WEIGHT,
        ] {
            let options = ScopeOptions {
                slice: 16,
                policy: Policy {
                    split,
                    low_water: 4,
                    interval: Interval::Fixed(Duration::ZERO),
                    ..Policy::FORECAST
                },
                seed,
                workers: 1 + ranks % 2,
                ..ScopeOptions::default()
            };
            let found = launch(ranks, |comm| {
                let ownership = Ownership::new(world.tree(), ranks).unwrap();
                let me = comm.rank().index();
                let mut volumes = Volumes::default();
                let team = Team::new(options.workers).unwrap();
                let mut balancer = Balancer::default();
                // First tests are forked by owners, then by what they have cost.
                [(); 2].map(|()| {
                    let mut snapshot = Snapshot::new(&geometry, &mut volumes, &x, &v, 0.0, 0.005);
                    if ranks > 1 {
                        snapshot = snapshot.by_subtrees();
                    }
                    let search = Search {
                        snapshot: &snapshot,
                        geometry: &geometry,
                        ownership: &ownership,
                        options: &options,
                        team: &team,
                        cost_model: &CostModel::REAL,
                        keeps_candidates: false,
                        subscribed: false,
                        lending: None,
                    };
                    let mut contacts = Contacts::default();
                    let Searched { report, .. } =
                        detect(comm, &search, &mut balancer, &mut contacts).unwrap();
                    // Contacts go to all owners of their vertices; the first vertex's counts.
                    let counted = contacts
                        .all(geometry.cloth.surface())
                        .filter(|c| ownership.rank_of_vertex(c.vertices[0] as usize) == me);
                    (counted.collect::<Vec<_>>(), report.splits, report.tasks_in)
                })
            })
            .unwrap();
            for time in [0, 1] {
                let found = found.iter().map(|both| &both[time]);
                splits += found.clone().map(|f| f.1).sum::<u64>();
                moved += found.clone().map(|f| f.2).sum::<u64>();
                let mut all: Vec<Contact> = found.clone().flat_map(|f| f.0.clone()).collect();
                all.sort_unstable_by_key(|c| c.id);
                assert_eq!(all, expected, "{ranks} ranks, {split:?}");
            }
        }
    }
    assert!(splits > 0 && moved > 0, "{splits} splits, {moved} moved");
}
