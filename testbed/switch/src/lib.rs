//! The network of a virtual cluster, dictated: which links there are, at which rate and latency, and
//! when a frame that a node has sent is due at another.
//!
//! [`Wiring`] is what is dictated. [`Fabric`] tells when frames are due: it knows no clock and no
//! device, only times that it is told, so that it can be tested without waiting and without root.
//! [`Service`] is what the running switch tells of itself. The program `colibri-switch` holds a TAP
//! device per node, and passes on what the fabric says is due.
//!
//! # The model
//!
//! A port has two wires, one out of its place and one into it. A group of ports has two to the rest,
//! up and down, and so has a group of groups: nodes of ranks, racks of nodes. A frame crosses out, up
//! as far as it must, down and in, and is stored and forwarded by each wire: it takes the time of its
//! bytes, then the wire's latency. Frames that meet at a wire are served by fair shares
//! per pair of nodes, in bytes; nothing is dropped unless the wiring asks for it. A wire that has
//! frames to send never pauses: the next one begins when the last one ended, however late the
//! switch itself was to notice.

#![cfg(target_os = "linux")]

mod address;
mod fabric;
mod service;
mod wire;
mod wiring;

pub use address::{address_of, port_of};
pub use fabric::{Delivery, Fabric};
pub use service::{Durations, Percentiles, Service};
pub use wiring::{Delay, GroupWires, HEAD, Jitter, JitterDistribution, PortWires, Wiring};

/// A moment or a duration, in nanoseconds of the monotonic clock.
pub type Nanoseconds = u64;

/// A port of the switch: the nodes' in order, then the head's.
pub type PortIndex = u16;
