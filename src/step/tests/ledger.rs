//! The ledger of steps: it adds up, explains what it should, and does not depend on ranks.

use super::*;
use crate::step::{Entry, Ledger};

/// The ledgers of some steps, each over all vertices, and the momentum after the last.
fn ledgers(world: &World, steps: u32, comm: &mut dyn Comm) -> Vec<Ledger> {
    let mut s = Simulation::new(world, comm, &ScopeOptions::default()).unwrap();
    let kinetic = |s: &Simulation<'_>| {
        let terms = world.model().masses().iter().zip(s.velocities());
        terms
            .map(|(m, v)| 0.5 * m * v.length_squared())
            .sum::<f64>()
    };
    let mut all = Vec::new();
    for _ in 0..steps {
        let (before, energy) = (momentum(world, &s).0, kinetic(&s));
        let report = s.advance(comm).unwrap();
        let bytes = weft_runtime::wire::encode(&report.ledger).unwrap();
        let gathered = weft_runtime::comm::Collectives::allgather(comm, bytes).unwrap();
        let patches = gathered.iter().flat_map(|bytes| {
            let patches: Vec<Ledger> = weft_runtime::wire::decode(bytes).unwrap();
            patches
        });
        let mut sums = Ledger::default();
        patches.for_each(|patch| sums.add_vertices(&patch));
        // It adds up.
        let after = momentum(world, &s).0;
        let terms = world.model().masses().iter().zip(s.velocities());
        let size: f64 = terms.map(|(m, v)| m * v.length()).sum::<f64>() + before.length();
        assert!((sums.momentum - after).length() <= 1e-12 * size);
        assert!((sums.change.momentum - (after - before)).length() <= 1e-11 * size + 1e-16);
        // Pins take impulses of limits of strain that contacts know nothing of.
        if let Some(forces) = s.gather_contact_forces(comm).unwrap()
            && !world.pinned().contains(&true)
        {
            let exerted = forces.iter().sum::<DVec3>() * world.scene().time.step;
            let [bodies, contact, cut] = [&sums.bodies, &sums.contact, &sums.cut];
            let expected = bodies.momentum + contact.momentum + cut.momentum;
            let wrong = (exerted - expected).length();
            assert!(wrong <= 1e-11 * size + 1e-16, "{exerted} {expected}");
        }
        let change = kinetic(&s) - energy;
        assert!((sums.change.energy - change).abs() <= 1e-11 * (kinetic(&s) + energy) + 1e-16);
        all.push(sums);
    }
    all
}

fn total(all: &[Ledger], entry: impl Fn(&Ledger) -> Entry) -> Entry {
    let sum = |sum: Entry, next: Entry| Entry {
        momentum: sum.momentum + next.momentum,
        energy: sum.energy + next.energy,
    };
    all.iter().map(entry).fold(Entry::default(), sum)
}

#[test]
fn gravity_explains_all_momentum_and_energy_of_falling_cloth() {
    let world = world(&sheet(8, "velocity = [1, 0, 0]", ""));
    let all = ledgers(&world, 10, &mut Solo::new());
    let rest = total(&all, Ledger::rest);
    let gravity = total(&all, |sums| sums.gravity);
    // 0.15 kg for 50 ms.
    assert!((gravity.momentum.z + 0.15 * 9.81 * 0.05).abs() < 1e-12);
    let drop = 9.81 * 0.05 * 0.05 / 2.0;
    assert!(
        (gravity.energy - 0.15 * 9.81 * drop).abs() < 1e-9,
        "{gravity:?}"
    );
    assert!(
        rest.momentum.length() < 1e-10 && rest.energy.abs() < 1e-9,
        "{rest:?}"
    );
    assert_eq!(all[9].pins.momentum, DVec3::ZERO);
    assert_eq!(all[9].cut_share(), 0.0);
}

/// Pins, a ball, a floor and friction act, with methods in which nothing is carried over: no
/// momentum is unexplained.
#[test]
fn pins_and_bodies_explain_what_gravity_does_not() {
    let pins = "pins = [{ nearest = [-0.25, -0.25, 0.22] }]\ncenter = [0.05, 0.03, 0.22]";
    let scene = drape().replace("center = [0.05, 0.03, 0.22]", pins);
    for (integrator, step, steps) in [
        ("euler", "5 ms", 40),
        ("newmark", "0.2 ms", 700),
        ("central", "0.2 ms", 700),
    ] {
        let text = scene
            .replace("step = \"5 ms\"", &format!("step = \"{step}\""))
            .replace("1000 N/m", "200 N/m");
        let solver = format!("[solver]\ntolerance = 1e-12\nintegrator = \"{integrator}\"\n");
        let world = world(&(text + &solver));
        let all = ledgers(&world, steps, &mut Solo::new());
        let [gravity, pins, bodies] = [
            total(&all, |sums| sums.gravity),
            total(&all, |sums| sums.pins),
            total(&all, |sums| sums.bodies),
        ];
        let rest = total(&all, Ledger::rest);
        let size = gravity.momentum.length();
        assert!(
            pins.momentum.length() > 0.01 * size,
            "{integrator}: {pins:?}"
        );
        assert!(bodies.momentum.z > 0.01 * size, "{integrator}: {bodies:?}");
        assert!(
            rest.momentum.length() < 1e-9 * size,
            "{integrator}: {rest:?} of {size}"
        );
        // Bodies and pins stand still, and what is damped or stored is the rest.
        assert!(
            rest.energy < 0.0 && bodies.energy <= 0.0,
            "{integrator}: {rest:?} {bodies:?}"
        );
    }
}

/// Two sheets that clash.
fn clash(more: &str) -> World {
    let cloth = |height: f64, speed: f64, turn: f64| {
        format!(
            "[[cloth]]\ngrid = {{ size = 0.2, vertices = 12 }}\ncenter = [0.003, 0.002, {height}]\n\
             rotation = [0.1, 0.05, {turn}]\nvelocity = [0, 0, {speed}]\n\
             material = {{ density = 0.15, stretch = 1000, bending = 1e-5 }}\n"
        )
    };
    let (one, two) = (cloth(0.0, 20.0, 0.2), cloth(0.08, -20.0, -0.3));
    world(&format!(
        "time = {{ step = 0.002, end = 1 }}\ngravity = [0, 0, 0]\ncontact.certify = true\n\
         partition.patches = 8\nsolver.tolerance = 1e-12\n{more}\n{one}{two}"
    ))
}

#[test]
fn contacts_give_no_momentum_and_cuts_take_energy() {
    let world = clash("");
    let all = ledgers(&world, 6, &mut Solo::new());
    let contact = total(&all, |sums| sums.contact);
    let cut = total(&all, |sums| sums.cut);
    let rest = total(&all, Ledger::rest);
    let size = 20.0 * world.mass();
    assert!(contact.momentum.length() < 1e-9 * size, "{contact:?}");
    assert!(rest.momentum.length() < 1e-9 * size, "{rest:?}");
    assert!(cut.energy < 0.0, "{cut:?}");
    let shares: Vec<f64> = all.iter().map(Ledger::cut_share).collect();
    assert!(shares.iter().any(|share| *share > 0.0), "{shares:?}");
    assert!(
        shares.iter().all(|share| (0.0..1.0).contains(share)),
        "{shares:?}"
    );
}

#[test]
fn the_ledger_does_not_depend_on_ranks() {
    let drape = world(&(drape() + "certify = true\n"));
    for (world, steps) in [
        (&drape, 30),
        (&clash(""), 6),
        (&clash("solver.integrator = \"newmark\""), 6),
    ] {
        let expected = ledgers(world, steps, &mut Solo::new());
        for ranks in [2, 3, 5] {
            for found in launch(ranks, |comm| ledgers(world, steps, comm)).unwrap() {
                assert!(found == expected, "{ranks} ranks");
            }
        }
    }
}
