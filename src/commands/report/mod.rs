//! `colibri report`: everything that a run found, on one page.

mod explore;
mod figure;
mod learned;
mod loaded;

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use anyhow::{Result, bail};
use clap::Args;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use records::{
    calibration::Calibration,
    check::Check,
    choices::Choices,
    disturbance::Disturbance,
    document::{self, Document},
    penalty::Penalties,
    platform::Platform,
    summary::TuningSummary,
    violations::Violations,
};

use self::{
    explore::Explored,
    figure::{beside, figure},
};
use crate::commands::shared::{
    calibration,
    output::{self, percent},
    penalties::{self as regions, Means},
    violations as tables,
};
use models::Model;
use site::run_directory::RunDirectory;
use stages::{checking, disturbance, learned::LearnedFiles};

/// Writes report.html: platform, parameters, decisions, penalties, gains and what to load, with
/// all figures in the one file
#[derive(Debug, Args)]
pub struct ReportCommand {
    /// Directory of a run (`colibri tune`, `calibrate`, `verify`, `guidelines`), or what COLIBRI_ADAPT named
    #[arg(default_value = "colibri-run", value_name = "DIR")]
    directory: PathBuf,

    /// The file to write [default: report.html in the run's directory; none of what applications have taught, which
    /// is printed]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl ReportCommand {
    /// Runs the subcommand.
    pub fn run(self) -> Result<()> {
        let run = RunDirectory::read(&self.directory)?;
        let learned = stages::learned::read(&self.directory)?.unwrap_or_default();
        let found = RunResults::read(&run)?;
        let page = match found.platform() {
            Some(platform) => Some(found.page(&run, platform, &learned)?),
            None if learned.is_empty() => bail!(
                "{}: holds no results to report (summary.json, calibration.json, penalty.json, violations.json, or \
                 learned/ of applications)",
                run.path().display()
            ),
            None => self
                .output
                .is_some()
                .then(|| page_of("what applications have taught", &sections_of(&learned))),
        };
        if let Some(page) = page {
            let path = self.output.unwrap_or_else(|| run.file("report.html"));
            document::write_text(&path, &page.into_string())?;
            say!("written: {}", path.display());
        }
        let texts: Vec<String> =
            learned.iter().map(|(_, learned)| learned::text(learned)).collect();
        output::print(&texts.join("\n"))
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
        Ok(RunResults {
            summary: read_if_there(&run.summary())?,
            calibration: read_if_there(&run.calibration())?,
            penalties: read_if_there(&run.penalty())?,
            above_limit: read_if_there(&run.above_limit())?,
            violations: read_if_there(&run.violations())?,
            choices: read_if_there(&run.choices())?,
            predicted: read_if_there(&run.decisions())?,
        })
    }

    fn platform(&self) -> Option<&Platform> {
        let summary = self.summary.as_ref().map(|summary| &summary.platform);
        let penalties = self.penalties.as_ref().map(|penalties| &penalties.platform);
        let violations = self.violations.as_ref().map(|violations| &violations.platform);
        let calibration = self.calibration.as_ref().map(|calibration| &calibration.platform);
        summary.or(penalties).or(violations).or(calibration)
    }

    fn page(
        &self,
        run: &RunDirectory,
        platform: &Platform,
        learned: &LearnedFiles,
    ) -> Result<Markup> {
        let disturbance = match &self.summary {
            Some(summary) => summary.disturbance,
            None => disturbance::of_run(run)?,
        };
        let (choices, penalties) = (self.choices.as_ref(), self.penalties.as_ref());
        let mut sections = vec![loaded::opening(platform, self.summary.as_ref(), run)];
        sections.extend(self.summary.as_ref().map(|summary| loaded::how_to_load(summary, run)));
        sections.extend(warnings(self.warnings(disturbance)));
        if let Some(summary) = &self.summary {
            sections.push(loaded::what_is_loaded(summary, choices, run)?);
        }
        let predicted = self.predicted.as_ref();
        let explored = Explored::new(self.summary.as_ref(), choices, penalties, predicted);
        sections.extend(explored.section()?);
        // Of a tuning that is what is loaded.
        let is_result = self.summary.is_none();
        if let Some(penalties) = &self.penalties {
            sections.push(decisions(penalties, run, is_result)?);
        }
        if let Some(above) = &self.above_limit {
            sections.push(limits(above, run, is_result)?);
        }
        if let Some(violations) = &self.violations {
            sections.push(guidelines(violations, run)?);
        }
        if let Some(calibration) = &self.calibration {
            sections.push(parameters(calibration, run)?);
        }
        sections.extend(learned.iter().map(|(_, learned)| learned::section(learned)));
        sections.extend(checks(&checking::history(run)?));
        let calm = disturbance.map(|disturbance| disturbance.sentence());
        sections.push(conditions(platform, calm.as_deref()));
        Ok(page_of(&platform.summary(), &sections))
    }

    /// All that may have spoilt the results or bounds them, each once; then what is to be known of models and parameters.
    fn warnings(&self, disturbance: Option<Disturbance>) -> [Vec<String>; 2] {
        let is_of_model = |warning: &String| {
            let name = warning.split([':', '-']).next().unwrap_or_default();
            Model::ALL.iter().any(|model| model.name() == name)
        };
        let of_measurements = [
            self.summary.as_ref().map(|summary| &summary.warnings),
            self.penalties.as_ref().map(|penalties| &penalties.warnings),
            self.violations.as_ref().map(|violations| &violations.warnings),
        ];
        let of_models = [
            self.above_limit.as_ref().map(|above| &above.warnings),
            self.calibration.as_ref().map(|calibration| &calibration.warnings),
        ];
        let disturbed = disturbance.and_then(|disturbance| disturbance.warning());
        let machine = disturbed.into_iter().chain(self.platform().and_then(Platform::busy));
        let measured = of_measurements.into_iter().flatten().flatten().cloned();
        let (models, results): (Vec<String>, Vec<String>) =
            machine.chain(measured).partition(is_of_model);
        let models = models.into_iter().chain(of_models.into_iter().flatten().flatten().cloned());
        let mut seen = BTreeSet::new();
        [results, models.collect()].map(|mut all| {
            all.retain(|warning| seen.insert(warning.clone()));
            all
        })
    }
}

fn page_of(title: &str, sections: &[Markup]) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "Colibri: " (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                @for section in sections { (section) }
                (explore::script())
            }
        }
    }
}

fn sections_of(learned: &LearnedFiles) -> Vec<Markup> {
    let title = html! { h1 { "Colibri" } };
    [title]
        .into_iter()
        .chain(learned.iter().map(|(_, learned)| learned::section(learned)))
        .collect()
}

/// So many are read at once; the rest is unfolded.
const WARNINGS_SHOWN: usize = 3;

fn warnings([results, models]: [Vec<String>; 2]) -> Option<Markup> {
    let (shown, rest) = results.split_at(results.len().min(WARNINGS_SHOWN));
    let list = |warnings: &[String]| {
        html! { ul { @for warning in warnings { li { (loaded::prose(warning)) } } } }
    };
    let folded = [(rest, "more"), (&models[..], "on models and parameters")];
    let is_any = !(results.is_empty() && models.is_empty());
    is_any.then(|| {
        html! {
            section.warnings.calm[shown.is_empty()] {
                h2 { @if shown.is_empty() { "No warnings" } @else { "Warnings" } }
                @if !shown.is_empty() { (list(shown)) }
                @for (notes, what) in folded {
                    @if !notes.is_empty() {
                        details {
                            summary { (records::counted(notes.len(), "note")) " " (what) }
                            (list(notes))
                        }
                    }
                }
            }
        }
    })
}

const STYLE: &str = include_str!("style.css");

/// Figures below a title that folds them.
fn folded(title: &str, figures: &[Markup], is_open: bool) -> Markup {
    html! {
        @if !figures.is_empty() {
            details open[is_open] { summary { (title) } (beside(figures)) }
        }
    }
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

/// `is_result` where it is what the run was made for: its maps are seen at once.
fn decisions(penalties: &Penalties, run: &RunDirectory, is_result: bool) -> Result<Markup> {
    let rows = penalties.summaries.iter().map(regions::whole);
    let known = [penalties.platform.summary()];
    let mut maps = Vec::new();
    let mut curves = Vec::new();
    for collective in penalties.message_size.keys() {
        maps.extend(figure(run, &format!("penalty-{collective}"), &known)?);
        maps.extend(figure(run, &format!("decisions-{collective}"), &known)?);
        curves.extend(figure(run, &format!("predicted-{collective}-size"), &known)?);
        curves.extend(figure(run, &format!("predicted-{collective}-procs"), &known)?);
    }
    Ok(html! {
        h2 { "Decisions and their penalties" }
        p {
            "The penalty is what following a decision costs against the measured best: "
            (penalties.best) ". A call is timed by this scheme: " (penalties.timing) ". Less than 0 is \
             noise: the best was chosen on one half of the observations and timed on the other."
        }
        (table("Penalties of each decision function", &regions::WHOLE, rows))
        @if let Some(Means { heading, rows }) = regions::means(penalties) {
            h3 { "By region" }
            @let heading: Vec<&str> = heading.iter().map(String::as_str).collect();
            (table("Mean penalties by number of ranks and message size", &heading, rows))
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
        (folded("Maps of penalties and decisions", &maps, is_result))
        (folded("Predicted against measured times", &curves, false))
    })
}

/// How far the decisions' times are from what the network allows.
fn limits(above: &Penalties, run: &RunDirectory, is_result: bool) -> Result<Markup> {
    let mut figures = Vec::new();
    for collective in above.message_size.keys() {
        figures.extend(figure(run, &format!("limit-{collective}"), &[above.platform.summary()])?);
    }
    Ok(html! {
        h2 { "What the network allows" }
        p { "Times above " (above.best) "." }
        (table("Times above the limit", &regions::WHOLE, above.summaries.iter().map(regions::whole_above)))
        (folded("Maps of times above the limit", &figures, is_result))
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
        figures.extend(figure(
            run,
            &format!("relative-{collective}"),
            &[violations.platform.summary()],
        )?);
    }
    Ok(html! {
        h2 { "Performance guidelines" }
        p {
            "Compared: " (verdict.unit) ", " (records::counted(verdict.jobs, "job")) ", one-sided " (verdict.test)
            " test; false discovery rate of pattern and monotony " (percent(verdict.level)) "."
        }
        (table("Points and violations", &tables::COUNTED, counts))
        @if !violations.violations.is_empty() { (table("Every violation", &heading, rows)) }
        (beside(&figures))
    })
}

fn parameters(calibration: &Calibration, run: &RunDirectory) -> Result<Markup> {
    let figure = figure(run, "parameters", &[calibration.platform.summary()])?;
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
