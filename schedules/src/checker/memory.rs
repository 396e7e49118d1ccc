//! A rank's buffers, every access to which is checked.

use super::{
    fault::Problem,
    values::{IN_FLIGHT, UNDEFINED},
};
use crate::{Buffer, Call, Flag, Range};

#[derive(Clone, Copy)]
pub(super) enum CheckedSlot {
    Idle,
    Send { message: usize, peer: u32, range: Range },
    Receive { message: usize, peer: u32, range: Range },
}

/// What a rank can't go on without.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Waiting {
    Slot(u32),
    Flag { rank: u32, flag: Flag, value: u32 },
    Finish { rank: u32 },
}

pub(super) struct CheckedRank<'a> {
    /// As the rank knows it.
    pub call: Call<'a>,
    /// Which call of the sequence it is.
    pub number: usize,
    /// Turns with shared memory before this call, and in it.
    pub turns_before: u64,
    /// See [`Needs::shared_elements`](crate::Needs::shared_elements).
    pub shared_elements: u64,
    pub turns: u64,
    /// Turns that all ranks of the node have finished, as this rank knows.
    pub finished_by_all: u64,
    pub round: u64,
    pub place: usize,
    pub send: Vec<u32>,
    pub receive: Vec<u32>,
    /// Whether the receive buffer is what the root of a broadcast sends, which the user may not be allowed to write.
    pub receives_nothing: bool,
    pub temporary: Vec<u32>,
    /// Elements of the receive buffer so far from each other, or further, may share memory: MPI
    /// promises of no more that they don't.
    pub apart: u64,
    pub header: Vec<u64>,
    pub slots: Vec<CheckedSlot>,
    /// A vector clock: how many posts of each rank have happened for sure by now, each coming to a call
    /// being one. It tells what a barrier has brought about, whether a ready send is legal, and what
    /// accesses to shared memory have happened. Elsewhere empty.
    pub known: Vec<u32>,
    pub waits_for: Option<Waiting>,
    pub done: bool,
}

impl CheckedRank<'_> {
    /// Before its first call; `counted` is the number of ranks, or 0 where nothing is to be known of posts.
    pub fn new(counted: u32) -> Self {
        CheckedRank {
            call: Call::new(counted, 0),
            number: 0,
            turns_before: 0,
            shared_elements: 0,
            turns: 0,
            finished_by_all: 0,
            round: 0,
            place: 0,
            send: Vec::new(),
            receive: Vec::new(),
            receives_nothing: false,
            temporary: Vec::new(),
            apart: 0,
            header: Vec::new(),
            slots: Vec::new(),
            known: vec![0; counted as usize],
            waits_for: None,
            done: false,
        }
    }

    /// Joins what another rank knew when it sent or signalled.
    pub fn learn(&mut self, known: &[u32]) {
        for (own, new) in self.known.iter_mut().zip(known) {
            *own = (*own).max(*new);
        }
    }

    pub fn elements(&mut self, range: Range) -> Result<&mut [u32], Problem> {
        let buffer = match range.buffer {
            Buffer::Send => return Err(Problem::ReadOnly(Buffer::Send)),
            Buffer::Receive if self.receives_nothing && range.count > 0 => {
                return Err(Problem::ReadOnly(Buffer::Receive));
            }
            Buffer::Receive => &mut self.receive,
            Buffer::Shared { .. } | Buffer::Line { .. } => {
                return Err(Problem::SharedMessage(range));
            }
            _ => &mut self.temporary,
        };
        let length = buffer.len() as u64;
        let end = range.start.saturating_add(range.count);
        if range.buffer == Buffer::Receive && range.count > 0 && end <= length {
            // What is written here may change elements far away.
            let below = end.saturating_sub(self.apart) as usize;
            let above = range.start.saturating_add(self.apart).min(length) as usize;
            buffer[..below].fill(UNDEFINED);
            buffer[above..].fill(UNDEFINED);
        }
        buffer.get_mut(range.start as usize..end as usize).ok_or(Problem::Bounds(range, length))
    }

    pub fn words(&mut self, range: Range) -> Result<&mut [u64], Problem> {
        if range.buffer == Buffer::Counts {
            return Err(Problem::ReadOnly(Buffer::Counts));
        }
        if self.round > 0 {
            return Err(Problem::Late);
        }
        let header = &mut self.header;
        let length = header.len() as u64;
        let end = range.start.saturating_add(range.count) as usize;
        header.get_mut(range.start as usize..end).ok_or(Problem::Bounds(range, length))
    }

    pub fn read(&self, range: Range) -> Result<Vec<u64>, Problem> {
        let span = range.start as usize..range.start.saturating_add(range.count) as usize;
        let bounds = |length: usize| Problem::Bounds(range, length as u64);
        let buffer = match range.buffer {
            Buffer::Send => &self.send,
            Buffer::Receive => &self.receive,
            Buffer::Temporary => &self.temporary,
            // Where several ranks may look, the machine does: see `machine::read`.
            Buffer::Shared { .. } | Buffer::Line { .. } => {
                return Err(Problem::SharedMessage(range));
            }
            Buffer::Counts | Buffer::Header => {
                let counts = range.buffer == Buffer::Counts;
                let words = if counts { self.call.counts } else { &self.header };
                return Ok(words.get(span).ok_or_else(|| bounds(words.len()))?.to_vec());
            }
        };
        let values = buffer.get(span).ok_or_else(|| bounds(buffer.len()))?;
        if let Some(place) = values.iter().position(|value| [UNDEFINED, IN_FLIGHT].contains(value))
        {
            return Err(Problem::NoValue(range, range.start + place as u64));
        }
        Ok(values.iter().map(|value| u64::from(*value)).collect())
    }

    pub fn write(&mut self, range: Range, payload: &[u64]) -> Result<(), Problem> {
        if is_words(range.buffer) {
            self.words(range)?.copy_from_slice(payload);
            return Ok(());
        }
        let elements = self.elements(range)?;
        elements.iter_mut().zip(payload).for_each(|(place, value)| *place = *value as u32);
        Ok(())
    }
}

/// Whose memory it is, where several ranks have access.
pub(super) const fn owner(buffer: Buffer) -> Option<u32> {
    match buffer {
        Buffer::Shared { owner, .. } | Buffer::Line { owner, .. } => Some(owner),
        _ => None,
    }
}

/// Whether the buffer holds counts rather than elements.
pub(super) const fn is_words(buffer: Buffer) -> bool {
    matches!(buffer, Buffer::Counts | Buffer::Header)
}
