//! What a run has left before the first recorded step that counts: its plans, and what they were made of.
//!
//! A forecast is learnt: where in a test the work lies is known from who made which part of it before, and what was known when the last plan was
//! made is some steps old. A plan that is made of the very steps that it is for is better than that, and the replay too fast. So a
//! record has steps before those that count, in which ranks plan twice.

use weft_balance::prices::Prices;

use crate::layout::Layout;
use crate::record::{Header, Record};
use crate::replay::{Left, Machine, replay};
use crate::sweep::SweepError;
use crate::synthetic::copied_step;

/// Steps that lead to the first that counts, if there are so many before it: ranks plan every eight steps, and the second plan is made of
/// what the first one led to.
pub const WARM_UP_STEPS: u64 = 16;

/// What the steps that lead to the first one that counts leave to it; of so many copies of the record, or one of a program that recorded
/// none, what many plans for that step itself do.
///
/// # Errors
/// A damaged record, or an error in the runtime.
pub fn warmed_up(
    record: &mut Record,
    copies: u32,
    (header, layout): (&Header, &Layout),
    (prices, machine): (&Prices, &Machine),
) -> Result<Left, SweepError> {
    // Without forecasts a step leaves only who is late.
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
