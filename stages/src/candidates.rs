//! What the preload library tries first while an application runs: the methods that a model predicts to be the fastest.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    slice,
};

use anyhow::Result;
use choosing::exploring::SizeClass;
use models::{
    Model, Predictor,
    decide::{Segments, decide_among},
};
use rayon::prelude::*;
use records::{
    Collective, Layout, Method, Point,
    candidates::{CandidateClass, Candidates, PredictedCandidate},
    document,
    penalty::Penalties,
    profile::REPLACED,
};

use crate::{
    deciding::{expressible_methods, knows_any, no_methods, sizes},
    export_formats::{ExportFormat, Exporter},
    source::CalibrationSource,
};
use site::usage;

/// Trials are paid from a small budget: what is not among the first few is hardly ever the best.
const MOST: usize = 4;

/// A call takes no longer than so many times its predicted time, where the model's error was not measured.
const UNKNOWN_ERROR: f64 = 3.0;

/// An error of nearly all of the time bounds nothing: then so many times.
const GREATEST_FACTOR: f64 = 10.0;

/// For what candidates are wanted.
pub struct CandidateRequest<'a> {
    pub collectives: &'a [Collective],
    /// All collectives were asked for: what the preload library does not replace, or the model does not know, is left out.
    pub of_all: bool,
    pub layouts: &'a [Layout],
    /// The classes that hold these are wanted.
    pub sizes: &'a [u64],
    pub segments: &'a Segments,
    pub model: Model,
}

/// The best few of Colibri's methods by the predictions, of each algorithm its best parameters. Methods of shared memory
/// are not among them: the preload library has a list of its own for these.
///
/// # Errors
/// Parameters are missing, the model knows no method of a collective that is asked for, or the preload library does not
/// replace it.
pub fn candidates(source: &CalibrationSource, wanted: &CandidateRequest<'_>) -> Result<Candidates> {
    let Segments::List(segments) = wanted.segments else {
        usage!("for candidates list the segment sizes, as in --segments 0,1KiB,8KiB");
    };
    let exporter = ExportFormat::preloaded().exporter(None, None)?;
    let predictor = source.predictor(wanted.model)?;
    let errors = prediction_errors(source, wanted.model);
    let mut classes: Vec<(Collective, Layout, SizeClass)> = Vec::new();
    for &collective in wanted.collectives {
        if !REPLACED.contains(&collective) || !knows_any(&predictor, collective) {
            match wanted.of_all {
                true => continue,
                false if REPLACED.contains(&collective) => {
                    usage!("{}", no_methods(collective, wanted.model))
                }
                false => usage!("{collective}: the preload library does not replace its calls"),
            }
        }
        let sizes = sizes(collective, wanted.sizes).iter().map(|bytes| SizeClass::of(*bytes));
        let sizes: BTreeSet<SizeClass> = sizes.collect();
        let at = |&layout: &Layout| sizes.iter().map(move |&size| (collective, layout, size));
        classes.extend(wanted.layouts.iter().flat_map(at));
    }
    let ranked = classes.par_iter().map(|&(collective, layout, size)| {
        let factor = errors.get(&collective).copied().unwrap_or(UNKNOWN_ERROR);
        ranked(&predictor, &*exporter, Point::new(collective, layout, 0), size, segments, factor)
    });
    let platform = &source.calibration.platform;
    let (name, model) = (source.name.clone(), wanted.model.name().to_owned());
    let mut all = Candidates::new(name, model, platform.library().to_owned());
    all.classes = ranked.filter(|class| !class.methods.is_empty()).collect();
    Ok(all)
}

/// The best of a class. They are compared by a message in its middle, and bounded by its largest.
fn ranked(
    predictor: &Predictor,
    exporter: &dyn Exporter,
    point: Point,
    size: SizeClass,
    segments: &[u64],
    factor: f64,
) -> CandidateClass {
    let (first, last) = (size.first_bytes(), size.last_bytes());
    let middle = Point { bytes: first + (last - first) / 2, ..point };
    let largest = Point { bytes: last, ..point };
    let methods = expressible_methods(exporter, predictor, middle, segments);
    let own = methods.into_iter().filter(|method| method.is_own() && !method.shares_memory());
    let timed = own.filter_map(|method| {
        let decided = decide_among(predictor, middle, &[method]).ok()?;
        decided.seconds.is_finite().then_some((decided.seconds, decided.method))
    });
    let mut timed: Vec<(f64, Method)> = timed.collect();
    timed.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut seen = BTreeSet::new();
    timed.retain(|(_, method)| seen.insert(method.clone().with_segment(0)));
    let mut timed = varied(timed);
    timed.truncate(MOST);
    timed.sort_by(|a, b| a.0.total_cmp(&b.0));
    let bounded = timed.into_iter().map(|(seconds, method)| {
        // What cannot run the largest is not predicted there.
        let at_most = decide_among(predictor, largest, slice::from_ref(&method))
            .map_or(seconds, |decided| decided.interval()[1].max(decided.seconds).max(seconds));
        PredictedCandidate { method, seconds, max_seconds: at_most * factor }
    });
    let point = Point { bytes: first, ..point };
    CandidateClass { point, last_bytes: last, methods: bounded.collect() }
}

/// Those first that take another time than all before them: what takes exactly as long mostly sends the same messages,
/// as a linear tree and a 4-nomial one of four ranks do.
fn varied(timed: Vec<(f64, Method)>) -> Vec<(f64, Method)> {
    /// The same sum in another order.
    const ROUNDING: f64 = 1e-9;
    let (mut first, mut rest): (Vec<(f64, Method)>, Vec<_>) = (Vec::new(), Vec::new());
    for (seconds, method) in timed {
        let is_same = first.last().is_some_and(|(last, _)| seconds <= last * (1.0 + ROUNDING));
        if is_same { &mut rest } else { &mut first }.push((seconds, method));
    }
    first.append(&mut rest);
    first
}

/// By how much times may be longer than the model predicts, for each collective, where `verify` has measured that on the
/// same cluster: 95 % of the times deviate by no more.
fn prediction_errors(source: &CalibrationSource, model: Model) -> BTreeMap<Collective, f64> {
    let beside = Path::new(&source.name).with_file_name("penalty.json");
    let Ok(penalties) = document::read::<Penalties>(&beside) else { return BTreeMap::new() };
    let of_all = penalties.prediction_errors.iter().filter(|error| {
        error.model == model.name() && error.method.is_none() && error.region.is_none()
    });
    // |predicted / measured - 1| is at most this: measured is at most predicted / (1 - this).
    let factor = |error: f64| match 1.0 - error {
        left if left > 1.0 / GREATEST_FACTOR => 1.0 / left,
        _ => GREATEST_FACTOR,
    };
    of_all.map(|error| (error.collective, factor(error.percentile_95))).collect()
}
