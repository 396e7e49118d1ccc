//! `colibri platform RUN --share NAME`: what a run tells of a cluster that strangers may read.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use libraries::LibraryRelease;
use records::{
    Layout,
    calibration::Calibration,
    document,
    penalty::Penalties,
    shared_cluster::{SharedCluster, SharedGain},
    summary::{Loading, TuningSummary},
};
use site::{run_directory::RunDirectory, usage};

/// The longest name of a cluster, which names a file too.
const LONGEST_NAME: usize = 60;

/// A cluster's name as a flag gives it.
pub fn name(text: &str) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    match !text.is_empty() && text.len() <= LONGEST_NAME && text.chars().all(fits) {
        true => Ok(text.into()),
        false => Err(format!(
            "expected 1 to {LONGEST_NAME} letters, digits, '-', '.' and '_', e.g. marconi-2026"
        )),
    }
}

/// Writes what a run tells of its cluster; nothing that is there is written over.
///
/// # Errors
/// The run holds no calibration, or what it holds cannot be read; the file exists or cannot be written.
pub fn share(run: &RunDirectory, name: &str, output: Option<&Path>) -> Result<()> {
    let file = output.map_or_else(|| PathBuf::from(format!("{name}.json")), Path::to_path_buf);
    if file.exists() {
        bail!("{}: already exists; name another file by --output", file.display());
    }
    if !run.calibration().exists() {
        usage!(
            "{}: holds no calibration.json; `colibri calibrate` or `colibri tune` makes one",
            run.path().display()
        );
    }
    document::write(&file, &cluster(run, name)?)?;
    say!("written: {}, without host names, paths and settings", file.display());
    Ok(())
}

fn cluster(run: &RunDirectory, name: &str) -> Result<SharedCluster> {
    let Calibration { platform, measured, inside, .. } = document::read(&run.calibration())?;
    let Ok(layout) = Layout::from_nodes(&platform.hosts) else {
        bail!("{}: its platform names no ranks", run.calibration().display());
    };
    let library = LibraryRelease::said(&platform.mpi_library);
    let penalties = match run.penalty().exists() {
        true => document::read::<Penalties>(&run.penalty())?.summaries,
        false => Vec::new(),
    };
    let summary = run.file("summary.json");
    let gains = match summary.exists() {
        true => document::read::<TuningSummary>(&summary)?.loadings().map(gain).collect(),
        false => Vec::new(),
    };
    Ok(SharedCluster {
        name: name.into(),
        mpi_library: library.map_or_else(|| "not recognised".into(), |library| library.title()),
        processor: platform.processor,
        // What follows the numbers may name a site.
        kernel: platform.kernel.split('-').next().unwrap_or_default().into(),
        layout,
        virtual_cluster: platform.testbed,
        measured,
        inside,
        penalties,
        gains,
    })
}

fn gain(loading: &Loading) -> SharedGain {
    SharedGain {
        way: loading.way,
        points: loading.counts.points,
        confirmed: loading.counts.confirmed,
        mean_speed_up: loading.mean_speed_up,
        mean_interval: loading.mean_interval,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_of_a_file_and_of_no_path() {
        assert_eq!(name("marconi-2026"), Ok("marconi-2026".into()));
        for wrong in ["", "a/b", "a b", "ä", &"x".repeat(LONGEST_NAME + 1)] {
            assert!(name(wrong).unwrap_err().contains("e.g. marconi-2026"), "{wrong}");
        }
    }
}
