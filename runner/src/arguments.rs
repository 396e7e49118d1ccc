//! The arguments of a collective call, in one form for all collectives.
//!
//! What a collective sends and receives, and on which ranks, is its row in the table of [`Collective`]. Which
//! arguments mean something on a rank follows from that, here and nowhere else.

use std::{
    ffi::{c_int, c_void},
    ptr,
};

use records::{BufferContent, Collective};

use crate::{Handle, Session};

/// A number for each rank: `int` in the classic functions, `MPI_Count` in those whose names end in `_c`
/// (displacements there are `MPI_Aint`, of the same width).
#[derive(Debug, Clone, Copy)]
pub enum RankArray {
    /// An array of `int`.
    Int(*const c_int),
    /// An array of 64-bit integers.
    Large(*const i64),
}

/// How many elements the blocks of a side have.
#[derive(Debug, Clone, Copy)]
pub enum Counts {
    /// So many each, one block after the other.
    Uniform(i64),
    /// Those of each rank's block.
    PerRank {
        /// Elements of each block.
        counts: RankArray,
        /// Where each block begins, in extents of the type from the address of the side; nothing where the
        /// blocks lie one after the other, as in `MPI_Reduce_scatter`.
        displacements: Option<RankArray>,
    },
}

/// What a call sends, or where it receives, as MPI describes it.
///
/// Where MPI says that an argument is not significant on a rank (what is sent beside `MPI_IN_PLACE`, what is
/// received away from the root), nothing here may be looked at.
#[derive(Debug, Clone, Copy)]
pub struct Side {
    /// Address of the first element, `MPI_IN_PLACE`, or `MPI_BOTTOM`.
    pub address: *mut c_void,
    /// Elements of each block, of which a side has one, or one for each rank.
    pub counts: Counts,
    /// Type of the elements.
    pub datatype: Handle,
}

/// What an application passes to a blocking collective, save the communicator: whatever carries
/// out collectives (our algorithms, mock-ups, the MPI library itself) takes them in this form.
///
/// # The call's contract
/// Unsafe functions that take a call's arguments rely on these conditions, by this name:
/// - handles that are significant on this rank are live ones of the library whose table is used, and nobody
///   frees them before the function returns;
/// - a buffer that is significant on this rank is valid for its elements: for reads where it is sent, for
///   writes where it is received;
/// - what is received overlaps nothing that is sent, `MPI_IN_PLACE` apart;
/// - a side has an array of counts where the collective's function takes one, which has an entry for each rank
///   of the communicator where it is significant;
/// - all ranks of the communicator make the same call, in the same order among their calls on it.
#[derive(Debug, Clone, Copy)]
pub struct Arguments {
    /// Whose arguments they are.
    pub collective: Collective,
    /// [`Side::NONE`] in a broadcast, whose one buffer is the other side.
    pub send: Side,
    /// Where data is combined, with the counts and the type of the other side.
    pub receive: Side,
    /// Combines the data; 0 where they are only moved.
    pub operation: Handle,
    /// 0 where there is none.
    pub root: c_int,
}

/// A side that means something on a rank.
#[derive(Debug, Clone, Copy)]
pub struct SignificantSide {
    /// As the application describes it.
    pub side: Side,
    /// The rank whose block is its first.
    first: u32,
    /// How many blocks there are: of this rank alone, or of all.
    pub blocks: u32,
}

/// What of a call means something on a rank.
#[derive(Debug, Clone, Copy)]
pub struct SignificantSides {
    /// What this rank sends from here. At the root of a broadcast this is its one buffer.
    pub send: Option<SignificantSide>,
    /// Where it receives. In place, what it sends is there before.
    pub receive: Option<SignificantSide>,
    /// Whether `MPI_IN_PLACE` stands for the rank's own data.
    pub in_place: bool,
}

impl RankArray {
    /// The number of a rank.
    ///
    /// # Safety
    /// The array must be valid for reads up to the entry of the rank.
    #[inline(always)]
    pub unsafe fn get(self, rank: usize) -> i64 {
        // SAFETY: `rank` is the index of an entry (contract of this function).
        unsafe {
            match self {
                RankArray::Int(array) => i64::from(*array.add(rank)),
                RankArray::Large(array) => *array.add(rank),
            }
        }
    }
}

impl Counts {
    /// Those of blocks that lie one after the other, as in `MPI_Reduce_scatter`.
    #[inline(always)]
    pub const fn in_a_row(counts: RankArray) -> Self {
        Counts::PerRank { counts, displacements: None }
    }

    /// Elements of a rank's block.
    ///
    /// # Safety
    /// An array must be valid for reads up to the entry of the rank.
    #[inline(always)]
    pub unsafe fn of_rank(self, rank: u32) -> i64 {
        match self {
            Counts::Uniform(count) => count,
            // SAFETY: there is an entry for the rank (contract of this function).
            Counts::PerRank { counts, .. } => unsafe { counts.get(rank as usize) },
        }
    }

    /// Where a rank's block begins among the blocks of all, in elements from the address of the side.
    ///
    /// # Safety
    /// As [`Counts::of_rank`].
    pub unsafe fn place(self, rank: u32) -> i64 {
        match self {
            Counts::Uniform(count) => count.wrapping_mul(i64::from(rank)),
            // SAFETY: there is an entry for the rank and for those before it (contract of this function).
            Counts::PerRank { counts, displacements } => unsafe {
                match displacements {
                    Some(displacements) => displacements.get(rank as usize),
                    None => (0..rank as usize).map(|before| counts.get(before)).sum(),
                }
            },
        }
    }
}

impl Side {
    /// What a collective has not.
    pub const NONE: Side = Side::uniform(ptr::null_mut(), 0, 0);

    /// Blocks of `count` elements.
    #[inline(always)]
    pub const fn uniform(address: *mut c_void, count: i64, datatype: Handle) -> Side {
        Side { address, counts: Counts::Uniform(count), datatype }
    }
}

impl SignificantSide {
    /// Elements of all its blocks; more than 64 bits hold count as the most that these do.
    ///
    /// # Safety
    /// An array must have an entry for each rank of the communicator.
    pub unsafe fn elements(&self) -> i64 {
        match self.side.counts {
            Counts::Uniform(count) => count.saturating_mul(i64::from(self.blocks)),
            counts @ Counts::PerRank { .. } => {
                let ranks = self.first..self.first + self.blocks;
                // SAFETY: there is an entry for each rank (contract of this function).
                ranks.map(|rank| unsafe { counts.of_rank(rank) }).fold(0, i64::saturating_add)
            }
        }
    }

    /// Elements of its first block.
    ///
    /// # Safety
    /// As [`SignificantSide::elements`].
    pub unsafe fn first_count(&self) -> i64 {
        // SAFETY: there is an entry for each rank (contract of this function).
        unsafe { self.side.counts.of_rank(self.first) }
    }
}

impl Arguments {
    /// Those of a barrier.
    pub const BARRIER: Arguments = Arguments {
        collective: Collective::Barrier,
        send: Side::NONE,
        receive: Side::NONE,
        operation: 0,
        root: 0,
    };

    /// Those of a broadcast.
    #[inline(always)]
    pub fn bcast(data: Side, root: c_int) -> Arguments {
        Arguments::moving(Collective::Bcast, Side::NONE, data, root)
    }

    /// Those of a collective that moves data; the root means nothing where it has none.
    #[inline(always)]
    pub fn moving(collective: Collective, send: Side, receive: Side, root: c_int) -> Arguments {
        let root = if collective.is_rooted() { root } else { 0 };
        Arguments { collective, send, receive, operation: 0, root }
    }

    /// Those of a collective that combines data: operand, place of the result, and what both consist of.
    #[inline(always)]
    pub fn combining(
        collective: Collective,
        send: *const c_void,
        receive: *mut c_void,
        counts: Counts,
        datatype: Handle,
        operation: Handle,
        root: c_int,
    ) -> Arguments {
        let send = Side { address: send.cast_mut(), counts, datatype };
        let receive = Side { address: receive, ..send };
        Arguments { operation, ..Arguments::moving(collective, send, receive, root) }
    }

    /// Whether a rank is the root; also where there is none, and rank 0 asks.
    #[inline(always)]
    pub fn is_root(&self, rank: u32) -> bool {
        u32::try_from(self.root) == Ok(rank)
    }

    /// Whether `MPI_IN_PLACE` stands for a rank's own data: as what it sends, save at the root of a scatter,
    /// where it is said of what is received.
    #[inline(always)]
    pub fn is_in_place(&self, rank: u32, in_place: usize) -> bool {
        let own = match self.collective.sends() {
            BufferContent::Nothing => return false,
            BufferContent::AllAtRoot => self.receive.address,
            _ => self.send.address,
        };
        own.addr() == in_place && (!self.collective.is_rooted() || self.is_root(rank))
    }

    /// The sides that mean something on one of so many ranks, in a library where `MPI_IN_PLACE` is this address.
    #[inline(always)]
    pub fn significant(&self, rank: u32, ranks: u32, in_place: usize) -> SignificantSides {
        use BufferContent::{All, AllAtRoot, Nothing, Own, OwnAtRoot};
        let collective = self.collective;
        let (is_root, in_place) = (self.is_root(rank), self.is_in_place(rank, in_place));
        let held = |side: Side, content| {
            let (first, blocks) = match content {
                Own => (rank, 1),
                All => (0, ranks),
                OwnAtRoot if is_root => (rank, 1),
                AllAtRoot if is_root => (0, ranks),
                _ => return None,
            };
            Some(SignificantSide { side, first, blocks })
        };
        let (sends, receives) = (collective.sends(), collective.receives());
        let (send, receive) = match (sends, receives) {
            // The one buffer of a broadcast.
            (Nothing, Own) if is_root => (held(self.receive, receives), None),
            (AllAtRoot, Own) if in_place => (held(self.send, sends), None),
            // What is sent lies where the result will: of a reduce-scatter, blocks of all ranks.
            (All, _) if in_place => (None, held(self.receive, All)),
            _ if in_place => (None, held(self.receive, receives)),
            // The first rank has nobody before it.
            _ if matches!(collective, Collective::Exscan) && rank == 0 => {
                (held(self.send, sends), None)
            }
            _ => (held(self.send, sends), held(self.receive, receives)),
        };
        SignificantSides { send, receive, in_place }
    }

    /// A side whose counts and type are significant on a rank, in place or not, and whose blocks are as long as
    /// MPI demands of all ranks.
    #[inline(always)]
    pub fn sizing(&self, rank: u32) -> Side {
        // A choice of a reference would keep the arguments of an intercepted call in memory.
        match (self.collective.sends(), self.collective.receives()) {
            (BufferContent::AllAtRoot, _) if self.is_root(rank) => self.send,
            (_, BufferContent::AllAtRoot) if !self.is_root(rank) => self.send,
            _ => self.receive,
        }
    }

    /// The message size (see [`Collective::message_size`]): by MPI's rules the same on every rank of a correct
    /// call, whatever types describe the data there.
    ///
    /// Nothing for a call that is wrong by MPI's rules, where only some ranks know the counts of all, and for a type
    /// of which MPI has to be asked, if it may not be.
    ///
    /// # Safety
    /// A significant array must have an entry for each rank of the communicator, and a significant type be as
    /// [`Session::type_bytes`] demands.
    #[inline(always)]
    pub unsafe fn message_bytes(
        &self,
        rank: u32,
        ranks: u32,
        session: &Session,
        may_ask: bool,
    ) -> Option<u64> {
        let collective = self.collective;
        if collective.is_rooted() && !u32::try_from(self.root).is_ok_and(|root| root < ranks) {
            return None;
        }
        let side = self.sizing(rank);
        let (count, blocks) = match side.counts {
            Counts::Uniform(count) if !collective.has_counts() => (count, 1),
            Counts::PerRank { counts, .. } if collective.all_know_counts() => {
                let mut all = 0_i64;
                for rank in 0..ranks as usize {
                    // SAFETY: there is an entry for each rank (contract of this function).
                    let count = unsafe { counts.get(rank) };
                    if count < 0 {
                        return None;
                    }
                    all = all.checked_add(count)?;
                }
                (all, u64::from(ranks))
            }
            _ => return None,
        };
        // Without data ranks may pass what they like as the type.
        if count == 0 {
            return Some(0);
        }
        let size = match may_ask {
            // SAFETY: the type is as it has to be (contract of this function).
            true => unsafe { session.type_bytes(side.datatype)? },
            false => session.known_type_bytes(side.datatype)?,
        };
        let bytes = u64::try_from(count).ok()?.checked_mul(size)?;
        // The mean block; a block of one byte in all is still a message.
        Some(bytes.div_ceil(blocks))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake;

    const IN_PLACE: usize = 1;
    const RANKS: u32 = 3;
    const ROOT: u32 = 1;
    /// Elements of each rank's block, where they differ.
    const COUNTS: [c_int; RANKS as usize] = [1, 2, 6];
    /// Of two bytes.
    const NUMBER: Handle = fake::SPREAD;

    /// What MPI's standard says of each collective. On rank 0, on rank 1, which is the root if there is one, and
    /// on both where they pass `MPI_IN_PLACE`: what is sent and received from significant buffers, where `-` is
    /// nothing, `1` a block or vector, and `p` a block of each rank. In place the receive buffer holds what is
    /// sent.
    const STANDARD: [(Collective, &str); 16] = [
        (Collective::Allgather, "1p 1p -p -p"),
        (Collective::Allgatherv, "1p 1p -p -p"),
        (Collective::Allreduce, "11 11 -1 -1"),
        (Collective::Alltoall, "pp pp -p -p"),
        (Collective::Alltoallv, "pp pp -p -p"),
        (Collective::Barrier, "-- -- -- --"),
        (Collective::Bcast, "-1 1- -1 1-"),
        (Collective::Exscan, "1- 11 -1 -1"),
        (Collective::Gather, "1- 1p 1- -p"),
        (Collective::Gatherv, "1- 1p 1- -p"),
        (Collective::Reduce, "1- 11 1- -1"),
        (Collective::ReduceScatter, "p1 p1 -p -p"),
        (Collective::ReduceScatterBlock, "p1 p1 -p -p"),
        (Collective::Scan, "11 11 -1 -1"),
        (Collective::Scatter, "-1 p1 -1 p-"),
        (Collective::Scatterv, "-1 p1 -1 p-"),
    ];

    /// With nothing that may be looked at where the standard says that a side means nothing.
    fn call(collective: Collective, means: &[u8], in_place: bool) -> Arguments {
        let poison = Side {
            address: ptr::without_provenance_mut(5),
            counts: Counts::PerRank {
                counts: RankArray::Int(ptr::without_provenance(5)),
                displacements: Some(RankArray::Large(ptr::without_provenance(5))),
            },
            datatype: 5,
        };
        let per_rank = RankArray::Int(COUNTS.as_ptr());
        let said = |address, counts| Side { address, counts, datatype: NUMBER };
        let [a, b, here] = [64, 128, IN_PLACE].map(ptr::without_provenance_mut);
        if collective.combines() {
            let counts = match collective {
                Collective::ReduceScatter => Counts::in_a_row(per_rank),
                _ => Counts::Uniform(2),
            };
            let send = if in_place { here } else { a };
            let receive = if means[1] == b'-' { poison.address } else { b };
            let root = ROOT as c_int;
            return Arguments::combining(collective, send, receive, counts, NUMBER, 7, root);
        }
        let side = |means, address| match means {
            b'p' if collective.has_counts() => {
                said(address, Counts::PerRank { counts: per_rank, displacements: Some(per_rank) })
            }
            b'-' => poison,
            _ => said(address, Counts::Uniform(2)),
        };
        if collective == Collective::Bcast {
            return Arguments::bcast(side(b'1', b), ROOT as c_int);
        }
        let (mut send, mut receive) = (side(means[0], a), side(means[1], b));
        match collective {
            Collective::Barrier => return Arguments::BARRIER,
            Collective::Scatter | Collective::Scatterv if in_place => receive.address = here,
            _ if in_place => send.address = here,
            _ => {}
        }
        Arguments::moving(collective, send, receive, ROOT as c_int)
    }

    fn for_each_call(check: impl Fn(u32, &[u8], &Arguments)) {
        assert_eq!(STANDARD.map(|(collective, _)| collective), Collective::ALL);
        for (collective, line) in STANDARD {
            for (index, means) in line.split(' ').enumerate() {
                let (rank, in_place) = (index as u32 % 2, index >= 2);
                let is_said = in_place && collective != Collective::Bcast;
                // Away from the root an address is no more than that.
                let is_said = is_said && (!collective.is_rooted() || rank == ROOT);
                check(rank, means.as_bytes(), &call(collective, means.as_bytes(), is_said));
            }
        }
    }

    #[test]
    fn what_is_significant_is_what_mpi_says() {
        for_each_call(|rank, means, arguments| {
            let what = format!("{} on rank {rank}: {arguments:?}", arguments.collective);
            let found = arguments.significant(rank, RANKS, IN_PLACE);
            for (means, side) in means.iter().zip([found.send, found.receive]) {
                let blocks = match means {
                    b'-' => None,
                    b'1' => Some(1),
                    _ => Some(RANKS),
                };
                assert_eq!(side.map(|side| side.blocks), blocks, "{what}");
                let Some(side) = side else { continue };
                let has_counts = matches!(side.side.counts, Counts::PerRank { .. });
                let elements = match (has_counts, means) {
                    (false, _) => 2 * i64::from(side.blocks),
                    (true, b'1') => i64::from(COUNTS[rank as usize]),
                    (true, _) => 9,
                };
                // SAFETY: a side that means something has its counts.
                assert_eq!(unsafe { side.elements() }, elements, "{what}");
                assert_ne!(side.side.address.addr(), IN_PLACE, "{what}");
                assert_eq!(side.side.datatype, NUMBER, "{what}");
            }
            let moves = means[0] != b'-' && means[1] != b'-';
            assert!(!(moves && found.in_place), "{what}");
        });
    }

    #[test]
    fn the_message_size_is_told_by_what_is_significant() {
        let session = Session::open(fake::table()).unwrap();
        for_each_call(|rank, _, arguments| {
            let wanted = match arguments.collective {
                Collective::Barrier => Some(0),
                // Nine elements in three blocks.
                Collective::Allgatherv | Collective::ReduceScatter => Some(6),
                // Not all ranks know all counts, though one may know its own.
                Collective::Alltoallv | Collective::Gatherv | Collective::Scatterv => None,
                _ => Some(4),
            };
            let found = |arguments: &Arguments| {
                // SAFETY: a side that means something has its counts.
                unsafe { arguments.message_bytes(rank, RANKS, session, true) }
            };
            assert_eq!(found(arguments), wanted, "{arguments:?}");
            for root in [-1, RANKS as c_int] {
                let wrong = Arguments { root, ..*arguments };
                let is_rooted = arguments.collective.is_rooted();
                assert!(!is_rooted || found(&wrong).is_none(), "{wrong:?}");
            }
        });
    }
}
