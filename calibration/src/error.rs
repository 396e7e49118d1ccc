use records::FileError;

/// Why a program cannot go on; one line each, for people.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The MPI library refused.
    #[error("{call} failed: {reason}")]
    Mpi {
        /// The function that failed.
        call: &'static str,
        /// What the library says.
        reason: String,
    },
    /// A plan or record cannot be read or written, or does not fit.
    #[error(transparent)]
    File(#[from] FileError),
    /// The job or a flag is not what is needed.
    #[error("{0}")]
    Usage(String),
    /// The MPI library cannot do what the plan asks for.
    #[error("{0}")]
    Unsupported(String),
    /// A collective did not compute what it should.
    #[error("{0}")]
    WrongResult(String),
    /// One of our own algorithms could not be carried out.
    #[error("a collective of our own: {0}")]
    Own(#[from] runner::Error),
    /// Somebody else's collective cannot be loaded, or failed.
    #[error("{0}")]
    Plugin(String),
    /// Another rank sent something that is not understood.
    #[error("a message between ranks cannot be read: {0}")]
    Message(#[from] serde_json::Error),
}

impl From<timing::Error> for Error {
    fn from(error: timing::Error) -> Self {
        match error {
            timing::Error::Run(error) => Error::Own(error),
            timing::Error::Refused(problem) => Error::Unsupported(problem),
            timing::Error::WrongResult(problem) => Error::WrongResult(problem),
            timing::Error::Message(error) => Error::Message(error),
        }
    }
}

/// A result with this package's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;
