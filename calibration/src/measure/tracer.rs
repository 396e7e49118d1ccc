//! The tracer of what ran, where it is preloaded.

use std::ffi::{CStr, c_char};

type Reset = unsafe extern "C" fn();
type Read = unsafe extern "C" fn(*mut c_char, usize) -> usize;

/// The preloaded tracer's two functions; without it nothing is known of what ran.
#[derive(Debug, Clone, Copy)]
pub struct Tracer(Option<(Reset, Read)>);

impl Tracer {
    /// Looks for the tracer among the libraries of this process.
    pub fn find() -> Self {
        let reset = symbol(c"colibri_tracer_reset");
        let read = symbol(c"colibri_tracer_read");
        let (false, false) = (reset.is_null(), read.is_null()) else { return Tracer(None) };
        // SAFETY: a library that defines these two names gives them these types.
        Tracer(Some(unsafe {
            (
                std::mem::transmute::<*mut libc::c_void, Reset>(reset),
                std::mem::transmute::<*mut libc::c_void, Read>(read),
            )
        }))
    }

    /// Forgets what ran.
    pub fn reset(&self) {
        if let Some((reset, _)) = self.0 {
            // SAFETY: takes nothing.
            unsafe { reset() };
        }
    }

    /// What ran since, such as `bcast_intra_pipeline,segment=8KiB`; empty where not known.
    pub fn read(&self) -> String {
        let Some((_, read)) = self.0 else { return String::new() };
        let mut text = [0_u8; 1024];
        // SAFETY: the tracer writes at most as many bytes as it is told there are.
        let length = unsafe { read(text.as_mut_ptr().cast(), text.len()) };
        let text = &text[..length.min(text.len())];
        let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(text).trim().replace('\n', ";")
    }
}

fn symbol(name: &CStr) -> *mut libc::c_void {
    // SAFETY: the name is a C string; the whole process is searched.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
}
