//! Which processors the two ranks of the pair run on where they share a machine.
//!
//! Two ranks on one processor exchange messages by taking turns on it, which is another thing than
//! a message between processors: half the round trip, and a send that lasts until the receiver is
//! through. A scheduler that may move ranks puts them now on one processor, now on two, for some
//! milliseconds each. So while the pair is measured each of the two is held on a processor of its
//! own. Ranks that their launcher has bound apart, and ranks of different machines, are left alone.

use std::{io, mem};

use serde::{Deserialize, Serialize};

use crate::{
    Result, clock,
    exchange::{Communicator, Tag},
};

/// Where a rank may run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct RankLocation {
    machine: String,
    /// Numbers of processors, ascending; empty where the system does not tell.
    processors: Vec<usize>,
}

/// This rank's processor while the pair is measured.
#[derive(Debug)]
pub struct Placement {
    /// Where the rank may run else, and where it is held; nothing where it is not to be held.
    held: Option<(libc::cpu_set_t, usize)>,
}

impl Placement {
    /// At the sender: agrees with the mirror. Odd jobs take the processors the other way round.
    ///
    /// # Errors
    /// The MPI library refuses.
    pub fn agree(comm: &Communicator, mirror: u32, job: u32) -> Result<Self> {
        let theirs: RankLocation = comm.receive_value(mirror, Tag::Setup)?;
        let chosen = choose(&RankLocation::own(), &theirs, job);
        comm.send_value(&chosen.map(|(_, mirrors)| mirrors), mirror, Tag::Setup)?;
        Ok(Self::new(chosen.map(|(senders, _)| senders)))
    }

    /// At the mirror.
    ///
    /// # Errors
    /// The MPI library refuses.
    pub fn receive(comm: &Communicator, sender: u32) -> Result<Self> {
        comm.send_value(&RankLocation::own(), sender, Tag::Setup)?;
        Ok(Self::new(comm.receive_value(sender, Tag::Setup)?))
    }

    /// Of a rank that is not of the pair.
    pub fn free() -> Self {
        Placement { held: None }
    }

    fn new(processor: Option<usize>) -> Self {
        let held = processor.and_then(|processor| Some((allowed().ok()?, processor)));
        let placement = Placement { held };
        placement.hold(true);
        placement
    }

    /// Holds the rank on its processor, or lets it go where it may.
    pub fn hold(&self, hold: bool) {
        let Some((mut set, processor)) = self.held else { return };
        if hold {
            // SAFETY: an all-zero set is the empty one; the number came out of a set.
            unsafe {
                set = mem::zeroed();
                libc::CPU_SET(processor, &mut set);
            }
        }
        // SAFETY: the set lives through the call; 0 is this thread. A system that refuses leaves
        // the rank where it was, as if it were not to be held.
        unsafe { libc::sched_setaffinity(0, size_of_val(&set), &set) };
    }
}

impl Drop for Placement {
    fn drop(&mut self) {
        self.hold(false);
    }
}

impl RankLocation {
    fn own() -> Self {
        let processors = allowed().map(|set| members(&set)).unwrap_or_default();
        RankLocation { machine: clock::machine(), processors }
    }
}

fn allowed() -> io::Result<libc::cpu_set_t> {
    // SAFETY: the set is as large as announced, and read only if the call has filled it.
    unsafe {
        let mut set = mem::zeroed();
        match libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) {
            0 => Ok(set),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

fn members(set: &libc::cpu_set_t) -> Vec<usize> {
    let most = 8 * size_of_val(set);
    // SAFETY: the numbers are within the set.
    (0..most).filter(|&processor| unsafe { libc::CPU_ISSET(processor, set) }).collect()
}

/// Different processors for the sender and the mirror, where they might come upon the same.
fn choose(sender: &RankLocation, mirror: &RankLocation, job: u32) -> Option<(usize, usize)> {
    let shared = |processor: &usize| mirror.processors.contains(processor);
    if sender.machine != mirror.machine || !sender.processors.iter().any(shared) {
        return None;
    }
    let turned = |processors: &[usize]| -> Vec<usize> {
        match job % 2 {
            0 => processors.to_vec(),
            _ => processors.iter().rev().copied().collect(),
        }
    };
    let theirs = turned(&mirror.processors);
    turned(&sender.processors).into_iter().find_map(|own| {
        let other = theirs.iter().find(|other| **other != own)?;
        Some((own, *other))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(machine: &str, processors: &[usize]) -> RankLocation {
        RankLocation { machine: machine.into(), processors: processors.into() }
    }

    #[test]
    fn ranks_that_could_meet_are_kept_apart() {
        let any = place("a", &[0, 1]);
        assert_eq!(choose(&any, &any, 0), Some((0, 1)));
        assert_eq!(choose(&any, &any, 1), Some((1, 0)));
        assert_eq!(choose(&any, &place("b", &[0, 1]), 0), None, "another machine");
        assert_eq!(choose(&any, &place("a", &[2, 3]), 0), None, "bound apart");
        assert_eq!(choose(&place("a", &[0]), &any, 0), Some((0, 1)));
        assert_eq!(choose(&any, &place("a", &[0]), 0), Some((1, 0)));
        assert_eq!(choose(&place("a", &[0]), &place("a", &[0]), 0), None, "there is but one");
        assert_eq!(choose(&place("a", &[]), &any, 0), None);
    }

    #[test]
    fn a_rank_is_held_and_let_go() {
        // In a thread of its own: the affinity is the thread's.
        std::thread::spawn(|| {
            let before = members(&allowed().unwrap());
            let last = *before.last().unwrap();
            let placement = Placement::new(Some(last));
            assert_eq!(members(&allowed().unwrap()), [last]);
            placement.hold(false);
            assert_eq!(members(&allowed().unwrap()), before);
        })
        .join()
        .unwrap();
    }
}
