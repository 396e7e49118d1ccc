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
            for (seed, o) in by.iter().take(if std::env::var_os("ALL").is_some() { 40 } else { 4 })
            {
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

/// How much of the possible gain is got where one method takes half, by the calls of a class.
fn print_gains(count: u64) {
    println!(
        "| calls of a class | of the possible gain | in the last quarter | 10 % of applications got less than |\n|---|---|---|---|"
    );
    for calls in [100, 300, 1_000, 3_000, 10_000, 30_000, 100_000] {
        let of = |seed: u64| {
            let mut random = Pcg64::seed_from_u64(seed);
            let mut application = Kind::OneHalf.draw(&mut random);
            application.classes.truncate(6);
            application.calls = calls * application.classes.len() as u64;
            application.run(&mut random)
        };
        let outcomes: Vec<_> = (0..count).map(of).collect();
        if std::env::var_os("LOW").is_some() {
            let mut by: Vec<_> = outcomes.iter().enumerate().collect();
            by.sort_by(|a, b| (a.1.late[0] / a.1.late[1]).total_cmp(&(b.1.late[0] / b.1.late[1])));
            for (seed, o) in by.iter().take(5) {
                let mut random = Pcg64::seed_from_u64(*seed as u64);
                let application = Kind::OneHalf.draw(&mut random);
                println!(
                    "   noise {:.2} {:.2} hic {} wait {:.2e} A {:.2e} p {} classes {:?}",
                    application.noise,
                    application.rank_noise,
                    application.hiccups,
                    application.wait,
                    application.agreement_seconds,
                    application.ranks,
                    application
                        .classes
                        .iter()
                        .take(6)
                        .map(|c| (
                            c.default_seconds,
                            c.arms
                                .iter()
                                .map(|a| (a.factor * 100.0).round() / 100.0)
                                .collect::<Vec<_>>()
                        ))
                        .collect::<Vec<_>>()
                );
                for c in &o.learned {
                    println!(
                        "      {} {} {:?}",
                        c.default_seconds,
                        c.chosen,
                        c.tried
                            .iter()
                            .map(|t| (t.trials, (t.log_ratio * 100.0).round() / 100.0))
                            .collect::<Vec<_>>()
                    );
                }
                println!(
                    "  LOW {calls} seed {seed} late {:.2} got {:.2} calls {:?} agreements {} spent {:.4} chosen {:?}@{:?}",
                    o.late[0] / o.late[1],
                    -o.added / o.possible,
                    o.calls,
                    o.agreements,
                    o.account.spent / o.account.collectives,
                    o.chosen,
                    o.chosen_at
                );
            }
        }
        let mean = |of: &dyn Fn(&Outcome) -> f64| {
            100.0 * outcomes.iter().map(of).sum::<f64>() / outcomes.len() as f64
        };
        let lates: Vec<f64> = outcomes.iter().map(|one| one.late[0] / one.late[1]).collect();
        println!(
            "| {calls} | {:.0} % | {:.0} % | {:.0} % |",
            mean(&|one| -one.added / one.possible),
            mean(&|one| one.late[0] / one.late[1]),
            100.0 * quantile(&lates, 0.1).unwrap()
        );
    }
}

#[test]
fn gains() {
    print_gains(100);
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

#[test]
fn debug_one() {
    let Ok(kind) = std::env::var("KIND") else { return };
    let kind = Kind::ALL.into_iter().find(|k| k.name() == kind).unwrap();
    let seed: u64 = std::env::var("SEED").unwrap().parse().unwrap();
    let mut random = Pcg64::seed_from_u64(seed * 100 + kind as u64);
    let application = kind.draw(&mut random);
    println!("{application:?}");
    let mut rows: Vec<(usize, u64, u64, u32)> = Vec::new();
    let outcome = application.run_watched(&mut random, |class, call, arm| {
        match rows.iter_mut().rev().find(|r| r.0 == class) {
            Some(r) if r.3 == arm => r.2 = call,
            _ => rows.push((class, call, call, arm)),
        }
    });
    for r in &rows {
        if r.3 != 0 {
            println!("class {} arm {} {}..={} ({})", r.0, r.3, r.1, r.2, r.2 - r.1 + 1);
        }
    }
    println!("{outcome:?}");
}
