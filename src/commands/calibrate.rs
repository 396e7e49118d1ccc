//! `colibri calibrate`: measures the platform point to point.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, anyhow};
use clap::Args;
use models::fit::{GAP_PER_BYTE_MEASURED, Groups, LATENCY_MEASURED};
use records::{
    Collective,
    calibration::{Calibration, Estimate, Parameters},
    group_observation::GroupObservation,
    observation::PointToPoint,
    quantity, record,
};
use verification::stopping::Criterion;

use crate::{
    commands::{
        options::{List, RunOptions, SiteOptions, collectives, sizes},
        output::{self, Format},
        {compare, pairs},
    },
    site::{ranks::Site, run_directory::RunDirectory},
    stages::{algorithms, calibrating, judging},
};

/// Measures Hockney's, LogGP's and PLogP's parameters between two nodes
#[derive(Debug, Args)]
pub struct Calibrate {
    #[command(flatten)]
    pub run: RunOptions,

    #[command(flatten)]
    site: SiteOptions,

    #[command(flatten)]
    pub(crate) wanted: Wanted,

    /// How long it may take
    #[arg(long, value_name = "TIME", value_parser = quantity::parse_duration, default_value = "60s")]
    budget: Duration,

    /// Do not measure the links between all pairs of nodes
    #[arg(long)]
    no_pairs: bool,

    /// Also fit constants of its own to each algorithm of these collectives, with commas: they are
    /// timed; or, with --from-record, what verify or tune has timed in the directory is taken too
    #[arg(long, value_name = "NAMES", value_parser = collectives)]
    algorithms: Option<List<Collective>>,

    /// Measure nothing; fit the parameters to the observations that are there
    #[arg(long, conflicts_with_all = ["resume", "launcher", "testbed"])]
    from_record: bool,

    /// Measure nothing; say what changed significantly between two calibrations
    #[arg(long, num_args = 2, value_name = "FILE", conflicts_with_all = ["resume", "launcher", "testbed", "from_record"])]
    compare: Option<Vec<PathBuf>>,

    /// How a comparison is printed
    #[arg(long, value_enum, default_value_t = Format::Table, requires = "compare")]
    format: Format,
}

/// Of the budget, for the links between all pairs.
const PAIRS_SHARE: f64 = 0.25;
const PAIRS_MOST: Duration = Duration::from_secs(8);
/// Large enough that a byte's time shows beside a message's, on networks of 10 Gbit/s too.
const PAIRS_BYTES: u64 = 64 << 10;

/// Of a median, by default.
const PRECISION: f64 = 0.025;

/// What to measure.
#[derive(Debug, Clone, Args)]
pub struct Wanted {
    /// Message sizes: 0,1KiB,64KiB or 0..8MiB (0 and the powers of two)
    #[arg(long, short = 'm', value_name = "LIST", value_parser = sizes, default_value = "0..1MiB")]
    pub sizes: List<u64>,

    /// The two ranks to measure between: such as 0,5; between-nodes, the first ranks of two nodes;
    /// inside-node, two ranks of one node
    #[arg(long, value_name = "RANK,RANK|WHERE", value_parser = pair, default_value = "between-nodes")]
    pub pair: Pair,

    /// By what it is told that something is measured often enough, if the budget lasts:
    /// median-interval, or NREP's rse, cov-mean, cov-median
    #[arg(long, value_name = "CRITERION", default_value = Criterion::MedianInterval.name())]
    pub stop_by: Criterion,

    /// And what it shall be at most, as a part of the time
    #[arg(long, value_name = "PART", value_parser = part, default_value_t = PRECISION)]
    pub precision: f64,

    /// Seed of the order of the measurements
    #[arg(long, default_value_t = 1)]
    pub seed: u64,

    /// Measure between the two ranks only: nothing is fitted to collectives, and neither g(m, k)
    /// nor gamma is measured
    #[arg(long = "pair-only", action = clap::ArgAction::SetFalse)]
    pub groups: bool,
}

impl Wanted {
    /// With less time, what is measured between two ranks would suffer from the groups.
    const LEAST_FOR_GROUPS: Duration = Duration::from_secs(20);

    /// What is measured in that time where nothing is said.
    pub fn within(budget: Duration, seed: u64) -> Self {
        let sizes = std::iter::once(0).chain((0..=20).map(|power| 1 << power)).collect();
        Wanted {
            sizes: List(sizes),
            pair: Pair::BetweenNodes,
            stop_by: Criterion::MedianInterval,
            precision: PRECISION,
            seed,
            groups: budget >= Self::LEAST_FOR_GROUPS,
        }
    }
}

/// Which two ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pair {
    These(u32, u32),
    BetweenNodes,
    InsideNode,
}

fn part(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(part) if part > 0.0 && part < 1.0 => Ok(part),
        _ => Err(format!("'{text}' is not a part between 0 and 1, such as 0.025")),
    }
}

fn pair(text: &str) -> Result<Pair, String> {
    let ranks = text
        .split_once(',')
        .and_then(|(one, other)| Some((one.trim().parse().ok()?, other.trim().parse().ok()?)));
    match (text, ranks) {
        ("between-nodes", _) => Ok(Pair::BetweenNodes),
        ("inside-node", _) => Ok(Pair::InsideNode),
        (_, Some((one, other))) if one != other => Ok(Pair::These(one, other)),
        _ => Err(format!(
            "'{text}' is not a pair of different ranks, such as 0,1, nor between-nodes or \
             inside-node"
        )),
    }
}

impl Pair {
    /// As colibri-mpi takes it.
    pub fn text(self) -> String {
        match self {
            Pair::These(one, other) => format!("{one},{other}"),
            Pair::BetweenNodes => "between-nodes".into(),
            Pair::InsideNode => "inside-node".into(),
        }
    }

    /// How many ranks there must be.
    pub fn ranks(self) -> u32 {
        match self {
            Pair::These(one, other) => one.max(other).saturating_add(1),
            Pair::BetweenNodes | Pair::InsideNode => 2,
        }
    }
}

/// The part of the budget that is measured in even where setting up took longer than all of it.
const LEAST: f64 = 0.1;
/// Kept for fitting and drawing: what they take whatever was measured, and of the budget what they
/// take to go through the observations made in it.
const ANALYSIS: Duration = Duration::from_millis(500);
const ANALYSIS_SHARE: f64 = 0.05;

impl Calibrate {
    /// Runs the subcommand.
    pub fn run(self) -> Result<()> {
        if let Some(paths) = &self.compare {
            return compare::run(paths, self.format);
        }
        let run = match self.from_record {
            true => RunDirectory::judge(&self.run.directory)?,
            false => self.measured(Instant::now())?,
        };
        let asked = self.algorithms.as_ref().map(|List(collectives)| collectives.as_slice());
        let calibration = fit_with(&run, asked, self.from_record)?;
        let mut text = summary(&calibration);
        if let Some(map) = pairs::judge(&run)? {
            text += &pairs::summary(&map);
        }
        output::print(&text)?;
        let figures = draw(&run, &calibration)?;
        let parameters = run.is_written_to().then(|| run.calibration().display().to_string());
        for path in parameters.into_iter().chain(figures) {
            eprintln!("written: {path}");
        }
        Ok(())
    }

    /// The run, measured; nothing is made before all that can be known of it allows it to begin.
    fn measured(&self, begun: Instant) -> Result<RunDirectory> {
        let mut run = RunDirectory::at(&self.run.directory)?;
        self.begin(&run)?;
        let site = Site::find(&self.site)?;
        calibrating::check(&site, &self.wanted)?;
        if let Some(List(collectives)) = &self.algorithms {
            algorithms::check(&site, collectives)?;
        }
        run.make()?;
        self.begin(&run)?;
        let site = site.open(&run)?;
        let records = [run.observations(), run.pair_observations(), run.algorithm_times()];
        let with_them = [run.groups(), run.algorithm_plan()];
        run.keep(&self.run, &[&records[..], &with_them].concat())?;
        self.measure(&run, site, begun)?;
        Ok(run)
    }

    fn begin(&self, run: &RunDirectory) -> Result<()> {
        run.begin(&run.observations(), self.run.resume)?;
        run.begin(&run.pair_observations(), self.run.resume)?;
        run.begin(&run.algorithm_times(), self.run.resume)
    }

    fn measure(&self, run: &RunDirectory, site: Site, begun: Instant) -> Result<()> {
        // Taking a virtual cluster down takes about as long as setting it up.
        let kept = begun.elapsed() + ANALYSIS + self.budget.mul_f64(ANALYSIS_SHARE);
        let mut starting = None;
        if !self.no_pairs && site.ranks() > 1 {
            let share = self.budget.mul_f64(PAIRS_SHARE).min(PAIRS_MOST);
            starting = Some(pairs::measure(&site, run, PAIRS_BYTES, self.wanted.seed, share)?);
        }
        let left = self.budget.saturating_sub(begun.elapsed() + kept);
        let left = left.max(self.budget.mul_f64(LEAST));
        let Some(List(collectives)) = &self.algorithms else {
            return calibrating::measure(&site, run, &self.wanted, left, starting);
        };
        let of_algorithms = left.mul_f64(algorithms::SHARE);
        calibrating::measure(&site, run, &self.wanted, left - of_algorithms, starting)?;
        // What the others left is theirs too.
        let left = self.budget.saturating_sub(begun.elapsed() + kept).max(of_algorithms);
        algorithms::measure(&site, run, collectives, self.wanted.seed, left)
    }
}

/// Fits the parameters to the run's observations and writes them.
pub fn fit(run: &RunDirectory) -> Result<Calibration> {
    fit_with(run, None, false)
}

/// The same with constants of algorithms: of the collectives asked for, or of those timed for that;
/// `from_record` also to what other commands have timed.
fn fit_with(
    run: &RunDirectory,
    asked: Option<&[Collective]>,
    from_record: bool,
) -> Result<Calibration> {
    let path = run.observations();
    let record = record::read::<PointToPoint>(&path)?;
    let platform = crate::commands::platform(&record.header, &path)?;
    let fitted = models::fit::fit(&record.rows).with_context(|| {
        format!(
            "{}: no parameters can be had from it; where the budget was too short, go on with \
                 --resume and a longer --budget",
            path.display()
        )
    })?;
    let mut warnings: Vec<String> = platform.busy().into_iter().chain(fitted.warnings).collect();
    let mut measured = fitted.parameters;
    let mut of_collectives = None;
    if let Some(groups) = groups(run)? {
        groups.complete(&mut measured);
        of_collectives = groups.fit(&measured);
    }
    let (fitted, fits) = match of_collectives {
        Some(fit) => {
            warnings.extend(fit.warnings);
            (Some(fit.parameters), fit.fits)
        }
        None => (None, Vec::new()),
    };
    let (algorithms, problems) = algorithms::fit(run, asked, from_record, &measured)?;
    warnings.extend(problems);
    let calibration = Calibration {
        source: source(&path),
        platform,
        measured,
        fitted,
        fits,
        algorithms,
        warnings,
    };
    run.write(&run.calibration(), &calibration)?;
    Ok(calibration)
}

/// The run's observations of more than two ranks and of combining, if there are any.
fn groups(run: &RunDirectory) -> Result<Option<Groups>> {
    let path = run.groups();
    // A run of which nothing came yet leaves its record empty.
    if !fs::metadata(&path).is_ok_and(|record| record.len() > 0) {
        return Ok(None);
    }
    let record = record::read::<GroupObservation>(&path)?;
    let groups =
        Groups::new(&record.rows).map_err(|problem| anyhow!("{}: {problem}", path.display()))?;
    Ok(Some(groups))
}

fn draw(run: &RunDirectory, calibration: &Calibration) -> Result<Vec<String>> {
    let mut drawn = vec![("parameters".to_owned(), figures::parameters(calibration)?)];
    if !calibration.fits.is_empty() {
        drawn.push(("fits".to_owned(), figures::fits(calibration)?));
    }
    let of_algorithms = calibration.algorithms.iter().flat_map(|algorithms| &algorithms.fits);
    for collective in of_algorithms.map(|fit| fit.collective).collect::<BTreeSet<Collective>>() {
        let figure = figures::algorithm_fits(calibration, collective)?;
        drawn.push((format!("algorithms-{collective}"), figure));
    }
    judging::save(run, &drawn)
}

/// The record's name: the directory may be moved as a whole.
fn source(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// The parameters, for people.
pub fn summary(calibration: &Calibration) -> String {
    let sets = [Some(&calibration.measured), calibration.fitted.as_ref()];
    // A parameter that another set's stands in for is told by what says so in the file.
    let cells = |stand_in: &str, of: &dyn Fn(&Parameters) -> Option<[String; 3]>| -> Vec<String> {
        let cell = |set: &&Parameters| match of(set) {
            _ if set.derived.iter().any(|it| it == stand_in) => {
                ["not determined".into(), String::new()]
            }
            Some([value, low, high]) => [value, format!("{low} .. {high}")],
            None => [String::new(), String::new()],
        };
        sets.iter().flatten().flat_map(cell).collect()
    };
    let time_unless = |stand_in: &str, of: fn(&Parameters) -> Option<Estimate>| {
        cells(stand_in, &|set| {
            of(set).map(|it| [it.value, it.low, it.high].map(quantity::format_seconds))
        })
    };
    let time = |of| time_unless("", of);
    let per_byte_unless = |stand_in: &str, of: fn(&Parameters) -> Estimate| {
        let rate = |seconds: f64| format!("{:.5} us/byte", seconds * 1e6);
        cells(stand_in, &|set| {
            let it = of(set);
            Some([it.value, it.low, it.high].map(rate))
        })
    };
    let per_byte = |of| per_byte_unless("", of);
    let rows = [
        ("Hockney", "alpha", time(|set| Some(set.hockney.alpha_seconds))),
        (
            "",
            "beta",
            per_byte_unless(GAP_PER_BYTE_MEASURED, |set| set.hockney.beta_seconds_per_byte),
        ),
        ("LogGP", "L", time_unless(LATENCY_MEASURED, |set| Some(set.loggp.latency_seconds))),
        ("", "o", time(|set| Some(set.loggp.overhead_seconds))),
        ("", "g", time(|set| Some(set.loggp.gap_seconds))),
        ("", "G", per_byte_unless(GAP_PER_BYTE_MEASURED, |set| set.loggp.gap_seconds_per_byte)),
        ("PLogP", "L", time_unless(LATENCY_MEASURED, |set| Some(set.plogp.latency_seconds))),
        ("", "g(0)", time(|set| gap_at(set, 0))),
        ("", "g(64 KiB)", time(|set| gap_at(set, 64 << 10))),
        ("any", "gamma", per_byte(|set| set.gamma_seconds_per_byte)),
    ];
    let rows = rows.map(|(model, name, cells)| {
        [model.to_owned(), name.to_owned()].into_iter().chain(cells).collect()
    });
    let mut heading = vec!["model", "parameter", "measured", "95 % interval"];
    if calibration.fitted.is_some() {
        heading.extend(["fitted", "95 % interval"]);
    }
    let mut text = calibration.platform.summary() + "\n\n";
    text += &output::aligned(&heading, rows);
    text += &algorithms::summary(calibration);
    for warning in &calibration.warnings {
        text += &format!("note: {warning}\n");
    }
    text
}

fn gap_at(parameters: &Parameters, bytes: u64) -> Option<Estimate> {
    let knot = parameters.plogp.knots.iter().find(|knot| knot.bytes == bytes);
    knot.map(|knot| knot.gap_seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_needs_one_rank_more_than_its_last() {
        assert_eq!(pair("0,5").unwrap().ranks(), 6);
        assert_eq!(pair("4294967295,0").unwrap().ranks(), u32::MAX, "more than any job has");
    }
}
