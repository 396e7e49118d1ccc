//! Whatever is called, and whatever its ranks measure: the explorers of a communicator do the same.

use proptest::prelude::*;
use records::{
    Collective, Layout, Point,
    learned::{LearnedClass, LearnedMethod, LogRatios},
};

use super::super::{CallClass, CallEnd, Candidate, SizeClass};
use super::simulator::{Ranks, method};

const RANKS: u32 = 4;

#[derive(Debug, Clone)]
enum Event {
    /// So many calls of one of the classes.
    Calls(usize, u32),
    AddClass {
        power: u32,
        candidates: usize,
        predicted: bool,
        /// Another job has chosen the first candidate, which took so many times as long as the default.
        learned: Option<f64>,
    },
    /// A call of one of the classes that the library refuses on all ranks.
    Refused(usize),
    /// A rank wishes to give up.
    GiveUp(usize),
    /// From now on a rank declines all methods, or none.
    Declines(usize, bool),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        20 => (0_usize..6, 1_u32..400).prop_map(|(class, calls)| Event::Calls(class, calls)),
        4 => (0_u32..24, 0_usize..5, any::<bool>(), prop::option::of(0.1_f64..2.0)).prop_map(
            |(power, candidates, predicted, learned)| {
                Event::AddClass { power, candidates, predicted, learned }
            }
        ),
        2 => (0_usize..6).prop_map(Event::Refused),
        1 => (0..RANKS as usize).prop_map(Event::GiveUp),
        2 => (0..RANKS as usize, any::<bool>()).prop_map(|(rank, does)| Event::Declines(rank, does)),
    ]
}

/// Seconds of a call on a rank: mostly some, now and then nothing that a clock should tell.
fn seconds() -> impl Strategy<Value = f64> {
    prop_oneof![
        30 => 1e-6_f64..1e-2,
        1 => prop_oneof![
            Just(0.0),
            Just(-1.0),
            Just(f64::NAN),
            Just(f64::INFINITY),
            Just(1e300),
            Just(1e-300),
        ],
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn explorers_stay_in_step(
        events in prop::collection::vec(event(), 1..60),
        times in prop::collection::vec(seconds(), 64),
        budget in prop_oneof![Just(0.01), Just(1.0), Just(0.0), Just(f64::NAN)],
    ) {
        let mut ranks = Ranks::new(Layout::flat(RANKS), budget, RANKS);
        let mut classes = 0;
        let mut declining = [false; RANKS as usize];
        let mut at = 0;
        for event in events {
            match event {
                Event::AddClass { power, candidates, predicted, learned } => {
                    let call = CallClass {
                        collective: Collective::Allreduce,
                        size: SizeClass::of(1 << power),
                    };
                    let candidate = |arm: usize| Candidate {
                        method: method(arm),
                        max_seconds: predicted.then_some(1e-4),
                    };
                    let candidates: Vec<_> = (1..=candidates).map(candidate).collect();
                    let learned = learned.map(|factor| LearnedClass {
                        point: Point {
                            collective: call.collective,
                            layout: Layout::flat(RANKS),
                            bytes: call.size.first_bytes(),
                        },
                        last_bytes: call.size.last_bytes(),
                        calls: 1000,
                        default_seconds: 1e-3,
                        chosen: method(1),
                        tried: vec![LearnedMethod {
                            method: method(1),
                            ratios: LogRatios { trials: 10, mean: factor.ln(), squares: 0.1 },
                        }],
                    });
                    ranks.add_class(call, &candidates, learned.as_ref());
                    classes += 1;
                }
                Event::GiveUp(rank) => ranks.explorers()[rank].give_up(),
                Event::Declines(rank, does) => declining[rank] = does,
                Event::Refused(class) if classes > 0 => ranks.refuse(class % classes),
                Event::Calls(class, calls) if classes > 0 => {
                    for _ in 0..calls {
                        let class = class % classes;
                        let (arm, turn) = ranks.begin(class);
                        let Some(turn) = turn else { continue };
                        at += 1;
                        // The same arm is fast on one rank and slow on another.
                        let time = |rank: usize| times[(at * (rank + 3) + arm as usize * 7) % 64];
                        let end = |rank: usize| CallEnd {
                            seconds: turn.is_timed.then(|| time(rank)),
                            was_declined: arm != 0 && declining[rank],
                        };
                        ranks.end(class, end, time);
                    }
                }
                Event::Refused(_) | Event::Calls(..) => {}
            }
        }
        let accounts: Vec<_> = ranks.explorers().iter().map(|one| one.account()).collect();
        let learned: Vec<_> = ranks.explorers().iter().map(|one| one.learned()).collect();
        for account in &accounts {
            prop_assert_eq!(account, &accounts[0]);
            prop_assert!(account.spent >= 0.0 && account.budget >= 0.0, "{:?}", account);
        }
        for one in &learned {
            prop_assert_eq!(one, &learned[0]);
        }
    }
}
