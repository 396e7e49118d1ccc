//! Looking for messages without burning a core.

use crate::{
    clock::{Nanos, now},
    launcher,
    sleep::sleep_until,
};

/// How eagerly a rank looks for a message: the longer it has waited, the longer it sleeps between
/// two looks.
///
/// A sleep is an eighth of the time waited so far, so that a message is noticed soon and a
/// transfer still under way in the background of MPI is not held up much, but never shorter than
/// 50 us and never longer than `longest`.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    since: Nanos,
    longest: Nanos,
}

impl Patience {
    const SHORTEST: Nanos = 50_000;

    /// For a rank that takes part in what is measured.
    pub fn of_participant() -> Self {
        Patience { since: now(), longest: 5_000_000 }
    }

    /// For a rank that is called every few milliseconds, while few others are awake.
    pub fn of_player() -> Self {
        Patience { since: now(), longest: 1_500_000 }
    }

    /// For a rank that has nothing to do for the whole run.
    pub fn of_bystander() -> Self {
        Patience { since: now(), longest: 20_000_000 }
    }

    /// Sleeps until the next look; ends the rank if its launcher is gone.
    pub fn sleep(&self) {
        launcher::end_if_gone();
        let now = now();
        sleep_until(now + self.pause(now - self.since));
    }

    fn pause(&self, waited: Nanos) -> Nanos {
        (waited / 8).clamp(Self::SHORTEST, self.longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_become_rare_with_the_time_waited() {
        let patience = Patience::of_participant();
        let pauses = [0, 1_000_000, 10_000_000, 1_000_000_000].map(|waited| patience.pause(waited));
        assert_eq!(pauses, [50_000, 125_000, 1_250_000, 5_000_000]);
    }
}
