//! Versioned JSON documents: read with an error that names the place, written whole or not at all.

mod place;

use std::{
    fs::{self, File},
    io::{Read as _, Write},
    path::{Path, PathBuf},
};

use place::Place;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{FileError, number::NumberCheck, quoted, reading};

/// A JSON file with a schema of its own.
pub trait Document: Serialize + DeserializeOwned {
    /// Its name and version, such as `colibri/calibration/1`.
    const SCHEMA: &'static str;

    /// What serde cannot check; an error names the field and what would be right.
    ///
    /// # Errors
    /// `(field, problem)`
    fn validate(&self) -> Result<(), (String, String)> {
        Ok(())
    }
}

#[derive(Serialize)]
struct Outgoing<'a, T> {
    schema: &'static str,
    #[serde(flatten)]
    body: &'a T,
}

#[derive(Deserialize)]
struct Schema {
    schema: Option<String>,
}

/// Reads a document.
///
/// # Errors
/// Not readable, not JSON, another schema, a field missing or wrong.
pub fn read<T: Document>(path: &Path) -> Result<T, FileError> {
    let text = reading::text_file(path)?;
    parse(&text, path)
}

/// Reads a document from its text; `path` is for the errors.
///
/// # Errors
/// As [`read`].
pub fn parse<T: Document>(text: &str, path: &Path) -> Result<T, FileError> {
    if let Some(kind) = other_kind(text) {
        return Err(FileError::new(path, format!("{kind}; expected {}", T::SCHEMA)));
    }
    let schema: Schema = from_json(text, path)?;
    match schema.schema.as_deref() {
        Some(schema) if schema == T::SCHEMA => {}
        Some(other) => {
            return Err(FileError::new(path, format!("{}; expected {}", named(other), T::SCHEMA)));
        }
        None => {
            let problem = format!("is missing; expected \"{}\"", T::SCHEMA);
            return Err(FileError::new(path, problem).in_field("schema"));
        }
    }
    from_json::<NumberCheck>(text, path)?;
    let body: T = from_json(text, path)?;
    check_fractions(&body, text, path)?;
    body.validate().map_err(|(field, problem)| in_line_of(&field, problem, text, path))?;
    Ok(body)
}

/// The schema that a text names, where it is a document.
pub fn schema(text: &str) -> Option<String> {
    serde_json::from_str::<Schema>(text).ok()?.schema
}

/// A fault of a field, with the line at which it stands.
fn in_line_of(field: &str, problem: String, text: &str, path: &Path) -> FileError {
    let line = place::line_of(text, field).unwrap_or_default();
    FileError::new(path, problem).at_line(line).in_field(field)
}

/// Numbers that stand in the text without a point, but for one that has one.
fn check_fractions<T: Document>(body: &T, text: &str, path: &Path) -> Result<(), FileError> {
    let written = serde_json::to_value(body)
        .map_err(|error| FileError::new(path, format!("cannot be written as JSON: {error}")))?;
    serde_path_to_error::deserialize::<_, NumberCheck>(written).map(drop).map_err(|error| {
        let field = error.path().to_string();
        in_line_of(&field, error.into_inner().to_string(), text, path)
    })
}

/// What a file is that is no JSON at all, where that can be seen: `is empty`, `is a measurements
/// record`.
pub fn other_kind(text: &str) -> Option<String> {
    if text.trim().is_empty() {
        return Some("is empty".into());
    }
    let schema = text.strip_prefix("#@schema=")?.lines().next()?;
    Some(named(schema))
}

/// A file of another kind by its schema: `is a measurements record`, `is colibri/plan/1`.
pub(crate) fn named(schema: &str) -> String {
    let mut parts = schema.split('/');
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some("colibri"), Some(kind), Some("1" | "2"), None) if RECORDS.contains(&kind) => {
            let article = if kind.starts_with('o') { "an" } else { "a" };
            format!("is {article} {kind} record")
        }
        _ if schema.starts_with("colibri/") => format!("is {}", quoted(schema).replace('\'', "")),
        _ => format!("is of the kind {}", quoted(schema)),
    }
}

/// The records of raw observations.
const RECORDS: [&str; 4] = ["observations", "group-observations", "measurements", "clock-errors"];

fn from_json<T: DeserializeOwned>(text: &str, path: &Path) -> Result<T, FileError> {
    let deserializer = &mut serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(&mut *deserializer).map_err(|error| {
        let mut field = error.path().to_string();
        let inner = error.into_inner();
        let problem = match inner.classify() {
            // Serde counts it among the faults of syntax, though it is JSON.
            _ if inner.to_string().starts_with("number out of range") => {
                "number out of range".into()
            }
            serde_json::error::Category::Eof => "the file ends too early: it was truncated".into(),
            serde_json::error::Category::Syntax => {
                format!("is not valid JSON: {}", strip_position(&inner.to_string()))
            }
            _ => strip_position(&inner.to_string()),
        };
        let mut line = inner.line() as u64;
        if inner.is_data()
            && let Some(place) = place::deeper_fault::<T>(text, &field)
        {
            Place { field, line } = place;
        }
        FileError::new(path, problem).at_line(line).in_field(field)
    })?;
    deserializer
        .end()
        .map_err(|e| FileError::new(path, "text after the end").at_line(e.line() as u64))?;
    Ok(value)
}

/// serde_json repeats the position at the end of its message; ours names it once.
fn strip_position(message: &str) -> String {
    in_users_terms(message.split(" at line ").next().unwrap_or(message))
}

/// A message of serde's, which names the types of the reader: a user knows what stands in files.
pub fn in_users_terms(message: &str) -> String {
    let Some((found, wanted)) = message.rsplit_once("expected ") else { return message.into() };
    let wanted = match wanted {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number of 0 or more",
        "i32" | "i64" => "a whole number",
        "f32" | "f64" => "a number",
        "a sequence" => "a list",
        _ if wanted.starts_with("struct ") || wanted.starts_with("a map") => "an object",
        _ => wanted,
    };
    let found = match found {
        "invalid type: map, " => "invalid type: object, ",
        "invalid type: sequence, " => "invalid type: list, ",
        _ if found.starts_with("invalid length") => "is a list, ",
        _ => found,
    };
    format!("{found}expected {wanted}")
}

/// A schema stands within so many bytes of the beginning of a file.
const SCHEMA_WITHIN: u64 = 200;

/// Writes a document: into a file beside it first, then in its place, so that a reader sees the
/// old file or the new one and never half of one.
///
/// # Errors
/// The system refuses, or it could not be read back; the old file is then still there.
pub fn write<T: Document>(path: &Path, body: &T) -> Result<(), FileError> {
    let text =
        text(body).map_err(|e| FileError::new(path, format!("cannot be written as JSON: {e}")))?;
    // JSON has no infinity: `null` stands there, which is also what is not there.
    if text.contains("null") {
        parse::<T>(&text, path).map_err(|error| {
            FileError::new(path, format!("not written, since it could not be read back: {error}"))
        })?;
    }
    write_text(path, &text)
}

/// The text of a document.
///
/// # Errors
/// It is not to be had as JSON.
pub fn text<T: Document>(body: &T) -> serde_json::Result<String> {
    let text = serde_json::to_string_pretty(&Outgoing { schema: T::SCHEMA, body })?;
    Ok(text + "\n")
}

/// Writes any text file whole or not at all.
///
/// # Errors
/// There is a document or record of another kind, such as what was read to make this; the system refuses. The old file
/// is then still there.
pub fn write_text(path: &Path, text: &str) -> Result<(), FileError> {
    // A device or a pipe (/dev/stdout, say) is written to, not replaced.
    if fs::metadata(path).is_ok_and(|there| !there.is_file()) {
        return fs::write(path, text).map_err(|error| FileError::io(path, "write", &error));
    }
    if let Some(kind) = kind_there(path).filter(|kind| Some(kind.as_str()) != kind_of(text)) {
        let problem = format!(
            "holds {kind} of Colibri, which another kind of file would replace; name another file"
        );
        return Err(FileError::new(path, problem));
    }
    // What a link points to is replaced, not the link.
    let place = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let beside = beside(&place);
    let written = File::create(&beside).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&beside, &place)
    });
    written.map_err(|error| {
        // Best effort: the error to report is the one of the write.
        let _ = fs::remove_file(&beside);
        FileError::io(path, "write", &error)
    })
}

/// The kind of document or record in a file, as its schema names it: `calibration`.
fn kind_there(path: &Path) -> Option<String> {
    let mut beginning = Vec::new();
    reading::open(path).ok()?.take(SCHEMA_WITHIN).read_to_end(&mut beginning).ok()?;
    kind_of(&String::from_utf8_lossy(&beginning)).map(str::to_owned)
}

/// Of a text: `{ "schema": "colibri/calibration/1"` or `#@schema=colibri/measurements/1`.
fn kind_of(text: &str) -> Option<&str> {
    let text = text.trim_start();
    let behind = match text.strip_prefix('{') {
        Some(object) => object.trim_start().strip_prefix("\"schema\": \"")?,
        None => text.strip_prefix("#@schema=")?,
    };
    behind.strip_prefix("colibri/")?.split('/').next()
}

fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}.part", std::process::id()));
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Thing {
        inner: Inner,
    }
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Inner {
        seconds: f64,
    }
    impl Document for Thing {
        const SCHEMA: &'static str = "colibri/thing/1";
        fn validate(&self) -> Result<(), (String, String)> {
            match self.inner.seconds >= 0.0 {
                true => Ok(()),
                false => Err(("inner.seconds".into(), "is negative".into())),
            }
        }
    }

    #[test]
    fn a_link_stays_one() {
        let dir = tempfile::tempdir().unwrap();
        let [path, link] = ["rules", "link"].map(|name| dir.path().join(name));
        write_text(&path, "old").unwrap();
        std::os::unix::fs::symlink("rules", &link).unwrap();
        write_text(&link, "new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }

    #[test]
    fn another_kind_of_file_does_not_replace_a_document() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("thing.json");
        write(&path, &Thing { inner: Inner { seconds: 0.25 } }).unwrap();
        write(&path, &Thing { inner: Inner { seconds: 0.5 } }).unwrap();
        let before = fs::read(&path).unwrap();
        for other in
            ["rules", "{\n  \"schema\": \"colibri/choices/2\"\n}", "#@schema=colibri/things/1\n"]
        {
            let error = write_text(&path, other).unwrap_err().to_string();
            assert!(error.contains("thing.json") && error.contains("holds thing of"), "{error}");
        }
        assert_eq!(fs::read(&path).unwrap(), before);
        let record = dir.path().join("measurements.csv");
        fs::write(&record, "#@schema=colibri/measurements/1\nvisit\n").unwrap();
        assert!(write_text(&record, "<html>").is_err());
        fs::write(&record, "").unwrap();
        write_text(&record, "<html>").unwrap();
        write_text(&record, "rules").unwrap();
    }

    #[test]
    fn what_is_written_reads_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("thing.json");
        let thing = Thing { inner: Inner { seconds: 0.25 } };
        write(&path, &thing).unwrap();
        assert_eq!(read::<Thing>(&path).unwrap(), thing);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "no file is left beside it");
    }

    /// By serde_json's fast way of reading some of these end in another digit.
    #[test]
    fn numbers_read_back_to_the_last_digit() {
        for divisor in 1..1000 {
            let thing = Thing { inner: Inner { seconds: 1e-3 / f64::from(divisor) } };
            let read: Thing = parse(&text(&thing).unwrap(), Path::new("x")).unwrap();
            assert_eq!(read, thing);
        }
    }

    #[test]
    fn what_could_not_be_read_back_is_not_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("thing.json");
        write(&path, &Thing { inner: Inner { seconds: 0.25 } }).unwrap();
        let broken = Thing { inner: Inner { seconds: f64::INFINITY } };
        let error = write(&path, &broken).unwrap_err().to_string();
        assert!(error.contains("field inner.seconds"), "{error}");
        assert_eq!(read::<Thing>(&path).unwrap().inner.seconds, 0.25, "the old one is kept");
    }

    #[test]
    fn a_full_device_is_an_error_and_stays_a_device() {
        let path = Path::new("/dev/full");
        let error = write_text(path, "x").unwrap_err().to_string();
        assert_eq!(error, "/dev/full: cannot write: no space left on the disk");
        assert!(!fs::metadata(path).unwrap().is_file());
    }

    #[test]
    fn errors_name_file_line_and_field() {
        let path = Path::new("thing.json");
        for (text, wanted) in [
            (
                "{\n \"schema\": \"colibri/thing/1\",\n \"inner\": {\"seconds\": \"x\"}}",
                "line 3, field inner.seconds",
            ),
            ("{\"schema\": \"colibri/thing/2\"}", "is colibri/thing/2; expected colibri/thing/1"),
            ("{\"schema\": \"thing\"}", "is of the kind 'thing'; expected colibri/thing/1"),
            (
                "#@schema=colibri/measurements/1\nvisit,",
                "thing.json: is a measurements record; expected colibri/thing/1",
            ),
            (
                "{\"schema\": \"colibri/thing/1\",\n\"inner\": {\"seconds\": 1.7e308}}",
                "line 2, field inner.seconds: is 1.7e308; expected a number between",
            ),
            (
                "{\"schema\": \"colibri/thing/1\", \"inner\": {\"seconds\": 8829338300843641}}",
                "field inner.seconds: is 8.829338300843641e15; expected a number between",
            ),
            ("{\"schema\": 1e999}", "line 1, field schema: number out of range"),
            ("{}", "field schema: is missing"),
            ("[]", "line 1: is a list, expected an object"),
            (
                "{\"schema\": \"colibri/thing/1\", \"inner\": 5}",
                "field inner: invalid type: integer `5`, expected an object",
            ),
            (
                "{\"schema\": \"colibri/thing/1\", \"inner\": {\"seconds\": \"x\"}}",
                "field inner.seconds: invalid type: string \"x\", expected a number",
            ),
            ("{\"schema\": \"colibri/thing/1\", \"inner\": {\"sec", "truncated"),
            (
                "{\"schema\": \"colibri/thing/1\", \"inner\": {\"seconds\": -1.0}}",
                "field inner.seconds: is negative",
            ),
            ("{\"schema\": \"colibri/thing/1\"", "truncated"),
            ("", "thing.json: is empty; expected colibri/thing/1"),
            (" \n", "is empty"),
        ] {
            let error = parse::<Thing>(text, path).unwrap_err().to_string();
            assert!(error.starts_with("thing.json") && error.contains(wanted), "{error}");
        }
    }
}
