//! The clocks that a rank could read, and how finely each sees.

use records::platform::ClockSource;

use super::read;

/// Every clock at hand: the kernel's, MPI's (`wtime`, in seconds), the processor's.
pub fn survey(wtime: impl FnMut() -> f64) -> Vec<ClockSource> {
    let source = |name: &str, (resolution_seconds, cost_seconds): (f64, f64)| ClockSource {
        name: name.into(),
        resolution_seconds,
        cost_seconds,
    };
    let mut sources = vec![
        source("CLOCK_MONOTONIC", of_kernel(libc::CLOCK_MONOTONIC)),
        source("CLOCK_MONOTONIC_RAW", of_kernel(libc::CLOCK_MONOTONIC_RAW)),
        source("MPI_Wtime", steps(wtime)),
    ];
    if let Some(steps) = tsc() {
        sources.push(source("rdtscp", steps));
    }
    sources
}

/// The smallest step between two different readings of the clock that times, in seconds.
pub fn resolution_seconds() -> f64 {
    of_kernel(libc::CLOCK_MONOTONIC).0
}

/// Step and cost of one of the kernel's clocks, counted from now on, where a reading in floating
/// point has digits enough.
fn of_kernel(clock: libc::clockid_t) -> (f64, f64) {
    let begun = read(clock);
    steps(|| (read(clock) - begun) as f64 / 1e9)
}

const READINGS: usize = 1000;

/// The smallest step between two different readings, and what one reading costs, in seconds; the
/// cost by the kernel's clock.
fn steps(mut reading: impl FnMut() -> f64) -> (f64, f64) {
    let begun = read(libc::CLOCK_MONOTONIC);
    let mut last = reading();
    let mut least = f64::INFINITY;
    let mut made = 0;
    // A clock so coarse that it stands still for all readings is watched until it moves.
    while made < READINGS || (least.is_infinite() && made < 1000 * READINGS) {
        let next = reading();
        if next > last {
            least = least.min(next - last);
        }
        last = next;
        made += 1;
    }
    let cost = (read(libc::CLOCK_MONOTONIC) - begun) as f64 / 1e9 / made as f64;
    (if least.is_finite() { least } else { 0.0 }, cost)
}

/// The processor's time stamp counter where it is invariant: its rate, taken against the kernel's
/// clock over some milliseconds, turns steps into seconds.
#[cfg(target_arch = "x86_64")]
fn tsc() -> Option<(f64, f64)> {
    use std::arch::x86_64::__rdtscp;

    // At one rate in every state of the processor, and never stopped.
    const INVARIANT: [&str; 3] = ["constant_tsc", "nonstop_tsc", "rdtscp"];
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let flags: Vec<&str> =
        cpuinfo.lines().find(|line| line.starts_with("flags"))?.split_whitespace().collect();
    if !INVARIANT.iter().all(|flag| flags.contains(flag)) {
        return None;
    }
    let count = || {
        let mut processor = 0;
        // SAFETY: the processor has the instruction; it writes the number given to it.
        unsafe { __rdtscp(&mut processor) }
    };
    let (begun, first) = (read(libc::CLOCK_MONOTONIC), count());
    crate::sleep::sleep_until(super::now() + 5_000_000);
    let (ended, last) = (read(libc::CLOCK_MONOTONIC), count());
    let seconds_per_count = (ended - begun) as f64 / 1e9 / (last - first) as f64;
    Some(steps(move || (count() - first) as f64 * seconds_per_count))
}

#[cfg(not(target_arch = "x86_64"))]
fn tsc() -> Option<(f64, f64)> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_step_of_a_clock_is_its_smallest() {
        let ticks = std::cell::Cell::new(0_u32);
        let coarse = || {
            ticks.set(ticks.get() + 1);
            // Every third reading moves on, by 1 or by 2.
            f64::from(ticks.get() / 3 + ticks.get() / 6)
        };
        assert_eq!(steps(coarse).0, 1.0);
        assert_eq!(steps(|| 7.0).0, 0.0, "a clock that stands still has no step");
    }
}
