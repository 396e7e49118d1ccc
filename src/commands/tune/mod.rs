//! `colibri tune`: calibrates, measures, chooses, judges, confirms what is chosen by jobs that load it, and then
//! writes the files.
//!
//! [`Tune::run`] does so in this order; each step gives what the next one takes:
//!
//! | step | gives |
//! |---|---|
//! | `Tune::begin` | `RunDirectory`, `FirstJob` |
//! | `Tune::calibrate` | `Calibration`, as a `CalibrationSource` |
//! | `Tune::measure` (batches: `tuning::measure`) | `RecordedPlan`s, together `Measurements` |
//! | `focused::known` | `TuningState`, from whose beliefs what is `Chosen` comes |
//! | `judging::judge` | penalties and figures of the models |
//! | `confirming::confirm` | a `LoadCandidate` for each way of loading, and its jobs |
//! | `Confirmation::write` | of each `LoadCandidate` a `ConfirmedWay`, the files to load, the `TuningSummary` |

mod application;
mod brief;
mod budget;
mod measure;
mod replay;

use std::{
    ffi::OsString,
    fs,
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::Result;
use clap::Args;
use records::{
    document, first_job::FirstJob, penalty::Penalties, quantity, summary::TuningSummary,
};
use tuning::JobCosts;

use self::replay::ReplayOptions;
use crate::commands::shared::{
    gains,
    options::{
        GridOptions, List, ListedSegments, MethodOptions, ParameterSet, RunOptions, SiteOptions,
        measured_procs, roots,
    },
    output, penalties,
};
use site::{
    allocation::within_allocation,
    batch_script::BatchScript,
    lazy::LazySite,
    programs,
    ranks::{self, PRELOAD_LIBRARY},
    run_directory::RunDirectory,
    usage, where_ranks_run,
};
use stages::{
    bench::ClusterBench,
    confirming::{self, SettledConfirmation},
    deciding::judged_models,
    focused,
    judging::{self, CandidateMethods, JudgedModels},
    measurements::{self, Measurements},
    modulefiles,
    roots::WantedRoot,
    source::CalibrationSource,
    traced::{self, Traced},
};

/// Calibrates, decides, measures, exports and confirms; ends with the files to load and their
/// speed-ups
#[derive(Debug, Args)]
#[command(mut_arg("procs", measured_procs))]
pub struct Tune {
    #[command(flatten)]
    pub run: RunOptions,

    #[command(flatten)]
    site: SiteOptions,

    #[command(flatten)]
    grid: GridOptions<ListedSegments>,

    #[command(flatten)]
    methods: MethodOptions,

    /// Also allow algorithms that are correct only for commutative operations: safe where every reduction
    /// of the program is commutative (MPI_SUM, MPI_MAX, ...)
    #[arg(long, hide_short_help = true)]
    commutative: bool,

    /// Tune for an application, by the trace of its calls that the preload library writes to the file
    /// COLIBRI_TRACE. Calls count by the time that the application spends in them
    #[arg(long, value_name = "RUN|FILE", conflicts_with_all = ["collective", "procs", "layouts", "sizes"])]
    trace: Option<PathBuf>,

    /// Also write into the files to load what was not confirmed to be faster, and mark it there
    #[arg(long, hide_short_help = true)]
    unconfirmed: bool,

    /// Time limit of the whole run: 90s, 10m, 1h30m; from 1ms to 10000h
    #[arg(long, value_name = "TIME", value_parser = quantity::parse_duration, default_value = USUAL_BUDGET)]
    budget: Duration,

    /// Measure every method at every point, without a time limit
    #[arg(long, conflicts_with = "budget", hide_short_help = true)]
    exhaustive: bool,

    /// Roots of the collectives that have one, with commas: ranks, last, random. They are measured in
    /// turns with root 0; one method is chosen for all of them
    #[arg(long, value_name = "LIST", value_parser = roots, default_value = "0", hide_short_help = true)]
    roots: List<WantedRoot>,

    /// Measure nothing; write DIR.sbatch, a batch script for Slurm that runs this command and resumes
    /// when it is requeued. May be given options of sbatch: --sbatch='-N 4 -n 64'
    #[arg(long, value_name = "OPTIONS", num_args = 0..=1, require_equals = true, default_missing_value = "", hide_short_help = true)]
    sbatch: Option<String>,

    /// Seed of the random order of measurements
    #[arg(long, default_value_t = 1, hide_short_help = true)]
    seed: u64,

    /// Print all that was found, in place of five lines; it is in summary.txt as well
    #[arg(long)]
    details: bool,

    #[command(flatten)]
    replay: ReplayOptions,

    /// An application to make faster, alone, without mpirun: it runs once to see what it calls, and after the
    /// tuning in turns without and with the result. Its own runs are not in the budget
    #[arg(last = true, value_name = "APPLICATION", conflicts_with_all = ["trace", "collective", "procs", "layouts", "sizes"])]
    application: Vec<OsString>,
}

/// Shares of the budget. The rest goes to starting jobs and to what the models underestimate.
const CALIBRATION_SHARE: f64 = 0.12;
/// Measuring takes this at most, so that confirming has its own.
const MEASURING_SHARE: f64 = 0.3;
/// What measuring and confirming each have of their share at least, whatever was spent before.
const LEAST_OF_SHARE: f64 = 0.5;

/// What is spent where nothing else is said.
const USUAL_BUDGET: &str = "5m";

/// How much longer than its budget a run may take before that is said: a tenth, and a job's start and end.
const TOLERATED_OVERRUN: f64 = 1.1;
const TOLERATED_OVERRUN_SECONDS: f64 = 5.0;

/// What is said of a run that took much longer than its budget.
fn over_budget(took: Duration, budget: Duration) -> Option<String> {
    let [took, budget] = [took, budget].map(|time| time.as_secs_f64());
    (took > TOLERATED_OVERRUN * budget + TOLERATED_OVERRUN_SECONDS).then(|| {
        format!(
            "this took {took:.0} s, more than the budget of {budget:.0} s; fewer --procs, --sizes or \
             collectives take less"
        )
    })
}

impl Tune {
    /// Runs the subcommand.
    pub fn run(mut self) -> Result<()> {
        if let Some(run) = &self.replay.replay {
            return self.replay.run(run);
        }
        self.replay.refuse_without_record()?;
        // What the last stage needs is missed before the first.
        programs::find(PRELOAD_LIBRARY)?;
        application::check(&self.application)?;
        if let Some(options) = &self.sbatch {
            return self.write_batch_script(options);
        }
        if !self.exhaustive {
            self.budget = within_allocation(self.budget)?;
        }
        let begun = Instant::now();
        // Before the site, so that the lock is held until a virtual cluster is taken down.
        let mut run = RunDirectory::at(&self.run.directory)?;
        let options = self.site.clone();
        let mut site = LazySite::new(&options);
        // The application's own time is not the tuning's.
        let begun = begun + self.begin(&mut run, &mut site)?;
        self.leave_time_for_turns(&run)?;

        let calibration = self.calibrate(&run, &mut site)?;
        let source = CalibrationSource::of_run(
            calibration,
            models::Forms::Corrected,
            ParameterSet::Measured,
        )?;
        let roots = self.roots(&mut site)?;
        let batches = self.measure(&run, &mut site, &source, &roots, begun)?;
        // What is exhaustive was not measured in batches.
        let costs =
            focused::costs(&source, if self.exhaustive { &[] } else { batches.as_slice() })?;
        let (measurements, rows) = Measurements::of_batches(batches)?;
        let traced = self.traced_as_planned(&run)?;
        // An application's sizes are its own.
        let sizes: &[u64] = if traced.is_some() { &[] } else { &self.grid.sizes.0 };
        let weights = traced.as_ref().map(Traced::weights).unwrap_or_default();
        let (known, interpolated) =
            focused::known(rows, &measurements.cells, sizes, &source, weights)?;
        let candidates = CandidateMethods::Loadable;
        let models = JudgedModels { source: Some(&source), models: &judged_models(), candidates };
        let choices = known.beliefs.choices();
        let judged = judging::judge(&run, &models, measurements, &[], Some(choices))?;
        if self.details {
            for warning in &judged.penalties.warnings {
                say!("note: {warning}");
            }
        }
        let trace = self.trace.clone().or_else(|| self.runs_application().then(|| run.usage()));
        let traced = trace.as_deref().zip(traced.as_ref());
        let settled = self.settled(&run, costs, begun)?;
        let mut bench = ClusterBench {
            generation: settled.generation,
            ..ClusterBench::new(&run, &mut site, &source, &roots)
        };
        let interpolated = interpolated.as_ref().map(|state| &state.beliefs);
        let confirmed =
            confirming::confirm(&mut bench, &known.beliefs, interpolated, &settled, self.seed)?;
        let budget = self.budget().map(|budget| budget.as_secs_f64());
        let mut summary =
            confirmed.write(&bench, &judged, &known, traced, budget, self.unconfirmed)?;
        gains::draw_gains(&run, &summary)?;
        let took = begun.elapsed();
        self.run_application(&run, &mut site, &mut summary)?;
        drop(site);

        self.tell(&run, &summary, &judged.penalties)?;
        if let Some(note) = self.budget().and_then(|budget| over_budget(took, budget)) {
            say!("note: {note}");
        }
        Ok(())
    }

    /// Says what came of it, and writes it in full beside the results.
    fn tell(&self, run: &RunDirectory, summary: &TuningSummary, judged: &Penalties) -> Result<()> {
        let mut text = gains::text(summary, run)?;
        let modules = modulefiles::write_into_run(run, summary)?;
        if !modules.is_empty() {
            text += &format!("\nAs a module, one of:\n  {}\n", modules.join("\n  "));
        }
        let whole = format!("{text}\n{}", penalties::summary(judged));
        let details = run.file("summary.txt");
        document::write_text(&details, &whole)?;
        match self.details {
            true => output::print(&text)?,
            false => {
                output::print(&brief::text(summary, run, &self.application)?)?;
                let directory = run.path().display();
                say!(
                    "details: {} (or --details), and `colibri report {directory}`",
                    details.display()
                );
            }
        }
        Ok(())
    }

    fn write_batch_script(&self, options: &str) -> Result<()> {
        if self.exhaustive {
            usage!("--sbatch needs a --budget, from which the job's time limit follows");
        }
        let script = BatchScript {
            directory: &self.run.directory,
            given: &self.run.given,
            options,
            budget: self.budget,
            runs_application: self.runs_application(),
        };
        let path = script.write()?;
        let more = if options.is_empty() { "-N NODES -n RANKS " } else { "" };
        output::print(&format!("Submit it by: sbatch {more}{}\n", path.display()))
    }

    /// Makes a run's directory, but nothing before all that can be known of the run allows it to
    /// begin; or goes on with one. Gives how long the application ran, where it was traced.
    fn begin(&self, run: &mut RunDirectory, site: &mut LazySite) -> Result<Duration> {
        self.begin_records(run)?;
        if self.run.resume {
            run.make()?;
            self.grow(run)?;
            run.keep(&self.run, &[])?;
            return ranks::clear_up(run).map(|()| Duration::ZERO);
        }
        self.refuse_hopeless()?;
        let usage = self.trace.as_deref().map(traced::read).transpose()?;
        let found = site.find()?;
        if found.ranks() < 2 {
            usage!(
                "tuning needs at least 2 ranks; give --ranks, or --testbed 8 for a virtual cluster"
            );
        }
        if !self.runs_application() {
            self.check_roots(&self.points(usage.as_ref(), found)?.collectives)?;
        }
        self.roots(site)?;
        run.make()?;
        self.begin_records(run)?;
        let open = site.open(run)?;
        if !self.runs_application() {
            // Again, as the nodes of the ranks are known only now.
            self.points(usage.as_ref(), open)?;
        }
        let first_job: FirstJob = document::read(&run.first_job())?;
        if let Err(refused) = where_ranks_run::check_loading(&first_job) {
            // Else the same directory, shared meanwhile, would be refused again.
            fs::remove_file(run.first_job())?;
            return Err(refused);
        }
        let inside = [run.inside_observations(), run.inside_groups()];
        let records = [run.observations(), run.groups(), run.measurements()];
        let leftovers = [&records[..], &inside, &[run.usage()]].concat();
        run.keep(&self.run, &leftovers)?;
        let traced = Instant::now();
        let usage = match self.runs_application() {
            true => Some(self.trace_application(run, site, &first_job.platform)?),
            false => usage,
        };
        let traced = traced.elapsed();
        if let Some(usage) = usage {
            // The run's own: the application may write another one meanwhile.
            document::write(&run.usage(), &usage)?;
        }
        Ok(traced)
    }

    /// What other runs have recorded is not mixed with what this one does.
    fn begin_records(&self, run: &RunDirectory) -> Result<()> {
        run.begin(&run.observations(), self.run.resume)?;
        run.begin(&run.measurements(), self.run.resume)
    }

    /// What there is to spend; nothing where everything is measured.
    fn budget(&self) -> Option<Duration> {
        (!self.exhaustive).then_some(self.budget)
    }

    /// Settles what confirming may take, unless that was settled before.
    fn settled(
        &self,
        run: &RunDirectory,
        costs: JobCosts,
        begun: Instant,
    ) -> Result<SettledConfirmation> {
        let path = SettledConfirmation::path(run);
        if path.exists() {
            return Ok(document::read(&path)?);
        }
        let share = self.share(confirming::BUDGET_SHARE);
        let (generation, seconds) = match (self.confirming_again(run)?, self.left(begun)) {
            (Some(again), _) => again,
            (None, Some(left)) => (1, left.max(LEAST_OF_SHARE * share)),
            (None, None) => (1, share),
        };
        let (commutative, batches) = (self.commutative, measurements::batches_planned(run));
        let settled = SettledConfirmation { seconds, costs, commutative, generation, batches };
        document::write(&path, &settled)?;
        Ok(settled)
    }

    /// What is left of the budget, in seconds; nothing where that is not known: a run that goes on does not know
    /// how long it went before.
    fn left(&self, begun: Instant) -> Option<f64> {
        let is_known = !self.run.resume && !self.exhaustive;
        is_known.then(|| self.budget.saturating_sub(begun.elapsed()).as_secs_f64())
    }

    fn share(&self, share: f64) -> f64 {
        self.budget.as_secs_f64() * share
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_took_much_longer_than_its_budget_says_so() {
        let [took, budget] = [96.8, 53.0].map(Duration::from_secs_f64);
        let told = over_budget(took, budget).unwrap();
        assert!(told.starts_with("this took 97 s, more than the budget of 53 s"), "{told}");
        assert_eq!(over_budget(Duration::from_secs(62), budget), None);
    }
}
