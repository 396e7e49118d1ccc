//! `colibri bench --nrep`: how often calls have to be repeated.

use std::{path::PathBuf, time::Duration};

use anyhow::{Context, Result};
use clap::{Arg, Args};
use records::{
    Collective, Method, Point, document,
    plan::{Cell, Plan, Visit},
    quantity,
};
use runner::Runnable;
use statistics::nrep::{RepetitionRule, Threshold};
use timing::scheme::TimingScheme;
use tuning::{jobs::smallest_sizes, nrep::TuneLibRule};

use crate::commands::shared::{
    options::{List, RunOptions, SiteOptions, collectives, each, is_all},
    output,
    points::PointOptions,
};
use site::{
    allocation::within_allocation, error::WrongUse, ranks::Site, run_directory::RunDirectory, usage,
};
use stages::{
    deciding::sizes,
    drawing, guideline_jobs,
    measuring::{self, MeasuringWay},
    memory,
    repeating::{self, CellRepetitions, PredictionRule, RepetitionCounts},
};

/// Over the flags of repetitions in a help text.
pub const NREP: &str = "How often to repeat a call (PGMPI's NREP)";

/// How often calls have to be repeated until their mean or median is stable.
#[derive(Debug, Args)]
#[command(mut_arg("directory", directory))]
pub struct NrepOptions {
    #[command(flatten)]
    pub run: Option<RunOptions>,

    /// Collectives, with commas [default: bcast]
    #[arg(long, value_name = "NAMES", value_parser = collectives, conflicts_with = "subject", help_heading = NREP)]
    collective: Option<List<Collective>>,

    /// Criteria that must all hold, each with its threshold and, after an @, its window: rse (relative
    /// standard error of the mean), cov-mean, cov-median (variation of the latest running means,
    /// medians), median-interval, occ (variation without the greatest)
    #[arg(
        long,
        value_name = "NAME[=VALUE[@N]],...",
        value_parser = thresholds,
        default_value = "rse=0.025,cov-mean=0.01@20",
        conflicts_with = "subject",
        help_heading = NREP,
        hide_short_help = true
    )]
    stop_by: List<Threshold>,

    /// Observations between two checks of the criteria
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000), default_value_t = 10, conflicts_with = "subject", help_heading = NREP, hide_short_help = true)]
    step: u32,

    /// Number of jobs; the result is the largest number that any of them needs
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(guideline_jobs::MAX_JOBS)), default_value_t = 3, conflicts_with = "subject", help_heading = NREP, hide_short_help = true)]
    jobs: u32,

    /// Time limit for the measurements: 90s, 10m, 1h30m; from 1ms to 10000h
    #[arg(long, value_name = "TIME", value_parser = quantity::parse_duration, default_value = "5m", conflicts_with = "subject", help_heading = NREP)]
    budget: Duration,

    /// Measure nothing; look at the observations that the run holds, be it of bench --nrep, guidelines or verify
    #[arg(long, conflicts_with_all = ["subject", "resume", "launcher", "testbed"], help_heading = NREP)]
    from_record: bool,

    /// Predict as PGMPITuneLib does: the time until the smallest size is precise is spent on every size
    #[arg(long, conflicts_with_all = ["subject", "stop_by"], hide_short_help = true, help_heading = NREP)]
    tunelib: bool,

    /// With --tunelib: relative standard error until which the smallest size is repeated
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "1%", requires = "tunelib", hide_short_help = true, help_heading = NREP)]
    smallest_error: f64,

    /// With --tunelib: observations of each other size
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=1000), default_value_t = 5, requires = "tunelib", hide_short_help = true, help_heading = NREP)]
    b1: u32,

    /// With --tunelib: relative standard error of these above which --b2 more are made
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "5%", requires = "tunelib", hide_short_help = true, help_heading = NREP)]
    b1_error: f64,

    /// With --tunelib: further observations where --b1-error is exceeded
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=1000), default_value_t = 5, requires = "tunelib", hide_short_help = true, help_heading = NREP)]
    b2: u32,
}

/// The run's directory as the value of a flag: what times one thing keeps a run only on request.
fn directory(directory: Arg) -> Arg {
    let of_one_timing = [
        "subject",
        "kept",
        "PluginOptions",
        "root",
        "adaptive",
        "stride",
        "max_difference",
        "max_sizes",
        "factors",
        "at_once",
        "confidence",
        "precision",
        "format",
    ];
    directory
        .long("nrep")
        .value_name("RUN")
        .help(
            "Tell how often calls have to be repeated until their mean or median is stable; RUN is the \
             directory of the run",
        )
        .default_value(None)
        .display_order(0)
        .conflicts_with_all(of_one_timing)
        .help_heading(NREP)
}

/// What is measured, as `bench` takes it from its flags for all that it times.
pub struct Nrep<'a> {
    pub options: &'a NrepOptions,
    pub run: &'a RunOptions,
    pub site: &'a SiteOptions,
    pub points: &'a PointOptions,
    pub method: &'a str,
    pub timing: Option<TimingScheme>,
    /// Fewest and most repetitions, where they are given.
    pub min: Option<u32>,
    pub max: Option<u32>,
}

fn methods(text: &str) -> Result<List<Method>, String> {
    let all = text.split(',').map(|one| one.trim().parse::<Method>().map_err(|e| e.to_string()));
    all.collect::<Result<_, _>>().map(List)
}

fn share(text: &str) -> Result<f64, String> {
    quantity::parse_share(text, quantity::ABOVE_0)
}

fn thresholds(text: &str) -> Result<List<Threshold>, String> {
    struct Parsed(Threshold);
    impl PartialEq for Parsed {
        fn eq(&self, other: &Self) -> bool {
            self.0.criterion == other.0.criterion
        }
    }
    impl std::str::FromStr for Parsed {
        type Err = String;
        fn from_str(text: &str) -> Result<Self, String> {
            let (name, value) = text.split_once('=').map_or((text, None), |(n, v)| (n, Some(v)));
            let mut threshold = Threshold::usual(name.parse()?);
            let Some(value) = value else { return Ok(Parsed(threshold)) };
            let (below, window) =
                value.split_once('@').map_or((value, None), |(b, w)| (b, Some(w)));
            threshold.below = share(below)?;
            if let Some(window) = window {
                if !threshold.criterion.has_window() {
                    return Err(format!("{name} looks at all observations; leave out @{window}"));
                }
                let count = window.parse().ok().filter(|count| (2..=1_000_000).contains(count));
                threshold.window =
                    count.ok_or_else(|| format!("a window of '{window}'; expected 2 or more"))?;
            }
            Ok(Parsed(threshold))
        }
    }
    let List(all) = each::<Parsed>(text)?;
    Ok(List(all.into_iter().map(|Parsed(one)| one).collect()))
}

fn nrep_plan(run: &RunDirectory) -> PathBuf {
    run.file("nrep-plan.json")
}

/// Most repetitions of a call that the run was begun with; nothing where another command made it.
fn planned_maximum(run: &RunDirectory) -> Result<Option<u32>> {
    let path = nrep_plan(run);
    if !path.exists() {
        return Ok(None);
    }
    let plan: Plan = document::read(&path)?;
    Ok(plan.visits.iter().map(|visit| visit.repetitions).max())
}

impl Nrep<'_> {
    /// Tells the repetitions, measured or from a record.
    pub fn run(mut self) -> Result<()> {
        self.check()?;
        let run = match self.options.from_record {
            true => {
                let run = RunDirectory::judge(&self.run.directory)?;
                let planned = planned_maximum(&run)?.filter(|most| *most >= self.minimum());
                self.max = self.max.or(planned);
                run
            }
            false => self.measured()?,
        };
        let (mut counts, figures) = repeating::counts(&run, &self.rule())?;
        counts.warnings.dedup();
        run.write(&run.file("nrep.json"), &counts)?;
        drawing::save(&run, &figures)?;
        output::print(&summary(&counts))?;
        if run.is_written_to() {
            say!("written: {}", run.file("nrep.json").display());
        }
        Ok(())
    }

    fn check(&self) -> Result<()> {
        let most = 1_000_000;
        let least = if self.options.tunelib { 1 } else { 2 };
        for (flag, number) in [("min", self.minimum()), ("max", self.maximum())] {
            if !(least..=most).contains(&number) {
                usage!("--{flag} {number}: expected {least} to {most}");
            }
        }
        let (min, max) = (self.minimum(), self.maximum());
        if min > max {
            usage!("--min {min}: expected --max ({max}) or less");
        }
        Ok(())
    }

    /// Fewest observations before the criteria are checked; with TuneLib's rule, fewest repetitions.
    fn minimum(&self) -> u32 {
        self.min.unwrap_or(if self.options.tunelib { 1 } else { 20 })
    }

    /// Observations made of each call, and the largest result of the rule.
    fn maximum(&self) -> u32 {
        self.max.unwrap_or(1000)
    }

    fn rule(&self) -> PredictionRule {
        let options = self.options;
        if options.tunelib {
            return PredictionRule::TuneLib(TuneLibRule {
                smallest_error: options.smallest_error,
                first: options.b1 as usize,
                first_error: options.b1_error,
                more: options.b2 as usize,
                least: self.minimum(),
            });
        }
        PredictionRule::Thresholds(RepetitionRule {
            thresholds: options.stop_by.0.clone(),
            minimum: self.minimum() as usize,
            maximum: self.maximum() as usize,
            step: options.step as usize,
        })
    }

    /// The run, measured; nothing is made before all that can be known of it allows it to begin.
    fn measured(&self) -> Result<RunDirectory> {
        let budget = within_allocation(self.options.budget)?;
        let mut run = RunDirectory::at(&self.run.directory)?;
        let first = repeating::record(&run, 1);
        run.begin(&first, self.run.resume)?;
        let site = Site::find(self.site)?;
        let path = nrep_plan(&run);
        let is_planned = self.run.resume && path.exists();
        if !is_planned {
            self.cells(&site)?;
        }
        run.make()?;
        run.begin(&first, self.run.resume)?;
        let mut site = site.open(&run)?;
        site.first_job(&run)?;
        // The nodes of the ranks are known only now.
        let plan = match is_planned {
            true => None,
            false => {
                let cells = memory::limited(self.cells(&site)?, &run, self.site.memory_share)?;
                Some(self.plan(cells, site.ranks()))
            }
        };
        run.keep(self.run, &[first])?;
        if let Some(plan) = plan {
            document::write(&path, &plan)?;
        }
        let plan: Plan = document::read(&path)?;
        let jobs = self.options.jobs;
        let deadline = budget.div_f64(f64::from(jobs));
        for job in 1..=jobs {
            let done = run.file(&format!("nrep-{job}.done"));
            if done.exists() {
                continue;
            }
            say!("job {job} of {jobs}");
            let record = repeating::record(&run, job);
            measuring::run_plan_by(
                &MeasuringWay::timed(self.timing.unwrap_or(site.timing())),
                &site,
                &plan,
                &path,
                &record,
                deadline,
                &[],
            )
            .with_context(|| format!("job {job}"))?;
            document::write_text(&done, "")?;
        }
        Ok(run)
    }

    /// Each cell once, the smallest sizes first: what a short budget does not reach is the largest.
    fn plan(&self, mut cells: Vec<Cell>, ranks: u32) -> Plan {
        cells.sort_by_key(|cell| cell.point.bytes);
        let smallest = smallest_sizes(&cells);
        let options = self.options;
        let is_smallest = |point: &Point| smallest.get(&point.line()) == Some(&point.bytes);
        let repetitions = |cell: &Cell| match options.tunelib && !is_smallest(&cell.point) {
            true => options.b1 + options.b2,
            false => self.maximum(),
        };
        let visits = cells.iter().zip(0..).map(|(cell, index)| Visit {
            cell: index,
            warmups: 1,
            repetitions: repetitions(cell),
            calls: 1,
        });
        Plan { seed: 0, ranks, visits: visits.collect(), cells }
    }

    fn cells(&self, site: &Site) -> Result<Vec<Cell>> {
        let layouts = self.points.layouts(site)?;
        let asked = self.options.collective.as_ref();
        let collectives = asked.map_or(&[Collective::Bcast][..], |asked| &asked.0);
        let List(methods) = methods(self.method).map_err(WrongUse)?;
        let mut cells = Vec::new();
        for &layout in &layouts {
            for &collective in collectives {
                for method in &methods {
                    match Runnable::new(collective, method) {
                        Ok(_) => {}
                        Err(_) if is_all(collectives) => continue,
                        Err(problem) => usage!("--method: {problem}"),
                    }
                    let cell = |&bytes| Cell {
                        point: Point::new(collective, layout, bytes),
                        method: method.clone(),
                    };
                    cells.extend(sizes(collective, &self.points.sizes.0).iter().map(cell));
                }
            }
        }
        if cells.is_empty() {
            usage!("--method: no collective has any of these");
        }
        Ok(cells)
    }
}

/// For people: a row for each call.
fn summary(counts: &RepetitionCounts) -> String {
    let mut text = format!(
        "Repetitions: {}\n\nRule: {}; the largest number that any job needs\n\n",
        counts.platform.summary(),
        counts.rule
    );
    let row = |cell: &CellRepetitions| {
        let jobs = cell.jobs.iter();
        let jobs: Vec<String> =
            jobs.map(|job| job.map_or_else(|| "-".to_owned(), |count| count.to_string())).collect();
        vec![
            cell.point.collective.to_string(),
            cell.point.layout.to_string(),
            quantity::format_bytes(cell.point.bytes),
            cell.method.short(),
            cell.observations.to_string(),
            jobs.join(" "),
            format!("{}{}", cell.repetitions, if cell.is_settled { "" } else { " *" }),
        ]
    };
    let heading = ["collective", "procs", "size", "method", "observed", "jobs", "repetitions"];
    text += &output::aligned(&heading, counts.cells.iter().map(row));
    if counts.cells.iter().any(|cell| !cell.is_settled) {
        text += "* not settled: what was observed did not suffice in some job\n";
    }
    for warning in &counts.warnings {
        text += &format!("note: {warning}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use statistics::stopping::Criterion;

    use super::*;

    #[test]
    fn criteria_are_read_with_thresholds_and_windows() {
        let List(read) = thresholds("rse=0.1, cov-median=0.02@30,occ").unwrap();
        let [rse, median, occ] = read.as_slice() else { panic!("{read:?}") };
        assert_eq!((rse.criterion, rse.below), (Criterion::StandardError, 0.1));
        assert_eq!((median.below, median.window), (0.02, 30));
        assert_eq!((occ.criterion, occ.below), (Criterion::WithoutGreatest, 0.05));
        for (wrong, expected) in [
            ("sre", "known: median-interval, mean-interval, rse"),
            ("rse=x", "expected a share above 0%, as 5% or 0.05"),
            ("rse=-1", "expected a share above 0%, as 5% or 0.05"),
            ("cov-mean=0.1@1", "expected 2 or more"),
            ("rse=0.1@20", "looks at all observations"),
        ] {
            let error = thresholds(wrong).unwrap_err();
            assert!(error.contains(expected), "{wrong}: {error}");
        }
    }
}
