use super::*;
use proptest::prelude::*;

fn knot(bytes: u64, gap: f64) -> Knot {
    Knot { bytes, costs: MessageCosts { send: gap / 4.0, receive: gap / 2.0, gap } }
}

#[test]
fn it_is_linear_between_knots_and_beyond() {
    let plogp = PLogP::new(5.0, &[knot(1, 10.0), knot(11, 20.0), knot(21, 50.0)]).unwrap();
    for (bytes, gap) in
        [(0.0, 10.0), (1.0, 10.0), (6.0, 15.0), (11.0, 20.0), (21.0, 50.0), (31.0, 80.0)]
    {
        assert_eq!(plogp.gap(bytes), gap, "{bytes}");
        assert_eq!(plogp.at(bytes), knot(0, gap).costs, "{bytes}");
        assert_eq!(plogp.message(bytes), 5.0 + gap, "{bytes}");
    }
}

#[test]
fn one_knot_holds_everywhere_and_a_falling_end_does_not_go_on() {
    assert_eq!(PLogP::new(0.0, &[knot(8, 3.0)]).unwrap().gap(1e9), 3.0);
    let falling = PLogP::new(0.0, &[knot(0, 9.0), knot(8, 3.0)]).unwrap();
    assert_eq!(falling.gap(4.0), 6.0);
    assert_eq!(falling.gap(1e9), 3.0);
    assert_eq!(falling.falling(), [(0, 8)]);
}

#[test]
fn knots_that_are_missing_or_do_not_ascend_are_refused() {
    assert!(PLogP::new(0.0, &[]).unwrap_err().to_string().contains("at least one"));
    let error = PLogP::new(0.0, &[knot(8, 1.0), knot(8, 2.0)]).unwrap_err();
    assert_eq!(error.field, "knots[1].bytes");
}

#[test]
fn the_interval_widens_beyond_the_last_knot() {
    let exact = Estimate::exact(0.0);
    let knot = |bytes, value: f64| calibration::PLogPKnot {
        bytes,
        send_overhead_seconds: exact,
        receive_overhead_seconds: exact,
        gap_seconds: Estimate { value, low: value * 0.99, high: value * 1.01 },
    };
    let plogp = calibration::PLogPEstimates::new(exact, vec![knot(100, 1.0), knot(200, 2.0)]);
    let gap = |end| PLogP::at_ends(&plogp, [None, None, None, end]).gap(1000.0);
    let (low, value, high) = (gap(Some(End::Low)), gap(None), gap(Some(End::High)));
    assert!((value - 10.0).abs() < 1e-12);
    // 8 times the distance of the last two knots beyond: 2 % + 8 x hypot(2 %, 1 %).
    let wanted = 0.02 + 8.0 * f64::hypot(0.02, 0.01);
    assert!((high - value - wanted).abs() < 1e-12, "{high}");
    assert!((value - low - wanted).abs() < 1e-12, "{low}");
}

/// An error of g(m) moves g(m, k) with it, and does not look like an effect of the partners.
#[test]
fn partners_scale_the_gap() {
    let exact = Estimate::exact(0.0);
    let mut plogp = calibration::PLogPEstimates::new(
        exact,
        vec![calibration::PLogPKnot {
            bytes: 8,
            send_overhead_seconds: exact,
            receive_overhead_seconds: exact,
            gap_seconds: Estimate { value: 2.0, low: 1.0, high: 3.0 },
        }],
    );
    let knots = vec![calibration::GapKnot { bytes: 8, gap_seconds: Estimate::exact(12.0) }];
    plogp.gap_by_destinations = vec![calibration::ManyGap { partners: 3, knots }];
    let at = |end| PLogP::at_ends(&plogp, [None, None, None, end]);
    assert_eq!([1, 2, 3, 4].map(|k| at(None).gap_to(8.0, k)), [2.0, 6.0, 12.0, 16.0]);
    assert_eq!([1, 2, 3, 4].map(|k| at(None).gap_from(8.0, k)), [2.0, 4.0, 6.0, 8.0]);
    assert_eq!([End::Low, End::High].map(|end| at(Some(end)).gap_to(8.0, 3)), [6.0, 18.0]);
}

proptest! {
    #[test]
    fn no_cost_is_negative_and_every_knot_is_met(
        gaps in proptest::collection::vec(0.0..1.0_f64, 1..60),
        bytes in 0.0..1e7_f64,
    ) {
        let knots: Vec<Knot> =
            gaps.iter().enumerate().map(|(i, gap)| knot(i as u64 * 1000, *gap)).collect();
        let plogp = PLogP::new(0.1, &knots).unwrap();
        for knot in &knots {
            prop_assert_eq!(plogp.at(knot.bytes as f64), knot.costs);
        }
        let costs = plogp.at(bytes);
        prop_assert!(costs.gap >= 0.0 && costs.send >= 0.0 && costs.receive >= 0.0);
        prop_assert_eq!(plogp.gap(bytes), costs.gap);
    }
}
