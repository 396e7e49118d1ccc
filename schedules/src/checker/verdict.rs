//! Whether ranks have ended, and with what they should.

use records::Collective;
use rustc_hash::FxHashSet;

use super::{
    expectation::after,
    fault::{Awaited, Blocked, ScheduleFault, SequenceFault},
    machine::CheckingMachine,
    memory::{CheckedRank, CheckedSlot, Waiting},
    values::UNDEFINED,
};

impl CheckingMachine<'_> {
    /// Whether all ranks have ended all calls, when none can go on.
    ///
    /// # Errors
    /// Some wait forever.
    pub fn verify_end(&self) -> Result<(), SequenceFault> {
        let blocked = |(rank, own): (u32, &CheckedRank<'_>)| {
            let (peer, awaited) = match own.waits_for.filter(|_| !own.done)? {
                Waiting::Flag { rank, flag, value } => (rank, Awaited::Flag(flag, value)),
                Waiting::Finish { rank } => (rank, Awaited::Finish),
                Waiting::Slot(slot) => match own.slots[slot as usize] {
                    CheckedSlot::Idle => return None,
                    CheckedSlot::Send { peer, .. } => (peer, Awaited::Receive),
                    CheckedSlot::Receive { peer, .. } => (peer, Awaited::Message),
                },
            };
            Some(Blocked { rank, peer, awaited })
        };
        let blocked: Vec<_> = (0..).zip(&self.ranks).filter_map(blocked).collect();
        let calls = blocked.iter().map(|blocked| self.ranks[blocked.rank as usize].number);
        match calls.min() {
            None => Ok(()),
            Some(call) => Err(SequenceFault { call, fault: ScheduleFault::Deadlock(blocked) }),
        }
    }

    /// What a rank has done when its call ends.
    ///
    /// # Errors
    /// It has a slot that was not waited for or a turn that has no end, or holds a wrong result.
    pub fn verify(&mut self, rank: u32) -> Result<(), ScheduleFault> {
        let own = &self.ranks[rank as usize];
        let busy = own.slots.iter().position(|slot| !matches!(slot, CheckedSlot::Idle));
        if let Some(slot) = busy {
            return Err(ScheduleFault::Unwaited { rank, slot: slot as u32 });
        }
        if own.turns > 0 {
            let finished = self.shared.finished(rank) - own.turns_before;
            if finished != own.turns {
                return Err(ScheduleFault::Turns { rank, finished, announced: own.turns });
            }
        }
        self.verify_result(rank)
    }

    fn verify_result(&mut self, rank: u32) -> Result<(), ScheduleFault> {
        let number = self.ranks[rank as usize].number;
        let (schedule, call) = &self.calls[number];
        let collective = schedule.collective();
        let wanted = after(collective, call, rank, number, &mut self.values);
        let own = &self.ranks[rank as usize];
        for &(element, value) in &wanted {
            let found = own.receive.get(element as usize).copied().unwrap_or(UNDEFINED);
            if found != value {
                return Err(ScheduleFault::Result {
                    rank,
                    element,
                    found: self.values.show(found),
                    wanted: self.values.show(value),
                });
            }
        }
        // What lies between the blocks is not the call's.
        if collective == Collective::Gatherv {
            let named: FxHashSet<u64> = wanted.iter().map(|(element, _)| *element).collect();
            let strays = (0..)
                .zip(&own.receive)
                .find(|(element, value)| **value != UNDEFINED && !named.contains(element));
            if let Some((element, found)) = strays {
                return Err(ScheduleFault::Result {
                    rank,
                    element,
                    found: self.values.show(*found),
                    wanted: "what was there before".into(),
                });
            }
        }
        let has_come = |(came, known): &(&Option<u32>, &u32)| came.is_some_and(|c| c <= **known);
        let arrived = self.came[number].iter().zip(&own.known).filter(has_come).count();
        if collective == Collective::Barrier && arrived < call.ranks as usize {
            return Err(ScheduleFault::Result {
                rank,
                element: 0,
                found: format!("word of {arrived} ranks' coming"),
                wanted: format!("that of all {}", call.ranks),
            });
        }
        Ok(())
    }
}
