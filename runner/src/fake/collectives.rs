//! The library's own collectives: all ranks tell each other all, and each takes what is its.

#![allow(clippy::too_many_arguments, reason = "they are MPI's")]

use std::ffi::{c_int, c_void};

use super::{
    operations::combine,
    types::{gather as packed, layout, scatter as unpacked},
    world::{ChannelKey, FakeResult, RANK, code, post, put, take},
};
use crate::Handle;

pub const IN_PLACE: usize = 1;

const TAG: c_int = 99;

/// Counts and displacements, one for every rank.
type Blocks = (Vec<isize>, Vec<isize>);

fn rank_and_size() -> (usize, usize) {
    let (_, rank, ranks) = RANK.get();
    (rank as usize, ranks as usize)
}

fn receive(key: ChannelKey) -> FakeResult<Vec<u8>> {
    take(key, post(key)?)
}

/// What each rank tells all.
fn tell_all(own: &[u8]) -> FakeResult<Vec<Vec<u8>>> {
    let (world, rank, ranks) = RANK.get();
    for to in 0..ranks {
        put(to, TAG, own.to_vec());
    }
    (0..ranks).map(|from| receive((world, from, rank, TAG))).collect()
}

/// The address of an element.
fn element(base: *const c_void, datatype: Handle, index: isize) -> *mut c_void {
    base.cast_mut().wrapping_byte_offset(index.wrapping_mul(layout(datatype).extent))
}

/// Bytes of data of so many elements.
fn size(count: usize, datatype: Handle) -> usize {
    count * layout(datatype).places.len()
}

/// One number for every rank.
unsafe fn numbers(array: *const c_int) -> Vec<isize> {
    // SAFETY: the caller's array has one for every rank.
    (0..rank_and_size().1).map(|rank| unsafe { *array.add(rank) } as isize).collect()
}

/// A block of equal length for every rank, as counts and displacements.
fn in_a_row(count: c_int) -> Blocks {
    let ranks = 0..rank_and_size().1 as isize;
    ranks.map(|rank| (count as isize, rank * count as isize)).unzip()
}

/// Puts what all ranks have told where the blocks of a buffer lie.
unsafe fn place(
    told: &[Vec<u8>],
    into: *mut c_void,
    (counts, places): &Blocks,
    datatype: Handle,
) -> FakeResult {
    for ((told, count), place) in told.iter().zip(counts).zip(places) {
        // SAFETY: the caller's buffer holds the blocks.
        unsafe { unpacked(told, element(into, datatype, *place), *count as usize, datatype)? };
    }
    Ok(())
}

unsafe fn gather_all(
    (from, count, datatype): (*const c_void, c_int, Handle),
    (into, blocks, of): (*mut c_void, &Blocks, Handle),
) -> FakeResult {
    let rank = rank_and_size().0;
    // SAFETY: the caller's buffers.
    unsafe {
        let own = match from.addr() == IN_PLACE {
            true => packed(element(into, of, blocks.1[rank]), blocks.0[rank] as usize, of),
            false => packed(from, count as usize, datatype),
        };
        place(&tell_all(&own)?, into, blocks, of)
    }
}

pub unsafe extern "C-unwind" fn allgather(
    from: *const c_void,
    count: c_int,
    datatype: Handle,
    into: *mut c_void,
    into_count: c_int,
    of: Handle,
    _comm: Handle,
) -> c_int {
    // SAFETY: the caller's buffers.
    unsafe { code(gather_all((from, count, datatype), (into, &in_a_row(into_count), of))) }
}

pub unsafe extern "C-unwind" fn allgatherv(
    from: *const c_void,
    count: c_int,
    datatype: Handle,
    into: *mut c_void,
    counts: *const c_int,
    places: *const c_int,
    of: Handle,
    _comm: Handle,
) -> c_int {
    // SAFETY: the caller's buffers and arrays.
    unsafe {
        let blocks = (numbers(counts), numbers(places));
        code(gather_all((from, count, datatype), (into, &blocks, of)))
    }
}

/// To each rank its block, from each rank this rank's.
unsafe fn exchange(
    (from, sent, datatype): (*const c_void, &Blocks, Handle),
    (into, blocks, of): (*mut c_void, &Blocks, Handle),
) -> c_int {
    let (world, rank, ranks) = RANK.get();
    let (from, sent, datatype) = match from.addr() == IN_PLACE {
        true => (into.cast_const(), blocks, of),
        false => (from, sent, datatype),
    };
    for to in 0..ranks as usize {
        // SAFETY: the caller's buffer.
        let block =
            unsafe { packed(element(from, datatype, sent.1[to]), sent.0[to] as usize, datatype) };
        put(to as c_int, TAG, block);
    }
    let told: FakeResult<Vec<_>> =
        (0..ranks).map(|from| receive((world, from, rank, TAG))).collect();
    // SAFETY: the caller's buffer.
    code(told.and_then(|told| unsafe { place(&told, into, blocks, of) }))
}

pub unsafe extern "C-unwind" fn alltoall(
    from: *const c_void,
    count: c_int,
    datatype: Handle,
    into: *mut c_void,
    into_count: c_int,
    of: Handle,
    _comm: Handle,
) -> c_int {
    let (sent, received) = (in_a_row(count), in_a_row(into_count));
    // SAFETY: the caller's buffers.
    unsafe { exchange((from, &sent, datatype), (into, &received, of)) }
}

pub unsafe extern "C-unwind" fn alltoallv(
    from: *const c_void,
    counts: *const c_int,
    places: *const c_int,
    datatype: Handle,
    into: *mut c_void,
    into_counts: *const c_int,
    into_places: *const c_int,
    of: Handle,
    _comm: Handle,
) -> c_int {
    // SAFETY: the caller's buffers and arrays.
    unsafe {
        let received = (numbers(into_counts), numbers(into_places));
        let sent = match from.addr() == IN_PLACE {
            true => received.clone(),
            false => (numbers(counts), numbers(places)),
        };
        exchange((from, &sent, datatype), (into, &received, of))
    }
}

pub unsafe extern "C-unwind" fn bcast(
    data: *mut c_void,
    count: c_int,
    datatype: Handle,
    root: c_int,
    _comm: Handle,
) -> c_int {
    let is_root = rank_and_size().0 == root as usize;
    // SAFETY: the caller's buffer.
    unsafe {
        let own = if is_root { packed(data, count as usize, datatype) } else { Vec::new() };
        code(tell_all(&own).and_then(|told| match is_root {
            true => Ok(()),
            false => unpacked(&told[root as usize], data, count as usize, datatype),
        }))
    }
}

unsafe fn gather_at(
    (from, count, datatype): (*const c_void, c_int, Handle),
    (into, of): (*mut c_void, Handle),
    blocks: impl FnOnce() -> Blocks,
    root: c_int,
) -> c_int {
    let rank = rank_and_size().0;
    // SAFETY: the caller's buffers.
    code(unsafe {
        match rank == root as usize {
            true => gather_all((from, count, datatype), (into, &blocks(), of)),
            false => tell_all(&packed(from, count as usize, datatype)).map(|_| ()),
        }
    })
}

pub unsafe extern "C-unwind" fn gather(
    from: *const c_void,
    count: c_int,
    datatype: Handle,
    into: *mut c_void,
    into_count: c_int,
    of: Handle,
    root: c_int,
    _comm: Handle,
) -> c_int {
    // SAFETY: the caller's buffers.
    unsafe { gather_at((from, count, datatype), (into, of), || in_a_row(into_count), root) }
}

pub unsafe extern "C-unwind" fn gatherv(
    from: *const c_void,
    count: c_int,
    datatype: Handle,
    into: *mut c_void,
    counts: *const c_int,
    places: *const c_int,
    of: Handle,
    root: c_int,
    _comm: Handle,
) -> c_int {
    // SAFETY: the caller's buffers and arrays.
    unsafe {
        let blocks = || (numbers(counts), numbers(places));
        gather_at((from, count, datatype), (into, of), blocks, root)
    }
}

unsafe fn scatter_from(
    (from, datatype): (*const c_void, Handle),
    blocks: impl FnOnce() -> Blocks,
    (into, count, of): (*mut c_void, c_int, Handle),
    root: c_int,
) -> c_int {
    let (world, rank, _) = RANK.get();
    // SAFETY: the caller's buffers.
    unsafe {
        if rank == root {
            let (counts, places) = blocks();
            for ((to, count), place) in (0..).zip(counts).zip(places) {
                let block = element(from, datatype, place);
                put(to, TAG, packed(block, count as usize, datatype));
            }
        }
        code(receive((world, root, rank, TAG)).and_then(|told| match into.addr() == IN_PLACE {
            true => Ok(()),
            false => unpacked(&told, into, count as usize, of),
        }))
    }
}

pub unsafe extern "C-unwind" fn scatter(
    from: *const c_void,
    count: c_int,
    datatype: Handle,
    into: *mut c_void,
    into_count: c_int,
    of: Handle,
    root: c_int,
    _comm: Handle,
) -> c_int {
    // SAFETY: the caller's buffers.
    unsafe { scatter_from((from, datatype), || in_a_row(count), (into, into_count, of), root) }
}

pub unsafe extern "C-unwind" fn scatterv(
    from: *const c_void,
    counts: *const c_int,
    places: *const c_int,
    datatype: Handle,
    into: *mut c_void,
    count: c_int,
    of: Handle,
    root: c_int,
    _comm: Handle,
) -> c_int {
    // SAFETY: the caller's buffers and arrays.
    unsafe {
        let blocks = || (numbers(counts), numbers(places));
        scatter_from((from, datatype), blocks, (into, count, of), root)
    }
}

/// Combines the operands of the first `up_to` ranks, and puts the elements `begin..begin + length` of what
/// they come to where this rank wants them.
unsafe fn combine_all(
    (from, into): (*const c_void, *mut c_void),
    count: usize,
    (datatype, operation): (Handle, Handle),
    up_to: usize,
    (begin, length): (usize, usize),
) -> c_int {
    let from = if from.addr() == IN_PLACE { into.cast_const() } else { from };
    // SAFETY: the caller's buffers.
    unsafe {
        code(tell_all(&packed(from, count, datatype)).and_then(|told| {
            let operands = told.into_iter().take(up_to);
            let sum = operands.reduce(|left, right| combine(operation, &left, &right));
            match sum.filter(|_| length > 0) {
                Some(sum) => {
                    let part = &sum[size(begin, datatype)..size(begin + length, datatype)];
                    unpacked(part, into, length, datatype)
                }
                None => Ok(()),
            }
        }))
    }
}

pub unsafe extern "C-unwind" fn allreduce(
    from: *const c_void,
    into: *mut c_void,
    count: c_int,
    datatype: Handle,
    operation: Handle,
    _comm: Handle,
) -> c_int {
    let (count, all) = (count as usize, rank_and_size().1);
    // SAFETY: the caller's buffers.
    unsafe { combine_all((from, into), count, (datatype, operation), all, (0, count)) }
}

pub unsafe extern "C-unwind" fn exscan(
    from: *const c_void,
    into: *mut c_void,
    count: c_int,
    datatype: Handle,
    operation: Handle,
    _comm: Handle,
) -> c_int {
    let (count, before) = (count as usize, rank_and_size().0);
    // SAFETY: the caller's buffers.
    unsafe { combine_all((from, into), count, (datatype, operation), before, (0, count)) }
}

pub unsafe extern "C-unwind" fn reduce(
    from: *const c_void,
    into: *mut c_void,
    count: c_int,
    datatype: Handle,
    operation: Handle,
    root: c_int,
    _comm: Handle,
) -> c_int {
    let (count, (rank, all)) = (count as usize, rank_and_size());
    let received = if rank == root as usize { count } else { 0 };
    // SAFETY: the caller's buffers.
    unsafe { combine_all((from, into), count, (datatype, operation), all, (0, received)) }
}

unsafe fn reduce_blocks(
    buffers: (*const c_void, *mut c_void),
    counts: &[isize],
    of: (Handle, Handle),
) -> c_int {
    let (rank, all) = rank_and_size();
    let total = |counts: &[isize]| counts.iter().sum::<isize>() as usize;
    let own = (total(&counts[..rank]), counts[rank] as usize);
    // SAFETY: the caller's buffers.
    unsafe { combine_all(buffers, total(counts), of, all, own) }
}

pub unsafe extern "C-unwind" fn reduce_scatter(
    from: *const c_void,
    into: *mut c_void,
    counts: *const c_int,
    datatype: Handle,
    operation: Handle,
    _comm: Handle,
) -> c_int {
    // SAFETY: the caller's buffers and array.
    unsafe { reduce_blocks((from, into), &numbers(counts), (datatype, operation)) }
}

pub unsafe extern "C-unwind" fn reduce_scatter_block(
    from: *const c_void,
    into: *mut c_void,
    count: c_int,
    datatype: Handle,
    operation: Handle,
    _comm: Handle,
) -> c_int {
    // SAFETY: the caller's buffers.
    unsafe { reduce_blocks((from, into), &in_a_row(count).0, (datatype, operation)) }
}
