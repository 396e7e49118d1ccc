//! Tests of whether one sample of times is smaller than another.
//!
//! All are one-sided: the question is whether a replacement is faster. Few observations are the
//! rule (one median per job), so the tests are exact, given the ties that there are: every way of
//! dealing the pooled values to the two samples counts as equally likely.

use statrs::stats_tests::{
    Alternative,
    mannwhitneyu::{MannWhitneyUMethod, mannwhitneyu},
};

use crate::summaries::median;

/// Above so many values the rank-sum test takes the normal approximation.
const MAX_EXACT: usize = 60;

/// How two samples are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Test {
    /// Wilcoxon's rank sum, also by Mann and Whitney: shifts.
    RankSum,
    /// Kolmogorov and Smirnov's greatest distance between the distributions: any difference.
    KolmogorovSmirnov,
}

impl Test {
    /// The name in flags and files.
    pub const fn name(self) -> &'static str {
        match self {
            Test::RankSum => "rank-sum",
            Test::KolmogorovSmirnov => "kolmogorov-smirnov",
        }
    }

    /// The probability of a difference at least as great in favour of `low`, if both samples came
    /// from one distribution. 1 where a sample is empty.
    pub fn p_value(self, low: &[f64], high: &[f64]) -> f64 {
        if low.is_empty() || high.is_empty() {
            return 1.0;
        }
        match self {
            Test::RankSum if low.len() + high.len() <= MAX_EXACT => rank_sum(low, high),
            Test::RankSum => {
                let method = MannWhitneyUMethod::AsymptoticInclContinuityCorrection;
                mannwhitneyu(low, high, method, Alternative::Less).map_or(1.0, |(_, p)| p)
            }
            Test::KolmogorovSmirnov => kolmogorov_smirnov(low, high),
        }
    }

    /// The least p-value that samples of these sizes can have: with three jobs each nothing can
    /// be significant at 1 %.
    pub fn least_p_value(low: usize, high: usize) -> f64 {
        1.0 / combinations(low + high, low)
    }
}

fn combinations(of: usize, taken: usize) -> f64 {
    (1..=taken).map(|i| (of - taken + i) as f64 / i as f64).product()
}

/// The pooled values in ascending order, each with whether it is of the first sample.
fn pooled(first: &[f64], second: &[f64]) -> Vec<(f64, bool)> {
    let tagged =
        |values: &[f64], tag: bool| values.iter().map(move |&v| (v, tag)).collect::<Vec<_>>();
    let mut all = [tagged(first, true), tagged(second, false)].concat();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    all
}

/// Exact: of all ways to choose the first sample's ranks, how many have no greater sum.
fn rank_sum(low: &[f64], high: &[f64]) -> f64 {
    let pooled = pooled(low, high);
    // Twice the rank, so that the mean rank of a tie is a whole number.
    let mut ranks = Vec::with_capacity(pooled.len());
    for tied in pooled.chunk_by(|a, b| a.0 == b.0) {
        let before = ranks.len();
        ranks.resize(before + tied.len(), 2 * before + tied.len() + 1);
    }
    let own = |(rank, value): (&usize, &(f64, bool))| if value.1 { *rank } else { 0 };
    let observed: usize = ranks.iter().zip(&pooled).map(own).sum();
    // ways[k][s]: choices of k of the ranks seen so far whose sum is s.
    let mut ways = vec![vec![0.0; observed + 1]; low.len() + 1];
    ways[0][0] = 1.0;
    for &rank in ranks.iter().filter(|&&rank| rank <= observed) {
        for taken in (1..=low.len()).rev() {
            for sum in rank..=observed {
                ways[taken][sum] += ways[taken - 1][sum - rank];
            }
        }
    }
    ways[low.len()].iter().sum::<f64>() / combinations(pooled.len(), low.len())
}

/// Exact, as Hodges (1958) counts paths: of all orders of the pooled values, those in which the
/// first sample's distribution function never leads by as much as observed.
fn kolmogorov_smirnov(low: &[f64], high: &[f64]) -> f64 {
    let pooled = pooled(low, high);
    let lead = |of_low: usize, seen: usize| {
        // Over the common denominator, so that equal distances compare equal.
        (of_low * high.len()) as i64 - ((seen - of_low) * low.len()) as i64
    };
    let (mut seen, mut of_low, mut observed) = (0, 0, 0);
    let mut ends = Vec::new();
    for tied in pooled.chunk_by(|a, b| a.0 == b.0) {
        seen += tied.len();
        of_low += tied.iter().filter(|value| value.1).count();
        observed = observed.max(lead(of_low, seen));
        ends.push(seen);
    }
    if observed == 0 {
        return 1.0;
    }
    // paths[k]: orders of the values seen so far with k of the first sample that never led so far.
    let mut paths = vec![0.0; low.len() + 1];
    paths[0] = 1.0;
    for seen in 1..=pooled.len() {
        for of_low in (1..=low.len()).rev() {
            paths[of_low] += paths[of_low - 1];
        }
        for (of_low, paths) in paths.iter_mut().enumerate() {
            let of_high = seen.checked_sub(of_low);
            let leads = ends.binary_search(&seen).is_ok()
                && of_low <= seen
                && lead(of_low, seen) >= observed;
            if leads || of_high.is_none_or(|of_high| of_high > high.len()) {
                *paths = 0.0;
            }
        }
    }
    1.0 - paths[low.len()] / combinations(pooled.len(), low.len())
}

/// Whether `low` is smaller than `high`: by the one-sided rank-sum test at the level `alpha`, or
/// because half of `low` lies below all of `high`. The latter tells large differences apart where
/// there are too few values for a test at the levels that many comparisons need, and where single
/// values went astray.
pub fn is_smaller(low: &[f64], high: &[f64], alpha: f64) -> bool {
    let least = high.iter().copied().reduce(f64::min);
    let apart = median(low).zip(least).is_some_and(|(middle, least)| middle < least);
    apart || Test::RankSum.p_value(low, high) < alpha
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64;

    use super::*;

    /// By scipy 1.17.1, `permutation_test` over all ways with the rank sum and with the greatest
    /// lead of the distribution function as statistics; without ties these are `mannwhitneyu` and
    /// `ks_2samp`, `method='exact'`.
    const REFERENCE: &[(&[f64], &[f64], f64, f64)] = &[
        (&[1.0, 1.09, 0.918], &[0.933, 1.064, 0.903], 0.8, 1.0),
        (
            &[1.018, 1.402, 0.852, 0.814, 1.147],
            &[1.307, 1.232, 0.921, 1.191, 1.409],
            0.111_111_111_111_111_1,
            0.178_571_428_571_428_55,
        ),
        (
            &[0.597, 0.863, 0.43, 0.613, 0.447, 0.929],
            &[0.82, 1.281, 1.247, 1.144, 0.445, 1.038],
            0.046_536_796_536_796_536,
            0.071_428_571_428_571_42,
        ),
        (
            &[0.985, 1.034, 0.541, 0.857, 0.706, 0.757, 1.318, 0.758],
            &[1.19, 1.465, 1.025, 1.166, 1.233],
            0.014_763_014_763_014_763,
            0.020_979_020_979_020_98,
        ),
        // With ties, and of unequal length.
        (
            &[1.0, 0.6, 1.0, 1.4, 0.5],
            &[1.5, 1.2, 1.0, 1.8, 1.4],
            0.039_682_539_682_539_68,
            0.103_174_603_174_603_17,
        ),
        (
            &[0.6, 1.0, 1.2, 0.9, 1.2, 1.0],
            &[1.4, 1.6, 1.0, 1.3],
            0.033_333_333_333_333_33,
            0.047_619_047_619_047_616,
        ),
        (
            &[0.9, 1.0, 0.6, 0.8],
            &[1.1, 1.5, 1.5, 0.8, 1.0, 1.4, 0.6],
            0.093_939_393_939_393_93,
            0.154_545_454_545_454_54,
        ),
        (
            &[0.9, 1.0, 1.4],
            &[1.4, 1.1, 1.1, 1.1, 1.7, 1.1, 1.1, 1.3, 1.2],
            0.131_818_181_818_181_8,
            0.045_454_545_454_545_456,
        ),
    ];

    #[test]
    fn p_values_are_those_of_the_reference() {
        for (low, high, rank_sum, kolmogorov_smirnov) in REFERENCE {
            let found = Test::RankSum.p_value(low, high);
            assert!((found - rank_sum).abs() < 1e-12, "rank sum {found}, not {rank_sum}");
            let found = Test::KolmogorovSmirnov.p_value(low, high);
            assert!(
                (found - kolmogorov_smirnov).abs() < 1e-12,
                "{found}, not {kolmogorov_smirnov}"
            );
        }
    }

    #[test]
    fn many_values_take_the_normal_approximation() {
        // The numbers 0 to 40, and the same shifted by 8.
        let values = |shift: f64, count: u32| -> Vec<f64> {
            (0..count).map(|i| shift + f64::from(i * 37 % 41)).collect()
        };
        // scipy 1.17.1: mannwhitneyu(range, alternative='less', method='asymptotic').
        let p = Test::RankSum.p_value(&values(0.0, 41), &values(8.0, 41));
        assert!((p - 0.003_062_968_099_937_768_7).abs() < 1e-9, "{p}");
    }

    #[test]
    fn nothing_is_significant_with_nothing_or_with_too_little() {
        for test in [Test::RankSum, Test::KolmogorovSmirnov] {
            assert_eq!(test.p_value(&[], &[1.0]), 1.0);
            assert_eq!(test.p_value(&[1.0], &[]), 1.0);
            assert!((test.p_value(&[1.0; 3], &[2.0; 3]) - 0.05).abs() < 1e-12);
            assert_eq!(test.p_value(&[1.0; 4], &[1.0; 4]), 1.0);
        }
        assert!((Test::least_p_value(3, 3) - 0.05).abs() < 1e-12);
        assert!((Test::least_p_value(6, 6) - 1.0 / 924.0).abs() < 1e-12);
    }

    /// The share of 2000 pairs of samples that a test calls different at 5 %. Times of messages
    /// are skewed: 1 plus a tail of squared uniform numbers, a tenth of the mean wide.
    fn called_different(test: Test, jobs: usize, shift: f64) -> f64 {
        let mut random = Pcg64::seed_from_u64(11);
        let mut sample = |scale: f64| -> Vec<f64> {
            (0..jobs).map(|_| scale * (1.0 + 0.3 * random.random::<f64>().powi(2))).collect()
        };
        let called = (0..2000).filter(|_| {
            let (low, high) = (sample(1.0), sample(1.0 + shift));
            test.p_value(&low, &high) < 0.05
        });
        called.count() as f64 / 2000.0
    }

    #[test]
    fn equal_samples_are_seldom_called_different_and_a_tenth_is_mostly_found() {
        for test in [Test::RankSum, Test::KolmogorovSmirnov] {
            let by_chance = called_different(test, 6, 0.0);
            assert!(by_chance < 0.06, "{}: {by_chance}", test.name());
            let found = called_different(test, 10, 0.1);
            assert!(found > 0.5, "{}: {found}", test.name());
        }
        assert!(called_different(Test::RankSum, 10, 0.1) > 0.7);
    }

    #[test]
    fn smaller_is_told_from_equal() {
        let [low, high]: [Vec<f64>; 2] =
            [1.0, 1.2].map(|base| (0..12).map(|i| base + 0.01 * f64::from(i)).collect());
        assert!(is_smaller(&low, &high, 1e-4));
        assert!(!is_smaller(&high, &low, 0.5));
        assert!(!is_smaller(&low, &low, 0.05));
        assert!(is_smaller(&[1.0, 2.0], &[3.0, 4.0], 0.01), "few, but apart");
        assert!(is_smaller(&[1.0, 9.0, 1.1], &[3.0, 4.0], 0.01), "one that went astray");
        assert!(!is_smaller(&[1.0, 5.5], &[3.0, 4.0], 0.01));
        assert!(!is_smaller(&[], &[3.0], 0.01));
    }
}
