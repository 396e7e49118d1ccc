//! The clock: CLOCK_MONOTONIC of the kernel, in nanoseconds.
//!
//! MPI_Wtime may count from each process's own start; the kernel's clock is the same for all
//! processes of one machine, which makes a global time free of any synchronisation there.

use std::fs;

/// Nanoseconds of CLOCK_MONOTONIC.
pub type Nanos = i64;

/// Reads the clock.
#[inline]
pub fn now() -> Nanos {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec; CLOCK_MONOTONIC exists on every Linux, so that the call
    // cannot fail.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
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

/// The smallest step between two different readings, in seconds.
pub fn resolution_seconds() -> f64 {
    const READINGS: usize = 1000;
    let mut last = now();
    let mut least = Nanos::MAX;
    for _ in 0..READINGS {
        let reading = now();
        if reading > last {
            least = least.min(reading - last);
        }
        last = reading;
    }
    seconds(least)
}

/// Names the clock: processes with the same name read the same clock.
///
/// That is the kernel's boot, and the time namespace, which shifts CLOCK_MONOTONIC. Kernels before
/// 5.6 have no time namespaces. Where the boot cannot be read the name is the process's own, and
/// no clock is taken for shared.
pub fn identity() -> String {
    let boot = match fs::read_to_string("/proc/sys/kernel/random/boot_id") {
        Ok(id) => id.trim().to_owned(),
        Err(_) => format!("process {} at {}", std::process::id(), now()),
    };
    let namespace = fs::read_link("/proc/self/ns/time")
        .map(|link| link.to_string_lossy().into_owned())
        .unwrap_or_default();
    format!("{boot} {namespace}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_never_goes_back_and_has_a_step() {
        let first = now();
        assert!(now() >= first);
        let step = resolution_seconds();
        assert!(step > 0.0 && step < 1.0, "{step}");
    }

    #[test]
    fn a_process_agrees_with_itself_about_its_clock() {
        assert_eq!(identity(), identity());
    }
}
