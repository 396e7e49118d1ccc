//! What an MPI program tells the command that launched it: one JSON object per line on stdout.

use serde::{Deserialize, Serialize};

/// How far a program is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// What is being done, for people.
    pub step: String,
    pub done: u64,
    /// Parts in all.
    pub of: u64,
}

impl Progress {
    /// The line to print.
    pub fn line(&self) -> String {
        // A struct of a string and two integers always has a JSON form.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads a line; nothing where it is some other output.
    pub fn parse(line: &str) -> Option<Self> {
        serde_json::from_str(line).ok()
    }
}
