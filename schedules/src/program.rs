//! A program: the rounds of one rank.

use std::marker::PhantomData;

use crate::{Call, Round};

/// An algorithm as one rank sees it: what `new` derives from the call is cheap and small, and
/// everything else is a pure function of it.
///
/// A round holds a handful of steps (at most a few per child, or O(log p)), so that executors may
/// make it anew whenever they come back to it. Programs leave no slot busy at their end.
pub trait Program: Sized {
    /// The program of `rank`, in O(log p).
    fn new(call: &Call<'_>, rank: u32) -> Self;

    /// Number of rounds; some may be empty.
    fn rounds(&self) -> u64;

    /// Appends the steps of round `index`, which is below [`Program::rounds`].
    fn round(&self, call: &Call<'_>, index: u64, out: &mut Round);

    /// Number of slots.
    fn slots(&self) -> u32;

    /// Elements of scratch memory. `scratch` is the round that its rounds are made in.
    fn temporary(&self, _call: &Call<'_>, _scratch: &mut Round) -> u64 {
        0
    }

    /// The counts that round 0 brings.
    fn header(&self) -> Header {
        Header::default()
    }

    /// See [`Round::destinations`].
    fn destinations(&self) -> u32 {
        1
    }

    /// How many turns of the ranks of a node with their shared memory it takes: the same on all of these.
    fn turns(&self) -> u64 {
        0
    }

    /// How many of the elements that a rank may write in a turn are used on any rank, from the first on: the same on
    /// all of these. [`ALL_SHARED`]: they may all be.
    fn shared_elements(&self) -> u64 {
        ALL_SHARED
    }
}

/// A program may use all elements that a rank may write in a turn.
pub const ALL_SHARED: u64 = u64::MAX;

/// Counts of `words` ranks from `first` on, cyclically.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Header {
    /// The rank whose count comes first.
    pub first: u32,
    /// How many; 0: none are needed.
    pub words: u64,
}

/// One program after the other, on the same call; without headers and turns.
#[derive(Debug, Clone, Copy)]
pub struct Sequence<A, B> {
    first: A,
    second: B,
}

impl<A: Program, B: Program> Program for Sequence<A, B> {
    fn new(call: &Call<'_>, rank: u32) -> Self {
        Sequence { first: A::new(call, rank), second: B::new(call, rank) }
    }

    fn rounds(&self) -> u64 {
        self.first.rounds() + self.second.rounds()
    }

    fn round(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        match index.checked_sub(self.first.rounds()) {
            None => self.first.round(call, index, out),
            Some(index) => self.second.round(call, index, out),
        }
    }

    fn slots(&self) -> u32 {
        self.first.slots().max(self.second.slots())
    }

    fn temporary(&self, call: &Call<'_>, scratch: &mut Round) -> u64 {
        self.first.temporary(call, scratch).max(self.second.temporary(call, scratch))
    }

    fn destinations(&self) -> u32 {
        self.first.destinations().max(self.second.destinations())
    }
}

/// What a rank needs to execute its program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needs {
    /// Number of rounds.
    pub rounds: u64,
    /// Number of slots.
    pub slots: u32,
    /// Elements of [`Buffer::Temporary`](crate::Buffer::Temporary). Where there is a header, it is
    /// known only when that has come: ask again after round 0.
    pub temporary: u64,
    /// Words of [`Buffer::Header`](crate::Buffer::Header); round 0 fills them all.
    pub header: u64,
    /// See [`Program::turns`].
    pub turns: u64,
    /// See [`Program::shared_elements`].
    pub shared_elements: u64,
}

/// The functions of a program, without its type.
#[derive(Clone, Copy)]
pub(crate) struct Functions {
    pub round: fn(&Call<'_>, u32, u64, &mut Round) -> bool,
    pub needs: fn(&Call<'_>, u32, &mut Round) -> Needs,
    pub header: fn(&Call<'_>, u32) -> Header,
    pub extent: fn(&Call<'_>, u32) -> Extent,
}

/// How long a program is.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Extent {
    pub rounds: u64,
    pub slots: u32,
    pub turns: u64,
}

struct Erased<P>(PhantomData<P>);

impl<P: Program> Erased<P> {
    fn round(call: &Call<'_>, rank: u32, index: u64, out: &mut Round) -> bool {
        let program = P::new(call, rank);
        let rounds = program.rounds();
        out.begin(program.destinations(), program.slots(), index + 1 >= rounds);
        let there = index < rounds;
        if there {
            program.round(call, index, out);
        }
        there
    }

    fn needs(call: &Call<'_>, rank: u32, scratch: &mut Round) -> Needs {
        let program = P::new(call, rank);
        Needs {
            rounds: program.rounds(),
            slots: program.slots(),
            temporary: program.temporary(call, scratch),
            header: program.header().words,
            turns: program.turns(),
            shared_elements: program.shared_elements(),
        }
    }

    fn header(call: &Call<'_>, rank: u32) -> Header {
        P::new(call, rank).header()
    }

    fn extent(call: &Call<'_>, rank: u32) -> Extent {
        let program = P::new(call, rank);
        Extent { rounds: program.rounds(), slots: program.slots(), turns: program.turns() }
    }
}

impl Functions {
    pub const fn of<P: Program>() -> Self {
        Functions {
            round: Erased::<P>::round,
            needs: Erased::<P>::needs,
            header: Erased::<P>::header,
            extent: Erased::<P>::extent,
        }
    }
}
