//! Closed forms, where these are exact.

use records::{Algorithm, Collective};

use super::{super::*, seconds};

/// The paper's Table 5, in seconds.
const BOBA: LogGpCosts = LogGpCosts {
    latency: 30.40e-6,
    overhead: 8.15e-6,
    gap: 8.683e-6,
    gap_per_byte: 0.015e-6,
    combine_per_byte: 0.0,
};
const FRODO: LogGpCosts = LogGpCosts {
    latency: 61.22e-6,
    overhead: 8.2e-6,
    gap: 23.8e-6,
    gap_per_byte: 0.084e-6,
    combine_per_byte: 0.0,
};

fn assert_close(simulated: f64, wanted: f64, what: &str) {
    let error = (simulated - wanted).abs() / wanted;
    assert!(error < 1e-9, "{what}: {simulated} instead of {wanted}");
}

/// The same platform in `PLogP`'s terms: L + 2o - g end to end, g(m) = g + (m - 1) G.
fn as_plogp(model: LogGpCosts) -> PLogPCosts {
    let knot = |bytes: u64| CostKnot {
        bytes,
        send_overhead: model.overhead,
        receive_overhead: model.overhead,
        gap: model.gap(bytes, 1),
    };
    let latency = model.latency + 2.0 * model.overhead - model.gap;
    PLogPCosts::new(latency, [0, 1, 2, 4096].map(knot).to_vec(), model.combine_per_byte).unwrap()
}

/// What the closed forms are made of, for one model, call and segment size.
#[derive(Clone, Copy)]
struct Terms {
    /// One message, end to end.
    hop: f64,
    gap: f64,
    overhead: f64,
    combine: f64,
    segments: f64,
    ranks: f64,
}

/// (number of ranks, segments, bytes of a segment), all of them with the terms of both platforms.
fn cases(ranks: &[u32], gamma: f64) -> Vec<(LogGpCosts, Terms, Call<'static>)> {
    let mut cases = Vec::new();
    for model in [BOBA, FRODO] {
        let model = LogGpCosts { combine_per_byte: gamma, ..model };
        for ranks in ranks {
            for segments in [1, 2, 3, 64] {
                for bytes in [1, 1000, 8192] {
                    let terms = Terms {
                        hop: 2.0 * model.overhead + model.flight(bytes),
                        gap: model.gap(bytes, 1),
                        overhead: model.overhead,
                        combine: model.combine(bytes),
                        segments: segments as f64,
                        ranks: f64::from(*ranks),
                    };
                    let call = Call { segment: bytes, ..Call::new(*ranks, segments * bytes) };
                    cases.push((model, terms, call));
                }
            }
        }
    }
    cases
}

fn exact(
    collective: Collective,
    algorithm: Algorithm,
    cases: Vec<(LogGpCosts, Terms, Call<'static>)>,
    form: impl Fn(Terms) -> f64,
) {
    for (model, terms, call) in cases {
        let what = format!("{collective} {algorithm} {call:?}");
        let wanted = form(terms);
        assert_close(seconds(collective, algorithm, &call, &model), wanted, &what);
        // The two models are one where os = or = o.
        assert_close(seconds(collective, algorithm, &call, &as_plogp(model)), wanted, &what);
    }
}

const ANY: &[u32] = &[2, 3, 7, 8, 31, 32];
const POWERS: &[u32] = &[2, 4, 8, 32, 64];
const FULL: &[u32] = &[3, 7, 15, 31, 63];

#[test]
fn broadcasts_equal_their_exact_forms() {
    exact(Collective::Bcast, Algorithm::Linear, cases(ANY, 0.0), |t| {
        t.hop - t.gap + t.segments * (t.ranks - 1.0) * t.gap.max(t.overhead)
    });
    exact(Collective::Bcast, Algorithm::Pipeline, cases(ANY, 0.0), |t| {
        let period = t.gap.max(2.0 * t.overhead * f64::from(t.ranks > 2.0));
        (t.ranks - 1.0) * t.hop + (t.segments - 1.0) * period
    });
    exact(Collective::Bcast, Algorithm::Binary, cases(FULL, 0.0), |t| {
        let depth = (t.ranks + 1.0).log2() - 1.0;
        // At the root two gaps; below it, two sends and a receive.
        let inner = (2.0 * t.overhead + t.gap) * f64::from(depth > 1.0);
        depth * (t.hop + t.gap) + (t.segments - 1.0) * inner.max(2.0 * t.gap)
    });
}

#[test]
fn a_binomial_broadcast_equals_its_exact_form() {
    // Where a message takes longer than what its sender can start meanwhile.
    exact(Collective::Bcast, Algorithm::Binomial, cases(POWERS, 0.0), |t| {
        t.ranks.log2() * (t.hop + (t.segments - 1.0) * t.gap)
    });
}

#[test]
fn a_splitted_binary_broadcast_equals_its_exact_form() {
    let even = cases(FULL, 0.0).into_iter().filter(|(_, t, _)| t.segments % 2.0 == 0.0);
    for (model, t, call) in even.filter(|(_, _, call)| call.segment > 1) {
        let depth = (t.ranks + 1.0).log2() - 1.0;
        let half = 2.0 * t.overhead + model.flight(call.count / 2);
        // Segments of the two halves leave the root in turn, so each side gets one in two gaps.
        let wanted = depth * (t.hop + t.gap) + (t.segments / 2.0 - 1.0) * 2.0 * t.gap + half;
        let simulated = seconds(Collective::Bcast, Algorithm::SplittedBinary, &call, &model);
        assert_close(simulated, wanted, &format!("{call:?}"));
    }
}

#[test]
fn reductions_equal_their_exact_forms() {
    for gamma in [0.0, 0.002e-6, 0.02e-6] {
        exact(Collective::Reduce, Algorithm::Linear, cases(ANY, gamma), |t| {
            let messages = t.segments * (t.ranks - 1.0);
            let bound_by_port = t.hop - t.gap + messages * t.gap + t.combine;
            let bound_by_work = t.hop - t.overhead + messages * (t.overhead + t.combine);
            bound_by_port.max(bound_by_work)
        });
        exact(Collective::Reduce, Algorithm::Pipeline, cases(&[3, 7, 15, 31], gamma), |t| {
            (t.ranks - 1.0) * (t.hop + t.combine)
                + (t.segments - 1.0) * t.gap.max(2.0 * t.overhead + t.combine)
        });
    }
    let one = |cases: Vec<(LogGpCosts, Terms, Call<'static>)>| -> Vec<_> {
        cases.into_iter().filter(|(_, t, _)| t.segments == 1.0).collect()
    };
    exact(Collective::Reduce, Algorithm::Binary, one(cases(FULL, 0.02e-6)), |t| {
        let depth = (t.ranks + 1.0).log2() - 1.0;
        depth * (t.hop + t.combine + t.gap.max(t.overhead + t.combine))
    });
    exact(Collective::Reduce, Algorithm::Binomial, one(cases(POWERS, 0.0)), |t| {
        t.ranks.log2() * t.hop
    });
}

#[test]
fn barriers_and_alltoalls_equal_their_exact_forms() {
    for model in [BOBA, FRODO] {
        let hop = 2.0 * model.overhead + model.latency;
        for ranks in [2, 3, 8, 100, 256] {
            let call = Call::new(ranks, 0);
            let barrier = |algorithm| seconds(Collective::Barrier, algorithm, &call, &model);
            let what = format!("barrier of {ranks}");
            let steps = f64::from(ranks).log2().ceil();
            assert_close(barrier(Algorithm::Bruck), steps * hop, &what);
            assert_close(barrier(Algorithm::DoubleRing), 2.0 * f64::from(ranks) * hop, &what);
            let folded = if ranks.is_power_of_two() { 0.0 } else { 2.0 };
            let steps = f64::from(ranks.ilog2()) + folded;
            let doubled = barrier(Algorithm::RecursiveDoubling);
            if ranks.is_power_of_two() {
                assert_close(doubled, steps * hop, &what);
            } else {
                // A partner that waits for nobody has signalled long before.
                let most = steps * hop * (1.0 + 1e-9);
                assert!(doubled <= most && doubled > (steps - 2.0) * hop, "{what}");
            }

            let call = Call::new(ranks, 500);
            let hop = 2.0 * model.overhead + model.flight(500);
            let pairwise = seconds(Collective::Alltoall, Algorithm::Pairwise, &call, &model);
            assert_close(pairwise, f64::from(ranks - 1) * hop, "pairwise");
        }
        for ranks in [2_u32, 3, 4, 8, 16] {
            for segments in [1_u32, 4, 32] {
                let call = Call { segment: 700, ..Call::new(ranks, 700 * u64::from(segments)) };
                let (p, n) = (f64::from(ranks), f64::from(segments));
                let gap = model.gap(700, 1);
                let hop = model.latency + 2.0 * model.overhead - model.gap;
                let wanted = p * hop + (p - 1.0) * (n * p + 1.0 - p / 2.0) * gap;
                let linear = seconds(Collective::Alltoall, Algorithm::Linear, &call, &model);
                assert_close(linear, wanted, &format!("linear alltoall, {call:?}"));
            }
        }
    }
}
