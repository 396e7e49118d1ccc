//! The links between all pairs of ranks: measured beside the parameters, by `colibri calibrate`.

use std::{
    ffi::OsString,
    time::{Duration, Instant},
};

use anyhow::Result;
use records::{
    observation::PointToPoint,
    pairs::{Member, PairMap},
    record::{self, Record},
};
use verification::pairs;

use crate::headers::{field, list, platform, spent};
use site::{ranks::Site, run_directory::RunDirectory};

/// Times messages between all pairs of nodes, or goes on doing so, into the run's record of them. Gives what starting and
/// ending the job took beside the time that it counts itself.
pub fn time_pairs(
    site: &Site,
    run: &RunDirectory,
    bytes: u64,
    seed: u64,
    budget: Duration,
) -> Result<Duration> {
    let begun = Instant::now();
    let arguments: Vec<OsString> = vec![
        "--record".into(),
        run.pair_observations().into(),
        "--bytes".into(),
        bytes.to_string().into(),
        "--budget-seconds".into(),
        budget.as_secs_f64().to_string().into(),
        "--seed".into(),
        seed.to_string().into(),
    ];
    site.run("pairs", site.ranks(), &arguments, &[])?;
    let path = run.pair_observations();
    let record: Record<PointToPoint> = record::read(&path)?;
    Ok(begun.elapsed().saturating_sub(spent(&record.header, &path)?))
}

/// Says what stands out among the links, writes `pairs.json` and draws it; nothing where no links
/// were measured.
pub fn judge(run: &RunDirectory) -> Result<Option<PairMap>> {
    let path = run.pair_observations();
    if !path.exists() {
        return Ok(None);
    }
    let record: Record<PointToPoint> = record::read(&path)?;
    let platform = platform(&record.header, &path)?;
    let bytes = field(&record.header, "bytes", &path)?;
    let at_once = field(&record.header, "at_once", &path)?;
    let ranks: Vec<u32> = list(&record.header, "members", &path)?;
    let links = pairs::links(&record.rows, bytes);
    let host = |rank: u32| platform.hosts.get(rank as usize).cloned().unwrap_or_default();
    let members: Vec<Member> =
        ranks.iter().map(|&rank| Member { rank, host: host(rank) }).collect();
    let one_per_node = members.windows(2).all(|two| two[0].host != two[1].host);
    let (noun, findings) = match one_per_node {
        true => {
            let number = |rank| ranks.iter().position(|member| *member == rank).unwrap_or(0) as u32;
            ("node", pairs::findings(&links, "node", number))
        }
        false => ("rank", pairs::findings(&links, "rank", |rank| rank)),
    };
    let all = members.len() * members.len().saturating_sub(1);
    let mut warnings: Vec<String> = platform.busy().into_iter().collect();
    if links.len() < all {
        let reached = links.len();
        warnings.push(format!(
            "{reached} of {all} links between {noun}s were measured within the budget"
        ));
    }
    let map =
        PairMap { platform, one_per_node, bytes, at_once, members, links, findings, warnings };
    run.write(&run.pairs(), &map)?;
    if let (false, Some(figures)) = (map.links.is_empty(), run.figures()?) {
        figures::save(&figures::pair_map(&map)?, &figures.join("pairs"))?;
    }
    Ok(Some(map))
}
