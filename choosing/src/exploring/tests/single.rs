//! Single applications, one for each thing that the explorer must do.

use rand::SeedableRng;
use rand_pcg::Pcg64;
use records::Collective;

use super::simulator::{Application, Course, Outcome, TrueArm, TrueClass};

/// One class of 64 KiB on 8 ranks; the arms take so many times as long as the default.
pub fn one_class(seconds: f64, factors: &[f64], calls: u64) -> Application {
    let factors = std::iter::once(&1.0).chain(factors);
    let class = TrueClass {
        collective: Collective::Bcast,
        bytes: 65536,
        default_seconds: seconds,
        arms: factors.map(|factor| TrueArm::steady(*factor)).collect(),
        weight: 1.0,
        learned: None,
    };
    Application {
        ranks: 8,
        classes: vec![class],
        calls,
        budget: 0.01,
        noise: 0.1,
        rank_noise: 0.1,
        hiccups: 1e-4,
        wait: 0.1 * seconds,
        agreement_seconds: 5e-5,
    }
}

pub fn run(application: &Application, seed: u64) -> Outcome {
    application.run(&mut Pcg64::seed_from_u64(seed))
}

#[test]
fn a_loop_of_a_thousand_calls_finds_what_takes_half() {
    for predicted in [false, true] {
        let mut at = Vec::new();
        for seed in 0..20 {
            let mut application = one_class(1e-3, &[1.5, 0.5, 2.0, 4.0], 4000);
            if predicted {
                for arm in &mut application.classes[0].arms[1..] {
                    arm.max_seconds = Some(3e-3 * arm.factor);
                }
            }
            let outcome = run(&application, seed);
            at.push((outcome.chosen[0], outcome.chosen_at[0], (outcome.harm() * 1e3).round()));
        }
        println!("{at:?}");
    }
}

#[test]
fn what_becomes_slow_is_left_within_a_hundred_calls() {
    for seconds in [2e-4, 1e-3] {
        let mut after = Vec::new();
        for seed in 0..20 {
            let mut application = one_class(seconds, &[0.5], 20000);
            application.classes[0].arms[1].course = Course::From(0.6, 4.0);
            let mut uses = Vec::new();
            application.run_watched(&mut Pcg64::seed_from_u64(seed), |_, call, arm| {
                if call >= 12000 && arm == 1 {
                    uses.push(call - 12000);
                }
            });
            after.push((uses.len(), uses.iter().filter(|call| **call < 1000).max().copied()));
        }
        println!("{after:?}");
    }
}
