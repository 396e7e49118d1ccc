//! Rank 0's hand on the record.

use std::collections::BTreeMap;

use records::{
    FileError,
    observation::PointToPoint,
    platform::Platform,
    record::{self, Writer},
};
use serde::{Deserialize, Serialize};

use super::{Flags, PROGRAM};
use crate::{Error, Result, launcher::Lock};

/// What earlier runs left behind.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Spent {
    /// Their observations.
    pub rows: Vec<PointToPoint>,
    /// Seconds of the budget that they used.
    pub seconds: f64,
}

/// Appends observations; touches the file only when there is one to append.
#[derive(Debug)]
pub struct Recorder {
    /// What earlier runs left behind.
    pub earlier: Spent,
    path: std::path::PathBuf,
    header: BTreeMap<String, String>,
    writer: Option<Writer<PointToPoint>>,
    _lock: Lock,
}

const SPENT: &str = "spent_seconds";

/// The keys that a run which goes on with a record must agree with.
const IDENTITY: [&str; 1] = ["pair"];

impl Recorder {
    /// Reads the record, if there is one.
    ///
    /// # Errors
    /// It cannot be read, or holds something else.
    pub fn new(flags: &Flags, platform: &Platform) -> Result<Self> {
        let header = header(flags, platform)?;
        let lock = Lock::take(&flags.record)?;
        let earlier = earlier(flags, &header)?;
        Ok(Recorder { earlier, path: flags.record.clone(), header, writer: None, _lock: lock })
    }

    /// Appends observations, each in one piece.
    ///
    /// # Errors
    /// The system refuses.
    pub fn append(&mut self, rows: &[PointToPoint]) -> Result<()> {
        let writer = match &mut self.writer {
            Some(writer) => writer,
            None => self.writer.insert(Writer::open(&self.path, &self.header)?),
        };
        Ok(rows.iter().try_for_each(|row| writer.append(row))?)
    }

    /// Notes what has been spent, if this run has changed the record at all.
    ///
    /// # Errors
    /// The system refuses.
    pub fn note(&mut self, spent_seconds: f64) -> Result<()> {
        let text = format!("{spent_seconds:.3}");
        Ok(self.writer.iter_mut().try_for_each(|writer| writer.note(SPENT, &text))?)
    }
}

fn header(flags: &Flags, platform: &Platform) -> Result<BTreeMap<String, String>> {
    let sizes: Vec<String> = flags.sizes.0.iter().map(u64::to_string).collect();
    let timing = "CLOCK_MONOTONIC of the sender around its own MPI calls (MPI_Send, MPI_Recv); \
                  blocking, contiguous bytes; the clock's own cost is not subtracted (kind clock)";
    Ok([
        ("pair", format!("{},{}", flags.pair.0, flags.pair.1)),
        ("platform", serde_json::to_string(platform)?),
        ("program", format!("{PROGRAM} {}", env!("CARGO_PKG_VERSION"))),
        ("seed", flags.seed.to_string()),
        ("sizes", sizes.join(",")),
        ("timing", timing.to_owned()),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into())
}

fn earlier(flags: &Flags, header: &BTreeMap<String, String>) -> Result<Spent> {
    let path = &flags.record;
    let there = match record::read::<PointToPoint>(path) {
        Ok(there) => there,
        // Killed before its header was whole: nothing was observed.
        Err(_) if begins_a_header(path)? => return Ok(Spent::default()),
        Err(error) => return Err(error.into()),
    };
    for key in IDENTITY {
        let (old, new) = (there.header.get(key), header.get(key));
        if old.is_some() && old != new {
            let [old, new] = [old, new].map(|value| value.map_or("", String::as_str));
            let problem = format!("is {old}, this run's is {new}; name another --record");
            return Err(FileError::new(path, problem).in_field(key).into());
        }
    }
    let seconds = match there.header.get(SPENT) {
        Some(text) => text.parse().map_err(|_| {
            let problem = format!("is '{text}', wanted a number of seconds");
            Error::from(FileError::new(path, problem).in_field(SPENT))
        })?,
        None => 0.0,
    };
    Ok(Spent { rows: there.rows, seconds })
}

/// Whether a file is empty or the beginning of a record's first line.
fn begins_a_header(path: &std::path::Path) -> Result<bool> {
    use records::record::Row;
    let text = std::fs::read_to_string(path).map_err(|e| FileError::io(path, "read", &e))?;
    Ok(format!("#@schema={}\n", PointToPoint::SCHEMA).starts_with(&text))
}
