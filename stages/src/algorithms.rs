//! Constants of algorithms: their collectives timed at a few points, and what the times say.

use std::time::Duration;

use anyhow::{Context, Result};
use choosing::samples::Samples;
use models::{
    Forms, Predictor,
    fit::{self, MethodTime},
};
use records::{
    Collective, Method, Point,
    calibration::{Algorithms, Parameters},
    document,
    observation::{CollectiveCall, PointToPoint},
    plan::{Cell, Plan},
    quantity, record,
};
use tuning::plan::{self, RepeatedPlan};

use crate::{
    compared,
    deciding::{judged_models, sizes},
    layouts::powers_of_two_and,
    measurements, measuring, natives,
};
use site::{ranks::Site, run_directory::RunDirectory, usage};

/// Of what is left of a calibration's budget.
pub const SHARE: f64 = 0.4;

/// Message sizes at which algorithms are timed; the largest are left out where time is short.
const SIZES: [u64; 5] = [16, 1 << 10, 8 << 10, 64 << 10, 512 << 10];
const FEWEST_SIZES: usize = 3;
/// Numbers of processes: all, and the power of two below.
const NUMBERS: usize = 2;
const SEGMENTS: [u64; 3] = [0, 1 << 10, 8 << 10];
/// Of the time, for starting and ending the job.
const START: Duration = Duration::from_millis(1500);

/// Whether there is anything to time; of all collectives those without algorithms are left out.
///
/// # Errors
/// One process alone, or a collective without algorithms that was named.
pub fn check(site: &Site, collectives: &[Collective]) -> Result<()> {
    if site.ranks() < 2 {
        usage!("--algorithms-of times collectives: start at least 2 ranks, by --ranks");
    }
    for &collective in collectives.iter().filter(|_| *collectives != Collective::ALL) {
        let point = Point { collective, layout: site.of_first(site.ranks()), bytes: 1 << 20 };
        if methods(site, point).is_empty() {
            usage!("there are no algorithms of {collective} that could be timed");
        }
    }
    Ok(())
}

/// Times the algorithms of the collectives, or goes on doing so.
///
/// # Errors
/// The job fails; its record is kept. A plan that is there is for other collectives.
pub fn time_algorithms(
    site: &Site,
    run: &RunDirectory,
    collectives: &[Collective],
    seed: u64,
    within: Duration,
) -> Result<()> {
    let path = run.algorithm_plan();
    let plan = match path.exists() {
        true => document::read(&path)?,
        false => {
            let seconds = within.saturating_sub(START).as_secs_f64();
            let plan = planned(site, run, collectives, seed, seconds)?;
            document::write(&path, &plan)?;
            plan
        }
    };
    let planned = |of: &Collective| plan.cells.iter().any(|cell| cell.point.collective == *of);
    let missing = collectives.iter().find(|collective| !planned(collective));
    if let Some(missing) = missing.filter(|_| *collectives != Collective::ALL) {
        usage!(
            "{}: is not for {missing}; name another directory, or the collectives it was made for",
            path.display()
        );
    }
    let record = run.algorithm_times();
    measuring::run_plan(site, &plan, &path, &record, within, &[])
}

/// The library's own algorithms where they can be forced within a job, and Colibri's.
fn methods(site: &Site, point: Point) -> Vec<Method> {
    let natives = natives::of_site(site).filter(|natives| natives.library.within_job().is_some());
    let natives = natives.map(|natives| natives.at(point, &SEGMENTS)).unwrap_or_default();
    let own = compared::own_methods(point, &SEGMENTS).into_iter();
    // Compositions by node, and other fan-outs, have no constants of their own.
    let own = own.filter(|method| matches!(method, Method::Own(own) if own.is_plain()));
    natives.into_iter().chain(own).collect()
}

/// Every method at a few points, as large as there is time for, as often as fits.
fn planned(
    site: &Site,
    run: &RunDirectory,
    collectives: &[Collective],
    seed: u64,
    seconds: f64,
) -> Result<Plan> {
    let rows = record::read::<PointToPoint>(&run.observations())?.rows;
    let parameters = fit::fit_values(&rows)?;
    let models = judged_models().into_iter();
    let predictors = models
        .map(|model| Predictor::new(model, Forms::Corrected, &parameters))
        .collect::<Result<Vec<_>, _>>()?;
    let expected = |cell: &Cell| measuring::expectation(&predictors, cell);
    let costs = measuring::expected_costs(&predictors);
    let mut numbers = powers_of_two_and(site.ranks());
    numbers.drain(..numbers.len().saturating_sub(NUMBERS));
    let mut largest = SIZES.len();
    loop {
        let cells = cells(site, collectives, &numbers, &SIZES[..largest]);
        let times = plan::expected_seconds(&cells, &expected).into_iter().map(Some).collect();
        let RepeatedPlan { mut plans, expected_seconds } =
            plan::repeat(&cells, &[times], site.ranks(), seconds, seed, &costs);
        let plan = plans.remove(0);
        let whole = expected_seconds <= seconds;
        if whole || (largest == FEWEST_SIZES && numbers.len() == 1) {
            let most = quantity::format_bytes(SIZES[largest - 1]);
            say!(
                "algorithms: {} of {} (a method at a point) up to {most}, about {expected_seconds:.0} s",
                records::counted(plan.visits.len(), "measurement"),
                records::counted(plan.cells.len(), "cell"),
            );
            return Ok(plan);
        }
        if largest > FEWEST_SIZES {
            largest -= 1;
        } else {
            numbers.remove(0);
        }
    }
}

fn cells(site: &Site, collectives: &[Collective], numbers: &[u32], all: &[u64]) -> Vec<Cell> {
    let mut cells = Vec::new();
    for &collective in collectives {
        for &procs in numbers {
            for &bytes in sizes(collective, all) {
                let point = Point { collective, layout: site.of_first(procs), bytes };
                let cell = |method| Cell { point, method };
                cells.extend(methods(site, point).into_iter().map(cell));
            }
        }
    }
    cells
}

/// The constants of what was timed for that, `from_record` of what verify or tune has timed too,
/// none where nothing was timed; and what a reader must know.
///
/// # Errors
/// A record cannot be read; `from_record` and nothing was timed of what is asked for.
pub fn fit(
    run: &RunDirectory,
    asked: Option<&[Collective]>,
    from_record: bool,
    measured: &Parameters,
) -> Result<(Option<Algorithms>, Vec<String>)> {
    let (records, rows) = timed(run, asked.is_some() && from_record)?;
    let samples = Samples::gather(&rows, libraries::ran_as_asked);
    let of = |collective| asked.is_none_or(|asked| asked.contains(&collective));
    let mut timed = Vec::new();
    for point in samples.points().filter(|point| of(point.collective)) {
        for (method, times) in samples.at(point) {
            let Some(seconds) = times.median() else { continue };
            timed.push(MethodTime { point, method: method.clone(), seconds });
        }
    }
    let is_timed = |of: &Collective| timed.iter().any(|one| one.point.collective == *of);
    let mut warnings = samples.warnings.clone();
    if let Some(missing) = asked.unwrap_or_default().iter().find(|of| !is_timed(of)) {
        if from_record {
            usage!(
                "{}: holds no times of {missing}; measure them by --algorithms-of without \
                 --from-record, or by `colibri verify`",
                run.path().display()
            );
        }
        warnings.push(format!(
            "no algorithm of {missing} was timed within the budget; continue with --resume and a \
             longer --budget"
        ));
    }
    if timed.is_empty() {
        return Ok((None, warnings));
    }
    let fitted = fit::algorithms(&timed, measured).context("fitting constants of algorithms")?;
    warnings.extend(fitted.warnings);
    Ok((Some(Algorithms { records, fits: fitted.fits }), warnings))
}

/// The names of the records, and what they hold.
fn timed(run: &RunDirectory, others: bool) -> Result<(Vec<String>, Vec<CollectiveCall>)> {
    let (mut names, mut rows) = (Vec::new(), Vec::new());
    let path = run.algorithm_times();
    if path.exists() {
        rows.extend(record::read(&path)?.rows);
        names.push(record::name(&path));
    }
    if others && run.measurements().exists() {
        for batch in measurements::batches(run)? {
            names.push(batch.name);
            rows.extend(batch.record.rows);
        }
    }
    Ok((names, rows))
}
