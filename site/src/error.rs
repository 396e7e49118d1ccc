//! The two ways to end badly: used wrongly (exit 2) or failed (exit 1).

/// The command was used wrongly; the message says what would be right.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct WrongUse(pub String);

/// Ends the function with a usage error.
#[macro_export]
macro_rules! usage {
    ($($text:tt)*) => {
        return Err($crate::error::WrongUse(format!($($text)*)).into())
    };
}
