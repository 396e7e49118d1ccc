//! `colibri platform --clocks`: how well the ranks' clocks can be synchronised.

use std::{collections::BTreeMap, ffi::OsString, path::Path, time::Duration};

use anyhow::Result;
use clap::Args;
use records::{observation::ClockError, quantity, record};

use crate::commands::shared::{options::SiteOptions, output};
use site::{ranks::Site, run_directory::RunDirectory};

/// Over the flags of the clocks in a help text.
const CLOCKS: &str = "Clocks";

/// How the clocks are synchronised and compared.
#[derive(Debug, Args)]
pub struct ClockOptions {
    /// Synchronise the ranks' clocks instead, and tell how far they are apart afterwards; DIR is the
    /// directory of a run that keeps every comparison [default: none does]
    #[arg(long, help_heading = CLOCKS)]
    pub clocks: bool,

    /// How long to compare the clocks after their synchronisation
    #[arg(long = "for", value_name = "TIME", value_parser = quantity::parse_duration, default_value = "10s", requires = "clocks", help_heading = CLOCKS)]
    duration: Duration,

    /// Do not resynchronise when that is due
    #[arg(long, requires = "clocks", hide_short_help = true, help_heading = CLOCKS)]
    once: bool,

    /// Synchronise even if the ranks share one clock
    #[arg(long, requires = "clocks", hide_short_help = true, help_heading = CLOCKS)]
    synchronise: bool,

    /// Test the synchronisation: give every rank a false clock drawn from this seed (up to 3 ms
    /// off, up to 20 ppm fast or slow), and compare with the kernel's clock
    #[arg(long, value_name = "SEED", requires = "clocks", hide_short_help = true, help_heading = CLOCKS)]
    false_clocks: Option<u64>,
}

impl ClockOptions {
    /// Synchronises the clocks and compares them; the record stays if `keeps`.
    pub fn compare(&self, options: &SiteOptions, directory: &Path, keeps: bool) -> Result<()> {
        let mut run = RunDirectory::at(directory)?;
        run.refuse_existing(&run.clock_errors())?;
        let site = Site::find(options)?;
        run.make()?;
        run.refuse_existing(&run.clock_errors())?;
        let site = site.open(&run)?;
        if keeps {
            run.stay();
        }
        let mut arguments: Vec<OsString> = vec![
            "--record".into(),
            run.clock_errors().into(),
            "--seconds".into(),
            self.duration.as_secs_f64().to_string().into(),
        ];
        arguments.extend(self.once.then(|| "--once".into()));
        arguments.extend(self.synchronise.then(|| "--synchronise".into()));
        if let Some(seed) = self.false_clocks {
            arguments.extend(["--false-clocks".into(), seed.to_string().into()]);
        }
        site.run("clocks", site.ranks(), &arguments, &[])?;
        let rows = record::read::<ClockError>(&run.clock_errors())?.rows;
        output::print(&summary(&rows))?;
        if keeps {
            say!("written: {}", run.clock_errors().display());
        }
        Ok(())
    }
}

/// For every rank: how far its clock was off right after the synchronisation, at most, and at
/// last.
fn summary(rows: &[ClockError]) -> String {
    if rows.is_empty() {
        return "the ranks share one clock, so there is nothing to synchronise (--synchronise does \
                it anyway)\n"
            .into();
    }
    let mut ranks: BTreeMap<u32, Vec<&ClockError>> = BTreeMap::new();
    rows.iter().for_each(|row| ranks.entry(row.rank).or_default().push(row));
    let table = ranks.into_iter().map(|(rank, rows)| {
        let (first, last) = (rows[0], rows[rows.len() - 1]);
        let most = rows.iter().map(|row| error(row).abs()).fold(0.0, f64::max);
        let time = quantity::format_seconds;
        vec![
            rank.to_string(),
            time(first.round_trip_seconds),
            time(error(first)),
            time(most),
            time(error(last)),
            format!("{:.2}", last.drift_ppm),
            if last.true_error_seconds.is_some() { "exact" } else { "by round trips" }.into(),
        ]
    });
    let heading =
        ["rank", "round trip", "error at first", "at most", "at last", "drift (ppm)", "compared"];
    output::aligned(&heading, table)
}

/// The exact error where it is known.
fn error(row: &ClockError) -> f64 {
    row.true_error_seconds.unwrap_or(row.seen_error_seconds)
}
