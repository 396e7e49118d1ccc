//! The table of MPI functions.

use std::ffi::{CStr, c_int, c_void};

/// A handle of MPI (communicator, datatype, operation, request) as a machine word.
///
/// Open MPI and the standard ABI have pointers. MPICH has ints; these travel in the lower half of
/// a word, whose upper half the callee ignores, and are written into the lower half of a word that
/// was zero.
pub type Handle = usize;

/// `MPI_Comm_copy_attr_function`.
pub(crate) type CopyAttribute =
    unsafe extern "C" fn(Handle, c_int, *mut c_void, *mut c_void, *mut c_void, *mut c_int) -> c_int;
/// `MPI_Comm_delete_attr_function`.
pub(crate) type DeleteAttribute =
    unsafe extern "C" fn(Handle, c_int, *mut c_void, *mut c_void) -> c_int;

/// Values that the headers of MPI libraries define differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Constants {
    /// `MPI_IN_PLACE` as an address: 1 in Open MPI and the standard ABI, -1 in MPICH.
    pub in_place: usize,
    /// `MPI_STATUS_IGNORE` as an address: 0 in Open MPI and the standard ABI, 1 in MPICH.
    pub status_ignore: usize,
    /// `MPI_BYTE`, or another named type of one byte.
    pub byte: Handle,
    /// `MPI_BOR`.
    pub bitwise_or: Handle,
    /// `MPI_PACKED`.
    pub packed: Handle,
    /// `MPI_ERRORS_RETURN`.
    pub errors_return: Handle,
}

/// An MPI library has no such function.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the MPI library has no function {0}; wanted one of MPI 3.0 or later")]
pub struct MissingFunction(pub String);

macro_rules! functions {
    ($($name:ident $symbol:literal ($($argument:ty),*);)*) => {
        /// The functions and constants of one MPI library.
        #[derive(Debug, Clone, Copy)]
        pub struct Mpi {
            pub(crate) constants: Constants,
            $(pub(crate) $name: unsafe extern "C" fn($($argument),*) -> c_int,)*
        }

        impl Mpi {
            /// Fills the table with what `find` knows under MPI's names (`MPI_Isend`); null where
            /// there is no such function.
            ///
            /// # Safety
            /// `find` must give the functions that MPI defines under these names, and `constants`
            /// must be of the same library.
            ///
            /// # Errors
            /// A function is missing.
            pub unsafe fn load(
                mut find: impl FnMut(&CStr) -> *const c_void,
                constants: Constants,
            ) -> Result<Self, MissingFunction> {
                let mut wanted = |name: &'static CStr| {
                    let address = find(name);
                    match address.is_null() {
                        true => Err(MissingFunction(name.to_string_lossy().into_owned())),
                        false => Ok(address),
                    }
                };
                Ok(Mpi {
                    constants,
                    $($name: {
                        let address = wanted($symbol)?;
                        // SAFETY: the caller vouches that this is the function of this name; its
                        // handles are words or ints in words (see `Handle`).
                        unsafe {
                            std::mem::transmute::<
                                *const c_void,
                                unsafe extern "C" fn($($argument),*) -> c_int,
                            >(address)
                        }
                    },)*
                })
            }
        }
    };
}

functions! {
    // What messages go through, side by side: beside a short one each line of the cache is seen.
    irecv c"MPI_Irecv" (*mut c_void, c_int, Handle, c_int, c_int, Handle, *mut Handle);
    isend c"MPI_Isend" (*const c_void, c_int, Handle, c_int, c_int, Handle, *mut Handle);
    op_commutative c"MPI_Op_commutative" (Handle, *mut c_int);
    recv c"MPI_Recv" (*mut c_void, c_int, Handle, c_int, c_int, Handle, *mut c_void);
    reduce_local c"MPI_Reduce_local" (*const c_void, *mut c_void, c_int, Handle, Handle);
    send c"MPI_Send" (*const c_void, c_int, Handle, c_int, c_int, Handle);
    wait c"MPI_Wait" (*mut Handle, *mut c_void);
    // The others.
    allgather c"MPI_Allgather" (*const c_void, c_int, Handle, *mut c_void, c_int, Handle, Handle);
    allgatherv c"MPI_Allgatherv" (*const c_void, c_int, Handle, *mut c_void, *const c_int, *const c_int, Handle, Handle);
    allreduce c"MPI_Allreduce" (*const c_void, *mut c_void, c_int, Handle, Handle, Handle);
    alltoall c"MPI_Alltoall" (*const c_void, c_int, Handle, *mut c_void, c_int, Handle, Handle);
    alltoallv c"MPI_Alltoallv" (*const c_void, *const c_int, *const c_int, Handle, *mut c_void, *const c_int, *const c_int, Handle, Handle);
    bcast c"MPI_Bcast" (*mut c_void, c_int, Handle, c_int, Handle);
    comm_create_keyval c"MPI_Comm_create_keyval" (CopyAttribute, DeleteAttribute, *mut c_int, *mut c_void);
    comm_delete_attr c"MPI_Comm_delete_attr" (Handle, c_int);
    comm_free c"MPI_Comm_free" (*mut Handle);
    comm_get_attr c"MPI_Comm_get_attr" (Handle, c_int, *mut c_void, *mut c_int);
    comm_rank c"MPI_Comm_rank" (Handle, *mut c_int);
    comm_set_attr c"MPI_Comm_set_attr" (Handle, c_int, *mut c_void);
    comm_set_errhandler c"MPI_Comm_set_errhandler" (Handle, Handle);
    comm_size c"MPI_Comm_size" (Handle, *mut c_int);
    comm_split c"MPI_Comm_split" (Handle, c_int, c_int, *mut Handle);
    comm_test_inter c"MPI_Comm_test_inter" (Handle, *mut c_int);
    exscan c"MPI_Exscan" (*const c_void, *mut c_void, c_int, Handle, Handle, Handle);
    gather c"MPI_Gather" (*const c_void, c_int, Handle, *mut c_void, c_int, Handle, c_int, Handle);
    gatherv c"MPI_Gatherv" (*const c_void, c_int, Handle, *mut c_void, *const c_int, *const c_int, Handle, c_int, Handle);
    irsend c"MPI_Irsend" (*const c_void, c_int, Handle, c_int, c_int, Handle, *mut Handle);
    pack c"MPI_Pack" (*const c_void, c_int, Handle, *mut c_void, c_int, *mut c_int, Handle);
    reduce c"MPI_Reduce" (*const c_void, *mut c_void, c_int, Handle, Handle, c_int, Handle);
    reduce_scatter c"MPI_Reduce_scatter" (*const c_void, *mut c_void, *const c_int, Handle, Handle, Handle);
    reduce_scatter_block c"MPI_Reduce_scatter_block" (*const c_void, *mut c_void, c_int, Handle, Handle, Handle);
    scatter c"MPI_Scatter" (*const c_void, c_int, Handle, *mut c_void, c_int, Handle, c_int, Handle);
    scatterv c"MPI_Scatterv" (*const c_void, *const c_int, *const c_int, Handle, *mut c_void, c_int, Handle, c_int, Handle);
    sendrecv c"MPI_Sendrecv" (*const c_void, c_int, Handle, c_int, c_int, *mut c_void, c_int, Handle, c_int, c_int, Handle, *mut c_void);
    type_commit c"MPI_Type_commit" (*mut Handle);
    type_create_hindexed c"MPI_Type_create_hindexed" (c_int, *const c_int, *const isize, Handle, *mut Handle);
    type_create_resized c"MPI_Type_create_resized" (Handle, isize, isize, *mut Handle);
    type_free c"MPI_Type_free" (*mut Handle);
    type_get_envelope c"MPI_Type_get_envelope" (Handle, *mut c_int, *mut c_int, *mut c_int, *mut c_int);
    type_get_extent c"MPI_Type_get_extent" (Handle, *mut isize, *mut isize);
    type_get_true_extent c"MPI_Type_get_true_extent" (Handle, *mut isize, *mut isize);
    type_size_x c"MPI_Type_size_x" (Handle, *mut i64);
    unpack c"MPI_Unpack" (*const c_void, c_int, *mut c_int, *mut c_void, c_int, Handle, Handle);
}
