//! Momentum, rest, and rounds that leave constraints out against rounds that do not.

use proptest::prelude::*;

use super::super::resting::Resting;
use super::*;
use crate::collide::contact::{Contact, PairId, PairKind, Separation};

fn vertex_face(b: u32, vertices: [u32; 4], weights: [f64; 4], gap: f64) -> Contact {
    let id = PairId {
        kind: PairKind::VertexFace,
        body: 0,
        a: vertices[0],
        b,
    };
    let separation = Separation {
        normal: DVec3::Z,
        gap,
        target: 0.004,
        body_velocity: DVec3::ZERO,
    };
    Contact::new(id, vertices, weights, separation)
}

fn solve(contacts: &[Contact], velocities: &[DVec3], mass: f64, rounds: u32) -> Impulses {
    let mut impulses = Impulses::default();
    let all = 0..velocities.len();
    impulses.clear(all.clone());
    impulses.extend(
        contacts
            .iter()
            .map(|c| Constraint::of_contact(c, 0.3, 0.005)),
    );
    impulses.begin();
    for v in all {
        if let Some(slot) = impulses.slot(v as u32) {
            let mobility = DMat3::from_diagonal(DVec3::splat(1.0 / mass));
            impulses.place(slot, velocities[v], mobility);
        }
    }
    impulses.survey();
    for _ in 0..rounds {
        impulses.round();
    }
    impulses
}

fn rate(solved: &Impulses, constraint: &Constraint) -> f64 {
    let pairs = constraint.vertices().iter().zip(constraint.weights);
    let sum = pairs.fold(-constraint.body_velocity, |sum, (&v, w)| {
        sum + solved.velocity(solved.slot(v).unwrap()) * w
    });
    sum.dot(constraint.normal)
}

#[test]
fn a_single_contact_stops_approaching_in_one_round() {
    let third = -1.0 / 3.0;
    let contact = vertex_face(0, [0, 1, 2, 3], [1.0, third, third, third], 0.004);
    let mut velocities = vec![DVec3::ZERO; 4];
    velocities[0] = DVec3::new(0.0, 0.0, -1.0);
    let solved = solve(&[contact], &velocities, 2e-5, 1);
    let rate = rate(&solved, &solved.constraints()[0]);
    assert!(rate.abs() < 1e-12, "{rate}");
}

proptest! {
    #[test]
    fn momentum_is_kept_and_contacts_open(
        seeds in prop::collection::vec((0u32..12, 0u32..12, 0u32..12, 0u32..12, 0.0..0.006f64), 1..12),
        velocities in prop::collection::vec((-1.0..1.0f64, -1.0..1.0f64, -1.0..1.0f64), 12),
    ) {
        // The lifted vertex has the greatest number: some motion satisfies all contacts.
        let contacts: Vec<Contact> = seeds
            .iter()
            .enumerate()
            .filter_map(|(i, &(a, b, c, d, gap))| {
                let mut all = [a, b, c, d];
                all.sort_unstable_by(|a, b| b.cmp(a));
                let distinct = all.windows(2).all(|w| w[0] != w[1]);
                distinct.then(|| vertex_face(i as u32, all, [1.0, -0.2, -0.3, -0.5], gap))
            })
            .collect();
        prop_assume!(!contacts.is_empty());
        let velocities: Vec<DVec3> =
            velocities.into_iter().map(|(x, y, z)| DVec3::new(x, y, z)).collect();
        let solved = solve(&contacts, &velocities, 1.0, 2000);
        let before: DVec3 = solved.vertices().iter().map(|&v| velocities[v as usize]).sum();
        let after: DVec3 = (0..solved.vertices().len()).map(|at| solved.velocity(at)).sum();
        prop_assert!((before - after).length() < 1e-10, "{before} {after}");
        for constraint in solved.constraints() {
            let lack = constraint.least_rate - rate(&solved, constraint);
            prop_assert!(lack < 1e-6, "{lack} m/s too slow");
        }
    }
}

/// A crowd of vertices that meet, some of them for the first time after many rounds.
fn crowd() -> impl Strategy<Value = (Vec<Constraint>, Vec<DVec3>)> {
    let constraint = (prop::array::uniform4(0u32..24), 0.0..0.012f64, 0.0..0.5f64);
    let velocity = (-1.0..1.0f64, -1.0..1.0f64, -1.0..1.0f64);
    let constraints = prop::collection::vec(constraint, 1..60);
    (constraints, prop::collection::vec(velocity, 24)).prop_map(|(constraints, velocities)| {
        let distinct = |v: &[u32; 4]| (1..4).all(|k| !v[..k].contains(&v[k]));
        let constraints = constraints.into_iter().filter(|(v, ..)| distinct(v));
        let constraints = constraints
            .enumerate()
            .map(|(b, (vertices, gap, friction))| {
                let contact = vertex_face(b as u32, vertices, [1.0, -0.2, -0.3, -0.5], gap);
                Constraint::of_contact(&contact, friction, 0.005)
            });
        let velocities = velocities.into_iter();
        let velocities = velocities.map(|(x, y, z)| DVec3::new(x, y, z));
        (constraints.collect(), velocities.collect())
    })
}

fn begun(constraints: &[Constraint], velocities: &[DVec3], team: &Team) -> Impulses {
    let mut impulses = Impulses::with_team(team);
    impulses.clear(0..velocities.len());
    impulses.extend(constraints.iter().copied());
    impulses.begin();
    for (v, &velocity) in velocities.iter().enumerate() {
        if let Some(slot) = impulses.slot(v as u32) {
            impulses.place(slot, velocity, DMat3::IDENTITY);
        }
    }
    impulses.survey();
    impulses
}

fn bits(impulses: &Impulses) -> Vec<[u64; 4]> {
    let of = |at: usize| {
        let v = impulses.velocity(at);
        [v.x, v.y, v.z, impulses.load_of(at)].map(f64::to_bits)
    };
    (0..impulses.vertices().len()).map(of).collect()
}

proptest! {
    #[test]
    fn rows_left_out_would_have_done_nothing((constraints, velocities) in crowd(), threads in 1usize..4) {
        let mut some = begun(&constraints, &velocities, &Team::new(threads).unwrap());
        let mut all = begun(&constraints, &velocities, &Team::default());
        for _ in 0..60 {
            let every: Vec<u32> = (0..all.constraints().len() as u32).collect();
            all.parts[0].wake(&every);
            let (a, b) = (some.round(), all.round());
            prop_assert_eq!(a.to_bits(), b.to_bits());
            prop_assert_eq!(bits(&some), bits(&all));
        }
    }
}

proptest! {
    /// Whatever the reach at first; each time that a vertex goes far, more constraints are there.
    #[test]
    fn contacts_without_constraints_would_have_done_nothing(
        (constraints, velocities) in crowd(),
        threads in 1usize..4,
        reach in prop::sample::select(vec![0.0, 1e-3, 0.05, 0.3, 3.0]),
    ) {
        let mut all = begun(&constraints, &velocities, &Team::default());
        let mut some = Impulses::with_team(&Team::new(threads).unwrap());
        some.clear(0..velocities.len());
        some.begin();
        let spares = constraints.iter().map(|constraint| {
            constraint.spare_at(constraint.vertices.map(|vertex| velocities[vertex as usize]))
        });
        let mut resting = Resting::with(spares, reach);
        let admit = |some: &mut Impulses, resting: &Resting| {
            let before = some.vertices().len();
            let numbers = resting.numbers(0..constraints.len());
            some.admit(numbers.map(|number| (number, constraints[number as usize])));
            for slot in before..some.vertices().len() {
                let velocity = velocities[some.vertices()[slot] as usize];
                some.place(slot, velocity, DMat3::IDENTITY);
            }
        };
        admit(&mut some, &resting);
        some.survey();
        for _ in 0..60 {
            if resting.is_reached(some.farthest()) {
                admit(&mut some, &resting);
            }
            let (a, b) = (some.round(), all.round());
            prop_assert_eq!(a.to_bits(), b.to_bits());
            for (slot, vertex) in some.vertices().iter().enumerate() {
                let other = all.slot(*vertex).unwrap();
                prop_assert_eq!(some.velocity(slot), all.velocity(other));
                prop_assert_eq!(some.load_of(slot).to_bits(), all.load_of(other).to_bits());
            }
        }
        for (slot, &vertex) in all.vertices().iter().enumerate() {
            let still = all.velocity(slot) == velocities[vertex as usize];
            prop_assert!(still || some.slot(vertex).is_some());
        }
        let pushing = |impulses: &Impulses| impulses.pushing().filter(|pushing| *pushing).count();
        prop_assert_eq!(pushing(&some), pushing(&all));
        prop_assert!(some.admitted() <= constraints.len());
    }
}

#[test]
fn contacts_that_stay_far_from_each_other_get_no_constraint() {
    let mut resting = Resting::with([-0.1, 0.02, 0.5, 80.0], 0.1);
    assert_eq!(resting.numbers(0..4).collect::<Vec<_>>(), [0, 1]);
    assert!(!resting.is_reached(0.09));
    assert_eq!(resting.numbers(0..4).count(), 2);
    assert!(resting.is_reached(0.3));
    assert_eq!(resting.numbers(0..4).collect::<Vec<_>>(), [0, 1, 2]);
}

#[test]
fn a_constraint_far_from_lacking_is_not_looked_at_again() {
    let pair = |upper: u32, lower: u32, gap: f64| {
        let mut c = vertex_face(lower, [upper, lower, 0, 0], [1.0, -1.0, 0.0, 0.0], gap);
        c.count = 2;
        Constraint::of_contact(&c, 0.0, 0.005)
    };
    let down = DVec3::new(0.0, 0.0, -1.0);
    let constraints = [pair(1, 0, 0.004), pair(3, 2, 0.1)];
    let velocities = [DVec3::ZERO, down, DVec3::ZERO, down];
    let mut impulses = begun(&constraints, &velocities, &Team::default());
    assert!(impulses.round() > 0.9);
    assert_eq!(impulses.parts[0].looked_at(), 1);
    // Until its owner says that one of its vertices is much faster.
    impulses.hear(impulses.slot(3).unwrap(), down * 30.0, 0.0);
    assert!(impulses.round() > 10.0);
    assert_eq!(impulses.parts[0].looked_at(), 2);
}

/// Layers above each other, each pressing on the next with 1 m/s; the lowest is fixed.
fn stack(layers: u32) -> Impulses {
    let constraints = (1..layers).map(|upper| {
        let mut c = vertex_face(
            upper - 1,
            [upper, upper - 1, 0, 0],
            [1.0, -1.0, 0.0, 0.0],
            0.004,
        );
        c.count = 2;
        Constraint::of_contact(&c, 0.3, 0.005)
    });
    let mut impulses = Impulses::default();
    impulses.clear(0..layers as usize);
    impulses.extend(constraints);
    impulses.begin();
    for v in 0..layers {
        let (free, speed) = if v == 0 { (0.0, 0.0) } else { (1.0, -1.0) };
        let slot = impulses.slot(v).unwrap();
        impulses.place(slot, DVec3::Z * speed, DMat3::IDENTITY * free);
    }
    impulses.survey();
    impulses
}

fn fastest(impulses: &Impulses) -> f64 {
    let speeds = (0..impulses.vertices().len()).map(|at| impulses.velocity(at).length());
    speeds.fold(0.0, f64::max)
}

#[test]
fn a_stack_of_layers_comes_to_rest() {
    let mut impulses = stack(3);
    for _ in 0..200 {
        impulses.round();
    }
    assert!(fastest(&impulses) < 1e-6, "{}", fastest(&impulses));
    assert!(impulses.pushing().all(|pushing| pushing));
}

/// Without momentum it takes rounds as the square of the height: after these, the top of the taller
/// one would not have heard of the bottom.
#[test]
fn stacks_come_to_rest_in_rounds_as_their_height() {
    for height in [16, 64] {
        let mut impulses = stack(height + 1);
        for _ in 0..8 * height {
            impulses.round();
        }
        let fastest = fastest(&impulses);
        assert!(fastest < 0.05, "{height} layers: {fastest} m/s");
    }
}

/// Also where momentum has taken constraints too far, so that none of them lacks anything.
#[test]
fn rounds_say_how_far_layers_are_from_rest() {
    let mut impulses = stack(9);
    let mut overshot = false;
    for round in 1..200 {
        let rates = impulses
            .constraints()
            .iter()
            .map(|constraint| rate(&impulses, constraint));
        let rates: Vec<f64> = rates.collect();
        let pushed = impulses.pushing().all(|pushing| pushing);
        let said = impulses.round();
        if pushed && impulses.pushing().all(|pushing| pushing) {
            let farthest = rates
                .iter()
                .fold(0.0_f64, |most, rate| most.max(rate.abs()));
            assert!(
                (said - farthest).abs() <= 1e-12,
                "{round}: {said} {farthest}"
            );
            overshot |= rates.iter().all(|&rate| rate > -0.1 * farthest);
        }
    }
    assert!(overshot, "no round went too far");
}

#[test]
fn a_triangle_between_pins_does_not_throw_its_third_corner() {
    let constraint = Constraint {
        count: 3,
        vertices: [0, 1, 2, 0],
        weights: [0.005, -0.707, 0.702, 0.0],
        normal: DVec3::Y,
        body_velocity: DVec3::ZERO,
        least_rate: 0.01,
        friction: 0.0,
    };
    let rest = [DVec3::ZERO; 3];
    let held = |pins: &[u32]| {
        let mut impulses = begun(&[constraint], &rest, &Team::default());
        for &pin in pins {
            impulses.set_mobility(impulses.slot(pin).unwrap(), DMat3::ZERO);
        }
        impulses.round();
        impulses
    };
    let mut both = held(&[1, 2]);
    assert_eq!(fastest(&both), 0.0);
    // Nor is it looked at for ever.
    both.round();
    both.round();
    assert_eq!(both.parts[0].looked_at(), 0);
    let one = held(&[2]);
    let rate = rate(&one, &constraint);
    assert!((rate - 0.01).abs() < 1e-12, "{rate}");
    assert!(fastest(&one) < 0.015);
}
