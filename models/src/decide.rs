//! The decision function: which method is predicted to be the cheapest.
//!
//! The arg-min is exact over the candidates. Equal times go to the candidate that comes first, and
//! unsegmented comes before segmented, so that a decision does not hang on rounding.
//!
//! Ties are the other candidates that the uncertainty of the parameters does not tell apart from
//! the best: the interval of the *difference* of the two times, each parameter's error counted
//! once for both, holds 0.

mod compared;
mod convex;
mod error;
mod outline;
mod segments;
mod switching;

pub use error::{AUTO_LIMIT, DecideError};
pub use outline::{Outline, OutlinedChoice};
pub use segments::best_segment;
pub use switching::{SwitchingRange, methods, switching_points};

use records::{Algorithm, Method, calibration::Estimate, choices::Chosen};

use crate::{
    Point, PredictError, Predictor,
    predict::{CostSource, Evaluation, Spread, check, equal},
};

/// Where nodes are simulated, what takes so many times as long as the cheapest is no tie with it, whatever the
/// parameters' intervals: evaluating these takes longer than all the rest.
const FARTHEST_TIE: f64 = 1.5;
/// At the sizes of an outline, what takes so many times as long as the cheapest is given up: that tells enough
/// of most of the sizes between.
const FARTHEST_IN_OUTLINE: f64 = 3.0;

/// Which segment sizes are candidates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Segments {
    /// These, in bytes; 0 is unsegmented.
    List(Vec<u64>),
    /// Every size from 1 byte to the whole message: of each algorithm, its best one is taken.
    Auto,
}

/// Decides among the algorithms and segment sizes; the method decided for is an own one, or, where
/// each algorithm has constants of its own, one of those that have them ([`Predictor::methods`]).
///
/// Algorithms that cannot do with the number of processes are no candidates; those without
/// segments are candidates once, whatever the sizes. Sizes of at least the
/// message are the same as 0, and splitted-binary begins at two segments.
///
/// # Errors
/// The model cannot predict an algorithm, or no candidate is left.
pub fn decide(
    predictor: &Predictor,
    point: Point,
    algorithms: &[Algorithm],
    segments: &Segments,
) -> Result<Chosen, DecideError> {
    let predictor = predictor.at(point.layout);
    let mut candidates = Vec::new();
    let serving = |algorithm: &&Algorithm| {
        predictor.model().serves(point.collective, **algorithm, point.procs())
    };
    let of = |&algorithm: &Algorithm| predictor.methods(point.collective, algorithm);
    let methods: Vec<Method> = algorithms.iter().filter(serving).flat_map(of).collect();
    let best = match segments {
        Segments::Auto => compared::compared(predictor, point, &methods)?,
        _ => vec![None; methods.len()],
    };
    for (method, best) in methods.into_iter().zip(best) {
        let sizes = match best {
            Some(best) => best,
            None => cuts(predictor, point, &method, segments)?,
        };
        for segment_bytes in sizes {
            let method = method.clone().with_segment(segment_bytes);
            candidates.push(CandidateMethod::new(predictor, point, method)?);
        }
    }
    Ok(arg_min(predictor, point, candidates, &Outline::default())?.chosen)
}

/// The segment sizes with which a method is a candidate.
fn cuts(
    predictor: &Predictor,
    point: Point,
    method: &Method,
    segments: &Segments,
) -> Result<Vec<u64>, DecideError> {
    let evaluation = predictor.look_up_method(point, method)?;
    Ok(match segments {
        _ if !evaluation.source.segmented() => vec![0],
        Segments::List(sizes) => {
            let mut sizes: Vec<u64> = sizes.iter().map(|size| point.segment(*size)).collect();
            // From few segments to many; 0 is the whole message.
            sizes.sort_unstable_by_key(|size| (*size != 0, std::cmp::Reverse(*size)));
            sizes
        }
        Segments::Auto => best_segment(predictor, point, method)?.into_iter().collect(),
    })
}

/// Decides among methods that the model knows ([`Predictor::knows`]).
///
/// A segment size of at least the message is the same as none: the decision says 0 then, and a
/// method given twice, in this sense, is one candidate.
///
/// # Errors
/// The model cannot predict a method, or no candidate is left.
pub fn decide_among(
    predictor: &Predictor,
    point: Point,
    methods: &[Method],
) -> Result<Chosen, DecideError> {
    Ok(decide_near(predictor, point, methods, &Outline::default())?.chosen)
}

/// As [`decide_among`], where times at sizes around are known: of a long call on many nodes what takes far
/// longer by these is not simulated. With the times that were found, for the outline of other sizes.
///
/// # Errors
/// As [`decide_among`].
pub fn decide_near(
    predictor: &Predictor,
    point: Point,
    methods: &[Method],
    outline: &Outline,
) -> Result<OutlinedChoice, DecideError> {
    let predictor = predictor.at(point.layout);
    let candidates =
        methods.iter().map(|method| CandidateMethod::new(predictor, point, method.clone()));
    arg_min(predictor, point, candidates.collect::<Result<_, _>>()?, outline)
}

/// Seconds by each method; infinite where it is no candidate.
///
/// # Errors
/// A method has no prediction there.
pub(crate) fn seconds_of(
    predictor: &Predictor,
    point: Point,
    methods: &[Method],
) -> Result<Vec<f64>, DecideError> {
    let Point { collective, layout, .. } = point;
    let serves = |algorithm| predictor.model().serves(collective, algorithm, layout.procs());
    let seconds = |method: &Method| -> Result<f64, DecideError> {
        if !method.algorithm().is_none_or(serves) {
            return Ok(f64::INFINITY);
        }
        let evaluation = predictor.look_up_method(point, method)?;
        match evaluation.is_candidate() {
            true => Ok(evaluation.seconds()?),
            false => Ok(f64::INFINITY),
        }
    };
    methods.iter().map(seconds).collect()
}

/// The times of the cheapest and of all that may be ties with it, in the order given; `values` are those of
/// the candidates, and `schedules` the places of the first with the same schedule.
fn timed(
    predictor: &Predictor,
    point: Point,
    (candidates, schedules): (Vec<CandidateMethod>, &[usize]),
    values: Vec<f64>,
) -> Result<Vec<(Method, Spread)>, DecideError> {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let limit = tie_limit(predictor, least);
    let Some(first) = values.iter().position(|value| *value == least) else {
        return Ok(Vec::new());
    };
    let best = candidates[first].evaluation.spread(least)?;
    let mut known = vec![(schedules[first], best)];
    let mut timed = Vec::new();
    for (place, (candidate, value)) in candidates.into_iter().zip(values).enumerate() {
        if place == first {
            timed.push((candidate.evaluation.made(point, candidate.method), best));
        } else if value.is_finite()
            && value <= limit
            && may_be_tie(&candidate.evaluation, value, &best)
        {
            let spread = match known.iter().find(|(of, _)| *of == schedules[place]) {
                Some((_, spread)) => *spread,
                None => candidate.evaluation.spread(value)?,
            };
            known.push((schedules[place], spread));
            timed.push((candidate.evaluation.made(point, candidate.method), spread));
        }
    }
    Ok(timed)
}

/// See [`Predictor::tie_limit`]; on nodes, what takes [`FARTHEST_TIE`] times as long is none either.
fn tie_limit(predictor: &Predictor, seconds: f64) -> f64 {
    let limit = predictor.tie_limit(seconds);
    match predictor.sees_nodes() {
        true => limit.min(FARTHEST_TIE * seconds),
        false => limit,
    }
}

/// Their times; infinite where one is surely no tie with the cheapest, known without simulating all of it.
fn values(
    predictor: &Predictor,
    point: Point,
    (candidates, schedules): (&[CandidateMethod], &[usize]),
    outline: &Outline,
) -> Result<Vec<f64>, DecideError> {
    let mut values = vec![f64::INFINITY; candidates.len()];
    let is_form =
        |place: &usize| matches!(candidates[*place].evaluation.source, CostSource::Form(_));
    let (forms, mut simulated): (Vec<usize>, Vec<usize>) = (0..candidates.len()).partition(is_form);
    for place in forms {
        values[place] = candidates[place].evaluation.seconds()?;
    }
    let of_forms = values.iter().copied().fold(f64::INFINITY, f64::min);
    let mut left_out = Vec::new();
    if let Some(first) = values.iter().position(|value| value.is_finite() && *value == of_forms) {
        let best = candidates[first].evaluation.spread(of_forms)?;
        let is_no_tie = |place: &usize| {
            let evaluation = &candidates[*place].evaluation;
            evaluation.surely_exceeds(tie_limit(predictor, of_forms))
                || evaluation.is_surely_no_tie(&best)
        };
        (left_out, simulated) = simulated.into_iter().partition(is_no_tie);
    }
    // What takes longer than what was simulated before is soon given up.
    let is_far = predictor.takes_fewer_nodes(point.layout);
    let told = |one: &CandidateMethod| {
        let told = is_far.then(|| outline.seconds(&one.method, point.bytes));
        told.flatten()
    };
    let told: Vec<Option<f64>> = candidates.iter().map(told).collect();
    let guess = |place: usize| told[place].unwrap_or_else(|| candidates[place].evaluation.guess());
    let guesses: Vec<f64> = (0..candidates.len()).map(guess).collect();
    // Those of an outline and those of forms are not to be compared.
    simulated.sort_by(|&one, &other| {
        let key = |place: usize| (told[place].is_none(), guesses[place]);
        let ((one_form, one), (other_form, other)) = (key(one), key(other));
        one_form.cmp(&other_form).then(one.total_cmp(&other))
    });
    let mut known = vec![None; candidates.len()];
    let mut least = of_forms;
    for places in [simulated, left_out] {
        for place in places {
            if told[place].is_some_and(|seconds| seconds > FARTHEST_TIE * least) {
                continue;
            }
            let evaluation = &candidates[place].evaluation;
            if let Some(seconds) = known[schedules[place]] {
                values[place] = seconds;
                continue;
            }
            let limit = match is_far && !outline.is_known() {
                true => FARTHEST_IN_OUTLINE * least,
                false => tie_limit(predictor, least),
            };
            values[place] = evaluation.seconds_up_to(limit)?;
            known[schedules[place]] = Some(values[place]);
            least = least.min(values[place]);
        }
        // What is no tie with the cheapest form may be one with what is cheaper still.
        if least == of_forms {
            break;
        }
    }
    Ok(values)
}

/// Of each candidate the place of the first one whose schedule is the same: what is simulated of one holds for all.
fn first_of_same_schedule(candidates: &[CandidateMethod]) -> Vec<usize> {
    let is_same = |one: usize, other: usize| {
        candidates[one].evaluation.is_same_as(&candidates[other].evaluation)
    };
    let first = |place| (0..place).find(|&first| is_same(first, place)).unwrap_or(place);
    (0..candidates.len()).map(first).collect()
}

/// Whether it is worth while to evaluate a time at the ends of the parameters' intervals. What is
/// simulated without nodes is bounded there first, which takes a hundredth of the time.
fn may_be_tie(evaluation: &Evaluation, value: f64, best: &Spread) -> bool {
    matches!(evaluation.source, CostSource::Form(_))
        || evaluation.set.levels.is_some()
        || evaluation.min_spread(value).may_be_as_cheap_as(best)
}

struct CandidateMethod<'a> {
    method: Method,
    evaluation: Evaluation<'a>,
}

impl<'a> CandidateMethod<'a> {
    fn new(predictor: &'a Predictor, point: Point, method: Method) -> Result<Self, PredictError> {
        let evaluation = predictor.look_up_method(point, &method)?;
        let segment_bytes = point.segment(method.segment_bytes());
        let method = method.with_segment(segment_bytes);
        Ok(CandidateMethod { method, evaluation })
    }
}

fn arg_min(
    predictor: &Predictor,
    point: Point,
    candidates: Vec<CandidateMethod>,
    outline: &Outline,
) -> Result<OutlinedChoice, DecideError> {
    check(point)?;
    let none_given = candidates.is_empty();
    let mut kept: Vec<CandidateMethod> = Vec::with_capacity(candidates.len());
    for candidate in candidates {
        let given_before = kept.iter().any(|known| known.method == candidate.method);
        if candidate.evaluation.is_candidate() && !given_before {
            kept.push(candidate);
        }
    }
    let schedules = first_of_same_schedule(&kept);
    let values = values(predictor, point, (&kept, &schedules), outline)?;
    let times = match predictor.takes_fewer_nodes(point.layout) {
        true => outline::times(kept.iter().map(|one| &one.method), &values),
        false => Vec::new(),
    };
    let mut timed = timed(predictor, point, (kept, &schedules), values)?;
    let least = timed.iter().map(|(_, spread)| spread.value).fold(f64::INFINITY, f64::min);
    let Some(first) = timed.iter().position(|(_, spread)| equal(spread.value, least)) else {
        let reason = match none_given {
            true => "there is none to choose from",
            false => {
                "splitted-binary needs two segments and a message of 2 bytes, circulant as many segments as streams"
            }
        };
        return Err(DecideError::NoCandidate { point, reason });
    };
    let (method, best) = timed.remove(first);
    timed.retain(|(_, spread)| spread.may_be_as_cheap_as(&best));
    timed.sort_by(|(_, a), (_, b)| a.value.total_cmp(&b.value));
    let Estimate { value, low, high } = best.estimate();
    let chosen = Chosen {
        interval_seconds: Some([low, high]),
        ties: timed.into_iter().map(|(method, _)| method).collect(),
        extrapolated: !predictor.reach().covers(point),
        ..Chosen::predicted(point, predictor.model().name(), method, value)
    };
    Ok(OutlinedChoice { chosen, times })
}

#[cfg(test)]
mod tests;
