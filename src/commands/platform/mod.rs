//! `colibri platform`: where the ranks run, by a short job, and how well their clocks agree.

mod clocks;
mod share;

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use records::{
    document,
    first_job::{FirstJob, NodeFacts},
    quantity::format_bytes,
};

use self::clocks::ClockOptions;
use crate::commands::shared::{options::SiteOptions, output};
use site::{
    allocation::Allocation, ranks::Site, run_directory::RunDirectory, usage, where_ranks_run,
};

/// Tells where the ranks run: MPI library, nodes, placement, processors, memory; or how well their clocks can
/// be synchronised
#[derive(Debug, Args)]
pub struct PlatformCommand {
    /// Directory of a run, whose first job has reported it; without, a short job is started
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,

    /// Write what DIR tells of its cluster, by this name, into NAME.json: library, layout, parameters, penalties and
    /// gains, without host names, paths and settings; to send to others
    #[arg(long, value_name = "NAME", value_parser = share::name, requires = "directory", conflicts_with = "clocks")]
    share: Option<String>,

    /// The file that --share writes [default: NAME.json]
    #[arg(long, short, value_name = "FILE", requires = "share")]
    output: Option<PathBuf>,

    #[command(flatten)]
    clocks: ClockOptions,

    #[command(flatten)]
    site: SiteOptions,
}

impl PlatformCommand {
    /// Runs the subcommand.
    pub fn run(self) -> Result<()> {
        match &self.directory {
            Some(directory) if self.clocks.clocks => {
                return self.clocks.compare(&self.site, directory, true);
            }
            Some(directory) => {
                self.refuse_site()?;
                let run = RunDirectory::read(directory)?;
                if let Some(name) = &self.share {
                    return share::share(&run, name, self.output.as_deref());
                }
                return show(&document::read(&run.first_job())?, None);
            }
            None => {}
        }
        // Here, since rank 0 may be on another node, which sees this directory rather than /tmp.
        // It is removed last, with what a virtual cluster records there when it is taken down.
        let place = tempfile::Builder::new().prefix(".colibri-platform-").tempdir_in(".");
        let place = place.context("making a directory for the first job, in this one")?;
        if self.clocks.clocks {
            return self.clocks.compare(&self.site, place.path(), false);
        }
        let site = Site::find(&self.site)?;
        let mut run = RunDirectory::at(place.path())?;
        run.make()?;
        let mut site = site.open(&run)?;
        show(&site.first_job(&run)?, site.allocation())
    }

    /// A run that is there tells where its ranks ran.
    fn refuse_site(&self) -> Result<()> {
        let SiteOptions { launcher, mpi_library, ranks, testbed, .. } = &self.site;
        for (flag, is_given) in [
            ("launcher", launcher.is_some()),
            ("mpi-library", mpi_library.is_some()),
            ("ranks", ranks.is_some()),
            ("testbed", testbed.is_some()),
        ] {
            if is_given {
                usage!(
                    "--{flag}: DIR's own job has reported where its ranks ran; give one of them"
                );
            }
        }
        Ok(())
    }
}

fn show(first_job: &FirstJob, allocation: Option<&Allocation>) -> Result<()> {
    let platform = &first_job.platform;
    let starts = where_ranks_run::starts(first_job).unwrap_or_default();
    let mut text = format!("{}\n", where_ranks_run::line(first_job));
    for (name, value) in [
        ("launcher", &platform.launcher),
        ("virtual cluster", &platform.testbed),
        ("processor", &platform.processor),
        ("kernel", &platform.kernel),
        ("clock", &platform.clock),
        ("timing", &starts),
        ("settings", &platform.settings.join(" ")),
    ] {
        if !value.is_empty() {
            text += &format!("{name}: {value}\n");
        }
    }
    let heading =
        ["node", "ranks", "processors", "bound to", "memory", "limit", "sees the directory"];
    let rows = first_job.nodes.iter().map(|node| row(node, &first_job.allowed_processors));
    text += &format!("\n{}", output::aligned(&heading, rows));
    for warning in where_ranks_run::warnings(first_job, allocation) {
        text += &format!("Warning: {warning}\n");
    }
    output::print(&text)
}

fn row(node: &NodeFacts, allowed: &[String]) -> Vec<String> {
    let bytes = |bytes: Option<u64>| bytes.map_or_else(|| "-".into(), format_bytes);
    vec![
        node.host.clone(),
        spans(&node.ranks),
        node.processors.to_string(),
        bound(node, allowed),
        bytes(node.memory_bytes.map(rounded)),
        bytes(node.memory_limit_bytes.map(rounded)),
        if node.sees_run { "yes" } else { "no" }.into(),
    ]
}

/// To whole mebibytes: the kernel keeps some of them for itself.
fn rounded(bytes: u64) -> u64 {
    bytes >> 20 << 20
}

/// The processors that ranks may use: once where they are the same for all, else rank by rank.
fn bound(node: &NodeFacts, allowed: &[String]) -> String {
    let of = |rank: &u32| allowed.get(*rank as usize).map_or("", String::as_str);
    let all: Vec<&str> = node.ranks.iter().map(of).collect();
    match all.windows(2).all(|pair| pair[0] == pair[1]) {
        true => all.first().copied().unwrap_or_default().into(),
        false => all.join(" "),
    }
}

/// `0-3,8`.
fn spans(ranks: &[u32]) -> String {
    let mut spans: Vec<(u32, u32)> = Vec::new();
    for &rank in ranks {
        match spans.last_mut() {
            Some((_, last)) if *last + 1 == rank => *last = rank,
            _ => spans.push((rank, rank)),
        }
    }
    let span = |&(first, last): &(u32, u32)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    spans.iter().map(span).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_and_processors_are_told_shortly() {
        assert_eq!(spans(&[0, 1, 2, 8]), "0-2,8");
        assert_eq!(spans(&[]), "");
        let node = NodeFacts {
            host: "a".into(),
            ranks: vec![0, 2],
            processors: 4,
            memory_bytes: None,
            memory_limit_bytes: None,
            sees_run: true,
        };
        let allowed = |texts: [&str; 3]| texts.map(str::to_owned);
        assert_eq!(bound(&node, &allowed(["0-3", "1", "0-3"])), "0-3");
        assert_eq!(bound(&node, &allowed(["0", "1", "2"])), "0 2");
    }
}
