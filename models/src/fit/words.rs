//! How kinds of observations and message sizes are printed.

use records::{observation::PointToPointKind, quantity::format_bytes};

/// As it is spelt in the record.
pub(super) fn kind_name(kind: PointToPointKind) -> &'static str {
    match kind {
        PointToPointKind::Clock => "clock",
        PointToPointKind::RoundTrip => "round-trip",
        PointToPointKind::SendOverhead => "send-overhead",
        PointToPointKind::ReceiveOverhead => "receive-overhead",
        PointToPointKind::Train => "train",
        PointToPointKind::SpacedTrain => "spaced-train",
        PointToPointKind::PingPong => "ping-pong",
        PointToPointKind::ScatterGather => "scatter-gather",
    }
}

/// `1 KiB, 8 KiB`.
pub(super) fn list_sizes(sizes: &[u64]) -> String {
    sizes.iter().map(|size| format_bytes(*size)).collect::<Vec<_>>().join(", ")
}
