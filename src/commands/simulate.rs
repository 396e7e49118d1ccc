//! `colibri simulate`: what a method takes in virtual time, message by message, at any scale.

use std::ffi::OsString;

use anyhow::Result;
use clap::Args;
use models::{
    Model,
    parameters::Network,
    simulated::{Blocks, Run},
};
use records::{Collective, quantity};
use schedules::{
    Entry, find_named, of_collective,
    simulator::{self, Activity, Options, Outcome},
};
use serde::Serialize;

use crate::{
    commands::{
        options::{GridOptions, ModelOptions, ParameterSet, Segments},
        output::{self, Format},
        predict::sizes,
    },
    error::{Usage, usage},
    stages::{simulating, source::Source},
};

/// Simulates algorithms message by message, at any number of processes
#[derive(Debug, Args)]
pub struct Simulate {
    #[command(flatten)]
    network: NetworkOptions,

    #[command(flatten)]
    grid: GridOptions,

    /// Algorithms, with commas [default: all that have a schedule]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    algorithm: Vec<String>,

    /// The root, where the collective has one [default: 0]
    #[arg(long, value_name = "RANK")]
    root: Option<u32>,

    /// Number of chains of k-chain, radix of k-nomial [default: 4]
    #[arg(long, value_name = "K")]
    fan_out: Option<u32>,

    /// How the times are printed
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

/// What messages cost in a simulation.
#[derive(Debug, Clone, Args)]
pub struct NetworkOptions {
    /// A calibration.json, or preset:frodo, preset:boba (Table 5 of the paper)
    #[arg(long, value_name = "FILE|preset:NAME")]
    pub calibration: Option<OsString>,

    /// Whose parameters a message costs
    #[arg(long, value_enum, default_value_t = CostModel::PLogP)]
    pub model: CostModel,

    /// Parameters measured point to point, or fitted to collectives
    #[arg(long, value_enum, default_value_t = ParameterSet::Measured)]
    pub parameters: ParameterSet,

    /// Messages from this size on wait for their receive to be posted [default: none does]
    #[arg(long, value_name = "SIZE", value_parser = quantity::parse_bytes)]
    pub rendezvous: Option<u64>,

    /// What that adds where the receive is posted already: seconds, or a message of no bytes there
    /// and back [default: round-trip]
    #[arg(
        long,
        value_name = "round-trip|SECONDS",
        requires = "rendezvous",
        allow_hyphen_values = true,
        value_parser = rendezvous_cost
    )]
    pub rendezvous_cost: Option<RendezvousCost>,
}

/// What a rendezvous adds to its message.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RendezvousCost {
    RoundTrip,
    Seconds(f64),
}

impl RendezvousCost {
    /// As [`Options::handshake`] has it.
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
        _ => Err("wanted round-trip or seconds from 0 on, such as 0 or 30e-6".into()),
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
    pub fn name(self) -> &'static str {
        self.model().name()
    }

    fn model(self) -> Model {
        match self {
            CostModel::LogGp => Model::LogGp,
            CostModel::PLogP => Model::PLogP,
        }
    }
}

#[derive(Serialize)]
struct Row {
    collective: Collective,
    algorithm: &'static str,
    segment_bytes: u64,
    procs: u32,
    bytes: u64,
    model: &'static str,
    seconds: f64,
    messages: u64,
    costs: &'static str,
}

const HEADING: [&str; 8] =
    ["collective", "algorithm", "segment", "procs", "bytes", "costs", "simulated", "messages"];

impl Simulate {
    /// Runs the subcommand.
    pub fn run(self) -> Result<()> {
        let mut simulator = Simulator::load(&self.network)?;
        let _shown = simulating::show();
        let Segments::These(segments) = &self.grid.segments else {
            usage!(
                "--segments auto: the simulator takes the sizes that it is given, as 0,1KiB,8KiB"
            );
        };
        let procs = simulator.source.procs(&self.grid);
        let mut rows = Vec::new();
        for &collective in &self.grid.collective.0 {
            let entries = self.entries(collective)?;
            check_options(collective, &entries, self.root, self.fan_out)?;
            for entry in entries {
                for &segment_bytes in segments_of(entry, segments) {
                    for &procs in &procs {
                        if self.leaves_out(entry, procs) {
                            continue;
                        }
                        for &bytes in sizes(collective, &self.grid.sizes.0) {
                            let run = Run {
                                entry,
                                procs,
                                root: self.root.unwrap_or(0),
                                fan_out: self.fan_out,
                                bytes,
                                segment_bytes,
                            };
                            rows.push(self.row(&mut simulator, run)?);
                        }
                    }
                }
            }
        }
        output::rows(self.format, &rows, &HEADING, |row| {
            vec![
                row.collective.to_string(),
                row.algorithm.into(),
                segment_text(row.segment_bytes),
                row.procs.to_string(),
                row.bytes.to_string(),
                row.costs.into(),
                quantity::format_seconds(row.seconds),
                row.messages.to_string(),
            ]
        })
    }

    /// The algorithms asked for, or all of the collective.
    fn entries(&self, collective: Collective) -> Result<Vec<&'static Entry>> {
        if self.algorithm.is_empty() {
            let all: Vec<_> = of_collective(collective).collect();
            if all.is_empty() {
                usage!("{collective} has no schedules");
            }
            return Ok(all);
        }
        let named = self.algorithm.iter().map(|name| find_named(collective, name.trim()));
        Ok(named.collect::<Result<_, _>>().map_err(Usage)?)
    }

    /// Of all algorithms those are left out, and it is said, that can't do with `procs`; one that
    /// was asked for by name is an error instead.
    fn leaves_out(&self, entry: &Entry, procs: u32) -> bool {
        let unfit = entry.requirements.even && procs > 1 && !procs.is_multiple_of(2);
        let leaves_out = unfit && self.algorithm.is_empty();
        if leaves_out {
            let Entry { collective, name, .. } = entry;
            eprintln!(
                "{collective} {name} left out for {procs} processes: it needs an even number"
            );
        }
        leaves_out
    }

    fn row(&self, simulator: &mut Simulator, run: Run) -> Result<Row> {
        let outcome = simulator.run(&run, None)?;
        Ok(Row {
            collective: run.entry.collective,
            algorithm: run.entry.name,
            segment_bytes: run.segment_bytes,
            procs: run.procs,
            bytes: run.bytes,
            model: "simulated",
            seconds: outcome.seconds,
            messages: outcome.messages,
            costs: self.network.model.name(),
        })
    }
}

/// `8 KiB`, or `none`.
fn segment_text(segment_bytes: u64) -> String {
    match segment_bytes {
        0 => "none".into(),
        bytes => quantity::format_bytes(bytes),
    }
}

/// An algorithm that doesn't look at segments runs once.
fn segments_of<'a>(entry: &Entry, segments: &'a [u64]) -> &'a [u64] {
    if entry.segmented { segments } else { &[0] }
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
        usage!(
            "--fan-out: {collective} {} doesn't look at it; k-chain and k-nomial do",
            names.join(", ")
        );
    }
    Ok(())
}

/// What is simulated, in words: `64 KiB (count x type size) in segments of 8 KiB, root 0`.
pub fn in_words(run: &Run) -> String {
    let mut words = match run.entry.collective {
        Collective::Barrier => vec!["no message".to_owned()],
        other => {
            let size = quantity::format_bytes(run.bytes);
            vec![format!("{size} ({})", other.message_size())]
        }
    };
    if run.entry.segmented && run.segment_bytes > 0 {
        words.push(format!("segments of {}", segment_text(run.segment_bytes)));
    }
    let call = run.call(&Blocks::default()).fan_out;
    if run.entry.fanned {
        words.push(format!("fan-out {call}"));
    }
    if run.entry.collective.is_rooted() {
        words.push(format!("root {}", run.root));
    }
    words.join(", ")
}

/// The simulator under the costs of one platform.
pub struct Simulator {
    pub source: Source,
    network: Network,
    rendezvous_bytes: Option<u64>,
    handshake: Option<f64>,
    /// Its memory serves one call after the other.
    engine: simulator::Simulator,
}

impl Simulator {
    /// # Errors
    /// As for [`Source::load`], or the parameters are none.
    pub fn load(options: &NetworkOptions) -> Result<Self> {
        let source = Source::load(&ModelOptions {
            calibration: options.calibration.clone(),
            model: None,
            forms: models::Forms::default(),
            parameters: options.parameters,
        })?;
        let network = Network::new(options.model.model(), source.chosen()?)?;
        Ok(Simulator {
            source,
            network,
            rendezvous_bytes: options.rendezvous,
            handshake: options.rendezvous_cost.and_then(RendezvousCost::handshake),
            engine: simulator::Simulator::new(),
        })
    }

    /// Simulates one call and shows every activity, if somebody wants to see them.
    ///
    /// # Errors
    /// The algorithm can't serve the call, or it takes too long: used wrongly.
    pub fn run(&mut self, run: &Run, observe: Option<&mut dyn FnMut(Activity)>) -> Result<Outcome> {
        let options = Options {
            element_bytes: run.element_bytes(),
            rendezvous_bytes: self.rendezvous_bytes,
            handshake: self.handshake,
        };
        run.simulate(&mut self.engine, &self.network, options, observe)
            .map_err(|error| Usage(error.to_string()).into())
    }
}
