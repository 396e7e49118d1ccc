//! Where elements lie.

/// A rank's memory, in elements (words of 64 bits for [`Buffer::Counts`] and [`Buffer::Header`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Buffer {
    /// The user's send buffer; never written.
    Send,
    /// The user's receive buffer. It is the one buffer of a broadcast, and holds this rank's
    /// contribution where the call is in place.
    Receive,
    /// Scratch memory of [`Needs::temporary`](crate::Needs::temporary) elements.
    Temporary,
    /// The counts of a v-form that this rank was given ([`Call::counts`](crate::Call::counts)), as
    /// words; never written.
    Counts,
    /// Counts as messages carry them, words: [`Needs::header`](crate::Needs::header) of them, in
    /// round 0 only. What stands there then is what [`Call::header`](crate::Call::header) shows to
    /// all later rounds.
    Header,
}

/// A run of elements in one buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    pub buffer: Buffer,
    /// First element.
    pub start: u64,
    /// How many; a message of none is still a message (a barrier's).
    pub count: u64,
}

impl Range {
    /// `count` elements of `buffer` from `start` on.
    pub const fn new(buffer: Buffer, start: u64, count: u64) -> Self {
        Range { buffer, start, count }
    }
}
