//! Beyond what was measured.

use models::{
    Forms, Model, Point, Predictor, Reach, algorithms,
    decide::{Segments, decide},
    parameters::{Knot, MessageCosts, PLogP},
    presets::preset,
};
use proptest::prelude::*;
use records::Collective;
use schedules::simulator;

#[test]
fn decisions_beyond_the_calibration_are_marked() {
    let frodo = preset("frodo").unwrap();
    let reach = Reach { procs: Some(32), bytes: Some(1 << 20) };
    let predictor = Predictor::new(Model::LogGp, Forms::Corrected, &frodo.measured).unwrap();
    let bcast = algorithms(Collective::Bcast);
    for (procs, bytes, wanted) in
        [(32, 1 << 20, false), (33, 8, true), (8, (1 << 20) + 1, true), (64, 8 << 20, true)]
    {
        let point = Point::flat(Collective::Bcast, procs, bytes);
        let segments = Segments::List(vec![0, 8192]);
        let decided = |predictor: &Predictor| decide(predictor, point, bcast, &segments).unwrap();
        let marked = decided(&predictor.clone().within(reach));
        assert_eq!(marked.extrapolated, wanted, "{procs} {bytes}");
        let plain = decided(&predictor);
        assert!(!plain.extrapolated, "nobody said how far it reaches");
        assert_eq!((plain.method, plain.seconds), (marked.method, marked.seconds));
    }
}

proptest! {
    /// The simulator's own PLogP and the models' are one function, beyond the last knot too.
    #[test]
    fn both_plogps_are_one_function(
        steps in proptest::collection::vec((1_u64..5_000, 0.0..1.0_f64), 1..12),
        bytes in prop_oneof![0_u64..60_000, Just(1 << 40)],
    ) {
        let knots: Vec<Knot> = steps
            .iter()
            .scan(0, |at, (step, gap)| {
                *at += step;
                let costs = MessageCosts { send: gap / 3.0, receive: gap / 2.0, gap: *gap };
                Some(Knot { bytes: *at, costs })
            })
            .collect();
        let own = PLogP::new(0.5, &knots).unwrap();
        let theirs = knots.iter().map(|knot| simulator::CostKnot {
            bytes: knot.bytes,
            send_overhead: knot.costs.send,
            receive_overhead: knot.costs.receive,
            gap: knot.costs.gap,
        });
        let theirs = simulator::PLogPCosts::new(0.5, theirs.collect(), 0.0).unwrap();
        let costs = own.at(bytes as f64);
        use simulator::Costs as _;
        for (a, b) in [
            (costs.send, theirs.send_overhead(bytes)),
            (costs.receive, theirs.receive_overhead(bytes)),
            (costs.gap, theirs.gap(bytes, 1)),
        ] {
            prop_assert!((a - b).abs() <= 1e-9 * a.max(b), "{a} {b}");
        }
    }
}
