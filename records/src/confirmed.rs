//! What confirming jobs have shown: how much faster, how surely, at how many points, and whether to load it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Collective, Layout, Method, quantity::format_bytes};

/// Pairs of jobs that confirm a gain at least. Two pairs tell their scatter with one degree of freedom only: the
/// interval of 95 % then is 12.7 standard errors wide to each side, of three pairs 4.3.
pub const MIN_PAIRS: u32 = 3;

/// What a choice rests on, from the weakest to the strongest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// A model's prediction.
    Predicted,
    /// Times of the method, forced.
    Measured,
    /// The same method is confirmed at the nearest smaller and at the nearest larger size that was timed.
    BetweenConfirmed,
    /// Times of the default with the choice loaded, in jobs that had no part in choosing it.
    Confirmed,
}

/// How much faster calls are with a file loaded, by pairs of jobs: one as it is, one with the file.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PairedSpeedUp {
    /// Pairs of jobs that others did not disturb.
    pub pairs: u32,
    /// The default's time over the time with the file loaded: geometric mean over the pairs, and over the
    /// sizes of the range that was confirmed together, where it is of several.
    pub speed_up: f64,
    /// Its interval: 95 %, of what is confirmed widened for the number of ranges and sizes that were tested.
    pub interval: [f64; 2],
}

impl fmt::Display for PairedSpeedUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PairedSpeedUp { speed_up, interval: [low, high], .. } = self;
        write!(f, "{speed_up:.2} ({low:.2} to {high:.2})")
    }
}

/// Neighbouring sizes at which one method was confirmed together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConfirmedRange {
    pub collective: Collective,
    /// The communicator's ranks and nodes; `procs` in files, where a number is one rank per node.
    #[serde(rename = "procs")]
    pub layout: Layout,
    /// The smallest size.
    pub first_bytes: u64,
    pub last_bytes: u64,
    /// What replaces the default.
    pub method: Method,
    /// How much faster it is.
    #[serde(flatten)]
    pub confirmed: PairedSpeedUp,
}

/// `64 B`, or `64 B to 8 KiB`.
pub fn sizes(first_bytes: u64, last_bytes: u64) -> String {
    match first_bytes == last_bytes {
        true => format_bytes(first_bytes),
        false => format!("{} to {}", format_bytes(first_bytes), format_bytes(last_bytes)),
    }
}

/// At how many points what is written replaces the default, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LoadedCounts {
    /// Points decided on, without those shadowed.
    pub points: u32,
    /// Replaced, and confirmed to be faster.
    pub confirmed: u32,
    /// Replaced by the method that is confirmed at a smaller and at a larger size.
    pub between: u32,
    /// Replaced without being confirmed: by `--unconfirmed` alone.
    pub unconfirmed: u32,
    /// Left to the default though something seemed faster: `--unconfirmed` would load it.
    pub withheld: u32,
    /// Points at which the file applies what was chosen for another layout of as many processes, which it does not
    /// tell apart. They are timed with it to leave out what is slower there.
    pub shadowed: u32,
}

impl LoadedCounts {
    /// At how many points the default is replaced.
    pub fn replaced(&self) -> u32 {
        self.confirmed + self.between + self.unconfirmed
    }

    /// At how many it is not.
    pub fn left(&self) -> u32 {
        self.points.saturating_sub(self.replaced())
    }

    /// # Errors
    /// More are replaced than there are; says what would be right.
    pub(crate) fn check(&self) -> Result<(), String> {
        let replaced = [self.confirmed, self.between, self.unconfirmed].map(u64::from);
        match replaced.iter().sum::<u64>() <= u64::from(self.points) {
            true => Ok(()),
            false => Err(format!(
                "replaces the default at {} of {}; expected at most all of them",
                replaced.iter().sum::<u64>(),
                crate::counted(self.points, "point")
            )),
        }
    }
}

impl fmt::Display for LoadedCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LoadedCounts { points, confirmed, between, unconfirmed, .. } = *self;
        write!(f, "{} of {} replaced", self.replaced(), crate::counted(points, "point"))?;
        let parts = [
            (confirmed, "confirmed"),
            (between, "between confirmed sizes"),
            (unconfirmed, "not confirmed"),
        ];
        let parts = parts.into_iter().filter(|(count, _)| *count > 0);
        let parts: Vec<String> = parts.map(|(count, what)| format!("{count} {what}")).collect();
        if !parts.is_empty() {
            write!(f, ": {}", parts.join(", "))?;
        }
        write!(f, "; {} left to the default", self.left())
    }
}

/// Whether to load what was written.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadVerdict {
    /// What to do.
    #[serde(flatten)]
    pub advice: Advice,
    /// Why, in a sentence or two.
    pub reason: String,
}

impl LoadVerdict {
    /// Of what is confirmed at so many points; `rest` is said of others.
    pub fn load(counts: LoadedCounts, rest: &str) -> Self {
        let reason = format!(
            "It is faster at {} of {}, each confirmed by at least {MIN_PAIRS} pairs of jobs.{rest}",
            counts.confirmed,
            crate::counted(counts.points, "point")
        );
        LoadVerdict { advice: Advice::Load, reason }
    }

    /// Of a file that replaces the default where nothing was confirmed, too; `confirmed` is the verdict on what was, if
    /// any was.
    pub fn with_unconfirmed(counts: LoadedCounts, confirmed: Option<&LoadVerdict>) -> Self {
        let advice = match confirmed.map(|verdict| &verdict.advice) {
            Some(repeat @ Advice::Repeat { .. }) => repeat.clone(),
            _ => Advice::Tune,
        };
        let reason = format!(
            "It replaces the default at {}, of which {} not confirmed to be faster.",
            crate::counted(counts.replaced(), "point"),
            if counts.unconfirmed == 1 {
                "1 is".into()
            } else {
                format!("{} are", counts.unconfirmed)
            }
        );
        LoadVerdict { advice, reason }
    }
}

/// What to do with what was written.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "advice", rename_all = "snake_case")]
pub enum Advice {
    /// All that it replaces was confirmed to be faster.
    Load,
    /// Tune again first.
    Repeat {
        /// The budget that it takes; nothing where time was not what was missing.
        budget_minutes: Option<u64>,
        /// Whether others took the processors.
        on_idle_nodes: bool,
    },
    /// Confirm it first: what wrote it confirms nothing.
    Tune,
    /// Nothing is faster than the default, so that nothing is replaced.
    #[default]
    Nothing,
}

impl fmt::Display for LoadVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.advice {
            Advice::Load => f.write_str("Load it.")?,
            Advice::Repeat { budget_minutes, on_idle_nodes } => {
                f.write_str("Do not load it yet: ")?;
                // What was disturbed is measured anew; what was too short goes on.
                match (on_idle_nodes, budget_minutes) {
                    (false, Some(minutes)) => {
                        write!(f, "go on with `--resume --budget {minutes}m`.")?
                    }
                    (true, Some(minutes)) => write!(
                        f,
                        "tune again in another directory, on idle nodes with `--budget {minutes}m`."
                    )?,
                    (true, None) => {
                        f.write_str("tune again in another directory, on idle nodes.")?
                    }
                    (false, None) => f.write_str("tune again in another directory.")?,
                }
            }
            Advice::Tune => f.write_str("Do not load it yet: confirm it by `colibri tune`.")?,
            Advice::Nothing => f.write_str("There is nothing to load.")?,
        }
        write!(f, " {}", self.reason)
    }
}
