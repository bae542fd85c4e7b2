//! Fibonacci numbers the slow way: groups inside tasks.
//!
//! The smallest program in which a task waits for others: it makes a group, forks both halves of
//! its sum into it and joins them. While it waits, its worker runs tasks of that group; the halves
//! may also be stolen and come back as results. Small numbers are computed without the runtime, or
//! there would be nothing but waiting.
//!
//! Sample runs:
//! ```text
//! $ fib 20
//! fib(20) = 6765
//! $ fib 34 3
//! fib(34) = 5702887
//! $ fib 30 17
//! fib(30) = 832040
//! ```

#![allow(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;

use serde::{Deserialize, Serialize};
use weft_runtime::comm::threads::launch;
use weft_runtime::{Context, Registry, ScopeError, ScopeOptions, Step, Task, TaskError, scope};

/// Numbers up to this one are computed by one task: some ten microseconds.
const CUTOFF: u32 = 20;
/// The largest whose value fits.
const LARGEST: u32 = 93;

/// Computes one Fibonacci number.
#[derive(Serialize, Deserialize)]
struct Fib {
    n: u32,
}

impl Fib {
    /// Both halves as tasks, and their sum.
    fn share(&self, cx: &mut Context<'_, (), Answer>) -> Answer {
        let group = cx.group();
        for n in [self.n - 1, self.n - 2] {
            cx.fork(&group, Self { n });
        }
        let mut sum = 0;
        while let Some(half) = cx.join(&group) {
            // Not computed, or computed by a half of the half that was not.
            sum += half.flatten()?;
        }
        Ok(sum)
    }
}

/// The result of a task whose own tasks may fail.
type Answer = Result<u64, TaskError>;

impl Task<()> for Fib {
    const NAME: &'static str = "fib";
    type Output = Answer;

    fn run(&mut self, _env: &(), cx: &mut Context<'_, (), Answer>) -> Step<Answer> {
        if self.n > CUTOFF {
            return Step::Done(self.share(cx));
        }
        let value = fib(self.n);
        // It took about this many calls.
        cx.charge(value);
        Step::Done(Ok(value))
    }
}

fn fib(n: u32) -> u64 {
    if n < 2 {
        u64::from(n)
    } else {
        fib(n - 1) + fib(n - 2)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let n: u32 = arguments.next().ok_or("fib N [RANKS]")?.parse()?;
    let ranks: usize = arguments.next().map_or(Ok(1), |text| text.parse())?;
    if n > LARGEST {
        return Err(format!("fib({n}) does not fit; at most {LARGEST}").into());
    }
    let registry = Registry::new().with::<Fib>();
    let answers = launch(ranks, |comm| {
        let options = ScopeOptions::default();
        let (answer, _report) = scope(comm, &registry, &(), &options, |s| {
            let group = s.group();
            if s.rank().index() == 0 {
                s.fork(&group, Fib { n })?;
            }
            let mut answer = 0;
            while let Some(value) = s.join(&group)? {
                answer += value.flatten()?;
            }
            Ok(answer)
        })?;
        Ok::<u64, ScopeError>(answer)
    })?;
    // The result goes to the rank that forked the task.
    let answer = answers.into_iter().next().ok_or("no ranks")??;
    println!("fib({n}) = {answer}");
    Ok(())
}
