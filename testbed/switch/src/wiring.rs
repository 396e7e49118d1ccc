//! What the network is to be.

use std::{fmt, str::FromStr};

use records::document::Document;
use serde::{Deserialize, Serialize};

use crate::Nanoseconds;

/// How a program's or node's place is called where `mpirun` runs.
pub const HEAD: &str = "head";

/// The most ports: a port's number is the last byte of its address.
const MAX_PORTS: usize = 250;

/// A duration of the network, in nanoseconds; 0 to 10 s.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Delay {
    nanoseconds: Nanoseconds,
}

const UNITS: [(&str, u64); 4] = [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];

impl Delay {
    const MOST: Nanoseconds = 10_000_000_000;

    /// From nanoseconds; nothing above 10 s.
    pub fn from_nanoseconds(nanoseconds: Nanoseconds) -> Option<Delay> {
        (nanoseconds <= Self::MOST).then_some(Delay { nanoseconds })
    }

    /// In nanoseconds.
    pub fn nanoseconds(self) -> Nanoseconds {
        self.nanoseconds
    }

    /// `factor` times as long; nothing above 10 s.
    pub fn times(self, factor: u32) -> Option<Delay> {
        self.nanoseconds.checked_mul(factor.into()).and_then(Delay::from_nanoseconds)
    }
}

impl FromStr for Delay {
    type Err = String;

    /// Reads `10us`, `1ms`, `1.5ms`, `0us`.
    fn from_str(text: &str) -> Result<Delay, String> {
        let read = || {
            let (number, scale) = UNITS
                .into_iter()
                .find_map(|(unit, scale)| Some((text.trim().strip_suffix(unit)?, scale)))?;
            let value = number.trim().parse::<f64>().ok()? * scale as f64;
            (0.0..=Self::MOST as f64).contains(&value).then(|| value.round() as u64)
        };
        read().and_then(Delay::from_nanoseconds).ok_or_else(|| {
            format!("'{text}' is not a latency; write 10us, 1ms or 1.5ms, at most 10s")
        })
    }
}

impl fmt::Display for Delay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.nanoseconds;
        let largest = UNITS.into_iter().rev().find(|(_, scale)| value.is_multiple_of(*scale));
        match largest {
            Some((unit, scale)) if value > 0 => write!(f, "{}{unit}", value / scale),
            _ => f.write_str("0us"),
        }
    }
}

/// How what is added to the latency is distributed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JitterDistribution {
    /// Evenly from nothing to the scale.
    Uniform,
    /// Exponentially, the scale being the mean.
    Exponential,
}

/// What is added to a frame's latency, drawn for each frame anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Jitter {
    /// From which distribution.
    pub distribution: JitterDistribution,
    /// Its largest value (uniform) or its mean (exponential).
    pub scale: Delay,
}

impl FromStr for Jitter {
    type Err = String;

    /// Reads `100us` or `uniform:100us`, and `exponential:100us`.
    fn from_str(text: &str) -> Result<Jitter, String> {
        let (distribution, scale) = match text.split_once(':') {
            None => (JitterDistribution::Uniform, text),
            Some(("uniform", scale)) => (JitterDistribution::Uniform, scale),
            Some(("exponential", scale)) => (JitterDistribution::Exponential, scale),
            Some(_) => {
                return Err(format!(
                    "'{text}' is not a jitter; write 100us (from 0 to 100us) or exponential:100us \
                     (100us in the mean)"
                ));
            }
        };
        Ok(Jitter { distribution, scale: scale.parse()? })
    }
}

impl fmt::Display for Jitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.distribution {
            JitterDistribution::Uniform => write!(f, "{}", self.scale),
            JitterDistribution::Exponential => write!(f, "exponential:{}", self.scale),
        }
    }
}

/// A port's two wires.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortWires {
    /// The place behind it, and the name that its device is made by.
    pub place: String,
    /// Of what the place sends, in bits per second; 0: at once.
    pub out_bits_per_second: u64,
    /// Of what it receives, in bits per second; 0: at once.
    pub in_bits_per_second: u64,
    /// Of either wire.
    pub latency: Delay,
    /// To which group it belongs; a port of none, as the head's, is reached without any uplink.
    pub group: Option<u16>,
}

/// A group's two wires to everything that is not in it: the ranks of a node, the nodes of a rack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupWires {
    /// Of what leaves it, in bits per second.
    pub up_bits_per_second: u64,
    /// Of what comes into it, in bits per second.
    pub down_bits_per_second: u64,
    /// Of either wire.
    pub latency: Delay,
    /// The group that it belongs to itself, which belongs to none.
    pub within: Option<u16>,
}

/// Everything that the network is to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wiring {
    /// By number of the port.
    pub ports: Vec<PortWires>,
    /// By number of the group.
    #[serde(default)]
    pub groups: Vec<GroupWires>,
    /// Added to the latency of each frame, once on its way.
    pub jitter: Option<Jitter>,
    /// How many frames in a thousand million are lost on their way.
    #[serde(default)]
    pub lost_per_billion: u32,
    /// Of what is drawn by chance. Frame number n of a pair of nodes always draws the same.
    #[serde(default)]
    pub seed: u64,
}

impl Document for Wiring {
    const SCHEMA: &'static str = "colibri/switch-wiring/1";

    fn validate(&self) -> Result<(), (String, String)> {
        let wrong = |field: &str, what: String| Err((field.to_owned(), what));
        if !(1..=MAX_PORTS).contains(&self.ports.len()) {
            return wrong("ports", format!("{} ports, 1 to {MAX_PORTS}", self.ports.len()));
        }
        let group = |index: u16| self.groups.get(usize::from(index));
        for (index, port) in self.ports.iter().enumerate() {
            if let Some(own) = port.group.filter(|own| group(*own).is_none()) {
                let groups = self.groups.len();
                return wrong(
                    &format!("ports[{index}].group"),
                    format!("{own} of {groups} groups"),
                );
            }
        }
        for (index, own) in self.groups.iter().enumerate() {
            let outer = own.within.map(group);
            if outer.is_some_and(|outer| outer.is_none_or(|outer| outer.within.is_some())) {
                let what = "no group, or one that is within another itself".into();
                return wrong(&format!("groups[{index}].within"), what);
            }
        }
        if self.lost_per_billion > 1_000_000_000 {
            return wrong("lost_per_billion", format!("{}", self.lost_per_billion));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn delays_are_read() {
        for (text, nanoseconds) in [
            ("1ms", 1_000_000),
            ("10us", 10_000),
            ("1.5ms", 1_500_000),
            ("0us", 0),
            ("2 s", 2_000_000_000),
        ] {
            assert_eq!(text.parse::<Delay>().unwrap().nanoseconds(), nanoseconds, "{text}");
        }
        for text in ["", "1", "ms", "-1ms", "11s", "NaNms", "infs", "1 hour"] {
            let error = text.parse::<Delay>().unwrap_err();
            assert!(error.contains(&format!("'{text}'")) && error.contains("1.5ms"), "{error}");
        }
        let millisecond = "1ms".parse::<Delay>().unwrap();
        assert_eq!(millisecond.times(100).unwrap().to_string(), "100ms");
        assert_eq!(millisecond.times(u32::MAX), None);
    }

    #[test]
    fn jitters_are_read_and_written() {
        for text in ["100us", "exponential:1ms"] {
            assert_eq!(text.parse::<Jitter>().unwrap().to_string(), text);
        }
        assert_eq!("uniform:1ms".parse::<Jitter>().unwrap().to_string(), "1ms");
        let error = "normal:1ms".parse::<Jitter>().unwrap_err();
        assert!(error.contains("exponential:100us"), "{error}");
        assert!("exponential:much".parse::<Jitter>().unwrap_err().contains("'much'"));
    }

    proptest! {
        #[test]
        fn a_delay_reads_back(nanoseconds in 0_u64..=10_000_000_000) {
            let delay = Delay::from_nanoseconds(nanoseconds).unwrap();
            prop_assert_eq!(delay.to_string().parse::<Delay>().unwrap(), delay);
        }
    }
}
