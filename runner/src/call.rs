//! Calls of the MPI library's own collectives.

use std::{
    ffi::{c_int, c_void},
    mem, ptr,
};

use records::Collective;

use crate::{Arguments, Counts, Handle, Mpi, RankArray, Side};

/// Hands all collectives to a macro: for each its name, the field of its function in [`Mpi`], MPI's name, and
/// the form of its arguments. What comes before them is handed on.
#[macro_export]
macro_rules! with_collectives {
    ($callback:ident $($before:tt)*) => {
        $callback! {
            $($before)*
            Allgather allgather MPI_Allgather sides;
            Allgatherv allgatherv MPI_Allgatherv receive_counts;
            Allreduce allreduce MPI_Allreduce reduction;
            Alltoall alltoall MPI_Alltoall sides;
            Alltoallv alltoallv MPI_Alltoallv all_counts;
            Barrier barrier MPI_Barrier nothing;
            Bcast bcast MPI_Bcast buffer_root;
            Exscan exscan MPI_Exscan reduction;
            Gather gather MPI_Gather sides_root;
            Gatherv gatherv MPI_Gatherv receive_counts_root;
            Reduce reduce MPI_Reduce reduction_root;
            ReduceScatter reduce_scatter MPI_Reduce_scatter reduction_counts;
            ReduceScatterBlock reduce_scatter_block MPI_Reduce_scatter_block reduction;
            Scan scan MPI_Scan reduction;
            Scatter scatter MPI_Scatter sides_root;
            Scatterv scatterv MPI_Scatterv send_counts_root;
        }
    };
}

/// What MPI calls a collective's function: `MPI_Reduce_scatter_block`.
pub fn function_name(collective: Collective) -> &'static str {
    macro_rules! names {
        ($($collective:ident $function:ident $name:ident $form:ident;)*) => {
            match collective { $(Collective::$collective => stringify!($name),)* }
        };
    }
    with_collectives!(names)
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
    /// library. With arrays of [`RankArray::Large`], which are narrowed where MPI looks at them, the communicator
    /// must be no inter-communicator.
    #[inline]
    pub unsafe fn call(&self, arguments: &Arguments, comm: Handle) -> c_int {
        // SAFETY: MPI's functions rely on the call's contract, and so does `arrays`.
        let outcome = unsafe { self.call_or_fail(arguments, comm) };
        outcome.unwrap_or_else(|code| code)
    }

    /// As [`Mpi::call`], but the code of what the library was asked before is an error.
    ///
    /// # Safety
    /// As [`Mpi::call`].
    #[inline]
    unsafe fn call_or_fail(&self, arguments: &Arguments, comm: Handle) -> Result<c_int, c_int> {
        let Arguments { collective, send, receive, operation, root } = *arguments;
        let of = |side: Side| match side.counts {
            Counts::Uniform(count) => int(count),
            Counts::PerRank { .. } => -1,
        };
        // SAFETY: as in `call`.
        let arrays = |side: &Side| unsafe { self.arrays(arguments, side, comm) };
        macro_rules! call {
            ($call:expr, nothing) => { $call(comm) };
            ($call:expr, buffer_root) => {
                $call(receive.address, of(receive), receive.datatype, root, comm)
            };
            ($call:expr, sides $(, $root:ident)?) => {
                $call(
                    send.address, of(send), send.datatype,
                    receive.address, of(receive), receive.datatype, $($root,)? comm,
                )
            };
            ($call:expr, sides_root) => { call!($call, sides, root) };
            ($call:expr, receive_counts $(, $root:ident)?) => {{
                let [counts, places] = arrays(&receive)?;
                $call(
                    send.address, of(send), send.datatype,
                    receive.address, counts.as_ptr(), places.as_ptr(), receive.datatype, $($root,)? comm,
                )
            }};
            ($call:expr, receive_counts_root) => { call!($call, receive_counts, root) };
            ($call:expr, send_counts_root) => {{
                let [counts, places] = arrays(&send)?;
                $call(
                    send.address, counts.as_ptr(), places.as_ptr(), send.datatype,
                    receive.address, of(receive), receive.datatype, root, comm,
                )
            }};
            ($call:expr, all_counts) => {{
                let ([counts, places], [into_counts, into_places]) = (arrays(&send)?, arrays(&receive)?);
                $call(
                    send.address, counts.as_ptr(), places.as_ptr(), send.datatype,
                    receive.address, into_counts.as_ptr(), into_places.as_ptr(), receive.datatype, comm,
                )
            }};
            ($call:expr, reduction $(, $root:ident)?) => {
                $call(send.address, receive.address, of(send), send.datatype, operation, $($root,)? comm)
            };
            ($call:expr, reduction_root) => { call!($call, reduction, root) };
            ($call:expr, reduction_counts) => {{
                let [counts, _] = arrays(&send)?;
                $call(send.address, receive.address, counts.as_ptr(), send.datatype, operation, comm)
            }};
        }
        macro_rules! by_collective {
            ($($collective:ident $function:ident $name:ident $form:ident;)*) => {
                match collective { $(Collective::$collective => call!((self.$function), $form),)* }
            };
        }
        // SAFETY: MPI's functions rely on the call's contract (contract of this function).
        Ok(unsafe { with_collectives!(by_collective) })
    }

    /// Counts and displacements of a side; else the library's code. Where they are significant at the root alone,
    /// they are not looked at elsewhere.
    ///
    /// # Safety
    /// As [`Mpi::call`]; the side must be of these arguments.
    #[inline]
    unsafe fn arrays(
        &self,
        arguments: &Arguments,
        side: &Side,
        comm: Handle,
    ) -> Result<[Ints; 2], c_int> {
        let none = RankArray::Int(ptr::null());
        let arrays = match side.counts {
            Counts::Uniform(_) => [none; 2],
            Counts::PerRank { counts, displacements } => [counts, displacements.unwrap_or(none)],
        };
        if let [RankArray::Int(counts), RankArray::Int(places)] = arrays {
            return Ok([Ints::Given(counts), Ints::Given(places)]);
        }
        let (mut rank, mut size) = (0, 0);
        // SAFETY: `comm` is live (the call's contract); outputs are locals.
        match unsafe { (self.comm_rank)(comm, &mut rank) | (self.comm_size)(comm, &mut size) } {
            0 if arguments.collective.is_rooted() && rank != arguments.root => {
                Ok([Ints::Given(ptr::null()), Ints::Given(ptr::null())])
            }
            0 => Ok(arrays.map(|array| match array {
                RankArray::Int(array) => Ints::Given(array),
                // SAFETY: the array is significant here and has an entry for each rank (the call's contract).
                large => Ints::Narrowed(
                    (0..size as usize).map(|rank| int(unsafe { large.get(rank) })).collect(),
                ),
            })),
            code => Err(code),
        }
    }

    /// This table with another function for one collective: a plug-in's.
    ///
    /// # Safety
    /// The function must not be null, and must have the signature of MPI's and do the same.
    #[must_use]
    pub unsafe fn with(mut self, collective: Collective, function: *const c_void) -> Self {
        macro_rules! set_of {
            ($($collective:ident $function:ident $name:ident $form:ident;)*) => {
                match collective { $(
                    Collective::$collective => {
                        // SAFETY: `function` is not null and has the signature of this field (contract of this
                        // function).
                        self.$function = unsafe { mem::transmute_copy(&function) }
                    }
                )* }
            };
        }
        with_collectives!(set_of);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake;

    #[test]
    fn a_collective_is_called_what_mpi_calls_it() {
        for collective in Collective::ALL {
            let lower = function_name(collective).to_lowercase();
            assert_eq!(lower.strip_prefix("mpi_"), Some(collective.name()));
        }
    }

    unsafe extern "C-unwind" fn reduce_scatter(
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
            let counts = RankArray::Large(counts.as_ptr());
            let counts = Counts::in_a_row(counts);
            let arguments = Arguments::combining(
                Collective::ReduceScatter,
                send,
                receive,
                counts,
                datatype,
                operation,
                0,
            );
            // SAFETY: the function takes these arguments.
            let code = unsafe { table.call(&arguments, 0) };
            (code, seen)
        });
        assert_eq!(seen, [(7, [3, -1]); 2]);
    }

    /// Puts down how many elements of rank 1 the root is to take.
    #[allow(clippy::too_many_arguments, reason = "they are MPI's")]
    unsafe extern "C-unwind" fn gatherv(
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
            let send = Side::uniform((&raw mut seen).cast(), 1, datatype);
            let large = |array: &[i64; 2]| match rank {
                1 => RankArray::Large(array.as_ptr()),
                _ => RankArray::Large(ptr::null()),
            };
            let counts =
                Counts::PerRank { counts: large(&counts), displacements: Some(large(&places)) };
            let receive = Side { address: ptr::null_mut(), counts, datatype };
            let arguments = Arguments::moving(Collective::Gatherv, send, receive, 1);
            // SAFETY: the function takes these arguments.
            let code = unsafe { table.call(&arguments, 0) };
            (code, seen)
        });
        assert_eq!(seen, [(0, -7), (0, 34)]);
    }
}
