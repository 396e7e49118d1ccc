//! The phases of one rank.

use records::{Algorithm, Collective, OwnMethod};

use super::{
    copies::{BlockOrder, Copies},
    group::RankGroup,
    site::{CallSite, MemoryPlace, RECEIVE, SEND},
};
use crate::{
    Buffer, Call, Entry, NodesOfRanks, Range, Round, Step, algorithms, find, program::Extent,
    shared_of_collective,
};

/// A way to look at the nodes.
pub(super) trait Family {
    const ALGORITHM: Algorithm;
    const DESCRIPTION: &'static str;
    /// Whether segments go through all phases; else the algorithm inside cuts them.
    const CUTS: bool = true;

    /// Appends the phases of a collective for one rank and segment.
    fn plan(collective: Collective, site: &CallSite<'_>, plan: &mut PhasePlan);
}

/// One collective among some ranks.
#[derive(Debug, Clone, Copy)]
pub(super) struct GroupPhase {
    pub collective: Collective,
    pub group: RankGroup,
    /// Its place in the group.
    pub root: u32,
    pub count: u64,
    pub segment: u64,
    pub in_place: bool,
    pub send: MemoryPlace,
    pub receive: MemoryPlace,
}

impl GroupPhase {
    /// Of `count` elements, in the receive buffer alone.
    pub const fn new(collective: Collective, group: RankGroup, root: u32, count: u64) -> Self {
        GroupPhase {
            collective,
            group,
            root,
            count,
            segment: 0,
            in_place: false,
            send: SEND,
            receive: RECEIVE,
        }
    }

    pub const fn from(self, send: MemoryPlace) -> Self {
        GroupPhase { send, ..self }
    }

    pub const fn into(self, receive: MemoryPlace) -> Self {
        GroupPhase { receive, ..self }
    }

    pub const fn in_place(self, in_place: bool) -> Self {
        GroupPhase { in_place, ..self }
    }

    pub const fn segment(self, segment: u64) -> Self {
        GroupPhase { segment, ..self }
    }

    fn entry(&self, call: &Call<'_>, nodes: &NodesOfRanks) -> &'static Entry {
        // Of a name of shared memory, each phase takes the one of its collective.
        let find_inside = |algorithm: Algorithm| match algorithm.shares_memory() {
            true => shared_of_collective(self.collective),
            false => find(self.collective, algorithm),
        };
        let named = match self.group {
            RankGroup::Node(_) => call.intra.and_then(find_inside),
            _ => call.inter.and_then(|algorithm| find(self.collective, algorithm)),
        };
        let ranks = self.group.size(nodes);
        let named = named.filter(|entry| serves(entry, call, ranks));
        named.unwrap_or_else(|| algorithms::standard(self.collective))
    }

    fn call<'a>(&self, call: &Call<'a>, nodes: &NodesOfRanks) -> Call<'a> {
        let entry = self.entry(call, nodes);
        let fan_out = match entry.shares_memory() {
            true => OwnMethod::standard_fan_out(entry.algorithm),
            false => call.fan_out,
        };
        Call {
            root: self.root,
            segment: self.segment,
            fan_out,
            commutative: call.commutative,
            in_place: self.in_place,
            shared: call.shared,
            line: call.line,
            ..Call::new(self.group.size(nodes), self.count)
        }
    }
}

/// Whether an algorithm can work among so many ranks.
pub(super) fn serves(entry: &Entry, call: &Call<'_>, ranks: u32) -> bool {
    let asks = entry.requirements;
    (call.commutative || !asks.commutative) && (!asks.even || ranks == 1 || ranks.is_multiple_of(2))
}

#[derive(Debug, Clone, Copy)]
enum Work {
    Collective(GroupPhase),
    Copies(Copies),
}

/// The most phases of a rank: a family with more ends in a panic, not with fewer phases.
const MOST: usize = 8;

/// What a rank does, phase by phase.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PhasePlan {
    work: [Option<Work>; MOST],
    length: usize,
    /// Elements of scratch memory that the phases hand each other.
    pub scratch: u64,
}

impl PhasePlan {
    fn push(&mut self, work: Work) {
        self.work[self.length] = Some(work);
        self.length += 1;
    }

    /// Then a collective.
    pub fn then(&mut self, phase: GroupPhase) {
        self.push(Work::Collective(phase));
    }

    /// Then blocks of so many elements go from one place to another.
    pub fn copy(
        &mut self,
        order: BlockOrder,
        (from, into): (MemoryPlace, MemoryPlace),
        block: u64,
    ) {
        self.push(Work::Copies(Copies { order, from, into, block }));
    }

    fn works(&self) -> impl Iterator<Item = &Work> {
        self.work.iter().flatten()
    }

    /// How long it is.
    pub fn extent(&self, call: &Call<'_>, rank: u32) -> Extent {
        let parts = self.works().map(|work| extent(work, call, rank));
        parts.fold(Extent::default(), |all, part| Extent {
            rounds: all.rounds + part.rounds,
            slots: all.slots.max(part.slots),
            turns: all.turns + part.turns,
        })
    }

    /// Elements of scratch memory.
    pub fn temporary(&self, call: &Call<'_>, rank: u32, scratch: &mut Round) -> u64 {
        let Some(nodes) = call.nodes else { return 0 };
        let of_work = |work: &Work| match work {
            Work::Collective(phase) => {
                let (part, place) = (phase.call(call, nodes), phase.group.place(call, nodes, rank));
                (phase.entry(call, nodes).functions.needs)(&part, place, scratch).temporary
            }
            Work::Copies(_) => 0,
        };
        self.scratch + self.works().map(of_work).max().unwrap_or_default()
    }

    /// Appends the steps of a round; the first turn with shared memory is `turn`.
    pub fn round(&self, call: &Call<'_>, rank: u32, index: u64, turn: u64, out: &mut Round) {
        let (mut index, mut turn) = (index, turn);
        for work in self.works() {
            let Extent { rounds, turns, .. } = extent(work, call, rank);
            if index < rounds {
                return self.round_of(work, (call, rank), index, turn as u32, out);
            }
            index -= rounds;
            turn += turns;
        }
    }

    fn round_of(
        &self,
        work: &Work,
        (call, rank): (&Call<'_>, u32),
        index: u64,
        turn: u32,
        out: &mut Round,
    ) {
        let Some(nodes) = call.nodes else { return };
        match work {
            Work::Copies(copies) => {
                out.become_part(0, false, |step| step);
                copies.round(&CallSite::new(call, nodes, rank), index, out);
            }
            Work::Collective(phase) => {
                let (part, place) = (phase.call(call, nodes), phase.group.place(call, nodes, rank));
                (phase.entry(call, nodes).functions.round)(&part, place, index, out);
                let peer = |place| phase.group.rank(call, nodes, place);
                let moved = |range| self.moved(phase, range, peer, turn);
                out.become_part(0, false, |step| changed(step, peer, moved, turn));
            }
        }
    }

    /// Where a range of a phase lies in the call's own buffers.
    fn moved(
        &self,
        phase: &GroupPhase,
        range: Range,
        peer_of: impl Fn(u32) -> u32,
        first_turn: u32,
    ) -> Range {
        let place = match range.buffer {
            Buffer::Send => phase.send,
            Buffer::Receive => phase.receive,
            Buffer::Shared { owner, turn } => {
                let buffer = Buffer::Shared { owner: peer_of(owner), turn: first_turn + turn };
                return Range { buffer, ..range };
            }
            Buffer::Line { owner, flag, turn } => {
                let (owner, turn) = (peer_of(owner), first_turn + turn);
                return Range { buffer: Buffer::Line { owner, flag, turn }, ..range };
            }
            other => MemoryPlace::new(other, self.scratch),
        };
        // Nothing lies nowhere: the rank may lack the buffer.
        let start = if range.count == 0 { 0 } else { place.start + range.start };
        Range::new(place.buffer, start, range.count)
    }
}

fn extent(work: &Work, call: &Call<'_>, rank: u32) -> Extent {
    let Some(nodes) = call.nodes else { return Extent::default() };
    match work {
        Work::Copies(copies) => {
            let rounds = copies.rounds(&CallSite::new(call, nodes, rank));
            Extent { rounds, ..Extent::default() }
        }
        Work::Collective(phase) => {
            let (part, place) = (phase.call(call, nodes), phase.group.place(call, nodes, rank));
            (phase.entry(call, nodes).functions.extent)(&part, place)
        }
    }
}

/// A step of a phase as one of the whole.
fn changed(
    step: Step,
    peer_of: impl Fn(u32) -> u32,
    moved: impl Fn(Range) -> Range,
    first_turn: u32,
) -> Step {
    match step {
        Step::Signal { flag, turn, value } => Step::Signal { flag, turn: first_turn + turn, value },
        Step::Await { rank, flag, turn, value } => {
            Step::Await { rank: peer_of(rank), flag, turn: first_turn + turn, value }
        }
        Step::AwaitAll { flag, turn, value } => {
            Step::AwaitAll { flag, turn: first_turn + turn, value }
        }
        Step::AwaitFinished { turn, depth } => {
            Step::AwaitFinished { turn: first_turn + turn, depth }
        }
        Step::Finish { turn, all_have_begun } => {
            Step::Finish { turn: first_turn + turn, all_have_begun }
        }
        Step::Send { peer, slot, range } => {
            Step::Send { peer: peer_of(peer), slot, range: moved(range) }
        }
        Step::SendReady { peer, slot, range } => {
            Step::SendReady { peer: peer_of(peer), slot, range: moved(range) }
        }
        Step::Receive { peer, slot, range } => {
            Step::Receive { peer: peer_of(peer), slot, range: moved(range) }
        }
        Step::Wait { slot } => Step::Wait { slot },
        Step::Combine { source, into, order } => {
            Step::Combine { source: moved(source), into: moved(into), order }
        }
        Step::Copy { source, into } => Step::Copy { source: moved(source), into: moved(into) },
    }
}
