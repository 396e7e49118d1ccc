//! How long to sleep before a frame is due.
//!
//! Whoever sleeps until an instant wakes up tens of microseconds after it: the timer, the scheduler and, on
//! a virtual machine, its host all take their time. So the switch wakes up earlier and looks at the clock
//! until the instant has come. That takes a processor from the nodes: it is done only where frames are
//! far apart. Where they are close together processors are awake anyhow.

use colibri_switch::Nanoseconds;

/// What waking up took at the 99th percentile, on a virtual machine.
const WAKING: Nanoseconds = 60_000;

/// Between deliveries there must be so many times [`WAKING`]: the clock is looked at in at most as small
/// a part of the time.
const REST: Nanoseconds = 4;

/// How long to sleep at `now` before a frame is due, given when one was last delivered; 0 means to look
/// at the clock again at once.
pub fn sleep_before_delivery(
    now: Nanoseconds,
    due: Nanoseconds,
    delivered: Nanoseconds,
) -> Nanoseconds {
    let left = due.saturating_sub(now);
    match due.saturating_sub(delivered) >= REST * WAKING {
        true => left.saturating_sub(WAKING),
        false => left,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lone_frame_is_awaited_awake_and_one_among_many_asleep() {
        assert_eq!(sleep_before_delivery(1_000_000, 2_000_000, 900_000), 1_000_000 - WAKING);
        assert_eq!(sleep_before_delivery(1_950_000, 2_000_000, 900_000), 0, "it is close");
        assert_eq!(sleep_before_delivery(2_100_000, 2_000_000, 900_000), 0, "it is late");
        assert_eq!(sleep_before_delivery(1_900_000, 2_000_000, 1_880_000), 100_000, "a stream");
    }
}
