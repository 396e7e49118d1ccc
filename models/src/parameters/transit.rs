//! How much longer a message takes from end to end than PLogP says.

use records::calibration::{HockneyKnot, Parameters};

/// Seconds on top of L + g(m), linear between the sizes that were measured: there alpha + beta m is
/// half a round trip as it was seen. Never negative, and 0 for a message of no bytes, whose round trip
/// is what L is made of. Beyond the last size its value holds.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Transit {
    knots: Vec<(u64, f64)>,
}

impl Transit {
    /// From round trips, also of sizes at which no gap was measured: `gap` is g(m) in seconds, as PLogP has it
    /// between its knots.
    pub(super) fn new(parameters: &Parameters, gap: impl Fn(f64) -> f64) -> Self {
        let latency = parameters.plogp.latency_seconds.value;
        let extra = |seen: &HockneyKnot| {
            let bytes = seen.bytes as f64;
            let whole = seen.alpha_seconds.value + seen.beta_seconds_per_byte.value * bytes;
            (seen.bytes, (whole - latency - gap(bytes)).max(0.0))
        };
        Transit { knots: parameters.hockney_by_size.iter().map(extra).collect() }
    }

    pub(super) fn at(&self, bytes: f64) -> f64 {
        let above = self.knots.partition_point(|(knot, _)| (*knot as f64) < bytes);
        match (above.checked_sub(1).map(|last| self.knots[last]), self.knots.get(above)) {
            (None, None) => 0.0,
            (Some((_, extra)), None) => extra,
            // Below the first one there is nothing to go by but 0 at no bytes.
            (None, Some((first, extra))) if *first > 0 => extra * bytes / *first as f64,
            (None, Some((_, extra))) => *extra,
            (Some((from, at_from)), Some((to, at_to))) => {
                let part = (bytes - from as f64) / (to - from) as f64;
                at_from + part * (at_to - at_from)
            }
        }
    }

    pub(super) fn knots(&self) -> impl Iterator<Item = u64> {
        self.knots.iter().map(|(bytes, _)| *bytes)
    }
}

#[cfg(test)]
mod tests {
    use records::calibration::{Estimate, PLogPEstimates, PLogPKnot};

    use super::*;

    /// A switch that takes whole frames in: a message of m bytes takes L + 2 m G up to a frame, and
    /// L + (frame + m) G beyond; its gap is m G.
    #[test]
    fn what_a_message_takes_in_all_is_what_was_seen() {
        let (latency, per_byte, frame) = (1e-3, 1e-6, 1500.0_f64);
        let seen = |bytes: u64| latency + (bytes as f64 + (bytes as f64).min(frame)) * per_byte;
        let sizes = [0_u64, 500, 1500, 8000, 64000];
        let with_trains = [0_u64, 8000, 64000];
        let exact = Estimate::exact;
        let knot = |bytes: u64| PLogPKnot {
            bytes,
            send_overhead_seconds: exact(0.0),
            receive_overhead_seconds: exact(0.0),
            gap_seconds: exact(bytes as f64 * per_byte),
        };
        let by_size = |bytes: u64| HockneyKnot {
            bytes,
            alpha_seconds: exact(seen(bytes) - 1e-7 * bytes as f64),
            beta_seconds_per_byte: exact(1e-7),
        };
        let plogp = PLogPEstimates::new(exact(latency), with_trains.map(knot).to_vec());
        let mut parameters = crate::presets::preset("frodo").unwrap().measured;
        (parameters.plogp, parameters.hockney_by_size) = (plogp, sizes.map(by_size).to_vec());
        let transit = Transit::new(&parameters, |bytes| bytes * per_byte);
        for bytes in [0_u64, 250, 500, 1000, 1500, 3000, 64000, 1 << 20] {
            let whole = latency + bytes as f64 * per_byte + transit.at(bytes as f64);
            assert!((whole - seen(bytes)).abs() < 1e-9, "{bytes}: {whole}, {}", seen(bytes));
        }
        assert_eq!(Transit::default().at(1e6), 0.0);
    }
}
