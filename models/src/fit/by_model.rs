//! Parameters of the models of the paper's tables, each fitted through its own closed forms.
//!
//! # What is computed
//! For each model the least sum of Huber's function of ln(measured / predicted) over [`SPREAD`], over all times
//! of collectives for which it has a closed form. Searched for are logarithms of its parameters; a prior
//! of [`PARAMETER_SPREAD`] holds them near the joint fit's where no time tells them. PLogP's g(m) is a line
//! between knots; its time per byte from one knot to the next differs from that of the piece before by a
//! factor of about e where no time tells more. Its os and or are 0: the tables ask for little of them.
//! Combining costs what the joint fit says. There are no intervals.

use records::calibration::{self, Estimate, Parameters};

use super::joint::{JobTime, PARAMETER_SPREAD, SPREAD};
use crate::{
    Forms, Model, NetworkModel, Predictor,
    minimise::{huber, minimise, with_slopes},
    parameters::{
        Hockney, Knot, LogGp, MessageCosts, Network, PLogP, ParametersError, PointToPointParameters,
    },
    predict::Evaluation,
};

/// Where PLogP's g(m) may bend.
const KNOTS: [u64; 6] = [0, 1 << 10, 1 << 14, 1 << 18, 1 << 22, 1 << 26];
/// Spread of the logarithm of the time per byte from one of its pieces to the next.
const BEND: f64 = 1.0;
/// Start-up times are looked for from here at least, in seconds: no network's are shorter.
pub const MIN_SECONDS: f64 = 1e-9;
/// Times per byte are looked for from here at least, in seconds per byte.
pub const MIN_SECONDS_PER_BYTE: f64 = 1e-13;

/// `joint` with Hockney's, LogGP's and PLogP's parameters fitted through their own forms, as far as
/// there are times for these.
///
/// # Errors
/// `joint` holds no parameters.
pub fn by_model(times: &[JobTime], joint: &Parameters) -> Result<Parameters, ParametersError> {
    let mut parameters = joint.clone();
    let hockney = &joint.hockney;
    let start = hockney.alpha_seconds.value.max(MIN_SECONDS);
    let per_byte = hockney.beta_seconds_per_byte.value.max(MIN_SECONDS_PER_BYTE);
    if let Some(found) = fitted(Model::Hockney, times, joint, &[start, per_byte])? {
        parameters.hockney = calibration::HockneyEstimates {
            alpha_seconds: Estimate::exact(found[0]),
            beta_seconds_per_byte: Estimate::exact(found[1]),
        };
    }
    let of_loggp = [start / 2.0, start / 4.0, start / 2.0, per_byte];
    if let Some(found) = fitted(Model::LogGp, times, joint, &of_loggp)? {
        parameters.loggp = calibration::LogGpEstimates {
            latency_seconds: Estimate::exact(found[0]),
            overhead_seconds: Estimate::exact(found[1]),
            gap_seconds: Estimate::exact(found[2]),
            gap_seconds_per_byte: Estimate::exact(found[3]),
        };
    }
    let mut of_plogp = vec![start / 2.0, start / 2.0];
    of_plogp.resize(1 + KNOTS.len(), per_byte);
    if let Some(found) = fitted(Model::PLogP, times, joint, &of_plogp)? {
        let knots = knots(&found).map(|knot| calibration::PLogPKnot {
            bytes: knot.bytes,
            send_overhead_seconds: Estimate::exact(0.0),
            receive_overhead_seconds: Estimate::exact(0.0),
            gap_seconds: Estimate::exact(knot.costs.gap),
        });
        let latency = Estimate::exact(found[0]);
        parameters.plogp = calibration::PLogPEstimates::new(latency, knots.collect());
    }
    parameters.derived.clear();
    Ok(parameters)
}

/// The parameters of a model in the order of [`network`], looked for from `start`; none where it has
/// no form for any of the times.
fn fitted(
    model: Model,
    times: &[JobTime],
    joint: &Parameters,
    start: &[f64],
) -> Result<Option<Vec<f64>>, ParametersError> {
    let predictor = Predictor::new(model, Forms::Corrected, joint)?;
    let combining = Network::new(model, joint)?.combining;
    let known = |time: &JobTime| {
        let evaluation = predictor.look_up_method(time.point, &time.method).ok()?;
        let sends = evaluation.seconds_on(&evaluation.set.network).ok()? > 0.0;
        (sends && evaluation.is_candidate() && time.seconds > 0.0)
            .then_some((time.seconds, evaluation))
    };
    let known: Vec<(f64, Evaluation<'_>)> = times.iter().filter_map(known).collect();
    if known.is_empty() {
        return Ok(None);
    }
    let parameters = model.network();
    let has_knots = parameters == NetworkModel::PLogP;
    let values = |at: &[f64]| -> Vec<f64> {
        start.iter().zip(at).map(|(start, moved)| start * moved.exp()).collect()
    };
    let sum = |at: &[f64]| {
        let Ok(model) = network(parameters, &values(at)) else { return f64::INFINITY };
        let network = Network { model, combining: combining.clone(), memory: None };
        let cost = |(measured, evaluation): &(f64, Evaluation<'_>)| {
            let predicted = evaluation.seconds_on(&network).unwrap_or(f64::INFINITY);
            huber((measured / predicted).ln() / SPREAD).0
        };
        known.iter().map(cost).sum::<f64>() + prior(has_knots, at)
    };
    let found = minimise(vec![0.0; start.len()], |at| with_slopes(sum, at));
    Ok(Some(values(&found)))
}

/// What the logarithms of the parameters' changes cost; pieces of PLogP's g(m) are held near each other.
fn prior(has_knots: bool, at: &[f64]) -> f64 {
    const FIRST_PIECE: usize = 2;
    let cost = |(place, moved): (usize, &f64)| match has_knots && place > FIRST_PIECE {
        true => ((moved - at[place - 1]) / BEND).powi(2) / 2.0,
        false => (moved / PARAMETER_SPREAD).powi(2) / 2.0,
    };
    at.iter().enumerate().map(cost).sum()
}

/// Hockney's alpha and beta; LogGP's L, o, g and G; PLogP's L, g(0), and its times per byte from
/// knot to knot.
fn network(model: NetworkModel, values: &[f64]) -> Result<PointToPointParameters, ParametersError> {
    Ok(match model {
        NetworkModel::Hockney => {
            PointToPointParameters::Hockney(Hockney { alpha: values[0], beta: values[1] })
        }
        NetworkModel::LogGp | NetworkModel::LogP => PointToPointParameters::LogGp(LogGp {
            latency: values[0],
            overhead: values[1],
            gap: values[2],
            gap_per_byte: values[3],
        }),
        NetworkModel::PLogP => {
            let knots: Vec<Knot> = knots(values).collect();
            PointToPointParameters::PLogP(PLogP::new(values[0], &knots)?)
        }
    })
}

fn knots(values: &[f64]) -> impl Iterator<Item = Knot> {
    let mut gap = values[1];
    KNOTS.iter().enumerate().map(move |(place, &bytes)| {
        if place > 0 {
            gap += values[place + 1] * (bytes - KNOTS[place - 1]) as f64;
        }
        Knot { bytes, costs: MessageCosts { send: 0.0, receive: 0.0, gap } }
    })
}

#[cfg(test)]
mod tests {
    use rand_distr::{Distribution as _, Normal};
    use records::{Collective, Method, Point};

    use super::*;
    use crate::fit::joint;

    /// Times by a model's own forms, with noise of 5 %.
    fn made(model: Model, parameters: &Parameters, seed: u128) -> Vec<JobTime> {
        let predictor = Predictor::new(model, Forms::Corrected, parameters).unwrap();
        let noise = Normal::new(0.0, 0.05).unwrap();
        let mut random = rand_pcg::Pcg64Mcg::new(seed);
        let mut times = Vec::new();
        for (collective, name) in [
            (Collective::Bcast, "native:openmpi:linear"),
            (Collective::Bcast, "native:openmpi:binomial"),
            (Collective::Bcast, "native:openmpi:pipeline"),
        ] {
            for procs in [4, 16, 64] {
                for bytes in (0..10).map(|power| 1_u64 << (2 * power)) {
                    let method: Method = name.parse().unwrap();
                    let point = Point::flat(collective, procs, bytes);
                    let error: f64 = noise.sample(&mut random);
                    let seconds = predictor.predict_method_seconds(point, &method).unwrap();
                    let seconds = seconds * error.exp();
                    times.push(JobTime { point, method, seconds, job: 0 });
                }
            }
        }
        times
    }

    /// Times that LogGP made are met by LogGP's parameters; what a message takes in all is found again.
    #[test]
    fn each_model_is_fitted_through_its_own_forms() {
        let exact = Estimate::exact;
        for seed in 1..4 {
            let mut truth = crate::presets::preset("frodo").unwrap().measured;
            truth.loggp = calibration::LogGpEstimates {
                latency_seconds: exact(2e-6),
                overhead_seconds: exact(5e-7),
                gap_seconds: exact(4e-6),
                gap_seconds_per_byte: exact(1e-9),
            };
            let times = made(Model::LogGp, &truth, seed);
            let start = joint(&times).unwrap().parameters();
            let found = by_model(&times, &start).unwrap();
            let near = |found: f64, truth: f64| (found / truth).ln().abs() < 0.15;
            let loggp = &found.loggp;
            assert!(near(loggp.gap_seconds.value, 4e-6), "seed {seed}: {loggp:?}");
            assert!(near(loggp.gap_seconds_per_byte.value, 1e-9), "seed {seed}: {loggp:?}");
            let message = loggp.latency_seconds.value + 2.0 * loggp.overhead_seconds.value;
            assert!(near(message, 3e-6), "seed {seed}: {loggp:?}");
            assert!(found.hockney != start.hockney && found.plogp != start.plogp);
        }
    }

    #[test]
    fn without_times_for_a_form_the_joint_fit_stays() {
        let parameters = crate::presets::preset("frodo").unwrap().measured;
        let time = JobTime {
            point: Point::flat(Collective::Allgather, 8, 1024),
            method: "native:openmpi:ring".parse().unwrap(),
            seconds: 1e-3,
            job: 0,
        };
        let found = by_model(&[time], &parameters).unwrap();
        assert_eq!((found.loggp, found.plogp), (parameters.loggp, parameters.plogp));
    }
}
