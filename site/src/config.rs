//! `colibri.toml`: settings of a site, read from the current directory.

use std::{io, path::Path};

use records::{
    FileError, document,
    number::{check_procs, expected_procs},
    reading,
};
use serde::{Deserialize, Deserializer, de::Error as _};

/// The file's name.
pub const FILE: &str = "colibri.toml";

/// Settings that hold where no flag says otherwise.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The command that starts an MPI program; `{np}` stands for the number of ranks.
    pub launcher: Option<String>,
    /// Ranks to start.
    #[serde(default, deserialize_with = "number_of_ranks")]
    pub ranks: Option<u32>,
}

fn number_of_ranks<'de, D: Deserializer<'de>>(value: D) -> Result<Option<u32>, D::Error> {
    let ranks = i64::deserialize(value)?;
    let known = u32::try_from(ranks).ok().filter(|ranks| check_procs(*ranks).is_ok());
    let problem = || D::Error::custom(format!("is {ranks}; expected {}", expected_procs()));
    known.map(Some).ok_or_else(problem)
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
        toml::from_str(&text).map_err(|error| toml_error(&text, path, &error))
    }
}

/// What is wrong with a TOML file, with its line, and its field where the message does not name it.
pub fn toml_error(text: &str, path: &Path, error: &toml::de::Error) -> FileError {
    let message = document::in_users_terms(error.message());
    let names_field = message.contains("field `");
    let start = error.span().map_or(0, |span| span.start);
    let line = line_of(text, start);
    let fault = FileError::new(path, message).at_line(line);
    let key = text.lines().nth(line as usize - 1).and_then(|line| line.split_once('='));
    let is_name = |key: &str| key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    match key.map(|(key, _)| key.trim()) {
        Some(key) if !names_field && is_name(key) => fault.in_field(key),
        _ => fault,
    }
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
        for ranks in ["0", "-1", "4294967295", "9999999999"] {
            fs::write(&path, format!("# of a node\nranks = {ranks}\n")).unwrap();
            let error = Config::read(&path).unwrap_err().to_string();
            let wanted = format!("line 2, field ranks: is {ranks}; expected 1 to 16777216 ranks");
            assert!(error.ends_with(&wanted), "{error}");
        }
        for (line, wanted) in [
            (
                "ranks = \"4\"",
                "line 1, field ranks: invalid type: string \"4\", expected a whole number",
            ),
            (
                "launcher = 5",
                "line 1, field launcher: invalid type: integer `5`, expected a string",
            ),
            ("ranks = 4\nranks = 5", "line 2, field ranks: duplicate key"),
        ] {
            fs::write(&path, line).unwrap();
            let error = Config::read(&path).unwrap_err().to_string();
            assert!(error.ends_with(wanted), "{error}");
        }
        fs::write(&path, "ranks = 4\nlauncer = \"srun\"\n").unwrap();
        let error = Config::read(&path).unwrap_err().to_string();
        assert!(error.contains("line 2") && error.contains("launcher"), "{error}");
    }
}
