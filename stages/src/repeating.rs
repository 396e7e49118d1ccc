//! How often calls are to be repeated: what a run's records tell by a rule, and its figures.

use std::{collections::BTreeMap, path::PathBuf};

use anyhow::{Context, Result};
use choosing::samples::Samples;
use figures::{Axis, Curve, FigureError, PlotPoint, Quantity, Trace};
use records::{
    Collective, Layout, Method, Point, document::Document, plan::Cell, platform::Platform,
    quantity, record,
};
use serde::{Deserialize, Serialize};
use statistics::nrep::RepetitionRule;
use tuning::nrep::TuneLibRule;
use verification::penalty::message_sizes;

use crate::{guideline_jobs, headers, measurements};
use site::run_directory::RunDirectory;

/// By what the number of repetitions is known.
#[derive(Debug, Clone, PartialEq)]
pub enum PredictionRule {
    /// PGMPI's: each size by itself, until thresholds hold.
    Thresholds(RepetitionRule),
    /// PGMPITuneLib's: the time that the smallest size needs is spent on every size.
    TuneLib(TuneLibRule),
}

impl PredictionRule {
    /// In words, for tables and files.
    pub fn in_words(&self) -> String {
        match self {
            PredictionRule::Thresholds(rule) => {
                let of_each = rule.thresholds.iter().map(|one| {
                    let window = match one.criterion.has_window() {
                        true => format!(" over {}", one.window),
                        false => String::new(),
                    };
                    format!("{} < {}{window}", one.criterion.name(), one.below)
                });
                let of_each: Vec<String> = of_each.collect();
                format!(
                    "{}, looked at after {} observations and every {} more up to {}",
                    of_each.join(" and "),
                    rule.minimum,
                    rule.step,
                    rule.maximum
                )
            }
            PredictionRule::TuneLib(rule) => format!(
                "PGMPITuneLib's: t1 until rse < {} at the smallest size, b1 {} (rse < {}), b2 {}, K {}",
                rule.smallest_error, rule.first, rule.first_error, rule.more, rule.least
            ),
        }
    }
}

/// `nrep.json`: how often each call has to be repeated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RepetitionCounts {
    /// What was measured on.
    pub platform: Platform,
    /// How a call was timed.
    pub timing: String,
    /// What a message size means, per collective.
    pub message_size: BTreeMap<Collective, String>,
    /// The rule, in words.
    pub rule: String,
    /// Ascending by collective, layout, size and method.
    pub cells: Vec<CellRepetitions>,
    /// What a reader must know.
    pub warnings: Vec<String>,
}

/// How often one call has to be repeated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CellRepetitions {
    #[serde(flatten)]
    pub point: Point,
    pub method: Method,
    /// Fewest observations of a job.
    pub observations: u32,
    /// What each job needed; nothing where its observations did not suffice.
    pub jobs: Vec<Option<u32>>,
    /// The most of them; where one did not suffice, as many as the rule allows at most.
    pub repetitions: u32,
    /// Whether every job's observations sufficed.
    pub is_settled: bool,
}

impl Document for RepetitionCounts {
    const SCHEMA: &'static str = "colibri/nrep/1";

    fn validate(&self) -> Result<(), (String, String)> {
        let none = self.cells.iter().position(|cell| cell.repetitions == 0);
        match none {
            Some(index) => {
                Err((format!("cells[{index}].repetitions"), "is 0; expected 1 or more".into()))
            }
            None => Ok(()),
        }
    }
}

impl RepetitionCounts {
    /// Puts what was given in the place of other repetitions of these cells: of the same call by the same
    /// method, else by the default. Says for how many cells nothing was given.
    pub fn replace(&self, cells: &[Cell], repetitions: &mut [u32]) -> Option<String> {
        let key = |point: Point, method: &Method| (point, method.clone());
        let counts: BTreeMap<(Point, Method), u32> = self
            .cells
            .iter()
            .map(|cell| (key(cell.point, &cell.method), cell.repetitions))
            .collect();
        let mut without = 0;
        for (cell, count) in cells.iter().zip(repetitions) {
            let own = counts.get(&key(cell.point, &cell.method));
            match own.or_else(|| counts.get(&key(cell.point, &Method::Default))) {
                Some(&wanted) => *count = wanted,
                None => without += 1,
            }
        }
        (without > 0).then(|| {
            format!(
                "nrep has no result for {without} of {} cells; they are repeated as usual",
                cells.len()
            )
        })
    }
}

/// The record of one of the jobs that `colibri bench --nrep` starts.
pub fn record(run: &RunDirectory, job: u32) -> PathBuf {
    run.file(&format!("nrep-{job}.csv"))
}

/// The records that a run holds, each of one job: those made for this, of guidelines, or of a verification.
fn records(run: &RunDirectory) -> Vec<PathBuf> {
    let forms: [&dyn Fn(u32) -> PathBuf; 3] =
        [&|job| record(run, job), &|job| guideline_jobs::job_record(run, job), &|job| {
            measurements::files(run, job as usize).record
        }];
    let of_form = |form: &&dyn Fn(u32) -> PathBuf| -> Vec<PathBuf> {
        (1..).map(form).take_while(|path| path.exists()).collect()
    };
    forms.iter().map(of_form).find(|found| !found.is_empty()).unwrap_or_default()
}

/// The observations of each method at each point in seconds, job by job, in the order in which they were
/// made.
type Series = BTreeMap<(Point, Method), Vec<Vec<f64>>>;

/// What the records of a run say by a rule, and the figures of that with their names.
///
/// # Errors
/// There is no record, or one cannot be read.
pub fn counts(
    run: &RunDirectory,
    rule: &PredictionRule,
) -> Result<(RepetitionCounts, Vec<(String, figures::Figure)>)> {
    let (mut series, mut first, mut warnings) = (Series::new(), None, Vec::new());
    for path in records(run) {
        let record = record::read(&path)?;
        let samples = Samples::gather(&record.rows, libraries::ran_as_asked);
        warnings.extend(samples.warnings.iter().cloned());
        for point in samples.points() {
            for (method, times) in samples.at(point) {
                let jobs = series.entry((point, method.clone())).or_default();
                jobs.push(times.seconds().to_vec());
            }
        }
        if first.is_none() {
            first = Some((headers::platform(&record.header, &path)?, record.header));
        }
    }
    let (platform, header) = first.context(
        "the run has no records of collectives; leave out --from-record to measure them",
    )?;
    let cells = match rule {
        PredictionRule::Thresholds(rule) => by_thresholds(&series, rule),
        PredictionRule::TuneLib(rule) => by_time(&series, rule),
    };
    let counts = RepetitionCounts {
        message_size: message_sizes(cells.iter().map(|cell| cell.point.collective)),
        timing: header.get("timing").cloned().unwrap_or_default(),
        rule: rule.in_words(),
        platform,
        cells,
        warnings,
    };
    let figures = match rule {
        PredictionRule::Thresholds(rule) => drawn(&counts, &series, rule)?,
        PredictionRule::TuneLib(_) => Vec::new(),
    };
    Ok((counts, figures))
}

fn cell(
    (point, method): &(Point, Method),
    series: &[Vec<f64>],
    jobs: Vec<Option<u32>>,
    otherwise: u32,
) -> CellRepetitions {
    let is_settled = jobs.iter().all(Option::is_some);
    let most = jobs.iter().flatten().copied().max().unwrap_or_default();
    CellRepetitions {
        point: *point,
        method: method.clone(),
        observations: series.iter().map(Vec::len).min().unwrap_or_default() as u32,
        repetitions: if is_settled { most } else { most.max(otherwise) }.max(1),
        jobs,
        is_settled,
    }
}

fn by_thresholds(series: &Series, rule: &RepetitionRule) -> Vec<CellRepetitions> {
    let of_each = |(key, jobs): (&(Point, Method), &Vec<Vec<f64>>)| {
        let needed = jobs.iter().map(|job| rule.needed(job).map(|count| count as u32)).collect();
        cell(key, jobs, needed, rule.maximum as u32)
    };
    series.iter().map(of_each).collect()
}

/// The time is the longest that a job needed at the smallest size of the same method.
fn by_time(series: &Series, rule: &TuneLibRule) -> Vec<CellRepetitions> {
    let mut times: BTreeMap<(Collective, Layout, &Method), (bool, f64)> = BTreeMap::new();
    for ((Point { collective, layout, .. }, method), jobs) in series {
        // The first is of the smallest size.
        times.entry((*collective, *layout, method)).or_insert_with(|| {
            let needed = jobs.iter().map(|job| rule.seconds_at_smallest(job));
            let spent = jobs.iter().map(|job| job.iter().sum::<f64>());
            let longest = needed.clone().zip(spent).map(|(needed, spent)| needed.unwrap_or(spent));
            (needed.clone().all(|one| one.is_some()), longest.fold(0.0, f64::max))
        });
    }
    let of_each = |(key, jobs): (&(Point, Method), &Vec<Vec<f64>>)| {
        let (Point { collective, layout, .. }, method) = key;
        let (is_precise, seconds) = times.get(&(*collective, *layout, method)).copied()?;
        let needed: Vec<Option<u32>> =
            jobs.iter().map(|job| rule.repetitions(seconds, job)).collect();
        let mut found = cell(key, jobs, needed, rule.least);
        found.is_settled &= is_precise;
        Some(found)
    };
    series.iter().filter_map(of_each).collect()
}

/// The curves under a title.
type TitledPanel = (String, Vec<Curve>);

/// One figure per collective and layout with a panel per size, of the default or else the first method:
/// how the uncertainty falls in the job that needed most (PGMPI's Figure 1).
fn drawn(
    counts: &RepetitionCounts,
    series: &Series,
    rule: &RepetitionRule,
) -> Result<Vec<(String, figures::Figure)>> {
    let mut panels: BTreeMap<(Collective, Layout), Vec<TitledPanel>> = BTreeMap::new();
    let mut sizes: BTreeMap<Point, &CellRepetitions> = BTreeMap::new();
    for cell in &counts.cells {
        let shown = sizes.entry(cell.point).or_insert(cell);
        if cell.method == Method::Default {
            *shown = cell;
        }
    }
    for (point, cell) in sizes {
        let Some(jobs) = series.get(&(point, cell.method.clone())) else { continue };
        let most = (0..jobs.len()).max_by_key(|job| cell.jobs[*job].unwrap_or(u32::MAX));
        let Some(observations) = most.and_then(|job| jobs.get(job)) else { continue };
        let title = format!("{} {}", cell.method.short(), quantity::format_bytes(point.bytes));
        let curves = courses(observations, rule, cell);
        panels.entry((point.collective, point.layout)).or_default().push((title, curves));
    }
    let mut figures = Vec::new();
    for ((collective, layout), panels) in panels {
        let lines =
            [counts.platform.summary(), format!("{}; the job that needed most", counts.rule)];
        let axis = |label: &str| Axis { label: label.into(), quantity: Quantity::Number };
        let axes = (axis("observations"), axis("uncertainty, as a part of the time"));
        let title = format!("Repetitions needed: {collective}, {}", layout.in_words());
        match figures::panels(&title, &lines, axes, &panels) {
            Ok(figure) => figures.push((format!("nrep-{collective}-{layout}"), figure)),
            Err(error @ (FigureError::TooMuch { .. } | FigureError::NothingToDraw(_))) => {
                say!("note: no figure of {collective}'s repetitions: {error}");
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(figures)
}

/// Each criterion after each observation, its threshold as a level line, and where all hold.
fn courses(observations: &[f64], rule: &RepetitionRule, cell: &CellRepetitions) -> Vec<Curve> {
    let last = observations.len() as f64;
    let (mut curves, mut low, mut high) = (Vec::new(), f64::INFINITY, 0.0_f64);
    for threshold in &rule.thresholds {
        let course = threshold.course(observations);
        let points: Vec<PlotPoint> = (1..)
            .zip(course)
            .filter(|(_, value)| value.is_finite() && *value > 0.0)
            .map(|(count, value)| PlotPoint::exact(f64::from(count), value))
            .collect();
        for value in points.iter().map(|point| point.y).chain([threshold.below]) {
            (low, high) = (low.min(value), high.max(value));
        }
        let name = threshold.criterion.name();
        curves.push(Curve { name: name.into(), trace: Trace::Line, points });
        let level = [1.0, last].map(|x| PlotPoint::exact(x, threshold.below)).to_vec();
        let name = format!("{name} < {}", threshold.below);
        curves.push(Curve { name, trace: Trace::Line, points: level });
    }
    if cell.is_settled {
        let x = f64::from(cell.repetitions);
        let points = [low, high].map(|y| PlotPoint::exact(x, y)).to_vec();
        curves.push(Curve { name: "repetitions".into(), trace: Trace::Line, points });
    }
    curves
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(method: &str, bytes: u64) -> Cell {
        let method = method.parse().unwrap();
        Cell { point: Point::flat(Collective::Bcast, 8, bytes), method }
    }

    fn series(cell: &Cell, jobs: &[&[f64]]) -> ((Point, Method), Vec<Vec<f64>>) {
        let jobs = jobs.iter().map(|job| job.to_vec()).collect();
        ((cell.point, cell.method.clone()), jobs)
    }

    /// 10 ms at the smallest size (b1 calls of 2 ms that do not vary) in one job, 5 ms in another.
    #[test]
    fn the_longest_time_of_a_job_at_the_smallest_size_is_spent_on_each() {
        let rule =
            TuneLibRule { smallest_error: 0.01, first: 5, first_error: 0.05, more: 5, least: 3 };
        let all: Series = [
            series(&of("default", 8), &[&[2e-3; 20], &[1e-3; 20]]),
            series(&of("default", 64), &[&[2.5e-3; 5], &[2e-3; 5]]),
            series(&of("default", 4096), &[&[0.1; 5], &[0.1; 5]]),
        ]
        .into();
        let found = by_time(&all, &rule);
        let repetitions: Vec<u32> = found.iter().map(|cell| cell.repetitions).collect();
        assert_eq!(repetitions, [10, 5, 3]);
        assert_eq!(found[1].jobs, [Some(4), Some(5)]);
        assert!(found.iter().all(|cell| cell.is_settled));
        // The smallest size never settles: all its time counts, and that is told.
        let restless: Series = [series(&of("default", 8), &[&[1e-3, 3e-3].repeat(3)])].into();
        let found = by_time(&restless, &rule);
        assert_eq!((found[0].repetitions, found[0].is_settled), (12, false));
    }

    #[test]
    fn what_is_told_of_the_default_holds_for_its_rivals() {
        let cell = |method: &str, bytes, repetitions| CellRepetitions {
            point: Point::new(Collective::Bcast, Layout::flat(8), bytes),
            method: method.parse().unwrap(),
            observations: 100,
            jobs: vec![Some(repetitions)],
            repetitions,
            is_settled: true,
        };
        let told = RepetitionCounts {
            platform: ::fuzz::files::platform(),
            timing: "barrier".into(),
            message_size: BTreeMap::new(),
            rule: String::new(),
            cells: vec![cell("default", 8, 40), cell("own:binomial", 8, 70)],
            warnings: Vec::new(),
        };
        let cells =
            [of("default", 8), of("own:linear", 8), of("own:binomial", 8), of("default", 16)];
        let mut repetitions = [5; 4];
        let note = told.replace(&cells, &mut repetitions).unwrap();
        assert_eq!(repetitions, [40, 40, 70, 5]);
        assert!(note.contains("1 of 4 cells"), "{note}");
    }
}
