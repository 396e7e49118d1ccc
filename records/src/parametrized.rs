use std::fmt;

use crate::{Algorithm, names::quoted, quantity};

/// How soon a tree that is fitted to a network takes messages to come and to follow each other.
///
/// Only their ratio shapes the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TreePace {
    /// From the start of a send to the end of its receive: L + g(m) or L + 2o, in nanoseconds.
    pub trip: u32,
    /// Between the starts of two sends of a rank: g(m), in nanoseconds.
    pub gap: u32,
}

impl TreePace {
    /// As long as each other: all who have heard send in every round, as in a binomial tree.
    pub const EVEN: TreePace = TreePace { trip: 1, gap: 1 };

    /// Of times in seconds, to the nanosecond; the shortest is one.
    pub fn of_seconds(trip: f64, gap: f64) -> Self {
        let nanoseconds = |seconds: f64| (seconds * 1e9).round().clamp(1.0, u32::MAX.into()) as u32;
        TreePace { trip: nanoseconds(trip), gap: nanoseconds(gap) }
    }
}

/// An algorithm of ours that has another fan-out than the standard one, or a tree that is made for a
/// network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ParametrizedAlgorithm {
    pub algorithm: Algorithm,
    /// Number of chains, of streams, radix, size of groups, or most children; 0: what is standard.
    pub fan_out: u32,
    /// What a fitted tree is made for.
    pub pace: TreePace,
    /// Segment size in bytes; 0 is unsegmented.
    pub segment_bytes: u64,
}

impl ParametrizedAlgorithm {
    /// The fan-out of what does not say another: what Open MPI has by default. Fitted trees have any
    /// number of children then, and circulant ones a single stream.
    pub const STANDARD_FAN_OUT: u32 = 4;

    /// The fan-out that an algorithm has if nobody says another.
    pub const fn standard_fan_out(algorithm: Algorithm) -> u32 {
        match algorithm {
            Algorithm::Fitted => 0,
            Algorithm::Circulant => 1,
            _ => Self::STANDARD_FAN_OUT,
        }
    }

    /// An algorithm as it is without parameters.
    pub const fn plain(algorithm: Algorithm) -> Self {
        ParametrizedAlgorithm { algorithm, fan_out: 0, pace: TreePace::EVEN, segment_bytes: 0 }
    }

    /// Whether it is what the algorithm is without parameters.
    pub(crate) fn is_standard(&self) -> bool {
        let standard = Self::standard_fan_out(self.algorithm);
        (self.fan_out == 0 || self.fan_out == standard) && self.pace == TreePace::EVEN
    }

    /// Reads one of its own parameters, `fan-out=8`; false where it is none of them.
    pub(crate) fn read(&mut self, part: &str) -> Result<bool, String> {
        let Some((name, value)) = part.split_once('=') else { return Ok(false) };
        let number = || match value.parse::<u32>() {
            Ok(number) if number > 0 => Ok(number),
            _ => Err(format!("{} is no {name}; expected a whole number from 1 on", quoted(value))),
        };
        match name {
            "fan-out" => self.fan_out = number()?,
            "trip" | "gap" if self.algorithm != Algorithm::Fitted => {
                return Err(format!("{} has no {name}; fitted trees have", self.algorithm));
            }
            "trip" => self.pace.trip = number()?,
            "gap" => self.pace.gap = number()?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Without origin and segments: `k-nomial of 8`, `fitted to 57:24`.
    pub fn words(&self) -> String {
        let mut words = self.algorithm.to_string();
        if self.pace != TreePace::EVEN {
            words += &format!(" to {}:{}", self.pace.trip, self.pace.gap);
        }
        if self.fan_out > 0 {
            words += &format!(" of {}", self.fan_out);
        }
        words
    }

    /// `fan-out=8`, `trip=57`, `gap=24`, as far as they are not standard.
    pub fn parameters(&self) -> impl Iterator<Item = String> {
        let fan_out = (self.fan_out > 0).then(|| format!("fan-out={}", self.fan_out));
        let pace = (self.pace != TreePace::EVEN)
            .then(|| [format!("trip={}", self.pace.trip), format!("gap={}", self.pace.gap)]);
        fan_out.into_iter().chain(pace.into_iter().flatten())
    }
}

/// `own:k-nomial,fan-out=8,segment=8KiB`, `own:fitted,trip=57000,gap=24000`.
impl fmt::Display for ParametrizedAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "own:{}", self.algorithm)?;
        for parameter in self.parameters() {
            write!(f, ",{parameter}")?;
        }
        if self.segment_bytes > 0 {
            write!(f, ",segment={}", quantity::compact_bytes(self.segment_bytes))?;
        }
        Ok(())
    }
}
