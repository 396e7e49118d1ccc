//! Flags that ranks of a node raise and await.

use super::{Link, Machine, MemoryCosts, work::Task};
use crate::{
    Flag,
    simulator::{Activity, ActivityKind, LevelledCosts},
};

/// A flag of a rank, in a turn.
pub(super) type FlagKey = (u32, Flag, u32);

/// A value of a flag.
#[derive(Debug, Clone, Copy)]
pub(super) struct RaisedFlag {
    pub value: u32,
    /// When its rank raised it, in seconds.
    pub raised: f64,
    /// When others see it.
    pub seen: f64,
}

impl<M: MemoryCosts, C: LevelledCosts, O: FnMut(Activity)> Machine<'_, M, C, O> {
    pub(super) fn signal(&mut self, key: FlagKey, value: u32) {
        let [flag, _] = self.memory.flag().unwrap_or_default();
        let raised = self.events.now();
        self.raised.entry(key).or_default().push(RaisedFlag { value, raised, seen: raised + flag });
        self.ready.extend(self.watchers.remove(&key).unwrap_or_default());
    }

    /// Whether all of these flags have been raised; then the processor waits until it sees them, one after the other, as
    /// those that its last step awaited.
    pub(super) fn await_flags(
        &mut self,
        rank: u32,
        flags: impl IntoIterator<Item = FlagKey>,
        value: u32,
    ) -> bool {
        let now = self.events.now();
        let [_, further] = self.memory.flag().unwrap_or_default();
        let own = &mut self.ranks[rank as usize];
        let begun = now + if own.looks { further } else { 0.0 };
        let (mut seen, mut looked_at) = (begun, 0_u32);
        own.reads = false;
        self.awaited.clear();
        for key in flags {
            looked_at += 1;
            let raised = self.raised.get(&key).map(Vec::as_slice).unwrap_or_default();
            match raised.get(raised.partition_point(|flag| flag.value < value)) {
                Some(flag) => {
                    seen = seen.max(flag.seen);
                    self.awaited.push(ActivityKind::Flag { of: key.0, raised: flag.raised });
                }
                None => {
                    self.watchers.entry(key).or_default().push(rank);
                    return false;
                }
            }
        }
        self.ranks[rank as usize].looks = looked_at > 0;
        let seen = seen + f64::from(looked_at.saturating_sub(1)) * further;
        for kind in self.awaited.drain(..) {
            (self.observe)(Activity { rank, kind, begin: seen, end: seen, bytes: 0 });
        }
        if seen > now {
            let wait = Task::message(ActivityKind::Wait, 0, Link::Cache);
            self.begin(rank, wait, seen - now);
        }
        true
    }
}
