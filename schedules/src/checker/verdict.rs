//! Whether all ranks have ended, and with what they should.

use records::Collective;
use rustc_hash::FxHashSet;

use super::{
    expectation::after,
    fault::{Blocked, ScheduleFault, Traffic},
    machine::CheckingMachine,
    memory::{CheckedRank, CheckedSlot},
    schedule::CheckedSchedule,
    values::UNDEFINED,
};

impl<S: CheckedSchedule> CheckingMachine<'_, S> {
    /// What the ranks did, when none can go on.
    ///
    /// # Errors
    /// A rank waits forever, has a slot that was not waited for, or holds a wrong result.
    pub fn verdict(mut self) -> Result<Traffic, ScheduleFault> {
        self.verify_end()?;
        self.verify_results()?;
        Ok(self.traffic)
    }

    fn verify_end(&self) -> Result<(), ScheduleFault> {
        let blocked = |(rank, own): (usize, &CheckedRank<'_>)| {
            let slot = own.waits_for.filter(|_| !own.done)?;
            match own.slots[slot as usize] {
                CheckedSlot::Idle => None,
                CheckedSlot::Send { peer, .. } => {
                    Some(Blocked { rank: rank as u32, peer, sending: true })
                }
                CheckedSlot::Receive { peer, .. } => {
                    Some(Blocked { rank: rank as u32, peer, sending: false })
                }
            }
        };
        let blocked: Vec<_> = self.ranks.iter().enumerate().filter_map(blocked).collect();
        if !blocked.is_empty() {
            return Err(ScheduleFault::Deadlock(blocked));
        }
        for (rank, own) in self.ranks.iter().enumerate() {
            let busy = own.slots.iter().position(|slot| !matches!(slot, CheckedSlot::Idle));
            if let Some(slot) = busy {
                return Err(ScheduleFault::Unwaited { rank: rank as u32, slot: slot as u32 });
            }
        }
        Ok(())
    }

    fn verify_results(&mut self) -> Result<(), ScheduleFault> {
        for rank in 0..self.call.ranks {
            let wanted = after(self.schedule.collective(), self.call, rank, &mut self.values);
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
            if self.schedule.collective() == Collective::Gatherv {
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
            let arrived = own.known.iter().filter(|posts| **posts > 0).count();
            let is_barrier = self.schedule.collective() == Collective::Barrier;
            if is_barrier && arrived < self.call.ranks as usize {
                return Err(ScheduleFault::Result {
                    rank,
                    element: 0,
                    found: format!("word of {arrived} ranks' coming"),
                    wanted: format!("that of all {}", self.call.ranks),
                });
            }
        }
        Ok(())
    }
}
