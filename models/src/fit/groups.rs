//! From observations of several ranks, and of combining, to the parameters that two ranks do not
//! show.
//!
//! # What is computed
//! - g(m, k), to and from k others: the difference of long and short rows of rounds, divided by
//!   the rounds between, so that the way there and back cancels out.
//! - The gap of k ranks of a node that send at once through its port: the same difference.
//! - The frames by which messages that leave at once share a port: [`frames`].
//! - gamma(m): the time of a call over its bytes; the single gamma is the slope of a robust line
//!   through the calls' times for `MPI_SUM` of `double`.
//!
//! Parameters fitted to collectives: [`fitted`](super::fitted).

use std::collections::BTreeMap;

use records::{
    calibration::{Estimate, Gamma, GammaKnot, GapKnot, ManyGap, Operation, Parameters, PortGap},
    group_observation::{GroupKind, GroupObservation},
    observation::ObservationStatus,
};

use super::{
    centres::{GroupCentres, GroupKey},
    error::FitError,
    frames, lines, percentiles,
    sample::{LEAST, Sample},
};
use crate::parameters::Combining;

/// The observations of several ranks, ready to be fitted to.
#[derive(Debug)]
pub struct GroupSamples {
    pub(super) centres: GroupCentres,
    /// Centres that as many observations could have had.
    pub(super) redrawn: Vec<GroupCentres>,
    /// Visits that were disturbed, and all.
    pub(super) disturbed: (usize, usize),
}

impl GroupSamples {
    /// Warm-ups, and what was observed fewer than 3 times, are left out; and what was observed while
    /// others took too much of the processors, where there are 3 others.
    ///
    /// # Errors
    /// An observation is no time; says which.
    pub fn new(observations: &[GroupObservation]) -> Result<Self, FitError> {
        let mut times: BTreeMap<GroupKey, Vec<(u32, u32, f64)>> = BTreeMap::new();
        let mut disturbed: BTreeMap<GroupKey, Vec<(u32, u32, f64)>> = BTreeMap::new();
        for row in observations.iter().filter(|row| row.status != ObservationStatus::Warmup) {
            let key = (row.kind, row.operation, row.procs, row.bytes, row.messages);
            if !(row.seconds.is_finite() && row.seconds >= 0.0) || row.messages == 0 {
                let GroupObservation { kind, procs, bytes, repetition, seconds, messages, .. } =
                    *row;
                return Err(FitError::Group { kind, bytes, procs, repetition, seconds, messages });
            }
            let is_disturbed = row.status == ObservationStatus::Disturbed;
            let times = if is_disturbed { &mut disturbed } else { &mut times };
            times.entry(key).or_default().push((row.job, row.visit, row.seconds));
        }
        for (key, disturbed) in disturbed {
            let times = times.entry(key).or_default();
            if times.len() < LEAST {
                times.extend(disturbed);
            }
        }
        times.retain(|_, times| times.len() >= LEAST);
        let samples: Vec<(GroupKey, Sample)> =
            times.into_iter().map(|(key, times)| (key, Sample::new(&times))).collect();
        Ok(GroupSamples {
            disturbed: Sample::all_disturbed(samples.iter().map(|(_, sample)| sample)),
            centres: samples.iter().map(|(key, sample)| (*key, sample.centre())).collect(),
            redrawn: super::redraw(super::REDRAWINGS, |random| {
                samples.iter().map(|(key, sample)| (*key, sample.redraw(random))).collect()
            }),
        })
    }

    /// Adds gamma(m) and g(m, k), as far as they were measured.
    pub fn complete(&self, parameters: &mut Parameters) {
        let GroupSamples { centres, redrawn, .. } = self;
        let estimate = |of: &dyn Fn(&GroupCentres) -> f64| percentiles(centres, redrawn, of);
        for (kind, gaps) in [
            (GroupKind::FanOut, &mut parameters.plogp.gap_by_destinations),
            (GroupKind::FanIn, &mut parameters.plogp.gap_by_sources),
        ] {
            let many = |(procs, knots)| ManyGap { partners: procs - 1, knots };
            let gaps_of = gaps_of_rounds(centres, kind, estimate).into_iter();
            *gaps = gaps_of.filter(|(procs, _)| *procs > 2).map(many).collect();
        }
        parameters.port_sharing = frames::port_sharing(centres, redrawn, &parameters.plogp);
        let gammas = gammas(centres, estimate);
        if !gammas.is_empty() {
            parameters.gamma = gammas;
        }
        let sums = keys_of(centres, Combining::OPERATION);
        let slope = |centres: &GroupCentres| {
            let points: Vec<(f64, f64)> =
                sums.iter().map(|key| (key.3 as f64, call(centres, key))).collect();
            lines::robust_relative(&points).map_or(0.0, |line| line.slope.max(0.0))
        };
        if sums.len() > 1 {
            parameters.gamma_seconds_per_byte = estimate(&slope);
        }
    }

    /// What ranks of a node get of its port, as far as it was measured.
    pub fn port(&self) -> Vec<PortGap> {
        let GroupSamples { centres, redrawn, .. } = self;
        let estimate = |of: &dyn Fn(&GroupCentres) -> f64| percentiles(centres, redrawn, of);
        let kinds = [(GroupKind::PairStreams, false), (GroupKind::PairExchanges, true)];
        let gaps = kinds.into_iter().flat_map(|(kind, both_ways)| {
            let gaps = gaps_of_rounds(centres, kind, estimate).into_iter();
            gaps.map(move |(procs, knots)| PortGap { ranks: procs / 2, both_ways, knots })
        });
        let mut gaps: Vec<PortGap> = gaps.collect();
        gaps.sort_by_key(|gap| (gap.ranks, gap.both_ways));
        gaps
    }
}

/// A short and a long row of rounds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rounds {
    short: GroupKey,
    long: GroupKey,
}

impl Rounds {
    /// The time of one round: the difference, over the rounds between.
    pub(super) fn gap(&self, centres: &GroupCentres) -> f64 {
        let rounds = f64::from(self.long.4 - self.short.4);
        ((centres[&self.long] - centres[&self.short]) / rounds).max(0.0)
    }
}

/// By processes and bytes.
pub(super) fn rounds_of(centres: &GroupCentres, kind: GroupKind) -> BTreeMap<(u32, u64), Rounds> {
    let mut rows: BTreeMap<(u32, u64), Rounds> = BTreeMap::new();
    for &key in centres.keys().filter(|key| key.0 == kind) {
        let (_, _, procs, bytes, _) = key;
        // The keys ascend by length.
        let rounds = rows.entry((procs, bytes)).or_insert(Rounds { short: key, long: key });
        rounds.long = key;
    }
    rows.retain(|_, rounds| rounds.long.4 > rounds.short.4);
    rows
}

/// By ascending number of processes: the time of one round, over the message size.
pub(super) fn gaps_of_rounds(
    centres: &GroupCentres,
    kind: GroupKind,
    estimate: impl Fn(&dyn Fn(&GroupCentres) -> f64) -> Estimate,
) -> Vec<(u32, Vec<GapKnot>)> {
    let mut gaps: Vec<(u32, Vec<GapKnot>)> = Vec::new();
    for ((procs, bytes), rounds) in rounds_of(centres, kind) {
        let gap_seconds = estimate(&|centres: &GroupCentres| rounds.gap(centres));
        let knot = GapKnot { bytes, gap_seconds };
        match gaps.last_mut() {
            Some((last, knots)) if *last == procs => knots.push(knot),
            _ => gaps.push((procs, vec![knot])),
        }
    }
    gaps
}

/// The keys of one operation, by ascending size.
fn keys_of(centres: &GroupCentres, operation: Operation) -> Vec<GroupKey> {
    let wanted = (GroupKind::Combine, Some(operation));
    let keys = centres.keys().filter(|(kind, operation, ..)| (*kind, *operation) == wanted);
    keys.filter(|(_, _, _, bytes, _)| *bytes > 0).copied().collect()
}

/// Seconds of one call.
fn call(centres: &GroupCentres, key: &GroupKey) -> f64 {
    centres[key] / f64::from(key.4)
}

fn gammas(
    centres: &GroupCentres,
    estimate: impl Fn(&dyn Fn(&GroupCentres) -> f64) -> Estimate,
) -> Vec<Gamma> {
    let knot = |key: GroupKey| {
        let bytes = key.3;
        let seconds_per_byte =
            estimate(&move |centres: &GroupCentres| call(centres, &key) / bytes as f64);
        GammaKnot { bytes, seconds_per_byte }
    };
    Operation::ALL
        .into_iter()
        .map(|operation| Gamma {
            operation,
            knots: keys_of(centres, operation).into_iter().map(knot).collect(),
        })
        .filter(|gamma| !gamma.knots.is_empty())
        .collect()
}
