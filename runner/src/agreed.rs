//! What all ranks know of a call before anything is sent.

use records::BufferContent;
use schedules::Call;

use crate::{
    Arguments, Counts, Error, Handle, Mpi, RankArray, Result, ScheduledMethod, Session,
    duplicate::CommunicatorMember, error::check, layout::BufferLayout, types::Type,
};

/// What MPI demands to be equal on all ranks of a call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UniformArguments {
    /// 0 where there is none.
    pub root: u32,
    /// As [`Call::count`]: bytes where data is only moved, elements where it is combined.
    pub count: u64,
    /// How these lie in memory.
    pub layout: BufferLayout,
    /// Whether a type of this rank by which they are known is one that outlives the call, with its bytes as they
    /// are sent; others may have another.
    pub is_plain: bool,
    /// Whether operands may change places.
    pub commutative: bool,
    /// Bytes of the packed form of what the rank with most of it sends and receives; nothing where
    /// only the root knows.
    pub packed: Option<u64>,
}

impl UniformArguments {
    /// # Safety
    /// The arguments must fulfil the call's contract (see [`Arguments`]).
    pub unsafe fn of(
        session: &Session,
        arguments: &Arguments,
        member: CommunicatorMember,
    ) -> Result<Self> {
        let (mpi, collective) = (&session.mpi, arguments.collective);
        let root = if collective.is_rooted() { member.root(arguments.root)? } else { 0 };
        let bytes = UniformArguments {
            root,
            count: 0,
            layout: BufferLayout::bytes(mpi),
            is_plain: true,
            commutative: true,
            packed: Some(0),
        };
        let sizing = arguments.sizing(member.rank);
        if collective.combines() {
            let Type { layout, is_plain } = session.type_of(sizing.datatype)?;
            let count = match sizing.counts {
                // Nothing is combined where elements hold no data.
                Counts::Uniform(count) if layout.size > 0 => non_negative(count)?,
                _ => 0,
            };
            let commutative = is_commutative(mpi, arguments.operation)?;
            return Ok(UniformArguments { count, layout, is_plain, commutative, ..bytes });
        }
        let [sends, receives] = [collective.sends(), collective.receives()];
        match sizing.counts {
            _ if receives == BufferContent::Nothing => Ok(bytes),
            Counts::Uniform(count) if !collective.has_counts() => {
                let Type { layout, is_plain } = session.type_of(sizing.datatype)?;
                let count = bytes_of(layout, count)?;
                // Too many to count is refused with the number of elements.
                let held = |content: BufferContent| content.bytes(count, member.size);
                let packed = Some(held(sends).saturating_add(held(receives)));
                Ok(UniformArguments { count, is_plain, packed, ..bytes })
            }
            _ if collective.is_rooted() => Ok(UniformArguments { packed: None, ..bytes }),
            _ => {
                Err(Error::Refused(format!("there are no algorithms of our own for {collective}")))
            }
        }
    }

    /// Bytes of data of an element.
    pub fn unit(&self) -> u64 {
        self.layout.size as u64
    }

    /// The call that a schedule is asked for; `vectors` are of a collective whose blocks all ranks know.
    pub fn call<'a>(&self, method: &ScheduledMethod, ranks: u32, vectors: &'a Vectors) -> Call<'a> {
        let collective = method.collective();
        let vectors = match collective.has_counts() {
            true if collective.all_know_counts() => {
                (&vectors.counts[..], &vectors.displacements[..])
            }
            true => (&[0][..], &[0][..]),
            false => (&[][..], &[][..]),
        };
        let call = Call {
            root: self.root,
            commutative: self.commutative,
            counts: vectors.0,
            displacements: vectors.1,
            ..Call::new(ranks, self.count)
        };
        method.apply(call, self.unit())
    }
}

/// Counts and displacements of blocks, as schedules have them.
#[derive(Debug, Default)]
pub(crate) struct Vectors {
    pub counts: Vec<u64>,
    pub displacements: Vec<u64>,
}

impl Vectors {
    /// The blocks of `reduce_scatter`, one after the other.
    ///
    /// # Safety
    /// The array must have a count for each of the ranks.
    pub unsafe fn set_contiguous(
        &mut self,
        counts: RankArray,
        ranks: u32,
        unit: u64,
    ) -> Result<()> {
        self.clear();
        let mut end = 0_u64;
        for rank in 0..ranks as usize {
            // SAFETY: `rank` is below `ranks`, for each of which there is a count (contract of this function).
            let count = non_negative(unsafe { counts.get(rank) })?;
            let count = if unit == 0 { 0 } else { count };
            self.push(count, end);
            end = end.checked_add(count).ok_or_else(|| too_many(count))?;
        }
        Ok(())
    }

    pub fn clear(&mut self) {
        self.counts.clear();
        self.displacements.clear();
    }

    pub fn push(&mut self, count: u64, displacement: u64) {
        self.counts.push(count);
        self.displacements.push(displacement);
    }
}

/// Bytes of data of a block, which are equal on all ranks whatever their types.
fn bytes_of(layout: BufferLayout, count: i64) -> Result<u64> {
    let count = non_negative(count)?;
    count.checked_mul(layout.size as u64).ok_or_else(|| too_many(count))
}

pub(crate) fn non_negative(count: i64) -> Result<u64> {
    u64::try_from(count)
        .map_err(|_| Error::Invalid(format!("{count} elements; expected 0 or more")))
}

pub(crate) fn too_many(count: u64) -> Error {
    Error::Invalid(format!("{count} elements are more than any memory holds"))
}

/// Of an operation, which must be a live handle of the table's library.
pub(crate) fn is_commutative(mpi: &Mpi, operation: Handle) -> Result<bool> {
    let mut commutative = 0;
    // SAFETY: `operation` is live (see above): both callers have it from arguments under the call's contract.
    // The output is a local.
    let code = unsafe { (mpi.op_commutative)(operation, &mut commutative) };
    check("MPI_Op_commutative", code)?;
    Ok(commutative != 0)
}
