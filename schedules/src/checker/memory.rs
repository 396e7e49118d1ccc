//! A rank's buffers, every access to which is checked.

use super::{
    fault::Problem,
    values::{IN_FLIGHT, UNDEFINED},
};
use crate::{Buffer, Call, Range};

#[derive(Clone, Copy)]
pub(super) enum CheckedSlot {
    Idle,
    Send { message: usize, peer: u32, range: Range },
    Receive { message: usize, peer: u32, range: Range },
}

pub(super) struct CheckedRank<'a> {
    pub call: Call<'a>,
    pub round: u64,
    pub place: usize,
    pub send: Vec<u32>,
    pub receive: Vec<u32>,
    pub temporary: Vec<u32>,
    /// Elements of the receive buffer so far from each other, or further, may share memory: MPI
    /// promises of no more that they don't.
    pub apart: u64,
    pub header: Vec<u64>,
    pub slots: Vec<CheckedSlot>,
    /// How many posts of each rank have happened for sure by now, its coming being the first: what
    /// a barrier has to bring about, and what makes a ready send legal. Elsewhere empty.
    pub known: Vec<u32>,
    pub waits_for: Option<u32>,
    pub done: bool,
}

impl CheckedRank<'_> {
    pub fn elements(&mut self, range: Range) -> Result<&mut [u32], Problem> {
        let buffer = match range.buffer {
            Buffer::Send => return Err(Problem::ReadOnly(Buffer::Send)),
            Buffer::Receive => &mut self.receive,
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
            Buffer::Shared { .. } | Buffer::Line { .. } => todo!(),
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

/// Whether the buffer holds counts rather than elements.
pub(super) const fn is_words(buffer: Buffer) -> bool {
    matches!(buffer, Buffer::Counts | Buffer::Header)
}
