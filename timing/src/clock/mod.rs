//! The clock that times: CLOCK_MONOTONIC of the kernel, in nanoseconds.
//!
//! MPI_Wtime may count from each process's own start; the kernel's clock is the same for all
//! processes of one machine, which makes a global time free of any synchronisation there.
//! Elsewhere the ranks' clocks are brought together by [`crate::synchronisation`].

mod sources;

use std::{
    fs,
    sync::atomic::{AtomicI64, Ordering},
};

use rand::RngExt;
use rand_pcg::Pcg64;

pub use sources::{resolution_seconds, survey};

/// Nanoseconds of CLOCK_MONOTONIC.
pub type Nanos = i64;

/// Reads the clock.
#[inline]
pub fn now() -> Nanos {
    falsified(kernel_now())
}

/// Reads the kernel's clock, even where [`falsify`] has given this process a false one: the
/// referee of its synchronisation.
#[inline]
pub fn kernel_now() -> Nanos {
    read(libc::CLOCK_MONOTONIC)
}

#[inline]
fn read(clock: libc::clockid_t) -> Nanos {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec; the clocks read here exist on every Linux since 2.6.28,
    // so that the call cannot fail.
    unsafe { libc::clock_gettime(clock, &mut time) };
    nanos(time)
}

#[allow(clippy::useless_conversion, reason = "the fields are narrower on 32-bit systems")]
fn nanos(time: libc::timespec) -> Nanos {
    Nanos::from(time.tv_sec) * 1_000_000_000 + Nanos::from(time.tv_nsec)
}

/// A span of the clock in seconds.
pub fn seconds(span: Nanos) -> f64 {
    span as f64 / 1e9
}

static FALSE_OFFSET: AtomicI64 = AtomicI64::new(0);
static FALSE_DRIFT: AtomicI64 = AtomicI64::new(0);
static FALSE_SINCE: AtomicI64 = AtomicI64::new(0);

/// Most that a false clock is off at its start.
const MAX_OFFSET: Nanos = 3_000_000;
/// Most that it gains or loses, in parts per billion.
const MAX_DRIFT: i64 = 20_000;

/// Gives this process a clock that is off by up to 3 ms and drifts by up to 20 ppm, drawn from
/// the seed and the rank: for trying synchronisation where the truth is known.
pub fn falsify(seed: u64, rank: u32) {
    let mut random = Pcg64::new(u128::from(seed), u128::from(rank));
    FALSE_SINCE.store(kernel_now(), Ordering::Relaxed);
    FALSE_OFFSET.store(random.random_range(-MAX_OFFSET..=MAX_OFFSET), Ordering::Relaxed);
    FALSE_DRIFT.store(random.random_range(-MAX_DRIFT..=MAX_DRIFT), Ordering::Relaxed);
}

/// What the (perhaps false) clock shows when the kernel's shows `kernel`.
#[inline]
pub fn falsified(kernel: Nanos) -> Nanos {
    let drift = FALSE_DRIFT.load(Ordering::Relaxed);
    let offset = FALSE_OFFSET.load(Ordering::Relaxed);
    kernel + offset + (kernel - FALSE_SINCE.load(Ordering::Relaxed)) * drift / 1_000_000_000
}

/// What the kernel's clock shows when the (perhaps false) one shows `instant`.
pub fn of_kernel(instant: Nanos) -> Nanos {
    let drift = FALSE_DRIFT.load(Ordering::Relaxed) as f64 / 1e9;
    let since = FALSE_SINCE.load(Ordering::Relaxed);
    let elapsed = instant - FALSE_OFFSET.load(Ordering::Relaxed) - since;
    // Exact without drift; else to a nanosecond.
    since + elapsed - (elapsed as f64 * drift / (1.0 + drift)) as Nanos
}

/// Names the machine: processes with the same name run under the same kernel.
///
/// Where the boot cannot be read the name is the process's own.
pub fn machine() -> String {
    match fs::read_to_string("/proc/sys/kernel/random/boot_id") {
        Ok(id) => id.trim().to_owned(),
        Err(_) => format!("process {} at {}", std::process::id(), kernel_now()),
    }
}

/// Names the clock: processes with the same name read the same clock.
///
/// That is the kernel's boot, and the time namespace, which shifts CLOCK_MONOTONIC. Kernels before
/// 5.6 have no time namespaces.
pub fn identity() -> String {
    let namespace = fs::read_link("/proc/self/ns/time")
        .map(|link| link.to_string_lossy().into_owned())
        .unwrap_or_default();
    format!("{} {namespace}", machine())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_never_goes_back_and_has_a_step() {
        let first = kernel_now();
        assert!(kernel_now() >= first);
        let step = resolution_seconds();
        assert!(step > 0.0 && step < 1.0, "{step}");
    }

    #[test]
    fn a_process_agrees_with_itself_about_its_clock() {
        assert_eq!(identity(), identity());
        assert!(identity().starts_with(&machine()));
    }
}
