//! The table of MPI functions: their names and signatures are written here, and nowhere else.

use std::ffi::{CStr, c_char, c_int, c_void};

use crate::{Handle, MissingSymbol, MpiConstants};

/// `MPI_Comm_copy_attr_function`.
pub type CopyAttribute = unsafe extern "C-unwind" fn(
    Handle,
    c_int,
    *mut c_void,
    *mut c_void,
    *mut c_void,
    *mut c_int,
) -> c_int;
/// `MPI_Comm_delete_attr_function`.
pub type DeleteAttribute =
    unsafe extern "C-unwind" fn(Handle, c_int, *mut c_void, *mut c_void) -> c_int;

/// `MPI_Type_get_envelope_c`.
pub type TypeGetEnvelopeLarge = unsafe extern "C-unwind" fn(
    Handle,
    *mut i64,
    *mut i64,
    *mut i64,
    *mut i64,
    *mut c_int,
) -> c_int;

/// Hands all functions of the table to a macro: for each the field's name, MPI's name, and the types of
/// its arguments. A program that links MPI finds their addresses so ([`Mpi::load`]).
#[macro_export]
macro_rules! with_mpi_functions {
    ($callback:ident) => {
        $callback! {
            // What messages go through, side by side: beside a short one each line of the cache is seen.
            irecv MPI_Irecv (*mut c_void, c_int, Handle, c_int, c_int, Handle, *mut Handle);
            isend MPI_Isend (*const c_void, c_int, Handle, c_int, c_int, Handle, *mut Handle);
            op_commutative MPI_Op_commutative (Handle, *mut c_int);
            recv MPI_Recv (*mut c_void, c_int, Handle, c_int, c_int, Handle, *mut c_void);
            reduce_local MPI_Reduce_local (*const c_void, *mut c_void, c_int, Handle, Handle);
            send MPI_Send (*const c_void, c_int, Handle, c_int, c_int, Handle);
            wait MPI_Wait (*mut Handle, *mut c_void);
            // The others.
            abort MPI_Abort (Handle, c_int);
            allgather MPI_Allgather (*const c_void, c_int, Handle, *mut c_void, c_int, Handle, Handle);
            allgatherv MPI_Allgatherv (*const c_void, c_int, Handle, *mut c_void, *const c_int, *const c_int, Handle, Handle);
            allreduce MPI_Allreduce (*const c_void, *mut c_void, c_int, Handle, Handle, Handle);
            alltoall MPI_Alltoall (*const c_void, c_int, Handle, *mut c_void, c_int, Handle, Handle);
            alltoallv MPI_Alltoallv (*const c_void, *const c_int, *const c_int, Handle, *mut c_void, *const c_int, *const c_int, Handle, Handle);
            barrier MPI_Barrier (Handle);
            bcast MPI_Bcast (*mut c_void, c_int, Handle, c_int, Handle);
            comm_call_errhandler MPI_Comm_call_errhandler (Handle, c_int);
            comm_create_keyval MPI_Comm_create_keyval (CopyAttribute, DeleteAttribute, *mut c_int, *mut c_void);
            comm_delete_attr MPI_Comm_delete_attr (Handle, c_int);
            comm_free MPI_Comm_free (*mut Handle);
            comm_free_keyval MPI_Comm_free_keyval (*mut c_int);
            comm_get_attr MPI_Comm_get_attr (Handle, c_int, *mut c_void, *mut c_int);
            comm_get_errhandler MPI_Comm_get_errhandler (Handle, *mut Handle);
            comm_get_parent MPI_Comm_get_parent (*mut Handle);
            comm_group MPI_Comm_group (Handle, *mut Handle);
            comm_rank MPI_Comm_rank (Handle, *mut c_int);
            comm_set_attr MPI_Comm_set_attr (Handle, c_int, *mut c_void);
            comm_set_errhandler MPI_Comm_set_errhandler (Handle, Handle);
            comm_size MPI_Comm_size (Handle, *mut c_int);
            comm_split MPI_Comm_split (Handle, c_int, c_int, *mut Handle);
            comm_test_inter MPI_Comm_test_inter (Handle, *mut c_int);
            error_class MPI_Error_class (c_int, *mut c_int);
            errhandler_free MPI_Errhandler_free (*mut Handle);
            exscan MPI_Exscan (*const c_void, *mut c_void, c_int, Handle, Handle, Handle);
            gather MPI_Gather (*const c_void, c_int, Handle, *mut c_void, c_int, Handle, c_int, Handle);
            gatherv MPI_Gatherv (*const c_void, c_int, Handle, *mut c_void, *const c_int, *const c_int, Handle, c_int, Handle);
            get_processor_name MPI_Get_processor_name (*mut c_char, *mut c_int);
            group_free MPI_Group_free (*mut Handle);
            group_translate_ranks MPI_Group_translate_ranks (Handle, c_int, *const c_int, Handle, *mut c_int);
            iallreduce MPI_Iallreduce (*const c_void, *mut c_void, c_int, Handle, Handle, Handle, *mut Handle);
            ibarrier MPI_Ibarrier (Handle, *mut Handle);
            iprobe MPI_Iprobe (c_int, c_int, Handle, *mut c_int, *mut c_void);
            irsend MPI_Irsend (*const c_void, c_int, Handle, c_int, c_int, Handle, *mut Handle);
            issend MPI_Issend (*const c_void, c_int, Handle, c_int, c_int, Handle, *mut Handle);
            lookup_name MPI_Lookup_name (*const c_char, Handle, *mut c_char);
            pack MPI_Pack (*const c_void, c_int, Handle, *mut c_void, c_int, *mut c_int, Handle);
            publish_name MPI_Publish_name (*const c_char, Handle, *const c_char);
            reduce MPI_Reduce (*const c_void, *mut c_void, c_int, Handle, Handle, c_int, Handle);
            reduce_scatter MPI_Reduce_scatter (*const c_void, *mut c_void, *const c_int, Handle, Handle, Handle);
            reduce_scatter_block MPI_Reduce_scatter_block (*const c_void, *mut c_void, c_int, Handle, Handle, Handle);
            scan MPI_Scan (*const c_void, *mut c_void, c_int, Handle, Handle, Handle);
            scatter MPI_Scatter (*const c_void, c_int, Handle, *mut c_void, c_int, Handle, c_int, Handle);
            scatterv MPI_Scatterv (*const c_void, *const c_int, *const c_int, Handle, *mut c_void, c_int, Handle, c_int, Handle);
            sendrecv MPI_Sendrecv (*const c_void, c_int, Handle, c_int, c_int, *mut c_void, c_int, Handle, c_int, c_int, Handle, *mut c_void);
            ssend MPI_Ssend (*const c_void, c_int, Handle, c_int, c_int, Handle);
            test MPI_Test (*mut Handle, *mut c_int, *mut c_void);
            type_commit MPI_Type_commit (*mut Handle);
            type_create_hindexed MPI_Type_create_hindexed (c_int, *const c_int, *const isize, Handle, *mut Handle);
            type_create_resized MPI_Type_create_resized (Handle, isize, isize, *mut Handle);
            type_dup MPI_Type_dup (Handle, *mut Handle);
            type_free MPI_Type_free (*mut Handle);
            type_get_envelope MPI_Type_get_envelope (Handle, *mut c_int, *mut c_int, *mut c_int, *mut c_int);
            type_get_extent MPI_Type_get_extent (Handle, *mut isize, *mut isize);
            type_get_true_extent MPI_Type_get_true_extent (Handle, *mut isize, *mut isize);
            type_size_x MPI_Type_size_x (Handle, *mut i64);
            unpack MPI_Unpack (*const c_void, c_int, *mut c_int, *mut c_void, c_int, Handle, Handle);
            unpublish_name MPI_Unpublish_name (*const c_char, Handle, *const c_char);
        }
    };
}

macro_rules! table {
    ($($name:ident $symbol:ident ($($argument:ty),*);)*) => {
        /// The functions and constants of one MPI library.
        #[derive(Debug, Clone, Copy)]
        pub struct Mpi {
            /// What its headers define.
            pub constants: MpiConstants,
            /// Of MPI 4.0 on: by then `MPI_Type_get_envelope` refuses types that were made with large counts, and is not
            /// asked.
            pub type_get_envelope_c: Option<TypeGetEnvelopeLarge>,
            $(
                #[doc = concat!("`", stringify!($symbol), "`.")]
                pub $name: unsafe extern "C-unwind" fn($($argument),*) -> c_int,
            )*
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
                constants: MpiConstants,
            ) -> Result<Self, MissingSymbol> {
                let address = find(c"MPI_Type_get_envelope_c");
                // SAFETY: as below; null becomes none.
                let type_get_envelope_c = unsafe {
                    std::mem::transmute::<*const c_void, Option<TypeGetEnvelopeLarge>>(address)
                };
                let mut wanted = |name: &'static str| {
                    // Every name ends in a zero byte.
                    let address = find(CStr::from_bytes_with_nul(name.as_bytes()).unwrap_or_default());
                    match address.is_null() {
                        true => Err(MissingSymbol(format!("function {}", name.trim_end_matches('\0')))),
                        false => Ok(address),
                    }
                };
                Ok(Mpi {
                    constants,
                    type_get_envelope_c,
                    $($name: {
                        let address = wanted(concat!(stringify!($symbol), "\0"))?;
                        // SAFETY: `find` gave MPI's function of this name (contract of this function), whose
                        // signature this is; its handles are words or ints in words (see `Handle`).
                        unsafe {
                            std::mem::transmute::<
                                *const c_void,
                                unsafe extern "C-unwind" fn($($argument),*) -> c_int,
                            >(address)
                        }
                    },)*
                })
            }
        }
    };
}

with_mpi_functions!(table);
