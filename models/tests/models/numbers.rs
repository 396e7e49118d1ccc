//! Parameters for the tests.

use records::calibration::{
    Estimate, HockneyEstimates, LogGpEstimates, PLogPEstimates, PLogPKnot, Parameters,
};

/// One row per knot: bytes, os, or, g.
pub type Knots = Vec<(u64, f64, f64, f64)>;

/// Plain numbers from which [`Parameters`] without uncertainty are made.
#[derive(Debug, Clone)]
pub struct PlainParameters {
    pub alpha: f64,
    pub beta: f64,
    pub latency: f64,
    pub overhead: f64,
    pub gap: f64,
    pub gap_per_byte: f64,
    pub gamma: f64,
    pub plogp_latency: f64,
    pub knots: Knots,
}

impl PlainParameters {
    pub fn parameters(&self) -> Parameters {
        let knots = self.knots.iter().map(|&(bytes, send, receive, gap)| PLogPKnot {
            bytes,
            send_overhead_seconds: Estimate::exact(send),
            receive_overhead_seconds: Estimate::exact(receive),
            gap_seconds: Estimate::exact(gap),
        });
        Parameters {
            gamma_seconds_per_byte: Estimate::exact(self.gamma),
            ..Parameters::new(
                HockneyEstimates {
                    alpha_seconds: Estimate::exact(self.alpha),
                    beta_seconds_per_byte: Estimate::exact(self.beta),
                },
                LogGpEstimates {
                    latency_seconds: Estimate::exact(self.latency),
                    overhead_seconds: Estimate::exact(self.overhead),
                    gap_seconds: Estimate::exact(self.gap),
                    gap_seconds_per_byte: Estimate::exact(self.gap_per_byte),
                },
                PLogPEstimates::new(Estimate::exact(self.plogp_latency), knots.collect()),
            )
        }
    }

    /// PLogP replaced by the one with LogGP's point-to-point times.
    pub fn with_plogp_of_loggp(mut self) -> Self {
        let far = 1 << 24;
        let gap = |bytes: u64| self.gap + (bytes - 1) as f64 * self.gap_per_byte;
        self.plogp_latency = self.latency + 2.0 * self.overhead - self.gap;
        let o = self.overhead;
        self.knots = vec![(0, o, o, self.gap), (1, o, o, self.gap), (far, o, o, gap(far))];
        self
    }
}
