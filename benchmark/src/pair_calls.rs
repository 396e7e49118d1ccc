//! The functions of `include/colibri_bench.h` that time messages between pairs of ranks.

use std::ffi::c_int;

use runner::Handle;
use timing::{
    pairs::{PairWay, TimedPair, all_rounds, time_rounds},
    peers::Peers,
    table_communicator::TableCommunicator,
};

use crate::{
    calls::Measured,
    failure::{BenchFailure, code_of},
    library,
    pointers::{slice_mut, some_mut},
    types::{BenchOptions, BenchPair, BenchResult},
};

/// Times rounds of pairs.
///
/// # Safety
/// The options must be null or valid for reads; `comm` must be live, and all its ranks must be here, with MPI
/// initialised.
unsafe fn pairs(
    comm: Handle,
    options: *const BenchOptions,
    exchange: c_int,
    bytes: usize,
    rounds: impl FnOnce(u32) -> Vec<Vec<(u32, u32)>>,
) -> Result<Vec<TimedPair>, BenchFailure> {
    // SAFETY: `options` is null or valid for reads; `comm` is live, and all its ranks are here (contract of
    // this function).
    unsafe {
        let measured = Measured::new(comm, options)?;
        let (_, mpi) = library::table()?;
        let way = usize::try_from(exchange).ok().and_then(|at| PairWay::ALL.get(at));
        let unknown = || BenchFailure::Refused(format!("exchange {exchange}; expected 0 or 1"));
        let way = *way.ok_or_else(unknown)?;
        let ranks = TableCommunicator::new(mpi, measured.comm)?.size();
        Ok(time_rounds(mpi, measured.comm, way, bytes, &measured.rule, &rounds(ranks))?)
    }
}

/// See the header.
///
/// # Safety
/// The header's contract (see `calls`).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn colibri_bench_p2p(
    comm: Handle,
    options: *const BenchOptions,
    exchange: c_int,
    one: c_int,
    other: c_int,
    bytes: usize,
    result: *mut BenchResult,
) -> c_int {
    code_of(|| {
        let rank = |given: c_int| {
            let problem = || BenchFailure::Refused(format!("rank {given}; expected 0 or above"));
            u32::try_from(given).map_err(|_| problem())
        };
        let (one, other) = (rank(one)?, rank(other)?);
        // SAFETY: `options` and `result` are null or valid; `comm` is live, and all its ranks are here (the
        // header's contract).
        unsafe {
            let result = some_mut(result)?;
            let timed = pairs(comm, options, exchange, bytes, |_| vec![vec![(one, other)]])?;
            if let Some(pair) = timed.first() {
                *result = BenchResult::new(bytes, &pair.summary);
            }
        }
        Ok(())
    })
}

/// See the header.
///
/// # Safety
/// The header's contract (see `calls`).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn colibri_bench_pairs(
    comm: Handle,
    options: *const BenchOptions,
    exchange: c_int,
    at_once: c_int,
    bytes: usize,
    into: *mut BenchPair,
) -> c_int {
    code_of(|| {
        // SAFETY: `options` is null or valid, `into` null or with room for every pair; `comm` is live, and all
        // its ranks are here (the header's contract).
        unsafe {
            let mut timed =
                pairs(comm, options, exchange, bytes, |ranks| all_rounds(ranks, at_once != 0))?;
            timed.sort_by_key(|pair| (pair.one, pair.other));
            for (place, pair) in slice_mut(into, timed.len())?.iter_mut().zip(timed) {
                let result = BenchResult::new(bytes, &pair.summary);
                *place = BenchPair { one: pair.one as c_int, other: pair.other as c_int, result };
            }
        }
        Ok(())
    })
}
