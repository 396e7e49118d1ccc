//! How many ranks of a node are busy, and how that slows down what is under way.

use super::{Link, Machine, MemoryCosts, Rank, work::Work};
use crate::simulator::{Activity, LevelledCosts, event_queue::Event};

/// The number of busy ranks may change by this part before all that is under way is slowed down anew: times change
/// by less.
const CHANGE: f64 = 0.03;

impl<M: MemoryCosts, C: LevelledCosts, O: FnMut(Activity)> Machine<'_, M, C, O> {
    /// Most that is slowed down anew is as large as what was before, beside as many busy ranks.
    pub(super) fn slowdown(&mut self, bytes: u64, busy: f64) -> f64 {
        if (self.slowdown.0, self.slowdown.1) != (bytes, busy) {
            self.slowdown = (bytes, busy, self.memory.slowdown(bytes, busy));
        }
        self.slowdown.2
    }

    /// What changes with a rank changes the number of busy ones.
    pub(super) fn count_busy_of(&mut self, rank: u32, change: impl FnOnce(&mut Rank)) {
        let own = &mut self.ranks[rank as usize];
        let before = own.busy();
        change(own);
        let more = own.busy() - before;
        if more == 0.0 {
            return;
        }
        let (now, place) = (self.events.now(), self.places[rank as usize].0);
        let node = &mut self.nodes[place as usize];
        node.busy_seconds += node.busy * (now - node.since);
        (node.since, node.busy) = (now, node.busy + more);
        if !node.is_changed {
            node.is_changed = true;
            self.changed.push(place);
        }
    }

    /// Everything goes on as so many busy ranks of its node let it.
    pub(super) fn count_busy(&mut self) {
        while let Some(place) = self.changed.pop() {
            let node = &mut self.nodes[place as usize];
            node.is_changed = false;
            let busy = node.busy.max(1.0);
            if (busy - node.slowed_by).abs() > CHANGE * node.slowed_by {
                node.slowed_by = busy;
                self.slow_anew(place);
            }
        }
    }

    fn slow_anew(&mut self, place: u32) {
        for index in 0..self.nodes[place as usize].streams.len() {
            self.set_rate(self.nodes[place as usize].streams[index]);
        }
        let now = self.events.now();
        for index in 0..self.nodes[place as usize].ranks.len() {
            let rank = self.nodes[place as usize].ranks[index];
            let Some(Work { task, .. }) = self.ranks[rank as usize].work else { continue };
            if task.link != Link::Memory {
                continue;
            }
            let seconds = self.seconds_of(rank, task);
            let Some(work) = &mut self.ranks[rank as usize].work else { continue };
            let done = if work.seconds > 0.0 { (now - work.since) / work.seconds } else { 1.0 };
            work.left = (work.left - done).max(0.0);
            (work.since, work.seconds) = (now, seconds);
            let end = now + work.left * seconds;
            if end < work.due {
                work.due = end;
                self.events.put(end, u64::from(rank), Event::Turn(rank));
            }
        }
    }
}
