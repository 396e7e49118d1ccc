//! A budget that is too short, or another one when a run goes on.

use std::{
    fs,
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::Result;
use records::{FileError, document, quantity::format_duration};
use tuning::{JobCosts, measure};

use super::{LEAST_OF_SHARE, MEASURING_SHARE, Tune, USUAL_BUDGET};
use crate::commands::shared::budget::ChangedBudget;
use site::{run_directory::RunDirectory, usage};
use stages::{
    bench,
    confirming::{BUDGET_SHARE, SettledConfirmation},
    measurements, spent,
};

impl Tune {
    /// Whether there is time to measure anything at all, before anything is made.
    ///
    /// # Errors
    /// There is not.
    pub(super) fn refuse_hopeless(&self) -> Result<()> {
        let least = (measure::min_seconds(JobCosts::expected(0.0)) / MEASURING_SHARE).ceil();
        if !self.exhaustive && self.budget.as_secs_f64() < least {
            usage!(
                "--budget {}: tuning takes at least {least:.0} s, most of them to start jobs; the usual budget \
                 is {USUAL_BUDGET}",
                format_duration(self.budget)
            );
        }
        Ok(())
    }

    /// Whether anything was measured since the command `begun`.
    ///
    /// # Errors
    /// There was too little time; how much would do.
    pub(super) fn refuse_unmeasured(&self, run: &RunDirectory, begun: Instant) -> Result<()> {
        if run.measurements().exists() {
            return Ok(());
        }
        let (took, least) =
            (begun.elapsed().as_secs_f64(), measure::min_seconds(JobCosts::expected(0.0)));
        let needed = (least / MEASURING_SHARE).max((took + least) / (1.0 - BUDGET_SHARE));
        let needed = format_duration(Duration::from_secs_f64(needed.ceil()));
        usage!(
            "{}: with a budget of {} there is no time to measure any collective, after {took:.0} s to \
             calibrate; continue it by --resume --budget {needed}, or more",
            run.path().display(),
            format_duration(self.budget)
        );
    }

    /// What a run that goes on with a greater budget has concluded within the former one is put aside, and its
    /// records stay: measuring goes on, and confirming after it.
    ///
    /// # Errors
    /// The budget is spent already; the system refuses.
    pub(super) fn grow(&self, run: &RunDirectory) -> Result<()> {
        let Some(changed) = ChangedBudget::of(run, &self.run, Some(USUAL_BUDGET))? else {
            if run.summary().exists() && !self.exhaustive {
                say!(
                    "note: the run is complete: with its budget of {} nothing more is measured; a greater --budget goes on",
                    format_duration(self.budget)
                );
            }
            return Ok(());
        };
        changed.refuse_spent(spent::by_tuning(run)?)?;
        if self.exhaustive || changed.growth().is_none() {
            return Ok(());
        }
        let settled = SettledConfirmation::path(run);
        if settled.exists() {
            let aside = aside(run, put_aside(run).len() + 1);
            fs::rename(&settled, aside).map_err(|e| FileError::io(&settled, "rename", &e))?;
        }
        for concluded in [run.penalty(), run.summary()].iter().filter(|path| path.exists()) {
            fs::remove_file(concluded).map_err(|e| FileError::io(concluded, "remove", &e))?;
        }
        Ok(())
    }

    /// Which jobs go on, or begin, with a greater budget, and what they may take together in seconds; nothing
    /// where nothing was settled with a smaller one. Where nothing was measured since, the jobs that confirmed then are
    /// the first of more.
    ///
    /// # Errors
    /// What was settled cannot be read.
    pub(super) fn confirming_again(&self, run: &RunDirectory) -> Result<Option<(u32, f64)>> {
        let Some(path) = put_aside(run).pop() else { return Ok(None) };
        let before: SettledConfirmation = document::read(&path)?;
        let goes_on = before.batches == measurements::batches_planned(run);
        let generation = before.generation + u32::from(!goes_on);
        let jobs = format!("{}-", bench::confirmation(generation));
        let others = spent::by_tuning(run)?.saturating_sub(spent::by_jobs(run, &[&jobs])?);
        let left = self.budget.saturating_sub(others).as_secs_f64();
        Ok(Some((generation, left.max(LEAST_OF_SHARE * self.share(BUDGET_SHARE)))))
    }
}

/// How often a run has gone on with a greater budget after it was confirmed.
pub(super) fn times_grown(run: &RunDirectory) -> usize {
    put_aside(run).len()
}

fn aside(run: &RunDirectory, number: usize) -> PathBuf {
    run.file(&format!("confirmation-settled-{number}.json"))
}

/// What was settled with smaller budgets.
fn put_aside(run: &RunDirectory) -> Vec<PathBuf> {
    (1..).map(|number| aside(run, number)).take_while(|path| path.exists()).collect()
}
