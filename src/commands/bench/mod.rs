//! `colibri bench`: one collective, or messages between pairs of ranks, by any timing scheme.

mod nrep;

use std::{ffi::OsString, path::PathBuf, str::FromStr};

use anyhow::Result;
use clap::Args;
use records::{Collective, Method, Root, quantity, unknown};
use statistics::stopping::Rule;
use timing::{
    adaptive::SizeRange,
    pairs::PairWay,
    repeating::{self, USUAL},
    scheme::TimingScheme,
};

use self::nrep::{Nrep, NrepOptions};
use crate::commands::shared::{
    options::{SiteOptions, timing_scheme},
    output::{self, TableFormat},
    plugins::PluginOptions,
    points::PointOptions,
};
use site::{error::WrongUse, ranks::Site, run_directory::RunDirectory, usage};
use stages::{
    benchmarking::{self, BenchRow, WantedPrecision},
    roots,
};

/// Times one collective, or messages between pairs of ranks, as precisely as asked for; or tells how often calls
/// have to be repeated
#[derive(Debug, Args)]
#[command(
    override_usage = "colibri bench [OPTIONS] <COLLECTIVE|p2p> [DIR]\n       colibri bench --nrep <RUN> [OPTIONS]",
    mut_arg("procs", |procs| procs.conflicts_with("subject").hide_short_help(true).help_heading(nrep::NREP)),
    mut_arg("layouts", |layouts| layouts.conflicts_with("subject").hide_short_help(true).help_heading(nrep::NREP)),
    mut_arg("sizes", |sizes| sizes.default_value("1..1MiB")),
    mut_arg("resume", |resume| resume.requires("directory").conflicts_with("subject").help_heading(nrep::NREP)),
)]
pub struct BenchCommand {
    /// A collective, such as scatterv, or p2p: all pairs of ranks
    #[arg(value_name = "COLLECTIVE|p2p", required_unless_present = "directory")]
    subject: Option<BenchSubject>,

    /// Directory of a run in which every observation is kept [default: none is]
    #[arg(value_name = "DIR")]
    kept: Option<PathBuf>,

    #[command(flatten)]
    site: SiteOptions,

    /// The method: default, native:..., own:..., mockup:... (with --nrep several, with commas); of p2p
    /// ping-pong or scatter-gather [default: default; of p2p ping-pong]
    #[arg(long, value_name = "METHOD")]
    method: Option<String>,

    #[command(flatten)]
    points: PointOptions,

    #[command(flatten)]
    plugins: PluginOptions,

    /// The root of a collective that has one: the number of a rank, or last
    #[arg(long, value_name = "RANK|last", default_value_t, hide_short_help = true)]
    root: Root,

    /// How a call of a collective is timed [default: barrier; with --nrep global where a barrier leaves
    /// the ranks apart]
    #[arg(long, value_parser = timing_scheme())]
    timing: Option<TimingScheme>,

    /// Fewest repetitions [default: 5; with --nrep 20, with --tunelib 1]
    #[arg(long, value_name = "N")]
    min: Option<u32>,

    /// Most repetitions; equal to --min: exactly so many [default: 100; with --nrep 1000]
    #[arg(long, value_name = "N")]
    max: Option<u32>,

    /// Repeat until half of the width of the mean's interval is below this share of the mean
    #[arg(long, value_name = "SHARE", value_parser = |text: &str| quantity::parse_share(text, 0.0..), default_value_t = USUAL.relative_error)]
    precision: f64,

    /// Confidence of that interval, by Student's t
    #[arg(long, value_name = "SHARE", value_parser = |text: &str| quantity::parse_share(text, quantity::BETWEEN_0_AND_1), default_value_t = USUAL.confidence, hide_short_help = true)]
    confidence: f64,

    /// Choose sizes between the least and the greatest of --sizes: denser where the time is not linear
    #[arg(long, help_heading = ADAPTIVE, hide_short_help = true)]
    adaptive: bool,

    /// Least distance between adaptive sizes
    #[arg(long, value_name = "SIZE", value_parser = quantity::parse_bytes, requires = "adaptive", default_value = "64", hide_short_help = true, help_heading = ADAPTIVE)]
    stride: u64,

    /// Greatest difference between a time and the line through the two sizes before it, as a share of the time
    #[arg(long, value_name = "SHARE", value_parser = |text: &str| quantity::parse_share(text, quantity::ABOVE_0), requires = "adaptive", default_value_t = SizeRange::USUAL.greatest_difference, hide_short_help = true, help_heading = ADAPTIVE)]
    max_difference: f64,

    /// Greatest number of adaptive sizes
    #[arg(long, value_name = "N", requires = "adaptive", default_value_t = SizeRange::USUAL.most, hide_short_help = true, help_heading = ADAPTIVE)]
    max_sizes: usize,

    /// File with a factor for each rank, to which its block is proportional (allgatherv, gatherv,
    /// scatterv)
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    factors: Option<PathBuf>,

    /// p2p: measure disjoint pairs at the same time, instead of one after the other
    #[arg(long, hide_short_help = true)]
    at_once: bool,

    /// How to print
    #[arg(long, value_enum, default_value_t = TableFormat::Table)]
    format: TableFormat,

    #[command(flatten)]
    pub nrep: NrepOptions,
}

/// Over the flags of adaptive sizes in a help text.
const ADAPTIVE: &str = "Adaptive sizes";

/// What is timed.
#[derive(Debug, Clone, Copy)]
enum BenchSubject {
    Collective(Collective),
    Pairs,
}

impl FromStr for BenchSubject {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "p2p" {
            return Ok(BenchSubject::Pairs);
        }
        text.parse().map(BenchSubject::Collective).map_err(|_| {
            let names = Collective::ALL.iter().map(|collective| collective.name());
            unknown("collective", text, &names.chain(["p2p"]).collect::<Vec<_>>())
        })
    }
}

impl BenchCommand {
    /// Runs the subcommand.
    pub fn run(self) -> Result<()> {
        if let Some(run) = &self.nrep.run {
            return Nrep {
                options: &self.nrep,
                run,
                site: &self.site,
                points: &self.points,
                method: self.method.as_deref().unwrap_or("default"),
                timing: self.timing,
                min: self.min,
                max: self.max,
            }
            .run();
        }
        let Some(subject) = self.subject else {
            usage!("name what to time: a collective, such as scatterv, or p2p");
        };
        self.time(subject)
    }

    fn time(&self, subject: BenchSubject) -> Result<()> {
        let mut arguments = self.arguments(subject)?;
        // A directory of its own holds what is not to be kept.
        let passing = self.kept.is_none().then(tempfile::tempdir).transpose()?;
        let path = self.kept.as_deref().or(passing.as_ref().map(tempfile::TempDir::path));
        let Some(path) = path else { return Ok(()) };
        let mut run = RunDirectory::at(path)?;
        run.refuse_existing(&run.benchmark())?;
        let site = Site::find(&self.site)?;
        roots::check(self.root, site.ranks())?;
        if let Some(path) = &self.factors {
            arguments.extend(["--factors".into(), benchmarking::factors_of(path, site.ranks())?]);
        }
        run.make()?;
        run.refuse_existing(&run.benchmark())?;
        let site = site.open(&run)?;
        run.stay();
        benchmarking::run(&site, &run.benchmark(), arguments)?;
        self.print(&run, subject)?;
        if passing.is_none() {
            say!("written: {}", run.benchmark().display());
        }
        Ok(())
    }

    /// What `colibri-mpi bench` is given; what can be seen to be wrong is said before anything runs.
    fn arguments(&self, subject: BenchSubject) -> Result<Vec<OsString>> {
        let rule = self.check(subject)?;
        let sizes =
            self.points.sizes.0.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        let mut flags = vec![
            ("--sizes", sizes),
            ("--minimum", rule.minimum.to_string()),
            ("--maximum", rule.maximum.to_string()),
            ("--confidence", rule.confidence.to_string()),
            ("--relative-error", rule.relative_error.to_string()),
        ];
        if self.adaptive {
            flags.extend([
                ("--adaptive", self.stride.to_string()),
                ("--greatest-difference", self.max_difference.to_string()),
                ("--most-sizes", self.max_sizes.to_string()),
            ]);
        }
        match subject {
            BenchSubject::Collective(collective) => flags.extend([
                ("--collective", collective.to_string()),
                ("--method", self.collective_method(collective)?.to_string()),
                ("--timing", self.timing().name().into()),
                ("--root", self.root.to_string()),
            ]),
            BenchSubject::Pairs => flags.push(("--pairs", self.way()?.name().into())),
        }
        let mut arguments: Vec<OsString> =
            flags.into_iter().flat_map(|(flag, value)| [flag.into(), value.into()]).collect();
        arguments.extend(self.at_once.then(|| "--at-once".into()));
        Ok(arguments)
    }

    fn timing(&self) -> TimingScheme {
        self.timing.unwrap_or(TimingScheme::Barrier)
    }

    /// The rule by which calls are repeated; what can be seen to be wrong is an error.
    fn check(&self, subject: BenchSubject) -> Result<Rule> {
        let rule = Rule {
            minimum: self.min.map_or(USUAL.minimum, |min| min as usize),
            maximum: self.max.map_or(USUAL.maximum, |max| max as usize),
            confidence: self.confidence,
            relative_error: self.precision,
            ..USUAL
        };
        repeating::check(&rule).map_err(|error| WrongUse(error.to_string()))?;
        match subject {
            BenchSubject::Pairs if self.factors.is_some() || self.adaptive => {
                usage!("--factors and --adaptive are for collectives, not for p2p")
            }
            BenchSubject::Collective(collective) if self.at_once => {
                usage!("--at-once is for p2p, not for {collective}")
            }
            BenchSubject::Collective(collective)
                if self.timing() == TimingScheme::Bcast && collective != Collective::Bcast =>
            {
                usage!("--timing bcast is for bcast, not for {collective}")
            }
            BenchSubject::Pairs if self.root != Root::default() => {
                usage!("--root is for collectives, not for p2p")
            }
            BenchSubject::Collective(collective)
                if self.root != Root::default() && !collective.is_rooted() =>
            {
                usage!("--root is for collectives that have one, not for {collective}")
            }
            _ if self.root != Root::default() => roots::check_timing(self.timing(), "--root")?,
            _ => {}
        }
        Ok(rule)
    }

    fn collective_method(&self, collective: Collective) -> Result<Method> {
        let plugins = self.plugins.methods(&[collective])?;
        if let [(_, plugin)] = &plugins[..] {
            if let Some(method) = &self.method {
                usage!("--method {method} and --operation: give one of them");
            }
            return Ok(plugin.clone());
        }
        if !plugins.is_empty() {
            usage!("--operation is given {} times; expected once", plugins.len());
        }
        let method: Method = match &self.method {
            Some(text) => {
                text.parse().map_err(|error: records::MethodError| WrongUse(error.to_string()))?
            }
            None => Method::Default,
        };
        method.check_collective(collective).map_err(WrongUse)?;
        if let Method::Plugin(_) | Method::Other(_) = method {
            usage!(
                "--method {method}: expected default, native:..., own:... or mockup:...; a plug-in is named by \
                 --plugin and --operation"
            );
        }
        Ok(method)
    }

    fn way(&self) -> Result<PairWay> {
        let name = self.method.as_deref().unwrap_or(PairWay::PingPong.name());
        Ok(name.parse().map_err(WrongUse)?)
    }

    fn print(&self, run: &RunDirectory, subject: BenchSubject) -> Result<()> {
        let wanted =
            WantedPrecision { confidence: self.confidence, relative_error: self.precision };
        let rows = match subject {
            BenchSubject::Collective(_) => benchmarking::collective_rows(&run.benchmark(), wanted)?,
            BenchSubject::Pairs => {
                benchmarking::pair_rows(&run.benchmark(), wanted, self.way()?.name())?
            }
        };
        let heading =
            ["of", "by", "procs", "size", "mean", "median", "interval", "repetitions", "precise"];
        output::rows(self.format, &rows, &heading, cells)
    }
}

fn cells(row: &BenchRow) -> Vec<String> {
    let time = quantity::format_seconds;
    vec![
        row.what.clone(),
        row.method.clone(),
        row.procs.to_string(),
        quantity::format_bytes(row.bytes),
        time(row.mean_seconds),
        time(row.median_seconds),
        format!("+- {}", time((row.high_seconds - row.low_seconds) / 2.0)),
        row.repetitions.to_string(),
        if row.precise { "yes" } else { "no" }.into(),
    ]
}
