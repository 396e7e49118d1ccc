//! L, g and G from messages between pairs of ranks, as other tools time them, and what several ranks
//! of a node get of its port.
//!
//! # What is computed
//! The time of an empty message (of one byte, where none was timed) is half a ping-pong: L + 2 o.
//! g is the time between one-byte messages of one pair in a row, G the slope of that time between
//! the two largest sizes, g(m) that time at each size. Intervals are the least and the
//! greatest of several files, or the value where there is one. A port's share is found by the same with
//! more pairs. o is not to be had from these: it is between 0 and the lesser of g and half a
//! message.

use std::collections::BTreeMap;

use records::{
    calibration::{self, Estimate, GapKnot, PLogPKnot, Parameters, PortGap},
    imported::{PairStreams, StreamDirection},
};
use statistics::median;

use super::FitError;

/// What k pairs between two nodes carry together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PortShare {
    /// k.
    pub pairs: u32,
    /// Messages of one byte in a second, of all pairs.
    pub messages_per_second: f64,
    /// Bytes in a second, of all pairs, with the largest messages.
    pub bytes_per_second: f64,
}

/// What messages between pairs say.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamFit {
    /// Of every model.
    pub parameters: Parameters,
    /// By ascending number of pairs.
    pub shares: Vec<PortShare>,
    /// What the ranks of a node get of its port; none where one pair was alone.
    pub port: Vec<PortGap>,
    /// What cannot be determined, and why.
    pub undetermined: Vec<String>,
}

/// The median with the least and the greatest.
fn estimate(values: &[f64]) -> Option<Estimate> {
    let value = median(values)?;
    let low = values.iter().copied().fold(value, f64::min);
    let high = values.iter().copied().fold(value, f64::max);
    Some(Estimate { value, low, high })
}

/// By number of pairs and size: the time between messages of one pair's sender.
type Gaps = BTreeMap<u32, BTreeMap<u64, Vec<f64>>>;

/// Fits to messages between pairs.
///
/// # Errors
/// Ping-pongs, or messages in a row of one pair at two sizes, are missing.
pub fn streams(rows: &[PairStreams]) -> Result<StreamFit, FitError> {
    let mut halves: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    let mut gaps = Gaps::new();
    for row in rows {
        match row.direction {
            StreamDirection::PingPong => {
                halves.entry(row.bytes).or_default().push(row.seconds / 2.0);
            }
            StreamDirection::OneWay => {
                let each = row.seconds / f64::from(row.messages);
                gaps.entry(row.pairs).or_default().entry(row.bytes).or_default().push(each);
            }
            StreamDirection::BothWays => {}
        }
    }
    let message = halves.values().next().and_then(|times| estimate(times));
    let message = message.ok_or(FitError::NoPingPong)?;
    let alone: Vec<(u64, Estimate)> = gaps
        .get(&1)
        .into_iter()
        .flatten()
        .filter_map(|(bytes, times)| Some((*bytes, estimate(times)?)))
        .collect();
    let [(_, gap), .., (below, before), (largest, last)] = alone.as_slice() else {
        return Err(FitError::FewSizesInARow);
    };
    let span = (largest - below) as f64;
    let slope = |upper: f64, lower: f64| ((upper - lower) / span).max(0.0);
    let value = slope(last.value, before.value);
    let per_byte = Estimate {
        value,
        low: slope(last.low, before.high).min(value),
        high: slope(last.high, before.low).max(value),
    };
    let mut undetermined =
        vec!["o is between 0 and the lesser of g and half a message: taken as half of that".into()];
    if !gaps.keys().any(|pairs| *pairs > 1) {
        undetermined.push("how ranks share a port: only one pair was timed at once".into());
    } else {
        undetermined.push("messages inside a node: taken as those between nodes".into());
    }
    undetermined.push("gamma: nothing was combined".into());
    Ok(StreamFit {
        parameters: parameters(message, *gap, per_byte, &alone),
        shares: shares(&gaps),
        port: port(&gaps),
        undetermined,
    })
}

fn parameters(
    message: Estimate,
    gap: Estimate,
    per_byte: Estimate,
    alone: &[(u64, Estimate)],
) -> Parameters {
    let most = gap.value.min(message.value / 2.0);
    let overhead = Estimate { value: most / 2.0, low: 0.0, high: most };
    let less = |from: f64, by: f64| (from - by).max(0.0);
    let latency = Estimate {
        value: less(message.value, most),
        low: less(message.low, 2.0 * most),
        high: message.high,
    };
    let knots = alone.iter().map(|(bytes, gap)| PLogPKnot {
        bytes: *bytes,
        send_overhead_seconds: overhead,
        receive_overhead_seconds: overhead,
        gap_seconds: *gap,
    });
    let end_to_end = Estimate {
        value: less(message.value, gap.value),
        low: less(message.low, gap.high),
        high: less(message.high, gap.low),
    };
    let mut parameters = Parameters::new(
        calibration::HockneyEstimates { alpha_seconds: message, beta_seconds_per_byte: per_byte },
        calibration::LogGpEstimates {
            latency_seconds: latency,
            overhead_seconds: overhead,
            gap_seconds: gap,
            gap_seconds_per_byte: per_byte,
        },
        calibration::PLogPEstimates::new(end_to_end, knots.collect()),
    );
    parameters.derived = vec!["o from its bounds".into()];
    parameters
}

/// Each pair has its sender on one node and its receiver on another.
fn port(gaps: &Gaps) -> Vec<PortGap> {
    let gap_of = |(&ranks, sizes): (&u32, &BTreeMap<u64, Vec<f64>>)| {
        let knot = |(&bytes, times): (&u64, &Vec<f64>)| {
            Some(GapKnot { bytes, gap_seconds: estimate(times)? })
        };
        PortGap { ranks, both_ways: false, knots: sizes.iter().filter_map(knot).collect() }
    };
    match gaps.len() {
        0 | 1 => Vec::new(),
        _ => gaps.iter().map(gap_of).collect(),
    }
}

fn shares(gaps: &Gaps) -> Vec<PortShare> {
    let share = |(&pairs, sizes): (&u32, &BTreeMap<u64, Vec<f64>>)| {
        let (_, small) = sizes.iter().find(|(bytes, _)| **bytes > 0)?;
        let (largest, long) = sizes.last_key_value()?;
        Some(PortShare {
            pairs,
            messages_per_second: f64::from(pairs) / median(small)?,
            bytes_per_second: f64::from(pairs) * *largest as f64 / median(long)?,
        })
    };
    gaps.iter().filter_map(share).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use records::observation::ObservationStatus;

    fn row(direction: StreamDirection, pairs: u32, bytes: u64, seconds: f64) -> PairStreams {
        PairStreams {
            direction,
            pairs,
            bytes,
            messages: 64,
            job: 1,
            statistic: "mean".into(),
            seconds,
            status: ObservationStatus::Ok,
        }
    }

    #[test]
    fn latency_gap_and_rate_are_found_and_a_port_is_shared() {
        let (latency, gap, per_byte) = (1e-6, 0.2e-6, 1e-10);
        let one_way = |pairs: u32, bytes: u64| {
            // Two pairs fill the port with long messages and do not with short ones.
            let port = f64::from(pairs) * bytes as f64 * per_byte;
            row(StreamDirection::OneWay, pairs, bytes, 64.0 * (gap + port))
        };
        let mut rows = vec![row(StreamDirection::PingPong, 1, 0, 2.0 * latency)];
        for bytes in [1, 1 << 10, 1 << 20, 1 << 22] {
            rows.extend([one_way(1, bytes), one_way(2, bytes)]);
        }
        let fit = streams(&rows).unwrap();
        let close = |found: f64, wanted: f64| (found / wanted - 1.0).abs() < 1e-3;
        let loggp = &fit.parameters.loggp;
        assert!(close(fit.parameters.hockney.alpha_seconds.value, latency));
        assert!(close(loggp.gap_seconds.value, gap), "{loggp:?}");
        assert!(close(loggp.gap_seconds_per_byte.value, per_byte), "{loggp:?}");
        let [one, two] = [fit.shares[0], fit.shares[1]];
        assert!(close(two.messages_per_second, 2.0 * one.messages_per_second));
        assert!(close(two.bytes_per_second, 1e10) && close(one.bytes_per_second, 1e10));
        let ranks: Vec<u32> = fit.port.iter().map(|gap| gap.ranks).collect();
        assert_eq!(ranks, [1, 2]);
        assert!(close(fit.port[1].knots[0].gap_seconds.value, gap), "{:?}", fit.port);
        rows.retain(|row| row.pairs == 1);
        assert!(streams(&rows).unwrap().port.is_empty());
        assert_eq!(streams(&rows[1..]), Err(FitError::NoPingPong));
        assert_eq!(streams(&rows[..1]), Err(FitError::FewSizesInARow));
    }
}
