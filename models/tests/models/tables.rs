//! Every closed form against the tables, read a second time and evaluated by other code: sums over
//! rounds, levels and segments, logarithms in floating point, interpolation by scanning.

use crate::numbers::PlainParameters;
use models::{Forms, Model, Point, Predictor, algorithms, closed_forms};
use proptest::prelude::*;
use records::{Algorithm, Collective};

pub fn numbers() -> impl Strategy<Value = PlainParameters> {
    let costs = (0.0..2e-5_f64, 0.0..2e-5_f64, 1e-7..1e-3_f64);
    (
        (1e-7..1e-4_f64, 1e-11..1e-6_f64, 1e-7..1e-4_f64, 1e-8..2e-5_f64, 1e-8..1e-4_f64),
        (1e-11..1e-6_f64, prop_oneof![Just(0.0), 1e-11..1e-8_f64], 1e-7..1e-4_f64),
        prop::collection::vec((1_u64..30_000, costs), 1..6),
    )
        .prop_map(
            |(
                (alpha, beta, latency, overhead, gap),
                (gap_per_byte, gamma, plogp_latency),
                steps,
            )| {
                let knots = steps
                    .into_iter()
                    .scan(0, |bytes, (step, (send, receive, gap))| {
                        *bytes += step;
                        Some((*bytes, send, receive, gap))
                    })
                    .collect();
                PlainParameters {
                    alpha,
                    beta,
                    latency,
                    overhead,
                    gap,
                    gap_per_byte,
                    gamma,
                    plogp_latency,
                    knots,
                }
            },
        )
}

/// (os, or, g) at m, found by scanning the knots.
fn plogp(n: &PlainParameters, m: f64) -> (f64, f64, f64) {
    let mix = |a: f64, b: f64, t: f64| a + t * (b - a);
    let first = n.knots[0];
    if m <= first.0 as f64 || n.knots.len() == 1 {
        return (first.1, first.2, first.3);
    }
    for pair in n.knots.windows(2) {
        let ((x0, s0, r0, g0), (x1, s1, r1, g1)) = (pair[0], pair[1]);
        if m <= x1 as f64 {
            let t = (m - x0 as f64) / (x1 - x0) as f64;
            return (mix(s0, s1, t), mix(r0, r1, t), mix(g0, g1, t));
        }
    }
    let [.., a, b] = n.knots[..] else { unreachable!() };
    let t = (m - a.0 as f64) / (b.0 - a.0) as f64;
    let beyond = |from: f64, to: f64| mix(from, to.max(from), t) - from.max(to) + to;
    (beyond(a.1, b.1), beyond(a.2, b.2), beyond(a.3, b.3))
}

/// The symbols of the tables at one point.
struct Symbols<'a> {
    n: &'a PlainParameters,
    procs: f64,
    m: f64,
    ms: f64,
    ns: f64,
    /// ceil(lg P) and ceil(lg(P + 1)).
    k: f64,
    h: f64,
}

fn hockney(s: &Symbols, forms: Forms, collective: Collective, algorithm: Algorithm) -> f64 {
    use Algorithm as A;
    let (p, ns, ms, y) = (s.procs, s.ns, s.ms, s.n.gamma);
    let send = |m: f64| s.n.alpha + m * s.n.beta;
    let a = s.n.alpha;
    let printed = forms == Forms::Printed;
    match (collective, algorithm) {
        (Collective::Barrier, A::Linear) => {
            if printed {
                (p - 1.0) * a
            } else {
                p * a
            }
        }
        (Collective::Barrier, A::DoubleRing) => (0..2 * p as u64).map(|_| a).sum(),
        (Collective::Barrier, A::RecursiveDoubling) => doubling(p) * a,
        (Collective::Barrier, A::Bruck) => s.k * a,
        (Collective::Bcast, A::Linear) => ns * (p - 1.0) * send(ms),
        (Collective::Bcast, A::Pipeline) => (p - 1.0) * send(ms) + (ns - 1.0) * send(ms),
        (Collective::Bcast, A::Binomial) => ns * s.k * send(ms),
        (Collective::Bcast, A::Binary) => (s.h + ns - 2.0) * two_sends(s, printed),
        (Collective::Bcast, A::SplittedBinary) => {
            (s.h + (ns / 2.0).ceil() - 2.0) * two_sends(s, printed) + send(s.m / 2.0)
        }
        (Collective::Reduce, A::Linear) => ns * (p - 1.0) * (send(ms) + y * ms),
        (Collective::Reduce, A::Pipeline) => (p + ns - 2.0) * (send(ms) + y * ms),
        (Collective::Reduce, A::Binomial) => ns * s.k * (send(ms) + y * ms),
        (Collective::Reduce, A::Binary) => 2.0 * (s.h + ns - 2.0) * (send(ms) + y * ms),
        (Collective::Alltoall, A::Linear) => {
            let turns = (p - 1.0) * (ns * p + 1.0 - p / 2.0);
            if printed { p * send(ms) + turns * a } else { turns * send(ms) }
        }
        (Collective::Alltoall, A::Pairwise) => (p - 1.0) * send(s.m),
        other => panic!("{other:?} is in no table"),
    }
}

fn two_sends(s: &Symbols, printed: bool) -> f64 {
    let twice = if printed { 1.0 } else { 2.0 };
    2.0 * s.n.alpha + twice * s.ms * s.n.beta
}

fn doubling(p: f64) -> f64 {
    let log = p.log2();
    if log == log.floor() { log } else { log.floor() + 2.0 }
}

fn loggp(s: &Symbols, forms: Forms, collective: Collective, algorithm: Algorithm) -> f64 {
    use Algorithm as A;
    let PlainParameters { latency: l, overhead: o, gap: g, gap_per_byte, gamma, .. } = *s.n;
    let (p, ns, k, h) = (s.procs, s.ns, s.k, s.h);
    let stream = if s.ms < 1.0 { 0.0 } else { (s.ms - 1.0) * gap_per_byte };
    let gap = g + stream;
    let y = gamma * s.ms;
    let printed = forms == Forms::Printed;
    let step = if printed { l + o + g } else { l + o + o };
    match (collective, algorithm) {
        (Collective::Barrier, A::Linear) => (p - 2.0) * g + 2.0 * (l + 2.0 * o),
        (Collective::Barrier, A::DoubleRing) => (0..p as u64).map(|_| 2.0 * step).sum(),
        (Collective::Barrier, A::RecursiveDoubling) => doubling(p) * step,
        (Collective::Barrier, A::Bruck) => k * step,
        (Collective::Bcast, A::Linear) => l + 2.0 * o - g + ns * (p - 1.0) * gap,
        (Collective::Bcast, A::Pipeline) => {
            let period = if printed || gap > 2.0 * o { gap } else { 2.0 * o };
            (p - 1.0) * (l + 2.0 * o + stream) + (ns - 1.0) * period
        }
        (Collective::Bcast, A::Binomial) => k * (l + 2.0 * o + stream + (ns - 1.0) * gap),
        (Collective::Bcast, A::Binary) if printed => {
            (h - 1.0) * (l + 2.0 * (o + stream + g)) + 2.0 * (stream + g)
        }
        (Collective::Bcast, A::Binary) => {
            (h - 1.0) * (l + g + 2.0 * (o + stream)) + 2.0 * (ns - 1.0) * (stream + g)
        }
        (Collective::Bcast, A::SplittedBinary) => {
            let exchange = l + 2.0 * o + (s.m / 2.0 - 1.0).max(0.0) * gap_per_byte;
            (h - 1.0) * (l + g + 2.0 * (o + stream))
                + 2.0 * ((ns / 2.0).ceil() - 1.0) * (g + stream)
                + exchange
        }
        (Collective::Reduce, A::Linear) if printed => {
            o + stream + l + ns * f64::max(g, (p - 1.0) * (o + stream + y))
        }
        (Collective::Reduce, A::Linear) => {
            let all = ns * (p - 1.0);
            f64::max(l + 2.0 * o - g + all * gap + y, l + o + stream + all * (o + y))
        }
        (Collective::Reduce, A::Pipeline) => {
            let period = match printed {
                true => g.max(2.0 * o + stream + y),
                false => gap.max(2.0 * o + y),
            };
            (p - 1.0) * (l + 2.0 * o + stream + y) + (ns - 1.0) * period
        }
        (Collective::Reduce, A::Binomial) => k * (o + l + ns * (stream + g.max(o + y))),
        (Collective::Reduce, A::Binary) if printed => {
            let one = l + 3.0 * o + stream + 2.0 * y;
            (h - 1.0) * (one + (ns - 1.0) * (stream + g.max(3.0 * o + 2.0 * y)))
        }
        (Collective::Reduce, A::Binary) => {
            (h - 1.0) * (l + 2.0 * o + stream + y + gap.max(o + y))
                + (ns - 1.0) * f64::max(2.0 * gap, 3.0 * o + 2.0 * y)
        }
        (Collective::Alltoall, A::Linear) => {
            let hop = if printed { l + 2.0 * o } else { l + 2.0 * o - g };
            p * hop + (p - 1.0) * (ns * p + 1.0 - p / 2.0) * gap
        }
        (Collective::Alltoall, A::Pairwise) => {
            let bytes = (s.m - 1.0).max(0.0) * gap_per_byte;
            (p - 1.0) * (step + bytes)
        }
        other => panic!("{other:?} is in no table"),
    }
}

fn plogp_form(s: &Symbols, forms: Forms, collective: Collective, algorithm: Algorithm) -> f64 {
    use Algorithm as A;
    let l = s.n.plogp_latency;
    let (p, ns, k, h) = (s.procs, s.ns, s.k, s.h);
    let (os, or, g) = plogp(s.n, s.ms);
    let g0 = plogp(s.n, 0.0).2;
    let y = s.n.gamma * s.ms;
    let printed = forms == Forms::Printed;
    match (collective, algorithm) {
        (Collective::Barrier, A::Linear) => p * g0 + 2.0 * l,
        (Collective::Barrier, A::DoubleRing) => (0..2 * p as u64).map(|_| l + g0).sum(),
        (Collective::Barrier, A::RecursiveDoubling) => doubling(p) * (l + g0),
        (Collective::Barrier, A::Bruck) => k * (l + g0),
        (Collective::Bcast, A::Linear) => l + ns * (p - 1.0) * g,
        (Collective::Bcast, A::Pipeline) => {
            let period = if printed { g } else { g.max(os + or) };
            (p - 1.0) * (l + g) + (ns - 1.0) * period
        }
        (Collective::Bcast, A::Binomial) => k * (l + ns * g),
        (Collective::Bcast, A::Binary) => {
            (h - 1.0) * (l + 2.0 * g) + (ns - 1.0) * f64::max(2.0 * g, or + g + os)
        }
        (Collective::Bcast, A::SplittedBinary) => {
            let exchange = if printed { 0.0 } else { l + plogp(s.n, s.m / 2.0).2 };
            (h - 1.0) * (l + 2.0 * g)
                + ((ns / 2.0).ceil() - 1.0) * f64::max(2.0 * g, or + g + os)
                + exchange
        }
        (Collective::Reduce, A::Linear) if printed => l + (p - 1.0) * ns * g.max(or + y),
        (Collective::Reduce, A::Linear) => {
            let all = ns * (p - 1.0);
            l + f64::max(all * g + y, all * (or + y))
        }
        (Collective::Reduce, A::Pipeline) => {
            let period = if printed { g.max(or + y) + os } else { g.max(or + os + y) };
            (p - 1.0) * (l + g.max(or + y)) + (ns - 1.0) * period
        }
        (Collective::Reduce, A::Binomial) => k * (l + ns * g.max(or + y + os)),
        (Collective::Reduce, A::Binary) => {
            let period = match printed {
                true => os + 2.0 * g.max(or + y),
                false => f64::max(2.0 * g, 2.0 * (or + y) + os),
            };
            (h - 1.0) * (l + 2.0 * g.max(or + y)) + (ns - 1.0) * period
        }
        (Collective::Alltoall, A::Linear) => {
            // Process i + 1 has its last segment after (n_s - 1)(P - 1) + i + 1 sends of
            // process i; the last process sends all of its own.
            let waits = (0..p as u64 - 1).map(|i| (ns - 1.0) * (p - 1.0) + i as f64 + 1.0);
            waits.chain([ns * (p - 1.0)]).map(|sends| l + sends * g).sum()
        }
        (Collective::Alltoall, A::Pairwise) => (p - 1.0) * (l + plogp(s.n, s.m).2),
        other => panic!("{other:?} is in no table"),
    }
}

fn near(got: f64, wanted: f64) -> bool {
    (got - wanted).abs() <= 1e-12 * wanted.abs()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn every_form_is_that_of_its_table(
        numbers in numbers(),
        procs in 2_u32..300,
        bytes in prop_oneof![0_u64..40, 0_u64..2_000_000],
        segment in prop_oneof![Just(0_u64), 1_u64..40, 1_u64..200_000],
    ) {
        let parameters = numbers.parameters();
        for model in Model::TABLES {
            for forms in Forms::ALL {
                let predictor = Predictor::new(model, forms, &parameters).unwrap();
                for collective in closed_forms::COLLECTIVES {
                    for &algorithm in algorithms(collective) {
                        let bytes = if collective == Collective::Barrier { 0 } else { bytes };
                        let segmented =
                            closed_forms::form(collective, algorithm).unwrap().segmented;
                        let segment = if segmented { segment } else { 0 };
                        let point = Point::flat(collective, procs, bytes);
                        let got = predictor.predict(point, algorithm, segment).unwrap();
                        let wanted =
                            by_table(&numbers, (model, forms), point, algorithm, segment);
                        prop_assert!(
                            near(got, wanted),
                            "{model} {forms} {collective} {algorithm}: {got}, expected {wanted}"
                        );
                    }
                }
            }
        }
    }
}

fn by_table(
    numbers: &PlainParameters,
    (model, forms): (Model, Forms),
    point: Point,
    algorithm: Algorithm,
    segment: u64,
) -> f64 {
    let Point { collective, layout, bytes } = point;
    let procs = f64::from(layout.procs());
    let m = bytes as f64;
    let ms = if segment == 0 { m } else { m.min(segment as f64) };
    let ns = if bytes == 0 { 1.0 } else { (m / ms).ceil() };
    let (k, h) = (procs.log2().ceil(), (procs + 1.0).log2().ceil());
    let logp = PlainParameters { gap_per_byte: 0.0, ..numbers.clone() };
    let n = if model == Model::LogP { &logp } else { numbers };
    let symbols = Symbols { n, procs, m, ms, ns, k, h };
    match model {
        Model::Hockney => hockney(&symbols, forms, collective, algorithm),
        Model::LogP | Model::LogGp => loggp(&symbols, forms, collective, algorithm),
        _ => plogp_form(&symbols, forms, collective, algorithm),
    }
}
