//! What messages cost in a simulation, as `predict` and `draw` take it from their flags.

use anyhow::Result;
use clap::Args;
use models::{
    Model,
    simulated::{CallTables, Rendezvous, SimulateError, SimulatedCall},
};
use records::{Collective, quantity};
use schedules::{Entry, simulator::SimulationError};

use site::{error::WrongUse, usage};
use stages::source::SimulationCosts;

/// Over the flags of simulations in a help text.
pub const SIMULATION: &str = "Simulation";

/// What messages cost in a simulation.
#[derive(Debug, Clone, Copy, Args)]
pub struct SimulationOptions {
    /// Parameters by which a simulated message costs
    #[arg(long, value_enum, default_value_t = CostModel::PLogP, help_heading = SIMULATION)]
    pub costs: CostModel,

    /// Rendezvous: messages from this size on wait for their receive to be posted [default: none]
    #[arg(long, value_name = "SIZE", value_parser = quantity::parse_bytes, hide_short_help = true, help_heading = SIMULATION)]
    pub rendezvous: Option<u64>,

    /// Cost of a rendezvous whose receive is already posted: seconds, or the round trip of an empty
    /// message [default: round-trip]
    #[arg(
        long,
        value_name = "round-trip|SECONDS",
        requires = "rendezvous",
        allow_hyphen_values = true,
        value_parser = rendezvous_cost,
        hide_short_help = true,
        help_heading = SIMULATION
    )]
    pub rendezvous_cost: Option<RendezvousCost>,
}

impl SimulationOptions {
    pub fn rendezvous(&self) -> Option<Rendezvous> {
        let handshake = self.rendezvous_cost.and_then(RendezvousCost::handshake);
        self.rendezvous.map(|from_bytes| Rendezvous { from_bytes, handshake })
    }

    pub fn of_models(&self) -> SimulationCosts {
        SimulationCosts { model: self.costs.model(), rendezvous: self.rendezvous() }
    }
}

/// What a rendezvous adds to its message.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RendezvousCost {
    RoundTrip,
    Seconds(f64),
}

impl RendezvousCost {
    /// As [`Rendezvous::handshake`] has it.
    const fn handshake(self) -> Option<f64> {
        match self {
            RendezvousCost::RoundTrip => None,
            RendezvousCost::Seconds(seconds) => Some(seconds),
        }
    }
}

fn rendezvous_cost(text: &str) -> Result<RendezvousCost, String> {
    if text == "round-trip" {
        return Ok(RendezvousCost::RoundTrip);
    }
    match text.parse::<f64>() {
        Ok(seconds) if seconds.is_finite() && seconds >= 0.0 => {
            Ok(RendezvousCost::Seconds(seconds))
        }
        _ => Err("expected round-trip or seconds of 0 or more, such as 0 or 30e-6".into()),
    }
}

/// The models that tell when a processor and a port are busy; Hockney's doesn't.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum CostModel {
    #[value(name = "loggp")]
    LogGp,
    #[value(name = "plogp")]
    PLogP,
}

impl CostModel {
    pub fn model(self) -> Model {
        match self {
            CostModel::LogGp => Model::LogGp,
            CostModel::PLogP => Model::PLogP,
        }
    }
}

/// `8 KiB`, or `none`.
pub fn segment_text(segment_bytes: u64) -> String {
    match segment_bytes {
        0 => "none".into(),
        bytes => quantity::format_bytes(bytes),
    }
}

/// Flags that none of the algorithms looks at would promise what doesn't happen.
///
/// # Errors
/// A root or a fan-out is given and means nothing.
pub fn check_options(
    collective: Collective,
    entries: &[&Entry],
    root: Option<u32>,
    fan_out: Option<u32>,
) -> Result<()> {
    if root.is_some() && !collective.is_rooted() {
        usage!("--root: {collective} has no root");
    }
    if fan_out.is_some() && !entries.iter().any(|entry| entry.fanned) {
        let names: Vec<_> = entries.iter().map(|entry| entry.name).collect();
        usage!("--fan-out: {collective} {} has none; k-chain and k-nomial have", names.join(", "));
    }
    Ok(())
}

/// What is simulated, in words: `64 KiB (count x type size) in segments of 8 KiB, root 0`.
pub fn in_words(run: &SimulatedCall) -> String {
    let mut words = match run.entry.collective {
        Collective::Barrier => vec!["no message".to_owned()],
        other => {
            let size = quantity::format_bytes(run.bytes);
            vec![format!("{size} ({})", other.message_size())]
        }
    };
    let segment_bytes = run.method.segment_bytes;
    if run.entry.segmented && segment_bytes > 0 {
        words.push(format!("segments of {}", segment_text(segment_bytes)));
    }
    let call = run.call(&CallTables::default()).fan_out;
    if run.entry.fanned {
        words.push(format!("fan-out {call}"));
    }
    if let Some(layout) = run.layout {
        words.push(format!("{layout} ranks"));
    }
    if run.entry.collective.is_rooted() {
        words.push(format!("root {}", run.root));
    }
    words.join(", ")
}

/// Whose fault it is that there is no outcome: the user's where the algorithm can't serve the call, or it takes too much;
/// Colibri's where ranks of a schedule wait forever, the costs are of other ranks, or nobody asked for so short a time.
pub fn blamed(error: SimulateError) -> anyhow::Error {
    use SimulationError as E;
    match error {
        SimulateError::Simulation(E::Deadlock { .. } | E::OtherRanks { .. } | E::Longer) => {
            error.into()
        }
        SimulateError::TooLong(_)
        | SimulateError::Simulation(E::Call(_) | E::SharedMemory | E::Memory { .. }) => {
            WrongUse(error.to_string()).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_of_a_schedule_is_not_the_users() {
        let is_users = |error: SimulationError| blamed(error.into()).is::<WrongUse>();
        assert!(!is_users(SimulationError::Deadlock { blocked: 2, first: 0 }));
        assert!(!is_users(SimulationError::OtherRanks { ranks: 2, call: 4 }));
        assert!(is_users(SimulationError::SharedMemory));
        assert!(is_users(SimulationError::Memory { ranks: 2 }));
    }
}
