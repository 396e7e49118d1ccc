//! What C passes, as `include/colibri_bench.h` lays it out.

use std::ffi::{CStr, c_char, c_double, c_int};

use statistics::stopping::Rule;
use timing::{
    adaptive::SizeRange,
    repeating::{TimedSummary, USUAL, check},
    scheme::TimingScheme,
};

use crate::failure::BenchFailure;

/// `colibri_bench_options`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct BenchOptions {
    timing: c_int,
    min_repetitions: c_int,
    max_repetitions: c_int,
    confidence: c_double,
    relative_error: c_double,
}

impl BenchOptions {
    /// The usual ones.
    pub fn usual() -> Self {
        BenchOptions {
            timing: 0,
            min_repetitions: USUAL.minimum as c_int,
            max_repetitions: USUAL.maximum as c_int,
            confidence: USUAL.confidence,
            relative_error: USUAL.relative_error,
        }
    }

    /// What they mean.
    ///
    /// # Errors
    /// One is out of its range.
    pub fn meaning(&self) -> Result<(TimingScheme, Rule), BenchFailure> {
        let number = |given: c_int| usize::try_from(given).unwrap_or_default();
        let rule = Rule {
            minimum: number(self.min_repetitions),
            maximum: number(self.max_repetitions),
            confidence: self.confidence,
            relative_error: self.relative_error,
            ..USUAL
        };
        check(&rule)?;
        let timing = usize::try_from(self.timing).ok().and_then(|at| TimingScheme::ALL.get(at));
        let unknown = || BenchFailure::Refused(format!("timing {}; expected 0 to 4", self.timing));
        Ok((*timing.ok_or_else(unknown)?, rule))
    }
}

/// `colibri_bench_result`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct BenchResult {
    bytes: usize,
    mean: c_double,
    median: c_double,
    low: c_double,
    high: c_double,
    wtick: c_double,
    repetitions: c_int,
    precise: c_int,
}

impl BenchResult {
    /// Of messages of `bytes`.
    pub fn new(bytes: usize, summary: &TimedSummary) -> Self {
        BenchResult {
            bytes,
            mean: summary.mean_seconds,
            median: summary.median_seconds,
            low: summary.mean_seconds - summary.half_width_seconds,
            high: summary.mean_seconds + summary.half_width_seconds,
            wtick: summary.resolution_seconds,
            repetitions: summary.repetitions as c_int,
            precise: c_int::from(summary.precise),
        }
    }

    /// What sizes are found by.
    pub fn mean(&self) -> f64 {
        self.mean
    }
}

/// `colibri_bench_pair`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct BenchPair {
    /// The lesser rank.
    pub one: c_int,
    /// The other one.
    pub other: c_int,
    /// Of half a round trip.
    pub result: BenchResult,
}

/// `colibri_bench_range`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct BenchRange {
    first: usize,
    last: usize,
    stride: usize,
    greatest_difference: c_double,
}

impl BenchRange {
    /// With room for so many sizes.
    pub fn with_room(&self, most: usize) -> SizeRange {
        SizeRange {
            first: self.first as u64,
            last: self.last as u64,
            stride: self.stride as u64,
            greatest_difference: self.greatest_difference,
            most,
        }
    }
}

/// A text of the caller's.
///
/// # Safety
/// It must be null or a C string, which stays as it is while the text is used.
///
/// # Errors
/// It is null or no UTF-8.
pub unsafe fn text<'a>(given: *const c_char, what: &str) -> Result<&'a str, BenchFailure> {
    let wrong =
        |problem: &str| BenchFailure::Refused(format!("{what} is {problem}; expected a text"));
    if given.is_null() {
        return Err(wrong("null"));
    }
    // SAFETY: `given` is not null, and so a C string (contract of this function).
    unsafe { CStr::from_ptr(given) }.to_str().map_err(|_| wrong("not UTF-8"))
}

/// A number of things for which the caller has room.
///
/// # Errors
/// It is below `least`.
pub fn room(count: c_int, least: usize) -> Result<usize, BenchFailure> {
    let enough = usize::try_from(count).ok().filter(|count| *count >= least);
    enough.ok_or_else(|| {
        BenchFailure::Refused(format!("a count of {count}; expected at least {least}"))
    })
}
