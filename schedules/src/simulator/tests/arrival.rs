//! Ports serve in the order of arrival: cases worked out on paper.

use proptest::prelude::*;
use records::{Algorithm, Collective};

use super::{super::*, ROUND, seconds};
use crate::{Buffer, ENTRIES, OperandOrder, Program, Range, Round, Step};

/// Ranks 1 and 2 each combine as many elements as [`DELAYS`] says, then send a byte to rank 0,
/// which waits for rank 1 first.
struct TwoSenders(u32);

const DELAYS: [u64; 3] = [0, 2, 1];

impl Program for TwoSenders {
    fn new(_call: &Call<'_>, rank: u32) -> Self {
        TwoSenders(rank)
    }

    fn rounds(&self) -> u64 {
        1
    }

    fn round(&self, call: &Call<'_>, _index: u64, out: &mut Round) {
        let all = Range::new(Buffer::Receive, 0, call.count);
        match self.0 {
            0 => [1, 2].into_iter().for_each(|from| {
                out.receive(from, 0, all);
                out.wait(0);
            }),
            rank => {
                let range = Range::new(Buffer::Temporary, 0, DELAYS[rank as usize]);
                out.push(Step::Combine {
                    source: range,
                    into: range,
                    order: OperandOrder::SourceFirst,
                });
                out.send(0, 0, all);
                out.wait(0);
            }
        }
    }

    fn slots(&self) -> u32 {
        1
    }
}

#[test]
fn a_message_that_came_earlier_holds_up_the_one_that_is_awaited() {
    // Combining takes 2 s per byte, a port 3 s per message of one byte, a flight 10 s, an overhead
    // 1 s. Rank 2's message leaves at 3 and passes rank 0's port from 3 to 6; rank 1's leaves at 5,
    // so it passes at 6, lies ready at 16 and is taken in by 17. Rank 2's has lain ready since 13
    // and is taken in by 18.
    let entry = Entry::new::<TwoSenders>(Collective::Bcast, Algorithm::Linear, "two senders");
    let outcome = simulate(&entry, &Call::new(3, 1), &ROUND, Options::default()).unwrap();
    assert_eq!(outcome.finish, [18.0, 5.0, 3.0]);
}

/// Ranks 3 and 5 send to rank 1, rank 4 to rank 2, these two to the root. With the overhead o, the
/// flight F, the gap g and c for combining:
/// - rank 2 has its only child's message at o + F, takes it in, combines and sends: its message
///   leaves at F + 3 o + c;
/// - both children's messages come to rank 1 at once, so the second one passes g later, or is
///   taken in o + c later if that is more: rank 1's message leaves at F + 3 o + c + max(g, o + c);
/// - by then rank 2's message has passed the root's port, whose gap is not longer than this
///   difference. So the root has rank 1's message a flight later, and takes in and combines both.
#[test]
fn a_binary_reduction_to_six_ranks_is_what_paper_says() {
    for (gap, gap_per_byte) in [(8.683e-6, 0.015e-6), (23.8e-6, 0.084e-6), (1e-6, 0.1e-6)] {
        for latency in [0.0, 1.3e-6, 30.4e-6, 61.22e-6] {
            for overhead in [0.0, 0.1e-6, 8.15e-6] {
                for combine_per_byte in [0.0, 0.001e-6, 0.3e-6] {
                    for bytes in [1, 100, 1024, 8192, 100_000] {
                        let costs =
                            LogGpCosts { latency, overhead, gap, gap_per_byte, combine_per_byte };
                        let (o, c) = (overhead, costs.combine(bytes));
                        let wanted = 2.0 * costs.flight(bytes)
                            + 5.0 * o
                            + 3.0 * c
                            + costs.gap(bytes, 1).max(o + c);
                        let call = Call::new(6, bytes);
                        let got = seconds(Collective::Reduce, Algorithm::Binary, &call, &costs);
                        let error = (got / wanted - 1.0).abs();
                        assert!(error < 1e-9, "{bytes} bytes, {costs:?}: {got} s, not {wanted} s");
                    }
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Observed, ranks always run by the clock; else only where the data flow says too little.
    #[test]
    fn by_the_data_flow_or_by_the_clock_times_are_the_same(
        ranks in 2_u32..40, root in 0_u32..40, count in 1_u64..60, segment in 0_u64..9,
        latency in 0.0..20.0_f64, overhead in prop_oneof![Just(0.0), 0.0..5.0_f64],
        gap in 0.0..5.0_f64, combine_per_byte in prop_oneof![Just(0.0), 0.0..2.0_f64],
    ) {
        let costs = LogGpCosts { latency, overhead, gap, gap_per_byte: 0.5, combine_per_byte };
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
            let one = simulate(entry, &call, &costs, Options::default()).unwrap();
            let other =
                Simulator::new().run_observed(entry, &call, &costs, Options::default(), |_| {}).unwrap();
            prop_assert_eq!((one.messages, one.bytes), (other.messages, other.bytes));
            for (a, b) in one.finish.iter().zip(&other.finish) {
                prop_assert!((a - b).abs() <= 1e-9 * b, "{:?}: {} and {}", entry, a, b);
            }
        }
    }
}
