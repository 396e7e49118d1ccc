//! Whether the machine under a virtual cluster carries all its links at once: measured before what
//! is to be judged.

use std::{collections::BTreeSet, ffi::OsString, time::Duration};

use anyhow::Result;
use records::{Layout, group_observation::GroupObservation, penalty::BusyLinks, record};
use verification::links::{self, FEWEST_NODES};

use site::{ranks::Site, run_directory::RunDirectory};

/// A few seconds are enough, and no more than this share of a budget.
const MAX_LINKS_TIME: Duration = Duration::from_secs(12);
const SHARE: f64 = 0.05;
/// From one packet to the largest messages that are common.
const SIZES: &str = "1024,4096,16384,65536,262144,1048576";

/// Times all links at once on the numbers of nodes of these layouts, and on few to compare them with; nothing
/// where the links are real, or too few.
pub fn time_all_links(
    site: &Site,
    run: &RunDirectory,
    layouts: &[Layout],
    seed: u64,
    budget: Option<Duration>,
) -> Result<()> {
    // A number of ranks alone is no more than so many nodes.
    let there = site.layout().map_or(site.ranks(), Layout::nodes);
    let nodes = layouts.iter().map(|layout| layout.nodes().min(there));
    let mut nodes: BTreeSet<u32> = nodes.filter(|&nodes| nodes > FEWEST_NODES).collect();
    if nodes.is_empty() || !site.is_virtual() {
        return Ok(());
    }
    nodes.insert(FEWEST_NODES);
    let nodes: Vec<String> = nodes.iter().map(u32::to_string).collect();
    let budget = budget.map_or(MAX_LINKS_TIME, |budget| budget.mul_f64(SHARE).min(MAX_LINKS_TIME));
    let arguments: Vec<OsString> = vec![
        "--record".into(),
        run.links().into(),
        "--nodes".into(),
        nodes.join(",").into(),
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
