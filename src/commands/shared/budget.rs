//! A budget that is another one when a run goes on.

use std::time::Duration;

use anyhow::Result;
use records::{
    FileError, document,
    quantity::{format_duration, parse_duration},
};

use site::{begun::GivenOptions, options::RunOptions, run_directory::RunDirectory, usage};

/// The budget that a run was begun with, and another one with which it is to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangedBudget {
    before: Duration,
    now: Duration,
}

impl ChangedBudget {
    /// What a run that goes on was given; nothing where its budget is the same, or it has none. `usual` is the
    /// budget where none is given. To be asked before the options of now are written down.
    ///
    /// # Errors
    /// What was written down cannot be read.
    pub fn of(
        run: &RunDirectory,
        options: &RunOptions,
        usual: Option<&str>,
    ) -> Result<Option<Self>> {
        let path = run.file(&options.given.file());
        if !options.resume || !path.exists() {
            return Ok(None);
        }
        let before: GivenOptions = document::read(&path)?;
        let budget = |given: &GivenOptions| {
            let text = given.value("budget").or(usual);
            let read = text.map(parse_duration).transpose();
            read.map_err(|problem| FileError::new(&path, problem).in_field("budget"))
        };
        let (Some(before), Some(now)) = (budget(&before)?, budget(&options.given)?) else {
            return Ok(None);
        };
        Ok((before != now).then_some(ChangedBudget { before, now }))
    }

    /// By how much it has grown; nothing where it has not.
    pub fn growth(self) -> Option<Duration> {
        self.now.checked_sub(self.before).filter(|more| !more.is_zero())
    }

    /// Whether there is anything left of it.
    ///
    /// # Errors
    /// It is less than what the run has `spent` so far.
    pub fn refuse_spent(self, spent: Duration) -> Result<()> {
        if self.now <= spent {
            usage!(
                "--budget {}: the run has spent {} already; expected more than that, or leave it out to go on \
                 with {}",
                format_duration(self.now),
                format_duration(spent),
                format_duration(self.before)
            );
        }
        Ok(())
    }
}
