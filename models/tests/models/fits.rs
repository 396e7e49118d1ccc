//! Fits against injected truth: observations made from known parameters.

use models::{
    Model,
    fit::{FitError, fit},
    parameters::Network,
};
use rand::{RngExt as _, SeedableRng as _};
use rand_distr::{Distribution as _, LogNormal};
use rand_pcg::Pcg64Mcg;
use records::{
    calibration::{Calibration, Estimate, Parameters},
    document::Document as _,
    observation::{ObservationStatus, PointToPoint, PointToPointKind},
    platform::Platform,
};
use schedules::simulator::Costs as _;

/// A platform on which the truth is known.
#[derive(Clone)]
pub struct Truth {
    pub latency: f64,
    pub send: fn(f64) -> f64,
    pub receive: fn(f64) -> f64,
    pub gap: fn(f64) -> f64,
    pub clock: f64,
    /// Bytes of a message on an idle link that cost nothing: a full token bucket.
    pub bucket: f64,
    /// The sizes that are timed in trains too.
    pub trains: fn(u64) -> bool,
    /// The sizes that are timed at all.
    pub sizes: fn(u64) -> bool,
}

/// 100 Mbit/s Ethernet.
pub const ETHERNET: Truth = Truth {
    latency: 50e-6,
    send: |m| 5e-6 + 1e-9 * m,
    receive: |m| 6e-6 + 2e-9 * m,
    gap: |m| 24e-6 + 0.0837e-6 * m,
    clock: 60e-9,
    bucket: 0.0,
    trains: |_| true,
    sizes: |_| true,
};

fn sizes() -> impl Iterator<Item = u64> {
    std::iter::once(0).chain((0..=20).map(|shift| 1 << shift))
}

impl Truth {
    /// `repetitions` of everything, with log-normal noise of `noise` and one in a hundred ten
    /// times too long.
    pub fn observe(&self, seed: u64, noise: f64, repetitions: u32) -> Vec<PointToPoint> {
        use PointToPointKind::{
            Clock, ReceiveOverhead, RoundTrip, SendOverhead, SpacedTrain, Train,
        };
        let there_and_back = 2.0 * (self.latency + (self.gap)(1.0));
        let mut wanted = vec![
            (Clock, 0, 1, 0.0),
            (SpacedTrain, 1, 1, there_and_back),
            (SpacedTrain, 1, 10, there_and_back + 9.0 * (self.send)(1.0)),
        ];
        for bytes in sizes().filter(|bytes| (self.sizes)(*bytes)) {
            let m = bytes as f64;
            let first = (self.gap)((m - self.bucket).max(0.0));
            let there_and_back = 2.0 * self.latency + first + (self.gap)(0.0);
            wanted.push((RoundTrip, bytes, 1, there_and_back));
            wanted.push((SendOverhead, bytes, 1, (self.send)(m)));
            wanted.push((ReceiveOverhead, bytes, 1, (self.receive)(m)));
            for messages in [16, 48] {
                if (self.trains)(bytes) {
                    let more = f64::from(messages - 1) * (self.gap)(m);
                    wanted.push((Train, bytes, messages, there_and_back + more));
                }
            }
        }
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let noise = LogNormal::new(0.0, noise).unwrap();
        let mut observations = Vec::new();
        for (kind, bytes, messages, seconds) in wanted {
            for repetition in 0..=repetitions {
                let outlier = if random.random_bool(0.01) { 10.0 } else { 1.0 };
                let warmup = repetition == 0;
                let factor = noise.sample(&mut random) * outlier * if warmup { 50.0 } else { 1.0 };
                observations.push(PointToPoint {
                    kind,
                    sender: 0,
                    receiver: 1,
                    bytes,
                    messages,
                    job: 0,
                    visit: repetition,
                    repetition,
                    seconds: seconds * factor + self.clock,
                    status: if warmup { ObservationStatus::Warmup } else { ObservationStatus::Ok },
                });
            }
        }
        observations
    }

    /// What g(m) grows by over that of no bytes.
    fn gap_of_bytes(&self, bytes: u64) -> f64 {
        (self.gap)(bytes as f64) - (self.gap)(0.0)
    }

    /// (name, estimate, truth, tolerated relative error).
    pub fn compare(&self, fitted: &Parameters) -> Vec<(String, Estimate, f64, f64)> {
        let (send, receive, gap) = ((self.send)(1.0), (self.receive)(1.0), (self.gap)(1.0));
        let Parameters { hockney, loggp, plogp, .. } = fitted;
        let slope = ((self.gap)(1e6) - (self.gap)(0.9e6)) / 1e5;
        let mut compared = vec![
            ("plogp L".into(), plogp.latency_seconds, self.latency, 0.05),
            ("loggp L".into(), loggp.latency_seconds, self.latency + gap - send - receive, 0.05),
            ("loggp o".into(), loggp.overhead_seconds, (send + receive) / 2.0, 0.03),
            ("loggp g".into(), loggp.gap_seconds, gap, 0.05),
            ("loggp G".into(), loggp.gap_seconds_per_byte, slope, 0.03),
            ("hockney beta".into(), hockney.beta_seconds_per_byte, slope, 0.03),
            ("hockney alpha".into(), hockney.alpha_seconds, self.latency + (self.gap)(0.0), 0.03),
        ];
        if let Some(direct) = &fitted.loggp_direct {
            let latency = self.latency + gap - send - receive;
            compared.extend([
                ("direct L".into(), direct.latency_seconds, latency, 0.1),
                ("direct o".into(), direct.overhead_seconds, (send + receive) / 2.0, 0.15),
                ("direct g".into(), direct.gap_seconds, gap, 0.05),
                ("direct G".into(), direct.gap_seconds_per_byte, slope, 0.03),
            ]);
        }
        for knot in &fitted.hockney_by_size {
            // At the empty message there is only the size above.
            if knot.bytes >= 65_536 {
                let name = format!("beta({})", knot.bytes);
                compared.push((name, knot.beta_seconds_per_byte, slope, 0.12));
            }
        }
        for knot in &plogp.knots {
            let m = knot.bytes as f64;
            let name = |what: &str| format!("{what}({})", knot.bytes);
            compared.push((name("os"), knot.send_overhead_seconds, (self.send)(m), 0.03));
            compared.push((name("or"), knot.receive_overhead_seconds, (self.receive)(m), 0.03));
            compared.push((name("g"), knot.gap_seconds, (self.gap)(m), 0.05));
        }
        compared
    }
}

#[test]
fn injected_parameters_are_recovered_within_their_intervals() {
    let (mut inside, mut all) = (0, 0);
    for seed in 0..12 {
        let fitted = fit(&ETHERNET.observe(seed, 0.02, 30)).unwrap();
        assert_eq!(fitted.warnings, [""; 0], "seed {seed}");
        for (name, estimate, truth, tolerance) in ETHERNET.compare(&fitted.parameters) {
            let Estimate { value, low, high } = estimate;
            let error = (value / truth - 1.0).abs();
            assert!(error < tolerance, "seed {seed}: {name} is {value}, truth {truth}");
            assert!(0.0 <= low && low <= value && value <= high, "seed {seed}: {name}");
            inside += u32::from((low..=high).contains(&truth));
            all += 1;
        }
    }
    let share = f64::from(inside) / f64::from(all);
    assert!((0.90..0.99).contains(&share), "{share} of the truths are in their intervals");
}

#[test]
fn the_same_record_gives_the_same_file_in_any_order() {
    let mut observations = ETHERNET.observe(3, 0.05, 12);
    let fitted = fit(&observations).unwrap();
    observations.reverse();
    assert_eq!(fit(&observations).unwrap(), fitted);
    let calibration = Calibration {
        source: "record".into(),
        platform: Platform::default(),
        measured: fitted.parameters,
        fitted: None,
        fits: Vec::new(),
        inside: None,
        algorithms: None,
        warnings: fitted.warnings,
    };
    assert_eq!(calibration.validate(), Ok(()));
}

/// A shaped link passes the first packet of a message at once; small round trips show no wire
/// time then, and only few sizes are timed in trains.
#[test]
fn a_token_bucket_does_not_hide_the_rate() {
    let bucket = Truth { bucket: 1600.0, trains: |bytes| bytes <= 1, ..ETHERNET };
    for seed in 0..4 {
        for platform in [&bucket, &Truth { trains: |_| true, ..bucket.clone() }] {
            let fitted = fit(&platform.observe(seed, 0.02, 30)).unwrap().parameters;
            let rate = fitted.loggp.gap_seconds_per_byte.value;
            assert!((rate / 0.0837e-6 - 1.0).abs() < 0.03, "seed {seed}: {rate}");
        }
    }
}

/// Above 64 KiB the library asks before it sends: every message costs 3 ms more, at twice the rate.
#[test]
fn a_protocol_break_is_found_and_the_rate_is_the_one_above_it() {
    let gap = |m: f64| match m > 65536.0 {
        true => 5e-3 + 0.04e-6 * m,
        false => 24e-6 + 0.0837e-6 * m,
    };
    let send = |m: f64| if m > 65536.0 { 1.3 * (5e-3 + 0.04e-6 * m) } else { 5e-6 };
    let platform = Truth { gap, send, ..ETHERNET };
    let fitted = fit(&platform.observe(1, 0.02, 30)).unwrap();
    let rate = fitted.parameters.loggp.gap_seconds_per_byte.value;
    assert!((rate / 0.04e-6 - 1.0).abs() < 0.05, "{rate}");
    let warned = |text: &str| fitted.warnings.iter().any(|warning| warning.contains(text));
    assert!(warned("between 64 KiB and 128 KiB"), "{:?}", fitted.warnings);
    assert!(warned("os(m) contains waiting"), "{:?}", fitted.warnings);
    assert!(warned("(rendezvous) from 128 KiB on"), "{:?}", fitted.warnings);
    // What the processor itself does stays 5 us; the rest of the call is the transfer.
    for knot in &fitted.parameters.plogp.knots {
        let overhead = knot.send_overhead_seconds.value;
        assert!((overhead / 5e-6 - 1.0).abs() < 0.3, "{} B: {overhead}", knot.bytes);
    }
}

#[test]
fn what_is_missing_is_named() {
    use PointToPointKind::{ReceiveOverhead, RoundTrip, SendOverhead, Train};
    let whole = ETHERNET.observe(1, 0.02, 9);
    let without = |gone: &dyn Fn(&PointToPoint) -> bool| {
        let rest: Vec<PointToPoint> = whole.iter().filter(|row| !gone(row)).cloned().collect();
        fit(&rest).unwrap_err().to_string()
    };
    for (gone, wanted) in [
        (RoundTrip, "round-trip observations of 0 bytes are missing"),
        (Train, "train observations of 0 bytes are missing"),
        (SendOverhead, "send-overhead observations are missing"),
        (ReceiveOverhead, "receive-overhead observations are missing"),
    ] {
        let error = without(&|row| row.kind == gone);
        assert!(error.contains(wanted), "{error}");
    }
    let error = without(&|row| row.kind == Train && row.messages == 48);
    assert!(error.contains("train observations of 0 bytes"), "{error}");
    let error = without(&|row| row.kind == RoundTrip && row.bytes > 0);
    assert!(error.contains("1 message size(s)"), "{error}");
    assert!(matches!(fit(&[]), Err(FitError::Missing { .. })));
    let mut broken = whole.clone();
    broken[7].seconds = f64::NAN;
    assert!(matches!(fit(&broken), Err(FitError::Observation { .. })));
}

#[test]
fn few_observations_are_told() {
    let mut observations = ETHERNET.observe(1, 0.02, 6);
    for row in &mut observations {
        match (row.kind, row.bytes) {
            // Of 4 KiB, two round trips in time and the rest late; of 8 KiB two in all.
            (PointToPointKind::RoundTrip, 4096) if row.repetition > 2 => {
                row.status = ObservationStatus::Late
            }
            (PointToPointKind::RoundTrip, 8192) if row.repetition > 2 => {
                row.status = ObservationStatus::Warmup
            }
            (PointToPointKind::Clock, _) => row.status = ObservationStatus::Warmup,
            _ => {}
        }
    }
    observations.retain(|row| row.kind != PointToPointKind::SendOverhead || row.bytes != 2048);
    let warnings = fit(&observations).unwrap().warnings;
    for wanted in [
        "late observations were used, as there are no others: round-trip of 4096 bytes",
        "so they were excluded: clock, round-trip of 8192 bytes",
        "no clock observations",
        "os(m) was not measured at 2 KiB",
    ] {
        assert!(warnings.iter().any(|warning| warning.contains(wanted)), "{wanted}: {warnings:?}");
    }
}

/// Disturbed throughout, a run has far more of them than a line can name.
#[test]
fn a_note_names_few_of_many() {
    let mut observations = ETHERNET.observe(1, 0.02, 6);
    observations.iter_mut().for_each(|row| row.status = ObservationStatus::Disturbed);
    let warnings = fit(&observations).unwrap().warnings;
    let note = warnings.iter().find(|warning| warning.contains("as there are few others")).unwrap();
    assert!(note.contains(": clock, round-trip of 0 bytes, "), "{note}");
    assert_eq!(note.matches(" bytes").count() + 1, 4, "{note}");
    let (_, more) = note.rsplit_once(", ").unwrap();
    let number = more.strip_suffix(" more").and_then(|number| number.parse::<usize>().ok());
    assert!(number.is_some_and(|number| number > 4), "{note}");
}

/// A switch that takes in whole frames makes a round trip of 1 KiB longer by the time of its bytes: without
/// trains of that size, g(1 KiB) is the line between those of 512 B and 2 KiB. (Read off the round trip
/// it was twice as long, and G 15 % too small.)
#[test]
fn a_size_without_trains_between_others_does_not_bend_the_gap() {
    let in_frames = |without: bool| {
        let mut observations = ETHERNET.observe(1, 0.001, 9);
        for row in &mut observations {
            if row.kind == PointToPointKind::RoundTrip {
                row.seconds += ETHERNET.gap_of_bytes(row.bytes.min(1500));
            }
        }
        let is_left_out =
            |row: &PointToPoint| row.kind == PointToPointKind::Train && row.bytes == 1024;
        observations.retain(|row| !(without && is_left_out(row)));
        fit(&observations).unwrap().parameters
    };
    let [whole, without] = [false, true].map(in_frames);
    let rate = |of: &Parameters| of.loggp.gap_seconds_per_byte.value;
    assert!((rate(&without) / rate(&whole) - 1.0).abs() < 0.01, "{}", rate(&without));
    let gap = |of: &Parameters| {
        let network = Network::new(Model::PLogP, of).unwrap();
        network.gap(1024, 1)
    };
    assert!((gap(&without) / gap(&whole) - 1.0).abs() < 0.02, "{}", gap(&without));
}

/// Messages in a row that are slower than single ones leave no latency.
#[test]
fn a_negative_latency_is_told() {
    let platform = Truth { latency: 0.0, receive: |_| 40e-6, ..ETHERNET };
    let mut observations = platform.observe(1, 0.001, 9);
    for row in &mut observations {
        if row.kind == PointToPointKind::RoundTrip {
            row.seconds *= 0.9;
        }
    }
    let fitted = fit(&observations).unwrap();
    assert_eq!(fitted.parameters.plogp.latency_seconds.value, 0.0);
    assert_eq!(fitted.parameters.loggp.latency_seconds.value, 0.0);
    for wanted in ["L of PLogP", "L of LogGP", "or(m) exceeds g(m)"] {
        let warned = fitted.warnings.iter().any(|warning| warning.contains(wanted));
        assert!(warned, "{wanted}: {:?}", fitted.warnings);
    }
}
