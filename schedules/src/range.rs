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
    /// What `owner` shares with the other ranks of its node in a turn: [`Call::shared`](crate::Call::shared)
    /// elements, which the owner alone writes.
    Shared {
        owner: u32,
        /// Counted from the first turn of the call.
        turn: u32,
    },
    /// What lies beside a flag of `owner`, in the same line of the cache: [`Call::line`](crate::Call::line)
    /// elements, which the owner alone writes.
    Line {
        owner: u32,
        flag: Flag,
        /// See [`Buffer::Shared`].
        turn: u32,
    },
}

/// What a rank tells the others of its node by a word in shared memory, which it alone writes and which only grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Flag {
    /// Its data are there.
    Arrived,
    /// Its result is there.
    Combined,
    /// It has taken what another rank shared.
    Taken,
}

impl Flag {
    pub const ALL: [Flag; 3] = [Flag::Arrived, Flag::Combined, Flag::Taken];
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
