//! The phases of one rank.

use records::{Algorithm, Collective};

use super::{
    copies::{BlockOrder, Copies},
    group::{Group, leader},
};
use crate::{Buffer, Call, ElementSpan, Entry, Nodes, Range, Round, Step, algorithms, find};

/// A way to look at the nodes.
pub(super) trait Family {
    const ALGORITHM: Algorithm;
    const DESCRIPTION: &'static str;
    /// Whether segments go through all phases; else the algorithm inside cuts them.
    const CUTS: bool = true;

    /// Appends the phases of a collective for one rank and segment.
    fn plan(collective: Collective, site: &Site<'_>, plan: &mut Plan);
}

/// Where elements begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub buffer: Buffer,
    pub start: u64,
}

impl Place {
    pub const fn new(buffer: Buffer, start: u64) -> Self {
        Place { buffer, start }
    }

    /// So many elements further.
    pub const fn plus(self, elements: u64) -> Self {
        Place { start: self.start + elements, ..self }
    }
}

pub(super) const SEND: Place = Place::new(Buffer::Send, 0);
pub(super) const RECEIVE: Place = Place::new(Buffer::Receive, 0);
pub(super) const SCRATCH: Place = Place::new(Buffer::Temporary, 0);

/// A rank's view of a call, and the segment at hand.
pub(super) struct Site<'a> {
    pub call: &'a Call<'a>,
    pub nodes: &'a Nodes,
    pub rank: u32,
    pub span: ElementSpan,
}

impl<'a> Site<'a> {
    /// Of a call whose vector is not cut.
    fn new(call: &'a Call<'a>, nodes: &'a Nodes, rank: u32) -> Self {
        Site { call, nodes, rank, span: ElementSpan { start: 0, count: call.count } }
    }

    pub fn node(&self) -> u32 {
        self.nodes.of(self.rank)
    }

    pub fn local(&self) -> u32 {
        self.nodes.local(self.rank)
    }

    /// Ranks of this node.
    pub fn members(&self) -> u64 {
        self.nodes.members(self.node()).len() as u64
    }

    pub fn all(&self) -> u64 {
        u64::from(self.call.ranks)
    }

    /// Of this node.
    pub fn leader(&self) -> u32 {
        leader(self.call, self.nodes, self.node())
    }

    pub fn is_leader(&self) -> bool {
        self.rank == self.leader()
    }

    pub fn root_node(&self) -> u32 {
        self.nodes.of(self.call.root)
    }

    pub fn is_root(&self) -> bool {
        self.rank == self.call.root
    }

    /// This rank's contribution, where it has one of its own.
    pub fn input(&self) -> Place {
        Place::new(self.call.input(), 0)
    }

    /// This rank's block of a gather's or an allgather's contribution.
    pub fn own_block(&self) -> Place {
        match self.call.in_place {
            true => RECEIVE.plus(u64::from(self.rank) * self.call.count),
            false => SEND,
        }
    }
}

/// One collective among some ranks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Phase {
    pub collective: Collective,
    pub group: Group,
    /// Its place in the group.
    pub root: u32,
    pub count: u64,
    pub segment: u64,
    pub in_place: bool,
    pub send: Place,
    pub receive: Place,
}

impl Phase {
    /// Of `count` elements, in the receive buffer alone.
    pub const fn new(collective: Collective, group: Group, root: u32, count: u64) -> Self {
        Phase {
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

    pub const fn from(self, send: Place) -> Self {
        Phase { send, ..self }
    }

    pub const fn into(self, receive: Place) -> Self {
        Phase { receive, ..self }
    }

    pub const fn in_place(self, in_place: bool) -> Self {
        Phase { in_place, ..self }
    }

    pub const fn segment(self, segment: u64) -> Self {
        Phase { segment, ..self }
    }

    fn entry(&self, call: &Call<'_>, nodes: &Nodes) -> &'static Entry {
        let named = match self.group {
            Group::Node(_) => call.intra,
            _ => call.inter,
        };
        let ranks = self.group.size(nodes);
        let named = named.and_then(|algorithm| find(self.collective, algorithm));
        let named = named.filter(|entry| serves(entry, call, ranks));
        named.unwrap_or_else(|| algorithms::standard(self.collective))
    }

    fn call<'a>(&self, call: &Call<'a>, nodes: &Nodes) -> Call<'a> {
        Call {
            root: self.root,
            segment: self.segment,
            fan_out: call.fan_out,
            commutative: call.commutative,
            in_place: self.in_place,
            ..Call::new(self.group.size(nodes), self.count)
        }
    }
}

/// Whether an algorithm can work among so many ranks.
pub(super) fn serves(entry: &Entry, call: &Call<'_>, ranks: u32) -> bool {
    let asks = entry.requirements;
    (call.commutative || !asks.commutative) && (!asks.even || ranks == 1 || ranks % 2 == 0)
}

#[derive(Debug, Clone, Copy)]
enum Work {
    Collective(Phase),
    Copies(Copies),
}

/// The most phases of a rank.
const MOST: usize = 8;

/// What a rank does, phase by phase.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Plan {
    work: [Option<Work>; MOST],
    length: usize,
    /// Elements of scratch memory that the phases hand each other.
    pub scratch: u64,
}

impl Plan {
    fn push(&mut self, work: Work) {
        if let Some(place) = self.work.get_mut(self.length) {
            *place = Some(work);
            self.length += 1;
        }
    }

    /// Then a collective.
    pub fn then(&mut self, phase: Phase) {
        self.push(Work::Collective(phase));
    }

    /// Then blocks of so many elements go from one place to another.
    pub fn copy(&mut self, order: BlockOrder, (from, into): (Place, Place), block: u64) {
        self.push(Work::Copies(Copies { order, from, into, block }));
    }

    fn works(&self) -> impl Iterator<Item = &Work> {
        self.work.iter().flatten()
    }

    /// Rounds and slots.
    pub fn extent(&self, call: &Call<'_>, rank: u32) -> (u64, u32) {
        let of_work = |work: &Work| extent(work, call, rank);
        self.works()
            .map(of_work)
            .fold((0, 0), |(rounds, slots), (more, needed)| (rounds + more, slots.max(needed)))
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

    /// Appends the steps of a round.
    pub fn round(&self, call: &Call<'_>, rank: u32, index: u64, out: &mut Round) {
        let mut index = index;
        for work in self.works() {
            let (rounds, _) = extent(work, call, rank);
            if index < rounds {
                return self.round_of(work, (call, rank), index, out);
            }
            index -= rounds;
        }
    }

    fn round_of(&self, work: &Work, (call, rank): (&Call<'_>, u32), index: u64, out: &mut Round) {
        let Some(nodes) = call.nodes else { return };
        match work {
            Work::Copies(copies) => {
                out.become_part(0, false, |step| step);
                copies.round(&Site::new(call, nodes, rank), index, out);
            }
            Work::Collective(phase) => {
                let (part, place) = (phase.call(call, nodes), phase.group.place(call, nodes, rank));
                (phase.entry(call, nodes).functions.round)(&part, place, index, out);
                let peer = |place| phase.group.rank(call, nodes, place);
                let moved = |range| self.moved(phase, range);
                out.become_part(0, false, |step| changed(step, peer, moved));
            }
        }
    }

    /// Where a range of a phase lies in the call's own buffers.
    fn moved(&self, phase: &Phase, range: Range) -> Range {
        let place = match range.buffer {
            Buffer::Send => phase.send,
            Buffer::Receive => phase.receive,
            other => Place::new(other, self.scratch),
        };
        Range::new(place.buffer, place.start + range.start, range.count)
    }
}

/// Rounds and slots.
fn extent(work: &Work, call: &Call<'_>, rank: u32) -> (u64, u32) {
    let Some(nodes) = call.nodes else { return (0, 0) };
    match work {
        Work::Copies(copies) => (copies.rounds(&Site::new(call, nodes, rank)), 0),
        Work::Collective(phase) => {
            let (part, place) = (phase.call(call, nodes), phase.group.place(call, nodes, rank));
            (phase.entry(call, nodes).functions.extent)(&part, place)
        }
    }
}

/// A step of a phase as one of the whole.
fn changed(step: Step, peer_of: impl Fn(u32) -> u32, moved: impl Fn(Range) -> Range) -> Step {
    match step {
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
