//! Tests of the ranks that rules draw: everybody else, fairly.

use super::*;

fn start(
    rule: Victims,
    me: u32,
    ranks: u32,
    node_of: &dyn Fn(Rank) -> u32,
) -> Box<dyn VictimState> {
    rule.start(&Place {
        me: Rank(me),
        ranks,
        seed: 42,
        node_of,
    })
}

/// Every rank on a node of its own.
fn apart(rank: Rank) -> u32 {
    rank.0
}

/// The next victims, each answering at once with nothing.
fn draw(victims: &mut dyn VictimState, n: usize) -> Vec<u32> {
    let draws = (0..n).map_while(|_| {
        let victim = victims.next(&[])?;
        victims.answered(victim, false);
        Some(victim.0)
    });
    draws.collect()
}

#[test]
fn victims_are_the_others_and_all_of_them() {
    for &rule in VICTIMS {
        for ranks in [2, 3, 8] {
            for me in 0..ranks {
                let mut victims = start(rule, me, ranks, &|_| 0);
                let mut seen = vec![0; ranks as usize];
                for victim in draw(&mut *victims, 1000) {
                    seen[victim as usize] += 1;
                }
                assert_eq!(seen[me as usize], 0);
                let fair = 1000 / (ranks - 1);
                let low = seen.iter().enumerate().filter(|&(r, _)| r as u32 != me);
                assert!(low.clone().all(|(_, &n)| n > fair / 2), "{seen:?}");
            }
        }
    }
}

/// The sequence is part of what a seed promises: runs of earlier versions can be repeated.
#[test]
fn a_seed_says_whom_a_rank_asks() {
    let mut victims = start(Victims::RANDOM, 3, 64, &apart);
    assert_eq!(draw(&mut *victims, 8), [58, 14, 13, 11, 42, 37, 44, 61]);
}

#[test]
fn one_request_is_open_at_a_time() {
    for rule in [Victims::RANDOM, Victims::LAST, Victims::LIFELINES] {
        let mut victims = start(rule, 0, 8, &apart);
        let first = victims.next(&[]).unwrap();
        assert_eq!(victims.next(&[first]), None);
    }
}

#[test]
fn a_victim_that_had_tasks_is_asked_once_more() {
    let mut victims = start(Victims::LAST, 0, 64, &apart);
    let mut random = start(Victims::RANDOM, 0, 64, &apart);
    victims.answered(Rank(9), true);
    assert_eq!(victims.next(&[]), Some(Rank(9)));
    // It did not answer in time.
    assert_eq!(victims.next(&[]), random.next(&[]));
    victims.answered(Rank(9), true);
    victims.answered(Rank(9), false);
    assert_eq!(victims.next(&[]), random.next(&[]));
}

#[test]
fn one_near_and_one_far_request_are_open_at_a_time() {
    let mut victims = start(Victims::HIERARCHICAL, 5, 16, &|rank| rank.0 / 4);
    let is_near = |rank: Rank| rank.0 / 4 == 1;
    for _ in 0..100 {
        let first = victims.next(&[]).unwrap();
        let second = victims.next(&[first]).unwrap();
        assert_ne!(is_near(first), is_near(second));
        assert_eq!(victims.next(&[first, second]), None);
        // Whichever is answered is followed by one of its kind.
        let third = victims.next(&[second]).unwrap();
        assert_eq!(is_near(first), is_near(third));
    }
    // Nodes need not be runs of ranks.
    let mut victims = start(Victims::HIERARCHICAL, 5, 16, &|rank| rank.0 % 4);
    let near = victims.next(&[]).unwrap();
    let far = victims.next(&[near]).unwrap();
    assert!(near.0 % 4 == 1 && far.0 % 4 != 1, "{near:?} {far:?}");
}

#[test]
fn without_near_or_without_far_ranks_victims_are_random() {
    for node_of in [apart, |_| 0] {
        let mut victims = start(Victims::HIERARCHICAL, 3, 64, &node_of);
        let mut random = start(Victims::RANDOM, 3, 64, &node_of);
        assert_eq!(victims.next(&[Rank(7)]), None);
        assert_eq!(draw(&mut *victims, 100), draw(&mut *random, 100));
    }
}

#[test]
fn lifelines_lead_from_every_rank_to_every_other() {
    for ranks in 2..70 {
        let lines: Vec<_> = (0..ranks)
            .map(|r| start(Victims::LIFELINES, r, ranks, &apart))
            .collect();
        let mut reached = vec![false; ranks as usize];
        let mut next = vec![Rank(0)];
        while let Some(rank) = next.pop() {
            if !std::mem::replace(&mut reached[rank.index()], true) {
                assert!(!lines[rank.index()].lifelines().contains(&rank));
                next.extend(lines[rank.index()].lifelines());
            }
        }
        assert!(reached.iter().all(|&r| r), "{ranks} ranks");
        assert!(lines[0].lifelines().len() <= 7);
    }
}

#[test]
fn a_copy_goes_on_as_the_original_would() {
    for &rule in VICTIMS {
        let mut victims = start(rule, 2, 32, &|rank| rank.0 / 8);
        draw(&mut *victims, 5);
        let mut copy = victims.clone();
        assert_eq!(draw(&mut *victims, 50), draw(&mut *copy, 50));
    }
}

#[test]
fn every_rule_is_found_by_its_own_name() {
    for &rule in VICTIMS {
        assert_eq!(Victims::by_name(rule.name()), Some(rule));
        assert!(!rule.about().is_empty());
    }
    assert_eq!(Victims::by_name("nobody"), None);
    assert_eq!(format!("{:?}", Victims::default()), "random");
}
