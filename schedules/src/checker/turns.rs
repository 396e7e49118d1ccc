//! Steps with memory that the ranks of a node share.

use super::{
    fault::{Problem, ScheduleFault},
    machine::{Calls, CheckingMachine},
    memory::{Waiting, owner},
    schedule::CheckedSchedule,
    shared::Found,
};
use crate::{Buffer, Call, Flag, NodesOfRanks, Range, entry::known_to, shared::TurnPlaces};

/// The ranks of each node.
pub(super) struct Nodes {
    node_of: Vec<u32>,
    members: Vec<Vec<u32>>,
}

impl Nodes {
    /// Where nothing is known, all are on one.
    pub fn new(ranks: u32, nodes: Option<&NodesOfRanks>) -> Self {
        match nodes {
            None => Nodes { node_of: vec![0; ranks as usize], members: vec![(0..ranks).collect()] },
            Some(nodes) => Nodes {
                node_of: (0..ranks).map(|rank| nodes.node_of(rank)).collect(),
                members: (0..nodes.count()).map(|node| nodes.members(node).to_vec()).collect(),
            },
        }
    }

    pub fn of(&self, rank: u32) -> &[u32] {
        &self.members[self.node_of[rank as usize] as usize]
    }

    fn share(&self, rank: u32, other: u32) -> bool {
        self.node_of.get(other as usize) == Some(&self.node_of[rank as usize])
    }
}

/// Whether a call of a sequence is of the ranks and nodes of the others, and takes as many turns on all
/// ranks of a node.
pub(super) fn verify_ranks(
    calls: Calls<'_>,
    schedule: &dyn CheckedSchedule,
    call: &Call<'_>,
) -> Result<(), ScheduleFault> {
    let known = calls.iter().find_map(|(_, call)| call.nodes);
    let is_other = call.nodes.is_some_and(|nodes| known.is_some_and(|known| known != nodes));
    let wanted = calls[0].1.ranks;
    if is_other || call.ranks != wanted {
        let nodes = call.nodes.map_or(1, NodesOfRanks::count);
        return Err(ScheduleFault::OtherRanks { ranks: call.ranks, nodes, wanted });
    }
    let turns = |rank| schedule.needs(&known_to(schedule.collective(), call, rank), rank).turns;
    for members in &Nodes::new(call.ranks, known).members {
        let other = members[0];
        let others = turns(other);
        let unequal = members.iter().find(|rank| turns(**rank) != others);
        if let Some(rank) = unequal.copied() {
            let turns = turns(rank);
            return Err(ScheduleFault::UnequalTurns { rank, turns, other, others });
        }
    }
    Ok(())
}

impl CheckingMachine<'_> {
    /// The turn in which a rank is, counted from the first of all; a step must be of this.
    fn turn(&self, rank: u32, turn: u32) -> Result<u64, Problem> {
        let (own, now) = (&self.ranks[rank as usize], self.shared.finished(rank));
        let in_call = now - own.turns_before;
        match u64::from(turn) == in_call && in_call < own.turns {
            true => Ok(now),
            false => Err(Problem::OtherTurn(turn, in_call)),
        }
    }

    fn wake_those(&mut self, of: u32, wait_for: impl Fn(Waiting) -> bool) {
        for rank in self.nodes.of(of) {
            let own = &mut self.ranks[*rank as usize];
            if own.waits_for.is_some_and(&wait_for) {
                own.waits_for = None;
                self.ready.push(*rank);
            }
        }
    }

    pub(super) fn signal(
        &mut self,
        rank: u32,
        flag: Flag,
        turn: u32,
        value: u32,
    ) -> Result<(), Problem> {
        let turn = self.turn(rank, turn)?;
        self.count_post(rank);
        let known = self.ranks[rank as usize].known.clone();
        self.shared.signal((rank, flag), turn, value, known)?;
        self.wake_those(rank, |waiting| {
            matches!(waiting, Waiting::Flag { rank: other, flag: awaited, .. } if (other, awaited) == (rank, flag))
        });
        Ok(())
    }

    /// False if the rank has to wait.
    pub(super) fn await_flag(
        &mut self,
        rank: u32,
        other: u32,
        flag: Flag,
        turn: u32,
        value: u32,
    ) -> Result<bool, Problem> {
        let turn = self.turn(rank, turn)?;
        if other == rank || !self.nodes.share(rank, other) {
            return Err(Problem::NotOnNode(other));
        }
        if value == 0 {
            return Err(Problem::NoSignal(flag));
        }
        match self.shared.first_signal(other, flag, turn, value) {
            Found::NotYet => {
                let waiting = Waiting::Flag { rank: other, flag, value };
                self.ranks[rank as usize].waits_for = Some(waiting);
                Ok(false)
            }
            Found::Signalled(known) => {
                self.ranks[rank as usize].learn(known);
                Ok(true)
            }
            Found::Passed => Err(Problem::Unsignalled { rank: other, flag, value }),
        }
    }

    /// As [`Self::await_flag`], of all other ranks of the node.
    pub(super) fn await_all(
        &mut self,
        rank: u32,
        flag: Flag,
        turn: u32,
        value: u32,
    ) -> Result<bool, Problem> {
        let members = self.nodes.of(rank).to_vec();
        for other in members.into_iter().filter(|other| *other != rank) {
            if !self.await_flag(rank, other, flag, turn, value)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// As executors do it: nobody is asked where the rank knows already. False if it has to wait.
    pub(super) fn await_finished(
        &mut self,
        rank: u32,
        turn: u32,
        depth: u32,
    ) -> Result<bool, Problem> {
        let turn = self.turn(rank, turn)?;
        let Some(before) = turn.checked_sub(u64::from(depth)) else { return Ok(true) };
        let knows = before < self.ranks[rank as usize].finished_by_all;
        for other in self.nodes.of(rank).iter().copied().filter(|other| *other != rank) {
            let own = &mut self.ranks[rank as usize];
            match self.shared.at_finish(other, before) {
                // It is to have happened before by what the rank knows anyway.
                Some(known) if knows => {
                    let place = other as usize;
                    if own.known[place] < known[place] {
                        return Err(Problem::NotFinished(other));
                    }
                }
                None if knows => return Err(Problem::NotFinished(other)),
                Some(known) => own.learn(known),
                None => {
                    own.waits_for = Some(Waiting::Finish { rank: other });
                    return Ok(false);
                }
            }
        }
        let known = &mut self.ranks[rank as usize].finished_by_all;
        *known = (*known).max(before + 1);
        Ok(true)
    }

    pub(super) fn finish(
        &mut self,
        rank: u32,
        turn: u32,
        all_have_begun: bool,
    ) -> Result<(), Problem> {
        let turn = self.turn(rank, turn)?;
        if all_have_begun {
            let own = &mut self.ranks[rank as usize];
            for other in self.nodes.of(rank) {
                let begun = self.shared.begun(*other, turn);
                if begun.is_none_or(|begun| begun > own.known[*other as usize]) {
                    return Err(Problem::NotBegun(*other));
                }
            }
            // Who is in a turn has finished those before.
            own.finished_by_all = own.finished_by_all.max(turn);
        }
        self.count_post(rank);
        let known = self.ranks[rank as usize].known.clone();
        self.shared.finish(rank, known);
        self.begin_turn(rank);
        self.wake_those(rank, |waiting| waiting == Waiting::Finish { rank });
        Ok(())
    }

    /// Notes where a turn begins, if there is one more in the call.
    pub(super) fn begin_turn(&mut self, rank: u32) {
        let own = &self.ranks[rank as usize];
        if self.shared.finished(rank) - own.turns_before < own.turns {
            let count = self.count_post(rank);
            self.shared.begin(rank, count);
        }
    }

    /// Whether the rank may look at a range of shared memory now; its turn, and where the range lies then.
    fn shared_range(&self, rank: u32, range: Range) -> Result<(u64, Range), Problem> {
        let own = &self.ranks[rank as usize];
        let (owner, turn, length, places) = match range.buffer {
            Buffer::Line { owner, turn, .. } => (owner, turn, own.call.line, TurnPlaces::default()),
            Buffer::Shared { owner, turn } => {
                let (used, all) = (own.shared_elements, own.call.shared);
                (owner, turn, used.min(all), TurnPlaces::new(used, all))
            }
            other => return Err(Problem::Kind(other, other)),
        };
        if !self.nodes.share(rank, owner) {
            return Err(Problem::NotOnNode(owner));
        }
        if range.start.saturating_add(range.count) > length {
            return Err(Problem::Bounds(range, length));
        }
        let turn = self.turn(rank, turn)?;
        Ok((turn, Range { start: range.start + places.offset(turn), ..range }))
    }

    /// Any range.
    pub(super) fn read(&mut self, rank: u32, range: Range) -> Result<Vec<u64>, Problem> {
        if owner(range.buffer).is_none() {
            return self.ranks[rank as usize].read(range);
        }
        let (turn, range) = self.shared_range(rank, range)?;
        self.shared.read(rank, &self.ranks[rank as usize].known, range, turn)
    }

    /// Any range.
    pub(super) fn write(&mut self, rank: u32, range: Range, values: &[u64]) -> Result<(), Problem> {
        let Some(owner) = owner(range.buffer) else {
            return self.ranks[rank as usize].write(range, values);
        };
        let (turn, range) = self.shared_range(rank, range)?;
        if owner != rank {
            return Err(Problem::NotOwner(range));
        }
        self.shared.write(&self.ranks[rank as usize].known, range, turn, values)
    }
}
