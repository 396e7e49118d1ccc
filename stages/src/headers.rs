//! What the headers of records state.

use std::{collections::BTreeMap, path::Path, time::Duration};

use anyhow::Result;
use records::{FileError, number, platform::Platform, quoted};

/// The platform that a record's header states.
pub fn platform(header: &BTreeMap<String, String>, path: &Path) -> Result<Platform> {
    let fault = |problem: String| FileError::new(path, problem).in_field("#@platform");
    let text = header.get("platform").ok_or_else(|| fault("is missing".into()))?;
    Ok(serde_json::from_str(text).map_err(|error| fault(error.to_string()))?)
}

/// How long a record's jobs have measured so far.
pub fn spent(header: &BTreeMap<String, String>, path: &Path) -> Result<Duration> {
    let seconds: f64 = field(header, "spent_seconds", path)?;
    let duration =
        || Duration::try_from_secs_f64(seconds).map_err(|error| format!("is {seconds}: {error}"));
    let checked = number::check(seconds).and_then(|()| duration());
    Ok(checked.map_err(|problem| FileError::new(path, problem).in_field("#@spent_seconds"))?)
}

/// A number in a record's header.
pub fn field<T: std::str::FromStr>(
    header: &BTreeMap<String, String>,
    key: &str,
    path: &Path,
) -> Result<T> {
    let (text, fault) = text(header, key, path)?;
    Ok(text.parse().map_err(|_| fault(format!("is {}; expected a number", quoted(text))))?)
}

/// Numbers in a record's header, with commas between them.
pub fn list<T: std::str::FromStr>(
    header: &BTreeMap<String, String>,
    key: &str,
    path: &Path,
) -> Result<Vec<T>> {
    let (text, fault) = text(header, key, path)?;
    let number = |part: &str| {
        part.parse().map_err(|_| fault(format!("is {}; expected numbers", quoted(text))))
    };
    Ok(text.split(',').map(number).collect::<Result<Vec<T>, FileError>>()?)
}

/// A field's text, and what makes an error of a problem with it.
fn text<'h>(
    header: &'h BTreeMap<String, String>,
    key: &str,
    path: &Path,
) -> Result<(&'h str, impl Fn(String) -> FileError)> {
    let fault = move |problem: String| FileError::new(path, problem).in_field(format!("#@{key}"));
    let text = header.get(key).ok_or_else(|| fault("is missing".into()))?;
    Ok((text, fault))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_one_number() {
        let header: BTreeMap<String, String> =
            [("bytes", "5,7"), ("spent_seconds", "-1"), ("members", "0,1")]
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .into();
        let path = Path::new("pairs.csv");
        let error = field::<u64>(&header, "bytes", path).unwrap_err().to_string();
        assert_eq!(error, "pairs.csv, field #@bytes: is '5,7'; expected a number");
        assert_eq!(list::<u32>(&header, "members", path).unwrap(), [0, 1]);
        let error = spent(&header, path).unwrap_err().to_string();
        assert!(error.contains("#@spent_seconds: is -1"), "{error}");
        let error = field::<u64>(&header, "at_once", path).unwrap_err().to_string();
        assert_eq!(error, "pairs.csv, field #@at_once: is missing");
    }
}
