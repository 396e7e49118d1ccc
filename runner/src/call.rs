//! Calls of the MPI library's own collectives.

use std::{
    ffi::{c_int, c_void},
    mem, ptr,
};

use records::Collective;

use crate::{Arguments, Counts, Handle, Mpi};

/// What MPI calls a collective's function: `MPI_Reduce_scatter_block`.
pub fn function_name(collective: Collective) -> &'static str {
    match collective {
        Collective::Allgather => "MPI_Allgather",
        Collective::Allgatherv => "MPI_Allgatherv",
        Collective::Allreduce => "MPI_Allreduce",
        Collective::Alltoall => "MPI_Alltoall",
        Collective::Alltoallv => "MPI_Alltoallv",
        Collective::Barrier => "MPI_Barrier",
        Collective::Bcast => "MPI_Bcast",
        Collective::Exscan => "MPI_Exscan",
        Collective::Gather => "MPI_Gather",
        Collective::Gatherv => "MPI_Gatherv",
        Collective::Reduce => "MPI_Reduce",
        Collective::ReduceScatter => "MPI_Reduce_scatter",
        Collective::ReduceScatterBlock => "MPI_Reduce_scatter_block",
        Collective::Scan => "MPI_Scan",
        Collective::Scatter => "MPI_Scatter",
        Collective::Scatterv => "MPI_Scatterv",
    }
}

/// More than an `int` holds is a wrong count to the library, which says so unless the argument
/// doesn't count on this rank.
fn int(count: i64) -> c_int {
    c_int::try_from(count).unwrap_or(-1)
}

/// Counts or displacements as C has them.
enum Ints {
    Given(*const c_int),
    Narrowed(Vec<c_int>),
}

impl Ints {
    fn as_ptr(&self) -> *const c_int {
        match self {
            Ints::Given(array) => *array,
            Ints::Narrowed(array) => array.as_ptr(),
        }
    }
}

impl Mpi {
    /// Calls the library's collective for which the arguments are; what it returns.
    ///
    /// The function has counts of `int`. What doesn't fit into one is passed as -1, which the
    /// library refuses in its own words where it looks at it.
    ///
    /// # Safety
    /// The arguments must fulfil the call's contract (see [`Arguments`]) on `comm`, with handles of this
    /// library. With arrays of [`Counts::Large`], which are narrowed where MPI looks at them, the communicator
    /// must be no inter-communicator.
    #[inline]
    pub unsafe fn call(&self, arguments: &Arguments, comm: Handle) -> c_int {
        // SAFETY: MPI's functions rely on the call's contract, `ints` on an entry for each rank (contract of
        // this function).
        unsafe {
            match arguments {
                Arguments::Barrier => (self.barrier)(comm),
                Arguments::Bcast { data, root } => {
                    (self.bcast)(data.buffer, int(data.count), data.datatype, *root, comm)
                }
                Arguments::Allreduce { data, count } => {
                    let (datatype, operation) = (data.datatype, data.operation);
                    (self.allreduce)(
                        data.send,
                        data.receive,
                        int(*count),
                        datatype,
                        operation,
                        comm,
                    )
                }
                Arguments::Exscan { data, count } => {
                    let (datatype, operation) = (data.datatype, data.operation);
                    (self.exscan)(data.send, data.receive, int(*count), datatype, operation, comm)
                }
                Arguments::Scan { data, count } => {
                    let (datatype, operation) = (data.datatype, data.operation);
                    (self.scan)(data.send, data.receive, int(*count), datatype, operation, comm)
                }
                Arguments::ReduceScatterBlock { data, count } => {
                    let (count, kind, operation) = (int(*count), data.datatype, data.operation);
                    let call = self.reduce_scatter_block;
                    call(data.send, data.receive, count, kind, operation, comm)
                }
                Arguments::ReduceScatter { data, counts } => {
                    let counts = match self.ints(*counts, comm) {
                        Ok(counts) => counts,
                        Err(code) => return code,
                    };
                    let (kind, operation) = (data.datatype, data.operation);
                    let call = self.reduce_scatter;
                    call(data.send, data.receive, counts.as_ptr(), kind, operation, comm)
                }
                Arguments::Reduce { data, count, root } => {
                    let (count, kind, operation) = (int(*count), data.datatype, data.operation);
                    (self.reduce)(data.send, data.receive, count, kind, operation, *root, comm)
                }
                _ => self.call_moving(arguments, comm),
            }
        }
    }

    /// As [`Mpi::call`], of the collectives that move blocks.
    ///
    /// # Safety
    /// As [`Mpi::call`].
    #[inline]
    unsafe fn call_moving(&self, arguments: &Arguments, comm: Handle) -> c_int {
        macro_rules! sides {
            ($function:ident, $send:ident, $receive:ident $(, $root:expr)?) => {
                (self.$function)(
                    $send.buffer,
                    int($send.count),
                    $send.datatype,
                    $receive.buffer,
                    int($receive.count),
                    $receive.datatype,
                    $($root,)?
                    comm,
                )
            };
        }
        // SAFETY: MPI's functions rely on no more than the call's contract, which is this function's.
        unsafe {
            match arguments {
                Arguments::Allgather { send, receive } => sides!(allgather, send, receive),
                Arguments::Alltoall { send, receive } => sides!(alltoall, send, receive),
                Arguments::Gather { send, receive, root } => sides!(gather, send, receive, *root),
                Arguments::Scatter { send, receive, root } => {
                    sides!(scatter, send, receive, *root)
                }
                _ => self.call_vectors(arguments, comm).unwrap_or_else(|code| code),
            }
        }
    }

    /// As [`Mpi::call`], of the collectives with a count and a displacement for every rank.
    ///
    /// # Safety
    /// As [`Mpi::call`].
    unsafe fn call_vectors(&self, arguments: &Arguments, comm: Handle) -> Result<c_int, c_int> {
        // SAFETY: MPI's functions rely on the call's contract, and so do `ints` and `at_root`: where MPI looks at
        // an array, it has an entry for each rank.
        unsafe {
            let ints = |counts| self.ints(counts, comm);
            let at_root = |counts, root| self.ints_at_root(counts, root, comm);
            Ok(match arguments {
                Arguments::Allgatherv { send: s, receive: r } => {
                    let (counts, places) = (ints(r.counts)?, ints(r.displacements)?);
                    let (counts, places) = (counts.as_ptr(), places.as_ptr());
                    let (from, count, call) = (s.buffer, int(s.count), self.allgatherv);
                    call(from, count, s.datatype, r.buffer, counts, places, r.datatype, comm)
                }
                Arguments::Gatherv { send: s, receive: r, root } => {
                    let [counts, places] = at_root([r.counts, r.displacements], *root)?;
                    let (counts, places) = (counts.as_ptr(), places.as_ptr());
                    let (from, count, call) = (s.buffer, int(s.count), self.gatherv);
                    call(from, count, s.datatype, r.buffer, counts, places, r.datatype, *root, comm)
                }
                Arguments::Scatterv { send: s, receive: r, root } => {
                    let [counts, places] = at_root([s.counts, s.displacements], *root)?;
                    let (counts, places) = (counts.as_ptr(), places.as_ptr());
                    let (into, count, call) = (r.buffer, int(r.count), self.scatterv);
                    call(s.buffer, counts, places, s.datatype, into, count, r.datatype, *root, comm)
                }
                Arguments::Alltoallv { send: s, receive: r } => {
                    let (counts, places) = (ints(s.counts)?, ints(s.displacements)?);
                    let (into_counts, into_places) = (ints(r.counts)?, ints(r.displacements)?);
                    (self.alltoallv)(
                        s.buffer,
                        counts.as_ptr(),
                        places.as_ptr(),
                        s.datatype,
                        r.buffer,
                        into_counts.as_ptr(),
                        into_places.as_ptr(),
                        r.datatype,
                        comm,
                    )
                }
                _ => unreachable!("{} has no count for every rank", arguments.collective()),
            })
        }
    }

    /// One number for every rank; else the library's code.
    ///
    /// # Safety
    /// `comm` must be live, and the array have an entry for each of its ranks.
    #[inline]
    unsafe fn ints(&self, counts: Counts, comm: Handle) -> Result<Ints, c_int> {
        if let Counts::Int(array) = counts {
            return Ok(Ints::Given(array));
        }
        let mut size = 0;
        // SAFETY: `comm` is live, and `counts` has an entry for each of its ranks (contract of this function);
        // `size` is a local.
        unsafe {
            match (self.comm_size)(comm, &mut size) {
                0 => {
                    let narrowed = (0..size as usize).map(|rank| int(counts.get(rank)));
                    Ok(Ints::Narrowed(narrowed.collect()))
                }
                code => Err(code),
            }
        }
    }

    /// The same of arrays that are significant at the root alone: elsewhere they may be anything.
    ///
    /// # Safety
    /// `comm` must be live, and on rank `root` the arrays have an entry for each of its ranks.
    unsafe fn ints_at_root(
        &self,
        arrays: [Counts; 2],
        root: c_int,
        comm: Handle,
    ) -> Result<[Ints; 2], c_int> {
        let [counts, places] = arrays;
        if let (Counts::Int(counts), Counts::Int(places)) = (counts, places) {
            return Ok([Ints::Given(counts), Ints::Given(places)]);
        }
        let mut rank = 0;
        // SAFETY: `comm` is live, and at the root both arrays have an entry for each of its ranks (contract of this
        // function); `rank` is a local.
        unsafe {
            match (self.comm_rank)(comm, &mut rank) {
                0 if rank == root => Ok([self.ints(counts, comm)?, self.ints(places, comm)?]),
                0 => Ok([Ints::Given(ptr::null()), Ints::Given(ptr::null())]),
                code => Err(code),
            }
        }
    }

    /// The same table with another function for one collective: a plug-in's.
    ///
    /// # Safety
    /// The function must not be null, and must have the signature of MPI's and do the same.
    #[must_use]
    pub unsafe fn with(mut self, collective: Collective, function: *const c_void) -> Self {
        macro_rules! set {
            ($field:ident) => {
                // SAFETY: `function` is not null and has the signature of this field (contract of this
                // function).
                self.$field = unsafe { mem::transmute_copy(&function) }
            };
        }
        match collective {
            Collective::Allgather => set!(allgather),
            Collective::Allgatherv => set!(allgatherv),
            Collective::Allreduce => set!(allreduce),
            Collective::Alltoall => set!(alltoall),
            Collective::Alltoallv => set!(alltoallv),
            Collective::Barrier => set!(barrier),
            Collective::Bcast => set!(bcast),
            Collective::Exscan => set!(exscan),
            Collective::Gather => set!(gather),
            Collective::Gatherv => set!(gatherv),
            Collective::Reduce => set!(reduce),
            Collective::ReduceScatter => set!(reduce_scatter),
            Collective::ReduceScatterBlock => set!(reduce_scatter_block),
            Collective::Scan => set!(scan),
            Collective::Scatter => set!(scatter),
            Collective::Scatterv => set!(scatterv),
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Block, Reduction, VectorBlocks, fake};

    #[test]
    fn a_collective_is_called_what_mpi_calls_it() {
        for collective in Collective::ALL {
            let lower = function_name(collective).to_lowercase();
            assert_eq!(lower.strip_prefix("mpi_"), Some(collective.name()));
        }
    }

    unsafe extern "C" fn reduce_scatter(
        send: *const c_void,
        _receive: *mut c_void,
        counts: *const c_int,
        _datatype: Handle,
        _operation: Handle,
        _comm: Handle,
    ) -> c_int {
        // SAFETY: the test passes the address of two numbers, and as many counts.
        unsafe { send.cast_mut().cast::<[c_int; 2]>().write(*counts.cast()) };
        7
    }

    #[test]
    fn counts_are_narrowed_and_what_does_not_fit_is_left_to_the_library() {
        let function = reduce_scatter as *const c_void;
        // SAFETY: the signature is MPI's.
        let table = unsafe { fake::table().with(Collective::ReduceScatter, function) };
        let seen = fake::run(2, |_| {
            let (mut seen, counts) = ([0; 2], [3, 1 << 40]);
            let send = (&raw mut seen).cast_const().cast();
            let (receive, datatype, operation) = (ptr::null_mut(), fake::BYTE, 0);
            let data = Reduction { send, receive, datatype, operation };
            let counts = Counts::Large(counts.as_ptr());
            // SAFETY: the function takes these arguments.
            let code = unsafe { table.call(&Arguments::ReduceScatter { data, counts }, 0) };
            (code, seen)
        });
        assert_eq!(seen, [(7, [3, -1]); 2]);
    }

    /// Puts down how many elements of rank 1 the root is to take.
    #[allow(clippy::too_many_arguments, reason = "they are MPI's")]
    unsafe extern "C" fn gatherv(
        send: *const c_void,
        _: c_int,
        _: Handle,
        _: *mut c_void,
        counts: *const c_int,
        places: *const c_int,
        _: Handle,
        _: c_int,
        _: Handle,
    ) -> c_int {
        // SAFETY: the test passes a number, and arrays of two at the root alone.
        unsafe {
            let taken = if counts.is_null() { -7 } else { *counts.add(1) + *places.add(1) };
            send.cast_mut().cast::<c_int>().write(taken);
        }
        0
    }

    #[test]
    fn large_counts_are_read_at_the_root_alone() {
        let function = gatherv as *const c_void;
        // SAFETY: the signature is MPI's.
        let table = unsafe { fake::table().with(Collective::Gatherv, function) };
        let seen = fake::run(2, |rank| {
            let (mut seen, counts, places) = (0, [3, 4], [0, 30]);
            let datatype = fake::BYTE;
            let send = Block { buffer: (&raw mut seen).cast(), count: 1, datatype };
            let large = |array: &[i64; 2]| match rank {
                1 => Counts::Large(array.as_ptr()),
                _ => Counts::Large(ptr::null()),
            };
            let receive = VectorBlocks {
                buffer: ptr::null_mut(),
                counts: large(&counts),
                displacements: large(&places),
                datatype,
            };
            // SAFETY: the function takes these arguments.
            let code = unsafe { table.call(&Arguments::Gatherv { send, receive, root: 1 }, 0) };
            (code, seen)
        });
        assert_eq!(seen, [(0, -7), (0, 34)]);
    }
}
