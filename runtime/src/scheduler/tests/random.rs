//! Ten thousand scopes that nobody would write, each in an order that nobody would expect.

use super::world::{Deed, Id, Name, Plan, Stage, Step, World};
use super::*;
use crate::policy::Interval;

const SCOPES: u64 = 10_000;
const MOST_TASKS: usize = 40;
const MOST_STEPS: u32 = 300_000;

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) as usize % bound
    }

    fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    fn plan(&mut self) -> Plan {
        let (_, policy, _) = POLICIES[self.below(POLICIES.len())];
        let ranks = 1 + self.below(8);
        let groups = 1 + self.below(3) as u32;
        let steal_timeout = Duration::from_micros(1 + self.below(2000) as u64);
        let options = ScopeOptions {
            policy: Policy {
                steal_timeout,
                interval: Interval::Fixed(Duration::ZERO),
                ..policy
            },
            seed: self.0,
            ..ScopeOptions::default()
        };
        let mut plan = Plan {
            options,
            groups,
            tasks: Vec::new(),
            bodies: Vec::new(),
            close: self.once_in(2),
        };
        for _ in 0..ranks {
            let mut deeds = Vec::new();
            for group in 0..groups {
                let own = Name::Own(u64::from(group));
                let name = Name::Collective(group);
                let mut fork = |random: &mut Self, name, most| {
                    for _ in 0..random.below(most) {
                        let id = random.task(&mut plan.tasks, 0);
                        deeds.push(Deed::Fork(name, id));
                    }
                };
                fork(self, name, 4);
                if self.once_in(3) {
                    fork(self, own, 4);
                    if self.once_in(3) {
                        deeds.extend([Deed::JoinOne(own), Deed::Cancel(own)]);
                    }
                    let drops = self.once_in(3);
                    deeds.push(if drops {
                        Deed::Drop(own)
                    } else {
                        Deed::Join(own)
                    });
                }
                if self.once_in(12) {
                    deeds.extend([Deed::JoinOne(name), Deed::Cancel(name)]);
                }
                // All but the last must be joined to the end.
                if group + 1 < groups || !self.once_in(4) {
                    deeds.push(Deed::Join(name));
                }
            }
            plan.bodies.push(deeds);
        }
        for stages in &mut plan.tasks {
            for stage in stages {
                if let Stage::Post(to) = stage {
                    *to = self.below(ranks);
                }
            }
        }
        plan
    }

    /// Makes a task, with what comes of it; returns its number.
    fn task(&mut self, tasks: &mut Vec<Vec<Stage>>, depth: usize) -> Id {
        let id = tasks.len();
        tasks.push(Vec::new());
        let mut stages = Vec::new();
        while tasks.len() < MOST_TASKS && self.once_in(2 + depth) {
            let mut children = |random: &mut Self| -> Vec<Id> {
                let count = 1 + random.below(3);
                (0..count).map(|_| random.task(tasks, depth + 1)).collect()
            };
            stages.push(match self.below(18) {
                // To whom is said when all is known.
                16 | 17 => Stage::Post(0),
                0..6 => Stage::Hyperfork(children(self)),
                6..8 => Stage::SplitOff(children(self)[0]),
                8..11 => Stage::Join(children(self)),
                11 | 12 => Stage::Drop(children(self)),
                13 => Stage::JoinCancelled(children(self)),
                14 => Stage::SetDown,
                _ if self.once_in(4) => Stage::CancelOwnGroup,
                _ => Stage::SetDown,
            });
        }
        tasks[id] = stages;
        id as Id
    }

    /// A step that may happen next, if there is one where it looks.
    fn step(&mut self, world: &World<'_>) -> Option<Step> {
        let ranks = world.ranks();
        let (rank, other) = (self.below(ranks), self.below(ranks));
        let step = match self.below(4) {
            0 | 1 if world.may_deliver(other, rank) => Step::Deliver(other, rank),
            2 | 3 if world.is_here(rank) => Step::Turn(rank, None, self.once_in(50)),
            _ => return None,
        };
        Some(step)
    }
}

#[test]
fn ten_thousand_random_scopes() {
    for seed in 1..=SCOPES {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let plan = random.plan();
        let mut world = World::new(&plan);
        let outcome = panic::catch_unwind(panic::AssertUnwindSafe(|| {
            for count in 0..MOST_STEPS {
                world.pass(Duration::from_micros(1));
                if let Some(step) = random.step(&world) {
                    world.step(step);
                }
                if count % 16 == 0 {
                    world.check();
                }
                if world.is_over() {
                    return;
                }
            }
            panic!("no end");
        }));
        let about = || format!("scope {seed} of {plan:?}\n{}", world.describe());
        assert!(outcome.is_ok(), "{}", about());
    }
}
