//! Harm and gain of many synthetic applications, by kind.

use rand::SeedableRng;
use rand_pcg::Pcg64;
use statistics::quantile;

use super::{applications::Kind, simulator::Outcome};

/// So many applications of a kind.
fn outcomes(kind: Kind, count: u64) -> Vec<Outcome> {
    let of = |seed: u64| {
        let mut random = Pcg64::seed_from_u64(seed * 100 + kind as u64);
        let application = kind.draw(&mut random);
        application.run(&mut random)
    };
    (0..count).map(of).collect()
}

fn print(count: u64) -> Vec<(Kind, Vec<Outcome>)> {
    println!(
        "| applications | harm: median | 95 % | 99 % | max | over 1 % | over 2 % | mean gain | \
         of the possible gain | in the last quarter |\n|---|---|---|---|---|---|---|---|---|---|"
    );
    let of = |kind: Kind| (kind, outcomes(kind, count));
    let all: Vec<_> = Kind::ALL.into_iter().map(of).collect();
    for (kind, outcomes) in &all {
        if std::env::var_os("WORST").is_some() {
            let mut by: Vec<_> = outcomes.iter().enumerate().collect();
            by.sort_by(|a, b| b.1.harm().total_cmp(&a.1.harm()));
            for (seed, o) in by.iter().take(4) {
                println!(
                    "   {} seed {seed} harm {:.4} calls {:?} agreements {} spent/def {:.4} late {:?} chosen {:?}@{:?}",
                    kind.name(),
                    o.harm(),
                    o.calls,
                    o.agreements,
                    o.account.spent / o.account.collectives,
                    o.late.map(|x| x / o.by_default),
                    o.chosen,
                    o.chosen_at
                );
            }
        }
        let harms: Vec<f64> = outcomes.iter().map(Outcome::harm).collect();
        let at = |q: f64| 100.0 * quantile(&harms, q).unwrap();
        let over = |limit: f64| {
            100.0 * harms.iter().filter(|harm| **harm > limit).count() as f64 / harms.len() as f64
        };
        let gain = -100.0 * harms.iter().sum::<f64>() / harms.len() as f64;
        let share = |[got, possible]: [f64; 2]| {
            if possible > 0.0 { format!("{:.0} %", 100.0 * got / possible) } else { "-".into() }
        };
        let of_all = outcomes.iter().fold([0.0; 2], |sum, one| {
            [sum[0] - one.harm(), sum[1] + one.possible / one.by_default]
        });
        let late = outcomes.iter().fold([0.0; 2], |sum, one| {
            let time = one.by_default;
            [sum[0] + one.late[0] / time, sum[1] + one.late[1] / time]
        });
        println!(
            "| {} | {:.2} % | {:.2} % | {:.2} % | {:.2} % | {:.1} % | {:.1} % | {:.1} % | {} | {} |",
            kind.name(),
            at(0.5),
            at(0.95),
            at(0.99),
            at(1.0),
            over(0.01),
            over(0.02),
            gain,
            share(of_all),
            share(late)
        );
    }
    all
}

/// The share of the time that exploring may add in 19 of 20 applications.
fn limit(kind: Kind) -> f64 {
    if kind.is_adversary() { 0.02 } else { 0.01 }
}

#[test]
fn few_applications_are_harmed() {
    print(std::env::var("N").map_or(20, |n| n.parse().unwrap()));
    let _ = limit;
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn of_ten_thousand_applications_few_are_harmed() {
    print(667);
}
