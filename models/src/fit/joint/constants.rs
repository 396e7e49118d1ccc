//! What was fitted, as parameters of all models and as constants of single algorithms.

use records::calibration::{self, AlgorithmFit, Estimate, InsideNode, Parameters, TimedPoint};

use super::{AlgorithmFactor, JobTime, JointFit, medians_over_jobs};
use crate::{
    Model,
    fit::{MethodTime, NodeFit, OverRanks, algorithms::algorithm_fit, on_one_node},
};

impl JointFit {
    /// What was fitted between nodes, as parameters of all models: messages take alpha + beta m in each of them, and
    /// follow each other by that.
    pub fn parameters(&self) -> Parameters {
        let mut parameters = of_messages(self.start, self.per_byte);
        parameters.gamma_seconds_per_byte = self.combining;
        parameters
    }

    /// What was fitted inside nodes, as parameters of all models; nothing where that is not known.
    pub fn inside_node(&self) -> Option<InsideNode> {
        let [start, per_byte] = self.inside?;
        let mut measured = of_messages(start, per_byte);
        measured.gamma_seconds_per_byte = self.combining;
        Some(InsideNode { measured, fitted: None, fits: Vec::new(), port: Vec::new() })
    }

    /// What ranks of one node do to each other, of the same times; see [`on_one_node`].
    pub fn node(&self, times: &[JobTime], over: OverRanks) -> Option<NodeFit> {
        let between = self.parameters();
        match self.inside_node() {
            Some(inside) => on_one_node(times, over, &inside.measured, Some(&between)),
            None => on_one_node(times, over, &between, None),
        }
    }

    /// alpha and beta of each algorithm, for the refined forms, with the times that they rest on: medians
    /// over jobs. Where few times speak they are the platform's. None where messages inside nodes were fitted:
    /// these constants are those of one level.
    pub fn constants(&self, times: &[JobTime]) -> Vec<AlgorithmFit> {
        if self.inside.is_some() {
            return Vec::new();
        }
        self.factors.iter().map(|factor| self.constants_of(factor, times)).collect()
    }

    fn constants_of(&self, factor: &AlgorithmFactor, times: &[JobTime]) -> AlgorithmFit {
        let method = &factor.method;
        let of_method = |time: &&JobTime| {
            time.point.collective == factor.collective
                && time.method.clone().with_segment(0) == *method
        };
        let timed = |MethodTime { point, method, seconds }: MethodTime| {
            Some(TimedPoint {
                procs: point.procs(),
                bytes: point.bytes,
                segment_bytes: method.segment_bytes(),
                seconds,
                residual_seconds: seconds - self.seconds(point, &method)?,
            })
        };
        let medians = medians_over_jobs(times.iter().filter(of_method));
        algorithm_fit(
            (factor.collective, method.clone()),
            Model::Refined,
            [factor.alpha, factor.beta],
            medians.into_iter().filter_map(timed).collect(),
        )
    }
}

/// Parameters of all models by what a message takes.
pub fn of_messages(start: Estimate, per_byte: Estimate) -> Parameters {
    let none = Estimate::exact(0.0);
    let loggp = calibration::LogGpEstimates {
        latency_seconds: start,
        overhead_seconds: none,
        gap_seconds: start,
        gap_seconds_per_byte: per_byte,
    };
    let knot = |bytes: u64| calibration::PLogPKnot {
        bytes,
        send_overhead_seconds: none,
        receive_overhead_seconds: none,
        gap_seconds: Estimate {
            value: start.value + bytes as f64 * per_byte.value,
            low: start.low + bytes as f64 * per_byte.low,
            high: start.high + bytes as f64 * per_byte.high,
        },
    };
    let hockney =
        calibration::HockneyEstimates { alpha_seconds: start, beta_seconds_per_byte: per_byte };
    let plogp = calibration::PLogPEstimates::new(none, vec![knot(0), knot(1), knot(1 << 20)]);
    let mut parameters = Parameters::new(hockney, loggp, plogp);
    parameters.derived = vec!["loggp from hockney".into(), "plogp from hockney".into()];
    parameters
}
