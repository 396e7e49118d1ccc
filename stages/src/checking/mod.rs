//! Checks long after whether what a tuning chose still holds: times it again where it matters, in pairs of jobs with the
//! default, and compares what the first job reports with what it reported then.

mod changes;
mod verdict;
mod wanted;

use std::{
    collections::BTreeSet,
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use choosing::{
    harm,
    recheck::{self, Doubt, Judged},
};
use models::Forms;
use records::{
    FileError, Root,
    check::{Check, CheckedPoint, PointVerdict},
    choices::{Choices, ConfirmedWay},
    confirmed::MIN_PAIRS,
    document,
    first_job::FirstJob,
    reading,
    summary::{LoadWay, Loading, TuningSummary},
};
use tuning::check::{CheckedPairs, CheckingTask};

use self::wanted::WantedPoint;
use crate::{
    bench::{self, ClusterBench},
    chosen, disturbance, focused,
    measurements::RecordedPlan,
    roots::{self, WantedRoot},
    source::{CalibrationSource, ParameterSet},
};
use site::{
    begun::GivenOptions, lazy::LazySite, run_directory::RunDirectory, usage, where_ranks_run,
};

pub use changes::changes;

/// The file of a check's directory that holds what it found.
const FILE: &str = "check.json";

/// What a check is asked for.
pub struct CheckOptions {
    /// All of it, the start of a virtual cluster included.
    pub budget: Duration,
    /// When the command began.
    pub begun: Instant,
    /// UTC, such as `2026-11-27T01:15:00`.
    pub date: String,
}

/// What a run has tuned, and of that what is checked.
pub struct TunedRun<'a> {
    run: &'a RunDirectory,
    given: GivenOptions,
    summary: TuningSummary,
    choices: Choices,
    way: LoadWay,
}

impl<'a> TunedRun<'a> {
    /// Reads it, to load it in this way; nothing: as the tuning advises. Nothing is written.
    ///
    /// # Errors
    /// It is no whole tuning, or loads nothing in this way.
    pub fn read(run: &'a RunDirectory, way: Option<LoadWay>) -> Result<Self> {
        let directory = run.path().display();
        let choices = chosen::of_run(run)?;
        if !run.summary().exists() {
            usage!(
                "{directory}: holds no summary.json; 'colibri check' wants the directory of a run of \
                 'colibri tune'"
            );
        }
        let summary: TuningSummary = document::read(&run.summary())?;
        let loading = match way {
            None => summary.advised(),
            Some(way) => match summary.loadings().find(|loading| loading.way == way) {
                Some(loading) => loading,
                None => {
                    let files: Vec<&str> =
                        summary.loadings().map(|loading| loading.file.as_str()).collect();
                    usage!(
                        "{directory}: was not tuned for that way of loading, only for: {}",
                        files.join(", ")
                    )
                }
            },
        };
        if loading.counts.replaced() == 0 {
            usage!(
                "{directory}: {} leaves every call to the default, so there is nothing to check; tune \
                 again",
                loading.file
            );
        }
        let path = run.file(&loading.file);
        if !path.exists() {
            return Err(
                FileError::new(&path, "is not there; 'colibri export' writes it anew").into()
            );
        }
        let given = match run.options().exists() {
            true => document::read(&run.options())?,
            false => GivenOptions::default(),
        };
        let way = loading.way;
        Ok(TunedRun { run, given, summary, choices, way })
    }

    /// The options that the run was begun with.
    pub fn given(&self) -> &GivenOptions {
        &self.given
    }

    fn loading(&self) -> Result<&Loading> {
        let mut all = self.summary.loadings();
        all.find(|loading| loading.way == self.way).context("the way of loading was found")
    }

    fn confirmed_way(&self) -> Result<&ConfirmedWay> {
        let confirmed = self.choices.confirmed_way(self.way);
        confirmed.with_context(|| {
            format!("{}: holds nothing of this way of loading", self.run.choices().display())
        })
    }

    /// What its first job reported.
    fn first_job(&self) -> Result<FirstJob> {
        if self.run.first_job().exists() {
            return Ok(document::read(&self.run.first_job())?);
        }
        let platform = self.summary.platform.clone();
        Ok(FirstJob {
            platform,
            allowed_processors: Vec::new(),
            nodes: Vec::new(),
            start_spread: None,
        })
    }

    /// What its first jobs that confirmed took beside their calls tells what those of now will.
    fn costs(&self, source: &CalibrationSource) -> Result<tuning::JobCosts> {
        let mut made = Vec::new();
        for way in [None, Some(self.way)] {
            let files = bench::confirming_files(self.run, 1, 1, 1, way);
            if files.plan.exists() && files.record.exists() {
                made.push(RecordedPlan::read(&files)?);
            }
        }
        focused::costs(source, &made)
    }

    /// The roots that take turns, as when it was tuned.
    fn roots(&self, ranks: u32) -> Result<Vec<Root>> {
        let mut all = vec![Root::default()];
        if let Some(text) = self.given.value("roots") {
            let wanted: Result<Vec<WantedRoot>, String> =
                text.split(',').map(|root| root.trim().parse()).collect();
            let wanted = wanted.map_err(|problem| {
                FileError::new(&self.run.options(), problem).in_field("options.roots")
            })?;
            all.extend(roots::beside_zero(&wanted, ranks, SEED)?);
        }
        Ok(all)
    }
}

/// Of the order of the measurements.
const SEED: u64 = 1;

/// Times what was tuned again and judges it; everything is recorded in the directory `place`.
///
/// # Errors
/// The ranks can't be started, or a job fails; what was recorded is kept.
pub fn check(
    tuned: &TunedRun<'_>,
    place: &RunDirectory,
    site: &mut LazySite,
    wanted: &CheckOptions,
) -> Result<Check> {
    let ranks = site.open(place)?.ranks();
    let now: FirstJob = document::read(&place.first_job())?;
    where_ranks_run::check_loading(&now)?;
    let loading = tuned.loading()?;
    let confirmed = tuned.confirmed_way()?;
    let all = wanted::points(&confirmed.choices, &loading.gains);
    let (here, elsewhere): (Vec<WantedPoint>, Vec<WantedPoint>) =
        all.into_iter().partition(|one| wanted::is_held(&now, one.chosen.point.layout));
    let calibration = document::read(&tuned.run.calibration())?;
    let source = CalibrationSource::of_run(calibration, Forms::Corrected, ParameterSet::Measured)?;
    let points: Vec<_> = here.iter().map(|one| one.chosen.clone()).collect();
    let task = CheckingTask {
        way: tuned.way,
        file: &loading.file,
        choices: &confirmed.choices,
        points: &points,
        ranks,
        seconds: wanted.budget.saturating_sub(wanted.begun.elapsed()).as_secs_f64(),
        costs: tuned.costs(&source)?,
        seed: SEED,
    };
    let roots = tuned.roots(ranks)?;
    let mut bench = ClusterBench {
        loads_files_of: Some(tuned.run),
        ..ClusterBench::new(place, site, &source, &roots)
    };
    let pairs = tuning::check::check(&mut bench, &task)?;
    let usage = tuning::Bench::usage(&mut bench)?;
    let (calls_observed, calls_as_selected) = pairs.ran_as_selected(usage.as_ref());

    let timed = pairs.timed();
    let judged = recheck::judge(&timed);
    let is_timed: BTreeSet<_> = timed.iter().map(|one| one.point).collect();
    let is_left_out = |one: &&WantedPoint| one.is_loaded() && !is_timed.contains(&one.chosen.point);
    let left_out = here.iter().filter(is_left_out).count() as u32;
    let is_missing = elsewhere.iter().any(WantedPoint::is_loaded);
    let mut checked: Vec<CheckedPoint> =
        elsewhere.iter().filter(|one| one.is_loaded()).map(|one| not_held(one, &now)).collect();
    for ((one, judged), timed) in timed.iter().zip(judged).zip(pairs.points()) {
        let wanted = here.iter().find(|wanted| wanted.chosen.point == one.point);
        let wanted = wanted.with_context(|| format!("{:?} was not asked for", timed.point))?;
        checked.push(of_point(wanted, &judged, one.turns.len() as u32, &pairs));
    }
    checked.sort_by_key(|one| one.point);
    let mut found_changes = changes(&tuned.first_job()?, &now);
    found_changes.extend(changes::of_times(&timed, &confirmed.choices));
    let mut check = Check {
        date: wanted.date.clone(),
        verdict: records::check::CheckVerdict::CannotTell,
        reason: String::new(),
        tune_again: None,
        way: tuned.way,
        file: loading.file.clone(),
        platform: now.platform.clone(),
        changes: found_changes,
        points: checked,
        left_out,
        pairs: pairs.count() as u32,
        tolerance: harm::TOLERANCE,
        level: harm::LEVEL,
        calls_observed,
        calls_as_selected,
        disturbance: disturbance::of_run(place)?,
    };
    verdict::settle(&mut check, is_missing);
    document::write(&place.file(FILE), &check)?;
    Ok(check)
}

/// A point that the ranks at hand don't hold.
fn not_held(wanted: &WantedPoint, now: &FirstJob) -> CheckedPoint {
    let (ranks, nodes) = (now.platform.hosts.len(), now.nodes.len());
    let because = format!(
        "the ranks at hand, {} on {}, don't hold it",
        records::counted(ranks, "rank"),
        records::counted(nodes, "node")
    );
    CheckedPoint { verdict: PointVerdict::CannotTell, because: Some(because), ..unjudged(wanted) }
}

/// A point with what is known of it from the tuning alone.
fn unjudged(WantedPoint { chosen, timed_for, before }: &WantedPoint) -> CheckedPoint {
    CheckedPoint {
        point: chosen.point,
        method: chosen.method.clone(),
        timed_for: *timed_for,
        verdict: PointVerdict::CannotTell,
        because: None,
        speed_up_before: *before,
        speed_up: None,
        interval: None,
        p_value: None,
        pairs: 0,
        default_seconds_before: chosen.default_seconds,
        default_seconds: None,
        loaded_seconds: None,
    }
}

fn of_point(
    wanted: &WantedPoint,
    judged: &Judged,
    turns: u32,
    pairs: &CheckedPairs,
) -> CheckedPoint {
    let times = pairs.times(wanted.chosen.point);
    let because = judged.doubt.map(|doubt| match doubt {
        Doubt::TooFewPairs => format!("fewer than {MIN_PAIRS} pairs of jobs within the budget"),
        Doubt::Disturbed => "pairs of jobs disturbed by other processes".into(),
        Doubt::Noisy if wanted.is_loaded() => "the interval holds a gain as well as none".into(),
        Doubt::Noisy => "the interval holds a loss as well as none".into(),
    });
    CheckedPoint {
        verdict: judged.verdict,
        because,
        speed_up: judged.speed_up,
        interval: judged.interval,
        p_value: judged.p_value,
        pairs: turns,
        default_seconds: times.map(|(default, _)| default),
        loaded_seconds: times.map(|(_, loaded)| loaded),
        ..unjudged(wanted)
    }
}

/// The directory of a check that begins at this date; one that is there is not written to.
pub fn directory(run: &RunDirectory, date: &str) -> PathBuf {
    let checks = run.file(CHECKS);
    let again = (2_u32..).map(|number| checks.join(format!("{date}-{number}")));
    let mut all = std::iter::once(checks.join(date)).chain(again);
    all.find(|path| !path.exists()).unwrap_or(checks)
}

/// What of a run's directory holds its checks.
const CHECKS: &str = "checks";

/// All checks of a run that came to their end, the oldest first.
///
/// # Errors
/// One cannot be read.
pub fn history(run: &RunDirectory) -> Result<Vec<Check>> {
    let folder = run.file(CHECKS);
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let checks = reading::entries(&folder)?.into_iter().map(|check| check.join(FILE));
    let ended = checks.filter(|path| path.exists());
    Ok(ended.map(|path| document::read::<Check>(&path)).collect::<Result<_, _>>()?)
}
