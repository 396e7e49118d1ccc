use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::{Delay, GroupWires, PortWires};

const TEN_MEGABIT: u64 = 10_000_000;
/// A full frame at 10 Mbit/s.
const FULL: Nanoseconds = 1_211_200;

fn delay(text: &str) -> Delay {
    text.parse().unwrap()
}

fn group(bits_per_second: u64, within: Option<u16>) -> GroupWires {
    let rate = bits_per_second;
    let latency = delay("500us");
    GroupWires { up_bits_per_second: rate, down_bits_per_second: rate, latency, within }
}

/// Nodes with the same rate and latency of either wire, in racks of as many.
fn wiring(nodes: u16, per_rack: Option<u16>, uplink: u64) -> Wiring {
    let port = |node: u16| PortWires {
        place: format!("n{node}"),
        out_bits_per_second: TEN_MEGABIT,
        in_bits_per_second: TEN_MEGABIT,
        latency: delay("500us"),
        group: per_rack.map(|size| node / size),
    };
    Wiring {
        ports: (0..nodes).map(port).collect(),
        groups: per_rack
            .map_or(Vec::new(), |size| vec![group(uplink, None); (nodes.div_ceil(size)).into()]),
        jitter: None,
        lost_per_billion: 0,
        seed: 0,
    }
}

/// All that is due by then, as a switch sees it that looks only when something may be due; nothing is
/// overlooked until the next look.
fn looked_at<T>(fabric: &mut Fabric<T>, until: Nanoseconds) -> Vec<Delivery<T>> {
    let mut frames = Vec::new();
    while let Some(look) = fabric.nothing_due_before().filter(|look| *look <= until) {
        let due = std::iter::from_fn(|| fabric.until(look));
        frames.extend(due.inspect(|frame| assert_eq!(frame.due, look)));
    }
    frames
}

/// All that is due, as a switch that is never late sees it.
fn all<T>(fabric: &mut Fabric<T>) -> Vec<Delivery<T>> {
    std::iter::from_fn(|| fabric.until(Nanoseconds::MAX)).collect()
}

#[test]
fn a_frame_is_stored_and_forwarded_by_each_wire() {
    let mut fabric = Fabric::new(&wiring(2, None, 0));
    fabric.send(1_000, (0, 1), 1514, ());
    assert_eq!(fabric.held(0), 1514);
    let due: Vec<_> = all(&mut fabric).iter().map(|frame| frame.due).collect();
    assert_eq!(due, [1_000 + 2 * FULL + 1_000_000]);
    assert_eq!((fabric.held(0), fabric.next()), (0, None));
}

#[test]
fn a_lone_frame_is_looked_at_twice_before_it_is_due() {
    let mut fabric = Fabric::new(&wiring(2, None, 0));
    assert_eq!(fabric.nothing_due_before(), None, "nothing is under way");
    fabric.send(0, (0, 1), 1514, ());
    let mut looks = Vec::new();
    while let Some(time) = fabric.nothing_due_before() {
        looks.push(time);
        if fabric.until(time).is_some() {
            break;
        }
    }
    // By its latency alone it would come without the second wire's time.
    assert_eq!(looks, [FULL + 1_000_000, 2 * FULL + 1_000_000]);
    assert_eq!(fabric.nothing_due_before(), None);
}

#[test]
fn frames_follow_each_other_at_the_rate_both_ways_at_once() {
    let mut fabric = Fabric::new(&wiring(2, None, 0));
    for _ in 0..1000 {
        fabric.send(0, (0, 1), 1514, ());
        fabric.send(0, (1, 0), 1514, ());
    }
    let mut due: BTreeMap<PortIndex, Vec<Nanoseconds>> = BTreeMap::new();
    for frame in all(&mut fabric) {
        due.entry(frame.source).or_default().push(frame.due);
    }
    for times in due.values() {
        let wanted: Vec<_> = (0..1000).map(|n| (n + 2) * FULL + 1_000_000).collect();
        assert_eq!(*times, wanted);
    }
}

/// A switch that looks only every 7 ms delivers late, but no frame is due later for it.
#[test]
fn being_late_delays_nothing_else() {
    let mut fabric = Fabric::new(&wiring(2, None, 0));
    let (mut due, mut sent, mut now) = (Vec::new(), 0, 0);
    while due.len() < 1000 {
        while let Some(frame) = fabric.until(now) {
            due.push(frame.due);
        }
        // The sender has 32 frames in the network at most, as its window lets it.
        while sent < 1000 && fabric.held(0) < 32 * 1514 {
            fabric.send(now, (0, 1), 1514, ());
            sent += 1;
        }
        now += 7_000_000;
    }
    let wanted: Vec<_> = (0..1000).map(|n| (n + 2) * FULL + 1_000_000).collect();
    assert_eq!(due, wanted);
}

#[test]
fn fifteen_senders_to_one_are_served_evenly_and_nothing_is_lost() {
    let mut fabric = Fabric::new(&wiring(16, None, 0));
    for source in 1..16 {
        for _ in 0..100 {
            fabric.send(0, (source, 0), 1514, ());
        }
    }
    let frames = all(&mut fabric);
    assert_eq!((frames.len(), fabric.lost()), (1500, 0));
    let mut served = [0_i32; 16];
    for frame in &frames {
        served[usize::from(frame.source)] += 1;
        let (least, most) = (served[1..].iter().min().unwrap(), served[1..].iter().max().unwrap());
        assert!(most - least <= 1, "{served:?}");
    }
    assert_eq!(frames.last().unwrap().due, 1501 * FULL + 1_000_000);
}

/// The head's wires take no time.
#[test]
fn what_takes_no_time_is_due_at_once() {
    let mut wiring = wiring(2, None, 0);
    for port in &mut wiring.ports {
        (port.out_bits_per_second, port.in_bits_per_second) = (0, 0);
        port.latency = Delay::default();
    }
    let mut fabric = Fabric::new(&wiring);
    for number in 0..3 {
        fabric.send(7, (0, 1), 1514, number);
    }
    let frames = all(&mut fabric);
    assert!(frames.iter().all(|frame| frame.due == 7));
    assert_eq!(frames.iter().map(|frame| frame.content).collect::<Vec<_>>(), [0, 1, 2]);
}

#[test]
fn shares_are_of_bytes_and_a_small_message_passes_a_queue() {
    let mut fabric = Fabric::new(&wiring(3, None, 0));
    for _ in 0..100 {
        fabric.send(0, (0, 2), 1514, ());
        fabric.send(0, (1, 2), 757, ());
    }
    let frames = all(&mut fabric);
    let bytes = |source| -> u32 {
        frames[..90].iter().filter(|f| f.source == source).map(|f| f.bytes).sum()
    };
    let (one, other) = (f64::from(bytes(0)), f64::from(bytes(1)));
    assert!((one / other - 1.0).abs() < 0.06, "{one} and {other}");

    let mut fabric = Fabric::new(&wiring(3, None, 0));
    for _ in 0..100 {
        fabric.send(0, (0, 2), 1514, ());
    }
    fabric.send(0, (0, 1), 80, ());
    let small = all(&mut fabric).into_iter().find(|frame| frame.destination == 1).unwrap();
    assert!(small.due < 3 * FULL + 1_000_000, "{small:?}");
}

#[test]
fn an_uplink_is_shared_and_crossed_only_between_racks() {
    // Two racks of four; four flows of 10 Mbit/s through an uplink of 20.
    let mut fabric = Fabric::new(&wiring(8, Some(4), 2 * TEN_MEGABIT));
    for _ in 0..1000 {
        for source in 0..4 {
            fabric.send(0, (source, source + 4), 1514, ());
        }
    }
    fabric.send(0, (5, 6), 1514, ());
    let frames = all(&mut fabric);
    let inside = frames.iter().find(|frame| frame.source == 5).unwrap();
    assert_eq!(inside.due, 2 * FULL + 1_000_000);
    for source in 0..4 {
        let own: Vec<_> = frames.iter().filter(|frame| frame.source == source).collect();
        let taken = (own[999].due - own[0].due) as f64 / 999.0;
        assert!((taken / (2.0 * FULL as f64) - 1.0).abs() < 0.01, "{taken}");
    }
    let first = frames.iter().map(|frame| frame.due).filter(|due| *due != inside.due).min();
    assert_eq!(first, Some(2 * FULL + FULL + 2_000_000), "four wires of 500 us, two at 20 Mbit/s");
}

#[test]
fn jitter_is_of_its_distribution_and_repeats() {
    let mean = |text: &str, seed| {
        let mut wiring = wiring(2, None, 0);
        (wiring.jitter, wiring.seed) = (Some(text.parse().unwrap()), seed);
        let mut fabric = Fabric::new(&wiring);
        let mut late = Vec::new();
        for frame in 0..10_000_u64 {
            let now = frame * 100_000_000;
            fabric.send(now, (0, 1), 1514, ());
            let due = all(&mut fabric)[0].due;
            late.push(due - now - 2 * FULL - 1_000_000);
        }
        (late.iter().sum::<u64>() as f64 / 10_000.0, late)
    };
    let (uniform, late) = mean("100us", 1);
    assert!((uniform / 50_000.0 - 1.0).abs() < 0.03, "{uniform}");
    assert!(late.iter().all(|late| *late <= 100_000));
    assert_eq!(late, mean("100us", 1).1);
    assert_ne!(late, mean("100us", 2).1);
    let (exponential, _) = mean("exponential:100us", 1);
    assert!((exponential / 100_000.0 - 1.0).abs() < 0.04, "{exponential}");
}

#[test]
fn the_share_that_is_asked_for_is_lost() {
    let mut wiring = wiring(2, None, 0);
    wiring.lost_per_billion = 100_000_000;
    let mut fabric = Fabric::new(&wiring);
    for frame in 0..10_000 {
        fabric.send(frame, (0, 1), 1514, ());
    }
    let delivered = all(&mut fabric).len() as u64;
    assert_eq!(delivered + fabric.lost(), 10_000);
    assert!((900..1100).contains(&fabric.lost()), "{}", fabric.lost());
    assert_eq!(fabric.held(0), 0);
}

/// What is sent: a node, another, bytes, and the time since what was sent before.
fn traffic() -> impl Strategy<Value = Vec<(u16, u16, u32, u64)>> {
    let one = (0..6_u16, 0..6_u16, 60..1514_u32, prop_oneof![Just(0), 0..5_000_000_u64]);
    prop::collection::vec(one, 1..200)
}

proptest! {
    /// Whatever is sent: nothing is lost, no pair's frames change places, no wire carries more than its
    /// rate.
    #[test]
    fn every_frame_comes_in_order_and_on_time(
        traffic in traffic(),
        jitter in prop_oneof![Just(None), (0..3_000_000_u64).prop_map(Some)],
    ) {
        let mut wiring = wiring(6, Some(2), 15_000_000);
        wiring.jitter = jitter.map(|scale| Jitter {
            distribution: JitterDistribution::Exponential,
            scale: Delay::from_nanoseconds(scale).unwrap(),
        });
        let mut fabric = Fabric::new(&wiring);
        let (mut frames, mut now) = (Vec::new(), 0);
        for (number, (source, destination, bytes, pause)) in traffic.iter().enumerate() {
            now += pause;
            frames.extend(looked_at(&mut fabric, now));
            frames.extend(std::iter::from_fn(|| fabric.until(now)));
            fabric.send(now, (*source, *destination), *bytes, number);
        }
        frames.extend(looked_at(&mut fabric, Nanoseconds::MAX));
        prop_assert_eq!(frames.len(), traffic.len());
        prop_assert!((0..6).all(|port| fabric.held(port) == 0));
        let mut last: BTreeMap<PortPair, (usize, Nanoseconds)> = BTreeMap::new();
        let mut into: BTreeMap<PortIndex, Nanoseconds> = BTreeMap::new();
        for frame in &frames {
            let pair = (frame.source, frame.destination);
            if let Some((number, due)) = last.insert(pair, (frame.content, frame.due)) {
                prop_assert!(number < frame.content && due <= frame.due);
            }
            let time = u64::from(frame.bytes) * 800;
            prop_assert!(frame.due >= frame.came + 2 * time + 1_000_000);
            if let Some(before) = into.insert(frame.destination, frame.due) {
                prop_assert!(frame.due >= before + time, "two at once into {}", frame.destination);
            }
        }
    }
}

/// Two racks of two nodes of two ranks; the inside of a node takes no part in what crosses racks.
#[test]
fn a_frame_climbs_only_as_far_as_it_must() {
    let inside = PortWires {
        place: String::new(),
        out_bits_per_second: 10 * TEN_MEGABIT,
        in_bits_per_second: 10 * TEN_MEGABIT,
        latency: delay("50us"),
        group: None,
    };
    let racks = [None; 2].map(|within| group(TEN_MEGABIT / 2, within));
    let nodes = [0, 0, 1, 1].map(|rack| group(TEN_MEGABIT, Some(rack)));
    let ports =
        [2, 2, 3, 3, 4, 4, 5, 5].map(|group| PortWires { group: Some(group), ..inside.clone() });
    let wiring = Wiring {
        ports: ports.into_iter().chain([inside]).collect(),
        groups: racks.into_iter().chain(nodes).collect(),
        ..wiring(1, None, 0)
    };
    let fast = FULL / 10 + 50_000;
    let (node, rack) = (FULL + 500_000, 2 * FULL + 500_000);
    let (mut fabric, mut now) = (Fabric::new(&wiring), 0);
    let mut time = |source, destination| {
        fabric.send(now, (source, destination), 1514, ());
        let begin = now;
        now = all(&mut fabric).pop().unwrap().due;
        now - begin
    };
    assert_eq!(time(0, 1), 2 * fast);
    assert_eq!(time(1, 2), 2 * fast + 2 * node);
    assert_eq!(time(3, 4), 2 * fast + 2 * node + 2 * rack);
    assert_eq!(time(7, 0), 2 * fast + 2 * node + 2 * rack);
    // What is in no group, as the head, is outside of all of them.
    assert_eq!(time(8, 0), 2 * fast);
}
