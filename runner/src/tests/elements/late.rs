//! How far senders are ahead of a receiver that is late.

use records::Algorithm;

use super::{
    methods::{COLLECTIVES, Tried, methods},
    shape::{Memory, Shape, arguments},
};
use crate::{
    Executor, ScheduledMethod, Session,
    fake::{self, FakeType},
};

/// Messages.
const WINDOW: u32 = 8;

/// Messages of one rank to another for which there is no receive, at most: those up to the first synchronous
/// one, and those that are sent before it is waited for. Of the latter most are between leaves of two trees, in
/// each tree 8 and 7.
const MAX_AHEAD: u64 = 3 * WINDOW as u64 + 2 * (8 + 7);

/// Carries out a call, in which one rank is late, by a method; the most messages of one rank to another for which
/// there were no receives.
fn max_ahead(shape: &Shape, method: &ScheduledMethod, late: u32) -> u64 {
    let collective = method.collective();
    let session = Session::open(fake::table()).unwrap();
    let before: Vec<Memory> = (0..shape.ranks).map(|rank| shape.before(collective, rank)).collect();
    let mut datatype = fake::new_type(shape.element.clone());
    let (found, ahead) = fake::run_with_late(shape.ranks, Some(late), |rank| {
        let mut memory = before[rank as usize].clone();
        let arguments = arguments(shape, collective, rank, (&mut memory, datatype), &[]);
        let mut executor = Executor::new(session).with_window(WINDOW);
        // SAFETY: the buffers are as the arguments say.
        unsafe { executor.run(method, &arguments, 9) }.unwrap();
        memory
    });
    // SAFETY: made above.
    unsafe { (session.mpi().type_free)(&mut datatype) };
    for (rank, found) in (0..).zip(found) {
        assert!(found == shape.after(collective, rank, &before), "{method} on rank {rank}");
    }
    ahead
}

/// Every method with segments, whichever rank is late.
#[test]
fn senders_are_a_window_of_segments_ahead_at_most() {
    let ranks = 6;
    let mut never_ahead = Vec::new();
    for collective in COLLECTIVES {
        for method in methods(collective) {
            let Tried::Own(method) = method else { continue };
            if method.method.segment_bytes == 0 {
                continue;
            }
            let parts = match method.entry.algorithm {
                Algorithm::SegmentedRing => ranks as usize,
                // Two trees, or halves of a vector.
                _ => 2,
            };
            let shape = Shape {
                element: FakeType { places: vec![0, 1, 2, 3], lower: 0, extent: 4 },
                ranks,
                root: 1,
                count: 2 * MAX_AHEAD as usize * parts,
                in_place: false,
                commutative: true,
            };
            let most = (0..ranks).map(|late| max_ahead(&shape, &method, late)).max().unwrap();
            assert!(most <= MAX_AHEAD, "{collective} {method}: {most}");
            if most <= u64::from(WINDOW) {
                never_ahead.push(format!("{collective} {method}"));
            }
        }
    }
    // In these each rank waits for the others all the time.
    let of_allreduce = [
        "segmented-ring,segment=5",
        "two-level,segment=5",
        "two-level,inter=two-trees,segment=5",
        "multi-lane,segment=5",
    ];
    assert_eq!(never_ahead, of_allreduce.map(|name| format!("allreduce own:{name}")));
}
