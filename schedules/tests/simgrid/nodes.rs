//! Two levels: hosts of several ranks, which share their host's link, against nodes that share a port.

use std::error::Error;

use colibri_schedules::{
    Call, Entry, NodesOfRanks, find, find_node_aware,
    simulator::{Costs, NodeCosts, Options, simulate},
};
use records::{Algorithm, Collective, Layout};

use crate::{
    harness::{ENVELOPE, HOSTS_OF_CORES, LATENCY, SECONDS_PER_BYTE, SimGrid},
    ports::{EAGER, ONE_AT_A_TIME, replay},
};

/// A message inside a host takes its loopback, ten times as fast as the network.
const PLATFORM: &str = "cores.xml";
const LATENCY_INSIDE: f64 = 5e-6;
const FASTER_INSIDE: f64 = 10.0;

/// Nothing but the way: a message takes each port for its bytes.
struct NeutralLevel {
    latency: f64,
    seconds_per_byte: f64,
}

impl Costs for NeutralLevel {
    fn send_overhead(&self, _bytes: u64) -> f64 {
        0.0
    }

    fn receive_overhead(&self, _bytes: u64) -> f64 {
        0.0
    }

    fn gap(&self, bytes: u64, _destinations: u32) -> f64 {
        (bytes + ENVELOPE) as f64 * self.seconds_per_byte
    }

    fn flight(&self, bytes: u64) -> f64 {
        self.latency + self.gap(bytes, 1)
    }

    fn combine(&self, _bytes: u64) -> f64 {
        0.0
    }
}

const BETWEEN: NeutralLevel = NeutralLevel { latency: LATENCY, seconds_per_byte: SECONDS_PER_BYTE };
const INSIDE: NeutralLevel =
    NeutralLevel { latency: LATENCY_INSIDE, seconds_per_byte: SECONDS_PER_BYTE / FASTER_INSIDE };

/// Algorithms that look at no nodes, and compositions by node.
fn methods(collective: Collective) -> Vec<(&'static Entry, Option<Algorithm>)> {
    let plain: &[Algorithm] = match collective {
        Collective::Bcast => &[
            Algorithm::Linear,
            Algorithm::Binomial,
            Algorithm::Binary,
            Algorithm::Pipeline,
            Algorithm::KChain,
            Algorithm::ScatterAllgather,
            Algorithm::ScatterAllgatherRing,
        ],
        Collective::Allreduce => &[
            Algorithm::RecursiveDoubling,
            Algorithm::Ring,
            Algorithm::Rabenseifner,
            Algorithm::Linear,
            Algorithm::Circulant,
        ],
        _ => &[
            Algorithm::Ring,
            Algorithm::Bruck,
            Algorithm::RecursiveDoubling,
            Algorithm::NeighborExchange,
            Algorithm::Circulant,
        ],
    };
    let plain = plain.iter().filter_map(|one| Some((find(collective, *one)?, None)));
    let composed = [
        (Algorithm::TwoLevel, None),
        (Algorithm::TwoLevel, Some(Algorithm::Ring)),
        (Algorithm::MultiLane, None),
        (Algorithm::NodeOrder, Some(Algorithm::Ring)),
        (Algorithm::NodeOrder, Some(Algorithm::Binomial)),
    ];
    let has = |inter: Option<Algorithm>| inter.is_none_or(|one| find(collective, one).is_some());
    let composed = composed.into_iter().filter(move |(_, inter)| has(*inter));
    let composed =
        composed.filter_map(|(scheme, inter)| Some((find_node_aware(collective, scheme)?, inter)));
    plain.chain(composed).collect()
}

/// What a method takes there and here, in seconds.
struct Both {
    name: String,
    theirs: f64,
    ours: f64,
}

fn both(
    simgrid: &SimGrid,
    (collective, layout, bytes): (Collective, Layout, u64),
) -> Result<Vec<Both>, Box<dyn Error>> {
    let labels: Vec<u64> = layout.nodes_of_ranks().into_iter().map(u64::from).collect();
    let nodes = NodesOfRanks::new(&labels);
    let costs = NodeCosts { nodes: &nodes, inside: &INSIDE, between: &BETWEEN, port: &BETWEEN };
    let hosts: String = labels.iter().map(|host| format!("h{host}\n")).collect();
    std::fs::write(simgrid.folder.join(HOSTS_OF_CORES), hosts)?;
    let settings = [&ONE_AT_A_TIME[..], &EAGER].concat();
    let mut all = Vec::new();
    for (entry, inter) in methods(collective) {
        let segment = if entry.segmented { bytes.div_ceil(8) } else { 0 };
        let call = Call { segment, nodes: Some(&nodes), inter, ..Call::new(layout.procs(), bytes) };
        let ours = simulate(entry, &call, &costs, Options::default())?.seconds;
        let on = (PLATFORM, HOSTS_OF_CORES);
        let theirs = replay(simgrid, &settings, on, entry, &call)?;
        let name = format!("{} {}", entry.name, inter.map_or("", Algorithm::name));
        all.push(Both { name, theirs, ours });
    }
    Ok(all)
}

/// Kendall's tau of the two orders: pairs in the same order less pairs in the other, over all; what
/// differs by less than rounding is in no order.
fn tau(all: &[Both]) -> f64 {
    let order = |a: f64, b: f64| if (a / b - 1.0).abs() < 1e-9 { 0.0 } else { (a - b).signum() };
    let (mut sum, mut pairs) = (0.0, 0.0);
    for (index, one) in all.iter().enumerate() {
        for other in &all[index + 1..] {
            let orders = [order(one.theirs, other.theirs), order(one.ours, other.ours)];
            if orders != [0.0, 0.0] {
                pairs += 1.0;
                sum += orders[0] * orders[1];
            }
        }
    }
    sum / pairs
}

/// On 8 hosts of 4, block and dealt in turn, short and long: Kendall's tau over the algorithms is at
/// least 0.9 on average, and nowhere below 0.7: once four methods that take the same time here and there
/// are 3 % slower than the ring there, 1 % faster here.
#[test]
fn both_order_algorithms_on_nodes_alike() -> Result<(), Box<dyn Error>> {
    let Some(simgrid) = SimGrid::build("nodes")? else { return Ok(()) };
    let mut taus = Vec::new();
    for layout in ["8x4", "8x4:cyclic"] {
        for collective in [Collective::Bcast, Collective::Allreduce, Collective::Allgather] {
            let sizes =
                if collective == Collective::Allgather { [16, 4096] } else { [64, 1 << 16] };
            for bytes in sizes {
                let all = both(&simgrid, (collective, layout.parse()?, bytes))?;
                let tau = tau(&all);
                println!("{collective} {layout} {bytes}: tau {tau:.2}");
                for Both { name, theirs, ours } in &all {
                    println!("  {name}: {theirs:.6} {ours:.6} ({:.3})", ours / theirs);
                }
                assert!(tau >= 0.7, "{collective} {layout} {bytes}: {tau}");
                taus.push(tau);
            }
        }
    }
    let mean = taus.iter().sum::<f64>() / taus.len() as f64;
    assert!(mean >= 0.9, "{mean}: {taus:?}");
    Ok(())
}
