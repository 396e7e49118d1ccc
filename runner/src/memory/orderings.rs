//! Whether the orderings of the flags are enough, shown by trying every order in which ranks may run and every value
//! that a processor's memory may show them (loom, up to a number of preemptions).
//!
//! The ranks follow the steps of the real schedules, call after call, by the flags that areas have. Data are cells that
//! loom watches: an access that is not ordered behind another one ends the test, whatever was read. The last test weakens
//! one ordering after the other and wants that to be seen.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, atomic::Ordering},
    time::Instant,
};

use loom::{cell::UnsafeCell, model::Builder, sync::atomic::AtomicU64, thread};
use records::Collective;
use schedules::{
    Buffer, Call, OperandOrder, Range, Round, Step,
    shared::{LINE_DEPTH, SHARED_DEPTH, min_elements, shared_of_collective},
};

use super::flags::{FlagWord, FlagWords, Flags, WORDS, Wait, number};
use crate::Result;

/// With three, loom tries for hours.
const RANKS: u32 = 2;
/// Elements beside a flag.
const LINE: u64 = 1;
/// Elements of a call that is too long for a line, and takes two cells.
const LONG: u64 = 2;

/// What is done otherwise than it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Weakened {
    Nothing,
    /// What tells of a turn's end does not release.
    Finish,
    /// Who awaits a turn's end does not acquire.
    AwaitFinished,
    /// Raising a flag does not release.
    Signal,
    /// Awaiting a flag does not acquire.
    Await,
}

/// A word that may be used with a weaker ordering than is asked for.
struct ModelWord {
    word: AtomicU64,
    weakened: Weakened,
    is_flag: bool,
}

impl FlagWord for ModelWord {
    fn load(&self, order: Ordering) -> u64 {
        match (self.weakened, self.is_flag) {
            (Weakened::Await, true) | (Weakened::AwaitFinished, false) => {
                self.word.load(Ordering::Relaxed)
            }
            _ => self.word.load(order),
        }
    }

    fn store(&self, value: u64, order: Ordering) {
        match (self.weakened, self.is_flag) {
            (Weakened::Signal, true) | (Weakened::Finish, false) => {
                self.word.store(value, Ordering::Relaxed);
            }
            _ => self.word.store(value, order),
        }
    }
}

type Cells = Vec<UnsafeCell<u64>>;

/// What one rank writes and all read.
struct Part {
    words: Vec<ModelWord>,
    finished_by_all: ModelWord,
    /// Beside each word.
    lines: Vec<Cells>,
    halves: Vec<Cells>,
}

struct Node {
    parts: Vec<Part>,
}

// SAFETY: loom ends the test at an access to a cell that is not ordered behind all others.
unsafe impl Send for Node {}
// SAFETY: as above.
unsafe impl Sync for Node {}

fn cells(number: u64) -> Cells {
    (0..number).map(|_| UnsafeCell::new(0)).collect()
}

impl Node {
    fn new(ranks: u32, weakened: Weakened) -> Self {
        let word = |number| ModelWord { word: AtomicU64::new(0), weakened, is_flag: number > 0 };
        let part = |_| Part {
            words: (0..WORDS).map(word).collect(),
            finished_by_all: word(0),
            lines: (0..WORDS).map(|_| cells(LINE)).collect(),
            halves: (0..SHARED_DEPTH).map(|_| cells(min_elements(ranks))).collect(),
        };
        Node { parts: (0..ranks).map(part).collect() }
    }
}

/// The words of a node as a rank finds them.
struct ModelWords {
    node: Arc<Node>,
    own: usize,
    others: Vec<usize>,
}

impl FlagWords for ModelWords {
    type Word = ModelWord;
    type Part = usize;

    fn own(&self) -> usize {
        self.own
    }

    fn others(&self) -> &[usize] {
        &self.others
    }

    fn word(&self, part: usize, number: usize) -> &ModelWord {
        &self.node.parts[part].words[number]
    }

    fn finished_by_all(&self, part: usize) -> &ModelWord {
        &self.node.parts[part].finished_by_all
    }
}

/// Waits by letting others run.
struct Yielding;

impl Wait for Yielding {
    fn until(&mut self, mut is_so: impl FnMut() -> bool) -> Result<()> {
        while !is_so() {
            thread::yield_now();
        }
        Ok(())
    }
}

/// A call of a sequence.
#[derive(Debug, Clone, Copy)]
struct ModelCall {
    collective: Collective,
    root: u32,
    count: u64,
}

/// What a rank gives to a call.
fn given(rank: u32, turn: u64, element: u64) -> u64 {
    1000 * turn + 10 * u64::from(rank) + element
}

/// A rank in a call.
struct Rank {
    rank: u32,
    flags: Flags<ModelWords>,
    turn: u64,
    send: Vec<u64>,
    receive: Vec<u64>,
    temporary: Vec<u64>,
}

impl Rank {
    fn new(rank: u32, node: Arc<Node>) -> Self {
        let ranks = node.parts.len();
        let others = (1..ranks).map(|distance| (rank as usize + distance) % ranks).collect();
        let flags = Flags::new(ModelWords { node, own: rank as usize, others });
        let (send, receive, temporary) = (Vec::new(), Vec::new(), Vec::new());
        Rank { rank, flags, turn: 0, send, receive, temporary }
    }

    fn shared(&self, buffer: Buffer) -> Option<&Cells> {
        let parts = &self.flags.words.node.parts;
        match buffer {
            Buffer::Shared { owner, turn } => {
                let turn = self.turn + u64::from(turn);
                let half = turn % u64::from(SHARED_DEPTH);
                Some(&parts[owner as usize].halves[half as usize])
            }
            Buffer::Line { owner, flag, turn } => {
                let place = number(flag, self.turn + u64::from(turn));
                Some(&parts[owner as usize].lines[place])
            }
            _ => None,
        }
    }

    fn own(&mut self, buffer: Buffer) -> &mut Vec<u64> {
        match buffer {
            Buffer::Send => &mut self.send,
            Buffer::Receive => &mut self.receive,
            Buffer::Temporary => &mut self.temporary,
            other => panic!("{other:?} is no buffer of these calls"),
        }
    }

    fn read(&mut self, range: Range) -> Vec<u64> {
        let places = range.start as usize..(range.start + range.count) as usize;
        match self.shared(range.buffer) {
            Some(cells) => {
                // SAFETY: loom sees whether it may be read now.
                let read = |cell: &UnsafeCell<u64>| cell.with(|it| unsafe { *it });
                cells[places].iter().map(read).collect()
            }
            None => self.own(range.buffer)[places].to_vec(),
        }
    }

    fn write(&mut self, range: Range, values: &[u64]) {
        let places = range.start as usize..(range.start + range.count) as usize;
        match self.shared(range.buffer) {
            Some(cells) => cells[places].iter().zip(values).for_each(|(cell, value)| {
                // SAFETY: loom sees whether it may be written now.
                cell.with_mut(|it| unsafe { *it = *value });
            }),
            None => self.own(range.buffer)[places].copy_from_slice(values),
        }
    }

    fn step(&mut self, step: Step) {
        let at = |turn: u32| self.turn + u64::from(turn);
        match step {
            Step::Copy { source, into } => {
                let values = self.read(source);
                self.write(into, &values);
            }
            Step::Combine { source, into, order: OperandOrder::SourceFirst } => {
                let (left, right) = (self.read(source), self.read(into));
                let sums: Vec<u64> = left.iter().zip(&right).map(|(a, b)| a + b).collect();
                self.write(into, &sums);
            }
            Step::Signal { flag, turn, value } => self.flags.signal(flag, at(turn), value),
            Step::Await { rank, flag, turn, value } => {
                self.flags.await_flag(rank as usize, flag, at(turn), value, Yielding).unwrap();
            }
            Step::AwaitAll { flag, turn, value } => {
                self.flags.await_all(flag, at(turn), value, Yielding).unwrap();
            }
            Step::AwaitFinished { turn, depth } => {
                self.flags.await_finished(at(turn), depth, Yielding).unwrap();
            }
            Step::Finish { turn, all_have_begun } => self.flags.finish(at(turn), all_have_begun),
            other => panic!("{other:?} is no step of shared memory"),
        }
    }

    /// Carries out a call; what it leaves is right.
    fn call(&mut self, call: ModelCall) {
        let ranks = self.flags.words.node.parts.len() as u32;
        let ModelCall { collective, root, count } = call;
        let entry = shared_of_collective(collective).unwrap();
        let (shared, line) = (min_elements(ranks), LINE);
        let scheduled = Call { root, shared, line, ..Call::new(ranks, count) };
        entry.check(&scheduled).unwrap();
        let needs = entry.needs(&scheduled, self.rank);
        let this = self.turn;
        let inputs = |rank: u32| (0..count).map(move |element| given(rank, this, element));
        self.send = inputs(self.rank).collect();
        self.receive = match collective == Collective::Bcast && self.rank == root {
            true => self.send.clone(),
            false => vec![0; count as usize],
        };
        self.temporary = vec![0; needs.temporary as usize];
        let expected: Option<Vec<u64>> = match collective {
            Collective::Bcast => Some(inputs(root).collect()),
            Collective::Reduce if self.rank != root => None,
            _ => Some((0..count).map(|k| (0..ranks).map(|of| given(of, this, k)).sum()).collect()),
        };
        let mut round = Round::of_one_call();
        for index in 0..needs.rounds {
            entry.round(&scheduled, self.rank, index, &mut round);
            for step in round.steps().to_vec() {
                self.step(step);
            }
        }
        assert!(expected.is_none_or(|expected| expected == self.receive), "{call:?}");
        self.turn += needs.turns;
    }
}

/// Tries all orders of a sequence of calls in which one rank gives way once before it has to.
fn check(calls: &[ModelCall], weakened: Weakened) {
    let mut model = Builder::new();
    model.preemption_bound = Some(1);
    model.max_branches = 100_000;
    let calls = calls.to_vec();
    model.check(move || {
        let node = Arc::new(Node::new(RANKS, weakened));
        let run = |rank: u32| {
            let (node, calls) = (Arc::clone(&node), calls.clone());
            move || {
                let mut rank = Rank::new(rank, node);
                calls.iter().for_each(|call| rank.call(*call));
            }
        };
        let others: Vec<_> = (1..RANKS).map(|rank| thread::spawn(run(rank))).collect();
        run(0)();
        others.into_iter().for_each(|other| other.join().unwrap());
    });
}

fn call(collective: Collective, root: u32, count: u64) -> ModelCall {
    ModelCall { collective, root, count }
}

/// What is called one after the other, and what that shows.
type Sequence = (&'static str, Vec<ModelCall>);

fn short_sequences() -> Vec<Sequence> {
    use Collective::{Allreduce, Barrier, Bcast};
    let barrier = call(Barrier, 0, 0);
    vec![
        ("barriers", vec![barrier; 2]),
        ("bcast through cells", vec![call(Bcast, 0, LONG)]),
        ("allreduce beside the flag", vec![call(Allreduce, 0, LINE)]),
        ("allreduce by slices", vec![call(Allreduce, 0, LONG)]),
    ]
}

/// So many calls that memory is used again.
fn long_sequences() -> Vec<Sequence> {
    use Collective::{Barrier, Bcast, Reduce};
    let (bcast, barrier) = (call(Bcast, 0, LONG), call(Barrier, 0, 0));
    vec![
        ("bcast beside the flag", vec![call(Bcast, 0, LINE); LINE_DEPTH as usize + 1]),
        ("bcast through the ring", vec![call(Bcast, 0, min_elements(RANKS) + 1)]),
        ("bcasts through cells", vec![bcast; SHARED_DEPTH as usize + 1]),
        ("roots change", vec![bcast, call(Reduce, 1, LONG), call(Bcast, 1, LONG), bcast]),
        ("a barrier tells that all have begun", vec![bcast, barrier, bcast]),
    ]
}

fn all_are_ordered(sequences: &[Sequence]) {
    for (name, calls) in sequences {
        let begun = Instant::now();
        check(calls, Weakened::Nothing);
        println!("{name}: {:.2?}", begun.elapsed());
    }
}

#[test]
fn two_ranks_are_ordered_by_their_flags() {
    all_are_ordered(&short_sequences());
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn long_sequences_are_ordered_by_flags() {
    all_are_ordered(&long_sequences());
}

/// The first of the sequences in which it is seen.
fn seen(weakened: Weakened) -> Option<&'static str> {
    let is_seen = |calls: &[ModelCall]| {
        let outcome = catch_unwind(AssertUnwindSafe(|| check(calls, weakened)));
        let Err(fault) = outcome else { return false };
        let said = fault.downcast_ref::<String>().map(String::as_str);
        let said = said.or_else(|| fault.downcast_ref::<&str>().copied()).unwrap_or_default();
        assert!(said.contains("Causality violation"), "{weakened:?}: {said}");
        true
    };
    let mut all = short_sequences().into_iter().chain(long_sequences());
    all.find(|(_, calls)| is_seen(calls)).map(|(name, _)| name)
}

#[test]
fn a_weaker_ordering_is_seen() {
    use Weakened::{Await, AwaitFinished, Finish, Signal};
    for weakened in [Signal, Await, Finish, AwaitFinished] {
        let name = seen(weakened);
        assert!(name.is_some(), "{weakened:?} is in order in every sequence");
        println!("{weakened:?}: {name:?}");
    }
}
