//! Harm and gain of many synthetic applications, by kind.
//!
//! `cargo test -p colibri-choosing --release --lib exploring -- --ignored --nocapture` prints the tables of 10,000.

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

fn share_over(outcomes: &[Outcome], limit: f64) -> f64 {
    let over = outcomes.iter().filter(|outcome| outcome.harm() > limit);
    over.count() as f64 / outcomes.len() as f64
}

/// The share of its time that exploring may add to an application in 19 of 20.
fn limit(kind: Kind) -> f64 {
    match kind {
        _ if kind.is_adversary() => 0.02,
        // Its choices are used from the first call on, before anybody can know that they are wrong.
        Kind::LearnedWrong => 0.1,
        _ => 0.01,
    }
}

fn print(all: &[(Kind, Vec<Outcome>)]) {
    println!(
        "| applications | harm: median | 95 % | 99 % | max | over 1 % | over 2 % | mean gain | \
         of the possible gain | in the last quarter |\n|---|---|---|---|---|---|---|---|---|---|"
    );
    for (kind, outcomes) in all {
        let harms: Vec<f64> = outcomes.iter().map(Outcome::harm).collect();
        let at = |q: f64| 100.0 * quantile(&harms, q).unwrap();
        let gain = -100.0 * harms.iter().sum::<f64>() / harms.len() as f64;
        let sums = |of: fn(&Outcome) -> [f64; 2]| {
            let add = |sum: [f64; 2], one: &Outcome| {
                let [got, possible] = of(one).map(|seconds| seconds / one.by_default);
                [sum[0] + got, sum[1] + possible]
            };
            outcomes.iter().fold([0.0; 2], add)
        };
        let share = |[got, possible]: [f64; 2]| {
            let is_some = possible > 0.02 * outcomes.len() as f64;
            if is_some { format!("{:.0} %", 100.0 * got / possible) } else { "-".into() }
        };
        println!(
            "| {} | {:.2} % | {:.2} % | {:.2} % | {:.2} % | {:.1} % | {:.1} % | {:.1} % | {} | {} |",
            kind.name(),
            at(0.5),
            at(0.95),
            at(0.99),
            at(1.0),
            100.0 * share_over(outcomes, 0.01),
            100.0 * share_over(outcomes, 0.02),
            gain,
            share(sums(|one| [-one.added, one.possible])),
            share(sums(|one| one.late)),
        );
    }
}

/// Applications in which one method takes half, with so many calls of each class.
fn with_calls(calls: u64, count: u64) -> Vec<Outcome> {
    let of = |seed: u64| {
        let mut random = Pcg64::seed_from_u64(seed);
        let mut application = Kind::OneHalf.draw(&mut random);
        application.classes.truncate(6);
        application.calls = calls * application.classes.len() as u64;
        application.run(&mut random)
    };
    (0..count).map(of).collect()
}

fn mean(outcomes: &[Outcome], of: fn(&Outcome) -> f64) -> f64 {
    outcomes.iter().map(of).sum::<f64>() / outcomes.len() as f64
}

#[test]
fn few_applications_are_harmed() {
    let all = Kind::ALL.map(|kind| (kind, outcomes(kind, 20)));
    print(&all);
    let over = all.iter().map(|(kind, outcomes)| share_over(outcomes, limit(*kind)));
    let over = over.sum::<f64>() / all.len() as f64;
    assert!(over <= 0.05, "{over}");
    for (kind, outcomes) in &all {
        let gain = -mean(outcomes, Outcome::harm);
        let least = match kind {
            Kind::OneHalf => 0.08,
            Kind::LearnedRight => 0.3,
            _ => -0.01,
        };
        assert!(gain > least, "{}: {gain}", kind.name());
    }
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn of_ten_thousand_applications_few_are_harmed() {
    let all = Kind::ALL.map(|kind| (kind, outcomes(kind, 600)));
    print(&all);
    for (kind, outcomes) in &all {
        let over = share_over(outcomes, limit(*kind));
        assert!(over <= 0.05, "{}: {over}", kind.name());
    }
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn long_applications_get_most_of_what_there_is() {
    println!(
        "| calls of a class | of the possible gain | in the last quarter | all but a tenth, at least |\n\
         |---|---|---|---|"
    );
    for calls in [100, 300, 1_000, 3_000, 10_000, 30_000, 100_000] {
        let outcomes = with_calls(calls, 200);
        let late: Vec<f64> = outcomes.iter().map(|one| one.late[0] / one.late[1]).collect();
        let got = mean(&outcomes, |one| -one.added / one.possible);
        let got_late = mean(&outcomes, |one| one.late[0] / one.late[1]);
        let tenth = quantile(&late, 0.1).unwrap();
        println!(
            "| {calls} | {:.0} % | {:.0} % | {:.0} % |",
            100.0 * got,
            100.0 * got_late,
            100.0 * tenth
        );
        assert!(calls < 30_000 || got_late > 0.9, "{calls} calls: {got_late}");
    }
}
