//! `colibri.toml`: settings of a site, read from the current directory.

use std::{io, ops::RangeInclusive, path::Path};

use records::{FileError, reading};
use serde::Deserialize;

/// The file's name.
pub const FILE: &str = "colibri.toml";

/// How many ranks a job may have.
pub const RANKS: RangeInclusive<i64> = 1..=1 << 20;

/// Settings that hold where no flag says otherwise.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The command that starts an MPI program; `{np}` stands for the number of ranks.
    pub launcher: Option<String>,
    /// Ranks to start.
    pub ranks: Option<u32>,
}

impl Config {
    /// Reads the file; nothing is set where there is none.
    ///
    /// # Errors
    /// It cannot be read, is no TOML, or has an unknown or wrong key.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        let text = match reading::text(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Config::default()),
            Err(error) => return Err(FileError::io(path, "read", &error)),
        };
        let config: Config =
            toml::from_str(&text).map_err(|error| toml_error(&text, path, &error))?;
        match config.ranks {
            Some(ranks) if !RANKS.contains(&ranks.into()) => {
                let problem = format!("is {ranks}; expected {} to {}", RANKS.start(), RANKS.end());
                Err(FileError::new(path, problem).in_field("ranks"))
            }
            _ => Ok(config),
        }
    }
}

/// What is wrong with a TOML file, with its line.
pub fn toml_error(text: &str, path: &Path, error: &toml::de::Error) -> FileError {
    let start = error.span().map_or(0, |span| span.start);
    FileError::new(path, error.message()).at_line(line_of(text, start))
}

/// The line, from 1 on, in which a byte of a text stands.
pub fn line_of(text: &str, byte: usize) -> u64 {
    let before = &text.as_bytes()[..byte.min(text.len())];
    before.iter().filter(|one| **one == b'\n').count() as u64 + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn settings_are_read_and_errors_name_the_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE);
        assert_eq!(Config::read(&path).unwrap(), Config::default());
        fs::write(&path, "launcher = \"srun -n {np}\"\nranks = 4\n").unwrap();
        assert_eq!(Config::read(&path).unwrap().ranks, Some(4));
        for ranks in ["0", "4294967295"] {
            fs::write(&path, format!("ranks = {ranks}\n")).unwrap();
            let error = Config::read(&path).unwrap_err().to_string();
            assert!(
                error.contains("field ranks: is ") && error.contains("1 to 1048576"),
                "{error}"
            );
        }
        fs::write(&path, "ranks = 4\nlauncer = \"srun\"\n").unwrap();
        let error = Config::read(&path).unwrap_err().to_string();
        assert!(error.contains("line 2") && error.contains("launcher"), "{error}");
    }
}
