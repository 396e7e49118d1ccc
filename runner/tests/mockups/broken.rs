//! The library's functions as the mock-ups see them: whole, failing, or with a fault, so that a
//! mock-up that is composed of one has that fault; and what they have made and not yet freed.

use std::{
    ffi::{CStr, c_int, c_void},
    sync::atomic::{AtomicIsize, AtomicUsize, Ordering},
};

use colibri_runner::Handle;

use super::library::find;

/// What is done to calls of one function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum CallDamage {
    /// A bit of what the rank receives is wrong.
    Bit = 1,
    /// The operands are taken in the wrong order (of `MPI_Reduce_local`; on pairs without gaps).
    Swapped,
    /// The call fails.
    Fails,
}

/// What failing functions return.
pub const CODE: c_int = 77;

/// The function whose calls have a fault, by its place in `FUNCTIONS`, from 1 on.
static FUNCTION: AtomicUsize = AtomicUsize::new(0);
static FAULT: AtomicUsize = AtomicUsize::new(0);

/// Types that were made less those that were freed.
pub static TYPES: AtomicIsize = AtomicIsize::new(0);

/// From now on.
pub fn set(fault: Option<(&str, CallDamage)>) {
    let position = |name| 1 + FUNCTIONS.iter().position(|function| *function == name).unwrap();
    FUNCTION.store(fault.map_or(0, |(name, _)| position(name)), Ordering::Relaxed);
    FAULT.store(fault.map_or(0, |(_, fault)| fault as usize), Ordering::Relaxed);
}

fn has(fault: CallDamage, name: &CStr) -> bool {
    let function = FUNCTION.load(Ordering::Relaxed);
    function > 0
        && FAULT.load(Ordering::Relaxed) == fault as usize
        && FUNCTIONS[function - 1].as_bytes() == name.to_bytes()
}

fn spoil(into: *mut c_void) {
    // Nothing is received, or in place.
    if into.addr() > 1 && into.addr() != usize::MAX {
        // SAFETY: the first byte of the function's result, or of a gap before it.
        unsafe { *into.cast::<u8>() ^= 1 };
    }
}

macro_rules! wrapped {
    ($($function:ident $symbol:literal ($($name:ident: $type:ty),*) $into:ident;)*) => {
        /// What can have a fault.
        pub const FUNCTIONS: &[&str] = &[$($symbol),*];

        $(unsafe extern "C" fn $function($($name: $type),*) -> c_int {
            let name = CStr::from_bytes_with_nul(concat!($symbol, "\0").as_bytes()).unwrap();
            if has(CallDamage::Fails, name) {
                return CODE;
            }
            // SAFETY: MPI's function of this name has this type; the arguments are the caller's.
            unsafe {
                let whole = std::mem::transmute::<
                    *const c_void,
                    unsafe extern "C" fn($($type),*) -> c_int,
                >(find(name));
                let code = whole($($name),*);
                if has(CallDamage::Bit, name) {
                    spoil($into);
                }
                code
            }
        })*

        /// The functions for the runner's table.
        pub fn wrapped(name: &CStr) -> *const c_void {
            if name == c"MPI_Reduce_local" {
                return either_way as *const c_void;
            }
            match name.to_str().unwrap() {
                $($symbol => $function as *const c_void,)*
                "MPI_Type_create_hindexed" => type_hindexed as *const c_void,
                "MPI_Type_create_resized" => type_resized as *const c_void,
                "MPI_Type_free" => type_free as *const c_void,
                _ => find(name),
            }
        }
    };
}

type Data = *mut c_void;
type Constant = *const c_void;
type Numbers = *const c_int;

wrapped! {
    allgather "MPI_Allgather" (a: Constant, b: c_int, c: Handle, into: Data, e: c_int, f: Handle, g: Handle) into;
    allgatherv "MPI_Allgatherv" (a: Constant, b: c_int, c: Handle, into: Data, e: Numbers, f: Numbers, g: Handle, h: Handle) into;
    allreduce "MPI_Allreduce" (a: Constant, into: Data, c: c_int, d: Handle, e: Handle, f: Handle) into;
    alltoall "MPI_Alltoall" (a: Constant, b: c_int, c: Handle, into: Data, e: c_int, f: Handle, g: Handle) into;
    alltoallv "MPI_Alltoallv" (a: Constant, b: Numbers, c: Numbers, d: Handle, into: Data, f: Numbers, g: Numbers, h: Handle, i: Handle) into;
    bcast "MPI_Bcast" (into: Data, b: c_int, c: Handle, d: c_int, e: Handle) into;
    exscan "MPI_Exscan" (a: Constant, into: Data, c: c_int, d: Handle, e: Handle, f: Handle) into;
    gather "MPI_Gather" (a: Constant, b: c_int, c: Handle, into: Data, e: c_int, f: Handle, g: c_int, h: Handle) into;
    gatherv "MPI_Gatherv" (a: Constant, b: c_int, c: Handle, into: Data, e: Numbers, f: Numbers, g: Handle, h: c_int, i: Handle) into;
    reduce "MPI_Reduce" (a: Constant, into: Data, c: c_int, d: Handle, e: Handle, f: c_int, g: Handle) into;
    reduce_local "MPI_Reduce_local" (a: Constant, into: Data, c: c_int, d: Handle, e: Handle) into;
    reduce_scatter "MPI_Reduce_scatter" (a: Constant, into: Data, c: Numbers, d: Handle, e: Handle, f: Handle) into;
    reduce_scatter_block "MPI_Reduce_scatter_block" (a: Constant, into: Data, c: c_int, d: Handle, e: Handle, f: Handle) into;
    scatter "MPI_Scatter" (a: Constant, b: c_int, c: Handle, into: Data, e: c_int, f: Handle, g: c_int, h: Handle) into;
    scatterv "MPI_Scatterv" (a: Constant, b: Numbers, c: Numbers, d: Handle, into: Data, f: c_int, g: Handle, h: c_int, i: Handle) into;
}

/// `MPI_Reduce_local`, with its operands the wrong way round if that is the fault.
unsafe extern "C" fn either_way(
    left: Constant,
    both: Data,
    count: c_int,
    datatype: Handle,
    operation: Handle,
) -> c_int {
    if !has(CallDamage::Swapped, c"MPI_Reduce_local") {
        // SAFETY: the caller's arguments.
        return unsafe { reduce_local(left, both, count, datatype, operation) };
    }
    let bytes = 8 * count as usize;
    // SAFETY: so many pairs of 8 bytes each.
    unsafe {
        let mut other = std::slice::from_raw_parts(left.cast::<u8>(), bytes).to_vec();
        let into = other.as_mut_ptr().cast();
        let code = reduce_local(both, into, count, datatype, operation);
        both.cast::<u8>().copy_from_nonoverlapping(other.as_ptr(), bytes);
        code
    }
}

macro_rules! counted {
    ($function:ident $symbol:literal ($($name:ident: $type:ty),*) $change:literal) => {
        unsafe extern "C" fn $function($($name: $type),*) -> c_int {
            TYPES.fetch_add($change, Ordering::Relaxed);
            // SAFETY: as above.
            unsafe {
                std::mem::transmute::<
                    *const c_void,
                    unsafe extern "C" fn($($type),*) -> c_int,
                >(find($symbol))($($name),*)
            }
        }
    };
}

counted! { type_hindexed c"MPI_Type_create_hindexed" (a: c_int, b: Numbers, c: *const isize, d: Handle, e: *mut Handle) 1 }
counted! { type_resized c"MPI_Type_create_resized" (a: Handle, b: isize, c: isize, d: *mut Handle) 1 }
counted! { type_free c"MPI_Type_free" (a: *mut Handle) -1 }
