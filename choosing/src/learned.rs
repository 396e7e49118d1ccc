//! What the evidence of applications says of a method, once they have ended.

use records::{
    calibration::Estimate,
    learned::{LearnedClass, LearnedMethod, LogRatios},
};
use statistics::ratio_estimate;

/// Of the intervals that are told and exported by.
pub const CONFIDENCE: f64 = 0.95;

/// How many times as fast as the default a method was, at [`CONFIDENCE`]; nothing of fewer than two trials.
pub fn speed_up(tried: &LearnedMethod) -> Option<Estimate> {
    let LogRatios { trials, mean, squares } = tried.ratios;
    ratio_estimate(trials, -mean, squares, CONFIDENCE)
}

/// How many times as fast as the default what a class has chosen was; nothing where the trials do not show that
/// it is faster.
pub fn shown_faster(class: &LearnedClass) -> Option<Estimate> {
    speed_up(class.evidence()?).filter(|speed_up| speed_up.low > 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use records::{Collective, Method, Point};

    fn class(trials: u64, mean: f64, squares: f64) -> LearnedClass {
        let method: Method = "own:linear".parse().unwrap();
        LearnedClass {
            point: Point::flat(Collective::Bcast, 8, 1024),
            last_bytes: 2047,
            calls: 100,
            default_seconds: 1e-3,
            chosen: method.clone(),
            tried: vec![LearnedMethod { method, ratios: LogRatios { trials, mean, squares } }],
        }
    }

    #[test]
    fn faster_is_what_the_whole_interval_says() {
        // Student's t of 3 degrees is 3.182; the standard error of these four 0.1.
        let shown = shown_faster(&class(4, -0.4, 0.12)).unwrap();
        assert!((shown.value - 0.4_f64.exp()).abs() < 1e-9);
        assert!((shown.low - (0.4_f64 - 0.3182).exp()).abs() < 1e-3, "{shown:?}");
        assert_eq!(shown_faster(&class(4, -0.3, 0.12)), None, "the interval reaches over 1");
        assert_eq!(shown_faster(&class(4, 0.4, 0.12)), None, "slower");
        assert_eq!(shown_faster(&class(1, -0.4, 0.0)), None, "a single trial shows nothing");
        let left = LearnedClass { chosen: Method::Default, ..class(4, -0.4, 0.12) };
        assert_eq!(shown_faster(&left), None);
    }
}
