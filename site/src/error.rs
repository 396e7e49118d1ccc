//! The ways to end badly: used wrongly (exit 2), failed (exit 1), or with a bad finding (a code of the command's).

/// The command was used wrongly; the message says what would be right.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct WrongUse(pub String);

/// The command has printed what it found, which its exit code tells, too.
#[derive(Debug, thiserror::Error)]
#[error("exit code {0}")]
pub struct ExitWith(pub u8);

/// Ends the function with a usage error.
#[macro_export]
macro_rules! usage {
    ($($text:tt)*) => {
        return Err($crate::error::WrongUse(format!($($text)*)).into())
    };
}
