//! What the ranks of a node share: flags that only grow, and memory all accesses to which must be ordered.

use super::{
    fault::{Conflict, Problem},
    memory::owner,
    values::UNDEFINED,
};
use crate::{
    Buffer, Flag, Range,
    shared::{LINE_DEPTH, SHARED_DEPTH},
};

/// After how many turns the same memory is used again.
#[derive(Debug, Clone, Copy)]
pub(super) struct Depths {
    pub line: u32,
    pub shared: u32,
}

impl Default for Depths {
    fn default() -> Self {
        Depths { line: LINE_DEPTH, shared: SHARED_DEPTH }
    }
}

/// An element of shared memory since its owner wrote it last.
#[derive(Clone, Default)]
struct Element {
    value: u32,
    /// The count of its owner that tells of the write.
    written: u32,
    /// Ranks that have read it, with the count of each that tells of it.
    reads: Vec<(u32, u32)>,
}

/// Memory that a rank uses again some turns later.
#[derive(Clone, Default)]
struct Place {
    /// The turn in which it was written last.
    turn: Option<u64>,
    elements: Vec<Element>,
    /// By rank: the count that tells of its last read of the turn, 0 without.
    reads: Vec<u32>,
}

impl Place {
    /// Nothing of the turns before may be looked at any more, however long the elements were then.
    fn begin(&mut self, turn: u64, known: &[u32], range: Range) -> Result<(), Problem> {
        if let Some(other) = self.reads.iter().zip(known).position(|(read, known)| read > known) {
            return Err(race(range, 0, Conflict::WrittenEarly, other as u32));
        }
        self.turn = Some(turn);
        self.reads.clear();
        self.reads.resize(known.len(), 0);
        for element in &mut self.elements {
            (element.value, element.written) = (UNDEFINED, 0);
            element.reads.clear();
        }
        Ok(())
    }
}

fn race(range: Range, index: usize, conflict: Conflict, other: u32) -> Problem {
    Problem::Race { buffer: range.buffer, element: range.start + index as u64, conflict, other }
}

/// A flag in the memory of some turns, with its payload.
#[derive(Default)]
struct Line {
    payload: Place,
    /// The values that it has had, turn and value in one, and what its rank knew then.
    signals: Vec<(u64, Vec<u32>)>,
}

/// The part that one rank writes.
struct Area {
    halves: Vec<Place>,
    /// By flag.
    lines: [Vec<Line>; Flag::ALL.len()],
    /// By turn: what the rank knew at its end.
    finished: Vec<Vec<u32>>,
    /// By turn: the rank's count when it had begun.
    begun: Vec<u32>,
}

/// The areas of all ranks; who may look at which is not known here.
pub(super) struct SharedMemory {
    areas: Vec<Area>,
    depths: Depths,
}

/// Where a flag has the value that a rank awaits.
pub(super) enum Found<'a> {
    NotYet,
    /// It has had just this value, with what its rank knew then.
    Signalled(&'a [u32]),
    /// Only by a larger one.
    Passed,
}

impl SharedMemory {
    pub fn new(ranks: u32, depths: Depths) -> Self {
        let area = || Area {
            halves: vec![Place::default(); depths.shared as usize],
            lines: Flag::ALL.map(|_| (0..depths.line).map(|_| Line::default()).collect()),
            finished: Vec::new(),
            begun: Vec::new(),
        };
        SharedMemory { areas: (0..ranks).map(|_| area()).collect(), depths }
    }

    /// How many turns a rank has finished: the number of the one in which it is.
    pub fn finished(&self, rank: u32) -> u64 {
        self.areas.get(rank as usize).map_or(0, |area| area.finished.len() as u64)
    }

    /// What a rank knew when it finished a turn, if it has.
    pub fn at_finish(&self, rank: u32, turn: u64) -> Option<&[u32]> {
        self.areas[rank as usize].finished.get(turn as usize).map(Vec::as_slice)
    }

    /// The rank's count when it had begun a turn, if it has.
    pub fn begun(&self, rank: u32, turn: u64) -> Option<u32> {
        self.areas[rank as usize].begun.get(turn as usize).copied()
    }

    pub fn begin(&mut self, rank: u32, count: u32) {
        self.areas[rank as usize].begun.push(count);
    }

    pub fn finish(&mut self, rank: u32, known: Vec<u32>) {
        self.areas[rank as usize].finished.push(known);
    }

    fn line(&mut self, rank: u32, flag: Flag, turn: u64) -> &mut Line {
        let slot = (turn % u64::from(self.depths.line)) as usize;
        &mut self.areas[rank as usize].lines[flag as usize][slot]
    }

    pub fn signal(
        &mut self,
        (rank, flag): (u32, Flag),
        turn: u64,
        value: u32,
        known: Vec<u32>,
    ) -> Result<(), Problem> {
        let line = self.line(rank, flag, turn);
        let raised = turn << 32 | u64::from(value);
        if value == 0 || line.signals.last().is_some_and(|(last, _)| *last >= raised) {
            return Err(Problem::NotRising(flag, value));
        }
        line.signals.push((raised, known));
        Ok(())
    }

    /// The first value of a flag that satisfies who awaits it.
    pub fn first_signal(&mut self, rank: u32, flag: Flag, turn: u64, value: u32) -> Found<'_> {
        let awaited = turn << 32 | u64::from(value);
        let signals = &self.line(rank, flag, turn).signals;
        let first = signals.partition_point(|(raised, _)| *raised < awaited);
        match signals.get(first) {
            None => Found::NotYet,
            Some((raised, known)) if *raised == awaited => Found::Signalled(known),
            Some(_) => Found::Passed,
        }
    }

    fn place(&mut self, buffer: Buffer, turn: u64) -> &mut Place {
        match buffer {
            Buffer::Line { owner, flag, .. } => &mut self.line(owner, flag, turn).payload,
            _ => {
                let slot = (turn % u64::from(self.depths.shared)) as usize;
                let owner = owner(buffer).unwrap_or_default();
                &mut self.areas[owner as usize].halves[slot]
            }
        }
    }

    /// What a rank reads that knows so much; the range is shared memory.
    pub fn read(
        &mut self,
        rank: u32,
        known: &[u32],
        range: Range,
        turn: u64,
    ) -> Result<Vec<u64>, Problem> {
        let owner = owner(range.buffer).unwrap_or_default();
        let place = self.place(range.buffer, turn);
        let early = |index: usize| race(range, index, Conflict::ReadEarly, owner);
        if place.turn.is_some_and(|written| written > turn) {
            return Err(race(range, 0, Conflict::ReadLate, owner));
        }
        if place.turn.is_none_or(|written| written < turn) {
            return Err(early(0));
        }
        let mut values = Vec::with_capacity(range.count as usize);
        for index in 0..range.count as usize {
            let element = place.elements.get_mut(range.start as usize + index);
            let element = element.filter(|element| element.value != UNDEFINED);
            let element = element.ok_or_else(|| early(index))?;
            values.push(u64::from(element.value));
            // A rank sees what it does itself.
            if owner == rank {
                continue;
            }
            if element.written > known[owner as usize] {
                return Err(early(index));
            }
            let tells = known[rank as usize] + 1;
            match element.reads.iter_mut().find(|(reader, _)| *reader == rank) {
                Some((_, last)) => *last = tells,
                None => element.reads.push((rank, tells)),
            }
            place.reads[rank as usize] = tells;
        }
        Ok(values)
    }

    /// What the owner of the range writes, which knows so much.
    pub fn write(
        &mut self,
        known: &[u32],
        range: Range,
        turn: u64,
        values: &[u64],
    ) -> Result<(), Problem> {
        let owner = owner(range.buffer).unwrap_or_default() as usize;
        let place = self.place(range.buffer, turn);
        if place.turn != Some(turn) {
            place.begin(turn, known, range)?;
        }
        let end = (range.start + range.count) as usize;
        if place.elements.len() < end {
            place.elements.resize(end, Element::default());
        }
        for (index, value) in values.iter().enumerate() {
            let element = &mut place.elements[range.start as usize + index];
            let early =
                element.reads.iter().find(|(reader, tells)| *tells > known[*reader as usize]);
            if let Some((reader, _)) = early {
                return Err(race(range, index, Conflict::WrittenEarly, *reader));
            }
            element.reads.clear();
            (element.value, element.written) = (*value as u32, known[owner] + 1);
        }
        Ok(())
    }
}
