//! What the headers of records state.

use std::{collections::BTreeMap, path::Path};

use anyhow::Result;
use records::{FileError, platform::Platform};

/// The platform that a record's header states.
pub fn platform(header: &BTreeMap<String, String>, path: &Path) -> Result<Platform> {
    let fault = |problem: String| FileError::new(path, problem).in_field("#@platform");
    let text = header.get("platform").ok_or_else(|| fault("is missing".into()))?;
    Ok(serde_json::from_str(text).map_err(|error| fault(error.to_string()))?)
}

/// A number in a record's header.
pub fn field<T: std::str::FromStr>(
    header: &BTreeMap<String, String>,
    key: &str,
    path: &Path,
) -> Result<T> {
    match list(header, key, path)?.into_iter().next() {
        Some(value) => Ok(value),
        None => Err(FileError::new(path, "is empty").in_field(format!("#@{key}")).into()),
    }
}

/// Numbers in a record's header, with commas between them.
pub fn list<T: std::str::FromStr>(
    header: &BTreeMap<String, String>,
    key: &str,
    path: &Path,
) -> Result<Vec<T>> {
    let fault = |problem: String| FileError::new(path, problem).in_field(format!("#@{key}"));
    let text = header.get(key).ok_or_else(|| fault("is missing".into()))?;
    let numbers: Result<Vec<T>, FileError> = text
        .split(',')
        .map(|part| part.parse().map_err(|_| fault(format!("is '{text}'; expected numbers"))))
        .collect();
    Ok(numbers?)
}
