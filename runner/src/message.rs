//! Messages of any length between ranks, and copies within one.

use std::ffi::c_int;

use crate::{
    Handle, Mpi, Result, duplicate::Duplicate, error::check, layout::BufferLayout, tags::TAG_SELF,
};

/// Elements as one argument of a message: a count and a datatype, which is freed when dropped if
/// it was made for this.
///
/// MPI lets a type be freed while messages with it are under way.
pub(crate) struct Content<'a> {
    mpi: &'a Mpi,
    pub count: c_int,
    pub datatype: Handle,
    made: bool,
}

impl<'a> Content<'a> {
    /// `count` elements; more than `longest` are described by a type of blocks.
    pub fn new(mpi: &'a Mpi, layout: &BufferLayout, count: u64, longest: c_int) -> Result<Self> {
        if count <= longest as u64 {
            return Ok(Content {
                mpi,
                count: count as c_int,
                datatype: layout.datatype,
                made: false,
            });
        }
        Content::whole(mpi, layout, count, longest)
    }

    /// Elements in runs: of each, where it begins, in bytes from the address that is passed, and how many
    /// elements it has.
    pub fn of_runs(
        mpi: &'a Mpi,
        layout: &BufferLayout,
        runs: impl Iterator<Item = (isize, u64)>,
        longest: c_int,
    ) -> Result<Self> {
        let mut datatype = in_runs(mpi, layout, runs, longest)?;
        let content = Content { mpi, count: 1, datatype, made: true };
        // SAFETY: made above.
        check("MPI_Type_commit", unsafe { (mpi.type_commit)(&mut datatype) })?;
        Ok(content)
    }

    /// `count` elements as one of a type whose extent is theirs together, so that blocks of them
    /// follow each other as the elements do.
    pub fn whole(mpi: &'a Mpi, layout: &BufferLayout, count: u64, longest: c_int) -> Result<Self> {
        let mut inner = in_runs(mpi, layout, std::iter::once((0, count)), longest)?;
        let mut datatype: Handle = 0;
        // SAFETY: the inner type may be freed as soon as the outer one stands.
        unsafe {
            let extent = layout.offset(count);
            let made = (mpi.type_create_resized)(inner, layout.lower, extent, &mut datatype);
            let freed = (mpi.type_free)(&mut inner);
            check("MPI_Type_create_resized", made)?;
            let content = Content { mpi, count: 1, datatype, made: true };
            check("MPI_Type_free", freed)?;
            check("MPI_Type_commit", (mpi.type_commit)(&mut datatype))?;
            Ok(content)
        }
    }
}

impl Drop for Content<'_> {
    fn drop(&mut self) {
        if self.made {
            // SAFETY: made by `new` and not yet freed. That it can't be freed harms no message.
            unsafe { (self.mpi.type_free)(&mut self.datatype) };
        }
    }
}

/// A type of elements in runs; see [`Content::of_runs`].
fn in_runs(
    mpi: &Mpi,
    layout: &BufferLayout,
    runs: impl Iterator<Item = (isize, u64)>,
    longest: c_int,
) -> Result<Handle> {
    let (mut places, mut lengths) = (Vec::new(), Vec::new());
    for (begin, count) in runs {
        for (start, length) in pieces(count, longest) {
            places.push(begin + layout.offset(start));
            lengths.push(length);
        }
    }
    let mut made: Handle = 0;
    // SAFETY: the two arrays have as many entries as is said.
    let code = unsafe {
        let (blocks, lengths) = (lengths.len() as c_int, lengths.as_ptr());
        (mpi.type_create_hindexed)(blocks, lengths, places.as_ptr(), layout.datatype, &mut made)
    };
    check("MPI_Type_create_hindexed", code)?;
    Ok(made)
}

/// Starts and lengths of the pieces of at most `longest` that `count` falls into.
pub(crate) fn pieces(count: u64, longest: c_int) -> impl Iterator<Item = (u64, c_int)> {
    let longest = longest as u64;
    (0..count.div_ceil(longest))
        .map(move |piece| piece * longest)
        .map(move |start| (start, (count - start).min(longest) as c_int))
}

/// Copies elements from one buffer of a type to another, whose gaps stay as they are.
///
/// # Safety
/// `source` must be valid for reads, `into` for writes, of `count` elements of the layout, of which no two
/// overlap; the datatype must be live.
pub(crate) unsafe fn copy(
    mpi: &Mpi,
    comm: &Duplicate,
    layout: &BufferLayout,
    longest: c_int,
    (source, into): (*const u8, *mut u8),
    count: u64,
) -> Result<()> {
    if layout.is_dense() {
        // SAFETY: both are valid for `count` elements that do not overlap (contract of this function), which
        // without gaps are this many bytes.
        unsafe { source.copy_to_nonoverlapping(into, count as usize * layout.size) };
        return Ok(());
    }
    let content = Content::new(mpi, layout, count, longest)?;
    // SAFETY: as above.
    unsafe { copy_by_message(mpi, comm, (source, &content), (into, &content)) }
}

/// Copies by a message to itself.
///
/// # Safety
/// `source` must be valid for reads, `into` for writes, of what their content says, of which no two elements
/// overlap; the datatypes must be live.
pub(crate) unsafe fn copy_by_message(
    mpi: &Mpi,
    comm: &Duplicate,
    (source, from): (*const u8, &Content<'_>),
    (into, to): (*mut u8, &Content<'_>),
) -> Result<()> {
    let own = comm.rank as c_int;
    // SAFETY: both are valid for their content (contract of this function); `comm` is ours, and no other
    // message on it has this tag.
    let code = unsafe {
        (mpi.sendrecv)(
            source.cast(),
            from.count,
            from.datatype,
            own,
            TAG_SELF,
            into.cast(),
            to.count,
            to.datatype,
            own,
            TAG_SELF,
            comm.comm,
            mpi.constants.status_ignore as *mut _,
        )
    };
    check("MPI_Sendrecv", code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_tile_what_they_are_of() {
        for (count, longest, number) in [(0, 3, 0), (1, 3, 1), (3, 3, 1), (4, 3, 2), (10, 3, 4)] {
            let all: Vec<_> = pieces(count, longest).collect();
            assert_eq!(all.len(), number);
            let mut end = 0;
            for (start, length) in all {
                assert_eq!(start, end);
                assert!(length >= 1 && length <= longest);
                end += length as u64;
            }
            assert_eq!(end, count);
        }
        let big = 5_u64 << 31;
        assert_eq!(pieces(big, c_int::MAX).map(|(_, length)| length as u64).sum::<u64>(), big);
    }
}
