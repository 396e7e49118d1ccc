//! Which rank of a communicator is the root of a collective.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// The entry of a record's header that tells the root; a record without it has root 0.
pub const ROOT: &str = "root";

/// The root of a job's calls, in communicators of any size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Root {
    /// This rank; in a communicator of fewer ranks what is left when its number is divided by theirs.
    Rank(u32),
    /// The last rank.
    Last,
}

impl Root {
    /// The root in a communicator of so many ranks, at least 1.
    pub const fn among(self, procs: u32) -> u32 {
        match self {
            Root::Rank(rank) => rank % procs,
            Root::Last => procs - 1,
        }
    }
}

/// Rank 0.
impl Default for Root {
    fn default() -> Self {
        Root::Rank(0)
    }
}

impl fmt::Display for Root {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Root::Rank(rank) => write!(f, "{rank}"),
            Root::Last => f.write_str("last"),
        }
    }
}

impl From<Root> for String {
    fn from(root: Root) -> Self {
        root.to_string()
    }
}

impl TryFrom<String> for Root {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl FromStr for Root {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "last" => Ok(Root::Last),
            _ => text
                .parse()
                .map(Root::Rank)
                .map_err(|_| format!("'{text}': expected the number of a rank, or last")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_is_a_rank_of_every_communicator() {
        for (text, of_eight, of_three) in [("0", 0, 0), ("2", 2, 2), ("7", 7, 1), ("last", 7, 2)] {
            let root: Root = text.parse().unwrap();
            assert_eq!((root.among(8), root.among(3)), (of_eight, of_three), "{text}");
            assert_eq!(root.to_string(), text);
        }
        assert!("-1".parse::<Root>().unwrap_err().contains("number of a rank, or last"));
    }
}
