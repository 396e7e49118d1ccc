//! Executes a schedule in virtual time.
//!
//! The model is `LogGP`'s and `PLogP`'s ([`Costs`]), message by message:
//! - a send begins when the rank's processor and its outgoing port are free; it takes the
//!   processor for the overhead and the port for the gap;
//! - a message flies, then passes the receiver's incoming port, which it takes for the gap, too;
//! - waiting for it takes the receiver's processor for its overhead;
//! - combining takes the processor for gamma;
//! - from [`Options::rendezvous_bytes`] on, a message leaves only after a handshake with a receive
//!   that has been posted, and waiting for the send waits until it has left. A ready send needs no
//!   handshake.
//!
//! With several ranks on a node ([`NodeCosts`]) a message has the costs of its level, and one between
//! nodes takes, besides the two ranks' ports, those of the two nodes.
//!
//! Ports serve in the order of arrival: an incoming one messages as they come, awaited or not (those
//! that come at once as they are waited for), an outgoing one eager sends as they are begun and
//! rendezvous transfers as they are agreed.
//!
//! Where the messages inside a node are copies that slow each other down, another simulator runs the ranks: see
//! `in_memory`.
//!
//! With [`Ports::Shared`] messages at the same time pass a port together: see `shared_ports`.
//!
//! Which message meets which receive is known from the order of posting, and every rank consumes
//! in program order. So nearly all follows from the data flow, and a work-list of ranks that can go
//! on is enough: `flow`. Where that doesn't tell in which order messages came to a port, the
//! call is simulated anew by the clock, message by message in the order of time: `clock`.

mod arrivals;
mod clock;
mod costs;
mod event_queue;
mod flow;
mod in_memory;
mod levels;
mod machine;
mod mail;
mod messages;
mod outcome;
mod port;
mod rendezvous;
mod shared_ports;
mod state;

pub use costs::{CostKnot, Costs, LogGpCosts, PLogPCosts};
pub use in_memory::{MemoryCosts, simulate_alike_nodes, simulate_in_memory};
pub use levels::{LevelledCosts, NodeCosts};
pub(crate) use port::later;
pub use port::{ROUNDING, is_before};

pub use outcome::{Activity, ActivityKind, Options, Outcome, Ports, SimulationError};

use self::machine::SimulatedMachine;
use crate::{Call, Entry};

/// Executes calls, one after the other, in memory that it keeps: some 150 bytes per rank of the
/// largest call so far, and what was under way at once.
///
/// The outcome of a call depends on nothing that was before it.
#[derive(Debug, Default)]
pub struct Simulator {
    memory: state::SimulatorMemory,
}

impl Simulator {
    /// One that has no memory yet.
    pub fn new() -> Self {
        Simulator::default()
    }

    /// Executes one call; all ranks start at 0.
    ///
    /// # Errors
    /// The call can't be served, or the schedule is wrong.
    pub fn run(
        &mut self,
        entry: &Entry,
        call: &Call<'_>,
        costs: &impl LevelledCosts,
        options: Options,
    ) -> Result<Outcome, SimulationError> {
        let in_turn = options.ports == Ports::InTurn;
        if options.rendezvous_bytes.is_none() && costs.nodes() == 0 && in_turn {
            let machine = SimulatedMachine::<_, _, false>::new(
                &mut self.memory,
                entry,
                call,
                costs,
                options,
                |_| {},
            )?;
            if let Some(outcome) = machine.run()? {
                return Ok(outcome);
            }
        }
        self.run_observed(entry, call, costs, options, |_| {})
    }

    /// As [`Simulator::run`]; shows every activity, in program order for each rank.
    ///
    /// # Errors
    /// As [`Simulator::run`].
    pub fn run_observed(
        &mut self,
        entry: &Entry,
        call: &Call<'_>,
        costs: &impl LevelledCosts,
        options: Options,
        observe: impl FnMut(Activity),
    ) -> Result<Outcome, SimulationError> {
        SimulatedMachine::<_, _, true>::new(&mut self.memory, entry, call, costs, options, observe)?
            .run()
    }
}

/// Executes one call; all ranks start at 0. For many calls, [`Simulator`] is quicker.
///
/// # Errors
/// As [`Simulator::run`].
pub fn simulate(
    entry: &Entry,
    call: &Call<'_>,
    costs: &impl LevelledCosts,
    options: Options,
) -> Result<Outcome, SimulationError> {
    Simulator::new().run(entry, call, costs, options)
}

#[cfg(test)]
mod tests;
