//! An MPI library for tests: ranks are threads, messages go through one mailbox.
//!
//! It knows what schedules and mock-ups need and no more: bytes, types made of them, an operation that
//! is commutative and one that is not. It fails where elements are written that overlap.

mod collectives;
mod operations;
mod questions;
mod types;
mod world;

use std::{
    ffi::{CStr, c_int, c_void},
    ptr,
    sync::Arc,
};

pub use self::{
    collectives::IN_PLACE,
    operations::{COMPOSE, XOR, combine, compose},
    types::{BYTE, FakeType, LARGE, SPREAD, gather, new_type, scatter},
    world::{CODE, run, run_with_late},
};
use self::{collectives::*, operations::*, questions::*, types::*, world::*};
use crate::{AbiFamily, ArithmeticHandles, Handle, Mpi, MpiConstants};

/// Any call on it fails.
pub const BROKEN: Handle = 666;

/// A message with its number in the channel.
struct Pending {
    key: ChannelKey,
    number: u64,
    /// Nothing where it is sent.
    into: Option<Place>,
}

/// Where a message is received.
struct Place {
    address: *mut c_void,
    count: usize,
    /// The type may be freed meanwhile.
    layout: Arc<FakeType>,
}

unsafe extern "C-unwind" fn isend(
    from: *const c_void,
    count: c_int,
    datatype: Handle,
    to: c_int,
    tag: c_int,
    comm: Handle,
    _request: *mut Handle,
) -> c_int {
    if comm == BROKEN {
        return CODE;
    }
    // SAFETY: the caller's buffer.
    put(to, tag, unsafe { gather(from, count as usize, datatype) });
    0
}

unsafe extern "C-unwind" fn issend(
    from: *const c_void,
    count: c_int,
    datatype: Handle,
    to: c_int,
    tag: c_int,
    comm: Handle,
    request: *mut Handle,
) -> c_int {
    if comm == BROKEN {
        return CODE;
    }
    // SAFETY: the caller's buffer, and the place of a request.
    unsafe {
        let (key, number) = put(to, tag, gather(from, count as usize, datatype));
        begin(Pending { key, number, into: None }, request);
    }
    0
}

/// # Safety
/// The place of a request.
unsafe fn begin(pending: Pending, request: *mut Handle) {
    // SAFETY: the caller's.
    unsafe { *request = Box::into_raw(Box::new(pending)).expose_provenance() };
}

unsafe extern "C-unwind" fn irecv(
    into: *mut c_void,
    count: c_int,
    datatype: Handle,
    from: c_int,
    tag: c_int,
    comm: Handle,
    request: *mut Handle,
) -> c_int {
    if comm == BROKEN {
        return CODE;
    }
    let (world, own, _) = RANK.get();
    let key = (world, from, own, tag);
    let place = Place { address: into, count: count as usize, layout: layout(datatype) };
    code(post(key).map(|number| {
        // SAFETY: the place of a request.
        unsafe { begin(Pending { key, number, into: Some(place) }, request) };
    }))
}

/// Nobody sends what is looked for.
unsafe extern "C-unwind" fn iprobe(
    _from: c_int,
    _tag: c_int,
    _comm: Handle,
    is_there: *mut c_int,
    _status: *mut c_void,
) -> c_int {
    set(is_there, 0)
}

unsafe extern "C-unwind" fn send(
    from: *const c_void,
    count: c_int,
    datatype: Handle,
    to: c_int,
    tag: c_int,
    comm: Handle,
) -> c_int {
    // SAFETY: the caller's buffer; nothing is written to a request.
    unsafe { isend(from, count, datatype, to, tag, comm, ptr::null_mut()) }
}

unsafe extern "C-unwind" fn ssend(
    from: *const c_void,
    count: c_int,
    datatype: Handle,
    to: c_int,
    tag: c_int,
    comm: Handle,
) -> c_int {
    let mut request = 0;
    // SAFETY: the caller's buffer.
    unsafe {
        match issend(from, count, datatype, to, tag, comm, &mut request) {
            0 => wait(&mut request, ptr::null_mut()),
            code => code,
        }
    }
}

unsafe extern "C-unwind" fn recv(
    into: *mut c_void,
    count: c_int,
    datatype: Handle,
    from: c_int,
    tag: c_int,
    comm: Handle,
    status: *mut c_void,
) -> c_int {
    let mut request = 0;
    // SAFETY: the caller's buffer.
    unsafe {
        match irecv(into, count, datatype, from, tag, comm, &mut request) {
            0 => wait(&mut request, status),
            code => code,
        }
    }
}

unsafe extern "C-unwind" fn wait(request: *mut Handle, _status: *mut c_void) -> c_int {
    // SAFETY: a request is 0 or what `begin` made.
    unsafe {
        if *request != 0 {
            let pending = Box::from_raw(ptr::with_exposed_provenance_mut::<Pending>(*request));
            *request = 0;
            let Pending { key, number, into } = *pending;
            return code(match into {
                None => wait_for_receive(key, number),
                Some(Place { address, count, layout }) => {
                    let message = take(key, number);
                    message.and_then(|message| layout.scatter(&message, address, count))
                }
            });
        }
    }
    0
}

#[allow(clippy::too_many_arguments, reason = "they are MPI's")]
unsafe extern "C-unwind" fn sendrecv(
    from: *const c_void,
    count: c_int,
    datatype: Handle,
    _destination: c_int,
    _tag: c_int,
    into: *mut c_void,
    into_count: c_int,
    into_datatype: Handle,
    _source: c_int,
    _source_tag: c_int,
    _comm: Handle,
    _status: *mut c_void,
) -> c_int {
    // SAFETY: the caller's buffers; a rank sends to itself only.
    unsafe {
        let bytes = gather(from, count as usize, datatype);
        code(scatter(&bytes, into, into_count as usize, into_datatype))
    }
}

unsafe extern "C-unwind" fn pack(
    from: *const c_void,
    count: c_int,
    datatype: Handle,
    into: *mut c_void,
    room: c_int,
    end: *mut c_int,
    _comm: Handle,
) -> c_int {
    // SAFETY: the caller's buffers.
    unsafe {
        let bytes = gather(from, count as usize, datatype);
        assert!(bytes.len() <= room as usize);
        into.cast::<u8>().copy_from(bytes.as_ptr(), bytes.len());
        set(end, bytes.len() as c_int)
    }
}

unsafe extern "C-unwind" fn unpack(
    from: *const c_void,
    room: c_int,
    end: *mut c_int,
    into: *mut c_void,
    count: c_int,
    datatype: Handle,
    _comm: Handle,
) -> c_int {
    // SAFETY: the caller's buffers.
    let outcome =
        unsafe { scatter(&gather(from, room as usize, BYTE), into, count as usize, datatype) };
    set(end, room) + code(outcome)
}

/// Stands for what is never called here.
unsafe extern "C-unwind" fn unexpected() -> c_int {
    std::process::abort()
}

/// The table of this library.
pub fn table() -> Mpi {
    let constants = MpiConstants {
        in_place: IN_PLACE,
        byte: BYTE,
        double: BYTE,
        bitwise_or: 2,
        bitwise_xor: 2,
        sum: 2,
        packed: BYTE,
        world: 0,
        tag_ub: 0,
        arithmetic: ArithmeticHandles::default(),
        ..MpiConstants::new(AbiFamily::Standard, |_| ptr::null()).unwrap()
    };
    // SAFETY: these functions have MPI's types; the others are not called.
    unsafe { Mpi::load(find, constants) }.unwrap()
}

fn find(name: &CStr) -> *const c_void {
    match name.to_str().unwrap() {
        "MPI_Irsend" | "MPI_Isend" => isend as *const c_void,
        "MPI_Issend" => issend as *const c_void,
        "MPI_Iprobe" => iprobe as *const c_void,
        "MPI_Recv" => recv as *const c_void,
        "MPI_Send" => send as *const c_void,
        "MPI_Ssend" => ssend as *const c_void,
        "MPI_Irecv" => irecv as *const c_void,
        "MPI_Wait" => wait as *const c_void,
        "MPI_Sendrecv" => sendrecv as *const c_void,
        "MPI_Reduce_local" => reduce_local as *const c_void,
        "MPI_Type_create_hindexed" => type_create_hindexed as *const c_void,
        "MPI_Type_create_resized" => type_create_resized as *const c_void,
        "MPI_Type_commit" => type_commit as *const c_void,
        "MPI_Type_free" => type_free as *const c_void,
        "MPI_Type_size_x" => type_size_x as *const c_void,
        "MPI_Type_get_extent" => type_get_extent as *const c_void,
        "MPI_Type_get_true_extent" => type_get_true_extent as *const c_void,
        "MPI_Type_get_envelope" => type_get_envelope as *const c_void,
        "MPI_Type_get_envelope_c" => type_get_envelope_c as *const c_void,
        "MPI_Pack" => pack as *const c_void,
        "MPI_Unpack" => unpack as *const c_void,
        "MPI_Op_commutative" => op_commutative as *const c_void,
        "MPI_Comm_rank" => comm_rank as *const c_void,
        "MPI_Comm_size" => comm_size as *const c_void,
        "MPI_Comm_test_inter" => comm_test_inter as *const c_void,
        "MPI_Comm_split" => comm_split as *const c_void,
        "MPI_Comm_get_attr" => comm_get_attr as *const c_void,
        "MPI_Comm_set_attr" => comm_set_attr as *const c_void,
        "MPI_Comm_set_errhandler" => comm_set_errhandler as *const c_void,
        "MPI_Get_processor_name" => get_processor_name as *const c_void,
        "MPI_Allgather" => allgather as *const c_void,
        "MPI_Allgatherv" => allgatherv as *const c_void,
        "MPI_Allreduce" => allreduce as *const c_void,
        "MPI_Alltoall" => alltoall as *const c_void,
        "MPI_Alltoallv" => alltoallv as *const c_void,
        "MPI_Bcast" => bcast as *const c_void,
        "MPI_Exscan" => exscan as *const c_void,
        "MPI_Gather" => collectives::gather as *const c_void,
        "MPI_Gatherv" => gatherv as *const c_void,
        "MPI_Reduce" => reduce as *const c_void,
        "MPI_Reduce_scatter" => reduce_scatter as *const c_void,
        "MPI_Reduce_scatter_block" => reduce_scatter_block as *const c_void,
        "MPI_Scatter" => collectives::scatter as *const c_void,
        "MPI_Scatterv" => scatterv as *const c_void,
        "MPI_Comm_create_keyval" => comm_create_keyval as *const c_void,
        _ => unexpected as *const c_void,
    }
}
