//! Our algorithms against the library's own collectives, bit for bit, under a real `mpirun`.
//!
//! The program starts itself under `mpirun`. Every rank compares all of its memory, gaps between
//! elements too, with what the library's collective leaves there.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]
#![allow(clippy::undocumented_unsafe_blocks, reason = "all for the one reason in `run_rank`")]

#[allow(dead_code, reason = "each test program uses its part of this module")]
mod common;

use std::{
    alloc::{GlobalAlloc, Layout, System},
    env,
    ffi::{c_int, c_void},
    ptr,
    sync::atomic::{AtomicIsize, AtomicUsize, Ordering},
};

use colibri_calibration::{
    exchange::{self, Communicator, check},
    table,
};
use mpi::ffi;
use records::Collective;
use runner::{Arguments, Block, Error, Executor, Method, Reduction};

/// Set for the processes that `mpirun` starts.
const IS_RANK: &str = "COLIBRI_RUNNER_TEST_RANK";

fn main() {
    if env::args().any(|argument| argument == "--list") {
        println!("ours_agree_with_the_librarys: test");
    } else if env::var_os(IS_RANK).is_some() {
        run_rank();
    } else if let Some(mpi) = common::Mpi::find() {
        for ranks in [1, 2, 3, 4, 5, 8] {
            let mut command = mpi.command(ranks);
            let output =
                command.env(IS_RANK, "1").arg(env::current_exe().unwrap()).output().unwrap();
            assert!(output.status.success(), "{ranks} ranks: {}", common::stderr(&output));
        }
    }
}

fn run_rank() {
    // Else the job would wait for a rank that has panicked.
    std::panic::set_hook(Box::new(|panic| {
        eprintln!("{panic}");
        exchange::abort(1)
    }));
    exchange::initialize().unwrap();
    let world = Communicator::world().unwrap();
    let mut executor = Executor::new(table::session().unwrap());
    // SAFETY: all handles and buffers are this program's own, and right by construction.
    unsafe {
        broadcasts(&mut executor, &world);
        let mut executor = executor.with_longest(7);
        broadcasts(&mut executor, &world);
        reductions(&mut executor, &world);
        let mut executor = executor.with_longest(c_int::MAX);
        reductions(&mut executor, &world);
        sides_with_different_types(&mut executor, &world);
        communicators_that_are_freed(&mut executor, &world);
        wildcards_of_the_application(&mut executor, &world);
        what_is_refused(&mut executor, &world);
        nothing_is_allocated_again(&mut executor, &world);
    }
    exchange::finalize().unwrap();
}

/// A pair of 32-bit numbers, its datatype and where its parts lie.
#[derive(Debug, Clone, Copy)]
struct Pair {
    datatype: ffi::MPI_Datatype,
    places: [isize; 2],
    extent: isize,
}

/// Where the pairs lie that the operation is called on.
static LAYOUT: [AtomicIsize; 3] = [const { AtomicIsize::new(0) }; 3];

/// Bytes before the address that is passed: there are types that begin below it.
const BEFORE: usize = 64;

unsafe fn pair(places: [isize; 2], lower: isize, extent: isize) -> Pair {
    unsafe {
        let (mut parts, mut datatype) = (ffi::RSMPI_DATATYPE_NULL, ffi::RSMPI_DATATYPE_NULL);
        let lengths = [1, 1];
        let number = ffi::RSMPI_UINT32_T;
        let code = ffi::MPI_Type_create_hindexed(
            2,
            lengths.as_ptr(),
            places.as_ptr().cast(),
            number,
            &mut parts,
        );
        check("MPI_Type_create_hindexed", code).unwrap();
        let code = ffi::MPI_Type_create_resized(parts, lower as _, extent as _, &mut datatype);
        check("MPI_Type_create_resized", code).unwrap();
        check("MPI_Type_commit", ffi::MPI_Type_commit(&mut datatype)).unwrap();
        check("MPI_Type_free", ffi::MPI_Type_free(&mut parts)).unwrap();
        Pair { datatype, places, extent }
    }
}

/// Dense, dense in another order, with gaps, shifted, below its address, interleaved.
unsafe fn pairs() -> [Pair; 6] {
    unsafe {
        [
            pair([0, 4], 0, 8),
            pair([4, 0], 0, 8),
            pair([0, 8], 0, 16),
            pair([12, 4], 0, 24),
            pair([-8, 4], -8, 20),
            pair([0, 12], 0, 8),
        ]
    }
}

/// Memory for `count` pairs, with something recognisable everywhere.
fn memory(pair: &Pair, count: usize, salt: u32) -> Vec<u32> {
    let words = (2 * BEFORE + (count + 2) * pair.extent as usize) / 4;
    (0..words as u32).map(|word| word.wrapping_mul(2_654_435_761).rotate_left(7) ^ salt).collect()
}

fn address(memory: &mut [u32]) -> *mut c_void {
    memory.as_mut_ptr().wrapping_byte_add(BEFORE).cast()
}

/// `x -> a x + b`, one after the other: associative, not commutative.
unsafe extern "C" fn compose(
    left: *mut c_void,
    right: *mut c_void,
    count: *mut c_int,
    _datatype: *mut ffi::MPI_Datatype,
) {
    let [first, second, extent] = [0, 1, 2].map(|part| LAYOUT[part].load(Ordering::Relaxed));
    for index in 0..unsafe { *count } as isize {
        let part = |base: *mut c_void, place: isize| {
            base.wrapping_byte_offset(index * extent + place).cast::<u32>()
        };
        unsafe {
            let (a, b) = (*part(left, first), *part(left, second));
            let (c, d) = (*part(right, first), *part(right, second));
            *part(right, first) = a.wrapping_mul(c);
            *part(right, second) = b.wrapping_mul(c).wrapping_add(d);
        }
    }
}

fn methods(collective: Collective) -> Vec<Method> {
    let entries = schedules::of_collective(collective);
    entries
        .flat_map(|entry| {
            let segments: &[u64] = if entry.segmented { &[0, 40] } else { &[0] };
            segments.iter().map(|segment| Method::of(entry, *segment).unwrap()).collect::<Vec<_>>()
        })
        .collect()
}

/// `MPI_Bcast`, with its arguments in MPI's order.
unsafe fn bcast(
    executor: &mut Executor,
    method: &Method,
    (buffer, count, datatype): (*mut c_void, i64, usize),
    root: c_int,
    comm: usize,
) -> Result<(), Error> {
    let data = Block { buffer, count, datatype };
    unsafe { executor.run(method, &Arguments::Bcast { data, root }, comm) }
}

const COUNTS: [usize; 4] = [0, 1, 2, 37];

unsafe fn broadcasts(executor: &mut Executor, world: &Communicator) {
    let raw = world.raw();
    for pair in unsafe { pairs() } {
        for method in methods(Collective::Bcast) {
            for root in 0..world.size() as c_int {
                for count in COUNTS {
                    let mut wanted = memory(&pair, count, world.rank());
                    let mut found = wanted.clone();
                    unsafe {
                        let buffer = address(&mut wanted);
                        let code = ffi::MPI_Bcast(buffer, count as c_int, pair.datatype, root, raw);
                        check("MPI_Bcast", code).unwrap();
                        let (datatype, comm) = (pair.datatype.0 as usize, raw.0 as usize);
                        let buffer = address(&mut found);
                        let data = (buffer, count as i64, datatype);
                        bcast(executor, &method, data, root, comm).unwrap();
                    }
                    assert!(wanted == found, "{method}, root {root}, {count} of {pair:?}");
                }
            }
        }
    }
}

unsafe fn reductions(executor: &mut Executor, world: &Communicator) {
    for pair in unsafe { pairs() } {
        for (place, value) in LAYOUT.iter().zip([pair.places[0], pair.places[1], pair.extent]) {
            place.store(value, Ordering::Relaxed);
        }
        let mut operation = unsafe { ffi::RSMPI_SUM };
        let code = unsafe { ffi::MPI_Op_create(Some(compose), 0, &mut operation) };
        check("MPI_Op_create", code).unwrap();
        unsafe { reduce_everywhere(executor, world, &pair, operation, false) };
        check("MPI_Op_free", unsafe { ffi::MPI_Op_free(&mut operation) }).unwrap();
    }
    let number = Pair { datatype: unsafe { ffi::RSMPI_UINT32_T }, places: [0, 0], extent: 4 };
    unsafe { reduce_everywhere(executor, world, &number, ffi::RSMPI_SUM, true) };
}

unsafe fn reduce_everywhere(
    executor: &mut Executor,
    world: &Communicator,
    pair: &Pair,
    operation: ffi::MPI_Op,
    is_commutative: bool,
) {
    let raw = world.raw();
    let handles = (pair.datatype.0 as usize, operation.0 as usize, raw.0 as usize);
    let entries = schedules::of_collective(Collective::Reduce);
    let ordered: Vec<&str> =
        entries.filter(|entry| !entry.requirements.commutative).map(|entry| entry.name).collect();
    for method in methods(Collective::Reduce) {
        let text = method.to_string();
        let name = text.trim_start_matches("own:").split('(').next().unwrap();
        let is_right = is_commutative || ordered.contains(&name);
        for (root, in_place) in
            (0..world.size() as c_int).flat_map(|root| [(root, false), (root, true)])
        {
            let at_root = world.rank() as c_int == root;
            for count in COUNTS {
                let mut send = memory(pair, count, world.rank() + 1);
                let before = send.clone();
                let mut wanted = memory(pair, count, world.rank() + 99);
                let mut found = wanted.clone();
                let from: *const c_void = match in_place && at_root {
                    true => ptr::without_provenance(table::IN_PLACE),
                    false => address(&mut send),
                };
                let into = |memory: &mut Vec<u32>| match at_root {
                    true => address(memory),
                    false => ptr::null_mut(),
                };
                let outcome = unsafe {
                    let (datatype, number) = (pair.datatype, count as c_int);
                    let into_wanted = into(&mut wanted);
                    let code =
                        ffi::MPI_Reduce(from, into_wanted, number, datatype, operation, root, raw);
                    check("MPI_Reduce", code).unwrap();
                    let (datatype, operation, comm) = handles;
                    let (into, number) = (into(&mut found), count as i64);
                    let data = Reduction { send: from, receive: into, datatype, operation };
                    let arguments = Arguments::Reduce { data, count: number, root };
                    executor.run(&method, &arguments, comm)
                };
                if is_right {
                    outcome.unwrap();
                    let what = format!("{method}, root {root}, {count} of {pair:?}, {in_place}");
                    assert!(wanted == found, "{what}");
                    assert!(send == before, "the send buffer has changed: {what}");
                } else {
                    assert!(matches!(outcome, Err(Error::Refused(_))), "{method}: {outcome:?}");
                }
            }
        }
    }
}

/// The root names by pairs with gaps what the others name by numbers without.
unsafe fn sides_with_different_types(executor: &mut Executor, world: &Communicator) {
    let pairs = unsafe { pairs() };
    let comm = world.raw().0 as usize;
    for (pair, method) in
        pairs.iter().flat_map(|pair| methods(Collective::Bcast).into_iter().map(move |m| (pair, m)))
    {
        let count = 19;
        let mut sent = memory(pair, count, 5);
        let number = |index: usize| {
            let place = (index / 2) as isize * pair.extent + pair.places[index % 2];
            (BEFORE as isize + place) as usize / 4
        };
        let wanted: Vec<u32> = (0..2 * count).map(|index| sent[number(index)]).collect();
        let mut found = vec![0_u32; 2 * count];
        let (buffer, count, datatype) = match world.rank() {
            0 => (address(&mut sent), count, pair.datatype),
            _ => (found.as_mut_ptr().cast(), 2 * count, unsafe { ffi::RSMPI_UINT32_T }),
        };
        let datatype = datatype.0 as usize;
        let data = (buffer, count as i64, datatype);
        unsafe { bcast(executor, &method, data, 0, comm).unwrap() };
        assert!(world.rank() == 0 || wanted == found, "{method} {pair:?}");
    }
}

unsafe fn number_bcast(
    executor: &mut Executor,
    comm: ffi::MPI_Comm,
    value: &mut u32,
) -> Result<(), Error> {
    let method = Method::new(Collective::Bcast, records::Algorithm::Binomial, 0)?;
    let buffer = ptr::from_mut(value).cast();
    unsafe {
        let data = (buffer, 1, ffi::RSMPI_UINT32_T.0 as usize);
        bcast(executor, &method, data, 0, comm.0 as usize)
    }
}

/// More communicators than MPICH can have at a time, halves of the ranks among them.
unsafe fn communicators_that_are_freed(executor: &mut Executor, world: &Communicator) {
    let times = if world.size() <= 2 { 2500 } else { 50 };
    for turn in 0..times {
        let mut part = world.raw();
        let mut value = if world.rank() < 2 { turn } else { u32::MAX };
        unsafe {
            let (color, key) = ((world.rank() % 2) as c_int, world.rank() as c_int);
            let code = ffi::MPI_Comm_split(world.raw(), color, key, &mut part);
            check("MPI_Comm_split", code).unwrap();
            number_bcast(executor, part, &mut value).unwrap();
            check("MPI_Comm_free", ffi::MPI_Comm_free(&mut part)).unwrap();
        }
        assert_eq!(value, turn);
    }
}

/// A receive for anything from anyone must not catch our messages.
unsafe fn wildcards_of_the_application(executor: &mut Executor, world: &Communicator) {
    let (mut caught, mut value) = (0_u32, 7 * u32::from(world.rank() == 0));
    unsafe {
        let mut request = ffi::RSMPI_REQUEST_NULL;
        let (place, number) = (ptr::from_mut(&mut caught).cast(), ffi::RSMPI_UINT32_T);
        let (anyone, anything) = (ffi::RSMPI_ANY_SOURCE, ffi::RSMPI_ANY_TAG);
        let code = ffi::MPI_Irecv(place, 1, number, anyone, anything, world.raw(), &mut request);
        check("MPI_Irecv", code).unwrap();
        number_bcast(executor, world.raw(), &mut value).unwrap();
        let own = world.rank() as c_int;
        let message = 99_u32;
        let content = ptr::from_ref(&message).cast();
        check("MPI_Send", ffi::MPI_Send(content, 1, number, own, 3, world.raw())).unwrap();
        check("MPI_Wait", ffi::MPI_Wait(&mut request, ffi::RSMPI_STATUS_IGNORE)).unwrap();
    }
    assert_eq!((caught, value), (99, 7));
}

unsafe fn what_is_refused(executor: &mut Executor, world: &Communicator) {
    let method = Method::new(Collective::Bcast, records::Algorithm::Linear, 0).unwrap();
    let (number, comm) = unsafe { (ffi::RSMPI_UINT32_T.0 as usize, world.raw().0 as usize) };
    let null = ptr::null_mut();
    let mut call =
        |count, root, comm| unsafe { bcast(executor, &method, (null, count, number), root, comm) };
    assert!(matches!(call(-1, 0, comm), Err(Error::Invalid(_))));
    for root in [-1, world.size() as c_int] {
        assert!(matches!(call(1, root, comm), Err(Error::Invalid(_))));
    }
    let none = unsafe {
        ffi::MPI_Comm_set_errhandler(ffi::RSMPI_COMM_SELF, ffi::RSMPI_ERRORS_RETURN);
        ffi::RSMPI_COMM_NULL.0 as usize
    };
    assert!(matches!(call(1, 0, none), Err(Error::Mpi { code, .. }) if code != 0));
}

/// Counts this program's own allocations; the MPI library's are none of ours.
struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: hands everything on.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        unsafe { System.dealloc(place, layout) };
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

unsafe fn nothing_is_allocated_again(executor: &mut Executor, world: &Communicator) {
    let pair = unsafe { pair([0, 8], 0, 16) };
    let comm = world.raw().0 as usize;
    let (number, sum) = unsafe { (ffi::RSMPI_UINT32_T.0 as usize, ffi::RSMPI_SUM.0 as usize) };
    let count = 1000;
    let mut send = memory(&pair, count, 0);
    let mut receive = send.clone();
    for method in methods(Collective::Bcast).into_iter().chain(methods(Collective::Reduce)) {
        for turn in 0..3 {
            let before = ALLOCATIONS.load(Ordering::Relaxed);
            let (send, receive) = (address(&mut send), address(&mut receive));
            let count = count as i64;
            unsafe {
                let arguments = match method.collective() {
                    Collective::Bcast => {
                        let datatype = pair.datatype.0 as usize;
                        Arguments::Bcast { data: Block { buffer: send, count, datatype }, root: 0 }
                    }
                    _ => {
                        let (datatype, operation) = (number, sum);
                        let data = Reduction { send, receive, datatype, operation };
                        Arguments::Reduce { data, count, root: 0 }
                    }
                };
                executor.run(&method, &arguments, comm).unwrap();
            }
            let made = ALLOCATIONS.load(Ordering::Relaxed) - before;
            assert!(turn == 0 || made == 0, "{method} allocates {made} times");
        }
    }
}
