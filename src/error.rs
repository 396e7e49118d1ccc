//! The two ways to end badly: used wrongly (exit 2) or failed (exit 1).

/// The command was used wrongly; the message says what would be right.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Usage(pub String);

/// Ends the function with a usage error.
macro_rules! usage {
    ($($text:tt)*) => {
        return Err($crate::error::Usage(format!($($text)*)).into())
    };
}
pub(crate) use usage;
