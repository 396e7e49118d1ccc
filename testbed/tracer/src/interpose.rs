//! The functions that stand before Open MPI's own.
//!
//! Which there are, and how they are called, is listed with everything else of Open MPI, in
//! `libraries`.

use std::{
    ffi::{CStr, c_int, c_void},
    io::Write,
    panic::catch_unwind,
    process,
    sync::atomic::{AtomicPtr, Ordering},
};

use crate::log;

type Word = *mut c_void;

/// Defines one function for each line of Open MPI's list. A collective gives Open MPI's arguments that are only
/// passed on; a line gives the exported name and the arguments after them, which are noted. The variants of
/// `Number` are the places in [`ALGORITHMS`](crate::algorithms::ALGORITHMS).
macro_rules! interpose {
    ($($collective:ident $passed:tt { $($name:ident $noted:tt;)* })*) => {
        #[allow(non_camel_case_types, reason = "the variants are the functions' names")]
        #[derive(Clone, Copy)]
        enum Number { $($($name),*),* }

        $($(interpose!(@define $name $passed $noted);)*)*
    };
    (@define $name:ident ($($passed:ident: $type:ty),*) ($($noted:ident),*)) => {
        /// Notes the call and goes on to Open MPI's function of this name.
        ///
        /// # Safety
        /// That function's own.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($passed: $type,)* $($noted: u32),*) -> c_int {
            type Function = unsafe extern "C" fn($($type,)* $(interpose!(@number $noted)),*) -> c_int;
            static NEXT: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
            const NAME: &CStr = interpose!(@cstr $name);

            let next = resolve(&NEXT, NAME);
            // SAFETY: `next` is Open MPI's function of this name, whose signature this is.
            let next = unsafe { std::mem::transmute::<*mut c_void, Function>(next) };
            note(|| log::enter(Number::$name as u16, &[$($noted),*]));
            // SAFETY: the caller's arguments, unchanged.
            let result = unsafe { next($($passed,)* $($noted),*) };
            note(log::leave);
            result
        }
    };
    (@number $noted:ident) => { u32 };
    (@cstr $name:ident) => {
        match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
            Ok(name) => name,
            Err(_) => panic!("an identifier holds no zero byte"),
        }
    };
}

libraries::openmpi_functions!(interpose);

/// A fault of the tracer may cost a line of its text, never the program that it watches.
fn note(record: impl FnOnce() + std::panic::UnwindSafe) {
    let _ = catch_unwind(record);
}

fn resolve(cache: &AtomicPtr<c_void>, name: &CStr) -> *mut c_void {
    let known = cache.load(Ordering::Relaxed);
    if !known.is_null() {
        return known;
    }
    let found = look_up(name);
    if found.is_null() {
        let text = name.to_string_lossy();
        // No panic and no unwinding: the caller is C.
        let _ = writeln!(
            std::io::stderr(),
            "colibri tracer: this MPI library has no {text} to call; run without the tracer"
        );
        process::abort();
    }
    cache.store(found, Ordering::Relaxed);
    found
}

fn look_up(name: &CStr) -> *mut c_void {
    // SAFETY: a valid C string; RTLD_NEXT searches the libraries loaded after this one.
    let next = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    if !next.is_null() {
        return next;
    }
    // A program that loads MPI itself (mpi4py) keeps it out of the global scope; so does Open MPI with
    // components that are files of their own.
    let places = [c"libmpi.so.40", c"mca_coll_han.so", c"mca_coll_sm.so"].into_iter();
    let mut found = places.map(|library| look_up_in(library, name));
    found.find(|found| !found.is_null()).unwrap_or(std::ptr::null_mut())
}

fn look_up_in(library: &CStr, name: &CStr) -> *mut c_void {
    // SAFETY: a valid C string; RTLD_NOLOAD only looks for what is loaded already.
    let library = unsafe { libc::dlopen(library.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
    if library.is_null() {
        return library;
    }
    // SAFETY: an open handle and a valid C string.
    unsafe { libc::dlsym(library, name.as_ptr()) }
}
