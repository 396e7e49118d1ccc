//! `colibri bench`: one collective, or messages between pairs of ranks, by any timing scheme.

use std::{ffi::OsString, path::PathBuf, str::FromStr};

use anyhow::{Result, bail};
use clap::Args;
use records::{Collective, Method, Root, quantity, unknown};
use statistics::stopping::Rule;
use timing::{
    adaptive::SizeRange,
    pairs::PairWay,
    repeating::{self, USUAL},
    scheme::TimingScheme,
};

use crate::commands::shared::{
    options::{List, SiteOptions, sizes, timing_scheme},
    output::{self, TableFormat},
    plugins::PluginOptions,
};
use site::{error::WrongUse, ranks::Site, run_directory::RunDirectory, usage};
use stages::{
    benchmarking::{self, BenchRow, WantedPrecision},
    roots,
};

/// Times one collective, or messages between pairs of ranks, as precisely as asked for
#[derive(Debug, Args)]
pub struct BenchCommand {
    /// A collective, such as scatterv, or p2p: all pairs of ranks
    #[arg(value_name = "COLLECTIVE|p2p")]
    subject: BenchSubject,

    /// Directory of a run in which every observation is kept [default: none is]
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,

    #[command(flatten)]
    site: SiteOptions,

    /// The method: default, native:..., own:..., mockup:...; of p2p ping-pong or scatter-gather
    /// [default: default; of p2p ping-pong]
    #[arg(long, value_name = "METHOD")]
    method: Option<String>,

    #[command(flatten)]
    plugins: PluginOptions,

    /// The root of a collective that has one: the number of a rank, or last
    #[arg(long, value_name = "RANK|last", default_value_t)]
    root: Root,

    /// How a call of a collective is timed
    #[arg(long, value_parser = timing_scheme(), default_value = TimingScheme::Barrier.name())]
    timing: TimingScheme,

    /// Message sizes, as each collective defines them; with factors the mean block
    #[arg(long, short = 'm', value_name = "LIST", value_parser = sizes, default_value = "1..1MiB")]
    sizes: List<u64>,

    /// Choose sizes between the least and the greatest of these: denser where the time is not linear
    #[arg(long)]
    adaptive: bool,

    /// Least distance between adaptive sizes
    #[arg(long, value_name = "SIZE", value_parser = quantity::parse_bytes, requires = "adaptive", default_value = "64")]
    stride: u64,

    /// Greatest difference between a time and the line through the two sizes before it, as a share of the time
    #[arg(long, value_name = "SHARE", requires = "adaptive", default_value_t = SizeRange::USUAL.greatest_difference)]
    greatest_difference: f64,

    /// Greatest number of adaptive sizes
    #[arg(long, value_name = "N", requires = "adaptive", default_value_t = SizeRange::USUAL.most)]
    most_sizes: usize,

    /// File with a factor for each rank, to which its block is proportional (allgatherv, gatherv,
    /// scatterv)
    #[arg(long, value_name = "FILE")]
    factors: Option<PathBuf>,

    /// p2p: measure disjoint pairs at the same time, instead of one after the other
    #[arg(long)]
    at_once: bool,

    /// Least number of repetitions
    #[arg(long, value_name = "N", default_value_t = USUAL.minimum)]
    min_reps: usize,

    /// Greatest number of repetitions; equal to --min-reps: exactly so many
    #[arg(long, value_name = "N", default_value_t = USUAL.maximum)]
    max_reps: usize,

    /// Confidence of the mean's interval, by Student's t
    #[arg(long, value_name = "SHARE", default_value_t = USUAL.confidence)]
    confidence: f64,

    /// Repeat until half of that interval's width is below this share of the mean
    #[arg(long, visible_alias = "precision", value_name = "SHARE", default_value_t = USUAL.relative_error)]
    relative_error: f64,

    /// How to print
    #[arg(long, value_enum, default_value_t = TableFormat::Table)]
    format: TableFormat,
}

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
        let mut arguments = self.arguments()?;
        // A directory of its own holds what is not to be kept.
        let passing = self.directory.is_none().then(tempfile::tempdir).transpose()?;
        let path = self.directory.as_deref().or(passing.as_ref().map(tempfile::TempDir::path));
        let Some(path) = path else { return Ok(()) };
        let mut run = RunDirectory::at(path)?;
        refuse_another(&run)?;
        let site = Site::find(&self.site)?;
        roots::check(self.root, site.ranks())?;
        if let Some(path) = &self.factors {
            arguments.extend(["--factors".into(), benchmarking::factors_of(path, site.ranks())?]);
        }
        run.make()?;
        refuse_another(&run)?;
        let site = site.open(&run)?;
        run.stay();
        benchmarking::run(&site, &run.benchmark(), arguments)?;
        self.print(&run)?;
        if passing.is_none() {
            say!("written: {}", run.benchmark().display());
        }
        Ok(())
    }

    /// What `colibri-mpi bench` is told; what can be seen to be wrong is said before anything runs.
    fn arguments(&self) -> Result<Vec<OsString>> {
        self.check()?;
        let sizes = self.sizes.0.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        let mut flags = vec![
            ("--sizes", sizes),
            ("--minimum", self.min_reps.to_string()),
            ("--maximum", self.max_reps.to_string()),
            ("--confidence", self.confidence.to_string()),
            ("--relative-error", self.relative_error.to_string()),
        ];
        if self.adaptive {
            flags.extend([
                ("--adaptive", self.stride.to_string()),
                ("--greatest-difference", self.greatest_difference.to_string()),
                ("--most-sizes", self.most_sizes.to_string()),
            ]);
        }
        match self.subject {
            BenchSubject::Collective(collective) => flags.extend([
                ("--collective", collective.to_string()),
                ("--method", self.collective_method(collective)?.to_string()),
                ("--timing", self.timing.name().into()),
                ("--root", self.root.to_string()),
            ]),
            BenchSubject::Pairs => flags.push(("--pairs", self.way()?.name().into())),
        }
        let mut arguments: Vec<OsString> =
            flags.into_iter().flat_map(|(flag, value)| [flag.into(), value.into()]).collect();
        arguments.extend(self.at_once.then(|| "--at-once".into()));
        Ok(arguments)
    }

    fn check(&self) -> Result<()> {
        let rule = Rule {
            minimum: self.min_reps,
            maximum: self.max_reps,
            confidence: self.confidence,
            relative_error: self.relative_error,
            ..USUAL
        };
        repeating::check(&rule).map_err(|error| WrongUse(error.to_string()))?;
        match self.subject {
            BenchSubject::Pairs if self.factors.is_some() || self.adaptive => {
                usage!("--factors and --adaptive are for collectives, not for p2p")
            }
            BenchSubject::Collective(collective) if self.at_once => {
                usage!("--at-once is for p2p, not for {collective}")
            }
            BenchSubject::Collective(collective)
                if self.timing == TimingScheme::Bcast && collective != Collective::Bcast =>
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
            _ if self.root != Root::default() => roots::check_timing(self.timing, "--root"),
            _ => Ok(()),
        }
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
                 --library and --operation"
            );
        }
        Ok(method)
    }

    fn way(&self) -> Result<PairWay> {
        let name = self.method.as_deref().unwrap_or(PairWay::PingPong.name());
        Ok(name.parse().map_err(WrongUse)?)
    }

    fn print(&self, run: &RunDirectory) -> Result<()> {
        let wanted =
            WantedPrecision { confidence: self.confidence, relative_error: self.relative_error };
        let rows = match self.subject {
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

/// A record that is there is not added to.
fn refuse_another(run: &RunDirectory) -> Result<()> {
    let path = run.benchmark();
    if path.exists() {
        bail!("{}: already exists; name another directory", path.display());
    }
    Ok(())
}
