//! Ports whose rate is not the others': the bad cable that a pair map must find.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::{Rate, TestbedError};

/// A direction of a port, as its node sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// What the node receives.
    In,
    /// What the node sends.
    Out,
}

/// The rate of one node's port: `3=50mbit`, or of one direction: `3.in=50mbit`, `3.out=50mbit`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortRate {
    /// The node, from 0.
    pub node: u32,
    /// Without one both directions.
    pub direction: Option<Direction>,
    #[serde(rename = "rate_bits_per_second")]
    pub rate: Rate,
}

impl PortRate {
    pub(crate) fn covers(&self, direction: Direction) -> bool {
        self.direction.is_none_or(|own| own == direction)
    }

    fn overlaps(&self, other: &PortRate) -> bool {
        let meet = match (self.direction, other.direction) {
            (Some(one), Some(other)) => one == other,
            _ => true,
        };
        self.node == other.node && meet
    }
}

impl FromStr for PortRate {
    type Err = TestbedError;

    fn from_str(text: &str) -> Result<PortRate, TestbedError> {
        let wrong = || {
            TestbedError::Spec(format!(
                "'{text}' is not a port's rate; write a node and its rate as 3=50mbit, or one \
                 direction as 3.in=50mbit (what it receives) or 3.out=50mbit (what it sends)"
            ))
        };
        let (port, rate) = text.split_once('=').ok_or_else(wrong)?;
        let (node, direction) = match port.trim().split_once('.') {
            None => (port.trim(), None),
            Some((node, "in")) => (node, Some(Direction::In)),
            Some((node, "out")) => (node, Some(Direction::Out)),
            Some(_) => return Err(wrong()),
        };
        let node = node.parse().map_err(|_| wrong())?;
        Ok(PortRate { node, direction, rate: rate.parse()? })
    }
}

impl fmt::Display for PortRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let direction = match self.direction {
            None => "",
            Some(Direction::In) => ".in",
            Some(Direction::Out) => ".out",
        };
        write!(f, "{}{direction}={}", self.node, self.rate)
    }
}

/// Every port is one of the testbed's and has one rate in each direction.
pub(crate) fn check(ports: &[PortRate], nodes: u32) -> Result<(), TestbedError> {
    for (index, port) in ports.iter().enumerate() {
        if port.node >= nodes {
            let last = nodes.saturating_sub(1);
            let problem = format!(
                "the port {port} belongs to no node; nodes are numbered 0 to \
                                   {last}"
            );
            return Err(TestbedError::Spec(problem));
        }
        if let Some(other) = ports[..index].iter().find(|other| other.overlaps(port)) {
            let problem = format!("the ports {other} and {port} are the same; give one rate");
            return Err(TestbedError::Spec(problem));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Spec;

    fn ports(texts: &[&str]) -> Vec<PortRate> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn ports_are_read_and_written() {
        for text in ["3=50mbit", "0.in=50mbit", "12.out=1gbit"] {
            assert_eq!(text.parse::<PortRate>().unwrap().to_string(), text);
        }
        for text in ["3", "x=50mbit", "3.both=50mbit", "=50mbit", "-1=50mbit", ""] {
            let error = text.parse::<PortRate>().unwrap_err().to_string();
            assert!(error.contains("3.in=50mbit"), "{error}");
        }
        let error = "3=fast".parse::<PortRate>().unwrap_err().to_string();
        assert!(error.contains("'fast' is not a rate"), "{error}");
    }

    #[test]
    fn directions_are_told_apart() {
        let spec = Spec::new("a", 4, "100mbit".parse().unwrap()).unwrap();
        let spec = spec.with_ports(ports(&["3.in=50mbit", "1=10mbit"])).unwrap();
        let rates = |node| [spec.inbound(node), spec.outbound(node)].map(|rate| rate.to_string());
        assert_eq!(rates(0), ["100mbit", "100mbit"]);
        assert_eq!(rates(1), ["10mbit", "10mbit"]);
        assert_eq!(rates(3), ["50mbit", "100mbit"]);
    }

    #[test]
    fn ports_that_cannot_be_are_refused() {
        let spec = Spec::new("a", 4, "100mbit".parse().unwrap()).unwrap();
        for (texts, part) in [
            (&["4=50mbit"][..], "numbered 0 to 3"),
            (&["1=50mbit", "1.in=10mbit"], "the same"),
            (&["1.in=50mbit", "1.in=10mbit"], "the same"),
        ] {
            let error = spec.clone().with_ports(ports(texts)).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        assert!(spec.with_ports(ports(&["1.in=50mbit", "1.out=10mbit"])).is_ok());
    }
}
