//! The kinds of methods, as flags name them.

use std::str::FromStr;

use records::unknown;

/// A kind of methods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MethodKind {
    /// The MPI library's own algorithms.
    Native,
    /// Colibri's algorithms on messages from rank to rank.
    Own,
    /// Other collectives that do the same.
    Mockup,
    /// Collectives from outside.
    Plugin,
}

impl MethodKind {
    /// Those that need nothing from outside.
    pub const ALL: [MethodKind; 3] = [MethodKind::Native, MethodKind::Own, MethodKind::Mockup];
}

impl FromStr for MethodKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "native" => Ok(MethodKind::Native),
            "own" => Ok(MethodKind::Own),
            // As `guidelines` called them first.
            "mockup" | "mockups" => Ok(MethodKind::Mockup),
            "plugin" => Ok(MethodKind::Plugin),
            _ => {
                Err(unknown("kind of methods", text, &["native", "own", "mockup", "plugin", "all"]))
            }
        }
    }
}
