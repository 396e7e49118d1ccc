//! A virtual cluster in words.

use records::RankPlacement;
use testbed::{LinkOptions, Loss, Racks, Service, Spec};

/// `8 nodes at 100mbit`, `4 nodes at 1gbit, 10us, slowed down 100 times (10mbit, 1ms)`.
pub fn describe(spec: &Spec) -> String {
    let Spec { nodes, ranks_per_node, placement, .. } = spec;
    let dealt = match placement {
        RankPlacement::Block => "",
        RankPlacement::Cyclic => " in turn",
    };
    match ranks_per_node.is_one() {
        true => format!("{} at {}", records::counted(*nodes, "node"), network(spec)),
        false => {
            let nodes = records::counted(*nodes, "node");
            format!("{nodes} of {ranks_per_node} ranks{dealt} at {}", network(spec))
        }
    }
}

/// `100mbit`, `1gbit, 10us, slowed down 100 times (10mbit, 1ms)`.
pub fn network(spec: &Spec) -> String {
    let Spec { rate, ports, slow, links, .. } = spec;
    let mut text = rate.to_string();
    if let Some(links) = links {
        text += &format!(", {}", links.latency);
    }
    if *slow > 1 {
        text += &format!(", slowed down {slow} times ({})", slowed_values(spec));
    }
    for port in ports {
        text += &format!(", port {port}");
    }
    let Some(LinkOptions { jitter, loss, seed, racks, inside, .. }) = links else { return text };
    if let Some(inside) = inside {
        text += &format!(", inside nodes {} and {}", inside.rate, inside.latency);
    }
    if let Some(Racks { racks, nodes, uplink }) = racks {
        text += &format!(", {racks} racks of {nodes} with uplinks of {uplink}");
    }
    if let Some(jitter) = jitter {
        text += &format!(", jitter {jitter}");
    }
    if *loss != Loss::default() {
        text += &format!(", loss {loss}");
    }
    if *seed != 0 {
        text += &format!(", seed {seed}");
    }
    text
}

/// How well a switch has served: how late frames were, and what went wrong.
pub fn service(service: &Service) -> String {
    let Service { realtime, lost, refused, lateness, .. } = service;
    let microseconds = |nanoseconds: u64| nanoseconds as f64 / 1000.0;
    let mut text = format!(
        "late {:.0} us, 99 %: {:.0} us",
        microseconds(lateness.median),
        microseconds(lateness.p99)
    );
    if lateness.count == 0 {
        text = "no frames yet".into();
    }
    if *lost > 0 {
        text += &format!("; {lost} lost as asked");
    }
    if *refused > 0 {
        text += &format!("; {refused} refused by nodes");
    }
    if !realtime {
        text += "; not real-time";
    }
    text
}

/// What links with no values of their own have in the end.
fn slowed_values(spec: &Spec) -> String {
    let rate = spec.rate.slowed(spec.slow).map(|rate| rate.to_string()).unwrap_or_default();
    let latency = spec.links.as_ref().and_then(|links| links.latency.times(spec.slow));
    match latency {
        Some(latency) => format!("{rate}, {latency}"),
        None => rate,
    }
}

/// Says so if this machine could not make all that was asked for.
pub fn tell_what_is_missing(asked: &Spec, made: &Spec) {
    if asked.links.is_some() && made.links.is_none() {
        say!(
            "colibri: no TAP devices (/dev/net/tun): the virtual cluster limits rates by token \
             buckets and adds no latency"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(rate: &str, slow: u32) -> Spec {
        let spec = Spec::new("a", 16, rate.parse().unwrap()).unwrap();
        spec.slowed_by(slow).unwrap()
    }

    #[test]
    fn what_was_set_and_what_it_comes_to_are_both_told() {
        let links = LinkOptions { latency: "10us".parse().unwrap(), ..LinkOptions::default() };
        assert_eq!(describe(&spec("100mbit", 1)), "16 nodes at 100mbit");
        assert_eq!(
            describe(&spec("1gbit", 100)),
            "16 nodes at 1gbit, slowed down 100 times (10mbit)"
        );
        assert_eq!(
            describe(&spec("1gbit", 100).with_links(links.clone()).unwrap()),
            "16 nodes at 1gbit, 10us, slowed down 100 times (10mbit, 1ms)"
        );
        let racks = Racks { racks: 4, nodes: 4, uplink: "20mbit".parse().unwrap() };
        let links = LinkOptions {
            racks: Some(racks),
            jitter: Some("exponential:1us".parse().unwrap()),
            loss: "0.1%".parse().unwrap(),
            seed: 7,
            inside: Some("100mbit,1us".parse().unwrap()),
            ..links
        };
        let nodes = spec("10mbit", 1).with_ranks_per_node("2".parse().unwrap()).unwrap();
        let nodes = Spec { placement: RankPlacement::Cyclic, ..nodes };
        assert_eq!(
            describe(&nodes.with_links(links).unwrap()),
            "16 nodes of 2 ranks in turn at 10mbit, 10us, inside nodes 100mbit and 1us, 4 racks of 4 with uplinks of 20mbit, jitter exponential:1us, \
             loss 0.1%, seed 7"
        );
    }
}
