//! What the switch of a testbed is told to be.

use switch::{Delay, GroupWires, Jitter, PortWires, Wiring};

use crate::{
    LinkOptions, Rate, Spec,
    spec::{self, HEAD},
};

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
    use crate::Racks;

    fn spec() -> Spec {
        let spec = Spec::new("a", 8, "1gbit".parse().unwrap()).unwrap();
        spec.slowed_by(100).unwrap()
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
        let spec = spec().with_ports(vec![port]).unwrap().with_links(links.clone()).unwrap();
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
        let spec = spec().with_ranks_per_node("2,2,2,2,1,1,1,1".parse().unwrap()).unwrap();
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
}
