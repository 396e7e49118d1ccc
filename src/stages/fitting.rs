//! Parameters from what a run holds, and how well decisions by them do where they were not fitted.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail};
use models::{
    fit::{self, CollectiveTime, JointFit, MethodTime, StreamFit},
    transfer::{Transfer, total_bytes},
};
use records::{
    Collective, Layout, Method, Point,
    calibration::{Calibration, Parameters},
    imported::PairStreams,
    observation::ObservationStatus,
    platform::Platform,
    record,
};
use statistics::{mean, median, quantile};

use crate::{
    site::run_directory::RunDirectory,
    stages::{headers::platform, measurements},
};

/// What was fitted.
pub struct Fitted {
    pub calibration: Calibration,
    pub joint: Option<JointFit>,
    pub streams: Option<StreamFit>,
    /// The times of collectives, one for each cell and job.
    pub times: Vec<CollectiveTime>,
}

/// What is left out of a fit to see how well it does there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum LeftOut {
    /// Every other size in turn.
    Sizes,
    /// Each number of processes, and all greater ones.
    Procs,
    /// Each algorithm of a collective.
    Algorithms,
    /// Each collective.
    Collectives,
}

/// Fits to everything that a run holds.
///
/// # Errors
/// It holds nothing to fit to, or a record is broken.
pub fn fit(run: &RunDirectory) -> Result<Fitted> {
    let (mut times, mut of_platform) = (Vec::new(), Platform::default());
    let mut left = Vec::new();
    if run.measurements().exists() {
        for (job, batch) in measurements::batches(run)?.into_iter().enumerate() {
            if job == 0 {
                of_platform = platform(&batch.record.header, &run.measurements())?;
            }
            times.extend(of_job(&batch.record.rows, job as u32));
        }
    }
    let streams = match run.pair_streams().exists() {
        true => {
            let record = record::read::<PairStreams>(&run.pair_streams())?;
            if times.is_empty() {
                of_platform = platform(&record.header, &run.pair_streams())?;
            }
            fit::streams(&record.rows).map_err(|why| left.push(why)).ok()
        }
        false => None,
    };
    let joint = fit::joint(&times).map_err(|why| left.push(why.to_string())).ok();
    let (measured, fitted) = match (&streams, &joint) {
        (Some(streams), joint) => {
            (streams.parameters.clone(), joint.as_ref().map(JointFit::parameters))
        }
        (None, Some(joint)) => (joint.parameters(), None),
        (None, None) => bail!("{}: nothing to fit to: {}", run.path().display(), left.join("; ")),
    };
    let mut warnings = left;
    warnings.extend(streams.iter().flat_map(|streams| streams.undetermined.clone()));
    warnings.extend(joint.iter().flat_map(|joint| joint.undetermined.clone()));
    let calibration = calibration(of_platform, measured, fitted, warnings);
    Ok(Fitted { calibration, joint, streams, times })
}

fn calibration(
    platform: Platform,
    measured: Parameters,
    fitted: Option<Parameters>,
    warnings: Vec<String>,
) -> Calibration {
    Calibration {
        source: "colibri fit".into(),
        platform,
        measured,
        fitted,
        fits: Vec::new(),
        inside: None,
        algorithms: None,
        warnings,
    }
}

/// The median of each cell.
fn of_job(rows: &[records::observation::CollectiveCall], job: u32) -> Vec<CollectiveTime> {
    let mut cells: BTreeMap<(Point, &Method), Vec<f64>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.status == ObservationStatus::Ok) {
        let point = Point { collective: row.collective, layout: row.layout, bytes: row.bytes };
        cells.entry((point, &row.method)).or_default().push(row.seconds);
    }
    let timed = |((point, method), seconds): ((Point, &Method), Vec<f64>)| {
        let seconds = median(&seconds)?;
        Some(CollectiveTime { point, method: method.clone(), seconds, job })
    };
    cells.into_iter().filter_map(timed).collect()
}

/// How well a way to decide does at the points left out.
#[derive(Debug, Clone)]
pub struct LeftOutRow {
    pub collective: Option<Collective>,
    pub decided_by: &'static str,
    pub points: usize,
    /// Mean and 95th percentile of the penalty against the least time.
    pub mean: f64,
    pub percentile_95: f64,
}

/// What leaving out showed.
#[derive(Debug, Clone, Default)]
pub struct LeftOutResult {
    pub rows: Vec<LeftOutRow>,
    /// Median and 95th percentile of |predicted / measured - 1| of what was left out, where the
    /// structure predicts it.
    pub errors: Vec<f64>,
    /// |ln(measured / carried over)| of each time at a size left out, and the deviation told for it.
    pub carried: Vec<(f64, f64)>,
    /// Points at which nothing near was measured.
    pub unreached: usize,
}

/// Ways to decide at a point left out.
const WAYS: [&str; 4] = ["transferred", "nearest", "structure", "default"];

type PenaltiesOfWays = BTreeMap<(Collective, &'static str), Vec<f64>>;

/// The medians over jobs.
pub fn medians(times: &[CollectiveTime]) -> Vec<MethodTime> {
    let mut cells: BTreeMap<(Point, &Method), Vec<f64>> = BTreeMap::new();
    for time in times {
        cells.entry((time.point, &time.method)).or_default().push(time.seconds);
    }
    let of = |((point, method), seconds): ((Point, &Method), Vec<f64>)| {
        Some(MethodTime { point, method: method.clone(), seconds: median(&seconds)? })
    };
    cells.into_iter().filter_map(of).collect()
}

/// Fits without a part, and judges the decisions there, again for each part.
pub fn leave_out(
    times: &[CollectiveTime],
    left_out: LeftOut,
    only: Option<&[u32]>,
) -> LeftOutResult {
    let mut penalties = PenaltiesOfWays::new();
    let mut result = LeftOutResult::default();
    let is_wanted = |procs: u32| only.is_none_or(|wanted| wanted.contains(&procs));
    for (known, mut judged) in parts(times, left_out) {
        judged.retain(|time| is_wanted(time.point.procs()));
        if judged.is_empty() {
            continue;
        }
        let fit = fit::joint(&known).ok();
        if let Some(fit) = &fit {
            let error = |time: &CollectiveTime| {
                let predicted = fit.seconds(time.point, &time.method)?;
                Some((predicted / time.seconds - 1.0).abs())
            };
            result.errors.extend(judged.iter().filter_map(error));
        }
        if !matches!(left_out, LeftOut::Sizes | LeftOut::Procs) {
            continue;
        }
        let known = medians(&known);
        let transfer = Transfer::new(&known, fit.as_ref());
        let bare = Transfer::new(&known, None);
        let judged = medians(&judged);
        let error = |time: &MethodTime| {
            let (seconds, deviation) = transfer.at_size(time.point, &time.method)?;
            Some(((time.seconds / seconds).ln().abs(), deviation))
        };
        result.carried.extend(judged.iter().filter_map(error));
        let points: BTreeSet<Point> = judged.iter().map(|time| time.point).collect();
        for point in
            points.into_iter().filter(|point| only.is_none_or(|it| it.contains(&point.procs())))
        {
            let there: BTreeMap<&Method, f64> = judged
                .iter()
                .filter(|time| time.point == point)
                .map(|time| (&time.method, time.seconds))
                .collect();
            match judge(&there, point, &transfer, &bare, fit.as_ref()) {
                Some(of_ways) => {
                    for (way, penalty) in of_ways {
                        penalties.entry((point.collective, way)).or_default().push(penalty);
                    }
                }
                None => result.unreached += 1,
            }
        }
    }
    result.rows = rows(&penalties);
    result
}

/// The penalty of each way to decide at a point; none where nothing near was measured.
fn judge(
    there: &BTreeMap<&Method, f64>,
    point: Point,
    transfer: &Transfer<'_>,
    bare: &Transfer<'_>,
    fit: Option<&JointFit>,
) -> Option<Vec<(&'static str, f64)>> {
    let methods: Vec<&Method> = there.keys().copied().collect();
    let least = there.values().copied().fold(f64::INFINITY, f64::min);
    let penalty = |method: &Method| there.get(method).map(|seconds| seconds / least - 1.0);
    let transferred = transfer.decide(point, &methods)?;
    let nearest = bare.nearest(point, &methods)?;
    let by_structure = fit.and_then(|fit| {
        let predicted = methods.iter().map(|method| (*method, fit.seconds(point, method)));
        let predicted = predicted.filter_map(|(method, seconds)| Some((method, seconds?)));
        predicted.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(method, _)| method)
    });
    let decided = [
        Some(&transferred.method),
        Some(&nearest),
        by_structure,
        Some(&Method::Default).filter(|default| there.contains_key(*default)),
    ];
    let of = |(way, method): (&'static str, Option<&Method>)| Some((way, penalty(method?)?));
    Some(WAYS.into_iter().zip(decided).filter_map(of).collect())
}

fn rows(penalties: &PenaltiesOfWays) -> Vec<LeftOutRow> {
    let row = |collective, decided_by, values: &[f64]| {
        Some(LeftOutRow {
            collective,
            decided_by,
            points: values.len(),
            mean: mean(values)?,
            percentile_95: quantile(values, 0.95)?,
        })
    };
    let of_each = penalties.iter().filter_map(|((it, way), values)| row(Some(*it), way, values));
    let of_all = WAYS.into_iter().filter_map(|way| {
        let of_way = penalties.iter().filter(|((_, other), _)| *other == way);
        let values: Vec<f64> = of_way.flat_map(|(_, values)| values.clone()).collect();
        row(None, way, &values)
    });
    of_each.chain(of_all).collect()
}

/// What is known and what is judged, for each part.
fn parts(
    times: &[CollectiveTime],
    left_out: LeftOut,
) -> Vec<(Vec<CollectiveTime>, Vec<CollectiveTime>)> {
    let split = |is_left_out: &dyn Fn(&CollectiveTime) -> bool| {
        times.iter().cloned().partition::<Vec<_>, _>(|time| !is_left_out(time))
    };
    match left_out {
        LeftOut::Sizes => (0..2)
            .map(|phase| {
                let places = sizes_in_order(times);
                let (known, mut judged) = split(&|time| places[&place_of(time)].0 % 2 == phase);
                // Sizes at the ends have a neighbour on one side alone.
                judged.retain(|time| {
                    let (place, count) = places[&place_of(time)];
                    place > 0 && place + 1 < count
                });
                (known, judged)
            })
            .collect(),
        LeftOut::Procs => {
            let procs: BTreeSet<u32> = times.iter().map(|time| time.point.procs()).collect();
            let of = |procs: u32| {
                let known = times.iter().filter(|time| time.point.procs() < procs).cloned();
                let judged = times.iter().filter(|time| time.point.procs() == procs).cloned();
                (known.collect(), judged.collect())
            };
            procs.into_iter().skip(1).map(of).collect()
        }
        LeftOut::Algorithms => {
            let cells: BTreeSet<(Collective, &Method)> =
                times.iter().map(|time| (time.point.collective, &time.method)).collect();
            let is = |time: &CollectiveTime, cell: &(Collective, &Method)| {
                (time.point.collective, &time.method) == *cell
            };
            cells.iter().map(|cell| split(&|time| is(time, cell))).collect()
        }
        LeftOut::Collectives => {
            let all: BTreeSet<Collective> =
                times.iter().map(|time| time.point.collective).collect();
            all.into_iter().map(|it| split(&|time| time.point.collective == it)).collect()
        }
    }
}

fn place_of(time: &CollectiveTime) -> (Collective, Layout, u64) {
    (time.point.collective, time.point.layout, total_bytes(time.point))
}

/// The place of each size among those of its collective and layout, and how many there
/// are.
fn sizes_in_order(times: &[CollectiveTime]) -> BTreeMap<(Collective, Layout, u64), (usize, usize)> {
    let mut sizes: BTreeMap<(Collective, Layout), BTreeSet<u64>> = BTreeMap::new();
    for (collective, layout, bytes) in times.iter().map(place_of) {
        sizes.entry((collective, layout)).or_default().insert(bytes);
    }
    let places = sizes.into_iter().flat_map(|((collective, layout), sizes)| {
        let count = sizes.len();
        let of = move |(place, bytes)| ((collective, layout, bytes), (place, count));
        sizes.into_iter().enumerate().map(of)
    });
    places.collect()
}
