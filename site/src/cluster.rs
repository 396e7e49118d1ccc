//! The virtual cluster that a run works on, taken down with the run where it was set up for it.

use std::path::PathBuf;

use anyhow::{Context, Result};
use records::document::{self, Document};
use serde::{Deserialize, Serialize};
use testbed::{Spec, Testbed};

use crate::{describe, launched, run_directory::RunDirectory};

/// A virtual cluster; one that was set up for this run is taken down with it.
pub struct Cluster {
    testbed: Option<Testbed>,
    /// Where its name is written down, if it is ours to take down.
    written_down: Option<PathBuf>,
    /// Where its switch's service is recorded, once a run has begun on it.
    record: Option<PathBuf>,
}

/// The virtual cluster that a run has set up, so that a killed run's can be found.
#[derive(Debug, Serialize, Deserialize)]
struct SetUp {
    name: String,
}

impl Document for SetUp {
    const SCHEMA: &'static str = "colibri/run-testbed/1";
}

fn written_down(run: &RunDirectory) -> PathBuf {
    run.file("testbed.json")
}

fn switch_record(run: &RunDirectory) -> PathBuf {
    run.file("switch.json")
}

impl Cluster {
    /// One that is up, and stays.
    pub fn shared(testbed: Testbed) -> Self {
        Cluster { testbed: Some(testbed), written_down: None, record: None }
    }

    /// Where its switch's service is recorded: in a run that has begun on it.
    pub fn record_service(&mut self, run: &RunDirectory) {
        self.record = Some(switch_record(run));
    }

    /// Takes down what a killed run has left.
    ///
    /// # Errors
    /// It can't be taken down.
    pub fn clear_up(run: &RunDirectory) -> Result<()> {
        let path = written_down(run);
        if path.exists() {
            let SetUp { name } = document::read(&path)?;
            testbed::down(&name)
                .with_context(|| format!("taking down the virtual cluster {name}"))?;
            launched::forget(&path);
        }
        Ok(())
    }

    /// Sets one up for a run.
    ///
    /// # Errors
    /// It can't be made.
    pub fn set_up(spec: &Spec, run: &RunDirectory) -> Result<Self> {
        let path = written_down(run);
        document::write(&path, &SetUp { name: spec.name.clone() })?;
        match testbed::up(spec) {
            Ok(testbed) => {
                describe::tell_what_is_missing(spec, testbed.spec());
                let (written_down, record) = (Some(path), Some(switch_record(run)));
                Ok(Cluster { testbed: Some(testbed), written_down, record })
            }
            Err(error) => {
                launched::forget(&path);
                Err(error.into())
            }
        }
    }

    /// The cluster itself.
    pub fn testbed(&self) -> &Testbed {
        // Only dropping takes it out.
        self.testbed.as_ref().expect("a cluster holds its testbed until it is dropped")
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let Some(testbed) = self.testbed.take() else { return };
        if let Some(service) = testbed.service()
            && let Some(record) = &self.record
            && let Err(error) = document::write(record, &service)
        {
            say!("colibri: the switch's statistics could not be recorded: {error}");
        }
        let Some(path) = &self.written_down else { return };
        match testbed::down(&testbed.spec().name) {
            Ok(_) => launched::forget(path),
            Err(error) => {
                say!("colibri: the virtual cluster could not be taken down: {error}")
            }
        }
    }
}
