//! `colibri tune --replay`: how few of a run's cells would have sufficed.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;

use crate::commands::shared::{
    options::List,
    output::{self, percent},
};
use records::quantity;
use site::{run_directory::RunDirectory, usage};
use stages::{
    fitting,
    replaying::{self, Replay},
};

/// A record to tune on.
#[derive(Debug, Args)]
pub struct ReplayOptions {
    /// Measure nothing; tune on the record of this run, imported or measured, and show how good the
    /// decisions are after a share of its cells (a method at a point)
    #[arg(
        long,
        value_name = "RUN",
        help_heading = REPLAY,
        conflicts_with_all = [
            "RunOptions", "SiteOptions", "collective", "procs", "layouts", "sizes", "segments", "methods", "commutative",
            "trace", "unconfirmed", "budget", "exhaustive", "roots", "sbatch", "seed", "application",
        ]
    )]
    pub replay: Option<PathBuf>,

    /// Shares of the cells after which decisions are judged, with commas [default:
    /// 10%,20%,30%,40%,50%,75%,100%]
    #[arg(long, value_name = "LIST", value_parser = shares, hide_short_help = true, help_heading = REPLAY)]
    cells: Option<List<f64>>,
}

/// Shares of the cells after which decisions are judged where the user names none.
const CELLS: [f64; 7] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0];

/// Over the flags of a replay in a help text.
const REPLAY: &str = "Without measuring";

/// Ascending.
fn shares(text: &str) -> Result<List<f64>, String> {
    let share = |part| quantity::parse_share(part, quantity::ABOVE_0_TO_1);
    let mut shares = text.split(',').map(share).collect::<Result<Vec<f64>, String>>()?;
    shares.sort_by(f64::total_cmp);
    Ok(List(shares))
}

impl ReplayOptions {
    /// Tunes on a record.
    pub fn run(&self, directory: &Path) -> Result<()> {
        let run = RunDirectory::judge(directory)?;
        let times = fitting::times(&run)?.times;
        if times.is_empty() {
            usage!("{}: holds no times of collectives", run.path().display());
        }
        let cells = self.cells.as_ref().map_or(&CELLS[..], |List(cells)| cells);
        output::print(&text(&replaying::replay(&times, cells)))
    }

    /// Clap does not ask for what conflicts with another flag that is given.
    pub fn refuse_without_record(&self) -> Result<()> {
        if self.cells.is_some() && self.replay.is_none() {
            usage!(
                "--cells is for --replay RUN alone: it says where the decisions on its record are judged"
            );
        }
        Ok(())
    }
}

fn text(replay: &Replay) -> String {
    let mut text = format!(
        "Decisions at {} after a share of the {}; penalty relative to the fastest method\n\n",
        records::counted(replay.points, "point"),
        records::counted(replay.cells, "cell")
    );
    let rows = replay.decisions.iter().map(|after| {
        vec![
            after.cells.to_string(),
            percent(after.cells as f64 / replay.cells as f64),
            percent(after.time),
            percent(after.mean),
            percent(after.percentile_95),
        ]
    });
    text += &output::aligned(&["cells", "share", "share of time", "mean", "95th percentile"], rows);
    if let Some([mean, upper]) = replay.default {
        text += &format!(
            "\nPenalty of the default: mean {}, 95th percentile {}\n",
            percent(mean),
            percent(upper)
        );
    }
    text
}
