//! Small scopes, in every order in which things can happen.
//!
//! Every state that can be reached is looked at: nothing is lost, doubled or ended early in any of
//! them (the world checks that), and from each of them there is a way on to where all have left.
//!
//! Ranks ask without end, but one that was sent away is where it was before: so how often they ask
//! needs no bound. Whom they ask does, for the number of states grows fast, and how many requests
//! of a rank may be unanswered at once: see [`Bounds`].

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
        close: false,
    }
}

/// Makes a plan's bodies say when they fork no more.
fn closed(plan: Plan) -> Plan {
    Plan {
        close: true,
        ..plan
    }
}

/// Makes a plan's tasks stay where they are.
fn unmoved(mut plan: Plan) -> Plan {
    plan.options.policy.steal = false;
    plan
}

const G: Name = Name::Collective(0);
const H: Name = Name::Collective(1);
const OWN: Name = Name::Own(0);

/// The ranks that may ask each other: each asks the next; each asks the one before; the others ask
/// rank 0, which asks rank 1.
const AROUND: &[(usize, u32)] = &[(0, 1), (1, 2), (2, 0)];
const BACK: &[(usize, u32)] = &[(0, 2), (1, 0), (2, 1)];
const STAR: &[(usize, u32)] = &[(0, 1), (1, 0), (2, 0)];
/// Rank 2 asks rank 1, where most of these plans begin, and rank 0 asks rank 2.
const CHAIN: &[(usize, u32)] = &[(2, 1), (0, 2)];

/// Explores a plan for each of these rules of who asks whom.
fn explore_all(plan: &Plan, rules: &[&[(usize, u32)]]) {
    for asks in rules {
        let bounds = Bounds {
            asks,
            unanswered: 1,
        };
        let states = explore(plan, bounds);
        assert!(states > 10_000, "only {states} states");
    }
}

/// Ranks 0 and 1 fork two and one; one of the three has a child.
fn collective() -> Plan {
    let tasks = vec![vec![Stage::Hyperfork(vec![3])], vec![], vec![], vec![]];
    let bodies = vec![
        vec![Deed::Fork(G, 0), Deed::Fork(G, 1), Deed::Join(G)],
        vec![Deed::Fork(G, 2), Deed::Join(G)],
        vec![Deed::Join(G)],
    ];
    plan(1, tasks, bodies)
}

fn two_groups() -> Plan {
    let last = [Deed::Join(G), Deed::Join(H)];
    let bodies = vec![
        [vec![Deed::Fork(G, 0), Deed::Fork(G, 1)], last.to_vec()].concat(),
        vec![Deed::Join(G), Deed::Fork(H, 2), Deed::Join(H)],
        last.to_vec(),
    ];
    plan(2, vec![vec![]; 3], bodies)
}

/// Rank 1 joins the groups the other way round, and two leave results where nobody joins. Each
/// task may be run by the next rank, which asks for such.
fn crossed_groups() -> Plan {
    let bodies = vec![
        vec![Deed::Join(G), Deed::Join(H)],
        vec![Deed::Fork(G, 0), Deed::Join(H), Deed::Join(G)],
        vec![Deed::Fork(H, 1), Deed::Join(G), Deed::Join(H)],
    ];
    plan(2, vec![vec![]; 2], bodies)
}

/// A group of rank 1's body, with those deeds after its three forks; one task has a child.
fn rooted_group(deeds: &[Deed]) -> Plan {
    let tasks = vec![vec![], vec![], vec![Stage::Hyperfork(vec![3])], vec![]];
    let forks = [0, 1, 2].map(|id| Deed::Fork(OWN, id));
    plan(0, tasks, vec![vec![], [&forks, deeds].concat(), vec![]])
}

/// A task of that rank that makes a group for two others, and one beside it.
fn nested(home: usize) -> Plan {
    let tasks = vec![vec![Stage::Join(vec![1, 2])], vec![], vec![], vec![]];
    let mut bodies = vec![vec![Deed::Join(G)]; 3];
    bodies[home].splice(..0, [Deed::Fork(G, 0), Deed::Fork(G, 3)]);
    plan(1, tasks, bodies)
}

/// One task cancels the group while another of it joins a group of its own.
fn cancelled_by_a_task(home: usize) -> Plan {
    let own = vec![Stage::Join(vec![2])];
    let mut bodies = vec![vec![Deed::Join(G)]; 3];
    bodies[home].splice(..0, [Deed::Fork(G, 0), Deed::Fork(G, 1)]);
    plan(1, vec![vec![Stage::CancelOwnGroup], own, vec![]], bodies)
}

/// Tasks of ranks 0 and 1, and the child of one, post to all, themselves too.
fn messages() -> Plan {
    let tasks = vec![
        vec![Stage::Post(2), Stage::Hyperfork(vec![2])],
        vec![Stage::Post(0), Stage::Post(2)],
        vec![Stage::Post(0), Stage::Post(1)],
    ];
    let mut bodies = vec![vec![Deed::Join(G)]; 3];
    bodies[0].splice(..0, [Deed::Fork(G, 0)]);
    bodies[1].splice(..0, [Deed::Fork(G, 1)]);
    plan(1, tasks, bodies)
}

/// Rank 1 cancels the group as soon as it has a result.
fn cancelled_by_a_body() -> Plan {
    let tasks = vec![vec![Stage::Hyperfork(vec![2])], vec![], vec![]];
    let cancels = vec![Deed::JoinOne(G), Deed::Cancel(G), Deed::Join(G)];
    let bodies = vec![
        vec![Deed::Fork(G, 0), Deed::Join(G)],
        [vec![Deed::Fork(G, 1)], cancels].concat(),
        vec![Deed::Join(G)],
    ];
    plan(1, tasks, bodies)
}

const CANCELLED: &[Deed] = &[Deed::JoinOne(OWN), Deed::Cancel(OWN), Deed::Join(OWN)];
const ALL: &[&[(usize, u32)]] = &[AROUND, BACK, STAR];

#[test]
fn a_collective_group_ends_in_every_interleaving() {
    explore_all(&collective(), &[AROUND]);
}

#[test]
fn two_collective_groups_end_in_every_interleaving() {
    explore_all(&two_groups(), &[CHAIN]);
}

/// No rank can go on, and rank 0 finds out; it never thinks so in any of the others.
#[test]
fn groups_joined_in_different_orders() {
    explore_all(&crossed_groups(), &[AROUND]);
}

/// A rank that has waited too long asks another, up to two at once.
#[test]
fn late_work_comes_at_any_time() {
    let bounds = Bounds {
        asks: &[(2, 1), (2, 0)],
        unanswered: 2,
    };
    let states = explore(&collective(), bounds);
    assert!(states > 10_000, "only {states} states");
}

#[test]
fn bodies_that_fork_no_more() {
    let plans = [
        (collective(), CHAIN),
        (two_groups(), CHAIN),
        (two_groups(), STAR),
        (crossed_groups(), AROUND),
    ];
    for (plan, asks) in plans {
        let bounds = Bounds {
            asks,
            unanswered: 1,
        };
        // Where they say so less can happen.
        let states = explore(&closed(plan), bounds);
        assert!(states > 1000, "only {states} states");
    }
}

/// All of them are there when a rank leaves, whichever rank ran the task that posted them.
#[test]
fn posted_messages_come_before_the_end() {
    let few = Bounds {
        asks: CHAIN,
        unanswered: 1,
    };
    let none = Bounds { asks: &[], ..few };
    for plan in [messages(), closed(messages())] {
        explore(&plan, few);
        let states = explore(&unmoved(plan), none);
        assert!(states > 500, "only {states} states");
    }
}

/// Where no task goes from rank to rank each says to each other what it has done with.
#[test]
fn ranks_whose_tasks_stay() {
    let bounds = Bounds {
        asks: &[],
        unanswered: 1,
    };
    let plans = [
        collective(),
        two_groups(),
        crossed_groups(),
        rooted_group(&[Deed::Join(OWN)]),
        rooted_group(CANCELLED),
        nested(1),
        cancelled_by_a_task(1),
        cancelled_by_a_body(),
    ];
    for plan in plans {
        let states = explore(&unmoved(closed(plan.clone())), bounds);
        assert!(states > 100, "only {states} states");
        let states = explore(&unmoved(plan), bounds);
        assert!(states > 100, "only {states} states");
    }
}

#[test]
fn a_rooted_group_and_a_thiefs_thief() {
    explore_all(&rooted_group(&[Deed::Join(OWN)]), &[CHAIN]);
}

#[test]
fn a_task_with_a_group_of_its_own() {
    explore_all(&nested(1), &[CHAIN]);
}

#[test]
fn a_group_cancelled_by_a_task() {
    explore_all(&cancelled_by_a_task(1), &[CHAIN]);
}

#[test]
fn a_group_cancelled_by_a_body() {
    explore_all(&cancelled_by_a_body(), &[CHAIN]);
}

#[test]
fn a_cancelled_rooted_group_ends_in_every_interleaving() {
    explore_all(&rooted_group(CANCELLED), &[STAR]);
}

/// All of this and more, with all rules of who asks whom: millions of states.
#[test]
#[ignore = "takes minutes"]
fn all_mechanisms_together() {
    let plans = [
        collective(),
        two_groups(),
        rooted_group(&[Deed::Join(OWN)]),
        rooted_group(CANCELLED),
        nested(0),
        nested(1),
        cancelled_by_a_task(0),
        cancelled_by_a_task(1),
        cancelled_by_a_body(),
    ];
    for plan in plans {
        explore_all(&plan, ALL);
        explore_all(&closed(plan), &[AROUND]);
    }
}
