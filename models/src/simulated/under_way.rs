//! How far a long simulation is.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use schedules::simulator::{Activity, ActivityKind};

/// How far the long simulation under way is: steps done, and about how many there are (0: there is
/// none). For whoever shows it; of several at once it tells of one.
#[derive(Debug, Default)]
pub struct UnderWay {
    done: AtomicU64,
    of: AtomicU64,
}

/// How far this process is.
pub static UNDER_WAY: UnderWay = UnderWay { done: AtomicU64::new(0), of: AtomicU64::new(0) };

impl UnderWay {
    /// Steps done, and steps in all, where a long simulation is under way.
    pub fn steps(&self) -> Option<(u64, u64)> {
        let of = self.of.load(Relaxed);
        (of > 0).then(|| (self.done.load(Relaxed).min(of), of))
    }

    pub(super) fn begin(&self, steps: f64) {
        self.done.store(0, Relaxed);
        self.of.store(steps as u64, Relaxed);
    }

    pub(super) fn end(&self) {
        self.of.store(0, Relaxed);
    }

    /// Counts what is observed.
    pub(super) fn counting(&self) -> impl FnMut(Activity) {
        const AT_ONCE: u64 = 1 << 16;
        let mut steps = 0;
        move |activity| {
            steps += u64::from(activity.kind != ActivityKind::Wait);
            if steps == AT_ONCE {
                self.done.fetch_add(AT_ONCE, Relaxed);
                steps = 0;
            }
        }
    }
}
