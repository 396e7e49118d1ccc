//! Decision functions: which method each model takes at each point.

use std::thread::{self, available_parallelism};

use anyhow::Result;
use libraries::openmpi;
use models::{Model, Predictor, decide};
use records::{
    Algorithm, Collective, Layout, Method, Point,
    decisions::{Decision, Decisions},
};

use crate::{
    error::usage,
    stages::{
        options::{SegmentOption, is_all},
        source::CalibrationSource,
    },
};

/// What the decisions are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Target {
    /// Every algorithm that the model covers
    Any,
    /// Open MPI's own algorithms
    Openmpi,
}

/// LogP knows no message size: it decides only when asked to.
pub fn default_models() -> Vec<Model> {
    vec![Model::Hockney, Model::LogGp, Model::PLogP]
}

/// The models whose decisions are judged: the paper's, and the one that knows every collective.
pub fn judged_models() -> Vec<Model> {
    [default_models(), vec![Model::Refined]].concat()
}

/// What is to be decided.
pub struct DecisionRequest<'a> {
    pub collectives: &'a [Collective],
    pub layouts: &'a [Layout],
    pub sizes: &'a [u64],
    pub segments: &'a SegmentOption,
    pub models: &'a [Model],
    pub target: Target,
}

/// Every decision wanted, ascending by collective, model, procs and bytes.
pub fn decisions(source: &CalibrationSource, wanted: &DecisionRequest<'_>) -> Result<Decisions> {
    let mut decisions = Vec::new();
    let mut collectives = wanted.collectives.to_vec();
    collectives.sort_unstable();
    for &collective in &collectives {
        for &model in wanted.models {
            if model.algorithms(collective).is_empty() && is_all(wanted.collectives) {
                continue;
            }
            if model.algorithms(collective).is_empty() {
                usage!(
                    "{collective} has no closed forms in model {model}; use --model refined or \
                     simulated"
                );
            }
            let predictor = source.predictor(model)?;
            let known = model.algorithms(collective);
            tell_without(&predictor, collective, &known);
            if known.iter().all(|&one| predictor.methods(collective, one).is_empty()) {
                usage!("no constants of {model} were fitted for {collective}");
            }
            let sizes = sizes(collective, wanted.sizes);
            let at = |&layout: &Layout| {
                let point = move |&bytes: &u64| Point { collective, layout, bytes };
                sizes.iter().map(point)
            };
            let points: Vec<Point> = wanted.layouts.iter().flat_map(at).collect();
            decisions.extend(decided(&predictor, &points, wanted)?);
        }
    }
    Ok(Decisions {
        calibration: source.name.clone(),
        forms: source.forms().to_string(),
        parameters: source.parameters.name().into(),
        message_size: verification::penalty::message_sizes(collectives),
        decisions,
    })
}

/// The decision at each point, in their order; all processors work on them.
fn decided(
    predictor: &Predictor,
    points: &[Point],
    wanted: &DecisionRequest<'_>,
) -> Result<Vec<Decision>> {
    /// Fewer are decided before another processor has begun.
    const LEAST: usize = 64;
    let processors = available_parallelism().map_or(1, usize::from);
    // Points on many processes take longer: each processor gets several parts.
    let each = points.len().div_ceil(8 * processors).max(LEAST);
    let decide = &|points: &[Point]| -> Result<Vec<Decision>> {
        points.iter().map(|point| decision(predictor, *point, wanted)).collect()
    };
    thread::scope(|scope| {
        let parts: Vec<_> =
            points.chunks(each).map(|part| scope.spawn(move || decide(part))).collect();
        let mut decisions = Vec::with_capacity(points.len());
        for part in parts {
            match part.join() {
                Ok(decided) => decisions.extend(decided?),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok(decisions)
    })
}

/// Whether the MPI library can be told to run a method there: not every algorithm takes segments, and
/// some fall back to others.
pub fn can_run(point: Point, method: &Method) -> bool {
    libraries::runs(point, method)
}

/// Says which algorithms are left out because they have no constants, where each has its own.
pub fn tell_without(predictor: &Predictor, collective: Collective, known: &[Algorithm]) {
    let without = |algorithm: &&Algorithm| predictor.methods(collective, **algorithm).is_empty();
    let names: Vec<&str> = known.iter().filter(without).map(|one| one.name()).collect();
    if !names.is_empty() && names.len() < known.len() {
        let (model, names) = (predictor.model(), names.join(", "));
        eprintln!(
            "note: skipped, since no constants of {model} were fitted: {collective} by {names}"
        );
    }
}

fn decision(predictor: &Predictor, point: Point, wanted: &DecisionRequest<'_>) -> Result<Decision> {
    let Point { collective, layout, bytes } = point;
    let procs = layout.procs();
    match (wanted.target, wanted.segments) {
        (Target::Any, SegmentOption::These(segments)) if predictor.is_by_method() => {
            let model = predictor.model();
            let known = model.algorithms(collective);
            let mut methods = decide::methods(predictor, collective, &known, segments)?;
            let serves = |algorithm| model.serves(collective, algorithm, procs);
            methods
                .retain(|method| method.algorithm().is_none_or(serves) && can_run(point, method));
            Ok(decide::decide_among(predictor, point, &methods)?)
        }
        (Target::Any, segments) => {
            let segments = match segments {
                SegmentOption::Auto => decide::Segments::Auto,
                SegmentOption::These(these) => decide::Segments::List(these.clone()),
            };
            let algorithms = predictor.model().algorithms(collective);
            Ok(decide::decide(predictor, point, &algorithms, &segments)?)
        }
        (Target::Openmpi, SegmentOption::These(segments)) => {
            let mut methods = openmpi::methods(collective, segments, procs, bytes);
            methods.retain(|method| predictor.knows(collective, method));
            if methods.is_empty() {
                usage!(
                    "no algorithm of Open MPI for {collective} is known to model {}",
                    predictor.model()
                );
            }
            Ok(decide::decide_among(predictor, point, &methods)?)
        }
        (Target::Openmpi, SegmentOption::Auto) => {
            usage!("for Open MPI, list the candidate segment sizes, as in --segments 0,1KiB,8KiB")
        }
    }
}

/// A barrier has one size, 0, whatever sizes the other collectives are asked for.
pub fn sizes(collective: Collective, sizes: &[u64]) -> &[u64] {
    if collective == Collective::Barrier { &[0] } else { sizes }
}
