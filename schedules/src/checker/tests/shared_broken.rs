//! Steps with shared memory that no executor could carry out, and orders that are none.

use records::Collective;

use super::super::*;
use crate::{
    Buffer, CallError, Flag, Needs, NodesOfRanks, OperandOrder, Range, Round, Step,
    program::ALL_SHARED,
    shared::{LINE_DEPTH, SHARED_DEPTH},
};

/// A reduction of one element that is none: each rank does the steps of its own, once.
struct Steps {
    of: Vec<Vec<Step>>,
    /// Of each rank.
    turns: Vec<u64>,
}

impl CheckedSchedule for Steps {
    fn collective(&self) -> Collective {
        Collective::Reduce
    }

    fn check(&self, _: &Call<'_>) -> Result<(), CallError> {
        Ok(())
    }

    fn round(&self, _: &Call<'_>, rank: u32, index: u64, out: &mut Round) -> bool {
        out.begin(1, 2, false);
        if index == 0 {
            self.of[rank as usize].iter().for_each(|step| out.push(*step));
        }
        index == 0
    }

    fn needs(&self, _: &Call<'_>, rank: u32) -> Needs {
        let turns = self.turns[rank as usize];
        Needs { rounds: 1, slots: 2, temporary: 1, header: 0, turns, shared_elements: ALL_SHARED }
    }
}

const OWN: Range = Range::new(Buffer::Send, 0, 1);
const ARRIVED: Step = Step::Signal { flag: Flag::Arrived, turn: 0, value: 1 };
const FINISH: Step = Step::Finish { turn: 0, all_have_begun: false };

fn shared(owner: u32) -> Range {
    Range::new(Buffer::Shared { owner, turn: 0 }, 0, 1)
}

fn put(rank: u32) -> Step {
    Step::Copy { source: OWN, into: shared(rank) }
}

fn take(owner: u32) -> Step {
    Step::Copy { source: shared(owner), into: Range::new(Buffer::Temporary, 0, 1) }
}

fn arrival(rank: u32, value: u32) -> Step {
    Step::Await { rank, flag: Flag::Arrived, turn: 0, value }
}

fn call(ranks: usize) -> Call<'static> {
    Call { shared: 2, line: 1, ..Call::new(ranks as u32, 1) }
}

/// What is wrong on ranks that do these steps, each ending its turn. One more, the root, ends when all have;
/// it should have a sum that nobody makes, so that what is right otherwise ends with that.
fn fault_of<const RANKS: usize>(of: [&[Step]; RANKS]) -> ScheduleFault {
    let root = [Step::AwaitFinished { turn: 0, depth: 0 }];
    let ended = |steps: &[Step]| [steps, &[FINISH]].concat();
    let of = of.into_iter().chain([&root[..]]).map(ended).collect();
    let steps = Steps { of, turns: vec![1; RANKS + 1] };
    let call = Call { root: RANKS as u32, ..call(RANKS + 1) };
    let faults = [Order::Ranks, Order::Reversed, Order::Random(1)]
        .map(|order| check_sequence(&[(&steps, call)], order).unwrap_err().fault);
    let is_result = |fault: &ScheduleFault| matches!(fault, ScheduleFault::Result { .. });
    assert!(faults.iter().all(|fault| is_result(fault) == is_result(&faults[0])), "{faults:?}");
    faults[0].clone()
}

fn problem_of<const RANKS: usize>(of: [&[Step]; RANKS]) -> (u32, Problem) {
    match fault_of(of) {
        ScheduleFault::Step { rank, problem, .. } => (rank, problem),
        fault => panic!("{fault}"),
    }
}

fn assert_in_order<const RANKS: usize>(of: [&[Step]; RANKS]) {
    let fault = fault_of(of);
    let is_right = matches!(fault, ScheduleFault::Result { rank, .. } if rank == RANKS as u32);
    assert!(is_right, "{fault}");
}

fn race(owner: u32, conflict: Conflict, other: u32) -> Problem {
    Problem::Race { buffer: shared(owner).buffer, element: 0, conflict, other }
}

#[test]
fn an_await_tells_of_what_came_before_the_value_that_it_awaits() {
    let again = Step::Signal { flag: Flag::Arrived, turn: 0, value: 2 };
    // Whenever rank 1 looks, it awaits 1 alone.
    let early = [ARRIVED, put(0), again];
    assert_in_order([&early, &[arrival(0, 2), take(0)]]);
    let expected = (1, race(0, Conflict::ReadEarly, 0));
    assert_eq!(problem_of([&early, &[arrival(0, 1), take(0)]]), expected);
}

#[test]
fn what_a_rank_knows_it_tells() {
    let told = [arrival(0, 1), ARRIVED];
    assert_in_order([&[put(0), ARRIVED], &told, &[arrival(1, 1), take(0)]]);
    let in_vain = [ARRIVED, arrival(0, 1)];
    let (rank, problem) = problem_of([&[put(0), ARRIVED], &in_vain, &[arrival(1, 1), take(0)]]);
    assert_eq!((rank, problem), (2, race(0, Conflict::ReadEarly, 0)));
}

#[test]
fn a_message_tells_its_receiver_and_nobody_else() {
    let nothing = Range::new(Buffer::Receive, 0, 0);
    let send = |peer| [Step::Send { peer, slot: 0, range: nothing }, Step::Wait { slot: 0 }];
    let receive = |peer| [Step::Receive { peer, slot: 0, range: nothing }, Step::Wait { slot: 0 }];
    let join = |parts: &[&[Step]]| parts.concat();
    let (writer, reader) = (join(&[&[put(0)], &send(1)]), join(&[&receive(0), &[take(0)]]));
    assert_in_order([&writer, &reader]);
    // That its receive is posted tells the sender nothing, though the send may have waited for it.
    let writer = join(&[&[put(0), ARRIVED], &send(1), &[put(0)]]);
    let reader = join(&[&[arrival(0, 1), take(0)], &receive(0)]);
    let (rank, problem) = problem_of([&writer, &reader]);
    let found = [(0, race(0, Conflict::WrittenEarly, 1)), (1, race(0, Conflict::ReadEarly, 0))];
    assert!(found.contains(&(rank, problem.clone())), "{rank} {problem}");
}

#[test]
fn only_its_owner_writes_shared_memory() {
    let into_other = Step::Copy { source: OWN, into: shared(1) };
    assert_eq!(problem_of([&[into_other], &[]]), (0, Problem::NotOwner(shared(1))));
    let destroy =
        Step::Combine { source: shared(1), into: shared(0), order: OperandOrder::IntoFirst };
    let destroyed = problem_of([&[put(0), arrival(1, 1), destroy], &[put(1), ARRIVED]]);
    assert_eq!(destroyed, (0, Problem::NotOwner(shared(1))));
    let message = Step::Send { peer: 1, slot: 0, range: shared(0) };
    assert_eq!(problem_of([&[put(0), message], &[]]), (0, Problem::SharedMessage(shared(0))));
    let receive = Step::Receive { peer: 1, slot: 0, range: shared(0) };
    assert_eq!(problem_of([&[receive], &[]]), (0, Problem::SharedMessage(shared(0))));
}

#[test]
fn ranges_beyond_what_is_shared_are_caught() {
    let beyond = Range { start: 2, ..shared(0) };
    let copy = Step::Copy { source: OWN, into: beyond };
    assert_eq!(problem_of([&[copy], &[]]), (0, Problem::Bounds(beyond, 2)));
    let beside = Range::new(Buffer::Line { owner: 0, flag: Flag::Taken, turn: 0 }, 1, 1);
    let copy = Step::Copy { source: OWN, into: beside };
    assert_eq!(problem_of([&[copy], &[]]), (0, Problem::Bounds(beside, 1)));
}

#[test]
fn flags_rise_and_are_awaited_where_they_rise_to() {
    let rising = Problem::NotRising(Flag::Arrived, 1);
    assert_eq!(problem_of([&[ARRIVED, ARRIVED], &[]]), (0, rising));
    assert_eq!(problem_of([&[arrival(1, 0)], &[]]), (0, Problem::NoSignal(Flag::Arrived)));
    let two = Step::Signal { flag: Flag::Arrived, turn: 0, value: 2 };
    let missed = Problem::Unsignalled { rank: 1, flag: Flag::Arrived, value: 1 };
    assert_eq!(problem_of([&[arrival(1, 1)], &[two]]), (0, missed));
    assert_eq!(problem_of([&[arrival(0, 1)], &[]]), (0, Problem::NotOnNode(0)));
    assert_eq!(problem_of([&[arrival(7, 1)], &[]]), (0, Problem::NotOnNode(7)));
    let forever = Blocked { rank: 1, peer: 0, awaited: Awaited::Flag(Flag::Arrived, 1) };
    assert_eq!(fault_of([&[arrival(1, 1)], &[arrival(0, 1)]]), {
        let first = Blocked { rank: 0, peer: 1, ..forever };
        let root = Blocked { rank: 2, peer: 0, awaited: Awaited::Finish };
        ScheduleFault::Deadlock(vec![first, forever, root])
    });
}

#[test]
fn each_turn_is_finished_once_and_nothing_comes_after() {
    assert_eq!(problem_of([&[FINISH], &[]]), (0, Problem::OtherTurn(0, 1)));
    assert_eq!(problem_of([&[FINISH, put(0)], &[]]), (0, Problem::OtherTurn(0, 1)));
    let later = Step::Signal { flag: Flag::Arrived, turn: 1, value: 1 };
    assert_eq!(problem_of([&[later], &[]]), (0, Problem::OtherTurn(1, 0)));
    let unfinished = Steps { of: vec![vec![], vec![]], turns: vec![1, 1] };
    let fault = check(&unfinished, &call(2)).unwrap_err();
    assert_eq!(fault, ScheduleFault::Turns { rank: 0, finished: 0, announced: 1 });
    let unlike = Steps { of: vec![vec![FINISH], vec![]], turns: vec![1, 0] };
    let fault = check(&unlike, &call(2)).unwrap_err();
    assert_eq!(fault, ScheduleFault::UnequalTurns { rank: 1, turns: 0, other: 0, others: 1 });
    let claim = Step::Finish { turn: 0, all_have_begun: true };
    let steps = Steps { of: vec![vec![claim], vec![FINISH]], turns: vec![1, 1] };
    let fault = check(&steps, &call(2)).unwrap_err();
    let problem = Problem::NotBegun(1);
    assert_eq!(fault, ScheduleFault::Step { rank: 0, round: 0, problem });
}

#[test]
fn ranks_of_several_nodes_share_nothing() {
    let nodes = NodesOfRanks::block(2, 1);
    let call = Call { nodes: Some(&nodes), ..call(2) };
    let steps =
        Steps { of: vec![vec![put(0), ARRIVED, FINISH], vec![arrival(0, 1)]], turns: vec![1, 1] };
    // Rank 1 comes first: rank 0 has no result.
    let fault = check_sequence(&[(&steps, call)], Order::Reversed).unwrap_err().fault;
    assert_eq!(fault, ScheduleFault::Step { rank: 1, round: 0, problem: Problem::NotOnNode(0) });
    let steps = Steps { of: vec![vec![put(0), FINISH], vec![take(0)]], turns: vec![1, 1] };
    // Rank 1 comes first: rank 0 has no result.
    let fault = check_sequence(&[(&steps, call)], Order::Reversed).unwrap_err().fault;
    assert_eq!(fault, ScheduleFault::Step { rank: 1, round: 0, problem: Problem::NotOnNode(0) });
    // Each node counts its own turns.
    let steps = Steps { of: vec![vec![put(0), FINISH], vec![]], turns: vec![1, 0] };
    let fault = check(&steps, &call).unwrap_err();
    assert!(matches!(fault, ScheduleFault::Result { rank: 0, .. }), "{fault}");
}

#[test]
fn calls_of_a_sequence_are_of_the_same_ranks() {
    let steps = Steps { of: vec![vec![]; 3], turns: vec![0; 3] };
    let other = Call { root: 1, ..Call::new(2, 1) };
    let fault = check_sequence(&[(&steps, call(3)), (&steps, other)], Order::Ranks).unwrap_err();
    assert_eq!(fault.call, 1);
    assert!(
        matches!(fault.fault, ScheduleFault::OtherRanks { ranks: 2, wanted: 3, .. }),
        "{fault}"
    );
}

/// The memory of a turn is that of a later one: who writes first asks whether all are done.
#[test]
fn memory_is_used_again_when_all_have_finished() {
    // One call of several turns. Rank 0 puts an element down in each, rank 1 takes it.
    let turns = SHARED_DEPTH + 1;
    let in_turn = |turn| Range::new(Buffer::Shared { owner: 0, turn }, 0, 1);
    let writer = |depth: Option<u32>| {
        let of_turn = |turn| {
            let asks = depth.map(|depth| Step::AwaitFinished { turn, depth });
            let steps = [
                Step::Copy { source: OWN, into: in_turn(turn) },
                Step::Signal { flag: Flag::Arrived, turn, value: 1 },
                Step::Finish { turn, all_have_begun: false },
            ];
            asks.into_iter().chain(steps)
        };
        (0..turns).flat_map(of_turn).collect::<Vec<_>>()
    };
    let into = Range::new(Buffer::Temporary, 0, 1);
    let of_turn = |turn| {
        [
            Step::Await { rank: 0, flag: Flag::Arrived, turn, value: 1 },
            Step::Copy { source: in_turn(turn), into },
            Step::Finish { turn, all_have_begun: false },
        ]
    };
    let reader: Vec<_> = (0..turns).flat_map(of_turn).collect();
    // One more ends when both have.
    let finish = |turn| Step::Finish { turn, all_have_begun: false };
    let mut root: Vec<_> = (0..turns).map(finish).collect();
    root.insert(turns as usize - 1, Step::AwaitFinished { turn: turns - 1, depth: 0 });
    let fault = |depth, order| {
        let of = vec![writer(depth), reader.clone(), root.clone()];
        let steps = Steps { of, turns: vec![u64::from(turns); 3] };
        let call = Call { root: 2, ..call(3) };
        check_sequence(&[(&steps, call)], order).unwrap_err().fault
    };
    for order in [Order::Ranks, Order::Reversed, Order::Random(1), Order::Random(2)] {
        let right = fault(Some(SHARED_DEPTH), order);
        assert!(matches!(right, ScheduleFault::Result { rank: 2, .. }), "{order:?} {right}");
        for depth in [None, Some(SHARED_DEPTH + 1), Some(LINE_DEPTH)] {
            let wrong = fault(depth, order);
            let is_race = |conflict| {
                matches!(&wrong, ScheduleFault::Step { problem: Problem::Race { conflict: found, .. }, .. }
                    if *found == conflict)
            };
            let found = is_race(Conflict::ReadLate) || is_race(Conflict::WrittenEarly);
            assert!(found, "{order:?} {depth:?}: {wrong}");
        }
    }
}
