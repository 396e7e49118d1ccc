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

/// An algorithm of Colibri's with its parameters.
///
/// What is standard is written nowhere, so that equal methods have one text: `own:k-nomial,fan-out=4` is
/// `own:k-nomial`. Whether it runs by messages or through shared memory follows from the algorithms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OwnMethod {
    pub algorithm: Algorithm,
    /// Whether it runs on ranks that are renumbered node by node, so that neighbours in a ring or a chain share a
    /// node as far as can be.
    pub by_node: bool,
    /// Between nodes, of two-level and multi-lane; none: what these have as standard.
    pub inter: Option<Algorithm>,
    /// Inside a node, likewise.
    pub intra: Option<Algorithm>,
    /// Number of chains, of streams, radix, size of groups, or most children (0: any number).
    pub fan_out: u32,
    /// What a fitted tree is made for.
    pub pace: TreePace,
    /// Segment size in bytes; 0 is unsegmented.
    pub segment_bytes: u64,
}

impl OwnMethod {
    /// The fan-out of what does not say another: what Open MPI has by default.
    pub const STANDARD_FAN_OUT: u32 = 4;

    /// The fan-out that an algorithm has if nobody says another. Fitted trees have any number of children then,
    /// circulant ones a single stream, and flags in shared memory one group of all ranks.
    pub const fn standard_fan_out(algorithm: Algorithm) -> u32 {
        match algorithm {
            Algorithm::Fitted | Algorithm::SharedFlags => 0,
            Algorithm::Circulant => 1,
            _ => Self::STANDARD_FAN_OUT,
        }
    }

    /// An algorithm as it is without parameters.
    pub const fn plain(algorithm: Algorithm) -> Self {
        OwnMethod {
            algorithm,
            by_node: false,
            inter: None,
            intra: None,
            fan_out: Self::standard_fan_out(algorithm),
            pace: TreePace::EVEN,
            segment_bytes: 0,
        }
    }

    /// This method with segments of so many bytes (0: none).
    #[must_use]
    pub const fn with_segment(self, segment_bytes: u64) -> Self {
        OwnMethod { segment_bytes, ..self }
    }

    /// This method made for a network. Trips as long as gaps are even, whatever their length.
    #[must_use]
    pub const fn with_pace(self, pace: TreePace) -> Self {
        let pace = if pace.trip == pace.gap { TreePace::EVEN } else { pace };
        OwnMethod { pace, ..self }
    }

    /// Whether the nodes of the ranks make a difference to it.
    pub const fn is_node_aware(&self) -> bool {
        self.by_node || self.algorithm.is_node_aware()
    }

    /// Whether it has another fan-out than the standard one, or a tree that is made for a network.
    pub fn is_parametrized(&self) -> bool {
        self.fan_out != Self::standard_fan_out(self.algorithm) || self.pace != TreePace::EVEN
    }

    /// Whether it has no parameters but segments, and nodes make no difference to it.
    pub fn is_plain(&self) -> bool {
        !self.is_node_aware() && !self.is_parametrized()
    }

    /// Whether ranks of a node carry it out, or a part of it, through memory that they share.
    pub fn shares_memory(&self) -> bool {
        self.algorithm.shares_memory() || self.intra.is_some_and(Algorithm::shares_memory)
    }

    /// Without origin and segments: `k-nomial of 8`, `fitted to 57:24`, `two-level pipeline/standard`, `ring by node`.
    pub fn words(&self) -> String {
        let name = |level: Option<Algorithm>| level.map_or("standard", Algorithm::name);
        let mut words = self.algorithm.to_string();
        if self.pace != TreePace::EVEN {
            words += &format!(" to {}:{}", self.pace.trip, self.pace.gap);
        }
        if self.fan_out != Self::standard_fan_out(self.algorithm) {
            words += &format!(" of {}", self.fan_out);
        }
        if self.inter.or(self.intra).is_some() {
            words += &format!(" {}/{}", name(self.inter), name(self.intra));
        }
        if self.by_node {
            words += " by node";
        }
        words
    }

    /// Of the text behind the origin: `k-nomial,fan-out=8,segment=8KiB`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut parts = text.split(',');
        let mut method = OwnMethod::plain(parse_name(parts.next().unwrap_or_default())?);
        parts.try_for_each(|part| method.read(part))?;
        if method.is_node_aware() && method.is_parametrized() {
            return Err("a method by nodes has no fan-out of its own".into());
        }
        Ok(method.with_pace(method.pace))
    }

    /// Reads one parameter, `fan-out=8`.
    fn read(&mut self, part: &str) -> Result<(), String> {
        let (algorithm, has_levels) = (self.algorithm, self.algorithm.is_node_aware());
        let number = |name: &str, value: &str| match value.parse::<u32>() {
            Ok(number) if number > 0 => Ok(number),
            _ => Err(format!("{} is no {name}; expected a whole number from 1 on", quoted(value))),
        };
        match part.split_once('=') {
            Some((name @ "fan-out", value)) => self.fan_out = number(name, value)?,
            Some((name @ ("trip" | "gap"), _)) if algorithm != Algorithm::Fitted => {
                return Err(format!("{algorithm} has no {name}; fitted trees have"));
            }
            Some((name @ "trip", value)) => self.pace.trip = number(name, value)?,
            Some((name @ "gap", value)) => self.pace.gap = number(name, value)?,
            Some(("inter", named)) if has_levels => self.inter = Some(parse_level(named)?),
            Some(("intra", named)) if has_levels => self.intra = Some(parse_level(named)?),
            Some(("inter" | "intra", _)) => {
                return Err(format!(
                    "{algorithm} has no levels: {} is of two-level and multi-lane",
                    quoted(part)
                ));
            }
            Some(("order", "node")) if !has_levels => self.by_node = true,
            Some(("order", _)) => {
                return Err(format!(
                    "unknown order {} (known: order=node, of an algorithm without levels)",
                    quoted(part)
                ));
            }
            _ => self.segment_bytes = parse_segment(part)?,
        }
        Ok(())
    }
}

/// `own:k-nomial,fan-out=8,segment=8KiB`, `own:fitted,trip=57000,gap=24000`, `own:ring,order=node`.
impl fmt::Display for OwnMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "own:{}", self.algorithm)?;
        if self.by_node {
            f.write_str(",order=node")?;
        }
        for (name, level) in [("inter", self.inter), ("intra", self.intra)] {
            level.map_or(Ok(()), |algorithm| write!(f, ",{name}={algorithm}"))?;
        }
        if self.fan_out != Self::standard_fan_out(self.algorithm) {
            write!(f, ",fan-out={}", self.fan_out)?;
        }
        if self.pace != TreePace::EVEN {
            write!(f, ",trip={},gap={}", self.pace.trip, self.pace.gap)?;
        }
        write_segment(f, self.segment_bytes)
    }
}

/// `,segment=8KiB`, or nothing where there are none.
pub(crate) fn write_segment(f: &mut fmt::Formatter<'_>, segment_bytes: u64) -> fmt::Result {
    match segment_bytes {
        0 => Ok(()),
        bytes => write!(f, ",segment={}", quantity::compact_bytes(bytes)),
    }
}

/// The algorithm at the beginning of a method.
pub(crate) fn parse_name(name: &str) -> Result<Algorithm, String> {
    match name.contains('(') {
        true => Err(format!(
            "parameters follow the algorithm after commas, as in pipeline,segment=8KiB; got {}",
            quoted(name)
        )),
        false => name.parse(),
    }
}

/// The algorithm of one level.
fn parse_level(name: &str) -> Result<Algorithm, String> {
    let algorithm: Algorithm = name.parse()?;
    match algorithm.is_node_aware() {
        true => Err(format!("{algorithm} is no algorithm of one level")),
        false => Ok(algorithm),
    }
}

/// `segment=8KiB`, which any method may have.
pub(crate) fn parse_segment(part: &str) -> Result<u64, String> {
    match part.split_once('=') {
        Some(("segment", size)) => quantity::parse_bytes(size),
        Some(("form", _)) => Err(format!(
            "a form belongs to the name, as linear-ready: {} is not a parameter (known: segment=SIZE)",
            quoted(part)
        )),
        _ => Err(format!("unknown parameter {} (known: segment=SIZE)", quoted(part))),
    }
}
