//! Rank 0 leads, the others follow.

use serde::{Serialize, de::DeserializeOwned};

use crate::{
    Result,
    exchange::{Communicator, Tag},
    polling_pause::PollingPause,
};

/// Does what rank 0 says until it says that this is the end.
///
/// # Errors
/// As `obey`; the MPI library refuses; a command is not understood.
pub fn follow<C: DeserializeOwned>(
    comm: &Communicator,
    pause: fn() -> PollingPause,
    mut obey: impl FnMut(C) -> Result<()>,
) -> Result<()> {
    while let Some(command) = comm.receive_value_asleep::<Option<C>>(0, Tag::Command, pause())? {
        obey(command)?;
    }
    Ok(())
}

/// Rank 0: tells a rank what to do.
///
/// # Errors
/// The MPI library refuses.
pub fn tell<C: Serialize>(comm: &Communicator, rank: u32, command: &C) -> Result<()> {
    comm.send_value(&Some(command), rank, Tag::Command)
}

/// Rank 0: tells some ranks what to do.
///
/// # Errors
/// The MPI library refuses.
pub fn tell_these<C: Serialize>(comm: &Communicator, ranks: &[u32], command: &C) -> Result<()> {
    ranks.iter().try_for_each(|rank| tell(comm, *rank, command))
}

/// Rank 0: tells all others among the first `procs` ranks what to do.
///
/// # Errors
/// The MPI library refuses.
pub fn tell_first<C: Serialize>(comm: &Communicator, procs: u32, command: &C) -> Result<()> {
    (1..procs).try_for_each(|rank| tell(comm, rank, command))
}

/// Rank 0: tells all others that this is the end.
///
/// # Errors
/// The MPI library refuses.
pub fn end(comm: &Communicator) -> Result<()> {
    comm.send_value_to_others(&None::<()>, Tag::Command)
}

/// Rank 0: does its part, and tells all others that this is the end, however it ended.
///
/// # Errors
/// As `direct`; the MPI library refuses.
pub fn lead<T>(comm: &Communicator, direct: impl FnOnce() -> Result<T>) -> Result<T> {
    let outcome = direct();
    // The others wait for a word, whatever happened here.
    end(comm)?;
    outcome
}
