use std::io::Write;

use records::progress::Progress;

use crate::clock::{Nanos, now};

/// Progress lines on stdout, at most two a second.
#[derive(Debug)]
pub(crate) struct Reporter {
    step: &'static str,
    of: u64,
    last: Nanos,
}

impl Reporter {
    const MIN_PAUSE: Nanos = 500_000_000;

    pub fn new(step: &'static str, of: u64) -> Self {
        Reporter { step, of, last: now() - Self::MIN_PAUSE }
    }

    /// Says how far the program is, unless it has just said so.
    pub fn update(&mut self, done: u64) {
        if now() - self.last >= Self::MIN_PAUSE {
            self.print(done);
        }
    }

    /// Says where the program ended.
    pub fn finish(&mut self, done: u64) {
        self.print(done);
    }

    fn print(&mut self, done: u64) {
        self.last = now();
        let progress = Progress { step: self.step.into(), done: done.min(self.of), of: self.of };
        let mut out = std::io::stdout().lock();
        // Nobody may be listening any more; that is no reason to stop measuring.
        let _ = writeln!(out, "{}", progress.line()).and_then(|()| out.flush());
    }
}
