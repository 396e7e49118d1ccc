//! What the sender tells the other ranks.

use serde::{Deserialize, Serialize};

use super::{cells::SizedExperiment, series_store::Observation};
use crate::{
    Result,
    exchange::{Communicator, Tag},
    polling_pause::PollingPause,
};

/// What to do.
#[derive(Debug, Serialize, Deserialize)]
pub enum PairCommand {
    /// To those who take part: so many repetitions.
    Measure(SizedExperiment, u32),
    /// To all: from now on every rank takes part, or the mirror alone does.
    Attend(bool),
    /// To rank 0, where it is not the sender: observations for the record.
    Record(Vec<Observation>),
    /// To rank 0: seconds of the budget that are spent.
    EarlierObservations(f64),
    /// To rank 0: a line of the record's header, by key and value.
    Note(String, String),
    /// To those who take part: tell what you have seen of who else uses the processors.
    Look,
    /// To all: the end.
    Stop,
}

/// How a rank waits for the next command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attention {
    /// Inside MPI: it is about to be timed.
    Mirror,
    /// Asleep, but soon awake.
    Participant,
    /// Asleep, and rarely looking.
    Bystander,
}

/// Waits for the sender's next command.
///
/// # Errors
/// The MPI library refuses.
pub fn next(comm: &Communicator, sender: u32, attention: Attention) -> Result<PairCommand> {
    match attention {
        Attention::Mirror => comm.receive_value(sender, Tag::Command),
        Attention::Participant => {
            comm.receive_value_asleep(sender, Tag::Command, PollingPause::for_participant())
        }
        Attention::Bystander => {
            comm.receive_value_asleep(sender, Tag::Command, PollingPause::for_idle_rank())
        }
    }
}
