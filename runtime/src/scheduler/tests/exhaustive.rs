//! Small scopes, in every order in which things can happen.
//!
//! Every state that can be reached is looked at: nothing is lost, doubled or ended early in any of them (the
//! world checks that), and from each of them there is a way on to where all have left.
//!
//! Ranks ask without end, but one that was sent away is where it was before: so how often they ask needs no
//! bound. Whom they ask does, for the number of states grows fast, and how many requests of a rank may be
//! unanswered at once: see [`Bounds`].

use std::collections::HashMap;

use super::world::{Bounds, CHOSEN, Deed, Name, Plan, Stage, Step, World};
use super::*;

/// How a state was reached first: from which other, by what step.
#[derive(Clone, Copy)]
struct Origin {
    from: u32,
    step: Step,
}

/// Explores all orders; returns the number of states.
fn explore(plan: &Plan, bounds: Bounds<'_>) -> usize {
    let world = World::new(plan);
    let mut known = HashMap::from([(world.fingerprint(), 0)]);
    let mut states: Vec<Option<Origin>> = vec![None];
    let mut edges: Vec<(u32, u32)> = Vec::new();
    let mut ends: Vec<u32> = Vec::new();
    let mut open = vec![(0, world)];
    while let Some((at, world)) = open.pop() {
        if world.is_over() {
            ends.push(at);
        }
        for step in world.steps(&bounds) {
            let outcome = panic::catch_unwind(panic::AssertUnwindSafe(|| {
                let next = world.after(step);
                next.check();
                next
            }));
            let Ok(next) = outcome else {
                let path = path_to(&states, at as usize);
                panic!("{path:?}\nand {step:?}\n{}", world.describe());
            };
            let new = states.len() as u32;
            let there = *known.entry(next.fingerprint()).or_insert(new);
            if there == new {
                states.push(Some(Origin { from: at, step }));
                open.push((there, next));
            }
            if there != at {
                edges.push((there, at));
            }
        }
    }
    // Backwards from the ends.
    edges.sort_unstable();
    let mut leads_out = vec![false; states.len()];
    let mut next = ends;
    while let Some(state) = next.pop() {
        if !std::mem::replace(&mut leads_out[state as usize], true) {
            let first = edges.partition_point(|&(to, _)| to < state);
            let into = edges[first..].iter().take_while(|(to, _)| *to == state);
            next.extend(into.map(|&(_, from)| from));
        }
    }
    if let Some(stuck) = leads_out.iter().position(|out| !out) {
        let path = path_to(&states, stuck);
        let mut world = World::new(plan);
        path.iter().for_each(|&step| world.step(step));
        panic!("no way on from here:\n{path:?}\n{}", world.describe());
    }
    states.len()
}

fn path_to(states: &[Option<Origin>], mut at: usize) -> Vec<Step> {
    let mut path = Vec::new();
    while let Some(origin) = states[at] {
        path.push(origin.step);
        at = origin.from as usize;
    }
    path.reverse();
    path
}

/// A plan with stages of tasks by their numbers, and deeds of bodies.
fn plan(groups: u32, tasks: Vec<Vec<Stage>>, bodies: Vec<Vec<Deed>>) -> Plan {
    let mut options = ScopeOptions::default();
    options.policy.victims = CHOSEN;
    Plan {
        options,
        groups,
        tasks,
        bodies,
    }
}

const G: Name = Name::Collective(0);
const H: Name = Name::Collective(1);
const OWN: Name = Name::Own(0);

/// Each asks the next; each asks the one before; the others ask rank 0, and it asks rank 1.
const AROUND: &[(usize, u32)] = &[(0, 1), (1, 2), (2, 0)];
const BACK: &[(usize, u32)] = &[(0, 2), (1, 0), (2, 1)];
const STAR: &[(usize, u32)] = &[(0, 1), (1, 0), (2, 0)];

fn explore_all(name: &str, plan: &Plan, unanswered: usize, mortal: &[usize]) {
    for asks in [AROUND, BACK, STAR] {
        let begin = std::time::Instant::now();
        let bounds = Bounds {
            asks,
            unanswered,
            mortal,
        };
        let states = explore(plan, bounds);
        eprintln!("{name} {asks:?}: {states} {:?}", begin.elapsed());
    }
}

#[test]
fn a_collective_group() {
    let tasks = vec![vec![Stage::Hyperfork(vec![3])], vec![], vec![], vec![]];
    let bodies = vec![
        vec![Deed::Fork(G, 0), Deed::Fork(G, 1), Deed::Join(G)],
        vec![Deed::Fork(G, 2), Deed::Join(G)],
        vec![Deed::Join(G)],
    ];
    explore_all("collective", &plan(1, tasks, bodies), 1, &[]);
}

#[test]
fn two_collective_groups() {
    let tasks = vec![vec![], vec![], vec![]];
    let bodies = vec![
        vec![
            Deed::Fork(G, 0),
            Deed::Fork(G, 1),
            Deed::Join(G),
            Deed::Join(H),
        ],
        vec![Deed::Join(G), Deed::Fork(H, 2), Deed::Join(H)],
        vec![Deed::Join(G), Deed::Join(H)],
    ];
    explore_all("two groups", &plan(2, tasks, bodies), 1, &[]);
}

#[test]
fn a_rooted_group_and_a_thiefs_thief() {
    let tasks = vec![vec![], vec![], vec![Stage::Hyperfork(vec![3])], vec![]];
    let forks = [0, 1, 2].map(|id| Deed::Fork(OWN, id));
    let body = forks.into_iter().chain([Deed::Join(OWN)]).collect();
    let bodies = vec![vec![], body, vec![]];
    explore_all("rooted", &plan(0, tasks, bodies), 1, &[]);
}

#[test]
fn a_task_with_a_group_of_its_own() {
    let tasks = vec![vec![Stage::Join(vec![1, 2])], vec![], vec![], vec![]];
    let bodies = vec![
        vec![Deed::Fork(G, 0), Deed::Fork(G, 3), Deed::Join(G)],
        vec![Deed::Join(G)],
        vec![Deed::Join(G)],
    ];
    explore_all("nested", &plan(1, tasks, bodies), 1, &[]);
}

#[test]
fn a_collective_group_cancelled_by_a_task() {
    let own = vec![Stage::Join(vec![2, 3])];
    let tasks = vec![vec![Stage::CancelOwnGroup], own, vec![], vec![]];
    let bodies = vec![
        vec![Deed::Fork(G, 0), Deed::Fork(G, 1), Deed::Join(G)],
        vec![Deed::Join(G)],
        vec![Deed::Join(G)],
    ];
    explore_all("cancelled by task", &plan(1, tasks, bodies), 1, &[]);
}

#[test]
fn a_collective_group_cancelled_by_a_body() {
    let tasks = vec![vec![Stage::Hyperfork(vec![2])], vec![], vec![]];
    let bodies = vec![
        vec![Deed::Fork(G, 0), Deed::Join(G)],
        vec![
            Deed::Fork(G, 1),
            Deed::JoinOne(G),
            Deed::Cancel(G),
            Deed::Join(G),
        ],
        vec![Deed::Join(G)],
    ];
    explore_all("cancelled by body", &plan(1, tasks, bodies), 1, &[]);
}

#[test]
fn a_cancelled_rooted_group() {
    let tasks = vec![vec![Stage::Hyperfork(vec![3])], vec![], vec![], vec![]];
    let deeds = [Deed::JoinOne(OWN), Deed::Cancel(OWN), Deed::Join(OWN)];
    let forks = [0, 1, 2].map(|id| Deed::Fork(OWN, id));
    let bodies = vec![vec![], forks.into_iter().chain(deeds).collect(), vec![]];
    explore_all("cancelled rooted", &plan(0, tasks, bodies), 1, &[]);
}

/// A plan whose scope survives deaths.
fn recovered(groups: u32, tasks: Vec<Vec<Stage>>, bodies: Vec<Vec<Deed>>) -> Plan {
    let mut plan = plan(groups, tasks, bodies);
    plan.options.recover = true;
    plan
}

#[test]
fn a_thief_dies() {
    let tasks = vec![vec![Stage::Hyperfork(vec![2])], vec![], vec![]];
    let bodies = vec![
        vec![Deed::Join(G)],
        vec![Deed::Fork(G, 0), Deed::Fork(G, 1), Deed::Join(G)],
        vec![Deed::Join(G)],
    ];
    explore_all(
        "thief dies",
        &recovered(1, tasks.clone(), bodies.clone()),
        1,
        &[2],
    );
    explore_all("coordinator dies", &recovered(1, tasks, bodies), 1, &[0]);
}

#[test]
fn a_victim_dies() {
    let tasks = vec![vec![Stage::Join(vec![1, 2])], vec![], vec![], vec![]];
    let bodies = vec![
        vec![Deed::Join(G)],
        vec![Deed::Fork(G, 0), Deed::Fork(G, 3), Deed::Join(G)],
        vec![Deed::Join(G)],
    ];
    explore_all("victim dies", &recovered(1, tasks, bodies), 1, &[1]);
}
