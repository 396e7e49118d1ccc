//! Append-only records: CSV, one line per observation, `#@key=value` lines on top.
//!
//! A line is handed to the system in one piece, so a killed program loses at most the observation
//! under way. What it had written is never touched again: a resumed program closes a torn last
//! line, marks the place with `#@resumed` and appends. The last column of every row is a
//! [`Status`](crate::observation::ObservationStatus), none of whose values is the beginning of another, so a
//! torn line cannot be taken for a whole one.

mod bulk;

pub use bulk::BulkWriter;

use std::{
    collections::BTreeMap,
    fs::{File, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use serde::{Serialize, de::DeserializeOwned};

use crate::{
    FileError,
    disturbance::{self, Stretch},
    document::named,
    number::check_reading,
    reading,
};

/// One line of a record.
pub trait Row: Serialize + DeserializeOwned {
    /// The record's schema, such as `colibri/measurements/1`.
    const SCHEMA: &'static str;
    /// Its columns, in the order of the fields.
    const COLUMNS: &'static [&'static str];

    /// What of it is a number with a fraction, by its column.
    fn numbers(&self) -> impl IntoIterator<Item = (&'static str, f64)>;

    /// What of these is above 0, by its column; nothing where none has to be.
    fn time(&self) -> Option<(&'static str, f64)> {
        None
    }

    /// What cannot be 0, by its column.
    fn counts(&self) -> impl IntoIterator<Item = (&'static str, u32)>;

    /// Others took too much of the processors while it was made.
    fn disturb(&mut self) {}
}

const RESUMED: &str = "#@resumed";

/// A record as read.
#[derive(Debug, Clone)]
pub struct Record<T> {
    /// The `#@key=value` lines, without `schema` and `disturbance`.
    pub header: BTreeMap<String, String>,
    /// The observations, in the order in which they were made; those are marked during which
    /// [others took too much](Stretch::is_disturbed) of the processors.
    pub rows: Vec<T>,
    /// What others took of the processors.
    pub stretches: Vec<Stretch>,
    /// Lines cut off by a kill, which hold no observation.
    pub torn: usize,
}

/// Bytes of records that this process has read, shown while a long one is being read.
static BYTES_READ: AtomicU64 = AtomicU64::new(0);

/// A record by its file's name, as others name it: a run's directory may be moved as a whole.
pub fn name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// How many bytes of records this process has read so far.
pub fn bytes_read() -> u64 {
    BYTES_READ.load(Ordering::Relaxed)
}

impl<T: Row> Record<T> {
    fn new() -> Self {
        Record { header: BTreeMap::new(), rows: Vec::new(), stretches: Vec::new(), torn: 0 }
    }

    /// How long the programs that made it waited for others to end, in seconds.
    pub fn waited_seconds(&self) -> f64 {
        let waited = self.header.get(disturbance::WAITED);
        waited.and_then(|text| text.parse().ok()).filter(|seconds| *seconds > 0.0).unwrap_or(0.0)
    }

    /// Takes in what was seen while the rows from `first` on were made.
    fn close(&mut self, first: usize, value: &str) -> Result<(), String> {
        let stretch = Stretch::parse(value)?;
        if stretch.is_disturbed() {
            self.rows[first..].iter_mut().for_each(T::disturb);
        }
        self.stretches.push(stretch);
        Ok(())
    }
}

/// Reads a record.
///
/// # Errors
/// Not readable, another schema, other columns, or a broken line that no kill explains.
pub fn read<T: Row>(path: &Path) -> Result<Record<T>, FileError> {
    let bytes = reading::bytes(path).map_err(|e| FileError::io(path, "read", &e))?;
    parse(&String::from_utf8_lossy(&bytes), path)
}

/// Reads a record that may only just have been begun: one that was killed before its first line was
/// whole holds nothing.
///
/// # Errors
/// As [`read`].
pub fn read_begun<T: Row>(path: &Path) -> Result<Record<T>, FileError> {
    let bytes = reading::bytes(path).map_err(|e| FileError::io(path, "read", &e))?;
    let text = String::from_utf8_lossy(&bytes);
    match format!("#@schema={}\n", T::SCHEMA).starts_with(&*text) {
        true => Ok(Record::new()),
        false => parse(&text, path),
    }
}

/// Reads a record from its text; `path` is for the errors.
///
/// # Errors
/// As [`read`].
pub fn parse<T: Row>(text: &str, path: &Path) -> Result<Record<T>, FileError> {
    let mut record = Record::new();
    // Where the stretch begins of which the next line of its kind will tell.
    let mut stretch = 0;
    let columns = csv::StringRecord::from(T::COLUMNS);
    let mut splitter = Splitter::new();
    let mut schema = None;
    let mut columns_seen = false;
    let mut lines = text.split_inclusive('\n').zip(1_u64..).peekable();
    while let Some((line, number)) = lines.next() {
        let cut = !line.ends_with('\n')
            || lines.peek().is_some_and(|(next, _)| next.trim_end() == RESUMED);
        BYTES_READ.fetch_add(line.len() as u64, Ordering::Relaxed);
        let line = line.trim_end_matches(['\n', '\r']);
        let fault = |problem: String| FileError::new(path, problem).at_line(number);
        if let Some(entry) = line.strip_prefix("#@") {
            match entry.split_once('=') {
                Some(("schema", value)) => schema = Some(value.to_owned()),
                Some((disturbance::KEY, value)) if !cut => {
                    let told = record.close(stretch, value);
                    told.map_err(|problem| fault(problem).in_field(disturbance::KEY))?;
                    stretch = record.rows.len();
                }
                // What was not recorded before a kill, nobody knows.
                None if line == RESUMED => stretch = record.rows.len(),
                // A value that may have been cut is none; one that stands further up holds on.
                Some((key, value)) if !cut => {
                    record.header.insert(key.into(), value.into());
                }
                _ => {}
            }
        } else if line.is_empty() || line.starts_with('#') {
            if cut && !line.is_empty() {
                record.torn += 1;
            }
        } else if !columns_seen {
            check_schema::<T>(schema.as_deref(), path)?;
            if line != T::COLUMNS.join(",") {
                if cut {
                    record.torn += 1;
                    continue;
                }
                return Err(fault(format!("wrong columns; expected {}", T::COLUMNS.join(","))));
            }
            columns_seen = true;
        } else {
            match parse_line(line, &columns, &mut splitter).and_then(checked) {
                Ok(row) => record.rows.push(row),
                Err(_) if cut => record.torn += 1,
                Err((field, problem)) => return Err(fault(problem).in_field(field)),
            }
        }
    }
    if text.trim().is_empty() {
        return Err(FileError::new(path, format!("is empty; expected {}", T::SCHEMA)));
    }
    check_schema::<T>(schema.as_deref(), path)?;
    Ok(record)
}

/// A row whose numbers are ones.
fn checked<T: Row>(row: T) -> Result<T, (String, String)> {
    for (column, number) in row.numbers() {
        check_reading(number).map_err(|problem| (column.to_owned(), problem))?;
    }
    if let Some((column, seconds)) = row.time().filter(|(_, seconds)| *seconds <= 0.0) {
        return Err((column.into(), format!("is {seconds}; expected a time above 0")));
    }
    let empty = row.counts().into_iter().find(|(_, count)| *count == 0);
    match empty {
        Some((column, _)) => Err((column.into(), "is 0; expected 1 or more".into())),
        None => Ok(row),
    }
}

fn check_schema<T: Row>(schema: Option<&str>, path: &Path) -> Result<(), FileError> {
    match schema {
        Some(schema) if schema == T::SCHEMA => Ok(()),
        Some(other) => {
            Err(FileError::new(path, format!("{}; expected {}", named(other), T::SCHEMA)))
        }
        None => Err(FileError::new(path, format!("no line #@schema={}", T::SCHEMA))),
    }
}

fn parse_line<T: Row>(
    line: &str,
    columns: &csv::StringRecord,
    splitter: &mut Splitter,
) -> Result<T, (String, String)> {
    check_quotes(line, ',').map_err(|problem| (String::new(), problem))?;
    let fields = splitter.fields(line);
    if fields.len() != columns.len() {
        let problem = format!("{} fields, expected {}", fields.len(), columns.len());
        return Err((String::new(), problem));
    }
    fields.deserialize(Some(columns)).map_err(|error| match error.kind() {
        csv::ErrorKind::Deserialize { err, .. } => {
            let field = err.field().and_then(|index| columns.get(index as usize));
            (field.unwrap_or_default().to_owned(), err.kind().to_string())
        }
        _ => (String::new(), error.to_string()),
    })
}

/// Whether the quotation marks of a line of CSV are closed in it: no field of ours goes over lines.
///
/// # Errors
/// Says in which field one is not.
pub fn check_quotes(line: &str, separator: char) -> Result<(), String> {
    let mut rest = line.contains('"').then_some(line);
    let mut field = 0;
    while let Some(line) = rest {
        field += 1;
        let mut after = line;
        if let Some(mut quoted) = line.strip_prefix('"') {
            after = loop {
                let Some((_, closed)) = quoted.split_once('"') else {
                    return Err(format!(
                        "a quotation mark opens in field {field} of this line and none closes it; expected a second one, or none"
                    ));
                };
                // Two of them stand for one in the text.
                match closed.strip_prefix('"') {
                    Some(more) => quoted = more,
                    None => break closed,
                }
            };
        }
        rest = after.split_once(separator).map(|(_, rest)| rest);
    }
    Ok(())
}

/// Splits lines into fields. Setting a CSV reader up costs ten times as much as reading a line: one
/// serves for all of them.
struct Splitter {
    reader: csv_core::Reader,
    text: Vec<u8>,
    ends: Vec<usize>,
}

impl Splitter {
    fn new() -> Self {
        Splitter { reader: csv_core::Reader::new(), text: Vec::new(), ends: Vec::new() }
    }

    /// The fields of a line; none where it is no CSV.
    fn fields(&mut self, line: &str) -> csv::StringRecord {
        let Splitter { reader, text, ends } = self;
        reader.reset();
        text.resize(line.len(), 0);
        ends.resize(line.len() + 1, 0);
        let (_, _, written, fields) = reader.read_record(line.as_bytes(), text, ends);
        // The end of the input ends the last field.
        let (outcome, _, _, more) =
            reader.read_record(&[], &mut text[written..], &mut ends[fields..]);
        if outcome != csv_core::ReadRecordResult::Record {
            return csv::StringRecord::new();
        }
        let mut record = csv::StringRecord::with_capacity(line.len(), fields + more);
        let mut start = 0;
        for &end in &ends[..fields + more] {
            let Ok(field) = std::str::from_utf8(&text[start..end]) else {
                return csv::StringRecord::new();
            };
            record.push_field(field);
            start = end;
        }
        record
    }
}

/// The line of one observation, with its end.
///
/// # Errors
/// It is not to be had as CSV.
pub fn line<T: Row>(row: &T) -> Result<Vec<u8>, String> {
    let mut line =
        csv::WriterBuilder::new().has_headers(false).from_writer(Vec::with_capacity(160));
    line.serialize(row).map_err(|error| error.to_string())?;
    line.into_inner().map_err(|error| error.to_string())
}

/// Appends observations to a record.
#[derive(Debug)]
pub struct Writer<T> {
    file: File,
    path: PathBuf,
    row: std::marker::PhantomData<T>,
}

impl<T: Row> Writer<T> {
    /// Begins a record, or goes on with one that is there.
    ///
    /// `header` is written only when the record begins.
    ///
    /// # Errors
    /// The system refuses.
    pub fn open(path: &Path, header: &BTreeMap<String, String>) -> Result<Self, FileError> {
        let fault = |error: std::io::Error| FileError::io(path, "write", &error);
        let there = match reading::bytes(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(fault(error)),
        };
        let file = OpenOptions::new().append(true).create(true).open(path).map_err(fault)?;
        let mut writer = Writer { file, path: path.into(), row: std::marker::PhantomData };
        writer.write(&opening::<T>(&there, header))?;
        Ok(writer)
    }

    /// Appends one observation, in one piece.
    ///
    /// # Errors
    /// The system refuses (a full disk, say).
    pub fn append(&mut self, row: &T) -> Result<(), FileError> {
        let line = line(row).map_err(|problem| {
            FileError::new(&self.path, format!("cannot be written as CSV: {problem}"))
        })?;
        self.write(&line)
    }

    /// Appends a header line; of several with one key the last counts.
    ///
    /// # Errors
    /// The system refuses.
    pub fn note(&mut self, key: &str, value: &str) -> Result<(), FileError> {
        self.write(format!("#@{key}={}\n", value.replace(['\n', '\r'], " ")).as_bytes())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), FileError> {
        self.file.write_all(bytes).map_err(|e| FileError::io(&self.path, "write", &e))
    }
}

/// What goes before the first new row, given what the file holds.
fn opening<T: Row>(there: &[u8], header: &BTreeMap<String, String>) -> Vec<u8> {
    let columns = T::COLUMNS.join(",") + "\n";
    let begun =
        there.split(|byte| *byte == b'\n').any(|line| line == columns.trim_end().as_bytes());
    let mut text = String::new();
    if !there.is_empty() {
        if !there.ends_with(b"\n") {
            text.push('\n');
        }
        text += RESUMED;
        text.push('\n');
    }
    if !begun {
        text += &format!("#@schema={}\n", T::SCHEMA);
        for (key, value) in header {
            let value = value.replace(['\n', '\r'], " ");
            text += &format!("#@{key}={value}\n");
        }
        text += &columns;
    }
    text.into_bytes()
}

#[cfg(test)]
mod tests;
