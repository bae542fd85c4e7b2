//! Ranks that know the state of what their tests read come to the state of those that know all.

use std::collections::BTreeSet;

use weft_runtime::comm::virtual_time::{self, VirtualOptions};

use super::*;
use crate::sparse::Sparse;
use crate::step::domain::{Domain, Place};
use crate::step::exchange::subscriptions::{Meetings, Subscriptions};

/// A sheet that falls on its edge and folds over a ball, in patches of a few dozen vertices.
fn folding(state: &str) -> String {
    let partition = format!("partition = {{ patches = 32, state = \"{state}\" }}\n");
    let text = drape()
        .replace("vertices = 25", "vertices = 41")
        .replace("0.22]", "0.22]\nvelocity = [0, 0, -6]")
        .replace("step = \"5 ms\"", "step = \"10 ms\"")
        .replace("thickness = \"4 mm\"", "thickness = \"1 mm\"");
    partition + &text + LOOSE
}

/// Solves that take little time.
const LOOSE: &str = "[solver]\ntolerance = 1e-2\npreconditioner = \"block-jacobi\"\n";

/// The bits that tests of ranks compare, once every rank has the whole state.
fn completed(world: &World, steps: u32, comm: &mut dyn Comm) -> (Bits, u64, u64) {
    let mut s = Simulation::new(world, &*comm, &ScopeOptions::default()).unwrap();
    let (mut bytes, mut hits) = (0, 0);
    let mut seen = Seen::default();
    for _ in 0..steps {
        let report = s.advance(comm).unwrap();
        seen.pushed += all_reduce(comm, report.impulses as f64, |a, b| a + b).unwrap() as u64;
        bytes += report.state_bytes;
        hits += report.certified.hits;
    }
    s.complete(comm).unwrap();
    (bits(&s, seen), bytes, hits)
}

#[test]
fn the_state_does_not_depend_on_what_ranks_know() {
    let steps = 14;
    let (expected, none, hits) = completed(&world(&folding("replicated")), steps, &mut Solo::new());
    assert!(
        expected.2.pushed > 0 && none == 0 && hits > 0,
        "{hits} hits"
    );
    let world = world(&folding("subscribed"));
    for (got, bytes, met) in launch(16, |comm| completed(&world, steps, comm)).unwrap() {
        assert!(got == expected && bytes > 0 && met == hits);
    }
}

/// Where a small piece of cloth flies into a large one, vertices are slowed down so much that what
/// they may cross is searched for anew. Ranks are sent what is around these, and not the motion of
/// all cloth.
#[test]
fn only_what_is_near_vertices_that_are_slowed_down_is_sent() {
    const STEPS: u32 = 8;
    let scene = |state: &str| {
        let partition = format!("partition = {{ patches = 256, state = \"{state}\" }}\n");
        let sheet = sheet(61, "center = [0, 0, 0]", "");
        let piece = sheet.split_once("[[cloth]]").map_or("", |(_, cloth)| cloth);
        let piece = piece
            .replace("name = \"sheet\"", "name = \"piece\"")
            .replace("size = \"1 m\"", "size = \"0.06 m\"")
            .replace("vertices = 61", "vertices = 5")
            .replace(
                "center = [0, 0, 0]",
                "center = [0.02, 0.01, 0.02]\nvelocity = [0, 0, -6]",
            );
        let more = "[contact]\nthickness = \"2 mm\"\n";
        let text = format!("{partition}{sheet}[[cloth]]{piece}{more}{LOOSE}");
        world(&text.replace("step = \"5 ms\"", "step = \"2 ms\""))
    };
    let replicated = scene("replicated");
    let mut slowed = 0.0f64;
    let mut last: Vec<DVec3> = replicated.start_velocities();
    run(&replicated, STEPS, |s| {
        let changes = s.velocities().iter().zip(&last);
        slowed = changes.fold(slowed, |most, (v, last)| v.distance(*last).max(most));
        last = s.velocities().to_vec();
    });
    // In 2 ms that is more than half the reach of contacts, 1.5 mm.
    assert!(slowed > 2.0, "by {slowed} m/s");
    let (expected, _, hits) = completed(&replicated, STEPS, &mut Solo::new());
    let world = scene("subscribed");
    let ranks = launch(3, |comm| {
        let mut s = Simulation::new(&world, &*comm, &ScopeOptions::default()).unwrap();
        let (mut gathered, mut all) = (0, 0);
        for _ in 0..STEPS {
            let report = s.advance(comm).unwrap();
            all += report.certified.hits;
            gathered += report.gathered;
        }
        s.complete(comm).unwrap();
        (bits(&s, expected.2), gathered, all)
    });
    for (got, gathered, all) in ranks.unwrap() {
        assert!(got == expected && all == hits);
        assert_eq!(gathered, 0);
    }
}

/// In virtual time, where each test takes some nanoseconds, it is the same ones that are stolen in
/// each run.
#[test]
fn stolen_tests_read_what_their_owners_lend() {
    let steps = 12;
    let expected = completed(&world(&folding("replicated")), steps, &mut Solo::new());
    let world = world(&folding("subscribed"));
    let run = |policy: Policy| {
        let options = ScopeOptions {
            policy,
            ..ScopeOptions::default()
        };
        let body = |comm: &mut dyn Comm| {
            let mut s = Simulation::new(&world, &*comm, &options).unwrap();
            let (mut stolen, mut hits) = (0, 0);
            for _ in 0..steps {
                let report = s.advance(comm).unwrap();
                stolen += report.scope.tasks_in;
                hits += report.certified.hits;
            }
            s.complete(comm).unwrap();
            (bits(&s, expected.0.2), hits, stolen)
        };
        virtual_time::launch(8, &VirtualOptions::default(), body)
            .unwrap()
            .results
    };
    for (policy, steals) in [(Policy::default(), true), (Policy::STATIC, false)] {
        let ranks = run(policy);
        let stolen: u64 = ranks.iter().map(|(_, _, stolen)| stolen).sum();
        assert_eq!(stolen > 0, steals, "{stolen}");
        for (bits, hits, _) in ranks {
            assert!(bits == expected.0 && hits == expected.2);
        }
    }
    assert!(expected.2 > 0, "certification had nothing to do");
}

#[test]
fn no_integrator_depends_on_what_ranks_know() {
    // One that looks back and takes substeps back, and one with other velocities at the end.
    let some = ["bdf2, cut", "newmark"];
    for way in WAYS.iter().filter(|way| some.contains(&way.name)) {
        let steps = way.steps.min(40);
        let text = way.text().replace("[solver]\n", LOOSE);
        let in_patches = |state: &str| {
            let partition = format!("partition = {{ patches = 16, state = \"{state}\" }}\n");
            world(&(partition + &text))
        };
        let expected = completed(&in_patches("replicated"), steps, &mut Solo::new());
        let world = in_patches("subscribed");
        for got in launch(3, |comm| completed(&world, steps, comm)).unwrap() {
            assert!(got.0 == expected.0 && got.2 == expected.2, "{}", way.name);
        }
    }
}

/// The vertices that tests of a rank read, by comparing all patches with all: the corners of
/// triangles around the triangles of patches that its own meet.
fn read_by_brute_force(s: &Simulation<'_>, own: std::ops::Range<usize>) -> BTreeSet<u32> {
    let world = s.world;
    let geometry = world.geometry();
    let fall = DVec3::new(0.0, 0.0, -9.81) * world.scene().time.step;
    let foreseen: Vec<DVec3> = s.velocities().iter().map(|v| *v + fall).collect();
    let mut volumes = Volumes::default();
    let step = world.scene().time.step;
    let (x, at) = (s.positions(), s.time());
    let snapshot = Snapshot::new(&geometry, &mut volumes, x, &foreseen, at, step);
    let patches = geometry.cloth.patches().len();
    let all: Vec<usize> = (0..patches).collect();
    let roots = snapshot.roots(&all);
    let meets = |one: usize, other: usize| {
        let of = |patch: usize| crate::collide::Kdop18::from_numbers(roots[patch]);
        of(one).overlaps(&of(other))
    };
    let triangles = world.model().triangles();
    let mut read = BTreeSet::new();
    for patch in (0..patches).filter(|&p| own.clone().any(|of| of == p || meets(of, p))) {
        let lowest = |t: &&[u32; 3]| {
            let lowest = t.iter().min().copied().unwrap_or_default();
            world.tree().patch_of(lowest) == patch
        };
        let corners: BTreeSet<u32> = triangles.iter().filter(lowest).flatten().copied().collect();
        let touches = |t: &&[u32; 3]| t.iter().any(|v| corners.contains(v));
        read.extend(triangles.iter().filter(touches).flatten());
    }
    read
}

#[test]
fn a_rank_is_sent_what_its_tests_read_and_its_halo() {
    let world = world(&folding("subscribed"));
    let compared = launch(16, |comm| {
        let mut s = Simulation::new(&world, comm, &ScopeOptions::default()).unwrap();
        let mut least = usize::MAX;
        for _ in 0..6 {
            s.complete(comm).unwrap();
            let mut expected = read_by_brute_force(&s, s.domain.patches());
            s.advance(comm).unwrap();
            expected.extend(s.domain.plan.halo());
            expected.retain(|&v| !s.domain.owned().contains(&(v as usize)));
            let subscriptions = s.state.subscriptions.as_ref().unwrap();
            let runs = subscriptions.runs_of_subscriptions().flatten();
            let known: BTreeSet<u32> = runs
                .filter(|v| !s.domain.owned().contains(v))
                .map(|v| v as u32)
                .collect();
            assert!(
                known == expected,
                "{:?}",
                known.symmetric_difference(&expected)
            );
            least = least.min(known.len());
        }
        least
    });
    let all = world.model().start().len();
    for least in compared.unwrap() {
        assert!(least < all / 2, "{least} of {all}");
    }
}

/// Subscriptions that come and go, as for a sheet that is rolled up and unrolled.
#[test]
fn known_values_are_those_of_their_owners_however_subscriptions_change() {
    let world = world(&folding("subscribed"));
    let patches = world.tree().patch_count() as u64;
    let vertices = world.model().start().len();
    let value = |vertex: usize, of: f64| DVec3::new(vertex as f64, of, 0.5 * of);
    let rounds = launch(5, |comm| {
        let place = Place {
            rank: comm.rank().index(),
            size: comm.size(),
        };
        let domain = Domain::new(&world, place).unwrap();
        let mut subscriptions = Subscriptions::new(&world, &domain);
        let all = |of| (0..vertices).map(|v| value(v, of)).collect::<Vec<_>>();
        let mut values = [0.0, 1.0].map(|of| Sparse::from(all(of)));
        let mut most = 0;
        for round in 0..60_u64 {
            let [x, v] = &mut values;
            let turns = 0.5 * (1.0 - (round as f64 / 9.0).cos());
            let reach = (turns * patches as f64) as u64;
            let pairs = (0..patches).map(|p| [p as u32, ((p + reach) % patches) as u32]);
            let meetings = Meetings::of(pairs.filter(|[one, other]| one != other).collect());
            let at = (&world, &domain);
            subscriptions.renew(comm, at, &meetings, [x, v]).unwrap();
            let mut ghosts = 0;
            for vertex in subscriptions.runs_here().into_iter().flatten() {
                assert_eq!(x[vertex], value(vertex, 2.0 * round as f64), "{round}");
                assert_eq!(
                    v[vertex],
                    value(vertex, 1.0 + 2.0 * round as f64),
                    "{round}"
                );
                ghosts += 1;
            }
            most = most.max(ghosts - domain.owned().len());
            // Values change with each round, those of owned vertices first.
            for (by, values) in [2.0, 3.0].into_iter().zip([&mut *x, &mut *v]) {
                for vertex in domain.owned() {
                    values[vertex] = value(vertex, 2.0 * round as f64 + by);
                }
                subscriptions.begin(comm, values).unwrap();
                subscriptions.finish(comm, values).unwrap();
            }
            if round % 20 == 7 {
                // Something was hit, and everyone has all.
                for (by, values) in [2.0, 3.0].into_iter().zip([&mut *x, &mut *v]) {
                    for (vertex, to) in values.iter_mut().enumerate() {
                        *to = value(vertex, 2.0 * round as f64 + by);
                    }
                }
                subscriptions.note_whole();
            } else {
                subscriptions.end_substep([x, v]);
            }
        }
        most
    });
    assert!(rounds.unwrap().into_iter().all(|most| most > 0));
}
