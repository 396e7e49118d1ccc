//! What of foreign files is imported, and what came of it.

use records::Layout;

/// What was imported.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Imported {
    /// Jobs that timed collectives or messages.
    pub jobs: usize,
    /// Times of collectives.
    pub calls: u64,
    /// Times of messages between pairs.
    pub exchanges: u64,
    /// What the user should know.
    pub notes: Vec<String>,
}

/// Which of the jobs and methods of the files are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedRows {
    pub methods: WantedMethods,
    /// The layouts; all where none are given.
    pub layouts: Option<Vec<Layout>>,
}

/// Which of what the files hold is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WantedMethods {
    /// Everything.
    All,
    /// The library's own algorithms and its default.
    OfLibrary,
}
