//! The sender's watch on what others take of the processors.

use records::disturbance::Stretch;

use super::command::PairCommand;
use crate::{
    Result,
    disturbance::{
        allowance::DisturbanceAllowance,
        sampling::{RankSample, Sampler},
        stretches::Stretches,
    },
    exchange::{Communicator, Tag},
    polling_pause::PollingPause,
};

/// Its own eyes, and the store of what all ranks see.
#[derive(Debug)]
pub(super) struct Watch {
    sampler: Sampler,
    stretches: Stretches,
    /// The ranks that take part in something at this level, the sender and its mirror first.
    attending: Vec<u32>,
    pub(super) allowance: DisturbanceAllowance,
}

impl Watch {
    /// From now on, of the first `attending` ranks in this order.
    pub(super) fn new(
        sampler: Sampler,
        stretches: Stretches,
        (mut order, attending): (Vec<u32>, usize),
    ) -> Self {
        order.truncate(attending);
        Watch { sampler, stretches, attending: order, allowance: DisturbanceAllowance::default() }
    }

    /// If it is time, or at the `end`: asks the ranks that take part, all or the pair, and gives what
    /// there is to tell of the time since the last look.
    ///
    /// # Errors
    /// The MPI library refuses.
    pub(super) fn look(
        &mut self,
        comm: &Communicator,
        all_attend: bool,
        end: bool,
    ) -> Result<Option<Stretch>> {
        if !self.stretches.is_due() && !end {
            return Ok(None);
        }
        let count = if all_attend { self.attending.len() } else { 2 };
        let others = &self.attending[1..count];
        for &rank in others {
            comm.send_value(&PairCommand::Look, rank, Tag::Command)?;
        }
        let mut samples: Vec<RankSample> = vec![self.sampler.end()];
        for &rank in others {
            samples.push(comm.receive_value_asleep(
                rank,
                Tag::Report,
                PollingPause::for_participant(),
            )?);
        }
        self.stretches.take_in(&samples);
        Ok(self.stretches.close(true))
    }
}
