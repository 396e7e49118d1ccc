//! Decision functions: which method each model takes at each point.

use std::collections::BTreeSet;

use anyhow::Result;
use libraries::openmpi;
use models::{
    Model, Predictor,
    decide::{self, Segments},
};
use rayon::prelude::*;
use records::{
    Algorithm, Collective, Layout, Method, Point,
    decisions::{Decision, Decisions},
};

use crate::{compared, source::CalibrationSource};
use site::usage;

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
    pub segments: &'a Segments,
    pub models: &'a [Model],
    pub target: Target,
    /// All collectives or models were asked for: what none can decide is left out.
    pub of_all: bool,
}

/// Whether a model knows any method of a collective.
pub fn knows_any(predictor: &Predictor, collective: Collective) -> bool {
    let known = predictor.model().algorithms(collective);
    known.iter().any(|one| !predictor.methods(collective, *one).is_empty())
}

/// Why a model knows no method of a collective.
pub fn no_methods(collective: Collective, model: Model) -> String {
    let advice = match Model::Simulated.algorithms(collective).is_empty() {
        true => "Colibri has none in any model",
        false => "use --model refined or simulated",
    };
    format!("{collective} has no closed forms in model {model}; {advice}")
}

/// Every decision wanted, ascending by collective, model, procs and bytes.
pub fn decisions(source: &CalibrationSource, wanted: &DecisionRequest<'_>) -> Result<Decisions> {
    let mut decisions = Vec::new();
    let mut collectives = wanted.collectives.to_vec();
    collectives.sort_unstable();
    for &collective in &collectives {
        for &model in wanted.models {
            let predictor = source.predictor(model)?;
            let known = model.algorithms(collective);
            if wanted.of_all && !knows_any(&predictor, collective) {
                continue;
            }
            if known.is_empty() {
                usage!("{}", no_methods(collective, model));
            }
            tell_without(&predictor, collective, &known);
            if known.iter().all(|&one| predictor.methods(collective, one).is_empty()) {
                usage!("no constants of {model} were fitted for {collective}");
            }
            let sizes = sizes(collective, wanted.sizes);
            let at = |&layout: &Layout| {
                let point = move |&bytes: &u64| Point { collective, layout, bytes };
                sizes.iter().map(point)
            };
            let mut points: Vec<Point> = wanted.layouts.iter().flat_map(at).collect();
            if let (true, Target::Openmpi, Segments::List(segments)) =
                (wanted.of_all, wanted.target, wanted.segments)
            {
                points.retain(|point| !known_of_openmpi(&predictor, *point, segments).is_empty());
            }
            decisions.extend(decided(&predictor, &points, wanted)?);
        }
    }
    if wanted.of_all && decisions.is_empty() {
        usage!("no model of those named knows a method of these collectives");
    }
    Ok(Decisions {
        calibration: source.name.clone(),
        forms: source.forms().to_string(),
        parameters: source.parameters_in_words(),
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
    /// Points that one processor decides in the time that another one takes to begin, if none is simulated on
    /// nodes.
    const LEAST: usize = 64;
    let is_long = |point: &Point| predictor.at(point.layout).sees_nodes();
    let least = if points.iter().any(is_long) { 1 } else { LEAST };
    // Size after size: much of what is computed for one number of processes serves the next.
    let mut order: Vec<usize> = (0..points.len()).collect();
    order.sort_by_key(|place| points[*place].bytes);
    let decide_at = |&place: &usize| (place, decision(predictor, points[place], wanted));
    let mut decided: Vec<(usize, Result<Decision>)> =
        order.par_iter().with_min_len(least).map(decide_at).collect();
    decided.sort_by_key(|(place, _)| *place);
    decided.into_iter().map(|(_, decision)| decision).collect()
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
        say!("note: skipped, since no constants of {model} were fitted: {collective} by {names}");
    }
}

/// Open MPI's methods that a model knows.
fn known_of_openmpi(predictor: &Predictor, point: Point, segments: &[u64]) -> Vec<Method> {
    let Point { collective, layout, bytes } = point;
    let predictor = predictor.at(layout);
    let mut methods = openmpi::methods(collective, segments, layout.procs(), bytes);
    methods.retain(|method| predictor.knows(collective, method));
    methods
}

fn decision(predictor: &Predictor, point: Point, wanted: &DecisionRequest<'_>) -> Result<Decision> {
    let Point { collective, layout, .. } = point;
    let procs = layout.procs();
    let predictor = predictor.at(layout);
    match (wanted.target, wanted.segments) {
        (Target::Any, Segments::List(segments)) if predictor.is_by_method() => {
            let model = predictor.model();
            let known = model.algorithms(collective);
            let mut methods = decide::methods(predictor, collective, &known, segments)?;
            let serves = |algorithm| model.serves(collective, algorithm, procs);
            methods
                .retain(|method| method.algorithm().is_none_or(serves) && can_run(point, method));
            Ok(decide::decide_among(predictor, point, &methods)?)
        }
        (Target::Any, segments) if predictor.sees_nodes() => {
            let methods = methods_on_nodes(predictor, point, segments)?;
            Ok(decide::decide_among(predictor, point, &methods)?)
        }
        (Target::Any, segments) => {
            let algorithms = predictor.model().algorithms(collective);
            Ok(decide::decide(predictor, point, &algorithms, segments)?)
        }
        (Target::Openmpi, Segments::List(segments)) => {
            let methods = known_of_openmpi(predictor, point, segments);
            if methods.is_empty() {
                usage!(
                    "no algorithm of Open MPI for {collective} is known to model {}",
                    predictor.model()
                );
            }
            Ok(decide::decide_among(predictor, point, &methods)?)
        }
        (Target::Openmpi, Segments::Auto) => {
            usage!("for Open MPI, list the candidate segment sizes, as in --segments 0,1KiB,8KiB")
        }
    }
}

/// What is decided among on nodes of several ranks: the algorithms that the model covers, and
/// compositions of them by node.
///
/// # Errors
/// Every segment size is to be tried.
pub fn methods_on_nodes(
    predictor: &Predictor,
    point: Point,
    segments: &Segments,
) -> Result<Vec<Method>> {
    let Segments::List(segments) = segments else {
        usage!(
            "--segments auto: on {} times are simulated, which is too slow to try every segment \
             size; list them, as in --segments 0,1KiB,8KiB",
            point.layout.in_words()
        )
    };
    // A segment of the whole message is none.
    let whole = |&bytes: &u64| if bytes < point.bytes { bytes } else { 0 };
    let segments: BTreeSet<u64> = segments.iter().map(whole).collect();
    let mut methods = compared::own_methods(point, &segments.into_iter().collect::<Vec<_>>());
    let known = predictor.model().algorithms(point.collective);
    methods.retain(|method| {
        let covered = method.algorithm().is_some_and(|one| known.contains(&one));
        matches!(method, Method::NodeAware(_)) || covered
    });
    Ok(methods)
}

/// A barrier has one size, 0, whatever sizes the other collectives are asked for.
pub fn sizes(collective: Collective, sizes: &[u64]) -> &[u64] {
    if collective == Collective::Barrier { &[0] } else { sizes }
}
