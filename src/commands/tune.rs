//! `colibri tune`: calibrates, decides, measures, exports and confirms, in this order.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use records::{
    Collective, Method, Point,
    calibration::Calibration,
    document::{self, Document},
    observation::CollectiveCall,
    openmpi,
    plan::{Cell, Plan},
    quantity, record,
    summary::{Gain, Summary, TakenOut},
};
use serde::{Deserialize, Serialize};
use verification::{
    plan::{self, Extent},
    samples::Samples,
    selection::Choice,
    statistics::geometric_mean,
};

use crate::{
    commands::{
        calibrate, export,
        verify::{self, Judged},
    },
    error::usage,
    focused,
    options::{GridOptions, ModelOptions, ParameterSet, RunOptions, Segments, SiteOptions},
    output,
    run_directory::RunDirectory,
    site::{self, Site},
    source::Source,
};

/// Calibrates, decides, measures, exports and confirms; ends with the files to load and what
/// they gain
#[derive(Debug, Args)]
pub struct Tune {
    #[command(flatten)]
    run: RunOptions,

    #[command(flatten)]
    site: SiteOptions,

    #[command(flatten)]
    grid: GridOptions,

    /// How long it may take
    #[arg(long, value_name = "TIME", value_parser = quantity::parse_duration, default_value = "5m")]
    budget: Duration,

    /// Measure every method at every point, however long it takes
    #[arg(long, conflicts_with = "budget")]
    exhaustive: bool,

    /// Seed of the order of the measurements
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Shares of the budget. The rest goes to starting jobs and to what the models underestimate.
const CALIBRATION_SHARE: f64 = 0.12;
const MEASURING_SHARE: f64 = 0.53;
const CONFIRMING_SHARE: f64 = 0.15;

/// The options of a run, so that a resumed one does what was begun.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Options {
    collectives: Vec<Collective>,
    procs: Option<Vec<u32>>,
    sizes: Vec<u64>,
    /// `None` is `auto`.
    segments: Option<Vec<u64>>,
    budget_seconds: f64,
    exhaustive: bool,
    seed: u64,
    launcher: Option<String>,
    ranks: Option<u32>,
    testbed: Option<String>,
    rate: String,
    #[serde(default)]
    ports: Vec<String>,
    ppn: u32,
}

impl Document for Options {
    const SCHEMA: &'static str = "colibri/tune/1";
}

impl Tune {
    /// Runs the subcommand.
    pub fn run(self) -> Result<()> {
        let run = RunDirectory::open(&self.run.directory)?;
        self.begin(&run)?;
        if self.run.resume {
            site::clear_up(&run)?;
        }
        let mut site = LazySite { options: &self.site, run: &run, site: None };

        let calibration = self.calibrate(&run, &mut site)?;
        let source = Source::of_run(calibration, &model_options())?;
        self.measure(&run, &mut site, &source)?;
        let judged = verify::judge(&run, &source, &verify::judged_models())?;
        for warning in &judged.penalties.warnings {
            eprintln!("note: {warning}");
        }
        let summary = self.confirm(&run, &mut site, &source, &judged)?;
        drop(site);

        let mut text = verify::summary(&judged.penalties);
        text += &summary_text(&summary, &run)?;
        document::write_text(&run.file("summary.txt"), &text)?;
        output::print(&text)
    }

    /// Writes the options down, or checks that they are those of the run that is to go on.
    fn begin(&self, run: &RunDirectory) -> Result<()> {
        let path = run.options();
        let options = self.options();
        if self.run.resume {
            let begun: Options = document::read(&path)
                .context("there is no run to go on with; leave out --resume to begin one")?;
            if begun != options {
                let changed = changed(&begun, &options)?;
                usage!(
                    "{}: the run was begun with other options ({changed}); give the same ones \
                     with --resume, or begin another run in another directory",
                    run.path().display()
                );
            }
            return Ok(());
        }
        run.begin(&path, false)?;
        run.begin(&run.observations(), false)?;
        run.begin(&run.measurements(), false)?;
        Ok(document::write(&path, &options)?)
    }

    fn options(&self) -> Options {
        Options {
            collectives: self.grid.collective.0.clone(),
            procs: self.grid.procs.as_ref().map(|procs| procs.0.clone()),
            sizes: self.grid.sizes.0.clone(),
            segments: match &self.grid.segments {
                Segments::These(these) => Some(these.clone()),
                Segments::Auto => None,
            },
            budget_seconds: self.budget.as_secs_f64(),
            exhaustive: self.exhaustive,
            seed: self.seed,
            launcher: self.site.launcher.clone(),
            ranks: self.site.ranks,
            testbed: self.site.testbed.clone(),
            rate: self.site.rate.to_string(),
            ports: self.site.ports.iter().map(ToString::to_string).collect(),
            ppn: self.site.ppn,
        }
    }

    fn share(&self, share: f64) -> f64 {
        self.budget.as_secs_f64() * share
    }

    /// The calibration is written when its measuring is over, so that one that is there is whole.
    fn calibrate(&self, run: &RunDirectory, site: &mut LazySite) -> Result<Calibration> {
        if !run.calibration().exists() {
            let site = site.open()?;
            if site.ranks() < 2 {
                usage!(
                    "tuning needs at least 2 ranks; give --ranks, or --testbed 8 for a virtual cluster"
                );
            }
            let budget = Duration::from_secs_f64(self.share(CALIBRATION_SHARE).min(60.0));
            let wanted = calibrate::Wanted::within(budget, self.seed);
            calibrate::measure(site, run, &wanted, budget)?;
        }
        let calibration = calibrate::fit(run)?;
        eprint!("{}", calibrate::summary(&calibration));
        Ok(calibration)
    }

    /// The penalties are written when the measuring is over.
    fn measure(&self, run: &RunDirectory, site: &mut LazySite, source: &Source) -> Result<()> {
        if run.penalty().exists() {
            return Ok(());
        }
        let site = site.open()?;
        if !site.is_open_mpi() {
            bail!(
                "the launcher at hand is not Open MPI's: its algorithms can't be forced yet, so \
                 there is nothing to tune; calibrate, predict and decide work with any MPI library"
            );
        }
        let grid = verify::grid(&self.grid, site)?;
        if !self.exhaustive {
            return focused::measure(
                run,
                site,
                source,
                &grid,
                self.share(MEASURING_SHARE),
                self.seed,
            );
        }
        let plan =
            verify::planned(run, source, &grid, Extent::Exhaustive { rounds: 3 }, self.seed)?;
        let deadline = Duration::from_secs(30 * 24 * 3600);
        verify::measure(site, &plan, &run.plan(), &run.measurements(), deadline, &[])
    }

    /// Loads the file in jobs of its own: what is not faster is taken out, and what the rest
    /// gains is told by a further pair of jobs that had no part in choosing, save that what these
    /// show to be slower is taken out as well.
    fn confirm(
        &self,
        run: &RunDirectory,
        site: &mut LazySite,
        source: &Source,
        judged: &Judged,
    ) -> Result<Summary> {
        let candidates = replaced(&judged.choices);
        let mut confirmation = Confirmation { tune: self, run, candidates: &candidates };
        let mut choices = judged.choices.clone();
        let mut summary = Summary {
            platform: judged.penalties.platform.clone(),
            message_size: judged.penalties.message_size.clone(),
            points: choices.len() as u32,
            gains: Vec::new(),
            taken_out: Vec::new(),
            mean_speed_up: 1.0,
            calls_observed: 0,
            calls_as_told: 0,
            regret: match self.exhaustive {
                true => None,
                false => Some(focused::regret(run, source)?),
            },
            file: "openmpi.rules".into(),
            warnings: judged.penalties.warnings.clone(),
        };
        if !candidates.is_empty() {
            export::write_openmpi(source, &choices, &run.file("candidate.rules"))?;
            let first = confirmation.pair(site, "1", "candidate.rules")?;
            take_out(&mut choices, &first, &mut summary);
        }
        let kept = replaced(&choices);
        if !kept.is_empty() {
            confirmation.candidates = &kept;
            export::write_openmpi(source, &choices, &run.file("confirmed.rules"))?;
            let second = confirmation.pair(site, "2", "confirmed.rules")?;
            // What is slower now must not be exported either; what is told of the rest flatters
            // by no more than that.
            take_out(&mut choices, &second, &mut summary);
            tell(&mut summary, &second, &replaced(&choices));
        }
        export::write_openmpi(source, &choices, &run.file(&summary.file))?;
        document::write(&run.summary(), &summary)?;
        verify::draw_gains(run, &summary)?;
        Ok(summary)
    }
}

/// The points at which the file replaces the default.
fn replaced(choices: &[Choice]) -> Vec<Choice> {
    choices.iter().filter(|choice| choice.method != Method::Default).cloned().collect()
}

/// Leaves to the default what the loaded file did not make faster.
fn take_out(choices: &mut [Choice], pair: &Pair, summary: &mut Summary) {
    for choice in choices.iter_mut().filter(|choice| choice.method != Method::Default) {
        let Some(speed_up) = pair.speed_up(choice.point).filter(|&ratio| ratio < 1.0) else {
            continue;
        };
        summary.taken_out.push(TakenOut {
            collective: choice.point.collective,
            procs: choice.point.procs,
            bytes: choice.point.bytes,
            method: choice.method.clone(),
            speed_up,
        });
        choice.method = Method::Default;
    }
}

/// Jobs that measure the default with and without a file loaded.
struct Confirmation<'a> {
    tune: &'a Tune,
    run: &'a RunDirectory,
    candidates: &'a [Choice],
}

/// A pair of jobs: without and with the file.
struct Pair {
    default: Samples,
    tuned: Samples,
    tuned_rows: Vec<CollectiveCall>,
}

impl Confirmation<'_> {
    fn pair(&self, site: &mut LazySite, number: &str, rules: &str) -> Result<Pair> {
        let default = |site: &mut LazySite| self.job(site, number, "default", None);
        let tuned = |site: &mut LazySite| self.job(site, number, "tuned", Some(rules));
        // Once the one goes first, once the other: drift must favour neither.
        let (default, tuned) = if number == "1" {
            let default = default(site)?;
            (default, tuned(site)?)
        } else {
            let tuned = tuned(site)?;
            (default(site)?, tuned)
        };
        Ok(Pair {
            default: Samples::gather(&default),
            tuned: Samples::gather(&tuned),
            tuned_rows: tuned,
        })
    }

    /// One job, unless its record is whole.
    fn job(
        &self,
        site: &mut LazySite,
        number: &str,
        which: &str,
        rules: Option<&str>,
    ) -> Result<Vec<CollectiveCall>> {
        let plan_path = self.run.file(&format!("confirmation-{number}-plan.json"));
        let record_path = self.run.file(&format!("confirmation-{number}-{which}.csv"));
        let done = self.run.file(&format!("confirmation-{number}-{which}.done"));
        if !done.exists() {
            let seconds = self.tune.share(CONFIRMING_SHARE) / 4.0;
            let site = site.open()?;
            if !plan_path.exists() {
                document::write(&plan_path, &self.plan(site.ranks(), seconds)?)?;
            }
            let plan: Plan = document::read(&plan_path)?;
            let mut settings = Vec::new();
            if let Some(rules) = rules {
                let file = self.run.file(rules);
                settings.push(("coll_tuned_dynamic_rules_filename", file.into_os_string()));
            }
            let deadline = Duration::from_secs_f64(seconds * 2.0 * verify::PATIENCE);
            verify::measure(site, &plan, &plan_path, &record_path, deadline, &settings)
                .with_context(|| format!("confirmation {number}, {which}"))?;
            document::write_text(&done, "")?;
        }
        Ok(record::read::<CollectiveCall>(&record_path)?.rows)
    }

    /// The default at the candidates' points, as often as fits.
    fn plan(&self, ranks: u32, seconds: f64) -> Result<Plan> {
        let cells: Vec<Cell> = self
            .candidates
            .iter()
            .map(|Choice { point, .. }| Cell {
                collective: point.collective,
                method: Method::Default,
                procs: point.procs,
                bytes: point.bytes,
            })
            .collect();
        let cost = |cell: &Cell| {
            let at = |choice: &&Choice| {
                (choice.point.collective, choice.point.procs, choice.point.bytes)
                    == (cell.collective, cell.procs, cell.bytes)
            };
            let choice = self.candidates.iter().find(at)?;
            Some((choice.seconds, choice.default_seconds))
        };
        let seed = self.tune.seed.wrapping_add(1);
        Ok(plan::repeat(cells, ranks, seconds, seed, &cost).plan)
    }
}

impl Pair {
    fn times(&self, point: Point) -> Option<(f64, f64)> {
        let default = self.default.get(point, &Method::Default)?.median()?;
        let tuned = self.tuned.get(point, &Method::Default)?.median()?;
        Some((default, tuned))
    }

    fn speed_up(&self, point: Point) -> Option<f64> {
        self.times(point).map(|(default, tuned)| default / tuned)
    }
}

/// Books what the loaded file gained, and whether it was obeyed.
fn tell(summary: &mut Summary, pair: &Pair, kept: &[Choice]) {
    for choice in kept {
        let Point { collective, procs, bytes } = choice.point;
        let Some((default_seconds, tuned_seconds)) = pair.times(choice.point) else {
            summary.warnings.push(format!(
                "{collective} of {bytes} bytes on {procs}: the budget ended before it was confirmed"
            ));
            continue;
        };
        summary.gains.push(Gain {
            collective,
            procs,
            bytes,
            method: choice.method.clone(),
            default_seconds,
            tuned_seconds,
            speed_up: default_seconds / tuned_seconds,
        });
        let here = |row: &&CollectiveCall| {
            (row.collective, row.procs, row.bytes) == (collective, procs, bytes)
        };
        for row in pair.tuned_rows.iter().filter(here).filter(|row| !row.ran.is_empty()) {
            summary.calls_observed += 1;
            summary.calls_as_told +=
                u64::from(openmpi::ran_as_asked(collective, &choice.method, &row.ran));
        }
    }
    let gains = summary.gains.iter().map(|gain| gain.speed_up);
    let left_alone = summary.points as usize - summary.gains.len();
    let all: Vec<f64> = gains.chain(std::iter::repeat_n(1.0, left_alone)).collect();
    summary.mean_speed_up = geometric_mean(&all).unwrap_or(1.0);
    if summary.calls_as_told < summary.calls_observed {
        summary.warnings.push(format!(
            "with the file loaded {} of {} calls ran another algorithm than the file names",
            summary.calls_observed - summary.calls_as_told,
            summary.calls_observed
        ));
    }
}

/// The options that differ, by name.
fn changed(begun: &Options, now: &Options) -> Result<String> {
    let (begun, now) = (serde_json::to_value(begun)?, serde_json::to_value(now)?);
    let names = begun.as_object().into_iter().flatten();
    let differing = names.filter(|(name, value)| now.get(name) != Some(value));
    let told = differing.map(|(name, value)| format!("{name} was {value}"));
    Ok(told.collect::<Vec<_>>().join(", "))
}

fn model_options() -> ModelOptions {
    ModelOptions {
        calibration: None,
        model: None,
        forms: models::Forms::Corrected,
        parameters: ParameterSet::Measured,
    }
}

fn summary_text(summary: &Summary, run: &RunDirectory) -> Result<String> {
    let file = run.file(&summary.file).display().to_string();
    let mut text = format!("\nTuned: {}\n\n", summary.platform.summary());
    if summary.gains.is_empty() {
        text += "Nothing beats the library's default here; the file leaves every call to it.\n";
    } else {
        let mut gains: Vec<&Gain> = summary.gains.iter().collect();
        gains.sort_by(|a, b| b.speed_up.total_cmp(&a.speed_up));
        let rows = gains.iter().take(12).map(|gain| {
            vec![
                gain.collective.to_string(),
                gain.procs.to_string(),
                quantity::format_bytes(gain.bytes),
                gain.method.short(),
                quantity::format_seconds(gain.default_seconds),
                quantity::format_seconds(gain.tuned_seconds),
                format!("{:.2}", gain.speed_up),
            ]
        });
        let heading =
            ["collective", "procs", "size", "tuned method", "default", "tuned", "speed-up"];
        text += "Greatest gains, measured with the file loaded:\n\n";
        text += &output::aligned(&heading, rows);
        text += &format!(
            "\nSpeed-up over all {} points (geometric mean): {:.2}; {} points replaced, {} left to the default.\n",
            summary.points,
            summary.mean_speed_up,
            summary.gains.len(),
            summary.points as usize - summary.gains.len(),
        );
        text += &match summary.calls_observed {
            0 => "Which algorithm ran could not be observed here.\n".into(),
            observed => format!(
                "The file takes effect: {} of {observed} calls observed ran what it names.\n",
                summary.calls_as_told
            ),
        };
    }
    if let Some(regret) = summary.regret {
        text += &format!(
            "What was not measured is expected to cost {:.1} % on average, {:.0} % at most.\n",
            regret.mean * 100.0,
            regret.greatest * 100.0
        );
    }
    for out in &summary.taken_out {
        let TakenOut { collective, procs, bytes, method, speed_up } = out;
        let size = quantity::format_bytes(*bytes);
        text += &format!(
            "Taken out: {} for {collective} of {size} on {procs}: the loaded file made it {speed_up:.2} times as fast.\n",
            method.short()
        );
    }
    text += &format!("\nTo load: {file}\n{}\n", export::how_to_load_openmpi(&file)?);
    Ok(text)
}

/// A site that is opened when the first job needs it: a run whose records are whole needs none.
struct LazySite<'a> {
    options: &'a SiteOptions,
    run: &'a RunDirectory,
    site: Option<Site>,
}

impl LazySite<'_> {
    fn open(&mut self) -> Result<&Site> {
        if self.site.is_none() {
            self.site = Some(Site::open(self.options, self.run)?);
        }
        self.site.as_ref().context("the site was opened")
    }
}
