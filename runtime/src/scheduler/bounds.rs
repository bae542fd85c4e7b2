//! The spread of shared bounds: what a rank's tasks have improved, and what others have.
//!
//! News goes along a binomial tree whose root is the rank that improved the bound, so after
//! log2(ranks) messages one after the other all ranks know it. A rank that knows something better
//! passes nothing on: those below it will hear the better value from that one's tree. Where two
//! are equal that of the lowest root counts as better, so one tree is followed to its end.
//!
//! A message that comes after the scope's end is dropped. Nobody waits for one, and the detectors
//! of the end know nothing of them.

use super::message::SchedulerMessage;
use super::{Scheduler, Work};
use crate::bound::UNKNOWN;
use crate::comm::Rank;

/// The best that was spread of one bound; an earlier one in this order is better.
type News = (u64, Rank);

/// The bounds that a rank knows, by their numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct SharedBounds {
    best: Vec<News>,
}

impl SharedBounds {
    /// Takes news in; returns whether they are better than what was spread here before.
    fn hear(&mut self, bound: u16, news: News) -> bool {
        let at = usize::from(bound);
        if self.best.len() <= at {
            self.best.resize(at + 1, (UNKNOWN, Rank(u32::MAX)));
        }
        let better = news < self.best[at];
        if better {
            self.best[at] = news;
        }
        better
    }
}

impl<T: Work<R>, R> Scheduler<T, R> {
    /// A task of this rank, or its body, has improved a bound: tells all others.
    ///
    /// `code` is smaller if the value is better. It is not told again unless it is better than what
    /// was known here.
    pub(crate) fn improve(&mut self, bound: u16, code: u64) {
        let known = self.bounds.best.get(usize::from(bound));
        if known.is_none_or(|&(best, _)| code < best) && code != UNKNOWN {
            self.bounds.hear(bound, (code, self.me));
            self.spread_bound(bound, (code, self.me));
        }
    }

    /// Another rank's news of a bound, which this one passes on if they are better.
    pub(super) fn hear_bound(&mut self, bound: u16, news: News) -> Result<(), String> {
        let (_, root) = news;
        if root.0 >= self.ranks {
            return Err(format!("a bound that rank {} has improved", root.0));
        }
        if root != self.me && self.bounds.hear(bound, news) {
            self.spread_bound(bound, news);
        }
        Ok(())
    }

    fn spread_bound(&mut self, bound: u16, (code, root): News) {
        for child in self.below(root) {
            let message = SchedulerMessage::Improved { bound, code, root };
            self.outgoing.push_back((child, message));
        }
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use std::collections::VecDeque;
    use std::time::Duration;

    use super::*;
    use crate::block::BlockError;
    use crate::policy::ScopeOptions;

    #[derive(Debug)]
    struct NoTask;

    impl Work<()> for NoTask {
        fn refused(&self, _rank: Rank, _why: BlockError) {}
    }

    type Machine = Scheduler<NoTask, ()>;
    type Message = (Rank, Rank, SchedulerMessage<NoTask, ()>);

    fn machines(ranks: u32) -> Vec<Machine> {
        let options = ScopeOptions::default();
        let all = (0..ranks).map(Rank);
        all.map(|rank| Scheduler::new(rank, ranks, &options, &|rank| rank.0))
            .collect()
    }

    fn collect(machines: &mut [Machine], messages: &mut VecDeque<Message>) {
        for (from, machine) in (0..).map(Rank).zip(machines) {
            while let Some((to, message)) = machine.outgoing() {
                messages.push_back((from, to, message));
            }
        }
    }

    fn known(machine: &Machine) -> Option<u64> {
        machine.bounds.best.first().map(|&(code, _)| code)
    }

    /// All ranks improve a bound, and messages arrive in an order drawn from `seed`; those of one
    /// link stay in order. Returns how many there were.
    fn all_hear(ranks: u32, codes: &[u64], mut seed: u64) -> usize {
        let mut machines = machines(ranks);
        let mut messages = VecDeque::new();
        for (at, &code) in codes.iter().enumerate() {
            machines[at * 7 % ranks as usize].improve(0, code);
        }
        collect(&mut machines, &mut messages);
        let mut sent = 0;
        while !messages.is_empty() {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let drawn = &messages[(seed >> 33) as usize % messages.len()];
            let link = (drawn.0, drawn.1);
            let first = messages.iter().position(|m| (m.0, m.1) == link);
            let (from, to, message) = messages.remove(first.unwrap()).unwrap();
            let machine = &mut machines[to.index()];
            machine.receive(from, message, Duration::ZERO).unwrap();
            collect(&mut machines, &mut messages);
            sent += 1;
        }
        let best = codes.iter().min();
        for machine in &machines {
            assert_eq!(known(machine), best.copied(), "rank {}", machine.me.0);
        }
        sent
    }

    #[test]
    fn all_ranks_hear_the_best_value_in_any_order_of_messages() {
        for ranks in [1, 2, 3, 8, 21] {
            assert_eq!(all_hear(ranks, &[5], 0), ranks as usize - 1);
            for seed in 0..200 {
                // Equal values among them, from several ranks.
                all_hear(ranks, &[9, 4, 6, 4, 4, 7, 4], seed);
            }
        }
    }

    #[test]
    fn a_worse_bound_is_not_passed_on() {
        let mut machines = machines(4);
        machines[0].improve(3, 10);
        assert_eq!(machines[0].outgoing.len(), 2);
        machines[0].improve(3, 10);
        machines[0].improve(3, 11);
        machines[0].improve(3, UNKNOWN);
        assert_eq!(machines[0].outgoing.len(), 2);
        machines[0].outgoing.clear();
        let news = |code| SchedulerMessage::Improved {
            bound: 3,
            code,
            root: Rank(3),
        };
        // Rank 0 is the first that rank 3 tells, and is to tell rank 1.
        let mut hear = |code| {
            let heard = machines[0].receive(Rank(3), news(code), Duration::ZERO);
            heard.unwrap();
            machines[0].outgoing.drain(..).count()
        };
        assert_eq!((hear(12), hear(10), hear(9)), (0, 0, 0));
        let beyond = SchedulerMessage::Improved {
            bound: 0,
            code: 0,
            root: Rank(4),
        };
        let refused = machines[0].receive(Rank(1), beyond, Duration::ZERO);
        assert!(refused.is_err());
    }
}
