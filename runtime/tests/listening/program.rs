//! A program that does everything a trace has an event for.

use serde::{Deserialize, Serialize};
use weft_runtime::comm::{Collectives, Comm, Rank};
use weft_runtime::trace::Detail;
use weft_runtime::{
    BlockName, Context, Registry, ScopeError, ScopeOptions, ScopeReport, Split, Step, Task, scope,
};

/// Counts down, and gives half of what is left away.
#[derive(Serialize, Deserialize)]
struct Count {
    left: u64,
    depth: u16,
}

impl Task<()> for Count {
    const NAME: &'static str = "count";
    type Output = u64;

    fn run(&mut self, _: &(), cx: &mut Context<'_, (), u64>) -> Step<u64> {
        let now = self.left.min(u64::from(cx.budget()));
        cx.charge(now);
        cx.emit(now);
        self.left -= now;
        match self.left {
            0 => Step::Done(0),
            _ => Step::More,
        }
    }

    fn split(&mut self, how: Split) -> Option<Self> {
        if self.left < 1000 || how.gives_nothing() {
            return None;
        }
        let left = self.left / 2;
        self.left -= left;
        self.depth += 1;
        Some(Self {
            left,
            depth: self.depth,
        })
    }

    fn detail(&self) -> Detail {
        Detail {
            depth: self.depth,
            of: [1, 2],
        }
    }
}

/// Forks and joins.
#[derive(Serialize, Deserialize)]
struct Nest(u64);

impl Task<()> for Nest {
    const NAME: &'static str = "nest";
    type Output = u64;

    fn run(&mut self, _: &(), cx: &mut Context<'_, (), u64>) -> Step<u64> {
        cx.charge(500);
        if self.0 == 0 {
            return Step::Done(1);
        }
        let group = cx.group();
        cx.fork(&group, Self(self.0 - 1));
        cx.fork(&group, Self(self.0 - 1));
        let mut sum = 0;
        while let Some(Ok(below)) = cx.join(&group) {
            sum += below;
        }
        Step::Done(sum)
    }
}

/// Reads a block, and for a long time nothing else.
#[derive(Serialize, Deserialize)]
struct Read(BlockName);

impl Task<()> for Read {
    const NAME: &'static str = "read";
    type Output = u64;

    fn run(&mut self, _: &(), cx: &mut Context<'_, (), u64>) -> Step<u64> {
        let sum = cx.block(&self.0).iter().map(|&b| u64::from(b)).sum();
        // At 50 ns each these are 15 ms.
        cx.charge(300_000);
        Step::Done(sum)
    }

    fn needs(&self) -> Vec<BlockName> {
        vec![self.0]
    }
}

/// Shares work between all ranks: rank 0 forks it and gets the sum, which is always the same.
pub(crate) fn share(
    comm: &mut dyn Comm,
    options: &ScopeOptions,
) -> Result<(u64, ScopeReport), ScopeError> {
    comm.barrier()?;
    let registry = Registry::new()
        .with::<Count>()
        .with::<Nest>()
        .with::<Read>();
    scope(comm, &registry, &(), options, |s| {
        let (group, dropped) = (s.group(), s.group());
        let home = Rank(s.size() as u32 - 1);
        let (id, version) = (5, 1);
        if s.rank() == home {
            s.publish(id, version, vec![3; 100])?;
        }
        if s.rank() == Rank(0) {
            let left = 60_000;
            s.fork(&group, Count { left, depth: 0 })?;
            s.fork(&group, Nest(4))?;
            s.fork(&group, Read(BlockName { home, id, version }))?;
        }
        let mut sum = 0;
        while let Some(part) = s.join(&group)? {
            sum += part?;
        }
        if s.rank() == Rank(0) {
            s.fork(&dropped, Nest(3))?;
            s.cancel(&dropped)?;
        }
        while s.join(&dropped)?.is_some() {}
        Ok(sum)
    })
}
