//! The two ways in which an export ends badly.

/// Why there is no file.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It was asked for wrongly; the message says what would be right.
    #[error("{0}")]
    Usage(String),
    /// It can't be made.
    #[error("{0}")]
    Failed(String),
}

/// A result with this package's error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        Error::Failed(error.to_string())
    }
}

/// Ends the function: it was called for what is not to be had.
macro_rules! usage {
    ($($text:tt)*) => { return Err($crate::error::Error::Usage(format!($($text)*))) };
}
pub(crate) use usage;

/// Ends the function: it can't go on.
macro_rules! fail {
    ($($text:tt)*) => { return Err($crate::error::Error::Failed(format!($($text)*))) };
}
pub(crate) use fail;
