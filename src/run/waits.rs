//! Waits of a rank for messages while it takes steps, outside of the sharing of tasks.
//!
//! The step itself knows nothing of it: waits are seen from outside ([`Watched`]). A rank that is
//! alone waits for nobody, and nothing is in between.

use std::time::Duration;

use weft_runtime::comm::{Comm, Rank, Tag};
use weft_runtime::trace::Watched;

use crate::step::{Simulation, StepError, StepReport};

/// The shortest wait that counts. Most messages are there already, and taking them takes time too.
const SHORTEST_WAIT: Duration = Duration::from_micros(5);

/// Takes a step, adds to `waited` how long its rank waited in it, and tells `told` of each wait:
/// the message's tag, the rank that was waited for, when it began and ended. Collective.
pub(super) fn advance(
    simulation: &mut Simulation<'_>,
    comm: &mut dyn Comm,
    waited: &mut Duration,
    told: &mut dyn FnMut(Tag, Rank, Duration, Duration),
) -> Result<StepReport, StepError> {
    if comm.size() == 1 {
        return simulation.advance(comm);
    }
    let mut note = |tag: Tag, from: Rank, begin: Duration, end: Duration| {
        let time = end.saturating_sub(begin);
        if time >= SHORTEST_WAIT {
            *waited += time;
            told(tag, from, begin, end);
        }
    };
    simulation.advance(&mut Watched::new(comm, &mut note))
}
