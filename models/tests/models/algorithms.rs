//! Constants of algorithms against injected truth, and predictions by them.

use models::{
    Forms, Model, Point, Predictor,
    decide::{Segments, decide},
    explain::Explainer,
    fit::{MethodTime, algorithms},
    presets::preset,
};
use rand::{RngExt as _, SeedableRng as _};
use rand_distr::{Distribution as _, LogNormal};
use rand_pcg::Pcg64Mcg;
use records::{
    Algorithm, Collective, Method,
    calibration::{AlgorithmFit, Estimate, Parameters},
};

const GAMMA: f64 = 2e-9;

fn measured() -> Parameters {
    let mut measured = preset("boba").unwrap().measured;
    measured.gamma_seconds_per_byte = Estimate::exact(GAMMA);
    measured
}

/// A method and its alpha and beta.
type TrueFactors = (Collective, &'static str, f64, f64);

const TRUTH: [TrueFactors; 5] = [
    (Collective::Bcast, "native:openmpi:pipeline", 40e-6, 9e-9),
    (Collective::Bcast, "own:pipeline", 55e-6, 8e-9),
    (Collective::Bcast, "native:openmpi:binomial", 30e-6, 6e-9),
    (Collective::Reduce, "own:binomial", 25e-6, 12e-9),
    (Collective::Alltoall, "own:pairwise", 70e-6, 10e-9),
];

/// The paper's tables, written out for Hockney and numbers of processes that are powers of two.
fn by_hand(
    (collective, name, alpha, beta): TrueFactors,
    procs: f64,
    bytes: f64,
    segment: f64,
) -> f64 {
    let whole = segment == 0.0 || segment >= bytes;
    let (n_s, m_s) = if whole { (1.0, bytes) } else { ((bytes / segment).ceil(), segment) };
    let message = alpha + beta * m_s;
    match (collective, name.rsplit(':').next().unwrap()) {
        (Collective::Bcast, "pipeline") => (procs + n_s - 2.0) * message,
        (Collective::Bcast, "binomial") => procs.log2() * n_s * message,
        (Collective::Reduce, "binomial") => procs.log2() * n_s * (message + GAMMA * m_s),
        (Collective::Alltoall, "pairwise") => (procs - 1.0) * message,
        other => panic!("{other:?}"),
    }
}

/// Times of all methods, each a median with log-normal noise, one in twenty three times too long.
fn timed(random: &mut Pcg64Mcg, noise: f64, outliers: f64) -> Vec<MethodTime> {
    let noise = LogNormal::new(0.0, noise).unwrap();
    let mut timed = Vec::new();
    for truth @ (collective, name, ..) in TRUTH {
        for procs in [4_u32, 8] {
            for bytes in [16_u64, 1 << 10, 8 << 10, 64 << 10, 512 << 10] {
                for segment in [0, 1 << 10, 8 << 10] {
                    let cut = segment > 0;
                    if cut && (segment >= bytes || collective == Collective::Alltoall) {
                        continue;
                    }
                    let seconds = by_hand(truth, f64::from(procs), bytes as f64, segment as f64);
                    let outlier = if random.random_bool(outliers) { 3.0 } else { 1.0 };
                    let method: Method = name.parse().unwrap();
                    timed.push(MethodTime {
                        point: Point::flat(collective, procs, bytes),
                        method: method.with_segment(segment),
                        seconds: seconds * noise.sample(random) * outlier,
                    });
                }
            }
        }
    }
    timed
}

fn of(fits: &[AlgorithmFit], truth: TrueFactors, model: Model) -> &AlgorithmFit {
    let is = |fit: &&AlgorithmFit| {
        (fit.collective, fit.method.to_string(), fit.model.as_str())
            == (truth.0, truth.1.to_owned(), model.name())
    };
    fits.iter().find(is).unwrap_or_else(|| panic!("{truth:?} {model}"))
}

#[test]
fn without_noise_every_algorithm_has_its_own_constants_to_rounding() {
    let mut random = Pcg64Mcg::seed_from_u64(1);
    let found = algorithms(&timed(&mut random, 0.0, 0.0), &measured()).unwrap();
    assert!(found.warnings.is_empty(), "{:?}", found.warnings);
    assert_eq!(found.fits.len(), 2 * TRUTH.len(), "by hockney and by refined forms");
    let near = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-6;
    for truth in TRUTH {
        let fit = of(&found.fits, truth, Model::Hockney);
        assert!(near(fit.alpha_seconds.value, truth.2), "{truth:?} {:?}", fit.alpha_seconds);
        assert!(near(fit.beta_seconds_per_byte.value, truth.3), "{truth:?}");
        assert!(fit.r_squared > 1.0 - 1e-9 && fit.median_residual < 1e-6, "{truth:?}");
        assert_eq!(fit.points.len(), if truth.1 == "own:pairwise" { 10 } else { 20 });
        // Where nothing is combined the refined forms of full trees are the paper's.
        if truth.0 != Collective::Reduce {
            let fit = of(&found.fits, truth, Model::Refined);
            assert!(near(fit.alpha_seconds.value, truth.2), "{truth:?} {:?}", fit.alpha_seconds);
            assert!(near(fit.beta_seconds_per_byte.value, truth.3), "{truth:?}");
        }
    }
}

/// The 95 % intervals, over all seeds and parameters together; and no outlier bends a fit far.
#[test]
fn intervals_hold_the_truth_under_noise_with_outliers() {
    const SEEDS: u64 = 80;
    let (mut held, mut all) = (0, 0);
    for seed in 0..SEEDS {
        let mut random = Pcg64Mcg::seed_from_u64(1000 + seed);
        let found = algorithms(&timed(&mut random, 0.08, 0.05), &measured()).unwrap();
        for truth in TRUTH {
            let fit = of(&found.fits, truth, Model::Hockney);
            for (estimate, wanted) in
                [(fit.alpha_seconds, truth.2), (fit.beta_seconds_per_byte, truth.3)]
            {
                let off = (estimate.value / wanted - 1.0).abs();
                assert!(off < 0.25, "seed {seed}, {truth:?}: {estimate:?}");
                all += 1;
                held += u32::from((estimate.low..=estimate.high).contains(&wanted));
            }
        }
    }
    let share = f64::from(held) / f64::from(all);
    assert!((0.91..=0.985).contains(&share), "{share}");
}

#[test]
fn what_has_too_few_times_has_no_constants_and_that_is_said() {
    let mut random = Pcg64Mcg::seed_from_u64(3);
    let mut few = timed(&mut random, 0.0, 0.0);
    let own = "own:pipeline";
    few.retain(|one| {
        one.method.clone().with_segment(0).to_string() != own || one.point.bytes == 16
    });
    let found = algorithms(&few, &measured()).unwrap();
    assert_eq!(found.fits.len(), 2 * (TRUTH.len() - 1));
    assert!(found.warnings[0].contains("bcast by own:pipeline"), "{:?}", found.warnings);

    // A barrier carries nothing: its alpha alone is told.
    let barrier = |procs: u32| MethodTime {
        point: Point::flat(Collective::Barrier, procs, 0),
        method: "own:bruck".parse().unwrap(),
        seconds: 30e-6 * f64::from(procs).log2().ceil(),
    };
    let found = algorithms(&[2, 4, 8, 16].map(barrier), &measured()).unwrap();
    let fit = &found.fits[0];
    assert!((fit.alpha_seconds.value / 30e-6 - 1.0).abs() < 1e-9, "{fit:?}");
    assert_eq!(fit.beta_seconds_per_byte.value, 0.0);
}

/// Each method is predicted by its own constants; what has none is no candidate.
#[test]
fn predictions_and_decisions_take_each_algorithm_s_own_constants() {
    let mut random = Pcg64Mcg::seed_from_u64(5);
    let found = algorithms(&timed(&mut random, 0.02, 0.0), &measured()).unwrap();
    for model in [Model::Hockney, Model::Refined] {
        let predictor = Predictor::of_algorithms(model, &found.fits, &measured()).unwrap();
        let point = Point::flat(Collective::Bcast, 16, 256 << 10);
        for truth @ (_, name, ..) in TRUTH.into_iter().filter(|truth| truth.0 == point.collective) {
            let method = name.parse::<Method>().unwrap().with_segment(1 << 10);
            let prediction = predictor.predict_method(point, &method).unwrap();
            let wanted = by_hand(truth, 16.0, 262_144.0, 1024.0);
            assert!((prediction.value / wanted - 1.0).abs() < 0.1, "{method} {prediction:?}");
            assert!(prediction.low < prediction.value && prediction.value < prediction.high);
            let explainer = Explainer::new(&predictor, &measured(), None, false).unwrap();
            let terms = explainer.terms(point, &method).unwrap();
            let sum: f64 = terms.iter().map(|term| term.seconds).sum();
            assert!((sum / prediction.value - 1.0).abs() < 1e-6, "{terms:?}");
            let of_symbol = |term: &str| terms.iter().find(|one| one.parameter == term).unwrap();
            let fit = of(&found.fits, truth, model);
            assert_eq!(of_symbol("alpha").value, Some(fit.alpha_seconds.value));
        }
        let known = model.algorithms(Collective::Bcast);
        let both = predictor.methods(Collective::Bcast, Algorithm::Pipeline);
        let both: Vec<String> = both.iter().map(Method::to_string).collect();
        assert_eq!(both, ["native:openmpi:pipeline", "own:pipeline"]);
        assert!(predictor.methods(Collective::Bcast, Algorithm::Linear).is_empty());
        let segments = Segments::List(vec![0, 1 << 10, 8 << 10]);
        let decision = decide(&predictor, point, &known, &segments).unwrap();
        let cheapest = |name: &str| {
            let truth = TRUTH.into_iter().find(|truth| truth.1 == name).unwrap();
            let times = [0.0, 1024.0, 8192.0].map(|cut| by_hand(truth, 16.0, 262_144.0, cut));
            times.into_iter().fold(f64::INFINITY, f64::min)
        };
        let wanted = ["native:openmpi:pipeline", "own:pipeline"].map(cheapest);
        let taken = decision.method.clone().with_segment(0).to_string();
        assert_eq!(taken == "own:pipeline", wanted[1] < wanted[0], "{decision:?} {wanted:?}");
        let unknown = predictor.predict(point, Algorithm::Linear, 0).unwrap_err();
        assert_eq!(unknown.to_string(), "no constants were fitted for bcast by 'own:linear'");
    }
    // Parameters of messages stand for all methods alike.
    let common = Predictor::new(Model::Hockney, Forms::Corrected, &measured()).unwrap();
    let methods = common.methods(Collective::Bcast, Algorithm::Linear);
    assert_eq!(methods, [Method::own(Algorithm::Linear)]);
}
