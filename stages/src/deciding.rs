//! Decision functions: which method each model takes at each point.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use libraries::{Exporter, runs};
use models::{
    Model, Predictor,
    decide::{self, Outline, OutlinedChoice, Segments},
};
use rayon::prelude::*;
use records::{
    Algorithm, Collective, Layout, Method, Point,
    choices::{Choices, Chosen},
};

use crate::{compared, source::CalibrationSource};
use site::{ranks::MemorySharing, usage};

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
    /// What it is decided for: only what that can express; nothing where every method that the model covers is wanted.
    pub target: Option<&'a dyn Exporter>,
    /// All collectives or models were asked for: what none can decide is left out.
    pub of_all: bool,
}

/// Whether a model knows any method of a collective.
pub fn knows_any(predictor: &Predictor, collective: Collective) -> bool {
    let known = predictor.algorithms(collective);
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
pub fn decisions(source: &CalibrationSource, wanted: &DecisionRequest<'_>) -> Result<Choices> {
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
            if let (true, Some(target), Segments::List(segments)) =
                (wanted.of_all, wanted.target, wanted.segments)
            {
                points.retain(|point| {
                    !expressible_methods(target, &predictor, *point, segments).is_empty()
                });
            }
            decisions.extend(decide_points(&predictor, &points, wanted)?);
        }
    }
    if wanted.of_all && decisions.is_empty() {
        usage!("no model of those named knows a method of these collectives");
    }
    Ok(source.predicted_choices(collectives, decisions))
}

/// The decision at each point, in their order; all processors work on them.
fn decide_points(
    predictor: &Predictor,
    points: &[Point],
    wanted: &DecisionRequest<'_>,
) -> Result<Vec<Chosen>> {
    /// Points that one processor decides in the time that another one takes to begin, if none is simulated on
    /// nodes.
    const LEAST: usize = 64;
    let is_long = |point: &Point| predictor.at(point.layout).sees_nodes();
    let least = if points.iter().any(is_long) { 1 } else { LEAST };
    // Size after size: much of what is computed for one number of processes serves the next.
    let mut order: Vec<usize> = (0..points.len()).collect();
    order.sort_by_key(|place| points[*place].bytes);
    // Of many nodes a few sizes tell which methods are worth simulating at those between.
    let mut far: BTreeMap<Layout, Vec<usize>> = BTreeMap::new();
    for &place in &order {
        let layout = points[place].layout;
        if predictor.at(layout).takes_fewer_nodes(layout) {
            far.entry(layout).or_default().push(place);
        }
    }
    let between = |places: &Vec<usize>| {
        let [_, between] = Outline::split(places);
        between
    };
    let later: BTreeSet<usize> = far.values().flat_map(between).collect();
    let decide_all = |places: Vec<usize>, outlines: &BTreeMap<Layout, Outline>| {
        let none = Outline::default();
        let decide_at = |place: usize| {
            let point = points[place];
            let outline = outlines.get(&point.layout).unwrap_or(&none);
            Ok((place, decision(predictor, point, wanted, outline)?))
        };
        places.into_par_iter().with_min_len(least).map(decide_at).collect::<Result<Vec<_>>>()
    };
    // What takes longest begins first.
    let (second, first) = order.iter().rev().partition(|place| later.contains(place));
    let mut decided = decide_all(first, &BTreeMap::new())?;
    let mut outlines: BTreeMap<Layout, Outline> = BTreeMap::new();
    for (place, OutlinedChoice { times, .. }) in &mut decided {
        let Point { layout, bytes, .. } = points[*place];
        if far.contains_key(&layout) {
            outlines.entry(layout).or_default().add(bytes, std::mem::take(times));
        }
    }
    decided.extend(decide_all(second, &outlines)?);
    decided.sort_by_key(|(place, _)| *place);
    Ok(decided.into_iter().map(|(_, decision)| decision.chosen).collect())
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

/// The methods at a point that a target can express and a model knows. An algorithm that takes none of these segment
/// sizes is unsegmented.
pub fn expressible_methods(
    target: &dyn Exporter,
    predictor: &Predictor,
    point: Point,
    segments: &[u64],
) -> Vec<Method> {
    let collective = point.collective;
    let predictor = predictor.at(point.layout);
    let segments = effective(point, segments);
    let can = |method: &Method| {
        predictor.knows(collective, method)
            && target.express(point, method).is_ok()
            && runs(point, method)
    };
    let by_algorithm = |algorithm: Algorithm| {
        let named = |&bytes: &u64| target.named(algorithm, bytes);
        let methods: Vec<Method> = segments.iter().map(named).filter(can).collect();
        match methods.is_empty() {
            true => vec![named(&0)].into_iter().filter(can).collect(),
            false => methods,
        }
    };
    let mut algorithms = target.algorithms(collective);
    let others = predictor.model().algorithms(collective).into_iter();
    algorithms.extend(others.filter(|one| !algorithms.contains(one)).collect::<Vec<_>>());
    algorithms.retain(|one| !one.shares_memory());
    let mut methods: Vec<Method> = algorithms.into_iter().flat_map(by_algorithm).collect();
    if predictor.sees_nodes() {
        let composed = compared::own_methods(point, &segments).into_iter();
        methods.extend(composed.filter(|one| one.is_node_aware() && can(one)));
    }
    methods.extend(shared_methods(predictor, point, &segments).into_iter().filter(can));
    methods
}

/// Methods of memory that ranks of a node share, where the model knows what it costs and that memory is large enough.
fn shared_methods(predictor: &Predictor, point: Point, segments: &[u64]) -> Vec<Method> {
    let sharing = match predictor.knows_shared_memory() {
        false => MemorySharing::None,
        true if predictor.sees_nodes() && point.layout.nodes() > 1 => MemorySharing::OfNodes,
        true => MemorySharing::All,
    };
    let mut methods = compared::shared_methods(point, &effective(point, segments), sharing);
    methods.retain(|method| predictor.is_candidate(point, method).unwrap_or(false));
    methods
}

/// These segment sizes, each once and ascending; one of the whole message is none.
fn effective(point: Point, segments: &[u64]) -> Vec<u64> {
    segments
        .iter()
        .map(|&bytes| point.segment(bytes))
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect()
}

fn decision(
    predictor: &Predictor,
    point: Point,
    wanted: &DecisionRequest<'_>,
    outline: &Outline,
) -> Result<OutlinedChoice> {
    let Point { collective, layout, .. } = point;
    let procs = layout.procs();
    let predictor = predictor.at(layout);
    let methods = match (wanted.target, wanted.segments) {
        (None, Segments::List(segments)) if predictor.is_by_method() => {
            let model = predictor.model();
            let known = model.algorithms(collective);
            let mut methods = decide::methods(predictor, collective, &known, segments)?;
            let serves = |algorithm| model.serves(collective, algorithm, procs);
            methods.retain(|method| method.algorithm().is_none_or(serves) && runs(point, method));
            methods
        }
        (None, segments) if predictor.sees_nodes() => methods_on_nodes(predictor, point, segments)?,
        (None, segments) => {
            let algorithms = predictor.algorithms(collective);
            let chosen = decide::decide(predictor, point, &algorithms, segments)?;
            return Ok(OutlinedChoice { chosen, times: Vec::new() });
        }
        (Some(target), Segments::List(segments)) => {
            let methods = expressible_methods(target, predictor, point, segments);
            if methods.is_empty() {
                usage!(
                    "no algorithm of {} for {collective} is known to model {}",
                    target.target(),
                    predictor.model()
                );
            }
            methods
        }
        (Some(target), Segments::Auto) => usage!(
            "for {}, list the candidate segment sizes, as in --segments 0,1KiB,8KiB",
            target.target()
        ),
    };
    Ok(decide::decide_near(predictor, point, &methods, outline)?)
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
    let mut methods = compared::own_methods(point, &effective(point, segments));
    let known = predictor.algorithms(point.collective);
    methods.retain(|method| {
        let covered = method.algorithm().is_some_and(|one| known.contains(&one));
        method.is_node_aware() || covered
    });
    methods.extend(shared_methods(predictor, point, segments));
    Ok(methods)
}

/// A barrier has one size, 0, whatever sizes the other collectives are asked for.
pub fn sizes(collective: Collective, sizes: &[u64]) -> &[u64] {
    if collective == Collective::Barrier { &[0] } else { sizes }
}
