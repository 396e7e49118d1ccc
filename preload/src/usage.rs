//! Which calls the application made, and what carried them out.

use std::{collections::HashMap, ptr, sync::Mutex, time::Duration};

use records::{Collective, Layout, Method, Point, usage::Calls};

use runner::Runnable;

use crate::lock::lock;

/// Kinds of call that are kept apart; later ones are kept by the power of two below their size.
const KINDS: usize = 10_000;

/// One kind of call. A choice lives as long as the process: its address stands for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct CallKind {
    point: Point,
    choice: Option<*const Runnable>,
}

// SAFETY: the address is of a value that lives on and never changes.
unsafe impl Send for CallKind {}

#[derive(Debug, Clone, Copy, Default)]
struct CallTally {
    calls: u64,
    time: Duration,
}

/// What this process has done.
#[derive(Debug, Default)]
pub struct UsageCounts(Mutex<HashMap<CallKind, CallTally>>);

impl UsageCounts {
    /// One call; no choice if the library carried it out.
    pub fn note(
        &self,
        collective: Collective,
        layout: Layout,
        bytes: u64,
        choice: Option<&'static Runnable>,
        time: Duration,
    ) {
        let mut kinds = lock(&self.0);
        let point = Point { collective, layout, bytes };
        let mut kind = CallKind { point, choice: choice.map(ptr::from_ref) };
        if kinds.len() >= KINDS && !kinds.contains_key(&kind) {
            kind.point.bytes = bytes.checked_ilog2().map_or(0, |power| 1 << power);
        }
        let tally = kinds.entry(kind).or_default();
        tally.calls += 1;
        tally.time += time;
    }

    /// As a document of this process alone.
    pub fn calls(&self) -> Vec<Calls> {
        let kinds = lock(&self.0);
        let calls = kinds.iter().map(|(kind, tally)| Calls {
            point: kind.point,
            method: kind.choice.map_or(Method::Default, |choice| {
                // SAFETY: see `Kind`.
                unsafe { &*choice }.method()
            }),
            calls: tally.calls,
            seconds: tally.time.as_secs_f64(),
        });
        calls.collect()
    }
}
