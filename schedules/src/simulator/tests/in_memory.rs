//! Ranks that share memory: cases computed by hand, and bounds that hold for every algorithm.

use super::*;
use crate::NodesOfRanks;

/// A message takes 10 seconds and one for every 10 bytes; up to 100 bytes it is copied in and out one after the
/// other, beyond at the same time. With all of `ranks` busy everything takes `factor` times as long.
#[derive(Debug, Clone, Copy)]
struct RoundMemory {
    ranks: f64,
    factor: f64,
    /// Consecutive ranks that share a cache.
    near: u32,
    /// Whether flags are known: one is seen after 3 seconds, each further one takes half a second.
    has_flags: bool,
}

const ALONE: RoundMemory = RoundMemory { ranks: 8.0, factor: 1.0, near: 1, has_flags: false };

impl MemoryCosts for RoundMemory {
    fn trip(&self, bytes: u64) -> f64 {
        10.0 + bytes as f64 / 10.0
    }

    fn send(&self, bytes: u64) -> f64 {
        let copy = bytes as f64 / 10.0;
        if bytes > 100 { 10.0 + copy } else { 2.0 + copy / 2.0 }
    }

    fn receive(&self, bytes: u64) -> f64 {
        self.send(bytes)
    }

    fn slowdown(&self, _bytes: u64, busy: f64) -> f64 {
        let part = ((busy - 2.0) / (self.ranks - 2.0)).clamp(0.0, 1.0);
        1.0 + (self.factor - 1.0) * part
    }

    fn is_near(&self, from: u32, to: u32) -> bool {
        from / self.near == to / self.near
    }

    fn copy(&self, bytes: u64, busy: f64) -> f64 {
        bytes as f64 / 20.0 * self.slowdown(bytes, busy)
    }

    fn combine(&self, bytes: u64, busy: f64) -> f64 {
        self.copy(bytes, busy)
    }

    fn flag(&self) -> Option<[f64; 2]> {
        self.has_flags.then_some([3.0, 0.5])
    }

    /// Twice as long as copying, and 4 seconds to begin.
    fn read(&self, bytes: u64, busy: f64) -> f64 {
        4.0 + 2.0 * self.copy(bytes, busy)
    }

    fn read_start(&self, _busy: f64) -> f64 {
        4.0
    }

    fn combine_at_hand(&self, bytes: u64) -> f64 {
        bytes as f64 / 4.0
    }
}

fn outcome(
    (collective, algorithm): (Collective, Algorithm),
    call: &Call<'_>,
    costs: &RoundMemory,
) -> Outcome {
    let entry = find(collective, algorithm).unwrap();
    simulate_in_memory(entry, call, (costs, &ROUND), 1, |_| {}).unwrap()
}

fn close(found: f64, wanted: f64) {
    assert!((found - wanted).abs() <= 1e-6 * wanted, "{found}, expected {wanted}");
}

#[test]
fn a_message_takes_its_trip() {
    let pipeline = (Collective::Bcast, Algorithm::Pipeline);
    let short = outcome(pipeline, &Call::new(2, 100), &ALONE);
    // 7 to copy in, 6 to fly, 7 to copy out.
    assert_eq!(short.finish, [7.0, 20.0]);
    // The sender begins when it knows that the receive is posted: an empty message flies 6 seconds.
    let long = outcome(pipeline, &Call::new(2, 1000), &ALONE);
    close(long.seconds, 6.0 + 110.0);
    assert_eq!((long.messages, long.bytes), (1, 1000));
}

#[test]
fn who_copies_in_and_out_does_one_beside_the_other() {
    let exchange = (Collective::Allgather, Algorithm::RecursiveDoubling);
    let rounds = outcome(exchange, &Call::new(2, 1000), &ALONE);
    let own_block = 1000.0 / 20.0;
    close(rounds.seconds, own_block + 6.0 + 2.0 * 110.0);
}

#[test]
fn a_root_copies_for_all_at_once() {
    let linear = (Collective::Bcast, Algorithm::Linear);
    let all = outcome(linear, &Call::new(5, 1000), &ALONE);
    close(all.seconds, 6.0 + 4.0 * 110.0);
    assert!(all.finish.iter().all(|finish| (finish - all.seconds).abs() < 1e-6), "{all:?}");
}

#[test]
fn all_that_are_busy_slow_each_other_down() {
    let exchange = (Collective::Alltoall, Algorithm::Pairwise);
    let call = Call::new(8, 1000);
    let [alone, slow] =
        [1.0, 3.0].map(|factor| outcome(exchange, &call, &RoundMemory { factor, ..ALONE }));
    // Handshakes are no one's work.
    let handshakes = 7.0 * 6.0;
    close(slow.seconds - handshakes, 3.0 * (alone.seconds - handshakes));
    // A chain of messages has two busy ranks at most.
    let pipeline = (Collective::Bcast, Algorithm::Pipeline);
    let [alone, slow] =
        [1.0, 3.0].map(|factor| outcome(pipeline, &call, &RoundMemory { factor, ..ALONE }));
    close(slow.seconds, alone.seconds);
    assert!(slow.busy.is_some_and(|busy| (1.0..2.001).contains(&busy)), "{:?}", slow.busy);
}

/// Short messages and long ones: ranks 0 and 1, 2 and 3, ... exchange first, then those of two caches.
#[test]
fn what_stays_in_a_cache_is_not_slowed_down() {
    let exchange = (Collective::Barrier, Algorithm::RecursiveDoubling);
    let blocks = (Collective::Allreduce, Algorithm::RecursiveDoubling);
    for (which, count) in [(exchange, 0), (blocks, 40), (blocks, 4000)] {
        let call = Call::new(8, count);
        let seconds =
            |factor, near| outcome(which, &call, &RoundMemory { factor, near, ..ALONE }).seconds;
        // Copies and combinations are slowed down in any case.
        let of_all = seconds(3.0, 1);
        close(seconds(1.0, 8), seconds(1.0, 1));
        assert!(seconds(3.0, 2) < of_all && seconds(3.0, 8) < seconds(3.0, 2), "{count}");
        if count == 0 {
            close(seconds(3.0, 8), seconds(1.0, 8));
        }
    }
}

#[test]
fn calls_that_share_memory_themselves_are_refused() {
    let shared = crate::SHARED.iter().find(|entry| entry.collective == Collective::Bcast).unwrap();
    let call = Call { shared: 64, ..Call::new(4, 8) };
    let refused = simulate_in_memory(shared, &call, (&ALONE, &ROUND), 1, |_| {});
    assert_eq!(refused, Err(SimulationError::SharedMemory));
}

#[test]
fn every_algorithm_keeps_the_bounds_of_its_processors() {
    for entry in ENTRIES {
        for ranks in [1, 2, 3, 4, 5, 8, 9] {
            for (count, segment) in [(0, 0), (40, 0), (4000, 0), (4000, 1500)] {
                let segment = if entry.segmented { segment } else { 0 };
                let counts = vec![count; ranks as usize];
                let displacements: Vec<u64> =
                    (0..u64::from(ranks)).map(|rank| rank * count).collect();
                let call = Call {
                    segment,
                    counts: if entry.collective.has_counts() { &counts } else { &[] },
                    displacements: if entry.collective.has_counts() { &displacements } else { &[] },
                    ..Call::new(ranks, count)
                };
                if entry.check_everywhere(&call).is_err() {
                    continue;
                }
                let slow = RoundMemory { factor: 2.0, near: 3, ..ALONE };
                let mut work = vec![0.0; ranks as usize];
                let found = simulate_in_memory(entry, &call, (&slow, &ROUND), 1, |activity| {
                    // What is copied in pieces has a part of a processor only.
                    if activity.bytes <= 100
                        || !matches!(
                            activity.kind,
                            ActivityKind::Send { .. } | ActivityKind::Receive { .. }
                        )
                    {
                        work[activity.rank as usize] += activity.end - activity.begin;
                    }
                });
                let found = found.unwrap_or_else(|problem| panic!("{entry:?} {call:?}: {problem}"));
                let messages = simulate(entry, &call, &ROUND, Options::default()).unwrap();
                assert_eq!(
                    (found.messages, found.bytes),
                    (messages.messages, messages.bytes),
                    "{entry:?} {call:?}"
                );
                for (work, finish) in work.iter().zip(&found.finish) {
                    assert!(
                        *work <= finish * (1.0 + 1e-6) + 1e-9,
                        "{entry:?} {call:?}: {work} by {finish}"
                    );
                }
                let again = simulate_in_memory(entry, &call, (&slow, &ROUND), 1, |_| {}).unwrap();
                assert_eq!(found, again, "{entry:?} {call:?}");
            }
        }
    }
}

/// Combining costs what it does between nodes, and copies nothing, as there.
#[derive(Debug, Clone, Copy)]
struct WithoutCopies(RoundMemory);

impl MemoryCosts for WithoutCopies {
    fn trip(&self, bytes: u64) -> f64 {
        self.0.trip(bytes)
    }

    fn send(&self, bytes: u64) -> f64 {
        self.0.send(bytes)
    }

    fn receive(&self, bytes: u64) -> f64 {
        self.0.receive(bytes)
    }

    fn slowdown(&self, bytes: u64, busy: f64) -> f64 {
        self.0.slowdown(bytes, busy)
    }

    fn is_near(&self, from: u32, to: u32) -> bool {
        self.0.is_near(from, to)
    }

    fn copy(&self, _bytes: u64, _busy: f64) -> f64 {
        0.0
    }

    fn combine(&self, bytes: u64, _busy: f64) -> f64 {
        Costs::combine(&ROUND, bytes)
    }
}

fn on_nodes(nodes: &NodesOfRanks) -> NodeCosts<'_, LogGpCosts> {
    NodeCosts { nodes, inside: &ROUND, between: &ROUND, port: &ROUND }
}

/// Ranks that are alone on their nodes have nothing of the memory: they are simulated as by ports alone.
#[test]
fn between_nodes_messages_take_what_ports_say() {
    let memory = WithoutCopies(ALONE);
    for entry in ENTRIES {
        for ranks in [1, 2, 3, 4, 7, 8] {
            for (count, segment) in [(0, 0), (40, 0), (40, 15)] {
                let segment = if entry.segmented { segment } else { 0 };
                let nodes = NodesOfRanks::block(ranks, 1);
                let (counts, displacements) = blocks(ranks, count);
                let has_counts = entry.collective.has_counts();
                let call = Call {
                    segment,
                    nodes: Some(&nodes),
                    counts: if has_counts { &counts } else { &[] },
                    displacements: if has_counts { &displacements } else { &[] },
                    ..Call::new(ranks, count)
                };
                let network = on_nodes(&nodes);
                let options = Options { ports: Ports::Shared, ..Options::default() };
                let Ok(by_ports) = simulate(entry, &call, &network, options) else { continue };
                let found = simulate_in_memory(entry, &call, (&memory, &network), 1, |_| {});
                let found = found.unwrap_or_else(|problem| panic!("{entry:?} {call:?}: {problem}"));
                let (found, wanted) = (found.seconds, by_ports.seconds);
                assert!(
                    (found - wanted).abs() <= 1e-6 * wanted,
                    "{entry:?} {call:?}: {found} {wanted}"
                );
            }
        }
    }
}

fn blocks(ranks: u32, count: u64) -> (Vec<u64>, Vec<u64>) {
    (vec![count; ranks as usize], (0..u64::from(ranks)).map(|rank| rank * count).collect())
}

/// The link of its two ranks says what a message costs.
#[test]
fn a_message_takes_memory_or_ports() {
    // Ranks 0 and 1 are on one node, ranks 2 and 3 on another one. The root copies 40 bytes in for rank 1 (4 seconds),
    // then its processor is busy for 1 second each for two others, whose messages share its port.
    let linear = find(Collective::Bcast, Algorithm::Linear).unwrap();
    let (block, cyclic) = (NodesOfRanks::block(2, 2), NodesOfRanks::cyclic(2, 2));
    let call = Call::new(4, 40);
    let finish = |nodes| {
        let network = on_nodes(nodes);
        simulate_in_memory(linear, &call, (&ALONE, &network), 1, |_| {}).unwrap().finish
    };
    // Copied in until 4, 6 to fly, 4 to copy out. The port needs 22.5 for each message, from 4 and from 5 on: both share it
    // from 5 on, so the first has passed at 48, the second at 49. As if it had begun its gap earlier it has left 1 later,
    // flies 10 + 19.5 and is received in 1.
    let found = finish(&block);
    close(found[1], 14.0);
    close(found[2], 48.0 - 22.5 + 1.0 + 29.5 + 1.0);
    close(found[3], 49.0 - 22.5 + 1.0 + 29.5 + 1.0);
    // Dealt in turn, rank 2 is beside the root.
    let found = finish(&cyclic);
    close(found[2], 1.0 + 4.0 + 6.0 + 4.0);
    assert!(found[1] > 20.0 && found[3] > 20.0, "{found:?}");
}

/// Neighbours exchange, over and over.
struct Neighbours(u32);

impl Program for Neighbours {
    fn new(_call: &Call<'_>, rank: u32) -> Self {
        Neighbours(rank)
    }

    fn rounds(&self) -> u64 {
        20
    }

    fn round(&self, call: &Call<'_>, _index: u64, out: &mut Round) {
        let all = Range::new(Buffer::Receive, 0, call.count);
        out.receive(self.0 ^ 1, 0, all);
        out.send(self.0 ^ 1, 1, all);
        out.wait(0);
        out.wait(1);
    }

    fn slots(&self) -> u32 {
        2
    }
}

/// Each node has a memory of its own: what goes on on others slows nobody down.
#[test]
fn nodes_do_not_slow_each_other_down() {
    let entry = Entry::new::<Neighbours>(Collective::Bcast, Algorithm::Linear, "neighbours");
    let slow = RoundMemory { factor: 3.0, ..ALONE };
    for count in [40, 4000] {
        let time = |nodes: &NodesOfRanks| {
            let (call, network) = (Call::new(nodes.ranks(), count), on_nodes(nodes));
            simulate_in_memory(&entry, &call, (&slow, &network), 1, |_| {}).unwrap()
        };
        let alone = time(&NodesOfRanks::block(1, 4));
        for nodes in [NodesOfRanks::block(3, 4), NodesOfRanks::block(8, 4)] {
            let several = time(&nodes);
            close(several.seconds, alone.seconds);
            close(several.busy.unwrap(), alone.busy.unwrap());
        }
        assert!(time(&NodesOfRanks::block(1, 8)).seconds > alone.seconds * 1.1);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]

    /// All algorithms end, with all messages, on any nodes, and the same again.
    #[test]
    fn every_algorithm_runs_on_nodes_of_several_ranks(
        labels in prop::collection::vec(0_u64..4, 1..14), count in 0_u64..300, segment in 0_u64..100,
    ) {
        let nodes = NodesOfRanks::new(&labels);
        let (ranks, network) = (nodes.ranks(), on_nodes(&nodes));
        let slow = RoundMemory { factor: 2.0, near: 3, ..ALONE };
        for entry in ENTRIES {
            let (counts, displacements) = blocks(ranks, count);
            let has_counts = entry.collective.has_counts();
            let call = Call {
                segment: if entry.segmented { segment } else { 0 },
                nodes: Some(&nodes),
                counts: if has_counts { &counts } else { &[] },
                displacements: if has_counts { &displacements } else { &[] },
                ..Call::new(ranks, count)
            };
            if entry.check_everywhere(&call).is_err() {
                continue;
            }
            let run = || simulate_in_memory(entry, &call, (&slow, &network), 1, |_| {}).unwrap();
            let (found, by_ports) =
                (run(), simulate(entry, &call, &network, Options::default()).unwrap());
            prop_assert_eq!((found.messages, found.bytes), (by_ports.messages, by_ports.bytes));
            prop_assert_eq!(run(), found, "{:?}", entry);
        }
    }
}

/// One of nodes that do the same takes what all of them take together.
#[test]
fn one_of_alike_nodes_takes_what_all_take() {
    let slow = RoundMemory { factor: 2.0, near: 3, ..ALONE };
    let mut alike: Vec<(Collective, Algorithm)> = Vec::new();
    for entry in ENTRIES {
        for (count, per_node) in [(2, 1), (3, 1), (2, 2), (2, 3), (3, 4), (4, 4), (5, 2), (6, 3)] {
            for (elements, segment) in [(0, 0), (24, 0), (960, 0), (960, 100)] {
                let segment = if entry.segmented { segment } else { 0 };
                let nodes = NodesOfRanks::block(count, per_node);
                let (counts, displacements) = blocks(nodes.ranks(), elements);
                let has_counts = entry.collective.has_counts();
                let call = Call {
                    segment,
                    nodes: Some(&nodes),
                    counts: if has_counts { &counts } else { &[] },
                    displacements: if has_counts { &displacements } else { &[] },
                    ..Call::new(nodes.ranks(), elements)
                };
                if entry.check_everywhere(&call).is_err() {
                    continue;
                }
                let network = on_nodes(&nodes);
                let costs = (&slow, &network);
                let all = simulate_in_memory(entry, &call, costs, 1, |_| {}).unwrap();
                let one = simulate_alike_nodes(entry, &call, costs, 1, f64::INFINITY).unwrap();
                let (all_seconds, seconds) = (all.seconds, one.seconds);
                // Neither more nor less of it is looked at than is asked for.
                let until = |until| simulate_alike_nodes(entry, &call, costs, 1, until);
                assert_eq!(until(seconds), Ok(one.clone()), "{entry:?}");
                if seconds > 0.0 {
                    let less = until(0.9 * seconds);
                    assert_eq!(less, Err(SimulationError::Longer), "{entry:?}");
                }
                assert!(
                    (all_seconds - seconds).abs() <= 0.01 * all_seconds,
                    "{entry:?} {count}x{per_node} {elements} {segment}: {seconds} for {all_seconds}"
                );
                assert_eq!((all.messages, all.bytes), (one.messages, one.bytes), "{entry:?}");
                assert_eq!(all.finish.len(), one.finish.len());
                if one != all && !alike.contains(&(entry.collective, entry.algorithm)) {
                    alike.push((entry.collective, entry.algorithm));
                }
            }
        }
    }
    println!("{alike:?}");
}

/// By hand: a barrier is three flags that one rank looks at and one that the others do, a short bcast one; a long one
/// puts down two cells of 500 bytes (50 s each, as they come back from those that have read them), each of which the
/// others take in 4 and 50 s while the root puts down the next.
#[test]
fn flags_and_reads_take_what_they_cost() {
    let of = |collective: Collective, call: &Call<'_>, factor: f64| {
        let entry = crate::shared_of_collective(collective).unwrap();
        let memory = RoundMemory { factor, has_flags: true, ..ALONE };
        simulate_in_memory(entry, call, (&memory, &ROUND), 1, |_| {}).unwrap()
    };
    let call = |count| Call { shared: 2000, line: 48, fan_out: 0, ..Call::new(4, count) };
    let barrier = of(Collective::Barrier, &call(0), 1.0);
    close(barrier.seconds, 3.0 + 2.0 * 0.5 + 3.0);
    assert_eq!((barrier.messages, barrier.bytes), (0, 0));
    for ranks in [2, 3, 8] {
        let barrier = of(Collective::Barrier, &Call { ranks, ..call(0) }, 1.0);
        let in_turn = f64::from(crate::shared::flags_of_a_barrier(ranks));
        close(barrier.seconds, in_turn * 3.0 + f64::from(ranks - 2) * 0.5);
    }
    // In groups of four the second one's first rank arrives when its three have, and lets them go when it may.
    let groups = of(Collective::Barrier, &Call { ranks: 8, fan_out: 4, ..call(0) }, 1.0);
    close(groups.seconds, 3.0 + 2.0 * 0.5 + 3.0 + 3.0 + 3.0);
    let seconds =
        |fan_out| of(Collective::Barrier, &Call { ranks: 64, fan_out, ..call(0) }, 1.0).seconds;
    assert!(seconds(8) < 0.6 * seconds(0), "{} {}", seconds(8), seconds(0));
    // What has come with a flag is copied from its line.
    close(of(Collective::Bcast, &call(40), 1.0).seconds, 3.0 + 2.0);
    close(of(Collective::Bcast, &call(1000), 1.0).seconds, 50.0 + 3.0 + 54.0 + 54.0);
    // The last rank's 8 bytes are there with its flag and copied, two ranks' take 2 s each to be combined, the own ones
    // 0.4; then the result comes by a flag, and is copied.
    let reduced = of(Collective::Allreduce, &call(8), 1.0);
    close(reduced.seconds, 3.0 + 2.0 * 0.5 + 0.4 + 2.0 * 2.0 + 0.4 + 3.0 + 0.4);
    // Of two ranks each combines: the last one's 8 bytes are copied, the first one's combined.
    let exchanged = of(Collective::Allreduce, &Call { ranks: 2, ..call(8) }, 1.0);
    close(exchanged.seconds, 3.0 + 0.4 + 2.0);
    // While each keeps its own block the flags come; of three blocks that are taken, the first alone has to begin.
    let blocks = of(Collective::Allgather, &call(400), 1.0);
    close(blocks.seconds, 40.0 + 20.0 + 2.0 * 0.5 + 4.0 + 3.0 * 40.0);
    // More readers are slower.
    let [alone, slow] = [1.0, 3.0].map(|factor| of(Collective::Allgather, &call(400), factor));
    assert!(slow.seconds > 1.2 * alone.seconds, "{alone:?} {slow:?}");
}

/// Every algorithm of shared memory ends, with any counts, segments and roots, and inside nodes, too.
#[test]
fn every_algorithm_of_shared_memory_runs() {
    let memory = RoundMemory { factor: 2.0, near: 3, has_flags: true, ..ALONE };
    for entry in crate::SHARED {
        for ranks in [1, 2, 3, 5, 8, 16] {
            for (count, segment) in [(0, 0), (3, 0), (500, 0), (5000, 0), (5000, 70)] {
                let segment = if entry.segmented { segment } else { 0 };
                let call = Call { segment, shared: 2000, line: 8, ..Call::new(ranks, count) };
                for root in [0, ranks - 1] {
                    let call =
                        Call { root: if entry.collective.is_rooted() { root } else { 0 }, ..call };
                    let run = || simulate_in_memory(entry, &call, (&memory, &ROUND), 1, |_| {});
                    let found = run().unwrap_or_else(|why| panic!("{entry:?} {call:?}: {why}"));
                    assert_eq!(run(), Ok(found));
                }
            }
        }
    }
}
