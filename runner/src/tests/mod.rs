//! Every algorithm on the fake library, for every root.

mod elements;

use std::ffi::c_void;

use records::{Algorithm, Collective, Method};

use crate::{
    AbiFamily, Arguments, Counts, Error, Executor, Mpi, MpiConstants, RankArray, ScheduledMethod,
    Session, Side, fake,
};

/// `MPI_Bcast` of `count` elements at `buffer`.
unsafe fn bcast(
    method: &ScheduledMethod,
    (buffer, count, datatype): (*mut c_void, i64, usize),
    root: i32,
    executor: &mut Executor,
    comm: usize,
) -> Result<(), Error> {
    let arguments = Arguments::bcast(Side::uniform(buffer, count, datatype), root);
    // SAFETY: the caller's buffer.
    unsafe { executor.run(method, &arguments, comm) }
}

const COUNTS: [usize; 4] = [0, 1, 2, 11];

fn plain(collective: Collective, algorithm: Algorithm, segment_bytes: u64) -> ScheduledMethod {
    let method = records::OwnMethod::plain(algorithm).with_segment(segment_bytes);
    ScheduledMethod::new(collective, &method).unwrap()
}

fn methods(collective: Collective) -> Vec<ScheduledMethod> {
    schedules::of_collective(collective)
        .flat_map(|entry| {
            let segments: &[u64] = if entry.segmented { &[0, 5] } else { &[0] };
            segments
                .iter()
                .map(|segment| plain(collective, entry.algorithm, *segment))
                .collect::<Vec<_>>()
        })
        .chain(node_aware(collective))
        .collect()
}

/// Some of the algorithms that look at nodes.
fn node_aware(collective: Collective) -> impl Iterator<Item = ScheduledMethod> {
    let texts = ["own:two-level,segment=5", "own:multi-lane", "own:binomial,order=node"];
    texts.into_iter().map(move |text| match text.parse().unwrap() {
        Method::Own(method) => ScheduledMethod::new(collective, &method).unwrap(),
        other => panic!("{other}"),
    })
}

fn executor() -> Executor {
    Executor::new(Session::open(fake::table()).unwrap())
}

/// Elements of `SPREAD` with `value` as their data and 77 between.
fn spread(value: impl Fn(usize) -> u8, count: usize) -> Vec<u8> {
    let data = |place: usize| [1, 4].iter().position(|part| *part == place % 6);
    (0..6 * count)
        .map(|place| data(place).map_or(77, |part| value(2 * (place / 6) + part)))
        .collect()
}

fn value(rank: u32, index: usize) -> u8 {
    ((index * 37 + 5) as u32 ^ (rank * 29)) as u8 | 1
}

/// The root has pairs with gaps, the others bytes, or the other way round.
#[test]
fn broadcasts_reach_everyone_whatever_the_types() {
    for ranks in [1, 2, 3, 6] {
        for method in methods(Collective::Bcast) {
            for (root, count) in (0..ranks).flat_map(|root| COUNTS.map(|count| (root, count))) {
                let has_gaps = |rank: u32| (rank == root) == (count % 2 == 0);
                let found = fake::run(ranks, |rank| {
                    let own = |index| if rank == root { value(0, index) } else { 0 };
                    let (mut buffer, number, datatype) = match has_gaps(rank) {
                        true => (spread(own, count), count, fake::SPREAD),
                        false => ((0..2 * count).map(own).collect(), 2 * count, fake::BYTE),
                    };
                    let (place, root) = (buffer.as_mut_ptr().cast::<c_void>(), root as i32);
                    // SAFETY: the buffer holds so many elements of its type.
                    unsafe {
                        let data = (place, number as i64, datatype);
                        bcast(&method, data, root, &mut executor(), 9)
                    }
                    .unwrap();
                    buffer
                });
                for (rank, found) in found.into_iter().enumerate() {
                    let wanted: Vec<u8> = match has_gaps(rank as u32) {
                        true => spread(|index| value(0, index), count),
                        false => (0..2 * count).map(|index| value(0, index)).collect(),
                    };
                    assert_eq!(found, wanted, "{method} to {rank} of {ranks} from {root}");
                }
            }
        }
    }
}

/// The operation is not commutative; algorithms that change the order must refuse it.
#[test]
fn reductions_keep_the_order_of_ranks_and_the_gaps() {
    for ranks in [1, 2, 3, 6] {
        for method in methods(Collective::Reduce) {
            for (root, count) in (0..ranks).flat_map(|root| COUNTS.map(|count| (root, count))) {
                let in_place = count % 2 == 1;
                let outcomes = fake::run(ranks, |rank| {
                    let send = spread(|index| value(rank, index), count);
                    let mut receive = if in_place { send.clone() } else { spread(|_| 0, count) };
                    let from = match in_place && rank == root {
                        true => std::ptr::without_provenance(fake::IN_PLACE),
                        false => send.as_ptr().cast::<c_void>(),
                    };
                    let into = match rank == root {
                        true => receive.as_mut_ptr().cast::<c_void>(),
                        false => std::ptr::null_mut(),
                    };
                    let (counts, datatype) = (Counts::Uniform(count as i64), fake::SPREAD);
                    // SAFETY: the buffers hold so many elements.
                    let outcome = unsafe {
                        let mut executor = executor();
                        let arguments = Arguments::combining(
                            Collective::Reduce,
                            from,
                            into,
                            counts,
                            datatype,
                            fake::COMPOSE,
                            root as i32,
                        );
                        executor.run(&method, &arguments, 9)
                    };
                    assert_eq!(send, spread(|index| value(rank, index), count));
                    outcome.map(|()| receive)
                });
                let root = root as usize;
                if method.entry.requirements.commutative || method.is_node_aware() {
                    assert!(matches!(outcomes[root], Err(Error::Refused(_))));
                    continue;
                }
                let all = |index: usize| {
                    let pair = |rank| [value(rank, index & !1), value(rank, index | 1)];
                    let composed =
                        (1..ranks).fold(pair(0), |sum, rank| fake::compose(&sum, &pair(rank)));
                    composed[index % 2]
                };
                let found = outcomes[root].as_ref().unwrap();
                assert_eq!(*found, spread(all, count), "{method} of {ranks} to {root}");
            }
        }
    }
}

#[test]
fn an_error_of_the_library_is_returned_and_the_executor_goes_on() {
    let method = plain(Collective::Bcast, Algorithm::Linear, 0);
    let outcomes = fake::run(2, |rank| {
        let mut executor = executor();
        let mut byte = 7 * u8::from(rank == 0);
        let place = std::ptr::from_mut(&mut byte).cast::<c_void>();
        // SAFETY: one byte.
        let failed =
            unsafe { bcast(&method, (place, 1, fake::BYTE), 0, &mut executor, fake::BROKEN) };
        // SAFETY: one byte.
        unsafe { bcast(&method, (place, 1, fake::BYTE), 0, &mut executor, 9) }.unwrap();
        (failed, byte)
    });
    for (call, outcome) in ["MPI_Send", "MPI_Recv"].into_iter().zip(outcomes) {
        assert_eq!(outcome, (Err(Error::Mpi { call, code: fake::CODE }), 7));
    }
}

/// More calls than are kept, by turns, and each several times: what differs from an earlier call in
/// anything is not carried out as that was.
#[test]
fn calls_like_earlier_ones_are_told_from_others() {
    let ranks = 3;
    let methods = methods(Collective::Bcast);
    fake::run(ranks, |rank| {
        let mut executor = executor();
        for turn in 0..4 {
            for (number, method) in methods.iter().enumerate() {
                let root = if turn % 2 == 0 { 0 } else { number as u32 % ranks };
                let count = [3, 8][(turn / 2 + number) % 2];
                let own = |index| if rank == root { value(turn as u32, index) } else { 0 };
                let mut buffer: Vec<u8> = (0..count).map(own).collect();
                let place = buffer.as_mut_ptr().cast::<c_void>();
                let data = (place, count as i64, fake::BYTE);
                for _ in 0..2 {
                    // SAFETY: the buffer holds so many elements.
                    unsafe { bcast(method, data, root as i32, &mut executor, 9) }.unwrap();
                    let wanted: Vec<u8> =
                        (0..count).map(|index| value(turn as u32, index)).collect();
                    assert_eq!(buffer, wanted, "{method} of {count} from {root}");
                }
            }
        }
    });
}

/// Equal blocks are followed as they were; others among as many ranks, with as many elements or the same
/// first block, are not.
#[test]
fn reduce_scatters_like_earlier_ones_are_told_from_others() {
    let all_counts = [[2, 2, 2], [1, 2, 3], [2, 2, 2], [2, 3, 1], [3, 3, 3], [2, 2, 2]];
    for algorithm in [Algorithm::Ring, Algorithm::RecursiveHalving, Algorithm::Pairwise] {
        let method = plain(Collective::ReduceScatter, algorithm, 0);
        fake::run(3, |rank| {
            let mut executor = executor();
            for (turn, counts) in (0_usize..).zip(all_counts.iter().cycle().take(12)) {
                let first: usize = counts[..rank as usize].iter().sum();
                let send: Vec<u8> = (0..9).map(|index| value(rank, index + turn)).collect();
                let mut receive = vec![0; counts[rank as usize]];
                let counts = counts.map(|count| count as i32);
                let arguments = Arguments::combining(
                    Collective::ReduceScatter,
                    send.as_ptr().cast(),
                    receive.as_mut_ptr().cast(),
                    Counts::in_a_row(RankArray::Int(counts.as_ptr())),
                    fake::BYTE,
                    fake::XOR,
                    0,
                );
                // SAFETY: the buffers hold so many elements.
                unsafe { executor.run(&method, &arguments, 9) }.unwrap();
                let of_all = |index| (0..3).fold(0, |sum, rank| sum ^ value(rank, index + turn));
                let wanted: Vec<u8> = (0..receive.len()).map(|at| of_all(first + at)).collect();
                assert_eq!(receive, wanted, "{method}, turn {turn}");
            }
        });
    }
}

#[test]
fn what_ran_is_known_until_the_next_call() {
    let method = plain(Collective::Bcast, Algorithm::Pipeline, 8192);
    fake::run(1, |_| {
        let mut executor = executor();
        let mut call = |count| {
            let mut byte = 0_u8;
            let place = std::ptr::from_mut(&mut byte).cast();
            // SAFETY: at most one byte.
            let outcome =
                unsafe { bcast(&method, (place, count, fake::BYTE), 0, &mut executor, 9) };
            let ran = executor.ran().map(ToString::to_string);
            (outcome.is_ok(), ran)
        };
        assert_eq!(call(-1), (false, None));
        assert_eq!(call(1), (true, Some("own:pipeline,segment=8KiB".into())));
        assert_eq!(call(-1), (false, None));
    });
}

#[test]
fn a_function_that_is_missing_is_named() {
    let constants = MpiConstants::new(AbiFamily::Mpich, |_| std::ptr::null()).unwrap();
    // SAFETY: there are no functions at all.
    let error = unsafe { Mpi::load(|_| std::ptr::null(), constants) }.unwrap_err();
    assert!(error.to_string().contains("MPI_Irecv"), "{error}");
}
