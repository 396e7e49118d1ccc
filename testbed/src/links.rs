//! What only a switch of our own can do: latency, jitter, loss, racks.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use switch::{Delay, Jitter, PortWires, Uplinks, Wiring};

use crate::{Rate, Spec, TestbedError, spec::HEAD};

/// How the links are beside their rate.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Links {
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
}

/// A share of frames: `0.001` or `0.1%`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Loss {
    per_billion: u32,
}

impl FromStr for Loss {
    type Err = TestbedError;

    fn from_str(text: &str) -> Result<Loss, TestbedError> {
        let (number, scale) = match text.trim().strip_suffix('%') {
            Some(percent) => (percent, 0.01),
            None => (text, 1.0),
        };
        let share = number.trim().parse::<f64>().map(|number| number * scale).ok();
        match share.filter(|share| (0.0..=0.5).contains(share)) {
            Some(share) => Ok(Loss { per_billion: (share * 1e9).round() as u32 }),
            None => Err(TestbedError::Spec(format!(
                "'{text}' is not a share of frames; write 0.001 or 0.1%, at most a half"
            ))),
        }
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
    /// How many.
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
    /// Racks.
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
                "'{text}' is no number of racks and nodes in each; write 4x4"
            ))
        })
    }
}

impl Links {
    /// What is asked for that a network of the kernel's own cannot even leave out: without it the
    /// network would be another.
    pub(crate) fn indispensable(&self) -> Option<&'static str> {
        match self {
            Links { racks: Some(_), .. } => Some("racks"),
            Links { jitter: Some(_), .. } => Some("jitter"),
            Links { loss, .. } if *loss != Loss::default() => Some("loss"),
            _ => None,
        }
    }

    pub(crate) fn is_lossy(&self) -> bool {
        self.loss != Loss::default()
    }

    /// Whether every field fits the rest.
    pub(crate) fn check(&self, spec: &Spec) -> Result<(), TestbedError> {
        let wrong = |problem: String| Err(TestbedError::Spec(problem));
        if self.latency.times(spec.slow).is_none() {
            return wrong(format!(
                "a latency of {} {} times is above 10s",
                self.latency, spec.slow
            ));
        }
        if let Some(Jitter { scale, .. }) = self.jitter
            && scale.times(spec.slow).is_none()
        {
            return wrong(format!("a jitter of {scale} {} times is above 10s", spec.slow));
        }
        let Some(Racks { racks, nodes, uplink }) = self.racks else { return Ok(()) };
        if racks.checked_mul(nodes) != Some(spec.nodes) || racks == 0 {
            return wrong(format!("{racks} racks of {nodes} nodes are not {} nodes", spec.nodes));
        }
        uplink.slowed(spec.slow).map(drop)
    }
}

/// What the switch is to be. The head hangs at all nodes' switch by a link that takes no time.
pub(crate) fn wiring(spec: &Spec, links: &Links) -> Wiring {
    // Checked when the spec was made.
    let slowed = |delay: Delay| delay.times(spec.slow).unwrap_or(delay);
    let whole = slowed(links.latency).nanoseconds();
    let half = Delay::from_nanoseconds(whole / 2).unwrap_or_default();
    let node = |node: u32| PortWires {
        place: format!("n{node}"),
        out_bits_per_second: spec.outbound(node).bits_per_second(),
        in_bits_per_second: spec.inbound(node).bits_per_second(),
        latency: half,
        rack: links.racks.map(|racks| (node / racks.nodes) as u16),
    };
    let head = PortWires {
        place: HEAD.into(),
        out_bits_per_second: 0,
        in_bits_per_second: 0,
        latency: Delay::default(),
        rack: None,
    };
    Wiring {
        ports: (0..spec.nodes).map(node).chain([head]).collect(),
        uplinks: links.racks.map(|racks| Uplinks {
            racks: racks.racks as u16,
            bits_per_second: spec.slowed(racks.uplink).bits_per_second(),
            latency: half,
        }),
        jitter: links.jitter.map(|jitter| Jitter { scale: slowed(jitter.scale), ..jitter }),
        lost_per_billion: links.loss.per_billion,
        seed: links.seed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert!(text.parse::<Loss>().unwrap_err().to_string().contains("0.1%"), "{text}");
        }
        let shape: RackShape = "4x3".parse().unwrap();
        assert_eq!((shape.racks, shape.nodes, shape.total()), (4, 3, 12));
        for text in ["", "4", "4x", "0x4", "4x0", "4x4x4", "x"] {
            assert!(text.parse::<RackShape>().unwrap_err().to_string().contains("4x4"), "{text}");
        }
    }

    #[test]
    fn the_wiring_is_slowed_and_halves_the_latency() {
        let uplink = "2gbit".parse().unwrap();
        let links = Links {
            latency: "10us".parse().unwrap(),
            jitter: Some("1us".parse().unwrap()),
            racks: Some(Racks { racks: 2, nodes: 4, uplink }),
            ..Links::default()
        };
        let port = "5.in=500mbit".parse().unwrap();
        let spec = spec(100).with_ports(vec![port]).unwrap().with_links(links.clone()).unwrap();
        let wiring = wiring(&spec, &links);
        assert_eq!(wiring.ports.len(), 9);
        let node = &wiring.ports[5];
        assert_eq!((node.out_bits_per_second, node.in_bits_per_second), (10_000_000, 5_000_000));
        assert_eq!((node.latency.to_string(), node.rack), ("500us".into(), Some(1)));
        let uplinks = wiring.uplinks.unwrap();
        assert_eq!((uplinks.racks, uplinks.bits_per_second), (2, 20_000_000));
        assert_eq!(uplinks.latency.to_string(), "500us");
        assert_eq!(wiring.jitter.unwrap().to_string(), "100us");
        let head = &wiring.ports[8];
        assert_eq!(
            (head.out_bits_per_second, head.latency, head.rack),
            (0, Delay::default(), None)
        );
    }

    #[test]
    fn links_that_cannot_be_are_refused() {
        let uplink = "20mbit".parse().unwrap();
        let racks = |racks, nodes| Links {
            racks: Some(Racks { racks, nodes, uplink }),
            ..Links::default()
        };
        let late = Links { latency: "1s".parse().unwrap(), ..Links::default() };
        for (slow, links, part) in [
            (1, racks(2, 5), "2 racks of 5 nodes are not 8 nodes"),
            (100, racks(2, 4), "20mbit slowed 100 times"),
            (100, late, "a latency of 1s 100 times is above 10s"),
        ] {
            let error = spec(slow).with_links(links).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
