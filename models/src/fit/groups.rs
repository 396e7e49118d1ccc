//! From observations of several ranks, and of combining, to the parameters that two ranks do not
//! show, and to parameters fitted to collectives.
//!
//! # What is computed
//! - g(m, k), to and from k others: the difference of long and short rows of rounds, divided by
//!   the rounds between, so that the way there and back cancels out.
//! - gamma(m): the time of a call over its bytes; the single gamma is the slope of a robust line
//!   through the calls' times for `MPI_SUM` of `double`.
//! - The fitted parameters, by the procedure of the paper (section 5): a flat-tree barrier of P
//!   takes P g(0) + 2 L (Table 1), so a line over P gives g(0) and L; a pipelined bcast in one
//!   segment takes (P - 1) (L + g(m)) (Table 2), so its slope over P gives g(m). The chain's time
//!   here holds an empty message back to the root, which is the same for every P. os(m) and or(m)
//!   are not in these times: they are the measured ones. LogGP and Hockney are converted.
//!
//! Lines over P are Huber's, by relative errors ([`lines`](super::lines)), through the medians; G is
//! the slope of the least-squares line through L + g(m) at the four largest sizes.
//! Intervals are percentiles of the bootstrap over observations, as in [`fit`](super::fit); that a
//! line does not hold shows in its residuals and its R^2, not in the intervals.

use std::collections::BTreeMap;

use records::{
    calibration::{
        self, Estimate, FitPoint, Gamma, GammaKnot, GapKnot, LineFit, ManyGap, Operation,
        PLogPKnot, Parameters,
    },
    group_observation::{GroupKind, GroupObservation},
    observation::Status,
    quantity::{format_bytes, format_seconds},
};

use super::{
    lines::{self, Line},
    percentiles,
    samples::Sample,
};
use crate::parameters::{Combining, Costs, LinearGap, LogGp, PLogP};

/// Kind, operation, processes, bytes, messages.
type Key = (GroupKind, Option<Operation>, u32, u64, u32);

/// The observations of several ranks, ready to be fitted to.
#[derive(Debug)]
pub struct Groups(BTreeMap<Key, Sample>);

/// Parameters fitted to collectives, and the lines behind them.
#[derive(Debug, Clone, PartialEq)]
pub struct CollectiveFit {
    /// Of every model.
    pub parameters: Parameters,
    /// One line for the barrier, and one for each message size.
    pub fits: Vec<LineFit>,
    /// What a reader must know.
    pub warnings: Vec<String>,
}

/// The medians of one drawing.
type Medians = BTreeMap<Key, f64>;

/// G is the slope over so many of the largest sizes: below, what a message costs apart from its
/// bytes hides it.
const LARGEST: usize = 4;
/// Below this share of explained variance a fit is no line.
const STRAIGHT: f64 = 0.9;

impl Groups {
    /// Warm-ups, and what was observed fewer than 3 times, are left out.
    ///
    /// # Errors
    /// An observation is no time; says which.
    pub fn new(observations: &[GroupObservation]) -> Result<Self, String> {
        let mut times: BTreeMap<Key, Vec<f64>> = BTreeMap::new();
        for row in observations.iter().filter(|row| row.status != Status::Warmup) {
            let key = (row.kind, row.operation, row.procs, row.bytes, row.messages);
            if !(row.seconds.is_finite() && row.seconds >= 0.0) || row.messages == 0 {
                let GroupObservation { kind, procs, bytes, repetition, seconds, .. } = row;
                return Err(format!(
                    "{kind:?} of {bytes} bytes, {procs} processes, repetition {repetition}: \
                     {seconds} seconds, {} messages; wanted a finite time of at least 0 and at \
                     least one message",
                    row.messages
                ));
            }
            times.entry(key).or_default().push(row.seconds);
        }
        let samples = times.into_iter().filter_map(|(key, times)| Some((key, Sample::new(times)?)));
        Ok(Groups(samples.collect()))
    }

    fn medians(&self) -> Medians {
        self.0.iter().map(|(key, sample)| (*key, sample.median())).collect()
    }

    fn redrawn(&self) -> Vec<Medians> {
        super::redraw(|random| {
            self.0.iter().map(|(key, sample)| (*key, sample.redraw_median(random))).collect()
        })
    }

    /// Adds gamma(m) and g(m, k), as far as they were measured.
    pub fn complete(&self, parameters: &mut Parameters) {
        let (medians, redrawn) = (self.medians(), self.redrawn());
        let estimate = |of: &dyn Fn(&Medians) -> f64| percentiles(&medians, &redrawn, of);
        for (kind, gaps) in [
            (GroupKind::FanOut, &mut parameters.plogp.gap_by_destinations),
            (GroupKind::FanIn, &mut parameters.plogp.gap_by_sources),
        ] {
            *gaps = many_gaps(&medians, kind, estimate);
        }
        parameters.gamma = gammas(&medians, estimate);
        let sums = keys_of(&medians, Combining::OPERATION);
        let slope = |medians: &Medians| {
            let points: Vec<(f64, f64)> =
                sums.iter().map(|key| (key.3 as f64, call(medians, key))).collect();
            lines::robust_relative(&points).map_or(0.0, |line| line.slope.max(0.0))
        };
        if sums.len() > 1 {
            parameters.gamma_seconds_per_byte = estimate(&slope);
        }
    }

    /// The parameters fitted to the barrier and the chains; nothing where these were not measured
    /// over at least 3 numbers of processes. `measured` gives what they do not hold.
    pub fn fit(&self, measured: &Parameters) -> Option<CollectiveFit> {
        let medians = self.medians();
        let sizes = chain_sizes(&medians);
        let (Some(values), false) = (Values::new(&medians, &sizes), sizes.is_empty()) else {
            return None;
        };
        let redrawn: Vec<Values> =
            self.redrawn().iter().filter_map(|medians| Values::new(medians, &sizes)).collect();
        let estimate = |of: &dyn Fn(&Values) -> f64| percentiles(&values, &redrawn, of);
        let overheads = PLogP::at_ends(&measured.plogp, [None; 4]);
        let knots = sizes.iter().enumerate().map(|(index, &bytes)| {
            let Costs { send, receive, .. } = overheads.at(bytes as f64);
            PLogPKnot {
                bytes,
                send_overhead_seconds: measured_at(measured, bytes, send, |knot| {
                    knot.send_overhead_seconds
                }),
                receive_overhead_seconds: measured_at(measured, bytes, receive, |knot| {
                    knot.receive_overhead_seconds
                }),
                gap_seconds: estimate(&|values| values.gap(index)),
            }
        });
        let plogp = calibration::PLogP {
            gap_by_destinations: measured.plogp.gap_by_destinations.clone(),
            gap_by_sources: measured.plogp.gap_by_sources.clone(),
            ..calibration::PLogP::new(estimate(&Values::latency), knots.collect())
        };
        let one_byte = overheads.at(1.0);
        let converted = values.loggp(&sizes, one_byte);
        let drawn: Vec<LogGp> =
            redrawn.iter().map(|values| values.loggp(&sizes, one_byte)).collect();
        let of_loggp = |of: &dyn Fn(&LogGp) -> f64| percentiles(&converted, &drawn, of);
        let loggp = calibration::LogGp {
            latency_seconds: of_loggp(&|loggp| loggp.latency),
            overhead_seconds: of_loggp(&|loggp| loggp.overhead),
            gap_seconds: of_loggp(&|loggp| loggp.gap),
            gap_seconds_per_byte: of_loggp(&|loggp| loggp.gap_per_byte),
        };
        let hockney = calibration::Hockney {
            alpha_seconds: estimate(&|values| values.latency() + values.gap(0)),
            beta_seconds_per_byte: loggp.gap_seconds_per_byte,
        };
        let mut parameters = Parameters::new(hockney, loggp, plogp);
        parameters.gamma_seconds_per_byte = measured.gamma_seconds_per_byte;
        parameters.gamma = measured.gamma.clone();
        parameters.derived = vec![
            "os(m), or(m), g(m, k) and gamma from measured".into(),
            "loggp and hockney from plogp".into(),
        ];
        let fits = line_fits(&medians, &values, &sizes);
        let warnings = values.warnings(&fits);
        Some(CollectiveFit { parameters, fits, warnings })
    }
}

/// A measured overhead with its interval; between measured sizes it has no interval of its own.
fn measured_at(
    measured: &Parameters,
    bytes: u64,
    value: f64,
    of: impl Fn(&PLogPKnot) -> Estimate,
) -> Estimate {
    let knot = measured.plogp.knots.iter().find(|knot| knot.bytes == bytes);
    knot.map_or(Estimate::exact(value), of)
}

/// The lines' numbers in one drawing.
#[derive(Debug)]
struct Values {
    barrier: Line,
    /// By message size.
    chains: Vec<Line>,
}

impl Values {
    fn new(medians: &Medians, sizes: &[u64]) -> Option<Self> {
        let line = |points: Vec<(f64, f64)>| {
            (points.len() > 2).then(|| lines::robust_relative(&points)).flatten()
        };
        let barrier = line(over_procs(medians, GroupKind::FlatBarrier, 0))?;
        let chains =
            sizes.iter().map(|&bytes| line(over_procs(medians, GroupKind::ChainBcast, bytes)));
        Some(Values { barrier, chains: chains.collect::<Option<_>>()? })
    }

    /// L, half the barrier's intercept.
    fn latency(&self) -> f64 {
        (self.barrier.intercept / 2.0).max(0.0)
    }

    /// g at the size of that index: of an empty message the barrier's slope, else what the chain's
    /// slope leaves beside L.
    fn gap(&self, index: usize) -> f64 {
        match index {
            0 => self.barrier.slope.max(0.0),
            _ => (self.chains[index].slope - self.latency()).max(0.0),
        }
    }

    fn loggp(&self, sizes: &[u64], one_byte: Costs) -> LogGp {
        let last = sizes.len() - 1;
        // By absolute errors: a shaped link lets the first packets of a message pass at once, and
        // the sizes that are hardly longer would hold a line by relative errors down.
        let points = (sizes.len().saturating_sub(LARGEST)..=last)
            .map(|index| (sizes[index] as f64, self.chains[index].slope, 1.0));
        let gap_per_byte = lines::weighted(points).map_or(0.0, |line| line.slope.max(0.0));
        let gap = self.gap(1.min(last));
        LinearGap::from_plogp(self.latency(), Costs { gap, ..one_byte }, gap_per_byte).loggp
    }

    fn warnings(&self, fits: &[LineFit]) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.barrier.intercept < 0.0 {
            warnings.push(format!(
                "fitted L, half the intercept of the barrier's line, is below 0 by {}: taken as 0. \
                 The barrier takes more per process the more there are",
                format_seconds(-self.barrier.intercept / 2.0)
            ));
        }
        let bent: Vec<String> = fits
            .iter()
            .filter(|fit| fit.r_squared < STRAIGHT)
            .map(|fit| format!("{} of {}", fit.experiment, format_bytes(fit.bytes)))
            .collect();
        if !bent.is_empty() {
            warnings.push(format!(
                "no straight line over the processes (R^2 below {STRAIGHT}): {}",
                bent.join(", ")
            ));
        }
        warnings
    }
}

/// (P, seconds of one), ascending.
fn over_procs(medians: &Medians, kind: GroupKind, bytes: u64) -> Vec<(f64, f64)> {
    let of_kind = medians.iter().filter(|((one, _, _, size, _), _)| (*one, *size) == (kind, bytes));
    of_kind
        .map(|(&(_, _, procs, _, messages), seconds)| {
            (f64::from(procs), seconds / f64::from(messages))
        })
        .collect()
}

/// The sizes at which chains were timed over enough numbers of processes, if 0 is one of them.
fn chain_sizes(medians: &Medians) -> Vec<u64> {
    let mut lengths: BTreeMap<u64, usize> = BTreeMap::new();
    for (kind, _, _, bytes, _) in medians.keys() {
        if *kind == GroupKind::ChainBcast {
            *lengths.entry(*bytes).or_default() += 1;
        }
    }
    lengths.retain(|_, procs| *procs > 2);
    match lengths.first_key_value() {
        Some((0, _)) => lengths.into_keys().collect(),
        _ => Vec::new(),
    }
}

fn line_fits(medians: &Medians, values: &Values, sizes: &[u64]) -> Vec<LineFit> {
    let barrier = ("flat-tree barrier", GroupKind::FlatBarrier, 0, values.barrier);
    let chains = sizes
        .iter()
        .zip(&values.chains)
        .map(|(&bytes, &line)| ("pipelined bcast", GroupKind::ChainBcast, bytes, line));
    std::iter::once(barrier)
        .chain(chains)
        .map(|(name, kind, bytes, line)| {
            line_fit(name, bytes, line, &over_procs(medians, kind, bytes))
        })
        .collect()
}

fn line_fit(name: &str, bytes: u64, line: Line, points: &[(f64, f64)]) -> LineFit {
    let mean = points.iter().map(|(_, y)| y).sum::<f64>() / points.len() as f64;
    let squares = |from: &dyn Fn(f64) -> f64| -> f64 {
        points.iter().map(|&(x, y)| (y - from(x)).powi(2)).sum()
    };
    let (left, whole) = (squares(&|x| line.at(x)), squares(&|_| mean));
    LineFit {
        experiment: name.into(),
        bytes,
        intercept_seconds: line.intercept,
        slope_seconds: line.slope,
        r_squared: if whole > 0.0 { 1.0 - left / whole } else { 1.0 },
        points: points
            .iter()
            .map(|&(procs, seconds)| FitPoint {
                procs: procs as u32,
                seconds,
                residual_seconds: seconds - line.at(procs),
            })
            .collect(),
    }
}

/// Number of partners and bytes: the short and the long row as (rounds, key).
fn rows_of_rounds(medians: &Medians, kind: GroupKind) -> BTreeMap<(u32, u64), Vec<Key>> {
    let mut rows: BTreeMap<(u32, u64), Vec<Key>> = BTreeMap::new();
    for &key in medians.keys().filter(|key| key.0 == kind) {
        let (_, _, procs, bytes, _) = key;
        // The keys ascend by length.
        rows.entry((procs.saturating_sub(1), bytes)).or_default().push(key);
    }
    rows.retain(|(partners, _), keys| *partners > 1 && keys.len() > 1);
    rows
}

fn many_gaps(
    medians: &Medians,
    kind: GroupKind,
    estimate: impl Fn(&dyn Fn(&Medians) -> f64) -> Estimate,
) -> Vec<ManyGap> {
    let mut gaps: Vec<ManyGap> = Vec::new();
    for ((partners, bytes), keys) in rows_of_rounds(medians, kind) {
        let (short, long) = (keys[0], keys[keys.len() - 1]);
        let rounds = f64::from(long.4 - short.4);
        let gap_seconds =
            estimate(&|medians: &Medians| ((medians[&long] - medians[&short]) / rounds).max(0.0));
        let knot = GapKnot { bytes, gap_seconds };
        match gaps.last_mut() {
            Some(last) if last.partners == partners => last.knots.push(knot),
            _ => gaps.push(ManyGap { partners, knots: vec![knot] }),
        }
    }
    gaps
}

/// The keys of one operation, by ascending size.
fn keys_of(medians: &Medians, operation: Operation) -> Vec<Key> {
    let wanted = (GroupKind::Combine, Some(operation));
    let keys = medians.keys().filter(|(kind, operation, ..)| (*kind, *operation) == wanted);
    keys.filter(|(_, _, _, bytes, _)| *bytes > 0).copied().collect()
}

/// Seconds of one call.
fn call(medians: &Medians, key: &Key) -> f64 {
    medians[key] / f64::from(key.4)
}

fn gammas(
    medians: &Medians,
    estimate: impl Fn(&dyn Fn(&Medians) -> f64) -> Estimate,
) -> Vec<Gamma> {
    let knot = |key: Key| {
        let bytes = key.3;
        let seconds_per_byte =
            estimate(&move |medians: &Medians| call(medians, &key) / bytes as f64);
        GammaKnot { bytes, seconds_per_byte }
    };
    Operation::ALL
        .into_iter()
        .map(|operation| Gamma {
            operation,
            knots: keys_of(medians, operation).into_iter().map(knot).collect(),
        })
        .filter(|gamma| !gamma.knots.is_empty())
        .collect()
}
