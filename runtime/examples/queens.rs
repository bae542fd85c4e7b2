//! Counts the ways to put n queens on a board of n by n: a search that ranks share.
//!
//! The shortest useful program: a task holds partly filled boards, gives some away when it is
//! split, and returns its count.
//!
//! Sample runs:
//! ```text
//! $ queens 10
//! 10 queens: 724 ways
//! $ queens 12 4
//! 12 queens: 14200 ways
//! $ queens 12 64 virtual
//! 12 queens: 14200 ways
//! ```

#![allow(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;

use serde::{Deserialize, Serialize};
use weft_runtime::comm::virtual_time::VirtualOptions;
use weft_runtime::comm::{Comm, threads, virtual_time};
use weft_runtime::{Context, Registry, ScopeError, ScopeOptions, Split, Step, Task, scope};

/// A board filled row by row: columns taken, diagonals taken as they meet the next row, rows left.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Board {
    columns: u32,
    falling: u32,
    rising: u32,
    left: u32,
}

/// Boards still to be completed, the oldest first.
#[derive(Serialize, Deserialize)]
struct Search {
    boards: Vec<Board>,
    ways: u64,
}

impl Task<u32> for Search {
    const NAME: &'static str = "search";
    type Output = u64;

    fn run(&mut self, size: &u32, cx: &mut Context<'_, u32, u64>) -> Step<u64> {
        for _ in 0..cx.budget() {
            let Some(board) = self.boards.pop() else {
                return Step::Done(self.ways);
            };
            if board.left == 0 {
                self.ways += 1;
                continue;
            }
            let mut free = ((1 << size) - 1) & !(board.columns | board.falling | board.rising);
            while free != 0 {
                let queen = free & free.wrapping_neg();
                free ^= queen;
                self.boards.push(Board {
                    columns: board.columns | queen,
                    falling: (board.falling | queen) >> 1,
                    rising: (board.rising | queen) << 1,
                    left: board.left - 1,
                });
            }
            cx.charge(1);
        }
        Step::More
    }

    fn split(&mut self, how: Split) -> Option<Self> {
        let boards = how.take_from(&mut self.boards)?;
        Some(Self { boards, ways: 0 })
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let usage = "queens SIZE [RANKS [virtual]]";
    let mut arguments = std::env::args().skip(1);
    let size: u32 = arguments.next().ok_or(usage)?.parse()?;
    let ranks: usize = arguments.next().map_or(Ok(1), |text| text.parse())?;
    let driver = arguments.next();
    if !(1..=30).contains(&size) {
        return Err("a board has from 1 to 30 rows".into());
    }
    let registry = Registry::new().with::<Search>();
    let options = ScopeOptions::default();
    let count = |comm: &mut dyn Comm| {
        let (ways, _report) = scope(comm, &registry, &size, &options, |s| {
            let group = s.group();
            if s.rank().index() == 0 {
                let board = Board {
                    columns: 0,
                    falling: 0,
                    rising: 0,
                    left: size,
                };
                let boards = vec![board];
                s.fork(&group, Search { boards, ways: 0 })?;
            }
            let mut ways = 0;
            while let Some(found) = s.join(&group)? {
                ways += found?;
            }
            Ok(ways)
        })?;
        Ok::<u64, ScopeError>(ways)
    };
    let counts = match driver.as_deref() {
        None => threads::launch(ranks, count)?,
        Some("virtual") => virtual_time::launch(ranks, &VirtualOptions::default(), count)?.results,
        Some(_) => return Err(usage.into()),
    };
    // All results go to the rank that forked the first task.
    let ways = counts.into_iter().next().ok_or("no ranks")??;
    println!("{size} queens: {ways} ways");
    Ok(())
}
