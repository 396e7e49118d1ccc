//! The decision function: which method is predicted to be the cheapest.
//!
//! The arg-min is exact over the candidates. Equal times go to the candidate that comes first, and
//! unsegmented comes before segmented, so that a decision does not hang on rounding.
//!
//! Ties are the other candidates that the uncertainty of the parameters does not tell apart from
//! the best: the interval of the *difference* of the two times, each parameter's error counted
//! once for both, holds 0.

mod segments;
mod switching;

pub use segments::{AUTO_LIMIT, best_segment, best_segment_of};
pub use switching::{Stretch, methods, switching_points};

use records::{Algorithm, Collective, Method, decisions::Decision};

use crate::{
    Model, Point, PredictError, Predictor,
    predict::{Sought, Spread, Way, check, equal},
};

/// Which segment sizes are candidates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Segments {
    /// These, in bytes; 0 is unsegmented.
    List(Vec<u64>),
    /// Every size from 1 byte to the whole message: of each algorithm, its best one is taken.
    Auto,
}

/// No decision can be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecideError {
    /// A candidate's time can't be predicted.
    #[error(transparent)]
    Predict(#[from] PredictError),
    /// No candidate is left.
    #[error(
        "no candidate for {} of {} bytes on {} processes: {reason}",
        .point.collective, .point.bytes, .point.procs
    )]
    NoCandidate {
        /// Where.
        point: Point,
        /// Why.
        reason: &'static str,
    },
    /// Switching points of a model whose forms have other pieces.
    #[error(
        "model {model} has no exact switching points; the models of the paper's tables have \
         (hockney, logp, loggp, plogp)"
    )]
    Pieces {
        /// Which model.
        model: Model,
    },
    /// More segments than can be searched for switching points.
    #[error("{bytes} bytes in segments of {segment_bytes} are too many; wanted at most 2^20")]
    SmallSegments {
        /// The segment size.
        segment_bytes: u64,
        /// The largest message.
        bytes: u64,
    },
    /// A grid of points that is none.
    #[error("the communicator sizes and the message sizes of a grid must ascend, with one each")]
    Grid,
    /// Simulations are too slow to try every segment size.
    #[error(
        "{collective} by '{algorithm}' is simulated, which is too slow to try every segment \
         size; list them"
    )]
    Simulated {
        /// Of which collective.
        collective: Collective,
        /// Which algorithm.
        algorithm: Algorithm,
    },
    /// The message is too large to try every segment size.
    #[error(
        "{bytes} bytes are too many to try every segment size (at most {AUTO_LIMIT}); list them"
    )]
    TooLarge {
        /// How large.
        bytes: u64,
    },
}

/// Decides among the algorithms and segment sizes; the method decided for is an own one, or, where
/// each algorithm has constants of its own, one of those that have them ([`Predictor::methods`]).
///
/// Algorithms that cannot do with the number of processes are no candidates; those without
/// segments are candidates once, whatever the sizes. Sizes of at least the
/// message are the same as 0, and splitted-binary begins at two segments.
///
/// # Errors
/// An algorithm has no closed form, or no candidate is left.
pub fn decide(
    predictor: &Predictor,
    point: Point,
    algorithms: &[Algorithm],
    segments: &Segments,
) -> Result<Decision, DecideError> {
    let mut candidates = Vec::new();
    let serving = |algorithm: &&Algorithm| {
        predictor.model().serves(point.collective, **algorithm, point.procs)
    };
    let of = |&algorithm: &Algorithm| predictor.methods(point.collective, algorithm);
    let methods: Vec<Method> = algorithms.iter().filter(serving).flat_map(of).collect();
    let best = match segments {
        Segments::Auto if predictor.is_certain() => compared(predictor, point, &methods)?,
        _ => vec![None; methods.len()],
    };
    for (method, best) in methods.into_iter().zip(best) {
        let sizes = match best {
            Some(best) => best,
            None => cuts(predictor, point, &method, segments)?,
        };
        for segment_bytes in sizes {
            let method = method.clone().with_segment(segment_bytes);
            candidates.push(Candidate::new(predictor, point, method)?);
        }
    }
    arg_min(predictor, point, candidates)
}

/// The segment sizes with which methods are candidates, where these can be compared: of each
/// closed form with segments its best one, or none if it is surely no match for another one.
fn compared(
    predictor: &Predictor,
    point: Point,
    methods: &[Method],
) -> Result<Vec<Option<Vec<u64>>>, DecideError> {
    check(point)?;
    let has_form = |method: &Method| -> Result<bool, DecideError> {
        let sought = predictor.look_up_method(point, method)?;
        Ok(matches!(sought.way, Way::Form(_)) && sought.way.segmented())
    };
    let formed = methods.iter().map(has_form).collect::<Result<Vec<_>, _>>()?;
    let of_forms = methods.iter().zip(&formed).filter(|(_, formed)| **formed);
    let of_forms: Vec<Method> = of_forms.map(|(method, _)| method.clone()).collect();
    let mut best = segments::best_of_all(predictor, point, &of_forms)?.into_iter();
    let size = |formed: bool| formed.then(|| best.next().flatten().into_iter().collect());
    Ok(formed.into_iter().map(size).collect())
}

/// The segment sizes with which a method is a candidate.
fn cuts(
    predictor: &Predictor,
    point: Point,
    method: &Method,
    segments: &Segments,
) -> Result<Vec<u64>, DecideError> {
    let sought = predictor.look_up_method(point, method)?;
    Ok(match segments {
        _ if !sought.way.segmented() => vec![0],
        Segments::List(sizes) => {
            let mut sizes: Vec<u64> = sizes.iter().map(|size| effective(point, *size)).collect();
            // From few segments to many; 0 is the whole message.
            sizes.sort_unstable_by_key(|size| (*size != 0, std::cmp::Reverse(*size)));
            sizes
        }
        Segments::Auto => best_segment_of(predictor, point, method)?.into_iter().collect(),
    })
}

/// Decides among methods that the model knows ([`Predictor::knows`]).
///
/// A segment size of at least the message is the same as none: the decision says 0 then, and a
/// method given twice, in this sense, is one candidate.
///
/// # Errors
/// A method has no closed form, or no candidate is left.
pub fn decide_among(
    predictor: &Predictor,
    point: Point,
    methods: &[Method],
) -> Result<Decision, DecideError> {
    let candidates = methods.iter().map(|method| Candidate::new(predictor, point, method.clone()));
    arg_min(predictor, point, candidates.collect::<Result<_, _>>()?)
}

/// Decides at every (procs, bytes), ascending in the order given: procs first.
///
/// # Errors
/// As [`decide`].
pub fn decide_map(
    predictor: &Predictor,
    collective: Collective,
    (procs, bytes): (&[u32], &[u64]),
    algorithms: &[Algorithm],
    segments: &Segments,
) -> Result<Vec<Decision>, DecideError> {
    let points = procs
        .iter()
        .flat_map(|&procs| bytes.iter().map(move |&bytes| Point { collective, procs, bytes }));
    points.map(|point| decide(predictor, point, algorithms, segments)).collect()
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
    let Point { collective, procs, .. } = point;
    let serves = |algorithm| predictor.model().serves(collective, algorithm, procs);
    let seconds = |method: &Method| -> Result<f64, DecideError> {
        if !method.algorithm().is_none_or(serves) {
            return Ok(f64::INFINITY);
        }
        let sought = predictor.look_up_method(point, method)?;
        match sought.is_candidate() {
            true => Ok(predictor.seconds(&sought)?),
            false => Ok(f64::INFINITY),
        }
    };
    methods.iter().map(seconds).collect()
}

/// The times of all that may be decided for, in the order given. What is simulated comes last, and
/// is left out where it surely takes longer than another and no parameter is uncertain.
fn timed(
    predictor: &Predictor,
    candidates: Vec<Candidate>,
) -> Result<Vec<(Method, Spread)>, DecideError> {
    let is_form = |candidate: &Candidate| matches!(candidate.sought.way, Way::Form(_));
    let mut spreads: Vec<Option<Spread>> = Vec::with_capacity(candidates.len());
    for candidate in &candidates {
        let spread = is_form(candidate).then(|| predictor.spread(&candidate.sought));
        spreads.push(spread.transpose()?);
    }
    let values = spreads.iter().flatten().map(|spread| spread.value);
    let mut least = values.fold(f64::INFINITY, f64::min);
    for (candidate, spread) in candidates.iter().zip(&mut spreads) {
        let sought = &candidate.sought;
        let hopeless = predictor.is_certain() && sought.surely_exceeds(least * (1.0 + 1e-9));
        if spread.is_none() && !hopeless {
            let simulated = predictor.spread(sought)?;
            least = least.min(simulated.value);
            *spread = Some(simulated);
        }
    }
    let methods = candidates.into_iter().map(|candidate| candidate.method);
    Ok(methods.zip(spreads).filter_map(|(method, spread)| Some((method, spread?))).collect())
}

struct Candidate<'a> {
    method: Method,
    sought: Sought<'a>,
}

impl<'a> Candidate<'a> {
    fn new(predictor: &'a Predictor, point: Point, method: Method) -> Result<Self, PredictError> {
        let sought = predictor.look_up_method(point, &method)?;
        let segment_bytes = effective(point, method.segment_bytes());
        let method = method.with_segment(segment_bytes);
        Ok(Candidate { method, sought })
    }
}

/// A segment of the whole message is none.
fn effective(point: Point, segment_bytes: u64) -> u64 {
    if segment_bytes >= point.bytes { 0 } else { segment_bytes }
}

fn arg_min(
    predictor: &Predictor,
    point: Point,
    candidates: Vec<Candidate>,
) -> Result<Decision, DecideError> {
    check(point)?;
    let none_given = candidates.is_empty();
    let mut kept: Vec<Candidate> = Vec::with_capacity(candidates.len());
    for candidate in candidates {
        let given_before = kept.iter().any(|known| known.method == candidate.method);
        if candidate.sought.is_candidate() && !given_before {
            kept.push(candidate);
        }
    }
    let mut timed = timed(predictor, kept)?;
    let least = timed.iter().map(|(_, spread)| spread.value).fold(f64::INFINITY, f64::min);
    let Some(first) = timed.iter().position(|(_, spread)| equal(spread.value, least)) else {
        let reason = match none_given {
            true => "none was given",
            false => "splitted-binary needs two segments and a message of 2 bytes",
        };
        return Err(DecideError::NoCandidate { point, reason });
    };
    let (method, best) = timed.remove(first);
    timed.retain(|(_, spread)| spread.may_be_as_cheap_as(&best));
    timed.sort_by(|(_, a), (_, b)| a.value.total_cmp(&b.value));
    let prediction = best.prediction();
    Ok(Decision {
        collective: point.collective,
        model: predictor.model().name().into(),
        procs: point.procs,
        bytes: point.bytes,
        method,
        seconds: prediction.seconds,
        low_seconds: prediction.low,
        high_seconds: prediction.high,
        ties: timed.into_iter().map(|(method, _)| method).collect(),
        extrapolated: !predictor.reach().covers(point),
    })
}
