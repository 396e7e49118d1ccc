/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The MPI library refused, or a method of ours did.
    #[error(transparent)]
    Run(#[from] runner::Error),
    /// What is asked for can't be measured.
    #[error("{0}")]
    Refused(String),
    /// A collective did not compute what it should.
    #[error("{0}")]
    WrongResult(String),
    /// Another rank sent something that is not understood.
    #[error("a message between ranks cannot be read: {0}")]
    Message(#[from] serde_json::Error),
}

/// A result with this package's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;
