//! Whether the machine under a virtual cluster carries all its links at once: measured before what
//! is to be judged.

use std::{ffi::OsString, time::Duration};

use anyhow::Result;
use records::{group_observation::GroupObservation, penalty::BusyLinks, record};
use verification::links::{self, FEWEST_NODES};

use crate::site::{ranks::Site, run_directory::RunDirectory};

/// A few seconds are enough, and no more than this share of a budget.
const MOST_LINKS_TIME: Duration = Duration::from_secs(12);
const SHARE: f64 = 0.05;
/// From one packet to the largest messages that are common.
const SIZES: &str = "1024,4096,16384,65536,262144,1048576";

/// Measures all links at once on these numbers of nodes, and on few to compare them with; nothing
/// where the links are real, or too few.
pub fn measure(
    site: &Site,
    run: &RunDirectory,
    procs: &[u32],
    seed: u64,
    budget: Option<Duration>,
) -> Result<()> {
    let mut procs: Vec<u32> = procs.iter().copied().filter(|&procs| procs > FEWEST_NODES).collect();
    if procs.is_empty() || !site.is_virtual() {
        return Ok(());
    }
    procs.insert(0, FEWEST_NODES);
    let procs: Vec<String> = procs.iter().map(u32::to_string).collect();
    let budget =
        budget.map_or(MOST_LINKS_TIME, |budget| budget.mul_f64(SHARE).min(MOST_LINKS_TIME));
    let arguments: Vec<OsString> = vec![
        "--record".into(),
        run.links().into(),
        "--procs".into(),
        procs.join(",").into(),
        "--sizes".into(),
        SIZES.into(),
        "--budget-seconds".into(),
        budget.as_secs_f64().to_string().into(),
        "--seed".into(),
        seed.to_string().into(),
    ];
    site.run("links", site.ranks(), &arguments, &[])
}

/// What the run's record of them says; nothing where there is none.
pub fn judge(run: &RunDirectory) -> Result<Vec<BusyLinks>> {
    let path = run.links();
    if !path.exists() {
        return Ok(Vec::new());
    }
    Ok(links::busy_links(&record::read::<GroupObservation>(&path)?.rows))
}
