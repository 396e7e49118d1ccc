//! How well decisions do where nothing was fitted: parts of a run's times are left out in turn.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail};
use figures::{Axis, Curve, Figure, FigureError, PlotPoint, Quantity, Trace};
use models::{
    Forms, Model, Predictor,
    fit::{self, JobTime, JointFit, MethodTime, NodeFit, Shapes, medians_over_jobs},
    transfer::{Transfer, total_bytes},
};
use records::{Collective, Layout, Method, Point};
use statistics::{geometric_mean, mean, quantile};

use crate::{fitting::JobTimes, progress::CountedWork};

/// What is left out of a fit to see how well it does there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeftOut {
    /// Every other size in turn.
    Sizes,
    /// All sizes above one, in bytes.
    SizesAbove(u64),
    /// Each number of processes, and all greater ones.
    Procs,
    /// Each algorithm of a collective.
    Algorithms,
    /// Each collective.
    Collectives,
}

impl LeftOut {
    pub const ALL: [LeftOut; 4] =
        [LeftOut::Sizes, LeftOut::Procs, LeftOut::Algorithms, LeftOut::Collectives];

    pub fn name(self) -> &'static str {
        match self {
            LeftOut::Sizes | LeftOut::SizesAbove(_) => "sizes",
            LeftOut::Procs => "procs",
            LeftOut::Algorithms => "algorithms",
            LeftOut::Collectives => "collectives",
        }
    }

    /// What is left out, in a few words.
    pub fn about(self) -> &'static str {
        match self {
            LeftOut::Sizes => "Every other size in turn; with --above all greater ones at once",
            LeftOut::SizesAbove(_) => "All sizes above one",
            LeftOut::Procs => "Each number of ranks, and all greater ones",
            LeftOut::Algorithms => "Each algorithm of a collective",
            LeftOut::Collectives => "Each collective",
        }
    }
}

/// The points that a row sums up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SummedPoints {
    /// Those of a collective.
    Of(Collective),
    /// All.
    All,
    /// Those at which everything that is compared decides.
    Common,
}

/// How well a way to decide does at the points left out.
#[derive(Debug, Clone)]
pub struct LeftOutRow {
    pub summed: SummedPoints,
    pub decided_by: &'static str,
    pub points: usize,
    /// Mean and 95th percentile of the penalty against the least time.
    pub mean: f64,
    pub percentile_95: f64,
}

/// |predicted / measured - 1| of a time left out, by a model's parameters fitted to the others.
#[derive(Debug, Clone)]
pub struct PredictedLeftOut {
    pub model: Model,
    pub collective: Collective,
    pub method: Method,
    pub error: f64,
}

/// What leaving out showed.
#[derive(Debug, Clone, Default)]
pub struct LeftOutResult {
    pub rows: Vec<LeftOutRow>,
    /// |predicted / measured - 1| of what was left out, where the structure predicts it.
    pub errors: Vec<f64>,
    /// |predicted / measured - 1| by each model, at sizes and numbers of processes left out.
    pub predicted: Vec<PredictedLeftOut>,
    /// Times at points left out, each method's at each, the default's not among them.
    pub judged: usize,
    /// |ln(measured / carried over)| of each time at a size left out, and the deviation given for it.
    pub carried: Vec<(f64, f64)>,
    /// Points at which nothing near was measured.
    pub unreached: usize,
    penalties: Vec<PenaltiesAt>,
}

/// Ways to decide at a point left out.
const WAYS: [&str; 9] = [
    "transferred",
    "nearest",
    "structure",
    "hockney",
    "loggp",
    "plogp",
    "refined",
    BEST_KNOWN,
    "default",
];

/// The least of the methods whose schedules are known: what no model can do better than.
const BEST_KNOWN: &str = "best-known";

/// The models that decide by parameters fitted to the rest.
pub const MODELS: [Model; 4] = [Model::Hockney, Model::LogGp, Model::PLogP, Model::Refined];

/// Ways that a figure compares.
const DRAWN: [&str; 8] =
    ["default", "hockney", "loggp", "plogp", "refined", "structure", BEST_KNOWN, "transferred"];

/// The penalty of each way to decide at a point.
#[derive(Debug, Clone)]
struct PenaltiesAt {
    point: Point,
    of_ways: BTreeMap<&'static str, f64>,
}

impl PenaltiesAt {
    fn is_common(&self) -> bool {
        WAYS.iter().all(|way| self.of_ways.contains_key(way))
    }
}

/// Fits without a part, and judges the decisions there, again for each part.
///
/// # Errors
/// There is nothing to fit to, or the parameters that were fitted are none.
pub fn leave_out(
    JobTimes { times, over }: &JobTimes,
    left_out: LeftOut,
    only: Option<&[u32]>,
) -> Result<LeftOutResult> {
    let (mut result, shapes) = (LeftOutResult::default(), Shapes::default());
    let is_wanted = |procs: u32| only.is_none_or(|wanted| wanted.contains(&procs));
    let mut parts = parts(times, left_out);
    parts.iter_mut().for_each(|(_, judged)| judged.retain(|it| is_wanted(it.point.procs())));
    parts.retain(|(_, judged)| !judged.is_empty());
    let of_parts: usize = parts.iter().map(|(known, judged)| known.len() + judged.len()).sum();
    let all = times.len() + of_parts;
    let work = CountedWork::begin("fitting to a part and judging the rest", "times", all);
    if let Err(why) = fit::joint_values(times, &shapes) {
        bail!("nothing to fit to: {why}");
    }
    work.add(times.len());
    for (known, judged) in parts {
        let fit = fit::joint_values(&known, &shapes).ok();
        if let Some(fit) = &fit {
            let error = |time: &JobTime| {
                let predicted = fit.seconds(time.point, &time.method)?;
                Some((predicted / time.seconds - 1.0).abs())
            };
            result.errors.extend(judged.iter().filter_map(error));
        }
        work.add(known.len());
        if matches!(left_out, LeftOut::Sizes | LeftOut::SizesAbove(_) | LeftOut::Procs) {
            let node = fit.as_ref().and_then(|fit| fit.node(&known, *over));
            let models = Models { predictors: predictors(&known, fit.as_ref())?, node };
            result.judge(
                &medians_over_jobs(&known),
                &medians_over_jobs(&judged),
                fit.as_ref(),
                &models,
            );
        }
        work.add(judged.len());
    }
    result.rows = rows(&result.penalties);
    Ok(result)
}

/// What decides by parameters fitted to the rest.
struct Models {
    predictors: Vec<Predictor>,
    /// What the refined forms are on one node.
    node: Option<NodeFit>,
}

/// The models with parameters fitted to these times: those of the tables through their own forms.
fn predictors(known: &[JobTime], fit: Option<&JointFit>) -> Result<Vec<Predictor>> {
    let Some(fit) = fit else { return Ok(Vec::new()) };
    let joint = fit.parameters();
    let of_tables = fit::by_model(known, &joint)?;
    let predictor = |model: Model| -> Result<Predictor> {
        let parameters = if model == Model::Refined { &joint } else { &of_tables };
        let predictor = Predictor::new(model, Forms::Corrected, parameters)?;
        match fit.inside_node() {
            Some(inside) => Ok(predictor.on_nodes(parameters, Some(&inside), false)?),
            None => Ok(predictor),
        }
    };
    MODELS.into_iter().map(predictor).collect()
}

impl LeftOutResult {
    fn judge(
        &mut self,
        known: &[MethodTime],
        judged: &[MethodTime],
        fit: Option<&JointFit>,
        models: &Models,
    ) {
        let structure = |point: Point, method: &Method| {
            let by_node = models.node.as_ref().and_then(|node| node.seconds(point, method));
            by_node.or_else(|| fit?.seconds(point, method))
        };
        let transfer = Transfer::new(known, Some(&structure));
        let bare = Transfer::new(known, None);
        let error = |time: &MethodTime| {
            let (seconds, deviation) = transfer.at_size(time.point, &time.method)?;
            Some(((time.seconds / seconds).ln().abs(), deviation))
        };
        self.carried.extend(judged.iter().filter_map(error));
        let mut points: BTreeMap<Point, BTreeMap<&Method, f64>> = BTreeMap::new();
        for time in judged {
            points.entry(time.point).or_default().insert(&time.method, time.seconds);
        }
        for (point, there) in points {
            self.judged += there.keys().filter(|method| ***method != Method::Default).count();
            let mut by_models = BTreeMap::new();
            for model in &models.predictors {
                let of_model = self.predicted_by(model, models.node.as_ref(), point, &there);
                by_models.extend(of_model.map(|method| (model.model().name(), method)));
            }
            match penalties(&there, point, &transfer, &bare, fit, &by_models) {
                Some(of_ways) => self.penalties.push(PenaltiesAt { point, of_ways }),
                None => self.unreached += 1,
            }
        }
    }

    /// Keeps a model's errors at a point; what it finds the cheapest of what was measured there and
    /// it knows.
    fn predicted_by<'a>(
        &mut self,
        predictor: &Predictor,
        node: Option<&NodeFit>,
        point: Point,
        there: &BTreeMap<&'a Method, f64>,
    ) -> Option<&'a Method> {
        let predictor = predictor.at(point.layout);
        let node = node.filter(|_| predictor.model() == Model::Refined);
        let mut cheapest: Option<(f64, &Method)> = None;
        for (&method, measured) in there {
            // What the model does not know has no predicted time.
            let by_node = node.and_then(|node| node.seconds(point, method));
            let otherwise = || predictor.predict_method_seconds(point, method).ok();
            let Some(predicted) = by_node.or_else(otherwise) else { continue };
            self.predicted.push(PredictedLeftOut {
                model: predictor.model(),
                collective: point.collective,
                method: method.clone().with_segment(0),
                error: (predicted / measured - 1.0).abs(),
            });
            if cheapest.is_none_or(|(least, _)| predicted < least) {
                cheapest = Some((predicted, method));
            }
        }
        cheapest.map(|(_, method)| method)
    }

    /// Times above the best at the points at which all ways decide: of each way the geometric mean over
    /// the collectives, over the size.
    pub fn curves(&self) -> Vec<Curve> {
        let common: Vec<&PenaltiesAt> = self.penalties.iter().filter(|at| at.is_common()).collect();
        let curve = |way: &str| {
            let mut ratios: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
            for at in &common {
                let ratio = at.of_ways.get(way).map(|penalty| 1.0 + penalty);
                ratios.entry(total_bytes(at.point)).or_default().extend(ratio);
            }
            let point = |(bytes, ratios): (u64, Vec<f64>)| {
                Some(PlotPoint::exact(bytes as f64, geometric_mean(&ratios)?))
            };
            let points = ratios.into_iter().filter_map(point).collect();
            Curve { name: way.into(), trace: Trace::Marked, points }
        };
        DRAWN.into_iter().map(curve).collect()
    }
}

/// A panel of [`LeftOutResult::curves`] for each run.
///
/// # Errors
/// There is no point at which all ways decide.
pub fn draw(panels: &[(String, Vec<Curve>)]) -> Result<Figure, FigureError> {
    let x = Axis { label: "total bytes".into(), quantity: Quantity::Bytes };
    let y = Axis { label: "time relative to the fastest".into(), quantity: Quantity::Number };
    let lines =
        ["Geometric mean over collectives, where all of these decide. Parameters were fitted \
                  to other sizes or fewer ranks."];
    figures::panels(
        "Penalty of decisions where nothing was fitted",
        &lines.map(str::to_owned),
        (x, y),
        panels,
    )
}

/// The penalty of each way to decide at a point; none where nothing near was measured.
fn penalties<'a>(
    there: &BTreeMap<&'a Method, f64>,
    point: Point,
    transfer: &Transfer<'a>,
    bare: &Transfer<'a>,
    fit: Option<&JointFit>,
    by_models: &BTreeMap<&str, &'a Method>,
) -> Option<BTreeMap<&'static str, f64>> {
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
    let known = there
        .iter()
        .filter(|(method, _)| fit.is_some_and(|fit| fit.seconds(point, method).is_some()));
    let best_known = known.min_by(|a, b| a.1.total_cmp(b.1)).map(|(method, _)| *method);
    let decided = |way: &str| match way {
        "transferred" => Some(&transferred.method),
        "nearest" => Some(&nearest),
        "structure" => by_structure,
        BEST_KNOWN => best_known,
        "default" => Some(&Method::Default),
        model => by_models.get(model).copied(),
    };
    let of = |way: &'static str| Some((way, penalty(decided(way)?)?));
    Some(WAYS.into_iter().filter_map(of).collect())
}

fn rows(penalties: &[PenaltiesAt]) -> Vec<LeftOutRow> {
    let collectives: BTreeSet<Collective> =
        penalties.iter().map(|at| at.point.collective).collect();
    let each = collectives.into_iter().map(SummedPoints::Of);
    let all = each.chain([SummedPoints::All, SummedPoints::Common]);
    let row = |summed: SummedPoints, decided_by: &'static str| {
        let is_summed = |at: &&PenaltiesAt| match summed {
            SummedPoints::Of(collective) => at.point.collective == collective,
            SummedPoints::All => true,
            SummedPoints::Common => at.is_common(),
        };
        let values = penalties.iter().filter(is_summed);
        let values: Vec<f64> =
            values.filter_map(|at| at.of_ways.get(decided_by).copied()).collect();
        Some(LeftOutRow {
            summed,
            decided_by,
            points: values.len(),
            mean: mean(&values)?,
            percentile_95: quantile(&values, 0.95)?,
        })
    };
    all.flat_map(|summed| WAYS.into_iter().filter_map(move |way| row(summed, way))).collect()
}

/// What is known and what is judged, for each part.
fn parts(times: &[JobTime], left_out: LeftOut) -> Vec<(Vec<JobTime>, Vec<JobTime>)> {
    let split = |is_left_out: &dyn Fn(&JobTime) -> bool| {
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
        LeftOut::SizesAbove(most) => vec![split(&|time| time.point.bytes > most)],
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
            let is = |time: &JobTime, cell: &(Collective, &Method)| {
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

fn place_of(time: &JobTime) -> (Collective, Layout, u64) {
    (time.point.collective, time.point.layout, total_bytes(time.point))
}

/// The place of each size among those of its collective and layout, and how many there
/// are.
fn sizes_in_order(times: &[JobTime]) -> BTreeMap<(Collective, Layout, u64), (usize, usize)> {
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
