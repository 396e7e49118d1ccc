//! The functions of `include/colibri_bench.h`, which says what each does, but those of pairs.
//!
//! The functions rely on what the header asks of C, here "the header's contract":
//! - a pointer is null or leads to what it is declared to, as many as the header says; results have room for as
//!   many, and nothing else uses it during the call;
//! - a text is null or ends in a zero byte;
//! - `comm` is live, and all its ranks make the same call, between `MPI_Init` and `MPI_Finalize`;
//! - an exchange may be called with its state, on `comm`, for any of the sizes.

use std::{
    ffi::{c_char, c_double, c_int, c_void},
    fs,
    path::Path,
};

use records::{Collective, Method};
use runner::{Handle, Session};
use statistics::stopping::Rule;
use timing::{
    adaptive::{AdaptiveSizes, SizeRange},
    exchanges::{CallMaker, CollectiveExchange},
    factors,
    scheme::TimingScheme,
    stopwatch::Stopwatch,
};

use crate::{
    failure::{self, BenchFailure, code_of},
    library,
    pointers::{null, slice, slice_mut, some, some_mut},
    types::{BenchOptions, BenchRange, BenchResult, room, text},
};

/// `colibri_bench_exchange`.
type ExchangeFunction = unsafe extern "C" fn(*mut c_void, Handle);
/// `colibri_bench_sized_exchange`.
type SizedExchangeFunction = unsafe extern "C" fn(*mut c_void, Handle, usize);
/// Times one message size, the same on all ranks.
type TimeSize<'a> = dyn FnMut(&mut Stopwatch, usize, &Rule) -> timing::Result<BenchResult> + 'a;

/// A communicator of the caller's, and how it is measured.
pub struct Measured {
    /// With nothing but what is a handle's.
    pub comm: Handle,
    timing: TimingScheme,
    /// How often an exchange is repeated.
    pub rule: Rule,
}

impl Measured {
    /// As C passed them.
    ///
    /// # Safety
    /// The options must be null or valid for reads.
    ///
    /// # Errors
    /// An option is wrong; there is no MPI library.
    pub unsafe fn new(comm: Handle, options: *const BenchOptions) -> Result<Self, BenchFailure> {
        let (family, _) = library::table()?;
        // SAFETY: `options` is null or valid for reads (contract of this function); any bits are numbers.
        let given = unsafe { options.as_ref() }.copied().unwrap_or_else(BenchOptions::usual);
        let (timing, rule) = given.meaning()?;
        Ok(Measured { comm: library::handle(*family, comm), timing, rule })
    }

    fn stopwatch(&self) -> Result<Stopwatch, BenchFailure> {
        let (_, mpi) = library::table()?;
        // SAFETY: C's communicator, by its header; MPI is initialised.
        Ok(unsafe { Stopwatch::new(mpi, self.comm, self.timing)? })
    }

    /// Times each of the sizes.
    fn sizes(
        &self,
        sizes: &[usize],
        results: &mut [BenchResult],
        time: &mut TimeSize<'_>,
    ) -> Result<(), BenchFailure> {
        let mut stopwatch = self.stopwatch()?;
        for (bytes, result) in sizes.iter().zip(results) {
            *result = time(&mut stopwatch, *bytes, &self.rule)?;
        }
        Ok(())
    }

    /// Times sizes that are found; all of them, ascending.
    fn adaptive(
        &self,
        range: SizeRange,
        time: &mut TimeSize<'_>,
    ) -> Result<Vec<(u64, BenchResult)>, BenchFailure> {
        let mut sizes = AdaptiveSizes::new(range)?;
        let mut stopwatch = self.stopwatch()?;
        let mut found = Vec::new();
        // All ranks find the same, as all get the same means.
        while let Some(bytes) = sizes.next_size() {
            let result = time(&mut stopwatch, bytes as usize, &self.rule)?;
            sizes.record(bytes, result.mean());
            found.push((bytes, result));
        }
        found.sort_by_key(|(bytes, _)| *bytes);
        Ok(found)
    }

    /// Times the sizes of a range, chosen as it goes, and writes their results into C's memory.
    ///
    /// # Safety
    /// Each pointer must be null or valid, `results` for as many as `count` says, and nothing else may use them
    /// meanwhile.
    unsafe fn adaptive_into(
        &self,
        range: *const BenchRange,
        results: *mut BenchResult,
        count: *mut c_int,
        time: &mut TimeSize<'_>,
    ) -> Result<(), BenchFailure> {
        // SAFETY: each is null, which is refused, or valid, `results` for `count` of them (contract of this
        // function).
        unsafe {
            let (range, count) = (some(range)?, some_mut(count)?);
            let most = room(*count, 2)?;
            let results = slice_mut(results, most)?;
            let found = self.adaptive(range.with_room(most), time)?;
            *count = found.len() as c_int;
            for (result, (_, one)) in results.iter_mut().zip(found) {
                *result = one;
            }
        }
        Ok(())
    }
}

/// Times an exchange of the caller's at one size.
///
/// # Safety
/// The function must be one that may be called with this state, on this communicator, for these bytes.
unsafe fn time_exchange(
    stopwatch: &mut Stopwatch,
    exchange: SizedExchangeFunction,
    state: *mut c_void,
    comm: Handle,
    bytes: usize,
    rule: &Rule,
) -> timing::Result<BenchResult> {
    let call = || {
        // SAFETY: `exchange` may be called with this state, on `comm`, for these bytes (contract of this
        // function).
        unsafe { exchange(state, comm, bytes) };
        Ok(())
    };
    Ok(BenchResult::new(bytes, &stopwatch.time(rule, call, |_| Ok(()))?))
}

/// A collective of C's choice, with blocks by C's factors.
struct NamedCollective {
    session: &'static Session,
    exchange: CollectiveExchange,
    comm: Handle,
}

impl NamedCollective {
    /// # Safety
    /// The texts must be null or C strings, `factors` null or as many as `comm`, which must be live, has ranks.
    unsafe fn new(
        comm: Handle,
        collective: *const c_char,
        method: *const c_char,
        factors: *const c_double,
    ) -> Result<Self, BenchFailure> {
        let session = library::session()?;
        // SAFETY: each text is null or a C string (contract of this function).
        let (collective, method) = unsafe {
            let collective = text(collective, "the collective")?.parse::<Collective>();
            let method = match method.is_null() {
                true => Ok(Method::Default),
                false => text(method, "the method")?.parse::<Method>(),
            };
            (collective.map_err(BenchFailure::Refused)?, method)
        };
        let method = method.map_err(|error| BenchFailure::Refused(error.to_string()))?;
        let maker = CallMaker::new(session, collective, &method)?;
        let mut ranks = 0;
        // SAFETY: `comm` is live, MPI is initialised, and `factors` is null or has one for each rank (contract
        // of this function).
        let factors = unsafe {
            let code = (session.mpi().comm_size)(comm, &mut ranks);
            if code != 0 {
                return Err(timing::Error::from(runner::Error::Mpi {
                    call: "MPI_Comm_size",
                    code,
                })
                .into());
            }
            let ranks = room(ranks, 1)?;
            (!factors.is_null()).then(|| slice(factors, ranks)).transpose()?
        };
        let factors = factors.map(<[f64]>::to_vec);
        let exchange = CollectiveExchange::new(session, collective, maker, factors)?;
        Ok(NamedCollective { session, exchange, comm })
    }

    fn time(
        &mut self,
        stopwatch: &mut Stopwatch,
        bytes: usize,
        rule: &Rule,
    ) -> timing::Result<BenchResult> {
        // SAFETY: C's communicator, by its header, whose ranks are the stopwatch's.
        let timed = unsafe { self.exchange.time(stopwatch, self.comm, bytes, rule, |_| Ok(())) };
        Ok(BenchResult::new(bytes, &timed?))
    }

    /// Frees what our methods have hung on the communicator: MPI's own are never freed.
    fn end(self) -> Result<(), BenchFailure> {
        // SAFETY: as above; no call of ours is under way.
        Ok(unsafe { self.session.release(self.comm) }.map_err(timing::Error::from)?)
    }
}

/// See the header.
///
/// # Safety
/// The header's contract (see this module).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn colibri_bench_defaults(options: *mut BenchOptions) {
    // SAFETY: `options` is null or has room for options (the header's contract).
    if let Some(options) = unsafe { options.as_mut() } {
        *options = BenchOptions::usual();
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn colibri_bench_error() -> *const c_char {
    failure::last()
}

/// See the header.
///
/// # Safety
/// The header's contract (see this module).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn colibri_bench_measure(
    comm: Handle,
    options: *const BenchOptions,
    exchange: Option<ExchangeFunction>,
    state: *mut c_void,
    result: *mut BenchResult,
) -> c_int {
    code_of(|| {
        // SAFETY: `options` and `result` are null or valid, `exchange` may be called with `state` on the live
        // `comm` (the header's contract).
        unsafe {
            let measured = Measured::new(comm, options)?;
            let (exchange, result) = (exchange.ok_or_else(null)?, some_mut(result)?);
            let mut stopwatch = measured.stopwatch()?;
            let call = || {
                exchange(state, comm);
                Ok(())
            };
            let summary = stopwatch.time(&measured.rule, call, |_| Ok(()))?;
            *result = BenchResult::new(0, &summary);
            Ok(())
        }
    })
}

/// See the header.
///
/// # Safety
/// The header's contract (see this module).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn colibri_bench_measure_sizes(
    comm: Handle,
    options: *const BenchOptions,
    exchange: Option<SizedExchangeFunction>,
    state: *mut c_void,
    sizes: *const usize,
    count: c_int,
    results: *mut BenchResult,
) -> c_int {
    code_of(|| {
        // SAFETY: `sizes` and `results` are null or have `count` elements, `options` is null or valid,
        // `exchange` may be called with `state` on the live `comm` (the header's contract).
        unsafe {
            let measured = Measured::new(comm, options)?;
            let (exchange, count) = (exchange.ok_or_else(null)?, room(count, 1)?);
            let (sizes, results) = (slice(sizes, count)?, slice_mut(results, count)?);
            measured.sizes(sizes, results, &mut |stopwatch, bytes, rule| {
                time_exchange(stopwatch, exchange, state, comm, bytes, rule)
            })
        }
    })
}

/// See the header.
///
/// # Safety
/// The header's contract (see this module).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn colibri_bench_measure_adaptive(
    comm: Handle,
    options: *const BenchOptions,
    exchange: Option<SizedExchangeFunction>,
    state: *mut c_void,
    range: *const BenchRange,
    results: *mut BenchResult,
    count: *mut c_int,
) -> c_int {
    code_of(|| {
        // SAFETY: `range`, `count` and `options` are null or valid, `results` null or of `*count` elements,
        // `exchange` may be called with `state` on the live `comm` (the header's contract).
        unsafe {
            let measured = Measured::new(comm, options)?;
            let exchange = exchange.ok_or_else(null)?;
            measured.adaptive_into(range, results, count, &mut |stopwatch, bytes, rule| {
                time_exchange(stopwatch, exchange, state, comm, bytes, rule)
            })
        }
    })
}

/// See the header.
///
/// # Safety
/// The header's contract (see this module).
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments, reason = "C has them one by one")]
pub unsafe extern "C" fn colibri_bench_collective(
    comm: Handle,
    options: *const BenchOptions,
    collective: *const c_char,
    method: *const c_char,
    factors: *const c_double,
    sizes: *const usize,
    count: c_int,
    results: *mut BenchResult,
) -> c_int {
    code_of(|| {
        // SAFETY: `sizes` and `results` are null or have `count` elements, `factors` is null or has one for
        // each rank of the live `comm`, texts are null or C strings (the header's contract).
        unsafe {
            let measured = Measured::new(comm, options)?;
            let count = room(count, 1)?;
            let (sizes, results) = (slice(sizes, count)?, slice_mut(results, count)?);
            let mut named = NamedCollective::new(measured.comm, collective, method, factors)?;
            let timed = measured.sizes(sizes, results, &mut |stopwatch, bytes, rule| {
                named.time(stopwatch, bytes, rule)
            });
            timed.and(named.end())
        }
    })
}

/// See the header.
///
/// # Safety
/// The header's contract (see this module).
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments, reason = "C has them one by one")]
pub unsafe extern "C" fn colibri_bench_collective_adaptive(
    comm: Handle,
    options: *const BenchOptions,
    collective: *const c_char,
    method: *const c_char,
    factors: *const c_double,
    range: *const BenchRange,
    results: *mut BenchResult,
    count: *mut c_int,
) -> c_int {
    code_of(|| {
        // SAFETY: `range` and `count` are null or valid, `results` is null or has `*count` elements, `factors`
        // one for each rank of the live `comm`, texts are null or C strings (the header's contract).
        unsafe {
            let measured = Measured::new(comm, options)?;
            let mut named = NamedCollective::new(measured.comm, collective, method, factors)?;
            let timed =
                measured.adaptive_into(range, results, count, &mut |stopwatch, bytes, rule| {
                    named.time(stopwatch, bytes, rule)
                });
            timed.and(named.end())
        }
    })
}

/// See the header.
///
/// # Safety
/// The header's contract (see this module).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn colibri_bench_factors(
    file: *const c_char,
    factors: *mut c_double,
    count: c_int,
) -> c_int {
    code_of(|| {
        // SAFETY: `file` is null or a C string, `factors` is null or has room for `count` of them (the header's
        // contract).
        let (path, into) = unsafe {
            (Path::new(text(file, "the file's name")?), slice_mut(factors, room(count, 1)?)?)
        };
        let refused = |problem: String| BenchFailure::Refused(problem);
        let read = fs::read_to_string(path);
        let read = read.map_err(|error| refused(format!("{}: {error}", path.display())))?;
        let found = factors::parse(&read, path).map_err(|error| refused(error.to_string()))?;
        if found.len() != into.len() {
            let (path, found, wanted) = (path.display(), found.len(), into.len());
            return Err(refused(format!("{path}: {found} factors; expected {wanted}")));
        }
        into.copy_from_slice(&found);
        Ok(())
    })
}
