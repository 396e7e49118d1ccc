//! What only a switch of our own can do: latency, jitter, loss, racks.

use std::{fmt, str::FromStr};

use records::quantity;
use serde::{Deserialize, Serialize};
use switch::{Delay, Jitter};

use crate::{Rate, TestbedError};

/// How the links are beside their rate.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkOptions {
    /// Of the way from one node to another in its rack, in nanoseconds; half of it is each link's,
    /// and each uplink's.
    #[serde(rename = "latency_nanoseconds")]
    pub latency: Delay,
    /// Added to each frame's latency.
    #[serde(default)]
    pub jitter: Option<Jitter>,
    /// How many frames are lost.
    #[serde(default)]
    pub loss: Loss,
    /// Of what is drawn by chance.
    #[serde(default)]
    pub seed: u64,
    /// Nodes in racks; without them all are in one.
    #[serde(default)]
    pub racks: Option<Racks>,
    /// A network inside each node, with a port for each of its ranks; without one ranks of a node share
    /// memory, and its port.
    #[serde(default)]
    pub inside: Option<InsideNetwork>,
}

/// The network inside a node, as in `100mbit,100us`, before it is slowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct InsideNetwork {
    /// Of each rank's port, both ways.
    #[serde(rename = "rate_bits_per_second")]
    pub rate: Rate,
    /// Of the way from one rank to another of its node; half of it is each port's.
    #[serde(rename = "latency_nanoseconds")]
    pub latency: Delay,
}

impl FromStr for InsideNetwork {
    type Err = TestbedError;

    fn from_str(text: &str) -> Result<InsideNetwork, TestbedError> {
        let (rate, latency) = match text.split_once(',') {
            Some((rate, latency)) => (rate, latency),
            None => (text, "0us"),
        };
        let latency = latency.parse().map_err(TestbedError::Spec)?;
        Ok(InsideNetwork { rate: rate.parse()?, latency })
    }
}

impl fmt::Display for InsideNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.rate, self.latency)
    }
}

/// A share of frames: `0.001` or `0.1%`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Loss {
    pub(crate) per_billion: u32,
}

impl FromStr for Loss {
    type Err = TestbedError;

    fn from_str(text: &str) -> Result<Loss, TestbedError> {
        let share = quantity::parse_share(text, 0.0..=0.5).map_err(TestbedError::Spec)?;
        Ok(Loss { per_billion: (share * 1e9).round() as u32 })
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", f64::from(self.per_billion) / 1e7)
    }
}

/// As many racks of as many nodes, in order, each with an uplink to the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Racks {
    pub racks: u32,
    /// Nodes in each.
    pub nodes: u32,
    /// Of each rack's uplink, both ways, before it is slowed.
    #[serde(rename = "uplink_bits_per_second")]
    pub uplink: Rate,
}

/// A number of racks and of nodes in each, as in `4x4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RackShape {
    pub racks: u32,
    /// Nodes in each.
    pub nodes: u32,
}

impl RackShape {
    /// Of all racks.
    pub fn total(self) -> u32 {
        self.racks.saturating_mul(self.nodes)
    }
}

impl FromStr for RackShape {
    type Err = TestbedError;

    fn from_str(text: &str) -> Result<RackShape, TestbedError> {
        let read = || {
            let (racks, nodes) = text.split_once('x')?;
            let (racks, nodes) = (racks.trim().parse().ok()?, nodes.trim().parse().ok()?);
            (racks > 0 && nodes > 0).then_some(RackShape { racks, nodes })
        };
        read().ok_or_else(|| {
            TestbedError::Spec(format!(
                "'{text}' is not a number of racks and of nodes in each; write 4x4"
            ))
        })
    }
}

impl LinkOptions {
    /// What is asked for that a network of the kernel's own cannot even leave out: without it the
    /// network would be another.
    pub(crate) fn indispensable(&self) -> Option<&'static str> {
        match self {
            LinkOptions { racks: Some(_), .. } => Some("racks"),
            LinkOptions { inside: Some(_), .. } => Some("a network inside nodes"),
            LinkOptions { jitter: Some(_), .. } => Some("jitter"),
            LinkOptions { loss, .. } if *loss != Loss::default() => Some("loss"),
            _ => None,
        }
    }

    pub(crate) fn is_lossy(&self) -> bool {
        self.loss != Loss::default()
    }

    /// Whether every field fits the rest, on so many nodes of so many ranks in all, slowed down.
    pub(crate) fn check(
        &self,
        (nodes_asked, ranks): (u32, u32),
        slow: u32,
    ) -> Result<(), TestbedError> {
        let wrong = |problem: String| Err(TestbedError::Spec(problem));
        if self.latency.times(slow).is_none() {
            return wrong(format!(
                "a latency of {} slowed down {} times is above 10s",
                self.latency, slow
            ));
        }
        if let Some(Jitter { scale, .. }) = self.jitter
            && scale.times(slow).is_none()
        {
            return wrong(format!("a jitter of {scale} slowed down {} times is above 10s", slow));
        }
        if let Some(inside) = self.inside {
            inside.check((nodes_asked, ranks), slow)?;
        }
        let Some(Racks { racks, nodes, uplink }) = self.racks else { return Ok(()) };
        if racks.checked_mul(nodes) != Some(nodes_asked) || racks == 0 {
            return wrong(format!("{racks} racks of {nodes} nodes are not {} nodes", nodes_asked));
        }
        uplink.slowed(slow).map(drop)
    }
}

impl InsideNetwork {
    fn check(self, (nodes, ranks): (u32, u32), slow: u32) -> Result<(), TestbedError> {
        self.rate.slowed(slow)?;
        if self.latency.times(slow).is_none() {
            let problem =
                format!("a latency of {} slowed down {} times is above 10s", self.latency, slow);
            return Err(TestbedError::Spec(problem));
        }
        let ports = nodes + ranks;
        if ports > MAX_PORTS {
            let problem = format!(
                "{} nodes of {} ranks with a network inside are {ports} ports; a testbed has at most \
                 {MAX_PORTS}, one for each node and rank",
                nodes, ranks
            );
            return Err(TestbedError::Spec(problem));
        }
        Ok(())
    }
}

/// The nodes' and the ranks' in a network with insides: the switch has 250, one of them the head's.
const MAX_PORTS: u32 = 249;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Spec;

    fn spec(slow: u32) -> Spec {
        let spec = Spec::new("a", 8, "1gbit".parse().unwrap()).unwrap();
        spec.slowed_by(slow).unwrap()
    }

    #[test]
    fn shares_and_shapes_are_read() {
        for (text, per_billion) in [("0.001", 1_000_000), ("0.1%", 1_000_000), ("0", 0)] {
            assert_eq!(text.parse::<Loss>().unwrap(), Loss { per_billion }, "{text}");
        }
        assert_eq!("0.001".parse::<Loss>().unwrap().to_string(), "0.1%");
        for text in ["", "1", "60%", "-1%", "few", "NaN"] {
            assert!(
                text.parse::<Loss>()
                    .unwrap_err()
                    .to_string()
                    .contains("from 0% to 50%, as 5% or 0.05"),
                "{text}"
            );
        }
        let shape: RackShape = "4x3".parse().unwrap();
        assert_eq!((shape.racks, shape.nodes, shape.total()), (4, 3, 12));
        for text in ["", "4", "4x", "0x4", "4x0", "4x4x4", "x"] {
            assert!(text.parse::<RackShape>().unwrap_err().to_string().contains("4x4"), "{text}");
        }
    }

    #[test]
    fn links_that_cannot_be_are_refused() {
        let uplink = "20mbit".parse().unwrap();
        let racks = |racks, nodes| LinkOptions {
            racks: Some(Racks { racks, nodes, uplink }),
            ..LinkOptions::default()
        };
        let late = LinkOptions { latency: "1s".parse().unwrap(), ..LinkOptions::default() };
        for (slow, links, part) in [
            (1, racks(2, 5), "2 racks of 5 nodes are not 8 nodes"),
            (100, racks(2, 4), "20mbit slowed down 100 times"),
            (100, late, "a latency of 1s slowed down 100 times is above 10s"),
        ] {
            let error = spec(slow).with_links(links).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
