//! How TCP is set up in the nodes of a network that loses nothing by itself.
//!
//! A TAP device takes every frame at once, so that TCP's own measure against long queues (a socket may
//! have only so much in its device's queue) does not see the queue. What holds a sender back instead
//! is the receiver's window, which is given and stays: as large as keeps every link busy, from the
//! first byte on. Nothing is dropped, so the congestion window is never below it.

use std::fmt::Write as _;

use switch::{Nanoseconds, PortIndex, Wiring, address_of};

use crate::{
    rate::{PACKET, PAYLOAD},
    spec::{self, PREFIX_BITS},
};

/// Of a full frame, on the wire.
const FRAME_BITS: u64 = PACKET * 8;

/// The least window: what a socket may have in the queue of a common device, 128 KiB and a bit less.
const MIN_WINDOW: u64 = 64;
const MAX_WINDOW: u64 = 2048;

/// Nobody retransmits earlier by default.
const USUAL_TIMEOUT: Nanoseconds = 200_000_000;
/// A time-out has room for this machine's being late.
const LATE: Nanoseconds = 20_000_000;

/// More than all windows together can put into a device's queue before the switch empties it.
const DEVICE_QUEUE: u32 = 16384;

/// What the nodes' kernels are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tcp {
    /// Of each connection, in full frames.
    window: u64,
    /// The least time after which what was not acknowledged is sent again.
    timeout_milliseconds: u64,
    is_lossy: bool,
}

/// Wires that lie side by side: of all ports, of all groups.
#[derive(Debug, Default)]
struct Level {
    /// In bits per second.
    fastest: u64,
    /// Of a full frame, at the slowest.
    frame: Nanoseconds,
    /// What the slowest takes for a full frame, latency included.
    time: Nanoseconds,
}

impl Level {
    /// From rates, 0 being no rate, and latencies.
    fn from_wires(wires: impl Iterator<Item = ([u64; 2], Nanoseconds)>) -> Level {
        let mut level = Level::default();
        for (rates, latency) in wires {
            for rate in rates.into_iter().filter(|rate| *rate > 0) {
                let frame = FRAME_BITS * 1_000_000_000 / rate;
                level.fastest = level.fastest.max(rate);
                level.frame = level.frame.max(frame);
                level.time = level.time.max(frame + latency);
            }
        }
        level
    }
}

impl Tcp {
    /// What fits the network.
    pub fn for_wiring(wiring: &Wiring, is_lossy: bool) -> Tcp {
        let inner = Level::from_wires(wiring.ports.iter().map(|port| {
            ([port.out_bits_per_second, port.in_bits_per_second], port.latency.nanoseconds())
        }));
        let outer = Level::from_wires(wiring.groups.iter().map(|group| {
            ([group.up_bits_per_second, group.down_bits_per_second], group.latency.nanoseconds())
        }));
        let jitter = wiring.jitter.map_or(0, |jitter| jitter.scale.nanoseconds() * 10);
        // There and back, over out and in, and up and down at most twice.
        let round_trip =
            [4 * inner.time, 4 * inner.time + 8 * outer.time].map(|time| time + 2 * jitter);
        let frames_on_the_way = |level: &Level, round_trip: Nanoseconds| {
            (round_trip as u128 * level.fastest as u128 / 1_000_000_000) as u64 / FRAME_BITS
        };
        let inside = frames_on_the_way(&inner, round_trip[0]);
        let in_flight = match wiring.groups.is_empty() {
            true => inside,
            false => inside.max(frames_on_the_way(&outer, round_trip[1])),
        };
        // One frame of every other port, before one's own and before its acknowledgement.
        let ports = wiring.ports.len() as u64;
        let turn = round_trip[1] + 2 * 2 * ports * inner.frame.max(outer.frame);
        let least = if is_lossy { 0 } else { USUAL_TIMEOUT };
        Tcp {
            window: (2 * in_flight).clamp(MIN_WINDOW, MAX_WINDOW),
            timeout_milliseconds: (2 * turn + LATE).max(least).div_ceil(1_000_000),
            is_lossy,
        }
    }

    /// A script for the shell of a node: its kernel's settings.
    ///
    /// Reno, since it only looks at losses (others pace, or look at delays, which are long here). No
    /// window shrinks because a connection was idle or by what another one has seen. Where nothing is
    /// lost, nothing is sent again on suspicion.
    pub fn settings(&self) -> String {
        let probes = if self.is_lossy { 3 } else { 0 };
        // The kernel takes half of the buffer for its own bookkeeping.
        let buffer = 2 * self.window * PAYLOAD;
        format!(
            "cd /proc/sys/net/ipv4 && echo reno > tcp_congestion_control && \
             echo 0 > tcp_slow_start_after_idle && echo 1 > tcp_no_metrics_save && \
             echo {probes} > tcp_early_retrans && echo 0 > tcp_moderate_rcvbuf && \
             echo 4096 {buffer} {buffer} > tcp_rmem"
        )
    }

    /// A batch for `ip` in the place of a port, the last being the head's: addresses of everybody, none of which is ever asked for, and the
    /// way to them.
    pub fn device(&self, port: usize, ports: usize) -> String {
        let address = |port: usize| match port + 1 < ports {
            true => spec::port_address(port as u32),
            false => spec::head_address(),
        };
        let mac = |port: usize| address_of(port as PortIndex);
        let (own, Tcp { window, timeout_milliseconds, .. }) = (address(port), self);
        let mut batch = format!(
            "link set dev eth0 address {} txqueuelen {DEVICE_QUEUE}\n\
             address add {own}/{PREFIX_BITS} dev eth0\n\
             link set dev eth0 up\n\
             route change {} dev eth0 proto kernel scope link src {own} \
             rto_min {timeout_milliseconds}ms initcwnd {window} initrwnd {window}\n",
            mac(port),
            crate::NETWORK,
        );
        for other in (0..ports).filter(|other| *other != port) {
            // A text takes any writing.
            let _ = writeln!(
                batch,
                "neighbour add {} lladdr {} nud permanent dev eth0",
                address(other),
                mac(other)
            );
        }
        batch
    }
}

#[cfg(test)]
mod tests {
    use switch::Delay;

    use super::*;
    use crate::{LinkOptions, Spec, wiring::wiring};

    fn tcp(rate: &str, latency: &str, nodes: u32) -> Tcp {
        let latency: Delay = latency.parse().unwrap();
        let links = LinkOptions { latency, ..LinkOptions::default() };
        let spec = Spec::new("a", nodes, rate.parse().unwrap()).unwrap();
        Tcp::for_wiring(&wiring(&spec, &links), false)
    }

    #[test]
    fn a_window_keeps_every_link_busy_and_a_time_out_waits_for_all_turns() {
        assert_eq!(tcp("10mbit", "1ms", 2).window, 64);
        // 8 Mbit are there and back on the way.
        assert!(tcp("1gbit", "4ms", 2).window >= 8_000_000 / FRAME_BITS);
        assert_eq!(tcp("10mbit", "1ms", 2).timeout_milliseconds, 200);
        // A frame takes 12 ms, one of each of 63 others 763 ms.
        assert!(tcp("1mbit", "1ms", 64).timeout_milliseconds >= 2 * 763);
    }

    #[test]
    fn every_place_knows_all_others() {
        let batch = tcp("10mbit", "1ms", 3).device(3, 4);
        assert!(batch.contains("address add 10.77.0.254/24 dev eth0\n"), "{batch}");
        let known: Vec<&str> = batch.lines().filter(|line| line.starts_with("neigh")).collect();
        assert_eq!(known.len(), 3);
        assert!(known[1].contains("10.77.0.2 lladdr 02:63:6f:6c:69:01 nud permanent"), "{batch}");
    }
}
