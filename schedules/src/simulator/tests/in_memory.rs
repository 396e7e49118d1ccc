//! Ranks of one node: cases computed by hand, and bounds that hold for every algorithm.

use super::*;

/// A message takes 10 seconds and one for every 10 bytes; up to 100 bytes it is copied in and out one after the
/// other, beyond at the same time. With all of `ranks` busy everything takes `factor` times as long.
#[derive(Debug, Clone, Copy)]
struct RoundMemory {
    ranks: f64,
    factor: f64,
    /// Consecutive ranks that share a cache.
    near: u32,
}

const ALONE: RoundMemory = RoundMemory { ranks: 8.0, factor: 1.0, near: 1 };

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
}

fn outcome(
    (collective, algorithm): (Collective, Algorithm),
    call: &Call<'_>,
    costs: &RoundMemory,
) -> Outcome {
    let entry = find(collective, algorithm).unwrap();
    simulate_in_memory(entry, call, costs, 1, |_| {}).unwrap()
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
    let refused =
        simulate_in_memory(shared, &Call { shared: 64, ..Call::new(4, 8) }, &ALONE, 1, |_| {});
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
                let slow = RoundMemory { ranks: 8.0, factor: 2.0, near: 3 };
                let mut work = vec![0.0; ranks as usize];
                let found = simulate_in_memory(entry, &call, &slow, 1, |activity| {
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
                let again = simulate_in_memory(entry, &call, &slow, 1, |_| {}).unwrap();
                assert_eq!(found, again, "{entry:?} {call:?}");
            }
        }
    }
}
