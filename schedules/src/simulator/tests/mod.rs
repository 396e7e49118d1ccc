//! Against cases computed by hand and against closed forms where these are exact.

mod arrival;
mod closed_forms;
mod in_memory;
mod levels;
mod shared;

use proptest::prelude::*;
use records::{Algorithm, Collective};

use super::*;
use crate::{Buffer, ENTRIES, Program, Range, Round, find};

fn seconds(
    collective: Collective,
    algorithm: Algorithm,
    call: &Call<'_>,
    costs: &impl Costs,
) -> f64 {
    let entry = find(collective, algorithm).unwrap();
    simulate(entry, call, costs, Options::default()).unwrap().seconds
}

/// Round numbers: L = 10, o = 1, g = 3, G = 0.5, gamma = 2 (seconds).
const ROUND: LogGpCosts =
    LogGpCosts { latency: 10.0, overhead: 1.0, gap: 3.0, gap_per_byte: 0.5, combine_per_byte: 2.0 };

#[test]
fn hand_computed_cases_come_out() {
    // Scatter, 3 ranks, 5 bytes: sends begin at 0 and 3 + 2 = 5; the second is there at
    // 5 + 1 + 10 + 2, and taken in at 19.
    let call = Call::new(3, 5);
    let linear = find(Collective::Scatter, Algorithm::Linear).unwrap();
    let scattered = simulate(linear, &call, &ROUND, Options::default()).unwrap();
    assert_eq!(scattered.finish, [6.0, 14.0, 19.0]);
    assert_eq!((scattered.messages, scattered.bytes), (2, 10));

    // Reduce, 3 ranks, 1 byte: both messages are at the root's port at 11 and pass at 11 and 14;
    // taken in by 12, combined by 14; taken in by 15, combined by 17.
    let reduced = seconds(Collective::Reduce, Algorithm::Linear, &Call::new(3, 1), &ROUND);
    assert_eq!(reduced, 17.0);

    // Elements of 8 bytes: o + L + 7 G + o.
    let options = Options { element_bytes: 8, ..Options::default() };
    let pipeline = find(Collective::Bcast, Algorithm::Pipeline).unwrap();
    let sent = simulate(pipeline, &Call::new(2, 1), &ROUND, options).unwrap();
    assert_eq!((sent.seconds, sent.bytes), (15.5, 8));
}

#[test]
fn a_rendezvous_waits_for_its_receive() {
    let pipeline = find(Collective::Bcast, Algorithm::Pipeline).unwrap();
    let options = Options { rendezvous_bytes: Some(5), ..Options::default() };
    // The offer leaves at 1 and is there at 11, the answer is back at 21, and the message there at
    // 21 + 12; the sender's buffer is free after the gap of 5.
    let sent = simulate(pipeline, &Call::new(2, 5), &ROUND, options).unwrap();
    assert_eq!(sent.finish, [26.0, 34.0]);
    let eager = simulate(pipeline, &Call::new(2, 4), &ROUND, options).unwrap();
    assert_eq!(eager.finish, [1.0, 13.5]);
}

#[test]
fn the_cost_of_a_rendezvous_is_told() {
    let pipeline = find(Collective::Bcast, Algorithm::Pipeline).unwrap();
    for (handshake, added) in [(None, 20.0), (Some(20.0), 20.0), (Some(3.0), 3.0), (Some(0.0), 0.0)]
    {
        let options = Options { rendezvous_bytes: Some(5), handshake, ..Options::default() };
        // The receive is posted at 0, the send offered at 1.
        let sent = simulate(pipeline, &Call::new(2, 5), &ROUND, options).unwrap();
        assert_eq!(sent.finish, [6.0 + added, 14.0 + added], "{handshake:?}");
    }
}

#[test]
fn a_port_takes_rendezvous_transfers_in_the_order_of_agreement() {
    let options = Options { rendezvous_bytes: Some(0), ..Options::default() };
    let binomial = find(Collective::Bcast, Algorithm::Binomial).unwrap();
    // The root offers to rank 2 at 1 and to rank 1 at 2; both receives are posted at 0. The
    // answers are there at 21 and 22, the messages leave at 21 and 21 + 5, pass at once and are
    // taken in 12 + 1 later. Rank 2 offers to rank 3 at 35: 55, 68.
    let sent = simulate(binomial, &Call::new(4, 5), &ROUND, options).unwrap();
    assert_eq!(sent.finish, [31.0, 39.0, 60.0, 68.0]);
}

/// Rank 0 sends to ranks 1 and 2; rank 1 posts its receive only when it has heard from rank 2.
struct Detour(u32);

impl Program for Detour {
    fn new(_call: &Call<'_>, rank: u32) -> Self {
        Detour(rank)
    }

    fn rounds(&self) -> u64 {
        1
    }

    fn round(&self, call: &Call<'_>, _index: u64, out: &mut Round) {
        let all = Range::new(Buffer::Receive, 0, call.count);
        match self.0 {
            0 => {
                out.send(1, 0, all);
                out.send(2, 1, all);
                out.wait(0);
                out.wait(1);
            }
            1 => [2, 0].into_iter().for_each(|from| {
                out.receive(from, 0, all);
                out.wait(0);
            }),
            _ => {
                out.receive(0, 0, all);
                out.wait(0);
                out.send(1, 1, all);
                out.wait(1);
            }
        }
    }

    fn slots(&self) -> u32 {
        2
    }
}

#[test]
fn a_transfer_that_is_agreed_first_leaves_first() {
    let entry = Entry::new::<Detour>(Collective::Bcast, Algorithm::Linear, "a detour");
    let options = Options { rendezvous_bytes: Some(0), ..Options::default() };
    // Rank 2 is offered the second message at 2: it leaves at 22 and is taken in by 35. Rank 2
    // offers at 36, leaves at 56, and is taken in by 69; then rank 1 posts the other receive, the
    // answer is at rank 0 at 79, and the message is taken in by 92.
    let sent = simulate(&entry, &Call::new(3, 5), &ROUND, options).unwrap();
    assert_eq!(sent.finish, [84.0, 92.0, 61.0]);
}

#[test]
fn messages_of_no_bytes_have_no_negative_length() {
    assert_eq!(ROUND.gap(0, 1), 3.0);
    assert_eq!(ROUND.flight(0), 10.0);
    let empty = Call::new(9, 0);
    for entry in ENTRIES.iter().filter(|entry| entry.collective != Collective::Barrier) {
        if entry.check(&empty).is_ok() && !entry.requirements.even {
            let outcome = simulate(entry, &empty, &ROUND, Options::default());
            assert_eq!(outcome.map(|outcome| outcome.seconds), Ok(0.0), "{entry:?}");
        }
    }
}

#[test]
fn plogp_is_linear_between_its_knots_and_goes_on_beyond() {
    let knot =
        |bytes: u64, gap: f64| CostKnot { bytes, send_overhead: 1.0, receive_overhead: 2.0, gap };
    let model =
        PLogPCosts::new(5.0, vec![knot(10, 4.0), knot(20, 6.0), knot(40, 16.0)], 0.0).unwrap();
    for (bytes, gap) in [(0, 4.0), (10, 4.0), (15, 5.0), (20, 6.0), (30, 11.0), (60, 26.0)] {
        assert_eq!(model.gap(bytes, 1), gap, "{bytes}");
        assert_eq!(model.flight(bytes), 5.0 + gap - 3.0);
    }
    let falling = PLogPCosts::new(5.0, vec![knot(0, 9.0), knot(8, 3.0)], 0.0).unwrap();
    for (bytes, gap) in [(0, 9.0), (4, 6.0), (8, 3.0), (1 << 40, 3.0)] {
        assert_eq!(falling.gap(bytes, 1), gap, "a falling end does not go on: {bytes}");
    }
    assert!(PLogPCosts::new(5.0, vec![], 0.0).unwrap_err().contains("at least one"));
    assert!(
        PLogPCosts::new(5.0, vec![knot(2, 1.0), knot(2, 1.0)], 0.0)
            .unwrap_err()
            .contains("ascending")
    );
    assert!(PLogPCosts::new(f64::NAN, vec![knot(2, 1.0)], 0.0).unwrap_err().contains("0 or more"));
}

#[test]
fn the_gap_may_depend_on_the_number_of_destinations() {
    struct Fanned;
    impl Costs for Fanned {
        fn send_overhead(&self, bytes: u64) -> f64 {
            ROUND.send_overhead(bytes)
        }
        fn receive_overhead(&self, bytes: u64) -> f64 {
            ROUND.receive_overhead(bytes)
        }
        fn gap(&self, bytes: u64, destinations: u32) -> f64 {
            ROUND.gap(bytes, 1) * f64::from(destinations)
        }
        fn flight(&self, bytes: u64) -> f64 {
            ROUND.flight(bytes)
        }
        fn combine(&self, bytes: u64) -> f64 {
            ROUND.combine(bytes)
        }
    }
    let call = Call::new(4, 1);
    // Three children: the last send begins after two gaps, of 3 and of 9.
    assert_eq!(seconds(Collective::Bcast, Algorithm::Linear, &call, &ROUND), 6.0 + 12.0);
    assert_eq!(seconds(Collective::Bcast, Algorithm::Linear, &call, &Fanned), 18.0 + 12.0);
    let call = Call { segment: 1, ..Call::new(3, 4) };
    assert_eq!(
        seconds(Collective::Bcast, Algorithm::Pipeline, &call, &ROUND),
        seconds(Collective::Bcast, Algorithm::Pipeline, &call, &Fanned),
    );
}

/// Whatever was simulated before, larger or smaller, well or in vain.
#[test]
fn a_reused_simulator_forgets_the_calls_before() {
    let mut simulator = Simulator::new();
    for rendezvous_bytes in [None, Some(5)] {
        let options = Options { rendezvous_bytes, ..Options::default() };
        for entry in ENTRIES {
            for (ranks, count) in [(33, 7), (4, 20), (12, 1)] {
                let counts = vec![count; ranks as usize];
                let displacements: Vec<u64> = (0..u64::from(ranks)).map(|r| r * count).collect();
                let call = Call {
                    root: ranks / 2,
                    segment: 3,
                    counts: &counts,
                    displacements: &displacements,
                    ..Call::new(ranks, count)
                };
                let fresh = simulate(entry, &call, &ROUND, options);
                assert_eq!(simulator.run(entry, &call, &ROUND, options), fresh, "{entry:?}");
            }
        }
    }
}

#[test]
fn activities_fill_a_ranks_time_without_overlap() {
    let mut clocks = [0.0; 6];
    let call = Call { segment: 3, ..Call::new(6, 10) };
    let entry = find(Collective::Reduce, Algorithm::Binomial).unwrap();
    let options = Options { rendezvous_bytes: Some(3), ..Options::default() };
    let outcome = Simulator::new().run_observed(entry, &call, &ROUND, options, |activity| {
        let clock = &mut clocks[activity.rank as usize];
        assert_eq!(activity.begin, *clock);
        assert!(activity.end >= activity.begin);
        *clock = activity.end;
    });
    assert_eq!(outcome.unwrap().finish, clocks);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Headers are as the messages of round 0 bring them: all messages are those of the checker.
    #[test]
    fn v_forms_send_what_their_headers_tell(
        counts in prop::collection::vec(prop_oneof![Just(0_u64), 0_u64..90], 1..=40),
        root in 0_usize..40,
    ) {
        let root = (root % counts.len()) as u32;
        let displacements: Vec<u64> = (0..counts.len() as u64).map(|rank| rank * 90).collect();
        for entry in ENTRIES {
            let call = Call {
                root, counts: &counts, displacements: &displacements,
                ..Call::new(counts.len() as u32, 0)
            };
            if matches!(entry.collective, Collective::Scatterv | Collective::Gatherv) {
                let simulated = simulate(entry, &call, &ROUND, Options::default()).unwrap();
                let checked = crate::checker::check(entry, &call).unwrap();
                prop_assert_eq!(simulated.messages, checked.messages);
                prop_assert!(simulated.bytes >= checked.elements);
            }
        }
    }

    /// Everything ends, eager or by rendezvous, and nothing is faster than one message, which a
    /// handshake makes longer by two flights.
    #[test]
    fn every_algorithm_ends(ranks in 2_u32..40, root in 0_u32..40, count in 1_u64..60, segment in 0_u64..9) {
        let counts = vec![count; ranks as usize];
        let displacements: Vec<u64> = (0..u64::from(ranks)).map(|rank| rank * count).collect();
        for entry in ENTRIES {
            let call = Call {
                root: root % ranks, segment, counts: &counts, displacements: &displacements,
                ..Call::new(ranks, count)
            };
            if entry.check(&call).is_err() {
                continue;
            }
            let eager = simulate(entry, &call, &ROUND, Options::default()).unwrap();
            let options = Options { rendezvous_bytes: Some(0), ..Options::default() };
            let rendezvous = simulate(entry, &call, &ROUND, options).unwrap();
            prop_assert!(eager.seconds >= 12.0, "{:?}", entry);
            prop_assert!(rendezvous.seconds >= 32.0, "{:?}", entry);
            prop_assert_eq!((eager.messages, eager.bytes), (rendezvous.messages, rendezvous.bytes));
            let checked = crate::checker::check(entry, &call).unwrap();
            prop_assert_eq!(eager.messages, checked.messages);
        }
    }
}
