//! Fits of collectives against injected truth.

use models::{
    Model,
    fit::{CollectiveFit, GAP_PER_BYTE_MEASURED, GroupSamples, LATENCY_MEASURED},
    parameters::Network,
    port_sharing,
    presets::preset,
    simulated::LevelledNetwork,
};
use rand::{RngExt as _, SeedableRng as _};
use rand_distr::{Distribution as _, LogNormal};
use rand_pcg::Pcg64Mcg;
use records::{
    calibration::{Estimate, GapKnot, InsideNode, Operation, PortGap},
    group_observation::{GroupKind, GroupObservation},
    observation::ObservationStatus,
};
use schedules::simulator::Costs as _;

const LATENCY: f64 = 50e-6;

fn gap(bytes: u64) -> f64 {
    24e-6 + 0.0837e-6 * bytes as f64
}

/// g(m, k) / (k g(m)): further partners cost a fifth more each to serve, and sources a tenth.
fn crowd(kind: GroupKind, partners: u32) -> f64 {
    let each = if kind == GroupKind::FanOut { 0.2 } else { 0.1 };
    1.0 + each * f64::from(partners - 1)
}

/// Seconds between two messages of each of so many ranks of a node: a pair alone fills two fifths of
/// the port.
fn shared(bytes: u64, ranks: u32) -> f64 {
    gap(bytes) * f64::max(1.0, 0.4 * f64::from(ranks))
}

/// How much longer it takes where they receive as much at the same time.
const BOTH_WAYS: f64 = 1.3;

/// Seconds of one byte, the call's own cost apart.
fn combining(bytes: u64) -> f64 {
    20e-9 + 0.3e-9 * bytes as f64
}

/// What is timed: kind, operation, processes, bytes, messages; and the seconds.
type Timed = (GroupKind, Option<Operation>, u32, u64, u32, f64);

/// 12 observations of everything, by the formulas of the paper.
fn observe(seed: u64, noise: f64) -> Vec<GroupObservation> {
    let mut wanted: Vec<Timed> = Vec::new();
    for procs in 2..=8 {
        let p = f64::from(procs);
        let barrier = p * gap(0) + 2.0 * LATENCY;
        wanted.push((GroupKind::FlatBarrier, None, procs, 0, 8, 8.0 * barrier));
        for bytes in [0, 1, 1024, 4096, 16_384, 65_536] {
            let chain = (p - 1.0) * (LATENCY + gap(bytes)) + LATENCY + gap(0);
            wanted.push((GroupKind::ChainBcast, None, procs, bytes, 1, chain));
        }
    }
    for kind in [GroupKind::FanOut, GroupKind::FanIn] {
        for (partners, bytes, rounds) in
            [(2, 1, 16), (2, 1, 32), (7, 1, 4), (7, 1, 8), (7, 8192, 1), (7, 8192, 2)]
        {
            let round = f64::from(partners) * gap(bytes) * crowd(kind, partners);
            let whole = 2.0 * LATENCY + f64::from(rounds) * round;
            wanted.push((kind, None, partners + 1, bytes, rounds, whole));
        }
    }
    for (kind, both) in [(GroupKind::PairStreams, 1.0), (GroupKind::PairExchanges, BOTH_WAYS)] {
        for (ranks, bytes) in [1, 2, 4].into_iter().flat_map(|k| [1, 8192].map(|m| (k, m))) {
            for rounds in [4, 8] {
                let seconds = 2.0 * LATENCY + f64::from(rounds) * both * shared(bytes, ranks);
                wanted.push((kind, None, 2 * ranks, bytes, rounds, seconds));
            }
        }
    }
    for bytes in [8, 1024, 65_536] {
        let operation = Some(Operation::SumDouble);
        let seconds = 100.0 * combining(bytes);
        wanted.push((GroupKind::Combine, operation, 1, bytes, 100, seconds));
    }
    observe_all(wanted, seed, noise)
}

fn observe_all(wanted: Vec<Timed>, seed: u64, noise: f64) -> Vec<GroupObservation> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let noise = LogNormal::new(0.0, noise).unwrap();
    let mut observations = Vec::new();
    for (kind, operation, procs, bytes, messages, seconds) in wanted {
        for repetition in 0..=12 {
            let outlier = if random.random_bool(0.01) { 10.0 } else { 1.0 };
            let status =
                if repetition == 0 { ObservationStatus::Warmup } else { ObservationStatus::Ok };
            let first = if repetition == 0 { 50.0 } else { 1.0 };
            let seconds = seconds * noise.sample(&mut random) * outlier * first;
            observations.push(GroupObservation {
                kind,
                operation,
                procs,
                bytes,
                messages,
                job: 0,
                visit: repetition,
                repetition,
                seconds,
                status,
            });
        }
    }
    observations
}

fn near(name: &str, estimate: Estimate, truth: f64, tolerance: f64) {
    let Estimate { value, low, high } = estimate;
    assert!((value / truth - 1.0).abs() < tolerance, "{name} is {value}, truth {truth}");
    assert!(low <= value && value <= high, "{name}");
}

#[test]
fn injected_parameters_are_fitted() {
    let mut measured = preset("frodo").unwrap().measured;
    for seed in 0..5 {
        let groups = GroupSamples::new(&observe(seed, 0.01)).unwrap();
        groups.complete(&mut measured);
        let found = groups.fit(&measured).unwrap();
        assert_eq!(found.warnings, [""; 0]);
        let fitted = &found.parameters;
        near("L", fitted.plogp.latency_seconds, LATENCY, 0.05);
        for knot in &fitted.plogp.knots {
            near(&format!("g({})", knot.bytes), knot.gap_seconds, gap(knot.bytes), 0.08);
        }
        near("G", fitted.loggp.gap_seconds_per_byte, 0.0837e-6, 0.02);
        near("alpha", fitted.hockney.alpha_seconds, LATENCY + gap(0), 0.05);
        assert_eq!(found.fits.len(), 7);
        for line in &found.fits {
            assert!(line.r_squared > 0.99, "{line:?}");
            assert_eq!(line.points.len(), 7);
        }
    }
}

#[test]
fn several_partners_and_combining_are_measured() {
    let mut measured = preset("frodo").unwrap().measured;
    GroupSamples::new(&observe(1, 0.005)).unwrap().complete(&mut measured);
    let plogp = &measured.plogp;
    for (kind, gaps) in
        [(GroupKind::FanOut, &plogp.gap_by_destinations), (GroupKind::FanIn, &plogp.gap_by_sources)]
    {
        let shape: Vec<(u32, usize)> =
            gaps.iter().map(|gap| (gap.partners, gap.knots.len())).collect();
        assert_eq!(shape, [(2, 1), (7, 2)]);
        for many in gaps {
            for knot in &many.knots {
                let k = many.partners;
                let truth = f64::from(k) * gap(knot.bytes) * crowd(kind, k);
                near(&format!("g({}, {k})", knot.bytes), knot.gap_seconds, truth, 0.05);
            }
        }
    }
    let [gamma] = &measured.gamma[..] else { panic!("{:?}", measured.gamma) };
    for knot in &gamma.knots {
        let truth = combining(knot.bytes) / knot.bytes as f64;
        near("gamma(m)", knot.seconds_per_byte, truth, 0.05);
    }
    near("gamma", measured.gamma_seconds_per_byte, 0.3e-9, 0.05);
}

#[test]
fn ranks_of_a_node_get_what_its_port_gives() {
    let mut off = Vec::new();
    for seed in 0..8 {
        let port = GroupSamples::new(&observe(seed, 0.01)).unwrap().port();
        let places: Vec<_> = port.iter().map(|gap| (gap.ranks, gap.both_ways)).collect();
        let (one, both) = (false, true);
        assert_eq!(places, [(1, one), (1, both), (2, one), (2, both), (4, one), (4, both)]);
        for gap in &port {
            assert_eq!(gap.knots.iter().map(|knot| knot.bytes).collect::<Vec<_>>(), [1, 8192]);
            for knot in &gap.knots {
                let factor = if gap.both_ways { BOTH_WAYS } else { 1.0 };
                let truth = factor * shared(knot.bytes, gap.ranks);
                near(&format!("{gap:?}"), knot.gap_seconds, truth, 0.15);
                off.push((knot.gap_seconds.value / truth - 1.0).abs());
            }
        }
        let between = preset("frodo").unwrap().measured;
        let inside = InsideNode {
            measured: preset("boba").unwrap().measured,
            fitted: None,
            fits: Vec::new(),
            port,
        };
        let levels = LevelledNetwork::new(Model::LogGp, &between, Some(&inside), true).unwrap();
        let [frodo, boba] =
            [&between, &inside.measured].map(|set| Network::new(Model::LogGp, set).unwrap());
        assert_eq!((&levels.between, &levels.inside), (&frodo, &boba), "what is not fitted");
        let port = levels.port.unwrap();
        for bytes in [1, 8192] {
            off.push((port.gap(bytes, 1) / (0.4 * gap(bytes)) - 1.0).abs());
        }
        let flat = LevelledNetwork::new(Model::LogGp, &between, None, false).unwrap();
        assert_eq!((&flat.inside, &flat.between, flat.port), (&frodo, &frodo, None));
    }
    let mean = off.iter().sum::<f64>() / off.len() as f64;
    assert!(mean < 0.03, "{mean}");
}

/// One number of ranks tells nothing of a port, nor does what noise has hidden.
#[test]
fn a_port_needs_two_numbers_of_ranks() {
    let between = Network::new(Model::LogGp, &preset("frodo").unwrap().measured).unwrap();
    let gap = |ranks, seconds| PortGap {
        ranks,
        both_ways: false,
        knots: vec![GapKnot { bytes: 8, gap_seconds: Estimate::exact(seconds) }],
    };
    assert_eq!(port_sharing::of_gaps(&[], &between), Ok(None));
    assert_eq!(port_sharing::of_gaps(&[gap(1, 1e-6)], &between), Ok(None));
    assert_eq!(port_sharing::of_gaps(&[gap(1, 1e-6), gap(2, 0.0)], &between), Ok(None));
    assert!(port_sharing::of_gaps(&[gap(1, 1e-6), gap(2, 2e-6)], &between).unwrap().is_some());
    let both = PortGap { both_ways: true, ..gap(2, 2e-6) };
    assert_eq!(
        port_sharing::of_gaps(&[gap(1, 1e-6), both], &between),
        Ok(None),
        "the model has one way"
    );
}

#[test]
fn what_is_not_there_is_not_fitted() {
    let measured = preset("frodo").unwrap().measured;
    let fitted = |keep: &dyn Fn(&GroupObservation) -> bool| {
        let mut rows = observe(1, 0.01);
        rows.retain(keep);
        GroupSamples::new(&rows).unwrap().fit(&measured)
    };
    assert_eq!(fitted(&|row| row.kind != GroupKind::FlatBarrier), None);
    assert_eq!(fitted(&|row| row.kind != GroupKind::ChainBcast), None);
    assert_eq!(fitted(&|row| row.procs < 4), None, "any two points lie on a line");
    // Sizes that were not reached are left out.
    let few = fitted(&|row| row.bytes < 4096 || row.procs < 4).unwrap();
    let chains = few.fits.iter().filter(|line| line.experiment == "pipelined bcast");
    assert_eq!(chains.map(|line| line.bytes).collect::<Vec<_>>(), [0, 1, 1024]);
    // Beyond them are the measured ones.
    let own = few.parameters.plogp.knots.iter().filter(|knot| knot.bytes <= 1024);
    assert_eq!(own.count(), 3);
    // os and or are those measured.
    let send = few.parameters.plogp.knots[0].send_overhead_seconds;
    assert_eq!(send, measured.plogp.knots[0].send_overhead_seconds);
    let mut rows = observe(1, 0.01);
    rows[5].seconds = f64::NAN;
    let error = GroupSamples::new(&rows).unwrap_err().to_string();
    assert!(error.contains("FlatBarrier of 0 bytes"), "{error}");
}

/// It stands beside the other, and no parameter is taken from it.
#[test]
fn barriers_whose_receives_are_posted_have_a_line_of_their_own() {
    let measured = preset("frodo").unwrap().measured;
    let mut rows = observe(1, 0.01);
    let without = GroupSamples::new(&rows).unwrap().fit(&measured).unwrap();
    let is_barrier = |row: &&GroupObservation| row.kind == GroupKind::FlatBarrier;
    let posted: Vec<GroupObservation> = rows.iter().filter(is_barrier).cloned().collect();
    rows.extend(posted.into_iter().map(|row| GroupObservation {
        kind: GroupKind::PostedBarrier,
        seconds: 0.5 * row.seconds,
        ..row
    }));
    let with = GroupSamples::new(&rows).unwrap().fit(&measured).unwrap();
    let slope = |fit: &CollectiveFit, name: &str| {
        let line = fit.fits.iter().find(|line| line.experiment == name);
        line.map(|line| line.slope_seconds)
    };
    let posted = "flat-tree barrier, receives posted";
    assert_eq!(slope(&without, posted), None);
    let [posted, other] = [posted, "flat-tree barrier"].map(|name| slope(&with, name).unwrap());
    assert!((posted / other - 0.5).abs() < 0.01, "{posted} {other}");
    let latency = |fit: &CollectiveFit| fit.parameters.plogp.latency_seconds.value;
    assert_eq!(latency(&with), latency(&without));
}

/// The same with barriers that take so long.
fn with_barriers(seconds: fn(f64) -> f64) -> CollectiveFit {
    let mut rows = observe(1, 0.001);
    for row in rows.iter_mut().filter(|row| row.kind == GroupKind::FlatBarrier) {
        row.seconds = f64::from(row.messages) * seconds(f64::from(row.procs));
    }
    GroupSamples::new(&rows).unwrap().fit(&preset("frodo").unwrap().measured).unwrap()
}

/// A barrier that takes more per process the more there are has an intercept that tells no
/// latency; the empty chain may still tell it.
#[test]
fn a_latency_that_is_not_determined_is_told() {
    let measured = preset("frodo").unwrap().measured;
    let warned = |found: &CollectiveFit, wanted: &str| {
        assert!(found.warnings.iter().any(|text| text.contains(wanted)), "{:?}", found.warnings);
    };
    let bent = with_barriers(|p| 10e-6 + 5e-6 * p * p);
    warned(&bent, "it is the slope of the empty chain less g(0)");
    let latency = bent.parameters.plogp.latency_seconds;
    assert!(latency.low > 0.0 && latency.value < 40e-6, "{latency:?}");
    assert!(!bent.parameters.derived.iter().any(|it| it == LATENCY_MEASURED));

    let wild = with_barriers(|p| 1e-5 * p.powi(3));
    warned(&wild, "the measured L is used");
    warned(&wild, "no straight line over the ranks");
    assert_eq!(wild.parameters.plogp.latency_seconds, measured.plogp.latency_seconds);
    assert!(wild.parameters.derived.iter().any(|it| it == LATENCY_MEASURED));
}

/// Only empty and tiny messages were reached: their times hold no bytes to speak of.
#[test]
fn a_rate_that_is_not_determined_is_told() {
    let measured = preset("frodo").unwrap().measured;
    let mut rows = observe(1, 0.02);
    rows.retain(|row| row.kind != GroupKind::ChainBcast || row.bytes <= 1);
    let found = GroupSamples::new(&rows).unwrap().fit(&measured).unwrap();
    let (rate, derived) = (found.parameters.loggp.gap_seconds_per_byte, &found.parameters.derived);
    assert_eq!(rate, measured.loggp.gap_seconds_per_byte);
    assert!(derived.iter().any(|it| it == GAP_PER_BYTE_MEASURED), "{derived:?}");
    let told = |text: &String| text.contains("the measured G is used");
    assert!(found.warnings.iter().any(told), "{:?}", found.warnings);
    // So is g(m) beyond, where a line through the gaps of 0 and 1 byte would be noise.
    let of_long = |of: &_| Network::new(Model::PLogP, of).unwrap().gap(64 << 10, 1);
    let ratio = of_long(&found.parameters) / of_long(&measured);
    assert!((ratio - 1.0).abs() < 0.01, "{ratio}");
}

/// A switch that stores and forwards passes each byte of a message of one frame over two wires, one after
/// the other: chains of short messages alone rise by twice the rate.
#[test]
fn short_chains_tell_no_rate() {
    let measured = preset("frodo").unwrap().measured;
    let mut rows = observe(1, 0.001);
    rows.retain(|row| row.kind != GroupKind::ChainBcast || row.bytes <= 4096);
    let wires = |bytes: u64| f64::from(u32::from(bytes > 0)) * 0.0837e-6 * bytes as f64;
    for row in rows.iter_mut().filter(|row| row.kind == GroupKind::ChainBcast) {
        row.bytes /= 64;
        row.seconds = f64::from(row.procs) * (LATENCY + gap(0) + 2.0 * wires(row.bytes));
    }
    let found = GroupSamples::new(&rows).unwrap().fit(&measured).unwrap();
    let rate = found.parameters.loggp.gap_seconds_per_byte;
    assert_eq!(rate, measured.loggp.gap_seconds_per_byte, "{:?}", found.warnings);
    let told = |text: &String| text.contains("too short to tell a rate");
    assert!(found.warnings.iter().any(told), "{:?}", found.warnings);
}

/// Ranks that send m bytes to one other, or to two at once, of which the first answers.
fn first_served(delay: impl Fn(u64) -> f64) -> Vec<GroupObservation> {
    let noise = LogNormal::new(0.0, 0.01).unwrap();
    let mut random = Pcg64Mcg::new(7);
    let mut rows = Vec::new();
    for (bytes, procs) in [(4096, 2), (4096, 3), (16_384, 2), (16_384, 3)] {
        let seconds = 2.0 * LATENCY + gap(bytes) + f64::from(procs - 2) * delay(bytes);
        rows.extend((0..12).map(|visit| GroupObservation {
            kind: GroupKind::FirstServed,
            operation: None,
            procs,
            bytes,
            messages: 1,
            job: 0,
            visit,
            repetition: 0,
            seconds: seconds * noise.sample(&mut random),
            status: ObservationStatus::Ok,
        }));
    }
    rows
}

#[test]
fn frames_are_told_where_messages_share_a_port() {
    let mut parameters = preset("frodo").unwrap().measured;
    for knot in &mut parameters.plogp.knots {
        knot.gap_seconds = Estimate::exact(gap(knot.bytes));
        knot.send_overhead_seconds = Estimate::exact(0.1 * gap(knot.bytes));
    }
    let mut told = |delay: &dyn Fn(u64) -> f64| {
        GroupSamples::new(&first_served(delay)).unwrap().complete(&mut parameters);
        parameters.port_sharing.clone().unwrap()
    };
    for frame in [1448.0, 2920.0] {
        let by_frames = told(&|bytes| gap(bytes) * (1.0 - frame / bytes as f64));
        let found = by_frames.frame_bytes.unwrap();
        assert!(found.low <= frame && frame <= found.high, "{frame}: {found:?}");
        assert!(found.high - found.low < 300.0, "{found:?}");
        assert_eq!(
            by_frames.knots.iter().map(|knot| knot.bytes).collect::<Vec<_>>(),
            [4096, 16_384]
        );
    }
    let in_turn = told(&|_| 0.0);
    assert_eq!((in_turn.frame_bytes, in_turn.knots.len()), (None, 2));
    // Where the processor hands a message over for as long as the port sends it, nothing is told.
    for knot in &mut parameters.plogp.knots {
        knot.send_overhead_seconds = knot.gap_seconds;
    }
    let rows = first_served(|bytes| gap(bytes) * 0.9);
    GroupSamples::new(&rows).unwrap().complete(&mut parameters);
    assert_eq!(parameters.port_sharing, None);
}

/// Seconds of a round of shifts among so many ranks.
fn shifting(bytes: u64, ranks: u32) -> f64 {
    (400e-9 + 0.2e-9 * bytes as f64) * f64::from(ranks).sqrt()
}

/// Seconds of a copy, on so many ranks at once.
fn copying(bytes: u64, ranks: u32) -> f64 {
    (50e-9 + 0.1e-9 * bytes as f64) * (1.0 + 0.25 * f64::from(ranks - 1))
}

#[test]
fn what_ranks_of_a_node_do_to_each_other_is_found() {
    let measured = preset("boba").unwrap().measured;
    let mut rows = observe(5, 0.01);
    assert!(
        GroupSamples::new(&rows).unwrap().shared_memory_times().is_none(),
        "what pairs of two nodes exchange is no memory"
    );
    let mut sharing = Vec::new();
    for ranks in [2, 4, 8] {
        for (bytes, row) in [(1, 64), (64 << 10, 1)] {
            sharing.extend([row, 2 * row].map(|row| {
                let seconds = LATENCY + f64::from(row) * shifting(bytes, ranks);
                (GroupKind::Shifts, None, ranks, bytes, row, seconds)
            }));
        }
    }
    for ranks in [1, 2, 4, 8] {
        for (bytes, row) in [(4096, 64), (1 << 20, 1)].map(|(bytes, row)| (bytes, [row, 2 * row])) {
            sharing.extend(row.map(|row| {
                let seconds = LATENCY + f64::from(row) * copying(bytes, ranks);
                (GroupKind::Copies, None, ranks, bytes, row, seconds)
            }));
        }
    }
    // A flag takes 300 ns, each further one 20; reading 1 us and, by many, up to 0.17 ns a byte. What others have read
    // comes back as slowly, where that takes longer than copying.
    // Two ranks exchange flags; of more, one awaits all others' and all others its.
    let barrier = |ranks: u32| {
        let in_turn = if ranks == 2 { 1.0 } else { 2.0 };
        in_turn * 300e-9 + 20e-9 * f64::from(ranks - 2)
    };
    let moving =
        |bytes: u64, readers: u32| 0.1e-9 * bytes as f64 * (1.0 + 0.1 * f64::from(readers));
    let reading = |bytes: u64, readers: u32| 1e-6 + moving(bytes, readers);
    let writing = |bytes: u64, readers: u32| copying(bytes, 1).max(moving(bytes, readers));
    for ranks in [2, 4, 8] {
        let readers = ranks - 1;
        let round = |bytes: u64| {
            barrier(ranks) + 300e-9 + writing(bytes, readers) + reading(bytes, readers)
        };
        for row in [64, 128] {
            let seconds = LATENCY + f64::from(row) * barrier(ranks);
            sharing.push((GroupKind::SharedFlags, None, ranks, 0, row, seconds));
        }
        for (bytes, row) in [256, 4096, 1 << 20].into_iter().flat_map(|it| [(it, 8), (it, 16)]) {
            let seconds = LATENCY + f64::from(row) * round(bytes);
            sharing.push((GroupKind::SharedReads, None, ranks, bytes, row, seconds));
        }
    }
    rows.extend(observe_all(sharing, 6, 0.0));
    let samples = GroupSamples::new(&rows).unwrap();
    let times = samples.shared_memory_times().unwrap();
    let shared = times.shared.clone().unwrap();
    near("flag", shared.flag_seconds, 300e-9, 0.01);
    near("further flag", shared.further_flag_seconds, 20e-9, 0.01);
    assert_eq!(shared.reads.iter().map(|row| row.busy_ranks).collect::<Vec<_>>(), [1, 3, 7]);
    for row in &shared.reads {
        for knot in &row.knots {
            near("read", knot.seconds, reading(knot.bytes, row.busy_ranks), 0.05);
        }
    }
    for row in &times.copies {
        for knot in &row.knots {
            near("copy", knot.seconds, copying(knot.bytes, row.busy_ranks), 0.02);
        }
    }
    assert_eq!(times.copies.iter().map(|row| row.busy_ranks).collect::<Vec<_>>(), [1, 2, 4, 8]);
    assert_eq!(times.slowdown.iter().map(|row| row.busy_ranks).collect::<Vec<_>>(), [4, 8]);
    for row in &times.slowdown {
        for knot in &row.knots {
            let truth = shifting(knot.bytes, row.busy_ranks) / shifting(knot.bytes, 2);
            near("slowdown", knot.factor, truth, 0.1);
        }
    }
    let mut measured = measured;
    samples.complete(&mut measured);
    let fitted = samples.fit(&measured).unwrap().parameters;
    let memory = times.with_messages(&fitted.plogp, &measured.plogp).unwrap();
    for knot in &memory.messages {
        near("trip", knot.trip_seconds, LATENCY + gap(knot.bytes), 0.1);
        assert!(knot.send_seconds.value <= knot.trip_seconds.value, "{knot:?}");
        assert!(knot.receive_seconds.value <= knot.trip_seconds.value, "{knot:?}");
    }
    let of = |bytes| *memory.messages.iter().find(|knot| knot.bytes == bytes).unwrap();
    // A seventh of a round to all seven others, and from them.
    near("send", of(1).send_seconds, gap(1) * crowd(GroupKind::FanOut, 7), 0.1);
}
