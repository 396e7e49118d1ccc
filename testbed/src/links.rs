//! What only a switch of our own can do: latency, jitter, loss, racks.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use switch::{Delay, GroupWires, Jitter, PortWires, Wiring};

use crate::{
    Rate, Spec, TestbedError,
    spec::{self, HEAD},
};

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
    pub inside: Option<Inside>,
}

/// The network inside a node, as in `100mbit,100us`, before it is slowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inside {
    /// Of each rank's port, both ways.
    #[serde(rename = "rate_bits_per_second")]
    pub rate: Rate,
    /// Of the way from one rank to another of its node; half of it is each port's.
    #[serde(rename = "latency_nanoseconds")]
    pub latency: Delay,
}

impl FromStr for Inside {
    type Err = TestbedError;

    fn from_str(text: &str) -> Result<Inside, TestbedError> {
        let (rate, latency) = match text.split_once(',') {
            Some((rate, latency)) => (rate, latency),
            None => (text, "0us"),
        };
        let latency = latency.parse().map_err(TestbedError::Spec)?;
        Ok(Inside { rate: rate.parse()?, latency })
    }
}

impl fmt::Display for Inside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.rate, self.latency)
    }
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
                "'{text}' is not a share of frames; write 0.001 or 0.1%, at most 50%"
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

    /// Whether every field fits the rest.
    pub(crate) fn check(&self, spec: &Spec) -> Result<(), TestbedError> {
        let wrong = |problem: String| Err(TestbedError::Spec(problem));
        if self.latency.times(spec.slow).is_none() {
            return wrong(format!(
                "a latency of {} slowed down {} times is above 10s",
                self.latency, spec.slow
            ));
        }
        if let Some(Jitter { scale, .. }) = self.jitter
            && scale.times(spec.slow).is_none()
        {
            return wrong(format!(
                "a jitter of {scale} slowed down {} times is above 10s",
                spec.slow
            ));
        }
        if let Some(inside) = self.inside {
            inside.check(spec)?;
        }
        let Some(Racks { racks, nodes, uplink }) = self.racks else { return Ok(()) };
        if racks.checked_mul(nodes) != Some(spec.nodes) || racks == 0 {
            return wrong(format!("{racks} racks of {nodes} nodes are not {} nodes", spec.nodes));
        }
        uplink.slowed(spec.slow).map(drop)
    }
}

impl Inside {
    fn check(self, spec: &Spec) -> Result<(), TestbedError> {
        self.rate.slowed(spec.slow)?;
        if self.latency.times(spec.slow).is_none() {
            let problem = format!(
                "a latency of {} slowed down {} times is above 10s",
                self.latency, spec.slow
            );
            return Err(TestbedError::Spec(problem));
        }
        let ports = spec.nodes + spec.ranks();
        if ports > MOST_PORTS {
            let problem = format!(
                "{} nodes of {} ranks with a network inside are {ports} ports; a testbed has at most \
                 {MOST_PORTS}, one for each node and rank",
                spec.nodes,
                spec.ranks()
            );
            return Err(TestbedError::Spec(problem));
        }
        Ok(())
    }
}

/// The nodes' and the ranks' in a network with insides: the switch has 250, one of them the head's.
const MOST_PORTS: u32 = 249;

/// What the switch is to be: the nodes' ports in order, the ranks' if they have any, then the head's.
///
/// The head hangs at all nodes' switch by a link that takes no time. So does a node with a network
/// inside, by which its ranks are started: what the ranks send each other passes their own ports, and
/// from node to node also the wires of their node's group.
pub(crate) fn wiring(spec: &Spec, links: &LinkOptions) -> Wiring {
    let racks = links.racks.map_or(0, |racks| racks.racks);
    let rack_of = |node: u32| links.racks.map(|racks| (node / racks.nodes) as u16);
    let latency = half(links.latency, spec.slow);
    let uplink = |rate: Rate| GroupWires {
        up_bits_per_second: spec.slowed(rate).bits_per_second(),
        down_bits_per_second: spec.slowed(rate).bits_per_second(),
        latency,
        within: None,
    };
    let mut groups: Vec<GroupWires> =
        links.racks.iter().map(|racks| uplink(racks.uplink)).collect();
    groups = groups.into_iter().cycle().take(racks as usize).collect();
    let mut ports = Vec::new();
    for node in 0..spec.nodes {
        let (out, into) = (spec.outbound(node), spec.inbound(node));
        let (out, into) = (out.bits_per_second(), into.bits_per_second());
        let rack = rack_of(node);
        ports.push(match links.inside {
            Some(_) => without_time(spec::node_place(node)),
            None => PortWires {
                place: spec::node_place(node),
                out_bits_per_second: out,
                in_bits_per_second: into,
                latency,
                group: rack,
            },
        });
        if links.inside.is_some() {
            let (up_bits_per_second, down_bits_per_second) = (out, into);
            groups.push(GroupWires {
                up_bits_per_second,
                down_bits_per_second,
                latency,
                within: rack,
            });
        }
    }
    if let Some(inside) = links.inside {
        let rate = spec.slowed(inside.rate).bits_per_second();
        ports.extend(spec.rank_places().map(|(node, local)| PortWires {
            place: spec::rank_place(node, local),
            out_bits_per_second: rate,
            in_bits_per_second: rate,
            latency: half(inside.latency, spec.slow),
            group: Some((racks + node) as u16),
        }));
    }
    ports.push(without_time(HEAD.into()));
    Wiring {
        ports,
        groups,
        // Checked when the spec was made.
        jitter: links.jitter.map(|jitter| Jitter {
            scale: jitter.scale.times(spec.slow).unwrap_or(jitter.scale),
            ..jitter
        }),
        lost_per_billion: links.loss.per_billion,
        seed: links.seed,
    }
}

/// Of either wire, slowed; that it is possible was checked when the spec was made.
fn half(latency: Delay, slow: u32) -> Delay {
    let whole = latency.times(slow).unwrap_or(latency).nanoseconds();
    Delay::from_nanoseconds(whole / 2).unwrap_or_default()
}

fn without_time(place: String) -> PortWires {
    PortWires {
        place,
        out_bits_per_second: 0,
        in_bits_per_second: 0,
        latency: Delay::default(),
        group: None,
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
        let links = LinkOptions {
            latency: "10us".parse().unwrap(),
            jitter: Some("1us".parse().unwrap()),
            racks: Some(Racks { racks: 2, nodes: 4, uplink }),
            ..LinkOptions::default()
        };
        let port = "5.in=500mbit".parse().unwrap();
        let spec = spec(100).with_ports(vec![port]).unwrap().with_links(links.clone()).unwrap();
        let wiring = wiring(&spec, &links);
        assert_eq!(wiring.ports.len(), 9);
        let node = &wiring.ports[5];
        assert_eq!((node.out_bits_per_second, node.in_bits_per_second), (10_000_000, 5_000_000));
        assert_eq!((node.latency.to_string(), node.group), ("500us".into(), Some(1)));
        assert_eq!(wiring.groups.len(), 2);
        let uplink = &wiring.groups[1];
        assert_eq!(
            (uplink.up_bits_per_second, uplink.down_bits_per_second),
            (20_000_000, 20_000_000)
        );
        assert_eq!((uplink.latency.to_string(), uplink.within), ("500us".into(), None));
        assert_eq!(wiring.jitter.unwrap().to_string(), "100us");
        let head = &wiring.ports[8];
        assert_eq!(
            (head.out_bits_per_second, head.latency, head.group),
            (0, Delay::default(), None)
        );
    }

    #[test]
    fn a_node_with_an_inside_is_a_group_of_its_ranks() {
        let inside = Some("10gbit,1us".parse().unwrap());
        let uplink = "2gbit".parse().unwrap();
        let racks = Some(Racks { racks: 2, nodes: 4, uplink });
        let links = LinkOptions {
            latency: "10us".parse().unwrap(),
            racks,
            inside,
            ..LinkOptions::default()
        };
        let port = "1.in=500mbit".parse().unwrap();
        let spec = spec(100).with_ranks_per_node("2,2,2,2,1,1,1,1".parse().unwrap()).unwrap();
        let spec = spec.with_ports(vec![port]).unwrap().with_links(links.clone()).unwrap();
        let wiring = wiring(&spec, &links);
        let places: Vec<&str> = wiring.ports.iter().map(|port| &*port.place).collect();
        assert_eq!((places.len(), places[7], places[8]), (8 + 12 + 1, "n7", "n0r0"));
        assert_eq!((places[11], places[16], places[20]), ("n1r1", "n4r0", "head"));
        let (node, rank) = (&wiring.ports[1], &wiring.ports[11]);
        assert_eq!((node.out_bits_per_second, node.group), (0, None));
        assert_eq!((rank.out_bits_per_second, rank.in_bits_per_second), (100_000_000, 100_000_000));
        assert_eq!((rank.latency.to_string(), rank.group), ("50us".into(), Some(3)));
        let group = &wiring.groups[3];
        assert_eq!((group.up_bits_per_second, group.down_bits_per_second), (10_000_000, 5_000_000));
        assert_eq!((group.latency.to_string(), group.within), ("500us".into(), Some(0)));
        assert_eq!(wiring.groups[9].within, Some(1));
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
