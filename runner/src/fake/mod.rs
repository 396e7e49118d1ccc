//! An MPI library for tests: ranks are threads, messages go through one mailbox.
//!
//! It knows what schedules need and no more: bytes, pairs of bytes with gaps, and an
//! operation that is not commutative.

mod questions;

use std::{
    cell::Cell,
    collections::{HashMap, VecDeque},
    ffi::{CStr, c_int, c_void},
    ptr,
    sync::{
        Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use self::questions::*;
use crate::{Handle, Mpi, MpiConstants};

/// A named type.
pub const BYTE: Handle = 1;
/// Two bytes, `x -> a x + b` modulo 256, at places 1 and 4 of 6: a derived type.
pub const SPREAD: Handle = 3;
/// Two bytes, at places 0 and 2 of 3.
const PAIR: Handle = 4;
/// Composition of pairs, in order.
pub const COMPOSE: Handle = 1;
/// Bitwise exclusive or, which is commutative.
pub const XOR: Handle = 2;
/// Any call on it fails.
pub const BROKEN: Handle = 666;
pub const IN_PLACE: usize = 1;
/// What a failing function returns.
pub const CODE: c_int = 42;

/// Places of a datum's bytes, and its extent.
fn layout(datatype: Handle) -> (&'static [usize], usize) {
    match datatype {
        BYTE => (&[0], 1),
        SPREAD => (&[1, 4], 6),
        PAIR => (&[0, 2], 3),
        other => panic!("no datatype {other}"),
    }
}

thread_local! { static RANK: Cell<(usize, c_int, c_int)> = const { Cell::new((0, 0, 1)) }; }

type DatumKey = (usize, c_int, c_int, c_int);

/// Messages under way, by world, sender, receiver and tag.
static MAIL: Mutex<Option<HashMap<DatumKey, VecDeque<Vec<u8>>>>> = Mutex::new(None);
static ARRIVED: Condvar = Condvar::new();
static WORLDS: AtomicUsize = AtomicUsize::new(1);

fn mail() -> MutexGuard<'static, Option<HashMap<DatumKey, VecDeque<Vec<u8>>>>> {
    MAIL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `body` on so many ranks, each a thread, and gives what each returned.
pub fn run<R: Send>(ranks: u32, body: impl Fn(u32) -> R + Sync) -> Vec<R> {
    let world = WORLDS.fetch_add(1, Ordering::Relaxed);
    std::thread::scope(|scope| {
        let body = &body;
        let start = |rank: u32| {
            scope.spawn(move || {
                RANK.set((world, rank as c_int, ranks as c_int));
                body(rank)
            })
        };
        let threads: Vec<_> = (0..ranks).map(start).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

struct Pending {
    key: DatumKey,
    into: *mut u8,
    count: usize,
    datatype: Handle,
}

unsafe fn gather(from: *const c_void, count: c_int, datatype: Handle) -> Vec<u8> {
    let (places, extent) = layout(datatype);
    (0..count as usize)
        .flat_map(|index| places.iter().map(move |place| index * extent + place))
        // SAFETY: the caller's buffer holds `count` elements.
        .map(|place| unsafe { *from.cast::<u8>().wrapping_add(place) })
        .collect()
}

unsafe fn scatter(bytes: &[u8], into: *mut u8, count: usize, datatype: Handle) {
    let (places, extent) = layout(datatype);
    assert_eq!(bytes.len(), count * places.len(), "a message of another length");
    for (at, byte) in bytes.iter().enumerate() {
        let place = at / places.len() * extent + places[at % places.len()];
        // SAFETY: the caller's buffer has room for `count` elements.
        unsafe { *into.wrapping_add(place) = *byte };
    }
}

unsafe extern "C" fn isend(
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
    let (world, own, _) = RANK.get();
    // SAFETY: the caller's buffer.
    let bytes = unsafe { gather(from, count, datatype) };
    let key = (world, own, to, tag);
    mail().get_or_insert_default().entry(key).or_default().push_back(bytes);
    ARRIVED.notify_all();
    0
}

unsafe extern "C" fn irecv(
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
    let pending = Pending { key, into: into.cast(), count: count as usize, datatype };
    // SAFETY: the place of a request.
    unsafe { *request = Box::into_raw(Box::new(pending)).expose_provenance() };
    0
}

unsafe extern "C" fn send(
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

unsafe extern "C" fn recv(
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

unsafe extern "C" fn wait(request: *mut Handle, _status: *mut c_void) -> c_int {
    // SAFETY: a request is 0 or what `irecv` made.
    unsafe {
        if *request != 0 {
            let pending = Box::from_raw(ptr::with_exposed_provenance_mut::<Pending>(*request));
            *request = 0;
            let mut all = mail();
            let message = loop {
                let queue = all.get_or_insert_default().entry(pending.key).or_default();
                if let Some(message) = queue.pop_front() {
                    break message;
                }
                let (next, timeout) = ARRIVED.wait_timeout(all, Duration::from_secs(20)).unwrap();
                assert!(!timeout.timed_out(), "a message does not come: {:?}", pending.key);
                all = next;
            };
            scatter(&message, pending.into, pending.count, pending.datatype);
        }
    }
    0
}

#[allow(clippy::too_many_arguments, reason = "they are MPI's")]
unsafe extern "C" fn sendrecv(
    from: *const c_void,
    count: c_int,
    datatype: Handle,
    _destination: c_int,
    _tag: c_int,
    into: *mut c_void,
    _into_count: c_int,
    into_datatype: Handle,
    _source: c_int,
    _source_tag: c_int,
    _comm: Handle,
    _status: *mut c_void,
) -> c_int {
    // SAFETY: the caller's buffers; a rank sends to itself only.
    unsafe { scatter(&gather(from, count, datatype), into.cast(), count as usize, into_datatype) };
    0
}

unsafe extern "C" fn allgather(
    from: *const c_void,
    count: c_int,
    datatype: Handle,
    into: *mut c_void,
    into_count: c_int,
    into_datatype: Handle,
    comm: Handle,
) -> c_int {
    const TAG: c_int = 99;
    let (_, _, ranks) = RANK.get();
    // SAFETY: the caller's buffers, the second one with room for all ranks.
    unsafe {
        for to in 0..ranks {
            send(from, count, datatype, to, TAG, comm);
        }
        for rank in 0..ranks {
            let block = into.cast::<u8>().wrapping_add((rank * into_count) as usize).cast();
            recv(block, into_count, into_datatype, rank, TAG, comm, ptr::null_mut());
        }
    }
    0
}

unsafe extern "C" fn reduce_local(
    left: *const c_void,
    right: *mut c_void,
    count: c_int,
    datatype: Handle,
    operation: Handle,
) -> c_int {
    // SAFETY: the caller's buffers.
    unsafe {
        let (a, b) = (gather(left, count, datatype), gather(right, count, datatype));
        let combined: Vec<u8> = match operation {
            XOR => a.iter().zip(&b).map(|(a, b)| a ^ b).collect(),
            _ => a.chunks(2).zip(b.chunks(2)).flat_map(|(a, b)| compose(a, b)).collect(),
        };
        scatter(&combined, right.cast(), count as usize, datatype);
    }
    0
}

/// First `a`, then `b`.
pub fn compose(a: &[u8], b: &[u8]) -> [u8; 2] {
    [a[0].wrapping_mul(b[0]), a[1].wrapping_mul(b[0]).wrapping_add(b[1])]
}

fn set<T>(place: *mut T, value: T) -> c_int {
    // SAFETY: outputs of MPI functions are places for their values.
    unsafe { *place = value };
    0
}

unsafe extern "C" fn pack(
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
        let bytes = gather(from, count, datatype);
        assert!(bytes.len() <= room as usize);
        into.cast::<u8>().copy_from(bytes.as_ptr(), bytes.len());
        set(end, bytes.len() as c_int)
    }
}

unsafe extern "C" fn unpack(
    from: *const c_void,
    room: c_int,
    end: *mut c_int,
    into: *mut c_void,
    count: c_int,
    datatype: Handle,
    _comm: Handle,
) -> c_int {
    // SAFETY: the caller's buffers.
    unsafe { scatter(&gather(from, room, BYTE), into.cast(), count as usize, datatype) };
    set(end, room)
}

/// Stands for what is never called here.
unsafe extern "C" fn unexpected() -> c_int {
    std::process::abort()
}

/// The table of this library.
pub fn table() -> Mpi {
    let constants = MpiConstants {
        in_place: IN_PLACE,
        status_ignore: 0,
        byte: BYTE,
        double: BYTE,
        bitwise_or: 2,
        bitwise_xor: 2,
        sum: 2,
        packed: BYTE,
        errors_return: 0,
    };
    // SAFETY: these functions have MPI's types; the others are not called.
    unsafe { Mpi::load(find, constants) }.unwrap()
}

fn find(name: &CStr) -> *const c_void {
    match name.to_str().unwrap() {
        "MPI_Irsend" | "MPI_Isend" => isend as *const c_void,
        "MPI_Recv" => recv as *const c_void,
        "MPI_Send" => send as *const c_void,
        "MPI_Irecv" => irecv as *const c_void,
        "MPI_Wait" => wait as *const c_void,
        "MPI_Sendrecv" => sendrecv as *const c_void,
        "MPI_Reduce_local" => reduce_local as *const c_void,
        "MPI_Type_create_hindexed" => type_create_hindexed as *const c_void,
        "MPI_Type_commit" | "MPI_Type_free" => nothing as *const c_void,
        "MPI_Type_size_x" => type_size_x as *const c_void,
        "MPI_Type_get_extent" => type_get_extent as *const c_void,
        "MPI_Type_get_true_extent" => type_get_true_extent as *const c_void,
        "MPI_Type_get_envelope" => type_get_envelope as *const c_void,
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
        "MPI_Comm_create_keyval" => comm_create_keyval as *const c_void,
        _ => unexpected as *const c_void,
    }
}
