//! What of a platform is to be measured, by the flags.

use clap::Args;
use records::{RankPair, quantity};
use stages::calibrating::{CalibrationOptions, PRECISION};
use statistics::stopping::Criterion;

use crate::commands::shared::options::{List, sizes};

/// What to measure.
#[derive(Debug, Clone, Args)]
pub struct CalibrationFlags {
    /// Message sizes: 0,1KiB,64KiB or 0..8MiB (0 and the powers of two)
    #[arg(long, short = 'm', value_name = "LIST", value_parser = sizes, default_value = "0..1MiB")]
    sizes: List<u64>,

    /// The two ranks to measure between: such as 0,5; between-nodes (the first ranks of two nodes);
    /// inside-node (two ranks of one node)
    #[arg(long, value_name = "RANK,RANK|WHERE", default_value = "between-nodes")]
    pub pair: RankPair,

    /// Criterion by which a measurement is precise enough and no longer repeated: median-interval,
    /// mean-interval, NREP's rse, cov-mean, cov-median, or OCC's occ
    #[arg(long, value_name = "CRITERION", default_value = Criterion::MedianInterval.name(), hide_short_help = true)]
    stop_by: Criterion,

    /// Greatest value of --stop-by's criterion, as a share of the time
    #[arg(long, value_name = "SHARE", value_parser = |text: &str| quantity::parse_share(text, quantity::BETWEEN_0_AND_1), default_value_t = PRECISION)]
    precision: f64,

    /// Seed of the order of the measurements
    #[arg(long, default_value_t = 1, hide_short_help = true)]
    pub seed: u64,

    /// Measure between two ranks only: no fit to collectives, no g(m, k), no gamma
    #[arg(long = "pair-only", action = clap::ArgAction::SetFalse, hide_short_help = true)]
    groups: bool,
}

impl CalibrationFlags {
    pub fn options(&self) -> CalibrationOptions {
        let CalibrationFlags { ref sizes, pair, stop_by, precision, seed, groups } = *self;
        CalibrationOptions { sizes: sizes.0.clone(), pair, stop_by, precision, seed, groups }
    }
}
