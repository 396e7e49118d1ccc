//! Runs all ranks as far as the data flow lets them, in any order.
//!
//! A rank reports messages to its port when it waits for them. Where that says in which order they
//! came, or they hold each other up nowhere, the times are those of [`clock`](super::clock).

use super::{
    Activity, LevelledCosts, Outcome, SimulationError,
    machine::{SimulatedMachine, StepProgress},
    state::SimulatorMemory,
};

impl<C: LevelledCosts, O: FnMut(Activity)> SimulatedMachine<'_, C, O, false> {
    /// All messages are eager. None if the order in which messages came to some port does not
    /// follow from the order in which they are waited for.
    ///
    /// # Errors
    /// The schedule is wrong, or more is under way than can be numbered.
    pub fn run(mut self) -> Result<Option<Outcome>, SimulationError> {
        let mut scratch = self.scratch();
        let mut unfinished = self.call.ranks;
        let mut fresh = self.fresh();
        loop {
            while let Some(rank) = fresh.next().or_else(|| self.memory.ready.pop_front()) {
                match self.go_on(rank, &mut scratch)? {
                    StepProgress::Waits => {}
                    StepProgress::LetsOthers => self.memory.next.push_back(rank),
                    StepProgress::Ended => unfinished -= 1,
                }
                if self.out_of_order {
                    return Ok(None);
                }
            }
            let SimulatorMemory { ready, next, .. } = self.memory;
            std::mem::swap(ready, next);
            if ready.is_empty() {
                return self.outcome(unfinished).map(Some);
            }
        }
    }
}
