//! Polling for messages without keeping a core busy.

use crate::{
    clock::{Nanos, now},
    launcher,
    sleep::sleep_until,
};

/// How long a rank sleeps between two probes for a message: the longer, the longer it has waited.
///
/// A pause is an eighth of the time waited so far, at least 50 us and at most `longest`. So a message is
/// noticed soon, and a transfer that MPI makes in the background is hardly held up.
#[derive(Debug, Clone, Copy)]
pub struct PollingPause {
    since: Nanos,
    longest: Nanos,
}

impl PollingPause {
    const SHORTEST: Nanos = 50_000;

    /// For a rank that takes part in what is measured.
    pub fn for_participant() -> Self {
        PollingPause { since: now(), longest: 5_000_000 }
    }

    /// For a rank that is called every few milliseconds, while few others are awake.
    pub fn for_frequent_messages() -> Self {
        PollingPause { since: now(), longest: 1_500_000 }
    }

    /// For a rank that has nothing to do for the whole run.
    pub fn for_idle_rank() -> Self {
        PollingPause { since: now(), longest: 20_000_000 }
    }

    /// Sleeps until the next probe; ends the rank if its launcher is gone.
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
    fn probes_become_rare_with_the_time_waited() {
        let pause = PollingPause::for_participant();
        let pauses = [0, 1_000_000, 10_000_000, 1_000_000_000].map(|waited| pause.pause(waited));
        assert_eq!(pauses, [50_000, 125_000, 1_250_000, 5_000_000]);
    }
}
