//! What is due, by time: a radix heap.

use std::collections::VecDeque;

/// One list for each place of the highest bit in which a time differs from the present, and one
/// for the present.
const LISTS: usize = u64::BITS as usize;

/// What is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// A message asks for the outgoing port of its sender's node.
    Departure(u32),
    /// A message comes to the incoming port of its receiver's node.
    Entrance(u32),
    /// A message comes to its receiver's port: see [`Arrivals`](super::arrivals::Arrivals).
    Arrival(u32),
    /// A message may have passed the ports that it shares: see
    /// [`SharedPorts`](super::shared_ports::SharedPorts).
    Passage(u32),
    /// A message in pieces may have been copied: see [`in_memory`](super::in_memory).
    Copied(u32),
    /// A rendezvous has been agreed: see [`Offers`](super::rendezvous::Offers).
    Transfer(u32),
    /// A rank goes on.
    Turn(u32),
}

#[derive(Debug, Clone, Copy)]
struct QueuedEvent {
    /// See [`key`].
    time: u64,
    /// Among what is due at one time.
    order: u64,
    due: Event,
}

/// Nothing is due before what was taken last, so entries only move towards the present: a handful
/// of steps each, in memory that lies in a row.
///
/// What is due at one time comes by its order.
#[derive(Debug)]
pub(super) struct EventQueue {
    /// 0 before anything was taken.
    now: u64,
    present: VecDeque<QueuedEvent>,
    /// By the highest bit that differs from `now`.
    later: [Vec<QueuedEvent>; LISTS],
    /// What is being moved.
    moved: Vec<QueuedEvent>,
}

/// The bits of a number from 0 on are in its order. 0 is before all times.
#[inline]
const fn key(time: f64) -> u64 {
    time.to_bits() + 1
}

impl Default for EventQueue {
    fn default() -> Self {
        EventQueue {
            now: 0,
            present: VecDeque::new(),
            later: [const { Vec::new() }; LISTS],
            moved: Vec::new(),
        }
    }
}

impl EventQueue {
    /// Forgets everything; the memory is kept.
    pub fn clear(&mut self) {
        self.now = 0;
        self.present.clear();
        self.later.iter_mut().for_each(Vec::clear);
    }

    /// The time of what was taken last, in seconds.
    #[inline]
    pub const fn now(&self) -> f64 {
        f64::from_bits(self.now.saturating_sub(1))
    }

    /// `time` is not before [`EventQueue::now`]; if it is, it counts as now.
    #[inline]
    pub fn put(&mut self, time: f64, order: u64, due: Event) {
        // The bits of numbers below 0, and of -0, are above all others.
        let time = if time > 0.0 { time } else { 0.0 };
        let time = key(time).max(self.now);
        self.file(QueuedEvent { time, order, due });
    }

    /// Whether more is due at the time of what was taken last.
    #[inline]
    pub fn has_present(&self) -> bool {
        !self.present.is_empty()
    }

    /// What is due first.
    #[inline]
    pub fn take(&mut self) -> Option<Event> {
        if self.present.is_empty() {
            self.go_on();
        }
        self.present.pop_front().map(|entry| entry.due)
    }

    #[inline]
    fn file(&mut self, entry: QueuedEvent) {
        match (entry.time ^ self.now).checked_ilog2() {
            None => {
                let place = match self.present.back() {
                    Some(last) if last.order > entry.order => {
                        self.present.partition_point(|other| other.order <= entry.order)
                    }
                    _ => self.present.len(),
                };
                self.present.insert(place, entry);
            }
            Some(bit) => self.later[bit as usize].push(entry),
        }
    }

    /// The first time at which something is due becomes the present.
    fn go_on(&mut self) {
        let Some(first) = self.later.iter_mut().find(|list| !list.is_empty()) else { return };
        std::mem::swap(first, &mut self.moved);
        self.now = self.moved.iter().map(|entry| entry.time).min().unwrap_or(self.now);
        let mut moved = std::mem::take(&mut self.moved);
        for entry in moved.drain(..) {
            match entry.time == self.now {
                true => self.present.push_back(entry),
                false => self.file(entry),
            }
        }
        let present = self.present.make_contiguous();
        if !present.is_sorted_by_key(|entry| entry.order) {
            present.sort_by_key(|entry| entry.order);
        }
        self.moved = moved;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_due_at_one_time_comes_by_its_order() {
        let mut events = EventQueue::default();
        for (time, order) in [(2.0, 7), (0.0, 9), (2.0, 3), (0.0, 4)] {
            events.put(time, order, Event::Turn(order as u32));
        }
        assert_eq!(events.take(), Some(Event::Turn(4)));
        events.put(0.0, 8, Event::Turn(8));
        let taken: Vec<_> = std::iter::from_fn(|| events.take()).collect();
        assert_eq!(taken, [8, 9, 3, 7].map(Event::Turn));
        assert_eq!(events.now(), 2.0);
    }

    #[test]
    fn what_was_due_before_the_beginning_is_due_at_once() {
        let mut events = EventQueue::default();
        for (time, order) in [(1.0, 1), (-1.0, 2), (-0.0, 3), (0.0, 4)] {
            events.put(time, order, Event::Turn(order as u32));
        }
        let taken: Vec<_> = std::iter::from_fn(|| events.take()).collect();
        assert_eq!(taken, [2, 3, 4, 1].map(Event::Turn));
        assert_eq!(events.now(), 1.0);
    }

    proptest! {
        /// Against a sorted list; what is taken puts in what comes after it.
        #[test]
        fn what_is_due_first_comes_first(
            delays in prop::collection::vec(prop_oneof![Just(0.0), 1e-9..1e3_f64], 1..200),
        ) {
            let mut events = EventQueue::default();
            let mut open: Vec<(f64, u32)> = Vec::new();
            let mut delays = (0_u32..).zip(delays);
            for (number, delay) in delays.by_ref().take(20) {
                events.put(delay, u64::from(number), Event::Arrival(number));
                open.push((delay, number));
            }
            while let Some(Event::Arrival(taken)) = events.take() {
                let first = open.iter().map(|(time, _)| *time).fold(f64::INFINITY, f64::min);
                let place = open.iter().position(|(_, number)| *number == taken).unwrap();
                prop_assert_eq!(open.swap_remove(place).0, first);
                prop_assert_eq!(events.now(), first);
                for (number, delay) in delays.by_ref().take(2) {
                    events.put(first + delay, u64::from(number), Event::Arrival(number));
                    open.push((first + delay, number));
                }
            }
            prop_assert!(open.is_empty());
        }
    }
}
