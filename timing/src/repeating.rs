//! How often an exchange is repeated: until a rule is content with what rank 0 has seen.

use serde::{Deserialize, Serialize};
use statistics::{
    mean_interval, median,
    stopping::{Criterion, Rule},
};

use crate::{Error, Result, table_communicator::TableCommunicator};

/// At most so many calls go by until rank 0 looks at what was observed: a part of those made.
const LOOKS_PER_DOUBLING: usize = 8;

/// The usual rule: at least 5 and at most 100 repetitions, until half the width of the mean's interval of 95 %
/// by Student's t is below 2.5 % of the mean (MPIBlib's defaults).
pub const USUAL: Rule = Rule {
    criterion: Criterion::MeanInterval,
    minimum: 5,
    maximum: 100,
    confidence: 0.95,
    relative_error: 0.025,
    resolution_seconds: 0.0,
};

/// What the repetitions of one exchange came to; the same on all ranks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TimedSummary {
    /// Mean of the repetitions, in seconds.
    pub mean_seconds: f64,
    /// Median of the repetitions, in seconds.
    pub median_seconds: f64,
    /// Half the width of the mean's interval by Student's t, in seconds; 0 of one repetition.
    pub half_width_seconds: f64,
    /// Repetitions made.
    pub repetitions: u32,
    /// Whether the rule was content before its maximum was reached.
    pub precise: bool,
    /// The coarsest clock's smallest step over the ranks, in seconds.
    pub resolution_seconds: f64,
}

/// Whether a rule can be followed.
///
/// # Errors
/// It can't; says what would be right.
pub fn check(rule: &Rule) -> Result<()> {
    let Rule { minimum, maximum, confidence, relative_error, .. } = *rule;
    let problem = if minimum < 1 || maximum < minimum {
        format!(
            "at least {minimum} and at most {maximum} repetitions; expected 1 or more, and a least number no \
             greater than the most"
        )
    } else if !(confidence > 0.0 && confidence < 1.0) {
        format!("a confidence of {confidence}; expected one between 0 and 1, such as 0.95")
    } else if !(relative_error >= 0.0 && relative_error.is_finite()) {
        format!("a relative error of {relative_error}; expected one of 0 or above, such as 0.025")
    } else {
        return Ok(());
    };
    Err(Error::Refused(problem))
}

/// How many calls come next, after these observations; 0 when there are enough.
fn next_calls(rule: &Rule, observations: &[f64]) -> usize {
    let made = observations.len();
    if rule.is_content(made, rule.uncertainty(observations)) {
        return 0;
    }
    let wanted = (made / LOOKS_PER_DOUBLING).max(1).max(rule.minimum.saturating_sub(made));
    wanted.min(rule.maximum - made)
}

/// Repeats until the rule is content. `calls` makes so many calls and gives what rank 0 observed of them,
/// in seconds; every rank of `comm` must come here with the same rule, one that [can be followed](check),
/// and gets the same summary.
///
/// # Errors
/// The library refuses; `calls` fails.
pub fn repeat(
    comm: &TableCommunicator,
    rule: &Rule,
    mut calls: impl FnMut(usize) -> Result<Vec<f64>>,
) -> Result<TimedSummary> {
    let mut observations = Vec::new();
    let mut next = next_calls(rule, &observations);
    while next > 0 {
        observations.extend(calls(next)?);
        next = comm.agree(next_calls(rule, &observations))?;
    }
    comm.agree(summary(rule, &observations))
}

fn summary(rule: &Rule, observations: &[f64]) -> TimedSummary {
    let middle = observations.first().copied().unwrap_or_default();
    let (mean_seconds, half_width_seconds) =
        mean_interval(observations, rule.confidence).unwrap_or((middle, 0.0));
    TimedSummary {
        mean_seconds,
        median_seconds: median(observations).unwrap_or_default(),
        half_width_seconds,
        repetitions: observations.len() as u32,
        precise: rule.uncertainty(observations) <= rule.relative_error,
        resolution_seconds: rule.resolution_seconds,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is repeated until `next_calls` says 0.
    fn made(rule: &Rule, observe: impl Fn(usize) -> f64) -> Vec<f64> {
        let mut observations: Vec<f64> = Vec::new();
        loop {
            let first = observations.len();
            let calls = next_calls(rule, &observations);
            if calls == 0 {
                return observations;
            }
            observations.extend((first..first + calls).map(&observe));
        }
    }

    #[test]
    fn what_is_steady_stops_at_the_minimum_and_what_is_not_at_the_maximum() {
        assert_eq!(made(&USUAL, |_| 1.0).len(), 5);
        let wild = made(&USUAL, |number| 10.0_f64.powi(number as i32 % 5));
        assert_eq!(wild.len(), 100);
        assert!(!summary(&USUAL, &wild).precise);
        let fixed = Rule { minimum: 7, maximum: 7, ..USUAL };
        assert_eq!(made(&fixed, |number| number as f64).len(), 7);
        assert_eq!(made(&Rule { minimum: 1, maximum: 1, ..USUAL }, |_| 1.0).len(), 1);
    }

    /// 0.9 and 1.1 in turn: t(n - 1) x 0.1 sqrt(n / (n - 1)) / sqrt(n) falls below 2.5 % at n = 64 (t of 63
    /// is 1.998), of which rank 0 sees the next number that it looks at.
    #[test]
    fn repetitions_end_where_students_interval_is_narrow_enough() {
        let observed = made(&USUAL, |number| [0.9, 1.1][number % 2]);
        assert!((64..=72).contains(&observed.len()), "{}", observed.len());
        let summary = summary(&USUAL, &observed);
        assert!(summary.precise && summary.half_width_seconds / summary.mean_seconds <= 0.025);
    }

    #[test]
    fn a_rule_that_cannot_be_followed_is_refused() {
        check(&USUAL).unwrap();
        for (rule, part) in [
            (Rule { minimum: 0, ..USUAL }, "repetitions"),
            (Rule { minimum: 6, maximum: 5, ..USUAL }, "at least 6 and at most 5"),
            (Rule { confidence: 1.0, ..USUAL }, "confidence"),
            (Rule { confidence: f64::NAN, ..USUAL }, "confidence"),
            (Rule { relative_error: -0.1, ..USUAL }, "relative error"),
        ] {
            let error = check(&rule).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
