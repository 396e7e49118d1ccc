//! The functions that stand before the MPI library's.
//!
//! Each is there twice, as `MPI_X` and as `PMPI_X`: Open MPI's Fortran goes straight to the
//! second. What they go on to is the library's `PMPI_X`, so that no call comes here twice.
//!
//! C's arguments are words or ints, whatever the library calls their types; MPICH's handles are
//! ints in words whose upper half may hold anything.

use std::{
    ffi::{CStr, c_char, c_int, c_void},
    mem,
};

use records::Collective;
use runner::{Arguments, Counts, Handle, RankArray, Side, with_collectives};

use crate::{
    carry_out::{self, FirstSight},
    clock::Nanoseconds,
    communicators, exploring,
    finally::{EndOnPanic, Finally},
    freed_communicators,
    job::JobContext,
    library::{self, LibraryFunction},
    lifetime,
    say::say,
};

type ReceiveAddress = *mut c_void;
type SendAddress = *const c_void;

/// Counts: `int` or `MPI_Count`.
trait CountType: Copy + Into<i64> {
    fn array(array: *const Self) -> RankArray;
}

impl CountType for c_int {
    fn array(array: *const Self) -> RankArray {
        RankArray::Int(array)
    }
}

impl CountType for i64 {
    fn array(array: *const Self) -> RankArray {
        RankArray::Large(array)
    }
}

fn side(address: SendAddress, count: impl CountType, datatype: Handle) -> Side {
    Side::uniform(address.cast_mut(), count.into(), datatype)
}

fn uniform(count: impl CountType) -> Counts {
    Counts::Uniform(count.into())
}

fn per_rank<N: CountType>(counts: *const N) -> Counts {
    Counts::in_a_row(N::array(counts))
}

/// The library has no such function: by the one with small counts, if it has that.
///
/// # Safety
/// The arguments must be the application's. Nobody checks that counts of 64 bits are not those of an inter-communicator, as
/// [`library::call_classic`] demands.
#[cold]
unsafe fn without(name: &CStr, arguments: Arguments, comm: Handle) -> c_int {
    // SAFETY: the arguments are the application's (contract of this function), counts of 64 bits apart (see
    // above).
    if let Some(code) = unsafe { library::call_classic(&arguments, comm) } {
        return code;
    }
    say(&format!("the MPI library has no {}", name.to_string_lossy()));
    match JobContext::current() {
        Some(job) => {
            let code = job.library.constants.error_other;
            // SAFETY: the communicator is the application's.
            unsafe { (job.library.comm_call_errhandler)(comm, code) };
            code
        }
        None => std::process::abort(),
    }
}

/// Defines both functions for one collective, whose name for MPI is put together of two parts.
macro_rules! catch {
    ($mpi:ident $suffix:tt ($($name:ident: $type:ty),*) $arguments:expr) => {
        catch!(@function "" $mpi $suffix ($($name: $type),*) $arguments);
        catch!(@function "P" $mpi $suffix ($($name: $type),*) $arguments);
    };
    (@function $prefix:literal $mpi:ident $suffix:tt ($($name:ident: $type:ty),*) $arguments:expr) => {
        const _: () = {
            /// Chooses and carries out, or goes on to the MPI library's function.
            ///
            /// # Safety
            /// That function's own.
            #[unsafe(export_name = concat!($prefix, stringify!($mpi), $suffix))]
            #[allow(clippy::too_many_arguments, reason = "MPI's function has as many")]
            unsafe extern "C-unwind" fn caught($($name: $type,)* comm: Handle) -> c_int {
                const BEHIND: &CStr = catch!(@c "P", stringify!($mpi), $suffix);
                static LIBRARY_FUNCTION: LibraryFunction = LibraryFunction::new(BEHIND);
                type Function = unsafe extern "C-unwind" fn($($type,)* Handle) -> c_int;
                #[allow(clippy::too_many_arguments, reason = "MPI's function has as many")]
                unsafe fn library($($name: $type,)* comm: Handle) -> c_int {
                    let behind = LIBRARY_FUNCTION.address();
                    // SAFETY: the arguments are the application's; what is behind is the library's
                    // function of this name, whose signature this is.
                    unsafe {
                        if behind.is_null() {
                            return without(BEHIND, $arguments, comm);
                        }
                        mem::transmute::<ReceiveAddress, Function>(behind)($($name,)* comm)
                    }
                }
                #[inline(never)]
                #[allow(clippy::too_many_arguments, reason = "MPI's function has as many")]
                unsafe extern "C-unwind" fn chosen($($name: $type,)* comm: Handle) -> c_int {
                    let _end = EndOnPanic;
                    // SAFETY: the arguments are the application's.
                    unsafe {
                        match carry_out::choose($arguments, comm) {
                            None => library($($name,)* comm),
                            Some(call) => call.carry_out(&move || library($($name,)* comm)),
                        }
                    }
                }
                // SAFETY: the arguments are the application's; as in `library`.
                unsafe {
                    let sight = carry_out::at_first_sight(&$arguments, comm);
                    if let FirstSight::Recent(call) = sight {
                        let Arguments { send, receive, .. } = $arguments;
                        return match call.repeat(send.address, receive.address) {
                            Ok(()) => 0,
                            Err(failure) => call.end_badly(failure, $arguments, comm),
                        };
                    }
                    let Some(behind) = LIBRARY_FUNCTION.known() else {
                        return chosen($($name,)* comm);
                    };
                    match sight {
                        FirstSight::LeftAlone => {
                            mem::transmute::<ReceiveAddress, Function>(behind)($($name,)* comm)
                        }
                        FirstSight::Counted(alone) => {
                            let thrown = exploring::put_back_if_thrown(alone);
                            let code =
                                mem::transmute::<ReceiveAddress, Function>(behind)($($name,)* comm);
                            mem::forget(thrown);
                            if code != 0 {
                                exploring::put_back_if_refused(alone, code);
                            }
                            code
                        }
                        FirstSight::Timed(alone) => {
                            let begun = Nanoseconds::now();
                            let code =
                                mem::transmute::<ReceiveAddress, Function>(behind)($($name,)* comm);
                            exploring::add_timed(alone, begun, code);
                            code
                        }
                        FirstSight::New(entry) => {
                            let code =
                                mem::transmute::<ReceiveAddress, Function>(behind)($($name,)* comm);
                            entry.count($arguments.collective, code);
                            code
                        }
                        FirstSight::Recent(_) | FirstSight::Open => chosen($($name,)* comm),
                    }
                }
            }
        };
    };
    (@c $($part:expr),*) => {
        match CStr::from_bytes_with_nul(concat!($($part,)* "\0").as_bytes()) {
            Ok(name) => name,
            Err(_) => panic!("an identifier holds no zero byte"),
        }
    };
}

/// Catches all collectives of the runner's table. `N` is the type of their counts.
macro_rules! catch_all {
    ($suffix:tt $($collective:ident $function:ident $mpi:ident $form:ident;)*) => {$(
        catch_all!(@$form $suffix $collective $mpi);
    )*};
    (@sides $suffix:tt $collective:ident $mpi:ident $($root:ident)?) => {
        catch! {
            $mpi $suffix
            (send: SendAddress, scount: N, stype: Handle, receive: ReceiveAddress, rcount: N, rtype: Handle $(, $root: c_int)?)
            Arguments::moving(Collective::$collective, side(send, scount, stype), side(receive, rcount, rtype), catch_all!(@root $($root)?))
        }
    };
    (@sides_root $suffix:tt $collective:ident $mpi:ident) => {
        catch_all!(@sides $suffix $collective $mpi root);
    };
    (@buffer_root $suffix:tt $collective:ident $mpi:ident) => {
        catch! {
            $mpi $suffix (buffer: ReceiveAddress, count: N, datatype: Handle, root: c_int)
            Arguments::moving(Collective::$collective, Side::NONE, side(buffer, count, datatype), root)
        }
    };
    (@combining $suffix:tt $collective:ident $mpi:ident $counts:ident $count:ty $(, $root:ident)?) => {
        catch! {
            $mpi $suffix
            (send: SendAddress, receive: ReceiveAddress, count: $count, datatype: Handle, op: Handle $(, $root: c_int)?)
            Arguments::combining(Collective::$collective, send, receive, $counts(count), datatype, op, catch_all!(@root $($root)?))
        }
    };
    (@reduction $suffix:tt $collective:ident $mpi:ident) => {
        catch_all!(@combining $suffix $collective $mpi uniform N);
    };
    (@reduction_root $suffix:tt $collective:ident $mpi:ident) => {
        catch_all!(@combining $suffix $collective $mpi uniform N, root);
    };
    (@reduction_counts $suffix:tt $collective:ident $mpi:ident) => {
        catch_all!(@combining $suffix $collective $mpi per_rank *const N);
    };
    (@nothing "" $collective:ident $mpi:ident) => {
        catch! { $mpi "" () Arguments::BARRIER }
    };
    (@root) => { 0 };
    (@root $root:ident) => { $root };
    // There is no barrier with large counts; the v-forms that move data are left to the library.
    (@$form:ident $suffix:tt $collective:ident $mpi:ident) => {};
}

/// The functions of old.
mod classic {
    use super::*;
    type N = c_int;
    with_collectives!(catch_all "");
}

/// Those with counts of type `MPI_Count`.
mod large {
    use super::*;
    type N = i64;
    with_collectives!(catch_all "_c");
}

/// Defines both functions for one beside which this library does something of its own.
macro_rules! border {
    ($($mpi:ident $pmpi:ident ($($name:ident: $type:ty),*)
        $before:expr, $after:expr, $at_end:expr;)*) => {$(
        border!(@function $mpi $pmpi ($($name: $type),*) $before, $after, $at_end);
        border!(@function $pmpi $pmpi ($($name: $type),*) $before, $after, $at_end);
    )*};
    (@function $mpi:ident $pmpi:ident ($($name:ident: $type:ty),*)
        $before:expr, $after:expr, $at_end:expr) => {
        /// The MPI library's function, with what this library does beside.
        ///
        /// # Safety
        /// That function's own.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $mpi($($name: $type),*) -> c_int {
            static LIBRARY_FUNCTION: LibraryFunction = LibraryFunction::new(catch!(@c stringify!($pmpi)));
            type Function = unsafe extern "C-unwind" fn($($type),*) -> c_int;
            let behind = LIBRARY_FUNCTION.address();
            if behind.is_null() {
                say(concat!("there is no MPI library with ", stringify!($pmpi)));
                std::process::abort();
            }
            let _end = EndOnPanic;
            // SAFETY: what is behind is the library's function of this name, whose signature this
            // is; what is beside wants to be called here.
            unsafe {
                $before;
                let _at_end = Finally(|| $at_end);
                let code = mem::transmute::<ReceiveAddress, Function>(behind)($($name),*);
                if code == 0 {
                    $after;
                }
                code
            }
        }
    };
}

/// Nothing is to be done beside.
fn nothing() {}

border! {
    MPI_Init PMPI_Init (argc: *mut c_int, argv: *mut *mut *mut c_char)
        nothing(), lifetime::begin(), nothing();
    MPI_Init_thread PMPI_Init_thread
        (argc: *mut c_int, argv: *mut *mut *mut c_char, required: c_int, provided: *mut c_int)
        nothing(), lifetime::begin(), nothing();
    MPI_Finalize PMPI_Finalize () lifetime::end(), nothing(), exploring::wait_until_kept();
    MPI_Intercomm_merge PMPI_Intercomm_merge (inter: Handle, high: c_int, merged: *mut Handle)
        communicators::merging(), nothing(), nothing();
    MPI_Comm_free PMPI_Comm_free (comm: *mut Handle)
        freed_communicators::begin(comm), nothing(), freed_communicators::end();
    MPI_Comm_disconnect PMPI_Comm_disconnect (comm: *mut Handle)
        freed_communicators::begin(comm), nothing(), freed_communicators::end();
}
