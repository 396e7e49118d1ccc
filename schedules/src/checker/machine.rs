//! The ranks, side by side, each run until it has to wait.

use std::collections::VecDeque;

use records::Collective;
use rustc_hash::FxHashMap;

use super::{
    expectation::before,
    fault::{Problem, ScheduleFault, Traffic},
    memory::{CheckedRank, CheckedSlot, is_words},
    schedule::CheckedSchedule,
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

pub(super) struct CheckingMachine<'a, S> {
    pub schedule: &'a S,
    pub call: &'a Call<'a>,
    pub ranks: Vec<CheckedRank<'a>>,
    pub values: ValueTable,
    messages: Vec<Message>,
    /// By sender and receiver: what is posted and not matched, oldest first.
    open: FxHashMap<(u32, u32), VecDeque<usize>>,
    ready: VecDeque<u32>,
    pub traffic: Traffic,
}

impl<'a, S: CheckedSchedule> CheckingMachine<'a, S> {
    pub fn new(schedule: &'a S, call: &'a Call<'a>) -> Self {
        let collective = schedule.collective();
        let mut values = ValueTable::new(call.commutative);
        let apart = call.disjoint(collective);
        let rank = |rank: u32| {
            let known = known_to(collective, call, rank);
            let needs = schedule.needs(&known, rank);
            let buffers = before(collective, call, rank, &mut values);
            let mut posts = vec![0; if keeps_order(collective) { call.ranks as usize } else { 0 }];
            posts.iter_mut().skip(rank as usize).take(1).for_each(|own| *own = 1);
            CheckedRank {
                round: 0,
                place: 0,
                send: buffers.send,
                receive: buffers.receive,
                temporary: vec![UNDEFINED; needs.temporary as usize],
                apart,
                header: vec![0; needs.header as usize],
                slots: vec![CheckedSlot::Idle; needs.slots as usize],
                call: known,
                known: posts,
                waits_for: None,
                done: false,
            }
        };
        CheckingMachine {
            schedule,
            call,
            ranks: (0..call.ranks).map(rank).collect(),
            values,
            messages: Vec::new(),
            open: FxHashMap::default(),
            ready: (0..call.ranks).collect(),
            traffic: Traffic::default(),
        }
    }

    /// Runs all ranks until none can go on.
    pub fn run(mut self) -> Result<Self, ScheduleFault> {
        let mut round = Round::default();
        while let Some(rank) = self.ready.pop_front() {
            self.advance(rank, &mut round)?;
        }
        Ok(self)
    }

    /// Runs a rank until it ends or has to wait.
    fn advance(&mut self, rank: u32, round: &mut Round) -> Result<(), ScheduleFault> {
        loop {
            let own = &mut self.ranks[rank as usize];
            // Round 0 brings the header.
            let header = if own.round > 0 { own.header.clone() } else { Vec::new() };
            let call = Call { header: &header, ..own.call };
            if own.round == 1 && own.place == 0 && !header.is_empty() {
                let needs = self.schedule.needs(&call, rank);
                own.temporary.resize(needs.temporary as usize, UNDEFINED);
            }
            if !self.schedule.round(&call, rank, own.round, round) {
                self.ranks[rank as usize].done = true;
                return Ok(());
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
                let payload = self.ranks[rank as usize].read(source)?;
                self.ranks[rank as usize].write(into, &payload)?;
            }
            Step::Combine { source, into, order } => self.combine(rank, source, into, order)?,
            Step::Signal { .. }
            | Step::Await { .. }
            | Step::AwaitAll { .. }
            | Step::AwaitFinished { .. }
            | Step::Finish { .. } => todo!(),
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
    fn count_post(&mut self, rank: u32) -> u32 {
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
            if own.waits_for == Some(slot) {
                own.waits_for = None;
                self.ready.push_back(rank);
            }
        }
    }

    fn claim(&mut self, rank: u32, peer: u32, slot: u32) -> Result<(), Problem> {
        if peer == rank || peer >= self.call.ranks {
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
            own.waits_for = Some(slot);
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
        for (own, new) in self.ranks[rank as usize].known.iter_mut().zip(known) {
            *own = new.max(*own);
        }
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
        let (from, to) =
            (self.ranks[rank as usize].read(source)?, self.ranks[rank as usize].read(into)?);
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
            self.ranks[rank as usize].elements(source)?.fill(UNDEFINED);
        }
        self.ranks[rank as usize].write(into, &sums)
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
