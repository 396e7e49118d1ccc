//! Single applications, one for each thing that the explorer must do.

use rand::SeedableRng;
use rand_pcg::Pcg64;
use records::{Collective, Layout, Method};

use super::super::class::{Class, TIMED_RUN};
use super::super::{Arm, CallClass, CallEnd, Candidate, Explorer, SizeClass, Turn};
use super::simulator::{Application, Course, Outcome, Ranks, TrueArm, TrueClass, method};

/// One class of 64 KiB on 8 ranks; the arms take so many times as long as the default.
fn one_class(seconds: f64, factors: &[f64], calls: u64) -> Application {
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

fn run(application: &Application, seed: u64) -> Outcome {
    application.run(&mut Pcg64::seed_from_u64(seed))
}

/// The calls that were not the default's, and by what.
fn tried(application: &Application, seed: u64) -> Vec<(u64, Arm)> {
    let mut tried = Vec::new();
    application.run_watched(&mut Pcg64::seed_from_u64(seed), |_, call, arm| {
        if arm != 0 {
            tried.push((call, arm));
        }
    });
    tried
}

#[test]
fn few_calls_are_the_default_s_alone() {
    let few = one_class(1e-3, &[0.5], 19);
    let outcome = run(&few, 1);
    assert_eq!(tried(&few, 1), []);
    assert!(outcome.asked < 10, "the first ones are not even timed: {}", outcome.asked);
    // Short calls: an agreement takes as long as several.
    let mut short = one_class(2e-6, &[0.5], 100);
    short.classes[0].bytes = 8;
    short.agreement_seconds = 1e-5;
    assert_eq!(run(&short, 1).agreements, 0);
}

#[test]
fn candidates_are_tried_in_their_order_by_one_call_at_first() {
    let application = one_class(1e-3, &[1.3, 1.2, 1.1], 4000);
    let tried = tried(&application, 2);
    let first = |arm: Arm| tried.iter().position(|one| one.1 == arm).unwrap();
    assert!(first(1) < first(2) && first(2) < first(3), "{tried:?}");
    assert!(tried[1].0 > tried[0].0 + 2, "one call, and an agreement: {tried:?}");
    assert!(tried[0].0 > 700, "8 times as long must be covered: {tried:?}");
}

#[test]
fn what_was_predicted_to_be_fast_is_tried_soon() {
    let mut application = one_class(1e-3, &[1.3, 0.5], 2000);
    application.classes[0].arms[2].max_seconds = Some(1.2e-3);
    let outcome = run(&application, 3);
    assert_eq!(outcome.chosen, [2]);
    assert!(outcome.chosen_at[0] < 600, "{:?}", outcome.chosen_at);
}

#[test]
fn a_loop_of_some_thousand_calls_finds_what_takes_half() {
    for seed in 0..20 {
        let application = one_class(1e-3, &[1.5, 0.5, 2.0, 4.0], 5000);
        let outcome = run(&application, seed);
        assert_eq!(outcome.chosen, [2], "{outcome:?}");
        assert!(outcome.chosen_at[0] < 2500, "{:?}", outcome.chosen_at);
        assert!(outcome.harm() < -0.25, "{}", outcome.harm());
    }
}

#[test]
fn nothing_is_tried_before_an_overdraft_is_repaid() {
    for seed in 0..10 {
        let application = one_class(1e-3, &[50.0, 50.0], 40000);
        let tried = tried(&application, seed);
        let mut spent = 0.0;
        for (call, _) in &tried {
            // In calls of the default; noise and the wait of ranks blur it by a tenth.
            assert!(spent < 0.011 * *call as f64, "{spent} calls spent at call {call}: {tried:?}");
            spent += 45.0;
        }
        assert!(tried.len() > 2, "{tried:?}");
        assert!(run(&application, seed).harm() < 0.011);
    }
}

#[test]
fn what_is_slower_is_dropped_and_what_is_equal_is_not_sought() {
    for seed in 0..10 {
        let slower = tried(&one_class(1e-3, &[3.0], 50000), seed);
        assert!(slower.len() < 12, "{}", slower.len());
        let equal = one_class(1e-3, &[1.0], 50000);
        let calls = tried(&equal, seed);
        let late = calls.iter().filter(|call| call.0 > 25000).count();
        assert!(late < 2000 && calls.len() < 5000, "{late} late, {} in all", calls.len());
    }
}

#[test]
fn a_choice_rests_on_six_trials() {
    let application = one_class(1e-3, &[0.5], 3000);
    let outcome = run(&application, 5);
    assert_eq!(outcome.chosen, [1]);
    let [learned] = &outcome.learned[..] else { panic!("{outcome:?}") };
    assert!(learned.tried[0].ratios.trials >= 6);
}

#[test]
fn what_becomes_slow_is_left_within_a_hundred_calls() {
    for seconds in [2e-4, 1e-3] {
        for seed in 0..40 {
            let mut application = one_class(seconds, &[0.5], 20000);
            application.classes[0].arms[1].course = Course::From(0.6, 4.0);
            let calls = tried(&application, seed);
            let before = calls.iter().filter(|call| (11000..12000).contains(&call.0)).count();
            assert!(before > 900, "it was in use: {before}");
            let after =
                calls.iter().map(|call| call.0).filter(|call| (12000..14000).contains(call));
            let after: Vec<_> = after.collect();
            assert!(after.last().is_none_or(|last| *last < 12100), "seed {seed}: {after:?}");
        }
    }
}

#[test]
fn what_becomes_slow_among_other_classes_and_methods_is_left_as_soon() {
    let mut was_in_use = 0;
    for seed in 0..20 {
        let mut application = one_class(1e-3, &[0.5, 0.55, 0.7, 0.9], 40000);
        let mut others = application.classes[0].clone();
        (others.collective, others.weight) = (Collective::Alltoall, 2.0);
        application.classes.push(others);
        application.classes[0].arms[1].course = Course::From(0.5, 4.0);
        let mut uses = Vec::new();
        let mut at = None;
        let mut call_of_all = 0;
        application.run_watched(&mut Pcg64::seed_from_u64(seed), |class, call, arm| {
            call_of_all += 1;
            if class == 0 && call_of_all > 20000 {
                let slow_since = *at.get_or_insert(call);
                if arm == 1 && call < slow_since + 2000 {
                    uses.push(call - slow_since);
                }
            }
        });
        assert!(uses.last().is_none_or(|last| *last < 100), "seed {seed}: {uses:?}");
        was_in_use += u32::from(uses.len() > 5);
    }
    assert!(was_in_use > 10, "{was_in_use}");
}

#[test]
fn the_second_best_is_used_once_the_best_is_throttled() {
    for seed in 0..10 {
        let mut application = one_class(1e-3, &[0.5, 0.7], 40000);
        application.classes[0].arms[1].course = Course::From(0.3, 8.0);
        let outcome = run(&application, seed);
        assert_eq!(outcome.chosen, [2], "{outcome:?}");
    }
}

#[test]
fn what_becomes_slow_by_and_by_is_left() {
    for seed in 0..10 {
        let mut application = one_class(1e-3, &[0.5], 20000);
        application.classes[0].arms[1].course = Course::Slowly(0.3, 8.0);
        // It takes as long as the default from call 8,000 on.
        let calls = tried(&application, seed);
        let after = calls.iter().filter(|call| call.0 > 8000).count();
        assert!(after < 1000, "seed {seed}: {after}");
    }
}

#[test]
fn a_default_that_becomes_faster_than_the_choice_is_used_again() {
    for seed in 0..10 {
        let mut application = one_class(1e-3, &[0.5], 40000);
        application.classes[0].arms[0].course = Course::From(0.25, 0.25);
        let calls = tried(&application, seed);
        let after = calls.iter().filter(|call| call.0 > 10000).count();
        assert!(calls.len() - after > 7000, "it was in use: {}", calls.len() - after);
        assert!(after < 4000, "seed {seed}: {after}");
    }
}

#[test]
fn what_was_slower_is_tried_again_when_the_default_gets_slower() {
    for seed in 0..10 {
        let mut application = one_class(1e-3, &[2.0], 40000);
        application.classes[0].arms[0].course = Course::From(0.2, 4.0);
        let outcome = run(&application, seed);
        assert_eq!(outcome.chosen, [1], "{outcome:?}");
    }
}

#[test]
fn what_is_slow_in_use_is_left_though_trials_show_it_fast() {
    for seed in 0..10 {
        let mut application = one_class(1e-3, &[0.7], 20000);
        application.classes[0].arms[1].course = Course::InLongRuns(17, 3.0);
        let calls = tried(&application, seed);
        let late = calls.iter().filter(|call| call.0 > 10000).count();
        assert!(late < 200, "{late}");
    }
}

#[test]
fn a_second_job_begins_with_what_the_first_has_found() {
    let mut application = one_class(1e-3, &[1.5, 0.5], 5000);
    let first = run(&application, 7);
    assert_eq!(first.learned[0].chosen, method(2));
    assert_eq!(first.learned[0].calls, 5000);
    application.classes[0].learned = Some(first.learned[0].clone());
    let calls = tried(&application, 8);
    assert_eq!(calls[0], (0, 2), "from its first call");
    let second = run(&application, 8);
    assert!(second.harm() < -0.42, "{}", second.harm());
    // What it tells is its own alone.
    assert_eq!(second.learned[0].calls, 5000);
    let trials = second.learned[0].tried.iter().map(|tried| tried.ratios.trials).sum::<u64>();
    assert!((1..10).contains(&trials), "{:?}", second.learned);
    assert!((0.9e-3..1.3e-3).contains(&second.learned[0].default_seconds), "{:?}", second.learned);
}

#[test]
fn a_choice_of_another_job_that_is_wrong_here_is_left_soon() {
    let right = run(&one_class(1e-3, &[0.5], 5000), 7).learned[0].clone();
    for seed in 0..10 {
        let mut application = one_class(1e-3, &[2.0], 5000);
        application.classes[0].learned = Some(right.clone());
        let calls = tried(&application, seed);
        assert_eq!(calls[0], (0, 1));
        assert!(calls.len() < 50, "{}", calls.len());
        assert_eq!(run(&application, seed).learned[0].chosen, Method::Default);
    }
}

#[test]
fn what_declines_is_not_called_again() {
    let mut application = one_class(1e-3, &[0.5, 1.5], 5000);
    application.classes[0].arms[1].declines = true;
    let calls = tried(&application, 9);
    assert_eq!(calls.iter().filter(|call| call.1 == 1).count(), 1, "{calls:?}");
    // Nor what another job chose.
    let mut chosen = run(&one_class(1e-3, &[0.5], 5000), 7).learned[0].clone();
    chosen.default_seconds = 1e-3;
    application.classes[0].learned = Some(chosen);
    let calls = tried(&application, 9);
    assert!(calls.iter().filter(|call| call.1 == 1).count() < 50, "{calls:?}");
}

#[test]
fn the_account_is_what_it_truly_was() {
    for seed in 0..5 {
        let application = one_class(1e-3, &[1.5, 0.5], 20000);
        let outcome = run(&application, seed);
        let ranks = f64::from(application.ranks);
        let near =
            |told: f64, truth: f64, within: f64| (told / (ranks * truth) - 1.0).abs() < within;
        let account = outcome.account;
        let time = outcome.by_default + outcome.added;
        assert!(near(account.collectives, time, 0.05), "{account:?} {time}");
        assert!(
            near(account.gained, -outcome.added, 0.15),
            "{account:?} {} {:?}",
            outcome.added,
            outcome.learned
        );
        assert!(account.spent > 0.0 && account.spent < 0.015 * account.collectives, "{account:?}");
        assert!(account.budget <= 0.01 * account.collectives, "{account:?}");
    }
    // A method that loses is paid for.
    let application = one_class(1e-3, &[3.0], 5000);
    let outcome = run(&application, 1);
    let told = outcome.account.spent / f64::from(application.ranks);
    assert!((told / outcome.added - 1.0).abs() < 0.3, "{told} {}", outcome.added);
}

#[test]
fn most_calls_are_left_alone() {
    let mut application = one_class(2e-6, &[1.5, 3.0], 200_000);
    application.agreement_seconds = 1e-5;
    let asked = run(&application, 1).asked as f64 / 2e5;
    assert!(asked < 0.02, "{asked}");
    let mut application = one_class(2e-6, &[0.5], 200_000);
    application.agreement_seconds = 1e-5;
    let asked = run(&application, 1).asked as f64 / 2e5;
    assert!(asked < 0.02, "{asked}");
    assert!(size_of::<Class>() <= 512, "{}", size_of::<Class>());
}

fn bcast(bytes: u64) -> CallClass {
    CallClass { collective: Collective::Bcast, size: SizeClass::of(bytes) }
}

fn candidates(count: usize) -> Vec<Candidate> {
    (1..=count).map(|arm| Candidate { method: method(arm), max_seconds: Some(1e-3) }).collect()
}

fn timed(seconds: f64, turn: Turn) -> CallEnd {
    CallEnd { seconds: turn.is_timed.then_some(seconds), was_declined: false }
}

/// However many of them were made before all are asked for, as where an agreement begins.
#[test]
fn of_a_timed_run_the_last_call_alone_is_asked_for() {
    for made in 0..TIMED_RUN {
        let mut explorer = Explorer::new(Layout::flat(2), 0.01);
        let (class, alone) = explorer.add_class(bcast(8), candidates(1), None);
        let untimed = std::iter::from_fn(|| alone.take()).count() as u64;
        let mut times = (1..=TIMED_RUN).map(f64::from);
        for seconds in times.by_ref().take(made as usize) {
            assert_eq!(alone.timed_arm(), Some(0), "{made}");
            alone.add_timed((seconds * 1e9) as u64, seconds == 1.0);
        }
        assert_eq!(alone.timed_arm().is_some(), made < TIMED_RUN - 1, "{made}");
        if made < TIMED_RUN - 1 {
            explorer.classes[class].ask_for_all();
        }
        for seconds in times {
            assert_eq!((alone.take(), alone.timed_arm()), (None, None));
            assert_eq!(explorer.next(class), Turn { arm: 0, is_timed: true });
            let was_declined = seconds == 1.0;
            explorer.ended(class, CallEnd { seconds: Some(seconds), was_declined });
            // Else the rest of the run is granted anew.
            explorer.classes[class].ask_for_all();
        }
        let state = &explorer.classes[class];
        assert_eq!(state.news, Some([3.0, 1.0]), "{made}");
        assert_eq!(state.calls(), untimed + u64::from(TIMED_RUN), "{made}");
    }
}

#[test]
fn one_rank_that_gives_up_ends_it_for_all() {
    let mut ranks = Ranks::new(Layout::flat(4), 0.01, 4);
    let class = ranks.add_class(bcast(65536), &candidates(2), None);
    let mut of_others = 0;
    for call in 0..5000 {
        if call == 1000 {
            ranks.explorers()[2].give_up();
        }
        let (arm, turn) = ranks.begin(class);
        of_others += u64::from(call > 3000 && arm != 0);
        if let Some(turn) = turn {
            let seconds = if arm == 0 { 1e-3 } else { 0.5e-3 };
            ranks.end(class, |_| timed(seconds, turn), |_| 1e-5);
        }
    }
    assert_eq!(of_others, 0);
    let other = ranks.add_class(bcast(8), &candidates(2), None);
    assert_eq!(ranks.begin(other), (0, None), "nor in a new class");
    assert_eq!(ranks.begin(class), (0, None));
}

#[test]
fn ranks_that_differ_in_what_they_may_try_give_up_before_they_do() {
    let mut ranks = Ranks::new(Layout::flat(3), 0.01, 3);
    let class = ranks.add_class(bcast(65536), &candidates(2), None);
    let other = bcast(131_072);
    for (rank, explorer) in ranks.explorers().iter_mut().enumerate() {
        explorer.add_class(other, candidates(if rank == 1 { 1 } else { 2 }), None);
    }
    for _ in 0..2000 {
        let (arm, turn) = ranks.begin(class);
        assert_eq!(arm, 0);
        if let Some(turn) = turn {
            ranks.end(class, |_| timed(1e-3, turn), |_| 1e-5);
        }
    }
    assert!(ranks.explorers().iter().all(|explorer| explorer.has_given_up));
}

/// A loop over several collectives and sizes for a minute, on a network of 1 ms and 10 Mbit/s.
fn slow_network(predicted: bool) -> Application {
    let mut application = one_class(1e-3, &[0.5], 0);
    application.classes.clear();
    let collectives = [Collective::Bcast, Collective::Allreduce, Collective::Alltoall];
    for collective in collectives {
        for bytes in [8, 1024, 8192, 65536] {
            let seconds = 4e-3 + 2e-6 * bytes as f64;
            let mut arms: Vec<_> = [1.0, 1.4, 0.5, 0.8, 2.5].map(TrueArm::steady).to_vec();
            for arm in &mut arms[1..] {
                arm.max_seconds = predicted.then_some(3.0 * arm.factor * seconds);
            }
            application.classes.push(TrueClass {
                collective,
                bytes,
                default_seconds: seconds,
                arms,
                weight: 1.0,
                learned: None,
            });
        }
    }
    let mean: f64 = application.classes.iter().map(|class| class.default_seconds).sum::<f64>()
        / application.classes.len() as f64;
    application.calls = (60.0 / mean) as u64;
    application.agreement_seconds = 8e-3;
    application.wait = 0.05 * mean;
    application
}

#[test]
fn a_minute_on_a_slow_network_is_enough_for_some() {
    for predicted in [false, true] {
        let application = slow_network(predicted);
        let outcomes: Vec<_> = (0..5).map(|seed| run(&application, seed)).collect();
        let mean = |of: fn(&Outcome) -> f64| outcomes.iter().map(of).sum::<f64>() / 5.0;
        let late = mean(|outcome| outcome.late[0] / outcome.late[1]);
        let harm = mean(Outcome::harm);
        println!("predicted: {predicted}; {harm} {late}");
        assert!(harm < 0.005, "{harm}");
        assert!(!predicted || late > 0.2, "{late}");
    }
}
