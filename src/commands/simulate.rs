//! `colibri simulate`: what a method takes in virtual time, message by message, at any scale.

use anyhow::Result;
use clap::Args;
use models::simulated::SimulatedCall;
use records::{Collective, Layout, quantity};
use schedules::why_not_modelled;
use serde::Serialize;

use crate::commands::shared::{
    levels::{CompositionOptions, PlacedAlgorithm},
    network::{CostOptions, PlatformSimulator, check_options, segment_text},
    options::{GridOptions, ListedSegments},
    output::{self, TableFormat},
};
use site::usage;
use stages::{deciding::sizes, simulating};

/// Simulates algorithms message by message, at any number of processes
#[derive(Debug, Args)]
pub struct Simulate {
    #[command(flatten)]
    network: CostOptions,

    #[command(flatten)]
    grid: GridOptions<ListedSegments>,

    #[command(flatten)]
    composition: CompositionOptions,

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
    algorithm: String,
    segment_bytes: u64,
    procs: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    layout: Option<Layout>,
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
        let mut simulator = PlatformSimulator::load(&self.network, &self.composition.inside)?;
        let _shown = simulating::show();
        let segments = self.grid.segments.sizes();
        let mut rows = Vec::new();
        let layouts = simulator.source.layouts(&self.grid.layouts());
        self.grid.check_rows(layouts.len(), self.grid.collective.0.len() * segments.len())?;
        for (layout, procs) in self.groups(layouts) {
            for &collective in &self.grid.collective.0 {
                let algorithms = self.algorithms(layout, collective)?;
                // Of all collectives these are for those that look at them.
                if !self.grid.asks_for_all() {
                    let entries: Vec<_> = algorithms.iter().map(|placed| placed.entry).collect();
                    check_options(collective, &entries, self.root, self.fan_out)?;
                }
                for placed in algorithms {
                    rows.extend(self.rows(&mut simulator, &placed, segments, &procs)?);
                }
            }
        }
        if self.grid.asks_for_all() && rows.is_empty() {
            usage!("no collective has {}", self.algorithm.join(" or "));
        }
        output::rows(self.format, &rows, &HEADING, |row| {
            vec![
                row.collective.to_string(),
                row.algorithm.clone(),
                segment_text(row.segment_bytes),
                row.layout.map_or_else(|| row.procs.to_string(), |layout| layout.to_string()),
                row.bytes.to_string(),
                row.costs.into(),
                quantity::format_seconds(row.seconds),
                row.messages.to_string(),
            ]
        })
    }

    /// Numbers of processes with a node for each rank, together; layouts that are named or hold several
    /// ranks on a node, one by one.
    fn groups(&self, layouts: Vec<Layout>) -> Vec<(Option<Layout>, Vec<u32>)> {
        let is_alone = |layout: &Layout| self.grid.layouts.is_some() || !layout.is_flat();
        let (alone, flat): (Vec<Layout>, Vec<Layout>) = layouts.into_iter().partition(is_alone);
        let flat: Vec<u32> = flat.into_iter().map(Layout::procs).collect();
        let flat = (!flat.is_empty()).then_some((None, flat));
        let alone = alone.into_iter().map(|layout| (Some(layout), vec![layout.procs()]));
        flat.into_iter().chain(alone).collect()
    }

    /// Of one algorithm: by segment size, processes and message size.
    fn rows(
        &self,
        simulator: &mut PlatformSimulator,
        placed: &PlacedAlgorithm,
        segments: &[u64],
        procs: &[u32],
    ) -> Result<Vec<SimulationRow>> {
        let entry = placed.entry;
        let mut rows = Vec::new();
        for &segment_bytes in placed.segments(segments) {
            for &procs in procs {
                if placed.leaves_out(procs, self.algorithm.is_empty()) {
                    continue;
                }
                for &bytes in sizes(entry.collective, &self.grid.sizes.0) {
                    let run = SimulatedCall {
                        entry,
                        procs,
                        root: self.root.unwrap_or(0),
                        bytes,
                        method: placed.parametrized(self.fan_out, segment_bytes),
                        layout: placed.layout,
                    };
                    rows.push(self.row(simulator, run, &placed.method.words())?);
                }
            }
        }
        Ok(rows)
    }

    /// The algorithms asked for, or all of the collective; of all collectives those that it has.
    fn algorithms(
        &self,
        layout: Option<Layout>,
        collective: Collective,
    ) -> Result<Vec<PlacedAlgorithm>> {
        if self.algorithm.is_empty() {
            let all = self.composition.all(layout, collective)?;
            if all.is_empty() && !self.grid.asks_for_all() {
                usage!("{collective} has no schedules");
            }
            return Ok(all);
        }
        let names = self.algorithm.iter().map(|name| name.trim());
        let algorithms = names.clone().filter_map(|name| name.parse().ok());
        if let Some(why) =
            algorithms.filter_map(|one| why_not_modelled(&self.grid.collective.0, one)).next()
        {
            usage!("--algorithm: {why}");
        }
        let is_there =
            |name: &&str| !self.grid.asks_for_all() || CompositionOptions::has(collective, name);
        let named = |name| self.composition.named(layout, collective, name);
        names.filter(is_there).map(named).collect()
    }

    fn row(
        &self,
        simulator: &mut PlatformSimulator,
        run: SimulatedCall,
        algorithm: &str,
    ) -> Result<SimulationRow> {
        let outcome = simulator.run(&run, None)?;
        Ok(SimulationRow {
            collective: run.entry.collective,
            algorithm: algorithm.into(),
            segment_bytes: run.method.segment_bytes,
            procs: run.procs,
            layout: run.layout,
            bytes: run.bytes,
            model: "simulated",
            seconds: outcome.seconds,
            messages: outcome.messages,
            costs: self.network.model.name(),
        })
    }
}
