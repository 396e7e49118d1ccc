//! Why a prediction is what it is: what each parameter contributes.
//!
//! The closed forms, and the simulator's critical path, are sums and maxima of the parameters times
//! numbers. So a time is the sum, over the parameters, of the parameter times how fast the time grows
//! with it (Euler's theorem on homogeneous functions): "14 o" in 7 L + 14 o + 7 g + 57337 G. The
//! growth is found by raising each parameter by a millionth; where the time then jumps, by lowering
//! it, or by a little more: two messages that reach a port at the very same time come in an order
//! that the last digit decides. Then the terms sum to what the time is with parameters next to these.

use records::{
    Method,
    calibration::{InsideNode, MemoryMessageKnot, Parameters, SharedAccess},
    quantity,
};
use serde::Serialize;

use crate::{
    Evaluator, Model, NetworkModel, Point, PredictError, Predictor,
    closed_forms::{CallShape, ClosedForm, FormulaError, Text, evaluate, symbol, terms},
    parameters::{Hockney, Network, ParametersError, PointToPointParameters},
    predict::{CostSource, Evaluation},
    simulated::{BusyRanks, LevelledNetwork, inside_parameters},
};

/// What one parameter contributes to a time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Term {
    /// Its symbol: `L`, `o`, `g`, `G`, `alpha`, `beta`, `os`, `or`, `gamma`; `L inside` of messages
    /// inside a node, `port` of what a node's ranks get of its port.
    pub parameter: &'static str,
    /// Seconds, or seconds per byte; of a function of the size none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// How often it counts (G, beta, gamma: for how many bytes); of a function of the size none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<f64>,
    /// Seconds.
    pub seconds: f64,
}

/// A closed form as text, with its terms' numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FormulaText {
    /// As in the tables: `L + n_s (P - 1) g(m_s)`; words where no formula says what is done.
    pub text: String,
    /// The terms of its sum, or what else the time falls into; they sum to the time. None where it
    /// has no parts.
    pub parts: Vec<TimePart>,
    /// What its symbols stand for.
    pub symbols: Vec<Symbol>,
}

/// A part of a time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TimePart {
    /// As in the formula.
    pub text: String,
    /// Seconds.
    pub seconds: f64,
}

/// A symbol of a formula.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Symbol {
    /// As in the formula: `P`, `G`, `g(m_s)`.
    pub name: String,
    pub value: f64,
    /// `bytes`, `seconds`, `seconds_per_byte`; empty where it counts.
    pub unit: &'static str,
}

/// Nothing to explain.
#[derive(Debug, thiserror::Error)]
pub enum ExplainError {
    /// No prediction.
    #[error(transparent)]
    Predict(#[from] PredictError),
    /// No parameters.
    #[error(transparent)]
    Parameters(#[from] ParametersError),
    /// A closed form's text is none.
    #[error(transparent)]
    Formula(#[from] FormulaError),
}

/// The parameters of a model with one of them changed.
#[derive(Debug, Clone)]
pub struct Explainer {
    predictor: Predictor,
    changed: Vec<Changed>,
}

#[derive(Debug, Clone)]
struct Changed {
    parameter: &'static str,
    value: Option<f64>,
    /// With the parameter changed by each of [`CHANGES`].
    predictors: Vec<Predictor>,
}

/// Relative change of a parameter: a power of two, so that it is exact.
const RELATIVE_CHANGE: f64 = 1.0 / (1 << 20) as f64;
/// In the order in which they are tried.
const CHANGES: [f64; 8] = [
    RELATIVE_CHANGE,
    -RELATIVE_CHANGE,
    2.0 * RELATIVE_CHANGE,
    -2.0 * RELATIVE_CHANGE,
    3.0 * RELATIVE_CHANGE,
    -3.0 * RELATIVE_CHANGE,
    5.0 * RELATIVE_CHANGE,
    -5.0 * RELATIVE_CHANGE,
];
/// The least and the most that a parameter may contribute, in whole times: it takes some off where a
/// message that waits for a port has its overhead behind it by then, and the others then sum to more
/// than the time. A jump is far outside, or too small to matter.
const CONTRIBUTION_RANGE: [f64; 2] = [-1.0, 2.0];

/// Multiplies a parameter by a factor.
type Scaling<T> = fn(&mut T, f64);

/// The same of a parameter inside a node, or of its port.
type ScalingInside = Box<dyn Fn(&mut InsideNode, f64)>;

impl Explainer {
    /// Prepares what [`Explainer::terms`] needs of a model with these parameters; where each algorithm
    /// has constants of its own, of these. `inside` and `fitted` are those of [`Predictor::on_nodes`].
    ///
    /// # Errors
    /// As there.
    pub fn new(
        predictor: &Predictor,
        parameters: &Parameters,
        inside: Option<&InsideNode>,
        fitted: bool,
    ) -> Result<Self, ParametersError> {
        let changed = |(parameter, value), predictors| Changed { parameter, value, predictors };
        let changed = match predictor.is_by_method() {
            true => CONSTANTS
                .map(|(symbol, scale)| {
                    let by = |change| predictor.changed(|network| scale(network, 1.0 + change));
                    changed((symbol, None), CHANGES.map(by).into())
                })
                .into(),
            false => {
                let model = predictor.model();
                let with = |between: &Parameters, inside: Option<&InsideNode>| {
                    let changed = Predictor::new(model, predictor.forms(), between)?;
                    let changed = changed.on_nodes(between, inside, fitted)?;
                    Ok(changed.with_root(predictor.root))
                };
                let between = rows(model, parameters).into_iter();
                let between = between.map(|(symbol, value, scale)| {
                    let by = |change| {
                        let mut parameters = parameters.clone();
                        scale(&mut parameters, 1.0 + change);
                        with(&parameters, inside)
                    };
                    let predictors = CHANGES.into_iter().map(by).collect::<Result<_, _>>()?;
                    Ok(changed((symbol, value), predictors))
                });
                let of_inside = inside.map(|level| rows_inside(model, level, fitted));
                let of_inside = of_inside.into_iter().flatten().map(|(symbol, value, scale)| {
                    let by = |change| {
                        let mut level = inside.cloned();
                        level.iter_mut().for_each(|level| scale(level, 1.0 + change));
                        with(parameters, level.as_ref())
                    };
                    let predictors = CHANGES.into_iter().map(by).collect::<Result<_, _>>()?;
                    Ok(changed((symbol, value), predictors))
                });
                between.chain(of_inside).collect::<Result<_, ParametersError>>()?
            }
        };
        Ok(Explainer { predictor: predictor.clone(), changed })
    }

    /// The terms of a method's time, those that count nothing left out. They sum to the time.
    ///
    /// # Errors
    /// As [`Predictor::predict_method`].
    pub fn terms(&self, point: Point, method: &Method) -> Result<Vec<Term>, ExplainError> {
        let time = self.predictor.predict_method_seconds(point, method)?;
        let [least, most] = CONTRIBUTION_RANGE.map(|times| times * time);
        let own = self.predictor.constants(point.collective, method);
        let mut terms = Vec::new();
        for Changed { parameter, value, predictors } in &self.changed {
            // The first prediction is nearly always enough; a simulated one takes long.
            let at = |index: usize| -> Result<(f64, f64), PredictError> {
                Ok((predictors[index].predict_method_seconds(point, method)?, CHANGES[index]))
            };
            // From here to one side, or from one side to the other.
            let one_sided = (0..CHANGES.len()).map(|index| (None, index));
            let across = (0..CHANGES.len()).step_by(2).map(|index| (Some(index + 1), index));
            let mut seconds = 0.0;
            for (from, to) in one_sided.chain(across) {
                let (from, to) = (from.map_or(Ok((time, 0.0)), at)?, at(to)?);
                let slope = (to.0 - from.0) / (to.1 - from.1);
                if (least..=most).contains(&slope) {
                    seconds = slope;
                    break;
                }
            }
            if seconds.abs() > 1e-7 * time {
                let value = value.or_else(|| own.and_then(|own| constant(own, parameter)));
                let count = value.map(|value| seconds / value);
                terms.push(Term { parameter, value, count, seconds });
            }
        }
        Ok(terms)
    }

    /// A method's closed form as text, with numbers.
    ///
    /// # Errors
    /// As [`Predictor::predict_method`].
    pub fn formula(&self, point: Point, method: &Method) -> Result<FormulaText, ExplainError> {
        let evaluation = self.predictor.look_up_method(point, method)?;
        let Evaluation { source, shape, set, .. } = evaluation;
        match source {
            CostSource::Form(form) => self.of_form(form, &shape, &set.network),
            CostSource::Simulated(entry) => {
                let call = evaluation.simulated_call(entry);
                let busy = match &set.levels {
                    None => call.busy_ranks(&LevelledNetwork::of_one_level(set.network.clone())),
                    Some(levels) => call.busy_ranks(&levels.network),
                };
                Ok(in_words(&match busy.map_err(PredictError::from)? {
                    None if method.shares_memory() => {
                        "simulated, flag by flag and read by read".into()
                    }
                    None => "simulated, message by message".into(),
                    Some(busy) => of_copies(busy),
                }))
            }
        }
    }

    fn of_form(
        &self,
        form: &ClosedForm,
        shape: &CallShape,
        network: &Network,
    ) -> Result<FormulaText, ExplainError> {
        let forms = self.predictor.forms();
        let seconds = |shape: &CallShape| form.seconds(network, shape, forms);
        match form.text(network, shape, forms) {
            _ if seconds(shape) == 0.0 => Ok(in_words("nothing is sent")),
            Text::Formula(formula) => {
                let mut symbols: Vec<Symbol> = Vec::new();
                let mut value = |name: &str| {
                    let (value, unit) = symbol(network, shape, name)?;
                    if symbols.iter().all(|known| known.name != name) {
                        symbols.push(Symbol { name: name.into(), value, unit });
                    }
                    Some(value)
                };
                let terms = terms(formula).into_iter();
                let part = |term: &str| -> Result<TimePart, FormulaError> {
                    Ok(TimePart { text: term.into(), seconds: evaluate(term, &mut value)? })
                };
                let parts = terms.map(part).collect::<Result<_, _>>()?;
                Ok(FormulaText { text: formula.into(), parts, symbols })
            }
            Text::Words(words) => {
                let mut formula = in_words(words);
                if form.segmented && shape.segments() > 1.0 {
                    let first = seconds(&shape.with_segments(1, shape.segment()));
                    let others = format!("the other {} segments", shape.segments() - 1.0);
                    formula.parts = vec![
                        TimePart { text: "the first segment".into(), seconds: first },
                        TimePart { text: others, seconds: seconds(shape) - first },
                    ];
                }
                Ok(formula)
            }
        }
    }
}

/// Alpha, beta, and what combining takes, of every algorithm.
const CONSTANTS: [(&str, Scaling<Network>); 3] = [
    ("alpha", |network, by| of_hockney(network, |it| it.alpha *= by)),
    ("beta", |network, by| of_hockney(network, |it| it.beta *= by)),
    ("gamma", |network, by| network.combining.scale(by)),
];

fn of_hockney(network: &mut Network, change: impl FnOnce(&mut Hockney)) {
    if let PointToPointParameters::Hockney(hockney) = &mut network.model {
        change(hockney);
    }
}

fn constant(own: Hockney, parameter: &str) -> Option<f64> {
    match parameter {
        "alpha" => Some(own.alpha),
        "beta" => Some(own.beta),
        _ => None,
    }
}

fn of_copies(BusyRanks { busy, ranks, bytes, slowdown }: BusyRanks) -> String {
    let size = quantity::format_bytes(bytes);
    let slowdown = match slowdown {
        none if none < 1.005 => "which slows no message down".into(),
        some => format!("when a message of {size} takes {some:.2} times as long as alone"),
    };
    format!(
        "simulated, copy by copy: on average {busy:.1} of a node's {ranks} ranks are busy, {slowdown}"
    )
}

fn in_words(words: &str) -> FormulaText {
    FormulaText { text: words.into(), parts: Vec::new(), symbols: Vec::new() }
}

fn rows(
    model: Model,
    parameters: &Parameters,
) -> Vec<(&'static str, Option<f64>, Scaling<Parameters>)> {
    let Parameters { hockney, loggp, plogp, .. } = parameters;
    let gamma = parameters.gamma.is_empty().then_some(parameters.gamma_seconds_per_byte.value);
    let mut rows: Vec<(&'static str, Option<f64>, Scaling<Parameters>)> = match model.network() {
        NetworkModel::Hockney => vec![
            ("alpha", Some(hockney.alpha_seconds.value), |p, by| {
                scale(&mut p.hockney.alpha_seconds, by)
            }),
            ("beta", Some(hockney.beta_seconds_per_byte.value), |p, by| {
                scale(&mut p.hockney.beta_seconds_per_byte, by);
            }),
        ],
        NetworkModel::LogP | NetworkModel::LogGp => vec![
            ("L", Some(loggp.latency_seconds.value), |p, by| {
                scale(&mut p.loggp.latency_seconds, by)
            }),
            ("o", Some(loggp.overhead_seconds.value), |p, by| {
                scale(&mut p.loggp.overhead_seconds, by)
            }),
            ("g", Some(loggp.gap_seconds.value), |p, by| scale(&mut p.loggp.gap_seconds, by)),
            ("G", Some(loggp.gap_seconds_per_byte.value), |p, by| {
                scale(&mut p.loggp.gap_seconds_per_byte, by);
            }),
        ],
        NetworkModel::PLogP => vec![
            ("L", Some(plogp.latency_seconds.value), |p, by| {
                scale(&mut p.plogp.latency_seconds, by)
            }),
            ("os", None, |p, by| {
                let knots = p.plogp.knots.iter_mut();
                knots.for_each(|knot| scale(&mut knot.send_overhead_seconds, by));
            }),
            ("or", None, |p, by| {
                let knots = p.plogp.knots.iter_mut();
                knots.for_each(|knot| scale(&mut knot.receive_overhead_seconds, by));
            }),
            ("g", None, |p, by| {
                let plogp = &mut p.plogp;
                plogp.knots.iter_mut().for_each(|knot| scale(&mut knot.gap_seconds, by));
                let many = plogp.gap_by_destinations.iter_mut().chain(&mut plogp.gap_by_sources);
                let knots = many.flat_map(|many| &mut many.knots);
                knots.for_each(|knot| scale(&mut knot.gap_seconds, by));
            }),
            // Half a round trip, which refined forms and simulations take where it is the longer.
            ("RTT/2", None, |p, by| {
                for knot in &mut p.hockney_by_size {
                    scale(&mut knot.alpha_seconds, by);
                    scale(&mut knot.beta_seconds_per_byte, by);
                }
            }),
        ],
    };
    rows.push(("gamma", gamma, |p, by| {
        scale(&mut p.gamma_seconds_per_byte, by);
        let knots = p.gamma.iter_mut().flat_map(|gamma| &mut gamma.knots);
        knots.for_each(|knot| scale(&mut knot.seconds_per_byte, by));
        let start = p.memory.iter_mut().flat_map(|memory| &mut memory.combining_start_seconds);
        start.for_each(|start| scale(start, by));
    }));
    if parameters.memory.is_some() && !matches!(model.evaluator(), Evaluator::Tables) {
        rows.extend(MEMORY);
    }
    rows
}

/// What messages and copies cost ranks that share a node's memory. The slowdown is a factor of these.
const MEMORY: [(&str, Option<f64>, Scaling<Parameters>); 6] = [
    ("trip", None, |p, by| of_messages(p, |knot| scale(&mut knot.trip_seconds, by))),
    ("copy in", None, |p, by| of_messages(p, |knot| scale(&mut knot.send_seconds, by))),
    ("copy out", None, |p, by| of_messages(p, |knot| scale(&mut knot.receive_seconds, by))),
    ("local copy", None, |p, by| {
        let rows = p.memory.iter_mut().flat_map(|memory| &mut memory.copies);
        rows.flat_map(|row| &mut row.knots).for_each(|knot| scale(&mut knot.seconds, by));
    }),
    ("flags", None, |p, by| {
        for shared in shared_of(p) {
            scale(&mut shared.flag_seconds, by);
            scale(&mut shared.further_flag_seconds, by);
        }
    }),
    ("reads", None, |p, by| {
        let rows = shared_of(p).flat_map(|shared| &mut shared.reads);
        rows.flat_map(|row| &mut row.knots).for_each(|knot| scale(&mut knot.seconds, by));
    }),
];

fn shared_of(parameters: &mut Parameters) -> impl Iterator<Item = &mut SharedAccess> {
    parameters.memory.iter_mut().flat_map(|memory| &mut memory.shared)
}

fn of_messages(parameters: &mut Parameters, change: impl FnMut(&mut MemoryMessageKnot)) {
    let memory = parameters.memory.iter_mut();
    memory.flat_map(|memory| &mut memory.messages).for_each(change);
}

/// The parameters inside a node, and the port's.
fn rows_inside(
    model: Model,
    level: &InsideNode,
    fitted: bool,
) -> Vec<(&'static str, Option<f64>, ScalingInside)> {
    let mut all = Vec::new();
    for (symbol, value, scale) in rows(model, inside_parameters(level, fitted)) {
        let scale_inside: ScalingInside = Box::new(move |level, by| {
            scale(&mut level.measured, by);
            level.fitted.iter_mut().for_each(|fitted| scale(fitted, by));
        });
        all.push((inside_symbol(symbol), value, scale_inside));
    }
    let scale_port: ScalingInside = Box::new(|level, by| {
        let knots = level.port.iter_mut().flat_map(|gap| &mut gap.knots);
        knots.for_each(|knot| scale(&mut knot.gap_seconds, by));
    });
    all.push(("port", None, scale_port));
    all
}

fn inside_symbol(symbol: &'static str) -> &'static str {
    match symbol {
        "alpha" => "alpha inside",
        "beta" => "beta inside",
        "L" => "L inside",
        "o" => "o inside",
        "g" => "g inside",
        "G" => "G inside",
        "os" => "os inside",
        "or" => "or inside",
        "RTT/2" => "RTT/2 inside",
        "gamma" => "gamma inside",
        other => other,
    }
}

fn scale(estimate: &mut records::calibration::Estimate, by: f64) {
    estimate.value *= by;
    estimate.low = estimate.low.min(estimate.value);
    estimate.high = estimate.high.max(estimate.value);
}
