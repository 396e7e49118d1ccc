//! What a rank does: steps, and the rounds in which they come.

use crate::{Buffer, Flag, Range, arrangement::Arrangement};

/// Which operand of a combination stands left; it matters to non-commutative operations only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperandOrder {
    /// `into = source op into`: what `MPI_Reduce_local(source, into)` does.
    SourceFirst,
    /// `into = into op source`. The source is lost: an executor may compute
    /// `MPI_Reduce_local(into, source)` and copy back.
    IntoFirst,
}

/// One step of a rank's program.
///
/// Messages between one pair of ranks match in the order in which they are posted. A range that is
/// being sent must not change, and one that is being received into must not be looked at, until
/// the slot has been waited on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Posts a send of `range` to rank `peer`; the slot is busy until waited on.
    Send {
        peer: u32,
        /// Below [`Needs::slots`](crate::Needs::slots).
        slot: u32,
        range: Range,
    },
    /// As [`Step::Send`], of a message whose receive is posted already, as this rank knows from
    /// messages that it has received: `MPI_Irsend` is legal.
    SendReady {
        peer: u32,
        /// Below [`Needs::slots`](crate::Needs::slots).
        slot: u32,
        range: Range,
    },
    /// Posts a receive from rank `peer` into `range`; the slot is busy until waited on.
    Receive {
        peer: u32,
        /// Below [`Needs::slots`](crate::Needs::slots).
        slot: u32,
        /// Whereto; as long as what is sent.
        range: Range,
    },
    /// Waits until the slot's send or receive is complete.
    Wait {
        /// Below [`Needs::slots`](crate::Needs::slots).
        slot: u32,
    },
    /// Combines two ranges of one length by the reduction operation, into the second.
    Combine {
        /// Read; lost for [`OperandOrder::IntoFirst`].
        source: Range,
        /// Read and written.
        into: Range,
        /// Which operand stands left.
        order: OperandOrder,
    },
    /// Copies a range onto another one of the same length.
    Copy {
        /// Read.
        source: Range,
        /// Written.
        into: Range,
    },
    /// Raises this rank's flag to a value: whoever awaits it sees all that this rank did before. Within a turn
    /// the values of a flag rise from 1.
    Signal {
        flag: Flag,
        /// Counted from the first turn of the call.
        turn: u32,
        value: u32,
    },
    /// Waits until another rank of the node has raised its flag to this value of this turn, or beyond.
    Await { rank: u32, flag: Flag, turn: u32, value: u32 },
    /// As [`Step::Await`], of all other ranks of the node.
    AwaitAll { flag: Flag, turn: u32, value: u32 },
    /// Waits until all ranks of the node have finished every turn up to the one that is `depth` turns before this,
    /// which used the same memory.
    AwaitFinished { turn: u32, depth: u32 },
    /// The end of this rank's part in a turn: it looks at nothing that others share in it any more.
    Finish {
        turn: u32,
        /// Whether the rank knows by its part that all ranks of the node have begun the turn.
        all_have_begun: bool,
    },
}

/// The steps of one round: scratch memory, to be used again and again.
#[derive(Debug, Clone, Default)]
pub struct Round {
    steps: Vec<Step>,
    destinations: u32,
    slots: u32,
    last: bool,
    /// Kept for programs that look at the counts of all ranks, as long as these are the same.
    arrangement: Arrangement,
}

impl Round {
    /// The steps, in program order.
    #[inline]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// How many different ranks this rank sends to in the steady state of the algorithm (the
    /// children of a tree): what the gap of a model may depend on. At least 1.
    #[inline]
    pub fn destinations(&self) -> u32 {
        self.destinations
    }

    /// Whether the program ends with this round.
    #[inline]
    pub fn is_last(&self) -> bool {
        self.last
    }

    /// The program's number of slots.
    #[inline]
    pub(crate) fn slots(&self) -> u32 {
        self.slots
    }

    pub(crate) fn begin(&mut self, destinations: u32, slots: u32, last: bool) {
        self.steps.clear();
        self.slots = slots;
        self.destinations = destinations.max(1);
        self.last = last;
    }

    /// For programs that know only while they make a round: see [`Round::destinations`].
    pub(crate) fn set_destinations(&mut self, destinations: usize) {
        self.destinations = (destinations as u32).max(1);
    }

    /// Makes a round of one program that of another, which goes on after it or not.
    pub(crate) fn become_part(&mut self, slots: u32, last: bool, change: impl Fn(Step) -> Step) {
        (self.slots, self.last) = (slots, last);
        self.steps.iter_mut().for_each(|step| *step = change(*step));
    }

    /// For the rounds of one call, of any of its ranks: see [`Round::begin_call`].
    pub fn of_one_call() -> Self {
        let mut round = Round::default();
        round.begin_call();
        round
    }

    /// Up to the next call of this, all rounds are of one call: what is worked out of the counts of all
    /// ranks (their order, the largest one) is worked out once. Without it that is done for each round anew,
    /// which takes as long as there are ranks.
    pub fn begin_call(&mut self) {
        self.arrangement.begin_call();
    }

    /// The largest of the counts of all ranks.
    pub(crate) fn largest_count(&mut self, counts: &[u64]) -> u64 {
        self.arrangement.largest(counts)
    }

    /// Lends the scratch memory for sorted ranks, to what appends steps for one.
    pub(crate) fn with_arrangement<T>(
        &mut self,
        append: impl FnOnce(&mut Arrangement, &mut Round) -> T,
    ) -> T {
        let mut arrangement = std::mem::take(&mut self.arrangement);
        let made = append(&mut arrangement, self);
        self.arrangement = arrangement;
        made
    }

    /// Appends any step.
    pub fn push(&mut self, step: Step) {
        self.steps.push(step);
    }

    pub(crate) fn extend(&mut self, steps: impl Iterator<Item = Step>) {
        self.steps.extend(steps);
    }

    pub(crate) fn send(&mut self, peer: u32, slot: u32, range: Range) {
        self.push(Step::Send { peer, slot, range });
    }

    pub(crate) fn send_ready(&mut self, peer: u32, slot: u32, range: Range) {
        self.push(Step::SendReady { peer, slot, range });
    }

    pub(crate) fn receive(&mut self, peer: u32, slot: u32, range: Range) {
        self.push(Step::Receive { peer, slot, range });
    }

    /// What the round has received so far goes to the beginning of the scratch memory: one message, which its rank has
    /// already, and where it has it nothing may be written.
    pub(crate) fn receive_aside(&mut self) {
        for step in &mut self.steps {
            if let Step::Receive { range, .. } = step {
                *range = Range::new(Buffer::Temporary, 0, range.count);
            }
        }
    }

    pub(crate) fn wait(&mut self, slot: u32) {
        self.push(Step::Wait { slot });
    }

    /// `into = source op into`.
    pub(crate) fn combine_left(&mut self, source: Range, into: Range) {
        self.combine(source, into, OperandOrder::SourceFirst);
    }

    pub(crate) fn combine(&mut self, source: Range, into: Range, order: OperandOrder) {
        if into.count > 0 {
            self.push(Step::Combine { source, into, order });
        }
    }

    /// Copies, unless there is nothing to copy or it is there already.
    pub(crate) fn copy(&mut self, source: Range, into: Range) {
        if into.count > 0 && source != into {
            self.push(Step::Copy { source, into });
        }
    }

    pub(crate) fn signal(&mut self, flag: Flag, value: u64) {
        self.push(Step::Signal { flag, turn: 0, value: value as u32 });
    }

    pub(crate) fn await_flag(&mut self, rank: u32, flag: Flag, value: u64) {
        self.push(Step::Await { rank, flag, turn: 0, value: value as u32 });
    }

    pub(crate) fn await_all(&mut self, flag: Flag, value: u64) {
        self.push(Step::AwaitAll { flag, turn: 0, value: value as u32 });
    }

    pub(crate) fn await_finished(&mut self, depth: u32) {
        self.push(Step::AwaitFinished { turn: 0, depth });
    }

    pub(crate) fn finish(&mut self, all_have_begun: bool) {
        self.push(Step::Finish { turn: 0, all_have_begun });
    }

    /// Exchanges signals: messages of no elements. Takes slots 0 and 1.
    pub(crate) fn exchange_nothing(&mut self, from: u32, to: u32) {
        let nothing = Range::new(Buffer::Receive, 0, 0);
        self.receive(from, 0, nothing);
        self.send(to, 1, nothing);
        self.wait(0);
        self.wait(1);
    }

    /// Receives and sends several messages at once, then waits for all; a rank, a slot and a range each.
    pub(crate) fn exchange_all<T, U>(&mut self, receives: T, sends: U)
    where
        T: Iterator<Item = (u32, u32, Range)> + Clone,
        U: Iterator<Item = (u32, u32, Range)> + Clone,
    {
        receives.clone().for_each(|(from, slot, into)| self.receive(from, slot, into));
        sends.clone().for_each(|(to, slot, what)| self.send(to, slot, what));
        receives.for_each(|(_, slot, _)| self.wait(slot));
        sends.for_each(|(_, slot, _)| self.wait(slot));
    }

    /// Receives and sends at once, then waits for both; a range of no elements makes no message.
    /// Takes slots 0 and 1.
    pub(crate) fn exchange(&mut self, from: u32, into: Range, to: u32, what: Range) {
        if into.count > 0 {
            self.receive(from, 0, into);
        }
        if what.count > 0 {
            self.send(to, 1, what);
        }
        if into.count > 0 {
            self.wait(0);
        }
        if what.count > 0 {
            self.wait(1);
        }
    }
}
