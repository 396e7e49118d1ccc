//! Whether the machine was another one in the course of the run, or was taken away from it.

use records::{
    observation::{ObservationStatus, PointToPoint, PointToPointKind},
    quantity::format_seconds,
};

use statistics::serial_rank_correlation;

use super::sample::{middle, visits};

/// With fewer visits nothing is said.
const LEAST: usize = 40;
/// The parts of the run that are compared.
const PARTS: usize = 10;
/// Parts that differ by less matter to nobody.
const WORTH_SAYING: f64 = 1.15;
/// So many standard errors of what chance makes of visits that have nothing to do with one another.
const CERTAIN_ERRORS: f64 = 4.0;

/// More disturbed visits than this part are reported: on a machine that has nothing else to do it was one
/// in a hundred.
const DISTURBED_SHARE: f64 = 0.05;

/// What is to be said where of so many visits, `between two ranks`, so many were disturbed:
/// (disturbed, all).
pub(super) fn disturbance((disturbed, all): (usize, usize), whom: &str) -> Option<String> {
    let share = disturbed as f64 / all.max(1) as f64;
    (all >= LEAST && share > DISTURBED_SHARE).then(|| {
        format!(
            "something else used the processors or the network: {disturbed} of {all} visits ({:.0} \
             %) {whom} took more than twice their median and were excluded; the parameters may \
             still be too large: measure again",
            100.0 * share
        )
    })
}

/// What is to be said about the round trips of the empty message, in the order of their visits.
pub(super) fn note(observations: &[PointToPoint]) -> Option<String> {
    let round_trips = observations.iter().filter(|row| {
        (row.kind, row.bytes, row.status) == (PointToPointKind::RoundTrip, 0, ObservationStatus::Ok)
    });
    let times: Vec<_> = round_trips.map(|row| (row.job, row.visit, row.seconds)).collect();
    let medians: Vec<f64> = visits(&times).into_values().map(|times| middle(&times)).collect();
    let (least, greatest) = parts(&medians)?;
    let drifted = serial_rank_correlation(&medians)?
        > CERTAIN_ERRORS / (medians.len() as f64).sqrt()
        && greatest > WORTH_SAYING * least;
    drifted.then(|| {
        format!(
            "the machine drifted: the round trip of an empty message took {} in one tenth of the \
             run and {} in another; L, o and alpha are means over the run",
            format_seconds(least),
            format_seconds(greatest)
        )
    })
}

/// The least and the greatest median of a tenth of the run.
fn parts(medians: &[f64]) -> Option<(f64, f64)> {
    if medians.len() < LEAST {
        return None;
    }
    let centres: Vec<f64> = medians
        .chunks(medians.len().div_ceil(PARTS))
        .filter(|part| part.len() >= LEAST / PARTS)
        .map(middle)
        .collect();
    let least = centres.iter().copied().reduce(f64::min)?;
    Some((least, centres.into_iter().fold(least, f64::max)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt as _, SeedableRng as _};
    use rand_distr::{Distribution as _, LogNormal};

    /// 200 visits on a machine that takes 17 instead of 12 us every now and then.
    fn observe(seed: u64, mut is_slow: impl FnMut(u32) -> bool) -> Option<String> {
        let mut random = rand_pcg::Pcg64Mcg::seed_from_u64(seed);
        let noise = LogNormal::new(0.0, 0.1).unwrap();
        let mut row = |visit: u32| PointToPoint {
            kind: PointToPointKind::RoundTrip,
            sender: 0,
            receiver: 1,
            bytes: 0,
            messages: 1,
            job: visit / 50,
            visit,
            repetition: visit,
            seconds: if is_slow(visit) { 17e-6 } else { 12e-6 } * noise.sample(&mut random),
            status: ObservationStatus::Ok,
        };
        note(&(0..200).map(&mut row).collect::<Vec<_>>())
    }

    #[test]
    fn disturbances_are_told_from_a_twentieth_on() {
        let told = |disturbed, all| disturbance((disturbed, all), "between two ranks");
        let text = told(150, 1000).unwrap();
        assert!(text.contains("150 of 1000 visits (15 %) between two ranks"), "{text}");
        assert_eq!(told(50, 1000), None);
        assert_eq!(told(3, 30), None, "these are few");
        assert_eq!(told(0, 0), None);
    }

    #[test]
    fn drifts_are_told_and_noise_is_not() {
        for seed in 0..50 {
            let text = observe(seed, |visit| visit / 30 % 2 == 1).unwrap();
            assert!(text.contains("the machine drifted"), "{text}");
            // As much of either, but without memory.
            let mut coin = rand_pcg::Pcg64Mcg::seed_from_u64(1000 + seed);
            assert_eq!(observe(seed, |_| coin.random_bool(0.5)), None);
            assert_eq!(observe(seed, |_| false), None);
        }
    }
}
