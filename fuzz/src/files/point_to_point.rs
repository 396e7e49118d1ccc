//! Records of point-to-point measurements.

use super::common::{header, record_of, text};
use super::made_up;

use records::{
    calibration::Operation,
    group_observation::{GroupKind, GroupObservation},
    observation::{ClockError, ObservationStatus, PointToPoint, PointToPointKind},
};

/// Links between ranks.
pub fn pairs() -> String {
    text(&made_up::pairs(4))
}

fn point_to_point(
    kind: PointToPointKind,
    bytes: u64,
    messages: u32,
    seconds: f64,
) -> Vec<PointToPoint> {
    let one = |repetition: u32| PointToPoint {
        kind,
        sender: 0,
        receiver: 1,
        bytes,
        messages,
        job: repetition / 4,
        visit: repetition / 2,
        repetition,
        seconds: seconds * (1.0 + 0.01 * f64::from(repetition * 7 % 5)),
        status: if repetition == 0 { ObservationStatus::Warmup } else { ObservationStatus::Ok },
    };
    (0..7).map(one).collect()
}

/// What was timed between two ranks.
pub fn observations() -> String {
    use PointToPointKind::{Clock, ReceiveOverhead, RoundTrip, SendOverhead, SpacedTrain, Train};
    let mut rows = point_to_point(Clock, 0, 1, 4e-8);
    for bytes in [0, 1024, 65_536, 262_144] {
        let gap = 1e-5 + bytes as f64 * 8e-8;
        rows.extend(point_to_point(RoundTrip, bytes, 1, 1e-4 + bytes as f64 * 8.4e-8));
        rows.extend(point_to_point(SendOverhead, bytes, 1, 3e-6 + bytes as f64 * 1e-9));
        rows.extend(point_to_point(ReceiveOverhead, bytes, 1, 4e-6 + bytes as f64 * 2e-9));
        for messages in [2, 16] {
            rows.extend(point_to_point(Train, bytes, messages, 1e-4 + gap * f64::from(messages)));
        }
        rows.extend(point_to_point(SpacedTrain, bytes, 16, 2e-4 + gap));
    }
    record_of(&header(), &rows)
}

/// What was timed between all pairs of four ranks.
pub fn pair_times() -> String {
    let mut rows = Vec::new();
    for (sender, receiver) in (0..4).flat_map(|one| (0..4).map(move |other| (one, other))) {
        for bytes in [0, 65_536] {
            let slow = if receiver == 3 { 2.0 } else { 1.0 };
            let seconds = 1e-4 + bytes as f64 * 8e-8 * slow;
            let times = point_to_point(PointToPointKind::RoundTrip, bytes, 1, seconds);
            let between =
                times.into_iter().take(4).map(|row| PointToPoint { sender, receiver, ..row });
            rows.extend(between.filter(|_| sender != receiver));
        }
    }
    record_of(&header(), &rows)
}

fn group(
    kind: GroupKind,
    procs: u32,
    bytes: u64,
    messages: u32,
    seconds: f64,
) -> Vec<GroupObservation> {
    let one = |repetition: u32| GroupObservation {
        kind,
        operation: (kind == GroupKind::Combine).then_some(Operation::SumDouble),
        procs,
        bytes,
        messages,
        job: 0,
        visit: repetition / 2,
        repetition,
        seconds: seconds * (1.0 + 0.01 * f64::from(repetition * 3 % 7)),
        status: ObservationStatus::Ok,
    };
    (0..4).map(one).collect()
}

/// What was timed of more than two ranks.
pub fn groups() -> String {
    let mut rows = Vec::new();
    for procs in [2, 4, 8] {
        let many = f64::from(procs);
        for messages in [2, 16] {
            rows.extend(group(
                GroupKind::FlatBarrier,
                procs,
                0,
                messages,
                2e-5 * many * f64::from(messages),
            ));
        }
        for bytes in [1024, 65_536] {
            rows.extend(group(
                GroupKind::ChainBcast,
                procs,
                bytes,
                1,
                many * (5e-5 + bytes as f64 * 8e-8),
            ));
            for (kind, messages) in [
                (GroupKind::FanOut, 2),
                (GroupKind::FanOut, 8),
                (GroupKind::FanIn, 2),
                (GroupKind::FanIn, 8),
                (GroupKind::PairStreams, 2),
                (GroupKind::PairStreams, 8),
            ] {
                rows.extend(group(
                    kind,
                    procs,
                    bytes,
                    messages,
                    f64::from(messages) * many * (1e-5 + bytes as f64 * 8e-8),
                ));
            }
        }
    }
    for bytes in [64, 65_536, 1 << 20] {
        rows.extend(group(GroupKind::Combine, 1, bytes, 8, 8.0 * (1e-7 + bytes as f64 * 3e-10)));
    }
    record_of(&header(), &rows)
}

/// All links of a virtual cluster at once.
pub fn links() -> String {
    let mut rows = Vec::new();
    for procs in [2, 4, 8] {
        for bytes in [1024, 65_536] {
            let seconds = 1e-4 + bytes as f64 * 8e-8 * f64::from(procs);
            rows.extend(group(GroupKind::Ring, procs, bytes, 1, seconds));
        }
    }
    record_of(&header(), &rows)
}

/// How far clocks are apart.
pub fn clock_errors() -> String {
    let one = |rank: u32| ClockError {
        rank,
        seconds_after: 0.5 * f64::from(rank),
        round_trip_seconds: 4e-5,
        seen_error_seconds: -2e-7,
        true_error_seconds: rank.is_multiple_of(2).then_some(1e-7),
        drift_ppm: 1.5,
        status: ObservationStatus::Ok,
    };
    record_of(&header(), &(1..6).map(one).collect::<Vec<_>>())
}
