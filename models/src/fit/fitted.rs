//! Parameters fitted to collectives: lines over the number of processes.
//!
//! By the procedure of the paper (section 5): a flat-tree barrier of P takes P g(0) + 2 L (Table
//! 1), so a line over P gives g(0), its slope, and L, half of its intercept; a pipelined bcast in
//! one segment takes (P - 1) (L + g(m)) (Table 2), so its slope over P gives g(m). The chain's time
//! here holds an empty message back to the root, which is the same for every P. os(m) and or(m) are
//! not in these times: they are the measured ones. LogGP and Hockney are converted.
//!
//! An intercept is the least certain thing about a line: where every process costs more than the
//! one before it lies below 0. L is taken from it only where its interval is above 0; else it is
//! what the slope of the empty chain, L + g(0), leaves beside g(0), two slopes. Where that is not
//! above 0 either, L is not determined and the measured one stands in; so does G where g(m) does
//! not rise for certain over the largest sizes. Which it was is reported.
//!
//! Lines over P are Huber's, by relative errors ([`lines`](super::lines)), through the centres; G is
//! the slope of the least-squares line through L + g(m) at the four largest sizes.
//! Intervals are percentiles of the bootstrap, as in [`fit`](super::fit); that a line does not hold
//! shows in its residuals and its R^2, not in the intervals.

use std::collections::BTreeMap;

use records::{
    calibration::{self, Estimate, FitPoint, LineFit, PLogPKnot, Parameters},
    group_observation::GroupKind,
    quantity::{format_bytes, format_seconds},
};
use statistics::r_squared;

use super::{
    centres::GroupCentres,
    drift,
    groups::GroupSamples,
    lines::{self, FittedLine},
    percentiles,
};
use crate::parameters::{LinearGap, LogGp, MessageCosts, PLogP};

/// In [`Parameters::derived`] of fitted ones whose L the collectives do not tell.
pub const LATENCY_MEASURED: &str = "L from measured";
/// In [`Parameters::derived`] of fitted ones whose G the collectives do not tell.
pub const GAP_PER_BYTE_MEASURED: &str = "G from measured";

/// G is the slope over so many of the largest sizes: below, what a message costs apart from its
/// bytes hides it.
const LARGEST: usize = 4;
/// Nor is it determined by chains whose longest message is shorter than this part of the longest one that two
/// ranks sent: of a long one all frames but one pass a switch while the next ones arrive.
const LONG: u64 = 16;
/// Below this share of explained variance a fit is no line.
const MIN_R_SQUARED: f64 = 0.9;
/// G is not determined where its interval reaches further than this part of it to one side.
const MAX_RELATIVE_ERROR: f64 = 0.5;

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

/// What tells L.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Latency {
    Barrier,
    Chain,
    Measured(f64),
}

/// What the fit of barriers with receives posted together is called.
const POSTED: &str = "flat-tree barrier, receives posted";

/// The lines of one drawing.
#[derive(Debug)]
struct FittedLines {
    barrier: FittedLine,
    /// With receives posted together, where it was timed; no parameter is taken from it.
    posted: Option<FittedLine>,
    /// By message size, the empty message first.
    chains: Vec<FittedLine>,
}

/// The parameters of one drawing.
#[derive(Debug)]
struct DrawnValues {
    latency: f64,
    /// By message size.
    gaps: Vec<f64>,
    loggp: LogGp,
}

impl GroupSamples {
    /// The parameters fitted to the barrier and the chains; nothing where these were not measured
    /// over at least 3 numbers of processes. `measured` gives what they do not hold.
    pub fn fit(&self, measured: &Parameters) -> Option<CollectiveFit> {
        let GroupSamples { centres, redrawn, disturbed } = self;
        let sizes = chain_sizes(centres);
        if sizes.is_empty() {
            return None;
        }
        let lines = FittedLines::new(centres, &sizes)?;
        let redrawn: Vec<FittedLines> =
            redrawn.iter().filter_map(|centres| FittedLines::new(centres, &sizes)).collect();
        let mut warnings = Vec::new();
        warnings.extend(drift::disturbance(*disturbed, "among several ranks"));
        let estimates = LineEstimates::new(&lines, &redrawn, &sizes, measured, &mut warnings);
        let values = estimates.values(&lines);
        let drawn: Vec<DrawnValues> = redrawn.iter().map(|lines| estimates.values(lines)).collect();
        let fits = line_fits(centres, &lines, &sizes);
        warnings.extend(not_linear(&fits));
        let parameters = estimates.parameters(&values, &drawn, measured);
        Some(CollectiveFit { parameters, fits, warnings })
    }
}

/// What the lines tell, and what they leave to the measured parameters.
struct LineEstimates<'a> {
    sizes: &'a [u64],
    latency: Latency,
    /// The measured G with its interval where the lines do not tell it.
    gap_per_byte: Option<Estimate>,
    overheads: PLogP,
}

impl<'a> LineEstimates<'a> {
    fn new(
        lines: &FittedLines,
        redrawn: &[FittedLines],
        sizes: &'a [u64],
        measured: &Parameters,
        warnings: &mut Vec<String>,
    ) -> Self {
        let estimate = |of: &dyn Fn(&FittedLines) -> f64| percentiles(lines, redrawn, of);
        let barrier = estimate(&FittedLines::half_intercept);
        let chain = estimate(&FittedLines::beside_gap);
        let interval = |it: Estimate| {
            let [value, low, high] = [it.value, it.low, it.high].map(signed);
            format!("{value} ({low} .. {high})")
        };
        let below = format!(
            "half of the intercept of the barrier's line, {}, does not give the fitted L: a \
             barrier's time per rank grows with their number",
            interval(barrier)
        );
        let latency = if barrier.low > 0.0 {
            Latency::Barrier
        } else if chain.low > 0.0 {
            warnings.push(format!("{below}; it is the slope of the empty chain less g(0)"));
            Latency::Chain
        } else {
            warnings.push(format!(
                "{below}; nor does the slope of the empty chain less g(0), {}: the measured L is \
                 used",
                interval(chain)
            ));
            Latency::Measured(measured.plogp.latency_seconds.value)
        };
        let slope = estimate(&|lines| lines.gap_per_byte(sizes));
        let vague =
            slope.low.min(2.0 * slope.value - slope.high) < MAX_RELATIVE_ERROR * slope.value;
        let slow_rise = || {
            "the chains' times do not rise significantly with the size of the largest messages"
                .into()
        };
        let undetermined = too_short(sizes, measured).or_else(|| vague.then(slow_rise));
        let gap_per_byte = undetermined.as_ref().map(|_| measured.loggp.gap_seconds_per_byte);
        warnings.extend(undetermined.map(|why| format!("{why}: the measured G is used")));
        let overheads = PLogP::at_ends(&measured.plogp, [None; 4]);
        LineEstimates { sizes, latency, gap_per_byte, overheads }
    }

    fn values(&self, lines: &FittedLines) -> DrawnValues {
        let latency = match self.latency {
            Latency::Barrier => lines.half_intercept(),
            Latency::Chain => lines.beside_gap(),
            Latency::Measured(seconds) => seconds,
        };
        let latency = latency.max(0.0);
        let gaps: Vec<f64> = (0..self.sizes.len()).map(|index| lines.gap(index, latency)).collect();
        let gap_per_byte = match self.gap_per_byte {
            Some(measured) => measured.value,
            None => lines.gap_per_byte(self.sizes),
        };
        let one_byte = MessageCosts { gap: gaps[1.min(gaps.len() - 1)], ..self.overheads.at(1.0) };
        let loggp = LinearGap::from_plogp(latency, one_byte, gap_per_byte).loggp;
        DrawnValues { latency, gaps, loggp }
    }

    fn parameters(
        &self,
        values: &DrawnValues,
        drawn: &[DrawnValues],
        measured: &Parameters,
    ) -> Parameters {
        let estimate = |of: &dyn Fn(&DrawnValues) -> f64| percentiles(values, drawn, of);
        let latency_seconds = match self.latency {
            Latency::Measured(_) => measured.plogp.latency_seconds,
            _ => estimate(&|values| values.latency),
        };
        let knots = self.sizes.iter().enumerate().map(|(index, &bytes)| {
            let MessageCosts { send, receive, .. } = self.overheads.at(bytes as f64);
            PLogPKnot {
                bytes,
                send_overhead_seconds: measured_at(measured, bytes, send, |knot| {
                    knot.send_overhead_seconds
                }),
                receive_overhead_seconds: measured_at(measured, bytes, receive, |knot| {
                    knot.receive_overhead_seconds
                }),
                gap_seconds: estimate(&|values| values.gaps[index]),
            }
        });
        // A line through the largest fitted sizes, if these tell no rate, would be noise beyond them.
        let last = self.sizes.last().copied();
        let beyond = measured.plogp.knots.iter().filter(|knot| Some(knot.bytes) > last);
        let beyond = beyond.filter(|_| self.gap_per_byte.is_some()).cloned();
        let knots = knots.chain(beyond).collect();
        let plogp = calibration::PLogPEstimates {
            gap_by_destinations: measured.plogp.gap_by_destinations.clone(),
            gap_by_sources: measured.plogp.gap_by_sources.clone(),
            ..calibration::PLogPEstimates::new(latency_seconds, knots)
        };
        let gap_seconds_per_byte =
            self.gap_per_byte.unwrap_or_else(|| estimate(&|values| values.loggp.gap_per_byte));
        let loggp = calibration::LogGpEstimates {
            latency_seconds: estimate(&|values| values.loggp.latency),
            overhead_seconds: estimate(&|values| values.loggp.overhead),
            gap_seconds: estimate(&|values| values.loggp.gap),
            gap_seconds_per_byte,
        };
        let hockney = calibration::HockneyEstimates {
            alpha_seconds: estimate(&|values| values.latency + values.gaps[0]),
            beta_seconds_per_byte: gap_seconds_per_byte,
        };
        let mut parameters = Parameters::new(hockney, loggp, plogp);
        parameters.gamma_seconds_per_byte = measured.gamma_seconds_per_byte;
        parameters.gamma = measured.gamma.clone();
        parameters.port_sharing = measured.port_sharing.clone();
        parameters.derived = vec![
            "os(m), or(m), g(m, k) and gamma from measured".into(),
            "loggp and hockney from plogp".into(),
        ];
        if matches!(self.latency, Latency::Measured(_)) {
            parameters.derived.push(LATENCY_MEASURED.into());
        }
        if self.gap_per_byte.is_some() {
            parameters.derived.push(GAP_PER_BYTE_MEASURED.into());
        }
        parameters
    }
}

/// Why chains tell no rate whose longest message is not a long one.
fn too_short(sizes: &[u64], measured: &Parameters) -> Option<String> {
    let (last, longest) = (*sizes.last()?, measured.plogp.knots.last()?.bytes);
    (last < longest / LONG).then(|| {
        format!(
            "the chains' longest messages, of {}, are too short to tell a rate",
            format_bytes(last)
        )
    })
}

/// A time that may be below 0, for people.
fn signed(seconds: f64) -> String {
    let sign = if seconds < 0.0 { "-" } else { "" };
    format!("{sign}{}", format_seconds(seconds.abs()))
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

impl FittedLines {
    fn new(centres: &GroupCentres, sizes: &[u64]) -> Option<Self> {
        let line = |points: Vec<(f64, f64)>| {
            (points.len() > 2).then(|| lines::robust_relative(&points)).flatten()
        };
        let barrier = line(over_procs(centres, GroupKind::FlatBarrier, 0))?;
        let posted = line(over_procs(centres, GroupKind::PostedBarrier, 0));
        let chains =
            sizes.iter().map(|&bytes| line(over_procs(centres, GroupKind::ChainBcast, bytes)));
        Some(FittedLines { barrier, posted, chains: chains.collect::<Option<_>>()? })
    }

    fn half_intercept(&self) -> f64 {
        self.barrier.intercept / 2.0
    }

    fn beside_gap(&self) -> f64 {
        self.chains[0].slope - self.barrier.slope
    }

    /// g at the size of that index: of an empty message the barrier's slope, else what the chain's
    /// slope leaves beside L.
    fn gap(&self, index: usize, latency: f64) -> f64 {
        match index {
            0 => self.barrier.slope.max(0.0),
            _ => (self.chains[index].slope - latency).max(0.0),
        }
    }

    /// By absolute errors: a shaped link lets the first packets of a message pass at once, and the
    /// sizes that are hardly longer would hold a line by relative errors down.
    fn gap_per_byte(&self, sizes: &[u64]) -> f64 {
        let points = (sizes.len().saturating_sub(LARGEST)..sizes.len())
            .map(|index| (sizes[index] as f64, self.chains[index].slope, 1.0));
        lines::weighted(points).map_or(0.0, |line| line.slope.max(0.0))
    }
}

/// Fits that are no lines.
fn not_linear(fits: &[LineFit]) -> Option<String> {
    let bent: Vec<String> = fits
        .iter()
        .filter(|fit| fit.r_squared < MIN_R_SQUARED)
        .map(|fit| format!("{} of {}", fit.experiment, format_bytes(fit.bytes)))
        .collect();
    let list = bent.join(", ");
    (!bent.is_empty())
        .then(|| format!("no straight line over the ranks (R^2 below {MIN_R_SQUARED}): {list}"))
}

/// (P, seconds of one), ascending.
fn over_procs(centres: &GroupCentres, kind: GroupKind, bytes: u64) -> Vec<(f64, f64)> {
    let of_kind = centres.iter().filter(|((one, _, _, size, _), _)| (*one, *size) == (kind, bytes));
    of_kind
        .map(|(&(_, _, procs, _, messages), seconds)| {
            (f64::from(procs), seconds / f64::from(messages))
        })
        .collect()
}

/// The sizes at which chains were timed over enough numbers of processes, if 0 is one of them.
fn chain_sizes(centres: &GroupCentres) -> Vec<u64> {
    let mut lengths: BTreeMap<u64, usize> = BTreeMap::new();
    for (kind, _, _, bytes, _) in centres.keys() {
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

fn line_fits(centres: &GroupCentres, lines: &FittedLines, sizes: &[u64]) -> Vec<LineFit> {
    let barrier = ("flat-tree barrier", GroupKind::FlatBarrier, 0, lines.barrier);
    let chains = sizes
        .iter()
        .zip(&lines.chains)
        .map(|(&bytes, &line)| ("pipelined bcast", GroupKind::ChainBcast, bytes, line));
    let posted = lines.posted.map(|line| (POSTED, GroupKind::PostedBarrier, 0, line));
    std::iter::once(barrier)
        .chain(posted)
        .chain(chains)
        .map(|(name, kind, bytes, line)| {
            line_fit(name, bytes, line, &over_procs(centres, kind, bytes))
        })
        .collect()
}

fn line_fit(name: &str, bytes: u64, line: FittedLine, points: &[(f64, f64)]) -> LineFit {
    let (values, residuals): (Vec<f64>, Vec<f64>) =
        points.iter().map(|&(x, y)| (y, y - line.at(x))).unzip();
    LineFit {
        experiment: name.into(),
        bytes,
        intercept_seconds: line.intercept,
        slope_seconds: line.slope,
        r_squared: r_squared(&values, &residuals),
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
