//! The ranks' reports of their steps, on their way to rank 0, which writes a line of the history
//! for each step.
//!
//! Rank 0 takes the reports of a step when the next one is over: then they are there, and nobody
//! has waited for anybody. Only where more is to be written, or nothing follows, are they waited
//! for.

use serde::{Deserialize, Serialize};
use weft_runtime::comm::{Comm, CommError, Rank, Tag};
use weft_runtime::wire;

use super::RunError;
use super::error::malformed;
use super::writer::{Seen, Writer};
use crate::step::{Breach, StepReport, Strains};

const TAG: Tag = Tag(0x40);

/// A rank's report of a step.
#[derive(Serialize, Deserialize)]
pub(super) struct RankStep {
    pub(super) report: StepReport,
    pub(super) strains: Strains,
    /// The rank's warning of strain beyond a limit, given once.
    pub(super) breach: Option<Breach>,
}

/// The report of the last step, which rank 0 has still to write; other ranks have nothing.
#[derive(Default)]
pub(super) struct Reports(Option<(Seen, RankStep)>);

impl Reports {
    /// Reports a step; rank 0, which has [taken](Self::take) those of the step before, says what it
    /// has seen.
    pub(super) fn send(
        &mut self,
        comm: &mut dyn Comm,
        own: RankStep,
        seen: Option<Seen>,
    ) -> Result<(), CommError> {
        match seen {
            Some(seen) => self.0 = Some((seen, own)),
            None => {
                let unsendable = CommError::unsendable(comm.rank(), "its report of a step");
                let bytes = wire::encode(&own).map_err(unsendable)?;
                comm.send(Rank(0), TAG, bytes)?;
            }
        }
        Ok(())
    }

    /// Takes what all ranks have reported of a step, if that is still to be written.
    fn take(&mut self, comm: &mut dyn Comm) -> Result<Option<(Seen, Vec<RankStep>)>, CommError> {
        let Some((seen, own)) = self.0.take() else {
            return Ok(None);
        };
        let mut ranks = vec![own];
        for from in (1..comm.size() as u32).map(Rank) {
            let bytes = comm.recv_from(from, TAG)?;
            ranks.push(wire::decode(&bytes).map_err(malformed(from))?);
        }
        Ok(Some((seen, ranks)))
    }

    /// Writes what is still to be written, for which it waits if need be.
    pub(super) fn write(
        &mut self,
        comm: &mut dyn Comm,
        writer: Option<&mut Writer<'_>>,
    ) -> Result<(), RunError> {
        if let (Some(writer), Some((seen, ranks))) = (writer, self.take(comm)?) {
            writer.step(&seen, &ranks)?;
        }
        Ok(())
    }
}
