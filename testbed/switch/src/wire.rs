//! One direction of a link: its rate, its latency, and who waits for it.

use std::{cmp::Reverse, collections::BinaryHeap};

use rustc_hash::FxHashMap;

use crate::{Nanoseconds, PortIndex};

/// From whom to whom. Frames of one pair never overtake each other.
pub(crate) type PortPair = (PortIndex, PortIndex);

/// A frame on its way: whose it is, its bytes on the wire, and the rest, which is nothing to a wire.
#[derive(Debug)]
pub(crate) struct FrameInTransit<T> {
    pub pair: PortPair,
    pub bytes: u32,
    pub content: T,
}

/// Serves the pairs that wait for it by fair shares of its bytes.
///
/// By self-clocked fair queueing (Golestani, INFOCOM 1994): a frame's tag is that of its pair's last
/// frame, or of the frame that is being sent if that is larger, plus its bytes; the least tag is
/// sent first. A pair with nothing waiting gains no claim on the past.
#[derive(Debug)]
pub(crate) struct Wire<T> {
    bits_per_second: u64,
    pub latency: Nanoseconds,
    sending: Option<FrameInTransit<T>>,
    /// The tag of what is being sent.
    tag: u64,
    waiting: BinaryHeap<WaitingFrame<T>>,
    /// Of each pair's last frame.
    tags: FxHashMap<PortPair, u64>,
    /// Frames that ever came, which tells frames of one tag apart.
    came: u64,
}

#[derive(Debug)]
struct WaitingFrame<T> {
    order: Reverse<(u64, u64)>,
    parcel: FrameInTransit<T>,
}

impl<T> PartialEq for WaitingFrame<T> {
    fn eq(&self, other: &Self) -> bool {
        self.order == other.order
    }
}

impl<T> Eq for WaitingFrame<T> {}

impl<T> PartialOrd for WaitingFrame<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for WaitingFrame<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.order.cmp(&other.order)
    }
}

impl<T> Wire<T> {
    pub fn new(bits_per_second: u64, latency: Nanoseconds) -> Wire<T> {
        Wire {
            bits_per_second,
            latency,
            sending: None,
            tag: 0,
            waiting: BinaryHeap::new(),
            tags: FxHashMap::default(),
            came: 0,
        }
    }

    /// How long a frame occupies it.
    pub fn time_of(&self, bytes: u32) -> Nanoseconds {
        let bits = u64::from(bytes) * 8 * 1_000_000_000;
        match self.bits_per_second {
            0 => 0,
            rate => (bits + rate / 2) / rate,
        }
    }

    /// A frame comes at `now`. If the wire is free it is sent at once, and the end of its sending is
    /// told; else it waits.
    pub fn accept(&mut self, now: Nanoseconds, parcel: FrameInTransit<T>) -> Option<Nanoseconds> {
        let last = self.tags.entry(parcel.pair).or_default();
        *last = self.tag.max(*last) + u64::from(parcel.bytes);
        let order = Reverse((*last, self.came));
        self.came += 1;
        self.waiting.push(WaitingFrame { order, parcel });
        match self.sending {
            Some(_) => None,
            None => self.send_next(now),
        }
    }

    /// The frame that was being sent has left at `now`; the next one, if any waits, begins there and
    /// then, and its end is told.
    pub fn left(&mut self, now: Nanoseconds) -> (Option<FrameInTransit<T>>, Option<Nanoseconds>) {
        let sent = self.sending.take();
        (sent, self.send_next(now))
    }

    fn send_next(&mut self, now: Nanoseconds) -> Option<Nanoseconds> {
        let WaitingFrame { order: Reverse((tag, _)), parcel } = self.waiting.pop()?;
        let end = now + self.time_of(parcel.bytes);
        self.tag = tag;
        self.sending = Some(parcel);
        Some(end)
    }
}
