//! What a call comes to for C: a code, and text that says why.

use std::{
    cell::RefCell,
    ffi::{CString, c_char, c_int},
    panic::{AssertUnwindSafe, catch_unwind},
};

use timing::Error;

/// Why a call came to nothing.
pub enum BenchFailure {
    /// An argument is wrong.
    Refused(String),
    /// There is no MPI library to measure on.
    NoLibrary(String),
    /// As timing says.
    Timing(Error),
}

impl From<Error> for BenchFailure {
    fn from(error: Error) -> Self {
        BenchFailure::Timing(error)
    }
}

impl BenchFailure {
    fn code(&self) -> c_int {
        match self {
            BenchFailure::Refused(_) | BenchFailure::Timing(Error::Refused(_)) => 1,
            BenchFailure::Timing(Error::Run(
                runner::Error::Refused(_) | runner::Error::Invalid(_),
            )) => 1,
            BenchFailure::NoLibrary(_)
            | BenchFailure::Timing(Error::Run(_) | Error::Message(_)) => 2,
            BenchFailure::Timing(Error::WrongResult(_)) => 3,
        }
    }

    fn text(&self) -> String {
        match self {
            BenchFailure::Refused(problem) | BenchFailure::NoLibrary(problem) => problem.clone(),
            BenchFailure::Timing(error) => error.to_string(),
        }
    }
}

const DEFECT: c_int = 4;

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

fn keep(text: &str) {
    // A zero byte would end it.
    let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
    LAST.with(|last| last.replace(text));
}

/// The text of the thread's last failure; stands until the next.
pub fn last() -> *const c_char {
    LAST.with(|last| last.borrow().as_ptr())
}

/// What `act` comes to for C; no panic passes.
pub fn code_of(act: impl FnOnce() -> Result<(), BenchFailure>) -> c_int {
    match catch_unwind(AssertUnwindSafe(act)) {
        Ok(Ok(())) => 0,
        Ok(Err(failure)) => {
            keep(&failure.text());
            failure.code()
        }
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or_default();
            keep(&format!("a defect of libcolibri_bench: {text}"));
            DEFECT
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    fn text() -> String {
        // SAFETY: it is a C string that stands until the next failure.
        unsafe { CStr::from_ptr(last()) }.to_string_lossy().into_owned()
    }

    #[test]
    fn failures_have_codes_and_words_and_panics_end_here() {
        assert_eq!(code_of(|| Ok(())), 0);
        assert_eq!(code_of(|| Err(BenchFailure::Refused("a\0b".into()))), 1);
        assert_eq!(text(), "a b");
        let failed = runner::Error::Mpi { call: "MPI_Send", code: 7 };
        assert_eq!(code_of(|| Err(Error::Run(failed).into())), 2);
        assert_eq!(text(), "MPI_Send failed with error code 7");
        assert_eq!(code_of(|| Err(Error::WrongResult("wrong".into()).into())), 3);
        assert_eq!(code_of(|| panic!("of {}", "ours")), 4);
        assert_eq!(text(), "a defect of libcolibri_bench: of ours");
    }
}
