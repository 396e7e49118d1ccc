//! The clock, read as fast as it can be: a timed call's processor has hardly any of our code at hand, so that what the
//! standard library's instants check and convert takes longer than the reading.

/// When something began, by the system's monotonic clock.
#[derive(Debug, Clone, Copy)]
pub struct Nanoseconds(u64);

impl Nanoseconds {
    #[inline(always)]
    pub fn now() -> Self {
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the output is a local. This clock is there on every Linux: the call can't fail.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
        // Both are at least 0, and it takes centuries until they don't fit.
        Nanoseconds((now.tv_sec as u64).wrapping_mul(1_000_000_000) + now.tv_nsec as u64)
    }

    /// How many have passed since.
    #[inline(always)]
    pub fn elapsed(self) -> u64 {
        Self::now().0.saturating_sub(self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        thread,
        time::{Duration, Instant},
    };

    use super::*;

    #[test]
    fn it_goes_as_the_standard_library_s() {
        let outer = Instant::now();
        let begun = Nanoseconds::now();
        let inner = Instant::now();
        thread::sleep(Duration::from_millis(20));
        let least = inner.elapsed().as_nanos() as u64;
        let passed = begun.elapsed();
        let most = outer.elapsed().as_nanos() as u64;
        assert!((least..=most).contains(&passed), "{least} {passed} {most}");
    }
}
