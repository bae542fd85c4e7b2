//! The warm-up of a replay: steps before those that count, from which ranks learn their assignment.
//!
//! In a run, the forecast of a step is made of earlier steps: ranks know where in a test the work
//! lies only if several of them have made parts of it, and what they know is some steps old. A
//! replay whose forecast were made of the very step that it is for would have a better one, and
//! would be too fast. So a record begins with some steps that do not count, in which ranks assign
//! tests twice.

use weft_balance::prices::Prices;

use crate::layout::Layout;
use crate::record::{Header, Record};
use crate::replay::{Left, Machine, replay};
use crate::sweep::SweepError;
use crate::synthetic::copied_step;

/// The number of recorded steps before the first that counts, if the run has as many. Ranks make an
/// assignment every eight steps, and the second one is made of the costs under the first one.
pub const WARM_UP_STEPS: u64 = 16;

/// Replays the warm-up steps of a record and returns what they leave to the first step that counts.
///
/// A record of an older program has no such steps, and copies of a record use them differently:
/// then the first step that counts is itself replayed several times.
///
/// # Errors
/// The record is damaged, or the runtime fails.
pub fn warmed_up(
    record: &mut Record,
    copies: u32,
    (header, layout): (&Header, &Layout),
    (prices, machine): (&Prices, &Machine),
) -> Result<Left, SweepError> {
    // Without forecasts, a step leaves to the next one only how late each rank is.
    let learns = machine.policy.forecast && layout.ranks.len() > 1 && copies == 1;
    if !learns || record.warm_up_steps() == 0 {
        let first = copied_step(record, 0, copies)?;
        return Ok(Left::before(header, layout, &first, prices, machine)?);
    }
    let first = record.warm_up_step(0)?;
    let mut left = Left::before(header, layout, &first, prices, machine)?;
    for index in 0..record.warm_up_steps() {
        let step = record.warm_up_step(index)?;
        left = replay(header, layout, &step, prices, machine, &left)?
            .0
            .left;
    }
    Ok(left)
}
