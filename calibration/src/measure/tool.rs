//! The MPI tool interface: settings of the library, changed while it runs.

use std::{
    ffi::{CString, c_int},
    ptr,
};

use mpi::ffi;

use crate::{Error, Result, exchange::check};

/// The tool interface, in use from here to the end of the process.
#[derive(Debug)]
pub struct Tool(());

/// A setting of the library that is a whole number (MPI's "control variable").
#[derive(Debug)]
pub struct ControlVariable {
    name: String,
    handle: ffi::MPI_T_cvar_handle,
}

impl Tool {
    /// Begins to use the interface.
    ///
    /// # Errors
    /// The library refuses.
    pub fn start() -> Result<Self> {
        let mut provided = 0;
        // SAFETY: may be called at any time; the output is a local.
        let code = unsafe { ffi::MPI_T_init_thread(ffi::RSMPI_THREAD_SINGLE, &mut provided) };
        check("MPI_T_init_thread", code)?;
        Ok(Tool(()))
    }

    /// The setting of a name; nothing where the library has none.
    ///
    /// # Errors
    /// It is there, but is no single number or cannot be held.
    pub fn setting(&self, name: &str) -> Result<Option<ControlVariable>> {
        let c_name = CString::new(name).map_err(|_| unusable(name, "has a zero in its name"))?;
        let (mut index, mut count) = (0, 0);
        let mut handle = ptr::null_mut();
        // SAFETY: the name is a C string; outputs are locals; the variable is bound to no object,
        // for which MPI takes null.
        unsafe {
            if ffi::MPI_T_cvar_get_index(c_name.as_ptr(), &mut index) != 0 {
                return Ok(None);
            }
            let code =
                ffi::MPI_T_cvar_handle_alloc(index, ptr::null_mut(), &mut handle, &mut count);
            check("MPI_T_cvar_handle_alloc", code)?;
        }
        match count {
            1 => Ok(Some(ControlVariable { name: name.to_owned(), handle })),
            _ => Err(unusable(name, "is not a single number")),
        }
    }
}

fn unusable(name: &str, why: &str) -> Error {
    Error::Unsupported(format!("the MPI library's setting {name} {why}"))
}

impl ControlVariable {
    /// Its value.
    ///
    /// # Errors
    /// The library refuses.
    pub fn read(&self) -> Result<c_int> {
        // Wider than any number that a setting may be.
        let mut value = [0 as c_int; 4];
        // SAFETY: the handle is valid and the variable is a single number, which fits.
        let code = unsafe { ffi::MPI_T_cvar_read(self.handle, value.as_mut_ptr().cast()) };
        check("MPI_T_cvar_read", code)?;
        Ok(value[0])
    }

    /// Changes it, and sees that it changed.
    ///
    /// # Errors
    /// The library refuses, or has not taken the value.
    pub fn write(&self, value: c_int) -> Result<()> {
        let wide = [value, 0, 0, 0];
        // SAFETY: as for reading.
        let code = unsafe { ffi::MPI_T_cvar_write(self.handle, wide.as_ptr().cast()) };
        if code != 0 {
            let why = format!("refuses the value {value} (code {code})");
            return Err(unusable(&self.name, &why));
        }
        match self.read()? {
            now if now == value => Ok(()),
            now => Err(unusable(&self.name, &format!("was set to {value} and is {now}"))),
        }
    }
}
