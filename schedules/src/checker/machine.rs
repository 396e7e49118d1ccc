//! The ranks, side by side, each run until it has to wait.

use std::collections::VecDeque;

use records::Collective;
use rustc_hash::FxHashMap;

use super::{
    expectation::before,
    fault::{Problem, ScheduleFault, SequenceFault, Traffic},
    memory::{CheckedRank, CheckedSlot, Waiting, is_words},
    order::{Order, Ready},
    schedule::CheckedSchedule,
    shared::{Depths, SharedMemory},
    turns::Nodes,
    values::{IN_FLIGHT, UNDEFINED, ValueTable},
};
use crate::{Buffer, Call, OperandOrder, Range, Round, Step, entry::known_to};

/// A message, or its half that was posted first.
struct Message {
    sender: Option<(u32, u32)>,
    receiver: Option<(u32, u32)>,
    payload: Vec<u64>,
    /// Whether the payload is counts.
    words: bool,
    /// What the sender knew: see [`CheckedRank::known`].
    known: Vec<u32>,
    /// Which of the receiver's posts the receive is.
    posted: u32,
}

/// The calls that the ranks carry out, one after the other.
pub(super) type Calls<'a> = &'a [(&'a dyn CheckedSchedule, Call<'a>)];

pub(super) struct CheckingMachine<'a> {
    pub calls: Calls<'a>,
    pub ranks: Vec<CheckedRank<'a>>,
    pub nodes: Nodes,
    pub shared: SharedMemory,
    pub values: ValueTable,
    /// By call and rank: the rank's count of posts when it came.
    pub came: Vec<Vec<Option<u32>>>,
    messages: Vec<Message>,
    /// By sender and receiver: what is posted and not matched, oldest first.
    open: FxHashMap<(u32, u32), VecDeque<usize>>,
    pub ready: Ready,
    pub traffic: Traffic,
}

impl<'a> CheckingMachine<'a> {
    /// Of calls that can be served.
    pub fn new(calls: Calls<'a>, order: Order, depths: Depths) -> Self {
        let ranks = calls.first().map_or(0, |(_, call)| call.ranks);
        let nodes = calls.iter().find_map(|(_, call)| call.nodes);
        let commutative = calls.iter().map(|(_, call)| call.commutative);
        let is_ordered = calls.iter().any(|(schedule, call)| {
            keeps_order(schedule.collective())
                || (0..ranks).any(|rank| schedule.needs(call, rank).turns > 0)
        });
        let counted = if is_ordered { ranks } else { 0 };
        CheckingMachine {
            calls,
            ranks: (0..ranks).map(|_| CheckedRank::new(counted)).collect(),
            nodes: Nodes::new(ranks, nodes),
            shared: SharedMemory::new(counted, depths),
            values: ValueTable::new(commutative.collect()),
            came: vec![vec![None; ranks as usize]; calls.len()],
            messages: Vec::new(),
            open: FxHashMap::default(),
            ready: Ready::new(ranks, order),
            traffic: Traffic::default(),
        }
    }

    /// Runs all ranks until none can go on.
    pub fn run(&mut self) -> Result<(), SequenceFault> {
        let mut round = Round::default();
        (0..self.ranks.len() as u32).for_each(|rank| self.begin_call(rank));
        while let Some(rank) = self.ready.pop() {
            self.advance(rank, &mut round).map_err(|fault| {
                let call = self.ranks[rank as usize].number;
                SequenceFault { call, fault }
            })?;
        }
        Ok(())
    }

    /// Gives a rank what it has when it comes to its call; it is done where there is none.
    fn begin_call(&mut self, rank: u32) {
        let number = self.ranks[rank as usize].number;
        let Some((schedule, call)) = self.calls.get(number) else {
            self.ranks[rank as usize].done = true;
            return;
        };
        let collective = schedule.collective();
        let known = known_to(collective, call, rank);
        let needs = schedule.needs(&known, rank);
        let buffers = before(collective, call, rank, number, &mut self.values);
        let own = &mut self.ranks[rank as usize];
        (own.round, own.place, own.call) = (0, 0, known);
        (own.send, own.receive) = (buffers.send, buffers.receive);
        own.receives_nothing = collective == Collective::Bcast && rank == call.root;
        own.temporary = vec![UNDEFINED; needs.temporary as usize];
        own.header = vec![0; needs.header as usize];
        own.slots = vec![CheckedSlot::Idle; needs.slots as usize];
        // Memory is shared only by calls of datatypes whose elements lie one after the other.
        own.apart = if needs.turns > 0 { u64::MAX } else { call.disjoint(collective) };
        own.turns = needs.turns;
        own.shared_elements = needs.shared_elements;
        self.came[number][rank as usize] = Some(self.count_post(rank));
        if needs.turns > 0 {
            self.ranks[rank as usize].turns_before = self.shared.finished(rank);
            self.begin_turn(rank);
        }
    }

    /// Runs a rank until all its calls have ended, it has to wait, or others are to go on.
    fn advance(&mut self, rank: u32, round: &mut Round) -> Result<(), ScheduleFault> {
        while let Some((schedule, _)) = self.calls.get(self.ranks[rank as usize].number) {
            let own = &mut self.ranks[rank as usize];
            // Round 0 brings the header.
            let header = if own.round > 0 { own.header.clone() } else { Vec::new() };
            let call = Call { header: &header, ..own.call };
            if own.round == 1 && own.place == 0 && !header.is_empty() {
                let needs = schedule.needs(&call, rank);
                own.temporary.resize(needs.temporary as usize, UNDEFINED);
            }
            if !schedule.round(&call, rank, own.round, round) {
                self.verify(rank)?;
                self.ranks[rank as usize].number += 1;
                self.begin_call(rank);
                continue;
            }
            while let Some(step) = round.steps().get(self.ranks[rank as usize].place) {
                let went_on = self.step(rank, *step).map_err(|problem| ScheduleFault::Step {
                    rank,
                    round: self.ranks[rank as usize].round,
                    problem,
                })?;
                if !went_on {
                    return Ok(());
                }
                self.ranks[rank as usize].place += 1;
                if self.ready.interrupts() {
                    self.ready.push(rank);
                    return Ok(());
                }
            }
            let own = &mut self.ranks[rank as usize];
            let late = |slot: &CheckedSlot| matches!(slot, CheckedSlot::Receive { range, .. } if is_words(range.buffer));
            if own.slots.iter().any(late) {
                let (round, problem) = (own.round, Problem::Late);
                return Err(ScheduleFault::Step { rank, round, problem });
            }
            own.round += 1;
            own.place = 0;
        }
        Ok(())
    }

    /// Does one step; false if it has to wait.
    fn step(&mut self, rank: u32, step: Step) -> Result<bool, Problem> {
        match step {
            Step::Send { peer, slot, range } => self.send(rank, peer, slot, range)?,
            Step::SendReady { peer, slot, range } => {
                self.is_ready(rank, peer)?;
                self.send(rank, peer, slot, range)?;
            }
            Step::Receive { peer, slot, range } => self.receive(rank, peer, slot, range)?,
            Step::Wait { slot } => return self.wait(rank, slot),
            Step::Copy { source, into } => {
                are_apart(source, into)?;
                let payload = self.read(rank, source)?;
                self.write(rank, into, &payload)?;
            }
            Step::Combine { source, into, order } => self.combine(rank, source, into, order)?,
            Step::Signal { flag, turn, value } => self.signal(rank, flag, turn, value)?,
            Step::Await { rank: other, flag, turn, value } => {
                return self.await_flag(rank, other, flag, turn, value);
            }
            Step::AwaitAll { flag, turn, value } => {
                return self.await_all(rank, flag, turn, value);
            }
            Step::AwaitFinished { turn, depth } => return self.await_finished(rank, turn, depth),
            Step::Finish { turn, all_have_begun } => self.finish(rank, turn, all_have_begun)?,
        }
        Ok(true)
    }

    fn send(&mut self, rank: u32, peer: u32, slot: u32, range: Range) -> Result<(), Problem> {
        self.claim(rank, peer, slot)?;
        self.count_post(rank);
        let payload = self.ranks[rank as usize].read(range)?;
        let words = is_words(range.buffer);
        self.traffic.messages += 1;
        self.traffic.elements += if words { 0 } else { range.count };
        let known = self.ranks[rank as usize].known.clone();
        let message = self.matching((rank, peer), |message| message.sender.is_none());
        let entry = &mut self.messages[message];
        entry.sender = Some((rank, slot));
        (entry.payload, entry.words, entry.known) = (payload, words, known);
        self.wake(self.messages[message].receiver);
        self.ranks[rank as usize].slots[slot as usize] = CheckedSlot::Send { message, peer, range };
        Ok(())
    }

    /// Whether the rank knows that the receive of its next message to `peer` is posted.
    fn is_ready(&self, rank: u32, peer: u32) -> Result<(), Problem> {
        let first = self.open.get(&(rank, peer)).and_then(|open| open.front());
        let receive = first.map(|first| &self.messages[*first]).filter(|m| m.receiver.is_some());
        let known = self.ranks[rank as usize].known.get(peer as usize).copied().unwrap_or(0);
        match receive {
            Some(message) if message.posted <= known => Ok(()),
            _ => Err(Problem::NotReady(peer)),
        }
    }

    /// Counts a post of `rank`; its number.
    pub(super) fn count_post(&mut self, rank: u32) -> u32 {
        match self.ranks[rank as usize].known.get_mut(rank as usize) {
            Some(own) => {
                *own += 1;
                *own
            }
            None => 0,
        }
    }

    fn receive(&mut self, rank: u32, peer: u32, slot: u32, range: Range) -> Result<(), Problem> {
        self.claim(rank, peer, slot)?;
        if is_words(range.buffer) {
            self.ranks[rank as usize].words(range)?;
        } else {
            self.ranks[rank as usize].elements(range)?.fill(IN_FLIGHT);
        }
        let posted = self.count_post(rank);
        let message = self.matching((peer, rank), |message| message.receiver.is_none());
        let entry = &mut self.messages[message];
        (entry.receiver, entry.posted) = (Some((rank, slot)), posted);
        self.wake(self.messages[message].sender);
        self.ranks[rank as usize].slots[slot as usize] =
            CheckedSlot::Receive { message, peer, range };
        Ok(())
    }

    /// The oldest message of the pair that lacks this half, or a new one.
    fn matching(&mut self, pair: (u32, u32), lacks: impl Fn(&Message) -> bool) -> usize {
        let open = self.open.entry(pair).or_default();
        // All open messages of a pair lack the same half.
        if let Some(first) = open.front()
            && lacks(&self.messages[*first])
        {
            let first = *first;
            open.pop_front();
            return first;
        }
        let number = self.messages.len();
        open.push_back(number);
        self.messages.push(Message {
            sender: None,
            receiver: None,
            payload: Vec::new(),
            words: false,
            known: Vec::new(),
            posted: 0,
        });
        number
    }

    fn wake(&mut self, other: Option<(u32, u32)>) {
        if let Some((rank, slot)) = other {
            let own = &mut self.ranks[rank as usize];
            if own.waits_for == Some(Waiting::Slot(slot)) {
                own.waits_for = None;
                self.ready.push(rank);
            }
        }
    }

    fn claim(&mut self, rank: u32, peer: u32, slot: u32) -> Result<(), Problem> {
        if peer == rank || peer as usize >= self.ranks.len() {
            return Err(Problem::NoPeer(peer));
        }
        match self.ranks[rank as usize].slots.get(slot as usize) {
            None => Err(Problem::NoSlot(slot)),
            Some(CheckedSlot::Idle) => Ok(()),
            Some(_) => Err(Problem::Busy(slot)),
        }
    }

    fn wait(&mut self, rank: u32, slot: u32) -> Result<bool, Problem> {
        let own = &mut self.ranks[rank as usize];
        let state = *own.slots.get(slot as usize).ok_or(Problem::NoSlot(slot))?;
        let message = match state {
            CheckedSlot::Idle => return Err(Problem::Idle(slot)),
            CheckedSlot::Send { message, .. } | CheckedSlot::Receive { message, .. } => message,
        };
        if self.messages[message].sender.is_none() || self.messages[message].receiver.is_none() {
            own.waits_for = Some(Waiting::Slot(slot));
            return Ok(false);
        }
        own.slots[slot as usize] = CheckedSlot::Idle;
        match state {
            CheckedSlot::Send { range, .. } => {
                if self.ranks[rank as usize].read(range).as_ref()
                    != Ok(&self.messages[message].payload)
                {
                    return Err(Problem::Changed(range));
                }
            }
            CheckedSlot::Receive { range, .. } => self.deliver(rank, message, range)?,
            CheckedSlot::Idle => {}
        }
        Ok(true)
    }

    fn deliver(&mut self, rank: u32, message: usize, range: Range) -> Result<(), Problem> {
        // The sender looks at the payload again when it waits.
        let payload = self.messages[message].payload.clone();
        let words = self.messages[message].words;
        let known = std::mem::take(&mut self.messages[message].known);
        if payload.len() as u64 != range.count {
            return Err(Problem::Length(payload.len() as u64, range.count));
        }
        if words != is_words(range.buffer) {
            return Err(Problem::Kind(Buffer::Header, range.buffer));
        }
        if !words
            && self.ranks[rank as usize].elements(range)?.iter().any(|value| *value != IN_FLIGHT)
        {
            return Err(Problem::Changed(range));
        }
        self.ranks[rank as usize].learn(&known);
        self.ranks[rank as usize].write(range, &payload)
    }

    fn combine(
        &mut self,
        rank: u32,
        source: Range,
        into: Range,
        order: OperandOrder,
    ) -> Result<(), Problem> {
        are_apart(source, into)?;
        let (from, to) = (self.read(rank, source)?, self.read(rank, into)?);
        if is_words(source.buffer) {
            return Err(Problem::Kind(source.buffer, into.buffer));
        }
        let mut sums = Vec::with_capacity(from.len());
        for (from, to) in from.into_iter().zip(to) {
            let (left, right) = match order {
                OperandOrder::SourceFirst => (from as u32, to as u32),
                OperandOrder::IntoFirst => (to as u32, from as u32),
            };
            let sum = self.values.combine(left, right).ok_or_else(|| {
                Problem::Combination(self.values.show(left), self.values.show(right))
            })?;
            sums.push(u64::from(sum));
        }
        self.traffic.combined += into.count;
        if order == OperandOrder::IntoFirst {
            if source.buffer == Buffer::Send {
                return Err(Problem::ReadOnly(Buffer::Send));
            }
            let lost = vec![u64::from(UNDEFINED); source.count as usize];
            self.write(rank, source, &lost)?;
        }
        self.write(rank, into, &sums)
    }
}

/// Whether it matters what happened before what.
const fn keeps_order(collective: Collective) -> bool {
    matches!(
        collective,
        Collective::Barrier
            | Collective::Gather
            | Collective::Gatherv
            | Collective::Scatter
            | Collective::Scatterv
    )
}

/// Whether two ranges are as long as each other, of one kind, and have nothing in common.
fn are_apart(source: Range, into: Range) -> Result<(), Problem> {
    if source.count != into.count {
        return Err(Problem::Length(source.count, into.count));
    }
    if is_words(source.buffer) != is_words(into.buffer) {
        return Err(Problem::Kind(source.buffer, into.buffer));
    }
    let ends = [source, into].map(|range| range.start.saturating_add(range.count));
    if source.buffer == into.buffer && source.start < ends[1] && into.start < ends[0] {
        return Err(Problem::Overlap(source, into));
    }
    Ok(())
}
