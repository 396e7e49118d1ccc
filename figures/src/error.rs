use records::{Collective, FileError};

/// A figure that could not be drawn or written.
#[derive(Debug, thiserror::Error)]
pub enum FigureError {
    /// The input holds nothing that this figure could show.
    #[error("nothing to draw: {0}")]
    NothingToDraw(String),
    /// More than a picture can hold and a reader can read.
    #[error("too much to draw: {count} {what}, at most {limit} fit into one figure")]
    TooMuch {
        /// What there is too much of.
        what: &'static str,
        /// How many there are.
        count: usize,
        /// How many fit.
        limit: usize,
    },
    /// What is asked for does not exist (a root beyond the last rank, say).
    #[error("cannot be drawn: {0}")]
    Impossible(String),
    /// A file could not be written (a full disk, say).
    #[error(transparent)]
    File(#[from] FileError),
    /// The drawing library failed.
    #[error("the figure could not be drawn: {0}")]
    Drawing(String),
}

impl FigureError {
    pub(crate) fn no_cells(file: &str, collective: Collective, present: &[Collective]) -> Self {
        let present = match present {
            [] => "it is empty".to_owned(),
            names => {
                let names: Vec<&str> = names.iter().map(|collective| collective.name()).collect();
                format!("it has {}", names.join(", "))
            }
        };
        Self::NothingToDraw(format!("the {file} file has no cells for {collective} ({present})"))
    }

    /// The library's errors have the backend's in them; as text they are the same for all backends.
    pub(crate) fn drawing(error: impl std::fmt::Display) -> Self {
        Self::Drawing(error.to_string())
    }
}
