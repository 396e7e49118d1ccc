//! `colibri tune RUN -- ./application`: the application's own runs.

use std::{ffi::OsString, time::Duration};

use anyhow::Result;
use records::{document, platform::Platform, summary::TuningSummary, usage::Usage};

use super::{Tune, budget};
use site::{allocation::within_allocation_beside, lazy::LazySite, run_directory::RunDirectory};
use stages::application::{ApplicationRuns, MIN_TURNS};

pub use site::application::check;

impl Tune {
    /// Whether it is tuned for an application that it runs itself.
    pub(super) fn runs_application(&self) -> bool {
        !self.application.is_empty()
    }

    /// What the application calls, by a run of it.
    pub(super) fn trace_application(
        &self,
        run: &RunDirectory,
        site: &mut LazySite,
        platform: &Platform,
    ) -> Result<Usage> {
        let usage = self.runs(run, site).trace(platform)?;
        site.open(run)
            .and_then(|site| self.check_roots(&self.points(Some(&usage), site)?.collectives))?;
        let [ran, spent] =
            [usage.seconds, usage.collective_seconds()].map(records::quantity::format_seconds);
        say!("application, traced: it ran for {ran}, {spent} of that in collectives");
        Ok(usage)
    }

    /// Leaves the application the end of an allocation: it runs in turns after the tuning.
    pub(super) fn leave_time_for_turns(&mut self, run: &RunDirectory) -> Result<()> {
        if self.runs_application() && !self.exhaustive {
            let later = 2 * MIN_TURNS * traced(run)?;
            self.budget = within_allocation_beside(self.budget, later)?;
        }
        Ok(())
    }

    /// Runs the application in turns without and with what is advised, and writes down how long that took; not where nothing
    /// is to be loaded.
    pub(super) fn run_application(
        &self,
        run: &RunDirectory,
        site: &mut LazySite,
        summary: &mut TuningSummary,
    ) -> Result<()> {
        let advised = summary.advised();
        if !self.runs_application() || advised.counts.replaced() == 0 {
            return Ok(());
        }
        let turns =
            self.runs(run, site).turns(advised, &summary.platform, traced(run)?, self.budget)?;
        if let Some(application) = &mut summary.application {
            application.turns = turns;
        }
        Ok(document::write(&run.summary(), summary)?)
    }

    fn runs<'a, 's>(
        &'a self,
        run: &'a RunDirectory,
        site: &'a mut LazySite<'s>,
    ) -> ApplicationRuns<'a, 's> {
        // With a greater budget other choices are loaded: what was recorded with the former ones stays beside.
        let folder = match budget::times_grown(run) {
            0 => "application".to_owned(),
            times => format!("application-{}", times + 1),
        };
        ApplicationRuns { run, site, words: &self.application, folder }
    }
}

/// How long the application ran when it was traced.
fn traced(run: &RunDirectory) -> Result<Duration> {
    let usage: Usage = document::read(&run.usage())?;
    Ok(Duration::try_from_secs_f64(usage.seconds).unwrap_or(Duration::MAX))
}

/// An application's command line as one would type it.
pub fn typed(words: &[OsString]) -> String {
    let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    site::template::Template::quoted_text(&words)
}
