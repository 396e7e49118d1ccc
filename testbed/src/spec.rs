//! What a testbed is made from, and the names and addresses that follow from it.

use std::net::Ipv4Addr;

use records::{Layout, RankPlacement};
use serde::{Deserialize, Serialize};

use crate::{
    LinkOptions, RanksPerNode, Rate, TestbedError,
    port::{self, Direction, PortRate},
};

/// The network of every testbed: each has its own namespaces, so they do not meet.
pub const NETWORK: &str = "10.77.0.0/24";

const HEAD_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 254);
const MAX_NODES: u32 = 64;
const MAX_SLOW: u32 = 100_000;
const MAX_NAME: usize = 15;

/// The first part of every namespace's name.
pub(crate) const PREFIX: &str = "colibri-";

/// The name of a program's or node's place: `head`, `n0`, `n1`, ...
pub(crate) use switch::HEAD;

/// What a testbed is made from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// 1 to 15 of a-z, 0-9 and `-`, beginning and ending with a letter or digit.
    pub name: String,
    /// 1 to 64.
    pub nodes: u32,
    /// Of every port that `ports` does not name.
    #[serde(rename = "rate_bits_per_second")]
    pub rate: Rate,
    /// Ports with rates of their own.
    #[serde(default)]
    pub ports: Vec<PortRate>,
    /// How many ranks a node holds, which share its port; 1 to 64.
    pub ranks_per_node: RanksPerNode,
    /// Which ranks are on a node.
    #[serde(default)]
    pub placement: RankPlacement,
    /// How many times slower than told the network is: rates by this factor lower, latencies higher.
    #[serde(default = "not_slowed")]
    pub slow: u32,
    /// How links are beside their rate; with them frames pass a switch of our own, without them the
    /// kernel's bridge and token buckets.
    #[serde(default)]
    pub links: Option<LinkOptions>,
}

fn not_slowed() -> u32 {
    1
}

impl Spec {
    /// One rank per node.
    ///
    /// # Errors
    /// As [`Spec::check`].
    pub fn new(name: &str, nodes: u32, rate: Rate) -> Result<Spec, TestbedError> {
        let ports = Vec::new();
        let name = name.into();
        let (ranks_per_node, placement) = (RanksPerNode::Same(1), RankPlacement::Block);
        let spec =
            Spec { name, nodes, rate, ports, ranks_per_node, placement, slow: 1, links: None };
        spec.check()?;
        Ok(spec)
    }

    /// This cluster with several ranks on each node.
    ///
    /// # Errors
    /// As [`Spec::check`].
    pub fn with_ranks_per_node(
        mut self,
        ranks_per_node: RanksPerNode,
    ) -> Result<Spec, TestbedError> {
        self.ranks_per_node = ranks_per_node;
        self.check()?;
        Ok(self)
    }

    /// This cluster with ports that have rates of their own.
    ///
    /// # Errors
    /// As [`Spec::check`].
    pub fn with_ports(mut self, ports: Vec<PortRate>) -> Result<Spec, TestbedError> {
        self.ports = ports;
        self.check()?;
        Ok(self)
    }

    /// This cluster, slowed down so many times.
    ///
    /// # Errors
    /// As [`Spec::check`].
    pub fn slowed_by(mut self, factor: u32) -> Result<Spec, TestbedError> {
        self.slow = factor;
        self.check()?;
        Ok(self)
    }

    /// This cluster with links that have more than a rate.
    ///
    /// # Errors
    /// As [`Spec::check`].
    pub fn with_links(mut self, links: LinkOptions) -> Result<Spec, TestbedError> {
        self.links = Some(links);
        self.check()?;
        Ok(self)
    }

    /// This cluster by the kernel's own means, which are without latency.
    pub(crate) fn without_links(&self, hindrance: &str) -> Result<Spec, TestbedError> {
        match self.links.as_ref().and_then(LinkOptions::indispensable) {
            Some(what) => {
                Err(TestbedError::Spec(format!("{what} is not possible here: {hindrance}")))
            }
            None => Ok(Spec { links: None, ..self.clone() }),
        }
    }

    /// What is left of a rate; that it is possible was checked when this was made.
    pub(crate) fn slowed(&self, rate: Rate) -> Rate {
        rate.slowed(self.slow).unwrap_or(rate)
    }

    /// The rate at which a node receives, slowed as it is.
    pub fn inbound(&self, node: u32) -> Rate {
        self.rate_of(node, Direction::In)
    }

    /// The rate at which a node sends, slowed as it is.
    pub fn outbound(&self, node: u32) -> Rate {
        self.rate_of(node, Direction::Out)
    }

    fn rate_of(&self, node: u32, direction: Direction) -> Rate {
        let own = self.ports.iter().find(|port| port.node == node && port.covers(direction));
        self.slowed(own.map_or(self.rate, |port| port.rate))
    }

    /// Whether every field is in its range.
    ///
    /// # Errors
    /// Says which is not and what would be right.
    pub fn check(&self) -> Result<(), TestbedError> {
        check_name(&self.name)?;
        if !(1..=MAX_SLOW).contains(&self.slow) {
            let problem = format!("slowed down {} times; 1 to {MAX_SLOW} is possible", self.slow);
            return Err(TestbedError::Spec(problem));
        }
        self.rate.slowed(self.slow)?;
        in_range("nodes", self.nodes, MAX_NODES)?;
        self.ranks_per_node.check(self.nodes)?;
        port::check(&self.ports, self.nodes)?;
        for port in &self.ports {
            port.rate.slowed(self.slow)?;
        }
        match &self.links {
            Some(links) => links.check((self.nodes, self.ranks()), self.slow),
            None => Ok(()),
        }
    }

    /// How many ranks all nodes hold.
    pub fn ranks(&self) -> u32 {
        (0..self.nodes).map(|node| self.ranks_per_node.on(node)).sum()
    }

    /// The ranks and their nodes.
    ///
    /// # Errors
    /// A node without ranks, which [`check`](Self::check) refuses.
    pub fn layout(&self) -> Result<Layout, TestbedError> {
        let counts: Vec<u32> = (0..self.nodes).map(|node| self.ranks_per_node.on(node)).collect();
        Layout::from_counts(&counts, self.placement).map_err(TestbedError::Spec)
    }

    /// Whether the ranks of a node have a network inside it.
    pub fn has_inside(&self) -> bool {
        self.links.as_ref().is_some_and(|links| links.inside.is_some())
    }

    /// All places, the head first, then the nodes', then those that ranks have of their own.
    pub(crate) fn places(&self) -> impl Iterator<Item = String> + use<'_> {
        let nodes = (0..self.nodes).map(node_place);
        let ranks = self.rank_places().filter(|_| self.has_inside());
        let ranks = ranks.map(|(node, local)| rank_place(node, local));
        std::iter::once(HEAD.into()).chain(nodes).chain(ranks)
    }

    /// The node, and the number on it, of every rank that the nodes hold.
    pub(crate) fn rank_places(&self) -> impl Iterator<Item = (u32, u32)> + use<'_> {
        let of = |node| (0..self.ranks_per_node.on(node)).map(move |local| (node, local));
        (0..self.nodes).flat_map(of)
    }

    /// What a node's `hostname` says, and Open MPI's name for it.
    pub(crate) fn host(&self, node: u32) -> String {
        host(&self.name, &node_place(node))
    }
}

/// The place of a node.
pub(crate) fn node_place(node: u32) -> String {
    format!("n{node}")
}

/// The place of a rank, by its number on its node, where ranks have places of their own.
pub(crate) fn rank_place(node: u32, local: u32) -> String {
    format!("n{node}r{local}")
}

fn in_range(what: &str, value: u32, most: u32) -> Result<(), TestbedError> {
    match value {
        1.. if value <= most => Ok(()),
        _ => Err(TestbedError::Spec(format!("{value} {what}; a testbed has 1 to {most}"))),
    }
}

/// Names become part of namespaces, host names, paths and scripts.
pub(crate) fn check_name(name: &str) -> Result<(), TestbedError> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let good = (1..=MAX_NAME).contains(&name.len())
        && name.chars().all(allowed)
        && !name.starts_with('-')
        && !name.ends_with('-');
    match good {
        true => Ok(()),
        false => Err(TestbedError::Spec(format!(
            "'{name}' is not a testbed's name; use 1 to {MAX_NAME} of a-z, 0-9 and '-' between them"
        ))),
    }
}

pub(crate) fn host(name: &str, place: &str) -> String {
    format!("{name}-{place}")
}

pub(crate) fn namespace(name: &str, place: &str) -> String {
    format!("{PREFIX}{name}-{place}")
}

/// The testbed and the place of a namespace's name, if it is one of ours. Unambiguous, since a place
/// holds no `-`: a testbed `a` does not claim the namespaces of a testbed `a-n0`.
pub(crate) fn of_namespace(namespace: &str) -> Option<(&str, &str)> {
    let (name, place) = namespace.strip_prefix(PREFIX)?.rsplit_once('-')?;
    let is_number =
        |text: &str| !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
    let is_known = place == HEAD
        || place.strip_prefix('n').is_some_and(|rest| match rest.split_once('r') {
            Some((node, rank)) => is_number(node) && is_number(rank),
            None => is_number(rest),
        });
    (check_name(name).is_ok() && is_known).then_some((name, place))
}

/// Whether it is a node's own, neither the head nor a rank's.
pub(crate) fn is_node(place: &str) -> bool {
    place != HEAD && !place.contains('r')
}

pub(crate) fn head_address() -> String {
    HEAD_ADDRESS.to_string()
}

/// Of a node, or of another port of the switch but the head's.
pub(crate) fn port_address(port: u32) -> String {
    format!("10.77.0.{}", port + 1)
}

/// How many bits of an address are the network's.
pub(crate) const PREFIX_BITS: u32 = 24;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn specs_that_cannot_be_made_are_refused() {
        let rate = Rate::new(100_000_000).unwrap();
        for name in ["a", "a-b", "0", "abcdefghijklmno"] {
            assert!(Spec::new(name, 1, rate).is_ok(), "{name}");
        }
        for name in ["", "A", "a b", "a/b", "-a", "a-", "a.b", "ä", "abcdefghijklmnop", "$(x)"] {
            let error = Spec::new(name, 1, rate).unwrap_err().to_string();
            assert!(error.contains("1 to 15 of a-z"), "{error}");
        }
        for nodes in [0, 65] {
            let error = Spec::new("a", nodes, rate).unwrap_err().to_string();
            assert!(error.contains(&nodes.to_string()) && error.contains("1 to 64"), "{error}");
        }
        assert!(
            Spec::new("a", 2, rate).unwrap().with_ranks_per_node(RanksPerNode::Same(0)).is_err()
        );
    }

    #[test]
    fn what_is_slowed_has_to_be_possible_in_the_end() {
        let spec = |rate: &str, slow| Spec {
            rate: rate.parse().unwrap(),
            slow,
            ..Spec::new("a", 4, Rate::new(100_000_000).unwrap()).unwrap()
        };
        let slowed = spec("100gbit", 1000);
        assert!(slowed.check().is_ok());
        assert_eq!(slowed.inbound(0).to_string(), "100mbit");
        for (spec, part) in [
            (spec("100gbit", 1), "a rate of 100gbit is not within 1mbit and 10gbit"),
            (spec("100mbit", 1000), "100mbit slowed down 1000 times is not within"),
            (spec("100mbit", 0), "slowed down 0 times"),
        ] {
            let error = spec.check().unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        let port = "1=2mbit".parse().unwrap();
        let error = spec("100mbit", 10).with_ports(vec![port]).unwrap_err().to_string();
        assert!(error.contains("2mbit slowed down 10 times"), "{error}");
    }

    #[test]
    fn a_namespace_belongs_to_one_testbed() {
        assert_eq!(of_namespace("colibri-a-n0"), Some(("a", "n0")));
        assert_eq!(of_namespace("colibri-a-n0-head"), Some(("a-n0", "head")));
        assert_eq!(of_namespace("colibri-a-n12r3"), Some(("a", "n12r3")));
        for other in [
            "colibri-a",
            "colibri--n0",
            "colibri-a-n",
            "colibri-a-nr",
            "colibri-a-n1r",
            "colibri-a-x",
            "a-n0",
            "colibri-n0",
        ] {
            assert_eq!(of_namespace(other), None, "{other}");
        }
    }

    proptest! {
        #[test]
        fn names_lead_back(name in "[a-z0-9]([a-z0-9-]{0,13}[a-z0-9])?", node in 0_u32..64) {
            let place = format!("n{node}");
            let namespace = namespace(&name, &place);
            prop_assert_eq!(of_namespace(&namespace), Some((name.as_str(), place.as_str())));
        }
    }
}
