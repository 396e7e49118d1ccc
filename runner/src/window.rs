//! How far a rank is ahead of those that it sends to.

use rustc_hash::FxHashMap;

/// What a rank has sent in a call.
///
/// A short message is complete for its sender as soon as it is on its way. A rank that waits for nobody, such as a
/// leaf of a reduce, would send all segments of a long message so, and the receiver look for each among all that
/// came before their receives were posted. So when a rank has been sent many, one of every [`Window::MESSAGES`]
/// is synchronous: it is complete when its receive is posted, and the sender waits for that.
///
/// Any send may be synchronous: schedules are checked with sends that are complete no sooner.
#[derive(Debug)]
pub(crate) struct Window {
    /// Messages from one synchronous one to the next.
    length: u32,
    /// To all ranks.
    sent: u64,
    /// To each rank, from when so many as a window holds were sent to all.
    sent_to: FxHashMap<u32, u64>,
}

impl Window {
    /// Messages to one rank. None of the first 512 is synchronous: 4 MiB in segments of 8 KiB.
    ///
    /// MPICH 4.0 looks at all that came too early for each receive. There, Reduce of 25 MB in 1 KiB segments on 4
    /// ranks takes more than 2 s without a window; 25 to 40 ms with 128 messages, up to 60 with 256, 130 with 1024.
    /// With fewer the sender waits more often for a round trip, where nobody is late, too.
    pub const MESSAGES: u32 = 256;

    pub fn new(length: u32) -> Self {
        Window { length, sent: 0, sent_to: FxHashMap::default() }
    }

    /// Nothing has been sent yet.
    #[inline]
    pub fn begin_call(&mut self) {
        if self.sent > u64::from(self.length) {
            self.sent_to.clear();
        }
        self.sent = 0;
    }

    /// Counts a message to a rank; whether it is to be synchronous. Whom the first ones go to is not looked at, so
    /// that calls of few messages touch little memory.
    #[inline]
    pub fn is_full_by_sending_to(&mut self, peer: u32) -> bool {
        self.sent += 1;
        self.sent > u64::from(self.length) && self.is_full_to(peer)
    }

    #[cold]
    fn is_full_to(&mut self, peer: u32) -> bool {
        let sent = self.sent_to.entry(peer).or_default();
        *sent += 1;
        let length = u64::from(self.length);
        *sent > length && sent.is_multiple_of(length)
    }
}

impl Default for Window {
    fn default() -> Self {
        Window::new(Window::MESSAGES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages to each of so many ranks in turn, of which that is told which are synchronous to the first.
    fn synchronous(window: &mut Window, ranks: u32, messages: u64) -> Vec<u64> {
        window.begin_call();
        let mut found = Vec::new();
        for message in 1..=messages {
            for rank in 0..ranks {
                if window.is_full_by_sending_to(rank) && rank == 0 {
                    found.push(message);
                }
            }
        }
        found
    }

    #[test]
    fn one_in_a_window_is_synchronous_when_two_are_full() {
        let mut window = Window::default();
        for ranks in 1..20 {
            assert_eq!(synchronous(&mut window, ranks, 512), [0; 0], "{ranks}");
        }
        assert_eq!(synchronous(&mut window, 1, 1300), [768, 1024, 1280]);
        assert_eq!(synchronous(&mut window, 2, 1200), [640, 896, 1152]);
    }
}
