//! `colibri simulate`: what a method takes in virtual time, message by message, at any scale.

use anyhow::Result;
use clap::Args;
use models::simulated::Run;
use records::{Collective, quantity};
use schedules::{Entry, find_named, of_collective};
use serde::Serialize;

use crate::{
    commands::shared::{
        network::{CostOptions, PlatformSimulator, check_options, segment_text},
        options::{GridOptions, SegmentOption},
        output::{self, TableFormat},
    },
    error::{WrongUse, usage},
    stages::{deciding::sizes, simulating},
};

/// Simulates algorithms message by message, at any number of processes
#[derive(Debug, Args)]
pub struct Simulate {
    #[command(flatten)]
    network: CostOptions,

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

    /// Output format
    #[arg(long, value_enum, default_value_t = TableFormat::Table)]
    format: TableFormat,
}

#[derive(Serialize)]
struct SimulationRow {
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
        let mut simulator = PlatformSimulator::load(&self.network)?;
        let _shown = simulating::show();
        let SegmentOption::These(segments) = &self.grid.segments else {
            usage!("--segments auto: the simulator needs a list of sizes, such as 0,1KiB,8KiB");
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
        Ok(named.collect::<Result<_, _>>().map_err(WrongUse)?)
    }

    /// Of all algorithms those are left out, and it is said, that can't do with `procs`; one that
    /// was asked for by name is an error instead.
    fn leaves_out(&self, entry: &Entry, procs: u32) -> bool {
        let unfit = entry.requirements.even && procs > 1 && !procs.is_multiple_of(2);
        let leaves_out = unfit && self.algorithm.is_empty();
        if leaves_out {
            let Entry { collective, name, .. } = entry;
            eprintln!("{collective} {name} skipped for {procs} processes: it needs an even number");
        }
        leaves_out
    }

    fn row(&self, simulator: &mut PlatformSimulator, run: Run) -> Result<SimulationRow> {
        let outcome = simulator.run(&run, None)?;
        Ok(SimulationRow {
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

/// An algorithm that doesn't look at segments runs once.
fn segments_of<'a>(entry: &Entry, segments: &'a [u64]) -> &'a [u64] {
    if entry.segmented { segments } else { &[0] }
}
