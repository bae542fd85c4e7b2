//! A task that gives away as many others as thieves ask for.

use serde::{Deserialize, Serialize};
use weft_runtime::{Context, Split, Step, Task};

/// Lives to be split: each piece is one of those that are left.
#[derive(Serialize, Deserialize)]
pub(crate) struct Feeder(pub(crate) u64);

impl Task<()> for Feeder {
    const NAME: &'static str = "feeder";
    type Output = ();

    fn run(&mut self, _env: &(), cx: &mut Context<'_, (), ()>) -> Step<()> {
        cx.charge(u64::from(cx.budget()));
        if self.0 <= 1 {
            Step::Done(())
        } else {
            Step::More
        }
    }

    fn split(&mut self, _how: Split) -> Option<Self> {
        (self.0 > 1).then(|| {
            self.0 -= 1;
            Self(1)
        })
    }
}
