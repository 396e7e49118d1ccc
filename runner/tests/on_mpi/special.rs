//! What is not a matter of one algorithm.

use std::{
    alloc::{GlobalAlloc, System},
    ffi::c_int,
    ptr,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use colibri_runner::{
    Arguments, Counts, Error, Executor, Handle, RankArray, ScheduledMethod, Session, Side,
};
use records::{Algorithm, Collective};

use crate::{
    cases::Group,
    kinds::Kind,
    library::{ANY_TAG, call},
    methods::{collectives, methods, plain, shared_methods},
};

fn method(collective: Collective, algorithm: Algorithm) -> ScheduledMethod {
    plain(collective, algorithm, 0)
}

/// A number from rank 0 of a communicator.
fn number_bcast(
    executor: &mut Executor,
    datatype: Handle,
    comm: Handle,
    value: &mut u32,
) -> Result<(), Error> {
    let arguments = Arguments::bcast(Side::uniform(ptr::from_mut(value).cast(), 1, datatype), 0);
    let method = method(Collective::Bcast, Algorithm::Binomial);
    unsafe { executor.run(&method, &arguments, comm) }
}

/// More communicators than MPICH can have at a time, halves of the ranks among them. The next one
/// may have the handle of the last, with its ranks in another order.
pub fn communicators_that_are_freed(executor: &mut Executor, group: &Group<'_>) {
    let times = if group.size <= 2 { 2500 } else { 20 };
    for turn in 0..times {
        let mut part: Handle = 0;
        let (color, own) = ((group.rank % 2) as c_int, group.rank as c_int);
        let (key, is_first) = match turn % 2 {
            0 => (own, group.rank < 2),
            _ => (-own, group.rank + 2 >= group.size),
        };
        call!(group.library, c"MPI_Comm_split", group.comm => Handle, color => c_int,
            key => c_int, &mut part => *mut Handle);
        // The first call makes our communicator, the second finds it, the third remembers it.
        for call in 0..3 {
            let wanted = 3 * turn + call;
            let mut value = if is_first { wanted } else { u32::MAX };
            number_bcast(executor, group.library.names.number, part, &mut value).unwrap();
            assert_eq!(value, wanted);
        }
        call!(group.library, c"MPI_Comm_free", &mut part => *mut Handle);
    }
}

/// It is dropped when the communicator is freed, whether calls were carried out on it or not.
pub fn what_is_kept_of_a_communicator(
    session: &'static Session,
    executor: &mut Executor,
    group: &Group<'_>,
) {
    struct Kept(u32);
    static DROPPED: AtomicUsize = AtomicUsize::new(0);
    impl Drop for Kept {
        fn drop(&mut self) {
            DROPPED.fetch_add(1, Ordering::Relaxed);
        }
    }
    for (turn, calls) in [0, 1, 1].into_iter().enumerate() {
        let mut part: Handle = 0;
        call!(group.library, c"MPI_Comm_dup", group.comm => Handle, &mut part => *mut Handle);
        let keep = || unsafe { session.keep(part, || Kept(7)) }.unwrap().0;
        let kept = || unsafe { session.kept::<Kept>(part) }.unwrap().map(|kept| kept.0);
        assert_eq!(kept(), None);
        // In the last turn our communicator is there before.
        if turn < 2 {
            assert_eq!(keep(), 7);
        }
        for value in 0..calls {
            let mut found = if group.rank == 0 { value } else { u32::MAX };
            number_bcast(executor, group.library.names.number, part, &mut found).unwrap();
            assert_eq!(found, value);
        }
        assert_eq!((keep(), kept()), (7, Some(7)));
        assert_eq!(DROPPED.load(Ordering::Relaxed), turn);
        call!(group.library, c"MPI_Comm_free", &mut part => *mut Handle);
        assert_eq!(DROPPED.load(Ordering::Relaxed), turn + 1);
    }
}

/// A receive for anything from anyone must not catch our messages.
pub fn wildcards_of_the_application(executor: &mut Executor, group: &Group<'_>) {
    let (mut caught, mut value) = (0_u32, 7 * u32::from(group.rank == 0));
    let (message, own, names) = (99_u32, group.rank as c_int, group.library.names);
    let mut request = names.request_null;
    call!(group.library, c"MPI_Irecv", &mut caught => *mut u32, 1 => c_int,
        names.number => Handle, names.any_source => c_int, ANY_TAG => c_int,
        group.comm => Handle, &mut request => *mut Handle);
    number_bcast(executor, names.number, group.comm, &mut value).unwrap();
    call!(group.library, c"MPI_Send", &message => *const u32, 1 => c_int,
        names.number => Handle, own => c_int, 3 => c_int, group.comm => Handle);
    let ignored = group.library.constants.status_ignore;
    call!(group.library, c"MPI_Wait", &mut request => *mut Handle, ignored => usize);
    assert_eq!((caught, value), (99, 7));
}

/// Wrong arguments, and communicators between groups.
pub fn what_is_refused(executor: &mut Executor, group: &Group<'_>) {
    let (library, linear) = (group.library, method(Collective::Bcast, Algorithm::Linear));
    let bcast = |count, root| {
        Arguments::bcast(Side::uniform(ptr::null_mut(), count, library.names.number), root)
    };
    let mut run = |arguments, comm| unsafe { executor.run(&linear, &arguments, comm) };
    assert!(matches!(run(bcast(-1, 0), group.comm), Err(Error::Invalid(_))));
    for root in [-1, group.size as c_int] {
        assert!(matches!(run(bcast(1, root), group.comm), Err(Error::Invalid(_))));
    }
    let outcome = run(Arguments::BARRIER, group.comm);
    assert!(matches!(outcome, Err(Error::Refused(_))), "{outcome:?}");
    if group.size < 2 {
        return;
    }
    let (mut part, mut between): (Handle, Handle) = (0, 0);
    let color = (group.rank % 2) as c_int;
    call!(library, c"MPI_Comm_split", group.comm => Handle, color => c_int, 0 => c_int,
        &mut part => *mut Handle);
    call!(library, c"MPI_Intercomm_create", part => Handle, 0 => c_int, group.comm => Handle,
        1 - color => c_int, 5 => c_int, &mut between => *mut Handle);
    let outcome = run(bcast(0, 0), between);
    assert!(matches!(outcome, Err(Error::Refused(_))), "{outcome:?}");
    call!(library, c"MPI_Comm_free", &mut between => *mut Handle);
    call!(library, c"MPI_Comm_free", &mut part => *mut Handle);
}

/// Data at absolute addresses, of elements whose parts lie in different variables.
pub fn absolute_addresses(executor: &mut Executor, group: &Group<'_>) {
    let library = group.library;
    let (mut first, mut second) = (vec![group.rank, 1], vec![2, group.rank + 10]);
    let places = [first.as_mut_ptr(), second.as_mut_ptr().wrapping_add(1)];
    let places = places.map(|place| place.expose_provenance() as isize);
    let both = Kind::new(library, places, places[0].min(places[1]), 4096);
    let data = Side::uniform(ptr::null_mut(), 1, both.datatype);
    let root = group.size as c_int - 1;
    for method in methods(Collective::Bcast) {
        (first[0], second[1]) = (group.rank, group.rank + 10);
        unsafe { executor.run(&method, &Arguments::bcast(data, root), group.comm) }.unwrap();
        assert_eq!((first[0], second[1]), (group.size - 1, group.size + 9), "{method}");
    }
    let mut all = vec![[0_u32; 2]; group.size as usize];
    for method in methods(Collective::Allgather) {
        if group.size % 2 == 1 && needs_even(Collective::Allgather, &method) {
            continue;
        }
        (first[0], second[1]) = (group.rank, group.rank + 10);
        let buffer = all.as_mut_ptr().cast();
        let receive = Side::uniform(buffer, 2, library.names.number);
        let arguments = Arguments::moving(Collective::Allgather, data, receive, 0);
        unsafe { executor.run(&method, &arguments, group.comm) }.unwrap();
        let wanted: Vec<_> = (0..group.size).map(|rank| [rank, rank + 10]).collect();
        assert_eq!(all, wanted, "{method}");
    }
}

/// Whether a method serves even numbers of ranks only.
fn needs_even(collective: Collective, method: &ScheduledMethod) -> bool {
    let of = schedules::of_collective(collective);
    of.filter(|entry| entry.requirements.even)
        .any(|entry| method.to_string() == format!("own:{}", entry.name))
}

/// So many segments that some are sent synchronously; a second call allocates nothing.
pub fn many_segments(executor: &mut Executor, group: &Group<'_>) {
    let number = group.library.names.number;
    let all: Vec<u32> = (0..2000).collect();
    let sum: Vec<u32> = all.iter().map(|value| value * group.size).collect();
    let count = all.len() as i64;
    for algorithm in [Algorithm::Pipeline, Algorithm::InOrderBinary, Algorithm::TwoTrees] {
        let method = plain(Collective::Reduce, algorithm, 4);
        let (send, mut receive) = (all.clone(), vec![0; all.len()]);
        for turn in 0..2 {
            let arguments = Arguments::combining(
                Collective::Reduce,
                send.as_ptr().cast(),
                receive.as_mut_ptr().cast(),
                Counts::Uniform(count),
                number,
                group.library.names.sum,
                0,
            );
            let before = ALLOCATIONS.load(Ordering::Relaxed);
            unsafe { executor.run(&method, &arguments, group.comm) }.unwrap();
            let made = ALLOCATIONS.load(Ordering::Relaxed) - before;
            assert!(turn == 0 || made == 0, "{method} allocates {made} times");
            assert!(group.rank > 0 || receive == sum, "{method}");
        }
    }
    let method = plain(Collective::Bcast, Algorithm::Pipeline, 4);
    let mut values = if group.rank == 0 { all.clone() } else { vec![0; all.len()] };
    let data = Side::uniform(values.as_mut_ptr().cast(), count, number);
    unsafe { executor.run(&method, &Arguments::bcast(data, 0), group.comm) }.unwrap();
    assert_eq!(values, all);
}

/// Elements without any data, though there are many of them.
pub fn elements_of_nothing(executor: &mut Executor, group: &Group<'_>) {
    let mut nothing: Handle = 0;
    call!(group.library, c"MPI_Type_contiguous", 0 => c_int,
        group.library.names.number => Handle, &mut nothing => *mut Handle);
    call!(group.library, c"MPI_Type_commit", &mut nothing => *mut Handle);
    let (library, root, count) = (group.library, 0, 1 << 30);
    // Some ranks say it in another way.
    let count = if group.rank.is_multiple_of(2) { count } else { 0 };
    let data = Side::uniform(ptr::null_mut(), count, nothing);
    let (operation, zero) = (library.names.sum, ptr::null_mut());
    let number = library.names.number;
    let counts = vec![0; group.size as usize];
    let sums = |collective, counts| {
        Arguments::combining(collective, zero, zero, counts, number, operation, 0)
    };
    for collective in collectives() {
        let arguments = match collective {
            Collective::Bcast => Arguments::bcast(data, root),
            Collective::Allgather
            | Collective::Alltoall
            | Collective::Gather
            | Collective::Scatter => Arguments::moving(collective, data, data, root),
            Collective::Allreduce => sums(collective, Counts::Uniform(0)),
            Collective::ReduceScatter => {
                sums(collective, Counts::in_a_row(RankArray::Int(counts.as_ptr())))
            }
            _ => continue,
        };
        for method in methods(collective) {
            match unsafe { executor.run(&method, &arguments, group.comm) } {
                Err(Error::Refused(_)) if needs_even(collective, &method) => {}
                outcome => outcome.unwrap_or_else(|error| panic!("{collective} {method}: {error}")),
            }
        }
    }
    call!(group.library, c"MPI_Type_free", &mut nothing => *mut Handle);
}

/// What exceeds a limit is refused on all ranks, what does not is carried out; asked before and
/// when it is called.
pub fn a_limit_to_scratch_memory(session: &'static Session, group: &Group<'_>) {
    let bruck = method(Collective::Alltoall, Algorithm::Bruck);
    let number = group.library.names.number;
    let block = 100;
    let mut memory = vec![0_u32; 2 * block * group.size as usize];
    let side = |place: *mut u32| Side::uniform(place.cast(), block as i64, number);
    let half = memory.as_mut_ptr().wrapping_add(block * group.size as usize);
    let arguments =
        Arguments::moving(Collective::Alltoall, side(memory.as_mut_ptr()), side(half), 0);
    let bytes = 4 * block as u64 * u64::from(group.size);
    for (limit, fits) in [(bytes, false), (2 * bytes, false), (5 * bytes, true), (u64::MAX, true)] {
        let mut executor = Executor::new(session).with_scratch_limit(limit);
        for _ in 0..2 {
            let ran = unsafe { executor.run(&bruck, &arguments, group.comm) };
            assert_eq!(ran.is_ok(), fits, "{limit}: {ran:?}");
            assert!(fits || matches!(ran, Err(Error::Refused(_))));
        }
    }
}

/// Two threads, each on a communicator of its own that has been used by nobody yet.
pub fn threads_at_the_same_time(session: &'static Session, group: &Group<'_>) {
    let parts: [Handle; 2] = [0, 1].map(|_| {
        let mut part = 0;
        call!(group.library, c"MPI_Comm_dup", group.comm => Handle, &mut part => *mut Handle);
        part
    });
    thread::scope(|scope| {
        for comm in parts {
            scope.spawn(move || {
                let mut executor = Executor::new(session);
                for turn in 0..50 {
                    let mut value = if group.rank == 0 { turn } else { u32::MAX };
                    let number = group.library.names.number;
                    number_bcast(&mut executor, number, comm, &mut value).unwrap();
                    assert_eq!(value, turn);
                }
            });
        }
    });
    for mut comm in parts {
        call!(group.library, c"MPI_Comm_free", &mut comm => *mut Handle);
    }
}

/// Counts this program's own allocations; the MPI library's are none of ours.
pub struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: hands everything on.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: std::alloc::Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: std::alloc::Layout) {
        unsafe { System.dealloc(place, layout) };
    }
}

/// A call like an earlier one allocates nothing, save for trees that follow the counts of a v-form:
/// these are made anew to learn how much scratch memory they need.
pub fn nothing_is_allocated_again(session: &'static Session, group: &Group<'_>) {
    let mut executor = Executor::new(session);
    let kind = Kind::new(group.library, [0, 8], 0, 16);
    let (count, ranks, root) = (50, group.size as usize, 0);
    let (mut send, mut receive) = (kind.memory(count * ranks, 0), kind.memory(count * ranks, 1));
    let (operation, number) = (group.library.names.sum, group.library.names.number);
    let (s, r) = (kind.block(&mut send, count), kind.block(&mut receive, count));
    let counts = vec![count as c_int; ranks];
    let places: Vec<c_int> = (0..ranks).map(|rank| (rank * count) as c_int).collect();
    let numbers = RankArray::Int(counts.as_ptr());
    let displacements = Some(RankArray::Int(places.as_ptr()));
    let blocks =
        |side: Side| Side { counts: Counts::PerRank { counts: numbers, displacements }, ..side };
    for collective in collectives() {
        let arguments = match collective {
            Collective::Barrier => Arguments::BARRIER,
            Collective::Bcast => Arguments::bcast(s, root),
            Collective::Gatherv => Arguments::moving(collective, s, blocks(r), root),
            Collective::Scatterv => Arguments::moving(collective, blocks(s), r, root),
            Collective::Allgatherv | Collective::Alltoallv => continue,
            _ if collective.combines() => {
                let counts = match collective {
                    Collective::ReduceScatter => Counts::in_a_row(numbers),
                    _ => Counts::Uniform(count as i64),
                };
                let (from, into) = (s.address.cast_const(), r.address);
                Arguments::combining(collective, from, into, counts, number, operation, root)
            }
            _ => Arguments::moving(collective, s, r, root),
        };
        let is_vector = matches!(collective, Collective::Gatherv | Collective::Scatterv);
        for method in methods(collective).into_iter().chain(shared_methods(collective)) {
            if is_vector && method.to_string() != "own:linear" {
                continue;
            }
            for turn in 0..3 {
                let before = ALLOCATIONS.load(Ordering::Relaxed);
                let outcome = unsafe { executor.run(&method, &arguments, group.comm) };
                let made = ALLOCATIONS.load(Ordering::Relaxed) - before;
                let counts = turn > 0 && outcome.is_ok();
                assert!(!counts || made == 0, "{collective} {method} allocates {made} times");
            }
        }
    }
}
