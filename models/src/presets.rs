//! Calibrations that need no measuring: the clusters of the paper.

use records::{
    calibration::{self, Calibration, Estimate, PLogPKnot, Parameters},
    platform::Platform,
};

use crate::{
    model::by_name,
    parameters::{Hockney, Knot, LogGp},
};

/// The paper's Table 5, in seconds. Frodo is 100 Mbit/s Ethernet, Boba Gigabit Ethernet.
const TABLE_5: [(&str, LogGp); 2] = [
    ("frodo", LogGp { latency: 61.22e-6, overhead: 8.2e-6, gap: 23.8e-6, gap_per_byte: 0.084e-6 }),
    ("boba", LogGp { latency: 30.40e-6, overhead: 8.15e-6, gap: 8.683e-6, gap_per_byte: 0.015e-6 }),
];

/// The names that [`preset`] knows.
pub const NAMES: [&str; 2] = [TABLE_5[0].0, TABLE_5[1].0];

/// Both clusters have that many nodes (the paper's section 5), and its measurements end there.
const NODES: u32 = 32;

/// There is no such calibration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PresetError {
    /// Not a preset's name; the nearest is offered.
    #[error("{0}")]
    Unknown(String),
    /// The preset's own parameters contradict each other.
    #[error("preset '{0}': the gap is longer than a message, so PLogP cannot be derived")]
    NotDerived(String),
}

/// Processes of a preset's cluster, by a calibration's [`source`](Calibration::source); `None`
/// where it is no preset.
pub fn cluster(source: &str) -> Option<u32> {
    let name = source.strip_prefix("preset:")?;
    NAMES.contains(&name).then_some(NODES)
}

/// The paper's LogGP parameters of a cluster (Table 5); PLogP and Hockney are derived from them
/// and marked so, since the paper shows theirs only as curves. gamma is 0: it is not printed.
///
/// # Errors
/// As [`PresetError`] tells.
pub fn preset(name: &str) -> Result<Calibration, PresetError> {
    let loggp = by_name("preset", name, &TABLE_5).map_err(PresetError::Unknown)?;
    let plogp = loggp.to_plogp();
    let (latency, knots) = plogp.ok_or_else(|| PresetError::NotDerived(name.to_owned()))?;
    let Hockney { alpha, beta } = loggp.to_hockney();
    let mut measured = Parameters::new(
        calibration::HockneyEstimates {
            alpha_seconds: Estimate::exact(alpha),
            beta_seconds_per_byte: Estimate::exact(beta),
        },
        calibration::LogGpEstimates {
            latency_seconds: Estimate::exact(loggp.latency),
            overhead_seconds: Estimate::exact(loggp.overhead),
            gap_seconds: Estimate::exact(loggp.gap),
            gap_seconds_per_byte: Estimate::exact(loggp.gap_per_byte),
        },
        calibration::PLogPEstimates::new(
            Estimate::exact(latency),
            knots.iter().map(exact_knot).collect(),
        ),
    );
    measured.derived = vec!["plogp from loggp".into(), "hockney from loggp".into()];
    Ok(Calibration {
        source: format!("preset:{name}"),
        platform: Platform::default(),
        measured,
        fitted: None,
        fits: Vec::new(),
        inside: None,
        algorithms: None,
        warnings: Vec::new(),
    })
}

fn exact_knot(knot: &Knot) -> PLogPKnot {
    PLogPKnot {
        bytes: knot.bytes,
        send_overhead_seconds: Estimate::exact(knot.costs.send),
        receive_overhead_seconds: Estimate::exact(knot.costs.receive),
        gap_seconds: Estimate::exact(knot.costs.gap),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use records::document::Document as _;

    #[test]
    fn every_preset_is_a_valid_calibration() {
        for name in NAMES {
            let calibration = preset(name).unwrap();
            assert_eq!(calibration.validate(), Ok(()));
            assert_eq!(calibration.source, format!("preset:{name}"));
            assert_eq!(calibration.measured.derived.len(), 2);
        }
    }

    #[test]
    fn a_wrong_name_is_answered_with_the_nearest() {
        let error = preset("frod").unwrap_err().to_string();
        assert!(error.contains("did you mean 'frodo'?") && error.contains("boba"), "{error}");
    }
}
