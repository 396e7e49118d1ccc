//! What visits say of a method's times, if some of them met the machine in a bad moment.
//!
//! Most visits are as near to the truth as visits are to each other, but one in some is far off,
//! and a method is often seen once or twice. So each visit is taken for a draw from a mixture of a
//! narrow and a wide normal: one that disagrees with what the models and the neighbouring points
//! make expected tells little, and leaves the doubt that has the method looked at again. What is
//! believed stays normal by expectation propagation (T. Minka, "Expectation Propagation for
//! approximate Bayesian inference", UAI 2001, section 3: the clutter problem).

use crate::{
    belief::Belief,
    constants::constants,
    visit_noise::{logarithm, stray_variance},
};

/// How far strays lie from a method's other visits at most, in their standard deviations.
const FARTHEST_STRAY: f64 = 4.0;

/// Where no logarithm of a time moves by more, the beliefs have settled: a twentieth of what tells methods apart.
const SETTLED: f64 = 1e-3;

pub(crate) struct NoisyVisit {
    index: usize,
    logarithm: f64,
    /// Variances of a usual visit and of one that strayed.
    usual: f64,
    outlier: f64,
    /// How often visits stray.
    stray_share: f64,
    /// What it is now taken for: a normal, by its precision and its precision times its mean.
    precision: f64,
    pull: f64,
}

impl NoisyVisit {
    /// Of the point with this index, with the median time of its calls and the variance of the
    /// logarithm of that, if it is a usual one.
    pub fn new(index: usize, seconds: f64, usual: f64, stray_share: f64) -> Self {
        let (logarithm, outlier) = (logarithm(seconds), stray_variance(usual));
        NoisyVisit { index, logarithm, usual, outlier, stray_share, precision: 0.0, pull: 0.0 }
    }

    /// The visits of one point, with the usual variance and the share of strays at a time in seconds. What is
    /// farther from the middle one than strays are says no more than that it strayed: while others had the
    /// processors for 20 ms, a call of 0.5 us took that.
    pub fn of_point(
        index: usize,
        seconds: impl Iterator<Item = f64>,
        noise: impl Fn(f64) -> (f64, f64),
    ) -> Vec<Self> {
        let visit = |seconds| {
            let (usual, stray_share) = noise(seconds);
            NoisyVisit::new(index, seconds, usual, stray_share)
        };
        let mut visits: Vec<NoisyVisit> = seconds.map(visit).collect();
        let mut sorted: Vec<f64> = visits.iter().map(|visit| visit.logarithm).collect();
        sorted.sort_by(f64::total_cmp);
        // Of two the shorter one: what others take makes times longer.
        let Some(&middle) = sorted.get(sorted.len().saturating_sub(1) / 2) else { return visits };
        for visit in &mut visits {
            let reach = FARTHEST_STRAY * visit.outlier.sqrt();
            visit.logarithm = visit.logarithm.clamp(middle - reach, middle + reach);
        }
        visits
    }

    /// Mean and variance of what is known after this visit, if `mean` and `variance` are those
    /// without it.
    fn after(&self, mean: f64, variance: f64) -> (f64, f64) {
        // Each part of the mixture by itself: the logarithm of its weight, and the normal after it.
        let part = |share: f64, noise: f64| {
            let total = variance + noise;
            let surprise = self.logarithm - mean;
            let weight = share.ln() - surprise.powi(2) / total / 2.0 - total.ln() / 2.0;
            (weight, mean + variance / total * surprise, variance * noise / total)
        };
        let [usual, stray] =
            [part(1.0 - self.stray_share, self.usual), part(self.stray_share, self.outlier)];
        // Both weights themselves may be too small for a number.
        let share = 1.0 / (1.0 + (stray.0 - usual.0).exp());
        let mean = share * usual.1 + (1.0 - share) * stray.1;
        let spread = |(_, of_part, variance): (f64, f64, f64)| variance + (of_part - mean).powi(2);
        (mean, share * spread(usual) + (1.0 - share) * spread(stray))
    }

    /// Takes it in, instead of what it was taken for before; tells by how much the logarithm that is believed moved.
    fn take_in(&mut self, belief: &mut Belief) -> f64 {
        let (mean, variance) = (belief.mean(self.index), belief.variance(self.index));
        let precision = 1.0 / variance - self.precision;
        if precision <= 0.0 {
            return 0.0;
        }
        let before = (mean / variance - self.pull) / precision;
        let (after, variance) = self.after(before, 1.0 / precision);
        // Two parts far apart are wider than what was known before; that no observation can say.
        let least = (constants().min_added * precision).min(1.0 / self.outlier);
        let added = (1.0 / variance - precision).max(least);
        let pull = after * (precision + added) - before * precision;
        let (added, pull) = match self.precision == 0.0 {
            true => (added, pull),
            false => (damped(self.precision, added), damped(self.pull, pull)),
        };
        let change = added - self.precision;
        if change != 0.0 {
            belief.observe(self.index, (pull - self.pull) / change, 1.0 / change);
            (self.precision, self.pull) = (added, pull);
        }
        (belief.mean(self.index) - mean).abs()
    }
}

/// From what a visit was taken for to what it now is, part of the way. All of it, visits that contradict each other at
/// points that are much alike swing: each makes the others strays in turn, and beliefs leave by far what
/// was observed (T. Minka, "Power EP", Microsoft Research MSR-TR-2004-149, section 3).
fn damped(before: f64, now: f64) -> f64 {
    let step = constants().visit_step.min(1.0);
    before + step * (now - before)
}

/// Takes all visits in.
pub(crate) fn take_in(belief: &mut Belief, visits: &mut [NoisyVisit]) {
    for _ in 0..constants().visit_sweeps {
        let moved = visits.iter_mut().map(|visit| visit.take_in(belief)).fold(0.0, f64::max);
        if moved < SETTLED {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_distr::StandardNormal;
    use rand_pcg::Pcg64;
    use records::{Collective, Point};

    use super::*;
    use crate::belief::Prior;

    /// Three neighbouring sizes, of which the models are thought to be off by about 0.3.
    fn belief() -> Belief {
        let point = |bytes| Point::flat(Collective::Bcast, 8, bytes);
        let points = [1, 2, 4].map(|kibibytes| point(kibibytes << 10)).to_vec();
        Belief::new(points, &[Prior { mean: 0.0, own: 0.05 }; 3], 0.3, 0.3)
    }

    fn visit(index: usize, logarithm: f64) -> NoisyVisit {
        let (usual, outlier, stray_share) = (0.0025, 0.05, constants().stray_share);
        NoisyVisit { index, logarithm, usual, outlier, stray_share, precision: 0.0, pull: 0.0 }
    }

    /// Mean and variance after these visits of the middle point, which is known by nothing else.
    fn integrated(before: (f64, f64), visits: &[NoisyVisit]) -> (f64, f64) {
        let normal = |x: f64, variance: f64| (-x * x / variance / 2.0).exp() / variance.sqrt();
        let mut moments = [0.0; 3];
        for step in -40_000..40_000 {
            let at = f64::from(step) * 1e-4;
            let likelihood = visits.iter().map(|visit| {
                let off = at - visit.logarithm;
                (1.0 - constants().stray_share) * normal(off, visit.usual)
                    + constants().stray_share * normal(off, visit.outlier)
            });
            let density = normal(at - before.0, before.1) * likelihood.product::<f64>();
            moments = [0, 1, 2].map(|power| moments[power as usize] + density * at.powi(power));
        }
        let mean = moments[1] / moments[0];
        (mean, moments[2] / moments[0] - mean * mean)
    }

    #[test]
    fn what_is_believed_is_the_mixtures_mean_and_variance() {
        for off in [0.0, 0.2, 0.5, -1.0] {
            let mut believed = belief();
            let before = (believed.mean(1), believed.variance(1));
            let mut visits = [visit(1, off)];
            take_in(&mut believed, &mut visits);
            let (mean, variance) = integrated(before, &visits);
            assert!((believed.mean(1) - mean).abs() < 1e-6, "{off}: {mean}");
            assert!((believed.variance(1) / variance - 1.0).abs() < 1e-4, "{off}: {variance}");
        }
    }

    /// Means and variances after these visits, each of which is usual or strayed: by going through all such combinations.
    fn exact(before: &Belief, points: usize, visits: &[NoisyVisit]) -> Vec<(f64, f64)> {
        let (mut total, mut sums) = (0.0, vec![(0.0, 0.0); points]);
        for strays in 0..1u32 << visits.len() {
            let (mut belief, mut likelihood) = (before.clone(), 1.0);
            for (number, visit) in visits.iter().enumerate() {
                let (share, noise) = match strays >> number & 1 {
                    0 => (1.0 - visit.stray_share, visit.usual),
                    _ => (visit.stray_share, visit.outlier),
                };
                let variance = belief.variance(visit.index) + noise;
                let off = visit.logarithm - belief.mean(visit.index);
                likelihood *= share * (-off * off / variance / 2.0).exp() / variance.sqrt();
                belief.observe(visit.index, visit.logarithm, noise);
            }
            total += likelihood;
            for (index, sum) in sums.iter_mut().enumerate() {
                let (mean, variance) = (belief.mean(index), belief.variance(index));
                sum.0 += likelihood * mean;
                sum.1 += likelihood * (variance + mean * mean);
            }
        }
        let moments = sums.iter().map(|sum| (sum.0 / total, sum.1 / total));
        moments.map(|(mean, square)| (mean, square - mean * mean)).collect()
    }

    /// Up to nine visits of four sizes, a fifth of them strayed.
    fn drawn(random: &mut Pcg64) -> Vec<NoisyVisit> {
        let noise = 10_f64.powf(random.random_range(-2.3..-1.1));
        let common = random.random_range(-0.3..0.3);
        let count = random.random_range(1..10);
        let visit = |_| {
            let spread = if random.random_bool(0.2) { 0.3 } else { noise + 0.02 };
            let off: f64 = random.sample(StandardNormal);
            let seconds = f64::exp(common + spread * off);
            NoisyVisit::new(random.random_range(0..4), seconds, noise.powi(2), 0.15)
        };
        (0..count).map(visit).collect()
    }

    /// Without damping one mean in a hundred is off by 0.7: 23 ms of an allgather that took 9 in both its visits.
    #[test]
    fn visits_that_contradict_each_other_are_believed_nearly_as_the_exact_mixture_has_it() {
        let mut random = Pcg64::seed_from_u64(1);
        let points = [1, 2, 4, 16].map(|size| Point::flat(Collective::Bcast, 8, size << 10));
        let before = Belief::new(points.into(), &[Prior { mean: 0.0, own: 0.03 }; 4], 0.3, 0.3);
        let mut off: Vec<f64> = Vec::new();
        for _ in 0..300 {
            let mut visits = drawn(&mut random);
            let exact = exact(&before, points.len(), &visits);
            let mut believed = before.clone();
            take_in(&mut believed, &mut visits);
            let means = exact.iter().enumerate();
            off.extend(means.map(|(index, (mean, _))| (believed.mean(index) - mean).abs()));
        }
        off.sort_by(f64::total_cmp);
        let [middle, high, most] =
            [0.5, 0.99, 1.0].map(|of| off[((off.len() - 1) as f64 * of) as usize]);
        assert!(middle < 0.001 && high < 0.06 && most < 0.25, "{middle} {high} {most}");
    }

    #[test]
    fn of_several_visits_it_is_nearly_that() {
        let mut believed = belief();
        let before = (believed.mean(1), believed.variance(1));
        let mut visits = [visit(1, 0.1), visit(1, 0.14), visit(1, 0.7)];
        take_in(&mut believed, &mut visits);
        let (mean, variance) = integrated(before, &visits);
        assert!((believed.mean(1) - mean).abs() < 0.01, "{} {mean}", believed.mean(1));
        assert!(((believed.variance(1) / variance).sqrt() - 1.0).abs() < 0.25, "{variance}");
    }

    /// Seen: 20 ms, while others had the processors, of a call that takes 0.5 us.
    #[test]
    fn a_visit_that_is_as_good_as_impossible_leaves_a_belief() {
        for (others, most) in [(&[0.0][..], 0.5), (&[0.0, 0.01], 0.1)] {
            let mut believed = belief();
            let all = others.iter().chain(&[12.0]).map(|off: &f64| off.exp());
            let mut visits = NoisyVisit::of_point(1, all, |_| (0.0025, constants().stray_share));
            take_in(&mut believed, &mut visits);
            for index in 0..3 {
                let (mean, variance) = (believed.mean(index), believed.variance(index));
                assert!(mean.abs() < most && variance > 0.0, "{mean} {variance}");
            }
        }
        // Where nothing tells otherwise it is believed, or what the models say.
        let mut believed = belief();
        take_in(&mut believed, &mut [visit(1, 700.0)]);
        assert!(believed.mean(1).is_finite() && believed.variance(1) > 0.0);
    }

    /// Each visit tells something, but not in proportion to what is known already: by compound interest
    /// some hundred visits would make certain what is not.
    #[test]
    fn many_visits_tell_no_more_than_their_noise_allows() {
        let mut believed = belief();
        let visits = (0..400).map(|number| visit(1, if number % 2 == 0 { 0.05 } else { 0.15 }));
        take_in(&mut believed, &mut visits.collect::<Vec<_>>());
        let (mean, deviation) = (believed.mean(1), believed.variance(1).sqrt());
        let least = (0.0025_f64 / 400.0).sqrt();
        assert!((mean - 0.1).abs() < 2.0 * least, "{mean}");
        assert!(deviation > 0.9 * least && deviation < 2.0 * least, "{deviation} {least}");
    }

    /// Seen: a pipeline whose only visit took 13 ms, where its neighbours had it expected at 9 and
    /// where it took 8.7 whenever it was looked at again.
    #[test]
    fn a_visit_that_its_neighbours_contradict_leaves_doubt_until_others_agree_with_it() {
        let believed = |of_middle: &[f64]| {
            let mut believed = belief();
            let neighbours = [(0, 0.0), (0, 0.02), (2, 0.0), (2, -0.02)];
            let all = neighbours.into_iter().chain(of_middle.iter().map(|&off| (1, off)));
            let mut visits: Vec<NoisyVisit> = all.map(|(index, off)| visit(index, off)).collect();
            take_in(&mut believed, &mut visits);
            (believed.mean(1), believed.variance(1).sqrt())
        };
        let (expected, doubt) = believed(&[]);
        let (mean, deviation) = believed(&[0.4]);
        assert!(mean - expected < 0.13, "{mean}");
        assert!(deviation > 0.8 * doubt);
        let (mean, _) = believed(&[0.4, 0.39, 0.42, 0.4]);
        assert!(mean > 0.35, "{mean}");
    }
}
