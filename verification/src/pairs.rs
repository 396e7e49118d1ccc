//! Which ranks and links stand out of the others.
//!
//! A slow port makes a whole row (its rank sends) or column (it receives) of the matrix of links
//! slow, a bad path a single cell. On the logarithms of the times these are the effects of a
//! two-way layout, taken apart by Tukey's median polish (Exploratory Data Analysis, 1977, chapter
//! 11), which a few slow ports cannot mislead. Where two slow ports meet, the cell is as slow as the
//! slower of them and not as both together; to be faster than the sum of the effects is no finding.

use std::collections::BTreeMap;

use records::{
    calibration::Estimate,
    observation::{ObservationStatus, PointToPoint, PointToPointKind},
    pairs::{Finding, Link},
};
use statistics::{DEVIATIONS_PER_MEDIAN, median_interval};

/// What is slower by less is no finding, however certain.
const MIN_OF_A_PORT: f64 = 1.15;
const MIN_OF_A_LINK: f64 = 1.3;
/// Times of empty messages are the machine's more than the network's.
const MIN_OF_LATENCY: f64 = 1.75;
/// What stands out does so by so many standard deviations of the cells.
const DEVIATIONS: f64 = 4.0;
/// With fewer links a port cannot be distinguished from a path.
const MIN_OF_CELLS: usize = 3;

/// Medians and their intervals, by sender and receiver, of the links that were observed both with
/// messages of `bytes` and with empty ones, at least three times each.
pub fn links(rows: &[PointToPoint], bytes: u64) -> Vec<Link> {
    let mut times: BTreeMap<(u32, u32), [Vec<f64>; 2]> = BTreeMap::new();
    for row in rows {
        let counts =
            row.kind == PointToPointKind::RoundTrip && row.status != ObservationStatus::Warmup;
        let which = usize::from(row.bytes == bytes);
        if counts && (row.bytes == bytes || row.bytes == 0) {
            times.entry((row.sender, row.receiver)).or_default()[which].push(row.seconds);
        }
    }
    let link = |((sender, receiver), [empty, full]): ((u32, u32), [Vec<f64>; 2])| {
        let (empty, full) = (estimate(&empty)?, estimate(&full)?);
        let per_byte = |full: f64, empty: f64| ((full - empty) / bytes as f64).max(0.0);
        let seconds_per_byte = Estimate {
            value: per_byte(full.value, empty.value),
            low: per_byte(full.low, empty.high),
            high: per_byte(full.high, empty.low),
        };
        Some(Link { sender, receiver, empty_seconds: empty, seconds_per_byte })
    };
    times.into_iter().filter_map(link).collect()
}

/// The median with its 95 % interval, or the range where observations are too few for that.
fn estimate(times: &[f64]) -> Option<Estimate> {
    const LEAST: usize = 3;
    if times.len() < LEAST {
        return None;
    }
    if let Some(median) = median_interval(times, 0.95) {
        return Some(median);
    }
    let mut sorted = times.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    Some(Estimate { value: median(&sorted), low: sorted[0], high: sorted[sorted.len() - 1] })
}

/// What stands out, the worst first. `noun` is what a member is called: `node` or `rank`;
/// `number` gives a rank its number.
pub fn findings(links: &[Link], noun: &str, number: impl Fn(u32) -> u32) -> Vec<Finding> {
    let words = SpeakerNames { noun, number: &number };
    let per_byte: Vec<DirectedLink> = links
        .iter()
        .filter(|link| link.seconds_per_byte.value > 0.0)
        .map(|link| DirectedLink::new(link, &link.seconds_per_byte))
        .collect();
    let mut findings = stand_out(&per_byte, &words, true);
    let empty: Vec<DirectedLink> =
        links.iter().map(|link| DirectedLink::new(link, &link.empty_seconds)).collect();
    findings.extend(stand_out(&empty, &words, false));
    findings
}

struct SpeakerNames<'a> {
    noun: &'a str,
    number: &'a dyn Fn(u32) -> u32,
}

#[derive(Debug, Clone, Copy)]
struct DirectedLink {
    sender: u32,
    receiver: u32,
    logarithm: f64,
    /// How far below that the low end of its interval is.
    doubt: f64,
}

impl DirectedLink {
    fn new(link: &Link, seconds: &Estimate) -> Self {
        let Link { sender, receiver, .. } = *link;
        let [logarithm, low] = [seconds.value, seconds.low].map(|seconds| seconds.max(1e-12).ln());
        DirectedLink { sender, receiver, logarithm, doubt: logarithm - low }
    }
}

/// The effects of a two-way layout, and what they leave.
struct MedianPolish {
    senders: BTreeMap<u32, f64>,
    receivers: BTreeMap<u32, f64>,
    left: Vec<f64>,
}

fn polish(cells: &[DirectedLink], with_ports: bool) -> MedianPolish {
    const ROUNDS: usize = 20;
    let mut left: Vec<f64> = cells.iter().map(|cell| cell.logarithm).collect();
    let common = median(&left);
    left.iter_mut().for_each(|value| *value -= common);
    let zero =
        |of: fn(&DirectedLink) -> u32| cells.iter().map(move |cell| (of(cell), 0.0)).collect();
    let mut polished = MedianPolish {
        senders: zero(|cell| cell.sender),
        receivers: zero(|cell| cell.receiver),
        left,
    };
    for _ in 0..if with_ports { ROUNDS } else { 0 } {
        let MedianPolish { senders, receivers, left } = &mut polished;
        sweep(cells, left, senders, |cell| cell.sender);
        sweep(cells, left, receivers, |cell| cell.receiver);
    }
    polished
}

/// Moves the median of what is left of every row (or column) into its effect, and what all effects
/// have in common back.
fn sweep(
    cells: &[DirectedLink],
    left: &mut [f64],
    effects: &mut BTreeMap<u32, f64>,
    of: fn(&DirectedLink) -> u32,
) {
    for (rank, effect) in effects.iter_mut() {
        let mine = |cell: &DirectedLink| of(cell) == *rank;
        let values: Vec<f64> = cells
            .iter()
            .zip(&*left)
            .filter(|(cell, _)| mine(cell))
            .map(|(_, left)| *left)
            .collect();
        let shift = median(&values);
        *effect += shift;
        cells.iter().zip(left.iter_mut()).filter(|(c, _)| mine(c)).for_each(|(_, v)| *v -= shift);
    }
    let common = median(&effects.values().copied().collect::<Vec<f64>>());
    effects.values_mut().for_each(|effect| *effect -= common);
    left.iter_mut().for_each(|value| *value += common);
}

/// The median; 0 of nothing, where there is nothing to move either.
fn median(values: &[f64]) -> f64 {
    statistics::median(values).unwrap_or_default()
}

/// Whether every port that has cells has enough of them in both directions: in a sparse sample a
/// slow port would be taken for its partners' fault.
fn tells_ports(cells: &[DirectedLink]) -> bool {
    let mut counts: BTreeMap<(bool, u32), usize> = BTreeMap::new();
    for cell in cells {
        *counts.entry((true, cell.sender)).or_default() += 1;
        *counts.entry((false, cell.receiver)).or_default() += 1;
    }
    counts.values().all(|count| *count >= MIN_OF_CELLS)
}

fn stand_out(cells: &[DirectedLink], words: &SpeakerNames<'_>, is_rate: bool) -> Vec<Finding> {
    if cells.len() < 2 {
        return Vec::new();
    }
    let mut members: Vec<u32> = cells.iter().map(|cell| cell.sender).collect();
    members.dedup();
    let MedianPolish { senders, receivers, left } = polish(cells, tells_ports(cells));
    let misfits: Vec<f64> = left.iter().map(|value| value.abs()).collect();
    let deviation = DEVIATIONS_PER_MEDIAN * median(&misfits);
    let (port, link) = match is_rate {
        true => (MIN_OF_A_PORT, MIN_OF_A_LINK),
        false => (MIN_OF_LATENCY, MIN_OF_LATENCY),
    };
    // An effect is a median over a row, so it is surer than a cell.
    let surer = (members.len() as f64 / 2.0).sqrt().max(1.0);
    let is_slow = |effect: f64| effect > f64::max(port.ln(), DEVIATIONS * deviation / surer);
    let mut findings = Vec::new();
    for (&rank, &sends) in &senders {
        let receives = receivers.get(&rank).copied().unwrap_or_default();
        let (one, other) = (is_slow(sends), is_slow(receives));
        if one || other {
            let factor =
                f64::max(if one { sends } else { 0.0 }, if other { receives } else { 0.0 });
            findings.push(Finding {
                sender: one.then_some(rank),
                receiver: other.then_some(rank),
                factor: factor.exp(),
                text: words.of_port(rank, (one, sends), (other, receives), is_rate),
            });
        }
    }
    for (cell, &left) in cells.iter().zip(&left) {
        let DirectedLink { sender, receiver, doubt, .. } = *cell;
        if left > f64::max(link.ln() + doubt, DEVIATIONS * deviation) {
            findings.push(Finding {
                sender: Some(sender),
                receiver: Some(receiver),
                factor: left.exp(),
                text: words.of_link(sender, receiver, left, is_rate),
            });
        }
    }
    findings.sort_by(|one, other| other.factor.total_cmp(&one.factor));
    findings
}

impl SpeakerNames<'_> {
    fn name(&self, rank: u32) -> String {
        format!("{} {}", self.noun, (self.number)(rank))
    }

    fn of_port(&self, rank: u32, sends: (bool, f64), receives: (bool, f64), rate: bool) -> String {
        let name = self.name(rank);
        let what = if rate { "" } else { "empty messages " };
        let slowness = |effect: f64| format!("{what}{}", slowness(effect, rate));
        let alike = (sends.1 - receives.1).abs() < 0.1;
        match (sends, receives) {
            ((true, effect), (true, _)) if alike => {
                format!("{name} sends and receives {}", slowness(effect))
            }
            ((true, sends), (true, receives)) => {
                format!("{name} sends {} and receives {}", slowness(sends), slowness(receives))
            }
            ((true, effect), _) => format!("{name} sends {}", slowness(effect)),
            (_, (_, effect)) => format!("{name} receives {}", slowness(effect)),
        }
    }

    fn of_link(&self, sender: u32, receiver: u32, effect: f64, rate: bool) -> String {
        let [sender, receiver] = [sender, receiver].map(|rank| self.name(rank));
        let what = if rate { "messages" } else { "empty messages" };
        format!("from {sender} to {receiver} {what} go {}", slowness(effect, rate))
    }
}

/// `at half the rate of the others`, `at 71 % of the rate of the others`, or for empty messages
/// `2.3 times as slowly as the others`.
fn slowness(effect: f64, is_rate: bool) -> String {
    let factor = effect.exp();
    match (is_rate, 1.0 / factor) {
        (true, share) if (share - 0.5).abs() < 0.05 => "at half the rate of the others".into(),
        (true, share) => format!("at {:.0} % of the rate of the others", share * 100.0),
        (false, _) => format!("{factor:.1} times as slowly as the others"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Links of `count` ranks on ports of these rates, with some noise that has no mean.
    fn made(count: u32, rate: impl Fn(u32, u32) -> f64) -> Vec<Link> {
        let mut links = Vec::new();
        for (sender, receiver) in (0..count).flat_map(|one| (0..count).map(move |o| (one, o))) {
            if sender != receiver {
                let noise = 1.0 + 0.004 * (f64::from((sender * 7 + receiver * 13) % 11) - 5.0);
                links.push(Link {
                    sender,
                    receiver,
                    empty_seconds: Estimate::exact(1e-4 * noise),
                    seconds_per_byte: Estimate::exact(noise * 8.4e-8 / rate(sender, receiver)),
                });
            }
        }
        links
    }

    fn texts(links: &[Link]) -> Vec<String> {
        findings(links, "node", |rank| rank).into_iter().map(|finding| finding.text).collect()
    }

    #[test]
    fn a_slow_port_is_told_by_direction() {
        let inbound = made(8, |_, to| if to == 3 { 0.5 } else { 1.0 });
        assert_eq!(texts(&inbound), ["node 3 receives at half the rate of the others"]);
        let outbound = made(8, |from, _| if from == 3 { 0.5 } else { 1.0 });
        assert_eq!(texts(&outbound), ["node 3 sends at half the rate of the others"]);
        let both = made(8, |from, to| if from == 3 || to == 3 { 0.5 } else { 1.0 });
        assert_eq!(texts(&both), ["node 3 sends and receives at half the rate of the others"]);
        assert!(texts(&made(8, |_, _| 1.0)).is_empty());
    }

    #[test]
    fn two_slow_ports_are_both_named_and_their_meeting_is_not() {
        let slow = |rank: u32| if rank == 1 || rank == 6 { 0.25 } else { 1.0 };
        let links = made(8, |from, to| f64::min(slow(from), slow(to)));
        let mut found = texts(&links);
        found.sort_unstable();
        assert_eq!(found.len(), 2, "{found:?}");
        for (text, node) in found.iter().zip([1, 6]) {
            let wanted = format!("node {node} sends and receives at 2");
            assert!(text.starts_with(&wanted), "{text}");
        }
    }

    #[test]
    fn a_slow_path_is_no_slow_port() {
        let links = made(8, |from, to| if (from, to) == (2, 5) { 0.5 } else { 1.0 });
        let found = findings(&links, "node", |rank| rank);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].sender, found[0].receiver), (Some(2), Some(5)));
        assert!(found[0].text.starts_with("from node 2 to node 5"), "{}", found[0].text);
    }

    /// As where something else had the processors during one of two visits.
    #[test]
    fn a_path_that_was_not_always_slow_is_not_named() {
        let mut links = made(8, |_, _| 1.0);
        let disturbed = Estimate { value: 4e-4, low: 1.1e-4, high: 9e-4 };
        links[20].empty_seconds = disturbed;
        assert!(texts(&links).is_empty(), "{:?}", texts(&links));
        links[20].empty_seconds = Estimate { low: 3e-4, ..disturbed };
        assert_eq!(texts(&links).len(), 1);
    }

    #[test]
    fn of_two_nodes_only_the_path_is_named() {
        let links = made(2, |from, _| if from == 0 { 0.3 } else { 1.0 });
        assert!(texts(&links).iter().all(|text| text.starts_with("from node")));
        assert!(texts(&[]).is_empty());
    }

    /// What a budget that is too small leaves: a slow port is then named by its links alone.
    #[test]
    fn in_a_sparse_sample_no_port_is_blamed() {
        let mut links = made(8, |from, _| if from == 5 { 0.5 } else { 1.0 });
        links.retain(|link| (link.sender + 3 * link.receiver) % 5 == 0);
        let found = texts(&links);
        assert!(!found.is_empty());
        assert!(found.iter().all(|text| text.starts_with("from node 5 to node")), "{found:?}");
    }

    proptest! {
        #[test]
        fn the_slow_one_is_found_wherever_it_is(
            count in 5_u32..20,
            slow in 0_u32..5,
            share in 0.2_f64..0.75,
            outward: bool,
        ) {
            let links = made(count, |from, to| {
                if (if outward { from } else { to }) == slow { share } else { 1.0 }
            });
            let found = findings(&links, "node", |rank| rank);
            prop_assert_eq!(found.len(), 1);
            let wanted = if outward { (Some(slow), None) } else { (None, Some(slow)) };
            prop_assert_eq!((found[0].sender, found[0].receiver), wanted);
            prop_assert!((found[0].factor * share - 1.0).abs() < 0.05);
        }
    }
}
