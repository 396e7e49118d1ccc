//! `colibri report`: everything that a run found, on one page.

mod explore;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Result, bail};
use clap::Args;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use records::{
    FileError,
    calibration::Calibration,
    check::Check,
    choices::Choices,
    document::{self, Document},
    penalty::Penalties,
    platform::Platform,
    summary::{Gain, Loading, TuningSummary},
    violations::Violations,
};

use self::explore::Explored;
use crate::commands::shared::{
    calibration, gains,
    output::percent,
    penalties::{self as regions, Means},
    violations as tables,
};
use site::run_directory::RunDirectory;
use stages::{checking, disturbance};

/// Writes report.html: platform, parameters, decisions, penalties, gains and what to load, with
/// all figures in the one file
#[derive(Debug, Args)]
pub struct ReportCommand {
    /// Directory of a run (`colibri tune`, `calibrate`, `verify`, `guidelines`)
    #[arg(default_value = "colibri-run", value_name = "DIR")]
    directory: PathBuf,

    /// The file to write [default: report.html in the run's directory]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl ReportCommand {
    /// Runs the subcommand.
    pub fn run(self) -> Result<()> {
        let run = RunDirectory::read(&self.directory)?;
        let found = RunResults::read(&run)?;
        let path = self.output.unwrap_or_else(|| run.file("report.html"));
        document::write_text(&path, &found.page(&run)?.into_string())?;
        say!("written: {}", path.display());
        Ok(())
    }
}

/// What of a run's results is there.
struct RunResults {
    summary: Option<TuningSummary>,
    calibration: Option<Calibration>,
    penalties: Option<Penalties>,
    above_limit: Option<Penalties>,
    violations: Option<Violations>,
    choices: Option<Choices>,
    predicted: Option<Choices>,
}

fn read_if_there<T: Document>(path: &Path) -> Result<Option<T>> {
    Ok(if path.exists() { Some(document::read(path)?) } else { None })
}

impl RunResults {
    fn read(run: &RunDirectory) -> Result<Self> {
        let found = RunResults {
            summary: read_if_there(&run.summary())?,
            calibration: read_if_there(&run.calibration())?,
            penalties: read_if_there(&run.penalty())?,
            above_limit: read_if_there(&run.above_limit())?,
            violations: read_if_there(&run.violations())?,
            choices: read_if_there(&run.choices())?,
            predicted: read_if_there(&run.decisions())?,
        };
        if found.platform().is_none() {
            bail!(
                "{}: holds no results to report (summary.json, calibration.json, penalty.json or \
                 violations.json)",
                run.path().display()
            );
        }
        Ok(found)
    }

    fn platform(&self) -> Option<&Platform> {
        let summary = self.summary.as_ref().map(|summary| &summary.platform);
        let penalties = self.penalties.as_ref().map(|penalties| &penalties.platform);
        let violations = self.violations.as_ref().map(|violations| &violations.platform);
        let calibration = self.calibration.as_ref().map(|calibration| &calibration.platform);
        summary.or(penalties).or(violations).or(calibration)
    }

    fn page(&self, run: &RunDirectory) -> Result<Markup> {
        let platform = self.platform().map(Platform::summary).unwrap_or_default();
        let disturbance = match &self.summary {
            Some(summary) => summary.disturbance,
            None => disturbance::of_run(run)?,
        };
        let disturbed = disturbance.and_then(|disturbance| disturbance.warning());
        let mut sections = Vec::new();
        if let Some(summary) = &self.summary {
            sections.push(gains(summary, run)?);
        }
        let (choices, penalties) = (self.choices.as_ref(), self.penalties.as_ref());
        sections.extend(Explored::new(choices, penalties, self.predicted.as_ref()).section()?);
        if let Some(penalties) = &self.penalties {
            sections.push(decisions(penalties, run)?);
        }
        if let Some(above) = &self.above_limit {
            sections.push(limits(above, run)?);
        }
        if let Some(violations) = &self.violations {
            sections.push(guidelines(violations, run)?);
        }
        if let Some(calibration) = &self.calibration {
            sections.push(parameters(calibration, run)?);
        }
        sections.extend(checks(&checking::history(run)?));
        let calm = disturbance.map(|disturbance| disturbance.sentence());
        sections.extend(self.platform().map(|platform| conditions(platform, calm.as_deref())));
        Ok(html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    title { "Colibri: " (platform) }
                    style { (PreEscaped(STYLE)) }
                }
                body {
                    h1 { "Colibri" }
                    @for loading in self.summary.iter().flat_map(TuningSummary::loadings) {
                        p.lead { (gains::verdict(loading)) }
                    }
                    @if let Some(warning) = disturbed { p.note { (warning) } }
                    p.lead { (platform) }
                    @for section in sections { (section) }
                    (explore::script())
                }
            }
        })
    }
}

const STYLE: &str = include_str!("style.css");

/// A figure of the run as part of the page; nothing where it was not drawn.
fn figure(run: &RunDirectory, name: &str) -> Result<Option<Markup>> {
    let path = run.path().join("figures").join(format!("{name}.svg"));
    if !path.exists() {
        return Ok(None);
    }
    let svg = fs::read_to_string(&path).map_err(|error| FileError::io(&path, "read", &error))?;
    // What stands before the drawing itself (an XML declaration) has no place inside a page.
    let drawing = svg.find("<svg").map(|start| svg[start..].to_owned());
    Ok(drawing.map(|drawing| html! { figure { (PreEscaped(drawing)) } }))
}

fn notes<'a>(warnings: impl IntoIterator<Item = &'a String>) -> Markup {
    html! { @for warning in warnings { p.note { "Note: " (warning) } } }
}

/// A table that is folded until its title is clicked.
fn table(title: &str, heading: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> Markup {
    html! {
        details {
            summary { (title) }
            table.sortable {
                tr { @for name in heading { th scope="col" { (name) } } }
                @for row in rows { tr { @for cell in row { td { (cell) } } } }
            }
        }
    }
}

fn gains(summary: &TuningSummary, run: &RunDirectory) -> Result<Markup> {
    let mut ways = Vec::new();
    for loading in summary.loadings() {
        ways.push(way(loading, summary, run)?);
    }
    Ok(html! {
        h2 { "What to load, and what it gains" }
        @for way in ways { (way) }
        @if let Some(application) = &summary.application {
            @for line in gains::expectation(application, summary) { p { (line) } }
        }
        @if let Some(regret) = summary.regret {
            p {
                "Expected penalty for what was not measured: " (percent(regret.mean))
                " on average, " (percent(regret.greatest)) " at most."
            }
        }
        @for method in &summary.withheld { p { (gains::not_loadable(method)) } }
        (notes(&summary.warnings))
    })
}

/// One way to load what was chosen.
fn way(loading: &Loading, summary: &TuningSummary, run: &RunDirectory) -> Result<Markup> {
    let mut gains: Vec<&Gain> = loading.gains.iter().collect();
    gains.sort_by(|a, b| b.speed_up.total_cmp(&a.speed_up));
    let ranges = gains::greatest(loading).into_iter().map(gains::range);
    let mut figures = Vec::new();
    for collective in summary.message_size.keys() {
        figures.extend(figure(run, &gains::figure_name(loading.way, collective.name()))?);
    }
    let how_to_load = gains::how_to_load(loading, &summary.platform, run)?;
    Ok(html! {
        h3 { (gains::heading(loading.way, &summary.platform)) }
        @if gains.is_empty() {
            p { (gains::counts(loading)) }
            pre { (how_to_load) }
        } @else {
            p.lead { "Mean speed-up " (gains::mean(loading)) " over all points. " (gains::counts(loading)) }
            pre { (how_to_load) }
            @if loading.counts.shadowed > 0 { p { (gains::elsewhere(loading)) } }
            p {
                "The mean is geometric. Times are midmeans of jobs with and without it loaded, made \
                 after the choice. Intervals are over pairs of jobs that others did not disturb."
            }
            @if loading.calls_observed > 0 {
                p {
                    (loading.calls_as_told) " of " (loading.calls_observed)
                    " observed calls ran the selected method."
                }
            }
            @for figure in figures { (figure) }
            (table("What was confirmed, range by range", &gains::RANGE, ranges))
            (table("Every size that was confirmed", &gains::GAIN, gains.iter().map(|gain| gains::row(gain))))
        }
        @if loading.counts.withheld > 0 { p { (gains::withheld_points(loading)) } }
        @if let Some(harm) = &loading.harm {
            pre { (gains::harm(harm)) }
        }
    })
}

fn decisions(penalties: &Penalties, run: &RunDirectory) -> Result<Markup> {
    let rows = penalties.summaries.iter().map(regions::whole);
    let mut figures = Vec::new();
    for collective in penalties.message_size.keys() {
        figures.extend(figure(run, &format!("penalty-{collective}"))?);
        figures.extend(figure(run, &format!("decisions-{collective}"))?);
        figures.extend(figure(run, &format!("predicted-{collective}-size"))?);
        figures.extend(figure(run, &format!("predicted-{collective}-procs"))?);
    }
    Ok(html! {
        h2 { "Decisions and their penalties" }
        p {
            "The penalty is what following a decision costs against the measured best: "
            (penalties.best) ". A call is timed by this scheme: " (penalties.timing) "."
        }
        (table("Penalties of each decision function", &regions::WHOLE, rows))
        @if let Some(Means { heading, rows }) = regions::means(penalties) {
            h3 { "By region" }
            @let heading: Vec<&str> = heading.iter().map(String::as_str).collect();
            (table("Mean penalties by number of processes and message size", &heading, rows))
            (table(
                "Their medians, 95th percentiles and greatest",
                &regions::SPREADS,
                regions::spreads(penalties),
            ))
        }
        @if !penalties.prediction_errors.is_empty() {
            (table(
                "Prediction error of each model, |predicted / measured - 1|",
                &regions::PREDICTION_ERROR,
                penalties.prediction_errors.iter().map(regions::prediction_error),
            ))
        }
        @for figure in figures { (figure) }
        (notes(&penalties.warnings))
    })
}

/// How far the decisions' times are from what the network allows.
fn limits(above: &Penalties, run: &RunDirectory) -> Result<Markup> {
    let mut figures = Vec::new();
    for collective in above.message_size.keys() {
        figures.extend(figure(run, &format!("limit-{collective}"))?);
    }
    Ok(html! {
        h2 { "What the network allows" }
        p { "Times above " (above.best) "." }
        (table("Times above the limit", &regions::WHOLE, above.summaries.iter().map(regions::whole)))
        @for figure in figures { (figure) }
        (notes(&above.warnings))
    })
}

fn guidelines(violations: &Violations, run: &RunDirectory) -> Result<Markup> {
    let verdict = &violations.verdict;
    let counts = violations.counts.iter().map(tables::counted);
    let rows = violations.violations.iter().map(|violation| {
        let mut row = tables::compared(violation).to_vec();
        let of_calls = violation.calls_gain.map_or_else(|| "-".into(), percent);
        row.extend([percent(violation.gain), of_calls]);
        row
    });
    let heading = [&tables::COMPARED[..], &["gain", "k calls"]].concat();
    let mut figures = Vec::new();
    for collective in violations.message_size.keys() {
        figures.extend(figure(run, &format!("relative-{collective}"))?);
    }
    Ok(html! {
        h2 { "Performance guidelines" }
        p {
            "Compared: " (verdict.unit) ", " (records::counted(verdict.jobs, "job")) ", one-sided " (verdict.test)
            " test; false discovery rate of pattern and monotony " (percent(verdict.level)) "."
        }
        (table("Points and violations", &tables::COUNTED, counts))
        @if !violations.violations.is_empty() { (table("Every violation", &heading, rows)) }
        @for figure in figures { (figure) }
        (notes(&violations.warnings))
    })
}

fn parameters(calibration: &Calibration, run: &RunDirectory) -> Result<Markup> {
    let figure = figure(run, "parameters")?;
    Ok(html! {
        h2 { "The platform's parameters" }
        @if let Some(figure) = figure { (figure) }
        details {
            summary { "Every parameter, with its 95 % interval" }
            pre { (calibration::summary(calibration)) }
        }
    })
}

/// What checks found, the last first; nothing where there was none.
fn checks(history: &[Check]) -> Option<Markup> {
    let last = history.last()?;
    let row = |check: &Check| {
        let named = |change: &records::check::Change| {
            format!("{}: {} -> {}", change.what, change.before, change.now)
        };
        vec![
            check.date.clone(),
            check.file.clone(),
            check.verdict.words().to_owned(),
            check.reason.clone(),
            check.changes.iter().map(named).collect::<Vec<_>>().join("; "),
            check.tune_again.clone().unwrap_or_default(),
        ]
    };
    let heading =
        ["date (UTC)", "loaded", "verdict", "why", "changed since the tuning", "tune again"];
    Some(html! {
        h2 { "Checks since" }
        p { "Last, on " (last.date) " (UTC): " (last.verdict.words()) "; " (last.reason) "." }
        (table("Every check", &heading, history.iter().rev().map(row)))
    })
}

fn conditions(platform: &Platform, calm: Option<&str>) -> Markup {
    let mut hosts = platform.hosts.clone();
    hosts.sort();
    hosts.dedup();
    let rows = [
        ("MPI library", platform.mpi_library.clone()),
        ("Hosts", hosts.join(", ")),
        ("Transport", platform.transport.clone()),
        ("Processor", format!("{} ({} cores)", platform.processor, platform.cores)),
        ("Kernel", platform.kernel.clone()),
        ("Governor", platform.governor.clone()),
        ("Clock", platform.clock.clone()),
        ("Load before the start", format!("{:.2}", platform.load)),
        ("Taken by others", calm.unwrap_or_default().to_owned()),
        ("Launcher", platform.launcher.clone()),
        ("Virtual cluster", platform.testbed.clone()),
        ("Settings", platform.settings.join(" ")),
    ];
    html! {
        h2 { "Measured on" }
        details {
            summary { "The machines and the MPI library" }
            table {
                @for (name, value) in rows.iter().filter(|(_, value)| !value.is_empty()) {
                    tr { th { (name) } td style="text-align:left" { (value) } }
                }
            }
        }
    }
}
