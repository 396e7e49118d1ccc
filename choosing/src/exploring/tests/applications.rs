//! Kinds of synthetic applications.

use rand::{Rng, RngExt};
use rand_distr::{Distribution, StandardNormal};
use records::{
    Collective, Layout, Method, Point,
    learned::{LearnedClass, LearnedMethod, LogRatios},
};

use super::super::SizeClass;
use super::simulator::{Application, Course, TrueArm, TrueClass, method};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    NothingFaster,
    AllEqual,
    OneHalf,
    SmallDifferences,
    Wide,
    FewCalls,
    GreatSkew,
    HeavyTails,
    AllDrift,
    DefaultDrifts,
    OneArmDrifts,
    OneArmSlows,
    LearnedRight,
    LearnedSmall,
    LearnedWrong,
    FastAtFirst,
    ShortLived,
    FastInShortRuns,
}

impl Kind {
    pub const ALL: [Kind; 18] = [
        Kind::NothingFaster,
        Kind::AllEqual,
        Kind::OneHalf,
        Kind::SmallDifferences,
        Kind::Wide,
        Kind::FewCalls,
        Kind::GreatSkew,
        Kind::HeavyTails,
        Kind::AllDrift,
        Kind::DefaultDrifts,
        Kind::OneArmDrifts,
        Kind::OneArmSlows,
        Kind::LearnedRight,
        Kind::LearnedSmall,
        Kind::LearnedWrong,
        Kind::FastAtFirst,
        Kind::ShortLived,
        Kind::FastInShortRuns,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Kind::NothingFaster => "nothing is faster",
            Kind::AllEqual => "all methods equal",
            Kind::OneHalf => "one takes half",
            Kind::SmallDifferences => "differences of 10 %",
            Kind::Wide => "factors 0.2 to 50",
            Kind::FewCalls => "few calls",
            Kind::GreatSkew => "skew of 50 %",
            Kind::HeavyTails => "heavy tails",
            Kind::AllDrift => "all drift",
            Kind::DefaultDrifts => "the default drifts",
            Kind::OneArmDrifts => "one method is throttled",
            Kind::OneArmSlows => "one method slows down",
            Kind::LearnedRight => "second job",
            Kind::LearnedSmall => "second job, short, gains of 10 %",
            Kind::LearnedWrong => "second job, other machine",
            Kind::FastAtFirst => "fast at first",
            Kind::ShortLived => "classes of 30 calls",
            Kind::FastInShortRuns => "fast in short runs",
        }
    }

    pub fn is_adversary(self) -> bool {
        matches!(self, Kind::FastAtFirst | Kind::ShortLived | Kind::FastInShortRuns)
    }

    /// An application of this kind.
    pub fn draw(self, random: &mut impl Rng) -> Application {
        let ranks = [2, 4, 8, 16, 64][random.random_range(0..5)];
        let latency = log_uniform(random, 1e-6, 1e-3);
        let (most_classes, least, most) = match self {
            Kind::FewCalls => (12, 10.0, 300.0),
            Kind::LearnedSmall => (12, 100.0, 3000.0),
            Kind::ShortLived => (40, 30.0 * 40.0, 30.0 * 40.0 + 1.0),
            _ => (12, 300.0, 100_000.0),
        };
        let count = match self {
            Kind::ShortLived => most_classes,
            _ => random.random_range(1..=most_classes),
        };
        let classes: Vec<_> =
            (0..count).map(|index| self.class(index, ranks, latency, random)).collect();
        let calls = log_uniform(random, least, most) as u64;
        let mean = classes.iter().map(|class| class.weight * class.default_seconds).sum::<f64>()
            / classes.iter().map(|class| class.weight).sum::<f64>();
        let skew = match self {
            Kind::GreatSkew => 0.5,
            _ => 0.5 * random.random::<f64>().powi(3),
        };
        // Compute between calls: up to ten times as long as they.
        let wait = 0.5 * skew * mean * 10.0 * random.random::<f64>();
        let is_heavy = self == Kind::HeavyTails || random.random::<f64>() < 0.1;
        Application {
            ranks,
            classes,
            calls,
            budget: 0.01,
            noise: if is_heavy {
                log_uniform(random, 0.3, 1.0)
            } else {
                log_uniform(random, 0.02, 0.3)
            },
            rank_noise: log_uniform(random, 0.02, 0.3),
            hiccups: if is_heavy { log_uniform(random, 1e-3, 1e-2) } else { 1e-5 },
            wait,
            agreement_seconds: latency * log_uniform(random, 0.7, 8.0),
        }
    }

    fn class(self, index: usize, ranks: u32, latency: f64, random: &mut impl Rng) -> TrueClass {
        const COLLECTIVES: [Collective; 4] =
            [Collective::Bcast, Collective::Allreduce, Collective::Alltoall, Collective::Allgather];
        let bytes =
            if random.random::<f64>() < 0.3 { 8 } else { log_uniform(random, 1.0, 4e6) as u64 };
        let size = bytes as f64 / 32768.0 * log_uniform(random, 0.5, 4.0);
        let default_seconds = latency * (log_uniform(random, 0.5, 2.0) + size);
        let candidates = random.random_range(2..=4);
        let mut arms = vec![TrueArm::steady(1.0)];
        let best = random.random_range(1..=candidates);
        let predicts = random.random::<f64>() < 0.5;
        for arm in 1..=candidates {
            let normal: f64 = StandardNormal.sample(random);
            let slower = (0.6 * normal.abs()).exp();
            let factor = match self {
                Kind::NothingFaster | Kind::FewCalls | Kind::ShortLived => slower,
                Kind::AllEqual => 1.0,
                Kind::SmallDifferences => 0.9 + 0.2 * random.random::<f64>(),
                Kind::Wide => log_uniform(random, 0.2, 50.0),
                Kind::FastAtFirst | Kind::FastInShortRuns => 0.7,
                Kind::LearnedSmall if arm == best => 0.9,
                Kind::LearnedSmall => slower,
                _ if arm == best => 0.5,
                _ => (0.7 * normal).exp().max(0.5),
            };
            let mut one = TrueArm::steady(factor);
            one.course = match self {
                Kind::FastAtFirst => Course::AfterCalls(50, 3.0),
                Kind::FastInShortRuns => Course::InLongRuns(random.random_range(1..12), 3.0),
                Kind::OneArmDrifts if arm == best => Course::From(random.random(), 4.0),
                Kind::OneArmSlows if arm == best => {
                    Course::Slowly(0.5 * random.random::<f64>(), 8.0)
                }
                _ => Course::Steady,
            };
            let makes_areas = random.random::<f64>() < if predicts { 0.1 } else { 0.4 };
            one.first_seconds = match (makes_areas, predicts) {
                (false, _) => 0.0,
                (true, true) => 4.0 * latency,
                (true, false) => log_uniform(random, 1e-4, 1e-3),
            };
            if predicts && self != Kind::Wide {
                let error: f64 = StandardNormal.sample(random);
                one.max_seconds = Some(3.0 * factor * default_seconds * (0.4 * error).exp());
            }
            arms.push(one);
        }
        if self == Kind::DefaultDrifts {
            arms[0].course = Course::From(random.random(), log_uniform(random, 0.3, 3.0));
        }
        if self == Kind::AllDrift {
            let course = Course::From(random.random(), log_uniform(random, 0.3, 3.0));
            for arm in &mut arms {
                arm.course = course;
            }
        }
        let learned = match self {
            Kind::LearnedRight => Some((best, 0.5_f64)),
            Kind::LearnedSmall => Some((best, 0.9)),
            Kind::LearnedWrong => Some((best % candidates + 1, 0.6)),
            _ => None,
        };
        let learned = learned.map(|(arm, factor)| {
            let one = |arm: usize, factor: f64| LearnedMethod {
                method: method(arm),
                ratios: LogRatios { trials: 10, mean: factor.ln(), squares: 0.1 },
            };
            LearnedClass {
                point: Point {
                    collective: COLLECTIVES[index % 4],
                    layout: Layout::flat(ranks),
                    bytes: SizeClass::of(bytes).first_bytes(),
                },
                last_bytes: SizeClass::of(bytes).last_bytes(),
                calls: 1000,
                default_seconds,
                chosen: if arm == 0 { Method::Default } else { method(arm) },
                tried: vec![one(arm, factor)],
            }
        });
        TrueClass {
            collective: COLLECTIVES[index % 4],
            bytes,
            default_seconds,
            arms,
            weight: if self == Kind::ShortLived { 1.0 } else { log_uniform(random, 0.05, 1.0) },
            learned,
        }
    }
}

pub fn log_uniform(random: &mut impl Rng, low: f64, high: f64) -> f64 {
    (low.ln() + random.random::<f64>() * (high / low).ln()).exp()
}
