//! From raw observations between two ranks to the parameters of every model.
//!
//! # What is computed
//! All from one centre per (kind, message size, train length), the trimmed mean of its visits' medians
//! (`sample.rs`), the clock's own cost subtracted once:
//!
//! - PLogP: os(m) and or(m) are these centres, up to the size from which a call waits for the other
//!   side (rendezvous), recognised by its jump; beyond, the line through the sizes below goes on.
//!   g(m) = (tot(n2) - tot(n1)) / (n2 - n1) from the
//!   shortest and longest train of that size: the difference of two totals, which a sender that
//!   buffers cannot flatter; taken within visits where these timed both, since the machine drifts. Without trains g(m) = RTT(m) - RTT(0) + g(0). L = RTT(0)/2 - g(0).
//! - LogGP: from PLogP as Kielmann, Bal and Verstoep (2000) do
//!   ([`LinearGap`](crate::parameters::LinearGap)), save that G is the slope of a robust line
//!   through g(m) at the sizes above the last protocol break, since g(m) / m is too great by g / m,
//!   and that the time of one byte, which Kielmann's L_p + g(1) is, is taken as RTT(0)/2 + G: with
//!   g(1) - g(0) measured in trains the errors of four medians would be in an L that is a third of
//!   the round trip (logp_mpi takes it from round trips too: its g(m) is RTT(m) - RTT(0) + g(0)).
//!   Where os(1) + or(1) is more than a message takes, L is 0 and L + 2 o still the message's time.
//!   Beside it stands LogGP measured by itself, by Netgauge's exchanges (Hoefler, Lichei and Rehm,
//!   2007): o from messages so far apart that each finds the way free, L from the round trip, g and
//!   G from the line through the gaps of trains over all sizes.
//! - Hockney: alpha is the one-way time of an empty message, RTT(0)/2; beta the slope of a robust
//!   line through the one-way times RTT(m) - RTT(0)/2 at the sizes at which G is taken. One line
//!   through all sizes would be neither: what a network does to small messages is no line. As
//!   functions of m they are the line through the round trips next to m.
//! - gamma, g(m, k), and what is fitted to collectives: [`GroupSamples`].
//! - Constants of single algorithms: [`algorithms`](algorithms()).
//! - One fit to collectives of known algorithms alone, as imported runs hold them: [`joint()`]; of
//!   each model of the tables through its own forms: [`by_model()`]; of what ranks of one node do to each
//!   other: [`on_one_node()`].
//!
//! # Intervals
//! Percentiles (2.5 and 97.5 %) of the bootstrap over visits and over jobs (`sample.rs`): all
//! centres are drawn anew and all parameters computed from them, so that an interval holds what
//! one centre's error does to everything behind it. The generator's seed is fixed: the same record gives the same file.

mod algorithms;
mod breaks;
mod by_model;
mod centres;
mod direct;
mod drift;
mod error;
mod estimate;
mod fitted;
mod frames;
mod groups;
mod joint;
mod lines;
mod memory;
mod node;
mod places;
mod sample;
mod samples;
mod streams;
mod words;

use records::{
    calibration::{self, Estimate, HockneyKnot, PLogPKnot, Parameters, ProtocolChange},
    observation::PointToPoint,
};
use statistics::percentile_interval;

use crate::parameters::LogGp;
pub use algorithms::{AlgorithmFits, MethodTime, algorithms};
pub use by_model::{MIN_SECONDS, MIN_SECONDS_PER_BYTE, by_model};
pub use error::FitError;
use estimate::{CentreIndices, ParameterValues};
pub use fitted::{CollectiveFit, GAP_PER_BYTE_MEASURED, LATENCY_MEASURED};
pub use groups::GroupSamples;
pub use joint::{
    AlgorithmFactor, FACTOR_SPREAD, JobTime, JointFit, NothingKnown, PARAMETER_SPREAD, SPREAD,
    Shapes, joint, joint_values, medians_over_jobs,
};
pub use memory::SharedMemoryTimes;
pub use node::{NodeFit, OverRanks, on_one_node};
use samples::PairSamples;
pub use streams::{PortShare, StreamFit, streams};

/// Redrawings: enough for the 2.5th percentile to have 50 below it.
const REDRAWINGS: usize = 2000;
const SEED: u64 = 0xC011_B121;

/// What the observations say.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// Of every model.
    pub parameters: Parameters,
    /// What a reader must know: sizes left out, values clamped, protocol breaks, ...
    pub warnings: Vec<String>,
}

/// Fits the parameters of every model to the observations of one record, in any order and over
/// any pairs of ranks.
///
/// Warm-ups are never used, late observations only where fewer than 5 were in time, and those during
/// which others took too much of the processors where there are fewer than 5 with the late ones.
///
/// # Errors
/// Names the kind and size that is missing: needed are round trips and trains of two lengths
/// at 0 bytes, both overheads at one size at least, and round trips at one more size.
pub fn fit(observations: &[PointToPoint]) -> Result<Fit, FitError> {
    fit_by(observations, REDRAWINGS)
}

/// The parameters without intervals, at once: to know about how long something will take.
///
/// # Errors
/// As [`fit`].
pub fn fit_values(observations: &[PointToPoint]) -> Result<Parameters, FitError> {
    Ok(fit_by(observations, 0)?.parameters)
}

fn fit_by(observations: &[PointToPoint], redrawings: usize) -> Result<Fit, FitError> {
    let mut warnings = Vec::new();
    let samples = PairSamples::collect(observations, &mut warnings)?;
    let centres = samples.centres();
    let plan = CentreIndices::new(&centres, &mut warnings)?;
    let values = plan.estimate(&centres);
    plan.judge(&values, &mut warnings);
    warnings.extend(drift::disturbance(samples.disturbed(), "between two ranks"));
    warnings.extend(drift::note(observations));
    let parameters = with_intervals(&plan, &samples, &values, redrawings);
    Ok(Fit { parameters, warnings })
}

/// What `draw` gives, drawn so many times from one seed.
fn redraw<T>(times: usize, mut draw: impl FnMut(&mut rand_pcg::Pcg64Mcg) -> T) -> Vec<T> {
    let mut random = rand_pcg::Pcg64Mcg::new(u128::from(SEED));
    (0..times).map(|_| draw(&mut random)).collect()
}

/// One number of the drawings, with its 95 % interval.
fn percentiles<T>(values: &T, redrawn: &[T], of: &dyn Fn(&T) -> f64) -> Estimate {
    let value = of(values);
    let drawn: Vec<f64> = redrawn.iter().map(of).collect();
    let [low, high] = percentile_interval(drawn, 0.95).unwrap_or([value; 2]);
    // A skewed bootstrap may leave the value itself outside.
    Estimate { value, low: low.min(value), high: high.max(value) }
}

/// Redraws the centres, and takes the percentiles of every parameter.
fn with_intervals(
    plan: &CentreIndices,
    samples: &PairSamples,
    values: &ParameterValues,
    redrawings: usize,
) -> Parameters {
    let redrawn: Vec<ParameterValues> =
        redraw(redrawings, |random| plan.estimate(&samples.redraw(random)));
    let estimate = |of: &dyn Fn(&ParameterValues) -> f64| percentiles(values, &redrawn, of);
    let knots = values.knots.iter().enumerate().map(|(index, knot)| PLogPKnot {
        bytes: knot.bytes,
        send_overhead_seconds: estimate(&|values| values.knots[index].costs.send),
        receive_overhead_seconds: estimate(&|values| values.knots[index].costs.receive),
        gap_seconds: estimate(&|values| values.knots[index].costs.gap),
    });
    let mut parameters = Parameters::new(
        calibration::HockneyEstimates {
            alpha_seconds: estimate(&|values| values.hockney.alpha),
            beta_seconds_per_byte: estimate(&|values| values.hockney.beta),
        },
        calibration::LogGpEstimates {
            latency_seconds: estimate(&|values| values.loggp.latency),
            overhead_seconds: estimate(&|values| values.loggp.overhead),
            gap_seconds: estimate(&|values| values.loggp.gap),
            gap_seconds_per_byte: estimate(&|values| values.loggp.gap_per_byte),
        },
        calibration::PLogPEstimates::new(estimate(&|values| values.latency), knots.collect()),
    );
    parameters.loggp_direct = values.direct.is_some().then(|| {
        let direct = |of: fn(&LogGp) -> f64| {
            estimate(&move |values: &ParameterValues| values.direct.as_ref().map_or(0.0, of))
        };
        calibration::LogGpEstimates {
            latency_seconds: direct(|loggp| loggp.latency),
            overhead_seconds: direct(|loggp| loggp.overhead),
            gap_seconds: direct(|loggp| loggp.gap),
            gap_seconds_per_byte: direct(|loggp| loggp.gap_per_byte),
        }
    });
    let by_size = plan.round_trips.iter().enumerate().map(|(index, &(bytes, _))| HockneyKnot {
        bytes,
        alpha_seconds: estimate(&|values| values.hockney_by_size[index].alpha),
        beta_seconds_per_byte: estimate(&|values| values.hockney_by_size[index].beta),
    });
    parameters.hockney_by_size = by_size.collect();
    parameters.protocol_changes = plan
        .protocol_changes()
        .map(|(below_bytes, above_bytes)| ProtocolChange { below_bytes, above_bytes })
        .collect();
    parameters.derived = vec!["loggp from plogp".into()];
    parameters
}
