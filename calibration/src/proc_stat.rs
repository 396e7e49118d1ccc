//! What the kernel counts of its processors' time, in the first line of /proc/stat.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// In the environment: a file to read in the place of /proc/stat. For tests, which cannot make a hypervisor take
/// processors away; one without counters (/dev/null) makes the kernel tell nothing.
pub const STAND_IN: &str = "COLIBRI_PROC_STAT";

/// The file to read.
pub fn path() -> PathBuf {
    std::env::var_os(STAND_IN).map_or_else(|| "/proc/stat".into(), PathBuf::from)
}

/// Processor time since boot, summed over the processors, in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticks {
    /// All of it.
    pub all: u64,
    /// Idle, or waiting for disks.
    pub idle: u64,
    /// Used by processes and the kernel for them. What processes of low priority (nice) use is not among it, as
    /// they get what others leave, and interrupts are not, as they serve the network.
    pub used: u64,
    /// Given to others by the hypervisor; absent where the kernel does not count it (before 2.6.11).
    pub stolen: Option<u64>,
}

/// The kernel's counters now; nothing where it does not tell.
pub fn read(path: &Path) -> Option<Ticks> {
    ticks(fs::read_to_string(path).ok()?.lines().next()?)
}

/// Seconds of a tick.
pub fn tick_seconds() -> f64 {
    // SAFETY: sysconf takes a number and touches no memory.
    let per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    if per_second > 0 { 1.0 / per_second as f64 } else { 0.01 }
}

/// The first line of /proc/stat: user, nice, system, idle, waiting for disks, interrupts, soft
/// interrupts, stolen by the host (proc_stat(5)); what follows is contained in these.
fn ticks(line: &str) -> Option<Ticks> {
    let fields = line.strip_prefix("cpu ")?.split_whitespace().take(8);
    let ticks: Vec<u64> = fields.map(str::parse).collect::<Result<_, _>>().ok()?;
    let idle = ticks.get(3)?.checked_add(*ticks.get(4)?)?;
    Some(Ticks {
        all: ticks.iter().try_fold(0_u64, |sum, part| sum.checked_add(*part))?,
        idle,
        used: ticks[0].checked_add(ticks[2])?,
        stolen: ticks.get(7).copied(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_is_read_and_something_else_is_none() {
        let line = "cpu  10 1 5 100 4 0 2 3 9 9";
        assert_eq!(ticks(line), Some(Ticks { all: 125, idle: 104, used: 15, stolen: Some(3) }));
        let old = ticks("cpu  10 1 5 100 4 0 2").unwrap();
        assert_eq!((old.all, old.stolen), (122, None), "not counted, and not 0");
        assert_eq!(ticks("intr 1 2 3"), None);
        assert_eq!(ticks("cpu  1 2 x"), None);
        assert_eq!(ticks("cpu  1 2 18446744073709551615 1 1"), None);
        assert_eq!(read(Path::new("/dev/null")), None);
        assert!(read(Path::new("/proc/stat")).is_some());
    }
}
