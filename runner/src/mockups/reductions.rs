//! The collectives that mock-ups combine by.

use std::ffi::{c_int, c_void};

use super::{calls::MockupWork, facts::Facts};
use crate::{Result, layout::BufferLayout, message::pieces};

/// Safety is that of [`MockupWork`].
impl MockupWork<'_> {
    /// Calls for as many elements at a time as an `int` can count; combining nothing is combining
    /// in place.
    fn in_pieces(
        &self,
        send: Option<*const u8>,
        receive: *mut u8,
        count: u64,
        call: impl Fn(*const c_void, *mut c_void, c_int),
    ) -> Result<()> {
        for (start, length) in pieces(count, self.longest) {
            let send = match send {
                Some(send) => self.element(send.cast_mut(), start).cast(),
                None => self.in_place(),
            };
            call(send, self.element(receive, start).cast(), length);
        }
        Ok(())
    }

    pub unsafe fn allreduce(
        &self,
        send: Option<*const u8>,
        receive: *mut u8,
        count: u64,
    ) -> Result<()> {
        let Facts { layout: BufferLayout { datatype, .. }, operation, .. } = self.facts;
        self.in_pieces(send, receive, count, |send, receive, count| {
            // SAFETY: see `Work`.
            let code = unsafe {
                (self.mpi.allreduce)(send, receive, count, datatype, operation, self.comm.comm)
            };
            self.note("MPI_Allreduce", code);
        })
    }

    /// The address of the result is significant only at the root, which alone may combine in
    /// place.
    pub unsafe fn reduce(
        &self,
        send: Option<*const u8>,
        receive: *mut u8,
        count: u64,
        root: c_int,
    ) -> Result<()> {
        let Facts { layout: BufferLayout { datatype, .. }, operation, .. } = self.facts;
        let comm = self.comm.comm;
        self.in_pieces(send, receive, count, |send, receive, count| {
            // SAFETY: see `Work`.
            let code =
                unsafe { (self.mpi.reduce)(send, receive, count, datatype, operation, root, comm) };
            self.note("MPI_Reduce", code);
        })
    }

    /// Rank 0 receives nothing.
    pub unsafe fn exscan(&self, send: *const u8, receive: *mut u8, count: u64) -> Result<()> {
        let Facts { layout: BufferLayout { datatype, .. }, operation, .. } = self.facts;
        self.in_pieces(Some(send), receive, count, |send, receive, count| {
            // SAFETY: see `Work`.
            let code = unsafe {
                (self.mpi.exscan)(send, receive, count, datatype, operation, self.comm.comm)
            };
            self.note("MPI_Exscan", code);
        })
    }

    /// `both = left op both`.
    pub unsafe fn reduce_local(&self, left: *const u8, both: *mut u8, count: u64) -> Result<()> {
        let Facts { layout: BufferLayout { datatype, .. }, operation, .. } = self.facts;
        self.in_pieces(Some(left), both, count, |left, both, count| {
            // SAFETY: see `Work`.
            let code = unsafe { (self.mpi.reduce_local)(left, both, count, datatype, operation) };
            self.note("MPI_Reduce_local", code);
        })
    }

    /// `count` elements of the result for each rank. Combining nothing is combining in place.
    pub unsafe fn reduce_scatter_block(
        &self,
        send: Option<*const u8>,
        receive: *mut u8,
        count: u64,
    ) -> Result<()> {
        let Facts { layout: BufferLayout { datatype, .. }, operation, .. } = self.facts;
        let send = send.map_or(self.in_place().cast_const(), <*const u8>::cast);
        let (receive, count, comm) = (receive.cast(), count as c_int, self.comm.comm);
        // SAFETY: see `Work`.
        let code = unsafe {
            (self.mpi.reduce_scatter_block)(send, receive, count, datatype, operation, comm)
        };
        self.note("MPI_Reduce_scatter_block", code);
        Ok(())
    }

    /// `of_rank` gives the count of a rank's part of the result. Combining nothing is combining
    /// in place.
    pub unsafe fn reduce_scatter(
        &mut self,
        send: Option<*const u8>,
        receive: *mut u8,
        of_rank: impl Fn(u64) -> c_int,
    ) -> Result<()> {
        let procs = self.facts.procs;
        for (rank, count) in (0..procs).zip(self.integers.iter_mut()) {
            count.write(of_rank(rank));
        }
        let counts = self.integers.as_ptr().cast::<c_int>();
        let Facts { layout: BufferLayout { datatype, .. }, operation, .. } = self.facts;
        let send = send.map_or(self.in_place().cast_const(), <*const u8>::cast);
        let comm = self.comm.comm;
        // SAFETY: see `Work`.
        let code = unsafe {
            (self.mpi.reduce_scatter)(send, receive.cast(), counts, datatype, operation, comm)
        };
        self.note("MPI_Reduce_scatter", code);
        Ok(())
    }

    /// Combines so many elements into ours.
    pub unsafe fn allreduce_operands(&self, send: *const u8, count: u64) -> Result<()> {
        for (start, length) in self.operands.runs(0, count) {
            let send = self.element(send.cast_mut(), start).cast_const();
            // SAFETY: see `Work`.
            unsafe { self.allreduce(Some(send), self.operands.element(start), length)? };
        }
        Ok(())
    }

    /// Combines so many elements into ours on rank 0.
    pub unsafe fn reduce_operands(&self, send: *const u8, count: u64) -> Result<()> {
        for (start, length) in self.operands.runs(0, count) {
            let send = self.element(send.cast_mut(), start).cast_const();
            // SAFETY: see `Work`.
            unsafe { self.reduce(Some(send), self.operands.element(start), length, 0)? };
        }
        Ok(())
    }

    /// Copies some of ours to where a rank wants them.
    pub unsafe fn copy_operands(&self, start: u64, count: u64, into: *mut u8) -> Result<()> {
        for (begin, length) in self.operands.runs(start, count) {
            let into = self.element(into, begin - start);
            // SAFETY: see `Work`.
            unsafe { self.copy(self.operands.element(begin), into, length)? };
        }
        Ok(())
    }

    /// Copies the first of ours as bytes.
    pub unsafe fn pack_operands(&self, count: u64, into: *mut u8) -> Result<()> {
        for (start, length) in self.operands.runs(0, count) {
            let part = self.part(self.operands.element(start), length);
            let into = into.wrapping_add(start as usize * self.facts.layout.size);
            // SAFETY: see `Work`.
            unsafe { self.pack(&part, into)? };
        }
        Ok(())
    }
}
